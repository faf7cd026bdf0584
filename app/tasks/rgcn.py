"""R-GCN on a knowledge graph: read triples and labels, train, say how many test nodes it gets right."""

import os
import time
from typing import Any

import msgspec

from app.comm.guard import digest, raise_together
from app.config import Case
from app.errors import CaseError
from app.gnn.link_prediction import train_links
from app.gnn.rgcn_training import RelationalFit, train_rgcn
from app.graphs.ntriples import read_label_tables, read_ntriples
from app.graphs.random_triples import random_labels, random_triples
from app.graphs.relational import RelationalGraph, nodes_by_layer, relational_graph
from app.graphs.source import Limits, Source, graph_suffix
from app.graphs.triples import NodeLabels, Triples, read_triples_npz
from app.memory.tiers import Budget
from app.partition.relations import part_sizes
from app.tasks.context import Context

TRAIN_FILE, TEST_FILE = "trainingSet.tsv", "testSet.tsv"


def is_relational(case: Case) -> bool:
    """Whether a case is one of knowledge graphs: their files are triples, not edges."""
    return case.run.task == "classify" and case.gnn.model == "rgcn"


def check_triples(case: Case) -> None:
    """Refuse files that cannot be opened, before anything is written. Raises GraphError."""
    for path in case.graph.path:
        Source(path).check()


def run_rgcn(context: Context) -> dict[str, Any]:
    """Train on the triples of [graph] and return the task's part of result.json. Ranks: all call."""
    case, log, group = context.case, context.log, context.group
    triples, labels = load_triples(context)
    if case.rgcn.goal == "links":
        return _run_links(context, triples)
    with log.phase("set up"):
        graph = relational_graph(triples, case.rgcn.inverse, case.rgcn.min_edges)
    _say_graph(context, triples, graph, labels)
    start = time.perf_counter()
    with log.phase("train"):
        memory = case.memory
        budget = Budget(round(memory.fast_mb * 1e6), memory.slow, memory.folder)
        found = train_rgcn(
            group, graph, labels, case.rgcn, case.seed, budget, _recorder(context), case.run.check_every
        )
    seconds = time.perf_counter() - start
    log.info(
        "%d epochs in %.2f s (%.2f ms each); accuracy: train %.4f, test %.4f",
        case.rgcn.epochs, seconds, 1e3 * seconds / max(case.rgcn.epochs, 1),
        found.accuracy["train"], found.accuracy["test"],
    )  # fmt: skip
    return _result(context, triples, graph, labels, found, seconds)


def _run_links(context: Context, triples: Triples) -> dict[str, Any]:
    """Train on a share of the triples and rank the others. Ranks: all call."""
    case, log, group = context.case, context.log, context.group

    def record(row: dict[str, float]) -> None:
        log.record(phase="train", name="", step=row["epoch"], loss=row["loss"])
        log.progress("epoch %5d  loss %.4f", row["epoch"], row["loss"])

    start = time.perf_counter()
    with log.phase("train"):
        found = train_links(group, triples, case.rgcn, case.seed, record)
    for name, scores in found.scores.items():
        log.info("%-13s %s", name, "  ".join(f"{key} {value:.4f}" for key, value in scores.items()))
    weights = {"links/D": found.relations, **found.net.whole_weights(group)}
    entry = {
        "name": triples.name, "nodes": triples.nodes, "relations": triples.relations,
        "train_loss": found.records[-1]["loss"] if found.records else None, "epochs": case.rgcn.epochs,
        "seconds": time.perf_counter() - start, "links": found.scores,
    }  # fmt: skip
    return {"digest": digest(weights), "weights_digest": digest(weights), "instances": [entry], **entry}


# ---- reading ----------------------------------------------------------------------------------------------


def load_triples(context: Context) -> tuple[Triples, NodeLabels | None]:
    """Triples and labels of the file that [graph] names, the same on all ranks. Ranks: all call."""
    with context.log.phase("read"), raise_together(context.group, "reading the triples"):
        triples, labels = read_case_triples(context.case)
    context.log.info(
        "%s: %d triples, %d nodes, %d relations", triples.name, len(triples), triples.nodes, triples.relations
    )
    return triples, labels


def read_case_triples(case: Case) -> tuple[Triples, NodeLabels | None]:
    """Triples and labels of graph.path, one .npz or an N-Triples file with two tables, or generated ones.

    Raises CaseError. Labels are None where links are to be predicted and there are none.
    """
    if case.graph.generator == "ba":
        seed = case.seed if case.graph.generator_seed < 0 else case.graph.generator_seed
        nodes, rgcn = int(case.graph.nodes), case.rgcn
        triples = random_triples(nodes, case.graph.edges or nodes * case.graph.d, rgcn.relations, seed)
        return triples, random_labels(triples, rgcn.labelled, rgcn.classes, seed)
    paths = [case.graph.path] if isinstance(case.graph.path, str) else list(case.graph.path)
    if len(paths) != 1:
        raise CaseError(f"graph.path: found {len(paths)} files; one .npz or N-Triples file would be right")
    limits = Limits(decompressed=int(case.memory.max_decompressed_gb * 1e9))
    path, folder = paths[0], os.path.dirname(paths[0])
    if graph_suffix(path) == ".npz":
        triples, labels = read_triples_npz(path, limits)
        if labels is None and case.rgcn.goal == "classes":
            right = "train_idx, train_label, test_idx and test_label would be right"
            raise CaseError(f"graph.path: {triples.name} holds no labels; {right}")
        return triples, labels
    triples = read_ntriples(path, limits)
    if case.rgcn.goal == "links":
        return triples, None
    train = case.rgcn.train_labels or os.path.join(folder, TRAIN_FILE)
    test = case.rgcn.test_labels or os.path.join(folder, TEST_FILE)
    return triples, read_label_tables(train, test, triples, limits)


# ---- what is said and written ------------------------------------------------------------------------------


def _recorder(context: Context) -> Any:
    """What training calls with each record: a row of metrics.csv and, now and then, a line."""
    log = context.log

    def record(row: dict[str, float]) -> None:
        sent = sum(context.group.sent_bytes.values())
        scores = {name: row[name] for name in ("train_score", "test_score")}
        log.record(phase="train", name="", step=row["epoch"], loss=row["loss"], sent_bytes=sent, **scores)
        log.progress(
            "epoch %5d  loss %.4f  train %.4f  test %.4f",
            row["epoch"], row["loss"], row["train_score"], row["test_score"],
        )  # fmt: skip

    return record


def _say_graph(context: Context, triples: Triples, graph: RelationalGraph, labels: NodeLabels) -> None:
    """What the network works on."""
    rgcn = context.case.rgcn
    nodes = nodes_by_layer(graph, labels.nodes, rgcn.layers, rgcn.prune)
    context.log.info(
        "%d edges of %d relations; %d classes, %d training and %d test nodes; %d nodes within reach",
        len(graph), graph.relations, labels.classes, len(labels.train_idx), len(labels.test_idx),
        len(nodes[0]),
    )  # fmt: skip


def size_table(
    graph: RelationalGraph, labels: NodeLabels, found: RelationalFit, hidden: int, layers: int, prune: bool
) -> list[dict[str, int]]:
    """What each part holds of the first layer, by group and turn, then the self-loops."""
    placement = found.placement
    made = nodes_by_layer(graph, labels.nodes, layers, prune)[1]
    used = graph.of_targets(made)
    part_of = placement.turn_of * placement.groups + placement.group_of
    sizes = part_sizes(used, part_of, placement.groups * placement.turns, hidden, len(made))
    return [msgspec.to_builtins(size) for size in sizes]


def _result(
    context: Context, triples: Triples, graph: RelationalGraph, labels: NodeLabels, found: RelationalFit,
    seconds: float,
) -> dict[str, Any]:  # fmt: skip
    """The task's part of result.json, and the predictions. Ranks: all call."""
    rgcn, folder = context.case.rgcn, context.folder
    weights = found.net.whole_weights(context.group)
    sizes = size_table(graph, labels, found, rgcn.hidden, rgcn.layers, rgcn.prune)
    for number, size in enumerate(sizes):
        name = "self-loops" if number == len(sizes) - 1 else f"part {number + 1}"
        context.log.info(
            "%s: %d relations, %d edges, %d nodes; %d rows of weights stored (%.2f MB), |R||V||H| %.2f MB",
            name, size["relations"], size["edges"], size["nodes"], size["rows"], 4e-6 * size["weights"],
            4e-6 * size["bound"],
        )  # fmt: skip
    if folder is not None:
        names = triples.node_names
        lines = (
            f"{names[node] if names else node} {labels.class_names[c] if labels.class_names else c}\n"
            for node, c in zip(labels.nodes.tolist(), found.predictions.tolist())
        )
        folder.write_text(f"predictions/{triples.name}.txt", "".join(lines))
    entry = {
        "name": triples.name, "nodes": triples.nodes, "edges": len(graph), "relations": graph.relations,
        "train_loss": found.records[-1]["loss"] if found.records else None, "epochs": rgcn.epochs,
        "seconds": seconds, "train_accuracy": found.accuracy["train"],
        "test_accuracy": found.accuracy["test"],
    }  # fmt: skip
    both = digest({"predictions": found.predictions, **weights})
    return {"digest": both, "weights_digest": digest(weights), "parts": sizes, "instances": [entry], **entry}
