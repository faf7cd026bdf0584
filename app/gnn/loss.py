"""Losses, each with its gradient."""

import math
from typing import Any

import numpy as np

from app.errors import NumericsError

Array = Any


def td_loss(q: np.ndarray, target: np.ndarray, kind: str, whole: int) -> tuple[np.ndarray, np.ndarray]:
    """Losses of temporal-difference errors, and the gradient of their mean by q (Mnih et al. 2015, eq. 2).

    q, target   [b] float32 host arrays, the same on all ranks
    kind        "squared": e^2     "huber": e^2/2 within 1, |e| - 1/2 beyond
    whole       transitions the mean is over, of which these b may be a part
    returns     [b] losses, and d mean / dq [b]
    """
    error = q - target
    count = np.float32(whole)
    if kind == "squared":
        return error * error, (2 / count) * error
    inside = np.abs(error) <= 1
    losses = np.where(inside, 0.5 * error * error, np.abs(error) - 0.5)
    return losses, np.clip(error, -1, 1) / count


def refuse_infinite(value: float, epoch: int, rate: float, what: str = "the loss") -> None:
    """Stop a training that has left the finite numbers. Raises NumericsError: on all ranks, as they agree.

    value   of an epoch     rate   the learning rate
    """
    if not math.isfinite(value):
        right = f"a learning_rate below {rate:g}, or a smaller weight_decay, would be right"
        raise NumericsError(f"training: {what} after epoch {epoch} is {value}; {right}")
