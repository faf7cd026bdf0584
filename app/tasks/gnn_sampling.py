"""Task study, kind sampling: time to accuracy of full-batch training and of sampled minibatches (ROC Fig. 6).

Both train the same GraphSAGE-mean layers from the same first weights, with the same optimiser, dropout and
weight decay; both are scored by full-batch inference, which no clock counts. One rank.
"""

import time
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

import msgspec
import numpy as np

from app.charts import plot_lines
from app.comm.guard import digest
from app.errors import CaseError
from app.gnn.inputs import input_rows
from app.gnn.optim import make_optimiser
from app.gnn.training import Classifier, decayed_parts
from app.rng import stream
from app.tasks.cells import cell
from app.tasks.context import Context
from app.tasks.gnn_speed import Trainer
from app.tasks.gnn_subjects import Subject, subjects
from app.tasks.quality import digest_text
from app.tasks.sampler import SampledSage, draw_blocks

COLUMNS = ("dataset", "method", "seed", "epoch", "steps", "cpu_s", "train", "val", "test")
REACHED_COLUMNS = ("dataset", "method", "seed", "share_of_best", "val", "epoch", "cpu_s")
SHARES = (0.9, 0.95, 0.98, 1.0)  # of the best validation score of full-batch training


def run_sampling(context: Context) -> dict[str, Any]:
    """Both ways for every seed. Ranks: one."""
    if context.group.size > 1:
        raise CaseError("study.kind: sampling runs on one rank: python run.py FILE")
    rows, reached, digests = [], [], {}
    for subject in subjects(context):
        gnn = _sage(context, subject)
        for seed in subject.seeds:
            key = " ".join(filter(None, (subject.name, subject.recipe, str(seed))))
            found, weights = cell(context, key, partial(_compare, context, subject, gnn, seed))
            rows += found
            digests |= {f"{key} {name}": each for name, each in weights.items()}
            reached += _reached(found)
            for line in reached[-len(SHARES) * len(weights) :]:
                _say(context, line)
    if context.folder is not None:
        context.folder.write_csv("sampling.csv", COLUMNS, rows)
        context.folder.write_csv("reached.csv", REACHED_COLUMNS, reached)
        if context.case.output.plots:
            _plot(context, rows)
    return {"digest": digest_text(digests), "rows": rows, "reached": reached, "instances": []}


def _sage(context: Context, subject: Subject) -> Any:
    """The recipe with SAGE layers, as many as there are fan-outs. Raises CaseError."""
    gnn = msgspec.structs.replace(
        subject.gnn, model="sage", depth=len(context.case.study.fanouts), layers=[], edge_weights=False
    )
    if subject.data.multilabel or gnn.residual or gnn.layer_norm or not gnn.bias:
        raise CaseError("study.kind: sampling knows one label for each node, and plain layers with a bias")
    return gnn


def _compare(
    context: Context, subject: Subject, gnn: Any, seed: int
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Lines of both ways for one seed, and digests of their last weights."""
    classifier = subject.classifier(gnn, seed)
    trainer = Trainer(classifier)
    first = {"dataset": subject.name, "seed": seed}
    full = _follow(classifier, lambda: _full_epoch(trainer), gnn.epochs, gnn.evaluate_every)
    rows = [{**first, "method": "full batch", **line} for line in full]
    digests = {"full batch": trainer.digest()}
    for size in context.case.study.batches:
        classifier = subject.classifier(gnn, seed)
        sampled = Minibatches(subject, classifier, seed, size, context.case.study.fanouts)
        lines = _follow(classifier, sampled.epoch, context.case.study.epochs, 1)
        name = f"minibatches of {size}"
        rows += [{**first, "method": name, **line} for line in lines]
        digests[name] = digest(classifier.params.host())
    return rows, digests


def _full_epoch(trainer: Trainer) -> int:
    """One epoch; its one step."""
    trainer.epoch()
    return 1


def _follow(
    classifier: Classifier, epoch: Callable[[], int], epochs: int, every: int
) -> list[dict[str, float]]:
    """Train; after every so many epochs the seconds of the processor so far, and the scores."""
    lines, seconds, steps = [], 0.0, 0
    for number in range(1, epochs + 1):
        start = time.process_time()
        steps += epoch()
        seconds += time.process_time() - start
        if number % every and number < epochs:
            continue
        scores = {name: each.micro_f1 for name, each in classifier.evaluate().items()}
        lines.append({"epoch": number, "steps": steps, "cpu_s": seconds, **scores})
    return lines


class Minibatches:
    """Sampled training on the host: an epoch takes every training node once, in an order drawn anew.

    The classifier's weights are the first ones, and take what an epoch leaves.
    """

    def __init__(
        self, subject: Subject, classifier: Classifier, seed: int, size: int, fanouts: list[int]
    ) -> None:
        self.classifier, self.seed, self.size, self.fanouts = classifier, seed, size, fanouts
        case, data = classifier.case, subject.data
        self.graph, self.labels = subject.loaded.graph, data.labels
        self.X = input_rows(data, subject.block, case.feature_rows)
        self.nodes = np.flatnonzero(data.train).astype(np.int64)
        params = classifier.params
        self.flat = np.concatenate([each.reshape(-1) for each in params.host().values()])
        self.weights = {
            name: self.flat[part].reshape(params.shapes[name]) for name, part in params.slices.items()
        }
        self.model = SampledSage(self.weights, len(fanouts), case.dropout, case.input_dropout)
        self.optimiser = make_optimiser(case, classifier.params.size, np)
        self.decay = decayed_parts(classifier)
        self.epochs, self.steps = count(1), count(1)

    def epoch(self) -> int:
        """One pass over the training nodes; how many steps it took."""
        order = self.nodes[
            stream(self.seed, "sampling/order", next(self.epochs)).permutation(len(self.nodes))
        ]
        starts = range(0, len(order), self.size)
        for start in starts:
            self._step(order[start : start + self.size], next(self.steps))
        self.classifier.params.set(self.weights)
        return len(starts)

    def _step(self, nodes: np.ndarray, step: int) -> None:
        """One minibatch."""
        decay = self.classifier.case.weight_decay
        blocks = draw_blocks(self.graph, nodes, self.fanouts, self.seed, step)
        _, found = self.model.loss(self.X, blocks, self.labels[nodes], self.seed, step)
        gradient = np.concatenate([found[name].reshape(-1) for name in self.weights])
        for part in self.decay:
            gradient[part] += decay * self.flat[part]
        self.optimiser.update(self.flat, gradient)


def _reached(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """When each way first had a share of the best validation score that full batch reaches."""
    best = max(row["val"] for row in rows if row["method"] == "full batch")
    lines = []
    for share in SHARES:
        for method in dict.fromkeys(row["method"] for row in rows):
            mine = [row for row in rows if row["method"] == method]
            hit = next((row for row in mine if row["val"] >= share * best), None)
            lines.append({
                "dataset": mine[0]["dataset"], "method": method, "seed": mine[0]["seed"],
                "share_of_best": share, "val": share * best,
                "epoch": hit and hit["epoch"], "cpu_s": hit and hit["cpu_s"],
            })  # fmt: skip
    return lines


def _say(context: Context, line: dict[str, Any]) -> None:
    when = "never" if line["epoch"] is None else f"epoch {line['epoch']}, {line['cpu_s']:.2f} s CPU"
    context.log.info(
        "%s, seed %d, %s: validation %.4f (%g of full batch's best): %s",
        line["dataset"], line["seed"], line["method"], line["val"], line["share_of_best"], when,
    )  # fmt: skip


def _plot(context: Context, rows: list[dict[str, Any]]) -> None:
    """Validation score over seconds of the processor, of the first seed."""
    panels: dict[str, dict[str, tuple[list[float], list[float]]]] = {}
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        mine = [row for row in rows if row["dataset"] == dataset]
        panel = panels.setdefault(f"{dataset}, seed {mine[0]['seed']}", {})
        for method in dict.fromkeys(row["method"] for row in mine):
            shown = [row for row in mine if (row["method"], row["seed"]) == (method, mine[0]["seed"])]
            panel[method] = [row["cpu_s"] for row in shown], [row["val"] for row in shown]
    labels = ["validation accuracy"]
    plot_lines(context.folder, context.log, panels, "sampling.png", "seconds of the processor", labels, "log")
