"""Our side of the measurements: graphs, policies, episodes, and the calls whose time is taken."""

from typing import Any

import numpy as np
from mpi4py import MPI

from app.case.graph import GraphCase
from app.case.policy import PolicyCase
from app.case.run import RunCase
from app.comm.group import Group
from app.device import open_device
from app.gnn.parameters import Parameters
from app.partition.generated import generate_set
from app.problems.mvc import MinimumVertexCover
from app.problems.table import make_problem
from app.recipes import PAPER_AGENT, PAPER_POLICY
from app.rl.agent import Agent
from app.rl.env import GraphEnv, step_together
from app.rl.learner import score_environments
from app.rl.qnet import QNetwork
from app.rl.replay import Sample
from app.rl.rollout import Rollout, roll_out
from app.rl.select import best_nodes, random_candidates
from app.rng import stream
from app.sparse.batch import StateBatch
from app.sparse.rowblock import RowBlock

GRAPHS = {
    "BA n=75 d=4": GraphCase(generator="ba", nodes=75, d=4, generator_seed=1),
    "ER n=1,920 p=.065": GraphCase(generator="er", nodes=1920, p=0.065, generator_seed=1),
    "ER n=2,000 p=.15": GraphCase(generator="er", nodes=2000, p=0.15, generator_seed=1),
    "BA n=14,400 d=4": GraphCase(generator="ba", nodes=14_400, d=4, generator_seed=1),
    "ER n=7,200 p=.15": GraphCase(generator="er", nodes=7200, p=0.15, generator_seed=1),
}
NOISE = 0.01  # size of the weights of a policy that play no part, against Glorot's
SQUARE = 3  # the feature (m/d)^2 / 4 (app/problems/residual.py)


def open_group(comm: Any = MPI.COMM_WORLD) -> Group:
    """Ranks with the device that a case gets when it says nothing."""
    run = RunCase()
    return Group(comm, open_device("cpu", comm.Get_rank(), run.portable, run.reproducible))


def load_block(group: Group, name: str, exchange: str = "auto") -> RowBlock:
    """This rank's rows of one of GRAPHS. Ranks: all call."""
    loaded = generate_set(group, GRAPHS[name], 0, "bench")[0]
    return RowBlock(group, loaded.graph, loaded.rows, exchange)


# ---- policies ---------------------------------------------------------------------------------------------


def paper_network() -> QNetwork:
    """The paper's policy: K=16, L=2, one set of weights for both rounds."""
    return QNetwork(PAPER_POLICY, make_problem("mvc"))


def formula_network(layers: int, dimension: int) -> tuple[QNetwork, dict[str, np.ndarray]]:
    """A default policy of any size, at least 2 rounds, that chooses much as the one-hop formula does.

    A solution so runs through states of the usual kind, whatever the size. All other weights are small and
    random, not zero: it computes with all of its numbers.
    """
    policy = PolicyCase(layers=layers, dimension=dimension)
    net = QNetwork(policy, make_problem("mvc"))
    drawn = {
        name: (NOISE * stream(1, f"bench/{name}").uniform(-1, 1, shape)).astype(np.float32)
        for name, shape in net.shapes().items()
    }
    F, K = net.F, net.K
    drawn["embed.W1"][SQUARE, 0] = 1  # rows are [features | neighbours | own]
    drawn["embed.W2"][F, 0] = 1  # the sum of (m/d)^2 / 4 over neighbours, divided by m
    for layer in range(3, layers + 1):
        drawn[f"embed.W{layer}"][F + K, 0] = 1
    drawn["head.theta6"][0, 0] = drawn["head.theta7b"][0, 0] = 1
    return net, drawn


def parameters(group: Group, net: QNetwork, arrays: dict[str, np.ndarray]) -> Parameters:
    """Weights of a network on the device."""
    params = Parameters(group.device, net.shapes())
    params.set(arrays)
    return params


# ---- states -----------------------------------------------------------------------------------------------


def state_after(group: Group, block: RowBlock, removed: np.ndarray) -> GraphEnv:
    """The environment once the nodes `removed` [k] are gone. Ranks: all call."""
    env = GraphEnv(group, block, MinimumVertexCover())
    if len(removed):
        step_together(group, [env], [removed])
    return env


def paper_agent(group: Group, block: RowBlock, net: QNetwork) -> Agent:
    """A learner with the paper's settings, its replay filled by one episode of random choices.

    So sampled states are spread over an episode. Ranks: all call; identical on all.
    """
    agent = Agent(group, PAPER_AGENT, net, [block], 0, 0)
    env = GraphEnv(group, block, MinimumVertexCover())
    episode = agent.replay.begin(0, env.totals)
    draws = stream(0, "bench/episode")
    while env.totals.degree_sum:
        node = random_candidates(group, [env], [int(draws.integers(env.totals.alive))])
        before = env.totals
        step_together(group, [env], [node])
        reward = net.problem.reward(before, env.totals, 1, PAPER_AGENT.shaping)
        agent.replay.remember(episode, int(node[0]), reward, env.totals, env.totals.degree_sum == 0)
    return agent


def draw_samples(agent: Agent, batch: int, count: int) -> list[Sample]:
    """Minibatches, the same on all ranks."""
    return [agent.replay.sample(stream(0, "bench/sample", i), batch) for i in range(count)]


# ---- what is timed ----------------------------------------------------------------------------------------


def evaluate(group: Group, net: QNetwork, params: Any, batch: StateBatch, env: GraphEnv) -> int:
    """One full policy evaluation and its choice. Ranks: all call."""
    return int(best_nodes(group, batch, *score_environments(net, params, batch, [env]))[0])


def solve(group: Group, net: QNetwork, params: Any, block: RowBlock) -> Rollout:
    """One graph, one node at a time, as the program does it. Ranks: all call."""
    return roll_out(group, net, params, block, "single", 1.0)
