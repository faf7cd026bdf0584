"""The compiled operations of attention beside the plain ones: equal bits for any heads, columns and rows."""

import numpy as np
import pytest
from scipy.sparse import random_array

from app.device import HostDevice
from app.gnn.layers.gat import NUMBERS
from app.gnn.layers.gatv2 import NUMBERS as DYNAMIC_NUMBERS

pytestmark = pytest.mark.mpi_skip
N = 60
SHAPES = [(1, 1), (1, 7), (1, 8), (1, 16), (1, 41), (2, 16), (3, 27), (8, 8), (8, 16)]


def pattern_rows(draws):
    """Rows of no entry, and of more than are taken at a time."""
    A = random_array((N, N), density=0.7, format="csr", rng=draws)
    A = A.tolil()
    A[[0, 7, N - 1]] = 0
    A = A.tocsr()
    A.sort_indices()
    return A


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize(("heads", "columns"), SHAPES)
def test_attention_has_the_bits_of_the_plain_operations(compiled, heads, columns, kind):
    draws = np.random.default_rng(1)
    A = pattern_rows(draws)
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


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize(("heads", "columns"), SHAPES)
def test_dynamic_attention_has_the_bits_of_the_plain_operations(compiled, heads, columns, kind):
    """Over two patterns, the second of which finds larger scores and smaller ones."""
    draws = np.random.default_rng(1)
    patterns, width = [pattern_rows(draws) for _ in range(2)], heads * columns

    def normal(*shape):
        return draws.normal(size=shape).astype(np.float32)

    S, T, D, a = normal(N, width), normal(N, width), normal(N, width), normal(width, 1)
    found = []
    for device in (compiled, HostDevice(compiled=False)):
        made = [
            device.attention_pattern(device.csr(A.indptr.astype(kind), A.indices.astype(kind), None, (N, N)))
            for A in patterns
        ]
        M, V = np.empty((N, 2 * heads), np.float32), np.empty((N, width), np.float32)
        device.dynamic_begin(M, V)
        for factor, pattern in zip(np.float32([1, 3]), made):
            device.dynamic_add(pattern, factor * S, T, a, M, V)
        sums = [M.tobytes(), V.tobytes()]
        M[:, heads:] += 1  # rows without entries
        device.dynamic_finish(M, V)
        M[:, :heads] = np.where(np.isinf(M[:, :heads]), 0, M[:, :heads])
        F = np.empty((N, 2 * width + DYNAMIC_NUMBERS * heads), np.float32)
        device.dynamic_pack(D, T, M, V, F)
        dT, G, dS = np.zeros((3, N, width), np.float32)
        for pattern in made:
            device.dynamic_back_rows(pattern, S, F, a, dT, G)
            device.dynamic_back_columns(pattern, F, S, a, dS)
        found.append([*sums, *(each.tobytes() for each in (M, V, F, dT, G, dS))])
    assert found[0] == found[1]


def test_dynamic_attention_is_a_softmax_whatever_the_order_of_scores(compiled):
    """Scores that rise, fall and are far apart: the weights of a row sum to one, and are those of float64."""
    n, scores = 4, np.array([[-80, 0, 90], [90, 0, -80], [5, 5, 5], [0, 300, -300]], dtype=np.float32)
    for device in (compiled, HostDevice(compiled=False)):
        ramp = np.arange(0, 3 * n + 1, 3)
        pattern = device.attention_pattern(device.csr(ramp, np.tile(np.arange(3), n), None, (n, 3)))
        for row in range(n):
            S, T = scores[row][:, None], np.zeros((n, 1), np.float32)
            M, V = np.empty((n, 2), np.float32), np.empty((n, 1), np.float32)
            device.dynamic_begin(M, V)
            device.dynamic_add(pattern, S, T, np.ones((1, 1), np.float32), M, V)
            device.dynamic_finish(M, V)
            y = np.where(scores[row] > 0, scores[row], 0.2 * scores[row]).astype(float)
            alpha = np.exp(y - y.max())
            wanted = (alpha / alpha.sum() * scores[row]).sum()
            assert np.allclose(V, wanted, rtol=1e-6) and (M[:, 0] == np.float32(y.max())).all()
