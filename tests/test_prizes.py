"""Steiner trees with prizes: against all trees of small graphs, without kernels, on ranks; growth; files."""

import contextlib
import csv
import itertools
import re
import sys
from dataclasses import replace
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from helpers import instance_of
from jobs import run_job
from mpi4py import MPI

from app import check, solve
from app.bounds.certificate import BadCertificate
from app.errors import CaseError, GraphError
from app.graphs.formats.readers import open_edges
from app.graphs.graph import from_edges
from app.graphs.prize_ways import Ways, best_within
from app.graphs.prizes import best_part, entries_of, gadgets_of, prized_of
from app.graphs.steiner import rooted_at, tree_of_edges
from app.problems.steiner import SteinerTree
from app.proofs import archive
from app.search.steiner.baselines import on_paths
from app.search.steiner.growth import grown_edges
from app.search.steiner.prized import Parts, growth
from app.search.steiner.trees import Trees

QUICK = {"search.steps": 20_000, "search.bound_seconds": 3.0}
alone = pytest.mark.mpi_skip
STP = """33D32945 STP File, STP Format Version 1.0
SECTION Comment
Problem "Prize-Collecting Steiner Problem in Graphs"
END
SECTION Graph
Nodes 5
Edges 5
E 1 2 1
E 2 3 4
E 3 4 3
E 4 5 20
E 1 5 2.5
END
SECTION Terminals
Terminals 4
TP 1 7
TP 2 3
TP 4 8.5
TP 5 1
END
EOF
"""


def drawn(seed, n=0, largest=14):
    """A random graph that may fall apart, lengths, prizes of some nodes, and terminals, mostly none."""
    draws = np.random.default_rng(seed)
    count = n or int(draws.integers(2, 8))
    graph = nx.gnp_random_graph(count, min(draws.uniform(1.4, 4.9) / count, 1), seed=seed)
    for edge in graph.edges.values():
        edge["weight"] = int(draws.integers(1, 10)) / (1 if seed % 3 else 4)
    prizes = {node: int(draws.integers(0, largest)) for node in graph if draws.random() < 0.6}
    edges = list(graph.edges)
    return graph, prizes, list(edges[0][: seed % 4]) if edges and seed % 4 in (1, 2) else []


def whole(graph):
    """As this program has it."""
    ends = np.array(list(graph.edges), dtype=np.int64).reshape(-1, 2)
    lengths = np.array([weight for _, _, weight in graph.edges(data="weight")], dtype=np.float32)
    return from_edges(len(graph), *ends.T, lengths, name="drawn")


def numbers(graph, prizes):
    return np.array([prizes.get(node, 0) for node in graph], dtype=np.float32)


def asked(graph, prizes, terminals=()):
    """In whole numbers."""
    return prized_of(whole(graph), np.array(terminals, dtype=np.int64), numbers(graph, prizes))


def least(graph, prizes, terminals):
    """What the best tree costs: of all sets of nodes that hang together a spanning tree."""
    found = [] if terminals else [sum(prizes.values())]
    for count in range(1, len(graph) + 1):
        for nodes in itertools.combinations(graph, count):
            inner = graph.subgraph(nodes)
            if set(terminals) <= set(nodes) and nx.is_connected(inner):
                length = nx.minimum_spanning_tree(inner).size(weight="weight")
                found.append(length + sum(prize for node, prize in prizes.items() if node not in nodes))
    return min(found)


def cost_of(graph, prizes, answer):
    """Of an answer, by its edges and nodes: their length, and prizes left out."""
    tree = graph.edge_subgraph(answer.edges)
    assert not answer.edges or (nx.is_tree(tree) and set(tree) == set(answer.nodes))
    return tree.size(weight="weight"), sum(p for node, p in prizes.items() if node not in answer.nodes)


# ---- answers and bounds ------------------------------------------------------------------------------------


@alone
@pytest.mark.parametrize("seed", range(32))
def test_small_graphs_are_answered_and_proved_by_their_best_tree(seed):
    graph, prizes, terminals = drawn(seed)
    keys = QUICK | {"search.reductions": seed % 5 > 0, "output.certificates": True}
    given = {"prizes": prizes, **({"terminals": terminals} if terminals else {})}
    answer = solve(graph, "steiner", settings=keys, **given)
    best = least(graph, prizes, terminals)
    assert answer.objective == best == answer.bound and answer.bound_verified and answer.optimal
    assert (answer.length, answer.prizes_lost) == cost_of(graph, prizes, answer)
    assert answer.length + answer.prizes_lost == best
    assert check(graph, answer, settings={"search.bounds": False}, **given).bound == best


@alone
def test_kernels_and_settings_leave_the_same_answers():
    graph, prizes, _ = drawn(2, 60, 9)
    keys = {"search.steps": 20_000, "search.bounds": False}
    found = [
        solve(graph, "steiner", prizes=prizes, settings=keys | more)
        for more in ({}, {"run.kernels": "plain"}, {"graph.order": "random"})
    ]
    assert found[0].digest == found[1].digest and found[0].baselines == found[1].baselines
    assert set(found[0].baselines) == {"Goemans-Williamson", "pruned spanning tree"}
    for each in found:
        assert sum(cost_of(graph, prizes, each)) == each.objective <= min(each.baselines.values())


def test_ranks_agree_with_one_rank():
    graph, prizes, _ = drawn(5, 50, 9)
    keys = {"search.steps": 20_000, "search.starts": 3, "search.bounds": False}
    answer = solve(graph, "steiner", prizes=prizes, settings=keys)
    one = solve(graph, "steiner", prizes=prizes, settings=keys, comm=MPI.COMM_SELF)
    assert answer.digest == one.digest and answer.edges == one.edges


@alone
def test_a_start_is_kept_where_it_is_better_and_trees_without_edges_are_told(tmp_path):
    graph, prizes, _ = drawn(2, 40, 9)
    first = solve(graph, "steiner", prizes=prizes, settings=QUICK)
    again = solve(graph, "steiner", prizes=prizes, start=first, settings={"search.steps": 1})
    assert again.objective <= first.objective
    line, none = nx.path_graph(3), str(tmp_path / "none.txt")
    nx.set_edge_attributes(line, 9, "weight")
    nx.set_node_attributes(line, {0: 1, 2: 4.5}, "prize")  # read from the graph
    one = solve(line, "steiner", settings=QUICK)
    assert (one.objective, one.nodes, one.edges, one.text) == (1, [2], [], "2\n")
    assert check(line, one, "steiner").optimal
    (tmp_path / "none.txt").write_text("")
    assert check(line, none, "steiner").objective == 5.5  # no node at all
    held = solve(line, "steiner", terminals=[0], settings=QUICK)
    assert (held.objective, held.nodes) == (4.5, [0])
    with pytest.raises(GraphError, match="does not hold the terminal 0"):
        check(line, none, "steiner", terminals=[0])
    assert solve(line, "steiner", prizes=[0, 0, 0], settings=QUICK).objective == 0


@alone
def test_connected_subgraphs_of_largest_weight_are_such_trees():
    for seed in range(6):
        graph, draws = nx.gnp_random_graph(9, 0.3, seed=seed), np.random.default_rng(seed)
        weights = {node: int(draws.integers(-9, 8)) for node in graph}
        least_weight = min(*weights.values(), -1)
        nx.set_edge_attributes(graph, -least_weight, "weight")
        prizes = {node: weight - least_weight for node, weight in weights.items()}
        answer = solve(graph, "steiner", prizes=prizes, settings=QUICK)
        heaviest = max(
            sum(weights[node] for node in nodes)
            for count in range(1, 10)
            for nodes in itertools.combinations(graph, count)
            if nx.is_connected(graph.subgraph(nodes))
        )
        assert sum(weights[node] for node in answer.nodes) == heaviest and answer.optimal
        assert sum(prizes.values()) + least_weight - answer.objective == heaviest


def weights_drawn(seed):
    """A random graph that may fall apart, and weights of its nodes, of some seeds decimal, or above 0."""
    draws, graph = np.random.default_rng(seed), nx.gnp_random_graph(9, 0.3, seed=seed)
    least_weight = 1 if seed % 4 == 3 else -900
    weights = {node: int(draws.integers(least_weight, 800)) for node in graph}
    return graph, {node: weight / 100 if seed % 2 else weight for node, weight in weights.items()}


def heaviest_of(graph, weights, held=()):
    """What the nodes of the heaviest connected subgraph weigh."""
    return max(
        sum(weights[node] for node in nodes)
        for count in range(1, len(graph) + 1)
        for nodes in itertools.combinations(graph, count)
        if set(held) <= set(nodes) and nx.is_connected(graph.subgraph(nodes))
    )


@alone
def test_weights_of_nodes_ask_for_the_heaviest_connected_subgraph():
    for seed in range(8):
        graph, weights = weights_drawn(seed)
        held = list(next(iter(graph.edges))) if seed > 5 else None
        answer = solve(graph, "steiner", node_weights=weights, terminals=held, settings=QUICK)
        heaviest = heaviest_of(graph, weights, held or ())
        assert answer.objective == pytest.approx(heaviest, abs=1e-9) and answer.optimal
        assert sum(weights[node] for node in answer.nodes) == pytest.approx(heaviest, abs=1e-9)
        assert answer.bound == answer.objective and answer.bound_verified and answer.length is None
        assert max(answer.baselines.values()) <= answer.objective
        told = check(graph, answer, "steiner", node_weights=weights, terminals=held)
        assert told.objective == answer.objective


def test_ranks_agree_on_the_heaviest_connected_subgraph():
    graph = nx.random_regular_graph(3, 120, seed=4)
    weights = np.random.default_rng(4).integers(-9, 8, 120)
    keys = {"search.steps": 20_000, "search.starts": 3, "search.bounds": False}
    answer = solve(graph, "steiner", node_weights=weights, settings=keys)
    one = solve(graph, "steiner", node_weights=weights, settings=keys, comm=MPI.COMM_SELF)
    assert answer.digest == one.digest and answer.objective == one.objective == weights[one.nodes].sum()


HEAVIEST = STP.replace("Prize-Collecting Steiner Problem in Graphs", "Maximum Node Weight Connected Subgraph")
HEAVIEST = (
    re.sub(r"(?m)^(E \d \d) .*", r"\1", HEAVIEST)
    .replace("TP 4 8.5", "T 4 -7")
    .replace("TP 2 3", "TP 2 -1.25")
)


@alone
def test_a_file_of_weights_is_answered_in_its_own_terms_and_can_be_checked(tmp_path):
    (tmp_path / "heavy.stp").write_text(HEAVIEST)
    out = tmp_path / "run"
    case = ["inputs/steiner.toml", f'graph.path="{tmp_path}/heavy.stp"', "search.steps=20000"]
    job = [sys.executable, "run.py", *case, "output.certificates=true", "output.plots=false", f"--out={out}"]
    code, told = run_job(job, 120)
    assert code == 0, told
    (found,) = csv.DictReader((out / "answers.csv").read_text().splitlines())
    assert (float(found["objective"]), found["optimal"]) == (8, "True")  # nodes 1 and 5
    assert (out / "solution" / "heavy.txt").read_text() == "1 5\n"
    code, told = run_job([sys.executable, "run.py", out / "case.toml", "--check", out], 120)
    assert code == 0 and "bounds of 1 are proved" in told
    cached = QUICK | {"memory.cache": str(tmp_path)}
    for problem, objective in (("steiner", 8), ("mvc", 3), ("steiner", 8), ("mvc", 3)):
        assert solve(str(tmp_path / "heavy.stp"), problem, settings=cached).objective == objective
    none = tmp_path / "none.txt"
    none.write_text("")
    with pytest.raises(GraphError, match="the connected subgraph has no node"):
        check(str(tmp_path / "heavy.stp"), str(none), "steiner")


@alone
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("T 4 -7", "T 4", r"heavy.stp:18: found 'T 4'; 'T NODE WEIGHT', the weight a number"),
        ("T 4 -7", "T 4 1e39", r"heavy.stp:18: found 'T 4 1e39'; 'T NODE WEIGHT'"),
        ("T 4 -7", "T 1 -7", r"heavy.stp:18: node 1 has a weight twice"),
        ("Terminals 4", "Terminals 3", r"3 terminals are stated, found 4 lines 'T NODE WEIGHT'"),
        ("Maximum Node", "Minimum Node", r"heavy.stp:17: found 'TP 2 -1.25'; 'TP NODE PRIZE'"),
    ],
)
def test_weights_that_are_wrong_are_refused_by_line(tmp_path, old, new, message):
    (tmp_path / "heavy.stp").write_text(HEAVIEST.replace(old, new, 1))
    with pytest.raises(GraphError, match=message):
        solve(str(tmp_path / "heavy.stp"), "steiner", settings=QUICK)


@alone
def test_what_prizes_and_lengths_do_not_change_is_told():
    line = nx.path_graph(4)
    nx.set_edge_attributes(line, 2, "weight")
    for given, message in (
        ({"prizes": {0: 3, 1: 4}, "terminals": [1]}, "the prize of the terminal 1 counts for nothing"),
        ({"prizes": [3, 4, 0, 1], "terminals": [0, 1]}, "the prize of the terminal 0, like those of 1 more,"),
        ({"prizes": [0, 0, 0, 0]}, "no node has a prize above 0"),
        ({"node_weights": [1, -1, 2, 0]}, "edges of a connected subgraph cost nothing"),
    ):
        with pytest.warns(UserWarning, match=message):
            solve(line, "steiner", settings=QUICK, **given)
    with pytest.raises(CaseError, match="node_weights, prizes: one of the two"):
        solve(line, "steiner", node_weights=[1] * 4, prizes=[1] * 4)


# ---- the larger graph --------------------------------------------------------------------------------------


@alone
def test_the_shortest_tree_of_the_larger_graph_is_as_long_as_the_best_tree_costs():
    several = 0
    for seed in range(24):
        graph, prizes, _ = drawn(seed, 0, 7)
        question = asked(graph, prizes)
        known = sum(question.cost(growth(Parts(question))[0]))
        gadgets = gadgets_of(question, entries_of(question, known))
        ends, larger, several = set(gadgets.core.terminals.tolist()), nx.Graph(), several + gadgets.fresh
        larger.add_nodes_from(range(gadgets.core.n))
        entries = zip(gadgets.core.row_of(), gadgets.core.indices, gadgets.core.lengths.tolist())
        larger.add_weighted_edges_from((int(u), int(v), length) for u, v, length in entries)
        rest, lengths = [node for node in larger if node not in ends], []
        for count in range(len(rest) + 1):
            for some in itertools.combinations(rest, count):
                inner = larger.subgraph([*ends, *some])
                if nx.is_connected(inner):
                    lengths.append(nx.minimum_spanning_tree(inner).size(weight="weight"))
        assert (min(lengths) - gadgets.more) * question.unit == least(graph, prizes, [])
    assert several > 2


@alone
def test_entries_that_prove_nothing_are_refused_and_altered_certificates_too():
    graph, prizes, _ = drawn(3, 12, 6)
    tools = SteinerTree().toolbox(instance_of(whole(graph), prizes=numbers(graph, prizes)))
    assert len(tools.gadgets.entries) > 1
    bounds = tools.bounds()
    while bounds.improve(1.0, tools.core_value(tools.value(tools.lift(tools.start())))):
        pass
    proof, best = bounds.proof(), least(graph, prizes, []) / tools.unit
    proved = tools.prove(proof)
    assert proved == tools.value_of_core(bounds.value) == best
    for entries in ([], [-1], [12], proof.entries[::-1]):
        with pytest.raises(BadCertificate, match="entries"):
            tools.prove(replace(proof, entries=np.array(entries, dtype=np.int64)))
    for node in proof.entries.tolist():  # the witness is one of another graph, or proves less
        with contextlib.suppress(BadCertificate):
            assert tools.prove(replace(proof, entries=np.array([node]))) <= best
    content = archive.certificate_of(bounds)
    assert tools.prove(archive.from_bytes(content)) == proved


@alone
def test_the_best_part_of_a_tree_is_the_best_of_all_its_parts():
    for seed in range(30):
        draws = np.random.default_rng(seed)
        tree = nx.empty_graph(7)
        tree.add_weighted_edges_from(
            (node, int(draws.integers(0, node)), int(draws.integers(1, 9))) for node in range(1, 7)
        )
        prizes = {node: int(draws.integers(0, 9)) for node in tree}
        terminals = [] if seed % 2 else [2, 5]
        question = asked(tree, prizes, terminals)
        parent = tree_of_edges(7, *np.array(list(tree.edges), dtype=np.int64).T)
        found, cost = best_part(question, rooted_at(parent, 2))
        free = {node: 0 if node in terminals else prize for node, prize in prizes.items()}
        assert cost * question.unit == least(tree, free, terminals)
        assert sum(question.cost(found)) == cost


@alone
def test_kernels_reach_the_same_nodes_and_find_the_same_part():
    for seed in range(12):
        graph, prizes, _ = drawn(seed, 40, 9)
        terminals = sorted(max(nx.connected_components(graph), key=len))[:3] if seed % 2 else []
        question = asked(graph, prizes, terminals)
        fast, slow = question.ways(), Ways(question.core, question.prizes, compiled=False)
        fast.goal[[3, 17]] = slow.goal[[3, 17]] = True
        for node in range(40):
            for most in (0, 5):
                assert (fast.reached(node, most) == slow.reached(node, most)).all()
        part = on_paths(question.core, np.flatnonzero(question.prizes))
        trees = Trees(question.core._replace(terminals=np.flatnonzero(part)[:1]))
        trees.span(part, int(np.flatnonzero(part)[0]))
        if set(terminals) <= set(np.flatnonzero(trees.parent >= 0).tolist()):
            given = question.core, question.prizes, trees.parent
            (one, gain), (other, same) = best_within(*given), best_within(*given, compiled=False)
            assert (one == other).all() and gain == same


# ---- growth ------------------------------------------------------------------------------------------------


def grown_in_fractions(graph, prizes):
    """The edges that join clusters, by exact times, every edge and cluster looked at each time."""
    part, far = {node: node for node in graph}, dict.fromkeys(graph, Fraction(0))
    left = {node: Fraction(prizes.get(node, 0)) for node in graph}
    active, found = {node: left[node] > 0 for node in graph}, []
    while sum(active.values()) > 1:
        times = [(left[cluster], 1, cluster) for cluster in active if active[cluster]]
        for u, v, length in graph.edges(data="weight"):
            rate = int(active[part[u]]) + int(active[part[v]])
            if part[u] != part[v] and rate:
                times.append(((Fraction(length) - far[u] - far[v]) / rate, 0, (u, v)))
        time, sleeps, which = min(times, key=lambda each: each[:2])
        for node in graph:
            far[node] += time if active[part[node]] else 0
        for cluster in active:
            left[cluster] -= time if active[cluster] else 0
        if sleeps:
            active[which] = False
            continue
        kept, gone = part[which[0]], part[which[1]]
        part = {node: kept if each == gone else each for node, each in part.items()}
        left[kept], active[kept] = left[kept] + left.pop(gone), True
        del active[gone]
        found.append(which)
    return {tuple(sorted(edge)) for edge in found}


@alone
def test_clusters_grow_as_by_exact_times():
    for seed in range(20):
        draws = np.random.default_rng(seed)
        graph = nx.gnm_random_graph(20, int(draws.integers(15, 45)), seed=seed)
        for edge in graph.edges.values():
            edge["weight"] = int(draws.integers(1, 100_000))
        prizes = {node: int(draws.integers(0, 60_000)) for node in graph if draws.random() < 0.6}
        question = asked(graph, prizes)
        entries = grown_edges(question)
        ends = zip(question.core.row_of()[entries].tolist(), question.core.indices[entries].tolist())
        assert {tuple(sorted(edge)) for edge in ends} == grown_in_fractions(graph, prizes)
        assert (entries == grown_edges(question, compiled=False)).all()


@alone
def test_many_terminals_of_long_edges_are_all_joined():
    tree = nx.star_graph(6000)
    nx.set_edge_attributes(tree, 1 << 38, "weight")  # each terminal may grow by all lengths, in 2^51
    question = asked(tree, {0: 1}, range(1, 6001))
    entries = grown_edges(question)
    assert len(entries) == 6000 and (entries == grown_edges(question, compiled=False)).all()


@alone
def test_grown_trees_cost_less_than_twice_what_the_best_one_costs():
    for seed in range(40):
        graph, prizes, _ = drawn(seed)
        question = asked(graph, prizes)
        cost, best = sum(question.cost(growth(Parts(question))[0])) * question.unit, least(graph, prizes, [])
        assert best <= cost <= (2 - 1 / max(len(graph) - 1, 1)) * best


def best_of_forest(question, entries, terminals):
    """What the best tree costs whose edges are some of a forest's: of every set of them."""
    core, forest = question.core, nx.empty_graph(question.core.n)
    ends = core.row_of()[entries].tolist(), core.indices[entries].tolist(), core.lengths[entries].tolist()
    forest.add_weighted_edges_from(zip(*ends))
    found = []
    for count in range(1, core.n + 1):
        for nodes in itertools.combinations(forest, count):
            inner = forest.subgraph(nodes)
            if set(terminals) <= set(nodes) and nx.is_connected(inner):
                lost = question.prizes.sum() - question.prizes[list(nodes)].sum()
                found.append(inner.size(weight="weight") + lost)
    return min(found)


@alone
@pytest.mark.parametrize("compiled", [True, False])
def test_trees_of_growth_are_cut_out_of_the_edges_that_grew(compiled):
    """Of lighter edges between the same nodes the best part costs up to a tenth more."""
    for seed in range(12):
        draws = np.random.default_rng(seed)
        graph, terminals = nx.gnm_random_graph(9, 16, seed=seed), [0, 5][: seed % 3]
        graph.add_edges_from(nx.path_graph(9).edges)
        for edge in graph.edges.values():
            edge["weight"] = int(draws.integers(1, 20))
        question = asked(graph, {node: int(draws.integers(0, 15)) for node in graph}, terminals)
        tree = growth(Parts(question, compiled))[0]
        assert sum(question.cost(tree)) == best_of_forest(question, grown_edges(question), terminals)


# ---- files, and what is refused ----------------------------------------------------------------------------


@alone
def test_a_run_of_a_file_with_prizes_can_be_checked(tmp_path):
    (tmp_path / "small.stp").write_text(STP)
    out = tmp_path / "run"
    case = ["inputs/steiner.toml", f'graph.path="{tmp_path}/small.stp"', "search.steps=20000"]
    job = [sys.executable, "run.py", *case, "output.certificates=true", "output.plots=false", f"--out={out}"]
    code, told = run_job(job, 120)
    assert code == 0 and "small: edges of length 8, and prizes of 1 left out" in " ".join(told.split())
    assert (out / "solution" / "small.txt").read_text() == "1 2\n2 3\n3 4\n"
    (found,) = csv.DictReader((out / "answers.csv").read_text().splitlines())
    assert (float(found["objective"]), float(found["length"]), float(found["prizes_lost"])) == (9, 8, 1)
    code, told = run_job([sys.executable, "run.py", out / "case.toml", "--check", out], 120)
    assert code == 0 and "bounds of 1 are proved" in told


@alone
def test_prizes_of_files_terminals_and_roots(tmp_path):
    (tmp_path / "g.txt").write_text("1 2 1\n2 3 4\n3 4 3\n4 5 20\n1 5 2.5\n")
    (tmp_path / "p.txt").write_text("4 8.5\n1 7\n2 3\n5 1\n")  # 3 has none
    (tmp_path / "t.txt").write_text("5\n")
    (tmp_path / "small.stp").write_text(STP)
    keys = QUICK | {"graph.prizes": str(tmp_path / "p.txt")}
    answer = solve(str(tmp_path / "g.txt"), "steiner", settings=keys)
    same = solve(str(tmp_path / "small.stp"), "steiner", settings=QUICK)
    assert answer.objective == same.objective == 9 and answer.edges == same.edges
    more = {"graph.terminals": str(tmp_path / "t.txt")}
    held = solve(str(tmp_path / "g.txt"), "steiner", settings=keys | more)
    assert held.objective == 10.5 and 5 in held.nodes
    for word in ("RootP", "Root", "T"):
        (tmp_path / "rooted.stp").write_text(STP.replace("TP 5 1", f"{word} 5"))
        rooted = solve(str(tmp_path / "rooted.stp"), "steiner", settings=QUICK)
        assert rooted.objective == held.objective and rooted.edges == held.edges
    opened = open_edges(str(tmp_path / "rooted.stp"))
    assert opened.prized and opened.node_weights.tolist() == [7, 3, 0, 8.5, 0]
    cached = QUICK | {"memory.cache": str(tmp_path)}
    for problem, objective in (("steiner", 9), ("mvc", 3), ("steiner", 9), ("mvc", 3)):  # prizes no weights
        assert solve(str(tmp_path / "small.stp"), problem, settings=cached).objective == objective
    with pytest.raises(CaseError, match=r"graph.prizes: small has prizes of its own; leave the key out"):
        solve(str(tmp_path / "small.stp"), "steiner", settings=keys)


@alone
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("TP 4 8.5", "TP 4 -1", r"small.stp:18: found 'TP 4 -1'; 'TP NODE PRIZE', the prize"),
        ("TP 4 8.5", "TP 4 1e39", r"small.stp:18: found 'TP 4 1e39'; .*a number from 0 to 3.4e38"),
        ("TP 4 8.5", "TP 4", r"small.stp:18: found 'TP 4'"),
        ("TP 4 8.5", "TP 9 1", r"small.stp:18: .*a node 1..5 would be right"),
        ("TP 4 8.5", "TP 1 8.5", r"small.stp:18: node 1 has a prize twice"),
        ("Terminals 4", "Terminals 3", r"3 terminals are stated, found 4 lines 'T NODE' or 'TP NODE PRIZE'"),
    ],
)
def test_files_that_are_wrong_are_refused_by_line(tmp_path, old, new, message):
    (tmp_path / "small.stp").write_text(STP.replace(old, new, 1))
    with pytest.raises(GraphError, match=message):
        solve(str(tmp_path / "small.stp"), "steiner", settings=QUICK)


@alone
def test_prizes_that_do_not_fit_are_refused():
    graph, three = nx.path_graph(3), [1, 1, 1]
    for given, message in (
        ({7: 1}, r"prizes: found a prize of 7, which is no node"),
        ([1, 2], r"found 2 node prizes for 3 nodes"),
        ({0: [1]}, r"the prize of node 0 is \[1\]; a number would be right"),
        ({0: 2.0**100}, r"edge 0-1 has the length 1; beside 1.26765e\+30 it counts as 0; longer or none"),
        ({0: -1}, r"node 0 has the prize -1; a number from 0 on would be right"),
    ):
        with pytest.raises(GraphError, match=message):
            solve(graph, "steiner", prizes=given, settings=QUICK)
    with pytest.raises(GraphError, match=r"found no nodes; one or more would be right"):
        solve(nx.empty_graph(0), "steiner", prizes=[])
    drawn_keys = {"problem.prizes": 3, "problem.terminals": 2}
    for call in (
        lambda: solve(graph, "mvc", prizes=three),
        lambda: solve(graph, "steiner", settings={"problem.prizes": 3}),
        lambda: solve(graph, "mvc", settings={"problem.prizes": 3}),
        lambda: solve(graph, "steiner", prizes=three, settings=drawn_keys),
        lambda: solve(graph, "steiner", settings={"graph.prizes": __file__}),
        lambda: solve(graph, "steiner", prizes=three, inside=[1]),
    ):
        with pytest.raises(CaseError, match=r"prizes|terminals are inside"):
            call()


@alone
def test_prizes_that_are_drawn_are_those_of_nodes_that_are_drawn():
    graph = nx.grid_2d_graph(5, 5)
    keys = QUICK | {"problem.terminals": 10, "problem.prizes": 3, "search.bounds": False}
    first, other = (solve(graph, "steiner", settings=keys | {"seed": seed}) for seed in (1, 2))
    assert first.digest != other.digest and 0 < first.objective <= 30
    assert first.digest == solve(graph, "steiner", settings=keys | {"seed": 1}).digest
