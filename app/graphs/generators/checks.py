"""What generators accept, and how they say so."""

import numpy as np

from app.errors import CaseError

MOST_NODES = 1 << 31


def check_count(key: str, value: int, low: int, high: int) -> None:
    """Refuse what is no integer in low..high."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or not low <= value <= high:
        raise CaseError(f"graph.{key}: must be an integer {low}..{high}, got {value!r}")


def check_seed(seed: int) -> None:
    """Refuse a seed outside 0..2^63-1."""
    check_count("seed", seed, 0, 2**63 - 1)
