"""A gated recurrent unit on a graph: its gates are diffusion convolutions of its state and of the input.

Source    Li et al. 2018 (DCRNN), eqs. 2 and 3; Zhao et al. 2019 (T-GCN); Seo et al. 2018 (GConvGRU)
Forward   of inputs U_t [rows, f + 1], which hold the random walks of the series already and a column of ones,
          S(H) = [H, P H, ..., P^K H] (of a directed graph Q H, ... too), H_0 = 0, for t = 1 .. L:
            X = U_t W_u     G = S(H_{t-1}) W_h          [rows, 3h], parts [r z c]
            H_t = the step of numerics/gates.py of X, G and the bias b of its candidate
          Z = H_L W_o + b_o
          Where covariates are known of the steps of the horizon, F [rows, m], the last step reads them too:
          X_L = U_L W_u + F W_f
Backward  D = dZ:  dW_o = H_L^T D   db_o = sums of D   dH_L = D W_o^T; for t = L .. 1, from dX, dG, dH of the
gates:
            dW_u += U_t^T dX    dW_h += S(H_{t-1})^T dG    db += sums of the last part of dG
            dH_{t-1} = dH + S^T (dG W_h^T): the block of W_h that P^k H meets gives the gradient by P^k H, and
            Hops.backward takes these back to one by H
          dW_f = F^T dX_L
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
    """See above. f: columns of the input without that of ones; walks: random walks of the state; ahead:
    columns of F."""

    def __init__(self, f: int, hidden: int, outputs: int, walks: int, ahead: int = 0) -> None:
        self.f, self.hidden, self.outputs, self.walks, self.ahead = f, hidden, outputs, walks, ahead
        self.saved: tuple[Any, ...] = ()

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of all weights by name; the last row of input.W is the bias of the gates."""
        h = self.hidden
        known = {"ahead.W": (self.ahead, 3 * h)} if self.ahead else {}
        return {
            "input.W": (self.f + 1, 3 * h), **known, "hidden.W": ((1 + self.walks) * h, 3 * h),
            "hidden.bias": (1, h), "head.W": (h, self.outputs), "head.bias": (1, self.outputs),
        }  # fmt: skip

    def floats(self, window: int) -> int:
        """Numbers that a row holds at once at most, beside the input, with F."""
        h = self.hidden
        return self.ahead + window * (1 + self.walks + 7) * h + (3 + self.walks) * h + 3 * self.outputs

    def forward(self, steps: Steps, U: Array, F: Array | None = None) -> Array:
        """Z [rows, outputs] of the inputs U [L, rows, f + 1] and F [rows, m]. Ranks: all call."""
        params, h, window = steps.params, self.hidden, U.shape[0]
        room = lambda name, parts: _steps_of(steps.room(name, parts * h, window))  # noqa: E731
        X, G, Q, H = (room(name, parts) for name, parts in (("X", 3), ("G", 3), ("Q", 1), ("H", 1)))
        walks = [room(f"walk {k}", 1) for k in range(self.walks)]
        bias, last = params["hidden.bias"].reshape(-1), steps.room("last", h)
        steps.dense([_rows_of(U)], params["input.W"], _rows_of(X))
        if F is not None:
            steps.dense([U[window - 1], F], steps.below(params["input.W"], params["ahead.W"]), X[window - 1])
        H[0][...] = 0
        G[0][...] = 0
        for t in range(window):
            if t:
                heard = steps.walk(H[t], [each[t] for each in walks])
                steps.dense([H[t], *heard], params["hidden.W"], G[t])
            after = H[t + 1] if t + 1 < window else last
            steps.device.gru_step(X[t], G[t], bias, H[t], Q[t], after)
        self.saved = U, F, X, G, Q, H, walks, last
        Z = steps.dense([last], params["head.W"])
        steps.device.activate(Z, None, params["head.bias"].reshape(-1))
        return Z

    def backward(self, steps: Steps, D: Array) -> None:
        """Gradients of all weights from D = dZ [rows, outputs]. Ranks: all call."""
        params, h = steps.params, self.hidden
        U, F, X, G, Q, H, walks, last = self.saved
        steps.gram("head.W", [last], D)
        steps.column_sums("head.bias", D)
        dH = steps.dense([D], steps.transposed(params["head.W"]), steps.room("dH", h))
        parts = params["hidden.W"].reshape(1 + self.walks, h, 3 * h)
        back = [steps.transposed(parts[k]) for k in range(1 + self.walks)]
        by = [steps.room(f"by {k}", h) for k in range(1 + self.walks)]
        for t in range(U.shape[0] - 1, -1, -1):
            steps.device.gru_back(X[t], Q[t], H[t], dH, G[t])
            if not t:  # the state before is zero
                break
            for k in range(1 + self.walks):
                steps.dense([G[t]], back[k], by[k])
            steps.device.add_into(dH, by[0])
            steps.walk_back(by[1:], dH)
        inputs, gates = _rows_of(U), _rows_of(G)
        steps.gram("input.W", [inputs], _rows_of(X))
        if F is not None:
            steps.gram("ahead.W", [F], X[U.shape[0] - 1])
        steps.gram("hidden.bias", [inputs[:, self.f :]], gates, slice(2 * h, None))  # by the column of ones
        if U.shape[0] > 1:
            steps.gram("hidden.W", [_rows_of(each[1:]) for each in (H, *walks)], _rows_of(G[1:]))
        else:
            steps.clear("hidden.W")


def _steps_of(rows: Array) -> Array:
    """[L, rows, w], also of one step of time."""
    return rows if rows.ndim == 3 else rows[None]


def _rows_of(X: Array) -> Array:
    """[L * rows, w] of [L, rows, w]."""
    return X.reshape(X.shape[0] * X.shape[1], X.shape[2])
