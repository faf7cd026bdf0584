"""Sets of keys: as NumPy's own functions find them."""

import numpy as np
import pytest

from app.graphs.keys import among, distinct, shared_keys, sorted_set, union, without

pytestmark = pytest.mark.mpi_skip


@pytest.mark.parametrize("dtype", ["i4", "i8", "u8", "U3"])
@pytest.mark.parametrize("size, others", [(0, 0), (0, 5), (5, 0), (1, 1), (40, 7), (300, 300), (2000, 50)])
def test_sets_are_those_of_numpy(dtype, size, others):
    draws = np.random.default_rng(size + others)
    a, b = (draws.integers(0, 200, count).astype(dtype) for count in (size, others))
    for found, right in (
        (sorted_set(a), np.unique(a)),
        (union(a, b), np.union1d(a, b)),
        (without(a, b), np.setdiff1d(a, b)),
        (shared_keys(a, b), np.intersect1d(a, b)),
        (among(a, np.unique(b)), np.isin(a, b)),
    ):
        assert found.dtype == right.dtype
        np.testing.assert_array_equal(found, right)
    keys, place = distinct(np.sort(a))
    np.testing.assert_array_equal(keys[place], np.sort(a))


def test_arrays_of_two_dimensions_and_lists_are_taken_as_they_are():
    table = np.array([[3, 1], [1, 2]])
    np.testing.assert_array_equal(sorted_set(table), [1, 2, 3])
    np.testing.assert_array_equal(union([2, 1], table), [1, 2, 3])
    np.testing.assert_array_equal(without([4, 4, 1], [1]), [4])
