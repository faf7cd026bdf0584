"""Networks that learn vectors of nodes without labels on small graphs, and the same in dense float64."""

import networkx as nx
import numpy as np
from layer_models import reference_layers

from app.case.file import build
from app.gnn.embed.embedder import Embedder, without_labels
from app.gnn.embed.objectives import EPSILON
from app.gnn.embed.views import VIEWS, kept_of
from app.gnn.model import layer_specs
from app.graphs.formats.memory import stream_of_object
from app.graphs.nodes.memory import table_of_arrays
from app.numerics.elementwise import Dropout
from app.partition.load import ordered
from app.partition.nodes import deal_node_table
from app.partition.streams import load_stream
from app.rng import key_of
from app.sparse.rowblock import RowBlock

PLAIN = {
    "run.task": "classify", "gnn.level": "embed", "gnn.feature_rows": "as_given", "gnn.dropout": 0.0,
    "gnn.input_dropout": 0.0, "gnn.hidden": 6, "gnn.weight_decay": 0.0, "embed.dimension": 4, "seed": 1,
    "embed.feature_drop": 0.4, "embed.edge_drop": 0.3,
}  # fmt: skip
WIDTH = 5


def drawn(n=60, weighted=False):
    """A graph with hubs and nodes alone, and features."""
    graph, draws = nx.barabasi_albert_graph(n - 10, 3, seed=2), np.random.default_rng(1)
    graph.add_nodes_from(range(n - 10, n))
    if weighted:
        for u, v in graph.edges:
            graph[u][v]["weight"] = float(draws.integers(1, 4))
    return graph, draws.normal(size=(n, WIDTH)).astype(np.float32)


def embedder_on(group, settings=None, exchange="auto", budget=None, n=60, sparse=False, arcs=False):
    """A network of a drawn graph on a group's ranks; arcs: of a directed one, whose nodes hear the tails."""
    settings = dict(settings or {})
    graph, X = drawn(n, settings.get("gnn.edge_weights", False))
    if arcs:
        graph = nx.DiGraph([(u, v) for u, v in graph.edges if (u + v) % 3] + [(4, 0), (1, 3)])
        graph.add_nodes_from(range(n))
        settings["graph.neighbours"] = "in"
    if sparse:
        import scipy.sparse as sp

        X = sp.csr_array(np.where(np.abs(X) > 0.5, X, 0))
    case = build(PLAIN | settings)
    source = None
    if group.rank == 0:
        source = stream_of_object(graph, case.graph.neighbours)[0] if arcs else stream_of_object(graph)[0]
    loaded = ordered(group, load_stream(group, source, case.graph, case), case.graph.order, case)
    table = table_of_arrays(X, None, n=n) if group.rank == 0 else None
    block = RowBlock(group, loaded.graph, loaded.rows, exchange, case.gnn.hidden)
    data = without_labels(deal_node_table(group, table, loaded), block, n)
    return Embedder(group, case.gnn, case.embed, block, data, case.seed, budget=budget)


def reference_views(embed, seed, epoch, A, X):
    """A and X of both views of an epoch, float64."""
    n, found = len(A), []
    for view in VIEWS:
        edges = Dropout(key_of(seed, f"embed/{view}/edges", epoch), embed.edge_drop)
        columns = Dropout(key_of(seed, f"embed/{view}/columns", epoch), embed.feature_drop)
        u, v = np.meshgrid(np.arange(n), np.arange(n), indexing="ij")
        left = kept_of(edges, np.minimum(u, v), np.maximum(u, v)) if embed.edge_drop else True
        read = kept_of(columns, np.zeros(1), np.arange(X.shape[1])) if embed.feature_drop else True
        found.append((A * left, X.astype(float) * read))
    return found


def reference_loss(views, case, W):
    """The objective of two views (A, X), by its definition."""
    embed = case.embed
    N = []
    for A, X in views:
        Z = reference_layers(A, X, case.gnn, layer_specs(case.gnn, embed.dimension), W)[-1]
        N.append((Z - Z.mean(axis=0)) / np.sqrt(Z.var(axis=0) + EPSILON))
    n, weight = len(N[0]), embed.decorrelation / embed.dimension
    ab, aa, bb = N[0].T @ N[1] / n, N[0].T @ N[0] / n, N[1].T @ N[1] / n
    eye = np.eye(len(ab))
    if embed.objective == "cca":
        return -np.trace(ab) + weight * (((aa - eye) ** 2).sum() + ((bb - eye) ** 2).sum())
    return ((1 - np.diag(ab)) ** 2).sum() + weight * ((ab * (1 - eye)) ** 2).sum()
