"""The toolbox of quadratic assignment and graph alignment: plain assignments, searches, bounds."""

from functools import partial
from typing import Any, ClassVar

import numpy as np

from app.bounds.assignment.bounds import AssignmentBounds
from app.bounds.assignment.witness import AssignmentBound
from app.bounds.feasible import fault_of_mapping
from app.errors import CaseError
from app.graphs.pairing import Pairing, mapping_of, permutation_of
from app.search.assignment.baselines import (
    BASELINES,
    MOST_PROFILES,
    by_degree,
    by_profiles,
    by_refinement,
    faq,
    faq_fits,
    greedy,
)
from app.search.assignment.search import TabuSearch, WalkSearch, is_tabled
from app.search.assignment.text import mapping_text, read_mapping
from app.toolbox import Baseline, Bounds, Instance, Search, Toolbox


class AssignmentTools(Toolbox):
    """Mappings of the nodes of one graph to those of another; a solution is [n] int64 (graphs/pairing.py).

    A core solution is [k] int64, a permutation of what seeds leave; its value is a cost of the Quadratic.
    """

    bounds_follow = True
    start_share = 0.3
    baseline_costs: ClassVar = {"order": 5e-8, "degree": 2e-7, "refinement": 4e-7}

    def __init__(self, instance: Instance, problem: Any) -> None:
        if len(instance.inside) or len(instance.outside):
            right = "graph.seeds (seeds=) names known pairs; leave them out"
            raise CaseError(f"search.inside, search.outside: {problem.name} maps every node; {right}")
        self.instance, self.problem = instance, problem
        self.graph = self.core = instance.graph
        self.sense, self.words = problem.sense, problem.solution
        self.asked: Pairing = instance.beside.pairing
        self.quadratic = self.asked.core
        self.read = self._read
        unit = self.asked.unit
        self.unit = int(unit) if unit.denominator == 1 else float(unit)

    @property
    def usual_steps(self) -> int:
        """Of a search where a case sets no limit."""
        k = self.quadratic.k
        return max(200, 40_000_000 // max(k * k, 1)) if is_tabled(self.quadratic) else 20_000 + 20 * k

    # ---- core and instance ---------------------------------------------------------------------------------

    @property
    def core_minimises(self) -> bool:
        """Costs are small where mappings are good."""
        return True

    def value_of_core(self, value: int) -> int:
        """A value, or its bound, for a cost; costs are multiples of the scale."""
        least = -(-value // self.quadratic.scale)
        return -least if self.asked.maximise else least

    def core_value(self, value: int) -> int:
        """The inverse of value_of_core."""
        return (-value if self.asked.maximise else value) * self.quadratic.scale

    def lift(self, core_solution: np.ndarray) -> np.ndarray:
        """The mapping of a permutation of the core."""
        return mapping_of(self.quadratic, core_solution, self.asked.seeds, self.asked.m)

    def restrict(self, solution: np.ndarray) -> np.ndarray:
        """A permutation of the core that follows a mapping, repaired where that is none."""
        return permutation_of(self.quadratic, solution, self.asked.n)

    def as_solution(self, numbers: np.ndarray) -> np.ndarray:
        """Places as they are."""
        return numbers

    def value(self, solution: np.ndarray) -> int:
        """What a mapping is worth, summed over the entries of both graphs."""
        return self.asked.value(solution)

    def counts(self, solution: np.ndarray) -> dict[str, int]:
        """How many edges of the first graph are on edges of the second, and how many are not."""
        if not self.asked.maximise:
            return {}
        kept, edges = self.asked.kept(solution)
        return {"edges_kept": kept, "edges_lost": edges - kept}

    def fault(self, solution: np.ndarray) -> str | None:
        """What is no mapping, a place taken twice, left empty, or another than a seed's."""
        wrong = self.problem.violation(self.graph, solution)
        return f"the {self.words} {wrong}" if wrong else fault_of_mapping(self.graph, self.asked, solution)

    # ---- files ---------------------------------------------------------------------------------------------

    def text(self, solution: np.ndarray, objective: float | int) -> str:
        """The lines of its file."""
        return mapping_text(solution, self.asked.ids, self.asked.others)

    def _read(self, path: str) -> np.ndarray:
        return read_mapping(path, self.asked.ids, self.asked.others)

    # ---- tools ---------------------------------------------------------------------------------------------

    def start(self) -> np.ndarray:
        """The best of the plain assignments that are soon made."""
        core = self.quadratic
        found = [by_profiles(core) if core.k <= MOST_PROFILES else by_degree(core)]
        if core.k > MOST_PROFILES and not self.look():
            found.append(by_refinement(core))
        found += [greedy(core)] if core.linear.nnz else []
        for near in (*found, None) if faq_fits(core) else ():
            if self.look():
                break
            found.append(faq(core, self.look, near))
        return min(found, key=core.cost) if len(found) > 1 else found[0]

    def search(self, seed: int, start: np.ndarray) -> Search | None:
        """Tabu search, or on large sparse graphs annealing; none where nothing is left to choose."""
        if self.quadratic.k < 2:
            return None
        kind = TabuSearch if is_tabled(self.quadratic) else WalkSearch
        return kind(self.quadratic, start, seed, self.instance.compiled)

    def bounds(self) -> Bounds | None:
        """Degrees, Gilmore and Lawler, dual ascent, cases."""
        return AssignmentBounds(self.quadratic, self.instance.compiled, self.instance.most_bytes)

    def prove(self, proof: AssignmentBound) -> int:
        """Check the multipliers on both graphs."""
        proof.check(self.quadratic)
        return self.value_of_core(proof.lower)

    @property
    def left_out(self) -> str:
        """What takes too long on large instances."""
        return ", ".join(name for name in ("profiles", "faq", "profiles_faq") if not self._fits(name))

    def _fits(self, name: str) -> bool:
        faqs = dict.fromkeys(("faq", "profiles_faq"), faq_fits(self.quadratic))
        fits = {"profiles": self.quadratic.k <= MOST_PROFILES, **faqs}
        return fits.get(name, True) and (name != "greedy" or bool(self.quadratic.linear.nnz))

    def baselines(self) -> dict[str, Baseline]:
        """The plain assignments by name."""
        return {
            name: partial(self._made_by, rule, label)
            for name, (rule, label) in BASELINES.items()
            if self._fits(name)
        }

    def _made_by(self, rule: Any, label: str) -> tuple[np.ndarray, str]:
        return self.lift(rule(self.quadratic, self.look)), label
