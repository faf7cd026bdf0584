"""Reductions of vertex cover: the optimum stays, lifts are exact, both paths agree, and the log proves it."""

import re
from functools import cache
from itertools import chain

import numpy as np
import pytest
from data import data_dir, needs_data
from helpers import growing_graph
from jobs import ROOT

from app.bounds.cover.lp import half_integral
from app.graphs.formats.readers import open_edges
from app.graphs.graph import from_edges
from app.reductions.cover import compiled as kernels
from app.reductions.cover import log as log_module
from app.reductions.cover import verify_compiled
from app.reductions.cover.half import COVER, OUT, HalfIntegral
from app.reductions.cover.log import (
    CLIQUE,
    CROWN,
    FOLD,
    NEIGHBOURS,
    RULES,
    TAKE,
    TRANSFER,
    TWIN,
    UNCONFINED,
    entries,
)
from app.reductions.cover.reducer import CoverReducer
from app.reductions.cover.verify import verify_log
from app.reductions.replay import BadReduction

pytestmark = pytest.mark.mpi_skip
needs_kernels = pytest.mark.skipif(not kernels.available(), reason="the compiled kernels were not built")


def verified(graph, weights, log, **fixed):
    """What the log proves, by the compiled check and by the plain one, which must agree."""
    plain = verify_log(graph, weights, log, **fixed, compiled=False)
    proved = verify_log(graph, weights, log, **fixed)
    assert plain.offset == proved.offset
    assert np.array_equal(plain.nodes, proved.nodes)
    assert np.array_equal(plain.weights, proved.weights)
    assert np.array_equal(plain.kernel.indptr, proved.kernel.indptr)
    assert np.array_equal(plain.kernel.indices, proved.kernel.indices)
    assert plain.kernel.edges == proved.kernel.edges
    return proved


def compiled_refuses(graph, weights, log):
    """Whether the compiled check does not accept a log; true where there are no kernels."""
    weight = np.ones(graph.n, dtype=np.int64) if weights is None else np.array(weights)
    return verify_compiled.replay(graph, weight, np.zeros(0, dtype=np.int64), np.array(log)) is None


# ---- graphs, and their optima by exhaustive search -----------------------------------------------------


def graph_of(n, *edges):
    u, v = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    return from_edges(n, u, v)


def random_case(seed, most=18):
    """A random graph of up to `most` nodes, sparse to dense, and every other time weights."""
    draws = np.random.default_rng(seed)
    n = int(draws.integers(1, most + 1))
    u, v = np.triu_indices(n, 1)
    keep = draws.random(len(u)) < draws.choice([0.1, 0.15, 0.2, 0.3, 0.5, 0.8])
    weights = draws.integers(1, draws.choice([3, 12]), n) if seed % 2 else None
    return from_edges(n, u[keep], v[keep]), weights


def crown_case(seed, weighted=False):
    """Nodes 0-11 see four of nodes 12-21 each, which see a sparse rest: only CROWN finds them."""
    draws = np.random.default_rng(seed)
    edges = [(i, 12 + c) for i in range(12) for c in draws.permutation(10)[:4]]
    edges += [(12 + c, 22 + r) for c in range(10) for r in draws.permutation(20)[:3]]
    edges += [(22 + a, 22 + b) for a in range(20) for b in draws.permutation(20)[:4] if a != b]
    return graph_of(42, *edges), draws.integers(20, 23, 42) if weighted else None


def core_case(seed):
    """A core that no rule reduces, two edges of it replaced by paths, and a triangle: a kernel remains."""
    draws = np.random.default_rng(seed)
    around = [(i, (i + step) % 13) for i in range(13) for step in (1, 5)]
    edges, n = [(13, 14), (14, 15), (13, 15), (15, 0)], 16
    for at, (u, v) in enumerate(around):
        if at in (seed % 26, (5 * seed + 3) % 26):
            edges += [(u, n), (n, n + 1), (n + 1, v)]
            n += 2
        else:
            edges.append((u, v))
    weights = np.concatenate([draws.integers(20, 22, 13), draws.integers(20, 30, n - 13)])
    return graph_of(n, *edges), weights if seed % 2 else None


def edges_of(graph):
    rows = graph.row_of()
    return [(int(u), int(v)) for u, v in zip(rows, graph.indices) if u < v]


def optimum(graph, weights=None, inside=(), outside=()):
    """The least weight of a cover, by trying each node in turn outside and inside; None if there is none."""
    weight = [1] * graph.n if weights is None else [int(w) for w in weights]
    near = [0] * graph.n
    for u, v in edges_of(graph):
        near[u] |= 1 << v
        near[v] |= 1 << u

    @cache
    def heaviest(free):
        if not free:
            return 0
        v = free.bit_length() - 1
        rest = free & ~(1 << v)
        return max(heaviest(rest), weight[v] + heaviest(rest & ~near[v]))

    outs = sum(1 << int(v) for v in outside)
    blocked = outs | sum(1 << int(v) for v in inside)
    for v in outside:
        if near[v] & outs:
            return None
        blocked |= near[v]
    free = ((1 << graph.n) - 1) & ~blocked
    return sum(weight) - sum(weight[v] for v in outside) - heaviest(free)


def weight_of(weights, in_cover):
    return int(in_cover.sum() if weights is None else np.asarray(weights)[in_cover].sum())


def is_cover(graph, in_cover):
    return bool((in_cover[graph.row_of()] | in_cover[graph.indices]).all())


def some_cover(graph, draws):
    """A random cover, seldom a minimal one."""
    in_cover = draws.random(graph.n) < draws.random()
    for u, v in edges_of(graph):
        in_cover[u if draws.random() < 0.5 else v] |= not (in_cover[u] or in_cover[v])
    return in_cover


def reduced(graph, weights=None, **options):
    reducer = CoverReducer(graph, weights, **options)
    reducer.reduce()
    return reducer


def parts(kernel):
    graph, nodes, weights = kernel
    return [graph.indptr, graph.indices, nodes, np.ones(len(nodes)) if weights is None else weights]


def assert_alike(a, b):
    """Two reducers are in the same state."""
    assert (a.alive, a.edges, a.offset, a.exact, a.counts) == (b.alive, b.edges, b.offset, b.exact, b.counts)
    for x, y in zip([a.log(), a.degrees(), *parts(a.kernel())], [b.log(), b.degrees(), *parts(b.kernel())]):
        assert np.array_equal(x, y)


def assert_lifts(reducer, graph, weights, draws):
    """A cover of the kernel becomes a cover of the graph, and costs the offset more."""
    kernel, _, left = reducer.kernel()
    in_cover = some_cover(kernel, draws)
    whole = reducer.lift(in_cover)
    assert is_cover(graph, whole)
    assert weight_of(weights, whole) == reducer.offset + weight_of(left, in_cover)


# ---- exactness -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", range(8))
def test_the_optimum_stays(block):
    """On 400 random graphs: the optimum, three lifts, both paths, the log."""
    for seed in range(50 * block, 50 * block + 50):
        draws = np.random.default_rng(seed)
        graph, weights = core_case(seed) if seed % 5 == 0 else random_case(seed)
        reducer = reduced(graph, weights)
        assert_alike(reducer, reduced(graph, weights, compiled=False))
        kernel, nodes, left = reducer.kernel()
        assert reducer.offset + optimum(kernel, left) == optimum(graph, weights)
        for _ in range(3):
            assert_lifts(reducer, graph, weights, draws)
        proved = verified(graph, weights, reducer.log())
        assert proved.offset == reducer.offset
        for x, y in zip(parts(proved[1:]), parts((kernel, nodes, left))):
            assert np.array_equal(x, y)


def test_the_best_cover_of_the_kernel_lifts_to_the_best():
    """Each cover of least weight of a kernel, lifted."""
    for seed in range(12):
        graph, weights = core_case(seed)
        reducer = reduced(graph, weights)
        kernel, _, left = reducer.kernel()
        assert 0 < kernel.n < graph.n
        best, lifted = optimum(kernel, left), 0
        for code in range(1 << kernel.n):
            in_cover = (code >> np.arange(kernel.n) & 1).astype(bool)
            if weight_of(left, in_cover) == best and is_cover(kernel, in_cover):
                whole = reducer.lift(in_cover)
                assert is_cover(graph, whole)
                assert weight_of(weights, whole) == optimum(graph, weights)
                lifted += 1
        assert lifted


def test_fixed_nodes():
    feasible = 0
    for seed in range(200):
        draws = np.random.default_rng(seed)
        graph, weights = random_case(seed, most=14)
        kinds = draws.choice(3, graph.n, p=[0.7, 0.15, 0.15])
        fixed = {"inside": np.flatnonzero(kinds == 1), "outside": np.flatnonzero(kinds == 2)}
        best = optimum(graph, weights, **fixed)
        if best is None:
            with pytest.raises(ValueError, match="are adjacent: both cannot be outside"):
                CoverReducer(graph, weights, **fixed)
            continue
        feasible += 1
        reducer = reduced(graph, weights, **fixed)
        assert_alike(reducer, reduced(graph, weights, **fixed, compiled=False))
        kernel, _, left = reducer.kernel()
        assert reducer.offset + optimum(kernel, left) == best
        assert_lifts(reducer, graph, weights, draws)
        whole = reducer.lift(np.ones(kernel.n, dtype=bool))
        assert whole[fixed["inside"]].all()
        assert not whole[fixed["outside"]].any()
        assert verified(graph, weights, reducer.log(), **fixed).offset == reducer.offset
    assert feasible > 100


def cycle(n):
    return graph_of(n, *((i, (i + 1) % n) for i in range(n)))


@pytest.mark.parametrize(
    ("graph", "best"),
    [
        (graph_of(0), 0),
        (graph_of(1), 0),
        (graph_of(5), 0),
        (graph_of(2, (0, 1)), 1),
        (graph_of(7, *((i, i + 1) for i in range(6))), 3),
        (cycle(3), 2),
        (cycle(4), 2),
        (cycle(9), 5),
        (graph_of(3000, *((0, i) for i in range(1, 3000))), 1),
        (graph_of(9, *((i, j) for j in range(9) for i in range(j))), 8),
        (graph_of(9, (0, 1), (3, 4), (4, 5), (3, 5), (7, 8)), 4),
        (graph_of(6, *((i, j) for i in range(3) for j in range(3, 6))), 3),
        (graph_of(10, *((i, j) for i in range(4) for j in range(4, 10))), 4),
    ],
)
@pytest.mark.parametrize("compiled", [True, False])
def test_graphs_that_vanish(graph, best, compiled):
    reducer = reduced(graph, compiled=compiled)
    assert (reducer.alive, reducer.edges, reducer.offset, reducer.exact) == (0, 0, best, True)
    whole = reducer.lift(np.zeros(0, dtype=bool))
    assert is_cover(graph, whole)
    assert whole.sum() == best
    kernel, nodes, weights = reducer.kernel()
    assert (kernel.n, kernel.edges, len(nodes), weights) == (0, 0, 0, None)
    assert verified(graph, None, reducer.log()).offset == best


def petersen():
    ring = [(i, (i + 1) % 5) for i in range(5)]
    return graph_of(10, *ring, *((i, i + 5) for i in range(5)), *((5 + i, 5 + (i + 2) % 5) for i in range(5)))


def test_a_graph_that_no_rule_reduces():
    reducer = reduced(petersen())
    kernel, nodes, weights = reducer.kernel()
    assert (reducer.offset, reducer.alive, reducer.edges, len(reducer.log())) == (0, 10, 15, 0)
    assert np.array_equal(kernel.indices, petersen().indices)
    assert (nodes.tolist(), weights, kernel.whole) == (list(range(10)), None, True)


# ---- each rule, and the order of work ------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_every_rule_is_met(weighted):
    met = set()
    for seed in range(60):
        graph, weights = random_case(2 * seed + weighted)
        met |= {rule for rule, uses in reduced(graph, weights).counts.items() if uses}
        graph, weights = crown_case(seed % 10, weighted)
        met |= {rule for rule, uses in reduced(graph, weights).counts.items() if uses}
    wanted = set(RULES) - {"take"}
    assert met == (wanted if weighted else wanted - {"transfer"})


@pytest.mark.parametrize("weighted", [False, True])
def test_crowns(weighted):
    found = 0
    for seed in range(10):
        graph, weights = crown_case(seed, weighted)
        reducer = reduced(graph, weights)
        assert_alike(reducer, reduced(graph, weights, compiled=False))
        found += reducer.counts["crown"]
        assert verified(graph, weights, reducer.log()).offset == reducer.offset
        assert_lifts(reducer, graph, weights, np.random.default_rng(seed))
        kernel, _, left = reducer.kernel()
        assert reducer.offset + optimum(kernel, left) == optimum(graph, weights)
    assert found >= 5


def test_a_flow_that_is_cut_off_decides_nothing():
    graph, weights = crown_case(0, weighted=True)
    half = HalfIntegral(graph.indptr.tolist(), graph.indices.tolist(), weights.tolist())
    half.solve()
    assert any(half.side)
    half.solve(most_phases=1)
    assert not any(half.side)


def eval_shift(text):
    number, *shift = map(int, text.split(" << "))
    return number << sum(shift)


def test_both_paths_stop_looking_at_the_same_places():
    """The limits in reduce.h are those of log.py."""
    text = (ROOT / "app" / "native" / "reduce.h").read_text()
    stated = {name: eval_shift(value) for name, value in re.findall(r"([A-Z_]+) = (\d+(?: << \d+)?)", text)}
    assert len(stated) == 10
    assert stated == {name: getattr(log_module, name) for name in stated}
    order = re.search(r"enum \{ (NEIGHBOURS.*), RULES \}", text).group(1)
    assert order.lower().split(", ") == list(RULES)


def relaxation(graph, weights, fixed=None):
    """The optimum of the linear relaxation, by scipy's solver; fixed: one variable and its value."""
    from scipy.optimize import linprog

    ends = np.array(edges_of(graph)).reshape(-1, 2)
    rows = np.zeros((len(ends), graph.n))
    rows[np.arange(len(ends)), ends[:, 0]] = rows[np.arange(len(ends)), ends[:, 1]] = -1
    bounds = [(0, 1)] * graph.n
    if fixed is not None:
        bounds[fixed[0]] = (fixed[1], fixed[1])
    return round(2 * linprog(weights, rows, -np.ones(len(ends)), bounds=bounds).fun) / 2


def test_the_relaxation_is_solved_and_what_remains_is_all_half():
    """What passes leave undecided has the all-half optimum and no other."""
    checked = 0
    for seed in range(30):
        graph, weights = random_case(seed, most=12)
        weights = np.ones(graph.n, dtype=np.int64) if weights is None else weights
        for _ in range(12):
            half = HalfIntegral(graph.indptr.tolist(), graph.indices.tolist(), weights.tolist())
            half.solve()
            side = np.array(half.side)
            left = np.flatnonzero((side == 0) & (graph.degrees() > 0))
            if graph.edges:
                value = weights[side == COVER].sum() + weights[left].sum() / 2
                assert value == relaxation(graph, weights)
            assert np.isin(
                side[graph.indices[np.isin(graph.row_of(), np.flatnonzero(side == OUT))]], COVER
            ).all()
            number = np.cumsum(np.isin(np.arange(graph.n), left)) - 1
            inner = [(number[u], number[v]) for u, v in edges_of(graph) if {u, v} <= set(left.tolist())]
            graph, weights = graph_of(len(left), *inner), weights[left]
            if (side == 0).all():
                break
        for v in range(graph.n):
            checked += 1
            assert relaxation(graph, weights, (v, 1)) > weights.sum() / 2
    assert checked > 30


@needs_kernels
def test_how_calls_are_cut_changes_nothing(monkeypatch):
    for seed in range(20):
        graph, weights = random_case(seed)
        whole = reduced(graph, weights)
        with monkeypatch.context() as patch:
            patch.setattr(kernels, "SLICE", 1)
            assert_alike(reduced(graph, weights), whole)


def sparse_case(seed):
    """A sparse graph of a few hundred nodes, where folds meet folds."""
    draws = np.random.default_rng(seed)
    n = int(draws.integers(50, 300))
    m = int(n * draws.choice([1.2, 1.5, 2, 2.5]))
    v = draws.integers(0, n, m) if seed % 3 else (draws.random(m) ** 3 * n).astype(np.int64)
    weights = draws.integers(1, draws.choice([2, 4, 1000]), n) if seed % 2 else None
    return from_edges(n, draws.integers(0, n, m), v), weights


def test_a_reduced_graph_is_a_fixed_point():
    for seed in range(40):
        graph, weights = sparse_case(seed)
        kernel, _, left = reduced(graph, weights).kernel()
        again = reduced(kernel, left)
        assert (again.offset, again.edges) == (0, kernel.edges)


# ---- choices -------------------------------------------------------------------------------------------


def test_choices_keep_lifts_valid_and_paths_alike():
    chosen = 0
    for seed in range(40):
        draws = np.random.default_rng(seed)
        graph, weights = sparse_case(seed) if seed % 4 else core_case(seed // 4)
        pair = [CoverReducer(graph, weights, compiled=compiled) for compiled in (True, False)]
        for _ in range(5):
            for reducer in pair:
                reducer.reduce()
            assert_alike(*pair)
            assert_lifts(pair[0], graph, weights, draws)
            if not pair[0].alive:
                break
            nodes = np.argsort(-pair[0].degrees(), kind="stable")[: draws.integers(1, 4)]
            chosen += len(nodes)
            for reducer in pair:
                reducer.take(nodes)
                assert not reducer.exact
        assert_lifts(pair[1], graph, weights, draws)
    assert chosen > 80


def test_a_settled_kernel_is_not_looked_at_again():
    """A reducer that takes a kernel as it is goes on as one that has looked at all of it."""
    for seed in range(30):
        graph, weights = sparse_case(seed) if seed % 3 else core_case(seed)
        first = CoverReducer(graph, weights)
        first.reduce()
        kernel, _, left = first.kernel()
        if not kernel.n:
            continue
        whole = [
            CoverReducer(kernel, left, compiled=compiled, settled=settled)
            for compiled in (True, False) for settled in (True, False)
        ]  # fmt: skip
        for reducer in whole:
            reducer.reduce()
            assert len(reducer.log()) == 0
            reducer.take(np.argsort(-kernel.degrees(), kind="stable")[:2])
            reducer.reduce()
            np.testing.assert_array_equal(reducer.log(), whole[0].log())


def test_partners_are_a_largest_matching_of_the_double_cover():
    found = 0
    for seed in range(30):
        graph, _ = sparse_case(seed) if seed % 3 else core_case(seed)
        pair = [CoverReducer(graph, compiled=compiled) for compiled in (True, False)]
        for reducer in pair:
            reducer.reduce()
        if not pair[0].alive:
            continue
        kernel, partner = pair[0].kernel()[0], pair[0].partners()
        np.testing.assert_array_equal(partner, pair[1].partners())
        joined = np.flatnonzero(partner >= 0)
        assert len(np.unique(partner[joined])) == len(joined)
        assert all(
            u in kernel.indices[kernel.indptr[v] : kernel.indptr[v + 1]] for v, u in enumerate(partner)
        )
        bound = half_integral(kernel, partner)
        bound.check(kernel)
        assert len(joined) == int(half_integral(kernel).halves.sum())
        found += 1
        pair[0].take(np.flatnonzero(pair[0].degrees())[:1])
        assert pair[0].partners() is None
    assert found > 5


def test_peeling_to_the_end():
    n, edges, _ = growing_graph(600, 4, seed=1)
    graph = from_edges(n, *edges.T)
    reducer = reduced(graph)
    while reducer.edges:
        reducer.take([int(reducer.degrees().argmax())])
        reducer.reduce()
    whole = reducer.lift(np.zeros(0, dtype=bool))
    assert is_cover(graph, whole)
    assert whole.sum() == reducer.offset
    with pytest.raises(BadReduction, match="was chosen, not reduced"):
        verify_log(graph, None, reducer.log())


@needs_kernels
def test_the_compiled_check_proves_what_it_accepts():
    """Where it is built it replays every log of a reducer by itself: the plain check is not asked."""
    for seed in range(120):
        graph, weights = random_case(seed) if seed % 3 else core_case(seed)
        weight = np.ones(graph.n, dtype=np.int64) if weights is None else weights
        reducer = reduced(graph, weights)
        found = verify_compiled.replay(graph, weight, np.zeros(0, dtype=np.int64), reducer.log())
        assert found.offset == reducer.offset
        assert len(found.nodes) == reducer.alive


def test_reductions_that_end_early_count():
    """After any number of steps both paths hold the same kernel, which the log proves."""
    cut_short = 0
    for seed in range(40):
        graph, weights = random_case(seed, most=30) if seed % 2 else core_case(seed)
        whole = reduced(graph, weights)
        best = optimum(graph, weights)
        for most in {1, 2, 5, whole.steps // 2, whole.steps - 1, whole.steps + 1} - {0, -1}:
            pair = CoverReducer(graph, weights), CoverReducer(graph, weights, compiled=False)
            for reducer in pair:
                reducer.reduce(most=most)
                assert reducer.steps == min(most, whole.steps)
            assert_alike(*pair)
            cut_short += pair[0].alive > whole.alive
            kernel, _, left = pair[0].kernel()
            proved = verified(graph, weights, pair[0].log())
            assert proved.offset == pair[0].offset and proved.kernel.edges == kernel.edges
            assert pair[0].offset + optimum(kernel, left) == best
            pair[0].reduce()  # goes on
            assert (pair[0].offset, pair[0].alive) == (whole.offset, whole.alive)
    assert cut_short > 40


@needs_kernels
@pytest.mark.parametrize("heaviest", [2, 100, 10**9])
def test_flows_of_many_phases_are_those_of_plain_code(heaviest):
    """Weights far apart: flow goes back along many arcs of a node, in the kernel as in Python."""
    draws = np.random.default_rng(heaviest)
    for n in (150, 600):
        u = np.repeat(np.arange(4, n), 4)
        v = draws.integers(0, u)
        graph, weights = graph_of(n, *zip(u.tolist(), v.tolist())), draws.integers(1, heaviest + 1, n)
        assert_alike(reduced(graph, weights), reduced(graph, weights, compiled=False))


@pytest.mark.parametrize("compiled", [False, True])
def test_reductions_end_where_they_are_told(compiled):
    n, edges, _ = growing_graph(3000, 3, seed=1)
    graph = from_edges(n, *edges.T)
    stopped = CoverReducer(graph, compiled=compiled)
    stopped.reduce(lambda: True)
    assert stopped.steps > 0
    again = CoverReducer(graph, compiled=compiled)
    again.reduce(most=stopped.steps)
    assert again.alive == stopped.alive and np.array_equal(again.log(), stopped.log())


def test_a_node_without_an_edge_is_not_taken():
    reducer = CoverReducer(graph_of(4, (0, 1), (2, 3)))
    reducer.take([0, 1])
    assert (reducer.offset, reducer.edges, reducer.counts["take"]) == (1, 1, 1)
    assert reducer.lift(np.array([True, False])).tolist() == [True, False, True, False]


# ---- the log -------------------------------------------------------------------------------------------


def entry(rule, *words):
    return [rule, len(words), *words]


PATH = graph_of(4, (0, 1), (1, 2), (2, 3))
TRIANGLE = graph_of(4, (0, 1), (0, 2), (1, 2), (2, 3))
STAR = graph_of(5, (0, 1), (0, 2), (0, 3), (0, 4))


@pytest.mark.parametrize(
    ("graph", "weights", "log", "text"),
    [
        (PATH, None, entry(NEIGHBOURS, 1, 0, 2), "1 weighs 1, its neighbours 2"),
        (PATH, None, entry(NEIGHBOURS, 0, 2), "not the neighbours of 0"),
        (PATH, None, entry(NEIGHBOURS, 0, 1, 1), "not the neighbours of 0"),
        (PATH, None, entry(NEIGHBOURS, 0, 1) + entry(NEIGHBOURS, 0, 1), "step 1 .*0 has no edge left"),
        (STAR, [3, 1, 1, 1, 1], entry(NEIGHBOURS, 0, 1, 2, 3, 4), "0 weighs 3, its neighbours 4"),
        (TRIANGLE, [1, 2, 1, 1], entry(CLIQUE, 0, 1, 2), "some are heavier than 0"),
        (STAR, None, entry(CLIQUE, 0, 1), "no clique"),
        (TRIANGLE, None, entry(CLIQUE, 0), "no neighbours of 0"),
        (TRIANGLE, None, entry(CLIQUE, 0, 3), "no neighbours of 0"),
        (TRIANGLE, [1, 2, 1, 1], entry(TRANSFER, 0, 1, 2), "some are not heavier than 0"),
        (TRIANGLE, [1, 2, 2, 1], entry(TRANSFER, 0, 1), "not the neighbours of 0"),
        (STAR, [1, 2, 2, 2, 2], entry(TRANSFER, 0, 1, 2, 3, 4), "no clique"),
        (TRIANGLE, None, entry(FOLD, 0, 1, 2), "neighbours of 0 are adjacent"),
        (PATH, None, entry(FOLD, 1, 0, 3), "not the neighbours of 1"),
        (PATH, [2, 1, 1, 1], entry(FOLD, 1, 0, 2), "1 weighs 1, its neighbours 3"),
        (PATH, [1, 2, 1, 1], entry(FOLD, 1, 0, 2), "1 weighs 2, its neighbours 2"),
        (STAR, None, entry(FOLD, 0, 1, 2, 3, 4), "0 weighs 1, its neighbours 4"),
        (PATH, None, entry(TWIN, 0, 3), "different neighbours"),
        (STAR, None, entry(TWIN, 1, 1), "not two nodes"),
        (graph_of(3, (0, 1)), None, entry(TWIN, 2, 2), "not two nodes"),
        (PATH, None, entry(UNCONFINED, 1, 2), "other neighbours outside"),
        (PATH, None, entry(UNCONFINED, 0, 2), "no neighbour of the chosen nodes"),
        (STAR, [5, 1, 1, 1, 1], entry(UNCONFINED, 0, 1), "1 is lighter than its chosen"),
        (PATH, None, entry(UNCONFINED, 0, 1, 3, 2), "other neighbours outside"),
        (PATH, None, entry(UNCONFINED, 0, 1, 2), "not pairs and a last node"),
        (PATH, None, entry(CROWN, 2, 0, 1, 0, 1, 1), "not independent"),
        (PATH, None, entry(CROWN, 1, 1, 1, 0, 1), "0 reaches node 2, which weighs 1"),
        (PATH, None, entry(CROWN, 1, 1, 1, 0, 1, 1, 2, 1), "2 leaves node 1, which weighs 1"),
        (PATH, None, entry(CROWN, 1, 0, 0, 2, 1), "on no edge"),
        (PATH, None, entry(CROWN, 1, 0, 0, 1, 2), "2 leaves node 0"),
        (PATH, None, entry(CROWN, 1, 0, 0, 1, 1, 0, 1, -1), "not positive"),
        (PATH, None, entry(CROWN, -1, 0), "not a set"),
        (PATH, None, entry(TAKE, 1), "1 was chosen, not reduced"),
        (PATH, None, entry(NEIGHBOURS, 9, 1), "9 has no edge left"),
        (PATH, None, [17, 1, 0], "rule 17 .*no entry of a log"),
        (PATH, None, [FOLD, 3, 1, 0], "no entry of a log"),
        (PATH, None, [FOLD], "no entry of a log"),
        (PATH, None, [FOLD, -2, 1], "no entry of a log"),
    ],
)
def test_wrong_steps_are_named(graph, weights, log, text):
    with pytest.raises(BadReduction, match=text):
        verify_log(graph, weights, np.array(log))
    assert compiled_refuses(graph, weights, log)


def joined(steps):
    return np.array(list(chain.from_iterable(steps)), dtype=np.int64)


def mutations(log, n, draws):
    """Copies of a log with one word changed, or one entry left out, repeated or exchanged with the next."""
    for at in draws.permutation(len(log))[:20]:
        copy = log.copy()
        copy[at] = draws.integers(0, n)
        yield copy
    steps = [entry(rule, *words) for rule, words in entries(log)]
    for at in draws.permutation(len(steps))[:6]:
        one = steps[at]
        yield joined(steps[:at] + steps[at + 1 :])
        yield joined([*steps[:at], one, *steps[at:]])
        yield joined([*steps[:at], *steps[at + 1 : at + 2], one, *steps[at + 2 :]])


def test_a_changed_log_is_refused_or_still_true():
    """Whatever the log says: what the check proves holds. Most changes are no longer reductions."""
    refused = passed = 0
    for seed in range(80):
        draws = np.random.default_rng(seed)
        graph, weights = random_case(seed, most=14) if seed % 4 > 1 else crown_case(seed, seed % 2)
        best = optimum(graph, weights)
        for log in mutations(reduced(graph, weights).log(), graph.n, draws):
            try:
                proved = verify_log(graph, weights, log, compiled=False)
            except BadReduction:
                refused += 1
                assert compiled_refuses(graph, weights, log)
                continue
            passed += 1
            assert verified(graph, weights, log).offset == proved.offset
            assert proved.offset + optimum(proved.kernel, proved.weights) == best
    assert refused > passed > 50


# ---- input -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"inside": [4]}, "not in the graph"),
        ({"outside": [1, 2]}, "no cover leaves these nodes out"),
        ({"inside": [1], "outside": [1]}, "no cover leaves these nodes out"),
        ({"weights": [1, 2, 3, 0]}, "not n positive weights"),
        ({"weights": [1, 2, 3]}, "not n positive weights"),
    ],
)
def test_the_check_of_a_log_checks_its_arguments(arguments, text):
    with pytest.raises(BadReduction, match=text):
        verify_log(PATH, log=np.zeros(0, dtype=np.int64), **{"weights": None, **arguments})


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"weights": np.array([1, 2, 3])}, r"weights: needs \[4\] integers"),
        ({"weights": np.ones(4)}, r"weights: needs \[4\] integers"),
        ({"weights": np.array([1, 2, 0, 3])}, "positive, got 0 at node 2"),
        ({"weights": np.full(4, 1 << 60)}, "sum must be at most"),
        ({"inside": [4]}, r"inside: node numbers must be 0\.\.3"),
        ({"outside": [-1]}, r"outside: node numbers must be 0\.\.3"),
        ({"inside": [0], "outside": [0]}, "node 0 is both inside and outside"),
        ({"outside": [1, 2]}, "1 and 2 are adjacent: both cannot be outside"),
    ],
)
def test_wrong_arguments(arguments, text):
    with pytest.raises(ValueError, match=text):
        CoverReducer(PATH, **arguments)


def test_wrong_calls():
    reducer = CoverReducer(PATH)
    with pytest.raises(ValueError, match="take: node numbers"):
        reducer.take([4])
    with pytest.raises(ValueError, match=r"lift: needs \[4\] bool"):
        reducer.lift(np.zeros(3, dtype=bool))
    with pytest.raises(ValueError, match=r"lift: needs \[4\] bool"):
        reducer.lift(np.zeros(4))


# ---- real graphs ---------------------------------------------------------------------------------------


@needs_data
@pytest.mark.parametrize(
    ("path", "best"),
    [("mvc/as-22july06.graph.gz", 3303), ("mvc/power.graph.gz", 2203), ("mvc/vc-exact_001.gr.gz", 2586)],
)
def test_real_graphs_reduce_to_nothing(path, best):
    stream = open_edges(str(data_dir() / path))
    u, v = (np.concatenate(side) for side in zip(*((u, v) for u, v, _ in stream.chunks())))
    graph = from_edges(stream.nodes, u, v)
    reducer = reduced(graph)
    assert (reducer.offset, reducer.alive) == (best, 0)
    assert is_cover(graph, reducer.lift(np.zeros(0, dtype=bool)))
    assert verified(graph, None, reducer.log()).offset == best
