"""Rows of the linear program of a part, directed cycles and cliques of mutual arcs, and how to find them."""

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from app.bounds.cycles.shortest import LEAST, LONG, ShortestCycles
from app.graphs.digraph import Digraph

Row = tuple[tuple[int, ...], bool]  # nodes, of a cycle in order; whether they are a clique
SEEN, WORK = 1000, 20_000  # nodes that the search for one cycle of a packing looks at; such ones of a step
GROWN = 400  # cliques of a separation


class Rows:
    """Finds rows of one digraph that a point violates.

    succ, pred, mutual   [n] sets: heads, tails, nodes that are both
    """

    def __init__(self, digraph: Digraph) -> None:
        self.digraph, self.n = digraph, digraph.n
        out, into = digraph.out.tolist(), digraph.into.tolist()
        ptr, back = digraph.out_ptr.tolist(), digraph.in_ptr.tolist()
        self.succ = [out[ptr[v] : ptr[v + 1]] for v in range(digraph.n)]
        self.pred = [into[back[v] : back[v + 1]] for v in range(digraph.n)]
        self.mutual = [set(s) & set(p) for s, p in zip(self.succ, self.pred)]
        self._seen, self._shortest = 0, ShortestCycles()

    # ---- the first rows ------------------------------------------------------------------------------------

    def cover(self) -> list[Row]:
        """Cliques that hold all mutual arcs."""
        found, covered = [], set()
        for u in range(self.n):
            for v in sorted(self.mutual[u]):
                if u < v and (u, v) not in covered:
                    clique = self._grown([u, v], range(0))
                    covered.update((a, b) for a in clique for b in clique if a < b)
                    found.append((tuple(clique), True))
        return found

    def _grown(self, clique: list[int], order: range | list[int]) -> list[int]:
        """A clique with more nodes, those of an order first, until it has all that it can."""
        left = set.intersection(*(self.mutual[v] for v in clique))
        for v in order:
            if v in left:
                clique.append(v)
                left &= self.mutual[v]
        while left:
            v = min(left, key=lambda w: (-len(self.mutual[w] & left), w))
            clique.append(v)
            left &= self.mutual[v]
        return clique

    def packed(self, price: list[int]) -> Iterator[list[tuple[Row, int]]]:
        """Rows and values whose sums are at no node above its price [n], which is used up; all that there are
        so far, again and again.
        """
        found, work = [], 0
        for v in sorted(range(self.n), key=lambda v: (len(self.succ[v]) * len(self.pred[v]), v)):
            while price[v] > 0:
                row = self._clique_at(v, price) or self._cycle_at(v, price)
                work += self._seen
                if row is None:
                    break
                value = min(price[u] for u in row[0])
                found.append((row, value))
                for u in row[0]:
                    price[u] -= value
            if work > WORK:
                work = 0
                yield found
        yield found

    def _clique_at(self, v: int, price: list[int]) -> Row | None:
        left, clique = {u for u in self.mutual[v] if price[u] > 0}, [v]
        while left:
            u = min(left, key=lambda w: (-len(self.mutual[w] & left), w))
            clique.append(u)
            left &= self.mutual[u]
        return (tuple(clique), True) if len(clique) > 1 else None

    def _cycle_at(self, v: int, price: list[int]) -> Row | None:
        """A short cycle through v, of nodes with something left: searched for along arcs and against them."""
        sides = [
            ({v: v}, [v], self.succ),
            ({v: v}, [v], self.pred),
        ]  # who found each node, the last found, arcs
        self._seen = 0
        while self._seen < SEEN and sides[0][1] and sides[1][1]:
            mine = int(len(sides[1][1]) < len(sides[0][1]))
            above, front, arcs = sides[mine]
            found: list[int] = []
            for u, w in [(node, other) for node in front for other in arcs[node]]:
                if w == v:
                    return self._closed(v, u, sides[0][0], sides[1][0])
                if price[w] > 0 and w not in above:
                    above[w] = u
                    found.append(w)
                    if w in sides[1 - mine][0]:
                        return self._closed(v, w, sides[0][0], sides[1][0])
            self._seen += len(found)
            sides[mine] = above, found, arcs
        return None

    @staticmethod
    def _closed(v: int, w: int, ahead: dict[int, int], behind: dict[int, int]) -> Row:
        """The cycle from v to w, the first node found from both sides or the last one from one, and back."""
        there, back = [w] if w in ahead else [], [w] if w in behind else []
        while there and there[-1] != v:
            there.append(ahead[there[-1]])
        while back and back[-1] != v:
            back.append(behind[back[-1]])
        if not there:
            return (v, *back[:-1]), False
        return (*there[::-1], *back[1:-1]), False

    # ---- separation ----------------------------------------------------------------------------------------

    def violated(self, x: np.ndarray, most: int) -> list[Row]:
        """Rows that x [n] violates, about `most` of them; none: no directed cycle has less than 1."""
        return self._cliques(x, most) + self._cycles(x, most)

    def _cliques(self, x: np.ndarray, most: int) -> list[Row]:
        rest = 1 - x
        order = np.argsort(-rest, kind="stable").tolist()
        found, used = [], np.zeros(self.n, dtype=np.int64)
        for v in order[:GROWN]:
            if rest[v] <= LEAST or len(found) >= most:
                break
            near = [u for u in order if u in self.mutual[v] and rest[u] > LEAST] if self.mutual[v] else []
            if rest[v] + rest[near].sum() <= 1 + LEAST:
                continue
            clique, left = [v], self.mutual[v]
            for u in near:
                if u in left:
                    clique.append(u)
                    left = left & self.mutual[u]
            if rest[clique].sum() > 1 + LEAST and used[clique].min() < 2:
                used[clique] += 1
                found.append((tuple(sorted(self._grown(clique, range(0)))), True))
        return list(dict.fromkeys(found))

    def _cycles(self, x: np.ndarray, most: int) -> list[Row]:
        """Shortest cycles of less than 1 through some nodes; through all, if those have none."""
        nodes, limit = np.flatnonzero(x < 1 - LEAST), 1 + LONG * self.n
        length = np.maximum(x, 0) + LONG
        matrix = sp.csr_array(
            (length[self.digraph.out], self.digraph.out, self.digraph.out_ptr), shape=(self.n, self.n)
        )

        def last(v: int, dist: np.ndarray) -> tuple[int, float] | None:
            if not (tails := self.pred[v]):
                return None
            tail = tails[int(np.argmin(dist[tails]))]
            whole = dist[tail] + length[v]
            return (tail, whole) if whole < limit else None

        found: dict[Row, float] = {}
        for cycles in self._shortest.rounds(nodes, matrix, limit, last):
            for cycle, _ in cycles:
                first = cycle.index(min(cycle))
                row = (cycle[first:] + cycle[:first])[::-1]
                if (weight := float(x[row].sum())) < 1 - LEAST:
                    found[(tuple(row), False)] = weight
            if found:
                break
        chosen, used = [], np.zeros(self.n, dtype=np.int64)
        for row in sorted(found, key=lambda row: (found[row], row)):
            if used[list(row[0])].min() < 2 and len(chosen) < most:
                chosen.append(row)
                used[list(row[0])] += 1
        return chosen
