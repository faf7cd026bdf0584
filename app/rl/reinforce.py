"""REINFORCE with several rollouts of each graph, which are each other's baseline."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from app.checkpoint.store import State
from app.rl.learner import Lesson
from app.rl.policy_gradient import Moment, Played, PolicyLearner, Push
from app.rl.replay import Episode


class Reinforce(PolicyLearner):
    """Policy gradient by whole episodes (REINFORCE, Williams 1992).

    `rollouts` episodes play one graph; `rollout_graphs` graphs make one gradient step. With the return
    G_i,t = sum_{s >= t} discount^(s-t) r_i,s of rollout i from its step t on (0 after its end):

    Advantage  A_i,t = G_i,t - mean of G_j,t over the other rollouts j of the graph
               The baseline does not depend on what rollout i chose, so the gradient has no bias (Kool, van
               Hoof and Welling 2019); several rollouts of an instance as a baseline are POMO's idea (Kwon et
               al. 2020)
    Loss       - mean of A log pi(choice) - entropy_weight * mean of the entropies, over all choices
    By         log pi: - A / M      the entropy: - entropy_weight / M      M choices
    Differs    POMO gives the rollouts different first choices and one advantage to all choices of a rollout;
               here all are drawn, and a choice answers for what came after it. No rollout of the next graphs
               begins before these have been learned from, so the gradient is that of the policy that played.
    """

    name = "reinforce"

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self.round_size = self.case.rollouts * self.case.rollout_graphs
        self.learned = 0  # episodes that were learned from

    def begins(self, number: int) -> bool:
        """Episodes of this round only."""
        return number < self.learned + self.round_size

    def draw_of(self, number: int) -> int:
        """The rollouts of a graph share its draw."""
        return number // self.case.rollouts

    def state(self) -> State:
        """Besides: how many episodes were learned from."""
        state = super().state()
        state.values["learned"] = self.learned
        return state

    def restore(self, state: State) -> None:
        """See Learner."""
        super().restore(state)
        self.learned = state.values["learned"]

    def ready(self) -> bool:
        """When all episodes of the round are done."""
        return sum(episode.finished for episode in self.episodes.values()) >= self.round_size

    def lessons(self, steps: int) -> Iterator[Lesson]:
        """One for the round."""
        advantage = self._advantages()
        yield self.lesson(list(advantage), partial(self._push, advantage))
        self.learned += self.round_size
        self.episodes.clear()

    def _advantages(self) -> dict[Moment, float]:
        """A of every choice of the round."""
        found = {}
        numbers, k = sorted(self.episodes), self.case.rollouts
        for first in range(0, len(numbers), k):
            mine = numbers[first : first + k]
            returns = [returns_of(self.episodes[number], self.case.discount) for number in mine]
            longest = max(len(each) for each in returns)
            G = np.array([each + [0.0] * (longest - len(each)) for each in returns])
            total = np.add.accumulate(G, axis=0)[-1]
            for i, number in enumerate(mine):
                for t in range(len(self.episodes[number].actions)):
                    others = (total[t] - G[i, t]) / (k - 1)
                    found[Moment(number, t)] = float(G[i, t] - others)
        return found

    def _push(self, advantage: dict[Moment, float], played: Played) -> Push:
        count = len(advantage)
        A = np.array([advantage[m] for m in played.moments])
        weight = np.full(len(A), self.case.entropy)
        losses = -(A * played.log_probability + weight * played.entropy) / count
        return Push(losses, -A / count, -weight / count)


def returns_of(episode: Episode, discount: float) -> list[float]:
    """The discounted rewards from each step of an episode on."""
    found, after = [], 0.0
    for reward in reversed(episode.rewards):
        after = reward + discount * after
        found.append(after)
    return found[::-1]
