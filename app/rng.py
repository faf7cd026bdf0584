"""Random streams that are functions of (seed, purpose, step): the same on every rank and on every restart."""

import hashlib

import numpy as np

MASK = (1 << 64) - 1


def _key(seed: int, purpose: str) -> np.ndarray:
    """The 128-bit Philox key of a named stream, as two uint64."""
    digest = hashlib.sha256(f"{seed}/{purpose}".encode()).digest()
    return np.frombuffer(digest[:16], dtype="<u8").astype(np.uint64)


def stream(seed: int, purpose: str, step: int = 0) -> np.random.Generator:
    """A generator that depends only on the arguments, never on who draws or how often others drew.

    seed, purpose   name the stream; step numbers its independent substreams
    """
    counter = np.array([0, 0, 0, step], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=_key(seed, purpose), counter=counter))


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
