"""FastGCN's sampler: a layer reads one sample of all nodes, the same for all of its targets.

Source   Chen, Ma and Xiao 2018, algorithm 2 (importance sampling); ROC section 7.4
         A row of P H is the expectation of P_vu / q_u h_u where node u is drawn with chance q_u, and is
         estimated by the mean over t nodes so drawn:
             (P H)_v = sum_u P_vu h_u  ~  1/t sum_j P_vu h_u / q_u with u = u_j     q_u ~ |P_:u|^2
         Every layer has its own sample; the loss is that of a minibatch of training nodes. Each product's
         estimate is unbiased; relu and the loss are not linear, so activations and the gradient are not.
         The samples are fixed when the gradient is made: nothing is differentiated by q.
Variance Summed over v it is (sum_u |P_:u|^2 |h_u|^2 / q_u - |P H|^2) / t. Where all h_u have one length, the
         paper's q makes the first term n |P|^2 |h|^2, as equal chances do; norms that are not squared make it
         least.
Differs  Nodes are drawn with replacement, as in the paper. Its published code draws without, among the nodes
         that the minibatch hears, by norms that are not squared, and keeps the factors 1 / (t q) of draws
         with replacement from all nodes: its estimate is biased.
         Nodes that are not trained on are drawn too, since full-batch training has them all.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from app.case.gnn import GnnCase
from app.graphs.graph import Graph
from app.tasks.studies.minibatch import Bipartite, SampledModel, Sampler


class SampledGCN(SampledModel):
    """Layers of the estimated product with the normalised adjacency matrix.

    Forward   S = H W     Z = M S + b     M the weighted columns of P that were drawn
    Shapes    H [s, f_in]   M [t, s]   W [f_in, f_out]   S [s, f_out]   Z [t, f_out]
    Backward  db = sum of the rows of dZ     dS = M^T dZ     dW = H^T dS     dH = dS W^T
    """

    def forward(self, number: int, H: Any, block: Bipartite) -> np.ndarray:
        """See SampledModel.forward."""
        W, bias = (self.weights[f"layer{number}.{part}"] for part in ("W", "bias"))
        return block.M @ (H @ W) + bias

    def backward(
        self, number: int, H: Any, block: Bipartite, D: np.ndarray, gradients: dict[str, np.ndarray]
    ) -> np.ndarray | None:
        """See SampledModel.backward."""
        name = f"layer{number}"
        dS = block.M.T @ D
        gradients[f"{name}.bias"] = D.sum(axis=0, keepdims=True)
        gradients[f"{name}.W"] = H.T @ dS
        return None if number == 1 else dS @ self.weights[f"{name}.W"].T


class LayerSampler(Sampler):
    """`sizes`: draws of each layer, whatever the number of its targets.

    First     sizes[0] = 0 draws nothing there: X is P times the features, made once, as in the paper's
              comparisons and its published code; input dropout then acts on the product
    P         [n, n] normalised adjacency matrix (gnn/layers/gcn.py)
    q         [n] float64 chances of the nodes
    """

    name, kind, stream = "FastGCN", "gcn", "fastgcn"
    model = SampledGCN

    def __init__(self, graph: Graph, X: Any, gnn: GnnCase, sizes: list[int]) -> None:
        super().__init__(graph, X, gnn, sizes)
        self.P = normalised(graph, gnn.normalisation == "symmetric", gnn.own_loops)
        self.q = importance(self.P)
        summed = np.cumsum(self.q)
        self._upto = summed / summed[-1]  # ends with 1, which no draw reaches
        if not sizes[0]:
            self.X = _smaller(self.P @ X[: graph.n])

    def draw(self, targets: np.ndarray, size: int, draws: np.random.Generator) -> Bipartite:
        """One sample for all targets; without one, the targets themselves."""
        if not size:
            return Bipartite(targets, sp.eye_array(len(targets), dtype=np.float32, format="csr"))
        return self.estimator(targets, np.searchsorted(self._upto, draws.random(size), side="right"))

    def estimator(self, targets: np.ndarray, drawn: np.ndarray) -> Bipartite:
        """The columns of P that were drawn, divided by t q, a node drawn twice counting twice.

        drawn   [t] nodes
        """
        sources, times = np.unique(drawn, return_counts=True)
        M = self.P[targets][:, sources]
        M.data *= (times / (len(drawn) * self.q[sources])).astype(np.float32)[M.indices]
        return Bipartite(sources, M)


def normalised(graph: Graph, symmetric: bool, own_loops: bool) -> sp.csr_array:
    """P [n, n] float32: D^-1/2 (A+I) D^-1/2, or D^-1 (A+I); A in place of A+I without own loops."""
    ones = np.ones(len(graph.indices), dtype=np.float32)
    P = sp.csr_array((ones, graph.indices, graph.indptr), shape=(graph.n, graph.n))
    if own_loops:
        P = P + sp.eye_array(graph.n, dtype=np.float32, format="csr")
    entries = np.diff(P.indptr)
    degree = np.maximum(entries, 1).astype(np.float64)  # an empty row has nothing to divide
    row_factors, factors = (degree**-0.5, degree**-0.5) if symmetric else (1 / degree, np.ones(graph.n))
    P.data = (np.repeat(row_factors, entries) * factors[P.indices]).astype(np.float32)
    return P


def importance(P: sp.csr_array) -> np.ndarray:
    """q [n] float64: squared norms of the columns of P over their sum; all equal where P is zero."""
    squares = np.bincount(P.indices, weights=P.data.astype(np.float64) ** 2, minlength=P.shape[1])
    if not squares.any():
        squares += 1
    return squares / squares.sum()


def _smaller(X: Any) -> Any:
    """A product, dense where that takes less memory than CSR."""
    return X.toarray() if sp.issparse(X) and 2 * X.nnz > X.shape[0] * X.shape[1] else X
