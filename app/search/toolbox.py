"""Toolbox: what a problem offers the solver for one whole instance, and the protocols of its tools.

A solution is an array [n], one entry per node: a mask of chosen nodes, the two sides of a cut, or the order
of a tour. Values are exact integers; `unit` turns them into objectives.
"""

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import numpy as np

from app.graphs.graph import Graph

Baseline = Callable[[], tuple[np.ndarray, str]]  # a solution, and the name to print beside its value


def _none() -> np.ndarray:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Instance:
    """One whole instance, the same on every rank.

    graph      all rows
    metric     distances between all pairs of nodes, for tours; None elsewhere
    inside     nodes that a user wants in the solution (of a cut: on side 1); outside: not in it (side 0)
    compiled   whether kernels may be used; the answers are equal
    whole_weights   [n] int64 node weights in units of a caller, in the place of the graph's; or None
    most_bytes      what a graph that tools make of this one may take on a rank
    """

    graph: Graph
    metric: Any = None
    inside: np.ndarray = field(default_factory=_none)
    outside: np.ndarray = field(default_factory=_none)
    compiled: bool = True
    whole_weights: np.ndarray | None = None
    most_bytes: float = math.inf


def rule_of(instance: Instance, rule: Callable[..., Any]) -> Baseline:
    """A plain heuristic of an instance's graph, without kernels where none may be used."""
    if "compiled" in inspect.signature(rule).parameters:
        return partial(rule, instance.graph, compiled=instance.compiled)
    return partial(rule, instance.graph)


class Search(Protocol):
    """A local search from one seed: a function of the seed and the number of steps, however they are sliced.

    steps      made so far
    best       value of the best core solution
    found_at   the step at which it was found
    done       nothing better can exist

    One whose steps do not all cost about the same may have `even_steps`, for how many more they do.

    One that can use what others found also has `meeting_steps`, the steps between two meetings, join(count)
    for the number of searches, news() -> [k, n] integers to tell, meet(others) with the news of the others.

    One that can go on from a solution that bounds have found has hear(solution); only under a time limit.

    One that may fit its course to a time limit has expect(steps), told now and then how many are to come, and
    the list `planned` of what it made of that, which plan(planned) has another search do again.
    """

    steps: int
    best: int
    found_at: int
    done: bool

    def run(self, steps: int) -> None:
        """Make so many more steps, fewer only when done."""
        ...

    def solution(self) -> np.ndarray:
        """The best core solution, a copy."""
        ...


class Bounds(Protocol):
    """Bounds on the value of every core solution, improved while there is time; each of them is valid.

    value           the best so far, rounded to what a solution can attain
    method          how it was found; "": no bound yet
    least_seconds   an estimate of the shortest call of `improve`, where it is long
    check_seconds   an estimate of what `verify` takes
    closing         whether the work under way may prove a solution optimal, and gets time to; may be missing
    leads           whether the bounds' work leads to the best solutions, or nearly; may be missing
    near            the gap, over the bound, from which on it does; may be missing: a hundredth
    """

    value: int
    method: str
    least_seconds: float
    check_seconds: float

    def expect(self, seconds: float) -> None:
        """Before the first call: the time limit of the run, in which what takes too long is not begun."""
        ...

    def improve(self, seconds: float, best: int, solution: np.ndarray | None = None) -> bool:
        """Work for about so long, knowing that a core solution of value `best` exists, and maybe one.

        solution   of value at best `best`; where None, one given earlier stands
        returns    True while there is more to try
        """
        ...

    def optimum(self) -> np.ndarray | None:
        """An optimal core solution, where the bounds' own search has found one."""
        ...

    def pieces(self) -> np.ndarray | None:
        """A core solution better than `best` of the last call of `improve`, put together from the best that
        is known of each part of the core; None: there is none. May be missing.

        The same array until there is a better one.
        """
        ...

    def close(self) -> None:
        """No more calls of `improve` will come; may be missing. What is known stays."""
        ...

    def verify(self) -> bool:
        """Prove the bound from its witness by independent code; raises BadCertificate.

        returns   False where the method leaves no witness to check
        """
        ...


class Tree(Protocol):
    """An exact search of the core that all ranks of a group do together, each its part.

    method             how its bounds are found
    begin_seconds      an estimate of what `begin` takes
    forecast_seconds   and of what a call of `left_seconds` takes, about
    more               whether there is more to search
    value              no core solution is better; the same on all ranks after `take`
    best               value of the best core solution that this rank knows
    left               roots of the tree that are open, and all
    units              what those are, for the log; may be missing: "roots"
    least_seconds      an estimate of the shortest call of `run`, where it is long; may be missing
    closing            whether searches that have settled leave most of the time to it; may be missing
    """

    method: str
    begin_seconds: float
    forecast_seconds: float
    more: bool
    value: int
    best: int
    left: tuple[int, int]

    def begin(self, best: int) -> None:
        """Make ready, knowing that a core solution of value `best` exists. Ranks: all, with the same."""
        ...

    def run(self, seconds: float) -> None:
        """This rank's part, for about so long."""
        ...

    def told(self) -> np.ndarray:
        """[k] int64, as many on all ranks: what `take` wants the element-wise maximum over ranks of."""
        ...

    def take(self, words: np.ndarray, best: int) -> None:
        """What all ranks have told, and the value of the best core solution that any of them knows."""
        ...

    def left_seconds(self) -> float:
        """About how long all ranks together will need; infinite where none can tell. Ranks: all call."""
        ...

    def hurry(self, wanted: bool) -> None:
        """Whether the end is in sight: nothing that is begun is put off then."""
        ...

    def solution(self) -> np.ndarray | None:
        """A core solution of value `best` that this rank's part has found; None where it has none."""
        ...


class Peeler(Protocol):
    """A core solution in the making: a policy chooses nodes of what is left, reductions do the rest."""

    @property
    def rest(self) -> Graph | None:
        """What is left to decide, renumbered; None when the solution is complete."""
        ...

    def take(self, nodes: np.ndarray) -> None:
        """Choose nodes of `rest` [k], best first; what follows from that is decided too."""
        ...

    def solution(self) -> np.ndarray:
        """A complete core solution: what is left to decide is decided greedily."""
        ...


class Toolbox(Protocol):
    """What a problem offers for one instance.

    A solve reduces the instance to a core, searches and bounds the core, and lifts core solutions back.

    sense       "minimise" or "maximise"
    unit        objective = value * unit
    words       what a solution is called: "cover", "cut", "tour"
    core        what reductions leave, as a graph; no nodes: reductions have solved the instance
    core_minimises   whether smaller core values are better
    peels            whether there is a peeler
    metric           distances between all nodes, or None
    usual_steps      of a search where a case sets no limit: about a second on small instances
    left_out         baselines that the instance is too large for, for the log; may be missing
    unasked          why the policy is not asked about the core, for the log, "" where it is; may be missing
    bounds_find      what the source of solutions that bounds find is called; may be missing
    bounds_follow    whether bounds on a rank without a search want to see the best solutions; may be missing
    hopeless_seconds an estimate of what `reduce` takes where it is likely to find nothing; else 0
    reduce_seconds   an estimate of what `reduce` takes, where it may be too long; may be missing
    marks            [k] int32, of a policy's first state on the core; None: a fresh state; may be missing
    """

    sense: str
    unit: float
    words: str
    core: Graph
    core_minimises: bool
    usual_steps: int
    hopeless_seconds: float
    metric: Any
    peels: bool

    @property
    def reduction_steps(self) -> int:
        """The work of `reduce` so far; 0 where that is all or nothing."""
        ...

    def reduce(self, look: Callable[[], Any], most: int = 0) -> str:
        """Replace the core by what exact reductions leave of it; returns a line for the log, "" for none.

        look   called every now and then, after the same work on all ranks; where it is true the time is up:
               what has been reduced by then counts, or the core is left as it is
        most   end when reduction_steps are so many; 0: as many as there are
        """
        ...

    def lift(self, core_solution: np.ndarray) -> np.ndarray:
        """The solution of the instance that a core solution stands for."""
        ...

    def restrict(self, solution: np.ndarray) -> np.ndarray:
        """A core solution that follows a solution of the instance as far as it can."""
        ...

    def value_of_core(self, value: int) -> int:
        """The instance's value (or bound) for a core value (or core bound)."""
        ...

    def value(self, solution: np.ndarray) -> int:
        """The exact value of a solution of the instance."""
        ...

    def fault(self, solution: np.ndarray) -> str | None:
        """What makes a solution infeasible, found by independent code; None where it is feasible."""
        ...

    def start(self) -> np.ndarray:
        """A quick core solution without learning."""
        ...

    def peeler(self) -> Peeler:
        """Reduce and peel on the core, where the problem has reductions (`peels`)."""
        ...

    def search(self, seed: int, start: np.ndarray) -> Search | None:
        """A local search on the core from a core solution; None where the problem has none."""
        ...

    def bounds(self) -> Bounds | None:
        """Bounds on the core; None where the problem has none."""
        ...

    def tree(self, rank: int, ranks: int) -> Tree | None:
        """The exact search of the core that ranks share, or None; may be missing. Asked for before `bounds`,
        which then do without one.
        """
        ...

    def baselines(self) -> dict[str, Baseline]:
        """The plain heuristics by name, on the whole instance."""
        ...
