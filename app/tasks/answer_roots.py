"""Cliques of a graph of which reductions leave more than one rank may work on: the clique that these know,
with a bound by core numbers; then all ranks search the rest root by root, to a proof or until the time is up.
What they leave open is shown to the policy where the graph's complement, whose rows it sees, has few edges.

See app/solver/rows/clique_roots.py. The number of parts alone decides what roots lead to: it is the replay,
and with the bounds of roots that belong to it the checkpoint.
"""

import time
from dataclasses import dataclass, replace

import numpy as np

from app.bounds.clique.degeneracy import CORES
from app.bounds.clique.roots import METHOD
from app.checkpoint.keeper import Keeper
from app.checkpoint.store import State
from app.errors import Ended
from app.graphs.graph import Graph
from app.partition.loaded import Loaded
from app.problems.problem import Problem
from app.solver.budget import RESERVED
from app.solver.learned import StartClock, StartLimits
from app.solver.pipeline import Answer
from app.solver.progress import Event
from app.solver.rows.clique_roots import ORDER_ROUNDS, RootCourse, RowRoots, search_roots
from app.solver.rows.own import Rounds
from app.solver.rows.regions import COUNT
from app.tasks.answer_rest import Rest, answer_alone
from app.tasks.compare import tell_too_large
from app.tasks.context import Context
from app.tasks.policy import Policy
from app.tasks.rollouts import REST_SECONDS, Before, follow_policy
from app.tasks.solved import Solved

ON_ROOTS, POLICY = "roots on rows", "policy"  # the sources of cliques that they have led to
NOT_ASKED = "greedy"  # search.start, of a policy that is not asked
ROOT_SHARE, POLICY_SHARE = 0.5, 0.95  # of a time limit, when roots are to be over, and then the policy
ORDER_SHARE = 0.5  # of what is left of a time limit, for an order of the nodes
FIRST_SECONDS = 0.1  # of a turn, before any was made
FORGOTTEN = 0.8  # what a turn leaves of slower ones before it
USUAL = 256  # parts, where nothing says how many
USUAL_ENTRIES = 1 << 25  # of these together, where the policy follows: in large ones little is ever closed


def answer_by_roots(
    context: Context, problem: Problem, loaded: Loaded, rest: Rest, keeper: Keeper,
    policy: Policy | None = None,
) -> Solved:  # fmt: skip
    """The known clique and its bound, made better by a search on the rows; then the policy's, where it is
    heavier.

    keeper  remembers how far the search came
    policy  asked where roots leave the clique open; None: it cannot be
    Ranks   all call; identical on all
    """
    search, known = context.case.search, keeper.recall("roots")
    if known is not None:
        rest = replace(rest, begun=rest.begun - known.values["elapsed"])
    asked = None if search.start == NOT_ASKED else policy

    def better(found: Answer) -> Answer:
        if found.value == found.bound:
            return found
        if search.row_regions:
            shared = asked is not None and _time_to_ask(context, loaded.graph, rest)
            found = _searched(context, loaded.graph, rest, found, keeper, shared)
        elif asked is None:
            tell_too_large(context, loaded, rest.nbytes, by="core numbers")
        if asked is None or found.value == found.bound:
            return found
        return _followed(context, asked, problem, loaded, rest, found)

    return answer_alone(context, problem, loaded, rest, better)


def _followed(
    context: Context, policy: Policy, problem: Problem, loaded: Loaded, rest: Rest, found: Answer
) -> Answer:
    """The policy's clique, or a heavier one that is known. Ranks: all call; identical on all."""
    graph, group, unit = loaded.graph, context.group, rest.unit
    if not _time_to_ask(context, graph, rest):
        context.log.info("%s: no time was left to ask the policy", graph.name)
        return _replayed(found, f"search.start={NOT_ASKED}")
    context.log.info("%s: the policy is asked, since the clique is not proved", graph.name)
    try:
        before = Before(None, rest.begun, POLICY_SHARE)
        ((_, solved),) = follow_policy(context, problem, policy, [loaded], before=before)
    except Ended as ended:
        ended.so_far = found
        raise
    evaluations, value = solved.entry["policy_evaluations"], rest.kind.value(group, graph, solved.solution)
    found = _replayed(replace(found, evaluations=evaluations), f"search.evaluations={evaluations}")
    if value <= found.value:  # one as heavy stays, however far a clock has let the bound come
        return found
    seconds = time.perf_counter() - rest.begun
    event = Event(seconds, value if unit == 1 else value * unit, None)
    return replace(
        found, solution=solved.solution, value=value, learned=value, source=POLICY, seconds=seconds,
        trace=[*found.trace, event],
    )  # fmt: skip


def _time_to_ask(context: Context, graph: Graph, rest: Rest) -> bool:
    """Whether there is time for a choice of the policy and the greedy after it. Ranks: all call."""
    limit = context.case.search.seconds
    if not limit:
        return True
    entries = graph.n * (graph.n - 1) - 2 * graph.edges  # of the complement
    left = POLICY_SHARE * limit - (time.perf_counter() - rest.begun)
    return bool(context.group.first_number(left > REST_SECONDS * (graph.n + entries)))


def _replayed(found: Answer, key: str) -> Answer:
    """With one more key that a replay needs, where there is a replay."""
    return replace(found, replay=[*found.replay, key]) if found.replay else found


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
        self.keeper.at(course.made, "roots", self.state)
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

    def state(self) -> State:
        """What a checkpoint holds of it."""
        course, roots = self.roots.course, self.roots
        values = {name: getattr(course, name) for name in ("made", "better", "work", "known", "size")}
        values["elapsed"] = time.perf_counter() - self.rest.begun
        arrays = {"bound": course.bound.copy(), "left": course.left, "cuts": course.cuts.copy()}
        return State(values, arrays | {"order": roots.order, "clique": roots.clique})


def _searched(
    context: Context, graph: Graph, rest: Rest, found: Answer, keeper: Keeper, shared: bool
) -> Answer:
    """The answer that a search of roots leads to; shared: the policy is asked after it. Ranks: all call;
    identical on all.
    """
    search, group, known = context.case.search, context.group, keeper.recall("roots")
    ends = float("inf")
    if search.seconds:
        ends = rest.begun + (ROOT_SHARE if shared else 1 - RESERVED) * search.seconds - rest.seconds
    with context.log.phase("roots"):
        roots = _roots(context, rest, known, ends)
        if roots is None:
            context.log.info("%s: no time was left to search for cliques", graph.name)
            return replace(found, replay=[*found.replay, "search.row_regions=0"])
        searching = _Searching(context, graph, rest, roots, keeper, found, ends)
        usual = max(min(USUAL, USUAL_ENTRIES // roots.entries), COUNT) if shared else USUAL
        most = search.row_regions if search.row_regions > 0 else (1 << 62 if search.seconds else usual)
        try:
            search_roots(group, roots, most, searching.look)
        except Ended as ended:
            ended.so_far = searching.found
            raise
        searching.tell(time.perf_counter())
        if shared:  # the policy begins anew where it is stopped
            keeper.keep("roots", searching.state())
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
