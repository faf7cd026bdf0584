"""The compiled operations of attention beside the plain ones: equal bits for any heads, columns and rows."""

import numpy as np
import pytest
from scipy.sparse import random_array

from app.device import HostDevice
from app.gnn.layers.gat import NUMBERS

pytestmark = pytest.mark.mpi_skip
N = 60
SHAPES = [(1, 1), (1, 7), (1, 8), (1, 16), (1, 41), (2, 16), (3, 27), (8, 8), (8, 16)]


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize(("heads", "columns"), SHAPES)
def test_attention_has_the_bits_of_the_plain_operations(compiled, heads, columns, kind):
    """Rows of no entry, and of more than are taken at a time."""
    draws = np.random.default_rng(1)
    A = random_array((N, N), density=0.7, format="csr", rng=draws)
    A = A.tolil()
    A[[0, 7, N - 1]] = 0
    A = A.tocsr()
    A.sort_indices()
    width = heads * columns

    def normal(*shape):
        return draws.normal(size=shape).astype(np.float32)

    L, E, F, S = (
        normal(N, heads),
        normal(N, width + heads),
        normal(N, width + NUMBERS * heads),
        normal(N, width),
    )
    found = []
    for device in (compiled, HostDevice(compiled=False)):
        pattern = device.attention_pattern(
            device.csr(A.indptr.astype(kind), A.indices.astype(kind), None, (N, N))
        )
        R = np.ascontiguousarray(E[:, width:])
        T, V = np.zeros((N, 3 * heads), np.float32), np.zeros((N, 2 * width), np.float32)
        T[:, :heads] = R
        device.attention_top(pattern, R, T)
        device.attention_begin(L, T, V)
        device.attention_add(pattern, E, L, T, V)
        sums = V.copy()
        dS, dR = np.zeros((N, width), np.float32), np.zeros((N, heads), np.float32)
        device.attention_back(pattern, F, S, R, dS, dR)
        found.append([each.tobytes() for each in (T, sums, dS, dR)])
    assert found[0] == found[1]
