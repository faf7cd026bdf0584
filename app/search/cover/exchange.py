"""Exchange search for minimum vertex cover: NuMVC, its sampled form for large graphs, and the weighted one.

A state is a set C cheaper than the best cover, with edges uncovered. A step takes one node out of C (two,
with node weights) and puts an end of an uncovered edge in (with node weights several, while C stays cheaper).
Edges carry weights that grow while they stay uncovered; the score of a node is the change, to the better, of
the total weight of uncovered edges if it changed sides.

Sources  two-stage exchange, edge weights with forgetting, configuration checking: NuMVC, Cai, Su, Luo and
         Sattar, JAIR 46, 2013; as in the authors' program the node that just entered does not leave at once.
         The best of a sample instead of the best node (`samples`), constant edge weights (`ceiling` 0):
         FastVC, Cai, IJCAI 2015. Scores per unit of node weight: as in FastWVC, Cai, Hou, Lin and Li 2018.
"""

import ctypes
from typing import Any

import numpy as np

from app.graphs.graph import Graph
from app.native.library import address, function
from app.native.state import KernelState
from app.search.cover import exchange_plain as plain

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
BLOCK, BARRED = plain.BLOCK, plain.BARRED
GRAPH_ARRAYS = ("indptr", "node_weight", "divisor", "indices", "mirror")
SCRATCH = ("top", "ratio_top")
ARRAYS = (
    "in_cover", "best_cover", "fresh", "score", "bar", "weight", "weighted_degree", "stamp",
    "cover", "cover_at", "open", "open_at",
)  # fmt: skip
NUMBERS = (
    "cover_size", "open_size", "cost", "best", "steps", "found_at", "total_weight", "heavy", "last_in",
)  # fmt: skip


class _Search(ctypes.Structure):
    _fields_ = (
        *((name, Long) for name in ("n", "padded", "nnz", "samples", "ceiling")),
        *((name, Pointer) for name in (*GRAPH_ARRAYS, *ARRAYS, *SCRATCH)),
        *((name, Long) for name in NUMBERS),
        ("random", ctypes.c_uint64),
    )


S = ctypes.POINTER(_Search)
MIRROR = function("lk_cover_mirror", Long, *(Pointer,) * 4)
RESCORE = function("lk_cover_rescore", S)
SHRINK = function("lk_cover_shrink", S)
EXCHANGE = function("lk_cover_exchange", S, Long)
WEIGHTED = function("lk_cover_weighted_exchange", S, Long)


def available() -> bool:
    """True where the library was built."""
    return None not in (MIRROR, RESCORE, SHRINK, EXCHANGE, WEIGHTED)


class Exchange(KernelState):
    """The state of one exchange search; the arrays are those of cover_exchange.c.

    in_cover, best_cover   [n] uint8
    fresh                  [n] uint8, configuration checking: a neighbour changed sides since this node left
    score                  [padded] int32, at most 0 in the cover, at least 0 outside
    bar                    [padded] int32, 0 in the cover, BARRED outside: score + bar finds who leaves
    weight                 [nnz] int32, edge weights at both entries of an edge
    weighted_degree        [n] int32, sums of weights over a node's edges
    stamp                  [n] int64, the step of a node's last exchange: the smaller, the older
    cover, open            the cover and the uncovered edges as lists; cover_at, open_at: places in them
    best, cost             int, of best_cover and of the set at hand
    """

    numbers = (*NUMBERS, "random")

    def __init__(
        self,
        graph: Graph,
        start: np.ndarray,
        weights: np.ndarray | None,
        random: int,
        samples: int,
        ceiling: int,
        compiled: bool,
    ) -> None:
        n, nnz = graph.n, len(graph.indices)
        self.compiled = compiled and available()
        self.n, self.nnz, self.samples, self.node_weight = n, nnz, samples, weights
        self.ceiling = ceiling
        self.padded = -(-max(n, 1) // BLOCK) * BLOCK
        self.indptr = np.ascontiguousarray(graph.indptr, dtype=np.int64)
        self.indices = np.ascontiguousarray(graph.indices, dtype=np.int32)
        self.mirror = self._mirror()
        self.in_cover, self.best_cover = np.zeros(n, dtype=np.uint8), np.ones(n, dtype=np.uint8)
        self.fresh = np.ones(n, dtype=np.uint8)
        self.score, self.bar = np.zeros(self.padded, dtype=np.int32), np.empty(self.padded, dtype=np.int32)
        self.weight = np.ones(nnz, dtype=np.int32)
        self.weighted_degree = np.diff(self.indptr).astype(np.int32)
        self.stamp = np.zeros(n, dtype=np.int64)
        self.cover, self.cover_at = np.zeros(n, dtype=np.int32), np.zeros(n, dtype=np.int32)
        self.open, self.open_at = np.zeros(nnz // 2, dtype=np.int32), np.zeros(nnz, dtype=np.int32)
        self.divisor = np.ones(self.padded, dtype=np.int32)
        self.divisor[:n] = 1 if weights is None else weights
        self.top = np.zeros(self.padded // BLOCK, dtype=np.int32)
        self.ratio_top = np.zeros(self.padded // BLOCK)
        self.steps = self.found_at = self.heavy = 0
        self.total_weight, self.random, self.last_in = nnz // 2, random, -1
        self.best = n + 1 if weights is None else int(weights.sum()) + 1
        self._hold(_Search(n, self.padded, nnz, samples, ceiling), (*GRAPH_ARRAYS, *ARRAYS, *SCRATCH))
        self.load(start)

    def _mirror(self) -> np.ndarray:
        """[nnz] int32, for each entry u-v the entry v-u."""
        if not self.compiled:  # entries in the order of (column, row) are those of the transposed rows
            return np.argsort(self.indices, kind="stable").astype(np.int32)
        mirror, places = np.empty(self.nnz, dtype=np.int32), np.empty(self.n, dtype=np.int64)
        arrays = (self.indptr, self.indices, places, mirror)
        MIRROR(self.n, *(address(array) for array in arrays))
        return mirror

    def load(self, in_cover: np.ndarray) -> None:
        """Go on from a cover [n] bool; it becomes the best one if its cost is below `best`."""
        nodes = np.flatnonzero(in_cover)
        self.in_cover[:] = in_cover
        self.bar[:] = BARRED
        self.bar[nodes] = 0
        self.cover_size, self.open_size = len(nodes), 0
        self.cover[: len(nodes)] = nodes
        self.cover_at[nodes] = np.arange(len(nodes))
        self.cost = len(nodes) if self.node_weight is None else int(self.node_weight[nodes].sum())
        if self.compiled:
            self._call(RESCORE)
            self._call(SHRINK)
        else:
            plain.rescore(self)
            plain.shrink(self)

    def run(self, steps: int) -> None:
        """`steps` exchanges."""
        if self.compiled:
            self._call(EXCHANGE if self.node_weight is None else WEIGHTED, steps)
        else:
            plain.run(self, steps)

    def solution(self) -> np.ndarray:
        """[n] bool, the best cover of this search."""
        return self.best_cover.astype(bool)

    def state(self) -> dict[str, Any]:
        """Copies of all that changes."""
        arrays = {name: getattr(self, name).copy() for name in ARRAYS}
        return arrays | {name: int(getattr(self, name)) for name in self.numbers}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state of the same graph."""
        for name in ARRAYS:
            getattr(self, name)[:] = state[name]
        for name in self.numbers:
            setattr(self, name, int(state[name]))
