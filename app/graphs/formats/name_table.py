"""Names of nodes and their numbers, in the order in which they occur: compiled (native/text.c), or a dict."""

import ctypes
from itertools import repeat

import numpy as np

from app.graphs.ids import name_array
from app.native.library import Salt, address, function, give_arrays, new_salt, numbers_in

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
PARSE_NAMES = function("lk_parse_names", Pointer, Long, Long, Long, *[Pointer] * 4)
FILL_NAMES = function("lk_fill_names", Pointer)
SPREAD_NAMES = function("lk_spread_names", Pointer, Long, Pointer)

FEW, LETTERS = 1 << 10, 1 << 14  # names that a table has room for at first, and letters of all of them
SHORTEST_LINE = 4  # bytes of "a b\n"
ARRAYS, NUMBERS = ("letters", "starts", "table"), ("count", "most", "room", "slots")

# ends [2k] int64 of the rows, weights [k] float64 or None, bytes of whole lines that were understood
Lines = tuple[np.ndarray, np.ndarray | None, int]


class PlainTable:
    """Names in a dict, in the order of their numbers."""

    def __init__(self) -> None:
        self.held: dict[bytes, int] = {}

    def add(self, names: list[bytes]) -> np.ndarray:
        """[k] int64 numbers of names, which keep graphs/ids.py's rules; new ones get the next numbers."""
        found = np.fromiter(map(self.held.get, names, repeat(-1)), dtype=np.int64, count=len(names))
        for at in np.flatnonzero(found < 0).tolist():
            found[at] = self.held.setdefault(names[at], len(self.held))
        return found

    def add_lines(self, text: bytes, between: str, weighted: bool) -> Lines | None:
        """The rows of the plain lines at the start of a text; None: this table reads none."""
        return None

    def name(self, number: int) -> bytes:
        """The name of a number."""
        return self.array()[number]

    def array(self) -> np.ndarray:
        """All names by number, as graphs/ids.py has them."""
        return name_array(list(self.held))


class _Names(ctypes.Structure):
    """Names of native/text.c."""

    _fields_ = [*((each, Pointer) for each in ARRAYS), *((each, Long) for each in NUMBERS), ("salt", Salt)]


class NameTable(PlainTable):
    """The same in flat arrays: letters behind each other, and a table of numbers by hash.

    letters [room] uint8   name i is letters[starts[i] : starts[i+1]]; starts [most+1] int64
    table   [slots+1] uint64, half a hash and a number + 1, or 0: free; a power of two of at least 2 most
    """

    def __init__(self) -> None:
        self.letters, self.starts = np.empty(0, dtype=np.uint8), np.zeros(1, dtype=np.int64)
        self.count, self._struct = 0, _Names(salt=new_salt())
        self._make_room(FEW, LETTERS)

    def _make_room(self, most: int, room: int) -> None:
        """Room for `most` names of `room` letters together."""
        self.most, self.room = most, room
        self.letters.resize(room, refcheck=False)
        self.starts.resize(most + 1, refcheck=False)
        self.slots = (1 << (2 * most - 1).bit_length()) - 1
        self.table = np.zeros(self.slots + 1, dtype=np.uint64)
        give_arrays(self, self._struct, ARRAYS)
        with numbers_in(self, self._struct, NUMBERS):
            FILL_NAMES(ctypes.byref(self._struct))

    def add(self, names: list[bytes]) -> np.ndarray:
        """[k] int64 numbers of names, which keep graphs/ids.py's rules; new ones get the next numbers."""
        twice = b"".join(b"%b\t%b\n" % (name, name) for name in names)
        return self.add_lines(twice, "\t", False)[0][::2]

    def add_lines(self, text: bytes, between: str, weighted: bool) -> Lines:
        """The rows of the plain lines at the start of a text of whole lines, each ended by LF."""
        most, at, found, done = len(text) // SHORTEST_LINE + 1, 0, 0, np.zeros(3, dtype=np.int64)
        ends, weights = np.empty(2 * most, dtype=np.int64), np.empty(most) if weighted else None
        held, full = np.frombuffer(text, dtype=np.uint8), 1
        first = address(held)
        while full:
            with numbers_in(self, self._struct, NUMBERS):
                PARSE_NAMES(
                    first + at, len(text) - at, ord(between), most - found, ctypes.byref(self._struct),
                    address(ends) + 16 * found, 0 if weights is None else address(weights) + 8 * found,
                    address(done),
                )  # fmt: skip
            rows, used, full = done.tolist()
            at, found = at + used, found + rows
            if full:
                self._make_room(2 * self.most, max(2 * self.room, self.room + LETTERS))
        return ends[: 2 * found], None if weights is None else weights[:found], at

    def array(self) -> np.ndarray:
        """All names by number, as graphs/ids.py has them."""
        width = int(np.diff(self.starts[: self.count + 1]).max(initial=1))
        out = np.empty(self.count, dtype=f"S{width}")
        with numbers_in(self, self._struct, NUMBERS):
            SPREAD_NAMES(ctypes.byref(self._struct), width, address(out))
        return out


def make_table() -> PlainTable:
    """A table without names."""
    return PlainTable() if PARSE_NAMES is None else NameTable()
