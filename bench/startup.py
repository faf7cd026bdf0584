"""Start-up: what a command that needs no work takes, beside the imports that work needs."""

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
CASES = {
    "--help": ["--help"],
    "--version": ["--version"],
    "a case with a mistake": ["{folder}/wrong.toml"],
    "a dry run": [str(ROOT / "inputs" / "quickstart.toml"), "--dry-run"],
}
GOALS = dict.fromkeys(["--help", "--version", "a case with a mistake"], ">= 1")


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
            ours = start("run.py", *(each.format(folder=folder) for each in arguments))
            theirs = start("-c", "import numpy, mpi4py.MPI")
            goal = GOALS.get(name, "")
            yield compare(f"run.py {name}", IMPORTS, ours, theirs, effort, goal, clock=children_s)
