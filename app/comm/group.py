"""Group: a communicator together with a device. Its methods are the only places where ranks talk.

Rows of device arrays travel by what is here, small and whole values by app/comm/values.py.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from mpi4py import MPI

from app.comm.traffic import Clock, mpi_type, octets, offsets, row_size, typed
from app.comm.values import Values
from app.errors import CaseError

Array = Any


def communicator(given: MPI.Comm | None) -> MPI.Comm:
    """The given one, or that of all ranks. Raises CaseError."""
    if given is None:
        return MPI.COMM_WORLD
    if not isinstance(given, MPI.Intracomm) or given == MPI.COMM_NULL:
        found = "MPI.COMM_NULL" if isinstance(given, MPI.Comm) and given == MPI.COMM_NULL else type(given)
        raise CaseError(f"comm: found {found}; a communicator of the ranks that call would be right")
    return given


class Group(Values):
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
        return typed(self._gather(octets(part), counts, None, phase), part.dtype)

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
        return typed(self._exchange(octets(send), send_counts, recv_counts, None, phase), send.dtype)

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
            with Clock(self, "stage"):
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
        with Clock(self, "stage"):
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
            with Clock(self, "gather" if send_counts is None else "exchange"):
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
        width, kind = row_size(send), mpi_type(send)
        into = [count * width for count in recv_counts]
        if send_counts is None:
            self._count("gather", send.nbytes * (self.size - 1))
            with Clock(self, "gather"):
                return self.comm.Iallgatherv(send, [rows, into, offsets(into), kind]), rows
        out, places = [count * width for count in send_counts], offsets(into)
        into[self.rank] = out[self.rank]
        self._count("exchange", send.nbytes - out[self.rank] * send.itemsize)
        with Clock(self, "exchange"):
            return self.comm.Ialltoallv([send, out, offsets(out), kind], [rows, into, places, kind]), rows

    def _gather(self, send: Array, counts: list[int], receive: Array | None, phase: str) -> Array:
        width = row_size(send)
        receive = self._empty_like(send, sum(counts)) if receive is None else receive
        sizes = [c * width for c in counts]
        self._count(phase, send.nbytes * (self.size - 1))
        with Clock(self, phase):
            self.comm.Allgatherv(send, [receive, sizes, offsets(sizes), mpi_type(send)])
        return receive

    def _exchange(
        self,
        send: Array,
        send_counts: list[int],
        recv_counts: list[int],
        receive: Array | None,
        phase: str,
    ) -> Array:
        width, kind = row_size(send), mpi_type(send)
        receive = self._empty_like(send, sum(recv_counts)) if receive is None else receive
        out, into = [c * width for c in send_counts], [c * width for c in recv_counts]
        places = offsets(into)
        into[self.rank] = out[self.rank]
        self._count(phase, send.nbytes - out[self.rank] * send.itemsize)
        with Clock(self, phase):
            self.comm.Alltoallv([send, out, offsets(out), kind], [receive, into, places, kind])
        return receive
