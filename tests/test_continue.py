"""Trainings that are stopped at a step, on some number of ranks, and go on: the bits of one that was not."""

import json

import pytest
from helpers import make_blocks
from standin_device import StandInDevice
from test_balance import node_data, skewed
from test_learners import short, small_blocks
from test_links import make_triples
from test_rgcn import make_graph, make_labels
from test_train import HELD, SMALL, changed

from app.case.gnn import GnnCase
from app.case.rgcn import RgcnCase
from app.checkpoint import store
from app.checkpoint.keeper import Nothing
from app.checkpoint.shared import share_state
from app.comm.guard import digest
from app.device import HostDevice
from app.errors import Stopped
from app.gnn.balanced import Balanced
from app.gnn.classifier import Classifier
from app.gnn.rgcn.links import train_links
from app.gnn.rgcn.split import split_triples
from app.gnn.rgcn.training import Course, train_rgcn
from app.gnn.training import fit
from app.memory.tiers import TierBudget
from app.problems.table import make_problem
from app.rl import rollout
from app.rl.training import Observers, train_policy
from app.sparse.rowblock import RowBlock


@pytest.fixture(params=["host", "stand-in"])
def device(request):
    """The host, and what stands for CuPy: a state is on the host whatever the device."""
    return HostDevice() if request.param == "host" else StandInDevice()


class Memory(Nothing):
    """Stops at a step with the state of rank 0 as it would come back from a file, or goes on from one."""

    def __init__(self, group, stop_at=None, state=None):
        self.group, self.stop_at, self.state = group, stop_at, state

    def recall(self, key):
        return self.state

    def at(self, step, key="", state=None, now=False):
        if self.stop_at is not None and step >= self.stop_at:
            told = state()
            told.values = json.loads(json.dumps(told.values, default=store._plain))
            self.state = share_state(self.group, told if self.group.rank == 0 else None, 0)
            raise Stopped(f"at {step}")


def continued(run, stop_at, first, second):
    """What `run(group, keeper)` returns when it is stopped on one group of ranks and goes on on another."""
    memory = Memory(first, stop_at)
    with pytest.raises(Stopped):
        run(first, memory)
    return run(second, Memory(second, state=memory.state))


def compare(run, stop_at, group, solo):
    """On all ranks and on one alone: stopped on either, and gone on with on the other."""
    wanted = run(solo, Nothing())
    for first, second in ((solo, group), (group, solo)):
        assert continued(run, stop_at, first, second) == wanted


# ---- policies ---------------------------------------------------------------------------------------------


def policy_training(case, problem, blocks):
    """A short training; returns digests of the weights, all records, and the size of the memory."""

    def run(group, keeper):
        last = []
        result = train_policy(
            group, case, make_problem(problem), *blocks(group),
            Observers(snapshot=lambda step, weights: last.append(digest(weights))), keeper,
        )  # fmt: skip
        assert result.records[-1]["gradient_steps"] > 0
        told = repr(result.records), result.best_step, result.best_total, result.replay_bytes
        return last[-1], digest(result.weights), *told

    return run


def several(group):
    """Graphs to train on, and to judge by."""
    return make_blocks(group, SMALL[:3]), make_blocks(group, HELD)


VARIANTS = {
    "n-step": {"agent": {"n_step": 3, "gradient_steps": 2}, "train": {"environments": 3}},
    "small memory": {"agent": {"replay_capacity": 12}, "train": {"environments": 2}},
}


@pytest.mark.parametrize("name", VARIANTS)
def test_a_q_learner_goes_on(group, solo, name):
    case = changed(short("dqn"), train={"steps": 40, "evaluate_every": 10, **VARIANTS[name]["train"]})
    case = changed(case, agent=VARIANTS[name]["agent"])
    compare(policy_training(case, "mvc", several), 23, group, solo)


def test_a_memory_of_bits_goes_on(solo):
    """Its size in bytes depends on the rank; the weights do not."""
    case = changed(short("dqn"), agent={"replay": "bits", "replay_capacity": 15}, train={"steps": 40})
    compare(policy_training(case, "mvc", several), 23, solo, solo)


@pytest.mark.parametrize(
    ("name", "problem", "steps"),
    [("ppo", "mis", 60), ("reinforce", "maxcut_once", 150), ("dqn", "maxcut", 40), ("ppo", "tsp", 30)],
)
def test_other_learners_and_problems_go_on(group, solo, name, problem, steps):
    case = changed(short(name), train={"steps": steps, "evaluate_every": 40})
    run = policy_training(case, problem, lambda ranks: small_blocks(ranks, problem))
    compare(run, steps // 2 + 2, group, solo)


class Midway(Memory):
    """Stops at the second look at a step: while the held-back graphs of an evaluation are solved."""

    looked_at = -1

    def at(self, step, key="", state=None, now=False):
        again, self.looked_at = step == self.looked_at, step
        if again:
            super().at(step, key, state)


@pytest.mark.parametrize("name", ["dqn", "ppo"])
def test_a_training_goes_on_that_stopped_during_an_evaluation(group, solo, monkeypatch, name):
    """In the middle, and in the last one."""
    monkeypatch.setattr(rollout, "PIECE_WORK", 1)
    case = changed(short(name), train={"steps": 40, "evaluate_every": 20})
    run = policy_training(case, "mvc", several)
    wanted = run(solo, Nothing())
    for stop_at in (20, 40):
        for first, second in ((solo, group), (group, solo)):
            memory = Midway(first, stop_at)
            with pytest.raises(Stopped):
                run(first, memory)
            assert run(second, Memory(second, state=memory.state)) == wanted


# ---- graph networks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"optimiser": "sgd", "keep": "last"},
        {"patience": 2, "dropout": 0.4},
        {"patience": 2, "keep": "best", "watch": "loss"},
    ],
)
def test_a_classification_goes_on_and_its_partitioner_knows_what_it_learned(group, solo, settings):
    case = GnnCase(hidden=8, epochs=14, evaluate_every=3, **settings)
    known = []

    def run(ranks, keeper):
        graph, rows = skewed(ranks, 520, 4, 6)
        classifier = Classifier(
            ranks, case, RowBlock(ranks, graph, rows, width=8), node_data(graph, rows, ranks, "dense"), 5
        )
        balanced = Balanced(classifier)
        found = fit(classifier, after_epoch=balanced.after_epoch, keeper=keeper, beside=balanced)
        known.append((len(balanced.balance.history), balanced.balance.model.count))
        return digest(found.weights), repr(found.records), found.epochs, found.best_epoch

    compare(run, 8, group, solo)
    if group.rank == 0 and settings.get("patience", 0) == 0:
        assert len(set(known)) == 1 or group.size > 1
        assert all(looks == 10 for looks, _ in known)


@pytest.mark.parametrize(
    "settings",
    [{"bases": 0, "parts": 2}, {"bases": 3, "weight_decay": 0.01}, {"bases": 0, "optimiser": "sgd"}],
)
@pytest.mark.parametrize("fast", [0, 2 * 10**6])
def test_a_relational_network_goes_on(group, solo, settings, fast):
    graph = make_graph(90, 4, 260)
    labels = make_labels(graph, count=30)
    case = RgcnCase(**{"hidden": 6, "epochs": 6, "learning_rate": 0.1, **settings})

    def run(ranks, keeper):
        found = train_rgcn(
            ranks, graph, labels, case, 4, TierBudget(fast, "file"), course=Course(keeper=keeper)
        )
        weights = digest({"predictions": found.predictions, **found.net.whole_weights(ranks)})
        return weights, repr(found.records)

    compare(run, 3, group, solo)


@pytest.mark.parametrize("settings", [{"bases": 3, "validation": 0.1}, {"layers": 1, "bases": 0}])
def test_link_prediction_goes_on(group, solo, settings):
    case = RgcnCase(
        **{"hidden": 4, "dimension": 6, "epochs": 6, "layers": 2, "evaluate_every": 2, **settings}
    )

    def run(ranks, keeper):
        triples = make_triples()
        split = split_triples(triples, case.held_out, 1, case.validation)
        found = train_links(ranks, triples, split, case, 1, course=Course(keeper=keeper))
        weights = digest({"D": found.relations, **found.net.whole_weights(ranks)})
        return weights, repr(found.scores), found.best_epoch, repr(found.records)

    compare(run, 3, group, solo)
