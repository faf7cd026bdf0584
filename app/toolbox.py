"""Toolbox: what a problem offers the solver for one whole instance, and the bases of its tools.

A class of tools inherits from one of the bases here: what is abstract it writes, everything else has a
default that stands for "there is none". The solver asks for nothing that is not named here.

A solution is an array [n], one entry per node: a mask of chosen nodes, the two sides of a cut, the order of a
tour, or the parents in a tree. Values are exact integers; `unit` turns them into objectives.
"""

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any

import numpy as np

from app.errors import CaseError, LockstepError
from app.graphs.graph import Graph

Look = Callable[[], bool]  # whether the time is up
Baseline = Callable[[], tuple[np.ndarray, str]]  # a solution, and the name to print beside its value

EXACT = "exact search"  # the source of what is found by an end that a clock has let come
NEAR = 0.01  # gap of a near bound
ALWAYS = 1 << 62  # steps


def _none() -> np.ndarray:
    return np.empty(0, dtype=np.int64)


CLOSING_SECONDS = 1e-7  # of what comes after a search, for each node and entry, about
LARGE = 1 << 20  # nodes and entries of a core of which making a search, or bounds, takes long
BEGIN_SECONDS = 1e-7  # of making either of such a core, for each node and entry, about


def never() -> bool:
    """The look of work that has no end but its own."""
    return False


@dataclass(frozen=True)
class Asked:
    """What problems are asked for: keys of [problem] by their names, of which each reads its own.

    null, resolution   of communities (app/graphs/quality.py)
    parts, imbalance   of balanced partitions (app/graphs/balance.py)
    component   what a component may have that dismantling leaves (app/graphs/sized.py)
    budget      what chosen sets may cost together, each one where costs are not given
    facility    which facilities are sought: median, center or uncapacitated (app/graphs/facility.py)
    eliminate   what elimination orders are judged by: width or fill
    arrange     what linear arrangements are judged by (app/graphs/arrangement.py)
    dense       which dense subgraphs are sought: average or size; size: of how many nodes
    """

    null: str = "degrees"
    resolution: float = 1.0
    parts: int = 2
    imbalance: float = 0.03
    component: float = 0.01
    budget: float = 10.0
    facility: str = "median"
    eliminate: str = "width"
    arrange: str = "length"
    dense: str = "average"
    size: int = 10

    @classmethod
    def of(cls, keys: Any) -> "Asked":
        """Of the table [problem] of a case."""
        return cls(**{each.name: getattr(keys, each.name) for each in fields(cls)})


@dataclass(frozen=True, eq=False)
class Beside:
    """What is given beside the graph of an instance, each of it to one problem.

    terminals   nodes that a Steiner tree has to hold, ascending
    prizes      [n] float32, what a Steiner tree loses of nodes that it leaves out; None: nothing
    heaviest    prizes are weights of any sign, and the connected subgraph that weighs most is sought
    deliveries  what vehicles deliver to the nodes (app/graphs/deliveries.py), for routes; None elsewhere
    demands     what nodes need (app/graphs/facility.py: Demands), for facilities; None: all one
    pairing     what the nodes are put on (app/graphs/pairing.py: Pairing); None elsewhere
    spreading   how news spreads (app/graphs/diffusion.py: Spreading), for influence; None: as by default
    """

    terminals: np.ndarray = field(default_factory=_none)
    prizes: np.ndarray | None = None
    heaviest: bool = False
    deliveries: Any = None
    demands: Any = None
    pairing: Any = None
    spreading: Any = None


NOTHING_ASKED, NOTHING_BESIDE = Asked(), Beside()  # beyond the defaults


@dataclass(frozen=True, eq=False)
class Instance:
    """One whole instance, the same on every rank.

    graph      all rows
    metric     distances between all pairs of nodes, for tours; None elsewhere
    inside     nodes that a user wants in the solution (of a cut: on side 1); outside: not in it (side 0)
    compiled   whether kernels may be used; the answers are equal
    whole_weights   [n] int64 node weights in a unit of a caller's, in the place of the graph's; or None
    most_bytes      what a graph that tools make of this one may take on a rank
    asked       what a problem is asked for
    beside      what is given beside the graph
    granted     what a solution is worth beside its nodes, where the graph is what is left of a larger one
    needed      [n] bool, nodes that a dominating set has to dominate; None: all
    known       nodes of a clique that is known: no answer is lighter
    whole_unit  that of whole_weights; of cuts, that of the graph's weights, which are whole numbers
    seconds     of a time limit, in which what takes too long is not made ready; infinite: there is none
    places      binary places of the unit of cut reductions; None: by the weights, and the core is the graph
                where nothing is reduced
    """

    graph: Graph
    metric: Any = None
    inside: np.ndarray = field(default_factory=_none)
    outside: np.ndarray = field(default_factory=_none)
    compiled: bool = True
    whole_weights: np.ndarray | None = None
    most_bytes: float = math.inf
    asked: Asked = NOTHING_ASKED
    beside: Beside = NOTHING_BESIDE
    granted: int = 0
    needed: np.ndarray | None = None
    known: np.ndarray = field(default_factory=_none)
    whole_unit: float = 1.0
    places: int | None = None
    seconds: float = math.inf

    def refuse_sides(self, problem: Any, why: str) -> None:
        """Raises CaseError where a user wants nodes in solutions or not; why none can be asked for."""
        if len(self.inside) or len(self.outside):
            raise CaseError(f"{problem.name}: {why}; leave search.inside and search.outside out")

    def misplaced(self, solution: np.ndarray) -> tuple[int, str] | None:
        """The first fixed node that a set [n] bool has on the wrong side, and where it is fixed; or None."""
        for nodes, side in ((self.inside, True), (self.outside, False)):
            lost = nodes[solution[nodes] != side] if len(nodes) else nodes
            if len(lost):
                return int(lost[0]), "inside" if side else "outside"
        return None


def rule_of(instance: Instance, rule: Callable[..., Any]) -> Baseline:
    """A plain heuristic of an instance's graph, without kernels where none may be used."""
    if "compiled" in inspect.signature(rule).parameters:
        return partial(rule, instance.graph, compiled=instance.compiled)
    return partial(rule, instance.graph)


class Search(ABC):
    """A local search from one seed: a function of the seed and the number of steps, however they are sliced.

    steps      made so far
    best       value of the best core solution
    found_at   the step at which it was found
    done       nothing better can exist

    even_steps      for how many more steps each costs about what the last ones did
    meeting_steps   the steps between two meetings, for a search that can use what others found; 0: none
    hears           whether it can go on from a solution that bounds have found
    plans           whether it fits its course to a time limit; planned: what it has made of that
    """

    steps: int
    best: int
    found_at: int
    done: bool
    even_steps: int = ALWAYS
    meeting_steps: int = 0
    hears: bool = False
    plans: bool = False
    planned: Sequence[int] = ()

    @abstractmethod
    def run(self, steps: int) -> None:
        """Make so many more steps, fewer only when done."""

    @abstractmethod
    def solution(self) -> np.ndarray:
        """The best core solution, a copy."""

    # ---- where it meets others (meeting_steps) -------------------------------------------------------------

    def join(self, searches: int) -> None:
        """Be one of so many searches, before the first step."""

    def news(self) -> np.ndarray:
        """[k, n] integers, what the others shall know."""
        return np.zeros((0, 0), dtype=np.int64)

    def meet(self, others: list[np.ndarray]) -> None:
        """The news of each of the others."""

    # ---- under a time limit (hears, plans) -----------------------------------------------------------------

    def hear(self, solution: np.ndarray) -> None:
        """A core solution that bounds have found."""

    def plan(self, planned: Sequence[int]) -> None:
        """Do again what another search has `planned`; empty: plan as `expect` leads to."""

    def expect(self, steps: int) -> None:
        """About so many steps are to come; told now and then."""


class Bounds(ABC):
    """Bounds on the value of every core solution, improved while there is time; each of them is valid.

    value           the best so far, rounded to what a solution can attain
    method          how it was found; "": no bound yet
    least_seconds   an estimate of the shortest call of `improve`, where it is long
    check_seconds   an estimate of what `verify` takes, where it is long
    closing         whether the work under way may prove a solution optimal, and gets time to
    near            the gap, over the bound, from which on it does
    gaining         whether the work under way may make the bound much better
    early           gaining bounds get their share at once: the searches plan a course over all of the time
                    that there is, and settle at its end alone
    leads           whether the bounds' work leads to the best solutions, or nearly
    """

    value: int
    method: str
    least_seconds: float = 0.0
    check_seconds: float = 0.0
    closing: bool = False
    near: float = NEAR
    gaining: bool = False
    early: bool = False
    leads: bool = False

    @abstractmethod
    def improve(self, seconds: float, best: int, solution: np.ndarray | None = None) -> bool:
        """Work for about so long, knowing that a core solution of value `best` exists, and maybe one.

        solution   of value at best `best`; where None, one given earlier stands
        returns    True while there is more to try
        """

    def expect(self, seconds: float) -> None:
        """Before the first call: the time limit of the run, in which what takes too long is not begun."""

    def until(self, clock: float) -> None:
        """After `expect`: when, by time.perf_counter(), all has to be over."""

    def allow(self, seconds: float) -> None:
        """Before the first call, where steps decide and no time limit: what all calls may take, or more."""

    def optimum(self) -> np.ndarray | None:
        """An optimal core solution, where the bounds' own search has found one."""
        return None

    def pieces(self) -> np.ndarray | None:
        """A core solution better than `best` of the last call of `improve`, put together from the best that
        is known of each part of the core; None: there is none.

        The same array until there is a better one.
        """
        return None

    def close(self) -> None:
        """No more calls of `improve` will come. What is known stays."""

    def proof(self) -> Any:
        """What the toolbox proves the bound from (`Toolbox.prove`), or as much of it as has a witness.

        It says by `checked` whether that is all of it: a finished search leaves nothing to check. None: the
        method leaves no witness at all.
        """
        return None


class Tree(ABC):
    """An exact search of the core that all ranks of a group do together, each its part.

    method             how its bounds are found
    more               whether there is more to search
    value              no core solution is better; the same on all ranks after `take`
    best               value of the best core solution that this rank knows
    left               roots of the tree that are open, and all
    units              what those are, for the log
    begin_seconds      an estimate of what `begin` takes
    forecast_seconds   and of what a call of `left_seconds` takes, about
    least_seconds      an estimate of the shortest call of `run`, where it is long
    closing            whether searches that have settled leave most of the time to it
    """

    method: str
    more: bool
    value: int
    best: int
    left: tuple[int, int]
    units: str = "roots"
    begin_seconds: float = 0.0
    forecast_seconds: float = 0.0
    least_seconds: float = 0.0
    closing: bool = False

    @abstractmethod
    def begin(self, best: int) -> None:
        """Make ready, knowing that a core solution of value `best` exists. Ranks: all, with the same."""

    @abstractmethod
    def run(self, seconds: float) -> None:
        """This rank's part, for about so long."""

    @abstractmethod
    def told(self) -> np.ndarray:
        """[k] int64, as many on all ranks: what `take` wants the element-wise maximum over ranks of."""

    @abstractmethod
    def take(self, words: np.ndarray, best: int) -> None:
        """What all ranks have told, and the value of the best core solution that any of them knows."""

    @abstractmethod
    def solution(self) -> np.ndarray | None:
        """A core solution of value `best` that this rank's part has found; None where it has none."""

    def left_seconds(self) -> float:
        """About how long all ranks together will need; infinite where none can tell. Ranks: all call."""
        return math.inf

    def hurry(self, wanted: bool) -> None:
        """Whether the end is in sight: nothing that is begun is put off then."""


class Peeler(ABC):
    """A core solution in the making: a policy chooses nodes of what is left, reductions do the rest."""

    @property
    @abstractmethod
    def rest(self) -> Graph | None:
        """What is left to decide, renumbered; None when the solution is complete."""

    @abstractmethod
    def take(self, nodes: np.ndarray) -> None:
        """Choose nodes of `rest` [k], best first; what follows from that is decided too."""

    @abstractmethod
    def solution(self) -> np.ndarray:
        """A complete core solution: what is left to decide is decided greedily."""


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
