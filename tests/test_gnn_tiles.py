"""Training on a matrix that is laid out by tiles: the same bits, for about as much memory as was foreseen."""

import msgspec
import networkx as nx
import numpy as np
import pytest
from helpers import EXCHANGES
from test_reach import on_paper

from app.case.file import build
from app.gnn.classifier import Classifier
from app.graphs.formats.memory import stream_of_object
from app.graphs.nodes.memory import table_of_arrays
from app.memory.tiers import TierBudget
from app.model import gnn_memory
from app.model.node_plan import training_of
from app.partition.nodes import deal_node_table
from app.partition.streams import load_stream
from app.sparse.rowblock import RowBlock

NODES = 2600  # on four ranks, each rank's columns are more than a tile


def classifier_on(group, exchange, settings=None, weighted=False, budget=None, epochs=200):
    """A classifier on a graph with hubs, of which half the nodes are trained on."""
    draws = np.random.default_rng(1)
    weights = 900 * np.arange(1, NODES + 1) ** -0.5
    graph = nx.expected_degree_graph(draws.permutation(weights).tolist(), seed=2, selfloops=False)
    if weighted:
        for i, (_, _, found) in enumerate(graph.edges(data=True)):
            found["weight"] = 1.0 + i % 7
    features, labels = draws.normal(size=(NODES, 24)), draws.integers(0, 5, NODES)
    train = draws.random(NODES) < 0.5
    wanted = {"run.task": "classify", "gnn.hidden": 70, "gnn.edge_weights": weighted, **(settings or {})}
    case = build(wanted)
    loaded = load_stream(group, stream_of_object(graph)[0], case.graph, case)
    table = table_of_arrays(features, labels, train, np.zeros(NODES, bool), ~train, NODES)
    data = deal_node_table(group, table if group.rank == 0 else None, loaded)
    block = RowBlock(group, loaded.graph, loaded.rows, exchange, case.gnn.hidden)
    return Classifier(group, msgspec.structs.replace(case.gnn, epochs=epochs), block, data, 1, budget=budget)


@pytest.mark.parametrize("exchange", EXCHANGES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("model", ["gcn", "sage"])
def test_an_epoch_has_the_same_bits(group, monkeypatch, model, weighted, exchange):
    if not group.device.tiled_bytes((NODES, NODES), 100 * NODES, False, 16):
        pytest.skip("this device lays no matrix out by tiles")
    settings = {"gnn.model": model, "gnn.depth": 3, "gnn.input_dropout": 0.0}
    tiled = classifier_on(group, exchange, settings, weighted)
    monkeypatch.setattr(group.device, "tile", lambda matrix, width: 0)
    plain = classifier_on(group, exchange, settings, weighted)
    assert plain.tiled_bytes == 0
    for epoch in (1, 2):
        assert tiled.epoch(epoch) == plain.epoch(epoch)
        gradients = [group.device.get(each.engine.gradient) for each in (tiled, plain)]
        assert np.array_equal(*gradients)
        assert np.abs(gradients[0]).max() > 0
    assert np.array_equal(tiled.scores_own(), plain.scores_own())
    foreseen = gnn_memory.tiles(on_paper(tiled, weighted), group.rank)
    # Of three ranks and more a stage may have too few rows for any tile: that is foreseen, too.
    assert tiled.tiled_bytes > 0 or (exchange == "staged" and group.size > 2)
    assert abs(tiled.tiled_bytes - foreseen) <= 0.1 * foreseen


def test_where_no_tiles_are_made(group):
    """Where memory is scarce, where nothing is learned, where no product with the matrix is wide."""
    for made in (
        classifier_on(group, "halo", {"gnn.hidden": 8}),
        classifier_on(group, "halo", {"gnn.model": "gat"}),
        classifier_on(group, "halo", epochs=0),
        classifier_on(group, "halo", budget=TierBudget(10**8)),
    ):
        assert made.tiled_bytes == 0


@pytest.mark.parametrize("limit", [0, 8])
def test_a_dry_run_counts_them_where_they_are_made(group, limit):
    found = {"graph.generator": "er", "graph.nodes": 20000, "graph.p": 0.02, "memory.fast_mb": limit}
    learned = {
        "run.task": "classify",
        "gnn.hidden": 64,
        "graph.random_features": 100,
        "graph.random_classes": 5,
    }
    training = training_of(build({**found, **learned}), 20_000, 8_000_000, 1, group.device)
    made = group.device.tiled_bytes((20_000, 20_000), 8_000_000, False, 64)
    assert (gnn_memory.tiles(training, 0) > 0) == (made > 0 and not limit)
