"""An order of nodes as a ring with labels that ascend along it: what plain searches of orders share.

The same as labels.h. `s` has label, next and before [n+1], n for both ends of the ring, and `placed`, how
many nodes the order has. Where there is no room between two labels, those behind are spread.

Source   Dietz and Sleator, Two algorithms for maintaining order in a list, 1987
"""

from typing import Any

import numpy as np

TOP = 1 << 62  # the label of the end

Search = Any


def end_label(s: Search, v: int) -> int:
    """The label of v, which may be the end."""
    return TOP if v == s.n else int(s.label[v])


def _relabel(s: Search, v: int, q: int, low: int, step: int) -> None:
    """Labels above `low` for the nodes from v on to the one before q."""
    while v != q:
        low += step
        s.label[v], v = low, int(s.next[v])


def _spread(s: Search, p: int) -> None:
    """Spread the nodes behind p evenly, as far as it takes to have room."""
    low, count, q = int(s.label[p]), 1, int(s.next[p])
    while end_label(s, q) - low <= count * count:
        if q == s.n:
            _relabel(s, int(s.next[s.n]), s.n, 0, TOP // (s.placed + 2))
            return
        q, count = int(s.next[q]), count + 1
    _relabel(s, int(s.next[p]), q, low, (end_label(s, q) - low) // count)


def link_behind(s: Search, v: int, p: int) -> None:
    """v, which is not in the order, comes behind p, n being the beginning."""
    if end_label(s, int(s.next[p])) - int(s.label[p]) < 2:
        _spread(s, p)
    q = int(s.next[p])
    s.label[v] = int(s.label[p]) + (end_label(s, q) - int(s.label[p])) // 2
    s.next[v], s.before[v] = q, p
    s.next[p] = s.before[q] = v


def cut_out(s: Search, v: int) -> None:
    """v leaves the order."""
    p, q = int(s.before[v]), int(s.next[v])
    s.next[p], s.before[q] = q, p


def link_all(s: Search, order: np.ndarray) -> None:
    """The order is that of some nodes [k]."""
    step, p = TOP // (len(order) + 2), s.n
    s.label[s.n] = 0
    for i, v in enumerate(order.tolist()):
        s.label[v], s.before[v], s.next[p] = (i + 1) * step, p, v
        p = v
    s.next[p], s.before[s.n] = s.n, p
