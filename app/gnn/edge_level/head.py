"""What a network says of an edge, from the rows of its two ends: symmetric in them, forward and backward."""

from collections.abc import Callable
from typing import Any

import numpy as np

from app.gnn.edge_level.entries import Entries, Piece

Array = Any
Shapes = dict[str, tuple[int, ...]]
NAME = "head"
ROWS = 3  # times as many columns as hidden ones: the parts of a row of a node


class EdgeHead:
    """S_e = U_e W + c, U_e = relu(p_u + p_v + q_u * q_v + |r_u - r_v| + F_e W_e + b) of an edge e = {u, v}.

    Source    A perceptron of one hidden layer on the sum, the product and the distance of two rows, which
              Grover and Leskovec 2016 (node2vec, table 1) and others take of the ends of an edge. Products
              and distances are of linear maps of what is known of the ends, which the last layer gives side
              by side, Z = [P Q R]: so the maps are made once for each node, not for each of its edges
    Forward   as above; * and |.| by elements, F the features of edges, where there are any
    Shapes    Z [n, 3h]: P, Q, R [n, h]   F [edges, k]   W_e [k, h]   b [1, h]   U [edges, h]
              W [h, C]   c [1, C]   S [edges, C]
    Backward  G = dL/dS comes in, T_e = 1 where U_e > 0, else 0, by elements:
              dW = U^T G     dc = sum of the rows of G     dU = (G W^T) * T
              dW_e = F^T dU  db = sum of the rows of dU
              dp_u = sum over the edges e of u of dU_e
              dq_u = sum over e = {u, v} of dU_e * q_v
              dr_u = sum over e = {u, v} of dU_e * sign(r_u - r_v), sign(0) = 0: a subgradient of |.|
    Symmetry  p_u + p_v, q_u * q_v and |r_u - r_v| are, rounded, what they are with u and v exchanged: both
              ends' owners make the same bits of U_e, S_e and dU_e
    Ranks     rows partitioned, weights replicated; 1 exchange of Z forward, none backward: the owner of u
              works on all edges of u, so that dZ_u needs no addends of others (an edge between two ranks is
              worked on twice). The gradients of weights are chains over the entries (u, v), u < v, of each
              row block in order, then sums over blocks as of all layers. A product with W_e is made for each
              entry, rounded before it is added.
    """

    def __init__(self, hidden: int, classes: int, edge_width: int, bias: bool) -> None:
        """edge_width   columns of F; 0: edges have no features."""
        self.hidden, self.classes, self.edge_width, self.bias = hidden, classes, edge_width, bias
        self.W, self.W_edge, self.b, self.c = (f"{NAME}.{n}" for n in ("W", "W_edge", "hidden_bias", "bias"))

    @property
    def width(self) -> int:
        """Columns of Z, which the layers give."""
        return ROWS * self.hidden

    def shapes(self) -> Shapes:
        """W, W_edge of edges with features, and, with biases, hidden_bias and bias."""
        found: Shapes = {self.W: (self.hidden, self.classes)}
        if self.edge_width:
            found[self.W_edge] = self.edge_width, self.hidden
        if self.bias:
            found |= {self.b: (1, self.hidden), self.c: (1, self.classes)}
        return found

    # ---- forward ----------------------------------------------------------------------------------------

    def scores(self, device: Any, params: Any, Z: Array, X: Array, entries: Entries) -> Array:
        """[entries, C] S of entries; Z [n_own, 3h] own rows, X those that columns number."""
        S = device.empty((entries.count, self.classes))
        for piece in entries.parts:
            U = self._units(device, params, Z, X, piece, entries)
            S[piece.lo : piece.hi] = self._scored(device, params, U, piece)
        return S

    def _units(self, device: Any, params: Any, Z: Array, X: Array, piece: Piece, entries: Entries) -> Array:
        """[padded, h] U of the entries of a piece, zero beyond."""
        featured = entries.E is not None
        if featured:
            F = entries.E.rows(device.xp, piece.lo, piece.lo + piece.padded)
            U = device.row_product(F, params[self.W_edge])
        else:
            U = device.empty((piece.padded, self.hidden))
        count, bias = piece.hi - piece.lo, params[self.b].reshape(-1) if self.bias else None
        U[count:] = 0
        device.head_units(Z, X, piece.row, piece.column, bias, U[:count], featured)
        return U

    def _scored(self, device: Any, params: Any, U: Array, piece: Piece) -> Array:
        """[k, C] S."""
        S = device.row_product(U, params[self.W])[: piece.hi - piece.lo]
        return S + params[self.c] if self.bias else S

    # ---- backward ---------------------------------------------------------------------------------------

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters, in the order in which `learn` puts their addends side by side."""
        found = (self.W, self.c) if self.bias else (self.W,)
        found += (self.W_edge,) if self.edge_width else ()
        return (*found, self.b) if self.bias else found

    def learn(
        self, device: Any, params: Any, Z: Array, X: Array, entries: Entries, D: Array,
        losses: Callable[[Array, slice], Array],
    ) -> tuple[Array, Array]:  # fmt: skip
        """The gradient by Z goes into D [n_own, 3h].

        losses    makes of S of some entries [k, C], in its place, the gradient by S; and returns [k] losses
        returns   [blocks, 1] sums of the losses and [blocks, weights] of gradients, those of `names` side by
                  side, by row block over the entries that count for their edge
        """
        xp, sizes = device.xp, sum(int(np.prod(shape)) for shape in self.shapes().values())
        D[...] = 0
        lost = device.zeros((len(entries.starts) - 1, 1))
        sums = device.zeros((len(entries.starts) - 1, sizes))
        W_back = xp.ascontiguousarray(params[self.W].T)
        for piece in entries.parts:
            count, rows, blocks = piece.hi - piece.lo, slice(*piece.rows_at), slice(*piece.blocks)
            U, ends = self._units(device, params, Z, X, piece, entries), (piece.row, piece.column)
            G = device.empty((piece.padded, self.classes))
            G[:count], G[count:] = self._scored(device, params, U, piece), 0
            of_each = losses(G[:count], slice(piece.lo, piece.hi))
            dU = device.row_product(G, W_back)[:count]
            device.head_back(Z, X, *ends, U[:count], dU, D[rows], rows.start, piece.ones)
            lost[blocks] = device.fold(piece.ends, _of_edges(xp, of_each[:, None], piece))
            F = None if entries.E is None else entries.E.rows(xp, piece.lo, piece.hi)
            sums[blocks] = self._sums(device, piece, U[:count], G[:count], dU, F)
        return lost, sums

    def _sums(self, device: Any, piece: Piece, U: Array, G: Array, dU: Array, F: Array | None) -> Array:
        """[blocks of the piece, weights] the addends of `names`."""
        xp, ends = device.xp, piece.ends
        U, G, dU = (_of_edges(xp, each, piece) for each in (U, G, dU))
        parts = [device.block_gram(U, G, ends[None])]
        if self.bias:
            parts.append(device.fold(ends, G))
        if F is not None:
            parts.append(device.block_gram(_of_edges(xp, F, piece), dU, ends[None]))
        if self.bias:
            parts.append(device.fold(ends, dU))
        return xp.concatenate(parts, axis=1) if len(parts) > 1 else parts[0]


def _of_edges(xp: Any, X: Array, piece: Piece) -> Array:
    """Of rows for entries [k, ...] those that count for their edge, row-major."""
    return xp.ascontiguousarray(X) if piece.first is None else xp.take(X, piece.first, axis=0)
