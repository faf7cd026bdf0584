"""Runs that are stopped or killed at any moment, and go on: the digest is that of a run left alone.

    python tests/fuzz_stops.py [--seconds S] [--first I] [--only WORD] [--keep FOLDER]

Number i draws a case of CASES, one to three ways and moments of ending it (SIGTERM, SIGINT, SIGUSR1 to the
launcher or to one rank, --max-hours, kill -9 of the launcher or of a rank) and 1 to 3 ranks each time; then
--resume on other numbers of ranks until it is complete. It counts as a fault when

1. a run that is asked to stop ends with another code than 0 or 3 (SIGINT: does not end), one that is
   killed leaves ranks behind, a run that goes on ends with another code than 0 or is slow;
2. a traceback or a warning is printed;
3. digest, answers or metrics differ from those of the run that was left alone on one rank.

Prints one JSON line for each fault; the exit code is 1 where there was one.
"""

import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent)]

from jobs import PROGRAM, ROOT, SLEEP, environment, mpirun  # noqa: E402

LIMIT_S = 240
NOISE = re.compile(r"Traceback|Warning: |RuntimeWarning|Segmentation|Assertion|core dumped")
SMALL = ("output.plots=false", "search.baselines=false", "search.bound_seconds=0.2")
STEPS = (*SMALL, "search.steps=3000")
NETWORK = ("output.plots=false", "graph.nodes=300", "gnn.epochs=60")
# What is run: the file of inputs/ and its settings, a few seconds each.
CASES: dict[str, tuple[str, ...]] = {
    "maxcut merged": ("maxcut", *STEPS, "search.starts=4", "graph.nodes=300"),
    "maxcut on rows": ("maxcut", *STEPS, "memory.whole_graph_mb=0.02", "graph.count=1", "graph.nodes=800"),
    "mvc": ("mvc", *STEPS, "graph.generator=ba", "graph.nodes=200", "graph.count=3"),
    "mvc on rows": (
        "mvc", *STEPS, "memory.whole_graph_mb=0.05", "graph.generator=er", "graph.nodes=3000",
        "graph.p=0.002", "graph.count=1",
    ),
    "mis": ("mis", *STEPS, "graph.generator=ba", "graph.nodes=200", "graph.count=3"),
    "clique": ("clique", *STEPS),
    "mds": ("mds", *STEPS),
    "fvs": ("fvs", *STEPS),
    "dfvs": ("dfvs", *STEPS),
    "dismantle": ("dismantle", *STEPS),
    "coloring": ("coloring", *STEPS),
    "communities": ("communities", *STEPS),
    "partition": ("partition", *STEPS, "search.starts=3"),
    "dense": ("dense", *STEPS, "problem.dense=size", "problem.size=30"),
    "dense flows": ("dense", *STEPS),
    "qubo": ("qubo", *STEPS),
    "ising": ("ising", *STEPS),
    "tsp": ("tsp", *STEPS, "search.starts=2"),
    "cvrp": ("cvrp", *STEPS),
    "steiner": ("steiner", *STEPS),
    "ordering": ("ordering", *STEPS),
    "treewidth": ("treewidth", *STEPS),
    "arrangement": ("arrangement", *STEPS),
    "set_cover": ("set_cover", *STEPS),
    "coverage": ("coverage", *STEPS),
    "influence": ("influence", *STEPS, "influence.sets=4096", "influence.simulations=200"),
    "facility": ("facility", *STEPS, "search.starts=2"),
    "facility centre": ("facility", *STEPS, "problem.facility=center"),
    "alignment": ("alignment", *STEPS, "search.starts=2"),
    "qap": ("qap", *STEPS),
    "train": (
        "train", "output.plots=false", "graph.count=8", "graph.nodes=[16,24]", "train.steps=120",
        "train.evaluate_every=40", "agent.warmup=20", "agent.batch=8", "search.baselines=false",
    ),
    "gcn": ("gcn", *NETWORK),
    "edges": ("edges", *NETWORK),
    "graphs": ("graphs", "output.plots=false", "gnn.epochs=20"),
    "links": ("links", *NETWORK),
    "embed": ("embed", *NETWORK),
    "rgcn": (
        "rgcn", "output.plots=false", "rgcn.epochs=12", "graph.nodes=200", "graph.edges=900",
        "rgcn.labelled=60",
    ),
    "rgcn_links": (
        "rgcn_links", "output.plots=false", "rgcn.epochs=12", "graph.nodes=120", "graph.edges=700",
        "rgcn.evaluate_every=4",
    ),
    "forecast": ("forecast", "output.plots=false", "gnn.epochs=2", "gnn.hidden=4", "graph.nodes=40"),
    "study of folds": ("study_folds", "output.plots=false", "gnn.epochs=10"),
}  # fmt: skip
# The codes that a run may end with; a SIGINT before the task begins has those of the launcher.
WAYS = {"SIGTERM": (0, 3), "SIGUSR1": (0, 3), "SIGINT": None, "max hours": (0, 3), "kill": None}


@dataclass(frozen=True)
class Ended:
    """How a run ended: its code (None: it did not), what it printed, the seconds it took."""

    code: int | None
    printed: str
    seconds: float


def ranks_of(out: Path) -> list[int]:
    """The processes of a run's ranks, by its folder on their command lines."""
    found = []
    for each in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            words = (each / "cmdline").read_bytes().split(b"\0")
            if words[0].endswith((b"python", b"python3")) and str(out).encode() in words:
                found.append(int(each.name))
    return sorted(found)


def _end(job: subprocess.Popen, way: str, out: Path, one: bool, draw: random.Random) -> None:
    """Send what ends a run, to one rank or to the launcher."""
    number = getattr(signal, way if way != "kill" else "SIGKILL")
    ranks = ranks_of(out)
    target = draw.choice(ranks) if one and ranks else job.pid
    with suppress(ProcessLookupError):
        os.kill(target, number)


def ran(case: tuple[str, ...], out: Path, ranks: int, more: tuple[str, ...] = (), way: str = "",
        after: float = 0.0, one: bool = False, draw: random.Random | None = None) -> Ended:  # fmt: skip
    """Run a case, which is ended in a way after so many seconds."""
    name, *settings = case
    start = mpirun(ranks) if ranks > 1 else []
    if way == "max hours":
        more = (*more, "--max-hours", f"{after / 3600:.9f}")
    command = [*start, sys.executable, str(PROGRAM), str(ROOT / "inputs" / f"{name}.toml"), *settings]
    command += ["--out", str(out), *more]
    given = {**(SLEEP if ranks > 1 else {}), **environment(), "OMP_NUM_THREADS": "1"}
    begun = time.monotonic()
    with subprocess.Popen(
        command, cwd=out.parent, env=given, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, start_new_session=True,
    ) as job:  # fmt: skip
        try:
            if way and way != "max hours":
                try:
                    job.wait(after)
                except subprocess.TimeoutExpired:
                    _end(job, way, out, one, draw or random.Random(0))
            printed, _ = job.communicate(timeout=LIMIT_S)
            code = job.returncode
        except subprocess.TimeoutExpired:
            for each in ranks_of(out):
                with suppress(ProcessLookupError):
                    os.kill(each, signal.SIGQUIT)
            os.killpg(job.pid, signal.SIGKILL)
            for each in ranks_of(out):
                with suppress(ProcessLookupError):
                    os.kill(each, signal.SIGKILL)
            (printed, _), code = job.communicate(), None
    return Ended(code, printed.decode(errors="replace"), time.monotonic() - begun)


def what_is_kept(out: Path) -> dict[str, object]:
    """The digest of a complete run, its solutions, predictions and weights, and its table of answers."""
    result = json.loads((out / "result.json").read_text())
    files = sorted([*out.glob("solution/*"), *out.glob("predictions/*"), *out.glob("*.npz")])
    kept: dict[str, object] = {str(each.relative_to(out)): each.read_bytes() for each in files}
    kept["status, digest"] = result["status"], result["digest"]
    for entry in result.get("instances", []):
        if isinstance(entry, dict) and "objective" in entry:
            kept[f"objective of {entry['name']}"] = entry["objective"]
    return kept


def fault_of(number: int, only: str, whole: dict[str, tuple], folder: Path, counts: Counter) -> dict | None:
    """What is wrong with a case that is ended and goes on, or None."""
    draw = random.Random(number)
    name = draw.choice([each for each in CASES if only in each])
    case, out = CASES[name], folder / f"out{number}"
    told: dict[str, object] = {"number": number, "case": name, "did": (did := [])}
    if name not in whole:
        alone = ran(case, folder / "alone", 1)
        if alone.code != 0 or NOISE.search(alone.printed):
            whole[name] = None
            return {**told, "fault": f"alone: code {alone.code}: {alone.printed[-700:]}"}
        whole[name] = what_is_kept(folder / "alone"), alone.seconds
        shutil.rmtree(folder / "alone")
    if whole[name] is None:
        return None
    expected, seconds = whole[name]
    often = ("checkpoint.steps=1",) if draw.random() < 0.5 else ()
    more: tuple[str, ...] = ()
    for _ in range(draw.choice((1, 1, 2, 3))):
        ranks, way, one = draw.randint(1, 3), draw.choice(list(WAYS)), draw.random() < 0.4
        after = draw.uniform(0.2, 1.3 * seconds + 0.5 * (ranks - 1))
        did.append(f"{ranks} ranks, {way} after {after:.2f} s{' to one' if one else ''}")
        ended = ran(case, out, ranks, (*often, *more), way, after, one, draw)
        codes = WAYS[way]
        counts[f"{way}, code {ended.code}"] += 1
        if NOISE.search(ended.printed) or ended.code is None or (codes and ended.code not in codes):
            return {**told, "fault": f"code {ended.code}: {ended.printed[-1500:]}"}
        if left := _left_behind(out):
            return {**told, "fault": f"ranks {left} are left behind"}
        more = ("--resume",)
        if ended.code == 0 and (out / "result.json").exists():
            break
    ranks = draw.randint(1, 3)
    did.append(f"{ranks} ranks, --resume")
    ended = ran(case, out, ranks, (*often, "--resume"))
    if ended.code != 0 or NOISE.search(ended.printed):
        return {**told, "fault": f"code {ended.code}: {ended.printed[-1500:]}"}
    found = what_is_kept(out)
    differs = [key for key in {*found, *expected} if found.get(key) != expected.get(key)]
    counts["resumed from a checkpoint" if "resumed from" in ended.printed else "from the beginning"] += 1
    if differs:
        return {**told, "fault": f"other than the run left alone: {sorted(differs)[:6]}"}
    shutil.rmtree(out)
    return None


def _left_behind(out: Path) -> list[int]:
    """Ranks that are there five seconds after their launcher has ended."""
    for _ in range(50):
        if not (left := ranks_of(out)):
            return []
        time.sleep(0.1)
    for each in left:
        with suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)
    return left


def main() -> int:
    """Stop and go on for so long."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600.0, help="no number begins later")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", default="", help="a word of the case")
    parser.add_argument("--keep", default="", help="a folder for the folders of faults")
    asked = parser.parse_args()
    begun, counts, faults, number = time.monotonic(), Counter(), 0, asked.first
    whole: dict[str, tuple] = {}
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        while time.monotonic() - begun < asked.seconds:
            if fault := fault_of(number, asked.only, whole, Path(folder), counts):
                faults += 1
                print(json.dumps(fault), flush=True)
                left = Path(folder) / f"out{number}"
                if asked.keep and left.exists():
                    shutil.move(left, Path(asked.keep) / f"out{number}")
            counts["runs that went on"] += 1
            number += 1
    print("; ".join(f"{what}: {count}" for what, count in sorted(counts.items())))
    print(f"{len(whole)} cases, {faults} faults, {time.monotonic() - begun:.0f} s")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
