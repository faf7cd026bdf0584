"""The pipeline of questions whose values can only be sampled: influence maximisation, one instance at a time.

Collections of reverse reachable sets are drawn, each twice as large (app/search/influence/rounds.py),
dealt to the ranks set by set. The last one is a maximum coverage, and is answered as such by the usual
pipeline: a search by exchanges, bounds by prices. Of what that proves of the collection follows, with the
probability that is asked for, what no seeds exceed. The answer is judged by sets that nothing has seen,
and its objective by cascades forward.
"""

import time
from dataclasses import replace
from typing import Any

import numpy as np
from msgspec import structs

from app.case.config import Case
from app.checkpoint.checkpoints import NOTHING_KEPT, Keeper
from app.comm.group import Group
from app.comm.guard import raise_together
from app.errors import Stopped
from app.log import Log
from app.search.influence.baselines import INFLUENCE_BASELINES
from app.search.influence.rounds import JUDGES, Rounds, Sets, gap_between
from app.search.influence.tools import InfluenceTools
from app.solver.pipeline import Answer, Pipeline
from app.solver.progress import Event

SHARE = 0.3  # of a time limit, that rounds may take
CHOICES = 2  # of seeds that are judged by all simulations, the greedy one and the answer
TRIED = 50  # parts of the simulations, one of which tells how long all take
METHOD = "reverse reachable sets"


class Dealt:
    """Sets of a collection, and worlds, made by all ranks, each a stretch of the numbers. Ranks: all call."""

    def __init__(self, group: Group, tools: InfluenceTools) -> None:
        self.group, self.sampler = group, tools.sampler

    def _mine(self, count: int) -> tuple[int, int]:
        """The first number of this rank, and how many."""
        ends = [count * rank // self.group.size for rank in range(self.group.size + 1)]
        return ends[self.group.rank], ends[self.group.rank + 1] - ends[self.group.rank]

    def sizes(self, key: int, count: int) -> np.ndarray:
        """[count] int64, of the first sets of a key."""
        with raise_together(self.group, "sampling"):
            mine = self.sampler.sizes(key, *self._mine(count))
        return self._gathered(mine)

    def sets(self, key: int, count: int) -> Sets:
        """Sizes and nodes of these sets."""
        with raise_together(self.group, "sampling"):
            sizes, nodes = self.sampler.sets(key, *self._mine(count))
        return self._gathered(sizes), self._gathered(nodes)

    def hits(self, key: int, count: int, seeds: np.ndarray) -> int:
        """How many of them seeds [n] bool hit."""
        with raise_together(self.group, "sampling"):
            mine = self.sampler.hits(key, *self._mine(count), seeds)
        return int(self.group.sum_integers(np.array([mine], dtype=np.int64))[0])

    def worlds(self, key: int, count: int, seeds: np.ndarray) -> np.ndarray:
        """[count] int64, nodes that seeds [n] bool make active in the first worlds of a key."""
        with raise_together(self.group, "cascades"):
            mine = self.sampler.worlds(key, *self._mine(count), np.flatnonzero(seeds))
        return self._gathered(mine)

    def _gathered(self, mine: np.ndarray) -> np.ndarray:
        counts = self.group.gather_integers(np.array([len(mine)], dtype=np.int64))[:, 0].tolist()
        return self.group.gather_host(mine, counts)


class SampledPipeline:
    """Answers instances of one case; the same calls as Pipeline."""

    def __init__(self, group: Group, log: Log, case: Case, keeper: Keeper = NOTHING_KEPT) -> None:
        self.group, self.log, self.case, self.keeper = group, log, case, keeper
        self.used = 0.0  # s of the last answer, as in Pipeline

    def answer(
        self, toolbox: InfluenceTools, name: str, given: np.ndarray | None = None, spent: float = 0.0,
        kept: float = 0.0,
    ) -> Answer:  # fmt: skip
        """The best seeds the budget of work allows, and a bound of the largest spread.

        given, spent, kept   as of Pipeline.answer
        Ranks   all call; Stopped has the Answer so far, where there is one
        """
        begun = time.perf_counter() - spent
        self.dealt = Dealt(self.group, toolbox)
        self.rounds = rounds = Rounds(toolbox, self.dealt)
        with self.log.phase("sample"):
            greedy, stopped_by_clock = self._sample(toolbox, name, begun, kept)
        if self.seconds_to_judge:  # each of the plain choices is judged by one rank
            alone = self.seconds_to_judge * self.group.size / CHOICES
            toolbox.baseline_seconds = dict.fromkeys(INFLUENCE_BASELINES, alone)
        kept += self.seconds_to_judge + self.group.first_number(JUDGES * rounds.judging)
        # A collection has sets that are alike joined already; reductions of what is left would take long.
        case = structs.replace(self.case, search=structs.replace(self.case.search, reductions=False))
        if stopped_by_clock:
            self.log.info("%s: the rest of the time is for the last collection", name)
        if not toolbox.certain:
            said = "%s: the search sees these %d sets alone: its best and its bound are estimates by them"
            self.log.info(said, name, rounds.last.sets)
        inner = Pipeline(self.group, self.log, case, None, None, self.keeper)
        try:
            found = inner.answer(rounds.last, name, given, time.perf_counter() - begun, kept)
            ended = time.perf_counter()
        except Stopped as stopped:
            if stopped.so_far is not None:
                stopped.so_far = self._judged(toolbox, stopped.so_far, None)
            raise
        answer = self._judged(toolbox, found, greedy)
        self.used = inner.used + time.perf_counter() - ended
        # With fewer rounds each has more of delta, and an earlier one might leave chance little enough.
        last = f"influence.sets={rounds.last.sets}", "influence.epsilon=0.0"
        replay = [*found.replay, *last] if found.replay else []
        return replace(answer, replay=replay if not toolbox.certain else found.replay)

    def _sample(
        self, toolbox: InfluenceTools, name: str, begun: float, kept: float
    ) -> tuple[np.ndarray, bool]:
        """Rounds until seeds are good enough, or the time or the room is up: the last one's greedy seeds, and
        whether it was the time. Ranks: all call.
        """
        rounds, seconds, self.seconds_to_judge = self.rounds, self.case.search.seconds, 0.0
        rounds.measure()
        d = toolbox.diffusion
        self.log.info("%s: %s, %d arcs that may be live", name, toolbox.asked.model, d.arcs)
        for number in range(rounds.fits):
            self.keeper.at(0)
            clock = time.perf_counter()
            made = rounds.make(number)
            took = time.perf_counter() - clock
            said = (
                "%s: %d sets: greedy seeds reach at least %.6g, none above %.6g; gap %.2f %%, %.2f by chance"
            )
            shown = made.lower, made.upper, 100 * made.gap, 100 * made.noise
            self.log.info(said, name, made.sets, *shown)
            if number == 0 and seconds:
                self.seconds_to_judge = self._seconds_to_judge(toolbox, made.seeds)
            if made.noise <= toolbox.asked.epsilon:
                return made.seeds, False
            room = SHARE * (seconds - kept - self.seconds_to_judge) - (time.perf_counter() - begun)
            late = np.array([bool(seconds) and 2.2 * took > room], dtype=np.int64)
            if self.group.broadcast(late)[0]:
                return made.seeds, True
        if rounds.fits < len(rounds.sizes):
            limit = self.case.memory.whole_graph_mb
            said = "%s: sampling ends at %d sets: memory.whole_graph_mb = %.0f would let in twice as many"
            self.log.info(said, name, made.sets, 2 * limit)
        elif not toolbox.certain:
            self.log.info("%s: sampling ends at influence.sets = %d", name, toolbox.asked.sets)
        return made.seeds, False

    def _seconds_to_judge(self, toolbox: InfluenceTools, seeds: np.ndarray) -> float:
        """About how long ranks take together for all simulations of CHOICES; rank 0's clock. Ranks: all."""
        count, clock = max(toolbox.worlds // TRIED, 1), time.perf_counter()
        toolbox.sampler.worlds(0, 0, count, np.flatnonzero(seeds))
        took = (time.perf_counter() - clock) * toolbox.worlds / count
        return self.group.first_number(CHOICES * took / self.group.size)

    def _judged(self, toolbox: InfluenceTools, found: Answer, greedy: np.ndarray | None) -> Answer:
        """What the pipeline has found of a collection, as an answer of the graph.

        greedy   seeds that the greedy alone has chosen by the same collection
        """
        rounds, last = self.rounds, self.rounds.last
        solution = toolbox.filled(found.solution)
        bound = None
        if found.bound is not None and self.case.search.bounds:
            bound = toolbox.in_worlds(min(rounds.upper, toolbox.upper(found.bound, last.sets, rounds.delta)))
        with self.log.phase("judge"):
            toolbox.judge(solution, self.dealt.worlds)
            if greedy is not None and (greedy != solution).any():
                toolbox.judge(greedy, self.dealt.worlds)
            value, by_greedy = toolbox.value(solution), None if greedy is None else toolbox.value(greedy)
        event = Event(found.seconds, value * toolbox.unit, None if bound is None else bound * toolbox.unit)
        method = f"{METHOD}, {found.method}" if found.method else METHOD
        return replace(
            found, solution=solution, value=value, bound=bound, method="" if bound is None else method,
            quick=by_greedy, trace=[*found.trace, event],
        )  # fmt: skip

    def told(self, toolbox: InfluenceTools, answer: Answer) -> dict[str, Any]:
        """What is known of the answer's spread, for its entry. Ranks: all call."""
        with self.log.phase("judge"):
            lower, sets = self.rounds.judge(answer.solution)
        upper = None if answer.bound is None else answer.bound * toolbox.unit
        gap = None if upper is None else gap_between(lower, upper)
        return {
            "gap": None if gap is None else round(gap, 6),
            "optimal": gap == 0 and toolbox.confidence == 1,
            "spread": {
                "model": toolbox.asked.model,
                "standard_error": float(f"{toolbox.error(answer.solution):.4g}"),
                "simulations": toolbox.worlds, "at_least": float(f"{lower:.8g}"),
                "confidence": toolbox.confidence, "sets": self.rounds.last.sets, "judges": sets,
            },
        }  # fmt: skip
