"""Problems whose states are residual graphs: a choice removes nodes, and what is left is all that matters.

A node's code is 2 + its live degree; 0 without live edges, 1 removed (where removed nodes have an embedding).
"""

from typing import Any, ClassVar

import numpy as np

from app.numerics.elementary import log
from app.problems.problem import FIRST_ALIVE, FIXED_POINT, Totals, room_for_features
from app.problems.sets import SetProblem
from app.search.cover.tools import CoverTools
from app.toolbox import Instance

Array = Any


class ResidualProblem(SetProblem):
    """Codes and features that problems on residual graphs share."""

    dynamics = "residual"
    ordered = False
    first_candidate = 3
    degree_codes = sized_codes = True
    own_degree = False
    mirrors = False
    lowest = 1  # degree of nodes that something can be chosen for
    totals: type = Totals
    feature_counts: ClassVar = {"paper": 1, "scale_free": 7}

    def worth(self, degree: np.ndarray) -> np.ndarray:
        """[k] int64, floor(2^30 / (1 + degree)) of nodes with live edges, 0 of others."""
        return np.where(degree > 0, FIXED_POINT // (1 + degree.astype(np.int64)), 0)

    def shares(self, mark: np.ndarray, field: np.ndarray) -> np.ndarray:
        """Alive nodes, their degrees, their worth."""
        return np.array([np.count_nonzero(field), field.sum(), self.worth(field).sum()], dtype=np.int64)

    def node_shares(self, mark: np.ndarray, field: np.ndarray) -> list[np.ndarray]:
        """`shares` of each node by itself, T arrays [k]."""
        return [field > 0, field, self.worth(field)]

    def code(self, xp: Any, mark: Array, field: Array, real: Array | None = None) -> Array:
        """2 + degree; with `real` also of nodes without live edges, and 1 for removed nodes."""
        if real is not None:
            return (real * (1 + mark * (1 + field))).astype(np.int32)
        return ((field > 0) * (FIRST_ALIVE + field)).astype(np.int32)

    def plain(self, code: np.ndarray) -> np.ndarray:
        """The largest degree first; where neighbours go too, the smallest."""
        return -code if self.closed else code

    def neighbours(self, code: np.ndarray) -> np.ndarray:
        """The live ones."""
        return np.maximum(code - FIRST_ALIVE, 0)

    def entries(self, max_degree: int) -> int:
        """Codes 0, 1, and one for each degree."""
        return FIRST_ALIVE + max_degree + 1

    def potential(self, totals: Totals) -> float:
        """Minus the Caro-Wei estimate of the nodes still to choose (see `worth`)."""
        return totals.caro_wei / FIXED_POINT - totals.alive

    def state(self, totals: Totals) -> tuple[float, ...]:
        """The mean degree."""
        return (totals.mean_degree(),)

    def features(self, kind: str, xp: Any, code: Array, state: Array) -> Array:
        """Node features [..., F].

        paper        x_v = 1 for chosen nodes (RL4GO eq. 1)
        scale_free   1, log(1 + d/m), r = min(m/d, 8), r^2/4, [d=k], [d=k+1], 1/m, k = `lowest`;
                     zero where d = 0
        code         [..., 1], 2 + the live degree d    state [..., 1] m, the state's mean degree
        """
        if kind == "paper":
            return (code < FIRST_ALIVE).astype(code.dtype)
        degree = xp.maximum(code - FIRST_ALIVE, 0)
        present = degree > 0
        d = xp.maximum(degree, 1)
        ratio = xp.minimum(state / d, 8)
        x = room_for_features(xp, code, state, 7)
        x[..., 0:1] = 1
        x[..., 1:2] = log(xp, 1 + d / state)
        x[..., 2:3] = ratio
        x[..., 3:4] = ratio * ratio * 0.25
        x[..., 4:5] = d == self.lowest
        x[..., 5:6] = d == self.lowest + 1
        x[..., 6:7] = 1 / state
        x *= present
        return x

    def done(self, totals: Totals) -> bool:
        """True when no edge is left."""
        return totals.degree_sum == 0

    def left(self, totals: Totals) -> tuple[int, str]:
        """Live edges."""
        return totals.degree_sum // 2, "edges"

    def toolbox(self, instance: Instance) -> CoverTools:
        """Reductions, local search and bounds of vertex covers."""
        return CoverTools(instance, self)
