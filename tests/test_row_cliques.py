"""Cliques of graphs too large for one rank: what no heavier clique can hold goes from the row partitions."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from helpers import by_one
from mpi4py import MPI
from test_row_reductions import SELF, WORLD, drawn, graph_rows, own_rows

from app import check, solve
from app.errors import LockstepError
from app.graphs.graph import from_edges
from app.model.memory import whole_graph
from app.proofs.archive import from_bytes, to_bytes
from app.solver.rows.clique_check import check_cliques, check_core_bound
from app.solver.rows.cliques import PART_ENTRIES, bound_by_cores, reduce_cliques
from app.solver.rows.own import Rounds


def heaviest(graph, nodes, weights):
    """The weight of the heaviest clique among some nodes, by NetworkX."""
    other = nx.Graph(zip(graph.row_of().tolist(), graph.indices.tolist()))
    other.add_nodes_from(range(graph.n))
    worth = np.ones(graph.n, dtype=np.int64) if weights is None else weights
    nx.set_node_attributes(other, dict(enumerate(worth.tolist())), "w")
    return nx.max_weight_clique(other.subgraph(nodes), "w")[1]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("entries", [PART_ENTRIES, 40, 6])
def test_no_heavier_clique_is_lost(weighted, entries):
    """Whatever may be gathered to look for one; the same on any number of ranks."""
    for seed in range(40):
        graph = drawn(seed)
        weights = np.random.default_rng(seed).integers(0, 6, graph.n) if weighted else None
        found = []
        for group in (WORLD, SELF):
            mine, none = own_rows(group, graph), lambda nodes, edges: False
            reduced = reduce_cliques(group, mine, weights, Rounds(), none, True, entries)
            check_cliques(group, mine, reduced)
            bound = bound_by_cores(group, reduced, Rounds(most=100))
            check_core_bound(group, mine, weights, bound)
            found.append([*reduced.peeled, reduced.clique, reduced.nodes, bound.peeled])
        assert all(np.array_equal(a, b) for a, b in zip(*found, strict=True))
        best = heaviest(graph, range(graph.n), weights)
        assert heaviest(graph, reduced.nodes.tolist(), weights) == best <= bound.upper
        assert reduced.best <= best


def test_nodes_go_once_however_little_time_there_is():
    """By the clique that plain heuristics know."""
    graph = graph_rows(nx.disjoint_union(nx.star_graph(50), nx.complete_graph(6)))
    rounds = Rounds(lambda: True)
    reduced = reduce_cliques(WORLD, own_rows(WORLD, graph), rounds=rounds)
    check_cliques(WORLD, own_rows(WORLD, graph), reduced)
    assert (rounds.made, rounds.cut_short, reduced.best) == (1, True, 6)
    assert reduced.nodes.tolist() == [0, *range(51, 57)]


@pytest.mark.parametrize("entries", [0, 1, 5, 60, 300])
def test_where_no_neighbourhood_fits_some_of_one_is_looked_at(entries):
    """The same on any number of ranks; a part of one node has no edge, and is the end of halving."""
    for graph, least in ((nx.gnp_random_graph(80, 0.8, seed=1), 4), (nx.star_graph(90), 2)):
        found = []
        for group in (WORLD, SELF):
            mine, none = own_rows(group, graph_rows(graph)), lambda nodes, edges: False
            reduced = reduce_cliques(group, mine, None, Rounds(), none, True, entries)
            check_cliques(group, mine, reduced)
            found.append(reduced)
        assert np.array_equal(found[0].clique, found[1].clique)
        assert found[0].best >= (least if entries >= 60 else 2 if entries == 5 else 1)


def test_core_numbers_bound_cliques():
    """At most a little more than one above the degeneracy, which peeling finds."""
    graph = graph_rows(nx.gnp_random_graph(400, 0.2, seed=3))
    mine = own_rows(WORLD, graph)
    reduced = reduce_cliques(WORLD, mine)
    upper = bound_by_cores(WORLD, reduced, Rounds(most=1000)).upper
    cores = max(nx.core_number(nx.gnp_random_graph(400, 0.2, seed=3)).values()) + 1
    assert cores <= upper <= 1.1 * cores
    few = bound_by_cores(WORLD, reduced, Rounds(most=1))
    check_core_bound(WORLD, mine, None, few)
    assert few.upper >= upper


def test_damaged_reductions_are_refused():
    """A star beside a clique of four, and a triangle."""
    graph = from_edges(
        12, [0, 0, 0, 0, 5, 5, 5, 6, 6, 7, 9, 9, 10], [1, 2, 3, 4, 6, 7, 8, 7, 8, 8, 10, 11, 11]
    )
    reduced = reduce_cliques(SELF, graph)
    check_cliques(SELF, graph, reduced)
    assert reduced.best == 4 and reduced.nodes.tolist() == [5, 6, 7, 8]
    first, *more = (nodes for nodes in reduced.peeled if len(nodes))
    for damaged in (
        replace(reduced, best=3), replace(reduced, peeled=tuple(more)),
        replace(reduced, peeled=(first[::-1], first, *more)), replace(reduced, nodes=reduced.nodes[:3]),
        replace(reduced, clique=np.array([0, 5, 6, 7])), replace(reduced, clique=np.array([4, 5, 6, 7])),
    ):  # fmt: skip
        with pytest.raises(LockstepError, match="reductions on rows: "):
            check_cliques(SELF, graph, damaged)
    bound = bound_by_cores(SELF, reduced, Rounds())
    assert bound.upper == 4
    with pytest.raises(LockstepError, match="weighs more than 3"):
        check_core_bound(SELF, graph, None, replace(bound, upper=3))


# ---- answers ----------------------------------------------------------------------------------------------

QUIET = {"search.baselines": False, "search.steps": 500, "search.bound_seconds": 20.0}
SCALED = nx.powerlaw_cluster_graph(5000, 4, 0.3, seed=7)  # of which core numbers leave few nodes
SMALL = {"memory.whole_graph_mb": 0.5, "output.certificates": True}


def solved_everywhere(settings, **more):
    """The same answer on all ranks together, and on each alone."""
    given = {"settings": QUIET | settings, **more}
    found = [solve(SCALED, "clique", comm=MPI.COMM_WORLD, **given)]
    found.append(by_one(lambda: solve(SCALED, "clique", comm=MPI.COMM_SELF, **given)))
    assert found[0].nodes == found[1].nodes and found[0].bound == found[1].bound
    inside = found[0].nodes
    assert SCALED.subgraph(inside).number_of_edges() == len(inside) * (len(inside) - 1) // 2
    return found[1]


def test_a_graph_beyond_the_limit_is_answered_by_what_is_left():
    """As well as without a limit; its certificate is the graph's."""
    assert whole_graph(5000, SCALED.number_of_edges()) > 0.5e6
    whole = by_one(lambda: solve(SCALED, "clique", settings=QUIET, comm=MPI.COMM_SELF))
    found = solved_everywhere(SMALL)
    assert whole.optimal and (found.objective, found.bound) == (whole.objective,) * 2
    if found.certificate:
        assert check(SCALED, found, comm=MPI.COMM_SELF).bound == whole.objective


def test_weights_of_nodes_count():
    """Decimals, and nodes of weight 0, which no certificate numbers."""
    weights = np.round(np.random.default_rng(3).uniform(0, 9, 5000), 1)
    weights[::50] = 0
    given = {"node_weights": weights, "settings": QUIET, "comm": MPI.COMM_SELF}
    whole = by_one(lambda: solve(SCALED, "clique", **given))
    found = solved_everywhere(SMALL, node_weights=weights)
    assert whole.optimal and (found.objective, found.bound) == (whole.objective,) * 2
    assert found.objective == round(float(weights[found.nodes].sum()), 1)


@pytest.mark.parametrize("weighted", [False, True])
def test_what_is_left_may_still_be_too_large(weighted):
    """Without a search a plain clique is the answer, with the bound and the certificate of core numbers."""
    weights = np.round(np.random.default_rng(5).uniform(0, 4, 5000)) if weighted else None
    more = {"node_weights": weights} if weighted else {}
    alone = {"memory.whole_graph_mb": 0.001, "search.row_regions": 0}
    found = solved_everywhere(SMALL | alone, **more)
    assert found.source == "greedy" and found.bound_verified and found.objective < found.bound
    assert check(SCALED, found, comm=MPI.COMM_SELF, **more).bound == found.bound
    proof = from_bytes(found.certificate)
    with pytest.raises(LockstepError):
        damaged = to_bytes(replace(proof, least=proof.least - 1))
        check(SCALED, replace(found, certificate=damaged), comm=MPI.COMM_SELF, **more)


def test_a_certificate_of_what_is_left_names_the_nodes_of_the_graph():
    """Two cliques on the way of paths: core numbers prove the larger one."""
    graph = nx.disjoint_union(nx.path_graph(4990), nx.complete_graph(10))
    found = solve(graph, "clique", settings=QUIET | SMALL, comm=MPI.COMM_SELF)
    assert (found.objective, found.bound) == (10, 10) and found.bound_verified
    assert check(graph, found, comm=MPI.COMM_SELF).bound == 10
    proof = from_bytes(found.certificate)
    assert len(proof.peeled) == 5000 and proof.least == 10


def test_the_policy_is_asked_where_the_complement_is_small():
    """As before reductions of rows; a better clique that they know is the answer all the same."""
    dense = nx.gnp_random_graph(120, 0.8, seed=2)
    settings = {"search.baselines": False, "memory.whole_graph_mb": 0.001}
    found = solve(dense, "clique", settings=settings)
    assert found.source in ("policy", "greedy") and found.objective >= 15
