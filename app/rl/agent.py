"""Agent, the deep Q-learner: networks, replay, optimiser (RL4GO Alg. 1: Act, Remember, Sample, Train)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.case.policy import AgentCase
from app.checkpoint.store import State
from app.comm.group import Group
from app.errors import CaseError
from app.gnn.loss import td_loss
from app.rl.env import Environment
from app.rl.learner import Learner, Lesson, score_environments
from app.rl.qnet import Gradient, QNetwork
from app.rl.replay import BitsReplay, EpisodeReplay, Sample
from app.rl.select import best_nodes, best_values, random_candidates
from app.rng import stream
from app.sparse.batch import StateBatch
from app.sparse.rowblock import RowBlock

Array = Any
PART_ROWS = 1 << 15  # rows of all ranks in one part of a minibatch: 2 MB an array with K=16
MOST_ROWS = 1 << 18  # of larger graphs


class Agent(Learner):
    """A deep Q-learner over row-partitioned graphs.

    Source    RL4GO Alg. 1 and section 4.7; DQN: Mnih et al. 2015
    Differs   1. the default discount is short and rewards are shaped (app/problems/); 2. gradient steps per
              environment step, target copies, double DQN and n-step returns are options; 3. weights start by
              Glorot.
    Ranks     every method that evaluates is called by all ranks; weights are replicated
    """

    name = "dqn"

    def __init__(
        self,
        group: Group,
        case: AgentCase,
        net: QNetwork,
        blocks: list[RowBlock],
        seed: int,
        check_every: int,
    ) -> None:
        super().__init__(group, case, net, blocks, seed, check_every)
        self.target = self.params.copy()
        self.untrained = 0  # environment steps since the last gradient step
        if case.replay == "bits" and net.problem.ordered:
            raise CaseError(f"agent.replay: states of {net.problem.name!r} need the order of the choices")
        memory = (case.replay_capacity, case.n_step, case.discount)
        # It lies on the host, whatever the device.
        compiled = getattr(group.device, "native", True) is not None
        by_lists = case.replay != "bits"
        self.replay = EpisodeReplay(*memory, compiled) if by_lists else BitsReplay(*memory, blocks)

    # ---- acting -----------------------------------------------------------------------------------------

    def epsilon(self, step: int) -> float:
        """Exploration rate after `step` environment steps: linear decay, then constant."""
        case = self.case
        progress = min(1.0, step / max(case.epsilon_decay_steps, 1))
        return case.epsilon_start + progress * (case.epsilon_end - case.epsilon_start)

    def act(self, envs: list[Environment], graphs: list[int], step: int) -> np.ndarray:
        """One node per environment: random with probability epsilon, else the best score.

        returns   [envs] global nodes. Ranks: all call; identical on all
        """
        draws = stream(self.seed, "explore", step)
        explore = (draws.random(len(envs)) < self.epsilon(step)).tolist()
        counts = [env.totals.candidates for env in envs]
        # One draw is the same either way, and a quarter of the time by itself.
        picks = (
            draws.integers(np.array(counts)).tolist() if len(envs) > 1 else [int(draws.integers(counts[0]))]
        )
        if all(explore):
            return random_candidates(self.group, envs, picks)
        if not any(explore):
            return self.best_actions(graphs, envs)
        nodes = np.empty(len(envs), dtype=np.int64)
        chosen = [i for i, random in enumerate(explore) if random]
        nodes[chosen] = random_candidates(self.group, [envs[i] for i in chosen], [picks[i] for i in chosen])
        chosen = [i for i, random in enumerate(explore) if not random]
        nodes[chosen] = self.best_actions([graphs[i] for i in chosen], [envs[i] for i in chosen])
        return nodes

    def best_actions(self, graphs: list[int], envs: list[Environment]) -> np.ndarray:
        """The greedy action of every environment, on training graphs `graphs`. Ranks: all call."""
        if self.whole is not None and self.whole.holds(graphs, PART_ROWS):
            return self.whole.best(self.params, envs, graphs)
        batch = self.layouts.of(graphs, [1] * len(envs))
        return best_nodes(self.group, batch, *score_environments(self.net, self.params, batch, envs))

    # ---- learning ---------------------------------------------------------------------------------------

    def begin(self, number: int, graph: int, env: Environment) -> None:
        """Open an episode in the replay memory, which numbers them alike."""
        self.replay.begin(graph, env.totals)

    def remember(self, number: int, node: int, reward: float, env: Environment) -> None:
        """Put the step into the replay memory."""
        self.replay.remember(number, node, reward, env.totals, env.done)

    def remember_all(
        self, numbers: list[int], nodes: list[int], rewards: list[float], envs: list[Environment]
    ) -> None:
        """See Learner; the memory takes them together."""
        if len(envs) < 2 or type(self).remember is not Agent.remember:
            super().remember_all(numbers, nodes, rewards, envs)
            return
        totals, done = [env.totals for env in envs], [env.done for env in envs]
        self.replay.remember_all(list(zip(numbers, nodes, rewards, totals, done)))

    def ready(self) -> bool:
        """After the warm-up."""
        return len(self.replay) >= max(self.case.warmup, 1)

    def lessons(self, steps: int) -> Iterator[Lesson]:
        """`gradient_steps` minibatches for every `train_every` environment steps."""
        self.untrained += steps
        due, self.untrained = divmod(self.untrained, self.case.train_every)
        for _ in range(self.case.gradient_steps * due):
            draws = stream(self.seed, "sample", self.optimiser.step)
            yield self.lesson(self.replay.sample(draws, self.case.batch))

    def notes(self, step: int) -> dict[str, float]:
        """The exploration rate."""
        return {"epsilon": self.epsilon(step)}

    def replicas(self) -> dict[str, np.ndarray]:
        """Those of every learner, and the target network."""
        target = {f"target {name}": array for name, array in self.target.host().items()}
        return {**super().replicas(), **target}

    def stored(self) -> tuple[int, int]:
        """Transitions in the replay memory, and its bytes."""
        return len(self.replay), self.replay.nbytes()

    def state(self) -> State:
        """Besides: the target network, the replay memory, and steps that count for the next gradient step."""
        state = super().state()
        state.values |= {"added": self.replay.added, "begun": self.replay.begun, "untrained": self.untrained}
        state.arrays["target"] = np.array(self.group.device.get(self.target.flat))
        state.arrays |= self.replay.arrays()
        return state

    def restore(self, state: State) -> None:
        """See Learner."""
        super().restore(state)
        self.target.flat[:] = self.group.device.put(state.arrays["target"])
        added, begun, self.untrained = (state.values[key] for key in ("added", "begun", "untrained"))
        self.replay.restore(added, begun, state.arrays, self.net.problem.totals)

    def learn(self, sample: Sample) -> float:
        """One gradient step on a minibatch; returns its loss. Ranks: all call; identical on all."""
        lesson = self.lesson(sample)
        self.follow(lesson)
        return lesson.loss

    def lesson(self, sample: Sample) -> Lesson:
        """The mean loss of a minibatch, and its gradient. Ranks: all call; identical on all.

        The minibatch goes through the network in parts whose arrays stay in the cache; the gradient is their
        sum. How it is cut depends on the graphs alone.
        """
        if self.whole is not None and self.whole.holds(sample.graphs.tolist(), PART_ROWS):
            return self._whole_lesson(sample)
        gradient, losses = None, []
        for part in self._cut(sample):
            values, more = self._learn_part(part, len(sample.graphs))
            losses.append(values)
            if gradient is None:
                gradient, batch = more, part.batch
            else:
                gradient.add(more)
        loss = _mean(np.concatenate(losses))
        return Lesson(loss, self.net.flatten(self.params, batch, gradient))

    def _whole_lesson(self, sample: Sample) -> Lesson:
        """`lesson` of a minibatch of one part, in one compiled call."""
        codes = None
        if self.whole.wants_codes:
            (part,) = self._cut(sample)
            codes = self.dynamics.replayed(
                self.net.problem, part.batch, sample.before, sample.after, self.net.paper
            )
        losses, gradient = self.whole.losses(sample, codes, (self.params, self.target), self.case)
        return Lesson(_mean(losses), gradient)

    def update(self, gradient: Array) -> None:
        """The optimiser's step, and every `target_every` steps a copy to the target network."""
        super().update(gradient)
        if self.optimiser.step % self.case.target_every == 0:
            self.target.flat[:] = self.params.flat

    def _cut(self, sample: Sample) -> Iterator["_SamplePart"]:
        """Consecutive parts of a sample whose arrays stay in the cache."""
        for cut in cut_states(self._sizes_of(sample)):
            graphs, counts = np.unique(sample.graphs[cut], return_counts=True)
            yield _SamplePart(sample, cut, self.layouts.of(graphs.tolist(), counts.tolist()))

    def _sizes_of(self, sample: Sample) -> np.ndarray:
        """[B] nodes of the graphs of a sample."""
        return np.array([self.blocks[g].n for g in sample.graphs.tolist()])

    def _learn_part(self, part: "_SamplePart", whole: int) -> tuple[np.ndarray, Gradient]:
        """Losses of the transitions of a part, and its share of the gradient. Ranks: all call.

        whole   transitions in the minibatch, over which the loss is averaged
        """
        sample, cut, batch = part.sample, part.cut, part.batch
        code0, code1 = self.dynamics.replayed(
            self.net.problem, batch, sample.before[cut], sample.after[cut], self.net.paper
        )
        later = self._next_values(batch, sample.totals_after[cut], code1)
        target = (sample.returns[cut] + sample.discounts[cut] * later).astype(np.float32)
        inputs = self.net.inputs(batch, code0, sample.totals_before[cut], self.net.paper)
        now = self.net.evaluate(self.params, batch, inputs, sample.totals_before[cut], pool=True)
        q, kept = self.net.chosen_values(self.params, now, sample.nodes[cut])
        losses, dq = td_loss(q, target, self.case.loss, whole)
        return losses, self.net.chosen_backward(self.params, now, kept, dq)

    def _next_values(self, batch: StateBatch, totals: list[Any], code1: Array) -> np.ndarray:
        """[states] value of the next states by the target network (double DQN: at the online argmax)."""
        inputs = self.net.inputs(batch, code1, totals, self.net.paper)
        later = self.net.evaluate(self.target, batch, inputs, totals, pool=True, keep=False)
        candidate_own = code1 >= self.net.problem.first_candidate
        if self.case.double:
            pool = self.net.pools_to_choose
            online = self.net.evaluate(self.params, batch, inputs, totals, pool=pool, keep=False)
            scores_own = self.net.local_scores(self.params, online)
            best = best_nodes(self.group, batch, scores_own, candidate_own)
            return self.net.chosen_values(self.target, later, best)[0]
        scores_own = self.net.local_scores(self.target, later)
        constant = batch.device.get(self.net.pooled_scores(self.target, later))
        return best_values(self.group, batch, scores_own, candidate_own) + constant


def _mean(losses: np.ndarray) -> float:
    """The mean of the losses of a minibatch."""
    return float(losses.sum() / np.float32(len(losses)))


@dataclass
class _SamplePart:
    """Some of the transitions of a sample, and the layout of their states."""

    sample: Sample
    cut: slice
    batch: StateBatch


def cut_states(sizes: np.ndarray) -> Iterator[slice]:
    """Cuts of a list of states into consecutive parts of at most PART_ROWS rows of all ranks.

    Of larger graphs up to four states go together, while they have at most MOST_ROWS: they share what a part
    and a row of the adjacency cost.

    sizes   [states] nodes of the graph of each
    """
    ends = np.cumsum(sizes)
    lo = 0
    while lo < len(sizes):
        before = int(ends[lo] - sizes[lo])
        most = max(PART_ROWS, min(4 * int(sizes[lo]), MOST_ROWS))
        hi = max(int(np.searchsorted(ends, before + most, side="right")), lo + 1)
        yield slice(lo, hi)
        lo = hi
