"""Model: a list of layers as one function from features to class scores, with its gradient."""

from dataclasses import replace
from typing import Any

import numpy as np
from msgspec import structs

from app.case.gnn import GnnCase
from app.case.rgcn import RgcnCase
from app.errors import CaseError
from app.gnn.archive import MOST_WEIGHTS
from app.gnn.block import Block
from app.gnn.edge_level.head import NAME as HEAD
from app.gnn.edge_level.head import EdgeHead
from app.gnn.engine import Engine
from app.gnn.features import Features
from app.gnn.jump import KEY as JUMP
from app.gnn.jump import Jump
from app.gnn.layers.gcn2 import Initial
from app.gnn.layers.layer import LayerSpec, Settings, Shapes, parse_layer
from app.gnn.layers.table import LAYERS, leaves, readout_kind, reads, reads_edges
from app.gnn.parameters import constants_of
from app.gnn.positions import parse_positions
from app.gnn.programs import Rows
from app.gnn.reach import BACKWARD, FORWARD
from app.numerics.elementwise import Dropout
from app.rng import key_of

Array = Any
DEEP = "gcn2"  # the layers that read what the first one gives
BETWEEN = (DEEP, "sgformer", "linear_attention")  # layers that stand between dense ones


class Model:
    """Layers one after the other; the last one has no activation and as many columns as there are classes.

    Dropout is drawn before every layer (Kipf and Welling 2017, section 5.2): of the features with
    gnn.input_dropout, of what a layer gives to the next with gnn.dropout.

    jump   what the last layer reads of all layers before it (gnn.jump); None: what the one before it gives
    head   what makes the scores of an edge from the rows of its ends, which the last layer gives; else None
    """

    def __init__(self, case: GnnCase, f_in: int, classes: int, edge_width: int = 1) -> None:
        """edge_width   columns of the features of edges, where a layer, or the head, reads them."""
        self.case, self.f_in, self.classes = case, f_in, classes
        self.head = EdgeHead(case.hidden, classes, edge_width, case.bias) if case.level == "edge" else None
        settings = Settings(
            case.normalisation, case.own_loops, case.first_product, case.bias, case.input_dropout > 0,
            edge_width=max(edge_width, 1), alpha=case.alpha, theta=case.theta, hops=case.hops,
            attention_share=case.attention_share,
        )  # fmt: skip
        self.blocks: list[Block] = []
        self.jump: Jump | None = None
        width = f_in
        specs = layer_specs(case, self.head.width if self.head else classes)
        for number, spec in enumerate(specs, start=1):
            if number == len(specs) and case.goal == "values":  # a number of its own leaves no room within
                settings = replace(settings, hidden=max(case.hidden, spec.width))
            if number == len(specs) and self._reads_all:
                settings = replace(settings, read_out=tuple(each.f_out for each in self.blocks))
                width = sum(settings.read_out)
            if number == len(specs) and case.jump:
                _refuse_jump(case, specs)
                self.jump = Jump(case.jump, [each.f_out for each in self.blocks])
                width = self.jump.width
            self.blocks.append(Block(f"layer{number}", spec, width, spec.width, settings, number == 1))
            settings = replace(settings, number=settings.number + (spec.kind == DEEP))
            width = spec.width
        self._initial = _shared_initial(self.blocks)
        _refuse_size(self.shapes())

    @property
    def _reads_all(self) -> bool:
        """Whether the last layer is a readout of all others."""
        return self.case.level == "graph" and self.case.readout_of == "all"

    def shapes(self) -> Shapes:
        """Shapes of all parameters by name; first those that the features are multiplied by."""
        found: Shapes = {}
        for block in self.blocks:
            shapes = block.shapes()
            found.update({name: shapes[name] for name in block.meets_input})
            found.update(shapes)
        return found | (self.head.shapes() if self.head else {})

    @property
    def parts(self) -> list[str]:
        """What the names of parameters begin with, in the order of what is made."""
        return [*(block.name for block in self.blocks), *([HEAD] if self.head else [])]

    def constants(self) -> dict[str, float | np.ndarray]:
        """What parameters that are not drawn begin with, by name."""
        found: dict[str, float | np.ndarray] = {**constants_of(self.shapes())}
        for block in self.blocks:
            begins = getattr(block.convolution, "begins", None)
            found |= begins() if begins else {}
        return found

    @property
    def degree_means(self) -> list[str]:
        """Parameters that are the mean of the logarithms of degrees (layers/pna.py)."""
        return [name for name in self.shapes() if name.endswith(".mean_log_degree")]

    @property
    def counts_rows(self) -> bool:
        """Whether layers normalise columns, by statistics of many rows."""
        return any(name.endswith("variance") for block in self.blocks for name in block.shapes())

    def input_parameters(self) -> int:
        """How many numbers the features are multiplied by: the first ones."""
        shapes, first = self.shapes(), self.blocks[0]
        return sum(shapes[name][0] * shapes[name][1] for name in first.meets_input)

    def forward(self, engine: Engine, X: Features | Rows, draws: "Draws | None") -> Rows:
        """Scores [n_own, classes] before softmax; the caller frees them or gives them to `backward`.

        X       features, or rows in their place, by which `backward` then makes a gradient; these are freed
                where nothing is kept
        draws   dropout of a training pass, which keeps what backward needs; None: nothing is dropped or kept
        Ranks   all call
        """
        if not isinstance(X, Rows):
            X.begin(draws and draws.of_input(engine))
        engine.way = FORWARD if draws else ""
        H = self._inner(engine, X, draws)
        engine.layer = len(self.blocks) - 1
        Z = self.blocks[-1].forward(engine, H, None, draws is not None)
        if draws is None:
            self._release(engine, Z)
        return Z

    def _inner(self, engine: Engine, X: Features | Rows, draws: "Draws | None") -> Rows | Features:
        """What the layers but the last make of the features. Ranks: all call."""
        H: Rows | Features = X
        held = []
        for number, block in enumerate(self.blocks[:-1], start=1):
            engine.layer = number - 1
            drop = draws.after_layer(engine, number) if draws else None
            initial, holds = self._initial if number == 1 else None, self._holds(block, H)
            H = block.forward(engine, H, None if initial else drop, draws is not None, holds)
            if initial:
                H = initial.hold(engine, H, drop)
            held.append(H)
        if self.jump:
            self.jump.held = held
            H = self.jump.join(engine, draws is not None)
        return H

    def _release(self, engine: Engine, given: Rows) -> None:
        """Free what the first layer gave, where layers besides the next one read it, and no readout has
        it.
        """
        if self._initial and not self._reads_all:
            self._initial.release(engine, given)

    def _holds(self, block: Block, H: Rows | Features) -> bool:
        """Whether the readout, or the last layer, reads what a layer gives besides; a readout of all holds H,
        which the layer reads."""
        if not self._reads_all:
            return self.jump is not None
        readout = self.blocks[-1].convolution
        readout.held = [] if block is self.blocks[0] else [*readout.held, H]
        return True

    def embed(self, engine: Engine, X: Features) -> Rows | Features:
        """What the last layer reads, nothing dropped; of one layer the features; of whole graphs what their
        readout is of. Ranks: all call."""
        X.begin(None)
        engine.way = ""
        H = self._inner(engine, X, None)
        self._release(engine, H)
        readout = self.blocks[-1].convolution
        return readout.embed(engine, H) if self.case.level == "graph" else H

    def backward(self, engine: Engine, D: Rows) -> Rows | None:
        """Gradients of all parameters from D by the scores, which is freed; that by the input where it is
        rows, else None. Ranks: all call."""
        engine.way = BACKWARD
        for number, block in reversed(list(enumerate(self.blocks))):
            engine.layer = number
            D = block.backward(engine, D)
            if self._reads_all and 0 < number < len(self.blocks) - 1:
                self.blocks[-1].convolution.add_back(engine, D, number - 1)
            if self.jump and number:
                D = self._jump_back(engine, D, number)
            if number == 1 and self._initial:
                self._initial.add_back(engine, D)
        return D

    def _jump_back(self, engine: Engine, D: Rows, number: int) -> Rows:
        """The gradient by what the layer before block `number` gives, from that by the block's input."""
        if number < len(self.blocks) - 1:
            return self.jump.part(engine, number - 1, D)
        self.jump.begin_back(engine, D)
        return self.jump.part(engine, number - 1, None)


class Draws:
    """Dropout of one epoch: a function of (seed, layer, epoch) and, for each entry, of node and column.

    cells   [layers] uint64 on a GPU that hold `keys`, of an epoch whose launches may be replayed; or None
    """

    def __init__(self, case: GnnCase, seed: int, epoch: int, cells: Array | None = None) -> None:
        self.case, self.seed, self.epoch, self.cells = case, seed, epoch, cells

    def keys(self, count: int) -> list[int]:
        """The keys of the features and of the first layers, together `count`."""
        return [self._key(number) for number in range(count)]

    def _key(self, number: int) -> int:
        return key_of(self.seed, f"dropout/{number}", self.epoch)

    def of_input(self, engine: Engine) -> Dropout | None:
        """Of the features."""
        return self._draw(self.case.input_dropout, 0, engine)

    def after_layer(self, engine: Engine, number: int) -> Dropout | None:
        """Of what layer `number`, from 1, gives to the next."""
        return self._draw(self.case.dropout, number, engine)

    def _draw(self, share: float, number: int, engine: Engine) -> Dropout | None:
        if not share:
            return None
        cell = None if self.cells is None else self.cells[number : number + 1]
        return Dropout(self._key(number), share, engine.first_row, cell)


def _shared_initial(blocks: list[Block]) -> Initial | None:
    """What the first layer gives, where later layers read it too: one for all of them. Raises CaseError."""
    readers = [block for block in blocks if hasattr(block.convolution, "initial")]
    if not readers:
        return None
    if readers[0] is blocks[0]:
        raise CaseError(
            f"gnn.layers: {DEEP} reads what the first layer gives; dense would be right before it"
        )
    width, initial = blocks[0].f_out, Initial()
    for block in readers:
        if block is blocks[-1] and block.f_out != width:
            said = "keeps the first layer's width; dense would be right after it"
            raise CaseError(f"gnn.layers: {DEEP} {said}")
        if (block.f_in, block.f_out) != (width, width):
            found = f"{block.f_out} columns from {block.f_in}"
            raise CaseError(f"gnn.layers: {DEEP} makes {found}; the first layer's {width} would be right")
        block.convolution.initial = initial
    return initial


def _refuse_jump(case: GnnCase, specs: list[LayerSpec]) -> None:
    """Refuse to join layers where others do. Raises CaseError."""
    if any(spec.kind == DEEP for spec in specs):
        raise CaseError(f'{JUMP}: {DEEP} reads the first layer in each of its own; "" would be right')
    if case.level == "graph" and (case.readout_of == "all" or case.jump == "concat"):
        right = 'gnn.readout_of = "all" alone, or "max" with readout_of = "last", would be right'
        raise CaseError(f"{JUMP}: a readout of all layers joins them; {right}")


def rows_apart(case: GnnCase, classes: int) -> list[bool]:
    """By layer whether rows are worked on one by one (gnn/reach.py)."""
    return [block.row_by_row for block in Model(case, 1, classes).blocks]


def case_reads_edges(case: GnnCase) -> bool:
    """Whether a layer of a case reads the features of edges."""
    return bool(edge_reader(case))


def edge_reader(case: GnnCase) -> str:
    """The kind of the first layer of a case that reads the features of edges; "" without any."""
    kinds = [text.split()[0] for text in case.layers if text.split()] or [case.model]
    return next(filter(reads_edges, kinds), "")


def case_reads_loops(case: GnnCase) -> bool:
    """Whether a layer of a case reads features of an edge from every node to itself."""
    kinds = [text.split()[0] for text in case.layers if text.split()] or [case.model]
    return any(getattr(LAYERS.get(kind), "reads_loops", False) for kind in kinds)


def check_layers(case: GnnCase, edges: bool = False) -> None:
    """Refuse layers that are wrong whatever the data, and keys that none of them reads. Raises CaseError.

    edges   whether graph.edge_features names some
    """
    if case.level == "link" and case_reads_edges(case):
        said = "holds edges out, and these layers read features of edges"
        raise CaseError(f'gnn.level: "link" {said}; gin would be right')
    check_positions(case)
    last = parse_layer(case.layers[-1]).width if case.layers and case.level != "graph" else 0
    Model(structs.replace(case, jump="") if case.weights else case, 1, last or 1)
    if not case.weights:  # which bring their layers
        kinds = [spec.kind for spec in layer_specs(case, last)]
        _refuse_unread(case, kinds[:-1] if case.level == "graph" else kinds)
        _refuse_unread_edges(case, edges)


def check_positions(case: GnnCase) -> None:
    """Refuse positions that there are none of, and a limit of work that nothing is done for. Raises
    CaseError."""
    walks = any(each.kind == "walks" for each in parse_positions(case.positions))
    if not (walks or case.weights) and case.position_work != GnnCase().position_work:
        raise CaseError(
            'gnn.position_work: is read by walks alone; leave it out, or gnn.positions = ["walks=K"]'
        )


def check_only_model(case: GnnCase) -> None:
    """Refuse keys of [gnn] beside a relational network, which reads [rgcn]. Raises CaseError."""
    for key in GnnCase.__struct_fields__:
        if key != "model" and getattr(case, key) != getattr(GnnCase(), key):
            instead = f", or rgcn.{key} would be right" if key in RgcnCase.__struct_fields__ else ""
            raise CaseError(f'gnn.{key}: is not read by gnn.model = "rgcn"; leave it out{instead}')


def _refuse_unread(case: GnnCase, kinds: list[str]) -> None:
    """Refuse keys that no layer reads. At its default, as in a written case, a key asks for nothing."""
    asked = {key for key in GnnCase.__struct_fields__ if getattr(case, key) != getattr(GnnCase(), key)}
    for key in ("readout", "readout_of"):
        if case.level != "graph" and key in asked:
            raise CaseError(f'gnn.{key}: is read by gnn.level = "graph" alone; leave it out')
    for key in ("model", "depth", "hidden", "residual", "layer_norm", "batch_norm", "heads"):
        if case.layers and key in asked and (key, case.level) != ("hidden", "edge"):
            raise CaseError(
                f"gnn.{key}: is not read beside gnn.layers, which says it of each layer; leave it out"
            )
    for key in ("hidden", "residual", "layer_norm", "batch_norm", "heads", "dropout"):
        only_last = case.level != "graph" and case.depth == 1 and case.model not in BETWEEN
        if only_last and not case.layers and key in asked and (key, case.level) != ("hidden", "edge"):
            only = "the last layer, the only one of gnn.depth = 1"
            raise CaseError(f"gnn.{key}: is not read by {only}; leave it out")
    for key in ("heads", "normalisation", "own_loops", "edge_weights", "first_product"):
        readers = kinds[:1] if key == "first_product" else kinds
        if key in asked and all(leaves(kind, key) for kind in readers):
            found = " and ".join(sorted(set(readers)))
            others = ", ".join(kind for kind in sorted(LAYERS) if not leaves(kind, key))
            raise CaseError(f"gnn.{key}: is not read by {found}; leave it out, or {others} would be right")
    if case.first_product == "mg_gcn" and kinds[0] != "gcn":
        raise CaseError(
            f'gnn.first_product: "mg_gcn" is a shortcut of gcn, not of {kinds[0]}; "live" would be right'
        )
    for key in ("alpha", "theta", "hops", "attention_share"):
        if key in asked and not any(reads(kind, key) for kind in kinds):
            found = " and ".join(sorted(set(kinds)))
            others = " or ".join(kind for kind in sorted(LAYERS) if reads(kind, key))
            raise CaseError(f"gnn.{key}: is not read by {found}; leave it out, or {others} would be right")
    check_inner_decay(case)
    for text, kind in zip(case.layers, kinds):
        if parse_layer(text).heads > 1 and leaves(kind, "heads"):
            raise CaseError(f"gnn.layers: {text!r}: heads is not read by {kind}; leave it out")
    last = parse_layer(case.layers[-1]) if case.level != "graph" and case.layers else LayerSpec("")
    for norm in ("layer_norm", "batch_norm"):
        if getattr(last, norm):
            text = case.layers[-1]
            raise CaseError(f"gnn.layers: {text!r}: {norm} is not read by the last layer; leave it out")


def check_inner_decay(case: GnnCase) -> None:
    """Refuse gnn.inner_decay where no layer is between the first and the last one. Raises CaseError."""
    if case.inner_decay and len(layer_specs(case, 0)) < 3:
        said = "is not read without layers between the first and the last one; leave it out"
        raise CaseError(f"gnn.inner_decay: {said}")


def _refuse_unread_edges(case: GnnCase, edges: bool) -> None:
    """Refuse features of edges, and what they are to be read as, where no layer reads them."""
    asked = ["graph.edge_features"] * edges
    asked += ["gnn.edge_feature_rows"] * (case.edge_feature_rows != GnnCase().edge_feature_rows)
    if asked and not case_reads_edges(case) and case.level != "edge":
        found = " and ".join(sorted({text.split()[0] for text in case.layers} or {case.model}))
        others = ", ".join(kind for kind in sorted(LAYERS) if reads_edges(kind))
        raise CaseError(f"{asked[0]}: is not read by {found}; leave it out, or {others} would be right")


def _refuse_size(shapes: Shapes) -> None:
    """Refuse more weights than a weights.npz holds, before any is made. Raises CaseError."""
    count = sum(rows * columns for rows, columns in shapes.values())
    if count > MOST_WEIGHTS:
        raise CaseError(f"gnn: a model of {count} weights; at most {MOST_WEIGHTS} would be right")


def layer_specs(case: GnnCase, classes: int) -> list[LayerSpec]:
    """The layers that a case asks for, the last one linear and `classes` wide.

    Without gnn.layers: gnn.depth layers of gnn.model, gnn.hidden columns between them, with gnn.residual and
    gnn.layer_norm or gnn.batch_norm in all of them but the last; `_specs_of` says which are dense. Of whole
    graphs (gnn.level) the last one is a readout, after all of these. Raises CaseError.
    """
    specs, whole = [parse_layer(text) for text in case.layers], case.level == "graph"
    if not specs:
        if case.layer_norm and case.batch_norm:
            raise CaseError("gnn.batch_norm: beside gnn.layer_norm; one of them would be right")
        inner = LayerSpec(
            case.model, case.hidden, case.residual, case.layer_norm, False, case.heads, case.batch_norm
        )
        specs = _specs_of(case, inner, whole)
    if whole:
        specs.append(LayerSpec(readout_kind(case.readout)))
    *inner, last = specs
    for spec, text in zip(inner, case.layers):
        if not spec.width:
            need = "all layers need one" if whole else "all layers but the last need one"
            raise CaseError(f"gnn.layers: {text!r}: no width; {need}")
    if last.width not in (0, classes):
        found = {
            "link": f"links.dimension is {classes}",
            "embed": f"embed.dimension is {classes}",
            "edge": f"of edges it gives {classes} columns, 3 times gnn.hidden",
        }.get(case.level, f"the data have {classes} classes")  # fmt: skip
        raise CaseError(f"gnn.layers: {case.layers[-1]!r}: {found}; leave the width out")
    return [*inner, LayerSpec(last.kind, classes, last.residual, linear=True, heads=last.heads)]


def _specs_of(case: GnnCase, inner: LayerSpec, whole: bool) -> list[LayerSpec]:
    """Layers of one model: of gcn2 and of attention to all nodes between dense ones; of those that propagate
    once dense but the last one, which is told by many others, or, of sgc, but the first one, whose products
    are then made once.

    whole   a readout follows, so that the last layer is as the others
    """
    last, dense = inner if whole else LayerSpec(case.model), replace(inner, kind="dense")
    if case.model in BETWEEN:
        ends = [replace(dense, residual=False, heads=1), LayerSpec("dense")]
        return [ends[0], *[inner] * case.depth, *ends[1 : 1 + (not whole)]]
    inner = dense if reads(case.model, "hops") else inner
    specs = [inner] * (case.depth - 1) + [last]
    if case.model == "sgc":
        specs = [replace(each, kind="dense") for each in specs]
        specs[0] = replace(specs[0], kind="sgc")
    return specs
