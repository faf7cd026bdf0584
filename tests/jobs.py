"""Programs started by tests: with a time limit, under mpirun, and never left behind."""

import atexit
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LAUNCHERS = ("PMI", "OMPI_", "MPI_LOCAL", "MPIEXEC", "HYDRA", "PRTE", "SLURM_")
STARTER = ROOT / "tests" / "starter.py"
PROGRAM, SKEWED = ROOT / "run.py", ROOT / "tests" / "skewed.py"
# Of MPICH: ranks that wait for each other sleep, and let the others run.
SLEEP = {"MPIR_CVAR_POLLS_BEFORE_YIELD": "1", "MPIR_CVAR_ENABLE_HEAVY_YIELD": "1"}
HEARD = {"LOCKSTEP_DATA", "LOCKSTEP_FAULT", "LOCKSTEP_TESTING"}  # variables that no library reads


def mpirun(ranks):
    """The start of a command line: the mpirun beside Python, else the one on PATH; skips without any."""
    beside = Path(sys.executable).parent / "mpirun"
    found = str(beside) if beside.exists() else shutil.which("mpirun")
    if found is None:
        pytest.skip(f"no mpirun beside {sys.executable} or on PATH")
    return [found, *oversubscribe(found), "-np", str(ranks)]


def split_over(ranks):
    """What has a network, or the graphs of a training, split over the ranks, however small."""
    return f"parallel.spatial={ranks}"


@cache
def oversubscribe(launcher):
    """What Open MPI wants to hear before it starts more ranks than there are cores, or runs as root."""
    said = subprocess.run([launcher, "--version"], capture_output=True, text=True, timeout=60, check=False)
    return ["--oversubscribe", "--allow-run-as-root"] if "Open MPI" in said.stdout else []


@cache
def starter(odd):
    """Where tests/starter.py listens for ranks of even or of odd numbers; started at the first call."""
    place = Path(tempfile.mkdtemp(prefix="lockstep-starter-")) / "door"
    command = [sys.executable, STARTER, "listen", place, *([] if odd else ["plots"])]
    process = subprocess.Popen(
        command, env=environment(), start_new_session=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout.read(1), "tests/starter.py did not start"
    atexit.register(process.communicate)  # its input ends, and so does it
    return place


def can_fork():
    """Where tests/starter.py can be asked; not where coverage is measured, which is begun in each process."""
    measured = any(name.startswith("COVERAGE_") for name in os.environ)
    return hasattr(os, "pidfd_open") and not measured


def quickly(command, cwd, variables, forked):
    """The command; where it runs run.py of this checkout, by a process that has loaded its libraries.

    As it is where variables are given that are read as libraries are loaded, and under the mpirun of another
    MPI than MPICH's wheel.

    forked   also `-c TEXT`, `-m MODULE` and skewed.py
    """
    at = command.index(sys.executable) if sys.executable in command else len(command)
    rest = list(map(str, command[at + 1 :]))
    mpich = at == 0 or (command[0] == str(Path(sys.executable).parent / "mpirun") and at == 3)
    heard = HEARD | {"PYTHONPATH"} if forked else HEARD
    if not (rest and mpich and can_fork() and variables.keys() <= heard):
        return command
    if Path(cwd, rest[0]) == PROGRAM:
        del rest[0]
    elif not (forked and (rest[0] in ("-c", "-m") or Path(cwd, rest[0]) == SKEWED)):
        return command
    places = [starter(False), *([starter(True)] if at else [])]
    return [*command[:at], sys.executable, "-I", "-S", STARTER, "ask", places[0], places[-1], *rest]


def forking_python(folder):
    """Puts a command `python` into a folder; where they can be, run.py, -c and -m app fork, without plots."""
    launcher = Path(sys.executable).parent / "mpirun"
    if launcher.exists() and can_fork():
        # The second place has matplotlib: not for rank 0.
        asks = f"exec {sys.executable} -I -S {STARTER} ask {starter(True)} {starter(False)} "
        plain = f'exec {sys.executable} "$@"'
        which = f'case "$1" in run.py) shift;; -c) ;; -m) [ "$2" = app ] || {plain};; *) {plain};; esac'
        path = folder / "python"
        path.write_text("\n".join(["#!/bin/sh", which, asks + '"$@"', ""]))
        path.chmod(0o755)


def environment():
    """This one's variables without what a launcher left in them."""
    return {name: value for name, value in os.environ.items() if not name.startswith(LAUNCHERS)}


def waits(command):
    """How ranks wait: asleep where the workers of a session may start more of them than there are cores."""
    ranks = int(command[command.index("-np") + 1]) if "-np" in command else 1
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    return SLEEP if ranks > 1 and ranks * workers > (os.cpu_count() or 1) else {}


def run_job(command, limit_s=60, cwd=ROOT, fresh=False, forked=False, **variables):
    """Run a command to its end; returns its exit code and all it printed. Past the limit the test fails.

    fresh       Python is started as a user does, libraries and all, also where that could be had sooner
    forked      it is had sooner also of what is not run.py, and does not care what is loaded already
    variables   of the environment, which is otherwise this one without what a launcher left in it
    """
    command = list(command)
    given = {**waits(command), **environment(), **variables}
    if not fresh:
        command = quickly(command, cwd, variables, forked)
    with subprocess.Popen(
        [str(part) for part in command], cwd=cwd, env=given, stdin=subprocess.DEVNULL,
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


def digest_after_a_stop(command, folder, step):
    """The digest of a run that a signal ends at a step, and that goes on; command: without its folder."""
    command = [sys.executable, "run.py", *command, "output.plots=false", "--out", folder]
    variables = {
        "LOCKSTEP_TESTING": "1",
        "LOCKSTEP_FAULT": f"signal:rank=0,step={step},code={signal.SIGTERM}",
    }
    code, printed = run_job(command, limit_s=120, **variables)
    assert code == 3, printed
    code, printed = run_job([*command, "--resume"], limit_s=120)
    assert code == 0, printed
    return json.loads((Path(folder) / "result.json").read_text())["digest"]
