"""app/gnn/reach: an epoch makes only what the loss depends on, and loss and gradients stay as they were."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from helpers import EXCHANGES
from test_gnn_model import counted

from app.case.file import build
from app.gnn.classifier import Classifier
from app.gnn.layers.sage import Sage
from app.gnn.reach import BACKWARD, FORWARD, MOST_ENTRIES, copied_shares, expected_shares
from app.graphs.formats.memory import stream_of_object
from app.graphs.nodes.memory import table_of_arrays
from app.model import gnn_memory
from app.model.gnn import Training, flops
from app.partition.nodes import deal_node_table
from app.partition.rows import block_count, partition_rows
from app.partition.streams import load_stream
from app.sparse.rowblock import RowBlock

NODES = 400
MODELS = {
    "gcn": {"gnn.depth": 3},
    "kept": {"gnn.input_dropout": 0.0},
    "mg_gcn": {"gnn.first_product": "mg_gcn"},
    "product first": {"gnn.depth": 3, "gnn.hidden": 3, "gnn.normalisation": "in_degree"},
    "alone": {"gnn.depth": 3, "gnn.own_loops": False},
    "residual": {"gnn.depth": 3, "gnn.residual": True, "gnn.layer_norm": True},
    "gin": {"gnn.model": "gin"},
    "gin_norm": {"gnn.model": "gin_norm"},
    "sage": {"gnn.model": "sage", "gnn.depth": 3},
    "commnet": {"gnn.model": "commnet"},
    "gat": {"gnn.layers": ["gcn 8", "gat 8 heads=2", "gcn"]},
    "gatv2": {"gnn.layers": ["gcn 8", "gatv2 8 heads=2", "gcn"]},
    "gcn2": {"gnn.layers": ["dense 8", "gcn2 8", "gcn2 8", "gcn"]},
    "appnp": {"gnn.layers": ["gcn 8", "appnp 8", "gcn"], "gnn.hops": 3},
    "sgc": {"gnn.layers": ["sgc 8", "gcn 8", "gcn"], "gnn.input_dropout": 0.0},
    "batch_norm": {"gnn.layers": ["gcn 8 batch_norm", "gcn 8", "gcn"]},
}


def path_like(weighted=False):
    """A graph of long ways, so that each layer reaches a little further."""
    graph = nx.connected_watts_strogatz_graph(NODES, 4, 0.02, seed=3)
    draws = np.random.default_rng(4)
    if weighted:
        for _, _, found in graph.edges(data=True):
            found["weight"] = float(draws.integers(1, 9))
    return graph


def classifier_on(group, settings, train=12, exchange="auto", sparse=False, weighted=False, graph=None):
    """A classifier of `train` nodes of the graph, a number or which, on a group's ranks."""
    draws = np.random.default_rng(5)
    features, labels = draws.normal(size=(NODES, 8)), draws.integers(0, 3, NODES)
    drawn = np.isin(np.arange(NODES), draws.permutation(NODES)[:train]) if np.isscalar(train) else train
    splits = [drawn, np.zeros(NODES, bool)]
    case = build({"run.task": "classify", "gnn.hidden": 8, "gnn.edge_weights": weighted, **settings})
    graph = path_like(weighted) if graph is None else graph
    loaded = load_stream(group, stream_of_object(graph)[0], case.graph, case)
    X = sp.csr_array((features > 1).astype(np.float32)) if sparse else features
    table = table_of_arrays(X, labels, *splits, ~splits[0], NODES)
    data = deal_node_table(group, table if group.rank == 0 else None, loaded)
    block = RowBlock(group, loaded.graph, loaded.rows, exchange, case.gnn.hidden)
    return Classifier(group, case.gnn, block, data, 1)


def learned(classifier, epoch):
    """The loss of an epoch, and its gradient on the host."""
    loss = classifier.epoch(epoch)
    return loss, np.array(classifier.device.get(classifier.engine.gradient))


def columns_of(matrix, block, device):
    """The global columns of the entries of a matrix, or of its tiles, on this rank."""
    tiles = matrix if isinstance(matrix, list) else [matrix]
    found = []
    for tile, first in zip(tiles, block._tile_firsts):
        columns = device.get(tile.indices).astype(np.int64) + first
        found.append(columns if block.columns is None else block.columns[columns])
    return np.concatenate(found)


@pytest.mark.parametrize("exchange", EXCHANGES)
@pytest.mark.parametrize("name", MODELS)
def test_loss_and_gradient_are_those_of_whole_products(group, name, exchange):
    classifier = classifier_on(group, MODELS[name], exchange=exchange)
    engine = classifier.engine
    assert 0 < engine.narrow[len(classifier.model.blocks) - 1].share < 0.1
    for epoch in (1, 2):
        narrow, engine.narrow = engine.narrow, {}
        loss, gradient = learned(classifier, epoch)
        engine.narrow = narrow
        found, same = learned(classifier, epoch)
        assert found == loss
        assert np.array_equal(same, gradient)  # signs of zeros aside
        assert np.abs(gradient).max() > 0


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_weighted_and_sparse(group, exchange):
    classifier = classifier_on(group, {"gnn.depth": 3}, exchange=exchange, sparse=True, weighted=True)
    engine = classifier.engine
    assert len(engine.narrow) == 3
    narrow, engine.narrow = engine.narrow, {}
    loss, gradient = learned(classifier, 1)
    engine.narrow = narrow
    found, same = learned(classifier, 1)
    assert found == loss
    assert np.array_equal(same, gradient)


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_weights_on_some_ranks_only(group, single, exchange):
    """All ranks take part in making the degrees."""
    graph = path_like()
    nx.set_edge_attributes(graph, 1.0, "weight")
    graph.edges[0, 1]["weight"] = 3.0
    wanted, found = (
        learned(classifier_on(each, {"gnn.depth": 3}, exchange=exchange, weighted=True, graph=graph), 1)
        for each in (single, group)
    )
    assert found[0] == wanted[0]
    assert np.array_equal(found[1], wanted[1])


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_rows_are_the_receptive_field(group, exchange):
    classifier = classifier_on(group, {"gnn.depth": 3}, exchange=exchange, sparse=True)
    engine, block, data = classifier.engine, classifier.block, classifier.data
    train = group.gather_host(data.train.astype(np.int64), block.own_counts)[:NODES]
    away = nx.multi_source_dijkstra_path_length(path_like(), set(np.flatnonzero(train)))
    degrees = np.array([degree for _, degree in path_like().degree()])
    for layer, hops in ((2, 0), (1, 1), (0, 2)):
        narrow = engine.narrow[layer]
        wanted = np.array([away[node] <= hops for node in range(NODES)])
        own = slice(block.lo, block.lo + block.n_real)
        rows = classifier.device.get(narrow.rows)
        assert np.array_equal(rows[: block.n_real], wanted[own])
        assert not rows[block.n_real :].any()
        assert narrow.share == degrees[wanted].sum() / degrees.sum()
        matrix = columns_of(narrow.matrix, block, group.device)
        stored = columns_of(block.A, block, group.device)
        assert np.array_equal(np.sort(matrix), np.sort(stored[np.isin(stored, np.flatnonzero(wanted))]))
        assert narrow.nbytes >= 4 * len(matrix)


def test_where_all_nodes_are_trained_on_nothing_is_left_out(group):
    assert classifier_on(group, {}, train=NODES).engine.narrow == {}
    assert classifier_on(group, {}, train=round(NODES * (MOST_ENTRIES + 0.05))).engine.narrow == {}


def test_layers_that_mix_rows_are_made_whole(group, monkeypatch):
    """And all below them: nothing is known of what they read."""
    monkeypatch.setattr(Sage, "row_by_row", False)
    assert set(classifier_on(group, {"gnn.layers": ["gcn 8", "sage 8", "gcn"]}).engine.narrow) == {2}
    assert classifier_on(group, {"gnn.layers": ["gcn 8", "sage"]}).engine.narrow == {}


def test_products_of_kept_features_are_whole(group):
    """They are made once, in the first epoch, and evaluations read all rows of them."""
    classifier = classifier_on(group, MODELS["kept"])
    assert set(classifier.engine.narrow) == {1}
    classifier.epoch(1)
    after_an_epoch = classifier.scores_own()
    classifier.features.products.clear()
    assert np.array_equal(after_an_epoch, classifier.scores_own())


def test_evaluations_make_all_rows(group):
    classifier = classifier_on(group, {"gnn.depth": 3})
    whole = classifier.scores_own(), classifier.embed_own()
    classifier.epoch(1)
    assert classifier.engine.narrow
    classifier.engine.narrow = {}
    for found, wanted in zip((classifier.scores_own(), classifier.embed_own()), whole):
        assert np.array_equal(found, wanted)


def test_rows_may_move(group):
    classifier = classifier_on(group, {"gnn.depth": 3})
    wanted = learned(classifier, 1)
    costs = np.ones(block_count(NODES))
    costs[: len(costs) // 3] = 5
    classifier.move(partition_rows(NODES, group.size, costs))
    assert len(classifier.engine.narrow) == 3
    found = learned(classifier, 1)
    assert found[0] == wanted[0]
    assert np.array_equal(found[1], wanted[1])


# ---- memory and time on paper -----------------------------------------------------------------------------


@pytest.mark.parametrize("train", [12, 150, 300])
@pytest.mark.parametrize("name", ["gcn", "kept"])
def test_matrices_never_hold_more_than_the_graph(group, name, train):
    classifier = classifier_on(group, MODELS[name], train=train)
    engine = classifier.engine
    entries = sum(each.share for each in engine.narrow.values() if each.matrix is not None)
    assert 0 < entries <= 1
    held = {i for i, each in engine.narrow.items() if each.matrix is not None}
    assert held == {i for i, share in enumerate(classifier.copies()) if share}
    if group.size == 1:
        assert classifier.copies() == copied_shares(classifier.shares(), engine.products)


@pytest.mark.parametrize("train", [12, 40, 150])
@pytest.mark.parametrize("name", ["gcn", "kept", "gin", "residual"])
def test_work_is_as_predicted(solo, name, train):
    classifier = classifier_on(solo, {**MODELS[name], "gnn.bias": False}, train=train)
    training = on_paper(classifier)
    narrow, entries = classifier.engine.narrow, int(training.layout.stored[0])
    degrees, read = classifier.block.degrees_own(), 0
    for each in training.engine.recorded["epoch"]:
        found = narrow.get(each.layer)
        if found is None:
            read += entries * sum(each.exchanges)
        elif each.way == FORWARD:
            read += degrees[classifier.device.get(found.rows) > 0].sum() * sum(each.exchanges)
        else:
            read += (entries if found.matrix is None else found.matrix.nnz) * sum(each.exchanges)
    assert flops(training.epoch(0))["spmm"] == 2 * read
    whole = [each for each in training.engine.recorded["evaluation"] if each.exchanges]
    assert all((each.layer, each.way) == (-1, "") for each in whole)


@pytest.mark.parametrize("exchange", EXCHANGES)
@pytest.mark.parametrize("weighted", [False, True])
def test_memory_is_as_predicted(group, exchange, weighted):
    classifier = classifier_on(group, {"gnn.depth": 3}, 40, exchange, sparse=True, weighted=weighted)
    training = on_paper(classifier, weighted)
    found = gnn_memory.fewer_columns(training, group.rank)
    narrow = classifier.engine.narrow.values()
    assert found == pytest.approx(sum(each.nbytes + each.rows.nbytes for each in narrow), rel=0.25)
    assert sum(each.matrix is not None for each in narrow) > 0


def on_paper(classifier, weighted=False):
    """The model's counts with what the classifier's products leave out."""
    found = counted(classifier)
    inputs = replace(found.inputs, weighted=weighted)
    layout, reach = found.layout, (classifier.shares(), classifier.copies())
    return Training(classifier.device, classifier.case, inputs, layout, found.owned, *reach)


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_no_rank_holds_more_than_its_rows(group, exchange):
    """Where all training nodes are neighbours, the rank that owns them keeps more than the others."""
    near = np.arange(NODES) < NODES // 4
    classifier = classifier_on(group, {"gnn.depth": 4}, near, exchange, sparse=True)
    kept = sum(
        sum(tile.nnz for tile in (each.matrix if isinstance(each.matrix, list) else [each.matrix]))
        for each in classifier.engine.narrow.values()
        if each.matrix is not None
    )
    assert kept <= classifier.block.degrees_own().sum()
    agreed = [int(each.matrix is None) for _, each in sorted(classifier.engine.narrow.items())]
    assert (group.gather_integers(np.array(agreed, dtype=np.int64)) == agreed).all()


def test_shares_of_training_nodes_that_are_drawn(solo):
    classifier = classifier_on(solo, {"gnn.depth": 3}, train=40)
    expected = expected_shares(NODES, 4 * NODES, 40 / NODES, 3)
    assert classifier.shares() == pytest.approx(expected, rel=0.35)
    assert expected[2] == 0.1
    assert expected_shares(NODES, 4 * NODES, 1.0, 3) == [1.0] * 3
    assert expected_shares(0, 0, 0.5, 1) == [0.5]


def test_the_last_layers_come_first():
    products = {(layer, way) for layer in range(3) for way in (FORWARD, BACKWARD)}
    assert copied_shares([1.0, 0.5, 0.2], products) == [0.0, 0.5, 0.2]
    assert copied_shares([0.7, 0.6, 0.3], products) == [0.0, 0.6, 0.3]
    assert copied_shares([0.1, 0.1], {(0, FORWARD), (1, FORWARD)}) == [0.0, 0.0]
