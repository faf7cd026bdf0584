"""Integer programs of weighted vertex covers: cliques for edges, what they claim, when they are left out."""

import importlib.util
import itertools
import threading
import time
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
from covers import cheapest, from_networkx, is_cover, random_graph

from app import solve
from app.bounds.cover import bounds as cover_bounds
from app.bounds.cover import integer
from app.bounds.cover.bounds import CoverBounds
from app.bounds.cover.branch import METHOD as BRANCHED
from app.bounds.cover.integer import CoverProgram, Prospects, edge_cliques, fits
from app.bounds.cover.part import CoverPart
from app.bounds.paced import NAME

pytestmark = pytest.mark.mpi_skip
needs_highs = pytest.mark.skipif(importlib.util.find_spec("highspy") is None, reason="needs highspy")
LONG = 60.0  # s, a limit against hangs only


def near_points(n=150, seed=1):
    """Points of a square that are near each other: many small cliques; and weights [n]."""
    graph = from_networkx(nx.random_geometric_graph(n, 0.13, seed=seed))
    return graph, np.random.default_rng(seed).integers(20, 121, n)


def worked_out(program, known=None):
    """A program at its end, in slices."""
    end = time.perf_counter() + LONG
    while not program.done and time.perf_counter() < end:
        program.run(0.01, known)
    return program


def no_branches(monkeypatch):
    """Leave branch and reduce, and what looks for better packings, out of the turns."""
    monkeypatch.setattr(CoverPart, "_search", lambda part: iter(()))
    monkeypatch.setattr(CoverPart, "_packings", lambda part, cliques: iter(()))


# ---- rows ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_all_edges_are_in_cliques_of_which_none_holds_another(seed):
    draws = np.random.default_rng(seed)
    for _ in range(20):
        graph = random_graph(draws, 20)
        near = [set(graph.indices[a:b].tolist()) for a, b in itertools.pairwise(graph.indptr)]
        cliques = [set(clique.tolist()) for clique in edge_cliques(graph)]
        pairs = {frozenset(pair) for clique in cliques for pair in itertools.combinations(clique, 2)}
        assert pairs == {frozenset((u, v)) for u in range(graph.n) for v in near[u]}
        assert not any(a < b or b < a for a, b in itertools.combinations(cliques, 2))


def test_cliques_are_whole_and_in_order():
    graph = from_networkx(nx.disjoint_union_all([nx.complete_graph(7), nx.path_graph(3)]))
    assert [clique.tolist() for clique in edge_cliques(graph)] == [list(range(7)), [7, 8], [8, 9]]
    assert list(edge_cliques(graph, lambda: True)) == []
    assert list(edge_cliques(from_networkx(nx.empty_graph(3)))) == []


# ---- what it claims --------------------------------------------------------------------------------------


@needs_highs
@pytest.mark.parametrize("seed", range(6))
def test_optima_are_those_of_trying_all(seed):
    """With prices that HiGHS's floating point tells apart; with finer ones bounds stay below by a little."""
    draws = np.random.default_rng(seed)
    largest = (1, 6, 1000, 1 << 15, 1 << 30, 1 << 40)[seed]
    for number in range(25):
        graph = random_graph(draws, 10, 2)
        if not graph.edges:
            continue
        weights = draws.integers(1, largest + 1, graph.n)
        best = cheapest(graph, weights)
        rough = np.ones(graph.n, dtype=bool)
        rough[int(draws.integers(graph.n))] = False
        known = (int(weights[rough].sum()), rough) if number % 2 else None
        program = worked_out(CoverProgram(graph, weights, time.perf_counter() + LONG), known)
        assert is_cover(graph, program.cover)
        assert program.cost == weights[program.cover].sum() >= best
        assert best - 1e-6 * weights.sum() <= program.lower <= best
        if largest <= 1 << 15:
            assert program.cost == program.lower == best


@needs_highs
def test_a_better_cover_of_the_caller_is_heard_of():
    graph, weights = near_points()
    first = worked_out(CoverProgram(graph, weights, time.perf_counter() + LONG))
    assert first.cost == first.lower
    assert first.strong
    second = worked_out(CoverProgram(graph, weights, time.perf_counter() + LONG), (first.cost, first.cover))
    assert (second.cost, second.lower) == (first.cost, first.lower)


@needs_highs
def test_bounds_of_a_program_stand_without_a_witness(monkeypatch):
    """Every bound on the way is below the optimum, and what has a witness is below that."""
    no_branches(monkeypatch)
    graph, weights = near_points()
    bounds, rough, last = CoverBounds(graph, weights), np.ones(graph.n, dtype=bool), 0
    bounds.expect(LONG)
    for _ in range(5000):
        more = bounds.improve(0.002, int(weights.sum()), rough)
        assert bounds.lower >= last
        last = bounds.lower
        if not more:
            break
    assert (bounds.method.split(" + ")[0], bounds.checked) == (integer.METHOD, False)
    assert is_cover(graph, bounds.optimum)
    assert weights[bounds.optimum].sum() == bounds.lower
    assert not bounds.closing
    assert not bounds.leads
    shown = bounds.witnessed()
    shown.check(graph)
    assert shown.checked
    assert shown.lower < bounds.lower == bounds.certificate().lower


def test_a_packing_that_proves_as_much_stands(monkeypatch):
    """The integer program is first; a bound with a witness takes its place."""
    monkeypatch.setattr(CoverPart, "_search", lambda part: iter(()))
    graph, weights = from_networkx(nx.cycle_graph(51)), np.ones(51, dtype=np.int64) * 3
    part = CoverPart(graph, np.arange(51), weights, True, None, True, False, True)
    part.lower, part.method, part.claimed = 78, integer.METHOD, True
    for _ in range(2000):
        if not part.step() or not part.claimed:
            break
    assert (part.lower, part.claimed) == (78, False)
    assert part.method != integer.METHOD


# ---- when it is left out -----------------------------------------------------------------------------------


def stepped(weights, graph, **limit):
    """Bounds after some work, under a time limit or what is allowed."""
    bounds = CoverBounds(graph, weights)
    for name, seconds in limit.items():
        getattr(bounds, name)(seconds)
    bounds.improve(0.3)
    bounds.close()
    return bounds


def test_without_highs_all_stays_as_it_was(monkeypatch):
    monkeypatch.setattr(integer, "available", lambda: False)
    graph, weights = near_points()
    assert not fits(graph)
    bounds = stepped(weights, graph, expect=LONG)
    assert bounds.lower
    assert integer.METHOD not in bounds.method
    assert not any(part._program for part in bounds._parts)


@needs_highs
def test_where_it_would_not_pay_it_is_not_begun(monkeypatch):
    graph, weights = near_points()
    begun = lambda bounds: any(part._program for part in bounds._parts)  # noqa: E731
    assert begun(stepped(weights, graph, expect=LONG))
    assert begun(stepped(weights, graph, allow=LONG))
    assert not begun(stepped(weights, graph))
    assert not begun(stepped(weights, graph, expect=1e-3))
    assert not begun(stepped(None, graph, expect=LONG))
    assert not begun(stepped(np.where(np.arange(graph.n), weights, 0), graph, expect=LONG))
    assert not fits(from_networkx(nx.path_graph(integer.LEAST - 1)))
    assert not fits(from_networkx(nx.complete_graph(200)))
    monkeypatch.setattr(cover_bounds, "MOST_PROGRAMS", 0)
    assert not begun(stepped(weights, graph, expect=LONG))


@needs_highs
def test_a_table_that_is_too_large_is_left_alone(monkeypatch):
    monkeypatch.setattr(integer, "INTERIOR", 10)
    program = worked_out(CoverProgram(*near_points(), time.perf_counter() + LONG))
    assert (program.done, program.lower, program.cover) == (True, 0, None)


@needs_highs
def test_it_ends_where_the_caller_does():
    before = sum(thread.name == NAME for thread in threading.enumerate())
    graph = from_networkx(nx.random_geometric_graph(3000, 0.04, seed=3))
    weights = np.random.default_rng(3).integers(20, 121, graph.n)
    bounds = CoverBounds(graph, weights)
    bounds.expect(LONG)
    for _ in range(20):
        bounds.improve(0.01)
    bounds.close()
    end = time.perf_counter() + LONG
    while sum(thread.name == NAME for thread in threading.enumerate()) > before:
        assert time.perf_counter() < end
        time.sleep(0.01)


@needs_highs
def test_a_program_that_is_far_behind_is_given_up(monkeypatch):
    asked = []

    def judged(prospects, program, known, other):
        asked.append(program)
        prospects.share = 0.0

    no_branches(monkeypatch)
    monkeypatch.setattr(Prospects, "judge", judged)
    graph, weights = near_points()
    bounds = CoverBounds(graph, weights)
    bounds.expect(LONG)
    for _ in range(5000):
        if asked or not bounds.improve(0.01):
            break
    bounds.improve(0.01)
    assert len(asked) == 1
    assert bounds.lower
    assert not bounds.leads


def test_shares_follow_what_it_comes_to():
    graph = from_networkx(nx.grid_2d_graph(50, 50))
    prospects, first = Prospects(graph), integer.ENTRY_SECONDS * len(graph.indices)
    assert not prospects.promising(first)
    assert prospects.promising(100 * first)
    slices = (  # strong, lower, spent, other; the share, leading
        (True, 0, 0.0, 900, integer.LEADING_SHARE, True),
        (False, 0, 0.1, 900, integer.EVEN_SHARE, False),
        (False, 950, 2.0, 900, integer.EVEN_SHARE, False),
        (False, 950, 2.0, 960, integer.BEHIND_SHARE, False),
        (False, 950, 2.0, 990, 0.0, False),
        (True, 950, 4.0, 990, 0.0, False),
        (False, 998, 5.0, 990, integer.LEADING_SHARE, True),
        (False, 998, 21.0, 990, integer.EVEN_SHARE, False),
    )
    for strong, lower, spent, other, share, leading in slices:
        prospects.judge(SimpleNamespace(strong=strong, lower=lower, spent=spent * first), 1000, other)
        assert (prospects.share, prospects.leading) == (share, leading)


# ---- a solve -----------------------------------------------------------------------------------------------


def drawn_points(n, radius):
    graph = nx.random_geometric_graph(n, radius, seed=5)
    return graph, np.random.default_rng(5).integers(20, 121, n)


@needs_highs
@pytest.mark.parametrize("problem", ["mvc", "mis"])
def test_where_steps_decide_answers_stay(problem, monkeypatch):
    """What a program finds is no answer, which steps decide; its bound counts."""
    no_branches(monkeypatch)
    graph, weights = drawn_points(400, 0.09)
    settings = {"problem.name": problem, "search.steps": 300, "search.baselines": False}
    free = solve(graph, node_weights=weights, settings=settings | {"search.bounds": False})
    proved = solve(graph, node_weights=weights, settings=settings | {"search.bound_seconds": LONG})
    assert (proved.objective, proved.digest) == (free.objective, free.digest)
    assert (proved.bound - proved.objective) * (1 if problem == "mis" else -1) >= 0


@needs_highs
@pytest.mark.parametrize("problem", ["mvc", "mis"])
def test_a_solve_is_closed(problem, monkeypatch):
    no_branches(monkeypatch)
    graph, weights = drawn_points(400, 0.09)
    settings = {"problem.name": problem, "search.seconds": LONG, "search.baselines": False}
    answer = solve(graph, node_weights=weights, settings=settings)
    assert answer.optimal
    assert answer.feasible
    assert BRANCHED not in answer.bound_method
