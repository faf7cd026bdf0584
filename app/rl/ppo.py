"""Proximal policy optimisation: several passes over fresh steps, held close to the policy that made them."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from math import fsum, sqrt

import numpy as np

from app.checkpoint.store import State
from app.gnn.optim import optimiser_arrays, restore_optimiser
from app.numerics.elementary import exp
from app.rl.env import Environment
from app.rl.learner import Lesson
from app.rl.node_head import ValueHead
from app.rl.policy_gradient import Moment, Played, PolicyLearner, Push
from app.rng import stream


@dataclass
class Target:
    """What a step is judged by: log pi of the policy that made it, its advantage, the return to predict."""

    log_probability: float
    advantage: float
    value: float


class ProximalPolicy(PolicyLearner):
    """PPO with a clipped surrogate (Schulman et al. 2017, eqs. 7 and 9).

    Advantage  delta_t = r_t + discount V(s_t+1) - V(s_t), A_t = delta_t + discount gae_lambda A_t+1 within an
               episode (Schulman et al. 2016, generalised advantage estimation), V = 0 at its end; returns are
               A + V; then A is shifted and scaled to mean 0 and deviation 1 over the steps
    Loss       mean of - min(rho A, clip(rho, 1 - clip, 1 + clip) A) + value_weight (V - return)^2 - entropy H
               with rho = exp(log pi - log pi_old)
    By         log pi: - rho A where rho A is the smaller one, else 0     V: 2 value_weight (V - return)
               H: - entropy                                               each divided by the mean's count
    Passes     epochs_per_batch over `rollout_steps` steps, each shuffled, in minibatches of agent.batch
    """

    name = "ppo"

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self.value = ValueHead(self.group.device, self.net.K)
        self.value_optimiser = self.new_optimiser(self.value.params.size)
        self.fresh: list[Moment] = []

    def remember(self, number: int, node: int, reward: float, env: Environment) -> None:
        """Append the step to its episode, and to those to learn from."""
        self.fresh.append(Moment(number, len(self.episodes[number].actions)))
        super().remember(number, node, reward, env)

    def state(self) -> State:
        """Besides: the value head, its optimiser, and the steps not yet learned from."""
        state, device = super().state(), self.group.device
        state.values["value_steps"] = self.value_optimiser.step
        state.arrays["value"] = np.array(device.get(self.value.params.flat))
        state.arrays |= optimiser_arrays(self.value_optimiser, device, "value")
        state.arrays["fresh"] = np.array(self.fresh, dtype=np.int64).reshape(-1, 2)
        return state

    def restore(self, state: State) -> None:
        """See Learner."""
        super().restore(state)
        device, step = self.group.device, state.values["value_steps"]
        self.value.params.flat[:] = device.put(state.arrays["value"])
        restore_optimiser(self.value_optimiser, device, "value", step, state.arrays)
        self.fresh = [Moment(*each) for each in state.arrays["fresh"].tolist()]

    def ready(self) -> bool:
        """Once there are `rollout_steps` steps."""
        return len(self.fresh) >= self.case.rollout_steps

    def lessons(self, steps: int) -> Iterator[Lesson]:
        """Those of all passes."""
        targets, size = self._targets(), self.case.batch
        for _ in range(self.case.epochs_per_batch):
            draws = stream(self.seed, "minibatches", self.optimiser.step)
            order = draws.permutation(len(self.fresh)).tolist()
            for lo in range(0, len(order), size):
                moments = [self.fresh[i] for i in order[lo : lo + size]]
                yield self.lesson(moments, partial(self._push, targets, len(moments)))
        self.fresh.clear()
        self.episodes = {n: each for n, each in self.episodes.items() if not each.finished}

    def _targets(self) -> dict[Moment, Target]:
        """What the fresh steps are judged by, with the weights of now. Ranks: all call."""
        found = {}
        for played in self.replay(self.fresh):
            for m, log_probability, value in zip(
                played.moments, played.log_probability.tolist(), played.value.tolist()
            ):
                found[m] = Target(log_probability, 0.0, value)
        values = {m: target.value for m, target in found.items()} | self._values_ahead()
        self._estimate(found, values)
        advantages = [target.advantage for target in found.values()]
        mean = fsum(advantages) / len(advantages)
        deviation = sqrt(fsum((a - mean) ** 2 for a in advantages) / len(advantages))
        for target in found.values():
            target.advantage = (target.advantage - mean) / (deviation + 1e-8)
        return found

    def _values_ahead(self) -> dict[Moment, float]:
        """The values of the states in which unfinished episodes stand. Ranks: all call."""
        numbers = sorted({m.episode for m in self.fresh if not self.episodes[m.episode].finished})
        ends = [Moment(number, len(self.episodes[number].actions)) for number in numbers]
        return {
            m: value
            for part, _, e in (self.evaluations(ends) if ends else ())
            for m, value in zip(part, self.value.values(e).tolist())
        }

    def _estimate(self, targets: dict[Moment, Target], values: dict[Moment, float]) -> None:
        """Advantages and returns, from the last step of each episode back."""
        discount, ahead = self.case.discount, {}
        for m in sorted(self.fresh, reverse=True):
            after = Moment(m.episode, m.t + 1)
            reward = self.episodes[m.episode].rewards[m.t]
            delta = reward + discount * values.get(after, 0.0) - values[m]
            ahead[m] = delta + discount * self.case.gae_lambda * ahead.get(after, 0.0)
            targets[m].advantage, targets[m].value = ahead[m], ahead[m] + values[m]

    def _push(self, targets: dict[Moment, Target], count: int, played: Played) -> Push:
        """The loss of some of `count` moments and its derivatives, as the class states them."""
        case, mine = self.case, [targets[m] for m in played.moments]
        old = np.array([target.log_probability for target in mine])
        A = np.array([target.advantage for target in mine])
        error = played.value - np.array([target.value for target in mine])
        ratio = exp(np, played.log_probability - old)
        clipped = np.clip(ratio, 1 - case.clip, 1 + case.clip)
        inside = ratio * A <= clipped * A
        losses = -np.where(inside, ratio, clipped) * A + case.value_weight * error * error
        losses -= case.entropy * played.entropy
        dentropy = np.full(len(mine), -case.entropy / count)
        return Push(
            losses / count, np.where(inside, -ratio * A, 0.0) / count, dentropy,
            2 * case.value_weight * error / count,
        )  # fmt: skip
