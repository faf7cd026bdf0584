"""Task study, kind partition: equal rows, equal edges and the learned partitioner (ROC section 7.6).

Every epoch passes the same layers over the same graph, cut by each partitioner in turn; beside them two that
renumber the rows first: a random permutation in equal rows (MG-GCN, section 5.2), and the parts of METIS in
turn, in equal edges. What is balanced is
the time that a rank's own rows take, not its waiting for others: ranks may share cores, so the clock "cpu"
counts the processor's seconds and no wall time, and "simulated" is a formula whose best cuts are known. Then
the learned cost model cuts a new graph of the family before anything is measured on it (ROC Fig. 9).
"""

from dataclasses import astuple, dataclass
from functools import partial
from typing import Any

import msgspec
import numpy as np

from app.comm.group import Group
from app.errors import CaseError
from app.graphs.graph import Graph
from app.partition.balance import Balance, MoveCost, cuts_for, imbalance, measured_table
from app.partition.cost import CostModel, from_arrays
from app.partition.even import even_rows, static_cuts
from app.partition.features import block_features, line_of
from app.partition.migrate import move_rows
from app.partition.order import find_order, reorder
from app.partition.rows import RowPartition
from app.plots.runs import plot_partition
from app.sparse.repartition import repartition
from app.sparse.rowblock import RowBlock
from app.tasks.context import Context
from app.tasks.studies.cells import measurement
from app.tasks.studies.passes import EpochClock, Layers, simulated_seconds

PARTITIONS = ("rows", "edges", "learned")
ORDERS = {"random": "rows", "metis": "edges"}  # of the rows, and what is equal between the cuts
COLUMNS = (
    "graph", "partition", "ranks", "epoch", "imbalance", "slowest_s", "mean_s", "above_best", "moved", "note",
)  # fmt: skip


@dataclass
class Subject:
    """A graph of the study, whole over the ranks by some first partition, and its clock."""

    name: str
    graph: Graph
    rows: RowPartition
    clock: EpochClock

    def block(self, group: Group, cuts: np.ndarray) -> RowBlock:
        """Its rows between other cuts. Every rank gets all operand rows: what follows is one product."""
        rows = RowPartition(self.rows.n, self.rows.starts, cuts)
        return RowBlock(group, move_rows(group, self.graph, self.rows, rows), rows, "gather")

    def static_cuts(self, group: Group) -> dict[str, np.ndarray]:
        """Equal rows, and equal edges. Ranks: all call."""
        return static_cuts(group, self.graph, self.rows.starts)


@dataclass
class Renumbered:
    """A partitioner that renumbers the rows: its graph and cuts, or why there are none."""

    name: str
    subject: Subject | None
    block: RowBlock | None = None
    note: str = ""

    def row(self, group: Group, subject: Subject, epoch: int) -> dict[str, Any]:
        """A line of the table: an epoch, or why there is none. Ranks: all call."""
        if self.subject is None:
            missing = dict.fromkeys(("imbalance", "slowest_s", "mean_s", "above_best"))
            about = {"graph": subject.name, "partition": self.name, "ranks": group.size, "epoch": epoch}
            return {**about, **missing, "moved": False, "note": self.note}
        seconds, _ = self.subject.clock.epoch({self.name: self.block})
        return _row(group, self.subject, self.name, epoch, seconds[self.name])


def renumbered(context: Context, subject: Subject) -> list[Renumbered]:
    """The partitioners of ORDERS on a subject's graph, or what is missing for them. Ranks: all call."""
    group, case, found = context.group, context.case, []
    for name, balance in ORDERS.items():
        whole_bytes = 1e6 * case.memory.whole_graph_mb
        try:
            order_all = find_order(group, subject.graph, subject.rows, name, case.seed, whole_bytes)
        except CaseError as error:  # of all ranks alike
            found.append(Renumbered(name, None, note=str(error)))
            continue
        graph, rows = reorder(group, subject.graph, subject.rows, order_all, None)
        other = _clocked(context, subject.name, graph, rows)
        found.append(Renumbered(name, other, other.block(group, other.static_cuts(group)[balance])))
    return found


def run_partition(context: Context) -> dict[str, Any]:
    """Follow the partitioners on a graph, then cut a new one; tables and plot. Ranks: all call."""
    study, log = context.case.study, context.log
    trained, fresh = _subject(context, 0, "trained"), _subject(context, 1, "new")
    with log.phase("measure"):
        others = renumbered(context, trained)
        rows, digests, model = follow(context, trained, study.epochs, others)
        more, fresh_digests = measurement(context, "new graph", partial(_new_graph, context, fresh, model))
    same = len(set(digests)) == 1 and len(set(fresh_digests)) == 1
    _say(context, rows, more, same)
    if context.folder is not None:
        context.folder.write_csv("partition.csv", COLUMNS, [*rows, *more])
        context.folder.write_text("cost_model.json", model.text())
        if context.case.output.plots:
            clock = {"cpu": "processor seconds", "simulated": "simulated seconds"}[study.clock]
            title = f"{trained.graph.name}, {context.group.size} ranks, {clock}"
            plot_partition(context.folder, log, rows, more, title)
    return {"digest": digests[0], "same_bits": same, "rows": [*rows, *more], "instances": []}


def _subject(context: Context, number: int, name: str) -> Subject:
    """The graph of [graph], or another one of its family: that of the next seed. Ranks: all call."""
    table = context.case.graph
    if not table.generator or table.path:
        raise CaseError("graph.generator: the study needs a family such as rmat_natural, and no graph.path")
    seed = context.case.seed if table.generator_seed < 0 else table.generator_seed
    table = msgspec.structs.replace(table, count=1, generator_seed=seed + number)
    (loaded,) = context.load(table, "instances")
    return _clocked(context, name, loaded.graph, loaded.rows)


def _clocked(context: Context, name: str, graph: Graph, rows: RowPartition) -> Subject:
    """A graph with the blocks and the clock of the study. Ranks: all call."""
    study, group = context.case.study, context.group
    if study.blocks == "edges":
        graph, rows = even_rows(group, graph, rows)
    clock = EpochClock(Layers(group, study.widths, context.case.seed), study.rounds)
    if study.clock == "simulated":
        clock.blocks_s = simulated_seconds(group, graph, rows, study.widths)
    return Subject(name, graph, rows, clock)


def follow(
    context: Context, subject: Subject, epochs: int, others: list[Renumbered]
) -> tuple[list[dict[str, Any]], list[str], CostModel]:
    """Epochs by every partitioner in turn; the learned one begins with equal edges and adapts.

    others    partitioners that renumber the rows: their sums have another order, hence other bits
    returns   lines of the table, digests of all results, the model that was learned
    Ranks     all call
    """
    group, cuts = context.group, subject.static_cuts(context.group)
    blocks = {name: subject.block(group, cuts["edges" if name == "learned" else name]) for name in PARTITIONS}
    balance = _balance(group, subject, blocks["learned"])
    rows, digests = [], []
    for epoch in range(1, epochs + 1):
        made = partial(_epoch, group, subject, epoch, blocks, others)
        more, found, table = measurement(context, f"epoch {epoch}", made)
        digests += found
        rows += more
        new = balance.observe(np.array(table[group.rank]), max(context.case.study.horizon - epoch, 0))
        if new is not None:
            mine = [row for row in rows if row["partition"] == "learned"]
            mine[-1]["moved"] = True
            blocks["learned"] = _moved(context, balance, blocks["learned"], new, epoch)
    return rows, digests, from_arrays(balance.saved(), "the learned cost model")


def _epoch(
    group: Group, subject: Subject, epoch: int, blocks: dict[str, RowBlock], others: list[Renumbered]
) -> tuple[list[dict[str, Any]], list[str], list[list[float]]]:
    """Lines of the table, digests, and [ranks, layers] seconds of the learned cuts. Ranks: all call."""
    seconds, digests = subject.clock.epoch(blocks)
    rows = [_row(group, subject, name, epoch, seconds[name]) for name in PARTITIONS]
    rows += [each.row(group, subject, epoch) for each in others if each.subject or epoch == 1]
    return rows, digests, measured_table(group, seconds["learned"]).tolist()


def _moved(context: Context, balance: Balance, block: RowBlock, rows: RowPartition, epoch: int) -> RowBlock:
    """The rows between other cuts. What a move costs decides on the next one, so the cost that an earlier
    part of the run has measured counts, and not what it takes to be there again.

    Ranks   all call
    """
    block = balance.move(rows, partial(repartition, context.group, block))
    cost = measurement(context, f"move {epoch}", lambda: astuple(balance.cost))
    balance.cost = MoveCost(*cost)
    return block


def _new_graph(
    context: Context, subject: Subject, model: CostModel
) -> tuple[list[dict[str, Any]], list[str]]:
    """The first pass over a new graph: lines of the table, digests. Ranks: all call."""
    rows, digests = first_pass(context.group, subject, model)
    return rows + [each.row(context.group, subject, 1) for each in renumbered(context, subject)], digests


def _balance(group: Group, subject: Subject, block: RowBlock) -> Balance:
    """A balance of the subject's graph that begins where a block's rows are. Ranks: all call."""
    widths = subject.clock.layers.widths
    features = block_features(group, subject.graph, subject.rows, widths, line_of(group.device))
    return Balance(group, block.rows, features, row_bytes=4 * sum(widths))


def first_pass(group: Group, subject: Subject, model: CostModel) -> tuple[list[dict[str, Any]], list[str]]:
    """One pass over a new graph by every partitioner: lines of the table, digests. Ranks: all call."""
    features = block_features(group, subject.graph, subject.rows, list(model.widths), model.line)
    cuts = {**subject.static_cuts(group), "learned": cuts_for(group, features, model)}
    blocks = {name: subject.block(group, cuts[name]) for name in PARTITIONS}
    seconds, digests = subject.clock.epoch(blocks)
    return [_row(group, subject, name, 1, seconds[name]) for name in PARTITIONS], digests


def _row(group: Group, subject: Subject, name: str, epoch: int, seconds_own: np.ndarray) -> dict[str, Any]:
    """A line of the table. Ranks: all call."""
    by_rank = measured_table(group, seconds_own).sum(axis=1)
    best = subject.clock.best(group.size)
    return {
        "graph": subject.name, "partition": name, "ranks": group.size, "epoch": epoch,
        "imbalance": round(imbalance(by_rank), 4), "slowest_s": float(by_rank.max()),
        "mean_s": float(by_rank.mean()),
        "above_best": None if np.isnan(best) else round(float(by_rank.max() / best), 4), "moved": False,
        "note": "",
    }  # fmt: skip


def _say(context: Context, rows: list[dict[str, Any]], fresh: list[dict[str, Any]], same: bool) -> None:
    """The imbalance by epoch of each partitioner, of the new graph, and what is known to be best."""
    log = context.log
    for name in (*PARTITIONS, *ORDERS):
        mine = [row for row in rows if row["partition"] == name]
        if mine[0]["note"]:
            log.info("%s: not measured: %s", name, mine[0]["note"])
            continue
        shown = " ".join(f"{row['imbalance']:.3f}{'*' * row['moved']}" for row in mine)
        log.info("%-8s imbalance by epoch: %s", name, shown)
        half = [row["imbalance"] for row in mine[len(mine) // 2 :]]
        log.info(
            "%-8s least of them: %.3f; of the last %d in the mean: %.3f",
            name, min(row["imbalance"] for row in mine), len(half), sum(half) / len(half),
        )  # fmt: skip
        if mine[-1]["above_best"] is not None:
            log.info("%-8s slowest rank over the best cuts' at the end: %.4f", name, mine[-1]["above_best"])
    for row in (each for each in fresh if not each["note"]):
        log.info("new graph, %-8s imbalance at the first pass: %.3f", row["partition"], row["imbalance"])
    log.info(
        "results with the rows as they are: %s",
        "the same bits" if same else "DIFFERENT BITS",
    )
