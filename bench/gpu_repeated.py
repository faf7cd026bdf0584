"""What steps of bench/gpu_check.py repeat: epochs and evaluations, and what replaying launches gains."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from app.case.gnn import GnnCase
from app.comm.guard import digest
from app.gnn.classifier import Classifier
from app.gnn.optim import make_optimiser
from app.graphs.nodes.data import NodeData
from app.memory.tiers import TierBudget
from app.problems.mvc import MinimumVertexCover
from app.rl.incremental import FullScores
from app.rng import stream
from bench import subjects
from bench.gpu_tools import SHAPES, Report, Where, make_graph, normal, row_block, wall

CORA = (
    2708,
    5278,
    168,
    [1433, 16, 7],
)  # nodes, edges, largest degree, widths: so small that launches are the time


def make_trainer(
    where: Where, graph: Any, widths: list[int], form: str, budget: TierBudget | None = None
) -> Callable[[], float]:
    """One epoch with its Adam step at each call; `params` is its attribute."""
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


@contextmanager
def told(device: Any, notes: list[str]) -> Iterator[None]:
    """What the device tells goes to the notes; inside it replays what it can, as runs do; then nothing."""
    tell, device.tell = device.tell, notes.append
    device.replays = device.name != "cpu"  # in a rehearsal without a C++ compiler
    try:
        yield
    finally:
        device.replays, device.tell = False, tell


def epochs(where: Where, found: Report) -> None:
    """Epochs whose launches are made one by one, and replayed as a CUDA graph: times and weights."""
    add = found.table("Launches of an epoch", "graph", "one by one, ms", "replayed, ms", "the same weights")
    small = (60, 120, 20, [9, 16, 7])
    shapes = {"small": small} if where.rehearse else {"Cora": CORA, "Arxiv": SHAPES["Arxiv"]}
    device = where.device
    with told(device, found.notes):
        for name, (n, edges, largest, widths) in shapes.items():
            graph = make_graph(where, name, n, edges, largest)
            taken, weights = [], []
            for replayed in (False, True):
                device.replays = replayed and device.name != "cpu"
                trainer = make_trainer(where, graph, widths, "live")
                taken.append(1e3 * wall(where, trainer))
                weights.append(digest(trainer.params.host()))
            same = found.check(len(set(weights)) == 1, f"{name}: other weights by replayed launches")
            add(name, *taken, "yes" if same else "NO")


def evaluations(where: Where, found: Report, net: Any, arrays: dict[str, np.ndarray]) -> None:
    """Evaluations of a policy on one graph, launch by launch and replayed: times, and the node chosen."""
    add = found.table("Launches of an evaluation", "graph", "one by one, ms", "replayed, ms", "the same node")
    device, group = where.device, where.group()
    params = subjects.parameters(group, net, arrays)
    with told(device, found.notes):
        for n, degree in ((where.size(500, 40), 8), (where.size(14_400, 60), 8)):
            graph = make_graph(where, f"ER {n}", n, n * degree // 2, None)
            block, _ = row_block(group, graph)
            taken, nodes = [], []
            for replayed in (False, True):
                device.replays = replayed and device.name != "cpu"
                scores = FullScores(group, net, params, subjects.GraphEnv(group, block, MinimumVertexCover()))
                nodes.append([scores.best() for _ in range(3)])
                taken.append(1e3 * wall(where, scores.best))
            same = found.check(nodes[0] == nodes[1], f"n={n}: another node by replayed launches")
            add(f"ER n={n:,}", *taken, "yes" if same else "NO")
