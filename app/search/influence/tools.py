"""The toolbox of influence maximisation: what seeds may be, what they are worth, plain choices of them.

Seeds are worth the mean number of nodes that become active in `simulations` cascades forward, the same
worlds for all of them, which no choice of seeds has looked at. How seeds are found by reverse reachable
sets is the affair of rounds.py and of app/solver/sampled.py.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from app.bounds.influence.concentration import at_most
from app.errors import CaseError, FixedNodesError
from app.graphs.diffusion import Spreading
from app.graphs.graph import Graph
from app.proofs.kinds import InfluenceProof
from app.rng import key_of
from app.search.coverage.tools import above_budget, shown_cost, whole_costs
from app.search.influence.baselines import INFLUENCE_BASELINES
from app.search.influence.collection import CollectionTools
from app.search.influence.rounds import Alone, Rounds, SampledBounds
from app.search.influence.sampling import Sampler
from app.search.node_tools import fault_of_set
from app.toolbox import Baseline, Bounds, Instance, Toolbox

SETS, JUDGES, WORLDS = "influence sets", "influence judges", "influence worlds"  # purposes of draws


class InfluenceTools(Toolbox):
    """Seeds [n] bool whose costs the budget pays for, worth the spread that they are expected to have.

    forced, barred   [n] bool, nodes that are seeds in any case, and never
    free             [n] bool, those that may be chosen beside the forced ones
    left             what of the budget, in units of the costs [n], is left for them
    certain          nothing is left to chance: one world tells all, and bounds are proved
    """

    bounds_follow = True

    def __init__(self, instance: Instance, problem: Any) -> None:
        graph = self.graph = instance.graph
        self.instance, self.problem = instance, problem
        self.sense, self.words = problem.sense, problem.solution
        self.asked: Spreading = instance.beside.spreading or Spreading()
        self.diffusion = self.asked.of(graph)
        self.scale, self.costs = self._costs(graph)
        self.budget = int(Fraction(repr(float(instance.asked.budget))) * self.scale)
        self._fix(instance)
        self.certain = self.diffusion.certain
        self.simulate(self.asked.simulations)
        self.sampler = Sampler(self.diffusion, self.certain, instance.compiled)
        self._proved_by: Rounds | None = None  # those of the last certificate
        self._proved_sets = 0  # of its collection

    def _costs(self, graph: Graph) -> tuple[int, np.ndarray]:
        """Units to one, and costs [n] int64 in units; all one where there are none. Raises CaseError."""
        given = graph.node_weights
        if given is None:
            return 1, np.ones(graph.n, dtype=np.int64)
        if (given < 0).any():
            node = graph.called(int((given < 0).argmax()))
            raise CaseError(f"{graph.name}: the cost of node {node} is below 0; 0 or more would be right")
        return whole_costs(given, graph.name)

    def _fix(self, instance: Instance) -> None:
        """forced, barred, free, left. Raises FixedNodesError where the budget is below what is forced."""
        n = self.graph.n
        self.forced, self.barred = (np.zeros(n, dtype=bool) for _ in range(2))
        self.forced[instance.inside] = self.barred[instance.outside] = True
        if (cost := int(self.costs[self.forced].sum())) > self.budget:
            spent = f"what is to be inside costs {shown_cost(cost, self.scale)}"
            raise FixedNodesError(
                f"{spent}, more than problem.budget = {shown_cost(self.budget, self.scale)}"
            )
        self.forced |= (self.costs == 0) & ~self.barred
        self.left = self.budget - cost
        self.free = ~(self.forced | self.barred) & (self.costs <= self.left)

    def simulate(self, worlds: int) -> None:
        """Seeds are worth the mean of so many cascades from now on; where all is certain one tells all."""
        self.worlds = 1 if self.certain else worlds
        self.unit = 1.0 / self.worlds
        self._known: dict[bytes, np.ndarray] = {}

    @property
    def confidence(self) -> float:
        """The probability with which bounds hold."""
        return 1.0 if self.certain or self.pays_for_all else 1.0 - self.asked.delta

    @property
    def pays_for_all(self) -> bool:
        """Whether all nodes can be seeds together."""
        return not self.barred.any() and int(self.costs.sum()) <= self.budget

    @property
    def core(self) -> Graph:
        """The graph: nothing of it is left out."""
        return self.graph

    # ---- seeds ---------------------------------------------------------------------------------------------

    def filled(self, solution: np.ndarray) -> np.ndarray:
        """[n] bool, seeds and what the rest of the budget pays for beside them, nodes of most arcs first."""
        order = np.argsort(-np.diff(self.diffusion.out_ptr), kind="stable")
        return self.paid(order, solution)

    def paid(self, order: np.ndarray, begun: np.ndarray | None = None) -> np.ndarray:
        """[n] bool, nodes as they follow, each that the budget still pays for, beside the forced ones."""
        chosen = self.forced.copy() if begun is None else begun | self.forced
        left = self.budget - int(self.costs[chosen].sum())
        order = order[self.free[order] & ~chosen[order]]
        if (self.costs[order] == 1).all():
            chosen[order[:left]] = True
            return chosen
        cost = self.costs[order].tolist()
        for v, price in zip(order.tolist(), cost):
            if price <= left:
                chosen[v] = True
                left -= price
        return chosen

    def restrict(self, solution: np.ndarray) -> np.ndarray:
        """Seeds that follow others as far as the budget goes."""
        return self.filled(self.paid(np.flatnonzero(solution)))

    def active(self, solution: np.ndarray) -> np.ndarray:
        """[worlds] int64, how many nodes seeds [n] bool make active in each."""
        if np.packbits(solution).tobytes() not in self._known:
            self.judge(solution, Alone(self).worlds)
        return self._known[np.packbits(solution).tobytes()]

    def judge(self, solution: np.ndarray, made: Callable[[int, int, np.ndarray], np.ndarray]) -> None:
        """Keep what seeds [n] bool make active in each world, by a key, how many there are, and the seeds."""
        active = made(key_of(self.asked.seed, WORLDS), self.worlds, solution)
        self._known[np.packbits(solution).tobytes()] = active

    def value(self, solution: np.ndarray) -> int:
        """The active nodes of all worlds together."""
        return int(self.active(solution).sum())

    def error(self, solution: np.ndarray) -> float:
        """The standard error of the mean over worlds."""
        active = self.active(solution)
        return float(active.std(ddof=1)) / math.sqrt(self.worlds) if self.worlds > 1 else 0.0

    def fault(self, solution: np.ndarray) -> str | None:
        """What is no mask, what is fixed on the wrong side, or costs above the budget."""
        if (wrong := fault_of_set(self, solution)) is not None:
            return wrong
        cost = sum(self.costs[np.flatnonzero(solution)].tolist())
        return above_budget(self.words, cost, self.budget, self.scale)

    # ---- sampling ------------------------------------------------------------------------------------------

    def key(self, number: int) -> int:
        """What the sets of a collection are drawn by."""
        return key_of(self.asked.seed, SETS, number)

    def judges(self, number: int) -> int:
        """What the sets are drawn by that judge seeds chosen by that collection; they see none of it."""
        return key_of(self.asked.seed, JUDGES, number)

    def upper(self, bound: int, sets: int, delta: float) -> float:
        """No seeds have a larger spread, but with probability delta; bound: of the sets that any can hit."""
        n = self.graph.n
        return float(bound) if self.certain else at_most(bound, sets, n, delta)

    def in_worlds(self, spread: float) -> int:
        """A bound of a spread as one of values."""
        return math.ceil(spread * self.worlds)

    # ---- tools ---------------------------------------------------------------------------------------------

    def start(self) -> np.ndarray:
        """Nodes of most arcs."""
        return self.filled(self.forced)

    def bounds(self) -> Bounds:
        """Bounds by collections of this rank's own, for seeds that a user wants checked."""
        return SampledBounds(self)

    def prove(self, proof: InfluenceProof) -> int:
        """Draw the collection again, add up the prices of its sets, and take what that says of all seeds."""
        rounds = self._proved_by = Rounds(self)
        rounds.refuse_other(proof.number, proof.sets)
        self._proved_sets = proof.sets
        sizes, nodes = self.sampler.sets(self.key(proof.number), 0, proof.sets)
        bound = CollectionTools(self, proof.number, sizes, nodes).prove(proof)
        return self.in_worlds(self.upper(bound, proof.sets, rounds.delta))

    def surely(self, solution: np.ndarray, value: int) -> int:
        """The value that the spread of seeds is no less than, by sets that a solve of them would judge by."""
        if self.certain:
            return value
        rounds = self._proved_by or Rounds(self)
        return math.floor(rounds.judge(solution, self._proved_sets)[0] * self.worlds)

    def baselines(self) -> dict[str, Baseline]:
        """The plain choices by name."""
        return {
            name: partial(self._plain, rule, label) for name, (rule, label) in INFLUENCE_BASELINES.items()
        }

    def _plain(self, rule: Callable[..., np.ndarray], label: str) -> tuple[np.ndarray, str]:
        return self.paid(rule(self.diffusion)), label
