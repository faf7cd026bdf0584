"""A learner of one's own: imitation of a rule of thumb, trained with one line, on any number of ranks.

    python examples/own_learner.py
    mpirun -np 3 python examples/own_learner.py

The rule takes a node of least degree into an independent set, again and again. The learner watches it and
moves the policy towards its choices by the gradient of the cross-entropy, -log pi(the rule's node): softmax,
head and embedding have their backward passes already, so a learner only says what the loss is. The policy
sees one hop further than the rule, and breaks its ties.
"""

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # also without an installation

import networkx as nx
import numpy as np
from mpi4py import MPI

from app import TrainingRun, solve
from app.rl.env import Environment
from app.rl.learner import Lesson
from app.rl.policy_gradient import Moment, Played, PolicyLearner, Push
from app.rl.select import best_of, make_keys


class Imitation(PolicyLearner):
    """Plays by the rule, and learns the probability of its choices, agent.batch at a time."""

    name = "imitation"

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self.seen: list[Moment] = []

    def act(self, envs: list[Environment], graphs: list[int], step: int) -> np.ndarray:
        """A node of least degree in each environment: one MAX over ranks, ties to the lowest node."""
        return np.array([best_of(self.group, self._best_key(env)) for env in envs])

    def _best_key(self, env: Environment) -> int:
        """The key of the best own node; 0 where this rank has none."""
        own = env.candidates_own()
        degree = env.degree_own[own].astype(np.float32)
        return int(make_keys(np, -degree, own + env.block.lo).max(initial=0))

    def remember(self, number: int, node: int, reward: float, env: Environment) -> None:
        """Keep the state before the choice."""
        self.seen.append(Moment(number, len(self.episodes[number].actions)))
        super().remember(number, node, reward, env)

    def ready(self) -> bool:
        """With a batch of states."""
        return len(self.seen) >= self.case.batch

    def lessons(self, steps: int) -> Iterator[Lesson]:
        """One for each batch of states."""
        yield self.lesson(self.seen, partial(self._cross_entropy, len(self.seen)))
        self.seen.clear()
        self.episodes = {n: each for n, each in self.episodes.items() if not each.finished}

    @staticmethod
    def _cross_entropy(count: int, played: Played) -> Push:
        """- mean log pi, and its derivatives by log pi and by the entropy."""
        each = np.full(len(played.nodes), 1 / count)
        return Push(-played.log_probability * each, -each, 0 * each)


def main() -> None:
    """Train on small random graphs, then solve a larger one with the learned policy alone."""
    graphs = [nx.gnp_random_graph(20 + 2 * i, 0.2, seed=i) for i in range(25)]
    policy = TrainingRun(
        problem="mis", graphs=graphs, learner=Imitation,
        agent={"batch": 32, "learning_rate": 0.01},
        train={"steps": 1500, "environments": 8, "evaluate_every": 500, "evaluate_graphs": 5},
    ).run()  # fmt: skip
    graph = nx.gnp_random_graph(300, 0.03, seed=1)
    settings = {"problem.name": "mis", "search.solver": "policy"}
    solution = solve(graph, weights=policy, settings=settings)
    if MPI.COMM_WORLD.rank > 0:
        return
    by_step = ", ".join(f"{row['held_back_nodes']} (step {row['step']})" for row in policy.records)
    print(f"nodes in independent sets of 5 held-back graphs: {by_step}")
    print(f"a graph of 300 nodes: {solution.objective} nodes, at most {solution.bound}; {solution.baselines}")


if __name__ == "__main__":
    main()
