"""Rates of the layers of full-batch training: dense products, activation, loss, and what an operation costs
beside the work that grows with the graph, from epochs on a graph of 8 nodes."""

from functools import partial
from typing import Any

import numpy as np

from app.case.gnn import GnnCase
from app.comm.group import Group
from app.comm.tree import owned_spans
from app.gnn.classifier import Classifier
from app.graphs.nodes.data import SPLITS, NodeData
from app.model.rates import DenseRate, PassRate
from app.model.timing import Bench, Pool
from app.numerics.elementwise import Dropout
from app.numerics.products import Finish, Operand
from app.partition.rows import partition_rows
from app.sparse.rowblock import RowBlock

LAYERS = (16, 64, 256)  # columns of both operands of a layer's dense products, and of its passes
LAYER_ROWS = 1 << 13
DEGREE = 16  # entries in a row that attention weighs
TINY_WIDTH, TINY_CLASSES = 16, 4
EPOCHS = 8  # in a row: the first, which finds its code out of the cache, does not count


def add_operations(bench: Bench, solo: Group, block: RowBlock) -> None:
    """Epochs of two layers on a tiny graph, by the operations in them; solo: a group of this rank alone."""
    rows, n = block.n_own, block.n
    here = np.arange(rows) < n
    labels = np.where(here, np.arange(rows) % TINY_CLASSES, -1).astype(np.int32)
    counts, X = dict.fromkeys(SPLITS, n), np.ones((rows, TINY_WIDTH), dtype=np.float32)
    data = NodeData(
        X, labels, here, **dict.fromkeys(SPLITS, here), classes=TINY_CLASSES, multilabel=False,
        class_ids=np.arange(TINY_CLASSES), width=TINY_WIDTH, binary=False, counts=counts,
    )  # fmt: skip
    classifier = Classifier(solo, GnnCase(hidden=TINY_WIDTH), block, data, 0)
    operations = len(classifier.engine.recorded["epoch"])
    bench.add(
        "operation", lambda: [classifier.epoch(number) for number in range(EPOCHS)], EPOCHS * operations
    )


def add_layers(bench: Bench, pool: Pool) -> None:
    """Dense products of a layer, its activation with dropout, and the loss, of some widths."""
    device, rows = bench.device, LAYER_ROWS
    starts = partition_rows(rows, 1).starts[None, :]
    spans = owned_spans(starts.shape[1] - 1, 0, starts.shape[1] - 1)
    label = device.put(np.zeros(rows, dtype=np.int32))
    weight, drop = device.put(np.full(rows, 1 / rows, dtype=np.float32)), Dropout(1, 0.5, 0)
    for width in LAYERS:
        W = device.put(np.full((width, width), 0.01, dtype=np.float32))
        out, take = device.empty((rows, width)), partial(pool.take, rows, width)
        calls = {
            "wide dense": lambda W=W, out=out, take=take: device.dense([Operand(take())], W, Finish(), out),
            "wide gram": lambda take=take: device.gram_roots([Operand(take())], take(), starts, spans),
            "drop": lambda out=out: device.activate(out, relu=True, drop=drop),
            "loss": lambda out=out: device.softmax_loss(out, label, weight),
        }
        for kind, call in calls.items():
            bench.add((kind, width), call, rows * width * (width if kind.startswith("wide") else 1))


def add_attention(bench: Bench, pool: Pool, draws: np.random.Generator) -> None:
    """What weighs an entry of a matrix by attention, with one head."""
    device, rows, width = bench.device, LAYER_ROWS, LAYERS[0]
    columns = np.sort(draws.integers(0, rows, (rows, DEGREE), dtype=np.int32), axis=1).reshape(-1)
    ends = np.arange(0, rows * DEGREE + 1, DEGREE, dtype=np.int32)
    pattern = device.attention_pattern(device.csr(ends, columns, None, (rows, rows)))
    L, E = pool.take(rows, 1), pool.take(rows, width + 1)
    T, V = device.zeros((rows, 3)), device.zeros((rows, 2 * width))

    def attend() -> None:
        device.attention_begin(L, T, V)
        device.attention_add(pattern, E, L, T, V)

    bench.add("attend", attend, rows * DEGREE)


def attention_rate(found: dict[Any, float]) -> PassRate:
    """For an entry and a head, whatever the bytes."""
    return PassRate([4.0 * LAYER_ROWS * DEGREE], [found["attend"]])


def layer_rate(found: dict[Any, float], kind: str) -> DenseRate:
    """By the bytes of the [k, m] matrix; a row costs its multiply-adds."""
    return DenseRate([4.0 * w * w for w in LAYERS], [0.0] * len(LAYERS), [found[kind, w] for w in LAYERS])


def layer_pass_rate(found: dict[Any, float], kind: str) -> PassRate:
    """By the bytes of the array."""
    return PassRate([4.0 * LAYER_ROWS * width for width in LAYERS], [found[kind, width] for width in LAYERS])
