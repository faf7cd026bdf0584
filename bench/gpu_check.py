"""All that must be shown on a GPU, in one command without a network: a table, JSON, a section of the docs.

    python bench/gpu_check.py                        every step that is not done yet, within 25 minutes
    python bench/gpu_check.py --only kernels spmm    some of them, again
    python bench/gpu_check.py --rehearse             small sizes on a machine without a GPU

--minutes M   that all steps may take together       --out DIR   where STEP.json go (runs/gpu_check)
--docs FILE   writes the tables into its section "GPU"; without it nothing but DIR is written

Each step is a process of its own with a time limit, and its result is kept, row by row: after an interruption
the same command does what is missing. So it can be done in pieces, into the same folder DIR, with
`--minutes 9 --only facts kernels`, then `--minutes 9 --only gcn`, and so on. The kernels of the CPU must have
been built by the machine's own Python (`python setup.py build_ext --inplace`). The exit code is 1 where
something did not hold, or a step did not end. In a rehearsal the steps run in this process, on the kernels
compiled for the host where tests/ and a C++ compiler are there.
"""

import argparse
import contextlib
import datetime
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
from app import threads

os.environ.update(dict.fromkeys(threads.VARIABLES, "1"))  # before NumPy is imported, which reads them once

from app.comm.transport import job_environment
from bench.gpu_steps import STEPS
from bench.gpu_tools import ROOT, Report, open_where, said

UNDONE = "the step did not end"  # of a result while the step is under way
SPARE_S = 20  # for the start and the end of a process
BEGIN, END = "<!-- gpu: written by bench/gpu_check.py -->", "<!-- gpu: end -->"


def run_step(name: str, out: Path, rehearse: bool, seconds: float) -> dict[str, Any]:
    """Run a step in this process and keep what it found, after each row of a table too."""
    title, work, _ = STEPS[name]
    where, start = open_where(rehearse, seconds), time.perf_counter()
    about = {
        "step": name,
        "title": title,
        "date": datetime.date.today().isoformat(),
        "device": where if isinstance(where, str) else where.device.describe(),
        "rehearsal": rehearse,
    }

    def write(*more: str) -> dict[str, Any]:
        whole = {**about, "seconds": time.perf_counter() - start, "tables": found.tables}
        return keep({**whole, "notes": found.notes, "failures": [*found.failures, *more]}, out)

    found = Report(changed=lambda: write(UNDONE))
    if isinstance(where, str):
        return write(where)
    try:
        write(UNDONE)
        work(where, found)
    except Exception as error:  # told in the table; the other steps may still hold
        return write(said(error))
    return write()


def keep(whole: dict[str, Any], out: Path) -> dict[str, Any]:
    """Write a step's result, whole or not at all."""
    path = out / f"{whole['step']}.json"
    path.with_suffix(".part").write_text(json.dumps(whole, indent=1) + "\n", "utf-8")
    path.with_suffix(".part").replace(path)
    return whole


def run_apart(name: str, out: Path, seconds: float) -> dict[str, Any]:
    """Run a step in a process of its own, which may crash or hang; what it had found until then is kept."""
    command = [sys.executable, __file__, "--step", name, "--out", str(out), "--minutes", str(seconds / 60)]
    path = out / f"{name}.json"
    path.unlink(missing_ok=True)
    start = time.monotonic()
    reason = end_of(command, seconds)
    if path.exists():
        whole = json.loads(path.read_text("utf-8"))
    else:
        whole = {"step": name, "title": STEPS[name][0], "date": datetime.date.today().isoformat()}
        whole |= {"device": "", "rehearsal": False, "seconds": 0.0, "tables": [], "notes": []}
        whole |= {"failures": [UNDONE]}
    if UNDONE in whole["failures"]:
        whole["seconds"] = time.monotonic() - start
        whole["failures"] = [reason if each == UNDONE else each for each in whole["failures"]]
    return keep(whole, out)


def end_of(command: list[str], seconds: float) -> str:
    """How the process of a step ended, which has some seconds more than the step has."""
    # Open MPI's MPI_Init leaves marks of this process's job in the environment that others inherit.
    env = job_environment()
    with subprocess.Popen(command, cwd=ROOT, env=env, start_new_session=True) as job:
        try:
            return f"the step ended with code {job.wait(seconds + SPARE_S)}"
        except subprocess.TimeoutExpired:
            stop(job)
            return f"the step was not done after {seconds:.0f} s"
        except BaseException:
            stop(job)
            raise


def stop(job: subprocess.Popen) -> None:
    """End a process and its group: first with a signal, on which a step ends the ranks that it started."""
    with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
        os.killpg(job.pid, signal.SIGTERM)
        job.wait(SPARE_S / 2)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(job.pid, signal.SIGKILL)


# ---- what is told -----------------------------------------------------------------------------------------


def lines_of(whole: dict[str, Any]) -> list[str]:
    """A step as lines of Markdown."""
    lines = [f"### {whole['title']}", "", f"{whole['date']}, {whole['device']}; {whole['seconds']:.0f} s."]
    lines += ["", *(f"- {note}" for note in whole["notes"])] if whole["notes"] else []
    for table in whole["tables"]:
        rows = [table["columns"], ["---"] * len(table["columns"]), *table["rows"]]
        lines += ["", f"{table['title']}:", "", *("| " + " | ".join(row) + " |" for row in rows)]
    lines += (
        ["", *(f"- **does not hold**: {each}" for each in whole["failures"])] if whole["failures"] else []
    )
    return [*lines, ""]


def summary(results: list[dict[str, Any]]) -> list[str]:
    """One line for each step."""
    rows = [["step", "seconds", "holds"], ["---", "---", "---"]]
    for whole in results:
        verdict = "yes" if not whole["failures"] else f"NO: {whole['failures'][0][:150]}"
        rows.append([whole["step"], f"{whole['seconds']:.0f}", " ".join(verdict.split())])
    return ["| " + " | ".join(row) + " |" for row in rows]


def write_section(results: list[dict[str, Any]], document: Path) -> None:
    """Put the tables between the markers of a document, which has them under its heading "GPU"."""
    text = document.read_text("utf-8")
    if BEGIN not in text:
        heading = "" if "\n## GPU\n" in text else "\n\n## GPU"
        text = f"{text.rstrip()}{heading}\n\n{BEGIN}\n{END}\n"
    before, rest = text.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    lines = [BEGIN, "", *summary(results), "", *(line for each in results for line in lines_of(each))]
    document.write_text(before + "\n".join(lines) + END + after, "utf-8")


# ---- the plan ---------------------------------------------------------------------------------------------


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=25.0)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--docs", type=Path)
    parser.add_argument("--rehearse", action="store_true")
    parser.add_argument("--only", nargs="+", choices=list(STEPS), default=[])
    parser.add_argument("--step", choices=list(STEPS), help=argparse.SUPPRESS)
    return parser.parse_args(words)


def kept(name: str, out: Path, rehearse: bool) -> dict[str, Any] | None:
    """A result of an earlier run of the same kind in which everything held."""
    path = out / f"{name}.json"
    if not path.exists():
        return None
    whole = json.loads(path.read_text("utf-8"))
    return whole if whole["rehearsal"] == rehearse and not whole["failures"] else None


def run_all(given: argparse.Namespace, out: Path) -> list[dict[str, Any]]:
    """Every step that is asked for and not done, while there is time."""
    end, results = time.monotonic() + 60 * given.minutes, []
    for name, (_, _, minutes) in STEPS.items():
        whole = kept(name, out, given.rehearse)
        if given.only and name not in given.only:
            results += [whole] if whole else []
            continue
        left = end - time.monotonic()
        if whole is None or given.only:
            if left < 20:
                print(f"{name}: no time left; the same command goes on", flush=True)
                continue
            seconds = min(60.0 * minutes, left)
            print(f"{name} ...", flush=True)
            if given.rehearse:
                whole = run_step(name, out, True, seconds)
            else:
                whole = run_apart(name, out, seconds)
        results.append(whole)
    return results


def main(words: list[str] | None = None) -> int:
    """Run the plan; 0 where everything asked for was done and holds."""
    given = arguments(words)
    out = (given.out or ROOT / "runs" / ("gpu_rehearsal" if given.rehearse else "gpu_check")).resolve()
    out.mkdir(parents=True, exist_ok=True)
    if given.step:
        return int(bool(run_step(given.step, out, False, 60 * given.minutes)["failures"]))
    results = run_all(given, out)
    print("\n".join(["", *(line for each in results for line in lines_of(each)), *summary(results)]))
    if given.docs:
        write_section(results, given.docs)
    wanted = given.only or list(STEPS)
    done = {each["step"] for each in results if not each["failures"]}
    return 0 if done >= set(wanted) else 1


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    sys.exit(main())
