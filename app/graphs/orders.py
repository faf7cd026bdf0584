"""Orders of nodes: where each stands, how some of them stand, and the nodes that an order lacks."""

import numpy as np


def places_of(order: np.ndarray) -> np.ndarray:
    """[n] int64, the place of each node in an order [n], from 0 on: the inverse permutation."""
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return place


def order_within(order: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """[k] int64, some nodes [k] as they stand in an order [n] of all, by their numbers among themselves."""
    return np.argsort(places_of(order)[nodes], kind="stable")


def with_the_rest(order: np.ndarray, n: int) -> np.ndarray:
    """[n] int64, an order [k] of some of n nodes, and behind it the others, ascending."""
    rest = np.ones(n, dtype=bool)
    rest[order] = False
    return np.concatenate([order, np.flatnonzero(rest)])
