"""Graph colouring: against all colourings of small graphs, without kernels, on any ranks; what is refused."""

import json
import sys
import tracemalloc
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from data import data_dir, needs_data
from jobs import run_job
from mpi4py import MPI

from app import TrainingRun, check, gym_environment, solve
from app.bounds.certificate import BadCertificate
from app.bounds.coloring.witness import ColoringProof, odd_walk
from app.errors import CaseError, GraphError
from app.graphs.graph import Graph
from app.problems.coloring import GraphColoring
from app.search.coloring.baselines import COLORING_BASELINES, scans
from app.search.coloring.kernel import ColoringKernel, extend
from app.search.coloring.search import (
    LEAST_MOVES,
    MOVES,
    PROBE,
    ColoringSearch,
    alike,
    overlaps,
    search_bytes,
)
from app.search.coloring.tools import ColoringTools
from app.search.coloring.walk import BLOCK, Walk, dense, walk_bytes
from app.search.label_tools import in_order
from app.toolbox import ALWAYS, Instance

QUICK = {"search.steps": 3000, "search.bound_seconds": 20.0}
alone = pytest.mark.mpi_skip


def whole(given):
    """A NetworkX graph of nodes 0..n-1 as the solver holds it."""
    n = given.number_of_nodes()
    matrix = nx.to_scipy_sparse_array(given, nodelist=range(n), format="csr", dtype=np.int8)
    matrix.sort_indices()
    indptr, indices = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)
    return Graph("drawn", n, 0, n, indptr, indices, given.number_of_edges(), None)


def drawn(seed, most=12):
    """A random graph of up to so many nodes, of any density, perhaps of several components."""
    draws = np.random.default_rng(seed)
    return nx.gnp_random_graph(int(draws.integers(1, most + 1)), float(draws.random()), seed=seed)


def least_colors(graph):
    """The chromatic number, by trying all colourings."""
    nodes = sorted(graph, key=lambda v: -graph.degree(v))

    def fits(place, colors, most):
        if place == len(nodes):
            return True
        near = {colors[u] for u in graph[nodes[place]] if u in colors}
        for color in range(min(max(colors.values(), default=-1) + 2, most)):
            if color not in near and fits(place + 1, {**colors, nodes[place]: color}, most):
                return True
        return False

    return next(k for k in range(len(nodes) + 1) if fits(0, {}, k))


def proper(graph, colors):
    return not (colors[graph.row_of()] == colors[graph.indices]).any()


def conflicts(graph, colors):
    return int((colors[graph.row_of()] == colors[graph.indices]).sum()) // 2


def classes_of(graph, answer):
    """The colours of an answer, of which every node has one; checked."""
    colors = {node: color for color, nodes in enumerate(answer.nodes) for node in nodes}
    assert sum(map(len, answer.nodes)) == len(colors) == graph.number_of_nodes()
    assert all(colors[u] != colors[v] for u, v in graph.edges)
    return colors


# ---- answers ----------------------------------------------------------------------------------------------


@alone
@pytest.mark.parametrize("seed", range(40))
def test_small_graphs_take_as_few_colors_as_there_are_to_take(seed):
    graph = drawn(seed)
    answer = solve(graph, "coloring", settings=QUICK)
    classes_of(graph, answer)
    assert answer.objective == answer.bound == least_colors(graph) == len(answer.nodes)
    assert answer.optimal


@alone
@pytest.mark.parametrize(
    ("graph", "least"),
    [
        (nx.empty_graph(3), 1), (nx.complete_graph(7), 7), (nx.cycle_graph(9), 3), (nx.petersen_graph(), 3),
        (nx.complete_multipartite_graph(2, 3, 4), 3), (nx.grid_2d_graph(6, 7), 2),
        (nx.mycielski_graph(4), 4), (nx.wheel_graph(8), 4),
        (nx.disjoint_union(nx.cycle_graph(5), nx.path_graph(4)), 3),
    ],
)  # fmt: skip
def test_graphs_whose_colors_are_known(graph, least):
    answer = solve(graph, "coloring", settings=QUICK)
    classes_of(graph, answer)
    assert (answer.objective, answer.bound) == (least, least)


@alone
def test_settings_of_reductions_and_kernels_leave_proper_colorings():
    graph = nx.gnp_random_graph(60, 0.2, seed=3)
    found = [
        solve(graph, "coloring", settings=QUICK | more)
        for more in ({}, {"run.kernels": "plain"}, {"search.reductions": False}, {"search.bounds": False})
    ]
    for answer in found:
        classes_of(graph, answer)
    assert found[0].digest == found[1].digest == found[3].digest
    assert found[0].objective == found[2].objective


@pytest.mark.parametrize("starts", [1, 3])
def test_any_ranks_have_the_same_coloring(starts):
    graph, settings = nx.gnp_random_graph(70, 0.3, seed=5), {"search.steps": 4000, "search.starts": starts}
    settings["search.bound_seconds"] = 0.2
    one = solve(graph, "coloring", settings=settings, comm=MPI.COMM_SELF)
    every = solve(graph, "coloring", settings=settings, comm=MPI.COMM_WORLD)
    classes_of(graph, every)
    assert (one.nodes, one.digest) == (every.nodes, every.digest)


@alone
def test_a_complement_is_parted_into_cliques(tmp_path):
    graph = nx.relabel_nodes(nx.caveman_graph(4, 5), {i: i + 1 for i in range(20)})
    nx.write_edgelist(graph, tmp_path / "g.txt", data=False)
    answer = solve(str(tmp_path / "g.txt"), "coloring", settings=QUICK | {"graph.complement": True})
    assert answer.objective == answer.bound == 4
    assert all(graph.has_edge(u, v) for part in answer.nodes for u in part for v in part if u < v)


# ---- the pieces -------------------------------------------------------------------------------------------


@alone
@pytest.mark.parametrize("name", COLORING_BASELINES)
def test_heuristics_are_proper_and_the_same_without_kernels(name, compiled):
    for seed in range(40):
        graph = whole(drawn(seed, 40))
        colors, label = COLORING_BASELINES[name](graph)
        assert proper(graph, colors) and label
        assert colors.tolist() == COLORING_BASELINES[name](graph, compiled=False)[0].tolist()


@alone
@pytest.mark.parametrize(
    ("n", "entries", "quick"),
    [
        (0, 0, True), (1, 0, True), (4000, 8_000_000, True), (4000, 14_400_000, False),
        (16_000, 160_000, True), (17_000, 170_000, False), (16_000, 128_000_000, False), (2, 2, True),
    ],
)  # fmt: skip
def test_large_and_dense_graphs_are_not_colored_class_by_class(n, entries, quick):
    indices = np.broadcast_to(np.int32(0), entries)  # sizes alone count
    assert scans(Graph("sizes", n, 0, n, np.zeros(n + 1, np.int64), indices, entries // 2, None)) == quick


@alone
def test_a_star_of_millions_takes_two_colors(compiled):
    n = 2_200_000
    indptr, indices = np.append(0, np.arange(n - 1, 2 * n - 1)), np.append(np.arange(1, n), np.zeros(n - 1))
    star = Graph("star", n, 0, n, indptr, indices.astype(np.int32), n - 1, None)
    colors, _ = COLORING_BASELINES["dsatur"](star)
    assert colors[0] == 0 and (colors[1:] == 1).all()


@alone
@pytest.mark.parametrize("seed", range(25))
def test_walks_keep_their_counts_and_are_the_same_without_kernels(seed, compiled):
    graph, draws = whole(drawn(seed, 40)), np.random.default_rng(seed)
    k = int(draws.integers(1, 6))
    start = draws.integers(0, k, graph.n)
    walks = [Walk(graph, each) for each in (True, False)]
    for walk in walks:
        walk.begin(k, start, seed)
    for steps in (1, 2, 7, 200):
        for walk in walks:
            walk.run(steps)
            assert walk.edges == conflicts(graph, walk.color)
            assert walk.best_edges == conflicts(graph, walk.best_color) <= walk.edges
        for name in ("color", "best_color", "near", "place", "list", "until"):
            assert np.array_equal(*(getattr(walk, name) for walk in walks)), name
        assert walks[0].random == walks[1].random


@alone
@pytest.mark.parametrize(("k", "n", "degree"), [(2, 900, 4), (3, 700, 9), (17, 640, 200)])
def test_walks_with_many_conflicts_make_the_same_moves_without_kernels(k, n, degree, compiled):
    """More nodes in conflict than one block of places holds, at first and, of two colours, for long."""
    graph = whole(nx.random_regular_graph(degree, n, seed=k))
    assert dense(graph) == (degree == 200)
    start = np.random.default_rng(k).integers(0, k, graph.n)
    walks = [Walk(graph, each) for each in (True, False)]
    for walk in walks:
        walk.begin(k, start, 5)
        assert walk.conflicts > 4 * BLOCK and walk.edges == conflicts(graph, start)
    for steps in (1, 30, 300, 900):
        for walk in walks:
            walk.run(steps)
        for name in ("color", "best_color", "near", "place", "list", "until"):
            assert np.array_equal(*(getattr(walk, name) for walk in walks)), name
        assert walks[0].random == walks[1].random and walks[0].best_edges == walks[1].best_edges


@alone
@pytest.mark.parametrize("seed", range(25))
def test_searches_depend_on_their_steps_and_not_on_how_these_are_cut(seed, compiled):
    graph = whole(drawn(seed, 30))
    start = COLORING_BASELINES["max_degree"](graph)[0]
    whole_run, slices, plain = (ColoringSearch(graph, start, seed, 1, each) for each in (True, True, False))
    whole_run.run(3000)
    plain.run(3000)
    for _ in range(100):
        slices.run(30)
    for other in (slices, plain):
        assert (other.steps, other.best, other.found_at) == (
            whole_run.steps,
            whole_run.best,
            whole_run.found_at,
        )
        assert other.solution().tolist() == whole_run.solution().tolist()
    assert proper(graph, whole_run.solution())
    assert whole_run.best == int(whole_run.solution().max()) + 1


@alone
def test_walks_on_large_graphs_tell_where_moves_are_dear():
    graph = whole(nx.circulant_graph(9001, [1, 2]))
    search = ColoringSearch(graph, COLORING_BASELINES["dsatur"](graph)[0], 1, 3)
    assert search.even_steps == PROBE
    search.run(PROBE)
    assert search.even_steps == MOVES * graph.n - PROBE
    small = whole(nx.petersen_graph())
    for least in (3, 10):  # small, and done
        assert ColoringSearch(small, np.arange(10), 1, least).even_steps == ALWAYS


@alone
def test_a_search_goes_on_from_what_it_hears():
    graph = whole(nx.gnp_random_graph(30, 0.3, seed=1))
    better = COLORING_BASELINES["dsatur"](graph)[0]
    search = ColoringSearch(graph, np.arange(30), 1, 1)
    search.hear(better)
    assert search.best == int(better.max()) + 1
    search.hear(np.arange(30))
    assert search.solution().tolist() == better.tolist()


@alone
@pytest.mark.parametrize("seed", range(40))
def test_reductions_lift_every_coloring_of_the_core(seed):
    graph, draws = whole(drawn(seed, 40)), np.random.default_rng(seed)
    for compiled in (True, False):
        kernel = ColoringKernel(graph, compiled)
        kernel.reduce(lambda: None)
        inside = kernel.clique
        assert all(
            v in graph.indices[graph.indptr[u] : graph.indptr[u + 1]]
            for u in inside
            for v in inside
            if u != v
        )
        core = np.full(kernel.core.n, -1, dtype=np.int32)
        extend(kernel.core, core, draws.permutation(kernel.core.n), compiled)
        lifted = kernel.lift(core)
        assert proper(graph, lifted)
        assert len(np.unique(lifted)) == max(len(np.unique(core)), kernel.least)
        assert sum(kernel.counts.values()) == graph.n - kernel.core.n


@alone
def test_what_reductions_know_is_a_bound_before_others_are_looked_for():
    tools = ColoringTools(Instance(whole(nx.mycielski_graph(5))), GraphColoring())
    assert tools.bounds().method == ""
    tools.reduce(lambda: None)
    bounds = tools.bounds()
    assert tools.core.n and (bounds.value, bounds.method) == (3, "odd cycle")
    assert tools.prove(bounds.proof()) == 3


@alone
def test_the_bytes_of_a_walk_are_those_that_it_takes():
    graph = whole(nx.gnp_random_graph(300, 0.3, seed=1))
    start = np.arange(graph.n) % 199
    tracemalloc.start()
    walk = Walk(graph)
    walk.begin(200, start, 1)
    walk.begin(199, start, 1)  # where the other one is not held as well
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0.7 < taken / walk_bytes(graph, 200) < 1.1


@alone
def test_the_bytes_of_a_search_are_those_that_it_takes(compiled):
    graph = whole(nx.complete_graph(300))
    tracemalloc.start()
    search = ColoringSearch(graph, np.arange(300), 1, 1)
    search.run(3 * LEAST_MOVES)  # more than a generation
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert search._generation and 0.7 < taken / search_bytes(graph, 300) < 1.1


@alone
@pytest.mark.parametrize("seed", range(30))
def test_closed_walks_of_odd_length_are_found_where_there_are_any(seed):
    draws, given = np.random.default_rng(seed), drawn(seed, 30)
    if seed % 2:  # without edges inside of either half: bipartite
        half = draws.random(given.number_of_nodes()) < 0.5
        given.remove_edges_from([(u, v) for u, v in given.edges if half[u] == half[v]])
    walk = odd_walk(whole(given))
    assert bool(len(walk)) != nx.is_bipartite(given)
    none = np.empty(0, dtype=np.int64)
    ColoringProof(none, walk, none, none, 0, True).check(whole(given))


@alone
def test_graphs_without_triangles_are_proved_by_an_odd_cycle():
    answer = solve(nx.cycle_graph(10_001), "coloring", settings=QUICK | {"output.certificates": True})
    assert (answer.objective, answer.bound, answer.bound_method) == (3, 3, "odd cycle")
    assert answer.bound_verified
    assert check(nx.cycle_graph(10_001), answer).bound == 3


@alone
def test_dominated_nodes_have_the_colors_of_others():
    graph = nx.mycielski_graph(5)
    graph.add_edges_from((100 + v, u) for v in list(graph) for u in list(graph[v]))  # twins
    graph = nx.convert_node_labels_to_integers(graph)
    kernel = ColoringKernel(whole(graph))
    kernel.reduce(lambda: None)
    assert kernel.counts["dominated"] >= 23
    assert kernel.core.n <= 23


@alone
@pytest.mark.parametrize("seed", range(20))
def test_any_coloring_is_repaired(seed):
    graph, draws = whole(drawn(seed, 30)), np.random.default_rng(seed)
    tools = ColoringTools(Instance(graph), GraphColoring())
    tools.reduce(lambda: None)
    given = draws.integers(0, 4, graph.n)
    repaired = tools.restrict(given)
    assert proper(tools.core, repaired)
    assert tools.fault(tools.lift(repaired)) is None
    fine = in_order(COLORING_BASELINES["dsatur"](graph)[0])
    assert tools.restrict(fine).tolist() == in_order(fine[tools.kernel.nodes]).tolist()
    large = tools.restrict(np.where(given, given, np.iinfo(np.int64).max))  # any numbers may be colours
    assert proper(tools.core, large)


@alone
def test_children_have_the_largest_classes_of_both():
    """By hand: four classes of one state, sizes 4, 3, 2, 1, and the same nodes cut across by the other's."""
    search = ColoringSearch(whole(nx.empty_graph(10)), np.arange(10) % 5, 1, 1)
    first = np.array([0, 0, 0, 0, 1, 1, 1, 2, 2, 3], dtype=np.int32)
    second = np.array([0, 1, 1, 1, 1, 2, 2, 2, 3, 3], dtype=np.int32)
    assert overlaps(first, second, 4).tolist() == [[1, 3, 0, 0], [0, 1, 2, 0], [0, 0, 1, 1], [0, 0, 0, 1]]
    # 0..3 of the first; of what is left 5, 6, 7 of the second; then one class of what is left of each
    assert search._crossing(first, second).tolist()[:8] == [0, 0, 0, 0, 2, 1, 1, 1]
    assert search._crossing(first, second).tolist()[8:] == [3, 3]
    assert search._crossing(second, first).tolist()[1:5] == [0] * 4


@alone
def test_both_states_go_on_with_a_color_less(compiled):
    graph = whole(nx.gnp_random_graph(40, 0.5, seed=1))
    search = ColoringSearch(graph, np.arange(40), 1, 1)
    while search.best > 12:
        before, (held,) = search.best, search._pair[-1:] or search._waiting[-1:]
        search.run(1)
        if search.best == before - 1:
            (state,) = search._waiting  # beside the one that is walked from
            assert state.min() >= 0 and state.max() <= search.best - 2
            sizes = np.bincount(held, minlength=search.best)
            assert (state == held).sum() >= 40 - sizes.min() - sizes[-1]
    assert proper(graph, search.solution())


@alone
def test_walks_grow_where_states_become_alike(compiled, monkeypatch):
    monkeypatch.setattr("app.search.coloring.search.DOUBLINGS", 2)
    graph = whole(nx.complete_graph(12))  # has no colouring with fewer
    search = ColoringSearch(graph, np.arange(12), 1, 1)
    lengths = []
    while len(lengths) < 4:
        if search._left not in lengths[-1:]:
            lengths.append(search._left)
        search.run(search._left)
    assert lengths == [LEAST_MOVES, 2 * LEAST_MOVES, 4 * LEAST_MOVES, LEAST_MOVES]


@alone
def test_states_are_alike_whatever_their_colors_are_called():
    first = np.array([0, 0, 1, 1, 2, 2], dtype=np.int32)
    assert alike(first, (first + 1) % 3, 3)
    assert not alike(first, np.array([0, 1, 2, 0, 1, 2], dtype=np.int32), 3)


@alone
def test_what_proves_a_bound_is_not_believed():
    graph = whole(nx.complete_graph(4))
    tools = ColoringTools(Instance(graph), GraphColoring())
    none = np.empty(0, dtype=np.int64)
    proof = ColoringProof(np.array([0, 2, 3]), none, none, none, 0, True)
    assert tools.prove(proof) == 3
    assert tools.prove(replace(proof, clique=none, walk=np.array([0, 1, 2, 3, 1]))) == 3
    for walk in ([0, 1], [0, 1, 2, 3], [0, 0, 1], [0], [0, 1, 4], [0, 1, -1]):
        with pytest.raises(BadCertificate):
            tools.prove(replace(proof, walk=np.array(walk)))
    for nodes in ([0, 0], [0, 4], [-1]):
        with pytest.raises(BadCertificate):
            tools.prove(replace(proof, clique=np.array(nodes)))
    some = replace(proof, clique=none, nodes=np.array([0, 1, 3]), values=np.array([2, 3, 2]), most=3)
    assert tools.prove(some) == 3  # 7 / 3
    assert [tools.prove(replace(some, most=most)) for most in (4, 1 << 63, (1 << 64) - 1)] == [2, 1, 1]
    for wrong in (
        {"most": 2}, {"most": 0}, {"nodes": np.array([0, 1, 4])}, {"nodes": np.array([1, 0, 3])},
        {"nodes": np.array([0, 1])}, {"values": np.array([0, 3, 2])}, {"values": np.array([2, 3, 1 << 41])},
    ):  # fmt: skip
        with pytest.raises(BadCertificate):
            tools.prove(replace(some, **wrong))
    path = ColoringTools(Instance(whole(nx.path_graph(4))), GraphColoring())
    with pytest.raises(BadCertificate, match="no edge joins nodes 0 and 2"):
        path.prove(ColoringProof(np.array([0, 2]), none, none, none, 0, True))


# ---- what a caller hands in -------------------------------------------------------------------------------


@alone
def test_answers_are_begun_with_and_checked_in_any_form(tmp_path):
    graph = nx.relabel_nodes(nx.petersen_graph(), {i: f"n{i}" for i in range(10)})
    answer = solve(graph, "coloring", settings=QUICK)
    colors = classes_of(graph, answer)
    answer.save(tmp_path / "colors.txt")
    assert (tmp_path / "colors.txt").read_text().splitlines()[0] == "n0 0"
    for form in (
        answer,
        colors,
        answer.nodes,
        [set(part) for part in answer.nodes],
        str(tmp_path / "colors.txt"),
    ):
        assert check(graph, form, "coloring").objective == 3
        if not isinstance(form, str):
            again = solve(graph, "coloring", start=form, settings={"search.steps": 0})
            assert again.objective == 3
    greedy = nx.greedy_color(graph)
    assert check(graph, greedy, "coloring").objective == max(greedy.values()) + 1


def test_ranks_may_name_the_same_classes_in_another_order():
    graph = nx.relabel_nodes(nx.petersen_graph(), {i: f"n{i}" for i in range(10)})
    colors = nx.greedy_color(graph)
    if MPI.COMM_WORLD.rank % 2:
        colors = dict(reversed(colors.items()))
    classes = [[v for v in colors if colors[v] == color] for color in sorted(set(colors.values()))]
    for form in (colors, classes):
        assert check(graph, form, "coloring").objective == len(classes)
        begun = solve(graph, "coloring", start=form, settings={"search.steps": 0, "search.bounds": False})
        assert begun.objective <= len(classes)


@alone
@pytest.mark.parametrize(
    ("given", "said"),
    [
        (dict.fromkeys(range(5), 0), "gives both ends of edge"),
        ({0: 0, 1: 1, 2: 0, 3: 1}, "node 4 has no color"),
        ({0: 0, 1: 1, 2: 0, 3: 1, 4: -1}, "the color -1 of 4"),
        ({0: 0, 1: 1, 2: 0, 3: 1, 4: "red"}, "the color 'red' of 4"),
        ({0: 0, 1: 1, 2: 0, 3: 1, 9: 2}, "9"),
        ([0, 1, 0, 1, 2], "a list of lists of nodes"),
        ([[0, 2], [1, 3], [4, 0]], "2 times"),
        (7, "a list of lists of nodes"),
    ],
)  # fmt: skip
def test_answers_that_are_none_are_refused(given, said):
    with pytest.raises(GraphError, match=said):
        check(nx.cycle_graph(5), given, "coloring")


@alone
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0 0\n1 1\n", "1 nodes are missing"), ("0 0\n0 1\n", ":2: "), ("0 x\n", "whole number"),
        ("0 -1\n", "whole number"), ("9 0\n", "node 9 is not in the graph"), ("0\n", "a node id and its"),
    ],
)  # fmt: skip
def test_files_of_colors_that_are_none_are_refused(text, said, tmp_path):
    (tmp_path / "colors.txt").write_text(text)
    with pytest.raises(GraphError, match=said):
        check(nx.path_graph(3), str(tmp_path / "colors.txt"), "coloring")


@alone
@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"inside": [0]}, "inside"), ({"node_weights": [1, 2, 3]}, "coloring counts none"),
        ({"settings": {"policy.weights": "train"}}, "no policy"), ({"weights": "some.npz"}, "no policy"),
        ({"settings": {"search.solver": "policy"}}, 'search.solver = "full" would be right'),
        ({"settings": {"search.heuristic": "greedy"}}, "dsatur"),
    ],
)  # fmt: skip
def test_what_has_no_meaning_is_refused(more, said):
    with pytest.raises(CaseError, match=said):
        solve(nx.path_graph(3), "coloring", **more)


@alone
def test_no_policy_learns_to_color():
    graphs = [nx.cycle_graph(5)]
    for call in (
        lambda: TrainingRun(problem="coloring", graphs=graphs).run(),
        lambda: gym_environment(graphs, "coloring"),
    ):
        with pytest.raises(CaseError, match="no policy answers coloring"):
            call()


# ---- runs -------------------------------------------------------------------------------------------------


@alone
def test_a_run_leaves_colors_that_it_proves_and_begins_with(tmp_path):
    graph = nx.relabel_nodes(nx.gnp_random_graph(40, 0.15, seed=2), {i: i + 10 for i in range(40)})
    nx.write_edgelist(graph, tmp_path / "g.txt", data=False)
    command = [
        sys.executable,
        "run.py",
        "inputs/coloring.toml",
        f"graph.path={tmp_path}/g.txt",
        "search.steps=2000",
    ]
    quick = ["output.plots=false", "search.bound_seconds=1"]
    code, printed = run_job([*command, *quick, "output.certificates=true", "--out", str(tmp_path / "run")])
    assert code == 0, printed
    (entry,) = json.loads((tmp_path / "run/result.json").read_text())["instances"]
    lines = (tmp_path / "run/solution/g.txt").read_text().split("\n")[:-1]
    colors = dict(map(int, line.split()) for line in lines)
    assert all(colors[u] != colors[v] for u, v in graph.edges)
    assert entry["objective"] == len(set(colors.values())) >= entry["bound"]
    code, printed = run_job([*command[:2], str(tmp_path / "run/case.toml"), "--check", str(tmp_path / "run")])
    assert code == 0, printed
    begun = [*command, *quick, f"search.start={tmp_path}/run/solution/g.txt", "--dry-run"]
    code, printed = run_job(begun)
    assert code == 0, printed


@alone
@needs_data
@pytest.mark.parametrize(
    ("name", "steps", "least"), [("myciel5", 1000, 6), ("queen8_8", 300_000, 9), ("le450_15a", 3_000_000, 15)]
)
def test_graphs_of_dimacs_take_the_known_colors(name, steps, least, compiled):
    settings = {"search.steps": steps, "search.bounds": False}
    answer = solve(str(data_dir() / "formats" / f"{name}.col"), "coloring", settings=settings)
    assert answer.objective == least
