"""Features that are categories: whole numbers, of which each one that is met becomes a column of its own.

The first layer then multiplies by W [categories, f]: a row of X W is the sum of the rows of W for the
categories of a node, which is the sum of learned embeddings that OGB's AtomEncoder makes (Hu et al. 2020).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import msgspec
import numpy as np
import scipy.sparse as sp

from app.comm.group import Group
from app.comm.guard import raise_together
from app.errors import GraphError
from app.graphs.keys import sorted_set
from app.graphs.nodes.data import NodeData, rows_per_piece
from app.memory.slow_rows import read_over

MOST = 10_000  # categories of one column
LARGEST = 1 << 24  # from here on two whole numbers may be one float32
READING = "reading the categories"
KEYS = {"features": "gnn.feature_rows", "edge features": "gnn.edge_feature_rows"}  # by what they are of


@dataclass(frozen=True, eq=False)
class Categories:
    """The categories of each column of features; the same on all ranks.

    values   by column [k] int64, ascending, at least one
    """

    values: tuple[np.ndarray, ...]

    @classmethod
    def of(
        cls, group: Group, rows_own: np.ndarray, chosen: np.ndarray, what: str = "features"
    ) -> "Categories":
        """Those that occur in the chosen rows of all ranks; of a column without any row 0.

        rows_own   [n_own, columns] whole numbers     chosen [n_own] bool     what   they are, for messages
        Ranks      all call. Raises GraphError where a column has more than MOST
        """
        found = _together(group, _met(rows_own, chosen))
        with raise_together(group, READING):
            for column, each in enumerate(found):
                if len(each) > MOST:
                    right = f"at most {MOST:,}, or another {KEYS[what]}, would be right"
                    raise GraphError(f"{what}: column {column} has more than {MOST:,} categories; {right}")
        return cls(tuple(each if len(each) else np.zeros(1, np.int64) for each in found))

    @classmethod
    def read(cls, saved: object) -> "Categories":
        """Those that `told` has made. Raises ValueError where they are none."""
        found = msgspec.convert(saved, dict[str, list[list[int]]])["categories"]
        values = tuple(np.array(each, dtype=np.int64) for each in found)
        if not values or any(not len(each) or (np.diff(each) <= 0).any() for each in values):
            raise ValueError("no categories in ascending order")
        return cls(values)

    def told(self) -> dict[str, list[list[int]]]:
        """What a manifest holds of them."""
        return {"categories": [each.tolist() for each in self.values]}

    @cached_property
    def starts(self) -> np.ndarray:
        """[columns+1] int64, the first of the columns that each column becomes."""
        return np.concatenate([[0], np.cumsum([len(each) for each in self.values])])

    def starts_within(self, width: int) -> np.ndarray:
        """`starts` of all columns that a network reads: of each one beyond those of categories its own."""
        return np.concatenate([self.starts, np.arange(self.width + 1, width + 1)])

    @property
    def width(self) -> int:
        """Of all columns together."""
        return int(self.starts[-1])

    def expand(self, rows_own: np.ndarray, nodes: np.ndarray) -> tuple[sp.csr_array, np.ndarray]:
        """[n_own, width] float32, a one for each category of a node, and [columns] int64, how many numbers
        are no known category, which have no entry.

        rows_own   [n_own, columns] whole numbers     nodes [n_own] bool; rows of others are empty
        """
        columns = np.empty(int(np.count_nonzero(nodes)) * len(self.values), dtype=np.int32)
        counts, unknown, at = np.zeros(len(nodes), np.int64), np.zeros(len(self.values), np.int64), 0
        for rows in _pieces(rows_own):
            known, places = self._places(rows_own[rows])
            wanted = nodes[rows]
            unknown += np.count_nonzero(~known & wanted[:, None], axis=0)
            known &= wanted[:, None]
            counts[rows] = known.sum(axis=1)
            found = places[known]
            columns[at : at + len(found)] = found
            at += len(found)
        indptr = np.concatenate([[0], np.cumsum(counts)])
        entries = np.ones(at, dtype=np.float32), columns[:at], indptr
        return sp.csr_array(entries, shape=(len(nodes), self.width)), unknown

    def numbered(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """[k, columns] int32, the column that each number becomes, or -1 where it is no known category; and
        [columns] int64, how many are none."""
        known, places = self._places(rows)
        return np.where(known, places, np.int32(-1)), np.count_nonzero(~known, axis=0)

    def _places(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """[k, columns] bool, which numbers of some rows are known, and int32, the columns they become."""
        known, places = np.empty(X.shape, dtype=bool), np.empty(X.shape, dtype=np.int32)
        for column, values in enumerate(self.values):
            number = X[:, column].astype(np.int64)
            at = np.minimum(np.searchsorted(values, number), len(values) - 1)
            known[:, column], places[:, column] = values[at] == number, self.starts[column] + at
        return known, places


def with_categories(
    group: Group, data: NodeData, nodes: np.ndarray, categories: Categories
) -> tuple[NodeData, np.ndarray]:
    """The data with sparse features, a column for each category, and what `Categories.expand` counts, of all
    ranks.

    nodes   [n_own] bool, the rows that are nodes
    Ranks   all call
    """
    X_own, unknown = categories.expand(data.features, nodes)
    data = replace(data, features=X_own, width=categories.width, binary=True)
    return data, group.sum_integers(unknown)


def count_categories(parts: Iterable[np.ndarray]) -> int:
    """How many columns rows of features [k, columns] become, those of each column counted up to MOST."""
    found: list[np.ndarray] = []
    for rows in parts:
        found = _with(found or _none(rows.shape[1]), rows)
    return sum(max(len(each), 1) for each in found)


def refuse_fractions(
    group: Group, rows_own: np.ndarray, numbers: np.ndarray | None, what: str = "features"
) -> None:
    """Refuse features that are no categories, on all ranks, naming one.

    rows_own   [n_own, columns]     numbers [n_own] int64, what rows are called; None: they have no numbers
    what       they are, for messages
    Ranks      all call. Raises GraphError
    """
    with raise_together(group, READING):
        for rows in _pieces(rows_own):
            X = rows_own[rows]
            wrong = (np.rint(X) != X) | (np.abs(X) >= LARGEST)
            if wrong.any():
                row, column = np.argwhere(wrong)[0]
                place = "" if numbers is None else f"row {numbers[rows][row]}, "
                found = f"found {X[row, column]} in {place}column {column}"
                right = f'whole numbers below 2^24 would be right for {KEYS[what]} = "one_hot"'
                raise GraphError(f"{what}: {found}; {right}")


def _met(rows_own: np.ndarray, chosen: np.ndarray) -> list[np.ndarray]:
    """By column [k] int64 the numbers in this rank's chosen rows, ascending; of more than MOST some."""
    found = _none(rows_own.shape[1])
    for rows in _pieces(rows_own):
        found = _with(found, rows_own[rows][chosen[rows]])
    return found


def _none(columns: int) -> list[np.ndarray]:
    return [np.empty(0, dtype=np.int64)] * columns


def _with(found: list[np.ndarray], X: np.ndarray) -> list[np.ndarray]:
    """What was found by column, and the numbers of some rows."""
    return [
        each if len(each) > MOST else np.union1d(each, np.unique(X[:, column]).astype(np.int64))[: MOST + 1]
        for column, each in enumerate(found)
    ]


def _together(group: Group, found: list[np.ndarray]) -> list[np.ndarray]:
    """By column the numbers of all ranks, ascending. Ranks: all call."""
    counts = group.gather_integers(np.array([len(each) for each in found], dtype=np.int64))
    every = group.gather_host(np.concatenate(found), counts.sum(axis=1).tolist())
    ends = np.cumsum(counts.reshape(-1)).reshape(counts.shape)
    parts = ([every[end - k : end] for end, k in zip(*each)] for each in zip(ends.T, counts.T))
    return [sorted_set(np.concatenate(each)) for each in parts]


def _pieces(rows_own: np.ndarray) -> Iterator[slice]:
    """Some rows at a time; of a file their pages are given back."""
    step = rows_per_piece(8 * rows_own.shape[1])
    for lo in range(0, len(rows_own), step):
        rows = slice(lo, lo + step)
        yield rows
        read_over(rows_own, rows)
