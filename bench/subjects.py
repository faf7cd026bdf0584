"""Our side of the measurements: graphs, policies, episodes, and the calls whose time is taken."""

from typing import Any

import msgspec
import numpy as np
from mpi4py import MPI

from app.comm.group import Group
from app.config import GraphCase, PolicyCase, RunCase
from app.device import open_device
from app.gnn.parameters import Parameters
from app.partition.load import generate_set
from app.problems.table import make_problem
from app.recipes import PAPER_AGENT, PAPER_POLICY
from app.rl.agent import Agent, score_environments
from app.rl.env import GraphEnv, step_together
from app.rl.qnet import QNetwork
from app.rl.replay import Sample
from app.rl.rollout import Cover, cover_graph
from app.rl.select import best_nodes, random_candidates
from app.rl.weights import default_weights, load_weights
from app.rng import stream
from app.sparse.batch import StateBatch
from app.sparse.rowblock import RowBlock

GRAPHS = {
    "ER n=1,920 p=.065": GraphCase(generator="er", nodes=1920, p=0.065, generator_seed=1),
    "ER n=2,000 p=.15": GraphCase(generator="er", nodes=2000, p=0.15, generator_seed=1),
    "BA n=14,400 d=4": GraphCase(generator="ba", nodes=14_400, d=4, generator_seed=1),
    "ER n=7,200 p=.15": GraphCase(generator="er", nodes=7200, p=0.15, generator_seed=1),
}
NOISE = 0.01  # size of the numbers that widen a policy, against Glorot's


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


def shipped_network(layers: int, dimension: int) -> tuple[QNetwork, dict[str, np.ndarray]]:
    """The default policy and its shipped weights (L=2, K=16), widened where more is asked.

    A wider policy chooses much as the shipped one does, so that a solution runs through states of the usual
    kind, but computes with all of its numbers: what is new is small and random, not zero.
    """
    saved = load_weights(default_weights("mvc"))
    policy = msgspec.structs.replace(saved.policy, layers=layers, dimension=dimension)
    net = QNetwork(policy, make_problem("mvc"))
    if (layers, dimension) == (saved.policy.layers, saved.policy.dimension):
        return net, saved.arrays
    return net, _widened(net, saved.policy, saved.arrays)


def _widened(net: QNetwork, old: PolicyCase, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Small random weights, with the given ones in their places; further rounds pass the embedding on."""
    F, K, k = net.F, net.K, old.dimension
    drawn = {
        name: (NOISE * stream(1, f"bench/{name}").uniform(-1, 1, shape)).astype(np.float32)
        for name, shape in net.shapes().items()
    }
    for layer in range(1, net.policy.layers + 1):
        W = drawn[f"embed.W{layer}"]
        if layer > old.layers:  # rows are [features | neighbours | own]
            W[F + K : F + K + k, :k] += np.eye(k, dtype=np.float32)
            continue
        source = arrays[f"embed.W{layer}"]
        W[:F, :k] = source[:F]
        for to, start in ((F, F), (F + K, F + k)) if layer > 1 else ():
            W[to : to + k, :k] = source[start : start + k]
    drawn["head.theta5"][:k] = arrays["head.theta5"]
    drawn["head.theta6"][:k] = arrays["head.theta6"][:k]
    drawn["head.theta6"][K:] = arrays["head.theta6"][k:]
    for name in ("head.theta7a", "head.theta7b"):
        drawn[name] = arrays[name]
    return drawn


def parameters(group: Group, net: QNetwork, arrays: dict[str, np.ndarray]) -> Parameters:
    """Weights of a network on the device."""
    params = Parameters(group.device, net.shapes())
    params.set(arrays)
    return params


# ---- states -----------------------------------------------------------------------------------------------


def state_after(group: Group, block: RowBlock, removed: np.ndarray) -> GraphEnv:
    """The environment once the nodes `removed` [k] are gone. Ranks: all call."""
    env = GraphEnv(group, block)
    if len(removed):
        step_together(group, [env], [removed])
    return env


def paper_agent(group: Group, block: RowBlock, net: QNetwork) -> Agent:
    """A learner with the paper's settings, its replay filled by one episode of random choices.

    So sampled states are spread over an episode. Ranks: all call; identical on all.
    """
    agent = Agent(group, PAPER_AGENT, net, [block], 0, 0)
    env = GraphEnv(group, block)
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


def solve(group: Group, net: QNetwork, params: Any, block: RowBlock) -> Cover:
    """One graph, one node at a time, as the program does it. Ranks: all call."""
    return cover_graph(group, net, params, block, "single", 1.0)
