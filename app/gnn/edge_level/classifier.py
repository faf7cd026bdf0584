"""A network that says what the edges of a graph are: layers give each node a row, a head reads both ends'."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.case.gnn import GnnCase
from app.comm.group import Group
from app.errors import CaseError
from app.gnn.classifier import Classifier
from app.gnn.edge_level.entries import Entries
from app.gnn.engine import Engine
from app.gnn.known import NOTHING, Known
from app.gnn.model import case_reads_edges
from app.gnn.programs import Rows
from app.graphs.nodes.data import NodeData
from app.graphs.nodes.of_edges import EdgeLabels, some_rows
from app.memory.tiers import TierBudget
from app.partition.migrate import move_edge_labels
from app.partition.rows import RowPartition
from app.sparse.rowblock import RowBlock

Array = Any


@dataclass(frozen=True)
class EdgeBlocks:
    """What goals ask of an engine, where a block of rows has edges, those (u, v), u < v, of its rows u.

    As attributes of Engine have it; starts: [1, blocks+1] int64 host, where the edges of each block begin
    """

    device: Any
    group: Group
    starts: np.ndarray
    spans: list[tuple[int, int, int]]
    cuts: Any
    blocks: int

    @classmethod
    def of(cls, engine: Engine, starts: np.ndarray) -> "EdgeBlocks":
        """Those of the blocks of an engine."""
        return cls(engine.device, engine.group, starts[None], engine.spans, engine.cuts, engine.blocks)


class EdgeClassifier(Classifier):
    """Layers on the nodes of a graph, and what they say of its edges (see EdgeHead).

    All edges are heard by the layers, those whose labels are held back as well: labels are no features, and
    what is held back of an edge is its label alone.

    labels    of the stored entries of own rows     about   of edges, each once: rows of scores are those
    Shapes    Z [n_own, 3h], rows of nodes; scores [m_own, C] of own edges (u, v), u < v, of own rows u
    Ranks     all construct; an exchange of Z in each pass beside those of the layers
    """

    def __init__(
        self, group: Group, case: GnnCase, block: RowBlock, data: NodeData, labels: EdgeLabels, seed: int,
        known: Known = NOTHING, budget: TierBudget | None = None,
    ) -> None:  # fmt: skip
        """See Classifier; data: of nodes, features alone (`nodes_at` makes it)."""
        self.labels, self._about = labels, labels.once()
        super().__init__(group, case, block, data, seed, known, budget)

    @property
    def about(self) -> NodeData:
        """Labels and sets of own edges."""
        return self._about

    @property
    def summed(self) -> EdgeBlocks:
        """The own edges by row blocks."""
        return EdgeBlocks.of(self.engine, self.own_edges.starts)

    def move(self, new: RowPartition) -> None:
        """See Classifier.move. Ranks: all call."""
        self.labels = move_edge_labels(self.group, self.labels, self.block.rows, new)
        self._about = self.labels.once()
        super().move(new)

    def _learned_from(self, block: RowBlock) -> np.ndarray:
        """[n_own] bool, the nodes whose features make the scale: all of them, which training hears."""
        return np.arange(block.n_own) < block.n_real

    def _reads_edges(self) -> bool:
        """Where there are features of edges the head reads them, whatever layers do."""
        return self.data.edges is not None or case_reads_edges(self.case)

    def _settle(self, block: RowBlock, budget: TierBudget | None) -> None:
        """See Classifier. Ranks: all call."""
        if block.plan.mode == "staged":
            right = '"auto", "halo" or "gather" would be right for gnn.level = "edge"'
            raise CaseError(f'parallel.exchange: found "staged"; {right}')
        self._made: dict[str, Any] = {}
        super()._settle(block, budget)

    # ---- entries ----------------------------------------------------------------------------------------

    @property
    def own_edges(self) -> Entries:
        """The entries of own edges, once each."""
        if "all" not in self._made:
            self._made["all"] = self._entries(self.labels.first, False)
        return self._made["all"]

    @property
    def learned(self) -> Entries:
        """The entries of the edges that are learned, from both ends."""
        if "learned" not in self._made:
            self._made["learned"] = self._entries(np.ascontiguousarray(self.labels.about.train), True)
        return self._made["learned"]

    def _entries(self, chosen: np.ndarray, adds: bool) -> Entries:
        E = self.engine.edges and self.engine.edges.heard
        return Entries.of(self.device, self.block, chosen, self.labels.first, E, adds)

    def _entry_targets(self) -> tuple[Array, Array]:
        """As `_put_targets`, of the entries that are learned. Ranks: all call the first time."""
        if "targets" not in self._made:
            group, goal, some = self.group, self.goal, some_rows(self.labels.about, self.labels.about.train)
            if self.case.class_weights == "balanced":
                share = goal.class_shares(group, self.about, "train")[some.labels]
            else:
                share = goal.share(group, self.about, "train", False)
            weight = np.broadcast_to(np.asarray(share, dtype=np.float32), (len(some.train),))
            parts = goal.encoded(some), np.ascontiguousarray(weight)
            self._made["targets"] = tuple(self.device.put(each) for each in parts)
        return self._made["targets"]

    # ---- one epoch --------------------------------------------------------------------------------------

    def _repeats(self) -> bool:
        """False: an epoch has sums by pieces of the edges."""
        return False

    def _learn(self, Z: Rows) -> tuple[Array, Rows]:
        """Addends of the loss, and new rows dZ; the last layer frees Z."""
        D = self.engine.take("dZ", Z.width)
        work = lambda: self._learn_edges(Z.array, D.array)  # noqa: E731
        return self.engine.apply("loss", "edges", [Z], [D], work, (Z.width,)), D

    def _learn_edges(self, Z: Array, D: Array) -> Array:
        """Addends of the loss; D becomes the gradient by Z, the head's gradients go to the engine.

        Ranks   all call (one exchange)
        """
        engine, device, head = self.engine, self.device, self.model.head
        targets, weight = self._entry_targets()

        def losses(S: Array, part: slice) -> Array:
            return self.goal.losses(device, S, targets[part], weight[part])

        lost, sums = self._with_ends(
            Z, lambda X: head.learn(device, self.params, Z, X, self.learned, D, losses)
        )
        engine.give_addends(head.names, sums)
        return device.merge_roots(lost, engine.spans)

    def _with_ends(self, Z: Array, work: Callable[[Array], Any]) -> Any:
        """What is made with the rows of Z that columns number. Ranks: all call (one exchange)."""
        found: list[Any] = []
        self.engine.neighbours_of.columns(Z, (Z.shape[1],), lambda X, _: found.append(work(X)))
        return found[0]

    # ---- evaluation -------------------------------------------------------------------------------------

    def real_rows(self, rows: np.ndarray) -> np.ndarray:
        """Rows of scores [m_own, ...]: no edge is padding."""
        return rows

    def _with_scores(self, read: Callable[[Array], Any]) -> Any:
        """What is read from the scores [m_own, C] of own edges. Ranks: all call (one exchange more)."""
        engine, head = self.engine, self.model.head

        def work(Z: Array) -> Any:
            scores = self._with_ends(Z, lambda X: head.scores(self.device, self.params, Z, X, self.own_edges))
            return read(scores)

        with engine.program("evaluation"):
            Z = self.model.forward(engine, self.features, None)
            found = engine.apply("loss", "edge scores", [Z], [], lambda: work(Z.array), (Z.width,))
            engine.free(Z)
        return found


def nodes_at(data: NodeData, labels: EdgeLabels, block: RowBlock) -> NodeData:
    """Features of nodes, without labels; those that a training edge joins are what the loss depends on. The
    counts are of edges."""
    none = np.zeros(block.n_own, dtype=bool)
    return NodeData(
        data.features, None, none, labels.ends("train"), none, none, 0, False, np.empty(0, dtype=np.int64),
        data.width, data.binary, labels.about.counts, numbers=data.numbers, edges=data.edges,
        columns=data.columns,
    )  # fmt: skip
