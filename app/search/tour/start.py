"""New first tours for a search: greedy ones of most, not all, of the short edges."""

import numpy as np

from app.graphs.keys import sorted_set
from app.graphs.metric import Metric
from app.native import tour_assembly as native
from app.rng import SplitMix

DROPPED, OF = 3, 10  # the share of the edges that are left out, as in tour_start.c


def short_edges(metric: Metric, near: np.ndarray) -> np.ndarray:
    """[m, 2] int32, the lower end first, all edges of near [n, k], shortest first, ties by their ends."""
    u = np.repeat(np.arange(metric.n, dtype=np.int64), near.shape[1])
    v = near.ravel().astype(np.int64)
    edges = sorted_set(np.minimum(u, v) * metric.n + np.maximum(u, v))
    edges = np.stack([edges // metric.n, edges % metric.n], axis=1)
    order = np.argsort(metric.between(edges[:, 0], edges[:, 1]), kind="stable")
    return np.ascontiguousarray(edges[order], dtype=np.int32)


def random_greedy(edges: np.ndarray, base: np.ndarray, random: SplitMix, compiled: bool = True) -> np.ndarray:
    """[n] int32: pieces of the greedy edges, three in ten of which are left out, in the order of a tour.

    edges   [m, 2] int32 of short_edges; base [n] int32, a tour: pieces follow each other as their first
            ends do in it; what this leaves long, a descent mends
    """
    if compiled and native.available():
        order, random.state = native.pieces(edges, base, random.state)
        return order
    links: list[list[int]] = [[] for _ in base]
    far = list(range(len(base)))
    for a, b in edges.tolist():
        if random.below(OF) < DROPPED or len(links[a]) > 1 or len(links[b]) > 1 or far[a] == b:
            continue
        links[a].append(b)
        links[b].append(a)
        far_a, far_b = far[a], far[b]
        far[far_a], far[far_b] = far_b, far_a
    return np.array(_one_after_the_other(links, far, base.tolist()), dtype=np.int32)


def _one_after_the_other(links: list[list[int]], far: list[int], base: list[int]) -> list[int]:
    """The cities of all pieces; far: the other end of the piece that ends at a city."""
    order, begun = [], set()
    for city in base:
        if len(links[city]) > 1 or city in begun:
            continue
        begun.add(far[city])
        before = -1
        while city >= 0:
            order.append(city)
            city, before = next((end for end in links[city] if end != before), -1), city
    return order
