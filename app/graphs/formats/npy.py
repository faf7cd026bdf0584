"""One array of an .npy file, with the checks that an archive's arrays get."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from app.errors import GraphError
from app.graphs.formats.npz import Column, Npz
from app.graphs.formats.source import Source

NAME = ""  # of the only array: messages then name the file alone
MAGIC = b"\x93NUMPY"


class Npy(Npz):
    """The array of one .npy file, read as an archive that holds it under the name NAME."""

    def __init__(self, source: Source) -> None:
        self.source = source
        if not source.first_bytes(len(MAGIC)).startswith(MAGIC):
            raise self.error("is no .npy file; one array written by numpy.save would be right")
        size, most = os.path.getsize(source.path), source.limits.npz
        if size > most:
            raise self.error(f"holds {size} bytes; at most {most} would be right")
        with self._reading(NAME), open(source.path, "rb") as file:
            self.columns = {NAME: self._column(NAME, file, size)}

    def error(self, text: str, name: str = NAME) -> GraphError:
        """The error to raise for this file."""
        return self.source.error(text)

    @contextmanager
    def _open(self, column: Column) -> Iterator[IO[bytes]]:
        """The file, at its header."""
        with open(self.source.path, "rb") as file:
            yield file
