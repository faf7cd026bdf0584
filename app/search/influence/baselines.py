"""Plain choices of seeds, by degrees and by PageRank: what sampling has to beat.

Each returns [n] int64, all nodes in the order in which they are taken; ties go to the lowest number.
"""

import heapq
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from app.graphs.diffusion import ONE, Diffusion
from app.rng import stream

DAMPING, ROUNDS = 0.85, 50  # of PageRank


def high_degree(d: Diffusion) -> np.ndarray:
    """By arcs out of them."""
    return np.argsort(-np.diff(d.out_ptr), kind="stable")


def single_discount(d: Diffusion) -> np.ndarray:
    """By arcs to nodes that are not chosen (Chen, Wang and Yang 2009)."""
    degree = np.diff(d.out_ptr).tolist()
    into, in_ptr = d.into.tolist(), d.in_ptr.tolist()

    def lowered(score: list[float], seed: int) -> list[int]:
        tails = into[in_ptr[seed] : in_ptr[seed + 1]]
        for u in tails:
            score[u] -= 1
        return tails

    return _in_turn([float(each) for each in degree], lowered)


def degree_discount(d: Diffusion) -> np.ndarray:
    """By arcs, less what those from t chosen neighbours make useless: d - 2 t - (d - t) t p, with the mean
    p of all arcs (Chen, Wang and Yang 2009, Algorithm 4).
    """
    p = float(d.share.astype(np.float64).mean()) / ONE if d.arcs else 0.0
    degree = np.diff(d.out_ptr).tolist()
    out, out_ptr = d.out.tolist(), d.out_ptr.tolist()
    near = [0] * d.n

    def lowered(score: list[float], seed: int) -> list[int]:
        heads = out[out_ptr[seed] : out_ptr[seed + 1]]
        for v in heads:
            near[v] += 1
            score[v] = degree[v] - 2 * near[v] - (degree[v] - near[v]) * near[v] * p
        return heads

    return _in_turn([float(each) for each in degree], lowered)


def _in_turn(score: list[float], lowered: Callable[[list[float], int], list[int]]) -> np.ndarray:
    """The node of the largest score, then the next, while scores fall as `lowered` says."""
    heap = [(-each, v) for v, each in enumerate(score)]
    heapq.heapify(heap)
    order, taken = [], [False] * len(score)
    while heap:
        key, v = heapq.heappop(heap)
        if taken[v]:
            continue
        if -key != score[v]:
            heapq.heappush(heap, (-score[v], v))
            continue
        taken[v] = True
        order.append(v)
        lowered(score, v)
    return np.array(order, dtype=np.int64)


def pagerank(d: Diffusion) -> np.ndarray:
    """By PageRank of the arcs turned round, by their probabilities: whom news would come from."""
    tails = np.repeat(np.arange(d.n), np.diff(d.out_ptr))
    share = d.share / np.maximum(np.bincount(d.out, weights=d.share, minlength=d.n), 1)[d.out]
    A = sp.csr_array((share, (tails, d.out)), shape=(d.n, d.n))
    rank = np.full(d.n, 1.0 / max(d.n, 1))
    for _ in range(ROUNDS):
        rank = (1.0 - DAMPING) / max(d.n, 1) + DAMPING * (A @ rank)
    return np.argsort(-rank, kind="stable")


def random_order(d: Diffusion) -> np.ndarray:
    """In a random order."""
    return stream(0, "influence").permutation(d.n)


INFLUENCE_BASELINES = {
    "high_degree": (high_degree, "high degree"),
    "single_discount": (single_discount, "single discount"),
    "degree_discount": (degree_discount, "degree discount"),
    "pagerank": (pagerank, "PageRank"),
    "random": (random_order, "random order"),
}
