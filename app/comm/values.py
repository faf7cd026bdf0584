"""Values: reductions that are exact, whole values of one rank or of each, and waiting for all ranks."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI

from app.comm.traffic import Clock, Traffic, offsets
from app.watchdog import beat

Array = Any
HIGHEST_BIT = np.uint64(1 << 63)
POLLED_S, NAP_SHARE, LONGEST_NAP_S = 2e-4, 1 / 32, 2e-3  # of `rest`


class Values(Traffic):
    """What a Group tells of small and whole values; attributes as in Traffic."""

    # ---- exact reductions -------------------------------------------------------------------------------

    def sum_integers(self, values: np.ndarray) -> np.ndarray:
        """Element-wise sum over ranks of host int64 values: exact, so any order gives the same.

        values   [k] int64
        Ranks    all call; result identical on all (Allreduce)
        """
        values = np.ascontiguousarray(values, dtype=np.int64)
        if self.size == 1:
            return values
        out = np.empty_like(values)
        self._count("decide", values.nbytes)
        with Clock(self, "decide"):
            self.comm.Allreduce(values, out, op=MPI.SUM)
        return out

    def max_integers(self, values: np.ndarray) -> np.ndarray:
        """Element-wise maximum over ranks of host integers.

        values   [k] int64 or uint64
        Ranks    all call; result identical on all (Allreduce)
        """
        if self.size == 1:
            return values
        if values.dtype == np.uint64:  # Open MPI 4.1 compares them as if they had a sign
            return self.max_integers((values ^ HIGHEST_BIT).view(np.int64)).view(np.uint64) ^ HIGHEST_BIT
        values = np.ascontiguousarray(values)
        out = np.empty_like(values)
        self._count("decide", values.nbytes)
        with Clock(self, "decide"):
            self.comm.Allreduce(values, out, op=MPI.MAX)
        return out

    def max_integer(self, value: int) -> int:
        """The largest of one integer per rank. Ranks: all call."""
        return int(self.max_integers(np.array([value], dtype=np.int64))[0])

    def sum_floats(self, X: Array) -> Array:
        """Plain all-reduce of floats: only with reproducible = false, since its bits depend on the ranks.

        X        float32 on the device, of one shape on all ranks; so is the result
        Ranks    all call (Allreduce)
        """
        if self.size == 1:
            return X
        host = self._staged(X)
        out = np.empty_like(host)
        self._count("sum", host.nbytes)
        with Clock(self, "sum"):
            self.comm.Allreduce(host, out, op=MPI.SUM)
        return self.device.put(out)

    def merge_rows(self, X_part: Array) -> Array:
        """Rows of which each is filled on one rank and zero on the others, whole on every rank.

        X_part   [k, f] float32; 4-byte elements are merged by bitwise OR, which is exact
        Ranks    all call; result identical on all (Allreduce)
        """
        if self.size == 1:
            return X_part
        host = np.ascontiguousarray(self._staged(X_part))
        out = np.empty_like(host)
        self._count("merge", host.nbytes)
        with Clock(self, "merge"):
            self.comm.Allreduce(host.view(np.uint32), out.view(np.uint32), op=MPI.BOR)
        return self.device.put(out)

    # ---- whole values -----------------------------------------------------------------------------------

    def broadcast(self, values: np.ndarray, root: int = 0) -> np.ndarray:
        """The root's host array on all ranks.

        values   of any shape, row-major; on other ranks than the root it is overwritten, and its shape and
                 dtype have to be those of the root's
        returns  values
        Ranks    all call (Bcast)
        """
        if self.size > 1:
            with Clock(self, "broadcast"):
                self.comm.Bcast(values, root=root)
            self._count("broadcast", values.nbytes if self.rank == root else 0)
        return values

    def first_number(self, number: float) -> float:
        """Rank 0's number on all ranks, of what a clock tells each of them otherwise. Ranks: all call."""
        return float(self.broadcast(np.array([number], dtype=np.float64))[0])

    def broadcast_text(self, text: str, root: int = 0) -> str:
        """The root's text on all ranks. Ranks: all call."""
        if self.size == 1:
            return text
        data = np.frombuffer(text.encode(), dtype=np.uint8) if self.rank == root else np.empty(0, np.uint8)
        length = self.broadcast(np.array([len(data)], dtype=np.int64), root)
        buffer = np.array(data) if self.rank == root else np.empty(int(length[0]), np.uint8)
        return self.broadcast(buffer, root).tobytes().decode()

    def broadcast_bytes(self, content: bytes, root: int = 0) -> bytes:
        """The bytes of one rank on all. Ranks: all call."""
        size = self.max_integer(len(content) if self.rank == root else 0)
        buffer = np.zeros(size, dtype=np.uint8)
        if self.rank == root:
            buffer[:] = np.frombuffer(content, dtype=np.uint8)
        return self.broadcast(buffer, root).tobytes() if size else b""

    def gather_texts(self, text: str) -> list[str]:
        """One text of each rank, on all ranks, in rank order. Ranks: all call."""
        data = np.frombuffer(text.encode(), dtype=np.uint8).copy()
        sizes = self.gather_integers(np.array([len(data)]))[:, 0].tolist()
        if self.size == 1:
            return [text]
        out = np.empty(sum(sizes), np.uint8)
        self._count("broadcast", data.nbytes * (self.size - 1))
        with Clock(self, "broadcast"):
            self.comm.Allgatherv([data, MPI.BYTE], [out, sizes, offsets(sizes), MPI.BYTE])
        ends = np.cumsum(sizes)
        return [out[e - s : e].tobytes().decode() for s, e in zip(sizes, ends)]

    def gather_integers(self, values: np.ndarray) -> np.ndarray:
        """[size, k] int64, row r from rank r's [k] host integers. Ranks: all call (Allgather)."""
        values = np.ascontiguousarray(values, dtype=np.int64)
        out = np.empty((self.size, *values.shape), dtype=np.int64)
        if self.size == 1:
            out[0] = values
            return out
        self._count("decide", values.nbytes * (self.size - 1))
        with Clock(self, "decide"):
            self.comm.Allgather(values, out)
        return out

    # ---- waiting ----------------------------------------------------------------------------------------

    def barrier(self) -> None:
        """Wait for all ranks."""
        with Clock(self, "barrier"):
            self.comm.Barrier()

    def rest(self, look: Callable[[], None] = lambda: None) -> None:
        """Wait for all ranks without taking a core from them: in naps, a small part of the time waited.

        In other calls a rank polls. Where there are more ranks than cores, or cores that two threads share,
        those that wait for long work of others slow it down. However long that takes, this rank is not stuck:
        those that work are watched themselves.
        look   called between naps
        """
        if self.size == 1:
            return
        with Clock(self, "rest"):
            begun, met = time.monotonic(), self.comm.Ibarrier()
            while not met.Test():
                beat()
                look()
                waited = time.monotonic() - begun
                if waited > POLLED_S:
                    time.sleep(min(waited * NAP_SHARE, LONGEST_NAP_S))
