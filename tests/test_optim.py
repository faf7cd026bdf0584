"""app/gnn/optim.py: step sizes over the epochs, and gradients that are no longer than a given length."""

import math

import networkx as nx
import numpy as np
import pytest

from app import classify
from app.case.gnn import GnnCase
from app.gnn.optim import CLIP_COLUMNS, clip_gradient, rate_of


def rates(**keys):
    case = GnnCase(learning_rate=0.5, epochs=8, **keys)
    return [rate_of(case, epoch) for epoch in range(1, 9)]


def test_rates_rise_and_fall():
    assert rates() == [0.5] * 8
    assert rates(warmup=4) == [0.125, 0.25, 0.375, 0.5, 0.5, 0.5, 0.5, 0.5]
    assert rates(schedule="linear") == pytest.approx([0.5 * (1 - i / 8) for i in range(8)])
    cosine = [0.25 * (1 + math.cos(math.pi * i / 6)) for i in range(6)]
    assert rates(schedule="cosine", warmup=2) == pytest.approx([0.25, 0.5, *cosine])


@pytest.mark.parametrize("size", [1, 7, CLIP_COLUMNS, 3 * CLIP_COLUMNS + 5])
@pytest.mark.parametrize("scale", [1e-30, 1, 1e30])
def test_gradients_are_clipped_to_a_length(device, size, scale):
    """Also where squares are no 32-bit numbers; shorter ones stay."""
    given = (np.random.default_rng(size).normal(size=size) * scale).astype(np.float32)
    norm = np.linalg.norm(given.astype(float))
    for most in (0.25 * norm, 2 * norm):
        gradient = device.put(given.copy())
        clip_gradient(device, gradient, most)
        found = np.array(device.get(gradient)).astype(float)
        if most > norm:
            assert np.array_equal(found, given)
        else:
            assert np.linalg.norm(found) == pytest.approx(most, rel=1e-5)
            assert np.abs(found / most - given / norm).max() < 1e-5


def test_gradients_that_are_no_numbers_stay(device):
    for given in (np.zeros(3, np.float32), np.float32([1, np.nan, 2]), np.float32([np.inf, 1, 1])):
        gradient = device.put(given.copy())
        clip_gradient(device, gradient, 1.0)
        assert np.array_equal(np.array(device.get(gradient)), given, equal_nan=True)


def test_trainings_go_by_them():
    graph = nx.planted_partition_graph(2, 12, 0.5, 0.05, seed=2)
    train, classes = range(0, 24, 2), [i // 12 for i in range(24)]
    digests = [
        classify(graph, labels=classes, train=train, settings={"gnn.epochs": 5, **more}).digest
        for more in (
            {}, {"gnn.schedule": "cosine"}, {"gnn.warmup": 2}, {"gnn.optimiser": "sgd"},
            {"gnn.clip": 1e-3, "gnn.optimiser": "sgd"}, {"gnn.clip": 1e9},
        )
    ]  # fmt: skip
    assert digests[0] == digests[-1]
    assert len(set(digests)) == 5
