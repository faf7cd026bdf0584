"""Cliques of a graph of which reductions leave more than one rank may work on: the clique that these know,
with a bound by core numbers; then all ranks search the rest root by root, to a proof or until the time is up.

See app/solver/rows/clique_roots.py. The number of parts alone decides the answer: it is the replay, and with
the bounds of roots that belong to it the checkpoint.
"""

import time
from dataclasses import dataclass, replace

import numpy as np

from app.bounds.clique.degeneracy import CORES
from app.bounds.clique.roots import METHOD
from app.checkpoint.checkpoints import Keeper
from app.checkpoint.store import State
from app.errors import Ended
from app.graphs.graph import Graph
from app.partition.load import Loaded
from app.problems.problem import Problem
from app.solver.budget import RESERVED
from app.solver.learned import StartClock, StartLimits
from app.solver.pipeline import Answer
from app.solver.progress import Event
from app.solver.rows.clique_roots import ORDER_ROUNDS, RootCourse, RowRoots, search_roots
from app.solver.rows.own import Rounds
from app.tasks.answer import Solved
from app.tasks.answer_rest import Rest, answer_alone
from app.tasks.compare import tell_too_large
from app.tasks.context import Context

ON_ROOTS = "roots on rows"  # the source of a clique that they have led to
ORDER_SHARE = 0.5  # of what is left of a time limit, for an order of the nodes
FIRST_SECONDS = 0.1  # of a turn, before any was made
FORGOTTEN = 0.8  # what a turn leaves of slower ones before it
USUAL = 256  # parts, where nothing says how many


def answer_by_roots(context: Context, problem: Problem, loaded: Loaded, rest: Rest, keeper: Keeper) -> Solved:
    """The known clique and its bound, made better by a search on the rows.

    keeper  remembers how far it came
    Ranks   all call; identical on all
    """
    search, known = context.case.search, keeper.recall("roots")
    if known is not None:
        rest = replace(rest, begun=rest.begun - known.values["elapsed"])

    def better(found: Answer) -> Answer:
        if found.value == found.bound:
            return found
        if not search.row_regions:
            tell_too_large(context, loaded, rest.nbytes, by="core numbers")
            return found
        return _searched(context, loaded.graph, rest, found, keeper)

    return answer_alone(context, problem, loaded, rest, better)


@dataclass(eq=False)
class _Searching:
    """The roots of one graph, searched as long as there is time; `found` is the best answer so far.

    ends   when all has to be over, by time.perf_counter; infinite where only parts count
    """

    context: Context
    graph: Graph
    rest: Rest
    roots: RowRoots
    keeper: Keeper
    found: Answer
    ends: float

    def __post_init__(self) -> None:
        self.first = self.roots.course.made
        self._asked = time.perf_counter()  # when `look` was asked last
        self._pace = FIRST_SECONDS  # of the slowest turn of late

    def look(self) -> bool:
        """Before every turn: whether the time is up, as rank 0 sees it. Ranks: all call; identical on all."""
        course, now, group = self.roots.course, time.perf_counter(), self.context.group
        if course.made > self.first:
            self._pace = max(now - self._asked, FORGOTTEN * self._pace)
        self._asked = now
        self.tell(now)
        self.keeper.at(course.made, "roots", self._state)
        if self.ends == float("inf"):
            return False
        late = group.rank == 0 and now + self._pace > self.ends
        return bool(group.max_integer(int(late)))

    def tell(self, now: float) -> None:
        """Let `found` be what is known now."""
        roots, unit, found = self.roots, self.rest.unit, self.found
        if roots.best > found.value:
            clique = np.zeros_like(found.solution)
            clique[roots.clique] = True
            best, seconds = roots.best if unit == 1 else roots.best * unit, now - self.rest.begun
            found = replace(
                found, solution=clique, value=roots.best, source=ON_ROOTS, seconds=seconds,
                trace=[*found.trace, Event(seconds, best, None)],
            )  # fmt: skip
        if roots.upper < found.bound:
            found = replace(found, bound=roots.upper, method=f"{CORES}, {METHOD}", verified=False)
        self.found = found
        course, name = roots.course, self.graph.name
        self.context.log.record(phase="roots", name=name, step=course.made, best=roots.best * unit)
        self.context.log.progress(
            "%s: %d parts: a clique of %.10g, at most %.10g", name, course.made, roots.best * unit,
            found.bound * unit,
        )  # fmt: skip

    def _state(self) -> State:
        course, roots = self.roots.course, self.roots
        values = {name: getattr(course, name) for name in ("made", "better", "work", "known", "size")}
        values["elapsed"] = time.perf_counter() - self.rest.begun
        arrays = {"bound": course.bound.copy(), "left": course.left, "cuts": course.cuts.copy()}
        return State(values, arrays | {"order": roots.order, "clique": roots.clique})


def _searched(context: Context, graph: Graph, rest: Rest, found: Answer, keeper: Keeper) -> Answer:
    """The answer that a search of roots leads to. Ranks: all call; identical on all."""
    search, group, known = context.case.search, context.group, keeper.recall("roots")
    ends = float("inf")
    if search.seconds:
        ends = rest.begun + (1 - RESERVED) * search.seconds - rest.seconds
    with context.log.phase("roots"):
        roots = _roots(context, rest, known, ends)
        if roots is None:
            context.log.info("%s: no time was left to search for cliques", graph.name)
            return replace(found, replay=[*found.replay, "search.row_regions=0"])
        searching = _Searching(context, graph, rest, roots, keeper, found, ends)
        most = search.row_regions if search.row_regions > 0 else (1 << 62 if search.seconds else USUAL)
        try:
            search_roots(group, roots, most, searching.look)
        except Ended as ended:
            ended.so_far = searching.found
            raise
        searching.tell(time.perf_counter())
    made, answer = roots.course.made, searching.found
    context.log.info(
        "%s: %d parts of %d roots searched, %d of them better: from %.10g to %.10g, %d roots open",
        graph.name, made, len(roots.order), roots.course.better, found.value * rest.unit,
        answer.value * rest.unit, len(roots.open),
    )  # fmt: skip
    keys = [*answer.replay, f"search.row_regions={made}"] if search.seconds or search.row_regions > 0 else []
    keys = keys or answer.replay
    return replace(answer, replay=[] if known is not None and search.seconds else keys)


def _roots(context: Context, rest: Rest, known: State | None, ends: float) -> RowRoots | None:
    """The search as it begins, or goes on; None: no time is left to begin it. Ranks: all call."""
    group, kind = context.group, rest.kind
    if known is not None:
        course = RootCourse(
            known.arrays["bound"].copy(), known.arrays["left"], known.arrays["cuts"].copy(),
            *(known.values[name] for name in ("made", "better", "work", "known", "size")),
        )  # fmt: skip
        return kind.roots(group, known.arrays["order"], known.arrays["clique"], course)
    seconds = max(ORDER_SHARE * (ends - time.perf_counter()), 0.0)
    clock = StartClock(group, StartLimits(1.0, 0, seconds, context.keeper), seconds)
    rounds = Rounds(clock.rings, ORDER_ROUNDS)
    order = kind.order(group, rounds)
    return None if rounds.cut_short else kind.roots(group, order, kind.rows.clique, None)
