"""Products of a network's layers as every device can make them: compositions of row_product and block_gram.

HostDevice replaces them by compiled kernels where those were built; the bits are the same.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = Any
ROWS_THROUGH = 1 << 10  # rows of a gradient that take the place of others at a time
LOOKUP_STATES = 64  # of a graph, with which a product can make its operand's rows


@dataclass
class Lookup:
    """Sums over neighbours that a product makes as it needs them: rows of A X, X[u, s] = table[code[u, s]].

    A       [n, m] CSR, all ones     table [t, f]
    code    [m, states] int32, contiguous, at most LOOKUP_STATES states
    live    [n * states] or None: where this is zero a row is zero
    """

    A: Any
    table: Array
    code: Array
    live: Array | None


@dataclass
class Operand:
    """Some columns of the left operand of a product.

    X       [*, k] float32, a row may be longer than k (a view of columns)
    index   [rows] int32 or None: row r is X[index[r]]
    scale   [rows] float32 or None: row r is multiplied by scale[r]
    made    what X becomes in the first product that it is an operand of, or None: it is as it stands
    """

    X: Array
    index: Array | None = None
    scale: Array | None = None
    made: Lookup | None = None

    def rows(self) -> Array:
        """[rows, k], written out."""
        X = self.X if self.index is None else self.X[self.index]
        return X if self.scale is None else X * self.scale[:, None]

    def of_rows(self, rows: slice) -> "Operand":
        """Some of the rows, not written out."""
        scale = None if self.scale is None else self.scale[rows]
        if self.index is None:
            return Operand(self.X[rows], None, scale)
        return Operand(self.X, self.index[rows], scale)


@dataclass
class Finish:
    """What follows a product, in this order, each only where given.

    Z = base * base_scale + Z;  Z = max(Z, 0) where relu;  Z *= scale;  Z *= (gate > 0)
    A row whose scale is 0 is 0, whatever it would have been.
    base [rows, m]     base_scale, scale [rows]
    gate [rows, m], or a table of which row r takes gate[gate_index[r]]
    """

    base: Array | None = None
    base_scale: Array | None = None
    relu: bool = False
    scale: Array | None = None
    gate: Array | None = None
    gate_index: Array | None = None


class Members:
    """The graphs of a batch as sums over nodes see them: rows are (graph, node, state), see sparse/batch.py.

    nodes      [graphs, blocks+1] int64   row block b of graph g: its nodes nodes[g, b] .. nodes[g, b+1] - 1
    rows       [graphs, blocks+1] int64   the same in rows of the batch
    counts     [graphs] int64             states of each graph
    first, at  [graphs] int64             its first state, and its first row
    """

    def __init__(
        self, nodes: np.ndarray, counts: list[int], first: list[int], at: list[int], states: int
    ) -> None:
        self.nodes, self.states = nodes, states
        self.counts, self.first, self.at = (np.array(a, dtype=np.int64) for a in (counts, first, at))
        self.rows = nodes * self.counts[:, None] + self.at[:, None]


PLAIN = Finish()


def merge_span(leaf: Callable[[int], Array], lo: int, hi: int, level: int) -> Array:
    """The sum of blocks lo..hi-1 as the subtree of `level` that starts at lo, depth first.

    A subtree is its left half, of 2^(level-1) blocks, plus its right half; where there is no right half it is
    its left half. Level 0 is one block. At most level + 1 sums are alive at a time.
    """
    if hi - lo == 1:
        return leaf(lo)
    middle = lo + (1 << (level - 1))
    if middle >= hi:
        return merge_span(leaf, lo, hi, level - 1)
    return merge_span(leaf, lo, middle, level - 1) + merge_span(leaf, middle, hi, level - 1)


def merge_rows(xp: Any, rows: Array) -> Array:
    """[1, m], what merge_span makes of the sums [blocks, m] of a subtree, one level of all at a time."""
    while len(rows) > 1:
        pairs = len(rows) // 2 * 2
        merged = rows[0:pairs:2] + rows[1:pairs:2]
        rows = merged if pairs == len(rows) else xp.concatenate([merged, rows[pairs:]])
    return rows


class Products:
    """Layer products of a device that has `xp`, `row_product` and `block_gram`."""

    xp: Any
    adds_into_columns = False  # True: spmm_add can (HostDevice)
    multiplies_members = False  # True: the device has spmm_members (HostDevice)
    replays = False  # True: launches that are repeated may be recorded (CudaDevice)
    deactivate: Callable[..., None]  # of Elementwise
    tell: Callable[[str], None] = staticmethod(print)  # one line for the log
    makes_rows = False  # True: its dense products make the rows of parts that say so (HostDevice)
    follows_rows = False  # True: it keeps rows of scores as they change (app/cuda/changes.py)
    writes_products = False  # True: its sparse products can write their output (HostDevice)

    def tile(self, A: Any, width: int) -> int:
        """Get ready for many products of a CSR matrix with up to `width` columns: by a copy of its entries
        in another order, where that gains anything. Its bytes, or 0. No bit of a product changes."""
        return 0

    def tiled_bytes(self, shape: tuple[int, int], entries: int, weighted: bool, width: int) -> int:
        """About what `tile` makes of a matrix, with weights or of ones."""
        return 0

    def dense(self, parts: list[Operand], W: Array, then: Finish = PLAIN, out: Array | None = None) -> Array:
        """[parts] W and what follows it; an element is one chain over the columns of all parts in order.

        parts     none: the product is zero, and `then.base` has its shape
        W         [sum of k, m]
        out       [rows, m] row-major, no operand's memory: becomes the result; None: it is made
        returns   [rows, m], rows a multiple of 8
        """
        xp = self.xp
        if parts:
            rows = [part.rows() for part in parts]
            U = xp.concatenate(rows, axis=1) if len(rows) > 1 else xp.ascontiguousarray(rows[0])
            Z = self.row_product(U, xp.ascontiguousarray(W))
        else:
            Z = xp.zeros(then.base.shape, dtype=then.base.dtype)
        if then.base is not None:
            base = then.base if then.base_scale is None else then.base * then.base_scale[:, None]
            Z = base + Z
        if then.relu:
            Z = xp.maximum(Z, 0, out=Z)
        if then.scale is not None:
            scale = then.scale[:, None]
            Z = xp.where(scale != 0, Z * scale, 0)
        if then.gate is not None:
            gate = then.gate if then.gate_index is None else then.gate[then.gate_index]
            Z *= gate > 0
        if out is None:
            return Z
        out[...] = Z
        return out

    def chains(self, X: Array, W: Array) -> Array:
        """[r, m] X W of any rows X [r, k], each element one chain over the columns, also where
        run.portable = false hands other products to BLAS, whose bits may depend on how many there are."""
        return self.dense([Operand(X)], W)

    def dense_through(self, parts: list[Operand], W: Array, H: Array, drop: Any) -> None:
        """The gradient [parts] W by H = drop(relu(U)) becomes, in the place of H, the gradient by U.

        H      [rows, m] row-major: elements at or below 0 become 0, the others those of the product times
               drop.factor; no operand's memory
        drop   a Dropout or None
        """
        room = self.xp.empty((min(ROWS_THROUGH, len(H)), H.shape[1]), dtype=H.dtype)
        for lo in range(0, len(H), ROWS_THROUGH):
            rows = slice(lo, lo + ROWS_THROUGH)
            old = H[rows]
            new = self.dense([part.of_rows(rows) for part in parts], W, PLAIN, room[: len(old)])
            self.deactivate(new, old, None, drop, True)
            old[...] = new

    def dense_pooled(
        self, parts: list[Operand], W: Array, then: Finish, members: Members
    ) -> tuple[Array, Array]:
        """dense, and fold_members of what it returns."""
        Z = self.dense(parts, W, then)
        return Z, self.fold_members(members, Z)

    def gram(self, parts: list[Operand], D: Array, starts: np.ndarray, live: Array | None = None) -> Array:
        """[parts]^T D, one addend per row block: a chain over the rows of the block, graph by graph.

        D         [rows, m]
        starts    [graphs, blocks+1] int64 host: block b of graph g is rows starts[g, b] .. starts[g, b+1]-1
        live      [rows] or None: D is zero where this is, and such rows may be left out
        returns   [blocks, sum of k * m]
        """
        xp = self.xp
        rows = [part.rows() for part in parts]
        U = xp.concatenate(rows, axis=1) if len(rows) > 1 else xp.ascontiguousarray(rows[0])
        return self.block_gram(U, D, starts)

    def gram_roots(
        self,
        parts: list[Operand],
        D: Array,
        starts: np.ndarray,
        spans: list[tuple[int, int, int]],
        live: Array | None = None,
    ) -> Array:
        """[parts]^T D, one addend for each subtree of row blocks: see merge_span and app/comm/tree.py.

        D, live   as in gram
        starts    [1, blocks+1] int64 host: this rank's block b is rows starts[0, b] .. starts[0, b+1]-1
        spans     subtrees as (first block, last block + 1, level), blocks of this rank
        returns   [len(spans), sum of k * m]
        """

        def leaf(block: int) -> Array:
            lo, hi = int(starts[0, block]), int(starts[0, block + 1])
            rows, own = slice(lo, hi), np.array([[0, hi - lo]], dtype=np.int64)
            part_live = None if live is None else live[rows]
            return self.gram([part.of_rows(rows) for part in parts], D[rows], own, part_live)[0]

        roots = [merge_span(leaf, *span) for span in spans]
        width = sum(part.X.shape[1] for part in parts) * D.shape[1]
        return self.xp.stack(roots) if roots else self.zeros((0, width))

    def column_roots(self, D: Array, starts: np.ndarray, spans: list[tuple[int, int, int]]) -> Array:
        """Sums of the rows of D [rows, m], one addend for each subtree of row blocks: [len(spans), m].

        A block's addend is a chain over its rows; starts and spans as in gram_roots.
        """
        return self.merge_roots(self.fold(starts[0], D), spans)

    def merge_roots(self, sums: Array, spans: list[tuple[int, int, int]]) -> Array:
        """[len(spans), m], one addend for each subtree of row blocks, from those of blocks [blocks, m]."""
        roots = [merge_rows(self.xp, sums[lo:hi]) for lo, hi, _ in spans]
        return self.xp.concatenate(roots) if roots else self.zeros((0, sums.shape[1]))

    def repeated(self) -> Callable[[list[Array], Callable[[], Any]], Any]:
        """What does work(operands, work) that is repeated in the same memory; see app/cuda/graph.py."""
        return lambda operands, work: work()

    def plus(self, a: Array, b: Array) -> Array:
        """a + b, both [w] float32."""
        return a + b

    def zeros(self, shape: tuple[int, ...]) -> Array:
        """A float32 array of zeros."""
        return self.xp.zeros(shape, dtype=np.float32)

    def empty(self, shape: tuple[int, ...]) -> Array:
        """An unset float32 array."""
        return self.xp.empty(shape, dtype=np.float32)

    def stage_out(self, slot: str, X: Array) -> np.ndarray:
        """A copy of a device array on the host, valid until the next call with this slot."""
        return self.get(X)

    def stage_buffer(self, slot: str, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """Unset host memory to receive into, for stage_in, until the next call with this slot."""
        return np.empty(shape, dtype=dtype)

    def stage_in(self, slot: str, host: np.ndarray) -> Array:
        """A stage_buffer, or its first rows, on the device."""
        return self.put(host)

    def spmm_lookup(self, A: Any, table: Array, code: Array, Y: Array, live: Array | None = None) -> None:
        """Y += A X where the rows of X stand in a table: X[u, s] = table[code[u, s]].

        table   [t, f]     code [m, states] int32     Y [n, states*f]     live as in spmm_add
        """
        X = table[code.reshape(-1)].reshape(code.shape[0], code.shape[1] * table.shape[1])
        self.spmm_add(A, X, Y, live)

    def fold_members(self, members: Members, X: Array) -> Array:
        """Sums over the rows of each row block, for every state.

        X         [rows, f]
        returns   [blocks, states*f]
        """
        f, blocks = X.shape[1], members.nodes.shape[1] - 1
        out = self.xp.zeros((blocks, members.states * f), dtype=X.dtype)
        layout = zip(members.nodes, members.counts.tolist(), members.first.tolist(), members.at.tolist())
        for nodes, count, first, at in layout:
            rows = X[at : at + int(nodes[-1]) * count].reshape(int(nodes[-1]), count * f)
            out[:, first * f : (first + count) * f] = self.fold(nodes, rows)
        return out

    def score(self, parts: list[Operand], W: Array, w: Array, then: Finish) -> Array:
        """[rows], each row of dense(parts, W, then) times w [m, 1], as one chain."""
        return self.row_product(self.dense(parts, W, then), w)[:, 0]

    def best_rows(
        self, members: Members, score: Array, candidate: Array, lowest: np.float32, least: np.float32
    ) -> tuple[np.ndarray, np.ndarray]:
        """The best candidate of every state, as one small array from the device.

        score      [rows]   raised to `least`; the first of equal ones wins, NaN is above all
        candidate  [rows] bool
        returns    score [states] float32 (`lowest` where there is none), local row of the node [states] int64
        """
        xp, tops, rows = self.xp, [], []
        masked = xp.where(candidate, xp.maximum(score, least), lowest)
        for nodes, count, at in zip(
            members.nodes[:, -1].tolist(), members.counts.tolist(), members.at.tolist()
        ):
            if nodes == 0:
                tops.append(xp.full(count, lowest, dtype=np.float32))
                rows.append(xp.zeros(count, dtype=np.int32))
            else:
                X = masked[at : at + nodes * count].reshape(nodes, count)
                tops.append(X.max(axis=0))
                rows.append(X.argmax(axis=0).astype(np.int32))
        both = self.get(xp.stack([xp.concatenate(tops).view(np.int32), xp.concatenate(rows)]))
        return np.ascontiguousarray(both[0]).view(np.float32), both[1].astype(np.int64)

    def top_keys(self, keys: Array, wanted: int) -> np.ndarray:
        """The `wanted` largest of keys [n] uint64, in no order, on the host; all where there are fewer."""
        n = len(keys)
        return self.get(keys if n <= wanted else self.xp.partition(keys, n - wanted)[n - wanted :])

    def gated_spread(self, values: Array, index: Array, gate: Array) -> Array:
        """[rows, m], row r is values[index[r]] * (gate[r] > 0)."""
        return values[index] * (gate > 0)
