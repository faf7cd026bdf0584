"""Programs started by tests: with a time limit, under mpirun, and never left behind."""

import os
import shutil
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LAUNCHERS = ("PMI", "OMPI_", "MPI_LOCAL", "MPIEXEC", "HYDRA", "PRTE", "SLURM_")


def mpirun(ranks):
    """The start of a command line: the mpirun beside Python, else the one on PATH; skips without any."""
    beside = Path(sys.executable).parent / "mpirun"
    found = str(beside) if beside.exists() else shutil.which("mpirun")
    if found is None:
        pytest.skip(f"no mpirun beside {sys.executable} or on PATH")
    return [found, *oversubscribe(found), "-np", str(ranks)]


@cache
def oversubscribe(launcher):
    """What Open MPI wants to hear before it starts more ranks than there are cores, or runs as root."""
    said = subprocess.run([launcher, "--version"], capture_output=True, text=True, timeout=60, check=False)
    return ["--oversubscribe", "--allow-run-as-root"] if "Open MPI" in said.stdout else []


def run_job(command, limit_s=60, cwd=ROOT, **variables):
    """Run a command to its end; returns its exit code and all it printed. Past the limit the test fails.

    variables   of the environment, which is otherwise this one without what a launcher left in it
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(LAUNCHERS)}
    with subprocess.Popen(
        [str(part) for part in command], cwd=cwd, env={**kept, **variables}, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
    ) as job:  # fmt: skip
        try:
            printed, _ = job.communicate(timeout=limit_s)
        except BaseException as error:
            os.killpg(job.pid, signal.SIGKILL)
            printed, _ = job.communicate()
            if isinstance(error, subprocess.TimeoutExpired):
                text = printed.decode(errors="replace")[-4000:]
                pytest.fail(f"{' '.join(map(str, command))}: not done after {limit_s} s\n{text}")
            raise
    return job.returncode, printed.decode(errors="replace")
