"""The theta function: known values, bounds above every independent set, certificates that prove or fail."""

from dataclasses import replace
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from covers import cheapest, from_networkx, random_graph, random_weights

from app.bounds.certificate import BadCertificate
from app.bounds.cover import bounds as cover
from app.bounds.cover import theta
from app.bounds.cover.bounds import CoverBounds
from app.bounds.cover.theta import EIGENVALUE, THETA, Theta, bytes_of
from app.bounds.cover.theta_verify import ThetaCertificate, semidefinite, unit_vector
from app.bounds.cover.witness import ThetaPart
from app.graphs.graph import Graph, from_edges
from app.native.library import kernels

pytestmark = pytest.mark.mpi_skip


def ended(graph: Graph, weights: np.ndarray | None = None, upper: int | None = None) -> Theta:
    """The theta function at its end."""
    total = graph.n if weights is None else int(weights.sum())
    found = Theta(graph, weights, total if upper is None else upper)
    for _ in found.slices():
        pass
    return found


def near(n: int, distance: int) -> nx.Graph:
    """Words of n bits, joined where they differ in at most so many."""
    words = nx.empty_graph(2**n)
    words.add_edges_from((u, v) for u in words for v in range(u) if (u ^ v).bit_count() <= distance)
    return words


def blown_up(graph: Graph, weights: np.ndarray) -> Graph:
    """As many nodes for each as it weighs, no two of which are joined."""
    own = np.repeat(np.arange(graph.n), weights)
    joined = np.zeros((graph.n, graph.n), dtype=bool)
    joined[graph.row_of(), graph.indices] = True
    u, v = np.triu_indices(len(own), 1)
    keep = joined[own[u], own[v]]
    return from_edges(len(own), u[keep], v[keep])


# ---- values ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "graph, value",
    [
        (nx.cycle_graph(5), 5**0.5),
        (nx.cycle_graph(7), 3.3177),
        (nx.petersen_graph(), 4),
        (nx.complete_graph(6), 1),
        (nx.complete_bipartite_graph(3, 8), 8),
        (nx.paley_graph(13).to_undirected(), 13**0.5),
        (nx.convert_node_labels_to_integers(nx.kneser_graph(7, 3)), 15),
        (near(6, 3), 4),  # Schrijver's example: the theta function is 16/3
        (nx.disjoint_union(nx.cycle_graph(5), nx.cycle_graph(7)), 5**0.5 + 3.3177),
    ],
)
def test_known_values(graph, value):
    graph = from_networkx(graph)
    found = ended(graph)
    assert value - 1e-3 < found._bounds[-1]
    assert found.upper == int(value + 1e-3)
    found.best.check(graph)


def test_weights_stand_for_so_many_nodes():
    graph = from_networkx(nx.gnp_random_graph(14, 0.4, seed=2))
    weights = np.arange(1, 15) % 4 + 1
    one, other = ended(graph, weights), ended(blown_up(graph, weights))
    assert abs(one._bounds[-1] - other._bounds[-1]) < 0.02
    one.best.check(graph, weights)
    huge = ended(graph, weights << 40)
    assert huge._bounds[-1] / 2**40 == pytest.approx(one._bounds[-1], rel=1e-4)
    huge.best.check(graph, weights << 40)


@pytest.mark.parametrize("places", [44, 50, 56])
def test_shares_are_not_as_fine_as_sums_of_large_weights(places):
    """A bound says no more than its certificate proves."""
    draws = np.random.default_rng(places)
    for seed in range(20):
        graph = from_networkx(nx.gnp_random_graph(12, 0.4, seed=seed))
        weights = draws.integers(1, 1 << places, graph.n)
        found = ended(graph, weights)
        found.best.check(graph, weights)


@pytest.mark.parametrize("seed", range(4))
def test_no_independent_set_weighs_more(seed):
    draws = np.random.default_rng(seed)
    for _ in range(25):
        graph = random_graph(draws, 12, 1)
        weights = random_weights(draws, graph.n)
        total = graph.n if weights is None else int(weights.sum())
        found = ended(graph, weights)
        assert found.upper >= total - cheapest(graph, weights)
        if found.best is not None:
            found.best.check(graph, weights)
            assert found.best.upper == found.upper


def test_nothing_to_do():
    assert ended(from_edges(4, np.zeros(0, dtype=int), np.zeros(0, dtype=int))).best is None
    assert ended(from_networkx(nx.path_graph(3)), np.zeros(3, dtype=np.int64)).best is None
    assert bytes_of(1) == bytes_of(theta.MOST + 1) == np.inf > bytes_of(theta.MOST)


def test_the_first_bound_is_hoffmans():
    graph = from_networkx(nx.petersen_graph())  # regular of degree 3, smallest eigenvalue -2: 10 * 2/(3 + 2)
    first = Theta(graph, None, 10)
    next(first.slices())
    assert first.best.method == EIGENVALUE and first.best.upper == 4 and first.steps == 0


def test_a_bound_that_cannot_overtake_ends():
    graph = from_networkx(nx.barabasi_albert_graph(150, 2, seed=1))
    slow, known = ended(graph), 80
    soon = ended(graph, upper=known)
    assert slow.steps > soon.steps >= theta.HOPELESS * theta.LOOK
    assert soon.best is None and soon.upper == known < slow.upper


def test_eigenvalues_that_do_not_converge_leave_a_bound(monkeypatch):
    from scipy.sparse.linalg import ArpackError

    def fails(*_args, **_named):
        raise ArpackError(-1)

    monkeypatch.setattr(theta, "eigsh", fails)
    graph = from_networkx(nx.cycle_graph(9))
    found = Theta(graph, None, 1 << 40)
    for _, _ in zip(range(30), found.slices()):
        pass
    assert found.best is not None and found.best.upper >= 4
    found.best.check(graph)


# ---- certificates ------------------------------------------------------------------------------------------


def exactly_semidefinite(B: np.ndarray, share: float) -> bool:
    """Gaussian elimination of share I + B - J/n in fractions; B counts below its diagonal."""
    n = len(B)
    M = [[Fraction(float(B[max(i, j), min(i, j)])) - Fraction(1, n) for j in range(n)] for i in range(n)]
    for i in range(n):
        M[i][i] = Fraction(share) - Fraction(1, n)
    for k in range(n):
        if M[k][k] < 0 or (M[k][k] == 0 and any(M[i][k] for i in range(k + 1, n))):
            return False
        for i in range(k + 1, n) if M[k][k] else ():
            factor = M[i][k] / M[k][k]
            for j in range(k + 1, n):
                M[i][j] -= factor * M[k][j]
    return True


@pytest.mark.parametrize("seed", range(3))
def test_what_is_proved_holds_in_exact_numbers(seed):
    """Shares around the least that is enough: none is taken that is not, those a bit above are."""
    draws = np.random.default_rng(seed)
    said = []
    for _ in range(12):
        n = int(draws.integers(2, 10))
        B = np.tril(draws.normal(size=(n, n)).astype(np.float32), -1)
        M = B.astype(np.float64) + B.T - 1 / n
        np.fill_diagonal(M, -1 / n)
        least = -float(np.linalg.eigvalsh(M)[0])
        for off in (-1e-6, -1e-14, 0.0, 1e-15, 1e-13, 1e-9):
            share = least * (1 + off)
            proved = semidefinite(B, share, unit_vector(n, None))
            assert exactly_semidefinite(B, share) or not proved
            said.append((off, proved))
    assert all(proved for off, proved in said if off == 1e-9)
    assert not any(proved for off, proved in said if off == -1e-6)


def refused(certificate: ThetaCertificate, graph: Graph, text: str, weights=None) -> None:
    with pytest.raises(BadCertificate, match=text):
        certificate.check(graph, weights)


def test_a_damaged_certificate_is_refused():
    plain = nx.gnp_random_graph(30, 0.4, seed=4)
    graph = from_networkx(plain)
    good = ended(graph).best
    assert good.method == THETA
    good.check(graph)
    refused(replace(good, upper=good.upper - 1), graph, "the witness proves")
    refused(replace(good, share=0.98 * good.share / (good.upper + 1) * good.upper), graph, "not proved")
    refused(replace(good, share=float("nan")), graph, "is no bound")
    refused(replace(good, multipliers=good.multipliers[:-1]), graph, "needs")
    refused(replace(good, multipliers=good.multipliers.astype(np.float64)), graph, "needs")
    for value in (np.nan, 1.0):
        B = good.multipliers.copy()
        u, v = next(iter(nx.non_edges(plain)))
        B[max(u, v), min(u, v)] = value
        refused(replace(good, multipliers=B), graph, f"of {max(u, v)}-{min(u, v)}, no edge, is above 0")
    u, v = next(iter(plain.edges))
    B = good.multipliers.copy()
    B[max(u, v), min(u, v)] = np.inf
    refused(replace(good, multipliers=B), graph, "not proved")
    heavy = np.ones(30, dtype=np.int64)
    heavy[3] = 50
    refused(good, graph, "not proved|the witness proves", heavy)
    for wrong in (heavy[1:], heavy - 2, heavy.astype(np.float64)):
        refused(good, graph, "needs .* weights", wrong)
    # Of a graph with fewer edges it proves nothing: some multiplier of what is no edge there is above 0.
    u, v = max(plain.edges, key=lambda e: good.multipliers[max(e), min(e)])
    plain.remove_edge(u, v)
    refused(good, from_networkx(plain), "no edge")


def test_a_pivot_that_is_no_number_proves_nothing():
    """LAPACK's factorisation does not stop there."""
    q = unit_vector(40, None)
    q[0] = np.nan
    assert not semidefinite(np.zeros((40, 40), dtype=np.float32), 1.5, q)


# ---- covers ------------------------------------------------------------------------------------------------


def worked_out(graph: Graph, weights: np.ndarray | None = None, seconds: float = 2.0) -> CoverBounds:
    """Bounds without a search tree after some time."""
    bounds = CoverBounds(graph, weights, search=False)
    bounds.improve(seconds)
    return bounds


def dense_and_sparse(n: int = 110) -> Graph:
    """A random graph of half of its pairs, a cycle of 301 nodes, and small components."""
    parts = [nx.gnp_random_graph(n, 0.5, seed=1), nx.cycle_graph(301), *[nx.complete_graph(4)] * 5]
    return from_networkx(nx.disjoint_union_all(parts))


@pytest.mark.parametrize("weighted", [False, True])
def test_a_dense_component_is_bounded_by_it(weighted):
    graph = dense_and_sparse()
    weights = random_weights(np.random.default_rng(1), graph.n) if weighted else None
    bounds = worked_out(graph, weights)
    assert THETA in bounds.method
    found = bounds.certificate()
    assert found.lower == bounds.lower and found.checked
    assert [len(part.nodes) for part in found.thetas] == [110]
    found.check(graph)
    if not weighted:
        assert bounds.lower >= 110 - 11 + 151 + 15  # packings say 89 of the first
    for wrong, text in (
        (replace(found, lower=found.lower + 1), "add up to"),
        (replace(found, thetas=found.thetas * 2), "paid for twice"),
        (replace(found, thetas=()), "add up to"),
    ):
        with pytest.raises(BadCertificate, match=text):
            wrong.check(graph)
    part = found.thetas[0]
    for nodes, text in ((part.nodes[::-1], "not ascending"), (part.nodes + graph.n, "is not in")):
        wrong = ThetaPart(nodes, part.cost, part.certificate)
        with pytest.raises(BadCertificate, match=text):
            replace(found, thetas=(wrong,)).check(graph)


def test_a_limit_of_memory_leaves_it_out():
    graph = dense_and_sparse()
    bounds = CoverBounds(graph, search=False, most_bytes=bytes_of(109))
    bounds.improve(1.0)
    assert THETA not in bounds.method
    groups, single = cover._groups(graph)
    assert [len(nodes) for nodes in groups] == [110, 301, 20] and single == [True, True, False]
    room = cover._room(groups, single, bytes_of(110) + bytes_of(20) + 1)
    assert room.tolist() == [True, False, False]


@pytest.mark.parametrize("left, fits", [(4, True), (3, False)])
def test_matrices_take_a_part_of_the_memory_that_is_left(left, fits, monkeypatch):
    groups = [np.arange(2000)]
    monkeypatch.setattr(cover, "resident_bytes", lambda: 10**9)
    monkeypatch.setattr(cover, "memory_room", lambda: (10**9 + int(left * bytes_of(2000)), "a test"))
    assert cover._room(groups, [True], np.inf).tolist() == [fits]


def test_it_says_that_it_gains_until_it_has_ended():
    graph = from_networkx(nx.gnp_random_graph(120, 0.5, seed=3))
    bounds, said = CoverBounds(graph, search=False), []
    while bounds.improve(0.01):
        said.append(bounds.gaining)
        if len(said) > 5000:
            break
    assert any(said) and not bounds.gaining
    assert bounds.check_seconds > 0


@pytest.mark.long
@pytest.mark.skipif(kernels() is None, reason="without kernels no search closes the part in its turns")
def test_a_part_that_closes_gains_no_more():
    """A dense component that a search closes while the theta function is at work, beside an open one."""
    dense, sparse = nx.gnp_random_graph(130, 0.5, seed=1), nx.gnp_random_graph(2000, 0.002, seed=2)
    bounds, said = CoverBounds(from_networkx(nx.disjoint_union(dense, sparse))), []
    for _ in range(200):
        more = bounds.improve(0.02)
        said.append(bounds.gaining)
        if not more:
            break
    assert any(said) and not said[-1]
    assert "branch and reduce" in bounds.method


@pytest.mark.parametrize(
    "seconds, begun, steps", [(0.5, False, False), (8.0, True, False), (1e3, True, True)]
)
def test_it_begins_and_goes_on_where_there_is_time(seconds, begun, steps):
    graph = from_networkx(nx.gnp_random_graph(1500, 0.02, seed=1))
    found = Theta(graph, None, graph.n, seconds)
    found._took = [1.0]
    made = [found.next_seconds > 0 for _, _ in zip(range(2), found.slices())]
    assert len(made) == begun + steps and bool(found.steps) == steps
    if begun and not steps:
        assert found.next_seconds == 0.0  # what is left takes no time


def test_a_part_pays_what_its_certificate_says():
    graph = from_networkx(nx.gnp_random_graph(120, 0.5, seed=5))
    found = worked_out(graph).certificate()
    part = found.thetas[0]
    wrong = replace(found, lower=found.lower + 1, thetas=(replace(part, cost=part.cost + 1),))
    with pytest.raises(BadCertificate, match="do not make a cost"):
        wrong.check(graph)
    heavy = replace(found, packing=replace(found.packing, weights=np.full(120, 3)))
    with pytest.raises(BadCertificate, match="theta function: the witness proves"):
        heavy.check(graph)
