"""Learner: what the training loop (app/rl/training.py) asks of whatever learns, and what learners share."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from app.case.policy import AgentCase
from app.checkpoint.store import State
from app.comm.group import Group
from app.comm.guard import check_replicas
from app.errors import Diverged
from app.gnn.optim import Adam, optimiser_arrays, restore_optimiser
from app.gnn.parameters import Parameters
from app.native.library import keep_freed_memory
from app.rl.compiled_lesson import CompiledLessons
from app.rl.dynamics import DYNAMICS
from app.rl.env import Environment, codes_of
from app.rl.layouts import Layouts
from app.rl.qnet import QNetwork
from app.rng import key_of
from app.sparse.batch import StateBatch
from app.sparse.rowblock import RowBlock

Array = Any


@dataclass
class Lesson:
    """What one replica would have a gradient step follow: a loss, and its gradient [all weights], flat."""

    loss: float
    gradient: Array


class Learner:
    """A network whose scores choose nodes, and how its weights follow from the episodes it plays.

    A learner overrides `act`, `remember`, `ready` and `lessons`, and of the others what it needs.
    app/rl/learners.py maps names to classes.

    Of several replicas each is a learner with episodes and draws of its own. They take equally many gradient
    steps, on the mean of their lessons, so their weights stay the same.

    net, params   the network, and its weights: a view of one flat vector, replicated
    averaged      the moving average of the weights that agent.average asks for, replicated; or None
    optimiser     Adam on them; its `step` counts the gradient steps
    progress      share of the training that is over, 0 to 1, which whoever runs it says
    blocks        this rank's rows of the training graphs
    seed          of this replica's draws
    world         the ranks whose weights must agree: those of all replicas
    whole         what evaluates and learns in one compiled call, with the same bits; None where nothing can
    Ranks         every method is called by all ranks of `group`, those that share the graphs, with the same
                  arguments, and returns the same on all; `follow` by all ranks of `world`
    """

    name: ClassVar[str] = ""

    def __init__(
        self,
        group: Group,
        case: AgentCase,
        net: QNetwork,
        blocks: list[RowBlock],
        seed: int,
        check_every: int,
    ) -> None:
        self.group, self.case, self.net, self.blocks = group, case, net, blocks
        self.seed, self.check_every, self.world = seed, check_every, group
        keep_freed_memory()
        self.params = net.new_parameters(group.device, seed)
        self.averaged = self.params.copy() if case.average else None
        self.optimiser = self.new_optimiser(self.params.size)
        self.progress = 0.0
        self.dynamics = DYNAMICS[net.problem.dynamics]
        self.layouts = Layouts(group, blocks)
        served = CompiledLessons.serves(group, net, blocks)
        self.whole = CompiledLessons(group, net, self.params, blocks) if served else None

    def become(self, replica: int, world: Group) -> None:
        """Be one of several replicas, the first of which draws as a single one would."""
        self.world = world
        if replica > 0:
            self.seed = key_of(self.seed, "replica", replica)

    # ---- episodes ---------------------------------------------------------------------------------------

    def begins(self, number: int) -> bool:
        """Whether episode `number` may begin now; where not, its place stays empty until it may."""
        return True

    def draw_of(self, number: int) -> int:
        """The draw that decides which graph episode `number` plays: of equal draws equal graphs."""
        return number

    def begin(self, number: int, graph: int, env: Environment) -> None:
        """Episode `number` begins, on training graph `graph`."""

    def act(self, envs: list[Environment], graphs: list[int], step: int) -> np.ndarray:
        """[envs] int64 global nodes, one for each environment.

        graphs   [envs] the training graphs that they play
        step     environment steps made before
        """
        raise NotImplementedError

    def remember(self, number: int, node: int, reward: float, env: Environment) -> None:
        """Episode `number` chose a node and earned a reward; env stands after it."""

    def remember_all(
        self, numbers: list[int], nodes: list[int], rewards: list[float], envs: list[Environment]
    ) -> None:
        """`remember` of several episodes, one after the other."""
        for each in zip(numbers, nodes, rewards, envs):
            self.remember(*each)

    # ---- learning ---------------------------------------------------------------------------------------

    def ready(self) -> bool:
        """Whether there is something to learn from; once it is so, it stays so until it is learned from."""
        return False

    def lessons(self, steps: int) -> Iterator[Lesson]:
        """A lesson for every gradient step that is due after `steps` more environment steps.

        When the next one is asked for, the step for the last one has been taken. All replicas have equally
        many; they are asked when all are ready.
        """
        raise NotImplementedError

    def follow(self, lesson: Lesson) -> None:
        """A gradient step. Raises Diverged where the loss is not finite."""
        if not np.isfinite(lesson.loss):
            right = f"an agent.learning_rate below {self.case.learning_rate:g} would be right"
            raise Diverged(f"the loss of gradient step {self.optimiser.step + 1} is {lesson.loss}; {right}")
        self.update(lesson.gradient)
        self.check_weights()

    def update(self, gradient: Array) -> None:
        """The optimiser's step, and that of the average of the weights (Polyak and Juditsky 1992)."""
        self.optimiser.rate = self.rate()
        self.optimiser.update(self.params.flat, gradient)
        if self.averaged is not None:
            self.averaged.flat += (1 - self.case.average) * (self.params.flat - self.averaged.flat)

    def rate(self) -> float:
        """The step size by now."""
        first, last = self.case.learning_rate, self.case.learning_rate_end
        return first + self.progress * (last - first) if last else first

    @property
    def policy(self) -> Parameters:
        """The weights to evaluate and to keep: the average, or those that learn."""
        return self.params if self.averaged is None else self.averaged

    def new_optimiser(self, size: int) -> Adam:
        """The optimiser of the case for `size` parameters."""
        case, device = self.case, self.group.device
        return Adam(
            size, device.xp, case.learning_rate, case.adam_beta1, case.adam_beta2, case.adam_epsilon,
            kernel=device.adam,
        )  # fmt: skip

    def replicas(self) -> dict[str, np.ndarray]:
        """Host copies of what every rank holds alike and learning changes, by name."""
        get, optimiser = self.group.device.get, self.optimiser
        averaged = {"the average": get(self.averaged.flat)} if self.averaged is not None else {}
        return {**self.params.host(), "Adam's m": get(optimiser.m), "Adam's v": get(optimiser.v), **averaged}

    def check_weights(self) -> None:
        """Compare the replicas of all ranks of all replicas, every check_every gradient steps."""
        if self.check_every and self.optimiser.step % self.check_every == 0:
            what = f"the weights after {self.optimiser.step} gradient steps"
            check_replicas(self.world, self.replicas(), what)

    # ---- stopping and going on ----------------------------------------------------------------------------

    def state(self) -> State:
        """All that later steps depend on, on the host, the same on any number of ranks. Ranks: all call.

        A learner that keeps more than this adds to it; random streams are functions of counters.
        """
        device = self.group.device
        arrays = {"params": np.array(device.get(self.params.flat))}
        arrays |= optimiser_arrays(self.optimiser, device, "optimiser")
        if self.averaged is not None:
            arrays["averaged"] = np.array(device.get(self.averaged.flat))
        return State({"gradient_steps": self.optimiser.step}, arrays)

    def restore(self, state: State) -> None:
        """Make a new learner what `state` told of an earlier one. Ranks: all call."""
        device, step = self.group.device, state.values["gradient_steps"]
        self.params.flat[:] = device.put(state.arrays["params"])
        restore_optimiser(self.optimiser, device, "optimiser", step, state.arrays)
        if self.averaged is not None:
            self.averaged.flat[:] = device.put(state.arrays["averaged"])

    # ---- what is told of it -----------------------------------------------------------------------------

    def notes(self, step: int) -> dict[str, float]:
        """What else an evaluation records, by name."""
        return {}

    def stored(self) -> tuple[int, int]:
        """Transitions kept for learning, and the bytes that they take."""
        return 0, 0


def score_environments(
    net: QNetwork, params: Any, batch: StateBatch, envs: list[Environment]
) -> tuple[Array, Array]:
    """Scores [rows] and candidates [rows] bool of one state per environment. Ranks: all call."""
    every = net.paper and net.pools_to_choose
    code_own = batch.device.put(codes_of(envs, every))
    totals = [env.totals for env in envs]
    inputs = net.inputs(batch, code_own, totals, every)
    evaluation = net.evaluate(params, batch, inputs, totals, pool=False, keep=False)
    return net.local_scores(params, evaluation), code_own >= net.problem.first_candidate
