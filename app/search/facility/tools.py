"""The toolbox of facility location: plain choices, a search by interchanges, Lagrangian bounds."""

import csv
import io
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np

from app.bounds.facility.bounds import RadiusBounds, SumBounds
from app.bounds.facility.witness import FacilityBound
from app.errors import CaseError, FixedNodesError, NoneFound
from app.graphs.facility import (
    CENTER,
    LARGEST_ROUNDED,
    PAIR_SECONDS,
    UNCAPACITATED,
    Demands,
    Distances,
    Question,
    alike,
    counted,
    question_of,
)
from app.graphs.fixed_point import refuse_vanished
from app.graphs.graph import Graph
from app.graphs.ids import named, plain_ids
from app.search.facility.baselines import OF_RADII, OF_SUMS, farthest_first, greedy
from app.search.facility.search import CenterSearch, FacilitySearch
from app.search.node_tools import fault_of_set
from app.toolbox import Baseline, Bounds, Instance, Search, Toolbox

COLUMNS = ("node", "facility", "distance")
OF_NODES = ",".join(COLUMNS)  # how a table of them begins


class FacilityTools(Toolbox):
    """Facilities of one instance; a solution is [n] bool, the nodes that are facilities.

    A core solution is [m] bool, of `sites`: its facilities are the nodes that may be one, its customers those
    that need something (app/graphs/facility.py).
    """

    bounds_follow = True
    usual_steps = 20_000

    def __init__(self, instance: Instance, problem: Any) -> None:
        graph = self.graph = self.core = instance.graph
        self.instance, self.problem, self.kind = instance, problem, instance.asked.facility
        self.sense, self.words = problem.sense, problem.solution
        self.most = graph.n if self.kind == UNCAPACITATED else int(instance.asked.budget)
        self.distances = Distances(graph, instance.metric, instance.compiled)
        self.remark = self.distances.remark
        self.barred = np.zeros(graph.n, dtype=bool)
        self.barred[instance.outside] = True
        self._refuse_fixed()
        self.asked = self._question(*self._given(graph))
        self.sites: Any = self.asked.sites
        unit = self.asked.unit
        self.unit = float(unit) if unit != 1 else 1.0
        self._refuse_apart()

    # ---- the question --------------------------------------------------------------------------------------

    def _question(self, demands: Demands, opening: Demands | None) -> Question:
        """What is asked, with a table of all pairs."""
        instance = self.instance
        return question_of(
            self.graph.name, self.kind, self.distances, demands, opening, self.most, instance.inside,
            self.barred, instance.most_bytes,
        )  # fmt: skip

    def _given(self, graph: Graph) -> tuple[Demands, Demands | None]:
        """What nodes need, and what opening one costs. Raises CaseError."""
        weights, demands = None, self.instance.beside.demands
        if graph.node_weights is not None:
            what = f"{graph.name}: the weight of a node"
            wrong = np.flatnonzero(~(graph.node_weights >= 0))
            if len(wrong):
                found = f"the weight of node {graph.called(int(wrong[0]))} is below 0"
                raise CaseError(f"{graph.name}: {found}; 0 or more would be right")
            weights = Demands(*counted(graph.node_weights, what, LARGEST_ROUNDED))
            named = f"{graph.name}: the weight of node"
            refuse_vanished(weights.amounts, graph.node_weights, lambda node: f"{named} {graph.called(node)}")
        if self.kind == UNCAPACITATED:
            return demands or alike(graph.n), weights or alike(graph.n)
        if weights is not None and demands is not None:
            told = f"{graph.name}: has weights of nodes, which are demands, beside graph.demands (demands=)"
            raise CaseError(f"{told}; one of them would be right")
        return demands or weights or alike(graph.n), None

    def _refuse_fixed(self) -> None:
        """Raises FixedNodesError where what is fixed leaves no choice."""
        inside = len(self.instance.inside)
        if inside > self.most:
            spent = f"{inside} nodes are to be facilities"
            raise FixedNodesError(f"{spent}, more than problem.budget = {self.most}")
        if self.graph.n and self.barred.all():
            raise FixedNodesError("no node may be a facility; one or more outside less would be right")

    def _refuse_apart(self) -> None:
        """Raises CaseError where facilities are too few for all parts of the graph."""
        sites = self.sites
        if sites.n and sites.least(self._begun).max() >= sites.far:
            lost = self.asked.customers[int(sites.least(self._begun).argmax())]
            found = f"no path leads from node {self.graph.called(int(lost))} to a facility"
            right = "more facilities (problem.budget), or a connected graph, would be right"
            raise CaseError(f"{self.graph.name}: {found}, with as many as may be; {right}")

    @cached_property
    def _begun(self) -> np.ndarray:
        """[m] bool, a quick choice; it has all customers where any choice has."""
        sites = self.sites
        found = [greedy(sites)] if self.kind != CENTER else [farthest_first(sites), greedy(sites)]
        if sites.n and not found[0].any():
            found[0][sites.cost.sum(axis=1).argmin()] = True
        return min(found, key=sites.value)

    # ---- core and instance ---------------------------------------------------------------------------------

    def lift(self, core_solution: np.ndarray) -> np.ndarray:
        """[n] bool, of a choice [m] of the sites."""
        solution = np.zeros(self.graph.n, dtype=bool)
        solution[self.asked.places[core_solution]] = True
        return solution

    def restrict(self, solution: np.ndarray) -> np.ndarray:
        """[m] bool, the solution where it is feasible; else what of it may be, as many as the number allows;
        where customers are lost by that, the start.
        """
        sites, chosen = self.sites, solution.astype(bool)[self.asked.places] | self.sites.forced
        spare = np.flatnonzero(chosen & ~sites.forced)[sites.most - int(sites.forced.sum()) :]
        chosen[spare] = False
        apart = sites.n > 0 and sites.least(chosen).max() >= sites.far
        return self.start() if apart else chosen

    def value(self, solution: np.ndarray) -> int:
        """What it is worth, by distances to all its facilities at once."""
        at, away = self.distances.nearest(solution)
        asked = self.asked
        costs = np.where(at[asked.customers] < 0, self.sites.far, 0)
        costs += np.maximum(away[asked.customers], 0) * asked.demand[asked.customers]
        if self.kind == CENTER:
            return int(costs.max(initial=0))
        return int(costs.sum()) + int(asked.opening[solution].sum())

    def fault(self, solution: np.ndarray) -> str | None:
        """What is no mask, fixed on the wrong side, too many, or leaves a customer without a path."""
        if (wrong := fault_of_set(self, solution)) is not None:
            return wrong
        count = int(np.count_nonzero(solution))
        if self.kind != UNCAPACITATED and count > self.most:
            return f"the {self.words} has {count} nodes, more than problem.budget = {self.most}"
        customers = self.asked.customers
        apart = customers[self.distances.nearest(solution)[0][customers] < 0]
        if len(apart):
            return f"no path leads from node {self.graph.called(int(apart[0]))} to a facility"
        return None

    def course(self, solution: np.ndarray, ids: np.ndarray) -> str:
        """A table of each node, its facility and the distance to it; the latter two empty: no path."""
        at, away = self.distances.nearest(solution)
        unit = Fraction(self.distances.unit)
        above, below = unit.numerator, unit.denominator
        if not named(ids) and (at >= 0).all():  # with nothing to be quoted or left out
            lines: list[Any] = [None] * (3 * len(at))
            lines[::3], lines[1::3] = ids.tolist(), ids[at].tolist()
            shown = (_shown(far * above, below) for far in away.tolist())
            lines[2::3] = away.tolist() if above == below == 1 else list(shown)
            return f"{OF_NODES}\n" + "%d,%d,%s\n" * len(at) % tuple(lines)
        names = plain_ids(ids)
        rows = io.StringIO()
        table = csv.writer(rows, lineterminator="\n")
        table.writerow(COLUMNS)
        for name, place, far in zip(names, at.tolist(), away.tolist()):
            table.writerow([name, *(("", "") if place < 0 else (names[place], _shown(far * above, below)))])
        return rows.getvalue()

    # ---- tools ---------------------------------------------------------------------------------------------

    @property
    def search_seconds(self) -> float:
        """An estimate of what sorting costs, and filling the sums, takes."""
        return PAIR_SECONDS * self.sites.m * self.sites.n

    def start(self) -> np.ndarray:
        """The greedy choice; of a centre the better one of that and the farthest first."""
        return self._begun.copy()

    def search(self, seed: int, start: np.ndarray) -> Search | None:
        """Interchanges; none where nobody needs anything."""
        if not self.sites.n:
            return None
        kind = CenterSearch if self.kind == CENTER else FacilitySearch
        return kind(self.sites, start, seed, self.instance.compiled)

    def bounds(self) -> Bounds | None:
        """Lagrangian duals, and cases."""
        kind = RadiusBounds if self.kind == CENTER else SumBounds
        return kind(self.sites, self._begun, self.instance.compiled)

    def prove(self, proof: FacilityBound) -> int:
        """Check the multipliers and the cases on distances, demands and costs."""
        proof.check(self.sites)
        return proof.lower

    def baselines(self) -> dict[str, Baseline]:
        """Plain choices of facilities."""
        rules = OF_RADII if self.kind == CENTER else OF_SUMS
        return {name: partial(self._plain, rule, label) for name, (rule, label) in rules.items()}

    def _plain(self, rule: Any, label: str) -> tuple[np.ndarray, str]:
        chosen = rule(self.sites)
        if self.sites.n and self.sites.least(chosen).max() >= self.sites.far:
            raise NoneFound(f"{label}: a customer has no path to a facility")
        return self.lift(chosen), label


def _shown(above: int, below: int) -> str:
    """A distance, a ratio of whole numbers, as it was given."""
    return f"{above / below:.12g}" if above % below else str(above // below)
