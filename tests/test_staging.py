"""Device arrays on their way through page-locked memory, where copies end late: what must be waited for."""

import emulator
import numpy as np
import pytest
import standin
from mpi4py import MPI

from app.comm.group import Group
from app.cuda.staging import PinnedRing
from app.device import HostDevice

WORLD = MPI.COMM_WORLD
STALE = np.float32(-77)


class LateStream:
    """A stream whose copies are made when somebody waits for them, and not before."""

    def __init__(self):
        self._late = []

    def issue(self, copy):
        self._late.append(copy)

    def synchronize(self):
        late, self._late = self._late, []
        for copy in late:
            copy()

    def record(self):
        return self  # an event after all that was issued


class LateArray(standin.Array):
    """A device array whose copies to and from page-locked memory are a stream's."""

    def get(self, stream, out):
        held = self._host
        stream.issue(lambda: np.copyto(out, held))

    def set(self, values, stream):
        held = self._host
        stream.issue(lambda: np.copyto(held, values))


class LateDevice(emulator.CudaDevice):
    """The GPU device with late copies."""

    def __init__(self, ring=PinnedRing):
        super().__init__(emulator.make_cupy())
        self.stream = LateStream()
        self.ring = ring(self._pinned_bytes, self.stream)

    def put(self, host):
        return LateArray(np.array(host), standin.Memory())

    def stage_in(self, slot, host):
        X = LateArray(np.full(host.shape, STALE, host.dtype), standin.Memory())
        return self.ring.into(slot, host, X)

    def synchronize(self):
        self.stream.synchronize()
        standin.stream.synchronize()


class Forgetful(PinnedRing):
    """Writes into buffers that the device may still read."""

    def _wait(self, slot):
        pass


class Hasty(PinnedRing):
    """Hands buffers out before the device has filled them."""

    def out(self, slot, X):
        host = self.buffer(slot, X.shape, X.dtype)
        host[...] = STALE
        X.get(stream=self._stream, out=host)
        return host


def moves(device, direct=False):
    """Everything that a group moves by rows, several times over the same buffers, as host arrays."""
    group = Group(WORLD, device, direct)
    counts, ones = [4 + r for r in range(group.size)], [1] * group.size
    found = []
    for turn in range(3):
        own = np.arange(counts[group.rank] * 4, dtype=np.float32).reshape(-1, 4) + 100 * group.rank
        own += 1000 * turn
        X, one_each = device.put(own), device.put(own[: group.size].copy())
        mine = np.where(np.arange(4) == group.rank, own[:1], 0).astype(np.float32)
        found.append(group.gather_rows(X, counts))
        found.append(group.exchange_rows(one_each, ones, ones))
        stages = group.stage_rows(X, counts)
        found += [rows.copy() if direct else rows for _, rows in stages]  # theirs is used again
        found.append(group.merge_rows(device.put(mine)))
    device.synchronize()
    return [np.array(standin.host(each)) for each in found]


def same(device):
    """Whether a device moved on every rank what the host moves."""
    wanted, found = moves(HostDevice()), moves(device)
    right = len(wanted) == len(found) and all(map(np.array_equal, wanted, found))
    return WORLD.allreduce(right, op=MPI.MIN)


def test_late_copies_change_nothing():
    assert same(LateDevice())


@pytest.mark.parametrize(("ring", "ranks"), [(Forgetful, 3), (Hasty, 2)])
def test_that_is_so_because_somebody_waits(ring, ranks):
    """On fewer ranks nothing is staged, or no buffer is used again before the next wait for the device."""
    if WORLD.size >= ranks:
        assert not same(LateDevice(ring))


def test_device_memory_may_go_to_mpi_as_it_is():
    """MPI takes addresses, which the stand-in gives away only where nothing is pending."""
    for one, other in zip(moves(HostDevice()), moves(emulator.make_device(), direct=True), strict=True):
        assert np.array_equal(one, other)


def test_buffers_are_kept():
    ring = PinnedRing(bytearray_of, LateStream())
    first = ring.buffer("a", (4, 8), np.float32)
    assert np.shares_memory(first, ring.buffer("a", (2, 8), np.float32))
    assert not np.shares_memory(first, ring.buffer("b", (4, 8), np.float32))
    assert ring.buffer("a", (9, 8), np.int64).shape == (9, 8)


def bytearray_of(size):
    return np.frombuffer(bytearray(size), np.uint8)
