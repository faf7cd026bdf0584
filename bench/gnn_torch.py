"""A graph convolutional network in plain PyTorch with a hand-written backward pass: no autograd, no layers.

It makes the operations that this program makes, in the same order: the product with W first or that with A,
whichever leaves less for A; no gradient by the features; A^T = A, so nothing is transposed; sparse features
with their transpose beside them.

    each epoch   every product, as the mathematics is written
    kept         A X of the first layer is computed once
"""

import warnings
from typing import Any

import numpy as np
import torch

from bench.gnn_case import LEARNING_RATE, GcnCase

Tensor = torch.Tensor
warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
torch.set_num_threads(1)
torch.optim.Adam([torch.zeros(1)])  # the first one imports half of torch, which is no model's memory


def version() -> str:
    """Of what is measured."""
    return f"torch {torch.__version__}"


def forms(case: GcnCase) -> list[str]:
    """What can be asked for."""
    return ["each epoch", "kept"]


def sparse(matrix: Any) -> Tensor:
    """A SciPy matrix as a CSR tensor with 32-bit indices, which MKL takes as they are."""
    csr = matrix.tocsr()
    indptr, indices = (torch.from_numpy(array.astype(np.int32)) for array in (csr.indptr, csr.indices))
    return torch.sparse_csr_tensor(indptr, indices, torch.from_numpy(csr.data), csr.shape)


class Layer:
    """One convolution, Z = A H W + b, with the narrower product first.

    Wide input    S = H W,  Z = A S + b     dS = A dZ,      dW = H^T dS,  dH = dS W^T
    Narrow input  N = A H,  Z = N W + b     dW = N^T dZ,    dH = A (dZ W^T)
    """

    def __init__(self, A: Tensor, W: Tensor, b: Tensor, wide: bool) -> None:
        self.A, self.W, self.b, self.wide = A, W, b, wide
        self.saved: Tensor | None = None

    def forward(self, H: Tensor) -> Tensor:
        """[n, f_out]."""
        if self.wide:
            self.saved = H
            return torch.sparse.mm(self.A, H @ self.W).add_(self.b)
        self.saved = torch.sparse.mm(self.A, H)
        return torch.addmm(self.b, self.saved, self.W)

    def backward(self, dZ: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """dW, db and dH."""
        if self.wide:
            dS = torch.sparse.mm(self.A, dZ)
            return self.saved.T @ dS, dZ.sum(0), dS @ self.W.T
        return self.saved.T @ dZ, dZ.sum(0), torch.sparse.mm(self.A, dZ @ self.W.T)


class First:
    """The first convolution: no gradient by the features, and A X may be kept.

    Wide input    S = X W,  Z = A S + b     dW = X^T (A dZ)
    Narrow input  N = A X,  Z = N W + b     dW = N^T dZ: all that is left of either where N is kept
    """

    def __init__(self, A: Tensor, case: GcnCase, W: Tensor, b: Tensor, kept: bool) -> None:
        self.A, self.W, self.b, self.kept = A, W, b, kept
        self.wide = case.sparse or case.widths[0] > case.widths[1]
        X = case.adjacency() @ case.X if kept else case.X
        self.X = sparse(X) if case.sparse else torch.from_numpy(X)
        self.XT = sparse(X.T) if case.sparse else self.X.T

    def forward(self) -> Tensor:
        """[n, f_out]."""
        if self.kept:
            return (self.X @ self.W).add_(self.b)
        if self.wide:
            return torch.sparse.mm(self.A, self.X @ self.W).add_(self.b)
        self.N = torch.sparse.mm(self.A, self.X)
        return torch.addmm(self.b, self.N, self.W)

    def backward(self, dZ: Tensor) -> tuple[Tensor, Tensor]:
        """dW and db."""
        if self.kept:
            dW = self.XT @ dZ
        else:
            dW = self.XT @ torch.sparse.mm(self.A, dZ) if self.wide else self.N.T @ dZ
        return dW, dZ.sum(0)


class Model:
    """Layers, loss and optimiser."""

    def __init__(self, case: GcnCase, form: str, dropout: float) -> None:
        self.dropout = dropout
        self.weights = {name: torch.from_numpy(array) for name, array in case.weights().items()}
        self.train = torch.from_numpy(case.train)
        self.labels = torch.from_numpy(case.labels)[self.train]
        A = sparse(case.adjacency())
        w, widths = self.weights, case.widths
        self.first = First(A, case, w["W1"], w["b1"], form == "kept")
        self.rest = [
            Layer(A, w[f"W{i}"], w[f"b{i}"], widths[i - 1] > widths[i]) for i in range(2, case.layers + 1)
        ]
        self.optimiser = torch.optim.Adam(list(w.values()), lr=LEARNING_RATE)

    def gradients(self) -> dict[str, np.ndarray]:
        """At the first weights."""
        self._pass()
        return {name: array.grad.numpy() for name, array in self.weights.items()}

    @torch.no_grad()
    def epoch(self) -> float:
        """One gradient step on all training nodes; its loss."""
        loss = self._pass()
        self.optimiser.step()
        return loss

    @torch.no_grad()
    def _pass(self) -> float:
        H, gates = self.first.forward(), []
        for layer in self.rest:
            gates.append(self._activate(H))
            H = layer.forward(H)
        loss, dZ = self._loss(H)
        for i in range(len(self.rest), 0, -1):
            dW, db, dH = self.rest[i - 1].backward(dZ)
            self._keep(i + 1, dW, db)
            dZ = dH.mul_(gates.pop())
        self._keep(1, *self.first.backward(dZ))
        return loss

    def _activate(self, H: Tensor) -> Tensor:
        """relu and dropout in place; what a gradient is multiplied by on its way back."""
        gate = (H > 0).to(H.dtype)
        if self.dropout:
            gate.mul_(torch.empty_like(H).bernoulli_(1 - self.dropout).div_(1 - self.dropout))
        H.mul_(gate)
        return gate

    def _loss(self, Z: Tensor) -> tuple[float, Tensor]:
        logarithms = torch.log_softmax(Z[self.train], 1)
        dZ_train = logarithms.exp()
        picked = torch.arange(len(self.train)), self.labels
        dZ_train[picked] -= 1
        dZ = torch.zeros_like(Z)
        dZ[self.train] = dZ_train.div_(len(self.train))
        return float(-logarithms[picked].mean()), dZ

    def _keep(self, layer: int, dW: Tensor, db: Tensor) -> None:
        self.weights[f"W{layer}"].grad, self.weights[f"b{layer}"].grad = dW, db
