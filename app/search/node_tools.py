"""NodeTools: the toolbox of any problem whose solution is a set of nodes, without reductions and search."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from app.bounds.certificate import BadCertificate, Bound
from app.errors import CaseError
from app.graphs.fixed_point import whole_numbers
from app.graphs.graph import Graph
from app.toolbox import Baseline, Bounds, Instance, Toolbox, rule_of


def refuse_weights(
    weights: np.ndarray, given: np.ndarray, name: str, words: str, called: Callable[[int], str]
) -> None:
    """Raises CaseError where a weight is below 0, or nothing beside the largest though not 0.

    weights  [n] int64 of the given ones [n]     called   a node for the message
    """
    bad = np.flatnonzero((weights < 0) | ((weights == 0) & (given != 0)))
    if len(bad):
        raise CaseError(
            f"{name}: the weight of node {called(int(bad[0]))} is below 0, or nothing beside the largest; "
            f"for {words}s weights of 0 or more would be right"
        )


def weights_of(instance: Instance) -> tuple[np.ndarray | None, float]:
    """[n] int64, the weights of nodes in a unit, and that; None: each node counts one."""
    given = instance.graph.node_weights
    if instance.whole_weights is not None or given is None:
        return instance.whole_weights, instance.whole_unit
    return whole_numbers(given, f"{instance.graph.name}: a node weight")


def refuse_small_weights(instance: Instance, weights: np.ndarray | None, words: str) -> None:
    """Raises CaseError, see refuse_weights, of the weights of an instance's nodes; None: there are none."""
    if weights is not None:
        graph = instance.graph
        given = graph.node_weights if instance.whole_weights is None else weights
        refuse_weights(weights, given, graph.name, words, graph.called)


def fault_of_set(tools: Any, solution: np.ndarray) -> str | None:
    """What a toolbox's problem finds wrong with a set of nodes, or a fixed one on the wrong side; or None."""
    wrong = tools.problem.violation(tools.graph, solution)
    if wrong is not None:
        return f"the {tools.words} {wrong}"
    lost = tools.instance.misplaced(solution)
    return None if lost is None else f"node {tools.graph.called(lost[0])} is fixed {lost[1]}"


class NodeTools(Toolbox):
    """Sets of nodes of one graph: value, feasibility, baselines and bounds as the problem declares them.

    The core is the graph. app/search/cover/tools.py adds reductions and a search.
    """

    usual_steps = 200_000

    def __init__(self, instance: Instance, problem: Any) -> None:
        graph = instance.graph
        self.instance, self.problem, self.graph = instance, problem, graph
        self.sense, self.words = problem.sense, problem.solution
        self.kinds: set[type] = set()  # of the problem's bounds, as far as they are known
        self.weights, self.unit = weights_of(instance)

    def weightless(self) -> np.ndarray:
        """[n] bool, nodes of weight 0. Raises CaseError, see refuse_weights."""
        if self.weights is None:
            return np.zeros(self.graph.n, dtype=bool)
        refuse_small_weights(self.instance, self.weights, self.words)
        return self.weights == 0

    def sides(self) -> tuple[np.ndarray, np.ndarray]:
        """[n] bool each: nodes inside, and those of weight 0, which cost nothing; and nodes outside."""
        free = self.weightless()
        inside, outside = (np.zeros(self.graph.n, dtype=bool) for _ in range(2))
        inside[self.instance.inside] = outside[self.instance.outside] = True
        return inside | (free & ~outside), outside

    # ---- core and instance ---------------------------------------------------------------------------------

    @cached_property
    def core(self) -> Graph:
        """The graph; where there are reductions, what they leave is put in its place."""
        return self.graph

    def value(self, solution: np.ndarray) -> int:
        """The number (weight) of the chosen nodes, and what is granted."""
        chosen = np.count_nonzero(solution) if self.weights is None else self.weights[solution].sum()
        return int(chosen) + self.instance.granted

    def fault(self, solution: np.ndarray) -> str | None:
        """What the problem finds wrong, or a fixed node on the wrong side."""
        return fault_of_set(self, solution)

    # ---- tools ---------------------------------------------------------------------------------------------

    def start(self) -> np.ndarray:
        """What the first of the plain heuristics finds."""
        return rule_of(self.instance, next(iter(self.problem.baselines.values())))()[0]

    def prove(self, proof: Bound) -> int:
        """Check a certificate on the graph, of a kind that the problem's bounds have; it counts nodes."""
        if self.weights is not None:
            raise BadCertificate(f"{proof.method}: counts nodes, and these have weights")
        if type(proof) not in self.kinds:  # those found here are known; else all are asked
            self.kinds |= {type(bound(self.graph)) for bound in self.problem.bounds.values()}
        if type(proof) not in self.kinds:
            raise BadCertificate(f"{proof.method}: proves nothing of {self.words}s")
        proof.check(self.graph)
        return self.problem.bound(self.graph.n, proof.lower)

    def bounds(self) -> Bounds | None:
        """The bounds that the problem names, one after the other."""
        return NamedBounds(self) if self.problem.bounds and self.weights is None else None

    def baselines(self) -> dict[str, Baseline]:
        """The plain heuristics; none where nodes are fixed, which they do not know of."""
        if len(self.instance.inside) or len(self.instance.outside):
            return {}
        return {name: rule_of(self.instance, rule) for name, rule in self.problem.baselines.items()}


class NamedBounds(Bounds):
    """Bounds from a problem's table: each look at the clock proves one more, cheapest first."""

    def __init__(self, tools: NodeTools) -> None:
        self.tools = tools
        self.left: list[Callable[..., Bound]] = list(tools.problem.bounds.values())
        self.best: Bound | None = None

    @property
    def value(self) -> int:
        """The best bound on the objective, 0 before the first."""
        return 0 if self.best is None else self.tools.problem.bound(self.tools.graph.n, self.best.lower)

    @property
    def method(self) -> str:
        """How it was found."""
        return "" if self.best is None else self.best.method

    def improve(self, seconds: float, best: int, solution: np.ndarray | None = None) -> bool:
        """Prove the next bound of the table."""
        if self.left:
            bound = self.left.pop(0)(self.tools.graph)
            self.tools.kinds.add(type(bound))
            if self.best is None or bound.lower > self.best.lower:
                self.best = bound
        return bool(self.left)

    def proof(self) -> Bound | None:
        """The best certificate."""
        return self.best
