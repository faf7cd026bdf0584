"""Multiply and add with one rounding, as NumPy makes it: every bit is that of the C library's fmaf."""

import numpy as np
import pytest
from helpers import fmaf, fused_chain

from app.numerics.fused import chained_gram, chained_product, fused
from app.numerics.products import Operand

pytestmark = pytest.mark.mpi_skip
DRAWS = 20_000


def same_bits(a, b):
    return np.array_equal(a.view(np.int32)[~np.isnan(a)], b.view(np.int32)[~np.isnan(b)]) and np.array_equal(
        np.isnan(a), np.isnan(b)
    )


def test_numbers_of_all_sizes():
    draws = np.random.default_rng(1)
    a, b, c = draws.integers(0, 1 << 32, (3, DRAWS), dtype=np.uint64).astype(np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        assert same_bits(fused(a, b, c), fmaf(a, b, c))


def test_sums_that_end_halfway():
    """Few bits in the product and a small one far below: a second rounding would go the wrong way."""
    draws = np.random.default_rng(2)
    a = 1 + draws.integers(0, 1 << 12, DRAWS) / 4096
    b = (1 + draws.integers(0, 1 << 12, DRAWS) / 4096) * 2.0 ** draws.integers(-60, -20, DRAWS)
    c = (1 + draws.integers(0, 1 << 23, DRAWS) / 2**23) * draws.choice([-1, 1], DRAWS)
    a, b, c = (each.astype(np.float32) for each in (a, b, c))
    # Just below half of the last place of c, which is odd; in float64 the sum is rounded up to that half.
    below = 2.0**-24 * (1 - 2.0**-23)
    a[:2], b[:2], c[:2] = 1 + 2.0**-23, [below, -below], [1 + 2.0**-23, -1 - 2.0**-23]
    found = fused(a, b, c)
    assert same_bits(found, fmaf(a, b, c))
    twice = (a.astype(np.float64) * b + c).astype(np.float32)
    assert (found != twice)[:2].all()  # so it does make a difference


def test_denormal_results():
    draws = np.random.default_rng(3)
    a, b = draws.normal(size=(2, DRAWS)) * 2.0**-70
    c = draws.normal(size=DRAWS) * 2.0**-138
    a, b, c = (each.astype(np.float32) for each in (a, b, c))
    assert same_bits(fused(a, b, c), fmaf(a, b, c))


def test_products_are_chains():
    draws = np.random.default_rng(4)
    X, W = draws.normal(size=(16, 9)).astype(np.float32), draws.normal(size=(9, 5)).astype(np.float32)
    found = chained_product(X, W)
    for row, x in zip(found, X):
        assert np.array_equal(row, fused_chain(x, W))


def test_gradients_are_chains_by_block_graph_by_graph():
    draws = np.random.default_rng(5)
    X, D = draws.normal(size=(24, 3)).astype(np.float32), draws.normal(size=(24, 4)).astype(np.float32)
    starts = np.array([[0, 8, 8], [8, 11, 24]])  # two graphs, two blocks; one of them has none of the first
    found = chained_gram(X, D, starts).reshape(2, 3, 4)
    for block, rows in enumerate([[*range(8), *range(8, 11)], [*range(11, 24)]]):
        for i in range(3):
            assert np.array_equal(found[block, i], fused_chain(X[rows, i], D[rows]))


@pytest.mark.parametrize("width", [1, 8, 24, 31, 40, 64, 96, 112, 128, 130])
def test_compiled_products_have_the_same_bits(lanes, compiled, width):
    """With registers of every width."""
    draws = np.random.default_rng(width)
    X, W = draws.normal(size=(200, 37)).astype(np.float32), draws.normal(size=(37, width)).astype(np.float32)
    D, starts = draws.normal(size=(200, width)).astype(np.float32), np.array([[0, 8, 100, 200]])
    assert np.array_equal(compiled.row_product(X, W), chained_product(X, W))
    assert np.array_equal(compiled.gram([Operand(X)], D, starts), chained_gram(X, D, starts))
