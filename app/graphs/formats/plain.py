"""The compiled parsers (native/text.c): plain lines of two ids, perhaps with a weight, and of whole numbers.

They stop at whatever is not plain.
"""

import ctypes

import numpy as np

from app.native.library import address, function

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
SHORTEST_LINE = 4  # bytes of "1 2\n"

PARSE_ROWS = function("lk_parse_rows", Pointer, *[Long] * 3, Pointer, *[Long] * 4, *[Pointer] * 4)
PARSE_NUMBERS = function("lk_parse_numbers", Pointer, *[Long] * 3, *[Pointer] * 3)
MIRROR_SUM = function("lk_mirror_sum", Pointer, Pointer, Long, returns=ctypes.c_uint64)

# u [k] int64, v [k] int64, w [k] float64 or None; bytes of whole lines that were understood
Parsed = tuple[np.ndarray, np.ndarray, np.ndarray | None, int]


def parse_plain(
    text: bytes, first_id: int, last_id: int, comments: bytes = b"", letter: bytes = b"",
    comma: bool = False, weighted: bool = False, real: bool = True,
) -> Parsed:  # fmt: skip
    """The rows at the start of a piece of text, as far as its lines are plain.

    text       lines that end with LF alone (Source.clean)
    comments   characters, at most two, that make a line a comment
    letter     what every edge line starts with, or empty
    comma, weighted, real   as Layout.comma, columns == 3, real; a weight is what Python's float makes of it
    returns    see Parsed; `first_id` becomes 0
    """
    if PARSE_ROWS is None:
        none = np.zeros(0, np.int64)
        return none, none, np.zeros(0, np.float64) if weighted else None, 0
    most = len(text) // SHORTEST_LINE + 1
    u, v, done = np.empty(most, np.int64), np.empty(most, np.int64), np.zeros(2, np.int64)
    w = np.empty(most, np.float64) if weighted else None
    held, marks = np.frombuffer(text, np.uint8), np.frombuffer(comments.ljust(2, b"\0"), np.uint8)
    PARSE_ROWS(
        address(held), len(text), first_id, last_id, address(marks), ord(letter or b"\0"), int(comma),
        int(real), most, address(u), address(v), address(w), address(done),
    )  # fmt: skip
    rows, used = done.tolist()
    return u[:rows], v[:rows], None if w is None else w[:rows], used


def parse_numbers(text: bytes, comment: bytes = b"") -> tuple[np.ndarray, np.ndarray] | None:
    """The whole numbers of all lines and how many stand on each, or None where anything is unusual.

    text      lines that end with LF alone
    comment   the character that makes a line none at all, or empty
    returns   values [t] int64 below 10^18, counts [lines] int64
    """
    if PARSE_NUMBERS is None:
        return None
    most, done = len(text) + 1, np.zeros(3, np.int64)
    values, counts = np.empty(most, np.int64), np.empty(most, np.int64)
    held, mark = np.frombuffer(text, np.uint8), ord(comment or b"\0")
    PARSE_NUMBERS(address(held), len(text), mark, most, address(values), address(counts), address(done))
    found, lines, used = done.tolist()
    return (values[:found], counts[:lines]) if used == len(text) else None


def mirror_sum(u: np.ndarray, v: np.ndarray) -> int | None:
    """What `_mirror_sum` of metis.py is of entries u, v [k] int64; None without kernels."""
    if MIRROR_SUM is None:
        return None
    u, v = (np.ascontiguousarray(each, dtype=np.int64) for each in (u, v))
    return MIRROR_SUM(address(u), address(v), len(u))
