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


def node_keys(seed: int, purpose: str, step: int, lo: int, hi: int) -> np.ndarray:
    """One random uint32 for each global node lo..hi-1; node v's number is the same whoever asks for it.

    returns [hi - lo] uint32
    """
    # Philox makes four 64-bit words per counter value: eight nodes of 32 bits each.
    first = lo // 8
    words = -(-hi // 8) - first
    counter = np.array([first, 0, 0, step], dtype=np.uint64)
    raw = np.random.Philox(key=_key(seed, purpose), counter=counter).random_raw(4 * words)
    return raw.astype("<u8").view("<u4")[lo - 8 * first : hi - 8 * first].astype(np.uint32)
