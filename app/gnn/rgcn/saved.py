"""A trained R-GCN on disk: its layers, what graph it belongs to, its weights."""

from dataclasses import dataclass, field, replace

import msgspec
import numpy as np
from msgspec import structs

from app.case.rgcn import RgcnCase, bases_of
from app.comm.guard import digest
from app.errors import GraphError
from app.gnn.archive import load_archive, refusing, save_archive
from app.gnn.rgcn.shards import Whole
from app.graphs.formats.source import shown
from app.graphs.triples.data import NodeLabels, Triples
from app.graphs.triples.relational import RelationalGraph

ARCHITECTURE = ("hidden", "layers", "bases", "blocks", "inverse", "min_edges", "prune", "scorer", "loops")
OLDER = {
    "scorer": "distmult",
    "blocks": 0,
    "loops": False,
}  # what files do not tell that are older than the key


@dataclass(frozen=True)
class SavedRgcn:
    """A network read back, or about to be written.

    case       its architecture (other keys of [rgcn] play no part)
    features   columns of its input, 0: one-hot
    classes    columns of its output
    edges      of one-hot inputs: the digest of the edges and labelled nodes that its rows belong to, else ""
    arrays     weights by name
    relation_names, class_names   in the order of its weights; empty where they are numbers
    """

    case: RgcnCase
    features: int
    classes: int
    edges: str
    arrays: dict[str, np.ndarray]
    relation_names: list[str] = field(default_factory=list)
    class_names: list[str] = field(default_factory=list)

    def renumber(self, path: str, triples: Triples, labels: NodeLabels) -> tuple[Triples, NodeLabels, int]:
        """Triples and labels with relations and classes numbered as here, by name; what has none stays.

        Labels of which none is known take the classes of here.
        returns   also how many triples are of relations that it does not know, which are left out
        Raises GraphError.
        """
        unknown = 0
        if self.relation_names and triples.relation_names:
            number = {name: i for i, name in enumerate(self.relation_names)}
            new = np.array([number.get(name, -1) for name in triples.relation_names], dtype=np.int32)
            triples, unknown = _renumbered(path, triples, new, self.relation_names)
        elif self.features and not self.case.min_edges:
            triples = self._numbered(path, triples)
        if not labels.classes:
            labels = replace(labels, classes=self.classes, class_names=self.class_names)
        elif labels.class_names:
            number = {name: i for i, name in enumerate(self.called)}
            other = next((name for name in labels.class_names if name not in number), None)
            if other is not None:
                raise GraphError(
                    f"{path}: for classes {_few(self.called)}; these have {shown(other)!r} besides"
                )
            new = np.array([*(number[name] for name in labels.class_names), -1], dtype=np.int32)
            train, test, val = (
                new[each] for each in (labels.train_label, labels.test_label, labels.val_label)
            )
            labels = NodeLabels(
                self.classes, labels.train_idx, train, labels.test_idx, test, self.class_names,
                labels.val_idx, val,
            )  # fmt: skip
        return triples, labels, unknown

    def _numbered(self, path: str, triples: Triples) -> Triples:
        """Triples of as many relations as it has learned, where they are numbers. Raises GraphError."""
        name = "first/a" if bases_of(self.case) else "first/W"
        known = len(self.arrays.get(name, ())) // (2 if self.case.inverse else 1)
        if triples.relations > known:
            raise GraphError(f"{path}: for {known} relations; these triples have {triples.relations}")
        return replace(triples, relations=known)

    @property
    def called(self) -> list[str]:
        """The names of its classes; their numbers where they have none."""
        return self.class_names or [str(i) for i in range(self.classes)]

    def architecture_of(self, given: RgcnCase) -> RgcnCase:
        """The given table with the architecture of this network."""
        return structs.replace(given, **{key: getattr(self.case, key) for key in ARCHITECTURE})

    def least_edges(self, triples: Triples) -> int:
        """Of a relation; those that it knows by name all count, however few they have here."""
        return 0 if self.relation_names and triples.relation_names else self.case.min_edges

    def refuse_links(self, path: str) -> None:
        """Refuse a network that predicts links. Raises GraphError."""
        if not self.classes:
            raise GraphError(f"{path}: of a network that predicts links; one for classes would be right")

    def check_fits(self, path: str, features: int, classes: int, edges: str) -> None:
        """Refuse another graph, other features or other classes. Raises GraphError."""
        for what, mine, theirs in (("features", self.features, features), ("classes", self.classes, classes)):
            if mine != theirs:
                raise GraphError(f"{path}: for nodes with {mine} {what}; these have {theirs}")
        if self.edges and self.edges != edges:
            raise GraphError(
                f"{path}: has rows for the nodes of another graph, or of another choice of nodes with labels"
                " or in sets; what it learned from, in the same order, would be right"
            )

    def put(self, path: str, whole: dict[str, Whole]) -> None:
        """Take its arrays as weights. Raises GraphError where they are not those of the network."""
        if {name: each.shape for name, each in whole.items()} != {
            name: array.shape for name, array in self.arrays.items()
        }:
            raise GraphError(f"{path}: its arrays are not those of a network for this graph")
        for name, each in whole.items():
            each.set(self.arrays[name])


def _renumbered(path: str, triples: Triples, new: np.ndarray, names: list[str]) -> tuple[Triples, int]:
    """The triples whose relation has a number in `new`, and how many have none."""
    known = new[triples.relation] >= 0
    if not known.any():
        raise GraphError(f"{path}: for relations {_few(names)}; these triples have none of them")
    relation = new[triples.relation[known]]
    sets = triples.sets[known] if len(triples.sets) else triples.sets
    chosen = replace(
        triples, relations=len(names), relation_names=names, relation=relation, sets=sets,
        subject=triples.subject[known], object=triples.object[known],
    )  # fmt: skip
    return chosen, int((~known).sum())


def _few(names: list[str]) -> str:
    return ", ".join([shown(repr(name)) for name in names[:4]] + ["..."] * (len(names) > 4))


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
        "relation_names": saved.relation_names,
        "class_names": saved.class_names,
        "note": note,
    }
    return save_archive(path, saved.arrays, "rgcn", about)


def load_rgcn(path: str) -> SavedRgcn:
    """Read and verify weights.npz. Raises GraphError, one line, for anything that is not one."""
    arrays, manifest = load_archive(path, "rgcn")
    with refusing(path):
        told = OLDER | manifest["rgcn"]
        if set(told) != set(ARCHITECTURE):
            raise GraphError(f"{path}: describes a network that this Lockstep does not know")
        case = msgspec.convert(told, RgcnCase)
        features, classes = (msgspec.convert(manifest[key], int) for key in ("features", "classes"))
        edges = msgspec.convert(manifest["edges"], str)
        names = [
            msgspec.convert(manifest.get(key, []), list[str]) for key in ("relation_names", "class_names")
        ]
        distinct = all(len(set(each)) == len(each) for each in names)
        if not distinct or len(names[1]) not in (0, classes):
            raise GraphError(f"{path}: its names are not those of a network")
    return SavedRgcn(case, features, classes, edges, arrays, *names)
