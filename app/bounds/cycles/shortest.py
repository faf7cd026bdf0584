"""Shortest cycles of a digraph, through some nodes after others: rows that a point violates."""

from collections.abc import Callable, Iterator

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra

from app.graphs.keys import sorted_set

LEAST = 1e-4  # a row is violated by more than that
LONG = (
    1e-5  # what each step of a cycle weighs beside what the point says: of equal cycles short ones are taken
)
# Shortest cycles are looked for through so many nodes at a time, in a table of so many entries.
ROOTS, ENTRIES = 300, 1 << 22


class ShortestCycles:
    """Goes on with the nodes that follow those of the last call."""

    def __init__(self) -> None:
        self._turn = 0

    def rounds(
        self, nodes: np.ndarray, matrix: sp.csr_array, limit: float,
        last: Callable[[int, np.ndarray], tuple[int, float] | None],
    ) -> Iterator[list[tuple[list[int], float]]]:  # fmt: skip
        """Cycles through some of `nodes` [k], against their arcs and ending there, and their lengths; then
        through others, until each has had its turn.

        matrix   [n, n] lengths of arcs       limit   paths that are longer are not looked for
        last     of a node and distances [n] from it: the best node to come back from, and the length of the
                 whole cycle; None: there is none
        """
        n = matrix.shape[0]
        count = min(len(nodes), ROOTS, max(ENTRIES // max(n, 1), 1))
        for _ in range(0, len(nodes), max(count, 1)):
            roots = sorted_set(nodes[(self._turn + np.arange(count)) % len(nodes)])
            self._turn = (self._turn + count) % len(nodes)
            dist, above = dijkstra(matrix, indices=roots, return_predecessors=True, limit=limit)
            found = []
            for i, v in enumerate(roots.tolist()):
                if (back := last(v, dist[i])) is None:
                    continue
                cycle = [back[0]]
                while cycle[-1] != v:
                    cycle.append(int(above[i, cycle[-1]]))
                found.append((cycle, back[1]))
            yield found
