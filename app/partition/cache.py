"""Graphs read from text, kept as arrays in a folder for the next run (memory.cache).

The key is the SHA-256 of the file's bytes with what decides how it is read, so that a changed file is another
graph. What is kept is checked before it is used (graphs/formats/kept.py), and made again where it is damaged.
Every rank reads its own rows; rank 0 writes, and is sent the others' rows in parts.
"""

import hashlib
import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from app.comm.group import Group
from app.graphs.formats.kept import Damaged, KeptReader, KeptWriter
from app.graphs.formats.source import shown
from app.graphs.graph import Graph
from app.graphs.stream import EdgeStream
from app.partition.assemble import Built, EdgeCounts, block_cuts
from app.partition.rows import RowPartition, block_count, block_starts

LAYOUT = 1  # of the files; with another number those of other versions are not looked at
TEXT = (
    "edges",
    "matrix_market",
    "metis",
    "dimacs",
    "gset",
    "stp",
    "qubo",
    "sets",
    "gmt",
    "hgr",
    "scp",
    "pace2022",
)
SENT_BYTES = 1 << 22  # an array goes to rank 0 in parts of this size
PER_ROW, PER_ENTRY = ("ids", "node_weights", "loops"), ("indices", "weights", "arcs", "told_weights")
FIELDS = {"told_weights": "transpose_weights"}  # of a Graph, where the file has another name for one
FOUND, ABSENT, DAMAGED = 0, 1, 2


class Cache:
    """Where the graph of one input file is kept, or nowhere.

    folder    "": nothing is kept
    source    the file's stream on rank 0
    options   what else decides whether the graph is read or refused
    warnings  on rank 0: why a kept graph could not be used, or none could be written
    Ranks     all make one, and call its methods
    """

    def __init__(
        self, group: Group, folder: str, source: EdgeStream | None, options: tuple[str, ...]
    ) -> None:
        self.group, self.folder, self.source = group, folder, source
        self.warnings: list[str] = []
        self.name = self.key = self.path = ""
        if not folder:
            return
        if group.rank == 0 and source.format in TEXT:
            content, _ = self._attempt(lambda: _sha256(source.path))
            self.key = content and f"lockstep {LAYOUT} {content} {source.format} {' '.join(options)}"
        self.key = group.broadcast_text(self.key or "")
        self.name = group.broadcast_text(source.name if group.rank == 0 else "")
        self.path = os.path.join(folder, hashlib.sha256(self.key.encode()).hexdigest()[:32] + ".npz")

    def fetch(self, balance: str) -> Built | None:
        """This rank's rows of the kept graph; None on all ranks where one of them cannot have its own."""
        if not self.key:
            return None
        built, reason, state = None, "", ABSENT
        if os.path.exists(self.path):
            built, reason = self._attempt(lambda: self._read(balance))
            state = FOUND if built else DAMAGED
        states = self.group.gather_integers(np.array([state]))[:, 0]
        if (states == DAMAGED).any():
            self._warn(self.group.broadcast_text(reason, int(np.flatnonzero(states == DAMAGED)[0])))
        return None if states.any() else built

    def keep(self, built: Built) -> None:
        """Write the graph for the next run; where that fails there is a warning, and no file."""
        if not self.key:
            return
        writer, failure = None, ""
        if self.group.rank == 0:
            writer, failure = self._attempt(self._writer)
        if self.group.max_integer(int(bool(failure))):
            self._warn(failure)
            return
        for name, own in self._arrays(built):
            parts = self._parts(own)
            length = int(self.group.sum_integers(np.array([len(own)]))[0])
            if writer is not None and not failure:
                _, failure = self._attempt(partial(writer.write, name, own.dtype, length, parts))
            for _ in parts:  # what rank 0 has not asked for, and the others' side of it
                pass
        if writer is not None:
            if not failure:
                _, failure = self._attempt(writer.close)
            if failure:
                writer.abandon()
                self._warn(failure)

    def _attempt(self, work: Callable[[], Any]) -> tuple[Any, str]:
        """(result, "") or (None, why not): a cache that fails must not end the run."""
        try:
            return work(), ""
        except (Damaged, OSError, MemoryError, ValueError) as error:
            return None, getattr(error, "strerror", None) or str(error) or type(error).__name__

    def _warn(self, reason: str) -> None:
        if self.group.rank == 0:
            self.warnings.append(f"{shown(self.path, 400)}: {shown(reason, 200)}; the kept graph is not used")

    # ---- reading ------------------------------------------------------------------------------------------

    def _read(self, balance: str) -> Built:
        """This rank's rows; no collective."""
        reader = KeptReader(self.path, self.key)
        try:
            n, edges, first_id, *counts = reader.read("facts").tolist()
            starts, block_ends = block_starts(n, block_count(n)), reader.read("block_ends")
            rows = RowPartition(n, starts, block_cuts(self.group, starts, block_ends, balance))
            graph = self._rows(reader, rows, edges, first_id)
            if self.source is not None:
                for text in reader.read("warnings").tobytes().decode().splitlines():
                    self.source.warn(self.source_place + text)
        finally:
            reader.close()
        return Built(graph, rows, EdgeCounts(*counts), block_ends)

    def _rows(self, reader: KeptReader, rows: RowPartition, edges: int, first_id: int) -> Graph:
        lo, hi = rows.range_of(self.group.rank)
        indptr = reader.read("indptr", lo, hi + 1)
        entries = int(indptr[0]), int(indptr[-1])
        spans = dict.fromkeys(PER_ROW, (lo, hi)) | dict.fromkeys(PER_ENTRY, entries)
        found = {name: reader.read(name, *span) for name, span in spans.items() if name in reader.members}
        return Graph(
            self.name, rows.n, lo, hi, indptr - indptr[0], found["indices"], edges, found.get("weights"),
            found.get("ids"), first_id, found.get("node_weights"), found.get("arcs"),
            found.get("told_weights"), found.get("loops"),
        )  # fmt: skip

    @property
    def source_place(self) -> str:
        """What the reader's warnings begin with: not kept, since an equal file may lie elsewhere."""
        return shown(self.source.path, 400)

    # ---- writing ------------------------------------------------------------------------------------------

    def _writer(self) -> KeptWriter:
        os.makedirs(self.folder, exist_ok=True)
        return KeptWriter(self.path, self.key)

    def _arrays(self, built: Built) -> Iterator[tuple[str, np.ndarray]]:
        """The arrays of the file by name: this rank's part of each, in the same order on all ranks."""
        graph, counts, first = built.graph, built.counts, self.group.rank == 0
        facts = [
            graph.n, graph.edges, graph.first_id, counts.lines, counts.loops, counts.repeats, counts.reversed,
        ]  # fmt: skip
        yield "facts", np.array(facts if first else [], dtype=np.int64)
        warned = [text.removeprefix(self.source_place) for text in self.source.warnings] if first else []
        yield "warnings", np.frombuffer("\n".join(warned).encode(), dtype=np.uint8)
        yield "block_ends", built.block_ends if first else built.block_ends[:0]
        entries = self.group.gather_integers(np.array([len(graph.indices)]))[:, 0]
        yield "indptr", graph.indptr[0 if first else 1 :] + entries[: self.group.rank].sum()
        for name in PER_ENTRY + PER_ROW:
            if (own := getattr(graph, FIELDS.get(name, name))) is not None:
                yield name, own

    def _parts(self, own: np.ndarray) -> Iterator[np.ndarray]:
        """On rank 0 every rank's array in turn, in parts; elsewhere nothing. All ranks go through it."""
        group, step = self.group, max(1, SENT_BYTES // own.itemsize)
        sizes = group.gather_integers(np.array([len(own)]))[:, 0].tolist()
        for rank, size in enumerate(sizes):
            for at in range(0, size, step):
                count = min(step, size - at)
                out, into = [0] * group.size, [0] * group.size
                if group.rank == rank:
                    out[0] = count
                if group.rank == 0:
                    into[rank] = count
                yield group.exchange_host(own[at : at + count] if out[0] else own[:0], out, into)


def _sha256(path: str) -> str:
    """Of a file's bytes as stored."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
