"""Whether a network learns on a graph that its ranks share, or on all of it, which each of them has."""

from dataclasses import replace

import numpy as np
from scipy.sparse import issparse

from app.case.config import Case
from app.comm.cores import are_crowded
from app.gnn.saved import SavedModel
from app.model.fits import least_room
from app.model.gnn import Training
from app.model.gnn_inputs import Inputs
from app.model.node_plan import SOME, beside, learns_whole, need_of, on_one_rank, training_by
from app.model.whole import said_whole
from app.tasks.context import Context
from app.tasks.levels.examples import Examples


def whole_where_small(
    context: Context, examples: Examples, saved: SavedModel | None
) -> tuple[Context, Examples]:
    """What to go on with: the context and the examples as they are or, of a network that is too small to be
    split, those of this rank by itself, with all rows. Studies measure what is split, but for folds.

    saved   the weights to begin with; None: drawn ones
    Ranks   all call. Raises CaseError
    """
    case, group = context.case, context.group
    if group.size == 1 or not (case.run.task == "classify" or case.study.kind == "folds"):
        return context, examples
    graph, stored = examples.loaded.graph, stored_of(context, examples)
    sizes = graph.n, 2 * graph.edges, inputs_of(case, examples, stored, saved)
    training = training_by(case, graph.name, *sizes, group.size, group.device, saved)
    if not learns_whole(case, training, are_crowded(group) and _has_room(context, training)):
        return context, examples
    context.log.info("%s: %s", graph.name, said_whole(case))
    return context.whole(), examples.whole(group)


def _has_room(context: Context, training: Training) -> bool:
    """Whether every rank may hold all of a training: what the case was let in for may have been a share.
    Ranks: all call; the same on all."""
    if context.device.name != "cpu":
        return True
    return need_of(context.case, on_one_rank(context.case, training)).most <= least_room(context.group)


def stored_of(context: Context, examples: Examples) -> int:
    """Entries of the features of all nodes where these are sparse; 0 of dense ones. Ranks: all call."""
    features, n = examples.data.features, examples.loaded.graph.n
    if features is None:  # a column for each node
        return n
    if not issparse(features):
        return 0
    return max(int(context.group.sum_integers(np.array([features.nnz]))[0]), 1)


def inputs_of(case: Case, examples: Examples, stored: int, saved: SavedModel | None) -> Inputs:
    """Features and labels as counts, before a level makes something of them; stored: see `stored_of`."""
    data, about, n = examples.data, examples.about, examples.loaded.graph.n
    members, level = examples.loaded.members, case.gnn.level
    gnn = saved.architecture_of(case.gnn) if saved else case.gnn
    found = Inputs(data.width or n, max(about.classes, 1), stored, several=about.multilabel)
    if level in ("node", "graph", "edge"):
        many = {"node": n, "graph": members.count if members else 1, "edge": examples.loaded.graph.edges}
        found = replace(found, train=min(about.counts["train"] / max(many[level], 1), 1.0))
    if members is not None:
        found = replace(found, graphs=members.count)
    if gnn.feature_rows == "one_hot" and found.dense:
        columns = found.features
        width = saved.categories if saved else SOME * columns
        found = replace(found, features=width, stored=max(n * columns, 1))
    found = beside(found, gnn, n, data.width)
    if data.edges is None:
        return replace(found, edges=0, edge_width=0)
    width = SOME if gnn.edge_feature_rows == "one_hot" else 1
    width = saved.edges.width if saved and saved.edges else width * data.edges.width
    return replace(found, edges=data.edges.width, edge_width=width)
