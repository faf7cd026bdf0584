"""app/gnn/norms.py: statistics of columns, which rows they are over, and what evaluation goes by."""

import networkx as nx
import numpy as np
import pytest
from helpers import random_graph
from layer_models import Trial, case_of, drawn

from app import classify
from app.case.gnn import GnnCase
from app.errors import CaseError
from app.gnn.engine import NORM_EPSILON
from app.gnn.layers.layer import parse_layer
from app.gnn.model import Model
from app.gnn.training import Fit, shifted

GRAPH = random_graph(41, 0.1, 3)
CASE = case_of("dense", "linear batch_norm", (4,))


def data_of(features=5):
    draws = np.random.default_rng(2)
    return draws.normal(size=(41, features)).astype(np.float32), draws.integers(0, 3, 41)


def trial_of(group, counted=None):
    """A model whose statistics say that it has seen nothing."""
    X, labels = data_of()
    values = drawn(Model(CASE, 5, 3).shapes())
    values["layer1.running_count"][:] = 0
    return X, Trial(group, GRAPH, X, labels, CASE, values=values, counted=counted)


def value(trial, name):
    return np.array(trial.device.get(trial.engine.params[f"layer1.{name}"])).ravel()


@pytest.mark.parametrize("some", [False, True])
def test_running_statistics_are_means_and_then_follow_those_of_the_rows_that_count(group, some):
    counted = np.arange(41) % 3 > 0 if some else np.ones(41, dtype=bool)
    X, trial = trial_of(group, counted)
    for number in (1, 2, 3):
        trial.epoch(number)
    W = trial.values
    U = (X.astype(float) @ W["layer1.W"])[counted]
    assert value(trial, "running_count") == [3]
    assert np.abs(value(trial, "running_mean") - U.mean(0)).max() < 1e-5
    assert np.abs(value(trial, "running_variance") - U.var(0)).max() < 1e-5
    assert value(trial, "gamma").tolist() == W["layer1.gamma"].ravel().tolist()
    trial.engine.params["layer1.running_count"][...] = 20
    trial.engine.params["layer1.running_mean"][...] = 1
    trial.epoch(4)
    assert np.abs(value(trial, "running_mean") - (0.9 + 0.1 * U.mean(0))).max() < 1e-5


def test_evaluation_goes_by_running_statistics(group):
    X, trial = trial_of(group)
    W = {name: each.astype(float) for name, each in trial.values.items()}
    U = X @ W["layer1.W"]
    deviation = np.sqrt(W["layer1.running_variance"] + NORM_EPSILON)
    H = (U - W["layer1.running_mean"]) / deviation * W["layer1.gamma"] + W["layer1.beta"]
    expected = H @ W["layer2.W"] + W["layer2.bias"]
    lo, own = trial.block.lo, trial.block.n_real
    assert np.abs(trial.scores()[:own] - expected[lo : lo + own]).max(initial=0) < 1e-4


def test_statistics_have_no_gradient(group):
    _, trial = trial_of(group)
    gradient = trial.epoch(1)
    for name in ("running_mean", "running_variance", "running_count"):
        assert not gradient[trial.engine.params.slices[f"layer1.{name}"]].any()
    assert gradient[trial.engine.params.slices["layer1.gamma"]].all()


def test_both_norms_together_are_refused():
    with pytest.raises(CaseError, match="layer_norm beside batch_norm"):
        parse_layer("gcn 8 batch_norm layer_norm")
    with pytest.raises(CaseError, match=r"gnn\.batch_norm: beside gnn\.layer_norm"):
        Model(GnnCase(layer_norm=True, batch_norm=True), 5, 3)


@pytest.mark.parametrize(
    ("keys", "loss", "said"),
    [({}, 0.3, True), ({}, 0.5, False), ({"dropout": 0.0, "input_dropout": 0.0}, 0.3, False)],
)
def test_dropout_that_spoils_the_statistics_is_told(keys, loss, said):
    """Of a loss of 0.3 at most 0.3 / log 2 = 43 % may be wrong; of 0.5 72 %."""
    found = Fit({}, epochs=1, records=[{"epoch": 1, "loss": loss, "train_score": 0.5}])
    assert bool(shifted(found, GnnCase(batch_norm=True, **keys), normalised=True)) == said
    assert not shifted(found, GnnCase(), normalised=False)


def test_saved_statistics_are_those_that_weights_are_applied_with():
    """What was trained on one graph says of it the same when it is applied, and something of another one."""
    graph = nx.planted_partition_graph(3, 20, 0.3, 0.02, seed=1)
    X = np.random.default_rng(4).normal(size=(60, 6)) + np.repeat(np.eye(3, 6) * 3, 20, axis=0)
    labels = [i // 20 for i in range(60)]
    keys = {"gnn.epochs": 20, "gnn.batch_norm": True, "gnn.feature_rows": "as_given"}
    found = classify(graph, features=X, labels=labels, train=range(0, 60, 2), settings=keys)
    again = classify(graph, features=X, labels=labels, weights=found, settings={"gnn.epochs": 0})
    assert (again.predicted == found.predicted).all()
