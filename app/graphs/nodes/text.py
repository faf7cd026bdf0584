"""Features, labels and splits in text files: one line for each node, in the order of the graph's ids.

Fields are separated by blanks or by commas; blank lines and lines that start with # are skipped. Text may be
packed, as graph files may. Classes may have names: the rest of a line.
"""

import io
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from app.errors import GraphError
from app.graphs.formats.source import Source, shown
from app.graphs.formats.text import LARGEST_ID, read_id
from app.graphs.ids import check_text, fault_of_name
from app.graphs.nodes.data import (
    MOST_CLASSES,
    SPLITS,
    Check,
    DenseFeatures,
    Labels,
    Splits,
    class_bits,
    class_numbers,
    finite_floats,
    real_numbers,
)

WORDS = {b"train": SPLITS["train"], b"val": SPLITS["val"], b"valid": SPLITS["val"], b"test": SPLITS["test"]}
WORDS |= {b"validation": SPLITS["val"], b"none": 0, b"-": 0}
NO_CLASS = {b"-1", b"-", b"none"}  # of nodes without a label, among names of classes
NUMBER = "a number would be right"
SEVERAL = "0 or 1 for each class, or one name (in quotes where it has a comma or a number), would be right"
CLASS = "a class from 0, -1 for none, or names of classes in all lines, would be right"


def text_features(source: Source, rows: int | None = None) -> DenseFeatures:
    """One line of numbers for each node; `rows` of them where that is known."""
    n, width = _shape(source, rows)

    def holes(check: Check) -> Iterator[np.ndarray]:
        return _checked(source, width, check, NUMBER, width > 1)

    return DenseFeatures(n, width, lambda: _checked(source, width, finite_floats), source.error, holes=holes)


def text_labels(source: Source, rows: int | None = None) -> Labels:
    """One class for each node, a number or a name, or one 0 or 1 for each class, nan or nothing between
    commas where it is not known."""
    n, width = _shape(source, rows)
    if names := _class_names(source):
        numbers = {name: i for i, name in enumerate(names)}
        called = tuple(name.decode() for name in names)
        return Labels(n, 0, lambda: _numbered(source, numbers), source.error, names=called)
    several = width > 1
    check = class_bits if several else (lambda values, *place: class_numbers(values[:, 0], *place))
    right = SEVERAL if several else CLASS
    parts = partial(_checked, source, width, check, right, several)
    return Labels(n, width if several else 0, parts, source.error)


def text_values(source: Source, rows: int | None = None) -> Labels:
    """One number, or several, for each node; nan, or of several nothing between commas, where it is not
    known."""
    n, width = _shape(source, rows)
    parts = partial(_checked, source, width, real_numbers, NUMBER, width > 1)
    return Labels(n, width, parts, source.error, values=True)


def text_splits(source: Source, rows: int | None = None) -> Splits:
    """One word for each node: train, val, test or none. `rows` would not help."""
    found = bytearray()
    for text, line in source.pieces():
        flags = list(map(WORDS.get, text.split(b"\n")[:-1]))
        found += _flags_by_line(source, text, line) if None in flags else bytes(flags)
    return Splits(np.frombuffer(bytes(found), dtype=np.uint8), source.error)


def _flags_by_line(source: Source, text: bytes, line: int) -> bytes:
    """The sets of a piece's lines; raises for the first that is wrong."""
    found = bytearray()
    for number, each in held_lines(text, line):
        word = _word(each)
        if word not in WORDS:
            right = "train, val, test or none would be right"
            raise source.error(f"found '{shown(word)}'; {right}", number)
        found.append(WORDS[word])
    return bytes(found)


def has_number(source: Source, line: bytes) -> bool:
    """Whether some field of a line of features or values is a number; the file plays no part."""
    return any(map(is_number, _fields(line)))


def is_label(source: Source, line: bytes) -> bool:
    """Whether a line of labels is one: numbers, or a name that another line of the file has too."""
    if has_number(source, line) or _word(line) in NO_CLASS:
        return True
    name = _class_name(line)
    return sum(_class_name(each) == name for _, each in data_lines(source)) > 1


def is_split(source: Source, line: bytes) -> bool:
    """Whether a line of splits is one of their words; the file plays no part."""
    return _word(line) in WORDS


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
    for text, first in source.pieces():
        yield from held_lines(text, first)


def held_lines(text: bytes, first: int) -> Iterator[tuple[int, bytes]]:
    """The same of a piece of text; `first` is the number of its first line."""
    for number, line in enumerate(text.split(b"\n"), first):
        if line.strip(b" \t") and not line.startswith(b"#"):
            yield number, line


def _shape(source: Source, rows: int | None) -> tuple[int, int]:
    """Rows of the file, counted where that is not known, and the fields of the first one."""
    first = next((line for _, line in data_lines(source)), None)
    if first is None:
        raise source.error("holds no numbers; one line for each node would be right")
    rows = sum(_count(text) for text, _ in source.pieces()) if rows is None else rows
    return rows, len(_fields(first))


def _word(line: bytes) -> bytes:
    return line.strip(b' \t\r"').lower()


def _count(text: bytes) -> int:
    """Data lines of a piece of text."""
    marks = (b"#", b"\n\n", b" \n", b"\t\n")  # of lines that may hold nothing
    if not text.startswith(b"\n") and not any(mark in text for mark in marks):
        return text.count(b"\n")
    return sum(1 for _ in held_lines(text, 0))


def _fields(line: bytes) -> list[bytes]:
    return line.split(b",") if b"," in line else line.split()


def _class_names(source: Source) -> list[bytes]:
    """The names of classes in a file, ascending; none where they are numbers. The first label decides."""
    found: set[bytes] = set()
    for number, line in data_lines(source):
        if _word(line) in NO_CLASS:
            continue
        name = _class_name(line)
        quoted = name != line.strip(b" \t\r")
        if not found and (has_number(source, line) or (b"," in line and not quoted)):
            return []
        check_text(source, name, number)
        fault = fault_of_name(name)
        if fault is None and (is_number(name) or (b"," in name and not quoted)):
            fault = f"found '{shown(name)}' among names of classes"
        if fault is None and len(found) == MOST_CLASSES and name not in found:
            fault = f"found more than {MOST_CLASSES} names of classes"
        if fault is not None:
            raise source.error(f"{fault}; one name, or -1 for none, in all lines would be right", number)
        found.add(name)
    return sorted(found)


def _class_name(line: bytes) -> bytes:
    """What a line calls a class: all of it, without quotes around it."""
    name = line.strip(b" \t\r")
    quoted = len(name) > 1 and name[:1] == name[-1:] == b'"'
    return name[1:-1].replace(b'""', b'"').strip(b" ") if quoted else name


def _numbered(source: Source, numbers: dict[bytes, int]) -> Iterator[np.ndarray]:
    """The numbers of the classes in each piece of text."""
    for text, at in source.pieces():
        lines = (line for _, line in held_lines(text, at))
        found = [-1 if _word(line) in NO_CLASS else numbers[_class_name(line)] for line in lines]
        yield np.array(found, dtype=np.int64)


def _checked(
    source: Source, width: int, check: Callable[..., np.ndarray], right: str = NUMBER, empty: bool = False
) -> Iterator[np.ndarray]:
    """The rows of each piece of text as `check` returns them; empty: fields may be so, which are NaN."""
    at = 0
    for text, line in source.pieces():
        values = _numbers(source, text, line, width, right, empty)
        try:
            rows = check(values, at, source.error)
        except GraphError:
            _name_line(source, held_lines(text, line), values, at, check)
            raise
        yield rows
        at += len(values)


def _filled(text: bytes) -> bytes:
    """Lines of fields between commas, with nan in place of nothing."""
    text = b"\n" + text.replace(b"\r", b"")
    for blank, filled in ((b",,", b",nan,"), (b",,", b",nan,"), (b"\n,", b"\nnan,"), (b",\n", b",nan\n")):
        text = text.replace(blank, filled)
    return text[1:]


def _name_line(
    source: Source,
    lines: Iterator[tuple[int, bytes]],
    values: np.ndarray,
    first: int,
    check: Callable[..., np.ndarray],
) -> None:
    """Raise what a check has against the first row that it refuses, with the line of that row.

    lines   number and text of each     values   their rows, the first of them being row `first` of the file
    """
    for row, (number, _) in enumerate(lines):
        check(values[row : row + 1], first + row, partial(source.error, line=number))


def _numbers(source: Source, text: bytes, line: int, width: int, right: str, empty: bool) -> np.ndarray:
    """[rows, width] float64; empty: fields between commas may be so, which are NaN."""
    comma = b"," in text
    filled = _filled(text) if empty and comma else text
    try:
        values = np.loadtxt(
            io.BytesIO(filled), dtype=np.float64, ndmin=2, comments=None, delimiter="," if comma else None
        )
    except ValueError:
        return _slowly(source, text, line, width, right, empty)
    fits = values.shape[1] == width and len(values) == _count(text)
    return values if fits else _slowly(source, text, line, width, right, empty)


def _slowly(source: Source, text: bytes, line: int, width: int, right: str, empty: bool) -> np.ndarray:
    """The rows, one line at a time; raises for the first line that is wrong."""
    rows = []
    for number, found in held_lines(text, line):
        fields = _fields(found)
        if len(fields) != width:
            wanted = f"{width}, as in the first line, would be right"
            raise source.error(f"found {len(fields)} fields in '{shown(found)}'; {wanted}", number)
        rows.append([_number(source, field, number, right, empty) for field in fields])
    return np.array(rows, dtype=np.float64).reshape(len(rows), width)


def _number(source: Source, field: bytes, line: int, right: str, empty: bool) -> float:
    """The number in a field; empty: of nothing it is NaN."""
    plain = field.strip(b" \t\r")
    if empty and not plain:
        return np.nan
    if not is_number(plain):
        raise source.error(f"found '{shown(field)}'; {right}", line)
    return float(plain)


def is_number(field: bytes) -> bool:
    """Whether a field holds a number."""
    try:
        float(field)
    except ValueError:
        return False
    return b"_" not in field  # float() would take it
