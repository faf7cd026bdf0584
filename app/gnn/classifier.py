"""A model on one graph: an epoch is one forward and one backward pass over all that the loss depends on."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from app.case.gnn import GnnCase
from app.comm.group import Group
from app.comm.guard import raise_together
from app.comm.ordered import sum_tree
from app.errors import CaseError
from app.gnn.categories import Categories, with_categories
from app.gnn.edges import EdgeColumns, EdgeInputs, no_edge_features, refuse_stages
from app.gnn.engine import Engine
from app.gnn.features import DenseFeatures, Features, make_features
from app.gnn.goals import count_rows, goal_of, pick_rows, spread_out, with_areas
from app.gnn.inputs import BY_COLUMN, Scaling, in_file, input_categories, input_rows, input_scale, slow_input
from app.gnn.known import NOTHING, Known
from app.gnn.metrics import SplitScores
from app.gnn.model import Draws, Model, case_reads_edges, case_reads_loops, edge_reader
from app.gnn.neighbours import both_ways
from app.gnn.parameters import Parameters
from app.gnn.pieces import Cut, FeatureStore, PiecedFeatures, cut_rows, most_rows
from app.gnn.positions import draw_signs, largest_of, nodes_of, signed_columns, with_positions, work_words
from app.gnn.programs import Rows
from app.gnn.reach import FORWARD, fewer_edges, narrow_layers, nodes_of_graphs, widest_products
from app.gnn.rehearsal import DenseWidth
from app.gnn.scale import Scale
from app.graphs.members import Members, readout_rows
from app.graphs.nodes.data import SPLITS, NodeData
from app.memory.slow_rows import SlowRows
from app.memory.tiers import TierBudget
from app.numerics.elementary import log
from app.partition.migrate import move_nodes
from app.partition.rows import RowPartition
from app.sparse.repartition import repartition
from app.sparse.rowblock import RowBlock

Array = Any
MOST_PLACES = 1 << 24  # nodes of a graph: beyond, two numbers may be one float32
REPLAYED = 1 << 22  # stored entries: with more an epoch takes longer than its launches


class Classifier:
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

    def _readout_of(self, block: RowBlock, members: Members | None) -> RowBlock | None:
        """The rows of the matrix R of a readout; None where scores are of nodes. Ranks: all call."""
        if members is None:
            return None
        lo = min(block.lo, block.n)
        R = readout_rows(members, block.name, lo, lo + block.n_real)
        return RowBlock(self.group, R, block.rows, block.exchange, block.width)

    def _places(self, block: RowBlock) -> Array:
        """[n_own] float32 on the device, how many nodes of its graph come before each; -1 in other rows.

        Raises CaseError where such numbers are no 32-bit ones
        """
        starts, rows = self.members.starts, np.arange(block.lo, block.lo + block.n_real)
        if np.diff(starts).max(initial=0) > MOST_PLACES:
            raise CaseError(f"gnn.readout: max is of graphs of at most {MOST_PLACES:,} nodes")
        places, nodes = np.full(block.n_own, -1, np.float32), self._nodes(block)
        graphs = self.members.graph_of(block.lo, block.lo + block.n_real)
        places[: block.n_real] = np.where(nodes[: block.n_real], rows - starts[graphs], -1)
        return self.device.put(places)

    def _read_columns(self, block: RowBlock, known: Scale | Categories | None) -> Scale | Categories | None:
        """What columns of features are scaled by, or the categories in them; known: those of weights.

        Ranks   all call
        """
        group, data, kind = self.group, self.data, self.case.feature_rows
        chosen = self._learned_from(block) if kind in BY_COLUMN else None
        if kind == "one_hot":
            return input_categories(group, data, self._numbers(block), chosen, known)
        return input_scale(group, data, kind, chosen, known)

    def _with_positions(
        self, block: RowBlock, budget: TierBudget | None, known: Scale | None
    ) -> Scale | None:
        """The scale of positions, which the data then have; known: that of weights. Ranks: all call. Raises
        CaseError."""
        if not self.case.positions:
            return None
        if budget and budget.limit:
            raise CaseError(
                "gnn.positions: are made in memory, which memory.fast_mb limits; memory.fast_mb = 0, or no "
                "positions, would be right"
            )
        chosen = None if known else self._learned_from(block)
        made = with_positions(self.group, block, self.data, self.case, self.members, chosen, known)
        self.data, scale = made
        return scale

    def said_positions(self) -> str:
        """What positions there are, for the log. Ranks: all call."""
        entries = self.group.sum_integers(np.array([self.block.adjacency.degrees_own().sum()], np.int64))
        return work_words(self.case, int(entries[0]), largest_of(self.block, self.members))

    def _learned_from(self, block: RowBlock) -> np.ndarray:
        """[n_own] bool, the nodes whose features make the scale: of the training set, or without one all.
        Categories are those of all nodes of a graph, since training hears its other nodes too, and those of
        the training graphs of a set.

        Ranks   all call
        """
        data, all_heard = self.data, self.case.feature_rows == "one_hot" and self._readout is None
        chosen = np.arange(block.n_own) < block.n_real
        chosen = data.train if data.counts["train"] and not all_heard else chosen
        return chosen if self._readout is None else nodes_of_graphs(self.group, self._readout, chosen)

    def _heard_from(self, block: RowBlock) -> np.ndarray:
        """[n_own] bool, the rows that batch normalisation is over: all nodes of a graph, since training hears
        them; of a set of graphs those of its training graphs, or without any of all. Ranks: all call."""
        if self._readout is None or not self.data.counts["train"]:
            return self._nodes(block)
        return nodes_of_graphs(self.group, self._readout, np.ascontiguousarray(self.data.train))

    def _mean_log_degree(self, block: RowBlock) -> float:
        """The mean of log(1 + neighbours) over the nodes that `_heard_from` has, at least that of one
        neighbour in as many nodes; by counts of degrees, which are exact. Ranks: all call."""
        degrees = block.adjacency.degrees_own()[: block.n_real].astype(np.int64)
        heard = self._heard_from(block)[: block.n_real]
        most = self.group.max_integer(int(degrees.max(initial=0)))
        counts = self.group.sum_integers(np.bincount(degrees[heard], minlength=most + 1))
        logs = log(np, np.arange(1, most + 2, dtype=np.float32)).astype(np.float64)
        total = max(int(counts.sum()), 1)
        return max(math.fsum(counts * logs), math.log(2)) / total

    def _edge_columns(self, block: RowBlock) -> EdgeColumns | None:
        """What columns of edge features are scaled by, or the categories in them: of all edges of a graph, of
        those of the training graphs of a set. None where no layer reads any. Ranks: all call."""
        if not self._reads_edges():
            return None
        if self.data.edges is None:
            raise CaseError(no_edge_features(block.name, edge_reader(self.case)))
        chosen = np.ones(block.n_own, dtype=bool)
        if self._readout is not None and self.data.counts["train"]:
            chosen = nodes_of_graphs(self.group, self._readout, np.ascontiguousarray(self.data.train))
        return EdgeColumns.of(self.group, self.case.edge_feature_rows, self.data.edges, chosen)

    def _reads_edges(self) -> bool:
        """Whether features of edges are read."""
        return case_reads_edges(self.case)

    def _nodes(self, block: RowBlock) -> np.ndarray:
        """[n_own] bool, which rows are nodes, neither padding nor graphs."""
        return nodes_of(block, self.members)

    def _numbers(self, block: RowBlock) -> np.ndarray:
        """[n_own] int64, the numbers of the nodes in the files, from 0; of other rows any."""
        if self.data.numbers is not None:
            return self.data.numbers
        rows = block.lo + np.arange(block.n_own)
        if self.members is None:
            return rows
        return rows - self.members.graph_of(block.lo, block.lo + block.n_own)  # a row for each earlier graph

    def _whole_features(self) -> Features:
        """Features on the device. Ranks: all call."""
        X_own = input_rows(self.data, self.block, self.case.feature_rows, self.inputs)
        return make_features(self.group, X_own, self.block.own_counts)

    def _limit_features(self, budget: TierBudget) -> FeatureStore | None:
        """Dense features: on the device, or in the slow tier where some rank's rows and features together
        would pass the limit; then their pieces are tensors of the plan. Ranks: all call."""
        group, engine = self.group, self.engine
        if group.max_integer(engine.n_own * self._bytes_of_row()) <= budget.limit:
            self.features = self._whole_features()
            return None
        cut = self.cut()
        self.features = X = PiecedFeatures(self.device, cut, self.data.width)
        engine.pieces = max(cut.most, 1)  # true of a rank without rows too
        self._record()
        with raise_together(group, "making room in the slow tier"):
            self.data = in_file(self.data, self.device, budget)
            scaling = Scaling(self.case.feature_rows, self.inputs, self.block.n_real, self.data.beside)
            rows = slow_input(self.data, scaling, cut.rows, self.device, budget)
            if self.case.feature_rows == "as_given":
                self.data = replace(self.data, features=rows.array)
            kept = {kind: SlowRows.empty(rows.array.shape, self.device, budget) for kind in X.products}
        store = FeatureStore()
        store.hold(X, rows)
        for kind, product in X.products.items():
            engine.product_into(rows, kind, kept[kind], cut.rows, budget.limit)
            store.hold(product, kept[kind])
        return store

    def cut(self) -> Cut:
        """The pieces of this rank's rows as which features lie in the slow tier."""
        block = self.block
        return cut_rows(block.block_starts, int(block.rows.cuts[self.group.rank]), self.engine.blocks)

    def _bytes_of_row(self) -> int:
        dropped = bool(self.case.input_dropout and self.case.epochs)
        return self.engine.bytes_of_row(self.features, dropped)

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

    def fits(self, rows: RowPartition) -> bool:
        """Whether every rank could run under its limit of memory with the rows of another partition.

        Ranks   all call; result identical on all
        """
        limit = self._budget.limit if self._budget else 0
        n_own, engine = int(np.diff(rows.offsets).max()), self.engine
        dense = isinstance(self.features, DenseFeatures)
        fits = engine.fits(n_own, limit, most_rows(n_own, rows.starts))
        if limit and dense and not engine.pieces and n_own * self._bytes_of_row() > limit:
            fits = False  # the features would have to leave the device
        return self.group.max_integer(int(not fits)) == 0

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

    def _record(self) -> None:
        """Run an epoch and the other programs without numbers."""
        with self.engine.dry():
            if self.case.epochs:
                self._epoch(Draws(self.case, self.seed, 0))
            self.scores_own()
            self.embed_own()

    def _plan(self, budget: TierBudget | None, store: FeatureStore | None) -> None:
        """Make the buffers that the recorded programs need, or the plan of what moves. Ranks: all call."""
        with raise_together(self.group, "planning the memory of an epoch"):
            engine = self.engine
            least = engine.least(engine.n_own, budget.limit, engine.pieces) if budget else 0
        least = self.group.max_integer(least)
        with raise_together(self.group, "planning the memory of an epoch"):
            if budget and self.group.size > 1 and least > budget.limit:
                raise CaseError(
                    f"memory limit of {budget.limit:,} bytes: an operation alone touches {least:,} bytes of "
                    f"a rank, which is the least limit that works (memory.fast_mb={least / 1e6})"
                )
            self.engine.allocate(budget, store)
        self._narrow()
        self._tile(budget)

    def _tile(self, budget: TierBudget | None) -> None:
        """Get the matrices of the epochs' products ready for many of them, where memory is not scarce."""
        self.tiled_bytes, engine = 0, self.engine
        if not self.case.epochs or (budget and budget.limit):
            return
        own = {layer: each.matrix for layer, each in engine.narrow.items() if each.matrix is not None}
        with raise_together(self.group, "laying out the matrix by tiles"):
            widest = widest_products(engine.recorded["epoch"], set(own), self.block.directed)
            for matrix, width in widest.items():
                side = engine.neighbours_of if matrix == FORWARD else engine.adjoint
                self.tiled_bytes += side.tile(width, own.get(matrix))

    def _narrow(self) -> None:
        """Leave out of the epochs' products what the loss does not depend on. Ranks: all call."""
        engine, weighted = self.engine, self.engine.adjoint.weighted
        alone = [block.row_by_row for block in self.model.blocks]
        if engine.products:
            train = np.ascontiguousarray(self.data.train)
            if self._readout is not None:  # the last layer, which sums over the nodes of training graphs
                train, alone = nodes_of_graphs(self.group, self._readout, train), alone[:-1]
            engine.narrow = narrow_layers(self.group, self.block, train, alone, engine.products, weighted)
        layers = enumerate(self.model.blocks)
        reading = {i for i, each in layers if getattr(each.convolution, "reads_edges", False)}
        for layer, owner in fewer_edges(self.shares(), reading).items():
            narrow, edges = engine.narrow[layer], engine.narrow[owner].edges
            if edges is None:
                rows_own = self.device.get(narrow.rows) > 0
                edges = engine.edges.within(self.group, self.block, rows_own)
            engine.narrow[layer] = replace(narrow, edges=edges)

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

    # ---- evaluation -------------------------------------------------------------------------------------

    def scores_own(self) -> np.ndarray:
        """[n_own, classes] host copy of the class scores of own rows, without dropout. Ranks: all call."""
        return self._with_scores(lambda Z: np.array(self.device.get(Z)))

    def real_rows(self, rows: np.ndarray) -> np.ndarray:
        """Rows of scores [n_own, ...] without those of padding."""
        return rows[: self.block.n_real]

    def _with_scores(self, read: Callable[[Array], Any]) -> Any:
        """What is read from the class scores of own rows while they stand in a buffer. Ranks: all call."""
        engine = self.engine
        with engine.program("evaluation"):
            Z = self.model.forward(engine, self.features, None)
            found = engine.apply("loss", "scores", [Z], [], lambda: read(Z.array))
            engine.free(Z)
        return found

    def embed_own(self) -> np.ndarray:
        """[n_own, width] host copy of what the last layer reads, of whole graphs of what it is a readout of,
        without dropout. Ranks: all call."""
        engine = self.engine
        with engine.program("embedding"):
            H = self.model.embed(engine, self.features)
            found = engine.apply("loss", "embedding", [H], [], lambda: np.array(self.device.get(H.array)))
            engine.free(H)
        return found

    def predict_own(self) -> np.ndarray:
        """[n_own] classes, or [n_own, columns], as the goal has them, of own rows. Ranks: all call."""
        return self.goal.predicted(self.scores_own())

    def probabilities_own(self) -> np.ndarray:
        """[n_own, classes] float32, how likely each class is for own rows. Ranks: all call."""
        return self.goal.probabilities(self.scores_own())

    def evaluate(self, also: str = "") -> SplitScores:
        """Scores on training, validation and test nodes.

        also    what is asked for of the validation nodes besides: "loss", "auc" or "ap" (also gives both)
        Ranks   all call
        """
        return self._evaluate(("val",) if also in ("auc", "ap") else (), also == "loss")

    def evaluate_ranking(self) -> SplitScores:
        """`evaluate`, and areas under ROC curves of all splits. Ranks: all call."""
        return self._evaluate(self._ranked(), False)

    def _ranked(self) -> tuple[str, ...]:
        """The splits whose scores have areas: all, where the goal has any."""
        kind = self.goal.kind
        return tuple(SPLITS) if kind == "labels" or (kind == "classes" and self.classes == 2) else ()

    def evaluate_rows(self, Z_own: np.ndarray) -> SplitScores:
        """`evaluate_ranking` of other scores than the network's; none without labels.

        Z_own   [n_own, classes] float32 on the host, as the goal predicts by
        Ranks   all call
        """
        data, goal, engine = self.about, self.goal, self.summed
        if not data.classes:
            return {}
        if goal.kind == "values":
            measured = goal.measure(engine, data, self._targets[0], self.device.put(Z_own))
        else:
            measured = count_rows(data, goal.predicted(Z_own), self.classes)
        scores, ranked = goal.scores(engine, data, measured), self._ranked()
        if not ranked:
            return scores
        rows = self._rows_of(ranked)
        return with_areas(self.group, goal, data, scores, rows, Z_own[rows], ranked)

    def _rows_of(self, splits: tuple[str, ...]) -> np.ndarray:
        """[k] numbers of the own rows in some splits."""
        return np.flatnonzero(np.any([getattr(self.about, name) for name in splits], axis=0))

    def _evaluate(self, ranked: tuple[str, ...], loss: bool) -> SplitScores:
        """Scores from one forward pass, with areas of the ranked splits, or the validation loss."""
        data, goal, engine = self.about, self.goal, self.summed
        if not data.classes:
            return {}
        loss = loss and goal.kind != "values"  # which have it among their scores
        targets, weight = self._targets[0], self._weights_of("val") if loss else None
        rows = self._rows_of(ranked) if ranked else None

        def read(Z: Array) -> tuple[Any, Any, Any]:
            measured = goal.measure(engine, data, targets, Z)
            picked = pick_rows(self.device, Z, rows) if ranked else None
            return measured, picked, self._loss(Z, targets, weight) if loss else None

        measured, picked, losses = self._with_scores(read)
        scores = goal.scores(engine, data, measured)
        if loss:
            scores["val"] = replace(scores["val"], loss=self._sum(losses))
        return with_areas(self.group, goal, data, scores, rows, picked, ranked) if ranked else scores


def _scale_of_values(group: Group, data: NodeData) -> Scale | None:
    """That of numbers to be predicted over the training nodes; None of classes. Ranks: all call."""
    if not data.values:
        return None
    return Scale.of(group, data.labels, data.among(data.train if data.counts["train"] else data.labelled))
