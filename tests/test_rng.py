"""app/rng.py: streams that depend on their arguments alone, and the generator of the local searches."""

import hashlib

import numpy as np
import pytest

from app.rng import SplitMix, stream

pytestmark = pytest.mark.mpi_skip


def test_streams_differ_by_seed_purpose_and_step():
    drawn = [stream(*key).integers(1 << 62) for key in [(1, "a"), (2, "a"), (1, "b"), (1, "a", 1)]]
    assert len(set(drawn)) == 4
    assert stream(1, "a").integers(1 << 62) == drawn[0]


def test_splitmix_gives_the_published_numbers():
    # The first outputs from state 1234567, as in the reference implementation.
    draws = SplitMix(1234567)
    assert [draws.bits() for _ in range(3)] == [
        6457827717110365317, 3203168211198807973, 9817491932198370423,
    ]  # fmt: skip


def test_below_is_in_range_and_even():
    draws = SplitMix(5)
    counts = [0] * 7
    for _ in range(7000):
        counts[draws.below(7)] += 1
    assert min(counts) > 850


def test_many_bounded_draws_are_those_of_one_at_a_time():
    """What an agent draws for its environments does not depend on how it asks."""
    bounds = np.array([5, 1, 7, 99, 12, 1, 63, 2**31, 3] * 20)
    one, many = stream(3, "explore", 8), stream(3, "explore", 8)
    assert one.random(4).tolist() == many.random(4).tolist()
    assert [int(one.integers(bound)) for bound in bounds] == many.integers(bounds).tolist()


def test_streams_are_philox_by_key_and_counter():
    """The key comes another way than by its name, which would ask the system for noise each time."""
    digest = hashlib.sha256(b"7/explore").digest()
    key, counter = np.frombuffer(digest[:16], dtype="<u8"), np.array([0, 0, 0, 12], dtype=np.uint64)
    drawn = np.random.Generator(np.random.Philox(key=key, counter=counter)).integers(1 << 62, size=9)
    assert stream(7, "explore", 12).integers(1 << 62, size=9).tolist() == drawn.tolist()
    assert (
        stream(7, "explore", 12).integers(1 << 62, size=9).tolist() == drawn.tolist()
    )  # again from its start
