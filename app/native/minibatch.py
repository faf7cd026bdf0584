"""A minibatch from the memory of episodes to the gradient in one compiled call; see minibatch.c."""

import ctypes

import numpy as np

from app.errors import NumericsError
from app.native.lesson import LessonKernels
from app.native.library import Salt, address, function, new_salt
from app.native.replay import RECORD

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
NOT_A_NUMBER, UNKNOWN, NO_ROOM, NO_STEP = range(1, 5)
TRANSITION = 6  # integers of one beside totals and choices: order, graph, node, and where its choices are


class _KnownStates(ctypes.Structure):
    _fields_ = (
        *((name, Long) for name in ("slots", "room", "count", "width", "owns")),
        *((name, Pointer) for name in ("slot", "look", "totals", "alive", "own")),
        ("salt", Salt),
    )  # fmt: skip


class _Returns(ctypes.Structure):
    _fields_ = (("n_step", Long), ("width", Long), ("powers", Pointer))


class _Minibatch(ctypes.Structure):
    _fields_ = (
        ("known", ctypes.POINTER(_KnownStates)), ("returns", ctypes.POINTER(_Returns)),
        *((name, Pointer) for name in ("lesson", "before", "after")),
        *((name, Pointer) for name in ("integers", "values", "look", "alive", "own")),
        *((name, Long) for name in ("integers_room", "bytes_room", "integers_needed", "bytes_needed")),
    )  # fmt: skip


KNOW = function("lk_states_know", ctypes.POINTER(_KnownStates), Long, *(Pointer,) * 4, returns=Long)
MINIBATCH = function(
    "lk_minibatch", ctypes.POINTER(_Minibatch), Long, Pointer, ctypes.c_char_p, Pointer, returns=Long
)


def available() -> bool:
    """True where the library was built."""
    return MINIBATCH is not None and KNOW is not None


class KnownStates:
    """States by their totals [width] int64: the number of a feature table, live nodes, own features [owns].

    room   states that there is room for; with more, all are forgotten
    """

    def __init__(self, room: int, width: int, owns: int) -> None:
        slots = 1 << (2 * room - 1).bit_length()
        self.room, self._slot = room, np.full(slots, -1, np.int32)
        self._look, self._totals = np.empty(room, np.int32), np.empty((room, width), np.int64)
        self._alive, self._own = np.empty(room, np.int64), np.empty((room, owns), np.float32)
        at = (address(each) for each in (self._slot, self._look, self._totals, self._alive, self._own))
        self.struct = _KnownStates(slots, room, 0, width, owns, *at, new_salt())

    def forget(self) -> None:
        """Know none."""
        self._slot.fill(-1)
        self.struct.count = 0

    def know(self, totals: np.ndarray, look: np.ndarray, alive: np.ndarray, own: np.ndarray) -> None:
        """States by totals [k, width] int64, with look [k] int32, alive [k] int64, own [k, owns] float32.

        Raises NumericsError for other arrays, and for more states than there is room for.
        """
        struct, k = self.struct, len(look)
        given = ((totals, np.int64, struct.width), (look, np.int32, 1), (alive, np.int64, 1),
                 (own, np.float32, struct.owns))  # fmt: skip
        for array, kind, wide in given:
            if array.dtype != kind or array.size != k * wide or not array.flags.c_contiguous:
                raise NumericsError(f"minibatch: {array.dtype} {array.shape} is not {k} times {wide} {kind}")
        if k > self.room:
            raise NumericsError(f"minibatch: there is no room for {k} states")
        if struct.count + k > self.room:
            self.forget()
        KNOW(struct, k, *(address(array) for array, *_ in given))


class Minibatches:
    """Minibatches of `count` n-step transitions, learned from by kernels that make codes of choices.

    powers    [n_step + 1] of the discount     weights   flat: those that learn, and the target network's
    known     the states that are known; a call says which it lacks
    """

    def __init__(
        self,
        kernels: LessonKernels,
        known: KnownStates,
        count: int,
        n_step: int,
        powers: list[float],
        rules: tuple[bool, bool],
    ) -> None:
        if len(powers) <= n_step:
            raise NumericsError(f"minibatch: {n_step} steps need as many powers of the discount")
        self.kernels, self.known, self.count = kernels, known, count
        self._powers, self.width = np.array(powers, dtype=np.float64), known.struct.width
        self._returns = _Returns(n_step, self.width, address(self._powers))
        owns = known.struct.owns
        self._values, self._look = np.empty((2, count), np.float32), np.empty(2 * count, np.int32)
        self._alive, self._own = np.empty(2 * count, np.int64), np.empty((2 * count, owns), np.float32)
        self._twice, self._huber = rules
        self._struct = _Minibatch(ctypes.pointer(known.struct), ctypes.pointer(self._returns))
        for name in ("values", "look", "alive", "own"):
            setattr(self._struct, name, address(getattr(self, f"_{name}")))
        self._make_integers(0)

    def _make_integers(self, size: int) -> None:
        self._integers = np.empty(size, np.int64)
        self._struct.integers, self._struct.integers_room = address(self._integers), size

    def learn(
        self, picks: np.ndarray, records: bytes, weights: tuple[np.ndarray, np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray, bool] | None:
        """As LessonKernels.lesson, of transitions picks [count, 2] int32; None: a state is unknown.

        records   [count, RECORD] int64, of the episodes, as Collector.collect wants them
        Raises NumericsError.
        """
        count, struct, kernels = self.count, self._struct, self.kernels
        right = picks.dtype == np.int32 and picks.shape == (count, 2) and picks.flags.c_contiguous
        if not right or len(records) != 8 * RECORD * count:
            raise NumericsError("minibatch: a transition needs a step and an episode")
        losses, gradient = np.empty(count, np.float32), np.empty(kernels.size, np.float32)
        told = kernels.begin(weights, (losses, gradient), self._twice, self._huber)
        struct.lesson, struct.before, struct.after = told
        while True:
            room, struct.bytes_room = kernels.room()
            made = MINIBATCH(struct, count, address(picks), records, room)
            if made != NO_ROOM:
                break
            if struct.integers_needed > struct.integers_room:
                self._make_integers(struct.integers_needed + struct.integers_needed // 4)
            else:
                kernels.room(struct.bytes_needed)
        if made == NO_STEP:
            raise NumericsError("minibatch: a transition is no step of its episode")
        return None if made == UNKNOWN else (losses, gradient, made == NOT_A_NUMBER)

    def totals(self) -> tuple[np.ndarray, np.ndarray]:
        """Of the last transitions: the totals of the states before and then of those after, and the unknown.

        returns   [2 count, width] int64; [k] int64, which of them a call that made nothing did not know
        """
        first = TRANSITION * self.count
        totals = self._integers[first : first + 2 * self.count * self.width].reshape(-1, self.width)
        return totals.copy(), np.flatnonzero(self._look < 0)
