"""PyTorch Geometric's relational convolutions, as its own entity-classification example uses them.

    RGCNConv       one relation after the other
    FastRGCNConv   all edges at once, more memory

Both read one-hot inputs as node numbers (`x=None`), so no dense identity is made.
"""

import numpy as np
import torch
import torch_geometric
from torch.nn import functional
from torch_geometric.nn import FastRGCNConv, RGCNConv

from bench.rgcn_case import BASES, HIDDEN, LEARNING_RATE, RgcnCase

torch.set_num_threads(1)
torch.optim.Adam([torch.zeros(1)])  # the first one imports half of torch, which is no model's memory
CONVOLUTIONS = {"RGCNConv": RGCNConv, "FastRGCNConv": FastRGCNConv}


def version() -> str:
    """Of what is measured."""
    return f"torch_geometric {torch_geometric.__version__}, torch {torch.__version__}"


def forms(case: RgcnCase) -> list[str]:
    """What can be asked for."""
    return list(CONVOLUTIONS)


class Model(torch.nn.Module):
    """Two convolutions without bias, relu between them, cross-entropy, Adam."""

    def __init__(self, case: RgcnCase, form: str, dropout: float) -> None:
        super().__init__()
        make = CONVOLUTIONS[form]
        self.first = make(case.nodes, HIDDEN, case.relations, num_bases=BASES, bias=False)
        self.second = make(HIDDEN, case.classes, case.relations, num_bases=BASES, bias=False)
        weights = case.weights()
        for number, layer in enumerate((self.first, self.second), 1):
            for name, mine in (("weight", "V"), ("comp", "a"), ("root", "self")):
                getattr(layer, name).data = torch.from_numpy(weights[f"{mine}{number}"])
        self.edge_index = torch.from_numpy(np.stack([case.source, case.target]))
        self.edge_type = torch.from_numpy(case.relation)
        self.train_nodes, self.labels = torch.from_numpy(case.train), torch.from_numpy(case.labels)
        self.optimiser = torch.optim.Adam(self.parameters(), lr=LEARNING_RATE)

    def epoch(self) -> float:
        """One gradient step on all training nodes; its loss."""
        self.optimiser.zero_grad()
        H = functional.relu(self.first(None, self.edge_index, self.edge_type))
        Z = self.second(H, self.edge_index, self.edge_type)
        loss = functional.cross_entropy(Z[self.train_nodes], self.labels)
        loss.backward()
        self.optimiser.step()
        return float(loss.detach())
