"""--check RUN: the answers of a run, proved again from its files and the graphs alone; nothing is written.

result.json says what has to hold. Every solution is read and valued, and every bound is proved from its
certificates/NAME.npz by code that has no part in finding solutions or bounds.
"""

import json
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from app.bounds.certificate import BadCertificate
from app.comm.guard import raise_together
from app.errors import CaseError, GraphError, LockstepError
from app.graphs.graph import Graph
from app.graphs.weights import decimals_of
from app.partition.assemble import gather_whole
from app.problems.problem import Problem
from app.problems.table import SAMPLED, problem_of
from app.proofs.archive import LARGEST, from_bytes
from app.search.influence.rounds import gap_between
from app.solver.progress import relative_gap
from app.tasks.compare import graph_bytes, too_large, words_of_need
from app.tasks.context import Context
from app.tasks.entry import bound_and_gap, in_unit
from app.tasks.given import read_solution
from app.tasks.solve import names_apart
from app.tasks.solve_told import file_name
from app.tasks.tools import make_toolbox
from app.text import figures, gap_words, printable, shorten
from app.toolbox import Toolbox

FARTHEST = (1 << 63) - 1  # from 0, of a bound: those of cuts may be as weak as the file says
ROUNDED = 1 + 1e-7  # to one, of a spread that is told with 8 figures
LONGEST = 300  # characters of what is wrong with a certificate, which may hold words of the file


@dataclass(frozen=True)
class _Checked:
    """What is said of an answer that holds, and whether all of its bound was proved."""

    line: str
    proved: bool


def check_run(context: Context, path: str) -> None:
    """Check the answers of a run on the case's graphs; raises GraphError where one does not hold.

    Ranks   all call; answers are dealt to them
    """
    group, problem = context.group, problem_of(context.case)
    with raise_together(group, "reading the results"):
        entries = _entries(path, context.case.problem.name)
    graphs = context.load(context.case.graph, "instances", worked_on=False)
    if names_apart([loaded.graph.name for loaded in graphs]) != [entry["name"] for entry in entries]:
        own = printable(os.path.join(path, "case.toml"))
        raise CaseError(
            f"--check {printable(path)}: answers for other graphs; {own} as the case would be right"
        )
    mine: dict[int, _Checked] = {}
    for number, (loaded, entry) in enumerate(zip(graphs, entries)):
        if too_large(context, loaded):
            context.log.info(
                "%s: not checked: %s", loaded.graph.name, words_of_need(context, graph_bytes(loaded))
            )
            continue
        whole = gather_whole(group, loaded.graph, loaded.rows)
        toolbox = make_toolbox(context, problem, loaded, whole)
        with raise_together(group, "checking an answer"):
            if "spread" in entry:  # of a time limit's run that made fewer
                toolbox.simulate(min(entry["spread"]["simulations"], toolbox.worlds))
            if number % group.size == group.rank:
                mine[number] = _check(Path(path), problem, whole, toolbox, entry)
    told = [[number, checked.line] for number, checked in mine.items()]
    lines = sorted(line for text in group.gather_texts(json.dumps(told)) for line in json.loads(text))
    for _, line in lines:
        context.log.info("%s", line)
    proved = group.sum_integers(np.array([sum(checked.proved for checked in mine.values())]))[0]
    counts, sampled = (len(lines), len(entries), proved), problem.name in SAMPLED
    how = "follow from their certificates" if sampled else "are proved"
    context.log.info("%d of %d answers checked: all hold; bounds of %d " + how, *counts)


def _entries(path: str, problem: str) -> list[dict[str, Any]]:
    """What the run says of each graph. Raises CaseError."""
    name = os.path.join(path, "result.json")
    try:
        result = json.loads(Path(name).read_text("utf-8"))
        entries = [_whole(entry) for entry in result["instances"]]
        if not entries:
            raise LookupError("a run of another task")
        if result["problem"] != problem:
            other = printable(str(result["problem"]))
            raise CaseError(f"--check {printable(name)}: is of {other}, the case of {problem}")
    except (OSError, ValueError, LookupError, TypeError, ArithmeticError, RecursionError) as error:
        said = f"no answers of a solve ({type(error).__name__})"
        raise CaseError(f"--check {printable(name)}: {said}; the folder of one would be right") from None
    return entries


def _whole(entry: dict[str, Any]) -> dict[str, Any]:
    """An entry of a result, whose parts are what they should be. Raises where they are not."""
    objective, bound, gap = (entry[each] for each in ("objective", "bound", "gap"))
    for number in (objective, objective if bound is None else bound, 0 if gap in (None, math.inf) else gap):
        if type(number) not in (int, float) or not math.isfinite(number):
            raise ValueError("no number")
    if {type(entry[each]) for each in ("optimal", "feasible", "bound_verified")} != {bool}:
        raise ValueError("neither true nor false")
    if {type(entry["name"]), type(entry["sense"]), type(entry["bound_method"] or "")} != {str}:
        raise ValueError("no text")
    if "spread" in entry and not (
        type(worth := entry["spread"]["at_least"]) in (int, float) and math.isfinite(worth)
    ):
        raise ValueError("no number")
    if "spread" in entry and (type(made := entry["spread"]["simulations"]) is not int or made < 1):
        raise ValueError("no number of simulations")
    return entry


def _check(folder: Path, problem: Problem, whole: Graph, toolbox: Toolbox, entry: dict[str, Any]) -> _Checked:
    """One answer. Raises GraphError where it does not hold."""
    solution, value = _value(
        folder / "solution" / f"{file_name(entry['name'])}.txt", problem, whole, toolbox, entry
    )
    line = f"{entry['name']}: a feasible {toolbox.words}, objective {figures(in_unit(toolbox, value))}"
    certificate = folder / "certificates" / f"{file_name(entry['name'])}.npz"
    untrue, proves = _untrue(entry, toolbox), entry["bound"] is not None and certificate.is_file()
    if untrue and not (proves and "spread" in entry):  # whose least is judged by what is proved, first
        raise GraphError(f"{folder}: {entry['name']}: result.json says {untrue}")
    if entry["bound"] is None:
        return _Checked(f"{line}; no bound", False)
    least = toolbox.sense == "minimise"
    side = "at least" if least else "at most"
    if not proves:
        return _Checked(f"{line}; {side} {entry['bound']} has no certificate", False)
    proved = proved_by(str(certificate), toolbox)
    least_worth = toolbox.surely(solution, value)
    if "spread" in entry and entry["spread"]["at_least"] > (least_worth + 1) * toolbox.unit * ROUNDED:
        said, found = (figures(each) for each in (entry["spread"]["at_least"], least_worth * toolbox.unit))
        raise GraphError(
            f"{folder}: {entry['name']} has a spread of at least {found}, result.json says {said}"
        )
    if untrue:
        raise GraphError(f"{folder}: {entry['name']}: result.json says {untrue}")
    shown, gap = bound_and_gap(toolbox, least_worth, proved)
    sure = toolbox.confidence
    how = "is proved" if sure == 1 else f"by sets drawn again, with probability {sure:g}"
    line += f"; {side} {figures(shown)} {how}, " + ("optimal" if not gap else gap_words(gap))
    said = shown, proved * toolbox.unit
    if max(said) >= entry["bound"] if least else min(said) <= entry["bound"]:
        return _Checked(line, True)
    if entry["bound_verified"]:
        told = f"where result.json says {entry['bound']}, verified"
        raise GraphError(f"{certificate}: proves {side} {figures(shown)}, {told}")
    return _Checked(f"{line}; {side} {entry['bound']} rests on a search ({entry['bound_method']})", False)


def _untrue(entry: dict[str, Any], toolbox: Toolbox) -> str | None:
    """What an entry says that its own numbers, or the problem, show to be untrue; None: nothing.

    A spread is an estimate: what is certain of it, `at_least`, is what its bound and gap are of.
    """
    bound, gap, optimal = entry["bound"], entry["gap"], entry["optimal"]
    if (entry["sense"], entry["feasible"]) != (toolbox.sense, True):
        return f"{entry['sense']}, feasible {entry['feasible']}; {toolbox.sense} and true would be right"
    if bound is None:
        return None if gap is None and not optimal else "how far from optimal it is, and no bound"
    worth = entry["spread"]["at_least"] if "spread" in entry else entry["objective"]
    step = _step(toolbox)
    near = min(step / 2, _lost(toolbox))
    beyond = bound - worth if toolbox.sense == "minimise" else worth - bound
    if beyond > ((ROUNDED - 1) * abs(worth) if "spread" in entry else near):
        return f"a bound of {bound} beside {worth}, which is beyond it"
    least, most = _gaps(worth, bound, step, gap_between if "spread" in entry else relative_gap)
    if gap is not None and not (least <= gap <= most):
        return f"a gap of {gap} between {worth} and {bound}"
    if optimal and (gap != 0 or toolbox.confidence != 1):
        return f"that it is optimal, with a gap of {gap} and the probability {toolbox.confidence:g}"
    if optimal and abs(bound - worth) > near:
        return f"that {worth} is optimal, with a bound of {bound}"
    return None


def _gaps(
    worth: float, bound: float, step: float, between: Callable[[float, float], float]
) -> tuple[float, float]:
    """The least and the largest gap, told with six decimals, of numbers that are told as these two.

    A gap may be of the numbers before they were rounded: the bound by less than a step, the other by half of
    one. So they are at most two steps nearer to each other, or farther; near zero the gap may be anything.
    """
    far, away, size = between(worth, bound), abs(worth - bound), abs(bound)
    room = 1e-6 + 1e-9 * far if math.isfinite(far) else 0.0
    if not step:
        return far - room, far + room
    least = min(max(away - 2 * step, 0.0) / (size + step), far)
    most = (away + 2 * step) / (size - step) if size > step else math.inf
    return least * (1 - 1e-9) - 1e-6, max(most + room, far)


def _step(toolbox: Toolbox) -> float:
    """What numbers that are told are rounded to, a unit of the last decimal of weights; 0: they are not."""
    if toolbox.unit == 1:
        return 0.0
    decimals = None if toolbox.weights is None else decimals_of(toolbox.weights * toolbox.unit)
    return toolbox.unit if decimals is None else 10.0**-decimals


def _lost(toolbox: Toolbox) -> float:
    """How far sums of weights, kept in 32 bits and in whole units, may be from those of decimals."""
    if toolbox.weights is None:
        return toolbox.unit / 2
    return 2 * (2.0**-24 * float(np.abs(toolbox.weights).sum()) + len(toolbox.weights)) * toolbox.unit


def _value(
    path: Path, problem: Problem, whole: Graph, toolbox: Toolbox, entry: dict[str, Any]
) -> tuple[np.ndarray, int]:
    """The solution of a file and what it is worth. Raises GraphError where it is not what the entry says."""
    if not path.is_file():
        raise GraphError(f"{path}: no such file; a run with output.solutions = true would be right")
    solution = read_solution(problem, toolbox, str(path), whole.held_ids())
    if (fault := toolbox.fault(solution)) is not None:
        raise GraphError(f"{path}: not a feasible {toolbox.words} of {whole.name}: {fault}")
    if (untrue := toolbox.untrue(str(path), solution)) is not None:
        raise GraphError(f"{path}: {untrue}")
    value = toolbox.value(solution)
    found, said = in_unit(toolbox, value), entry["objective"]
    if said not in (found, value * toolbox.unit):  # of rows it is told without the decimals of weights
        raise GraphError(f"{path}: has an objective of {found}, where result.json says {said}")
    return solution, value


def proved_by(certificate: str | bytes, toolbox: Toolbox) -> int:
    """The bound that a certificate proves, of the instance; a file or its content. Raises GraphError."""
    name = certificate if isinstance(certificate, str) else "certificate"
    try:
        bound = toolbox.prove(from_bytes(_content(certificate)))
        if abs(bound) > FARTHEST:
            raise BadCertificate("a bound beyond 63 bits")
        return bound
    except LockstepError as error:
        raise GraphError(f"{name}: {shorten(printable(str(error)), LONGEST)}") from None
    except OSError as error:
        raise GraphError(f"{name}: cannot be read: {error.strerror or error}") from None
    except Exception as error:  # arrays that fit neither each other nor the graph, or memory
        raise GraphError(f"{name}: not about this graph, or damaged ({type(error).__name__})") from None


def _content(certificate: str | bytes) -> bytes:
    """The bytes of a file, or those given. Raises BadCertificate, OSError."""
    size = os.path.getsize(certificate) if isinstance(certificate, str) else len(certificate)
    if size > LARGEST:
        raise BadCertificate(f"more than {LARGEST >> 30} GB")
    return Path(certificate).read_bytes() if isinstance(certificate, str) else certificate
