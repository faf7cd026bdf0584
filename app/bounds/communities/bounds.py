"""Upper bounds on the value of communities that improve in slices of time, part by part of a core."""

import time

import numpy as np

from app.bounds.communities.part import PartWork
from app.bounds.communities.witness import PartBound
from app.graphs.quality import Quality
from app.toolbox import Bounds

POSITIVE = "positive pairs"
PAIR_BYTES = 200.0  # of the work on a part, for each pair, about
MOST_NODES = 1500  # of a part whose pairs are looked at
PAIR_SECONDS, SHARE = 2e-6, 0.15  # of the search for stars, for each pair; of a time limit, at most
ENTRY_SECONDS = 1e-7  # of the first call, for each node and entry
NEAR = 0.02


class CommunityBounds(Bounds):
    """No communities of a core are worth more than `value`, without constants.

    At first all pairs of positive worth are counted. Then the part with the largest gap is worked on, as long
    as that makes its bound better.

    parts   the proofs of those that were worked on
    """

    near = NEAR

    def __init__(self, core: Quality, most_bytes: float = np.inf, compiled: bool = True) -> None:
        """core: whole     most_bytes: what the work on one part may take, about"""
        self._core, self._most, self._compiled = core, most_bytes, compiled
        self.value, self.method = 0, ""
        self._limit = np.inf
        self._solution: np.ndarray | None = None
        self._works: dict[int, PartWork] = {}
        self._known: np.ndarray | None = None

    @property
    def least_seconds(self) -> float:
        """An estimate of the first call, and of one that looks for stars."""
        if not self.method:
            return ENTRY_SECONDS * (self._core.n + len(self._core.indices))
        part = self._next()
        return 0.0 if part is None else PAIR_SECONDS * float(self._sizes[part]) ** 2

    @property
    def gaining(self) -> bool:
        """Whether parts are open: their bounds may become much better."""
        return bool(self.method) and self._next() is not None

    @property
    def closing(self) -> bool:
        """Whether one part is open, whose bound is near."""
        return self.gaining and self._solution is not None and self._gap() <= NEAR * max(abs(self.value), 1)

    @property
    def parts(self) -> tuple[PartBound, ...]:
        """What proves the bound, besides pairs of positive worth elsewhere."""
        return tuple(self._works[i].bound for i in sorted(self._works))

    def improve(self, seconds: float, best: int, solution: np.ndarray | None = None) -> bool:
        """Work for about so long, knowing communities [n] worth `best`; True while there is more to try."""
        end = time.perf_counter() + seconds
        if not self.method:
            self._begin()
        if solution is not None and solution is not self._solution:
            self._solution, self._known = solution, self._values(solution)
        if self._known is None:
            self._known = np.zeros(len(self._uppers), dtype=np.int64)
        while self.value > best and (part := self._next()) is not None:
            if part not in self._works:
                label = (
                    np.arange(len(self._nodes[part]))
                    if self._solution is None
                    else self._solution[self._nodes[part]]
                )
                self._works[part] = PartWork(self._core, self._nodes[part], label)
            work = self._works[part]
            work.run(end, int(self._known[part]))
            if work.bound.upper < self._uppers[part]:
                self.value -= int(self._uppers[part]) - work.bound.upper
                self._uppers[part] = work.bound.upper
                self.method = work.method
            if time.perf_counter() >= end:
                return self.value > best and self._next() is not None
        return False

    def expect(self, seconds: float) -> None:
        """The time limit of the run: parts for which it is too short are left out."""
        self._limit = seconds

    # ---- parts ---------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        core, self.method = self._core, POSITIVE
        self._part = core.parts(self._compiled)
        count = int(self._part.max(initial=-1)) + 1
        order, ends = (
            np.argsort(self._part, kind="stable"),
            np.cumsum(np.bincount(self._part, minlength=count)),
        )
        self._nodes = np.split(order, ends[:-1]) if count else []
        self._sizes = np.diff(ends, prepend=0)
        worths = core.worths()
        self._uppers = self._summed(np.where(worths > 0, worths, 0), self._part[core.row_of()]) // 2
        self.value = int(self._uppers.sum())

    def _next(self) -> int | None:
        """The open part with the largest gap."""
        gaps = self._uppers - (0 if self._known is None else self._known)
        squares = self._sizes.astype(np.float64) ** 2
        late = PAIR_SECONDS * squares > SHARE * self._limit
        gaps[late | (self._sizes > MOST_NODES) | (PAIR_BYTES * squares > self._most)] = 0
        gaps[[i for i, work in self._works.items() if work.done]] = 0
        best = int(gaps.argmax()) if len(gaps) else 0
        return best if len(gaps) and gaps[best] > 0 else None

    def _gap(self) -> int:
        return self.value - int(self._known.sum())

    def _values(self, label: np.ndarray) -> np.ndarray:
        """[parts] int64, what pairs of each part add in communities [n]."""
        core, part = self._core, self._part
        rows = core.row_of()
        same = (label[rows] == label[core.indices]) & (part[rows] == part[core.indices])
        near = self._summed(core.weights[same], part[rows[same]]) // 2
        _, place = np.unique(np.stack([part, label]), axis=1, return_inverse=True)
        place = place.reshape(-1)
        total = np.zeros(int(place.max(initial=-1)) + 1, dtype=np.int64)
        np.add.at(total, place, core.size)
        of_part = np.zeros(len(total), dtype=np.int64)
        of_part[place] = part
        far = self._summed(total * total, of_part) - self._summed(core.size * core.size, part)
        return core.near * near - core.far * (far // 2)

    def _summed(self, values: np.ndarray, part: np.ndarray) -> np.ndarray:
        found = np.zeros(len(self._nodes), dtype=np.int64)
        np.add.at(found, part, values)
        return found
