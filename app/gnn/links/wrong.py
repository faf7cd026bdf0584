"""Pairs of nodes that no edge joins, drawn anew for each epoch: the owner of a node knows all its pairs."""

import math

import numpy as np

from app.graphs.graph import index_type
from app.rng import stream
from app.sparse.rowblock import RowBlock

LARGEST = 3_000_000_000  # nodes: beyond it products of two numbers are no 64-bit ones


def rounds_of(n: int, edges: int, ratio: float) -> int:
    """Permutations whose n pairs each are about `ratio` times as many as the edges."""
    return max(round(min(ratio * edges / max(n, 1), (n - 1) // 2)), 1)


class Permutations:
    """p_i(u) = (a_i u + b_i) mod n, i < rounds, with a_i and n coprime: u is paired with every p_i(u).

    A node v is paired with p_i(v), and with the u that has p_i(u) = v: both are arithmetic, so that a rank
    makes the rows of its own nodes alone, and a pair is the same from both ends. Over the draws a_i, b_i, a
    node's partner is uniform.
    """

    def __init__(self, n: int, rounds: int, seed: int, epoch: int) -> None:
        self.n, draws = n, stream(seed, "links/wrong", epoch)
        self.factors, self.shifts, self.back = [], [], []
        for _ in range(rounds):
            a = int(draws.integers(1, max(n, 2)))
            while math.gcd(a, n) != 1:
                a = a % n + 1
            self.factors.append(a)
            self.shifts.append(int(draws.integers(0, n)))
            self.back.append(pow(a, -1, n) if n > 1 else 0)

    def partners(self, nodes: np.ndarray) -> np.ndarray:
        """[k, 2 rounds] int64 ascending: the nodes that each of `nodes` [k] is paired with, repeats too."""
        found = np.empty((len(nodes), 2 * len(self.factors)), dtype=np.int64)
        for i, (a, b, back) in enumerate(zip(self.factors, self.shifts, self.back)):
            found[:, 2 * i] = (a * nodes + b) % self.n
            found[:, 2 * i + 1] = back * ((nodes - b) % self.n) % self.n
        found.sort(axis=1)
        return found


def apart_rows(block: RowBlock, drawn: Permutations) -> tuple[np.ndarray, np.ndarray]:
    """The drawn pairs of own nodes that are two nodes, not joined, each once: counts [n_own], global columns.

    Those of a row ascending. A pair is left out from both ends alike.
    """
    rows, counts, columns = np.arange(block.n_real), np.zeros(block.n_own, dtype=np.int64), []
    for piece in block.pieces(rows):
        mine = rows[piece]
        nodes = block.lo + mine
        found = drawn.partners(nodes)
        keep = found != nodes[:, None]
        keep[:, 1:] &= found[:, 1:] != found[:, :-1]
        keep &= ~_joined(block, mine, found)
        counts[mine] = keep.sum(axis=1)
        columns.append(found[keep].astype(index_type(block.n)))
    return counts, np.concatenate(columns) if columns else np.empty(0, dtype=np.int32)


def _joined(block: RowBlock, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """[k, c] bool, which of the columns [k, c] are neighbours of own rows [k], local numbers."""
    counts, near = block.global_rows(rows)
    keys = np.repeat(rows, counts) * block.n + near
    asked = rows[:, None] * block.n + columns
    if not len(keys):
        return np.zeros(asked.shape, dtype=bool)
    return keys[np.minimum(np.searchsorted(keys, asked), len(keys) - 1)] == asked


def tiles_of(block: RowBlock, device: object, counts: np.ndarray, columns: np.ndarray) -> list[object]:
    """For each rank the pattern of the pairs with its nodes, columns counted from its first; None: no pair.

    counts, columns   as `apart_rows` has them
    """
    make, offsets = device.attention_pattern, block.rows.offsets
    if len(offsets) == 2:
        pointers = np.concatenate([[0], np.cumsum(counts)])
        return [make(device.csr(pointers, columns, None, (block.n_own, block.n_own)))]
    rows = np.repeat(np.arange(block.n_own, dtype=np.int32), counts)
    owner = block.rows.owner(columns).astype(np.uint16)
    order = np.argsort(owner, kind="stable")
    ends = np.cumsum(np.bincount(owner, minlength=len(offsets) - 1))
    tiles: list[object] = []
    for rank, part in enumerate(np.split(order, ends[:-1])):
        pointers = np.zeros(block.n_own + 1, dtype=np.int64)
        np.cumsum(np.bincount(rows[part], minlength=block.n_own), out=pointers[1:])
        local = (columns[part] - offsets[rank]).astype(np.int32)
        shape = block.n_own, block.own_counts[rank]
        tiles.append(make(device.csr(pointers, local, None, shape)) if len(part) else None)
    return tiles
