"""Whole commands, drawn: each must end in one of the ways that docs/faults.md promises.

    python tests/fuzz_commands.py [--commands N] [--first I] [--only WORD] [--seconds S] [--keep FOLDER]

Command i is made from the number i alone (tests/fuzz_draws.py): a task, a problem, level or study, a small
graph of some format or none, settings inside, at and beyond their ranges, 1 to 3 ranks, or a call of `app`.
It counts as a fault when

1. it ends with another code than 0, 2 or 3, prints a traceback or a warning of Python's or NumPy's, or needs
   more than LIMIT_S;
2. it ends with 2 and does not say so in one line that names a key, a file or an option;
3. it is complete, and an answer is not feasible, beyond its bound, or refused by --check, or a setting of
   [problem] or [gnn] is of another problem, level or layer;
4. other numbers of ranks, the run's own case.toml, or a stop by SIGTERM and --resume on other ranks give
   another digest, where budgets are steps;
5. a certificate or checkpoint of which a byte is altered is taken, or refused in more than a line;
6. an answer is worse than a plain heuristic of its own run; of a small instance it, or its bound, is beyond
   the best of all solutions, or it is worth something else by an independent reading (tests/fuzz_optima.py);
7. --check takes a solution with another id in it, the page of the run cannot be made, --dry-run refuses what
   runs, takes what its case is refused for or shows another case, or a call from Python finds another answer.

Prints one JSON line for each fault, with the shell command that shows it again and as few settings as still
do, and how often each subject was drawn and what became of it; the exit code is 1 where there was a fault.
"""

import argparse
import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from contextlib import chdir, suppress
from dataclasses import dataclass, replace
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent)]

from fuzz_draws import Drawn, command, python_value, unread  # noqa: E402
from fuzz_optima import fault_of_answer  # noqa: E402
from jobs import PROGRAM, environment, mpirun, quickly, waits  # noqa: E402

from app.case.file import load  # noqa: E402
from app.errors import LockstepError  # noqa: E402

LIMIT_S = 240  # a study that measures rates takes a minute where other programs are at work
# Keys that some numbers of ranks do not fit: another number may be refused.
OF_RANKS = ("parallel.spatial", "parallel.data", "rgcn.groups")
SEED = "c.toml"
NAMED = re.compile(r"\w+\.\w+|--\w+|^ *\S+: ")  # a key or a file, an option, a graph by its name
NOISE = re.compile(r"Traceback|\bWarning: |RuntimeWarning|Error:|Segmentation|Assertion")
NEEDLESS = ("output.plots=false",)


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code (None: it did not), what it printed to each stream."""

    code: int | None
    out: str
    error: str
    seconds: float


def start(
    arguments: list[str], folder: Path, ranks: int, stop_after: float = 0.0, python: str = "",
    limit: float = LIMIT_S, module: bool = False,
) -> Ended:  # fmt: skip
    """Run run.py, a text of Python, or a tool of `python -m app`.

    stop_after   seconds until a SIGTERM; 0: none is sent
    limit        seconds that it may need
    """
    launcher = mpirun(ranks) if ranks > 1 else []
    what = ["-c", python] if python else ["-m", "app"] if module else [str(PROGRAM)]
    what += [] if python else arguments
    variables = {"LOCKSTEP_DATA": "", "PYTHONPATH": str(PROGRAM.parent)}
    asked = [*launcher, sys.executable, *what]
    if not stop_after:
        asked = quickly(asked, folder, variables, True)
    given = {**waits(list(map(str, asked))), **environment(), **variables, "OMP_NUM_THREADS": "1"}
    begun = time.monotonic()
    with subprocess.Popen(
        list(map(str, asked)), cwd=folder, env=given, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, start_new_session=True,
    ) as job:  # fmt: skip
        try:
            if stop_after:
                try:
                    job.wait(stop_after)
                except subprocess.TimeoutExpired:
                    job.send_signal(signal.SIGTERM)
            out, error = job.communicate(timeout=limit)
            code = job.returncode
        except subprocess.TimeoutExpired:
            os.killpg(job.pid, signal.SIGKILL)
            (out, error), code = job.communicate(), None
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(job.pid, signal.SIGKILL)
            raise
    texts = [each.decode(errors="replace") for each in (out, error)]
    return Ended(code, *texts, time.monotonic() - begun)


# ---- judging ----------------------------------------------------------------------------------------------


def fault_of_end(ended: Ended, whole: bool = True) -> str | None:
    """What is wrong with how a command ended, or None.

    whole   it may be complete, or stopped; else it can only be refused
    """
    if ended.code is None:
        return f"not done after {ended.seconds:.0f} s: {ended.out[-300:]}"
    found = NOISE.search(ended.error)
    if found and not (ended.code == 2 and ended.error.startswith("lockstep: error")):
        return f"code {ended.code}, on stderr: {ended.error[max(found.start() - 200, 0) :][-900:]}"
    if ended.code == 2:
        return fault_of_refusal(ended.error)
    if ended.code not in ((0, 3) if whole else ()):
        return f"exit code {ended.code}: {ended.error[-400:]}"
    if ended.code == 0 and ended.error.strip():
        return f"complete, and on stderr: {ended.error[-400:]}"
    return None


def fault_of_refusal(error: str) -> str | None:
    """What is wrong with a refusal: one line, or several mistakes of a case and their number."""
    lines = error.strip().split("\n")
    many = re.search(r": (\d+) mistakes$", lines[0])
    if len(lines) != (1 + int(many[1]) if many else 1):
        return f"a refusal of {len(lines)} lines: {error[:600]}"
    told = [line.removeprefix("lockstep: error:") for line in lines[bool(many) :]]
    unnamed = [line for line in told if not NAMED.search(line)]
    return f"a refusal that names nothing: {unnamed[0][:300]}" if unnamed else None


def fault_of_result(folder: Path) -> str | None:
    """What is wrong with result.json of a complete run, or None."""
    try:
        result = json.loads((folder / "result.json").read_text())
    except (OSError, ValueError) as error:
        return f"no result.json ({type(error).__name__})"
    if result.get("status") != "complete" or not result.get("digest"):
        return f"result.json says {result.get('status')!r}"
    for entry in result.get("instances", []):
        if not isinstance(entry, dict) or "objective" not in entry:
            continue
        if not entry.get("feasible", True):
            return f"{entry['name']}: not feasible"
        bound, objective = entry.get("bound"), entry["objective"]
        if bound is None:
            continue
        beyond = bound - objective if entry["sense"] == "minimise" else objective - bound
        if beyond > 1e-6 * max(abs(bound), abs(objective)) and entry.get("spread") is None:
            return f"{entry['name']}: an objective of {objective} beyond the bound {bound}"
    return None


def fault_of_baselines(folder: Path) -> str | None:
    """An answer of a complete run that is worse than a plain heuristic of it, or None."""
    for entry in json.loads((folder / "result.json").read_text()).get("instances", []):
        if not isinstance(entry, dict) or entry.get("spread") is not None:  # a spread is an estimate
            continue
        sign = 1 if entry.get("sense") == "minimise" else -1
        for name, found in entry.get("baselines", {}).items():
            worse = sign * (entry["objective"] - found)
            if worse > 1e-6 * max(abs(found), abs(entry["objective"])):
                return f"{entry['name']}: {entry['objective']}, and {name} finds {found}"
    return None


def digest(folder: Path) -> str:
    """The digest of a complete run."""
    return json.loads((folder / "result.json").read_text())["digest"]


# ---- one command ------------------------------------------------------------------------------------------


class Attempt:
    """A command in a folder of its own: run, judged, run again in other ways."""

    def __init__(self, drawn: Drawn, folder: Path, limit: float = LIMIT_S) -> None:
        self.limit = limit
        self.drawn, self.folder, self.draw = drawn, folder, random.Random(drawn.number + 1_000_003)
        self.last: list[str] = []  # the shell commands of this attempt
        for name, data in {**drawn.files, SEED: f"seed = {drawn.number % 3}\n".encode()}.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(data)
        if drawn.tame:
            self._tame()

    def _tame(self) -> None:
        """Leave out the settings that the program refuses before it reads a graph."""
        drawn, kept = self.drawn, ()
        for each in drawn.loose:
            self.drawn = replace(drawn, loose=(*kept, each))
            kept = self.drawn.loose if self._taken() else kept
        self.drawn = replace(drawn, loose=kept)

    def _taken(self) -> bool:
        """Whether the case is one that names and keys are right in."""
        from app.tasks.refused import check_names

        with chdir(self.folder):
            try:
                check_names(load(SEED, self.settings()))
            except LockstepError:
                return False
        return True

    def other(self) -> int:
        """Another number of ranks, where no setting is of their number."""
        bound = any(each.startswith(OF_RANKS) for each in self.settings())
        return self.drawn.ranks if bound else self.drawn.other

    def settings(self) -> list[str]:
        """All settings, the later of a key alone."""
        found: dict[str, str] = {}
        for each in (*NEEDLESS, *self.drawn.fixed, *self.drawn.loose):
            found[each.split("=", 1)[0]] = each
        return list(found.values())

    def run(self, more: list[str], ranks: int, out: str, case: str = "", stop_after: float = 0.0) -> Ended:
        """Run the case, or another one, on so many ranks."""
        given = [case] if case else [SEED, *self.settings()]
        arguments = [*given, "--out", out, *more]
        launcher = ["mpirun", "-np", str(ranks)] if ranks > 1 else []
        when = [f"SIGTERM after {stop_after:.2f} s:"] if stop_after else []
        self.last.append(" ".join([*when, shlex.join([*launcher, "python", "run.py", *arguments])]))
        return start(arguments, self.folder, ranks, stop_after, limit=self.limit)

    def fault(self) -> tuple[str, str | None]:
        """What became of the command, in a word, and what is wrong with it, or None."""
        if self.drawn.python:
            return self._of_python()
        ended = self.run([], self.drawn.ranks, "out")
        fault = fault_of_end(ended)
        if fault or ended.code != 0:
            fault = fault or self._dry_of_refused(ended)
            return {0: "complete", 2: "refused", 3: "stopped"}.get(ended.code or 0, "failed"), fault
        fault = fault_of_result(self.folder / "out") or self._unread() or self._optimum()
        if "search.solver=" not in " ".join(self.settings()):
            fault = fault or fault_of_baselines(self.folder / "out")
        for way in (
            self._dry, self._checked, self._altered, self._page, self._called, self._again, self._ranks,
            self._stopped,
        ):  # fmt: skip
            fault = fault or way(ended.seconds)
        return "complete", fault

    def _unread(self) -> str | None:
        """A setting that was taken, though nothing reads it."""
        if not {"run.task=solve", "run.task=classify"} & set(self.drawn.fixed):
            return None
        found = unread(self.settings())
        return found and f"{found} is taken, and of something else by its own words"

    def _optimum(self) -> str | None:
        """What is wrong with the answer of an instance all of whose solutions are known."""
        if self.drawn.exact is None:
            return None
        (entry,) = json.loads((self.folder / "out" / "result.json").read_text())["instances"]
        texts = list((self.folder / "out" / "solution").glob("*.txt"))
        return fault_of_answer(entry, texts[0].read_text() if texts else None, self.drawn.exact)

    def _dry(self, _: float) -> str | None:
        """--dry-run of what was complete: not refused, and the same case."""
        if self.draw.random() > 0.3:
            return None
        ended = self.run(["--dry-run"], self.drawn.ranks, "dry")
        if ended.code != 0 or ended.error.strip():
            return f"--dry-run: code {ended.code} where it runs: {(ended.error or ended.out)[-500:]}"
        if (self.folder / "dry").exists():
            return "--dry-run makes a folder"
        told = tomllib.loads(ended.out)
        ran = tomllib.loads((self.folder / "out" / "case.toml").read_text())
        for case in (told, ran):
            case["run"].pop("out", None)
        differs = [name for name in ran if told.get(name) != ran[name]]
        return f"--dry-run shows another case: {differs}" if differs else None

    def _dry_of_refused(self, ended: Ended) -> str | None:
        """--dry-run of what was refused: refused, or for what only the graphs show not."""
        if ended.code != 2 or self.draw.random() > 0.1:
            return None
        dry = self.run(["--dry-run"], self.drawn.ranks, "dry")
        if dry.code == 2 and dry.error != ended.error:
            return f"--dry-run is refused otherwise: {dry.error!r}, {ended.error!r}"
        return fault_of_end(dry)

    def _page(self, _: float) -> str | None:
        """python -m app report of the folder."""
        if self.draw.random() > 0.3:
            return None
        self.last.append("python -m app report out -o page.html")
        ended = start(["report", "out", "-o", "page.html"], self.folder, 1, limit=self.limit, module=True)
        page = self.folder / "page.html"
        whole = page.is_file() and page.read_text().rstrip().endswith("</html>")
        return None if ended.code == 0 and whole and not ended.error.strip() else f"report: {ended}"

    def _altered(self, _: float) -> str | None:
        """--check of a folder with another id in a solution: refused, or what it makes is worth the same."""
        solutions = sorted((self.folder / "out" / "solution").glob("*.txt"))
        if self.drawn.exact is None or not solutions or self._nothing_to_check():
            return None
        path, instance = solutions[0], self.drawn.exact
        text = path.read_text()
        lines = text.splitlines(keepends=True)
        if not lines or self.draw.random() > 0.7:
            return None
        at, (other, *_) = self.draw.randrange(len(lines)), self.draw.choice(lines).split() or ["0"]
        altered = self.draw.choice(
            (lines[:at] + lines[at + 1 :], [*lines[:at], f"{other}\n", *lines[at + 1 :]])
        )
        path.write_text("".join(altered))
        ended = self.run(["--check", "out"], 1, "checked", "out/case.toml")
        path.write_text(text)
        if ended.code != 0:
            return fault_of_end(ended, whole=False)
        try:
            worth = instance.value("".join(altered))
        except (ValueError, KeyError, IndexError) as error:
            return f"--check takes {altered}, of which nothing can be made ({error!r})"
        (entry,) = json.loads((self.folder / "out" / "result.json").read_text())["instances"]
        same = worth is not None and abs(worth - entry["objective"]) <= 1e-6 * max(1.0, abs(worth))
        return None if same else f"--check takes {altered}, worth {worth} where it was {entry['objective']}"

    def _called(self, _: float) -> str | None:
        """The same by a call from Python: the digest of the command."""
        fixed = dict(each.split("=", 1) for each in self.settings())
        task, solved = fixed.get("run.task"), "graph.path" in fixed and self.drawn.in_steps
        if task != "solve" or not solved or self.draw.random() > 0.25 or "output.certificates" in fixed:
            return None
        path, name = fixed.pop("graph.path"), fixed.pop("problem.name").strip('"')
        for key in ("run.task", "run.name", "run.out", "policy.weights"):
            fixed.pop(key, None)
        shown = ", ".join(f"{key!r}: {python_value(text)}" for key, text in fixed.items())
        seed = self.drawn.number % 3
        text = f"import app, json\na = app.solve({path!r}, {name!r}, settings={{'seed': {seed}, {shown}}})\n"
        text += "print('found', json.dumps([a.digest, a.objective]))"
        self.last.append(shlex.join(["python", "-c", text]))
        ended = start([], self.folder, 1, python=text, limit=self.limit)
        result = json.loads((self.folder / "out" / "result.json").read_text())
        (entry, *more) = result["instances"]
        found = re.search(r"found (.*)", ended.out)
        if "CaseError: settings: graph." in ended.error:  # what calls have arguments for
            return None
        if ended.code != 0 or found is None:
            return f"from Python: code {ended.code}: {ended.error[-700:]}"
        digest_of, objective = json.loads(found[1])
        if more or objective == entry["objective"]:
            return None
        return f"from Python: {objective} ({digest_of[:12]}) in place of {entry['objective']}"

    def _of_python(self) -> tuple[str, str | None]:
        """A call from Python on some ranks and on others."""
        found = []
        for ranks in (self.drawn.ranks, self.drawn.other):
            launcher = ["mpirun", "-np", str(ranks)] if ranks > 1 else []
            self.last.append(shlex.join([*launcher, "python", "-c", self.drawn.python]))
            ended = start([], self.folder, ranks, python=self.drawn.python, limit=self.limit)
            if ended.code == 2 and "refused:" in ended.error and not found:
                return "refused", None
            # What the log warns of is a Python warning, too: UserWarning, in words of ours.
            if ended.code != 0 or re.search(r"Traceback|RuntimeWarning", ended.error):
                return "failed", f"code {ended.code}: {ended.error[-900:]}"
            found.append(set(re.findall(r"found .*", ended.out)))
        same = found[0] == found[1] and len(found[0]) == 1
        return "complete", None if same else f"other answers on other ranks: {found}"

    def _checked(self, _: float) -> str | None:
        """--check of a solve's folder, then of one with an altered certificate."""
        solved = "run.task=solve" in self.drawn.fixed
        if not solved or "output.solutions=false" in self.settings() or self._nothing_to_check():
            return None
        ranks = self.other()
        ended = self.run(["--check", "out"], ranks, "checked", "out/case.toml")
        if ended.code != 0 or ended.error.strip():
            return f"--check: code {ended.code}: {(ended.error or ended.out)[-500:]}"
        files = sorted((self.folder / "out" / "certificates").glob("*.npz"))
        if not files:
            return None
        whole = files[0].read_bytes()
        at, altered = self.draw.randrange(len(whole)), bytearray(whole)
        altered[at] ^= 1 << self.draw.randrange(8)
        files[0].write_bytes(altered)
        again = self.run(["--check", "out"], ranks, "checked", "out/case.toml")
        files[0].write_bytes(whole)
        if again.code == 0 and not again.error.strip():  # a byte that no number depends on
            fault = f"a certificate with byte {at} altered proves something else: {again.out}"
            return None if again.out == ended.out else fault
        return fault_of_end(again, whole=False)

    def _nothing_to_check(self) -> bool:
        """Whether a graph is too large for what checks it: a limit of the case says so."""
        return any(each.startswith("memory.whole_graph_mb") for each in self.settings())

    def _again(self, _: float) -> str | None:
        """The run folder's own case, on as many ranks."""
        if not self.drawn.in_steps or self.draw.random() > 0.3:
            return None
        return self._same(self.run([], self.drawn.ranks, "again", "out/case.toml"), "again")

    def _ranks(self, _: float) -> str | None:
        """Another number of ranks."""
        if not self.drawn.in_steps or self.draw.random() > 0.6:
            return None
        return self._same(self.run([], self.other(), "other"), "other")

    def _same(self, ended: Ended, out: str) -> str | None:
        """Whether a second run of the same is complete with the same digest."""
        fault = fault_of_end(ended)
        if fault or ended.code != 0:
            said = (ended.error or ended.out)[-400:]
            return fault or f"code {ended.code} where it was complete before: {said}"
        first, second = (digest(self.folder / each) for each in ("out", out))
        return None if first == second else f"digest {second[:12]} in place of {first[:12]}"

    def _stopped(self, seconds: float) -> str | None:
        """SIGTERM at some moment, perhaps a damaged checkpoint, --resume on other ranks."""
        if not self.drawn.in_steps or self.draw.random() > 0.12:
            return None
        after = self.draw.uniform(0.3, seconds + 1.5)
        ended = self.run([], self.drawn.ranks, "halted", stop_after=after)
        if ended.code == 0:
            return None
        if ended.code != 3:
            return f"SIGTERM after {after:.2f} s: code {ended.code}: {ended.error[-500:]}"
        if self.draw.random() < 0.4:
            fault = self._damaged()
            if fault:
                return fault
        return self._same(self.run(["--resume"], self.other(), "halted"), "halted")

    def _damaged(self) -> str | None:
        """A checkpoint with an altered byte, in a copy of the folder: passed over or refused, never taken."""
        files = list((self.folder / "halted" / "checkpoint").rglob("*.npz"))
        if not files:
            return None
        shutil.copytree(self.folder / "halted", self.folder / "damaged")
        for each in files:
            path = self.folder / "damaged" / each.relative_to(self.folder / "halted")
            data = bytearray(path.read_bytes())
            data[self.draw.randrange(len(data))] ^= 16
            path.write_bytes(data)
        ended = self.run(["--resume"], self.other(), "damaged")
        return fault_of_end(ended, whole=False) if ended.code != 0 else "a damaged checkpoint was taken"


def attempt(drawn: Drawn, limit: float = LIMIT_S) -> tuple[str, str | None, list[str]]:
    """Run a command in a folder of its own; what became of it, the fault, the shell commands."""
    with tempfile.TemporaryDirectory(dir=_fast_folder(), prefix="lockstep-fuzz-") as folder:
        tried = Attempt(drawn, Path(folder), limit)
        word, fault = tried.fault()
        return word, fault, tried.last


def shrunk(drawn: Drawn, limit: float = LIMIT_S) -> Drawn:
    """The command with as few settings as still make it fail."""
    for each in drawn.loose:
        fewer = replace(drawn, loose=tuple(other for other in drawn.loose if other is not each))
        if attempt(fewer, limit)[1]:
            drawn = fewer
    return drawn


def _fast_folder() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def kept(drawn: Drawn, folder: str) -> str:
    """Write the files of a command where they can be looked at; returns the folder."""
    place = Path(folder) / str(drawn.number)
    place.mkdir(parents=True, exist_ok=True)
    for name, data in {**drawn.files, SEED: f"seed = {drawn.number % 3}\n".encode()}.items():
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_bytes(data)
    return str(place)


def main() -> int:
    """Run the commands that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--commands", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", default="", help="a word of the subject, such as 'solve tsp'")
    parser.add_argument("--seconds", type=float, default=0.0, help="no command begins later; 0: all of them")
    parser.add_argument("--keep", default="", help="a folder for the files of commands with a fault")
    parser.add_argument("--whole", action="store_true", help="faults are not made smaller")
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="seconds that a command may need")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: what was found is told
    counts: dict[str, Counter[str]] = {}
    faults, begun = 0, time.monotonic()
    for number in range(asked.first, asked.first + asked.commands):
        if asked.seconds and time.monotonic() - begun > asked.seconds:
            break
        drawn = command(number, asked.only)
        try:
            word, fault, shell = attempt(drawn, asked.limit)
        except KeyboardInterrupt:
            break
        counts.setdefault(drawn.subject, Counter())[word if fault is None else "fault"] += 1
        if fault is not None:
            faults += 1
            if not asked.whole and drawn.loose:
                drawn = shrunk(drawn, asked.limit)
                _, again, shown = attempt(drawn, asked.limit)
                fault, shell = (fault, shell) if again is None else (again, shown)
            told = {"number": number, "subject": drawn.subject, "fault": fault[:1500], "shown_by": shell}
            told |= {"files": kept(drawn, asked.keep)} if asked.keep else {}
            print(json.dumps(told), flush=True)
    for subject, found in sorted(counts.items()):
        print(f"{subject:24s} " + "  ".join(f"{word} {count}" for word, count in sorted(found.items())))
    total = sum(sum(found.values()) for found in counts.values())
    whole = sum(found["complete"] for found in counts.values())
    took = time.monotonic() - begun
    print(f"{total} commands, {whole} complete, {faults} faults, {took:.0f} s")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
