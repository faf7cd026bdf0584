"""Maximum coverage: against all choices, kernels against their twins, damaged proofs, what is refused."""

import itertools
import json
import sys
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from jobs import ROOT, run_job
from mpi4py import MPI

from app import check, solve
from app.bounds.certificate import BadCertificate
from app.bounds.coverage.bounds import CoverageBounds
from app.bounds.coverage.exact import ExactCoverage, fits
from app.bounds.coverage.prices import priced, proved_by, spread, unit_of
from app.errors import CaseError, GraphError
from app.graphs.covering import COVERAGE, NEIGHBOURHOODS, as_covering
from app.graphs.family import family_of
from app.graphs.formats.readers import open_edges
from app.graphs.whole import whole_graph
from app.proofs.archive import from_bytes, to_bytes
from app.reductions.coverage.reducer import CoverageReducer
from app.reductions.coverage.verify import left_by
from app.reductions.replay import BadReduction
from app.search.coverage.baselines import COVERAGE_BASELINES, by_gain, greedy
from app.search.coverage.search import CoverageSearch, available

QUICK = {"search.steps": 400, "search.bound_seconds": 0.3}
alone = pytest.mark.mpi_skip


def drawn(seed):
    """A small family: [sets, elements] bool, weights, costs, a budget; some weights and costs are 0, some
    sets alike or empty, some elements in none.
    """
    draws = np.random.default_rng(seed)
    sets, elements = int(draws.integers(1, 10)), int(draws.integers(1, 12))
    inside = draws.random((sets, elements)) < draws.choice([0.1, 0.3, 0.6])
    inside[draws.integers(0, sets, 2)] = inside[0]
    costs = draws.integers(0, 9, sets) if seed % 3 else np.full(sets, 1 + seed % 2)
    return inside, draws.integers(0, 9, elements), costs, int(draws.integers(1, 1 + max(costs.sum(), 1)))


def choices_of(sets):
    return np.array(list(itertools.product([False, True], repeat=sets)), dtype=bool).reshape(2**sets, sets)


def most(inside, weights, costs, budget, asked=slice(None)):
    """The largest weight that sets within a budget hold, of choices that `asked` names."""
    choices = choices_of(len(inside))[asked]
    held = choices @ inside.astype(int) > 0
    return (held @ weights)[choices @ costs <= budget].max(initial=-1)


def family(inside, weights, costs, budget):
    u, v = np.nonzero(inside)
    return family_of(u, v, np.asarray(weights, np.int64), np.asarray(costs, np.int64), budget)


def larger(seed, sets=120, elements=90, p=0.05, costly=False):
    draws = np.random.default_rng(seed)
    inside = draws.random((sets, elements)) < p
    costs = draws.integers(1, 20, sets) if costly else np.ones(sets, dtype=int)
    return family(inside, draws.integers(1, 30, elements), costs, 60 if costly else 12)


# ---- answers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(24))
def test_the_best_of_all_choices(seed):
    inside, weights, costs, budget = drawn(seed)
    found = solve(
        inside, "coverage", node_weights=costs, element_weights=weights,
        settings=QUICK | {"problem.budget": budget, "search.reductions": seed % 4 > 0},
    )  # fmt: skip
    best = most(inside, weights, costs, budget)
    chosen = found.nodes
    assert costs[chosen].sum() <= budget and weights[inside[chosen].any(axis=0)].sum() == found.objective
    assert found.objective == found.bound == best and found.optimal
    assert len(found.baselines) == 3 and all(value <= best for value in found.baselines.values())


@alone
@pytest.mark.parametrize("seed", range(8))
def test_sets_inside_and_outside(seed):
    inside, weights, costs, budget = drawn(seed + 50)
    if len(inside) < 2:
        inside, costs = np.vstack([inside, inside]), np.append(costs, costs)
    budget += int(costs[1])
    choices = choices_of(len(inside))
    asked = choices[:, 1] & ~choices[:, 0]
    found = solve(
        inside, "coverage", node_weights=costs, element_weights=weights, inside=[1], outside=[0],
        settings=QUICK | {"problem.budget": budget},
    )  # fmt: skip
    assert 1 in found.nodes and 0 not in found.nodes
    assert found.objective == found.bound == most(inside, weights, costs, budget, asked)


@alone
def test_decimals_of_weights_costs_and_budgets():
    family_ = {"a": ["x", "y"], "b": ["y", "z"], "c": ["z"]}
    weights = {"x": 0.1, "y": 0.25, "z": 1.5}
    keys = {"problem.budget": 0.3}
    found = solve(
        family_, "coverage", node_weights=[0.1, 0.3, 0.2], element_weights=weights, settings=QUICK | keys
    )
    assert (found.objective, found.bound, sorted(found.nodes)) == (1.85, 1.85, ["a", "c"])
    less = solve(
        family_, "coverage", node_weights=[0.1, 0.3, 0.2], element_weights=weights,
        settings=QUICK | {"problem.budget": 0.29},
    )  # fmt: skip
    assert less.objective == 1.5 and less.nodes == ["c"]


@alone
def test_weights_of_many_digits():
    """Elements that no payable set has are no part of bounds; nor does it matter how costs are counted."""
    draws = np.random.default_rng(3)
    inside = draws.random((8, 12)) < 0.3
    inside[:, :2] = inside[:7, 2] = False
    weights, costs = draws.integers(1, 2**24, 12) * 2.0**24, np.array([1000] * 7 + [9000])
    for budget in (3000, 500):
        found = solve(
            inside, "coverage", node_weights=costs, element_weights=weights,
            settings=QUICK | {"problem.budget": budget},
        )  # fmt: skip
        assert found.objective == most(inside, weights, costs, budget) <= found.bound
    alike, dear = (
        family(inside[:7], weights * 2.0**-12, np.full(7, cost), 3 * cost) for cost in (1, 10**6)
    )  # fmt: skip
    bound = priced(alike, alike.weight * unit_of(alike), unit_of(alike), "prices")
    assert bound.price > 0
    assert proved_by(dear, bound.prices, bound.price, bound.one) == bound.upper


@alone
@pytest.mark.parametrize("seed", range(4))
def test_neighbourhoods_of_a_graph(seed, tmp_path):
    graph = nx.gnp_random_graph(11, 0.15, seed=seed)
    near = nx.to_numpy_array(graph) + np.eye(11) > 0
    keys = QUICK | {"problem.budget": 3, "problem.sets": "neighbourhoods"}
    named = nx.relabel_nodes(graph, {i: f"n{i:02d}" for i in graph})
    found = solve(named, "coverage", settings=keys)
    best = most(near, np.ones(11, int), np.ones(11, int), 3)
    assert found.objective == found.bound == best
    weights, costs = np.arange(1, 12), np.arange(11, 0, -1)
    dear = solve(
        named, "coverage", node_weights={f"n{i:02d}": int(c) for i, c in enumerate(costs)},
        element_weights=weights, settings=keys | {"problem.budget": 14},
    )  # fmt: skip
    assert dear.objective == dear.bound == most(near, weights, costs, 14)
    path = tmp_path / "g.txt"
    path.write_text("".join(f"{u + 5} {v + 5}\n" for u, v in graph.edges))
    there = [node for node in graph if graph.degree(node)]
    told = solve(str(path), "coverage", settings=keys)
    assert told.objective == most(
        near[there][:, there], np.ones(len(there), int), np.ones(len(there), int), 3
    )
    assert set(told.nodes) <= {node + 5 for node in there}


@alone
def test_files_of_families(tmp_path):
    (tmp_path / "w.hgr").write_text("3 4 11\n2 1 2\n1 2 3\n5 3 4\n1\n2\n3\n4\n")
    found = solve(str(tmp_path / "w.hgr"), "coverage", settings=QUICK | {"problem.budget": 6})
    assert (found.objective, sorted(found.nodes)) == (9, [2, 3])
    (tmp_path / "f.sets").write_text("north: ada bob\neast: bob cy\nsouth: dan\n")
    (tmp_path / "costs.txt").write_text("north 2\neast 1\nsouth 1\n")
    (tmp_path / "worth.txt").write_text("ada 1\nbob 1\ncy 9\ndan 3\n")
    keys = {"problem.budget": 2, "graph.node_weights": str(tmp_path / "costs.txt")}
    keys["graph.element_weights"] = str(tmp_path / "worth.txt")
    found = solve(str(tmp_path / "f.sets"), "coverage", settings=QUICK | keys)
    assert (found.objective, found.bound, found.nodes) == (13, 13, ["east", "south"])
    (tmp_path / "pairs.txt").write_text("7 1\n7 2\n8 2\n9 4\n")
    (tmp_path / "worth.txt").write_text("1 1\n2 1\n4 5\n")
    keys = {"problem.budget": 1, "graph.element_weights": str(tmp_path / "worth.txt")}
    assert solve(str(tmp_path / "pairs.txt"), "coverage", settings=QUICK | keys).nodes == [9]


@alone
def test_a_search_begins_with_an_answer_that_may_cost_too_much():
    inside, weights, costs, budget = drawn(7)
    keys = QUICK | {"problem.budget": budget}
    given = {"node_weights": costs, "element_weights": weights}
    found = solve(inside, "coverage", settings=keys, **given)
    short = keys | {"search.steps": 0, "search.bounds": False}
    assert solve(inside, "coverage", start=found, settings=short, **given).objective == found.objective
    every = solve(inside, "coverage", start=range(len(inside)), settings=short, **given)
    assert costs[every.nodes].sum() <= budget
    assert check(inside, found, settings=keys, **given).objective == found.objective
    with pytest.raises(GraphError, match=r"costs \d+, more than problem.budget = 1"):
        check(inside, range(len(inside)), "coverage", settings=keys | {"problem.budget": 1}, **given)


# ---- ranks, kernels ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("costly", [False, True])
def test_the_same_bits_on_any_ranks(costly):
    draws = np.random.default_rng(3)
    inside = draws.random((80, 60)) < 0.08
    costs = draws.integers(1, 20, 80) if costly else np.ones(80)
    settings = {"search.steps": 3000, "search.bounds": False, "search.starts": 2, "problem.budget": 9}
    found, other = (
        solve(inside, "coverage", node_weights=costs, settings=settings, comm=comm)
        for comm in (MPI.COMM_WORLD, MPI.COMM_SELF)
    )
    assert (found.objective, found.digest, found.text) == (other.objective, other.digest, other.text)


@alone
@pytest.mark.skipif(not available(), reason="no kernels")
@pytest.mark.parametrize("costly", [False, True])
def test_kernels_and_twins_are_alike(costly):
    asked = larger(1, costly=costly)
    for name, (rule, _) in COVERAGE_BASELINES.items():
        assert (rule(asked) == rule(asked, compiled=False)).all(), name
    for dense in (False, True):
        assert (by_gain(asked, dense) == by_gain(asked, dense, compiled=False)).all()
    start = COVERAGE_BASELINES["random"][0](asked)
    one, other = (CoverageSearch(asked, start, 5, compiled) for compiled in (True, False))
    for steps in (1, 7, 150, 42):
        one.run(steps)
        other.run(steps)
        for name in ("chosen", "best_chosen", "times", "who", "score", "free_at"):
            assert (getattr(one, name) == getattr(other, name)).all(), name
        numbers = "size", "spent", "value", "best", "steps", "found_at", "random"
        assert all(getattr(one, name) == getattr(other, name) for name in numbers)
    assert one.best > asked.value(start) and one.best == asked.value(one.solution())
    assert asked.cost[one.solution()].sum() <= asked.budget


@alone
@pytest.mark.parametrize("costly", [False, True])
def test_a_search_is_a_function_of_its_steps_however_they_are_sliced(costly):
    asked = larger(2, costly=costly)
    whole, sliced = (CoverageSearch(asked, greedy(asked), 9) for _ in range(2))
    whole.run(30_000)
    for steps in (1, 999, 19_000, 5_000, 5_000):
        sliced.run(steps)
    assert whole.best == sliced.best and (whole.solution() == sliced.solution()).all()
    assert whole.random == sliced.random
    better = whole.solution()
    fresh = CoverageSearch(asked, np.zeros(asked.m, dtype=bool), 1)
    fresh.meet([better[None, :].astype(np.int64)])
    assert fresh.best == whole.best == asked.value(fresh.solution())


# ---- reductions, bounds and their proofs -------------------------------------------------------------------


@alone
@pytest.mark.parametrize("seed", range(30))
def test_reductions_keep_the_optimum(seed):
    inside, weights, costs, budget = drawn(seed + 100)
    asked = family(inside, weights, np.maximum(costs, 1), budget)
    reducer = CoverageReducer(asked)
    reducer.reduce(lambda: False)
    core, sets, place = reducer.kernel()
    assert core.m == len(sets) and (np.diff(core.set_ptr) > 0).all()
    best = most(inside, weights, np.maximum(costs, 1), budget)
    choices = choices_of(core.m)
    values = [core.value(choice) for choice in choices[choices @ core.cost <= core.budget]]
    assert max(values) == best
    there = left_by(asked, np.array(reducer.log, dtype=np.int64))
    assert (there >= reducer.alive).all()
    prices = np.random.default_rng(seed).integers(0, core.weight + 1)
    assert (spread(prices, place, asked.weight, 1) <= asked.weight).all()
    assert np.array_equal(np.bincount(place[place >= 0], spread(prices, place, asked.weight, 1)[place >= 0],
                                      minlength=core.n), prices)  # fmt: skip


@alone
def test_logs_that_prove_nothing():
    asked = family(np.array([[1, 1, 0], [1, 1, 1], [0, 0, 1]]), [1, 1, 1], [2, 2, 1], 3)
    assert left_by(asked, np.array([0, 1])).tolist() == [False, True, True]
    for log, said in (
        ([0], "half an entry"), ([0, 0], "not two sets"), ([0, 9], "not two sets"), ([-1, 1], "not two sets"),
        ([0, 1, 2, 0], "gone before"), ([0, 1, 0, 1], "gone before"), ([1, 0], "lacks an element"),
        ([2, 1], "is dearer"),
    ):  # fmt: skip
        with pytest.raises(BadReduction, match=said):
            left_by(asked, np.array(log, dtype=np.int64))


@alone
@pytest.mark.parametrize("seed", range(30))
def test_any_prices_prove_a_bound_that_holds(seed):
    inside, weights, costs, budget = drawn(seed + 200)
    costs = np.maximum(costs, 1)
    asked = family(inside, weights, costs, budget)
    best, draws = most(inside, weights, costs, budget), np.random.default_rng(seed)
    for one in (1, 1 << 20, unit_of(asked)):
        prices = draws.integers(0, asked.weight * one + 1)
        assert proved_by(asked, prices, int(draws.integers(0, 5 * one)), one) >= best
        found = priced(asked, prices, one, "drawn")
        assert found.upper >= best
        found.check(asked)
        with pytest.raises(BadCertificate, match="the witness proves"):
            replace(found, upper=found.upper - 1).check(asked)


@alone
def test_damaged_certificates_prove_nothing_untrue():
    inside = np.random.default_rng(1).random((40, 50)) < 0.1
    keys = {
        "search.steps": 400,
        "search.bound_seconds": 1.0,
        "problem.budget": 5,
        "output.certificates": True,
    }
    found = solve(inside, "coverage", settings=keys)
    shown = check(inside, found, settings=keys)
    assert shown.bound_verified and shown.bound >= found.objective
    proof = from_bytes(found.certificate)
    bound = proof.bound
    other = from_bytes(to_bytes(proof))
    assert np.array_equal(other.bound.prices, bound.prices) and np.array_equal(other.log, proof.log)
    damaged = {
        "negative": replace(bound, prices=bound.prices - 1),
        "short": replace(bound, prices=bound.prices[:-1]),
        "large": replace(bound, prices=bound.prices + bound.one), "coarse": replace(bound, one=0),
        "fine": replace(bound, one=1 << 61), "paid": replace(bound, price=-1),
        "dear": replace(bound, price=1 << 61),
    }  # fmt: skip
    for name, each in damaged.items():
        with pytest.raises(GraphError, match=r"(whole numbers|not exact|below 0 or above)"):
            check(inside, found, certificate=to_bytes(replace(proof, bound=each)), settings=keys)
            pytest.fail(name)
    untrue = to_bytes(replace(proof, bound=replace(bound, upper=1)))
    assert check(inside, found, certificate=untrue, settings=keys).bound == shown.bound
    cheap = to_bytes(replace(proof, bound=replace(bound, price=0)))
    assert check(inside, found, certificate=cheap, settings=keys).bound >= shown.bound
    logged = to_bytes(replace(proof, log=np.array([0, 1], dtype=np.int64)))
    with pytest.raises(GraphError, match="lacks an element"):
        check(inside, found, certificate=logged, settings=keys)


@alone
@pytest.mark.parametrize("costly", [False, True])
def test_prices_come_near_the_linear_program(costly):
    from scipy.optimize import linprog

    asked = larger(4, costly=costly)
    bounds = CoverageBounds(asked)
    while bounds.improve(0.5, 0):
        pass
    assert bounds.checked and bounds.method == "prices of elements"
    n, m = asked.n, asked.m
    held = np.zeros((n, m))
    held[asked.elements, asked.set_of()] = 1
    rows = np.vstack([np.hstack([-held, np.eye(n)]), np.append(asked.cost, np.zeros(n))])
    right = np.append(np.zeros(n), asked.budget)
    best = linprog(np.append(np.zeros(m), -asked.weight), A_ub=rows, b_ub=right, bounds=(0, 1))
    assert np.floor(-best.fun) <= bounds.value <= -best.fun * 1.0005
    bounds.best.check(asked)


@alone
@pytest.mark.parametrize("seed", range(8))
def test_branch_and_cut_finds_the_best_choice(seed):
    inside, weights, costs, budget = drawn(seed + 300)
    asked = family(inside, weights, np.maximum(costs, 1), budget)
    exact = ExactCoverage(asked, np.zeros(asked.m, dtype=bool), 10.0)
    while not exact.done:
        exact.run(1.0)
    assert exact.upper == exact.value == most(inside, weights, np.maximum(costs, 1), budget)


def test_branch_and_cut_reads_costs_in_their_unit_and_none_of_many_digits():
    inside, weights, costs, budget = drawn(301)
    costs = np.maximum(costs, 1)
    asked = family(inside, weights, costs << 40, (budget << 40) + 3)
    exact = ExactCoverage(asked, np.zeros(asked.m, dtype=bool), 10.0)
    while not exact.done:
        exact.run(1.0)
    assert fits(asked) and exact.upper == exact.value == most(inside, weights, costs, budget)
    assert not fits(family(inside, weights, (costs << 40) + np.arange(len(costs)), costs.sum() << 40))


# ---- what is refused ---------------------------------------------------------------------------------------

FAMILY = {"A": ["x", "y"], "B": ["y"]}
WRONG = {
    "a budget of another problem": (
        "mvc",
        {"problem.budget": 3.0},
        "only coverage, influence and facility have one: 10.0",
    ),
    "sets of another problem": ("mds", {"problem.sets": "neighbourhoods"}, 'only coverage has one: "family"'),
    "no budget": ("coverage", {"problem.budget": 0}, "problem.budget"),
    "an order": ("coverage", {"graph.order": "random"}, 'graph.order: the graph of coverage .* "natural"'),
    "the policy alone": ("coverage", {"search.solver": "policy"}, "no policy answers it"),
    "weights of a policy": ("coverage", {"policy.weights": "x.npz"}, "no policy answers coverage"),
}


@alone
@pytest.mark.parametrize("case", WRONG)
def test_keys_that_do_not_fit(case):
    problem, keys, said = WRONG[case]
    with pytest.raises(CaseError, match=said):
        solve(FAMILY, problem, settings=keys)


@alone
def test_what_does_not_fit_the_family():
    keys = {"problem.budget": 1}
    with pytest.raises(CaseError, match=r"inside costs 2, more than problem\.budget = 1"):
        solve(FAMILY, "coverage", inside=["A", "B"], settings=keys)
    with pytest.raises(CaseError, match="element_weights: set_cover has none; coverage would be right"):
        solve(FAMILY, "set_cover", element_weights=[1, 1])
    with pytest.raises(GraphError, match="no weight, others have"):
        solve(FAMILY, "coverage", element_weights={"x": 1})
    with pytest.raises(GraphError, match="'q', which is no element"):
        solve(FAMILY, "coverage", element_weights={"x": 1, "y": 1, "q": 1})
    with pytest.raises(GraphError, match="element_weights: found <class 'str'>; a number for each element"):
        solve(FAMILY, "coverage", element_weights="w.txt")
    with pytest.raises(GraphError, match="the weight -1 of 'y'; 0 or more would be right"):
        solve(FAMILY, "coverage", element_weights=[1, -1])
    with pytest.raises(GraphError, match="would be right"):
        solve(nx.path_graph(3), "coverage", settings=keys)
    with pytest.raises(GraphError, match="node 7 is not in the graph"):
        solve([(0, 1), (1, 2)], "coverage", settings=keys | {"problem.sets": "neighbourhoods"}, inside=[7])


@alone
def test_streams_of_neighbourhoods(tmp_path):
    path = tmp_path / "g.graph"
    path.write_text("3 2 010\n4 2\n5 1 3\n6 2\n")
    graph = whole_graph(as_covering(open_edges(str(path)), NEIGHBOURHOODS))[0]
    assert graph.n == 7 and graph.edges == 7 + 3
    assert graph.node_weights.tolist() == [4, 5, 6, 1, 1, 1, 0]
    (tmp_path / "w.hgr").write_text("2 3 11\n2 1 2\n1 2 3\n5\n6\n7\n")
    graph = whole_graph(as_covering(open_edges(str(tmp_path / "w.hgr")), COVERAGE))[0]
    assert graph.node_weights.tolist() == [2, 1, 5, 6, 7, 0]
    with pytest.raises(GraphError, match=r'problem.sets = "family" would be right'):
        as_covering(open_edges(str(tmp_path / "w.hgr")), NEIGHBOURHOODS)


# ---- runs --------------------------------------------------------------------------------------------------


@alone
def test_a_run_its_check_and_its_replay(tmp_path):
    out = str(tmp_path / "out")
    keys = ["graph.count=1", "output.certificates=true", "output.plots=false", "search.steps=2000"]
    code, said = run_job([sys.executable, "run.py", "inputs/coverage.toml", *keys, "--out", out], cwd=ROOT)
    assert code == 0, said
    entry = json.loads((tmp_path / "out" / "result.json").read_text())["instances"][0]
    assert entry["sense"] == "maximise" and entry["objective"] <= entry["bound"]
    code, said = run_job([sys.executable, "run.py", "inputs/coverage.toml", *keys, "--check", out], cwd=ROOT)
    assert code == 0, said
