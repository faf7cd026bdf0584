"""Graphs and smallest covers for the tests of bounds and of branch and reduce."""

import networkx as nx
import numpy as np

from app.graphs.graph import from_edges


def from_networkx(graph):
    """The whole graph of a NetworkX graph with nodes 0..n-1."""
    edges = np.array(graph.edges, dtype=np.int64).reshape(-1, 2)
    return from_edges(graph.number_of_nodes(), edges[:, 0], edges[:, 1])


def random_graph(draws, most, fewest=0):
    """G(n, p) with drawn n in [fewest, most] and drawn p."""
    n = int(draws.integers(fewest, most + 1))
    u, v = np.triu_indices(n, 1)
    keep = draws.random(len(u)) < draws.choice([0.1, 0.25, 0.4, 0.6, 0.85])
    return from_edges(n, u[keep], v[keep])


def random_weights(draws, n):
    """By turns at random: none, small ones with zeros, large ones."""
    kind = draws.integers(3)
    return None if kind == 0 else draws.integers(0, 6, n) if kind == 1 else draws.integers(1, 10**6, n)


def cheapest(graph, weights=None):
    """The cost of a cheapest cover, by trying all sets of nodes."""
    sets = np.arange(1 << graph.n)
    covers = np.ones(len(sets), dtype=bool)
    for u, v in zip(graph.row_of().tolist(), graph.indices.tolist()):
        covers &= (sets >> u | sets >> v) & 1 == 1
    weight = np.ones(graph.n, dtype=np.int64) if weights is None else weights
    cost = sum((sets >> i & 1) * int(weight[i]) for i in range(graph.n))
    return int(np.min(cost + np.zeros(len(sets), dtype=np.int64), where=covers, initial=1 << 60))


def is_cover(graph, cover):
    """True when every edge has an end in the cover [n] bool."""
    return bool((cover[graph.row_of()] | cover[graph.indices]).all())


def growing(n, d=4, seed=1):
    """The Barabási-Albert graph of NetworkX."""
    return from_networkx(nx.barabasi_albert_graph(n, d, seed=seed))
