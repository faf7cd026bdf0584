"""Study of answers: graphs with known best values, each solved within the case's budget, in one table."""

import os
import tomllib
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import msgspec

from app.comm.guard import digest_text, raise_together
from app.errors import CaseError
from app.graphs.formats.source import shown
from app.problems.table import make_problem
from app.tasks.context import Context
from app.tasks.policy import find_policy
from app.tasks.solve import solve_graph
from app.tasks.studies.cells import cell
from app.tasks.studies.gnn_subjects import distinct_name
from app.text import show

PROBLEM_OF_FOLDER = {"mvc": "mvc", "large": "mvc", "maxcut": "maxcut", "tsp": "tsp"}
COLUMNS = (
    "file", "problem", "nodes", "edges", "best_known", "objective", "ratio", "bound", "bound_method",
    "gap_percent", "optimal", "source", "learned", "greedy", "policy_evaluations", "steps", "seconds",
    "primal_dual_integral",
)  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """A graph of the catalogue: its file, the problem asked of it, the best value known or None."""

    file: str
    problem: str
    complement: bool
    best: int | None


def run_answers(context: Context) -> dict[str, Any]:
    """Solve every graph of the study's sets; answers.csv, and a line for each graph. Ranks: all call."""
    with raise_together(context.group, "reading the catalogue"):
        entries = read_catalogue(context.case.study.catalogue, context.case.study.sets)
        _refuse_missing(context.case.study.catalogue, entries)
    rows, instances = [], []
    for entry in entries:
        instance = cell(context, f"{entry.problem} {entry.file}", partial(_solve, context, entry))
        instances.append(instance)
        rows.append(_row(entry, instance))
        _say(context, rows[-1])
        if context.folder is not None:
            context.folder.write_csv("answers.csv", COLUMNS, rows)
    _summary(context, rows)
    names: dict[str, str] = {}
    digests = {
        distinct_name(names, row["file"], entry.file): instance["digest"]
        for row, entry, instance in zip(rows, entries, instances)
    }
    return {"digest": digest_text(digests), "rows": rows, "instances": instances}


def read_catalogue(path: str, sets: list[str]) -> list[Entry]:
    """The graphs in the folders `sets` of a TOML catalogue: tables [[file]] with path and best_value.

    Raises CaseError.
    """
    for name in sets:
        if name not in PROBLEM_OF_FOLDER:
            right = f"{', '.join(PROBLEM_OF_FOLDER)} would be right"
            raise CaseError(f"study.sets: found {show(name)}; {right}")
    if not path:
        raise CaseError(
            "study.catalogue: name a catalogue.toml, or set LOCKSTEP_DATA to a folder that has one"
        )
    try:
        with open(path, "rb") as file:
            listed = tomllib.load(file).get("file", [])
    except (OSError, ValueError, RecursionError) as error:  # bytes that are no text are a ValueError too
        raise CaseError(f"{path}: no catalogue of graphs: {shown(str(error), 200)}") from None
    if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
        raise CaseError(f"{path}: no catalogue of graphs: tables [[file]] would be right")
    folder, found = os.path.dirname(path), []
    for each in listed:
        kind = str(each.get("path", "")).split("/")[0]
        known = PROBLEM_OF_FOLDER.get(kind)
        if kind in sets and known is not None and not each["path"].endswith(".tour"):
            name = os.path.join(folder, each["path"])
            found.append(Entry(name, known, ".clq" in each["path"], _best_value(path, each)))
    if not found:
        raise CaseError(f"{path}: has no graphs in the folders {', '.join(sets)}")
    return found


def _best_value(path: str, listed: dict[str, Any]) -> int | None:
    """The best value known of a file of the catalogue, None where it has none. Raises CaseError."""
    best = listed.get("best_value")
    if best is None or type(best) is int:
        return best
    place = f"{path}: {shown(listed['path'], 200)}: best_value"
    raise CaseError(f"{place}: must be an integer, or be left out, got {show(best)}")


def _refuse_missing(path: str, entries: list[Entry]) -> None:
    """Refuse a catalogue whose files are not there, before the first one is solved. Raises CaseError."""
    missing = [entry.file for entry in entries if not os.path.isfile(entry.file)]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        right = "a path relative to the catalogue would be right"
        raise CaseError(f"{path}: no such file: {shown(missing[0], 200)}{more}; {right}")


def _solve(context: Context, entry: Entry) -> dict[str, Any]:
    """One graph by the case's search. Ranks: all call."""
    case = context.case
    graph = msgspec.structs.replace(
        case.graph, path=[entry.file], generator="", complement=entry.complement, format="auto"
    )
    problem = msgspec.structs.replace(case.problem, name=entry.problem)
    context = replace(context, case=msgspec.structs.replace(case, graph=graph, problem=problem))
    (loaded,) = context.load(graph, "instances")
    solved = solve_graph(context, make_problem(entry.problem), find_policy(context), loaded)
    return solved.entry


def _row(entry: Entry, instance: dict[str, Any]) -> dict[str, Any]:
    """The instance's line of the table."""
    row = {key: instance.get(key) for key in COLUMNS}
    gap = instance["gap"]
    row.update(
        file=os.path.basename(entry.file), problem=entry.problem, best_known=entry.best,
        ratio=_ratio(instance["objective"], entry.best),
        gap_percent=None if gap is None else round(100 * gap, 3),
    )  # fmt: skip
    return row


def _ratio(objective: float, best: int | None) -> float | None:
    """An objective over the best known value; of two zeros 1, and None where there is no ratio."""
    if best:
        return round(objective / best, 6)
    return 1.0 if best == objective else None


def _say(context: Context, row: dict[str, Any]) -> None:
    """One line on a graph."""
    known = "none known" if row["best_known"] is None else f"best known {row['best_known']}"
    if row["ratio"] is not None:
        known += f" ({row['ratio']:.4f})"
    gap = (
        "no bound"
        if row["gap_percent"] is None
        else f"gap {row['gap_percent']:.2f} % by {row['bound_method']}"
    )
    context.log.info(
        "answer: %s %s: %s, %s, %s%s", row["problem"], row["file"], row["objective"], known, gap,
        ", proved optimal" if row["optimal"] else "",
    )  # fmt: skip


def _summary(context: Context, rows: list[dict[str, Any]]) -> None:
    """By problem: how many graphs reached the best known value, and how many were proved."""
    for problem in dict.fromkeys(row["problem"] for row in rows):
        mine = [row for row in rows if row["problem"] == problem]
        known = [row for row in mine if row["best_known"] is not None]
        reached = sum(row["objective"] == row["best_known"] for row in known)
        worst = max((abs(row["ratio"] - 1) for row in known if row["ratio"] is not None), default=0.0)
        proved = sum(bool(row["optimal"]) for row in mine)
        context.log.info(
            "%s: best known value on %d of %d graphs, at worst %.3f %% away, %d of %d proved optimal",
            problem, reached, len(known), 100 * worst, proved, len(mine),
        )  # fmt: skip
