"""Graph files in pieces: decompressed by content, capped, cut at line ends, never whole in memory."""

import bz2
import gzip
import lzma
import os
import re
import stat
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from app.errors import GraphError

PIECE_BYTES = 1 << 22
LONGEST_LINE = 1 << 24  # bytes; while its fields are told apart a line takes tens of times as much
MOST_SHRINKING = 1100  # deflate cannot shrink more than 1032 to 1
TRACED_BYTES = 1 << 16

COMPRESSIONS = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open}
GRAPH_SUFFIXES = re.compile(
    r"\.(txt|tsv|csv|edges|edgelist|el|wel|mtx|graph|metis|col|clq|gr|mis|dimacs|gset|stp|qubo|dat|sets|gmt|hgr|scp|npz|nt|lop|lolib)$",
    re.IGNORECASE,
)
PACKED_SUFFIXES = re.compile(r"\.(gz|bz2|xz)$", re.IGNORECASE)

NO_UTF_8 = re.compile(r"\\udc([89a-f][0-9a-f])")  # an octet of none, as surrogateescape has it


@dataclass(frozen=True)
class Limits:
    """Sizes in bytes above which a file is refused before its content is held."""

    decompressed: int = 64 << 30
    npz: int = 16 << 30


def shown(found: bytes | str, most: int = 60) -> str:
    """`found` for an error message: escaped to plain ASCII, at most `most` characters."""
    if isinstance(found, bytes):
        text = ascii(found[: 4 * most].decode("utf-8", "surrogateescape"))[1:-1]
        text = NO_UTF_8.sub(r"\\x\1", text)
    else:
        text = ascii(found)[1:-1]
    return text if len(text) <= most and len(found) <= 4 * most else text[: most - 3] + "..."


def graph_name(path: str) -> str:
    """The file name without directory, compression suffix and graph suffix, escaped."""
    return shown(plain_name(path), 200)


def plain_name(path: str) -> str:
    """The same as it is."""
    name = PACKED_SUFFIXES.sub("", os.path.basename(path))
    return GRAPH_SUFFIXES.sub("", name) or name


def graph_suffix(path: str) -> str:
    """The suffix that tells the format, such as ".mtx" of "A.mtx.gz"."""
    return os.path.splitext(PACKED_SUFFIXES.sub("", os.path.basename(path)))[1].lower()


@dataclass(frozen=True)
class Source:
    """One graph file; `where` is its path as error messages print it, `warnings` are those of its stream."""

    path: str
    limits: Limits = Limits()
    warnings: list[str] = field(default_factory=list, compare=False)

    @property
    def where(self) -> str:
        """The path, escaped."""
        return shown(self.path, 400)

    def error(self, text: str, line: int | None = None) -> GraphError:
        """The error to raise for this file, at 1-based `line` where there is one."""
        return GraphError(f"{self.where}: {text}" if line is None else f"{self.where}:{line}: {text}")

    def empty(self, right: str) -> GraphError:
        """The error to raise for a file without any data."""
        return GraphError(f"no edges in {self.where}; {right} would be right")

    def check(self) -> None:
        """Refuse what is missing, a directory, or anything else that is not an ordinary file."""
        try:
            mode = os.stat(self.path).st_mode
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise self.error(f"{reason}; the path of a graph file would be right") from None
        if not stat.S_ISREG(mode):
            kind = "a directory" if stat.S_ISDIR(mode) else "not an ordinary file"
            raise self.error(f"{kind}; the path of a graph file would be right")

    def most_lines(self) -> int:
        """More lines than that cannot be in the file, packed or not, by its size."""
        self.check()
        magic, size = self.first_bytes(6), os.path.getsize(self.path)
        if COMPRESSIONS.get(magic[:2]) is gzip.open:
            size = min(size * MOST_SHRINKING, self.limits.decompressed)
        elif any(magic.startswith(start) for start in COMPRESSIONS):
            size = self.limits.decompressed
        return size // 2 + 1

    def first_bytes(self, size: int) -> bytes:
        """Up to `size` bytes of the file as stored."""
        self.check()
        try:
            with open(self.path, "rb") as file:
                return file.read(size)
        except OSError as error:
            raise self.error(f"cannot be read: {error.strerror}") from None

    def blocks(self) -> Iterator[bytes]:
        """The decompressed bytes, in blocks that grow to PIECE_BYTES."""
        magic = self.first_bytes(6)
        opener = next((opener for start, opener in COMPRESSIONS.items() if magic.startswith(start)), None)
        total, size = 0, max(1, PIECE_BYTES >> 6)
        try:
            with (opener or open)(self.path, "rb") as file:
                while block := file.read(size):
                    total += len(block)
                    if opener and total > self.limits.decompressed:
                        raise self.error(
                            f"more than {self.limits.decompressed} bytes after decompression; "
                            "a smaller file, or a larger memory.max_decompressed_gb, would be right"
                        )
                    yield block
                    size = min(4 * size, PIECE_BYTES)
        except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError, MemoryError) as error:
            reason = getattr(error, "strerror", None) or str(error) or "out of memory"
            raise self.error(f"cannot be read: {shown(reason)}; an undamaged file would be right") from None

    def pieces(self, skip: int = 0) -> Iterator[tuple[bytes, int]]:
        """The text after the first `skip` lines, cut at line ends.

        yields (text, line): whole lines, each ended by one newline; the 1-based number of the first
        """
        carry: list[bytes] = []
        line = 1
        for block in self._marked_blocks():
            end = block.rfind(b"\n") + 1
            carry.append(block[:end] if end else block)
            if not end:
                if sum(map(len, carry)) > LONGEST_LINE:
                    raise self.error(f"a line of over {LONGEST_LINE} bytes; shorter would be right", line)
                continue
            text = b"".join(carry)
            carry = [block[end:]]
            lines = text.count(b"\n")
            if line + lines > skip + 1:
                drop = max(0, skip + 1 - line)
                yield self.clean(_after_lines(text, drop), line + drop), line + drop
            line += lines
        if (rest := b"".join(carry)) and line > skip:
            yield self.clean(rest + b"\n", line), line

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Every line with its 1-based number, without line end."""
        for text, first in self.pieces():
            for offset, line in enumerate(text.split(b"\n")[:-1]):
                yield first + offset, line

    def _marked_blocks(self) -> Iterator[bytes]:
        """The blocks without a UTF-8 byte order mark at the start of the file."""
        first = True
        for block in self.blocks():
            yield block.removeprefix(b"\xef\xbb\xbf") if first else block
            first = False

    def clean(self, text: bytes, line: int) -> bytes:
        """Turn CR LF into LF; refuse NUL bytes. `line` is the number of the first line."""
        if (at := text.find(b"\0")) >= 0:
            line += text.count(b"\n", 0, at)
            raise self.error("found a NUL byte; a text file would be right", line)
        return text.replace(b"\r\n", b"\n") if b"\r" in text else text


def trace(path: str) -> list[int]:
    """Integers that tell files apart: size, time of change, check sum of the first and the last bytes."""
    with open(path, "rb") as file:
        found = os.fstat(file.fileno())
        start = file.read(TRACED_BYTES)
        file.seek(max(0, found.st_size - TRACED_BYTES))
        return [found.st_size, found.st_mtime_ns, zlib.crc32(file.read(TRACED_BYTES), zlib.crc32(start))]


def _after_lines(text: bytes, count: int) -> bytes:
    at = 0
    for _ in range(count):
        at = text.index(b"\n", at) + 1
    return text[at:] if count else text
