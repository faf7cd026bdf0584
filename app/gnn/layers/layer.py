"""What the layers share: how one is described, and what it must offer."""

from dataclasses import dataclass, replace
from typing import Any, Protocol

from app.errors import CaseError
from app.gnn.engine import Engine
from app.gnn.features import DenseFeatures, Features
from app.gnn.programs import Rows

Array = Any
Shapes = dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class LayerSpec:
    """One entry of the list that describes a model, such as "gcn 16 residual".

    kind        name in the table of layers     width   columns of its output, 0: as many as there are classes
    residual    add the layer's input before the activation
    layer_norm  normalise rows before the activation
    batch_norm  normalise columns before the activation
    linear      no activation
    heads       of attention; the width is that of all of them
    """

    kind: str
    width: int = 0
    residual: bool = False
    layer_norm: bool = False
    linear: bool = False
    heads: int = 1
    batch_norm: bool = False


FLAGS = ("residual", "layer_norm", "batch_norm", "linear")


def parse_layer(text: str) -> LayerSpec:
    """The layer that a text describes: KIND [WIDTH] [residual] [layer_norm] [batch_norm] [linear]
    [heads=H]. Raises CaseError."""
    kind, *words = text.split() or [""]
    spec = LayerSpec(kind)
    for word in words:
        name, _, value = word.partition("=")
        if is_number(word) and not spec.width:
            spec = replace(spec, width=int(word))
        elif word in FLAGS:
            spec = replace(spec, **{word: True})
        elif name == "heads" and is_number(value):
            spec = replace(spec, heads=int(value))
        else:
            right = f"one width, {', '.join(FLAGS)} or heads=H would be right"
            raise CaseError(f"gnn.layers: {text!r}: found {word!r}; {right}")
    if spec.layer_norm and spec.batch_norm:
        raise CaseError(f"gnn.layers: {text!r}: layer_norm beside batch_norm; one of them would be right")
    return spec


def is_number(text: str) -> bool:
    """Whether a text is a whole number from 1 on."""
    return text.isascii() and text.isdecimal() and int(text) >= 1


@dataclass(frozen=True)
class Settings:
    """What all layers of a model share.

    normalisation   "symmetric" or "in_degree", of GCN
    own_loops       whether GCN's matrix is A + I, not A
    first_product   of a first layer: "auto", "cached", "live", "mg_gcn" (see product_order, gcn.py)
    bias            layers add one
    input_dropout   whether the features change from epoch to epoch
    hidden          columns within a layer that is a perceptron; 0: as many as it gives
    read_out        columns of the layers that a readout is of; empty: the last one alone
    edge_width      columns of the features of edges
    first           the layer's input are features
    alpha, theta    of GCN2, and which of these layers it is, `number`, from 1
    hops            of layers of several products with A (layers/hops.py); 0: as many as is usual for a kind
    attention_share of attention to all nodes in what its layers give (layers/global_attention.py)
    """

    normalisation: str = "symmetric"
    own_loops: bool = True
    first_product: str = "auto"
    bias: bool = True
    input_dropout: bool = False
    hidden: int = 0
    read_out: tuple[int, ...] = ()
    edge_width: int = 0
    first: bool = False
    alpha: float = 0.1
    theta: float = 0.5
    number: int = 1
    hops: int = 0
    attention_share: float = 0.5


def product_order(H: Rows | Features | None, f_in: int, f_out: int, settings: Settings) -> str:
    """What comes first in P H W, the same whenever it is asked; H may be None for any rows but features.

    "weights"   P (H W)
    "product"   (P H) W: where H is narrower than the result, and for dense features, which need no gradient,
                where their product is at most as wide as the two, forward and backward, that it saves (but
                with MG-GCN's shortcut, which has no backward one to save)
    "cached"    like "product", with P H of dense features made once and kept: exact as long as no dropout
                changes them
    """
    asked = settings.first_product
    if H is None or isinstance(H, Rows) or (asked == "mg_gcn" and isinstance(H, DenseFeatures)):
        return "product" if f_in < f_out else "weights"
    if not isinstance(H, DenseFeatures):
        return "weights"
    if asked == "cached" or (asked == "auto" and not settings.input_dropout):
        return "cached"
    return "product" if f_in <= 2 * f_out else "weights"


class Convolution(Protocol):
    """The linear part of a layer: everything before bias, normalisation and activation.

    meets_input   names of the parameters that are multiplied by the layer's input; `shapes` has them first
    row_by_row    but for one product with A on the way from H to Z, each row is worked on alone, and
                  `backward` multiplies gradients by A, never H; then the products of training leave out what
                  the loss does not depend on (gnn/reach.py)
    leaves        keys of [gnn] that the layer does not read, of heads, normalisation, own_loops,
                  first_product and edge_weights; a case that sets one that no layer reads is refused. ()
                  where it is missing
    reads         keys of [gnn] that it reads and most layers do not: alpha, theta, hops, attention_share. ()
                  where it is missing
    order         what `product_order` says for an input, of which a cost model takes note; where it is
                  missing, weights come first
    makes         columns of what weights that come first make; where it is missing, those of Z
    biased        whether the block adds a bias; True where it is missing
    reads_edges   the layer reads the features of edges (gnn/edges.py); False where it is missing
    reads_loops   it hears itself by an edge with features, too (EdgeInputs.loops); False where it is missing
    explained     its messages are explained (gnn/explain); True where it is missing
    begins        parameters by name, as arrays, that begin otherwise than parameters.py says; none where it
                  is missing
    initial       what the first layer gives, where the layer reads that besides (layers/gcn2.py)
    Where the input is `Features`, no gradient by it is made.
    """

    meets_input: tuple[str, ...]
    row_by_row: bool
    leaves: tuple[str, ...]

    def shapes(self) -> Shapes:
        """Shapes of the parameters by name."""

    def forward(self, engine: Engine, H: Rows | Features) -> Rows:
        """Z, of which `output_scale` is still to be applied; H stays the caller's. Ranks: all call."""

    def output_scale(self, engine: Engine, H: Rows | Features) -> Array | None:
        """[n_own] factors of the rows of Z that are applied with what follows; None: all one."""

    def backward(self, engine: Engine, H: Rows | Features, D: Rows) -> Rows | None:
        """The gradient by H (None for features) from D = output_scale * dZ, which is freed. Ranks: all call.

        The gradients of parameters go to the engine.
        """

    def release(self, engine: Engine) -> None:
        """Free what forward kept for backward, where no backward pass follows."""
