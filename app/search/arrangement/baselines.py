"""Plain orders of the nodes of a graph: what searches begin with, and what stands beside answers.

Each works on a question and returns [n] int64. Ties go to the lowest node number.
"""

import ctypes
import heapq
import itertools
from collections.abc import Callable, Iterable

import numpy as np

from app.graphs.arrangement import MIRRORED, Arrangement
from app.native.library import address, function
from app.search.arrangement.spectral import spectral
from app.search.treewidth.sweeps import swept
from app.toolbox import Look, never

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
Rule = Callable[[Arrangement, bool], np.ndarray]
LEVELS = function("lk_arrange_levels", Long, Pointer, Pointer, Long, Pointer, Long, *[Pointer] * 3)
SLOAN = function("lk_arrange_sloan", Long, *[Pointer] * 7, returns=Long)
WALKS = 3
LOW_ROOTS = 6  # nodes of low degree that Cuthill and McKee's order begins with
FAR, NEAR = 2, 1  # Sloan's weights of distances and of new nodes of the front


def as_given(asked: Arrangement, compiled: bool = True) -> np.ndarray:
    """The order of the file."""
    return np.arange(asked.n)


def breadth_first(asked: Arrangement, compiled: bool = True) -> np.ndarray:
    """By breadth, from an end of each component, which walks by breadth find."""
    return _levels(asked, False, compiled)


def cuthill_mckee(asked: Arrangement, compiled: bool = True, look: Look = never) -> np.ndarray:
    """By breadth, neighbours of lower degree first, and all in reverse; the best from several first nodes.

    These are the end of each component that walks by breadth find, the node that is last from there, and
    nodes of low degree.

    Source   Cuthill and McKee 1969; George 1971; the end: George and Liu 1979
    """
    order = _levels(asked, True, compiled)
    low = np.argsort(np.diff(asked.indptr), kind="stable")
    begins = [order[::-1], *(np.roll(low, -k) for k in range(LOW_ROOTS))]
    orders = (_levels(asked, True, compiled, each) for each in begins)
    return _best(asked, itertools.chain([order], orders), look)[::-1].copy()


def sloan(asked: Arrangement, compiled: bool = True) -> np.ndarray:
    """Always the node that is far from the other end and brings few new nodes to the front, as weights say.

    Source   Sloan, An algorithm for profile and wavefront reduction of sparse matrices, Int. J. Numer.
             Methods Eng. 1986
    """
    n = asked.n
    if not (compiled and SLOAN):
        return _sloan(asked)
    level, queue, order = np.full(n, -1, dtype=np.int32), *(np.zeros(n, dtype=np.int32) for _ in range(2))
    priority, state = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.uint8)
    if SLOAN(n, *map(address, (asked.indptr, asked.indices, level, queue, priority, state, order))) < 0:
        raise MemoryError("Sloan's order")
    return order.astype(np.int64)


def king(asked: Arrangement, compiled: bool = True) -> np.ndarray:
    """Always the node of the front that brings the fewest new ones to it (King 1970)."""
    return swept(asked.pattern("core"), compiled)


def by_spectrum(asked: Arrangement, compiled: bool = True, look: Look = never) -> np.ndarray:
    """By Fiedler's vector, about, or a mixture with the next one; where there is no time, by breadth."""
    begin = breadth_first(asked, compiled)
    found = spectral(asked, begin, look, compiled)
    return _best(asked, itertools.chain([next(found, begin)], found), never)


def _best(asked: Arrangement, orders: Iterable[np.ndarray], look: Look) -> np.ndarray:
    """The first of the orders that are worth least, either way round; until the time is up."""
    found: list[tuple[int, np.ndarray]] = []
    for order in orders:
        value = asked.value(better_way(asked, order))
        if not found or value < found[0][0]:
            found = [(value, order)]
        if look():
            break
    return found[0][1]


LOOKING = ("cuthill_mckee", "spectral")  # those that ask for the time
RULES: dict[str, tuple[str, Rule]] = {  # what is quick and good for all five first
    "sloan": ("Sloan", sloan),
    "king": ("King", king),
    "cuthill_mckee": ("reverse Cuthill-McKee", cuthill_mckee),
    "spectral": ("spectral", by_spectrum),
    "breadth_first": ("breadth first", breadth_first),
    "given": ("as given", as_given),
}
SECONDS = {
    "cuthill_mckee": 6e-7, "sloan": 2e-7, "king": 2e-7, "spectral": 3e-6, "breadth_first": 1e-7,
    "given": 1e-8,
}  # fmt: skip  # for each node and entry


def better_way(asked: Arrangement, order: np.ndarray) -> np.ndarray:
    """An order or its reverse, whichever is worth less."""
    if asked.kind in MIRRORED:
        return order
    back = order[::-1].copy()
    return back if asked.value(back) < asked.value(order) else order


def _levels(
    asked: Arrangement, by_degree: bool, compiled: bool, begin: np.ndarray | None = None
) -> np.ndarray:
    """By breadth from the first node of each component in `begin` [n]; None: from the end that walks find."""
    n, walks = asked.n, begin is None
    begin = (np.arange(n) if begin is None else begin).astype(np.int32)
    if compiled and LEVELS is not None:
        level, queue, order = np.full(n, -1, dtype=np.int32), *(np.zeros(n, dtype=np.int32) for _ in range(2))
        ptr, near, first, *found = map(address, (asked.indptr, asked.indices, begin, level, queue, order))
        LEVELS(n, ptr, near, int(by_degree), first, int(walks), *found)
        return order.astype(np.int64)
    rows = _rows(asked)
    seen, made = [False] * n, []
    for low in begin.tolist():
        if seen[low]:
            continue
        root = _far_end(rows, low)[0] if walks else low
        done = len(made)
        made.append(root)
        seen[root] = True
        while done < len(made):
            fresh = [u for u in rows[made[done]] if not seen[u]]
            for u in fresh:
                seen[u] = True
            made += sorted(fresh, key=lambda u: (len(rows[u]), u)) if by_degree else fresh
            done += 1
    return np.array(made, dtype=np.int64)


def _rows(asked: Arrangement) -> list[list[int]]:
    return [asked.indices[a:b].tolist() for a, b in itertools.pairwise(asked.indptr.tolist())]


def _walk(rows: list[list[int]], root: int) -> tuple[list[int], dict[int, int]]:
    """Nodes by breadth, and their levels."""
    level, order = {root: 0}, [root]
    for v in order:
        for u in rows[v]:
            if u not in level:
                level[u] = level[v] + 1
                order.append(u)
    return order, level


def _far_end(rows: list[list[int]], root: int) -> tuple[int, int]:
    """An end of a component, and the last node of the last walk."""
    for _ in range(WALKS):
        order, level = _walk(rows, root)
        last = [v for v in order if level[v] == level[order[-1]]]
        root = min(last, key=lambda v: (len(rows[v]), v))
    return root, order[-1]


INACTIVE, PREACTIVE, ACTIVE, NUMBERED = range(4)  # states of nodes (Sloan 1986)


def _sloan(asked: Arrangement) -> np.ndarray:
    """As the kernel does it."""
    rows, made = _rows(asked), []
    state = [INACTIVE] * asked.n
    for low in range(asked.n):
        if state[low] != NUMBERED:
            made += _sloan_component(rows, state, low)
    return np.array(made, dtype=np.int64)


def _sloan_component(rows: list[list[int]], state: list[int], low: int) -> list[int]:
    """The order of the component of its lowest node, whose nodes become NUMBERED in `state`."""
    root, _ = _far_end(rows, low)
    order, _ = _walk(rows, root)
    order, level = _walk(rows, order[-1])
    priority = {v: FAR * level[v] - NEAR * (len(rows[v]) + 1) for v in order}
    heap, made = [(-priority[root], root)], []
    state[root] = PREACTIVE

    def more(nodes: list[int]) -> None:
        for u in nodes:
            if state[u] != NUMBERED:
                priority[u] += NEAR
                state[u] = PREACTIVE if state[u] == INACTIVE else state[u]
                heapq.heappush(heap, (-priority[u], u))

    while heap:
        top, v = heapq.heappop(heap)
        if state[v] == NUMBERED or top != -priority[v]:
            continue
        if state[v] == PREACTIVE:
            more(rows[v])
        made.append(v)
        state[v] = NUMBERED
        for u in rows[v]:
            if state[u] == PREACTIVE:
                state[u] = ACTIVE
                more([u, *rows[u]])
    return made
