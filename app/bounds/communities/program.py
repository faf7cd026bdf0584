"""The linear program over pairs of nodes, and its dual values, by a first-order method.

    maximise sum of c_uv x_uv, 0 <= x <= 1, stars (stars.py)

Any multipliers of stars prove a bound (witness.py), so that it is good at any time.

Source   Chambolle and Pock 2011, Algorithm 1; step sizes from each row and column: Pock and Chambolle 2011
         (alpha = 1); restarts from the average, with more stars: Applegate et al. 2021 (PDLP) restart where
         it pays, here always
"""

import numpy as np
import scipy.sparse as sp

from app.bounds.communities.stars import Stars, larger, triangles

ROUND = 60  # steps between two restarts
PER_CENTRE = 60  # triangles that a round adds
FIRST_LARGER, EVERY_LARGER = 8, 4  # rounds that look for stars of more than three nodes
IDLE, SLACK = 12, 0.1  # rounds without a multiplier and with slack, after which a star is dropped


class StarProgram:
    """The program of one part, [k, k] pairs as k(k - 1)/2 columns.

    value     float64, the least bound so far, without constants
    stars, multipliers   r of them, and g [r] that prove it
    settled   the last round added no star
    """

    def __init__(self, worth: np.ndarray, x: np.ndarray) -> None:
        """worth [k, k] float64 of pairs; x [k, k] of the best communities known"""
        self.k = len(worth)
        self._upper = np.triu_indices(self.k, 1)
        self._column = np.zeros((self.k, self.k), dtype=np.int32)
        self._column[self._upper] = np.arange(len(self._upper[0]))
        self._column += self._column.T
        self._x = x[self._upper].astype(np.float64)
        self._rows = sp.csr_array((0, len(self._x)))
        self._g, self._age = np.zeros(0), np.zeros(0, dtype=np.int64)
        self._stars = Stars.of([])
        self._columns, self._worth = sp.csr_array((len(self._x), 0)), worth[self._upper]
        self.rounds, self.settled, self.value = 0, False, np.inf
        self._try(self._g)
        self._seen = (self._worth > 0).astype(np.float64)  # what stars are looked for in
        self._begin()

    @property
    def cost(self) -> int:
        """Entries that a step reads."""
        return len(self._x) + 2 * self._rows.nnz

    def run(self, steps: int) -> None:
        """Take so many steps, or those that are left of this round."""
        for _ in range(min(steps, self._left)):
            x = np.clip(self._x + self._step_x * (self._worth - self._columns @ self._g), 0.0, 1.0)
            self._g = np.maximum(self._g + self._step_g * (self._rows @ (2 * x - self._x) - 1.0), 0.0)
            self._x = x
            self._sum_x += x
            self._sum_g += self._g
            self._left -= 1
        if not self._left:
            self._end()

    def dense(self, columns: np.ndarray) -> np.ndarray:
        """[k, k], of columns."""
        found = np.zeros((self.k, self.k), dtype=columns.dtype)
        found[self._upper] = columns
        return found + found.T

    # ---- rounds --------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Look for stars, and begin a round with them."""
        seen = self.dense(self._seen)
        everything = self.rounds >= FIRST_LARGER and self.rounds % EVERY_LARGER == 0
        found = Stars.of([triangles(seen, PER_CENTRE), *(larger(seen) if everything else [])])
        first = np.zeros(len(found), dtype=bool)
        first[np.unique(found.keys, return_index=True)[1]] = True
        new = found.kept(first & ~np.isin(found.keys, self._stars.keys))
        self.settled = not len(new) and (everything or self.settled)
        if len(new):
            self._rows = sp.csr_array(sp.vstack([self._rows, new.rows(self._column, len(self._x))]))
            self._stars = self._stars.joined(new)
        self._g = np.append(self._g, np.zeros(len(new)))
        self._age = np.append(self._age, np.zeros(len(new), dtype=np.int64))
        self._columns = sp.csr_array(self._rows.T)
        self._step_x = 1.0 / np.maximum(np.diff(self._columns.indptr), 1)
        self._step_g = 1.0 / np.maximum(np.diff(self._rows.indptr), 1)
        self._sum_x, self._sum_g, self._left = np.zeros_like(self._x), np.zeros_like(self._g), ROUND

    def _end(self) -> None:
        """A round is over: its average is where the next one begins."""
        mean_x, mean_g = self._sum_x / ROUND, self._sum_g / ROUND
        self._try(self._g)
        self._try(mean_g)
        self._x, self._g, self._seen = mean_x, mean_g, mean_x
        self.rounds += 1
        idle = (mean_g < 1e-9) & (self._rows @ mean_x < 1 - SLACK)
        self._age = np.where(idle, self._age + 1, 0)
        self._drop(self._age < IDLE)
        self._begin()

    def _drop(self, kept: np.ndarray) -> None:
        if not kept.all():
            self._stars, self._rows = self._stars.kept(kept), sp.csr_array(self._rows[np.flatnonzero(kept)])
            self._g, self._age = self._g[kept], self._age[kept]

    def _try(self, g: np.ndarray) -> None:
        """Multipliers that may prove a better bound."""
        value = float(g.sum() + np.maximum(self._worth - self._columns @ g, 0.0).sum())
        if value < self.value:
            self.value, self.multipliers = value, g.copy()
            self.stars = self._stars
