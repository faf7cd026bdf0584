"""PyTorch Geometric's GINEConv, GATConv and GATv2Conv, on all graphs side by side where there are several.

linear      features of edges, of categories a column each, times weights, as GINEConv does with edge_dim
embedding   of categories the sum of a row of weights for each, as OGB's encoder of bonds makes it
looped      of attention the edges of nodes to themselves made once, which its layers else make in every epoch
"""

from typing import Any

import numpy as np
import torch
import torch_geometric
from torch.nn import functional
from torch_geometric.nn import GATConv, GATv2Conv, GINEConv, global_mean_pool
from torch_geometric.utils import add_self_loops

from bench.edges_case import EdgesCase
from bench.gnn_case import LEARNING_RATE

torch.set_num_threads(1)
torch.optim.Adam([torch.zeros(1)])  # the first one imports half of torch, which is no model's memory


def version() -> str:
    """Of what is measured."""
    return f"torch_geometric {torch_geometric.__version__}, torch {torch.__version__}"


def forms(case: EdgesCase) -> list[str]:
    """What can be asked for."""
    if case.model != "gine":
        return ["linear", "looped"]
    return ["linear", "embedding"] if case.kinds else ["linear"]


def _linear(W: np.ndarray, bias: bool = True) -> torch.nn.Linear:
    """A linear map with weights [f_in, f_out] and no bias, or one of zeros."""
    made = torch.nn.Linear(*W.shape, bias=bias)
    made.weight.data = torch.from_numpy(np.ascontiguousarray(W.T))
    if bias:
        made.bias.data.zero_()
    return made


class Layer(torch.nn.Module):
    """One convolution, of features after a linear map."""

    def __init__(self, weights: dict[str, np.ndarray], form: str) -> None:
        super().__init__()
        self.first = _linear(weights["W_in"], bias=False) if "W_in" in weights else None
        W, self.table = weights["W_edge"], None
        both = torch.nn.Sequential(_linear(weights["W1"]), torch.nn.ReLU(), _linear(weights["W2"]))
        self.conv = GINEConv(both, train_eps=True, edge_dim=None if form == "embedding" else len(W))
        both[0], both[2] = _linear(weights["W1"]), _linear(weights["W2"])  # GINEConv has drawn them anew
        if form == "embedding":
            self.table = torch.nn.Parameter(torch.from_numpy(W))
            self.bias = torch.nn.Parameter(torch.zeros(W.shape[1]))
        else:
            self.conv.lin.weight.data = torch.from_numpy(np.ascontiguousarray(W.T))
            self.conv.lin.bias.data.zero_()

    def forward(self, H: torch.Tensor, edges: torch.Tensor, E: torch.Tensor) -> torch.Tensor:
        """New rows."""
        H = H if self.first is None else self.first(H)
        if self.table is not None:
            E = functional.embedding_bag(E, self.table, mode="sum") + self.bias
        return self.conv(H, edges, E)


def attention(weights: dict[str, np.ndarray], form: str) -> torch.nn.Module:
    """A convolution by attention with these weights."""
    W = weights.get("W", weights.get("W_source"))
    keys = {"edge_dim": len(weights["W_edge"]), "add_self_loops": form != "looped"}
    if "W" in weights:
        conv = GATConv(*W.shape, **keys)
        conv.lin = _linear(W, bias=False)
        for name, part in (("att_dst", "a1"), ("att_src", "a2"), ("att_edge", "a3")):
            getattr(conv, name).data = torch.from_numpy(weights[part].reshape(1, 1, -1).copy())
    else:
        conv = GATv2Conv(*W.shape, **keys)
        conv.lin_l, conv.lin_r = _linear(W, bias=False), _linear(weights["W_target"], bias=False)
        conv.att.data = torch.from_numpy(weights["a"].reshape(1, 1, -1).copy())
    conv.lin_edge = _linear(weights["W_edge"], bias=False)
    return conv


class Model(torch.nn.Module):
    """Convolutions with relu, of several graphs means and a linear layer, cross-entropy, Adam."""

    def __init__(self, case: EdgesCase, form: str, dropout: float) -> None:
        super().__init__()
        make = Layer if case.model == "gine" else attention
        self.layers = torch.nn.ModuleList([make(each, form) for each in case.layer_weights()])
        self.last, self.dropout = _linear(case.last_weights()) if case.whole else None, dropout
        u, v = (torch.from_numpy(np.concatenate(ends)) for ends in ((case.u, case.v), (case.v, case.u)))
        E = case.E + case.firsts if form == "embedding" else case.dense_edges()
        order = torch.argsort(v * len(case.X) + u)  # by target
        self.edges = torch.stack([u, v])[:, order].contiguous()
        self.E = torch.from_numpy(np.concatenate([E, E]))[order].contiguous()
        if form == "looped":
            self.edges, self.E = add_self_loops(self.edges, self.E, "mean", len(case.X))
        self.X, self.graphs = torch.from_numpy(case.X), len(case.labels)
        sizes = torch.from_numpy(np.diff(case.starts))
        self.batch = torch.arange(len(sizes)).repeat_interleave(sizes) if case.whole else None
        self.known = torch.from_numpy(case.train)
        self.labels = torch.from_numpy(case.labels)[self.known]
        self.optimiser = torch.optim.Adam(self.parameters(), lr=LEARNING_RATE)

    def forward(self, H: torch.Tensor) -> Any:
        """Scores."""
        for number, layer in enumerate(self.layers):
            H = layer(H, self.edges, self.E)
            if self.last is None and number == len(self.layers) - 1:
                return H
            H = functional.relu(H)
            if self.dropout:
                H = functional.dropout(H, self.dropout)
        return self.last(global_mean_pool(H, self.batch, self.graphs))

    def epoch(self) -> float:
        """One gradient step on what is known; its loss."""
        self.optimiser.zero_grad()
        loss = functional.cross_entropy(self(self.X)[self.known], self.labels)
        loss.backward()
        self.optimiser.step()
        return float(loss.detach())
