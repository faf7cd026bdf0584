"""Training: RL4GO Alg. 1 on row partitions, from the first episode to the best weights seen."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from app.comm.group import Group
from app.config import Case
from app.errors import GraphError
from app.problems.problem import Problem, better
from app.rl.agent import Agent
from app.rl.dynamics import begin_environment
from app.rl.env import Environment, step_together
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

    record    called with each evaluation: step, epsilon, loss, episodes, objective on the held-back graphs
    snapshot  called with each evaluation: step and host copies of the weights
    Ranks     all call; every rank holds its rows of every graph; the result is identical on all
    """
    if not any(block.edges for block in blocks):
        raise GraphError("training graphs: none of them has an edge, there is nothing to learn")
    net = QNetwork(case.policy, problem)
    agent = Agent(group, case.agent, net, blocks, case.seed, case.run.check_every)
    result = Training(net, agent.params.host(), best_step=0, best_total=-1)
    episodes = [_begin(group, case, agent, number) for number in range(case.train.environments)]
    begun, gradient_steps, losses = len(episodes), 0, []
    evaluated = -1

    for step in range(0, case.train.steps, len(episodes)):
        if step // case.train.evaluate_every > evaluated:
            evaluated = step // case.train.evaluate_every
            losses = _evaluate(agent, held_back, step, begun, losses, result, record)
            snapshot(step, agent.params.host())

        # Act: the same node on every rank, at random or by the policy
        envs = [e.env for e in episodes]
        nodes = agent.act(envs, [e.graph for e in episodes], step)
        before = [env.totals for env in envs]
        step_together(group, envs, [nodes[i : i + 1] for i in range(len(envs))])

        # Remember: reward and next state
        for episode, node, totals in zip(episodes, nodes.tolist(), before):
            env = episode.env
            reward = problem.reward(totals, env.totals, 1, case.agent.shaping)
            if case.agent.reward_scale == "nodes":
                reward /= env.block.n
            agent.replay.remember(episode.number, node, reward, env.totals, env.done)

        # Sample and train
        if len(agent.replay) >= max(case.agent.warmup, 1):
            for _ in range(case.agent.gradient_steps * len(episodes)):
                sample = agent.replay.sample(stream(case.seed, "sample", gradient_steps), case.agent.batch)
                losses.append(agent.learn(sample))
                gradient_steps += 1

        # Next episode where one is done
        for i, episode in enumerate(episodes):
            if episode.env.done:
                episodes[i] = _begin(group, case, agent, begun)
                begun += 1

    _evaluate(agent, held_back, case.train.steps, begun, losses, result, record)
    snapshot(case.train.steps, agent.params.host())
    result.replay_bytes = agent.replay.nbytes()
    mean_nodes = sum(b.n for b in blocks) / len(blocks)
    result.paper_replay_bytes = paper_bytes(len(agent.replay), mean_nodes, group.size)
    return result


@dataclass
class _Running:
    """An episode in progress."""

    number: int
    graph: int
    env: Environment


def _begin(group: Group, case: Case, agent: Agent, number: int) -> _Running:
    """Start episode `number` on a random training graph that has an edge."""
    draws = stream(case.seed, "episode", number)
    while True:
        graph = int(draws.integers(len(agent.blocks)))
        block, scan = agent.blocks[graph], case.train.environment == "scan"
        env = begin_environment(group, block, agent.net.problem, scan)
        if not env.done:
            return _Running(agent.replay.begin(graph, env.totals), graph, env)


def _evaluate(
    agent: Agent,
    held_back: list[RowBlock],
    step: int,
    episodes: int,
    losses: list[float],
    result: Training,
    record: Callable[[dict[str, float]], None],
) -> list[float]:
    """Solve the held-back graphs greedily; keep the weights when no earlier ones did as well."""
    envs = cover_one_at_a_time(agent.group, agent.net, agent.params, held_back)
    problem = agent.net.problem
    total = sum(problem.objective(env.chosen, env.totals) for env in envs)
    if not result.records or better(problem, total, result.best_total):
        result.best_total, result.best_step = total, step
        result.weights = agent.params.host()
    row: dict[str, Any] = {
        "step": step,
        "episodes": episodes,
        "gradient_steps": agent.optimiser.step,
        "epsilon": agent.epsilon(step),
        "loss": sum(losses) / len(losses) if losses else math.nan,
        "held_back_nodes": total,
        "best_step": result.best_step,
    }
    result.records.append(row)
    record(row)
    return []
