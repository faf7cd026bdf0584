"""Scores of triples from rows of their nodes and relations, as two kinds of products read them.

The products over triples (app/numerics/distmult.py) know sums over the columns of S_s D_r O_o. A scorer says
what S, D and O are made of, and brings gradients by them back to the rows that are learned. Where one end is
asked, the scores of all nodes there are products of one row, the query, with rows that are made of theirs.
Scores are products of rows (app/gnn/rgcn/bilinear.py) or distances (app/gnn/rgcn/distances.py).
"""

from typing import Any, ClassVar, Protocol

import numpy as np

from app.gnn.rgcn.bilinear import COMPLEX, DISTMULT, NodeSums
from app.gnn.rgcn.distances import RotatE, TransE

Array = Any


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


SCORERS: dict[str, Scorer] = {
    "distmult": DISTMULT, "complex": COMPLEX, "rotate": RotatE(), "transe": TransE()
}  # fmt: skip


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
