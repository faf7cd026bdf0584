"""Groups of ranks: what collectives bring where, sums that keep their order, and failing together."""

import errno
import os
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import standin
from helpers import by_one
from hypothesis import given
from hypothesis import strategies as st
from jobs import mpirun, run_job
from mpi4py import MPI
from standin_device import StandInDevice

from app.comm import ordered, transport
from app.comm.group import Group
from app.comm.guard import check_replicas, check_same, digest, raise_together
from app.comm.ordered import sum_blocks
from app.comm.transport import choose_transport
from app.device import HostDevice, open_gpu
from app.errors import CaseError, DiskFull, GraphError, NumericsError, OtherRankFailed, OutOfMemory

WORLD = MPI.COMM_WORLD
SHAPES = [(), (1,), (3,), (2, 5)]
DTYPES = [np.float32, np.int64, np.uint8]


def on_every_rank(value):
    """The values of all ranks, by pickle: a reference that shares nothing with Group."""
    return WORLD.allgather(value)


def shares(kind, size):
    """Rows of each rank: some without, one with all, or all with a few."""
    if kind == "last has all":
        return [0] * (size - 1) + [7]
    if kind == "none":
        return [0] * size
    return [(3 * r + 2) % 5 for r in range(size)]


def numbered(rows, shape, dtype):
    """[rows, *shape], every element another one (modulo 251)."""
    size = rows * int(np.prod(shape))
    return (np.arange(size) % 251).reshape(rows, *shape).astype(dtype)


def own_part(X_all, counts, rank):
    first = sum(counts[:rank])
    return X_all[first : first + counts[rank]]


# ---- moving rows ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["mixed", "last has all", "none"])
def test_gather(group, device, shape, dtype, kind):
    counts = shares(kind, group.size)
    X_all = numbered(sum(counts), shape, dtype)
    X_own = own_part(X_all, counts, group.rank)
    for gathered in (
        device.get(group.gather_rows(device.put(X_own), counts)),
        group.gather_host(X_own, counts),
    ):
        assert gathered.dtype == dtype
        assert np.array_equal(gathered, X_all)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_exchange(group, device, shape, dtype):
    size, rank = group.size, group.rank
    sends = [[(r + 2 * s) % 3 for s in range(size)] for r in range(size)]  # rows from r to s
    rows = [numbered(sum(sends[r]), shape, dtype) + np.array(r, dtype) for r in range(size)]
    into = [sends[r][rank] for r in range(size)]
    assert group.exchange_counts(sends[rank]) == into
    wanted = np.concatenate([own_part(rows[r], sends[r], rank) for r in range(size)])
    on_device = group.exchange_rows(device.put(rows[rank]), sends[rank], into)
    for received in (device.get(on_device), group.exchange_host(rows[rank], sends[rank], into)):
        assert received.dtype == dtype
        assert np.array_equal(received, wanted)


def test_results_go_where_the_caller_wants_them(group, device):
    """Memory that is offered is used where MPI writes device memory; own rows that are not sent stay free."""
    if group.size == 1:
        return
    X_own, counts = device.put(np.full((3, 2), group.rank, np.float32)), [3] * group.size
    out = device.put(np.zeros((3 * group.size, 2), np.float32))
    gathered = group.gather_rows(X_own, counts, out)
    assert (gathered is out) == group.direct
    assert device.get(gathered)[::3, 0].tolist() == list(range(group.size))
    sent = device.put(np.full((group.size - 1, 2), group.rank, np.float32))
    one_each = [int(rank != group.rank) for rank in range(group.size)]
    received = group.exchange_rows(sent, one_each, [1] * group.size, out[: group.size])
    received[group.rank] = -1
    wanted = [-1 if rank == group.rank else rank for rank in range(group.size)]
    assert device.get(received)[:, 1].tolist() == wanted


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", ["mixed", "last has all", "none"])
def test_stages(group, device, shape, kind):
    counts = shares(kind, group.size)
    X_all = numbered(sum(counts), shape, np.float32)
    X_own = device.put(own_part(X_all, counts, group.rank))
    for _ in range(2):
        before, turns = group.calls, []
        for rank, rows in group.stage_rows(X_own, counts):
            turns.append(rank)
            assert np.array_equal(device.get(rows), own_part(X_all, counts, rank))
            assert (rows is X_own) == (rank == group.rank)
            # The broadcast of the next stage has begun.
            last = len([c for c in counts if c])
            assert group.calls - before == (0 if group.size == 1 else min(len(turns) + 1, last))
        assert turns == [rank for rank, count in enumerate(counts) if count]


@pytest.mark.skipif(MPI.COMM_WORLD.size == 1, reason="one rank has nobody to tell")
@pytest.mark.parametrize("size", [1, 40])
def test_a_reference_of_one_process_that_tells_the_others_something_is_noticed(size):
    world, note = MPI.COMM_WORLD, np.arange(size)
    if size > 1 and world.size > 3:
        pytest.skip("of four ranks the last hears by another one, which has noticed, what comes next alone")
    if world.rank == 0:
        assert by_one(lambda: world.Bcast(note) or "done") == "done"
    else:
        with pytest.raises(AssertionError, match="has told the ranks' group something"):
            by_one(None)
        world.Bcast(np.zeros(1, dtype=np.int64))  # the mark, which is still under way
    assert by_one(lambda: world.rank) == 0


def test_stages_take_two_buffers():
    group = Group(WORLD, HostDevice())
    counts = [5] * group.size
    X_own = np.full((5, 3), group.rank, np.float32)
    places = [
        [
            rows.__array_interface__["data"][0]
            for rank, rows in group.stage_rows(X_own, counts)
            if rank != group.rank
        ]
        for _ in range(3)
    ]
    assert places[0] == places[1] == places[2]
    assert len(set(places[0])) <= 2


def test_scratch_memory_is_kept_and_grows(group, device):
    first = group.scratch("a", (4, 3), np.float32)
    assert first.shape == (4, 3)
    first.fill(7)
    assert (device.get(group.scratch("a", (2, 6), np.float32)) == 7).all()
    assert (device.get(group.scratch("a", (3,), np.float32)) == 7).all()
    group.scratch("b", (4, 3), np.float32).fill(1)
    group.scratch("a", (4, 3), np.int32).fill(1)
    assert (device.get(first) == 7).all()
    assert group.scratch("a", (40, 3), np.float32).shape == (40, 3)
    assert group.scratch("a", (0, 3), np.float32).shape == (0, 3)


def test_a_rank_that_rests_is_not_taken_for_stuck(monkeypatch):
    """Others may work for longer than the watchdog waits, and are watched themselves."""
    group, beats = Group(WORLD, HostDevice()), []
    monkeypatch.setattr("app.comm.values.beat", lambda: beats.append(1))
    if WORLD.rank == 0:
        time.sleep(0.2)
    group.rest()
    assert len(beats) > 3 or WORLD.rank == 0


def test_buffers_must_be_row_major(group, device):
    X = device.put(np.zeros((4, 3), np.float32)).T
    if group.size > 1:
        with pytest.raises(NumericsError, match="row-major"):
            group.gather_rows(X, [3] * group.size)
        with pytest.raises(NumericsError, match="row-major"):
            group.exchange_rows(X, [3] + [0] * (group.size - 1), [3] * group.size)


def test_host_buffers_are_made_row_major(group):
    X = numbered(5, (3,), np.float32)
    counts = [5] * group.size
    gathered = group.gather_host(np.asfortranarray(X), counts)
    assert np.array_equal(gathered, np.concatenate([X] * group.size))
    strided = group.gather_host(np.concatenate([X, X], axis=1)[:, ::2][:, :3], [5] * group.size)
    assert np.array_equal(strided[:5], np.concatenate([X, X], axis=1)[:, ::2][:, :3])


@pytest.mark.parametrize("direct", [False, True])
def test_device_memory_and_mpi(direct):
    """Staged: one copy down and one up for each collective. Direct: MPI gets the memory itself."""
    device = StandInDevice(direct)
    group = Group(WORLD, device)
    counts = [group.size] * group.size
    X_own = device.put(numbered(group.size, (3,), np.float32) + np.float32(group.rank))
    standin.crossings.reset()
    gathered = group.gather_rows(X_own * 2, counts)
    exchanged = group.exchange_rows(X_own * 2, [1] * group.size, [1] * group.size)
    staged = 2 if group.size > 1 and not direct else 0
    assert (standin.crossings.count, standin.crossings.puts) == (staged, staged)
    standin.crossings.reset()
    stages = [standin.host(rows).copy() for _, rows in group.stage_rows(X_own * 2, counts)]
    down, up = (1, group.size - 1) if staged else (0, 0)
    assert (standin.crossings.count, standin.crossings.puts) == (down, up)
    parts = on_every_rank(2 * standin.host(X_own))
    assert all(np.array_equal(*pair) for pair in zip(stages, parts))
    assert np.array_equal(standin.host(gathered), np.concatenate(parts))
    assert np.array_equal(standin.host(exchanged), np.stack([part[group.rank] for part in parts]))


def test_sent_bytes(group, device):
    X = device.put(np.zeros((4, 2), np.float32))
    group.gather_rows(X, [4] * group.size)
    group.exchange_rows(X, [4] + [0] * (group.size - 1), [4 if group.rank == 0 else 0] * group.size)
    alone = group.size == 1
    assert group.sent_bytes.get("gather", 0) == 32 * (group.size - 1)
    assert group.sent_bytes.get("exchange", 0) == (0 if alone or group.rank == 0 else 32)
    assert group.calls == (0 if alone else 2)
    for _ in group.stage_rows(X, [4] * group.size):
        pass
    assert group.sent_bytes.get("stage", 0) == 32 * (group.size - 1)
    assert set(group.seconds) == set(group.sent_bytes)


def test_rows_that_are_part_of_something_else(group, device):
    X = device.put(np.zeros((group.size, 2), np.float32))
    group.gather_rows(X, [group.size] * group.size, phase="sum")
    group.exchange_rows(X, [1] * group.size, [1] * group.size, phase="sum")
    assert set(group.sent_bytes) == set(group.seconds) == (set() if group.size == 1 else {"sum"})
    assert group.sent_bytes.get("sum", 0) == 8 * (group.size + 1) * (group.size - 1)


# ---- exact reductions and whole values --------------------------------------------------------------------


def test_integers(group):
    mine = np.array([group.rank + 1, -group.rank, 1 << 60], dtype=np.int64)
    everyone = np.stack(on_every_rank(mine))
    assert np.array_equal(group.sum_integers(mine), everyone.sum(axis=0))
    assert np.array_equal(group.max_integers(mine), everyone.max(axis=0))
    assert np.array_equal(group.gather_integers(mine), everyone)
    assert group.max_integer((group.rank * 7) % 5) == max(on_every_rank((group.rank * 7) % 5))


def test_the_largest_of_keys_with_the_highest_bit(group, monkeypatch):
    """MPI is given integers with a sign: Open MPI 4.1 takes the highest bit of MPI_UNSIGNED_LONG for one."""
    given = []
    plain = group.comm

    class Watched:
        def Allreduce(self, send, receive, op):
            given.append(send.dtype)
            plain.Allreduce(send, receive, op=op)

    keys = np.random.default_rng(3).integers(0, 2**64, (group.size, 40), dtype=np.uint64)
    keys[:, 0], keys[:, 1] = np.uint64(0), np.uint64(2**64 - 1)
    keys[:, 2] = np.uint64(2**63) - np.arange(group.size, dtype=np.uint64)
    monkeypatch.setattr(group, "comm", Watched())
    found = group.max_integers(keys[group.rank])
    assert found.dtype == np.uint64 and np.array_equal(found, keys.max(axis=0))
    assert given == [np.int64] * (group.size > 1)


def test_the_largest_key_may_use_all_64_bits(group):
    keys = np.array([(1 << 63) + group.rank, group.rank], dtype=np.uint64)
    largest = group.max_integers(keys)
    assert largest.dtype == np.uint64
    assert largest.tolist() == [(1 << 63) + group.size - 1, group.size - 1]


def test_merged_rows_keep_their_bits(group, device):
    rows = np.array([[1.5, -0.0], [np.nan, 1e-42], [-np.inf, 3.0], [0.1, 0.2], [0.0, 7.0]], np.float32)
    mine = np.where(np.arange(5)[:, None] % group.size == group.rank, rows, np.float32(0))
    merged = device.get(group.merge_rows(device.put(mine)))
    assert merged.tobytes() == rows.tobytes()


def test_plain_sums(device):
    group = Group(WORLD, device, reproducible=False)
    X = numbered(4, (3,), np.float32) + np.float32(group.rank)
    total = device.get(group.sum_floats(device.put(X)))
    assert np.allclose(total, np.sum(on_every_rank(X), axis=0))
    part = numbered(group.rank, (3,), np.float32)  # rank 0 brings none
    total = device.get(sum_blocks(group, device.put(part), list(range(group.size))))
    assert np.allclose(total, sum(p.sum(axis=0) for p in on_every_rank(part)))


@pytest.mark.parametrize("from_last", [False, True])
def test_broadcast(group, from_last):
    root = group.size - 1 if from_last else 0
    values = np.arange(6.0).reshape(2, 3) * (group.rank + 1)
    assert np.array_equal(group.broadcast(values, root), np.arange(6.0).reshape(2, 3) * (root + 1))
    for text in ("", "a", "Erdős\n–Rényi" * 100):
        assert group.broadcast_text(text if group.rank == root else "unheard", root) == text


def test_texts_of_all_ranks(group):
    mine = "é" * (group.rank % 3) + str(group.rank) * (group.rank != 1)
    assert group.gather_texts(mine) == on_every_rank(mine)
    assert group.gather_texts("") == [""] * group.size


def test_one_rank_alone(solo, device):
    X = device.put(numbered(3, (2,), np.float32))
    assert solo.gather_rows(X, [3]) is X
    assert solo.gather_texts("x") == ["x"]
    assert solo.gather_integers(np.array([4])).tolist() == [[4]]
    assert solo.exchange_counts([3]) == [3]


@given(st.integers(0, 2**60))
def test_all_ranks_draw_the_same_examples(value):
    assert set(on_every_rank(value)) == {value}


# ---- sums in block order ----------------------------------------------------------------------------------


def chain(addends):
    """The float32 sum from the left."""
    total = np.zeros(addends.shape[1], np.float32)
    for row in addends:
        total = total + row
    return total


def dealt(blocks, size, kind):
    """How many blocks each rank owns."""
    if kind == "last has all":
        return [0] * (size - 1) + [blocks]
    if kind == "first has one":
        return [blocks] if size == 1 else [1] + [0] * (size - 2) + [blocks - 1]
    return np.diff(np.arange(size + 1) * blocks // size).tolist()


@pytest.mark.parametrize("limit", [1 << 20, 0], ids=["gathered", "by slices"])
@pytest.mark.parametrize("kind", ["equal", "last has all", "first has one"])
@pytest.mark.parametrize(("blocks", "width"), [(13, 5), (2, 1), (40, 8), (1, 3)])
def test_block_sums_are_one_chain(group, solo, device, monkeypatch, limit, kind, blocks, width):
    monkeypatch.setattr(ordered, "GATHER_BYTES", limit)
    draws = np.random.default_rng(blocks)
    part = draws.standard_normal((blocks, width)) * 10.0 ** draws.integers(-4, 5, (blocks, width))
    part = part.astype(np.float32)
    counts = dealt(blocks, group.size, kind)
    whole = device.get(sum_blocks(group, device.put(own_part(part, counts, group.rank)), counts))
    assert whole.shape == (width,)
    assert whole.tobytes() == chain(part).tobytes()
    assert whole.tobytes() == device.get(sum_blocks(solo, device.put(part), [blocks])).tobytes()


@pytest.mark.parametrize("limit", [1 << 20, 0], ids=["gathered", "by slices"])
@pytest.mark.parametrize(
    ("addends", "total"), [([1e8, 1, -1e8], 0), ([1e8, -1e8, 1], 1), ([1, 1e8, -1e8], 0)]
)
def test_the_order_of_blocks_decides(group, device, monkeypatch, limit, addends, total):
    monkeypatch.setattr(ordered, "GATHER_BYTES", limit)
    part = np.array(addends, np.float32)[:, None]
    counts = dealt(3, group.size, "equal")
    whole = sum_blocks(group, device.put(own_part(part, counts, group.rank)), counts)
    assert device.get(whole).tolist() == [total]


def test_slices_travel_beyond_the_limit(group, device, monkeypatch):
    """The two ways are told apart by what they send, or the test above may test one of them twice."""
    part, counts = device.put(np.ones((4, 8), np.float32)), [4] * group.size
    sum_blocks(group, part, counts)
    assert group.calls == (group.size > 1)
    monkeypatch.setattr(ordered, "GATHER_BYTES", 0)
    sum_blocks(group, part, counts)
    assert group.calls == 3 * (group.size > 1)


# ---- failing together -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [CaseError, GraphError, NumericsError])
def test_an_error_of_one_rank_is_raised_on_all(group, kind):
    for culprit in range(group.size):
        with pytest.raises(kind) as caught, raise_together(group, "reading"):
            if group.rank == culprit:
                raise kind(f"row {culprit} is wrong: é")
        assert str(caught.value) == f"row {culprit} is wrong: é"
        assert len(set(on_every_rank(type(caught.value).__name__))) == 1


def test_an_unexpected_error_ends_all_ranks_too(group, capsys):
    culprit = group.size - 1
    with pytest.raises((ZeroDivisionError, OtherRankFailed)) as caught, raise_together(group, "dividing"):
        if group.rank == culprit:
            1 / 0  # noqa: B018
    printed = capsys.readouterr().err
    if group.size == 1:
        assert isinstance(caught.value, ZeroDivisionError)
    else:
        assert str(caught.value) == f"dividing: rank {culprit}: division by zero"
        assert ("ZeroDivisionError" in printed) == (group.rank == culprit)


def test_of_several_errors_the_lowest_ranks_is_raised(group):
    first = min(1, group.size - 1)
    with pytest.raises(CaseError, match=f"^from {first}$"), raise_together(group, "reading"):
        if group.rank >= first:
            raise CaseError(f"from {group.rank}")


def test_an_error_without_words(group):
    with pytest.raises((KeyError, OtherRankFailed)), raise_together(group, "looking up"):
        if group.rank == 0:
            raise KeyError


def test_no_error(group):
    with raise_together(group, "nothing"):
        value = group.rank
    assert group.max_integer(value) == group.size - 1


def test_equal_replicas_pass(group):
    check_same(group, "a" * 1000, "weights")


def test_ranks_that_differ_are_named(group):
    if group.size == 1:
        return
    last = group.size - 1
    with pytest.raises(NumericsError) as caught:
        check_same(group, "b" if group.rank == last else "a", "weights")
    assert str(caught.value) == f"weights: rank {last} has b, rank 0 has a"
    with pytest.raises(CaseError, match=", ".join(map(str, range(1, group.size)))):
        check_same(group, "a" if group.rank == 0 else "b", "weights", CaseError)


def test_out_of_memory_on_one_rank(group):
    with pytest.raises((MemoryError, OutOfMemory)) as caught, raise_together(group, "reading"):
        if group.rank == group.size - 1:
            np.empty(1 << 57)
    assert "Unable to allocate" in str(caught.value)
    assert isinstance(caught.value, OutOfMemory) == (group.size > 1)


def test_a_full_disk_on_one_rank(group, capfd):
    """Said on all ranks by one line that names the file, without a traceback; other errors keep theirs."""
    said = r"^out/a\.npz cannot be written: No space left on device$"
    with pytest.raises(DiskFull, match=said), raise_together(group, "writing"):
        if group.rank == group.size - 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "out/a.npz")
    assert "Traceback" not in capfd.readouterr().err
    kind = OSError if group.size == 1 else OtherRankFailed
    with pytest.raises(kind, match="Input/output error"), raise_together(group, "writing"):
        if group.rank == group.size - 1:
            raise OSError(errno.EIO, os.strerror(errno.EIO), "out/a.npz")


def test_arrays_and_ranks_that_differ_are_named(group):
    arrays = {"W": np.arange(6, dtype=np.float32), "b": np.zeros(3), "m": np.zeros(0)}
    check_replicas(group, arrays, "the weights")
    if group.size == 1:
        return
    last = group.size - 1
    if group.rank == last:
        arrays["W"][-1:] = np.nextafter(arrays["W"][-1], 9)
        arrays["b"] = -arrays["b"]  # equal numbers of other bits
    with pytest.raises(NumericsError) as caught:
        check_replicas(group, arrays, "the weights")
    assert str(caught.value).startswith(f"the weights: rank {last} differs from rank 0 in W, b; ")
    if group.size > 2:  # the many are right, not rank 0
        with pytest.raises(NumericsError, match=r"rank 0 differs from rank 1 in b;"):
            check_replicas(group, {"W": np.zeros(1), "b": np.array([float(group.rank == 0)])}, "the weights")


def test_digest():
    a, b = np.arange(6, dtype=np.float32), np.arange(3)
    same = digest({"a": a, "b": b})
    assert digest({"b": b, "a": a}) == same
    assert digest({"a": np.arange(12, dtype=np.float32)[::2] / 2, "b": b}) == same
    others = [
        {"a": b, "b": a}, {"a": a.reshape(2, 3), "b": b}, {"a": a.astype(np.float64), "b": b}, {"a": a},
        {"a": -a, "b": b}, {"a": a, "c": b}, {"a": a.view(np.int32), "b": b},
    ]  # fmt: skip
    assert len({same, *map(digest, others)}) == len(others) + 1


CRASH = """
import time
from mpi4py import MPI
from app.comm.guard import abort_on_uncaught
abort_on_uncaught()
if MPI.COMM_WORLD.Get_rank() == 1:
    raise RuntimeError("planted\\nin two lines")
MPI.COMM_WORLD.Barrier()
time.sleep(100)
"""


@pytest.mark.mpi_skip
def test_an_uncaught_error_ends_the_job(tmp_path):
    script = tmp_path / "crash.py"
    script.write_text(CRASH)
    code, printed = run_job([*mpirun(2), sys.executable, script], limit_s=30, PYTHONPATH=".")
    assert code != 0
    assert "[rank 1] Traceback" in printed
    assert "[rank 1] RuntimeError: planted" in printed
    assert "[rank 1] in two lines" in printed


# ---- how device memory travels ----------------------------------------------------------------------------


@pytest.mark.parametrize("stated", ["", "mpi_memory_alloc_kinds"])
@pytest.mark.parametrize("refusal", ["", "the probe failed with code -11"])
def test_transport(monkeypatch, stated, refusal):
    """Direct only where the library states support and a probe confirms it; all ranks alike."""
    monkeypatch.setattr(transport, "mpi_takes_device_memory", lambda: stated)
    monkeypatch.setattr(transport, "probe", lambda: refusal)
    device, comm = StandInDevice(), MPI.COMM_WORLD
    assert choose_transport("auto", HostDevice(), comm).direct
    assert not choose_transport("staged", device, comm).direct
    found = choose_transport("auto", device, comm)
    assert found.direct == (bool(stated) and (not refusal or comm.size == 1))
    if stated and comm.size > 1:
        assert refusal in found.reason
    if stated:
        assert choose_transport("direct", device, comm).direct
    else:
        with pytest.raises(CaseError, match="CUDA memory"):
            choose_transport("direct", device, comm)


def test_what_this_library_says():
    assert transport.mpi_takes_device_memory() in ("", "mpi_memory_alloc_kinds", "MPIX_Query_cuda_support")
    assert transport.mpi_library().isprintable()


def test_ranks_of_a_machine_are_numbered():
    comm = MPI.COMM_WORLD
    assert sorted(comm.allgather(transport.local_rank(comm))) == list(range(comm.size))


@pytest.mark.mpi_skip
def test_a_probe_without_a_gpu_says_no():
    """It is a job of its own: what it ends with is an answer here."""
    if isinstance(open_gpu(0), str):
        said = transport.probe()
        assert said == "no mpirun to probe it with" or (
            said.startswith("the probe failed with code 1") and open_gpu(0)[:40] in said
        )


@pytest.mark.mpi_skip
def test_a_probe_that_does_not_end_is_killed_with_all_that_it_started(tmp_path, monkeypatch):
    hangs = tmp_path / "mpirun"
    hangs.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && exit\nsleep 61 & echo $! > {tmp_path}/child\nwait\n'
    )
    hangs.chmod(0o755)
    monkeypatch.setattr(transport.shutil, "which", lambda *args, **kwargs: str(hangs))
    monkeypatch.setattr(transport, "PROBE_SECONDS", 1)
    assert transport.probe() == "the probe did not end: TimeoutExpired"
    child = int((tmp_path / "child").read_text())
    wait_until(lambda: not running(child))


@pytest.mark.mpi_skip
@pytest.mark.parametrize(
    ("version", "flags"),
    [("mpirun (Open MPI) 5.0.6", ["--oversubscribe", "--allow-run-as-root"]), ("HYDRA build details:", [])],
)
def test_a_probe_starts_as_root_and_without_slots(tmp_path, monkeypatch, version, flags):
    """Open MPI's launcher alone is told so; what the user set for it stays, what it told us does not."""
    launcher = tmp_path / "mpirun"
    kept = "$OMPI_ALLOW_RUN_AS_ROOT$OMPI_ALLOW_RUN_AS_ROOT_CONFIRM$OMPI_MCA_pml$OMPI_COMM_WORLD_RANK"
    answer = f'echo "$@" {kept} > {tmp_path}/heard; echo "{transport.PROBED}\n{transport.PROBED}"'
    launcher.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo "{version}" || {{ {answer}; }}\n')
    launcher.chmod(0o755)
    monkeypatch.setattr(transport.shutil, "which", lambda *args, **kwargs: str(launcher))
    for name, value in (("ALLOW_RUN_AS_ROOT", "1"), ("ALLOW_RUN_AS_ROOT_CONFIRM", "2"), ("MCA_pml", "ob1")):
        monkeypatch.setenv(f"OMPI_{name}", value)
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "7")
    assert transport.probe() == ""
    heard = (tmp_path / "heard").read_text().split()
    assert heard == [*flags, "-np", "2", sys.executable, "-m", "app.comm.probe", "12ob1"]


@pytest.mark.parametrize(
    "name",
    ["MCA_ess", "MCA_ess_base_jobid", "MCA_orte_hnp_uri", "MCA_pmix", "MCA_initial_wdir", "COMM_WORLD_SIZE"],
)
def test_marks_of_this_job_are_not_handed_on(monkeypatch, name):
    """Open MPI 4.1 names the job of a process in MCA parameters too; a launcher reads them and ends."""
    monkeypatch.setenv(f"OMPI_{name}", "1")
    theirs = {
        "OMPI_MCA_btl": "self",
        "OMPI_MCA_orte_tmpdir_base": "/scratch",
        "OMPI_MCA_pmix_base_verbose": "1",
    }
    for each, value in theirs.items():
        monkeypatch.setenv(each, value)
    found = transport.job_environment()
    assert f"OMPI_{name}" not in found
    assert {each: found[each] for each in theirs} == theirs


def running(number):
    """False for a process that has ended, waited for or not."""
    try:
        return "State:\tZ" not in Path(f"/proc/{number}/status").read_text()
    except FileNotFoundError:
        return False


def wait_until(true, limit_s=20):
    end = time.monotonic() + limit_s
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_what_one_rank_does_not_state_none_takes(monkeypatch):
    """Nodes may have been set up differently; a rank alone in a collective would wait for ever."""
    comm = MPI.COMM_WORLD
    monkeypatch.setattr(transport, "probe", lambda: "")
    for silent in range(comm.size):
        said = "" if comm.rank == silent else "mpi_memory_alloc_kinds"
        monkeypatch.setattr(transport, "mpi_takes_device_memory", lambda said=said: said)
        assert not choose_transport("auto", StandInDevice(), comm).direct
        with pytest.raises(CaseError, match="CUDA memory"):
            choose_transport("direct", StandInDevice(), comm)
