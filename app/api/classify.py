"""Classify from Python: nodes of a graph, whole graphs, folds; used by edges.py and links.py."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from mpi4py import MPI

from app.api.folds import CrossValidation, cross_validate
from app.api.given import Begun, check_given, digest_of_names, digests_of_table, setting
from app.api.graph import loaded_graph
from app.api.graphs import features_of_set, given_set, loaded_set, recipe_for
from app.api.learning import Asked, begin, course_of
from app.api.networks import Classification
from app.api.tune import Tuning
from app.comm.guard import raise_together
from app.errors import CaseError
from app.gnn.saved import SavedModel
from app.gnn.training import ended_early
from app.graphs.ids import named, plain_ids
from app.graphs.nodes.data import NodeData, with_holes
from app.graphs.nodes.memory import (
    ClassNames,
    names_of_columns,
    rows_of_nodes,
    splits_of,
    table_of_arrays,
    values_of_nodes,
)
from app.log import warn_caller
from app.partition.ids import ids_everywhere
from app.partition.loaded import Loaded
from app.partition.nodes import deal_node_table, known_by, with_degrees, with_random_splits
from app.tasks.context import Context
from app.tasks.levels.course import Learned, learn
from app.tasks.levels.nodes import (
    NodeExamples,
    called_of,
    gather_embeddings,
    gather_own,
    gather_predictions,
    gather_probabilities,
    told_by_members,
)
from app.tasks.levels.reading import with_edges
from app.threads import with_few_threads

OTHERS = {
    "link": "find_links",
    "edge": "classify_edges",
    "embed": "embed",
    "forecast": "forecast",
}  # by gnn.level, what is of it


@with_few_threads
def classify(
    graph: Any,
    features: Any = None,
    labels: Any = None,
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
) -> Classification | CrossValidation | Tuning:
    """Train a graph network on the nodes of a graph, or on a set of graphs, full batch; or apply weights.

    graph      a NetworkX graph, a SciPy sparse matrix, a file, an array or a DataFrame as for `solve`, whose
               nodes are in ascending order; graph.neighbours of the settings says whether the directions of
               edges count ("both": they do not). Or a set of graphs, each with a label: a list of such, an
               array [graphs, n, n], or a mapping of names to graphs; with "gnn.level": "graph" of the
               settings also a folder of several (graph.format "tu", "ogb")
    features   [n, F] numbers or a SciPy sparse matrix, rows in the order of the graph's nodes, or a mapping
               of nodes to rows, as a table of pandas is by its index; None: one for every node of its own.
               Of a set one of these for each graph, or rows of all nodes; None: degrees
    labels     [n] classes, -1 or None for none; [n, C] of 0 and 1, None or NaN where it is not known; or
               names, None or NaN for none; also a mapping of nodes to these; with settings={"gnn.goal":
               "values"} numbers [n] or [n, C] to be predicted, NaN for none. Of a set a row for each graph,
               as are train, val, test
    train, val, test   [n] bool, or nodes: labels of a NetworkX graph, nodes of a DataFrame, names of a file;
               else row numbers, also where labels are texts and nodes are not; none of them and
               settings={"graph.splits": "random"}: each labelled one with probability .6, .2, .2
    edge_features   of layers that read them ("gnn.model": "gine"): the name, or names, of edge attributes of
               NetworkX graphs or of columns of a DataFrame; or [edges, K] numbers, rows in the order of the
               edges; of a set names for all graphs, or rows for each. An edge that is given twice has equal
               rows, unless graph.neighbours keeps directions apart. Of a file graph.edge_features
    weights    a weights.npz, or what an earlier call returned: applied, or with "gnn.epochs" of the settings
               trained further
    folds      cross-validation: so many folds are drawn, each is tested by a network that is trained on the
               others, and a CrossValidation is returned; the fold after the tested one is for validation,
               with "study.fold_validation": "none" of the settings none is
    vary       settings to choose among by validation scores: a mapping of keys of [gnn] to lists of values,
               {"hidden": [16, 64]}, or to pairs (least, largest) that "study.trials" of the settings are
               drawn from; a Tuning is returned, of trainings with "study.seeds"
    settings   keys of a case, as {"gnn.model": "sage", "gnn.epochs": 100, "seed": 1}; of a set those of
               inputs/graphs.toml are there before
    comm       default: MPI.COMM_WORLD; all its ranks call with the same arguments, all get the same answer
    """
    begun = Begun(weights, "gnn", settings)
    given = given_set(graph, setting(settings, "gnn", "level") == "graph")
    recipe = {} if given is None else recipe_for(settings, weights)
    sets = {"train": train, "val": val, "test": test}
    asked = Asked(folds, vary, sets)
    context, model = begin(begun, asked, recipe, comm, verbose)
    _refuse_other_level(context.case.gnn.level)
    told = setting(settings, "graph", "neighbours") is not None
    directed = given.directed if given else hasattr(graph, "is_directed") and graph.is_directed()
    if directed and not told:
        said = "classify: the edges of a directed graph count in both directions"
        warn_caller(f'{said}; settings={{"graph.neighbours": "in"}} would keep them apart')
    if given is None:
        loaded, names = loaded_graph(context, graph, edge_features=edge_features)
        names = names or names_of_file(context, loaded)
    else:
        if context.case.gnn.level != "graph":
            right = 'one graph, or "gnn.level": "graph" of the settings, would be right'
            raise CaseError(f"graph: found a set of {len(given.graphs)} graphs; {right}")
        loaded, nodes = loaded_set(context, given, edge_features)
        names = given.names or names_of_file(context, loaded)
        with raise_together(context.group, "reading the features"):
            features = features_of_set(features, given, nodes, np.diff(loaded.members.starts) - 1)
    data = node_data(context, loaded, names, features, labels, sets)
    for text in data.warnings:
        warn_caller(text)
    data = with_edges(context, loaded, data, model)
    called = None if names is None else tuple(names)
    examples = NodeExamples(loaded, data, context.case.graph.neighbours, called)

    def train_once(chosen: Context) -> Classification:
        return _classified(chosen, examples, names, model)

    return asked.done(context, examples, train_once, partial(cross_validate, names=names))


def _refuse_other_level(level: str) -> None:
    """Raises CaseError where another call is of what is asked."""
    if level in OTHERS:
        said = f'classify is of nodes or graphs, {OTHERS[level]} of "{level}"'
        raise CaseError(f"settings: gnn.level: {said}")


def _classified(
    context: Context, examples: NodeExamples, names: list[Any] | None, model: SavedModel | None
) -> Classification:
    """Train, or apply, and what the call tells of it. Ranks: all call."""
    done, loaded = learn(context, examples, model), examples.loaded
    if said := ended_early(done.fit, done.classifier.case):
        warn_caller(f"classify: {said}")
    predicted = _predicted(loaded, done)
    if predicted.ndim == 1 and done.classifier.goal.kind != "values":
        _warn_of_one_class(predicted, done.classifier.data.classes, context.case.gnn.level)
    return Classification(
        predicted=predicted, nodes=list(range(len(predicted))) if names is None else names,
        scores=done.final, digest=done.digest, **course_of(done), **_asked(context, loaded, done),
        **_smoothed(done),
    )  # fmt: skip


def node_data(
    context: Context,
    loaded: Loaded,
    names: list[Any] | None,
    features: Any,
    labels: Any,
    sets: dict[str, Any],
) -> NodeData:
    """What a caller's arrays say of the nodes, those of a rank. Ranks: all call.

    names   of the nodes by their numbers, or None     sets   as `classify` takes them, by their names
    """
    group, members, values = context.group, loaded.members, context.case.gnn.goal == "values"
    n = loaded.graph.n if members is None else members.count
    right = "a node of the graph" if members is None else "a graph of the set"
    with raise_together(group, "reading the node data"):
        classes = ClassNames(None if values else labels, names, n, right)
        splits = splits_of(sets, names, right)
        numbers = values_of_nodes(labels, names, n, right) if values else classes.numbers
        table = table_of_arrays(
            rows_of_nodes(features, names, n) if members is None else features,
            numbers,
            **splits,
            n=n,
            values=values,
            names=classes.names,
            what=context.case.gnn.level,
            columns=names_of_columns(features),
        )
        table = with_holes(table, known_by(context.case))
        found = {} if group.size == 1 else digests_of_table(table)
    check_given(group, found | {"names of classes": digest_of_names(classes.names)})
    data = deal_node_table(group, table if group.rank == 0 else None, loaded)
    data = with_degrees(group, data, context.case.graph, loaded)
    if context.case.graph.splits == "random" and not any(each is not None for each in sets.values()):
        data = with_random_splits(group, data, loaded, context.case.seed)
    return data


def _predicted(loaded: Loaded, done: Learned) -> np.ndarray:
    """Classes, by name where they have names, or numbers, in the order of the nodes. Ranks: all call."""
    rows = by_node(loaded, gather_predictions(done))
    if rows.dtype.kind == "f":
        return rows[:, 0] if rows.shape[1] == 1 else rows
    return done.classifier.data.called(rows) if rows.ndim == 1 else rows


def _asked(context: Context, loaded: Loaded, done: Learned) -> dict[str, Any]:
    """What is asked for of every node, in the order of the nodes. Ranks: all call."""
    asked, found = context.case.output, {"explanations": done.explained}
    if asked.probabilities:
        each = by_node(loaded, gather_probabilities(done))
        named = done.classifier.data.called(np.arange(each.shape[1]))
        found |= {"probabilities": each, "classes": named}
    if asked.embeddings:
        found["embeddings"] = by_node(loaded, gather_embeddings(done))
    return found | certain_of(done, lambda own: by_node(loaded, gather_own(done, own)))


def certain_of(done: Learned, gather: Callable[[np.ndarray], np.ndarray]) -> dict[str, Any]:
    """How certain predictions are, where members or sets tell it.

    gather   rows of all, in the order of the caller, from own ones
    Ranks    all call
    """
    found: dict[str, Any] = {}
    if done.together is not None:
        told = told_by_members(done, gather)
        found |= {"spread": _narrow(told["spread"]), "members": [_narrow(each) for each in told["predicted"]]}
        if told["predicted"].ndim == 2:
            found["members"] = [called_of(done)[each] for each in found["members"]]
    if done.conformal is not None:
        found["coverage"] = done.conformal.told()
        if done.conformal.sets is None:
            rows = gather(done.conformal.intervals)
            found["intervals"] = rows[:, 0] if rows.shape[1] == 1 else rows
        else:
            called = called_of(done)
            found["sets"] = [tuple(called[row].tolist()) for row in gather(done.conformal.sets)]
    return found


def _narrow(rows: np.ndarray) -> np.ndarray:
    """Rows of numbers [n, 1] as [n]."""
    return rows[:, 0] if rows.dtype.kind == "f" and rows.ndim == 2 and rows.shape[1] == 1 else rows


def _smoothed(done: Learned) -> dict[str, Any]:
    """Of Correct and Smooth its settings, and the scores of the network alone."""
    return {} if done.smoothed is None else {"smooth": done.smoothed.told, "network": done.scores}


def by_node(loaded: Loaded, rows: np.ndarray) -> np.ndarray:
    """Rows [n, ...] in the order of the nodes, whatever graph.order is; changes them."""
    if loaded.order_all is not None:
        rows[loaded.order_all] = rows.copy()
    return rows


def names_of_file(context: Context, loaded: Loaded) -> list[str] | None:
    """The names of a file's nodes in ascending order; None where it has numbers. Ranks: all call."""
    if loaded.members is not None:
        return list(loaded.members.names) or None
    if not named(loaded.graph.ids):
        return None
    return sorted(plain_ids(ids_everywhere(context.group, loaded.graph, loaded.rows)))


def _warn_of_one_class(predicted: np.ndarray, classes: int, what: str) -> None:
    """Say where every node (or graph) is given the same class of several."""
    if classes > 1 and len(predicted) > 1 and (predicted == predicted[0]).all():
        said = f"classify: all {len(predicted)} {what}s are predicted to be of class {predicted[0]}"
        hint = f"more gnn.epochs, another gnn.learning_rate or features that tell {what}s apart may help"
        warn_caller(f"{said}; {hint}")
