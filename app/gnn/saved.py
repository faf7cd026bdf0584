"""A trained graph network on disk: its layers, its sizes, its weights."""

from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np
from msgspec import structs

from app.case.gnn import GnnCase
from app.case.links import LinksCase
from app.errors import GraphError
from app.gnn.archive import arrays_of, load_archive, members_of, refusing, save_archive
from app.gnn.categories import Categories
from app.gnn.edges import EdgeColumns
from app.gnn.goals import Goal, goal_of
from app.gnn.known import Known
from app.gnn.model import Model, case_reads_edges
from app.gnn.positions import width_of
from app.gnn.scale import Scale
from app.graphs.edge_data import EdgeData
from app.graphs.formats.source import shown
from app.graphs.nodes.data import NodeData

ARCHITECTURE = (
    "model", "depth", "hidden", "layers", "residual", "layer_norm", "batch_norm", "heads", "alpha", "theta",
    "hops", "members",
    "bias", "normalisation", "own_loops", "edge_weights", "feature_rows", "missing_features", "positions",
    "edge_feature_rows", "goal",
    "level", "readout", "readout_of", "jump", "attention_share",
)  # fmt: skip
LATER = {
    "missing_features",
    "positions",
    "alpha",
    "theta",
    "hops",
    "members",
    "batch_norm",
    "own_loops",
    "edge_feature_rows",
    "goal",
    "level",
    "readout",
    "readout_of",
    "jump",
    "attention_share",
}  # keys that older files lack: they mean the default


LINKS = ("loss", "between")  # of [links], what scores of pairs mean


@dataclass(frozen=True)
class SavedModel:
    """A model read back, or about to be written.

    case        its architecture (other keys of [gnn] play no part)
    features    columns of its input, of categories one for each
    class_ids   [classes] the data's own numbers of its classes
    arrays      weights by name
    neighbours  graph.neighbours of the graph that it has learned on, "both" where that was undirected
    scale       of the numbers that it predicts; None: it predicts classes
    inputs      of the features that it reads, or their categories; None: they are read as they are
    class_names [classes] what the data call the classes, ascending; empty: by their numbers
    edges       columns of the features of edges; None: no layer reads any
    links       of a network that scores pairs, how it has learned to (LINKS); None: of others, of older files
    others      weights by name of the other members (gnn.members)
    means       [features] of columns of which entries may be missing (gnn/missing.py); None: none may be
    positions   the scale of those that stand beside features (gnn/positions.py); None: there are none
    """

    case: GnnCase
    features: int
    class_ids: np.ndarray
    multilabel: bool
    arrays: dict[str, np.ndarray]
    neighbours: str = "both"
    scale: Scale | None = None
    inputs: Scale | Categories | None = None
    class_names: tuple[str, ...] = ()
    edges: EdgeColumns | None = None
    links: LinksCase | None = None
    others: tuple[dict[str, np.ndarray], ...] = ()
    means: np.ndarray | None = None
    positions: Scale | None = None

    @property
    def members(self) -> tuple[dict[str, np.ndarray], ...]:
        """The weights of all."""
        return (self.arrays, *self.others)

    @property
    def goal(self) -> Goal:
        """What its scores mean."""
        return goal_of(self.multilabel, self.scale)

    @property
    def known(self) -> Known:
        """What it brings to a network that it is applied in."""
        return Known(self.classes, self.goal, self.inputs, self.edges, self.positions)

    @property
    def columns(self) -> int:
        """Columns of the features that it is given."""
        return len(self.inputs.values) if isinstance(self.inputs, Categories) else self.categories

    @property
    def categories(self) -> int:
        """Columns of its input that features become, without positions."""
        return self.features - (0 if self.positions is None else len(self.positions.mean))

    @property
    def classes(self) -> int:
        """Columns of its output."""
        return len(self.class_ids)

    def architecture_of(self, given: GnnCase) -> GnnCase:
        """The given table with the architecture of this model."""
        return structs.replace(given, **{key: getattr(self.case, key) for key in ARCHITECTURE})

    def relabel(self, path: str, data: NodeData) -> NodeData:
        """Node data with labels numbered as in this model; refuses labels that it does not know."""
        if not data.classes:
            return replace(data, class_ids=self.class_ids, class_names=self.class_names)
        values, several = self.scale is not None, self.multilabel or self.scale is not None
        kinds = data.multilabel, data.values
        if kinds != (self.multilabel, values) or (several and data.classes != self.classes):
            raise GraphError(f"{path}: for {self._labels()}; the labels of these data are of another kind")
        if several:
            return data
        if bool(self.class_names) != bool(data.class_names):
            has, have = ("names", "numbers") if self.class_names else ("numbers", "names")
            raise GraphError(f"{path}: knows classes by {has}, these data by {have}; the same would be right")
        known, found = (np.array(x.class_names or x.class_ids) for x in (self, data))
        at = np.minimum(np.searchsorted(known, found), self.classes - 1)
        unknown = found[known[at] != found]
        if len(unknown):
            other = shown(str(unknown[0]))
            raise GraphError(f"{path}: for {self._labels()}; these data have class {other} besides")
        labels = np.where(data.labels >= 0, at[data.labels], -1).astype(np.int32)
        return replace(
            data, labels=labels, classes=self.classes, class_ids=self.class_ids, class_names=self.class_names
        )

    def _labels(self) -> str:
        return f"{self.classes} {self.goal.kind}"


def save_model(path: str, saved: SavedModel, note: str) -> str:
    """Write weights.npz atomically; returns the digest of the weights. Rank 0 only."""
    about = {
        "gnn": {key: getattr(saved.case, key) for key in ARCHITECTURE},
        "features": saved.features,
        "class_ids": saved.class_ids.tolist(),
        "multilabel": saved.multilabel,
        "neighbours": saved.neighbours,
        "note": note,
    }
    if saved.scale is not None:
        about["scale"] = saved.scale.told()
    if saved.class_names:
        about["class_names"] = list(saved.class_names)
    if saved.inputs is not None:
        about["inputs"] = saved.inputs.told()
    if saved.edges is not None:
        about["edges"] = saved.edges.told()
    if saved.means is not None:
        about["means"] = saved.means.tolist()
    if saved.positions is not None:
        about["positions"] = saved.positions.told()
    if saved.links is not None:
        about["links"] = {key: getattr(saved.links, key) for key in LINKS}
    return save_archive(path, arrays_of(saved.members), "gnn", about)


def load_model(path: str) -> SavedModel:
    """Read and verify weights.npz. Raises GraphError, one line, for anything that is not one."""
    arrays, manifest = load_archive(path, "gnn")
    with refusing(path):
        if set(manifest["gnn"]) | LATER != set(ARCHITECTURE):
            raise GraphError(f"{path}: describes a model that this Lockstep does not know")
        case = msgspec.convert(manifest["gnn"], GnnCase)
        class_ids = np.array(msgspec.convert(manifest["class_ids"], list[int]), dtype=np.int64)
        if not len(class_ids) or (np.diff(class_ids) <= 0).any():
            raise GraphError(f"{path}: its classes are not numbers in ascending order")
        names = tuple(msgspec.convert(manifest.get("class_names", []), list[str]))
        if names and (len(names) != len(class_ids) or list(names) != sorted(set(names))):
            raise GraphError(f"{path}: the names of its classes are not one for each, in ascending order")
        features = msgspec.convert(manifest["features"], int)
        heard = msgspec.convert(manifest.get("neighbours", "both"), str)
        scale = _scale(path, manifest["scale"], len(class_ids)) if case.goal == "values" else None
        positions = _scale(path, manifest["positions"], width_of(case.positions)) if case.positions else None
        given = features - width_of(case.positions)
        inputs = _inputs(path, manifest, case.feature_rows, given)
        several = bool(manifest["multilabel"])
        if several and scale is not None:
            raise GraphError(f"{path}: says that it predicts both numbers and labels")
        edges, links = _edges(manifest, case), _links(manifest, case, len(class_ids))
        known = heard, scale, inputs, names, edges, links
        first, *others = members_of(arrays, case.members)
        means = _means(path, manifest, case, given)
        rest = tuple(others), means, positions
        found = SavedModel(case, features, class_ids, several, first, *known, *rest)
        wanted = Model(case, features, found.classes, edges.width if edges else 0).shapes()
        if any({name: array.shape for name, array in each.items()} != wanted for each in found.members):
            raise GraphError(f"{path}: its arrays are not those of the model that it describes")
    return found


def _inputs(path: str, manifest: dict[str, Any], kind: str, features: int) -> Scale | Categories | None:
    """What the columns of features are read by, as a manifest holds it."""
    if kind == "standard":
        return _scale(path, manifest["inputs"], features)
    if kind != "one_hot":
        return None
    found = Categories.read(manifest["inputs"])
    if found.width != features:
        raise GraphError(f"{path}: its categories are not those of {features} columns")
    return found


def _edges(manifest: dict[str, Any], case: GnnCase) -> EdgeColumns | None:
    """The columns of edge features, where layers or a head read them, as a manifest holds them."""
    reads = case_reads_edges(case) or (case.level == "edge" and "edges" in manifest)
    return EdgeColumns.read(manifest["edges"], case.edge_feature_rows) if reads else None


def _means(path: str, manifest: dict[str, Any], case: GnnCase, features: int) -> np.ndarray | None:
    """Means of columns whose entries may be missing, as a manifest holds them."""
    if case.missing_features == "refuse":
        return None
    means = np.array(msgspec.convert(manifest["means"], list[float]))
    if len(means) != features or not (np.abs(means) <= np.finfo(np.float32).max).all():
        raise GraphError(f"{path}: its means are not those of {features} columns")
    return means


def _links(manifest: dict[str, Any], case: GnnCase, columns: int) -> LinksCase | None:
    """How a network that scores pairs has learned to, as a manifest holds it; None where it does not."""
    if case.level != "link" or "links" not in manifest:
        return None
    told = msgspec.convert(manifest["links"], dict[str, str])
    if sorted(told) != sorted(LINKS):
        raise ValueError("other keys of links")
    return msgspec.convert({**told, "dimension": columns}, LinksCase)


def _scale(path: str, saved: object, columns: int) -> Scale:
    """The scale of so many columns that a manifest holds."""
    scale = Scale.read(saved)
    if len(scale.mean) != columns:
        raise GraphError(f"{path}: its scale is not that of {columns} columns")
    return scale


def check_fits(path: str, saved: SavedModel, features: int) -> None:
    """Refuse weights for features of another width, as given. Raises GraphError."""
    if saved.columns != features:
        raise GraphError(f"{path}: for nodes with {saved.columns} features; these have {features}")


def check_known(path: str, saved: SavedModel, X: object) -> None:
    """Refuse features of which some are missing, where weights have not learned with such. Raises
    GraphError."""
    lacking = saved.means is None and isinstance(X, np.ndarray) and np.argwhere(np.isnan(X))
    if lacking is not False and len(lacking):
        found = f"features of these nodes are missing (column {lacking[0][1]}, ...)"
        right = 'weights that learned with gnn.missing_features = "mean" or "propagate" would be right'
        raise GraphError(f"{path}: {found}; {right}")


def check_edges(path: str, saved: SavedModel, edges: EdgeData | None) -> None:
    """Refuse weights for edge features of another width, or for none that are there. Raises GraphError."""
    if saved.edges is not None and edges is not None and saved.edges.given != edges.width:
        raise GraphError(f"{path}: for edges with {saved.edges.given} features; these have {edges.width}")
