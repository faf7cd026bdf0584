"""CostModel: seconds of a layer as a linear function of vertex features, learned while the ranks work.

ROC (Jia et al. 2020), section 4.1, equations 4-7: the time of layer l on the rows of a rank is
t(l, G) = sum_i w_i(l) x_i(G), where x_i(G) sums feature i over the rows; w minimises the mean squared error
over all measurements, of which every epoch gives one for each rank and layer.

Three things are added. Few ranks with few cuts do not determine five weights, so the regression is ridged,
towards zero and on features scaled to equal size. Weights are not negative, so no row has a negative time on
any graph. Older measurements count less (`keep` an epoch): the first ones include what happens only once.
"""

import json
from dataclasses import dataclass, field
from itertools import combinations

import msgspec
import numpy as np

from app.errors import GraphError
from app.partition.features import FEATURES, BlockFeatures
from app.text import is_plain

FLOATS = ("cost_gram", "cost_moment", "cost_count")
RIDGE = 1e-4  # of the mean square of a feature
KEEP = 0.9  # weight of an epoch's measurements after one more epoch
FORMAT = 2  # 1: without what the layers do
LARGEST_BYTES = 1 << 24  # of a saved model
LARGEST_LAYERS = 1026  # of a saved model: the deepest gcn2 between its ends
LONGEST_KIND = 64  # characters of what a layer does
MOST_SHOWN = 8  # layers in a message


@dataclass(eq=False)
class CostModel:
    """Weights by layer, from sums of products of measurements (the normal equations, float64).

    widths   d_in of each layer, 0: it hears nobody; line  4-byte numbers of a memory access: what the
             features mean
    kinds    what each layer does (gnn/block.py: work), such as "gcn weights"; (): not known
    gram     [layers, 5, 5] sum of x x^T      moment  [layers, 5] sum of x y, y in seconds
    count    measurements of a layer, the older ones worth less
    """

    widths: tuple[int, ...]
    line: int
    gram: np.ndarray = field(default=None)  # type: ignore[assignment]
    moment: np.ndarray = field(default=None)  # type: ignore[assignment]
    count: float = 0.0
    kinds: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        layers = len(self.widths)
        if self.gram is None:
            self.gram = np.zeros((layers, FEATURES, FEATURES))
            self.moment = np.zeros((layers, FEATURES))

    def update(self, features: np.ndarray, seconds: np.ndarray) -> None:
        """Learn from one epoch.

        features   [ranks, layers, 5] of the rows that each rank had
        seconds    [ranks, layers] that each took
        Sums are taken in the order of ranks, so equal tables give equal models.
        """
        self.gram *= KEEP
        self.moment *= KEEP
        self.count *= KEEP
        for x, y in zip(np.asarray(features, dtype=np.float64), np.asarray(seconds, dtype=np.float64)):
            if not x[:, 0].any():
                continue  # a rank without rows measured nothing that depends on rows
            self.gram += x[:, :, None] * x[:, None, :]
            self.moment += x * y[:, None]
            self.count += 1

    def weights(self) -> np.ndarray:
        """[layers, 5] seconds per unit of each feature, none negative."""
        return np.stack([_ridge(G, m, self.count) for G, m in zip(self.gram, self.moment)])

    def block_seconds(self, features: BlockFeatures) -> np.ndarray:
        """[blocks] predicted seconds of all layers for each block of a graph."""
        if features.widths != self.widths or features.line != self.line:
            raise GraphError(
                f"cost model: learned for layers of {self.widths} numbers, {self.line} to an access; "
                f"asked for {features.widths} and {features.line}"
            )
        return np.einsum("blf,lf->b", features.blocks.astype(np.float64), self.weights())

    def text(self) -> str:
        """The model as JSON; numbers are written so that they are read back bit for bit."""
        arrays = {name: array.tolist() for name, array in self.to_arrays().items()}
        return json.dumps({"format": FORMAT, "cost_kinds": self.kinds, **arrays}, indent=1) + "\n"

    def unlike(self, widths: tuple[int, ...], line: int, kinds: tuple[str, ...]) -> str:
        """How the layers that it was learned for differ from others; "" where they do not, or are not known.

        line   4-byte numbers of a memory access where the others work
        """
        mine, other = self._layers(self.kinds), CostModel(widths, line, kinds=kinds)._layers(kinds)
        if self.widths != widths or (self.kinds and kinds and self.kinds != kinds):
            return f"it was learned for layers {mine}; these are {other}"
        if self.line != line:
            return f"it was learned where a memory access brings {self.line} numbers; here it brings {line}"
        return ""

    def _layers(self, kinds: tuple[str, ...]) -> str:
        """Layers for a message: the narrower width of each, and what it does."""
        named = kinds or ("",) * len(self.widths)
        texts = [f"{kind} {width}".strip() for kind, width in zip(named, self.widths)]
        return ", ".join(texts[:MOST_SHOWN]) + (", ..." if len(texts) > MOST_SHOWN else "")

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The model as arrays by name, to be saved beside weights."""
        return {
            "cost_widths": np.array([self.line, *self.widths], dtype=np.int64),
            "cost_gram": self.gram, "cost_moment": self.moment, "cost_count": np.array([self.count]),
        }  # fmt: skip


class _Saved(msgspec.Struct, forbid_unknown_fields=True):
    """The JSON of a saved model."""

    format: int
    cost_widths: list[int]
    cost_gram: list[list[list[float]]]
    cost_moment: list[list[float]]
    cost_count: list[float]
    cost_kinds: list[str] = []


def read_text(path: str) -> str:
    """What a cost_model.json holds. Raises GraphError where it cannot be one."""
    try:
        with open(path, "rb") as file:
            data = file.read(LARGEST_BYTES + 1)
        if len(data) > LARGEST_BYTES:
            raise GraphError(f"{path}: more than {LARGEST_BYTES} bytes; a cost_model.json is small")
        return data.decode()
    except OSError as error:
        raise GraphError(f"{path}: {error.strerror}; a cost_model.json would be right") from None
    except UnicodeDecodeError:
        raise GraphError(f"{path}: not a cost_model.json of Lockstep (no text)") from None


def parse_cost_model(text: str, path: str) -> CostModel:
    """The model of CostModel.text. Raises GraphError, one line that names the file, for any other text."""
    try:
        saved = msgspec.json.decode(text, type=_Saved)
        arrays = {name: np.array(getattr(saved, name), dtype=np.float64) for name in FLOATS}
        arrays["cost_widths"] = np.array(saved.cost_widths, dtype=np.int64)
    except (msgspec.MsgspecError, ValueError, OverflowError) as error:
        raise GraphError(f"{path}: not a cost_model.json of Lockstep ({error})") from None
    if saved.format > FORMAT:
        raise GraphError(f"{path}: written by a newer Lockstep (format {saved.format}, here {FORMAT})")
    return from_arrays(arrays, path, tuple(saved.cost_kinds))


def from_arrays(arrays: dict[str, np.ndarray], where: str, kinds: tuple[str, ...] = ()) -> CostModel:
    """The model of `to_arrays`, checked; `where` names the file in errors. Raises GraphError."""
    try:
        line, *widths = arrays["cost_widths"].tolist()
        gram, moment, count = arrays["cost_gram"], arrays["cost_moment"], arrays["cost_count"]
    except (KeyError, ValueError, TypeError):
        raise GraphError(f"{where}: holds no cost model (arrays cost_widths, cost_gram, ...)") from None
    layers = len(widths)
    if not 1 <= layers <= LARGEST_LAYERS or line < 1 or min(widths) < 0:
        raise GraphError(f"{where}: a cost model of {layers} layers of {widths[:8]} numbers is none")
    shapes = [gram.shape, moment.shape, count.shape]
    wanted = [(layers, FEATURES, FEATURES), (layers, FEATURES), (1,)]
    if shapes != wanted or any(each.dtype != np.float64 for each in (gram, moment, count)):
        raise GraphError(f"{where}: cost model of shapes {shapes} where float64 {wanted} would be right")
    if not all(np.isfinite(each).all() for each in (gram, moment, count)) or count[0] < 0:
        raise GraphError(f"{where}: the cost model holds numbers that are not finite")
    if len(kinds) not in (0, layers) or any(len(each) > LONGEST_KIND or not is_plain(each) for each in kinds):
        raise GraphError(f"{where}: cost_kinds: {layers} short texts, or none, would be right")
    return CostModel(tuple(widths), line, gram.copy(), moment.copy(), float(count[0]), kinds)


def _ridge(G: np.ndarray, m: np.ndarray, count: float) -> np.ndarray:
    """[5] the non-negative w that minimises w^T G w - 2 w^T m + ridge: all sets of positive weights tried.

    Five features have 31 such sets: each is solved exactly, which no iteration has to be trusted for.
    """
    w = np.zeros(FEATURES)
    scale = np.sqrt(np.diag(G))
    used = np.flatnonzero(scale > 0)
    if not count or not len(used):
        return w
    Gs = G[np.ix_(used, used)] / np.outer(scale[used], scale[used]) + RIDGE * np.eye(len(used))
    ms = m[used] / scale[used]
    best, chosen = 0.0, None
    for size in range(1, len(used) + 1):
        for held in combinations(range(len(used)), size):
            part = list(held)
            v = np.linalg.solve(Gs[np.ix_(part, part)], ms[part])
            value = -float(v @ ms[part])
            if v.min() >= 0 and value < best:
                best, chosen = value, (part, v)
    if chosen is not None:
        w[used[chosen[0]]] = chosen[1] / scale[used[chosen[0]]]
    return w
