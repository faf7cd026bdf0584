"""Kept graphs: files of plain arrays, an uncompressed .npz, that are never believed unchecked.

Next to the arrays the file has the SHA-256 of every 1 MiB of them, and a seal: the SHA-256 of these, of the
names, types and lengths of the arrays, and of the key that says what the file was made from. A rank that
reads some rows checks the pieces that it reads.
"""

import hashlib
import os
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from app.graphs.formats.npz import DAMAGE

PIECE_BYTES = 1 << 20
DIGEST_BYTES = 32
SEAL, DIGESTS = "seal", "digests"
LOCAL_HEADER = 30  # bytes before the name of a member, by the .zip format


class Damaged(Exception):
    """A kept file is not what it should be; says why."""


@dataclass(frozen=True)
class Member:
    """One array of the file: where its data starts, and which piece is its first."""

    start: int
    dtype: np.dtype
    length: int
    first_piece: int

    @property
    def nbytes(self) -> int:
        """Bytes of its data."""
        return self.length * self.dtype.itemsize

    @property
    def pieces(self) -> int:
        """Pieces that its data takes, the last one perhaps short."""
        return -(-self.nbytes // PIECE_BYTES)


class KeptWriter:
    """Writes the arrays one after the other, in parts, to a file beside its place, then moves it there."""

    def __init__(self, path: str, key: str) -> None:
        self.path, self.key = path, key
        self.beside = f"{path}.{os.getpid()}.tmp"
        self.archive = zipfile.ZipFile(self.beside, "w", zipfile.ZIP_STORED, allowZip64=True)
        self.digests: list[bytes] = []
        self.heads: list[str] = []

    def write(self, name: str, dtype: np.dtype, length: int, parts: Iterator[np.ndarray]) -> None:
        """One array [length], given in parts."""
        self.heads.append(_head(name, dtype, length))
        pending = bytearray()
        with self.archive.open(f"{name}.npy", "w", force_zip64=True) as member:
            header = {"descr": dtype.str, "fortran_order": False, "shape": (length,)}
            np.lib.format.write_array_header_1_0(member, header)
            for part in parts:
                data = np.ascontiguousarray(part, dtype=dtype).tobytes()
                member.write(data)
                pending += data
                while len(pending) >= PIECE_BYTES:
                    self.digests.append(hashlib.sha256(pending[:PIECE_BYTES]).digest())
                    del pending[:PIECE_BYTES]
        if pending:
            self.digests.append(hashlib.sha256(pending).digest())

    def close(self) -> None:
        """Add digests and seal; from then on the file is where it belongs, whole."""
        for name, data in ((DIGESTS, b"".join(self.digests)), (SEAL, b"")):
            data = data or _seal(self.key, self.heads, b"".join(self.digests))
            with self.archive.open(f"{name}.npy", "w") as member:
                header = {"descr": "|u1", "fortran_order": False, "shape": (len(data),)}
                np.lib.format.write_array_header_1_0(member, header)
                member.write(data)
        self.archive.close()
        os.replace(self.beside, self.path)

    def abandon(self) -> None:
        """Leave nothing behind, also where the disk is full, which has no room for an end of the file."""
        with suppress(OSError, ValueError):
            self.archive.close()
        with suppress(OSError):
            os.remove(self.beside)


class KeptReader:
    """A kept file whose seal is right; `read` checks what it returns. Raises Damaged, and OSError."""

    def __init__(self, path: str, key: str) -> None:
        self.path = path
        self.file = os.open(path, os.O_RDONLY)
        try:
            found = self._members()
            digests, seal = (self._bytes(found.pop(name)) for name in (DIGESTS, SEAL))
        except (*DAMAGE, KeyError, IndexError, TypeError) as error:
            os.close(self.file)
            raise Damaged(f"cannot be read ({type(error).__name__})") from None
        self.members, self.digests = found, digests
        heads = [_head(name, member.dtype, member.length) for name, member in found.items()]
        if seal != _seal(key, heads, digests):
            os.close(self.file)
            raise Damaged("its seal is not that of this graph")

    def close(self) -> None:
        """Let go of the file."""
        os.close(self.file)

    def read(self, name: str, lo: int = 0, hi: int | None = None) -> np.ndarray:
        """Elements lo..hi-1 of an array (None: to its end), their pieces checked."""
        member = self.members[name]
        hi = member.length if hi is None else hi
        width = member.dtype.itemsize
        if not 0 <= lo <= hi <= member.length:
            raise Damaged(f"has {member.length} elements in array {name}, but {lo}..{hi} are named")
        first = lo * width // PIECE_BYTES
        end = min(-(-hi * width // PIECE_BYTES) * PIECE_BYTES, member.nbytes)
        data = np.empty(max(0, end - first * PIECE_BYTES), dtype=np.uint8)
        for at in range(0, len(data), PIECE_BYTES):
            self._read_piece(member, first + at // PIECE_BYTES, data[at : at + PIECE_BYTES])
        skip = lo * width - first * PIECE_BYTES
        return data[skip : skip + (hi - lo) * width].view(member.dtype)

    def _read_piece(self, member: Member, number: int, into: np.ndarray) -> None:
        got = os.preadv(self.file, [into], member.start + number * PIECE_BYTES)
        at = (member.first_piece + number) * DIGEST_BYTES
        if got != len(into) or hashlib.sha256(into).digest() != self.digests[at : at + DIGEST_BYTES]:
            raise Damaged("its content is not what its check sums say")

    def _bytes(self, member: Member) -> bytes:
        return os.pread(self.file, member.nbytes, member.start)

    def _members(self) -> dict[str, Member]:
        """The arrays by name, in their order."""
        found, piece = {}, 0
        with open(self.path, "rb") as file, zipfile.ZipFile(file) as archive:
            for info in archive.infolist():
                file.seek(info.header_offset + LOCAL_HEADER - 4)
                sizes = file.read(4)
                file.seek(int.from_bytes(sizes[:2], "little") + int.from_bytes(sizes[2:], "little"), 1)
                np.lib.format.read_magic(file)
                shape, _, dtype = np.lib.format.read_array_header_1_0(file)
                member = Member(file.tell(), dtype, shape[0], piece)
                if dtype.hasobject or member.start + member.nbytes > os.fstat(self.file).st_size:
                    raise ValueError("sizes do not agree")
                piece += member.pieces
                found[info.filename.removesuffix(".npy")] = member
        return found


def _head(name: str, dtype: np.dtype, length: int) -> str:
    return f"{name} {dtype.str} {length}"


def _seal(key: str, heads: list[str], digests: bytes) -> bytes:
    return hashlib.sha256("\n".join([key, *heads, ""]).encode() + digests).digest()
