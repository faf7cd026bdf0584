"""Losses, each with its gradient."""

from typing import Any

import numpy as np

Array = Any


def td_loss(q: np.ndarray, target: np.ndarray, kind: str) -> tuple[float, np.ndarray]:
    """Mean loss of the temporal-difference errors and its gradient by q (Mnih et al. 2015, eq. 2).

    q, target   [B] float32 host arrays, the same on all ranks
    kind        "squared": e^2     "huber": e^2/2 within 1, |e| - 1/2 beyond
    returns     the mean over B, and d mean / dq [B]
    """
    error = q - target
    count = np.float32(len(q))
    if kind == "squared":
        return float((error * error).sum() / count), (2 / count) * error
    inside = np.abs(error) <= 1
    loss = np.where(inside, 0.5 * error * error, np.abs(error) - 0.5)
    return float(loss.sum() / count), np.clip(error, -1, 1) / count
