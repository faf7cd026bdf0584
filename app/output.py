"""The output folder of a run: claimed before any work, result.json written last and atomically."""

import contextlib
import csv
import importlib.metadata
import io
import json
import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from app.case.config import VERSION, Case
from app.case.file import load
from app.case.text import to_toml
from app.checkpoint import lock, store
from app.checkpoint.identity import described, differences, input_digests, same_ends
from app.comm.group import Group
from app.comm.guard import raise_together
from app.comm.transport import mpi_library
from app.errors import CaseError
from app.files import placed
from app.text import printable

STOPPED = "stopped.json"  # what a stopped run knows
OWN_FILES = (
    STOPPED,
    "case.toml", "environment.json", "log.txt", "metrics.csv", "result.json", "quality.json", "weights.npz",
    "learning.png", "solutions.png", "solution.png", "dismantling.png", "quality.png",
    "calibration.json", "scaling.csv", "scaling.png", "answers.csv", "training.png", "breakdown.png",
    "cost_model.json", "report.html", "scores.csv", "forecasts.png",
    *(f"{study}.csv" for study in (
        "breakdown", "density", "depth", "folds", "inference", "learners", "memory", "models", "overlap",
        "partition", "permutation", "progress", "reached", "relations", "sampling", "selection", "sizes",
        "speedups", "stages", "throughput", "tune",
    )),
    *(f"{study}.png" for study in (
        "density", "depth", "folds", "inference", "learners", "memory", "models", "overlap", "partition",
        "progress", "relations", "sampling", "selection", "stages", "throughput", "times", "tune",
    )),
    "relations.json", "gnn_scaling.md", "best.toml",
)  # fmt: skip
# Folders, and how what a run writes to them ends.
OWN_FOLDERS = (
    ("solution", ".txt"),
    ("solution", ".td"),
    ("certificates", ".npz"),
    ("predictions", ".txt"),
    ("clusters", ".txt"),
    ("proposed", ".txt"),
    ("proposed_each", ".txt"),
    ("embeddings", ".npz"),
    ("probabilities", ".npz"),
    ("importance", ".csv"),
    ("explanations", ".csv"),
    ("sets", ".txt"),
    ("members", ".npz"),
    ("dismantling", ".csv"),
    ("assignment", ".csv"),
    ("curves", ".csv"),
    ("forecast", ".csv"),
    ("graphs", ".npz"),
)
BEGUN_FILES = ("case.toml", "environment.json", "log.txt", "metrics.csv")  # of a run that only begins
RUN_MARKS = (
    "case.toml",
    "environment.json",
    "result.json",
    "checkpoint/LATEST",
)  # one of them: a run has written here


class RunFolder:
    """The folder that a run writes to; only rank 0 touches the disk.

    said    what is to be said of the lock of an earlier job (rank 0)
    inputs  sha256 of the files that the case names, once the run has begun (rank 0)
    Ranks   constructing it, `complete`, `finish` and `release` are called by all
    """

    def __init__(
        self, group: Group, path: str, overwrite: bool, resume: bool = False, force_unlock: bool = False
    ) -> None:
        """resume   an earlier run's files stay: this run goes on with them"""
        self.group, self.path, self.said = group, path, ""
        self._held = False  # files that were there before stay in it (rank 0)
        self._made: list[str] = []  # folders that were made for it, the innermost first (rank 0)
        self._withdrawn = False
        self.inputs: dict[str, str] = {}
        self._beginning: tuple[str, dict[str, Any]] = "", {}  # case.toml, environment.json (rank 0)
        with raise_together(group, f"preparing {path}"):
            if group.rank == 0:
                self._prepare(overwrite, resume, force_unlock)

    def _prepare(self, overwrite: bool, resume: bool, force_unlock: bool) -> None:
        """Make the folder this job's (rank 0). Raises CaseError where it cannot be."""
        try:
            held = os.path.isdir(self.path) and bool(set(os.listdir(self.path)) - {lock.NAME})
            self._made = _missing(self.path)
            self.said = _claim(self.path, overwrite, resume, force_unlock)
        except OSError as error:
            raise CaseError(f"--out {self.path}: cannot be used: {error.strerror or error}") from None
        except CaseError:
            self._remove_made()
            raise
        self._held = resume and held

    def check_same_run(self, case: Case) -> None:
        """Refuse to go on with the files of another case, or made of other inputs (rank 0).

        Raises CaseError, naming keys or files.
        """
        path = self.file("case.toml")
        if self.group.rank or not os.path.isfile(path):
            return
        manifest, inputs = {"case": described(load(path, []))}, self._inputs_before()
        now = None if inputs is None else input_digests(case)
        differ = differences({**manifest, "inputs": inputs}, case, now)
        if differ:
            raise CaseError("\n  ".join([f"{path}: belongs to another run:", *differ]))

    def _inputs_before(self) -> dict[str, str] | None:
        """Digests of the files that an earlier run here has read; None where it did not tell."""
        try:
            found = json.loads(Path(self.file("environment.json")).read_text("utf-8")).get("inputs")
        except (OSError, ValueError, AttributeError):
            return None
        return found if isinstance(found, dict) else None

    def complete(self, case: Case) -> bool:
        """Whether an earlier run has come to the end of this case; of one that ended before it, the
        result.json is removed, as is one that is damaged. Ranks: all call."""
        found = 0
        with raise_together(self.group, "looking for results"):
            if self.group.rank == 0 and os.path.isfile(self.file("result.json")):
                was = load(self.file("case.toml"), []) if os.path.isfile(self.file("case.toml")) else None
                whole = self._says_complete()
                found = int(whole and was is not None and same_ends(was, case))
                if not whole:
                    more = f"warning: {printable(self.file('result.json'))} is damaged: it is made anew"
                    self.said = "; ".join(filter(None, (self.said, more)))
                if not found:
                    os.remove(self.file("result.json"))
        return bool(self.group.max_integer(found))

    def withdraw(self) -> None:
        """Take back what was written for an input that is refused, so that the same command can be given
        again once it is mended: where there is nothing but a beginning (rank 0). A folder that was made for
        it and is empty goes when it is released.
        """
        self._withdrawn = True
        if self.group.rank == 0 and not self._held:
            with contextlib.suppress(OSError):  # what is to be said is why the input is refused
                self._remove_beginning()

    def _remove_beginning(self) -> None:
        if not set(os.listdir(self.path)) <= {*BEGUN_FILES, lock.NAME}:
            return
        metrics = self.file("metrics.csv")
        if os.path.isfile(metrics) and Path(metrics).read_bytes().count(b"\n") > 1:
            return  # a row beside the head: something was done
        for name in BEGUN_FILES:
            with contextlib.suppress(FileNotFoundError):
                os.remove(self.file(name))

    def release(self) -> None:
        """Unlock the folder (rank 0)."""
        if self.group.rank == 0:
            lock.release(self.path)
            if self._withdrawn:
                self._remove_made()

    def _remove_made(self) -> None:
        for path in self._made:
            with contextlib.suppress(OSError):  # something is in it, or it could not be made
                os.rmdir(path)

    def write_text(self, name: str, text: str) -> None:
        """Write a file whole or not at all (rank 0)."""
        if self.group.rank != 0:
            return
        with self.placed(name) as file:
            file.write(text.encode())

    def write_arrays(self, name: str, **arrays: np.ndarray) -> None:
        """Write an .npz whole or not at all (rank 0)."""
        if self.group.rank != 0:
            return
        with self.placed(name) as file:
            np.savez(file, **arrays)

    @contextlib.contextmanager
    def placed(self, name: str) -> Iterator[IO[bytes]]:
        """A file of this folder to write, whole or not at all (rank 0). Raises OSError, which names it."""
        path = self.file(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with placed(path) as file:
            yield file

    def write_json(self, name: str, value: dict[str, Any]) -> None:
        """write_text of indented JSON, in which what is no finite number is null."""
        text = json.dumps(value, indent=1, default=plain)
        if "NaN" in text or "Infinity" in text:
            text = json.dumps(json.loads(text, parse_constant=lambda _: None), indent=1)
        self.write_text(name, text + "\n")

    def write_csv(self, name: str, columns: tuple[str, ...], rows: list[dict[str, Any]]) -> None:
        """write_text of a table; None becomes an empty cell, keys that are no columns are left out."""
        text = io.StringIO()
        writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        self.write_text(name, text.getvalue())

    def file(self, name: str) -> str:
        """The path of a file in this folder."""
        return os.path.join(self.path, name)

    def _says_complete(self) -> bool:
        """Whether result.json is what a run has written at its end."""
        try:
            found = json.loads(Path(self.file("result.json")).read_text("utf-8"))
        except (OSError, ValueError, RecursionError):
            return False
        return isinstance(found, dict) and found.get("status") == "complete"

    def begin(self, case: Case, device: Any) -> None:
        """Write what the run was started with. Ranks: all call."""
        hosts = self.group.gather_texts(platform.node())
        with raise_together(self.group, f"writing to {self.path}"):
            if self.group.rank == 0:
                about = describe_environment(self.group, device, hosts)
                self._beginning = to_toml(case), about
                self._write_beginning()  # before inputs are read: from now on this is a run's folder
                about["inputs"] = self.inputs = input_digests(case)
                self._write_beginning()

    def _write_beginning(self) -> None:
        text, about = self._beginning
        self.write_text("case.toml", text)
        self.write_json("environment.json", about)

    def mend(self) -> bool:
        """Write again what the run was started with where it was removed; whether it was so (rank 0)."""
        if self.group.rank or os.path.isfile(self.file("case.toml")):
            return False
        self._write_beginning()
        return True

    def finish(self, result: dict[str, Any]) -> None:
        """Write result.json, the last file, after every rank has come here. Ranks: all call."""
        self.group.barrier()
        with raise_together(self.group, f"writing {self.path}/result.json"):
            if self.group.rank == 0:
                Path(self.file(STOPPED)).unlink(missing_ok=True)  # of an earlier part of the run
            self.write_json("result.json", {"status": "complete", **result})


def _missing(path: str) -> list[str]:
    """A folder and those around it that are not there yet, the innermost first."""
    found = []
    while path and not os.path.lexists(path):
        found.append(path)
        path = os.path.dirname(path)
    return found


def _claim(path: str, overwrite: bool, resume: bool, force_unlock: bool) -> str:
    """Create and lock the folder, or empty it of an earlier run's files when that is asked for.

    returns   what is to be said of the lock of an earlier job
    """
    if os.path.islink(path) and not os.path.exists(path):
        raise CaseError(f"--out {path}: is a link to what is not there; name a folder")
    if os.path.exists(path) and not os.path.isdir(path):
        raise CaseError(f"--out {path}: is a file; name a folder")
    held = os.path.isdir(path) and bool(set(os.listdir(path)) - {lock.NAME})
    if held and not any(os.path.isfile(os.path.join(path, name)) for name in RUN_MARKS):
        lock.refuse_held(path, force_unlock)  # a job that has just begun
        raise CaseError(f"--out {path}: is no folder of an earlier run; name another one")
    if held and not (overwrite or resume):
        lock.refuse_held(path, force_unlock)  # who is at work there has to be said first
        raise CaseError(
            f"--out {path}: holds an earlier run; name another folder, or add --overwrite or --resume"
        )
    try:
        os.makedirs(path, exist_ok=True)
        said = lock.take(path, force_unlock)
    except OSError as error:
        raise CaseError(f"--out {path}: cannot write there: {error.strerror}") from None
    if held and overwrite:
        _clear(path)
    return said


def _clear(path: str) -> None:
    """Remove what an earlier run wrote, and nothing else."""
    store.remove_all(os.path.join(path, store.FOLDER))
    for name in os.listdir(path):
        study_weights = name.startswith("weights-") and name.endswith(".npz")
        if name in OWN_FILES or study_weights or name.removesuffix(".tmp") in OWN_FILES:
            os.remove(os.path.join(path, name))
    for inner, suffix in OWN_FOLDERS:
        found = os.path.join(path, inner)
        if os.path.isdir(found) and not os.path.islink(found):
            for name in os.listdir(found):
                if name.endswith((suffix, f"{suffix}.tmp")):
                    os.remove(os.path.join(found, name))
            with contextlib.suppress(OSError):  # something else is in it
                os.rmdir(found)


def plain(value: Any) -> Any:
    """NumPy scalars as JSON numbers."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"not JSON: {type(value).__name__}")


def describe_environment(group: Group, device: Any, hosts: list[str]) -> dict[str, Any]:
    """Versions, libraries and devices: what a result depends on besides the case."""
    versions = {}
    for name in ("numpy", "scipy", "mpi4py", "networkx", "msgspec", "highspy", "python-sat"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):  # the last two may be missing
            versions[name] = importlib.metadata.version(name)
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return {
        "lockstep": VERSION,
        "python": sys.version.split()[0],
        "machine": platform.machine(),
        "versions": versions,
        "blas": f"{blas.get('name')} {blas.get('version')}",
        "mpi_library": mpi_library(),
        "device_memory_to_mpi": group.direct,
        "messages": group.transport,
        "device": device.describe(),
        "sparse_product": device.product,
        "hosts": sorted(set(hosts)),
        "ranks": group.size,
    }


def phase_table(group: Group, seconds: dict[str, float]) -> dict[str, Any]:
    """Seconds by phase, bytes sent by kind of message: min / mean / max over ranks. Ranks: all call."""
    both = {**seconds, **{f"comm.{k}": v for k, v in group.seconds.items()}}
    sent = {**group.sent_bytes, "all": sum(group.sent_bytes.values())}
    micro = {name: round(value * 1e6) for name, value in both.items()}
    spans = {
        name: (low / 1e6, mean / 1e6, high / 1e6) for name, (low, mean, high) in _over(group, micro).items()
    }
    return {
        "seconds": {n: dict(zip(("min_s", "mean_s", "max_s"), span)) for n, span in spans.items()},
        "bytes": {n: dict(zip(("min", "mean", "max"), span)) for n, span in _over(group, sent).items()},
    }


def _over(group: Group, values: dict[str, int]) -> dict[str, tuple[int, float, int]]:
    """Minimum, mean and maximum over ranks of named integers, 0 where a rank has none. Ranks: all call."""
    names = sorted(set("\n".join(group.gather_texts("\n".join(values))).split("\n")) - {""})
    table = group.gather_integers(np.array([values.get(n, 0) for n in names], dtype=np.int64))
    return {n: (int(c.min()), float(c.mean()), int(c.max())) for n, c in zip(names, table.T)}
