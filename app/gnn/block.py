"""Block: a convolution and what follows it: bias, residual connection, normalisation, activation, dropout."""

from dataclasses import replace
from typing import Any

from app.gnn.engine import Engine
from app.gnn.features import Features
from app.gnn.layers.layer import LayerSpec, Settings, Shapes
from app.gnn.layers.table import make_convolution
from app.gnn.norms import BatchNorm, LayerNorm
from app.gnn.programs import Rows
from app.numerics.elementwise import Dropout

Array = Any


class Block:
    """One layer of a model.

    Source    ROC section 7.5 (He et al. 2016): equal widths are joined directly, others by a linear layer
    Forward   Z = convolution(H)     U = Z + b + R     N = normalise(U)     H' = drop(relu(N))
              R = H, or H W_R where widths differ, or nothing; linear: without relu
    Backward  dN = dH' * drop * [H' > 0]     H' > 0 exactly where the entry was kept and active
              dU, dgamma, dbeta as in norms.py, which keeps U
              db = sum of the rows of dU
              dH = convolution^T(dU) + dU, or + dU W_R^T         dW_R = H^T dU
    Ranks     rows partitioned; the exchanges of the convolution
    Differs   The paper adds H after relu; added before it (He et al., Fig. 2), the activation can be read off
              its output, so that backward needs no other array.
    """

    def __init__(
        self, name: str, spec: LayerSpec, f_in: int, f_out: int, settings: Settings, first: bool
    ) -> None:
        """first   the layer's input are the features."""
        settings = replace(settings, first=first)
        convolution = make_convolution(name, spec, f_in, f_out, settings)
        self.name, self.spec, self.settings, self.convolution = name, spec, settings, convolution
        self.f_in, self.f_out = f_in, f_out
        self.projects = spec.residual and (f_in != f_out or first)
        self.meets_input = ((f"{name}.residual",) if self.projects else ()) + convolution.meets_input
        self.biased = settings.bias and not spec.batch_norm and getattr(convolution, "biased", True)
        self.norm = make_norm(name, spec)
        alone = self.norm is None or self.norm.row_by_row
        self.row_by_row: bool = alone and getattr(convolution, "row_by_row", False)
        self._saved: tuple[Any, Rows, Dropout | None] | None = None

    def text(self) -> str:
        """Kind, widths and options, for the log."""
        flags = [name for name in ("residual", "layer_norm", "batch_norm") if getattr(self.spec, name)]
        return " ".join([self.spec.kind, f"{self.f_in}-{self.f_out}", *flags])

    def work(self, features: Features | None) -> str:
        """Kind, and what comes first in its products: layers of equal widths and work take equal time.

        features   the layer's input, where it is the first one
        """
        order = getattr(self.convolution, "order", None)
        return f"{self.spec.kind} {order(features)}" if order else self.spec.kind

    def reads(self, features: Features | None) -> int:
        """Numbers of a neighbour that the sparse product of an epoch reads.

        features   as of `work`; a product of theirs that is kept counts by the narrower side
        """
        order = getattr(self.convolution, "order", None)
        first = order(features) if order else "weights"
        made = getattr(self.convolution, "makes", self.f_out)
        return {"product": self.f_in, "weights": made}.get(first, min(self.f_in, made))

    def shapes(self) -> Shapes:
        """Parameters by name; those that meet the features first."""
        shapes = self.convolution.shapes()
        if self.projects:
            shapes = {f"{self.name}.residual": (self.f_in, self.f_out), **shapes}
        if self.biased:
            shapes[f"{self.name}.bias"] = (1, self.f_out)
        return shapes | self.norm.shapes() if self.norm else shapes

    def forward(
        self, engine: Engine, H: Rows | Features, drop: Dropout | None, keep: bool, read_out: bool = False
    ) -> Rows:
        """The layer's output.

        H         freed unless `keep`, which saves it for backward, or somebody else reads it
        read_out  a readout, or a last layer, reads the output, and what the layers before it gave
        Ranks     all call
        """
        engine.training = keep
        Z = self.convolution.forward(engine, H)
        if not keep:
            self.convolution.release(engine)
        relu = not self.spec.linear
        scale, add, bias = (
            self.convolution.output_scale(engine, H),
            self._residual(engine, H),
            self._bias(engine),
        )
        if self.norm:
            engine.activate(Z, scale, bias, add)
            out = self.norm.forward(engine, Z, keep)
            engine.activate(out, relu=relu, drop=drop)
        else:
            engine.activate(Z, scale, bias, add, relu, drop)
            out = Z
        if self.projects:
            engine.free(add)
        if keep:
            out.relu, out.drop = relu and not read_out, drop
            if self.spec.residual and isinstance(H, Rows):
                H.relu = False  # the gradient by H is a sum of two
            self._saved = (H, out, drop)
        elif self.settings.first or not (read_out or getattr(H, "held", False)):
            engine.free(H)
        return out

    def backward(self, engine: Engine, D: Rows) -> Rows | None:
        """The gradient by the layer's input (None for features) from D by its output, which is freed.

        Ranks   all call
        """
        H, out, drop = self._saved
        self._saved = None
        if out is not D:  # else the gradient has come through relu and dropout (Engine.dense_through)
            engine.deactivate(D, out, None, drop, not self.spec.linear)
            engine.free(out)
        if self.norm:
            self.norm.backward(engine, D)
        if self.biased:
            engine.column_sums(f"{self.name}.bias", D)
        dR = self._residual_back(engine, H, D)
        scale = self.convolution.output_scale(engine, H)
        if scale is not None:
            engine.deactivate(D, None, scale)
        dH = self.convolution.backward(engine, H, D)
        if dR is not None and dH is not None:
            engine.add_into(dH, dR)
        engine.free(dR)
        return dH

    def _bias(self, engine: Engine) -> Array | None:
        return engine.params[f"{self.name}.bias"] if self.biased else None

    def _residual(self, engine: Engine, H: Rows | Features) -> Rows | Features | None:
        if self.projects:
            return engine.dense(H, engine.params[f"{self.name}.residual"], name="R")
        return H if self.spec.residual else None

    def _residual_back(self, engine: Engine, H: Rows | Features, D: Rows) -> Rows | None:
        """The residual connection's part of the gradient by H; that of its weights goes to the engine."""
        if not self.spec.residual:
            return None
        if not self.projects:
            return engine.copy(D, "dR")
        engine.gram(f"{self.name}.residual", H, D)
        if not isinstance(H, Rows):
            return None
        return engine.dense_back(D, engine.params[f"{self.name}.residual"], name="dR")


def make_norm(name: str, spec: LayerSpec) -> LayerNorm | BatchNorm | None:
    """What a layer normalises by, before its activation."""
    if spec.batch_norm:
        return BatchNorm(f"{name}.", spec.width)
    return LayerNorm(f"{name}.", spec.width) if spec.layer_norm else None
