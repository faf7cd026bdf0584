"""Features, labels and splits drawn at random: functions of (seed, node, column), of no rank and no order."""

import numpy as np

from app.graphs.nodes.data import SPLITS
from app.rng import stream

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
# The sum of four numbers 0..65535 has variance 4 (2^32 - 1) / 12; scaled, one.
MIDDLE = 2 * 65535
SCALE = np.float32((3 / ((1 << 32) - 1)) ** 0.5)
CHUNK = 1 << 20


def hashed(key: np.uint64, numbers: np.ndarray) -> np.ndarray:
    """[k] uint64: output number `numbers` of SplitMix64 (Steele, Lea and Flood 2014) from the state `key`."""
    z = key + (numbers.astype(np.uint64) + np.uint64(1)) * GOLDEN
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _key(seed: int, purpose: str) -> np.uint64:
    return stream(seed, purpose).integers(0, 1 << 64, 1, dtype=np.uint64)[0]


def near_normal(key: np.uint64, numbers: np.ndarray) -> np.ndarray:
    """[k] float32 of mean 0 and variance 1: the scaled sum of four uniform numbers of 16 bits.

    Integers and one multiplication, so the bits are those of every processor; no value exceeds 3.47.
    """
    z = hashed(key, numbers)
    low = np.uint64(0xFFFF)
    total = sum((z >> np.uint64(shift)) & low for shift in (0, 16, 32, 48))
    return (total.astype(np.int64) - MIDDLE).astype(np.float32) * SCALE


def random_features(
    seed: int,
    nodes: np.ndarray,
    width: int,
    labels: np.ndarray | None = None,
    classes: int = 0,
    signal: float = 0.0,
    means_seed: int | None = None,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """[k, width] float32 of nodes [k]: noise of variance 1, plus `signal` times the mean of the class.

    The means [classes, width] are noise too, of variance 1 / width in each column: of length about one. They
    depend on means_seed, by default the seed: graphs of one set share it. out: where the features go.
    """
    key = _key(seed, "nodes/features")
    out = np.empty((len(nodes), width), dtype=np.float32) if out is None else out
    step = max(1, CHUNK // max(width, 1))
    columns = np.arange(width)
    for at in range(0, len(nodes), step):
        numbers = nodes[at : at + step, None] * width + columns
        out[at : at + step] = near_normal(key, numbers.ravel()).reshape(-1, width)
    if labels is not None:
        key = _key(seed if means_seed is None else means_seed, "nodes/means")
        means = near_normal(key, np.arange(classes * width)).reshape(classes, width)
        means *= np.float32(signal / max(width, 1) ** 0.5)
        for at in range(0, len(nodes), step):
            out[at : at + step] += means[labels[at : at + step]]
    return out


def random_labels(seed: int, n: int, classes: int, nodes: np.ndarray, planted: bool) -> np.ndarray:
    """[k] int32, the classes of nodes [k]; planted: the communities of the graph of this seed."""
    if planted:
        return communities(seed, n, classes)[nodes]
    return random_classes(seed, nodes, classes)


def random_classes(seed: int, numbers: np.ndarray, classes: int, purpose: str = "nodes/labels") -> np.ndarray:
    """[k] int32, classes of what has numbers [k]."""
    z = hashed(_key(seed, purpose), numbers)
    return ((z >> np.uint64(32)) % np.uint64(classes)).astype(np.int32)


def communities(seed: int, n: int, count: int) -> np.ndarray:
    """[n] int32: equally large communities, to within one node, of nodes in random order."""
    return (stream(seed, "sbm/communities").permutation(n) % count).astype(np.int32)


TENTHS = {"train": 6, "val": 2, "test": 2}  # of the nodes, that random splits draw for each set
RANDOM_TRAIN = TENTHS["train"] / 10


def fold_keys(seed: int, numbers: np.ndarray, purpose: str = "nodes/folds") -> np.ndarray:
    """[k] uint64, all different of different numbers: the order in which nodes [k], or others, are dealt to
    folds."""
    return hashed(_key(seed, purpose), numbers)


def random_splits(seed: int, nodes: np.ndarray, purpose: str = "nodes/splits") -> np.ndarray:
    """[k] uint8, the set of each node [k]: train, val, test with chances 60, 20, 20 in a hundred.

    purpose   of the draws, where numbers [k] are of something else
    """
    draw = (hashed(_key(seed, purpose), nodes) >> np.uint64(32)) % np.uint64(10)
    bits = np.repeat(np.array([SPLITS[name] for name in TENTHS], dtype=np.uint8), list(TENTHS.values()))
    return bits[draw]
