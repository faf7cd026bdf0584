"""Numbers that are known beforehand of each step of time, of those that are forecast, too: holidays, planned
outages, forecasts of the weather.

Networks and regressions read them at the steps of the window and at the steps of the horizon (windows.py).
They are measured in deviations of the training part, each column over all nodes alike: what is known of a
node can be a plan, which says nothing before it first takes place.
"""

from dataclasses import dataclass

import numpy as np

from app.comm.group import Group
from app.errors import GraphError
from app.gnn.forecast.series import FARTHEST, SeriesScale

NO_COLUMNS = (0, 0)
KEYS = ("graph.covariates", "graph.shared_covariates")


@dataclass(frozen=True, eq=False)
class Covariates:
    """What is known beforehand.

    own      [n_own, S, a] float32 of own nodes, zero on padding; S steps, of which the first ones are those
             of the series
    shared   [S', b] float32, of all nodes alike, the same on all ranks
    names    what messages call the two: a file, or an argument
    """

    own: np.ndarray
    shared: np.ndarray
    names: tuple[str, str] = KEYS

    @property
    def counts(self) -> tuple[int, int]:
        """(a, b)."""
        return self.own.shape[2], self.shared.shape[1]

    def reaching(self, steps: int, horizon: int) -> "Covariates":
        """Those as far as what is forecast, which are read. Raises GraphError where they do not reach."""
        for name, columns, found in zip(self.names, self.counts, (self.own.shape[1], len(self.shared))):
            if columns:
                check_reach(name, found, steps, horizon)
        return self.between(0, steps + horizon)

    def between(self, begin: int, end: int) -> "Covariates":
        """Those of the steps begin .. end-1."""
        return Covariates(np.ascontiguousarray(self.own[:, begin:end]), self.shared[begin:end], self.names)


def check_reach(name: str, found: int, steps: int, horizon: int) -> None:
    """Refuse covariates of too few steps. Raises GraphError."""
    if found < steps + horizon:
        right = f"at least {steps + horizon} would be right"
        reason = f"the {steps} of the series and forecast.horizon = {horizon}"
        raise GraphError(f"{name}: has {found} steps of time; {right}: {reason}")


def scale_of(group: Group, given: Covariates, steps: int, n_real: int) -> SeriesScale:
    """[1, a + b] what columns are measured in: over the first steps. Ranks: all call; the same on all."""
    own = SeriesScale.of(group, given.own, steps, False, n_real)
    shared = SeriesScale.of(group, given.shared[None], steps, True, 1)
    return SeriesScale(
        np.concatenate([own.mean, shared.mean], axis=1),
        np.concatenate([own.deviation, shared.deviation], axis=1),
    )


def small_parts(given: Covariates, scale: SeriesScale) -> tuple[np.ndarray, np.ndarray]:
    """Both about 0: [n_own, S, a] and [S', b] float32."""
    a = given.counts[0]
    own, shared = (
        SeriesScale(scale.mean[:, part], scale.deviation[:, part]) for part in (slice(a), slice(a, None))
    )
    return own.small(given.own), shared.small(given.shared[None])[0]


def far_and_still(group: Group, own: np.ndarray, shared: np.ndarray, first: int) -> tuple[int, int]:
    """Of both about 0 how many numbers are FARTHEST away, and how many columns are 0 in all of the first
    steps, as those are that have one value there. Ranks: all call; the same on all."""
    found = [np.count_nonzero(np.abs(own) >= FARTHEST), *np.count_nonzero(own[:, :first], axis=(0, 1))]
    far, *moves = group.sum_integers(np.array(found, dtype=np.int64)).tolist()
    moves += np.count_nonzero(shared[:first], axis=0).tolist()
    return far + int(np.count_nonzero(np.abs(shared) >= FARTHEST)), moves.count(0)


def ahead_columns(horizon: int, walks: int, counts: tuple[int, int]) -> int:
    """Columns of the steps of the horizon that networks read; walks: random walks of a node's row."""
    return horizon * step_columns(walks, counts)


def step_columns(walks: int, counts: tuple[int, int]) -> int:
    """Columns of one step of time that networks read: those of a node, their walks, those of all."""
    return counts[0] * (1 + walks) + counts[1]
