"""Areas under ROC curves and average precisions of many columns, each ranked by one rank."""

from itertools import pairwise

import numpy as np

from app.comm.group import Group

UNKNOWN = np.uint64(np.iinfo(np.uint64).max)  # above every key
ROUND = 1 << 23  # keys of all ranks that are under way at a time (64 MB)


def area_under_roc(margins: np.ndarray, positive: np.ndarray) -> float | None:
    """How likely a positive node has a larger margin than a negative one, a tie counting half; None where one
    kind is missing.

    Source   Mann and Whitney 1947: pairs of a positive and a negative node, counted

    margins, positive   [k] float32 and [k] bool
    """
    return _area(*_levels(np.sort(keys_of(margins, positive))))


def average_precision(margins: np.ndarray, positive: np.ndarray) -> float:
    """The mean over the positive nodes of the share of positives among all whose margin is at least theirs.

    Source   the sum of (R_n - R_(n-1)) P_n over the different margins, downwards: recall and precision of the
             nodes above each

    margins, positive   [k] float32 and [k] bool, some of them True
    """
    return _precision(*_levels(np.sort(keys_of(margins, positive))))


def mean_areas(group: Group, keys_own: np.ndarray) -> tuple[float | None, float | None]:
    """Area and average precision, means over the columns that have entries of both kinds; None without any.

    keys_own   [columns, k] `keys_of` the margins of this rank's nodes
    Ranks      all call; a column is sorted by one rank, each has as many (one exchange, unless keys of all
               columns are more than ROUND)
    """
    columns, k = keys_own.shape
    nodes = int(group.sum_integers(np.array([k]))[0])
    most = max(group.size, ROUND // max(nodes, 1))
    found = [_areas_of(group, keys_own[lo : lo + most]) for lo in range(0, columns, most)]
    known = [both.tolist() for part in found for both in part if not np.isnan(both[0])]
    if not known:
        return None, None
    area, precision = (sum(each) / len(known) for each in zip(*known))
    return area, precision


def keys_of(margins: np.ndarray, positive: np.ndarray, known: np.ndarray | None = None) -> np.ndarray:
    """uint64 of the same shape that are in the order of the float32 margins, the last bit telling positives;
    UNKNOWN of entries that do not count."""
    bits = (margins.astype(np.float32) + np.float32(0)).view(np.uint32)  # -0 is 0
    keys = np.where(bits >> 31, ~bits, bits | np.uint32(1 << 31)).astype(np.uint64)
    keys <<= np.uint64(1)
    keys |= positive
    if known is not None:
        keys[~known] = UNKNOWN
    return keys


def _areas_of(group: Group, keys_own: np.ndarray) -> np.ndarray:
    """[columns, 2] float64 area and average precision of some columns [columns, k]; NaN where a kind is
    missing. Ranks: all call."""
    columns, k = keys_own.shape
    cuts = [columns * rank // group.size for rank in range(group.size + 1)]
    widths = [hi - lo for lo, hi in pairwise(cuts)]
    mine, rows = widths[group.rank], group.gather_integers(np.array([k]))[:, 0].tolist()
    sent = group.exchange_host(
        np.ascontiguousarray(keys_own).reshape(-1), [k * width for width in widths], [mine * n for n in rows]
    )
    ends = np.cumsum([0, *(mine * n for n in rows)])
    parts = [sent[lo:hi].reshape(mine, n) for lo, hi, n in zip(ends, ends[1:], rows)]
    areas = np.full((mine, 2), np.nan)
    for column, out in enumerate(areas):
        levels = _levels(np.sort(np.concatenate([part[column] for part in parts])))
        if (area := _area(*levels)) is not None:
            out[:] = area, _precision(*levels)
    return group.gather_host(areas, widths)


def _levels(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """[levels] int64 each, of the different margins downwards: nodes, and positive ones among them.

    keys   [k] sorted `keys_of` nodes; UNKNOWN ones do not count
    """
    keys = keys[: np.searchsorted(keys, UNKNOWN)][::-1]
    margins = keys >> np.uint64(1)
    ends = np.flatnonzero(np.append(margins[1:] != margins[:-1], True)) if len(keys) else np.zeros(0, int)
    above = np.cumsum((keys & np.uint64(1)).astype(np.int64))[ends]
    return np.diff(ends + 1, prepend=0), np.diff(above, prepend=0)


def _area(nodes: np.ndarray, positive: np.ndarray) -> float | None:
    """The area under the ROC curve from levels, in whole numbers but for the last division."""
    negative = nodes - positive
    count, others = int(positive.sum()), int(negative.sum())
    if not (count and others):
        return None
    below = others - np.cumsum(negative)
    return int((positive * (2 * below + negative)).sum()) / (2 * count * others)


def _precision(nodes: np.ndarray, positive: np.ndarray) -> float:
    """The average precision from levels."""
    shares = np.cumsum(positive) / np.cumsum(nodes)
    return float((positive * shares).sum()) / int(positive.sum())
