"""GraphSAGE's sampler: some neighbours of every node, layer by layer.

Source   Hamilton, Ying and Leskovec 2017, algorithm 2, with the mean aggregator; ROC section 7.4
Differs  The drawn neighbours are a sample with replacement of a fixed size (an isolated node has none); the
         vectors are not scaled to length one; the loss is the supervised one.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from app.tasks.studies.minibatch import Bipartite, SampledModel, Sampler


class SampledSage(SampledModel):
    """Layers of own rows and the mean over the drawn neighbours, each with its weights.

    Forward   S = H W_neigh     Z = H_t W_self + M S + b     H_t the first rows of H: the targets
    Shapes    H [s, f_in]   M [t, s]   W_self, W_neigh [f_in, f_out]   Z [t, f_out]
    Backward  db = sum of the rows of dZ     dW_self = H_t^T dZ     dS = M^T dZ     dW_neigh = H^T dS
              dH = dS W_neigh^T, to whose first rows dZ W_self^T is added
    """

    def forward(self, number: int, H: Any, block: Bipartite) -> np.ndarray:
        """See SampledModel.forward."""
        W_self, W_neigh, bias = (
            self.weights[f"layer{number}.{part}"] for part in ("W_self", "W_neigh", "bias")
        )
        return H[: block.targets] @ W_self + block.M @ (H @ W_neigh) + bias

    def backward(
        self, number: int, H: Any, block: Bipartite, D: np.ndarray, gradients: dict[str, np.ndarray]
    ) -> np.ndarray | None:
        """See SampledModel.backward."""
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


class NeighbourSampler(Sampler):
    """`sizes`: neighbours for each target. The sources of a layer begin with its targets."""

    name, kind, stream = "GraphSAGE", "sage", "sampling"
    model = SampledSage

    def draw(self, targets: np.ndarray, size: int, draws: np.random.Generator) -> Bipartite:
        """`size` neighbours for every target, with replacement; M is their mean, zero for isolated nodes."""
        graph = self.graph
        first = graph.indptr[targets].astype(np.int64)
        degree = graph.indptr[targets + 1] - first
        chosen = (draws.random((len(targets), size)) * degree[:, None]).astype(np.int64)
        has = degree > 0
        drawn = graph.indices[(first[:, None] + chosen)[has].reshape(-1)].astype(np.int64)
        sources = np.concatenate([targets, np.setdiff1d(drawn, targets)])
        by_node = np.argsort(sources, kind="stable")
        columns = by_node[np.searchsorted(sources[by_node], drawn)]
        starts = np.concatenate([[0], np.cumsum(has * size)])
        values = np.full(len(columns), 1 / size, dtype=np.float32)
        return Bipartite(sources, sp.csr_array((values, columns, starts), shape=(len(targets), len(sources))))
