"""Files written whole or not at all: beside their place first, then moved there."""

import os
import stat
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

from app.errors import CaseError
from app.text import printable, shorten


def packed_as_numpy_packs(archive: zipfile.ZipFile) -> bool:
    """Whether no member is packed so that Python unpacks more of it at once than its stated size."""
    return all(
        info.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for info in archive.infolist()
    )


@contextmanager
def whole_file(path: str) -> Iterator[IO[bytes]]:
    """A file to write; it is where it belongs when the block ends, and nowhere if that fails.

    Raises CaseError where nothing can be written. What is no ordinary file, as /dev/stdout, is written to
    as it is.
    """
    if _is_device(path):
        with open(path, "wb") as file:
            yield file
        return
    try:
        with placed(path, f"{path}.{os.getpid()}.tmp") as file:
            yield file
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise CaseError(f"{shorten(printable(path), 200)}: cannot be written: {printable(reason)}") from None


@contextmanager
def placed(path: str, beside: str = "") -> Iterator[IO[bytes]]:
    """A file to write, brought to the disk and moved to its place when the block ends.

    beside   where it is until then; "": at PATH.tmp, for a folder that no other process writes to
    Raises OSError, which names the file: a full disk is noticed by calls that do not know it.
    """
    beside = beside or f"{path}.tmp"
    with suppress(FileNotFoundError, ValueError):
        os.remove(beside)  # of a process that was killed
    try:
        with open(beside, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError as error:
        if error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror or str(error), path) from error
    finally:
        with suppress(OSError, ValueError):
            os.remove(beside)


def _is_device(path: str) -> bool:
    """Whether something is there that must not be replaced by a file."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def write_whole(path: str, content: bytes) -> None:
    """Write a file whole or not at all."""
    with whole_file(path) as file:
        file.write(content)
