"""Dual ascent for quadratic assignments: costs of products of two placements are moved until none is left.

The variables are x_ix, node i is at place x, and products of two of them. A state is a bound R, costs L of
the variables and C of the products, none below 0, such that every assignment costs R and what it meets of L
and C: at first C_ixjy = a_ij b_xy. A sweep shares out what each L_ix has among the rows of its products;
then it goes through all (i, x), forwards and backwards in turn: C_ixjy takes what its mirror image C_jyix has
left, and what a least linear assignment of the products costs goes to L_ix. At the end the least linear
assignment of L goes to R. The first sweep takes nothing from mirror images: its bound is that of Gilmore and
Lawler. What was moved is kept as multipliers, which prove R (witness.py). That sweeps turn round is not in
the source: those that always go forwards come to rest earlier, at worse bounds.

Source   Hahn and Grant, Lower bounds for the quadratic assignment problem based upon a dual formulation, 1998
"""

import ctypes
from dataclasses import dataclass

import numpy as np

from app.bounds.assignment import plain
from app.bounds.assignment.witness import MOST, Tables
from app.graphs.orders import places_of
from app.native.library import address, function

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
LINEAR = function("lk_assignment_linear", Long, *(Pointer,) * 4, returns=Long)
ASCEND = function("lk_assignment_ascend", Long, Long, *(Pointer,) * 5, returns=Long)
LEAN = function("lk_assignment_lean", Long, Long, *(Pointer,) * 6, returns=Long)
FAR = (1 << 63) - 1
MOST_PARTS = 1 << 12


def least_assignment(costs: np.ndarray, compiled: bool) -> tuple[int, np.ndarray, np.ndarray]:
    """The cost of a least assignment of rows to columns, multipliers [k] of the rows that prove it, and the
    column of each row [k]. costs [k, k] int64.
    """
    k = len(costs)
    u, v, row_of = (np.zeros(k, dtype=np.int64) for _ in range(3))
    if compiled and LINEAR is not None:
        costs = np.ascontiguousarray(costs)
        total = LINEAR(k, address(costs), address(u), address(v), address(row_of))
        if total == FAR:
            raise MemoryError
    else:
        total = plain.assign(costs, u, v, row_of)
    return total, u, places_of(row_of)


def parts_of(tables: Tables) -> int:
    """Parts of a unit, a power of two, in which multipliers of a question stay far below MOST; 0: none."""
    a, b, linear, constant = tables
    sizes = [max(int(np.abs(each).max(initial=0)), 1) for each in (a, b, linear)]
    largest = 64 * (sizes[0] * sizes[1] * (len(a) + 1) ** 2 + sizes[2] * (len(a) + 1) + abs(constant))
    one = int(largest <= MOST)
    while 0 < one < MOST_PARTS and 2 * one * largest <= MOST:
        one *= 2
    return one


@dataclass(eq=False)
class State:
    """A question of k nodes whose costs are partly moved into a bound, all in parts of a unit.

    bound      R      linear [k, k] L      square [k, k, k, k] C
    turn       how many sweeps were made
    top, rows, columns   [k], [k, k, k] twice: the multipliers (witness.py: left_by)
    """

    bound: int
    linear: np.ndarray
    square: np.ndarray
    top: np.ndarray
    rows: np.ndarray
    columns: np.ndarray
    turn: int = 0

    @property
    def k(self) -> int:
        """Nodes that have no place yet."""
        return len(self.linear)

    def sweep(self, compiled: bool) -> int:
        """One sweep; returns what the bound gains."""
        arrays = self.linear, self.square, self.rows, self.columns, self.top
        if compiled and ASCEND is not None:
            gained = ASCEND(self.k, self.turn, *map(address, arrays))
            if gained == FAR:
                raise MemoryError
        else:
            gained = plain.ascend(self.turn, *arrays)
        self.bound += gained
        self.turn += 1
        return gained

    def placed(self, i: int, x: int) -> "State":
        """What is left where node i is at place x; its multipliers prove the bound of that.

        What rows and columns of products with x_ix were worth belongs to rows and columns of variables now.
        """
        rows, places = (np.delete(np.arange(self.k), at) for at in (i, x))
        fixed = self.square[i, x] + self.square[:, :, i, x]
        linear = (self.linear + fixed)[np.ix_(rows, places)]
        square = self.square[np.ix_(rows, places, rows, places)]
        return State(
            self.bound + int(self.linear[i, x]), linear, square, (self.top + self.rows[i, x])[rows],
            self.rows[np.ix_(rows, places, rows)], self.columns[np.ix_(rows, places, places)], 1,
        )  # fmt: skip


def state_of(tables: Tables, one: int) -> State:
    """The state of a question that nothing has been moved of."""
    a, b, linear, constant = tables
    k = len(a)
    square = np.multiply.outer(a * one, b).transpose(0, 2, 1, 3).copy()
    none = (np.zeros((k,) * 3, dtype=np.int64) for _ in range(2))
    return State(constant * one, linear * one, square, np.zeros(k, dtype=np.int64), *none)


class Lean:
    """The same sweeps of a question whose products have no room: what is left of them is found from
    multipliers when it is needed.

    bound      R      linear [k, k] L      turn   how many sweeps were made      top [k]
    """

    def __init__(self, tables: Tables, one: int) -> None:
        a, b, linear, constant = tables
        k = len(a)
        self._a, self._b = np.ascontiguousarray(a * one), b
        self.bound, self.linear, self.turn = constant * one, linear * one, 0
        self.top = np.zeros(k, dtype=np.int64)
        self._rows, self._columns = (np.zeros((k,) * 3, dtype=np.int64) for _ in range(2))

    def sweep(self, compiled: bool) -> int:
        """One sweep; returns what the bound gains."""
        arrays = self._a, self._b, self.linear, self._rows, self._columns, self.top
        if compiled and LEAN is not None:
            gained = LEAN(len(self.top), self.turn, *map(address, arrays))
            if gained == FAR:
                raise MemoryError
        else:
            gained = plain.ascend_lean(self.turn, *arrays)
        self.bound += gained
        self.turn += 1
        return gained

    @property
    def rows(self) -> np.ndarray:
        """[k, k, k] the multipliers of rows (witness.py: left_by), a copy."""
        return np.ascontiguousarray(self._rows.transpose(1, 2, 0))

    @property
    def columns(self) -> np.ndarray:
        """[k, k, k] those of places, a copy."""
        return np.ascontiguousarray(self._columns.transpose(1, 2, 0))
