"""Feedback vertex sets of graphs too large for one rank: leaves and chains go from the row partitions."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from mpi4py import MPI
from test_row_reductions import SELF, WORLD, drawn, graph_rows, own_rows

from app import check, solve
from app.errors import LockstepError
from app.graphs.multigraph import multigraph_of
from app.model.memory import whole_graph
from app.proofs.archive import from_bytes, to_bytes
from app.reductions.fvs.log import renumbered
from app.reductions.fvs.reducer import FeedbackReducer
from app.reductions.fvs.verify import verify_log
from app.solver.rows.feedback import reduce_feedback
from app.solver.rows.feedback_check import check_feedback


def priced(seed, n, least):
    return np.random.default_rng(seed).integers(least, 5, n)


@pytest.mark.parametrize("weighted", [False, True])
def test_what_is_left_is_what_the_log_leaves(weighted):
    """By the check of whole graphs, too; the same on any number of ranks."""
    for seed in range(60):
        graph = drawn(seed)
        weights = priced(seed, graph.n, 1) if weighted else None
        mine = own_rows(WORLD, graph)
        reduced = reduce_feedback(WORLD, mine, weights)
        check_feedback(WORLD, mine, weights, reduced)
        alone = reduce_feedback(SELF, graph, weights)
        assert np.array_equal(alone.log(), reduced.log())
        prices = np.ones(graph.n, dtype=np.int64) if weights is None else weights
        left, paid = verify_log(multigraph_of(graph, prices), reduced.log())
        assert paid == 0 and not left.twice.any() and left.n == len(reduced.nodes)
        assert np.array_equal(left.indptr, alone.own.indptr) and np.array_equal(
            reduced.nodes[left.indices], alone.own.indices
        )


def test_forests_go_whole_and_circles_to_triangles():
    """Of a path of thousands every third node or so in a round."""
    graph = graph_rows(nx.disjoint_union(nx.path_graph(4000), nx.cycle_graph(900)))
    reduced = reduce_feedback(WORLD, own_rows(WORLD, graph))
    assert (len(reduced.nodes), reduced.edges) == (3, 3) and len(reduced.steps) < 40
    square = reduce_feedback(SELF, graph_rows(nx.complete_bipartite_graph(2, 9)))
    check_feedback(SELF, graph_rows(nx.complete_bipartite_graph(2, 9)), None, square)
    assert len(square.nodes) == 10  # one of nine goes: the others would be second edges


def test_damaged_reductions_are_refused():
    graph = graph_rows(nx.disjoint_union(nx.cycle_graph(7), nx.path_graph(4)))
    reduced = reduce_feedback(SELF, graph)
    check_feedback(SELF, graph, None, reduced)
    first, *more = reduced.steps
    moved, other = first.copy(), first.copy()
    moved[0, 1] = (moved[0, 1] + 1) % 11
    other[0, 0] = (other[0, 0] + 1) % 11
    for damaged in (
        replace(reduced, steps=tuple(more)), replace(reduced, steps=(moved, *more)),
        replace(reduced, steps=(other, *more)), replace(reduced, nodes=reduced.nodes[1:]),
        replace(reduced, steps=(np.concatenate([first, first[:1]]), *more)),
    ):  # fmt: skip
        with pytest.raises(LockstepError, match="reductions on rows: "):
            check_feedback(SELF, graph, None, damaged)
    heavy = np.ones(graph.n, dtype=np.int64) * 5
    heavy[first[first[:, 2] >= 0, 0]] = 1
    with pytest.raises(LockstepError, match="lighter than its neighbours"):
        check_feedback(SELF, graph, heavy, reduced)


def test_logs_with_other_numbers_are_those_of_the_larger_graph():
    """All rules: what they leave is the same."""
    for seed in range(30):
        part = drawn(seed)
        core = multigraph_of(part, priced(seed, part.n, 1))
        reducer = FeedbackReducer(core)
        reducer.reduce(lambda: False)
        numbers = np.sort(np.random.default_rng(seed).choice(3 * part.n, part.n, replace=False))
        log = np.array(reducer.log, dtype=np.int64)
        again = renumbered(renumbered(log, numbers), np.searchsorted(numbers, np.arange(3 * part.n)))
        assert np.array_equal(again, log)


# ---- answers ----------------------------------------------------------------------------------------------

QUIET = {"search.baselines": False, "search.steps": 1000, "search.bound_seconds": 2.0}
SPARSE = nx.gnp_random_graph(200, 2.6 / 200, seed=5)  # of which the rules leave a part


def limited(nodes, edges):
    """Settings by which larger graphs are too large."""
    return QUIET | {"memory.whole_graph_mb": whole_graph(nodes, edges) / 1e6, "output.certificates": True}


@pytest.mark.parametrize("weighted", [False, True])
def test_a_graph_beyond_the_limit_is_answered_by_what_is_left(weighted):
    """As well as without a limit; the same on any number of ranks; its certificate is the graph's."""
    more = {"node_weights": priced(3, 200, 0).astype(float)} if weighted else {}
    settings = limited(130, 190)
    whole = solve(SPARSE, "fvs", settings=QUIET, comm=MPI.COMM_SELF, **more)
    found = [
        solve(SPARSE, "fvs", settings=settings, comm=comm, **more) for comm in (MPI.COMM_WORLD, MPI.COMM_SELF)
    ]
    assert found[0].nodes == found[1].nodes
    for each in found:
        left = SPARSE.copy()
        left.remove_nodes_from(each.nodes)
        assert nx.is_forest(left)
        assert each.objective == whole.objective and each.bound <= whole.objective
        if each.bound_verified:
            assert check(SPARSE, each, comm=MPI.COMM_SELF, **more).bound == each.bound
    assert found[1].bound is not None


def test_a_certificate_of_what_is_left_names_the_nodes_of_the_graph():
    """Damaged it proves nothing."""
    graph = nx.disjoint_union_all([nx.cycle_graph(50)] * 3 + [nx.path_graph(100)])
    found = solve(graph, "fvs", settings=limited(20, 20), comm=MPI.COMM_SELF)
    assert (found.objective, found.bound, found.bound_verified) == (3, 3, True)
    assert check(graph, found, comm=MPI.COMM_SELF).bound == 3
    proof = from_bytes(found.certificate)
    log = proof.log.copy()
    log[1] = (log[1] + 1) % 250
    with pytest.raises(LockstepError):
        damaged = replace(found, certificate=to_bytes(replace(proof, log=log)))
        check(graph, damaged, comm=MPI.COMM_SELF)


def test_what_is_left_may_still_be_too_large():
    """The policy then decides alone, as before; the same on any number of ranks."""
    settings = {"search.baselines": False, "memory.whole_graph_mb": 0.001}
    found = [solve(SPARSE, "fvs", settings=settings, comm=comm) for comm in (MPI.COMM_WORLD, MPI.COMM_SELF)]
    assert found[0].nodes == found[1].nodes and found[0].source == "policy" and found[0].bound is None
