"""Cross-validation: folds, the study of kind folds, and classify(..., folds=k)."""

import csv
import math
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from helpers import by_one
from test_gnn_studies import alone as one_rank
from test_gnn_studies import study_of

from app import classify
from app.errors import CaseError, NumericsError
from app.tasks.folds import mean_curve, summary
from app.tasks.levels.dealt import draw_folds, lacking, split_by_fold
from app.tasks.levels.examples import MEASURES
from app.tasks.levels.reading import load
from app.tasks.studies.gnn_folds import run_folds

alone = pytest.mark.mpi_skip
STUDY = {"study.kind": "folds", "study.folds": 4, "study.seeds": [3], "gnn.hidden": 4, "gnn.epochs": 4}
PLAIN = {
    "gnn.epochs": 4, "gnn.hidden": 4, "gnn.dropout": 0.0, "gnn.input_dropout": 0.0,
    "gnn.feature_rows": "as_given", "seed": 2,
}  # fmt: skip


def everywhere(group, loaded, own):
    """Rows of all nodes in the order of the graph's."""
    lo, hi = loaded.rows.range_of(group.rank)
    found = group.gather_host(np.ascontiguousarray(own[: hi - lo]), loaded.rows.row_counts())
    if loaded.order_all is not None:
        found[loaded.order_all] = found.copy()
    return found


@pytest.mark.parametrize("order", ["natural", "random"])
def test_folds_are_even_in_each_class_and_those_of_one_rank(group, order):
    settings = {"graph.order": order, "graph.nodes": 101}
    found = []
    for ranks in (group, one_rank(group)):
        loaded, data = load(study_of(ranks, settings))
        own = draw_folds(ranks, data, loaded, 5, 4)
        assert (own[data.labelled] >= 0).all()
        assert (own[~data.labelled] == -1).all()
        found.append([everywhere(ranks, loaded, each) for each in (own, data.labels)])
        other = everywhere(ranks, loaded, draw_folds(ranks, data, loaded, 6, 4))
        assert (other != found[-1][0]).any()
        with pytest.raises(CaseError, match=r"study.folds: found 102; at most 101, the labelled nodes of"):
            draw_folds(ranks, data, loaded, 5, 102)
    (folds, labels), (wanted, _) = found
    assert (folds == wanted).all()
    table = np.array([np.bincount(folds[labels == c], minlength=4) for c in range(3)])
    assert (np.ptp(table, axis=1) <= 1).all()
    assert np.ptp(table.sum(axis=0)) <= 1


def test_each_fold_is_tested_once(group):
    loaded, data = load(study_of(group, {"graph.nodes": 60}))
    own = draw_folds(group, data, loaded, 1, 5)
    tested = np.zeros(len(own), int)
    for held_back in (1, 2):
        for fold in range(5):
            part = split_by_fold(group, data, own, fold, held_back)
            assert part.counts == {"train": 60 - 12 * held_back, "val": 12 * (held_back - 1), "test": 12}
            assert (part.train.astype(int) + part.val + part.test == data.labelled).all()
            assert part.counts["val"] == 0 or (own[part.val] == (fold + 1) % 5).all()
            tested += part.test
    assert (tested == 2 * data.labelled).all()


@pytest.mark.parametrize("validation", ["next", "none"])
def test_a_study_of_folds(group, shared_path, validation):
    asked = STUDY | {"study.fold_validation": validation, "study.seeds": [3, 4]}
    context = study_of(group, asked, shared_path / "out")
    found = run_folds(context)
    (row,) = found["rows"]
    assert (row["trainings"], len(found["folds"]), row["score"]) == (8, 8, "accuracy")
    tests = [each["test"] for each in found["folds"]]
    assert row["test_mean"] == pytest.approx(np.mean(tests))
    assert row["test_std"] == pytest.approx(np.std(tests, ddof=1))
    assert (row["val_mean"] is None) == (validation == "none")
    assert row["test_at_best_mean_epoch"] >= row["test_mean"]  # which is of one of the epochs
    again = by_one(lambda: run_folds(replace(study_of(one_rank(group), asked), folder=None)))
    assert (again["digest"], again["rows"]) == (found["digest"], found["rows"])
    group.barrier()
    if group.rank == 0:
        with open(shared_path / "out" / "folds.csv") as file:
            lines = list(csv.DictReader(file))
        assert [line["fold"] for line in lines[:9]] == [*"01230123", "mean"]
        assert (shared_path / "out" / "folds.png").exists()
        assert "optimistic" in lines[-1]["fold"]
    group.barrier()


@alone
def test_the_epoch_of_the_best_mean():
    rows = [dict.fromkeys(("train", "val", "test"), 0.5) for _ in range(2)]
    for row in rows:
        row |= dict.fromkeys(("accuracy", "micro_f1", "macro_f1", "auc", "ap", "r2", "rmse", "mae"))
    curves = [
        [[1, 0.2, None, 0.1], [2, 0.2, None, 0.8], [3, 0.2, None, 0.4]],
        [[1, 0.2, None, 0.1], [2, 0.4, None, 0.4], [3, 0.2, None, 0.8], [4, 0.9, None, 1.0]],
    ]
    rows[1]["rmse"], rows[0]["rmse"] = math.inf, 1.0
    found = summary(rows, curves, MEASURES)
    assert (found["rmse_mean"], found["rmse_std"]) == (math.inf, None)  # errors that pass all numbers
    assert (
        found["best_mean_epoch"] == 2
    )  # of the two that are as good the first; the fourth is one training's
    assert found["test_at_best_mean_epoch"] == pytest.approx(0.6)
    assert found["test_at_best_mean_epoch_std"] == pytest.approx(np.std([0.8, 0.4], ddof=1))
    assert found["auc_mean"] is None
    shown = mean_curve(curves)
    assert list(shown) == ["train", "test"]
    assert shown["train"][0] == [1, 2, 3, 4]
    assert shown["train"][1] == pytest.approx([0.2, 0.3, 0.2, 0.9])


def drawn(kind, n=30):
    """A graph, features, and labels of n nodes, of which the last one has none."""
    draws = np.random.default_rng(7)
    X = draws.normal(size=(n, 3))
    labels = {
        "names": [*(["few", "many"][i] for i in (X[:-1, 0] > 0.5).astype(int)), None],
        "several": [*(X[:-1] > 0).astype(int).tolist(), None],
        "values": [*X[:-1, 0], np.nan],
    }[kind]
    return nx.gnp_random_graph(n, 0.1, seed=1), X, labels


@pytest.mark.parametrize("kind", ["names", "several", "values"])
def test_from_python_each_fold_is_a_call_with_its_sets(group, kind):
    graph, X, labels = drawn(kind)
    asked = PLAIN | ({"gnn.goal": "values"} if kind == "values" else {})
    found = classify(graph, X, labels, folds=5, settings=asked, comm=group.comm)
    assert sorted(np.bincount(found.fold[:-1])) == [5, 6, 6, 6, 6]
    assert (len(found.folds), found.fold[-1], found.nodes) == (5, -1, list(graph))
    sets = {name: np.flatnonzero(found.fold == (2 + i) % 5) for i, name in enumerate(("test", "val"))}
    train = np.flatnonzero((found.fold >= 0) & ~np.isin(found.fold, (2, 3)))
    one = classify(graph, X, labels, train=train, **sets, settings=asked, comm=group.comm)
    assert found.folds[2]["test"] == one.scores["test"].score
    assert found.folds[2]["val"] == one.scores["val"].score
    assert (found.predicted[sets["test"]] == one.predicted[sets["test"]]).all()
    assert (
        found.digest == classify(graph, X, labels, folds=5, settings=asked, comm=one_rank(group).comm).digest
    )
    assert found.score in repr(found)


def test_a_fold_whose_scores_are_no_numbers_is_refused(group):
    graph, X, labels = drawn("values")
    asked = {"gnn.goal": "values", "gnn.optimiser": "sgd", "gnn.learning_rate": 1e30, "gnn.epochs": 1}
    with pytest.raises(NumericsError, match="the scores of 30 nodes are not finite"):
        classify(graph, X, labels, folds=5, settings=PLAIN | asked, comm=group.comm)


@alone
def test_sets_of_graphs_from_python():
    graphs = [nx.cycle_graph(4 + i % 5) for i in range(12)]
    asked = {"gnn.readout": "sum", "gnn.epochs": 2, "study.fold_validation": "none"}
    found = classify(graphs, labels=[len(graph) % 2 for graph in graphs], folds=2, settings=asked)
    assert (len(found.predicted), found.summary["val_mean"]) == (12, None)
    assert [row["test_nodes"] for row in found.folds] == [6, 6]


@alone
@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"folds": 1}, "study.folds: must be"),
        ({"folds": 2}, "study.folds: must be at least 3, to test, to validate and to train on, got 2"),
        ({"folds": 40}, "study.folds: found 40; at most 29, the labelled nodes"),
        ({"folds": 5, "train": range(3)}, "train: given beside folds"),
        ({"folds": 5, "settings": {"gnn.epochs": 0}}, "gnn.epochs: must be at least 1"),
        ({"folds": 5, "settings": {"gnn.weights": __file__}}, "gnn.weights: given beside folds"),
    ],
)
def test_folds_that_cannot_be(more, message):
    graph, X, labels = drawn("names")
    with pytest.raises(CaseError, match=message):
        classify(graph, X, labels, **more)


@alone
def test_what_a_study_of_folds_does_not_read(group):
    for settings, message in (
        ({"graph.splits": "split.txt", "graph.generator": "", "graph.path": "x"}, "which draws its own"),
        ({"gnn.watch": "loss", "study.fold_validation": "none"}, "loss is of validation nodes"),
    ):
        with pytest.raises(CaseError, match=message):
            run_folds(study_of(group, STUDY | settings))


def test_classes_that_some_folds_lack_are_named(group):
    _, data = load(study_of(group, {"graph.nodes": 40}))
    assert list(lacking(group, data, 4)) == []
    (text,) = lacking(group, data, 30)
    assert "fewer labels than there are folds (0, 1, 2)" in text
