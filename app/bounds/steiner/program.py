"""The linear program of directed cuts, solved by HiGHS: minimise length x, x(arcs into W) >= 1, x >= 0.

W are nodes around a terminal and without the root. Dual values are rounded to multiples of 2^-places and
added up to heights (witness.py), so that what they prove is whole numbers: where they take more of an arc's
length than there is, all are made smaller by as much, and a dual ascent goes on from there.

Source   Wong 1984; Koch and Martin 1998
"""

import numpy as np

from app.bounds.highs import SIMPLEX, ints, new_solver
from app.bounds.steiner.ascent import Ascent
from app.bounds.steiner.cuts import Cut
from app.bounds.steiner.net import Net
from app.bounds.steiner.witness import LARGEST, Heights
from app.graphs.lists import entries_of

COST = 100.0  # mean cost of an arc in the program
IDLE = 0.1  # a cut with more slack is dropped
COARSE = (0, 1, 2)  # places that are tried first: optimal dual values are often whole


class DirectedProgram:
    """The program of one net, and dual values of its optimum.

    cuts   in the program, in the net's numbers        x [nnz], value   the last optimum
    """

    def __init__(self, net: Net, cuts: list[Cut]) -> None:
        import highspy  # not needed by those who start the program for something else

        self.net, self._highs, self.cuts = net, highspy, []
        self.x, self.value = np.zeros(len(net.indices)), 0.0
        self._y = self._idle = np.zeros(0)
        self._row = net.row
        self._entry = np.flatnonzero(net.alive & (self._row != net.root))
        self._column = np.full(len(net.indices), -1)
        self._column[self._entry] = np.arange(len(self._entry))
        cost = net.length[self._entry]
        self._unit = max(float(cost.mean()) if len(cost) else 1.0, 1e-9) / COST
        self._inside = np.zeros(net.n, dtype=bool)
        self._solver = solver = new_solver(**SIMPLEX)
        m, free = len(cost), highspy.kHighsInf
        empty = ints(np.zeros(m)), ints([]), np.zeros(0)
        solver.addCols(m, cost / self._unit, np.zeros(m), np.full(m, free), 0, *empty)
        self.add(cuts)

    @property
    def arcs(self) -> int:
        """Columns."""
        return len(self._entry)

    def add(self, cuts: list[Cut]) -> None:
        """More cuts."""
        if not cuts:
            return
        rows = [self._columns_into(cut.nodes) for cut in cuts]
        sizes = np.array([len(row) for row in rows])
        start, total = np.append(0, np.cumsum(sizes)[:-1]), int(sizes.sum())
        entries = ints(start), ints(np.concatenate(rows)), np.ones(total)
        k = len(rows)
        self._solver.addRows(k, np.ones(k), np.full(k, self._highs.kHighsInf), total, *entries)
        self.cuts += cuts

    def _columns_into(self, nodes: np.ndarray) -> np.ndarray:
        net, inside = self.net, self._inside
        inside[nodes] = True
        entries = entries_of(net.indptr, nodes)
        columns = self._column[entries[~inside[net.indices[entries]]]]
        inside[nodes] = False
        return columns[columns >= 0]

    def solve(self, seconds: float) -> bool:
        """Find the optimum; False where HiGHS has failed, or not come to it in so long."""
        solver = self._solver
        solver.setOptionValue("time_limit", solver.getRunTime() + seconds)
        solver.run()
        if solver.getModelStatus() != self._highs.HighsModelStatus.kOptimal:
            return False
        found = solver.getSolution()
        self.x[self._entry] = np.array(found.col_value)
        self._y = np.maximum(np.array(found.row_dual), 0) * self._unit
        self._idle = np.array(found.row_value) - 1
        self.value = solver.getInfo().objective_function_value * self._unit
        return True

    def drop_idle(self, fewest: int) -> None:
        """Leave out the cuts with slack in the last optimum, where they are not few."""
        idle = np.flatnonzero(self._idle > IDLE)
        if len(idle) < fewest:
            return
        self._solver.deleteRows(len(idle), ints(idle))
        kept = np.flatnonzero(self._idle <= IDLE)
        self.cuts = [self.cuts[place] for place in kept.tolist()]
        self._idle, self._y = self._idle[kept], self._y[kept]

    def used(self) -> list[Cut]:
        """Cuts that the last optimum meets with a value."""
        return [self.cuts[i] for i in np.flatnonzero(self._y > 0).tolist()]

    def proved(self, most: int) -> tuple[int, int, Heights, np.ndarray]:
        """(places, bound, its heights, what is left of lengths): the last optimum's duals made whole.

        most   a bound of so much is enough; bound and room are in multiples of 2^-places
        """
        finest = places_for(self.net)
        best = None
        for places in (*(each for each in COARSE if each < finest), finest):
            found = self._rounded(places, most)
            if found is not None and (best is None or found[1] << best[0] > best[1] << found[0]):
                best = found
            if best is not None and best[1] > (most - 1) << best[0]:
                break
        return best

    def _rounded(self, places: int, most: int) -> tuple[int, int, Heights, np.ndarray] | None:
        """With duals rounded to multiples of 2^-places; None: more than there is, and not the finest."""
        net, one = self.net, 1 << places
        y = np.rint(self._y * one).astype(np.int64)
        room = net.rooms(places)
        taken = self._taken(heights_of(net, self.cuts, y, places))
        over = net.alive & (taken > room)
        if over.any():
            if places < places_for(net):
                return None
            share = float((room[over] / taken[over]).min())
            y = np.floor(y * (share * (1 - 1e-9))).astype(np.int64)
            taken = self._taken(heights_of(net, self.cuts, y, places))
            if (net.alive & (taken > room)).any():
                y[:] = 0
                taken[:] = 0
        heights = heights_of(net, self.cuts, y, places)
        bound = int(y.sum())
        room = np.where(net.alive, room - taken, -1)
        if bound > (most - 1) << places:
            return places, bound, heights, room
        ascent = Ascent(net, (most << places) - bound, room)
        while not ascent.run(1 << 40):
            pass
        return places, bound + ascent.lower, together(heights, ascent.heights()), ascent.room

    def _taken(self, heights: Heights) -> np.ndarray:
        """[nnz] int64 what heights, in the core's numbers, take of arcs."""
        net = self.net
        place = np.full(int(net.node.max(initial=0)) + 1, -1)
        place[net.node] = np.arange(net.n)
        taken, h = np.zeros(len(net.indices), dtype=np.int64), np.empty(net.n, dtype=np.int64)
        for i, total in enumerate(heights.totals.tolist()):
            part = slice(heights.ptr[i], heights.ptr[i + 1])
            nodes = place[heights.nodes[part]]
            h[:] = total
            h[nodes] = heights.heights[part]
            entries = entries_of(net.indptr, nodes)
            taken[entries] += np.maximum(h[net.indices[entries]] - h[self._row[entries]], 0)
        return taken


def places_for(net: Net) -> int:
    """Binary ones of dual values behind the point."""
    return max(LARGEST.bit_length() - 2 - int(net.length.sum()).bit_length(), 0)


def heights_of(net: Net, cuts: list[Cut], y: np.ndarray, places: int) -> Heights:
    """The heights, in the core's numbers, of cuts with these values."""
    order: dict[int, list[int]] = {}
    for i in np.flatnonzero(y).tolist():
        order.setdefault(cuts[i].terminal, []).append(i)
    terminals, totals, nodes, heights, sizes = [], [], [], [], []
    for terminal, rows in sorted(order.items()):
        total = int(y[rows].sum())
        members = np.concatenate([cuts[i].nodes for i in rows])
        values = np.repeat(y[rows], [len(cuts[i].nodes) for i in rows])
        named, place = np.unique(members, return_inverse=True)
        inside = np.zeros(len(named), dtype=np.int64)
        np.add.at(inside, place.reshape(-1), values)
        terminals.append(terminal)
        totals.append(total)
        sizes.append(len(named))
        nodes.append(named)
        heights.append(total - inside)
    nothing = np.zeros(0, dtype=np.int64)
    return Heights(
        int(net.node[net.root]), net.node[np.array(terminals, dtype=np.int64)],
        np.array(totals, dtype=np.int64), np.append(0, np.cumsum(sizes)).astype(np.int64),
        net.node[np.concatenate([nothing, *nodes])], np.concatenate([nothing, *heights]), places,
    )  # fmt: skip


def together(first: Heights, second: Heights) -> Heights:
    """Both, in the places of the first: they share what there is of lengths."""

    def joined(name: str) -> np.ndarray:
        return np.concatenate([getattr(first, name), getattr(second, name)])

    ptr = np.append(first.ptr, first.ptr[-1] + second.ptr[1:])
    return Heights(
        first.root,
        joined("terminals"),
        joined("totals"),
        ptr,
        joined("nodes"),
        joined("heights"),
        first.places,
    )


def cuts_of(net: Net, heights: Heights, most: int) -> list[Cut]:
    """The cuts that heights, in the core's numbers, stand for: of all those that are raised most, `most`."""
    place = np.full(int(net.node.max(initial=0)) + 1, -1)
    place[net.node] = np.arange(net.n)
    found: list[tuple[int, int, np.ndarray]] = []
    for i, (terminal, total) in enumerate(zip(heights.terminals.tolist(), heights.totals.tolist())):
        part = slice(heights.ptr[i], heights.ptr[i + 1])
        order = np.argsort(heights.heights[part], kind="stable")
        nodes, at = place[heights.nodes[part]][order], heights.heights[part][order]
        ends = np.append(np.flatnonzero(np.diff(at)) + 1, len(at))
        raised = np.diff(np.append(at[ends - 1], total))
        found += [(int(by), int(place[terminal]), nodes[:end]) for by, end in zip(raised, ends)]
    found.sort(key=lambda each: -each[0])
    kept = [Cut(terminal, nodes[nodes >= 0]) for _, terminal, nodes in found[:most] if terminal >= 0]
    return kept
