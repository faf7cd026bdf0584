"""Lower bounds on feedback vertex sets that improve in slices of time: degrees and cycles apart,
inequalities, cases.
"""

import time
from collections.abc import Iterator

import numpy as np

from app.bounds import highs
from app.bounds.fvs.apart import degree_bound, packing_bound
from app.bounds.fvs.cases import PartSearch
from app.bounds.fvs.witness import FeedbackBound, PartBound
from app.graphs.multigraph import Multigraph
from app.toolbox import Bounds

ENTRY_SECONDS = 5e-7  # of the first call, and of its check, for each node and entry
PACK_SECONDS = 2e-5  # of a packing
CASE_SECONDS = 2e-5  # of the check of a case, and for each multiplier's entry
ROUND_SECONDS = 4e-5  # of a round of inequalities, likewise
PACK_SHARE, ROUND_SHARE = 0.1, 0.02  # of the time: a packing, or a round, that takes more is not begun
MOST_NODES, MOST_ENTRIES = 20_000, 200_000  # of a part that a program is made of
NEAR = 0.1
RECENT = 0.8  # of the longest step, that it counts for less after each later one
DEGREES, CYCLES, PROGRAM, CASES = "degrees", "disjoint cycles", "subgraph inequalities", "branch and cut"


class _Part:
    """One connected part of what is left: its best proof, and the search for a better one, once it has
    begun.
    """

    def __init__(self, core: Multigraph, nodes: np.ndarray) -> None:
        self.core, self.nodes = core, nodes
        self.lower, self.proof, self.method = 0, None, DEGREES
        self.forest = len(core.indices) // 2 + int(core.twice.sum()) // 2 < core.n
        self.search: PartSearch | None = None
        self.steps: Iterator[None] | None = None
        self.spent, self.ended = 0.0, False
        self.offered: np.ndarray | None = None

    @property
    def bound(self) -> int:
        """The best there is."""
        return self.lower if self.search is None else max(self.lower, self.search.lower)

    def take(self, lower: int, proof: PartBound, method: str) -> None:
        """A bound, if it is the best."""
        if lower > self.lower or self.proof is None:
            self.lower, self.proof, self.method = lower, proof, method

    def told(self) -> tuple[int, PartBound]:
        """The best bound that there is a proof of."""
        own = None if self.search is None or self.search.lower <= self.lower else self.search.proof()
        return (self.lower, self.proof) if own is None else (self.search.lower, own)


class FeedbackBounds(Bounds):
    """No feedback vertex set of a core weighs less than `value`.

    First what degrees and disjoint cycles tell of each connected part. Parts that are not too large get a
    linear program each, and are then divided into cases, by turns. Sets that the work comes upon are told by
    `pieces`.
    """

    near = NEAR
    leads = False

    def __init__(self, core: Multigraph, compiled: bool = True) -> None:
        self._compiled = compiled
        self._core, self._end, self._room = core, np.inf, np.inf
        self._parts: list[_Part] = []
        self._method, self.done = "", False
        self._longest = 0.0
        self._known = int(core.weights.sum())
        self._solution: np.ndarray | None = None
        self._pieces: tuple[int, np.ndarray] | None = None
        self._steps = self._work()

    @property
    def value(self) -> int:
        """The best bound so far, 0 before the first call."""
        return sum(part.bound for part in self._parts)

    @property
    def method(self) -> str:
        """How it was found; "": no bound yet."""
        if not self._method:
            return ""
        searches = [part.search for part in self._parts if part.search is not None]
        if any(search.divided and search.cases > 1 for search in searches):
            return CASES
        if any(part.search is not None and part.search.lower > part.lower for part in self._parts):
            return PROGRAM
        return CYCLES if any(part.method == CYCLES for part in self._parts) else DEGREES

    @property
    def least_seconds(self) -> float:
        """An estimate of the first call, and of the next step."""
        if not self._method:
            return ENTRY_SECONDS * (self._core.n + len(self._core.indices))
        return self._longest

    @property
    def check_seconds(self) -> float:
        """An estimate of what a check of the proof takes."""
        cases = sum(part.search.cases for part in self._parts if part.search is not None)
        return ENTRY_SECONDS * (self._core.n + len(self._core.indices)) + 10 * CASE_SECONDS * cases

    @property
    def closing(self) -> bool:
        """Whether the bound is near."""
        return bool(self._method) and not self.done and self._known - self.value <= NEAR * self._known + 1

    @property
    def gaining(self) -> bool:
        """Whether there is more to try."""
        return bool(self._method) and not self.done

    def expect(self, seconds: float) -> None:
        """The time limit of the run."""
        self._end = time.perf_counter() + seconds

    def until(self, clock: float) -> None:
        """When all has to be over."""
        self._end = clock

    def allow(self, seconds: float) -> None:
        """What all calls may take."""
        self._room = seconds

    def improve(self, seconds: float, best: int, solution: np.ndarray | None = None) -> bool:
        """Work for about so long, knowing a set of weight `best`; True while there is more to try."""
        end = min(time.perf_counter() + seconds, self._end)
        self._known = min(self._known, best)
        if solution is not None:
            self._solution = solution.astype(bool)
            for part in self._parts:
                self._offer(part)
        while not self.done and self.value < self._known:
            begun = time.perf_counter()
            self.done = next(self._steps, True) is True
            now = time.perf_counter()
            self._longest = max(now - begun, RECENT * self._longest)
            if now >= end:
                return not self.done and self.value < self._known
        return False

    def optimum(self) -> np.ndarray | None:
        """[n] bool, a set as light as `value`, where one was put together here."""
        found = self._together()
        return found[1] if found is not None and found[0] == self.value else None

    def pieces(self) -> np.ndarray | None:
        """[n] bool, a lighter set than the caller's; None: there is none."""
        found = self._together()
        return found[1] if found is not None and found[0] < self._known else None

    def proof(self) -> FeedbackBound:
        """What proves `value`, or as much of it as has been kept."""
        told = [part.told() for part in self._parts]
        lower = sum(each for each, _ in told)
        parts = [proof for _, proof in told if proof is not None]
        return FeedbackBound(lower, self.method, parts, lower == self.value)

    # ---- the work ------------------------------------------------------------------------------------------

    def _work(self) -> Iterator[None]:
        self._parts = [_Part(inner, nodes) for inner, nodes in self._core.split(self._compiled)]
        cyclic = [part for part in self._parts if not part.forest]
        for part in cyclic:
            part.take(*degree_bound(part.core, part.nodes), DEGREES)
        self._method = DEGREES
        yield
        for part in cyclic:
            size = part.core.n + len(part.core.indices)
            if PACK_SECONDS * size < PACK_SHARE * self._left():
                part.take(*packing_bound(part.core, part.nodes), CYCLES)
                yield
        if highs.available():
            yield from self._by_turns()

    def _left(self) -> float:
        """Seconds that there are for all."""
        return min(self._end - time.perf_counter(), self._room)

    def _by_turns(self) -> Iterator[None]:
        """The programs and the cases of all parts, the part that has had the least time first."""
        for part in self._parts:
            entries = len(part.core.indices)
            fits = part.core.n <= MOST_NODES and entries <= MOST_ENTRIES
            if (
                not part.forest
                and fits
                and ROUND_SECONDS * (part.core.n + entries) < ROUND_SHARE * self._left()
            ):
                part.search = PartSearch(part.core, part.nodes)
                part.search.until(self._end)
                self._offer(part)
                part.steps = part.search.run()
        while open_ := [part for part in self._parts if part.steps is not None and not part.ended]:
            part = min(open_, key=lambda each: each.spent)
            begun = time.perf_counter()
            part.ended = next(part.steps, True) is True
            part.spent += time.perf_counter() - begun
            yield

    def _offer(self, part: _Part) -> None:
        """The caller's best set to the search of a part."""
        if part.search is not None and self._solution is not None and part.offered is not self._solution:
            part.offered = self._solution
            part.search.offer(self._solution[part.nodes])

    def _together(self) -> tuple[int, np.ndarray] | None:
        """The best sets known of all parts, and what they weigh; None: of a part none is known."""
        if not self._method:
            return None
        chosen = np.zeros(self._core.n, dtype=bool)
        for part in self._parts:
            if part.search is not None:
                chosen[part.nodes] = part.search.best
            elif self._solution is not None and not part.forest:
                chosen[part.nodes] = self._solution[part.nodes]
            elif not part.forest:
                return None
        value = int(self._core.weights[chosen].sum())
        if self._pieces is None or value < self._pieces[0]:
            self._pieces = value, chosen
        return self._pieces
