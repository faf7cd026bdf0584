"""Task study, kind inference: saved weights on graphs that nothing was measured on (ROC section 7.6, Fig. 9).

A set of generated communities, whose classes have the same mean features on all graphs, is written to files.
The model and the cost model of the partitioner are learned on all but the last ones together; these are read,
cut in each way, and scored with the saved weights, the ways by turns.
"""

import os
import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from statistics import fmean, median
from typing import Any

import msgspec
import numpy as np

from app.case.graph import GraphCase
from app.checkpoint.keeper import NOTHING_KEPT
from app.comm.group import Group
from app.comm.guard import digest, digest_text, raise_together
from app.comm.turns import by_turns
from app.errors import CaseError
from app.gnn.saved import load_model, save_model
from app.graphs.generators.random_nodes import random_features, random_labels, random_splits
from app.log import Log
from app.partition.assemble import gather_whole
from app.partition.loaded import Loaded
from app.plots.charts import plot_bars
from app.tasks.context import Context
from app.tasks.levels.course import Learned, learn
from app.tasks.levels.nodes import gather_predictions, read_nodes
from app.tasks.solve import names_apart
from app.tasks.studies.cells import measured_arrays, measurement
from app.tasks.studies.gnn_subjects import check_network

PARTITIONS = ("rows", "edges", "learned")
COLUMNS = (
    "graph", "partition", "ranks", "latency_ms", "slowest_cpu_ms", "cpu_imbalance", "test_accuracy",
)  # fmt: skip
ALONE = "one rank"
LEARNED = ("weights.npz", "cost_model.json")  # files that a training leaves


def run_inference(context: Context) -> dict[str, Any]:
    """Train, save, apply. Ranks: all call."""
    table, study = context.case.graph, context.case.study
    given = [] if table.generator else [table.path] if isinstance(table.path, str) else list(table.path)
    if not given and table.generator != "sbm":
        raise CaseError('study.kind: inference needs graph.generator = "sbm", or graph.path, a list of files')
    if (len(given) or table.count) <= study.held_back or context.folder is None:
        key = "files" if given else "graph.count"
        raise CaseError(f"study.kind: inference needs more {key} than study.held_back = {study.held_back}")
    check_network(context.case, context.case.gnn, "study")
    files = given or _write_set(context)
    known, unseen = files[: -study.held_back], files[-study.held_back :]
    learned = measured_arrays(context, "training", partial(_train, context, known))
    _write_learned(context, learned)
    rows, digests = [], {"weights": digest(load_model(context.folder.file("weights.npz")).arrays)}
    for path, name in zip(unseen, names_apart([os.path.basename(path) for path in unseen])):
        found, digests[name] = measurement(context, name, partial(_apply, context, path, name))
        rows += found
    means = _means(rows)
    for row in means:
        ranks = "1 rank" if row["ranks"] == 1 else f"{row['ranks']} ranks"
        context.log.info(
            "%s, %s: %.2f ms a graph, slowest rank %.2f ms CPU, over the mean %.3f; test accuracy %.4f",
            row["partition"], ranks, row["latency_ms"], row["slowest_cpu_ms"], row["cpu_imbalance"],
            row["test_accuracy"],
        )  # fmt: skip
    context.folder.write_csv("inference.csv", COLUMNS, [*rows, *means])
    if context.case.output.plots:
        bars = {
            row["partition"]: {
                "wall": (row["latency_ms"], 0.0), "slowest rank, CPU": (row["slowest_cpu_ms"], 0.0)
            }
            for row in means
        }  # fmt: skip
        title = f"ms a graph, {context.group.size} ranks"
        plot_bars(context.folder, context.log, bars, "inference.png", title)
    return {"digest": digest_text(digests), "rows": rows, "means": means, "instances": []}


# ---- the set ----------------------------------------------------------------------------------------------


def _write_set(context: Context) -> list[str]:
    """graphs/NAME.npz of every graph of the set; their paths. Ranks: all call."""
    case, paths = context.case, []
    for loaded in context.load(case.graph, "set"):
        name = f"graphs/{loaded.graph.name}.npz"
        _write_graph(context, loaded, name)
        paths.append(context.folder.file(name))
    return paths


def _write_graph(context: Context, loaded: Loaded, name: str) -> None:
    """One graph with features, labels and splits. Ranks: all call."""
    table = context.case.graph
    whole = gather_whole(context.group, loaded.graph, loaded.rows)
    nodes, classes = np.arange(whole.n), table.random_classes
    labels = random_labels(loaded.seed, whole.n, classes, nodes, True)
    features = random_features(
        loaded.seed, nodes, table.random_features, labels, classes, table.signal, context.case.seed
    )
    splits = random_splits(loaded.seed, nodes)
    masks = {f"{split}_mask": splits == value for split, value in (("train", 1), ("val", 2), ("test", 4))}
    with raise_together(context.group, f"writing {name}"):
        context.folder.write_arrays(
            name,
            adj_indptr=whole.indptr,
            adj_indices=whole.indices,
            features=features,
            labels=labels,
            **masks,
        )


def _changed(context: Context, files: list[str], partition: str, **gnn: Any) -> Context:
    """The context for some files of the set, cut in one way.

    A first product that is kept (layers/layer.py) would be left out of what is measured: of an unseen graph
    there is none yet.
    """
    case, folder = context.case, context.folder
    model = folder.file("cost_model.json") if partition == "learned" else ""
    parallel = msgspec.structs.replace(
        case.parallel, partition=partition, cost_model=model if os.path.isfile(model) else ""
    )
    made = GraphCase(path=files, format="npz")
    graph = made if case.graph.generator else msgspec.structs.replace(case.graph, path=files)
    first = "live" if case.gnn.first_product in ("auto", "cached") else case.gnn.first_product
    gnn_case = msgspec.structs.replace(case.gnn, first_product=first, baselines=False, **gnn)
    return replace(context, case=msgspec.structs.replace(case, graph=graph, parallel=parallel, gnn=gnn_case))


def _train(context: Context, files: list[str]) -> dict[str, np.ndarray]:
    """Train on the files' disjoint union: the bytes of the files LEARNED that it leaves (a cost model on
    several ranks alone).

    Ranks   all call; identical on all
    """
    with raise_together(context.group, "beginning the training"):
        if context.group.rank == 0:  # what an earlier part of the run has left, on another number of ranks
            for name in LEARNED:
                _remove(context, name)
    learning = _changed(context, files, "learned")
    done = learn(learning, read_nodes(learning))
    with raise_together(context.group, "writing the weights"):
        if context.group.rank == 0:
            save_model(context.folder.file("weights.npz"), done.saved, f"{len(files)} graphs")
    return {name: _bytes_of(context, name) for name in LEARNED}


def _remove(context: Context, name: str) -> None:
    with suppress(FileNotFoundError):
        os.remove(context.folder.file(name))


def _bytes_of(context: Context, name: str) -> np.ndarray:
    """The bytes of a file of the run folder, none where there is no such file. Ranks: all call."""
    group, path, mine = context.group, context.folder.file(name), np.zeros(0, np.uint8)
    with raise_together(group, f"reading {name}"):
        if group.rank == 0 and os.path.isfile(path):
            mine = np.fromfile(path, dtype=np.uint8)
    length = group.max_integer(len(mine))
    return group.broadcast(mine if group.rank == 0 else np.empty(length, np.uint8)) if length else mine


def _write_learned(context: Context, learned: dict[str, np.ndarray]) -> None:
    """The files that the training left, which an earlier part of the run may have made. Ranks: all call."""
    with raise_together(context.group, "writing what was learned"):
        for name in LEARNED if context.group.rank == 0 else ():
            if not len(learned[name]):
                _remove(context, name)
                continue
            with context.folder.placed(name) as file:
                file.write(learned[name].tobytes())
    context.group.barrier()


# ---- unseen graphs ----------------------------------------------------------------------------------------


def _apply(context: Context, path: str, graph: str) -> tuple[list[dict[str, Any]], str]:
    """Score one graph with the saved weights, cut in every way and on one rank: a line for each, a digest of
    the predictions, which are the same however it is cut.

    graph   its name in the table
    Ranks   all call
    """
    weights = context.folder.file("weights.npz")
    ready: dict[str, Learned] = {}
    predicted = set()
    for name in (*PARTITIONS, ALONE):
        own = _changed(context, [path], "edges" if name == ALONE else name, weights=weights, epochs=0)
        own = replace(own, folder=None, log=Log(False))
        if name == ALONE:
            own = replace(own.alone(), keeper=NOTHING_KEPT)
        ready[name] = learn(own, read_nodes(own))
        predicted.add(gather_predictions(ready[name]).tobytes())
    if len(predicted) > 1:
        raise AssertionError(f"{path}: the predictions depend on the cuts")
    walls, cpu = _by_turns(context.group, ready, context.case.study.rounds)
    rows = [_line(context.group, graph, name, ready, walls, cpu) for name in ready]
    return rows, digest_text({"predictions": predicted.pop().hex()})


def _by_turns(
    group: Group, ready: dict[str, Learned], rounds: int
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Seconds of the wall, as rank 0 has them, and of this rank's processor outside of MPI calls, by way; a
    first round does not count. Ranks: all call."""
    group.processor_s = 0.0
    cpu: dict[str, list[float]] = {name: [] for name in ready}
    actions = {name: partial(_pass, group, each, cpu[name]) for name, each in ready.items()}
    walls = by_turns(group, actions, rounds, ALONE)
    return walls, {name: each[1:] for name, each in cpu.items()}


def _pass(group: Group, done: Learned, into: list[float]) -> None:
    """One inference."""
    start = time.process_time() - group.processor_s
    done.classifier.scores_own()
    into.append(time.process_time() - group.processor_s - start)


def _line(
    group: Group, graph: str, name: str, ready: dict[str, Learned], walls: dict[str, list[float]],
    cpu: dict[str, list[float]],
) -> dict[str, Any]:  # fmt: skip
    """A line of the table. Ranks: all call."""
    by_rank = 1e-9 * group.gather_integers(np.array([round(1e9 * median(cpu[name] or [0.0]))]))[:, 0]
    alone = name == ALONE
    working = by_rank[:1] if alone else by_rank
    return {
        "graph": graph, "partition": name, "ranks": 1 if alone else group.size,
        "latency_ms": 1e3 * float(group.broadcast(np.array([median(walls[name])]))[0]),
        "slowest_cpu_ms": 1e3 * float(working.max()),
        "cpu_imbalance": round(float(working.max() / max(working.mean(), 1e-12)), 4),
        "test_accuracy": _accuracy(ready[name]),
    }  # fmt: skip


def _accuracy(done: Learned) -> float:
    """Of the test nodes; of a graph that is all one other set, of that."""
    counts = done.classifier.data.counts
    if not any(counts.values()):
        raise CaseError(
            "study.kind: inference scores graphs that were held back; nodes with labels would be right"
        )
    return done.scores[next((split for split in ("test", "val") if counts[split]), "train")].accuracy


def _means(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The mean over the graphs, by way."""
    found = []
    for name in (*PARTITIONS, ALONE):
        mine = [row for row in rows if row["partition"] == name]
        numbers = {key: fmean(row[key] for row in mine) for key in COLUMNS[3:]}
        found.append({"graph": "mean", "partition": name, "ranks": mine[0]["ranks"], **numbers})
    return found
