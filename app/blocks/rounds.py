"""Blocks: the blocks of a graph's nodes, and rounds of local searches that begin where blocks meet.

Source   searches from single nodes, each undone unless it ends better: Sanders and Osipov, n-Level graph
         partitioning, ESA 2010; moves by gain with hill climbing: Fiduccia and Mattheyses, DAC 1982
"""

import ctypes
from typing import Any

import numpy as np

from app.blocks import plain as plain
from app.graphs.balance import Balance
from app.graphs.contracted import WeightedRows, numbered
from app.native.library import address, function, give_arrays
from app.native.state import KernelState

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
ROWS = ("indptr", "indices", "weights", "size")
ARRAYS = ("block", "total", "limit", "order", "moved", "gain", "joined", "met", "place")
PAIRS = ("pair", "begin", "width", "meet", "changed")
NUMBERS = ("pairs", "next_pair", "seeds", "next", "patience", "repair", "cut", "over")
LEAST_HUB, HUB = 64, 12  # entries of a hub, at least; times the mean
SPREADS, FEW = 3, 0.05  # rounds of label propagation; a share of the nodes, not worth another one
NONE = -(1 << 63)  # the gain of a node that does not wait


class _Blocks(ctypes.Structure):
    _fields_ = (
        *((name, Long) for name in ("n", "parts", "slack", "hub")),
        *((name, Pointer) for name in (*ROWS, *ARRAYS, *PAIRS)),
        *((name, Long) for name in NUMBERS),
    )


CLUSTER = function("lk_partition_cluster", Long, Long, *[Pointer] * 11)
SPREAD = function("lk_partition_spread", Long, Long, ctypes.c_uint64, *[Pointer] * 10, returns=Long)
REFINE = function("lk_partition_refine", ctypes.POINTER(_Blocks), Long, returns=Long)
FLOWS = function("lk_partition_flows", ctypes.POINTER(_Blocks), Long, returns=Long)
STIR = function("lk_partition_stir", ctypes.POINTER(_Blocks), Long, *[Pointer] * 5, returns=Long)
GROW = function("lk_partition_grow", Long, Long, *[Pointer] * 7, returns=Long)


def groups(
    rows: WeightedRows, most: int, order: np.ndarray, within: np.ndarray, compiled: bool = True
) -> np.ndarray:
    """[n] int32, numbered groups of nodes next to each other, for a coarser graph: see plain.cluster."""
    n = rows.n
    group, total = np.arange(n, dtype=np.int32), rows.size.copy()
    order, within = order.astype(np.int32), np.ascontiguousarray(within, dtype=np.int32)
    if compiled and CLUSTER is not None:
        alone, joined, met = np.ones(n, np.uint8), np.zeros(n, np.int64), np.zeros(n, np.int32)
        arrays = (rows.indptr, rows.indices, rows.weights, rows.size, order, within, group, total, alone)
        CLUSTER(n, most, *map(address, (*arrays, joined, met)))
    else:
        plain.cluster(rows, most, order, within, group, total)
    return numbered(group)


def spread(
    rows: WeightedRows, most: int, order: np.ndarray, within: np.ndarray, salt: int, compiled: bool = True
) -> np.ndarray:
    """[n] int32, numbered groups of nodes with much weight among them, by label propagation: see
    plain.spread.

    order   [n] nodes; those of fewer neighbours go first
    """
    order = order[np.argsort(np.diff(rows.indptr)[order], kind="stable")].astype(np.int32)
    return _spread(rows, most, order, within, salt, SPREADS, compiled)


def spread_once(
    rows: WeightedRows, most: int, within: np.ndarray, salt: int, compiled: bool = True
) -> np.ndarray:
    """[n] int32, groups like those of `spread` after one round in the order of nodes, which is read as it is
    stored.
    """
    return _spread(rows, most, np.arange(rows.n, dtype=np.int32), within, salt, 1, compiled)


def _spread(
    rows: WeightedRows, most: int, order: np.ndarray, within: np.ndarray, salt: int, rounds: int,
    compiled: bool,
) -> np.ndarray:  # fmt: skip
    """At most so many rounds in an order [n] int32."""
    n = rows.n
    group, total = np.arange(n, dtype=np.int32), rows.size.copy()
    within = np.ascontiguousarray(within, dtype=np.int32)
    arrays = (rows.indptr, rows.indices, rows.weights, rows.size, order, within, group, total)
    room = np.zeros(n, np.int64), np.zeros(n, np.int32)
    for _ in range(rounds):
        if compiled and SPREAD is not None:
            gone = SPREAD(n, most, salt | 1, *map(address, (*arrays, *room)))
        else:
            gone = plain.spread(rows, most, salt | 1, order, within, group, total)
        if gone <= FEW * n:
            break
    return numbered(group)


def grown(balance: Balance, order: np.ndarray, compiled: bool = True) -> np.ndarray:
    """[n] int32 blocks that grow from nodes in `order` [n]: see plain.grown."""
    rows, order = balance.rows, order.astype(np.int32)
    if not (compiled and GROW is not None):
        return plain.grown(balance, order)
    block = np.empty(rows.n, dtype=np.int32)
    arrays = (rows.indptr, rows.indices, rows.weights, rows.size, balance.limits, order, block)
    if GROW(rows.n, balance.parts, *map(address, arrays)):
        raise MemoryError("blocks of nodes")
    return block


class Blocks(KernelState):
    """Blocks of nodes, and a round of searches.

    rows, parts, limit   as Balance has them
    block   [n] int32     total   [parts] int64
    cut, over   weight between blocks; by how much they are too heavy
    hub     entries of a row that is not looked at again whenever a neighbour moves, but where its turn comes
    slack   by how much a block may be heavier in the middle of a search

    order [n] int32 has `seeds` nodes, `next` of which were begun from; moved [n] uint8 since the round began;
    gain, joined, met: of the kernel alone
    """

    numbers = NUMBERS

    def __init__(self, balance: Balance, block: np.ndarray, compiled: bool = True) -> None:
        self.rows, self.parts, self.limit = balance.rows, balance.parts, balance.limits
        n = self.rows.n
        self.compiled = compiled and REFINE is not None
        self.slack = int(self.rows.size.max(initial=0))
        self.hub = max(LEAST_HUB, HUB * len(self.rows.indices) // max(n, 1))
        self.block = np.array(block, dtype=np.int32)
        self.total = balance.totals(self.block)
        self.cut, self.over = balance.cut(self.block), balance.over(self.block)
        self.order, self.moved = np.zeros(n, dtype=np.int32), np.zeros(n, dtype=np.uint8)
        self.seeds = self.next = self.patience = self.repair = self.pairs = self.next_pair = 0
        if self.compiled:
            self.gain = np.full(n, NONE, dtype=np.int64)
            self.joined, self.met = np.zeros(self.parts, np.int64), np.zeros(self.parts, np.int32)
            self.place = np.full(n, -1, dtype=np.int32)
            self._hold(_Blocks(n, self.parts, self.slack, self.hub), ARRAYS)
            give_arrays(self.rows, self._record, ROWS)

    def meeting(self) -> np.ndarray:
        """[k] nodes next to another block, ascending."""
        rows = self.rows
        row = rows.row_of()
        found = np.zeros(rows.n, dtype=bool)
        found[row[self.block[row] != self.block[rows.indices]]] = True
        return np.flatnonzero(found)

    def meetings(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Blocks that meet, [k, 2] int32, the lower one first; where the nodes of each pair begin, [k+1]
        int64; the nodes [m] int32 where they meet, some of them twice.
        """
        rows = self.rows
        row, near = self.block[rows.row_of()].astype(np.int64), self.block[rows.indices]
        cut = np.flatnonzero(row != near)
        key = np.minimum(row[cut], near[cut]) * self.parts + np.maximum(row[cut], near[cut])
        order = np.argsort(key, kind="stable")
        key = key[order]
        begin = np.append(np.flatnonzero(np.diff(key, prepend=-1)), len(key)).astype(np.int64)
        pair = np.stack(np.divmod(key[begin[:-1]], self.parts), axis=1).astype(np.int32)
        return pair, begin, rows.row_of()[cut[order]].astype(np.int32)

    def heavy(self) -> np.ndarray:
        """[k] nodes of blocks that are too heavy, ascending."""
        return np.flatnonzero((self.total > self.limit)[self.block])

    def begin_searches(self, nodes: np.ndarray, patience: int, repair: int = False) -> None:
        """A round from nodes [k] on, in order; a search ends after so many moves that have not helped.

        repair   True: blocks only get rid of what is too much; plain.HASTY: with fewer looks
        """
        self.order[: len(nodes)] = nodes
        self.moved[:] = 0
        self.seeds, self.next, self.patience, self.repair = len(nodes), 0, patience, int(repair)

    @property
    def waiting(self) -> bool:
        """Whether the round goes on."""
        return self.next < self.seeds

    def run(self, looks: int) -> int:
        """Look at so many nodes, or some more; fewer where the round ends. Returns how many."""
        return self._call(REFINE, looks) if self.compiled else plain.refine(self, looks)

    def begin_sweeps(self) -> None:
        """No node is locked, and none is known to be without neighbours in other blocks."""
        n = self.rows.n
        self.locked = np.zeros(n, dtype=np.uint8)
        if self.compiled:
            known, near = np.full(n, -1, dtype=np.int32), np.zeros(n, dtype=np.uint8)
            self._sweep = (self.locked, known, near, np.empty(n, np.int32), np.empty(n, np.int64))

    def stir(self, quarters: int) -> int:
        """One sweep in which nodes go where they have most weight, however heavy blocks become: see
        plain.stir. Returns how many were looked at.
        """
        if not self.compiled:
            return plain.stir(self, quarters)
        return self._call(STIR, quarters, *map(address, self._sweep))

    def put(self, block: np.ndarray, over: int, cut: int) -> None:
        """Other blocks [n], of which it is known by how much they are too heavy, and what they cut."""
        self.block[:] = block
        self.total[:] = 0
        np.add.at(self.total, self.block, self.rows.size)
        self.cut, self.over = cut, over

    def begin_flows(self, pair: np.ndarray, begin: np.ndarray, meet: np.ndarray, width: np.ndarray) -> None:
        """A round of flows between pairs of blocks: what `meetings` returns, some pairs [k] of it in any
        order.

        width   [k] int64, which weight may leave either block, at least
        `changed` [parts] says which blocks cut less since.
        """
        self.pair, self.begin, self.width, self.meet = pair, begin, width, meet
        self.changed = np.zeros(self.parts, dtype=np.uint8)
        self.pairs, self.next_pair = len(pair), 0
        if self.compiled:
            give_arrays(self, self._record, PAIRS)

    @property
    def flowing(self) -> bool:
        """Whether the round of flows goes on."""
        return self.next_pair < self.pairs

    def run_flows(self, looks: int) -> int:
        """Smallest cuts between the next blocks, which are taken where they are not worse; until so many
        nodes, or some more, have been in corridors. Returns how many were.
        """
        return self._call(FLOWS, looks) if self.compiled else plain.flows(self, looks)

    def _call(self, kernel: Any, *arguments: int) -> int:
        """Run a kernel on the state. Raises MemoryError."""
        made = super()._call(kernel, *arguments)
        if made < 0:
            raise MemoryError("blocks of nodes")
        return made

    def move_to(self, v: int, to: int) -> None:
        """A node goes to a block; the cut is for the caller to keep."""
        own, size = int(self.block[v]), int(self.rows.size[v])
        self.over -= self._excess(own) + self._excess(to)
        self.total[own] -= size
        self.total[to] += size
        self.over += self._excess(own) + self._excess(to)
        self.block[v] = to

    def _excess(self, b: int) -> int:
        return max(int(self.total[b] - self.limit[b]), 0)
