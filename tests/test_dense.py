"""Dense subgraphs: values, searches, bounds and certificates against all sets of small graphs."""

import itertools
import json
import sys
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from helpers import by_one, instance_of
from jobs import ROOT, mpirun, run_job
from mpi4py import MPI
from test_certificates import altered, refused_or_valid

from app import check, solve
from app.bounds.certificate import BadCertificate
from app.bounds.dense import balance, split
from app.bounds.dense.balance import Balance, grown, largest_ratio
from app.bounds.dense.rows import row_values
from app.bounds.dense.split import SplitBounds
from app.bounds.dense.split_witness import SplitBound
from app.bounds.dense.witness import LoadBound, entries_of_shares, shares_of
from app.errors import CaseError
from app.graphs.dense import dense_graph
from app.graphs.graph import from_edges
from app.problems.dense import DenseSubgraph
from app.proofs import archive
from app.search.dense import swaps
from app.search.dense.baselines import BASELINES, densest_head
from app.search.dense.swaps import SwapSearch

alone = pytest.mark.mpi_skip
QUICK = {"search.steps": 3000, "output.plots": False, "output.certificates": True}


def drawn(seed, n, least=0, sizes=False):
    """A table of whole weights, and sizes of nodes."""
    random = np.random.default_rng(seed)
    table = np.triu(random.integers(least, 5, (n, n)) * (random.random((n, n)) < random.random()), 1)
    size = random.integers(1, 4, n) if sizes else np.ones(n, dtype=np.int64)
    return table + table.T, size.astype(np.int64)


def dense_of(table, size):
    u, v = np.nonzero(table)
    ptr = np.append(0, np.cumsum(np.bincount(u, minlength=len(table))))
    return dense_graph(ptr, v, table[u, v].astype(np.int64), size)


def weight_in(table, nodes):
    return int(table[np.ix_(nodes, nodes)].sum()) // 2


def sets(n, counts):
    return (list(each) for k in counts for each in itertools.combinations(range(n), k))


def densest(table, size):
    n = len(table)
    return max(Fraction(weight_in(table, s), int(size[s].sum())) for s in sets(n, range(1, n + 1)))


def planted(n, k, seed):
    """A sparse random graph with a dense part of k drawn nodes, and which these are."""
    graph = nx.gnm_random_graph(n, 2 * n, seed=seed)
    part = np.random.default_rng(seed).permutation(n)[:k].tolist()
    graph.add_edges_from(pair for i, pair in enumerate(itertools.combinations(part, 2)) if i % 10)
    return graph, sorted(part)


def toolbox_of(graph, **keys):
    edges = np.array(graph.edges).reshape(-1, 2)
    whole = from_edges(graph.number_of_nodes(), edges[:, 0], edges[:, 1], name="g")
    return DenseSubgraph().toolbox(instance_of(whole, **keys))


# ---- the densest subgraph -----------------------------------------------------------------------------


@alone
def test_loads_are_balanced_to_the_density_of_all_sets_and_the_same_without_kernels(monkeypatch):
    for seed in range(90):
        monkeypatch.setattr(balance, "ROUNDS", 1 + seed % 3)
        table, size = drawn(seed, 1 + seed % 9, sizes=seed % 2 == 1)
        graph, most = dense_of(table, size), densest(table, size)
        both = [Balance(graph, seed, compiled) for compiled in (True, False)]
        while not both[0].done:
            for each in both:
                each.step()
            for name in ("held", "load", "chosen", "order"):
                assert (getattr(both[0], name) == getattr(both[1], name)).all(), (seed, name)
            assert both[0].best == both[1].best and both[0].done == both[1].done
            assert both[0].largest() >= most
        found = both[0]
        assert Fraction(*found.best.reduced()) == most == found.largest()
        weight, whole = weight_in(table, np.flatnonzero(found.chosen)), int(size[found.chosen].sum())
        assert (weight, whole) == (found.best.weight, found.best.size) == graph.inside(found.chosen)
        proof = LoadBound(0, "loads", found.one, shares_of(graph, found.held))
        assert (entries_of_shares(graph, proof.share, found.one) == found.held).all()
        assert proof.proved(graph, 20) == (most.numerator << 20) // most.denominator


@alone
def test_a_flow_goes_on_from_a_set_that_it_hears_of():
    graph, part = planted(60, 12, 1)
    table = nx.to_numpy_array(graph, nodelist=range(60)).astype(np.int64)
    found = Balance(dense_of(table, np.ones(60, dtype=np.int64)))
    while not found.flows:
        found.step()
    chosen = np.zeros(60, dtype=bool)
    chosen[part[:3]] = True
    assert not found.know(chosen)
    while not found.done:
        found.step()
    assert np.flatnonzero(found.chosen).tolist() == part


@alone
def test_plain_orders_are_those_of_their_definitions():
    for seed in range(12):
        table, size = drawn(seed, 9, sizes=seed % 2 == 1)
        graph = dense_of(table, size)
        for name, (rule, _) in BASELINES.items():
            order = rule(graph, True)
            assert sorted(order.tolist()) == list(range(9))
            assert (order == rule(graph, False)).all()
            ratios = [Fraction(weight_in(table, order[:i]), int(size[order[:i]].sum())) for i in range(1, 10)]
            assert graph.inside(densest_head(graph, order)) == (
                weight_in(table, order[: ratios.index(max(ratios)) + 1]),
                int(size[order[: ratios.index(max(ratios)) + 1]].sum()),
            )
            if name == "peeling":  # Charikar's is at least half of the best
                assert 2 * max(ratios) >= densest(table, size)
        left = list(range(9))
        for v in BASELINES["peeling"][0](graph, True)[::-1].tolist():
            degree = {u: Fraction(int(table[u, left].sum()), int(size[u])) for u in left}
            assert degree[v] == min(degree.values())
            left.remove(v)
        order = grown(graph).tolist()
        for i in range(1, 9):
            shared = {u: Fraction(int(table[u, order[:i]].sum()), int(size[u])) for u in order[i:]}
            assert shared[order[i]] == max(shared.values())
        unit = nx.from_numpy_array((table > 0).astype(int))
        cores = nx.core_number(unit)
        order = BASELINES["core"][0](dense_of((table > 0).astype(int), np.ones(9, dtype=np.int64)), True)
        assert [cores[v] for v in order.tolist()] == sorted(cores.values(), reverse=True)


@alone
def test_small_questions_are_answered_and_proved():
    """With sizes, nodes outside, decimals, without reductions, without kernels, by the search alone."""
    for seed in range(6):
        table, size = drawn(seed + 40, 8, sizes=seed % 2 == 1)
        graph = nx.Graph()
        graph.add_nodes_from("abcdefgh")
        for u, v in zip(*np.nonzero(np.triu(table))):
            graph.add_edge("abcdefgh"[u], "abcdefgh"[v], weight=float(table[u, v]) / 4)
        outside = [seed % 8]
        open_ = np.setdiff1d(np.arange(8), outside)
        most = densest(table[np.ix_(open_, open_)], size[open_])
        weights = dict(zip("abcdefgh", (size / 2).tolist())) if seed % 2 else None
        expected = float(most) / 4 / (0.5 if weights else 1)
        for keys in ({}, {"search.reductions": False}, {"run.kernels": "plain"}, {"search.bounds": False}):
            answer = solve(
                graph, "dense", settings=QUICK | keys, node_weights=weights, outside=["abcdefgh"[outside[0]]]
            )
            assert answer.objective == pytest.approx(expected, rel=1e-12)
            nodes = ["abcdefgh".index(v) for v in answer.nodes]
            assert not set(nodes) & set(outside)
            assert Fraction(weight_in(table, nodes), int(size[nodes].sum())) == most
            measures = answer.measures
            assert measures["nodes"] == len(nodes) and measures["weight"] == weight_in(table, nodes) / 4
            assert measures["average"] == pytest.approx(expected, rel=1e-12)
            assert max(answer.baselines.values()) <= answer.objective and len(answer.baselines) == 4
            if "search.bounds" not in keys:
                assert answer.optimal and answer.bound == answer.objective and answer.bound_verified


@alone
def test_sizes_of_many_digits_count_as_far_as_weights_leave_room(capfd):
    graph = nx.gnp_random_graph(9, 0.5, seed=1)
    size = np.float32(np.random.default_rng(3).random(9) + 0.01).astype(float)
    size[8] = 2.0**24
    table = nx.to_numpy_array(graph, nodelist=range(9))
    most = max(weight_in(table, s) / size[s].sum() for s in sets(9, range(1, 10)))
    answer = solve(graph, "dense", settings=QUICK, node_weights=size, verbose=True)
    assert answer.objective == pytest.approx(most, rel=1e-6) and answer.optimal
    for u, v in graph.edges:
        graph.edges[u, v]["weight"] = 0.1
    capfd.readouterr()
    answer = solve(graph, "dense", settings=QUICK, node_weights=size, verbose=True)
    assert answer.objective == pytest.approx(most / 10, rel=0.1)
    told = " ".join("".join(capfd.readouterr()).split())
    assert "sizes of nodes count as multiples of 0.03125, by which they change by up to" in told


@alone
def test_planted_parts_are_found_and_cut_out():
    graph, part = planted(3000, 40, 5)
    answer = solve(graph, "dense", settings=QUICK)
    assert answer.nodes == part and answer.optimal and answer.bound_verified
    tools = toolbox_of(graph)
    assert "nodes" in tools.reduce(lambda: False) and tools.inner.n < 100
    assert sorted(tools.places[tools.start()].tolist()) == part
    once = toolbox_of(graph)
    once.reduce(lambda: False, 1)
    assert once.reduction_steps == 1 and (once.places == np.intersect1d(once.places, np.arange(3000))).all()
    # Time that runs out between the rounds of a cut, and as many steps again, leave the same.
    calls = itertools.count()
    stopped, again = toolbox_of(graph), toolbox_of(graph)
    stopped.reduce(lambda: next(calls) >= 3)
    again.reduce(lambda: False, stopped.reduction_steps)
    assert stopped.reduction_steps == again.reduction_steps == 3 and stopped.inner.n < 3000
    assert (stopped.places == again.places).all() and (stopped.known == again.known).all()
    late = toolbox_of(graph)
    late.reduce(lambda: True)
    assert late.inner.n == 3000
    # Sizes count: a heavy triangle of small nodes is denser than the part.
    sizes = dict.fromkeys(graph, 4.0) | dict.fromkeys([0, 1, 2], 0.25)
    graph.add_edges_from([(0, 1), (1, 2), (0, 2)])
    assert solve(graph, "dense", settings=QUICK, node_weights=sizes).objective >= 4


@alone
def test_graphs_without_edges_and_single_nodes():
    empty = nx.empty_graph(3)
    answer = solve(empty, "dense", settings=QUICK)
    assert answer.objective == 0 and answer.optimal and len(answer.nodes) >= 1
    pair = solve(nx.path_graph(2), "dense", settings=QUICK)
    assert pair.objective == 0.5 and pair.nodes == [0, 1]
    # What is barred takes no digits from what is not.
    heavy = nx.Graph([(0, 1, {"weight": 2.0**40}), (1, 2, {"weight": 1.0}), (2, 3, {"weight": 1.0})])
    barred = solve(heavy, "dense", settings=QUICK, outside=[0])
    assert barred.objective == pytest.approx(2 / 3, rel=1e-12) and barred.nodes == [1, 2, 3]


# ---- so many nodes ------------------------------------------------------------------------------------


@alone
def test_searches_and_bounds_reach_the_most_of_all_sets_of_a_size(monkeypatch):
    monkeypatch.setattr(swaps, "STALE", 50)
    for seed in range(50):
        random = np.random.default_rng(seed)
        table, size = drawn(seed, 2 + seed % 8, least=-3 if seed % 2 else 0)
        graph, n = dense_of(table, np.ones_like(size)), len(table)
        count = int(random.integers(1, n + 1))
        forced = np.zeros(n, dtype=bool)
        forced[random.permutation(n)[: random.integers(0, count + 1)]] = seed % 3 == 0
        fitting = [s for s in sets(n, [count]) if forced[s].sum() == forced.sum()]
        most = max(weight_in(table, s) for s in fitting)
        start = np.isin(np.arange(n), fitting[0])
        both = [SwapSearch(graph, start, forced, seed, compiled) for compiled in (True, False)]
        for part in (5, 200):
            for each in both:
                each.run(part)
            assert (both[0].gain == both[1].gain).all() and both[0].random == both[1].random
            assert (both[0].solution() == both[1].solution()).all() and both[0].best == both[1].best
        found = both[0].solution()
        assert both[0].best == most == graph.inside(found)[0], seed
        assert found.sum() == count and found[forced].all()
        pair = [SplitBounds(graph, count, forced, compiled) for compiled in (True, False)]
        for best in (most - 1, most):
            for bounds in pair:
                while bounds.improve(0.0, best):
                    assert bounds.value >= most
                assert bounds.value == bounds.proof().proved(graph, count, forced) == most
            assert pair[0].method == pair[1].method
            other = pair[0].optimum()
            assert other is None or graph.inside(other) == (most, count)


@alone
def test_rows_are_worth_what_the_best_others_are():
    for seed in range(40):
        random = np.random.default_rng(seed)
        table, _ = drawn(seed, 7, least=-4)
        graph, count = dense_of(table, np.ones(7, dtype=np.int64)), 1 + seed % 7
        held = random.integers(-9, 9, len(graph.indices))
        state = random.choice(3, 7, p=[0.6, 0.2, 0.2]).astype(np.uint8)
        forced, free = int((state == 1).sum()), int((state == 0).sum())
        if not forced <= count <= forced + free:
            continue
        bounds = SplitBounds(graph, count, np.zeros(7, dtype=bool))
        total, chosen, taken = bounds.judged(held, state)
        sums, same = row_values(graph, held, state, count - 1)
        assert (
            total == sums[chosen].sum() and (taken == (same & np.repeat(chosen, np.diff(graph.indptr)))).all()
        )
        worth = np.zeros((7, 7), dtype=np.int64)
        worth[graph.rows(), graph.indices] = held
        must = set(np.flatnonzero(state == 1).tolist())
        fitting = [s for s in sets(7, [count]) if must <= set(s) and not (state[s] == 2).any()]
        for v in range(7):
            best = max((int(worth[v, s].sum()) for s in fitting if v in s), default=None)
            assert best is None or best == sums[v]


@alone
def test_cases_are_as_many_as_there_is_room_for(monkeypatch):
    graph = dense_of(*drawn(3, 14))
    none = np.zeros(14, dtype=bool)
    plain = SplitBounds(graph, 5, none, branch=False)
    while plain.improve(1.0, 0):
        pass
    monkeypatch.setattr(split, "TABLE", 5 * len(graph.indices) // 2)
    few = SplitBounds(graph, 5, none)
    while few.improve(1.0, 0):
        pass
    proof = few.proof()
    assert len(plain.proof().tree) == 1 and 1 < len(proof.shares) <= 5 and few.value <= plain.value
    assert proof.proved(graph, 5, none) == few.value
    for tree in ([-1], [0, -1, -1, -1], [0, 0, -1, -1, -1], [99, -1, -1]):
        with pytest.raises(BadCertificate):
            SplitBound(0, "m", proof.one, proof.shares, np.array(tree)).proved(graph, 5, none)


@alone
def test_sets_of_a_size_are_answered_and_proved(tmp_path):
    graph, part = planted(200, 14, 2)
    keys = QUICK | {"problem.dense": "size", "problem.size": 14}
    answer = solve(graph, "dense", settings=keys)
    assert answer.nodes == part and answer.optimal and answer.bound_verified
    assert check(graph, answer, settings=keys).optimal
    other = solve(
        graph, "dense", settings=keys, inside=[(set(range(200)) - set(part)).pop()], outside=part[:2]
    )
    assert len(other.nodes) == 14 and not set(other.nodes) & set(part[:2])
    assert other.objective < answer.objective and other.bound_verified
    # A start of another number of nodes is made one of so many.
    again = solve(graph, "dense", settings=keys | {"search.steps": 1}, start=part[:5])
    assert len(again.nodes) == 14 and again.objective >= 0.9 * answer.objective
    # What comes to it, or goes, is that of most, or of least, weight to the others, one by one.
    tools = toolbox_of(graph, dense="size", size=14, inside=np.array([3]))
    for given in (part[:9], range(0, 200, 7)):
        expected, sign = {3, *given}, 1 if len(given) < 14 else -1
        while len(expected) != 14:
            open_ = sorted(set(graph) - expected if sign > 0 else expected - {3})
            moved = max(open_, key=lambda v: sign * len(expected & set(graph[v])))
            expected ^= {moved}
        assert set(np.flatnonzero(tools.restrict(np.isin(np.arange(200), given)))) == expected
    signed = nx.Graph()
    for u, v in itertools.combinations(range(9), 2):
        signed.add_edge(u, v, weight=(u * v * 7 % 11 - 5) / 8)
    table = nx.to_numpy_array(signed, nodelist=range(9))
    most = max(table[np.ix_(s, s)].sum() / 2 for s in sets(9, [4]))
    found = solve(signed, "dense", settings=QUICK | {"problem.dense": "size", "problem.size": 4})
    assert found.objective == most == found.bound and found.bound_verified


# ---- both ---------------------------------------------------------------------------------------------


@alone
@pytest.mark.parametrize("kind", ["average", "size"])
def test_damaged_certificates_prove_nothing_that_is_not_so(kind):
    graph, _ = planted(40, 8, 3)
    sized = {"problem.size": 6} if kind == "size" else {}
    answer = solve(list(graph.edges), "dense", settings=QUICK | {"problem.dense": kind} | sized)
    tools = toolbox_of(nx.Graph(list(graph.edges)), dense=kind, size=6)
    proof = archive.from_bytes(answer.certificate)
    draws = np.random.default_rng(1)
    best = tools.prove(proof)
    assert answer.bound_verified
    refused = [refused_or_valid(tools, altered(answer.certificate, draws), best) for _ in range(60)]
    assert sum(refused) > 10


@pytest.mark.parametrize("kind", ["average", "size"])
def test_ranks_agree_with_one_rank(kind):
    graph, _ = planted(150, 20, 4)
    keys = {
        "problem.dense": kind, "search.steps": 20 if kind == "average" else 20_000, "search.starts": 3,
        "search.reductions": False, "search.bounds": False,
    } | ({"problem.size": 17} if kind == "size" else {})  # fmt: skip
    answer = solve(graph, "dense", settings=keys)
    one = by_one(lambda: solve(graph, "dense", settings=keys, comm=MPI.COMM_SELF))
    assert answer.digest == one.digest and answer.nodes == one.nodes


@alone
def test_a_run_its_files_its_check_and_its_replay(tmp_path):
    graph, _ = planted(400, 25, 6)
    (tmp_path / "g.txt").write_text("".join(f"n{u} n{v}\n" for u, v in graph.edges))
    out, again = tmp_path / "out", tmp_path / "again"
    case = ["run.py", "inputs/dense.toml", f"graph.path={tmp_path / 'g.txt'}", "graph.ids=names"]
    case += ["problem.dense=size"]
    case += ["problem.size=24", "output.plots=false", "output.certificates=true"]
    code, said = run_job([*mpirun(2), sys.executable, *case, "search.seconds=1", "--out", out], cwd=ROOT)
    assert code == 0, said
    entry = json.loads((out / "result.json").read_text())["instances"][0]
    chosen = (out / "solution" / "g.txt").read_text().split()
    inner = graph.subgraph(int(name[1:]) for name in chosen).number_of_edges()
    assert len(chosen) == 24 and inner == entry["objective"] <= entry["bound"]
    assert entry["measures"]["edges"] == inner
    code, said = run_job([sys.executable, "run.py", out / "case.toml", "--check", out], cwd=ROOT)
    assert code == 0 and "bounds of 1 are proved" in said, said
    (tmp_path / "bad.txt").write_text(chosen[0] + "\n")
    code, said = run_job([sys.executable, *case, "--check", tmp_path / "bad.txt"], cwd=ROOT)
    assert code == 2 and "has 1 nodes; problem.size = 24 have to be chosen" in said, said
    if entry["replay"]:
        code, said = run_job([sys.executable, *case, *entry["replay"], "--out", again], cwd=ROOT)
        assert code == 0, said
        assert json.loads((again / "result.json").read_text())["instances"][0]["digest"] == entry["digest"]


@alone
@pytest.mark.parametrize(
    ("keys", "given", "told"),
    [
        ({"problem.size": 3}, {}, r'problem.size.*is read with problem.dense = "size"'),
        ({"problem.name": "mis", "problem.dense": "size"}, {}, 'problem.dense.*only problem.name = "dense"'),
        ({}, {"inside": [0]}, "takes no nodes inside; outside alone would be right"),
        ({}, {"outside": [0, 1, 2, 3]}, "no node may be chosen"),
        ({}, {"node_weights": [1, 0, 1, 1]}, "weight of node 1, its size, is not above 0"),
        ({"problem.dense": "size", "problem.size": 9}, {}, "has 4 nodes, fewer than problem.size = 9"),
        ({"problem.dense": "size", "problem.size": 1}, {"inside": [0, 1]}, "more than problem.size = 1"),
        ({"problem.dense": "size", "problem.size": 3}, {"outside": [0, 1]}, "fewer than problem.size = 3"),
        ({"graph.generator": "uniform_points"}, {}, "dense subgraphs are of edges"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(keys, given, told):
    name = keys.pop("problem.name", "dense")
    with pytest.raises(CaseError, match=told):
        solve(nx.path_graph(4), name, settings=QUICK | keys, **given)


@alone
def test_weights_below_zero_are_refused_where_they_mean_nothing():
    graph = nx.Graph([(0, 1, {"weight": -1.0}), (1, 2, {"weight": 2.0})])
    with pytest.raises(CaseError, match=r"edge 0-1 weighs less than 0; 0 or more, or problem.dense"):
        solve(graph, "dense", settings=QUICK)
    keys = QUICK | {"problem.dense": "size", "problem.size": 2}
    assert solve(graph, "dense", settings=keys).nodes == [1, 2]


def test_the_largest_of_many_ratios_is_exact():
    """Of equal ones, and of those that differ by less than floating point tells."""
    draws = np.random.default_rng(5)
    for count in (1, 2, 60):
        size = draws.integers(1, 4, count) * 10 ** draws.integers(0, 10, count)
        load = 3 * size + draws.integers(0, 2, count)
        expected = max(Fraction(a, b) for a, b in zip(load.tolist(), size.tolist()))
        assert largest_ratio(load, size) == expected
    assert largest_ratio(np.array([-4, -3]), np.array([2, 1])) == -2
