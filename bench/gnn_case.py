"""What every program of bench/gnn.py is given: a graph, features, labels and first weights, as plain arrays.

Nothing of `app` is imported here, so an interpreter that holds another program's libraries alone can read it.
"""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import scipy.sparse

LEARNING_RATE = 0.01  # of Adam, whose other numbers are those of the paper (Kingma and Ba 2015)


@dataclass(eq=False)
class GcnCase:
    """Full-batch training of a graph convolutional network.

    kind   gcn: Kipf and Welling 2017; batch_norm: the same, columns normalised before each activation; gcn2:
           dense layers at both ends, GCNII's between them (Chen et al. 2020), alpha 0.1, theta 0.5; appnp:
           dense layers, ten steps of personalised PageRank after the last (Gasteiger et al. 2019), alpha 0.1;
           gprgnn: the same with weights of the steps that are learned (Chien et al. 2021); sgformer: between
           dense layers such of half SGFormer's attention (Wu et al. 2023) and half a graph convolution

    indptr, indices   CSR rows of the symmetric adjacency, no self loops, columns ascend, all weights one
    X                 [n, f] float32 features: a dense array or a SciPy CSR matrix
    labels            [n] int64 classes             train   [m] int64 nodes whose labels are known, ascending
    widths            of the features, of every layer's output
    seed              of the first weights
    """

    name: str
    indptr: np.ndarray
    indices: np.ndarray
    X: np.ndarray | scipy.sparse.csr_matrix
    labels: np.ndarray
    train: np.ndarray
    widths: list[int]
    seed: int = 1
    kind: str = "gcn"

    @property
    def n(self) -> int:
        """Nodes."""
        return len(self.indptr) - 1

    @property
    def layers(self) -> int:
        """Graph convolutions."""
        return len(self.widths) - 1

    @property
    def sparse(self) -> bool:
        """Whether the features are kept as a sparse matrix."""
        return scipy.sparse.issparse(self.X)

    def dense_features(self) -> np.ndarray:
        """[n, f] float32, row-major."""
        return self.X.toarray() if self.sparse else self.X

    def weights(self) -> dict[str, np.ndarray]:
        """First weights, see `first_weights`; layers within a gcn2 have no b."""
        found = first_weights(self.widths, self.seed)
        if self.kind == "sgformer":
            found |= attention_weights(self.widths, self.seed)
        ends = ("1", str(self.layers))
        return {k: v for k, v in found.items() if self.kind != "gcn2" or k[0] == "W" or k[1:] in ends}

    def adjacency(self, dtype: type = np.float32) -> scipy.sparse.csr_matrix:
        """D^-1/2 (A + I) D^-1/2 with D the degrees of A + I, 32-bit indices, columns ascend."""
        ones = np.ones(len(self.indices))
        A = scipy.sparse.csr_matrix((ones, self.indices, self.indptr), (self.n, self.n))
        A = (A + scipy.sparse.identity(self.n, format="csr")).tocsr()
        scale = scipy.sparse.diags(np.asarray(A.sum(axis=1)).ravel() ** -0.5)
        A = (scale @ A @ scale).tocsr().astype(dtype)
        A.sort_indices()
        A.indptr, A.indices = A.indptr.astype(np.int32), A.indices.astype(np.int32)
        return A

    def save(self, path: Path) -> None:
        """Write all of it to an .npz file."""
        if self.sparse:
            X = {"X_indptr": self.X.indptr, "X_indices": self.X.indices, "X_data": self.X.data}
        else:
            X = {"X": self.X}
        np.savez(
            path, name=self.name, indptr=self.indptr, indices=self.indices, labels=self.labels,
            train=self.train, widths=self.widths, seed=self.seed, kind=self.kind, **X,
        )  # fmt: skip


def first_weights(widths: list[int], seed: int) -> dict[str, np.ndarray]:
    """W1, b1, W2, ..: Glorot's uniform W [f_in, f_out] and zero b [f_out], float32."""
    drawn = {}
    for layer, (f_in, f_out) in enumerate(pairwise(widths), 1):
        draws = np.random.Generator(np.random.Philox(key=[seed, layer]))
        bound = np.sqrt(6 / (f_in + f_out))
        drawn[f"W{layer}"] = draws.uniform(-bound, bound, (f_in, f_out)).astype(np.float32)
        drawn[f"b{layer}"] = np.zeros(f_out, dtype=np.float32)
    return drawn


def attention_weights(widths: list[int], seed: int) -> dict[str, np.ndarray]:
    """Q2, K2, V2, Q3, ..: the same of queries, keys and values, of all layers but the first and the last."""
    found = {}
    for place, name in enumerate("QKV", 1):
        drawn = first_weights(widths, 1000 * place + seed)
        found |= {f"{name}{layer}": drawn[f"W{layer}"] for layer in range(2, len(widths) - 1)}
    return found


def load_case(path: Path) -> GcnCase:
    """Read what `GcnCase.save` wrote."""
    with np.load(path, allow_pickle=False) as f:
        widths, indptr = f["widths"].tolist(), f["indptr"]
        if "X" in f:
            X = f["X"]
        else:
            shape = (len(indptr) - 1, widths[0])
            X = scipy.sparse.csr_matrix((f["X_data"], f["X_indices"], f["X_indptr"]), shape)
        rest = f["labels"], f["train"], widths, int(f["seed"]), str(f["kind"])
        return GcnCase(str(f["name"]), indptr, f["indices"], X, *rest)
