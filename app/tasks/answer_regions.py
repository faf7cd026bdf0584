"""The answer of a graph on row partitions, made better region by region until the time is up.

See app/solver/rows/regions.py. The number of regions alone decides the answer: it is the replay, and with the
solutions that belong to it the checkpoint.
"""

import time
from dataclasses import dataclass, replace
from typing import Any

from app.checkpoint.keeper import Keeper
from app.checkpoint.store import State
from app.errors import Ended
from app.graphs.graph import Graph
from app.problems.problem import Problem
from app.solver.budget import RESERVED
from app.solver.pipeline import Answer
from app.solver.progress import Event
from app.solver.rows.regions import Course, Regions, course_of, search_regions
from app.tasks.answer_rest import Rest
from app.tasks.context import Context

ON_REGIONS = "regions on rows"  # the source of an answer that they have made better
FIRST_PACE = 5e-6  # s for each node and entry of a region, before any was searched
FORGOTTEN = 0.8  # what a turn leaves of slower ones before it
USUAL = 64  # regions, where nothing says how many


@dataclass(eq=False)
class Searching:
    """The regions of one graph, searched again as long as there is time.

    found  the best answer so far; at first the one before all regions
    ends   when all has to be over, by time.perf_counter; infinite where only regions count
    most   regions, at most
    """

    context: Context
    graph: Graph
    rest: Rest
    regions: Regions
    course: Course
    keeper: Keeper
    found: Answer
    ends: float
    most: int

    def __post_init__(self) -> None:
        self.first, self.begun, self._given = self.course.made, time.perf_counter(), self.found.value
        self._asked = self.begun  # when `look` was asked last
        self._pace = FIRST_PACE  # the slowest turn of late, s for its work
        self._work = 1  # that of the last one
        self._told = 0  # better regions, that `found` has; none of an earlier part of the run

    def look(self) -> bool:
        """Before every turn: whether the time is up, as rank 0 sees it. Ranks: all call; identical on all.

        No turn is begun that would not come to its end if it were as slow as the slowest of late.
        """
        course, now = self.course, time.perf_counter()
        if course.made > self.first:
            self._pace = max((now - self._asked) / self._work, FORGOTTEN * self._pace)
        self._asked, self._work = now, max(course.work, 1)
        if course.better != self._told:
            self._told = course.better
            self.found = self._better(now)
        self.keeper.at(course.made, "regions", self._state)
        if self.ends == float("inf"):
            return False
        late = self.context.group.rank == 0 and now + self._pace * course.work > self.ends
        return bool(self.context.group.max_integer(int(late)))

    def _better(self, now: float) -> Answer:
        """The answer that the regions have led to: of those as good as each other the last one, whenever it
        was asked for. Ranks: all call.
        """
        context, kind, found = self.context, self.rest.kind, self.found
        solution = kind.joined(self.regions)
        value = kind.value(context.group, self.graph, solution)
        if not (value < self._given if kind.sense == "minimise" else value > self._given):
            return found
        if value == found.value:
            return replace(found, solution=solution)
        best, seconds = value if self.rest.unit == 1 else value * self.rest.unit, now - self.rest.begun
        context.log.record(phase="regions", name=self.graph.name, step=self.course.made, best=best)
        context.log.progress("%s: %d regions: %.10g", self.graph.name, self.course.made, best)
        event = Event(seconds, best, None)
        return replace(
            found, solution=solution, value=value, source=ON_REGIONS, seconds=seconds,
            trace=[*found.trace, event],
        )  # fmt: skip

    def _state(self) -> State:
        course = self.course
        values = course.numbers() | {"elapsed": time.perf_counter() - self.rest.begun}
        return State(values, {"solution": self.regions.solution.copy(), "before": course.before.copy()})

    def run(self, problem: Problem) -> Answer:
        """Search until the end; Stopped has the best answer so far. Ranks: all call."""
        context = self.context
        try:
            search_regions(
                context.group, self.regions, problem, context.case.seed, self.course, self.most,
                self.look,
            )  # fmt: skip
        except Ended as ended:
            ended.so_far = self.found
            raise
        return self._better(time.perf_counter()) if self.course.made else self.found


def search_again(
    context: Context, problem: Problem, graph: Graph, rest: Rest, found: Answer, keeper: Keeper
) -> Answer:
    """An answer whose regions were searched again on all ranks at once. Ranks: all call; identical on all.

    found   of the graph     keeper   remembers how far it came
    """
    search, kind, known = context.case.search, rest.kind, keeper.recall("regions")
    counted = not search.seconds  # as a replay is
    ends = float("inf") if counted else rest.begun + (1 - RESERVED) * search.seconds - rest.seconds
    if search.row_regions and known is None and context.group.first_number(time.perf_counter() >= ends):
        return _replayed(found, 0)
    regions = kind.regions(context.group, found.solution) if search.row_regions else None
    if regions is None or not len(regions.nodes):
        return found
    course = course_of(regions, kind.most_bytes)
    if known is not None:
        told = {key: value for key, value in known.values.items() if key != "elapsed"}
        course = Course(**told, before=known.arrays["before"])
        regions.solution = known.arrays["solution"].copy()
    most = search.row_regions if search.row_regions > 0 else (1 << 62 if search.seconds else USUAL)
    made = Searching(
        context=context, graph=graph, rest=rest, regions=regions, course=course, keeper=keeper, found=found,
        ends=ends, most=most,
    )  # fmt: skip
    begun = time.perf_counter()
    with context.log.phase("regions"):
        answer = made.run(problem)
    _say(context, graph, rest, (found, answer), made, time.perf_counter() - begun)
    if known is not None and not counted:
        return replace(answer, replay=[])  # a clock has ended an earlier part
    return _replayed(answer, course.made) if search.row_regions > 0 or search.seconds else answer


def _replayed(found: Answer, made: int) -> Answer:
    """With the number of regions among what a replay needs, where it needs something."""
    return replace(found, replay=[*found.replay, f"search.row_regions={made}"] if found.replay else [])


def _say(
    context: Context, graph: Graph, rest: Rest, both: tuple[Answer, Answer], made: Searching, seconds: float
) -> None:
    """What regions have given."""
    before, after = (each.value * rest.unit for each in both)
    count = made.course.made - made.first
    context.log.info(
        "%s: %d regions searched again, %.3g a second, %d of them better: from %.10g to %.10g", graph.name,
        count, count / max(seconds, 1e-9), made.course.better, before, after,
    )  # fmt: skip


def kept_answer(found: Answer, chosen: int, elapsed: float) -> State:
    """An answer without bound and certificate as a checkpoint has it; `recalled_answer` is the way back.

    chosen   nodes that were chosen on rows     elapsed   seconds since the solve began
    """
    values: dict[str, Any] = {
        "value": found.value, "learned": found.learned, "quick": found.quick, "steps": found.steps,
        "evaluations": found.evaluations, "source": found.source, "integral": found.integral,
        "seconds": found.seconds, "replay": found.replay,
        "chosen": chosen, "elapsed": elapsed,
        "trace": [[event.seconds, event.best, event.bound] for event in found.trace],
    }  # fmt: skip
    return State(values, {"solution": found.solution})


def recalled_answer(state: State) -> tuple[Answer, int]:
    """The answer that a checkpoint has kept, and the nodes that were chosen on rows."""
    told = dict(state.values)
    chosen, _ = told.pop("chosen"), told.pop("elapsed")
    trace = [Event(*each) for each in told.pop("trace")]
    solution = state.arrays["solution"].astype(bool)
    answer = Answer(
        solution=solution, bound=None, method="", verified=False, certificate=b"", trace=trace, **told
    )
    return answer, chosen
