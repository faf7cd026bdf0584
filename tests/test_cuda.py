"""app/cuda on the host: the CUDA sources themselves, thread by thread, against the CPU path, bit for bit."""

import itertools

import emulator
import numpy as np
import pytest
import scipy.sparse as sp
import standin

from app.cuda import edges as cuda_edges
from app.cuda import matrix as cuda_matrix
from app.cuda.vendor import VendorDevice
from app.device import HostDevice
from app.errors import NumericsError
from app.gnn.optim import Adam
from app.numerics import edge_attention
from app.numerics.elementwise import Dropout
from app.numerics.products import Finish, Lookup, Members, Operand
from app.rl.select import make_keys

pytestmark = pytest.mark.mpi_skip
ROWS = (1, 7, 32, 133)
WIDTHS = (1, 3, 16, 20, 32, 64, 100, 128, 192, 256, 300, 512)


def normal(seed, *shape):
    """Numbers of very different sizes: another order of additions shows at once."""
    draws = np.random.default_rng(seed)
    return (draws.standard_normal(shape) * 10.0 ** draws.integers(-3, 4, shape)).astype(np.float32)


def share(seed, rows, zeros=0.4):
    """[rows] factors of which some are zero."""
    draws = np.random.default_rng(seed)
    return (draws.random(rows) * (draws.random(rows) > zeros)).astype(np.float32)


def put(device, value):
    """An array, an Operand or a Finish, on a device."""
    if isinstance(value, (Operand, Finish)):
        return type(value)(**{name: put(device, each) for name, each in vars(value).items()})
    return device.put(value) if isinstance(value, np.ndarray) else value


class Pair:
    """The same call on the host, in portable chains without compiled kernels, and on the emulated GPU."""

    def __init__(self, device):
        self.devices = [HostDevice(compiled=False), device]

    def same(self, work, *operands):
        """Run work(device, *operands) on both; its result and what it wrote must have the same bits."""
        seen = []
        for device in self.devices:
            own = [put(device, each.copy() if isinstance(each, np.ndarray) else each) for each in operands]
            found = work(device, *own)
            found = found if isinstance(found, tuple) else (found,)
            arrays = [each for each in (*found, *own) if isinstance(each, (np.ndarray, standin.Array))]
            seen.append([np.array(standin.host(each)) for each in arrays])
        assert len(seen[0]) == len(seen[1])
        for one, other in zip(*seen):
            assert (one.shape, one.dtype) == (other.shape, other.dtype)
            assert np.array_equal(bits(one), bits(other))
        return seen[0]


def bits(array):
    """Integers that tell floats apart; NaN is one whatever it carries, -0 is not 0."""
    if array.dtype != np.float32:
        return array
    return np.where(np.isnan(array), np.int32(-1), np.ascontiguousarray(array).view(np.int32))


@pytest.fixture
def pair(emulated):
    return Pair(emulated)


def rows_of(seed, n, m, most=9):
    """CSR arrays of a matrix with empty rows, among others."""
    draws = np.random.default_rng(seed)
    counts = np.minimum(draws.integers(0, most, n) * (draws.random(n) > 0.2), m)
    indices = [np.sort(draws.permutation(m)[:count]) for count in counts]
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return indptr, np.concatenate([*indices, []]).astype(np.int32), (n, m)


# ---- sparse products --------------------------------------------------------------------------------------


@pytest.mark.parametrize("c", WIDTHS)
@pytest.mark.parametrize("valued", [False, True])
def test_sparse_products(pair, c, valued):
    """Every kernel of every width; sums go on from what Y holds."""
    for n in ROWS:
        indptr, indices, shape = rows_of(c + n, n, n + 5)
        data = normal(1, len(indices)) if valued else None

        def add(device, X, Y, arrays=(indptr, indices, data, shape)):
            device.spmm_add(device.csr(*arrays), X, Y)

        pair.same(add, normal(2, n + 5, c), normal(3, n, c))


@pytest.mark.parametrize("c", [4, 16, 33, 64, 256])
@pytest.mark.parametrize("times", [1, 10, 1000])
def test_rows_with_many_entries(pair, monkeypatch, times, c):
    """Blocks and warps sum them apart, from shared memory, in the same order; odd counts."""
    for name in ("SHORT", "LEAST", "LONG"):
        monkeypatch.setattr(cuda_matrix, name, 60)
    for name, value in (("FOR_WARPS", times), ("BUSY", 0), ("MUCH_LONGER", 0)):
        monkeypatch.setattr(cuda_matrix, name, value)
    indptr, indices, shape = rows_of(c, 20, 1400, 1300)
    A = pair.devices[1].csr(indptr, indices, None, shape)
    blocks = A.longer(A.most(c))
    assert A.longer(60) > (blocks if times > 1 else 0) and (blocks > 0) == (times < 1000)
    for data in (None, normal(1, len(indices))):

        def add(device, X, Y, data=data):
            device.spmm_add(device.csr(indptr, indices, data, shape), X, Y)

        pair.same(add, normal(2, 1400, c), normal(3, 20, c))


def test_which_rows_take_a_block(emulated):
    """Hubs, but not all rows of a dense graph, unless they are too few to keep a GPU busy."""

    def long_rows(counts, c):
        indptr = np.concatenate([[0], np.cumsum(counts)])
        A = emulated.csr(indptr, np.zeros(indptr[-1], np.int32), None, (len(counts), 1))
        return A.longer(A.longest(c))

    assert long_rows(np.full(20000, 400), 64) == 0
    assert long_rows(np.full(1000, 4000), 64) == 1000
    assert long_rows(np.concatenate([np.full(20000, 10), [5000, 4000]]), 64) == 2
    assert long_rows(np.full(1000, 100), 16) == 0


@pytest.mark.parametrize(("states", "f"), [(1, 16), (3, 16), (2, 5), (4, 64), (2, 256)])
@pytest.mark.parametrize("gated", ["", "rows", "table"])
def test_states_side_by_side(emulated, states, f, gated):
    """Rows that are not live, a gate, and an output that is written."""
    n, host = 21, HostDevice(compiled=False)
    indptr, indices, shape = rows_of(5, n, n)
    live, X = share(1, n * states), normal(2, n, states * f)
    X.reshape(n, states, f)[live.reshape(n, states) == 0] = 0
    wanted = np.zeros((n, states * f), np.float32)
    host.spmm_add(host.csr(indptr, indices, None, shape), X, wanted)
    wanted = wanted.reshape(n * states, f) * (live != 0)[:, None]
    gate = None
    if gated:
        index = np.random.default_rng(3).integers(0, 6, n * states).astype(np.int32)
        gate = Operand(normal(4, 6, f), index) if gated == "table" else Operand(normal(4, n * states, f))
        wanted = wanted * (gate.rows() > 0)
    Y = emulated.empty((n, states * f))  # NaN
    A = emulated.csr(indptr, indices, None, shape)
    emulated.spmm_add(A, emulated.put(X), Y, emulated.put(live), write=True, gate=put(emulated, gate))
    assert np.array_equal(emulated.get(Y).reshape(n * states, f), wanted)


@pytest.mark.parametrize("c", [1, 16, 21, 41, 64, 300])
@pytest.mark.parametrize("longest", [4096, 5])
def test_rows_that_are_not_live_stay_as_they_are(emulated, monkeypatch, c, longest):
    """Of one state, where sums go on from what Y holds; some rows are long."""
    for name in ("SHORT", "LEAST", "LONG"):
        monkeypatch.setattr(f"app.cuda.matrix.{name}", longest)
    indptr, indices, shape = rows_of(c, 60, 80, 30)
    live, host = share(1, 60), HostDevice(compiled=False)
    for data in (None, normal(1, len(indices))):
        X, Y = normal(2, 80, c), normal(3, 60, c)
        wanted = Y.copy()
        host.spmm_add(host.csr(indptr, indices, data, shape), X, wanted)
        wanted[live == 0] = Y[live == 0]
        found = emulated.put(Y)
        emulated.spmm_add(
            emulated.csr(indptr, indices, data, shape), emulated.put(X), found, emulated.put(live)
        )
        assert np.array_equal(bits(emulated.get(found)), bits(wanted))


@pytest.mark.parametrize(("states", "f"), [(1, 16), (3, 7)])
def test_rows_of_a_table(pair, states, f):
    indptr, indices, shape = rows_of(6, 40, 40)
    code = np.random.default_rng(1).integers(0, 5, (40, states)).astype(np.int32)

    def add(device, table, code, Y):
        device.spmm_lookup(device.csr(indptr, indices, None, shape), table, code, Y)

    pair.same(add, normal(2, 5, f), code, normal(3, 40, states * f))


@pytest.mark.parametrize("c", [1, 4, 16, 21, 64, 300])
@pytest.mark.parametrize("longest", [4096, 5])
def test_some_rows(emulated, monkeypatch, c, longest):
    """Rows of a list, in its order, of which some are long; against the whole product of the host."""
    monkeypatch.setattr("app.cuda.changes.WORTHWHILE", longest)
    indptr, indices, shape = rows_of(c, 60, 80, 30)
    rows = np.array([59, 3, 17, 4, 0, 30, 31, 8])
    for data in (None, normal(1, len(indices))):
        X, wanted, host = normal(2, 80, c), np.zeros((60, c), np.float32), HostDevice(compiled=False)
        host.spmm_add(host.csr(indptr, indices, data, shape), X, wanted)
        A, numbers = emulated.csr(indptr, indices, data, shape), emulated.put(rows.astype(np.int32))
        found = emulated.spmm_rows(A, rows, numbers, emulated.put(X))
        assert np.array_equal(bits(emulated.get(found)), bits(wanted[rows]))
    assert emulated.spmm_rows(A, rows[:0], numbers[:0], emulated.put(X)).shape == (0, c)


def test_rows_and_keys_that_are_replaced(emulated):
    X, new, scores = normal(1, 3, 20, 5), normal(2, 4, 5), np.array([2.5, -0.0, np.nan, -3], np.float32)
    keys, code, rows = np.arange(20, dtype=np.uint64), np.array([2, 2, 3, 1], np.int32), [7, 0, 19, 3]
    numbers, D, K = emulated.put(np.array(rows, np.int32)), emulated.put(X), emulated.put(keys)
    emulated.place_rows(D[1], numbers, emulated.put(new))
    X[1, rows] = new
    assert np.array_equal(emulated.get(D), X)
    emulated.clear_rows(D, numbers)
    X[:, rows] = 0
    assert np.array_equal(emulated.get(D), X)
    emulated.place_keys(K, numbers, emulated.put(code), 100, 2, emulated.put(scores))
    keys[rows] = np.where(code >= 2, make_keys(np, scores, np.array(rows) + 100), np.uint64(0))
    assert np.array_equal(emulated.get(K), keys)
    emulated.place_keys(K, numbers, numbers, 100, 0, None)
    keys[rows] = 0
    assert np.array_equal(emulated.get(K), keys)


def test_operands_that_do_not_fit(emulated):
    A = emulated.csr(*rows_of(1, 8, 8)[:2], None, (8, 8))
    X, Y = emulated.zeros((8, 16)), emulated.zeros((8, 16))
    with pytest.raises(NumericsError, match="does not fit"):
        emulated.spmm_add(A, X, emulated.zeros((8, 17)))
    with pytest.raises(NumericsError, match="row-major"):
        emulated.spmm_add(A, X, emulated.zeros((16, 8)).T)
    with pytest.raises(NumericsError, match="without gaps"):
        emulated.spmm_add(A, emulated.zeros((8, 20))[:, :16], Y)
    with pytest.raises(NumericsError, match="float32"):
        emulated.spmm_add(A, X.astype(np.float64), Y)


# ---- dense products ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [1, 3, 5, 16, 30, 64, 128, 150])
def test_dense_products(pair, m):
    """Tiles that do not come out even, and operands in up to four parts."""
    for rows, widths in itertools.product((8, 136, 264), ((1,), (37,), (16, 5), (3, 17, 33), (1, 2, 3, 4))):
        parts = [normal(i, rows, k) for i, k in enumerate(widths)]

        def dense(device, W, *parts):
            return device.dense([Operand(X) for X in parts], W)

        pair.same(dense, normal(9, sum(widths), m), *parts)


@pytest.mark.parametrize("m", [1, 16, 64, 70, 128])
@pytest.mark.parametrize("k", [1, 5, 20, 36])
def test_what_tiles_lack_changes_no_bit(pair, m, k):
    """Products too small to be held have a sign, and infinity times what is not there is no number."""
    tiny, large = np.full((8, k), 1e-30, np.float32), np.full(8, np.inf, np.float32)
    small = np.full((k, m), -1e-30, np.float32)
    pair.same(lambda device, X, W: device.dense([Operand(X)], W), tiny, small)
    pair.same(lambda device, X, W, s: device.dense([Operand(X, None, s)], W), tiny, -small, large)
    starts, below = np.array([[0, 8]]), np.full((8, m), -1e-30, np.float32)
    pair.same(lambda device, X, D: device.gram([Operand(X)], D, starts), tiny, below)


@pytest.mark.parametrize("m", [2, 16, 47])
def test_what_follows_a_dense_product(pair, m):
    rows = 136
    index = np.random.default_rng(1).integers(0, 6, rows).astype(np.int32)
    parts = [Operand(normal(1, 6, 9), index, share(2, rows)), Operand(normal(3, rows, 12)[:, 2:7])]
    wide = normal(4, rows, m + 3)[:, 1 : m + 1]
    for relu, scaled, base, gate in itertools.product((False, True), repeat=4):
        then = Finish(
            wide if base else None, share(5, rows) if base and relu else None, relu,
            share(6, rows) if scaled else None, normal(7, 6 if relu else rows, m) if gate else None,
            index if gate and relu else None,
        )  # fmt: skip
        found = [
            device.get(device.dense([put(device, part) for part in parts], put(device, W), put(device, then)))
            for device in pair.devices
            for W in [normal(8, 14, m)]
        ]
        assert np.array_equal(bits(found[0]), bits(found[1]))
        found = [device.get(device.dense([], None, put(device, Finish(wide)))) for device in pair.devices]
        assert found[0].tobytes() == found[1].tobytes()


@pytest.mark.parametrize(("states", "f", "m"), [(1, 16, 16), (3, 16, 5), (2, 64, 70), (1, 12, 7)])
@pytest.mark.parametrize("masked", [False, True])
def test_a_layer_that_makes_its_operand(emulated, states, f, m, masked):
    """Sums over neighbours and their product in one kernel; they are written out for the backward pass."""
    n, host = 40, HostDevice(compiled=False)
    indptr, indices, shape = rows_of(6, n, n)
    draws, rows = np.random.default_rng(1), n * states
    code, index = (draws.integers(0, 5, size).astype(np.int32) for size in ((n, states), rows))
    table, live, scale = normal(2, 5, f), share(3, rows) if masked else None, share(4, rows)
    N = np.zeros((n, states * f), np.float32)
    host.spmm_lookup(host.csr(indptr, indices, None, shape), table, code, N)
    N = N.reshape(rows, f) * (1 if live is None else (live != 0)[:, None])
    first, last, W = Operand(normal(5, 5, 3), index), Operand(normal(6, rows, 2)), normal(7, 5 + f, m)
    then = Finish(relu=True, scale=live)
    wanted = host.dense([first, Operand(N, scale=scale), last], W, then)
    A = emulated.csr(indptr, indices, None, shape)
    lookup = Lookup(A, *(put(emulated, each) for each in (table, code, live)))
    made = Operand(emulated.empty((rows, f)), None, emulated.put(scale), lookup)
    parts = [put(emulated, first), made, put(emulated, last)]
    cut = [Operand(parts[2].X[:, :1]), Operand(parts[2].X[:, 1:])]  # four parts
    for given in (parts, [*parts[:2], *cut]):
        made.X.fill(np.nan)
        found = emulated.get(emulated.dense(given, emulated.put(W), put(emulated, then)))
        assert np.array_equal(bits(found), bits(wanted))
        assert np.array_equal(emulated.get(made.X), N)


def test_gated_spread_and_scores(pair):
    index = np.random.default_rng(1).integers(0, 3, 40).astype(np.int32)
    pair.same(lambda device, *each: device.gated_spread(*each), normal(1, 3, 5), index, normal(2, 40, 5))

    def score(device, X, W, w):
        return device.score([Operand(X)], W, w, Finish(relu=True))

    pair.same(score, normal(1, 40, 9), normal(2, 9, 32), normal(3, 32, 1))


# ---- sums over rows ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "m"), [(5, 3), (16, 16), (40, 16), (33, 1), (70, 65), (1, 130)])
def test_weight_gradients(pair, k, m):
    cuts = np.array([[0, 8, 8, 104], [104, 130, 155, 160]])
    pair.same(lambda device, X, D: device.block_gram(X, D, cuts), normal(1, 160, k), normal(2, 160, m))


@pytest.mark.parametrize("room", [1, 700, 1 << 26])
def test_subtrees_of_blocks(emulated, monkeypatch, room):
    """However many of them fit at a time; against a merge of the host's, block by block."""
    monkeypatch.setattr("app.cuda.products.GRAM_BYTES", room)
    host = HostDevice(compiled=False)
    starts = np.array([[0, 8, 8, 24, 32, 48, 56, 64, 72, 96, 104, 136]])
    spans = [(0, 8, 3), (8, 11, 2), (2, 3, 0), (0, 11, 4), (4, 7, 2)]
    X, D, scale = normal(1, 136, 7), normal(2, 136, 5), share(3, 136)
    parts = [Operand(X, scale=scale), Operand(normal(4, 136, 2))]
    wanted = host.gram_roots(parts, D, starts, spans)
    found = emulated.gram_roots([put(emulated, part) for part in parts], emulated.put(D), starts, spans)
    assert emulated.get(found).tobytes() == wanted.tobytes()
    wanted = host.column_roots(D, starts, spans)
    assert emulated.get(emulated.column_roots(emulated.put(D), starts, spans)).tobytes() == wanted.tobytes()
    assert emulated.gram_roots([Operand(emulated.put(X))], emulated.put(D), starts, []).shape == (0, 35)


def test_folds(pair):
    starts = np.array([0, 0, 1, 20, 20, 47])
    for c in (1, 3, 64):
        pair.same(lambda device, X: device.fold(starts, X), normal(1, 50, c))


def test_row_offsets_that_are_kept_have_a_limit(emulated, monkeypatch):
    """A training of links has others in every epoch."""
    monkeypatch.setattr("app.cuda.products.TABLE_BYTES", 200)
    monkeypatch.setattr(emulated, "_tables", {})
    X, sizes = emulated.put(normal(1, 50, 3)), []
    for count in (3, 5, 7, 9, 40, 11):
        emulated.fold(np.arange(count), X)
        sizes.append([each.size for each in emulated._tables.values()])
    assert sizes == [[3], [3, 5], [3, 5, 7], [3, 5, 7, 9], [40], [11]]


def batch():
    """Three graphs in four blocks, of two, one and three states; the second has an empty block."""
    nodes = np.array([[0, 8, 16, 24, 30], [0, 0, 8, 8, 9], [0, 3, 6, 9, 11]])
    return Members(nodes, [2, 1, 3], [0, 2, 3], [0, 60, 69], 6), 60 + 9 + 33


def test_sums_over_the_nodes_of_states(pair):
    members, rows = batch()
    pair.same(lambda device, X: device.fold_members(members, X), normal(1, rows, 5))


# ---- choices ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["distinct", "equal", "nan", "none", "low"])
def test_best_rows(emulated, kind):
    members, rows = batch()
    score, candidate = normal(1, rows), share(2, rows) > 0
    if kind == "equal":
        score = np.round(score)
    elif kind == "nan":
        score[[3, 5, 70]], candidate[[3, 5, 70]] = np.nan, True
    elif kind == "none":
        candidate[60:69] = False
    elif kind == "low":
        score = np.full_like(score, -np.inf)
    lowest, least = np.float32(-3e38), np.float32(-2.9e38)
    wanted = HostDevice(compiled=False).best_rows(members, score, candidate, lowest, least)
    found = emulated.best_rows(members, emulated.put(score), emulated.put(candidate), lowest, least)
    assert np.array_equal(*(each[0] for each in (wanted, found)), equal_nan=True)
    some = wanted[0] != lowest
    assert np.array_equal(wanted[1][some], found[1][some])


def test_top_keys(emulated):
    draws = np.random.default_rng(1)
    keys = draws.permutation(np.concatenate([np.zeros(30), draws.integers(1, 1 << 63, 70)])).astype(np.uint64)
    keys[17] = np.uint64(0xFFFFFFFFFFFFFFFF)
    host = HostDevice(compiled=False)
    for wanted in (1, 2, 8, 40, 100, 200):
        found = (np.sort(device.top_keys(put(device, keys), wanted)) for device in (host, emulated))
        assert np.array_equal(*found)
    few = np.array([0, 5, 0, 9], np.uint64)
    assert sorted(emulated.top_keys(emulated.put(few), 3).tolist()) == [0, 5, 9]


# ---- rows -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [1, 16, 37])
def test_activations(pair, m):
    drop = Dropout(key=0x123456789ABCDEF, share=0.3, first_row=41)
    scale, bias, rows = share(1, 50), normal(2, m), (normal(3, 50, m), normal(4, 50, m))
    for flags in itertools.product((False, True), repeat=5):

        def ahead(device, Z, scale, bias, add, flags=flags):
            given = [x if flag else None for x, flag in zip((scale, bias, add), flags)]
            device.activate(Z, *given, relu=flags[3], drop=drop if flags[4] else None)

        def back(device, D, scale, bias, H, flags=flags):
            left = None if flags[1] else drop
            device.deactivate(D, H, scale if flags[0] else None, left, relu=flags[3])

        pair.same(ahead, rows[0], scale, bias, rows[1])
        pair.same(back, rows[0], scale, bias, np.maximum(rows[1], 0))


def test_dropped_entries_and_sums_of_rows(pair):
    drop = Dropout(key=77, share=0.5)
    numbers = [np.random.default_rng(i).integers(0, 1 << 33, 200) for i in (1, 2)]

    def entries(device, values, rows, columns):
        return device.drop_entries(values, rows, columns, drop, values)

    pair.same(entries, normal(3, 200), *numbers)
    for factor in (1.0, -0.3):
        pair.same(lambda device, Y, X, f=factor: device.add_into(Y, X, f), normal(1, 9, 5), normal(2, 9, 5))


@pytest.mark.parametrize("c", [1, 2, 47, 60])
def test_losses(pair, c):
    labels = np.random.default_rng(1).integers(-1, c + 1, 60).astype(np.int32)
    Z, weight, targets = normal(2, 60, c) / 30, share(3, 60), (share(4, 60 * c) > 0).astype(np.float32)
    Z[5], Z[6, 0], Z[7] = 200, np.nan, -200
    pair.same(lambda device, *each: device.softmax_loss(*each), Z[8:], labels[8:], weight[8:])
    pair.same(lambda device, *each: device.sigmoid_loss(*each), Z, targets.reshape(60, c), weight)
    targets[::3] = np.nan
    pair.same(lambda device, *each: device.sigmoid_loss(*each), Z, targets.reshape(60, c), weight)
    pair.same(lambda device, *each: device.squared_loss(*each), Z, normal(5, 60, c), weight)
    some = np.where(np.isnan(targets.reshape(60, c)), np.nan, normal(5, 60, c)).astype(np.float32)
    pair.same(lambda device, *each: device.squared_loss(*each), Z, some, weight)
    pair.same(lambda device, Z: device.argmax_rows(Z), Z)


@pytest.mark.parametrize("m", [1, 16, 100])
def test_layer_normalisation(pair, m):
    Z, gamma, beta, D = normal(1, 30, m), normal(2, m), normal(3, m), normal(4, 30, m)

    def both(device, Z, gamma, beta, D):
        out, mean, inverse = device.normalise_rows(Z, gamma, beta, 1e-5)
        product = device.xp.zeros_like(D)
        device.normalise_rows_back(D, Z, mean, inverse, gamma, product)
        return out, mean, inverse, product

    pair.same(both, Z, gamma, beta, D)


@pytest.mark.parametrize("m", [1, 16, 100])
def test_batch_normalisation(pair, m):
    Z, D, counted = normal(1, 30, m), normal(2, 30, m), (share(3, 30) > 0).astype(np.float32)
    vectors = [normal(4 + i, m) for i in range(6)]

    def all_four(device, Z, D, counted, mean, inverse, gamma, beta, first, second):
        out, starts = device.xp.zeros_like(Z), np.array([0, 11, 11, 30])
        sums = [device.counted_sums(Z, counted, centre, starts) for centre in (None, mean)]
        device.normalise_columns(Z, mean, inverse, gamma, beta, out)
        both = device.norm_sums(D, Z, mean, inverse, starts)
        device.normalise_columns_back(D, Z, mean, inverse, gamma, first, second, counted)
        return *sums, out, both, D

    pair.same(all_four, Z, D, counted, *vectors)


def test_adam(emulated):
    """Three steps of each: the optimiser's own operations, and the kernel."""
    gradients, found = [normal(i, 50) for i in range(3)], []
    for device in (HostDevice(compiled=False), emulated):
        flat, kernel = device.put(normal(9, 50)), device.adam
        optimiser = Adam(50, device.xp, 1e-2, kernel=kernel)
        optimiser.compiled = False
        for gradient in gradients:
            optimiser.update(flat, device.put(gradient))
        found.append(b"".join(standin.host(each).tobytes() for each in (flat, optimiser.m, optimiser.v)))
    assert found[0] == found[1]


# ---- attention --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("h", "k"), [(1, 8), (4, 3)])
def test_attention(pair, h, k):
    """The whole pass over two tiles, as a layer makes it, and back."""
    n, width = 37, h * k
    tiles = [rows_of(1, n, 20), rows_of(2, n, 31)]
    E, L = [normal(i, t[2][1], width + h) / 20 for i, t in enumerate(tiles)], normal(5, n, h) / 20

    def ahead(device, L, D, *E):
        patterns = [device.attention_pattern(device.csr(*t[:2], None, t[2])) for t in tiles]
        T, V = device.zeros((n, 3 * h)), device.empty((n, 2 * width))
        T[:, :h] = L
        for pattern, rows in zip(patterns, E):
            device.attention_top(pattern, device.xp.ascontiguousarray(rows[:, width:]), T)
        device.attention_begin(L, T, V)
        own = device.attention_pattern(device.csr(np.arange(n + 1), np.arange(n), None, (n, n)))
        device.attention_add(own, device.xp.concatenate([D, L], axis=1), L, T, V)
        for pattern, rows in zip(patterns, E):
            device.attention_add(pattern, rows, L, T, V)
        device.attention_finish(T, V)
        F, dL = device.empty((n, width + 4 * h)), device.empty((n, h))
        device.attention_pack(D, L, T, V, F, dL)
        dS, dR = device.zeros((n, width)), device.zeros((n, h))
        device.attention_back(own, F, D, L, dS, dR)
        return T, V, F, dL, dS, dR, device.row_dots(D, dS)

    pair.same(ahead, L, normal(6, n, width) / 20, *E)


@pytest.mark.parametrize(("h", "k"), [(1, 8), (4, 3)])
def test_dynamic_attention(pair, h, k):
    """The whole pass over two tiles, as a layer makes it, and back."""
    n, width = 37, h * k
    tiles = [rows_of(1, n, 20), rows_of(2, n, 31)]

    def ahead(device, T, D, a, *S):
        patterns = [device.attention_pattern(device.csr(*t[:2], None, t[2])) for t in tiles]
        own = device.attention_pattern(device.csr(np.arange(n + 1), np.arange(n), None, (n, n)))
        both = list(zip([own, *patterns], [T, *S]))
        M, V = device.empty((n, 2 * h)), device.empty((n, width))
        device.dynamic_begin(M, V)
        for pattern, rows in both:
            device.dynamic_add(pattern, rows, T, a, M, V)
        device.dynamic_finish(M, V)
        F = device.empty((n, 2 * width + 3 * h))
        device.dynamic_pack(D, T, M, V, F)
        dT, G, dS = (device.zeros((n, width)) for _ in range(3))
        for pattern, rows in both:
            device.dynamic_back_rows(pattern, rows, F, a, dT, G)
        device.dynamic_back_columns(own, F, T, a, dS)
        return M, V, F, dT, G, dS

    S = [normal(i, t[2][1], width) / 20 for i, t in enumerate(tiles)]
    pair.same(ahead, normal(5, n, width) / 20, normal(6, n, width) / 20, normal(7, width, 1), *S)


@pytest.mark.parametrize("d", [1, 16, 37])
def test_pairs(pair, d):
    """Losses and gradients of joined pairs over two tiles, then of pairs that are not; scores of pairs."""
    n = 37
    tiles = [rows_of(1, n, 20), rows_of(2, n, 31)]
    X = [normal(i, t[2][1], d) / 20 for i, t in enumerate(tiles)]

    def work(device, Z, *X):
        Y, losses = device.zeros((n, d)), device.zeros((n,))
        for target, weight in ((1.0, 0.25), (0.0, 0.5)):
            for t, rows in zip(tiles, X):
                pattern = device.attention_pattern(device.csr(*t[:2], None, t[2]))
                device.pair_add(pattern, rows, Z, target, weight, Y, losses)
        return Y, losses, device.pair_dots(Z, Y)

    pair.same(work, normal(6, n, d) / 20, *X)


@pytest.mark.parametrize(("d", "k"), [(1, 1), (16, 3), (37, 2)])
def test_ranks_of_pairs(pair, d, k):
    """Losses and gradients of edges over two tiles, beside the scores of pairs apart, some of them none."""
    n = 37
    tiles = [rows_of(1, n, 20), rows_of(2, n, 31)]
    X = [normal(i, t[2][1], d + k) / 20 for i, t in enumerate(tiles)]
    Z = normal(6, n, d + k) / 20
    for each in (Z[3:9], *(rows[::2] for rows in X)):
        each[:, d:] = -np.inf

    def work(device, Z, *X):
        Y, losses = device.zeros((n, d + k)), device.zeros((n, k))
        for t, rows in zip(tiles, X):
            pattern = device.attention_pattern(device.csr(*t[:2], None, t[2]))
            device.rank_add(pattern, rows, Z, d, 0.25, Y, losses)
        return Y, losses

    pair.same(work, Z, *X)


# ---- rows of edges ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kinds", [False, True])
@pytest.mark.parametrize(("k", "f"), [(1, 1), (3, 20), (13, 16), (40, 7), (6, 65)])
def test_messages_along_edges(pair, monkeypatch, k, f, kinds):
    """Into columns of wider rows and back, of all entries at once and of one row block after the other."""
    n, starts = 37, np.array([0, 0, 9, 10, 30, 37])
    indptr, indices, shape = rows_of(k, n, n + 4, 14)
    draws = np.random.default_rng(f)
    values = normal(1, len(indices), k)
    if kinds:
        values = draws.integers(-1, k, (len(indices), 2)).astype(np.int32)
        values[values[:, 0] == values[:, 1], 1] = -1
    b = normal(2, f) if k > 1 else None

    def work(device, W, X, D, H, Y, dH):
        entries = device.edge_entries(device.csr(indptr, indices, None, shape), values, k)
        bias, some = None if b is None else device.put(b), slice(4, 4 + f)
        device.edge_add(entries, W, bias, X, Y[:, some])
        return device.edge_back(entries, W, bias, H[:, some], D, dH[:, some], starts)

    operands = [normal(i, rows, f) for i, rows in enumerate((k, n + 4, n + 4), 3)]
    operands += [normal(i, n, f + 8) for i in range(3)]
    whole = pair.same(work, *operands)
    monkeypatch.setattr(cuda_edges, "EDGE_BYTES", 1)
    assert all(np.array_equal(bits(a), bits(b)) for a, b in zip(whole, pair.same(work, *operands)))


def attended(device, h, k, width, kinds):
    """What all operations of attention that reads rows of entries make, over two tiles, and back."""
    n, f, starts, draws = 37, h * k, np.array([0, 0, 9, 10, 30, 37]), np.random.default_rng(h)

    def small(seed, *shape):
        return device.put(normal(seed, *shape) / 1000)

    B, W, a = small(1, width, h), small(2, width, f), small(3, f, 1)
    S, R, T, FT = small(4, n, f), small(5, n, h), small(6, n, f), small(7, n, 2 * f + 3 * h)
    top, V = device.zeros((n, 3 * h)), device.zeros((n, 2 * f))
    dS, dR, M, Z, dT, G, dC = (device.zeros((n, m)) for m in (f, h, 2 * h, f, f, f, f))
    device.dynamic_begin(M, Z)
    sums = []
    for i, m in enumerate((20, 31), 8):
        indptr, indices, shape = rows_of(i, n, m, 14)
        values = normal(i, len(indices), width) / 10
        if kinds:
            values = draws.integers(-1, width, (len(indices), 2)).astype(np.int32)
            values[values[:, 0] == values[:, 1], 1] = -1
        tile = device.edge_entries(device.csr(indptr, indices, None, shape), values, width)
        s, r, F, FC = (small(i, m, each) for each in (f, h, f + 4 * h, 2 * f + 3 * h))
        device.edge_attention_top(tile, B, r, top)
        device.edge_attention_add(tile, B, device.xp.concatenate([s, r], axis=1), R, top, V)
        sums.append(device.edge_attention_back(tile, B, F, S, R, dS, dR, starts))
        device.edge_dynamic_add(tile, W, s, T, a, M, Z)
        sums.append(device.edge_dynamic_back_rows(tile, W, s, FT, a, dT, G, starts))
        device.edge_dynamic_back_columns(tile, W, FC, S, a, dC)
    return top, V, dS, dR, M, Z, dT, G, dC, *sums


@pytest.mark.parametrize("kinds", [False, True])
@pytest.mark.parametrize(("h", "k", "width"), [(1, 7, 5), (3, 5, 9), (8, 1, 1), (4, 8, 13)])
def test_attention_along_edges(pair, monkeypatch, h, k, width, kinds):
    """Of all entries at once and of one row after the other, in pieces of the host or of its own."""
    whole = pair.same(attended, h, k, width, kinds)
    monkeypatch.setattr(cuda_edges, "EDGE_BYTES", 1)
    monkeypatch.setattr(edge_attention, "PIECE", 5)
    assert all(
        np.array_equal(bits(a), bits(b)) for a, b in zip(whole, pair.same(attended, h, k, width, kinds))
    )


@pytest.mark.parametrize("kinds", [False, True])
def test_what_attention_along_edges_holds_is_counted(emulated, monkeypatch, kinds):
    """Of some rows at a time, each of few entries."""
    h, f, k, n = 2, 6, 5, 64
    indptr, indices, shape = rows_of(1, n, n)
    values = np.zeros((len(indices), 1), np.int32) if kinds else normal(1, len(indices), k)
    entries = emulated.edge_entries(emulated.csr(indptr, indices, None, shape), values, k)
    W, a, S, F, dT, G = (
        emulated.put(normal(i, *shape) / 20)
        for i, shape in enumerate(((k, f), (f, 1), (n, f), (n, 2 * f + 3 * h), (n, f), (n, f)))
    )
    made, empty, room = [], emulated.empty, 4 * (3 * f + k * kinds) * 100
    monkeypatch.setattr(emulated, "empty", lambda shape: made.append(shape) or empty(shape))
    monkeypatch.setattr(cuda_edges, "EDGE_BYTES", room)
    emulated.edge_dynamic_back_rows(entries, W, S, F, a, dT, G, np.arange(n + 1))
    each = 2 + kinds  # E W, g, and E of categories
    held = max(4 * sum(rows * m for rows, m in made[i : i + each]) for i in range(0, len(made) - 1, each))
    assert len(made) > 2 * each and held <= emulated.attended_bytes(len(indices), f, k, kinds) <= room
    assert emulated.attended_bytes(10, f, k, kinds) == 40 * (3 * f + k * kinds)


@pytest.mark.parametrize("kinds", [False, True])
def test_what_messages_hold_is_counted(emulated, monkeypatch, kinds):
    """Of some row blocks at a time, each of few entries."""
    f, k, n = 6, 5, 64
    indptr, indices, shape = rows_of(1, n, n)
    values = np.zeros((len(indices), 1), np.int32) if kinds else normal(1, len(indices), k)
    entries = emulated.edge_entries(emulated.csr(indptr, indices, None, shape), values, k)
    W, H, D, dH = (emulated.put(normal(i, rows, f)) for i, rows in enumerate((k, n, n, n)))
    made, empty = [], emulated.empty
    monkeypatch.setattr(emulated, "empty", lambda shape: made.append(shape) or empty(shape))
    for most in (cuda_edges.EDGE_BYTES, 4 * (f + k * kinds) * 100):
        monkeypatch.setattr(cuda_edges, "EDGE_BYTES", most)
        made.clear()
        emulated.edge_back(entries, W, None, H, D, dH, np.arange(n + 1))
        held = max(4 * rows * (width + k * kinds) for rows, width in made[:: 2 + kinds])
        counted = emulated.edge_bytes(len(indices), f, k, kinds)
        assert held <= counted <= min(most, 4 * len(indices) * (f + k * kinds)) and 2 * held > counted


# ---- the device -------------------------------------------------------------------------------------------


def test_ranks_are_dealt_to_the_gpus_of_their_machine():
    devices = [emulator.make_device(rank, devices=3) for rank in range(5)]
    assert [device.index for device in devices] == [0, 1, 2, 0, 1]
    assert devices[4].describe().startswith("gpu 1 of 3 (emulated, 1 GiB), CuPy 0")


def test_page_locked_memory_is_the_devices(emulated):
    held = emulated.pinned(6)
    held[:] = np.arange(6)
    X = emulated.empty((6,))
    emulated.load(X, held)
    emulated.store(held[::-1].copy(), X)
    out = np.zeros(6, np.float32)
    emulated.store(out, X)
    assert out.tolist() == held.tolist() == list(range(6))
    assert emulated.memory() == {"used": 0, "held": 0, "free": 1 << 30, "total": 1 << 30}


# ---- the vendor's products --------------------------------------------------------------------------------


class Vendor:
    """What of cupyx a VendorDevice calls: products of column-major operands, which are column-major."""

    class scipy:
        class sparse:
            csr_matrix = staticmethod(standin.csr_matrix)

    class cusparse:
        calls = 0

        @classmethod
        def spmm(cls, A, X, transb):
            if not A.has_canonical_format:
                raise ValueError("expected canonical format for a")
            assert X.flags.f_contiguous and transb
            cls.calls += 1
            return A @ X.T


def test_the_vendors_products():
    """The same sums in any order, added or written; masks are left to our kernels."""
    if emulator.compiler() is None:
        pytest.skip("no C++ compiler to run the CUDA kernels on the host")
    device = VendorDevice(emulator.make_cupy(), Vendor)
    assert not device.reproducible and not device.portable
    indptr, indices, shape = rows_of(3, 40, 40)
    dense = sp.csr_array((np.ones(len(indices)), indices, indptr), shape=shape).toarray()
    X, Y, W = (np.round(normal(i, *size)) for i, size in enumerate(((40, 8), (40, 8), (8, 4))))
    A, out = device.csr(indptr, indices, None, shape), device.put(Y.copy())
    device.spmm_add(A, device.put(X), out)
    assert np.allclose(device.get(out), Y + dense @ X, rtol=1e-5)
    device.spmm_add(A, device.put(X), out, write=True)
    assert np.allclose(device.get(out), dense @ X, rtol=1e-5)
    found = device.get(device.dense([Operand(device.put(X))], device.put(W), Finish(relu=True)))
    assert np.allclose(found, np.maximum(X @ W, 0), rtol=1e-5)


@pytest.mark.parametrize("columns", [[2, 0, 1, 3], [0, 0, 1, 3]])
def test_the_vendor_is_spared_a_matrix_that_it_refuses(columns):
    """Columns that do not ascend, or stand there twice, as in relational networks: our kernels add them."""
    if emulator.compiler() is None:
        pytest.skip("no C++ compiler to run the CUDA kernels on the host")
    device, calls = VendorDevice(emulator.make_cupy(), Vendor), Vendor.cusparse.calls
    A = device.csr(np.array([0, 3, 4]), np.array(columns), None, (2, 4))
    X, Y = np.round(normal(1, 4, 8)), device.zeros((2, 8))
    for _ in range(2):
        device.spmm_add(A, device.put(X), Y)
    assert np.array_equal(device.get(Y), 2 * np.stack([X[columns[:3]].sum(axis=0), X[columns[3]]]))
    assert Vendor.cusparse.calls == calls


# ---- the emulator itself ----------------------------------------------------------------------------------


def test_arguments_are_checked(emulated):
    X = emulated.zeros((4, 4))
    launch = emulated.kernels.launch
    with pytest.raises(TypeError, match="rows is int32, not i64"):
        launch("argmax_rows", 4, np.int32(4), np.int32(4), X, np.int64(4), X)
    with pytest.raises(TypeError, match="out is float32, not an array of int"):
        launch("argmax_rows", 4, np.int64(4), np.int32(4), X, np.int64(4), X)
    with pytest.raises(AssertionError, match="arguments"):
        launch("argmax_rows", 4, np.int64(4))


DIVERGENT = 'extern "C" __global__ void f(const int n) { if ((int)threadIdx.x < n) __syncthreads(); }'
BACKWARDS = """
extern "C" __global__ void f(const int n, const float* X, float* Y) {
    __shared__ float tile[64];
    const int t = (int)threadIdx.x;
    tile[t] = X[t];
    __syncthreads();
    Y[t] = tile[n - 1 - t];
}"""


def test_barriers(emulated):
    module = emulator.RawModule(BACKWARDS)
    X, Y = emulated.put(normal(1, 64)), emulated.empty((64,))
    module.get_function("f")((1, 1), (64,), (np.int32(64), X, Y))
    assert np.array_equal(emulated.get(Y), emulated.get(X)[::-1])


def test_a_divergent_barrier_ends_the_process():
    import subprocess
    import sys

    text = (
        "import emulator, numpy as np\n"
        f"f = emulator.RawModule({DIVERGENT!r}).get_function('f')\n"
        "emulator.Stream(non_blocking=True).use()\n"
        "f((1, 1), (8,), (np.int32(3),))"
    )
    if emulator.compiler() is None:
        pytest.skip("no C++ compiler")
    env = {"PYTHONPATH": ":".join(sys.path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, "-c", text], env=env, capture_output=True, text=True, timeout=60)
    assert "a barrier that 3 of 8 threads" in done.stderr


def test_the_sum_of_a_row_is_what_scipy_makes(emulated):
    """The reference of the reference."""
    indptr, indices, shape = rows_of(3, 50, 50)
    X, Y = normal(1, 50, 16), emulated.zeros((50, 16))
    emulated.spmm_add(emulated.csr(indptr, indices, None, shape), emulated.put(X), Y)
    ones = np.ones(len(indices), np.float32)
    assert (sp.csr_array((ones, indices, indptr), shape) @ X).tobytes() == emulated.get(Y).tobytes()
