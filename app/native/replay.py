"""Minibatches from a memory of episodes in one compiled call; see replay.c."""

import ctypes
from typing import NamedTuple

import numpy as np

from app.errors import NumericsError
from app.native.library import address, function

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
RECORD = 6  # numbers of an episode: graph, whether it is finished, steps, addresses
ROWS = 6  # integers of a transition beside totals and choices


class _Returns(ctypes.Structure):
    _fields_ = (("n_step", Long), ("width", Long), ("powers", Pointer))


COLLECT = function(
    "lk_replay_collect", Long, Pointer, ctypes.c_char_p, ctypes.POINTER(_Returns), Pointer, Pointer,
    returns=Long,
)  # fmt: skip


class Collected(NamedTuple):
    """Transitions by graph and step.

    graphs, nodes        [B] int64     returns, discounts [B] float32
    chosen               int64, the choices that led to the states after, end to end
    begin, before, after [B] int64: from where on, how many led to the state before, and to that after
    totals               int64, of the states before and then of those after, end to end
    """

    graphs: np.ndarray
    nodes: np.ndarray
    begin: np.ndarray
    before: np.ndarray
    after: np.ndarray
    returns: np.ndarray
    discounts: np.ndarray
    totals: np.ndarray
    chosen: np.ndarray


def available() -> bool:
    """True where the library was built."""
    return COLLECT is not None


class Collector:
    """Collects n-step transitions of episodes.

    powers   [n_step + 1] of the discount     width   numbers of a state's totals
    """

    def __init__(self, n_step: int, powers: list[float], width: int) -> None:
        self._powers, self._width = np.array(powers, dtype=np.float64), width
        if len(powers) <= n_step:
            raise NumericsError(f"replay: {n_step} steps need as many powers of the discount")
        self._returns = _Returns(n_step, width, address(self._powers))

    def collect(self, picks: np.ndarray, records: bytes, steps: int) -> Collected:
        """The transitions picks [B, 2] int32 (number of an episode, step). Raises NumericsError.

        records   [B, RECORD] int64, of these episodes: addresses of actions int64, rewards float64 and totals
                  int64, as many as the steps that they name
        steps     the sum of the steps that were picked
        """
        count = len(picks)
        if picks.dtype != np.int32 or not picks.flags.c_contiguous or len(records) != 8 * RECORD * count:
            raise NumericsError("replay: a transition needs a step and an episode")
        first = (ROWS + 2 * self._width) * count
        integers = np.empty(first + steps + count * self._returns.n_step, dtype=np.int64)
        values = np.empty((2, count), dtype=np.float32)
        made = COLLECT(count, address(picks), records, self._returns, address(integers), address(values))
        if made < 0:
            raise NumericsError("replay: a transition is no step of its episode")
        _, *rows = integers[: ROWS * count].reshape(ROWS, count)
        return Collected(*rows, *values, integers[ROWS * count : first], integers[first : first + made])
