"""A disk that is really full: said in one line, nothing lost; with room again the bits of a run left alone.

The disk is a small file system in memory, mounted in a name space of its own: it is gone with the process
that holds it, whatever becomes of the test.
"""

import errno
import os
import re
import subprocess
from pathlib import Path

import pytest
from mpi4py import MPI
from test_checkpoint import keeper, state
from test_main import metrics, result_of
from test_resume import CLASSIFY, TRAIN, digest, fault, job

from app.case.config import Case
from app.case.file import build
from app.case.graph import GraphCase
from app.checkpoint import store
from app.comm.group import Group
from app.device import HostDevice
from app.errors import CaseError, DiskFull
from app.log import Log
from app.output import RunFolder
from app.partition.load import read_paths

pytestmark = pytest.mark.mpi_skip
MEGABYTES = 8
WHOLE = tuple(key for key in CLASSIFY if key != "parallel.partition=learned")  # by each rank of several
PAGE = 4096
NO_ROOM = os.strerror(errno.ENOSPC)


class Disk:
    """A mounted folder, of which a file of the test's own takes as much room as it likes."""

    def __init__(self, path):
        self.path, self._filler = path, path / "filler"

    def fill(self, left=0):
        """Leave so many pages."""
        self.empty()
        try:
            with open(self._filler, "wb", buffering=0) as file:
                while True:
                    file.write(bytes(PAGE))
        except OSError as error:
            assert error.errno == errno.ENOSPC
        os.truncate(self._filler, self._filler.stat().st_size - left * PAGE)

    def empty(self):
        """Leave all that the runs do not take."""
        self._filler.unlink(missing_ok=True)


@pytest.fixture
def disk(tmp_path):
    """A small file system; skips where none can be mounted."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = f"mount -t tmpfs -o size={MEGABYTES}m none {place} && echo mounted && exec cat"
    try:
        holder = subprocess.Popen(
            ["unshare", "-Urm", "sh", "-c", mount], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
    except FileNotFoundError:
        pytest.skip("no unshare to mount a small file system with")
    with holder:
        said = holder.stdout.readline()
        seen = Path(f"/proc/{holder.pid}/root{place}")
        try:
            if said != "mounted\n" or not os.path.ismount(seen):
                pytest.skip(f"a small file system cannot be mounted here: {said.strip()}")
            yield Disk(seen)
        finally:
            holder.stdin.close()


def test_a_log_goes_on_and_what_it_could_not_write_follows(disk, capsys):
    log = Log(True, str(disk.path))
    log.record(step=1)
    disk.fill()
    for step in range(2, 500):
        log.record(step=step)
        log.info("step %d", step)
    with pytest.raises(OSError, match=NO_ROOM):
        log.mark()
    printed = capsys.readouterr().out
    assert (printed.count(NO_ROOM), "step 499" in printed) == (1, True)
    disk.empty()
    mark = log.mark()
    log.record(step=500)
    log.close()
    lines = (disk.path / "metrics.csv").read_text().splitlines()
    assert [line.split(",")[2] for line in lines] == ["step", *map(str, range(1, 501))]
    assert mark["metrics_bytes"] == sum(len(line) + 1 for line in lines[:-1])
    assert (disk.path / "log.txt").read_text().count("step") == 498


def test_no_checkpoint_forgets_rows_that_are_not_written(disk):
    """One that said how long metrics.csv is before it is would be resumed with rows missing."""
    made = keeper(disk.path, steps=1)
    made.log = Log(True, str(disk.path), echo=False)
    made.at(0, "train", state(0))
    made.at(1, "train", state(1))
    disk.fill()
    for step in range(2, 500):
        made.log.record(step=step)
    made.at(500, "train", state(500))
    assert store.listed(str(made.path)) == [1]
    disk.empty()
    made.at(501, "train", state(501))
    made.log.close()
    saved, _ = store.newest(str(made.path))
    assert saved.manifest["log"]["metrics_bytes"] == (disk.path / "metrics.csv").stat().st_size


def test_a_folder_on_a_full_disk_is_refused_and_stays_unlocked(disk):
    """A lock that tells nobody would be taken for one of a job elsewhere, and keep the next one out."""
    group, out = Group(MPI.COMM_SELF, HostDevice()), disk.path / "out"
    out.mkdir()
    disk.fill()
    with pytest.raises(CaseError, match=f"cannot write there: {NO_ROOM}"):
        RunFolder(group, str(out), False)
    assert os.listdir(out) == []
    disk.fill(left=1)
    folder = RunFolder(group, str(out), False)
    with pytest.raises(DiskFull, match=f"out/case.toml cannot be written: {NO_ROOM}"):
        folder.begin(Case(), group.device)
    folder.release()
    assert os.listdir(out) == []


def test_a_cache_on_a_full_disk_is_a_warning_and_leaves_nothing(disk, tmp_path):
    group, path, folder = Group(MPI.COMM_SELF, HostDevice()), tmp_path / "g.txt", disk.path / "kept"
    path.write_text("".join(f"{i} {7 * i % 5000}\n" for i in range(5000)))
    folder.mkdir()
    disk.fill(left=4)
    item = read_paths(group, GraphCase(), [str(path)], build({"memory.cache": str(folder)}))
    assert item.source == "file" and item.graph.n == 5000
    assert len(item.warnings) == 1 and NO_ROOM in item.warnings[0] and not list(folder.iterdir())
    disk.empty()
    sources = [
        read_paths(group, GraphCase(), [str(path)], build({"memory.cache": str(folder)})).source
        for _ in range(2)
    ]
    assert sources == ["file", "cache"]


@pytest.mark.parametrize(
    ("case", "steps", "ranks"),
    [
        (TRAIN, 160, (2, 1, 1)), (CLASSIFY, 60, (1, 1, 2)),
        pytest.param(WHOLE, 60, (2, 2, 1), marks=pytest.mark.long),
    ],
    ids=["train", "classify", "classify whole"],
)  # fmt: skip
def test_a_run_whose_disk_becomes_full(disk, tmp_path, case, steps, ranks):
    wanted, out = digest(case, tmp_path / "whole"), disk.path / "out"
    often = f"checkpoint.steps={steps // 8}"
    code, printed = job(case, out, often, ranks=ranks[0], **fault(f"kill:rank=0,step={steps // 2 + 1}"))
    assert code != 0, printed
    held = store.listed(str(out / "checkpoint"))
    assert len(held) == 2

    # Room for a few lines: the run goes on without checkpoints, and at the latest its results find no room.
    disk.fill(left=3)
    code, printed = job(case, out, often, "--resume", ranks=ranks[1])
    assert (code, "Traceback" in printed) == (1, False), printed
    assert re.search(rf"no checkpoint at step \d+: {NO_ROOM};", printed), printed
    assert printed.count(f"cannot be written: {NO_ROOM}; make room, then --resume") == 1, printed
    assert store.listed(str(out / "checkpoint")) == held
    assert not list(out.rglob("*.tmp*"))

    disk.empty()
    code, printed = job(case, out, often, "--resume", ranks=ranks[2])
    assert (code, f"checkpoint/step-{held[0]:06d}" in printed) == (0, True), printed
    assert result_of(out)["digest"] == wanted
    assert metrics(out) == metrics(tmp_path / "whole")
