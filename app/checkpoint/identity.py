"""Whether a checkpoint belongs to a case: every key that defines the result, and the files that it reads."""

import hashlib
import os
from typing import Any

from msgspec import to_builtins

from app.case.config import VERSION, Case
from app.case.file import named_files, study_files
from app.checkpoint.store import State, file_digest
from app.errors import CaseError
from app.text import printable, show

# What is written, and how far a training goes that is the whole task, may change between two parts of a run;
# of [run], [parallel] and [memory] only these keys define the result.
FREE_TABLES = frozenset({"output", "checkpoint"})
TRAINED = "trained"  # the key of a policy's training that is finished
ENDS = {"train": ("train.steps",), "classify": ("gnn.epochs", "rgcn.epochs")}
DEFINING = {
    "run": frozenset({"task", "reproducible", "portable"}),
    "parallel": frozenset({"data"}),
    "memory": frozenset({"whole_graph_mb"}),
}


def described(case: Case) -> dict[str, Any]:
    """The case as a manifest holds it: tables of plain values; files by their names without folders."""
    names = {path: os.path.basename(path) for path in named_files(case)}
    return _renamed(to_builtins(case), names)


def _renamed(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _renamed(each, names) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_renamed(each, names) for each in value]
    return names.get(value, value) if isinstance(value, str) else value


def input_digests(case: Case) -> dict[str, str]:
    """sha256 of every file that the case names and that defines its result; of a folder over its files."""
    named = [path for path in named_files(case) if path != case.parallel.cost_model]
    named += study_files(case)
    return {f"{i} {os.path.basename(path)}": _digest(path) for i, path in enumerate(named)}


def _digest(path: str) -> str:
    """Raises CaseError for what cannot be read."""
    try:
        if not os.path.isdir(path):
            return file_digest(path)
        sha = hashlib.sha256()
        for inner, folders, files in os.walk(path):
            folders.sort()
            for name in sorted(files):
                sha.update(f"{name} {_of_regular(os.path.join(inner, name))}\n".encode())
        return sha.hexdigest()
    except OSError as error:
        raise CaseError(f"{error.filename or path}: cannot be read: {error.strerror or error}") from None


def _of_regular(path: str) -> str:
    """file_digest; "" of what is no file: links to nothing, pipes, sockets."""
    return file_digest(path) if os.path.isfile(path) else ""


def differences(manifest: dict[str, Any], case: Case, inputs: dict[str, str] | None) -> list[str]:
    """What a checkpoint has otherwise than this run, a line for each field; [] where it may go on.

    inputs   input_digests of the case; None: only the case is compared
    """
    found = []
    if manifest.get("lockstep", VERSION) != VERSION:
        found.append(_line("lockstep", manifest["lockstep"], VERSION))
    was, now = _flat(manifest["case"]), _flat(described(case))
    for key in sorted({*was, *now}):
        if _defines(key, case) and was.get(key) != now.get(key):
            found.append(_line(key, was.get(key), now.get(key)))
    if inputs is not None and not found:
        theirs = manifest["inputs"]
        for name in sorted({*theirs, *inputs}):
            if theirs.get(name) != inputs.get(name):
                mine = (str(each.get(name, "none"))[:12] for each in (theirs, inputs))
                found.append(_line(f"the file {name.partition(' ')[2]} (sha256)", *mine))
    return [printable(each) for each in found]


def overrun(manifest: dict[str, Any], parts: dict[str, State], case: Case) -> str:
    """What is wrong where a training has gone further than the case wants it to; "" where nothing is."""
    epochs = (
        ("rgcn.epochs", case.rgcn.epochs) if case.gnn.model == "rgcn" else ("gnn.epochs", case.gnn.epochs)
    )
    ends = {"train": ("step", "train.steps", case.train.steps), "fit": ("epochs", *epochs)}
    stage, counters = manifest["stage"], manifest["counters"]
    if TRAINED in parts:
        stage, counters = "train", {"step": parts[TRAINED].values["steps"]}
    if stage not in ends:
        return ""
    counter, key, wanted = ends[stage]
    made = counters.get(counter, 0)
    if made <= wanted:
        return ""
    return f"{key}: {wanted}, but the checkpoint has made {made}; at least as many would be right"


def same_ends(one: Case, other: Case) -> bool:
    """Whether two cases go equally far."""
    both = [_flat(described(case)) for case in (one, other)]
    return all(both[0][key] == both[1][key] for key in ENDS.get(other.run.task, ()))


def _defines(key: str, case: Case) -> bool:
    table, _, name = key.partition(".")
    if table in DEFINING:
        return name in DEFINING[table]
    falls = {
        "train.steps": bool(case.agent.learning_rate_end),
        "gnn.epochs": case.gnn.schedule != "constant",
        "rgcn.epochs": case.rgcn.schedule != "constant",
    }
    if falls.get(key):
        return True  # every step's size depends on how many there are
    return table not in FREE_TABLES and key not in ENDS.get(case.run.task, ())


def _line(name: str, was: Any, now: Any) -> str:
    return f"{name}: {_shown(was)} there, {_shown(now)} here"


def _shown(value: Any) -> str:
    return "absent" if value is None else show(value)


def _flat(value: Any, above: str = "") -> dict[str, Any]:
    """Values of nested tables by their dotted keys."""
    if not isinstance(value, dict):
        return {above: value}
    inner = (_flat(each, f"{above}.{key}" if above else key) for key, each in value.items())
    return {key: each for table in inner for key, each in table.items()}
