"""Bounds on the cut are above the optimum and proved by their witness; one that proves less is rejected."""

import time
from dataclasses import replace
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from data import needs_data
from helpers import seeds
from test_cut import KINDS, gset, optimum, random_graph, sparse_graph

from app.bounds.certificate import BadCertificate
from app.bounds.cut import relaxation as triangles
from app.bounds.cut import sdp
from app.bounds.cut import verify as cut_verify
from app.bounds.cut.bounds import READY_SECONDS, CutBounds
from app.bounds.cut.sdp import MixingMethod, colour_classes, smallest_eigenvalue
from app.bounds.cut.triangles import CutTriangles
from app.bounds.cut.verify import (
    KIND_SIGNS,
    CutCertificate,
    can_factor,
    dual_value,
    factor_size,
    positive_semidefinite,
)  # fmt: skip
from app.bounds.factor import banded_factor, dense_factor, margin
from app.graphs.fixed_point import integer_weights
from app.graphs.graph import from_edges

pytestmark = pytest.mark.mpi_skip
PLACES = 30


def improved(graph, calls=50, cycles=True):
    """The bounds of a graph after up to so many short calls; cycles False: the relaxation alone."""
    bounds = CutBounds(graph, cycles=cycles)
    for _ in range(calls):
        if not bounds.improve(0.01):
            break
    return bounds


def from_networkx(graph):
    edges = np.array(graph.edges, dtype=np.int64).reshape(-1, 2)
    return from_edges(graph.number_of_nodes(), edges[:, 0], edges[:, 1])


def dense(graph):
    """[n, n] float64 weights in units."""
    matrix = np.zeros((graph.n, graph.n))
    matrix[graph.row_of(), graph.indices] = integer_weights(graph)[0]
    return matrix


@pytest.mark.parametrize("cycles", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_every_bound_is_above_the_optimum_and_proved(kind, cycles):
    better = 0
    for seed in range(16):
        graph = random_graph(seed, kind)
        best, first = optimum(graph), CutBounds(graph).upper
        bounds = improved(graph, cycles=cycles)
        assert best <= bounds.upper <= first
        bounds.certificate().check(graph)
        better += bounds.upper < first
        with pytest.raises(BadCertificate, match="the witness proves"):
            replace(bounds.certificate(), upper=bounds.upper - 1).check(graph)
    assert better > 4


def test_eigenvalues_are_found_where_lapack_gives_up(monkeypatch):
    """Its method for part of the spectrum fails for some matrices of equal eigenvalues, by processor."""
    M = np.random.default_rng(3).normal(size=(20, 20))
    M += M.T
    wanted, eigh = triangles.positive_part(M), triangles.eigh

    def fails(M, driver, **rest):
        if driver == "evr":
            raise np.linalg.LinAlgError("Internal Error.")
        return eigh(M, driver=driver, **rest)

    monkeypatch.setattr(triangles, "eigh", fails)
    values, Q = triangles.positive_part(M)
    assert 0 < len(values) < 20 and np.allclose(values, wanted[0])
    assert np.allclose((Q * values) @ Q.T, (wanted[1] * wanted[0]) @ wanted[1].T)


def test_bounds_are_near_the_optimum():
    """At most 1/0.878 of the optimum where no weight is negative (Goemans and Williamson 1995)."""
    for seed in range(15):
        graph = random_graph(seed, "plain", 12)
        assert improved(graph, cycles=False).upper <= optimum(graph) / 0.878


@pytest.mark.parametrize(
    ("name", "upper"),
    [
        (nx.cycle_graph(5), 4),  # 4.52
        (nx.petersen_graph(), 12),  # 12.5
        (nx.complete_graph(7), 12),  # 12.25
        (nx.cycle_graph(101), 100),
        (nx.hypercube_graph(5), 80),
    ],
)
def test_known_values(name, upper):
    graph = from_networkx(nx.convert_node_labels_to_integers(name))
    bounds = improved(graph)
    assert bounds.upper == upper
    bounds.certificate().check(graph)


@pytest.mark.parametrize("n", [0, 1, 4])
def test_without_edges_the_bound_is_zero(n):
    graph = from_edges(n, [], [])
    bounds = CutBounds(graph)
    assert not bounds.improve(1.0) and bounds.upper == 0
    bounds.certificate().check(graph)


def test_a_bound_that_is_met_ends_the_work():
    graph = from_networkx(nx.petersen_graph())
    bounds = CutBounds(graph)
    assert not bounds.improve(10.0, lower=15) and bounds.upper == 15
    assert not bounds.improve(10.0, lower=12) and bounds.upper == 12


def test_mutated_witnesses_are_rejected():
    rejected = 0
    for seed in range(30):
        graph = random_graph(seed, "signs", 8)
        certificate = improved(graph, cycles=False).certificate()
        if certificate.y is None:
            continue
        draws = np.random.default_rng(seed)
        y = certificate.y.copy()
        v = int(draws.integers(graph.n))
        y[v] -= int(4 * (1 << certificate.places))  # one whole unit of cut less
        with pytest.raises(BadCertificate):
            replace(certificate, y=y, upper=certificate.upper - 1).check(graph)
        for wrong in (y[:-1], y.astype(np.float64), -certificate.y):
            with pytest.raises(BadCertificate):
                replace(certificate, y=wrong).check(graph)
        rejected += 1
    assert rejected > 5


def test_a_witness_is_no_proof_for_a_heavier_graph():
    graph = from_networkx(nx.petersen_graph())
    certificate = improved(graph, cycles=False).certificate()
    edges = graph.row_of() < graph.indices
    doubled = np.full(int(edges.sum()), 2.0)
    heavier = from_edges(graph.n, graph.row_of()[edges], graph.indices[edges], doubled)
    with pytest.raises(BadCertificate, match="semidefinite"):
        certificate.check(heavier)
    trivial = CutBounds(graph).certificate()
    with pytest.raises(BadCertificate, match="proves 30"):
        trivial.check(heavier)


# ---- the proof of semidefiniteness ----------------------------------------------------------------------


def proved(graph, y, places=PLACES):
    fixed = np.floor(np.ldexp(y, places)).astype(np.int64)
    return positive_semidefinite(graph, integer_weights(graph)[0], fixed, places)


def test_semidefinite_is_proved_only_where_it_is_true():
    for seed in range(100):
        graph = random_graph(seed, "whole")
        y = np.random.default_rng(seed).random(graph.n) * 8
        least = np.linalg.eigvalsh(dense(graph) + np.diag(y))[0]
        for distance in (1e-6, 1e-3, 1.0):
            assert proved(graph, y - least + distance)
            assert not proved(graph, y - least - distance)


def test_the_singular_matrix_is_not_proved():
    """Its smallest eigenvalue is zero: no computation with rounding can tell."""
    edge = from_edges(2, [0], [1])
    assert not proved(edge, np.ones(2))
    assert proved(edge, np.ones(2) + 1e-8)
    assert not proved(edge, np.array([2.0, 0.5]) - 1e-8)
    assert proved(edge, np.array([2.0, 0.5]) + 1e-8)
    assert not proved(edge, np.array([-1.0, -1.0]))


def semidefinite(matrix):
    """Exact elimination of a matrix of Fractions; a zero pivot counts only with a zero row."""
    rows = [list(row) for row in matrix]
    for k, row in enumerate(rows):
        if row[k] < 0 or (row[k] == 0 and any(row[k + 1 :])):
            return False
        for below in rows[k + 1 :] if row[k] else []:
            factor = below[k] / row[k]
            for column in range(k, len(row)):
                below[column] -= factor * row[column]
    return True


def wrong_proofs(places=48):
    """How many matrices near the border are proved semidefinite and are not, by exact arithmetic."""
    wrong = 0
    for seed in range(150):
        graph = sparse_graph(20, 100, seed)
        y = np.random.default_rng(seed).random(graph.n)
        least = np.linalg.eigvalsh(dense(graph) + np.diag(y))[0]
        fixed = np.floor(np.ldexp(y - least, places)).astype(np.int64) + np.int64(seed % 3 - 1)
        if positive_semidefinite(graph, integer_weights(graph)[0], fixed, places):
            exact = [[Fraction(entry) for entry in row] for row in dense(graph).tolist()]
            for v, entry in enumerate(fixed.tolist()):
                exact[v][v] = Fraction(entry, 2**places)
            wrong += not semidefinite(exact)
    return wrong


def test_rounding_never_proves_too_much(monkeypatch):
    assert wrong_proofs() == 0
    monkeypatch.setattr(cut_verify, "margin", lambda n, trace: 0.0)
    assert wrong_proofs() > 0  # the margin is what makes the difference


@pytest.mark.parametrize("value", [np.nan, -1.0])
def test_a_pivot_that_is_no_positive_number_ends_a_factorisation(value):
    """Some LAPACKs go on beyond one that is no number."""
    for place in (0, 20, 39):
        banded = np.zeros((2, 40), order="F")
        banded[0] = 2
        assert banded_factor(banded.copy(order="F")) and dense_factor(np.diag(banded[0]))
        banded[0, place] = value
        assert not banded_factor(banded.copy(order="F")) and not dense_factor(np.diag(banded[0]))


def test_the_margin_is_small():
    assert 0 < margin(7000, 1.0) < 2e-12


@pytest.mark.parametrize(("n", "banded"), [(60, True), (4, False)])
def test_banded_and_dense_proofs_agree(n, banded, monkeypatch):
    graph = from_networkx(nx.cycle_graph(n))
    assert (factor_size(graph)[0] < n - 1) == banded
    least = float(np.linalg.eigvalsh(dense(graph))[0])
    for shift in (-least + 1e-6, -least - 1e-6):
        plain = proved(graph, np.full(n, shift))
        monkeypatch.setattr(cut_verify, "factor_size", lambda g: (g.n - 1, np.arange(g.n)))
        assert proved(graph, np.full(n, shift)) == plain == (shift > -least)
        monkeypatch.undo()


def test_what_does_not_fit_is_not_proved(monkeypatch):
    graph = from_networkx(nx.petersen_graph())
    certificate = improved(graph, cycles=False).certificate()
    monkeypatch.setattr(cut_verify, "ROOM", 50)
    bounds = CutBounds(graph, cycles=False)
    assert not bounds.improve(1.0) and bounds.upper == 15
    with pytest.raises(BadCertificate, match="not proved"):
        certificate.check(graph)


def test_dual_values_are_exact():
    weights = np.array([1, 1, 2**51, 2**51], dtype=np.int64)
    y = np.array([2**62, 2**62, 2**62, 1], dtype=np.int64)
    assert dual_value(weights, y, 0) == (2**52 + 2 + 3 * 2**62 + 1) // 4
    assert dual_value(np.array([1, 1]), np.array([-3]), 1) == 0  # 1/2 - 3/8
    assert dual_value(np.array([1, 1]), np.array([-5]), 1) == -1
    assert CutCertificate(7, "none").y is None


# ---- the optimisers -------------------------------------------------------------------------------------


def test_the_relaxation_converges_to_its_dual():
    graph = sparse_graph(60, 300, 1)
    matrix = CutBounds(graph)._matrix
    mixing = MixingMethod(matrix, graph)
    values = [mixing.sweep() for _ in range(1000)]
    assert values[-1] >= values[100] >= values[3]
    assert smallest_eigenvalue(matrix, mixing.y) == pytest.approx(0, abs=1e-3)


def test_nodes_of_a_colour_are_not_adjacent():
    graph = sparse_graph(80, 500, 2)
    colour = np.full(80, -1)
    for number, nodes in enumerate(colour_classes(graph.indptr, graph.indices)):
        colour[nodes] = number
    assert colour.min() >= 0
    assert (colour[graph.row_of()] != colour[graph.indices]).all()


def test_smallest_eigenvalue_of_a_larger_matrix():
    graph = sparse_graph(600, 2500, 3)
    matrix = CutBounds(graph)._matrix
    y = np.random.default_rng(1).random(600)
    exact = np.linalg.eigvalsh(dense(graph) + np.diag(y))[0]
    assert smallest_eigenvalue(matrix, y) == pytest.approx(exact, abs=1e-2)


@pytest.mark.parametrize("n", [300, 500])
def test_smallest_eigenvalue_where_many_are_near_zero(n, monkeypatch):
    """As of the best y; its own size is no measure of the error then, where rows differ much in weight."""
    graph = sparse_graph(n, 4 * n, 3)
    hub = sp.lil_array((n, n))
    hub[0, 1:] = hub[1:, 0] = 1.0 + np.arange(n - 1) % 7
    matrix = sp.csr_array(CutBounds(graph)._matrix + hub)
    rows = sp.triu(matrix, 1).tocoo()
    mixing = MixingMethod(matrix, from_edges(n, rows.row, rows.col))
    for _ in range(300):
        mixing.sweep()
    exact = np.linalg.eigvalsh(matrix.toarray() + np.diag(mixing.y))[0]
    size = np.abs(matrix).sum(axis=1).max() + mixing.y.max()
    assert smallest_eigenvalue(matrix, mixing.y) == pytest.approx(exact, abs=1e-6 * size)
    monkeypatch.setattr(sdp, "ERRORS", (1e-16,))
    monkeypatch.setattr(sdp, "RESTARTS", 1)
    least = smallest_eigenvalue(matrix, mixing.y)
    assert least <= exact + 1e-9 * size
    assert (least < -1) == (n > sdp.DENSE)  # none is found


@needs_data
@pytest.mark.parametrize(
    ("name", "best", "gap"), [pytest.param("G1", 11624, 0.04, marks=pytest.mark.long), ("G11", 564, 0.0)]
)
def test_gset_bounds(name, best, gap):
    graph = gset(name)
    bounds = CutBounds(graph)
    while bounds.improve(1.0, lower=best):
        pass
    assert best <= bounds.upper <= (1 + gap) * best
    bounds.certificate().check(graph)


# ---- triangle inequalities ------------------------------------------------------------------------------


def triangle_certificate(seed, n=14, rounds=6):
    """A graph, and the certificate of its relaxation with triangles."""
    draws = np.random.default_rng(seed)
    u, v = np.triu_indices(n, 1)
    graph = from_edges(n, u, v, draws.integers(-5, 6, len(u)).astype(float))
    weights, _ = integer_weights(graph)
    bound = CutTriangles(graph, weights, np.abs(dense(graph)).sum(axis=1))
    for _ in range(rounds):
        bound.round()
    return graph, bound.certificate(PLACES, 1 << 40)


@pytest.mark.parametrize("seeds", seeds(6, 3))
def test_triangles_are_proved_and_above_the_optimum(seeds):
    for seed in seeds:
        graph, found = triangle_certificate(seed)
        found.check(graph)
        assert len(found.g) and found.upper >= optimum(graph)
        assert found.upper <= improved(graph, cycles=False).upper + 2
        with pytest.raises(BadCertificate, match="the witness proves"):
            replace(found, upper=found.upper - 1).check(graph)


def test_what_they_prove_is_so_in_exact_arithmetic():
    """W - D + Diag(y) by elimination with Fractions, built entry by entry from the inequalities' meaning."""
    for seed in range(4):
        graph, found = triangle_certificate(seed, 9)
        one = Fraction(1, 2**found.places)
        matrix = [[Fraction(int(entry)) for entry in row] for row in dense(graph)]
        for (i, j, k, kind), g in zip(found.triangles.tolist(), found.g.tolist()):
            signs = KIND_SIGNS[kind]
            assert signs[0] * signs[1] * signs[2] == 1
            for sign, (a, b) in zip(signs, ((i, j), (i, k), (j, k))):
                matrix[a][b] -= sign * g * one / 2
                matrix[b][a] -= sign * g * one / 2
        for v, y in enumerate(found.y.tolist()):
            matrix[v][v] += y * one
        assert semidefinite(matrix)


def test_damaged_triangles_are_rejected():
    graph, found = triangle_certificate(1)
    other, out_of_order = found.triangles.copy(), found.triangles.copy()
    heavy = int(np.argmax(found.g))
    other[heavy, 3] = (other[heavy, 3] + 1) % 4
    out_of_order[heavy, :2] = out_of_order[heavy, 1::-1]
    beyond = found.triangles + np.array([0, 0, graph.n, 0], dtype=np.int32)
    changes = {
        "semidefinite": [
            {"triangles": other},
            {"y": found.y - (1 << found.places)},
            {"g": 2 * found.g},
            {"g": found.g + (1 << 60)},
        ],
        "not triangles": [{"triangles": out_of_order}, {"triangles": beyond}],
        "even": [{"g": found.g + 1}, {"g": -found.g - 2}],
        "needs": [{"g": found.g[1:]}, {"y": found.y[1:]}, {"g": found.g.astype(float)}],
    }
    for match, each in changes.items():
        for change in each:
            with pytest.raises(BadCertificate, match=match):
                replace(found, **change).check(graph)


def test_triangles_go_on_where_the_relaxation_ends():
    graph = from_networkx(nx.gnp_random_graph(40, 0.5, seed=1))
    bounds = improved(graph, 200, cycles=False)
    assert bounds.method == "semidefinite relaxation with triangles"
    assert bounds.check_seconds > 0
    bounds.certificate().check(graph)
    assert bounds.upper < CutBounds(graph, cycles=False).upper


def test_triangles_that_would_take_long_are_left_out():
    graph = from_networkx(nx.gnp_random_graph(300, 0.1, seed=1))
    for seconds, wanted in (
        (0.5, "semidefinite relaxation"),
        (1e3, "semidefinite relaxation with triangles"),
    ):
        bounds = CutBounds(graph, cycles=False)
        bounds.expect(seconds)
        for _ in range(40):
            if not bounds.improve(0.5) or bounds.method.endswith("triangles"):
                break
        assert bounds.method.endswith(wanted)


def test_triangles_of_heavy_weights_are_proved():
    """All multipliers together are beyond 2^52 of the unit then; no entry of the matrix is."""
    u, v = np.triu_indices(90, 1)
    draws = np.random.default_rng(1)
    graph = from_edges(90, u, v, draws.integers(1, 1 << 30, len(u)).astype(float))
    bound = CutTriangles(graph, integer_weights(graph)[0], np.abs(dense(graph)).sum(axis=1))
    for _ in range(6):
        bound.round()
    found = bound.certificate(15, 1 << 60)
    assert sum(found.g.tolist()) >= cut_verify.LARGEST
    found.check(graph)
    with pytest.raises(BadCertificate, match="semidefinite"):
        replace(found, places=-1).check(graph)


def test_weights_too_large_for_fractions_of_a_unit_are_bounded_without_triangles():
    n = 12
    u, v = np.triu_indices(n, 1)
    graph = from_edges(n, u, v, np.where(u == 0, 2.0**51 // n, 2.0**38))
    bounds = improved(graph, 20, cycles=False)
    assert bounds.upper >= optimum(graph)
    bounds.certificate().check(graph)


def test_a_factor_that_cannot_fit_is_known_without_an_order(monkeypatch):
    """Of a hub, and of many edges; what is said without is what the order says."""
    star = from_edges(200, np.zeros(199, dtype=int), np.arange(1, 200))
    path = from_edges(200, np.arange(199), np.arange(1, 200))
    for room in (400, 1000, 40_000):
        monkeypatch.setattr("app.bounds.cut.verify.ROOM", room)
        for graph in (star, path, *(random_graph(seed, "plain", 12) for seed in range(20))):
            by_order = graph.n > 0 and (factor_size(graph)[0] + 1) * graph.n <= room
            assert can_factor(graph) == by_order
    monkeypatch.setattr("app.bounds.cut.verify.factor_size", None)
    monkeypatch.setattr("app.bounds.cut.verify.ROOM", 1000)
    assert not can_factor(star)


def test_bounds_that_take_long_to_begin_with_ask_for_the_time():
    """Where there is enough, or no limit, nothing is said; the first call makes ready."""
    graph = from_networkx(nx.petersen_graph())
    bounds = CutBounds(graph)
    before = bounds.least_seconds
    bounds.until(time.perf_counter() + 60)
    assert bounds.least_seconds == before and bounds.closing
    bounds.until(time.perf_counter())
    assert bounds.least_seconds == before + READY_SECONDS * 40
    bounds.improve(0.0)
    assert bounds.least_seconds == before
