"""One side of bench/forecast.py: the recurrent network of app/gnn/forecast/recurrent.py in plain PyTorch,
with autograd.

Products with the graph are torch.sparse CSR products of all windows at once, the gates' operations those of
the other side, and the random walks of the series are made once, too. Reads inputs, graph and first weights
from an .npz, then lines `steps K` from standard input; answers each with processor seconds of K training
steps and the last loss.
"""

import sys
import time
import warnings

import numpy as np
import torch


class Unit(torch.nn.Module):
    """A gated recurrent unit on a graph, its reset gate after the convolution."""

    def __init__(self, held: dict[str, np.ndarray], hops: int) -> None:
        super().__init__()
        names = ("input.W", "hidden.W", "hidden.bias", "head.W", "head.bias")
        self.weights = torch.nn.ParameterList([torch.from_numpy(held[name].copy()) for name in names])
        n = len(held["indptr"]) - 1
        degrees = np.maximum(np.diff(held["indptr"]), 1)
        values = np.repeat(1 / degrees, np.diff(held["indptr"])).astype(np.float32)
        csr = (torch.from_numpy(held[name].astype(np.int64)) for name in ("indptr", "indices"))
        self.P = torch.sparse_csr_tensor(*csr, torch.from_numpy(values), (n, n))
        self.hops = hops

    def forward(self, U: torch.Tensor) -> torch.Tensor:
        """Z [n * B, outputs] of inputs [L, n * B, f + 1]."""
        W_u, W_h, bias, W_o, b_o = self.weights
        h, rows = W_o.shape[0], U.shape[1]
        X = U @ W_u
        H, G = torch.zeros(rows, h), torch.zeros(rows, 3 * h)
        for t in range(U.shape[0]):
            if t:
                heard = [H]
                for _ in range(self.hops):
                    heard.append((self.P @ heard[-1].reshape(self.P.shape[0], -1)).reshape(rows, h))
                G = torch.cat(heard, dim=1) @ W_h
            gates = torch.sigmoid(X[t][:, : 2 * h] + G[:, : 2 * h])
            r, z = gates[:, :h], gates[:, h:]
            c = torch.tanh(X[t][:, 2 * h :] + r * (G[:, 2 * h :] + bias))
            H = c + z * (H - c)
        return H @ W_o + b_o


def main() -> None:
    """Training steps as they are asked for."""
    warnings.filterwarnings("ignore", category=UserWarning)  # torch.sparse says that it is in beta
    torch.set_num_threads(1)
    held = dict(np.load(sys.argv[1]))
    unit = Unit(held, int(held["hops"]))
    optimiser = torch.optim.Adam(unit.parameters(), lr=float(held["rate"]))
    inputs, last, target = (torch.from_numpy(held[name]) for name in ("inputs", "last", "target"))
    print("ready", flush=True)
    for line in sys.stdin:
        begun, loss = time.process_time(), None
        for _ in range(int(line.split()[1])):
            optimiser.zero_grad()
            loss = (unit(inputs) + last - target).abs().mean()
            loss.backward()
            optimiser.step()
        print(time.process_time() - begun, float(loss.detach()), flush=True)


if __name__ == "__main__":
    main()
