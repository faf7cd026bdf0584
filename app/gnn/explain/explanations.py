"""Explanations of single predictions: by which rank, and in the words of the user."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.comm.guard import raise_together
from app.gnn.categories import Categories
from app.gnn.classifier import Classifier
from app.gnn.explain.attribution import PATHS, WAYS, Attribution, Shape, attribute
from app.gnn.explain.field import Field, Fields
from app.gnn.explain.network import FieldNetwork, Trained, entry_bytes, reach_of
from app.gnn.explain.which import known_scores
from app.gnn.positions import names_of
from app.graphs.nodes.data import NodeData

KEY = "output.explain"
LISTED = 100  # edges, features and neighbours of a prediction that its file names, the largest first
HEAD = "node,kind,what,contribution"
WORDS = {"gradient": "by gradients", "degree": "by degrees", "random": "drawn"}

Named = Callable[[np.ndarray], list[Any]]  # what rows are called


@dataclass(frozen=True, eq=False)
class Explanation:
    """What made one prediction.

    node           what is explained: a node, a graph of a set, both ends of an edge or a pair, or a triple
    predicted      its class, or a label, or of numbers the column; of a pair "joined" or "apart", or "score"
                   where scores are no probabilities
    score          that is explained: of a class of several its score less the mean of all classes', of a
                   label or a pair its score, of values the number itself
    bare, blank, plain   the same without edges, without features of nodes, and without those of edges
    edges          (u, v) of its receptive field, of a directed graph tail and head, of a knowledge graph
                   (subject, relation, object); those with the largest
                   contributions first, of either sign: of_edges [m] float64, which add up to score - bare
    gradients      [m] float64 of the score by a mask of each edge's messages, where all are heard
    features       columns by their names, or numbers from 0, positions by what they are, likewise:
                   of_features, which add up to score - blank; none where each node has a feature of its own
    neighbours     nodes of the field, itself among them, by what their features bring: of_neighbours, which
                   add up to the same
    edge_features  columns of the features of edges, where these are read: of_edge_features, which add up to
                   score - plain
    spread         of several networks the deviations over them of all contributions, by "edges", "features",
                   "neighbours" and "edge features", in their order; contributions are means. Empty of one
    missing        what contributions of edges, of features, and of those of edges, lack of these sums
    taken          a tenth of the edges, at least one
    fell, changed  without so many edges, chosen by "explained" (contributions), "gradient", "degree" or
                   "random": how much the score falls, and how often the prediction is another
    """

    node: Any
    predicted: Any
    score: float
    bare: float
    blank: float
    plain: float
    edges: list[tuple[Any, Any]]
    of_edges: np.ndarray
    gradients: np.ndarray
    features: list[Any]
    of_features: np.ndarray
    neighbours: list[Any]
    of_neighbours: np.ndarray
    edge_features: list[Any]
    of_edge_features: np.ndarray
    spread: dict[str, np.ndarray]
    missing: tuple[float, ...]
    taken: int
    fell: dict[str, float]
    changed: dict[str, float]

    def lines(self) -> Iterator[str]:
        """Of explanations/NAME.csv; of several networks with the deviations."""
        begun, blank = _cell(self.called), "," * bool(self.spread)
        yield f"{begun},score,{_cell(self.predicted)},{self.score:.6g}{blank}\n"
        yield f"{begun},score,without edges,{self.bare:.6g}{blank}\n"
        yield f"{begun},score,without features,{self.blank:.6g}{blank}\n"
        if len(self.edge_features):
            yield f"{begun},score,without edge features,{self.plain:.6g}{blank}\n"
        edges = (_line(*map(str, each)) for each in self.edges)
        for kind, key, each, parts in (
            ("edge", "edges", edges, self.of_edges),
            ("feature", "features", self.features, self.of_features),
            ("neighbour", "neighbours", self.neighbours, self.of_neighbours),
            ("edge feature", "edge features", self.edge_features, self.of_edge_features),
        ):
            count, away = np.count_nonzero(parts), self.spread.get(key)
            for i, (what, part) in enumerate(zip(each, parts[: min(count, LISTED)].tolist())):
                apart = "" if away is None else f",{away[i]:.6g}"
                yield f"{begun},{kind},{_cell(what)},{part:.6g}{apart}\n"
            if count > LISTED:
                yield f"{begun},{kind},{count - LISTED} others,{parts[LISTED:].sum():.6g}{blank}\n"

    @property
    def called(self) -> str:
        """What is explained, as a file has it: ends as an edge list has them."""
        return _line(*map(str, self.node)) if isinstance(self.node, tuple) else str(self.node)


@dataclass(frozen=True, eq=False)
class Explanations:
    """Of several predictions, in the order in which they were asked for.

    each      of them     left_out   (node, MB of its receptive field) of those whose fields are too large
    what      "node", "graph", "edge", "link" or "triple"
    numbers   are predicted, no classes: `changed` says nothing
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
    def missing(self) -> tuple[float, ...]:
        """The largest parts of a score that contributions of edges, of features, and of features of edges,
        lack of what they should add up to."""
        none = (0.0,) * len(PATHS)
        worst = np.abs([each.missing for each in self.each] or [none]).max(axis=0)
        return tuple(worst.tolist())

    @property
    def _paths(self) -> tuple[str, ...]:
        """What has contributions."""
        return PATHS if any(each.edge_features for each in self.each) else PATHS[:2]

    def _means(self, of: Callable[[Explanation], dict[str, float]]) -> dict[str, float]:
        some = [of(each) for each in self.each if each.taken]
        return {name: float(np.mean([one[name] for one in some])) for name in WAYS} if some else {}

    def told(self) -> dict[str, Any]:
        """What result.json holds."""
        return {
            "explained": len(self.each), "left_out": len(self.left_out),
            "edges": float(np.mean([len(each.edges) for each in self.each] or [0])),
            "fell": self.fell, "changed": self.changed,
            "missing": {path.replace(" ", "_"): each for path, each in zip(self._paths, self.missing)},
        }  # fmt: skip

    def log_lines(self) -> Iterator[str]:
        """For the log."""
        told = self.told()
        some = f"{len(self.each)} {self.what}{'s' * (len(self.each) != 1)}"
        first, *rest = zip(self._paths, self.missing)
        others = "".join(f", of {path} {each:.2g}" for path, each in rest)
        yield (
            f"explanations: {some}, {told['edges']:.1f} edges of each in the mean; "
            f"contributions of {first[0]} lack at most {first[1]:.2g} of their sum{others}"
        )
        if fell := self.fell:
            others = ", ".join(f"{words} {fell[way]:.4g}" for way, words in WORDS.items())
            yield f"without a tenth of the edges scores fall by {fell['explained']:.4g} (edges {others})"
        if other := {way: 100 * share for way, share in self.changed.items()}:
            others = ", ".join(f"{words} {other[way]:.1f} %" for way, words in WORDS.items())
            yield f"and {other['explained']:.1f} % of the predictions change ({others})"

    def text(self) -> str:
        """Lines of node, kind, what and contribution, and of several networks the deviation, for a file."""
        head = f"{HEAD},deviation" if any(each.spread for each in self.each) else HEAD
        return f"{head}\n" + "".join(line for each in self.each for line in each.lines())


@dataclass(frozen=True)
class Columns:
    """What columns of features are called, of nodes and of edges; None: by their numbers, from 0."""

    features: tuple[str, ...] | None = None
    edge_features: tuple[str, ...] | None = None

    @classmethod
    def of(cls, data: NodeData) -> "Columns":
        """Those of the data."""
        edges = data.edges.columns if data.edges is not None else ()
        return cls(data.columns or None, edges or None)


def explain(
    classifier: Classifier,
    masked: Any,
    members: Sequence[dict[str, np.ndarray]],
    rows: np.ndarray,
    called: Named,
    columns: Columns,
    most: int,
    seed: int,
    turned: bool,
) -> Explanations:
    """Explain the scores of some rows, of a set of graphs their own rows, or of edges or pairs.

    masked   a host device with MaskedAttention, MaskedAggregation and MaskedEdgeSums
    members  the weights of each network; the classifier's are those of the first one after it
    rows     [k] int64, or [k, 2] the ends of edges or pairs, u < v
    called   names of rows     columns   of columns     most   bytes of a receptive field
    seed     of what is drawn
    turned   nodes hear the heads of their arcs (graph.neighbours = "out")
    Ranks    all call; result identical on all. Raises Diverged where scores are not finite
    """
    group, trained = classifier.group, [Trained(classifier, masked, weights) for weights in members]
    width, model = classifier.engine.plan.columns, classifier.model
    of_entry, rows = entry_bytes(model, width), _ends(rows)
    fields = Fields(classifier, reach_of(model), most, width, of_entry, len(members))
    known = known_scores(classifier, members, rows)
    named = _Named(classifier, called, columns, turned)
    each: list[Explanation] = []
    left_out: list[tuple[Any, float]] = []
    for at in range(0, len(rows), group.size):
        some = [fields.of(row) for row in rows[at : at + group.size]]
        numbers = np.zeros(0)
        with raise_together(group, "explaining predictions"):
            mine = some[group.rank] if group.rank < len(some) else 0
            if isinstance(mine, Field):
                networks = [FieldNetwork(one, mine) for one in trained]
                scores = known[:, at + group.rank]
                numbers = attribute(networks, classifier.block.directed, scores, seed).packed()
        for root, found in enumerate(some):
            if isinstance(found, int):
                left_out.append((named.row(rows[at + root]), found / 1e6))
                continue
            shape = named.shape(found, len(members))
            numbers_of = group.broadcast(numbers if group.rank == root else np.zeros(shape.size(found)), root)
            each.append(named.told(Attribution.unpacked(found, shape, numbers_of)))
    numbers_told = classifier.goal.kind == "values" or named.unlikely
    return Explanations(tuple(each), tuple(left_out), classifier.case.level, numbers_told)


def _ends(rows: np.ndarray) -> np.ndarray:
    """[k, 1|2] rows, of single ones too."""
    return rows.reshape(len(rows), -1)


class _Named:
    """Attributions by the user's names, the largest contributions first."""

    def __init__(self, classifier: Classifier, called: Named, columns: Columns, turned: bool) -> None:
        self.classifier, self.called, self.columns, self.turned = classifier, called, columns, turned
        self.features = columns.features or _numbered(classifier)
        links = getattr(classifier, "links", None)
        self.unlikely = links is not None and links.loss != "logistic"  # scores that are no probabilities

    def row(self, rows: np.ndarray) -> Any:
        """What is explained [1|2]."""
        names = self.called(rows)
        return names[0] if len(rows) == 1 else tuple(names)

    def shape(self, field: Field, members: int) -> Shape:
        """How many numbers an attribution has."""
        read = field.E is not None or field.of_edge is not None
        width = self.classifier.edge_columns.width if read else 0
        return Shape(self.classifier.block.directed, members, width)

    def told(self, found: Attribution) -> Explanation:
        """An attribution in words."""
        field, parts, away = found.field, found.parts, found.spread
        orders = {"edges": order_of(parts.of_edges)}
        ends = found.edges[orders["edges"]]
        edges = list(zip(*(self.called(ends[:, side]) for side in ((1, 0) if self.turned else (0, 1)))))
        features, of_features = self._by_feature(found)
        edge_features, of_edge_features = self._by_edge_feature(parts.of_edge_features)
        nodes = field.nodes != field.rows[0] if field.whole else np.ones(len(field.nodes), dtype=bool)
        of_nodes = parts.of_nodes[nodes]
        orders |= {"features": order_of(of_features), "neighbours": order_of(of_nodes)}
        orders["edge features"] = order_of(of_edge_features)
        spread = {}
        if away is not None:
            deviations = away.of_edges, self._by_feature(found, True)[1], away.of_nodes[nodes]
            others = self._by_edge_feature(away.of_edge_features, True)[1]
            spread = {key: each[orders[key]] for key, each in zip(orders, (*deviations, others))}
        by = orders["features"], orders["neighbours"], orders["edge features"]
        return Explanation(
            self.row(field.rows), self._predicted(found), found.score, found.bare, found.blank, found.plain,
            edges, parts.of_edges[orders["edges"]], parts.gradients[orders["edges"]],
            [features[i] for i in by[0]], of_features[by[0]],
            self.called(field.nodes[nodes][by[1]]), of_nodes[by[1]],
            [edge_features[i] for i in by[2]], of_edge_features[by[2]], spread,
            found.missing, found.taken, found.fell, found.changed,
        )  # fmt: skip

    def _predicted(self, found: Attribution) -> Any:
        kind = self.classifier.goal.kind
        if kind == "links":
            return "score" if self.unlikely else ("joined" if found.score > 0 else "apart")
        if kind == "values":
            return found.column
        return self.classifier.about.called(np.array([found.column])).tolist()[0]

    def _by_feature(self, found: Attribution, apart: bool = False) -> tuple[list[Any], np.ndarray]:
        """Columns of the data, and their contributions, or what these are apart; of categories a feature has
        several."""
        if not self.classifier.data.width:
            return [], np.empty(0)
        values = (found.spread if apart else found.parts).of_features
        return _given(found.field.used, self.classifier.inputs, values, self.features, apart)

    def _by_edge_feature(self, values: np.ndarray, apart: bool = False) -> tuple[list[Any], np.ndarray]:
        """Columns of the features of edges, likewise; none where these are not read."""
        if not len(values):
            return [], np.empty(0)
        inputs = self.classifier.edge_columns.inputs
        return _given(np.arange(len(values)), inputs, values, self.columns.edge_features, apart)


def _numbered(classifier: Classifier) -> tuple[Any, ...] | None:
    """Numbers of columns that have no names, from 0, and what positions after them are called; None: there
    are no positions."""
    data, inputs = classifier.data, classifier.inputs
    if not data.beside:
        return None
    given = len(inputs.values) if isinstance(inputs, Categories) else data.width - data.beside
    return (*range(given), *names_of(classifier.case.positions))


def _given(
    used: np.ndarray, inputs: Any, values: np.ndarray, names: tuple[Any, ...] | None, apart: bool
) -> tuple[list[Any], np.ndarray]:
    """Columns of the data by their names or numbers, and sums over those [k] that each has become; of
    deviations the root of the sum of squares, as of numbers that have nothing to do with each other."""
    columns = used
    if isinstance(inputs, Categories):
        starts = inputs.starts_within(int(columns.max(initial=-1)) + 1)
        columns = np.searchsorted(starts, columns, side="right") - 1
    features, which = np.unique(columns, return_inverse=True)
    sums = np.bincount(which.reshape(-1), weights=values**2 if apart else values, minlength=len(features))
    numbers = features.tolist()
    return numbers if names is None else [names[i] for i in numbers], np.sqrt(sums) if apart else sums


def order_of(parts: np.ndarray) -> np.ndarray:
    """[m], the order of contributions [m], the largest ones of either sign first."""
    return np.argsort(-np.abs(parts), kind="stable")


# ---- in words ---------------------------------------------------------------------------------------------


def _line(*names: str) -> str:
    """An edge, or a triple, as their lists have it: a tab between names where one has a blank."""
    return ("\t" if any(" " in each for each in names) else " ").join(names)


def _cell(what: Any) -> str:
    """A value of a CSV file, in quotes where it needs them."""
    text = str(what)
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in ',"\n\r') else text
