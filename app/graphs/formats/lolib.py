"""Square matrices as LOLIB has them: perhaps a line of text, the number n of rows, then n times n numbers."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from app.graphs.formats.source import Limits, Source, graph_name, shown
from app.graphs.formats.text import fields_of
from app.graphs.stream import Chunk, EdgeStream
from app.graphs.weights import kept_weights, tell_vanished

MOST = 20_000  # rows
LONGEST = 32  # characters of a number
RIGHT = "the number of rows, then so many times so many numbers,"


def read_lolib(path: str, limits: Limits) -> EdgeStream:
    """The stream of a matrix: an entry (i, j) that is not 0 is an arc from i to j of that weight. Lines may
    end anywhere within the matrix.

    Source   Reinelt's library of linear ordering problems (LOLIB)
    """
    source = Source(path, limits)
    nodes, line = _size(source)
    return EdgeStream(
        graph_name(source.path), source.path, "lolib", nodes, 1, True,
        lambda _: _chunks(source, nodes, line), source.warnings,
    )  # fmt: skip


def _size(source: Source) -> tuple[int, int]:
    """How many rows there are, and the line that says it: the first, or one behind a line of text."""
    texts = 0
    for number, line in source.lines():
        fields = fields_of(line)
        if not fields:
            continue
        if len(fields) == 1 and fields[0].isdigit() and len(fields[0]) < 10:
            nodes = int(fields[0])
            if not 1 <= nodes <= MOST:
                raise source.error(f"found {nodes} rows; 1 to {MOST} would be right", number)
            return nodes, number
        if texts:
            raise source.error(f"found '{shown(line)}'; {RIGHT} would be right", number)
        texts += 1
    raise source.empty(RIGHT.rstrip(","))


def _chunks(source: Source, nodes: int, skip: int) -> Iterator[Chunk]:
    """Entries that are not 0, the rows of a piece of the file at a time."""
    seen, most = 0, nodes * nodes
    for text, line in source.pieces(skip):
        values = _numbers(source, text, line)
        if seen + len(values) > most:
            said = f"the header states {nodes} rows, {most} numbers; found more"
            raise source.error(f"{said}; equal numbers would be right", skip)
        every = partial(_called, source, np.arange(seen, seen + len(values)), nodes)
        tell_vanished(values, text, text.split, every, source.warnings)
        wanted = np.flatnonzero(values)
        at = seen + wanted
        kept = kept_weights(
            values[wanted], partial(_called, source, at, nodes), source.warnings
        )  # fmt: skip
        if not np.isfinite(kept).all():
            raise source.error("found an entry beyond 3.4e38; smaller entries would be right")
        yield at // nodes, at % nodes, kept
        seen += len(values)
    if seen != most:
        said = f"the header states {nodes} rows, {most} numbers; found {seen}"
        raise source.error(f"{said}; equal numbers would be right", skip)


def _called(source: Source, at: np.ndarray, nodes: int, i: int) -> str:
    """The i-th of some entries [k] of a matrix of so many rows."""
    return f"{source.where}: the entry {at[i] // nodes + 1}, {at[i] % nodes + 1}"


def _numbers(source: Source, text: bytes, line: int) -> np.ndarray:
    """[k] float64, all numbers of a piece of text."""
    words = text.split()
    # An array of words has room for the longest in each place; NumPy reads 1_0 as 10.
    if max(map(len, words), default=0) <= LONGEST and b"_" not in text:
        try:
            found = np.array(words or [b"0"]).astype(np.float64)[: len(words)]
        except ValueError:
            found = np.full(1, np.nan)
        if np.isfinite(found).all():
            return found
    for number, each in enumerate(text.split(b"\n"), line):
        for word in each.split():
            if not _is_number(word):
                raise source.error(f"found '{shown(word)}'; a number would be right", number)
    return found


def _is_number(word: bytes) -> bool:
    try:
        return len(word) <= LONGEST and b"_" not in word and bool(np.isfinite(float(word)))
    except ValueError:
        return False
