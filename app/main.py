"""From a command to its result: the case, the ranks, the device, the task it names, result.json."""

import importlib.metadata
import time

from mpi4py import MPI

from app import cli
from app.casetext import case_digest, to_toml
from app.comm.group import Group
from app.comm.guard import abort, abort_on_uncaught, check_same, raise_together
from app.comm.transport import choose_transport
from app.config import Case
from app.device import HostDevice, check_octets, open_device
from app.errors import CaseError, LockstepError
from app.graphs.readers import open_edges
from app.log import Log
from app.output import RunFolder, phase_table
from app.problems.table import make_problem
from app.recipes import find_recipe
from app.rl.select import find_rule
from app.tasks.context import Context
from app.tasks.quality import run_quality
from app.tasks.solve import run_solve
from app.tasks.train import run_train
from app.text import printable

TASKS = {"train": run_train, "solve": run_solve, "study": run_quality}


def run(command: cli.Command) -> int:
    """Run a parsed command on all ranks of this job; returns the exit code."""
    abort_on_uncaught()
    rank = MPI.COMM_WORLD.Get_rank()
    try:
        return _run(command)
    except LockstepError as error:
        # Raised on all ranks alike: raise_together saw to that.
        if rank == 0:
            cli.say(f"lockstep: error: {error}", error=True)
        return error.exit_code
    except (Exception, KeyboardInterrupt, SystemExit) as error:
        abort(error)
        raise


def _run(command: cli.Command) -> int:
    _check_launch(MPI.COMM_WORLD.Get_size())
    case, rank = command.case, MPI.COMM_WORLD.Get_rank()
    # Machines of one job may differ: what fails on some ranks only is raised on all.
    with raise_together(Group(MPI.COMM_WORLD, HostDevice()), "opening the device"):
        device = open_device(command.device, rank, case.run.portable, case.run.reproducible)
        direct = choose_transport(case.parallel.transport, device)
        if case.run.reproducible:
            check_octets(device)
    group = Group(MPI.COMM_WORLD, device, direct, case.run.reproducible)
    check_same(group, _fingerprint(case), "ranks of one job must run the same", CaseError)
    with raise_together(group, "checking the case"):
        _check_names(case)
        if command.dry_run and group.rank == 0:
            _print_plan(group, command)
    if command.dry_run:
        return 0
    folder = RunFolder(group, command.out, command.overwrite)
    folder.begin(case, device)
    log = Log(group.rank == 0, command.out, case.output.log_seconds)
    log.info("Lockstep %s: %s, task %s, seed %d", cli.VERSION, case.run.name, case.run.task, case.seed)
    log.info("%d rank%s, %s", group.size, "s" if group.size > 1 else "", device.describe())
    start = time.perf_counter()
    result = TASKS[case.run.task](Context(case, group, log, folder))
    seconds = time.perf_counter() - start
    phases = phase_table(group, log.seconds)
    folder.finish(
        {
            "task": case.run.task, "problem": case.problem.name, "seed": case.seed, **result,
            "phases": phases, "seconds": seconds, "ranks": group.size, "backend": device.name,
        }
    )  # fmt: skip
    log.info("digest %s", result["digest"])
    log.info("done in %.1f s; results in %s", seconds, printable(command.out))
    log.close()
    return 0


def _check_launch(size: int) -> None:
    """Refuse N single-rank programs: the mpirun of one MPI with the library of another."""
    expected = cli.launcher_size()
    if expected is not None and expected != size:
        raise CaseError(
            f"the launcher started {expected} ranks, but MPI sees {size}: this mpirun belongs to another "
            "MPI than mpi4py's; use the mpirun of the same environment"
        )


def _fingerprint(case: Case) -> str:
    """What must agree on all ranks before they can take equal decisions."""
    versions = " ".join(f"{m} {importlib.metadata.version(m)}" for m in ("numpy", "scipy", "mpi4py"))
    return f"case {case_digest(case)[:16]}, lockstep {cli.VERSION}, {versions}"


def _check_names(case: Case) -> None:
    """Refuse names that no table knows before any work is done."""
    make_problem(case.problem.name)
    find_rule(case.select.rule)
    for recipe in case.study.recipes:
        find_recipe(recipe)


def _print_plan(group: Group, command: cli.Command) -> None:
    """--dry-run: the case with its defaults, the headers of its files, and where results would go."""
    print(to_toml(command.case))
    print(f"# ranks: {group.size}, {group.device.describe()}")
    print(f"# results would go to {printable(command.out)}")
    for path in command.case.graph.path:
        source = open_edges(path, command.case.graph.format)
        nodes = "node ids as they come" if source.nodes is None else f"{source.nodes} nodes"
        print(f"# {printable(source.name)}: {source.format}, {nodes}")
