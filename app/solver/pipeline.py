"""The pipeline of a solve: reductions, a learned start, local search and bounds, one instance at a time.

Every rank holds the whole instance (within memory.whole_graph_mb). Reductions are replicated, the policy's
evaluations of large graphs are split by rows, searches and bounds are dealt to the ranks.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from app.case.config import Case
from app.case.search import STARTS
from app.checkpoint.keeper import NOTHING_KEPT, Keeper
from app.comm.group import Group
from app.comm.guard import check_replicas
from app.errors import LockstepError, Stopped
from app.graphs.graph import Graph
from app.log import Log
from app.rng import stream
from app.solver.budget import Budget
from app.solver.learned import (
    ROLLOUTS,
    CountedLooks,
    StartClock,
    StartLimits,
    peel,
    rollout,
    rows_to_roll_out,
)
from app.solver.progress import Event, Progress
from app.solver.rounds import Beginning, Rounds
from app.toolbox import EXACT, LARGE, Toolbox

HOPELESS_SHARE = 0.02  # of a time limit: reductions that would take longer and promise nothing are left out
GIVE_UP_SHARE = 0.3  # of a time limit: those that can be cut short are, once they have taken longer


@dataclass
class Answer:
    """What a solve found, the same on all ranks.

    solution      of the instance
    value, bound  in the toolbox's units; bound None: no method
    learned       value of the policy's solution before the search; None: the policy was not asked
    quick         value of the start without learning; None: reductions left nothing
    evaluations   of the policy
    steps         of each local search
    source        what found the solution
    verified      the bound was proved again from its witness
    replay        keys that give the same answer again, on any number of ranks and whatever the clock; none
                  where a time-limited search was stopped and resumed, and where an exact search, for which
                  the time sufficed, found the answer
    certificate   the file of what proves the bound, where output.certificates asks for one; else empty
    """

    solution: np.ndarray
    value: int
    bound: int | None
    method: str
    learned: int | None
    quick: int | None
    evaluations: int
    steps: int
    source: str
    verified: bool
    integral: float
    seconds: float
    trace: list[Event]
    replay: list[str]
    certificate: bytes


class Pipeline:
    """Answers instances of one case with one policy; net, params: None where no policy answers."""

    def __init__(
        self, group: Group, log: Log, case: Case, net: Any, params: Any, keeper: Keeper = NOTHING_KEPT
    ) -> None:
        """keeper   of one instance: where its search may be stopped, and what it goes on from"""
        self.group, self.log, self.case, self.net, self.params = group, log, case, net, params
        self.keeper = keeper
        self.known: np.ndarray | None = None  # the best core solution before the search
        self.whole: np.ndarray | None = None  # what it stands for
        self.used = 0.0  # s of the last answer, with those of earlier parts of the run

    def answer(
        self, toolbox: Toolbox, name: str, given: np.ndarray | None = None, spent: float = 0.0,
        kept: float = 0.0,
    ) -> Answer:  # fmt: skip
        """The best solution the budget allows, and a bound.

        given   a user's solution of the instance to start from, or None
        spent   seconds that were worked on the instance before
        kept    seconds of a time limit for what comes after
        Ranks   all call; Stopped has the Answer so far, where there is one
        """
        progress = Progress(self.log, name, toolbox.sense == "minimise", toolbox.unit, spent)
        self.known = self.whole = None
        try:
            return self._answer(toolbox, progress, given, kept)
        except Stopped as stopped:
            core = self.known if stopped.so_far is None else stopped.so_far
            stopped.so_far = None if core is None else self._so_far(toolbox, progress, core)
            raise

    def told(self, toolbox: Toolbox, answer: Answer) -> dict[str, Any]:
        """What an entry has beside the usual: nothing, where values and bounds are exact."""
        return {}

    def _lifted(self, toolbox: Toolbox, core: np.ndarray) -> np.ndarray:
        """The solution that a core solution stands for, which is known of the one before the search."""
        return toolbox.lift(core) if self.whole is None or core is not self.known else self.whole

    def _so_far(self, toolbox: Toolbox, progress: Progress, core: np.ndarray) -> Answer:
        """The answer that a core solution is, where the solve ends here."""
        solution = self._lifted(toolbox, core)
        return Answer(
            solution=solution, value=toolbox.value(solution), bound=progress.bound, method=progress.method,
            learned=None, quick=None, evaluations=progress.evaluations, steps=0, source=progress.source,
            verified=False, integral=progress.integral(), seconds=progress.elapsed(), trace=progress.trace,
            replay=[], certificate=b"",
        )  # fmt: skip

    def _answer(self, toolbox: Toolbox, progress: Progress, given: np.ndarray | None, kept: float) -> Answer:
        """The course of `answer`: reduce, start, search and bound, lift. Ranks: all call."""
        name, self.replay, self.by_clock = progress.name, [], False
        if toolbox.remark:
            self.log.info("warning: %s: %s", name, toolbox.remark)
        search = self.case.search
        budget = Budget.of_case(search.steps, search.seconds, search.bound_seconds, toolbox.usual_steps)
        budget.begun, budget.kept = budget.begun - progress.elapsed(), kept
        earlier = self.keeper.recall("search")
        if earlier is not None:
            given = earlier.arrays["solution"]
            budget.begun -= earlier.values["elapsed"]
        self._reduce(toolbox, progress, budget)
        best, values = self._start(toolbox, progress, budget, given)
        outcome, verified, certificate = self._search(toolbox, progress, budget, best)
        core = best if outcome.solution is None else outcome.solution
        solution = self._lifted(toolbox, core)
        self._check_replicas(f"{name}: after the search", toolbox.core, solution)
        value = toolbox.value(solution)
        if value != progress.best:
            raise LockstepError(f"{name}: the solution's value is {value}, the search said {progress.best}")
        progress.tell(outcome.steps, last=True)
        self.used = budget.elapsed()
        by_chance = earlier is not None or progress.source == EXACT or self.by_clock
        return Answer(
            solution=solution, value=value, bound=progress.bound, method=progress.method,
            learned=values.get("learned"), quick=values.get("greedy"), evaluations=progress.evaluations,
            steps=outcome.steps, source=progress.source, verified=verified, integral=progress.integral(),
            seconds=progress.elapsed(), trace=progress.trace, replay=self._replay(outcome.steps, by_chance),
            certificate=certificate,
        )  # fmt: skip

    def _reductions_fit(self, toolbox: Toolbox, budget: Budget) -> bool:
        """Whether a time limit has room for what reductions promise, by rank 0's clock. Ranks: all call."""
        left = budget.left()
        late = (
            toolbox.hopeless_seconds > HOPELESS_SHARE * left
            or toolbox.reduce_seconds > toolbox.reduce_share * left
        )
        return not self.group.broadcast(np.array([late], dtype=np.int64))[0]

    def _reduce(self, toolbox: Toolbox, progress: Progress, budget: Budget) -> None:
        """Exact reductions, where they are asked for and time has room for them. Ranks: all call."""
        asked = self.case.search.reductions
        if asked and self._reductions_fit(toolbox, budget):
            self._reduce_in_time(toolbox, progress, budget)
        elif asked:
            left_out = "reductions are left out: they would take too much of the time limit"
            self.log.info("%s: %s", progress.name, left_out)
            self.replay.append("search.reductions=false")
        self.keeper.at(0)
        self._check_replicas(f"{progress.name}: after reductions", toolbox.core)

    def _reduce_in_time(self, toolbox: Toolbox, progress: Progress, budget: Budget) -> None:
        """The same, for GIVE_UP_SHARE of a time limit at most. Ranks: all call."""
        limits = StartLimits(0.0, 0, budget.left(), self.keeper)
        clock = StartClock(self.group, limits, GIVE_UP_SHARE * budget.left())
        with self.log.phase("reduce"):
            said = toolbox.reduce(clock.rings, self.case.search.reduction_steps)
        cut_short = clock.rang and toolbox.reduction_steps > 0
        if said:
            when = "cut short after " if cut_short else ""
            self.log.info("%s: %s, %s%.2f s", progress.name, said, when, progress.elapsed())
        elif clock.rang:
            self.log.info("%s: reductions given up after %.2f s", progress.name, progress.elapsed())
            self.replay.append("search.reductions=false")
        if said and cut_short:
            self.replay.append(f"search.reduction_steps={toolbox.reduction_steps}")

    def _check_replicas(self, what: str, core: Graph, solution: np.ndarray | None = None) -> None:
        """Refuse to go on where the ranks' copies of core and solution differ. Ranks: all call."""
        if self.case.run.check_every:
            held = {"core graph's offsets": core.indptr, "core graph's columns": core.indices}
            held |= {} if core.weights is None else {"core graph's weights": core.weights}
            held |= {} if solution is None else {"solution": solution}
            check_replicas(self.group, held, what)

    def _replay(self, steps: int, by_chance: bool) -> list[str]:
        """Keys that give the same answer; none where a clock has let it be found."""
        return [] if by_chance else ["search.seconds=0", f"search.steps={steps}", *self.replay]

    def _start(
        self, toolbox: Toolbox, progress: Progress, budget: Budget, given: np.ndarray | None
    ) -> tuple[np.ndarray, dict[str, int]]:
        """The best core solution to begin from, and the values of all; the plain one, for a share of a time
        limit at most. Ranks: all call.
        """
        limits = StartLimits(0.0, 0, budget.left(), self.keeper)
        clock = StartClock(self.group, limits, toolbox.start_share * budget.left())
        looks = CountedLooks(clock, self.case.search.start_looks)
        with self.log.phase("start"), toolbox.watched(looks.rings):
            best, values = self._starts(toolbox, progress, budget, given)
        if looks.ended or toolbox.unready:
            why = "was cut short" if looks.ended else "is the quickest: a better one would take too long"
            self.log.info("%s: the plain start %s", progress.name, why)
            self.replay.append(f"search.start_looks={looks.ended or looks.asked + 1}")
        self._check_replicas(f"{progress.name}: before the search", toolbox.core, best)
        return best, values

    def _starts(
        self, toolbox: Toolbox, progress: Progress, budget: Budget, given: np.ndarray | None
    ) -> tuple[np.ndarray, dict[str, int]]:
        """The best of the quick, the given and the learned core solution; and the values of all."""
        values: dict[str, int] = {}
        best = start = toolbox.start()

        def consider(source: str, core: np.ndarray) -> None:
            nonlocal best
            whole = toolbox.lift(core)
            values[source] = toolbox.value(whole)
            if progress.found(values[source], source, 0):
                best = self.known = core
                self.whole = whole

        consider("greedy" if toolbox.core.n else "reductions", start)
        if given is not None:
            consider("given", toolbox.restrict(given))
        self.keeper.at(0)
        asked = self.net is not None and self.case.search.start != "greedy"
        if asked and toolbox.unasked:
            self.log.info("%s: the policy is not asked: %s", progress.name, toolbox.unasked)
        elif asked and toolbox.core.edges:
            solution, progress.evaluations = self._learned(toolbox, budget, progress.name)
            if solution is not None:
                consider("learned", solution)
        progress.tell(0, last=progress.fresh)
        return best, values

    def _learned(self, toolbox: Toolbox, budget: Budget, name: str) -> tuple[np.ndarray | None, int]:
        """The policy's core solution, and the evaluations made: reduce and peel where there is a peeler, else
        its rollout. Ranks: all call.
        """
        search, parallel, before = self.case.search, self.case.parallel, list(self.replay)
        left = self.group.first_number(budget.left())
        limits = StartLimits(
            search.peel_fraction, search.evaluations, left, self.keeper, search.moves_at_once,
            partial(self._tell, name),
        )  # fmt: skip
        core, evaluations = None, 0
        if left <= 0 and toolbox.core.n + len(toolbox.core.indices) >= LARGE:
            pass  # to make ready for an evaluation would take longer than the limit
        elif toolbox.peels:
            made = peel(self.group, self.net, self.params, toolbox, parallel, limits, search.peels)
            core, evaluations = made.solution, made.evaluations
            self.replay += [f"search.peel_fraction={made.fraction}", f"search.peels={made.passes}"]
            self.replay.append(f"search.evaluations={made.evaluations - made.told}")
        else:
            net = self.net if toolbox.played is None else self.net.playing(toolbox.played)
            block = rows_to_roll_out(self.group, net.problem, toolbox.shown, parallel, toolbox.metric)
            roll = ROLLOUTS.get(net.problem.dynamics, rollout)
            core, evaluations, setting = roll(self.group, net, self.params, block, limits, toolbox.marks)
            core = self._allowed(toolbox, core)
            self.replay += [setting, f"search.evaluations={evaluations}"]
        if core is None and search.start in STARTS:
            self.replay = [*before, "search.start=greedy"]
        elif core is None:  # the key names a file, without which the answer would be another
            self.replay, self.by_clock = before, self.by_clock or bool(search.seconds)
        return core, evaluations

    def _tell(self, name: str, evaluations: int, of: str) -> None:
        expected = f" of {of}" if of else ""
        self.log.progress("%s: the policy's start: evaluation %d%s", name, evaluations, expected)

    @staticmethod
    def _allowed(toolbox: Toolbox, core: np.ndarray | None) -> np.ndarray | None:
        """A policy's core solution; None where it breaks what a user has fixed."""
        if core is None:
            return None
        core = toolbox.restrict(toolbox.lift(toolbox.told(core)))
        return core if toolbox.fault(toolbox.lift(core)) is None else None

    def _searches(self) -> int:
        """How many searches there are: a function of the ranks only where a clock ends them."""
        search = self.case.search
        if search.starts or not search.seconds:
            return max(search.starts, 1)
        count = max(self.group.size - int(search.bounds), 1)
        self.replay.append(f"search.starts={count}")
        return count

    def _fits(self, budget: Budget, *seconds: float) -> list[bool]:
        """Whether a time limit has room for what searches, or bounds, begin with, by rank 0's clock.

        Ranks   all call
        """
        late = [each > max(budget.left(), 0.0) for each in seconds]
        return [not each for each in self.group.broadcast(np.array(late, dtype=np.int64)).tolist()]

    def _search(
        self, toolbox: Toolbox, progress: Progress, budget: Budget, best: np.ndarray
    ) -> tuple[Any, bool, bytes]:
        """Local searches and bounds from the best start; whether the bound was checked; its certificate."""
        count = self._searches()
        fits, bounded = self._fits(budget, toolbox.search_seconds, toolbox.bounds_seconds)
        if not fits:
            self.log.info("%s: no search: its beginning would take longer than the time limit", progress.name)
        bounded = bounded and self.case.search.bounds
        if self.case.search.bounds and not bounded:
            self.log.info("%s: no bound: to begin with one would take too much of the limit", progress.name)
            self.replay.append("search.bounds=false")
        draws = stream(self.case.seed, "search")
        seeds = draws.integers(1 << 62, size=count).tolist()
        with self.log.phase("search"):
            begin = Beginning([best] * count, seeds, self.case.search.sweeps, fits)
            rounds = Rounds(self.group, toolbox, begin, budget, progress, bounded, self.keeper)
            outcome = rounds.run()
        if outcome.planned:
            self.replay.append(f"search.sweeps={outcome.planned}".replace(" ", ""))
        self.by_clock |= rounds.by_clock or (not fits and rounds.exact.tree is not None)
        with self.log.phase("check"):
            proved = rounds.verify()
            return outcome, proved, rounds.certificate() if self.case.output.certificates else b""
