"""A trained graph network on disk: its layers, its sizes, its weights."""

from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from app.config import GnnCase
from app.errors import GraphError
from app.gnn.archive import load_archive, refusing, save_archive
from app.gnn.model import Model

ARCHITECTURE = (
    "model", "depth", "hidden", "layers", "residual", "layer_norm", "heads", "bias", "normalisation",
    "edge_weights", "feature_rows",
)  # fmt: skip


@dataclass(frozen=True)
class SavedModel:
    """A model read back; extras are arrays that others have saved with it."""

    architecture: dict[str, Any]
    features: int
    classes: int
    multilabel: bool
    arrays: dict[str, np.ndarray]
    digest: str

    def case(self, given: GnnCase) -> GnnCase:
        """The given case with the saved architecture."""
        return msgspec.structs.replace(given, **self.architecture)


def save_model(
    path: str, weights: dict[str, np.ndarray], case: GnnCase, model: Model, multilabel: bool, note: str
) -> str:
    """Write weights.npz atomically; returns the digest of the weights. Rank 0 only."""
    about = {
        "gnn": {key: getattr(case, key) for key in ARCHITECTURE},
        "features": model.f_in,
        "classes": model.classes,
        "multilabel": multilabel,
        "note": note,
    }
    return save_archive(path, weights, "gnn", about)


def load_model(path: str) -> SavedModel:
    """Read and verify weights.npz. Raises GraphError, one line, for anything that is not one."""
    arrays, manifest = load_archive(path, "gnn")
    with refusing(path):
        architecture = manifest["gnn"]
        if not set(architecture) <= set(ARCHITECTURE):
            raise GraphError(f"{path}: describes a model that this Lockstep does not know")
        case = msgspec.convert(architecture, GnnCase)
        chosen = {key: getattr(case, key) for key in architecture}
        sizes = int(manifest["features"]), int(manifest["classes"]), bool(manifest["multilabel"])
        found = SavedModel(chosen, *sizes, arrays, manifest["digest"])
        wanted = Model(case, found.features, found.classes).shapes()
        if {name: array.shape for name, array in arrays.items()} != wanted:
            raise GraphError(f"{path}: its arrays are not those of the model that it describes")
    return found


def check_fits(path: str, saved: SavedModel, features: int, classes: int, multilabel: bool) -> None:
    """Refuse weights for other data. classes   0: the data have no labels. Raises GraphError."""
    if saved.features != features:
        raise GraphError(f"{path}: for nodes with {saved.features} features; these have {features}")
    if classes and (saved.classes, saved.multilabel) != (classes, multilabel):
        kinds = {True: "labels", False: "classes"}
        has = f"{saved.classes} {kinds[saved.multilabel]}"
        raise GraphError(f"{path}: for {has}; these data have {classes} {kinds[multilabel]}")
