"""Replica: an agent with environments of its own; what it does between two gradient steps."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from app.case.config import Case
from app.checkpoint.store import State
from app.errors import GraphError, LockstepError
from app.gnn.stopwatch import Stopwatch
from app.rl.dynamics import begin_environment
from app.rl.env import Environment, step_together
from app.rl.fleet import Fleet
from app.rl.learner import Learner, Lesson
from app.rng import stream

OTHERS = "others would be right (train.graphs, or where that is absent graph.generator or graph.path)"


@dataclass
class Running:
    """An episode in progress on training graph `graph`, its place among them, the nodes it has chosen."""

    number: int
    graph: int
    env: Environment
    place: int
    nodes: list[int] = field(default_factory=list)


class Replica:
    """A learner and the episodes it plays: all the state of a training run but the best weights.

    episodes   those in progress, at most train.environments
    begun      episodes begun so far
    step       environment steps made; made: by the last `act`
    watch      takes the seconds of the agent and of the environment
    Ranks      as Learner
    """

    def __init__(self, case: Case, learner: Learner, watch: Stopwatch) -> None:
        self.case, self.learner, self.watch = case, learner, watch
        self.episodes: list[Running] = []
        self.begun = self.step = self.made = 0
        self.fleet = self._make_fleet()

    def renew(self) -> None:
        """New episodes in the places of those that are done. Ranks: all call."""
        if len(self.episodes) == self.case.train.environments and not any(e.env.done for e in self.episodes):
            return
        going = [None if each.env.done else each for each in self.episodes]
        going += [None] * (self.case.train.environments - len(going))
        taken = {each.place for each in going if each is not None}
        free = iter([place for place in range(len(going)) if place not in taken])
        self.episodes = []
        for episode in going:
            if episode is not None:
                self.episodes.append(episode)
            elif self.learner.begins(self.begun):
                self.episodes.append(self._begin(self.begun, next(free)))
                self.begun += 1
        if not self.episodes and not self.learner.ready():
            raise LockstepError(f"agent.learner = {self.case.agent.learner!r} begins no episode")

    def _begin(self, number: int, place: int) -> Running:
        """Start episode `number` on a random training graph with something to choose. Raises GraphError."""
        learner = self.learner
        draws = stream(learner.seed, "episode", learner.draw_of(number))
        done: set[int] = set()
        while len(done) < len(learner.blocks):
            graph = int(draws.integers(len(learner.blocks)))
            if graph in done:
                continue
            env = self._environment(graph)
            if not env.done:
                learner.begin(number, graph, env)
                return self._seated(Running(number, graph, env, place))
            done.add(graph)
        none = "in none of them is anything to choose, there is nothing to learn"
        raise GraphError(f"training graphs: {none}; {OTHERS}")

    def _make_fleet(self) -> Fleet | None:
        """What steps many environments at once, where there is such a thing for them."""
        learner, train = self.learner, self.case.train
        problem, scan = learner.net.problem, train.environment == "scan"
        if train.environments == 1 or not Fleet.serves(learner.group, learner.blocks, problem, scan):
            return None
        return Fleet(learner.blocks, problem, train.environments)

    def _seated(self, episode: Running) -> Running:
        """The episode in its place of the fleet, before its first step."""
        if self.fleet is not None:
            self.fleet.seat(episode.place, episode.graph, episode.env)
        return episode

    def _environment(self, graph: int) -> Environment:
        """The first state of an episode on a training graph. Ranks: all call."""
        learner, scan = self.learner, self.case.train.environment == "scan"
        return begin_environment(learner.group, learner.blocks[graph], learner.net.problem, scan)

    def act(self) -> None:
        """Choose a node in every environment, the same on all ranks, and go to the next state."""
        self.envs = [episode.env for episode in self.episodes]
        self.before = [env.totals for env in self.envs]
        self.nodes = np.empty(0, dtype=np.int64)
        if self.envs:
            graphs = [episode.graph for episode in self.episodes]
            with self.watch("agent"):
                self.nodes = self.learner.act(self.envs, graphs, self.step)
            with self.watch("environment"):
                self._go()
        self.made = len(self.envs)
        self.step += self.made

    def _go(self) -> None:
        """One transition in every environment."""
        if self.fleet is not None:
            self.fleet.step([episode.place for episode in self.episodes], self.nodes)
            return
        choices = [self.nodes[i : i + 1] for i in range(len(self.envs))]
        step_together(self.learner.group, self.envs, choices)

    def remember(self) -> None:
        """Tell the learner of every step and what it earned."""
        problem, agent = self.learner.net.problem, self.case.agent
        nodes, rewards = self.nodes.tolist(), []
        for episode, node, totals in zip(self.episodes, nodes, self.before):
            env = episode.env
            episode.nodes.append(node)
            reward = problem.reward(totals, env.totals, 1, agent.shaping)
            rewards.append(reward / env.block.n if agent.reward_scale == "nodes" else reward)
        numbers = [episode.number for episode in self.episodes]
        self.learner.remember_all(numbers, nodes, rewards, self.envs)

    def lessons(self) -> Iterator[Lesson]:
        """What is to be learned after the steps just made."""
        return self.learner.lessons(self.made)

    # ---- stopping and going on ----------------------------------------------------------------------------

    def state(self) -> State:
        """All that its later steps depend on; running episodes by what they chose. Ranks: all call."""
        learned = self.learner.state()
        running = [[each.number, each.graph, each.nodes] for each in self.episodes]
        values = {"step": self.step, "begun": self.begun, "running": running, "learner": learned.values}
        return State(values, learned.arrays)

    def restore(self, state: State) -> None:
        """Make a new replica what `state` told of an earlier one. Ranks: all call."""
        values = state.values
        self.learner.restore(State(values["learner"], state.arrays))
        self.step, self.begun = values["step"], values["begun"]
        running = enumerate(values["running"])
        self.episodes = [self._replayed(place, *each) for place, each in running]

    def _replayed(self, place: int, number: int, graph: int, nodes: list[int]) -> Running:
        """An episode as its choices have left it. Ranks: all call."""
        env = self._environment(graph)
        episode = self._seated(Running(number, graph, env, place, nodes))
        for node in nodes:
            step_together(self.learner.group, [env], [np.array([node])])
        return episode
