"""Lockstep: mpirun -np N python run.py CASE.toml [section.key=value ...]; --help says more."""

import gc
import sys

from app.checkpoint.signals import hear_early, listen_no_more, stop_listening

if __name__ == "__main__":  # before what takes longer to load
    hear_early()

from app import cli, threads
from app.errors import LockstepError
from app.watchdog import watch_start


def main(arguments: list[str], whole_process: bool = False) -> int:
    """Read the command line before NumPy and MPI are imported, then hand over to app.main.

    whole_process   the process ends with the run: signals are heard until then
    """
    cli.fill_streams()
    try:
        threads.limit_threads()
        command = cli.parse(arguments)
    except LockstepError as error:
        if not cli.is_launched():
            cli.say(f"lockstep: error: {error}", error=True)
            return error.exit_code
        from app.main import refuse  # another rank's host may see other files: that one would wait

        return refuse(error)
    if isinstance(command, str):
        cli.say(command.rstrip("\n"))
        return 0

    if whole_process and (not command.case.checkpoint.enabled or command.dry_run or command.check):
        listen_no_more()
    elif whole_process:
        hear_early()
    if whole_process:
        watch_start(command.case.run.watchdog_seconds, f"[rank {cli.launcher_rank()}]")
    gc.disable()  # imports make objects that stay: to look for others is a tenth of their time
    try:
        from app.lean import import_sparse

        import_sparse()
        from app.main import leave, run
    except KeyboardInterrupt:  # signals are not caught yet
        cli.say("lockstep: interrupted before anything began", error=True)
        return 1
    finally:
        gc.enable()
    return leave(run(command))


if __name__ == "__main__":
    code = main(sys.argv[1:], whole_process=True)
    stop_listening()
    sys.exit(code)
