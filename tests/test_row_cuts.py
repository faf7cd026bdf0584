"""Cuts of graphs too large for one rank: leaves and chains go from the row partitions."""

import sys
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from helpers import by_one
from jobs import run_job
from mpi4py import MPI
from test_main import result_of
from test_row_reductions import SELF, WORLD, own_rows

from app import check, solve
from app.errors import LockstepError
from app.graphs.fixed_point import integer_weights
from app.graphs.graph import from_edges
from app.model.memory import whole_graph
from app.proofs.archive import from_bytes, to_bytes
from app.reductions.cover.log import entries
from app.reductions.cut.log import RULES, renumbered
from app.reductions.cut.reducer import CutReducer
from app.reductions.cut.verify import verify_log
from app.search.cut.tools import CutTools
from app.solver.rows.cut_check import check_cuts
from app.solver.rows.cuts import reduce_cuts


def drawn(seed, n=0):
    """A small random graph of few edges for its nodes, every other one with weights of both signs, some 0."""
    draws = np.random.default_rng(seed)
    n, m = n or int(draws.integers(1, 60)), int(draws.integers(0, 80))
    weights = (draws.integers(-4, 5, m) / 2).astype(np.float32) if seed % 2 else None
    return from_edges(n, draws.integers(0, n, m), draws.integers(0, n, m), weights)


def own(group, graph):
    """This rank's rows of a whole graph, and their weights in units."""
    mine = own_rows(group, graph)
    part = slice(*graph.indptr[[mine.lo, mine.hi]])
    weights = None if graph.weights is None else graph.weights[part]
    return replace(mine, weights=weights), integer_weights(graph)[0][part]


def worth(rows, indices, weights, sides):
    """The weight between two sides."""
    return int(weights[sides[rows] != sides[indices]].sum()) // 2


@pytest.mark.parametrize("seed", range(0, 120, 40))
def test_what_is_left_is_what_the_log_leaves(seed):
    """By the check of whole graphs, too; lifted cuts gain what is said; the same on any number of ranks."""
    for each in range(seed, seed + 40):
        graph = drawn(each)
        whole = integer_weights(graph)[0]
        mine, weights = own(WORLD, graph)
        reduced = reduce_cuts(WORLD, mine, weights)
        check_cuts(WORLD, mine, weights, reduced)
        alone = reduce_cuts(SELF, graph, whole)
        assert np.array_equal(alone.log(), reduced.log())
        offset, (indptr, indices, left, nodes) = verify_log(graph, whole, reduced.log(), 0, [])
        assert offset == reduced.gained and np.array_equal(nodes, reduced.nodes)
        assert np.array_equal(left, alone.rows.data) and len(left) == 2 * reduced.edges
        sides = np.random.default_rng(each).random(len(nodes)) < 0.5
        rows = np.repeat(np.arange(len(nodes)), np.diff(indptr))
        lifted = worth(graph.row_of(), graph.indices, whole, reduced.lift(sides))
        assert lifted == offset + worth(rows, indices, left, sides)


def test_forests_and_circles_go_whole():
    """Of a path of thousands every third node or so in a round; a circle of odd weight keeps nothing."""
    path = nx.path_graph(5000)
    circle = nx.cycle_graph(range(5000, 5501))
    edges = np.array([*path.edges, *circle.edges])
    graph = from_edges(5501, *edges.T)
    reduced = reduce_cuts(SELF, graph, integer_weights(graph)[0])
    assert (len(reduced.nodes), reduced.edges, reduced.gained) == (0, 0, 4999 + 500)
    assert len(reduced.steps) < 30
    sides = reduced.lift(np.empty(0, dtype=bool))
    assert worth(graph.row_of(), graph.indices, integer_weights(graph)[0], sides) == 5499


def test_damaged_reductions_are_refused():
    graph = from_edges(6, [0, 1, 2, 2, 3, 4], [1, 2, 3, 4, 4, 5], np.array([2, -1, 1, 1, 1, 3], np.float32))
    weights = integer_weights(graph)[0]
    reduced = reduce_cuts(SELF, graph, weights)
    check_cuts(SELF, graph, weights, reduced)
    first, *more = reduced.steps
    turned, moved = first.copy(), first.copy()
    turned[0, 2] ^= 1
    moved[0, 1] = 3 if first[0, 1] != 3 else 2
    doubled = np.concatenate([first, first[:1]])
    for damaged in (
        replace(reduced, gained=reduced.gained + 1), replace(reduced, steps=(turned, *more)),
        replace(reduced, steps=(moved, *more)), replace(reduced, steps=(doubled, *more)),
        replace(reduced, steps=tuple(more)), replace(reduced, nodes=np.array([0, 1])),
    ):  # fmt: skip
        with pytest.raises(LockstepError, match="reductions on rows: "):
            check_cuts(SELF, graph, weights, damaged)


def test_logs_with_other_numbers_are_those_of_the_larger_graph():
    """All rules: the log of a part, told by the numbers of the whole."""
    seen = set()
    cliques, twins = nx.connected_caveman_graph(4, 6), nx.complete_bipartite_graph(4, 5)
    named = [from_edges(len(each), *np.array(each.edges).T) for each in (cliques, twins)]
    for seed, part in enumerate([*named, *(drawn(seed, 30) for seed in range(20))]):
        weights = integer_weights(part)[0]
        draws = np.random.default_rng(seed)
        numbers = np.sort(draws.choice(3 * part.n, part.n, replace=False))
        reducer = CutReducer(part, weights, places=3)
        reducer.reduce()
        log = renumbered(reducer.log, numbers)
        seen |= {RULES[rule] for rule, _ in entries(log)}
        larger = from_edges(3 * part.n, numbers[part.row_of()], numbers[part.indices], part.weights)
        offset, (_, _, left, nodes) = verify_log(larger, weights, log, 3, [])
        kernel = reducer.kernel()
        assert offset == kernel.offset and np.array_equal(nodes, numbers[kernel.nodes])
        assert np.array_equal(left, kernel.graph.weights * kernel.factor)
    assert seen >= {"merge", "twin", "triangle", "clique"}


# ---- answers ----------------------------------------------------------------------------------------------

QUIET = {"search.baselines": False, "search.steps": 20000, "search.bound_seconds": 20.0}
SPARSE = nx.gnp_random_graph(160, 3 / 160, seed=5)  # of which the rules leave some dozen nodes
SIGNED = SPARSE.copy()
for number, (_, _, about) in enumerate(SIGNED.edges(data=True)):
    about["weight"] = (-1, 2, -3, 0.5)[number % 4]


def limited(graph):
    """Settings by which the graph is too large, and what is left is not."""
    limit = (whole_graph(len(graph), graph.number_of_edges()) - 1) / 1e6
    return QUIET | {"memory.whole_graph_mb": limit, "output.certificates": True}


@pytest.mark.parametrize("problem", ["maxcut", "maxcut_once"])
@pytest.mark.parametrize("graph", [SPARSE, SIGNED], ids=["plain", "signed"])
def test_a_graph_beyond_the_limit_is_answered_by_what_is_left(graph, problem):
    """As well as without a limit; the same on any number of ranks; its certificate is the graph's."""
    whole = by_one(lambda: solve(graph, problem, settings=QUIET, comm=MPI.COMM_SELF))
    found = [solve(graph, problem, settings=limited(graph), comm=MPI.COMM_WORLD)]
    found.append(by_one(lambda: solve(graph, problem, settings=limited(graph), comm=MPI.COMM_SELF)))
    assert found[0].nodes == found[1].nodes
    inside = set(found[0].nodes)
    crossing = sum(w for u, v, w in graph.edges(data="weight", default=1) if (u in inside) != (v in inside))
    assert found[0].objective == crossing == whole.objective
    assert all(whole.objective <= each.bound <= 1.02 * whole.objective for each in found)
    for each in found:
        if each.bound_verified:
            assert check(graph, each, comm=MPI.COMM_SELF).bound >= each.bound


def test_a_certificate_of_what_is_left_names_the_nodes_of_the_graph():
    """A forest, of which nothing is left; damaged it proves nothing."""
    graph = nx.random_labeled_tree(300, seed=4)
    found = solve(graph, "maxcut", settings=limited(graph), comm=MPI.COMM_SELF)
    assert (found.objective, found.bound, found.bound_verified) == (299, 299, True)
    assert check(graph, found, comm=MPI.COMM_SELF).bound == 299
    proof = from_bytes(found.certificate)
    log = proof.log.copy()
    log[2] = (log[2] + 1) % 300
    with pytest.raises(LockstepError):
        damaged = replace(found, certificate=to_bytes(replace(proof, log=log)))
        check(graph, damaged, comm=MPI.COMM_SELF)


def test_what_is_left_may_still_be_too_large():
    """The policy then answers by itself, and that is made better on the rows."""
    settings = {"search.baselines": False, "memory.whole_graph_mb": 0.001}
    found = [
        solve(SPARSE, "maxcut", settings=settings, comm=comm) for comm in (MPI.COMM_WORLD, MPI.COMM_SELF)
    ]
    assert found[0].nodes == found[1].nodes and found[0].bound is None
    alone = solve(SPARSE, "maxcut", settings=settings | {"search.solver": "policy"}, comm=MPI.COMM_SELF)
    assert alone.source == "policy" and found[0].objective >= alone.objective


@pytest.mark.parametrize("seed", [5, 6, 7])
def test_a_certificate_proves_as_much_as_was_said_where_only_the_rest_has_even_cuts(seed, monkeypatch):
    """Leaves make cuts of the graph odd; those of the rest, whose degrees are even, are all even.

    Without an exact search: where it ends before the bounds do, there is no witness.
    """
    monkeypatch.setattr(CutTools, "tree", lambda *args: None)
    graph = nx.random_regular_graph(4, 20, seed=seed)
    graph.add_edges_from((v, 20 + v) for v in range(5))
    found = solve(graph, "maxcut", settings=limited(graph), comm=MPI.COMM_SELF)
    assert found.bound == found.objective and found.bound_verified
    assert check(graph, found, comm=MPI.COMM_SELF).bound == found.bound


@pytest.mark.mpi_skip
@pytest.mark.parametrize("limit", [0.001, 0.015])
def test_a_run_of_rows_with_decimal_weights_is_checked_where_there_is_more_memory(limit, tmp_path):
    """Values of rows are told without the decimals of weights."""
    path = tmp_path / "decimal.txt"
    lines = [f"{v} {v + k} {(0.1, 0.2, -0.3, 0.7)[v * k % 4]}" for v in range(120) for k in (1, 1 + v % 5)]
    path.write_text("\n".join(dict.fromkeys(lines)))
    told = ["output.certificates=true", "output.plots=false", "search.steps=2000", "search.baselines=false"]
    ran = [sys.executable, "run.py", "inputs/maxcut.toml", f"graph.path={path}", "graph.format=edges", *told]
    code, said = run_job([*ran, f"memory.whole_graph_mb={limit}", "--out", tmp_path / "run"], 120)
    assert code == 0, said
    entry = result_of(tmp_path / "run")["instances"][0]
    assert entry["objective"] != round(entry["objective"], 1)
    checked = [sys.executable, "run.py", tmp_path / "run/case.toml", "memory.whole_graph_mb=100"]
    code, said = run_job([*checked, "--check", tmp_path / "run"], 120)
    assert code == 0 and "1 of 1 answers checked: all hold" in said, said
    assert f"bounds of {int(entry['bound'] is not None)} are proved" in said
