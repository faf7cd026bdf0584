"""Dual ascent: a packing of cuts between the root of a Steiner tree and its terminals, in whole numbers.

Every terminal t has a height h_t(v) for each node v, 0 at t and H_t at the root and wherever it is not told:
v joins the cut around t when that has been raised by h_t(v). The cuts of t take max(0, h_t(u) - h_t(v)) of
the length of the arc u -> v, and those of all terminals together take no more than there is. So no tree is
shorter than the sum of H_t.

Source   Wong 1984; the smallest cut first, and cuts that go on while they are small: Pajor, Uchoa and Werneck
         2018, after Polzin and Daneshmand 2001
"""

import ctypes

import numpy as np

from app.bounds.steiner.net import Net
from app.bounds.steiner.plain import DONE, FULL, PlainAscent
from app.bounds.steiner.witness import Heights
from app.graphs.lists import starts
from app.native.library import function, give_arrays

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
NUMBERS = ("n", "k", "root", "most", "lower", "work", "waiting", "used", "slots", "stamp")
LISTS = ("node", "owner", "height", "next")
ARRAYS = (
    "indptr", "indices", "room", "place", "terminals", "active", "total", "first", "last", "heap", "mark",
    "front", "cut", *LISTS,
)  # fmt: skip


class _State(ctypes.Structure):
    _fields_ = (*((name, Long) for name in NUMBERS), *((name, Pointer) for name in ARRAYS))


RUN = function("lk_ascent_run", ctypes.POINTER(_State), Long, returns=Long)
MOST_SLOTS = 1 << 25  # entries of lists, 24 bytes each


class Ascent:
    """The cuts of one net, until none is left to raise.

    room    [nnz] int64, what is left of the arcs' lengths, -1 where there is none
    lower   what all cuts were raised by; at most `most`
    work    nodes and entries gone through         done   no cut is left to raise, or `most` is reached
    """

    def __init__(
        self, net: Net, most: int, room: np.ndarray | None = None, only: np.ndarray | None = None,
        most_slots: int = MOST_SLOTS,
    ) -> None:  # fmt: skip
        """room: what there is at first, the lengths by default; only: terminals whose cuts are raised, all by
        default.
        """
        self.net, self.root, self.most, self.lower, self.done = net, net.root, most, 0, False
        self.room = net.rooms() if room is None else room.copy()
        others = net.terminals
        self.terminals = np.ascontiguousarray(others[others != net.root], dtype=np.int64)
        k, self.work, self._most_slots = len(self.terminals), 0, most_slots
        self.place = np.full(net.n, -1, dtype=np.int32)
        self.place[self.terminals] = np.arange(k)
        self.active, self.total = np.zeros(k, dtype=np.uint8), np.zeros(k, dtype=np.int64)
        first = np.arange(k) if only is None else self.place[only]
        self.active[first] = 1
        self.waiting, self.heap = len(first), np.zeros(k + 1, dtype=np.int64)
        size = np.diff(net.indptr)[self.terminals[first]]
        self.heap[: len(first)] = np.sort(size * k + first)
        self._plain = PlainAscent(self) if not net.compiled or RUN is None else None
        if self._plain is None:
            self._prepare()

    def _prepare(self) -> None:
        n, k = self.net.n, len(self.terminals)
        self.indptr, self.indices = self.net.indptr, self.net.indices
        self.first, self.last = np.full((2, k), -1, dtype=np.int64)
        self.mark, self.front = np.zeros((2, n), dtype=np.int32)
        self.cut = np.zeros(len(self.indices) + 1, dtype=np.int64)
        self.node, self.owner = np.zeros((2, 2 * n + 1024), dtype=np.int32)
        self.height, self.next = np.zeros((2, len(self.node)), dtype=np.int64)
        self._state = _State(
            n=n, k=k, root=self.root, most=self.most, waiting=self.waiting, slots=len(self.node)
        )  # fmt: skip
        give_arrays(self, self._state, ARRAYS)

    def run(self, work: int) -> bool:
        """Go through so many entries more, about; returns `done`."""
        if self.done:
            return True
        until = self.work + work
        if self._plain is not None:
            status = self._plain.run(until)
            self.lower, self.work = self._plain.lower, self._plain.work
            self.total, self.room = (
                np.array(self._plain.total, np.int64),
                np.array(self._plain.room, np.int64),
            )
        else:
            while (status := RUN(self._state, until)) == FULL and self._longer():
                pass
            self.lower, self.work = self._state.lower, self._state.work
        self.done = status in (DONE, FULL)
        return self.done

    def _longer(self) -> bool:
        """Lists of twice the length; False where that is too much."""
        if 2 * len(self.node) > self._most_slots:
            return False
        for name in LISTS:
            held = getattr(self, name)
            setattr(self, name, np.concatenate([held, np.zeros_like(held)]))
        self._state.slots = len(self.node)
        give_arrays(self, self._state, LISTS)
        return True

    def heights(self) -> Heights:
        """What proves `lower`, in the core's numbers."""
        if self._plain is not None:
            lists = self._plain.lists
            owner = np.repeat(np.arange(len(lists)), [len(each) for each in lists])
            pairs = np.array([pair for each in lists for pair in each], dtype=np.int64).reshape(-1, 2)
            node, height = pairs.T
        else:
            owner, node, height = self._listed()
        node_of = self.net.node
        told = height < self.total[owner]
        ptr = starts(owner[told], len(self.total))
        used = self.total > 0
        ptr = np.append(0, ptr[1:][used])
        return Heights(
            int(node_of[self.root]), node_of[self.terminals[used]], self.total[used],
            ptr.astype(np.int64), node_of[node[told]], height[told].astype(np.int64),
        )  # fmt: skip

    def _listed(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(terminal, node, height) of all lists, one behind the other, each as its nodes joined."""
        used = self._state.used
        order = np.argsort(self.owner[:used], kind="stable")
        return self.owner[order], self.node[order].astype(np.int64), self.height[order]


def ascended(net: Net, most: int) -> Ascent:
    """All of an ascent."""
    ascent = Ascent(net, most)
    while not ascent.run(1 << 40):
        pass
    return ascent
