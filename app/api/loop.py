"""The two-level loop of RL4GO's Alg. 1 in a user's own hands: an agent, and environments step by step.

`TrainingRun.agent()` makes the agent; `TrainingRun.run()` is the same loop with evaluations, several
environments at once, replicas and checkpoints.
"""

import math
from numbers import Real

import numpy as np

from app.api.results import TrainedPolicy
from app.comm.guard import digest, raise_together
from app.errors import CaseError
from app.problems.table import problem_of
from app.rl.dynamics import begin_environment
from app.rl.env import step_together
from app.rl.learners import find_learner
from app.rl.rollout import judged
from app.rl.training import limited_network
from app.sparse.rowblock import RowBlock
from app.tasks.context import Context
from app.text import is_whole, show


class GraphEpisode:
    """An environment: a training graph with a partial solution (RL4GO Alg. 1: Env).

    graph    its number among the training graphs
    Ranks    all hold rows of it; all call, with the same nodes
    """

    def __init__(self, agent: "GraphAgent", graph: int, number: int) -> None:
        case, learner = agent.context.case, agent.learner
        self.graph, self.number, self._case, self._group = graph, number, case, learner.group
        self.env = begin_environment(
            learner.group, learner.blocks[graph], learner.net.problem, case.train.environment == "scan"
        )

    @property
    def done(self) -> bool:
        """Whether the solution is complete."""
        return self.env.done

    @property
    def objective(self) -> float:
        """Of the solution so far, as `solve` states it. Ranks: all call."""
        return judged(self.env)

    def candidates(self) -> np.ndarray:
        """[k] int64 the nodes that may be chosen, ascending: rows of the graph, from 0. Ranks: all call."""
        own = self.env.block.lo + self.env.candidates_own().astype(np.int64)
        counts = self._group.gather_integers(np.array([len(own)]))[:, 0]
        return self._group.gather_host(own, counts)

    def step(self, node: int) -> float:
        """Choose a node; returns the reward. Raises CaseError where it is no candidate. Ranks: all call."""
        env, before = self.env, self.env.totals
        if not is_whole(node):
            raise CaseError(f"step: found {show(node)}; a node, one of candidates(), would be right")
        held = env.block.lo <= node < env.block.lo + env.block.n_real
        mine = held and bool((env.candidates_own() == node - env.block.lo).any())
        if not self._group.max_integer(int(mine)):
            raise CaseError(f"step: node {node} is no candidate; one of candidates() would be right")
        step_together(self._group, [env], [np.array([node], dtype=np.int64)])
        agent = self._case.agent
        reward = env.problem.reward(before, env.totals, 1, agent.shaping)
        return reward / env.block.n if agent.reward_scale == "nodes" else reward


class GraphAgent:
    """An agent with its training graphs (RL4GO Alg. 1: Agent).

        agent = TrainingRun(problem="mvc", graphs=graphs).agent()
        for number in range(100):
            env = agent.environment(number % agent.graphs)
            while not env.done:
                node = agent.act(env)
                agent.remember(env, node, env.step(node))
                agent.train()
        policy = agent.policy()

    graphs    how many there are     steps   of environments, remembered so far
    Ranks     all call every method, with the same arguments; what they return is the same on all
    """

    def __init__(self, context: Context, blocks: list[RowBlock]) -> None:
        case = context.case
        with raise_together(context.group, "making the agent"):
            if case.parallel.data > 1:
                raise CaseError(f"parallel.data: a loop of one's own has one agent; got {case.parallel.data}")
            net = limited_network(context.group, case, problem_of(case))
            kind = find_learner(case.agent.learner)
        self.context, self.graphs = context, len(blocks)
        self.learner = kind(context.group, case.agent, net, blocks, case.seed, case.run.check_every)
        self.steps = self._begun = self._untaught = 0

    def environment(self, graph: int) -> GraphEpisode:
        """A new episode on training graph `graph`, counted from 0. Raises CaseError."""
        if not (is_whole(graph) and 0 <= graph < self.graphs):
            raise CaseError(f"environment: graph {show(graph)}; 0..{self.graphs - 1} would be right")
        if not self.learner.begins(self._begun):
            raise CaseError("environment: the learner waits for train() before another episode")
        episode = GraphEpisode(self, graph, self._begun)
        if not episode.done:
            self.learner.begin(episode.number, graph, episode.env)
            self._begun += 1
        return episode

    def act(self, episode: GraphEpisode) -> int:
        """A node, by the policy or, with the chance that the settings give exploration, at random.

        Raises CaseError where the solution is complete.
        """
        if episode.done:
            raise CaseError("act: the solution is complete; another environment would be right")
        return int(self.learner.act([episode.env], [episode.graph], self.steps)[0])

    def remember(self, episode: GraphEpisode, node: int, reward: float) -> None:
        """Put a step of an environment, and its reward, where the agent learns from. Raises CaseError."""
        if not (is_whole(node) and isinstance(reward, Real) and math.isfinite(reward)):
            found = f"node {show(node)}, reward {show(reward)}"
            raise CaseError(f"remember: found {found}; a node and what step() returned would be right")
        self.learner.remember(episode.number, node, reward, episode.env)
        self.steps += 1
        self._untaught += 1

    def train(self) -> float | None:
        """The gradient steps that are due for what was remembered since the last call: Sample and Train.

        returns   the mean of their losses; None where none was due
        """
        steps, self._untaught, losses = self._untaught, 0, []
        self.learner.progress = min(self.steps / self.context.case.train.steps, 1.0)
        if self.learner.ready():
            for lesson in self.learner.lessons(steps):
                self.learner.follow(lesson)
                losses.append(lesson.loss)
        return sum(losses) / len(losses) if losses else None

    def policy(self) -> TrainedPolicy:
        """What it has learned so far, for `solve(weights=...)` and for files."""
        case, weights = self.context.case, self.learner.policy.host()
        return TrainedPolicy(weights, case.policy, case.problem.name, [], digest(weights))
