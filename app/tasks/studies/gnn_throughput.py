"""Task study, kind throughput: epochs a second of one training by partitioner (ROC section 7.6, Fig. 8).

The same training with equal rows, equal edges and the learned cuts, by turns: first study.epochs in which the
learned cuts follow what they measure, then the timed ones, in which no row moves. Seconds of the wall hold
what ranks wait for each other; those of the processor are a rank's own work, between exchanges.
"""

from dataclasses import replace
from functools import partial
from statistics import median
from typing import Any

import msgspec
import numpy as np

from app.comm.guard import digest_text
from app.comm.turns import by_turns
from app.gnn.balanced import Balanced
from app.gnn.work_clock import WorkClock
from app.partition.balance import imbalance, measured_table
from app.partition.even import static_cuts
from app.partition.rows import RowPartition
from app.plots.charts import plot_bars
from app.sparse.repartition import graph_of
from app.tasks.context import Context
from app.tasks.levels.course import cost_model_of
from app.tasks.studies.cells import measurement
from app.tasks.studies.gnn_speed import Trainer
from app.tasks.studies.gnn_subjects import Subject, subjects
from app.text import counted

PARTITIONS = ("rows", "edges", "learned")
COLUMNS = (
    "dataset", "partition", "ranks", "epochs_per_s", "epoch_ms", "speedup", "speedup_low", "speedup_high",
    "imbalance", "slowest_cpu_ms", "mean_cpu_ms", "cpu_speedup", "rows_imbalance", "entries_imbalance",
    "moved_after",
)  # fmt: skip


class Clocked:
    """A training between given cuts of the rows; seconds of this rank's work in each timed epoch.

    follows   rows may move to where what was measured wants them, until the timed epochs
    work_s    [epochs] seconds of this rank's own rows
    """

    def __init__(self, subject: Subject, cuts: np.ndarray, follows: bool) -> None:
        classifier = subject.classifier(subject.gnn, subject.seeds[0])
        rows = RowPartition(classifier.block.n, classifier.block.rows.starts, cuts)
        if not np.array_equal(cuts, classifier.block.rows.cuts):
            classifier.move(rows)
        self.trainer, context = Trainer(classifier), subject.context
        self.balanced = Balanced(classifier, cost_model_of(context, classifier)) if follows else None
        if not follows:
            classifier.engine.clock = WorkClock(context.group, len(classifier.model.blocks))
        self.work_s: list[float] = []

    def settle(self) -> None:
        """An epoch after which rows may move. Ranks: all call."""
        self.trainer.epoch()
        if self.balanced:
            self.balanced.after_epoch(self.trainer.done)

    def epoch(self) -> None:
        """An epoch after which none do. Ranks: all call."""
        clock = self.trainer.classifier.engine.clock
        clock.take()
        self.trainer.epoch()
        self.work_s.append(float(clock.take().sum()))

    def line(self) -> dict[str, Any]:
        """How the work was shared out, the first timed epoch left out. Ranks: all call."""
        group, block = self.trainer.classifier.group, self.trainer.classifier.block
        work = measured_table(group, np.array([median(self.work_s[1:])]))
        held = np.array([block.n_real, len(graph_of(block).indices)], dtype=np.int64)
        rows, entries = group.gather_integers(held).T
        return {
            "imbalance": round(imbalance(work), 4), "slowest_cpu_ms": 1e3 * float(work.max()),
            "mean_cpu_ms": 1e3 * float(work.mean()), "rows_imbalance": round(imbalance(rows), 4),
            "entries_imbalance": round(imbalance(entries), 4),
            "moved_after": " ".join(map(str, self.balanced.moves)) if self.balanced else "",
        }  # fmt: skip


def run_throughput(context: Context) -> dict[str, Any]:
    """Every partitioner on every data set; table and plot. Ranks: all call."""
    rows, digests = [], {}
    for number, subject in enumerate(subjects(_learned(context))):
        lines, found = measurement(context, f"data set {number}", partial(_partitions, subject))
        digests[f"{subject.name} {subject.recipe}"] = found
        rows += lines
        _say(context, lines)
        if context.folder is not None:
            context.folder.write_csv("throughput.csv", COLUMNS, rows)
    same = all(len(set(found)) == 1 for found in digests.values())
    context.log.info("weights of all: %s", "the same bits" if same else "DIFFERENT BITS")
    if context.folder is not None and context.case.output.plots:
        _plot(context, rows)
    digest = digest_text({name: found[0] for name, found in digests.items()})
    return {"digest": digest, "same_bits": same, "rows": rows, "instances": []}


def _learned(context: Context) -> Context:
    """The context in which a cost model of the case, where there is one, is read."""
    parallel = msgspec.structs.replace(context.case.parallel, partition="learned")
    return replace(context, case=msgspec.structs.replace(context.case, parallel=parallel))


def _partitions(subject: Subject) -> tuple[list[dict[str, Any]], list[str]]:
    """The trainings by turns: lines of the table, digests of the weights. Ranks: all call."""
    group, study = subject.context.group, subject.context.case.study
    cuts = static_cuts(group, subject.loaded.graph, subject.loaded.rows.starts)
    cuts["learned"] = cuts["edges"]  # where a cost model of the case does not say better
    trainings = {name: Clocked(subject, cuts[name], name == "learned") for name in PARTITIONS}
    for _ in range(study.epochs):
        for each in trainings.values():
            each.settle()
    taken = by_turns(group, {name: each.epoch for name, each in trainings.items()}, study.rounds)
    rows = []
    for name, each in trainings.items():
        row = {"dataset": subject.name, "partition": name, "ranks": group.size, **each.line()}
        rows.append({**row, **_speedups(taken, name, row, rows[0] if rows else row)})
    return rows, [each.trainer.digest() for each in trainings.values()]


def _speedups(
    taken: dict[str, list[float]], name: str, row: dict[str, Any], first: dict[str, Any]
) -> dict[str, float]:
    """Epochs a second, and over those of equal rows in the same round: median and quartiles."""
    speedups, epoch_s = [a / b for a, b in zip(taken["rows"], taken[name])], median(taken[name])
    low, high = np.quantile(speedups, (0.25, 0.75)).tolist()
    return {
        "epochs_per_s": 1 / epoch_s, "epoch_ms": 1e3 * epoch_s, "speedup": median(speedups),
        "speedup_low": low, "speedup_high": high,
        "cpu_speedup": first["slowest_cpu_ms"] / max(row["slowest_cpu_ms"], 1e-9),
    }  # fmt: skip


def _say(context: Context, rows: list[dict[str, Any]]) -> None:
    """One data set: a line for each partitioner, beside equal rows."""
    log = context.log
    log.info("%s, %s; imbalance: slowest over mean", rows[0]["dataset"], counted(rows[0]["ranks"], "rank"))
    log.info("  %-8s %10s %7s %10s %7s %10s", "", "epochs/s", "times", "CPU ms", "times", "imbalance")
    for row in rows:
        log.info(
            "  %-8s %10.3f %7.3f %10.2f %7.3f %10.3f",
            row["partition"], row["epochs_per_s"], row["speedup"], row["slowest_cpu_ms"], row["cpu_speedup"],
            row["imbalance"],
        )  # fmt: skip
    log.info("  rows of the learned cuts moved after epochs: %s", rows[-1]["moved_after"] or "none")


def _plot(context: Context, rows: list[dict[str, Any]]) -> None:
    """Epochs a second of each data set, a bar for each partitioner."""
    bars: dict[str, dict[str, tuple[float, float]]] = {}
    for row in rows:
        bars.setdefault(row["dataset"], {})[row["partition"]] = row["epochs_per_s"], 0.0
    title = f"epochs a second, {counted(rows[0]['ranks'], 'rank')}"
    plot_bars(context.folder, context.log, bars, "throughput.png", title)
