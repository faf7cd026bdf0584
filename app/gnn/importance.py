"""Importance of features: what a network's scores lose where features are left out, one at a time.

Whatever its kind, the first layer multiplies features of nodes by weights before all else (`meets_input`),
and layers and heads that read features of edges multiply these by W_edge. So a feature is left out where its
row of these weights is zero: the same network then hears zeros in that column, of standardised columns their
mean. That is one forward pass for each, whether features are dense, sparse, in the slow tier, or there as A X
alone, and on any number of ranks.

Source    occlusion: Zeiler and Fergus 2014; the features that are tried are those with the largest part
          x_j w_j of the product X W, of edges E_j W_e,j over all layers that read them
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.comm.exact import sum_exactly
from app.errors import CaseError
from app.gnn.categories import Categories
from app.gnn.classifier import Classifier
from app.gnn.inputs import Scaling, scaled_rows
from app.graphs.nodes.data import rows_per_piece
from app.memory.slow_rows import read_over
from app.watchdog import beat

SETS = {"val": "validation", "test": "test", "train": "training"}  # the first that has labels is looked at
Measured = tuple[float, float]  # score, loss


@dataclass(frozen=True, eq=False)
class Importance:
    """Scores of a network without some features, the most important first: by the loss where there is one.

    split    the set that scores are of: "val", "test" or "train"
    whole    (score, loss) of the network, nan where that set tells no loss; none: without any feature
    feature  [k] int64, columns of the data, from 0
    part     [k] float64, root of the mean square of a feature's part of X W
    score, loss   [k] float64 without it
    edges    the same of the features of edges; None: these are read by no layer, or are the ones told here
    what     "feature", or "edge feature"
    """

    split: str
    whole: Measured
    none: Measured
    feature: np.ndarray
    part: np.ndarray
    score: np.ndarray
    loss: np.ndarray
    edges: "Importance | None" = None
    what: str = "feature"

    def lines(self, most: int) -> Iterator[str]:
        """For the log."""
        score, loss = self.whole
        by = "loss" if loss == loss else "score"
        yield f"importance of features, by the {by} of the {SETS[self.split]} set without them:"
        yield f"all features: {_told(score, loss)}; none: {_told(*self.none)}"
        for part in self._parts:
            for row in zip(part.feature[:most].tolist(), part.score.tolist(), part.loss.tolist()):
                yield f"without {part.what} {row[0]}: {_told(*row[1:])}"

    @property
    def _parts(self) -> tuple["Importance", ...]:
        return (self,) if self.edges is None else (self, self.edges)

    def told(self) -> dict[str, Any]:
        """What result.json holds."""
        columns = {"score_without": self.score.tolist(), "loss_without": [_or_none(x) for x in self.loss]}
        score, loss = self.none
        edges = {} if self.edges is None else {"edges": self.edges.told()}
        return {
            "set": self.split,
            "without_any": {"score": score, "loss": _or_none(loss)},
            "features": self.feature.tolist(),
            **columns,
            **edges,
        }

    def rows(self) -> list[list[Any]]:
        """Of each feature its name, part, the score lost and the loss added without it, None where none."""
        score, loss = self.whole
        return [
            [f"{each.what} {j}", part, score - s, _or_none(x - loss)]
            for each in self._parts
            for j, part, s, x in each._columns()
        ]

    def _columns(self) -> Iterator[tuple[int, float, float, float]]:
        return zip(self.feature.tolist(), self.part.tolist(), self.score.tolist(), self.loss.tolist())

    def text(self) -> str:
        """A line for each feature, for a file: those of edges are called "edge J"."""
        score, loss = self.whole
        head = "feature,part,score_without,score_lost,loss_without,loss_added\n"
        lines = (
            f"{each.what.removesuffix('feature')}{j},{part:.6g},{s:.6g},{score - s:.6g},"
            f"{_or_blank(x)},{_or_blank(x - loss)}\n"
            for each in self._parts
            for j, part, s, x in each._columns()
        )
        return head + "".join(lines)


@dataclass(frozen=True, eq=False)
class Inputs:
    """Features that may be left out.

    weights   the names of what they are multiplied by     columns   by feature the rows of these
    parts     [k] float64, the mean square of its part of the product
    """

    weights: tuple[str, ...]
    columns: list[np.ndarray]
    parts: np.ndarray

    def without(self, weights: dict[str, np.ndarray], features: Iterable[int]) -> dict[str, np.ndarray]:
        """Weights without the rows that meet some features."""
        found, places = dict(weights), [self.columns[j] for j in features]
        for name in self.weights if places else ():
            found[name] = weights[name].copy()
            found[name][np.concatenate(places)] = 0
        return found


def importance(
    classifier: Classifier, most: int, measure: Callable[[Classifier, str], Measured] | None = None
) -> Importance:
    """Leave out the `most` features of nodes with the largest parts of X W, each by itself, as many of edges,
    and all together.

    measure   score and loss of a set; by default those of the classifier's labels
    Ranks     all call; result identical on all
    Raises    CaseError where there are no features, or nothing to tell a score by
    """
    split, measure = told_by(classifier), measure or measured
    nodes, edges = _of_nodes(classifier), _of_edges(classifier)
    measures, classifier.engine.measures = classifier.engine.measures, False  # statistics stay as they are
    kept = classifier.params.host()

    def of(weights: dict[str, np.ndarray]) -> Measured:
        beat()
        classifier.params.set(weights)
        return measure(classifier, split)

    def tried(inputs: Inputs) -> tuple[np.ndarray, ...]:
        some = np.argsort(-inputs.parts, kind="stable")[:most]
        return _ordered(inputs, some, [of(inputs.without(kept, [j])) for j in some.tolist()])

    try:
        whole = of(kept)
        bare = nodes.without(kept, range(len(nodes.columns)))
        none = of(edges.without(bare, range(len(edges.columns))) if edges else bare)
        of_nodes, of_edges = tried(nodes), tried(edges) if edges else None
    finally:
        classifier.params.set(kept)
        classifier.engine.measures = measures
    told = Importance(split, whole, none, *of_edges, what="edge feature") if of_edges else None
    return Importance(split, whole, none, *of_nodes, told)


def _ordered(inputs: Inputs, tried: np.ndarray, found: list[Measured]) -> tuple[np.ndarray, ...]:
    """Features, parts, scores and losses of those that were tried, the most important first."""
    score, loss = np.array(found, dtype=np.float64).reshape(-1, 2).T
    worth = -loss if (loss == loss).all() else score
    order = np.lexsort((tried, worth))
    chosen = tried[order].astype(np.int64)
    return chosen, np.sqrt(inputs.parts[chosen]), score[order], loss[order]


def told_by(classifier: Classifier) -> str:
    """The set that tells how good a network is: the first of SETS that has labels; of links that is held out.

    Raises CaseError where there are no features, or no such set
    """
    counts, links = classifier.data.counts, classifier.case.level == "link"
    if not (classifier.data.width or classifier.edge_columns):
        raise CaseError("output.importance: the graph has no features; 0 would be right")
    split = next((name for name in SETS if counts[name] and not (links and name == "train")), "")
    if not split or not (links or classifier.about.classes):
        raise CaseError("output.importance: nothing tells how good the network is; 0 would be right")
    return split


def measured(classifier: Classifier, split: str) -> Measured:
    """Score and loss of a set with labels. Ranks: all call."""
    scores = classifier.evaluate("loss" if split == "val" else "")[split]
    loss = scores.error if classifier.goal.kind == "values" else scores.loss
    return float(scores.score), float("nan") if loss is None else float(loss)


def _of_nodes(classifier: Classifier) -> Inputs:
    """The features of nodes; none where each node has one of its own. Ranks: all call."""
    if not classifier.data.width:
        return Inputs((), [], np.empty(0))
    names, squares = tuple(classifier.model.blocks[0].meets_input), np.zeros(classifier.model.f_in)
    weights = classifier.params.host()
    for name in names:
        squares += (weights[name].astype(np.float64) ** 2).sum(axis=1)
    squares *= _mean_squares(classifier)
    return _by_feature(names, squares, classifier.inputs)


def _of_edges(classifier: Classifier) -> Inputs | None:
    """The features of edges, of all that reads them, layers and a head; None: nothing does. Ranks: all."""
    columns, weights = classifier.edge_columns, classifier.params.host()
    if columns is None:
        return None
    names = tuple(name for name in weights if name.endswith(".W_edge"))
    squares = sum((weights[name].astype(np.float64) ** 2).sum(axis=1) for name in names)
    return _by_feature(names, squares * _mean_squares_of_edges(classifier), columns.inputs)


def _by_feature(names: tuple[str, ...], squares: np.ndarray, inputs: Any) -> Inputs:
    """Parts [columns] of the product by feature: of categories a feature has several."""
    categories = isinstance(inputs, Categories)
    starts = inputs.starts_within(len(squares)) if categories else np.arange(len(squares) + 1)
    columns = [np.arange(lo, hi) for lo, hi in zip(starts[:-1].tolist(), starts[1:].tolist())]
    return Inputs(names, columns, np.add.reduceat(squares, starts[:-1]))


def _mean_squares_of_edges(classifier: Classifier) -> np.ndarray:
    """[k] float64, the mean over all entries of the square of each column that edges have. Ranks: all
    call."""
    columns, values = classifier.edge_columns, classifier.data.edges.heard.values
    width, step = columns.width, rows_per_piece(8 * columns.width)

    def pieces() -> Iterator[np.ndarray]:
        for lo in range(0, len(values), step):
            rows, _ = columns.rows(values[lo : lo + step])
            if isinstance(columns.inputs, Categories):  # the numbers of columns that have a one
                yield (rows[:, :, None] == np.arange(width)).any(axis=1).astype(np.float64)
            else:
                yield rows.astype(np.float64) ** 2

    entries = classifier.group.sum_integers(np.array([len(values)]))[0]
    return sum_exactly(classifier.group, pieces, width) / max(int(entries), 1)


def _mean_squares(classifier: Classifier) -> np.ndarray:
    """[F] float64, the mean over all nodes of the square of each column of X. Ranks: all call."""
    block, X = classifier.block, classifier.data.features
    beside = classifier.data.beside
    scaling = Scaling(classifier.case.feature_rows, classifier.inputs, block.n_real, beside)
    step = rows_per_piece(8 * X.shape[1])

    def pieces() -> Iterator[np.ndarray]:
        for lo in range(0, block.n_real, step):
            rows = slice(lo, min(lo + step, block.n_real))
            some = scaled_rows(X[rows], scaling, lo)
            yield (some if isinstance(some, np.ndarray) else some.toarray()).astype(np.float64) ** 2
            if isinstance(X, np.ndarray):
                read_over(X, rows)

    return sum_exactly(classifier.group, pieces, X.shape[1]) / max(block.n, 1)


def _told(score: float, loss: float) -> str:
    return f"score {score:.4f}" + (f", loss {loss:.4f}" if loss == loss else "")


def _or_none(number: float) -> float | None:
    return None if number != number else float(number)


def _or_blank(number: float) -> str:
    return "" if number != number else f"{number:.6g}"
