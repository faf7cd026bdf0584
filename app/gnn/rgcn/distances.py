"""Scores of triples that are distances: TransE and RotatE, as operands of products, with their gradients.

A squared distance is a product, too: -|q - e|^2 = 2 <q, e> - |q|^2 - |e|^2.
"""

from abc import abstractmethod
from typing import Any

import numpy as np

from app.gnn.rgcn.bilinear import COMPLEX, DISTMULT, NodeSums, halves, objects_below
from app.numerics.elementwise import row_sums

Array = Any
LEAST_SIZE = 1e-12  # of a complex number that is divided by: zero stays zero


class Distance:
    """f(s, r, o) = -|m(s, r) - e_o|^2, m what a relation makes of a subject, without a change of lengths.

    Query     u = m(s, r), or of a known object v = e_o led back, of which |v - e_s| is the same distance
              [2 u, -1, -|u|^2] times [e, |e|^2, 1]
    Backward  of gradients [g, a, c] by the query: du = 2 g - 2 c u; of [g, b, ..] by the ends: de = g + 2 b e
    """

    distance = True

    def ends(self, xp: Any, E: Array) -> Array:
        """[rows, d + 2]."""
        return xp.concatenate([E, _squares(xp, E), _ones(xp, E)], axis=1)

    def ends_back(self, xp: Any, E: Array, dX: Array) -> Array:
        """[rows, d]."""
        d = E.shape[1]
        return dX[:, :d] + 2 * dX[:, d : d + 1] * E

    def query(self, xp: Any, side: int, near: Array, relation: Array) -> Array:
        """[k, d + 2]."""
        U = self.moved(xp, side, near, relation)
        return xp.concatenate([2 * U, -_ones(xp, U), -_squares(xp, U)], axis=1)

    def query_back(self, xp: Any, side: int, near: Array, relation: Array, dQ: Array) -> tuple[Array, Array]:
        """By near, and by relation."""
        d = near.shape[1]
        U = self.moved(xp, side, near, relation)
        return self.moved_back(xp, side, near, relation, 2 * dQ[:, :d] - 2 * dQ[:, d + 1 :] * U)

    def triples(self, triples: np.ndarray, n: int) -> np.ndarray:
        """Objects are n rows below."""
        return objects_below(triples, n)

    @abstractmethod
    def moved(self, xp: Any, side: int, near: Array, relation: Array) -> Array:
        """[k, d], where the other end should be."""

    @abstractmethod
    def moved_back(self, xp: Any, side: int, near: Array, relation: Array, dU: Array) -> tuple[Array, Array]:
        """[k, d] each, the gradients by near and by relation, from that by `moved` of them."""


class TransE(Distance):
    """f(s, r, o) = -|e_s + w_r - e_o|^2: a relation is a step from its subjects to its objects.

    Forward   f = sum over 3 d + 3 columns of  [s  s  1  |s|^2 1 1] [2  -2 r  2 r  -1 -|r|^2 -1]
                                               [o  1  o  1 1 |o|^2]
    Backward  from gradients S, D, O by parts 1 to 3 of the columns and by the three behind, x, y, z:
              ds = S1 + S2 + 2 s Sx     do = O1 + O3 + 2 o Oz     dr = 2 D3 - 2 D2 - 2 r Dy
    Pair      f = 2 <o - s, r> - |r|^2 - |o - s|^2: [2 (o - s), -1] times [r, |r|^2], without the last
    Source    Bordes et al. 2013, eq. 1, with the squared Euclidean distance (their section 2.1)
    Departure rows of nodes are not scaled to length 1: n3 and the loss keep them short
    """

    even = unit = False

    def shape(self, n: int, d: int) -> tuple[int, int]:
        """Subjects above objects."""
        return 2 * n, 3 * d + 3

    def nodes(self, xp: Any, E: Array) -> Array:
        """[2 n, 3 d + 3]: the operand of subjects above that of objects."""
        one, ones, square = _ones(xp, E), xp.ones_like(E), _squares(xp, E)
        subjects = xp.concatenate([E, E, ones, square, one, one], axis=1)
        return xp.concatenate([subjects, xp.concatenate([E, ones, E, one, one, square], axis=1)])

    def relations(self, xp: Any, D: Array) -> Array:
        """[R, 3 d + 3]."""
        one, two = _ones(xp, D), 2 * xp.ones_like(D)
        return xp.concatenate([two, -2 * D, 2 * D, -one, -_squares(xp, D), -one], axis=1)

    def nodes_back(self, xp: Any, E: Array, sums: NodeSums, lo: int, hi: int) -> Array:
        """As subjects, and as objects."""
        (n, d), own = E.shape, E[lo:hi]
        dS, dO = sums(lo, hi), sums(n + lo, n + hi)
        squares = dS[:, 3 * d : 3 * d + 1] + dO[:, 3 * d + 2 :]
        return dS[:, :d] + dS[:, d : 2 * d] + dO[:, :d] + dO[:, 2 * d : 3 * d] + 2 * squares * own

    def relations_back(self, xp: Any, D: Array, dX: Array) -> Array:
        """[k, d]."""
        d = D.shape[1]
        square = dX[:, 3 * d + 1 : 3 * d + 2]
        return 2 * dX[:, 2 * d : 3 * d] - 2 * dX[:, d : 2 * d] - 2 * square * D

    def moved(self, xp: Any, side: int, near: Array, relation: Array) -> Array:
        """[k, d]: e_s + w_r, or e_o - w_r."""
        return near - relation if side else near + relation

    def moved_back(self, xp: Any, side: int, near: Array, relation: Array, dU: Array) -> tuple[Array, Array]:
        """The gradient itself, and with the sign of the step."""
        return dU, -dU if side else dU

    def pair(self, xp: Any, S: Array, T: Array) -> Array:
        """[k, d + 1]."""
        return xp.concatenate([2 * (T - S), -_ones(xp, S)], axis=1)

    def pair_back(self, xp: Any, S: Array, T: Array, dQ: Array) -> tuple[Array, Array]:
        """Twice the gradient, with both signs."""
        of_objects = 2 * dQ[:, : S.shape[1]]
        return -of_objects, of_objects

    def choices(self, xp: Any, D: Array) -> Array:
        """[R, d + 1]."""
        return xp.concatenate([D, _squares(xp, D)], axis=1)

    def choices_back(self, xp: Any, D: Array, dX: Array) -> Array:
        """[R, d]."""
        d = D.shape[1]
        return dX[:, :d] + 2 * dX[:, d:] * D

    def cubes(self, xp: Any, X: Array) -> tuple[Array, Array]:
        """Of real numbers."""
        return DISTMULT.cubes(xp, X)


class RotatE(Distance):
    """f(s, r, o) = -sum_k |e_sk u_rk - e_ok|^2 of complex numbers: a relation turns its subjects.

    u = w / |w|; rows are halves, as of ComplEx.
    Forward   f = 2 Re sum_k e_sk u_rk conj(e_ok) - |e_s|^2 - |e_o|^2: the operands of ComplEx, with 2 u for
              w, and two columns [|s|^2 1] [-1 -1] [1 |o|^2]
    Backward  those of ComplEx; with du by u = w / |w|: dw = (du - u <u, du>) / |w|, of each number
    Pair      twice that of ComplEx, times u; squares are the same for all relations
    Source    Sun et al. 2019, eq. 3
    Departure the distance is squared: theirs, a sum of absolute values, is no product of rows. Relations are
              pairs of numbers, not angles: sines differ between processors in the last bits.
    """

    even = unit = True

    def shape(self, n: int, d: int) -> tuple[int, int]:
        """Subjects above objects."""
        return 2 * n, 2 * d + 2

    def nodes(self, xp: Any, E: Array) -> Array:
        """[2 n, 2 d + 2]: the operand of subjects above that of objects."""
        one, square = _ones(xp, E), _squares(xp, E)
        subjects, objects = COMPLEX.both_ends(xp, E)
        subjects = xp.concatenate([subjects, square, one], axis=1)
        return xp.concatenate([subjects, xp.concatenate([objects, one, square], axis=1)])

    def relations(self, xp: Any, D: Array) -> Array:
        """[R, 2 d + 2]."""
        one = _ones(xp, D)
        return xp.concatenate([2 * COMPLEX.relations(xp, unit_rows(xp, D)), -one, -one], axis=1)

    def nodes_back(self, xp: Any, E: Array, sums: NodeSums, lo: int, hi: int) -> Array:
        """As subjects, and as objects."""
        n, c = len(E), 2 * E.shape[1]
        dS, dO = sums(lo, hi), sums(n + lo, n + hi)
        squares = dS[:, c : c + 1] + dO[:, c + 1 :]
        return COMPLEX.of_both_ends(xp, dS[:, :c], dO[:, :c]) + 2 * squares * E[lo:hi]

    def relations_back(self, xp: Any, D: Array, dX: Array) -> Array:
        """[k, d]."""
        return _unit_back(xp, D, 2 * COMPLEX.relations_back(xp, D, dX[:, : 2 * D.shape[1]]))

    def moved(self, xp: Any, side: int, near: Array, relation: Array) -> Array:
        """[k, d]: e_s u_r, or e_o conj(u_r)."""
        return COMPLEX.query(xp, side, near, unit_rows(xp, relation))

    def moved_back(self, xp: Any, side: int, near: Array, relation: Array, dU: Array) -> tuple[Array, Array]:
        """Those of ComplEx's queries, and of their relation by w."""
        of_near, of_unit = COMPLEX.query_back(xp, side, near, unit_rows(xp, relation), dU)
        return of_near, _unit_back(xp, relation, of_unit)

    def pair(self, xp: Any, S: Array, T: Array) -> Array:
        """[k, d]."""
        return 2 * COMPLEX.pair(xp, S, T)

    def pair_back(self, xp: Any, S: Array, T: Array, dQ: Array) -> tuple[Array, Array]:
        """Those of ComplEx."""
        return COMPLEX.pair_back(xp, S, T, 2 * dQ)

    def choices(self, xp: Any, D: Array) -> Array:
        """[R, d]."""
        return unit_rows(xp, D)

    def choices_back(self, xp: Any, D: Array, dX: Array) -> Array:
        """[R, d]."""
        return _unit_back(xp, D, dX)

    def cubes(self, xp: Any, X: Array) -> tuple[Array, Array]:
        """Of complex numbers."""
        return COMPLEX.cubes(xp, X)


def unit_rows(xp: Any, W: Array) -> Array:
    """[rows, d], complex numbers of absolute value 1 with the directions of W."""
    size = _sizes(xp, W)
    return W / xp.concatenate([size, size], axis=1)


def _unit_back(xp: Any, W: Array, dU: Array) -> Array:
    """The gradient by W from that by unit_rows of it."""
    size, (a, b), (g, h) = _sizes(xp, W), halves(unit_rows(xp, W)), halves(dU)
    along = a * g + b * h
    return xp.concatenate([(g - a * along) / size, (h - b * along) / size], axis=1)


def _sizes(xp: Any, W: Array) -> Array:
    """[rows, d / 2] absolute values."""
    a, b = halves(W)
    return xp.maximum(xp.sqrt(a * a + b * b), LEAST_SIZE)


def _squares(xp: Any, X: Array) -> Array:
    """[rows, 1] sums of squares."""
    return row_sums(xp, X * X)[:, None]


def _ones(xp: Any, X: Array) -> Array:
    """[rows, 1]."""
    return xp.ones_like(X[:, :1])
