"""The toolbox of balanced partitions: a multilevel start, a search, bounds."""

from functools import cached_property, partial
from typing import Any

import numpy as np

from app.blocks.rounds import grown
from app.blocks.whole import balanced, by_levels, climbed
from app.bounds.partition.bounds import PartitionBounds
from app.bounds.partition.witness import PartitionProof
from app.graphs.balance import balance_of
from app.graphs.fixed_point import vanished_words
from app.search.core_bounds import InnerBounds
from app.search.label_tools import LabelTools, in_order
from app.search.partition.baselines import LABELS, PARTITION_BASELINES
from app.search.partition.search import MOST_PATIENT, PartitionSearch
from app.toolbox import Baseline, Bounds, Instance, Search

STEPS = 2_000_000  # of a search, or this many for each node:
STEPS_PER_NODE = 100
MOST_ENTRIES = 1 << 19  # of a graph whose start is made of all its levels


class PartitionTools(LabelTools):
    """Partitions of one graph into blocks that are not too heavy, which cut as little as may be.

    The core is the graph.
    """

    words, sense = "partition", "minimise"
    every = "all nodes are in blocks, none inside or outside"
    start_share = 0.7

    def __init__(self, instance: Instance, problem: Any) -> None:
        super().__init__(instance, problem)
        self.asked = balance_of(self.graph, instance.asked.parts, instance.asked.imbalance)
        self.unit = self.asked.unit
        self.remark = vanished_words(self.graph.weights, self.unit)
        self.weights = self.asked.rows.weights
        self.core = self.graph
        self._valued: tuple[np.ndarray, int] | None = None  # the blocks that were valued last, their cut

    @property
    def usual_steps(self) -> int:
        """Of a search where a case sets no limit."""
        return max(STEPS, STEPS_PER_NODE * self.graph.n)

    def lift(self, core_solution: np.ndarray) -> np.ndarray:
        """[n] int64, the same blocks in the order of nodes."""
        return in_order(core_solution)

    def restrict(self, solution: np.ndarray) -> np.ndarray:
        """Blocks that follow these, and are light enough."""
        block = np.minimum(in_order(solution), self.asked.parts - 1)
        return balanced(self.asked, block, self.instance.compiled)

    def value(self, solution: np.ndarray) -> int:
        """What is cut, in units."""
        if self._valued is None or not np.array_equal(self._valued[0], solution):
            self._valued = solution.copy(), self.asked.cut(solution)
        return self._valued[1]

    def fault(self, solution: np.ndarray) -> str | None:
        """Not a block for each node, or blocks that are too many, or too heavy."""
        asked = self.asked
        if (wrong := super().fault(solution)) is not None:
            return wrong
        names, place = np.unique(solution, return_inverse=True)
        if len(names) > asked.parts:
            return f"the {self.words} has {len(names)} blocks; at most {asked.parts} would be right"
        totals = np.bincount(place.reshape(-1), weights=asked.rows.size, minlength=1)
        heavy, most = int(totals.argmax()), int(asked.limits.max())
        if totals[heavy] > most:
            weighs, most = totals[heavy] * asked.node_unit, most * asked.node_unit
            return (
                f"block {names[heavy]} of the {self.words} weighs {weighs:g}; at most {most:g} would be right"
            )
        return None

    # ---- tools ---------------------------------------------------------------------------------------------

    def start(self) -> np.ndarray:
        """One way down and up again, in a hurry once its time is over; on large graphs, where that is for the
        search to begin with, blocks that grow, and then a round of moves of their nodes; that is left out on
        very large ones, where the search has better ones sooner.
        """
        return self._start.copy()

    @cached_property
    def _start(self) -> np.ndarray:
        """Blocks that are made once."""
        if not self.left_out:
            return by_levels(self.asked, self.instance.compiled, look=self.look)
        if len(self.asked.rows.indices) > MOST_PATIENT:
            return self._grown
        return climbed(self.asked, self._grown, self.instance.compiled, self.look)

    @cached_property
    def _grown(self) -> np.ndarray:
        """Blocks that grow, which are made once."""
        compiled = self.instance.compiled
        return balanced(self.asked, grown(self.asked, np.arange(self.graph.n), compiled), compiled)

    @property
    def left_out(self) -> str:
        """The way down and up, on large graphs."""
        return "multilevel" if len(self.asked.rows.indices) > MOST_ENTRIES else ""

    def search(self, seed: int, start: np.ndarray) -> Search | None:
        """Generations of partitions; none of a graph without edges."""
        if not len(self.asked.rows.indices):
            return None
        return PartitionSearch(self.asked, start, seed, self.instance.compiled, bool(self.left_out))

    def bounds(self) -> Bounds | None:
        """Vectors, trees, semidefinite programs."""
        return PartBounds(PartitionBounds(self.asked, self.instance.most_bytes, self.instance.compiled))

    def prove(self, proof: PartitionProof) -> int:
        """Check the witness of each part."""
        return proof.proved(self.asked, self.instance.compiled)

    def baselines(self) -> dict[str, Baseline]:
        """The plain heuristics by name."""
        given = self.instance
        asked = {"compiled": given.compiled, "parts": given.asked.parts, "imbalance": given.asked.imbalance}
        rules = {name: partial(rule, self.graph, **asked) for name, rule in PARTITION_BASELINES.items()}
        made, block = ("grown", "_grown") if self.left_out else ("multilevel", "_start")
        found = {made: lambda: (getattr(self, block).copy(), LABELS[made])}  # it is there
        return {name: rule for name, rule in (rules | found).items() if name != self.left_out}


class PartBounds(InnerBounds):
    """With what proves them."""

    def proof(self) -> PartitionProof:
        """The witness of each part that was worked on."""
        return PartitionProof(self.inner.parts, True)
