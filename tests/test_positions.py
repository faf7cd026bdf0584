"""Positions (gnn.positions): exact on any ranks and devices, in sets, as weights say, on all levels."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from conftest import WORLD
from helpers import make_block, whole_rows
from mpi4py import MPI

from app import classify, classify_edges, embed, find_links
from app.case.file import build
from app.case.gnn import GnnCase
from app.errors import CaseError, GraphError
from app.gnn.classifier import Classifier
from app.gnn.features import make_features
from app.gnn.positions import draw_signs, position_rows
from app.gnn.saved import load_model

ALL = ["walks=5", "laplacian=3", "degree", "core", "triangles"]
SIGNED = slice(5, 8)
QUICK = {
    "gnn.epochs": 5, "gnn.hidden": 4, "gnn.baselines": False, "gnn.feature_rows": "as_given",
    "graph.splits": "random", "gnn.positions": ALL,
}  # fmt: skip


def mixed(n=60, seed=5):
    """Two components whose eigenvalues differ, a single edge and two isolated nodes."""
    graph = nx.disjoint_union(nx.connected_watts_strogatz_graph(n - 11, 6, 0.3, seed=seed), nx.path_graph(7))
    graph.add_nodes_from(range(len(graph), n))
    graph.add_edge(n - 4, n - 3)
    return graph


def by_hand(graph, weights=None):
    """All of ALL but eigenvectors, in float64; weights: dense, of the walks."""
    A = nx.to_numpy_array(graph, nodelist=range(len(graph)), weight=None)
    W = A if weights is None else weights
    d = W.sum(axis=1)
    P = np.divide(W, d[:, None], out=np.zeros_like(W), where=d[:, None] > 0)
    walks = [np.diag(np.linalg.matrix_power(P, k)) for k in range(1, 6)]
    core, triangles, clustering = nx.core_number(graph), nx.triangles(graph), nx.clustering(graph)
    each = [[np.log1p(given[i]) for i in range(len(graph))] for given in (core, triangles)]
    shares = [clustering[i] for i in range(len(graph))]
    return np.array([*walks, np.log1p(A.sum(axis=1)), *each, shares]).T


def check_eigenvectors(graph, V):
    """Of each component: the smallest eigenvalues above 0 in order, mean square 1, signs by the rule."""
    for nodes in map(sorted, nx.connected_components(graph)):
        part, k = V[nodes], min(V.shape[1], len(nodes) - 1)
        assert not part[:, k:].any()
        if not k:
            continue
        L = nx.normalized_laplacian_matrix(graph.subgraph(nodes), nodelist=nodes, weight=None).toarray()
        lowest = np.linalg.eigvalsh(L)[1 : k + 1]
        assert np.allclose(L @ part[:, :k], part[:, :k] * lowest, atol=1e-5)
        assert np.allclose((part[:, :k] ** 2).mean(axis=0), 1, atol=1e-5)
        first = (np.abs(part) >= np.abs(part).max(axis=0) * (1 - 1e-6)).argmax(axis=0)[:k]
        assert (part[first, np.arange(k)] > 0).all()


def edges_of(graph, weights=None):
    return len(graph), np.array(graph.edges, dtype=np.int64), weights


@pytest.mark.parametrize("exchange", ["halo", "staged"])
def test_columns_are_exact_on_any_ranks(group, exchange, monkeypatch):
    graph = mixed()
    monkeypatch.setattr("app.gnn.positions.COLUMNS", 16)
    monkeypatch.setattr("app.gnn.positions.DENSE", 20)  # the large component by Lanczos
    block = make_block(group, edges_of(graph), exchange)
    found = whole_rows(group, block, position_rows(group, block, GnnCase(positions=ALL), None))
    assert found.dtype == np.float32
    assert np.allclose(np.delete(found, SIGNED, axis=1), by_hand(graph), atol=1e-6)
    check_eigenvectors(graph, found[:, SIGNED].astype(float))
    solo = type(group)(MPI.COMM_SELF, group.device)
    alone = position_rows(solo, make_block(solo, edges_of(graph)), GnnCase(positions=ALL), None)
    assert np.array_equal(alone[: len(graph)], found)
    weights = np.random.default_rng(2).integers(1, 5, graph.number_of_edges()).astype(np.float32)
    heavy = make_block(group, edges_of(graph, weights), exchange)
    asked = GnnCase(positions=["walks=5"], edge_weights=True)
    W = np.zeros((len(graph), len(graph)))
    for (u, v), w in zip(graph.edges, weights):
        W[u, v] = W[v, u] = w
    walks = whole_rows(group, heavy, position_rows(group, heavy, asked, None))
    assert np.allclose(walks, by_hand(graph, W)[:, :5], atol=1e-6) and not np.allclose(walks, found[:, :5])


@pytest.fixture
def seen(monkeypatch):
    """The data of all classifiers made: (block, data, members)."""
    found, make = [], Classifier._with_positions

    def watched(self, *given):
        scale = make(self, *given)
        found.append((self, self.data))
        return scale

    monkeypatch.setattr(Classifier, "_with_positions", watched)
    return found


def test_graphs_of_a_set_are_each_by_itself(seen):
    graphs = [nx.cycle_graph(3 + i % 4) for i in range(12)] + [nx.star_graph(4), nx.empty_graph(1), mixed()]
    kinds = [i % 2 for i in range(len(graphs))]
    asked = QUICK | {"gnn.positions": ["walks=5", "laplacian=3", "degree"], "parallel.spatial": WORLD.size}
    settings = {key: each for key, each in asked.items() if key != "graph.splits"}
    found = classify(graphs, labels=kinds, train=range(15), settings=settings, comm=WORLD)
    settings["parallel.spatial"] = 1
    one = classify(graphs, labels=kinds, train=range(15), settings=settings, comm=MPI.COMM_SELF)
    assert found.digest == one.digest
    classifier, data = seen[-1]
    scale, own = classifier.positions, data.features.toarray()[:, -9:]
    rows = classifier.members.node_rows
    raw = scale.large(own[rows].astype(float))
    parts = [np.delete(by_hand(each), [6, 7, 8], axis=1) for each in graphs]
    assert np.allclose(np.delete(raw, SIGNED, axis=1), np.concatenate(parts), atol=1e-5)
    assert np.allclose(own[rows].mean(axis=0)[[0, 1, 8]], 0, atol=1e-5)
    assert not own[classifier.members.own_rows].any()


def test_weights_make_the_same_columns_elsewhere(shared_path, seen):
    graph, other = mixed(), mixed(40, 8)
    X = np.random.default_rng(1).normal(size=(60, 3)).astype(np.float32)
    labels = np.arange(60) % 2
    learned = classify(graph, X, labels, settings=QUICK | {"parallel.spatial": 1}, comm=WORLD)
    path = str(shared_path / "weights.npz")
    if WORLD.rank == 0:
        learned.save(path)
    WORLD.Barrier()
    saved = load_model(path)
    assert (saved.columns, saved.features) == (3, 15) and saved.case.positions == ALL
    scale = saved.positions
    assert not scale.mean[SIGNED].any() and (scale.deviation[SIGNED] == 1).all()
    assert np.allclose(scale.mean[5 + 3], by_hand(graph)[learned_from(seen[-1]), 5].mean(), atol=1e-6)
    told = {"gnn.epochs": 0, "output.probabilities": True}
    one = classify(other, X[:40], weights=path, settings=told, comm=WORLD)
    two = classify(
        other, X[:40], weights=learned, settings=told | {"parallel.spatial": WORLD.size}, comm=WORLD
    )
    assert np.array_equal(one.probabilities, two.probabilities)
    classifier, data = seen[-1]
    raw = scale.large(data.features[: classifier.block.n_real, -12:].astype(float))
    mine = slice(classifier.block.lo, classifier.block.lo + classifier.block.n_real)
    assert np.allclose(np.delete(raw, SIGNED, axis=1), by_hand(other)[mine], atol=1e-5)
    with pytest.raises(GraphError, match="for nodes with 3 features; these have 4"):
        classify(other, np.zeros((40, 4)), weights=path, settings=told, comm=WORLD)


def learned_from(made):
    """The nodes that a scale is of, all rows on this rank."""
    return np.flatnonzero(made[1].train[: made[0].block.n_real])


@pytest.mark.parametrize("kind", ["dense", "sparse", "none"])
def test_signs_of_an_epoch_are_those_of_the_columns(kind, seen):
    """An epoch's loss and gradient are those of features whose eigenvectors are turned, bit for bit."""
    graph, X = mixed(), np.random.default_rng(1).normal(size=(60, 3)).astype(np.float32)
    given = {"dense": X, "sparse": sp.csr_array(X * (X > 0)), "none": None}[kind]
    asked = QUICK | {"gnn.dropout": 0.0, "gnn.input_dropout": 0.0, "parallel.spatial": WORLD.size}
    classify(graph, given, np.arange(60) % 2, settings=asked, comm=WORLD)
    classifier, data = seen[-1]
    assert any(draw_signs(classifier.seed, e, 3).tolist() != [1, 1, 1] for e in range(1, 6))
    for epoch in range(1, 4):
        loss, before = classifier.epoch(epoch), classifier.params.host()
        gradient, signs = np.array(classifier.engine.gradient), draw_signs(classifier.seed, epoch, 3)
        turned = data.features.toarray() if kind == "sparse" else data.features.copy()
        first = turned.shape[1] - 12 + 5
        turned[:, first : first + 3] *= signs
        X_own = sp.csr_array(turned) if kind == "sparse" else turned
        kept = classifier.features
        classifier.features = make_features(classifier.group, X_own, classifier.block.own_counts)
        assert classifier._pass(epoch) == loss
        assert np.array_equal(classifier.engine.gradient, gradient)
        classifier.features = kept
        assert all(np.array_equal(before[name], each) for name, each in classifier.params.host().items())


def test_other_levels_and_kinds_of_columns_have_them(seen):
    graph = mixed()
    X, numbers = np.abs(np.random.default_rng(1).normal(size=(60, 3))), np.arange(60)[:, None] % 3
    rows = {"gnn.feature_rows": "sum_to_one"}
    standard, kinds = {"gnn.feature_rows": "standard"}, {"gnn.feature_rows": "one_hot"}
    for given, more in ((X, rows), (X, standard), (numbers, kinds), (sp.csr_array(X), rows), (None, rows)):
        found = classify(graph, given, np.arange(60) % 2, settings=QUICK | more, comm=WORLD)
        assert 0 <= found.scores["test"].accuracy <= 1
        whole = seen[-1][0].features
        width = {"one_hot": 3}.get(more["gnn.feature_rows"], 0 if given is None else 3)
        assert whole.width == width + 12 and seen[-1][1].beside == 12
        if isinstance(given, np.ndarray) and more is rows:
            array = np.asarray(whole.array)[: seen[-1][0].block.n_real]
            assert np.allclose(array[:, :3].sum(axis=1), 1, atol=1e-6)
            assert np.array_equal(array[:, 3:], seen[-1][1].features[: len(array), 3:])
    few = {"gnn.positions": ["walks=3", "degree", "laplacian=2"], "gnn.epochs": 2}
    vectors = embed(graph, X, settings=few | {"embed.dimension": 4}, comm=WORLD)
    assert np.isfinite(vectors.vectors).all()
    links = find_links(graph, X, settings=few, comm=WORLD)
    classifier, _ = seen[-1]
    assert links.scores["val"].auc > 0 and links.model.positions is not None
    learned = int(classifier.block.degrees_own().sum())  # positions know nothing of edges that are held out
    total = classifier.group.sum_integers(np.array([learned]))[0]
    assert total < 2 * graph.number_of_edges()
    for i, (u, v) in enumerate(graph.edges):
        graph.edges[u, v]["kind"] = i % 2
    kinds = few | {"graph.edge_splits": "random"}
    assert 0 < classify_edges(graph, "kind", X, settings=kinds, comm=WORLD).scores["test"].accuracy <= 1
    asked = {"gnn.positions": few["gnn.positions"], "gnn.epochs": 2}
    seen.clear()
    classify(graph, X, np.arange(60) % 2, folds=3, settings=asked, comm=WORLD)
    scales = {tuple(each.positions.mean.tolist()) for each, _ in seen}
    assert len(scales) == 3  # of each fold's own training nodes


@pytest.mark.mpi_skip
@pytest.mark.parametrize(
    ("settings", "right"),
    [
        (
            {"gnn.positions": ["walk=3"]},
            "found 'walk=3'; one of walks=K, laplacian=K, degree",
        ),
        ({"gnn.positions": ["walks"]}, "found 'walks'; one of walks=K"),
        ({"gnn.positions": ["degree=2"]}, "found 'degree=2'; one of"),
        ({"gnn.positions": ["core", "core"]}, "names core twice; once would be right"),
        ({"gnn.positions": ["walks=2000"]}, "at most 1000 would be right"),
        ({"gnn.position_work": 5.0}, r"gnn\.position_work: is read by walks alone"),
        (
            {"gnn.positions": ["walks=5"], "gnn.position_work": 1e-6},
            r"more than gnn\.position_work = 1e-06; gnn",
        ),
    ],
)
def test_what_is_wrong_is_refused_in_one_line(settings, right):
    with pytest.raises(CaseError, match=right) as refused:
        classify(mixed(), None, np.arange(60) % 2, settings=QUICK | {"gnn.positions": []} | settings)
    assert "\n" not in str(refused.value)


@pytest.mark.mpi_skip
def test_cases_without_room_for_them_are_refused():
    asked = {"run.task": "classify", "graph.path": __file__, "gnn.positions": ["degree"]}
    for more in ({"memory.fast_mb": 1.0}, {"run.task": "study", "study.kind": "sampling"}):
        with pytest.raises(CaseError, match=r"gnn\.positions"):
            build(asked | more)
