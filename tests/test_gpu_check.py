"""bench/gpu_check.py: a rehearsal of every step, what is kept of it, and what is told."""

import json
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from jobs import mpirun

from app.cuda.kernels import FILE_OF, Kernels
from bench import gpu_check, gpu_steps, gpu_tools, gpu_worker
from bench.gpu_tools import Report, Where, rehearsal_device, run_ranks

pytestmark = pytest.mark.mpi_skip
ALONE = [name for name in gpu_steps.STEPS if name not in ("digests", "memory", "overlap")]


def rehearse(out, *words):
    return gpu_check.main(["--rehearse", "--out", str(out), *words])


def results(out):
    return {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(Path(out).glob("*.json"))}


def test_the_steps_of_one_process(tmp_path, capsys):
    """All of them hold, tell tables, and are not run twice."""
    document = tmp_path / "measurements.md"
    document.write_text("# Measurements\n\n## GPU\n\ntext\n", "utf-8")
    assert rehearse(tmp_path, "--only", *ALONE, "--docs", str(document)) == 0
    found = results(tmp_path)
    assert set(found) == set(ALONE)
    for whole in found.values():
        assert whole["failures"] == [] and whole["rehearsal"]
        for table in whole["tables"]:
            assert table["rows"] and all(len(row) == len(table["columns"]) for row in table["rows"])
    assert {row[1] for row in found["kernels"]["tables"][0]["rows"]} == {"yes"}
    text = document.read_text("utf-8")
    assert text.startswith("# Measurements\n\n## GPU\n\ntext\n") and text.count("### Kernels") == 1
    assert "| kernels |" in capsys.readouterr().out
    gpu_check.write_section(list(found.values()), document)
    assert document.read_text("utf-8").count("### Kernels") == 1


def test_every_kernel_is_compared(emulated, monkeypatch):
    launched, launch = set(), Kernels.launch_blocks

    def noted(self, name, *rest, **options):
        launched.add(name)
        launch(self, name, *rest, **options)

    monkeypatch.setattr(Kernels, "launch_blocks", noted)
    gpu_steps.kernels(Where(emulated, True, rounds=1), found := Report())
    assert launched == set(FILE_OF) and not found.failures


def test_the_steps_of_several_ranks(tmp_path):
    mpirun(2)
    assert rehearse(tmp_path, "--only", "digests", "memory", "overlap") == 0
    found = results(tmp_path)
    assert len({tuple(row[3:-1]) for row in found["digests"]["tables"][0]["rows"]}) == 1
    assert "out of memory" in found["memory"]["notes"][0]


def test_a_digest_of_first_weights_is_refused(monkeypatch):
    untrained = SimpleNamespace(records=[{"best_step": 0}], digest="0")
    monkeypatch.setattr("app.train", lambda settings: untrained)
    with pytest.raises(RuntimeError, match="first weights"):
        gpu_worker.train({}, 1)


def test_what_was_done_is_kept(tmp_path, monkeypatch):
    calls = []

    def step(where, found):
        calls.append(where)
        found.check(len(calls) > 1, "planted")

    monkeypatch.setattr(gpu_check, "STEPS", {"one": ("One", step, 1), "two": ("Two", broken, 1)})
    assert rehearse(tmp_path) == 1
    assert results(tmp_path)["two"]["failures"] == ["RuntimeError: planted"]
    assert results(tmp_path)["two"]["tables"][0]["rows"] == [["7"]]
    assert rehearse(tmp_path) == 1 and len(calls) == 2  # it had failed
    assert rehearse(tmp_path) == 1 and len(calls) == 2  # it holds
    assert rehearse(tmp_path, "--minutes", "0.1") == 1 and len(calls) == 2


def broken(where, found):
    found.table("Before", "number")(7)
    raise RuntimeError("planted")


def test_what_was_found_is_written_at_once(tmp_path, monkeypatch):
    """After each row there is a result, which says that the step did not end."""

    def step(where, found):
        found.note("said")
        assert results(tmp_path)["one"]["notes"] == ["said"]
        for number in range(2):
            found.table(f"Table {number}", "number")(number)
            whole = results(tmp_path)["one"]
            assert [table["rows"] for table in whole["tables"]] == [[[str(n)]] for n in range(number + 1)]
            assert whole["failures"] == [gpu_check.UNDONE]

    monkeypatch.setattr(gpu_check, "STEPS", {"one": ("One", step, 1)})
    assert rehearse(tmp_path) == 0
    assert results(tmp_path)["one"]["failures"] == []


# A step that has written one row, and started a process in a session of its own.
HANGS = """
import json, pathlib, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
out = pathlib.Path(sys.argv[sys.argv.index("--out") + 1])
whole = {{"step": "facts", "rehearsal": False, "tables": [{{"rows": [["7"]]}}], "failures": [{undone!r}]}}
(out / "facts.json").write_text(json.dumps(whole))
child = subprocess.Popen(["sleep", "61"])
apart = subprocess.Popen(["sleep", "61"], start_new_session=True)
(out / "children").write_text(f"{{child.pid}} {{apart.pid}}")
try:
    time.sleep(61)
finally:
    apart.kill()
"""


def test_a_step_that_hangs_ends_with_all_that_it_started(tmp_path, monkeypatch):
    """What it had found stays."""
    script = tmp_path / "hangs.py"
    script.write_text(HANGS.format(undone=gpu_check.UNDONE), "utf-8")
    monkeypatch.setattr(gpu_check, "__file__", str(script))
    monkeypatch.setattr(gpu_check, "SPARE_S", 2)
    whole = gpu_check.run_apart("facts", tmp_path, 1)
    assert whole["failures"] == ["the step was not done after 1 s"] and whole["seconds"] >= 1
    assert whole["tables"] == [{"rows": [["7"]]}] and results(tmp_path)["facts"] == whole
    for child in (tmp_path / "children").read_text().split():
        wait_until(lambda child=child: not running(child))


def test_a_step_inherits_no_marks_of_another_job(monkeypatch):
    """Open MPI's MPI_Init leaves them in the environment, where the launcher of a step's jobs reads them."""
    monkeypatch.setenv("OMPI_MCA_ess", "singleton")
    command = [sys.executable, "-c", "import os, sys; sys.exit('OMPI_MCA_ess' in os.environ)"]
    assert gpu_check.end_of(command, 60) == "the step ended with code 0"


def test_a_step_that_crashes_is_told(tmp_path, monkeypatch):
    script = tmp_path / "crashes.py"
    script.write_text("import os\nos.abort()\n", "utf-8")
    monkeypatch.setattr(gpu_check, "__file__", str(script))
    assert gpu_check.run_apart("facts", tmp_path, 30)["failures"] == ["the step ended with code -6"]


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
        time.sleep(0.02)


def test_one_kernel_that_fails_leaves_the_others(monkeypatch):
    device, found = rehearsal_device(), Report()

    def fails(*arguments, **more):
        raise RuntimeError("planted")

    monkeypatch.setattr(device, "best_rows", fails, raising=False)
    gpu_steps.kernels(Where(device, True), found)
    assert found.failures == ["choices: RuntimeError: planted"]
    rows = found.tables[0]["rows"]
    assert len(rows) > 20 and [row[0] for row in rows if row[1] != "yes"] == ["choices"]


def test_what_is_not_ours_may_fail(monkeypatch):
    """cuSPARSE, and PyTorch Geometric without PyTorch: a note, told once, and NaN."""
    where, found = Where(rehearsal_device(), False), Report()

    def fails(*arguments, **more):
        raise RuntimeError("planted")

    monkeypatch.setattr("app.device.open_gpu", fails)
    monkeypatch.setattr(gpu_steps.importlib.util, "find_spec", lambda name: name)
    monkeypatch.setitem(sys.modules, "bench.gpu_pyg", None)
    for _ in range(2):
        assert np.isnan(gpu_steps.vendor_seconds(where, None, None, None, found))
        assert np.isnan(gpu_steps.pyg_seconds(where, None, [3, 2], found))
    cusparse, pyg = found.notes
    assert cusparse == "cuSPARSE was not measured: RuntimeError: planted"
    assert pyg.startswith("PyTorch Geometric was not measured: ModuleNotFoundError")
    assert found.failures == []


def test_a_check_that_fails_is_told():
    whole = {"step": "one", "title": "One", "date": "", "device": "", "rehearsal": True, "seconds": 1.0}
    whole |= {"tables": [], "notes": ["said"], "failures": ["planted"]}
    assert "- **does not hold**: planted" in gpu_check.lines_of(whole)
    assert any("NO: planted" in line for line in gpu_check.summary([whole]))


def test_kernels_with_other_bits_are_found(monkeypatch):
    """A device whose rows are summed from the right."""
    device = rehearsal_device()

    def backwards(A, X, Y, *rest, **more):
        Y += X[:1] * 1e-3

    monkeypatch.setattr(device, "spmm_add", backwards, raising=False)
    case = next(gpu_steps.gpu_cases.sparse_cases(20, 10))
    assert gpu_steps.gpu_cases.compare(device, case)[0] is False


def test_a_job_that_fails_is_told():
    mpirun(1)
    code, found, printed = run_ranks(1, ["nothing", "cpu", "staged", "1"], 60)
    assert code != 0 and found is None and "KeyError" in printed
    assert run_ranks(1, ["overlap", "cpu", "staged", "1"], 0.01)[0] == -1


def test_without_a_launcher_jobs_of_one_rank_run(monkeypatch):
    """Other jobs say what is missing, and the step goes on."""
    for module in (gpu_tools, gpu_steps):
        monkeypatch.setattr(module, "find_launcher", lambda: None)
    code, found, printed = run_ranks(1, ["digests", "cpu", "staged", "1"], 120)
    assert code == 0 and set(gpu_worker.TASKS) <= set(found), printed
    assert run_ranks(2, ["digests", "cpu", "staged", "1"], 60)[2].startswith("no mpirun")
    gpu_steps.memory(Where(rehearsal_device(), True, rounds=1), report := Report())
    assert not report.failures and "out of memory" in report.notes[-1]


def test_without_a_gpu_every_step_says_so(tmp_path):
    if not isinstance(gpu_check.open_where(False, 1.0), str):
        pytest.skip("there is a GPU")
    assert gpu_check.main(["--step", "facts", "--out", str(tmp_path)]) == 1
    assert "CuPy" in results(tmp_path)["facts"]["failures"][0]


def test_times_are_medians():
    where = Where(rehearsal_device(), True, rounds=3)
    assert 0 < where.time(lambda: sum(range(1000))) < 1
