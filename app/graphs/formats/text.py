"""Lines of numbers to arrays, strictly: a fast pass over a piece of text, a slow one to name the bad line."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from app.graphs.formats.plain import parse_plain
from app.graphs.formats.source import Source, shown
from app.graphs.stream import Chunk
from app.graphs.weights import kept_weights, tell_vanished

LARGEST_ID = 2**63 - 1
DIGITS, BLANKS = b"0123456789", b" \t\n"
# Blanks before the text, so that the last 24 bytes before any token's end can be loaded.
PAD = 24
LONGEST_WEIGHT = 32
NO_INTEGER = "found a node id that is no integer"
SEMICOLON = " (a comma parts fields too, ';' does not)"

_INTEGER = re.compile(rb"[0-9]+")
_SIGNED = re.compile(rb"[+-]?[0-9]+")
_REAL = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


@dataclass(frozen=True)
class Layout:
    """What every data line of a file must be: "u v" or "u v w".

    columns   2, or 3 with a weight
    first_id, last_id   the allowed ids; `first_id` becomes number 0
    comma     fields are separated by a comma instead of blanks
    real      weights may be written with a point and an exponent
    comments  characters, at most two, that make a line a comment
    letter    what every edge line starts with, or empty
    hint      what else an error says of an id that is no integer
    prepare   makes whatever is no row in a piece of text blank, given its first line's number
    """

    columns: int
    first_id: int = 0
    last_id: int = LARGEST_ID
    comma: bool = False
    real: bool = True
    comments: bytes = b""
    letter: bytes = b""
    hint: str = ""
    prepare: Callable[[bytes, int], bytes] | None = None

    def right(self) -> str:
        """What would be right, for an error message."""
        last = "2^63-1" if self.last_id == LARGEST_ID else self.last_id
        weight = (" and a number" if self.real else " and an integer") if self.columns == 3 else ""
        between = "a comma" if self.comma else "blanks"
        return f"two node ids {self.first_id}..{last}{weight}, separated by {between}, would be right"


def read_rows(source: Source, text: bytes, line: int, layout: Layout) -> Chunk:
    """The rows of a piece of text: plain lines by the compiled parser, the rest as `parse_rows` reads it.

    text      whole lines as Source.clean leaves them, the first of them being line `line` of the file
    returns   u [k] int64, v [k] int64 from 0, w [k] float32 or None
    """
    u, v, w, used = parse_plain(
        text, layout.first_id, layout.last_id, layout.comments, layout.letter, layout.comma,
        layout.columns == 3, layout.real,
    )  # fmt: skip
    if w is not None:
        w = _kept(source, w, text[:used], line, partial(prepared, text[:used], line, layout))
    if used == len(text):
        return u, v, w
    line += text.count(b"\n", 0, used)
    more = parse_rows(source, prepared(text[used:], line, layout), line, layout)
    if not used:
        return more
    u, v = np.concatenate([u, more[0]]), np.concatenate([v, more[1]])
    return u, v, None if w is None else np.concatenate([w, more[2]])


def _kept(source: Source, w: np.ndarray, text: bytes, line: int, rows: Callable[[], bytes]) -> np.ndarray:
    """Weights [k] as graphs keep them.

    text   that they stand in, from line `line` on     rows   gives it with data lines and blank lines only
    """

    def place(row: int) -> str:
        return f"{source.where}:{line_of_row(rows(), line, row)}: the weight"

    tell_vanished(w, text, lambda: last_fields(rows()), place, source.warnings)
    return kept_weights(w, place, source.warnings)


def last_fields(text: bytes) -> Iterator[bytes]:
    """The last field of each line that is not blank, fields being separated by blanks, tabs or commas."""
    lines = (line.replace(b",", b" ").split() for line in text.split(b"\n"))
    return (fields[-1] for fields in lines if fields)


def prepared(text: bytes, line: int, layout: Layout) -> bytes:
    """The text with data lines and blank lines only."""
    return text if layout.prepare is None else layout.prepare(text, line)


def parse_rows(source: Source, text: bytes, line: int, layout: Layout) -> Chunk:
    """The rows of a piece of text that holds only data lines and blank lines.

    text      whole lines, the first of them being line `line` of the file
    returns   u [k] int64, v [k] int64 from 0, w [k] float32 or None
    """
    found = _parse_fast(text, layout)
    u, v, w = _parse_slow(source, text, line, layout) if found is None else found
    return u, v, None if w is None else _kept(source, w, text, line, lambda: text)


def blank_out(text: bytes, pattern: re.Pattern) -> bytes:
    """`text` with the matches of `pattern` made empty; line ends, hence line numbers, stay."""
    return pattern.sub(b"", text)


def line_of_row(text: bytes, line: int, row: int) -> int:
    """The line number of the `row`-th (from 0) line of `text` that is not blank."""
    for number, found in enumerate(text.split(b"\n"), line):
        row -= bool(found.strip(b" \t"))
        if row < 0:
            return number
    return line


def find_tokens(text: bytes, comma: bool = False) -> tuple[bytes, np.ndarray, np.ndarray, np.ndarray]:
    """Where the tokens of a piece of text lie.

    returns   padded text; starts [t], ends [t] of its tokens; ends [l] of its lines
    """
    padded = b"\n" * PAD + text + b"\n" * LONGEST_WEIGHT
    octets = np.frombuffer(padded, dtype=np.uint8)
    inside = octets > ord(" ")
    if comma:
        inside &= octets != ord(",")
    edges = np.flatnonzero(inside[1:] != inside[:-1]) + 1
    line_ends = np.flatnonzero(octets[PAD : len(padded) - LONGEST_WEIGHT] == ord("\n")) + PAD
    return padded, edges[0::2], edges[1::2], line_ends


def token_integers(padded: bytes, starts: np.ndarray, ends: np.ndarray) -> np.ndarray | None:
    """The values [t] int64 of tokens that hold digits only; None if one exceeds 2^63-1."""
    sizes = ends - starts
    longest = int(sizes.max(initial=0))
    if longest > 19:
        return None
    values = _eight_digits(padded, ends, sizes)
    for higher in range(8, longest, 8):
        scale = np.uint64(10**higher)
        digits = _eight_digits(padded, ends - higher, sizes - higher)
        values += np.where(sizes > higher, scale * digits, np.uint64(0))
    if longest == 19 and values.max() > LARGEST_ID:
        return None
    return values.view(np.int64)


def _eight_digits(padded: bytes, ends: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """The number [t] uint64 that the last (up to) eight digits before each end spell.

    All eight at once: bytes are joined to pairs, pairs to fours, fours to eights by multiplication.
    """
    word = np.ndarray((len(padded) - 7,), dtype="<u8", buffer=padded, strides=(1,))[ends - 8]
    # For a token without digits here the result has no meaning.
    unused = np.clip(64 - 8 * sizes, 0, 56).view(np.uint64)
    word = (word >> unused) << unused
    word &= np.uint64(0x0F0F0F0F0F0F0F0F)
    word = word * np.uint64(10) + (word >> np.uint64(8))
    low = (word & np.uint64(0x000000FF000000FF)) * np.uint64(100 + (1000000 << 32))
    high = ((word >> np.uint64(16)) & np.uint64(0x000000FF000000FF)) * np.uint64(1 + (10000 << 32))
    return (low + high) >> np.uint64(32)


def _parse_fast(text: bytes, layout: Layout) -> Chunk | None:
    """The rows with weights as written, or None where anything is unusual."""
    columns = layout.columns
    plain = DIGITS + BLANKS + (b"," if layout.comma else b"")
    signs = (b"+-.eE" if layout.real else b"+-") if columns == 3 else b""
    if text.translate(None, plain + signs):
        return None
    padded, starts, ends, line_ends = find_tokens(text, layout.comma)
    if len(starts) % columns or not _one_row_per_line(starts, ends, line_ends, columns):
        return None
    if layout.comma and not _one_comma_between(padded, starts, ends, columns):
        return None
    odd = bool(signs) and bool(text.translate(None, plain))
    if odd and not _odd_only_in_last(padded, starts, layout.comma, columns):
        return None
    u = token_integers(padded, starts[0::columns], ends[0::columns])
    v = token_integers(padded, starts[1::columns], ends[1::columns])
    if u is None or v is None or not (_within(u, layout) and _within(v, layout)):
        return None
    w = None
    if columns == 3:
        w = _weights(padded, starts[2::3], ends[2::3], odd)
        if w is None:
            return None
    return u - layout.first_id, v - layout.first_id, w


def numbers_by_id(text: bytes) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Rows "id number" of a piece of text, or None where anything is unusual: signs but +, exponents, words.

    returns   ids [k] int64, numbers [k] float64, finite in 32 bits, and the line of each in the text, from 0
    """
    comma = b"," in text
    if text.translate(None, DIGITS + BLANKS + b".+,"):
        return None
    padded, starts, ends, line_ends = find_tokens(text, comma)
    if len(starts) % 2 or not _one_row_per_line(starts, ends, line_ends, 2):
        return None
    if comma and not _one_comma_between(padded, starts, ends, 2):
        return None
    odd = b"." in text or b"+" in text
    if odd and not _odd_only_in_last(padded, starts, comma, 2):
        return None
    ids = token_integers(padded, starts[0::2], ends[0::2])
    numbers = _weights(padded, starts[1::2], ends[1::2], odd)
    if ids is None or numbers is None:
        return None
    return ids, numbers.astype(np.float64), np.searchsorted(line_ends, starts[0::2])


def _within(ids: np.ndarray, layout: Layout) -> bool:
    return len(ids) == 0 or (int(ids.min()) >= layout.first_id and int(ids.max()) <= layout.last_id)


def _one_row_per_line(starts: np.ndarray, ends: np.ndarray, line_ends: np.ndarray, columns: int) -> bool:
    """True if each `columns` tokens in turn share a line with no others."""
    first, last = starts[0::columns], ends[columns - 1 :: columns]
    if len(line_ends) == len(first):
        return bool((last <= line_ends).all() and (first[1:] > line_ends[:-1]).all())
    lines = np.searchsorted(line_ends, first)
    same = np.array_equal(lines, np.searchsorted(line_ends, last))
    return bool(same and (lines[1:] > lines[:-1]).all())


def _one_comma_between(padded: bytes, starts: np.ndarray, ends: np.ndarray, columns: int) -> bool:
    """True if the commas are exactly one between neighbouring tokens of a row."""
    commas = np.flatnonzero(np.frombuffer(padded, dtype=np.uint8) == ord(","))
    rows = len(starts) // columns
    if len(commas) != rows * (columns - 1):
        return False
    commas = commas.reshape(rows, columns - 1)
    after = starts.reshape(rows, columns)[:, 1:]
    before = ends.reshape(rows, columns)[:, :-1]
    return bool(((commas >= before) & (commas < after)).all())


def _odd_only_in_last(padded: bytes, starts: np.ndarray, comma: bool, columns: int) -> bool:
    """True if bytes other than digits, blanks and commas occur only in the last column."""
    octets = np.frombuffer(padded, dtype=np.uint8)
    odd = (octets > ord(" ")) & (octets - np.uint8(ord("0")) > 9)
    if comma:
        odd &= octets != ord(",")
    tokens = np.searchsorted(starts, np.flatnonzero(odd), side="right") - 1
    return bool((tokens % columns == columns - 1).all())


def _weights(padded: bytes, starts: np.ndarray, ends: np.ndarray, odd: bool) -> np.ndarray | None:
    """The weights [k] as written, or None where one is no finite number of 32 bits."""
    if not odd:
        return token_integers(padded, starts, ends)
    sizes = ends - starts
    width = int(sizes.max(initial=1))
    if width > LONGEST_WEIGHT:
        return None
    letters = np.ndarray((len(padded) - width + 1, width), np.uint8, padded, strides=(1, 1))[starts]
    letters[np.arange(width) >= sizes[:, None]] = 0
    try:
        values = letters.view(f"S{width}")[:, 0].astype(np.float64)
    except ValueError:
        return None
    with np.errstate(over="ignore"):
        return values if np.isfinite(values.astype(np.float32)).all() else None


def _parse_slow(source: Source, text: bytes, line: int, layout: Layout) -> Chunk:
    """The rows with weights as written, checked one at a time; raises for the first line that is wrong."""
    rows = []
    for number, found in enumerate(text.split(b"\n"), line):
        if not found.strip(b" \t"):
            continue
        row = check_row(found, layout)
        if isinstance(row, str):
            parted = layout.hint and not layout.comma and b";" in found
            hint = layout.hint if row == NO_INTEGER else SEMICOLON if parted else ""
            raise source.error(f"{row} in '{shown(found)}'; {layout.right()}{hint}", number)
        rows.append(row)
    u = np.array([row[0] for row in rows], dtype=np.int64) - layout.first_id
    v = np.array([row[1] for row in rows], dtype=np.int64) - layout.first_id
    return u, v, np.array([row[2] for row in rows], np.float64) if layout.columns == 3 else None


def fields_of(line: bytes, comma: bool = False) -> list[bytes]:
    """The fields of a line, split at commas or at blanks."""
    if comma:
        return [part.strip(b" \t") for part in line.split(b",")]
    return [part for part in re.split(rb"[ \t]+", line) if part]


def check_row(line: bytes, layout: Layout) -> tuple[int, int, float] | str:
    """(u, v, weight) of one data line as written, or what is wrong with it."""
    fields = fields_of(line, layout.comma)
    if len(fields) != layout.columns:
        count = f"{len(fields)} field{'' if len(fields) == 1 else 's'}"
        return f"found {count} where {layout.columns} are expected"
    ids = [read_id(field, layout.first_id, layout.last_id) for field in fields[:2]]
    for found in ids:
        if isinstance(found, str):
            return found
    weight = 1.0 if layout.columns == 2 else read_weight(fields[2], layout.real)
    return weight if isinstance(weight, str) else (ids[0], ids[1], weight)


def read_id(field: bytes, first: int, last: int) -> int | str:
    """The node id a field holds, or what is wrong with it."""
    if not _INTEGER.fullmatch(field):
        negative = _INTEGER.fullmatch(field[1:]) and field.startswith(b"-")
        return "found a negative node id" if negative else NO_INTEGER
    if len(field.lstrip(b"0")) > 19 or int(field) > LARGEST_ID:
        return "found a node id above 2^63-1"
    if not first <= int(field) <= last:
        return f"found node id {int(field)} outside {first}..{last}"
    return int(field)


def read_weight(field: bytes, real: bool) -> float | str:
    """The weight a field holds, or what is wrong with it."""
    if not (_REAL if real else _SIGNED).fullmatch(field):
        return "found a weight that is no finite number" if real else "found a weight that is no integer"
    with np.errstate(over="ignore"):
        narrow = np.float32(float(field))
    return float(field) if np.isfinite(narrow) else "found a weight beyond the range of 32-bit numbers"
