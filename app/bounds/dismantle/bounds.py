"""Lower bounds on sets that dismantle a graph, improved in slices of time: packed trees, inequalities,
cases.
"""

import time
from collections.abc import Iterator

import numpy as np

from app.bounds import highs
from app.bounds.dismantle.cases import DismantleSearch
from app.bounds.dismantle.packing import Packing, degree_bound
from app.bounds.dismantle.witness import DismantleBound, PartBound
from app.bounds.fvs.bounds import CASE_SECONDS, CASES, ENTRY_SECONDS, FeedbackBounds
from app.graphs.sized import SizedGraph

FIRST_SECONDS = 2e-6  # of the first trees, for each node and entry
EDGE_SECONDS = 1e-5  # of a subgraph without small cycles, for each entry
PACK_SHARE = 0.15  # of the time, that trees of a part with a program are packed for
PACK_SECONDS = 5.0  # and no longer
MOST_NODES, MOST_ENTRIES = 20_000, 200_000  # of a part that a program is made of, and its nodes times sizes:
MOST_LONG = 12_000
ENOUGH = 8  # trees for each node of a part with a program
KNOWN = 2_000  # packed trees that it begins with
DEGREES, TREES, PROGRAM = "degrees", "packed trees", "tree inequalities"


class _Part:
    """One component of what is left that is too large: its packed trees, and the search for a better bound,
    once it has begun.
    """

    def __init__(self, core: SizedGraph, nodes: np.ndarray) -> None:
        self.core, self.nodes = core, nodes
        self.packing: Packing | None = None
        self.degrees: tuple[int, PartBound, tuple | None] = 0, None, None
        self.search: DismantleSearch | None = None
        self.steps: Iterator[None] | None = None
        self.spent, self.ended = 0.0, False
        self.forest = False  # of FeedbackBounds: no part that is needless
        self.offered: np.ndarray | None = None

    @property
    def small(self) -> bool:
        """Whether a program may be made of it."""
        core = self.core
        long = core.n * (core.most + 1)  # trees are long: more trees are better than a program of few
        return core.n <= MOST_NODES and len(core.indices) <= MOST_ENTRIES and long <= MOST_LONG

    @property
    def lower(self) -> int:
        """What packed trees, or degrees, prove."""
        return max(0 if self.packing is None else self.packing.lower, self.degrees[0])

    @property
    def bound(self) -> int:
        """The best there is."""
        return self.lower if self.search is None else max(self.lower, self.search.lower)

    def told(self) -> tuple[int, PartBound | None]:
        """The best bound that there is a proof of."""
        own = None if self.search is None or self.search.lower <= self.lower else self.search.proof()
        if own is not None:
            return self.search.lower, own
        if self.packing is None or self.degrees[0] > self.packing.lower:
            return self.lower, self.degrees[1]
        return self.lower, self.packing.proof


class DismantleBounds(FeedbackBounds):
    """No set that dismantles a core weighs less than `value`.

    First trees and cliques are packed in each component that is too large. Components that are not too large
    for one get a linear program each, and are then divided into cases, by turns; of the others trees are
    packed as long as there is time. Sets that the work comes upon are told by `pieces`.
    """

    @property
    def method(self) -> str:
        """How it was found; "": no bound yet."""
        searches = [part.search for part in self._parts if part.search is not None]
        if any(search.divided and search.cases > 1 for search in searches):
            return CASES
        if any(part.search is not None and part.search.lower > part.lower for part in self._parts):
            return PROGRAM
        return DEGREES if any(part.degrees[0] == part.lower > 0 for part in self._parts) else self._method

    @property
    def least_seconds(self) -> float:
        """An estimate of the first call, and of the next step."""
        if not self._method:
            return FIRST_SECONDS * (self._core.n + len(self._core.indices))
        return self._longest

    @property
    def check_seconds(self) -> float:
        """An estimate of what a check of the proof takes."""
        cases = sum(part.search.cases for part in self._parts if part.search is not None)
        entries = sum(len(part.packing.proof.above) for part in self._parts if part.packing is not None)
        size = self._core.n + len(self._core.indices) + entries
        return 2 * ENTRY_SECONDS * size + 10 * CASE_SECONDS * cases

    def proof(self) -> DismantleBound:
        """What proves `value`, or as much of it as has been kept."""
        told = [part.told() for part in self._parts]
        lower = sum(each for each, _ in told)
        parts = [proof for _, proof in told if proof is not None]
        return DismantleBound(lower, self.method, parts, lower == self.value)

    # ---- the work ------------------------------------------------------------------------------------------

    def _work(self) -> Iterator[None]:
        self._parts = [_Part(inner, nodes) for inner, nodes in self._core.split(self._compiled)]
        self._method = TREES
        solving = highs.available()
        for part in self._parts:
            if EDGE_SECONDS * len(part.core.indices) < PACK_SHARE * self._left():
                part.degrees = degree_bound(part.core, part.nodes)
                yield
            part.packing = Packing(part.core, part.nodes)
            begun, steps = time.perf_counter(), part.packing.work()
            most = min(PACK_SHARE * self._left() / len(self._parts), PACK_SECONDS)
            for _ in steps:
                yield
                enough = part.small and len(part.packing.rows) > ENOUGH * part.core.n
                if enough or time.perf_counter() - begun > most:
                    break
            if not (solving and part.small):
                part.steps = steps
        yield from self._by_turns()

    def _by_turns(self) -> Iterator[None]:
        """Programs and cases of small parts, packed trees of others; the part that has had the least time
        first.
        """
        for part in self._parts:
            if part.steps is None:
                part.search = DismantleSearch(
                    part.core, part.nodes, part.packing.used(KNOWN), part.degrees[2]
                )
                part.search.until(self._end)
                self._offer(part)
                part.steps = part.search.run()
        while open_ := [part for part in self._parts if not part.ended]:
            part = min(open_, key=lambda each: each.spent)
            begun = time.perf_counter()
            part.ended = next(part.steps, True) is True
            part.spent += time.perf_counter() - begun
            yield
