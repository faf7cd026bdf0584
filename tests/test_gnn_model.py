"""The performance model of full-batch training: bytes as counted, buffers as planned, memory as held."""

import numpy as np
import pytest
from mpi4py import MPI
from test_classify import classifier_on

from app.comm.group import Group
from app.device import HostDevice
from app.model.gnn import Inputs, Training, traffic
from app.model.layout import of_blocks

MODELS = {
    "gcn": {"gnn.hidden": 8, "gnn.depth": 3},
    "kept": {"gnn.hidden": 8, "gnn.input_dropout": 0.0, "gnn.first_product": "cached"},
    "mg_gcn": {"gnn.hidden": 4, "gnn.first_product": "mg_gcn", "gnn.bias": False},
    "residual": {"gnn.hidden": 12, "gnn.depth": 3, "gnn.residual": True, "gnn.layer_norm": True},
    "gin": {"gnn.model": "gin", "gnn.hidden": 8},
    "sage": {"gnn.model": "sage", "gnn.hidden": 6},
    "commnet": {"gnn.model": "commnet", "gnn.hidden": 6},
    "gat": {"gnn.model": "gat", "gnn.hidden": 8, "gnn.heads": 2},
    "wide": {"gnn.hidden": 4096},  # its gradients travel by slices
}


@pytest.fixture
def group():
    """All ranks of the session on the host."""
    return Group(MPI.COMM_WORLD, HostDevice())


def counted(classifier):
    """The model's counts of a classifier that exists."""
    features, data = classifier.features, classifier.data
    stored = 0
    if features.whole_gradient:
        stored = int(classifier.group.sum_integers(np.array([len(features._own.values)]))[0])
    owned = features.owned if features.whole_gradient else None
    inputs = Inputs(features.width, data.classes, stored)
    layout = of_blocks(classifier.group, classifier.block)
    return Training(classifier.device, classifier.case, inputs, layout, owned)


def sent_in(group, action):
    """Bytes that this rank sends while it acts, by phase."""
    before = dict(group.sent_bytes)
    action()
    found = {phase: n - before.get(phase, 0) for phase, n in group.sent_bytes.items()}
    return {phase: n for phase, n in found.items() if n}


def sent_of(terms):
    return {phase: sent for phase, (sent, _) in traffic(terms).items() if sent}


# ---- bytes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exchange", ["auto", "halo", "gather", "staged"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_bytes_are_those_that_ranks_send(group, name, sparse, exchange):
    classifier = classifier_on(group, MODELS[name], exchange=exchange, sparse=sparse)
    training, rank = counted(classifier), group.rank
    first = sent_in(group, lambda: classifier.epoch(1))
    assert sent_of([*training.epoch(rank), *training.once(rank)]) == first
    assert sent_of(training.epoch(rank)) == sent_in(group, lambda: classifier.epoch(2))
    assert sent_of(training.evaluation(rank)) == sent_in(group, classifier.evaluate)
    assert bool(first) == (group.size > 1)


@pytest.mark.parametrize("exchange", ["halo", "gather", "staged"])
@pytest.mark.parametrize("sparse", [False, True])
def test_what_ranks_receive_is_what_others_send(group, sparse, exchange):
    training = counted(classifier_on(group, MODELS["gcn"], exchange=exchange, sparse=sparse))
    both = [traffic(training.epoch(rank)) for rank in range(group.size)]
    for phase in {phase for each in both for phase in each}:
        sent, received = np.array([each.get(phase, (0, 0)) for each in both]).sum(axis=0)
        assert sent == received, phase


def test_ghost_rows_arrive_once_for_each_exchange(group):
    classifier = classifier_on(group, MODELS["gcn"], exchange="halo")
    training, block = counted(classifier), classifier.block
    widths = [w for each in training.engine.recorded["epoch"] for w in each.exchanges]
    ghosts = sum(block.plan.recv_counts) - block.n_own
    found = traffic(training.epoch(group.rank)).get("exchange", (0, 0))[1]
    assert found == 4 * ghosts * sum(widths)


# ---- buffers, work ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_buffers_and_operations_are_those_of_training(group, name, sparse):
    classifier = classifier_on(group, MODELS[name], sparse=sparse)
    training = counted(classifier)
    assert training.engine.plan.widths == classifier.engine.plan.widths
    assert training.parameters == classifier.params.size
    assert training.roots[group.rank] == classifier.engine.roots
    assert training.engine.kept == classifier.engine.kept
    if not sparse:
        assert training.engine.recorded == classifier.engine.recorded
