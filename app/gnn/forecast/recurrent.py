"""A gated recurrent unit on a graph: its gates are diffusion convolutions of its state and of the input.

Source    Li et al. 2018 (DCRNN), eqs. 2 and 3; Zhao et al. 2019 (T-GCN); Seo et al. 2018 (GConvGRU)
Forward   of inputs U_t [rows, f + 1], which hold the random walks of the series already and a column of ones,
          S(H) = [H, P H, ..., P^K H] (of a directed graph Q H, ... too), H_0 = 0, for t = 1 .. L:
            X = U_t W_u     G = S(H_{t-1}) W_h          [rows, 3h], parts [r z c]
            H_t = the step of numerics/gates.py of X, G and the bias b of its candidate
          Z = H_L W_o + b_o
Backward  D = dZ:  dW_o = H_L^T D   db_o = sums of D   dH_L = D W_o^T; for t = L .. 1, from dX, dG, dH of the
gates:
            dW_u += U_t^T dX    dW_h += S(H_{t-1})^T dG    db += sums of the last part of dG
            dH_{t-1} = dH + S^T (dG W_h^T): the block of W_h that P^k H meets gives the gradient by P^k H, and
            Hops.backward takes these back to one by H
          At t = 1 the state is zero: neither products with A nor with W_h.
Departs   The reset gate stands after the convolution, as in cuDNN's unit: a step needs one diffusion of the
          state, not two. The input's random walks are those of the series, made once (series.py).
Ranks     rows partitioned, weights replicated; K exchanges a step of time forward and K backward (2K of a
          directed graph); one sum for all gradients
"""

from typing import Any

from app.gnn.forecast.steps import Steps

Array = Any


class Recurrent:
    """See above. f: columns of the input without that of ones; walks: random walks of the state."""

    def __init__(self, f: int, hidden: int, outputs: int, walks: int) -> None:
        self.f, self.hidden, self.outputs, self.walks = f, hidden, outputs, walks
        self.saved: list[tuple[Array, ...]] = []

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of all weights by name; the last row of input.W is the bias of the gates."""
        h = self.hidden
        return {
            "input.W": (self.f + 1, 3 * h), "hidden.W": ((1 + self.walks) * h, 3 * h),
            "hidden.bias": (1, h), "head.W": (h, self.outputs), "head.bias": (1, self.outputs),
        }  # fmt: skip

    def floats(self, window: int) -> int:
        """Numbers that a row holds at once at most, forward and backward, beside the input."""
        h = self.hidden
        step = (1 + self.walks) * h + 4 * h  # the state with its walks, gates and q
        return window * step + (3 + 3 + 2 * (1 + self.walks)) * h + 3 * self.outputs

    def forward(self, steps: Steps, U: list[Array], keep: bool) -> Array:
        """Z [rows, outputs] of the inputs of all steps of time. Ranks: all call.

        keep   a backward pass follows
        """
        params, h, self.saved = steps.params, self.hidden, []
        H, G, bias = steps.zeros(h), steps.zeros(3 * h), params["hidden.bias"].reshape(-1)
        for t, inputs in enumerate(U):
            walks = [H, *steps.walk(H)] if t else []
            if t:
                steps.dense(walks, params["hidden.W"], G)
            X = steps.dense([inputs], params["input.W"])
            Q, after = steps.empty(h), steps.empty(h)
            steps.device.gru_step(X, G, bias, H, Q, after)
            if keep:
                self.saved.append((walks or [H], inputs, X, Q))
            H = after
        self._last = H
        Z = steps.dense([H], params["head.W"])
        steps.device.activate(Z, None, params["head.bias"].reshape(-1))
        return Z

    def backward(self, steps: Steps, D: Array) -> None:
        """Gradients of all weights from D = dZ [rows, outputs]. Ranks: all call."""
        params, h, G = steps.params, self.hidden, steps.empty(3 * self.hidden)
        steps.gram("head.W", [self._last], D)
        steps.column_sums("head.bias", D)
        dH = steps.dense([D], steps.transposed(params["head.W"]))
        parts = params["hidden.W"].reshape(1 + self.walks, h, 3 * h)
        back = [steps.transposed(parts[k]) for k in range(1 + self.walks)]
        while self.saved:
            walks, inputs, X, Q = self.saved.pop()
            steps.device.gru_back(X, Q, walks[0], dH, G)
            steps.gram("input.W", [inputs], X)
            steps.column_sums("hidden.bias", steps.device.xp.ascontiguousarray(G[:, 2 * h :]))
            if not self.saved:  # the first step of time
                break
            steps.gram("hidden.W", walks, G)
            steps.device.add_into(dH, steps.dense([G], back[0]))
            steps.walk_back([steps.dense([G], each) for each in back[1:]], dH)
        self._last = None
