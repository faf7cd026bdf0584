"""bench/gpu_check.py: a rehearsal of every step, what is kept of it, and what is told."""

import json
from pathlib import Path

import pytest
from jobs import mpirun

from bench import gpu_check, gpu_steps
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


def test_the_steps_of_several_ranks(tmp_path):
    mpirun(2)
    assert rehearse(tmp_path, "--only", "digests", "memory", "overlap") == 0
    found = results(tmp_path)
    assert len({tuple(row[3:6]) for row in found["digests"]["tables"][0]["rows"]}) == 1
    assert "out of memory" in found["memory"]["notes"][0]


def test_what_was_done_is_kept(tmp_path, monkeypatch):
    calls = []

    def step(where):
        calls.append(where)
        return Report(failures=[] if len(calls) > 1 else ["planted"])

    monkeypatch.setattr(gpu_check, "STEPS", {"one": ("One", step, 1), "two": ("Two", broken, 1)})
    assert rehearse(tmp_path) == 1
    assert results(tmp_path)["two"]["failures"] == ["RuntimeError: planted"]
    assert rehearse(tmp_path) == 1 and len(calls) == 2  # it had failed
    assert rehearse(tmp_path) == 1 and len(calls) == 2  # it holds
    assert rehearse(tmp_path, "--minutes", "0.1") == 1 and len(calls) == 2


def broken(where):
    raise RuntimeError("planted")


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


def test_without_a_gpu_every_step_says_so(tmp_path):
    if not isinstance(gpu_check.open_where(False, 1.0), str):
        pytest.skip("there is a GPU")
    assert gpu_check.main(["--step", "facts", "--out", str(tmp_path)]) == 1
    assert "CuPy" in results(tmp_path)["facts"]["failures"][0]


def test_times_are_medians():
    where = Where(rehearsal_device(), True, rounds=3)
    assert 0 < where.time(lambda: sum(range(1000))) < 1
