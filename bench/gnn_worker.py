"""One program of bench/gnn.py in a process of its own: it reads a case, then does what its input asks.

    python bench/gnn_worker.py PROGRAM CASE.npz

PROGRAM: torch, pyg, dgl, lockstep; rgcn:lockstep or rgcn:pyg for bench/rgcn.py.

One JSON object a line, on both sides. Asked {"do": "build", "form": F, "dropout": p}, {"do": "epochs",
"count": k} or {"do": "gradients", "path": P}, it answers the processor seconds of the whole answer, the last
loss, and `grown`: by how many bytes the resident memory has ever exceeded what it was after imports and data.
"""

import importlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))


class Worker:
    """A case, the program's module, and the model once it is built."""

    def __init__(self, program: str, path: str) -> None:
        family, _, name = program.rpartition(":")
        family = family or "gnn"
        self.module = importlib.import_module(f"bench.{family}_{name}")
        self.case = importlib.import_module(f"bench.{family}_case").load_case(Path(path))
        self.model: Any = None
        self.base = start_peak()

    def hello(self) -> dict[str, Any]:
        """What a worker says first."""
        return {"version": self.module.version(), "forms": self.module.forms(self.case)}

    def build(self, form: str, dropout: float) -> dict[str, Any]:
        """Make the model: every structure that it computes once."""
        self.model = None  # before the next one is made
        self.model = self.module.Model(self.case, form, dropout)
        return {}

    def epochs(self, count: int) -> dict[str, Any]:
        """Train."""
        for _ in range(count):
            loss = self.model.epoch()
        return {"loss": loss}

    def gradients(self, path: str) -> dict[str, Any]:
        """Write the gradients at the present weights."""
        import numpy as np

        np.savez(path, **self.model.gradients())
        return {}

    def answer(self, do: str, **rest: Any) -> dict[str, Any]:
        """Do it, and say what it took."""
        start = time.process_time()
        answer = getattr(self, do)(**rest)
        return {**answer, "cpu_s": time.process_time() - start, "grown": status("VmHWM") - self.base}


def start_peak() -> int:
    """Put the peak of the resident memory back to its present size where the system lets us; bytes."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:  # then the peak of imports and data stands, and `grown` is a lower bound
        return status("VmHWM")
    return status("VmRSS")


def status(key: str) -> int:
    """Bytes that /proc/self/status states."""
    for line in Path("/proc/self/status").read_text("ascii").splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) * 1024
    raise KeyError(key)


def main() -> None:
    """Answer until the input ends."""
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print is no answer
    worker = Worker(*sys.argv[1:])
    print(json.dumps(worker.hello()), file=out)
    for line in sys.stdin:
        print(json.dumps(worker.answer(**json.loads(line))), file=out)


if __name__ == "__main__":
    main()
