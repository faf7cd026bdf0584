"""Tiers: a plan carried out on real memory gives the bits of the same operations without a limit."""

import errno
import os
import tracemalloc
from random import Random

import numpy as np
import pytest
from standin_device import StandInDevice

from app.device import HostDevice
from app.errors import CaseError
from app.memory import tiers as tiers_module
from app.memory.arena import LINE, Arena, padded
from app.memory.operations import Epoch, Operation
from app.memory.plan import METHODS, make_plan
from app.memory.slow import DeviceCopies, HostCopies
from app.memory.tiers import TierBudget, Tiers

pytestmark = pytest.mark.mpi_skip


@pytest.fixture(params=["host", "stand-in"])
def device(request):
    return HostDevice() if request.param == "host" else StandInDevice()


# ---- an epoch of elementwise operations on flat arrays -----------------------------------------------------


def network(depth, counts):
    """Forward and backward through `depth` functions; counts: floats of each level's tensors.

    h_{i+1} = f(h_i) + the front of x;  d_i = g(h_i, d_{i+1});  the result w_i of each level sums both.
    """
    operations = []
    for i in range(depth):
        operations.append(Operation("up", str(i), (f"h{i}", "x"), (f"h{i + 1}",)))
    operations.append(Operation("turn", "", (f"h{depth}",), (f"d{depth}",)))
    for i in reversed(range(depth)):
        operations.append(Operation("down", str(i), (f"h{i}", f"d{i + 1}"), (f"d{i}",)))
        operations.append(Operation("change", str(i), (f"d{i}", f"h{i}"), (f"d{i}",), (f"h{i}",)))
    sizes = {"x": padded(4 * counts[0])}
    for i, count in enumerate(counts):
        sizes[f"h{i}"] = sizes[f"d{i}"] = padded(4 * count)
    return operations, sizes, ("d0",)


def compute(operation, arrays):
    """Any function of all that is read into all that is written, by pieces (no large temporary)."""
    ins = [arrays[name] for name in operation.reads]
    for name in operation.writes:
        out = arrays[name]
        step = 4096
        for lo in range(0, len(out), step):
            piece = np.zeros(len(out[lo : lo + step]), dtype=np.float32)
            for source in ins:
                part = source[lo : lo + len(piece)]
                piece[: len(part)] = piece[: len(part)] * np.float32(0.5) + part
            out[lo : lo + step] = piece


def values(count, seed):
    return np.random.default_rng(seed).standard_normal(count).astype(np.float32)


def unlimited(operations, sizes, results, given, epochs):
    """The results with an array of its own for every tensor."""
    arrays = {name: np.zeros(size // 4, dtype=np.float32) for name, size in sizes.items()}
    for name, array in given.items():
        arrays[name][: len(array)] = array
    for _ in range(epochs):
        for each in operations:
            compute(each, arrays)
    return {name: arrays[name] for name in results}


def limited(plan, device, slow, given, epochs=1, folder=""):
    """The results with two tiers, and the tiers after their use."""
    with Tiers(plan, device, TierBudget(plan.limit, slow, folder)) as tiers:
        for name, array in given.items():
            tiers.give(name, array)
        for _ in range(epochs):
            for at, each in enumerate(plan.epoch.operations):
                tiers.before(at)
                names = dict.fromkeys([*each.reads, *each.writes])
                held = {name: device.get(tiers.array(name)) for name in names}
                compute(each, held)
                for name in each.writes:
                    tiers.array(name)[...] = device.put(held[name])
                tiers.after(at)
            tiers.end()
        results = {name: tiers.result(name) for name in plan.epoch.names_of(plan.epoch.results)}
    return results, tiers


def given_to(counts):
    return {"x": values(counts[0], 1), "h0": values(counts[0], 2)}


# ---- bits, bytes and peaks ---------------------------------------------------------------------------------


@pytest.mark.parametrize("slow", ("file", "host"))
@pytest.mark.parametrize("method", METHODS)
def test_the_bits_and_the_bytes_are_those_planned(device, slow, method, tmp_path):
    counts = [900, 640, 333, 512, 200, 700]
    operations, sizes, results = network(5, counts)
    epoch = Epoch(operations, sizes, results)
    limit = max(epoch.least_bytes, int(0.55 * epoch.most_bytes))
    plan = make_plan(epoch, limit, method)
    found, tiers = limited(plan, device, slow, given_to(counts), epochs=3, folder=str(tmp_path))
    wanted = unlimited(operations, sizes, results, given_to(counts), 3)
    assert {n: a.tobytes() for n, a in found.items()} == {n: a.tobytes() for n, a in wanted.items()}
    first = sum(sizes[name] for name in plan.start)
    assert (tiers.loaded, tiers.stored) == (3 * plan.loaded_bytes + first, 3 * plan.stored_bytes)
    assert tiers.stored > 0 and tiers.arena.peak <= plan.peak_bytes <= limit < epoch.most_bytes
    assert list(tmp_path.iterdir()) == []


class Late:
    """Copies that are made at the last moment: when somebody waits for them."""

    def __init__(self, copies):
        self._copies = copies
        self.behind = self.ahead = 0

    def __getattr__(self, name):
        return getattr(self._copies, name)

    def load_ahead(self, fast, slow):
        self.ahead += 1
        return lambda: self._copies.load(fast, slow)

    def store_behind(self, slow, fast):
        self.behind += 1
        slow[...] = np.nan
        return lambda: self._copies.store(slow, fast)


@pytest.mark.parametrize("seed", range(10))
def test_nobody_takes_the_room_of_copies_that_are_under_way(device, seed, monkeypatch):
    """What is written behind stays where it is, as it is, until it is waited for."""
    draws = Random(seed)
    counts = [draws.randint(1, 60) * 16 for _ in range(9)]
    operations, sizes, results = network(8, counts)
    epoch = Epoch(operations, sizes, results)
    plan = make_plan(epoch, epoch.least_bytes + draws.randint(0, 3000))
    made = []
    for kind in ("HostCopies", "DeviceCopies"):
        real = getattr(tiers_module, kind)
        monkeypatch.setattr(tiers_module, kind, lambda *a, real=real: made.append(Late(real(*a))) or made[-1])
    found, tiers = limited(plan, device, "host", given_to(counts), epochs=2)
    wanted = unlimited(operations, sizes, results, given_to(counts), 2)
    assert found["d0"].tobytes() == wanted["d0"].tobytes()
    assert made[0].behind == 2 * sum(len(step.behind) for step in plan.steps) > 0
    assert tiers.stored == 2 * plan.stored_bytes


def test_an_epoch_under_two_fifths_of_its_bytes():
    """Measured by the allocator: all that is allocated beside the file stays below the limit."""
    counts = [120_000] * 9
    operations, sizes, results = network(8, counts)
    epoch, device = Epoch(operations, sizes, results), HostDevice()
    limit = int(0.4 * epoch.most_bytes)
    plan = make_plan(epoch, limit)
    given, wanted = given_to(counts), unlimited(operations, sizes, results, given_to(counts), 1)
    tracemalloc.start()
    with Tiers(plan, device, TierBudget(limit)) as tiers:
        for name, array in given.items():
            tiers.give(name, array)
        for at, each in enumerate(operations):
            tiers.before(at)
            compute(each, {name: tiers.array(name) for name in (*each.reads, *each.writes)})
            tiers.after(at)
        tiers.end()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert tiers.result("d0").tobytes() == wanted["d0"].tobytes()
    assert plan.ahead_bytes > 0 and plan.exact
    assert tiers.arena.peak <= limit and peak <= limit + 200_000


@pytest.mark.parametrize("seed", range(30))
def test_random_epochs(seed):
    """Tensors of many sizes: gaps have to be closed, and a tensor then lies elsewhere."""
    draws = Random(seed)
    counts = [draws.randint(1, 60) * 16 for _ in range(7)]
    operations, sizes, results = network(6, counts)
    epoch = Epoch(operations, sizes, results)
    plan = make_plan(epoch, epoch.least_bytes + draws.randint(0, 3000))
    found, tiers = limited(plan, HostDevice(), "host", given_to(counts), epochs=2)
    wanted = unlimited(operations, sizes, results, given_to(counts), 2)
    assert found["d0"].tobytes() == wanted["d0"].tobytes()
    assert tiers.arena.peak <= plan.limit


# ---- the arena and the file --------------------------------------------------------------------------------


def test_an_arena_takes_the_smallest_gap_and_closes_gaps():
    arena = Arena(10 * LINE)
    for name, lines in (("a", 3), ("b", 1), ("c", 2), ("d", 2)):
        assert arena.take(name, lines * LINE)
    arena.free("a")
    arena.free("c")
    assert arena.take("e", 2 * LINE) and arena.places["e"] == (4 * LINE, 2 * LINE)
    assert not arena.take("f", 4 * LINE)
    assert arena.close_gaps() == [
        (3 * LINE, 0, LINE),
        (4 * LINE, LINE, 2 * LINE),
        (6 * LINE, 3 * LINE, 2 * LINE),
    ]
    assert arena.take("f", 5 * LINE) and not arena.take("g", LINE)
    assert (arena.used, arena.peak) == (10 * LINE, 10 * LINE)


@pytest.mark.parametrize("shift", [16, 1000, 5000])
def test_tensors_move_to_the_front_without_a_second_buffer(device, shift):

    copies = HostCopies() if device.xp is np else DeviceCopies(device)
    whole = values(9000, 3)
    block = device.put(whole.copy())
    tracemalloc.start()
    copies.shift(block, shift + 500, 500, 3000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert device.get(block)[500:3500].tobytes() == whole[shift + 500 : shift + 3500].tobytes()
    assert device.xp is not np or peak < 4000
    copies.close()


def test_a_folder_that_cannot_hold_the_file(tmp_path):
    operations, sizes, results = network(3, [64] * 4)
    plan = make_plan(Epoch(operations, sizes, results), 4 * 256)
    with pytest.raises(CaseError, match=r"memory.folder '.*absent': no file of .* bytes"):
        Tiers(plan, HostDevice(), TierBudget(plan.limit, "file", str(tmp_path / "absent")))


def test_a_full_disk_is_an_error_and_not_a_signal(monkeypatch, tmp_path):
    def full(file, offset, size):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    epoch = Epoch([Operation("a", "", ("x",), ())], {"x": 64})
    with pytest.raises(CaseError, match="No space left"):
        Tiers(make_plan(epoch, 64), HostDevice(), TierBudget(64, "file", str(tmp_path)))
    assert not list(tmp_path.iterdir())


def test_sizes_that_are_not_whole_lines_are_refused():
    plan = make_plan(Epoch([Operation("a", "", ("x",), ())], {"x": 100}), 100)
    with pytest.raises(CaseError, match="'x' is not a multiple of 64"):
        Tiers(plan, HostDevice(), TierBudget(100))
