"""native/triangles.c in NumPy: the same triangles, no compiler."""

import numpy as np

BUCKETS = 256


def triangles(X: np.ndarray, margin: float, most: int) -> np.ndarray:
    """As kernels.triangles."""
    n, width = len(X), (2.0 - margin) / BUCKETS
    found, buckets = [np.zeros((0, 4), dtype=np.int32)], [np.zeros(0, dtype=np.int64)]
    for i in range(n - 2):
        j, k = np.triu_indices(n - i - 1, 1)
        j, k = j + i + 1, k + i + 1
        ij, ik, jk = X[i, j], X[i, k], X[j, k]
        both, other = np.abs(ik + jk) - ij, np.abs(ik - jk) + ij
        by = np.maximum(both, other) - 1.0
        kind = np.where(both > other, np.where(ik + jk > 0, 1, 0), np.where(jk > ik, 2, 3))
        over = np.flatnonzero(by > margin)
        rows = np.column_stack([np.full(len(over), i), j[over], k[over], kind[over]])
        found.append(rows.astype(np.int32))
        buckets.append(np.minimum(((by[over] - margin) / width).astype(np.int64), BUCKETS - 1))
    rows, bucket = np.concatenate(found), np.concatenate(buckets)
    taken = np.sort(np.argsort(-bucket, kind="stable")[:most])
    return rows[taken]
