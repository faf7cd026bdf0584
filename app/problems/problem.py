"""Problem: what a learner and a solver need to know of an optimisation problem over nodes."""

from typing import Any, NamedTuple, Protocol

Array = Any
FIXED_POINT = 1 << 30  # one, in the fixed point of Totals.caro_wei


class Totals(NamedTuple):
    """Exact integers that describe a state, the same on all ranks.

    alive        nodes with at least one live edge
    degree_sum   sum of live degrees: twice the live edges
    caro_wei     sum over alive nodes of floor(2^30 / (1 + degree)), the Caro-Wei sum in fixed point
    """

    alive: int
    degree_sum: int
    caro_wei: int

    def mean_degree(self) -> float:
        """Mean degree of the alive nodes, kept to four leading binary digits.

        Coarse on purpose: it enters the features of every node, and a value that stays the same over many
        steps leaves the features of untouched nodes as they were.
        """
        if self.alive == 0:
            return 1.0
        value, exponent = self.degree_sum / self.alive, 0
        while value >= 16:
            value, exponent = value / 2, exponent + 1
        while value < 8:
            value, exponent = value * 2, exponent - 1
        return float(round(value) * 2.0**exponent)


class Problem(Protocol):
    """One file per problem; app/problems/table.py maps names to classes."""

    name: str
    feature_counts: dict[str, int]

    def features(self, kind: str, xp: Any, degree_own: Array, alive_own: Array, mean_own: Array) -> Array:
        """[rows, F] node features of states."""
        ...

    def reward(self, before: Totals, after: Totals, chosen: int, shaping: str) -> float:
        """What a transition that chose `chosen` nodes earns."""
        ...

    def done(self, totals: Totals) -> bool:
        """True when the solution is complete."""
        ...
