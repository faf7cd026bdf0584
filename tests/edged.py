"""Classifiers of edges on small graphs, and the same in dense float64, for tests."""

import networkx as nx
import numpy as np
from layer_models import reference_layers

from app.case.file import build
from app.gnn.edge_level.classifier import EdgeClassifier, nodes_at
from app.gnn.model import layer_specs
from app.graphs.formats.memory import stream_of_object
from app.graphs.formats.memory_edges import edge_rows, features_of_rows, labels_of_edges, listed_labels
from app.graphs.formats.source import Limits
from app.graphs.nodes.memory import table_of_arrays
from app.partition.edge_data import load_edge_data
from app.partition.edge_labels import EdgeTable, deal_edge_table
from app.partition.load import ordered
from app.partition.nodes import deal_node_table
from app.partition.streams import load_stream
from app.sparse.rowblock import RowBlock

PLAIN = {
    "run.task": "classify", "gnn.level": "edge", "gnn.feature_rows": "as_given", "gnn.dropout": 0.0,
    "gnn.input_dropout": 0.0, "gnn.hidden": 4, "gnn.weight_decay": 0.0, "graph.edge_splits": "random",
    "seed": 1,
}  # fmt: skip
WIDTH = 3


def drawn(n=60, kind="classes", seed=1):
    """A graph with hubs and nodes alone, features of nodes, and labels of edges, some of them unknown."""
    graph, draws = nx.barabasi_albert_graph(n - 10, 3, seed=2), np.random.default_rng(seed)
    graph.add_nodes_from(range(n - 10, n))
    X = draws.normal(size=(n, WIDTH)).astype(np.float32)
    if kind == "classes":
        labels = draws.integers(-1, 3, graph.size())
    elif kind == "labels":
        labels = np.where(
            draws.random((graph.size(), 3)) < 0.2, np.nan, draws.integers(0, 2, (graph.size(), 3))
        )
    else:
        labels = draws.normal(5, 2, (graph.size(), 2))
        labels[draws.random(labels.shape) < 0.2] = np.nan
    return graph, X, labels


def classifier_on(
    group, settings=None, kind="classes", exchange="auto", n=60, F=None, budget=None, seed=1, few=None
):
    """A classifier of the edges of a drawn graph on a group's ranks.

    F   features of edges, or None     few   of the edges the first that may have a label; None: all
    """
    graph, X, labels = drawn(n, kind, seed)
    labels = labels if few is None else np.where(np.arange(graph.size()) < few, labels, -1)
    case = build(PLAIN | ({"gnn.goal": "values"} if kind == "values" else {}) | (settings or {}))
    source = stream_of_object(graph)[0] if group.rank == 0 else None
    if source is not None:
        told = listed_labels(graph, labels, source)
        source.edge_labels = lambda values: labels_of_edges(told, values)
        if F is not None:
            rows = edge_rows(graph, F, source)
            source.edge_features = lambda: features_of_rows(rows)
    loaded = ordered(group, load_stream(group, source, case.graph, case), case.graph.order, case)
    table = table_of_arrays(X, None, n=n) if group.rank == 0 else None
    data = deal_node_table(group, table, loaded)
    if F is not None:
        data = data.__class__(**{**vars(data), "edges": load_edge_data(group, loaded, "", Limits(0), "both")})
    told = EdgeTable(source.edge_labels(kind == "values")) if source is not None else EdgeTable()
    about = deal_edge_table(group, told, loaded, case)
    block = RowBlock(group, loaded.graph, loaded.rows, exchange)
    nodes = nodes_at(data, about, block)
    return EdgeClassifier(group, case.gnn, block, nodes, about, case.seed, budget=budget)


def edges_of(classifier):
    """[m, 2] all edges u < v, and what is told of them on all ranks: labels, which are trained on."""
    group, block, about = classifier.group, classifier.block, classifier.about
    counts, columns = block.global_rows(np.arange(block.n_own))
    rows = block.lo + np.repeat(np.arange(block.n_own), counts)
    own = np.ascontiguousarray(np.stack([rows, columns], axis=1)[classifier.labels.first])
    sizes = group.gather_integers(np.array([len(own)]))[:, 0].tolist()
    return [group.gather_host(np.ascontiguousarray(each), sizes) for each in (own, about.labels, about.train)]


def reference_scores(X, A, edges, case, columns, W, F=None):
    """[m, columns] scores of edges, written down from the definition."""
    h = case.hidden
    Z = reference_layers(A, X.astype(float), case, layer_specs(case, 3 * h), W)[-1]
    u, v = edges.T
    P, Q, R = Z[:, :h], Z[:, h : 2 * h], Z[:, 2 * h :]
    M = P[u] + P[v] + Q[u] * Q[v] + np.abs(R[u] - R[v]) + W.get("head.hidden_bias", 0)
    M = M if F is None else M + F @ W["head.W_edge"]
    return np.maximum(M, 0) @ W["head.W"] + W.get("head.bias", 0)


def reference_loss(S, labels, kind, scale=None):
    """Mean loss of the scores of edges that are all trained on."""
    if kind == "classes":
        S = S - S.max(1, keepdims=True)
        return (np.log(np.exp(S).sum(1)) - S[np.arange(len(S)), labels]).mean()
    if kind == "labels":
        known = labels >= 0
        return (np.logaddexp(0, S) - labels * S)[known].mean()
    known = ~np.isnan(labels)
    return ((S - (labels - scale.mean) / scale.deviation)[known] ** 2).mean()
