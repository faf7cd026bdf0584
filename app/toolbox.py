"""Toolbox: what a problem offers the solver for one whole instance.

A class of tools inherits from one of the bases here and in app/tools.py: what is abstract it writes,
everything else has a default that stands for "there is none". The solver asks for nothing that is not named
there. Who works with toolboxes imports from here, the names of app/tools.py and app/instance.py too.

A solution is an array [n], one entry per node: a mask of chosen nodes, the two sides of a cut, the order of a
tour, or the parents in a tree. Values are exact integers; `unit` turns them into objectives.
"""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any

import numpy as np

from app.errors import LockstepError
from app.graphs.graph import Graph
from app.instance import Asked, Beside, Instance
from app.tools import ALWAYS, NEAR, Bounds, Peeler, Search, Tree

__all__ = [
    "ALWAYS", "EXACT", "LARGE", "NEAR", "Asked", "Baseline", "Beside", "Bounds", "Instance", "Look", "Peeler",
    "Search", "Toolbox", "Tree", "never", "rule_of", "verified",
]  # fmt: skip

Look = Callable[[], bool]  # whether the time is up
Baseline = Callable[[], tuple[np.ndarray, str]]  # a solution, and the name to print beside its value

EXACT = "exact search"  # the source of what is found by an end that a clock has let come
CLOSING_SECONDS = 1e-7  # of what comes after a search, for each node and entry, about
LARGE = 1 << 20  # nodes and entries of a core of which making a search, or bounds, takes long
BEGIN_SECONDS = 1e-7  # of making either of such a core, for each node and entry, about


def never() -> bool:
    """The look of work that has no end but its own."""
    return False


def rule_of(instance: Instance, rule: Callable[..., Any]) -> Baseline:
    """A plain heuristic of an instance's graph, without kernels where none may be used."""
    if "compiled" in inspect.signature(rule).parameters:
        return partial(rule, instance.graph, compiled=instance.compiled)
    return partial(rule, instance.graph)


class Toolbox(ABC):
    """What a problem offers for one instance: at least a first solution, and what a solution is worth.

    A solve reduces the instance to a core, searches and bounds the core, and lifts core solutions back. Here
    the core is the instance: a class with reductions puts another graph in the place of `core`, and writes
    `reduce`, `lift`, `restrict`, `value_of_core` and `core_value`.

    sense       "minimise" or "maximise"
    words       what a solution is called: "cover", "cut", "tour", "tree"
    core        what reductions leave, as a graph; no nodes: reductions have solved the instance
    unit        objective = value * unit
    weights     whole numbers in units of which values are sums, or None: objectives have their decimals
    metric      distances between all nodes, or None
    usual_steps      of a search where a case sets no limit: about a second on small instances
    first_steps      of a search in the first round, before anything was timed
    reduction_steps  the work of `reduce` so far; 0 where that is all or nothing
    hopeless_seconds an estimate of what `reduce` takes where it is likely to find nothing; else 0
    reduce_seconds   an estimate of what `reduce` takes, where it may be too long
    reduce_share     of what a time limit has left: reductions that take longer by that are left out
    start_share      of what a time limit has left, after which `look` of a start is true
    search_seconds   an estimate of what making a search takes, where it is long: a limit has to leave more
    bounds_seconds   an estimate of what making bounds takes, where it is long: likewise
    instance         the whole one
    baseline_seconds estimates of what plain heuristics take, by name, of those that take long
    baseline_costs   the same for each node and entry of the graph
    curve_seconds    an estimate of what `curve` takes
    peels            whether there is a peeler
    unasked          why the policy is not asked about the core, for the log; "": it is
    remark           what the log warns of before anything else, of the instance as it is; "": nothing
    marks            [k] int32, of a policy's first state on the core; None: a fresh state
    core_weights     [k] int64 of the core's nodes, where a peeler chooses by weight; None: all one
    bounds_find      what the source of solutions that bounds find is called
    bounds_follow    whether bounds on a rank without a search want to see the best solutions
    text             the file of a solution, and its objective, where that takes the instance; None: the
                     problem writes it; read: a solution from a file, likewise
    course           the table of what a solution does, step by step or node by node, for a file, by the ids
                     that files have; None: it has none
    curve            how the graph falls as a solution is done, [n + 1] integers; None: not asked for
    unready          for want of time the start is the quickest, and maybe there is no search
    left_out         baselines that the instance is too large for, for the log
    confidence       the probability with which bounds hold; below one none of them is proved
    look             asked now and then in starts and baselines that take long, after the same work on all
                     ranks: where it is true they end with what they have, or raise NoneFound
    stops            whether the run was asked to stop, for what bounds take long to begin with
    """

    sense: str
    words: str
    instance: Instance
    core: Graph
    unit: float = 1.0
    weights: np.ndarray | None = None
    metric: Any = None
    usual_steps: int = 10_000
    first_steps: int = 16
    reduction_steps: int = 0
    hopeless_seconds: float = 0.0
    reduce_seconds: float = 0.0
    reduce_share: float = 0.3
    start_share: float = 1.0
    baseline_seconds: Mapping[str, float] = MappingProxyType({})
    baseline_costs: Mapping[str, float] = MappingProxyType({})
    curve_seconds: float = 0.0
    peels: bool = False
    unasked: str = ""
    remark: str = ""
    marks: np.ndarray | None = None
    core_weights: np.ndarray | None = None
    bounds_find: str = EXACT
    bounds_follow: bool = False
    text: Callable[[np.ndarray, float | int], str] | None = None
    read: Callable[[str], np.ndarray] | None = None
    course: Callable[[np.ndarray, np.ndarray], str] | None = None
    curve: Callable[[np.ndarray], np.ndarray] | None = None
    unready: bool = False
    left_out: str = ""
    confidence: float = 1.0
    look: Look = staticmethod(never)
    stops: Look = staticmethod(never)

    @contextmanager
    def watched(self, look: Look) -> Iterator[None]:
        """While this lasts, starts and baselines ask this `look`."""
        self.look = look
        try:
            yield
        finally:
            del self.look

    def improves(self, value: int, than: int) -> bool:
        """Whether a value of the instance is better than another."""
        return value < than if self.sense == "minimise" else value > than

    @property
    def closing_seconds(self) -> float:
        """An estimate of what is made of an answer after the search: a check, a file."""
        return CLOSING_SECONDS * self._size

    def seconds_of(self, baseline: str) -> float:
        """An estimate of what a plain heuristic takes, by its name."""
        known = self.baseline_seconds.get(baseline)
        return self.baseline_costs.get(baseline, 0.0) * self._size if known is None else known

    @cached_property  # asked for once, of what reductions have left
    def search_seconds(self) -> float:
        """Most searches begin with lists of the core, and with what a start has of them."""
        return self._begin_seconds

    @cached_property
    def bounds_seconds(self) -> float:
        """Most bounds begin with the components of the core, and copies of them."""
        return self._begin_seconds

    @property
    def _begin_seconds(self) -> float:
        size = self.core.n + len(self.core.indices)
        return BEGIN_SECONDS * size if size >= LARGE else 0.0

    @property
    def _size(self) -> int:
        """Nodes and entries of the graph."""
        graph = self.instance.graph
        return graph.n + len(graph.indices)

    # ---- core and instance ---------------------------------------------------------------------------------

    @property
    def core_minimises(self) -> bool:
        """Whether smaller core values are better."""
        return self.sense == "minimise"

    def reduce(self, look: Callable[[], Any], most: int = 0) -> str:
        """Replace the core by what exact reductions leave of it; returns a line for the log, "" for none.

        look   called every now and then, after the same work on all ranks; where it is true the time is up:
               what has been reduced by then counts, or the core is left as it is
        most   end when reduction_steps are so many; 0: as many as there are
        """
        return ""

    def lift(self, core_solution: np.ndarray) -> np.ndarray:
        """The solution of the instance that a core solution stands for."""
        return core_solution

    def restrict(self, solution: np.ndarray) -> np.ndarray:
        """A core solution that follows a solution of the instance as far as it can."""
        return solution

    @property
    def shown(self) -> Graph:
        """The graph that a policy's own rollout is on: the core, or what stands for one not simple."""
        return self.core

    @property
    def played(self) -> Any:
        """The problem whose states a policy sees on `shown`; None: that of the instance."""
        return None

    def told(self, solution: np.ndarray) -> np.ndarray:
        """The core solution that a policy's solution on `shown` stands for."""
        return solution

    def value_of_core(self, value: int) -> int:
        """The instance's value (or bound) for a core value (or core bound)."""
        return value

    def core_value(self, value: int) -> int:
        """The inverse of value_of_core."""
        return value

    def as_solution(self, numbers: np.ndarray) -> np.ndarray:
        """A core solution that travelled between ranks as integers [n]: a mask."""
        return numbers.astype(bool)

    @abstractmethod
    def value(self, solution: np.ndarray) -> int:
        """The exact value of a solution of the instance."""

    def split(self, solution: np.ndarray) -> dict[str, int]:
        """The parts that the value is the sum of, by name; none: it is one thing."""
        return {}

    def counts(self, solution: np.ndarray) -> dict[str, int]:
        """What is counted beside the value, by name; none: nothing is."""
        return {}

    def measures(self, solution: np.ndarray) -> dict[str, float | int]:
        """Other objectives of the same solutions, by name, as they are told; none: there are none."""
        return {}

    @abstractmethod
    def fault(self, solution: np.ndarray) -> str | None:
        """What makes a solution infeasible, found by independent code; None where it is feasible."""

    def untrue(self, path: str, solution: np.ndarray) -> str | None:
        """What a file says of its feasible solution that is not so; None: nothing. Raises GraphError."""
        return None

    # ---- tools ---------------------------------------------------------------------------------------------

    def surely(self, solution: np.ndarray, value: int) -> int:
        """What a solution of a value is worth at least, where values are estimates."""
        return value

    def prove(self, proof: Any) -> int:
        """The bound of the instance that a proof shows, by code that has no part in finding bounds.

        Nothing in a proof is trusted. Raises BadCertificate, or BadReduction, where it proves nothing.
        """
        raise NotImplementedError

    @abstractmethod
    def start(self) -> np.ndarray:
        """A quick core solution without learning."""

    def peeler(self) -> Peeler:
        """Reduce and peel on the core; asked for only where the toolbox `peels`."""
        raise NotImplementedError

    def search(self, seed: int, start: np.ndarray) -> Search | None:
        """A local search on the core from a core solution; None: there is none."""
        return None

    def bounds(self) -> Bounds | None:
        """Bounds on the core; None: there are none."""
        return None

    def tree(self, rank: int, ranks: int) -> Tree | None:
        """The exact search of the core that ranks share, or None. Asked for before `bounds`, which then do
        without one.
        """
        return None

    def baselines(self) -> dict[str, Baseline]:
        """The plain heuristics by name, on the whole instance."""
        return {}


def verified(toolbox: Toolbox, bounds: Bounds) -> bool:
    """Whether all of a bound is proved again from its witness; raises LockstepError where it should be."""
    proof = bounds.proof()
    if proof is None:
        return False
    proved, said = toolbox.prove(proof), toolbox.value_of_core(bounds.value)
    if proved >= said if toolbox.sense == "minimise" else proved <= said:
        return True
    if proof.checked:
        raise LockstepError(f"{bounds.method}: the witness proves {proved}, the bound says {said}")
    return False
