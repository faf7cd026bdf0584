"""Graph networks that the steps of bench/gpu_check.py train, and what replaying their launches gains."""

from collections.abc import Callable
from typing import Any

import numpy as np

from app.comm.guard import digest
from app.config import GnnCase
from app.gnn.optim import make_optimiser
from app.gnn.training import Classifier
from app.graphs.nodedata import NodeData
from app.memory.tiers import Budget
from app.rng import stream
from bench import gpu_tools
from bench.gpu_tools import SHAPES, Report, Where, make_graph, normal, row_block, wall

CORA = (2708, 5278, [1433, 16, 7])  # nodes, edges, widths: so small that launches are the time


def make_trainer(
    where: Where, graph: Any, widths: list[int], form: str, budget: Budget | None = None
) -> Callable[[], float]:
    """One epoch with its Adam step at each call; `params` and `classifier` are its attributes."""
    group = where.group()
    block, _ = row_block(group, graph)
    case = GnnCase(
        model="gcn", depth=len(widths) - 1, hidden=widths[1], dropout=0.0, input_dropout=0.0,
        first_product=form, feature_rows="as_given", weight_decay=0.0,
    )  # fmt: skip
    classifier = Classifier(group, case, block, node_data(block, widths, graph.n), 1, budget=budget)
    params, device, done = classifier.params, where.device, iter(range(1, 1 << 30))
    optimiser = make_optimiser(case, params.size, device.xp, kernel=device.adam)

    def epoch() -> float:
        loss = classifier.epoch(next(done))
        optimiser.update(params.flat, classifier.engine.gradient)
        return loss

    epoch.params = params
    return epoch


def node_data(block: Any, widths: list[int], n: int) -> NodeData:
    """Random features, classes and training nodes."""
    own, classes = block.n_own, widths[-1]
    features = np.zeros((own, widths[0]), dtype=np.float32)
    features[:n] = normal("features", n, widths[0])
    labels = np.full(own, -1, dtype=np.int32)
    labels[:n] = stream(1, "bench/gpu/labels").integers(0, classes, n)
    train, none = np.zeros(own, dtype=bool), np.zeros(own, dtype=bool)
    train[:n:2] = True
    return NodeData(
        features=features, labels=labels, labelled=labels >= 0, train=train, val=none, test=none,
        classes=classes, multilabel=False, class_ids=np.arange(classes), width=widths[0], binary=False,
        counts={"train": int(train.sum()), "val": 0, "test": 0},
    )  # fmt: skip


def replays(where: Where, found: Report) -> None:
    """Epochs whose launches are made one by one, and replayed as a CUDA graph: times and weights."""
    add = found.table("Launches of an epoch", "graph", "one by one, ms", "replayed, ms", "the same weights")
    small = (60, 120, [9, 16, 7])
    shapes = {"small": small} if where.rehearse else {"Cora": CORA, "Arxiv": SHAPES["Arxiv"]}
    device, tell = where.device, where.device.tell
    device.tell = found.notes.append
    try:
        for name, (n, edges, widths) in shapes.items():
            graph = make_graph(where, name, n, edges, gpu_tools.EXPONENT)
            taken, weights = [], []
            for replayed in (False, True):
                device.replays = replayed
                trainer = make_trainer(where, graph, widths, "live")
                taken.append(1e3 * wall(where, trainer))
                weights.append(digest(trainer.params.host()))
            same = found.check(len(set(weights)) == 1, f"{name}: other weights by replayed launches")
            add(name, *taken, "yes" if same else "NO")
    finally:
        device.replays, device.tell = False, tell
