"""Sets of integer keys as ascending arrays."""

import numpy as np


def sorted_set(keys: np.ndarray) -> np.ndarray:
    """Distinct keys, ascending, of an array of any shape without NaN.

    np.unique finds the same by a hash table since NumPy 2.3: a thousand keys take it six times as long, a
    million fifty times (`python bench/speed.py distinct`).
    """
    keys = np.sort(keys, axis=None)
    return keys[first_of_runs(keys)]


def union(keys: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Distinct keys of both, ascending."""
    return sorted_set(np.concatenate([np.ravel(keys), np.ravel(others)]))


def without(keys: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Distinct keys that are not among others, ascending."""
    keys = sorted_set(keys)
    return keys[~among(keys, sorted_set(others))]


def shared_keys(keys: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Distinct keys that are among others, too, ascending."""
    keys = sorted_set(keys)
    return keys[among(keys, sorted_set(others))]


def among(keys: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Of each key whether it is among others, which ascend; [len(keys)] bool."""
    if not len(others):
        return np.zeros(len(keys), dtype=bool)
    return others[np.minimum(np.searchsorted(others, keys), len(others) - 1)] == keys


def first_of_runs(keys: np.ndarray) -> np.ndarray:
    """[m] bool: where another key begins than the one before."""
    first = np.ones(len(keys), dtype=bool)
    first[1:] = keys[1:] != keys[:-1]
    return first


def distinct(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct keys of an ascending list, and the place of each of its entries among them."""
    first = first_of_runs(keys)
    return keys[first], np.cumsum(first) - 1
