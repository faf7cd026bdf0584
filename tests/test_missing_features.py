"""Features that some nodes lack (gnn.missing_features): filled exactly, on any ranks, as weights say."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from conftest import WORLD
from mpi4py import MPI

from app import classify, classify_edges, embed, find_links
from app.case.file import build
from app.errors import CaseError, GraphError
from app.gnn import missing
from app.gnn.missing import STEPS, fill
from app.gnn.missing import _propagate as spread
from app.gnn.saved import load_model

QUICK = {
    "gnn.epochs": 5, "gnn.hidden": 4, "gnn.baselines": False, "gnn.feature_rows": "as_given",
    "graph.splits": "random",
}  # fmt: skip


def holed(n=70, columns=5, seed=3):
    """Two components and an isolated node; features of which many are not known, of a column all; classes."""
    draws = np.random.default_rng(seed)
    graph = nx.disjoint_union(nx.gnm_random_graph(n - 11, 2 * n, seed=seed), nx.path_graph(10))
    graph.add_node(n - 1)
    X = draws.normal(size=(n, columns)).astype(np.float32)
    X[draws.random(X.shape) < 0.6] = np.nan
    X[n - 11 :, 1] = X[n - 1] = X[:, 4] = np.nan  # column 1 is known in the first component alone
    X[:5, :4] = 1.0
    return graph, X, draws.integers(0, 2, n)


def filled_by_hand(graph, X, way):
    """The same in float64."""
    lacking = np.isnan(X)
    known = np.maximum((~lacking).sum(axis=0), 1)
    means = np.where(lacking, 0, X.astype(float)).sum(axis=0) / known
    if way == "mean":
        return np.where(lacking, means, X), 0
    A = nx.to_numpy_array(graph, nodelist=range(len(graph)), weight=None)
    d = A.sum(axis=1)
    s = np.divide(1, np.sqrt(d), out=np.zeros(len(d)), where=d > 0)
    Y = np.where(lacking, 0, X)
    for _ in range(STEPS):
        Y = np.where(lacking, s[:, None] * (A @ (s[:, None] * Y)), X)
    paths = dict(nx.all_pairs_shortest_path_length(graph))
    reached = np.array(
        [[any(j in paths[i] for j in np.flatnonzero(~column)) for column in lacking.T] for i in range(len(X))]
    )
    return np.where(reached, Y, means), int((~reached).sum())


@pytest.mark.parametrize("way", ["mean", "propagate"])
def test_entries_are_filled_exactly_and_on_any_ranks(way, monkeypatch):
    graph, X, labels = holed()
    expected, unreached = filled_by_hand(graph, X, way)
    seen = []

    def watched(*given):
        found = fill(*given)
        seen.append((given[0], found[0].features[: given[2].n_real], found[1]))
        return found

    monkeypatch.setattr("app.tasks.levels.examples.fill", watched)
    asked = {**QUICK, "gnn.missing_features": way, "parallel.spatial": WORLD.size}
    before = X.copy()
    found = classify(graph, X, labels, settings=asked, comm=WORLD)
    assert np.array_equal(X, before, equal_nan=True)
    group, own, told = seen[0]
    rows = group.gather_integers(np.array([len(own)]))[:, 0].tolist()
    whole = group.gather_host(np.ascontiguousarray(own), rows)
    assert whole.dtype == np.float32 and np.allclose(whole, expected, rtol=1e-5, atol=1e-6)
    assert np.array_equal(whole[~np.isnan(X)], X[~np.isnan(X)])
    assert (told.entries, told.columns, told.unreached) == (int(np.isnan(X).sum()), 5, unreached)
    alone = classify(graph, X, labels, settings=asked | {"parallel.spatial": 1}, comm=MPI.COMM_SELF)
    assert alone.digest == found.digest and np.array_equal(seen[-1][1], whole)


def test_weights_fill_unseen_graphs_alike(shared_path):
    graph, X, labels = holed()
    asked = {**QUICK, "gnn.missing_features": "propagate"}
    learned = classify(graph, X, labels, settings=asked, comm=WORLD)
    path = str(shared_path / "weights.npz")
    if WORLD.rank == 0:
        learned.save(path)
    WORLD.Barrier()
    saved = load_model(path)
    assert saved.case.missing_features == "propagate" and np.array_equal(saved.means, learned.model.means)
    assert np.allclose(saved.means[:4], np.nanmean(X[:, :4].astype(float), axis=0)) and saved.means[4] == 0
    lone = nx.empty_graph(3)
    told = {"gnn.epochs": 0, "output.probabilities": True}
    one = classify(lone, np.full((3, 5), np.nan), weights=path, settings=told, comm=WORLD)
    other = classify(lone, np.tile(saved.means, (3, 1)), weights=path, settings=told, comm=WORLD)
    assert np.array_equal(one.probabilities, other.probabilities)
    whole = classify(graph, np.nan_to_num(X), labels, settings=QUICK, comm=WORLD)
    with pytest.raises(
        GraphError, match=r"features of these nodes are missing \(column 0, \.\.\.\); weights"
    ):
        classify(lone, np.full((3, 5), np.nan), weights=whole, settings=told, comm=WORLD)


def test_other_levels_are_filled_too():
    graph, X, _ = holed()
    asked = {"gnn.missing_features": "mean", "gnn.feature_rows": "as_given"}
    vectors = embed(graph, X, settings=asked | {"gnn.epochs": 2, "embed.dimension": 4}, comm=WORLD)
    assert np.isfinite(vectors.vectors).all()
    links = find_links(graph, X, settings=asked | {"gnn.epochs": 2}, comm=WORLD)
    assert links.scores["val"].auc > 0 and np.isfinite(links.model.means).all()
    for i, (u, v) in enumerate(graph.edges):
        graph.edges[u, v]["kind"] = i % 2
    kinds = asked | {"gnn.epochs": 2, "graph.edge_splits": "random"}  # the plain rules read features, too
    assert 0 < classify_edges(graph, "kind", X, settings=kinds, comm=WORLD).scores["test"].accuracy <= 1
    graphs = [nx.path_graph(4 + i % 3) for i in range(20)]
    features = [np.full((len(each), 2), np.nan) for each in graphs]
    for i, each in enumerate(features):
        each[0] = i % 2 if i < 10 else 9
    sets, kinds = {"train": range(10), "test": range(10, 20)}, [i % 2 for i in range(20)]
    found = classify(graphs, features, kinds, settings={**QUICK, **asked}, comm=WORLD, **sets)
    assert found.model.means.tolist() == [0.5, 0.5]  # of the training graphs


def test_what_cannot_be_filled_is_refused_in_one_line():
    graph, X, labels = holed()
    with pytest.raises(
        GraphError, match=r"features: found nan in row \d+, column \d+; a finite number, or gnn\.missing"
    ):
        classify(graph, X, labels, settings=QUICK, comm=WORLD)
    asked = {**QUICK, "gnn.missing_features": "mean"}
    with pytest.raises(CaseError, match=r"gnn\.missing_features: features are sparse"):
        classify(graph, sp.csr_array(np.nan_to_num(X)), labels, settings=asked, comm=WORLD)
    with pytest.raises(CaseError, match=r"gnn\.missing_features: there are no features"):
        classify(graph, None, labels, settings=asked, comm=WORLD)
    X[0, 0] = np.inf
    with pytest.raises(GraphError, match=r"features: found inf in row 0, column 0"):
        classify(graph, X, labels, settings=asked, comm=WORLD)


@pytest.mark.mpi_skip
@pytest.mark.parametrize(
    ("settings", "right"),
    [
        ({"gnn.feature_rows": "one_hot"}, r'is of numbers, and gnn\.feature_rows = "one_hot"'),
        ({"gnn.model": "rgcn"}, r'is not read by gnn\.model = "rgcn"'),
        ({"run.task": "study", "study.kind": "memory"}, r'is read by run\.task = "classify" and study'),
    ],
)
def test_cases_without_filling_are_refused(settings, right):
    asked = {"run.task": "classify", "graph.path": __file__, "gnn.missing_features": "mean"}
    with pytest.raises(CaseError, match=rf"gnn\.missing_features: {right}"):
        build(asked | settings)


@pytest.mark.mpi_skip
def test_attributes_of_dortmund_may_be_missing_beside_kinds(tmp_path):
    from app.graphs.formats.source import Limits
    from app.graphs.formats.tu import read_table
    from app.graphs.nodes.data import known_floats, with_holes

    folder = tmp_path / "SET"
    folder.mkdir()
    for name, text in (
        ("A", "1, 2\n2, 1\n"), ("graph_indicator", "1\n1\n"), ("graph_labels", "1\n"),
        ("node_labels", "0\n1\n"), ("node_attributes", "1.5, nan\n2, 3\n"),
    ):  # fmt: skip
        (folder / f"SET_{name}.txt").write_text(text)
    lenient = with_holes(read_table(str(folder), Limits(1 << 20)), known_floats).features
    expected = [[1.5, np.nan, 1, 0], [2, 3, 0, 1]]
    assert np.array_equal(np.concatenate(list(lenient.parts())), expected, equal_nan=True)


@pytest.mark.parametrize("way", ["mean", "propagate"])
def test_filling_under_a_limit_of_fast_memory_has_the_same_bits(way, monkeypatch):
    graph, X, labels = holed()
    settings = {**QUICK, "gnn.missing_features": way, "parallel.spatial": WORLD.size}
    learned = classify(graph, X, labels, settings=settings, comm=WORLD)
    seen = []

    def watched(*given):
        seen.append(given[2].shape[1])
        return spread(*given)

    monkeypatch.setattr(missing, "_propagate", watched)
    monkeypatch.setattr(missing, "ARRAYS", 64)
    few = settings | {"memory.fast_mb": 0.02, "memory.slow": "file"}
    found = classify(graph, X, labels, settings=few, comm=WORLD)
    assert found.digest == learned.digest
    assert not seen or max(seen) < np.isnan(X).any(axis=0).sum()  # a few columns at a time
    asked = {"gnn.epochs": 0, "memory.fast_mb": 0.02, "parallel.spatial": WORLD.size}
    again = classify(graph, X, weights=learned, settings=asked, comm=WORLD)
    assert np.array_equal(again.predicted, learned.predicted)


def filled_with_means(X):
    means = np.nanmean(np.where(np.isnan(X).all(axis=0), 0, X.astype(float)), axis=0)
    return np.where(np.isnan(X), means.astype(np.float32), X)


def test_folds_fill_features_as_if_they_had_been_filled_before():
    graph, X, labels = holed()
    settings = {key: value for key, value in QUICK.items() if key != "graph.splits"}

    def crossed(X, **more):
        asked = settings | {f"gnn.{key}": value for key, value in more.items()}
        return classify(graph, X, labels, settings=asked, comm=WORLD, folds=3)

    before, found = crossed(filled_with_means(X)), crossed(X, missing_features="mean")
    assert found.digest == before.digest and found.summary == before.summary
    assert crossed(X, missing_features="propagate").digest != found.digest


def test_folds_of_graphs_have_the_means_of_their_training_graphs(monkeypatch):
    graphs = [nx.path_graph(3) for _ in range(12)]
    features = [np.array([[float(i)], [np.nan], [float(i)]], dtype=np.float32) for i in range(12)]
    seen = []

    def watched(*given):
        data, found = fill(*given)
        seen.append(float(found.means[0]))
        return data, found

    monkeypatch.setattr("app.tasks.levels.examples.fill", watched)
    asked = {
        "gnn.level": "graph", "gnn.epochs": 1, "gnn.missing_features": "mean", "gnn.baselines": False,
        "gnn.feature_rows": "as_given",
    }  # fmt: skip
    labels = [i % 2 for i in range(12)]
    found = classify(graphs, features, labels, settings=asked, folds=3, comm=MPI.COMM_SELF)
    held = [(fold, (fold + 1) % 3) for fold in range(3)]  # for the test, and to choose the epoch by
    expected = [np.mean(np.flatnonzero(~np.isin(found.fold, each))) for each in held]
    assert np.allclose(seen, expected) and len(set(seen)) > 1


def test_tunings_choose_how_features_are_filled():
    graph, X, labels = holed()
    vary = {"gnn.missing_features": ["mean", "propagate", "refuse"]}
    found = classify(graph, X, labels, vary=vary, settings={**QUICK, "study.seeds": [1]}, comm=WORLD)
    assert len(found.trials) == 2 and found.settings["gnn.missing_features"] in ("mean", "propagate")
    ((left_out, why),) = found.not_possible.items()
    assert "refuse" in left_out and "are missing" in why
    assert np.isfinite(found.best.scores["val"].accuracy)


@pytest.mark.mpi_skip
@pytest.mark.parametrize("kind", ["csv", "npy"])
def test_files_may_leave_entries_out(tmp_path, kind):
    from app.graphs.formats.source import Limits
    from app.graphs.nodes.data import NodeTable, known_floats, none_missing, with_holes
    from app.graphs.nodes.files import read_features

    X = np.array([[1, np.nan], [np.nan, 4], [5, 6]], dtype=np.float32)
    path = tmp_path / f"x.{kind}"
    if kind == "csv":
        path.write_text("1,\n,4\n5,6\n")
    else:
        np.save(path, X)
    features = read_features(str(path), Limits(1 << 20))
    with pytest.raises(GraphError, match=r"found"):
        list(features.parts())
    strict = with_holes(NodeTable(features), none_missing).features
    with pytest.raises(GraphError, match=r'found nan in row 0, column 1; .* gnn\.missing_features = "mean"'):
        list(strict.parts())
    lenient = with_holes(NodeTable(features), known_floats).features
    assert np.array_equal(np.concatenate(list(lenient.parts())), X, equal_nan=True)
