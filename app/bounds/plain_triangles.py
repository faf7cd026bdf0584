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
        sums = np.stack([-(ij + ik + jk), ik + jk - ij, ij + jk - ik, ij + ik - jk])
        kind = np.argmax(sums, axis=0)
        by = sums[kind, np.arange(len(j))] - 1.0
        over = np.flatnonzero(by > margin)
        rows = np.column_stack([np.full(len(over), i), j[over], k[over], kind[over]])
        found.append(rows.astype(np.int32))
        buckets.append(np.minimum(((by[over] - margin) / width).astype(np.int64), BUCKETS - 1))
    rows, bucket = np.concatenate(found), np.concatenate(buckets)
    taken = np.sort(np.argsort(-bucket, kind="stable")[:most])
    return rows[taken]
