"""Linear assignments and sweeps of dual ascent without the library: assignment.c's numbers."""

import numpy as np

FAR = (1 << 63) - 1


def assign(costs: np.ndarray, u: np.ndarray, v: np.ndarray, row_of: np.ndarray) -> int:
    """The least assignment by shortest augmenting paths; ties go to the first column.

    costs [k, k] int64      u, v, row_of [k] int64   are filled in: multipliers, and the row of each column
    Returns the sum of u and v.
    """
    k = len(costs)
    for root in _reduced(costs, u, v, row_of):
        row, last, end, shift = root, -1, -1, 0
        least, before = np.full(k, FAR, dtype=np.int64), np.full(k, -1, dtype=np.int64)
        done = np.zeros(k, dtype=bool)
        while end < 0:
            here = costs[row] - v + (shift - u[row])
            nearer = ~done & (here < least)
            least[nearer], before[nearer] = here[nearer], last
            column = int(np.where(done, FAR, least).argmin())
            shift = int(least[column])
            done[column], last = True, column
            if row_of[column] < 0:
                end = column
            else:
                row = int(row_of[column])
        u[root] += shift
        done[end] = False
        u[row_of[done]] += shift - least[done]
        v[done] -= shift - least[done]
        while end >= 0:
            start = int(before[end])
            row_of[end] = root if start < 0 else row_of[start]
            end = start
    return int(u.sum() + v.sum())


def _reduced(costs: np.ndarray, u: np.ndarray, v: np.ndarray, row_of: np.ndarray) -> list[int]:
    """Multipliers to begin with: the least of each column, then of each row; a row gets the first free column
    that is least for it. Returns the rows that get none.
    """
    row_of[:], v[:], left = -1, costs.min(axis=0, initial=FAR), []
    for i in range(len(costs)):
        line = costs[i] - v
        u[i] = line.min()
        free = np.flatnonzero((line == u[i]) & (row_of < 0))
        if len(free):
            row_of[free[0]] = i
        else:
            left.append(i)
    return left


def _share_out(linear: np.ndarray, square: np.ndarray, rows: np.ndarray) -> None:
    """Share out what variables cost among the rows of their products."""
    k, every = len(linear), np.arange(len(linear))
    share = linear // (k - 1)
    linear -= share * (k - 1)
    lost = np.repeat(share[:, :, None], k, axis=2)
    lost[every, :, every] = 0
    rows -= lost
    more = np.repeat(lost[:, :, :, None], k, axis=3)
    more[:, every, :, every] = 0
    square += more


def ascend_lean(
    turn: int, a: np.ndarray, b: np.ndarray, linear: np.ndarray, rows: np.ndarray, columns: np.ndarray,
    top: np.ndarray,
) -> int:  # fmt: skip
    """One sweep without products (dual.py: Lean); returns what the bound gains."""
    k, every = len(linear), np.arange(len(linear))
    u, v, row_of = (np.zeros(max(k - 1, 0), dtype=np.int64) for _ in range(3))
    if turn and k > 1:
        share = linear // (k - 1)
        linear -= share * (k - 1)
        rows -= share
        rows[every, every] += share
    for step in range(k * k if k > 1 else 0):
        i, x = divmod(step if turn % 2 or not turn else k * k - 1 - step, k)
        part = np.outer(a[i], b[x]) - rows[:, i, x][:, None] - columns[:, i, x][None, :]
        if turn:
            part += np.outer(a[:, i], b[:, x]) - rows[i] - columns[x]
        nodes, places = (np.delete(every, at) for at in (i, x))
        linear[i, x] += assign(np.ascontiguousarray(part[np.ix_(nodes, places)]), u, v, row_of)
        rows[nodes, i, x] += u
        columns[places, i, x] += v
    u, v, row_of = (np.zeros(k, dtype=np.int64) for _ in range(3))
    gained = assign(linear, u, v, row_of)
    top += u
    linear -= u[:, None] + v[None, :]
    return gained


def ascend(
    turn: int, linear: np.ndarray, square: np.ndarray, rows: np.ndarray, columns: np.ndarray, top: np.ndarray
) -> int:
    """One sweep of dual ascent (dual.py: State); returns what the bound gains."""
    k = len(linear)
    u, v, row_of = (np.zeros(max(k - 1, 0), dtype=np.int64) for _ in range(3))
    if turn and k > 1:
        _share_out(linear, square, rows)
    for step in range(k * k if k > 1 else 0):
        i, x = divmod(step if turn % 2 or not turn else k * k - 1 - step, k)
        nodes, places = (np.delete(np.arange(k), at) for at in (i, x))
        part = square[i, x][np.ix_(nodes, places)]
        if turn:
            part = part + square[:, :, i, x][np.ix_(nodes, places)]
            square[np.ix_(nodes, places, [i], [x])] = 0
        linear[i, x] += assign(part, u, v, row_of)
        rows[i, x, nodes] += u
        columns[i, x, places] += v
        square[i, x][np.ix_(nodes, places)] = part - u[:, None] - v[None, :]
    u, v, row_of = (np.zeros(k, dtype=np.int64) for _ in range(3))
    gained = assign(linear, u, v, row_of)
    top += u
    linear -= u[:, None] + v[None, :]
    return gained
