"""Steiner trees: against all trees of small graphs, without kernels, on any ranks; files; what is refused."""

import itertools
import json
import sys

import networkx as nx
import numpy as np
import pytest
from helpers import instance_of
from jobs import run_job
from mpi4py import MPI
from test_certificates import altered, refused_or_valid

from app import TrainingRun, check, solve
from app.bounds.feasible import fault_of_tree
from app.errors import CaseError, GraphError
from app.graphs.formats.readers import open_edges
from app.graphs.graph import from_edges
from app.graphs.steiner import canonical_tree, ends_of, rooted_at, steiner_of, tree_of_edges
from app.problems.steiner import SteinerTree
from app.proofs import archive
from app.reductions.steiner.reducer import SteinerReducer
from app.reductions.steiner.verify import verify_log
from app.search.steiner.baselines import distance_network, joined, shortest_paths
from app.search.steiner.search import SteinerSearch, _edge_numbers
from app.search.steiner.tools import SteinerTools
from app.search.steiner.trees import Trees

QUICK = {"search.steps": 20_000, "search.bound_seconds": 3.0}
alone = pytest.mark.mpi_skip
STP = """33D32945 STP File, STP Format Version 1.0

SECTION Comment
Name "small"
END

Section Graph
Nodes 5
Edges 6
E 1 2 10
E 2 3 1.5
E 3 4 2
E 4 1 30
E 4 5 1
E 2 1 9
END

SECTION Terminals
Terminals 2
T 1
T 4
END
EOF
"""


def drawn(seed, n=0):
    """A random graph, lengths of its edges (some without) and terminals of one component."""
    draws = np.random.default_rng(seed)
    n = n or int(draws.integers(2, 9))
    graph = nx.gnm_random_graph(n, int(draws.integers(n - 1, n * (n - 1) // 2 + 1)), seed=seed)
    if seed % 3:
        for edge in graph.edges.values():
            edge["weight"] = int(draws.integers(1, 12)) / (4 if seed % 2 else 1)
    part = sorted(max(nx.connected_components(graph), key=len))
    count = int(draws.integers(1, len(part) + 1)) if n < 10 else n // 5
    return graph, draws.permutation(part)[:count].tolist()


def whole(graph):
    """The graph as the solver holds it."""
    edges = np.array(list(graph.edges), dtype=np.int64).reshape(-1, 2)
    weights = [data.get("weight", 1) for *_, data in graph.edges(data=True)]
    return from_edges(graph.number_of_nodes(), *edges.T, np.array(weights, dtype=np.float32))


def question(seed, n=60):
    graph, terminals = drawn(seed, n)
    return steiner_of(whole(graph), np.array(terminals)).core


def shortest(graph, terminals):
    """The length of the shortest tree: of all nodes beside terminals some, joined by a spanning tree."""
    rest, found = [node for node in graph if node not in terminals], []
    for count in range(len(rest) + 1):
        for some in itertools.combinations(rest, count):
            inner = graph.subgraph([*terminals, *some])
            if nx.is_connected(inner):
                found.append(nx.minimum_spanning_tree(inner).size(weight="weight"))
    return min(found)


def of_core(core):
    """A core as NetworkX has it, and its terminals."""
    graph = nx.empty_graph(core.n)
    triples = zip(core.row_of().tolist(), core.indices.tolist(), core.lengths.tolist())
    graph.add_weighted_edges_from(triples)
    return graph, core.terminals.tolist()


def length_of(graph, terminals, answer):
    """Of an answer, a tree that holds all terminals."""
    tree = nx.Graph(answer.edges)
    tree.add_nodes_from(answer.nodes)
    assert nx.is_tree(tree) and set(terminals) <= set(tree) == set(answer.nodes)
    return sum(graph.edges[edge].get("weight", 1) for edge in answer.edges)


def parents_of(graph, tree):
    """Parents of a NetworkX tree."""
    edges = np.array(tree.edges, dtype=np.int64).reshape(-1, 2)
    return tree_of_edges(graph.number_of_nodes(), *edges.T, next(iter(tree)))


# ---- answers ----------------------------------------------------------------------------------------------


@alone
@pytest.mark.parametrize("seed", range(20))
def test_small_graphs_have_shortest_trees(seed):
    graph, terminals = drawn(seed)
    answer = solve(graph, "steiner", terminals=terminals, settings=QUICK)
    assert length_of(graph, terminals, answer) == answer.objective == shortest(graph, terminals)
    assert answer.optimal and answer.bound_verified


@alone
@pytest.mark.parametrize(
    ("graph", "terminals", "length"),
    [
        (nx.path_graph(9), [0, 8], 8),
        (nx.star_graph(6), range(1, 7), 6),
        (nx.cycle_graph(10), [0, 3, 6], 6),
        (nx.complete_graph(7), range(7), 6),
        (nx.grid_2d_graph(5, 5), [(0, 0), (0, 4), (4, 0), (4, 4)], 12),
        (nx.empty_graph(1), [0], 0),
        (nx.empty_graph(5), [3], 0),
        (nx.disjoint_union(nx.path_graph(4), nx.cycle_graph(4)), [4, 6], 2),
    ],
)
@pytest.mark.parametrize("reductions", [True, False])
def test_graphs_whose_shortest_tree_is_known_are_proved(graph, terminals, length, reductions):
    keys = QUICK | {"search.reductions": reductions, "output.certificates": True}
    answer = solve(graph, "steiner", terminals=terminals, settings=keys)
    assert answer.objective == length_of(graph, terminals, answer) == length
    assert answer.optimal and answer.bound_verified
    assert check(graph, answer, terminals=terminals).optimal


@alone
def test_settings_of_kernels_and_bounds_leave_the_same_answers():
    graph, terminals = drawn(3, 60)
    keys = {"search.steps": 20_000, "search.bound_seconds": 0.1}
    found = [
        solve(graph, "steiner", terminals=terminals, settings=keys | more)
        for more in ({}, {"run.kernels": "plain"}, {"search.bounds": False})
    ]
    assert len({each.digest for each in found}) == 1
    assert length_of(graph, terminals, found[0]) == found[0].objective
    assert set(found[0].baselines) == {"shortest paths", "distance network"}
    assert found[0].objective <= min(found[0].baselines.values())


def test_ranks_agree_with_one_rank():
    graph, terminals = drawn(7, 80)
    keys = {"search.steps": 30_000, "search.starts": 3, "search.bounds": False}
    answer = solve(graph, "steiner", terminals=terminals, settings=keys)
    one = solve(graph, "steiner", terminals=terminals, settings=keys, comm=MPI.COMM_SELF)
    assert answer.digest == one.digest and answer.edges == one.edges


@alone
def test_an_answer_is_never_worse_than_where_it_starts():
    graph, terminals = drawn(5, 60)
    keys = QUICK | {"search.bounds": False}
    first = solve(graph, "steiner", terminals=terminals, settings=keys)
    for start in (first, first.edges, nx.Graph(first.edges)):
        again = solve(graph, "steiner", terminals=terminals, start=start, settings=keys | {"search.steps": 1})
        assert again.objective <= first.objective
    some = list(graph.edges)[:1]
    assert solve(graph, "steiner", terminals=terminals, start=some, settings=keys).feasible  # it is repaired


@alone
def test_names_and_decimals():
    graph = nx.Graph(
        [("a b", "c", {"weight": 0.1}), ("c", "d", {"weight": 0.2}), ("a b", "d", {"weight": 0.4})]
    )
    answer = solve(graph, "steiner", terminals=["a b", "d"], settings=QUICK)
    assert answer.objective == 0.3 and answer.text == "a b\tc\nc\td\n" and answer.optimal


# ---- files ------------------------------------------------------------------------------------------------


@alone
def test_a_run_of_a_steinlib_file_writes_edges_that_can_be_checked(tmp_path):
    (tmp_path / "small.stp").write_text(STP)
    case = ["inputs/steiner.toml", f'graph.path="{tmp_path}/small.stp"', "search.steps=20000"]
    out = tmp_path / "run"
    job = [sys.executable, "run.py", *case, "output.certificates=true", f"--out={out}"]
    code, told = run_job(job, 120)
    assert code == 0 and "1 edges are longer than others" in " ".join(told.split())
    (entry,) = json.loads((out / "result.json").read_text())["instances"]
    assert entry["objective"] == 12.5 == entry["bound"] and entry["bound_verified"]
    assert (out / "solution" / "small.txt").read_text() == "1 2\n2 3\n3 4\n"
    code, told = run_job([sys.executable, "run.py", out / "case.toml", "--check", out], 120)
    assert code == 0 and "bounds of 1 are proved" in told
    (out / "solution" / "small.txt").write_text("1 4\n")
    code, told = run_job([sys.executable, "run.py", out / "case.toml", "--check", out], 120)
    assert code == 2 and "has an objective of 30.0, where result.json says 12.5" in told


@alone
def test_terminals_of_a_file_beside_a_graph(tmp_path):
    (tmp_path / "g.txt").write_text("p q 2\nq r 2\np r 5\nr s 1\n")
    (tmp_path / "t.txt").write_text("# who\np\nr\n")
    keys = QUICK | {"graph.ids": "names", "graph.terminals": str(tmp_path / "t.txt")}
    answer = solve(str(tmp_path / "g.txt"), "steiner", settings=keys)
    assert answer.objective == 4 and answer.edges == [("p", "q"), ("q", "r")]
    answer.save(tmp_path / "tree.txt")
    assert check(str(tmp_path / "g.txt"), tmp_path / "tree.txt", "steiner", settings=keys).optimal
    (tmp_path / "t.txt").write_text("\ufeffp\r\nr\r\n", encoding="utf-8")  # as some editors write it
    assert solve(str(tmp_path / "g.txt"), "steiner", settings=keys).objective == 4
    (tmp_path / "t.txt").write_text("p\nx\n")
    with pytest.raises(GraphError, match=r"t.txt:2: node x is not in the graph"):
        solve(str(tmp_path / "g.txt"), "steiner", settings=keys)


def test_terminals_that_are_drawn_are_those_of_the_largest_component():
    graph = nx.disjoint_union(nx.path_graph(3), nx.path_graph(30))
    found = [
        solve(graph, "steiner", settings=QUICK | {"problem.terminals": 4, "seed": seed}) for seed in (1, 2)
    ]
    assert all(min(each.nodes) >= 3 and each.objective == len(each.edges) for each in found)
    assert found[0].nodes != found[1].nodes
    every = solve(graph, "steiner", settings=QUICK | {"problem.terminals": 99})
    assert every.nodes == list(range(3, 33))


@alone
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Nodes 5", "Nodes 4", r"small.stp:14: found node id 5 outside 1..4"),
        ("Edges 6", "Edges 7", r"small.stp:9: the graph states 7 edges, found 6 lines"),
        ("E 4 5 1", "A 4 5 1", r"small.stp:14: 'A 4 5 1' holds arcs"),
        ("E 4 5 1", "E 4 5", r"small.stp:14: found 2 fields where 3 are expected"),
        ("E 4 5 1", "E 4 5 nan", r"small.stp:14: found a weight that is no finite number"),
        ("T 4", "T 6", r"small.stp:21: found node id 6 outside 1..5"),
        ("T 4", "T 1", r"small.stp:21: terminal 1 is named twice"),
        ("T 4", "TQ 4 3", r"small.stp:21: found 'TQ 4 3'; 'Terminals K'"),
        ("Terminals 2", "Terminals 3", r"3 terminals are stated, found 2 lines"),
        ("Terminals\nTerm", "MaximumDegrees\nTerm", r"small.stp:18: found 'SECTION MaximumDegrees'"),
        ("END\nEOF", "", r"section terminals has no END"),
        ("Nodes 5", "Nodes 5\nNodes 5", r"small.stp:9: found 'Nodes 5' again"),
        (STP, "SECTION Graph\n", r"section graph has no END"),
    ],
)
def test_files_that_are_wrong_are_refused_by_line(tmp_path, old, new, message):
    assert old in STP
    (tmp_path / "small.stp").write_text(STP.replace(old, new))
    with pytest.raises(GraphError, match=message):
        solve(str(tmp_path / "small.stp"), "steiner", settings=QUICK)


@alone
def test_files_of_pace_and_of_other_problems(tmp_path):
    (tmp_path / "a.gr").write_text(STP[STP.index("Section Graph") :].replace("1.5", "2"))
    opened = open_edges(str(tmp_path / "a.gr"))
    assert (opened.format, opened.nodes, opened.terminals.tolist()) == ("stp", 5, [0, 3])
    (u, v, w), *rest = opened.chunks()
    assert not rest and sorted(zip(u.tolist(), v.tolist(), w.tolist())) == [
        (0, 3, 30) if pair == (3, 0) else pair
        for pair in [(1, 0, 9), (1, 2, 2), (2, 3, 2), (3, 0, 30), (3, 4, 1)]
    ]
    assert solve(str(tmp_path / "a.gr"), "mvc", settings={"search.steps": 100}).objective == 2
    (tmp_path / "b.stp").write_text(STP.replace("T 1\n", "Root 1\nT 1\n"))
    with pytest.warns(UserWarning, match="'Root 1' is not read"):
        solve(str(tmp_path / "b.stp"), "steiner", settings=QUICK)


# ---- refusals ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"search.solver": "policy"}, "no policy answers it"),
        ({"problem.terminals": -1}, "problem.terminals"),
        ({"problem.name": "mvc", "problem.terminals": 3}, 'only problem.name = "steiner" has terminals'),
        ({"graph.terminals": __file__}, "of a graph in memory terminals= would be right"),
    ],
)
def test_what_is_asked_for_wrongly_is_refused(keys, message):
    with pytest.raises(CaseError, match=message):
        solve(nx.path_graph(4), settings={"problem.name": "steiner"} | keys)


def test_graphs_terminals_and_fixed_nodes_that_do_not_fit_are_refused():
    graph = nx.path_graph(4)
    with pytest.raises(GraphError, match=r"found no terminals; a SteinLib file"):
        solve(graph, "steiner")
    with pytest.raises(GraphError, match=r"found no terminals; one or more"):
        solve(graph, "steiner", terminals=[])
    with pytest.raises(GraphError, match=r"terminals: .*7"):
        solve(graph, "steiner", terminals=[1, 7])
    with pytest.raises(GraphError, match=r"terminals: .*twice|2 times"):
        solve(graph, "steiner", terminals=[1, 1])
    with pytest.raises(GraphError, match=r"terminals: found 1 2 times; each node once"):
        solve(graph, "steiner", terminals=[1, 0, 1])
    with pytest.raises(GraphError, match=r"terminals: found array\(3\); a list of nodes"):
        solve(graph, "steiner", terminals=np.array(3))
    with pytest.raises(CaseError, match="mvc has none; steiner would be right"):
        solve(graph, "mvc", terminals=[1])
    with pytest.raises(CaseError, match="terminals are inside"):
        solve(graph, "steiner", terminals=[1, 2], inside=[1])
    with pytest.raises(CaseError, match="no policy answers steiner"):
        TrainingRun(problem="steiner", graphs=[graph])
    with pytest.raises(GraphError, match=r"no path joins the terminals 0 and 5"):
        solve(nx.disjoint_union(graph, graph), "steiner", terminals=[0, 5, 1])
    for length in (0.0, -2.0):
        nx.set_edge_attributes(graph, {(0, 1): 1.0, (1, 2): length, (2, 3): 1.0}, "weight")
        with pytest.raises(GraphError, match=rf"edge 1-2 has the length {length:g}; one above 0"):
            solve(graph, "steiner", terminals=[0, 3])
    nx.set_edge_attributes(graph, {(0, 1): 2.0**100, (1, 2): 1e-30, (2, 3): 1.0}, "weight")
    with pytest.raises(
        GraphError, match=r"edge 1-2 has the length 1e-30; beside 1.26765e\+30 it counts as 0"
    ):
        solve(graph, "steiner", terminals=[0, 3])


def test_answers_from_elsewhere_are_checked(tmp_path):
    graph, terminals = nx.cycle_graph(6), [0, 2, 3]
    assert check(graph, [(0, 1), (1, 2), (3, 2)], "steiner", terminals=terminals, settings=QUICK).optimal
    wrong = {
        "closes a circle": graph.edges,
        "no path joins 1 and 3": [(0, 1), (2, 3)],
        "does not hold the terminal 3": [(0, 1), (1, 2)],
        "has the edge 0-3, which the graph has not": [(0, 3), (3, 2)],
        "a list of edges, pairs of nodes": [0, 1],
        "found no edges": [],
    }
    odd = [[0, 1], [([0], [1])], np.array(3), nx.empty_graph(3)]
    pairs = [*wrong.items(), *(("edges, pairs of nodes, would be right", each) for each in odd)]
    for message, edges in pairs:
        with pytest.raises(GraphError, match=message):
            check(graph, edges, "steiner", terminals=terminals, settings=QUICK)
    for text, message in (
        ("0 1\n1 x\n", ":2: found 'x'"),
        ("--1 1\n", ":1: found '--1'"),
        ("\f\n", ":1: found"),
        ("0 1\n7 1\n", ":2: node 7"),
        ("0 1 2\n", ":1: "),
    ):
        (tmp_path / "tree.txt").write_text(text)
        with pytest.raises(GraphError, match=message):
            check(graph, tmp_path / "tree.txt", "steiner", terminals=terminals, settings=QUICK)


@alone
def test_parents_that_are_no_tree_are_told():
    graph, terminals = whole(nx.path_graph(5)), np.array([1, 3])
    right = np.array([-1, 1, 1, 2, -1])
    assert fault_of_tree(graph, right, terminals) is None
    for parent, message in (
        (np.array([-1, 2, 1, 2, -1]), "a circle"),
        (np.array([-1, 1, 2, 2, -1]), "no path between the nodes 1 and 2"),
        (np.array([-1, 1, 1, -1, -1]), "terminal 3"),
        (np.array([-1, 1, 1, 4, -1]), "hangs on node 4"),
        (np.array([-1, 1, 1, 1, -1]), "the edge 1-3"),
        (np.array([-1, 1, 1, 2, 9]), "outside 0..4"),
        (right[:4], "not one parent for each node"),
    ):
        assert message in fault_of_tree(graph, parent, terminals)


# ---- search -----------------------------------------------------------------------------------------------


@alone
@pytest.mark.parametrize("seed", range(6))
def test_moves_are_the_same_without_kernels_and_keep_a_tree(seed):
    core, order = question(seed), np.random.default_rng(seed).permutation(60).astype(np.int32)
    found = []
    for compiled in (True, False):
        trees, totals = Trees(core, compiled), []
        trees.part = (60, 3, 8)[seed % 3]
        assert trees.grow(int(core.terminals[0]))
        assert trees.span(trees.parent >= 0, int(core.terminals[-1]))
        at = 0
        while at < len(order):
            totals.append(trees.total)
            at = trees.look(order, at, 50)
        assert trees.total == core.length(trees.parent) and sorted(totals)[::-1] == totals
        leaves = np.flatnonzero((trees.parent >= 0) & (trees.degree == 1))
        assert np.isin(leaves, core.terminals).all()
        found.append((totals, trees.work, trees.parent.tolist()))
    assert found[0] == found[1]


@alone
@pytest.mark.parametrize("seed", range(3))
def test_a_search_is_the_same_without_kernels_and_however_it_is_sliced(seed):
    core = question(seed)
    start, _ = shortest_paths(core)
    searches = [SteinerSearch(core, start, 7, compiled) for compiled in (True, False, True)]
    for search in searches[:2]:
        search.run(30_000)
    for part in (1, 999, 17, 13_983, 15_000):
        searches[2].run(part)
    for search in searches:
        np.testing.assert_array_equal(search.solution(), searches[0].solution())
        assert (search.steps, search.best, search.found_at) == (
            searches[0].steps, searches[0].best, searches[0].found_at,
        )  # fmt: skip
        assert search.best == core.length(search.solution()) <= core.length(start)


@alone
def test_a_search_finds_what_baselines_do_not():
    graph = nx.convert_node_labels_to_integers(nx.hypercube_graph(6))
    even = [node for node in graph if node.bit_count() % 2 == 0]
    core = steiner_of(whole(graph), np.array(even)).core
    start, _ = shortest_paths(core)
    search = SteinerSearch(core, start, 1)
    search.run(300_000)
    assert search.best <= 40 < core.length(start)  # the shortest has 39 edges (SteinLib, hc6u)


@alone
@pytest.mark.parametrize("seed", range(8))
def test_plain_heuristics_are_at_most_twice_the_shortest_tree(seed):
    graph, terminals = drawn(seed)
    core = steiner_of(whole(graph), np.array(terminals)).core
    best = shortest(*of_core(core))
    for rule in (shortest_paths, distance_network):
        parent, _ = rule(core)
        assert fault_of_tree(whole(graph), parent, np.array(terminals)) is None
        assert best <= core.length(parent) <= 2 * best
        np.testing.assert_array_equal(parent, rule(core, compiled=False)[0])
    np.testing.assert_array_equal(
        joined(core, np.flatnonzero(parent >= 0)), distance_network(core)[0] * 0 + parent
    )


@alone
def test_trees_have_one_form_from_any_root():
    tree = nx.random_labeled_tree(30, seed=4)
    parent = parents_of(tree, tree)
    assert sorted(map(sorted, zip(*(end.tolist() for end in ends_of(parent))))) == sorted(
        map(sorted, tree.edges)
    )
    for node in range(30):
        other = rooted_at(parent, node)
        assert other[node] == node
        np.testing.assert_array_equal(canonical_tree(other), parent)
    with pytest.raises(ValueError, match="no tree"):
        tree_of_edges(4, np.array([0, 1, 2]), np.array([1, 2, 0]))


# ---- reductions -------------------------------------------------------------------------------------------


@alone
@pytest.mark.parametrize("seed", range(40))
def test_reductions_keep_a_shortest_tree_and_are_proved(seed):
    graph, terminals = drawn(seed)
    core = steiner_of(whole(graph), np.array(terminals)).core
    logs = []
    for compiled in (True, False):
        reducer = SteinerReducer(core, compiled)
        reducer.reduce(lambda: None)
        logs.append((reducer.log, reducer.paid, reducer.steps))
    assert logs[0] == logs[1]
    kernel = reducer.kernel()
    left, paid = verify_log(core, np.array(reducer.log, dtype=np.int64))
    assert paid == kernel.paid
    for proved, made in zip(left, kernel.core):
        np.testing.assert_array_equal(proved, made)
    inner = shortest(*of_core(kernel.core)) if kernel.core.n else 0
    assert kernel.paid + inner == shortest(*of_core(core))
    start = shortest_paths(kernel.core)[0] if kernel.core.n else np.zeros(0, dtype=np.int64)
    lifted = reducer.lift(kernel, start)
    assert fault_of_tree(whole(graph), lifted, core.terminals) is None
    assert core.length(lifted) == kernel.paid + kernel.core.length(start)


@alone
def test_all_reductions_occur_and_may_end_early():
    graph, draws = nx.gnm_random_graph(200, 500, seed=3), np.random.default_rng(3)
    for edge in graph.edges.values():
        edge["weight"] = int(draws.integers(1, 20))
    part = sorted(max(nx.connected_components(graph), key=len))
    core = steiner_of(whole(graph), draws.permutation(part)[:30]).core
    reducer, words = SteinerReducer(core), []
    reducer.reduce(lambda: None)
    assert all(reducer.counts.values())
    for most in (1, 150, 900):
        some = SteinerReducer(core)
        some.reduce(lambda: None, most)
        left, paid = verify_log(core, np.array(some.log, dtype=np.int64))
        assert left.n == some.kernel().core.n and paid == some.paid and some.steps >= most
        words.append(len(some.log))
    assert 0 == words[0] < words[1] < words[2] < len(reducer.log)


@alone
def test_a_start_on_what_reductions_leave_is_no_longer():
    for seed in range(12):
        graph, terminals = drawn(seed, 40)
        tools = SteinerTools(instance_of(whole(graph), terminals=np.array(sorted(terminals))), SteinerTree())
        search = SteinerSearch(tools.inner, tools.start(), 1)
        search.run(2000)
        given = search.solution()
        tools.reduce(lambda: None)
        assert tools.value(tools.lift(tools.restrict(given))) <= tools.value(given)


@alone
def test_damaged_certificates_prove_nothing_that_is_not_so():
    graph, terminals = drawn(11, 30)
    keys = QUICK | {"output.certificates": True}
    answer = solve(graph, "steiner", terminals=terminals, settings=keys)
    assert answer.optimal
    tools = SteinerTools(instance_of(whole(graph), terminals=np.array(sorted(terminals))), SteinerTree())
    best = tools.prove(archive.from_bytes(answer.certificate))
    assert best * tools.unit == answer.objective
    draws = np.random.default_rng(1)
    refused = [refused_or_valid(tools, altered(answer.certificate, draws), best) for _ in range(150)]
    assert sum(refused) > 50


def test_edges_have_numbers_by_their_nodes_and_lengths_by_their_rows():
    for seed in range(20):
        draws = np.random.default_rng(seed)
        drawn = nx.gnm_random_graph(14, 3 * seed, seed=seed)
        lengths = {edge: int(draws.integers(1, 99)) for edge in sorted(map(sorted_pair, drawn.edges))}
        u, v = np.array(list(lengths), dtype=np.int64).reshape(-1, 2).T
        graph = from_edges(14, u, v, np.array(list(lengths.values()), np.float32))
        core = steiner_of(graph, np.array([3])).core
        number, edges = _edge_numbers(core)
        pairs = list(map(sorted_pair, zip(core.row_of().tolist(), core.indices.tolist())))
        assert edges == len(lengths) and number.tolist() == [list(lengths).index(each) for each in pairs]
        for count in (0, 4, 60):
            a, b = draws.integers(0, 14, (2, count))
            wanted = [lengths.get(sorted_pair(each), -1) for each in zip(a.tolist(), b.tolist())]
            step = core.lengths[0] // lengths[pairs[0]] if edges else 1
            assert core.lengths_of(a, b).tolist() == [max(each * step, -1) for each in wanted]


def sorted_pair(pair):
    return min(pair), max(pair)
