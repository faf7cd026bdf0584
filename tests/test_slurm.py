"""examples/jobs/slurm.sh under a real SLURM, which tests/slurm_here.sh makes; never in a site's own queue
unless LOCKSTEP_SLURM is set there by hand.

What nodes share has to be the project's folder: results lie in it while a test runs.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from jobs import ROOT
from mpi4py import MPI

from run import main

pytestmark = [pytest.mark.mpi_skip, pytest.mark.timeout(600)]
CASE = ["inputs/gcn.toml", "graph.nodes=600", "gnn.epochs=400", "output.plots=false", "--device=cpu"]
PMI = {"MPICH": "pmi2", "Open MPI": "pmix"}  # of srun, by mpi4py's MPI
# MPICH by UCX tells of itself more than SLURM 22.05 takes in one message.
NETWORK = {"MPIR_CVAR_CH4_NETMOD": "ofi"}


def nodes():
    """How many nodes a SLURM here has; 0 without one."""
    if not all(map(shutil.which, ("sbatch", "sinfo", "srun"))):
        return 0
    try:
        said = subprocess.run(
            ["sinfo", "-h", "-N", "-t", "idle,alloc,mix,comp", "-o", "%N"],
            capture_output=True,
            text=True,
            timeout=20,
        )
    except subprocess.TimeoutExpired:
        return 0
    return len(said.stdout.split()) if said.returncode == 0 else 0


@pytest.fixture
def shared():
    """A folder that all nodes see; skips without a SLURM of two nodes or more that these jobs may use."""
    if not os.environ.get("LOCKSTEP_SLURM"):
        pytest.skip(
            "LOCKSTEP_SLURM is not set (tests/slurm_here.sh env does it): no job goes into a site's queue"
        )
    if nodes() < 2:
        pytest.skip("no SLURM of two nodes answers (tests/slurm_here.sh makes one)")
    if MPI.get_vendor()[0] not in PMI:
        pytest.skip(f"which --mpi of srun suits {MPI.get_vendor()[0]} is not known")
    (ROOT / "runs").mkdir(exist_ok=True)
    folder = tempfile.mkdtemp(prefix="slurm-", dir=ROOT / "runs")
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def submit(folder, *options, arguments=CASE):
    """Put the job script into the queue; its number."""
    variables = {
        **os.environ, **NETWORK, "PYTHON": sys.executable, "LOCKSTEP_HOME": str(ROOT),
        "PYTHONPATH": str(ROOT), "SLURM_MPI_TYPE": PMI[MPI.get_vendor()[0]],
    }  # fmt: skip
    command = [
        "sbatch", "--parsable", "--nodes=2", "--ntasks-per-node=1", "--time=30", f"--output={folder}/log",
        *options, "examples/jobs/slurm.sh", *arguments, f"--out={folder}/out",
    ]  # fmt: skip
    said = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=30)
    assert said.returncode == 0, said.stderr
    return said.stdout.strip()


def until(happened, job, folder, limit_s=240):
    """Wait for what a job does; past the limit it is cancelled, and the test fails with its log."""
    end = time.monotonic() + limit_s
    while not happened():
        if time.monotonic() > end:
            subprocess.run(["scancel", job], timeout=30, check=False)
            pytest.fail(log_of(folder)[-4000:])
        time.sleep(0.3)


def text_of(path):
    """What a file says so far."""
    return Path(path).read_text(errors="replace") if os.path.exists(path) else ""


def log_of(folder):
    """What a job has printed so far."""
    return text_of(f"{folder}/log")


def digest(folder):
    with open(f"{folder}/result.json") as file:
        return json.load(file)["digest"]


def test_two_nodes_have_the_digest_of_one_rank(shared):
    job = submit(shared)
    until(lambda: "results in" in log_of(shared), job, shared)
    assert "(1 rank, " in log_of(shared).split("hosts: ")[1].split("\n")[0]
    assert main([*CASE, f"--out={shared}/one"]) == 0
    assert digest(f"{shared}/out") == digest(f"{shared}/one")


def test_a_job_that_is_asked_to_stop_comes_back_and_ends_with_the_same_digest(shared):
    """As --signal does before the time limit; the second start is on one node."""
    longer = [*CASE, "gnn.epochs=1500"]
    job = submit(shared, arguments=longer)
    until(lambda: text_of(f"{shared}/out/metrics.csv").count("train,") > 5, job, shared)
    subprocess.run(["scancel", "--signal=USR1", "--batch", job], timeout=30, check=True)
    until(lambda: "back into the queue" in log_of(shared), job, shared, 60)
    fewer = ["scontrol", "update", f"JobId={job}", "NumNodes=1", "NumTasks=1"]
    until(lambda: subprocess.run(fewer, timeout=30, capture_output=True).returncode == 0, job, shared, 60)
    until(lambda: "results in" in log_of(shared), job, shared)
    said = " ".join(log_of(shared).split())  # lines are broken where the folder's name is long
    assert "resumed from " in said and "which 2 rank(s) wrote" in said
    assert main([*longer, f"--out={shared}/one"]) == 0
    assert digest(f"{shared}/out") == digest(f"{shared}/one")


def test_srun_without_a_pmi_is_refused(shared):
    command = ["srun", "--nodes=2", "--ntasks=2", "--mpi=none", sys.executable, "run.py", *CASE]
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}
    if MPI.get_vendor()[0] != "MPICH":
        pytest.skip("other MPIs refuse to start, in their own words")
    said = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=120)
    assert said.returncode == 2
    assert "lockstep: error: srun started 2 ranks, but MPI sees 1: " in said.stderr
