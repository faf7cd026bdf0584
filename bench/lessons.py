"""Minibatches of learners in a compiled call or two against the same products asked for one by one.

Both sides are `lesson` on the same minibatches, of the same bits: with `Learner.whole`, and without. The
memory of the deep Q-learner is filled by episodes of random choices. Whole steps hold acting and collecting.
"""

from collections.abc import Iterator

import numpy as np
import scipy

from app.case.config import Case
from app.case.graph import GraphCase
from app.case.policy import AgentCase, PolicyCase, TrainCase
from app.partition.generated import generate_set
from app.problems.table import make_problem
from app.rl.agent import Agent
from app.rl.dynamics import begin_environment
from app.rl.env import step_together
from app.rl.qnet import QNetwork
from app.rl.replay import EpisodeReplay
from app.rl.select import random_candidates
from app.rng import stream
from app.sparse.rowblock import RowBlock
from bench import subjects
from bench.environments import Loop
from bench.harness import Effort, Record, compare

SMALL = GraphCase(generator="ba", nodes=(50, 100), d=4, count=100)
SAMPLES, TRANSITIONS = 16, 2000
GOAL = ">= 4"
# problem, settings, minibatch, goal
SETTINGS = (
    ("mvc", {}, 16, GOAL), ("mvc", {"double": True}, 16, ""), ("mvc", {}, 64, ""), ("mis", {}, 16, GOAL),
    ("fvs", {}, 16, ""), ("mds", {}, 16, ""), ("maxcut", {}, 16, ""),
)  # fmt: skip
# learner, settings, what is compared, environments, steps, goal
LOOPS = (
    ("dqn", {"epsilon_start": 0.1}, "mvc, BA n=50-100 d=4, B=16", 1, 32, ">= 3"),
    ("ppo", {}, "mvc by ppo, BA n=50-100 d=4, B=16", 1, 512, ">= 2"),
    ("reinforce", {}, "mvc by reinforce, BA n=50-100 d=4, 16 rollouts", 8, 1024, ">= 1"),
)  # fmt: skip
LARGER = GraphCase(generator="ba", nodes=500, d=4, count=20)
LARGEST = GraphCase(generator="ba", nodes=1000, d=4, count=20)  # of 32 about the most rows of one call
DIVERSE = GraphCase(generator="diverse", nodes=(40, 200), count=45)  # as the weights that ship learn from
POINTS = GraphCase(generator="uniform_points", nodes=(40, 100), count=40)
PAPER = PolicyCase(
    features="paper", hidden=16, shared_layers=True, self_weight=False, mean_degree=False, edge_weights=True
)
# label, graphs, problem, policy, minibatch, goal
RECIPES = (
    ("mvc as in RL4GO, weights of edges, BA n=50-100 d=4, B=16", SMALL, "mvc", PAPER, 16, ">= 4"),
    ("mds as its weights learn, B=32", DIVERSE, "mds", PolicyCase(layers=3, dimension=48), 32, ""),
    ("maxcut as its weights learn, B=32", DIVERSE, "maxcut", PolicyCase(dimension=32), 32, ""),
    ("tsp as its weights learn, B=64", POINTS, "tsp", PolicyCase(), 64, ""),
    ("mvc, BA n=500 d=4, B=16", LARGER, "mvc", PolicyCase(), 16, ">= 1"),
    ("mvc, BA n=1,000 d=4, B=32", LARGEST, "mvc", PolicyCase(), 32, ">= 1"),
)  # fmt: skip


def about() -> dict[str, str]:
    """Versions that matter."""
    return {"numpy": np.__version__, "scipy": scipy.__version__}


def measure(effort: Effort, quick: bool) -> Iterator[Record]:
    """Small graphs of several problems, whole steps, shipped recipes, and larger graphs."""
    group = subjects.open_group()
    blocks = [RowBlock(group, each.graph, each.rows) for each in generate_set(group, SMALL, 1, "bench")]
    for problem, settings, batch, goal in SETTINGS[: 1 if quick else None]:
        net = QNetwork(PolicyCase(), make_problem(problem))
        agent = _filled(group, blocks, net, AgentCase(**settings), TRANSITIONS)
        double = ", double" if settings else ""
        yield _compare(f"{problem}, BA n=50-100 d=4, B={batch}{double}", agent, batch, effort, goal)
    for loop in LOOPS[: 1 if quick else None]:
        yield _loops(group, blocks, loop, effort)
    if quick:
        return
    yield _collected(group, blocks, effort)
    for label, graphs, problem, policy, batch, goal in RECIPES:
        blocks = [
            RowBlock(group, each.graph, each.rows, metric=each.metric)
            for each in generate_set(group, graphs, 1, "bench")
        ]
        agent = _filled(group, blocks, QNetwork(policy, make_problem(problem)), AgentCase(), TRANSITIONS)
        yield _compare(label, agent, batch, effort, goal)


def _compare(case: str, agent: Agent, batch: int, effort: Effort, goal: str) -> Record:
    """One agent's lessons, with and without the compiled call."""
    samples = subjects.draw_samples(agent, batch, SAMPLES)
    plain = Agent(agent.group, agent.case, agent.net, agent.blocks, agent.seed, 0)
    plain.whole = None
    if any(_told(agent, each) != _told(plain, each) for each in samples):
        raise RuntimeError(f"{case}: the two differ, so that their times say nothing")
    return compare(
        case, "product by product", lambda i: agent.lesson(samples[i % SAMPLES]),
        lambda i: plain.lesson(samples[i % SAMPLES]), effort, goal,
    )  # fmt: skip


def _loops(
    group: subjects.Group, blocks: list[RowBlock], loop: tuple[str, dict, str, int, int, str], effort: Effort
) -> Record:
    """Whole steps of Alg. 1: act, step, remember, learn; exploration at its later rate."""
    name, settings, label, environments, steps, goal = loop
    train = TrainCase(steps=1 << 30, environments=environments)
    case = Case(agent=AgentCase(learner=name, **settings), train=train, seed=1)
    ours, theirs = Loop(group, blocks, case), Loop(group, blocks, case)
    theirs.replica.learner.whole = None
    if name == "dqn":
        theirs.replica.learner.replay.compiled = False
    for each in (ours, theirs):
        each.run(case.agent.warmup)
    return compare(
        f"{label}, {steps} whole steps", "product by product",
        lambda i: ours.run(steps), lambda i: theirs.run(steps), effort, goal,
    )  # fmt: skip


def _collected(group: subjects.Group, blocks: list[RowBlock], effort: Effort) -> Record:
    """A hundred minibatches of 16 from the memory of episodes."""
    sides = [
        _filled(group, blocks, QNetwork(PAPER, make_problem("mvc")), AgentCase(), TRANSITIONS) for _ in "12"
    ]
    ours, theirs = (each.replay for each in sides)
    theirs.compiled = False

    def draw(replay: EpisodeReplay, i: int) -> None:
        for k in range(100):
            replay.sample(stream(1, "bench/samples", 100 * i + k), 16)

    return compare(
        "100 minibatches of 16 transitions", "collected one by one", lambda i: draw(ours, i),
        lambda i: draw(theirs, i), effort, ">= 1",
    )  # fmt: skip


def _told(agent: Agent, sample: subjects.Sample) -> bytes:
    """The bits of a lesson."""
    lesson = agent.lesson(sample)
    return np.float64(lesson.loss).tobytes() + lesson.gradient.tobytes()


def _filled(
    group: subjects.Group, blocks: list[RowBlock], net: QNetwork, case: AgentCase, transitions: int
) -> Agent:
    """A learner that remembers episodes of random choices."""
    agent, draws, number = Agent(group, case, net, blocks, 1, 0), stream(0, "bench/episodes"), 0
    while len(agent.replay) < transitions:
        graph = int(draws.integers(len(blocks)))
        env = begin_environment(group, blocks[graph], net.problem)
        agent.begin(number, graph, env)
        while not env.done:
            before = env.totals
            node = random_candidates(group, [env], [int(draws.integers(before.candidates))])
            step_together(group, [env], [node])
            reward = net.problem.reward(before, env.totals, 1, case.shaping)
            agent.remember(number, int(node[0]), reward, env)
        number += 1
    return agent
