"""Links from Python: which nodes of a graph are likely to be joined."""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from mpi4py import MPI

from app.api.classify import by_node, names_of_file, node_data
from app.api.folds import CrossValidation, run_folds, told_of_folds
from app.api.given import Begun, check_given, digest_of_arrays, ids_of_nodes, ids_of_pairs
from app.api.graph import loaded_graph
from app.api.learning import Asked, begin, course_of, recipe_of, refuse_level
from app.api.networks import FoundLinks
from app.api.tune import Tuning
from app.case.links import LinksCase
from app.comm.guard import digest, raise_together
from app.errors import CaseError, GraphError
from app.gnn.links.best import Partners
from app.graphs.formats.source import shown
from app.graphs.ids import named, one_id, plain_ids
from app.partition.ids import ids_everywhere
from app.partition.loaded import Loaded
from app.partition.pairs import rows_of_pairs
from app.tasks.context import Context
from app.tasks.levels.course import Learned, learn
from app.tasks.levels.found_links import gather_rows
from app.tasks.levels.given_pairs import GivenPairs
from app.tasks.levels.links import LinkExamples
from app.threads import with_few_threads

# What links are learned by unless settings say otherwise: the table [gnn] of inputs/links.toml.
RECIPE = {
    "gnn.level": "link", "gnn.model": "gcn", "gnn.depth": 2, "gnn.hidden": 64, "gnn.dropout": 0.0,
    "gnn.input_dropout": 0.0, "gnn.epochs": 100, "gnn.learning_rate": 0.01, "gnn.weight_decay": 0.0,
    "gnn.evaluate_every": 10, "gnn.keep": "best",
}  # fmt: skip
BY_LAYERS = ("model", "depth", "hidden")  # of the recipe, which gnn.layers says of each layer
OF_HIDDEN = ("hidden", "dropout")  # of the recipe, which a single layer does not read
ARGUMENTS = ("val", "test", "pairs")
LINK_KEYS = {  # of [links] that name data, which a call hands in by arguments
    "val_edges": "val", "test_edges": "test", "pairs": "pairs", "sides": "sides",
    "propose_for": "propose_for",
}  # fmt: skip


@with_few_threads
def find_links(
    graph: Any,
    features: Any = None,
    *,
    val: Any = None,
    test: Any = None,
    pairs: Any = None,
    sides: Any = None,
    propose_for: Any = None,
    weights: Any = None,
    folds: int | None = None,
    vary: dict[str, Any] | None = None,
    settings: dict[str, Any] | None = None,
    comm: MPI.Comm | None = None,
    verbose: bool = False,
) -> FoundLinks | CrossValidation | Tuning:
    """Learn from a graph's edges which of its nodes are likely to be joined; or apply weights.

    graph      as for `classify`; directions of edges do not count
    features   as for `classify`; None: one for every node of its own
    val, test  edges [k, 2], as pairs of nodes as `classify` names them, that are not learned from: to choose
               the weights by, and to tell how good scores are; None: shares links.validation, links.held_out
    pairs      pairs of nodes to be told how likely they are joined; None: the held-out edges
    sides      nodes of the first of two kinds, as users, all others of the second, as items; or True: the
               attribute bipartite (0, 1) of a NetworkX graph, or found by colouring a connected graph. Pairs
               are then drawn, ranked and proposed only between the two (links.between = "sides")
    propose_for   nodes that "links.propose_each" of the settings is of; None: all, or those of the first side
    weights    a weights.npz, or what an earlier call returned: applied, or with "gnn.epochs" of the settings
               trained further
    folds      cross-validation: each edge is held out once, by seed and its ends, and told how likely it is
               by a network that has not seen it
    vary       as for `classify`, by the scores of validation edges: keys of [gnn], and "links.dimension",
               "links.loss" and "links.negatives"
    settings   keys of a case, as {"gnn.model": "sage", "links.propose": 20, "seed": 1}, over those of
               inputs/links.toml; links.propose: how many of the likeliest pairs without an edge to return,
               links.propose_each: how many partners of each node
    comm       default: MPI.COMM_WORLD; all its ranks call with the same arguments, all get the same answer
    Raises GraphError for what is no graph or no pair of it, CaseError for wrong settings
    Source     Kipf and Welling 2016 (GAE)
    """
    begun = Begun(weights, "gnn", settings)
    between = {"links.between": "any" if sides is None else "sides"}
    recipe = recipe_of(RECIPE, begun, BY_LAYERS, OF_HIDDEN) | between
    asked = Asked(folds, vary, {"val": val, "test": test, "pairs": pairs, "propose_for": propose_for})
    context, model = begin(begun, asked, recipe, comm, verbose)
    refuse_level(context, "link")
    with raise_together(context.group, "reading the settings"):
        _refuse_keys(context.case.links, sides, propose_for)
        if folds is not None:
            _refuse_beside_folds(context.case.links)
    loaded, labels = loaded_graph(context, graph)
    names = labels or names_of_file(context, loaded)
    data = node_data(context, loaded, names, features, None, {})
    given = GivenPairs(
        *(_rows(context, loaded, labels, *each) for each in zip((val, test, pairs), ARGUMENTS)),
        _first_side(context, loaded, labels, graph, sides),
        None if propose_for is None else _rows_of_nodes(context, loaded, labels, propose_for, "propose_for"),
    )
    applied = not context.case.gnn.epochs
    known = None if names is None else tuple(names)
    examples = LinkExamples(loaded, data, context.case.links, given, applied=applied, names=known)
    ids = ids_everywhere(context.group, loaded.graph, loaded.rows)
    called = plain_ids(ids) if labels is None else [labels[i] for i in ids.tolist()]

    def train_once(chosen: Context) -> FoundLinks:
        done = learn(chosen, replace(examples, links=chosen.case.links), model)
        return _told(done, called, names)

    return asked.done(context, examples, train_once, partial(_crossed, called=called, names=names))


def _told(done: Learned, called: list[Any], names: list[Any] | None) -> FoundLinks:
    """What the call tells. Ranks: all call.

    called   the nodes by their rows     names   by their numbers, or None
    """
    found = done.examples.answer(done.context, done)
    told, proposed = (
        [(called[u], called[v]) for u, v in part[0].tolist()] for part in (found.told, found.proposed)
    )
    rows = by_node(done.examples.loaded, gather_rows(done.classifier))
    return FoundLinks(
        pairs=told, likely=found.told[1], proposed=list(zip(proposed, found.proposed[1].tolist())),
        scores=done.scores, nodes=list(range(len(rows))) if names is None else names, node_rows=rows,
        digest=digest({**done.examples.digested(found), **done.fit.weights}),
        proposed_each=_proposed_each(called, *found.each) if found.each else {},
        explanations=done.explained, **course_of(done),
    )  # fmt: skip


def _crossed(
    context: Context, examples: LinkExamples, called: list[Any], names: list[Any] | None
) -> CrossValidation:
    """Folds of edges, each held out once. Ranks: all call."""
    _, both = run_folds(context, examples)
    runs, n = [run for _, run in both], examples.loaded.graph.n
    tested = [part.split.sets["test"].joined for part, _ in both]
    pairs, fold = np.concatenate(tested), np.repeat(np.arange(len(tested)), list(map(len, tested)))
    likely, order = np.concatenate([run.predicted for run in runs]), np.lexsort(pairs.T[::-1])
    return CrossValidation(
        predicted=likely[order], fold=fold[order], nodes=list(range(n)) if names is None else names,
        edges=[(called[u], called[v]) for u, v in pairs[order].tolist()], **told_of_folds(examples, runs),
    )  # fmt: skip


def _refuse_beside_folds(links: LinksCase) -> None:
    """Raise CaseError for settings of what folds hold out themselves, and of what they do not tell."""
    usual = LinksCase()
    for key in ("held_out", "validation", "propose", "propose_each"):
        if getattr(links, key) != getattr(usual, key):
            raise CaseError(f"links.{key}: is not read beside folds; leave it out")


def _refuse_keys(links: LinksCase, sides: Any, propose_for: Any) -> None:
    """Raise CaseError for files of the settings in place of arguments, and for what nothing reads."""
    for key, argument in LINK_KEYS.items():
        if getattr(links, key):
            raise CaseError(f"settings: links.{key}: the argument {argument} would be right")
    if sides is not None and links.between != "sides":
        raise CaseError(f'sides: is not read where links.between = "{links.between}"; leave either out')
    if propose_for is not None and not links.propose_each:
        raise CaseError("propose_for: is read where links.propose_each is at least 1; leave it out")


def _proposed_each(called: list[Any], found: Partners, likely: np.ndarray) -> dict[Any, list[Any]]:
    """By node (partner, likelihood) of its best partners."""
    return {
        called[u]: [(called[v], p) for v, p in zip(nodes, told) if v >= 0]
        for u, nodes, told in zip(found.rows.tolist(), found.nodes.tolist(), likely.tolist())
    }


def _first_side(
    context: Context, loaded: Loaded, labels: list[Any] | None, graph: Any, sides: Any
) -> np.ndarray | None:
    """[n] bool, the rows of the first side; None: they are to be found, or there are none. Ranks: all."""
    if sides is True or (sides is None and context.case.links.between == "sides"):
        with raise_together(context.group, "reading sides"):
            sides = _kinds_of(graph)
    if sides is None:
        return None
    first = np.zeros(loaded.graph.n, dtype=bool)
    first[_rows_of_nodes(context, loaded, labels, sides, "sides")] = True
    return first


def _kinds_of(graph: Any) -> list[Any] | None:
    """The nodes of a NetworkX graph whose attribute bipartite is 0; None where no node has it."""
    kinds = dict(graph.nodes(data="bipartite")) if callable(getattr(graph, "nodes", None)) else {}
    if all(kind is None for kind in kinds.values()):
        return None
    wrong = [node for node, kind in kinds.items() if kind not in (0, 1)]
    if wrong:
        found = f"node {shown(repr(wrong[0]))} has the attribute bipartite {shown(repr(kinds[wrong[0]]))}"
        raise GraphError(f"graph: {found}; 0 or 1 would be right")
    return [node for node, kind in kinds.items() if kind == 0]


def _rows_of_nodes(
    context: Context, loaded: Loaded, labels: list[Any] | None, given: Any, name: str
) -> np.ndarray:
    """[k] the rows of nodes that a caller names. Ranks: all call. Raises GraphError on all."""
    with raise_together(context.group, f"reading {name}"):
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise GraphError(f"{name}: found {shown(repr(given))}; nodes of the graph would be right")
        ids = ids_of_nodes(list(given), labels, named(loaded.graph.ids), name)
    check_given(context.group, {name: digest_of_arrays(ids)})
    known = ids_everywhere(context.group, loaded.graph, loaded.rows)
    order = np.argsort(known, kind="stable")
    at = np.minimum(np.searchsorted(known[order], ids), max(len(known) - 1, 0))
    if len(ids) and (wrong := ids[known[order[at]] != ids] if len(known) else ids).size:
        missing = one_id(wrong, 0)
        raise GraphError(f"{name}: found node {missing}; a node of {loaded.graph.name} would be right")
    return order[at] if len(ids) else np.empty(0, dtype=np.int64)


def _rows(
    context: Context, loaded: Loaded, labels: list[Any] | None, given: Any, name: str
) -> np.ndarray | None:
    """[k, 2] the rows of pairs that a caller names. Ranks: all call. Raises GraphError on all."""
    ids = None
    with raise_together(context.group, f"reading {name}"):
        if given is not None:
            ids = ids_of_pairs(given, labels, named(loaded.graph.ids), name)
    check_given(context.group, {name: "none" if ids is None else digest_of_arrays(ids)})
    return None if ids is None else rows_of_pairs(context.group, loaded, ids, name)
