"""Given: what a classifier makes of its data before it learns: columns, their scales, who is heard."""

import math
from typing import Any

import numpy as np

from app.errors import CaseError
from app.gnn.categories import Categories
from app.gnn.edges import EdgeColumns, no_edge_features
from app.gnn.features import Features, make_features
from app.gnn.inputs import BY_COLUMN, input_categories, input_rows, input_scale
from app.gnn.model import case_reads_edges, edge_reader
from app.gnn.positions import largest_of, nodes_of, with_positions, work_words
from app.gnn.reach import nodes_of_graphs
from app.gnn.scale import Scale
from app.graphs.members import Members, readout_rows
from app.memory.tiers import TierBudget
from app.numerics.elementary import log
from app.sparse.rowblock import RowBlock

Array = Any
MOST_PLACES = 1 << 24  # nodes of a graph: beyond, two numbers may be one float32


class Given:
    """What Classifier reads; its attributes are the classifier's."""

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
