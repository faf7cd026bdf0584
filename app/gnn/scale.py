"""Columns about 0 of magnitude 1: of numbers that are to be predicted, and of features."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from app.comm.exact import sum_exactly
from app.comm.group import Group
from app.graphs.nodes.data import rows_per_piece
from app.memory.slow_rows import read_over

FARTHEST = 2.0**60  # deviations from a mean: squares of it are 32-bit numbers still
ROUNDING = 1e-12  # of a mean: less is what rounding leaves of columns that are all the same


@dataclass(frozen=True, eq=False)
class Scale:
    """What columns are shifted and divided by; [columns] float64 each.

    mean, deviation   over some rows; a deviation that is none but for rounding counts 1
    """

    mean: np.ndarray
    deviation: np.ndarray

    @classmethod
    def of(cls, group: Group, rows_own: np.ndarray, chosen: np.ndarray) -> "Scale":
        """That of the chosen rows of all ranks, the same bits on any number of them. Ranks: all call.

        rows_own   [n_own, columns], NaN where it is not known     chosen [n_own] bool
        """
        count, width = np.maximum(known_of(group, rows_own, chosen), 1), rows_own.shape[1]
        mean = sum_exactly(group, pieces_of(rows_own, chosen, known_or_zero), width) / count
        away = lambda rows: known_or_zero((rows - mean) ** 2)  # noqa: E731
        squares = sum_exactly(group, pieces_of(rows_own, chosen, away), width)
        deviation = np.sqrt(squares / count)
        return cls(mean, np.where(deviation > ROUNDING * np.abs(mean), deviation, 1.0))

    @classmethod
    def read(cls, saved: object) -> "Scale":
        """One that `told` has made. Raises ValueError where it is none."""
        found = msgspec.convert(saved, dict[str, list[float]])
        scale = cls(np.array(found["mean"]), np.array(found["deviation"]))
        both = scale.mean, scale.deviation
        wrong = both[0].shape != both[1].shape or not (np.abs(both) <= np.finfo(np.float32).max).all()
        if wrong or min(both[1], default=1) < np.finfo(np.float32).smallest_subnormal:
            raise ValueError("no scale of columns")
        return scale

    def told(self) -> dict[str, list[float]]:
        """What a manifest holds of it."""
        return {"mean": self.mean.tolist(), "deviation": self.deviation.tolist()}

    def small(self, rows: np.ndarray) -> np.ndarray:
        """Rows [k, columns] about 0, float32, at most FARTHEST away from it; NaN stays."""
        with np.errstate(over="ignore"):
            return np.clip((rows - self.mean) / self.deviation, -FARTHEST, FARTHEST).astype(np.float32)

    def large(self, Z: np.ndarray) -> np.ndarray:
        """The rows [k, columns] that `small` gives Z for, float64."""
        return Z * self.deviation + self.mean


def known_of(group: Group, rows_own: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """[columns] int64, entries of the chosen rows of all ranks that are known, not NaN. Ranks: all call."""
    counts = np.zeros(rows_own.shape[1], dtype=np.int64)
    for rows in pieces_of(rows_own, chosen, lambda rows: rows == rows)():
        counts += rows.sum(axis=0)
    return group.sum_integers(counts)


def known_or_zero(rows: np.ndarray) -> np.ndarray:
    """Rows with 0 in place of NaN."""
    return np.where(rows == rows, rows, 0.0)


def pieces_of(
    rows_own: np.ndarray, chosen: np.ndarray, work: Callable[[np.ndarray], np.ndarray]
) -> Callable[[], Iterator[np.ndarray]]:
    """What `work` makes of the chosen rows, some at a time."""
    step = rows_per_piece(8 * rows_own.shape[1])

    def pieces() -> Iterator[Any]:
        for lo in range(0, len(rows_own), step):
            rows = slice(lo, lo + step)
            yield work(rows_own[rows][chosen[rows]].astype(np.float64))
            read_over(rows_own, rows)

    return pieces
