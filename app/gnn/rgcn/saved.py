"""A trained R-GCN on disk: its layers, what graph it belongs to, its weights."""

from dataclasses import dataclass

import msgspec
import numpy as np
from msgspec import structs

from app.comm.guard import digest
from app.config import RgcnCase
from app.errors import GraphError
from app.gnn.archive import load_archive, refusing, save_archive
from app.gnn.rgcn.shards import Whole
from app.graphs.triples.relational import RelationalGraph

ARCHITECTURE = ("hidden", "layers", "bases", "inverse", "min_edges", "prune")


@dataclass(frozen=True)
class SavedRgcn:
    """A network read back, or about to be written.

    case       its architecture (other keys of [rgcn] play no part)
    features   columns of its input, 0: one-hot
    classes    columns of its output
    edges      of one-hot inputs: the digest of the edges and labelled nodes that its rows belong to, else ""
    arrays     weights by name
    """

    case: RgcnCase
    features: int
    classes: int
    edges: str
    arrays: dict[str, np.ndarray]

    def architecture_of(self, given: RgcnCase) -> RgcnCase:
        """The given table with the architecture of this network."""
        return structs.replace(given, **{key: getattr(self.case, key) for key in ARCHITECTURE})

    def check_fits(self, path: str, features: int, classes: int, edges: str) -> None:
        """Refuse another graph, other features or other classes. Raises GraphError."""
        for what, mine, theirs in (("features", self.features, features), ("classes", self.classes, classes)):
            if mine != theirs:
                raise GraphError(f"{path}: for nodes with {mine} {what}; these have {theirs}")
        if self.edges and self.edges != edges:
            raise GraphError(
                f"{path}: has rows for the nodes of another graph; the one it learned would be right"
            )

    def put(self, path: str, whole: dict[str, Whole]) -> None:
        """Take its arrays as weights. Raises GraphError where they are not those of the network."""
        if {name: each.shape for name, each in whole.items()} != {
            name: array.shape for name, array in self.arrays.items()
        }:
            raise GraphError(f"{path}: its arrays are not those of a network for this graph")
        for name, each in whole.items():
            each.set(self.arrays[name])


def edges_digest(graph: RelationalGraph, wanted: np.ndarray) -> str:
    """What rows of one-hot weights belong to: edges, and nodes whose outputs are read."""
    columns = {"target": graph.target, "relation": graph.relation, "source": graph.source, "wanted": wanted}
    return digest(columns)


def save_rgcn(path: str, saved: SavedRgcn, note: str) -> str:
    """Write weights.npz atomically; returns the digest of the weights. Rank 0 only."""
    about = {
        "rgcn": {key: getattr(saved.case, key) for key in ARCHITECTURE},
        "features": saved.features,
        "classes": saved.classes,
        "edges": saved.edges,
        "note": note,
    }
    return save_archive(path, saved.arrays, "rgcn", about)


def load_rgcn(path: str) -> SavedRgcn:
    """Read and verify weights.npz. Raises GraphError, one line, for anything that is not one."""
    arrays, manifest = load_archive(path, "rgcn")
    with refusing(path):
        if set(manifest["rgcn"]) != set(ARCHITECTURE):
            raise GraphError(f"{path}: describes a network that this Lockstep does not know")
        case = msgspec.convert(manifest["rgcn"], RgcnCase)
        features, classes = (msgspec.convert(manifest[key], int) for key in ("features", "classes"))
        edges = msgspec.convert(manifest["edges"], str)
    return SavedRgcn(case, features, classes, edges, arrays)
