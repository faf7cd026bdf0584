"""What calls that train a network return: as text, as HTML and as plots; `plot()` needs matplotlib."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from app.api.drawing import draw, draw_losses, figure_of, finish, framed, line_of, loss_chart
from app.errors import CaseError, GraphError
from app.gnn.archive import LARGEST
from app.gnn.explain.explanations import Explanations
from app.gnn.importance import Importance
from app.gnn.links.scores import LinkScores
from app.gnn.metrics import Scores, SplitScores, ValueScores
from app.gnn.rgcn.queries import Query, best_ends
from app.gnn.rgcn.saved import SavedRgcn, save_rgcn
from app.gnn.saved import SavedModel, save_model
from app.page.charts import Line, line_chart
from app.page.markup import table
from app.page.values import percent
from app.text import is_whole, show

SCORE_WORDS = {
    "accuracy": "accuracy %", "micro_f1": "micro F1 %", "macro_f1": "macro F1 %", "auc": "ROC AUC %",
    "ap": "average precision %", "r2": "R2", "rmse": "RMSE", "mae": "MAE",
}  # fmt: skip


@dataclass(frozen=True, repr=False)
class Classification:
    """What a graph network says of every node, or of every graph of a set, and how it was trained.

    predicted   [n] classes, or [n, labels] uint8 where a node may have several, in the order of `nodes`; of
                gnn.goal "values" float32 [n], or [n, columns] where there are several
    nodes       the labels of a NetworkX graph, the nodes of a DataFrame, the names of a file, or
                row numbers; of a set the names of graphs, or their places in it
    scores      accuracy, micro and macro F1 by split, of labelled nodes; of values r2, rmse and mae
    probabilities   [n, classes] float32, how likely each of `classes` is for a node; both None without
                settings={"output.probabilities": True}
    classes     the classes as `predicted` has them, in the order of the columns
    embeddings  [n, columns] float32, what the last layer but one says of each node; None without
                settings={"output.embeddings": True}
    plain       scores of plain rules by split, of "label_propagation" and "largest_class" ("majority" of
                several labels, "mean" of values); none with settings={"gnn.baselines": False}
    network     the scores of the network alone where settings of [smooth] follow it, and `smooth` what these
                are; else None
    importance  scores without some features, the most important first; None without
                settings={"output.importance": 20}, or how many features are tried
    explanations   of single predictions (app/gnn/explain/explanations.py); None without
                settings={"output.explain": [node, ...]}, of edges [[u, v], ...], or of how many of the test
                set
    spread      with settings={"gnn.members": 5}, or however many: the standard deviation over the networks of
                the probability of the class that is predicted [n], of several labels of each [n, labels], of
                values of the numbers; `members` what each network predicts, as `predicted`; else None
    sets        with settings={"output.coverage": 0.9}, or another share: for each node the classes that are
                not ruled out, of values `intervals` [n, 2] ([n, columns, 2]) from the least number to the
                largest; for that share of nodes the truth is among them, of which `coverage` tells: on how
                many validation nodes it was calibrated, its threshold, the share of the test nodes for
                which it held, and the mean size of their sets; else None
    """

    predicted: np.ndarray
    nodes: list[Any]
    scores: SplitScores
    epochs: int
    train_loss: float | None
    seconds: float
    digest: str
    records: list[dict[str, float]]
    model: SavedModel | SavedRgcn | None
    probabilities: np.ndarray | None = None
    classes: np.ndarray | None = None
    embeddings: np.ndarray | None = None
    plain: dict[str, SplitScores] = field(default_factory=dict)
    network: SplitScores | None = None
    smooth: dict[str, Any] | None = None
    importance: Importance | None = None
    explanations: Explanations | None = None
    spread: np.ndarray | None = None
    members: list[np.ndarray] | None = None
    sets: list[tuple[Any, ...]] | None = None
    intervals: np.ndarray | None = None
    coverage: dict[str, Any] | None = None

    def save(self, path: str) -> None:
        """Write weights.npz, for `gnn.weights=PATH` of a case or `weights=PATH` of a call."""
        save_model(path, self.model, "trained from Python")

    def __repr__(self) -> str:
        named = ", ".join(f"{name} {_headline(each)}" for name, each in self._told().items())
        of = f"{len(self.predicted)} {self._level}s"
        return f"{type(self).__name__}({of}, {self.epochs} epochs; {named or 'no labels'})"

    def _repr_html_(self) -> str:
        told = self._told() | self._beside()
        values = any(isinstance(each, ValueScores) for each in told.values())
        show = (lambda value: f"{value:.5g}") if values else percent
        found = {name: each.named() for name, each in told.items()}
        keys = [key for key in SCORE_WORDS if any(key in each for each in found.values())]
        words = [SCORE_WORDS[key] for key in keys]
        rows = [[name, *(show(each.get(key)) for key in keys)] for name, each in found.items()]
        return framed(
            table([f"{self._level}s", *words], rows) if rows else "",
            line_chart("Loss", self._losses(), "epoch", "loss"),
            line_chart("Scores", self._scores(), "epoch", "score"),
        )

    @property
    def _level(self) -> str:
        """What is told apart: "node", "edge" or "graph"."""
        return getattr(getattr(self.model, "case", None), "level", "node")

    def _told(self) -> SplitScores:
        """The scores of splits that have nodes."""
        return {name: each for name, each in self.scores.items() if each.nodes}

    def _beside(self) -> SplitScores:
        """Those of the network alone and of plain rules, by rule and split in words."""
        rules = ({} if self.network is None else {"network": self.network}) | self.plain
        return {
            f"{split}, {rule.replace('_', ' ')}": each
            for rule, scores in rules.items()
            for split, each in scores.items()
            if each.nodes
        }

    def _losses(self) -> list[Line]:
        return line_of(self.records, "epoch", "loss", "training loss", 0)

    def _scores(self) -> list[Line]:
        names = ("train", "val", "test")
        return [
            line
            for i, name in enumerate(names)
            for line in line_of(self.records, "epoch", f"{name}_score", name, i)
        ]

    def plot(self) -> Any:
        """Loss and scores over epochs; a matplotlib figure."""
        figure, (left, right) = figure_of(2)
        draw(left, self._losses())
        draw(right, self._scores())
        finish(figure, left, "epoch", "loss")
        return finish(figure, right, "epoch", "score")


@dataclass(frozen=True, repr=False)
class RelationalClassification(Classification):
    """What a relational network says of nodes of a knowledge graph, and how it was trained.

    predicted   [k] classes or their names, in the order of `nodes`
    nodes       those of all sets, ascending by number: as the caller or the file names them, or numbers
    scores      accuracy, micro and macro F1 by set, of nodes that have a class
    digest      that of result.json: of predictions and weights
    """

    def save(self, path: str) -> None:
        """Write weights.npz, for `rgcn.weights=PATH` of a case or `weights=PATH` of a call."""
        _save_rgcn(path, self.model)


@dataclass(frozen=True, repr=False)
class EdgeClassification(Classification):
    """What a graph network says of every edge of a graph, and how it was trained.

    predicted, probabilities   as those of Classification, in the order of `edges`
    edges       pairs of nodes, as the caller lists them without loops; of a matrix or a file each once
    scores      of labelled edges     plain   of "ends", by the training edges at both ends, and of
                "largest_class" ("majority" of several labels, "mean" of values)
    nodes       as those of Classification; embeddings are theirs
    """

    edges: list[tuple[Any, Any]] = field(default_factory=list)


@dataclass(frozen=True, repr=False)
class FoundLinks:
    """How likely pairs of a graph's nodes are joined, by a network that was trained on its edges.

    pairs, likely   the pairs that were asked for, else the edges held out, and [k] float32 how likely each is
                    joined: of as many pairs that are as that are not; with links.loss = "bpr", here and
                    below, the score itself
    proposed        (pair, likely) of the likeliest pairs without an edge, as many as links.propose says
    scores, plain   of the edges held out, by split: areas, average precision, hits, with links.rank_each in
                    `each` how well the partners of each node are ranked; of plain rules by
                    "common_neighbours", "adamic_adar" (between two sides "paths_3", "l3"), "degrees"
    proposed_each   by node, (partner, likely) of its best partners without an edge, the best first, as many
                    as links.propose_each says
    nodes           as in Classification
    node_rows       [n, d] float32, in the order of `nodes`: the score of two nodes is the product of their
                    rows, and its sigmoid how likely they are joined
    importance, explanations   as in Classification; explanations are of pairs of nodes
    """

    pairs: list[tuple[Any, Any]]
    likely: np.ndarray
    proposed: list[tuple[tuple[Any, Any], float]]
    scores: dict[str, LinkScores]
    plain: dict[str, dict[str, LinkScores]]
    nodes: list[Any]
    node_rows: np.ndarray
    epochs: int
    train_loss: float | None
    seconds: float
    digest: str
    records: list[dict[str, float]]
    model: SavedModel
    proposed_each: dict[Any, list[tuple[Any, float]]] = field(default_factory=dict)
    importance: Importance | None = None
    explanations: Explanations | None = None

    def save(self, path: str) -> None:
        """Write weights.npz, for `gnn.weights=PATH` of a case or `weights=PATH` of a call."""
        save_model(path, self.model, "trained from Python")

    def __repr__(self) -> str:
        told = ", ".join(f"{name} AUC {each.auc:.4f}" for name, each in self._told().items())
        return f"FoundLinks({len(self.nodes)} nodes, {self.epochs} epochs; {told or 'no edges held out'})"

    def _repr_html_(self) -> str:
        rows = [
            [f"{rule.replace('_', ' ')}, {name}", *(percent(each.named()[key]) for key in ("auc", "ap"))]
            for rule, scores in {"learned": self.scores, **self.plain}.items()
            for name, each in scores.items()
            if name in self._told()
        ]
        return framed(
            table(["scores", "ROC AUC %", "average precision %"], rows) if rows else "",
            loss_chart(self.records),
        )

    def _told(self) -> dict[str, LinkScores]:
        """The scores of edges that were held out."""
        return {name: each for name, each in self.scores.items() if name != "train" and each.pairs}


@dataclass(frozen=True, repr=False)
class Embedding:
    """Vectors of a graph's nodes, learned without labels, and what there is to tell of them.

    vectors     [n, d] float32, in the order of `nodes`
    clusters    [n] int32, from 0; None where none were asked for
    predicted   [n] classes, or [n, labels] uint8 where a node may have several: what a linear classifier of
                the vectors, trained on the training nodes, says of each node; None without any
    nodes       as in Classification
    scores      of that classifier, by split     plain   of the same on "features", on "propagated" ones,
                after two products with the normalised adjacency matrix, and of small graphs on "spectral"
                rows, of leading eigenvectors
    measures    alignment: mean correlation of a column in two more views of the graph; redundancy: root mean
                square of those of different columns; of clusters modularity, and beside one class a node nmi
                and ari (mutual information, Rand index); None where nothing tells it
    digest      that of result.json: of vectors, clusters, predictions and weights
    """

    vectors: np.ndarray
    clusters: np.ndarray | None
    predicted: np.ndarray | None
    nodes: list[Any]
    scores: SplitScores
    measures: dict[str, float | None]
    plain: dict[str, SplitScores]
    epochs: int
    train_loss: float | None
    seconds: float
    digest: str
    records: list[dict[str, float]]
    model: SavedModel
    importance: Importance | None = None

    def save(self, path: str) -> None:
        """Write weights.npz, for `gnn.weights=PATH` of a case or `weights=PATH` of a call."""
        save_model(path, self.model, "trained from Python")

    def __repr__(self) -> str:
        n, d = self.vectors.shape
        told = [f"{name} {x:.4f}" for name, x in self.measures.items() if x is not None]
        told += [f"{name} {_headline(each)}" for name, each in self.scores.items() if each.nodes]
        return f"Embedding({n} nodes, {d} columns, {self.epochs} epochs; {', '.join(told) or 'no clusters'})"

    def _repr_html_(self) -> str:
        words = {"linear on the vectors": self.scores, **self.plain}
        rows = [
            [f"{rule}, {split}", percent(each.accuracy), percent(each.macro_f1)]
            for rule, scores in words.items()
            for split, each in scores.items()
            if each.nodes
        ]
        measures = [[name, f"{x:.4f}"] for name, x in self.measures.items() if x is not None]
        return framed(
            table(["nodes", "accuracy %", "macro F1 %"], rows) if rows else "",
            table(["measure", "value"], measures) if measures else "",
            loss_chart(self.records),
        )

    def plot(self) -> Any:
        """Loss over epochs, and the vectors along the two directions in which they differ most, coloured by
        clusters; a matplotlib figure."""
        figure, (left, right) = figure_of(2)
        draw_losses(figure, left, self.records)
        X = self.vectors.astype(np.float64) - self.vectors.mean(axis=0, dtype=np.float64)
        _, axes = np.linalg.eigh(X.T @ X)
        flat = X @ axes[:, : -min(3, X.shape[1] + 1) : -1]
        kinds = np.zeros(len(flat), dtype=np.int32) if self.clusters is None else self.clusters
        for kind in np.unique(kinds).tolist():
            right.plot(flat[kinds == kind, 0], flat[kinds == kind, -1], ".", ms=3, color=f"C{kind % 10}")
        right.set_xlabel("first direction")
        right.set_ylabel("second direction")
        return figure


@dataclass(frozen=True, repr=False)
class LinkPrediction:
    """A network that scores triples of a knowledge graph, and how it ranked those that were held out.

    held_out      the held-out triples (subject, relation, object), by name where there are names
    ranks         [k, 2] the filtered ranks of their objects and of their subjects; half of a tie is .5
    scores        "learned", "most_frequent", "random": mean reciprocal rank, shares of ranks up to 1, 3, 10
    nodes, relations   as the caller or the file names them, or numbers, in the order of their rows
    node_rows, relation_rows   [n, d], [R, d]: what scores are made of; with rgcn.loops [R, d + 1], the last
                  column what a relation adds to the score of a node with itself
    scorer        "distmult": the score of (s, r, o) is the sum over d of node_rows[s] relation_rows[r]
                  node_rows[o] (Yang et al. 2015); "complex": rows are d / 2 real parts, then imaginary ones,
                  and it is the real part of the sum with the object's conjugate (Trouillon et al. 2016);
                  "transe": minus the squared distance of node_rows[s] + relation_rows[r] from node_rows[o]
                  (Bordes et al. 2013); "rotate": minus that of the products of the complex numbers, of which
                  those of relations count by their directions (Sun et al. 2019)
    known         [m, 3] numbers of the triples that are given
    digest        that of result.json: of the weights
    explanations  of the scores of triples; None without settings={"output.explain": [[s, r, o], ...]}, or of
                  how many held-out ones, those of the worst ranks first
    """

    held_out: list[tuple[Any, Any, Any]]
    ranks: np.ndarray
    scores: dict[str, dict[str, float]]
    nodes: list[Any]
    relations: list[Any]
    node_rows: np.ndarray
    relation_rows: np.ndarray
    scorer: str
    known: np.ndarray
    epochs: int
    best_epoch: int
    train_loss: float | None
    seconds: float
    digest: str
    records: list[dict[str, float]]
    model: SavedRgcn
    explanations: Explanations | None = None

    def save(self, path: str) -> None:
        """Write weights.npz, for `rgcn.weights=PATH` of a case or `weights=PATH` of a call."""
        _save_rgcn(path, self.model)

    def objects(self, subject: Any, relation: Any, count: int = 10) -> list[tuple[Any, float]]:
        """The best objects of a subject and a relation with their scores, without those that are known."""
        return self._best(subject, relation, count, 0)

    def subjects(self, object: Any, relation: Any, count: int = 10) -> list[tuple[Any, float]]:
        """The best subjects of an object and a relation with their scores, without those that are known."""
        return self._best(object, relation, count, 1)

    def _best(self, node: Any, relation: Any, count: int, side: int) -> list[tuple[Any, float]]:
        """The other ends of the largest scores; of equal ones the lowest numbers. Raises GraphError."""
        if not is_whole(count):
            raise GraphError(f"count: found {show(count)}; a whole number would be right")
        at, of = _number(node, self.nodes, "node"), _number(relation, self.relations, "relation")
        query = Query(side, at, of)
        best, scores = best_ends(self.node_rows, self.relation_rows, self.scorer, self.known, query, count)
        return [(self.nodes[i], score) for i, score in zip(best.tolist(), scores.tolist())]

    def __repr__(self) -> str:
        told = ", ".join(f"{name} {each['mrr']:.3f}" for name, each in self.scores.items())
        return f"LinkPrediction({len(self.held_out)} held-out triples, {self.epochs} epochs; MRR: {told})"

    def _repr_html_(self) -> str:
        rows = [[name, *(f"{value:.4f}" for value in each.values())] for name, each in self.scores.items()]
        return framed(
            table(["ranks", "MRR", "hits at 1", "hits at 3", "hits at 10"], rows),
            loss_chart(self.records),
            line_chart("Validation", line_of(self.records, "epoch", "val_score", "MRR", 0), "epoch", "MRR"),
        )

    def plot(self) -> Any:
        """Loss, and the rank of the validation triples, over epochs; a matplotlib figure."""
        figure, (left, right) = figure_of(2)
        draw_losses(figure, left, self.records)
        draw(right, line_of(self.records, "epoch", "val_score", "MRR of the validation triples", 1))
        return finish(figure, right, "epoch", "MRR")


def _headline(scores: Scores | ValueScores) -> str:
    """How good predictions are, in a word."""
    return f"R2 {scores.r2:.4f}" if isinstance(scores, ValueScores) else f"{percent(scores.accuracy, 1)} %"


def _save_rgcn(path: str, model: SavedRgcn | None) -> None:
    if model is None:
        raise CaseError(f"save: more than {1e-6 * LARGEST:.0f} MB; fewer rgcn.bases would be right")
    save_rgcn(path, model, "trained from Python")


def _number(name: Any, names: list[Any], what: str) -> int:
    """The place of a name. Raises GraphError."""
    try:
        return names.index(name)
    except ValueError:
        raise GraphError(f"found {repr(name)[:60]}; a {what} of the graph would be right") from None
