"""Training on small graphs with many environments at once, against one: seconds for equally many transitions.

Both sides are the whole loop of Alg. 1 on the same graphs, with the same minibatch and gradient steps per
transition; exploration is at its later rate, so that most choices ask the network. A gradient step costs both
sides the same, and the more of them there are, the closer the two: "a transition is learned from k times" is
batch * gradient steps / transitions. The paper makes one gradient step per transition.
"""

from collections.abc import Iterator

import numpy as np
import scipy

from app.case.config import Case
from app.case.graph import GraphCase
from app.case.policy import AgentCase, PolicyCase, ProblemCase, TrainCase
from app.gnn.stopwatch import Stopwatch
from app.partition.generated import generate_set
from app.problems.table import make_problem
from app.rl.learners import find_learner
from app.rl.qnet import QNetwork
from app.rl.replica import Replica
from app.sparse.rowblock import RowBlock
from bench import subjects
from bench.harness import Effort, Record, compare

MANY = 32
GRAPHS = {
    "BA n=50-100 d=4": GraphCase(generator="ba", nodes=(50, 100), d=4, count=50),
    "ER n=50-100 p=.15": GraphCase(generator="er", nodes=(50, 100), p=0.15, count=50),
}
GOAL = ">= 5"
# problem, minibatch, transitions per gradient step (0: it only plays), transitions timed, goal
SETTINGS = (
    ("mvc", 64, 0, 640, ""), ("mvc", 64, 128, 1280, GOAL), ("mvc", 64, 64, 1280, ""),
    ("mvc", 16, 32, 640, GOAL), ("mvc", 64, 1, 64, ""), ("mis", 64, 128, 1280, GOAL),
)  # fmt: skip


def about() -> dict[str, str]:
    """Versions that matter."""
    return {"numpy": np.__version__, "scipy": scipy.__version__}


class Loop:
    """Alg. 1 on one rank, a stretch at a time."""

    def __init__(self, group: subjects.Group, blocks: list[RowBlock], case: Case) -> None:
        net = QNetwork(case.policy, make_problem(case.problem.name))
        learner = find_learner(case.agent.learner)(group, case.agent, net, blocks, case.seed, 0)
        self.replica = Replica(case, learner, Stopwatch(group.device))
        self.replica.renew()

    def run(self, transitions: int) -> None:
        """Act, remember, sample and train, until so many transitions were made."""
        replica = self.replica
        until = replica.step + transitions
        while replica.step < until:
            replica.act()
            replica.remember()
            if replica.learner.ready():
                for lesson in replica.lessons():
                    replica.learner.follow(lesson)
            replica.renew()


def measure(effort: Effort, quick: bool) -> Iterator[Record]:
    """Every setting on both kinds of graphs."""
    group = subjects.open_group()
    for name, table in list(GRAPHS.items())[: 1 if quick else None]:
        loaded = generate_set(group, table, 1, "training")
        blocks = [RowBlock(group, each.graph, each.rows, "auto", PolicyCase().dimension) for each in loaded]
        for setting in SETTINGS[: 2 if quick else None]:
            yield _compared(group, name, blocks, setting, effort)


def _compared(
    group: subjects.Group, name: str, blocks: list[RowBlock], setting: tuple[str, int, int, int, str],
    effort: Effort,
) -> Record:  # fmt: skip
    """One setting, after every environment has come to its second graph."""
    problem, batch, every, transitions, goal = setting
    many, one = (
        Loop(group, blocks, _case(problem, batch, every, environments)) for environments in (MANY, 1)
    )
    for loop in (many, one):
        loop.run(MANY * 80)
    rate = f"a gradient step per {every}" if every else "none, it only plays"
    if every:
        rate += f", learned from {batch / every:g} times"
    return compare(
        f"{problem}, {name}, B={batch}", f"one environment; {rate}",
        lambda i: many.run(transitions), lambda i: one.run(transitions), effort, goal,
        f"{transitions} transitions",
    )  # fmt: skip


def _case(problem: str, batch: int, every: int, environments: int) -> Case:
    agent = AgentCase(
        batch=batch, gradient_steps=int(every > 0), train_every=max(every, 1), epsilon_start=0.1,
        epsilon_end=0.1,
    )  # fmt: skip
    train = TrainCase(environments=environments)
    return Case(seed=1, problem=ProblemCase(name=problem), agent=agent, train=train)
