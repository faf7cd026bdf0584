"""Bounds on the chromatic number: valid, exact on small graphs, the same course with and without kernels."""

import itertools
import math

import networkx as nx
import numpy as np
import pytest
import scipy.optimize
from covers import from_networkx, random_graph
from data import data_dir, needs_data

from app import check, solve
from app.bounds.clique.roots import RootSearch
from app.bounds.coloring import fractional, parts
from app.bounds.coloring.bounds import ColoringBounds
from app.bounds.coloring.branch import ColouringSearch
from app.bounds.coloring.fractional import Fractional
from app.bounds.coloring.heaviest import TooLong, exceeds
from app.bounds.coloring.heavy_sets import HeavySets
from app.bounds.coloring.parts import Colouring
from app.graphs.derived import complement
from app.graphs.formats.readers import open_edges
from app.graphs.graph import from_edges
from app.graphs.whole import whole_graph
from app.proofs.archive import from_bytes

pytestmark = pytest.mark.mpi_skip


def queens(k):
    """The squares of a board, joined where a queen goes from one to the other."""
    squares = list(itertools.product(range(k), range(k)))
    board = nx.Graph()
    board.add_nodes_from(range(k * k))
    for (i, (a, b)), (j, (c, d)) in itertools.combinations(enumerate(squares), 2):
        if a == c or b == d or abs(a - c) == abs(b - d):
            board.add_edge(i, j)
    return board


def chromatic(graph):
    """The chromatic number, by trying all colourings up to the names of colours."""
    near = [graph.indices[a:b].tolist() for a, b in itertools.pairwise(graph.indptr.tolist())]

    def extends(colours, k):
        v = len(colours)
        if v == graph.n:
            return True
        met = {colours[u] for u in near[v] if u < v}
        free = [c for c in range(min(max(colours, default=-1) + 2, k)) if c not in met]
        return any(extends([*colours, c], k) for c in free)

    return next(k for k in itertools.count() if extends([], k))


def union(graphs):
    """Graphs side by side."""
    first = np.cumsum([0, *(graph.n for graph in graphs)])
    ends = [np.concatenate([(g.row_of() + a, g.indices + a) for g, a in zip(graphs, first)], axis=1)]
    return from_edges(int(first[-1]), *ends[0])


def is_proper(graph, colours):
    return bool((colours[graph.row_of()] != colours[graph.indices]).all())


def largest_clique(graph):
    search = RootSearch(graph, None, 0)
    search.run(1 << 40)
    return search.found()


def worked_out(graph, known, compiled=True, solution=None):
    """Bounds after all their work, each of them checked on the way."""
    bounds = ColoringBounds(graph, compiled)
    while bounds.improve(0.02, known, solution):
        assert bounds.value < known
    return bounds


def check_told(graph, bounds, chi):
    """What bounds tell is true of the graph."""
    clique = bounds.witness()
    joined = nx.Graph(list(zip(graph.row_of().tolist(), graph.indices.tolist())))
    assert all(joined.has_edge(*pair) for pair in itertools.combinations(clique.tolist(), 2))
    assert bounds.value <= chi
    assert bounds.checked == (len(clique) == bounds.value)
    for colours in (bounds.optimum(), bounds.pieces()):
        if colours is not None:
            assert colours.dtype == np.int64
            assert colours.min(initial=0) == 0
            assert is_proper(graph, colours)
    if bounds.optimum() is not None:
        assert bounds.optimum().max(initial=-1) + 1 == bounds.value == chi


# ---- the exact search --------------------------------------------------------------------------------------


def test_the_search_and_its_twin_take_the_same_course():
    draws = np.random.default_rng(3)
    for _ in range(150):
        graph = random_graph(draws, 11, 1)
        chi, clique = chromatic(graph), largest_clique(graph)[: draws.integers(0, 5)]
        for most in range(1, chi + 2):
            one, two = (ColouringSearch(graph, most, clique, compiled) for compiled in (True, False))
            until, step = 0, int(draws.integers(1, 80))
            while not one.done:
                until += step
                assert one.run(until) == two.run(until)
                assert (one.work, one.branches) == (two.work, two.branches)
            assert two.done
            assert (one.colours is not None) == (most >= chi)
            if one.colours is not None:
                assert np.array_equal(one.colours, two.colours)
                assert 0 <= one.colours.min() <= one.colours.max() < most
                assert is_proper(graph, one.colours)


@pytest.mark.parametrize("graph", [nx.mycielski_graph(5), queens(6), nx.gnp_random_graph(40, 0.4, seed=2)])
def test_larger_searches_take_the_same_course(graph):
    graph = from_networkx(graph)
    clique = largest_clique(graph)
    for most in itertools.count(len(clique)):
        one, two = (ColouringSearch(graph, most, clique, compiled) for compiled in (True, False))
        until = 0
        while not (one.run(until := until + 50_000) & two.run(until)):
            assert (one.work, one.branches) == (two.work, two.branches)
        assert (one.work, one.branches) == (two.work, two.branches)
        if one.colours is not None:
            assert np.array_equal(one.colours, two.colours)
            break


def test_more_than_64_colours():
    wheel = nx.cycle_graph(5)
    wheel.add_edges_from((hub, v) for hub in range(5, 68) for v in range(hub))
    graph = from_networkx(wheel)
    clique = largest_clique(graph)
    assert len(clique) == 65
    for compiled, most in itertools.product((True, False), (65, 66)):
        search = ColouringSearch(graph, most, clique, compiled)
        assert search.run(1 << 20)
        assert (search.colours is not None) == (most == 66)
        if most == 66:
            assert search.colours.max() == 65
            assert is_proper(graph, search.colours)


# ---- parts -------------------------------------------------------------------------------------------------


def test_a_colouring_is_put_together_of_the_best_of_each_part():
    wheel, petersen = nx.wheel_graph(6), nx.petersen_graph()
    graph = union([from_networkx(each) for each in (wheel, petersen, nx.path_graph(4), nx.empty_graph(3))])
    colouring = Colouring(graph)
    found = colouring.parts(2)
    assert [part.nodes.tolist() for part in found] == [list(range(6)), list(range(6, 16))]
    worst = np.arange(graph.n)
    for part in found:
        colouring.hear(worst)
        colours = ColouringSearch(part.graph, part.upper, part.clique(True))
        colours.run(1 << 20)
        colouring.take(part, colours.colours)
        assert is_proper(graph, colouring.colours())
    assert colouring.upper == 4
    assert [colouring.count(part) for part in found] == [4, 3]
    assert not colouring.parts(4)


# ---- fractional colourings ---------------------------------------------------------------------------------


def fractional_number(graph):
    """The fractional chromatic number, from all maximal independent sets."""
    joined = nx.Graph(list(zip(graph.row_of().tolist(), graph.indices.tolist())))
    joined.add_nodes_from(range(graph.n))
    apart = nx.complement(joined)
    sets = [[v in clique for v in range(graph.n)] for clique in nx.find_cliques(apart)]
    return -scipy.optimize.linprog(-np.ones(graph.n), np.array(sets, dtype=float), np.ones(len(sets))).fun


def fractional_bound(graph, compiled=True):
    bound = Fractional(graph, np.arange(graph.n), compiled)
    while not bound.done:
        before = bound.lower
        bound.step(1)
        assert bound.lower >= before
    return bound


@pytest.mark.skipif(not fractional.available(), reason="needs highspy")
@pytest.mark.parametrize(
    ("graph", "number"),
    [
        (nx.cycle_graph(7), 7 / 3), (nx.petersen_graph(), 2.5), (nx.mycielski_graph(5), 3.2448),
        (nx.kneser_graph(6, 2), 3), (nx.kneser_graph(7, 2), 3.5), (queens(6), 7), (nx.complete_graph(6), 6),
        (nx.complement(nx.cycle_graph(11)), 5.5), (nx.gnp_random_graph(30, 0.5, seed=4), None),
        (nx.complete_multipartite_graph(3, 4, 5), 3),
    ],
)  # fmt: skip
def test_fractional_colourings_are_rounded_up(graph, number):
    graph = from_networkx(nx.convert_node_labels_to_integers(graph))
    for compiled in (True, False):
        bound = fractional_bound(graph, compiled)
        assert bound.lower == math.ceil((number or fractional_number(graph)) - 1e-6)


@pytest.mark.skipif(not fractional.available(), reason="needs highspy")
@pytest.mark.parametrize("seed", range(8))
def test_heavy_sets_are_independent_and_the_same_without_kernels(seed):
    """All weights are right, no set is below the limit, and the heaviest of a small graph is among them."""
    graph, draws = from_networkx(nx.gnp_random_graph(14, (0.0, 0.3, 0.6)[seed % 3], seed=seed)), seed
    weights = np.random.default_rng(draws).integers(0, 9, graph.n)
    least = int(weights.max()) - 1
    one, two = (HeavySets(graph, 40, compiled).heavier(weights, least) for compiled in (True, False))
    assert one == two and one
    near = [set(graph.indices[a:b].tolist()) for a, b in itertools.pairwise(graph.indptr.tolist())]
    for members, total in one.items():
        nodes = np.flatnonzero(np.frombuffer(members, dtype=np.uint8)).tolist()
        assert total == int(weights[nodes].sum()) > least
        assert not any(near[a] & set(nodes) for a in nodes)
    subsets = (np.flatnonzero(np.array(inside)) for inside in itertools.product((0, 1), repeat=graph.n))
    free = (s for s in subsets if not any(near[a] & set(s.tolist()) for a in s.tolist()))
    assert max(one.values()) == max(int(weights[s].sum()) for s in free)


@pytest.mark.parametrize("compiled", [True, False])
def test_what_no_set_weighs_more_than_is_found_without_the_search_for_bounds(compiled):
    """The limit is right to one: on graphs of up to three words of bit sets, with weights of any size."""
    for n, p, seed in ((1, 0.0, 0), (12, 0.4, 1), (40, 0.5, 2), (70, 0.5, 3), (130, 0.7, 4), (20, 0.0, 5)):
        graph = from_networkx(nx.gnp_random_graph(n, p, seed=seed))
        weights = np.random.default_rng(seed).integers(0, (5, 1 << 20)[seed % 2], n)
        search = RootSearch(complement(graph), weights + 1, 0)
        search.run(1 << 40)
        assert search.done
        best = search.best
        assert exceeds(graph, weights + 1, best - 1, compiled)
        assert not exceeds(graph, weights + 1, best, compiled)
    with pytest.raises(TooLong):
        exceeds(graph, weights * 0 + 1, 19, compiled, most=-1)


def test_fractional_bounds_are_proved_by_their_values():
    graph = nx.gnp_random_graph(150, 0.9, seed=1)
    answer = solve(graph, "coloring", search_seconds=2, settings={"output.certificates": True})
    assert answer.bound_method == fractional.METHOD and answer.bound_verified
    found = from_bytes(answer.certificate)
    assert check(graph, answer).bound == found.lower == answer.bound > len(found.clique)


def test_fractional_colourings_of_random_graphs():
    draws = np.random.default_rng(7)
    for i in range(60):
        graph = random_graph(draws, 11, 5)
        if not graph.edges:
            continue
        bound = fractional_bound(graph, bool(i % 4))
        assert bound.lower == max(math.ceil(fractional_number(graph) - 1e-6), 2)
        assert bound.lower <= chromatic(graph)


# ---- bounds ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compiled", [True, False])
def test_graphs_of_known_chromatic_number(compiled):
    known = [
        (nx.empty_graph(0), 0), (nx.empty_graph(1), 1), (nx.empty_graph(5), 1), (nx.path_graph(9), 2),
        (nx.cycle_graph(9), 3), (nx.cycle_graph(10), 2), (nx.wheel_graph(7), 3), (nx.wheel_graph(8), 4),
        (nx.complete_graph(7), 7), (nx.complete_bipartite_graph(4, 6), 2), (nx.petersen_graph(), 3),
        (nx.mycielski_graph(4), 4), (nx.mycielski_graph(5), 5), (queens(5), 5), (queens(6), 7),
        (nx.icosahedral_graph(), 4), (nx.dodecahedral_graph(), 3), (nx.random_labeled_tree(30, seed=1), 2),
    ]  # fmt: skip
    for each, chi in known:
        graph = from_networkx(each)
        for best in {chi, graph.n}:
            bounds = worked_out(graph, best, compiled)
            assert bounds.value == chi
            check_told(graph, bounds, chi)
            assert best == chi or bounds.optimum() is not None


def test_random_graphs_alone_and_side_by_side():
    draws = np.random.default_rng(5)
    for i in range(300):
        graphs = [random_graph(draws, 9) for _ in range(1 + 2 * (i % 2))]
        chi, graph = max(map(chromatic, graphs)), union(graphs)
        known = chi + int(draws.integers(0, 3)) if graph.n else 0
        solution = draws.permutation(graph.n) if i % 3 == 0 else None
        bounds = worked_out(graph, known, bool(i % 4), solution)
        assert bounds.value == chi
        check_told(graph, bounds, chi)
        assert known == chi or np.array_equal(bounds.pieces(), bounds.optimum())


def test_without_highs(monkeypatch):
    monkeypatch.setattr(fractional, "available", lambda: False)
    graph = from_networkx(queens(6))
    assert worked_out(graph, graph.n).value == 7


def test_calls_that_have_no_time_come_to_an_end_all_the_same():
    graph = union([from_networkx(nx.mycielski_graph(5)), from_networkx(queens(6))])
    bounds = ColoringBounds(graph)
    while bounds.improve(0.0, graph.n):
        pass
    assert bounds.value == 7
    check_told(graph, bounds, 7)


def test_more_parts_than_are_worked_on_at_a_time(monkeypatch):
    monkeypatch.setattr(parts, "MOST_PARTS", 3)
    graph = union([from_networkx(nx.petersen_graph())] * 5 + [from_networkx(nx.cycle_graph(5))] * 5)
    graph = union([graph, from_networkx(nx.wheel_graph(6))])
    bounds = worked_out(graph, graph.n)
    assert bounds.value == 4
    check_told(graph, bounds, 4)


def test_before_the_first_call():
    for n in (0, 1, 4):
        bounds = ColoringBounds(from_edges(n, np.zeros(0), np.zeros(0)))
        assert (bounds.value, bounds.method) == (min(n, 1), "")
        assert (bounds.optimum(), bounds.pieces()) == (None, None)
        assert bounds.checked
        assert len(bounds.witness()) == bounds.value


def test_a_better_colouring_of_the_caller_settles_its_part():
    graph = union([from_networkx(queens(5)), from_networkx(nx.mycielski_graph(4))])
    bounds = ColoringBounds(graph)
    bounds.improve(0.0, graph.n)
    exact = worked_out(graph, graph.n).optimum()
    assert not bounds.improve(0.0, 5, exact)
    assert bounds.value == 5
    assert bounds.optimum().max() == 4


@needs_data
@pytest.mark.parametrize(("name", "chi"), [("myciel5", 6), ("queen8_8", 9), ("le450_15a", 15)])
def test_graphs_of_the_collection(name, chi):
    graph = whole_graph(open_edges(str(data_dir() / "formats" / f"{name}.col")))[0]
    bounds = worked_out(graph, chi)
    assert bounds.value == chi
    assert bounds.checked == (name == "le450_15a")
