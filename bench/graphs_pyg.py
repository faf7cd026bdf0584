"""PyTorch Geometric on a set of graphs: GCNConv on all graphs side by side, global_mean_pool, a linear layer.

edge_index   messages are gathered and scattered edge by edge
csr          the adjacency as torch.sparse_csr, which GCNConv multiplies by in one call
"""

import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import torch
import torch_geometric
from torch.nn import functional
from torch_geometric.nn import GCNConv, global_mean_pool

from bench.gnn_case import LEARNING_RATE
from bench.graphs_case import GraphsCase

torch.set_num_threads(1)
torch.optim.Adam([torch.zeros(1)])  # the first one imports half of torch, which is no model's memory
warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")


def version() -> str:
    """Of what is measured."""
    return f"torch_geometric {torch_geometric.__version__}, torch {torch.__version__}"


def forms(case: GraphsCase) -> list[str]:
    """What can be asked for."""
    return ["edge_index", "csr"]


class Model(torch.nn.Module):
    """Convolutions with relu, means over graphs, cross-entropy, Adam; self loops and scales computed once."""

    def __init__(self, case: GraphsCase, form: str, dropout: float) -> None:
        super().__init__()
        widths, weights = case.widths, case.weights()
        pairs = pairwise(widths[:-1])
        self.layers = torch.nn.ModuleList([GCNConv(*each, cached=True) for each in pairs])
        self.last, self.dropout = torch.nn.Linear(*widths[-2:]), dropout
        for number, layer in enumerate([*self.layers, self.last], 1):
            linear = getattr(layer, "lin", layer)
            linear.weight.data = torch.from_numpy(np.ascontiguousarray(weights[f"W{number}"].T))
            layer.bias.data = torch.from_numpy(weights[f"b{number}"])
        self.X, self.A = torch.from_numpy(case.X), _adjacency(case, form)
        self.graphs = len(case.labels)
        sizes = torch.from_numpy(np.diff(case.starts))
        self.batch = torch.arange(self.graphs).repeat_interleave(sizes)
        self.train_graphs = torch.from_numpy(case.train)
        self.labels = torch.from_numpy(case.labels)[self.train_graphs]
        self.optimiser = torch.optim.Adam(self.parameters(), lr=LEARNING_RATE)

    def epoch(self) -> float:
        """One gradient step on all training graphs; its loss."""
        self.optimiser.zero_grad()
        H = self.X
        for layer in self.layers:
            H = functional.relu(layer(H, self.A))
            if self.dropout:
                H = functional.dropout(H, self.dropout)
        Z = self.last(global_mean_pool(H, self.batch, self.graphs))
        loss = functional.cross_entropy(Z[self.train_graphs], self.labels)
        loss.backward()
        self.optimiser.step()
        return float(loss.detach())


def _adjacency(case: GraphsCase, form: str) -> Any:
    """A without self loops in one of the forms."""
    u, v = (torch.from_numpy(np.concatenate(ends)) for ends in ((case.u, case.v), (case.v, case.u)))
    edges, n = torch.stack([u, v]), len(case.X)
    if form == "edge_index":
        return edges
    return torch.sparse_coo_tensor(edges, torch.ones(len(u)), (n, n)).coalesce().to_sparse_csr()
