"""Task study, kind gnn_scaling: the model of full-batch training, checked on a graph, then used on paper.

Measured are epochs of [gnn] on [graph], on one rank and on all running ranks, by turns. The data sets of
study.networks (MG-GCN, Table 1) are counts: their memory and seconds are predicted, never measured.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from app.case.policy import AgentCase, PolicyCase
from app.comm.group import Group
from app.comm.guard import digest
from app.comm.turns import only_this_rank, seconds_alone, seconds_together
from app.gnn.classifier import Classifier
from app.memory.room import resident_bytes
from app.model.gnn import Training, traffic
from app.model.gnn_inputs import Inputs
from app.model.gnn_paper import NETWORKS, data_set, paper_rows, table_lines
from app.model.layout import of_blocks
from app.model.machines import ASSUMED
from app.model.rates import Calibration, Network, Rates
from app.partition.load import load_united
from app.partition.nodes import load_node_data
from app.problems.table import make_problem
from app.rl.qnet import QNetwork
from app.sparse.rowblock import RowBlock
from app.tasks.context import Context
from app.tasks.studies.calibrated import calibrated
from app.tasks.studies.cells import measurement
from app.tasks.studies.gnn_subjects import check_network

Shortest = tuple[float, dict[str, float]]  # seconds, and those of each kind of operation
CPU, GPU = "CPU rank", "GPU rank (assumed)"


@dataclass
class Subject:
    """A classifier on some ranks, and its model."""

    classifier: Classifier
    training: Training
    number: int = 0

    def epoch(self) -> None:
        """The next epoch. Ranks: all call."""
        self.number += 1
        self.classifier.engine.seconds.clear()
        self.classifier.epoch(self.number)


def run_gnn_scaling(context: Context) -> dict[str, Any]:
    """Calibrate, measure, compare, predict. Ranks: all call."""
    study, log = context.case.study, context.log
    check_network(context.case, context.case.gnn, "study")
    sets = [data_set(text) for text in study.networks or NETWORKS]
    calibration = _calibration(context, resident_bytes())
    measured, same = [], digest({})
    if context.case.graph.generator:
        measured, same = measurement(context, "epochs", partial(_checked, context, calibration))
    for row in measured:
        log.info("%s", _line(row))
    network = Network(1e-6 * study.latency_us, 1e9 * study.bandwidth_gbs)
    machines = {
        CPU: lambda ranks: Rates(calibration.undisturbed, ranks, network),
        GPU: lambda ranks: Rates(ASSUMED.calibration(), ranks, ASSUMED.network(ranks)),
    }
    case = context.case
    rows = list(paper_rows(context.device, case.gnn, sets, study.ranks, case.parallel.exchange, machines))
    log.info("%s: %s", CPU, calibration.machine)
    log.info("%s", ASSUMED.words())
    lines = list(table_lines(rows, [CPU, GPU]))
    for line in lines:
        log.info("%s", line)
    if context.folder is not None:
        context.folder.write_text("gnn_scaling.md", "\n".join(lines) + "\n")
    return {"digest": same, "measured": measured, "rows": rows, "instances": []}


def _calibration(context: Context, base: int) -> Calibration:
    """The file of the case, or rates measured now, which go to the run's folder. Ranks: all call.

    base   bytes of this process before it read a graph
    """
    net = QNetwork(PolicyCase(), make_problem("mvc"))
    found = calibrated(context, "calibration", net, AgentCase(), base)
    if context.folder is not None and not context.case.study.calibration:
        context.folder.write_text("calibration.json", found.text())
    return found


# ---- what is measured -------------------------------------------------------------------------------------


def _checked(context: Context, calibration: Calibration) -> tuple[list[dict[str, Any]], str]:
    """Predictions beside measurements on one rank and on all; the digest of an epoch's gradient.

    Ranks   all call
    """
    group, solo = context.group, only_this_rank(context.device)
    with context.log.phase("read"):
        together = _subject(context, group)
        alone = _subject(context, solo) if group.size > 1 else together
    sent = _sent(group, together)
    same = digest({"gradient": np.array(context.device.get(together.classifier.engine.gradient))})
    with context.log.phase("measure"):
        found = _by_turns(context, alone, together)
    rows = []
    for ranks, (seconds, kinds) in found.items():
        subject = together if ranks == group.size else alone
        rows.append(_compared(Rates(calibration, ranks), subject.training, seconds, kinds, ranks, sent))
    return rows, same


def _subject(context: Context, group: Group) -> Subject:
    """A classifier of the case on a group's ranks. Ranks of the group: all call."""
    case = context.case
    loaded = load_united(group, case.graph, case)
    data = load_node_data(group, case.graph, loaded, case)
    block = RowBlock(group, loaded.graph, loaded.rows, case.parallel.exchange, case.gnn.hidden)
    classifier = Classifier(group, case.gnn, block, data, case.seed)
    inputs = Inputs(classifier.features.width, data.classes, 0 if data.width else block.n)
    owned = classifier.features.owned if classifier.features.whole_gradient else None
    layout, reach = of_blocks(group, block), (classifier.shares(), classifier.copies())
    return Subject(classifier, Training(group.device, case.gnn, inputs, layout, owned, *reach))


def _sent(group: Group, subject: Subject) -> np.ndarray:
    """[ranks] bytes that each rank sends in an epoch that is not the first. Ranks: all call."""
    subject.epoch()
    before = sum(group.sent_bytes.values())
    subject.epoch()
    return group.gather_integers(np.array([sum(group.sent_bytes.values()) - before]))[:, 0]


def _by_turns(context: Context, alone: Subject, together: Subject) -> dict[int, Shortest]:
    """The shortest epoch by number of ranks, in whole and by kind of operation. Ranks: all call."""
    group = context.group
    actions: dict[int, tuple[Subject, Callable[[], float]]] = {}
    if group.size > 1:
        actions[1] = alone, partial(seconds_alone, group, alone.epoch)
    actions[group.size] = together, partial(seconds_together, group, together.epoch)
    best: dict[int, Shortest] = {}
    for turn in range(context.case.study.rounds + 1):
        for ranks in sorted(actions, reverse=bool(turn % 2)):
            subject, action = actions[ranks]
            seconds = action()
            if turn and (ranks not in best or seconds < best[ranks][0]):  # the first is not counted
                best[ranks] = seconds, dict(subject.classifier.engine.seconds)
    return best


def _compared(
    rates: Rates, training: Training, seconds: float, kinds: dict[str, float], ranks: int, sent: np.ndarray
) -> dict[str, Any]:
    """A prediction beside a measurement; ranks that slept have no time of their own."""
    layout = training.layout
    terms = training.epoch(layout.heaviest)
    counted = [sum(s for s, _ in traffic(training.epoch(rank)).values()) for rank in range(layout.ranks)]
    predicted = rates.total(terms)
    return {
        "ranks": ranks, "exchange": layout.mode, "predicted_s": predicted, "measured_s": seconds,
        "ratio": predicted / max(seconds, 1e-9), "parts_s": rates.by_part(terms), "kinds_s": kinds,
        "predicted_bytes": counted, "sent_bytes": sent.tolist() if ranks > 1 else [0],
    }  # fmt: skip


def _line(row: dict[str, Any]) -> str:
    """An epoch in words; a product's measured time has its messages in it."""
    parts = ", ".join(
        f"{part} {1e3 * seconds:.3g}"
        + (f" / {1e3 * row['kinds_s'][part]:.3g}" if part in row["kinds_s"] else "")
        for part, seconds in row["parts_s"].items()
    )
    agree = "as predicted" if row["sent_bytes"] == row["predicted_bytes"] else "not as predicted"
    return (
        f"an epoch on {row['ranks']} ranks ({row['exchange']}): {1e3 * row['predicted_s']:.3g} ms predicted, "
        f"{1e3 * row['measured_s']:.3g} ms measured, ratio {row['ratio']:.2f}; {max(row['sent_bytes'])} "
        f"bytes sent, {agree}; predicted / measured ms: {parts}"
    )
