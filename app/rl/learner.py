"""Learner: what the training loop (app/rl/training.py) asks of whatever learns, and what learners share."""

from typing import Any, ClassVar

import numpy as np

from app.checkpoint.store import State
from app.comm.group import Group
from app.comm.guard import check_replicas
from app.config import AgentCase
from app.gnn.optim import Adam, optimiser_arrays, restore_optimiser
from app.native.library import keep_freed_memory
from app.rl.dynamics import DYNAMICS
from app.rl.env import Environment
from app.rl.layouts import Layouts
from app.rl.qnet import QNetwork
from app.sparse.rowblock import RowBlock

Array = Any


class Learner:
    """A network whose scores choose nodes, and how its weights follow from the episodes it plays.

    A learner overrides `act`, `remember` and `learn_when_due`, and of the others what it needs.
    app/rl/learners.py maps names to classes.

    net, params   the network, and its weights: a view of one flat vector, replicated
    optimiser     Adam on them; its `step` counts the gradient steps
    blocks        this rank's rows of the training graphs
    Ranks         every method is called by all ranks with the same arguments, and returns the same on all
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
        self.seed, self.check_every = seed, check_every
        keep_freed_memory()
        self.params = net.new_parameters(group.device, seed)
        self.optimiser = self.new_optimiser(self.params.size)
        self.dynamics = DYNAMICS[net.problem.dynamics]
        self.layouts = Layouts(group, blocks)

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

    # ---- learning ---------------------------------------------------------------------------------------

    def learn_when_due(self, steps: int) -> list[float]:
        """After `steps` more environment steps, the losses of the gradient steps that were due."""
        raise NotImplementedError

    def new_optimiser(self, size: int) -> Adam:
        """The optimiser of the case for `size` parameters."""
        case = self.case
        return Adam(
            size, self.group.device.xp, case.learning_rate, case.adam_beta1, case.adam_beta2,
            case.adam_epsilon,
        )  # fmt: skip

    def replicas(self) -> dict[str, np.ndarray]:
        """Host copies of what every rank holds alike and learning changes, by name."""
        get, optimiser = self.group.device.get, self.optimiser
        return {**self.params.host(), "Adam's m": get(optimiser.m), "Adam's v": get(optimiser.v)}

    def check_weights(self) -> None:
        """Compare the replicas of all ranks, every check_every gradient steps."""
        if self.check_every and self.optimiser.step % self.check_every == 0:
            what = f"the weights after {self.optimiser.step} gradient steps"
            check_replicas(self.group, self.replicas(), what)

    # ---- stopping and going on ----------------------------------------------------------------------------

    def state(self) -> State:
        """All that later steps depend on, on the host, the same on any number of ranks. Ranks: all call.

        A learner that keeps more than this adds to it; random streams are functions of counters.
        """
        device = self.group.device
        arrays = {"params": np.array(device.get(self.params.flat))}
        arrays |= optimiser_arrays(self.optimiser, device, "optimiser")
        return State({"gradient_steps": self.optimiser.step}, arrays)

    def restore(self, state: State) -> None:
        """Make a new learner what `state` told of an earlier one. Ranks: all call."""
        device, step = self.group.device, state.values["gradient_steps"]
        self.params.flat[:] = device.put(state.arrays["params"])
        restore_optimiser(self.optimiser, device, "optimiser", step, state.arrays)

    # ---- what is told of it -----------------------------------------------------------------------------

    def notes(self, step: int) -> dict[str, float]:
        """What else an evaluation records, by name."""
        return {}

    def stored(self) -> tuple[int, int]:
        """Transitions kept for learning, and the bytes that they take."""
        return 0, 0
