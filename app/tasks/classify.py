"""Task classify: train a graph network on the nodes of a graph, full batch, or apply a trained one."""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.comm.guard import digest, raise_together
from app.config import GnnCase
from app.errors import CaseError
from app.gnn.metrics import Scores
from app.gnn.saved import SavedModel, check_fits, load_model, save_model
from app.gnn.training import SPLITS, Classifier, Fit, fit
from app.partition.load import Loaded, load_nodes
from app.partition.nodes import NodeData
from app.report import plot_breakdown, plot_training
from app.tasks.context import Context
from app.tasks.rollouts import all_ids


@dataclass
class Classified:
    """A classifier after its run: what it learned, how good it is, how long it took."""

    classifier: Classifier
    fit: Fit
    scores: dict[str, Scores]
    seconds: float
    digest: str


def run_classify(context: Context) -> dict[str, Any]:
    """Train or apply, write the results, and return the task's part of result.json. Ranks: all call."""
    loaded, data = load_nodes(context.group, context.case.graph, context.case)
    done = classify_nodes(context, loaded, data)
    if context.folder is not None:
        _write(context, loaded, done)
    return _result(context, loaded, done)


def classify_nodes(context: Context, loaded: Loaded, data: NodeData) -> Classified:
    """Train for gnn.epochs on a graph and its node data, from gnn.weights where given. Ranks: all call."""
    case, log, group = context.case, context.log, context.group
    gnn, saved = _architecture(context, data)
    _check(gnn, loaded, data)
    block = context.rows(loaded, gnn.hidden)
    with log.phase("set up"):
        if saved is not None and not data.classes:
            data = data.with_classes(saved.classes, saved.multilabel)
        classifier = Classifier(group, gnn, block, data, case.seed)
        if saved is not None:
            classifier.params.set(saved.arrays)
    _say_model(context, loaded, classifier)
    start = time.perf_counter()
    with log.phase("train"):
        found = fit(classifier, _recorder(context), case.run.check_every)
    seconds = time.perf_counter() - start
    with log.phase("evaluate"):
        scores = classifier.evaluate()
    _say_scores(context, classifier, found, scores, seconds)
    return Classified(classifier, found, scores, seconds, digest(found.weights))


def _architecture(context: Context, data: NodeData) -> tuple[GnnCase, SavedModel | None]:
    """The [gnn] table with the layers of saved weights where some are given. Ranks: all call."""
    gnn, path = context.case.gnn, context.case.gnn.weights
    if not path:
        return gnn, None
    with raise_together(context.group, f"reading {path}"):
        saved = load_model(path)
        check_fits(path, saved, data.features.shape[1], data.classes, data.multilabel)
    return saved.case(gnn), saved


def _check(gnn: GnnCase, loaded: Loaded, data: NodeData) -> None:
    """Refuse what cannot be trained. Raises CaseError."""
    if gnn.edge_weights and loaded.graph.weights is not None and (loaded.graph.weights < 0).any():
        raise CaseError("gnn.edge_weights: the graph has negative weights; leave the key out")
    if not data.classes and not gnn.weights:
        raise CaseError(
            'the nodes have no labels: set graph.labels, or apply trained weights by gnn.weights="FILE"'
        )


def _recorder(context: Context) -> Any:
    """What training calls with each record: a row of metrics.csv and, now and then, a line."""
    case, log, start = context.case.gnn, context.log, time.perf_counter()

    def record(row: dict[str, float]) -> None:
        sent = sum(context.group.sent_bytes.values())
        log.record(
            phase="train", name="", step=row["epoch"], loss=row["loss"], sent_bytes=sent, **_splits(row)
        )
        left = (time.perf_counter() - start) / row["epoch"] * (case.epochs - row["epoch"])
        log.progress(
            "epoch %5d  loss %.4f  train %.4f  val %.4f  test %.4f  (%.0f s to go)",
            row["epoch"], row["loss"], row["train_score"], row["val_score"], row["test_score"], left,
        )  # fmt: skip

    return record


def _splits(row: dict[str, float]) -> dict[str, float]:
    return {f"{name}_score": row[f"{name}_score"] for name in SPLITS}


# ---- what is said -----------------------------------------------------------------------------------------


def _say_model(context: Context, loaded: Loaded, classifier: Classifier) -> None:
    """The graph, the model, and the memory of its buffers."""
    log, graph, engine = context.log, loaded.graph, classifier.engine
    counted, data = classifier.counted, classifier.data
    log.info(
        "%s: %d nodes, %d edges, %d features, %d %s; %d training, %d validation, %d test nodes",
        graph.name, graph.n, graph.edges, data.features.shape[1], data.classes,
        "labels" if data.multilabel else "classes", *(int(counted[name]) for name in SPLITS),
    )  # fmt: skip
    layers = ", ".join(block.text() for block in classifier.model.blocks)
    mode = engine.neighbours_of.block.plan.mode
    log.info("%s: %d weights, exchange %s", layers, classifier.params.size, mode)
    log.info(
        "%d buffers of %d columns in all: %.1f MB on this rank",
        len(engine.plan.widths), engine.plan.columns, 4e-6 * engine.plan.columns * engine.n_own,
    )  # fmt: skip


def _say_scores(
    context: Context, classifier: Classifier, found: Fit, scores: dict[str, Scores], seconds: float
) -> None:
    name = "micro F1" if classifier.data.multilabel else "accuracy"
    shown = ", ".join(
        f"{split} {each.micro_f1:.4f} (macro F1 {each.macro_f1:.4f})"
        for split, each in scores.items()
        if each.nodes
    )
    context.log.info(
        "%d epochs in %.2f s (%.2f ms each, evaluations included); %s: %s",
        found.epochs, seconds, 1e3 * seconds / max(found.epochs, 1), name, shown or "no labelled nodes",
    )  # fmt: skip


# ---- what is written --------------------------------------------------------------------------------------


def _result(context: Context, loaded: Loaded, done: Classified) -> dict[str, Any]:
    """The task's part of result.json. Ranks: all call."""
    records, scores = done.fit.records, done.scores
    entry = {
        "name": loaded.graph.name, "nodes": loaded.graph.n, "edges": loaded.graph.edges,
        "train_loss": records[-1]["loss"] if records else None,
        "epochs": done.fit.epochs, "best_epoch": done.fit.best_epoch, "seconds": done.seconds,
    }  # fmt: skip
    for split, each in scores.items():
        known = each.nodes > 0
        entry[f"{split}_accuracy"] = each.accuracy if known else None
        entry[f"{split}_micro_f1"] = each.micro_f1 if known else None
        entry[f"{split}_macro_f1"] = each.macro_f1 if known else None
    # An applied model has no new weights: its answer are the predictions.
    predicted = _gather_predictions(context, loaded, done.classifier)
    both = digest({"predictions": predicted, **done.fit.weights})
    operations = {kind: round(s, 6) for kind, s in sorted(done.classifier.engine.seconds.items())}
    return {
        "digest": both,
        "weights_digest": done.digest,
        "instances": [entry],
        **entry,
        "operations": operations,
    }


def _gather_predictions(context: Context, loaded: Loaded, classifier: Classifier) -> np.ndarray:
    """[n, classes] uint8 or, of one class for each node, [n] int32. Ranks: all call."""
    predicted = classifier.predict_own()[: loaded.graph.hi - loaded.graph.lo]
    own = (
        predicted.astype(np.uint8)
        if classifier.data.multilabel
        else predicted.argmax(axis=1).astype(np.int32)
    )
    return context.group.gather_host(np.ascontiguousarray(own), loaded.rows.row_counts())


def _write(context: Context, loaded: Loaded, done: Classified) -> None:
    """weights.npz, predictions/NAME.txt, embeddings/NAME.npy and the plots. Ranks: all call."""
    folder, group, case, classifier = context.folder, context.group, context.case, done.classifier
    ids, predicted = all_ids(context, loaded), _gather_predictions(context, loaded, classifier)
    with context.log.phase("write"), raise_together(group, "writing the results"):
        if group.rank == 0:
            note = f"{case.run.name}, seed {case.seed}, {done.fit.epochs} epochs"
            save_model(
                folder.file("weights.npz"), done.fit.weights, classifier.case, classifier.model,
                classifier.data.multilabel, note,
            )  # fmt: skip
        folder.write_text(f"predictions/{loaded.graph.name}.txt", _predictions_text(ids, predicted))
    if case.output.embeddings:
        embedded = group.gather_host(
            classifier.embed_own()[: loaded.graph.hi - loaded.graph.lo], loaded.rows.row_counts()
        )
        with raise_together(group, "writing the embeddings"):
            folder.write_arrays(f"embeddings/{loaded.graph.name}.npz", ids=ids, embeddings=embedded)
    if case.output.plots:
        plot_training(folder, context.log, done.fit.records)
        plot_breakdown(folder, context.log, {loaded.graph.name: classifier.engine.seconds})


def _predictions_text(ids: np.ndarray, predicted: np.ndarray) -> str:
    """Lines `id class`, or `id class class ...` where a node may have several."""
    if predicted.ndim == 1:
        return "".join(f"{i} {c}\n" for i, c in zip(ids.tolist(), predicted.tolist()))
    chosen = ("".join(f" {c}" for c in np.flatnonzero(row).tolist()) for row in predicted)
    return "".join(f"{i}{each}\n" for i, each in zip(ids.tolist(), chosen))
