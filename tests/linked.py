"""Predictors of links on small graphs, and their pairs and rows whole, for tests."""

import networkx as nx
import numpy as np

from app.case.file import build
from app.gnn.links.predictor import LinkPredictor
from app.gnn.links.sides import given_sides
from app.gnn.links.split import spans_of, split_edges
from app.gnn.links.wrong import apart_rows
from app.graphs.formats.memory import stream_of_object
from app.graphs.nodes.memory import table_of_arrays
from app.partition.load import ordered
from app.partition.nodes import deal_node_table
from app.partition.streams import load_stream
from app.sparse.rowblock import RowBlock
from app.tasks.levels.links import data_of_links

PLAIN = {
    "run.task": "classify", "gnn.level": "link", "gnn.feature_rows": "as_given", "gnn.dropout": 0.0,
    "gnn.input_dropout": 0.0, "gnn.hidden": 8, "gnn.weight_decay": 0.0, "links.dimension": 5, "seed": 1,
    "links.held_out": 0.2, "links.validation": 0.1,
}  # fmt: skip
WIDTH = 3


def drawn(n=90):
    """A graph with hubs and nodes alone, and features."""
    graph = nx.barabasi_albert_graph(n - 10, 3, seed=2)
    graph.add_nodes_from(range(n - 10, n))
    return graph, np.random.default_rng(1).normal(size=(n, WIDTH)).astype(np.float32)


def predictor_on(group, settings=None, exchange="auto", budget=None, n=90, given=None, first=None):
    """A predictor of a drawn graph, or of a given one and its features, on a group's ranks.

    first   [n] bool, the nodes of the first of two sides
    """
    graph, X = given or drawn(n)
    case = build(PLAIN | (settings or {}))
    source = stream_of_object(graph)[0] if group.rank == 0 else None
    loaded = ordered(group, load_stream(group, source, case.graph, case), case.graph.order, case)
    table = table_of_arrays(X, None, n=loaded.graph.n) if group.rank == 0 else None
    sides = None
    if first is not None:
        sides = given_sides(first if loaded.order_all is None else first[loaded.order_all], loaded, group)
    spans = spans_of(case.links.validation, case.links.held_out)
    split = split_edges(group, loaded, spans, case.seed, sides=sides)
    block = RowBlock(group, split.loaded.graph, loaded.rows, exchange, case.gnn.hidden)
    data = data_of_links(deal_node_table(group, table, loaded), split, block)
    return LinkPredictor(group, case.gnn, case.links, block, data, split, case.seed, budget=budget)


def pairs_apart(predictor, epoch):
    """[k, 2] the pairs of an epoch that no edge joins, u < v, of all ranks."""
    block, group = predictor.block, predictor.group
    counts, columns = apart_rows(block, predictor.drawn(epoch))
    rows = block.lo + np.repeat(np.arange(block.n_own), counts)
    both = np.ascontiguousarray(np.stack([rows, columns], axis=1))
    every = group.gather_host(both, group.gather_integers(np.array([len(both)]))[:, 0].tolist())
    assert sorted(map(tuple, every.tolist())) == sorted(map(tuple, every[:, ::-1].tolist()))  # from both ends
    return every[every[:, 0] < every[:, 1]]


def edges_of(predictor):
    """[m, 2] the edges that are learned from, of all ranks."""
    graph = predictor.split.loaded.graph
    both = np.stack([graph.row_of(), graph.indices.astype(np.int64)], axis=1)
    both = np.ascontiguousarray(both[both[:, 0] < both[:, 1]])
    return predictor.group.gather_host(
        both, predictor.group.gather_integers(np.array([len(both)]))[:, 0].tolist()
    )


def rows_of(predictor):
    """[n, d] float64, the rows of all nodes."""
    own = np.ascontiguousarray(predictor.scores_own()[: predictor.block.n_real])
    return predictor.group.gather_host(own, predictor.block.rows.row_counts()).astype(np.float64)
