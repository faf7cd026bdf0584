"""Group: a communicator together with a device. Its methods are the only places where ranks talk."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from mpi4py import MPI

from app.errors import CaseError, NumericsError
from app.native.library import aligned
from app.watchdog import beat, wait_begins, wait_ends

Array = Any
HIGHEST_BIT = np.uint64(1 << 63)
POLLED_S, NAP_SHARE, LONGEST_NAP_S = 2e-4, 1 / 32, 2e-3  # of `rest`


def communicator(given: MPI.Comm | None) -> MPI.Comm:
    """The given one, or that of all ranks. Raises CaseError."""
    if given is None:
        return MPI.COMM_WORLD
    if not isinstance(given, MPI.Intracomm) or given == MPI.COMM_NULL:
        found = "MPI.COMM_NULL" if isinstance(given, MPI.Comm) and given == MPI.COMM_NULL else type(given)
        raise CaseError(f"comm: found {found}; a communicator of the ranks that call would be right")
    return given


class Group:
    """The ranks of one communicator and the device of this one.

    direct   True: MPI reads and writes device memory; False: device arrays are staged through the host.
             For host arrays there is no difference.
    `processor_s` are seconds of the processor spent in MPI calls, where ranks poll while they wait; None, and
    not counted, until somebody sets it to 0: reading that clock takes longer than a small message.
    `transport` says in words how device arrays travel, for the log.
    `stages_ahead` is how many broadcasts of `stage_rows` are under way while a stage is worked on: 1, or 0 to
    compare; it must agree on all ranks.
    `sent_bytes` and `seconds` count what this rank sent and how long it sat in MPI calls, by phase:
      gather      rows of all ranks to all ranks          exchange   to each rank the rows it needs
      stage       rows of one rank to all, one rank after the other: the seconds are those spent waiting,
                  not the work done while a broadcast is under way
      decide      small integers: keys, totals, counts    sum        addends of floating-point sums
      merge       rows that one rank each has filled      broadcast  whole values of one rank or of each
      barrier     nothing                             rest       nothing, by ranks that sleep
    Methods that move rows take another of these names as `phase` where the rows are part of something else.
    A row that several ranks receive counts once for each of them, whatever tree it takes. What a part of the
    ranks sends counts with the whole, under a prefix where it has one.
    """

    def __init__(
        self, comm: MPI.Comm, device: Any, direct: bool | None = None, reproducible: bool = True
    ) -> None:
        self.comm, self.device, self.reproducible = comm, device, reproducible
        self.rank, self.size = comm.Get_rank(), comm.Get_size()
        self.direct = device.direct if direct is None else direct
        self.transport = ""
        self.sent_bytes: dict[str, int] = {}
        self.seconds: dict[str, float] = {}
        self.processor_s: float | None = None
        self.stages_ahead = 1
        self.calls = 0
        self.prefix = ""
        self._parts: dict[tuple[int, str], Group] = {}
        self._alone: dict[str, Group] = {}
        self._scratch: dict[tuple[str, str], Array] = {}

    def part(self, groups: int, colour: int, prefix: str = "") -> "Group":
        """The ranks that call with the same colour, in order; counted here, under `prefix`.

        groups   how many they are: these colours make one communicator, however often they are asked for
        Ranks    all call (Split)
        """
        if (groups, prefix) not in self._parts:
            self._parts[groups, prefix] = self._counted(self.comm.Split(colour, self.rank), prefix)
        return self._parts[groups, prefix]

    def alone(self, prefix: str = "") -> "Group":
        """This rank by itself, counted here."""
        if prefix not in self._alone:
            self._alone[prefix] = self._counted(MPI.COMM_SELF, prefix)
        return self._alone[prefix]

    def _counted(self, comm: MPI.Comm, prefix: str) -> "Group":
        part = Group(comm, self.device, self.direct, self.reproducible)
        part.sent_bytes, part.seconds, part.prefix = self.sent_bytes, self.seconds, prefix
        part.transport = self.transport
        return part

    def first(self, count: int) -> "Group | None":
        """The group of the first `count` ranks; None on the others. Ranks: all call (Split)."""
        comm = self.comm.Split(0 if self.rank < count else MPI.UNDEFINED, self.rank)
        if comm == MPI.COMM_NULL:
            return None
        return Group(comm, self.device, self.direct, self.reproducible)

    # ---- moving rows ------------------------------------------------------------------------------------

    def gather_rows(
        self, X_own: Array, counts: list[int], out: Array | None = None, phase: str = "gather"
    ) -> Array:
        """Bring all rows of a device array to every rank, in rank order.

        X_own    [counts[rank], f]   row-major
        out      [sum(counts), f] device memory that may become the result, or None
        returns  [sum(counts), f]
        Ranks    all call; the result is the same on all (Allgatherv)
        """
        if self.size == 1:
            return X_own
        send = self._outgoing(X_own)
        receive = out if self.direct else self._receive_buffer(send, sum(counts))
        return self._incoming(self._gather(send, counts, receive, phase))

    def gather_host(self, part: np.ndarray, counts: list[int], phase: str = "gather") -> np.ndarray:
        """gather_rows for a host array, whatever the device. Ranks: all call."""
        if self.size == 1:
            return part
        return _typed(self._gather(_octets(part), counts, None, phase), part.dtype)

    def exchange_rows(
        self,
        send: Array,
        send_counts: list[int],
        recv_counts: list[int],
        out: Array | None = None,
        phase: str = "exchange",
    ) -> Array:
        """Send rows of a device array to each rank and receive the rows that each rank sends here.

        send      [sum(send_counts), f]   rows for rank 0, then for rank 1, ...
        out       [sum(recv_counts), f]   device memory that may become the result, or None
        returns   [sum(recv_counts), f]   rows from rank 0, then from rank 1, ...
        recv_counts[rank] may exceed send_counts[rank]: these rows are left unset, for the caller to fill.
        Ranks     all call (Alltoallv)
        """
        if self.size == 1:
            return send
        send = self._outgoing(send)
        receive = out if self.direct else self._receive_buffer(send, sum(recv_counts))
        return self._incoming(self._exchange(send, send_counts, recv_counts, receive, phase))

    def exchange_host(
        self, send: np.ndarray, send_counts: list[int], recv_counts: list[int], phase: str = "exchange"
    ) -> np.ndarray:
        """exchange_rows for a host array, whatever the device. Ranks: all call."""
        if self.size == 1:
            return send
        return _typed(self._exchange(_octets(send), send_counts, recv_counts, None, phase), send.dtype)

    def exchange_counts(self, counts: list[int]) -> list[int]:
        """counts[r] goes to rank r; returns what each rank sent here. Ranks: all call."""
        if self.size == 1:
            return counts
        ones = [1] * self.size
        return self._exchange(np.array(counts, dtype=np.int64), ones, ones, None, "exchange").tolist()

    def stage_rows(self, X_own: Array, counts: list[int]) -> Iterator[tuple[int, Array]]:
        """(rank, its rows) in ascending order of ranks, while the broadcast of the next rank is under way.

        X_own    [counts[rank], f]   row-major, on the device; yielded as it is in this rank's turn
        yields   rank, [counts[rank], f] device rows to read only, until the next turn; ranks without rows are
                 left out. Two receive buffers of the largest stage serve all turns and calls.
        Ranks    all call, and take every turn (Ibcast); two such loops must not be interleaved
        """
        if self.size == 1:
            if counts[0]:
                yield 0, X_own
            return
        send = self._outgoing(X_own, "stages")
        order = [rank for rank, count in enumerate(counts) if count]
        started: list[tuple[MPI.Request, Array]] = []
        for turn, rank in enumerate(order):
            for later in range(len(started), min(turn + 1 + self.stages_ahead, len(order))):
                started.append(self._start_stage(send, counts, order[later], later))
            request, rows = started[turn]
            with _Clock(self, "stage"):
                request.Wait()
            yield rank, X_own if rank == self.rank else self._incoming(rows, f"stage {turn % 2}")

    def _start_stage(self, send: Array, counts: list[int], rank: int, turn: int) -> tuple[MPI.Request, Array]:
        """Begin the broadcast of a rank's rows; what it will fill, or these rows themselves."""
        rows = send
        if rank != self.rank:
            slot, shape = f"stage {turn % 2}", (max(counts), *send.shape[1:])
            if self.direct:
                rows = self.scratch(slot, shape, send.dtype)[: counts[rank]]
                self.device.synchronize()  # a queued product may still read what this buffer held
            else:
                rows = self.device.stage_buffer(slot, shape, send.dtype)[: counts[rank]]
        self._count("stage", rows.nbytes * (self.size - 1) if rank == self.rank else 0)
        with _Clock(self, "stage"):
            return self.comm.Ibcast(rows, root=rank), rows

    def rows_in_turns(
        self, makes: list[Callable[[], Array]], send_counts: list[int] | None, recv_counts: list[int]
    ) -> Iterator[Array]:
        """What exchange_rows gives for some arrays one after the other, while the next one is under way.

        makes        the arrays to send, row-major, on the device; each is made just before it is sent, and
                     must stay as it is until the next but one is made
        send_counts  None: all rows go to all ranks, as by gather_rows
        yields       [sum(recv_counts), f] device rows, until the next turn; two receive buffers serve all
        Ranks        all call, and take every turn (Ialltoallv, Iallgatherv)
        """
        started: list[tuple[MPI.Request, Array]] = []
        for turn in range(len(makes)):
            for later in range(len(started), min(turn + 1 + self.stages_ahead, len(makes))):
                slot = f"turn {later % 2}"
                started.append(self._start_turn(makes[later](), send_counts, recv_counts, slot))
            request, rows = started[turn]
            with _Clock(self, "gather" if send_counts is None else "exchange"):
                request.Wait()
            yield self._incoming(rows, f"turn {turn % 2}")

    def _start_turn(
        self, X: Array, send_counts: list[int] | None, recv_counts: list[int], slot: str
    ) -> tuple[MPI.Request, Array]:
        """Begin to send an array; the request, and what it will fill."""
        send, shape = self._outgoing(X, f"{slot} sent"), (sum(recv_counts), *X.shape[1:])
        if self.direct:
            rows = self.scratch(slot, shape, X.dtype)  # the device is done with it: see _outgoing
        else:
            rows = self.device.stage_buffer(slot, shape, X.dtype)
        width, kind = _row_size(send), _mpi_type(send)
        into = [count * width for count in recv_counts]
        if send_counts is None:
            self._count("gather", send.nbytes * (self.size - 1))
            with _Clock(self, "gather"):
                return self.comm.Iallgatherv(send, [rows, into, _offsets(into), kind]), rows
        out, places = [count * width for count in send_counts], _offsets(into)
        into[self.rank] = out[self.rank]
        self._count("exchange", send.nbytes - out[self.rank] * send.itemsize)
        with _Clock(self, "exchange"):
            return self.comm.Ialltoallv([send, out, _offsets(out), kind], [rows, into, places, kind]), rows

    def _gather(self, send: Array, counts: list[int], receive: Array | None, phase: str) -> Array:
        width = _row_size(send)
        receive = self._empty_like(send, sum(counts)) if receive is None else receive
        sizes = [c * width for c in counts]
        self._count(phase, send.nbytes * (self.size - 1))
        with _Clock(self, phase):
            self.comm.Allgatherv(send, [receive, sizes, _offsets(sizes), _mpi_type(send)])
        return receive

    def _exchange(
        self,
        send: Array,
        send_counts: list[int],
        recv_counts: list[int],
        receive: Array | None,
        phase: str,
    ) -> Array:
        width, kind = _row_size(send), _mpi_type(send)
        receive = self._empty_like(send, sum(recv_counts)) if receive is None else receive
        out, into = [c * width for c in send_counts], [c * width for c in recv_counts]
        places = _offsets(into)
        into[self.rank] = out[self.rank]
        self._count(phase, send.nbytes - out[self.rank] * send.itemsize)
        with _Clock(self, phase):
            self.comm.Alltoallv([send, out, _offsets(out), kind], [receive, into, places, kind])
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
        self._count("decide", values.nbytes)
        with _Clock(self, "decide"):
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
        with _Clock(self, "decide"):
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
        """The root's host array on all ranks.

        values   of any shape, row-major; on other ranks than the root it is overwritten, and its shape and
                 dtype have to be those of the root's
        returns  values
        Ranks    all call (Bcast)
        """
        if self.size > 1:
            with _Clock(self, "broadcast"):
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
        with _Clock(self, "broadcast"):
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
        self._count("decide", values.nbytes * (self.size - 1))
        with _Clock(self, "decide"):
            self.comm.Allgather(values, out)
        return out

    def barrier(self) -> None:
        """Wait for all ranks."""
        with _Clock(self, "barrier"):
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
        with _Clock(self, "rest"):
            begun, met = time.monotonic(), self.comm.Ibarrier()
            while not met.Test():
                beat()
                look()
                waited = time.monotonic() - begun
                if waited > POLLED_S:
                    time.sleep(min(waited * NAP_SHARE, LONGEST_NAP_S))

    # ---- buffers and counters ---------------------------------------------------------------------------

    def scratch(self, slot: str, shape: tuple[int, ...], dtype: Any) -> Array:
        """An unset row-major device array, in memory that the next call with this slot gets too.

        The memory grows to the largest request and is kept: steady state allocates nothing.
        """
        return self._scratch_on(self.device.xp, slot, shape, dtype)

    def _scratch_on(self, xp: Any, slot: str, shape: tuple[int, ...], dtype: Any) -> Array:
        size, key = int(np.prod(shape)), (slot, np.dtype(dtype).char)
        held = self._scratch.get(key)
        if held is None or held.shape[0] < size:
            self._scratch.pop(key, None)  # the old memory may go before the new one comes
            held = None
            self._scratch[key] = held = (aligned if xp is np else xp.empty)((size,), dtype=dtype)
        return held[:size].reshape(shape)

    def _outgoing(self, X: Array, slot: str = "send") -> Array:
        """A row-major buffer that MPI may read now: device memory, or its copy on the host.

        slot   names the copy's memory, which the next call with it gets too
        """
        if not X.flags.c_contiguous:
            raise NumericsError("communication: the buffer must be row-major")
        if not self.direct:
            return self._staged(X, slot)
        self.device.synchronize()
        return X

    def _staged(self, X: Array, slot: str = "send") -> np.ndarray:
        """The host copy of a device array."""
        self.device.synchronize()
        return self.device.stage_out(slot, X)

    def _receive_buffer(self, send: np.ndarray, rows: int) -> np.ndarray:
        """Host memory for as many rows as those of `send`, on their way to the device."""
        return self.device.stage_buffer("receive", (rows, *send.shape[1:]), send.dtype)

    def _incoming(self, received: Array, slot: str = "receive") -> Array:
        """What MPI wrote, on the device."""
        return received if self.direct else self.device.stage_in(slot, received)

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
        phase = self.prefix + phase
        self.sent_bytes[phase] = self.sent_bytes.get(phase, 0) + int(nbytes)
        self.calls += 1


class _Clock:
    """Adds the time spent inside to group.seconds[phase]; the watchdog knows that this rank waits."""

    def __init__(self, group: Group, phase: str) -> None:
        self.group, self.phase = group, group.prefix + phase

    def __enter__(self) -> None:
        if self.group.processor_s is not None:
            self.group.processor_s -= time.process_time()
        wait_begins()
        self.start = time.perf_counter()

    def __exit__(self, *exc: object) -> None:
        wait_ends()
        if self.group.processor_s is not None:
            self.group.processor_s += time.process_time()
        seconds = self.group.seconds
        seconds[self.phase] = seconds.get(self.phase, 0.0) + time.perf_counter() - self.start


def _mpi_type(array: Array) -> MPI.Datatype:
    return MPI.Datatype.fromcode(array.dtype.char)


def _octets(array: np.ndarray) -> np.ndarray:
    """A host array row-major; texts of one length, which MPI has no type for, as bytes [k, length]."""
    array = np.ascontiguousarray(array)
    return array.view(np.uint8).reshape(-1, array.itemsize) if array.dtype.kind == "S" else array


def _typed(array: np.ndarray, kind: np.dtype) -> np.ndarray:
    """What `_octets` made of texts as texts again."""
    return array.reshape(-1).view(kind) if kind.kind == "S" else array


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
