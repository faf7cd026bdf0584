"""Groups of nodes and local searches over blocks without kernels, as native/partition.c has them."""

from heapq import heappop, heappush
from itertools import pairwise
from typing import Any

import numpy as np

from app.graphs.balance import Balance
from app.graphs.contracted import WeightedRows

HASTY = 2  # a repair in which nodes that gain more by a neighbour's move than before wait as they did


def cluster(
    rows: WeightedRows, most: int, order: np.ndarray, within: np.ndarray, group: np.ndarray, total: np.ndarray
) -> None:
    """Nodes in order [n] that are alone still join the group next to them of the largest weight^2 / size.

    most    size of a group    within   [n]: no group holds nodes of two numbers
    group   [n] 0..n-1 at the start    total   [n] sizes
    """
    indptr, indices, weights, size = (
        each.tolist() for each in (rows.indptr, rows.indices, rows.weights, rows.size)
    )
    alone, kind = [True] * rows.n, within.tolist()
    for v in order.tolist():
        if not alone[v]:
            continue
        joined: dict[int, int] = {}
        for e in range(indptr[v], indptr[v + 1]):
            g = int(group[indices[e]])
            if kind[indices[e]] == kind[v] and int(total[g]) + size[v] <= most:
                joined[g] = joined.get(g, 0) + weights[e]
        best, into = 0.0, -1
        for g, weight in joined.items():
            rating = float(weight) * float(weight) / float(max(int(total[g]), 1))
            if rating > best or (rating == best and g < into):
                best, into = rating, g
        if into >= 0:
            group[v] = into
            total[into] += size[v]
            alone[v] = alone[into] = False


def spread(
    rows: WeightedRows, most: int, salt: int, order: np.ndarray, within: np.ndarray, group: np.ndarray,
    total: np.ndarray,
) -> int:  # fmt: skip
    """Nodes in order [n] go to the group near them that they have the most weight to; returns how many went.

    most    size of a group    within   [n]: no group holds nodes of two numbers
    salt    odd: of groups with the same weight the one with the largest (number + 1) salt modulo 2^64
    group   [n] and total [n], the sizes of groups, are changed
    """
    indptr, indices, weights, size = (
        each.tolist() for each in (rows.indptr, rows.indices, rows.weights, rows.size)
    )
    kind, gone = within.tolist(), 0
    for v in order.tolist():
        own, joined = int(group[v]), {}
        for e in range(indptr[v], indptr[v + 1]):
            g = int(group[indices[e]])
            if kind[indices[e]] == kind[v] and (g == own or int(total[g]) + size[v] <= most):
                joined[g] = joined.get(g, 0) + weights[e]
        into = max(joined, key=lambda g: (joined[g], (g + 1) * salt % (1 << 64)), default=own)
        if joined.get(into, 0) > 0 and into != own:
            group[v] = into
            total[own] -= size[v]
            total[into] += size[v]
            gone += 1
    return gone


def refine(blocks: Any, looks: int) -> int:
    """Searches from the next nodes of the order of Blocks on, until so many nodes were looked at; returns how
    many were.
    """
    looked = 0
    while blocks.next < blocks.seeds and looked < looks:
        course = _Course(blocks)
        while True:
            node = int(blocks.order[blocks.next])
            blocks.next += 1
            if not blocks.moved[node]:
                looked += 1
                to, gained = course.best_block(node)
                if to >= 0:
                    course.wait(node, gained)
            if not (blocks.repair and blocks.next < blocks.seeds):
                break
        if course.heap:
            looked += course.run()
    return looked


class _Course:
    """One search: what waits, and what has been moved."""

    def __init__(self, blocks: Any) -> None:
        self.blocks = blocks
        self.heap: list[tuple[int, int, int]] = []
        self.gain: dict[int, int] = {}
        self.tick = 0

    def near(self, v: int) -> zip:
        """The neighbours of a node, and the weights to them."""
        rows = self.blocks.rows
        entries = slice(int(rows.indptr[v]), int(rows.indptr[v + 1]))
        return zip(rows.indices[entries].tolist(), rows.weights[entries].tolist())

    def wait(self, node: int, gained: int) -> None:
        """A node waits, the last of the same gain first."""
        heappush(self.heap, (-gained, -self.tick, node))
        self.tick += 1
        self.gain[node] = gained

    def best_block(self, v: int) -> tuple[int, int]:
        """Where node v does best to go to, -1: nowhere; and what it gains."""
        s = self.blocks
        block, total, size = s.block, s.total, int(s.rows.size[v])
        own = int(block[v])
        if s.repair and total[own] <= s.limit[own]:
            return -1, 0
        joined: dict[int, int] = {}
        for u, weight in self.near(v):
            b = int(block[u])
            joined[b] = joined.get(b, 0) + weight
        slack = 0 if s.repair else s.slack
        open_to = [
            b
            for b in (range(s.parts) if s.repair else joined)
            if b != own and int(total[b]) + size <= int(s.limit[b]) + slack
        ]
        if not open_to:
            return -1, 0
        best = min(open_to, key=lambda b: (-joined.get(b, 0), int(total[b]), b))
        return best, joined.get(best, 0) - joined.get(own, 0)

    def run(self) -> int:
        """Until nothing waits, or nothing has got better for long; what did not help is undone."""
        s, looked, since = self.blocks, 0, 0
        done: list[tuple[int, int]] = []
        kept, best = 0, (s.over, s.cut)
        while self.heap and since <= s.patience and not (s.repair and s.over == 0):
            minus, _, v = heappop(self.heap)
            if self.gain.get(v) != -minus or s.moved[v]:
                continue
            to, gained = self.best_block(v)
            looked += 1
            del self.gain[v]
            if to < 0:
                continue
            if gained < -minus:
                self.wait(v, gained)
                continue
            done.append((v, int(s.block[v])))
            s.move_to(v, to)
            s.moved[v] = 1
            s.cut -= gained
            since += 1
            if (s.over, s.cut) <= best:
                best, kept, since = (s.over, s.cut), len(done), 0
            if s.repair == HASTY:
                continue
            for u, _ in self.near(v):
                if s.moved[u] or s.rows.indptr[u + 1] - s.rows.indptr[u] > s.hub:
                    continue
                to, gained = self.best_block(u)
                looked += 1
                if to < 0:
                    self.gain.pop(u, None)
                elif gained != self.gain.get(u):
                    self.wait(u, gained)
        for v, own in reversed(done[kept:]):
            s.move_to(v, own)
        s.cut = best[1]
        return looked


def stir(blocks: Any, quarters: int) -> int:
    """One sweep of Blocks in which nodes go where they have most weight, however heavy blocks become; returns
    how many had somewhere to go.

    Nodes that are not `locked` [n] want the other block that they have most weight to, `quarters` / 4 of what
    they have in their own being lost at most. Each goes if it loses nothing by it once all that want more
    have gone, too; who went is locked.

    Source   Gilbert, Madduri, Boman and Rajamanickam, Jet, SIAM Journal on Scientific Computing 2024, Alg. 3
    """
    rows, block, total = blocks.rows, blocks.block.tolist(), blocks.total.tolist()
    indptr, indices, weights = (each.tolist() for each in (rows.indptr, rows.indices, rows.weights))
    near = [list(zip(indices[lo:hi], weights[lo:hi])) for lo, hi in pairwise(indptr)]
    locked, looked = blocks.locked, 0
    wanted: dict[int, tuple[int, int]] = {}  # gain and block
    for v in np.flatnonzero(locked == 0).tolist():
        joined: dict[int, int] = {}
        for u, weight in near[v]:
            joined[block[u]] = joined.get(block[u], 0) + weight
        stays = joined.pop(block[v], 0)
        if joined:
            looked += 1
            best = min(joined, key=lambda b: (-joined[b], total[b], b))
            gain = joined[best] - stays
            if gain >= 0 or -gain < stays // 4 * quarters + stays % 4 * quarters // 4:
                wanted[v] = gain, best
    locked[:] = 0
    for v, (gain, to) in wanted.items():
        gained = 0
        for u, weight in near[v]:
            first = u in wanted and (-wanted[u][0], u) < (-gain, v)
            b = wanted[u][1] if first else block[u]
            gained += weight * ((b == to) - (b == block[v]))
        locked[v] = gained >= 0
    for v in np.flatnonzero(locked).tolist():
        own, to = int(blocks.block[v]), wanted[v][1]
        for u, weight in near[v]:
            blocks.cut += weight * (int(blocks.block[u] == own) - int(blocks.block[u] == to))
        blocks.move_to(v, to)
    return looked


def grown(balance: Balance, order: np.ndarray) -> np.ndarray:
    """[n] int32 blocks: one after the other grows from the first free node of `order` [n] by the node that is
    joined more to it, and less to free nodes, than others, until it has its share of what is left.

    The last one takes the rest. Blocks may be too heavy.

    Source   Karypis and Kumar, SIAM Journal on Scientific Computing 1998 (greedy graph growing)
    """
    rows, limits = balance.rows, balance.limits.tolist()
    indptr, indices, weights, size = (
        each.tolist() for each in (rows.indptr, rows.indices, rows.weights, rows.size)
    )
    block, starts = [-1] * rows.n, order.tolist()
    left, room = sum(size), 0.0
    for limit in limits:  # as the kernel adds them up
        room += limit
    for b in range(balance.parts - 1):
        wanted, weight = int(left * (limits[b] / room)) + 1, 0
        gain: dict[int, int] = {}
        refused: set[int] = set()
        heap: list[tuple[int, int, int]] = []
        tick = 0
        while weight < wanted:
            if not heap:
                first = next((v for v in starts if block[v] < 0 and v not in refused), None)
                if first is None:
                    break
                gain[first] = 0
                heappush(heap, (0, -tick, first))
                tick += 1
            minus, _, v = heappop(heap)
            if block[v] >= 0 or v in refused or gain[v] != -minus:
                continue
            if weight + size[v] > limits[b]:
                refused.add(v)
                continue
            block[v] = b
            weight += size[v]
            for e in range(indptr[v], indptr[v + 1]):
                u = indices[e]
                if block[u] >= 0 or u in refused:
                    continue
                if u not in gain:
                    gain[u] = -sum(weights[indptr[u] : indptr[u + 1]])
                gain[u] += 2 * weights[e]
                heappush(heap, (-gain[u], -tick, u))
                tick += 1
        left -= weight
        room -= limits[b]
    return np.array([b if b >= 0 else balance.parts - 1 for b in block], dtype=np.int32)


# ---- flows between two blocks -----------------------------------------------------------------------------


def flows(blocks: Any, looks: int) -> int:
    """Flows between the next pairs of Blocks, through ever narrower corridors until what is found leaves
    enough in both blocks, until so many nodes were in them; returns how many were.
    """
    looked = 0
    while blocks.next_pair < blocks.pairs and looked < looks:
        at = blocks.next_pair
        a, b = blocks.pair[at].tolist()
        seeds = blocks.meet[blocks.begin[at] : blocks.begin[at + 1]].tolist()
        width = int(blocks.width[at])
        while width:
            in_a, in_b = (max(int(blocks.limit[each] - blocks.total[each]), 0) for each in (a, b))
            corridor = _Corridor(blocks, a, b)
            corridor.widen(a, b, seeds, max(width, in_b))
            corridor.widen(b, a, seeds, max(width, in_a))
            looked += len(corridor.place)
            if not corridor.cut() or (width < in_a and width < in_b):
                break
            width >>= 1
        blocks.next_pair += 1
    return looked


class _Corridor:
    """Nodes of two blocks that may change sides."""

    def __init__(self, blocks: Any, a: int, b: int) -> None:
        self.blocks, self.ends = blocks, (a, b)
        self.course = _Course(blocks)
        self.place: dict[int, int] = {}

    def widen(self, own: int, other: int, seeds: list[int], most: int) -> None:
        """Take nodes of a block, breadth first from where it meets the other one, up to a weight."""
        s, weight, waiting = self.blocks, 0, []
        size, block = s.rows.size, s.block
        for v in seeds:
            fits = block[v] == own and v not in self.place and weight + int(size[v]) <= most
            if fits and any(block[u] == other for u, _ in self.course.near(v)):
                self.place[v] = len(self.place)
                waiting.append(v)
                weight += int(size[v])
        for v in waiting:
            for u, _ in self.course.near(v):
                if block[u] == own and u not in self.place and weight + int(size[u]) <= most:
                    self.place[u] = len(self.place)
                    waiting.append(u)
                    weight += int(size[u])

    def cut(self) -> bool:
        """Put a smallest cut where it is not worse than what is there; True: it leaves too much in a
        block.
        """
        s, (a, b) = self.blocks, self.ends
        near_source, near_sink = self._sides()
        own = sum(int(s.rows.size[v]) for v in self.place if s.block[v] == a)
        both, others = int(s.total[a] + s.total[b]), s.over - s._excess(a) - s._excess(b)
        tried = []
        for side in (near_source, set(self.place) - near_sink):
            in_a = int(s.total[a]) - own + sum(int(s.rows.size[v]) for v in side)
            over = max(in_a - int(s.limit[a]), 0) + max(both - in_a - int(s.limit[b]), 0)
            tried.append((over, abs(both - 2 * in_a), side))
        over, _, side = min(tried, key=lambda each: each[:2])
        cut = s.cut + self._between(lambda v: v in side) - self._between(lambda v: s.block[v] == a)
        if (others + over, cut) > (s.over, s.cut):
            return others + over > s.over
        for v in self.place:
            to = a if v in side else b
            if s.block[v] != to:
                s.move_to(v, to)
        if cut < s.cut:
            s.changed[[a, b]] = 1
        s.cut = cut
        return False

    def _between(self, in_a: Any) -> int:
        """Twice what lies between the corridor's nodes in a and in b, and between these and the rest of
        both.
        """
        s, (a, b) = self.blocks, self.ends
        total = 0
        for v in self.place:
            for u, weight in self.course.near(v):
                if s.block[u] not in (a, b):
                    continue
                there = in_a(u) if u in self.place else s.block[u] == a
                if there != in_a(v):
                    total += weight if u in self.place else 2 * weight
        return total // 2

    def _sides(self) -> tuple[set[int], set[int]]:
        """Nodes that the source reaches, and that reach the sink, when all flows; the same by any flow."""
        s, (a, b) = self.blocks, self.ends
        source, sink = -1, -2
        left: dict[int, dict[int, int]] = {source: {}, sink: {}, **{v: {} for v in self.place}}
        for v in self.place:
            for u, weight in self.course.near(v):
                if u in self.place:
                    left[v][u] = weight
                elif s.block[u] == a:
                    left[source][v] = left[source].get(v, 0) + weight
                    left[v].setdefault(source, 0)
                elif s.block[u] == b:
                    left[v][sink] = left[v].get(sink, 0) + weight
                    left[sink].setdefault(v, 0)
        while path := _path(left, source, sink):
            flow = min(left[u][v] for u, v in path)
            for u, v in path:
                left[u][v] -= flow
                left[v][u] = left[v].get(u, 0) + flow
        return _reached(left, source) - {source}, _reached(_turned(left), sink) - {sink}


def _path(left: dict[int, dict[int, int]], source: int, sink: int) -> list[tuple[int, int]]:
    """A shortest path along what is left, none where there is none."""
    came, waiting = {source: source}, [source]
    for v in waiting:
        for u, room in left[v].items():
            if room and u not in came:
                came[u] = v
                waiting.append(u)
    path: list[tuple[int, int]] = []
    while sink in came and sink != source:
        path.append((came[sink], sink))
        sink = came[sink]
    return path


def _reached(left: dict[int, dict[int, int]], start: int) -> set[int]:
    found, waiting = {start}, [start]
    for v in waiting:
        for u, room in left[v].items():
            if room and u not in found:
                found.add(u)
                waiting.append(u)
    return found


def _turned(left: dict[int, dict[int, int]]) -> dict[int, dict[int, int]]:
    turned: dict[int, dict[int, int]] = {v: {} for v in left}
    for v, arcs in left.items():
        for u, room in arcs.items():
            turned[u][v] = room
    return turned
