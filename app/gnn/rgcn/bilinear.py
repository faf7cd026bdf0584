"""Scores of triples that are products of rows: DistMult and ComplEx, as operands, with their gradients."""

from collections.abc import Callable
from typing import Any

import numpy as np

from app.numerics.elementwise import row_sums

Array = Any
NodeSums = Callable[[int, int], Array]  # (lo, hi) -> sums over the triples of the operand's rows lo .. hi-1


class Product:
    """What scores have in common whose queries are multiplied with the rows of nodes as they are."""

    distance = unit = False

    def ends(self, xp: Any, E: Array) -> Array:
        """The rows themselves."""
        return E

    def ends_back(self, xp: Any, E: Array, dX: Array) -> Array:
        """The gradient itself."""
        return dX

    def choices(self, xp: Any, D: Array) -> Array:
        """The rows themselves."""
        return D

    def choices_back(self, xp: Any, D: Array, dX: Array) -> Array:
        """The gradient itself."""
        return dX


class DistMult(Product):
    """f(s, r, o) = sum_k E_sk D_rk E_ok: the same in both directions.

    Source   Yang et al. 2015, eq. 2 (diagonal)
    """

    even = False

    def shape(self, n: int, d: int) -> tuple[int, int]:
        """That of the rows."""
        return n, d

    def nodes(self, xp: Any, E: Array) -> Array:
        """The rows themselves."""
        return E

    def triples(self, triples: np.ndarray, n: int) -> np.ndarray:
        """The triples themselves."""
        return triples

    def relations(self, xp: Any, D: Array) -> Array:
        """The rows themselves."""
        return D

    def nodes_back(self, xp: Any, E: Array, sums: NodeSums, lo: int, hi: int) -> Array:
        """The sums themselves, of both ends of triples."""
        return sums(lo, hi)

    def relations_back(self, xp: Any, D: Array, dX: Array) -> Array:
        """The gradient itself."""
        return dX

    def query(self, xp: Any, side: int, near: Array, relation: Array) -> Array:
        """The same from both sides."""
        return near * relation

    def query_back(self, xp: Any, side: int, near: Array, relation: Array, dQ: Array) -> tuple[Array, Array]:
        """The same from both sides."""
        return dQ * relation, dQ * near

    def pair(self, xp: Any, S: Array, T: Array) -> Array:
        """The products."""
        return S * T

    def pair_back(self, xp: Any, S: Array, T: Array, dQ: Array) -> tuple[Array, Array]:
        """The same from both sides."""
        return dQ * T, dQ * S

    def cubes(self, xp: Any, X: Array) -> tuple[Array, Array]:
        """Of real numbers: d |x|^3 / dx = 3 |x| x."""
        size = xp.abs(X)
        return row_sums(xp, size * X * X), 3 * size * X


class ComplEx(Product):
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
    Pair      [ac + be, ae - bc]     gradients g, h of its halves: da = gc + he   db = ge - hc
              dc = ga - hb   de = gb + ha
    Source    Trouillon et al. 2016, eqs. 9 and 10
    """

    even = True

    def shape(self, n: int, d: int) -> tuple[int, int]:
        """Subjects above objects, four times h columns."""
        return 2 * n, 2 * d

    def nodes(self, xp: Any, E: Array) -> Array:
        """[2 n, 2 d]: the operand of subjects above that of objects."""
        return xp.concatenate(self.both_ends(xp, E))

    def both_ends(self, xp: Any, E: Array) -> tuple[Array, Array]:
        """[n, 2 d] each, of subjects and of objects."""
        real, imaginary = halves(E)
        top = xp.concatenate([real, imaginary, real, imaginary], axis=1)
        return top, xp.concatenate([real, imaginary, imaginary, real], axis=1)

    def triples(self, triples: np.ndarray, n: int) -> np.ndarray:
        """Objects are n rows below."""
        return objects_below(triples, n)

    def relations(self, xp: Any, D: Array) -> Array:
        """[R, 2 d]."""
        p, q = halves(D)
        return xp.concatenate([p, p, q, -q], axis=1)

    def nodes_back(self, xp: Any, E: Array, sums: NodeSums, lo: int, hi: int) -> Array:
        """As subjects, and as objects."""
        n = len(E)
        return self.of_both_ends(xp, sums(lo, hi), sums(n + lo, n + hi))

    def of_both_ends(self, xp: Any, dS: Array, dO: Array) -> Array:
        """[rows, d] from gradients [rows, 2 d] by what `both_ends` makes."""
        s, o = quarters(dS), quarters(dO)
        dE = xp.concatenate([s[0] + s[2], s[1] + s[3]], axis=1)
        dE += xp.concatenate([o[0] + o[3], o[1] + o[2]], axis=1)
        return dE

    def relations_back(self, xp: Any, D: Array, dX: Array) -> Array:
        """[k, d]."""
        r = quarters(dX)
        return xp.concatenate([r[0] + r[1], r[2] - r[3]], axis=1)

    def query(self, xp: Any, side: int, near: Array, relation: Array) -> Array:
        """[k, d] real parts, then imaginary ones, of e_s w_r, or of e_o conj(w_r)."""
        (a, b), (p, q) = halves(near), halves(relation)
        q = -q if side else q
        return xp.concatenate([p * a - q * b, p * b + q * a], axis=1)

    def query_back(self, xp: Any, side: int, near: Array, relation: Array, dQ: Array) -> tuple[Array, Array]:
        """By the halves of near, and of relation."""
        (a, b), (p, q), (g, h) = halves(near), halves(relation), halves(dQ)
        q = -q if side else q
        dq = a * h - b * g
        of_near = xp.concatenate([p * g + q * h, p * h - q * g], axis=1)
        return of_near, xp.concatenate([a * g + b * h, -dq if side else dq], axis=1)

    def pair(self, xp: Any, S: Array, T: Array) -> Array:
        """[k, d] real parts, then imaginary ones, of conj(e_s) e_o."""
        (a, b), (c, e) = halves(S), halves(T)
        return xp.concatenate([a * c + b * e, a * e - b * c], axis=1)

    def pair_back(self, xp: Any, S: Array, T: Array, dQ: Array) -> tuple[Array, Array]:
        """By the halves of both."""
        (a, b), (c, e), (g, h) = halves(S), halves(T), halves(dQ)
        of_subjects = xp.concatenate([g * c + h * e, g * e - h * c], axis=1)
        return of_subjects, xp.concatenate([g * a - h * b, g * b + h * a], axis=1)

    def cubes(self, xp: Any, X: Array) -> tuple[Array, Array]:
        """Of complex numbers z = a + ib: d |z|^3 / da = 3 |z| a."""
        a, b = halves(X)
        square = a * a + b * b
        size = xp.sqrt(square)
        return row_sums(xp, square * size), 3 * xp.concatenate([size, size], axis=1) * X


DISTMULT, COMPLEX = DistMult(), ComplEx()


def objects_below(triples: np.ndarray, n: int) -> np.ndarray:
    """[3, t], triples whose objects are n rows below."""
    return triples + np.array([[0], [0], [n]], dtype=triples.dtype)


def halves(X: Array) -> tuple[Array, Array]:
    """The first and the second half of the columns."""
    h = X.shape[1] // 2
    return X[:, :h], X[:, h:]


def quarters(X: Array) -> list[Array]:
    """The columns in four equal parts."""
    h = X.shape[1] // 4
    return [X[:, i * h : (i + 1) * h] for i in range(4)]
