"""Explanations of single predictions: of which ones, by which rank, and in the words of the user."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.comm.guard import raise_together
from app.errors import CaseError
from app.gnn.categories import Categories
from app.gnn.classifier import Classifier
from app.gnn.explain.attribution import WAYS, Attribution, attribute, size_of
from app.gnn.explain.field import Field, Fields, own_of, shared
from app.gnn.explain.network import FieldNetwork, Trained, entry_bytes, hops_of
from app.graphs.nodes.data import NodeData

KEY = "output.explain"
LISTED = 100  # edges, features and neighbours of a prediction that its file names, the largest first
HEAD = "node,kind,what,contribution\n"
WORDS = {"gradient": "by gradients", "degree": "by degrees", "random": "drawn"}

Named = Callable[[np.ndarray], list[Any]]  # what rows are called


@dataclass(frozen=True, eq=False)
class Explanation:
    """What made one prediction.

    node           what is explained: a node, or a graph of a set     predicted   its class, or a label, or of
                   numbers the column
    score          that is explained: of a class of several its score less the mean of all classes', of a
                   label its score, of values the number itself
    bare, blank    the same without edges, and without features
    edges          (u, v) of its receptive field, of a directed graph tail and head; those with the largest
                   contributions first, of either sign: of_edges [m] float64, which add up to score - bare
    gradients      [m] float64 of the score by a mask of each edge's messages, where all are heard
    features       numbers of columns, from 0, likewise: of_features, which add up to score - blank; none
                   where each node has a feature of its own
    neighbours     nodes of the field, itself among them, by what their features bring: of_neighbours, which
                   add up to the same
    missing        what contributions of edges, and of features, lack of these sums
    taken          a tenth of the edges, at least one
    fell, changed  without so many edges, chosen by "explained" (contributions), "gradient", "degree" or
                   "random": how much the score falls, and how often the prediction is another
    """

    node: Any
    predicted: Any
    score: float
    bare: float
    blank: float
    edges: list[tuple[Any, Any]]
    of_edges: np.ndarray
    gradients: np.ndarray
    features: list[int]
    of_features: np.ndarray
    neighbours: list[Any]
    of_neighbours: np.ndarray
    missing: tuple[float, float]
    taken: int
    fell: dict[str, float]
    changed: dict[str, float]

    def lines(self) -> Iterator[str]:
        """Of explanations/NAME.csv."""
        begun = _cell(self.node)
        yield f"{begun},score,{_cell(self.predicted)},{self.score:.6g}\n"
        yield f"{begun},score,without edges,{self.bare:.6g}\n"
        yield f"{begun},score,without features,{self.blank:.6g}\n"
        edges = (_pair(str(u), str(v)) for u, v in self.edges)
        for kind, each, parts in (
            ("edge", edges, self.of_edges),
            ("feature", self.features, self.of_features),
            ("neighbour", self.neighbours, self.of_neighbours),
        ):
            count = np.count_nonzero(parts)
            for what, part in zip(each, parts[: min(count, LISTED)].tolist()):
                yield f"{begun},{kind},{_cell(what)},{part:.6g}\n"
            if count > LISTED:
                yield f"{begun},{kind},{count - LISTED} others,{parts[LISTED:].sum():.6g}\n"


@dataclass(frozen=True, eq=False)
class Explanations:
    """Of several predictions, in the order in which they were asked for.

    each      of them     left_out   (node, MB of its receptive field) of those whose fields are too large
    what      "node" or "graph"     numbers   are predicted, no classes: `changed` says nothing
    """

    each: tuple[Explanation, ...]
    left_out: tuple[tuple[Any, float], ...]
    what: str = "node"
    numbers: bool = False

    def __iter__(self) -> Iterator[Explanation]:
        return iter(self.each)

    def __len__(self) -> int:
        return len(self.each)

    def __getitem__(self, place: int) -> Explanation:
        return self.each[place]

    @property
    def fell(self) -> dict[str, float]:
        """How much scores fall without a tenth of the edges, by how these are chosen: means."""
        return self._means(lambda each: each.fell)

    @property
    def changed(self) -> dict[str, float]:
        """The shares of predictions that are others then."""
        return {} if self.numbers else self._means(lambda each: each.changed)

    @property
    def missing(self) -> tuple[float, float]:
        """The largest parts of a score that contributions of edges, and of features, lack of what they should
        add up to."""
        worst = np.abs([each.missing for each in self.each] or [(0.0, 0.0)]).max(axis=0)
        return float(worst[0]), float(worst[1])

    def _means(self, of: Callable[[Explanation], dict[str, float]]) -> dict[str, float]:
        some = [of(each) for each in self.each if each.taken]
        return {name: float(np.mean([one[name] for one in some])) for name in WAYS} if some else {}

    def told(self) -> dict[str, Any]:
        """What result.json holds."""
        edges, features = self.missing
        return {
            "explained": len(self.each), "left_out": len(self.left_out),
            "edges": float(np.mean([len(each.edges) for each in self.each] or [0])),
            "fell": self.fell, "changed": self.changed, "missing": {"edges": edges, "features": features},
        }  # fmt: skip

    def log_lines(self) -> Iterator[str]:
        """For the log."""
        told = self.told()
        some = f"{len(self.each)} {self.what}{'s' * (len(self.each) != 1)}"
        yield (
            f"explanations: {some}, {told['edges']:.1f} edges of each in the mean; "
            f"contributions of edges lack at most {self.missing[0]:.2g} of their sum, of features "
            f"{self.missing[1]:.2g}"
        )
        if fell := self.fell:
            others = ", ".join(f"{words} {fell[way]:.4g}" for way, words in WORDS.items())
            yield f"without a tenth of the edges scores fall by {fell['explained']:.4g} (edges {others})"
        if other := {way: 100 * share for way, share in self.changed.items()}:
            others = ", ".join(f"{words} {other[way]:.1f} %" for way, words in WORDS.items())
            yield f"and {other['explained']:.1f} % of the predictions change ({others})"

    def text(self) -> str:
        """Lines of node, kind, what and contribution, for a file."""
        return HEAD + "".join(line for each in self.each for line in each.lines())


def refuse_unexplained(classifier: Classifier) -> None:
    """Refuse networks whose predictions are not explained. Raises CaseError."""
    for block in classifier.model.blocks:
        if getattr(block.convolution, "reads_edges", False):
            found = f"{block.spec.kind} reads features of edges, whose messages are not explained"
            raise CaseError(f"{KEY}: {found}; leave it out")
        if not getattr(block.convolution, "explained", True):
            raise CaseError(f"{KEY}: messages of {block.spec.kind} are not explained; leave it out")


def explain(
    classifier: Classifier,
    masked: Any,
    rows: np.ndarray,
    called: Named,
    most: int,
    seed: int,
    directed: bool,
    turned: bool,
) -> Explanations:
    """Explain the network's scores of some rows, of a set of graphs their own rows.

    masked   a host device with MaskedAttention
    called   names of rows     most   bytes of a receptive field     seed   of what is drawn
    turned   nodes hear the heads of their arcs (graph.neighbours = "out")
    Ranks    all call; result identical on all. Raises NumericsError where scores are not finite
    """
    group, trained = classifier.group, Trained(classifier, masked)
    columns, model = classifier.engine.plan.columns, classifier.model
    fields = Fields(classifier, hops_of(model), most, columns, entry_bytes(model, columns))
    order = np.argsort(rows)
    own = own_of(classifier.block, rows[order])
    known = np.empty((len(rows), classifier.classes), dtype=np.float32)
    known[order] = shared(group, classifier.scores_own()[own])
    each: list[Explanation] = []
    left_out: list[tuple[Any, float]] = []
    for at in range(0, len(rows), group.size):
        some = [fields.of(int(row)) for row in rows[at : at + group.size]]
        numbers = np.zeros(0)
        with raise_together(group, "explaining predictions"):
            mine = some[group.rank] if group.rank < len(some) else 0
            if isinstance(mine, Field):
                network = FieldNetwork(trained, mine)
                numbers = attribute(network, directed, known[at + group.rank], seed).packed()
        for root, found in enumerate(some):
            if isinstance(found, int):
                left_out.append((called(rows[at + root : at + root + 1])[0], found / 1e6))
                continue
            size = size_of(found, directed)
            numbers_of = group.broadcast(numbers if group.rank == root else np.zeros(size), root)
            each.append(_named(classifier, Attribution.unpacked(found, directed, numbers_of), called, turned))
    kind = classifier.case.level, classifier.goal.kind == "values"
    return Explanations(tuple(each), tuple(left_out), *kind)


def _named(classifier: Classifier, found: Attribution, called: Named, turned: bool) -> Explanation:
    """An attribution by the user's names, the largest contributions first."""
    field, about = found.field, classifier.about
    edges, of_edges, gradients = _largest(found.of_edges, found.edges, found.of_edges, found.gradients)
    features, of_features = _by_feature(classifier, found)
    features, of_features = _largest(of_features, features, of_features)
    nodes = field.nodes != field.row if field.whole else np.ones(len(field.nodes), dtype=bool)
    nodes, of_nodes = _largest(found.of_nodes[nodes], field.nodes[nodes], found.of_nodes[nodes])
    ends = [called(edges[:, side]) for side in ((1, 0) if turned else (0, 1))]
    values = classifier.goal.kind == "values"
    predicted = found.column if values else about.called(np.array([found.column])).tolist()[0]
    return Explanation(
        called(np.array([field.row]))[0], predicted, found.score, found.bare, found.blank,
        list(zip(*ends)), of_edges, gradients, features.tolist(), of_features, called(nodes), of_nodes,
        found.missing, found.taken, found.fell, found.changed,
    )  # fmt: skip


def _by_feature(classifier: Classifier, found: Attribution) -> tuple[np.ndarray, np.ndarray]:
    """Columns of the data, and their contributions: of categories a feature has several."""
    if not classifier.data.width:
        return np.empty(0, dtype=np.int64), np.empty(0)
    columns, inputs = found.field.used, classifier.inputs
    if isinstance(inputs, Categories):
        columns = np.searchsorted(inputs.starts_within(classifier.data.width), columns, side="right") - 1
    features, which = np.unique(columns, return_inverse=True)
    return features, np.bincount(which.reshape(-1), weights=found.of_features, minlength=len(features))


def _largest(parts: np.ndarray, *columns: np.ndarray) -> list[np.ndarray]:
    """Columns [m, ...] by the contributions [m], the largest ones of either sign first."""
    order = np.argsort(-np.abs(parts), kind="stable")
    return [each[order] for each in columns]


# ---- which predictions ------------------------------------------------------------------------------------


def least_certain(classifier: Classifier, count: int) -> np.ndarray:
    """[k] int64, so many rows of the test set, of all that are predicted where there is none: those that are
    predicted wrongly first, of these and of the others the least certain ones; of values those of the largest
    errors. Ranks: all call; result identical on all."""
    data, block = classifier.about, classifier.block
    rows = np.arange(block.n_own) if data.rows is None else data.rows
    chosen = data.among(data.test) if data.counts["test"] else rows < block.n_real
    places = np.flatnonzero(chosen)
    Z = classifier.scores_own()[rows[places]]
    wrong, certain = _told(classifier, data, Z, places)
    known = np.stack([rows[places] + block.lo, wrong.astype(np.int64)], axis=1).astype(np.int64)
    known, certain = shared(classifier.group, known), shared(classifier.group, certain)
    return known[np.lexsort((known[:, 0], certain, -known[:, 1]))[:count], 0]


def _told(
    classifier: Classifier, data: NodeData, Z: np.ndarray, places: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """[k] bool, which predictions are known to be wrong, and [k] float64 how certain they are."""
    goal, labels = classifier.goal, None if data.labels is None else data.labels[places]
    none = np.zeros(len(Z), dtype=bool)
    if goal.kind == "values":
        errors = np.zeros(Z.shape) if labels is None else np.nan_to_num(np.abs(Z - goal.scale.small(labels)))
        return none, -errors.sum(axis=1).astype(np.float64)
    likely = goal.probabilities(Z).astype(np.float64)
    if goal.kind == "labels":
        certain = np.abs(likely - 0.5).min(axis=1)
        known = None if labels is None else labels.astype(np.int64)
        wrong = none if known is None else ((goal.predicted(Z) != known) & (known >= 0)).any(axis=1)
        return wrong, certain
    top = np.sort(likely, axis=1)
    certain = top[:, -1] - top[:, -2] if Z.shape[1] > 1 else top[:, -1]
    wrong = none if labels is None else (goal.predicted(Z) != labels) & (labels >= 0)
    return wrong, certain


def _pair(u: str, v: str) -> str:
    """An edge as edge lists have it: a tab between names where one has a blank."""
    return f"{u}\t{v}" if " " in u + v else f"{u} {v}"


def _cell(what: Any) -> str:
    """A value of a CSV file, in quotes where it needs them."""
    text = str(what)
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in ',"\n\r') else text
