"""Dominating sets of graphs too large for one rank: nodes with one neighbour left go from the rows."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from mpi4py import MPI
from test_row_reductions import SELF, WORLD, drawn, own_rows

from app import check, solve
from app.errors import LockstepError
from app.graphs.graph import from_edges
from app.model.memory import whole_graph
from app.proofs.archive import from_bytes, to_bytes
from app.reductions.domination.check import verify_steps
from app.reductions.domination.reducer import COLUMNS, Step
from app.solver.rows.domination_check import check_dominations
from app.solver.rows.dominations import reduce_dominations


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(0, 120, 40))
def test_what_is_left_is_what_the_steps_leave(seed, weighted):
    """By the check of whole graphs, too; the same on any number of ranks; all rules are met."""
    rules = set()
    for each in range(seed, seed + 40):
        graph = drawn(each)
        weights = np.random.default_rng(each).integers(0, 5, graph.n) if weighted else None
        mine = own_rows(WORLD, graph)
        reduced = reduce_dominations(WORLD, mine, weights)
        check_dominations(WORLD, mine, weights, reduced)
        alone = reduce_dominations(SELF, graph, weights)
        both = list(zip(reduced.steps, alone.steps, strict=True))
        assert all(a.rule == b.rule and np.array_equal(a.nodes, b.nodes) for a, b in both)
        assert all(np.array_equal(a.by, b.by) for a, b in both)
        free = np.zeros(graph.n, dtype=bool) if weights is None else weights == 0
        price = np.ones(graph.n, dtype=np.int64) if weights is None else np.maximum(weights, 1)
        proved = verify_steps(graph, price, free, np.zeros(graph.n, dtype=bool), reduced.steps)
        for name in ("chosen", "needed", "allowed"):
            assert np.array_equal(getattr(proved, name), getattr(reduced, name))
        rules |= {step.rule for step in reduced.steps}
    assert len(rules) == 3


def test_of_forests_little_is_left():
    """Nodes that can only dominate one that must not be chosen: that takes a look at a neighbour's row."""
    tree = nx.random_labeled_tree(500, seed=3)
    graph = from_edges(500, *np.array(tree.edges).T)
    reduced = reduce_dominations(SELF, graph)
    check_dominations(SELF, graph, None, reduced)
    assert len(reduced.nodes) < 10 and np.count_nonzero(reduced.needed) < 5


def test_damaged_reductions_are_refused():
    graph = from_edges(9, [0, 1, 2, 3, 4, 5, 5, 6], [1, 2, 3, 4, 5, 6, 7, 7])
    weights = np.array([1, 1, 3, 1, 1, 2, 1, 1, 1])
    for each in (None, weights):
        reduced = reduce_dominations(SELF, graph, each)
        check_dominations(SELF, graph, each, reduced)
        step = next(step for step in reduced.steps if step.rule == COLUMNS)
        wrong = (
            Step(step.rule, step.by, step.nodes), Step(step.rule, step.nodes, np.full_like(step.by, 8)),
            Step(step.rule, np.append(step.nodes, step.nodes[0]), np.append(step.by, step.by[0])),
            Step(step.rule, step.nodes, step.nodes),
        )  # fmt: skip
        for other in wrong:
            steps = tuple(other if one is step else one for one in reduced.steps)
            with pytest.raises(LockstepError, match="reductions on rows: "):
                check_dominations(SELF, graph, each, replace(reduced, steps=steps))
        for name in ("chosen", "needed", "allowed"):
            mask = getattr(reduced, name).copy()
            mask[4] ^= True
            with pytest.raises(LockstepError, match=f"other nodes are {name}"):
                check_dominations(SELF, graph, each, replace(reduced, **{name: mask}))


# ---- answers ----------------------------------------------------------------------------------------------

QUIET = {"search.baselines": False, "search.steps": 2000, "search.bound_seconds": 20.0}
SPARSE = nx.gnp_random_graph(400, 2.5 / 400, seed=5)  # of which the rules leave some hundred nodes


def limited(graph):
    """Settings by which the graph is too large, and what is left is not."""
    limit = (whole_graph(len(graph), graph.number_of_edges()) - 1) / 1e6
    return QUIET | {"memory.whole_graph_mb": limit, "output.certificates": True}


@pytest.mark.parametrize("weighted", [False, True])
def test_a_graph_beyond_the_limit_is_answered_by_what_is_left(weighted):
    """As well as without a limit; the same on any number of ranks; its certificate is the graph's."""
    weights = np.round(np.random.default_rng(3).uniform(0, 3, 400), 1) if weighted else None
    more = {} if weights is None else {"node_weights": weights}
    whole = solve(SPARSE, "mds", settings=QUIET, comm=MPI.COMM_SELF, **more)
    found = [
        solve(SPARSE, "mds", settings=limited(SPARSE), comm=comm, **more)
        for comm in (MPI.COMM_WORLD, MPI.COMM_SELF)
    ]
    assert found[0].nodes == found[1].nodes and nx.is_dominating_set(SPARSE, found[0].nodes)
    assert whole.optimal and all((each.objective, each.bound) == (whole.objective,) * 2 for each in found)
    cost = len(found[0].nodes) if weights is None else round(float(weights[found[0].nodes].sum()), 1)
    assert found[0].objective == cost
    if found[1].bound_verified:
        assert check(SPARSE, found[1], comm=MPI.COMM_SELF, **more).bound == whole.objective


def test_a_certificate_of_what_is_left_names_the_nodes_of_the_graph():
    """A forest, of which nothing is left; damaged it proves nothing."""
    tree = nx.random_labeled_tree(300, seed=4)
    found = solve(tree, "mds", settings=limited(tree), comm=MPI.COMM_SELF)
    assert found.optimal and found.bound_verified
    assert check(tree, found, comm=MPI.COMM_SELF).bound == found.objective
    proof = from_bytes(found.certificate)
    first, *others = proof.steps
    damaged = replace(proof, steps=(Step(first.rule, first.by, first.nodes), *others))
    with pytest.raises(LockstepError):
        check(tree, replace(found, certificate=to_bytes(damaged)), comm=MPI.COMM_SELF)


def test_what_is_left_may_still_be_too_large():
    """The policy then decides, all of it where the limit is for no graph at all; the bound is one of rows."""
    settings = {"search.baselines": False, "memory.whole_graph_mb": 0.0}
    found = [solve(SPARSE, "mds", settings=settings, comm=comm) for comm in (MPI.COMM_WORLD, MPI.COMM_SELF)]
    assert found[0].nodes == found[1].nodes and found[0].source == "policy" and found[0].bound_verified
    assert nx.is_dominating_set(SPARSE, found[0].nodes)
