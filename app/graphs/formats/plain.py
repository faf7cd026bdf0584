"""The compiled parser (native/text.c) for lines of two node ids: it stops at whatever is not plain."""

import ctypes

import numpy as np

from app.native.library import address, function

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
SHORTEST_LINE = 4  # bytes of "1 2\n"

PARSE_PAIRS = function(
    "lk_parse_pairs", Pointer, Long, Long, Long, Pointer, Long, Long, Pointer, Pointer, Pointer
)  # fmt: skip


def parse_pairs(
    text: bytes, first_id: int, last_id: int, comments: bytes = b"", letter: bytes = b""
) -> tuple[np.ndarray, np.ndarray, int]:
    """The rows at the start of a piece of text, as far as its lines are plain.

    text       lines that end with LF alone (Source.clean)
    comments   characters, at most two, that make a line a comment
    letter     what every edge line starts with, or empty
    returns    u [k] int64, v [k] int64, where `first_id` becomes 0; bytes of whole lines that were understood
    """
    if PARSE_PAIRS is None:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), 0
    most = len(text) // SHORTEST_LINE + 1
    u, v, done = np.empty(most, np.int64), np.empty(most, np.int64), np.zeros(2, np.int64)
    held, marks = np.frombuffer(text, np.uint8), np.frombuffer(comments.ljust(2, b"\0"), np.uint8)
    PARSE_PAIRS(
        address(held), len(text), first_id, last_id, address(marks), ord(letter or b"\0"), most, address(u),
        address(v), address(done),
    )  # fmt: skip
    rows, used = done.tolist()
    return u[:rows], v[:rows], used
