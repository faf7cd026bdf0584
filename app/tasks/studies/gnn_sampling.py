"""Task study, kind sampling: time to accuracy of full-batch training and of sampled minibatches (ROC Fig. 6).

GraphSAGE's sampler trains GraphSAGE-mean layers, FastGCN's those of a GCN. Full-batch training of the same
layers has the same first weights, optimiser, dropout and weight decay; all are scored by full-batch
inference, which no clock counts. What a sampler or a kept product needs first is counted. One rank.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from app.case.gnn import GnnCase
from app.comm.guard import digest, digest_text
from app.errors import CaseError
from app.gnn.classifier import Classifier
from app.plots.charts import plot_lines
from app.tasks.context import Context
from app.tasks.studies.cells import cell
from app.tasks.studies.gnn_speed import Trainer
from app.tasks.studies.gnn_subjects import Subject, subjects
from app.tasks.studies.minibatch import Minibatches, Sampler
from app.tasks.studies.sampled_gcn import LayerSampler
from app.tasks.studies.sampled_sage import NeighbourSampler

COLUMNS = ("dataset", "layers", "method", "batch", "seed", "epoch", "steps", "cpu_s", "train", "val", "test")
REACHED_COLUMNS = (
    "dataset", "layers", "method", "batch", "seed", "share_of_best", "val", "epoch", "cpu_s"
)  # fmt: skip
FULL = "full batch"
SHARES = (0.9, 0.95, 0.98, 1.0)  # of the best validation score of full-batch training of the same layers


@dataclass(frozen=True)
class Pair:
    """A sampler, its sizes and epochs, and the recipe of the layers that it and full-batch training train."""

    sampler: type[Sampler]
    sizes: list[int]
    epochs: int
    gnn: GnnCase


def run_sampling(context: Context) -> dict[str, Any]:
    """All ways for every seed. Ranks: one."""
    if context.group.size > 1:
        raise CaseError("study.kind: sampling runs on one rank: python run.py FILE")
    rows, reached, digests = [], [], {}
    for subject in subjects(context, lambda recipe: [pair.gnn for pair in _pairs(context, recipe)]):
        if subject.data.multilabel:
            raise CaseError(f"{subject.name}: study.kind: sampling knows one label for each node")
        pairs = _pairs(context, subject.gnn)
        for seed in subject.seeds:
            key = " ".join(filter(None, (subject.name, subject.recipe, str(seed))))
            found, weights = cell(context, key, partial(_compare, context, subject, pairs, seed))
            rows += found
            digests |= {f"{key} {name}": each for name, each in weights.items()}
            for line in (lines := _reached(found)):
                _say(context, line)
            reached += lines
    if context.folder is not None:
        context.folder.write_csv("sampling.csv", COLUMNS, rows)
        context.folder.write_csv("reached.csv", REACHED_COLUMNS, reached)
        if context.case.output.plots:
            _plot(context, rows)
    return {"digest": digest_text(digests), "rows": rows, "reached": reached, "instances": []}


def _pairs(context: Context, gnn: GnnCase) -> list[Pair]:
    """Those whose sizes the study has, by the recipe of a data set. Raises CaseError."""
    study = context.case.study
    if gnn.residual or gnn.layer_norm or gnn.batch_norm or not gnn.bias:
        raise CaseError("study.kind: sampling knows plain layers with a bias")
    if gnn.edge_weights:
        raise CaseError("gnn.edge_weights: study.kind = sampling counts every edge one; false would be right")
    if gnn.class_weights != "equal":
        raise CaseError('gnn.class_weights: study.kind = sampling weighs nodes alike; "equal" would be right')
    if gnn.schedule != "constant" or gnn.warmup or gnn.clip:
        raise CaseError("gnn.schedule, warmup, clip: study.kind = sampling takes equal steps; leave them out")
    plain = msgspec.structs.replace(gnn, layers=[])
    known = (
        (NeighbourSampler, study.fanouts, study.epochs),
        (LayerSampler, study.layer_samples, study.layer_epochs),
    )
    return [
        Pair(sampler, sizes, epochs, msgspec.structs.replace(plain, model=sampler.kind, depth=len(sizes)))
        for sampler, sizes, epochs in known
        if sizes
    ]


def _compare(
    context: Context, subject: Subject, pairs: list[Pair], seed: int
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Lines of all ways for one seed, and digests of their last weights."""
    study, rows, digests = context.case.study, [], {}
    for pair in pairs:
        gnn = pair.gnn
        ways = [(FULL, subject.data.counts["train"], _full_batch, gnn.epochs, gnn.evaluate_every)]
        for size in study.batches:
            begin = partial(_minibatches, pair, size, seed, subject)
            ways.append((pair.sampler.name, size, begin, pair.epochs, 1))
        for method, size, begin, epochs, every in ways:
            classifier = subject.classifier(gnn, seed)
            way = {"layers": gnn.model, "method": method, "batch": size}
            lines = _follow(classifier, begin, epochs, every)
            rows += [{"dataset": subject.name, **way, "seed": seed, **line} for line in lines]
            digests[_label(way)] = digest(classifier.params.host())
    return rows, digests


def _full_batch(classifier: Classifier) -> Callable[[], int]:
    """An epoch of full-batch training; its one step."""
    trainer = Trainer(classifier)

    def epoch() -> int:
        trainer.epoch()
        return 1

    return epoch


def _minibatches(
    pair: Pair, size: int, seed: int, subject: Subject, classifier: Classifier
) -> Callable[[], int]:
    """An epoch of sampled training; how many steps it took."""
    return Minibatches(pair.sampler, pair.sizes, size, seed, subject, classifier).epoch


def _follow(
    classifier: Classifier, begin: Callable[[Classifier], Callable[[], int]], epochs: int, every: int
) -> list[dict[str, float]]:
    """Train; after every so many epochs the seconds of the processor so far, and the scores.

    begin   gets ready, and returns what makes an epoch and tells the number of its steps
    """
    lines, steps, start = [], 0, time.process_time()
    epoch = begin(classifier)
    seconds = time.process_time() - start
    for number in range(1, epochs + 1):
        start = time.process_time()
        steps += epoch()
        seconds += time.process_time() - start
        if number % every and number < epochs:
            continue
        scores = {name: each.micro_f1 for name, each in classifier.evaluate().items()}
        lines.append({"epoch": number, "steps": steps, "cpu_s": seconds, **scores})
    return lines


def _reached(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """When each way first had a share of the best validation score of full batch with the same layers."""
    lines = []
    for layers in dict.fromkeys(row["layers"] for row in rows):
        ways: dict[str, list[dict[str, Any]]] = {}
        for row in rows:
            if row["layers"] == layers:
                ways.setdefault(_label(row), []).append(row)
        best = max(row["val"] for mine in ways.values() for row in mine if row["method"] == FULL)
        lines += [_first_at(mine, share, share * best) for share in SHARES for mine in ways.values()]
    return lines


def _first_at(rows: list[dict[str, Any]], share: float, val: float) -> dict[str, Any]:
    """When a way first had a validation score."""
    hit = next((row for row in rows if row["val"] >= val), {})
    way = {key: rows[0][key] for key in ("dataset", "layers", "method", "batch", "seed")}
    return {**way, "share_of_best": share, "val": val, "epoch": hit.get("epoch"), "cpu_s": hit.get("cpu_s")}


def _label(way: dict[str, Any]) -> str:
    """How tables and plots call a way of training."""
    name = f"{way['method']}, {way['layers']}"
    return name if way["method"] == FULL else f"{name}, {way['batch']} nodes"


def _say(context: Context, line: dict[str, Any]) -> None:
    when = "never" if line["epoch"] is None else f"epoch {line['epoch']}, {line['cpu_s']:.2f} s CPU"
    context.log.info(
        "%s, seed %d, %s: validation %.4f (%g of full batch's best): %s",
        line["dataset"], line["seed"], _label(line), line["val"], line["share_of_best"], when,
    )  # fmt: skip


def _plot(context: Context, rows: list[dict[str, Any]]) -> None:
    """Validation score over seconds of the processor, of the first seed."""
    panels: dict[str, dict[str, tuple[list[float], list[float]]]] = {}
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        mine = [row for row in rows if row["dataset"] == dataset]
        shown = [row for row in mine if row["seed"] == mine[0]["seed"]]
        panel = panels.setdefault(f"{dataset}, seed {mine[0]['seed']}", {})
        for row in shown:
            seconds, scores = panel.setdefault(_label(row), ([], []))
            seconds.append(row["cpu_s"])
            scores.append(row["val"])
    labels = ["validation accuracy"]
    plot_lines(context.folder, context.log, panels, "sampling.png", "seconds of the processor", labels, "log")
