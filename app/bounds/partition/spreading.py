"""TreeWork: bounds on what partitions cut between some nodes, by trees of shortest paths."""

import math
import time
from dataclasses import replace

import numpy as np

from app.bounds.partition.part import part_of
from app.bounds.partition.spread import Trees, lengths
from app.bounds.partition.witness import TreeBound, edge_weights, packed
from app.graphs.balance import Balance
from app.rng import stream

TREES = "spreading trees"
BATCH = 32  # trees of the same lengths
FIRST, LATER = 8, 2  # batches of the first window; of the next, as many times more
STEP, SMALLER = 0.4, 0.7  # of a length, where an edge has most of a batch; of the next window's
LEAST_STEP, STILL = 0.02, 0.01  # the step of the last window, at least; a gain that is none
PROMISE = 3.0  # times what two windows prove
MUCH = 1 << 30  # what a tree is worth, about, in whole numbers
MOST_NODES = 1 << 25  # of all trees of a window: the proof grows them again
OFTEN = 16  # trees of each root in a window, at most
MOST_LEVELS = 1 << 26  # of a window
MOST_COUNTED = 1 << 58  # times the weight of all nodes
NODE_SECONDS, ENTRY_SECONDS = 3e-7, 2e-8  # of a tree that is grown, for each node and entry of its row
CHECK_SECONDS, TREE_SECONDS = 2e-7, 1e-4  # of a proof: for each node and each tree beside that,
LEVEL_SECONDS = 1e-8  # and each edge of a batch
OPEN_SECONDS = 4e-7  # of what comes before all trees, for each entry
REACH = 4.0  # blocks' shares of the nodes that a tree has, about


class TreeWork:
    """A packing of trees (witness.py), by multiplicative weights.

    All edges are short at first. Trees are grown from random roots, a batch at a time, and edges that much
    hangs on become longer. A window of batches is a bound: the trees of all of them, by as much as the
    fullest edge allows. Windows become longer and steps smaller; the best one counts.

    Source   Garg and Könemann 2007; Even, Naor, Rao and Schieber 1999 for what trees are right
    Differs  trees of a batch share lengths; the first windows are dropped, and all trees are worth the same
    bound    with its proof     done   nothing more is to be had
    """

    method = TREES

    def __init__(self, balance: Balance, nodes: np.ndarray, compiled: bool = True) -> None:
        part = self._part = part_of(balance, nodes)
        self._trees = Trees(part, compiled)
        self._weights = edge_weights(part, self._trees.edge)
        edges = len(self._weights)
        self._scale = np.log(lengths() / lengths()[0])
        self._length = np.zeros(edges)  # a logarithm
        self._step, self._window, self._windows, self._stood = STEP, FIRST, 0, 0
        self._roots, self._draws = np.zeros(0, dtype=np.int64), stream(0, "partition roots")
        self._reach, self._proved = reach_of(part.rows.n, part.parts), 0  # nodes of a tree; of the bound's
        self._node_seconds = node_seconds(part.rows.n, len(part.rows.indices))
        self.bound = TreeBound(
            0,
            nodes,
            *(
                np.zeros((0, k), dtype=t)
                for k, t in ((edges, np.uint8), (BATCH, np.int64), (BATCH, np.int64))
            ),
        )
        self.done = not self._trees.fits or part.total <= part.most or not edges
        self._open_window()
        self._open_batch()

    @property
    def promise(self) -> float:
        """More than this is hardly to be had."""
        return PROMISE * self.bound.lower if self._windows > 1 else math.inf

    @property
    def check_seconds(self) -> float:
        """Of a proof of the bound, about."""
        nodes, trees = self._proved, np.count_nonzero(self.bound.g)
        batches = TREE_SECONDS * trees + LEVEL_SECONDS * self.bound.level.size
        return (CHECK_SECONDS + self._node_seconds) * nodes + batches

    @property
    def seconds(self) -> float:
        """Of a tree, about."""
        return self._node_seconds * self._reach

    def run(self, end: float, wanted: int) -> None:
        """Work until the clock says `end`, or partitions that cut less than `wanted` are out of the
        question.
        """
        while not self.done and self.bound.lower < wanted:
            self._grow()
            if self._at == BATCH:
                self._close_batch()
            if time.perf_counter() >= end:
                break
        self._take()

    # ---- a batch -------------------------------------------------------------------------------------------

    def _open_batch(self) -> None:
        top = self._length.max(initial=0.0)
        shown = np.maximum(self._length - top + self._scale[-1], 0.0)
        self._level = (np.searchsorted(self._scale, shown, side="right") - 1).astype(np.uint8)
        self._trees.measure(self._level)
        self._load = np.zeros(len(self._weights), dtype=np.int64)
        self._batch, self._at, self._worth = np.zeros((2, BATCH), dtype=np.int64), 0, 0

    def _grow(self) -> None:
        """A tree."""
        root = self._root()
        count = self._trees.grow(root)
        if count:
            self._reach = count
            over = int(self._part.sizes[self._trees.order[:count]].sum()) - self._part.most
            much = max(MUCH // over, 1)
            self._trees.load(count, much, self._load)
            self._batch[:, self._at] = root, much
            self._worth += much * over
            self._counted += much
            self._nodes += count
        self._at += 1

    def _root(self) -> int:
        """The next one, in an order that is drawn anew whenever all have had their turn."""
        if not len(self._roots):
            self._roots = self._draws.permutation(self._part.rows.n)
        root, self._roots = int(self._roots[0]), self._roots[1:]
        return root

    def _close_batch(self) -> None:
        """Edges become longer; the window has one batch more."""
        share = self._load / self._weights
        if (most := share.max(initial=0.0)) > 0:
            self._length += self._step * share / most
        self._all += self._load
        self._value += self._worth
        self._kept.append((self._level, self._batch))
        full = self._nodes >= MOST_NODES or (len(self._kept) + 1) * len(self._weights) > MOST_LEVELS
        full |= len(self._kept) * BATCH >= OFTEN * max(self._part.rows.n, BATCH)
        full |= self._counted * self._part.total >= MOST_COUNTED
        if len(self._kept) >= self._window or full:
            self._close_window(full)
        self._open_batch()

    # ---- a window ------------------------------------------------------------------------------------------

    def _open_window(self) -> None:
        self._kept: list[tuple[np.ndarray, np.ndarray]] = []
        self._all, self._value = np.zeros(len(self._weights), dtype=np.int64), 0
        self._nodes, self._counted = 0, 0

    def _close_window(self, full: bool) -> None:
        before = self.bound.lower
        self._take()
        self._stood = 0 if self.bound.lower > (1 + STILL) * before else self._stood + 1
        self._window *= 1 if full else LATER
        self._step = max(self._step * SMALLER, LEAST_STEP)
        self._windows += 1
        self.done = self._stood > 2
        self._open_window()

    def _take(self) -> None:
        """Keep what the window's batches prove, where it is better."""
        if not self._kept:
            return
        lower = packed(self._value, self._all, self._weights)
        if lower > self.bound.lower:
            self._proved = self._nodes
            level, batch = (
                np.array([each for each, _ in self._kept]),
                np.array([each for _, each in self._kept]),
            )
            self.bound = replace(
                self.bound, lower=lower, level=level, roots=batch[:, 0].copy(), g=batch[:, 1].copy()
            )


def reach_of(nodes: int, parts: int) -> int:
    """How many nodes a tree has, about, before there is one."""
    return int(min(nodes, REACH * nodes / parts))


def node_seconds(nodes: int, entries: int) -> float:
    """Of a tree, for each of its nodes, about."""
    return NODE_SECONDS + ENTRY_SECONDS * entries / max(nodes, 1)


def first_seconds(nodes: int, entries: int, parts: int) -> float:
    """Of what comes before the first bound, about."""
    return OPEN_SECONDS * entries + BATCH * reach_of(nodes, parts) * node_seconds(nodes, entries)
