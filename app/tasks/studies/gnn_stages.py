"""Task study, kinds permutation and overlap: the staged sparse product, stage by stage (MG-GCN 6.3, 6.4).

Y = A X by a broadcast of each rank's rows in turn, on [graph] and every rank. Seconds of the processor are a
rank's own work; seconds of the wall hold what ranks wait for each other, and mean little where they share
cores. What is compared runs by turns in every round, and ratios are medians over rounds.
"""

import time
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import median
from typing import Any

import msgspec
import numpy as np

from app.comm.group import Group
from app.comm.guard import digest_text
from app.comm.turns import seconds_together
from app.errors import CaseError
from app.partition.loaded import Loaded
from app.plots.charts import plot_bars
from app.sparse.rowblock import RowBlock
from app.tasks.context import Context
from app.tasks.studies.cells import measurement
from app.tasks.studies.passes import digest_of_rows, numbered_rows

ORDERS = ("natural", "random")
STAGE_COLUMNS = ("graph", "order", "width", "rank", "stage", "entries", "compute_cpu_ms", "wait_ms")
ORDER_COLUMNS = (
    "graph", "order", "width", "ranks", "entries_imbalance", "cpu_imbalance", "slowest_cpu_ms", "mean_cpu_ms",
    "wall_ms", "wall_ratio", "slowest_ratio",
)  # fmt: skip
OVERLAP_COLUMNS = (
    "graph", "width", "ranks", "waiting_ms", "ahead_ms", "ratio", "ratio_low", "ratio_high",
    "waiting_cpu_ms", "ahead_cpu_ms", "waiting_idle_ms", "ahead_idle_ms",
)  # fmt: skip


@dataclass
class Staged:
    """Y = A X on one block, each stage clocked.

    cpu_s, wait_s   [rounds][stages] of this rank: seconds of the processor in the product of a stage, seconds
                    of the wall until its rows had come
    wall_s          [rounds] of the whole product, until all ranks were done
    """

    group: Group
    block: RowBlock
    width: int
    cpu_s: list[np.ndarray] = field(default_factory=list)
    wait_s: list[np.ndarray] = field(default_factory=list)
    wall_s: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        device, block = self.group.device, self.block
        self.X_own = device.put(numbered_rows(block.lo, block.n_own, self.width))
        self.Y_own = device.zeros((block.n_own, self.width))
        self.tiles = block.A if isinstance(block.A, list) else [block.A]

    def run(self) -> None:
        """One product. Ranks: all call."""
        self.Y_own[...] = 0
        cpu, wait = np.zeros(self.group.size), np.zeros(self.group.size)
        self.wall_s.append(seconds_together(self.group, lambda: self._stages(cpu, wait)))
        self.cpu_s.append(cpu)
        self.wait_s.append(wait)

    def _stages(self, cpu: np.ndarray, wait: np.ndarray) -> None:
        """The stages in ascending order of ranks; fills the seconds of each. Ranks: all call."""
        device, asked = self.group.device, time.perf_counter()
        for rank, X in self.group.stage_rows(self.X_own, self.block.own_counts):
            wait[rank] = time.perf_counter() - asked
            start = time.process_time()
            if self.tiles[rank] is not None:
                device.spmm_add(self.tiles[rank], X, self.Y_own)
            device.synchronize()
            cpu[rank] = time.process_time() - start
            asked = time.perf_counter()

    def digest(self) -> str:
        """Of all rows of Y. Ranks: all call."""
        return digest_of_rows(self.group, self.block, self.group.device.get(self.Y_own))

    def stages(self, seconds: list[np.ndarray]) -> np.ndarray:
        """[ranks, stages] the median over rounds of what each rank measured. Ranks: all call."""
        own = np.median(np.array(seconds), axis=0)
        return self.group.gather_host(own[None], [1] * self.group.size)

    def entries(self) -> np.ndarray:
        """[ranks, stages] stored entries of each tile. Ranks: all call."""
        own = [0 if tile is None else int(tile.nnz) for tile in self.tiles]
        return self.group.gather_integers(np.array(own))


def _graphs(context: Context, order: str) -> list[Loaded]:
    """The graphs of [graph] with their rows in an order. Raises CaseError of one rank. Ranks: all call."""
    if context.group.size == 1:
        raise CaseError("study.kind: stages need several ranks: mpirun -np 2 python run.py FILE")
    table = msgspec.structs.replace(context.case.graph, order=order)
    return context.load(table, "instances")


def _staged(context: Context, loaded: Loaded, width: int) -> Staged:
    """The staged product on the rows of a graph. Ranks: all call."""
    parallel = msgspec.structs.replace(context.case.parallel, exchange="staged")
    case = msgspec.structs.replace(context.case, parallel=parallel)
    return Staged(context.group, replace(context, case=case).rows(loaded, width), width)


def _imbalance(by_rank: np.ndarray) -> float:
    """The slowest rank over the mean; 1 where none has anything to do."""
    return round(float(by_rank.max() / by_rank.mean()), 4) if by_rank.any() else 1.0


# ---- permutation (MG-GCN section 6.3, Figs. 6 and 7) ------------------------------------------------------


def run_permutation(context: Context) -> dict[str, Any]:
    """Natural and random order by turns: the work of each rank and stage, and the wall time. Ranks: all."""
    study, stages, rows, digests = context.case.study, [], [], {}
    by_order = [_graphs(context, order) for order in ORDERS]
    for number, pair in enumerate(zip(*by_order)):
        for width in study.widths:
            make = partial(_orders, context, dict(zip(ORDERS, pair)), width)
            more, lines, same = measurement(context, f"graph {number} {width}", make)
            stages += lines
            rows += more
            digests |= {f"{pair[0].graph.name} {order} {width}": each for order, each in same.items()}
            _say_orders(context, more)
    if context.folder is not None:
        context.folder.write_csv("permutation.csv", ORDER_COLUMNS, rows)
        context.folder.write_csv("stages.csv", STAGE_COLUMNS, stages)
        if context.case.output.plots:
            _plot_stages(context, stages)
    return {"digest": digest_text(digests), "rows": rows, "stages": stages, "instances": []}


def _orders(
    context: Context, by_order: dict[str, Loaded], width: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], dict[str, str]]:
    """A graph in each order, by turns: lines of both tables, the digests of the results. Ranks: all call."""
    found = {order: _staged(context, loaded, width) for order, loaded in by_order.items()}
    _by_turns(found, context.case.study.rounds)
    rows, stages = _order_lines(by_order["natural"].graph.name, width, found)
    return rows, stages, {order: each.digest() for order, each in found.items()}


def _by_turns(found: dict[str, Staged], rounds: int) -> None:
    """A first round that does not count, then rounds in changing order. Ranks: all call."""
    for number in range(rounds + 1):
        for name in list(found)[:: 1 if number % 2 else -1]:
            found[name].run()
    for each in found.values():
        del each.cpu_s[0], each.wait_s[0], each.wall_s[0]


def _order_lines(
    name: str, width: int, found: dict[str, Staged]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """A line for each order, and one for each order, rank and stage. Ranks: all call."""
    rows, stages, slowest = [], [], {}
    for order, staged in found.items():
        cpu, wait = staged.stages(staged.cpu_s), staged.stages(staged.wait_s)
        entries, by_rank = staged.entries(), cpu.sum(axis=1)
        slowest[order] = float(by_rank.max())
        walls = zip(found["natural"].wall_s, staged.wall_s)
        rows.append({
            "graph": name, "order": order, "width": width, "ranks": staged.group.size,
            "entries_imbalance": _imbalance(entries.sum(axis=1)), "cpu_imbalance": _imbalance(by_rank),
            "slowest_cpu_ms": 1e3 * slowest[order], "mean_cpu_ms": 1e3 * float(by_rank.mean()),
            "wall_ms": 1e3 * median(staged.wall_s), "wall_ratio": median(a / b for a, b in walls),
            "slowest_ratio": slowest["natural"] / max(slowest[order], 1e-12),
        })  # fmt: skip
        stages += [
            {
                "graph": name, "order": order, "width": width, "rank": rank, "stage": stage,
                "entries": int(entries[rank, stage]), "compute_cpu_ms": 1e3 * float(cpu[rank, stage]),
                "wait_ms": 1e3 * float(wait[rank, stage]),
            }
            for rank, stage in np.ndindex(cpu.shape)
        ]  # fmt: skip
    return rows, stages


def _say_orders(context: Context, rows: list[dict[str, Any]]) -> None:
    for row in rows:
        context.log.info(
            "%s, width %d, %s order: slowest rank over the mean %.3f of the entries, %.3f of the processor's "
            "time; slowest %.2f ms CPU, wall %.2f ms; natural over this %.2f (CPU), %.2f (wall)",
            row["graph"], row["width"], row["order"], row["entries_imbalance"], row["cpu_imbalance"],
            row["slowest_cpu_ms"], row["wall_ms"], row["slowest_ratio"], row["wall_ratio"],
        )  # fmt: skip


def _plot_stages(context: Context, stages: list[dict[str, Any]]) -> None:
    """Processor time of each rank, a bar for each stage (MG-GCN, Fig. 6), of the first graph and width."""
    first = stages[0]["graph"], stages[0]["width"]
    bars: dict[str, dict[str, tuple[float, float]]] = {}
    for line in stages:
        if (line["graph"], line["width"]) == first:
            group = bars.setdefault(f"{line['order']}, rank {line['rank']}", {})
            group[f"stage {line['stage']}"] = line["compute_cpu_ms"], 0.0
    plot_bars(context.folder, context.log, bars, "stages.png", f"ms CPU, {first[0]}, width {first[1]}")


# ---- overlap (MG-GCN section 6.4, Fig. 8) -----------------------------------------------------------------


def run_overlap(context: Context) -> dict[str, Any]:
    """Each stage awaited before the next begins, against the next under way meanwhile. Ranks: all call."""
    study, rows, digests = context.case.study, [], {}
    for number, loaded in enumerate(_graphs(context, context.case.graph.order)):
        for width in study.widths:
            make = partial(_overlap_line, context, loaded, width)
            row, same = measurement(context, f"graph {number} {width}", make)
            rows.append(row)
            digests[f"{loaded.graph.name} {width}"] = same
            context.log.info(
                "%s, width %d: %.2f ms waiting for each stage, %.2f ms with the next under way: ratio %.3f "
                "(quartiles %.3f, %.3f)",
                row["graph"], width, row["waiting_ms"], row["ahead_ms"], row["ratio"], row["ratio_low"],
                row["ratio_high"],
            )  # fmt: skip
    if context.folder is not None:
        context.folder.write_csv("overlap.csv", OVERLAP_COLUMNS, rows)
        if context.case.output.plots:
            _plot_overlap(context, rows)
    return {"digest": digest_text(digests), "rows": rows, "instances": []}


def _overlap_line(context: Context, loaded: Loaded, width: int) -> tuple[dict[str, Any], str]:
    """Both ways by turns on the same rows: a line of the table, the digest of both. Ranks: all call."""
    group, rounds = context.group, context.case.study.rounds
    ways = {name: _staged(context, loaded, width) for name in ("waiting", "ahead")}
    try:
        for number in range(rounds + 1):
            for name in list(ways)[:: 1 if number % 2 else -1]:
                group.stages_ahead = int(name == "ahead")
                ways[name].run()
    finally:
        group.stages_ahead = 1
    digests = {each.digest() for each in ways.values()}
    assert len(digests) == 1, "the two ways differ"
    ratios = [a / b for a, b in zip(ways["waiting"].wall_s[1:], ways["ahead"].wall_s[1:])]
    row = {"graph": loaded.graph.name, "width": width, "ranks": group.size, "ratio": median(ratios)}
    row["ratio_low"], row["ratio_high"] = np.quantile(ratios, (0.25, 0.75)).tolist()
    for name, each in ways.items():
        row[f"{name}_ms"] = 1e3 * median(each.wall_s[1:])
        row[f"{name}_cpu_ms"] = 1e3 * float(each.stages(each.cpu_s[1:]).sum(axis=1).max())
        row[f"{name}_idle_ms"] = 1e3 * float(each.stages(each.wait_s[1:]).sum(axis=1).max())
    return row, digests.pop()


def _plot_overlap(context: Context, rows: list[dict[str, Any]]) -> None:
    """Wall time, processor time of the products and time of waiting, both ways."""
    bars: dict[str, dict[str, tuple[float, float]]] = {}
    for row in rows:
        for name in ("waiting", "ahead"):
            title = f"{row['graph']}, {row['width']} columns, {name}"
            values = {"wall": f"{name}_ms", "products, CPU": f"{name}_cpu_ms", "idle": f"{name}_idle_ms"}
            bars[title] = {label: (row[key], 0.0) for label, key in values.items()}
    plot_bars(context.folder, context.log, bars, "overlap.png", "ms")
