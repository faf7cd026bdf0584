"""Propagation: rows of numbers that go to neighbours again and again, by the products of a network's graph.

Columns know nothing of each other: some are propagated at a time, and however many these are, on however many
ranks, the bits are the same.
"""

from typing import Any

import numpy as np

from app.errors import CaseError
from app.gnn.classifier import Classifier
from app.gnn.engine import Engine

Array = Any
COLUMNS = 64  # that are propagated at a time, at most
ARRAYS = 3  # of so many columns that lie on the device: H, what is multiplied, what is added


def propagate(
    classifier: Classifier, Y: np.ndarray, alpha: float, steps: int, low: float = -1.0, high: float = 1.0
) -> np.ndarray:
    """H after `steps` of H <- clip(alpha S H + (1 - alpha) Y), beginning with H = Y.

    S = D^-1/2 A D^-1/2, A without own loops, the matrix that the network's layers multiply by: with its edge
    weights where gnn.edge_weights asks for them; of a directed graph a row's factor is of the neighbours that
    the node hears, a column's of those that hear it. A row of S without entries leaves (1 - alpha) Y.

    Y         [n_own, k] float32 host rows, finite     low, high   of the clip; infinite: there is none
    returns   [n_own, k] float32
    Source    Zhou et al. 2004, the iteration of their section 2; clipped as by Huang et al. 2021
    Ranks     all call; `steps` exchanges of each piece of the columns, COLUMNS wide at most
    Raises    CaseError where a limit of memory leaves no room for one column
    """
    engine = classifier.engine
    left = engine.scale_of("symmetric_alone") * np.float32(alpha)
    right = engine.scale_of("symmetric_alone", columns=True)
    return _by_columns(engine, Y, 1 - alpha, left, right, steps, (low, high))


def propagate_fixed(classifier: Classifier, Y: np.ndarray, held_own: np.ndarray, steps: int) -> np.ndarray:
    """H after `steps` of H <- D^-1 A H, in which held rows stay those of Y.

    Y         [n_own, k] float32 host rows, zero where they are not held     held_own   [n_own] bool
    returns   [n_own, k] float32
    Source    Zhu et al. 2003, section 2.2: the mean of the neighbours; Huang et al. 2021, FDiff-scale
    Ranks     all call, as `propagate`
    """
    engine = classifier.engine
    free = engine.device.put(np.where(held_own, 0, 1).astype(np.float32))
    left = engine.scale_of("mean") * free
    return _by_columns(engine, Y, 1.0, left, None, steps, (-np.inf, np.inf))


def _by_columns(
    engine: Engine, Y: np.ndarray, own: float, left: Array, right: Array | None, steps: int,
    bounds: tuple[float, float],
) -> np.ndarray:  # fmt: skip
    """H after `steps` of H <- clip(left A (right H) + own Y), from H = Y; left, right [n_own] on the device.

    Ranks   all call
    """
    out, width = np.empty(Y.shape, dtype=np.float32), columns_at_once(engine)
    for lo in range(0, Y.shape[1], width):
        part = slice(lo, lo + width)
        H, T, added = _room(engine, Y[:, part].shape[1])
        H[...] = engine.device.put(np.ascontiguousarray(Y[:, part]))
        added[...] = H
        added *= np.float32(own)
        for _ in range(steps):
            _step(engine, H, T, added, left, right)
            if bounds != (-np.inf, np.inf):
                H[...] = engine.device.xp.clip(H, *bounds)
        out[:, part] = engine.device.get(H)
    return out


def _step(engine: Engine, H: Array, T: Array, added: Array, left: Array, right: Array | None) -> None:
    """H = left A (right H) + added; T: room. Ranks: all call (one exchange)."""
    T[...] = H
    if right is not None:
        engine.device.activate(T, right)
    H[...] = 0
    engine.neighbours_of.accumulate(T, H)
    engine.device.activate(H, left, None, added)


def columns_at_once(engine: Engine) -> int:
    """Columns that are propagated at a time: what fits the memory that the network's rows have.

    Ranks   all call; the same on all. Raises CaseError where there is no room for one
    """
    own, rows = COLUMNS, max(engine.n_own, 1)
    if engine.tiered:
        own = min(own, engine.tiered.lent().size // (ARRAYS * rows))
    own = -engine.group.max_integer(-own)
    if own < 1:
        raise CaseError(f"memory.fast_mb: propagation needs room for {ARRAYS} numbers of each node of a rank")
    return own // 4 * 4 or own  # columns that a GPU reads by fours


def _room(engine: Engine, columns: int) -> list[Array]:
    """ARRAYS arrays [n_own, columns], where there is a limit in the memory that it gives to rows."""
    shape, size = (engine.n_own, columns), engine.n_own * columns
    if not engine.tiered:
        return [engine.device.zeros(shape) for _ in range(ARRAYS)]
    flat = engine.tiered.lent()
    return [flat[i * size : (i + 1) * size].reshape(shape) for i in range(ARRAYS)]
