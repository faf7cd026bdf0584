"""Text for people and terminals: values as TOML, names in printable ASCII, lines of a usual width."""

import math
import sys
from collections.abc import Iterator
from numbers import Integral
from textwrap import wrap

COLUMNS = 80  # of a line that people read
WIDEST = 100  # of a line of the table of answers
NARROW = 8  # of a heading's, where its words allow it


def printable(text: str) -> str:
    """The text in printable ASCII: everything else is escaped, so that no name can garble a terminal."""
    return "".join(c if " " <= c <= "~" else c.encode("unicode_escape").decode() for c in text)


def gap_words(gap: float) -> str:
    """A gap in per cent; of a bound of 0 there is none."""
    return f"gap {100 * gap:.2f} %" if math.isfinite(gap) else "no relative gap: the bound is 0"


def figures(value: float | int | None) -> str:
    """A number for the log: whole ones as they are, others with twelve figures."""
    return "-" if value is None else f"{value:.12g}" if isinstance(value, float) else str(value)


def wrapped(text: str, columns: int = COLUMNS) -> Iterator[str]:
    """Lines of at most so many columns, indented from the second on; a longer word (a path) stays whole.

    Two blanks in a row, or before all, are those of a table, whose lines stay whole too.
    """
    if len(text) <= columns or "  " in text.rstrip():
        yield text
        return
    line = ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > columns:
            yield line
            line = f"  {word}"
        else:
            line = f"{line} {word}" if line else word
    yield line


def shorten(text: str, length: int = 80) -> str:
    """The text, its middle left out where it is long."""
    return text if len(text) <= length else f"{text[: length - 23]}...{text[-20:]}"


def is_whole(value: object) -> bool:
    """Whether a value is an integer, Python's or NumPy's; True and False are none."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def show(value: object) -> str:
    """A value as it was found, short."""
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        inner = ["[...]" if isinstance(each, list) else show(each) for each in value[:8]]
        return "[" + ", ".join(inner + ["..."] * (len(value) > 8)) + "]"
    return shorten(toml_value(value))


def toml_value(value: object) -> str:
    """A value in TOML, in ASCII."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{"".join(_toml_character(c) for c in value)}"'
    if isinstance(value, list | tuple):
        return f"[{', '.join(toml_value(each) for each in value)}]"
    return str(value)


def _toml_character(c: str) -> str:
    """One character of a TOML string."""
    if c in '"\\':
        return f"\\{c}"
    if " " <= c <= "~":
        return c
    return f"\\u{ord(c):04X}" if ord(c) < 1 << 16 else f"\\U{ord(c):08X}"


def is_plain(text: str) -> bool:
    """No control characters, no halves of a surrogate pair (bytes of an argument that are not UTF-8)."""
    return not any(ord(c) < 32 or 127 <= ord(c) < 160 or 0xD800 <= ord(c) < 0xE000 for c in text)


def not_plain(text: str) -> str:
    """What is wrong with text that is not plain, for an error."""
    if foreign(text):
        return f"must be text, got {show(text)}{foreign(text)}"
    return f"must be text without control characters, got {show(text)}"


def foreign(text: str) -> str:
    """The end of an error on text that the locale has no bytes for, or was no text in it; empty: it has.

    Of LANG=C those are others than ASCII, where Python is told to keep to it.
    """
    encoding = sys.getfilesystemencoding()
    if encoding == "utf-8":
        return ""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return f"; names of files are in {encoding} here, PYTHONUTF8=1 in the environment makes them UTF-8"
    return ""


def table_lines(rows: list[list[str]], widest: int = COLUMNS) -> Iterator[str]:
    """The lines of a table whose first row has its headings, at most so many columns wide.

    Headings of several words stand on several lines. Columns that do not fit follow below, beside the first
    column again.
    """
    columns = [_column(cells, left=number == 0) for number, cells in enumerate(zip(*_stacked(rows)))]
    part: list[list[str]] = []
    for column in columns:
        if len(part) > 1 and sum(2 + len(each[0]) for each in part) + len(column[0]) > widest:
            yield from _lines(part)
            part = columns[:1]
        part = [*part, column]
    yield from _lines(part)


def _lines(columns: list[list[str]]) -> Iterator[str]:
    """The lines of columns side by side; of the headings only as many as these columns have."""
    yield from filter(str.strip, map("  ".join, zip(*columns)))


def _stacked(rows: list[list[str]]) -> list[list[str]]:
    """The rows with the words of the headings one above the other."""
    heads = [wrap(head, NARROW, break_long_words=False, break_on_hyphens=False) for head in rows[0]]
    deep = max(map(len, heads))
    filled = [[""] * (deep - len(head)) + head for head in heads]
    return [*map(list, zip(*filled)), *rows[1:]]


def _column(cells: tuple[str, ...], left: bool) -> list[str]:
    """Cells of equal width."""
    width = max(map(len, cells))
    return [cell.ljust(width) if left else cell.rjust(width) for cell in cells]


UNITS = ((31_557_600, "years"), (86_400, "days"), (3_600, "h"), (60, "min"))  # s


def duration(seconds: float) -> str:
    """A time in the unit that suits it, two digits: 4.5 s, 12 min, 3.4 h, 5.0 days, 2,000 years."""
    size, unit = next(((size, unit) for size, unit in UNITS if seconds >= 2 * size), (1, "s"))
    value = seconds / size
    return f"{value:,.0f} {unit}" if value >= 10 else f"{value:.2g} {unit}"


def counted(count: int, noun: str) -> str:
    """1 rank, 2 ranks, 1,000 ranks."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
