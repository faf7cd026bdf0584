"""R-GCN on a knowledge graph: read triples and labels, train, say how many test nodes it gets right."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import msgspec
import numpy as np

from app.case.config import Case
from app.case.rgcn import RgcnCase
from app.comm.guard import digest, raise_together
from app.errors import CaseError
from app.gnn.archive import LARGEST, replaced
from app.gnn.explain.explanations import Explanations
from app.gnn.rgcn.features import Features
from app.gnn.rgcn.model import RGCN
from app.gnn.rgcn.saved import SavedRgcn, edges_digest, load_rgcn, save_rgcn
from app.gnn.rgcn.training import Course, RelationalFit, train_rgcn
from app.graphs.ids import between_names, escaped
from app.graphs.nodes.data import SPLITS
from app.graphs.triples.data import NodeLabels, Triples
from app.graphs.triples.relational import RelationalGraph, nodes_by_layer, relational_graph
from app.log import ToGo
from app.memory.room import resident_bytes
from app.memory.tiers import TierBudget
from app.partition.relations import part_sizes
from app.plots.runs import plot_breakdown, plot_training
from app.tasks.context import Context
from app.tasks.links import run_links
from app.tasks.relational_explained import Called, check_nodes, explain_classes
from app.tasks.relational_plan import classes_plan, settle
from app.tasks.rgcn_inputs import load_triples, open_features


@dataclass
class Relational:
    """A relational network after its run.

    context  that it learned in: with the ranks that share the graph, or this one by itself
    graph    that it works on     fit   what it learned     labels   with classes as it numbers them
    about    what weights.npz says of it, without arrays
    digest, weights_digest   those of result.json
    explained   predictions, by what made them; None: nobody asked
    """

    context: Context
    graph: RelationalGraph
    labels: NodeLabels
    fit: RelationalFit
    about: SavedRgcn
    digest: str
    weights_digest: str
    explained: Explanations | None = None


def run_rgcn(context: Context) -> dict[str, Any]:
    """Train on the triples of [graph] and return the task's part of result.json. Ranks: all call."""
    case, log, group = context.case, context.log, context.group
    triples, labels = load_triples(context)
    if case.rgcn.goal == "links":
        return run_links(context, triples)
    with log.phase("set up"), raise_together(group, "reading features"):
        inputs = open_features(case, triples)
    held = resident_bytes()
    done = classify_relations(context, triples, labels, inputs)
    context.say_memory(held)
    if context.folder is not None:
        _write(context, triples, done.labels, done)
    return _result(context, triples, done.labels, done)


def classify_relations(
    context: Context, triples: Triples, labels: NodeLabels, inputs: Features | None,
    model: SavedRgcn | None = None, called: Called | None = None,
) -> Relational:  # fmt: skip
    """Train on triples and labels for rgcn.epochs, from rgcn.weights where given. Ranks: all call.

    model   the weights, where they are in memory     called   names of a caller; None: those of the triples
    """
    case, group = context.case, context.group
    if inputs is not None and (case.rgcn.parts > 1 or case.memory.fast_mb):
        key = "rgcn.parts" if case.rgcn.parts > 1 else "memory.fast_mb"
        raise CaseError(f"{key}: is of weights for each node, and there are features; leave it out")
    with context.log.phase("set up"), raise_together(group, "reading weights"):
        work = _work_of(case, triples, labels, inputs, model)
    called = called or Called.of(work.triples)
    rows = check_nodes(context, work.triples, work.labels, called)
    _say_graph(context, work.triples, work.graph, work.labels)
    counts = {"triples": len(work.triples), "graph": work.graph, "labels": work.labels, "inputs": inputs}
    make = partial(classes_plan, work.rgcn, **counts, fast_bytes=TierBudget.of(case.memory).limit)
    context = settle(context, work.triples.name, make)
    if work.unknown:
        context.warn(f"{work.unknown} triples are left out: the weights do not know their relations")
    if said := replaced("rgcn", case.rgcn, work.rgcn):
        context.warn(f"the weights bring their layers: {said}")
    found = _trained(context, work)
    weights = found.net.weights_digest(context.group)
    both = {"predictions": found.predictions, "weights": np.frombuffer(bytes.fromhex(weights), np.uint8)}
    told = explain_classes(context, work.graph, work.labels, inputs, found, rows, called)
    return Relational(context, work.graph, work.labels, found, work.about, digest(both), weights, told)


@dataclass(frozen=True)
class _Work:
    """What a network is made of and works on.

    rgcn      the case's table, with the layers of trained weights
    triples, labels   as these number relations and classes
    saved     these weights, or None     unknown   triples left out, whose relations they do not know
    edges     the digest of the graph, where weights are of its nodes, else ""
    """

    rgcn: RgcnCase
    triples: Triples
    labels: NodeLabels
    inputs: Features | None
    graph: RelationalGraph
    saved: SavedRgcn | None
    unknown: int
    edges: str

    @property
    def about(self) -> SavedRgcn:
        """What weights.npz says of the network, without arrays; no names where two are the same."""
        relations = [name for name, kept in zip(self.triples.relation_names, self.graph.kept) if kept]
        names = relations, self.labels.class_names
        known = [each if len(set(each)) == len(each) else [] for each in names]
        width = self.inputs.width if self.inputs else 0
        return SavedRgcn(self.rgcn, width, self.labels.classes, self.edges, {}, *known)


def _work_of(
    case: Case, triples: Triples, labels: NodeLabels, inputs: Features | None, model: SavedRgcn | None
) -> _Work:
    """What a case is about. Raises CaseError where trained weights are of something else."""
    path, rgcn, least, unknown = case.rgcn.weights, case.rgcn, case.rgcn.min_edges, 0
    saved = model or (load_rgcn(path) if path else None)
    if saved:
        saved.refuse_links(path)
        rgcn, least = saved.architecture_of(rgcn), saved.least_edges(triples)
        triples, labels, unknown = saved.renumber(path, triples, labels)
    graph = relational_graph(triples, rgcn.inverse, least)
    edges = "" if inputs else edges_digest(graph, labels.nodes)
    if saved:
        saved.check_fits(path, inputs.width if inputs else 0, labels.classes, edges)
    return _Work(rgcn, triples, labels, inputs, graph, saved, unknown, edges)


def _trained(context: Context, work: _Work) -> RelationalFit:
    """The epochs, and what they came to. Ranks: all call."""
    case, group, budget = context.case, context.group, TierBudget.of(context.case.memory)

    def begin(net: RGCN) -> None:
        if work.saved:
            work.saved.put(case.rgcn.weights, net.whole(group))

    with context.log.phase("train"):
        course = Course(_recorder(context), case.run.check_every, begin, context.keeper, context.alike)
        found = train_rgcn(group, work.graph, work.labels, work.rgcn, case.seed, budget, work.inputs, course)
    shares = ", ".join(f"{split} {share:.4f}" for split, share in found.accuracy.items())
    context.log.info(
        "%d epochs in %.2f s (%.2f ms each); %s",
        found.epochs, found.seconds, 1e3 * found.seconds / max(found.epochs, 1),
        f"accuracy: {shares}" if shares else "no labelled nodes to tell the accuracy by",
    )  # fmt: skip
    return found


# ---- what is said and written ------------------------------------------------------------------------------


def _recorder(context: Context) -> Any:
    """What training calls with each record: a row of metrics.csv and, now and then, a line."""
    log, to_go = context.log, ToGo(context.case.rgcn.epochs)

    def record(row: dict[str, float]) -> None:
        sent = sum(context.group.sent_bytes.values())
        scores = {f"{split}_score": row[f"{split}_score"] for split in SPLITS if f"{split}_score" in row}
        log.record(phase="train", name="", step=row["epoch"], loss=row["loss"], sent_bytes=sent, **scores)
        shown = "  ".join(f"{name.removesuffix('_score')} {score:.4f}" for name, score in scores.items())
        epoch = row["epoch"]
        log.progress("epoch %5d  loss %.4f  %s%s", epoch, row["loss"], shown, to_go(int(epoch)))

    return record


def _say_graph(context: Context, triples: Triples, graph: RelationalGraph, labels: NodeLabels) -> None:
    """What the network works on."""
    rgcn = context.case.rgcn
    nodes = nodes_by_layer(graph, labels.nodes, rgcn.layers, rgcn.prune)
    sizes = {split: len(chosen) for split, (chosen, _) in labels.sets().items()}
    val = f"{sizes['val']} validation, " if "val" in sizes else ""
    context.log.info(
        "%d edges of %d relations; %d classes, %d training, %s%d test nodes; %d nodes within reach",
        len(graph), graph.relations, labels.classes, sizes["train"], val, sizes["test"], len(nodes[0]),
    )  # fmt: skip


def size_table(graph: RelationalGraph, labels: NodeLabels, found: RelationalFit) -> list[dict[str, int]]:
    """What each part holds of the first layer, by group and turn, then the self-loops."""
    case = found.case
    placement = found.placement
    made = nodes_by_layer(graph, labels.nodes, case.layers, case.prune)[1]
    used = graph.of_targets(made)
    part_of = placement.turn_of * placement.groups + placement.group_of
    sizes = part_sizes(used, part_of, placement.groups * placement.turns, case.hidden, len(made))
    return [msgspec.to_builtins(size) for size in sizes]


def _result(context: Context, triples: Triples, labels: NodeLabels, done: Relational) -> dict[str, Any]:
    """The task's part of result.json, and the predictions."""
    graph, found = done.graph, done.fit
    sizes = size_table(graph, labels, found) if found.net.one_hot else []
    for number, size in enumerate(sizes):
        name = "self-loops" if number == len(sizes) - 1 else f"part {number + 1}"
        context.log.info(
            "%s: %d relations, %d edges, %d nodes; %d rows of weights stored (%.2f MB), |R||V||H| %.2f MB",
            name, size["relations"], size["edges"], size["nodes"], size["rows"], 4e-6 * size["weights"],
            4e-6 * size["bound"],
        )  # fmt: skip
    entry = {
        "name": triples.name, "nodes": triples.nodes, "edges": len(graph), "relations": graph.relations,
        "train_loss": found.records[-1]["loss"] if found.records else None, "epochs": found.epochs,
        "best_epoch": found.best_epoch, "seconds": found.seconds, "test_accuracy": None,
        **{f"{split}_accuracy": share for split, share in found.accuracy.items()},
    }  # fmt: skip
    if done.explained is not None:
        entry["explanations"] = done.explained.told()
    operations = {kind: round(seconds, 6) for kind, seconds in sorted(found.net.clock.seconds.items())}
    return {
        "digest": done.digest, "weights_digest": done.weights_digest, "parts": sizes, "instances": [entry],
        **entry, "operations": operations,
    }  # fmt: skip


def saved_of(done: Relational) -> SavedRgcn | None:
    """What weights.npz holds; None, and a line in the log, where that is too much. Ranks: all call."""
    context, whole = done.context, done.fit.net.whole(done.context.group)
    total = 4 * sum(int(np.prod(each.shape)) for each in whole.values())
    if total > LARGEST:
        context.log.info("weights.npz is not written: %.1f MB, at most %.1f MB", 1e-6 * total, 1e-6 * LARGEST)
        return None
    return replace(done.about, arrays={name: each.whole() for name, each in whole.items()})


def _write(context: Context, triples: Triples, labels: NodeLabels, done: Relational) -> None:
    """weights.npz, predictions/NAME.txt, probabilities/NAME.npz and the plots. Ranks: all call."""
    folder, group, case, found = context.folder, context.group, context.case, done.fit
    saved = saved_of(done)
    with context.log.phase("write"), raise_together(group, "writing the results"):
        if group.rank == 0 and saved:
            note = f"{case.run.name}, seed {case.seed}, {found.epochs} epochs"
            save_rgcn(folder.file("weights.npz"), saved, note)
        folder.write_text(f"predictions/{triples.name}.txt", _predictions_text(triples, labels, found))
        if case.output.probabilities:
            folder.write_arrays(f"probabilities/{triples.name}.npz", **_likely(triples, labels, found))
        if done.explained is not None:
            folder.write_text(f"explanations/{triples.name}.csv", done.explained.text())
    if case.output.plots:
        plot_training(folder, context.log, found.records)
        plot_breakdown(folder, context.log, {triples.name: found.net.clock.seconds})


def _likely(triples: Triples, labels: NodeLabels, found: RelationalFit) -> dict[str, np.ndarray]:
    """The labelled nodes and the classes, by name where the file has names, and how likely they are."""
    nodes, classes = triples.node_names, labels.class_names
    return {
        "ids": np.array([nodes[node] for node in labels.nodes.tolist()]) if nodes else labels.nodes,
        "classes": np.array(classes) if classes else np.arange(labels.classes),
        "probabilities": found.probabilities,
    }


def _predictions_text(triples: Triples, labels: NodeLabels, found: RelationalFit) -> str:
    """Lines `node class` for the labelled nodes, by name where the file has names.

    Between a tab where some name has a blank or a comma, else a blank.
    """
    nodes, classes = triples.node_names, [escaped(name) for name in labels.class_names]
    between = between_names((*nodes, *classes))
    return "".join(
        f"{escaped(nodes[node]) if nodes else node}{between}{classes[c] if classes else c}\n"
        for node, c in zip(labels.nodes.tolist(), found.predictions.tolist())
    )
