"""Kernels: whose bits depend on the row alone, and sums that are one chain from the left."""

import itertools
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import standin
from helpers import fused_chain
from standin_device import StandInDevice

from app.case.file import build
from app.device import HostDevice, check_octets, open_device
from app.errors import CaseError, NumericsError
from app.native import library
from app.numerics.products import Finish, Members, Operand
from app.tasks.context import wanted_device

WIDTHS = [(16, 16), (40, 16), (24, 32), (7, 16), (16, 1), (1, 8), (3, 3)]


@pytest.fixture(params=["host", "plain", "blas", "blas, plain", "stand-in", "emulated", "gpu"])
def kernels(request):
    """Each device, and the host with BLAS for dense products too, both with and without compiled kernels."""
    if request.param in ("gpu", "emulated", "stand-in"):
        return StandInDevice() if request.param == "stand-in" else request.getfixturevalue(request.param)
    if "plain" in request.param:
        request.getfixturevalue("compiled")  # without them this is what the other one is
    return HostDevice(portable="blas" not in request.param, compiled="plain" not in request.param)


@pytest.fixture(params=["host", "plain"])
def portable(request):
    """The host with its compiled kernels, and without."""
    if request.param == "plain":
        request.getfixturevalue("compiled")
    return HostDevice(compiled=request.param == "host")


def normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def integers(seed, *shape):
    return np.random.default_rng(seed).integers(-8, 9, shape).astype(np.float32)


def chain(rows, start=0):
    """The float32 sum of [m, c] rows from the left."""
    total = np.full(rows.shape[1], start, np.float32)
    for row in rows:
        total = total + row
    return total


# ---- row products -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "m"), WIDTHS)
def test_a_row_has_the_same_bits_wherever_it_stands(kernels, k, m):
    X, W = normal(1, 64, k), kernels.put(normal(2, k, m))
    whole = kernels.get(kernels.row_product(kernels.put(X), W))
    draws = np.random.default_rng(3)
    for rows in (8, 16, 56, 64):
        chosen = draws.permutation(64)[:rows]
        part = kernels.get(kernels.row_product(kernels.put(X[chosen]), W))
        assert part.tobytes() == whole[chosen].tobytes()
    alone = np.zeros((8, k), np.float32)
    for place in range(8):
        alone[:] = normal(place, 8, k)
        alone[place] = X[5]
        assert kernels.get(kernels.row_product(kernels.put(alone), W))[place].tobytes() == whole[5].tobytes()


@pytest.mark.parametrize(("k", "m"), WIDTHS)
def test_row_products_are_products(kernels, k, m):
    X, W = integers(1, 24, k), integers(2, k, m)
    assert np.array_equal(kernels.get(kernels.row_product(kernels.put(X), kernels.put(W))), X @ W)
    X, W = normal(1, 24, k), normal(2, k, m)
    product = kernels.get(kernels.row_product(kernels.put(X), kernels.put(W)))
    assert product.dtype == np.float32
    assert product.flags.c_contiguous
    bound = k * np.finfo(np.float32).eps * (np.abs(X).astype(float) @ np.abs(W))
    assert (np.abs(product - X.astype(float) @ W) <= bound).all()


def test_no_rows(kernels):
    X, W = kernels.put(np.zeros((0, 16), np.float32)), kernels.put(normal(1, 16, 4))
    assert kernels.row_product(X, W).shape == (0, 4)
    assert kernels.fold(np.array([0, 0, 0]), X).shape == (2, 16)
    assert kernels.get(kernels.block_gram(X, X, np.array([[0, 0]]))).tolist() == [[0] * 256]


def test_portable_row_products_are_chains(portable):
    X, W = normal(1, 8, 30), normal(2, 30, 3)
    product = portable.row_product(X, W)
    for i in range(8):
        assert product[i].tobytes() == fused_chain(X[i], W).tobytes()


def test_the_stand_in_computes_what_the_portable_host_does(portable):
    host, device = portable, StandInDevice()
    X, W, D, starts = normal(1, 40, 6), normal(2, 6, 5), normal(3, 40, 5), np.array([0, 8, 8, 40])
    cuts = np.array([[0, 8, 8], [8, 16, 40]])
    pairs = [
        (host.row_product(X, W), device.row_product(device.put(X), device.put(W))),
        (host.fold(starts, X), device.fold(starts, device.put(X))),
        (host.block_gram(X, D, cuts), device.block_gram(device.put(X), device.put(D), cuts)),
    ]
    for one, other in pairs:
        assert one.tobytes() == standin.host(other).tobytes()


# ---- sums of rows -----------------------------------------------------------------------------------------


def test_folds_are_chains(kernels):
    X = normal(1, 50, 3) * 10.0 ** np.random.default_rng(2).integers(-4, 5, (50, 3)).astype(np.float32)
    X = X.astype(np.float32)
    starts = np.array([0, 0, 1, 20, 20, 47])
    out = kernels.get(kernels.fold(starts, kernels.put(X)))
    wanted = np.stack([chain(X[a:b]) for a, b in pairwise(starts)])
    assert out.tobytes() == wanted.tobytes()


@pytest.mark.parametrize(("rows", "total"), [([1e8, 1, -1e8], 0), ([1e8, -1e8, 1], 1), ([], 0)])
def test_the_order_of_rows_decides(kernels, rows, total):
    X = kernels.put(np.array(rows, np.float32)[:, None])
    assert kernels.get(kernels.fold(np.array([0, len(rows)]), X)).tolist() == [[total]]


GRAM_STARTS = [
    [[0, 8, 16, 24, 40, 40, 64]], [[0, 64]], [[0, 0, 32, 64, 64]], [[8 * i for i in range(9)]],
    [[0, 8, 8, 24], [24, 24, 40, 64]], [[0, 8, 16], [16, 16, 16], [16, 48, 64]],
]  # fmt: skip


@pytest.mark.parametrize("starts", GRAM_STARTS, ids=str)
def test_block_gram(kernels, starts):
    X, D = integers(1, 64, 5), integers(2, 64, 3)
    starts = np.array(starts)
    out = kernels.get(kernels.block_gram(kernels.put(X), kernels.put(D), starts))
    wanted = [[(X[a:b].T @ D[a:b]).reshape(-1) for a, b in pairwise(own)] for own in starts]
    assert np.array_equal(out, np.sum(wanted, axis=0))


def test_a_blocks_gram_depends_on_the_block_alone(kernels):
    X, D = normal(1, 64, 5), normal(2, 64, 3)
    whole = kernels.get(kernels.block_gram(kernels.put(X), kernels.put(D), np.array([[0, 16, 32, 40, 64]])))
    for i, (a, b) in enumerate([(0, 16), (16, 32), (32, 40), (40, 64)]):
        alone = kernels.block_gram(kernels.put(X[a:b]), kernels.put(D[a:b]), np.array([[0, b - a]]))
        assert kernels.get(alone).tobytes() == whole[i].tobytes()


def test_a_blocks_gram_depends_on_its_rows_alone(kernels):
    """Two graphs of a block: the same bits wherever their rows stand."""
    X, D = normal(1, 64, 5), normal(2, 64, 3)
    whole = kernels.block_gram(kernels.put(X), kernels.put(D), np.array([[0, 16, 32], [32, 40, 64]]))
    for i, (first, second) in enumerate([(slice(0, 16), slice(32, 40)), (slice(16, 32), slice(40, 64))]):
        rows = [np.ascontiguousarray(np.concatenate([A[first], A[second]])) for A in (X, D)]
        a, b = first.stop - first.start, len(rows[0])
        alone = kernels.block_gram(*map(kernels.put, rows), np.array([[0, a], [a, b]]))
        assert kernels.get(alone).tobytes() == kernels.get(whole)[i].tobytes()


def test_portable_grams_are_chains(portable):
    """Over the rows of a block, graph by graph, whichever method makes them."""
    X, D, starts = normal(1, 64, 4), normal(2, 64, 3), np.array([[0, 16, 40], [40, 48, 64]])
    out = portable.block_gram(X, D, starts)
    assert out.tobytes() == portable.gram([Operand(X)], D, starts).tobytes()
    for block, rows in enumerate(([*range(16), *range(40, 48)], [*range(16, 40), *range(48, 64)])):
        for i in range(4):
            wanted = fused_chain(X[rows, i], D[rows])
            assert out[block].reshape(4, 3)[i].tobytes() == wanted.tobytes()


def test_sparse_products_add_in_stored_order(kernels):
    """Three entries a row, in this order of columns; the row's sum goes on from what Y holds."""
    indptr, indices = np.array([0, 3, 3, 6], np.int32), np.array([0, 1, 2, 0, 2, 1], np.int32)
    A = kernels.csr(indptr, indices, np.ones(6, np.float32), (3, 3))
    X = np.array([[1e8, 1], [1, 2], [-1e8, 3]], np.float32)
    Y = kernels.put(np.array([[0, 0], [5, 5], [0, 1]], np.float32))
    kernels.spmm_add(A, kernels.put(X), Y)
    assert kernels.get(Y).tolist() == [[0, 6], [5, 5], [1, 7]]


@pytest.mark.parametrize("data", [None, [1, -2, 1, 0.5, 1, 3]], ids=["ones", "values"])
def test_sparse_products_with_and_without_stored_values(kernels, data):
    """Without them all are one; the sum goes on from what Y holds."""
    indptr, indices = np.array([0, 3, 3, 6], np.int32), np.array([0, 1, 2, 0, 2, 1], np.int32)
    values = None if data is None else np.array(data, np.float32)
    dense = np.zeros((3, 3), np.float32)
    dense[[0, 0, 0, 2, 2, 2], indices] = 1 if data is None else data
    X, Y = integers(1, 3, 21), integers(2, 3, 21)
    out = kernels.put(Y.copy())
    kernels.spmm_add(kernels.csr(indptr, indices, values, (3, 3)), kernels.put(X), out)
    assert np.array_equal(kernels.get(out), Y + dense @ X)


@pytest.mark.parametrize("kernels", ["host", "plain", "stand-in"], indirect=True)
def test_kernels_want_row_major_operands(kernels):
    X = kernels.put(np.zeros((8, 16), np.float32)).T
    with pytest.raises((NumericsError, TypeError), match="row-major"):
        kernels.fold(np.array([0, 16]), X)


# ---- the device of a rank ---------------------------------------------------------------------------------


def test_octets(kernels):
    check_octets(kernels)


# ---- layer products -----------------------------------------------------------------------------------


def dense_by_rows(parts, W, then):
    """Products.dense in float64, one row and one step after the other."""
    out = []
    for r in range(8):
        Z = sum(W[k] * x for k, x in enumerate(x for part in parts for x in row_of(part, r)))
        if then.base is not None:
            Z = then.base[r] * (1 if then.base_scale is None else then.base_scale[r]) + Z
        Z = np.maximum(Z, 0) if then.relu else Z
        Z = Z * (1 if then.scale is None else then.scale[r])
        out.append(Z if then.gate is None else np.where(then.gate[r] > 0, Z, 0))
    return np.array(out)


def row_of(part, r):
    """Row r of a part, in float64."""
    row = part.X[r if part.index is None else part.index[r]].astype(float)
    return row if part.scale is None else row * part.scale[r]


def on_device(device, value):
    """A Operand or Finish with its arrays on a device."""
    moved = {name: device.put(x) if isinstance(x, np.ndarray) else x for name, x in vars(value).items()}
    return type(value)(**moved)


def finishes():
    """Every combination of what may follow a product, with integers."""
    base, gate = integers(11, 8, 5), integers(12, 8, 5)
    base_scale, scale = (np.abs(integers(seed, 8)) % 3 for seed in (13, 14))
    for flags in itertools.product((False, True), repeat=5):
        with_base, with_base_scale, relu, with_scale, with_gate = flags
        if with_base or not with_base_scale:
            yield Finish(
                base if with_base else None, base_scale if with_base_scale else None, relu,
                scale if with_scale else None, gate if with_gate else None,
            )  # fmt: skip


def test_layer_products_are_what_they_say(kernels):
    table, index, scale = integers(1, 3, 4), np.array([2, 0, 1, 1, 0, 2, 2, 0], np.int32), integers(2, 8)
    kinds = [
        [Operand(integers(3, 8, 6))],
        [Operand(table, index), Operand(integers(4, 8, 2))],
        [Operand(integers(5, 8, 1), scale=scale), Operand(table, index, scale), Operand(integers(6, 8, 1))],
    ]
    w = integers(8, 5, 1)
    for parts, then in itertools.product(kinds, finishes()):
        W = integers(7, 6, 5)
        down = [on_device(kernels, part) for part in parts], kernels.put(W)
        after = on_device(kernels, then)
        wanted = dense_by_rows(parts, W, then)
        assert np.array_equal(kernels.get(kernels.dense(*down, after)), wanted)
        found = kernels.get(kernels.score(*down, kernels.put(w), after))
        assert np.array_equal(found, wanted @ w[:, 0])
        gram = kernels.get(kernels.gram(down[0], kernels.put(wanted.astype(np.float32)), np.array([[0, 8]])))
        columns = np.array([[x for part in parts for x in row_of(part, r)] for r in range(8)])
        assert np.array_equal(gram.reshape(6, 5), columns.T @ wanted)


def test_a_scale_of_zero_leaves_nothing(kernels):
    """Not a zero with a sign, and not the NaN of zero times infinity."""
    X = np.full((8, 3), -1, np.float32)
    X[1] = np.inf
    scale = np.array([0, 0, 1, 0, 1, 0, 0, 0], np.float32)
    parts, then = [Operand(kernels.put(X))], Finish(scale=kernels.put(scale))
    with np.errstate(invalid="ignore"):
        Z = kernels.get(kernels.dense(parts, kernels.put(np.ones((3, 2), np.float32)), then))
    assert Z.tolist() == [[-3 * s, -3 * s] for s in scale.tolist()]
    assert not np.signbit(Z[scale == 0]).any()


def test_gated_spread(kernels):
    values, gate, index = integers(1, 3, 5), integers(2, 8, 5), np.array([0, 0, 1, 2, 2, 1, 0, 2], np.int32)
    out = kernels.gated_spread(kernels.put(values), kernels.put(index), kernels.put(gate))
    assert np.array_equal(kernels.get(out), np.where(gate > 0, values[index], 0))


def test_fold_members(kernels):
    """Two graphs in two blocks of rows, of two states and of one: sums by (block, state)."""
    nodes = np.array([[0, 3, 5], [0, 0, 4]])
    members = Members(nodes, [2, 1], [0, 2], [0, 10], 3)
    X = integers(1, 14, 3)
    first, second = X[:10].reshape(5, 2, 3), X[10:]
    wanted = np.zeros((2, 3, 3))
    for block, (own, other) in enumerate(([slice(0, 3), slice(0, 0)], [slice(3, 5), slice(0, 4)])):
        wanted[block, :2], wanted[block, 2] = first[own].sum(axis=0), second[other].sum(axis=0)
    found = kernels.get(kernels.fold_members(members, kernels.put(X)))
    assert np.array_equal(found, wanted.reshape(2, 9))
    assert members.rows.tolist() == [[0, 6, 10], [10, 10, 14]]


# ---- the property of the BLAS -----------------------------------------------------------------------------


class Uneven(HostDevice):
    """A BLAS whose last row of every eight takes another path."""

    def row_product(self, X, W):
        out = super().row_product(X, W)
        out[7::8] = np.nextafter(out[7::8], np.float32(np.inf))
        return out


def test_octets_bite():
    with pytest.raises(NumericsError, match=r"run\.portable=true"):
        check_octets(Uneven(portable=False))


@pytest.fixture
def gpu_missing(request):
    """True where no GPU can be used."""
    try:
        request.getfixturevalue("gpu")
    except pytest.skip.Exception:
        return True
    return False


def test_opening_a_device(gpu_missing):
    assert open_device("cpu", 0, portable=True).portable
    assert not open_device("cpu", 0, portable=False).portable
    plain = open_device("cpu", 0, portable=True, reproducible=False)
    assert not plain.reproducible
    assert not plain.portable  # chains would be reproducible
    if gpu_missing:
        assert open_device("auto", 0, portable=False).name == "cpu"
        with pytest.raises(CaseError, match="device gpu: CuPy"):
            open_device("gpu", 0, portable=False)
    else:
        assert open_device("auto", 0, portable=False).name == "gpu"


def test_one_blas_call_for_a_whole_product():
    X, W = integers(1, 24, 6), integers(2, 6, 5)
    device = HostDevice(portable=False, reproducible=False)
    assert np.array_equal(device.row_product(X, W), X @ W)


def test_what_a_device_says_of_itself(compiled):
    assert compiled.product.startswith("compiled kernel, ")
    assert f"{32 * library.lanes()}-bit" in compiled.product
    assert "no compiled kernel" in HostDevice(compiled=False).product
    assert compiled.native
    assert open_device("cpu", 0, portable=True).native
    assert not open_device("cpu", 0, portable=True, compiled=False).native
    assert "BLAS" in HostDevice(portable=False).describe()


def test_csr_of_views_with_gaps(device):
    """Kernels that walk over memory must not read what lies between."""
    indptr, indices = np.array([0, 2, 3, 5], np.int64), np.array([0, 1, 2, 0, 2], np.int64)
    data = np.arange(1, 6, dtype=np.float32)
    X = device.put(np.arange(48, dtype=np.float32).reshape(3, 16))

    def product(indptr, indices, data):
        Y = device.zeros((3, 16))
        device.spmm_add(device.csr(indptr, indices, data, (3, 3)), X, Y)
        return device.get(Y)

    def gaps(values):
        wide = np.full((len(values), 2), 1, values.dtype)
        wide[:, 1] = values
        return wide[:, 1]

    whole = product(indptr, indices, data)
    assert np.array_equal(whole[:, 0], [0 * 1 + 16 * 2, 32 * 3, 0 * 4 + 32 * 5])
    assert np.array_equal(product(gaps(indptr), gaps(indices), gaps(data)), whole)
    assert np.array_equal(product(gaps(indptr), gaps(indices), None), product(indptr, indices, None))


@pytest.mark.parametrize(
    ("keys", "device"),
    [
        ({"graph.path": "x.txt"}, "cpu"),
        ({"run.task": "classify", "graph.path": "x.npz"}, "auto"),
        ({"graph.path": "x.txt", "run.device": "gpu"}, "gpu"),
        ({"graph.generator": "er", "graph.nodes": 24000, "graph.p": 0.15}, "auto"),
        ({"graph.generator": "er", "graph.nodes": 1000, "graph.p": 0.15}, "cpu"),
        ({"graph.generator": "ba", "graph.nodes": 4000000, "graph.d": 4}, "cpu"),
        ({"run.task": "train"}, "cpu"),
        ({"run.task": "train", "train.graphs.generator": "er", "train.graphs.nodes": 60}, "cpu"),
        ({"run.task": "train", "train.graphs.generator": "er", "train.graphs.nodes": 3000}, "auto"),
    ],
)
def test_what_auto_means(keys, device, tmp_path, monkeypatch):
    """Policies are slower on a GPU where its launches, one after the other, are the time."""
    monkeypatch.chdir(tmp_path)
    for name in ("x.txt", "x.npz"):
        Path(name).touch()
    assert wanted_device(build(keys, has_training=True)) == device
