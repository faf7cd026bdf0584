"""PolicyLearner: what learners share that draw their actions and follow gradients of log-probabilities."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from math import fsum
from typing import Any, NamedTuple

import numpy as np

from app.checkpoint.store import State
from app.rl.agent import PART_ROWS, cut_states
from app.rl.env import Environment
from app.rl.learner import Learner, Lesson, score_environments
from app.rl.node_head import ValueHead, node_gradient, node_scores
from app.rl.qnet import Evaluation
from app.rl.replay import Episode, pack_episodes, unpack_episodes
from app.rl.softmax import Softmax, draw_nodes
from app.rng import key_of

Array = Any


class Moment(NamedTuple):
    """The state of an episode after t choices."""

    episode: int
    t: int


@dataclass
class Played:
    """Some moments of episodes, evaluated with the weights of now; arrays [moments] are on the host.

    log_probability   of the choices that were made
    value             of the states, where the learner has a value head
    """

    moments: list[Moment]
    nodes: np.ndarray
    evaluation: Evaluation
    hidden_own: Array
    softmax: Softmax
    log_probability: np.ndarray
    entropy: np.ndarray
    value: np.ndarray | None


@dataclass
class Push:
    """Losses of some moments, and their derivatives by what `Played` holds of them; all [moments]."""

    losses: np.ndarray
    dlog: np.ndarray
    dentropy: np.ndarray
    dvalue: np.ndarray | None = None


class PolicyLearner(Learner):
    """A policy pi(v) = softmax of the network's scores over the candidates; choices are drawn from it.

    A learner on top of this one says with `Push` how the loss changes with log-probabilities, entropies and
    values; `lesson` carries that through softmax, heads and embedding, by their derivations
    (app/rl/softmax.py, node_head.py, app/gnn/).

    episodes   those that are kept, by number: choices, rewards, totals. A state is told again from them.
    value      the value head, for learners that have one
    Ranks      as Learner
    """

    value: ValueHead | None = None

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.episodes: dict[int, Episode] = {}
        self.entropy = float("nan")

    # ---- episodes ---------------------------------------------------------------------------------------

    def begin(self, number: int, graph: int, env: Environment) -> None:
        """Open the record of an episode."""
        self.episodes[number] = Episode(graph, env.totals)

    def act(self, envs: list[Environment], graphs: list[int], step: int) -> np.ndarray:
        """One node per environment, drawn from the policy. Ranks: all call; one MAX."""
        batch = self.layouts.of(graphs, [1] * len(envs))
        if self.whole is not None and self.whole.holds(graphs, PART_ROWS):
            scores_own, candidate_own = self.whole.scores(self.params, envs, graphs)
        else:
            scores_own, candidate_own = score_environments(self.net, self.params, batch, envs)
        key = key_of(self.seed, "policy", step)
        return draw_nodes(self.group, batch, scores_own, candidate_own, key)

    def remember(self, number: int, node: int, reward: float, env: Environment) -> None:
        """Append the step to its episode."""
        episode = self.episodes[number]
        episode.add(node, reward, env.totals)
        episode.finished = env.done

    def stored(self) -> tuple[int, int]:
        """Transitions of the kept episodes, and their bytes."""
        kept = self.episodes.values()
        return sum(len(each.actions) for each in kept), sum(each.nbytes() for each in kept)

    def notes(self, step: int) -> dict[str, float]:
        """The mean entropy of the policy in the states learned from last, in nats."""
        return {"entropy": self.entropy}

    # ---- stopping and going on ----------------------------------------------------------------------------

    def state(self) -> State:
        """Besides: the kept episodes, and the entropy that was noted last."""
        state = super().state()
        state.values["entropy"] = self.entropy
        state.arrays |= pack_episodes(self.episodes)
        return state

    def restore(self, state: State) -> None:
        """See Learner."""
        super().restore(state)
        self.entropy = state.values["entropy"]
        self.episodes = unpack_episodes(state.arrays, self.net.problem.totals)

    # ---- learning ---------------------------------------------------------------------------------------

    def replay(self, moments: list[Moment]) -> Iterator[Played]:
        """The moments in consecutive parts, by graph and progress. Ranks: all call.

        Every one is a state in which a choice was made.
        """
        for part, batch, e in self.evaluations(moments):
            scores_own, hidden_own = node_scores(self.net, self.params, e)
            softmax = Softmax(self.group, batch, scores_own, e.inputs.candidate_own > 0)
            nodes = np.array([self.episodes[m.episode].actions[m.t] for m in part])
            value = None if self.value is None else self.value.values(e)
            yield Played(
                part, nodes, e, hidden_own, softmax, softmax.log_probabilities(nodes),
                self.group.device.get(softmax.entropy), value,
            )  # fmt: skip

    def evaluations(self, moments: list[Moment]) -> Iterator[tuple[list[Moment], Any, Evaluation]]:
        """(moments of a part, its layout, its states as the network sees them). Ranks: all call."""
        graph = {m: self.episodes[m.episode].graph for m in moments}
        ordered = sorted(moments, key=lambda m: (graph[m], m.t, m.episode))
        for cut in cut_states(np.array([self.blocks[graph[m]].n for m in ordered])):
            part = ordered[cut]
            runs = [(g, len(list(each))) for g, each in groupby(part, key=graph.__getitem__)]
            batch = self.layouts.of([g for g, _ in runs], [count for _, count in runs])
            chosen = [np.array(self.episodes[m.episode].actions[: m.t], dtype=np.int64) for m in part]
            totals = [self.episodes[m.episode].totals(m.t) for m in part]
            code_own, _ = self.dynamics.replayed(self.net.problem, batch, chosen, chosen, self.net.paper)
            inputs = self.net.inputs(batch, code_own, totals, self.net.paper)
            pool = self.value is not None
            yield part, batch, self.net.evaluate(self.params, batch, inputs, totals, pool=pool)

    def descend(self, moments: list[Moment], push: Callable[[Played], Push]) -> float:
        """One gradient step on the sum of the losses of some moments; returns it. Ranks: all call."""
        lesson = self.lesson(moments, push)
        self.follow(lesson)
        return lesson.loss

    def lesson(self, moments: list[Moment], push: Callable[[Played], Push]) -> Lesson:
        """The sum of the losses of some moments, and its gradient. Ranks: all call.

        The moments go through the network in parts whose arrays stay in the cache, as in Agent.lesson.
        """
        gradient, dvalue, losses, entropies = None, None, [], []
        for played in self.replay(moments):
            each, e = push(played), played.evaluation
            losses += each.losses.tolist()
            entropies += played.entropy.tolist()
            dpooled = None
            if self.value is not None:
                more, dpooled = self.value.backward(e, each.dvalue)
                dvalue = more if dvalue is None else dvalue + more
            dz_own = played.softmax.backward(played.nodes, each.dlog, each.dentropy)
            part = node_gradient(self.net, self.params, e, played.hidden_own, dz_own, dpooled)
            if gradient is None:
                gradient, batch = part, e.batch
            else:
                gradient.add(part)
        loss, self.entropy = fsum(losses), fsum(entropies) / len(entropies)
        flat = self.net.flatten(self.params, batch, gradient)
        if dvalue is not None:
            flat = self.group.device.xp.concatenate([flat, dvalue])
        return Lesson(loss, flat)

    def update(self, gradient: Array) -> None:
        """The optimisers' steps: of the network, and of the value head where there is one."""
        super().update(gradient[: self.params.size])
        if self.value is not None:
            self.value_optimiser.rate = self.rate()
            self.value_optimiser.update(self.value.params.flat, gradient[self.params.size :])

    def replicas(self) -> dict[str, np.ndarray]:
        """Those of every learner, and the value head."""
        return {**super().replicas(), **(self.value.params.host() if self.value is not None else {})}
