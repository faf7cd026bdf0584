"""Linear autoregressions with ridge on the training windows: plain rules, and what networks add their part
to.

With rows v of what is read (windows.py), 0/1 weights w of rows whose targets are all known and differences y
of the targets from the last value, B = (V^T w V + ridge diag(V^T w V))^-1 V^T w Y (Hoerl and Kennard 1970,
with columns in their own units). The sums are float32 chains by row blocks within a batch, as gradients are,
and float64 over batches; the system is solved by operations of one element each, so that no library chooses
an order.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from app.gnn.forecast.steps import Steps
from app.gnn.forecast.windows import Batch, Windows

Array = Any


@dataclass(frozen=True, eq=False)
class Regression:
    """Weights [k, H * C] float32 by which differences from the last value follow from windows.

    own          of a node's own series, zeros in the columns of neighbours
    neighbours   of these too; None: the case has no hops
    """

    own: np.ndarray
    neighbours: np.ndarray | None

    @property
    def best(self) -> np.ndarray:
        """What networks add their part to."""
        return self.own if self.neighbours is None else self.neighbours


def regress(steps: Steps, windows: Windows, ends: np.ndarray, ridge: float) -> Regression:
    """The regressions on windows that end at some steps. Ranks: all call; the same bits on any number of
    them."""
    both = _sums(steps, windows, ends)
    k = len(both)
    square, right = both[:, :k], both[:, k:]
    count, own = windows.own_columns, np.zeros((k, windows.outputs))
    own[:count] = ridge_solution(square[:count, :count], right[:count], ridge)
    more = ridge_solution(square, right, ridge) if k > count else None
    return Regression(*(None if each is None else each.astype(np.float32) for each in (own, more)))


def _sums(steps: Steps, windows: Windows, ends: np.ndarray) -> np.ndarray:
    """[k, k + H C] float64, V^T w [V | Y]. Ranks: all call."""
    total = 0.0
    for piece in windows.pieces(ends):
        batch = windows.batch(piece)
        steps.begin(len(piece))
        total += np.array(steps.device.get(steps.sum(_roots(steps, batch))), dtype=np.float64)
    return total.reshape(-1, batch.linear.shape[1] + windows.outputs)


def _roots(steps: Steps, batch: Batch) -> Array:
    """[own roots, k * (k + H C)] the addends of V^T w [V | Y]."""
    xp, V = steps.device.xp, batch.linear
    weight = batch.known[:, :1].copy()
    for column in range(1, batch.known.shape[1]):
        weight *= batch.known[:, column : column + 1]
    D = xp.concatenate([V, batch.target - batch.last], axis=1) * weight
    return steps.gram_roots([V], xp.ascontiguousarray(D))


def ridge_solution(square: np.ndarray, right: np.ndarray, ridge: float) -> np.ndarray:
    """[k, m] float64, (S + ridge diag(S))^-1 R of a positive semidefinite S [k, k] and R [k, m].

    By Cholesky's factors, column after column, each taken from all behind it: L has factors in the columns
    before j, on and below the diagonal, and from j on what is left of S. A column that no row has anything
    in, or that others make up but for rounding, gets zeros.
    """
    k = len(square)
    L = square + np.diag(ridge * np.diag(square))
    least, used = 1e-7 * np.diag(L), np.zeros(k, dtype=bool)
    for j in range(k):
        used[j] = L[j, j] > least[j]
        L[j:, j] = L[j:, j] / np.sqrt(L[j, j]) if used[j] else 0
        below = L[j + 1 :, j].copy()
        L[j + 1 :, j + 1 :] -= below[:, None] * below
    X = right.astype(np.float64)
    for j in range(k):
        X[j] = X[j] / L[j, j] if used[j] else 0
        X[j + 1 :] -= L[j + 1 :, j : j + 1] * X[j]
    for j in range(k - 1, -1, -1):
        X[j] = X[j] / L[j, j] if used[j] else 0
        X[:j] -= L[j, :j, None] * X[j]
    return X
