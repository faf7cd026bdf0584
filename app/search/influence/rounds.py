"""Rounds of sampling: collections of reverse reachable sets, each twice as large, until chance leaves little.

In a round seeds are chosen by one collection, greedily. What a new one says of them is below their spread,
what the first says of all seeds is above the largest spread, with the probability that is asked for: of 1
- delta one half is for all bounds above together, one half for all below, each divided by the rounds that
there can be (OPIM-C, Tang et al. 2018, Algorithm 2; collections are not added to but drawn anew, so that
those that judge take no room).

How many sets fit is known before the first: by the mean size of some others.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.bounds.certificate import BadCertificate
from app.bounds.influence.concentration import at_least
from app.errors import CaseError
from app.proofs.kinds import InfluenceProof
from app.search.influence.collection import CollectionTools
from app.toolbox import Bounds, never

FIRST = 1 << 12  # sets of the first collection
SMALLER = (1 << 11, 1 << 10, 1 << 9, 1 << 8)  # of the only one, where a time limit has no room for that
ROUND_COST = 4  # times what its sets take alone that a round does, about
PROBED, BEGUN = 256, 16  # sets whose sizes tell of others; and how many of them come first
JUDGES = 4  # sets that judge an answer, to one that it is chosen by: they take no room, and less time
ENTRY_BYTES, SET_BYTES = 66, 100  # that a collection takes at its fullest, for each node of a set; each set

Sets = tuple[np.ndarray, np.ndarray]


class Alone:
    """Sets that one rank makes by itself; a solve deals them (app/solver/sampled.py)."""

    def __init__(self, tools: Any) -> None:
        self.sampler = tools.sampler

    def sizes(self, key: int, count: int) -> np.ndarray:
        """[count] int64, of the first sets of a key."""
        return self.sampler.sizes(key, 0, count)

    def sets(self, key: int, count: int) -> Sets:
        """Sizes and nodes of these sets."""
        return self.sampler.sets(key, 0, count)

    def hits(self, key: int, count: int, seeds: np.ndarray) -> int:
        """How many of them seeds [n] bool hit."""
        return self.sampler.hits(key, 0, count, seeds)

    def worlds(self, key: int, count: int, seeds: np.ndarray) -> np.ndarray:
        """[count] int64, nodes that seeds [n] bool make active in the first worlds of a key."""
        return self.sampler.worlds(key, 0, count, np.flatnonzero(seeds))


@dataclass(frozen=True)
class Round:
    """What a round has found: seeds [n] bool, what their spread is at least, the largest one at most, and
    what that would be at most if no seeds hit more sets of this collection than they.
    """

    number: int
    sets: int
    seeds: np.ndarray
    lower: float
    upper: float
    if_best: float

    @property
    def gap(self) -> float:
        """How far from the largest spread theirs may be, as a part of that."""
        return gap_between(self.lower, self.upper)

    @property
    def noise(self) -> float:
        """What of that sampling alone leaves: better bounds of this collection gain no more."""
        return gap_between(self.lower, self.if_best)


def gap_between(lower: float, upper: float) -> float:
    """How far a spread of at least so much may be from one of at most so much, as a part of that."""
    return max(1.0 - lower / upper, 0.0) if upper else 0.0


class Rounds:
    """The rounds of one question.

    count    that there can be, by influence.sets      delta   of each of their bounds
    upper    the least bound above of all rounds       last    the collection of the last one
    judging  s that its judges took, by this rank's clock
    """

    def __init__(self, tools: Any, makes: Any = None) -> None:
        self.tools, self.makes = tools, Alone(tools) if makes is None else makes
        most = tools.graph.n if tools.certain else tools.asked.sets
        self._most = most
        self._begin(most if tools.certain else min(FIRST, most))
        self.upper = float(tools.graph.n)
        self.last: CollectionTools | None = None
        self.judging = 0.0
        self.each = 0.0  # s, of one of the sets that tell of others, by this rank's clock

    def _begin(self, first: int, last: int = 0) -> None:
        """Collections from `first` sets on, up to `last` (0: as many as there can be)."""
        self.sizes = [first]
        while self.sizes[-1] * 2 <= (last or self._most) and not self.tools.certain:
            self.sizes.append(self.sizes[-1] * 2)
        delta = self.tools.asked.delta
        self.delta, self.final_delta = delta / (2 * len(self.sizes)), delta / (2 * (len(self.sizes) + 1))
        self.fits = len(self.sizes)  # rounds whose collections fit

    def only(self, sets: int) -> None:
        """One collection, smaller than the first would be: for more there is no time.

        That is decided before a set of it is drawn, so that bounds hold as for any other number.
        """
        self._begin(sets, sets)

    def refuse_other(self, number: int, sets: int) -> None:
        """Raises BadCertificate where no round has such a collection."""
        if number == 0 and sets in SMALLER and sets < self.sizes[0] and not self.tools.certain:
            return self.only(sets)
        if not 0 <= number < len(self.sizes) or self.sizes[number] != sets:
            raise BadCertificate(f"a collection of {sets} sets is none of influence.sets = {max(self.sizes)}")

    def measure(self, late: Callable[[], bool] = never) -> None:
        """How many of the collections fit a rank. Raises CaseError where the first does not.

        late   whether no more sets are to be drawn for that; the same on all ranks
        """
        each, limit = ENTRY_BYTES * self._mean_size(late) + SET_BYTES, self.tools.instance.most_bytes
        self.fits = sum(each * size <= limit for size in self.sizes)
        if not self.fits:
            need = math.ceil(each * self.sizes[0] / 1e6)
            found = f"{self.sizes[0]} reverse reachable sets take about {need} MB on a rank"
            right = f"memory.whole_graph_mb = {need}, or smaller probabilities, would be right"
            raise CaseError(f"{self.tools.graph.name}: {found}; {right}")

    def _mean_size(self, late: Callable[[], bool]) -> float:
        """Nodes of a set: of some, twice as many each time, until these alone take more than there is."""
        tools, count, used = self.tools, 0, 0
        probed, key = self.sizes[0] if tools.certain else PROBED, tools.judges(len(self.sizes) + 1)
        while count < probed and ENTRY_BYTES * used <= tools.instance.most_bytes and not (count and late()):
            count, begun = min(max(2 * count, BEGUN), probed), time.perf_counter()
            used = int(self.makes.sizes(key, count).sum())
            self.each = (time.perf_counter() - begun) / count
        return used / max(count, 1)

    def make(self, number: int) -> Round:
        """A collection, seeds, and what is known of them."""
        tools, size = self.tools, self.sizes[number]
        self.last = None  # room for the next
        self.last = CollectionTools(tools, number, *self.makes.sets(tools.key(number), size))
        seeds = tools.filled(self.last.lift(self.last.start()))
        begun = time.perf_counter()
        lower = self.lower(tools.judges(number), size, seeds, self.final_delta)
        self.judging = time.perf_counter() - begun
        upper = tools.upper(self.last.greedy_bound(), size, self.delta)
        self.upper = min(self.upper, upper)
        if_best = tools.upper(self.last.value(seeds), size, self.delta)
        return Round(number, size, seeds, lower, self.upper, if_best)

    def lower(self, key: int, sets: int, seeds: np.ndarray, delta: float) -> float:
        """The spread of seeds is no less, but with probability delta; what is certain of it without any."""
        tools, sure = self.tools, float(np.count_nonzero(seeds))
        hits = self.makes.hits(key, sets, seeds)
        return float(hits) if tools.certain else max(at_least(hits, sets, tools.graph.n, delta), sure)

    def judge(self, seeds: np.ndarray, chosen_by: int = 0) -> tuple[float, int]:
        """The same of an answer, however it was found, by sets that nothing has seen; and their number.

        chosen_by   sets of the collection that has told of it; 0: the last, or the first of all
        """
        tools = self.tools
        sets = chosen_by or (self.sizes[0] if self.last is None else self.last.sets)
        sets *= 1 if tools.certain else JUDGES
        return self.lower(tools.judges(len(self.sizes)), sets, seeds, self.final_delta), sets


class SampledBounds(Bounds):
    """Bounds of all seeds by rounds of this rank's own."""

    def __init__(self, tools: Any) -> None:
        self.tools, self.rounds = tools, Rounds(tools)
        self.value, self.method = 0, ""
        self._proof: InfluenceProof | None = None
        self._next = 0

    def improve(self, seconds: float, best: int, solution: np.ndarray | None = None) -> bool:
        """Rounds for about so long; False when there are no more, or one is good enough."""
        tools, rounds, end = self.tools, self.rounds, time.perf_counter() + seconds
        if self._next == 0:
            rounds.measure()
        while self._next < rounds.fits:
            begun = time.perf_counter()
            made = rounds.make(self._next)
            self._take(made)
            self._next += 1
            if made.noise <= tools.asked.epsilon:
                return False
            now = time.perf_counter()
            if now + 2 * (now - begun) > end:
                return self._next < rounds.fits
        return False

    def _take(self, made: Round) -> None:
        """The bound of a round, where it is the least."""
        value, last = self.tools.in_worlds(made.upper), self.rounds.last
        if not self.method or value < self.value:
            self.value, self.method = value, "reverse reachable sets"
            self._proof = InfluenceProof(last.number, last.sets, last.greedy_prices(), True)

    def proof(self) -> InfluenceProof | None:
        """The collection of the least bound, and prices of its sets."""
        return self._proof
