"""Least paths of ng-routes by dynamic programming over loads, as a check of a certificate needs them.

A label is a path from the depot to a customer: its load, its cost, and the memory, which of the customer's
neighbours it has visited and no later one has forgotten. Labels of one load are looked at together. One is
dropped where another of the same customer has no more load and cost, and remembers no more.

Sources  Baldacci, Mingozzi and Roberti 2011; the same backwards, for costs are the same both ways
"""

from dataclasses import dataclass

import numpy as np

from app.graphs.deliveries import Deliveries
from app.graphs.keys import sorted_set
from app.graphs.metric import Metric

FAR = 1 << 62
TABLE = 1 << 24  # customers, times sets of neighbours, times loads, of a table of labels in time
LOADS = 1 << 24  # of pairs of customers and loads that are looked at together


def whole_loads(deliveries: Deliveries) -> tuple[np.ndarray, int]:
    """Loads [n] int64 of customers, all at least 1, and a capacity, that the same routes keep within.

    Demands of 0 weigh 1 where all others are multiplied by more than there are of them. Of the capacity no
    more counts than all demands together.
    """
    demand = deliveries.demand
    capacity = min(int(deliveries.capacity), int(demand.sum()))
    others = np.delete(demand, deliveries.depot)
    divisor = max(int(np.gcd.reduce(others)) if len(others) else 1, 1)
    empty = int((others == 0).sum())
    load = demand // divisor * (empty + 1)
    load[demand == 0] = 1
    load[deliveries.depot] = 0
    return load, capacity // divisor * (empty + 1) + empty


def coarse_for(n: int, width: int, capacity: int) -> int:
    """In parts of how much loads are counted beside times, rounded down: all routes that fit still do."""
    most = max(TABLE // (n << width), 2) - 1
    return max(-(-(capacity + 1) // (most + 1)), 1)


@dataclass(frozen=True, eq=False)
class Hours:
    """Windows [n] of beginnings of services; a way between customers takes at least 1 unit of time.

    times   units that stand for one of the deliveries
    """

    metric: Metric
    times: int
    opens: np.ndarray
    closes: np.ndarray
    service: np.ndarray

    def way(self, i: np.ndarray, j: np.ndarray, least: int = 1) -> np.ndarray:
        """[...] int64, from the beginning of the service of i to j."""
        return np.maximum((self.service[i] + self.metric.between(i, j)) * self.times, least)

    def backwards(self, depot: int) -> "Hours":
        """Those of the same routes driven backwards in time from when the depot closes: a service begins when
        it ends.
        """
        ends, spent = int(self.closes[depot]), self.service * self.times
        opens, closes = ends - self.closes - spent, ends - self.opens - spent
        return Hours(self.metric, self.times, opens, closes, self.service)

    def left(self, depot: int, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """[...] int64, what the time at i and the time backwards at j may add up to on a way from i to j."""
        both = self.service[i] + self.metric.between(i, j) + self.service[j]
        return int(self.closes[depot]) - both * self.times


def positive_times(metric: Metric, deliveries: Deliveries) -> Hours:
    """Times in which all ways take some, that the same routes keep within.

    Where some take none units are counted n + 1 fold, such ways take one, and windows end n later: so many
    ways a route has at most.
    """
    n, times, depot = metric.n, deliveries.times, deliveries.depot
    near = metric.neighbours(1)
    nearest = near[:, 0] if near.shape[1] else np.zeros(n, dtype=np.int64)
    still = (times.service == 0) & (metric.between(np.arange(n), nearest) == 0)
    still[depot] = False
    if not still.any():
        return Hours(metric, 1, times.opens, times.closes, times.service)
    return Hours(metric, n + 1, times.opens * (n + 1), times.closes * (n + 1) + n, times.service)


def fits_times(metric: Metric, deliveries: Deliveries) -> bool:
    """Whether there are times, and these are small enough for `positive_times`."""
    times = deliveries.times
    return times is not None and int(times.closes.max()) < (1 << 60) // (metric.n + 1)


class Paths:
    """Least costs of paths over edges i-j (int64, of any sign), customers' neighbours near [n, width].

    least   of all routes, FAR where there is none        reach   [capacity + 1, n] of paths to each customer
            with a load of at most so much
    """

    def __init__(
        self, near: np.ndarray, load: np.ndarray, capacity: int, depot: int, i: np.ndarray, j: np.ndarray,
        cost: np.ndarray,
    ) -> None:  # fmt: skip
        self.n, self.width = near.shape
        self.load, self.capacity, self.i, self.j, self.cost, self.depot = load, capacity, i, j, cost, depot
        self.out = np.full(self.n, FAR)
        first = (i == depot) | (j == depot)
        self.out[np.where(i == depot, j, i)[first]] = cost[first]
        self._arcs(near, ~first)
        self.best = np.full((self.n, 1 << self.width), FAR)  # of each memory and those inside it, so far
        self.reach = np.full((capacity + 1, self.n), FAR)
        self._waiting: dict[int, list[tuple[np.ndarray, np.ndarray]]] = {}
        self._run()
        self.closed = sums(self.reach[capacity], self.out)
        self.least = int(self.closed.min(initial=FAR))

    def through(self) -> np.ndarray:
        """[edges] at most the cost of every route that has the edge."""
        found = np.full(len(self.i), FAR)
        first = (self.i == self.depot) | (self.j == self.depot)
        found[first] = self.closed[np.where(self.i == self.depot, self.j, self.i)[first]]
        inner = np.flatnonzero(~first)
        backwards = self.reach[::-1]
        size = max(1, LOADS // (self.capacity + 1))
        for at in range(0, len(inner), size):
            part = inner[at : at + size]
            both = sums(self.reach[:, self.i[part]], backwards[:, self.j[part]]).min(axis=0)
            found[part] = np.where(both < FAR, both + self.cost[part], FAR)
        return found

    def _arcs(self, near: np.ndarray, inner: np.ndarray) -> None:
        """Edges between customers, both ways, by where they begin, and what becomes of memories on each."""
        ends = np.append(self.i[inner], self.j[inner]), np.append(self.j[inner], self.i[inner])
        order = np.argsort(ends[0], kind="stable")
        at, self.to = ends[0][order], ends[1][order]
        self.step = np.tile(self.cost[inner], 2)[order]
        self.begin = np.searchsorted(at, np.arange(self.n + 1))
        self.memories = Memories(near, at, self.to)

    def _run(self) -> None:
        starts = np.flatnonzero(self.out < FAR)
        self._put(starts, np.ones(len(starts), dtype=np.int64), self.out[starts], self.load[starts])
        for load in range(1, self.capacity + 1):
            self.reach[load] = self.reach[load - 1]
            if load in self._waiting:
                labels = self._kept(self._waiting.pop(load))
                np.minimum.at(self.reach[load], labels[0], labels[2])
                self._extend(load, *labels)

    def _put(self, at: np.ndarray, memory: np.ndarray, cost: np.ndarray, load: np.ndarray) -> None:
        """Labels that wait for their loads."""
        order = np.argsort(load, kind="stable")
        state, cost, load = ((at << self.width) | memory)[order], cost[order], load[order]
        cuts = np.flatnonzero(np.diff(load)) + 1
        for states, costs, each in zip(np.split(state, cuts), np.split(cost, cuts), np.split(load, cuts)):
            if len(each) and each[0] <= self.capacity:
                self._waiting.setdefault(int(each[0]), []).append((states, costs))

    def _kept(
        self, waiting: list[tuple[np.ndarray, np.ndarray]]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Customers, memories and costs of the labels of a load that none is better than."""
        state, cost = (np.concatenate(each) for each in zip(*waiting))
        order = np.lexsort((cost, state))
        state, cost = state[order], cost[order]
        first = np.append(True, state[1:] != state[:-1])
        state, cost = state[first], cost[first]
        flat = self.best.reshape(-1)
        new = cost < flat[state]
        state, cost = state[new], cost[new]
        flat[state] = cost
        rows = sorted_set(state >> self.width)
        self.best[rows] = _inside(self.best[rows], self.width)
        new = cost == flat[state]
        state, cost = state[new], cost[new]
        return state >> self.width, state & ((1 << self.width) - 1), cost

    def _extend(self, load: int, at: np.ndarray, memory: np.ndarray, cost: np.ndarray) -> None:
        """One customer more."""
        label, arc = arcs_from(self.begin, at)
        to, old = self.to[arc], memory[label]
        fits = ((old & self.memories.known[arc]) == 0) & (load + self.load[to] <= self.capacity)
        arc, to, label = arc[fits], to[fits], label[fits]
        new = self.memories.after(arc, memory[label])
        longer = cost[label] + self.step[arc]
        better = longer < self.best[to, new]
        self._put(to[better], new[better], longer[better], load + self.load[to[better]])


class Memories:
    """What becomes of memories on arcs at-to, of customers whose neighbours are near [n, width].

    known   [arcs] int32, the bit of `to` in a memory at `at`, 0: it is none of the neighbours
    """

    def __init__(self, near: np.ndarray, at: np.ndarray, to: np.ndarray) -> None:
        n, self.width = near.shape
        bit = np.zeros((n, n), dtype=np.int32)  # of a customer (column) in another's memory (row)
        bit[np.arange(n)[:, None], near] = 1 << np.arange(self.width)
        self.known = bit[at, to]
        self._kept = bit[to[:, None], near[at]]  # [arcs, width]

    def after(self, arc: np.ndarray, memory: np.ndarray) -> np.ndarray:
        """[k] int64 memories at the ends of arcs [k], of those at their beginnings."""
        new = np.ones(len(arc), dtype=np.int64)
        for place in range(self.width):
            new |= np.where(memory >> place & 1, self._kept[arc, place], 0)
        return new


def arcs_from(begin: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(place in `at`, arc) of all arcs that begin at customers `at`; c has begin[c] to begin[c + 1]."""
    count = begin[at + 1] - begin[at]
    place = np.repeat(np.arange(len(at)), count)
    return place, np.arange(len(place)) - np.repeat(np.cumsum(count) - count - begin[at], count)


def _inside(best: np.ndarray, width: int) -> np.ndarray:
    """[rows, 2^width] the least over all memories inside each."""
    for place in range(width):
        halves = best.reshape(len(best), 1 << (width - place - 1), 2, 1 << place)
        np.minimum(halves[:, :, 1], halves[:, :, 0], out=halves[:, :, 1])
    return best


def sums(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a + b, FAR where one of them is."""
    return np.where((a >= FAR) | (b >= FAR), FAR, np.where(a >= FAR, 0, a) + np.where(b >= FAR, 0, b))
