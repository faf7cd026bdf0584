"""The sums over nodes that attention between all nodes is made of: of one graph, or of each graph of a set.

With rows Q, K and V+ = [V | 1] of h heads of k columns each, and numbers c of a graph and a head, both make

    forward    R = Q (c K^T V+)                      by heads: a row of Q meets all rows of K and V+ at once
    backward   dQ = dR (c K^T V+)^T     dK = V+ (c Q^T dR)^T     dV+ = K (c Q^T dR)
    c          1/N; where Q and K are divided by their norms, 1 / (N |Q| |K|), by which then
               dQ = ... - Q x / |Q|^2     dK = ... - K x / |K|^2     x = the sum of dR * R

so that nothing has as many entries as there are pairs of nodes. Rows lie as [n_own, h, k + 1]: of a head its
columns, then what stands for 1. Rows that are no nodes (padding, the own rows of graphs) are zero in Q and K.
"""

from typing import Any

import numpy as np

from app.gnn.engine import Engine
from app.gnn.programs import Rows
from app.numerics.elementwise import row_sums
from app.numerics.products import PLAIN, Operand

Array = Any


class Heads:
    """Columns of heads side by side, as arrays of a device.

    own     [f, h] 1 where a column is of a head, else 0     both   [f, f] where two are of the same one
    wide    [h (k+1), h] as `own`, of rows with one more column a head
    """

    def __init__(self, device: Any, heads: int, columns: int) -> None:
        self.device, self.count, self.columns = device, heads, columns
        own, one = np.eye(heads, dtype=np.float32), np.ones((1, columns + 1), dtype=np.float32)
        put = device.put
        self.own, self.wide = put(np.kron(own, one[:, 1:]).T.copy()), put(np.kron(own, one).T.copy())
        self.both = put(np.kron(own, one[:, 1:].T @ one[:, 1:]))
        self.starts = np.arange(0, heads * columns + 1, columns)
        self.flat = device.zeros((heads, columns))

    def split(self, X: Array) -> Array:
        """[n, h, m] a view of rows X [n, h m]."""
        return X.reshape(len(X), self.count, X.shape[1] // self.count)

    def spread(self, x: Array) -> Array:
        """[f] the sum over the columns of each head, for each of them, of numbers x [f]."""
        return (self.device.fold(self.starts, x[:, None]) + self.flat).reshape(-1)

    def dots(self, X: Array) -> Array:
        """[n, h] the sums over the columns of each head of rows X [n, f] or [n, h (k+1)]."""
        ones = self.own if X.shape[1] == len(self.own) else self.wide
        return self.device.dense([Operand(X)], ones)


class OfGraph:
    """All nodes of one graph.

    Sums    K^T V, of K and of squares forward and Q^T dR backward: by row blocks and the tree over them,
            f (f + 3) and f (f + h) numbers, the same bits on any number of ranks
    Ranks   rows partitioned, sums replicated; 1 sum forward, 1 backward
    """

    def __init__(self, heads: Heads, normed: bool) -> None:
        self.heads, self.normed = heads, normed

    def forward(self, engine: Engine, Q: Rows, K: Rows, V: Rows, R: Rows) -> Any:
        """R, and what backward needs. Ranks: all call (one sum)."""
        f = Q.width
        learn = lambda: self._learn(engine, Q.array, K.array, V.array)  # noqa: E731
        kept = engine.over_all("sums", [Q, K, V], [], learn, (f, f + 3))
        self.again(engine, Q, K, V, R, kept)
        return kept

    def again(self, engine: Engine, Q: Rows, K: Rows, V: Rows, R: Rows, kept: Any) -> None:
        """R once more."""
        work = lambda: engine.device.dense([Operand(Q.array)], kept[0], PLAIN, R.array)  # noqa: E731
        engine.over_all("weigh", [Q], [R], work, (Q.width, R.width))

    def _learn(self, engine: Engine, Q: Array, K: Array, V: Array) -> tuple[Array, Array, Array, Array]:
        """[f, h (k+1)] c K^T V+, and c, |Q|^2 and |K|^2, [f] for the columns of each head."""
        device, xp, heads, f = engine.device, engine.device.xp, self.heads, Q.shape[1]
        tree, nodes, none = (engine.starts, engine.spans), engine.nodes(), device.zeros((f,))
        squares = [
            device.merge_roots(device.counted_sums(X, nodes, none, engine.starts[0]), engine.spans)
            for X in (Q, K)
        ]
        parts = [device.gram_roots([Operand(K)], V, *tree), device.column_roots(K, *tree), *squares]
        G, total, q2, k2 = engine.add_up(parts)
        each = heads.split(G.reshape(f, f) * heads.both)
        M = xp.concatenate([each, (total[:, None] * heads.own)[:, :, None]], axis=2).reshape(f, -1)
        n, (q2, k2) = engine.neighbours_of.block.n, (heads.spread(each) for each in (q2, k2))
        c = none + np.float32(share_of(n, self.normed))
        if self.normed:
            c *= one_over(xp, xp.sqrt(q2) * xp.sqrt(k2))
        return c[:, None] * M, c, q2, k2

    def backward(
        self, engine: Engine, Q: Rows, K: Rows, V: Rows, dR: Rows, kept: Any
    ) -> tuple[Rows, Rows, Rows]:
        """dQ, dK and dV; Q, K, V and dR are lost. Ranks: all call (one sum)."""
        device, f = engine.device, Q.width
        learn = lambda: self._learn_back(engine, Q.array, dR.array, kept)  # noqa: E731
        found = engine.over_all("sums_back", [Q, dR], [], learn, (f, dR.width))
        dQ, dK, dV = (engine.take(f"d{X.name}", f) for X in (Q, K, V))
        heads = self.heads

        def of_queries() -> None:
            device.dense([Operand(dR.array)], device.xp.ascontiguousarray(kept[0].T), PLAIN, dQ.array)
            if self.normed:
                _take_off(Q.array, found[1], dQ.array)

        def of_values() -> None:
            device.dense([Operand(K.array)], _values(heads, found[0]), PLAIN, dV.array)

        def of_keys() -> None:
            W = device.xp.ascontiguousarray(_values(heads, found[0]).T)
            device.dense([Operand(V.array)], W, PLAIN, dK.array)
            dK.array[...] += row_sums(device.xp, heads.split(found[0])[:, :, -1])
            device.activate(dK.array, engine.nodes())
            if self.normed:
                _take_off(K.array, found[2], dK.array)

        engine.over_all("by_queries", [dR, Q], [dQ, Q], of_queries, (dR.width, f))
        engine.over_all("by_values", [K], [dV], of_values, (f, f))
        engine.over_all("by_keys", [V, K], [dK, K], of_keys, (f, f))
        return dQ, dK, dV

    def _learn_back(self, engine: Engine, Q: Array, dR: Array, kept: Any) -> tuple[Array, Array, Array]:
        """[f, h (k+1)] c Q^T dR, and [f] x / |Q|^2 and x / |K|^2."""
        device, heads = engine.device, self.heads
        M, c, q2, k2 = kept
        part = device.gram_roots([Operand(Q)], dR, engine.starts, engine.spans)
        S = engine.add_up([part])[0].reshape(Q.shape[1], -1)
        S = (heads.split(S) * heads.own[:, :, None]).reshape(S.shape)
        x = heads.spread(device.row_dots(M, S))
        return c[:, None] * S, x * one_over(device.xp, q2), x * one_over(device.xp, k2)


class OfEachGraph:
    """The nodes of each graph of a set by themselves: the matrix R of a readout (graphs/members.py) adds up
    the rows of a graph's nodes, and R^T gives the sum to each of them. K^T V+ of a graph is made one row a
    head at a time, k times, so that no graph has a matrix of its own anywhere.

    Ranks   rows partitioned; 2 (k + 1) exchanges forward and 2 (2 k + 1) backward, of h (k + 1) columns, of
            the rows of graphs that do not lie on one rank
    """

    def __init__(self, heads: Heads, normed: bool) -> None:
        self.heads, self.normed = heads, normed

    def forward(self, engine: Engine, Q: Rows, K: Rows, V: Rows, R: Rows) -> Rows:
        """R, and rows [n_own, 3 h] of c, |Q|^2 and |K|^2. Ranks: all call."""
        h, device = self.heads.count, engine.device
        C, T, P = engine.take("c", 3 * h), engine.take("squares", Q.width), engine.take("sums", 3 * h)

        def learn() -> None:
            xp, found = device.xp, C.array
            found[:, :h] = engine.nodes()[:, None]
            for at, X in enumerate((Q.array, K.array), start=1):
                xp.multiply(X, X, out=T.array)
                found[:, at * h : (at + 1) * h] = self.heads.dots(T.array)
            self._to_each(engine, found, P.array)
            sizes = found[:, :h]
            c = xp.where(sizes > np.float32(self.normed), one_over(xp, sizes), np.float32(0))
            if self.normed:
                c = c * one_over(xp, xp.sqrt(found[:, h : 2 * h]) * xp.sqrt(found[:, 2 * h :]))
            found[:, :h] = c

        engine.over_all("squares", [Q, K], [C, T, P], learn, (0, Q.width), (3 * h, 3 * h))
        engine.free(T, P)
        self.again(engine, Q, K, V, R, C)
        return C

    def again(self, engine: Engine, Q: Rows, K: Rows, V: Rows, R: Rows, kept: Rows) -> None:
        """R once more. Ranks: all call."""
        heads, width = self.heads, R.width
        B, P = engine.take("KV", width), engine.take("sums", width)

        def work() -> None:
            R.array[...] = 0
            weight = kept.array[:, : heads.count]
            for a in range(heads.columns):
                self._of_key(engine, K.array, V.array, a, B.array, P.array)
                each = heads.split(B.array)
                each *= (weight * self._column(Q.array, a))[:, :, None]
                R.array[...] += B.array

        engine.over_all("weigh_each", [Q, K, V, kept], [R, B, P], work, (0, width), self._travels(width, 2))
        engine.free(B, P)

    def _travels(self, width: int, times: int) -> tuple[int, ...]:
        """Columns of the rows that travel, to graphs and back."""
        return (width,) * (times * self.heads.columns)

    def _to_each(self, engine: Engine, X: Array, P: Array) -> None:
        """In the place of X [n_own, m] its sum over the nodes of each graph, in the rows of these; P: room.
        Ranks: all call (two exchanges)."""
        to_graphs, to_nodes = engine.pooling
        P[...] = 0
        to_graphs.accumulate(X, P)
        X[...] = 0
        to_nodes.accumulate(P, X)

    def _column(self, X: Array, a: int) -> Array:
        """[n_own, h] column a of each head."""
        return X[:, a :: self.heads.columns]

    def _of_key(self, engine: Engine, K: Array, V: Array, a: int, B: Array, P: Array) -> None:
        """B = the sum over the nodes of a graph of K_a V+, by heads. Ranks: all call."""
        each, key = self.heads.split(B), self._column(K, a)
        engine.device.xp.multiply(key[:, :, None], self.heads.split(V), out=each[:, :, :-1])
        each[:, :, -1] = key
        self._to_each(engine, B, P)

    def backward(
        self, engine: Engine, Q: Rows, K: Rows, V: Rows, dR: Rows, kept: Rows
    ) -> tuple[Rows, Rows, Rows]:
        """dQ, dK and dV; Q, K, V, dR and what was kept are lost. Ranks: all call."""
        f, width = Q.width, dR.width
        dQ, dK, dV = (engine.take(f"d{X.name}", f) for X in (Q, K, V))
        B, P = engine.take("KV", width), engine.take("sums", width)

        def work() -> None:
            dV.array[...] = 0
            for a in range(self.heads.columns):
                self._back_of(engine, a, [X.array for X in (Q, K, V, dR, kept, dQ, dK, dV, B, P)])

        arrays = [Q, K, V, dR, kept]
        exchanges = self._travels(width, 4)
        engine.over_all("by_each", arrays, [dQ, dK, dV, B, P], work, (0, width), exchanges)
        engine.free(B, P)
        if self.normed:
            self._norms_back(engine, Q, K, dQ, dK, kept)
        engine.free(kept)
        return dQ, dK, dV

    def _back_of(self, engine: Engine, a: int, arrays: list[Array]) -> None:
        """Column a of each head of dQ and dK, and its part of dV. Ranks: all call."""
        Q, K, V, dR, kept, dQ, dK, dV, B, P = arrays
        xp, heads, weight = engine.device.xp, self.heads, kept[:, : self.heads.count]
        each = heads.split(B)
        self._of_key(engine, K, V, a, B, P)
        B *= dR
        self._column(dQ, a)[...] = weight * heads.dots(B)
        xp.multiply((weight * self._column(Q, a))[:, :, None], heads.split(dR), out=each)
        self._to_each(engine, B, P)
        by_heads, values = heads.split(P), heads.split(V)
        xp.multiply(each[:, :, :-1], self._column(K, a)[:, :, None], out=by_heads[:, :, :-1])
        heads.split(dV)[...] += by_heads[:, :, :-1]
        each[:, :, :-1] *= values
        self._column(dK, a)[...] = heads.dots(B)

    def _norms_back(self, engine: Engine, Q: Rows, K: Rows, dQ: Rows, dK: Rows, kept: Rows) -> None:
        """dQ -= Q x / |Q|^2, dK -= K x / |K|^2, x the sum over a graph of Q * dQ. Ranks: all call."""
        h = self.heads.count
        T, X, P = engine.take("QdQ", Q.width), engine.take("x", h), engine.take("sums", h)

        def work() -> None:
            xp = engine.device.xp
            xp.multiply(Q.array, dQ.array, out=T.array)
            X.array[...] = self.heads.dots(T.array)
            self._to_each(engine, X.array, P.array)
            for at, (Y, dY) in enumerate(((Q, dQ), (K, dK)), start=1):
                share = X.array * one_over(xp, kept.array[:, at * h : (at + 1) * h])
                rows = self.heads.split(Y.array)
                rows *= share[:, :, None]
                dY.array[...] -= Y.array

        engine.over_all(
            "norms_back", [Q, K, dQ, dK, kept], [dQ, dK, Q, K, T, X, P], work, (0, Q.width), (h, h)
        )
        engine.free(T, X, P)


def share_of(nodes: int, normed: bool) -> float:
    """1/N. Of a single node, which hears itself alone, 0 where Q and K are divided by their norms: the share
    by which it hears others would be -1 for some weights."""
    return 1 / nodes if nodes > int(normed) else 0.0


def one_over(xp: Any, x: Array) -> Array:
    """1/x of numbers from 0 on, 0 where x is 0."""
    return xp.where(x > 0, np.float32(1) / xp.where(x > 0, x, np.float32(1)), np.float32(0))


def _take_off(X: Array, share: Array, dX: Array) -> None:
    """dX -= X share, share [f]; X is lost."""
    X *= share
    dX -= X


def _values(heads: Heads, M: Array) -> Array:
    """[f, f] the columns of M [f, h (k+1)] that meet V."""
    return heads.device.xp.ascontiguousarray(heads.split(M)[:, :, :-1]).reshape(len(M), -1)
