"""The model of R-GCN training: bytes as counted by the ranks, memory and seconds in words."""

import numpy as np
import pytest
from test_links import make_triples
from test_rgcn import make_graph, make_labels

from app.case.rgcn import RgcnCase
from app.errors import GraphError
from app.gnn.rgcn.features import Features
from app.gnn.rgcn.links import train_links
from app.gnn.rgcn.split import split_triples
from app.gnn.rgcn.training import train_rgcn
from app.graphs.nodes.data import DenseFeatures
from app.model.defaults import DEFAULTS
from app.model.gnn import traffic
from app.model.rates import Rates
from app.model.rgcn_work import slowest
from app.tasks.relational_plan import classes_plan, links_plan

NODES = 90
GRAPH = make_graph(NODES, 6, 400)
LABELS = make_labels(GRAPH, count=40)
BASE = {"hidden": 8, "bases": 0, "layers": 2}
CASES = {
    "free": {},
    "bases": {"bases": 4},
    "three layers, by rows": {"bases": 3, "layers": 3, "partition": "rows"},
    "in parts": {"partition": "relations", "parts": 3, "bases": 4},
    "a grid, free, in parts": {"partition": "both", "parts": 2, "grouping": "edges"},
    "all nodes": {"prune": False, "hidden": 40},
    "one layer": {"layers": 1},
}
LINKS = {
    "one layer": {"layers": 1},
    "bases, nothing to choose by": {"bases": 3, "validation": 0.0},
    "by rows": {"partition": "rows", "dimension": 12},
    "softmax": {"loss": "softmax", "n3": 0.1},
    "loops": {"loops": True},
    "candidates and loops": {"loss": "softmax", "candidates": 20, "loops": True},
    "no layers, relations asked": {
        "layers": 0,
        "loss": "softmax",
        "ask_relations": 0.5,
        "loops": True,
        "scorer": "transe",
    },
}


def per_epoch(group, train):
    """Bytes that this rank sends in an epoch, by phase; train(epochs) trains."""
    sent = []
    for epochs in (1, 3):
        before = dict(group.sent_bytes)
        train(epochs)
        sent.append({phase: total - before.get(phase, 0) for phase, total in group.sent_bytes.items()})
    found = {phase: (sent[1][phase] - sent[0].get(phase, 0)) / 2 for phase in sent[1]}
    return {phase: total for phase, total in found.items() if total}


def sent_by(plan, rank):
    """The same by the model."""
    moved = traffic(plan.training.epochs()[rank])
    return {phase: sent for phase, (sent, _) in moved.items() if sent}


def as_features(width):
    X = np.random.default_rng(5).normal(size=(NODES, width)).astype(np.float32)
    return Features(DenseFeatures(NODES, width, lambda: iter([X]), GraphError))


@pytest.mark.parametrize("name", [*CASES, "features"])
def test_ranks_send_the_bytes_that_are_counted(group, name):
    settings = {**BASE, **CASES.get(name, {"bases": 2})}
    inputs = as_features(5) if name == "features" else None
    plan = classes_plan(RgcnCase(**settings), group.size, 400, GRAPH, LABELS, inputs, 0)

    def train(epochs):
        train_rgcn(group, GRAPH, LABELS, RgcnCase(**settings, epochs=epochs), 1, inputs=inputs)

    assert per_epoch(group, train) == sent_by(plan, group.rank)


@pytest.mark.parametrize("name", LINKS)
def test_ranks_send_the_bytes_that_are_counted_of_links(group, monkeypatch, name):
    monkeypatch.setattr("app.gnn.rgcn.softmax.MOST_QUERIES", 24)
    settings = {**BASE, "goal": "links", "dimension": 8, "validation": 0.2, **LINKS[name]}
    triples = make_triples(NODES, 5, 400)
    case = RgcnCase(**settings)
    split = split_triples(triples, case.held_out, 1, case.validation)
    plan = links_plan(case, group.size, triples, split)

    def train(epochs):
        train_links(group, triples, split, RgcnCase(**settings, epochs=epochs), 1)

    assert per_epoch(group, train) == sent_by(plan, group.rank)


@pytest.mark.mpi_skip
@pytest.mark.parametrize("ranks", [6, 12])
def test_received_is_what_others_send(ranks):
    """Of addends whole, and by slices."""
    plan = classes_plan(RgcnCase(**BASE, partition="both"), ranks, 400, GRAPH, LABELS, None, 0)
    moved = [traffic(terms) for terms in plan.training.epochs()]
    for phase in ("exchange", "sum"):
        sent, received = np.array([each[phase] for each in moved]).T
        assert sent.sum() == received.sum() > 0


@pytest.mark.mpi_skip
def test_evaluations_count_as_often_as_they_are_made():
    triples = make_triples(NODES, 5, 400)
    split = split_triples(triples, 0.1, 1, 0.2)
    seconds = {}
    for every in (1, 10):
        case = RgcnCase(**BASE, goal="links", evaluate_every=every)
        (terms,) = links_plan(case, 1, triples, split).training.epochs()
        seconds[every] = Rates(DEFAULTS, 1).by_part(terms)
    assert seconds[1]["validation"] == pytest.approx(10 * seconds[10]["validation"])
    assert seconds[1]["links"] == seconds[10]["links"] > 0


@pytest.mark.mpi_skip
def test_the_slowest_rank_is_the_one_that_is_told():
    rates = Rates(DEFAULTS, 3)
    plan = classes_plan(RgcnCase(**BASE), 3, 400, GRAPH, LABELS, None, 0)
    epochs = plan.training.epochs()
    assert rates.total(slowest(rates, epochs)) == max(map(rates.total, epochs))
    first, *others = plan.epoch_lines(rates)
    assert first.startswith("an epoch with its evaluations: ") and "first layer forward" in first
    assert any(line.startswith("an epoch, exchange: ") for line in others)
