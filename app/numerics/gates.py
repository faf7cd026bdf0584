"""Gates of recurrent and of temporal convolutions, and their gradients, element by element.

Every function is a fixed sequence of operations for each element: the same bits on every device and in the
compiled kernels (app/native/gates.c).
"""

from typing import Any

from app.numerics.elementary import exp

Array = Any


def logistic(xp: Any, x: Array) -> Array:
    """1 / (1 + e^-x) of float32 values."""
    return 1 / (1 + exp(xp, -x))


def tanh(xp: Any, x: Array) -> Array:
    """2 / (1 + e^-2x) - 1 of float32 values, absolute error below 3e-7."""
    return 2 / (1 + exp(xp, -2 * x)) - 1


class Gates:
    """Operations of a device on rows [m, h] and on rows of several parts side by side, [m, 3h] and [m, 2h].

    A step of a gated recurrent unit (Cho et al. 2014), its reset gate after the product, as cuDNN has it:
      r = logistic(x_r + g_r)   z = logistic(x_z + g_z)   c = tanh(x_c + r * q), q = g_c + b
      h' = c + z * (h - c)
    with the parts [r z c] of the input X and of the hidden side G. Backward, of d = dh':
      dh = d * z                    dc = d * (1 - z) * (1 - c^2)
      dz = d * (h - c) * z * (1 - z)    dr = dc * q * r * (1 - r)
      dX = [dr dz dc]               dG = [dr dz dc * r], whose last part is that of q, hence of b
    A gated linear unit (Dauphin et al. 2017) of parts [a b]: y = a * s, s = logistic(b);
      da = d * s                    db = d * a * s * (1 - s)
    """

    xp: Any

    def gru_step(self, X: Array, G: Array, bias: Array, H: Array, Q: Array, out: Array) -> None:
        """X [m, 3h] becomes [r z c], Q [m, h] is q, out [m, h] is h'.

        G [m, 3h] hidden side     bias [h] of q     H [m, h] the state before
        """
        xp, h = self.xp, H.shape[1]
        X[:, : 2 * h] = logistic(xp, X[:, : 2 * h] + G[:, : 2 * h])
        Q[...] = G[:, 2 * h :] + bias
        X[:, 2 * h :] = tanh(xp, X[:, 2 * h :] + X[:, :h] * Q)
        c = X[:, 2 * h :]
        out[...] = c + X[:, h : 2 * h] * (H - c)

    def gru_back(self, X: Array, Q: Array, H: Array, D: Array, G: Array) -> None:
        """X [m, 3h], which holds [r z c], becomes dX, G [m, 3h] is dG, and D [m, h], dh', becomes dh."""
        h = H.shape[1]
        r, z, c = X[:, :h].copy(), X[:, h : 2 * h].copy(), X[:, 2 * h :].copy()
        dc = D * (1 - z) * (1 - c * c)
        dr, dz = dc * Q * r * (1 - r), D * (H - c) * z * (1 - z)
        X[:, :h], X[:, h : 2 * h], X[:, 2 * h :] = dr, dz, dc
        G[:, :h], G[:, h : 2 * h], G[:, 2 * h :] = dr, dz, dc * r
        D *= z

    def glu(self, X: Array, out: Array) -> None:
        """out [m, h] is a * s; of X [m, 2h], which holds [a b], the second part becomes s."""
        h = out.shape[1]
        X[:, h:] = logistic(self.xp, X[:, h:])
        out[...] = X[:, :h] * X[:, h:]

    def glu_back(self, X: Array, D: Array) -> None:
        """X [m, 2h], which holds [a s], becomes [da db], of D [m, h]."""
        h = D.shape[1]
        a, s = X[:, :h].copy(), X[:, h:].copy()
        X[:, :h] = D * s
        X[:, h:] = D * a * s * (1 - s)
