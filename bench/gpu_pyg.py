"""An epoch of PyTorch Geometric's GCNConv on a GPU, for bench/gpu_check.py."""

import statistics
import time
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch_geometric.nn import GCNConv


def epoch_seconds(graph: Any, widths: list[int], rounds: int) -> float:
    """Median seconds of a full-batch epoch with Adam; self loops and normalisation are computed once."""
    device = torch.device("cuda")
    indptr, indices = (torch.from_numpy(a.astype(np.int64)).to(device) for a in (graph.indptr, graph.indices))
    ones = torch.ones(len(graph.indices), device=device)
    A = torch.sparse_csr_tensor(indptr, indices, ones, (graph.n, graph.n))
    layers = [GCNConv(a, b, cached=True).to(device) for a, b in pairwise(widths)]
    X = torch.randn(graph.n, widths[0], device=device)
    labels = torch.randint(widths[-1], (graph.n,), device=device)
    optimiser = torch.optim.Adam([each for layer in layers for each in layer.parameters()], lr=0.01)

    def epoch() -> None:
        optimiser.zero_grad()
        H = X
        for layer in layers[:-1]:
            H = torch.relu(layer(H, A))
        H = layers[-1](H, A)
        torch.nn.functional.cross_entropy(H[::2], labels[::2]).backward()
        optimiser.step()

    taken = []
    for _ in range(rounds + 2):
        torch.cuda.synchronize()
        start = time.perf_counter()
        epoch()
        torch.cuda.synchronize()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken[2:])
