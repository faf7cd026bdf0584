"""Start-up: what a command takes that has no work or next to none, beside the imports that work needs."""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mpi4py
import numpy as np

from bench.harness import ROOT, Effort, Record, children_s, compare

IMPORTS = "python -c 'import numpy, mpi4py.MPI'"
WRITES = ["output.plots=false", "--out", "{folder}/run", "--overwrite"]
SMALL = ["graph.generator=ba", "graph.nodes=60", "graph.d=4"]
CASES = {
    "run.py --help": ["run.py", "--help"],
    "run.py --version": ["run.py", "--version"],
    "run.py a case with a mistake": ["run.py", "{folder}/wrong.toml"],
    "run.py a dry run": ["run.py", "inputs/quickstart.toml", "--dry-run"],
    "run.py 3 epochs on 200 nodes": [
        "run.py", "inputs/gcn.toml", "graph.nodes=200", "gnn.epochs=3", *WRITES,
    ],
    "run.py a cover of 60 nodes": ["run.py", "inputs/mvc.toml", *SMALL, "search.steps=10", *WRITES],
    "from app import classify": ["-c", "from app import classify"],
    "from app import solve": ["-c", "from app import solve"],
}  # fmt: skip
GOALS = dict.fromkeys(list(CASES)[:3], ">= 1")


def about() -> dict[str, str]:
    """Versions that matter."""
    return {"python": sys.version.split()[0], "numpy": np.__version__, "mpi4py": mpi4py.__version__}


def start(*arguments: str) -> Callable[[int], Any]:
    """Start Python with these arguments and wait for its end."""

    def run(_: int) -> None:
        subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, timeout=60, check=False)

    return run


def measure(effort: Effort, quick: bool) -> Iterator[Record]:
    """One ratio for each kind of command."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "wrong.toml").write_text("[train]\nlearning_rat = 1\n")
        for name, arguments in CASES.items():
            ours = start(*(each.format(folder=folder) for each in arguments))
            theirs = start("-c", "import numpy, mpi4py.MPI")
            goal = GOALS.get(name, "")
            yield compare(name, IMPORTS, ours, theirs, effort, goal, clock=children_s)
