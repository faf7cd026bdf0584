"""Metrics, tour searches, insertions, 1-trees, cuts: tour.c, insertion.c, one_tree.c, near.c, tour_cuts.c."""

import ctypes
from dataclasses import replace
from typing import Any

import numpy as np

from app.native.library import address, function

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
KINDS = {"EUC_2D": 1, "CEIL_2D": 2, "ATT": 3, "FLOOR_2D": 4}  # as in tour.h; 0: a table


class _Metric(ctypes.Structure):
    _fields_ = (("n", Long), ("kind", Long), ("table", Pointer), ("points", Pointer))


class _Search(ctypes.Structure):
    _fields_ = (
        ("metric", ctypes.POINTER(_Metric)),
        *((name, Long) for name in ("n", "k", "depth", "longest", "room")),
        *((name, Pointer) for name in ("near", "cost", "order", "place", "queue", "queued", "journal")),
        *((name, Long) for name in ("head", "waiting", "noted", "length", "steps", "found_at")),
        ("random", ctypes.c_uint64),
    )  # fmt: skip


class _Insertion(ctypes.Structure):
    _fields_ = (
        ("metric", ctypes.POINTER(_Metric)),
        *((name, Long) for name in ("n", "size", "length")),
        *((name, Pointer) for name in ("order", "place", "after", "cost", "nearest")),
        *((name, Pointer) for name in ("x", "y", "step", "to", "to_a", "to_b", "to_c")),
    )


class _CodeSteps(ctypes.Structure):
    _fields_ = (
        *((name, Long) for name in ("first", "on_tour", "detours", "levels", "distances")),
        *((name, Pointer) for name in ("level", "distance")),
    )


M, S, I = (ctypes.POINTER(kind) for kind in (_Metric, _Search, _Insertion))  # noqa: E741
C = ctypes.POINTER(_CodeSteps)
DESCEND = function("lk_tour_descend", S, Long, returns=Long)
RUN = function("lk_tour_run", S, Long)
START = function("lk_insertion_start", I)
INSERT = function("lk_insertion_insert", I, Long)
PLAY = function("lk_insertion_play", I, Pointer, Long, returns=Long)
GAINS = function("lk_insertion_gains", I, Pointer, Long, Pointer)
FARTHEST = function("lk_insertion_farthest", I, Long)
CHEAPEST = function("lk_insertion_cheapest", I, Long, Pointer)
CODES = function("lk_insertion_codes", I, Pointer, Long, C, Pointer, Pointer)
REPLAY = function("lk_insertion_replay", I, I, Long, *(Pointer,) * 5, Long, C, *(Pointer,) * 2, returns=Long)
ONE_TREE = function("lk_one_tree", M, Pointer, Long, Long, Pointer, Pointer, Pointer, returns=Long)
SPARSE = function("lk_sparse_one_tree", Long, *(Pointer,) * 4, Long, Long, *(Pointer,) * 4, returns=Long)
QUADRANTS = function("lk_quadrants", Long, Pointer, Long, Pointer, Pointer, Long, Pointer)
NEAR_CELLS = function("lk_near_cells", Pointer, Long, Long, Pointer, Pointer, Pointer)
NEAR_TREE = function("lk_near_tree", M, Pointer, Long, Long, Long, *(Pointer,) * 9, returns=Long)
INTERVALS = function("lk_intervals", Long, *(Pointer,) * 3, Long, Long, *(Pointer,) * 4)
CUT_PHASES = function("lk_cut_phases", Long, *(Pointer,) * 7)
LEAF = 8  # as in near.c


def available() -> bool:
    """True where the library was built."""
    tours = DESCEND, RUN, START, INSERT, PLAY, GAINS, FARTHEST, CHEAPEST, CODES, REPLAY
    return None not in (*tours, ONE_TREE, SPARSE, QUADRANTS, NEAR_CELLS, NEAR_TREE, INTERVALS, CUT_PHASES)


class NativeMetric:
    """A Metric (app/graphs/metric.py) for the kernels; `held` is its table or its points."""

    def __init__(self, metric: Any) -> None:
        table = metric.matrix is not None
        self.held = np.ascontiguousarray(metric.matrix if table else metric.points)
        self.struct = _Metric(metric.n, 0 if table else KINDS[metric.kind])
        self.struct.table = address(self.held) if table else 0
        self.struct.points = 0 if table else address(self.held)

    @property
    def pointer(self) -> Any:
        """For a kernel's argument."""
        return ctypes.pointer(self.struct)


class NativeSearch:
    """State of tour.c; `struct` has its counters, `order` [n] int32 is the tour, changed in place.

    near, cost [n, k] int32: candidates and their distances; room: reversals that can be undone
    """

    def __init__(
        self, metric: Any, near: np.ndarray, cost: np.ndarray, order: np.ndarray, sizes: tuple[int, int, int]
    ) -> None:
        n, k = near.shape
        depth, longest, room = sizes
        self.metric = NativeMetric(metric)
        self.order, self.place = np.empty((2, n), dtype=np.int32)
        self.queue, self.queued = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.uint8)
        self._held = near, cost, np.empty((room, 2), dtype=np.int32)
        self.struct = _Search(self.metric.pointer, n, k, depth, longest, room)
        names = ("near", "cost", "order", "place", "queue", "queued", "journal")
        arrays = (near, cost, self.order, self.place, self.queue, self.queued, self._held[2])
        for name, array in zip(names, arrays):
            setattr(self.struct, name, address(array))
        self._length = metric.length
        self.begin(order)

    @property
    def waiting(self) -> int:
        """Cities that a descent has still to look at."""
        return self.struct.waiting

    def begin(self, order: np.ndarray) -> None:
        """Go on from another tour, of which every city waits, in its order; kicks are counted from 0."""
        self.order[:] = self.queue[:] = order
        self.place[order] = np.arange(len(order), dtype=np.int32)
        self.queued[:] = 1
        struct = self.struct
        struct.head, struct.waiting, struct.length = 0, len(order), self._length(order)
        struct.steps = struct.found_at = 0

    def descend(self, most: int) -> bool:
        """Look at up to `most` waiting cities of the first descent; False when none is left."""
        return DESCEND(self.struct, most) > 0

    def run(self, steps: int) -> None:
        """Kicks and repairs."""
        RUN(self.struct, steps)


class NativeInsertion:
    """State of insertion.c over arrays [n] of the caller: order, place, after int32; cost, nearest int64."""

    def __init__(self, metric: Any, size: int, length: int, arrays: dict[str, np.ndarray]) -> None:
        self.metric = NativeMetric(metric)
        self.struct = _Insertion(self.metric.pointer, metric.n, size, length)
        along = dict(zip(("x", "y", "step", "to", "to_a", "to_b", "to_c"), np.empty((7, metric.n + 1))))
        self._held = arrays | along
        for name, array in self._held.items():
            setattr(self.struct, name, address(array))
        START(self.struct)

    def insert(self, city: int) -> None:
        """Insert a city where it is cheapest."""
        INSERT(self.struct, city)

    def play(self, cities: np.ndarray) -> int:
        """Insert cities [k] int64, in order, up to one that is on the tour already; returns how many."""
        return PLAY(self.struct, address(cities), len(cities))

    def gains(self, near: np.ndarray, gain: np.ndarray) -> None:
        """Fill gain [n] int64; near [n, k] int32."""
        GAINS(self.struct, address(near), near.shape[1], address(gain))

    def codes(self, steps: "CodeSteps", near: np.ndarray) -> np.ndarray:
        """[n] int32 codes of the cities; near [n, k] int32."""
        gain, code = np.empty(self.struct.n, np.int64), np.empty(self.struct.n, np.int32)
        CODES(self.struct, address(near), near.shape[1], steps.struct, address(gain), address(code))
        return code

    def farthest(self, count: int) -> None:
        """Insert, `count` times, the city farthest from the tour."""
        FARTHEST(self.struct, count)

    def cheapest(self, count: int) -> None:
        """Insert, `count` times, the city whose insertion costs least."""
        stale = np.zeros(self.struct.n, dtype=np.uint8)
        CHEAPEST(self.struct, count, address(stale))


class CodeSteps:
    """How codes of cities are cut into levels (TravellingSalesman.codes), for the kernels.

    level, distance   int64, the least value of each level but the first
    first, on_tour    the least code of a city outside, and that of cities on the tour
    detours           levels of detours, which are even
    """

    def __init__(
        self, level: np.ndarray, distance: np.ndarray, first: int, on_tour: int, detours: int
    ) -> None:
        self._held = level, distance
        self.struct = _CodeSteps(first, on_tour, detours, len(level), len(distance))
        self.struct.level, self.struct.distance = address(level), address(distance)


class NativeReplays:
    """Codes of states of one metric that are told again from the cities chosen; they begin as a tour does.

    first   the tour; room   another one, which the states become in turn      near [n, k] int32
    """

    def __init__(self, first: NativeInsertion, room: NativeInsertion, near: np.ndarray) -> None:
        self._first, self._room, self._near = first, room, near
        self._gain = np.empty(first.struct.n, dtype=np.int64)

    def codes(self, steps: CodeSteps, before: list[np.ndarray], after: list[np.ndarray]) -> np.ndarray:
        """[2, states, n] int32 of the states before and after; those cities are the first of these.

        Raises ValueError.
        """
        chosen = np.concatenate(after).astype(np.int64)
        early, late = (np.array([len(each) for each in some], dtype=np.int64) for some in (before, after))
        if (early > late).any() or ((chosen < 0) | (chosen >= self._first.struct.n)).any():
            raise ValueError("cities: have to be those of the metric, and more after than before")
        code = np.empty((2, len(after), self._first.struct.n), dtype=np.int32)
        begin = np.cumsum(late) - late
        bad = REPLAY(
            self._first.struct, self._room.struct, len(after), *map(address, (chosen, begin, early, late)),
            address(self._near), self._near.shape[1], steps.struct, address(self._gain), address(code),
        )  # fmt: skip
        if bad:
            raise ValueError("cities: each has to be outside the tour, and named once")
        return code


def one_tree(
    metric: NativeMetric, pi: np.ndarray, scale: int, special: int, degree: np.ndarray, parent: np.ndarray
) -> int:
    """Weight of a minimum 1-tree, see one_tree.c: pi [n] int64; degree and parent [n] int32 are filled."""
    key = np.empty(len(pi), dtype=np.int64)
    arrays = address(degree), address(key), address(parent)
    return ONE_TREE(metric.pointer, address(pi), scale, special, *arrays)


def sparse_one_tree(
    rows: tuple[np.ndarray, np.ndarray, np.ndarray], pi: np.ndarray, scale: int, special: int,
    degree: np.ndarray, parent: np.ndarray,
) -> int:  # fmt: skip
    """Weight of a minimum 1-tree of given edges, see one_tree.c: rows start [n+1] int64, ends, distance."""
    n = len(pi)
    key, room = np.empty(n, dtype=np.int64), np.empty((2, n), dtype=np.int32)
    given = *(address(array) for array in rows), address(pi), scale, special
    return SPARSE(n, *given, *(address(array) for array in (degree, key, parent, room)))


def quadrants(points: np.ndarray, count: int) -> np.ndarray:
    """[n, 4, count] int32, the nearest points in each quadrant, see near.c: points [n, 2] float64."""
    n, cells = len(points), Cells(points, np.arange(len(points), dtype=np.int32))
    near = np.empty((n, 4, count), dtype=np.int32)
    QUADRANTS(
        n, address(points), cells.first_leaf, address(cells.order), address(cells.box), count, address(near)
    )  # fmt: skip
    return near


def intervals(
    start: np.ndarray, last: np.ndarray, weight: np.ndarray, one: int
) -> tuple[np.ndarray, np.ndarray]:
    """(excess, end) [n-1], see tour_cuts.c: start [n+1] int64, last [m] int32, weight [m] int64."""
    n = len(start) - 1
    size = 1 << max(n - 1, 1).bit_length()
    most, added = np.empty(2 * size, dtype=np.int64), np.empty(2 * size, dtype=np.int64)
    excess, end = np.empty(n - 1, dtype=np.int64), np.empty(n - 1, dtype=np.int32)
    arrays = (address(array) for array in (start, last, weight))
    INTERVALS(n, *arrays, one, size, *(address(array) for array in (most, added, excess, end)))
    return excess, end


def cut_phases(joined: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(before, last, value) [n-2] of each phase, see tour_cuts.c: joined [n, n] float64 is merged."""
    n = len(joined)
    before, last = np.empty(n - 2, dtype=np.int32), np.empty(n - 2, dtype=np.int32)
    value, joins = np.empty(n - 2), np.empty(n)
    alive, taken = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.uint8)
    CUT_PHASES(n, *(address(array) for array in (joined, before, last, value, alive, taken, joins)))
    return before, last, value


class Cells:
    """The k-d tree of near.c over some points [n, 2] float64: order [k] int32, at least one."""

    def __init__(self, points: np.ndarray, order: np.ndarray) -> None:
        self.order, self.first_leaf = order, 0
        while len(order) > LEAF * (self.first_leaf + 1):
            self.first_leaf = 2 * self.first_leaf + 1
        self.count = 2 * self.first_leaf + 1
        self.box = np.empty((self.count, 4), dtype=np.float64)
        self.lowest = np.empty(self.count, dtype=np.int32)
        arrays = order, self.box, self.lowest
        NEAR_CELLS(address(points), len(order), self.first_leaf, *(address(array) for array in arrays))


class NearTree:
    """Minimum spanning trees of points in the plane but one, see near.c.

    edges    [n-2, 2] int32 of the last tree, the lower end first     degree   [n] int32 of it
    """

    def __init__(self, metric: Any, special: int) -> None:
        n = metric.n
        self.metric, self.special = NativeMetric(replace(metric, matrix=None)), special
        self._cells = Cells(self.metric.held, np.delete(np.arange(n, dtype=np.int32), special))
        self.edges, self.degree = np.empty((n - 2, 2), dtype=np.int32), np.empty(n, dtype=np.int32)
        shapes = ((self._cells.count, np.int64), (self._cells.count, np.int32), ((2, n), np.int32))
        self._room = *(np.empty(*each) for each in shapes), np.empty((2, n, 2), dtype=np.int64)

    def find(self, pi: np.ndarray, scale: int) -> int:
        """The weight of the tree in weights pi [n] int64; fills edges and degree."""
        cells = self._cells
        arrays = (cells.order, cells.box, cells.lowest, self.edges, self.degree, *self._room)
        given = address(pi), scale, self.special, cells.first_leaf
        return NEAR_TREE(self.metric.pointer, *given, *(address(array) for array in arrays))
