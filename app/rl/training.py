"""Training: RL4GO Alg. 1 on row partitions, from the first episode to the best weights seen.

One agent plays and learns, or several replicas of it do (data parallelism, as Gorila): see `train_policy`.
"""

import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec
import numpy as np

from app.case.config import Case
from app.case.policy import AgentCase
from app.checkpoint.keeper import NOTHING_KEPT, Keeper
from app.checkpoint.led import by_first
from app.checkpoint.shared import share_state
from app.checkpoint.store import State
from app.comm.grid import Grid, cut_grid
from app.comm.group import Group
from app.comm.guard import each_by_itself, raise_together
from app.errors import CaseError, Diverged, GraphError
from app.gnn.stopwatch import Stopwatch
from app.memory.tiers import TierBudget
from app.problems.problem import Problem, better
from app.rl.learner import Learner, Lesson
from app.rl.learners import find_learner
from app.rl.qnet import QNetwork
from app.rl.replay import paper_bytes
from app.rl.replica import OTHERS, Replica
from app.rl.rollout import judged, one_at_a_time
from app.sparse.rowblock import RowBlock
from app.text import counted

Recorder = Callable[[dict[str, float]], None]
Snapshot = Callable[[int, dict[str, np.ndarray]], None]
Teller = Callable[[int, int, int], None]


@dataclass
class Training:
    """What training leaves: the best weights on held-back graphs, and how they were reached.

    best_values   [held-back graphs] their objectives, as `solve` states them; best_total: the sum
    """

    net: QNetwork
    weights: dict[str, np.ndarray]
    best_step: int
    best_total: float
    best_values: list[float] = field(default_factory=list)
    records: list[dict[str, float]] = field(default_factory=list)
    replay_bytes: int = 0
    paper_replay_bytes: int = 0


@dataclass(frozen=True)
class Observers:
    """Who follows a training.

    record    called with each evaluation: step, loss, episodes, objective on the held-back graphs, and the
              learner's notes
    snapshot  called with each evaluation: step and host copies of the weights
    tell      called during an evaluation: held-back graphs that are solved, all of them, nodes chosen, each
              of this rank's group
    enough    asked after each evaluation, the same on all ranks: True ends the training
    watch     takes the seconds of the "agent" (acting, learning), of the "environment" (beginning, stepping,
              remembering), as in RL4GO Table 3, and of "all", waiting for other groups included; evaluations
              are in none of them
    """

    record: Recorder = lambda row: None
    snapshot: Snapshot = lambda step, weights: None
    tell: Teller = lambda graphs, all_graphs, nodes: None
    enough: Callable[[], bool] = lambda: False
    watch: Stopwatch | None = None


NOBODY = Observers()


def train_policy(
    group: Group,
    case: Case,
    problem: Problem,
    blocks: list[RowBlock],
    held_back: list[RowBlock],
    observers: Observers = NOBODY,
    keeper: Keeper = NOTHING_KEPT,
    grid: Grid | None = None,
) -> Training:
    """Learn a policy on the graphs `blocks`, keeping the weights that do best on `held_back`.

    The learner that agent.learner names (app/rl/learner.py) decides how to act and when to learn.

    Replicas of the agent (parallel.data) have environments, memory and draws of their own and the same
    weights: a gradient step is on the mean of their lessons. agent.batch and rollout_steps are shared out, so
    that one replica and several have equally large minibatches. The groups of a grid play some of them each.

    group     the ranks that share the graphs; of a grid, those of its group
    keeper    where the loop may be stopped, and what it goes on from
    grid      None: one group, which plays all replicas in turn; unsplit: every rank of a group learns the
              same by itself or, with one replica, the first one for all while they rest; each evaluates a
              share of the held-back graphs
    Source    RL4GO Alg. 1; several replicas: section 3.2 (Gorila with synchronous sums)
    Ranks     all call; every rank holds its rows of every graph; the result is identical on all
    """
    none = "none of them lacks an edge" if problem.complemented else "none of them has an edge"
    if not any(block.edges for block in blocks):
        raise GraphError(f"training graphs: {none}, there is nothing to learn; {OTHERS}")
    if held_back and not any(block.edges for block in held_back):
        raise GraphError(f"held-back graphs: {none}, there is nothing to judge weights by (train.held_back)")
    grid, watch = grid or cut_grid(group, case.parallel.data, 1), observers.watch or Stopwatch(group.device)
    replicas = _make_replicas(grid, case, problem, blocks, watch)
    course = _Course(grid, case, replicas, held_back, observers, keeper, watch)
    course.run()
    stored, course.result.replay_bytes = _stored(grid, replicas)
    mean_nodes = sum(b.n for b in blocks) / len(blocks)
    course.result.paper_replay_bytes = paper_bytes(stored, mean_nodes, group.size)
    return course.result


@dataclass
class _SoFar:
    """Where a training is: steps made, evaluations due before them, losses since the last evaluation."""

    step: int = 0
    evaluated: int = -1
    losses: list[float] = field(default_factory=list)


@contextmanager
def _saying_when(so_far: _SoFar) -> Iterator[None]:
    """Around a training: where it was when it left the finite numbers."""
    try:
        yield
    except Diverged as error:
        raise Diverged(f"training, after {counted(so_far.step, 'step')}: {error}") from None


class _Course:
    """A training under way: the replicas of this rank's group, how far they are, the best weights so far.

    Ranks   all call its methods
    """

    def __init__(
        self, grid: Grid, case: Case, replicas: list[Replica], held_back: list[RowBlock],
        observers: Observers, keeper: Keeper, watch: Stopwatch,
    ) -> None:  # fmt: skip
        self.grid, self.case, self.replicas, self.held_back = grid, case, replicas, held_back
        self.observers, self.keeper, self.watch = observers, keeper, watch
        self.learner = learner = replicas[0].learner
        self.result = Training(learner.net, learner.policy.host(), best_step=0, best_total=-1)
        self.so_far = _begun(grid, replicas, self.result, keeper.recall("train"))

    def run(self) -> None:
        """Play and learn, evaluate, and so on until all steps are made, or enough."""
        steps, so_far, over = self.case.train.steps, self.so_far, False
        with _saying_when(so_far):
            while not over:
                if self.grid.led is None:
                    self.play()
                else:
                    by_first(self.grid.led, self.keeper, "training", self.play)
                    _catch_up(self.grid.led, self.learner, so_far)
                over = so_far.step >= steps
                step = steps if over else so_far.step
                self.evaluate(step)
                so_far.evaluated, so_far.losses = so_far.step // self.case.train.evaluate_every, []
                self.observers.snapshot(step, self.learner.policy.host())
                over = over or self.observers.enough()

    def play(self) -> None:
        """Play and learn until an evaluation is due.

        Ranks   all call, or the first one that leads the others (Grid.led)
        """
        grid, replicas, so_far, watch = self.grid, self.replicas, self.so_far, self.watch
        steps, every = self.case.train.steps, self.case.train.evaluate_every
        while so_far.step < steps and so_far.step // every <= so_far.evaluated:
            self.look()
            with watch("all"):
                # Act and remember, each replica in its own environments
                _act(grid, replicas, watch)
                counts = [sum(r.step for r in replicas), sum(r.learner.ready() for r in replicas)]
                made, ready = grid.total(counts)
                so_far.step = made // grid.replicas

                # Sample and train, when all replicas are ready: together
                if ready == grid.replicas:
                    with watch("agent"):
                        so_far.losses += _learn(grid, replicas, min(so_far.step / steps, 1.0))

                # Next episode where one is done
                with watch("environment"):
                    _renew(grid, replicas)

    def look(self) -> None:
        """Save, stop, go on: during an evaluation all is as it was before it."""
        tell_state = partial(_state, self.grid, self.replicas, self.result, self.so_far)
        self.keeper.at(self.so_far.step, "train", tell_state)

    def evaluate(self, step: int) -> None:
        """Solve the held-back graphs greedily; keep the weights when no earlier ones did as well."""
        grid, result, losses = self.grid, self.result, self.so_far.losses
        problem, begun = self.learner.net.problem, sum(r.begun for r in self.replicas)
        values = self._held_back()
        total, (episodes,) = whole_or_float(math.fsum(values)), grid.total([begun])
        if not result.records or _does_better(problem, values, result, self.case.train.judge):
            result.best_values, result.best_total, result.best_step = values, total, step
            result.weights = self.learner.policy.host()
        row: dict[str, Any] = {
            "step": step,
            "episodes": episodes,
            "gradient_steps": self.learner.optimiser.step,
            **_mean_notes(grid, self.replicas, step),
            "loss": sum(losses) / len(losses) if losses else math.nan,
            "held_back_nodes": total,
            "best_step": result.best_step,
        }
        if grid.led is not None:  # what was learned is the first rank's
            row = json.loads(grid.led.broadcast_text(json.dumps(row)))
        result.records.append(row)
        self.observers.record(row)

    def _held_back(self) -> list[float]:
        """The objectives of the held-back graphs, in no unit of theirs; identical on all ranks."""
        beside, learner = self.grid.beside, self.learner
        share = slice(beside.rank, None, beside.size)
        mine, values = self.held_back[share], np.zeros(len(self.held_back))
        with raise_together(beside, "evaluating"):
            envs, pieces = one_at_a_time(learner.group, learner.net, learner.policy, mine)
        for _ in self.grid.in_step(pieces, "evaluating"):
            solved, chosen = sum(env.done for env in envs), sum(env.steps for env in envs)
            self.observers.tell(solved, len(envs), chosen)
            self.look()
        values[share] = [judged(env) for env in envs]
        # One of those beside each other has a graph's value, the others have zeros, whose bits are zeros.
        return beside.sum_integers(values.view(np.int64)).view(np.float64).tolist()


def _catch_up(led: Group, learner: Learner, so_far: _SoFar) -> None:
    """How far the first rank has come, on those that rested. Ranks: all call."""
    so_far.step, so_far.losses = json.loads(led.broadcast_text(json.dumps([so_far.step, so_far.losses])))
    policy = learner.policy
    policy.flat[:] = led.device.put(led.broadcast(np.array(led.device.get(policy.flat))))


def _stored(grid: Grid, replicas: list[Replica]) -> list[int]:
    """Transitions in memory, and the bytes that these take, of all replicas. Ranks: all call."""
    mine = np.sum([replica.learner.stored() for replica in replicas], axis=0)
    return (grid.led.broadcast(mine).tolist()) if grid.led else grid.total(mine)


def _make_replicas(
    grid: Grid, case: Case, problem: Problem, blocks: list[RowBlock], watch: Stopwatch
) -> list[Replica]:
    """The replicas of this rank's group. Ranks: all call."""
    net, agent = limited_network(grid.group, case, problem), share_of(case.agent, grid.replicas)
    kind, replicas = find_learner(agent.learner), []
    for number in grid.mine:
        check_every = 0 if replicas else case.run.check_every
        learner = kind(grid.group, agent, net, blocks, case.seed, check_every)
        learner.become(number, grid.world if grid.led is None else grid.group)
        if replicas:
            learner.layouts = replicas[0].learner.layouts
        replicas.append(Replica(case, learner, watch))
    return replicas


def limited_network(group: Group, case: Case, problem: Problem) -> QNetwork:
    """The network of a case, its arrays under the limit of fast memory."""
    net = QNetwork(case.policy, problem)
    if case.memory.fast_mb:
        net.limit_memory(group.device, TierBudget.of(case.memory))
    return net


def _act(grid: Grid, replicas: list[Replica], watch: Stopwatch) -> None:
    """A step of every environment of each replica, remembered. Ranks: all call."""
    with grid.together("playing"):
        for replica in replicas:
            replica.act()
            with watch("environment"):
                replica.remember()


def _renew(grid: Grid, replicas: list[Replica]) -> None:
    """New episodes in the places of those that are done. Ranks: all call."""
    with grid.together("beginning episodes"):
        for replica in replicas:
            replica.renew()


def share_of(agent: AgentCase, replicas: int) -> AgentCase:
    """What one of several replicas does: its share of the samples of a gradient step. Raises CaseError."""
    if agent.batch % replicas and agent.learner != "reinforce":
        raise CaseError(
            f"agent.batch: must be a multiple of parallel.data = {replicas}, that every replica has an equal "
            f"share; got {agent.batch}"
        )
    batch = max(agent.batch // replicas, 1)
    steps = -(-agent.rollout_steps // replicas)
    return msgspec.structs.replace(agent, batch=batch, rollout_steps=steps)


def _learn(grid: Grid, replicas: list[Replica], progress: float) -> list[float]:
    """The gradient steps that are due, the same in all replicas; returns their losses. Ranks: all call."""
    for replica in replicas:
        replica.learner.progress = progress
    losses, plans = [], [replica.lessons() for replica in replicas]
    while True:
        with grid.together("learning"):
            lessons = [next(plan, None) for plan in plans]
        if lessons[0] is None:
            return losses
        lesson = mean_lesson(grid, lessons)
        for replica in replicas:
            replica.learner.follow(lesson)
        losses.append(lesson.loss)


def mean_lesson(grid: Grid, lessons: list[Lesson]) -> Lesson:
    """The mean over all replicas, from the lessons of those of this group. Ranks: all call."""
    if grid.replicas == 1:
        return lessons[0]
    device = grid.group.device
    xp = device.xp
    rows = [xp.concatenate([each.gradient, _one(xp, each.loss)]) for each in lessons]
    mean = grid.mean(rows)
    return Lesson(float(device.get(mean[-1:])[0]), mean[:-1])


def _one(xp: Any, value: float) -> Any:
    return xp.full(1, value, dtype=xp.float32)


def whole_or_float(value: float) -> float:
    """A whole number that float64 tells from its neighbours as an int."""
    return int(value) if abs(value) < 2**53 and value == int(value) else value


def _does_better(problem: Problem, values: list[float], result: Training, judge: str) -> bool:
    """Whether objectives [k] are better than those of the best weights so far.

    judge   "total": their sum is; "ratio": the mean of the changes is, each over the larger of the two
    """
    if judge == "total":
        return better(problem, math.fsum(values), result.best_total)
    changes = [(new - old) / (max(abs(new), abs(old)) or 1) for new, old in zip(values, result.best_values)]
    return better(problem, math.fsum(changes), 0.0)


def _mean_notes(grid: Grid, replicas: list[Replica], step: int) -> dict[str, float]:
    """What learners note, the means over replicas. Ranks: all call."""
    notes = [replica.learner.notes(step) for replica in replicas]
    if grid.replicas == 1:
        return notes[0]
    means = grid.means(np.array([list(each.values()) for each in notes]).reshape(len(notes), -1))
    return dict(zip(notes[0], means.tolist()))


# ---- stopping and going on --------------------------------------------------------------------------------


def _begun(grid: Grid, replicas: list[Replica], result: Training, earlier: State | None) -> _SoFar:
    """Where training goes on, or begins; of ranks that are led the first one plays. Ranks: all call."""
    mine = replicas if grid.led is None or grid.led.rank == 0 else []
    with each_by_itself(grid.led, "beginning to train"):
        if earlier is not None:
            return _restore(grid, mine, result, earlier)
        _renew(grid, mine)
        return _SoFar()


def _state(grid: Grid, replicas: list[Replica], result: Training, so_far: _SoFar) -> State:
    """All that the steps from here on depend on, the same on all ranks of all groups, or that of the first
    one, which leads the others. Ranks: all call.
    """
    mine = dict(zip(grid.mine, [replica.state() for replica in replicas]))
    every = [share_state(grid.across, mine.get(r), grid.owner(r)) for r in range(grid.replicas)]
    values = {
        "step": so_far.step, "evaluated": so_far.evaluated, "losses": so_far.losses,
        "best_step": result.best_step, "best_total": result.best_total, "records": result.records,
        "best_values": result.best_values,
        "replicas": [each.values for each in every],
    }  # fmt: skip
    arrays = {f"best/{name}": each for name, each in result.weights.items()}
    for number, each in enumerate(every):
        arrays |= {f"{number}/{name}": array for name, array in each.arrays.items()}
    return State(values, arrays)


def _restore(grid: Grid, replicas: list[Replica], result: Training, state: State) -> _SoFar:
    """Step, evaluations and losses, as `_state` told them. Ranks: all call."""
    values = state.values
    arrays: dict[str, dict[str, np.ndarray]] = {}
    for name, each in state.arrays.items():
        part, _, rest = name.partition("/")
        arrays.setdefault(part, {})[rest] = each
    for number, replica in zip(grid.mine, replicas):
        replica.restore(State(values["replicas"][number], arrays[str(number)]))
    result.weights, result.records = arrays["best"], list(values["records"])
    result.best_step, result.best_total = values["best_step"], values["best_total"]
    result.best_values = values.get("best_values", [])
    return _SoFar(values["step"], values["evaluated"], list(values["losses"]))
