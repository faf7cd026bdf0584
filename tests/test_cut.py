"""Search for maximum cuts: exact values, optima of small graphs, the same bits however it is run."""

import itertools

import numpy as np
import pytest
from data import data_dir, needs_data

from app.errors import GraphError
from app.graphs.fixed_point import LARGEST, integer_weights
from app.graphs.formats.readers import open_edges
from app.graphs.graph import from_edges
from app.native import cut_search
from app.rng import SplitMix
from app.search.cut import baselines
from app.search.cut import search as cut
from app.search.cut.baselines import CUT_BASELINES, greedy_descent
from app.search.cut.merge import Merge, pieces_of
from app.search.cut.plain import LEVELS, LOG_BITS, logs
from app.search.cut.pool import Pool, Recombiner
from app.search.cut.search import CutSearch, cut_weights, perfect_sides

pytestmark = pytest.mark.mpi_skip
needs_kernels = pytest.mark.skipif(not cut_search.available(), reason="the kernels were not built")
KINDS = ("plain", "signs", "whole", "binary", "float")


def random_graph(seed, kind="whole", largest=9):
    """A graph of up to `largest` nodes, some of them isolated, with weights of one kind."""
    draws = np.random.default_rng([seed, KINDS.index(kind)])
    n = int(draws.integers(1, largest + 1))
    pairs = np.array(list(itertools.combinations(range(n), 2))).reshape(-1, 2)
    u, v = pairs[draws.random(len(pairs)) < draws.choice([0.2, 0.5, 1])].T
    weights = {
        "plain": None,
        "signs": draws.choice([-1, 1], len(u)),
        "whole": draws.integers(-5, 9, len(u)),
        "binary": draws.integers(-20, 30, len(u)) / 8,
        "float": draws.standard_normal(len(u)) * 10.0 ** draws.integers(-3, 4, len(u)),
    }[kind]
    return from_edges(n, u, v, weights)


def sparse_graph(n, m, seed, signed=True):
    """A random graph of about m edges."""
    draws = np.random.default_rng(seed)
    weights = draws.choice([-1, 1], m) if signed else None
    return from_edges(n, draws.integers(0, n, m), draws.integers(0, n, m), weights)


def all_sides(n):
    """[2^n, n] bool."""
    return np.array(list(itertools.product((False, True), repeat=n)), dtype=bool).reshape(2**n, n)


def cut_value(graph, sides):
    """The weight of the edges between the two sides [n] bool, exact: an int where all weights are whole."""
    weights, unit = cut_weights(graph)
    value = int(weights[sides[graph.row_of()] != sides[graph.indices]].sum()) // 2
    return value * int(unit) if unit >= 1 else value * unit


def brute_values(graph, sides):
    """[k] int64 cuts in units, edge by edge."""
    weights, _ = cut_weights(graph)
    values = np.zeros(len(sides), dtype=np.int64)
    for u, v, weight in zip(graph.row_of().tolist(), graph.indices.tolist(), weights.tolist()):
        if u < v:
            values += weight * (sides[:, u] != sides[:, v])
    return values


def optimum(graph, fixed=None):
    """The largest cut in units, over all sides that agree with `fixed`."""
    sides = all_sides(graph.n)
    if fixed is not None:
        sides = sides[((fixed < 0) | (sides == (fixed == 1))).all(axis=1)]
    return int(brute_values(graph, sides).max())


def same_state(a, b):
    assert a.keys() == b.keys()
    for name, value in a.items():
        assert np.array_equal(value, b[name]), name


# ---- weights and values --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_weights_and_values_are_exact(kind):
    for seed in range(30):
        graph = random_graph(seed, kind, 7)
        weights, unit = cut_weights(graph)
        given = np.ones(len(graph.indices)) if graph.weights is None else graph.weights.astype(np.float64)
        assert np.array_equal(weights * unit, given)
        assert unit == 1 or kind in ("binary", "float")
        for sides, value in zip(all_sides(graph.n), brute_values(graph, all_sides(graph.n)).tolist()):
            assert cut_value(graph, sides) == value * unit
            assert isinstance(cut_value(graph, sides), int) == (unit == 1)


def test_a_wide_range_of_weights_is_rounded_to_a_unit():
    graph = from_edges(3, [0, 1], [1, 2], [1e20, 1e-20])
    weights, unit = integer_weights(graph)
    assert np.abs(weights).sum() <= LARGEST and np.log2(unit) % 1 == 0
    assert np.abs(weights * unit - graph.weights).max() <= unit / 2
    assert cut_value(graph, np.array([True, False, False])) == pytest.approx(1e20)


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_a_weight_must_be_a_number(bad):
    with pytest.raises(GraphError, match="not a finite number"):
        cut_weights(from_edges(2, [0], [1], [bad]))


def test_table_of_logs_is_the_same_everywhere():
    """No entry is so near to a half that another libm would round it to another integer."""
    exact = -np.log((np.arange(LEVELS) + 0.5) / LEVELS) * 2**LOG_BITS
    assert np.abs(exact - np.floor(exact) - 0.5).min() > 1e-6
    assert (np.diff(logs()) < 0).all()


# ---- parts that can be read off ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_settled_part_is_cut_perfectly(kind):
    settled_some = 0
    for seed in range(60):
        graph = random_graph(seed, kind)
        free = np.full(graph.n, -1, dtype=np.int8)
        weights, _ = cut_weights(graph)
        settled, sides = perfect_sides(graph, weights, free)
        rows = graph.row_of()
        inside = settled[rows]
        assert (settled[graph.indices] | (weights == 0))[inside].all()
        cut = sides[rows] != sides[graph.indices]
        assert (cut == (weights > 0))[inside & (weights != 0)].all()
        positive = int(weights[weights > 0].sum()) // 2
        assert settled.all() == (optimum(graph) == positive)
        settled_some += bool(inside.any())
    assert settled_some


@pytest.mark.parametrize("kind", KINDS)
def test_parts_are_settled_alike_compiled_and_plain(kind):
    for seed in range(120):
        draws = np.random.default_rng(seed)
        graph = random_graph(seed, kind, int(draws.integers(1, 30)))
        fixed = np.where(draws.random(graph.n) < 0.2, draws.integers(0, 2, graph.n), -1).astype(np.int8)
        weights = cut_weights(graph)[0]
        for given in (fixed, np.full(graph.n, -1, dtype=np.int8)):
            one, two = (perfect_sides(graph, weights, given, compiled) for compiled in (True, False))
            np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("compiled", [True, False])
def test_a_bipartite_graph_gets_all_edges_at_once(compiled):
    side = np.arange(50) % 2
    u, v = (index.ravel() for index in np.meshgrid(np.arange(50), np.arange(50)))
    kept = (side[u] != side[v]) & ((u * 7 + v * 3) % 5 == 0)
    graph = from_edges(51, u[kept], v[kept])
    search = CutSearch(graph, seed=1, compiled=compiled)
    search.run(100)
    assert search.done and search.steps == 0 and search.best == graph.edges
    assert cut_value(graph, search.solution()) == graph.edges


@pytest.mark.parametrize("n", [0, 1, 5])
def test_without_edges_there_is_nothing_to_do(n):
    search = CutSearch(from_edges(n, [], []), seed=1)
    search.run(10)
    assert search.done and search.best == 0 and search.steps == 0 and search.solution().shape == (n,)


# ---- the search ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_small_graphs_are_solved(kind):
    for seed in range(40):
        graph = random_graph(seed, kind, 11)
        search = CutSearch(graph, seed)
        search.run(20_000)
        _, unit = cut_weights(graph)
        assert search.best == optimum(graph)
        assert cut_value(graph, search.solution()) == search.best * unit


def test_sixteen_nodes_are_solved():
    for seed in range(3):
        graph = sparse_graph(16, 60, seed)
        search = CutSearch(graph, seed)
        search.run(50_000)
        assert search.best == optimum(graph)


@pytest.mark.parametrize("compiled", [True, False])
def test_given_sides_are_kept(compiled):
    for seed in range(30):
        graph = random_graph(seed, "whole", 8)
        fixed = np.random.default_rng(seed).integers(-1, 2, graph.n).astype(np.int8)
        search = CutSearch(graph, seed, fixed=fixed, compiled=compiled)
        search.run(20_000 if compiled else 300)
        sides = search.solution()
        assert (sides == (fixed == 1))[fixed >= 0].all()
        assert search.best == optimum(graph, fixed) or not compiled
        assert cut_value(graph, sides) == search.best


@needs_kernels
@pytest.mark.parametrize("kind", KINDS)
def test_compiled_is_plain(kind):
    draws = np.random.default_rng(5)
    graph = sparse_graph(20, 60, 7)
    if kind != "plain":
        graph = from_edges(12, *np.triu_indices(12, 1), random_weights(kind, 66, draws))
    searches = [CutSearch(graph, 3, compiled=compiled) for compiled in (True, False)]
    for steps in (1, 5, 1000, 6000, 3000):
        for search in searches:
            search.run(steps)
        same_state(*(search.state() for search in searches))


def random_weights(kind, count, draws):
    """`count` weights of a kind; the last kind is wide enough for thresholds that are shifted up."""
    if kind == "signs":
        return draws.choice([-1, 1], count)
    if kind == "whole":
        return draws.integers(-(2**24), 2**24, count) * 2.0**20
    return draws.standard_normal(count) * 10.0 ** draws.integers(-6, 6, count)


@needs_kernels
def test_compiled_is_plain_with_a_pool(monkeypatch):
    """Long enough for combinations, merges and a second pool."""
    monkeypatch.setattr("app.search.cut.search.SWEEPS", 250)
    graph = sparse_graph(7, 15, 2)
    searches = [CutSearch(graph, 4, compiled=compiled) for compiled in (True, False)]
    for search in searches:
        search.run(200_000)
    assert len(searches[0].state()["pool_values"]) and searches[0].state()["sweeps"] > 250
    same_state(*(search.state() for search in searches))


def test_slices_change_nothing():
    graph = sparse_graph(60, 200, 3)
    whole, sliced = CutSearch(graph, 9), CutSearch(graph, 9)
    whole.run(2_000_000)
    sizes, left = SplitMix(1), 2_000_000
    while left:
        steps = min(left, 1 + sizes.below(200_000))
        sliced.run(steps)
        left -= steps
    assert whole.steps == sliced.steps == 2_000_000 and not whole.done
    same_state(whole.state(), sliced.state())
    assert (whole.best, whole.found_at) == (sliced.best, sliced.found_at)


def test_a_search_tells_for_how_long_trials_cost_the_same(monkeypatch):
    """To the end of a round, then for less than a sweep; of small graphs for the first two rounds alone."""
    monkeypatch.setattr("app.search.cut.search.SHORTEST", 1)
    search = CutSearch(sparse_graph(40, 120, 3), 5)
    whole = search.even_steps
    search.run(7)
    assert search.even_steps == whole - 7
    search.run(whole - 7)
    assert search.even_steps == 40 // 4  # the round is over
    search.run(10)
    assert search.even_steps == 20 * whole - 10  # 1,000 sweeps after 50
    search.run(20 * whole)
    assert search.even_steps > 1 << 60
    monkeypatch.setattr("app.search.cut.search.LONG", 1)
    assert search.even_steps == 20 * whole - 10


def test_what_trials_after_a_merge_cost_is_found_out_first(monkeypatch):
    """Trials of pieces say nothing about those of nodes."""
    for name, value in {"SHORTEST": 1, "LONG": 1, "POOL": 4, "SWEEPS": 5}.items():
        monkeypatch.setattr(f"app.search.cut.search.{name}", value)
    search, merging = CutSearch(sparse_graph(60, 200, 4), 9), False
    while not merging or len(search.state()["merge_given"]):
        merging = len(search.state()["merge_given"]) > 0
        search.run(search.even_steps)
    assert search.even_steps == 60 // 4
    search.run(60 // 4)
    assert search.even_steps == 5 * 60 - 60 // 4


@needs_kernels
def test_searches_that_meet(monkeypatch):
    """What others found joins the pool, alike with kernels and without, however steps are cut."""
    monkeypatch.setattr("app.search.cut.search.POOL", 4)
    monkeypatch.setattr("app.search.cut.search.SWEEPS", 5)
    graph, found = sparse_graph(60, 200, 3), []
    for compiled, slices in ((True, [900]), (True, [1, 399, 500]), (False, [450, 450])):
        searches = [CutSearch(graph, seed, compiled=compiled) for seed in range(3)]
        for _ in range(12):
            for search in searches:
                for steps in slices:
                    search.run(steps)
            news = [search.news() for search in searches]
            for i, search in enumerate(searches):
                assert cut_value(graph, news[i][0].astype(bool)) == search.best * search.unit
                search.meet(news[:i] + news[i + 1 :])
                assert search._pool.values == sorted(search._pool.values, reverse=True)
                assert search._pool.values[0] >= max(other.best for other in searches if other is not search)
        found.append([search.state() for search in searches])
    for others in found[1:]:
        for a, b in zip(found[0], others):
            same_state(a, b)


def planning(expected, compiled=True, start=None):
    """A search told by a clock, now and then, how many trials are to come."""
    graph = sparse_graph(300, 700, 1)
    search = CutSearch(graph, 4, start, compiled=compiled)
    told = iter(expected)
    while search.steps < 300 * 900:
        if (more := next(told, None)) is not None:
            search.expect(more)
        search.run(101)
    return graph, search


@pytest.mark.parametrize("compiled", [False, True])
def test_a_planned_round_is_the_same_when_it_is_planned_again(compiled):
    expected = [300 * 700 - 100 * call for call in range(2000)]
    graph, told = planning(expected, compiled)
    assert len(told.planned) == cut.MARKS and told.planned[0] > told.planned[-1]
    again = CutSearch(graph, 4)
    again.plan(told.planned)
    while again.steps < told.steps:
        again.run(min(1234, told.steps - again.steps))
    assert again.planned == told.planned
    assert (again.best, again.found_at) == (told.best, told.found_at)
    assert np.array_equal(again.solution(), told.solution())


def test_a_plan_takes_the_time_there_is():
    """The round is over when it was expected to be, however wrong earlier expectations were."""
    graph = sparse_graph(300, 700, 1)
    for first in (40, 2000):
        search, free = CutSearch(graph, 4), 300
        search.run(50 * free)
        search.run(10)
        search.expect(first * free)
        search.run(free)
        total = 1000 * free
        while search._rounds == 2:
            search.expect(total - search.steps)
            search.run(100)
        assert len(search.planned) == cut.MARKS
        assert 0.9 * total < search.steps <= total
        kept = search.best
        search.run(total)
        assert search.best >= kept


def test_much_time_is_for_a_pool():
    _, search = planning([10**9] * 9000)
    _, plain = planning([])
    assert search.planned == plain.planned == []
    assert search.best == plain.best and np.array_equal(search.solution(), plain.solution())


def test_a_search_goes_on_from_its_state():
    graph = sparse_graph(60, 200, 4)
    whole, first = CutSearch(graph, 9), CutSearch(graph, 9)
    for steps in (10, 123_456, 1_000_000):
        whole.run(steps)
        first.run(steps)
        second = CutSearch(graph, 77)
        second.restore(first.state())
        first = second
        same_state(whole.state(), first.state())
        assert np.array_equal(whole.solution(), first.solution())


def test_a_state_is_a_copy():
    search = CutSearch(sparse_graph(30, 90, 4), 9)
    search.run(20_000)
    state = search.state()
    copies = {name: np.copy(value) for name, value in state.items()}
    search.run(600_000)
    same_state(state, copies)


def test_the_best_only_grows_and_is_dated():
    graph = sparse_graph(200, 900, 5)
    search = CutSearch(graph, 1)
    best, found_at = search.best, search.found_at
    for _ in range(200):
        search.run(5_000)
        assert search.best >= best and cut_value(graph, search.solution()) == search.best
        assert (search.found_at > found_at) == (search.best > best)
        assert search.found_at <= search.steps
        best, found_at = search.best, search.found_at


def test_a_start_is_never_lost():
    graph = sparse_graph(100, 400, 6)
    good = CutSearch(graph, 1)
    good.run(500_000)
    search = CutSearch(graph, 2, start=good.solution())
    assert search.best == good.best
    search.run(1_000)
    assert search.best >= good.best


@pytest.mark.parametrize(
    "wrong",
    [
        {"start": np.zeros(2, dtype=bool)},
        {"start": np.zeros(3)},
        {"fixed": np.zeros(4, dtype=np.int8)},
        {"fixed": np.array([0, 2, 1])},
    ],
)
def test_arguments_must_fit_the_graph(wrong):
    with pytest.raises(ValueError, match="needs \\[3\\]"):
        CutSearch(from_edges(3, [0, 1, 2], [1, 2, 0]), seed=1, **wrong)


# ---- recombination -------------------------------------------------------------------------------------


def test_a_combination_is_the_best_of_its_pieces():
    for seed in range(40):
        graph = sparse_graph(12, 14, seed)
        weights, _ = cut_weights(graph)
        frozen = np.random.default_rng(seed).random(12) < 0.1
        recombiner = Recombiner(graph, weights, frozen)
        draws = np.random.default_rng(seed)
        a, b = draws.random((2, 12)) < 0.5
        b[frozen] = a[frozen]
        differs = recombiner.difference(a, b)
        child = recombiner.combine(a, b, SplitMix(seed))
        assert not (child ^ a)[~differs].any() and not differs[frozen].any()
        values = brute_values(graph, np.array([a, b, a ^ differs, child]))
        assert values[1] == values[2]  # b with some parts turned over is the same cut
        assert values[3] >= max(values[:2])
        # Pieces are independent: no other choice of whole pieces is better.
        for v in np.flatnonzero(differs):
            piece = reach(graph, differs, int(v))
            assert brute_values(graph, (child ^ piece)[None])[0] <= values[3]


def merged_draw(seed):
    """A small graph, frozen nodes, and cuts [k, n] near one another that agree on these: pieces are few."""
    graph, draws = sparse_graph(12, 16, seed), np.random.default_rng(seed)
    frozen = draws.random(12) < 0.1
    cuts = (draws.random(12) < 0.5) ^ ((draws.random((3, 12)) < 0.3) & ~frozen)
    return graph, frozen, list(cuts)


@pytest.mark.parametrize("compiled", [True, False])
def test_a_merge_finds_the_best_way_to_turn_pieces_over(compiled):
    for seed in range(30):
        graph, frozen, cuts = merged_draw(seed)
        weights, _ = cut_weights(graph)
        pieces = pieces_of(graph, cuts)
        rows, cols, count = graph.row_of(), graph.indices, int(pieces.max()) + 1
        for sides in cuts:  # whole pieces turned over
            assert len(set(zip(pieces.tolist(), (sides ^ cuts[0]).tolist()))) == count
        crossing = np.array([sides[rows] != sides[cols] for sides in cuts])
        assert (pieces[rows] == pieces[cols])[(crossing == crossing[0]).all(axis=0)].all()
        merge = Merge(graph, weights, frozen, cuts[0], pieces, 2.0, seed, compiled)
        merge.begin(200)
        while not merge.over:
            merge.run(1000)
        child, held = merge.solution(), np.unique(pieces[frozen])
        ways = all_sides(count)
        ways = ways[~ways[:, held].any(axis=1)]
        assert (child == cuts[0])[frozen].all()
        assert brute_values(graph, child[None])[0] == brute_values(graph, cuts[0] ^ ways[:, pieces]).max()


@pytest.mark.parametrize("compiled", [True, False])
def test_a_search_goes_on_from_the_midst_of_a_merge(monkeypatch, compiled):
    """With given sides; however steps are cut, steps of merges among them."""
    monkeypatch.setattr("app.search.cut.search.POOL", 4)
    monkeypatch.setattr("app.search.cut.search.SWEEPS", 5)
    graph, fixed = sparse_graph(60, 200, 4), np.full(60, -1, dtype=np.int8)
    fixed[:3] = 1, 0, 1
    whole, part = (CutSearch(graph, 9, fixed=fixed, compiled=compiled) for _ in range(2))
    whole.run(9_000)
    within = 0
    while part.steps < 9_000:
        part.run(min(37, 9_000 - part.steps))
        within += len(part.state()["merge_given"]) > 0
        second = CutSearch(graph, 77, fixed=fixed, compiled=compiled)
        second.restore(part.state())
        part = second
    assert within and whole.steps == part.steps == 9_000
    same_state(whole.state(), part.state())
    assert (part.solution()[:3] == (True, False, True)).all()
    assert cut_value(graph, part.solution()) == part.best == whole.best


def reach(graph, inside, v):
    """[n] bool: the nodes of `inside` that v reaches within it."""
    found, rows = np.zeros(graph.n, dtype=bool), graph.row_of()
    found[v] = True
    for _ in range(graph.n):
        found[graph.indices[found[rows]]] = True
        found &= inside
    return found


def test_a_pool_keeps_distinct_cuts_best_first():
    graph = sparse_graph(40, 150, 1)
    weights, _ = cut_weights(graph)
    pool = Pool(4, Recombiner(graph, weights, np.zeros(40, dtype=bool)))
    sides = np.random.default_rng(1).random((8, 40)) < 0.5
    values = brute_values(graph, sides).tolist()
    for value, one in zip(values, sides):
        pool.add(value, one, 2)
    assert pool.values == sorted(values, reverse=True)[:4]
    assert not pool.add(pool.values[0], ~pool.sides[0], 2)  # the same cut from the other side
    worse = pool.sides[0].copy()
    worse[0] ^= True
    assert not pool.add(pool.values[0] - 1, worse, 2)
    assert pool.add(pool.values[0] + 1, worse, 2) and len(pool.values) == 4


# ---- baselines and real graphs -------------------------------------------------------------------------


@pytest.mark.parametrize("name", CUT_BASELINES)
def test_a_baseline_is_a_local_or_a_greedy_optimum(name):
    for seed in range(20):
        graph = random_graph(seed, "whole")
        sides, label = CUT_BASELINES[name](graph)
        assert sides.shape == (graph.n,) and sides.dtype == bool and label
        assert cut_value(graph, sides) <= optimum(graph)
        if name in ("descent", "restarts"):
            assert (brute_values(graph, sides ^ np.eye(graph.n, dtype=bool)) <= cut_value(graph, sides)).all()
        assert np.array_equal(sides, CUT_BASELINES[name](graph)[0])


@needs_kernels
@pytest.mark.parametrize("name", CUT_BASELINES)
def test_baselines_are_the_same_compiled_and_plain(name, monkeypatch):
    monkeypatch.setattr(baselines, "TABU_FLIPS", 700)
    graphs = [random_graph(seed, kind, 30) for seed in range(6) for kind in KINDS]
    # Nodes that fill blocks of 64 and that do not, resting for long and hardly.
    graphs += [
        sparse_graph(n, each * n, n, signed) for n in (64, 65, 300) for each in (2, 9) for signed in (0, 1)
    ]
    for graph in [from_edges(0, [], []), from_edges(1, [], []), *graphs]:
        assert np.array_equal(*(CUT_BASELINES[name](graph, compiled)[0] for compiled in (True, False)))


def test_greedy_cuts_half_of_the_weight():
    for seed in range(20):
        graph = sparse_graph(60, 300, seed, signed=False)
        assert 2 * cut_value(graph, CUT_BASELINES["greedy"](graph)[0]) >= graph.edges


def test_baselines_are_in_their_order():
    graph = sparse_graph(300, 1500, 1, signed=False)
    value = {name: cut_value(graph, baseline(graph)[0]) for name, baseline in CUT_BASELINES.items()}
    assert value["descent"] <= value["restarts"] <= value["tabu"]
    search = CutSearch(graph, 1)
    search.run(2_000_000)
    assert value["tabu"] <= search.best


def gset(name):
    """A graph of the Gset."""
    stream = open_edges(str(data_dir() / "maxcut" / name))
    chunks = list(stream.chunks())
    u, v, weights = (np.concatenate(part) for part in zip(*chunks))
    return from_edges(stream.nodes, u, v, weights)


@needs_data
@pytest.mark.parametrize(("name", "best"), [("G1", 11624), ("G11", 564), ("G48", 6000)])
def test_gset(name, best):
    if name != "G48" and not cut_search.available():
        pytest.skip("needs the kernels")
    graph = gset(name)
    search = CutSearch(graph, seed=1)
    while not search.done and search.best < best and search.steps < 100_000_000:
        search.run(2_000_000)
    assert search.best == best == cut_value(graph, search.solution())


# ---- time limits ------------------------------------------------------------------------------------------


def rings_after(times):
    """A look that is true from the call after so many on."""
    asked = itertools.count(1)
    return lambda: next(asked) > times


@pytest.mark.parametrize("kind", KINDS)
def test_a_greedy_start_that_is_cut_short_is_a_cut(kind, monkeypatch):
    """The same with and without kernels; what has no side yet gets the better one, in order."""
    monkeypatch.setattr("app.search.cut.baselines.PIECE", 5)
    for seed in range(20):
        graph = random_graph(seed, kind, 30)
        whole = greedy_descent(graph)
        assert np.array_equal(whole, greedy_descent(graph, look=lambda: False))
        for times in range(4):
            found = [greedy_descent(graph, compiled, rings_after(times)) for compiled in (True, False)]
            assert np.array_equal(*found)
            assert cut_value(graph, found[0]) >= sum(weights_of(graph)) / 4


def weights_of(graph):
    """Those of all entries."""
    return (np.ones(len(graph.indices)) if graph.weights is None else graph.weights).tolist()


def test_nodes_without_a_side_follow_their_neighbours(monkeypatch):
    """A star and a path whose end has no edge to it: the first piece places the hub alone."""
    monkeypatch.setattr("app.search.cut.baselines.PIECE", 1)
    graph = from_edges(7, [0, 0, 0, 4, 5], [1, 2, 3, 5, 6])
    assert greedy_descent(graph, look=lambda: True).tolist() == [False, True, True, True, False, True, False]
