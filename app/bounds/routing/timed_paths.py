"""Least costs of ng-routes in time by dynamic programming over times, as a check of a certificate needs them.

A label is a path from the depot to a customer: when service begins there, its load, cost and memory, as in
paths.py. Time is cut into parts so short that no way leads from one part into the same. Of labels of one
customer, memory and load in a part those are kept that are cheaper than all that are no later; and none where
a label of an earlier part has no more load and cost, and remembers no more.
"""

import heapq

import numpy as np

from app.bounds.routing.paths import FAR, Hours, Memories, arcs_from, sums
from app.graphs.keys import sorted_set

MOST_LABELS = 1 << 24  # looked at
MOST_PARTS = 20_000


CELLS = 32  # of loads, and of times


class Reach:
    """Least costs of paths to customers, by load and by time, which are told apart in cells.

    cost   [n, CELLS, CELLS] once it is closed: of paths of no later cells, FAR where there is none
    """

    def __init__(self, hours: Hours, capacity: int) -> None:
        self.hours, self.capacity, self._heavy = hours, capacity, -(-(capacity + 1) // CELLS)
        self._long = np.maximum(-(-(hours.closes - hours.opens + 1) // CELLS), 1)
        self.cost = np.full((len(self._long), CELLS, CELLS), FAR)

    def take(self, at: np.ndarray, load: np.ndarray, time: np.ndarray, cost: np.ndarray) -> None:
        """Paths [k] more: their last customers, loads, times there, costs."""
        cell = (time - self.hours.opens[at]) // self._long[at]
        np.minimum.at(self.cost, (at, load // self._heavy, cell), cost)

    def close(self) -> None:
        """There are no more."""
        for axis in (1, 2):
            np.minimum.accumulate(self.cost, axis=axis, out=self.cost)

    def through(self, back: "Reach", depot: int, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """[edges] at most the cost, but for that of the edge, of every route that goes from i to j, or from j
        to i; back: of paths backwards.
        """
        return np.minimum(self._from(back, depot, i, j), self._from(back, depot, j, i))

    def _from(self, back: "Reach", depot: int, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """A path of a cell is no lighter, and comes no earlier, than the cell begins: what follows the way to
        j has the rest of the capacity and of the time.
        """
        begin = self.hours.opens[i, None] + self._long[i, None] * np.arange(CELLS)
        left = self.hours.left(depot, i, j)[:, None] - begin - back.hours.opens[j, None]
        cell, late = np.clip(left // back._long[j, None], 0, CELLS - 1), left < 0
        found = np.full(len(i), FAR)
        for heavy in range(self.capacity // self._heavy + 1):
            rest = (self.capacity - heavy * self._heavy) // self._heavy
            both = sums(self.cost[i, heavy], back.cost[j[:, None], rest, cell])
            found = np.minimum(found, np.where(late, FAR, both).min(axis=1))
        return found


class TooMany(Exception):
    """Labels, or parts of time."""


class TimedPaths:
    """Least cost of routes over edges i-j (int64, of any sign), customers' neighbours near [n, width].

    least   of all routes, closed [n] of those that end at each customer, FAR where there is none
    reach   of paths to each customer        load   [n], and capacity: whole numbers from 0 on
    """

    def __init__(
        self, near: np.ndarray, load: np.ndarray, capacity: int, depot: int, hours: Hours, i: np.ndarray,
        j: np.ndarray, cost: np.ndarray,
    ) -> None:  # fmt: skip
        self.n, self.width = near.shape
        self.load, self.capacity, self.depot, self.hours = load, capacity, depot, hours
        self.ends, self.costs = (i, j), cost
        self.out = np.full(self.n, FAR)
        first = (i == depot) | (j == depot)
        self.out[np.where(i == depot, j, i)[first]] = cost[first]
        self.home = hours.way(np.arange(self.n), np.full(self.n, depot), 0)
        self._arcs(near, i[~first], j[~first], cost[~first])
        self.best = np.full((self.n, 1 << self.width, capacity + 1), FAR)  # of labels of earlier parts
        self.part = int(self.step.min(initial=1 << 60))
        self.closed, self.reach, self._looked = np.full(self.n, FAR), Reach(hours, capacity), 0
        self._waiting: dict[int, list[np.ndarray]] = {}
        self._parts: list[int] = []
        self._run()
        self.reach.close()
        self.least = int(self.closed.min(initial=FAR))

    def through(self, back: "TimedPaths") -> np.ndarray:
        """[edges] at most the cost of every route that has the edge; back: the paths backwards."""
        i, j = self.ends
        first = (i == self.depot) | (j == self.depot)
        closed = np.minimum(self.closed, back.closed)
        both = sums(self.reach.through(back.reach, self.depot, i, j), self.costs)
        return np.where(first, closed[np.where(i == self.depot, j, i)], both)

    def _arcs(self, near: np.ndarray, i: np.ndarray, j: np.ndarray, cost: np.ndarray) -> None:
        """Edges both ways, by where they begin, and what becomes of memories on each."""
        at, to, cost = np.append(i, j), np.append(j, i), np.tile(cost, 2)
        step = self.hours.way(at, to)
        kept = self.hours.opens[at] + step <= self.hours.closes[to]
        order = np.flatnonzero(kept)[np.argsort(at[kept], kind="stable")]
        at, self.to, self.step, self.cost = at[order], to[order], step[order], cost[order]
        self.begin = np.searchsorted(at, np.arange(self.n + 1))
        self.memories = Memories(near, at, self.to)

    def _run(self) -> None:
        starts = np.flatnonzero(self.out < FAR)
        depot, hours = np.full(len(starts), self.depot), self.hours
        time = np.maximum(hours.opens[self.depot] + hours.way(depot, starts, 0), hours.opens[starts])
        self._put(starts, np.ones(len(starts), dtype=np.int64), self.load[starts], time, self.out[starts])
        parts = 0
        while self._parts:
            labels = np.concatenate(self._waiting.pop(heapq.heappop(self._parts)), axis=1)
            self._look_at(labels)
            parts += 1
            if self._looked > MOST_LABELS or parts > MOST_PARTS:
                raise TooMany

    def _put(
        self, at: np.ndarray, memory: np.ndarray, load: np.ndarray, time: np.ndarray, cost: np.ndarray
    ) -> None:
        """Labels that wait for their parts of time."""
        fits = (time <= self.hours.closes[at]) & (load <= self.capacity)
        labels = np.stack([at, memory, load, time, cost]).astype(np.int64)[:, fits]
        part = labels[3] // self.part
        order = np.argsort(part, kind="stable")
        cuts = np.flatnonzero(np.diff(part[order])) + 1
        for piece in np.split(order, cuts):
            if len(piece):
                number = int(part[piece[0]])
                if number not in self._waiting:
                    heapq.heappush(self._parts, number)
                self._waiting.setdefault(number, []).append(labels[:, piece])

    def _look_at(self, labels: np.ndarray) -> None:
        """Keep the labels of a part that none is better than, and extend them."""
        at, memory, load, _, cost = labels
        labels = labels[:, self.best[at, memory, load] > cost]
        labels = self._cheapest(labels)
        at, memory, load, time, cost = labels
        self._looked += len(at)
        ends = (self.out[at] < FAR) & (time + self.home[at] <= self.hours.closes[self.depot])
        np.minimum.at(self.closed, at[ends], cost[ends] + self.out[at[ends]])
        self.reach.take(at, load, time, cost)
        np.minimum.at(self.best, (at, memory, load), cost)
        for row in sorted_set(at).tolist():
            self._close(self.best[row])
        self._extend(labels)

    def _cheapest(self, labels: np.ndarray) -> np.ndarray:
        """Of one customer, memory and load those cheaper than all that are no later."""
        at, memory, load, time, cost = labels
        state = ((at << self.width) | memory) * (self.capacity + 1) + load
        order = np.lexsort((cost, time, state))
        labels, state = labels[:, order], state[order]
        first = np.ones(len(state), dtype=bool)
        first[1:] = state[1:] != state[:-1]
        rank = np.unique(labels[4], return_inverse=True)[1].reshape(-1)
        falling = rank - np.cumsum(first) * (len(rank) + 1)  # every state's ranks are below those before it
        sofar = np.minimum.accumulate(falling)
        cheaper = first.copy()
        cheaper[1:] |= falling[1:] < sofar[:-1]
        return labels[:, cheaper]

    def _close(self, best: np.ndarray) -> None:
        """[2^width, loads] the least over all memories inside each, and no more load."""
        np.minimum.accumulate(best, axis=1, out=best)
        for place in range(self.width):
            halves = best.reshape(1 << (self.width - place - 1), 2, 1 << place, -1)
            np.minimum(halves[:, 1], halves[:, 0], out=halves[:, 1])

    def _extend(self, labels: np.ndarray) -> None:
        """One customer more."""
        at, memory, load, time, cost = labels
        label, arc = arcs_from(self.begin, at)
        to = self.to[arc]
        more = load[label] + self.load[to]
        then = np.maximum(time[label] + self.step[arc], self.hours.opens[to])
        fits = ((memory[label] & self.memories.known[arc]) == 0) & (more <= self.capacity)
        fits &= then <= self.hours.closes[to]
        arc, to, label, then, more = arc[fits], to[fits], label[fits], then[fits], more[fits]
        new = self.memories.after(arc, memory[label])
        longer = cost[label] + self.cost[arc]
        better = longer < self.best[to, new, more]
        self._put(to[better], new[better], more[better], then[better], longer[better])
