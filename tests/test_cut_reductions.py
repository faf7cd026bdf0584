"""Reductions of maximum cut: every cut keeps its worth, both paths agree, and the log proves the kernel."""

import numpy as np
import pytest
import scipy.sparse as sp
from data import data_dir, needs_data
from test_cut import all_sides, brute_values, random_graph, sparse_graph

from app import solve
from app.graphs.fixed_point import integer_weights
from app.graphs.formats.readers import open_edges
from app.graphs.graph import from_edges
from app.graphs.whole import whole_graph
from app.problems.table import make_problem
from app.reductions.cover.log import entries
from app.reductions.cover.verify_compiled import replay_cut
from app.reductions.cut import compiled as cut_compiled
from app.reductions.cut.log import CLIQUE, MERGE, TRIANGLE, TWIN, triangle
from app.reductions.cut.reducer import CutReducer, kernel_of
from app.reductions.cut.verify import verify_log
from app.reductions.replay import BadReduction
from app.toolbox import Instance, verified

pytestmark = pytest.mark.mpi_skip
needs_kernels = pytest.mark.skipif(not cut_compiled.available(), reason="the compiled kernels were not built")
KINDS = ("plain", "signs", "whole", "binary", "float")


def fixed_nodes(graph, seed):
    """Some nodes for each side; mostly none."""
    draws = np.random.default_rng(seed)
    some = draws.permutation(graph.n)[: draws.choice([0, 0, 1, 3])]
    half = int(draws.integers(0, len(some) + 1))
    return some[:half], some[half:]


def reduced(graph, fixed=((), ()), compiled=True):
    """The reducer and the kernel."""
    reducer = CutReducer(graph, integer_weights(graph)[0], *fixed, compiled=compiled)
    reducer.reduce()
    return reducer, reducer.kernel()


def value(graph, sides):
    """The cut in units."""
    weights, _ = integer_weights(graph)
    return int(weights[sides[graph.row_of()] != sides[graph.indices]].sum()) // 2


def same_kernels(a, b):
    arrays = ((k.nodes, k.graph.indptr, k.graph.indices, k.graph.weights) for k in (a, b))
    return a[2:] == b[2:] and all(map(np.array_equal, *arrays))


def proved_rows(graph, weights, reducer):
    """What verify_log says, with and without the compiled check."""
    log = reducer.log, reducer.places, reducer.fixed
    offset, rows = verify_log(graph, weights, *log)
    plain = verify_log(graph, weights, *log, compiled=False)
    assert plain[0] == offset and all(map(np.array_equal, plain[1], rows))
    return offset, rows


def compiled_refuses(graph, log, reducer):
    """Whether the compiled check does not accept a log; true where there are no kernels."""
    fixed = reducer.fixed
    ties = {v: (fixed[0][0], side != fixed[0][1]) for v, side in fixed[1:]}
    return replay_cut(graph, integer_weights(graph)[0] << reducer.places, ties, log) is None


def replayed(graph, reducer):
    """The kernel that the log alone leads to."""
    weights, _ = integer_weights(graph)
    offset, rows = proved_rows(graph, weights, reducer)
    return kernel_of(graph.name, rows, offset, reducer.places)


def communities(seed, count=6):
    """Cliques that few nodes leave, twins and leaves: what CLIQUE and TWIN ask for."""
    draws = np.random.default_rng(seed)
    edges, n = [], 0
    for _ in range(count):
        size = int(draws.integers(3, 8))
        edges += [(n + i, n + j) for i in range(size) for j in range(i)]
        edges += [(n + int(draws.integers(size)), int(draws.integers(n))) for _ in range(2) if n]
        n += size
    hubs = draws.integers(0, n, (4, 5))
    for k, near in enumerate(hubs):
        edges += [(n + 2 * k + twin, int(x)) for twin in (0, 1) for x in set(near.tolist())]
    u, v = np.array(edges).T
    return from_edges(n + 8, u, v)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(40))
def test_optimum_stays(seed, kind):
    graph = random_graph(seed, kind)
    fixed = fixed_nodes(graph, seed)
    _, kernel = reduced(graph, fixed)
    sides = all_sides(graph.n)
    kept = sides[:, fixed[0]].all(axis=1) & ~sides[:, fixed[1]].any(axis=1)
    inner = brute_values(kernel.graph, all_sides(kernel.graph.n)).max()
    assert kernel.value_of(int(inner)) == brute_values(graph, sides[kept]).max()


def mixed_case(seed):
    """A graph of a hundred nodes or so, of one kind or another."""
    if seed % 3 == 0:
        return communities(seed)
    return sparse_graph(80, 130, seed, signed=True) if seed % 3 == 1 else random_graph(seed, "float", 40)


@pytest.mark.parametrize("seed", range(30))
def test_every_cut_keeps_its_worth(seed):
    graph, draws = mixed_case(seed), np.random.default_rng(seed)
    reducer, kernel = reduced(graph, fixed_nodes(graph, seed))
    for _ in range(5):
        core = draws.random(kernel.graph.n) < 0.5
        sides = reducer.lift(kernel, core)
        assert all(sides[v] == side for v, side in reducer.fixed)
        assert value(graph, sides) == kernel.value_of(value(kernel.graph, core))
        assert kernel.value_in(value(graph, sides)) == value(kernel.graph, core)


@needs_kernels
@pytest.mark.parametrize("seed", range(60))
def test_plain_path_is_the_same(seed):
    graph = mixed_case(seed)
    fixed = fixed_nodes(graph, seed)
    (fast, fast_kernel), (plain, plain_kernel) = (reduced(graph, fixed, each) for each in (True, False))
    assert np.array_equal(fast.log, plain.log) and fast.counts == plain.counts
    assert same_kernels(fast_kernel, plain_kernel)
    core = np.random.default_rng(seed).random(fast_kernel.graph.n) < 0.5
    assert np.array_equal(fast.lift(fast_kernel, core), plain.lift(plain_kernel, core))


@needs_kernels
def test_twins_of_heavy_edges_are_told_apart():
    """Weights that are multiples of a large power of two: their sums alone say little about a row."""
    draws = np.random.default_rng(1)
    for _ in range(20):
        hubs = [draws.permutation(60)[:4] for _ in range(40)]
        edges = [(60 + 2 * k + twin, int(x)) for k, near in enumerate(hubs) for x in near for twin in (0, 1)]
        u, v = np.array(edges).T
        graph = from_edges(140, u, v, np.full(len(u), 2.0**43) * draws.choice([-1, 1], len(u)))
        logs = [reduced(graph, compiled=compiled)[0].log for compiled in (True, False)]
        assert np.array_equal(*logs)


@pytest.mark.parametrize("seed", range(30))
def test_log_proves_the_kernel(seed):
    graph = mixed_case(seed)
    reducer, kernel = reduced(graph, fixed_nodes(graph, seed))
    assert same_kernels(replayed(graph, reducer), kernel)


def test_all_rules_are_met():
    found = dict.fromkeys(("tie", "merge", "twin", "triangle", "clique"), 0)
    for seed in range(30):
        graph = mixed_case(seed)
        for rule, count in reduced(graph, fixed_nodes(graph, seed))[0].counts.items():
            found[rule] += count
    assert all(found.values()), found


def test_what_each_rule_leaves():
    path = from_edges(5, [0, 1, 2, 3], [1, 2, 3, 4])
    _, kernel = reduced(path)
    assert not kernel.graph.n and kernel.value_of(0) == 4
    # Two cliques of five with one node in common, and a clique of four outside: all gone.
    u, v = np.triu_indices(5, 1)
    both = from_edges(9, np.append(u, u + 4), np.append(v, v + 4))
    _, kernel = reduced(both)
    assert not kernel.graph.n and kernel.value_of(0) == 12
    # K_{4,4}, whose halves are twins.
    left, right = np.divmod(np.arange(16), 4)
    reducer, kernel = reduced(from_edges(8, left, right + 4))
    assert not kernel.graph.n and kernel.value_of(0) == 16 and reducer.counts["twin"]
    # A triangular prism with a node in the middle of nothing: every node has three neighbours.
    prism = from_edges(6, [0, 1, 2, 3, 4, 5, 0, 1, 2], [1, 2, 0, 4, 5, 3, 3, 4, 5])
    reducer, kernel = reduced(prism)
    assert reducer.counts["triangle"] and not kernel.graph.n and kernel.value_of(0) == 7


@pytest.mark.parametrize("weights", [(1, 1, 1), (2, 2, 2), (-3, 1, 2), (5, -1, -2), (4, 3, -2)])
def test_triangle_stands_for_a_star(weights):
    found = triangle(*(2 * w for w in weights))
    base, (ab, ac, bc) = found
    for a, b, c in all_sides(3).tolist():
        star = max(
            sum(2 * w for w, side in zip(weights, (a, b, c)) if side != middle) for middle in (False, True)
        )
        assert base + ab * (a != b) + ac * (a != c) + bc * (b != c) == star


def test_halves_are_left_alone():
    assert triangle(1, 1, 1) is None and triangle(2, 2, 2) == (6, (-1, -1, -1))


def spoiled(log, change):
    """The log with one of its entries changed."""
    parts = [[rule, len(words), *words] for rule, words in entries(log)]
    change(parts)
    return np.array([word for part in parts for word in part], dtype=np.int64)


def damage(kind):
    """What makes a false entry of a true one of a rule."""

    def change(parts):
        part = next(part for part in parts if part[0] == kind)
        if kind == TRIANGLE:
            part[4] += 1  # a weight
        elif kind == CLIQUE:
            part[2] += 1  # the weight
        else:
            part[4] ^= 1  # the side

    return change


@pytest.mark.parametrize("rule", [MERGE, TWIN, TRIANGLE, CLIQUE])
def test_false_logs_are_refused(rule):
    seed = next(s for s in range(100) if any(r == rule for r, _ in entries(reduced(mixed_case(s))[0].log)))
    graph = mixed_case(seed)
    reducer, _ = reduced(graph)
    log = spoiled(reducer.log, damage(rule))
    with pytest.raises(BadReduction, match=r"step \d+"):
        verify_log(graph, integer_weights(graph)[0], log, reducer.places, [])
    assert compiled_refuses(graph, log, reducer)


def mutations(log, n, draws):
    """Copies of a log with one word changed, or one entry left out, repeated or exchanged with the next."""
    for at in draws.permutation(len(log))[:12]:
        copy = log.copy()
        copy[at] = draws.integers(-2, n)
        yield copy
    steps = [np.array([rule, len(words), *words]) for rule, words in entries(log)]
    for at in draws.permutation(len(steps))[:6]:
        one = [steps[at]]
        yield from map(
            np.concatenate,
            ([log[:0], *steps[:at], *steps[at + 1 :]], [*steps[:at], *one, *steps[at:]],
             [*steps[:at], *steps[at + 1 : at + 2], *one, *steps[at + 2 :]]),
        )  # fmt: skip


def test_the_compiled_check_accepts_what_the_plain_one_does():
    """Logs that were changed: nothing is accepted that the plain check refuses; what both accept is one."""
    refused = passed = 0
    for seed in range(60):
        graph = mixed_case(seed) if seed % 2 else random_graph(seed, KINDS[seed % len(KINDS)])
        reducer, _ = reduced(graph, fixed_nodes(graph, seed))
        weights = integer_weights(graph)[0]
        for log in mutations(reducer.log, graph.n, np.random.default_rng(seed)):
            try:
                plain = verify_log(graph, weights, log, reducer.places, reducer.fixed, compiled=False)
            except BadReduction:
                refused += 1
                assert compiled_refuses(graph, log, reducer)
                continue
            passed += 1
            offset, rows = verify_log(graph, weights, log, reducer.places, reducer.fixed)
            assert plain[0] == offset and all(map(np.array_equal, plain[1], rows))
    assert refused > passed > 20


@needs_kernels
def test_the_compiled_check_proves_every_log():
    for seed in range(60):
        graph = mixed_case(seed) if seed % 2 else random_graph(seed, KINDS[seed % len(KINDS)])
        reducer, _ = reduced(graph, fixed_nodes(graph, seed))
        assert not compiled_refuses(graph, reducer.log, reducer)


@pytest.mark.parametrize(
    "log", [[2, 3, 1, 2, 0, 0, 3, 3, 2, 0], [1], [1, 100, 1, 3, 1], [4, 3, 1, -(1 << 63), 1]]
)
def test_logs_that_prove_nothing_are_refused(log):
    """A twin of a node that has a side, ends that are missing, counts beyond all bounds."""
    graph = from_edges(4, np.array([1, 2]), np.array([3, 3]))
    weights, _ = integer_weights(graph)
    fixed = [(2, 0), (3, 0)]
    for compiled in (False, True):
        with pytest.raises(BadReduction, match="step"):
            verify_log(graph, weights, np.array(log), 0, fixed, compiled)
    assert replay_cut(graph, weights, {3: (2, False)}, np.array(log)) is None


def test_a_log_without_its_ties_is_refused():
    graph = sparse_graph(80, 130, 1)
    reducer, _ = reduced(graph, ([3, 5], [7]))
    log = spoiled(reducer.log, lambda parts: parts.__delitem__(0))
    with pytest.raises(BadReduction):
        verify_log(graph, integer_weights(graph)[0], log, reducer.places, reducer.fixed)


def test_reductions_that_end_early_count():
    """After any number of steps both paths hold the same kernel, which the log proves."""
    for seed in range(30):
        graph = mixed_case(seed) if seed % 2 else random_graph(seed, KINDS[seed % len(KINDS)])
        whole, _ = reduced(graph)
        for most in {1, 3, whole.steps // 2, whole.steps - 1, whole.steps + 1} - {0, -1}:
            pair = [CutReducer(graph, integer_weights(graph)[0], compiled=each) for each in (True, False)]
            for reducer in pair:
                reducer.reduce(most=most)
                assert reducer.steps == min(most, whole.steps)
            assert same_kernels(*(reducer.kernel() for reducer in pair))
            assert same_kernels(pair[0].kernel(), replayed(graph, pair[0]))
    stopped, again = (CutReducer(graph, integer_weights(graph)[0]) for _ in range(2))
    stopped.reduce(lambda: True)
    again.reduce(most=stopped.steps)
    assert same_kernels(stopped.kernel(), again.kernel())


def test_nothing_left_is_an_answer():
    graph = from_edges(40, *np.array([(i, i // 2) for i in range(1, 40)]).T)
    toolbox = make_problem("maxcut").toolbox(Instance(graph))
    assert "reduced to 0 of 40 nodes" in toolbox.reduce(lambda: None)
    assert toolbox.search(0, None) is None
    sides, bounds = toolbox.lift(toolbox.start()), toolbox.bounds()
    assert toolbox.value(sides) == 39 == toolbox.value_of_core(bounds.value)
    assert bounds.method == "reductions" and verified(toolbox, bounds)


@pytest.mark.parametrize("settings", [{"search.steps": 20_000}, {"search.seconds": 3}])
@pytest.mark.parametrize("kind", ["plain", "whole", "float"])
def test_answers_with_fixed_nodes(kind, settings):
    graph = next(g for g in (random_graph(seed, kind, 9) for seed in range(100)) if g.n == 9 and g.edges > 8)
    fixed = np.array([0, 3]), np.array([2])
    sides = all_sides(graph.n)
    kept = sides[:, fixed[0]].all(axis=1) & ~sides[:, fixed[1]].any(axis=1)
    best = brute_values(graph, sides[kept]).max() * integer_weights(graph)[1]
    weights = np.ones(len(graph.indices)) if graph.weights is None else graph.weights
    matrix = sp.csr_array((weights, graph.indices, graph.indptr), shape=(graph.n, graph.n))
    answer = solve(matrix, "maxcut", inside=fixed[0], outside=fixed[1], settings=settings)
    assert answer.objective == best
    assert answer.bound is None or answer.bound >= best


@needs_data
def test_a_power_grid():
    graph, _ = whole_graph(open_edges(str(data_dir() / "mvc/power.graph.gz")))
    reducer, kernel = reduced(graph)
    assert kernel.graph.n < 500 and kernel.graph.edges < 1300
    assert same_kernels(replayed(graph, reducer), kernel)
