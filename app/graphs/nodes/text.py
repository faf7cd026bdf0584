"""Features, labels and splits in text files: one line for each node, in the order of the graph's ids.

Fields are separated by blanks or by commas; blank lines and lines that start with # are skipped. Text may be
packed, as graph files may.
"""

import io
from collections.abc import Callable, Iterator

import numpy as np

from app.graphs.formats.source import Source, shown
from app.graphs.formats.text import LARGEST_ID, read_id
from app.graphs.nodes.data import (
    SPLITS,
    DenseFeatures,
    Labels,
    Refuse,
    Splits,
    class_bits,
    class_numbers,
    finite_floats,
    real_numbers,
)

WORDS = {b"train": SPLITS["train"], b"val": SPLITS["val"], b"valid": SPLITS["val"], b"test": SPLITS["test"]}
WORDS |= {b"validation": SPLITS["val"], b"none": 0, b"-": 0}


def text_features(source: Source, rows: int | None = None) -> DenseFeatures:
    """One line of numbers for each node; `rows` of them where that is known."""
    n, width = _shape(source, rows)
    return DenseFeatures(n, width, lambda: _checked(source, width, finite_floats), source.error)


def text_labels(source: Source, rows: int | None = None) -> Labels:
    """One class for each node, or one 0 or 1 for each class."""
    n, width = _shape(source, rows)
    several = width > 1
    check = class_bits if several else (lambda values, *place: class_numbers(values[:, 0], *place))
    return Labels(n, width if several else 0, lambda: _checked(source, width, check), source.error)


def text_values(source: Source, rows: int | None = None) -> Labels:
    """One number, or several, for each node; nan for none."""
    n, width = _shape(source, rows)
    return Labels(n, width, lambda: _checked(source, width, real_numbers), source.error, values=True)


def text_splits(source: Source, rows: int | None = None) -> Splits:
    """One word for each node: train, val, test or none. `rows` would not help."""
    found = bytearray()
    for text, line in source.pieces():
        flags = list(map(WORDS.get, text.split(b"\n")[:-1]))
        found += _flags_by_line(source, text, line) if None in flags else bytes(flags)
    return Splits(np.frombuffer(bytes(found), dtype=np.uint8), source.error)


def _flags_by_line(source: Source, text: bytes, line: int) -> bytes:
    """The sets of a piece's lines, blank ones and comments among them; raises for the first that is wrong."""
    found = bytearray()
    for number, each in enumerate(text.split(b"\n"), line):
        if not each.strip(b" \t") or each.startswith(b"#"):
            continue
        word = each.strip(b' \t\r"').lower()
        if word not in WORDS:
            right = "train, val, test or none would be right"
            raise source.error(f"found '{shown(word)}'; {right}", number)
        found.append(WORDS[word])
    return bytes(found)


def text_integers(source: Source, last: int = LARGEST_ID) -> np.ndarray:
    """[k] int64: one whole number 0..last on each line."""
    found = []
    for number, line in data_lines(source):
        value = read_id(line.strip(b" \t"), 0, last)
        if isinstance(value, str):
            right = f"one node number 0..{last} would be right" if last < LARGEST_ID else "one would be right"
            raise source.error(f"{value} in '{shown(line)}'; {right}", number)
        found.append(value)
    return np.array(found, dtype=np.int64)


def data_lines(source: Source) -> Iterator[tuple[int, bytes]]:
    """(line number, line) of the lines that hold something."""
    for number, line in source.lines():
        if line.strip(b" \t") and not line.startswith(b"#"):
            yield number, line


def _shape(source: Source, rows: int | None) -> tuple[int, int]:
    """Rows of the file, counted where that is not known, and the fields of the first one."""
    first = next((line for _, line in data_lines(source)), None)
    if first is None:
        raise source.error("holds no numbers; one line for each node would be right")
    rows = sum(_count(text) for text, _ in source.pieces()) if rows is None else rows
    return rows, len(_fields(first))


def _count(text: bytes) -> int:
    """Data lines of a piece of text."""
    marks = (b"#", b"\n\n", b" \n", b"\t\n")  # of lines that may hold nothing
    if not text.startswith(b"\n") and not any(mark in text for mark in marks):
        return text.count(b"\n")
    return sum(bool(line.strip(b" \t")) and not line.startswith(b"#") for line in text.split(b"\n"))


def _fields(line: bytes) -> list[bytes]:
    return line.split(b",") if b"," in line else line.split()


def _checked(source: Source, width: int, check: Callable[..., np.ndarray]) -> Iterator[np.ndarray]:
    """The rows of each piece of text as `check` returns them."""
    at = 0
    for text, line in source.pieces():
        values = _numbers(source, text, line, width)
        yield check(values, at, _at_line(source, text, line))
        at += len(values)


def _at_line(source: Source, text: bytes, line: int) -> Refuse:
    """Errors that name the lines of a piece: what is wrong in it is found by its row."""
    last = line + text.count(b"\n") - 1
    return lambda message: source.error(f"{message} (lines {line}..{last})")


def _numbers(source: Source, text: bytes, line: int, width: int) -> np.ndarray:
    """[rows, width] float64."""
    comma = b"," in text
    try:
        values = np.loadtxt(
            io.BytesIO(text), dtype=np.float64, ndmin=2, comments=None, delimiter="," if comma else None
        )
    except ValueError:
        return _slowly(source, text, line, width)
    fits = values.shape[1] == width and len(values) == _count(text)
    return values if fits else _slowly(source, text, line, width)


def _slowly(source: Source, text: bytes, line: int, width: int) -> np.ndarray:
    """The rows, one line at a time; raises for the first line that is wrong."""
    rows = []
    for number, found in enumerate(text.split(b"\n"), line):
        if not found.strip(b" \t") or found.startswith(b"#"):
            continue
        fields = _fields(found)
        if len(fields) != width:
            right = f"{width}, as in the first line, would be right"
            raise source.error(f"found {len(fields)} fields in '{shown(found)}'; {right}", number)
        rows.append([_number(source, field, number) for field in fields])
    return np.array(rows, dtype=np.float64).reshape(len(rows), width)


def _number(source: Source, field: bytes, line: int) -> float:
    """The number in a field."""
    plain = field.strip(b" \t")
    try:
        if b"_" in plain:  # float() would take it
            raise ValueError
        return float(plain)
    except ValueError:
        raise source.error(f"found '{shown(field)}'; a number would be right", line) from None
