"""DGL's GraphConv, as its own full-batch examples use it.

both             norm="both": rows are scaled before and after the product
weights          norm="none": the normalisation is a weight on every edge, computed once
.., sparse X     the features as torch.sparse_csr instead of a dense tensor
"""

import os
import warnings
from typing import Any

os.environ.setdefault("DGLBACKEND", "pytorch")

import dgl
import numpy as np
import torch
from dgl.nn.pytorch import EdgeWeightNorm, GraphConv

from bench.gnn_autograd import AutogradModel, features
from bench.gnn_case import GcnCase

warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")


def version() -> str:
    """Of what is measured."""
    return f"dgl {dgl.__version__}, torch {torch.__version__}"


def forms(case: GcnCase) -> list[str]:
    """What can be asked for; rows of a sparse X cannot be scaled, which norm="both" does."""
    return ["both", "weights"] + ["weights, sparse X"] * case.sparse


class Convolution(GraphConv):
    """GraphConv under the names that the case gives its weights."""

    def set(self, W: np.ndarray, b: np.ndarray) -> None:
        """W [f_in, f_out] and b [f_out]."""
        self.weight.data, self.bias.data = torch.from_numpy(W), torch.from_numpy(b)

    def gradients(self) -> tuple[np.ndarray, np.ndarray]:
        """By W and by b."""
        return self.weight.grad.numpy(), self.bias.grad.numpy()


class Model(AutogradModel):
    """A stack of GraphConv."""

    def __init__(self, case: GcnCase, form: str, dropout: float) -> None:
        norm, _, rest = form.partition(", ")
        norm = {"both": "both", "weights": "none"}[norm]
        widths = zip(case.widths, case.widths[1:])
        layers = [Convolution(f_in, f_out, norm=norm) for f_in, f_out in widths]
        super().__init__(case, layers, features(case, rest == "sparse X"), dropout)
        indptr, indices = torch.from_numpy(case.indptr), torch.from_numpy(case.indices)
        rows = torch.arange(case.n).repeat_interleave(indptr.diff())
        self.graph = dgl.add_self_loop(dgl.graph((indices.long(), rows), num_nodes=case.n))
        self.graph = self.graph.int()  # 32-bit numbers: half the traffic
        self.edge_weight = None
        if norm == "none":
            self.edge_weight = EdgeWeightNorm("both")(self.graph, torch.ones(self.graph.num_edges()))
        self.graph.create_formats_()

    def convolve(self, layer: Any, H: torch.Tensor) -> torch.Tensor:
        """One layer."""
        return layer(self.graph, H, edge_weight=self.edge_weight)
