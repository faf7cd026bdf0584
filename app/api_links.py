"""Links from Python: which nodes of a graph are likely to be joined."""

from collections.abc import Iterable, Sized
from typing import Any

import numpy as np
from mpi4py import MPI

from app.api_classify import by_node, names_of_file, node_data
from app.api_given import Begun, check_given, digest_of_arrays, refuse_data_keys, setting
from app.api_graph import loaded_graph
from app.case.file import merged
from app.comm.guard import raise_together
from app.errors import CaseError, GraphError
from app.gnn.saved import ARCHITECTURE, SavedModel
from app.graphs.formats.source import shown
from app.graphs.ids import ids_of_names, named, plain_ids
from app.graphs.nodes.memory import numbers_of
from app.partition.ids import ids_everywhere
from app.partition.load import Loaded
from app.partition.pairs import rows_of_pairs
from app.results import FoundLinks
from app.tasks.context import Context, context_of_settings
from app.tasks.find_links import GivenPairs, gather_rows, learn_edges, saved_of
from app.text import is_whole
from app.threads import with_few_threads

# What links are learned by unless settings say otherwise: the table [gnn] of inputs/links.toml.
RECIPE = {
    "gnn.level": "link", "gnn.model": "gcn", "gnn.depth": 2, "gnn.hidden": 64, "gnn.dropout": 0.0,
    "gnn.input_dropout": 0.0, "gnn.epochs": 100, "gnn.learning_rate": 0.01, "gnn.weight_decay": 0.0,
    "gnn.evaluate_every": 10, "gnn.keep": "best",
}  # fmt: skip
BY_LAYERS = ("model", "depth", "hidden")  # of the recipe, which gnn.layers says of each layer
ARGUMENTS = ("val", "test", "pairs")


@with_few_threads
def find_links(
    graph: Any,
    features: Any = None,
    *,
    val: Any = None,
    test: Any = None,
    pairs: Any = None,
    weights: Any = None,
    settings: dict[str, Any] | None = None,
    comm: MPI.Comm | None = None,
    verbose: bool = False,
) -> FoundLinks:
    """Learn from a graph's edges which of its nodes are likely to be joined; or apply weights.

    graph      as for `classify`; directions of edges do not count
    features   as for `classify`; None: one for every node of its own
    val, test  edges [k, 2], as pairs of nodes as `classify` names them, that are not learned from: to choose
               the weights by, and to tell how good scores are; None: shares links.validation, links.held_out
    pairs      pairs of nodes to be told how likely they are joined; None: the held-out edges
    weights    a weights.npz, or what an earlier call returned: applied, or with "gnn.epochs" of the settings
               trained further
    settings   keys of a case, as {"gnn.model": "sage", "links.propose": 20, "seed": 1}, over those of
               inputs/links.toml; links.propose: how many of the likeliest pairs without an edge to return
    comm       default: MPI.COMM_WORLD; all its ranks call with the same arguments, all get the same answer
    Raises GraphError for what is no graph or no pair of it, CaseError for wrong settings
    Source     Kipf and Welling 2016 (GAE)
    """
    begun = Begun(weights, "gnn", settings)
    chosen = merged({"run.task": "classify"}, _recipe(settings, weights), settings, begun.keys())
    context, model = begun.put(context_of_settings(chosen, comm, verbose), SavedModel)
    refuse_data_keys(context.case, "classify")
    if context.case.gnn.level != "link":
        raise CaseError(f'settings: gnn.level: must be "link", got "{context.case.gnn.level}"; leave it out')
    loaded, labels = loaded_graph(context, graph)
    names = labels or names_of_file(context, loaded)
    data = node_data(context, loaded, names, features, None, {})
    given = GivenPairs(
        *(_rows(context, loaded, labels, *each) for each in zip((val, test, pairs), ARGUMENTS))
    )
    done = learn_edges(context, loaded, data, given, model)
    ids = ids_everywhere(context.group, loaded.graph, loaded.rows)
    called = plain_ids(ids) if labels is None else [labels[i] for i in ids.tolist()]
    told, proposed = (
        [(called[u], called[v]) for u, v in part[0].tolist()] for part in (done.told, done.proposed)
    )
    losses = [row["loss"] for row in done.fit.records]
    rows = by_node(loaded, gather_rows(done))
    return FoundLinks(
        told, done.told[1], list(zip(proposed, done.proposed[1].tolist())), done.scores, done.plain,
        list(range(len(rows))) if names is None else names, rows, done.fit.epochs,
        losses[-1] if losses else None, done.fit.seconds, done.digest, done.fit.records, saved_of(done),
    )  # fmt: skip


def _recipe(settings: Any, weights: Any) -> dict[str, Any]:
    """The recipe without the keys that gnn.layers of the settings, or given weights, say otherwise."""
    begun = weights is not None or setting(settings, "gnn", "weights")
    told = BY_LAYERS if setting(settings, "gnn", "layers") else ()
    told = [key for key in ARCHITECTURE if key != "level"] if begun else told
    return {key: value for key, value in RECIPE.items() if key.removeprefix("gnn.") not in told}


def _rows(
    context: Context, loaded: Loaded, labels: list[Any] | None, given: Any, name: str
) -> np.ndarray | None:
    """[k, 2] the rows of pairs that a caller names. Ranks: all call. Raises GraphError on all."""
    ids = None
    with raise_together(context.group, f"reading {name}"):
        if given is not None:
            ids = _ids(given, labels, named(loaded.graph.ids), name)
    check_given(context.group, {name: "none" if ids is None else digest_of_arrays(ids)})
    return None if ids is None else rows_of_pairs(context.group, loaded, ids, name)


def _ids(given: Any, labels: list[Any] | None, texts: bool, name: str) -> np.ndarray:
    """[k, 2] the ids of pairs of nodes."""
    right = "pairs of nodes would be right"
    given = given.tolist() if isinstance(given, np.ndarray) else given
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise GraphError(f"{name}: found {shown(repr(given))}; {right}")
    given = list(given)
    for each in given:
        if isinstance(each, str) or not isinstance(each, Sized) or len(each) != 2:
            raise GraphError(f"{name}: found {shown(repr(each))}; {right}")
    ends = [node for each in given for node in each]
    if labels is not None:
        found = np.array(numbers_of(ends, labels, name), dtype=np.int64)
    elif texts:
        found = ids_of_names(ends, name)
    else:
        wrong = [node for node in ends if not (is_whole(node) and 0 <= node < 1 << 63)]
        if wrong:
            raise GraphError(f"{name}: found node {shown(repr(wrong[0]))}; numbers of nodes would be right")
        found = np.array(ends, dtype=np.int64)
    return found.reshape(-1, 2)
