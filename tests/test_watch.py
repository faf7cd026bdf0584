"""gnn.watch: the score that decides which weights are best, and areas that many ranks rank together."""

import numpy as np
import pytest
from test_classify import same
from test_several_labels import classifier_on, drawn, loss_of, of_labelled

from app import classify
from app.errors import CaseError
from app.gnn import areas
from app.gnn.areas import area_under_roc, average_precision, keys_of, mean_areas
from app.gnn.training import fit
from app.memory.tiers import TierBudget

alone = pytest.mark.mpi_skip
PLAIN = {"gnn.dropout": 0.0, "gnn.input_dropout": 0.0, "gnn.feature_rows": "as_given", "gnn.model": "sage"}
BEST = {"gnn.keep": "best", "gnn.epochs": 6}


@pytest.mark.parametrize("together", [1, 1 << 23])
def test_areas_of_many_columns_are_those_of_each(group, monkeypatch, together):
    monkeypatch.setattr(areas, "ROUND", together)
    draws = np.random.default_rng(1)
    margins = draws.integers(-3, 4, (7, 40)).astype(np.float32) * np.float32(0.1)
    margins[0] = -np.abs(margins[0])  # among them zeros of both signs, which tie
    positive, known = draws.random((7, 40)) < 0.4, draws.random((7, 40)) < 0.8
    positive[3], known[4] = False, False
    mine = np.arange(40) % (group.size + 1) == group.rank  # rows of one rank more: the last ones are of none
    held = np.arange(40) % (group.size + 1) < group.size
    found = mean_areas(group, keys_of(margins[:, mine], positive[:, mine], known[:, mine]))
    pairs = [(z[k & held], p[k & held]) for z, p, k in zip(margins, positive, known)]
    both = [pair for pair in pairs if len(set(pair[1])) == 2]
    assert len(both) == 5
    assert found[0] == sum(area_under_roc(*pair) for pair in both) / 5
    assert found[1] == sum(average_precision(*pair) for pair in both) / 5
    assert mean_areas(group, keys_of(margins[3:4], positive[3:4])) == (None, None)


@pytest.mark.parametrize("watch", ["accuracy", "auc", "ap", "loss"])
@pytest.mark.parametrize("level", ["node", "graph"])
def test_the_weights_kept_are_those_of_the_best_watched_score(group, single, level, watch):
    _, _, labels = drawn(level)
    asked = BEST | {"gnn.watch": watch, "gnn.learning_rate": 0.1}
    wanted = fit(classifier_on(single, level, labels, asked))
    classifier = classifier_on(group, level, labels, asked)
    found = fit(classifier)
    assert same(found.weights, wanted.weights)
    assert found.records == wanted.records
    assert (found.watched, found.best, found.best_epoch) == (f"val_{watch}", wanted.best, wanted.best_epoch)
    told = [row["watched"] for row in found.records]
    best = min(told) if watch == "loss" else max(told)
    assert found.best == best == told[found.best_epoch - 1]
    assert getattr(classifier.evaluate(watch)["val"], watch) == best
    if watch in ("auc", "ap"):
        assert getattr(classifier.evaluate_ranking()["val"], watch) == best


@pytest.mark.parametrize("watch", ["ap", "loss"])
def test_under_a_limit_of_memory_the_same_is_watched(group, single, watch):
    _, _, labels = drawn("graph")
    asked = BEST | {"gnn.watch": watch}
    wanted = classifier_on(single, "graph", labels, asked)
    plan = 4 * wanted.engine.n_own * wanted.engine.plan.columns
    limit = TierBudget(group.max_integer(int(0.8 * plan)), "host")
    found = fit(classifier_on(group, "graph", labels, asked, budget=limit))
    assert found.records == fit(wanted).records


@pytest.mark.parametrize("level", ["node", "graph"])
def test_the_validation_loss_is_the_mean_over_known_entries(group, level):
    _, _, labels = drawn(level)
    classifier = classifier_on(group, level, labels)
    Z, val = of_labelled(classifier, classifier.scores_own()), np.arange(len(labels)) % 3 == 1
    assert classifier.evaluate("loss")["val"].loss == pytest.approx(loss_of(Z[val], labels[val]), rel=1e-5)


@alone
def test_what_ends_a_training(line):
    """A score that stands still, and one that rises."""
    for watch, epochs in (("accuracy", 4), ("loss", 12)):
        asked = {"gnn.watch": watch, "gnn.patience": 3, "gnn.epochs": 12, "gnn.learning_rate": 1e-4}
        done = classify(*line, train=range(0, 30, 3), val=range(1, 30, 3), settings=asked | PLAIN)
        assert done.epochs == epochs


@pytest.fixture
def line():
    """A path of 30 nodes, features and two classes."""
    X = np.linspace(-1, 1, 30)[:, None].astype(np.float32)
    edges = np.zeros((30, 30))
    edges[np.arange(29), np.arange(1, 30)] = edges[np.arange(1, 30), np.arange(29)] = 1
    return edges, X, (np.arange(30) > 15).astype(int)


@alone
@pytest.mark.parametrize(
    ("settings", "labels", "message"),
    [
        (
            {"gnn.watch": "auc"},
            np.arange(30) % 3,
            "auc is of two classes or of several labels of each node, not",
        ),
        ({"gnn.watch": "ap"}, np.arange(30) % 3 == 0, "ap: found no class that some validation nodes have"),
        ({"gnn.watch": "r2"}, np.arange(30) % 2, "r2 is a score of values; auto, loss or a score of classes"),
        (
            {"gnn.watch": "ap", "gnn.goal": "values"},
            np.arange(30) % 2,
            "ap is a score of classes; auto",
        ),
    ],
)
def test_scores_that_nodes_do_not_have(line, settings, labels, message):
    graph, X, _ = line
    with pytest.raises(CaseError, match=f"gnn.watch: {message}"):
        classify(graph, X, labels.astype(int), train=range(0, 30, 3), val=range(1, 30, 3), settings=settings)


@alone
def test_without_validation_nodes_nothing_is_watched(line):
    graph, X, labels = line
    with pytest.raises(CaseError, match="loss is of validation nodes; there are none"):
        classify(graph, X, labels, train=range(30), settings={"gnn.watch": "loss"})


@alone
def test_values_go_by_the_score_that_is_named(line):
    graph, X, _ = line
    labels = np.stack([np.arange(30) % 7, 100 * X[:, 0]], axis=1)
    sets = {"train": range(0, 30, 3), "val": range(1, 30, 3)}
    asked = PLAIN | {"gnn.goal": "values", "gnn.keep": "best", "gnn.epochs": 5}
    for watch in ("r2", "rmse", "mae", "loss", "auto"):
        found = classify(graph, X, labels, **sets, settings=asked | {"gnn.watch": watch})
        told = [row["watched"] for row in found.records]
        name = {"auto": "error", "loss": "error"}.get(watch, watch)
        assert getattr(found.scores["val"], name) == (max if watch == "r2" else min)(told)
