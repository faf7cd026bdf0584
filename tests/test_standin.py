"""The stand-in for CuPy refuses, counts and waits as it says; what it computes is NumPy's."""

import copy
import operator
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from tests import standin
from tests.standin import METHODS, NAMES, crossings, host, put, sparse, stream, xp

pytestmark = pytest.mark.mpi_skip


@pytest.fixture(autouse=True)
def fresh_counts():
    crossings.reset()


def ramp(n=6, dtype=np.float32):
    return put(np.arange(n, dtype=dtype))


@pytest.mark.parametrize(
    "expression",
    [
        lambda x, h: x + h,
        lambda x, h: h + x,
        lambda x, h: x * h.tolist(),
        lambda x, h: x == h,
        lambda x, h: h < x,
        lambda x, h: x.__iadd__(h),
        lambda x, h: operator.iadd(h, x),
        lambda x, h: x @ h,
        lambda x, h: x[h.astype(int)],
        lambda x, h: x[h > 2],
        lambda x, h: x[[0, 1]],
        lambda x, h: x.__setitem__(slice(None), h),
        lambda x, h: x.__setitem__(h.astype(int), 1.0),
        lambda x, h: h.__setitem__(slice(None), x),
        lambda x, h: x.take(h.astype(int)),
        lambda x, h: xp.maximum(x, h),
        lambda x, h: xp.maximum(x, [1.0] * 6),
        lambda x, h: xp.concatenate([x, h]),
        lambda x, h: xp.where(h > 2, x, 0),
        lambda x, h: xp.sum(h),
        lambda x, h: xp.sqrt(x, out=h),
        lambda x, h: np.sqrt(x),
        lambda x, h: np.concatenate([x, h]),
        lambda x, h: np.sum(x),
        lambda x, h: np.maximum(h, x),
    ],
)
def test_host_and_device_do_not_mix(expression):
    x, h = ramp(), np.arange(6, dtype=np.float32)
    with pytest.raises(TypeError):
        expression(x, h)
    assert crossings.count == 0
    assert (host(x) == h).all()


@pytest.mark.parametrize(
    "crossing",
    [
        *(np.asarray, np.array, iter, list, pickle.dumps, copy.deepcopy, hash, memoryview, "{:3}".format),
        *(range, operator.index, lambda x: ramp()[:x], lambda x: [1, 2, 3][x]),
    ],
)
def test_implicit_copies_to_the_host_are_refused(crossing):
    with pytest.raises(TypeError):
        crossing(ramp(3, np.int64).sum())
    assert crossings.count == 0


@pytest.mark.parametrize(
    ("crossing", "value"),
    [
        (float, 15.0),
        (int, 15),
        (bool, True),
        (lambda x: x.item(), 15),
        (lambda x: x.get(), 15),
        (lambda x: x.tolist(), 15),
        (xp.asnumpy, 15),
    ],
)
def test_explicit_crossings_are_counted(crossing, value):
    total = ramp(6, np.int64).sum()
    assert crossings.count == 0
    assert crossing(total) == value
    assert crossings.count == 1
    crossings.reset()
    assert crossings.count == 0


def test_copies_to_the_device_are_counted():
    x = put(np.arange(3))
    y = xp.asarray([1, 2, 3], dtype=np.float32)
    y.set(np.ones(3, dtype=np.float32))
    assert xp.asarray(x) is not None
    assert (crossings.puts, crossings.count) == (3, 0)
    with pytest.raises(TypeError):
        put(x)
    with pytest.raises(ValueError):
        y.set(np.ones(3))


def test_put_copies():
    h = np.zeros(3)
    x = put(h)
    h[0] = 1
    assert host(x)[0] == 0


def test_get_into_a_host_buffer():
    buffer = np.zeros(6, dtype=np.float32)
    assert ramp().get(out=buffer) is buffer
    assert buffer.tolist() == [0, 1, 2, 3, 4, 5]
    with pytest.raises(ValueError):
        ramp().get(out=np.zeros(6))


def test_looking_at_it_is_no_crossing():
    x = put(np.zeros((2, 3), dtype=np.float32))
    assert (x.shape, x.size, x.ndim, x.nbytes, x.itemsize, len(x)) == ((2, 3), 6, 2, 24, 4, 2)
    assert (x.dtype, x.strides, x.flags.c_contiguous, x.T.flags.c_contiguous) == (
        np.float32,
        (12, 4),
        True,
        False,
    )
    assert repr(x) == "standin.Array(shape=(2, 3), dtype=float32)"
    assert crossings.count == 0


def test_results_whose_shape_depends_on_the_data_are_counted_as_waits():
    x = ramp()
    for wait in (xp.flatnonzero, xp.nonzero, xp.unique, lambda x: x[x > 2], lambda x: xp.where(x > 2)):
        crossings.reset()
        wait(x)
        assert (crossings.waits, crossings.count) == (1, 0)
    crossings.reset()
    xp.where(x > 2, x, 0)
    assert crossings.waits == 0


def test_no_address_before_synchronize():
    x = ramp()
    with pytest.raises(RuntimeError):
        x.mpi_buffer()
    with pytest.raises(RuntimeError):
        _ = x.__cuda_array_interface__
    stream.synchronize()
    assert x.mpi_buffer() is host(x)
    interface = x.__cuda_array_interface__
    assert interface["data"] == (host(x).ctypes.data, False)
    assert (interface["shape"], interface["typestr"]) == ((6,), "<f4")


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.fill(1),
        lambda x: x.__iadd__(1),
        lambda x: x.__setitem__(0, 1),
        lambda x: x[2:].fill(1),
        lambda x: x.reshape(2, 3).__imul__(2),
        lambda x: xp.multiply(x, 2, out=x),
        lambda x: xp.ascontiguousarray(x).fill(1),
        lambda x: x.cumsum(out=x),
    ],
)
def test_a_write_makes_all_views_busy_and_a_read_does_not(write):
    x = ramp()
    view = x[1:]
    stream.synchronize()
    y = x + 1
    x.mpi_buffer()
    with pytest.raises(RuntimeError):
        y.mpi_buffer()
    write(x)
    for array in (x, view):
        with pytest.raises(RuntimeError):
            array.mpi_buffer()
    stream.synchronize()
    for array in (x, y, view):
        array.mpi_buffer()


def test_no_address_of_what_is_not_row_major():
    x = put(np.zeros((2, 3))).T
    stream.synchronize()
    with pytest.raises(TypeError):
        x.mpi_buffer()
    y = xp.ascontiguousarray(x)
    stream.synchronize()
    assert y.mpi_buffer().shape == (3, 2)


def test_mpi_takes_the_address():
    mpi = pytest.importorskip("mpi4py.MPI")
    x, y = ramp(), xp.empty(6, dtype=np.float32)
    with pytest.raises((RuntimeError, TypeError)):  # mpi4py reports a buffer without address as no buffer
        mpi.COMM_SELF.Allgather(x, y)
    stream.synchronize()
    mpi.COMM_SELF.Allgather(x, y)
    assert (host(y) == host(x)).all()


def test_reductions_and_elements_stay_on_the_device():
    x = put(np.arange(6.0).reshape(2, 3))
    for result in (
        x.sum(),
        x.max(),
        x.argmax(),
        xp.any(x),
        x[1, 2],
        x[0][1],
        xp.count_nonzero(x),
        x[0] @ x[1],
    ):
        assert isinstance(result, xp.ndarray)
        assert result.shape == ()
    assert crossings.count == 0
    x[0, 1].fill(9)
    assert host(x)[0, 1] == 9


def test_numbers_are_no_crossing():
    x = ramp()
    for number in (2, 2.0, np.float32(2), np.array(2.0, dtype=np.float32), xp.float32(2)):
        assert host(x * number).tolist() == host(number * x).tolist() == [0, 2, 4, 6, 8, 10]
    x[np.int64(0)] = np.float32(7)
    assert host(x)[0] == 7
    assert (crossings.count, (x * np.float32(2)).dtype) == (0, np.float32)


def test_unset_memory_is_poisoned():
    assert np.isnan(host(xp.empty((2, 2), dtype=xp.float32))).all()
    assert np.isnan(host(xp.empty_like(ramp()))).all()
    assert (host(xp.empty(3, dtype=xp.int32)) == 0x5A5A5A5A).all()
    assert (host(xp.empty(3, dtype=xp.uint8)) == 0x5A).all()
    assert host(xp.empty(3, dtype=xp.bool_)).all()


def test_repeated_indices_in_an_assignment_are_refused():
    x = ramp()
    twice = put(np.array([1, 1]))
    with pytest.raises(ValueError):
        x[twice] = 0
    with pytest.raises(ValueError):
        x[twice] += 1
    x[put(np.array([1, 2]))] = 0
    assert host(x).tolist() == [0, 0, 0, 3, 4, 5]
    grid = put(np.zeros((3, 3)))
    grid[put(np.array([1, 1])), put(np.array([0, 2]))] = 1
    assert host(grid)[1].tolist() == [1, 0, 1]
    with pytest.raises(ValueError):
        grid[put(np.array([1, 1])), put(np.array([2, 2]))] = 1
    x[x > 3] = -1
    assert host(x).tolist() == [0, 0, 0, 3, -1, -1]


def test_what_numpy_and_cupy_do_differently_must_be_said():
    x = ramp(6, np.int64)
    for call in (
        lambda: xp.argsort(x),
        lambda: x.argsort(),
        lambda: xp.sort(x, kind="quicksort"),
        lambda: xp.bincount(x, ramp()),
        lambda: xp.bincount(ramp()),
        lambda: xp.repeat(x, x),
        lambda: xp.max(x, initial=0),
        lambda: x.sum(where=x > 2),
    ):
        with pytest.raises(TypeError):
            call()
    assert host(x.argsort(kind="stable")).tolist() == host(xp.argsort(x, kind="stable")).tolist()
    assert host(xp.bincount(x, minlength=7)).tolist() == [1, 1, 1, 1, 1, 1, 0]
    assert host(xp.repeat(x, 2)).tolist() == np.repeat(np.arange(6), 2).tolist()


def test_results_are_numpys():
    h = np.array([[3.0, -1.0], [0.5, 4.0]], dtype=np.float32)
    x = put(h)
    one, out = h[0], xp.empty((2, 2), dtype=xp.float32)
    assert xp.multiply(x, 3, out=out) is out
    pairs = [
        (out, h * 3),
        (-x + 2 / x - x**2, -h + 2 / h - h**2),
        (x[1, :] * x[:, None, 0], h[1, :] * h[:, None, 0]),
        (x @ x.T, h @ h.T),
        ((x > 0) & ~(x > 3), (h > 0) & ~(h > 3)),
        (x.astype(xp.int32) // 2, h.astype(np.int32) // 2),
        (x.view(xp.uint32) >> 3, h.view(np.uint32) >> 3),
        (xp.where(x > 0, x, 0), np.where(h > 0, h, 0)),
        (x.sum(axis=0, keepdims=True), h.sum(axis=0, keepdims=True)),
        (x.reshape(-1).cumsum(), h.cumsum()),
        (x.ravel().take(put(np.array([3, 0]))), h.ravel().take([3, 0])),
        (xp.stack([x[0], x[1]], axis=1), h.T),
        (xp.concatenate([x, x]), np.concatenate([h, h])),
        (xp.frexp(x)[1], np.frexp(h)[1]),
        (xp.ldexp(x, 2), h * 4),
        (xp.broadcast_to(x[0], (3, 2)), np.broadcast_to(one, (3, 2))),
        (xp.tile(x[0], 2), np.tile(one, 2)),
        (xp.arange(5, dtype=xp.int32), np.arange(5, dtype=np.int32)),
        (xp.full((2,), 7, dtype=xp.int64), np.full(2, 7)),
        (xp.searchsorted(xp.arange(5), put(np.array([2, 9]))), np.array([2, 5])),
        (x.transpose(1, 0), h.T),
        (abs(x), abs(h)),
    ]
    for device, expected in pairs:
        assert isinstance(device, xp.ndarray)
        assert device.dtype == expected.dtype
        assert np.array_equal(host(device), expected)
    x += 1
    assert np.array_equal(host(x), h + 1)
    assert crossings.count == 0


def test_sparse_products():
    matrix = sp.random_array((5, 4), density=0.5, rng=1, format="csr", dtype=np.float32)
    A = sparse.csr_matrix([put(a) for a in (matrix.data, matrix.indices, matrix.indptr)], shape=matrix.shape)
    X = ramp(12).reshape(4, 3)
    Y = A @ X
    assert np.array_equal(host(Y), matrix @ host(X))
    assert Y.flags.f_contiguous
    assert not Y.flags.c_contiguous
    for product in (lambda: A @ host(X), lambda: matrix @ X, lambda: X.T @ matrix.T, lambda: host(X).T @ A):
        with pytest.raises(TypeError):
            product()
    with pytest.raises(TypeError):
        sparse.csr_matrix((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape)
    with pytest.raises(ValueError):
        sparse.csr_matrix(
            [put(a) for a in (matrix.data.astype(int), matrix.indices, matrix.indptr)], shape=matrix.shape
        )


def test_every_name_is_cupys():
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed: its names cannot be compared")
    assert [name for name in NAMES if not hasattr(cupy, name)] == []
    offered = [name for name in vars(standin.Array) if not name.startswith("_")]
    assert set(METHODS) <= set(offered)
    assert [name for name in offered if name != "mpi_buffer" and not hasattr(cupy.ndarray, name)] == []
