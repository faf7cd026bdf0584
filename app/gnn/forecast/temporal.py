"""Convolutions over the window, then graph convolutions: a network without a state.

Source    Yu et al. 2018 (STGCN): gated convolutions in time, and graph convolutions; Li et al. 2018 (DCRNN),
          eq. 2: the latter by random walks
Forward   of U [rows, L (f + 1)], the inputs of all steps of time side by side:
            X = U W_u  [rows, 2h], parts [a b]     H_0 = a * logistic(b)
            for l = 1 .. depth, S(H) = [H, P H, ..., P^K H]:
            Y_l = relu(S(H_{l-1}) W_l + b_l)       H_l = H_{l-1} + Y_l
          Z = H_depth W_o + b_o
          Where covariates are known of the steps of the horizon, F [rows, m]: X = U W_u + F W_f
Backward  D = dZ:  dW_o = H^T D   db_o = sums of D   dH = D W_o^T; for l = depth .. 1:
            E = dH * [Y_l > 0]      dW_l = S(H_{l-1})^T E     db_l = sums of E
            dH += S^T (E W_l^T), as in recurrent.py
          dX = the gradient of the gate (numerics/gates.py)    dW_u = U^T dX    dW_f = F^T dX
Departs   A window is short: one convolution spans all of it (STGCN has kernels of 3 steps in two layers).
          Weights of a convolution over the whole window read no step of time after it, so nothing of the
          future enters.
Ranks     rows partitioned, weights replicated; K exchanges a layer forward and K backward; one sum for all
gradients
"""

from typing import Any

from app.gnn.forecast.steps import Steps

Array = Any


class Temporal:
    """See above. f: columns of the input of a step without that of ones; walks, ahead: as of
    Recurrent."""

    def __init__(
        self, f: int, window: int, hidden: int, depth: int, outputs: int, walks: int, ahead: int = 0
    ) -> None:
        self.f, self.window, self.hidden, self.depth = f, window, hidden, depth
        self.outputs, self.walks, self.ahead = outputs, walks, ahead
        self.saved: tuple[Any, ...] = ()

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of all weights by name; every row of input.W that meets a column of ones is a bias."""
        h = self.hidden
        layers: dict[str, tuple[int, ...]] = {}
        for layer in range(1, self.depth + 1):
            layers |= {f"layer{layer}.W": ((1 + self.walks) * h, h), f"layer{layer}.bias": (1, h)}
        first: dict[str, tuple[int, ...]] = {"input.W": (self.window * (self.f + 1), 2 * h)}
        if self.ahead:
            first["ahead.W"] = self.ahead, 2 * h
        return first | layers | {"head.W": (h, self.outputs), "head.bias": (1, self.outputs)}

    def floats(self, window: int) -> int:
        """Numbers that a row holds at once at most, beside the input, with F."""
        h = self.hidden
        return (
            self.ahead
            + window * (self.f + 1)
            + (3 + self.depth * (2 + self.walks) + 2 + self.walks) * h
            + 3 * self.outputs
        )

    def forward(self, steps: Steps, U: Array, F: Array | None = None) -> Array:
        """Z [rows, outputs]; see Recurrent.forward. Ranks: all call."""
        params, h = steps.params, self.hidden
        inputs = steps.device.xp.concatenate([U[t] for t in range(U.shape[0])], axis=1)
        read, W = [inputs], params["input.W"]
        if F is not None:
            read, W = [inputs, F], steps.below(W, params["ahead.W"])
        X, H = steps.dense(read, W, steps.room("X", 2 * h)), steps.room("H 0", h)
        steps.device.glu(X, H)
        layers = []
        for layer in range(1, self.depth + 1):
            walks = [steps.room(f"walk {layer} {k}", h) for k in range(self.walks)]
            heard = [H, *steps.walk(H, walks)]
            Y = steps.dense(heard, params[f"layer{layer}.W"], steps.room(f"Y {layer}", h))
            steps.device.activate(Y, None, params[f"layer{layer}.bias"].reshape(-1), None, True)
            layers.append((heard, Y))
            H = steps.device.xp.add(H, Y, out=steps.room(f"H {layer}", h))
        self.saved = inputs, F, X, H, layers
        Z = steps.dense([H], params["head.W"])
        steps.device.activate(Z, None, params["head.bias"].reshape(-1))
        return Z

    def backward(self, steps: Steps, D: Array) -> None:
        """Gradients of all weights; see Recurrent.backward. Ranks: all call."""
        params, h = steps.params, self.hidden
        inputs, F, X, last, layers = self.saved
        steps.gram("head.W", [last], D)
        steps.column_sums("head.bias", D)
        dH = steps.dense([D], steps.transposed(params["head.W"]), steps.room("dH", h))
        E, by = steps.room("E", h), [steps.room(f"by {k}", h) for k in range(1 + self.walks)]
        for layer in range(self.depth, 0, -1):
            heard, Y = layers[layer - 1]
            E[...] = dH
            steps.device.deactivate(E, Y, None, None, True)
            steps.gram(f"layer{layer}.W", heard, E)
            steps.column_sums(f"layer{layer}.bias", E)
            parts = params[f"layer{layer}.W"].reshape(1 + self.walks, h, h)
            for k in range(1 + self.walks):
                steps.dense([E], steps.transposed(parts[k]), by[k])
            steps.device.add_into(dH, by[0])
            steps.walk_back(by[1:], dH)
        steps.device.glu_back(X, dH)
        steps.gram("input.W", [inputs], X)
        if F is not None:
            steps.gram("ahead.W", [F], X)
