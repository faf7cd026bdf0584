"""Phased local search for maximum independent sets, the complements of vertex covers.

The set stays independent. A move adds a node without neighbours in it, else swaps one in for its only
neighbour there, else ends the iteration: the set is disturbed and the nodes that were used may be used again.
Which of the possible nodes enters is up to the phase: any (50 iterations), one of the least penalty (50), one
of the least degree (100; with node weights one of the largest weight); ties at random. In the penalty phase
the nodes of the set are penalised at the end of an iteration, and all penalties fall by one every `delay`
iterations; `delay` adapts until three nodes in four are penalised.

Sources  dynamic local search DLS-MC, Pullan and Hoos, JAIR 25, 2006; phases and the delay that adapts: PLS,
         Pullan, J. Combinatorial Optimization 12, 2006
"""

import ctypes
from typing import Any

import numpy as np

from app.graphs.graph import Graph
from app.native.library import address, function
from app.search.cover import penalty_plain as plain

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
LARGEST = 5000  # nodes: the matrix takes a byte for each pair
BLOCK, NONE = plain.BLOCK, plain.NONE
GRAPH_ARRAYS = ("node_weight", "near", "rank")
ARRAYS = ("best_set", "conflicts", "penalty", "cost", "members", "member_at", "anchor")
NUMBERS = (
    "size", "value", "best", "steps", "found_at", "phase", "left", "delay", "cycle", "last", "iteration",
    "overlap", "free_cost", "swap_cost",
)  # fmt: skip


class _Penalty(ctypes.Structure):
    _fields_ = (
        ("n", Long), ("padded", Long),
        *((name, Pointer) for name in (*GRAPH_ARRAYS, *ARRAYS, "count")),
        *((name, Long) for name in NUMBERS),
        ("random", ctypes.c_uint64),
    )  # fmt: skip


RUN = function("lk_cover_penalty", ctypes.POINTER(_Penalty), Long)


class PenaltySearch:
    """The state of one phased search; the arrays are those of cover_penalty.c.

    near        [n+1, padded] uint8, adjacency; row n is zero
    rank        [padded] uint16, costs of the degree phase: the degree, with node weights the place by weight
    conflicts   [padded] uint16, neighbours in the set
    penalty     [padded] uint16
    cost        [padded] uint16, what the phase minimises; NONE for nodes that may not enter in this iteration
    members     the set as a list; member_at [n], places in it or -1
    anchor      [n] int64, the last iteration whose first swap found this node in the set
    best        int, weight of the best set, best_set [n] uint8
    """

    def __init__(
        self, graph: Graph, start: np.ndarray, weights: np.ndarray | None, random: int, compiled: bool
    ) -> None:
        n = self.n = graph.n
        if n > LARGEST:
            raise ValueError(f"{graph.name}: the penalty search takes at most {LARGEST} nodes, not {n}")
        self.compiled = compiled and RUN is not None
        self.padded = padded = -(-max(n, 1) // BLOCK) * BLOCK
        self.node_weight = weights
        self.near = np.zeros((n + 1, padded), dtype=np.uint8)
        self.near[graph.row_of(), graph.indices] = 1
        self.rank = np.zeros(padded, dtype=np.uint16)
        self.rank[:n] = graph.degrees() if weights is None else _places(weights)
        self.best_set = np.zeros(n, dtype=np.uint8)
        self.conflicts, self.penalty = np.zeros(padded, dtype=np.uint16), np.zeros(padded, dtype=np.uint16)
        self.cost = np.full(padded, NONE, dtype=np.uint16)
        self.members, self.member_at = np.zeros(n, dtype=np.int32), np.full(n, -1, dtype=np.int32)
        self.anchor = np.full(n, -1, dtype=np.int64)
        self.count = np.zeros(padded // BLOCK, dtype=np.uint16)
        self.steps = self.found_at = self.cycle = self.iteration = self.phase = 0
        self.delay, self.left, self.random = 2, plain.LENGTH[0], random
        self.best = -1
        s = self._struct = _Penalty(n, padded)
        for name in (*GRAPH_ARRAYS, *ARRAYS, "count"):
            setattr(s, name, address(getattr(self, name)))
        self.load(start)

    def load(self, in_cover: np.ndarray) -> None:
        """Go on from the complement of a cover [n] bool."""
        nodes = np.flatnonzero(~in_cover)
        self.size, self.overlap = len(nodes), -1
        self.members[: len(nodes)] = nodes
        self.member_at[:] = -1
        self.member_at[nodes] = np.arange(len(nodes))
        self.last = int(nodes[-1]) if len(nodes) else -1
        self.value = len(nodes) if self.node_weight is None else int(self.node_weight[nodes].sum())
        self.conflicts[:] = self.near[nodes].sum(axis=0, dtype=np.uint16)
        plain.reset_costs(self)
        plain.update(self, self.n, self.n)
        plain.keep_best(self)

    def run(self, steps: int) -> None:
        """So many steps."""
        if not self.compiled:
            plain.run(self, steps)
            return
        s = self._struct
        for name in (*NUMBERS, "random"):
            setattr(s, name, getattr(self, name))
        RUN(s, steps)
        for name in (*NUMBERS, "random"):
            setattr(self, name, getattr(s, name))

    def solution(self) -> np.ndarray:
        """[n] bool, the complement of the best set."""
        return self.best_set == 0

    def state(self) -> dict[str, Any]:
        """Copies of all that changes."""
        arrays = {name: getattr(self, name).copy() for name in ARRAYS}
        return arrays | {name: int(getattr(self, name)) for name in (*NUMBERS, "random")}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state of the same graph."""
        for name in ARRAYS:
            getattr(self, name)[:] = state[name]
        for name in (*NUMBERS, "random"):
            setattr(self, name, int(state[name]))


def _places(weights: np.ndarray) -> np.ndarray:
    """[n] the place of each weight among the different weights, the heaviest first."""
    return np.unique(-weights, return_inverse=True)[1]
