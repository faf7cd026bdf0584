"""The sums over nodes that attention between all nodes is made of: of one graph, or of each graph of a set.

With rows Q, K and V+ = [V | 1] of h heads of k columns each, and c = 1/N of a graph of N nodes, both make

    forward    R = Q (c K^T V+)                      by heads: a row of Q meets all rows of K and V+ at once
    backward   dQ = dR (c K^T V+)^T     dK = V+ (c Q^T dR)^T     dV+ = K (c Q^T dR)

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

    def split(self, X: Array) -> Array:
        """[n, h, m] a view of rows X [n, h m]."""
        return X.reshape(len(X), self.count, X.shape[1] // self.count)

    def dots(self, X: Array) -> Array:
        """[n, h] the sums over the columns of each head of rows X [n, f] or [n, h (k+1)]."""
        ones = self.own if X.shape[1] == len(self.own) else self.wide
        return self.device.dense([Operand(X)], ones)


class OfGraph:
    """All nodes of one graph.

    Sums    K^T V and those of K forward, Q^T dR backward: by row blocks and the tree over them, f (f + 1) and
            f (f + h) numbers, the same bits on any number of ranks
    Ranks   rows partitioned, sums replicated; 1 sum forward, 1 backward
    """

    def __init__(self, heads: Heads, others: bool) -> None:
        """others   a node that is alone hears nothing: c = 0 in place of 1."""
        self.heads, self.others = heads, others

    def forward(self, engine: Engine, Q: Rows, K: Rows, V: Rows, R: Rows) -> Any:
        """R, and c K^T V+ [f, h (k+1)], which backward needs. Ranks: all call (one sum)."""
        f = Q.width
        learn = lambda: self._learn(engine, K.array, V.array)  # noqa: E731
        kept = engine.over_all("sums", [K, V], [], learn, (f, f + 1))
        self.again(engine, Q, K, V, R, kept)
        return kept

    def again(self, engine: Engine, Q: Rows, K: Rows, V: Rows, R: Rows, kept: Any) -> None:
        """R once more."""
        work = lambda: engine.device.dense([Operand(Q.array)], kept, PLAIN, R.array)  # noqa: E731
        engine.over_all("weigh", [Q], [R], work, (Q.width, R.width))

    def _learn(self, engine: Engine, K: Array, V: Array) -> Array:
        device, heads, f = engine.device, self.heads, K.shape[1]
        tree = engine.starts, engine.spans
        G, total = engine.add_up([device.gram_roots([Operand(K)], V, *tree), device.column_roots(K, *tree)])
        each, of_ones = heads.split(G.reshape(f, f) * heads.both), total[:, None] * heads.own
        return device.xp.concatenate([each, of_ones[:, :, None]], axis=2).reshape(f, -1) * self._share(engine)

    def _share(self, engine: Engine) -> np.float32:
        """c."""
        return np.float32(share_of(engine.neighbours_of.block.n, self.others))

    def backward(
        self, engine: Engine, Q: Rows, K: Rows, V: Rows, dR: Rows, kept: Any
    ) -> tuple[Rows, Rows, Rows]:
        """dQ, dK and dV. Ranks: all call (one sum)."""
        device, heads, f = engine.device, self.heads, Q.width
        learn = lambda: self._learn_back(engine, Q.array, dR.array)  # noqa: E731
        S = engine.over_all("sums_back", [Q, dR], [], learn, (f, dR.width))
        dQ, dK, dV = (engine.take(f"d{X.name}", f) for X in (Q, K, V))

        def of_queries() -> None:
            device.dense([Operand(dR.array)], device.xp.ascontiguousarray(kept.T), PLAIN, dQ.array)

        def of_values() -> None:
            device.dense([Operand(K.array)], _values(heads, S), PLAIN, dV.array)

        def of_keys() -> None:
            W = device.xp.ascontiguousarray(_values(heads, S).T)
            device.dense([Operand(V.array)], W, PLAIN, dK.array)
            dK.array[...] += row_sums(device.xp, heads.split(S)[:, :, -1])
            device.activate(dK.array, engine.nodes())

        engine.over_all("by_queries", [dR], [dQ], of_queries, (dR.width, f))
        engine.over_all("by_values", [K], [dV], of_values, (f, f))
        engine.over_all("by_keys", [V], [dK], of_keys, (f, f))
        return dQ, dK, dV

    def _learn_back(self, engine: Engine, Q: Array, dR: Array) -> Array:
        """c Q^T dR [f, h (k+1)]."""
        heads = self.heads
        part = engine.device.gram_roots([Operand(Q)], dR, engine.starts, engine.spans)
        S = heads.split(engine.add_up([part])[0].reshape(Q.shape[1], -1)) * heads.own[:, :, None]
        return S.reshape(Q.shape[1], -1) * self._share(engine)


class OfEachGraph:
    """The nodes of each graph of a set by themselves: the matrix R of a readout (graphs/members.py) adds up
    the rows of a graph's nodes, and R^T gives the sum to each of them. K^T V+ of a graph is made one row a
    head at a time, k times, so that no graph has a matrix of its own anywhere.

    Ranks   rows partitioned; 2 k + 2 exchanges forward and 6 k backward, of h (k + 1) columns, of the rows of
            graphs that do not lie on one rank
    """

    def __init__(self, heads: Heads, others: bool) -> None:
        """others   as of OfGraph."""
        self.heads, self.others = heads, others

    def forward(self, engine: Engine, Q: Rows, K: Rows, V: Rows, R: Rows) -> Rows:
        """R, and rows [n_own, 1] of c. Ranks: all call."""
        C, P = engine.take("c", 1), engine.take("sums", 1)

        def learn() -> None:
            C.array[:, 0] = engine.nodes()
            self._to_each(engine, C.array, P.array)
            xp, sizes = engine.device.xp, C.array
            C.array[...] = xp.where(sizes > np.float32(self.others), one_over(xp, sizes), np.float32(0))

        engine.over_all("sizes", [], [C, P], learn, (0, 1), (1, 1))
        engine.free(P)
        self.again(engine, Q, K, V, R, C)
        return C

    def again(self, engine: Engine, Q: Rows, K: Rows, V: Rows, R: Rows, kept: Rows) -> None:
        """R once more. Ranks: all call."""
        heads, width = self.heads, R.width
        B, P = engine.take("KV", width), engine.take("sums", width)

        def work() -> None:
            R.array[...] = 0
            for a in range(heads.columns):
                self._of_key(engine, K.array, V.array, a, B.array, P.array)
                each = heads.split(B.array)
                each *= (kept.array * self._column(Q.array, a))[:, :, None]
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
        """dQ, dK and dV; c is freed. Ranks: all call."""
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
        engine.free(B, P, kept)
        return dQ, dK, dV

    def _back_of(self, engine: Engine, a: int, arrays: list[Array]) -> None:
        """Column a of each head of dQ and dK, and its part of dV. Ranks: all call."""
        Q, K, V, dR, kept, dQ, dK, dV, B, P = arrays
        xp, heads = engine.device.xp, self.heads
        each = heads.split(B)
        self._of_key(engine, K, V, a, B, P)
        B *= dR
        self._column(dQ, a)[...] = kept * heads.dots(B)
        xp.multiply((kept * self._column(Q, a))[:, :, None], heads.split(dR), out=each)
        self._to_each(engine, B, P)
        by_heads, values = heads.split(P), heads.split(V)
        xp.multiply(each[:, :, :-1], self._column(K, a)[:, :, None], out=by_heads[:, :, :-1])
        heads.split(dV)[...] += by_heads[:, :, :-1]
        each[:, :, :-1] *= values
        self._column(dK, a)[...] = heads.dots(B)


def share_of(nodes: int, others: bool) -> float:
    """c: 1/N, or with `others` 0 where a node is alone."""
    return 1 / nodes if nodes > int(others) else 0.0


def one_over(xp: Any, x: Array) -> Array:
    """1/x of numbers from 0 on, 0 where x is 0."""
    return xp.where(x > 0, np.float32(1) / xp.where(x > 0, x, np.float32(1)), np.float32(0))


def _values(heads: Heads, M: Array) -> Array:
    """[f, f] the columns of M [f, h (k+1)] that meet V."""
    return heads.device.xp.ascontiguousarray(heads.split(M)[:, :, :-1]).reshape(len(M), -1)
