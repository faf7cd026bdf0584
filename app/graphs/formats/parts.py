"""Parts of a text file: every rank reads the lines that start in its range of bytes, and no rank reads all.

A part that holds anything wrong, or anything to warn of, raises an error without a line number; the caller
then has the file read from its start, which finds the first such line and names it.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import replace

from app.graphs.formats.source import COMPRESSIONS, LONGEST_LINE, Source
from app.graphs.formats.text import Layout, read_rows
from app.graphs.stream import Chunk, EdgeStream

LEAST_BYTES = 4 << 20  # smaller files are not worth the agreement
PIECE_BYTES = 1 << 20
BLOCK_BYTES = 1 << 16

Part = Callable[[EdgeStream, int, int], Iterator[Chunk]]


def part_of_rows(source: Source, skip: int, layout: Layout) -> Part | None:
    """What EdgeStream.part is for the lines after the first `skip`; None where the file has no parts."""
    if not has_parts(source):
        return None
    return lambda stream, rank, size: rows_of_part(source, skip, layout, rank, size)


def has_parts(source: Source) -> bool:
    """True for a file that is not packed and not small."""
    packed = source.first_bytes(6).startswith(tuple(COMPRESSIONS))
    return not packed and os.path.getsize(source.path) >= LEAST_BYTES


def rows_of_part(source: Source, skip: int, layout: Layout, rank: int, size: int) -> Iterator[Chunk]:
    """The rows of one rank's lines."""
    unseen = replace(source, warnings=[])
    for text in part_pieces(source, skip, rank, size):
        chunk = read_rows(unseen, source.clean(text, 0), 0, layout)
        if unseen.warnings:
            raise source.error("holds what a warning tells of; reading it in one piece would be right")
        yield chunk


def part_pieces(source: Source, skip: int, rank: int, size: int) -> Iterator[bytes]:
    """Whole lines, each ended by one newline, that start in a rank's range after the first `skip` lines."""
    with open(source.path, "rb", buffering=0) as file:
        end = os.fstat(file.fileno()).st_size
        start = _offset_after(file.fileno(), skip)
        lo, hi = (_line_start(file.fileno(), start, end, share, size) for share in (rank, rank + 1))
        carry = b""
        while lo < hi:
            block = os.pread(file.fileno(), min(PIECE_BYTES, hi - lo), lo)
            if not block:
                raise source.error("became shorter while it was read")
            lo += len(block)
            cut = block.rfind(b"\n") + 1
            if cut:
                yield carry + block[:cut]
            carry = block[cut:] if cut else carry + block
            if len(carry) > LONGEST_LINE:
                raise source.error(f"a line of over {LONGEST_LINE} bytes; shorter would be right")
        if carry:
            yield carry + b"\n"


def _offset_after(file: int, lines: int) -> int:
    """The offset of the byte after the first `lines` lines, and after a byte order mark."""
    at = 3 if os.pread(file, 3, 0) == b"\xef\xbb\xbf" else 0
    for _ in range(lines):
        at = _after_newline(file, at)
    return at


def _line_start(file: int, start: int, end: int, share: int, size: int) -> int:
    """Where the range of rank `share` starts: with the first line that starts at its share of the bytes."""
    at = start + (end - start) * share // size
    return at if at in (start, end) else min(_after_newline(file, at - 1), end)


def _after_newline(file: int, at: int) -> int:
    """The offset after the first newline at `at` or later, or the end of the file."""
    while block := os.pread(file, BLOCK_BYTES, at):
        found = block.find(b"\n")
        if found >= 0:
            return at + found + 1
        at += len(block)
    return at
