"""Replay memory: episodes as action lists, so that a transition is two integers whatever the graph's size.

A state is told again from its graph and the first t choices (replayed of the environments, app/rl/env.py).
RL4GO section 5.1 stores the graph index and the partial solution of each tuple, 8(N/P+1) bytes; `BitsReplay`
does just that, for comparison.
"""

import struct
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np

from app.native import replay
from app.native.replay import Collected, Collector
from app.problems.problem import StateTotals
from app.sparse.rowblock import RowBlock

RECORD = struct.Struct(f"{replay.RECORD}q")
FEW = 512  # transitions that the kernel sorts by insertion; more come in order


class Episode:
    """One run over a graph: what was chosen, what it earned, and the exact totals of every state passed.

    Kept in flat arrays of 8 bytes a number: an action, a reward, and the totals.

    held   its transitions that the memory has
    """

    def __init__(self, graph: int, totals: StateTotals) -> None:
        self.graph, self.finished, self.held = graph, False, 0
        self.actions, self.rewards = array("q"), array("d")
        self._kind, self._width = type(totals), len(totals)
        self._totals = array("q", totals)  # one state more than actions
        self._record: bytes | None = None

    def add(self, action: int, reward: float, totals: StateTotals) -> None:
        """Append a step and the totals of the state it led to."""
        self._record = None
        self.actions.append(action)
        self.rewards.append(reward)
        self._totals.extend(totals)

    def totals(self, t: int) -> StateTotals:
        """The totals of the state after t steps."""
        return self._kind._make(self.numbers(t))

    def numbers(self, t: int) -> array:
        """The same as numbers alone."""
        return self._totals[self._width * t : self._width * (t + 1)]

    def named(self, numbers: Iterable[int]) -> list[StateTotals]:
        """Numbers of states like this episode's, end to end, as totals."""
        each = iter(numbers)
        return list(map(tuple.__new__, repeat(self._kind), zip(*[each] * self._width)))

    def record(self) -> bytes:
        """What app/native/replay.py knows of it; holds until the next step."""
        if self._record is None or not self.finished:
            places = (each.buffer_info()[0] for each in (self.actions, self.rewards, self._totals))
            self._record = RECORD.pack(self.graph, self.finished, len(self.actions), *places)
        return self._record

    @property
    def width(self) -> int:
        """Numbers of a state's totals."""
        return self._width

    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return 8 * (len(self.actions) + len(self.rewards) + len(self._totals))

    @property
    def all_totals(self) -> array:
        """The totals of every state passed, one after the other."""
        return self._totals


def pack_episodes(episodes: dict[int, Episode]) -> dict[str, np.ndarray]:
    """Episodes as arrays, in their order.

    episodes [k, 4] int64: number, graph, finished, steps; actions, rewards, totals: those of all, end to end
    """
    kept = episodes.values()
    about = [[n, each.graph, each.finished, len(each.actions)] for n, each in episodes.items()]
    return {
        "episodes": np.array(about, dtype=np.int64).reshape(-1, 4),
        "actions": _joined([each.actions for each in kept], np.int64),
        "rewards": _joined([each.rewards for each in kept], np.float64),
        "totals": _joined([each.all_totals for each in kept], np.int64),
    }


def unpack_episodes(arrays: dict[str, np.ndarray], totals: Callable[..., StateTotals]) -> dict[int, Episode]:
    """The episodes of pack_episodes; `totals` makes the totals of a state of its numbers."""
    about = arrays["episodes"].tolist()
    states = sum(steps + 1 for *_, steps in about)
    numbers = arrays["totals"].reshape(states, -1).tolist() if about else []
    actions, rewards = arrays["actions"].tolist(), arrays["rewards"].tolist()
    episodes, at, passed = {}, 0, 0
    for number, graph, finished, steps in about:
        episode = Episode(graph, totals(*numbers[passed]))
        for t in range(steps):
            episode.add(actions[at + t], rewards[at + t], totals(*numbers[passed + t + 1]))
        episode.finished = bool(finished)
        episodes[number] = episode
        at, passed = at + steps, passed + steps + 1
    return episodes


def _joined(parts: list[array], kind: type) -> np.ndarray:
    return np.concatenate([np.zeros(0, dtype=kind), *(np.frombuffer(each, dtype=kind) for each in parts)])


class Prefixes(Sequence[np.ndarray]):
    """The first counts[i] choices of each of some states, cut when they are asked for."""

    def __init__(self, found: Collected, counts: np.ndarray) -> None:
        self._chosen, self._begin, self._counts = found.chosen, found.begin, counts

    def __len__(self) -> int:
        return len(self._counts)

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return [self[at] for at in range(*i.indices(len(self)))]
        lo = int(self._begin[i])
        return self._chosen[lo : lo + int(self._counts[i])]


@dataclass
class Sample:
    """A minibatch of transitions, sorted by graph and step, the same on all ranks.

    graphs [B] graph indices, ascending     nodes [B] chosen nodes
    returns [B] float32 discounted rewards of n steps
    discounts [B] float32 factor of the value after them, 0 at the end
    before, after    choices that led to the states, in order, and to the states n steps later, which begin
                     with the former
    collected        the same as flat arrays, or None
    """

    graphs: np.ndarray
    nodes: np.ndarray
    returns: np.ndarray
    discounts: np.ndarray
    before: Sequence[np.ndarray]
    after: Sequence[np.ndarray]
    totals_before: list[StateTotals]
    totals_after: list[StateTotals]
    collected: Collected | None = None


class EpisodeReplay:
    """The default memory: 8 bytes a transition in the ring, and for its episode 40 a step with 3 totals.

    compiled   kernels may collect minibatches, with the same bits
    """

    def __init__(self, capacity: int, n_step: int, discount: float, compiled: bool = False) -> None:
        self.capacity, self.n_step, self.discount = capacity, n_step, discount
        self.compiled = compiled and replay.available()
        self._collector: Collector | None = None
        self.episodes: dict[int, Episode] = {}
        self.ring = np.empty((capacity, 2), dtype=np.int32)  # (episode, t)
        self.added = 0
        self._next_episode = 0
        self._powers = [discount**i for i in range(n_step + 1)]

    @property
    def begun(self) -> int:
        """Episodes that were begun."""
        return self._next_episode

    def __len__(self) -> int:
        return min(self.added, self.capacity)

    def begin(self, graph: int, totals: StateTotals) -> int:
        """Start an episode; returns its number."""
        number = self._next_episode
        self._next_episode += 1
        self.episodes[number] = Episode(graph, totals)
        return number

    def remember(self, number: int, action: int, reward: float, totals: StateTotals, done: bool) -> None:
        """Add a step to an episode; transitions become available once their n-step return is known."""
        episode = self.episodes[number]
        episode.add(action, reward, totals)
        episode.finished = done
        steps = len(episode.actions)
        first = steps - self.n_step
        for t in range(max(first, 0), steps if done else first + 1):
            self._push(number, t)

    def remember_all(self, steps: list[tuple[int, int, float, StateTotals, bool]]) -> None:
        """`remember` of several steps of different episodes, in order."""
        if len(steps) * self.n_step > self.capacity:
            for each in steps:
                self.remember(*each)
            return
        known = []
        for number, action, reward, totals, done in steps:
            episode = self.episodes[number]
            episode.add(action, reward, totals)
            episode.finished = done
            made = len(episode.actions)
            first = made - self.n_step
            if done:
                known += [(number, t) for t in range(max(first, 0), made)]
                episode.held += made - max(first, 0)
            elif first >= 0:
                known.append((number, first))
                episode.held += 1
        if known:
            self._push_all(known)

    def _push_all(self, known: list[tuple[int, int]]) -> None:
        """Transitions (episode, t), counted as held, at most `capacity`, take the places of the oldest."""
        slots = np.arange(self.added, self.added + len(known))
        old = slots[slots >= self.capacity] % self.capacity
        leaving = self.ring[old, 0].tolist()
        self.ring[slots % self.capacity] = known
        self.added += len(known)
        for number in leaving:
            self._release(number)

    def _push(self, number: int, t: int) -> None:
        slot = self.added % self.capacity
        leaving = int(self.ring[slot, 0]) if self.added >= self.capacity else None
        self.ring[slot] = number, t
        self.added += 1
        self.episodes[number].held += 1
        if leaving is not None:
            self._release(leaving)

    def _release(self, number: int) -> None:
        """A transition of an episode has left, and the episode with its last one."""
        episode = self.episodes[number]
        episode.held -= 1
        if episode.finished and not episode.held:
            del self.episodes[number]

    def sample(self, rng: np.random.Generator, size: int) -> Sample:
        """`size` transitions drawn uniformly, with replacement."""
        drawn = self.ring[rng.integers(0, len(self), size)]
        if self.compiled:
            return self._collect_compiled(drawn)
        picks = drawn.tolist()
        # Of one graph by progress: states that are worked on together then have similar nodes left.
        keys = [(self.episodes[number].graph, t, i) for i, (number, t) in enumerate(picks)]
        keys.sort()
        return self._collect([picks[i] for *_, i in keys], np.array([graph for graph, *_ in keys]))

    def _collect_compiled(self, drawn: np.ndarray) -> Sample:
        """The transitions of slots [B, 2], in the order that `sample` gives them."""
        episodes = self.episodes
        if len(drawn) > FEW:
            graphs = [episodes[number].graph for number in drawn[:, 0].tolist()]
            drawn = drawn[np.lexsort((drawn[:, 1], graphs))]
        picks = drawn.tolist()
        chosen = [episodes[number] for number, _ in picks]
        if self._collector is None:
            self._collector = Collector(self.n_step, self._powers, chosen[0].width)
        records = b"".join([each.record() for each in chosen])
        found = self._collector.collect(drawn, records, sum([t for _, t in picks]))
        states, count = chosen[0].named(found.totals.tolist()), len(picks)
        return Sample(
            found.graphs, found.nodes, found.returns, found.discounts,
            Prefixes(found, found.before), Prefixes(found, found.after),
            states[:count], states[count:], found,
        )  # fmt: skip

    def _collect(self, picks: list[list[int]], graphs: np.ndarray) -> Sample:
        returns, discounts, ends = [], [], []
        chosen, totals = array("q"), array("q")
        for number, t in picks:
            episode = self.episodes[number]
            actions, steps = episode.actions, len(episode.actions)
            end = min(t + self.n_step, steps)
            terminal = episode.finished and end == steps
            returns.append(self._return(episode.rewards, t, end))
            discounts.append(0.0 if terminal else self._powers[end - t])
            chosen.extend(actions[:end])
            ends.append(len(chosen))
            totals.extend(episode.numbers(t))
            totals.extend(episode.numbers(end))
        every, steps = np.frombuffer(chosen, dtype=np.int64), [t for _, t in picks]
        starts = [0, *ends[:-1]]
        states = episode.named(totals)
        return Sample(
            graphs, every[np.add(starts, steps)], np.array(returns, dtype=np.float32),
            np.array(discounts, dtype=np.float32),
            [every[lo : lo + t] for lo, t in zip(starts, steps)],
            [every[lo:end] for lo, end in zip(starts, ends)], states[::2], states[1::2],
        )  # fmt: skip

    def _return(self, rewards: array, t: int, end: int) -> float:
        """Discounted rewards of steps t .. end - 1."""
        total = 0.0
        for i in range(t, end):
            total += rewards[i] * self._powers[i - t]
        return total

    def arrays(self) -> dict[str, np.ndarray]:
        """All of it, beside the numbers of transitions `added` and of episodes begun."""
        return {"ring": self.ring[: len(self)].copy(), **pack_episodes(self.episodes)}

    def restore(
        self, added: int, begun: int, arrays: dict[str, np.ndarray], totals: Callable[..., StateTotals]
    ) -> None:
        """Make a new memory what `arrays` told of an earlier one; totals: see unpack_episodes."""
        self.added = added
        self.ring[: len(self)] = arrays["ring"]
        self.episodes = unpack_episodes(arrays, totals)
        for number, held in zip(*np.unique(arrays["ring"][:, 0], return_counts=True)):
            self.episodes[int(number)].held = int(held)
        self._next_episode = begun

    def nbytes(self) -> int:
        """Bytes held: the ring, and per step of an episode its action, reward and totals."""
        return 8 * len(self) + sum(episode.nbytes() for episode in self.episodes.values())


class BitsReplay(EpisodeReplay):
    """RL4GO's tuple: graph index and partial solution of this rank's rows, 8(N/P+1) bytes a transition.

    The sampled states are rebuilt from the stored vectors, so they must not depend on the order of the
    choices. Learning is the same as with EpisodeReplay; only the memory differs.
    """

    def __init__(self, capacity: int, n_step: int, discount: float, blocks: list[RowBlock]) -> None:
        super().__init__(capacity, n_step, discount)
        self.blocks = blocks
        self.tuples: dict[tuple[int, int], np.ndarray] = {}
        self.slots: list[tuple[int, int] | None] = [None] * capacity

    def remember_all(self, steps: list[tuple[int, int, float, StateTotals, bool]]) -> None:
        """See EpisodeReplay; each is stored by itself."""
        for each in steps:
            self.remember(*each)

    def _push(self, number: int, t: int) -> None:
        slot = self.added % self.capacity
        if self.slots[slot] is not None:
            del self.tuples[self.slots[slot]]
        self._store(slot, number, t)
        super()._push(number, t)

    def _store(self, slot: int, number: int, t: int) -> None:
        """Keep the state of an episode after t choices."""
        episode = self.episodes[number]
        block = self.blocks[episode.graph]
        bits = np.zeros(1 + block.n_real, dtype=np.int64)
        bits[0] = episode.graph
        chosen = np.array(episode.actions[:t], dtype=np.int64) - block.lo
        bits[1 + chosen[(chosen >= 0) & (chosen < block.n_real)]] = 1
        self.tuples[number, t] = bits
        self.slots[slot] = (number, t)

    def restore(
        self, added: int, begun: int, arrays: dict[str, np.ndarray], totals: Callable[..., StateTotals]
    ) -> None:
        """See EpisodeReplay; the tuples follow from the episodes."""
        super().restore(added, begun, arrays, totals)
        for slot, (number, t) in enumerate(self.ring[: len(self)].tolist()):
            self._store(slot, number, t)

    def _collect(self, picks: list[list[int]], graphs: np.ndarray) -> Sample:
        sample = super()._collect(picks, graphs)
        for i, (number, t) in enumerate(picks):
            bits = self.tuples[number, t]
            block = self.blocks[int(bits[0])]
            chosen = np.flatnonzero(bits[1:]) + block.lo
            later = [a for a in sample.after[i][t:].tolist() if block.owns(a)]
            sample.before[i] = chosen
            sample.after[i] = np.concatenate([chosen, np.array(later, dtype=np.int64)])
        return sample

    def nbytes(self) -> int:
        """Bytes of the stored tuples on this rank, beside the ring and the episodes that lead to them."""
        return super().nbytes() + self.tuple_bytes()

    def tuple_bytes(self) -> int:
        """Bytes of the tuples alone, which `paper_bytes` counts."""
        return sum(bits.nbytes for bits in self.tuples.values())


def paper_bytes(transitions: int, nodes: float, ranks: int) -> int:
    """What RL4GO section 4.3 states for this many tuples on one rank: 8 R (N/P + 1)."""
    return int(8 * transitions * (nodes / ranks + 1))
