"""Node ids as a file has them: whole numbers, or names, which are held as UTF-8 in arrays of bytes.

A name is 1 to LONGEST bytes of text without control characters, begins with neither # nor %, and has no blank
at either end. Names are in ascending order where their bytes are, whatever the language.
"""

import re
from collections.abc import Iterable
from functools import cached_property
from itertools import repeat
from typing import Any

import numpy as np

from app.errors import GraphError
from app.graphs.formats.source import Source, shown

LONGEST = 255  # bytes of a name: an array of them has as many for each name as the longest has
# No text file brings these back as they were, or no reader sees where they stand.
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]")
HALVES = re.compile("[\ud800-\udfff]")  # of pairs of surrogates, which no UTF-8 has
PLAIN = bytes(range(ord(" "), ord("~") + 1))
MARKS = (b"#", b"%")  # begin a comment
MOST_DIGITS = 19  # of 2^63 - 1
RULES = f"1 to {LONGEST} bytes of UTF-8, neither # nor % first"


def named(ids: np.ndarray | None) -> bool:
    """Whether ids are names."""
    return ids is not None and ids.dtype.kind == "S"


def name_array(names: list[bytes]) -> np.ndarray:
    """[k] of names, as wide as the longest."""
    return np.array(names, dtype=f"S{max(map(len, names), default=1)}")


def name_numbers(names: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(order, numbers): the places of names [k] in ascending order, and the number (uint32) of each in it."""
    order = np.argsort(names, kind="stable")
    numbers = np.empty(len(names), dtype=np.uint32)
    numbers[order] = np.arange(len(names), dtype=np.uint32)
    return order, numbers


def plain_ids(ids: np.ndarray) -> list[Any]:
    """Ids [k] as Python's own: int, or str."""
    found = ids.tolist()
    return [each.decode() for each in found] if named(ids) else found


def one_id(ids: np.ndarray, at: Any) -> str:
    """The id at a place, for a message."""
    found = plain_ids(ids[[int(at)]])[0]
    return shown(found) if isinstance(found, str) else str(found)


def whole_number(word: str) -> int | None:
    """The number that a word of digits is, as ids of files and those below 0 are; None: of more than 64 bits,
    or none."""
    digits = word.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= MOST_DIGITS):
        return None
    number = int(word)
    return number if abs(number) < 1 << 63 else None


def blank_between(ids: np.ndarray) -> str:
    """What parts an id from what follows in a line that is written: a tab where some name has a blank or a
    comma, either of which readers would part it at."""
    return "\t" if named(ids) and any(mark in ids.tobytes() for mark in (b" ", b",")) else " "


def between_names(names: Iterable[str]) -> str:
    """The same of names in a list."""
    return "\t" if any(mark in name for name in names for mark in " ,") else " "


def quoted(name: str) -> str:
    """A name as the rest of a line: in quotes where it would be several fields, or loses its quotes."""
    apart = "," in name or (len(name) > 1 and name[0] == name[-1] == '"')
    return f'"{name.replace(chr(34), 2 * chr(34))}"' if apart else name


def escaped(name: str) -> str:
    """A name without characters that would end its line or its field: a line feed is written as two."""
    return CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), name)


def is_text(name: str) -> bool:
    """Whether a name can stand in a line of UTF-8."""
    return not (CONTROL.search(name) or HALVES.search(name))


def fault_of_name(name: bytes) -> str | None:
    """What is wrong with a name, of text in which control characters were looked for; None: nothing."""
    if not name:
        return "found an empty name"
    if len(name) > LONGEST:
        return f"found a name of {len(name)} bytes"
    return f"found a name that begins with {name[:1].decode()}" if name.startswith(MARKS) else None


def name_first(line: bytes, fields: int) -> list[bytes]:
    """A name and what follows it, in a line of so many fields: between tabs or commas, else blanks.

    Where there are more, they are part of the name, quotes around which go.
    """
    between = next((mark for mark in (b"\t", b",") if mark in line), None)
    name, *rest = line.strip(b" \t").rsplit(between, fields - 1)
    if between == b"," and len(name := name.strip(b" \t")) > 1 and name[:1] == name[-1:] == b'"':
        name = name[1:-1].replace(b'""', b'"')
    return [name.strip(b" \t"), *(each.strip(b" \t") for each in rest)]


def check_text(source: Source, text: bytes, line: int, allowed: str = "\n") -> None:
    """Refuse what is no UTF-8, and control characters but those allowed; `line` is the first one's number."""
    if not text.translate(None, PLAIN + allowed.encode()):
        return
    try:
        whole = text.decode()
    except UnicodeDecodeError as error:
        line += text.count(b"\n", 0, error.start)
        raise source.error("found bytes that are no UTF-8; text in UTF-8 would be right", line) from None
    for found in CONTROL.finditer(whole):
        if found[0] not in allowed:
            line += whole.count("\n", 0, found.start())
            raise source.error(
                f"found the control character '{shown(found[0])}'; text without such would be right", line
            )


class NodeIndex:
    """From the ids of a graph to its rows; ids [n] in the order of the rows."""

    def __init__(self, ids: np.ndarray) -> None:
        self.named = named(ids)
        self.sorted = np.argsort(ids, kind="stable")
        self.ids = ids[self.sorted]

    @cached_property
    def _rows(self) -> dict[bytes, int]:
        return dict(zip(self.ids.tolist(), self.sorted.tolist()))

    def row(self, id: int | bytes) -> int | None:
        """The row of an id, or None."""
        if self.named:
            return self._rows.get(id)
        at = int(np.searchsorted(self.ids, id))
        return int(self.sorted[at]) if at < len(self.ids) and self.ids[at] == id else None

    def find(self, ids: np.ndarray) -> np.ndarray:
        """[k] int64 rows of ids [k]; -1 where there is none."""
        if not len(self.ids):
            return np.full(len(ids), -1, dtype=np.int64)
        at = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        return np.where(self.ids[at] == ids, self.sorted[at], -1)

    def find_names(self, names: list[bytes]) -> np.ndarray:
        """The same of a list of names; a table of them is kept."""
        return np.fromiter(map(self._rows.get, names, repeat(-1)), dtype=np.int64, count=len(names))


def ids_of_names(nodes: Any, what: str) -> np.ndarray:
    """[k] the ids of nodes that a caller names by texts. Raises GraphError."""
    names = []
    for each in nodes:
        try:
            if not isinstance(each, str) or CONTROL.search(each):
                raise GraphError(f"{what}: found {shown(repr(each))}; names of nodes would be right")
            names.append(each.encode())
        except UnicodeEncodeError:  # half of a pair of surrogates
            raise GraphError(f"{what}: found {shown(repr(each))}; text in UTF-8 would be right") from None
    return name_array(names)
