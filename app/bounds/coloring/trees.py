"""Exact searches of the parts of a graph, by turns: with one colour less than known, and with one too few."""

from collections import deque

from app.bounds.coloring.branch import ColouringSearch, needed_bytes
from app.bounds.coloring.parts import Colouring, Part

SLICE, PLAIN_SLICE = 1 << 18, 1 << 12  # work, with the kernel and without
MOST_NODES = 50_000  # of a part that is searched, since every branch looks at all
MOST_BYTES = 1e9  # of all searches


class Trees:
    """Of each part two searches: with `lower` colours, which raises the bound by one where it finds none, and
    with one less than is known, which proves that optimal. Where these are the same there is one.
    """

    def __init__(self, compiled: bool, most_bytes: float) -> None:
        self._compiled, self._most_bytes = compiled, min(most_bytes, MOST_BYTES)
        self._slice = SLICE if compiled else PLAIN_SLICE
        self._searches: dict[tuple[Part, int], ColouringSearch | None] = {}
        self._turns: deque[tuple[Part, int]] = deque()

    @property
    def done(self) -> bool:
        """Whether nothing is left to search."""
        return not self._turns

    def begin(self, parts: list[Part], lower: int, known: int) -> None:
        """What is wanted now; searches begun go on, in the order in which their turns come."""
        both = dict.fromkeys((part, lower) for part in parts)
        both |= dict.fromkeys((part, known - 1) for part in parts if part.upper >= known > lower + 1)
        kept = dict.fromkeys(turn for turn in self._turns if turn in both)
        taken, self._turns = 0, deque()
        for part, most in kept | both:
            taken += needed_bytes(part.graph, most)
            if part.graph.n <= MOST_NODES and taken <= self._most_bytes:
                self._turns.append((part, most))
        self._searches = {turn: self._searches.get(turn) for turn in self._turns}

    def step(self, colouring: Colouring) -> tuple[int, Part | None]:
        """A slice of the search whose turn it is; what is found goes into the colouring.

        returns   colours that are needed, 0: no news; and the part whose colouring is better, or None
        """
        part, most = turn = self._turns.popleft()
        search = self._searches[turn]
        if part.upper <= most:  # by the other search
            del self._searches[turn]
            return 0, None
        if search is None:
            search = ColouringSearch(part.graph, most, part.clique(self._compiled), self._compiled)
            self._searches[turn] = search
        if not search.run(search.work + self._slice):
            self._turns.append(turn)
            return 0, None
        del self._searches[turn]
        if search.colours is None:
            return most + 1, None
        colouring.take(part, search.colours)
        return 0, part
