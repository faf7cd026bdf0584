"""PolicyLearner: what learners share that draw their actions and follow gradients of log-probabilities."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, groupby
from math import fsum
from typing import Any, NamedTuple, Protocol

import numpy as np

from app.checkpoint.store import State
from app.native.lesson import LessonKernels, PlayedStates
from app.rl.agent import PART_ROWS, cut_states
from app.rl.compiled_lesson import Choices
from app.rl.env import Environment
from app.rl.learner import Learner, Lesson, score_environments
from app.rl.node_head import ValueHead, node_gradient, node_scores
from app.rl.qnet import Evaluation, Gradient
from app.rl.replay import Episode, pack_episodes, unpack_episodes
from app.rl.softmax import Softmax, draw_nodes
from app.rng import key_of
from app.sparse.batch import StateBatch

Array = Any


class Moment(NamedTuple):
    """The state of an episode after t choices."""

    episode: int
    t: int


@dataclass
class Push:
    """Losses of some moments, and their derivatives by what `Played` holds of them; all [moments]."""

    losses: np.ndarray
    dlog: np.ndarray
    dentropy: np.ndarray
    dvalue: np.ndarray | None = None


@dataclass
class Played:
    """Some moments of episodes, evaluated with the weights of now; arrays [moments] are on the host.

    log_probability   of the choices that were made
    value             of the states, where the learner has a value head
    back              carries the derivatives of a loss to the weights, before others are played
    """

    moments: list[Moment]
    nodes: np.ndarray
    log_probability: np.ndarray
    entropy: np.ndarray
    value: np.ndarray | None
    back: Callable[[Push], "Addends"]


class Addends(Protocol):
    """The gradient of the losses of some moments, in which sums over nodes are still due."""

    def add(self, other: Any) -> None:
        """Add that of others, in place."""

    def flat(self) -> Array:
        """The gradient [all weights]. Ranks: all call; identical on all."""


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
        key = key_of(self.seed, "policy", step)
        if self.whole is not None and self.whole.holds(graphs, PART_ROWS):
            return self.whole.draw(self.params, envs, graphs, key)
        batch = self.layouts.of(graphs, [1] * len(envs))
        scores_own, candidate_own = score_environments(self.net, self.params, batch, envs)
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
        parts = list(self._parts(moments))
        whole = self.whole
        if whole is not None and all(whole.holds(self._graphs_of(part), PART_ROWS) for part in parts):
            yield from map(self._played_whole, parts)
            return
        for part, batch, e in map(self._evaluated, parts):
            scores_own, hidden_own = node_scores(self.net, self.params, e)
            softmax = Softmax(self.group, batch, scores_own, e.inputs.candidate_own > 0)
            nodes = self._nodes_of(part)
            value = None if self.value is None else self.value.values(e)
            yield Played(
                part, nodes, softmax.log_probabilities(nodes), self.group.device.get(softmax.entropy), value,
                partial(self._pushed_back, e, hidden_own, softmax, nodes),
            )  # fmt: skip

    def evaluations(self, moments: list[Moment]) -> Iterator[tuple[list[Moment], Any, Evaluation]]:
        """(moments of a part, its layout, its states as the network sees them). Ranks: all call."""
        return map(self._evaluated, self._parts(moments))

    def _parts(self, moments: list[Moment]) -> Iterator[list[Moment]]:
        """Moments by graph and progress, cut where Agent.lesson would."""
        graph = {m: self.episodes[m.episode].graph for m in moments}
        ordered = sorted(moments, key=lambda m: (graph[m], m.t, m.episode))
        for cut in cut_states(np.array([self.blocks[graph[m]].n for m in ordered])):
            yield ordered[cut]

    def _graphs_of(self, part: list[Moment]) -> list[int]:
        return [self.episodes[m.episode].graph for m in part]

    def _nodes_of(self, part: list[Moment]) -> np.ndarray:
        """[moments] int64, what was chosen."""
        return np.array([self.episodes[m.episode].actions[m.t] for m in part], dtype=np.int64)

    def _laid_out(self, part: list[Moment]) -> StateBatch:
        """The layout of the states of a part."""
        runs = [(g, len(list(each))) for g, each in groupby(self._graphs_of(part))]
        return self.layouts.of([g for g, _ in runs], [count for _, count in runs])

    def _codes_of(self, batch: StateBatch, part: list[Moment]) -> Array:
        """[rows] int32 codes of the states of a part."""
        chosen = [np.array(self.episodes[m.episode].actions[: m.t], dtype=np.int64) for m in part]
        return self.dynamics.replayed(self.net.problem, batch, chosen, chosen, self.net.paper)[0]

    def _evaluated(self, part: list[Moment]) -> tuple[list[Moment], StateBatch, Evaluation]:
        """A part as `evaluations` has it."""
        batch = self._laid_out(part)
        totals = [self.episodes[m.episode].totals(m.t) for m in part]
        inputs = self.net.inputs(batch, self._codes_of(batch, part), totals, self.net.paper)
        pool = self.value is not None
        return part, batch, self.net.evaluate(self.params, batch, inputs, totals, pool=pool)

    def _pushed_back(
        self, e: Evaluation, hidden_own: Array, softmax: Softmax, nodes: np.ndarray, push: Push
    ) -> "PartAddends":
        """Through the value head, the softmax, the head and the embedding. Ranks: all call."""
        dvalue = dpooled = None
        if self.value is not None:
            dvalue, dpooled = self.value.backward(e, push.dvalue)
        dz_own = softmax.backward(nodes, push.dlog, push.dentropy)
        part = node_gradient(self.net, self.params, e, hidden_own, dz_own, dpooled)
        return PartAddends(self, e.batch, part, dvalue)

    # ---- the same in compiled calls ---------------------------------------------------------------------

    def _played_whole(self, part: list[Moment]) -> Played:
        """A part as `replay` has it."""
        whole, graphs, nodes = self.whole, self._graphs_of(part), self._nodes_of(part)
        seen = self._codes_of(self._laid_out(part), part) if whole.wants_codes else self._choices_of(part)
        totals = [self.episodes[m.episode].totals(m.t) for m in part]
        weights = self.params, None if self.value is None else self.value.params
        played = whole.play(np.array(graphs, dtype=np.int64), totals, seen, weights, nodes)
        back = partial(WholeAddends, whole.kernels, played)
        return Played(part, nodes, played.log_probability, played.entropy, played.values, back)

    def _choices_of(self, part: list[Moment]) -> Choices:
        """What led to the states of a part; the choices of an episode once."""
        numbers = list(dict.fromkeys(m.episode for m in part))
        chosen = [np.frombuffer(self.episodes[number].actions, dtype=np.int64) for number in numbers]
        begin = dict(zip(numbers, accumulate(map(len, chosen), initial=0)))
        return Choices(
            np.concatenate(chosen),
            np.array([begin[m.episode] for m in part], dtype=np.int64),
            np.array([m.t for m in part], dtype=np.int64),
        )

    def descend(self, moments: list[Moment], push: Callable[[Played], Push]) -> float:
        """One gradient step on the sum of the losses of some moments; returns it. Ranks: all call."""
        lesson = self.lesson(moments, push)
        self.follow(lesson)
        return lesson.loss

    def lesson(self, moments: list[Moment], push: Callable[[Played], Push]) -> Lesson:
        """The sum of the losses of some moments, and its gradient. Ranks: all call.

        The moments go through the network in parts whose arrays stay in the cache, as in Agent.lesson.
        """
        gradient, losses, entropies = None, [], []
        for played in self.replay(moments):
            each = push(played)
            losses += each.losses.tolist()
            entropies += played.entropy.tolist()
            part = played.back(each)
            if gradient is None:
                gradient = part
            else:
                gradient.add(part)
        loss, self.entropy = fsum(losses), fsum(entropies) / len(entropies)
        return Lesson(loss, gradient.flat())

    def update(self, gradient: Array) -> None:
        """The optimisers' steps: of the network, and of the value head where there is one."""
        super().update(gradient[: self.params.size])
        if self.value is not None:
            self.value_optimiser.rate = self.rate()
            self.value_optimiser.update(self.value.params.flat, gradient[self.params.size :])

    def replicas(self) -> dict[str, np.ndarray]:
        """Those of every learner, and the value head."""
        return {**super().replicas(), **(self.value.params.host() if self.value is not None else {})}


@dataclass
class PartAddends:
    """Addends as the products left them: of the network's weights, and of a value head or None."""

    learner: PolicyLearner
    batch: StateBatch
    gradient: Gradient
    dvalue: Array | None

    def add(self, other: "PartAddends") -> None:
        """See Addends."""
        self.gradient.add(other.gradient)
        if self.dvalue is not None:
            self.dvalue = self.dvalue + other.dvalue

    def flat(self) -> Array:
        """See Addends."""
        learner = self.learner
        found = learner.net.flatten(learner.params, self.batch, self.gradient)
        return found if self.dvalue is None else self.batch.device.xp.concatenate([found, self.dvalue])


class WholeAddends:
    """Addends as the compiled lessons leave them."""

    def __init__(self, kernels: LessonKernels, played: PlayedStates, push: Push) -> None:
        self.kernels, self.last = kernels, played
        dvalue = None if played.values is None else push.dvalue.astype(np.float32)
        played.push(push.dlog.astype(np.float32), push.dentropy.astype(np.float32), dvalue)
        kernels.back(played)
        self.sum = played.addends

    def add(self, other: "WholeAddends") -> None:
        """See Addends."""
        self.sum += other.sum
        self.last = other.last

    def flat(self) -> Array:
        """See Addends."""
        return self.kernels.close(self.last, self.sum)
