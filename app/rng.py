"""Random streams that are functions of (seed, purpose, step): the same on every rank and on every restart."""

import hashlib
from functools import lru_cache

import numpy as np
from numpy.random.bit_generator import ISeedSequence

MASK = (1 << 64) - 1


class _Key(ISeedSequence):
    """The 128-bit Philox key of a named stream, as two uint64.

    Given to Philox as what it is seeded by: given as its key, it would also ask the system for noise, which
    takes longer than all else.
    """

    def __init__(self, seed: int, purpose: str) -> None:
        digest = hashlib.sha256(f"{seed}/{purpose}".encode()).digest()
        self._words = np.frombuffer(digest[:16], dtype="<u8").astype(np.uint64)

    def generate_state(self, n_words: int, dtype: type = np.uint64) -> np.ndarray:
        """The key, which is all that Philox asks for."""
        return self._words


_key = lru_cache(maxsize=256)(_Key)


def stream(seed: int, purpose: str, step: int = 0) -> np.random.Generator:
    """A generator that depends only on the arguments, never on who draws or how often others drew.

    seed, purpose   name the stream; step numbers its independent substreams
    """
    counter = np.array([0, 0, 0, step], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(_key(seed, purpose), counter=counter))


class SplitMix:
    """The integer generator of the local searches, as in app/native/random.h: equal numbers, kernel or not.

    Source   SplitMix64: Steele, Lea and Flood 2014
    state    64 bits, all there is to keep
    """

    def __init__(self, state: int) -> None:
        self.state = state & MASK

    def bits(self) -> int:
        """The next 64 bits."""
        self.state = z = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    def below(self, bound: int) -> int:
        """A whole number in [0, bound), bound < 2^32."""
        return ((self.bits() >> 32) * bound) >> 32


def key_of(seed: int, purpose: str, step: int = 0) -> int:
    """64 bits that depend only on the arguments, to key a hash of per-node numbers."""
    return int(stream(seed, purpose, step).integers(0, 1 << 64, dtype=np.uint64))
