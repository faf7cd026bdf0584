"""Vectors of nodes from Python, learned without labels; their clusters, and how much they tell of labels."""

from typing import Any

import numpy as np
from mpi4py import MPI

from app.api.classify import by_node, names_of_file, node_data
from app.api.given import Begun
from app.api.graph import loaded_graph
from app.api.learning import Asked, begin, course_of, recipe_of, refuse_level
from app.api.networks import Embedding
from app.case.graph import WORDS
from app.comm.guard import digest, raise_together
from app.errors import CaseError
from app.tasks.context import Context
from app.tasks.levels.course import Learned, learn
from app.tasks.levels.reading import with_edges
from app.tasks.levels.vectors import VectorExamples
from app.threads import with_few_threads

# What vectors are learned by unless settings say otherwise: the table [gnn] of inputs/embed.toml.
RECIPE = {
    "gnn.level": "embed", "gnn.model": "gcn", "gnn.depth": 2, "gnn.hidden": 128, "gnn.dropout": 0.0,
    "gnn.input_dropout": 0.0, "gnn.epochs": 100, "gnn.learning_rate": 0.001, "gnn.weight_decay": 0.0,
    "gnn.evaluate_every": 10,
}  # fmt: skip
BY_LAYERS = ("model", "depth", "hidden")  # of the recipe, which gnn.layers says of each layer
OF_HIDDEN = ("hidden", "dropout")  # of the recipe, which a single layer does not read


@with_few_threads
def embed(
    graph: Any,
    features: Any = None,
    labels: Any = None,
    *,
    dimension: int | None = None,
    clusters: int | None = None,
    train: Any = None,
    val: Any = None,
    test: Any = None,
    edge_features: Any = None,
    weights: Any = None,
    settings: dict[str, Any] | None = None,
    comm: MPI.Comm | None = None,
    verbose: bool = False,
) -> Embedding:
    """Learn a vector for each node of a graph without labels, full batch; or apply weights.

    graph      as for `classify`; graph.neighbours of the settings says whether directions count
    features   of the nodes, as for `classify`; None: their degrees
    labels     of the nodes, as for `classify`, one class each or several: nothing is learned of them but,
               with train (val, test), a linear classifier of the vectors, which tells how good these are and
               what the other nodes may be; clusters are held against them
    dimension  columns of the vectors; None: 64, or those of the weights
    clusters   how many clusters the vectors are put in; None: as many as there are classes, without labels
               none
    train, val, test   as for `classify`
    edge_features   as for `classify`, of layers that read them
    weights    a weights.npz, or what an earlier call returned: applied, or with "gnn.epochs" of the settings
               trained further
    settings   keys of a case, as {"gnn.model": "sage", "embed.edge_drop": 0.2, "seed": 1}, over those of
               inputs/embed.toml
    comm       default: MPI.COMM_WORLD; all its ranks call with the same arguments, all get the same answer
    Raises GraphError for what is no graph, CaseError for wrong settings
    Source     Zhang et al. 2021 (CCA-SSG)
    """
    begun, sets = Begun(weights, "gnn", settings), {"train": train, "val": val, "test": test}
    recipe = recipe_of(RECIPE, begun, BY_LAYERS, OF_HIDDEN)
    recipe |= {"graph.features": WORDS["features"]} if features is None else {}
    given = {"embed.dimension": dimension, "embed.clusters": clusters}
    recipe |= {key: value for key, value in given.items() if value is not None}
    context, model = begin(begun, Asked(None, None, {}, (), ()), recipe, comm, verbose)
    refuse_level(context, "embed")
    with raise_together(context.group, "reading the settings"):
        _refuse_twice(context, given)
    loaded, names = loaded_graph(context, graph, edge_features=edge_features)
    names = names or names_of_file(context, loaded)
    data = node_data(context, loaded, names, features, labels, sets)
    data = with_edges(context, loaded, data, model)
    examples = VectorExamples(loaded, data, context.case.embed, context.case.graph.neighbours)
    return _told(learn(context, examples, model), names)


def _refuse_twice(context: Context, given: dict[str, int | None]) -> None:
    """Raise CaseError where an argument and the settings say different things."""
    for key, value in given.items():
        name = key.partition(".")[2]
        found = getattr(context.case.embed, name)
        if value is not None and found != value:
            raise CaseError(f"settings: {key}: found {found} beside {name}={value}; leave either out")


def _told(done: Learned, names: list[Any] | None) -> Embedding:
    """What the call tells. Ranks: all call."""
    found, scores, loaded = done.examples.answer(done.context, done), done.scores, done.examples.loaded
    told = digest({**done.examples.digested(found), **done.fit.weights})
    rows = lambda each: None if each is None else by_node(loaded, np.array(each))  # noqa: E731
    predicted = rows(found.predicted)
    if predicted is not None and predicted.ndim == 1:
        predicted = scores.probe.data.called(predicted)
    return Embedding(
        vectors=rows(found.vectors), clusters=rows(found.clusters), predicted=predicted,
        nodes=list(range(len(found.vectors))) if names is None else names, scores=scores.probed,
        measures=done.examples.measures_of(scores), digest=told, **course_of(done),
    )  # fmt: skip
