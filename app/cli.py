"""The command line: arguments -> Command, and what the launcher's environment variables say of this rank."""

import difflib
import math
import os
import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import suppress

from msgspec import Struct

from app.case.config import VERSION, Case
from app.case.file import load, working_folder
from app.case.text import help_text
from app.errors import CaseError
from app.text import not_plain, printable, shorten, show, toml_value

PROGRAM = "run.py"
BEGUN = time.monotonic()  # of this process, nearly
VALUES = {
    "--out": "DIR", "--device": "auto, cpu or gpu", "--check": "FILE or RUN",
    "--max-hours": "hours above 0, such as 1.5",
}  # fmt: skip
FLAGS = (
    "--overwrite",
    "--resume",
    "--force-unlock",
    "--dry-run",
    "--allow-mixed",
    "--version",
    "--help",
)
RANKS = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "MPI_LOCALRANKID")
SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE")


class Command(Struct, frozen=True):
    """What the command line asks for; `out` and `device` are those of the case, options laid over.

    check        a solution, or the folder of a run, to verify instead of running the task; "": none
    resume       go on from the newest checkpoint
    max_hours    after which the run must be over; 0: no limit
    allow_mixed  ranks may run other versions of the software than each other
    again        the arguments that resume this run, as a shell reads them
    """

    case: Case
    case_path: str
    out: str
    overwrite: bool
    dry_run: bool
    device: str
    check: str
    resume: bool
    force_unlock: bool
    max_hours: float
    allow_mixed: bool
    again: str


def parse(arguments: list[str]) -> Command | str:
    """The command, or the text that --help or --version prints; raises CaseError."""
    if "--help" in arguments or "-h" in arguments:
        return help_text()
    if "--version" in arguments:
        return f"lockstep {VERSION}\n"
    files, overrides, options, errors = _sort(arguments)
    if len(files) > 1:
        names = ", ".join(shorten(printable(each)) for each in files)
        errors.append(f"one case file, please, got {names}; keys are set by section.key=value")
    if not files and not errors:
        errors.append("no case file given: run.py CASE.toml [section.key=value ...]; --help says more")
    if "--resume" in options and "--overwrite" in options:
        errors.append("--resume goes on with what is there, --overwrite removes it: one of them")
    if errors:
        raise CaseError("\n  ".join(errors))
    for name in ("--out", "--device"):
        if name in options:
            overrides.append(f"run.{name[2:]}={toml_value(options[name])}")
    case = load(files[0], overrides)
    out = case.run.out or os.path.join("runs", case.run.name)
    if not os.path.isabs(out):
        working_folder()
    return Command(
        case=case,
        case_path=files[0],
        out=out,
        overwrite="--overwrite" in options,
        dry_run="--dry-run" in options,
        device=case.run.device,
        check=options.get("--check", ""),
        resume="--resume" in options,
        force_unlock="--force-unlock" in options,
        max_hours=float(options.get("--max-hours", 0)),
        allow_mixed="--allow-mixed" in options,
        again=_again(arguments),
    )


def _again(arguments: list[str]) -> str:
    """The command line of this run with --resume, without what is meant for its first part only."""
    kept = [each for each in arguments if each not in ("--overwrite", "--resume", "--force-unlock")]
    return " ".join(map(_quoted, [*_program(), *kept, "--resume"]))


def _quoted(word: str) -> str:
    """A word as a shell takes it, in printable ASCII: the octets of others are escaped between $' and '."""
    if printable(word) == word:
        return shlex.quote(word)
    octets = word.encode("utf-8", "surrogateescape")
    return "$'" + "".join(chr(c) if 32 <= c < 127 and c not in b"'\\" else f"\\{c:03o}" for c in octets) + "'"


def _program() -> list[str]:
    """The interpreter and the program as this run was started."""
    if os.path.basename(sys.argv[0]) != PROGRAM:  # from Python
        return ["python", PROGRAM]
    return [sys.orig_argv[0], sys.argv[0]]


def _sort(arguments: list[str]) -> tuple[list[str], list[str], dict[str, str], list[str]]:
    """Case files, overrides, options, and the mistakes among them."""
    files, overrides, errors = [], [], []
    options: dict[str, str] = {}
    rest = iter(arguments)
    for each in rest:
        name, equals, value = each.partition("=")
        if not each.startswith("-"):
            # A folder may be called lr=0.1: a file that exists is a file.
            (overrides if equals and not _is_file(each) else files).append(each)
        elif name in VALUES:
            errors += _value_of(name, value if equals else next(rest, ""), options)
        elif each in FLAGS:
            options[each] = ""
        elif name in FLAGS:
            errors.append(f"option {name}: takes no value, got {show(value)}")
        else:
            near = difflib.get_close_matches(name, (*VALUES, *FLAGS), n=1, cutoff=0.7)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join((*VALUES, *FLAGS))}"
            errors.append(f"unknown option {shorten(printable(name))}: {hint}")
    return files, overrides, options, errors


def _value_of(name: str, value: str, options: dict[str, str]) -> Iterator[str]:
    """Keep the value of an option, or say what is wrong with it."""
    if not value or value.startswith("--"):
        yield f"option {name}: needs a value: {VALUES[name]}"
    elif not all(c.isprintable() for c in value):
        yield f"option {name}: {not_plain(value)}"
    elif not RIGHT.get(name, bool)(value):
        yield f"option {name}: must be {VALUES[name]}, got {show(value)}"
    else:
        options[name] = value


def _is_device(text: str) -> bool:
    return text in ("auto", "cpu", "gpu")


def _is_hours(text: str) -> bool:
    """Whether the text is a finite number above 0."""
    try:
        return 0 < float(text) < math.inf
    except ValueError:
        return False


RIGHT = {"--device": _is_device, "--max-hours": _is_hours}


def _is_file(path: str) -> bool:
    """Whether there is such a file; a path that cannot be one is none."""
    return "\0" not in path and os.path.isfile(path)


def launcher_rank() -> int:
    """This rank as the launcher says it, before MPI is imported; 0 without a launcher."""
    return _first_number((*RANKS, *(["SLURM_PROCID"] if _in_slurm_step() else []))) or 0


def launcher_size() -> int | None:
    """The number of ranks as the launcher says it; None where it says nothing."""
    return _first_number((*SIZES, *(["SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"] if _in_slurm_step() else [])))


def is_launched() -> bool:
    """Whether a launcher may have started other ranks beside this one."""
    size = launcher_size()
    ranks = (*RANKS, *(["SLURM_PROCID"] if _in_slurm_step() else []))
    return size > 1 if size is not None else any(name in os.environ for name in ranks)


def told_by_srun_alone() -> bool:
    """Whether only SLURM says how many ranks there are: srun gave them no PMI that sets PMI_SIZE."""
    return _in_slurm_step() and _first_number(SIZES) is None


def _in_slurm_step() -> bool:
    """SLURM sets its rank and size in a batch script too, where they say nothing."""
    return "SLURM_STEP_ID" in os.environ


def _first_number(names: tuple[str, ...]) -> int | None:
    """The first of the environment variables that is a whole number."""
    values = (os.environ.get(name, "") for name in names)
    return next((int(each) for each in values if each.isascii() and each.isdigit()), None)


def end_output() -> None:
    """Print what is left; a full disk is no error, which Python would make one of when it ends."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            with suppress(OSError, ValueError):  # no file of this process's, in a notebook
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def fill_streams() -> None:
    """Standard streams that are closed lead nowhere, so that no file that is opened gets their numbers."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115


def say(text: str, error: bool = False) -> None:
    """Print once, on rank 0, in ASCII; a reader that has gone away, or a full disk, is no error."""
    if launcher_rank() != 0:
        return
    try:
        stream = sys.stderr if error else sys.stdout
        print("\n".join(printable(line) for line in text.split("\n")), file=stream, flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
