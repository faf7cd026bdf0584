"""What scores lose without features (output.importance): planted ones, kinds of features, layers, ranks."""

import json
import sys

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from conftest import WORLD
from jobs import ROOT, run_job
from mpi4py import MPI

from app import classify, classify_edges, find_links
from app.case.file import build
from app.errors import CaseError

PLANTED = 5
ASKED = {
    "gnn.epochs": 60,
    "gnn.hidden": 8,
    "graph.splits": "random",
    "output.importance": 4,
    "gnn.baselines": False,
}


def planted(n=240, columns=9, seed=4):
    """A sparse random graph, features of which one alone tells the class."""
    graph = nx.gnm_random_graph(n, n // 2, seed=seed)
    X = np.random.default_rng(seed).normal(size=(n, columns)).astype(np.float32)
    return graph, X, (X[:, PLANTED] > 0).astype(int)


@pytest.mark.parametrize("model", ["gcn", "gin", "sage", "gat", "commnet", "gcn2", "appnp", "sgc"])
def test_the_feature_that_tells_the_class_comes_first(model):
    graph, X, labels = planted()
    asked = {**ASKED, "gnn.model": model, "gnn.feature_rows": "standard", "gnn.dropout": 0.0}
    found = classify(graph, X, labels, settings=asked, comm=WORLD)
    told = found.importance
    assert told.feature[0] == PLANTED and len(told.feature) == 4 and told.split == "val"
    assert told.whole[0] == found.scores["val"].score and told.whole[1] < told.loss[0]
    assert (np.diff(told.loss) <= 0).all() and told.none[1] > told.whole[1]
    alone = classify(graph, X, labels, settings=asked, comm=MPI.COMM_SELF)
    assert alone.importance.text() == told.text() and alone.digest == found.digest
    without = classify(graph, X, labels, settings={**asked, "output.importance": 0}, comm=WORLD)
    assert without.importance is None and without.digest == found.digest


@pytest.mark.parametrize("kind", ["dense", "sparse", "limited"])
def test_scores_are_those_of_the_weights_on_features_of_zeros(kind, tmp_path):
    graph, X, labels = planted()
    given = sp.csr_array(X) if kind == "sparse" else X
    asked = {**ASKED, "gnn.feature_rows": "as_given", "output.importance": 9, "gnn.batch_norm": True}
    limit = {"memory.fast_mb": 0.06} if kind == "limited" else {}
    found = classify(graph, given, labels, settings=asked | limit)
    assert sorted(found.importance.feature) == list(range(9))
    for feature, score in zip(found.importance.feature.tolist(), found.importance.score.tolist()):
        changed = X.copy()
        changed[:, feature] = 0
        applied = {"gnn.epochs": 0, "graph.splits": "random", "gnn.feature_rows": "as_given"}
        again = classify(graph, changed, labels, weights=found, settings=applied)
        assert again.scores["val"].score == pytest.approx(score, abs=1 / 40)
    once = classify(graph, given, labels, settings={**asked, "output.importance": 2} | limit)
    parts = found.importance.part[np.isin(found.importance.feature, once.importance.feature)]
    assert sorted(parts) == sorted(found.importance.part)[-2:]  # the largest parts are tried


def test_categories_are_left_out_together():
    graph = nx.gnm_random_graph(200, 150, seed=2)
    X = np.random.default_rng(2).integers(0, 6, size=(200, 3))
    labels = X[:, 1] % 2
    asked = {**ASKED, "gnn.feature_rows": "one_hot", "output.importance": 3}
    told = classify(graph, X.astype(np.float32), labels, settings=asked, comm=WORLD).importance
    assert sorted(told.feature) == [0, 1, 2] and told.feature[0] == 1
    assert told.score[0] < told.whole[0] - 0.2


def test_numbers_whole_graphs_links_and_edges():
    graph, X, labels = planted()
    values = 3 * X[:, PLANTED] + X[:, 0]
    asked = {**ASKED, "gnn.goal": "values", "gnn.feature_rows": "standard"}
    told = classify(graph, X, values, settings=asked, comm=WORLD).importance
    assert told.feature[:2].tolist() == [PLANTED, 0] and told.loss[0] > told.whole[1]
    graphs = [nx.path_graph(4 + i % 5) for i in range(60)]
    features = [np.full((len(g), 3), 1.0, np.float32) for g in graphs]
    for i, each in enumerate(features):
        each[:, 2] = i % 2
    kinds = [i % 2 for i in range(60)]
    told = classify(graphs, features, labels=kinds, settings=ASKED, comm=WORLD).importance
    assert told.feature[0] == 2 and told.score[0] < told.whole[0]
    found = find_links(graph, X, settings={"gnn.epochs": 5, "output.importance": 3}, comm=WORLD)
    assert len(found.importance.feature) == 3 and found.importance.split == "val"
    assert np.isnan(found.importance.loss).all() and found.importance.whole[0] == found.scores["val"].auc
    joined = np.array([labels[u] ^ labels[v] for u, v in graph.edges])
    of_edges = {"gnn.epochs": 5, "graph.edge_splits": "random", "output.importance": 4}
    told = classify_edges(graph, joined, X, settings=of_edges, comm=WORLD).importance
    assert len(told.feature) == 4 and told.whole[1] > 0
    assert ",,\n" in found.importance.text() or found.importance.text().count(",\n") == 3


@pytest.mark.mpi_skip
def test_files_of_a_run(tmp_path):
    words = (
        "graph.nodes=200",
        "output.plots=false",
        "gnn.epochs=5",
        "output.importance=3",
        "--out",
        tmp_path / "out",
    )
    code, printed = run_job([sys.executable, ROOT / "run.py", ROOT / "inputs/gcn.toml", *words])
    assert code == 0, printed
    lines = next((tmp_path / "out/importance").iterdir()).read_text().splitlines()
    assert len(lines) == 4 and lines[0].startswith("feature,part,score_without")
    told = json.loads((tmp_path / "out/result.json").read_text())["importance"]
    assert told["features"] == [int(line.split(",")[0]) for line in lines[1:]]
    assert "importance of features" in (tmp_path / "out/log.txt").read_text()


def test_what_tells_nothing_is_refused():
    graph, X, labels = planted()
    with pytest.raises(CaseError, match=r"output\.importance: the graph has no features; 0 would be right"):
        classify(graph, labels=labels, settings=ASKED, comm=WORLD)
    learned = classify(graph, X, labels, settings={**ASKED, "output.importance": 0}, comm=WORLD)
    asked = {"gnn.epochs": 0, "output.importance": 2}
    with pytest.raises(CaseError, match=r"output\.importance: nothing tells how good the network is"):
        classify(graph, X, weights=learned, settings=asked, comm=WORLD)
    on_all = {"links.validation": 0.0, "links.held_out": 0.0, "output.importance": 2}
    with pytest.raises(CaseError, match=r"output\.importance: nothing tells how good the network is"):
        find_links(graph, X, settings=on_all, comm=WORLD)


def test_it_is_refused_before_there_is_training_to_lose(monkeypatch):
    def trained(*_, **__):
        raise AssertionError("training began")

    monkeypatch.setattr("app.tasks.levels.members.fit", trained)
    graph, _, labels = planted()
    asked = {"output.importance": 2}
    calls = (
        lambda: classify(graph, labels=labels, settings={**asked, "graph.splits": "random"}, comm=WORLD),
        lambda: classify_edges(graph, [0, 1] * (graph.size() // 2), settings=asked, comm=WORLD),
        lambda: find_links(graph, settings=asked, comm=WORLD),
    )
    for call in calls:
        with pytest.raises(CaseError, match=r"output\.importance: the graph has no features"):
            call()


@pytest.mark.parametrize("task", ["solve", "train", "study"])
def test_other_tasks_do_not_read_it(task):
    right = r'run\.task = "classify" and study\.kind = "folds"'
    with pytest.raises(CaseError, match=rf"output\.importance: is read by {right} alone"):
        build({"run.task": task, "graph.generator": "er", "output.importance": 2})
