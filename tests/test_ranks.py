"""The suite again on 2, 3 and 4 ranks, and the parallel half of conftest.py: what it must catch."""

import shutil
import sys
import time
from pathlib import Path

import pytest
from jobs import ROOT, mpirun, run_job

pytestmark = pytest.mark.mpi_skip
TESTS = Path(__file__).parent
HOST_ONLY = "not stand-in and not [plain and not [gpu"
PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")


@pytest.mark.timeout(960)
@pytest.mark.parametrize(
    ("ranks", "options"),
    [
        (2, ["-k", HOST_ONLY, "--share=1/6"]), (3, ["-k", HOST_ONLY, "--files=2/2", "--share=2/8"]),
        (4, ["-k", HOST_ONLY, "--files=1/2", "--share=5/8"]),
        (2, ["-k", "stand-in or [gpu", "--files=1/2", "--share=1,4/6"]),
        pytest.param(2, ["-k", HOST_ONLY, "--share=2,3,4,5,6/6"], marks=pytest.mark.long),
        pytest.param(3, ["-k", HOST_ONLY, "--share=1/3"], marks=pytest.mark.long),
        pytest.param(4, ["-k", HOST_ONLY, "--share=2/3"], marks=pytest.mark.long),
        pytest.param(2, ["-k", "stand-in or [gpu", "--share=1/3"], marks=pytest.mark.long),
    ],
)  # fmt: skip
def test_the_suite_on_ranks(ranks, options):
    """For time a sixth of the tests on 2 ranks, an eighth of half the files on 3, of the others on 4, which
    mostly say what 2 do; of stand-in and GPU a third of half the files on 2. A file that is left out is not
    imported.

    Where long tests run, the others on 2 too, and a third on 3, on 4, and of stand-in and GPU.
    """
    command = [*mpirun(ranks), *PYTEST, "--with-mpi", "-x", *options, "tests"]
    code, printed = run_job(command, limit_s=900, forked=True, LOCKSTEP_LONG="0")
    assert code == 0, printed[-6000:]


@pytest.fixture
def session(tmp_path):
    """Run a test file with this suite's conftest.py on 2 ranks: exit code, output, seconds."""
    shutil.copy(TESTS / "conftest.py", tmp_path)

    def run(text, *options):
        (tmp_path / "test_planted.py").write_text("from mpi4py import MPI\nimport pytest\n" + text)
        start = time.monotonic()
        command = [*mpirun(2), *PYTEST, *options, "test_planted.py"]
        code, printed = run_job(command, cwd=tmp_path, forked=True, PYTHONPATH=f"{ROOT}:{TESTS}")
        return code, printed, time.monotonic() - start

    return run


RANK = "rank = MPI.COMM_WORLD.Get_rank()\n"


def test_a_session_that_passes(session):
    code, printed, _ = session(
        "def test(group):\n    group.barrier()\n    assert group.size == 2\n", "--with-mpi"
    )
    assert code == 0, printed


def test_a_failure_on_one_rank_ends_all(session):
    text = RANK + "def test(group):\n    assert rank == 0, 'planted ' + 'failure'\n    group.barrier()\n"
    code, printed, seconds = session(text, "--with-mpi")
    assert code != 0
    assert seconds < 60
    assert "FAILED on rank 1 of 2" in printed
    assert "planted failure" in printed


def test_a_failing_import_on_one_rank_ends_all(session):
    text = RANK + "assert rank == 0, 'planted'\ndef test(group):\n    group.barrier()\n"
    code, printed, seconds = session(text, "--with-mpi")
    assert code != 0
    assert seconds < 60
    assert "FAILED on rank 1 of 2: collecting" in printed


def test_a_failing_fixture_on_one_rank_ends_all(session):
    fixture = "@pytest.fixture\ndef broken():\n    yield\n    assert rank == 1, 'planted'\n"
    text = RANK + fixture + "def test(broken): pass\ndef test_more(group):\n    group.barrier()\n"
    code, printed, _ = session(text, "--with-mpi")
    assert code != 0
    assert "FAILED on rank 0 of 2" in printed
    assert "(teardown)" in printed


def test_a_rank_that_hangs_ends_all(session):
    text = RANK + "def test(group):\n    if rank == 0:\n        group.barrier()\n"
    code, printed, _ = session(text, "--with-mpi", "--timeout=3")
    assert code != 0
    assert "Timeout" in printed


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("@pytest.mark.mpi\ndef test(): pass\n", []),  # --with-mpi forgotten
        ("@pytest.mark.mpi_skip\ndef test(): pass\n", ["--with-mpi"]),
        ("@pytest.mark.mpi_skip\ndef test(): pass\n", []),
        ("def test(): pass\n", ["--with-mpi", "-k", "other"]),
        ("", ["--with-mpi"]),
    ],
)
def test_a_session_without_a_passed_test_fails(session, text, options):
    code, printed, _ = session(text, *options)
    assert code != 0
    assert "no test passed in this parallel session" in printed


def test_tests_for_one_process_are_skipped(session):
    text = "@pytest.mark.mpi_skip\ndef test(): assert False\ndef test_more(): pass\n"
    for options in ([], ["--with-mpi"]):
        code, printed, _ = session(text, *options)
        assert code == 0, printed
        assert "1 passed, 1 skipped" in printed
