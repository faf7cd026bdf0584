"""Task study, kind memory: one training under limits of fast memory, by every method that plans its moves.

Source   ROC section 7.7, Fig. 10: transfers and time of an epoch by dynamic programming, least recently used
         and streaming. Here each method's plan is carried out by the same engine, hence with the same bits.
"""

from functools import partial
from statistics import median
from typing import Any

import numpy as np

from app.comm.group import Group
from app.comm.guard import digest_text
from app.comm.turns import by_turns
from app.errors import CaseError
from app.gnn.features import DenseFeatures
from app.gnn.rehearsal import Sizes, rehearse
from app.memory.arena import LINE
from app.memory.plan import METHODS
from app.memory.tiers import TierBudget
from app.plots.charts import plot_lines
from app.tasks.context import Context
from app.tasks.studies.cells import measurement
from app.tasks.studies.gnn_speed import Trainer
from app.tasks.studies.gnn_subjects import Subject, subjects
from app.text import counted

FREE = "no limit"
BEST = METHODS[0]  # what the others are compared with
COLUMNS = (
    "dataset", "limit_bytes", "share", "method", "ranks", "planned_bytes", "counted_bytes", "loaded_bytes",
    "stored_bytes", "ahead_bytes", "times_bytes", "least", "epoch_ms", "moving_ms", "times_ms",
    "times_ms_low", "times_ms_high",
)  # fmt: skip


class Limited:
    """Epochs of a training under a limit by one method; bytes and seconds of the moves of each.

    budget    None: no limit
    moved     [epochs][2] bytes that this rank loaded and stored
    moving_s  [epochs] seconds that this rank spent on moves, waiting for what is read ahead included
    """

    def __init__(self, subject: Subject, budget: TierBudget | None) -> None:
        self.trainer = Trainer(subject.classifier(subject.gnn, subject.seeds[0], budget))
        self.engine = self.trainer.classifier.engine
        self.moved: list[np.ndarray] = []
        self.moving_s: list[float] = []

    def epoch(self) -> None:
        """The next epoch. Ranks: all call."""
        moved, moving_s = self._moved(), self._moving_s()
        self.trainer.epoch()
        self.moved.append(self._moved() - moved)
        self.moving_s.append(self._moving_s() - moving_s)

    def _moved(self) -> np.ndarray:
        tiered = self.engine.tiered
        return np.array(tiered.moved("epoch") if tiered else (0, 0), dtype=np.int64)

    def _moving_s(self) -> float:
        return self.engine.seconds.get("memory", 0.0)

    def planned(self) -> np.ndarray:
        """[4] bytes that this rank's plan loads, stores and reads ahead; 1 where none moves fewer."""
        if self.engine.tiered is None:
            return np.array([0, 0, 0, 1], dtype=np.int64)
        plan = self.engine.tiered.plans["epoch"]
        return np.array([plan.loaded_bytes, plan.stored_bytes, plan.ahead_bytes, plan.exact], dtype=np.int64)

    def line(self, group: Group) -> dict[str, Any]:
        """What an epoch moves on all ranks, planned and, but in the first one, counted. Ranks: all call."""
        loaded, stored, ahead, certain = group.sum_integers(self.planned()).tolist()
        counted = group.sum_integers(np.sum(self.moved[1:], axis=0)).sum() / len(self.moved[1:])
        moving_s = 1e-9 * group.max_integer(round(1e9 * median(self.moving_s[1:])))
        return {
            "planned_bytes": loaded + stored, "counted_bytes": round(float(counted), 3),
            "loaded_bytes": loaded, "stored_bytes": stored, "ahead_bytes": ahead,
            "least": certain == group.size, "moving_ms": 1e3 * moving_s,
        }  # fmt: skip


def run_memory(context: Context) -> dict[str, Any]:
    """Every method under every limit, on every data set; table and plot. Ranks: all call."""
    if context.case.memory.fast_mb:
        raise CaseError('memory.fast_mb: is not read by study.kind = "memory"; study.limits would be right')
    rows, digests = [], {}
    for number, subject in enumerate(subjects(context)):
        limits, most = limits_of(subject)
        for limit in limits:
            make = partial(_methods, subject, limit, most)
            lines, found = measurement(context, f"data set {number}, {limit} bytes", make)
            rows += lines
            digests.setdefault(f"{subject.name} {subject.recipe}", []).extend(found)
            _say(context, lines)
            if context.folder is not None:
                context.folder.write_csv("memory.csv", COLUMNS, rows)
    same = all(len(set(found)) == 1 for found in digests.values())
    agree = all(row["counted_bytes"] == row["planned_bytes"] for row in rows)
    context.log.info("weights of all: %s", "the same bits" if same else "DIFFERENT BITS")
    context.log.info("bytes counted: %s", "those planned" if agree else "OTHERS THAN PLANNED")
    if context.folder is not None and context.case.output.plots:
        _plot(context, rows)
    digest = digest_text({name: found[0] for name, found in digests.items()})
    return {"digest": digest, "same_bits": same, "as_planned": agree, "rows": rows, "instances": []}


def limits_of(subject: Subject) -> tuple[list[int], int]:
    """The limits of a study in bytes, ascending, the same on all ranks; what the largest rank has alive at
    once, dense features among it. Ranks: all call."""
    free, group = subject.classifier(subject.gnn, subject.seeds[0]), subject.context.group
    X, dense = free.features, isinstance(free.features, DenseFeatures)
    edge_width = free.edge_columns.width if free.edge_columns else 1
    sizes = Sizes(free.engine.n_own, X.width, dense, free.classes, X.stored, edge_width)
    engine = rehearse(group.device, free.case, sizes, free.cut())
    least, most = group.max_integers(np.array(engine.bounds(), dtype=np.int64)).tolist()
    asked = [int(share * most) // LINE * LINE for share in subject.context.case.study.limits]
    return sorted({max(each, least) for each in asked}), most


def _methods(subject: Subject, limit: int, most: int) -> tuple[list[dict[str, Any]], list[str]]:
    """Training by every method under a limit, and without one, by turns: lines of the table, digests of the
    weights. Ranks: all call."""
    context, memory = subject.context, subject.context.case.memory
    budgets = {name: TierBudget(limit, memory.slow, memory.folder, name) for name in METHODS}
    trainings = {name: Limited(subject, budgets.get(name)) for name in (*METHODS, FREE)}
    actions = {name: each.epoch for name, each in trainings.items()}
    taken = by_turns(context.group, actions, context.case.study.rounds)
    about = {"dataset": subject.name, "limit_bytes": limit, "share": round(limit / most, 4)}
    rows = []
    for name, each in trainings.items():
        row = {**about, "method": name, "ranks": context.group.size, **each.line(context.group)}
        rows.append({**row, **_beside_best(row, rows[0] if rows else row), **_times(taken, name)})
    return rows, [each.trainer.digest() for each in trainings.values()]


def _beside_best(row: dict[str, Any], best: dict[str, Any]) -> dict[str, Any]:
    """A line's bytes over those of the dynamic program, and whether no plan under the limit moves fewer."""
    moved, least = row["planned_bytes"], best["planned_bytes"]
    return {
        "times_bytes": moved / least if least else None,
        "least": None if row["method"] == FREE else best["least"] and moved == least,
    }


def _times(taken: dict[str, list[float]], name: str) -> dict[str, float]:
    """The time of an epoch, and over that of the dynamic program in the same round: median and quartiles."""
    times = [a / b for a, b in zip(taken[name], taken[BEST])]
    low, high = np.quantile(times, (0.25, 0.75)).tolist()
    return {
        "epoch_ms": 1e3 * median(taken[name]), "times_ms": median(times), "times_ms_low": low,
        "times_ms_high": high,
    }  # fmt: skip


def _say(context: Context, rows: list[dict[str, Any]]) -> None:
    """One limit: a line for each method, beside the dynamic program's bytes and time."""
    first, log = rows[0], context.log
    log.info(
        "%s, limit %.2f MB a rank, %.0f %% of what is alive at once; an epoch:",
        first["dataset"], 1e-6 * first["limit_bytes"], 100 * first["share"],
    )  # fmt: skip
    log.info("  %-19s %10s %7s %10s %7s %10s", "", "MB moved", "times", "ms", "times", "ms moving")
    for row in rows:
        times = "-" if row["times_bytes"] is None else f"{row['times_bytes']:.2f}"
        log.info(
            "  %-19s %10.3f %7s %10.2f %7.2f %10.2f",
            row["method"], 1e-6 * row["counted_bytes"], times, row["epoch_ms"], row["times_ms"],
            row["moving_ms"],
        )  # fmt: skip


def _plot(context: Context, rows: list[dict[str, Any]]) -> None:
    """Bytes and time over the limit, a line for each method (ROC Fig. 10), of the first data set."""
    shown = [row for row in rows if row["dataset"] == rows[0]["dataset"]]
    panels: dict[str, Any] = {}
    for key, label in (("counted_bytes", "bytes moved"), ("epoch_ms", "time")):
        panel = panels.setdefault(f"{shown[0]['dataset']}, {counted(shown[0]['ranks'], 'rank')}: {label}", {})
        for name in dict.fromkeys(row["method"] for row in shown):
            lines = [row for row in shown if row["method"] == name]
            scale = 1e-6 if key == "counted_bytes" else 1.0
            panel[name] = [row["share"] for row in lines], [scale * row[key] for row in lines]
    labels = ["MB an epoch", "ms an epoch"]
    plot_lines(context.folder, context.log, panels, "memory.png", "limit / alive at once", labels)
