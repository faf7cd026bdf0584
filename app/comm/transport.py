"""What the MPI library is, which GPU a rank gets, and whether MPI may touch device memory.

A library that is handed device memory which it cannot read ends in a segmentation fault, and Open MPI answers
yes also where there is no driver. So what it states is confirmed by a probe (app/comm/probe.py): two ranks of
a job of their own, which may crash without harm, send device arrays to each other.
"""

import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

from app.errors import CaseError

PROBE_SECONDS, VERSION_SECONDS = 90, 30
SAID = "probe: "
PROBED = f"{SAID}device memory arrived"
LONGEST = 200  # characters of what one rank tells the others
# What launchers tell their processes: a job started from one of these must not take itself for a part of it.
LAUNCHERS = (
    "OMPI_", "ORTE_", "PMI_", "PMIX_", "PRTE_", "MPI_", "HYDI_", "HYDRA_", "SLURM_", "PALS_", "JSM_", "LSB_",
)  # fmt: skip
USERS = ("MCA_", "ALLOW_RUN_AS_ROOT")  # in the names of what users tell launchers
# MCA parameters that Open MPI 4's launcher, or MPI_Init without one, sets: they name that job's parts.
OF_A_JOB = re.compile(
    r"OMPI_MCA_(ess|ess_base_\w+|pmix|shmem_RUNTIME_QUERY_hint|initial_wdir|mpi_oversubscribe|orte_(app_num|"
    r"bound_at_launch|ess_\w+|hnp_uri|jobfam_session_dir|launch|local_daemon_uri|num_nodes|"
    r"precondition_transports|top_session_dir))"
)


@dataclass(frozen=True)
class Transport:
    """How device arrays reach MPI, and why so."""

    direct: bool
    reason: str

    def __str__(self) -> str:
        return f"{'direct' if self.direct else 'staged through pinned host memory'}: {self.reason}"


def local_rank(comm: MPI.Comm) -> int:
    """This rank's number among those that share its memory. Ranks: all call (Split_type)."""
    node = comm.Split_type(MPI.COMM_TYPE_SHARED, comm.Get_rank())
    rank = node.Get_rank()
    node.Free()
    return rank


def mpi_library() -> str:
    """Name and version of the MPI library, on one line."""
    return MPI.Get_library_version().split("\n")[0].strip("\x00 ")


def mpi_takes_device_memory() -> str:
    """Where the MPI library states support for CUDA memory, "" where it does not."""
    info = MPI.COMM_WORLD.Get_info()
    kinds = info.Get("mpi_memory_alloc_kinds") or ""  # MPI 4.1, section 12.4.3
    info.Free()
    if "cuda" in kinds:
        return "mpi_memory_alloc_kinds"
    if _query():
        return "MPIX_Query_cuda_support"
    for library, switch in (("Intel", "I_MPI_OFFLOAD"), ("CRAY", "MPICH_GPU_SUPPORT_ENABLED")):
        if library in mpi_library() and os.environ.get(switch, "0") != "0":
            return switch
    return ""


def _query() -> bool:
    """What MPIX_Query_cuda_support of the loaded library answers; False where it has none.

    mpi4py loads the library privately, so it is found by the file that it was loaded from.
    """
    try:
        lines = Path("/proc/self/maps").read_text("utf-8").splitlines()
    except OSError:
        return False
    for path in sorted({line.split()[-1] for line in lines if "/libmpi" in line}):
        try:
            query = ctypes.CDLL(path).MPIX_Query_cuda_support
        except (OSError, AttributeError):
            continue
        query.argtypes, query.restype = [], ctypes.c_int
        return bool(query())
    return False


def probe() -> str:
    """What went wrong when two ranks of a job of their own sent each other device memory; "": nothing."""
    launcher = find_launcher()
    if launcher is None:
        return "no mpirun to probe it with"
    worker = [sys.executable, "-m", "app.comm.probe"]
    try:
        command = [launcher, *launcher_flags(launcher), "-np", "2", *worker]
        code, printed, errors = run_apart(command, job_environment(), PROBE_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"the probe did not end: {type(error).__name__}"
    if printed.count(PROBED) == 2:
        return ""
    said = next((line for line in errors.splitlines() if line.startswith(SAID)), "")
    return f"the probe failed with code {code}" + (f": {said.removeprefix(SAID)}" if said else "")


def find_launcher() -> str | None:
    """mpirun: beside this Python, else on the PATH; None: nowhere."""
    beside = str(Path(sys.executable).parent)
    return shutil.which("mpirun", path=os.pathsep.join([beside, os.environ.get("PATH", "")]))


def job_environment() -> dict[str, str]:
    """This process's environment without what its launcher told it, for a job of its own.

    What the user tells a launcher stays: MCA parameters, and that root may start jobs.
    """
    return {
        name: value
        for name, value in os.environ.items()
        if not OF_A_JOB.fullmatch(name)
        and (any(part in name for part in USERS) or not name.startswith(LAUNCHERS))
    }


def launcher_flags(launcher: str) -> list[str]:
    """What Open MPI wants to hear before it starts more ranks than there are slots, or runs as root.

    Raises OSError, subprocess.TimeoutExpired
    """
    _, version, _ = run_apart([launcher, "--version"], job_environment(), VERSION_SECONDS)
    ours = "Open MPI" in version or "OpenRTE" in version
    return ["--oversubscribe", "--allow-run-as-root"] if ours else []


def run_apart(command: list[str], env: dict[str, str], seconds: float) -> tuple[int, str, str]:
    """Exit code, output and errors of a command; one that does not end is killed with its process group.

    Launchers give ranks groups of their own, and end them when the launcher is gone.

    Raises OSError, subprocess.TimeoutExpired
    """
    root, pipe = Path(__file__).parent.parent.parent, subprocess.PIPE
    with subprocess.Popen(
        command,
        env=env,
        cwd=root,
        stdin=subprocess.DEVNULL,
        stdout=pipe,
        stderr=pipe,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as job:
        try:
            printed, errors = job.communicate(timeout=seconds)
        except BaseException:
            os.killpg(job.pid, signal.SIGKILL)
            raise
    return job.returncode, printed, errors


def agreed_statement(comm: MPI.Comm) -> str:
    """mpi_takes_device_memory of rank 0 where every rank's library states it, else "". Ranks: all call."""
    own = mpi_takes_device_memory()
    everywhere = np.zeros(1, dtype=np.int64)
    comm.Allreduce(np.array([bool(own)], dtype=np.int64), everywhere, op=MPI.MIN)
    return _told(comm, own) if everywhere[0] else ""


def _told(comm: MPI.Comm, text: str) -> str:
    """Up to LONGEST characters of rank 0's text, on all ranks. Ranks: all call."""
    line = bytearray(text.encode("ascii", "replace")[:LONGEST].ljust(LONGEST))
    comm.Bcast(line, root=0)
    return line.decode().rstrip()


def choose_transport(wanted: str, device: Any, comm: MPI.Comm) -> Transport:
    """Whether device arrays go to MPI as they are, or through the host.

    wanted   "auto": direct where the library states support and a probe confirms it; "direct"; "staged"
    Ranks    all call; the same on all. Raises CaseError, on all alike
    """
    if device.direct:
        return Transport(True, "arrays lie on the host")
    if wanted == "staged":
        return Transport(False, "parallel.transport")
    stated = agreed_statement(comm)
    if wanted == "direct":
        if not stated:
            raise CaseError(
                'parallel.transport: "direct" needs an MPI library that takes CUDA memory; this one '
                'does not say so: use "staged"'
            )
        return Transport(True, f"parallel.transport; stated by {stated}")
    if not stated:
        return Transport(False, f"{mpi_library()} states no support for CUDA memory")
    if comm.Get_size() == 1:
        return Transport(True, "one rank")
    refusal = _told(comm, probe() if comm.Get_rank() == 0 else "")
    if refusal:
        return Transport(False, f"{stated} states support for CUDA memory, but {refusal}")
    return Transport(True, f"stated by {stated}, confirmed by a probe")
