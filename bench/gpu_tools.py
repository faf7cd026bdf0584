"""What the steps of bench/gpu_check.py share: the device, times on it, graphs, and jobs of several ranks."""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

from app.comm.group import Group
from app.comm.transport import find_launcher, job_environment, launcher_flags, run_apart
from app.cuda.graph import Captured
from app.device import HostDevice, open_gpu
from app.graphs.graph import Graph
from app.partition.rows import block_count, block_starts, partition_rows
from app.rng import stream
from app.sparse.rowblock import RowBlock

ROOT = Path(__file__).parent.parent
ROUNDS = 7  # times of which the median is told
LEAST_S = 0.02  # of one time: short work is repeated


@dataclass
class Where:
    """Where the steps run.

    device     a GPU, or in a rehearsal what stands in for one
    rehearse   True: small sizes, on the host
    seconds    that a step may take
    """

    device: Any
    rehearse: bool
    seconds: float = 600.0
    rounds: int = ROUNDS

    def size(self, real: int, rehearsed: int) -> int:
        """One of two sizes."""
        return rehearsed if self.rehearse else real

    def group(self) -> Group:
        """This process alone."""
        return Group(MPI.COMM_SELF, self.device)

    def time(self, work: Callable[[], Any], replayed: bool = False) -> float:
        """Median seconds of some work, by the device's events; the first runs do not count.

        replayed   its launches are recorded and replayed as a CUDA graph: short ones would wait for the host
        """
        work()
        once = self._span(work, 1)
        count = 1 if self.rehearse else max(int(LEAST_S / max(once, 1e-6)), 1)
        runs, again = count, work
        if replayed and not self.rehearse:
            again, runs = self._replay(work, count), 1
        return statistics.median(self._span(again, runs) / count for _ in range(self.rounds))

    def _replay(self, work: Callable[[], Any], count: int) -> Callable[[], Any]:
        """`count` runs of some work as one launch."""

        def all_runs() -> None:
            for _ in range(count):
                work()

        captured = Captured(self.device)
        for _ in range(2):
            captured([], all_runs)
        return lambda: captured([], all_runs)

    def _span(self, work: Callable[[], Any], count: int) -> float:
        """Seconds of `count` runs."""
        device = self.device
        device.synchronize()
        if self.rehearse:
            start = time.perf_counter()
            for _ in range(count):
                work()
            return time.perf_counter() - start
        events = [device.xp.cuda.Event() for _ in range(2)]
        events[0].record(device.stream)
        for _ in range(count):
            work()
        events[1].record(device.stream)
        events[1].synchronize()
        return device.xp.cuda.get_elapsed_time(*events) / 1e3


@dataclass
class Report:
    """What a step found: tables, sentences, and whether what must hold did.

    changed   called after each new row and sentence, to write down what there is
    """

    tables: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    changed: Callable[[], Any] = lambda: None

    def table(self, title: str, *columns: str) -> Callable[..., None]:
        """A new table; the function that is returned adds a row to it."""
        rows: list[list[str]] = []
        self.tables.append({"title": title, "columns": list(columns), "rows": rows})

        def add(*cells: Any) -> None:
            rows.append([text(cell) for cell in cells])
            self.changed()

        return add

    def note(self, sentence: str) -> None:
        """A sentence, told once."""
        if sentence not in self.notes:
            self.notes.append(sentence)
            self.changed()

    def check(self, holds: bool, what: str) -> bool:
        """Note what should hold."""
        if not holds:
            self.failures.append(what)
        return bool(holds)


def said(error: BaseException) -> str:
    """An error as a sentence."""
    return f"{type(error).__name__}: {error}"


def text(value: Any) -> str:
    """A cell of a table: numbers with three digits that count."""
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def open_where(rehearse: bool, seconds: float) -> "Where | str":
    """The GPU, or in a rehearsal its kernels compiled for the host (else the host); or why there is none."""
    if not rehearse:
        device = open_gpu(0)
        return device if isinstance(device, str) else Where(device, False, seconds)
    return Where(rehearsal_device(), True, seconds, rounds=1)


def rehearsal_device() -> Any:
    """tests/emulator.py's device where the sources are and a C++ compiler is, else the host."""
    if not (ROOT / "tests" / "emulator.py").exists():
        return HostDevice()
    sys.path.insert(0, str(ROOT / "tests"))
    import emulator

    return emulator.make_device() if emulator.compiler() else HostDevice()


def wall(where: Where, work: Callable[[], Any]) -> float:
    """Median seconds of the wall, host included, the device waited for."""
    taken = []
    for _ in range(where.rounds + 1):
        where.device.synchronize()
        start = time.perf_counter()
        work()
        where.device.synchronize()
        taken.append(time.perf_counter() - start)
    return float(np.median(taken[1:]))


# ---- graphs -----------------------------------------------------------------------------------------------

# Nodes, undirected edges, the largest degree, widths of the layers: as in the data sets of these names.
SHAPES = {
    "Arxiv": (169_343, 1_166_243, 13_161, [128, 256, 256, 40]),
    "Reddit": (232_965, 57_307_946, 21_657, [602, 16, 41]),
    "Products": (2_449_029, 61_859_140, 17_481, [104, 256, 256, 47]),
}
SMALL = (300, 1500, 100, [12, 16, 7])  # of a rehearsal
EXPONENT = 2.3  # of the power law of degrees


def flattened(n: int, edges: int, largest: int) -> np.ndarray:
    """[n] weights of nodes by a power law whose first node expects `largest` of so many edges."""
    numbers, low, high = np.arange(1, n + 1.0), 0.0, float(n)
    for _ in range(50):
        shift = (low + high) / 2
        weights = (numbers + shift) ** (-1 / (EXPONENT - 1))
        low, high = (shift, high) if 2 * edges * weights[0] > largest * weights.sum() else (low, shift)
    return weights


def make_graph(where: Where, name: str, n: int, edges: int, largest: int | None) -> Graph:
    """A random simple graph with about so many edges: drawn on the host, looked up and sorted on the device.

    On one core the look-ups alone would take minutes for the largest graphs.
    largest   expected degree, of a power law (Chung-Lu); None: all nodes alike
    """
    xp, device = where.device.xp, where.device
    draws = stream(1, f"bench/gpu/{name}")
    weights = np.ones(n) if largest is None else flattened(n, edges, largest)
    ends = np.cumsum(draws.permutation(weights))
    places = device.put(ends)
    u, v = (
        xp.minimum(xp.searchsorted(places, device.put(draws.random(edges) * ends[-1]), side="right"), n - 1)
        for _ in range(2)
    )
    both = xp.concatenate([xp.where(u == v, -1, u * n + v), xp.where(u == v, -1, v * n + u)])
    found = device.get(xp.unique(both))
    found = found[np.searchsorted(found, 0) :]  # loops come first
    indptr = np.searchsorted(found, np.arange(n + 1, dtype=np.int64) * n)
    return Graph(name, n, 0, n, indptr, (found % n).astype(np.int32), edges=len(found) // 2)


def row_block(group: Group, graph: Graph) -> tuple[RowBlock, Any]:
    """All rows of a graph on one rank."""
    starts = block_starts(graph.n, block_count(graph.n))
    rows = partition_rows(graph.n, 1, np.diff(starts))
    return RowBlock(group, graph, rows), rows


def normal(name: str, *shape: int) -> np.ndarray:
    """Random float32 numbers, the same every time."""
    return stream(1, f"bench/gpu/{name}").standard_normal(shape, dtype=np.float32)


# ---- jobs -------------------------------------------------------------------------------------------------


def run_ranks(ranks: int, arguments: list[str], seconds: float, **variables: str) -> tuple[int, Any, str]:
    """A job of bench/gpu_worker.py: its exit code, the JSON on its last line or None, and all it printed.

    One rank needs no launcher.
    """
    launcher = find_launcher()
    if launcher is None and ranks > 1:
        return -1, None, "no mpirun beside this Python or on the PATH"
    command = [sys.executable, str(ROOT / "bench" / "gpu_worker.py"), *arguments]
    try:
        if launcher is not None:
            command = [launcher, *launcher_flags(launcher), "-np", str(ranks), *command]
        code, printed, errors = run_apart(command, {**job_environment(), **variables}, seconds)
    except subprocess.TimeoutExpired:
        return -1, None, f"not done after {seconds:.0f} s"
    lines = [line for line in printed.splitlines() if line.startswith("{")]
    found = json.loads(lines[-1]) if lines and code == 0 else None
    return code, found, printed + errors
