"""Planned: the buffers of a classifier's passes, where its features lie, what its products leave out."""

from dataclasses import replace
from typing import Any

import numpy as np

from app.comm.guard import raise_together
from app.errors import CaseError
from app.gnn.features import DenseFeatures
from app.gnn.inputs import Scaling, in_file, slow_input
from app.gnn.model import Draws
from app.gnn.pieces import Cut, FeatureStore, PiecedFeatures, cut_rows, most_rows
from app.gnn.reach import FORWARD, fewer_edges, narrow_layers, nodes_of_graphs, widest_products
from app.memory.slow_rows import SlowRows
from app.memory.tiers import TierBudget
from app.partition.rows import RowPartition

Array = Any


class Planned:
    """What Classifier plans before its first epoch; its attributes are the classifier's."""

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
