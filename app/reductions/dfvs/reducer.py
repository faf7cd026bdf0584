"""Exact reductions of directed feedback vertex sets, which end where none of the rules of log.py applies."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from app.graphs.digraph import Digraph, from_arcs
from app.reductions.dfvs.log import BYPASS, DOME, DROP, LOOP, NAMES, PIE, TAKE

LOOK = 1024  # nodes between two looks at the clock
MOST_ARCS = 400  # of a node whose arcs are compared with those of its neighbours


class DirectedFeedbackReducer:
    """What is left of a digraph, and the log of how.

    succ, pred   [n] sets, the arcs of what is left; None: the node is gone
    chosen       [n] bool, nodes that are taken
    log          words of log.py
    steps        looks at the clock
    counts       by rule, how often it has been applied
    """

    def __init__(self, digraph: Digraph, price: np.ndarray) -> None:
        """price   [n] int64, above 0"""
        self.n, self.price = digraph.n, price.tolist()
        self.succ = _sets(digraph.n, digraph.out_ptr, digraph.out)
        self.pred = _sets(digraph.n, digraph.in_ptr, digraph.into)
        self.chosen = np.zeros(digraph.n, dtype=bool)
        self.log: list[int] = []
        self.steps, self.over, self._moved_to = 0, False, {}
        self.counts = [0] * len(NAMES)
        self._queue = list(range(digraph.n))
        self._queued = [True] * digraph.n

    # ---- arcs ----------------------------------------------------------------------------------------------

    def _touch(self, v: int) -> None:
        if not self._queued[v]:
            self._queued[v] = True
            self._queue.append(v)

    def _remove_arc(self, u: int, v: int) -> None:
        self.succ[u].discard(v)
        self.pred[v].discard(u)
        self._touch(u)
        self._touch(v)

    def _remove(self, v: int) -> None:
        for u in sorted(self.pred[v]):
            self.succ[u].discard(v)
            self._touch(u)
        for u in sorted(self.succ[v]):
            self.pred[u].discard(v)
            self._touch(u)
        self.succ[v] = self.pred[v] = None

    def _note(self, rule: int, *nodes: int) -> None:
        self.log += (rule, *nodes)
        self.counts[rule] += 1

    # ---- rules ---------------------------------------------------------------------------------------------

    def reduce(self, look: Callable[[], Any], most: int = 0) -> None:
        """Apply the rules until none does, or the time is up."""
        self._look, self._most = look, most
        while not self.over:
            self._small()
            if self.over or not (self._between() or self._compare()):
                break
        for v in range(self.n):  # where the time is up there may be some
            if self.succ[v] is not None and v in self.succ[v]:
                self._note(LOOP, v)
                self._take(v)

    def _tick(self) -> bool:
        self.steps += 1
        self.over = bool(self._look()) or self.steps == self._most
        return self.over

    def _small(self) -> None:
        """DROP, LOOP and BYPASS, as far as they lead."""
        done = 0
        while self._queue:
            v = self._queue.pop()
            self._queued[v] = False
            if self.succ[v] is not None:
                self._at(v)
            done += 1
            if done % LOOK == 0 and self._tick():
                return

    def _at(self, v: int) -> None:
        succ, pred = self.succ[v], self.pred[v]
        if v in succ:
            self._note(LOOP, v)
            self._take(v)
        elif not succ or not pred:
            self._note(DROP, v)
            self._remove(v)
        else:
            for side in (pred, succ):
                if len(side) == 1 and self.price[next(iter(side))] <= self.price[v]:
                    self._bypass(v, next(iter(side)))
                    return

    def _take(self, v: int) -> None:
        self.chosen[v] = True
        self._remove(v)

    def _bypass(self, v: int, instead: int) -> None:
        self._note(BYPASS, v)
        self._moved_to[v] = instead
        tails, heads = sorted(self.pred[v]), sorted(self.succ[v])
        self._remove(v)
        for u in tails:
            for w in heads:
                self.succ[u].add(w)
                self.pred[w].add(u)

    def _between(self) -> bool:
        """PIE: whether arcs have gone."""
        arcs = [(u, v) for u in range(self.n) if self.succ[u] for v in self.succ[u] if v not in self.pred[u]]
        if not arcs or self._tick():
            return False
        ends = np.array(arcs, dtype=np.int64)
        matrix = sp.csr_array((np.ones(len(ends), np.int8), ends.T), shape=(self.n, self.n))
        part = connected_components(matrix, directed=True, connection="strong")[1]
        gone = ends[part[ends[:, 0]] != part[ends[:, 1]]]
        if not len(gone):
            return False
        self._note(PIE)
        for u, v in sorted(gone.tolist()):
            self._remove_arc(u, v)
        return True

    def _compare(self) -> bool:
        """TAKE and DOME, once at every arc: whether something has gone."""
        before = len(self.log)
        for u in range(self.n):
            if self.succ[u] is None or len(self.succ[u]) + len(self.pred[u]) > MOST_ARCS:
                continue
            for v in sorted(self.succ[u]):
                if self.succ[u] is None:
                    break
                if self.succ[v] is not None and v in self.succ[u]:
                    self._arc(u, v)
            if u % LOOK == 0 and self._tick():
                break
        return len(self.log) > before

    def _arc(self, u: int, v: int) -> None:
        succ, pred = self.succ, self.pred
        if u in succ[v]:
            if (
                self.price[u] <= self.price[v]
                and _within(pred[v], pred[u], u)
                and _within(succ[v], succ[u], u)
            ):
                self._note(TAKE, u, v)
                self._take(u)
            return
        if pred[u] - succ[u] <= pred[v] or succ[v] - pred[v] <= succ[u]:
            self._note(DOME, u, v)
            self._remove_arc(u, v)

    # ---- what is left --------------------------------------------------------------------------------------

    def kernel(self) -> tuple[Digraph, np.ndarray]:
        """The digraph that is left, and [k] int64, the nodes that it numbers anew."""
        names = np.array([v for v in range(self.n) if self.succ[v] or self.pred[v]], dtype=np.int64)
        place = np.full(self.n, -1, dtype=np.int64)
        place[names] = np.arange(len(names))
        tails = np.repeat(np.arange(len(names)), [len(self.succ[v]) for v in names.tolist()])
        heads = np.array([w for v in names.tolist() for w in self.succ[v]], dtype=np.int64)
        return from_arcs(len(names), tails, place[heads])[0], names

    def moved(self, solution: np.ndarray) -> np.ndarray:
        """[n] bool, a set with those nodes in the place of bypassed ones that may be taken instead."""
        found = solution.copy()
        for v, u in self._moved_to.items():
            if found[v]:
                found[u] = True
        return found


def _within(some: set[int], others: set[int], without: int) -> bool:
    """Whether a set is part of another, but for one node."""
    return len(some) <= len(others) + 1 and all(w in others for w in some if w != without)


def _sets(n: int, ptr: np.ndarray, ends: np.ndarray) -> list[Any]:
    found, starts = ends.tolist(), ptr.tolist()
    return [set(found[starts[v] : starts[v + 1]]) for v in range(n)]
