"""The pipeline of questions whose values can only be sampled: influence maximisation, one instance at a time.

Collections of reverse reachable sets are drawn, each twice as large (app/search/influence/rounds.py),
dealt to the ranks set by set. The last one is a maximum coverage, and is answered as such by the usual
pipeline: a search by exchanges, bounds by prices. Of what that proves of the collection follows, with the
probability that is asked for, what no seeds exceed. The answer is judged by sets that nothing has seen,
and its objective by cascades forward.
"""

import math
import time
from dataclasses import replace
from typing import Any

import numpy as np
from msgspec import structs

from app.case.config import Case
from app.checkpoint.keeper import NOTHING_KEPT, Keeper
from app.comm.group import Group
from app.comm.guard import raise_together
from app.errors import Stopped
from app.log import Log
from app.search.influence.baselines import INFLUENCE_BASELINES
from app.search.influence.rounds import JUDGES, ROUND_COST, SMALLER, Round, Rounds, Sets, gap_between
from app.search.influence.tools import InfluenceTools
from app.solver.pipeline import Answer, Pipeline
from app.solver.progress import Event

SHARE, LEAST_SHARE = 0.3, 0.15  # of a time limit, that rounds may take, and the first one in any case
MEASURED = 0.05  # of a time limit, that sets may take which tell of others
AGAIN = 0.5  # of what a search has left of a time limit: further rounds that would take longer are not begun
JUDGED, FEWEST = 0.25, 32  # of a time limit, for simulations: else there are fewer, but so many at least
CHOICES = 2  # of seeds that are judged by all simulations, the greedy one and the answer
RULE_SECONDS = 4e-7  # of a plain choice of seeds, for each node and arc, about
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
        self.dealt, self.next, self.fewer = Dealt(self.group, toolbox), 0, []
        self.rounds = rounds = Rounds(toolbox, self.dealt)
        with self.log.phase("sample"):
            self._measure(toolbox, name, begun, kept)
            made, stopped_by_clock = self._sample(toolbox, name, begun, SHARE, kept)
        if self.seconds_to_judge:  # each of the plain choices is judged by one rank
            alone = self.seconds_to_judge * self.group.size / CHOICES
            chosen = RULE_SECONDS * (toolbox.graph.n + toolbox.diffusion.arcs)
            toolbox.baseline_seconds = dict.fromkeys(INFLUENCE_BASELINES, alone + chosen)
        if stopped_by_clock:
            self.log.info("%s: the rest of the time is for the last collection", name)
        found: Answer | None = None
        self.least = math.inf, None  # of all searches what no seeds exceed, and the answer that tells it
        while True:
            keeps = kept + self.seconds_to_judge + self.group.first_number(JUDGES * rounds.judging)
            try:
                found = self._search(toolbox, name, given, time.perf_counter() - begun, keeps)
            except Stopped as stopped:
                so_far = found if stopped.so_far is None else stopped.so_far
                stopped.so_far = None if so_far is None else self._judged(toolbox, so_far, None)
                raise
            ended = time.perf_counter()
            self._take_bound(toolbox, found)
            if not self._goes_on(toolbox, made, begun, keeps):
                break
            self.log.info("%s: %d sets have nothing left to find: more are drawn", name, rounds.last.sets)
            with self.log.phase("sample"):
                made, _ = self._sample(toolbox, name, begun, 1.0, keeps)
        answer = self._judged(toolbox, found, made.seeds)
        self.used = self._used + time.perf_counter() - ended
        # With fewer rounds each has more of delta, and an earlier one might leave chance little enough.
        last = f"influence.sets={rounds.last.sets}", "influence.epsilon=0.0", *self.fewer
        replay = [*found.replay, *last] if found.replay else []
        return replace(answer, replay=replay if not toolbox.certain else found.replay)

    def _search(
        self, toolbox: InfluenceTools, name: str, given: np.ndarray | None, spent: float, kept: float
    ) -> Answer:
        """The usual pipeline on the last collection. Ranks: all call."""
        # A collection has sets that are alike joined already; reductions of what is left would take long.
        case = structs.replace(self.case, search=structs.replace(self.case.search, reductions=False))
        if not toolbox.certain:
            said = "%s: the search sees these %d sets alone: its best and its bound are estimates by them"
            self.log.info(said, name, self.rounds.last.sets)
        inner = Pipeline(self.group, self.log, case, None, None, self.keeper)
        found = inner.answer(self.rounds.last, name, given, spent, kept)
        self._used = inner.used
        return found

    def _take_bound(self, toolbox: InfluenceTools, found: Answer) -> None:
        """What a search has proved of its collection, where no search before has told more of all seeds."""
        if found.bound is not None:
            upper = toolbox.upper(found.bound, self.rounds.last.sets, self.rounds.delta)
            self.least = min(self.least, (upper, found), key=lambda each: each[0])

    def _goes_on(self, toolbox: InfluenceTools, made: Round, begun: float, kept: float) -> bool:
        """Whether a search has left time for a larger collection, by rank 0's clock, however little
        the last one leaves to chance. Ranks: all call.
        """
        seconds = self.case.search.seconds
        if not seconds or not made.noise or self.next >= self.rounds.fits:
            return False
        left = seconds - kept - (time.perf_counter() - begun)
        late = np.array([2.2 * self.took > AGAIN * left], dtype=np.int64)
        return self.keeper.recall("search") is None and not self.group.broadcast(late)[0]

    def _measure(self, toolbox: InfluenceTools, name: str, begun: float, kept: float) -> None:
        """How many sets fit memory, and a time limit, by rank 0's clock. Ranks: all call."""
        seconds, rounds = self.case.search.seconds, self.rounds
        if not seconds:
            return rounds.measure()

        def late() -> bool:
            used = time.perf_counter() - begun
            return bool(self.group.broadcast(np.array([used > MEASURED * seconds], dtype=np.int64))[0])

        rounds.measure(late)
        room = max(SHARE * (seconds - kept) - (time.perf_counter() - begun), LEAST_SHARE * seconds)
        costs = np.array([ROUND_COST * rounds.each * each > room for each in (rounds.sizes[0], *SMALLER)])
        least = int(self.group.broadcast(np.append(costs[:-1], False).astype(np.int64)).argmin())
        if least and rounds.sizes[0] > SMALLER[least - 1] and not toolbox.certain:
            rounds.only(SMALLER[least - 1])
            self.log.info("%s: there is time for %d sets alone", name, SMALLER[least - 1])

    def _sample(
        self, toolbox: InfluenceTools, name: str, begun: float, share: float, kept: float
    ) -> tuple[Round, bool]:
        """Rounds until seeds are good enough, or the time or the room is up: the last one, and whether it was
        the time. Ranks: all call.

        share   of a time limit, less `kept` seconds, that is over at the end
        """
        rounds, seconds, d = self.rounds, self.case.search.seconds, toolbox.diffusion
        if not self.next:
            self.seconds_to_judge = 0.0
            self.log.info("%s: %s, %d arcs that may be live", name, toolbox.asked.model, d.arcs)
        for number in range(self.next, rounds.fits):
            self.keeper.at(0)
            clock = time.perf_counter()
            made, self.next = rounds.make(number), number + 1
            self.took = time.perf_counter() - clock
            said = (
                "%s: %d sets: greedy seeds reach at least %.6g, none above %.6g; gap %.2f %%, %.2f by chance"
            )
            shown = made.lower, made.upper, 100 * made.gap, 100 * made.noise
            self.log.info(said, name, made.sets, *shown)
            if number == 0 and seconds:
                self._plan_to_judge(toolbox, name, made.seeds)
            if made.noise <= toolbox.asked.epsilon:
                return made, False
            judging = self.seconds_to_judge if share < 1 else 0.0  # `kept` has it then
            room = share * (seconds - kept - judging) - (time.perf_counter() - begun)
            room *= 1.0 if share < 1 else AGAIN
            late = np.array([bool(seconds) and 2.2 * self.took > room], dtype=np.int64)
            if self.group.broadcast(late)[0]:
                return made, True
        if rounds.fits < len(rounds.sizes):
            limit = self.case.memory.whole_graph_mb
            said = "%s: sampling ends at %d sets: memory.whole_graph_mb = %g would let in twice as many"
            self.log.info(said, name, made.sets, 2 * limit)
        elif not toolbox.certain:
            self.log.info("%s: sampling ends at %d sets", name, made.sets)
        return made, False

    def _plan_to_judge(self, toolbox: InfluenceTools, name: str, seeds: np.ndarray) -> None:
        """What simulations of the answer will take; fewer of them where that is too much. Ranks: all call."""
        needed, most = self._seconds_to_judge(toolbox, seeds), JUDGED * self.case.search.seconds
        if needed > most and toolbox.worlds > FEWEST:
            fewer = max(int(toolbox.worlds * most / needed), FEWEST)
            needed *= fewer / toolbox.worlds
            toolbox.simulate(fewer)
            self.fewer = [f"influence.simulations={fewer}"]
            self.log.info("%s: there is time for %d simulations", name, fewer)
        self.seconds_to_judge = needed

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
        solution = toolbox.filled(found.solution)
        self._take_bound(toolbox, found)
        (upper, teller), bound = self.least, None
        if teller is not None and self.case.search.bounds:
            bound = toolbox.in_worlds(min(self.rounds.upper, upper))
            found = replace(
                found, method=teller.method, verified=teller.verified, certificate=teller.certificate
            )
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
