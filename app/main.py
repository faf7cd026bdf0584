"""From a command to its result: the case, the ranks, the device, the task it names, result.json."""

import os
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from mpi4py import MPI

from app import aside, cli, stopping
from app.bounds import paced
from app.case.config import Case, graph_tables, is_forecast, is_relational
from app.case.file import named_files
from app.case.graph import WORDS
from app.case.text import to_toml
from app.checkpoint import store
from app.checkpoint.checkpoints import Checkpoints, Stops
from app.checkpoint.signals import Signals, heard_early, leave_if_interrupted, let_interrupts_raise
from app.comm.grid import fit_groups
from app.comm.group import Group
from app.comm.guard import (
    abort,
    abort_on_uncaught,
    abort_short,
    agree_on_command,
    end_all,
    leave_together,
    raise_together,
)
from app.device import product_rate
from app.errors import (
    CaseError,
    DiskFull,
    Diverged,
    GraphError,
    Halted,
    LockstepError,
    OutOfMemory,
    Stopped,
    disk_full,
)
from app.graphs.formats.readers import open_edges
from app.graphs.formats.source import Limits
from app.graphs.nodes.files import check_node_file
from app.log import Log
from app.model.fits import ranks_here, refuse_too_large, refuse_without_room
from app.model.plan import memory_line, plan_lines
from app.model.whole import refuse_spatial
from app.native.countdown import countdown
from app.output import RunFolder, phase_table
from app.summary import advice, places, remarks, say_end, say_start
from app.tables import Table
from app.tasks.context import Context, open_group
from app.tasks.refused import check_names
from app.text import printable
from app.watchdog import watch

Task = Callable[[Context], dict[str, Any]]
TASKS = Table(
    {
        "train": "app.tasks.train:run_train",
        "solve": "app.tasks.solve:run_solve",
        "classify": "app.tasks.classify:run_classify",
        "study": "app.tasks.study:run_study",
        "relations": "app.tasks.rgcn:run_rgcn",  # classify of gnn.model = "rgcn"
        "forecast": "app.tasks.forecast:run_forecast",  # classify of gnn.level = "forecast"
    }
)
# What reads the weights that a table names.
WEIGHTS = Table(
    {
        "gnn": "app.gnn.saved:load_model",
        "rgcn": "app.gnn.rgcn.saved:load_rgcn",
        "forecast": "app.gnn.forecast.saved:load_forecaster",  # of gnn.weights
        "policy": "app.rl.weights:load_weights",
    }
)


def run(command: cli.Command) -> int:
    """Run a parsed command on all ranks of this job; returns the exit code."""
    abort_on_uncaught()
    rank = MPI.COMM_WORLD.Get_rank()
    leave_if_interrupted(rank, end_all)
    watch(command.case.run.watchdog_seconds, f"[rank {rank}]", countdown)
    needs: list[str] = []  # what the case needs by estimate
    try:
        let_interrupts_raise()
        return _run(command, needs)
    except Stopped as stopped:
        if rank == 0:
            cli.say(f"lockstep: {stopped}")
        return stopped.exit_code
    except LockstepError as error:
        # Raised on all ranks alike: raise_together saw to that.
        if rank == 0:
            more = needs if isinstance(error, OutOfMemory) else _advice(error, command)
            cli.say("; ".join([f"lockstep: error: {error}", *more]), error=True)
        leave_together(MPI.COMM_WORLD)
        return error.exit_code
    except MemoryError as error:  # CuPy's is one too. Only this rank may have seen it: it ends the others
        abort_short(memory_line(command.case, MPI.COMM_WORLD.Get_size(), error))
        raise
    except KeyboardInterrupt:  # of what writes no checkpoint
        abort_short("interrupted")
        raise
    except (Exception, SystemExit) as error:
        full = disk_full(error)
        if full:  # seen by the rank that writes alone
            abort_short("; ".join([str(full), *_advice(full, command)]))
        abort(error)
        raise
    finally:
        cli.end_output()


def refuse(error: LockstepError) -> int:
    """End a rank whose command line or case cannot be read, and with it the others; the exit code."""
    abort_on_uncaught()
    try:
        agree_on_command(MPI.COMM_WORLD, str(error))
    except LockstepError as shared:
        error = shared
    cli.say(f"lockstep: error: {error}", error=True)
    leave_together(MPI.COMM_WORLD)  # with those that could read it, and have heard of this
    cli.end_output()
    return error.exit_code


def leave(code: int) -> int:
    """The exit code.

    Where a library still works for a search that has been closed, or a pass for tools that nobody waits for,
    and hears nobody, the process ends here, since Python would wait for it.
    """
    if paced.at_work() or aside.at_work():
        MPI.Finalize()
        os._exit(code)
    return code


def _advice(error: LockstepError, command: cli.Command) -> list[str]:
    """What helps against an error, or is left of the run, where that is more than the error says."""
    if isinstance(error, Diverged):
        left = store.listed(os.path.join(command.out, store.FOLDER))
        return [f"the checkpoint {store.name_of(left[0])} is of before" if left else "no checkpoint is left"]
    resumes = isinstance(error, DiskFull) and command.case.checkpoint.enabled
    return ["make room, then --resume goes on from the newest checkpoint there is"] if resumes else []


def _run(command: cli.Command, needs: list[str]) -> int:
    """Have all ranks agree, check the case, then print its plan, check an answer or run its task.

    needs   takes what the case needs by estimate, for who tells of a lack of memory
    Ranks   all call
    """
    _check_launch(MPI.COMM_WORLD.Get_size())
    agree_on_command(MPI.COMM_WORLD)
    case = command.case
    group = open_group(MPI.COMM_WORLD, case, command.allow_mixed)
    plan = "", 0
    with raise_together(group, "checking the case"):
        check_names(case)
        tuning = (case.run.task, case.study.kind) == ("study", "tune")  # groups of ranks train trials
        if case.run.task == "classify":
            refuse_spatial(case, group.size)
        else:
            fit_groups(group.size, group.size if tuning else case.parallel.data, case.parallel.spatial)
        if group.rank == 0:
            _check_inputs(case, command.out)
            if command.dry_run:
                plan = _print_plan(group, command)
    if command.dry_run:
        _print_room(group, case, *plan)
        return 0
    if command.check:
        from app.tasks.check import run_check  # of no other command

        run_check(Context(case, group, Log(group.rank == 0, None), None), command.check)
        return 0
    found, warned = refuse_too_large(group, case)
    needs += found
    folder = RunFolder(group, command.out, command.overwrite, command.resume, command.force_unlock)
    try:
        return _run_in(folder, command, group, warned)
    except (CaseError, GraphError):
        folder.withdraw()
        raise
    finally:
        folder.release()


def _run_in(folder: RunFolder, command: cli.Command, group: Group, warned: list[str]) -> int:
    """Run the task of a case in a folder that is this job's; returns the exit code.

    warned   what the log has to say before anything else
    Ranks    all call
    """
    with ExitStack() as held:
        checkpoints = Checkpoints(group, command.case, command.out, _stops(command, group, held))
        mark, said = checkpoints.resume() if command.resume else (None, [])
        if mark is None and command.resume:
            with raise_together(group, "looking for an earlier run"):
                folder.check_same_run(command.case)
        if command.resume and folder.complete(command.case):
            cli.say(f"{printable(command.out)}: complete already; nothing to resume")
            return 0
        folder.begin(command.case, group.device)
        checkpoints.reads(folder.inputs)
        with raise_together(group, "opening the log"):
            try:
                log = Log(group.rank == 0, command.out, command.case.output.log_seconds, mark=mark)
            except (PermissionError, IsADirectoryError) as error:
                raise CaseError(f"{error.filename}: cannot write there: {error.strerror}") from None
        held.callback(log.close)
        group.device.tell = log.info
        checkpoints.follow(log)
        said = [*said, *(f"warning: {line}" for line in warned)]
        context = Context(
            command.case, group, log, folder, checkpoints, here=ranks_here(group), ranks=group.size
        )
        _work(context, said)
    return 0


def _stops(command: cli.Command, group: Group, held: ExitStack) -> Stops:
    """What ends the run early: signals, where it writes checkpoints, and a limit of hours."""
    if not command.case.checkpoint.enabled:
        if command.max_hours:
            raise CaseError("--max-hours: stops with a checkpoint, which checkpoint.enabled = false forbids")
        return Stops()
    signals = held.enter_context(Signals(_end_at_once, speaks=group.rank == 0, for_good=heard_early()))
    again = f"mpirun -np {group.size} {command.again}" if group.size > 1 else command.again
    stops = Stops(signals, 3600 * command.max_hours, cli.BEGUN, printable(again))
    if stops.limit_s:
        stopping.end_at(stops.begun + stops.limit_s - stops.margin_s)
    return stops


def _end_at_once() -> None:
    """At a second SIGINT."""
    sys.stderr.write("lockstep: interrupted again: ended at once\n")
    sys.stderr.flush()
    MPI.COMM_WORLD.Abort(1)


def _work(context: Context, said: list[str]) -> None:
    """The task from its first line in the log to result.json. Ranks: all call."""
    case, group, log, folder = context.case, context.group, context.log, context.folder
    for line in (folder.said, *said):
        if line:
            log.info("%s", line)
    log.info("Lockstep %s: %s, task %s, seed %d", cli.VERSION, case.run.name, case.run.task, case.seed)
    log.info("%d rank%s, %s", group.size, "s" if group.size > 1 else "", group.device.describe())
    if group.device.name != "cpu":
        log.info("messages %s", group.transport)
    log.info("sparse product: %s, %.1f GB/s gathered", group.device.product, product_rate(group.device))
    where = places(group)
    say_start(log, group, case, where)
    task = _task_of(case)
    if group.max_integer(int(stopping.asked())):  # while libraries were loaded
        context.keeper.halt()
    start = time.perf_counter()
    about = {} if case.run.task == "classify" else {"problem": case.problem.name}
    try:
        result = _until_halted(task, context)
    except Stopped as stopped:
        log.note("%s", stopped)
        raise
    seconds = time.perf_counter() - start
    phases = phase_table(group, log.seconds)
    phases["advice"] = advice(group, case, where, phases, seconds)
    phases["remarks"] = remarks(case, result)
    whole = log.earlier_s + seconds
    if folder.mend():
        log.info("warning: %s was removed while the run was at work: its log is lost", printable(folder.path))
    folder.finish(
        {
            "task": case.run.task, **about, "seed": case.seed, **result,
            "phases": phases, "seconds": whole, "ranks": group.size, "backend": group.device.name,
        }
    )  # fmt: skip
    say_end(log, phases, seconds)
    log.info("digest %s", result["digest"])
    log.info("done in %.1f s; results in %s", whole, printable(folder.path))


def _task_of(case: Case) -> Any:
    """What runs a case."""
    if case.run.task == "classify" and is_relational(case):
        return TASKS["relations"]
    if case.run.task == "classify" and is_forecast(case):
        return TASKS["forecast"]
    return TASKS[case.run.task]


def _until_halted(task: Task, context: Context) -> dict[str, Any]:
    """The task's result; raises Stopped where ranks that worked apart were asked to stop. Ranks: all call."""
    try:
        return task(context)
    except Halted:
        context.keeper.halt()
        raise


def _check_launch(size: int) -> None:
    """Refuse N single-rank programs: the mpirun of one MPI with the library of another, srun without PMI."""
    expected = cli.launcher_size()
    if expected is None or expected == size:
        return
    if cli.told_by_srun_alone():
        raise CaseError(
            f"srun started {expected} ranks, but MPI sees {size}: srun told them nothing of each other; "
            f"{_right_srun()} (srun --mpi=list names what this site has)"
        )
    raise CaseError(
        f"the launcher started {expected} ranks, but MPI sees {size}: this mpirun belongs to another "
        "MPI than mpi4py's; use the mpirun of the same environment"
    )


def _right_srun() -> str:
    """The option of srun that suits mpi4py's MPI."""
    right = {"MPICH": "pmi2", "Open MPI": "pmix"}.get(MPI.get_vendor()[0])
    if right is None:
        return "give it the --mpi of mpi4py's MPI"
    return f"srun --mpi={right}, or in a job script SLURM_MPI_TYPE={right}, would be right"


def _check_inputs(case: Case, out: str) -> None:
    """Open every input before the output folder is touched; none may lie in it and be replaced."""
    tables = [table for table in graph_tables(case) if table is not None]
    limit = int(case.memory.max_decompressed_gb * 1e9)
    if is_relational(case):
        from app.tasks.rgcn_inputs import check_triples  # of this task alone

        check_triples(case)
    else:
        for table in tables:
            for path in table.path:
                open_edges(path, table.format, limit, ids=table.ids)
            files = table.features, table.edge_features, table.edge_labels, table.edge_splits
            files += table.series, table.covariates, table.shared_covariates
            for path in (*files, table.labels, table.splits):
                if path not in WORDS.values():
                    check_node_file(path, Limits(limit))
    for path in (case.links.val_edges, case.links.test_edges, case.links.pairs):
        if path:
            open_edges(path, max_decompressed_bytes=limit, ids=case.graph.ids)
    for table in ("gnn", "rgcn", "policy"):
        path = getattr(case, table).weights
        if path not in ("", "default", "train"):
            WEIGHTS["forecast" if table == "gnn" and is_forecast(case) else table](path)
    folder = os.path.realpath(out)
    for path in named_files(case):
        if os.path.realpath(path).startswith(folder + os.sep):
            raise CaseError(f"--out {printable(out)}: holds the input {printable(path)}; name another folder")


def _print_room(group: Group, case: Case, words: str, needed: int) -> None:
    """--dry-run: whether the memory here would do; where the job will run there may be more. Ranks: all.

    words, needed   on rank 0, what _print_plan found out
    """
    try:
        if group.device.name == "cpu" and not case.memory.fast_mb:
            refuse_without_room(group, case, group.broadcast_text(words), needed)
        _, warned = refuse_too_large(group, case)
    except CaseError as error:
        warned = [f"on this machine it would be refused: {error}"]
    for line in warned if group.rank == 0 else ():
        cli.say(f"# {printable(line)}")


def _print_plan(group: Group, command: cli.Command) -> tuple[str, int]:
    """--dry-run: the case with its defaults, the headers of its files, and where results would go.

    returns   what a rank needs of memory in words and bytes, where triples were read to find out
    """
    case = command.case
    cli.say(to_toml(case))
    cli.say(f"# ranks: {group.size}, {group.device.describe()}")
    cli.say(f"# results would go to {printable(command.out)}")
    for path in [] if is_relational(case) else case.graph.path:
        limit = int(case.memory.max_decompressed_gb * 1e9)
        source = open_edges(path, case.graph.format, limit, ids=case.graph.ids)
        nodes = "node ids as they come" if source.nodes is None else f"{source.nodes} nodes"
        nodes = nodes if source.sizes is None else f"{len(source.sizes)} graphs of {nodes}"
        cli.say(f"# {printable(source.name)}: {source.format}, {nodes}")
    lines, words, needed = [], "", 0
    if is_relational(case) and (case.run.task == "classify" or case.study.kind == "tune"):
        from app.tasks.relational_plan import relational_plan  # of this task alone

        lines, words, needed = relational_plan(case, group.size)
    for line in lines or plan_lines(case, group.size, group.device):
        cli.say(f"# {printable(line)}")
    if (case.run.task, case.study.kind) == ("study", "tune"):
        from app.tasks.studies.gnn_tune import plan_of  # of this study alone

        cli.say(f"# {printable(plan_of(case))}")
    return (f"{case.run.name}: {words}", needed) if needed else ("", 0)
