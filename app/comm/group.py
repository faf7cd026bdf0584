"""Group: a communicator together with a device. Its methods are the only places where ranks talk."""

import time
from typing import Any

import numpy as np
from mpi4py import MPI

from app.errors import NumericsError

Array = Any


class Group:
    """The ranks of one communicator and the device of this one.

    direct   True: MPI reads and writes device memory; False: device arrays are staged through the host.
             For host arrays there is no difference.
    `sent_bytes` and `seconds` count what this rank sent and how long it sat in collectives, by phase name.
    """

    def __init__(
        self, comm: MPI.Comm, device: Any, direct: bool | None = None, reproducible: bool = True
    ) -> None:
        self.comm, self.device, self.reproducible = comm, device, reproducible
        self.rank, self.size = comm.Get_rank(), comm.Get_size()
        self.direct = device.direct if direct is None else direct
        self.sent_bytes: dict[str, int] = {}
        self.seconds: dict[str, float] = {}
        self.calls = 0

    # ---- moving rows ------------------------------------------------------------------------------------

    def gather_rows(self, X_own: Array, counts: list[int]) -> Array:
        """Bring all rows of a device array to every rank, in rank order.

        X_own    [counts[rank], f]   row-major
        returns  [sum(counts), f]
        Ranks    all call; the result is the same on all (Allgatherv)
        """
        if self.size == 1:
            return X_own
        return self._incoming(self._gather(self._outgoing(X_own), counts))

    def gather_host(self, part: np.ndarray, counts: list[int]) -> np.ndarray:
        """gather_rows for a host array, whatever the device. Ranks: all call."""
        return part if self.size == 1 else self._gather(np.ascontiguousarray(part), counts)

    def exchange_rows(self, send: Array, send_counts: list[int], recv_counts: list[int]) -> Array:
        """Send rows of a device array to each rank and receive the rows that each rank sends here.

        send      [sum(send_counts), f]   rows for rank 0, then for rank 1, ...
        returns   [sum(recv_counts), f]   rows from rank 0, then from rank 1, ...
        Ranks     all call (Alltoallv)
        """
        if self.size == 1:
            return send
        return self._incoming(self._exchange(self._outgoing(send), send_counts, recv_counts))

    def exchange_host(self, send: np.ndarray, send_counts: list[int], recv_counts: list[int]) -> np.ndarray:
        """exchange_rows for a host array, whatever the device. Ranks: all call."""
        if self.size == 1:
            return send
        return self._exchange(np.ascontiguousarray(send), send_counts, recv_counts)

    def exchange_counts(self, counts: list[int]) -> list[int]:
        """counts[r] goes to rank r; returns what each rank sent here. Ranks: all call."""
        if self.size == 1:
            return counts
        ones = [1] * self.size
        return self._exchange(np.array(counts, dtype=np.int64), ones, ones).tolist()

    def _gather(self, send: Array, counts: list[int]) -> Array:
        width = _row_size(send)
        receive = self._empty_like(send, sum(counts))
        sizes = [c * width for c in counts]
        self._count("gather", send.nbytes * (self.size - 1))
        with _Clock(self, "gather"):
            self.comm.Allgatherv(send, [receive, sizes, _offsets(sizes), _mpi_type(send)])
        return receive

    def _exchange(self, send: Array, send_counts: list[int], recv_counts: list[int]) -> Array:
        width, kind = _row_size(send), _mpi_type(send)
        receive = self._empty_like(send, sum(recv_counts))
        out, into = [c * width for c in send_counts], [c * width for c in recv_counts]
        self._count("exchange", send.nbytes - out[self.rank] * send.itemsize)
        with _Clock(self, "exchange"):
            self.comm.Alltoallv([send, out, _offsets(out), kind], [receive, into, _offsets(into), kind])
        return receive

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
        self._count("integers", values.nbytes)
        with _Clock(self, "decide"):
            self.comm.Allreduce(values, out, op=MPI.SUM)
        return out

    def max_integers(self, values: np.ndarray) -> np.ndarray:
        """Element-wise maximum over ranks of host integers (int64 or uint64).

        Ranks    all call; result identical on all (Allreduce)
        """
        if self.size == 1:
            return values
        values = np.ascontiguousarray(values)
        out = np.empty_like(values)
        self._count("decide", values.nbytes)
        with _Clock(self, "decide"):
            self.comm.Allreduce(values, out, op=MPI.MAX)
        return out

    def max_integer(self, value: int) -> int:
        """The largest of one integer per rank. Ranks: all call."""
        return int(self.max_integers(np.array([value], dtype=np.int64))[0])

    def sum_floats(self, X: Array) -> Array:
        """Plain all-reduce of floats: only with reproducible = false, since its bits depend on the ranks."""
        if self.size == 1:
            return X
        host = self._staged(X)
        out = np.empty_like(host)
        self._count("sum", host.nbytes)
        with _Clock(self, "sum"):
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
        with _Clock(self, "merge"):
            self.comm.Allreduce(host.view(np.uint32), out.view(np.uint32), op=MPI.BOR)
        return self.device.put(out)

    # ---- whole values -----------------------------------------------------------------------------------

    def broadcast(self, values: np.ndarray, root: int = 0) -> np.ndarray:
        """The root's host array on all ranks; shape and dtype must agree. Ranks: all call (Bcast)."""
        if self.size > 1:
            with _Clock(self, "broadcast"):
                self.comm.Bcast(values, root=root)
            self._count("broadcast", values.nbytes if self.rank == root else 0)
        return values

    def broadcast_text(self, text: str, root: int = 0) -> str:
        """The root's text on all ranks. Ranks: all call."""
        if self.size == 1:
            return text
        data = np.frombuffer(text.encode(), dtype=np.uint8) if self.rank == root else np.empty(0, np.uint8)
        length = self.broadcast(np.array([len(data)], dtype=np.int64), root)
        buffer = np.array(data) if self.rank == root else np.empty(int(length[0]), np.uint8)
        return self.broadcast(buffer, root).tobytes().decode()

    def gather_texts(self, text: str) -> list[str]:
        """One text of each rank, on all ranks, in rank order. Ranks: all call."""
        data = np.frombuffer(text.encode(), dtype=np.uint8).copy()
        sizes = self.gather_integers(np.array([len(data)]))[:, 0].tolist()
        if self.size == 1:
            return [text]
        out = np.empty(sum(sizes), np.uint8)
        self.comm.Allgatherv([data, MPI.BYTE], [out, sizes, _offsets(sizes), MPI.BYTE])
        ends = np.cumsum(sizes)
        return [out[e - s : e].tobytes().decode() for s, e in zip(sizes, ends)]

    def gather_integers(self, values: np.ndarray) -> np.ndarray:
        """[size, k] int64, row r from rank r's [k] host integers. Ranks: all call (Allgather)."""
        values = np.ascontiguousarray(values, dtype=np.int64)
        out = np.empty((self.size, *values.shape), dtype=np.int64)
        if self.size == 1:
            out[0] = values
            return out
        self._count("integers", values.nbytes * (self.size - 1))
        with _Clock(self, "decide"):
            self.comm.Allgather(values, out)
        return out

    def barrier(self) -> None:
        """Wait for all ranks."""
        self.comm.Barrier()

    # ---- buffers and counters ---------------------------------------------------------------------------

    def _outgoing(self, X: Array) -> Array:
        """A row-major buffer that MPI may read now: device memory, or its copy on the host."""
        if not X.flags.c_contiguous:
            raise NumericsError("communication: the buffer must be row-major")
        if not self.direct:
            return self._staged(X)
        self.device.synchronize()
        return X

    def _staged(self, X: Array) -> np.ndarray:
        """The host copy of a device array."""
        self.device.synchronize()
        return self.device.get(X)

    def _incoming(self, received: Array) -> Array:
        """What MPI wrote, on the device."""
        return received if self.direct else self.device.put(received)

    def _empty_like(self, send: Array, rows: int) -> Array:
        """A receive buffer where `send` lives."""
        shape = (rows, *send.shape[1:])
        if isinstance(send, np.ndarray):
            return np.empty(shape, dtype=send.dtype)
        receive = self.device.xp.empty(shape, dtype=send.dtype)
        # A memory pool may hand out what a queued kernel still reads or writes.
        self.device.synchronize()
        return receive

    def _count(self, phase: str, nbytes: int) -> None:
        self.sent_bytes[phase] = self.sent_bytes.get(phase, 0) + int(nbytes)
        self.calls += 1


class _Clock:
    """Adds the time spent inside to group.seconds[phase]."""

    def __init__(self, group: Group, phase: str) -> None:
        self.group, self.phase = group, phase

    def __enter__(self) -> None:
        self.start = time.perf_counter()

    def __exit__(self, *exc: object) -> None:
        seconds = self.group.seconds
        seconds[self.phase] = seconds.get(self.phase, 0.0) + time.perf_counter() - self.start


def _mpi_type(array: Array) -> MPI.Datatype:
    return MPI.Datatype.fromcode(array.dtype.char)


def _row_size(X: Array) -> int:
    """Elements in one row."""
    width = 1
    for extent in X.shape[1:]:
        width *= extent
    return width


def _offsets(sizes: list[int]) -> list[int]:
    out = [0]
    for size in sizes[:-1]:
        out.append(out[-1] + size)
    return out
