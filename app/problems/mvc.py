"""Minimum vertex cover: the fewest nodes that touch every edge (RL4GO section 4)."""

from typing import Any, ClassVar

from app.elementary import log
from app.problems.problem import FIXED_POINT, Totals

Array = Any


class MinimumVertexCover:
    """State: the residual graph without the chosen nodes. A candidate has at least one live edge.

    Reward     -1 for each chosen node (RL4GO section 4.1), so that a return is minus the cover still to pay
    Shaping    "caro_wei": + Phi(s') - Phi(s) with Phi = -(alive - sum_v 1/(1+d_v)). Caro and Wei: an
               independent set of at least sum 1/(1+d_v) nodes exists, so Phi estimates minus what is left to
               pay. A potential leaves the optimal policy unchanged (Ng et al. 1999), and takes the constant
               part out of Q, in which one wrong choice would drown.
    """

    name = "mvc"
    sense = "minimise"
    feature_counts: ClassVar = {"paper": 1, "scale_free": 7}

    def features(self, kind: str, xp: Any, degree_own: Array, alive_own: Array, mean_own: Array) -> Array:
        """Node features [rows, F].

        paper        x_v = 1 for chosen nodes (eq. 1); the caller masks padding rows
        scale_free   1, log(1 + d/m), r = min(m/d, 8), r^2/4, [d=1], [d=2], 1/m; zero on nodes without edges
        degree_own   [rows, 1] live degrees    mean_own [rows or 1, 1] m, the state's mean degree
        """
        if kind == "paper":
            return 1 - alive_own
        present = degree_own > 0
        d = xp.maximum(degree_own, 1)
        ratio = xp.minimum(mean_own / d, 8)
        x = xp.empty((degree_own.shape[0], 7), dtype=degree_own.dtype)
        x[:, 0:1] = 1
        x[:, 1:2] = log(xp, 1 + d / mean_own)
        x[:, 2:3] = ratio
        x[:, 3:4] = ratio * ratio * 0.25
        x[:, 4:5] = d == 1
        x[:, 5:6] = d == 2
        x[:, 6:7] = 1 / mean_own
        x *= present
        return x

    def potential(self, totals: Totals) -> float:
        """Minus the Caro-Wei estimate of the nodes still to choose."""
        return totals.caro_wei / FIXED_POINT - totals.alive

    def reward(self, before: Totals, after: Totals, chosen: int, shaping: str) -> float:
        """-chosen, plus the gain of potential when shaped."""
        gain = self.potential(after) - self.potential(before) if shaping == "caro_wei" else 0.0
        return gain - chosen

    def done(self, totals: Totals) -> bool:
        """True when no edge is left."""
        return totals.degree_sum == 0
