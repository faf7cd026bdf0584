"""app/rl/replay.py: n-step returns, eviction and rebuilt states against a plain list of transitions."""

import numpy as np
import pytest
from helpers import listed, make_blocks, random_graph

from app.errors import NumericsError
from app.problems.problem import Totals
from app.rl.replay import FEW, BitsReplay, EpisodeReplay, paper_bytes
from app.sparse.batch import StateBatch

DISCOUNT = 0.75
NODES = [20, 9, 33]


def totals_at(number, t):
    """Distinct totals of each state, to recognise it."""
    return Totals(1000 * number + t, 1, 0)


def play(seed, replays, environments=3, steps=60, longest=7):
    """Feed the same interleaved episodes to several memories; returns the episodes and what was added.

    Each episode is (graph, actions, rewards, finished); additions are (episode, t) in the order
    in which n-step returns become known.
    """
    draws = np.random.default_rng(seed)
    episodes, running, added = {}, [], {n: [] for n in {r.n_step for r in replays}}

    def begin():
        graph = int(draws.integers(3))
        numbers = {r.begin(graph, totals_at(len(episodes), 0)) for r in replays}
        assert numbers == {len(episodes)}
        actions = draws.permutation(NODES[graph])[: draws.integers(1, longest + 1)].tolist()
        episodes[len(episodes)] = [graph, actions, [], False]
        return len(episodes) - 1

    running = [begin() for _ in range(environments)]
    for _ in range(steps):
        for i, number in enumerate(running):
            _, actions, rewards, _ = episodes[number]
            rewards.append(float(draws.integers(-8, 8)))
            t = len(rewards)
            done = episodes[number][3] = t == len(actions)
            for replay in replays:
                replay.remember(number, actions[t - 1], rewards[-1], totals_at(number, t), done)
            for n_step, order in added.items():
                # The return of step s is known once n steps from s are done, or the episode is.
                known = range(t) if done else range(max(t - n_step + 1, 0))
                order += [(number, s) for s in known if (number, s) not in order]
            if done:
                running[i] = begin()
    return episodes, added, running


def naive(episodes, number, t, n_step):
    """One transition from its definition: sum of r discounted, the state n steps later or the end."""
    graph, actions, rewards, finished = episodes[number]
    end, value = t, 0.0
    while end < len(rewards) and end - t < n_step:
        value += DISCOUNT ** (end - t) * rewards[end]
        end += 1
    over = finished and end == len(actions)
    return (
        graph, actions[t], value, 0.0 if over else DISCOUNT ** (end - t),
        tuple(actions[:t]), tuple(actions[:end]), totals_at(number, t), totals_at(number, end),
    )  # fmt: skip


def transitions(sample):
    """The transitions of a sample as tuples."""
    return list(
        zip(
            sample.graphs.tolist(), sample.nodes.tolist(), sample.returns.tolist(), sample.discounts.tolist(),
            [tuple(b.tolist()) for b in sample.before], [tuple(a.tolist()) for a in sample.after],
            sample.totals_before, sample.totals_after,
        )
    )  # fmt: skip


@pytest.mark.mpi_skip
@pytest.mark.parametrize("n_step", [1, 2, 3, 10])
@pytest.mark.parametrize("capacity", [1, 2, 5, 40, 1000])
@pytest.mark.parametrize("environments", [1, 3, 6])
def test_samples_are_the_latest_transitions(n_step, capacity, environments):
    replay = EpisodeReplay(capacity, n_step, DISCOUNT)
    assert len(replay) == 0
    episodes, added, running = play(n_step + capacity, [replay], environments)
    kept = added[n_step][-capacity:]
    assert len(replay) == len(kept)
    sample = replay.sample(np.random.default_rng(3), 12 * capacity + 100 * (capacity > 99))
    assert {repr(t) for t in transitions(sample)} <= {repr(naive(episodes, *at, n_step)) for at in kept}
    if capacity < 99:
        assert {repr(t) for t in transitions(sample)} == {repr(naive(episodes, *at, n_step)) for at in kept}
    # Nothing is kept of an episode that is over and has no transition left.
    assert set(replay.episodes) == {number for number, _ in kept} | set(running)


@pytest.mark.mpi_skip
@pytest.mark.parametrize("n_step", [1, 3])
@pytest.mark.parametrize("capacity", [4, 9, 40, 200])
def test_steps_taken_together_leave_the_same_memory(n_step, capacity):
    """Before and after it is full, and after it was written and read."""
    draws = np.random.default_rng(capacity)
    one, together = (EpisodeReplay(capacity, n_step, DISCOUNT) for _ in range(2))
    begun, running = 0, {}
    for turn in range(60):
        while len(running) < 4:
            assert one.begin(0, totals_at(begun, 0)) == together.begin(0, totals_at(begun, 0)) == begun
            running[begun], begun = [0, int(draws.integers(1, 8))], begun + 1
        steps = []
        for number, at in list(running.items()):
            at[0] += 1
            steps.append((number, at[0] + 5, float(number), totals_at(number, at[0]), at[0] == at[1]))
            if at[0] == at[1]:
                del running[number]
        for each in steps:
            one.remember(*each)
        together.remember_all(steps)
        if turn == 40:
            arrays, added = together.arrays(), together.added
            together = EpisodeReplay(capacity, n_step, DISCOUNT)
            together.restore(added, begun, arrays, Totals)
        assert together.added == one.added
        assert list(together.episodes) == list(one.episodes)
        told, found = one.arrays(), together.arrays()
        assert all(np.array_equal(told[name], found[name]) for name in told)
        numbers = one.ring[: len(one), 0].tolist()
        for number, episode in together.episodes.items():
            assert episode.held == one.episodes[number].held == numbers.count(number)
        assert set(one.episodes) == set(numbers) | set(running)
    assert one.added > 150


@pytest.mark.mpi_skip
def test_samples_are_sorted_by_graph_and_step_uniform_and_repeatable():
    replay = EpisodeReplay(1000, 1, DISCOUNT)
    episodes, added, _ = play(1, [replay], steps=10)
    sample = replay.sample(np.random.default_rng(5), 3000)
    steps = np.array([len(removed) for removed in sample.before])
    assert (np.diff(1000 * sample.graphs + steps) >= 0).all()
    assert len(set(steps.tolist())) > 3
    assert set(sample.graphs.tolist()) == {0, 1, 2}
    again = replay.sample(np.random.default_rng(5), 3000)
    assert transitions(sample) == transitions(again)
    counts = np.array([transitions(sample).count(naive(episodes, *at, 1)) for at in added[1]])
    assert counts.sum() == 3000
    assert 50 < counts.min() <= counts.max() < 150  # 30 transitions, 100 of each expected


@pytest.mark.parametrize("environments", [1, 3, 8])
@pytest.mark.parametrize(("n_step", "capacity"), [(1, 4), (2, 30), (5, 500)])
def test_bits_give_the_same_states(group, n_step, capacity, environments):
    """On each rank the stored vectors rebuild the same masks as the lists of actions."""
    blocks = make_blocks(group, [random_graph(n, 0.3, n) for n in NODES])
    lists = EpisodeReplay(capacity, n_step, DISCOUNT)
    bits = BitsReplay(capacity, n_step, DISCOUNT, blocks)
    play(n_step, [lists, bits], environments, steps=20)
    for draw in range(3):
        a, b = (replay.sample(np.random.default_rng(draw), 16) for replay in (lists, bits))
        for field in ("graphs", "nodes", "returns", "discounts"):
            assert getattr(a, field).tobytes() == getattr(b, field).tobytes()
            assert getattr(a, field).dtype == getattr(b, field).dtype
        assert (a.totals_before, a.totals_after) == (b.totals_before, b.totals_after)
        graphs, counts = np.unique(a.graphs, return_counts=True)
        batch = StateBatch(group, [(blocks[g], int(c)) for g, c in zip(graphs, counts)])
        for field in ("before", "after"):
            masks = [group.device.get(batch.alive_mask(getattr(s, field))) for s in (a, b)]
            assert np.array_equal(*masks)


def test_bytes(group):
    blocks = make_blocks(group, [random_graph(n, 0.3, n) for n in NODES])
    for capacity in (7, 1000):
        lists, bits = EpisodeReplay(capacity, 1, DISCOUNT), BitsReplay(capacity, 1, DISCOUNT, blocks)
        episodes, added, _ = play(4, [lists, bits], steps=20)
        kept = added[1][-capacity:]
        # RL4GO's tuple on this rank: 8 (N/P + 1) bytes, N/P being the rows it holds.
        rows = [blocks[episodes[number][0]].n_real for number, _ in kept]
        assert bits.tuple_bytes() == sum(8 * (n + 1) for n in rows)
        assert bits.nbytes() > bits.tuple_bytes() + 8 * len(bits)
        steps = sum(len(episodes[number][2]) for number in lists.episodes)
        assert lists.nbytes() == 8 * len(kept) + 40 * steps + 24 * len(lists.episodes)


def test_bits_of_all_ranks_are_the_papers_formula(group):
    blocks = make_blocks(group, [listed(64, (0, 1))] * 3)
    bits = BitsReplay(10, 1, DISCOUNT, blocks)
    number = bits.begin(0, totals_at(0, 0))
    for t in range(10):
        bits.remember(number, t, 0.0, totals_at(0, t + 1), False)
    everywhere = int(group.sum_integers(np.array([bits.tuple_bytes()]))[0])
    assert everywhere == 8 * 10 * (64 + group.size)
    assert paper_bytes(10, 64, group.size) == everywhere // group.size


@pytest.mark.mpi_skip
@pytest.mark.parametrize("n_step", [1, 3, 10])
@pytest.mark.parametrize("capacity", [5, 40, 1000])
def test_a_compiled_call_collects_the_same_minibatches(compiled, n_step, capacity):
    plain, replay = (EpisodeReplay(capacity, n_step, DISCOUNT, each) for each in (False, True))
    assert replay.compiled
    play(n_step + capacity, [plain, replay], 4)
    for seed, size in enumerate((60, 60, 60, 60, 60, FEW, FEW + 1)):
        samples = [each.sample(np.random.default_rng(seed), size) for each in (plain, replay)]
        assert transitions(samples[0]) == transitions(samples[1])
        for name in ("graphs", "nodes", "returns", "discounts"):
            mine, theirs = (getattr(each, name) for each in samples)
            assert (mine.dtype, mine.tobytes()) == (theirs.dtype, theirs.tobytes())


@pytest.mark.mpi_skip
def test_what_is_no_step_of_an_episode_is_refused(compiled):
    replay = EpisodeReplay(10, 1, DISCOUNT, True)
    play(1, [replay], steps=3)
    replay.ring[:, 1] = 50
    with pytest.raises(NumericsError, match="no step of its episode"):
        replay.sample(np.random.default_rng(1), 4)
