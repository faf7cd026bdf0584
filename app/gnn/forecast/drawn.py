"""Series to try forecasts on: a nonlinear diffusion over the graph with a delay, a season and noise.

  x_{t+1} = x_t / 2 + 0.9 tanh(2 P x_{t-1}) + 0.3 sin(2 pi t / period + phase of the node) + noise eps_{t+1}
P x is the mean of the neighbours (of a directed graph of those that a node hears), eps of variance 1, each a
function of (seed, node, step). What is written is x plus a level of each node. No forecast of the next step
can have a root mean squared error below `noise`: that part is drawn after all that it may know.
"""

import math

import numpy as np

from app.gnn.forecast.hops import Hops
from app.graphs.generators.random_nodes import near_normal
from app.numerics.gates import tanh
from app.rng import key_of

OWN, NEIGHBOURS, STEEP, SEASON, LEVEL = 0.5, 0.9, 2.0, 0.3, 10.0
MEAN_SIZE = 7 / 15 * math.sqrt(3)  # of eps: the sum of four uniform numbers, brought to variance 1


def drawn_series(
    hops: Hops, nodes: np.ndarray, n_own: int, steps: int, period: int, noise: float, seed: int
) -> np.ndarray:
    """[n_own, T, 1] float32 of the nodes with numbers [k], zero on padding: the same on any number of ranks.

    period   0: no season
    Ranks    all call
    """
    device, key = hops.device, np.uint64(key_of(seed, "series/noise"))
    levels = near_normal(np.uint64(key_of(seed, "series/levels")), nodes) * np.float32(3) + np.float32(LEVEL)
    phases = near_normal(np.uint64(key_of(seed, "series/phases")), nodes).astype(np.float64)
    x, before = (np.zeros(n_own, dtype=np.float32) for _ in range(2))
    out = np.zeros((n_own, steps, 1), dtype=np.float32)
    for t in range(steps):
        heard = np.zeros(n_own, dtype=np.float32)
        if hops.powers:
            heard = np.array(device.get(hops.forward(device.put(before[:, None].copy()), 1)[0]))[:, 0]
        now = np.float32(OWN) * x + np.float32(NEIGHBOURS) * tanh(np, np.float32(STEEP) * heard)
        season = np.round(np.sin(2 * np.pi * t / period + phases), 6) if period else np.zeros(len(nodes))
        eps = near_normal(key, nodes * steps + t)
        now[: len(nodes)] += np.float32(SEASON) * season.astype(np.float32) + np.float32(noise) * eps
        now[len(nodes) :] = 0
        x, before = now, x
        out[: len(nodes), t, 0] = now[: len(nodes)] + levels
    return out


def floor_of(noise: float) -> dict[str, float]:
    """The least errors that forecasts of the next step can have on average."""
    return {"mae": noise * MEAN_SIZE, "rmse": noise}
