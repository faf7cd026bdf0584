"""Products of app/numerics/products.py by the kernels spmm.cu, dense.cu, gram.cu and choose.cu."""

from typing import Any

import numpy as np

from app.cuda.kernels import NULL, THREADS, Kernels, by_four, matrix, vector, whole
from app.cuda.matrix import CudaMatrix
from app.errors import NumericsError
from app.numerics.products import PLAIN, Finish, Members, Operand, Products

Array = Any
WIDTHS = (16, 32, 64, 128)  # columns of the kernels of four columns a lane
PADDED = 16  # entries of a row, in the mean, from which on copies of operands cost less than they gain
WARPS = 8  # of a block
SPAN, NARROW = 16, 8  # columns of a warp or block that sums a row with many entries; a block's of up to SPAN
THIN = 4  # columns up to which a dense product has a thread for each element
MERGED = 16  # rows that a thread of merge_rows adds up
PARTS = 3  # that dense.cu takes
GRAM_BYTES = 64 << 20  # of the sums of row blocks that are merged at a time
TABLES = 64  # arrays of row offsets that stay on the device
TABLE_BYTES = 64 << 20  # of them together
KEY_THREADS = 1 << 15  # that look for the largest key of all states
MOST_TOPS = 16  # keys that are found one after the other; more are found by sorting


class CudaProducts(Products):
    """Layer products of a device with `kernels`."""

    kernels: Kernels
    writes_products = True
    adds_into_columns = True
    makes_rows = True

    def __init__(self) -> None:
        self._tables: dict[tuple[Any, ...], Array] = {}
        self._sums: Array = None
        self._batches: dict[int, tuple[Members, tuple[Array, ...]]] = {}

    # ---- sparse -------------------------------------------------------------------------------------------

    def spmm_add(
        self,
        A: CudaMatrix,
        X: Array,
        Y: Array,
        live: Array | None = None,
        write: bool = False,
        gate: Operand | None = None,
    ) -> None:
        """Y += A X; see HostDevice.spmm_add. Y may be columns of a wider array."""
        n, c = Y.shape
        if A.shape[0] != n or A.shape[1] != X.shape[0] or X.shape[1] != c:
            raise NumericsError(f"sparse product: {A.shape} times {X.shape} does not fit {Y.shape}")
        if not n or not c:
            return
        if c % 4 and c > 4 and live is gate is None and A.nnz > PADDED * max(A.shape):
            self._spmm_padded(A, X, Y, write)
            return
        f = c if live is None else c * n // live.shape[0]
        f = f if gate is None else gate.X.shape[1]
        states = n * (c // f)
        values, index = (NULL, NULL) if gate is None else (whole(gate.X), vector(gate.index, None, np.int32))
        product = (
            np.int64(n), np.int32(c), np.int32(f), A.indptr, A.indices, vector(A.data, A.nnz), whole(X),
            *matrix(Y), vector(live, states), np.int32(write), values, index,
        )  # fmt: skip
        four = by_four((X, c, c), (*matrix(Y), c), (values, f, f)) and not f % 4
        self._launch_spmm(A, product, c, four, live is not None)

    def _launch_spmm(self, A: CudaMatrix, product: tuple[Any, ...], c: int, four: bool, masked: bool) -> None:
        """The kernel for c columns, four of which are read at a time or one: for rows of all lengths."""
        longest = A.longest(c)
        longer, more = A.longer(A.most(c)), A.longer(longest)
        rows = A.lines, A.long, *map(np.int32, (longest, longer, more))
        blocks = longer * -(-c // (NARROW if four and c <= SPAN else SPAN))
        blocks += -(-(more - longer) * -(-c // SPAN) // WARPS)
        if four:
            wide = next((w for w in WIDTHS if w >= c), WIDTHS[-1])
            wide = 2 * wide if c > wide and not masked else wide
            name, lanes, more = f"spmm_{wide}", min(wide // 4, 32), ()
        else:
            wide = lanes = min(1 << (c - 1).bit_length(), 32)
            name, more = "spmm_any", (np.int32(lanes),)
        blocks += -(-A.shape[0] * lanes // THREADS)
        self.kernels.launch_blocks(name, blocks, *product, *rows, *more, across=-(-c // wide))

    def _spmm_padded(self, A: CudaMatrix, X: Array, Y: Array, write: bool) -> None:
        """spmm_add by copies of the operands, with zero columns up to a multiple of four."""
        c, wide = X.shape[1], -(-X.shape[1] // 4) * 4
        left, sums = (self.zeros((rows, wide)) for rows in (A.shape[1], A.shape[0]))
        left[:, :c] = X
        if not write:
            sums[:, :c] = Y
        self.spmm_add(A, left, sums, write=write)
        Y[...] = sums[:, :c]

    def spmm_lookup(
        self,
        A: CudaMatrix,
        table: Array,
        code: Array,
        Y: Array,
        live: Array | None = None,
        write: bool = False,
    ) -> None:
        """Y += A X for rows of X that stand in a table; see Products.spmm_lookup."""
        n, (_, states), f = A.shape[0], code.shape, table.shape[1]
        codes = vector(code.reshape(-1), A.shape[1] * states, np.int32)
        self.kernels.launch(
            "spmm_lookup", n * states * f, np.int64(n), np.int32(states), np.int32(f), A.indptr, A.indices,
            whole(table), codes, whole(Y, states * f), vector(live, n * states), np.int32(write),
        )  # fmt: skip

    # ---- dense --------------------------------------------------------------------------------------------

    def dense(self, parts: list[Operand], W: Array, then: Finish = PLAIN, out: Array | None = None) -> Array:
        """[parts] W and what follows it; see Products.dense."""
        return self._dense(parts, W, then, out, False)

    def dense_through(self, parts: list[Operand], W: Array, H: Array, drop: Any) -> None:
        """The gradient by H in its place; see Products.dense_through. An element is read by who writes it."""
        scale = None if drop is None else self.xp.full(len(H), drop.factor, dtype=np.float32)
        self._dense(parts, W, Finish(scale=scale, gate=H), H, True)

    def _dense(self, parts: list[Operand], W: Array, then: Finish, out: Array | None, shuts: bool) -> Array:
        """dense; where it `shuts`, elements whose gate is at most 0 are zero, not zero times something."""
        if len(parts) > PARTS:
            for part in parts:
                self._make(part)
            parts = [Operand(self.xp.concatenate([part.rows() for part in parts], axis=1))]
        rows, m = _rows_of(parts, then), W.shape[1] if parts else then.base.shape[1]
        Z = self.empty((rows, m)) if out is None else out
        if not rows or not m:
            return Z
        k = sum(part.X.shape[1] for part in parts)
        W = whole(self.xp.ascontiguousarray(W), m) if parts else NULL
        if parts and W.shape[0] != k:
            raise NumericsError(f"dense product: {k} columns times {W.shape}")
        operands = (
            np.int64(rows), np.int32(m), *self._parts(parts, rows), W, *matrix(Z, rows, m),
            *_finish(then, rows, m, shuts),
        )  # fmt: skip
        if any(part.made is not None for part in parts):
            return self._dense_made(parts, operands, rows, Z)
        self._launch_dense(operands, rows, m)
        return Z

    def _launch_dense(self, operands: tuple[Any, ...], rows: int, m: int) -> None:
        """The kernel of a width."""
        if m <= THIN:
            self.kernels.launch("dense_thin", rows * m, *operands)
            return
        width = next((w for w in WIDTHS if w >= m), WIDTHS[-1])
        parts = [operands[2 + 5 * i : 7 + 5 * i] for i in range(PARTS)]
        W, Z, ldz = operands[2 + 5 * PARTS : 5 + 5 * PARTS]
        form = ""
        if by_four(*(part[:3] for part in parts), (W, m, m), (Z, ldz, m)):
            one = width >= 64 and parts[0][4] is NULL and all(part[0] is NULL for part in parts[1:])
            form = "_one" if one else "_4"
        self.kernels.launch_blocks(f"dense_{width}{form}", -(-rows // 128), *operands, across=-(-m // width))

    def _dense_made(self, parts: list[Operand], operands: tuple[Any, ...], rows: int, Z: Array) -> Array:
        """dense with one part whose rows are made on the way: in the same kernel where they fit a block."""
        (which,) = (i for i, part in enumerate(parts) if part.made is not None)
        made, N = parts[which].made, parts[which].X
        states, f = made.code.shape[1], made.table.shape[1]
        if f > THREADS or THREADS % f:
            self._make(parts[which])
            self._launch_dense(operands, rows, Z.shape[1])
            return Z
        codes = vector(made.code.reshape(-1), made.A.shape[1] * states, np.int32)
        self.kernels.launch_blocks(
            "dense_made", -(-rows // (THREADS // f)), *operands, np.int32(which), np.int32(states),
            np.int32(f), made.A.indptr, made.A.indices, whole(made.table), codes, vector(made.live, rows),
            whole(N, f),
        )  # fmt: skip
        return Z

    def _make(self, part: Operand) -> None:
        """The rows of a part that a product is to make, by a kernel of their own."""
        if part.made is not None:
            table, code = part.made.table, part.made.code
            rows = part.X.reshape(-1, code.shape[1] * table.shape[1])
            self.spmm_lookup(part.made.A, table, code, rows, part.made.live, True)

    def _parts(self, parts: list[Operand], rows: int) -> list[Any]:
        """The arguments of dense.cu for its three parts."""
        found: list[Any] = []
        for part in parts:
            X, ld = matrix(part.X)
            index = self._index(part.index, rows)
            found += [X, ld, np.int32(part.X.shape[1]), index, vector(part.scale, rows)]
        missing = [NULL, np.int64(0), np.int32(0), NULL, NULL]
        return found + missing * (PARTS - len(parts))

    def _index(self, index: Array | None, rows: int) -> Any:
        return NULL if index is None else vector(index.astype(np.int32, copy=False), rows, np.int32)

    def row_product(self, X: Array, W: Array) -> Array:
        """X W; see HostDevice.row_product."""
        return self.dense([Operand(X)], W)

    def gated_spread(self, values: Array, index: Array, gate: Array) -> Array:
        """values[index] * (gate > 0); see Products.gated_spread."""
        rows, m = gate.shape
        out = self.empty((rows, m))
        numbers = self._index(index, rows)
        self.kernels.launch(
            "gated_spread", rows * m, np.int64(rows), np.int32(m), whole(values, m), numbers, whole(gate), out
        )
        return out

    def plus(self, a: Array, b: Array) -> Array:
        """a + b, both [w]: CuPy's own sum makes zeros of numbers below 2^-126."""
        out = a.copy()
        operands = *matrix(out[None]), *matrix(b[None], 1, len(b))
        self.kernels.launch("add_into", len(b), np.int64(1), np.int32(len(b)), *operands, np.float32(1))
        return out

    # ---- sums over rows -----------------------------------------------------------------------------------

    def _table(self, values: np.ndarray) -> Array:
        """[...] int64 host numbers on the device, kept: the same few are used again and again."""
        values = np.ascontiguousarray(values, dtype=np.int64)
        key = (values.shape, values.tobytes())
        if key not in self._tables:
            kept = sum(len(content) for _, content in self._tables) + values.nbytes
            while self._tables and (len(self._tables) == TABLES or kept > TABLE_BYTES):
                oldest = next(iter(self._tables))
                kept -= len(oldest[1])
                del self._tables[oldest]
            self._tables[key] = self.put(values)
        return self._tables[key]

    def gram(self, parts: list[Operand], D: Array, starts: np.ndarray, live: Array | None = None) -> Array:
        """[parts]^T D by row blocks; see Products.gram."""
        blocks = starts.shape[1] - 1
        out = self.empty((blocks, sum(part.X.shape[1] for part in parts) * D.shape[1]))
        self._gram(parts, D, starts, 0, out)
        return out

    def _gram(self, parts: list[Operand], D: Array, starts: np.ndarray, first: int, out: Array) -> None:
        """out [count, k*m] becomes the addends of `count` row blocks from `first` on."""
        graphs, blocks = starts.shape[0], starts.shape[1] - 1
        (rows, m), at = D.shape, 0
        left, ldd = matrix(D)
        for part in parts:
            k = part.X.shape[1]
            tall, broad, name = gram_kernel(k, m)
            sizes = np.int64(graphs), np.int64(blocks), np.int64(first), np.int32(k), np.int32(m)
            X, ld = matrix(part.X)
            plain = part.scale is None and tall >= 64 <= broad
            four = plain and by_four((X, ld, k), (left, ldd, m))
            self.kernels.launch_blocks(
                f"{name}_4" if four else name, out.shape[0], *sizes, self._table(starts), X, ld,
                self._index(part.index, rows), vector(part.scale, rows), left, ldd, out,
                np.int64(out.shape[1]), np.int64(at), across=-(-k // tall) * -(-m // broad),
            )  # fmt: skip
            at += k * m

    def block_gram(self, X: Array, D: Array, starts: np.ndarray) -> Array:
        """X^T D by blocks of rows; see HostDevice.block_gram."""
        return self.gram([Operand(X)], D, starts)

    def gram_roots(
        self,
        parts: list[Operand],
        D: Array,
        starts: np.ndarray,
        spans: list[tuple[int, int, int]],
        live: Array | None = None,
    ) -> Array:
        """[parts]^T D by subtrees of row blocks; see Products.gram_roots.

        Whole subtrees of as many blocks as GRAM_BYTES hold are made and merged at a time.
        """
        width = sum(part.X.shape[1] for part in parts) * D.shape[1]
        roots = self.empty((len(spans), width))
        most = 1 << max(GRAM_BYTES // (4 * max(width, 1)), 1).bit_length() - 1
        for i, (lo, hi, _) in enumerate(spans):
            tops = self.empty((-(-(hi - lo) // most), width))
            for j, first in enumerate(range(lo, hi, most)):
                sums = self._room(min(most, hi - first), width)
                self._gram(parts, D, starts, first, sums)
                tops[j] = self._merge(sums)
            roots[i] = self._merge(tops)
        return roots

    def merge_roots(self, sums: Array, spans: list[tuple[int, int, int]]) -> Array:
        """One addend for each subtree of row blocks; see Products.merge_roots."""
        roots = self.empty((len(spans), sums.shape[1]))
        for i, (lo, hi, _) in enumerate(spans):
            roots[i] = self._merge(sums[lo:hi].copy())
        return roots

    def _room(self, rows: int, width: int) -> Array:
        """[rows, width] unset, in memory that is kept."""
        if self._sums is None or self._sums.shape[0] < rows * width:
            self._sums = None  # the old memory may go before the new one comes
            self._sums = self.empty((rows * width,))
        return self._sums[: rows * width].reshape(rows, width)

    def _merge(self, sums: Array) -> Array:
        """[width], the subtree over rows [count, width], which are overwritten."""
        count, width = sums.shape
        step = 1
        while step < count:
            groups = -(-count // (MERGED * step))
            sizes = np.int64(count), np.int64(width), np.int64(step)
            self.kernels.launch("merge_rows", groups * width, *sizes, sums)
            step *= MERGED
        return sums[0]

    def fold(self, starts: np.ndarray, X: Array) -> Array:
        """Sums of consecutive rows; see HostDevice.fold."""
        count, c = len(starts) - 1, X.shape[1]
        out = self.empty((count, c))
        sizes = np.int64(count), np.int32(c)
        self.kernels.launch("fold", count * c, *sizes, self._table(starts), whole(X), out)
        return out

    def fold_members(self, members: Members, X: Array) -> Array:
        """Sums over the rows of each block and state; see Products.fold_members."""
        f, blocks = X.shape[1], members.nodes.shape[1] - 1
        out = self.empty((blocks, members.states * f))
        member, nodes, _, counts, first, at = self._batch(members)
        sizes = np.int64(blocks), np.int64(members.states), np.int32(f)
        self.kernels.launch(
            "fold_members",
            blocks * members.states * f,
            *sizes,
            member,
            nodes,
            counts,
            first,
            at,
            whole(X),
            out,
        )
        return out

    # ---- choices ------------------------------------------------------------------------------------------

    def _batch(self, members: Members) -> tuple[Array, ...]:
        """A batch on the device, kept while it is the last one but a few: graph of each state, and tables."""
        kept = self._batches.get(id(members))
        if kept is None or kept[0] is not members:
            if len(self._batches) == TABLES:
                del self._batches[next(iter(self._batches))]
            member = np.repeat(np.arange(len(members.counts), dtype=np.int32), members.counts)
            tables = (members.nodes, members.nodes[:, -1], members.counts, members.first, members.at)
            kept = members, (self.put(member), *(self._table(each) for each in tables))
            self._batches[id(members)] = kept
        return kept[1]

    def best_rows(
        self, members: Members, score: Array, candidate: Array, lowest: np.float32, least: np.float32
    ) -> tuple[np.ndarray, np.ndarray]:
        """The best candidate of every state; see Products.best_rows."""
        states = members.states
        keys = self.xp.zeros(states, dtype=np.uint64)
        threads = max(min(int(members.nodes[:, -1].max(initial=0)), KEY_THREADS // max(states, 1)), 1)
        member, _, nodes, counts, first, at = self._batch(members)
        self.kernels.launch(
            "best_rows", states * threads, np.int64(states), np.int64(threads), member, nodes, counts, first,
            at, vector(score), vector(candidate, score.shape[0], np.bool_), np.float32(least), keys,
        )  # fmt: skip
        found = self.get(keys)
        bits = found >> np.uint64(32)
        value = np.where(bits >= 1 << 31, bits - (1 << 31), 0xFFFFFFFF - bits).astype(np.uint32)
        value = np.where(bits == 0xFFFFFFFF, np.float32(np.nan), value.view(np.float32))
        row = np.uint64(0xFFFFFFFF) - (found & np.uint64(0xFFFFFFFF))
        none = found == 0
        return np.where(none, lowest, value), np.where(none, np.uint64(0), row).astype(np.int64)

    def top_keys(self, keys: Array, wanted: int) -> np.ndarray:
        """The largest keys, in no order; see Products.top_keys."""
        n = keys.shape[0]
        if wanted > MOST_TOPS or n <= wanted:
            return super().top_keys(keys, wanted)
        top, threads = self.xp.zeros(wanted, dtype=np.uint64), min(n, KEY_THREADS)
        for place in range(wanted):
            sizes = np.int64(n), np.int64(threads)
            self.kernels.launch("next_key", threads, *sizes, vector(keys, n, np.uint64), np.int32(place), top)
        return self.get(top)


def gram_kernel(k: int, m: int) -> tuple[int, int, str]:
    """The tile that suits a gradient [k, m], and its kernel."""
    if k > 64 and m > 64:
        return 128, 128, "gram_128"
    if k > 32 and m <= 16:
        return 128, 16, "gram_tall"
    return (64, 64, "gram_64") if k > 32 or m > 16 else (32, 16, "gram_16")


def _rows_of(parts: list[Operand], then: Finish) -> int:
    """Rows of a product."""
    if not parts:
        return then.base.shape[0]
    first = parts[0]
    return first.X.shape[0] if first.index is None else first.index.shape[0]


def _finish(then: Finish, rows: int, m: int, shuts: bool) -> tuple[Any, ...]:
    """The arguments of dense.cu for what follows a product."""
    table = None if then.gate_index is not None else rows
    index = None if then.gate_index is None else then.gate_index.astype(np.int32, copy=False)
    return (
        *matrix(then.base, rows, m), vector(then.base_scale, rows), np.int32(then.relu + 2 * shuts),
        vector(then.scale, rows), *matrix(then.gate, table, m), vector(index, rows, np.int32),
    )  # fmt: skip
