"""Plain sets that dismantle a graph, without learning: what searches have to beat, and where they begin.

Each works on a graph whose nodes have sizes and weights and returns `(chosen, name)`: chosen [n] bool, and
the name to print beside the result. Ties go to the lowest node number.
"""

import ctypes

import numpy as np

from app.errors import NoneFound
from app.graphs.multigraph import Multigraph
from app.graphs.sized import SizedGraph
from app.native.library import address, function
from app.search.dismantle import plain
from app.search.fvs.baselines import greedy_order

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
TREES = function("lk_dismantle_trees", Long, *(Pointer,) * 3, Long, *(Pointer,) * 4)
REINSERT = function(
    "lk_dismantle_reinsert", Long, *(Pointer,) * 4, *(Long,) * 3, *(Pointer,) * 5, returns=Long
)
ORDER = function(
    "lk_dismantle_order", Long, *(Pointer,) * 4, Long, Long, Long, Long, *(Pointer,) * 6, returns=Long
)
RADIUS = 2  # of the balls of collective influence, where they are not too large
LOOKS = 100_000_000  # entries that they are found by, at most: some seconds
LOOK_SECONDS, ENTRY_SECONDS = 3e-8, 1e-6  # about, for each of these, and for each node and entry of the graph
GROWN_LOOKS = 20_000_000  # the same of nodes that are to go back, while components grow beside them
FINE = 10  # bits of the gain of the lightest node
KEY = 62  # bits of a heap's key


def core_hd(core: SizedGraph, compiled: bool = True) -> tuple[np.ndarray, str]:
    """The node of the largest degree of the 2-core leaves, until there is none (with weights that of the
    least weight / (degree - 1)); trees are broken from their leaves up, as few times as may be; then nodes go
    back, the one that makes the smallest component first.

    Source   CoreHD: Zdeborová, Zhang and Zhou, Fast and simple decycling and dismantling of networks,
             Scientific Reports 2016; reinsertion: Braunstein, Dall'Asta, Semerjian and Zdeborová, Network
             dismantling, PNAS 2016
    """
    return reinserted(core, core_hd_bare(core, compiled)[0], compiled), LABELS["core_hd"]


def core_hd_bare(core: SizedGraph, compiled: bool = True) -> tuple[np.ndarray, str]:
    """The same, nothing put back: beside a policy's choices as they are."""
    plainly = Multigraph(core.indptr, core.indices, np.zeros(len(core.indices), np.uint8), core.weights)
    chosen = np.zeros(core.n, dtype=bool)
    chosen[greedy_order(plainly, compiled)] = True
    return broken(core, chosen, compiled), LABELS["core_hd_bare"]


def high_degree(core: SizedGraph, compiled: bool = True) -> tuple[np.ndarray, str]:
    """The node of the largest degree in what is left (with weights, of degree / weight), until no component
    is too large.

    Source   adaptive attacks: Cohen, Erez, ben-Avraham and Havlin, Breakdown of the internet under
             intentional attack, Physical Review Letters 2001
    """
    return shortest(core, ordered(core, 0, compiled), compiled), LABELS["high_degree"]


def influence(core: SizedGraph, compiled: bool = True) -> tuple[np.ndarray, str]:
    """The node of the largest collective influence in what is left, (k - 1) times the sum of (k' - 1) over
    the nodes two steps away, of graphs with too many of these one step away (with weights, over its weight),
    until no component is too large; then nodes go back. Raises NoneFound where these are too many, too.

    Source   Morone and Makse, Influence maximization in complex networks through optimal percolation, Nature
             2015
    """
    try:
        order = ordered(core, RADIUS, compiled)
    except NoneFound:
        order = ordered(core, 1, compiled)
    return reinserted(core, shortest(core, order, compiled), compiled), LABELS["influence"]


def influence_seconds(core: SizedGraph) -> float:
    """An estimate of what `influence` takes: where a node leaves, balls are made anew around all that its own
    ball of RADIUS + 1 steps holds.
    """
    entries = core.n + len(core.indices)
    looks = core.n * (len(core.indices) / max(core.n, 1)) ** (2 * RADIUS + 1) / 2
    return LOOK_SECONDS * min(looks, LOOKS) + ENTRY_SECONDS * entries


def gains(core: SizedGraph) -> tuple[np.ndarray, int]:
    """[n] int64 from 1 on, how light nodes are beside the lightest, and what that one has; all one where all
    weigh the same.
    """
    if not core.n or (core.weights == core.weights[0]).all():
        return np.ones(core.n, dtype=np.int64), 1
    bits = KEY - core.n.bit_length() - int(core.size.sum()).bit_length() - 1
    top = 1 << max(min(FINE, bits), 0)
    lightest = int(core.weights.min())
    if top * lightest < 1 << KEY:
        return np.maximum(top * lightest // core.weights, 1), top
    return np.array([max(top * lightest // w, 1) for w in core.weights.tolist()], dtype=np.int64), top


def ordered(core: SizedGraph, radius: int, compiled: bool = True) -> np.ndarray:
    """[k] int32, nodes by influence within a radius (0: by degree) in what is left, until no component is too
    large, and some more. Raises NoneFound.
    """
    gain, top = gains(core)
    scale = int(core.degrees().max(initial=0)) + 1
    if radius and scale * scale * len(core.indices) * top >= 1 << (KEY - core.n.bit_length()):
        raise NoneFound("the balls of collective influence are too large")
    if not (compiled and ORDER and core.n):
        found = plain.ordered(core, gain.tolist(), radius, scale, LOOKS)
        order = None if found is None else np.array(found, dtype=np.int32)
    else:
        order, queue, near = (np.empty(core.n, dtype=np.int32) for _ in range(3))
        degree, mark, value = core.degrees(), *(np.empty(core.n, dtype=np.int64) for _ in range(2))
        given = map(address, (core.indptr, core.indices, core.size, gain))
        scratch = map(address, (degree, order, queue, near, mark, value))
        count = ORDER(core.n, *given, radius, scale, core.most, LOOKS, *scratch)
        if count == -1:
            raise MemoryError
        order = None if count < 0 else order[:count].copy()
    if order is None:
        raise NoneFound("the balls of collective influence are too large")
    return order


def shortest(core: SizedGraph, order: np.ndarray, compiled: bool = True) -> np.ndarray:
    """[n] bool, as many of the first nodes of an order as it takes."""
    low, high = 0, len(order)  # components only grow with nodes that are put back
    while low < high:
        middle = (low + high) // 2
        if core.without(_mask(core, order[:middle]))[0].apart(compiled):
            high = middle
        else:
            low = middle + 1
    return _mask(core, order[:high])


def _mask(core: SizedGraph, nodes: np.ndarray) -> np.ndarray:
    chosen = np.zeros(core.n, dtype=bool)
    chosen[nodes] = True
    return chosen


def broken(core: SizedGraph, chosen: np.ndarray, compiled: bool = True) -> np.ndarray:
    """[n] bool, a set that leaves a forest, with the nodes that break its trees."""
    if not (compiled and TREES and core.n):
        return plain.trees(core, chosen)
    taken, total = chosen.astype(np.uint8), np.empty(core.n, dtype=np.int64)
    scratch = np.empty(core.n, dtype=np.int32), np.empty(core.n, dtype=np.int32), total
    given = map(address, (core.indptr, core.indices, core.size))
    TREES(core.n, *given, core.most, address(taken), *map(address, scratch))
    return taken.astype(bool)


def reinserted(core: SizedGraph, chosen: np.ndarray, compiled: bool = True) -> np.ndarray:
    """[n] bool, a set without the nodes that may go back, the one of the smallest component first (with
    weights, for its weight).
    """
    left = chosen.copy()
    left[reinsertions(core, chosen, compiled)] = False
    return left


def reinsertions(
    core: SizedGraph, chosen: np.ndarray, compiled: bool = True, looks: int | None = None
) -> np.ndarray:
    """[k] int32, those nodes in the order in which they go back; where more entries than `looks` would be
    looked at again as components grow, the later ones by what they were last seen to make.

    looks   None: GROWN_LOOKS, some seconds
    """
    looks = GROWN_LOOKS if looks is None else looks
    gain, top = gains(core)
    gain = top // gain if top > 1 else gain
    if not (compiled and REINSERT and core.n):
        return np.array(plain.reinsert(core, chosen, gain.tolist(), top, looks), dtype=np.int32)
    taken, order, part = chosen.astype(np.uint8), *(np.empty(core.n, dtype=np.int32) for _ in range(2))
    total, mark = (np.empty(core.n, dtype=np.int64) for _ in range(2))
    given = map(address, (core.indptr, core.indices, core.size, gain))
    scratch = map(address, (taken, order, part, total, mark))
    count = REINSERT(core.n, *given, top, core.most, looks, *scratch)
    if count < 0:
        raise MemoryError
    return order[:count].copy()


LABELS = {
    "core_hd": "CoreHD",
    "core_hd_bare": "CoreHD, nothing put back",
    "high_degree": "high degree",
    "influence": "collective influence",
}
DISMANTLE_BASELINES = {"core_hd": core_hd, "high_degree": high_degree, "influence": influence}
