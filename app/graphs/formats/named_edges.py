"""Edge lists whose node ids are names: "u v", perhaps with a weight, between tabs, commas or blanks."""

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from app.graphs.formats.edge_list import COMMENTS, NUMBER_START
from app.graphs.formats.name_table import PlainTable, make_table
from app.graphs.formats.source import Limits, Source, graph_name, shown
from app.graphs.formats.text import blank_out, last_fields, line_of_row, read_weight
from app.graphs.ids import RULES, check_text, fault_of_name
from app.graphs.stream import Chunk, EdgeStream
from app.graphs.weights import kept_weights, tell_vanished

KINDS = (
    "id", "node", "nodeid", "vertex", "name", "gene", "protein", "interactor", "person", "user", "author",
)  # fmt: skip
# First two fields of tables that `convert` and others write, without _, - and blanks: no edge.
TITLES = {
    ("source", "target"), ("sourceid", "targetid"), ("src", "dst"), ("src", "dest"), ("srcid", "dstid"),
    ("from", "to"), ("fromid", "toid"), ("fromnode", "tonode"), ("fromnodeid", "tonodeid"), ("u", "v"),
    ("citing", "cited"), ("follower", "followee"), ("start", "end"), ("head", "tail"),
    *((f"{kind}{one}", f"{kind}{two}") for kind in KINDS for one, two in ("12", "ab")),
}  # fmt: skip
Ends = tuple[np.ndarray, np.ndarray | None]  # [2k] int64 of the rows, by turns; weights [k] float64
FEW = 5  # lines of a file of which little can be said by what occurs again


@dataclass(frozen=True)
class Form:
    """What every data line of a file must be.

    between   "," with double quotes as CSV has them; tab; or " " for blanks
    columns   2, or 3 with a weight
    """

    between: str
    columns: int

    def split(self, line: bytes) -> list[bytes]:
        """The fields of a line. Raises csv.Error."""
        if self.between == " ":
            return line.split()
        if self.between == "," and b'"' in line:
            found = next(csv.reader([line.decode().strip(" \t")], strict=True, skipinitialspace=True))
            return [field.strip(" ").encode() for field in found]
        return [field.strip(b" ") for field in line.split(self.between.encode())]

    def right(self) -> str:
        """What would be right, for an error message."""
        between = {",": "a comma", "\t": "a tab", " ": "blanks"}[self.between]
        weight = " and a number" if self.columns == 3 else ""
        return f"two names ({RULES}){weight}, separated by {between}, would be right"


def read_named_edges(path: str, limits: Limits) -> EdgeStream:
    """The stream of an edge list of names; the first data line settles separator and number of columns."""
    source = Source(path, limits)
    for number, line in source.lines():
        content = line.strip(b" \t")
        if not content or content[:1] in b"#%":
            continue
        check_text(source, content, number, "\t")
        form = _form(source, content, number)
        if number == 1 and _is_title(source, form, form.split(content)):
            source.warnings.append(f"{source.where}:1: skipped the first line '{shown(content)}'")
            continue
        return _stream(source, form, number - 1)
    raise source.empty("lines of two names")


def _form(source: Source, content: bytes, number: int) -> Form:
    """What the first data line says of all."""
    between = next((mark for mark in ("\t", ",") if mark.encode() in content), " ")
    form = Form(between, 2)
    found = len(_fields(source, form, content, number))
    return Form(between, 3) if found == 3 else form


def _is_title(source: Source, form: Form, fields: list[bytes]) -> bool:
    """Whether a file's first line names columns: its third field is no number, or its two are known titles,
    which are no nodes of what follows at once."""
    if len(fields) == 3:
        return not NUMBER_START.match(fields[2])
    known = tuple(re.sub("[-_ ]", "", field.decode().lower()) for field in fields)
    return known in TITLES and not _occurs(source, form, fields)


def _occurs(source: Source, form: Form, names: list[bytes]) -> bool:
    """Whether one of some names is a field of the first piece of the lines that follow the first."""
    text, _ = next(source.pieces(1), (b"", 1))
    mark = rb"[ \t]" if form.between == " " else form.between.encode()
    either = b"|".join(map(re.escape, names))
    return bool(re.search(rb'(?:^|%b)[ "]*(?:%b)[ "]*(?:%b|\r?$)' % (mark, either, mark), text, re.MULTILINE))


class _First:
    """Looks whether a name of a file's first line occurs again: it may be a title that nobody knows.

    ends   the numbers of its two names, once they are known
    """

    def __init__(self) -> None:
        self.ends: np.ndarray | None = None
        self.rows = self.again = 0

    def see(self, u: np.ndarray, v: np.ndarray) -> None:
        """The numbers of the names of the next rows [k]."""
        if self.ends is None and len(u):
            self.ends, self.again = np.array([u[0], v[0]]), -1
        if self.again <= 0 and len(u):
            self.again += int(np.count_nonzero(np.isin(u, self.ends) | np.isin(v, self.ends)))
        self.rows += len(u)

    @property
    def alone(self) -> bool:
        """Whether there are many rows, and no other has its names."""
        return self.rows > FEW and not self.again


def _fields(source: Source, form: Form, content: bytes, number: int) -> list[bytes]:
    try:
        return form.split(content)
    except csv.Error as error:
        found = f"{shown(str(error))} in '{shown(content)}'"
        raise source.error(
            f"{found}; names in double quotes as CSV has them would be right", number
        ) from None


def _stream(source: Source, form: Form, skip: int) -> EdgeStream:
    def chunks(stream: EdgeStream) -> Iterator[Chunk]:
        table, first = make_table(), _First()
        for text, line in source.pieces(skip):
            plain = blank_out(text, COMMENTS) if b"#" in text or b"%" in text else text
            check_text(source, plain, line, "\n" if form.between == "," else "\t\n")
            rows = _rows(source, form, plain, line, table)
            first.see(*rows[:2])
            yield rows
        if first.alone and not skip:
            names = shown(b" ".join(table.name(i) for i in first.ends.tolist()))
            said = "neither name of the first edge occurs again; a title (names of columns) begins with #"
            source.warnings.append(f"{source.where}: '{names}': {said}")
        stream.ids = table.array()

    return EdgeStream(
        graph_name(source.path), source.path, "edges", None, 0, form.columns == 3, chunks, source.warnings,
        named=True,
    )  # fmt: skip


def _rows(source: Source, form: Form, text: bytes, line: int, table: PlainTable) -> Chunk:
    """The rows of a piece of text; a name that is new gets the next of the numbers."""
    ends, weights = _all_rows(source, form, text, line, table)
    u, v = ends.reshape(-1, 2).T
    if form.columns == 2:
        return u, v, None

    def place(row: int) -> str:
        return f"{source.where}:{line_of_row(text, line, row)}: the weight"

    tell_vanished(weights, text, lambda: last_fields(text), place, source.warnings)
    return u, v, kept_weights(weights, place, source.warnings)


def _all_rows(source: Source, form: Form, text: bytes, line: int, table: PlainTable) -> Ends:
    """Ends and weights of a piece: of its plain lines at once, of those from the first other one by line."""
    found = table.add_lines(text, form.between, form.columns == 3)
    if found is None:
        return _plain_rows(form, text, table) or _rows_by_line(source, form, text, line, table)
    ends, weights, used = found
    if used == len(text):
        return ends, weights
    line += text.count(b"\n", 0, used)
    more, heavier = _rows_by_line(source, form, text[used:], line, table)
    return np.concatenate([ends, more]), None if weights is None else np.concatenate([weights, heavier])


def _plain_rows(form: Form, text: bytes, table: PlainTable) -> Ends | None:
    """Ends and weights of a piece whose lines hold fields with one separator between and no more, or None.

    A field must be as `Form.split` would give it, so that the lines need not be looked at one by one.
    """
    octets = np.frombuffer(text, dtype=np.uint8)
    marks = octets[(octets == ord(form.between)) | (octets == ord("\n"))]
    due = np.frombuffer((form.between * (form.columns - 1) + "\n").encode(), dtype=np.uint8)
    if len(marks) % len(due) or (marks.reshape(-1, len(due)) != due).any():
        return None
    if (form.between == "," and b'"' in text) or (form.between == " " and b"\t" in text):
        return None
    names = text.replace(form.between.encode(), b"\n").split(b"\n")[:-1]
    weights = [read_weight(field, True) for field in names[2::3]] if form.columns == 3 else []
    if form.columns == 3:
        del names[2::3]
    if any(isinstance(weight, str) for weight in weights):
        return None
    if any(fault_of_name(name) or name != name.strip(b" ") for name in set(names)):
        return None
    return table.add(names), np.array(weights, np.float64)


def _rows_by_line(source: Source, form: Form, text: bytes, line: int, table: PlainTable) -> Ends:
    """Ends and weights of a piece of lines; raises for the first one that is wrong."""
    names, weights = [], []
    for number, found in enumerate(text.split(b"\n"), line):
        if not found.strip(b" \t"):
            continue
        fields = _fields(source, form, found, number)
        fault = _fault(form, fields)
        weight = read_weight(fields[2], True) if form.columns == 3 and not fault else 1.0
        if fault or isinstance(weight, str):
            raise source.error(f"{fault or weight} in '{shown(found)}'; {form.right()}", number)
        names += fields[:2]
        weights.append(weight)
    return table.add(names), np.array(weights, np.float64)


def _fault(form: Form, fields: list[bytes]) -> str | None:
    """What is wrong with the number of fields or with a name; None: nothing."""
    if len(fields) != form.columns:
        plural = "" if len(fields) == 1 else "s"
        return f"found {len(fields)} field{plural} where {form.columns} are expected"
    return next((fault_of_name(name) for name in fields[:2] if fault_of_name(name)), None)
