"""The sparse product on one core, against SciPy's and against what the memory bus allows.

The bound is the time to stream nnz (8 + 4 d) + 8 n d bytes: every stored entry with its row of X, and Y read
and written. The bandwidth is that of a large copy beside every timing (bytes read and written), which also
empties the caches. Ratios to the bound are ours over the bound: less is better, and below one where rows of X
come from a cache after all.
"""

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy
from scipy.sparse import _sparsetools

from app.rng import stream
from bench import subjects
from bench.harness import Effort, Record, compare, record, seconds_of

NODES, EDGES = 169_343, 1_166_243  # of ogbn-arxiv
EXPONENT, FLATTENED = 2.3, 8.0  # of the degrees; what keeps the largest hub near that of ogbn-arxiv
WIDTHS = {16: "<= 1.5", 64: "<= 1.3", 256: "<= 1.3"}
COPIED_BYTES = 256_000_000


def about() -> dict[str, str]:
    """Versions that matter, and whose kernels ours are."""
    device = subjects.open_group().device
    return {"numpy": np.__version__, "scipy": scipy.__version__, "device": device.describe()}


def power_law(n: int, edges: int) -> tuple[np.ndarray, np.ndarray]:
    """indptr, indices of a Chung-Lu graph in random order: symmetric, columns ascend in a row."""
    draws = stream(0, "bench/power-law")
    weight = (np.arange(n) + FLATTENED) ** (-1 / (EXPONENT - 1))
    total = np.cumsum(draws.permutation(weight))
    pairs = np.searchsorted(total, draws.random((edges + edges // 4, 2)) * total[-1]).clip(max=n - 1)
    low, high = pairs.min(axis=1), pairs.max(axis=1)
    keys = np.unique((low * n + high)[low < high])
    keys = draws.permutation(keys)[:edges]
    both = np.sort(np.concatenate([keys, keys % n * n + keys // n]), kind="stable")
    indptr = np.searchsorted(both, n * np.arange(n + 1, dtype=np.int64))
    return indptr.astype(np.int32), (both % n).astype(np.int32)


def measure(effort: Effort, quick: bool) -> Iterator[Record]:
    """Every width, against the bound and against SciPy."""
    device = subjects.open_group().device
    n, edges = (NODES // 8, EDGES // 8) if quick else (NODES, EDGES)
    indptr, indices = power_law(n, edges)
    A = device.csr(indptr, indices, None, (n, n))
    ones = np.ones(len(indices), dtype=np.float32)
    case = f"power law n={n:,}, {edges:,} edges"
    for width, goal in WIDTHS.items():
        X, Y = device.zeros((n, width)), device.zeros((n, width))  # as the program's own: at cache lines
        X[:] = stream(0, "bench/dense").random((n, width), dtype=np.float32)
        nbytes = len(indices) * (8 + 4 * width) + 8 * n * width
        yield _against_bound(f"{case}, d={width}", device, (A, X, Y), nbytes, effort, goal)
        yield compare(
            f"{case}, d={width}", "scipy csr_matvecs", lambda i, X=X, Y=Y: device.spmm_add(A, X, Y),
            lambda i, X=X, Y=Y: _sparsetools.csr_matvecs(
                n, n, X.shape[1], indptr, indices, ones, X.reshape(-1), Y.reshape(-1)
            ),
            effort,
        )  # fmt: skip


def _against_bound(
    case: str, device: Any, operands: tuple[Any, Any, Any], nbytes: int, effort: Effort, goal: str
) -> Record:
    """Times of the product over the time to stream `nbytes`, the bus measured beside every timing."""
    arrays = [np.ones(COPIED_BYTES // 8) for _ in range(2)]
    ours, bound = [], []
    device.spmm_add(*operands)
    start = time.perf_counter()
    while not effort.enough(len(ours), time.perf_counter() - start):
        ours.append(seconds_of(partial(device.spmm_add, *operands)))
        bound.append(nbytes / bandwidth(*arrays))
    rate = np.median([nbytes / seconds for seconds in bound]) / 1e9
    # Here the ratio is ours over the bound, so less is better.
    found = record(case, "the bus", bound, ours, goal, f"bus {rate:.1f} GB/s")
    found.ours_s, found.theirs_s = found.theirs_s, found.ours_s
    return found


def bandwidth(a: np.ndarray, b: np.ndarray) -> float:
    """Bytes per second of copying b to a, read and written, the best of three."""
    return (a.nbytes + b.nbytes) / min(seconds_of(partial(np.copyto, a, b)) for _ in range(3))
