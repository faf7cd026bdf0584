"""What answers share that are made better on a graph's rows: their time, exchanges, what is written."""

import time
from dataclasses import dataclass, replace

from app.checkpoint.keeper import Keeper
from app.partition.loaded import Loaded
from app.problems.problem import Problem
from app.proofs.archive import to_bytes
from app.solver.learned import StartClock, StartLimits
from app.solver.pipeline import Answer
from app.solver.progress import Event
from app.solver.rows.kinds import RowBound
from app.solver.rows.own import Rounds
from app.tasks.answer_rest import Rest, written_answer
from app.tasks.context import Context
from app.tasks.solved import Solved

PEELING, ANNEALING = "peeling", "annealing"  # keys of choices and of sweeps under way, in a checkpoint
START = "start"  # that of an answer before sweeps
ON_ROWS = "exchanges on rows"  # the source of an answer that was made better after the search
EXCHANGES_OF_REST = 0.9  # of what is left of a time limit, for exchanges where regions follow


@dataclass(eq=False)
class Work:
    """What the parts of an answer share.

    chosen   nodes that were chosen on the rows
    """

    context: Context
    problem: Problem
    loaded: Loaded
    rest: Rest
    keeper: Keeper
    chosen: int = 0

    def clock(self, share: float, keep: float = 0.0) -> StartClock:
        """Rings where a share of what is left of a time limit is over, but for `keep` seconds of it."""
        seconds = max(share * (self.left() - keep), 0.0)
        return StartClock(self.context.group, StartLimits(1.0, 0, seconds, self.context.keeper), seconds)

    def left(self) -> float:
        """Seconds left of a time limit; infinite without one."""
        limit = self.context.case.search.seconds
        return limit - (time.perf_counter() - self.rest.begun) if limit else float("inf")


def begun_before(rest: Rest, keeper: Keeper) -> Rest:
    """The rest, of a solve that has begun as much earlier as earlier parts of the run took, but for the
    search of what is left, which knows that by itself.
    """
    known = [keeper.recall(key) for key in ("regions", "answer", ANNEALING, PEELING, START)]
    spent = max((state.values["elapsed"] for state in known if state is not None), default=0.0)
    return replace(rest, begun=rest.begun - spent)


def exchanged(work: Work, found: Answer) -> Answer:
    """An answer made better on the rows. Ranks: all call."""
    context, kind, graph = work.context, work.rest.kind, work.loaded.graph
    counted = context.case.search.row_exchanges
    share = EXCHANGES_OF_REST if context.case.search.row_regions else 1.0
    rounds = Rounds(work.clock(share).rings, counted)
    begun = time.perf_counter()
    with context.log.phase("exchange"):
        solution = kind.improve(context.group, graph, found.solution, rounds)
        value = kind.value(context.group, graph, solution)
    if rounds.cut_short or counted:
        keys = [*found.replay, f"search.row_exchanges={rounds.made}"] if found.replay else []
        found = replace(found, replay=keys)
    better = value < found.value if kind.sense == "minimise" else value > found.value
    if not better:
        return found
    unit, seconds = work.rest.unit, found.seconds + time.perf_counter() - begun
    context.log.info(
        "%s: exchanges on rows: %d rounds, from %.10g to %.10g", graph.name, rounds.made, found.value * unit,
        value * unit,
    )  # fmt: skip
    event = Event(seconds, value if unit == 1 else value * unit, None)
    return replace(
        found, solution=solution, value=value, source=ON_ROWS, seconds=seconds, trace=[*found.trace, event]
    )


def solved_on_rows(work: Work, found: Answer, bound: RowBound | None) -> Solved:
    """The answer of the graph with a bound. Ranks: all call."""
    context, certificate = work.context, b""
    if bound is not None:
        found = replace(found, bound=bound.value, method=bound.method, verified=True)
        certificate = to_bytes(bound.proof) if context.case.output.certificates else b""
    solved = written_answer(context, work.problem, work.loaded, work.rest, found, certificate)
    if work.rest.kind.peels:
        solved.entry["peeled"] = work.chosen
    return solved
