"""Exact dominating sets: what they claim is what trying all sets finds, whatever interrupts or lacks."""

import importlib.util
import itertools
import threading
import time
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from helpers import graph_of
from test_domination_search import checked_value, sets_of, tools_of

from app import solve
from app.bounds.certificate import BadCertificate
from app.bounds.cover import program as cover_program
from app.bounds.cover.program import Program
from app.bounds.domination import exact as domination_exact
from app.bounds.domination.bounds import DominationBounds
from app.bounds.domination.exact import ExactDomination, fits
from app.bounds.paced import Paced
from app.reductions.domination.reducer import Component, Kernel, covers
from app.search.domination.baselines import most_gain_pruned, near_any
from app.search.domination.search import FREE, INSIDE, OUTSIDE

pytestmark = [
    pytest.mark.mpi_skip,
    pytest.mark.skipif(importlib.util.find_spec("highspy") is None, reason="needs highspy"),
]
LONG = 60.0  # s, a limit against hangs only


def drawn_instance(seed, most=12):
    """A small graph, prices, which are all one, small, or large, and who is fixed; all sets that dominate."""
    random = np.random.default_rng(seed)
    n = int(random.integers(1, most))
    kinds = (
        lambda: nx.gnp_random_graph(n, float(random.uniform(0.05, 0.5)), seed=seed),
        lambda: nx.random_labeled_tree(n, seed=seed),
        lambda: nx.cycle_graph(n) if n > 2 else nx.path_graph(n),
        lambda: nx.disjoint_union(nx.path_graph(n // 2), nx.gnp_random_graph(n - n // 2, 0.5, seed=seed)),
    )
    graph = graph_of(kinds[seed % len(kinds)]())
    largest = (1, 6, 1000, 1 << 17, 1 << 36)[seed % 5]
    price = random.integers(1, largest + 1, n)
    fixed = random.choice(3, n, p=[1, 0, 0] if seed % 3 else [0.8, 0.1, 0.1]).astype(np.uint8)
    if not len(sets_of(graph, fixed)):
        fixed[:] = 0
    return graph, price, fixed, sets_of(graph, fixed)


@pytest.mark.parametrize("first", range(0, 400, 50))
def test_optima_are_those_of_trying_all(first):
    for seed in range(first, first + 50):
        graph, price, fixed, all_sets = drawn_instance(seed)
        inside = fixed == INSIDE
        needed = ~(inside | near_any(graph, inside))
        wanted = int((all_sets @ price).min()) - int(price[inside].sum())
        exact = ExactDomination(graph, price, needed, fixed == FREE, LONG)
        while not exact.done:
            exact.run(LONG, all_sets[seed % len(all_sets)] if seed % 2 else None)
            assert exact.lower <= wanted
        if exact.optimum() is None:  # prices too fine to tell optima
            assert price.max() > 1 << 20
            assert wanted * (1 - 1e-6) - 1 <= exact.lower <= wanted
            continue
        found = checked_value(graph, price, fixed, exact.optimum() | inside)
        assert exact.lower == wanted == found - int(price[inside].sum())


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_reductions_keep_an_optimum(first):
    """With what is chosen, an optimal choice of every part is optimal; what follows a set is no dearer."""
    for seed in range(first, first + 50):
        graph, price, fixed, all_sets = drawn_instance(seed + 1000)
        kernel = Kernel(graph, price, fixed == INSIDE, fixed == OUTSIDE, lambda: False)
        chosen, spent = kernel.chosen.copy(), kernel.paid
        given = all_sets[seed % len(all_sets)]
        for part in kernel.parts():
            choices = itertools.product((False, True), repeat=len(part.columns))
            able = [np.array(each) for each in choices if covers(part.table, np.array(each))]
            best = min(able, key=lambda each: part.price[each].sum())
            chosen[part.columns[best]] = True
            first_choice = Program.of(part)
            assert covers(part.table, first_choice.taken)
            followed = kernel.followed(part, given)
            assert covers(part.table, followed)
            spent += int(part.price[followed].sum())
            first_choice.offer(followed)
            assert first_choice.cost <= part.price[followed].sum()
        assert checked_value(graph, price, fixed, chosen) == (all_sets @ price).min()
        assert spent <= price[given].sum()


@pytest.mark.parametrize("seed", range(3))
def test_bounds_grow_to_the_optimum_in_slices(seed):
    """In calls of any length every bound stands, and an optimum costs what the bound says."""
    drawn = (
        nx.barabasi_albert_graph(120, 4, seed=1), nx.gnp_random_graph(60, 0.1, seed=1),
        nx.disjoint_union_all([nx.grid_2d_graph(6, 6), nx.grid_2d_graph(7, 7), nx.path_graph(20)]),
    )[seed]  # fmt: skip
    graph = graph_of(nx.convert_node_labels_to_integers(drawn))
    bounds, values = DominationBounds(graph), []
    bounds.expect(LONG)
    while bounds.improve(1e-3, graph.n) and len(values) < 100_000:
        values.append(bounds.value)
        if (found := bounds.optimum()) is not None:
            assert checked_value(graph, None, np.zeros(graph.n), found) == bounds.value
    assert values == sorted(values)
    assert bounds.optimum().sum() == bounds.value >= max(values)
    assert not bounds.improve(1e-3, graph.n)
    if seed == 1:
        assert (bounds.method, bounds.checked, bounds.closing) == (cover_program.METHOD, False, False)
    again = DominationBounds(graph)
    again.expect(LONG)
    assert not again.improve(LONG, bounds.value, bounds.optimum())
    assert again.value == bounds.value


def test_solved_parts_do_not_wait_for_the_others():
    """Of a part that is solved and one that is open the best that is known; nothing that is no better."""
    open_ = nx.gnp_random_graph(250, 0.05, seed=1)
    graph = graph_of(nx.disjoint_union(nx.gnp_random_graph(60, 0.1, seed=1), open_))
    rough = most_gain_pruned(graph)[0]
    bounds = DominationBounds(graph)
    bounds.expect(LONG)
    found, best = None, int(rough.sum())
    assert bounds.pieces() is None
    for _ in range(2000):
        bounds.improve(0.01, best, rough)
        if (found := bounds.pieces()) is not None:
            break
    assert bounds.optimum() is None
    assert checked_value(graph, None, np.zeros(graph.n), found) < best
    assert bounds.pieces() is found
    bounds.improve(0.0, int(found.sum()) - 1, rough)
    assert bounds.pieces() is None
    bounds.close()


def test_without_a_time_there_is_none():
    graph = graph_of(nx.barabasi_albert_graph(60, 3, seed=1))
    bounds = DominationBounds(graph)
    while bounds.improve(0.0, graph.n):
        assert not bounds.closing
    assert (bounds.optimum(), bounds.checked) == (None, True)
    bounds.close()


def test_without_highs_all_stays_as_it_was(monkeypatch):
    monkeypatch.setattr(domination_exact, "available", lambda: False)
    graph = graph_of(nx.barabasi_albert_graph(60, 3, seed=1))
    plain, limited = DominationBounds(graph), DominationBounds(graph)
    limited.expect(LONG)
    for bounds in (plain, limited):
        while bounds.improve(0.0, graph.n):
            pass
    assert (plain.value, plain.method) == (limited.value, limited.method)
    assert (limited.optimum(), limited.checked, limited.closing) == (None, True, False)


def test_what_takes_too_long_or_too_much_is_not_begun(monkeypatch):
    graph = graph_of(nx.barabasi_albert_graph(60, 3, seed=1))
    entries = graph.n + len(graph.indices)
    assert fits(graph, LONG, 1e9)
    assert not fits(graph, 1e-9, 1e9)
    assert not fits(graph, LONG, entries)
    assert not fits(graph_of(nx.empty_graph(0)), LONG, 1e9)
    monkeypatch.setattr(domination_exact, "MOST_ENTRIES", entries - 1)
    assert not fits(graph, LONG, 1e9)


def test_a_table_that_is_too_large_is_left_alone(monkeypatch):
    monkeypatch.setattr(domination_exact, "MOST_PROGRAM", 1)
    graph = graph_of(nx.barabasi_albert_graph(80, 4, seed=1))
    exact = ExactDomination(graph, np.ones(80, dtype=np.int64), None, None, LONG)
    exact.run(LONG)
    assert exact.done
    assert exact.optimum() is None


def test_it_ends_where_the_caller_does():
    """Closed, forgotten, and at the run's time limit; a bound that was told stays."""
    graph = graph_of(nx.gnp_random_graph(300, 0.05, seed=1))
    price = np.ones(300, dtype=np.int64)
    before = threading.active_count()
    closed = ExactDomination(graph, price, None, None, LONG)
    while not closed.lower:
        closed.run(0.02)
    closed.close()
    forgotten = ExactDomination(graph, price, None, None, LONG)
    forgotten.run(0.02)
    del forgotten
    short = ExactDomination(graph, price, None, None, 0.3)
    short.run(LONG)
    assert short.done
    assert 0 < closed.lower <= 300
    closed.run(LONG)
    assert closed.done
    assert closed.optimum() is None
    ended = time.monotonic() + LONG
    while threading.active_count() > before and time.monotonic() < ended:
        time.sleep(0.01)
    assert threading.active_count() == before


def test_the_first_linear_program_may_be_solved_either_way(monkeypatch):
    """By an interior point method, after which HiGHS looks sooner, or by the simplex method."""
    graph, none = graph_of(nx.gnm_random_graph(600, 2100, seed=1)), np.zeros(600, dtype=bool)
    (part,) = Kernel(graph, np.ones(600, dtype=np.int64), none, none, lambda: False).parts()
    bounds = []
    for most in (cover_program.INTERIOR, 0):
        monkeypatch.setattr(cover_program, "INTERIOR", most)
        program = Program.of(part)
        program.run(LONG, lambda program=program: program.lower > 60)
        bounds.append(program.lower)
    assert bounds[0] == bounds[1] > 60


@pytest.mark.parametrize("seed", [27, 57, 121])
def test_programs_with_prices_are_solved_whatever_is_known_of_their_cost(seed):
    """With a row that bounds the cost HiGHS found these infeasible."""
    random = np.random.default_rng(seed)
    n = int(random.integers(40, 160))
    edges = int(n * random.uniform(1, 4))
    u, v = random.integers(0, n // 2, edges), n // 2 + random.integers(0, n // 2, edges)
    table = sp.eye_array(n, format="lil")
    table[u, v] = table[v, u] = 1
    price = (10 ** random.uniform(0, 2, n)).astype(np.int64) + 1
    program = Program.of(Component(table.tocsr(), price, np.arange(n)))
    known = program.cost
    program.run(LONG, lambda: False)
    assert program.done
    assert program.solved
    assert program.cost < known


def test_work_goes_on_while_its_owner_waits_and_at_no_other_time():
    made = []

    def work(look):
        while not look():
            made.append(1)
            time.sleep(1e-4)

    paced = Paced(work)
    for _ in range(3):
        paced.run(0.02)
        time.sleep(0.05)
        count = len(made)
        time.sleep(0.05)
        assert len(made) == count
    paced.close()
    paced.run(LONG)
    assert paced.done

    def fails(look):
        raise ArithmeticError("said")

    with pytest.raises(ArithmeticError, match="said"):
        Paced(fails).run(LONG)


def test_a_bound_above_a_choice_is_refused():
    kernel = Kernel(
        graph_of(nx.cycle_graph(7)), np.ones(7, dtype=np.int64), *2 * [np.zeros(7, dtype=bool)], lambda: False
    )
    program = Program.of(kernel.parts()[0])
    program.taken, program.cost, program.lower = np.ones(7, dtype=bool), 7, 5
    with pytest.raises(BadCertificate, match="says at least 5, where a choice costs 3"):
        program.offer(np.isin(np.arange(7), [0, 3, 6]))


@pytest.mark.parametrize("largest", [1, 1 << 10, 1 << 19, 1 << 23, 1 << 40])
def test_bounds_are_rounded_with_a_margin(largest):
    """One above a whole number, by less than HiGHS can tell, is that number; no bound passes the optimum."""
    price = np.array([largest, largest + 1, 3 * largest])
    units = cover_program._Units(price * 4, 4 * largest)
    assert units.unit == 4
    for wanted in (1, largest // 2 + 1, largest):
        for off in (-1e-6, 0.0, 1e-6):
            told = units.whole((wanted + off) / units.step)
            assert told <= 4 * wanted
            assert told == 4 * wanted or largest > 1 << 20
    assert units.whole(float("inf")) == units.whole(float("nan")) == 0


@pytest.mark.parametrize("weighted", [False, True])
def test_a_solve_with_fixed_nodes_is_closed(weighted):
    graph = nx.barabasi_albert_graph(80, 3, seed=4)
    if weighted:
        nx.set_node_attributes(graph, {v: 1 + v % 7 for v in graph}, "weight")
    settings = {"problem.name": "mds", "search.seconds": 20.0, "search.baselines": False}
    free = solve(graph, settings=settings)
    out = free.nodes[:2]
    bound = solve(graph, settings=settings, outside=out)
    for answer in (free, bound):
        assert answer.optimal
        assert answer.feasible
    assert not set(out) & set(bound.nodes)
    assert free.objective <= bound.objective
    assert tools_of(graph_of(graph), outside=out).fault(np.isin(np.arange(80), bound.nodes)) is None


@pytest.mark.parametrize("seed", range(4))
def test_where_steps_decide_small_sets_are_proved_and_answers_stay(seed):
    """The exact search closes what packings leave open; what it finds is no answer, which steps decide."""
    graph = nx.gnp_random_graph(9, 0.4, seed=seed)
    weights = np.round(10 * np.random.default_rng(seed).random(9), 2)
    settings = {"problem.name": "mds", "search.steps": 2000, "search.baselines": False}
    settings["search.bound_seconds"] = LONG
    proved = solve(graph, node_weights=weights, settings=settings)
    free = solve(graph, node_weights=weights, settings=settings | {"search.bounds": False})
    assert (proved.objective, proved.digest) == (free.objective, free.digest)
    assert proved.optimal


@pytest.mark.parametrize(
    ("status", "told", "lower"), [("Optimal", 3.0, 3), ("Optimal", 2.0, 0), ("TimeLimit", 2.0, 2)]
)
def test_an_optimum_that_no_choice_attains_is_not_believed(status, told, lower):
    """A choice of 3 is known: HiGHS's optimum is that, its bound at the time limit may be less."""
    none = np.zeros(7, dtype=bool)
    kernel = Kernel(graph_of(nx.cycle_graph(7)), np.ones(7, dtype=np.int64), none, none, lambda: False)
    program = Program.of(kernel.parts()[0])
    program.offer(np.isin(np.arange(7), [0, 3, 6]))
    kinds = SimpleNamespace(kOptimal="Optimal", kTimeLimit="TimeLimit", kInterrupt="Interrupt")
    solver = SimpleNamespace(
        getModelStatus=lambda: status, getSolution=lambda: SimpleNamespace(col_value=[0.0] * 7),
        getInfo=lambda: SimpleNamespace(mip_dual_bound=told),
    )  # fmt: skip
    program._take(solver, kinds, cover_program._Units(program.part.price, program.cost))
    assert (program.lower, program.done) == (lower, status == "Optimal")
