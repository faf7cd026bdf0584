"""Baselines and bounds of whole graphs, dealt out to the ranks: the work that row partitions cannot share."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from app.case.config import Case
from app.case.search import STARTS
from app.comm.group import Group
from app.comm.guard import raise_together
from app.comm.turns import only_this_rank
from app.errors import CaseError, LockstepError, NoneFound
from app.graphs.graph import Graph
from app.model.memory import whole_graph as whole_graph_bytes
from app.partition.loaded import Loaded
from app.partition.whole import whole_of
from app.problems.problem import Problem
from app.problems.table import ROUTES, UNTRAINED, not_alone, problem_of
from app.proofs.archive import certificate_of
from app.search.tour.tools import refuse_without_distances
from app.tasks.context import Context
from app.text import show
from app.toolbox import Asked, Baseline, Bounds, Instance, Toolbox, verified

ROUNDED_MB = 100  # from which on what a graph needs is told in whole ones
BASELINE_SHARE, LEAST_SECONDS = 0.1, 0.25  # of a time limit, that baselines may overrun it by; s, at least


def graph_bytes(loaded: Loaded) -> int:
    """Bytes that whole-graph work takes on one rank."""
    return whole_graph_bytes(loaded.graph.n, loaded.graph.edges)


def too_large(context: Context, loaded: Loaded) -> bool:
    """Whether the whole graph is beyond the memory limit."""
    return not holds(context, graph_bytes(loaded))


def spatial_of(context: Context, graphs: list[Loaded]) -> int:
    """parallel.spatial; where it lets ranks hold graphs that are too large for one, the ranks there are."""
    wanted, size = context.case.parallel.spatial, context.group.size
    return size if wanted < 2 and any(too_large(context, loaded) for loaded in graphs) else wanted


def holds(context: Context, nbytes: int) -> bool:
    """Whether a rank may take so many bytes for work on a whole graph."""
    return nbytes <= context.case.memory.whole_graph_mb * 1e6


def words_of_need(context: Context, nbytes: int) -> str:
    """What work on a whole graph takes, beside what it may take."""
    limit, need = context.case.memory.whole_graph_mb, nbytes / 1e6
    needs = f"{need:.0f}" if need >= ROUNDED_MB else f"{need:.3g}"
    return f"it needs {needs} MB on one rank, memory.whole_graph_mb is {limit:g}"


def tell_too_large(context: Context, loaded: Loaded, rest: int | None = None, by: str = "the policy") -> None:
    """Say that the policy alone answers, or what else, and what would be needed; rest: bytes for what
    reductions leave.
    """
    without = "reductions, search and bounds" if rest is None else "search and bounds"
    without = without if by == "the policy" else "search"
    needs = words_of_need(context, graph_bytes(loaded) if rest is None else rest)
    context.log.info("%s: %s alone, without %s: %s", loaded.graph.name, by, without, needs)


def refuse_unfit(context: Context, problem: Problem, loaded: Loaded) -> None:
    """Refuse a graph that the problem, or the way it is solved, is not for. Raises CaseError on all ranks."""
    if problem.dynamics == "tour" or problem.solution == ROUTES:
        refuse_without_distances(loaded.graph.name, loaded.metric)
        if context.case.graph.complement:
            raise CaseError(
                f"graph.complement: {problem.name} is of distances between all nodes; false would be right"
            )
    if problem.name in UNTRAINED and (too_large(context, loaded) or context.case.search.solver == "policy"):
        right = f"memory.whole_graph_mb = {math.ceil(graph_bytes(loaded) / 1e6)}"
        right = right if too_large(context, loaded) else 'search.solver = "full"'
        name = context.case.problem.name
        raise CaseError(f"{name}: {not_alone(name)}; {right} would be right")
    _refuse_fixed(context, loaded)


def _refuse_fixed(context: Context, loaded: Loaded) -> None:
    """Refuse nodes that are to be in the solution, or not, where the policy alone would choose: it holds to
    none.
    """
    search, large = context.case.search, too_large(context, loaded)
    if not large and search.solver != "policy":
        return
    right = 'search.solver = "full" would be right'
    if large:
        wanted = f"memory.whole_graph_mb = {math.ceil(graph_bytes(loaded) / 1e6)}"
        right = f"{loaded.graph.name} is left to it: {wanted} would be right"
    if search.start not in STARTS or loaded.start is not None:
        key = "search.start" if loaded.start is None else "start"
        raise CaseError(f"{key}: the policy alone begins with no solution; {right}")
    for key, nodes in (("inside", loaded.inside), ("outside", loaded.outside)):
        named = f"search.{key}" if getattr(search, key) else key
        if named != key or (nodes is not None and len(nodes)):
            raise CaseError(f"{named}: the policy alone holds to no fixed nodes; {right}")


def whole_graph(context: Context, loaded: Loaded) -> Graph | None:
    """The whole graph on every rank, or None with a message beyond the memory limit. Ranks: all call."""
    if too_large(context, loaded):
        tell_too_large(context, loaded)
        return None
    return whole_of(context.group, loaded)


class Rival(NamedTuple):
    """What an answer is compared with: who found it, its value, and the solution, which is asked for late."""

    source: str
    value: int
    solution: Callable[[], np.ndarray]


@dataclass(frozen=True)
class Compared:
    """What plain heuristics have found.

    values   by label, of those that began
    name     the best one's, of equal ones the first; "": none began
    label, value   its own
    curves   by label, where they are asked for and solutions have them (Toolbox.curve)
    owner    the rank that ran it; held: on that rank, its solution
    """

    values: dict[str, int]
    name: str = ""
    label: str = ""
    value: int = 0
    owner: int = 0
    held: np.ndarray | None = None
    curves: dict[str, np.ndarray] = field(default_factory=dict)

    def rival(self, group: Group, toolbox: Toolbox) -> Rival | None:
        """The best one; None: none began. Its solution: all ranks call."""
        if not self.name:
            return None
        return Rival(self.label, self.value, partial(self._everywhere, group, toolbox))

    def _everywhere(self, group: Group, toolbox: Toolbox) -> np.ndarray:
        """The best one's solution. Ranks: all call."""
        held = self.held if group.rank == self.owner else np.zeros(0, dtype=np.int64)
        numbers = np.zeros(group.max_integer(len(held)), dtype=np.int64)
        numbers[: len(held)] = held
        return toolbox.as_solution(group.broadcast(numbers, self.owner))


def compare(
    context: Context, toolbox: Toolbox, name: str, seconds: float = math.inf, drawn: bool = False
) -> Compared:
    """The plain heuristics, each checked. Ranks: all call, each does a share.

    seconds   none begins after so many, nor what would take longer, and those that look at the clock end
    drawn     their curves are asked for
    """
    group, named = context.group, heuristics(context.case, toolbox)
    names = list(named)
    if toolbox.left_out:
        context.log.info("%s: too large for the baselines %s", name, toolbox.left_out)
    curve = toolbox.curve if drawn else None
    values, labels, held, mine = _my_share(context, toolbox, named, name, seconds, curve)
    values = group.sum_integers(values)
    labels = [group.broadcast_text(label, i % group.size) for i, label in enumerate(labels)]
    unmade = [each for each, label in zip(names, labels) if not label]
    if unmade:
        context.log.info("%s: nothing in their time by the baselines %s", name, ", ".join(unmade))
    begun = [i for i, label in enumerate(labels) if label]
    told = {labels[i]: int(values[i]) for i in begun}
    if not begun:
        return Compared(told)
    curves = {} if curve is None else _curves_everywhere(group, toolbox, labels, mine)
    best = begun[0]
    for i in begun[1:]:
        best = i if toolbox.improves(int(values[i]), int(values[best])) else best
    return Compared(told, names[best], labels[best], int(values[best]), best % group.size, held, curves)


def _curves_everywhere(
    group: Group, toolbox: Toolbox, labels: list[str], mine: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """The curves by label that some rank has made, on all. Ranks: all call.

    labels   of the heuristics by number, "" of those that were not made
    """
    made = group.sum_integers(np.array([label in mine for label in labels], dtype=np.int64))
    curves = {}
    for i in np.flatnonzero(made).tolist():
        curve = mine.get(labels[i])
        room = np.zeros(toolbox.instance.graph.n + 1, dtype=np.int64) if curve is None else curve
        curves[labels[i]] = group.broadcast(room, i % group.size)
    return curves


def _my_share(
    context: Context,
    toolbox: Toolbox,
    named: dict[str, Baseline],
    name: str,
    seconds: float,
    curve: Callable[[np.ndarray], np.ndarray] | None,
) -> tuple[np.ndarray, list[str], np.ndarray | None, dict[str, np.ndarray]]:
    """Values and labels of all heuristics, those of this rank alone filled in; its best solution; and by
    label the curves of its solutions.
    """
    group, begun = context.group, time.monotonic()
    keeper = context.keeper.apart(only_this_rank(context.device))
    values, labels = np.zeros(len(named), dtype=np.int64), [""] * len(named)
    best: int | None = None
    held: np.ndarray | None = None
    found: dict[str, np.ndarray] = {}
    curves: dict[str, np.ndarray] = {}

    def late(more: float = 0.0) -> bool:
        keeper.at(0)
        return time.monotonic() - begun + more > seconds

    with raise_together(group, "baselines"), toolbox.watched(late):
        for i, (which, rule) in enumerate(named.items()):
            if i % group.size != group.rank:
                continue
            if late(toolbox.seconds_of(which)):
                continue
            try:
                solution, labels[i] = rule()
            except NoneFound:
                continue
            if (fault := toolbox.fault(solution)) is not None:
                raise LockstepError(f"baseline {which} on {name}: {fault}")
            values[i] = toolbox.value(solution)
            if curve is not None:
                found[labels[i]] = solution
            if best is None or toolbox.improves(int(values[i]), best):
                best, held = int(values[i]), solution
        for label, solution in found.items():  # at last: they take no time from the heuristics
            if late(toolbox.curve_seconds):
                break
            curves[label] = curve(solution)
    return values, labels, held, curves


def heuristics(case: Case, toolbox: Toolbox) -> dict[str, Baseline]:
    """The plain heuristics that a case asks for, by name. Raises CaseError for an unknown one."""
    named, wanted = toolbox.baselines(), case.search.heuristic
    if not wanted or not named:
        return named
    if wanted not in named:
        right = f"one of {', '.join(named)} would be right"
        raise CaseError(f"search.heuristic: found {show(wanted)}; {right}")
    return {wanted: named[wanted]}


def baseline_values(
    context: Context, toolbox: Toolbox, name: str, seconds: float = math.inf
) -> dict[str, int]:
    """Values of the plain heuristics by label, as `compare` finds them. Ranks: all call."""
    return compare(context, toolbox, name, seconds).values


def seconds_of_baselines(case: Case, used: float = math.inf) -> float:
    """What baselines may take after an answer that has used so many seconds of a time limit: what it leaves,
    and BASELINE_SHARE of it.
    """
    limit = case.search.seconds
    return max(limit - used, 0.0) + max(BASELINE_SHARE * limit, LEAST_SECONDS) if limit else math.inf


def seconds_of_bounds(case: Case, used: float) -> float:
    """What bounds may take after an answer of the policy alone that took so long."""
    search = case.search
    return max(search.seconds - used, 0.0) if search.seconds else search.bound_seconds


@dataclass(frozen=True)
class FoundBound:
    """What bounds have found, the same on all ranks.

    value         of the instance; None: no bound
    verified      proved again from its witness
    certificate   the file of its proof, where output.certificates asks for one; else empty
    """

    value: int | None
    method: str
    verified: bool
    certificate: bytes


def bound_of(context: Context, toolbox: Toolbox, best: int, seconds: float) -> FoundBound:
    """A bound within so many seconds. Ranks: all call.

    The rank after the first works where there are several, and tells the others.
    """
    group = context.group
    worker = 1 % group.size
    words, method, content = np.zeros(3, dtype=np.int64), "", b""
    with raise_together(group, "bounds"):
        bounds = toolbox.bounds() if group.rank == worker else None
        if bounds is not None:
            try:
                limited = context.case.search.seconds > 0
                checked = _improve(toolbox, bounds, seconds, limited, toolbox.core_value(best))
                if bounds.method:
                    words[:] = True, toolbox.value_of_core(bounds.value), checked
                    method = bounds.method
                    content = certificate_of(bounds) if context.case.output.certificates else b""
            finally:
                bounds.close()
    known, value, verified = group.sum_integers(words).tolist()
    return FoundBound(
        value if known else None, group.broadcast_text(method, worker), bool(verified),
        group.broadcast_bytes(content, worker),
    )  # fmt: skip


def _improve(toolbox: Toolbox, bounds: Bounds, seconds: float, limited: bool, best: int) -> bool:
    """Let bounds work for so long; whether what they have found is verified.

    limited   what takes longer, by their own estimates, is left out: the check, or the bounds
    """
    checks = True
    if limited:
        bounds.expect(seconds)
        seconds -= bounds.least_seconds
        if seconds < 0:
            return False
        checks = bounds.check_seconds <= seconds
        seconds -= bounds.check_seconds if checks else 0.0
    bounds.improve(seconds, best)
    return bool(bounds.method) and checks and verified(toolbox, bounds)


def compare_graphs(context: Context, graphs: list[Loaded]) -> dict[str, list[float]]:
    """Objectives of baselines on several graphs, by label, of those that all have. Ranks: all call."""
    out: dict[str, list[float]] = {}
    if not context.case.search.baselines:
        return out
    problem = problem_of(context.case)
    with context.log.phase("baselines"):
        for number, loaded in enumerate(graphs):
            context.keeper.at(number)
            whole = whole_graph(context, loaded)
            if whole is None:
                return {}
            toolbox = problem.toolbox(Instance(whole, loaded.metric, asked=Asked.of(context.case.problem)))
            for label, value in baseline_values(context, toolbox, whole.name).items():
                out.setdefault(label, []).append(value if toolbox.unit == 1 else value * toolbox.unit)
    return {label: values for label, values in out.items() if len(values) == len(graphs)}
