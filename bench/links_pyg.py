"""PyTorch Geometric on links: GCNConv, negative_sampling of as many pairs as edges, InnerProductDecoder."""

from itertools import pairwise
from typing import Any

import numpy as np
import torch
import torch_geometric
from torch.nn import functional
from torch_geometric.nn import GCNConv, InnerProductDecoder
from torch_geometric.utils import negative_sampling

from bench.gnn_case import LEARNING_RATE, GcnCase

torch.set_num_threads(1)
torch.optim.Adam([torch.zeros(1)])  # the first one imports half of torch, which is no model's memory
SMALL = 1e-15  # in logarithms, as GAE.recon_loss


def version() -> str:
    """Of what is measured."""
    return f"torch_geometric {torch_geometric.__version__}, torch {torch.__version__}"


def forms(case: GcnCase) -> list[str]:
    """What can be asked for."""
    return ["csr", "edge_index"]


class Model(torch.nn.Module):
    """Convolutions with relu between them; the loss of GAE.recon_loss, of each edge once; Adam."""

    def __init__(self, case: GcnCase, form: str, dropout: float) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([GCNConv(*each, cached=True) for each in pairwise(case.widths)])
        for number, layer in enumerate(self.layers, 1):
            layer.lin.weight.data = torch.from_numpy(np.ascontiguousarray(case.weights()[f"W{number}"].T))
        self.X, self.n = torch.from_numpy(case.dense_features()), case.n
        indptr, indices = (torch.from_numpy(a.astype(np.int64)) for a in (case.indptr, case.indices))
        rows = torch.arange(case.n).repeat_interleave(indptr.diff())
        self.edges = torch.stack([indices, rows])
        self.joined = self.edges[:, indices < rows]
        self.A: Any = self.edges
        if form == "csr":
            self.A = torch.sparse_csr_tensor(indptr, indices, torch.ones(len(indices)), (case.n, case.n))
        self.decode = InnerProductDecoder()
        self.optimiser = torch.optim.Adam(self.parameters(), lr=LEARNING_RATE)

    def epoch(self) -> float:
        """One gradient step; its loss."""
        self.optimiser.zero_grad()
        H = self.X
        for number, layer in enumerate(self.layers, 1):
            H = layer(H, self.A)
            H = functional.relu(H) if number < len(self.layers) else H
        apart = negative_sampling(self.edges, self.n, self.joined.shape[1])
        loss = -torch.log(self.decode(H, self.joined) + SMALL).mean()
        loss = loss - torch.log(1 - self.decode(H, apart) + SMALL).mean()
        loss.backward()
        self.optimiser.step()
        return float(loss.detach())
