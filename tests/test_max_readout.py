"""The readout gnn.readout = "max": the largest of a graph's nodes, and gradients to the first that has it."""

import networkx as nx
import numpy as np
import pytest
from helpers import EXCHANGES
from mpi4py import MPI
from test_classify import same
from test_graph_level import COUNT, PLAIN, classifier_on, difference, drawn, drawn_like, of_graphs

from app import classify
from app.case.file import build
from app.comm.group import Group
from app.device import HostDevice
from app.gnn.classifier import Classifier
from app.gnn.training import fit
from app.graphs.formats.memory import stream_of_object
from app.graphs.nodes.memory import table_of_arrays
from app.memory.tiers import TierBudget
from app.partition.nodes import deal_node_table
from app.partition.streams import load_stream
from app.sparse.rowblock import RowBlock

OF = ("last", "all")


def whole_rows(classifier, rows):
    """[rows of the graph, ...] host, of all ranks."""
    block = classifier.block
    own = np.ascontiguousarray(classifier.device.get(rows)[: block.n_real])
    return classifier.group.gather_host(own, block.rows.row_counts())


def settings_of(model, of):
    """A network with residual connections and layer normalisation where that is gcn."""
    more = {"gnn.residual": True, "gnn.layer_norm": True} if model == "gcn" else {}
    return {"gnn.model": model, "gnn.readout": "max", "gnn.readout_of": of, **more}


@pytest.mark.parametrize("of", OF)
@pytest.mark.parametrize("model", ["gcn", "gin"])
def test_a_graph_is_told_by_the_largest_of_its_nodes(group, model, of):
    classifier = classifier_on(group, {"gnn.model": model, "gnn.readout": "max", "gnn.readout_of": of})
    params = classifier.params
    params.set({name: value * 3 for name, value in drawn_like(params).items()})
    scores, told = (of_graphs(classifier, own) for own in (classifier.scores_own(), classifier.embed_own()))
    names = [name for name in params.shapes if name.startswith("layer3.W_")]
    W = np.concatenate([classifier.device.get(params[name]) for name in names])
    assert len(W) == told.shape[1] == (16 if of == "all" else 8)
    assert np.allclose(scores, told @ W + classifier.device.get(params["layer3.bias"]), rtol=1e-4, atol=1e-4)
    graphs, X, *_ = drawn()
    first = np.cumsum([0, *map(len, graphs)])
    solo = Group(MPI.COMM_SELF, group.device)
    for i in (0, 7, COUNT - 1):
        case = build(PLAIN | {"gnn.model": model, "gnn.level": "node", "gnn.depth": 3})
        loaded = load_stream(solo, stream_of_object(graphs[i])[0], case.graph, case)
        rows = X[first[i] : first[i + 1]]
        data = deal_node_table(solo, table_of_arrays(rows, np.arange(len(rows)) % 2, n=len(rows)), loaded)
        one = Classifier(solo, case.gnn, RowBlock(solo, loaded.graph, loaded.rows, "auto", 8), data, 1)
        known = {name: classifier.device.get(params[name]) for name in params.shapes if "layer3" not in name}
        zeros = {name: np.zeros(s, np.float32) for name, s in one.params.shapes.items() if name not in known}
        one.params.set(known | zeros)
        assert np.allclose(told[i, -8:], one.embed_own()[: len(rows)].max(axis=0), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("of", OF)
@pytest.mark.parametrize("model", ["gcn", "gat"])
def test_gradients_are_those_of_differences(model, of):
    group = Group(MPI.COMM_WORLD, HostDevice())  # other devices make its bits
    classifier = classifier_on(group, settings_of(model, of))
    values = drawn_like(classifier.params)
    classifier.params.set(values)
    classifier.epoch(1)
    gradient = np.array(classifier.device.get(classifier.engine.gradient)).astype(np.float64)
    draws, wrong, most = np.random.default_rng(9), 0, 0
    for name in values:
        part = gradient[classifier.params.slices[name]]
        for at in draws.permutation(values[name].size)[:2]:
            found = [difference(classifier, values, name, at, step) for step in (4e-3, 1e-3)]
            wrong += min(abs(part[at] - each) - 0.04 * abs(each) for each in found) > 2e-3
            most += 1
    assert wrong <= 1 + most // 20  # another node may become the largest between two losses
    assert np.abs(gradient).max() > 1e-3


@pytest.mark.parametrize("exchange", EXCHANGES)
@pytest.mark.parametrize("seed", range(2))
def test_the_first_node_that_has_the_maximum_gets_its_gradient(group, exchange, seed):
    """Rows of few different numbers, of which many are largest, against a loop over the nodes."""
    classifier = classifier_on(group, {"gnn.readout": "max"}, exchange)
    engine, members, block = classifier.engine, classifier.members, classifier.block
    draws, n = np.random.default_rng(seed), int(members.starts[-1])
    X = draws.integers(-2, 3, (n, 5)).astype(np.float32) * np.float32(draws.choice([-1.0, 0.0, 1.0]))
    dP = draws.normal(size=(n, 5)).astype(np.float32)
    own = members.own_of(0, n)
    dP[~own] = 0
    P, wanted = np.zeros_like(X), np.zeros_like(X)
    for lo, row in zip(members.starts, members.own_rows):
        if row > lo:
            P[row] = X[lo:row].max(axis=0)
            wanted[lo + X[lo:row].argmax(axis=0), np.arange(5)] = dP[row]
    readout, device = classifier.model.blocks[-1].convolution, group.device

    def own_rows(rows):
        held = np.zeros((block.n_own, rows.shape[1]), np.float32)
        held[: block.n_real] = rows[block.lo : block.lo + block.n_real]
        return Held(device.put(held))

    with Direct(engine):
        top = readout._pooled(engine, own_rows(X))
        back = readout._back(engine, own_rows(X), top, own_rows(dP))
    assert np.array_equal(whole_rows(classifier, top.array), P)
    assert np.array_equal(whole_rows(classifier, back.array), wanted)


class Held:
    """Rows with an array of their own."""

    def __init__(self, array):
        self.array, self.width = array, array.shape[1]


class Direct:
    """An engine whose operations are done at once, in arrays of their own."""

    def __init__(self, engine):
        self.engine = engine

    def __enter__(self):
        engine, n = self.engine, self.engine.n_own
        engine.take = lambda name, width: Held(engine.device.zeros((n, width)))
        engine.apply = lambda kind, name, reads, writes, work, exchanges=(): work()
        engine.free = lambda *rows: None

    def __exit__(self, *_):
        for name in ("take", "apply", "free"):
            delattr(self.engine, name)


@pytest.mark.parametrize("exchange", EXCHANGES)
@pytest.mark.parametrize("of", OF)
@pytest.mark.parametrize("model", ["gcn"])
def test_bits_are_those_of_one_rank(group, single, device, exchange, of, model):
    settings = settings_of(model, of) | {"gnn.dropout": 0.3, "gnn.epochs": 2}
    found = classifier_on(Group(group.comm, device), settings, exchange)
    wanted = classifier_on(single, settings, exchange)
    assert same(fit(found).weights, fit(wanted).weights)
    assert found.evaluate() == wanted.evaluate()
    for name in ("scores_own", "embed_own"):
        assert np.array_equal(*(of_graphs(each, getattr(each, name)()) for each in (found, wanted)))


@pytest.mark.parametrize("of", OF)
def test_a_limit_of_memory_and_a_move_change_no_bit(group, of):
    settings = settings_of("gin", of) | {"gnn.epochs": 2}
    wanted, moved = (classifier_on(group, settings) for _ in range(2))
    plan = 4 * wanted.engine.n_own * wanted.engine.plan.columns
    limit = TierBudget(group.max_integer(int(0.8 * plan)), "host")
    limited = classifier_on(group, settings, budget=limit)
    rows = moved.block.rows
    cuts = rows.cuts.copy()
    cuts[1:-1] = np.maximum(cuts[1:-1] - 1, 0)
    moved.move(type(rows)(rows.n, rows.starts, cuts))
    weights = fit(wanted).weights
    for each in (limited, moved):
        assert same(fit(each).weights, weights)
        assert each.evaluate() == wanted.evaluate()


def test_the_largest_is_learned_and_applied():
    """Whether some node has a mark, whatever the size of a graph; a graph without nodes has nothing."""
    draws = np.random.default_rng(1)
    graphs = [nx.path_graph(int(n)) for n in draws.integers(1, 30, 60)]
    marks = [(draws.random((len(graph), 1)) < 0.05) * 1.0 for graph in graphs]
    labels = [int(each.any()) for each in marks]
    settings = {"gnn.readout": "max", "gnn.model": "gin", "gnn.epochs": 60, "gnn.depth": 1}
    found = classify(graphs, marks, labels, train=range(60), settings=settings)
    assert found.scores["train"].accuracy > 0.95
    others = [nx.path_graph(50), nx.path_graph(50), nx.empty_graph(0)]
    features = [np.eye(50)[:, [3]], np.zeros((50, 1)), np.zeros((0, 1))]
    assert classify(others, features, weights=found).predicted.tolist() == [1, 0, 0]
