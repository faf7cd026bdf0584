"""app/native: the compiled kernels have the bits of the plain path, and the package runs without them."""

import hashlib
import itertools
import pickle
import shutil
import sys
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jobs import ROOT, run_job

from app.device import HostDevice
from app.errors import NumericsError
from app.native import device as native_device
from app.native import library
from app.native.products import TILE_COLUMNS
from app.native.tiled import BAND, lay_out, panel_columns, tiled_height
from app.numerics.elementwise import Dropout
from app.numerics.fused import fused
from app.numerics.products import Finish, Lookup, Members, Operand
from app.rl.select import LEAST, LOWEST

pytestmark = pytest.mark.mpi_skip  # nothing here knows of other ranks


class Remembered:
    """A device whose products and weight gradients are made once for the same operands: for kernels of all
    widths.
    """

    MADE_ONCE = ("column_roots", "dense", "gram", "gram_roots", "score")

    def __init__(self, device):
        self.device, self.made = device, {}

    def __getattr__(self, name):
        made = getattr(self.device, name)
        return partial(self.once, made) if name in self.MADE_ONCE else made

    def once(self, function, *operands, **out):
        if out:
            return function(*operands, **out)
        key = function.__name__, hashlib.sha256(pickle.dumps(operands)).digest()
        if key not in self.made:
            self.made[key] = function(*operands)
            self.made[key].flags.writeable = False
        return self.made[key]


PLAIN = Remembered(HostDevice(compiled=False))
# Around the widths of vector registers, and of the tiles of the kernels.
WIDTHS = (1, 2, 3, 5, 8, 11, 16, 17, 31, 32, 48, 64, 65, 80, 128, 200)
ROWS = (0, 1, 5, 6, 7, 8, 13, 40)
everywhere = pytest.mark.parametrize("width", WIDTHS)
widths, rows, seeds = st.sampled_from(WIDTHS), st.sampled_from(ROWS), st.integers(0, 10**6)
flags = st.booleans()


@pytest.fixture(scope="module")
def compiled(lanes, compiled):
    """The host with its compiled kernels, those of each width."""
    return compiled


def normal(draws, *shape):
    """Numbers of many magnitudes, so that another order of additions shows."""
    return (draws.standard_normal(shape) * 10.0 ** draws.integers(-3, 4, shape)).astype(np.float32)


def same(found, expected):
    """The same bits in the same shape."""
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    assert found.tobytes() == expected.tobytes()


# ---- sparse products ----------------------------------------------------------------------------------

ROW_LENGTHS = {
    "no rows": [],
    "one row": [3],
    "empty rows": [0, 0, 4, 0, 1, 0, 0],
    "no entries": [0] * 9,
    "rows of X read often": [1200, 0, 1, 2100],
    "hub": [1, 2, 300, 0, 2, 25, 24, 13, 12, 11],
    "random": np.random.default_rng(1).integers(0, 40, 60).tolist(),
}


def stored(lengths, columns, kind):
    """Row offsets and columns, not sorted and with repeats: any order of entries must be kept."""
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(kind)
    return indptr, np.random.default_rng(2).integers(0, columns, indptr[-1]).astype(kind)


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("name", ROW_LENGTHS)
@everywhere
def test_sparse_products(compiled, width, name, kind):
    draws = np.random.default_rng(3)
    indptr, indices = stored(ROW_LENGTHS[name], 50, kind)
    n, shape = len(indptr) - 1, (len(indptr) - 1, 50)
    X, Y = normal(draws, 51, width)[1:], normal(draws, n + 1, width)[1:]
    for data in (None, normal(draws, len(indices))):
        expected = Y.copy()
        PLAIN.spmm_add(PLAIN.csr(indptr, indices, data, shape), X, expected)
        found = Y.copy()
        compiled.spmm_add(compiled.csr(indptr, indices, data, shape), X, found)
        same(found, expected)
        # SciPy narrows the indices of a small matrix: here they are given to the kernel as they are.
        found = Y.copy()
        compiled.native.spmm_add(compiled.native.record(indptr, indices, data, shape), X, found)
        same(found, expected)


@pytest.mark.parametrize("tile", [0, 1 << 20])
@pytest.mark.parametrize("width", [64, 65, 128, 200, 256, 449])
def test_sparse_products_larger_than_the_caches(monkeypatch, compiled, width, tile):
    """Rows are then fetched ahead, by another distance, into one cache or the other."""
    monkeypatch.setattr(compiled.native, "tile_bytes", tile)
    draws = np.random.default_rng(4)
    columns = (9 << 20) // (4 * width)
    indptr, indices = stored([0, 900, 24, 25, 23, 1], columns, np.int32)
    X = draws.standard_normal((columns, width), dtype=np.float32)
    for data in (None, normal(draws, len(indices))):
        out = [np.zeros((6, width), dtype=np.float32) for _ in range(2)]
        for device, Y in zip((compiled, PLAIN), out):
            device.spmm_add(device.csr(indptr, indices, data, (6, columns)), X, Y)
        same(*out)


@pytest.mark.parametrize("width", [16, 17, 41, 64, 70, 128, 200, 256, 330, 512])
@pytest.mark.parametrize("order", ["ascending", "any"])
def test_sparse_products_by_tiles_of_columns(monkeypatch, compiled, width, order):
    """Some rows at a time, each as far as its columns are in the tile; the order of its entries is kept."""
    draws = np.random.default_rng(width)
    n, m, height = (4200, 25, 4) if width == 512 else (50, 61, 10)
    enough = 7 * 4096 // (4 * width)  # entries of a row
    lengths = draws.integers(enough, 2 * enough, n) * (draws.random(n) > 0.1)
    tile_bytes = 4 * width * height
    monkeypatch.setattr(compiled.native, "tile_bytes", tile_bytes)
    for kind, valued in itertools.product((np.int32, np.int64), (False, True)):
        indptr, indices = stored(lengths, m, kind)
        if order == "ascending":
            indices = np.concatenate([np.sort(row) for row in np.split(indices, indptr[1:-1])])
        data = normal(draws, len(indices)) if valued else None
        X, Y = normal(draws, m, width), normal(draws, n, width)
        sums, product, wide = Y.copy(), np.zeros_like(Y), normal(draws, n, width + 5)
        beside, found = wide.copy(), np.full_like(Y, np.nan)
        wide[:, 2:-3] = Y
        for out in (sums, product):
            PLAIN.spmm_add(PLAIN.csr(indptr, indices, data, (n, m)), X, out)
        assert TILE_COLUMNS(n, m, len(indices), width, tile_bytes) == height
        record = compiled.native.record(indptr, indices, data, (n, m))
        compiled.native.spmm_add(record, X, found, write=True)
        same(found, product)
        compiled.native.spmm_add(record, X, Y)
        same(Y, sums)
        compiled.native.spmm_add(record, X, wide[:, 2:-3])
        beside[:, 2:-3] = sums
        same(wide, beside)


@pytest.mark.parametrize("tiles", [False, True])
@pytest.mark.parametrize("width", [1, 4, 8, 16, 17, 41, 64, 128, 200])
def test_sparse_products_leave_rows_that_are_not_live(monkeypatch, compiled, width, tiles):
    """Of one state: as they are, in an array of its own and in columns of another."""
    draws = np.random.default_rng(width)
    n, m, least = 50, 61, 7 * 4096 // (4 * width) if tiles else 10
    monkeypatch.setattr(compiled.native, "tile_bytes", 4 * width * 10)
    lengths = draws.integers(least, 2 * least, n) * (draws.random(n) > 0.1)
    live = (draws.random(n) < 0.5).astype(np.float32)
    live[:2] = 0, -0.0
    for kind, valued in itertools.product((np.int32, np.int64), (False, True)):
        indptr, indices = stored(lengths, m, kind)
        data = normal(draws, len(indices)) if valued else None
        X, Y, wide = normal(draws, m, width), normal(draws, n, width), normal(draws, n, width + 5)
        sums, beside = Y.copy(), wide.copy()
        PLAIN.spmm_add(PLAIN.csr(indptr, indices, data, (n, m)), X, sums)
        sums[live == 0] = Y[live == 0]
        wide[:, 2:-3] = Y
        record = compiled.native.record(indptr, indices, data, (n, m))
        compiled.native.spmm_add(record, X, Y, live)
        same(Y, sums)
        compiled.native.spmm_add(record, X, wide[:, 2:-3], live)
        beside[:, 2:-3] = sums
        same(wide, beside)
    with pytest.raises(NumericsError, match="rows of several states must be row-major"):
        compiled.native.spmm_add(record, X, wide[:, 2:-3], np.ones(2 * n, dtype=np.float32))


def test_when_sparse_products_go_by_tiles(compiled):
    """Operands of many tiles, of each of which a row reads enough in the mean."""
    tile = 4 * 64 * 100
    entries = 10 * 7 * 3072 // (4 * 64)
    assert TILE_COLUMNS(10, 601, entries, 64, tile) == 100
    assert TILE_COLUMNS(10, 601, entries - 1, 64, tile) == 0
    assert TILE_COLUMNS(10, 101, 10**6, 64, tile) == 100
    assert TILE_COLUMNS(10, 100, 10**6, 64, tile) == 0
    assert TILE_COLUMNS(10, 8000, 10**6, 15, tile) == 0
    assert TILE_COLUMNS(10, 601, 10**6, 64, 4 * 63) == 0
    rows, tiles = 10**6, 10**4  # more than any cache holds
    assert TILE_COLUMNS(10, rows, 10 * tiles * 1024 // (4 * 64), 64, tile) == 100
    assert TILE_COLUMNS(10, rows, 10 * tiles * 1024 // (4 * 64) - 1, 64, tile) == 0
    assert TILE_COLUMNS(10, 70, 10 * 2 * 2, 1024, 4 * 1024 * 35) == 35  # entries of long rows: few, not one
    assert TILE_COLUMNS(10, 70, 10 * 2 * 2 - 1, 1024, 4 * 1024 * 35) == 0
    assert compiled.native.tile_bytes >= 128 << 10


# ---- tiled matrices ---------------------------------------------------------------------------------------


def ascending(draws, n, m, kind, most=40):
    """Row offsets and columns, each once and in order; some rows have none, few have many."""
    lengths = draws.integers(0, most, n) * (draws.random(n) > 0.1)
    lengths[::97] = m
    rows = [np.sort(draws.choice(m, length, replace=False)) for length in np.minimum(lengths, m)]
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    return indptr.astype(kind), np.concatenate(rows).astype(kind)


@pytest.mark.parametrize("width", [16, 17, 31, 41, 48, 64, 70, 79, 80, 128, 200])
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_products_of_tiled_matrices(compiled, width, kind):
    """More rows than are taken at a time, more columns than a tile has."""
    draws = np.random.default_rng(width)
    n, m = BAND + 500, 105
    indptr, indices = ascending(draws, n, m, kind)
    live = (draws.random(n) < 0.5).astype(np.float32)
    live[:2] = 0, -0.0
    X, before, wide = normal(draws, m, width), normal(draws, n, width), normal(draws, n, width + 5)
    data = normal(draws, len(indices))
    for height, alive, values in itertools.product((10, 105, 1000), (None, live), (None, data)):
        sums, beside, into = before.copy(), wide.copy(), wide.copy()
        PLAIN.spmm_add(PLAIN.csr(indptr, indices, values, (n, m)), X, sums)
        record = compiled.native.record(indptr, indices, values, (n, m))
        if alive is not None:
            sums[alive == 0] = before[alive == 0]
        tiled, Y = lay_out(record, height, len(indices)), before.copy()
        compiled.native.spmm_add(record, X, Y, alive, tiled=tiled)
        same(Y, sums)
        into[:, 2:-3] = before
        compiled.native.spmm_add(record, X, into[:, 2:-3], alive, tiled=tiled)
        beside[:, 2:-3] = sums
        same(into, beside)


@pytest.mark.parametrize("width", [65, 128])
def test_products_of_a_tiled_matrix_larger_than_the_caches(compiled, width):
    """An operand that is not copied."""
    draws = np.random.default_rng(4)
    m = 110_000
    indptr, indices = ascending(draws, 300, m, np.int32, 25_000)
    assert len(indices) > 32 * m  # rows of X are read often enough to be copied, were they fewer
    X, out = draws.standard_normal((m, width), dtype=np.float32), np.zeros((2, 300, width), dtype=np.float32)
    record = compiled.native.record(indptr, indices, None, (300, m))
    compiled.native.spmm_add(record, X, out[0], tiled=lay_out(record, 65536, len(indices)))
    PLAIN.spmm_add(PLAIN.csr(indptr, indices, None, (300, m)), X, out[1])
    same(*out)


def test_a_device_tiles_matrices_in_order(compiled):
    """Where that gains anything; other products of them, and other matrices, are as before."""
    draws = np.random.default_rng(5)
    n, m = 300, 5000
    indptr, indices = ascending(draws, n, m, np.int32)
    A, shape = compiled.csr(indptr, indices, None, (n, m)), (n, m)
    expected = compiled.tiled_bytes(shape, len(indices), False, 16)
    assert compiled.tile(A, 15) == compiled.tiled_bytes(shape, len(indices), False, 15) == 0
    assert compiled.tile(A, 16) == compiled.tile(A, 16) == A.tiled.nbytes
    assert 0.9 < A.tiled.nbytes / expected < 1.1
    X, Y = normal(draws, m, 64), normal(draws, n, 64)
    live = (draws.random(n) < 0.5).astype(np.float32)
    for few in (X, X[:, :15].copy()):
        for options in ({}, {"live": live}, {"write": True}, {"live": live, "write": True}):
            by_rows, by_tiles = np.zeros((2, n, few.shape[1]), dtype=np.float32)
            compiled.spmm_add(compiled.csr(indptr, indices, None, shape), few, by_rows, **options)
            compiled.spmm_add(A, few, by_tiles, **options)
            same(by_tiles, by_rows)
    by_rows = Y.copy()
    compiled.spmm_add(compiled.csr(indptr, indices, None, shape), X, by_rows)
    compiled.spmm_add(A, X, Y)
    same(Y, by_rows)
    weighted = compiled.csr(indptr, indices, normal(draws, len(indices)), shape)
    assert compiled.tile(weighted, 16) == A.tiled.nbytes + 4 * len(indices)
    assert abs(compiled.tiled_bytes(shape, len(indices), True, 16) / weighted.tiled.nbytes - 1) < 0.1
    assert compiled.tile(compiled.csr(indptr, indices[::-1], None, shape), 16) == 0  # in no order
    assert compiled.tile(compiled.csr(indptr, indices, None, (n, 10**6)), 16) == 0  # few in a tile
    plain = PLAIN.csr(indptr, indices, None, shape)
    assert PLAIN.tile(plain, 16) == PLAIN.tiled_bytes(shape, 10**6, False, 16) == 0


@pytest.mark.skipif(library.kernels() is None, reason="the kernels are not built")
def test_how_high_tiles_are():
    """128 KB; more where rows have few entries there, up to a limit; none where they stay few."""
    most, best = 4 * 64 * 2048, 512 * 64 // panel_columns()
    columns = 10 * best
    assert best in (512, 1024)
    assert tiled_height(100, best, 10**6, most) == tiled_height(0, 10**4, 0, most) == 0
    assert tiled_height(100, columns, 100 * 10 * 6, most) == best
    assert tiled_height(100, columns, 100 * 10 * 6 - 1, most) == 2 * best
    assert tiled_height(100, columns, 100 * 5 * 6 - 1, most) == 4 * best
    assert tiled_height(100, columns, 100 * 3 * 3, most) == 4 * best
    assert tiled_height(100, columns, 100 * 3 * 3 - 1, most) == 0
    assert tiled_height(1, 1 << 30, 1 << 16, 1 << 40) == 65536


@pytest.mark.parametrize("most", [1, 7, 300])
@pytest.mark.parametrize("name", ROW_LENGTHS)
def test_stored_ones_are_lent_in_pieces(monkeypatch, name, most):
    """The plain path makes a few ones at a time: pieces of rows, a row of more than that as one piece."""
    monkeypatch.setattr(native_device, "LENT_ONES", most)
    indptr, indices = stored(ROW_LENGTHS[name], 50, np.int32)
    shape, X = (len(indptr) - 1, 50), normal(np.random.default_rng(5), 50, 3)
    found, expected = (np.ones((shape[0], 3), dtype=np.float32) for _ in range(2))
    PLAIN.spmm_add(PLAIN.csr(indptr, indices, None, shape), X, found)
    PLAIN.spmm_add(PLAIN.csr(indptr, indices, np.ones(len(indices), np.float32), shape), X, expected)
    same(found, expected)


def draw_live(draws, n, share):
    """[n] zeros and ones, about `share` of them ones."""
    return (draws.random(n) < share).astype(np.float32)


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("name", ROW_LENGTHS)
@pytest.mark.parametrize("f", [1, 3, 16, 17, 32, 48, 64, 80, 128])
def test_rows_that_nobody_reads_may_be_left(compiled, f, name, kind):
    """Live rows have the bits of the whole product; any other element has those, or what was there."""
    draws = np.random.default_rng(15)
    indptr, indices = stored(ROW_LENGTHS[name], 50, kind)
    n, shape = len(indptr) - 1, (len(indptr) - 1, 50)
    for states, share in itertools.product((1, 2, 4, 5), (0, 0.4, 0.9, 1)):
        live = draw_live(draws, n * states, share)
        X, Y = normal(draws, 50, states * f), normal(draws, n, states * f)
        for data in (None, normal(draws, len(indices))):
            expected, found, read = Y.copy(), Y.copy(), live > 0
            PLAIN.spmm_add(PLAIN.csr(indptr, indices, data, shape), X, expected)
            compiled.native.spmm_add(compiled.native.record(indptr, indices, data, shape), X, found, live)
            rows = [array.reshape(n * states, f) for array in (found, expected, Y)]
            same(rows[0][read], rows[1][read])
            assert ((rows[0] == rows[1]) | (rows[0] == rows[2])).all()
            if f % 16 == 0 and kind is np.int32 and not share:
                same(found, Y)


class Several:
    """Sparse matrices of ones, the states of each side by side, and where their rows are in X and in Y."""

    def __init__(self, draws, graphs):
        self.matrices, self.rows, self.spans, x, y = [], [], [], 0, 0
        for n, m, states in graphs:
            lengths = draws.integers(0, 9, n) * (draws.random(n) < 0.8)
            indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
            self.matrices.append((indptr, draws.integers(0, m, indptr[-1]).astype(np.int32), None, (n, m)))
            self.rows.append((x, y, states))
            self.spans.append((slice(x, x + m * states), slice(y, y + n * states)))
            x, y = x + m * states, y + n * states
        self.x, self.y = x, y

    def on(self, device):
        return [device.csr(*matrix) for matrix in self.matrices]

    def product(self, X, Y, f):
        """Y + A X, a graph at a time, on the plain device."""
        out = Y.copy()
        for A, (x, y), (*_, states) in zip(self.on(PLAIN), self.spans, self.rows):
            side_by_side = out[y].reshape(A.shape[0], states * f)
            PLAIN.spmm_add(A, X[x].reshape(A.shape[1], states * f), side_by_side)
        return out


several = st.lists(
    st.tuples(st.integers(0, 12), st.integers(1, 15), st.integers(1, 5)), min_size=1, max_size=4
)
shares = st.sampled_from([None, 0, 0.4, 0.9, 1])


@given(seeds, several, widths, shares)
@example(1, [(40, 50, 3), (0, 4, 2), (9, 9, 5)], 16, 0.5)
@example(2, [(40, 50, 4), (30, 30, 1)], 64, 0.9)
def test_products_of_several_graphs(compiled, seed, graphs, f, share):
    draws = np.random.default_rng(seed)
    batch = Several(draws, graphs)
    live = None if share is None else draw_live(draws, batch.y, share)
    X, Y = normal(draws, batch.x, f), normal(draws, batch.y, f)
    expected, found = batch.product(X, Y, f), Y.copy()
    compiled.spmm_members(compiled.member_table(batch.on(compiled), batch.rows), X, found, f, live)
    read = slice(None) if live is None else live > 0
    same(found[read], expected[read])
    assert ((found == expected) | (found == Y)).all()


@given(seeds, several, widths, shares, st.integers(1, 9))
@example(1, [(40, 50, 3), (0, 4, 2), (9, 9, 5)], 16, 0.5, 5)
@example(2, [(40, 50, 4), (30, 30, 1)], 37, None, 200)
@example(3, [(60, 60, 1)], 48, 0.9, 1)
def test_products_of_rows_that_stand_in_a_table(compiled, seed, graphs, f, share, entries):
    """As of the rows written out: of all graphs in one call, and of each alone, with and without kernels."""
    draws = np.random.default_rng(seed)
    batch = Several(draws, graphs)
    live = None if share is None else draw_live(draws, batch.y, share)
    table, code = normal(draws, entries, f), draws.integers(0, entries, batch.x).astype(np.int32)
    Y = normal(draws, batch.y, f)
    expected, found = batch.product(table[code], Y, f), Y.copy()
    members = compiled.member_table(batch.on(compiled), batch.rows)
    compiled.lookup_members(members, table, code.reshape(-1, 1), found, live)
    read = slice(None) if live is None else live > 0
    same(found[read], expected[read])
    assert ((found == expected) | (found == Y)).all()
    for device in (compiled, PLAIN):
        found = Y.copy()
        for A, (x, y), (*_, states) in zip(batch.on(device), batch.spans, batch.rows):
            codes, out = code[x].reshape(A.shape[1], states), found[y].reshape(A.shape[0], states * f)
            device.spmm_lookup(A, table, codes, out, None if live is None else live[y])
        same(found[read], expected[read])


@given(seeds, several, widths, shares, st.sampled_from(["none", "rows", "table"]))
@example(1, [(40, 50, 3), (0, 4, 2), (9, 9, 5)], 16, 0.5, "rows")
@example(2, [(40, 50, 4), (30, 30, 1)], 32, 0.9, "table")
@example(3, [(40, 50, 70)], 16, 0.5, "rows")
def test_products_that_write_their_output(compiled, seed, graphs, f, share, gated):
    """What was in Y does not matter; rows that are not live are zero or the sum, and zero with a gate."""
    draws = np.random.default_rng(seed)
    batch = Several(draws, graphs)
    live = np.ones(batch.y, np.float32) if share is None else draw_live(draws, batch.y, share)
    X, gate = normal(draws, batch.x, f), None
    if gated == "rows":
        gate = Operand(normal(draws, batch.y, f))
    elif gated == "table":
        gate = Operand(normal(draws, 5, f), draws.integers(0, 5, batch.y).astype(np.int32))
    expected = batch.product(X, np.zeros((batch.y, f), dtype=np.float32), f)
    if gate is not None:
        expected *= (gate.rows() > 0) * live[:, None]
        expected += 0.0
        expected = np.where(live[:, None] > 0, expected, np.float32(0))
    together, alone = (np.full((batch.y, f), np.nan, dtype=np.float32) for _ in range(2))
    table = compiled.member_table(batch.on(compiled), batch.rows)
    compiled.spmm_members(table, X, together, f, live, True, gate)
    for A, (x, y), (*_, states) in zip(batch.on(compiled), batch.spans, batch.rows):
        X_g, out = X[x].reshape(A.shape[1], states * f), alone[y].reshape(A.shape[0], states * f)
        compiled.spmm_add(A, X_g, out, live[y], True, None if gate is None else gate.of_rows(y))
    for found in (together, alone):
        found += 0.0  # the sign of a zero that a gate makes
        same(found[live > 0], expected[live > 0])
        assert ((found == expected) | ((found == 0) & (live == 0)[:, None])).all()


@given(seeds, several, widths, shares)
@example(1, [(40, 50, 3), (0, 4, 2), (9, 9, 5)], 16, 0.5)
@example(2, [(40, 50, 70)], 32, 0.5)
def test_products_with_a_table_that_write_their_output(compiled, seed, graphs, f, share):
    draws = np.random.default_rng(seed)
    batch = Several(draws, graphs)
    live = None if share is None else draw_live(draws, batch.y, share)
    table, code = normal(draws, 5, f), draws.integers(0, 5, batch.x).astype(np.int32)
    expected = batch.product(table[code], np.zeros((batch.y, f), dtype=np.float32), f)
    if live is not None:
        expected[live == 0] = 0
    found = np.full((batch.y, f), np.nan, dtype=np.float32)
    members = compiled.member_table(batch.on(compiled), batch.rows)
    compiled.lookup_members(members, table, code.reshape(-1, 1), found, live, True)
    same(found, expected)


@given(seeds, st.tuples(st.integers(8, 300), st.integers(1, 20), st.integers(1, 64)), widths, widths, shares)
@example(1, (300, 20, 4), 16, 16, 0.5)
@example(2, (64, 9, 64), 16, 17, None)
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_rows_that_a_product_makes_as_it_needs_them(compiled, kind, seed, graph, f, m, share):
    """Sums over neighbours, the product that meets them, its sums over blocks: as one after another."""
    draws, (n, columns, states) = np.random.default_rng(seed), graph
    n -= n % 8
    indptr, indices = stored(draws.integers(0, 9, n), columns, kind)
    live = None if share is None else draw_live(draws, n * states, share)
    table, code = normal(draws, 7, f), draws.integers(0, 7, (columns, states)).astype(np.int32)
    first = Operand(normal(draws, 7, 3), draws.integers(0, 7, n * states).astype(np.int32))
    W, then = normal(draws, 3 + f, m), Finish(relu=True, scale=draw_live(draws, n * states, 0.9))
    nodes = draw_starts(draws, 1, 4, n // 4)
    nodes[0, -1] = n
    members = Members(nodes, [states], [0], [0], states)
    N = np.zeros((n * states, f), dtype=np.float32)
    PLAIN.spmm_lookup(PLAIN.csr(indptr, indices, None, (n, columns)), table, code, N.reshape(n, states * f))
    if live is not None:
        N[live == 0] = 0
    expected = PLAIN.dense_pooled([first, Operand(N, None, live)], W, then, members)
    A = compiled.csr(indptr, indices, None, (n, columns))
    for pooled in (False, True):
        made = Operand(np.full(N.shape, np.nan, dtype=np.float32), None, live, Lookup(A, table, code, live))
        if pooled:
            found = compiled.dense_pooled([first, made], W, then, members)
            same(found[1], expected[1])
        else:
            found = (compiled.dense([first, made], W, then),)
        same(found[0], expected[0])
        same(made.X, N)


@everywhere
def test_products_with_a_table_and_wide_indices(compiled, width):
    draws = np.random.default_rng(16)
    indptr, indices = stored(ROW_LENGTHS["hub"], 50, np.int64)
    table, code = normal(draws, 9, width), draws.integers(0, 9, (50, 2)).astype(np.int32)
    found, expected = (np.zeros((10, 2 * width), dtype=np.float32) for _ in range(2))
    compiled.native.spmm_lookup(compiled.native.record(indptr, indices, None, (10, 50)), table, code, found)
    X = table[code.reshape(-1)].reshape(50, 2 * width)
    PLAIN.spmm_add(PLAIN.csr(indptr, indices, None, (10, 50)), X, expected)
    same(found, expected)


# ---- dense rows times a small matrix ------------------------------------------------------------------


def draw_part(draws, n, width, indexed, scaled, view):
    """A part of n rows: a table or n rows, of which some columns are left out in a view."""
    table = 4 if indexed else n
    X = normal(draws, table, width + 3)[:, 1 : width + 1] if view else normal(draws, table, width)
    index = draws.integers(0, table, n).astype(np.int32) if indexed else None
    return Operand(X, index, draw_scale(draws, n) if scaled else None)


def draw_scale(draws, n):
    """[n] factors, none of them negative, a third of them zero."""
    return (draws.random(n) * (draws.random(n) < 2 / 3)).astype(np.float32)


def draw_finish(draws, n, m, with_base, base_scaled, relu, scaled, gated, gate_of_table):
    """What follows a product, each step where its flag is set."""
    base = normal(draws, n, m) if with_base else None
    base_scale = draw_scale(draws, n) if with_base and base_scaled else None
    scale, gate, index = draw_scale(draws, n) if scaled else None, None, None
    if gated:
        entries = 4 if gate_of_table else n
        gate = (normal(draws, entries, m) * (draws.random((entries, m)) < 0.7)).astype(np.float32)
        index = draws.integers(0, 4, n).astype(np.int32) if gate_of_table else None
    return Finish(base, base_scale, relu, scale, gate, index)


parts_of = st.lists(st.tuples(widths, flags, flags, flags), min_size=1, max_size=3)
finish_of = st.tuples(*[flags] * 6)
ALL, NONE = (True,) * 6, (False,) * 6


@pytest.mark.parametrize("n", [8, 16, 40, 200])
@pytest.mark.parametrize("widths", [[5], [33, 7]])
@everywhere
def test_a_gradient_in_the_place_of_what_it_goes_through(compiled, n, widths, width):
    """Rows that the kernel makes twice among them, and numbers of which relu makes nothing."""
    draws = np.random.default_rng(width)
    parts, W = [Operand(normal(draws, n, each)) for each in widths], normal(draws, sum(widths), width)
    H = np.maximum(normal(draws, n, width), 0)
    H[0, 0], H[-1, -1], parts[0].X[1, 0] = np.nan, -0.0, np.inf
    for drop in (None, Dropout(3, 0.4, 0)):
        found, expected = H.copy(), H.copy()
        compiled.dense_through(parts, W, found, drop)
        PLAIN.dense_through(parts, W, expected, drop)
        same(found, expected)
    with pytest.raises(NumericsError, match="in the place of"):
        compiled.dense_through(parts, W, H[:-8].copy(), None)


@given(seeds, rows, parts_of, widths, finish_of, flags)
@example(1, 13, [(16, True, False, False), (16, False, True, True)], 16, ALL, False)
@example(2, 40, [(16, False, True, False)], 17, ALL, True)
@example(3, 7, [(7, True, True, True)], 1, (True, False, True, False, False, False), False)
@example(4, 40, [(39, False, False, False)], 32, (False, False, True, True, False, False), False)
@example(5, 0, [(5, False, False, False)], 3, NONE, False)
@example(6, 13, [(5, False, False, False)], 3, (False, False, False, True, True, False), True)
def test_dense_products_and_scores(compiled, seed, n, kinds, m, steps, transposed):
    draws = np.random.default_rng(seed)
    parts = [draw_part(draws, n, *kind) for kind in kinds]
    k = sum(part.X.shape[1] for part in parts)
    W, w = normal(draws, m, k).T if transposed else normal(draws, k, m), normal(draws, m, 1)
    then = draw_finish(draws, n, m, *steps)
    same(compiled.dense(parts, W, then), PLAIN.dense(parts, W, then))
    same(compiled.score(parts, W, w, then), PLAIN.score(parts, W, w, then))
    if not any(steps):
        same(compiled.dense(parts, W), PLAIN.dense(parts, W))
    if then.base is not None:
        same(compiled.dense([], W[:0], then), PLAIN.dense([], W[:0], then))


@everywhere
def test_every_step_after_a_product(compiled, width):
    """All combinations, in both of the kernel's forms: whole tiles of 16 columns, and what is left."""
    draws = np.random.default_rng(6)
    parts = [draw_part(draws, 13, 17, True, True, False), draw_part(draws, 13, 2, False, False, True)]
    W, w = normal(draws, 19, width), normal(draws, width, 1)
    for mask in range(64):
        then = draw_finish(draws, 13, width, *[bool(mask >> bit & 1) for bit in range(6)])
        same(compiled.dense(parts, W, then), PLAIN.dense(parts, W, then))
        same(compiled.score(parts, W, w, then), PLAIN.score(parts, W, w, then))
        if then.base is not None:
            same(compiled.dense([], W[:0], then), PLAIN.dense([], W[:0], then))


@everywhere
def test_a_product_without_parts_is_what_it_starts_with(compiled, width):
    """No columns: base, masked and gated, by its definition."""
    draws = np.random.default_rng(13)
    base, mask, table = normal(draws, 40, width), draw_scale(draws, 40), normal(draws, 3, width)
    code = draws.integers(0, 3, 40).astype(np.int32)
    then = Finish(base, base_scale=mask, gate=table, gate_index=code)
    for device in (compiled, PLAIN):
        found = device.dense([], base[:0], then)
        assert np.array_equal(found, base * mask[:, None] * (table[code] > 0))


@pytest.mark.parametrize("entries", [8, 19, 20, 21, 40])
@everywhere
def test_first_columns_from_tables_of_any_size(compiled, width, entries):
    """Of a small table their part of the chain is made once for an entry: with and without more columns."""
    draws = np.random.default_rng(14)
    index = draws.integers(0, entries, 40).astype(np.int32)
    first, second = Operand(normal(draws, entries, 7), index), Operand(normal(draws, 40, 5))
    for parts in ([first], [first, second], [first, Operand(second.X, scale=draw_scale(draws, 40))]):
        W = normal(draws, sum(part.X.shape[1] for part in parts), width)
        w, then = normal(draws, width, 1), draw_finish(draws, 40, width, *ALL)
        for steps in (Finish(), then):
            same(compiled.dense(parts, W, steps), PLAIN.dense(parts, W, steps))
            same(compiled.score(parts, W, w, steps), PLAIN.score(parts, W, w, steps))


@everywhere
def test_a_base_that_is_one_row_for_all(compiled, width):
    """As a view whose rows are one and the same memory."""
    draws = np.random.default_rng(7)
    parts, W = [Operand(normal(draws, 8, 5))], normal(draws, 5, width)
    then = Finish(base=np.broadcast_to(normal(draws, 1, width), (8, width)), relu=True)
    same(compiled.dense(parts, W, then), PLAIN.dense(parts, W, then))


@everywhere
def test_a_product_is_a_chain_of_fused_steps(compiled, width):
    """Multiply, add, round: one that rounds products too has other bits."""
    draws = np.random.default_rng(8)
    X, W = normal(draws, 7, 31), normal(draws, 31, width)
    total = np.zeros((7, width), dtype=np.float32)
    for k in range(31):
        total = fused(X[:, k : k + 1], W[k], total)
    same(compiled.dense([Operand(X)], W), total)


@pytest.mark.parametrize("width", [3, 16, 17])
def test_numbers_that_are_none_pass_on(compiled, width):
    """Infinities and NaN where the plain path has them: weights that diverged are noticed later."""
    draws = np.random.default_rng(9)
    X = normal(draws, 40, 6)
    X[[3, 9, 11], [0, 5, 2]] = np.inf, np.nan, -np.inf
    W = normal(draws, 6, width)
    for steps in (
        NONE,
        ALL,
        (False, False, True, True, False, False),
        (True, False, True, False, True, True),
    ):
        then = draw_finish(draws, 40, width, *steps)
        with np.errstate(invalid="ignore", over="ignore"):
            found, expected = (device.dense([Operand(X)], W, then) for device in (compiled, PLAIN))
        assert np.array_equal(found, expected, equal_nan=True)


# ---- weight gradients ---------------------------------------------------------------------------------


def draw_starts(draws, graphs, blocks, longest):
    """[graphs, blocks+1] offsets: blocks of 0 to `longest` rows, one graph after the other."""
    sizes = draws.integers(0, longest + 1, (graphs, blocks)) * (draws.random((graphs, blocks)) < 0.7)
    ends = np.cumsum(sizes.reshape(-1)).reshape(graphs, blocks)
    return np.concatenate([ends[:, :1] - sizes[:, :1], ends], axis=1)


@given(seeds, st.integers(1, 4), st.integers(1, 5), st.sampled_from([3, 140]), parts_of, widths)
@example(1, 1, 1, 300, [(16, False, False, False)], 16)
@example(2, 3, 4, 140, [(7, True, False, False), (16, False, True, True), (16, False, False, False)], 17)
@example(3, 2, 5, 0, [(3, False, False, False)], 5)
def test_grams(compiled, seed, graphs, blocks, longest, kinds, m):
    """Blocks of more rows than the kernel takes at a time, and of none."""
    draws = np.random.default_rng(seed)
    starts = draw_starts(draws, graphs, blocks, longest)
    n = int(starts[-1, -1])
    parts = [draw_part(draws, n, *kind) for kind in kinds]
    live = draw_scale(draws, n)
    D = normal(draws, n, m) * (live > 0)[:, None]
    found = compiled.gram(parts, D, starts)
    same(found, PLAIN.gram(parts, D, starts))
    same(compiled.gram(parts, D, starts, live), found)  # rows of zeros may be left out
    same(PLAIN.gram(parts, D, starts, live), found)
    assert found.shape == (blocks, sum(part.X.shape[1] for part in parts) * m)
    same(compiled.gram(parts, D, np.asfortranarray(starts)), found)


@everywhere
def test_grams_of_every_width(compiled, width):
    draws = np.random.default_rng(10)
    starts = np.array([[0, 300, 300], [300, 310, 319]])
    for k in WIDTHS:
        parts, D = [Operand(normal(draws, 319, k))], normal(draws, 319, width)
        same(compiled.gram(parts, D, starts), PLAIN.gram(parts, D, starts))


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("width", [1, 7, 16, 17, 40])
def test_grams_by_subtrees(compiled, width, few):
    """Blocks of no row, of more than the kernel takes at a time; `few`: rows that are left out and scaled."""
    draws = np.random.default_rng(11)
    starts = np.concatenate([[3], 3 + np.cumsum([300, 0, 8, 16, 0, 1, 520, 40, 8])])[None]
    n = int(starts[0, -1])
    live = draw_scale(draws, n) if few else None
    D = normal(draws, n, width) * (1 if live is None else (live > 0)[:, None])
    for k in (1, 4, 16, 129, 602) if width < 16 else (1, 4, 16, 129):
        parts = [draw_part(draws, n, k, few, few, few), Operand(normal(draws, n, 5))]
        for spans in ([(0, 9, 4)], [(0, 1, 0), (1, 3, 1), (3, 7, 2), (7, 9, 3)], []):
            found = compiled.gram_roots(parts, D, starts, spans, live)
            same(found, PLAIN.gram_roots(parts, D, starts, spans, live))
            same(compiled.column_roots(D, starts, spans), PLAIN.column_roots(D, starts, spans))


@everywhere
@pytest.mark.parametrize("blocks", [1, 2, 5, 9, 12])
def test_sums_of_rows_by_subtrees_are_one_call(compiled, width, blocks):
    """Levels of odd lengths, and subtrees within others; the kernel leaves the rows as they were."""
    draws = np.random.default_rng(13)
    starts = np.concatenate([[2], 2 + np.cumsum(draws.integers(0, 30, blocks))])[None]
    D, half = normal(draws, int(starts[0, -1]), width), blocks // 2
    before = D.copy()
    apart = [(0, half, 3), (half, blocks, 3)] if half else []
    for spans in ([(0, blocks, 4)], apart, [(0, blocks, 4), *apart, (0, blocks, 4)]):
        expected = PLAIN.column_roots(D, starts, spans)
        same(compiled.native.column_roots(D, starts[0], spans), expected)
        same(compiled.column_roots(D, starts, spans), expected)
    same(D, before)


@everywhere
def test_a_product_into_given_memory(compiled, width):
    draws = np.random.default_rng(12)
    parts, W = [Operand(normal(draws, 16, 7)), Operand(normal(draws, 16, 3))], normal(draws, 10, width)
    expected = PLAIN.dense(parts, W)
    for device in (compiled, PLAIN):
        out = normal(draws, 16, width)
        assert device.dense(parts, W, out=out) is out
        same(out, expected)
    for wrong in (
        np.zeros((8, width), np.float32),
        np.zeros((16, width)),
        np.zeros((32, width), np.float32)[::2],
    ):
        with pytest.raises(NumericsError):
            compiled.dense(parts, W, out=wrong)


# ---- sums of rows, and rows from a table --------------------------------------------------------------


@given(seeds, st.lists(st.integers(0, 9), min_size=0, max_size=8), st.integers(0, 3), widths)
@example(1, [], 0, 3)
@example(2, [0, 0, 0], 0, 16)
@example(3, [200, 0, 1], 2, 65)
def test_folds(compiled, seed, lengths, first, width):
    starts = first + np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    X = normal(np.random.default_rng(seed), int(starts[-1]) + 2, width)
    for kind in (np.int64, np.int32):
        same(compiled.fold(starts.astype(kind), X), PLAIN.fold(starts.astype(kind), X))


@given(seeds, st.lists(st.integers(1, 4), min_size=1, max_size=4), st.integers(1, 5), widths)
@example(1, [96], 3, 16)
def test_sums_of_the_states_of_several_graphs(compiled, seed, counts, blocks, f):
    draws = np.random.default_rng(seed)
    nodes = np.stack([draw_starts(draws, 1, blocks, 9)[0] for _ in counts])
    at = np.concatenate([[0], np.cumsum(nodes[:, -1] * counts)]).tolist()
    first = np.concatenate([[0], np.cumsum(counts)]).tolist()
    members = Members(nodes, counts, first[:-1], at[:-1], first[-1])
    X = normal(draws, at[-1], f)
    same(compiled.fold_members(members, X), PLAIN.fold_members(members, X))


@given(seeds, rows, widths)
def test_gated_spreads(compiled, seed, n, m):
    draws = np.random.default_rng(seed)
    values, index = normal(draws, 4, m), draws.integers(0, 4, n).astype(np.int32)
    gate = normal(draws, n, m) * (draws.random((n, m)) < 0.7)
    gate = gate.astype(np.float32)
    same(compiled.gated_spread(values, index, gate), PLAIN.gated_spread(values, index, gate))


# ---- the best row of every state -----------------------------------------------------------------------


def members_of(sizes):
    """Members of graphs of (nodes, states), of one block each; and their rows in all."""
    nodes, counts = (np.array(column, dtype=np.int64) for column in zip(*sizes))
    at, first = (np.concatenate([[0], np.cumsum(a)]).tolist() for a in (nodes * counts, counts))
    starts = np.stack([0 * nodes, nodes], axis=1)
    return Members(starts, counts.tolist(), first[:-1], at[:-1], first[-1]), at[-1]


def check_best(compiled, members, score, candidate):
    """Kernel and plain path against a loop over the nodes of every state."""
    for device in (compiled, PLAIN):
        top, where = device.best_rows(members, score, candidate, LOWEST, LEAST)
        assert (top.dtype, where.dtype) == (np.float32, np.int64)
        layout = zip(members.nodes[:, -1], members.counts, members.first, members.at)
        for n, count, first, at in layout:
            for state in range(count):
                rows = at + np.arange(n) * count + state
                values = [max(score[r], LEAST) if score[r] == score[r] else np.inf for r in rows]
                held = [i for i in range(n) if candidate[rows[i]]]
                best = max(held, key=lambda i: values[i]) if held else 0
                wanted = max(score[rows[best]], LEAST) if held else LOWEST
                assert where[first + state] == best
                assert np.array_equal(top[first + state], wanted, equal_nan=True)


sizes_of = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 4)), min_size=1, max_size=4)


@given(seeds, sizes_of, st.sampled_from([0, 0.2, 1]), flags)
@example(1, [(0, 3)], 1, False)
@example(2, [(200, 5), (0, 1), (33, 2)], 0.2, True)
def test_the_best_row_of_every_state(compiled, seed, sizes, share, ties):
    """The first of equal scores; no candidate, and none of a state; scores beyond the range of keys."""
    draws = np.random.default_rng(seed)
    members, rows = members_of(sizes)
    score = draws.integers(-2, 3, rows).astype(np.float32) if ties else normal(draws, rows)
    score[draws.random(rows) < 0.1] = -np.inf
    check_best(compiled, members, score, draws.random(rows) < share)


def test_the_first_nan_of_a_candidate_is_above_all(compiled):
    """So that it is noticed; of a node that is no candidate it is not looked at."""
    members, rows = members_of([(4, 2)])
    score = np.arange(rows, dtype=np.float32)
    score[[2, 3, 6]] = np.nan
    for candidate, tops, where in (
        ([1] * 8, [np.nan, np.nan], [1, 1]),
        ([1, 1, 0, 0, 1, 1, 1, 1], [np.nan, 7], [3, 3]),
        ([1, 1, 0, 0, 1, 1, 0, 0], [4, 5], [2, 2]),
        ([0] * 8, [LOWEST, LOWEST], [0, 0]),
    ):
        for device in (compiled, PLAIN):
            found = device.best_rows(members, score, np.array(candidate, dtype=bool), LOWEST, LEAST)
            assert np.array_equal(found[0], np.array(tops, dtype=np.float32), equal_nan=True)
            assert found[1].tolist() == where


# ---- arrays -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(0, 5), (1,), (8, 16), (13, 3), (5, 0), (2, 3, 4), (100, 17)])
def test_zeros_begin_at_a_cache_line(compiled, shape):
    for device in (compiled, PLAIN):
        held = [device.zeros(shape) for _ in range(9)]
        for array in held:
            assert (array.shape, array.dtype, array.any()) == (shape, np.float32, False)
            assert array.flags.c_contiguous
            assert array.ctypes.data % 64 == 0 or not array.size
            array[...] = 1  # each has memory of its own
        assert not device.zeros(shape).any()


# ---- what a kernel would misread ----------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [lambda X: X.astype(np.float64), np.asfortranarray], ids=["type", "order"])
def test_operands_that_a_kernel_would_misread_are_refused(compiled, wrong):
    X = normal(np.random.default_rng(11), 8, 8)
    A = compiled.csr(np.arange(9, dtype=np.int32), np.arange(8, dtype=np.int32), None, (8, 8))
    index, starts = np.zeros(8, dtype=np.int32), np.array([[0, 8]])
    members = Members(starts, [1], [0], [0], 1)
    for call in (
        lambda: compiled.spmm_add(A, wrong(X), X.copy()),
        lambda: compiled.spmm_add(A, X, wrong(X)),
        lambda: compiled.fold(starts[0], wrong(X)),
        lambda: compiled.fold_members(members, wrong(X)),
        lambda: compiled.dense([Operand(wrong(X))], X),
        lambda: compiled.dense([Operand(X)], X, Finish(base=wrong(X))),
        lambda: compiled.dense([Operand(X)], X, Finish(gate=wrong(X))),
        lambda: compiled.gram([Operand(wrong(X))], X, starts),
        lambda: compiled.gram([Operand(X)], wrong(X), starts),
        lambda: compiled.gated_spread(wrong(X), index, X),
        lambda: compiled.gated_spread(X, index, wrong(X)),
    ):
        with pytest.raises(NumericsError, match="row-major"):
            call()
    table = compiled.member_table([A], [(0, 0, 1)])
    code = index[:, None]
    for call in (
        lambda: compiled.spmm_members(table, wrong(X), X.copy(), 8),
        lambda: compiled.lookup_members(table, wrong(X), code, X.copy()),
        lambda: compiled.lookup_members(table, X, code, wrong(X)),
        lambda: compiled.spmm_lookup(A, wrong(X), code, X.copy()),
    ):
        with pytest.raises(NumericsError, match="row-major"):
            call()


def test_numbers_of_rows_of_another_type_are_refused(compiled):
    """Codes, indices and masks that a kernel would read as something else."""
    X, index = normal(np.random.default_rng(11), 8, 8), np.zeros(16, dtype=np.int32)
    A = compiled.csr(np.arange(9, dtype=np.int32), np.arange(8, dtype=np.int32), None, (8, 8))
    members, ones = Members(np.array([[0, 8]]), [1], [0], [0], 1), np.ones(16, dtype=np.float32)
    for wrong in (index[:8].astype(np.int64), index[::2]):
        with pytest.raises(NumericsError, match="codes must be int32"):
            compiled.spmm_lookup(A, X, wrong[:, None], X.copy())
        for call in (
            lambda wrong=wrong: compiled.dense([Operand(X, wrong)], X),
            lambda wrong=wrong: compiled.dense([Operand(X)], X, Finish(gate=X, gate_index=wrong)),
        ):
            with pytest.raises(NumericsError, match="must be int32"):
                call()
    for wrong in (ones[:8] > 0, ones[:8].astype(np.float64), ones[::2]):
        for call in (
            lambda wrong=wrong: compiled.spmm_add(A, X, X.copy(), wrong),
            lambda wrong=wrong: compiled.spmm_lookup(A, X, index[:8, None], X.copy(), wrong),
            lambda wrong=wrong: compiled.gram([Operand(X)], X, np.array([[0, 8]]), wrong),
            lambda wrong=wrong: compiled.dense([Operand(X)], X, Finish(scale=wrong)),
            lambda wrong=wrong: (
                compiled.best_rows(members, ones[:8], wrong.view(), LOWEST, LEAST)
                if wrong.dtype != bool
                else compiled.best_rows(members, ones[::2], wrong, LOWEST, LEAST)
            ),
        ):
            with pytest.raises(NumericsError, match="one number per row"):
                call()


def test_operands_that_do_not_fit_are_refused(compiled):
    X = normal(np.random.default_rng(12), 8, 8)
    with pytest.raises(NumericsError, match="8 columns times 7 rows"):
        compiled.dense([Operand(X)], X[:7])
    with pytest.raises(NumericsError, match="one type"):
        compiled.native.record(np.zeros(9, dtype=np.int64), np.zeros(0, dtype=np.int32), None, (8, 8))


# ---- building -----------------------------------------------------------------------------------------

USE = """
import sys
import numpy as np
from app.device import HostDevice
from app.native.library import kernels
from app.numerics.products import Operand
X = np.arange(64, dtype=np.float32).reshape(8, 8)
assert (HostDevice().dense([Operand(X)], X) == X @ X).all()
print("kernels" if kernels() else "no kernels", HostDevice().product)
"""


@pytest.fixture
def built(tmp_path):
    """Builds a copy of the package with some compiler; what setup.py and a use of the copy print."""
    pytest.importorskip("setuptools", reason="setuptools is not installed: nothing builds the package")
    tree, out = tmp_path / "tree", tmp_path / "built"
    left_out = shutil.ignore_patterns("_kernels*", "__pycache__", "*.npz")
    shutil.copytree(ROOT / "app", tree / "app", ignore=left_out)
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)

    def build(compiler):
        build = [sys.executable, "setup.py", "build", "--build-lib", out]
        code, said = run_job(build, 280, tree, CC=str(compiler))
        assert code == 0, said
        code, printed = run_job([sys.executable, "-c", USE], 60, out, PYTHONPATH=str(out))
        assert code == 0, printed
        return said, printed

    return build


def test_without_a_compiler_the_package_is_built_all_the_same(built):
    said, printed = built("/bin/false")
    assert "app.native._kernels" in said  # it was tried
    assert printed.startswith("no kernels SciPy")


@pytest.mark.long
def test_with_a_compiler_the_kernels_are_built(built, tmp_path):
    compiler = shutil.which("gcc") or shutil.which("cc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler on PATH")
    quick = tmp_path / "quick"  # optimised or not, the sources compile, link and load
    quick.write_text(f'#!/bin/sh\nexec "{compiler}" "$@" -O0\n')
    quick.chmod(0o755)
    said, printed = built(quick)
    assert printed.startswith("kernels compiled"), said


# ---- the library itself -----------------------------------------------------------------------------------


def test_a_library_older_than_its_sources_is_not_used(compiled, tmp_path, monkeypatch):
    """Structs of two versions differ: such a library gives wrong numbers without a word."""
    assert not library.stale(library.kernels())
    monkeypatch.setattr(library, "FOLDER", tmp_path)
    assert not library.stale(object())  # a package without sources
    (tmp_path / "a.c").write_text("int a;")
    right = hashlib.sha256(b"int a;").hexdigest().encode()
    for told, outdated in ((right, False), (b"0" * 64, True), (b"", True)):
        built = SimpleNamespace(lk_sources=partial(bytes, told))
        assert library.stale(built) == outdated
    assert library.stale(object())
