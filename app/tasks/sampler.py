"""A neighbour sampler after GraphSAGE, on one rank and the host: what full-batch training is compared with.

Source   Hamilton, Ying and Leskovec 2017, algorithm 2, with the mean aggregator; ROC section 7.4
Differs  The drawn neighbours are a sample with replacement of a fixed size (an isolated node has none); the
         vectors are not scaled to length one; the loss is the supervised one.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from app.graphs.graph import Graph
from app.rng import stream

Array = Any


@dataclass(frozen=True)
class Bipartite:
    """One layer of a minibatch: what its targets read.

    sources   [s] nodes, the targets first
    targets   how many of them
    M         [targets, s] each row the mean over what was drawn for that target; zero for isolated nodes
    """

    sources: np.ndarray
    targets: int
    M: sp.csr_array


def draw_layer(graph: Graph, targets: np.ndarray, fanout: int, draws: np.random.Generator) -> Bipartite:
    """`fanout` neighbours for every target, with replacement.

    targets   [t] different nodes
    """
    first = graph.indptr[targets].astype(np.int64)
    degree = graph.indptr[targets + 1] - first
    chosen = (draws.random((len(targets), fanout)) * degree[:, None]).astype(np.int64)
    has = degree > 0
    drawn = graph.indices[(first[:, None] + chosen)[has].reshape(-1)].astype(np.int64)
    sources = np.concatenate([targets, np.setdiff1d(drawn, targets)])
    by_node = np.argsort(sources, kind="stable")
    columns = by_node[np.searchsorted(sources[by_node], drawn)]
    starts = np.concatenate([[0], np.cumsum(has * fanout)])
    values = np.full(len(columns), 1 / fanout, dtype=np.float32)
    M = sp.csr_array((values, columns, starts), shape=(len(targets), len(sources)))
    return Bipartite(sources, len(targets), M)


def draw_blocks(graph: Graph, nodes: np.ndarray, fanouts: list[int], seed: int, step: int) -> list[Bipartite]:
    """The layers of a minibatch, the one that reads the features first.

    nodes     [b] the minibatch
    fanouts   neighbours for each target of each layer, in the same order
    """
    blocks = []
    for layer in range(len(fanouts), 0, -1):
        block = draw_layer(graph, nodes, fanouts[layer - 1], stream(seed, f"sampling/layer{layer}", step))
        blocks.insert(0, block)
        nodes = block.sources
    return blocks


class SampledSage:
    """Layers H' = drop(relu(H_t W_self + M (H W_neigh) + b)) on a minibatch's blocks, the last one linear.

    Forward   S = H W_neigh     Z = H_t W_self + M S + b     H_t the first rows of H: the targets
    Shapes    H [s, f_in]   M [t, s]   W_self, W_neigh [f_in, f_out]   Z [t, f_out]
    Loss      the mean cross-entropy of softmax over the minibatch: dZ = (softmax(Z) - Y) / b
    Backward  db = sum of the rows of dZ     dW_self = H_t^T dZ     dS = M^T dZ     dW_neigh = H^T dS
              dH = dS W_neigh^T, to whose first rows dZ W_self^T is added
              dZ of the layer below = dH * drop * [H > 0]

    weights   arrays by name: layerL.W_self, layerL.W_neigh, layerL.bias for L = 1..layers
    """

    def __init__(self, weights: Any, layers: int, dropout: float, input_dropout: float) -> None:
        self.weights, self.layers, self.dropout, self.input_dropout = weights, layers, dropout, input_dropout

    def loss(
        self, X: Any, blocks: list[Bipartite], labels: np.ndarray, seed: int, step: int
    ) -> tuple[float, dict[str, np.ndarray]]:
        """The loss of a minibatch and its gradient by every weight.

        X        [n, f] features, dense or CSR
        labels   [b] classes of the minibatch's nodes
        """
        H, saved = self._drop_input(X[blocks[0].sources], seed, step), []
        for number, block in enumerate(blocks, start=1):
            Z = self._forward(number, H, block)
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
            D = self._backward(number, H, block, D, gradients)
        return loss, gradients

    def _forward(self, number: int, H: Any, block: Bipartite) -> np.ndarray:
        """Z of a layer."""
        W_self, W_neigh, bias = (
            self.weights[f"layer{number}.{part}"] for part in ("W_self", "W_neigh", "bias")
        )
        return H[: block.targets] @ W_self + block.M @ (H @ W_neigh) + bias

    def _backward(
        self, number: int, H: Any, block: Bipartite, D: np.ndarray, gradients: dict[str, np.ndarray]
    ) -> np.ndarray | None:
        """dH from D = dZ, None for the features; those by the layer's weights go to the table."""
        name, t = f"layer{number}", block.targets
        dS = block.M.T @ D
        gradients[f"{name}.bias"] = D.sum(axis=0, keepdims=True)
        gradients[f"{name}.W_self"] = H[:t].T @ D
        gradients[f"{name}.W_neigh"] = H.T @ dS
        if number == 1:
            return None
        dH = dS @ self.weights[f"{name}.W_neigh"].T
        dH[:t] += D @ self.weights[f"{name}.W_self"].T
        return dH

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
