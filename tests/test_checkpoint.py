"""Checkpoints on disk: whole or not there, verified, refused where they belong to another run."""

import json
import os
import shutil
import subprocess
import sys
import threading
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpi4py import MPI
from msgspec import structs

from app import output, stopping
from app.aside import NAME, aside, at_work
from app.case.config import Case
from app.case.gnn import GnnCase
from app.case.graph import GraphCase
from app.case.policy import TrainCase
from app.case.run import CheckpointCase, RunCase
from app.checkpoint import lock, store
from app.checkpoint.checkpoints import Checkpoints, Stops
from app.checkpoint.identity import described, differences, input_digests
from app.checkpoint.keeper import PieceKeeper, Within
from app.checkpoint.pace import Pace
from app.checkpoint.signals import Signals
from app.checkpoint.store import State
from app.comm.group import Group
from app.device import HostDevice
from app.errors import CaseError, GraphError, Halted, Stopped
from app.log import Log, Mark

pytestmark = pytest.mark.mpi_skip
SAVEZ = np.savez
ABOUT = {
    "stage": "train", "loop_step": 0, "base": 0, "kept": [], "counters": {}, "ranks": 1, "versions": {},
    "case": {}, "inputs": {}, "log": {},
}  # fmt: skip


def parts(number):
    """A state that tells its number."""
    arrays = {"a": np.arange(number, number + 6, dtype=np.float32).reshape(2, 3), "b": np.zeros((0, 4))}
    return {"train": State({"step": number, "none": float("nan")}, arrays)}


def write(folder, number, keep=2):
    return store.write(str(folder), number, parts(number), ABOUT, keep)


def number_of(saved):
    """What the parts of a checkpoint tell, once they agree."""
    number = saved.parts["train"].values["step"]
    np.testing.assert_array_equal(saved.parts["train"].arrays["a"], parts(number)["train"].arrays["a"])
    assert saved.parts["train"].arrays["b"].shape == (0, 4)
    assert saved.manifest["step"] == number
    return number


@pytest.fixture(autouse=True, scope="module")
def no_waiting():
    """No test here cuts the power, so none waits for the disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)
        yield


# ---- files ------------------------------------------------------------------------------------------------


def test_the_newest_few_are_kept(tmp_path):
    for number in (10, 20, 30):
        write(tmp_path, number)
    assert sorted(os.listdir(tmp_path)) == ["LATEST", "step-000020", "step-000030"]
    assert (tmp_path / "LATEST").read_text() == "step-000030\n"
    saved, skipped = store.newest(str(tmp_path))
    assert (number_of(saved), skipped) == (30, [])
    store.remove_all(str(tmp_path))
    assert not tmp_path.exists()


class Crash(BaseException):
    """The process ends here."""


def crash_at(patch, k):
    """Let the k-th call that changes the disk not happen, and nothing after it."""
    calls = [0]

    def counted(real):
        def call(*args, **kwargs):
            calls[0] += 1
            if calls[0] >= k:
                raise Crash
            return real(*args, **kwargs)

        return call

    for name in ("mkdir", "rename", "replace", "fsync"):
        patch.setattr(store.os, name, counted(getattr(os, name)))
    patch.setattr(store.np, "savez", counted(half_savez))
    patch.setattr(store.shutil, "rmtree", counted(shutil.rmtree))


def half_savez(file, **arrays):
    """Some bytes that are on the disk before the rest is written."""
    file.write(b"half")
    file.flush()
    os.fsync(file.fileno())
    file.seek(0)
    SAVEZ(file, **arrays)


def test_a_crash_at_every_step_leaves_a_valid_checkpoint(tmp_path):
    """Old ones are 10 and 20; a third is written, up to its k-th change of the disk."""
    seen, k, done = [], 0, False
    while not done:
        k += 1
        folder = tmp_path / str(k)
        write(folder, 10)
        write(folder, 20)
        with pytest.MonkeyPatch.context() as patch:
            crash_at(patch, k)
            try:
                write(folder, 30)
                done = True
            except Crash:
                pass
        store.clean(str(folder))
        assert not any(".tmp" in name for name in os.listdir(folder))
        saved, skipped = store.newest(str(folder))
        assert skipped == []
        seen.append(number_of(saved))
        write(folder, 40)
        assert sorted(os.listdir(folder))[0] == "LATEST"
        assert number_of(store.newest(str(folder))[0]) == 40
    assert len(seen) > 8
    assert set(seen) == {20, 30}
    assert seen == sorted(seen)


def test_an_error_leaves_what_was_there(tmp_path, monkeypatch):
    write(tmp_path, 10)
    before = sorted(os.listdir(tmp_path))

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store.np, "savez", full)
    with pytest.raises(OSError, match="No space"):
        write(tmp_path, 20)
    assert sorted(os.listdir(tmp_path)) == before
    assert number_of(store.newest(str(tmp_path))[0]) == 10


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A folder with checkpoints 10 and 20."""
    folder = tmp_path_factory.mktemp("whole")
    write(folder, 10)
    write(folder, 20)
    return folder


def spoiled(whole, tmp_path, file, change):
    """What is found in a copy of the folder in which bytes of one file of checkpoint 20 were changed."""
    folder = tmp_path / "copy"
    if not folder.exists():
        shutil.copytree(whole, folder)
    path = folder / "step-000020" / file
    data = path.read_bytes()
    path.write_bytes(change(data))
    found = store.newest(str(folder))
    path.write_bytes(data)
    return found


def flipped(at, bit, data):
    """The bytes with one bit changed."""
    return data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]


@pytest.mark.parametrize("file", ["state.npz", "manifest.json"])
def test_a_flipped_bit_is_found(whole, tmp_path, file):
    draws = np.random.default_rng(1)
    size = (whole / "step-000020" / file).stat().st_size
    for at, bit in zip(draws.integers(0, size, 200).tolist(), draws.integers(0, 8, 200).tolist()):
        saved, skipped = spoiled(whole, tmp_path, file, partial(flipped, at, bit))
        assert number_of(saved) == 10, (at, bit)
        assert len(skipped) == 1
        assert skipped[0].startswith("step-000020: ")


@given(share=st.floats(0, 1, exclude_max=True), file=st.sampled_from(["state.npz", "manifest.json"]))
def test_a_truncated_one_is_passed_over(whole, tmp_path, share, file):
    saved, skipped = spoiled(whole, tmp_path, file, lambda data: data[: int(share * len(data))])
    assert number_of(saved) == 10
    assert file in skipped[0]


def test_missing_files_are_passed_over(whole, tmp_path):
    for name in ("state.npz", "manifest.json"):
        folder = tmp_path / name
        shutil.copytree(whole, folder)
        (folder / "step-000020" / name).unlink()
        (folder / "step-junk").mkdir()
        saved, (reason,) = store.newest(str(folder))
        assert (number_of(saved), "missing" in reason) == (10, True)


def remade(whole, tmp_path, **changes):
    """The folder with other fields in the manifest of checkpoint 20, whose own sha256 is right."""
    folder = tmp_path / "remade"
    shutil.copytree(whole, folder)
    path = folder / "step-000020" / "manifest.json"
    body = json.loads(path.read_text())
    del body["sha256"]
    path.write_text(store.manifest_text({**body, **changes}))
    return folder


def test_one_of_a_newer_format_is_refused(whole, tmp_path):
    folder = remade(whole, tmp_path, format=2, lockstep="7.8.9")
    with pytest.raises(CaseError, match=r"step-000020: written by a newer Lockstep \(7.8.9, format 2\)"):
        store.newest(str(folder))


@pytest.mark.parametrize(
    "changes",
    [{"step": "20"}, {"more": 1}, {"files": {}}, {"files": {"state.npz": {"bytes": 1, "sha256": ""}}}],
)
def test_wrong_fields_are_passed_over(whole, tmp_path, changes):
    saved, skipped = store.newest(str(remade(whole, tmp_path, **changes)))
    assert (number_of(saved), len(skipped)) == (10, 1)


def test_an_archive_that_lies_about_its_size_is_passed_over(whole, tmp_path):
    """state.npz is exchanged, and the manifest made to fit: its arrays must still be what they say."""
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776,), }"
    array = b"\x93NUMPY\x01\x00" + len(header + b"\n").to_bytes(2, "little") + header + b"\n"
    path = tmp_path / "lie.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("values.npy", array)
    saved = {"bytes": path.stat().st_size, "sha256": store.file_digest(str(path))}
    folder = remade(whole, tmp_path, files={"state.npz": saved})
    shutil.copy(path, folder / "step-000020" / "state.npz")
    _, (reason,) = store.newest(str(folder))
    assert "does not fit" in reason


# ---- whose they are ---------------------------------------------------------------------------------------


def test_what_differs_is_named_with_both_values(tmp_path):
    graph = tmp_path / "g.txt"
    graph.write_text("1 2\n")
    case = Case(graph=GraphCase(path=[str(graph)]), run=RunCase(task="train"))
    inputs = input_digests(case)
    manifest = {"lockstep": "0.1.0", "case": described(case), "inputs": inputs}
    assert differences(manifest, case, inputs) == []
    allowed = structs.replace(
        case, run=structs.replace(case.run, out="elsewhere", device="cpu"), train=TrainCase(steps=7),
        checkpoint=CheckpointCase(minutes=1), output=structs.replace(case.output, log_seconds=9),
        memory=structs.replace(case.memory, cache="x"),
        parallel=structs.replace(case.parallel, partition="rows"),
    )  # fmt: skip
    assert differences(manifest, allowed, inputs) == []
    other = structs.replace(
        case, seed=3, train=structs.replace(case.train, environments=9),
        run=structs.replace(case.run, portable=False),
    )  # fmt: skip
    assert differences(manifest, other, inputs) == [
        "run.portable: true there, false here",
        "seed: 0 there, 3 here",
        f"train.environments: {case.train.environments} there, 9 here",
    ]
    # Where every step's size depends on how many there are, that is no detail either.
    falling = structs.replace(case, agent=structs.replace(case.agent, learning_rate_end=1e-5))
    told = {**manifest, "case": described(falling)}
    assert differences(told, structs.replace(falling, train=TrainCase(steps=7)), inputs) == [
        f"train.steps: {TrainCase().steps} there, 7 here"
    ]
    cosine = structs.replace(case, run=RunCase(task="classify"), gnn=GnnCase(schedule="cosine"))
    longer = structs.replace(cosine, gnn=GnnCase(schedule="cosine", epochs=7))
    assert differences({**manifest, "case": described(cosine)}, longer, inputs) == [
        f"gnn.epochs: {GnnCase().epochs} there, 7 here"
    ]
    # How far another task's training goes is no detail.
    solve = structs.replace(case, run=RunCase(task="solve"))
    manifest["case"] = described(solve)
    longer = structs.replace(solve, train=TrainCase(steps=7))
    assert differences(manifest, longer, inputs) == [f"train.steps: {TrainCase().steps} there, 7 here"]
    graph.write_text("1 3\n")
    (line,) = differences(manifest, solve, input_digests(solve))
    assert line.startswith("the file g.txt (sha256): ")
    assert differences({**manifest, "lockstep": "0.0.9"}, solve, inputs) == [
        'lockstep: "0.0.9" there, "0.1.0" here'
    ]


# ---- when, and what goes into one -------------------------------------------------------------------------


def keeper(folder, stops=Stops(), **settings):  # noqa: B008
    """Checkpoints of this process alone in a folder."""
    case = Case(checkpoint=CheckpointCase(**{"minutes": 1e6, **settings}))
    group = Group(MPI.COMM_SELF, HostDevice())
    made = Checkpoints(group, case, str(folder), stops)
    made.log = Log(False)
    return made


def state(step, value=1.0):
    return lambda: State({"step": step}, {"x": np.full(3, value)})


def test_steps_decide_when_and_nothing_is_written_twice(tmp_path):
    made = keeper(tmp_path, steps=5, keep=9)
    for step in range(0, 17, 2):
        made.at(step, "train", state(step))
    assert store.listed(str(tmp_path / "checkpoint")) == [16, 10, 6]
    made.at(16, "train", state(16))
    # A second loop, then a piece of work that is finished, inside which nothing new is to be kept.
    made.at(0)
    made.at(5)
    made.keep("cell", State({"done": 1}))
    inner = Within(PieceKeeper(made, "p"))
    for step in range(7):
        inner.at(step, "train", state(step))
    numbers = store.listed(str(tmp_path / "checkpoint"))
    assert numbers[0] > numbers[1] > 16
    again = keeper(tmp_path)
    mark, said = again.resume()
    assert mark == Mark(**again.log.mark()) or mark.seconds >= 0
    assert "resumed from" in said[-1]
    assert again.recall("cell").values == {"done": 1}
    assert again.recall("train") is None


def test_a_state_that_is_not_finite_replaces_nothing(tmp_path):
    made = keeper(tmp_path, steps=1)
    made.at(0, "train", state(0))
    made.at(1, "train", state(1))
    made.at(2, "train", state(2, float("nan")))
    again = keeper(tmp_path)
    again.resume()
    assert again.recall("train").values == {"step": 1}


def test_a_stop_writes_a_checkpoint_and_says_how_to_go_on(tmp_path):
    asked = Signals(lambda: None)
    made = keeper(tmp_path, Stops(asked, again="run it --resume"))
    made.at(3, "train", state(3))
    asked.asked = "SIGTERM"
    with pytest.raises(Stopped, match=r"stopped by SIGTERM; .*step-000004; go on with: run it --resume") as e:
        made.at(4, "train", state(4))
    assert e.value.exit_code == 3
    again = keeper(tmp_path)
    again.resume()
    assert again.recall("train").values == {"step": 4}


def test_ranks_that_work_apart_stop_and_all_write_what_is_finished(tmp_path):
    asked = Signals(lambda: None)
    made = keeper(tmp_path, Stops(asked, again="run it --resume"))
    made.keep("answer 0", State({"done": 1}))
    made.at(1)
    for outer in (made, Within(made), PieceKeeper(made, "instance 3")):
        apart = outer.apart(made.group).apart(made.group)
        apart.keep("answer 1", State({"done": 2}))
        assert apart.recall("answer 0") is None
        apart.at(0, "search", state(0))
        asked.asked = "SIGUSR1"
        with pytest.raises(Halted):
            apart.at(1, "search", state(1))
        with pytest.raises(Stopped, match=r"stopped by SIGUSR1; .*; go on with: run it --resume"):
            outer.halt()
        asked.asked = ""
    again = keeper(tmp_path)
    again.resume()
    assert (again.recall("answer 0").values, again.recall("answer 1")) == ({"done": 1}, None)


def test_hours_end_the_work_of_ranks_apart(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    made = keeper(tmp_path, Stops(limit_s=100.0))
    apart = made.apart(made.group)
    with pytest.raises(Halted):
        for step in range(200):
            apart.at(step)
            now[0] += 1.0
    assert 90 < now[0] <= 100
    with pytest.raises(Stopped, match="--max-hours"):
        made.halt()


def test_a_turn_apart_is_no_pause(tmp_path, monkeypatch):
    """Time is kept for the longest time between two looks, also those of ranks that work apart."""
    now = [1.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    made = keeper(tmp_path, Stops(limit_s=100.0))
    for turn in range(2):
        made.at(turn)
        apart = made.apart(made.group)
        for step in range(40):
            apart.at(step)
            now[0] += 1.0
    made.at(2)  # 81 s: a reserve of a turn would be more than there is
    with pytest.raises(Stopped, match="--max-hours"):
        for step in range(3, 60):
            made.at(step)
            now[0] += 1.0
    assert now[0] > 90


def test_what_no_loop_has_taken_up_yet_stays(tmp_path):
    """A run that is stopped between its resumption and the loop that goes on keeps that loop's state."""
    made = keeper(tmp_path, steps=1)
    made.keep("answer 0", State({"done": 1}))
    made.at(7, "search", state(7))
    again = keeper(tmp_path, steps=1)
    again.resume()
    again.at(0)
    again.keep("answer 1", State({"done": 1}))
    again.at(1)
    third = keeper(tmp_path, steps=1)
    third.resume()
    assert third.recall("search").values == {"step": 7}
    third.at(8, "search", state(8))
    third.keep("answer 2", State({"done": 1}))
    third.at(9)
    last = keeper(tmp_path)
    last.resume()
    assert last.recall("search") is None
    assert last.recall("answer 2").values == {"done": 1}


def test_a_training_that_is_finished_is_begun_anew_for_more_steps_and_kept_from_fewer(tmp_path):
    def resumed(steps):
        case = Case(
            run=RunCase(task="train"), train=TrainCase(steps=steps), checkpoint=CheckpointCase(minutes=0)
        )
        made = Checkpoints(Group(MPI.COMM_SELF, HostDevice()), case, str(tmp_path))
        return made, *made.resume()

    made, _, _ = resumed(60)
    log = Log(True, str(tmp_path), echo=False)
    made.follow(log)
    log.record(step=60)
    made.keep("trained", State({"steps": 60}))
    made.at(1, now=True)
    log.close()
    made, mark, _ = resumed(60)
    assert made.recall("trained").values == {"steps": 60} and mark.metrics_bytes > 0
    made, mark, lines = resumed(61)
    assert made.recall("trained") is None and mark.metrics_bytes == 0
    assert lines[-1] == "the kept training has 60 steps: a new one begins"
    with pytest.raises(CaseError, match=r"^train\.steps: 59, but the checkpoint has made 60; at least"):
        resumed(59)


def test_a_limit_of_time_stops_early_enough(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    made = keeper(tmp_path, Stops(limit_s=100.0))

    def slow():
        now[0] += 4.0
        return State()

    with pytest.raises(Stopped, match="--max-hours"):
        for step in range(200):
            made.at(step, "train", slow)
            now[0] += 1.0
    # 5 s of margin, one step, and twice what a checkpoint was last known to take (nothing yet)
    assert 90 < now[0] <= 100


class Several(Group):
    """This rank, which believes that it is one of two; `asked` counts what they told each other."""

    def __init__(self):
        super().__init__(MPI.COMM_SELF, HostDevice())
        self.asked = 0

    size = property(lambda self: 2, lambda self, size: None)

    def max_integers(self, numbers):
        self.asked += 1
        return np.array(numbers)


def test_long_steps_after_short_ones_hear_of_the_end(monkeypatch):
    """How often ranks ask each other follows from the steps before: it must not hold for those that come."""
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    group = Several()
    pace = Pace(group)

    def ask(times, seconds, always):
        before = group.asked
        for _ in range(times):
            now[0] += seconds
            pace.agreed(lambda at: 0, always)
        return group.asked - before

    assert ask(20_000, 1e-4, False) < 100  # once in a tenth of a second
    assert ask(5, 1.0, True) == 5
    assert ask(20_000, 1e-4, False) < 100


def test_another_loop_is_asked_at_once(tmp_path, monkeypatch):
    now, asked = [0.0], []
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    made = keeper(tmp_path, Stops(limit_s=100.0))
    monkeypatch.setattr(made._pace, "agreed", lambda wish, always: asked.append(always) or 0)
    for step in (0, 1, 2, 0, 1):
        made.at(step)
    made.at(2, now=True)
    assert asked == [False, False, False, True, False, True]


def test_disabled_ones_do_nothing(tmp_path):
    asked = Signals(lambda: None)
    asked.asked = "SIGINT"
    made = keeper(tmp_path, Stops(asked), enabled=False, steps=1)
    for step in range(5):
        made.at(step, "train", state(step))
    assert not (tmp_path / "checkpoint").exists()


def test_resuming_refuses_another_run_and_reports_what_is_damaged(tmp_path):
    made = keeper(tmp_path, steps=1)
    made.at(0, "train", state(0))
    made.at(1, "train", state(1))
    made.at(2, "train", state(2))
    other = keeper(tmp_path)
    other.case = structs.replace(other.case, seed=5)
    with pytest.raises(CaseError, match="belongs to another run:\n  seed: 0 there, 5 here"):
        other.resume()
    (tmp_path / "checkpoint" / "step-000002" / "state.npz").write_bytes(b"")
    again = keeper(tmp_path)
    _, said = again.resume()
    assert "skipped: step-000002: state.npz: 0 bytes" in said[0]
    assert again.recall("train").values == {"step": 1}
    again.at(2, "train", state(2))
    shutil.rmtree(tmp_path / "checkpoint" / "step-000001")
    (tmp_path / "checkpoint" / "step-000002" / "manifest.json").write_text("{}")
    with pytest.raises(CaseError, match="no valid checkpoint"):
        keeper(tmp_path).resume()
    assert keeper(tmp_path / "none").resume() == (None, ["nothing to resume: the run begins anew"])


# ---- lock and log -----------------------------------------------------------------------------------------


def test_a_lock_holds_until_it_is_released_or_its_process_is_gone(tmp_path):
    folder = str(tmp_path)
    assert lock.take(folder) == ""
    with pytest.raises(CaseError, match="--force-unlock"):
        lock.take(folder)
    lock.release(folder)
    assert os.listdir(folder) == []
    lock.take(folder)
    path = tmp_path / lock.NAME
    holder = json.loads(path.read_text())
    gone = [{"pid": 2**22 + 1}, {"started": "1"}, {"boot": "another"}]
    if not os.path.exists("/proc/self/stat"):
        gone = gone[:1]
    for change in gone:
        path.write_text(json.dumps({**holder, **change}))
        assert "is gone" in lock.take(folder), change
    for change in ({"host": "elsewhere"}, {"host": "elsewhere", "boot": "another"}, {"space": "a container"}):
        path.write_text(json.dumps({**holder, **change}))
        with pytest.raises(CaseError, match="--force-unlock"):
            lock.take(folder)
        lock.release(folder)
        assert path.exists() == ("host" in change)
    path.write_text("no JSON")
    with pytest.raises(CaseError, match="process ? on ?".replace("?", r"\?")):
        lock.take(folder)
    assert "removed, as --force-unlock asks" in lock.take(folder, force=True)


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="the system does not tell of processes")
def test_the_lock_of_a_process_that_has_ended_and_was_not_waited_for_is_taken_over(tmp_path):
    """As where nobody in a container waits for the ranks of a launcher that was killed."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    lock.take(str(tmp_path))
    path = tmp_path / lock.NAME
    holder = json.loads(path.read_text()) | {"pid": child.pid, "started": lock._started(child.pid)}
    path.write_text(json.dumps(holder))
    with pytest.raises(CaseError, match="--force-unlock"):
        lock.take(str(tmp_path))
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and is still there
    os.kill(child.pid, 0)
    assert "is gone" in lock.take(str(tmp_path))
    child.communicate()


def test_a_job_that_has_just_begun_is_named(tmp_path):
    """Two jobs of an array with one folder: the second one sees what the first has begun to write."""
    lock.take(str(tmp_path))
    (tmp_path / "case.toml.tmp").write_text("")
    with pytest.raises(CaseError, match="has been writing to it since"):
        output._claim(str(tmp_path), False, False, False)
    lock.release(str(tmp_path))
    with pytest.raises(CaseError, match="is no folder of an earlier run"):
        output._claim(str(tmp_path), False, False, False)


def test_a_requeued_job_takes_its_own_lock_over(tmp_path, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setattr(lock.socket, "gethostname", lambda: "first")
    lock.take(str(tmp_path))
    monkeypatch.setattr(lock.socket, "gethostname", lambda: "second")
    with pytest.raises(CaseError):
        lock.take(str(tmp_path))
    monkeypatch.setenv("SLURM_RESTART_COUNT", "1")
    assert "is gone" in lock.take(str(tmp_path))


def test_a_log_goes_on_where_it_was(tmp_path):
    first = Log(True, str(tmp_path), echo=False)
    first.record(step=1, loss=0.5)
    mark = Mark(**first.mark())
    first.record(step=2, loss=0.25)
    first.info("first")
    first.close()
    second = Log(True, str(tmp_path), echo=False, mark=mark)
    second.record(step=2, loss=0.125)
    second.info("second")
    second.close()
    rows = [line.split(",") for line in Path(tmp_path, "metrics.csv").read_text().splitlines()]
    assert [row[2] for row in rows] == ["step", "1", "2"]
    assert rows[2][rows[0].index("loss")] == "0.125"
    assert [line.split()[-1] for line in Path(tmp_path, "log.txt").read_text().splitlines()] == [
        "first", "second"
    ]  # fmt: skip
    assert second.elapsed() >= mark.seconds


# ---- work that is left behind ------------------------------------------------------------------------------


def test_work_aside_returns_and_raises_as_elsewhere():
    assert aside(lambda: threading.current_thread().name) == NAME
    with pytest.raises(GraphError, match="of another thread"):
        aside(lambda: (_ for _ in ()).throw(GraphError("of another thread")))
    assert not at_work()


def test_work_aside_is_left_behind_where_the_run_is_to_stop():
    may_end, ended = threading.Event(), threading.Event()

    def work():
        stopping.ask("SIGTERM")
        assert may_end.wait(60)
        ended.set()

    try:
        with pytest.raises(Halted):
            aside(work)
        assert at_work() and not ended.is_set()
    finally:
        stopping.forget()
        may_end.set()
    assert ended.wait(60)
