"""Pairs of nodes that no edge joins, drawn anew for each epoch: the owner of a node knows all its pairs."""

import math
from collections.abc import Callable, Iterator

import numpy as np

from app.gnn.links.sides import Sides
from app.graphs.graph import index_type
from app.graphs.lists import ranges, starts
from app.rng import stream
from app.sparse.rowblock import RowBlock

LARGEST = 3_000_000_000  # nodes: beyond it products of two numbers are no 64-bit ones


PIECE = 1 << 20  # drawn pairs that are looked at together


def rounds_of(n: int, edges: int, ratio: float, others: int | None = None) -> int:
    """Rounds of n pairs each that are about `ratio` times as many as the edges.

    others   nodes that each of n may be paired with; None: the others of n, of which every pair is one of two
    """
    most = (n - 1) // 2 if others is None else others
    return max(round(min(ratio * edges / max(n, 1), most)), 1)


class _Affine:
    """p_i(k) = (a_i k + b_i) mod n, i < rounds, with a_i and n coprime: permutations of 0..n-1."""

    def __init__(self, n: int, rounds: int, seed: int, epoch: int) -> None:
        self.n, self._draws = n, stream(seed, "links/wrong", epoch)
        self.factors, self.shifts, self.back = [], [], []
        for _ in range(rounds):
            a = int(self._draws.integers(1, max(n, 2)))
            while math.gcd(a, n) != 1:
                a = a % n + 1
            self.factors.append(a)
            self.shifts.append(int(self._draws.integers(0, n)))
            self.back.append(pow(a, -1, n) if n > 1 else 0)

    def image(self, i: int, k: np.ndarray) -> np.ndarray:
        """p_i of numbers [k]."""
        return (self.factors[i] * k + self.shifts[i]) % self.n

    def origin(self, i: int, k: np.ndarray) -> np.ndarray:
        """What p_i maps to numbers [k]."""
        return self.back[i] * ((k - self.shifts[i]) % self.n) % self.n


class Permutations(_Affine):
    """u is paired with every p_i(u), u among n nodes.

    A node v is paired with p_i(v), and with the u that has p_i(u) = v: both are arithmetic, so that a rank
    makes the rows of its own nodes alone, and a pair is the same from both ends. Over the draws a_i, b_i, a
    node's partner is uniform.
    """

    def kinds(self, nodes: np.ndarray) -> list[np.ndarray]:
        """Nodes [k], of which partners are asked for together."""
        return [nodes]

    def ranking(self, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of nodes [k] those that have partners `ahead`, and those that have some `behind`."""
        return nodes, nodes

    def ahead(self, nodes: np.ndarray) -> np.ndarray:
        """[k, rounds] int64: p_i of the nodes [k]."""
        return np.stack([self.image(i, nodes) for i in range(len(self.factors))], axis=1)

    def behind(self, nodes: np.ndarray) -> np.ndarray:
        """[k, rounds, 1] int64: the nodes whose p_i the nodes [k] are."""
        return np.stack([self.origin(i, nodes) for i in range(len(self.factors))], axis=1)[:, :, None]

    def partners(self, nodes: np.ndarray) -> np.ndarray:
        """[k, 2 rounds] int64 ascending: the nodes that each of `nodes` [k] is paired with, repeats too."""
        found = np.concatenate([self.ahead(nodes), self.behind(nodes)[:, :, 0]], axis=1)
        found.sort(axis=1)
        return found


class Crossings(_Affine):
    """Each node of the first side is paired with nodes of the second, as Permutations pair any nodes.

    With n the nodes of the larger side and m those of the second, a node at place k of the first side is
    paired with that at place (p_i(k) + c_i) mod m of the second; over the draws a_i, b_i, c_i uniform.
    """

    def __init__(self, sides: Sides, rounds: int, seed: int, epoch: int) -> None:
        self.sides, (first, second) = sides, map(len, sides.rows)
        super().__init__(max(first, second), rounds, seed, epoch)
        self.moved = self._draws.integers(0, second, rounds).tolist()
        self.first, self.second = first, second

    def kinds(self, nodes: np.ndarray) -> list[np.ndarray]:
        """Nodes [k] by their sides, of each of which partners are asked for together."""
        return list(self.ranking(nodes))

    def ranking(self, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of nodes [k] those of the first side, which have partners `ahead`, and the others."""
        of_first = self.sides.first[nodes]
        return nodes[of_first], nodes[~of_first]

    def ahead(self, nodes: np.ndarray) -> np.ndarray:
        """[k, rounds] int64: the partners of nodes [k] of the first side."""
        k = self.sides.places[nodes]
        places = [(self.image(i, k) + c) % self.second for i, c in enumerate(self.moved)]
        return self.sides.rows[1][np.stack(places, axis=1)]

    def behind(self, nodes: np.ndarray) -> np.ndarray:
        """[k, rounds, w] int64: the nodes whose partners nodes [k] of the second side are; -1: fewer."""
        turns = np.arange(-(-self.n // self.second)) * self.second
        places = self.sides.places[nodes][:, None]
        found = np.empty((len(nodes), len(self.moved), len(turns)), dtype=np.int64)
        for i, c in enumerate(self.moved):
            images = (places - c) % self.second + turns
            origin = self.origin(i, images)
            there = (images < self.n) & (origin < self.first)
            found[:, i] = np.where(there, self.sides.rows[0][np.where(there, origin, 0)], -1)
        return found

    def partners(self, nodes: np.ndarray) -> np.ndarray:
        """[k, w] int64 ascending: the nodes that each of `nodes` [k] of one side is paired with, repeats too;
        -1: fewer."""
        of_first = bool(len(nodes)) and self.sides.first[nodes[0]]
        found = self.ahead(nodes) if of_first else self.behind(nodes)
        found = found.reshape(len(nodes), math.prod(found.shape[1:]))
        found.sort(axis=1)
        return found


Drawn = Permutations | Crossings


def apart_rows(block: RowBlock, drawn: Drawn) -> tuple[np.ndarray, np.ndarray]:
    """The drawn pairs of own nodes that are two nodes, not joined, each once: counts [n_own], global columns.

    Those of a row ascending. A pair is left out from both ends alike.
    """
    counts, rows, columns = np.zeros(block.n_own, dtype=np.int64), [], []
    for nodes in drawn.kinds(block.lo + np.arange(block.n_real)):
        for mine, found in pieces_drawn(block, nodes, drawn.partners):
            keep = (found != block.lo + mine[:, None]) & (found >= 0)
            keep[:, 1:] &= found[:, 1:] != found[:, :-1]
            keep &= ~joined_here(block, mine, found)
            counts[mine] = keep.sum(axis=1)
            rows.append(mine)
            columns.append(found[keep].astype(index_type(block.n)))
    if not columns:
        return counts, np.empty(0, dtype=np.int32)
    return counts, _in_order(counts, np.concatenate(rows), np.concatenate(columns))


def pieces_drawn(
    block: RowBlock, nodes: np.ndarray, ask: Callable[[np.ndarray], np.ndarray]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Own rows [k], local numbers, and what is asked of own nodes [m] about them [k, ...], some at a time."""
    wide = ask(nodes[:1]).size
    for piece in block.pieces(nodes - block.lo):
        step = max(PIECE // max(wide, 1), 1)
        for at in range(piece.start, piece.stop, step):
            some = nodes[at : min(at + step, piece.stop)]
            yield some - block.lo, ask(some)


def _in_order(counts: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Columns of some rows [k] after the other by ascending rows; counts [n_own] of each row's."""
    if (rows[1:] > rows[:-1]).all():
        return columns
    starts = np.empty(len(rows), dtype=np.int64)
    starts[:] = np.cumsum(counts[rows]) - counts[rows]
    order = np.argsort(rows, kind="stable")
    return columns[ranges(starts[order], counts[rows[order]])]


def joined_here(block: RowBlock, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
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
        pointers = starts(rows[part], block.n_own)
        local = (columns[part] - offsets[rank]).astype(np.int32)
        shape = block.n_own, block.own_counts[rank]
        tiles.append(make(device.csr(pointers, local, None, shape)) if len(part) else None)
    return tiles
