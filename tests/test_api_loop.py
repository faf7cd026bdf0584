"""A training loop of one's own: Alg. 1 by hand gives the weights that the program's loop gives."""

import networkx as nx
import numpy as np
import pytest
from mpi4py import MPI

from app import TrainingRun, solve
from app.errors import CaseError
from app.problems.table import make_problem
from app.rl.training import Observers, train_policy
from app.rng import stream

GRAPHS = [nx.gnp_random_graph(14 + 2 * i, 0.25, seed=i) for i in range(5)]
STEPS = 120


def training(learner="dqn", problem="mvc", **more):
    own = {"dqn": {"batch": 4, "warmup": 10}, "ppo": {"batch": 4, "rollout_steps": 20}}
    settings = {"agent": own.get(learner, {}), "train": {"steps": STEPS}, "seed": 3, **more}
    return TrainingRun(problem=problem, graphs=GRAPHS, learner=learner, **settings)


def played(agent):
    """Alg. 1 by hand, with the program's draws of graphs."""
    env, number, losses = None, 0, []
    while agent.steps < STEPS:
        if env is None or env.done:
            env = agent.environment(
                int(stream(3, "episode", agent.learner.draw_of(number)).integers(agent.graphs))
            )
            number += 1
        node = agent.act(env)
        agent.remember(env, node, env.step(node))
        losses.append(agent.train())
    return [loss for loss in losses if loss is not None]


@pytest.mark.parametrize("problem", ["mvc", "mis"])
@pytest.mark.parametrize("learner", ["dqn", "reinforce"])
def test_a_loop_by_hand_learns_what_the_programs_loop_learns(learner, problem):
    agent = training(learner, problem).agent()
    losses = played(agent)
    context, last = agent.context, {}
    train_policy(
        context.group, context.case, make_problem(problem), agent.learner.blocks, agent.learner.blocks[:1],
        Observers(snapshot=lambda step, weights: last.update(weights)),
    )  # fmt: skip
    weights = agent.policy().weights
    assert losses and weights.keys() == last.keys()
    assert all(np.array_equal(weights[name], last[name]) for name in last)


def test_it_does_not_depend_on_the_ranks():
    together, alone = training().agent(), training(comm=MPI.COMM_SELF).agent()
    assert played(together) == played(alone)
    assert together.policy().digest == alone.policy().digest
    answer = solve(GRAPHS[0], weights=together.policy(), settings={"search.solver": "policy"})
    assert answer.feasible


def test_an_episode_says_what_may_be_chosen_and_what_was():
    agent = training().agent()
    env, graph = agent.environment(2), GRAPHS[2].copy()
    while not env.done:
        wanted = sorted(node for node, degree in graph.degree() if degree)
        assert env.candidates().tolist() == wanted
        node = wanted[-1]
        assert np.isfinite(env.step(node))
        graph.remove_node(node)
        with pytest.raises(CaseError, match=f"node {node} is no candidate"):
            env.step(node)
        for wrong in ("a", None, 1.5, True, [1]):
            with pytest.raises(CaseError, match=r"step: found .*; a node, one of candidates\(\), would"):
                env.step(wrong)
    assert not graph.edges and env.objective == len(GRAPHS[2]) - len(graph)


def test_wrong_calls_are_named():
    agent = training().agent()
    with pytest.raises(CaseError, match=r'environment: graph "0"; 0\.\.4 would be right'):
        agent.environment("0")
    with pytest.raises(CaseError, match=r"environment: graph 5; 0\.\.4 would be right"):
        agent.environment(5)
    with pytest.raises(CaseError, match="has one agent; got 2"):
        training(parallel={"data": 2}).agent()
    assert agent.train() is None
    patient = training("reinforce").agent()
    with pytest.raises(CaseError, match="the learner waits for train"):
        for _ in range(50):
            env = patient.environment(0)
            while not env.done:
                node = patient.act(env)
                patient.remember(env, node, env.step(node))
