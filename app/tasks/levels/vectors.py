"""Vectors of nodes that are learned without labels (gnn.level = "embed"): what they are, and how good."""

import math
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from msgspec import structs

from app.case.config import Case
from app.case.embed import EmbedCase, reads_clusters
from app.case.gnn import GnnCase
from app.comm.guard import raise_together
from app.errors import CaseError
from app.gnn.archive import replaced
from app.gnn.classifier import Classifier
from app.gnn.embed.clusters import cluster, to_length_one
from app.gnn.embed.embedder import Embedder, without_labels
from app.gnn.embed.objectives import Agreement
from app.gnn.embed.probe import Probing
from app.gnn.embed.spectral import spectral_rows
from app.gnn.embed.told import adjusted_rand, modularity, mutual_information, table_of
from app.gnn.inputs import input_rows
from app.gnn.known import NOTHING
from app.gnn.loss import refuse_infinite_rows
from app.gnn.metrics import SplitScores
from app.gnn.saved import SavedModel
from app.gnn.scale import Scale
from app.graphs.ids import blank_between, plain_ids
from app.graphs.nodes.data import NodeData
from app.log import ToGo
from app.memory.tiers import TierBudget
from app.partition.ids import ids_everywhere
from app.partition.migrate import move_nodes
from app.sparse.rowblock import RowBlock
from app.tasks.context import Context
from app.tasks.levels import said
from app.tasks.levels.course import Learned
from app.tasks.levels.examples import Examples, check_weights
from app.tasks.levels.nodes import named_scores, predictions_text, write_probabilities
from app.tasks.levels.reading import load

MEASURES = {
    "nmi": "normalised mutual information",
    "ari": "adjusted Rand index",
    "modularity": "modularity",
}  # of clusters, by the names of result.json


@dataclass(frozen=True, eq=False)
class VectorScores:
    """What there is to tell of a network's vectors.

    agreement   of two more views; nan where weights are applied
    vectors     [n_own, d] float32 of own nodes, padding rows left out
    clusters    [n_own] int32 of own nodes; None: nobody asked
    measures    of the clusters, by the names of MEASURES; nmi and ari where there are classes
    probe       the linear classifier on the vectors, trained; None where there is nothing to train it on
    probed      how good it is, by split
    """

    agreement: Agreement
    vectors: np.ndarray
    clusters: np.ndarray | None
    measures: dict[str, float]
    probe: Classifier | None
    probed: SplitScores


@dataclass(frozen=True, eq=False)
class Found:
    """What is written, of all nodes by rows of the graph.

    vectors    [n, d] float32     clusters [n] int32, or None
    predicted  what the probe says of each node, as `Goal.predicted` has it; None: there is no probe
    """

    vectors: np.ndarray
    clusters: np.ndarray | None
    predicted: np.ndarray | None


@dataclass(frozen=True)
class VectorExamples(Examples):
    """The nodes of a graph; data: their features, and labels, by which vectors are judged alone.

    embed   [embed] of the case     neighbours  as NodeExamples has them
    """

    embed: EmbedCase = field(default_factory=EmbedCase)
    neighbours: str = "both"

    beside: ClassVar[tuple[str, ...]] = ()
    what: ClassVar[str] = "node"

    @property
    def counts(self) -> dict[str, int]:
        """See Examples; all nodes are learned from."""
        return {"train": self.loaded.graph.n, "val": 0, "test": 0}

    @property
    def heard(self) -> str:
        """See Examples."""
        return "both" if self.loaded.graph.arcs is None else self.neighbours

    def check(self, gnn: GnnCase, embeddings: bool) -> None:
        """See Examples; labels need not be there."""
        self.check_data(gnn)

    def check_data(self, gnn: GnnCase) -> None:
        """See Examples."""
        check_weights(gnn, self.loaded)
        if self.loaded.graph.n < 2:
            right = "two at least would be right"
            raise CaseError(f"{self.loaded.graph.name}: has {self.loaded.graph.n} nodes; {right}")
        if self.embed.clusters > self.loaded.graph.n:
            found = f"found {self.embed.clusters}, more than the nodes of {self.loaded.graph.name}"
            raise CaseError(f"embed.clusters: {found}; at most {self.loaded.graph.n} would be right")

    def known_to(self, path: str, saved: SavedModel) -> Self:
        """See Examples; with the columns of the weights."""
        return replace(self, embed=structs.replace(self.embed, dimension=saved.classes))

    def brought(self, case: Case, gnn: GnnCase) -> str:
        """See Examples; with the columns of the vectors."""
        parts = super().brought(case, gnn), replaced("embed", case.embed, self.embed)
        return ", ".join(part for part in parts if part)

    def rows(self, context: Context, gnn: GnnCase) -> RowBlock:
        """See Examples."""
        width = max(gnn.hidden, self.embed.dimension) if self.data.edges is None else 0
        return context.rows(self.loaded, width)

    def classifier(
        self, context: Context, gnn: GnnCase, block: RowBlock, seed: int, saved: SavedModel | None = None,
        budget: TierBudget | None = None,
    ) -> Embedder:  # fmt: skip
        """See Examples."""
        known, budget = saved.known if saved else NOTHING, budget or TierBudget.of(context.case.memory)
        own = without_labels(self.data, block, self.loaded.graph.n)
        return Embedder(context.group, gnn, self.embed, block, own, seed, known, budget)

    # ---- how good they are ------------------------------------------------------------------------------

    def scores(self, classifier: Embedder) -> VectorScores:
        """See Examples: vectors, clusters, and a probe. Raises Diverged where vectors are not finite."""
        group, block, data = classifier.group, classifier.block, self.held(classifier)
        agreement, Z = classifier.judge(), classifier.scores_own()
        refuse_infinite_rows(group, Z[: block.n_real])
        real = np.arange(block.n_own) < block.n_real
        X = Scale.of(group, Z, real).small(Z)
        X[~real] = 0
        of_own, measures = self._clustered(classifier, X, real, data)
        probing = self._probing(classifier)
        probe = probing.of_rows(X) if probing.possible else None
        probed = probe.evaluate_ranking() if probe else {}
        kept = None if of_own is None else of_own[: block.n_real]
        vectors = np.ascontiguousarray(Z[: block.n_real])
        return VectorScores(agreement, vectors, kept, measures, probe, probed)

    def held(self, classifier: Classifier) -> NodeData:
        """The data with labels, by the rows of a classifier, which may have moved. Ranks: all call."""
        old, new = self.loaded.rows, classifier.block.rows
        if np.array_equal(old.offsets, new.offsets):
            return self.data
        return move_nodes(classifier.group, self.data, old, new)

    def _clustered(
        self, classifier: Embedder, X: np.ndarray, real: np.ndarray, data: NodeData
    ) -> tuple[np.ndarray | None, dict[str, float]]:
        """[n_own] clusters of standardised vectors by their directions, and what is told of them.

        Ranks   all call
        """
        one_class = bool(data.classes) and not data.multilabel
        k = min(reads_clusters(self.embed, data.classes if one_class else 0), self.loaded.graph.n)
        if not k:
            return None, {}
        engine, group = classifier.engine, classifier.group
        directions = to_length_one(classifier.device, X)
        of_own = cluster(engine, directions, real, k, classifier.seed, self.embed.starts).of_own
        measures = {"modularity": modularity(group, classifier.block, of_own, k)}
        if one_class:
            labels = np.where(data.labelled, data.labels, -1)
            table = table_of(group, of_own, labels, (k, data.classes))
            measures |= {"nmi": mutual_information(table), "ari": adjusted_rand(table)}
        return of_own, measures

    def _probing(self, classifier: Embedder) -> Probing:
        """Ranks: all call."""
        held, seed = self.held(classifier), classifier.seed
        return Probing(classifier.group, classifier.block, held, seed, classifier.budget, self.embed)

    def plain(self, classifier: Embedder) -> dict[str, SplitScores]:
        """See Examples: the same linear classifier on the features themselves, on these after two products
        with the normalised adjacency matrix, and, of small graphs, on eigenvectors; none without labels."""
        probing = self._probing(classifier)
        if not probing.possible:
            return {}
        own = classifier.data, classifier.block, classifier.case.feature_rows, classifier.inputs
        X, rules = input_rows(*own), {"features": False, "propagated": True}
        if self.data.features is None:  # of a column for each node nothing follows for others
            del rules["features"]
        found = {rule: probing.of_rows(X, hops).evaluate_ranking() for rule, hops in rules.items()}
        rows = spectral_rows(classifier.group, classifier.block, self.embed.dimension)
        return found if rows is None else found | {"spectral": probing.of_rows(rows).evaluate_ranking()}

    def rules(self, classifier: Classifier) -> dict[str, str]:
        """See Examples; no study asks."""
        return {}

    def folds(self, context: Context, seed: int, folds: int) -> Any:
        """See Examples; no study asks."""
        raise CaseError('gnn.level: "embed" has no folds; "node" would be right')

    def of_fold(self, context: Context, drawn: Any, fold: int, held_back: int) -> Self:
        """See Examples; no study asks."""
        raise CaseError('gnn.level: "embed" has no folds; "node" would be right')

    # ---- what is said and written -----------------------------------------------------------------------

    def answer(self, context: Context, done: Learned) -> Found:
        """See Examples."""
        group, counts = done.classifier.group, done.classifier.block.rows.row_counts()
        gather = lambda rows: group.gather_host(np.ascontiguousarray(rows), counts)  # noqa: E731
        scores, n_real = done.scores, done.classifier.block.n_real
        clusters = None if scores.clusters is None else gather(scores.clusters)
        predicted = None if scores.probe is None else gather(scores.probe.predict_own()[:n_real])
        return Found(gather(scores.vectors), clusters, predicted)

    def digested(self, answer: Found) -> dict[str, np.ndarray]:
        """See Examples."""
        found = {"vectors": answer.vectors, "clusters": answer.clusters, "predictions": answer.predicted}
        return {name: each for name, each in found.items() if each is not None}

    def sizes(self, context: Context) -> dict[str, Any]:
        """See Examples."""
        graph = self.loaded.graph
        arcs = {} if graph.arcs is None else {"arcs": said.count_arcs(context, self.loaded)}
        return {"name": graph.name, "nodes": graph.n, "edges": graph.edges, **arcs}

    def named(self, scores: VectorScores | SplitScores) -> dict[str, Any]:
        """See Examples; those of a probe, or of all there is to tell."""
        if not isinstance(scores, VectorScores):
            return named_scores(scores)
        columns = {"dimension": scores.vectors.shape[1]}
        return named_scores(scores.probed) | columns | self.measures_of(scores)

    def measures_of(self, scores: VectorScores) -> dict[str, float | None]:
        """How the views agree, and how good clusters are, by name; None where nothing tells it."""
        told = {"alignment": scores.agreement.alignment, "redundancy": scores.agreement.redundancy}
        return {name: None if math.isnan(x) else x for name, x in (told | scores.measures).items()}

    def recorder(self, context: Context, name: str = "") -> Any:
        """See Examples: how the views agree."""
        log, to_go = context.log, ToGo(context.case.gnn.epochs)

        def record(row: dict[str, float]) -> None:
            sent = sum(context.group.sent_bytes.values())
            log.record(
                phase="train", name=name, step=row["epoch"], loss=row["loss"], sent_bytes=sent,
                watched=row["watched"], train_score=row["train_score"],
            )  # fmt: skip
            text = "epoch %5d  loss %.4f  correlation of the views %.4f%s"
            log.progress(text, row["epoch"], row["loss"], row["train_score"], to_go(int(row["epoch"])))

        return record

    def say_model(self, context: Context, classifier: Embedder) -> None:
        """See Examples."""
        graph, embed = self.loaded.graph, self.embed
        context.log.info(
            "%s: %d nodes, %d edges, %d features", graph.name, graph.n, graph.edges, self.data.width
        )
        if classifier.case.epochs:
            context.log.info(
                "vectors of %d columns; views without %g %% of columns of features and %g %% of edges (%s)",
                embed.dimension, 100 * embed.feature_drop, 100 * embed.edge_drop, embed.objective,
            )  # fmt: skip
        said.say_layers(context, classifier)

    def say_scores(self, context: Context, classifier: Embedder, scores: VectorScores) -> None:
        """See Examples: of the views, of clusters, and of the probe."""
        log, agreement = context.log, scores.agreement
        if classifier.case.epochs:
            text = "correlation of a column in both views: %.4f; of different columns: %.4f"
            log.info(text, agreement.alignment, agreement.redundancy)
        if scores.clusters is not None:
            told = [f"{MEASURES[name]} {x:.4f}" for name, x in scores.measures.items() if not math.isnan(x)]
            log.info("clusters: %s", ", ".join(told))
        if scores.probe is None:
            return
        for line in said.score_lines(scores.probe, scores.probed):
            log.info("linear on the vectors, %s", line)

    def say_beside(self, context: Context, classifier: Embedder, scores: VectorScores, plain: Any) -> None:
        """See Examples."""
        if scores.probe is not None:
            said.say_beside(context, scores.probe, plain)

    def write_answer(self, context: Context, done: Learned, answer: Found) -> None:
        """See Examples."""
        folder, group, graph = context.folder, context.group, self.loaded.graph
        ids, probe = ids_everywhere(group, graph, self.loaded.rows), done.scores.probe
        with raise_together(group, "writing the vectors"):
            folder.write_arrays(f"embeddings/{graph.name}.npz", ids=ids, embeddings=answer.vectors)
            if answer.clusters is not None:
                folder.write_text(f"clusters/{graph.name}.txt", _clusters_text(ids, answer.clusters))
            if probe is not None:
                text = predictions_text(ids, answer.predicted, probe.data)
                folder.write_text(f"predictions/{graph.name}.txt", text)
        if context.case.output.probabilities and probe is not None:
            own = np.ascontiguousarray(probe.probabilities_own()[: probe.block.n_real])
            likely = group.gather_host(own, probe.block.rows.row_counts())
            write_probabilities(context, graph.name, ids, probe.data, likely)


def read_vectors(context: Context) -> VectorExamples:
    """The nodes of a case's graph. Ranks: all call."""
    loaded, data = load(context)
    if context.case.output.probabilities and not (data.classes and data.counts["train"]):
        right = "graph.labels and training nodes, or false, would be right"
        raise CaseError(f"output.probabilities: are those of the probe, which has no labels; {right}")
    return VectorExamples(loaded, data, context.case.embed, context.case.graph.neighbours)


def _clusters_text(ids: np.ndarray, clusters: np.ndarray) -> str:
    """Lines `id cluster`."""
    blank = blank_between(ids)
    return "".join(f"{i}{blank}{c}\n" for i, c in zip(plain_ids(ids), clusters.tolist()))
