"""How good clusters of nodes are: beside classes, and by the edges within them. All counts are integers."""

import math

import numpy as np

from app.comm.group import Group
from app.sparse.rowblock import RowBlock


def table_of(group: Group, clusters: np.ndarray, classes: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """[k, c] int64, how many nodes of all ranks are in each cluster and of each class.

    clusters, classes   [rows] of own rows, those below 0 left out
    """
    both = (clusters >= 0) & (classes >= 0)
    keys = clusters[both].astype(np.int64) * shape[1] + classes[both]
    return group.sum_integers(np.bincount(keys, minlength=shape[0] * shape[1])).reshape(shape)


def mutual_information(table: np.ndarray) -> float:
    """Mutual information of clusters and classes over the mean of their entropies (NMI); 1 where both are one
    set. nan without nodes.

    table   [k, c] counts of nodes
    """
    n = int(table.sum())
    if not n:
        return math.nan
    rows, columns = table.sum(axis=1).tolist(), table.sum(axis=0).tolist()
    entropies = [-math.fsum(x / n * math.log(x / n) for x in sizes if x) for sizes in (rows, columns)]
    shared = math.fsum(
        x / n * math.log(x * n / (size * other))
        for row, size in zip(table.tolist(), rows)
        for x, other in zip(row, columns)
        if x
    )
    return shared / (sum(entropies) / 2) if sum(entropies) else 1.0


def adjusted_rand(table: np.ndarray) -> float:
    """Adjusted Rand index of clusters and classes (Hubert and Arabie 1985, eq. 5): 0 is as by chance, 1 where
    they are the same. nan without pairs of nodes.

    table   [k, c] counts of nodes
    """
    pairs = lambda sizes: sum(math.comb(int(x), 2) for x in np.ravel(sizes))  # noqa: E731
    whole = math.comb(int(table.sum()), 2)
    if not whole:
        return math.nan
    both, rows, columns = pairs(table), pairs(table.sum(axis=1)), pairs(table.sum(axis=0))
    chance, most = rows * columns / whole, (rows + columns) / 2
    return (both - chance) / (most - chance) if most != chance else 1.0


def modularity(group: Group, block: RowBlock, clusters: np.ndarray, k: int) -> float:
    """Modularity of clusters (Newman and Girvan 2004): the share of edges within clusters less what it would
    be by degrees alone; edges count one and in no direction. nan without edges.

    clusters   [n_own] of own rows, -1 of rows that are no nodes
    Ranks      all call (one exchange of numbers)
    """
    rows = np.arange(block.n_own)
    counts, columns, _ = block.extended_rows(rows)
    other = block.extend_host(group, np.ascontiguousarray(clusters.astype(np.int32)))[columns]
    mine = np.repeat(clusters, counts)
    within = int(np.count_nonzero((mine == other) & (mine >= 0)))
    real = clusters >= 0
    ends = np.bincount(clusters[real], weights=counts[real], minlength=k).astype(np.int64)
    sums = group.sum_integers(np.concatenate([[within], ends]))
    total = int(sums[1:].sum())
    if not total:
        return math.nan
    return int(sums[0]) / total - math.fsum((int(e) / total) ** 2 for e in sums[1:])
