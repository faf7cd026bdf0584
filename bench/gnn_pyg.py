"""PyTorch Geometric's GCNConv, GCN2Conv, APPNP and SGFormerAttention, as its own full-batch examples use it.

    edge_index       messages are gathered and scattered edge by edge
    csr              the adjacency as torch.sparse_csr, which GCNConv multiplies by in one call
    .., sparse X     the features as torch.sparse_csr instead of a dense tensor

Self loops and normalisation are computed once (`cached=True`). A SparseTensor of torch_sparse, which has no
built packages for this PyTorch, would be multiplied by torch.sparse.mm too (torch_geometric.utils.spmm).
"""

import warnings
from typing import Any

import numpy as np
import torch
import torch_geometric
from torch.nn import functional
from torch_geometric.nn import APPNP, GCN2Conv, GCNConv
from torch_geometric.nn.attention import SGFormerAttention
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from bench.gnn_autograd import AutogradModel, features
from bench.gnn_case import LEARNING_RATE, GcnCase

MOST_MESSAGE_BYTES = 1e9  # of one layer: with more, edge_index is left out
warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")


def version() -> str:
    """Of what is measured."""
    return f"torch_geometric {torch_geometric.__version__}, torch {torch.__version__}"


def forms(case: GcnCase) -> list[str]:
    """What can be asked for."""
    adjacency = ["csr"]
    if 4 * len(case.indices) * max(case.widths[1:]) <= MOST_MESSAGE_BYTES:
        adjacency.append("edge_index")
    return adjacency + [f"{form}, sparse X" for form in adjacency if case.sparse]


class Convolution(GCNConv):
    """GCNConv under the names that the case gives its weights."""

    def set(self, W: np.ndarray, b: np.ndarray) -> None:
        """W [f_in, f_out] and b [f_out]."""
        self.lin.weight.data = torch.from_numpy(np.ascontiguousarray(W.T))
        self.bias.data = torch.from_numpy(b)

    def gradients(self) -> tuple[np.ndarray, np.ndarray]:
        """By W and by b."""
        return self.lin.weight.grad.numpy().T, self.bias.grad.numpy()


class Dense(torch.nn.Linear):
    """A layer that hears no neighbours."""

    def set(self, W: np.ndarray, b: np.ndarray) -> None:
        """W [f_in, f_out] and b [f_out]."""
        self.weight.data, self.bias.data = torch.from_numpy(np.ascontiguousarray(W.T)), torch.from_numpy(b)


class Deep(GCN2Conv):
    """GCN2Conv without a bias."""

    def set(self, W: np.ndarray, b: None) -> None:
        """W [f, f]."""
        self.weight1.data = torch.from_numpy(W)


class Attending(Convolution):
    """Half SGFormerAttention of one head, half GCNConv, whose bias is that of the layer."""

    def __init__(self, f_in: int, f_out: int) -> None:
        super().__init__(f_in, f_out, cached=True)
        self.attention = SGFormerAttention(f_in, 1, f_out)

    def set_attention(self, weights: dict[str, np.ndarray], layer: int) -> None:
        """Q, K and V [f_in, f_out]."""
        for name, part in zip("QKV", (self.attention.q, self.attention.k, self.attention.v)):
            part.weight.data = torch.from_numpy(np.ascontiguousarray(weights[f"{name}{layer}"].T))

    def forward(self, H: torch.Tensor, A: Any) -> torch.Tensor:
        """[n, f_out]."""
        return 0.5 * self.attention(H[None])[0] + 0.5 * (super().forward(H, A) - self.bias) + self.bias


class Propagation(torch.nn.Module):
    """Ten steps of propagation, each with a weight that is learned: PyTorch Geometric's normalisation and
    product, the loop of the authors' program."""

    def __init__(self, hops: int = 10, alpha: float = 0.1) -> None:
        super().__init__()
        shares = [alpha * (1 - alpha) ** k for k in range(hops)] + [(1 - alpha) ** hops]
        self.shares, self.P = torch.nn.Parameter(torch.tensor(shares)), None

    def forward(self, H: torch.Tensor, A: Any) -> torch.Tensor:
        """[n, classes]."""
        if self.P is None:
            self.P = gcn_norm(A, None, len(H))
        out = self.shares[0] * H
        for share in self.shares[1:]:
            H = self._step(H)
            out = out + share * H
        return out

    def _step(self, H: torch.Tensor) -> torch.Tensor:
        ends, weights = self.P
        if weights is None:
            return torch.sparse.mm(ends, H)
        return torch.zeros_like(H).index_add_(0, ends[1], H[ends[0]] * weights[:, None])


class Model(AutogradModel):
    """A stack of GCNConv, perhaps with BatchNorm1d, or of GCN2Conv or attention between linear layers, or of
    linear layers with a propagation at the end."""

    def __init__(self, case: GcnCase, form: str, dropout: float) -> None:
        adjacency, _, rest = form.partition(", ")
        self.kind, widths = case.kind, list(zip(case.widths, case.widths[1:]))
        if case.kind == "gcn2":
            inner = [Deep(f, 0.1, 0.5, i, cached=True) for i, (f, _) in enumerate(widths[1:-1], start=1)]
            layers: list[Any] = [Dense(*widths[0]), *inner, Dense(*widths[-1])]
        elif case.kind == "sgformer":
            layers = [Dense(*widths[0]), *[Attending(*each) for each in widths[1:-1]], Dense(*widths[-1])]
        elif case.kind in PROPAGATED:
            layers = [Dense(*each) for each in widths]
        else:
            layers = [Convolution(f_in, f_out, cached=True) for f_in, f_out in widths]
        super().__init__(case, layers, features(case, rest == "sparse X"), dropout)
        self.A = _adjacency(case, adjacency)
        if case.kind in PROPAGATED:
            self.propagate = PROPAGATED[case.kind]()
        for number, layer in enumerate(layers, start=1):
            if case.kind == "sgformer" and isinstance(layer, Attending):
                layer.set_attention(case.weights(), number)
        if case.kind == "batch_norm":
            self.norms = torch.nn.ModuleList([torch.nn.BatchNorm1d(width) for width in case.widths[1:-1]])
        if case.kind in ("batch_norm", "gprgnn", "sgformer"):
            self.optimiser = torch.optim.Adam(self.parameters(), lr=LEARNING_RATE)

    def convolve(self, layer: Any, H: torch.Tensor) -> torch.Tensor:
        """One layer."""
        return layer(H) if self.kind in PROPAGATED else layer(H, self.A)

    def forward(self) -> torch.Tensor:
        """[n, classes]."""
        if self.kind == "gcn":
            return super().forward()
        if self.kind in PROPAGATED:
            return self.propagate(super().forward(), self.A)
        H = H0 = self.X
        *inner, last = self.layers
        for number, layer in enumerate(inner):
            if self.kind == "sgformer":
                H = functional.relu(layer(H, self.A) if number else layer(H))
            elif self.kind == "batch_norm":
                H = functional.relu(self.norms[number](layer(H, self.A)))
            else:
                H = functional.relu(layer(H, H0, self.A) if number else layer(H))
            H0 = H0 if number else H
            if self.dropout:
                H = functional.dropout(H, self.dropout)
        return last(H) if self.kind in ("gcn2", "sgformer") else last(H, self.A)


PROPAGATED = {"appnp": lambda: APPNP(10, 0.1, cached=True), "gprgnn": Propagation}


def _adjacency(case: GcnCase, form: str) -> Any:
    """A without self loops in one of the forms."""
    indptr, indices = (torch.from_numpy(a.astype(np.int64)) for a in (case.indptr, case.indices))
    if form == "csr":
        return torch.sparse_csr_tensor(indptr, indices, torch.ones(len(indices)), (case.n, case.n))
    rows = torch.arange(case.n).repeat_interleave(indptr.diff())
    return torch.stack([indices, rows])  # from, to
