"""Graph convolutions that deep networks are made of: with an initial residual and an identity mapping."""

from typing import Any

import numpy as np

from app.gnn.engine import Engine
from app.gnn.layers.gcn import GCN
from app.gnn.layers.layer import LayerSpec, Settings
from app.gnn.programs import Rows
from app.numerics.elementary import log
from app.numerics.elementwise import Dropout

Array = Any


class Initial:
    """What the first layer of a network gives, which all GCN2 layers read, and the gradient by it.

    rows   H0, held from the first layer on; `gradient` dH0, made by the layers' backward passes
    heard  H0 with dropout, which the next layer hears; None: it hears H0
    """

    def __init__(self) -> None:
        self.rows: Rows | None = None
        self.gradient: Rows | None = None
        self.heard: Rows | None = None
        self._drop: Dropout | None = None

    def hold(self, engine: Engine, H: Rows, drop: Dropout | None) -> Rows:
        """Keep H0; what the next layer hears, which neither frees H0 nor works in its place."""
        H.held, H.relu, self.rows, self._drop = True, False, H, drop
        if drop is None:
            return H
        self.heard = engine.copy(H, "heard")
        engine.activate(self.heard, drop=drop)
        return self.heard

    def add_back(self, engine: Engine, D: Rows) -> None:
        """From D by what the next layer heard make that by H0, which is freed; so is what was heard."""
        if self._drop is not None:
            engine.deactivate(D, drop=self._drop)
        engine.add_into(D, self.gradient)
        engine.free(self.gradient, self.heard)
        self.rows = self.gradient = self.heard = self._drop = None

    def release(self, engine: Engine, given: Rows) -> None:
        """Free H0 where no backward pass follows, unless it is what the network has given."""
        if self.rows is not given:
            engine.free(self.rows)
        self.rows = None


class GCN2(GCN):
    """Z = S ((1 - beta) I + beta W), S = (1 - alpha) P H + alpha H0, P as in GCN, H0 the first layer's
    output.

    Source    Chen et al. 2020 (GCNII), eq. 5; beta = log(theta / l + 1) of the l-th such layer
    Forward   S = (1 - alpha) s * (A+I) (t * H) + alpha H0      Z = S V, V = (1 - beta) I + beta W
    Shapes    H, H0, S, Z [n_own, f]   W, V [f, f]: all of one width
    Backward  D = dZ comes in:   dW = beta S^T D     dS = D V^T
              dH0 += alpha dS    dH = (1 - alpha) t * (A+I)^T (s * dS)
    Ranks     rows partitioned, W replicated; 1 exchange forward, 1 backward, addends of dW
    Dropout   of what each layer hears, never of H0 itself, as in the paper's program
    """

    leaves = ("heads", "first_product")
    reads = ("alpha", "theta")
    biased = False  # as in the paper; biases of many layers slow the first epochs down

    def __init__(self, name: str, spec: LayerSpec, f_in: int, f_out: int, settings: Settings) -> None:
        super().__init__(name, spec, f_in, f_out, settings)
        self.W, self.alpha, self.initial = f"{name}.W", float(np.float32(settings.alpha)), Initial()
        ratio = np.array([settings.theta / settings.number + 1], dtype=np.float32)
        self.beta = log(np, ratio)[0]

    def forward(self, engine: Engine, H: Rows) -> Rows:
        """Z; see Convolution.forward. Keeps S."""
        own, t = self.settings.own_loops, self._input_scale(engine)
        if t is None:
            S = engine.neighbours(H, own=own, name="S")
        else:
            S = engine.spread(engine.copy(H, "S", t), own=own)
        engine.activate(S, engine.scale_of(self._kind))
        self._mix(engine, S, self.initial.rows)
        self._kept = S
        return engine.dense(S, self._mapping(engine))

    def _mix(self, engine: Engine, S: Rows, H0: Rows) -> None:
        """S = (1 - alpha) S + alpha H0."""

        def work() -> None:
            S.array[...] *= np.float32(1 - self.alpha)
            engine.device.add_into(S.array, H0.array, self.alpha)

        engine.apply("elementwise", "initial", [S, H0], [S], work)

    def _mapping(self, engine: Engine) -> Array:
        """V [f, f], replicated."""
        V = engine.params[self.W] * self.beta
        V.reshape(-1)[:: self.f_in + 1] += 1 - self.beta  # the diagonal
        return V

    def output_scale(self, engine: Engine, H: Rows) -> None:
        """None: Z is whole."""
        return None

    def backward(self, engine: Engine, H: Rows, D: Rows) -> Rows:
        """The gradient by H from D = dZ; see Convolution.backward. `initial` gets that by H0."""
        engine.gram(self.W, self._kept, D, scale=engine.constant(self.beta))
        self.release(engine)
        dS = engine.dense_back(D, self._mapping(engine), name="dS")
        engine.free(D)
        self._part_back(engine, dS)
        engine.activate(dS, engine.scale_of(self._kind))
        dH = engine.spread(dS, own=self.settings.own_loops)
        engine.activate(dH, self._input_scale(engine))
        return dH

    def _part_back(self, engine: Engine, dS: Rows) -> None:
        """dH0 += alpha dS, and dS = (1 - alpha) dS."""
        initial = self.initial
        begins = initial.gradient is None
        if begins:
            initial.gradient = engine.take("dH0", dS.width)
        G = initial.gradient

        def work() -> None:
            if begins:
                engine.device.xp.multiply(dS.array, np.float32(self.alpha), out=G.array)
            else:
                engine.device.add_into(G.array, dS.array, self.alpha)
            dS.array[...] *= np.float32(1 - self.alpha)

        engine.apply("elementwise", "initial_back", [dS] if begins else [dS, G], [dS, G], work)

    def order(self, H: Rows | None) -> str:
        """The product is always first."""
        return "product"
