"""What two views of a graph are to agree in: the correlations of their columns, by matrices [d, d] alone.

A sum over nodes is one over row blocks, so that the bits do not depend on the number of ranks; what is made
of a matrix [d, d] is made by all ranks alike, on the host in float64. No pairs of nodes are drawn.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.case.embed import EmbedCase
from app.gnn.engine import Engine
from app.gnn.programs import Rows
from app.numerics.products import PLAIN, Operand

Array = Any
EPSILON = 1e-12  # added to the variance of a column


@dataclass(frozen=True)
class Agreement:
    """How two views of an epoch agree.

    alignment    mean correlation of a column with the same one of the other view
    redundancy   root of the mean square of the correlations of different columns of a view
    """

    alignment: float
    redundancy: float

    @property
    def score(self) -> float:
        """What is shown over epochs."""
        return self.alignment


@dataclass(frozen=True)
class Compared:
    """An objective at some correlations.

    loss, agreement   what is told
    terms   of each view (k, M, factor): the gradient by its N is N_k M + factor N', M [d, d] float32 on the
            host, N' the other view's
    """

    loss: float
    agreement: Agreement
    terms: tuple[tuple[int, np.ndarray, float], tuple[int, np.ndarray, float]]


def compare_cca(Cs: list[np.ndarray], weight: float, n: float) -> Compared:
    """CCA-SSG (Zhang et al. 2021, eq. 6).

    N_a, N_b  rows of both views, columns brought to mean 0 and variance 1     C_ab = N_a^T N_b / n, likewise
    C_aa and C_bb; Cs: C_ab, C_aa, C_bb
    Loss      L = -tr(C_ab) + weight (|C_aa - I|^2 + |C_bb - I|^2)
    Gradient  dL/dN_a = -N_b / n + 4 weight / n N_a (C_aa - I), C_aa being symmetric; of N_b likewise
    Source    The paper's first term is the squared distance of N_a and N_b, 2 d - 2 tr(C_ab) for columns of
              variance 1/n; its authors' program has half of that, without the constant, as here
    Differs   Variances are over n, theirs over n - 1; epsilon in them, so that a constant column is zero
    """
    ab, aa, bb = Cs
    eye = np.eye(len(ab))
    away = aa - eye, bb - eye
    loss = -_total(ab * eye) + weight * sum(_total(each * each) for each in away)
    own = [(4 * weight / n * each).astype(np.float32) for each in away]
    return Compared(loss, _agreement(Cs), ((0, own[0], -1 / n), (1, own[1], -1 / n)))


def compare_barlow(Cs: list[np.ndarray], weight: float, n: float) -> Compared:
    """Graph Barlow Twins (Bielak et al. 2022, eq. 4), the correlations between views alone.

    Loss      L = sum_i (1 - C_ii)^2 + weight sum_{i != j} C_ij^2, C = C_ab
    Gradient  G = dL/dC: G_ii = -2 (1 - C_ii), G_ij = 2 weight C_ij
              dL/dN_a = N_b G^T / n     dL/dN_b = N_a G / n
    """
    ab, eye = Cs[0], np.eye(len(Cs[0]))
    off = ab * (1 - eye)
    missing = (1 - ab) * eye
    loss = _total(missing * missing) + weight * _total(off * off)
    G = (2 * weight * off - 2 * missing) / n
    back = np.ascontiguousarray(G.T)
    terms = (1, back.astype(np.float32), 0.0), (0, G.astype(np.float32), 0.0)
    return Compared(loss, _agreement(Cs), terms)


OBJECTIVES = {"cca": compare_cca, "barlow": compare_barlow}


def _agreement(Cs: list[np.ndarray]) -> Agreement:
    """From C_ab, C_aa and C_bb."""
    d, eye = len(Cs[0]), np.eye(len(Cs[0]))
    off = sum(_total((each * (1 - eye)) ** 2) for each in Cs[1:]) / (2 * max(d * (d - 1), 1))
    return Agreement(_total(Cs[0] * eye) / d, math.sqrt(off))


def _total(X: np.ndarray) -> float:
    """The sum of a matrix: rows are added up in turn, then columns exactly."""
    sums = np.zeros(X.shape[1])
    for row in X:
        sums += row
    return math.fsum(sums.tolist())


class Objective:
    """The loss of two views by their rows Z_a, Z_b, and its gradient.

    Forward   N = (Z - mean) inverse, inverse = 1 / sqrt(variance + epsilon), of each column over all nodes
              C_ab, C_aa, C_bb = N^T N / n, and L as OBJECTIVES have it
    Backward  D = dL/dN = N_k M + factor N', see there
              dL/dZ = inverse (D - mean of D - N mean of (D * N)), means over the nodes of each column: with
              mean and inverse it is the backward pass of batch normalisation (gnn/norms.py)
    Shapes    Z, N, D [n_own, d]     C, M [d, d]     mean, inverse [d]
    Ranks     rows partitioned, matrices [d, d] replicated; 2 sums of d columns and 1 of 2 d for each view, 1
              of 3 d^2 for both
    """

    def __init__(self, case: EmbedCase) -> None:
        self.compare, self.weight = OBJECTIVES[case.objective], case.decorrelation / case.dimension

    def learn(self, engine: Engine, rows: list[Rows]) -> tuple[Compared, list[Rows]]:
        """What the views make, and the gradients by their rows, new ones; the rows become N. Ranks: all."""
        inverse = [self._standardise(engine, Z) for Z in rows]
        D = [engine.take("dZ", Z.width) for Z in rows]
        work = lambda: self._compare(engine, [Z.array for Z in rows], [each.array for each in D])  # noqa: E731
        found = engine.apply("loss", "views", rows, D, work)
        for Z, each, factor in zip(rows, D, inverse):
            self._back(engine, Z, each, factor)
        return found, D

    def _standardise(self, engine: Engine, Z: Rows) -> Array:
        """N in the place of Z, zero in rows that are no nodes; returns inverse."""

        def work() -> Array:
            device, xp = engine.device, engine.device.xp
            mean = engine.counted_mean(Z.array)
            inverse = 1 / xp.sqrt(engine.counted_mean(Z.array, mean) + np.float32(EPSILON))
            ones, zeros = _ones_and_zeros(device, Z.width)
            device.normalise_columns(Z.array, mean, inverse, ones, zeros, Z.array)
            device.activate(Z.array, engine.counted)
            return inverse

        return engine.apply("loss", "standardise", [Z], [Z], work)

    def _compare(self, engine: Engine, N: list[Array], D: list[Array]) -> Compared:
        """D becomes the gradient by N. Ranks: all call (one sum)."""
        device = engine.device
        Cs = engine.mean_grams([(N[0], N[1]), (N[0], N[0]), (N[1], N[1])])
        host = [np.array(device.get(C)).astype(np.float64) for C in Cs]
        found = self.compare(host, self.weight, engine.counted_rows)
        for view, ((k, M, factor), out) in enumerate(zip(found.terms, D)):
            device.dense([Operand(N[k])], device.put(M), PLAIN, out)
            if factor:
                device.add_into(out, N[1 - view], factor)
        return found

    def _back(self, engine: Engine, N: Rows, D: Rows, inverse: Array) -> None:
        """In place, the gradient by Z from D by N."""

        def work() -> None:
            device, width = engine.device, D.width
            ones, zeros = _ones_and_zeros(device, width)
            means = engine.norm_means(D.array, N.array, zeros, ones)
            factors = ones, inverse, means[:width], means[width:]
            device.normalise_columns_back(D.array, N.array, zeros, *factors, engine.counted)

        engine.apply("loss", "standardise_back", [N, D], [D], work)


def _ones_and_zeros(device: Any, width: int) -> tuple[Array, Array]:
    zeros = device.zeros((width,))
    return zeros + np.float32(1), zeros
