"""What forecasts of series will take: memory of a rank, bytes and seconds of a training step (--dry-run, and
the log).

n_p rows of a rank, T steps of time of C channels, K random walks, B windows of L steps, w parameters, 4
bytes a number:

series       n_p T C (3 + K): as read, without holes, where known, and the walks; of a covariates of each node
             and b of all n_p (T + H) a (2 + K) and 2 (T + H) b
batch        n_p B for each column: the inputs L (f + 1), what regressions read twice, targets, and what the
             network holds until its backward pass (Recurrent.floats, Temporal.floats)
exchange     rows of B h columns on their way, as of any product
gradients    9 w with Adam; addends: w for each row block, 3 w for each subtree of these
regressions  of k columns k (k + H C) for each of SUMS, and 2 for each subtree
intervals    with output.coverage 3 errors for each window of validation and test, node and step of the
             horizon, 9 of quantiles
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from app.case.config import Case
from app.case.forecast import ForecastCase
from app.case.gnn import GnnCase
from app.comm.tree import owned_roots
from app.gnn.forecast.covariates import NO_COLUMNS, ahead_columns, check_reach
from app.gnn.forecast.forecaster import network_of
from app.gnn.forecast.origins import origins_of_study
from app.gnn.forecast.series import Parts
from app.gnn.forecast.training import steps_of
from app.gnn.forecast.windows import input_columns, linear_columns, output_columns
from app.graphs.formats.source import Limits
from app.graphs.series import COVARIATES, columns_of_shared, shape_of_series
from app.model.counts import classified_counts
from app.model.defaults import DEFAULTS
from app.model.gnn import OPTIMISER, traffic
from app.model.gnn_share import Share
from app.model.layout import Layout, estimate
from app.model.memory import Need, at_rest, size, total, whole_graph, words
from app.model.node_plan import parts_words, time_words
from app.model.rates import Rates
from app.model.terms import Term
from app.model.whole import decided_by_case, is_small, said_whole
from app.text import printable

GATE_PASSES = 40  # over a column, that the gates of a step take forward and back: exponentials are long
UNKNOWN_STEPS = 1000  # of text files, whose series have not been read
ARRAYS = 3  # of series beside the random walks
SUMS = 5  # arrays of 32-bit numbers, of the sums of regressions and what is made of them, beside the roots
COPIES = 2  # of covariates beside these: as read, and about 0


@dataclass(frozen=True)
class ForecastTraining:
    """Counts of a training: of the graph, of the series, of the network."""

    case: ForecastCase
    gnn: GnnCase
    layout: Layout
    steps: int
    channels: int = 1
    sides: int = 1
    masks: bool = False
    coverage: bool = False
    covariates: tuple[int, int] = NO_COLUMNS

    @property
    def roots(self) -> list[int]:
        """Subtrees of row blocks that each rank owns."""
        cuts = np.concatenate([[0], np.cumsum(self.layout.blocks)])
        return [len(owned_roots(int(cuts[-1]), int(a), int(b))) for a, b in pairwise(cuts)]

    @property
    def walks(self) -> int:
        """Random walks of a convolution."""
        return self.case.hops * self.sides

    @property
    def f(self) -> int:
        """Columns of the input of a step."""
        return input_columns(self.case, self.channels, self.walks, self.masks, self.covariates)

    @property
    def outputs(self) -> int:
        """Numbers that are forecast of a node."""
        return output_columns(self.case, self.channels)

    @property
    def targets(self) -> int:
        """Numbers that come next of a node."""
        return self.case.horizon * self.channels

    @property
    def network(self) -> Any:
        """Its sizes."""
        ahead = ahead_columns(self.case.horizon, self.walks, self.covariates)
        return network_of(self.case, self.gnn, self.f, self.outputs, self.walks, ahead)

    @property
    def parameters(self) -> int:
        """Numbers that are learned."""
        return sum(int(np.prod(shape)) for shape in self.network.shapes().values())

    @property
    def linear(self) -> int:
        """Columns of regressions."""
        return linear_columns(self.case, self.channels, self.sides, self.covariates)

    def windows(self, part: str) -> int:
        """Of a part of time."""
        return len(Parts.of(self.case, self.steps).ends(part))

    @property
    def batches(self) -> int:
        """Training steps of an epoch."""
        return steps_of(self.case.batch, self.case.steps, self.windows("train"))

    def held(self, rank: int, base_bytes: int) -> dict[str, int]:
        """Bytes of a rank by term, while it trains."""
        rows, case, w = int(self.layout.rows[rank]), self.case, self.parameters
        windows = min(case.batch, max(self.windows("train"), 1))
        columns = case.window * (self.f + 1) + 2 * self.linear + 5 * self.targets
        columns += 4 * (self.outputs - self.targets) + (self.gnn.members - 1) * self.outputs
        columns += self.network.floats(case.window)
        width = 4 * windows * self.gnn.hidden
        out = {"base": base_bytes, **at_rest(self.layout, rank)}
        out["series"] = 4 * rows * self.steps * self.channels * (ARRAYS + self.walks)
        known = rows * self.covariates[0] * (COPIES + self.walks) + COPIES * self.covariates[1]
        out["series"] += 4 * (self.steps + case.horizon) * known
        out["batch"] = 4 * rows * windows * columns
        if self.layout.ranks > 1:
            out["exchange"] = width * (self.layout.extended(rank) + int(self.layout.sent[rank]))
        out["gradients"] = 4 * w * (9 + 3 * self.roots[rank] + int(self.layout.blocks[rank]))
        out["regressions"] = 4 * self.linear * (self.linear + self.targets) * (SUMS + 2 * self.roots[rank])
        if self.coverage:
            judged = max(self.windows("val"), self.windows("test"))
            scores = 3 if case.quantiles else 1
            out["intervals"] = 12 * rows * judged * scores * self.targets
        return out

    def step(self, rank: int) -> list[Term]:
        """One training step: forward, loss, backward, sums, the optimiser."""
        work = _Step(self, rank)
        if self.case.model == "temporal":
            work.temporal()
        else:
            work.recurrent()
        work.part = "reduce"
        work.sum_tree("gradients", self.parameters)
        work.sum_tree("loss", self.outputs)
        work.part = "optimiser"
        work.passes("update", OPTIMISER[self.gnn.optimiser] * self.parameters)
        return work.terms


class _Step(Share):
    """Terms of a training step of one rank."""

    def __init__(self, training: ForecastTraining, rank: int) -> None:
        super().__init__(training, rank, "step")
        self.of, self.windows = training, min(training.case.batch, max(training.windows("train"), 1))
        self.rows = self.own * self.windows

    def learned(self, name: str, k: int, m: int, back: bool) -> None:
        """Rows times weights [k, m], their gradient and, where asked for, the gradient by the rows."""
        self.add(f"{name}: forward", "wide dense", self.rows, k, m, 4 * k * m)
        self.add(f"{name}: gradient", "wide gram", self.rows, k, m, 4 * k * m)
        if back:
            self.add(f"{name}: backward", "wide dense", self.rows, m, k, 4 * k * m)

    def convolution(self, name: str, m: int) -> None:
        """A graph convolution of hidden rows to m columns, forward and back."""
        h, walks = self.of.gnn.hidden, self.of.walks
        for _ in range(2 * walks):
            self.product(f"{name}: walks", self.windows * h)
        self.learned(name, (1 + walks) * h, m, back=True)

    def ends(self) -> None:
        """The input, the regression, the head."""
        of, h = self.of, self.of.gnn.hidden
        self.part = "windows"
        self.passes("windows", self.rows * (of.case.window * (of.f + 1) + 2 * of.linear), "take")
        self.add("base", "wide dense", self.rows, of.linear, of.targets, 4 * of.linear * of.targets)
        self.part = "head"
        self.learned("head", h, of.outputs, back=True)

    def recurrent(self) -> None:
        """A gated recurrent unit through the window."""
        of, h = self.of, self.of.gnn.hidden
        self.ends()
        self.part = "recurrence"
        for t in range(of.case.window):
            self.learned("input", of.f + 1, 3 * h, back=False)
            self.passes("gates", GATE_PASSES * self.rows * h)
            if t:
                self.convolution("state", 3 * h)

    def temporal(self) -> None:
        """Convolutions over the window, then over the graph."""
        of, h = self.of, self.of.gnn.hidden
        self.ends()
        self.part = "layers"
        self.learned("input", of.case.window * (of.f + 1), 2 * h, back=False)
        self.passes("gates", GATE_PASSES * self.rows * h)
        for _ in range(of.gnn.depth):
            self.convolution("layer", h)


@dataclass(frozen=True)
class SeriesSizes:
    """A graph of a name, and the series of its nodes, in numbers.

    entries      stored entries of the graph     steps   of time
    masks        some values are not known
    covariates   columns of those of nodes, and of those of all
    """

    name: str
    nodes: int
    entries: int
    steps: int
    channels: int = 1
    masks: bool = False
    covariates: tuple[int, int] = NO_COLUMNS


def training_of(case: Case, sizes: SeriesSizes, ranks: int) -> ForecastTraining:
    """The counts of a training of a case on series."""
    width = case.forecast.batch * case.gnn.hidden
    layout = estimate(sizes.name, sizes.nodes, sizes.entries, ranks, case.parallel.exchange, width)
    sides = 1 if case.graph.neighbours == "both" and case.graph.generator != "arcs" else 2
    return ForecastTraining(
        case=case.forecast, gnn=case.gnn, layout=layout, steps=sizes.steps, channels=sizes.channels,
        sides=sides, masks=sizes.masks, coverage=bool(case.output.coverage), covariates=sizes.covariates,
    )  # fmt: skip


def learns_whole(case: Case, training: ForecastTraining, alone: ForecastTraining, crowded: bool) -> bool:
    """Whether every rank holds all of a training, and one learns (model/whole.py); alone: on one rank."""
    layout = training.layout
    nbytes = whole_graph(layout.n, layout.entries // 2)
    nbytes += 4 * layout.n * training.steps * training.channels
    decided = decided_by_case(case, layout.ranks, nbytes)
    if decided is not None:
        return decided
    return is_small(alone.step(0), training.step(layout.heaviest), layout.ranks, crowded)


def need_of(case: Case, training: ForecastTraining) -> Need:
    """Of its rank that holds most."""
    return Need(case.run.name, training.held(training.layout.heaviest, DEFAULTS.base_bytes))


def _sizes_of(case: Case) -> tuple[int, int] | None:
    """Steps of time and channels, where they are known before reading: of drawn series, and of arrays."""
    if case.graph.generator:
        return case.graph.series_steps, 1
    return shape_of_series(case.graph.series, Limits(int(case.memory.max_decompressed_gb * 1e9)))


def covariates_of_case(case: Case, steps: int | None) -> tuple[int, int]:
    """Columns of the files of what is known beforehand, by their headers. Raises GraphError where these tell
    that steps lack. steps: of the series, None where no header tells them"""
    limits, table = Limits(int(case.memory.max_decompressed_gb * 1e9)), case.graph
    a = b = 0
    reach: list[tuple[str, int | None]] = []
    if table.covariates:
        shape = shape_of_series(table.covariates, limits, COVARIATES)
        a = shape[1] if shape else 1  # text has one of each node
        reach.append((table.covariates, shape and shape[0]))
    if table.shared_covariates:
        found, b = columns_of_shared(table.shared_covariates, limits)
        reach.append((table.shared_covariates, found))
    for path, found in reach:
        if steps and found:
            check_reach(printable(path), found, steps, case.forecast.horizon)
    return a, b


def forecast_needs(case: Case, ranks: int) -> Iterator[Need]:
    """What a rank holds of drawn series, whose counts are known before."""
    nodes, entries = classified_counts(case)
    if nodes and entries and case.graph.generator:
        steps = case.graph.series_steps
        covariates = covariates_of_case(case, steps)
        sizes = SeriesSizes(case.run.name, nodes, entries, steps, covariates=covariates)
        yield need_of(case, training_of(case, sizes, ranks))


def _origin_lines(case: Case, name: str, steps: int) -> Iterator[str]:
    """The trainings of a study of rolling origins. Raises GraphError where series are too short for them."""
    if (case.run.task, case.study.kind) != ("study", "folds"):
        return
    origins = origins_of_study(case.forecast, case.study, steps, name)
    first, last, seeds = origins[0], origins[-1], len(case.study.seeds)
    yield (
        f"{len(origins)} origins, steps {first.at} to {last.at}, with {seeds} seed{'s' * (seeds > 1)} each; "
        f"{len(first.parts.ends('train'))} to {len(last.parts.ends('train'))} windows to learn from"
    )


def forecast_plan_lines(case: Case, ranks: int, rates: Rates) -> Iterator[str]:
    """Memory of a rank, and bytes and seconds of a training step, as lines of text."""
    known = _sizes_of(case)
    steps, channels = known or (UNKNOWN_STEPS, 1)
    covariates = covariates_of_case(case, known and known[0])
    nodes, entries = classified_counts(case)
    if not nodes or not entries:
        yield "sizes are known once the graph is read"
        return
    sizes = SeriesSizes(case.run.name, nodes, entries, steps, channels, covariates=covariates)
    training, alone = training_of(case, sizes, ranks), training_of(case, sizes, 1)
    if learns_whole(case, training, alone, crowded=False):
        training = alone
        yield said_whole(case)
    layout, rank = training.layout, training.layout.heaviest
    if known:
        Parts.of(case.forecast, training.steps).check(layout.name, training.steps, bool(case.gnn.epochs))
        yield f"series of {steps} steps of time, {channels} channel{'s' * (channels > 1)}"
        yield from _origin_lines(case, layout.name, steps)
    else:
        yield f"the file of series is not read here: {UNKNOWN_STEPS} steps of time of one channel are assumed"
    held = training.held(rank, rates.calibration.base_bytes)
    count = f"{layout.ranks} rank{'s' * (layout.ranks > 1)}"
    yield f"{size(total(held))} a rank on {count} (exchange {layout.mode}): {words(held)}"
    terms = training.step(rank)
    yield f"{training.windows('train')} windows to learn from, {training.batches} training steps an epoch"
    yield f"a training step: {time_words(rates.total(terms))} ({parts_words(rates, terms)})"
    for phase, (sent, received) in traffic(terms).items():
        yield f"a training step, {phase}: {size(sent)} sent, {size(received)} received by a rank"
