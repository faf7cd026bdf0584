"""A model on one graph: an epoch is one forward and one backward pass over all that the loss depends on."""

from typing import Any

import numpy as np

from app.case.gnn import GnnCase
from app.comm.group import Group
from app.comm.ordered import sum_tree
from app.gnn.categories import Categories, with_categories
from app.gnn.edges import EdgeInputs, refuse_stages
from app.gnn.engine import Engine
from app.gnn.features import Features
from app.gnn.given import Given
from app.gnn.goals import goal_of, spread_out
from app.gnn.known import NOTHING, Known
from app.gnn.model import Draws, Model, case_reads_loops
from app.gnn.neighbours import both_ways
from app.gnn.parameters import Parameters
from app.gnn.planned import Planned
from app.gnn.positions import draw_signs, signed_columns
from app.gnn.programs import Rows
from app.gnn.rehearsal import DenseWidth
from app.gnn.scale import Scale
from app.gnn.scored import Scored
from app.graphs.members import Members
from app.graphs.nodes.data import NodeData
from app.memory.tiers import TierBudget
from app.partition.migrate import move_nodes
from app.partition.rows import RowPartition
from app.sparse.repartition import repartition
from app.sparse.rowblock import RowBlock

Array = Any
REPLAYED = 1 << 22  # stored entries: with more an epoch takes longer than its launches


class Classifier(Given, Planned, Scored):
    """A model on one graph: its rows, features and labels on this rank, its buffers, its weights.

    classes   columns of the scores     goal   what they mean
    inputs    of features that are brought to one scale, or that are categories
    unknown   [columns] int64, numbers of features that are no category of the training nodes; of all ranks
    edge_columns   of the features of edges; None: no layer reads any
    positions the scale of the last columns of features, which are positions; None: there are none
    members   the rows of a set of graphs, in whose own labels, splits and scores stand; None: nodes have them
    Ranks     all construct
    """

    def __init__(
        self, group: Group, case: GnnCase, block: RowBlock, data: NodeData, seed: int, known: Known = NOTHING,
        budget: TierBudget | None = None, members: Members | None = None,
    ) -> None:  # fmt: skip
        """known: of weights that are applied; budget: a limit of buffers, which changes no bit"""
        self.group, self.device, self.case, self.data, self.seed = group, group.device, case, data, seed
        about = self.about
        self.classes = known.classes or about.classes
        self.goal = known.goal or goal_of(about.multilabel, _scale_of_values(group, about))
        self.members, self._readout = members, self._readout_of(block, members)
        self.inputs, self.unknown = self._read_columns(block, known.inputs), np.zeros(0, np.int64)
        if isinstance(self.inputs, Categories):
            self.data, self.unknown = with_categories(group, data, self._nodes(block), self.inputs)
        self.positions = self._with_positions(block, budget, known.positions)
        self.edge_columns = known.edge_columns or self._edge_columns(block)
        width = self.edge_columns.width if self.edge_columns else 0
        self.model = Model(case, self.data.width or block.n, self.classes, width)
        self.params = Parameters(self.device, self.model.shapes())
        self._degrees = self._mean_log_degree(block) if self.model.degree_means else 1.0
        self.begin(seed)
        self._settle(block, budget)

    @property
    def about(self) -> NodeData:
        """Labels and sets of what is predicted: of nodes, or of graphs."""
        return self.data

    @property
    def summed(self) -> Any:
        """Whose row blocks sums over what is predicted are by: of nodes the engine's."""
        return self.engine

    def begin(self, seed: int) -> None:
        """Draw weights anew, and all else that is drawn, for a seed."""
        self.seed = seed
        measured = dict.fromkeys(self.model.degree_means, self._degrees)
        self.params.draw_glorot(seed, self.model.constants() | measured)

    def _settle(self, block: RowBlock, budget: TierBudget | None) -> None:
        """Features, labels and buffers for the rows of a block. Ranks: all call."""
        group, case = self.group, self.case
        self.block, self._budget = block, budget
        limited = bool(budget and budget.limit and isinstance(self.data.features, np.ndarray))
        self.features: Features = DenseWidth(self.data.width) if limited else self._whole_features()
        direct = self.model.input_parameters() if self.features.whole_gradient else 0
        forward, adjoint = both_ways(group, block, case.edge_weights)
        self.engine = Engine(forward, block.rows, self.params, direct, adjoint)
        self.engine.measures = bool(case.epochs)
        if self.edge_columns:
            refuse_stages(block)
            known = self.device, block, self.data.edges, self.edge_columns
            self.engine.edges = EdgeInputs.of(*known, loops=case_reads_loops(self.case))
        if self._readout is not None:
            self.engine.pooling = both_ways(group, self._readout, False)
            self.engine.places = self._places(block) if case.readout == "max" else None
        if self.model.counts_rows:
            self.engine.count_rows(self._heard_from(block))
        self._label_rows = None if self.data.rows is None else self.device.put(self.data.rows)
        self._targets = self._put_targets() if self.about.classes else None
        self._record()
        store = self._limit_features(budget) if limited else None
        self._plan(budget, store)
        self._again, self._cells = self.device.repeated(), None
        if self._repeats():
            self._cells = self.device.put(np.zeros(len(self.model.blocks), dtype=np.uint64))

    def move(self, new: RowPartition) -> None:
        """Let the ranks hold the rows of another partition, between epochs; no bit of what follows changes.

        Ranks   all call
        """
        old, seconds, clock = self.block, self.engine.seconds, self.engine.clock
        self.data = move_nodes(self.group, self.data, old.rows, new)
        block = repartition(self.group, old, new)
        self._readout = self._readout_of(block, self.members)
        self._settle(block, self._budget)
        self.engine.seconds, self.engine.clock = seconds, clock

    def shares(self) -> list[float]:
        """By layer the share of the stored entries of all ranks that are of rows which training needs."""
        narrow = self.engine.narrow
        return [narrow[i].share if i in narrow else 1.0 for i in range(len(self.model.blocks))]

    def copies(self) -> list[float]:
        """By layer what `shares` says where the layer has a matrix of its own, else 0."""
        narrow = self.engine.narrow
        own = [i in narrow and narrow[i].matrix is not None for i in range(len(self.model.blocks))]
        return [share if has else 0.0 for share, has in zip(self.shares(), own)]

    def _put_targets(self) -> tuple[Array, Array]:
        """Labels on the device, and the weight of each own row in the mean over all training nodes."""
        return self.device.put(self.goal.targets(self.group, self.about)), self._weights_of("train")

    def _weights_of(self, split: str) -> Array:
        """[k] float32 on the device, of each row of labels in the mean loss of a split. Ranks: all call."""
        return self.device.put(self._shares_of(self.about, split))

    def _shares_of(self, data: NodeData, split: str) -> np.ndarray:
        """The same on the host, of rows of labels. Ranks: all call."""
        share = self.goal.share(self.group, data, split, self.case.class_weights == "balanced")
        return np.where(data.among(getattr(data, split)), share, 0).astype(np.float32)

    # ---- one epoch --------------------------------------------------------------------------------------

    def epoch(self, number: int) -> float:
        """Loss of the training nodes before the step, and its gradient in the engine. Ranks: all call.

        Eigenvectors of positions have signs of the epoch's own: with S = diag(signs), X S W = X (S W), and
        the gradient by W is S times that by S W. So weights take the signs for the pass, and give them back.
        """
        signs = self._signs(number)
        if signs is None:
            return self._pass(number)
        self.params.flat *= signs
        loss = self._pass(number)
        self.params.flat *= signs
        self.engine.gradient *= signs
        return loss

    def _signs(self, number: int) -> Array | None:
        """[params.size] 1 and -1, the signs of an epoch for the rows of weights that meet positions whose
        sign is a convention; None where there are none."""
        signed = signed_columns(self.case.positions)
        if signed.stop == signed.start:
            return None
        drawn = draw_signs(self.seed, number, signed.stop - signed.start)
        first = self.data.width - self.data.beside
        rows, flat = slice(first + signed.start, first + signed.stop), np.ones(self.params.size, np.float32)
        for name in self.model.blocks[0].meets_input:
            shape = self.params.shapes[name]
            flat[self.params.slices[name]].reshape(shape)[rows] *= drawn[:, None]
        return self.device.put(flat)

    def _pass(self, number: int) -> float:
        """`epoch` with the signs that positions have. Ranks: all call."""
        draws = Draws(self.case, self.seed, number, self._cells)
        if self._repeats():
            keys = draws.keys(self._cells.shape[0])
            self.device.load(self._cells, np.array(keys, dtype=np.uint64))
            operands = [self.params.flat, self.engine.gradient, *self._targets, self._cells]
            losses = self._again(operands, lambda: self._epoch(draws))
        else:
            losses = self._epoch(draws)
        return self._sum(losses)

    def _sum(self, losses: Array) -> float:
        """The loss from its addends. Ranks: all call."""
        return float(self.device.get(sum_tree(self.group, losses, self.engine.cuts, self.engine.blocks))[0])

    def _repeats(self) -> bool:
        """True where all epochs are launches in the same memory: nothing sent, watched or kept elsewhere."""
        engine = self.engine
        elsewhere = engine.tiered or (self.case.input_dropout and self.features.whole_gradient)
        alone = self.device.replays and self.group.size == 1 and not (elsewhere or engine.clock)
        return alone and self.block.stored <= REPLAYED

    def _epoch(self, draws: Draws) -> Array:
        """Addends [own roots, 1] of the loss; forward and backward pass."""
        engine = self.engine
        with engine.program("epoch"):
            Z = self.model.forward(engine, self.features, draws)
            losses, D = self._learn(Z)
            self.model.backward(engine, D)
            engine.reduce_gradients()
        return losses

    def _learn(self, Z: Rows) -> tuple[Array, Rows]:
        """Addends of the loss, and the gradient by the scores in their place."""
        work = lambda: self._loss(Z.array, *self._targets)  # noqa: E731
        return self.engine.apply("loss", "loss", [Z], [Z], work), Z

    def _loss(self, Z: Array, targets: Array, weight: Array) -> Array:
        """Addends of the loss; the scores become the gradient by them."""
        losses = self._losses(Z, targets, weight)
        return self.device.column_roots(losses[:, None], self.summed.starts, self.summed.spans)

    def _losses(self, Z: Array, targets: Array, weight: Array) -> Array:
        """[n_own] losses, 0 of rows without labels, as the gradient is there."""
        if self._label_rows is None:
            return self.goal.losses(self.device, Z, targets, weight)
        some = Z[self._label_rows]
        losses = self.goal.losses(self.device, some, targets, weight)
        Z.fill(0)
        Z[self._label_rows] = some
        return spread_out(self.device.xp, losses, self._label_rows, len(Z))


def _scale_of_values(group: Group, data: NodeData) -> Scale | None:
    """That of numbers to be predicted over the training nodes; None of classes. Ranks: all call."""
    if not data.values:
        return None
    return Scale.of(group, data.labels, data.among(data.train if data.counts["train"] else data.labelled))
