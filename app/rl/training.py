"""Training: RL4GO Alg. 1 on row partitions, from the first episode to the best weights seen."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from app.comm.group import Group
from app.config import Case
from app.errors import GraphError, LockstepError
from app.memory.tiers import Budget
from app.problems.problem import Problem, better
from app.rl.dynamics import begin_environment
from app.rl.env import Environment, step_together
from app.rl.learner import Learner
from app.rl.learners import find_learner
from app.rl.qnet import QNetwork
from app.rl.replay import paper_bytes
from app.rl.rollout import cover_one_at_a_time
from app.rng import stream
from app.sparse.rowblock import RowBlock


@dataclass
class Training:
    """What training leaves: the best weights on held-back graphs, and how they were reached."""

    net: QNetwork
    weights: dict[str, np.ndarray]
    best_step: int
    best_total: int
    records: list[dict[str, float]] = field(default_factory=list)
    replay_bytes: int = 0
    paper_replay_bytes: int = 0


def train_policy(
    group: Group,
    case: Case,
    problem: Problem,
    blocks: list[RowBlock],
    held_back: list[RowBlock],
    record: Callable[[dict[str, float]], None] = lambda row: None,
    snapshot: Callable[[int, dict[str, np.ndarray]], None] = lambda step, weights: None,
) -> Training:
    """Learn a policy on the graphs `blocks`, keeping the weights that do best on `held_back`.

    The learner that agent.learner names (app/rl/learner.py) decides how to act and when to learn.

    record    called with each evaluation: step, loss, episodes, objective on the held-back graphs, and the
              learner's notes
    snapshot  called with each evaluation: step and host copies of the weights
    Ranks     all call; every rank holds its rows of every graph; the result is identical on all
    """
    if not any(block.edges for block in blocks):
        raise GraphError("training graphs: none of them has an edge, there is nothing to learn")
    net, memory = QNetwork(case.policy, problem), case.memory
    if memory.fast_mb:
        net.limit_memory(group.device, Budget(round(memory.fast_mb * 1e6), memory.slow, memory.folder))
    learner = find_learner(case.agent.learner)(
        group, case.agent, net, blocks, case.seed, case.run.check_every
    )
    result = Training(net, learner.params.host(), best_step=0, best_total=-1)
    episodes, begun = _renew(group, case, learner, [], 0)
    step, evaluated, losses = 0, -1, []

    while step < case.train.steps:
        if step // case.train.evaluate_every > evaluated:
            evaluated = step // case.train.evaluate_every
            _evaluate(learner, held_back, step, begun, losses, result, record)
            losses = []
            snapshot(step, learner.params.host())

        # Act: the same node on every rank
        envs = [e.env for e in episodes]
        nodes = learner.act(envs, [e.graph for e in episodes], step)
        before = [env.totals for env in envs]
        step_together(group, envs, [nodes[i : i + 1] for i in range(len(envs))])
        step += len(envs)

        # Remember: reward and next state
        for episode, node, totals in zip(episodes, nodes.tolist(), before):
            env = episode.env
            reward = problem.reward(totals, env.totals, 1, case.agent.shaping)
            if case.agent.reward_scale == "nodes":
                reward /= env.block.n
            learner.remember(episode.number, node, reward, env)

        # Sample and train
        losses += learner.learn_when_due(len(envs))

        # Next episode where one is done
        episodes, begun = _renew(group, case, learner, episodes, begun)

    _evaluate(learner, held_back, case.train.steps, begun, losses, result, record)
    snapshot(case.train.steps, learner.params.host())
    stored, result.replay_bytes = learner.stored()
    mean_nodes = sum(b.n for b in blocks) / len(blocks)
    result.paper_replay_bytes = paper_bytes(stored, mean_nodes, group.size)
    return result


@dataclass
class _Running:
    """An episode in progress."""

    number: int
    graph: int
    env: Environment


def _renew(
    group: Group, case: Case, learner: Learner, episodes: list[_Running], begun: int
) -> tuple[list[_Running], int]:
    """New episodes in the places of those that are done, and how many have begun. Ranks: all call."""
    running = []
    for episode in [*episodes, *[None] * (case.train.environments - len(episodes))]:
        if episode is not None and not episode.env.done:
            running.append(episode)
        elif learner.begins(begun):
            running.append(_begin(group, case, learner, begun))
            begun += 1
    if not running:
        raise LockstepError(f"agent.learner = {case.agent.learner!r} begins no episode")
    return running, begun


def _begin(group: Group, case: Case, learner: Learner, number: int) -> _Running:
    """Start episode `number` on a random training graph that has an edge."""
    draws = stream(case.seed, "episode", learner.draw_of(number))
    while True:
        graph = int(draws.integers(len(learner.blocks)))
        block, scan = learner.blocks[graph], case.train.environment == "scan"
        env = begin_environment(group, block, learner.net.problem, scan)
        if not env.done:
            learner.begin(number, graph, env)
            return _Running(number, graph, env)


def _evaluate(
    learner: Learner,
    held_back: list[RowBlock],
    step: int,
    episodes: int,
    losses: list[float],
    result: Training,
    record: Callable[[dict[str, float]], None],
) -> None:
    """Solve the held-back graphs greedily; keep the weights when no earlier ones did as well."""
    envs = cover_one_at_a_time(learner.group, learner.net, learner.params, held_back)
    problem = learner.net.problem
    total = sum(problem.objective(env.chosen, env.totals) for env in envs)
    if not result.records or better(problem, total, result.best_total):
        result.best_total, result.best_step = total, step
        result.weights = learner.params.host()
    row: dict[str, Any] = {
        "step": step,
        "episodes": episodes,
        "gradient_steps": learner.optimiser.step,
        **learner.notes(step),
        "loss": sum(losses) / len(losses) if losses else math.nan,
        "held_back_nodes": total,
        "best_step": result.best_step,
    }
    result.records.append(row)
    record(row)
