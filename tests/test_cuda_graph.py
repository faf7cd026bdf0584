"""Repeated launches that are recorded and replayed: the bits of plain launches, and when that is given up."""

import emulator
import numpy as np
import pytest
import standin
from helpers import growing_graph, make_block
from mpi4py import MPI

from app.case.gnn import GnnCase
from app.case.policy import PolicyCase
from app.comm.group import Group
from app.cuda.graph import NotCapturable
from app.gnn.classifier import Classifier
from app.gnn.optim import make_optimiser
from app.graphs.edge_data import EdgeData, EdgeRows
from app.graphs.nodes.data import NodeData
from app.problems.mvc import MinimumVertexCover
from app.rl.qnet import QNetwork
from app.rl.rollout import roll_out

pytestmark = pytest.mark.mpi_skip
GROUP = MPI.COMM_SELF


@pytest.fixture
def device(emulated):
    """One that replays, and what it told."""
    device = emulator.make_device()
    device.replays, device.told = True, []
    device.tell = device.told.append
    return device


def counted(work):
    """What work returns, and the launches of kernels and of graphs that the host made meanwhile."""
    before = emulator.Function.launches, emulator.Graph.launches
    found = work()
    return found, emulator.Function.launches - before[0], emulator.Graph.launches - before[1]


def test_a_replay_does_what_was_recorded(device):
    """Kernels and operations of arrays, into the same memory, on what the operands hold now."""
    again, X = device.repeated(), device.put(np.arange(24, dtype=np.float32).reshape(8, 3))

    def work():
        sums = device.fold(np.array([0, 3, 8]), X)
        twice = 2 * sums + X[:1]
        X[0] = twice[1]
        return device.plus(twice[0], sums[1])

    wanted, host = [], np.arange(24, dtype=np.float32).reshape(8, 3)
    for _ in range(5):
        sums = np.stack([host[:3].sum(axis=0), host[3:].sum(axis=0)])
        twice = 2 * sums + host[:1]
        host[0] = twice[1]
        wanted.append(twice[0] + sums[1])
    made = [counted(lambda: device.get(again([X], work))) for _ in range(5)]
    assert [each[0].tolist() for each in made] == [each.tolist() for each in wanted]
    assert [each[1:] for each in made] == [(2, 0), (2, 1), (0, 1), (0, 1), (0, 1)]  # the second records
    assert device.told == []


def test_other_operands_begin_anew(device):
    """Another shape or other memory; what was recorded is not replayed for them."""
    again = device.repeated()
    for rows in (8, 16, 8):
        X = device.put(np.ones((rows, 3), np.float32))
        made = [
            counted(lambda X=X: device.get(again([X], lambda: device.fold(np.array([0, len(X)]), X))))
            for _ in range(3)
        ]
        assert [each[0][0, 0] for each in made] == [rows] * 3
        assert [each[1:] for each in made] == [(1, 0), (1, 1), (0, 1)]


@pytest.mark.parametrize("kind", ["get", "put", "float", "wait", "own"])
def test_what_cannot_be_recorded_is_done_plainly(device, kind):
    """One line says why; the stream is usable and nothing is tried again."""
    again, X = device.repeated(), device.put(np.ones((8, 3), np.float32))

    def work():
        sums = device.fold(np.array([0, 8]), X)
        if kind == "get":
            device.get(sums)
        elif kind == "put":
            device.put(np.zeros(3))
        elif kind == "float":
            float(sums[0, 0])  # not by a method of ours: CUDA refuses it
        elif kind == "wait":
            device.synchronize()
        elif device.kernels.held is not None:
            raise ValueError("planted\nmore")
        return sums

    assert [device.get(again([X], work))[0, 0] for _ in range(4)] == [8] * 4
    assert len(device.told) == 1 and "\n" not in device.told[0]
    assert {"own": "ValueError: planted", "float": "StreamCapture"}.get(kind, "NotCapturable") in device.told[
        0
    ]
    assert device.kernels.held is None and standin.tape is None
    assert counted(lambda: again([X], work))[2] == 0


def test_nothing_is_recorded_unless_it_is_asked_for(emulated):
    X = emulated.put(np.ones((8, 3), np.float32))
    again = emulated.repeated()
    for _ in range(3):
        assert counted(lambda: again([X], lambda: emulated.fold(np.array([0, 8]), X)))[1:] == (1, 0)
    with emulated.recording(), pytest.raises(NotCapturable):
        emulated.get(X)


def classifier(device, **keys):
    """A small network on a small graph."""
    group = Group(GROUP, device)
    block = make_block(group, growing_graph(40, 3, 1))
    draws, own = np.random.default_rng(1), block.n_own
    real = np.arange(own) < 40
    labels = np.where(real, draws.integers(0, 3, own), -1).astype(np.int32)
    edges = EdgeRows(block.degrees_own(), draws.integers(0, 4, (block.stored, 2)).astype(np.float32))
    data = NodeData(
        features=(draws.standard_normal((own, 5)) * real[:, None]).astype(np.float32), labels=labels,
        labelled=real, train=real, val=~real, test=~real, classes=3, multilabel=False,
        class_ids=np.arange(3), width=5, binary=False, counts={"train": 40, "val": 0, "test": 0},
        edges=EdgeData(edges, edges),
    )  # fmt: skip
    case = GnnCase(**{"hidden": 6, "dropout": 0.0, "input_dropout": 0.0, "weight_decay": 0.0, **keys})
    return Classifier(group, case, block, data, 1), case


def train(device, epochs=4, **keys):
    """Losses and weights of some epochs, and the graphs that were launched."""
    learner, case = classifier(device, **keys)
    optimiser = make_optimiser(case, learner.params.size, device.xp, kernel=device.adam)

    def run():
        losses = []
        for epoch in range(1, epochs + 1):
            losses.append(learner.epoch(epoch))
            learner.scores_own()
            optimiser.update(learner.params.flat, learner.engine.gradient)
        return losses, learner.params.host()

    (losses, weights), _, graphs = counted(run)
    return losses, b"".join(each.tobytes() for each in weights.values()), graphs


@pytest.mark.parametrize(
    "model",
    [
        "gcn",
        "sage",
        "gin",
        "gat",
        "gatv2",
        "gine",
        "gine one_hot",
        "gcn2",
        "appnp",
        "gprgnn",
        "linear_attention",
        "gin normed",
        "edge_gat",
        "edge_gatv2",
    ],
)
def test_epochs_have_the_bits_of_plain_ones(emulated, device, model):
    model, *rows = model.split()
    more = {"one_hot": {"edge_feature_rows": "one_hot"}, "normed": {"batch_norm": True, "dropout": 0.4}}
    keys = {"model": model, **more.get("".join(rows), {})}
    plain, replayed = train(emulated, **keys), train(device, **keys)
    assert plain[:2] == replayed[:2]
    assert (plain[2], replayed[2]) == (0, 3), device.told


def test_every_epoch_draws_its_dropout(emulated, device):
    """The keys stand on the device, where a replay reads them."""
    keys = {"dropout": 0.5, "input_dropout": 0.3, "depth": 3}
    plain, replayed = train(emulated, **keys), train(device, **keys)
    assert plain[:2] == replayed[:2]
    assert (plain[2], replayed[2]) == (0, 3), device.told
    assert train(emulated, **{**keys, "dropout": 0.0})[:2] != plain[:2]


def test_epochs_that_leave_something_behind_are_not_recorded(device):
    """Dropout of sparse features changes the matrix that an evaluation reads."""
    learner, _ = classifier(device, input_dropout=0.3)
    assert learner._repeats()
    learner.features.whole_gradient = True
    assert not learner._repeats()


def test_epochs_that_take_longer_than_their_launches_are_not_recorded(device, monkeypatch):
    learner, _ = classifier(device)
    monkeypatch.setattr("app.gnn.classifier.REPLAYED", learner.block.stored - 1)
    assert not learner._repeats()


# ---- policies ---------------------------------------------------------------------------------------------


def chosen(device, policy, rule):
    """What every state evaluated in full chooses, and the graphs that were launched."""
    group = Group(GROUP, device)
    net = QNetwork(PolicyCase(**policy), MinimumVertexCover())
    params, block = net.new_parameters(device, 3), make_block(group, growing_graph(50, 3, 1))
    cover, _, graphs = counted(lambda: roll_out(group, net, params, block, rule, 0.1, full=True))
    return cover.chosen_at_own.tolist(), cover.evaluations, graphs


@pytest.mark.parametrize("rule", ["single", "adaptive"])
@pytest.mark.parametrize(
    "policy",
    [{}, {"features": "paper", "mean_degree": False}, {"hub_degree": 1.5}],
    ids=["default", "paper", "hubs"],
)
def test_evaluations_have_the_bits_of_plain_ones(emulated, device, policy, rule):
    plain, replayed = (chosen(each, policy, rule) for each in (emulated, device))
    assert plain[:2] == replayed[:2]
    assert (plain[2], replayed[2]) == (0, replayed[1] - 1), device.told


def test_a_mixing_head_is_evaluated_plainly(emulated, device):
    """Its sum over nodes is divided by a number of the state."""
    plain, replayed = (chosen(each, {"head": "mixing"}, "single") for each in (emulated, device))
    assert plain[:2] == replayed[:2] and replayed[2] == 0
    assert len(device.told) == 1
