"""The toolboxes of quadratic functions, of 0-1 variables or spins: those of the cuts that stand for them."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from app.errors import FixedNodesError
from app.graphs.weights import decimals_of
from app.proofs.kinds import CutProof
from app.search.cut.tools import CutTools, at_nodes
from app.toolbox import Baseline, Instance, rule_of


class QuadraticTools(CutTools):
    """Values f = -cut / 2 of a function (app/graphs/quadratic.py), whose reference, the last node, is on
    side 0; a value is -cut, in halves of the unit of the weights.
    """

    words, sense = "assignment", "minimise"
    core_minimises = False

    def __init__(self, instance: Instance, problem: Any) -> None:
        reference = instance.graph.n - 1
        for nodes in (instance.inside, instance.outside):
            if reference in nodes:
                raise FixedNodesError("node {} is no variable; others would be right", reference)
        self.given = instance
        super().__init__(replace(instance, outside=np.append(instance.outside, reference)), problem)
        self._count()

    def _count(self) -> None:
        """Set what values are counted in."""
        self.weights = self._with_decimals()
        self.unit /= 2

    def _of_cut(self, weight: int) -> int:
        """The value of a cut that weighs so much."""
        return -weight

    def _to_cut(self, value: int) -> int:
        """The inverse of _of_cut."""
        return -value

    def _with_decimals(self) -> np.ndarray:
        """Whole numbers in halves of the unit that have the decimals of the function's values.

        Those are the decimals of the cut's weights, for the weights at the node of a variable sum up to -2 h;
        or one more, where h alone has it.
        """
        decimals = decimals_of(self.cut_weights * self.unit)
        linear = at_nodes(self.graph, self.cut_weights)[:-1]
        if decimals is None or (np.rint(linear * (self.unit * 10.0**decimals)) % 2 == 0).all():
            return 2 * self.cut_weights
        return self.cut_weights

    def value(self, solution: np.ndarray) -> int:
        """The value of the function."""
        return self._of_cut(super().value(solution))

    def value_of_core(self, value: int) -> int:
        """The function's value for that of a cut of the core."""
        return self._of_cut(super().value_of_core(value))

    def core_value(self, value: int) -> int:
        """The inverse of value_of_core."""
        return super().core_value(self._to_cut(value))

    def prove(self, proof: CutProof) -> int:
        """As of the cut."""
        return self._of_cut(super().prove(proof))

    def baselines(self) -> dict[str, Baseline]:
        """The plain heuristics of the cut; none where variables are fixed."""
        if len(self.given.inside) or len(self.given.outside):
            return {}
        rules = self.problem.baselines
        return {name: partial(self._settled, rule_of(self.instance, rule)) for name, rule in rules.items()}

    @staticmethod
    def _settled(rule: Baseline) -> tuple[np.ndarray, str]:
        """A cut with the reference on side 0."""
        sides, label = rule()
        return sides ^ sides[-1], label


class IsingTools(QuadraticTools):
    """Energies E = W - 2 cut of spins, in units of the weights, whose sum is W."""

    words = "spin configuration"

    def _count(self) -> None:
        """Energies are sums of weights, each with one sign or the other."""
        self.whole = int(self.cut_weights.sum()) // 2

    def _of_cut(self, weight: int) -> int:
        return self.whole - 2 * weight

    def _to_cut(self, value: int) -> int:
        return (self.whole - value) // 2
