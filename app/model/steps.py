"""The two kinds of step that the model predicts, made to be run and timed."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from app.case.policy import AgentCase
from app.comm.group import Group
from app.comm.guard import digest
from app.model.layout import Layout
from app.model.work import States, Term, evaluation, learning
from app.problems.mvc import MinimumVertexCover
from app.rl.agent import Agent
from app.rl.env import GraphEnv, step_together
from app.rl.learner import score_environments
from app.rl.qnet import QNetwork
from app.rl.replay import Sample
from app.rl.select import best_nodes
from app.rng import stream
from app.sparse.batch import StateBatch
from app.sparse.rowblock import RowBlock

REMOVED = 0.6  # of the nodes, in the latest state of a minibatch


@dataclass(frozen=True)
class Step:
    """A step that can be run, and its model.

    run      returns what tells that it did the same on any ranks
    terms    (layout, rank) -> its terms
    """

    name: str
    run: Callable[[], str]
    terms: Callable[[Layout, int], list[Term]]


def make_step(group: Group, net: QNetwork, case: AgentCase, block: RowBlock, batch: int, seed: int) -> Step:
    """A policy evaluation of the whole graph (batch 0), or a training step. Ranks of the group: all call."""
    agent = Agent(group, case, net, [block], seed, 0)
    if batch == 0:
        layout, env = StateBatch(group, [(block, 1)]), GraphEnv(group, block, MinimumVertexCover())

        def evaluate() -> str:
            chosen = best_nodes(group, layout, *score_environments(net, agent.params, layout, [env]))
            return str(int(chosen[0]))

        return Step("evaluation", evaluate, lambda counts, rank: evaluation(net, counts, States(), rank))
    sample, states = sample_states(group, block, batch, seed)

    def learn() -> str:
        agent.learn(sample)
        return digest(agent.params.host())

    return Step(
        f"training B={batch}", learn, lambda counts, rank: learning(net, counts, states, case.double, rank)
    )


def sample_states(group: Group, block: RowBlock, batch: int, seed: int) -> tuple[Sample, States]:
    """A minibatch of states spread over an episode that removes nodes in random order, and its counts.

    Ranks   all call; identical on all
    """
    order = stream(seed, "scaling/order").permutation(block.n)
    env = GraphEnv(group, block, MinimumVertexCover())
    before, after, totals0, totals1 = [], [], [], []
    at = 0
    for i in range(batch):
        first = max(int(REMOVED * block.n * i / batch), at)
        for until, removed, totals in ((first, before, totals0), (first + 1, after, totals1)):
            if until > at:
                step_together(group, [env], [order[at:until]])
            at = until
            removed.append(order[:at])
            totals.append(env.totals)
    shuffled = stream(seed, "scaling/sample").permutation(batch).tolist()
    removed0, removed1, totals0, totals1 = (
        [values[i] for i in shuffled] for values in (before, after, totals0, totals1)
    )
    nodes = np.array([removed[-1] for removed in removed1])
    ones = np.ones(batch, dtype=np.float32)
    sample = Sample(
        np.zeros(batch, dtype=np.int64), nodes, -ones, 0.5 * ones, removed0, removed1, totals0, totals1
    )
    live = float(np.mean([totals.alive for totals in totals0 + totals1])) / block.n
    return sample, States(batch, live, float(np.mean([len(removed) for removed in removed0])))
