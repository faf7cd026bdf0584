"""Cases of a Steiner tree problem, told apart by a node that a tree has or has not: branch and bound.

A node that a tree has is a terminal from then on. The case of the least bound is looked into first, so that
the bound of all cases grows.

Sources  Polzin and Daneshmand 2001; Pajor, Uchoa and Werneck 2018 (dual ascent bounds of cases)
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from app.bounds.steiner.ascent import Ascent
from app.bounds.steiner.case import CaseWork, Clock, Effort
from app.bounds.steiner.cuts import Cut
from app.bounds.steiner.net import Net
from app.bounds.steiner.trees import Best
from app.bounds.steiner.witness import Case, Heights

METHOD = "branch and bound"
CANDIDATES = 10  # nodes that are tried for a division
MOST_BYTES = 200_000_000  # of the heights of all cases


@dataclass(order=True)
class _Open:
    """A case that is not looked into yet; the number makes the order definite."""

    lower: int
    number: int
    alive: np.ndarray = field(compare=False)  # bits of the entries of the base
    wanted: np.ndarray = field(compare=False)  # bits of its nodes
    root: int = field(compare=False)
    proof: Heights | None = field(compare=False)  # of `lower`, where no case between has it
    cuts: list[Cut] = field(compare=False)


class CaseTree:
    """All cases of what is left of a problem.

    lower    the least bound of all cases, at most best.upper
    made     number of cases             kept   whether the heights of all are there
    count, nbytes   of these heights
    """

    def __init__(self, work: CaseWork, best: Best, effort: Effort, clock: Clock) -> None:
        """work: on the whole, which has come to an end without a proof"""
        self._base, self._best, self._effort, self._clock = work.net, best, effort, clock
        self._heights: dict[int, list[Heights]] = {}
        self._split: dict[int, tuple[int, int]] = {}  # of a divided case: the node, the first of two cases
        self._open: list[_Open] = []
        self._now: _Open | None = None
        self.nbytes, self.count, self.made, self.kept = 0, 0, 1, True
        net = work.net
        whole = self._packed(net.alive, net.wanted, net.root)
        first = _Open(work.lower, 0, *whole, None, work.cuts)
        self._keep(0, work.heights.copy())
        self._divide(first, net, work)

    @property
    def lower(self) -> int:
        """The least bound of all cases."""
        waiting = [each.lower for each in (self._now, *self._open[:1]) if each is not None]
        return min([self._best.upper, *waiting])

    def run(self) -> Iterator[None]:
        """Look into all cases, the one of the least bound first."""
        while self._open and self._open[0].lower < self._best.upper:
            self._now = heapq.heappop(self._open)
            yield from self._look_into(self._now)
            self._now = None
        self._open.clear()

    def cases(self) -> list[Case]:
        """What proves `lower`."""
        waiting = {each.number: each for each in (self._now, *self._open) if each is not None}
        told, numbers = [], [0]
        while numbers:
            number = numbers.pop()
            if number in waiting and number not in self._split:
                proof = waiting[number].proof
                told.append(Case([] if proof is None else [proof]))
                continue
            split, child = self._split.get(number, (-1, -1))
            told.append(Case(self._heights.get(number, []), split))
            if split >= 0:
                numbers += [child + 1, child]
        return told

    # ---- the work ------------------------------------------------------------------------------------------

    def _look_into(self, case: _Open) -> Iterator[None]:
        work = CaseWork(self._net(case), self._best, case.lower, case.cuts)
        yield from work.run(self._effort, self._clock)
        self._keep(case.number, work.heights)
        if not work.closed:
            self._divide(case, work.net, work)

    def _keep(self, number: int, heights: list[Heights]) -> None:
        self.count += len(heights)
        self.nbytes += sum(each.nbytes for each in heights)
        self._heights[number] = heights
        if not self.kept or self.nbytes > MOST_BYTES:
            self._forget()

    def _forget(self) -> None:
        """There is no proof of all cases any more."""
        self.kept = False
        self._heights.clear()

    def _divide(self, case: _Open, net: Net, work: CaseWork) -> None:
        """Two cases in the place of one."""
        if net.wanted.all():  # a spanning tree: what is left says no more
            self._best.offer_nodes(net.node)
            self._forget()
            return
        node = self._chosen(net, work)
        proof = work.proof if work.proof is not None else case.proof
        base = self._place(net)
        lower, child = max(work.lower, case.lower), self.made
        self._split[case.number] = int(net.node[node]), child
        self.made += 2
        at = (net.row == node) | (net.indices == node)
        more = net.wanted.copy()
        more[node] = True
        for alive, wanted in ((net.alive & ~at, net.wanted), (net.alive, more)):
            packed = self._packed(*self._in_base(net, base, alive, wanted), int(base[net.root]))
            self._push(_Open(lower, child, *packed, proof if self.kept else None, work.cuts))
            child += 1

    def _push(self, case: _Open) -> None:
        heapq.heappush(self._open, case)

    def _place(self, net: Net) -> np.ndarray:
        """[n] the nodes of a net in the base, both in ascending order of the core's numbers."""
        return np.searchsorted(self._base.node, net.node)

    def _in_base(
        self, net: Net, base: np.ndarray, alive: np.ndarray, wanted: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        whole, more = np.zeros(len(self._base.indices), dtype=bool), np.zeros(self._base.n, dtype=bool)
        kept = np.flatnonzero(alive)
        keys = base[net.row[kept]] * self._base.n + base[net.indices[kept]]
        whole[np.searchsorted(self._keys, keys)] = True
        more[base[np.flatnonzero(wanted)]] = True
        return whole, more

    @property
    def _keys(self) -> np.ndarray:
        if not hasattr(self, "_known_keys"):
            self._known_keys = self._base.row * self._base.n + self._base.indices
        return self._known_keys

    def _packed(self, alive: np.ndarray, wanted: np.ndarray, root: int) -> tuple[np.ndarray, np.ndarray, int]:
        return np.packbits(alive), np.packbits(wanted), root

    def _net(self, case: _Open) -> Net:
        base = self._base
        alive = np.unpackbits(case.alive, count=len(base.indices)).astype(bool)
        wanted = np.unpackbits(case.wanted, count=base.n).astype(bool)
        return replace(base, alive=alive, wanted=wanted, root=case.root)

    # ---- the node that tells two cases apart ---------------------------------------------------------------

    def _chosen(self, net: Net, work: CaseWork) -> int:
        """Of some nodes that one whose two cases both have good bounds, as an ascent goes on from here."""
        ascent = Ascent(net, self._best.upper)
        ascent.run(1 << 40)
        candidates = _candidates(net, work.x_of(net), ascent.room)
        most, chosen = -1.0, int(candidates[0])
        for node in candidates.tolist():
            gains = _gain_without(net, ascent, node), _gain_with(net, ascent, node)
            if (worth := (gains[0] + 1.0) * (gains[1] + 1.0)) > most:
                most, chosen = worth, node
        return chosen


def _gain_without(net: Net, ascent: Ascent, node: int) -> int:
    """What an ascent gains when it goes on without a node."""
    room = ascent.room.copy()
    own = slice(net.indptr[node], net.indptr[node + 1])
    room[own] = room[net.back[own]] = -1
    more = Ascent(net, ascent.most - ascent.lower, room)
    more.run(1 << 40)
    return more.lower


def _gain_with(net: Net, ascent: Ascent, node: int) -> int:
    """And when the node is a terminal."""
    wanted = net.wanted.copy()
    wanted[node] = True
    more = Ascent(replace(net, wanted=wanted), ascent.most - ascent.lower, ascent.room, np.array([node]))
    more.run(1 << 40)
    return more.lower


def _candidates(net: Net, x: np.ndarray | None, room: np.ndarray) -> np.ndarray:
    """Nodes for a division: those that a point x [nnz] of the program has by half, else those of many arcs
    without room after an ascent.
    """
    free = ~net.wanted
    if x is not None:
        flow = np.zeros(net.n)
        np.add.at(flow, net.row, np.where(net.alive, x, 0.0))
        score = np.where(free, np.minimum(flow, 1.0 - flow), -1.0)
        if score.max() > 0.01:
            return np.argsort(-score, kind="stable")[:CANDIDATES]
    tight = (room == 0).astype(np.int64)
    count = np.bincount(net.row, weights=tight, minlength=net.n)
    count += np.bincount(net.indices, weights=tight, minlength=net.n)
    score = np.where(free, count, -1.0)
    order = np.argsort(-score, kind="stable")[:CANDIDATES]
    return order[score[order] >= 0]
