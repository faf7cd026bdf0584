"""app/gnn/norms.py: statistics of columns, which rows they are over, and what evaluation goes by."""

import networkx as nx
import numpy as np
import pytest
from helpers import random_graph
from layer_models import Trial, case_of

from app import classify
from app.case.gnn import GnnCase
from app.errors import CaseError
from app.gnn.engine import NORM_EPSILON
from app.gnn.layers.layer import parse_layer
from app.gnn.model import Model

GRAPH = random_graph(41, 0.1, 3)
CASE = case_of("dense", "linear batch_norm", (4,))


def data_of(features=5):
    draws = np.random.default_rng(2)
    return draws.normal(size=(41, features)).astype(np.float32), draws.integers(0, 3, 41)


def trial_of(group, counted=None):
    X, labels = data_of()
    return X, Trial(group, GRAPH, X, labels, CASE, counted=counted)


def value(trial, name):
    return np.array(trial.device.get(trial.engine.params[f"layer1.{name}"])).ravel()


def scores_by(W, U, mean, variance):
    """[n, 3] what the model makes of U = X W1 by statistics of its columns."""
    H = (U - mean) / np.sqrt(variance + NORM_EPSILON) * W["layer1.gamma"] + W["layer1.beta"]
    return H @ W["layer2.W"] + W["layer2.bias"]


@pytest.mark.parametrize("some", [False, True])
@pytest.mark.parametrize("measures", [False, True])
def test_evaluation_makes_statistics_of_the_rows_that_count_or_goes_by_those_kept(group, some, measures):
    counted = np.arange(41) % 3 > 0 if some else np.ones(41, dtype=bool)
    X, trial = trial_of(group, counted)
    trial.engine.measures = measures
    W = {name: each.astype(float) for name, each in trial.values.items()}
    U = X @ W["layer1.W"]
    mean, variance = U[counted].mean(0), U[counted].var(0)
    if not measures:
        mean, variance = W["layer1.mean"].ravel(), W["layer1.variance"].ravel()
    lo, own = trial.block.lo, trial.block.n_real
    found, expected = trial.scores()[:own], scores_by(W, U, mean, variance)[lo : lo + own]
    assert np.abs(found - expected).max(initial=0) < 1e-4
    assert np.abs(value(trial, "mean") - mean).max() < 1e-5
    assert np.abs(value(trial, "variance") - variance).max() < 1e-5


def test_epochs_leave_the_statistics_kept_as_they_are(group):
    _, trial = trial_of(group)
    trial.epoch(1)
    for name in ("mean", "variance", "gamma"):
        assert value(trial, name).tolist() == trial.values[f"layer1.{name}"].ravel().tolist()


def test_statistics_have_no_gradient(group):
    _, trial = trial_of(group)
    gradient = trial.epoch(1)
    for name in ("mean", "variance"):
        assert not gradient[trial.engine.params.slices[f"layer1.{name}"]].any()
    assert gradient[trial.engine.params.slices["layer1.gamma"]].all()


def test_both_norms_together_are_refused():
    with pytest.raises(CaseError, match="layer_norm beside batch_norm"):
        parse_layer("gcn 8 batch_norm layer_norm")
    with pytest.raises(CaseError, match=r"gnn\.batch_norm: beside gnn\.layer_norm"):
        Model(GnnCase(layer_norm=True, batch_norm=True), 5, 3)


def communities(size=20, classes=3):
    """A graph with features of its classes, and labels."""
    graph = nx.planted_partition_graph(classes, size, 0.3, 0.02, seed=1)
    X = np.random.default_rng(4).normal(size=(size * classes, 6)) * 0.5
    X += np.repeat(np.eye(classes, 6) * 3, size, axis=0)
    return graph, X, [i // size for i in range(size * classes)]


@pytest.mark.parametrize("more", [{}, {"gnn.keep": "best"}, {"gnn.model": "gin_batch_norm"}])
def test_saved_statistics_are_those_that_weights_are_applied_with(more):
    """What was trained on one graph says of it the same when it is applied, to the bit; also weights that a
    training loss chose, which are those before a step."""
    graph, X, labels = communities()
    keys = {"gnn.epochs": 20, "gnn.batch_norm": "gnn.model" not in more, "gnn.feature_rows": "as_given"}
    keys |= {"output.probabilities": True, **more}
    found = classify(graph, features=X, labels=labels, train=range(0, 60, 2), settings=keys)
    applied = {"gnn.epochs": 0, "output.probabilities": True}
    again = classify(graph, features=X, labels=labels, weights=found, settings=applied)
    assert (again.probabilities == found.probabilities).all()


def test_deep_networks_that_learn_with_dropout_are_right_without_it():
    """Dropout in six layers makes variances so much larger that running means of them are useless."""
    graph, X, labels = communities(40, 4)
    keys = {"gnn.model": "gcn2", "gnn.depth": 6, "gnn.hidden": 16, "gnn.batch_norm": True, "gnn.epochs": 60}
    keys |= {"gnn.dropout": 0.6, "gnn.input_dropout": 0.6, "gnn.learning_rate": 0.02}
    found = classify(graph, features=X, labels=labels, train=range(0, 160, 2), settings=keys)
    assert found.scores["train"].accuracy > 0.95
