"""Kernels: whose bits depend on the row alone, and sums that are one chain from the left."""

from itertools import pairwise

import numpy as np
import pytest
import standin
from standin_device import StandInDevice

from app.device import HostDevice, check_octets, open_device
from app.errors import CaseError, NumericsError

WIDTHS = [(16, 16), (40, 16), (24, 32), (7, 16), (16, 1), (1, 8), (3, 3)]


@pytest.fixture(params=["host", "portable", "stand-in", "gpu"])
def kernels(request):
    """Each device, and the host's portable kernels too."""
    if request.param == "gpu":
        return request.getfixturevalue("gpu")
    return (
        StandInDevice() if request.param == "stand-in" else HostDevice(portable=request.param == "portable")
    )


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
    assert kernels.get(kernels.block_gram(X, X, np.array([0, 0]))).tolist() == [[0] * 256]


def test_portable_row_products_are_chains():
    X, W = normal(1, 8, 30), normal(2, 30, 3)
    product = HostDevice(portable=True).row_product(X, W)
    for i in range(8):
        assert product[i].tobytes() == chain(X[i][:, None] * W).tobytes()


def test_the_stand_in_computes_what_the_portable_host_does():
    host, device = HostDevice(portable=True), StandInDevice()
    X, W, D, starts = normal(1, 40, 6), normal(2, 6, 5), normal(3, 40, 5), np.array([0, 8, 8, 40])
    pairs = [
        (host.row_product(X, W), device.row_product(device.put(X), device.put(W))),
        (host.fold(starts, X), device.fold(starts, device.put(X))),
        (host.block_gram(X, D, starts), device.block_gram(device.put(X), device.put(D), starts)),
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


GRAM_STARTS = [[0, 8, 16, 24, 40, 40, 64], [0, 64], [0, 0, 32, 64, 64], [0] + [8 * i for i in range(1, 9)]]


@pytest.mark.parametrize("starts", GRAM_STARTS, ids=str)
def test_block_gram(kernels, starts):
    X, D = integers(1, 64, 5), integers(2, 64, 3)
    starts = np.array(starts)
    out = kernels.get(kernels.block_gram(kernels.put(X), kernels.put(D), starts))
    wanted = [(X[a:b].T @ D[a:b]).reshape(-1) for a, b in pairwise(starts)]
    assert np.array_equal(out, np.stack(wanted))


def test_a_blocks_gram_depends_on_the_block_alone(kernels):
    X, D = normal(1, 64, 5), normal(2, 64, 3)
    whole = kernels.get(kernels.block_gram(kernels.put(X), kernels.put(D), np.array([0, 16, 32, 40, 64])))
    for i, (a, b) in enumerate([(0, 16), (16, 32), (32, 40), (40, 64)]):
        alone = kernels.block_gram(kernels.put(X[a:b]), kernels.put(D[a:b]), np.array([0, b - a]))
        assert kernels.get(alone).tobytes() == whole[i].tobytes()


def test_portable_grams_are_chains():
    X, D = normal(1, 40, 4), normal(2, 40, 3)
    out = HostDevice(portable=True).block_gram(X, D, np.array([0, 16, 40]))
    for block, rows in enumerate((slice(0, 16), slice(16, 40))):
        for i in range(4):
            wanted = chain(X[rows, i : i + 1] * D[rows])
            assert out[block].reshape(4, 3)[i].tobytes() == wanted.tobytes()


def test_sparse_products_add_in_stored_order(kernels):
    """Three entries a row, in this order of columns; the row's sum goes on from what Y holds."""
    indptr, indices = np.array([0, 3, 3, 6], np.int32), np.array([0, 1, 2, 0, 2, 1], np.int32)
    A = kernels.csr(indptr, indices, np.ones(6, np.float32), (3, 3))
    X = np.array([[1e8, 1], [1, 2], [-1e8, 3]], np.float32)
    Y = kernels.put(np.array([[0, 0], [5, 5], [0, 1]], np.float32))
    kernels.spmm_add(A, kernels.put(X), Y)
    assert kernels.get(Y).tolist() == [[0, 6], [5, 5], [1, 7]]


@pytest.mark.parametrize("kernels", ["host", "portable", "stand-in"], indirect=True)
def test_kernels_want_row_major_operands(kernels):
    X = kernels.put(np.zeros((8, 16), np.float32)).T
    with pytest.raises((NumericsError, TypeError), match="row-major"):
        kernels.fold(np.array([0, 16]), X)


# ---- the device of a rank ---------------------------------------------------------------------------------


def test_octets(kernels):
    check_octets(kernels)


class Uneven(HostDevice):
    """A BLAS whose last row of every eight takes another path."""

    def row_product(self, X, W):
        out = super().row_product(X, W)
        out[7::8] = np.nextafter(out[7::8], np.float32(np.inf))
        return out


def test_octets_bite():
    with pytest.raises(NumericsError, match=r"run\.portable=true"):
        check_octets(Uneven())


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
    assert not open_device("cpu", 0, portable=False, reproducible=False).reproducible
    if gpu_missing:
        assert open_device("auto", 0, portable=False).name == "cpu"
        with pytest.raises(CaseError, match="device gpu: CuPy"):
            open_device("gpu", 0, portable=False)
    else:
        assert open_device("auto", 0, portable=False).name == "gpu"


def test_one_blas_call_for_a_whole_product():
    X, W = integers(1, 24, 6), integers(2, 6, 5)
    assert np.array_equal(HostDevice(reproducible=False).row_product(X, W), X @ W)
