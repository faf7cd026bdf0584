"""app/gnn/layers and app/gnn/block: gradients, exactly and by differences; the same bits on any ranks."""

import functools

import numpy as np
import pytest
from helpers import growing_graph, listed, random_graph
from layer_models import CONVOLUTIONS, Trial, case_of, differences, drawn

from app.gnn.model import Model

KINDS = sorted(CONVOLUTIONS)
TOLERANCE = 5e-6  # of float32 gradients, relative to the largest
OPTIONS = ["", "residual", "layer_norm", "residual layer_norm"]
GRAPHS = {
    "random": random_graph(41, 0.1, 3),  # with isolated nodes
    "hubs": growing_graph(30, 3, 5),
    "few rows": listed(5, (0, 1), (1, 2), (0, 2), (2, 3)),  # one block: a single rank has rows
}


def data_of(graph, features=5, classes=3, seed=11):
    """Features with zeros among them, labels of most nodes."""
    draws, n = np.random.default_rng(seed), graph[0]
    X = (draws.normal(size=(n, features)) * (draws.random((n, features)) < 0.6)).astype(np.float32)
    labels = draws.integers(0, classes, n)
    labels[draws.random(n) < 0.2] = -1
    labels[:classes] = np.arange(classes)
    return X, labels


def relative_error(trial, gradient, expected):
    """Largest difference from the expected gradient, relative to its largest entry."""
    found = {
        n: gradient[s].reshape(trial.engine.params.shapes[n]) for n, s in trial.engine.params.slices.items()
    }
    top = max(np.abs(each).max() for each in expected.values())
    return max(np.abs(found[name] - each).max() for name, each in expected.items()) / top


# ---- whole models against differences ------------------------------------------------------------------


@functools.cache
def expected_gradient(kind, options, normalisation="symmetric"):
    """Features, labels, values of the parameters, and the gradient by central differences in float64."""
    X, labels = data_of(GRAPHS["random"])
    case = case_of(kind, options, normalisation=normalisation)
    values = drawn(Model(case, X.shape[1], labels.max() + 1).shapes())
    return X, labels, values, differences(GRAPHS["random"], X, labels, case, values)


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("first", ["auto", "live", "mg_gcn", "sparse"])
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_differences_of_the_loss(group, kind, first, options):
    if (kind, first) == ("gcn", "mg_gcn"):
        pytest.skip("MG-GCN's shortcut is not the gradient")
    X, labels, values, expected = expected_gradient(kind, options)
    case = case_of(kind, options, first_product="auto" if first == "sparse" else first)
    trial = Trial(group, GRAPHS["random"], X, labels, case, sparse=first == "sparse", values=values)
    assert relative_error(trial, trial.epoch(1), expected) < TOLERANCE


def test_gradients_of_in_degree_normalisation(group):
    X, labels, values, expected = expected_gradient("gcn", "", "in_degree")
    case = case_of("gcn", normalisation="in_degree")
    trial = Trial(group, GRAPHS["random"], X, labels, case, values=values)
    assert relative_error(trial, trial.epoch(1), expected) < TOLERANCE
