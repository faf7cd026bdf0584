"""Task classify with gnn.level = "edge": train a graph network on the edges of a graph, or apply one."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from app.case.gnn import GnnCase
from app.comm.guard import digest, raise_together
from app.errors import CaseError
from app.gnn.balanced import Balanced
from app.gnn.edge_level.classifier import EdgeClassifier, nodes_at
from app.gnn.edge_level.plain import plain_edge_scores
from app.gnn.importance import Importance
from app.gnn.loss import refuse_infinite_rows
from app.gnn.metrics import SplitScores
from app.gnn.model import DEEP
from app.gnn.saved import SavedModel, check_edges, check_fits, load_model, save_model
from app.gnn.training import Fit, ended_early, fit
from app.graphs.ids import between_names, blank_between, plain_ids
from app.graphs.nodes.data import NodeData, no_labels
from app.graphs.nodes.of_edges import EdgeLabels
from app.memory.room import resident_bytes
from app.memory.tiers import TierBudget
from app.partition.edge_labels import edges_in_test, load_edge_labels
from app.partition.ids import ids_everywhere
from app.partition.load import Loaded
from app.plots.runs import plot_breakdown, plot_training
from app.tasks.classify import (
    check_importance,
    cost_model_of,
    follows,
    important_features,
    labels_text,
    load,
    named_scores,
    recorder,
    refuse_read,
    say_balance,
    say_beside,
    say_model,
    say_scores,
    warn_of,
)
from app.tasks.context import Context
from app.text import printable

LINES = 1 << 16  # of a file that are made at a time


@dataclass
class EdgesClassified:
    """A classifier of edges after its run.

    scores, plain   how good its predictions are, and those of plain rules     digest   of the weights
    importance      of features; None: nobody asked
    """

    classifier: EdgeClassifier
    loaded: Loaded
    fit: Fit
    scores: SplitScores
    digest: str
    plain: dict[str, SplitScores] = field(default_factory=dict)
    importance: Importance | None = None


def run_classify_edges(context: Context) -> dict[str, Any]:
    """Train or apply, write the results, and return the task's part of result.json. Ranks: all call."""
    loaded, data = load(context)
    with context.log.phase("read"):
        labels = load_edge_labels(context.group, loaded, context.case)
    for warning in labels.about.warnings:
        context.log.info("warning: %s", warning)
    refuse_read(context, loaded)
    held = resident_bytes()
    done = learn_edge_labels(context, loaded, data, labels)
    context.say_memory(held)
    predicted = gather_edge_predictions(done)
    if context.folder is not None:
        _write(context, done, predicted)
    return _result(done, predicted)


def learn_edge_labels(
    context: Context, loaded: Loaded, data: NodeData, labels: EdgeLabels, model: SavedModel | None = None
) -> EdgesClassified:
    """Train for gnn.epochs on the edges of a graph, from gnn.weights where given. Ranks: all call.

    data    features of the nodes     model   the weights, where they are in memory
    """
    case, log, group = context.case, context.log, context.group
    with raise_together(group, "checking the data"):
        gnn, saved = _architecture(case.gnn, loaded, data, model)
        _check(gnn, loaded, data, labels.about, case.output.embeddings)
        if saved is not None:
            labels = replace(labels, about=saved.relabel(case.gnn.weights, labels.about))
    if not gnn.epochs and labels.about.labels is not None and not any(labels.about.counts.values()):
        labels = edges_in_test(group, labels)
    warn_of(context, gnn, saved, labels.about, "both")
    block = context.rows(loaded, 0)
    if gnn.edge_weights and not block.adjacency.weighted:
        log.info(
            "warning: gnn.edge_weights: %s has no edge weights; every edge counts one", loaded.graph.name
        )
    with log.phase("set up"):
        known = (saved.classes, saved.goal, saved.inputs) if saved else ()
        budget, columns = TierBudget.of(case.memory), saved.edges if saved else None
        nodes = nodes_at(data, labels, block)
        classifier = EdgeClassifier(
            group, gnn, block, nodes, labels, case.seed, *known, budget=budget, edge_columns=columns
        )
        if saved is not None:
            classifier.params.set(saved.arrays)
        cost = cost_model_of(context, classifier)
        balanced = Balanced(classifier, cost) if follows(case) else None
    if case.output.probabilities and classifier.goal.kind == "values":
        raise CaseError("output.probabilities: numbers have none, only classes; false would be right")
    check_importance(case, classifier)
    say_model(context, loaded, classifier)
    with log.phase("train"):
        hooks = {"after_epoch": balanced.after_epoch, "beside": balanced} if balanced else {}
        found = fit(classifier, recorder(context), case.run.check_every, keeper=context.keeper, **hooks)
    with log.phase("evaluate"):
        scores = classifier.evaluate_ranking()
        plain = plain_edge_scores(classifier) if gnn.baselines else {}
    say_scores(context, classifier, found, scores)
    say_beside(context, classifier, plain)
    asked = important_features(context, classifier)
    if said := ended_early(found, gnn):
        log.info("advice: %s", said)
    if balanced:
        say_balance(context, balanced)
    return EdgesClassified(classifier, loaded, found, scores, digest(found.weights), plain, asked)


def saved_edges_of(done: EdgesClassified) -> SavedModel:
    """What weights.npz holds."""
    classifier = done.classifier
    about = classifier.about
    return SavedModel(
        classifier.case, classifier.model.f_in, about.class_ids, classifier.goal.kind == "labels",
        done.fit.weights, "both", getattr(classifier.goal, "scale", None), classifier.inputs,
        about.class_names, classifier.edge_columns,
    )  # fmt: skip


def _architecture(
    gnn: GnnCase, loaded: Loaded, data: NodeData, model: SavedModel | None
) -> tuple[GnnCase, SavedModel | None]:
    """The [gnn] table with the layers of saved weights where some are given; model: those in memory."""
    if not gnn.weights:
        return gnn, None
    saved = model or load_model(gnn.weights)
    if saved.case.level != "edge":
        right = f'gnn.level = "{saved.case.level}" would be right'
        raise CaseError(f"{printable(gnn.weights)}: says what {saved.case.level}s are; {right}")
    check_fits(gnn.weights, saved, data.width or loaded.graph.n)
    check_edges(gnn.weights, saved, data.edges)
    if saved.edges is not None and data.edges is None:
        found = f"for edges with {saved.edges.given} features; those of {loaded.graph.name} have none"
        key = "edge_features=" if loaded.source == "memory" else "graph.edge_features"
        raise CaseError(f"{printable(gnn.weights)}: {found}; {key} would be right")
    if saved.edges is None and data.edges is not None:
        raise CaseError(f"{printable(gnn.weights)}: for edges without features; leave these out")
    return saved.architecture_of(gnn), saved


def _check(gnn: GnnCase, loaded: Loaded, data: NodeData, about: NodeData, embeddings: bool) -> None:
    """Refuse what cannot be trained. Raises CaseError."""
    weights, name = loaded.graph.weights, loaded.graph.name
    if gnn.edge_weights and weights is not None and (weights < 0).any():
        raise CaseError("gnn.edge_weights: the graph has negative weights; leave the key out")
    if not loaded.graph.edges:
        raise CaseError(
            f"{name}: has no edges, which are to be told apart; a graph with edges would be right"
        )
    if data.edges is None and gnn.edge_feature_rows != GnnCase().edge_feature_rows:
        raise CaseError(f"gnn.edge_feature_rows: edges of {name} have no features; leave it out")
    if embeddings and (len(gnn.layers) or gnn.depth) == 1 and gnn.model != DEEP:
        raise CaseError("output.embeddings: of one layer there are none; false would be right")
    if not about.classes and not gnn.weights:
        raise CaseError(no_labels("edge"))
    if gnn.epochs and not about.counts["train"]:
        right = "set graph.edge_splits (or gnn.epochs = 0 to apply weights)"
        raise CaseError(f"no edge is to be trained on: {right}")
    if gnn.epochs and gnn.class_weights == "balanced" and (about.multilabel or about.values):
        raise CaseError('gnn.class_weights: balanced is for one class an edge; "equal" would be right')


# ---- what is written --------------------------------------------------------------------------------------


def gather_edge_predictions(done: EdgesClassified) -> np.ndarray:
    """[m] int32 classes, [m, classes] uint8 or, of values, [m, columns] float32, as `gather_edges` has edges.

    Ranks   all call. Raises NumericsError where scores are not finite
    """
    classifier = done.classifier
    scores = classifier.scores_own()
    refuse_infinite_rows(classifier.group, scores, "edges")
    return _gathered(classifier, classifier.goal.predicted(scores))


def gather_edge_probabilities(done: EdgesClassified) -> np.ndarray:
    """[m, classes] float32, how likely each class is for each edge. Ranks: all call."""
    return _gathered(done.classifier, done.classifier.probabilities_own())


def gather_edges(done: EdgesClassified) -> np.ndarray:
    """[m, 2] int64 the edges u < v by numbers of rows, ascending. Ranks: all call."""
    graph = done.loaded.graph
    u, v = graph.row_of(), graph.indices.astype(np.int64)
    own = np.ascontiguousarray(np.stack([u, v], axis=1)[u < v])
    sizes = done.classifier.group.gather_integers(np.array([len(own)]))[:, 0].tolist()
    return done.classifier.group.gather_host(own, sizes)


def _gathered(classifier: EdgeClassifier, own: np.ndarray) -> np.ndarray:
    """Rows of all edges from those of own ones. Ranks: all call."""
    group = classifier.group
    return group.gather_host(
        np.ascontiguousarray(own), group.gather_integers(np.array([len(own)]))[:, 0].tolist()
    )


def gather_node_rows(done: EdgesClassified) -> np.ndarray:
    """[n, columns] float32, what the last layer reads of each node. Ranks: all call."""
    block = done.classifier.block
    own = np.ascontiguousarray(done.classifier.embed_own()[: block.n_real])
    return done.classifier.group.gather_host(own, block.rows.row_counts())


def _result(done: EdgesClassified, predicted: np.ndarray) -> dict[str, Any]:
    """The task's part of result.json."""
    records, graph = done.fit.records, done.loaded.graph
    entry = {
        "name": graph.name, "nodes": graph.n, "edges": graph.edges,
        "train_loss": records[-1]["loss"] if records else None,
        "epochs": done.fit.epochs, "best_epoch": done.fit.best_epoch,
        "watched": done.fit.watched if records else None, "best_watched": done.fit.best,
        "seconds": done.fit.seconds,
    }  # fmt: skip
    entry |= named_scores(done.scores)
    if done.importance is not None:
        entry["importance"] = done.importance.told()
    if done.plain:
        entry["plain"] = {rule: named_scores(each) for rule, each in done.plain.items()}
    both = digest({"predictions": predicted, **done.fit.weights})
    operations = {kind: round(s, 6) for kind, s in sorted(done.classifier.engine.seconds.items())}
    return {
        "digest": both, "weights_digest": done.digest, "instances": [entry], **entry,
        "operations": operations,
    }  # fmt: skip


def _write(context: Context, done: EdgesClassified, predicted: np.ndarray) -> None:
    """weights.npz, predictions/NAME.txt, what [output] asks for by edge or node, and the plots. Ranks: all
    call."""
    folder, group, case, classifier = context.folder, context.group, context.case, done.classifier
    graph = done.loaded.graph
    ids, edges = ids_everywhere(group, graph, done.loaded.rows), gather_edges(done)
    with context.log.phase("write"), raise_together(group, "writing the results"):
        if group.rank == 0:
            note = f"{case.run.name}, seed {case.seed}, {done.fit.epochs} epochs"
            save_model(folder.file("weights.npz"), saved_edges_of(done), note)
            with folder.placed(f"predictions/{graph.name}.txt") as file:
                for lo in range(0, len(edges), LINES):
                    part = slice(lo, lo + LINES)
                    file.write(_lines(ids, edges[part], predicted[part], classifier.about).encode())
    if case.output.embeddings:
        rows = gather_node_rows(done)
        with raise_together(group, "writing the embeddings"):
            folder.write_arrays(f"embeddings/{graph.name}.npz", ids=ids, embeddings=rows)
    if case.output.probabilities:
        likely = gather_edge_probabilities(done)
        with raise_together(group, "writing the probabilities"):
            columns = {
                "classes": classifier.about.called(np.arange(likely.shape[1])),
                "probabilities": likely,
            }
            folder.write_arrays(f"probabilities/{graph.name}.npz", ids=ids[edges], **columns)
    if done.importance is not None:
        folder.write_text(f"importance/{graph.name}.csv", done.importance.text())
    if case.output.plots:
        plot_training(folder, context.log, done.fit.records, score=next(iter(classifier.goal.told)))
        plot_breakdown(folder, context.log, {graph.name: classifier.engine.seconds})


def _lines(ids: np.ndarray, edges: np.ndarray, predicted: np.ndarray, about: NodeData) -> str:
    """Lines `id id class`, as `labels_text` has what follows the ids: `graph.edge_data_by = "ends"` reads
    those of one class, and of values."""
    blank = "\t" if between_names(about.class_names) == "\t" else blank_between(ids)
    ends = (plain_ids(ids[column]) for column in edges.T)
    return labels_text([f"{u}{blank}{v}" for u, v in zip(*ends)], predicted, about, blank)
