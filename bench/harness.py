"""Paired measurements: both sides in one run, by turns; ratios, records, and tables for the documents.

One rank on one thread is measured in processor seconds, several ranks in wall seconds.
"""

import datetime
import json
import math
import os
import platform
import resource
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

Clock = Callable[[], float]
ROOT = Path(__file__).parent.parent
RECORDS, DOCUMENT = ROOT / "runs" / "bench", ROOT / "docs" / "measurements" / "speed.md"
BEGIN, END = "<!-- written by make bench -->", "<!-- end of what make bench writes -->"
ONLY: list[str] = []  # words, one of which is in the name of each case that is measured; none: all are
SHORTEST_S = 0.01  # a timing that would be shorter repeats its call
INTERPRETERS: dict[str, str] = {}  # of programs that are measured in processes of their own, by name


@dataclass(frozen=True)
class Effort:
    """How long to measure: at most `pairs` pairs, but no new one after `seconds`, once there are `least`."""

    pairs: int
    least: int
    seconds: float

    def enough(self, done: int, spent: float) -> bool:
        """True when no further pair is due."""
        return done >= self.pairs or (done >= self.least and spent >= self.seconds)


FULL, QUICK = Effort(31, 7, 8.0), Effort(3, 2, 5.0)


@dataclass
class Record:
    """One compared case: a ratio over pairs, and the goal it is held against.

    ratio      [first quartile, median, third quartile]
    ours_s, theirs_s   median seconds of either side, for orientation
    goal       "": none; ">= 5": the median must be at least 5; "<= 1.3": at most
    """

    case: str
    against: str
    ratio: list[float]
    pairs: int
    ours_s: float
    theirs_s: float
    goal: str = ""
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the median keeps to the goal; None without one."""
        if not self.goal:
            return None
        sign, number = self.goal.split()
        median = self.ratio[1]
        return median >= float(number) if sign == ">=" else median <= float(number)

    def line(self) -> str:
        """One line for the terminal."""
        low, median, high = self.ratio
        word = {None: "", True: f"  goal {self.goal}", False: f"  goal {self.goal} MISSED"}[self.met]
        times = f"{1e3 * self.ours_s:9.2f} ms {1e3 * self.theirs_s:10.2f} ms"
        spread = f"{median:7.2f} [{low:.2f}, {high:.2f}] {self.pairs:3d} pairs"
        return f"{self.case:44s} {self.against:34s} {times} {spread}{word}  {self.note}"


@dataclass
class Table:
    """Findings that are no ratios, below the records of a part."""

    title: str
    columns: list[str]
    rows: list[list[str]]

    def line(self) -> str:
        """Lines for the terminal."""
        return "\n".join([f"{self.title}:", *("  " + "  ".join(row) for row in [self.columns, *self.rows])])


def asked_for(case: str) -> bool:
    """Whether a case is to be measured."""
    return not ONLY or any(word in case for word in ONLY)


# ---- timing -----------------------------------------------------------------------------------------------


def seconds_of(action: Callable[[], Any], repeats: int = 1, clock: Clock = time.process_time) -> float:
    """Seconds of one call, the mean of `repeats`.

    clock   processor seconds unless told otherwise: on one thread they are what an idle machine would take,
            and other programs on the machine do not count; ranks that wait for each other need wall seconds
    """
    start = clock()
    for _ in range(repeats):
        action()
    return (clock() - start) / repeats


def repeats_for(seconds: float) -> int:
    """Calls that make a timing long enough to be one."""
    return max(1, math.ceil(SHORTEST_S / max(seconds, 1e-7)))


def children_s() -> float:
    """Seconds of the processor that finished child processes took."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def alternate(
    ours: Callable[[int], Any],
    theirs: Callable[[int], Any],
    effort: Effort,
    clock: Clock = time.process_time,
) -> tuple[list[float], list[float]]:
    """Seconds per call of both sides, pair by pair; who begins changes each time.

    ours, theirs   take the number of the pair, so that both can be given the same work
    """
    sides = (ours, theirs)
    for side in sides:
        side(0)
    repeats = [repeats_for(seconds_of(partial(side, 0), 1, clock)) for side in sides]
    taken: tuple[list[float], list[float]] = ([], [])
    start = time.perf_counter()
    while not effort.enough(len(taken[0]), time.perf_counter() - start):
        number = len(taken[0])
        for i in (0, 1) if number % 2 == 0 else (1, 0):
            taken[i].append(seconds_of(partial(sides[i], number), repeats[i], clock))
    return taken


def quartiles(values: list[float]) -> list[float]:
    """[first quartile, median, third quartile]."""
    if len(values) < 2:
        return [values[0]] * 3
    return statistics.quantiles(values, n=4, method="inclusive")


def record(
    case: str, against: str, ours: list[float], theirs: list[float], goal: str = "", note: str = ""
) -> Record:
    """The record of paired seconds: ratios are theirs / ours, so above one we are faster."""
    ratio = quartiles([b / a for a, b in zip(ours, theirs)])
    return Record(
        case, against, ratio, len(ours), statistics.median(ours), statistics.median(theirs), goal, note
    )


def compare(
    case: str,
    against: str,
    ours: Callable[[int], Any],
    theirs: Callable[[int], Any],
    effort: Effort,
    goal: str = "",
    note: str = "",
    clock: Clock = time.process_time,
) -> Record:
    """Measure both sides by turns."""
    return record(case, against, *alternate(ours, theirs, effort, clock), goal, note)


# ---- records ----------------------------------------------------------------------------------------------


def machine() -> str:
    """Processor, cores, memory and system, in a line."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
        model = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} cores of {model}, {gib:.0f} GiB, {platform.system()}"


def save(part: str, found: list[Record | Table], command: str, about: dict[str, str], folder: Path) -> None:
    """Write what was found in one part to folder/PART.json."""
    records = [each for each in found if isinstance(each, Record)]
    whole = {
        "part": part,
        "date": datetime.date.today().isoformat(),
        "command": command,
        "machine": machine(),
        "versions": {"python": platform.python_version(), **about},
        "records": [{**asdict(each), "met": each.met} for each in records],
        "tables": [asdict(each) for each in found if isinstance(each, Table)],
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{part}.json").write_text(json.dumps(whole, indent=1) + "\n", "utf-8")


def table(whole: dict[str, Any], title: str) -> list[str]:
    """The section of one part, as lines of Markdown."""
    versions = ", ".join(f"{name} {value}" for name, value in whole["versions"].items())
    lines = [
        f"### {title}",
        "",
        f"{whole['date']}, `{whole['command']}`; {whole['machine']}; {versions}.",
        "",
        "| case | against | ours, ms | theirs, ms | ratio [quartiles] | pairs | goal | |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for each in whole["records"]:
        low, median, high = (_short(value) for value in each["ratio"])
        goal = f"{each['goal']}, {'met' if each['met'] else 'missed'}" if each["goal"] else ""
        times = f"{_short(1e3 * each['ours_s'])} | {_short(1e3 * each['theirs_s'])}"
        ratio = f"{median} [{low}, {high}] | {each['pairs']}"
        lines.append(f"| {each['case']} | {each['against']} | {times} | {ratio} | {goal} | {each['note']} |")
    for each in whole.get("tables", []):
        rows = [each["columns"], ["---"] * len(each["columns"]), *each["rows"]]
        lines += ["", f"{each['title']}:", "", *("| " + " | ".join(row) + " |" for row in rows)]
    return [*lines, ""]


def _short(value: float) -> str:
    """Three digits that count."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def write_section(titles: dict[str, str], folder: Path, document: Path) -> None:
    """Put the tables of all recorded parts between the markers of a document; they start at its end.

    Parts without a record keep the tables that the document has of them.
    """
    text = document.read_text("utf-8")
    if BEGIN not in text:
        text = f"{text.rstrip()}\n\n## Speed\n\n{BEGIN}\n{END}\n"
    before, rest = text.split(BEGIN, 1)
    held, after = rest.split(END, 1)
    known = {each.split("\n", 1)[0]: each.rstrip() for each in held.split("\n### ")[1:]}
    lines = [BEGIN, ""]
    for part, title in titles.items():
        path = folder / f"{part}.json"
        if path.exists():
            lines += table(json.loads(path.read_text("utf-8")), title)
        elif title in known:
            lines += [f"### {known[title]}", ""]
    document.write_text(before + "\n".join(lines) + END + after, "utf-8")


def command_line(ranks: int) -> str:
    """The command as a user would repeat it."""
    start = f"mpirun -np {ranks} " if ranks > 1 else ""
    return start + " ".join(["python", "bench/speed.py", *sys.argv[1:]])
