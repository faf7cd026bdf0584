"""Scores of triples from rows of their nodes and relations, as the products over triples read them.

The products over triples (app/numerics/distmult.py) know sums over the columns of S_s D_r O_o. A scorer says
what S, D and O are made of, and brings gradients by them back to the rows that are learned.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Protocol

import numpy as np

from app.numerics.elementwise import row_sums

Array = Any
NodeSums = Callable[[int, int], Array]  # (lo, hi) -> sums over the triples of the operand's rows lo .. hi-1


class Scorer(Protocol):
    """A score f(s, r, o) that is linear in the rows of each of the three.

    even   whether rows have an even number of columns
    wide   columns of the operands for each column of the rows
    """

    even: ClassVar[bool]
    wide: ClassVar[int]

    def nodes(self, xp: Any, E: Array) -> Array:
        """The operand [rows, d wide] of rows E [n, d]: of subjects, then of objects, or one for both."""

    def triples(self, triples: np.ndarray, n: int) -> np.ndarray:
        """[3, t] int32 host, which rows of the operands triples of n nodes read."""

    def relations(self, xp: Any, D: Array) -> Array:
        """The operand [R, d wide] of rows D [R, d]."""

    def nodes_back(self, xp: Any, sums: NodeSums, lo: int, hi: int, n: int) -> Array:
        """[hi - lo, d], the gradient by rows lo .. hi-1 of E, from those by the operand's rows."""

    def relations_back(self, xp: Any, dD: Array) -> Array:
        """[R, d], the gradient by D from that by its operand [R, d wide]."""

    def query(self, xp: Any, side: int, near: Array, relation: Array) -> Array:
        """[k, d]: its product with a row of E is the score of that node at the other end.

        side   0: the subjects are known, near [k, d]; 1: the objects     relation   [k, d]
        """

    def query_back(self, xp: Any, side: int, near: Array, relation: Array, dQ: Array) -> tuple[Array, Array]:
        """[k, d] each, the gradients by near and by relation, from that by `query` of them."""

    def cubes(self, xp: Any, X: Array) -> tuple[Array, Array]:
        """[rows] of X [rows, d] the sums of cubes of absolute values; and [rows, d] their gradients."""


class DistMult:
    """f(s, r, o) = sum_k E_sk D_rk E_ok: the same in both directions.

    Source   Yang et al. 2015, eq. 2 (diagonal)
    """

    even, wide = False, 1

    def nodes(self, xp: Any, E: Array) -> Array:
        """The rows themselves."""
        return E

    def triples(self, triples: np.ndarray, n: int) -> np.ndarray:
        """The triples themselves."""
        return triples

    def relations(self, xp: Any, D: Array) -> Array:
        """The rows themselves."""
        return D

    def nodes_back(self, xp: Any, sums: NodeSums, lo: int, hi: int, n: int) -> Array:
        """The sums themselves, of both ends of triples."""
        return sums(lo, hi)

    def relations_back(self, xp: Any, dD: Array) -> Array:
        """The gradient itself."""
        return dD

    def query(self, xp: Any, side: int, near: Array, relation: Array) -> Array:
        """The same from both sides."""
        return near * relation

    def query_back(self, xp: Any, side: int, near: Array, relation: Array, dQ: Array) -> tuple[Array, Array]:
        """The same from both sides."""
        return dQ * relation, dQ * near

    def cubes(self, xp: Any, X: Array) -> tuple[Array, Array]:
        """Of real numbers: d |x|^3 / dx = 3 |x| x."""
        size = xp.abs(X)
        return row_sums(xp, size * X * X), 3 * size * X


class ComplEx:
    """f(s, r, o) = Re sum_k e_sk w_rk conj(e_ok) of complex numbers: relations may have a direction.

    A row holds h = d / 2 real parts, then h imaginary ones. With e_s = a + ib, w_r = p + iq, e_o = c + ie:

    Forward   f = sum_k p (a c + b e) + q (a e - b c)
                = sum over 4 h columns of  [a b a b] [p p q -q] [c e e c]
    Backward  from gradients in quarters 1 to 4 of the columns:
              da = s1 + s3   db = s2 + s4      of the operand of subjects
              dc = o1 + o4   de = o2 + o3      of that of objects
              dp = r1 + r2   dq = r3 - r4      of that of relations
    Query     known subject: [pa - qb, pb + qa]      known object: [pc + qe, pe - qc]
              gradients g, h of its halves, known subject: da = pg + qh   db = ph - qg   dp = ag + bh
              dq = ah - bg;     known object c, e in the place of a, b, with -q for q and -dq for dq
    Source    Trouillon et al. 2016, eqs. 9 and 10
    """

    even, wide = True, 2

    def nodes(self, xp: Any, E: Array) -> Array:
        """[2 n, 2 d]: the operand of subjects above that of objects."""
        real, imaginary = _halves(E)
        top = xp.concatenate([real, imaginary, real, imaginary], axis=1)
        return xp.concatenate([top, xp.concatenate([real, imaginary, imaginary, real], axis=1)])

    def triples(self, triples: np.ndarray, n: int) -> np.ndarray:
        """Objects are n rows below."""
        return triples + np.array([[0], [0], [n]], dtype=triples.dtype)

    def relations(self, xp: Any, D: Array) -> Array:
        """[R, 2 d]."""
        p, q = _halves(D)
        return xp.concatenate([p, p, q, -q], axis=1)

    def nodes_back(self, xp: Any, sums: NodeSums, lo: int, hi: int, n: int) -> Array:
        """As subjects, and as objects."""
        s, o = _quarters(sums(lo, hi)), _quarters(sums(n + lo, n + hi))
        dE = xp.concatenate([s[0] + s[2], s[1] + s[3]], axis=1)
        dE += xp.concatenate([o[0] + o[3], o[1] + o[2]], axis=1)
        return dE

    def relations_back(self, xp: Any, dD: Array) -> Array:
        """[R, d]."""
        r = _quarters(dD)
        return xp.concatenate([r[0] + r[1], r[2] - r[3]], axis=1)

    def query(self, xp: Any, side: int, near: Array, relation: Array) -> Array:
        """[k, d] real parts, then imaginary ones, of e_s w_r, or of e_o conj(w_r)."""
        (a, b), (p, q) = _halves(near), _halves(relation)
        q = -q if side else q
        return xp.concatenate([p * a - q * b, p * b + q * a], axis=1)

    def query_back(self, xp: Any, side: int, near: Array, relation: Array, dQ: Array) -> tuple[Array, Array]:
        """By the halves of near, and of relation."""
        (a, b), (p, q), (g, h) = _halves(near), _halves(relation), _halves(dQ)
        q = -q if side else q
        dq = a * h - b * g
        of_near = xp.concatenate([p * g + q * h, p * h - q * g], axis=1)
        return of_near, xp.concatenate([a * g + b * h, -dq if side else dq], axis=1)

    def cubes(self, xp: Any, X: Array) -> tuple[Array, Array]:
        """Of complex numbers z = a + ib: d |z|^3 / da = 3 |z| a."""
        a, b = _halves(X)
        square = a * a + b * b
        size = xp.sqrt(square)
        return row_sums(xp, square * size), 3 * xp.concatenate([size, size], axis=1) * X


SCORERS: dict[str, Scorer] = {"distmult": DistMult(), "complex": ComplEx()}


def _halves(X: Array) -> tuple[Array, Array]:
    """The first and the second half of the columns."""
    h = X.shape[1] // 2
    return X[:, :h], X[:, h:]


def _quarters(X: Array) -> list[Array]:
    """The columns in four equal parts."""
    h = X.shape[1] // 4
    return [X[:, i * h : (i + 1) * h] for i in range(4)]
