"""Random streams that are functions of (seed, purpose, step): the same on every rank and on every restart."""

import hashlib

import numpy as np


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
