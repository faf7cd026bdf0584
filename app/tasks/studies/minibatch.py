"""Training on sampled minibatches, on one rank and the host: what full-batch training is compared with.

A Sampler says what the layers of a minibatch read, a SampledModel what they make of it; sampled_sage.py and
sampled_gcn.py have one pair each. All that is drawn is a function of the seed and the step (app/rng.py).
"""

from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
import scipy.sparse as sp

from app.case.gnn import GnnCase
from app.gnn.classifier import Classifier
from app.gnn.inputs import input_rows
from app.gnn.optim import make_optimiser
from app.gnn.training import add_decay, decayed_parts
from app.graphs.graph import Graph
from app.rng import stream
from app.tasks.studies.gnn_subjects import Subject


@dataclass(frozen=True)
class Bipartite:
    """One layer of a minibatch: what its targets read.

    sources   [s] nodes
    M         [t, s] each target's sum over the sources
    """

    sources: np.ndarray
    M: sp.csr_array

    @property
    def targets(self) -> int:
        """How many of them."""
        return self.M.shape[0]


class SampledModel:
    """Layers on a minibatch's blocks with relu and dropout between them; a subclass says what a layer is.

    Forward   H' = drop(relu(Z)), Z the layer's; the last one is linear
    Loss      the mean cross-entropy of softmax over the minibatch: dZ = (softmax(Z) - Y) / b
    Backward  dZ of the layer below = dH * drop * [Z > 0], dH the layer's

    weights   arrays by name: layerL.PART for L = 1..layers
    """

    def __init__(self, weights: Any, layers: int, dropout: float, input_dropout: float) -> None:
        self.weights, self.layers, self.dropout, self.input_dropout = weights, layers, dropout, input_dropout

    def loss(
        self, X: Any, blocks: list[Bipartite], labels: np.ndarray, seed: int, step: int
    ) -> tuple[float, dict[str, np.ndarray]]:
        """The loss of a minibatch and its gradient by every weight.

        X        [n, f] what the first layer reads of all nodes, dense or CSR
        labels   [b] classes of the minibatch's nodes
        """
        H, saved = self._drop_input(X[blocks[0].sources], seed, step), []
        for number, block in enumerate(blocks, start=1):
            Z = self.forward(number, H, block)
            factor = None
            if number < self.layers:
                factor = (Z > 0) * self._kept(Z.shape, self.dropout, seed, f"sampling/dropout{number}", step)
            saved.append((H, block, factor))
            H = Z if factor is None else Z * factor
        loss, D = _cross_entropy(H, labels)
        gradients: dict[str, np.ndarray] = {}
        for number in range(self.layers, 0, -1):
            H, block, factor = saved[number - 1]
            if factor is not None:
                D = D * factor
            D = self.backward(number, H, block, D, gradients)
        return loss, gradients

    def forward(self, number: int, H: Any, block: Bipartite) -> np.ndarray:
        """Z [t, f_out] of a layer from H [s, f_in]."""
        raise NotImplementedError

    def backward(
        self, number: int, H: Any, block: Bipartite, D: np.ndarray, gradients: dict[str, np.ndarray]
    ) -> np.ndarray | None:
        """dH from D = dZ, None in the first layer; those by the layer's weights go to the table."""
        raise NotImplementedError

    def _drop_input(self, X: Any, seed: int, step: int) -> Any:
        if not self.input_dropout:
            return X
        values = X.data if sp.issparse(X) else X
        kept = values * self._kept(values.shape, self.input_dropout, seed, "sampling/input", step)
        return sp.csr_array((kept, X.indices, X.indptr), shape=X.shape) if sp.issparse(X) else kept

    def _kept(
        self, shape: tuple[int, ...], share: float, seed: int, purpose: str, step: int
    ) -> np.ndarray | np.float32:
        """Zero with chance `share`, else 1 / (1 - share)."""
        if not share:
            return np.float32(1)
        drawn = stream(seed, purpose, step).random(shape, dtype=np.float32)
        return (drawn >= share).astype(np.float32) / np.float32(1 - share)


def _cross_entropy(Z: np.ndarray, labels: np.ndarray) -> tuple[float, np.ndarray]:
    """The mean over rows of -log softmax(Z)[label], and the gradient by Z."""
    shifted = Z - Z.max(axis=1, keepdims=True)
    exponents = np.exp(shifted)
    totals = exponents.sum(axis=1, keepdims=True)
    rows = np.arange(len(labels))
    loss = float((np.log(totals[:, 0]) - shifted[rows, labels]).mean())
    D = exponents / totals
    D[rows, labels] -= 1
    return loss, D / np.float32(len(labels))


class Sampler:
    """Draws the layers of minibatches, from the minibatch down to the features.

    name     as papers call it
    kind     of the layers, in the table of gnn/layers; model: the same on a minibatch's blocks
    stream   of random numbers, one for each layer
    sizes    how many are drawn, layer by layer from the features on
    X        [n, f] what the first layer reads
    """

    name = kind = stream = ""
    model = SampledModel

    def __init__(self, graph: Graph, X: Any, gnn: GnnCase, sizes: list[int]) -> None:
        self.graph, self.X, self.sizes = graph, X, sizes

    def blocks(self, nodes: np.ndarray, seed: int, step: int) -> list[Bipartite]:
        """The layers of a minibatch [b] of nodes, the one that reads X first."""
        blocks = []
        for layer in range(len(self.sizes), 0, -1):
            draws = stream(seed, f"{self.stream}/layer{layer}", step)
            blocks.insert(0, self.draw(nodes, self.sizes[layer - 1], draws))
            nodes = blocks[0].sources
        return blocks

    def draw(self, targets: np.ndarray, size: int, draws: np.random.Generator) -> Bipartite:
        """One layer for `targets` [t], different nodes."""
        raise NotImplementedError


class Minibatches:
    """Sampled training: an epoch takes every training node once, in an order drawn anew.

    The classifier's weights are the first ones, and take what an epoch leaves.
    """

    def __init__(
        self, sampler: type[Sampler], sizes: list[int], size: int, seed: int, subject: Subject,
        classifier: Classifier,
    ) -> None:  # fmt: skip
        self.classifier, self.seed, self.size = classifier, seed, size
        case, data, params = classifier.case, subject.data, classifier.params
        X = input_rows(classifier.data, subject.block, case.feature_rows, classifier.inputs)
        self.sampler = sampler(subject.loaded.graph, X, case, sizes)
        self.labels, self.nodes = data.labels, np.flatnonzero(data.train).astype(np.int64)
        self.flat = np.concatenate([each.reshape(-1) for each in params.host().values()])
        self.weights = {
            name: self.flat[part].reshape(params.shapes[name]) for name, part in params.slices.items()
        }
        self.model = sampler.model(self.weights, len(sizes), case.dropout, case.input_dropout)
        self.optimiser = make_optimiser(case, params.size, np)
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
        blocks = self.sampler.blocks(nodes, self.seed, step)
        _, found = self.model.loss(self.sampler.X, blocks, self.labels[nodes], self.seed, step)
        gradient = np.concatenate([found[name].reshape(-1) for name in self.weights])
        add_decay(self.decay, gradient, self.flat)
        self.optimiser.update(self.flat, gradient)
