"""Classify edges from Python: what the edges of a graph are."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from mpi4py import MPI

from app.api.classify import by_node, certain_of, names_of_file, node_data
from app.api.folds import CrossValidation, by_own_fold, called_by, run_folds, told_of_folds
from app.api.given import Begun, check_given, digest_of_arrays, digest_of_names, ids_of_pairs
from app.api.graph import loaded_graph
from app.api.learning import Asked, begin, course_of, recipe_of, refuse_level
from app.api.networks import EdgeClassification
from app.api.tune import Tuning
from app.comm.guard import raise_together
from app.errors import CaseError, GraphError
from app.gnn.training import ended_early
from app.graphs.formats.memory_edges import labels_of_edges
from app.graphs.ids import named, plain_ids
from app.graphs.nodes.data import SPLITS, Splits
from app.graphs.nodes.of_edges import EdgeLabels
from app.log import warn_caller
from app.partition.edge_labels import EdgeTable, deal_edge_table, load_edge_labels
from app.partition.ids import ids_everywhere
from app.partition.loaded import Loaded
from app.partition.pairs import rows_of_pairs
from app.tasks.context import Context
from app.tasks.levels.course import Learned, learn
from app.tasks.levels.edges import (
    EdgeExamples,
    gather_edge_predictions,
    gather_edge_probabilities,
    gather_edges,
    gather_node_rows,
    rows_of_edges,
)
from app.tasks.levels.reading import with_edges
from app.threads import with_few_threads

# What edges are learned by unless settings say otherwise: the table [gnn] of inputs/edges.toml.
RECIPE = {
    "gnn.level": "edge", "gnn.model": "sage", "gnn.depth": 2, "gnn.hidden": 32,
    "gnn.feature_rows": "as_given", "gnn.dropout": 0.0, "gnn.input_dropout": 0.0, "gnn.epochs": 200,
    "gnn.learning_rate": 0.01, "gnn.weight_decay": 0.0, "gnn.evaluate_every": 10, "gnn.keep": "best",
}  # fmt: skip
BY_LAYERS = ("model", "depth")  # of the recipe, which gnn.layers says of each layer


@with_few_threads
def classify_edges(
    graph: Any,
    labels: Any = None,
    features: Any = None,
    *,
    train: Any = None,
    val: Any = None,
    test: Any = None,
    edge_features: Any = None,
    weights: Any = None,
    folds: int | None = None,
    vary: dict[str, Any] | None = None,
    settings: dict[str, Any] | None = None,
    comm: MPI.Comm | None = None,
    verbose: bool = False,
) -> EdgeClassification | CrossValidation | Tuning:
    """Train a graph network on the edges of a graph, full batch, to say what they are; or apply weights.

    graph      as for `classify`; directions of edges do not count
    labels     of the edges: the name of an edge attribute of a NetworkX graph or of a column of a DataFrame;
               or a label for each edge, in the order of the edges; or a mapping of pairs of nodes to labels,
               edges that it lacks have none. A label is a class or its name, -1 or None (of names NaN too)
               for none, or a row as `classify` takes it; with settings={"gnn.goal": "values"} a number, or
               several, to be predicted. An edge that is given twice has equal labels. Of a file
               graph.edge_labels
    features   of the nodes, as for `classify`
    train, val, test   [edges] bool in the order of the edges, or pairs of nodes; none of them: each labelled
               edge with probability .6, .2, .2
    edge_features   as for `classify`; the network reads them whatever its layers are
    weights    a weights.npz, or what an earlier call returned: applied, or with "gnn.epochs" of the settings
               trained further
    folds, vary   as for `classify`: folds of the labelled edges, and settings to choose among by the scores
               of validation edges
    settings   keys of a case, over those of inputs/edges.toml
    comm       default: MPI.COMM_WORLD; all its ranks call with the same arguments, all get the same answer
    Raises GraphError for what is no graph or no edge of it, CaseError for wrong settings
    """
    begun, sets = Begun(weights, "gnn", settings), {"train": train, "val": val, "test": test}
    drawn = all(each is None for each in sets.values()) and not begun.applied and folds is None
    recipe = recipe_of(RECIPE, begun, BY_LAYERS, ("dropout",))
    asked = Asked(folds, vary, sets)
    recipe |= {"graph.edge_splits": "random"} if drawn else {}
    context, model = begin(begun, asked, recipe, comm, verbose)
    refuse_level(context, "edge")
    by_pairs = isinstance(labels, Mapping)
    listed = None if by_pairs else labels
    told = {"edge_features": edge_features, "edge_labels": listed, "listed": True}
    loaded, called = loaded_graph(context, graph, **told)
    if hasattr(graph, "is_directed") and graph.is_directed():
        warn_caller("classify_edges: the edges of a directed graph count in both directions")
    names = called or names_of_file(context, loaded)
    data = node_data(context, loaded, names, features, None, {})
    data = with_edges(context, loaded, data, model)
    ends = _listed_ends(loaded)
    about = _labels(context, loaded, called, labels if by_pairs else None, sets, ends)
    for text in about.about.warnings:
        warn_caller(text)
    known = None if names is None else tuple(names)
    examples, order = EdgeExamples(loaded, data, about, known), Order.of(context, loaded, called, ends)

    def train_once(chosen: Context) -> EdgeClassification:
        done = learn(chosen, examples, model)
        if said := ended_early(done.fit, done.classifier.case):
            warn_caller(f"classify_edges: {said}")
        return _told(done, order, names)

    return asked.done(context, examples, train_once, partial(_crossed, order=order, names=names))


@dataclass(frozen=True)
class Order:
    """The edges as a caller lists them.

    at      [k] where each stands among all edges [m, 2] of rows; None: they are in that order
    pairs   its ends, as the caller calls them
    """

    at: np.ndarray | None
    pairs: list[tuple[Any, Any]]

    @classmethod
    def of(
        cls, context: Context, loaded: Loaded, called: list[Any] | None, ends: np.ndarray | None
    ) -> "Order":
        """called: labels of nodes of a graph in memory; ends: what `_listed_ends` says. Ranks: all call."""
        edges, at = gather_edges(context.group, loaded), None
        pairs = edges
        if ends is not None:
            ends = ends[ends[:, 0] != ends[:, 1]]
            at = _places(loaded, edges, ends)
            pairs = ends if loaded.order_all is None else np.argsort(loaded.order_all)[ends]
        ids = ids_everywhere(context.group, loaded.graph, loaded.rows)
        texts = plain_ids(ids) if called is None else [called[i] for i in ids.tolist()]
        return cls(at, [(texts[u], texts[v]) for u, v in pairs.tolist()])

    def listed(self, rows: np.ndarray) -> np.ndarray:
        """Rows of all edges as the caller lists these."""
        return rows if self.at is None else rows[self.at]


def _crossed(
    context: Context, examples: EdgeExamples, order: Order, names: list[Any] | None
) -> CrossValidation:
    """Folds of labelled edges. Ranks: all call."""
    drawn, both = run_folds(context, examples)
    runs, about = [run for _, run in both], examples.labels.once()
    fold_own = drawn[examples.labels.first]
    rows = by_own_fold(about, runs, fold_own), fold_own
    predicted, fold = (order.listed(rows_of_edges(context.group, each)) for each in rows)
    return CrossValidation(
        predicted=called_by(about, predicted), fold=fold, edges=order.pairs,
        nodes=list(range(examples.loaded.graph.n)) if names is None else names,
        **told_of_folds(examples, runs),
    )  # fmt: skip


def _listed_ends(loaded: Loaded) -> np.ndarray | None:
    """[k, 2] int64 the ends of the edges as a caller lists them, without loops, by the numbers that nodes had
    before they were ordered; None of a matrix and of a file."""
    if loaded.source != "memory" or loaded.stream is None:
        return None
    pairs = [np.stack([u, v], axis=1).astype(np.int64) for u, v, _ in loaded.stream.chunks()]
    return np.concatenate([np.empty((0, 2), dtype=np.int64), *pairs])


def _labels(
    context: Context, loaded: Loaded, called: list[Any] | None, by_pairs: Any, sets: dict[str, Any],
    ends: np.ndarray | None,
) -> EdgeLabels:  # fmt: skip
    """What a caller, or the files of a graph, say of its edges. Ranks: all call.

    called   labels of the nodes     by_pairs   a mapping of pairs to labels, or None     ends   see above
    """
    group, values = context.group, context.case.gnn.goal == "values"
    table, found = EdgeTable(), {}
    with raise_together(group, "reading the labels of edges"):
        if by_pairs is None and loaded.stream is not None and loaded.source == "memory":
            table = EdgeTable(loaded.stream.edge_labels(values))
        elif by_pairs is not None:
            table = EdgeTable(labels_of_edges(list(by_pairs.values()), values))
        if table.labels is not None:
            found["labels"] = digest_of_arrays(*table.labels.parts()) + digest_of_names(table.labels.names)
    check_given(group, {"labels": found.get("labels", "none")})
    if by_pairs is not None:
        table = replace(table, label_ends=_ends_of(context, loaded, called, list(by_pairs), "labels"))
    flags, pairs = [], []
    for name, given in sets.items():
        each = _ends_of_set(context, loaded, called, given, name, ends)
        pairs.append(each)
        flags.append(np.full(len(each), SPLITS[name], dtype=np.uint8))
    if any(given is not None for given in sets.values()):
        splits = Splits(np.concatenate(flags), lambda text: GraphError(f"train, val, test: {text}"))
        table = replace(table, splits=splits, split_ends=np.concatenate(pairs))
    if loaded.source != "memory" and by_pairs is None and table.splits is None:
        return load_edge_labels(group, loaded, context.case)
    if loaded.source != "memory" and by_pairs is None:
        right = "graph.edge_splits of the settings would be right beside labels of a file"
        raise CaseError(f"train, val, test: {right}")
    return deal_edge_table(group, table, loaded, context.case)


def _ends_of_set(
    context: Context, loaded: Loaded, called: list[Any] | None, given: Any, name: str,
    ends: np.ndarray | None,
) -> np.ndarray:  # fmt: skip
    """[k, 2] the ends of the edges of a set, as `_listed_ends` has them. Ranks: all call."""
    flags = None
    with raise_together(context.group, f"reading {name}"):
        if given is not None and (flags := _flags(given)) is not None:
            if ends is None:
                right = "pairs of nodes would be right"
                raise GraphError(f"{name}: found True and False for edges that have no order; {right}")
            if len(flags) != len(ends):
                right = f"{len(ends)}, one for each edge, would be right"
                raise GraphError(f"{name}: found {len(flags)} rows; {right}")
    check_given(context.group, {name: "none" if flags is None else digest_of_arrays(flags)})
    if flags is not None:
        return ends[flags]
    return np.empty((0, 2), np.int64) if given is None else _ends_of(context, loaded, called, given, name)


def _flags(given: Any) -> np.ndarray | None:
    """[k] bool, where that is what is given; None of anything else."""
    found = given.to_numpy() if hasattr(given, "to_numpy") else given
    if isinstance(found, np.ndarray):
        return found if found.dtype.kind == "b" and found.ndim == 1 else None
    listed = isinstance(found, list | tuple) and len(found) > 0
    return np.array(found) if listed and all(isinstance(each, bool | np.bool_) for each in found) else None


def _ends_of(context: Context, loaded: Loaded, called: list[Any] | None, given: Any, name: str) -> np.ndarray:
    """[k, 2] the ends of pairs of nodes that a caller names. Ranks: all call. Raises GraphError on all."""
    with raise_together(context.group, f"reading {name}"):
        ids = ids_of_pairs(given, called, named(loaded.graph.ids), name)
    check_given(context.group, {name: digest_of_arrays(ids)})
    rows = rows_of_pairs(context.group, loaded, ids, name)
    return rows if loaded.order_all is None else loaded.order_all[rows]


def _told(done: Learned, order: Order, names: list[Any] | None) -> EdgeClassification:
    """What the call tells; names: of the nodes by their numbers, or None. Ranks: all call."""
    context, loaded = done.context, done.examples.loaded
    about, asked = done.classifier.about, context.case.output
    predicted = order.listed(gather_edge_predictions(done))
    found: dict[str, Any] = {"explanations": done.explained}
    if asked.probabilities:
        found["probabilities"] = order.listed(gather_edge_probabilities(done))
        found["classes"] = about.called(np.arange(done.classifier.classes))
    if asked.embeddings:
        found["embeddings"] = by_node(loaded, gather_node_rows(done))
    found |= certain_of(done, lambda own: order.listed(rows_of_edges(context.group, own)))
    if predicted.dtype.kind == "f":
        predicted = predicted[:, 0] if predicted.shape[1] == 1 else predicted
    elif predicted.ndim == 1:
        predicted = about.called(predicted)
    return EdgeClassification(
        predicted=predicted, nodes=list(range(loaded.graph.n)) if names is None else names,
        scores=done.scores, digest=done.digest, **course_of(done), **found, edges=order.pairs,
    )  # fmt: skip


def _places(loaded: Loaded, edges: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """[k] where the edges with some ends [k, 2], old numbers, stand among all edges [m, 2] of rows."""
    rows = ends if loaded.order_all is None else np.argsort(loaded.order_all)[ends]
    n, low, high = loaded.graph.n, rows.min(axis=1), rows.max(axis=1)
    return np.searchsorted(edges[:, 0] * n + edges[:, 1], low * n + high)
