"""An answer on row partitions, annealed there (app/solver/rows/cut_sweeps.py).

Under a time limit rank 0's clock says before every sweep how far the temperature has fallen, so that all of
them are passed in the time there is, however long a sweep takes on the way. The sweeps at each temperature
alone decide the answer: they are the replay.
"""

import time
from dataclasses import dataclass, replace

import numpy as np

from app.checkpoint.store import State
from app.errors import Ended
from app.solver.pipeline import Answer
from app.solver.progress import Event
from app.solver.rows.cut_sweeps import CutSweeps
from app.tasks.answer_on_rows import ANNEALING, Work

BY_SWEEPS = "annealing on rows"  # the source of an answer that it has made better
TEMPERATURES, USUAL = 32, 10  # and sweeps at each of them, where nothing says how many
SHARE = 0.6  # of what is left of a time limit; regions, then, have most of the rest
BEGIN_SECONDS = 5e-7  # s for each entry that a rank has, before the first sweep
LEAST = 2  # times that have to be left for it to be begun at all


def annealed(work: Work, found: Answer) -> Answer:
    """An answer made better by annealing on the rows. Ranks: all call; identical on all."""
    context, kind, given = work.context, work.rest.kind, work.context.case.search.row_sweeps
    known = work.keeper.recall(ANNEALING)
    if known is None and not (any(given) if given else _worth(work)):
        return _replayed(found, [0])
    with context.log.phase("anneal"):
        solution = found.solution if known is None else known.arrays["solution"].astype(bool)
        sweeps = kind.sweeps(context.group, solution, context.case.seed)
        if sweeps is None:
            return found
        made = _Annealing.of(work, sweeps, known)
        try:
            made.run()
        except Ended as ended:
            ended.so_far = _better(work, found, sweeps)
            raise
        better = _better(work, found, sweeps)
    unit = work.rest.unit
    context.log.info(
        "%s: annealing on rows: %d sweeps at %d temperatures, from %.10g to %.10g", work.loaded.graph.name,
        sweeps.made, len(made.counts), found.value * unit, better.value * unit,
    )  # fmt: skip
    return _replayed(better, made.counts.tolist())


def _better(work: Work, found: Answer, sweeps: CutSweeps) -> Answer:
    """The present sides, where they are better than an answer, else that. Ranks: all call."""
    kind, unit = work.rest.kind, work.rest.unit
    solution = kind.annealed(sweeps)
    value = kind.value(work.context.group, work.loaded.graph, solution)
    if value <= found.value:
        return found
    seconds = time.perf_counter() - work.rest.begun
    event = Event(seconds, value if unit == 1 else value * unit, None)
    return replace(
        found, solution=solution, value=value, source=BY_SWEEPS, seconds=seconds, trace=[*found.trace, event]
    )


def _replayed(found: Answer, counts: list[int]) -> Answer:
    """With the sweeps among what a replay needs, where it needs something."""
    key = f"search.row_sweeps=[{','.join(map(str, counts))}]"
    return replace(found, replay=[*found.replay, key]) if found.replay else found


def _worth(work: Work) -> bool:
    """Whether there is time for more than what comes before the first sweep. Ranks: all call."""
    if work.left() == float("inf"):
        return True
    group = work.context.group
    entries = group.max_integer(len(work.rest.kind.own.indices))
    late = group.rank == 0 and work.left() < LEAST * BEGIN_SECONDS * entries
    return not group.max_integer(int(late))


@dataclass(eq=False)
class _Annealing:
    """Sweeps under way.

    counts   [t] int64, sweeps made at each temperature
    given    whether `most` [t] says how many there are to be; else the clock
    begun, seconds   when sweeps began, by time.perf_counter, and how long they may take
    """

    work: Work
    sweeps: CutSweeps
    counts: np.ndarray
    most: list[int]
    begun: float
    seconds: float

    @classmethod
    def of(cls, work: Work, sweeps: CutSweeps, known: State | None) -> "_Annealing":
        """From the start, or from where an earlier part of the run came to."""
        search = work.context.case.search
        most = search.row_sweeps or ([] if search.seconds else [USUAL] * TEMPERATURES)
        spent = 0.0
        counts = np.zeros(len(most) or TEMPERATURES, dtype=np.int64)
        if known is not None:
            counts, spent = known.arrays["counts"].astype(np.int64), known.values["spent"]
            sweeps.made = int(counts.sum())
        return cls(work, sweeps, counts, most, time.perf_counter() - spent, SHARE * (work.left() + spent))

    def run(self) -> None:
        """All sweeps. Ranks: all call."""
        level = self._level(0)
        while level < len(self.counts):
            self.sweeps.sweep(level, len(self.counts))
            self.counts[level] += 1
            self.work.keeper.at(self.sweeps.made, ANNEALING, self._state)
            level = self._level(level)

    def _level(self, level: int) -> int:
        """The temperature of the next sweep; beyond the last one: there is none. Ranks: all call."""
        if self.most:
            while level < len(self.most) and self.counts[level] >= self.most[level]:
                level += 1
            return level
        group, last = self.work.context.group, len(self.counts)
        fallen = (time.perf_counter() - self.begun) / max(self.seconds, 1e-9)
        return group.max_integer(min(int(last * fallen), last) if group.rank == 0 else 0)

    def _state(self) -> State:
        now = time.perf_counter()
        values = {"spent": now - self.begun, "elapsed": now - self.work.rest.begun}
        return State(values, {"counts": self.counts.copy(), "solution": self.sweeps.solution()})
