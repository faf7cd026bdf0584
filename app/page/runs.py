"""Run folders as they are on disk: whole runs, unfinished ones, and folders that are no run."""

import csv
import json
import os
import tomllib
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

from app.errors import CaseError
from app.page.values import flat, listing, mapping, number
from app.text import printable, shorten

MARKS = ("result.json", "environment.json", "case.toml")  # one of them: a run has written here
MOST_BYTES = 64_000_000  # of a JSON or TOML file that is read
MOST_ROWS = 200_000  # of metrics.csv that are read
MOST_PICTURE = 2_000_000  # bytes of a PNG that goes along
TAIL_LINES = 12


@dataclass(frozen=True)
class Run:
    """One run folder.

    label      what the page calls it: the folder's name, made distinct
    result     of result.json; empty where the run has not ended
    metrics    rows of metrics.csv, all cells as text; empty ones left out
    tail       the last lines of the log
    pictures   name -> bytes of the PNG files
    resumable  a checkpoint is there, from which the run can go on
    """

    label: str
    folder: str
    case: dict[str, Any]
    environment: dict[str, Any]
    result: dict[str, Any]
    metrics: list[dict[str, str]]
    tail: list[str]
    pictures: dict[str, bytes]
    resumable: bool = False

    @property
    def complete(self) -> bool:
        """True where the run wrote its result, the last thing that it does."""
        return self.result.get("status") == "complete"

    @property
    def task(self) -> str:
        """train, solve, classify or study."""
        return str(self.result.get("task") or mapping(self.case.get("run")).get("task") or "?")

    @property
    def ranks(self) -> int:
        """The number of ranks; 0 where no file says it."""
        return int(number(self.result.get("ranks")) or number(self.environment.get("ranks")) or 0)

    @property
    def instances(self) -> list[dict[str, Any]]:
        """What result.json says of each graph."""
        return listing(self.result.get("instances"))

    @cached_property
    def settings(self) -> dict[str, Any]:
        """Every key of the case with its value, as {"train.steps": 2000}."""
        return flat(self.case)


def read_runs(folders: list[str]) -> list[Run]:
    """The runs of some folders, in order; raises CaseError for what is no run."""
    names = [printable(os.path.basename(os.path.abspath(folder))) for folder in folders]
    labels = [
        name if names.count(name) == 1 else printable(os.path.normpath(f)) for name, f in zip(names, folders)
    ]
    runs = []
    for at, (folder, label) in enumerate(zip(folders, labels), 1):
        taken = any(run.label == shorten(label, 40) for run in runs)
        runs.append(_read_run(folder, f"{shorten(label, 36)} ({at})" if taken else shorten(label, 40)))
    return runs


def _read_run(folder: str, label: str) -> Run:
    shown = shorten(printable(folder))
    if "\0" in folder or not os.path.isdir(folder):
        raise CaseError(f"report: {shown}: no such folder; the output folder of a run would be right")
    if not any(os.path.isfile(os.path.join(folder, name)) for name in MARKS):
        raise CaseError(
            f"report: {shown}: is no run; a folder that holds {MARKS[0]} or {MARKS[2]} would be right"
        )
    return Run(
        label,
        folder,
        _read_table(folder, "case.toml"),
        _read_table(folder, "environment.json"),
        _read_table(folder, "result.json"),
        _read_metrics(folder),
        _read_tail(folder),
        _read_pictures(folder),
        os.path.isfile(os.path.join(folder, "checkpoint", "LATEST")),
    )


def _read_table(folder: str, name: str) -> dict[str, Any]:
    """The table of a TOML or JSON file; empty where there is none."""
    path = os.path.join(folder, name)
    if not os.path.isfile(path):
        return {}
    where = shorten(printable(path), 200)
    try:
        if os.path.getsize(path) > MOST_BYTES:
            raise CaseError(
                f"report: {where}: over {MOST_BYTES} bytes; a file that a run wrote would be right"
            )
        with open(path, encoding="utf-8") as file:
            text = file.read()
        found = tomllib.loads(text) if name.endswith(".toml") else json.loads(text)
    except (ValueError, OSError, RecursionError) as error:
        reason = shorten(printable(getattr(error, "strerror", None) or str(error)))
        raise CaseError(f"report: {where}: {reason}; a file that a run wrote would be right") from None
    if not isinstance(found, dict):
        raise CaseError(f"report: {where}: holds no table; a file that a run wrote would be right")
    return found


def _read_metrics(folder: str) -> list[dict[str, str]]:
    """Rows of metrics.csv, without empty cells; a last row that was cut off is left out."""
    path = os.path.join(folder, "metrics.csv")
    if not os.path.isfile(path):
        return []
    try:
        with open(path, encoding="utf-8", errors="replace", newline="") as file:
            rows = list(islice(csv.reader(line.replace("\0", "") for line in file), MOST_ROWS))
    except (csv.Error, OSError) as error:
        raise CaseError(
            f"report: {shorten(printable(path), 200)}: {shorten(printable(str(error)))}"
        ) from None
    head = rows[0] if rows else []
    return [{k: v for k, v in zip(head, row) if v} for row in rows[1:] if len(row) == len(head)]


def _read_tail(folder: str) -> list[str]:
    """The last lines of the log."""
    path = os.path.join(folder, "log.txt")
    if not os.path.isfile(path):
        return []
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.path.getsize(path) - 8000))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return []
    return lines[-TAIL_LINES:]


def _read_pictures(folder: str) -> dict[str, bytes]:
    """The PNG files of a run that are small enough to go along."""
    found = {}
    try:
        for name in sorted(os.listdir(folder)):
            path = os.path.join(folder, name)
            if name.endswith(".png") and os.path.isfile(path) and os.path.getsize(path) <= MOST_PICTURE:
                with open(path, "rb") as file:
                    content = file.read(MOST_PICTURE)
                if content.startswith(b"\x89PNG\r\n\x1a\n"):
                    found[name] = content
    except OSError:
        return found
    return found
