"""What the edges of a graph are (gnn.level = "edge"): their examples and predictions."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from app.case.gnn import GnnCase
from app.comm.group import Group
from app.comm.guard import raise_together
from app.errors import CaseError
from app.gnn.edge_level.classifier import EdgeClassifier, nodes_at
from app.gnn.edge_level.plain import plain_edge_scores
from app.gnn.known import NOTHING
from app.gnn.loss import refuse_infinite_rows
from app.gnn.metrics import SplitScores
from app.gnn.plain import ALIKE
from app.gnn.saved import SavedModel
from app.graphs.ids import plain_ids
from app.graphs.nodes.data import NodeData
from app.graphs.nodes.of_edges import EdgeLabels
from app.memory.tiers import TierBudget
from app.partition.edge_labels import edges_in_test, load_edge_labels
from app.partition.ids import ids_everywhere
from app.partition.loaded import Loaded
from app.partition.whole_data import whole_edge_labels
from app.sparse.rowblock import RowBlock
from app.tasks.context import Context
from app.tasks.levels.course import Learned
from app.tasks.levels.dealt import draw_edge_folds, lacking, split_by_fold
from app.tasks.levels.examples import Examples
from app.tasks.levels.explained import PairNames
from app.tasks.levels.nodes import (
    blank_of,
    labels_text,
    named_scores,
    write_members,
    write_probabilities,
    write_sets,
)
from app.tasks.levels.reading import load
from app.text import printable

LINES = 1 << 16  # of a file that are made at a time


@dataclass(frozen=True)
class EdgeExamples(Examples):
    """Labelled edges of a graph; data: of its nodes, features alone.

    names   of nodes, in the order of a caller; None: the ids of the file
    """

    labels: EdgeLabels
    names: tuple[Any, ...] | None = None

    splits_key: ClassVar[str] = "graph.edge_splits"
    counted: ClassVar[str] = "edges"

    @property
    def beside(self) -> tuple[str, ...]:
        """See Examples."""
        return ("test_ends", "test_alike")

    @property
    def what(self) -> str:
        """See Examples."""
        return "edge"

    @property
    def about(self) -> NodeData:
        """See Examples; a row for each stored entry."""
        return self.labels.about

    def check_data(self, gnn: GnnCase) -> None:
        """See Examples."""
        name = self.loaded.graph.name
        if not self.loaded.graph.edges:
            right = "a graph with edges would be right"
            raise CaseError(f"{name}: has no edges, which are to be told apart; {right}")
        if self.data.edges is None and gnn.edge_feature_rows != GnnCase().edge_feature_rows:
            raise CaseError(f"gnn.edge_feature_rows: edges of {name} have no features; leave it out")
        super().check_data(gnn)

    def check_weights_fit(self, path: str, saved: SavedModel) -> None:
        """See Examples; the head of weights reads features of edges, or none."""
        super().check_weights_fit(path, saved)
        loaded = self.loaded
        if saved.edges is not None and self.data.edges is None:
            found = f"for edges with {saved.edges.given} features; those of {loaded.graph.name} have none"
            key = "edge_features=" if loaded.source == "memory" else "graph.edge_features"
            raise CaseError(f"{printable(path)}: {found}; {key} would be right")
        if saved.edges is None and self.data.edges is not None:
            raise CaseError(f"{printable(path)}: for edges without features; leave these out")

    def known_to(self, path: str, saved: SavedModel) -> Self:
        """See Examples."""
        return replace(self, labels=replace(self.labels, about=saved.relabel(path, self.about)))

    def all_tested(self, group: Group) -> Self:
        """See Examples."""
        return replace(self, labels=edges_in_test(group, self.labels))

    def whole(self, group: Group) -> Self:
        """See Examples."""
        labels = whole_edge_labels(group, self.labels, self.loaded.rows)
        return replace(super().whole(group), labels=labels)

    def rows(self, context: Context, gnn: GnnCase) -> RowBlock:
        """See Examples; without stages."""
        return context.rows(self.loaded, 0)

    def classifier(
        self, context: Context, gnn: GnnCase, block: RowBlock, seed: int, saved: SavedModel | None = None,
        budget: TierBudget | None = None,
    ) -> EdgeClassifier:  # fmt: skip
        """See Examples."""
        known, budget = saved.known if saved else NOTHING, budget or TierBudget.of(context.case.memory)
        nodes = nodes_at(self.data, self.labels, block)
        return EdgeClassifier(context.group, gnn, block, nodes, self.labels, seed, known, budget)

    def called(self, context: Context) -> PairNames:
        """See Examples."""
        return PairNames(context, self.loaded, None if self.names is None else list(self.names))

    def plain(self, classifier: EdgeClassifier) -> dict[str, SplitScores]:
        """See Examples."""
        return plain_edge_scores(classifier)

    def rules(self, classifier: EdgeClassifier) -> dict[str, str]:
        """See Examples."""
        return {"test_ends": "ends", "test_alike": ALIKE[classifier.goal.kind]}

    def lacking_folds(self, group: Group, folds: int) -> Iterator[str]:
        """See Examples."""
        return lacking(group, self.labels.once(), folds)

    def folds(self, context: Context, seed: int, folds: int) -> np.ndarray:
        """[nnz] the fold of each entry of a labelled edge."""
        return draw_edge_folds(context.group, self.labels, self.loaded, seed, folds)

    def of_fold(self, context: Context, drawn: np.ndarray, fold: int, held_back: int) -> Self:
        """See Examples."""
        labels = self.labels
        about = split_by_fold(context.group, labels.about, drawn, fold, held_back, labels.first)
        return replace(self, labels=replace(labels, about=about))

    def answer(self, context: Context, done: Learned) -> np.ndarray:
        """What `gather_edge_predictions` says."""
        return gather_edge_predictions(done)

    def digested(self, answer: np.ndarray) -> dict[str, np.ndarray]:
        """See Examples."""
        return {"predictions": answer}

    def sizes(self, context: Context) -> dict[str, Any]:
        """See Examples."""
        graph = self.loaded.graph
        return {"name": graph.name, "nodes": graph.n, "edges": graph.edges}

    def named(self, scores: SplitScores) -> dict[str, float | None]:
        """See Examples."""
        return named_scores(scores)

    def write_answer(self, context: Context, done: Learned, answer: np.ndarray) -> None:
        """See Examples."""
        folder, group, asked, graph = context.folder, context.group, context.case.output, self.loaded.graph
        about = done.classifier.about
        ids, edges = ids_everywhere(group, graph, self.loaded.rows), gather_edges(group, self.loaded)
        with raise_together(group, "writing the predictions"):
            if group.rank == 0:
                with folder.placed(f"predictions/{graph.name}.txt") as file:
                    for lo in range(0, len(edges), LINES):
                        part = slice(lo, lo + LINES)
                        file.write(_lines(ids, edges[part], answer[part], about).encode())
        if asked.embeddings:
            rows = gather_node_rows(done)
            with raise_together(group, "writing the embeddings"):
                folder.write_arrays(f"embeddings/{graph.name}.npz", ids=ids, embeddings=rows)
        if asked.probabilities:
            likely = gather_edge_probabilities(done)
            write_probabilities(context, graph.name, ids[edges], about, likely)
        gather = partial(rows_of_edges, group)
        if done.conformal is not None:
            blank = blank_of(ids, about)
            write_sets(context, done, graph.name, _called_by_ends(ids, edges, blank), blank, gather)
        write_members(context, done, graph.name, ids[edges], gather)


def read_edges(context: Context) -> EdgeExamples:
    """The edges of a case's graph. Ranks: all call."""
    loaded, data = load(context)
    with context.log.phase("read"):
        labels = load_edge_labels(context.group, loaded, context.case)
    for warning in labels.about.warnings:
        context.log.info("warning: %s", warning)
    return EdgeExamples(loaded, data, labels)


def gather_edge_predictions(done: Learned) -> np.ndarray:
    """[m] int32 classes, [m, classes] uint8 or, of values, [m, columns] float32, as `gather_edges` has edges.

    Ranks   all call. Raises Diverged where scores are not finite
    """
    classifier = done.classifier
    scores = done.rows_own()
    refuse_infinite_rows(classifier.group, scores, "edges")
    return rows_of_edges(classifier.group, classifier.goal.predicted(scores))


def gather_edge_probabilities(done: Learned) -> np.ndarray:
    """[m, classes] float32, how likely each class is for each edge. Ranks: all call."""
    return rows_of_edges(done.classifier.group, done.probabilities_own())


def gather_edges(group: Group, loaded: Loaded) -> np.ndarray:
    """[m, 2] int64 the edges u < v by numbers of rows, ascending. Ranks: all call."""
    graph = loaded.graph
    u, v = graph.row_of(), graph.indices.astype(np.int64)
    own = np.ascontiguousarray(np.stack([u, v], axis=1)[u < v])
    return rows_of_edges(group, own)


def rows_of_edges(group: Group, own: np.ndarray) -> np.ndarray:
    """Rows of all edges from those of own ones. Ranks: all call."""
    sizes = group.gather_integers(np.array([len(own)]))[:, 0].tolist()
    return group.gather_host(np.ascontiguousarray(own), sizes)


def gather_node_rows(done: Learned) -> np.ndarray:
    """[n, columns] float32, what the last layer reads of each node. Ranks: all call."""
    block = done.classifier.block
    own = np.ascontiguousarray(done.classifier.embed_own()[: block.n_real])
    return done.classifier.group.gather_host(own, block.rows.row_counts())


def _lines(ids: np.ndarray, edges: np.ndarray, predicted: np.ndarray, about: NodeData) -> str:
    """Lines `id id class`, as `labels_text` has what follows the ids: `graph.edge_data_by = "ends"` reads
    those of one class, and of values."""
    blank = blank_of(ids, about)
    return labels_text(_called_by_ends(ids, edges, blank), predicted, about, blank)


def _called_by_ends(ids: np.ndarray, edges: np.ndarray, blank: str) -> list[str]:
    """Edges [m, 2] by the ids of both ends."""
    return [f"{u}{blank}{v}" for u, v in zip(*(plain_ids(ids[column]) for column in edges.T))]
