"""What PyG and DGL share: PyTorch modules one after the other, autograd and Adam."""

from typing import Any

import numpy as np
import torch
from torch.nn import functional

from bench.gnn_case import LEARNING_RATE, GcnCase

torch.set_num_threads(1)
torch.optim.Adam([torch.zeros(1)])  # the first one imports half of torch, which is no model's memory


def features(case: GcnCase, sparse: bool) -> torch.Tensor:
    """[n, f] float32, dense or as CSR."""
    if not sparse:
        return torch.from_numpy(case.dense_features())
    X = case.X
    indptr, indices = (torch.from_numpy(array.astype(np.int32)) for array in (X.indptr, X.indices))
    return torch.sparse_csr_tensor(indptr, indices, torch.from_numpy(X.data), X.shape)


class AutogradModel(torch.nn.Module):
    """Layers that have `set(W, b)` and `gradients()`; a subclass says how one is applied (`convolve`)."""

    def __init__(self, case: GcnCase, layers: list[Any], X: torch.Tensor, dropout: float) -> None:
        super().__init__()
        self.layers, self.X, self.dropout = torch.nn.ModuleList(layers), X, dropout
        weights = case.weights()
        for number, layer in enumerate(layers, 1):
            layer.set(weights[f"W{number}"], weights.get(f"b{number}"))
        self.train_nodes = torch.from_numpy(case.train)
        self.labels = torch.from_numpy(case.labels)[self.train_nodes]
        self.optimiser = torch.optim.Adam(self.parameters(), lr=LEARNING_RATE)

    def convolve(self, layer: Any, H: torch.Tensor) -> torch.Tensor:
        """One layer on [n, f_in]."""
        raise NotImplementedError

    def forward(self) -> torch.Tensor:
        """[n, classes]."""
        H = self.X
        for layer in self.layers[:-1]:
            H = functional.relu(self.convolve(layer, H))
            if self.dropout:
                H = functional.dropout(H, self.dropout)
        return self.convolve(self.layers[-1], H)

    def epoch(self) -> float:
        """One gradient step on all training nodes; its loss."""
        loss = self._backward()
        self.optimiser.step()
        return loss

    def gradients(self) -> dict[str, np.ndarray]:
        """At the first weights."""
        self._backward()
        found = {}
        for number, layer in enumerate(self.layers, 1):
            found[f"W{number}"], found[f"b{number}"] = layer.gradients()
        return found

    def _backward(self) -> float:
        self.optimiser.zero_grad()
        loss = functional.cross_entropy(self.forward()[self.train_nodes], self.labels)
        loss.backward()
        return loss.item()
