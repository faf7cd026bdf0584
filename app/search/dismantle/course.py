"""How the largest component falls as nodes are taken out: the curve that dismantling is judged by."""

import csv
import ctypes
import heapq
import io
from typing import NamedTuple

import numpy as np

from app.graphs.joined import root_of
from app.graphs.sized import SizedGraph
from app.native.library import address, function
from app.search.dismantle.baselines import ordered, reinsertions

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
CURVE = function("lk_dismantle_curve", *(Pointer,) * 2, Long, *(Pointer,) * 5)
DEGREES = function("lk_dismantle_by_degree", Long, *(Pointer,) * 6)
COLUMNS = 4  # of a course
STEPS = "removed"  # the first column of a table of curves


def removal_order(
    whole: SizedGraph, chosen: np.ndarray, compiled: bool = True, quick: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """[k] int64, the nodes of a set [n] bool in the order in which they are best taken out; and what
    `largest_components` says of it.

    Of two orders the one with the smaller area below the largest component. Greedy reinsertion backwards:
    last comes the node that makes the smallest component where it alone goes back, the lowest number of
    several, and so on (see reinsertions); and the largest degree in what is left first.

    whole   a graph without weights and limit
    quick   the second one alone
    """
    left, orders = _left_without(whole, chosen, compiled), [by_degree(whole, chosen, compiled)]
    if not quick:
        orders.insert(0, reinsertions(whole, chosen, compiled)[::-1].astype(np.int64))
    found = [(order, largest_components(whole, order, compiled, left)) for order in orders]
    return min(found, key=lambda each: each[1].sum())


def by_degree(whole: SizedGraph, chosen: np.ndarray, compiled: bool = True) -> np.ndarray:
    """[k] int64, the nodes of a set [n] bool, that of the largest degree in what is left first, the lowest
    number of several.
    """
    if compiled and DEGREES is not None:
        left, order = chosen.astype(np.uint8), np.empty(np.count_nonzero(chosen), dtype=np.int64)
        room = whole.degrees(), np.empty(2 * len(order), dtype=np.float64)
        DEGREES(whole.n, *map(address, (whole.indptr, whole.indices, left, *room, order)))
        return order
    degree, ptr, left = whole.degrees().tolist(), whole.indptr.tolist(), set(np.flatnonzero(chosen).tolist())
    heap = [(-degree[v], v) for v in left]
    heapq.heapify(heap)
    order = []
    while heap:
        seen, v = heapq.heappop(heap)
        if seen != -degree[v]:
            heapq.heappush(heap, (-degree[v], v))
            continue
        left.remove(v)
        order.append(v)
        for u in whole.indices[ptr[v] : ptr[v + 1]].tolist():
            if u in left:
                degree[u] -= 1
    return np.array(order, dtype=np.int64)


def curve_of(whole: SizedGraph, chosen: np.ndarray, order: np.ndarray, compiled: bool = True) -> np.ndarray:
    """[n + 1] int64, nodes of the largest component, then without one node more each time: those of a set
    [n] bool in an order [k], that of `removal_order`, then the one of the largest degree in what is left, as
    long as there are edges, then any.
    """
    left, nodes = whole._replace(most=1).without(chosen)
    rest = nodes[ordered(left, 0, compiled)]
    order = np.concatenate([order, rest])
    found = largest_components(whole, order, compiled)
    ends = np.ones(whole.n + 1 - len(found), dtype=np.int64)
    ends[-1:] = 0  # the last one leaves nothing
    return np.concatenate([found, ends])


def robustness(curve: np.ndarray) -> float:
    """R = 1/n sum_{q=1..n} s(q), with s(q) the share of all nodes in the largest component without q of them.

    Less is better; s does not rise, R is at most 1/2 where any node taken out lies in the largest component.
    Source   Schneider, Moreira, Andrade, Havlin and Herrmann, Mitigation of malicious attacks on networks,
             PNAS 2011, eq. 1. The accumulated normalised connectivity of Fan et al., Finding key players in
             complex networks through deep reinforcement learning, Nature Machine Intelligence 2020, eq. 1, is
             n R over the nodes of the largest component of the graph
    """
    n = len(curve) - 1
    return int(curve[1:].sum()) / n**2 if n else 0.0


def curves_text(curves: dict[str, np.ndarray]) -> str:
    """A table of curves [n + 1] by label, a line for each node taken out, until none has an edge left."""
    if not curves:
        return ""
    told = np.stack(list(curves.values()), axis=1)
    ends = 1 + int(np.count_nonzero((told > 1).any(axis=1)))
    rows = io.StringIO()
    table = csv.writer(rows, lineterminator="\n")
    table.writerow([STEPS, *curves])
    table.writerows([i, *row] for i, row in enumerate(told[:ends].tolist()))
    return rows.getvalue()


def read_curves(text: str) -> dict[str, list[int]]:
    """The curves of such a table, by label."""
    rows = list(csv.reader(io.StringIO(text)))
    return {name: [int(row[i]) for row in rows[1:]] for i, name in enumerate(rows[0]) if i} if rows else {}


def read_order(course: str) -> list[str]:
    """The nodes of a course (DismantleTools.course), as its file calls them."""
    if '"' not in course:  # no name has a comma
        return course.replace("\n", ",").split(",")[2 * COLUMNS + 1 : -1 : COLUMNS]
    return [row[1] for row in list(csv.reader(io.StringIO(course, newline="")))[2:]]


def largest_components(
    whole: SizedGraph, order: np.ndarray, compiled: bool = True, left: "Left | None" = None
) -> np.ndarray:
    """[k + 1] int64, nodes of the largest component, then without each node of an order [k] and those before
    it; found by putting them back, the last first.

    left   what is left without them, where that is known
    """
    order = np.ascontiguousarray(order, dtype=np.int64)
    gone = np.zeros(whole.n, dtype=bool)
    gone[order] = True
    part, total, largest = left or _left_without(whole, gone, compiled)
    part, total = part.copy(), total.copy()
    found = np.zeros(len(order) + 1, dtype=np.int64)
    found[-1] = largest
    if compiled and CURVE is not None:
        arrays = order, part, total, gone.view(np.uint8), found
        CURVE(address(whole.indptr), address(whole.indices), len(order), *map(address, arrays))
        return found
    return _put_back(whole, order, part.tolist(), total.tolist(), gone.tolist(), found)


class Left(NamedTuple):
    """What a set leaves: of each node one of its component, [n] int32, how many nodes are there, [n] int64 by
    these, and in the largest one.
    """

    part: np.ndarray
    total: np.ndarray
    largest: int


def _left_without(whole: SizedGraph, gone: np.ndarray, compiled: bool) -> Left:
    left, nodes = whole.without(gone)
    part, total = np.arange(whole.n, dtype=np.int32), np.ones(whole.n, dtype=np.int64)
    if not left.n:
        return Left(part, total, 0)
    of = left.parts(compiled)
    heads = np.empty(int(of.max()) + 1, dtype=np.int64)
    heads[of[::-1]] = nodes[::-1]  # of values that go to one place the last one stays: the lowest node
    part[nodes] = heads[of]
    total[heads] = np.bincount(of)
    return Left(part, total, int(total[heads].max()))


def _put_back(
    whole: SizedGraph, order: np.ndarray, part: list[int], total: list[int], gone: list[bool],
    found: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """What lk_dismantle_curve does."""
    for i in range(len(order) - 1, -1, -1):
        v = int(order[i])
        gone[v] = False
        for u in whole.indices[whole.indptr[v] : whole.indptr[v + 1]].tolist():
            if not gone[u] and (head := root_of(part, u)) != v:
                part[head] = v
                total[v] += total[head]
        found[i] = max(found[i + 1], total[v])
    return found
