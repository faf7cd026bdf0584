"""The semidefinite program over pairs of nodes, 0 <= x <= 1, by the alternating direction method of
multipliers.

    maximise sum over pairs of c_uv x_uv where x, with ones on its diagonal, is positive semidefinite

Its dual matrix S, positive semidefinite, proves trace(S)/2 + sum over pairs of max(0, c_uv + S_uv)
(witness.py).

Source   Boyd et al., Distributed optimization and statistical learning via ADMM, 2011, section 3.1; the
nearest
         semidefinite matrix: Higham 1988
"""

import numpy as np

LOOK = 10  # steps between two bounds


class PairMatrix:
    """The program of one part.

    value    the least bound so far     matrix   [k, k] float64, S that proves it
    steps    made so far
    """

    def __init__(self, worth: np.ndarray, x: np.ndarray) -> None:
        """worth [k, k] of pairs, zeros on its diagonal; x [k, k] of communities to begin with"""
        self._worth, self.steps = worth / 2, 0
        self._box, self._dual = x.astype(np.float64), np.zeros_like(worth)
        np.fill_diagonal(self._box, 1.0)
        self.value, self.matrix = float(np.maximum(worth, 0).sum()) / 2, np.zeros_like(worth)

    def step(self) -> None:
        """One step: an eigenvalue decomposition."""
        values, vectors = np.linalg.eigh(self._box - self._dual)
        up = vectors * np.sqrt(np.maximum(values, 0.0))
        near = up @ up.T
        self._box = np.clip(near + self._dual + self._worth, 0.0, 1.0)
        np.fill_diagonal(self._box, 1.0)
        self._dual += near - self._box
        self.steps += 1
        if self.steps % LOOK == 0:
            down = vectors * np.sqrt(np.maximum(-values, 0.0))
            self._try(2 * (down @ down.T))

    def _try(self, matrix: np.ndarray) -> None:
        rest = np.maximum(2 * self._worth + matrix, 0.0)
        value = float(np.trace(matrix) + rest.sum() - np.trace(rest)) / 2
        if value < self.value:
            self.value, self.matrix = value, matrix
