"""Training: RL4GO Alg. 1 on row partitions, from the first episode to the best weights seen."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from app.checkpoint.checkpoints import NOTHING_KEPT, Keeper
from app.checkpoint.store import State
from app.comm.group import Group
from app.config import Case
from app.errors import CaseError, GraphError, LockstepError
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
    keeper: Keeper = NOTHING_KEPT,
) -> Training:
    """Learn a policy on the graphs `blocks`, keeping the weights that do best on `held_back`.

    The learner that agent.learner names (app/rl/learner.py) decides how to act and when to learn.

    record    called with each evaluation: step, loss, episodes, objective on the held-back graphs, and the
              learner's notes
    snapshot  called with each evaluation: step and host copies of the weights
    keeper    where the loop may be stopped, and what it goes on from
    Ranks     all call; every rank holds its rows of every graph; the result is identical on all
    """
    if not any(block.edges for block in blocks):
        raise GraphError("training graphs: none of them has an edge, there is nothing to learn")
    net = QNetwork(case.policy, problem)
    learner = find_learner(case.agent.learner)(
        group, case.agent, net, blocks, case.seed, case.run.check_every
    )
    result = Training(net, learner.params.host(), best_step=0, best_total=-1)
    earlier = keeper.recall("train")
    if earlier is None:
        episodes, begun = _renew(group, case, learner, [], 0)
        step, evaluated, losses = 0, -1, []
    else:
        step, evaluated, losses, begun, episodes = _restore(group, case, learner, result, earlier)

    while step < case.train.steps:
        keeper.at(step, "train", partial(_state, learner, result, step, evaluated, losses, begun, episodes))
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
            episode.nodes.append(node)
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
    """An episode in progress, and the nodes it has chosen."""

    number: int
    graph: int
    env: Environment
    nodes: list[int] = field(default_factory=list)


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
        env = _environment(group, case, learner, graph)
        if not env.done:
            learner.begin(number, graph, env)
            return _Running(number, graph, env)


def _environment(group: Group, case: Case, learner: Learner, graph: int) -> Environment:
    """The first state of an episode on a training graph. Ranks: all call."""
    scan = case.train.environment == "scan"
    return begin_environment(group, learner.blocks[graph], learner.net.problem, scan)


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


# ---- stopping and going on --------------------------------------------------------------------------------


def _state(
    learner: Learner, result: Training, step: int, evaluated: int, losses: list[float], begun: int,
    episodes: list[_Running],
) -> State:  # fmt: skip
    """All that the steps from here on depend on; running episodes by what they chose. Ranks: all call."""
    learned = learner.state()
    values = {
        "step": step, "evaluated": evaluated, "begun": begun, "losses": losses,
        "running": [[e.number, e.graph, e.nodes] for e in episodes],
        "best_step": result.best_step, "best_total": result.best_total, "records": result.records,
        "learner": learned.values,
    }  # fmt: skip
    best = {f"best/{name}": each for name, each in result.weights.items()}
    return State(values, {**{f"learner/{name}": each for name, each in learned.arrays.items()}, **best})


def _restore(
    group: Group, case: Case, learner: Learner, result: Training, state: State
) -> tuple[int, int, list[float], int, list[_Running]]:
    """Step, evaluations, losses, episodes begun and those running, as `_state` told them. Ranks: all call."""
    values = state.values
    if values["step"] > case.train.steps:
        raise CaseError(
            f"train.steps: {case.train.steps}, but the checkpoint has made {values['step']} steps; "
            "at least as many would be right"
        )
    arrays = {"learner": {}, "best": {}}
    for name, each in state.arrays.items():
        part, _, rest = name.partition("/")
        arrays[part][rest] = each
    learner.restore(State(values["learner"], arrays["learner"]))
    result.weights, result.records = arrays["best"], values["records"]
    result.best_step, result.best_total = values["best_step"], values["best_total"]
    running = [_replay(group, case, learner, *each) for each in values["running"]]
    return values["step"], values["evaluated"], values["losses"], values["begun"], running


def _replay(
    group: Group, case: Case, learner: Learner, number: int, graph: int, nodes: list[int]
) -> _Running:
    """An episode as its choices have left it. Ranks: all call."""
    env = _environment(group, case, learner, graph)
    for node in nodes:
        step_together(group, [env], [np.array([node])])
    return _Running(number, graph, env, nodes)
