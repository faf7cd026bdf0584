"""Scores of triples from rows of their nodes and relations, as two kinds of products read them.

The products over triples (app/numerics/distmult.py) know sums over the columns of S_s D_r O_o. A scorer says
what S, D and O are made of, and brings gradients by them back to the rows that are learned. Where one end is
asked, the scores of all nodes there are products of one row, the query, with rows that are made of theirs.
A squared distance has both forms: -|q - e|^2 = 2 <q, e> - |q|^2 - |e|^2.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Protocol

import numpy as np

from app.numerics.elementwise import row_sums

Array = Any
NodeSums = Callable[[int, int], Array]  # (lo, hi) -> sums over the triples of the operand's rows lo .. hi-1


class Scorer(Protocol):
    """A score f(s, r, o) that is a sum of products of numbers made of the rows of each of the three.

    even       whether rows have an even number of columns
    distance   whether scores are minus a distance, hence at most 0
    unit       whether relations' complex numbers count by their direction alone
    """

    even: ClassVar[bool]
    distance: ClassVar[bool]
    unit: ClassVar[bool]

    def shape(self, n: int, d: int) -> tuple[int, int]:
        """Of the operand `nodes` of rows [n, d]; that of relations has as many columns."""

    def nodes(self, xp: Any, E: Array) -> Array:
        """The operand [rows, columns] of rows E [n, d]: of subjects, then of objects, or one for both."""

    def triples(self, triples: np.ndarray, n: int) -> np.ndarray:
        """[3, t] int32 host, which rows of the operands triples of n nodes read."""

    def relations(self, xp: Any, D: Array) -> Array:
        """The operand [R, columns] of rows D [R, d]."""

    def nodes_back(self, xp: Any, E: Array, sums: NodeSums, lo: int, hi: int) -> Array:
        """[hi - lo, d], the gradient by rows lo .. hi-1 of E [n, d], from those by the operand's rows."""

    def relations_back(self, xp: Any, D: Array, dX: Array) -> Array:
        """[k, d], the gradient by rows D [k, d] from that by their operand [k, columns]."""

    def ends(self, xp: Any, E: Array) -> Array:
        """[rows, c] of rows E [rows, d]: what queries are multiplied with."""

    def ends_back(self, xp: Any, E: Array, dX: Array) -> Array:
        """[rows, d], the gradient by E from that by `ends` of it."""

    def query(self, xp: Any, side: int, near: Array, relation: Array) -> Array:
        """[k, c]: its product with a row of `ends` is the score of that node at the other end.

        side   0: the subjects are known, near [k, d]; 1: the objects     relation   [k, d]
        """

    def query_back(self, xp: Any, side: int, near: Array, relation: Array, dQ: Array) -> tuple[Array, Array]:
        """[k, d] each, the gradients by near and by relation, from that by `query` of them."""

    def pair(self, xp: Any, S: Array, T: Array) -> Array:
        """[k, c] of subjects and objects [k, d]: its product with a row of `choices` is the score with that
        relation, less what is the same for all relations."""

    def pair_back(self, xp: Any, S: Array, T: Array, dQ: Array) -> tuple[Array, Array]:
        """[k, d] each, the gradients by S and by T, from that by `pair` of them."""

    def choices(self, xp: Any, D: Array) -> Array:
        """[R, c] of rows D [R, d]: what pairs are multiplied with."""

    def choices_back(self, xp: Any, D: Array, dX: Array) -> Array:
        """[R, d], the gradient by D from that by `choices` of it."""

    def cubes(self, xp: Any, X: Array) -> tuple[Array, Array]:
        """[rows] of X [rows, d] the sums of cubes of absolute values; and [rows, d] their gradients."""


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
        real, imaginary = _halves(E)
        top = xp.concatenate([real, imaginary, real, imaginary], axis=1)
        return top, xp.concatenate([real, imaginary, imaginary, real], axis=1)

    def triples(self, triples: np.ndarray, n: int) -> np.ndarray:
        """Objects are n rows below."""
        return _objects_below(triples, n)

    def relations(self, xp: Any, D: Array) -> Array:
        """[R, 2 d]."""
        p, q = _halves(D)
        return xp.concatenate([p, p, q, -q], axis=1)

    def nodes_back(self, xp: Any, E: Array, sums: NodeSums, lo: int, hi: int) -> Array:
        """As subjects, and as objects."""
        n = len(E)
        return self.of_both_ends(xp, sums(lo, hi), sums(n + lo, n + hi))

    def of_both_ends(self, xp: Any, dS: Array, dO: Array) -> Array:
        """[rows, d] from gradients [rows, 2 d] by what `both_ends` makes."""
        s, o = _quarters(dS), _quarters(dO)
        dE = xp.concatenate([s[0] + s[2], s[1] + s[3]], axis=1)
        dE += xp.concatenate([o[0] + o[3], o[1] + o[2]], axis=1)
        return dE

    def relations_back(self, xp: Any, D: Array, dX: Array) -> Array:
        """[k, d]."""
        r = _quarters(dX)
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

    def pair(self, xp: Any, S: Array, T: Array) -> Array:
        """[k, d] real parts, then imaginary ones, of conj(e_s) e_o."""
        (a, b), (c, e) = _halves(S), _halves(T)
        return xp.concatenate([a * c + b * e, a * e - b * c], axis=1)

    def pair_back(self, xp: Any, S: Array, T: Array, dQ: Array) -> tuple[Array, Array]:
        """By the halves of both."""
        (a, b), (c, e), (g, h) = _halves(S), _halves(T), _halves(dQ)
        of_subjects = xp.concatenate([g * c + h * e, g * e - h * c], axis=1)
        return of_subjects, xp.concatenate([g * a - h * b, g * b + h * a], axis=1)

    def cubes(self, xp: Any, X: Array) -> tuple[Array, Array]:
        """Of complex numbers z = a + ib: d |z|^3 / da = 3 |z| a."""
        a, b = _halves(X)
        square = a * a + b * b
        size = xp.sqrt(square)
        return row_sums(xp, square * size), 3 * xp.concatenate([size, size], axis=1) * X


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
        return _objects_below(triples, n)

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


DISTMULT, COMPLEX = DistMult(), ComplEx()
SCORERS: dict[str, Scorer] = {
    "distmult": DISTMULT, "complex": COMPLEX, "rotate": RotatE(), "transe": TransE()
}  # fmt: skip
LEAST_SIZE = 1e-12  # of a complex number that is divided by: zero stays zero


def split_relations(xp: Any, D: Array, d: int) -> tuple[Array, Array | None]:
    """The rows [R, d] of relations, row-major, and [R] what each adds where both ends of a triple are one
    node; None: nothing.

    D   [R, d] or [R, d + 1]
    """
    return (D, None) if D.shape[1] == d else (xp.ascontiguousarray(D[:, :d]), xp.ascontiguousarray(D[:, d]))


def ends_columns(scorer: Scorer, d: int) -> int:
    """c, of `ends` of rows of d numbers."""
    return scorer.ends(np, np.zeros((1, d), dtype=np.float32)).shape[1]


def choices_columns(scorer: Scorer, d: int) -> int:
    """c, of `choices` of rows of d numbers."""
    return scorer.choices(np, np.ones((1, d), dtype=np.float32)).shape[1]


def unit_rows(xp: Any, W: Array) -> Array:
    """[rows, d], complex numbers of absolute value 1 with the directions of W."""
    size = _sizes(xp, W)
    return W / xp.concatenate([size, size], axis=1)


def _unit_back(xp: Any, W: Array, dU: Array) -> Array:
    """The gradient by W from that by unit_rows of it."""
    size, (a, b), (g, h) = _sizes(xp, W), _halves(unit_rows(xp, W)), _halves(dU)
    along = a * g + b * h
    return xp.concatenate([(g - a * along) / size, (h - b * along) / size], axis=1)


def _sizes(xp: Any, W: Array) -> Array:
    """[rows, d / 2] absolute values."""
    a, b = _halves(W)
    return xp.maximum(xp.sqrt(a * a + b * b), LEAST_SIZE)


def _squares(xp: Any, X: Array) -> Array:
    """[rows, 1] sums of squares."""
    return row_sums(xp, X * X)[:, None]


def _ones(xp: Any, X: Array) -> Array:
    """[rows, 1]."""
    return xp.ones_like(X[:, :1])


def _objects_below(triples: np.ndarray, n: int) -> np.ndarray:
    """[3, t], triples whose objects are n rows below."""
    return triples + np.array([[0], [0], [n]], dtype=triples.dtype)


def _halves(X: Array) -> tuple[Array, Array]:
    """The first and the second half of the columns."""
    h = X.shape[1] // 2
    return X[:, :h], X[:, h:]


def _quarters(X: Array) -> list[Array]:
    """The columns in four equal parts."""
    h = X.shape[1] // 4
    return [X[:, i * h : (i + 1) * h] for i in range(4)]
