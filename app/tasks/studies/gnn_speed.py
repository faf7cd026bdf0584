"""Task study, kinds breakdown and density: where an epoch's time goes, and when a second rank pays.

Source   MG-GCN section 6.2, Fig. 5 (shares of operations) and section 6.5, Fig. 9 (speed-up by mean degree
         of graphs with scaled degrees)
"""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from statistics import median, median_low
from typing import Any

import msgspec
import numpy as np

from app.comm.guard import digest, digest_text
from app.comm.turns import by_turns, only_this_rank
from app.errors import CaseError
from app.gnn.classifier import Classifier
from app.gnn.optim import make_optimiser
from app.gnn.training import add_decay, decayed_parts
from app.plots.charts import plot_lines
from app.plots.runs import plot_breakdown
from app.tasks.context import Context
from app.tasks.studies.cells import measurement
from app.tasks.studies.gnn_subjects import Subject, check_network, make_subject, subjects
from app.text import counted

BREAKDOWN_COLUMNS = ("dataset", "nodes", "edges", "mean_degree", "width", "operation", "ms", "percent")
DENSITY_COLUMNS = (
    "scale", "graphs", "nodes", "edges", "mean_degree", "ranks", "exchange", "one_ms", "all_ms", "speedup",
    "speedup_low", "speedup_high", "one_cpu_ms", "slowest_cpu_ms", "cpu_speedup",
)  # fmt: skip


class Trainer:
    """Epochs of a classifier with the steps of its optimiser."""

    def __init__(self, classifier: Classifier) -> None:
        self.classifier, self.done = classifier, 0
        size, device = classifier.params.size, classifier.device
        self.optimiser = make_optimiser(classifier.case, size, device.xp, kernel=device.adam)
        self.optimiser_s, self.decay = 0.0, decayed_parts(classifier)

    def epoch(self) -> None:
        """The next epoch. Ranks: all of the classifier's call."""
        self.done += 1
        self.classifier.epoch(self.done)
        start = time.perf_counter()
        params, gradient = self.classifier.params, self.classifier.engine.gradient
        add_decay(self.decay, gradient, params.flat)
        self.optimiser.update(params.flat, gradient)
        self.classifier.device.synchronize()
        self.optimiser_s += time.perf_counter() - start

    def digest(self) -> str:
        """Of the weights."""
        return digest(self.classifier.params.host())


# ---- breakdown --------------------------------------------------------------------------------------------


def run_breakdown(context: Context) -> dict[str, Any]:
    """Milliseconds and shares of an epoch by kind of operation. Ranks: all call."""
    rows, shares, digests = [], {}, {}
    for number, subject in enumerate(subjects(context)):
        found, same = measurement(context, f"data set {number}", partial(_operations, subject))
        shares[subject.name] = found
        digests[f"{subject.name} {subject.recipe}"] = same
        rows += _breakdown_lines(subject, found)
        whole = sum(found.values())
        shown = ", ".join(
            f"{kind} {100 * s / whole:.0f} %" for kind, s in sorted(found.items(), key=lambda item: -item[1])
        )
        context.log.info("%s: %.1f ms an epoch: %s", subject.name, 1e3 * whole, shown)
    if context.folder is not None:
        context.folder.write_csv("breakdown.csv", BREAKDOWN_COLUMNS, rows)
        if context.case.output.plots:
            plot_breakdown(context.folder, context.log, shares)
    return {"digest": digest_text(digests), "rows": rows, "instances": []}


def _operations(subject: Subject) -> tuple[dict[str, float], str]:
    """The operations of a data set's training, and the digest of its weights. Ranks: all call."""
    trainer = Trainer(subject.classifier(subject.gnn, subject.seeds[0]))
    found = operations(trainer, subject.context.case.study.rounds)
    return found, trainer.digest()


def operations(trainer: Trainer, rounds: int) -> dict[str, float]:
    """Seconds of the wall by kind of operation: of each kind the median over epochs, of the rank that took
    longest. A first epoch does not count. Ranks: all call."""
    seconds, group = trainer.classifier.engine.seconds, trainer.classifier.group
    trainer.epoch()
    taken: dict[str, list[float]] = {}
    for _ in range(rounds):
        before = {**seconds, "optimiser": trainer.optimiser_s}
        trainer.epoch()
        for kind, total in {**seconds, "optimiser": trainer.optimiser_s}.items():
            taken.setdefault(kind, []).append(total - before.get(kind, 0.0))
    own = np.array([round(1e9 * median(taken[kind])) for kind in sorted(taken)])
    return dict(zip(sorted(taken), (1e-9 * group.max_integers(own)).tolist()))


def _breakdown_lines(subject: Subject, found: dict[str, float]) -> list[dict[str, Any]]:
    graph, whole = subject.loaded.graph, sum(found.values())
    return [
        {
            "dataset": subject.name, "nodes": graph.n, "edges": graph.edges,
            "mean_degree": round(2 * graph.edges / graph.n, 2), "width": subject.gnn.hidden,
            "operation": kind, "ms": round(1e3 * s, 4), "percent": round(100 * s / whole, 2),
        }
        for kind, s in found.items()
    ]  # fmt: skip


# ---- density ----------------------------------------------------------------------------------------------


def run_density(context: Context) -> dict[str, Any]:
    """Epochs on one rank and on all ranks by turns, for every scale of the degrees; medians over graph.count
    graphs of each. Ranks: all call."""
    table, study, rows, digests = context.case.graph, context.case.study, [], {}
    if table.generator != "bter" or context.group.size == 1:
        raise CaseError('study.kind: density needs graph.generator = "bter" and several ranks (mpirun -np 2)')
    check_network(context.case, context.case.gnn, "study")
    for scale in study.scales:
        found = []
        for number in range(table.count):
            part = _scaled(context, scale, number)
            line, same = measurement(context, f"scale {scale}, graph {number}", partial(_density_line, part))
            found.append(line)
            digests[f"{scale} {number}"] = same
        row = {"scale": scale, "graphs": table.count, **_medians(found)}
        rows.append(row)
        context.log.info(
            "degrees x %g: %s, mean degree %.1f, one rank %.1f ms, %d ranks %.1f ms: speed-up %.2f "
            "(quartiles %.2f, %.2f); by the processor's time %.2f",
            scale, counted(table.count, "graph"), row["mean_degree"], row["one_ms"], row["ranks"],
            row["all_ms"], row["speedup"], row["speedup_low"], row["speedup_high"], row["cpu_speedup"],
        )  # fmt: skip
        if context.folder is not None:
            context.folder.write_csv("density.csv", DENSITY_COLUMNS, rows)
    if context.folder is not None and context.case.output.plots:
        _plot_density(context, rows)
    return {"digest": digest_text(digests), "rows": rows, "instances": []}


def _scaled(context: Context, scale: float, number: int) -> Context:
    """The context for one of the graphs whose degrees are scaled."""
    table = context.case.graph
    seed = context.case.seed if table.generator_seed < 0 else table.generator_seed
    scaled = msgspec.structs.replace(table, degree_scale=scale, count=1, generator_seed=seed + number)
    return replace(context, case=msgspec.structs.replace(context.case, graph=scaled))


def _medians(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """One line of several: the median of each column; of two the lower for what is counted or said."""
    kinds = {key: median if isinstance(value, float) else median_low for key, value in lines[0].items()}
    return {key: middle(line[key] for line in lines) for key, middle in kinds.items()}


def _density_line(context: Context) -> tuple[dict[str, Any], str]:
    """One graph: a line of the table, and the digest of the weights. Ranks: all call."""
    group = context.group
    # Only rank 0 is timed alone; the others make the same graph, and sleep.
    solo = replace(context, group=only_this_rank(group.device), folder=None)
    both = [make_subject(each, [context.case.seed]) for each in (solo, context)]
    alone, together = (Trainer(each.classifier(each.gnn, context.case.seed)) for each in both)
    one, every, one_cpu, own_cpu = _by_turns(context, alone, together)
    ratios = [a / b for a, b in zip(one, every)]
    slowest = 1e-9 * group.max_integer(round(1e9 * own_cpu))
    graph, subject = both[1].loaded.graph, both[1]
    row = {
        "nodes": graph.n, "edges": graph.edges, "mean_degree": round(2 * graph.edges / graph.n, 2),
        "ranks": group.size, "exchange": subject.block.plan.mode, "one_ms": 1e3 * median(one),
        "all_ms": 1e3 * median(every), "speedup": median(ratios),
        "one_cpu_ms": 1e3 * one_cpu, "slowest_cpu_ms": 1e3 * slowest, "cpu_speedup": one_cpu / slowest,
    }  # fmt: skip
    row["speedup_low"], row["speedup_high"] = np.quantile(ratios, (0.25, 0.75)).tolist()
    return row, together.digest()


def _by_turns(
    context: Context, alone: Trainer, together: Trainer
) -> tuple[list[float], list[float], float, float]:
    """Wall seconds of each round alone and together as rank 0 has them; the median seconds of this rank's
    processor at work alone (rank 0's, on all ranks) and together, without what MPI calls took.

    Ranks   all call
    """
    group, rounds = context.group, context.case.study.rounds
    group.processor_s = 0.0
    cpu: dict[str, list[float]] = {"alone": [], "together": []}
    actions = {
        name: partial(_clocked, trainer, cpu[name])
        for name, trainer in (("alone", alone), ("together", together))
    }
    taken = by_turns(group, actions, rounds, "alone")
    walls = group.broadcast(np.array([taken["alone"], taken["together"]])).tolist()
    one = group.broadcast(np.array([median(cpu["alone"][1:] or [0.0])]))
    return walls[0], walls[1], float(one[0]), median(cpu["together"][1:])


def _clocked(trainer: Trainer, into: list[float]) -> None:
    """One epoch, and the seconds of the processor that it took outside of MPI calls."""
    group = trainer.classifier.group
    clock: Callable[[], float] = lambda: time.process_time() - (group.processor_s or 0.0)  # noqa: E731
    start = clock()
    trainer.epoch()
    into.append(clock() - start)


def _plot_density(context: Context, rows: list[dict[str, Any]]) -> None:
    degrees = [row["mean_degree"] for row in rows]
    lines = {
        "wall time": (degrees, [row["speedup"] for row in rows]),
        "processor time of the slowest rank": (degrees, [row["cpu_speedup"] for row in rows]),
    }
    title = f"{rows[0]['nodes']} nodes, {rows[0]['ranks']} ranks"
    labels = ["speed-up over one rank"]
    plot_lines(context.folder, context.log, {title: lines}, "density.png", "mean degree", labels, "log")
