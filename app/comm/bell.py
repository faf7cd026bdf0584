"""Bell: by which ranks that rest tell rank 0, at work by itself, that they have heard something."""

import numpy as np
from mpi4py import MPI

from app.comm.group import Group

BELL = 7  # the tag of a Bell's messages: all else are collectives


class Bell:
    """By which ranks that rest tell rank 0, at work by itself, a number above 0: each of them once at most.

    heard   the largest of those that rank 0 has heard; 0: none
    """

    def __init__(self, group: Group) -> None:
        self.group, self.heard = group, 0
        self._sent: MPI.Request | None = None
        self._number = np.zeros(1, dtype=np.int64)
        self._received = 0

    def ring(self, number: int) -> None:
        """Tell rank 0. On any other rank."""
        if self._sent is None:
            self._number[0] = number
            self._sent = self.group.comm.Isend(self._number, dest=0, tag=BELL)

    def listen(self) -> int:
        """What has been heard by now. On rank 0."""
        while self.group.comm.Iprobe(tag=BELL):
            self._receive()
        return self.heard

    def close(self) -> None:
        """Nobody rings any more: what is still on its way arrives. Ranks: all call."""
        rung = int(self.group.sum_integers(np.array([self._sent is not None]))[0])
        while self.group.rank == 0 and self._received < rung:
            self._receive()
        if self._sent is not None:
            self._sent.Wait()

    def _receive(self) -> None:
        number = np.zeros(1, dtype=np.int64)
        self.group.comm.Recv(number, tag=BELL)
        self.heard, self._received = max(self.heard, int(number[0])), self._received + 1
