"""Every kernel with operands of all its forms, for bench/gpu_check.py to compare with the CPU path."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from app.device import HostDevice
from app.gnn.optim import Adam
from app.numerics.elementwise import Dropout
from app.numerics.products import Finish, Lookup, Members, Operand
from app.rl.select import make_keys
from bench.gpu_tools import normal

Array = Any
# A name, the same work on any device, its host operands, and where there is one the result in float64.
Case = tuple[str, Callable[..., Any], list[np.ndarray], Callable[..., np.ndarray] | None]
WIDTHS = (1, 16, 20, 64, 100, 256, 300)
DROP = Dropout(key=0xABCDEF0123456789, share=0.4, first_row=1 << 33)
DENSE = (16, 1), (40, 16), (24, 32), (33, 30), (40, 47), (128, 64), (70, 130), (256, 256), (602, 16)


def csr(n: int, longest: int) -> tuple[np.ndarray, np.ndarray, tuple[int, int]]:
    """A matrix with empty rows and one row of `longest` entries."""
    draws = np.random.Generator(np.random.Philox(key=n))
    counts = draws.integers(0, 12, n) * (draws.random(n) > 0.2)
    counts[n // 2] = longest
    m = max(2 * longest, n)
    columns = [np.sort(draws.choice(m, count, replace=False)) for count in counts]
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return indptr, np.concatenate(columns).astype(np.int32), (n, m)


def sparse_cases(n: int, longest: int) -> Iterator[Case]:
    """Sparse products by width, with and without stored values."""
    indptr, indices, shape = csr(n, longest)
    rows = np.repeat(np.arange(n), np.diff(indptr))
    for c in WIDTHS:
        for data in (None, normal("data", len(indices))):

            def work(device: Any, X: Array, Y: Array, data: Any = data) -> Array:
                device.spmm_add(device.csr(indptr, indices, data, shape), X, Y)
                return Y

            def exact(X: np.ndarray, Y: np.ndarray, data: Any = data) -> np.ndarray:
                out = Y.astype(np.float64)
                values = np.ones(len(indices)) if data is None else data.astype(np.float64)
                np.add.at(out, rows, values[:, None] * X[indices].astype(np.float64))
                return out

            name = f"spmm, {c} columns, {'ones' if data is None else 'values'}"
            yield name, work, [normal("X", shape[1], c), normal("Y", n, c)], exact


def form_cases(n: int, longest: int) -> Iterator[Case]:
    """Products into columns of wider rows, of odd widths, of masked states with gates; with a long row."""
    indptr, indices, shape = csr(n, longest)

    def columns(device: Any, X: Array, Y: Array) -> Array:
        A = device.csr(indptr, indices, None, shape)
        if device.adds_into_columns:
            device.spmm_add(A, X, Y[:, 8:24])
        else:
            sums = device.xp.ascontiguousarray(Y[:, 8:24])
            device.spmm_add(A, X, sums)
            Y[:, 8:24] = sums
        return Y

    yield "spmm into columns", columns, [normal("X", shape[1], 16), normal("Y", n, 40)], None

    every = (np.arange(40 * n, dtype=np.int64) * 7 % shape[1]).astype(np.int32)

    def padded(device: Any, X: Array, Y: Array) -> Array:
        device.spmm_add(device.csr(np.arange(0, 40 * n + 1, 40), every, None, shape), X, Y)
        return Y

    yield "spmm, 47 columns of many entries", padded, [normal("X", shape[1], 47), normal("Y", n, 47)], None

    live = (np.arange(2 * n) % 3 > 0).astype(np.float32)

    def masked(device: Any, X: Array, live: Array, gate: Array) -> Array:
        A, Y = device.csr(indptr, indices, None, shape), device.zeros((n, 32))
        if device.writes_products:
            device.spmm_add(A, X, Y, live, write=True, gate=Operand(gate))
            return Y
        device.spmm_add(A, X, Y)
        states = Y.reshape(-1, 16) * (gate > 0)
        return device.xp.where(live[:, None] != 0, states, np.float32(0)).reshape(n, 32)

    yield "spmm of masked states", masked, [normal("X", shape[1], 32), live, normal("G", 2 * n, 16)], None


def changes_cases(n: int, longest: int) -> Iterator[Case]:
    """Products of some rows, and rows and keys that are replaced; the host writes them out."""
    indptr, indices, shape = csr(n, longest)
    rows = np.unique(np.concatenate([np.arange(0, n, 3), [n // 2]]))
    code = (np.arange(len(rows)) % 4).astype(np.int32)

    def work(device: Any, X: Array, w: Array, layers: Array) -> tuple[Array, ...]:
        A, numbers, keys = device.csr(indptr, indices, None, shape), rows.astype(np.int32), None
        if device.follows_rows:
            numbers, marks = device.put(numbers), device.put(code)
            N, keys = device.spmm_rows(A, rows, numbers, X), device.xp.zeros(n, dtype=np.uint64)
            scores = device.dense([Operand(N)], w)[:, 0]
            device.place_keys(keys, numbers, marks, 7, 2, scores)
            device.place_rows(X, numbers, N)
            device.clear_rows(layers, numbers)
            return N, X, keys, layers
        Y, keys = device.zeros((n, X.shape[1])), np.zeros(n, np.uint64)
        device.spmm_add(A, X, Y)
        padded = np.ascontiguousarray(np.pad(Y[rows], ((0, -len(rows) % 8), (0, 0))))
        scores = device.dense([Operand(padded)], w)
        keys[rows] = np.where(code >= 2, make_keys(np, scores[: len(rows), 0], rows + 7), np.uint64(0))
        X[rows], layers[:, rows] = Y[rows], 0
        return Y[rows], X, keys, layers

    for c in (16, 21):
        operands = [normal("X", shape[1], c), normal("w", c, 1), normal("layers", 2, n, c)]
        yield f"some rows, {c} columns", work, operands, None


def table_cases(n: int, longest: int) -> Iterator[Case]:
    """Products of rows that stand in a table, apart and within a layer; n a multiple of 8."""
    states, (indptr, indices, (_, m)) = 2, csr(n, longest)
    code = (np.arange(m * states).reshape(m, states) * 5 % 7).astype(np.int32)

    def work(device: Any, table: Array, code: Array, W: Array) -> tuple[Array, ...]:
        A, f = device.csr(indptr, indices, None, (n, m)), table.shape[1]
        N = device.zeros((n, states * f))
        device.spmm_lookup(A, table, code, N)
        part = Operand(N.reshape(-1, f))
        if device.makes_rows:
            part = Operand(device.empty((n * states, f)), made=Lookup(A, table, code, None))
        return N, device.dense([part], W), part.X

    for f in (16, 12):
        operands = [normal("table", 7, f), code, normal("W", f, 20)]
        yield f"rows of a table, {f} columns", work, operands, None


def triple_cases(nodes: int) -> Iterator[Case]:
    """Sums over the triples of a knowledge graph."""
    count, relations = 3 * nodes, 5
    ends = np.arange(2 * count).reshape(2, count) ** 2 % nodes
    starts = np.linspace(0, count, relations + 1).astype(np.int64)
    relation = np.repeat(np.arange(relations), np.diff(starts))
    triples = np.stack([ends[0], relation, ends[1]]).astype(np.int32)

    def work(device: Any, E: Array, D: Array) -> tuple[Array, ...]:
        g = device.triple_scores(triples, E, D)
        half = nodes // 2
        sums = [device.triple_node_sums(triples, g, E, D, *own) for own in ((0, half), (half, nodes))]
        return g, device.triple_relation_sums(starts, triples, g, E), *sums

    yield "sums over triples", work, [normal("E", nodes, 33), normal("D", relations, 33)], None


def dense_cases(rows: int) -> Iterator[Case]:
    """Dense products by width, their forms, and sums over blocks of rows."""
    index = (np.arange(rows) * 7 % 11).astype(np.int32)
    scale = np.where(np.arange(rows) % 3 == 0, 0, 1.25).astype(np.float32)
    cuts = np.array([[0, 8, 8, rows // 16 * 8, rows]])
    for k, m in DENSE:

        def product(device: Any, X: Array, W: Array) -> Array:
            return device.dense([Operand(X)], W)

        def exact(X: np.ndarray, W: np.ndarray) -> np.ndarray:
            return X.astype(np.float64) @ W.astype(np.float64)

        def gram(device: Any, X: Array, W: Array, m: int = m) -> Array:
            return device.gram([Operand(X)], device.xp.ascontiguousarray(X[:, :1] * W[:1]), cuts)

        operands = [normal("X", rows, k), normal("W", k, m)]
        yield f"dense, {k} to {m}", product, operands, exact
        yield f"gram, {k} by {m}", gram, operands, None

    def straight(device: Any, X: Array, W: Array, H: Array) -> Array:
        device.dense_through([Operand(X)], W, H, None)
        return H

    for k, m in ((40, 64), (36, 128), (20, 130)):
        operands = [normal("X", rows, k), normal("W", k, m), normal("H", rows, m)]
        yield f"gradient through a layer, {k} to {m}", straight, operands, None

    def scaled(device: Any, X: Array, W: Array, scale: Array) -> Array:
        return device.dense([Operand(X, scale=scale)], W)

    for m in (64, 128):
        operands = [normal("X", rows, 40), normal("W", 40, m), scale]
        yield f"dense of scaled rows, 40 to {m}", scaled, operands, None

    def layer(
        device: Any, X: Array, table: Array, W: Array, base: Array, scale: Array, index: Array
    ) -> Array:
        then = Finish(base, scale, True, scale, table[:, :5].copy(), index)
        return device.dense([Operand(X, scale=scale), Operand(table, index)], W, then)

    widths = normal("X", rows, 9), normal("table", 11, 8), normal("W", 17, 5), normal("base", rows, 5)
    yield "layer in parts, with all that follows", layer, [*widths, scale, index], None

    def tiny(device: Any, X: Array, W: Array) -> tuple[Array, Array]:
        return device.dense([Operand(X)], W), device.plus(X[0], X[1])

    below = [normal("X", rows, 9) * np.float32(1e-39), np.float32(0.01) * normal("W", 9, 5)]
    yield "numbers below 2^-126", tiny, below, None

    def sums(device: Any, X: Array) -> tuple[Array, Array]:
        spans = [(0, 4, 2), (1, 4, 2)]
        return device.fold(cuts[0], X), device.gram_roots([Operand(X)], X, cuts, spans)

    yield "sums of rows, gradient by subtrees", sums, [normal("X", rows, 20)], None


def row_cases(rows: int) -> Iterator[Case]:
    """Activations, losses, normalisation, Adam, attention of both kinds, edges, pairs of nodes, choices."""
    near = attention_cases, dynamic_cases, edge_cases, edge_attention_cases, pair_cases
    for cases in (activation_cases, loss_cases, layer_cases, *near, state_cases):
        yield from cases(rows)


def row_weights(rows: int) -> np.ndarray:
    """[rows] float32, zero on a fifth of them."""
    return np.where(np.arange(rows) % 5 == 0, 0, 0.01).astype(np.float32)


def activation_cases(rows: int) -> Iterator[Case]:
    """Activations with dropout, and copied columns."""

    def activate(device: Any, Z: Array, add: Array, bias: Array, scale: Array) -> Array:
        device.activate(Z, scale, bias, add, True, DROP)
        device.deactivate(add, Z, scale, DROP, True)
        return add

    for m in (36, 37):
        operands = [normal("Z", rows, m), normal("A", rows, m), normal("b", m), row_weights(rows)]
        yield f"activation and back, {m} columns", activate, operands, None

    def copy(device: Any, X: Array) -> Array:
        room = device.zeros((rows, 16))
        device.copy_into(room, X[:, 4:20])
        return room

    yield "copied columns", copy, [normal("X", rows, 24)], None


def loss_cases(rows: int) -> Iterator[Case]:
    """The losses of all goals, each with its gradient."""
    labels = (np.arange(rows) % 9 - 1).astype(np.int32)

    def losses(device: Any, Z: Array, labels: Array, weight: Array) -> tuple[Array, ...]:
        Y, best = Z.copy(), device.argmax_rows(Z)
        targets, X = (Z > 0.5).astype(np.float32), Z.copy()
        each = device.sigmoid_loss(Y, targets, weight), device.squared_loss(X, targets, weight)
        return device.softmax_loss(Z, labels, weight), *each, Z, Y, X, best

    for c in (8, 60):
        yield f"losses, {c} columns", losses, [normal("Z", rows, c), labels, row_weights(rows)], None


def layer_cases(rows: int, m: int = 37) -> Iterator[Case]:
    """Layer and batch normalisation, Adam, dropped entries of sparse features; m columns."""

    def normalise(device: Any, Z: Array, D: Array, gamma: Array) -> tuple[Array, ...]:
        out, mean, inverse = device.normalise_rows(Z, gamma, gamma, 1e-5)
        device.normalise_rows_back(D, Z, mean, inverse, gamma, None)
        return out, D

    yield (
        "layer normalisation and back",
        normalise,
        [normal("Z", rows, m), normal("D", rows, m), normal("g", m)],
        None,
    )

    def columns(device: Any, Z: Array, D: Array, counted: Array, *vectors: Array) -> tuple[Array, ...]:
        mean, inverse, gamma, beta = vectors
        out, starts = device.empty(Z.shape), np.array([0, rows // 3, rows])
        sums = [device.counted_sums(Z, counted, centre, starts) for centre in (None, mean)]
        device.normalise_columns(Z, mean, inverse, gamma, beta, out)
        both = device.norm_sums(D, Z, mean, inverse, starts)
        device.normalise_columns_back(D, Z, mean, inverse, gamma, beta, mean, counted)
        return *sums, out, both, D

    yield (
        "batch normalisation and back",
        columns,
        [
            normal("Z", rows, m), normal("D", rows, m), (normal("c", rows) > 0).astype(np.float32),
            *(normal(name, m) for name in ("mean", "inverse", "g", "b")),
        ],
        None,
    )  # fmt: skip

    def adam(device: Any, flat: Array, gradient: Array) -> Array:
        optimiser = Adam(flat.shape[0], device.xp, 1e-2, kernel=device.adam)
        for _ in range(3):
            optimiser.update(flat, gradient)
        return flat

    yield "Adam", adam, [normal("w", rows), normal("g", rows)], None

    def entries(device: Any, values: Array, X: Array, D: Array) -> tuple[Array, Array]:
        places = (device.put(np.arange(rows) * step % (1 << 33)) for step in (7, 3))
        return device.drop_entries(values, *places, DROP, values), device.row_dots(X, D)

    yield (
        "dropped entries, products of rows",
        entries,
        [normal("v", rows), normal("X", rows, m), normal("D", rows, m)],
        None,
    )


def attention_cases(rows: int) -> Iterator[Case]:
    """Attention of three heads, forward and backward."""

    def attention(device: Any, E: Array, L: Array, D: Array) -> tuple[Array, ...]:
        n, h, width = L.shape[0], L.shape[1], D.shape[1]
        offsets, columns = np.arange(0, 2 * n + 1, 2), np.arange(2 * n) * 5 % n
        pattern = device.attention_pattern(device.csr(offsets, columns, None, (n, n)))
        T, V = device.zeros((n, 3 * h)), device.empty((n, 2 * width))
        device.attention_top(pattern, device.xp.ascontiguousarray(E[:, width:]), T)
        device.attention_begin(L, T, V)
        device.attention_add(pattern, E, L, T, V)
        device.attention_finish(T, V)
        F, dL = device.empty((n, width + 4 * h)), device.empty((n, h))
        device.attention_pack(D, L, T, V, F, dL)
        dS, dR = device.zeros((n, width)), device.zeros((n, h))
        device.attention_back(pattern, F, D, L, dS, dR)
        return T, V, F, dL, dS, dR

    yield (
        "attention and back",
        attention,
        [normal("E", rows, 27), normal("L", rows, 3), normal("D", rows, 24)],
        None,
    )


def dynamic_cases(rows: int) -> Iterator[Case]:
    """Attention of three heads whose scores are of both ends' rows, forward and backward."""

    def dynamic(device: Any, S: Array, T: Array, D: Array, a: Array) -> tuple[Array, ...]:
        (n, width), h = S.shape, 3
        offsets, columns = np.arange(0, 2 * n + 1, 2), np.arange(2 * n) * 5 % n
        pattern = device.attention_pattern(device.csr(offsets, columns, None, (n, n)))
        M, V = device.empty((n, 2 * h)), device.empty((n, width))
        device.dynamic_begin(M, V)
        device.dynamic_add(pattern, S, T, a, M, V)
        device.dynamic_finish(M, V)
        F = device.empty((n, 2 * width + 3 * h))
        device.dynamic_pack(D, T, M, V, F)
        dT, G, dS = (device.zeros((n, width)) for _ in range(3))
        device.dynamic_back_rows(pattern, S, F, a, dT, G)
        device.dynamic_back_columns(pattern, F, S, a, dS)
        return M, V, F, dT, G, dS

    yield (
        "dynamic attention and back",
        dynamic,
        [normal("S", rows, 24), normal("T", rows, 24), normal("D", rows, 24), normal("a", 24, 1)],
        None,
    )


def edge_cases(rows: int, k: int = 9) -> Iterator[Case]:
    """Messages of neighbours that read numbers, or categories, of edges; and back."""
    indptr, indices, shape = csr(rows, 300)
    starts = np.linspace(0, rows, 17).astype(np.int64)
    kinds = (np.arange(3 * len(indices)).reshape(-1, 3) * 7 % 4 + np.arange(3) * 3 - 1).astype(np.int32)
    kinds[:, 1:][kinds[:, 1:] % 3 == 2] = -1  # the last of the column before
    for m in (1, 37, 64):
        for values in (normal("E", len(indices), k), kinds):

            def work(device: Any, W: Array, X: Array, H: Array, Y: Array, values: Any = values) -> Any:
                entries = device.edge_entries(device.csr(indptr, indices, None, shape), values, k)
                b, dH = device.xp.ascontiguousarray(X[0]), device.xp.zeros_like(H)
                device.edge_add(entries, W, b, X, Y)
                return Y, device.edge_back(entries, W, None, H, X, dH, starts), dH

            name = f"messages along edges, {m} columns, {'categories' if values is kinds else 'numbers'}"
            operands = [normal("W", k, m), normal("X", shape[1], m), normal("H", rows, m)]
            yield name, work, [*operands, normal("Y", rows, m)], None


def edge_attention_cases(rows: int, k: int = 9, h: int = 3) -> Iterator[Case]:
    """Attention of both kinds whose scores read numbers, or categories, of edges; and back."""
    offsets, columns = np.arange(0, 2 * rows + 1, 2), np.arange(2 * rows) * 5 % rows
    starts = np.linspace(0, rows, 17).astype(np.int64)
    kinds = np.arange(2 * rows, dtype=np.int32)[:, None] % (k + 1) - 1
    for values in (normal("E", 2 * rows, k), kinds):

        def entries_of(device: Any, values: Any = values) -> Any:
            return device.edge_entries(device.csr(offsets, columns, None, (rows, rows)), values, k)

        def attention(device: Any, B: Array, E: Array, L: Array, D: Array, of: Any = entries_of) -> Any:
            entries, f = of(device), D.shape[1]
            T, V = device.zeros((rows, 3 * h)), device.empty((rows, 2 * f))
            device.edge_attention_top(entries, B, device.xp.ascontiguousarray(E[:, f:]), T)
            device.attention_begin(L, T, V)
            device.edge_attention_add(entries, B, E, L, T, V)
            device.attention_finish(T, V)
            F, dL = device.empty((rows, f + 4 * h)), device.empty((rows, h))
            device.attention_pack(D, L, T, V, F, dL)
            dS, dR = device.zeros((rows, f)), device.zeros((rows, h))
            return T, V, dL, device.edge_attention_back(entries, B, F, D, L, dS, dR, starts), dS, dR

        def dynamic(device: Any, W: Array, S: Array, D: Array, a: Array, of: Any = entries_of) -> Any:
            entries, f = of(device), S.shape[1]
            M, V, F = (
                device.empty((rows, 2 * h)),
                device.empty((rows, f)),
                device.empty((rows, 2 * f + 3 * h)),
            )
            device.dynamic_begin(M, V)
            device.edge_dynamic_add(entries, W, S, D, a, M, V)
            device.dynamic_finish(M, V)
            device.dynamic_pack(D, S, M, V, F)
            dT, G, dS = (device.zeros((rows, f)) for _ in range(3))
            dW = device.edge_dynamic_back_rows(entries, W, S, F, a, dT, G, starts)
            device.edge_dynamic_back_columns(entries, W, F, S, a, dS)
            return M, V, dW, dT, G, dS

        what = f"along edges and back, {'categories' if values is kinds else 'numbers'}"
        rows_of = [normal(name, rows, m) for name, m in (("E", 27), ("L", 3), ("D", 24), ("S", 24))]
        yield f"attention {what}", attention, [normal("B", k, h), *rows_of[:3]], None
        operands = [normal("W", k, 24), rows_of[3], rows_of[2], normal("a", 24, 1)]
        yield f"dynamic attention {what}", dynamic, operands, None


def pair_cases(rows: int, m: int = 37) -> Iterator[Case]:
    """Scores, losses and gradients of pairs of nodes, joined and not; of rankings of them."""

    def pairs(device: Any, X: Array, Z: Array) -> tuple[Array, ...]:
        n = Z.shape[0]
        offsets, columns = np.arange(0, 3 * n + 1, 3), np.arange(3 * n) * 7 % n
        pattern = device.attention_pattern(device.csr(offsets, columns, None, (n, n)))
        Y, losses = device.zeros(Z.shape), device.zeros((n,))
        for target in (1.0, 0.0):
            device.pair_add(pattern, X, Z, target, 0.5, Y, losses)
        return Y, losses, device.pair_dots(X, Z)

    yield "pairs of nodes", pairs, [normal("X", rows, m), normal("Z", rows, m)], None

    def ranks(device: Any, X: Array, Z: Array) -> tuple[Array, Array]:
        n, width = Z.shape
        offsets, columns = np.arange(0, 3 * n + 1, 3), np.arange(3 * n) * 7 % n
        pattern = device.attention_pattern(device.csr(offsets, columns, None, (n, n)))
        Y, losses = device.zeros(Z.shape), device.zeros((n, 4))
        device.rank_add(pattern, X, Z, width - 4, 0.5, Y, losses)
        return Y, losses

    yield "ranks of pairs of nodes", ranks, [normal("X", rows, m), normal("Z", rows, m)], None


def state_cases(rows: int, m: int = 37) -> Iterator[Case]:
    """Sums over the nodes of states, of m columns, and choices."""

    def pooled(device: Any, X: Array, values: Array) -> tuple[Array, Array]:
        nodes, half = np.array([[0, 8, rows // 4], [0, 0, rows // 4]]), rows // 2
        members = Members(nodes, [2, 2], [0, 2], [0, half], 4)
        index = device.put((np.arange(rows) % 4).astype(np.int32))
        return device.fold_members(members, X), device.gated_spread(values, index, X)

    yield "sums over the nodes of states, and back", pooled, [normal("X", rows, m), normal("p", 4, m)], None

    def choices(device: Any, score: Array, keys: Array) -> tuple[np.ndarray, ...]:
        nodes = np.array([[0, rows // 2], [0, rows - rows // 2]])
        members = Members(nodes, [1, 1], [0, 1], [0, rows // 2], 2)
        best = device.best_rows(members, score, score > 0, np.float32(-3e38), np.float32(-2.9e38))
        return (*best, np.sort(device.top_keys(keys, 8)))

    numbers = np.random.Generator(np.random.Philox(key=1)).integers(1, 1 << 63, rows).astype(np.uint64)
    yield "choices", choices, [normal("s", rows), numbers], None


def compare(device: Any, case: Case) -> tuple[bool, float]:
    """Whether a case has the host's bits, and its largest error against float64 in roundings."""
    _, work, operands, exact = case
    found = []
    for each in (HostDevice(), device):
        moved = [each.put(operand.copy()) for operand in operands]
        out = work(each, *moved)
        out = out if isinstance(out, tuple) else (out,)
        found.append([a if isinstance(a, np.ndarray) else each.get(a) for a in out])
    same = all(_bits(a) == _bits(b) for a, b in zip(*found))
    if exact is None:
        return same, 0.0
    wanted = exact(*operands)
    size = np.abs(wanted).max()
    return same, float(np.abs(found[1][0] - wanted).max() / size / np.finfo(np.float32).eps)


def _bits(array: np.ndarray) -> bytes:
    """All NaN are one."""
    if array.dtype == np.float32:
        array = np.where(np.isnan(array), np.float32(np.nan), array)
    return np.ascontiguousarray(array).tobytes()
