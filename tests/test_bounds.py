"""Every bound is below the optimum and proved by its witness; a witness that proves less is rejected."""

import itertools
import math
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.bounds.certificate import BadCertificate, Certificate
from app.bounds.cover.clique_cover import clique_cover
from app.bounds.cover.lp import half_integral
from app.bounds.cover.matching import maximal_matching
from app.bounds.cover.table import BOUNDS
from app.bounds.cover.verify import uncovered_edge
from app.graphs.graph import Graph, from_edges

pytestmark = pytest.mark.mpi_skip


@st.composite
def graphs(draw, largest=8):
    n = draw(st.integers(0, largest))
    pairs = list(itertools.combinations(range(n), 2))
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return from_edges(n, [u for u, _ in edges], [v for _, v in edges])


def from_networkx(graph):
    edges = np.array(graph.edges, dtype=np.int64).reshape(-1, 2)
    return from_edges(graph.number_of_nodes(), edges[:, 0], edges[:, 1])


def edges_of(graph):
    return [(u, v) for u, v in zip(graph.row_of().tolist(), graph.indices.tolist()) if u < v]


def optimum(graph):
    """The size of a smallest cover, by trying all sets of nodes."""
    edges = edges_of(graph)
    for size in range(graph.n + 1):
        for cover in map(set, itertools.combinations(range(graph.n), size)):
            if all(u in cover or v in cover for u, v in edges):
                return size
    raise AssertionError("the set of all nodes is a cover")


def relaxation(graph):
    """The optimum of the linear relaxation, by trying all values in {0, 1/2, 1}."""
    edges = edges_of(graph)
    values = itertools.product((0, 1, 2), repeat=graph.n)
    return min(sum(x) for x in values if all(x[u] + x[v] >= 2 for u, v in edges)) / 2


@given(graph=graphs())
@settings(max_examples=150, deadline=None)
def test_matching_lp_optimum_are_in_order(graph):
    matching, lp = maximal_matching(graph), half_integral(graph)
    matching.check(graph)
    lp.check(graph)
    assert matching.lower <= lp.lower <= optimum(graph) <= 2 * matching.lower


@given(graph=graphs(largest=6))
@settings(max_examples=60, deadline=None)
def test_lp_witness_has_the_value_of_the_relaxation(graph):
    lp = half_integral(graph)
    assert lp.halves.sum() / 2 == relaxation(graph)
    assert lp.lower >= math.ceil(relaxation(graph))


@given(graph=graphs(largest=30))
@settings(max_examples=60, deadline=None)
def test_maximal_matching_is_the_greedy_one(graph):
    used, chosen = set(), []
    for u, v in edges_of(graph):
        if not used & {u, v}:
            used |= {u, v}
            chosen.append((u, v))
    certificate = maximal_matching(graph)
    assert list(zip(certificate.u.tolist(), certificate.v.tolist())) == chosen


@pytest.mark.parametrize(
    ("graph", "lp"),
    [
        (nx.empty_graph(0), 0),
        (nx.empty_graph(4), 0),
        (nx.path_graph(2), 1),
        (nx.star_graph(6), 1),
        (nx.cycle_graph(5), 3),
        (nx.disjoint_union_all([nx.cycle_graph(5)] * 2), 6),
        (nx.cycle_graph(8), 4),
        (nx.complete_graph(4), 2),
        (nx.complete_graph(3), 2),
        (nx.complete_bipartite_graph(3, 5), 3),
    ],
)
def test_known_values(graph, lp):
    graph = from_networkx(graph)
    certificate = half_integral(graph)
    certificate.check(graph)
    assert certificate.lower == lp


@pytest.mark.parametrize("seed", range(5))
def test_lp_is_tight_on_bipartite_graphs(seed):
    graph = nx.bipartite.random_graph(40, 60, 0.05, seed=seed)
    certificate = half_integral(from_networkx(graph))
    # König: in a bipartite graph a smallest cover is as large as a largest matching.
    assert certificate.lower == len(nx.max_weight_matching(graph, maxcardinality=True))


@pytest.mark.parametrize("bound", BOUNDS.values(), ids=BOUNDS)
@pytest.mark.parametrize("seed", range(3))
def test_larger_graphs(bound, seed):
    graph = from_networkx(nx.barabasi_albert_graph(500, 3, seed=seed))
    certificate = bound(graph)
    certificate.check(graph)
    cover = nx.approximation.min_weighted_vertex_cover(nx.barabasi_albert_graph(500, 3, seed=seed))
    assert certificate.lower <= len(cover)


def pentagon():
    graph = from_networkx(nx.cycle_graph(5))
    return graph, half_integral(graph)


def changed(array, place, value):
    out = array.copy()
    out[place] = value
    return out


@pytest.mark.parametrize(
    ("corrupt", "message"),
    [
        (lambda c: replace(c, lower=c.lower + 1), "proves 3, the certificate says 4"),
        (lambda c: replace(c, lower=c.lower - 1), "proves 3, the certificate says 2"),
        (lambda c: replace(c, v=changed(c.v, 0, c.u[0])), "is not an edge"),
        (lambda c: replace(c, u=np.full(5, 0), v=np.full(5, 2)), "0-2 is not an edge"),
        (lambda c: replace(c, u=changed(c.u, 0, -1)), "is not an edge"),
        (lambda c: replace(c, v=changed(c.v, 0, 5)), "is not an edge"),
        (lambda c: replace(c, halves=changed(c.halves, 0, 2)), "add up to 1.5, above 1"),
        (lambda c: replace(c, halves=changed(c.halves, 0, 0)), "is not 1/2 or 1"),
        (lambda c: replace(c, halves=changed(c.halves, 0, -1)), "is not 1/2 or 1"),
        (lambda c: replace(c, u=np.append(c.u, 0), v=np.append(c.v, 1)), "have shapes"),
        (lambda c: Certificate(3, c.method, *np.array([[0, 1], [1, 2], [2, 2]])), "at node 1 add up to 2.0"),
        (lambda c: replace(c, u=c.u[:3], v=c.v[:3], halves=c.halves[:3]), "proves 2"),
    ],
)
def test_a_corrupted_witness_is_rejected(corrupt, message):
    graph, certificate = pentagon()
    certificate.check(graph)
    with pytest.raises(BadCertificate, match=message):
        corrupt(certificate).check(graph)


def test_a_witness_of_another_graph_is_rejected():
    _, certificate = pentagon()
    with pytest.raises(BadCertificate, match="is not an edge"):
        certificate.check(from_networkx(nx.path_graph(5)))
    with pytest.raises(BadCertificate, match="is not an edge"):
        certificate.check(from_edges(0, [], []))


def test_gap():
    _, certificate = pentagon()
    assert (certificate.gap(3), certificate.weak(3)) == (0, False)
    assert (certificate.gap(4), certificate.weak(4)) == (1 / 3, True)
    empty = half_integral(from_edges(3, [], []))
    assert (empty.gap(0), empty.weak(0)) == (0, False)
    assert (empty.gap(1), empty.weak(1)) == (math.inf, True)
    ten = replace(certificate, lower=10)
    assert not ten.weak(11)


def test_uncovered_edge():
    graph = from_networkx(nx.path_graph(6))
    cover = np.array([False, True, False, True, False, True])
    assert uncovered_edge(graph, cover) is None
    cover[3] = False
    assert uncovered_edge(graph, cover) == (2, 3)
    assert uncovered_edge(from_edges(4, [], []), np.zeros(4, dtype=bool)) is None
    with pytest.raises(ValueError, match="bool"):
        uncovered_edge(graph, cover.astype(int))
    with pytest.raises(ValueError, match="needs"):
        uncovered_edge(graph, cover[:5])


@pytest.mark.parametrize(("lo", "hi", "edge"), [(0, 2, None), (3, 6, (3, 2)), (4, 4, None), (2, 4, (2, 3))])
def test_uncovered_edge_of_some_rows(lo, hi, edge):
    whole = from_networkx(nx.path_graph(6))
    a, b = whole.indptr[[lo, hi]]
    rows = Graph("rows", 6, lo, hi, whole.indptr[lo : hi + 1] - a, whole.indices[a:b], edges=whole.edges)
    assert uncovered_edge(rows, np.array([False, True, False, False, False, True])) == edge


# ---- clique covers -------------------------------------------------------------------------------------


@given(graphs())
def test_the_clique_bound_is_proved_and_below_the_optimum(graph):
    bound = clique_cover(graph)
    bound.check(graph)
    assert bound.lower <= optimum(graph)


def test_the_clique_bound_is_tight_on_complete_graphs_and_their_unions():
    assert clique_cover(from_networkx(nx.complete_graph(7))).lower == 6
    assert clique_cover(from_networkx(nx.caveman_graph(4, 5))).lower == 16
    assert clique_cover(from_networkx(nx.empty_graph(3))).lower == 0


def test_a_wrong_clique_cover_is_rejected():
    graph = from_networkx(nx.path_graph(4))
    right = clique_cover(graph)
    for wrong in (
        replace(right, lower=right.lower + 1),
        replace(right, clique=np.zeros(4, dtype=np.int64)),
        replace(right, clique=right.clique[:3]),
        replace(right, clique=right.clique - 5),
    ):
        with pytest.raises(BadCertificate):
            wrong.check(graph)
