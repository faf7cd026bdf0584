"""What a caller of the Python interface hands in: the same on all ranks, and named once."""

import os
from collections.abc import Iterable, Mapping, Sized
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import zip_longest
from numbers import Number
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from msgspec import structs

from app.case.config import Case
from app.case.graph import WORDS
from app.comm.group import Group
from app.comm.guard import digest, raise_together
from app.errors import CaseError, GraphError
from app.graphs.formats.source import shown
from app.graphs.ids import ids_of_names
from app.graphs.nodes.data import NodeTable
from app.graphs.nodes.memory import numbers_of
from app.graphs.stream import EdgeStream
from app.tasks.context import Context
from app.text import is_whole, show

if TYPE_CHECKING:  # networks are loaded by calls that train one
    from app.gnn.rgcn.saved import SavedRgcn
    from app.gnn.saved import SavedModel

Model = TypeVar("Model", "SavedModel", "SavedRgcn")
PLAIN = (str, bytes, Number, type(None))
ORDERED = ("nodes", "edges", "triples", "relations")  # may come of sets
HINT = "a set of texts has another order in each process, sorted() of it the same"
# Keys of [graph] that name data, which a call hands in by arguments, and what is right instead.
DATA_KEYS = {
    "path": "the argument",
    "generator": "a graph as the argument",
    "features": 'the argument features, or "degrees"',
    "labels": "the argument labels",
    "splits": 'the arguments train, val and test, or "random"',
}


def check_given(group: Group, parts: Mapping[str, str]) -> None:
    """Raise GraphError on all ranks unless all were given the same.

    parts    a digest of each part, by what it is called
    Ranks    all call (one Allgather of texts where there are several)
    """
    if group.size == 1:
        return
    texts = group.gather_texts("\n".join(f"{name}\t{text}" for name, text in parts.items()))
    for rank, text in enumerate(texts):
        for first, other in zip_longest(texts[0].split("\n"), text.split("\n"), fillvalue=""):
            if first != other:
                name = (first or other).split("\t")[0]
                said = f"{name}: rank {rank} was given other ones than rank 0; the same on all would be right"
                raise GraphError(said + (f" ({HINT})" if name in ORDERED else ""))


def setting(settings: Any, table: str, key: str) -> Any:
    """What settings from Python say of a key, as {"table.key": ...} or {"table": {"key": ...}}; else None."""
    if not isinstance(settings, Mapping):
        return None
    within = settings.get(table)
    found = within.get(key) if isinstance(within, Mapping) else None
    return settings.get(f"{table}.{key}", found)


LAYERS = ("model", "depth", "hidden", "layers")  # keys of [gnn] that say together what layers there are


@dataclass(frozen=True)
class Begun:
    """Trained weights that a call is given: applied, or trained further where its settings name epochs.

    weights    None, the path of a weights.npz, or what an earlier call returned
    table      "gnn" or "rgcn", which they are of     settings   of the call
    """

    weights: Any
    table: str
    settings: Any

    @property
    def in_memory(self) -> bool:
        """Whether they are in no file."""
        return not (self.weights is None or isinstance(self.weights, str | os.PathLike))

    @property
    def applied(self) -> bool:
        """Whether they are not trained further."""
        return self.weights is not None and not setting(self.settings, self.table, "epochs")

    def keys(self) -> dict[str, Any]:
        """Settings to be laid over those of the call."""
        if self.in_memory:  # no case has these: `put` enters them
            return self._brought() | ({f"{self.table}.epochs": 1} if self.applied else {})
        path = {} if self.weights is None else {f"{self.table}.weights": os.fspath(self.weights)}
        return path | ({f"{self.table}.epochs": 0} if self.applied else {})

    def _brought(self) -> dict[str, Any]:
        """What weights in memory bring and keys of the settings are read of, where these name none of it:
        positions (gnn.position_work), and layers beside gnn.jump.
        """
        from app.gnn.saved import SavedModel

        model = getattr(self.weights, "model", None)
        if not isinstance(model, SavedModel):
            return {}
        wanted = ("positions",), LAYERS if setting(self.settings, "gnn", "jump") else ()
        brought = {}
        for keys in wanted:
            if all(setting(self.settings, "gnn", key) is None for key in keys):
                brought |= {f"gnn.{key}": getattr(model.case, key) for key in keys}
        return brought

    def put(self, context: Context, kind: type[Model]) -> tuple[Context, Model | None]:
        """The context of the call with weights in memory, and their model; None: there are none.

        Ranks   all call
        """
        model = getattr(self.weights, "model", None)
        with raise_together(context.group, "reading the weights"):
            if self.in_memory and not isinstance(model, kind):
                right = "the path of a weights.npz or what an earlier call returned would be right"
                raise CaseError(f"weights: found {show(self.weights)}; {right}")
            if self.weights is not None and setting(self.settings, self.table, "weights") is not None:
                raise CaseError("weights: given here and in the settings; one of them would be right")
        content = digest(model.arrays) if self.in_memory else "none, or a file"
        check_given(context.group, {"weights": content})
        if not self.in_memory:
            return context, None
        given = getattr(context.case, self.table)
        epochs = 0 if self.applied else given.epochs
        given = structs.replace(given, weights="weights", epochs=epochs)  # so messages call them
        return replace(context, case=structs.replace(context.case, **{self.table: given})), model


def digest_of_arrays(*arrays: np.ndarray | None) -> str:
    """Of kinds, shapes and bits."""
    return digest({str(i): array for i, array in enumerate(arrays) if array is not None})


def digest_of_names(names: Iterable[Any] | None) -> str:
    """Of what nodes are called; of objects that have no value of their own only the kinds count."""
    return "numbers" if names is None else sha256("\n".join(map(_text, names)).encode()).hexdigest()


def _text(name: Any) -> str:
    if isinstance(name, tuple):
        return f"({','.join(map(_text, name))})"
    return repr(name) if isinstance(name, PLAIN) else type(name).__qualname__


def _joined(digests: Iterable[str]) -> str:
    return sha256("".join(digests).encode()).hexdigest()


def digests_of_stream(source: EdgeStream, labels: list[Any] | None) -> dict[str, str]:
    """Of a graph in memory, or of points, part by part."""
    if source.metric is not None:
        metric = source.metric
        return {"distances": f"{metric.kind} {metric.unit} {digest_of_arrays(metric.points, metric.matrix)}"}
    parts = {"nodes": f"{source.nodes} {digest_of_names(labels)}"}
    chunks = _joined(digest_of_arrays(*chunk) for chunk in source.chunks())
    return parts | {"edges": chunks, "node_weights": digest_of_arrays(source.node_weights)}


def digest_of_features(source: EdgeStream) -> str:
    """Of the features of the edges of a stream in memory."""
    return digest_of_arrays(*source.edge_features().parts()) if source.edge_features else "none"


def digests_of_table(table: NodeTable) -> dict[str, str]:
    """Of features, labels and sets of nodes in memory."""
    features, labels, splits = table.features, table.labels, table.splits
    parts = {}
    if features is None:
        parts["features"] = "none"
    elif hasattr(features, "indptr"):
        entries = [digest_of_arrays(*piece) for piece in features.parts([int(features.indptr[-1])])]
        parts["features"] = _joined([digest_of_arrays(features.indptr), *entries])
    else:
        parts["features"] = _joined(digest_of_arrays(piece) for piece in features.parts())
    parts["labels"] = "none" if labels is None else digest_of_arrays(*labels.parts())
    parts["train, val, test"] = "none" if splits is None else digest_of_arrays(splits.flags)
    return parts


def refuse_data_keys(case: Case, task: str) -> None:
    """Refuse settings that name data or another task beside what a call hands in. Raises CaseError."""
    usual = type(case.graph)()
    for key, right in DATA_KEYS.items():
        found = getattr(case.graph, key)
        if found != getattr(usual, key) and found != WORDS.get(key):
            raise CaseError(f"settings: graph.{key}: {right} would be right")
    if case.output.certificates and task != "solve":
        raise CaseError(
            "settings: output.certificates: of solve, whose bounds they prove; false would be right"
        )
    if case.run.task != task:
        raise CaseError(f'settings: run.task: must be "{task}", got "{case.run.task}"; leave it out')


def refuse_beside_file(given: Any, name: str = "edge_features") -> None:
    """Refuse what is known of edges beside the name of a file. Raises GraphError."""
    if given is not None:
        key = "edge_features" if name == "edge_features" else "edge_labels"
        right = f"of a file graph.{key} of the settings would be right"
        raise GraphError(f"{name}: only of graphs in memory; {right}")


def refuse_file_of_edges(case: Case) -> None:
    """Refuse files of edges beside a graph in memory. Raises CaseError."""
    for key, right in (("edge_features", "edge_features="), ("edge_labels", "labels=")):
        if getattr(case.graph, key):
            raise CaseError(f"graph.{key}: of a graph in memory {right} would be right")
    if case.graph.edge_splits not in ("", WORDS["edge_splits"]):
        raise CaseError("graph.edge_splits: of a graph in memory train=, val= and test= would be right")


def ids_of_pairs(given: Any, labels: list[Any] | None, texts: bool, name: str) -> np.ndarray:
    """[k, 2] the ids of pairs of nodes."""
    right = "pairs of nodes would be right"
    given = given.tolist() if isinstance(given, np.ndarray) else given
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise GraphError(f"{name}: found {shown(repr(given))}; {right}")
    given = list(given)
    for each in given:
        if isinstance(each, str) or not isinstance(each, Sized) or len(each) != 2:
            raise GraphError(f"{name}: found {shown(repr(each))}; {right}")
    return ids_of_nodes([node for each in given for node in each], labels, texts, name).reshape(-1, 2)


def ids_of_nodes(ends: list[Any], labels: list[Any] | None, texts: bool, name: str) -> np.ndarray:
    """[k] the ids of nodes."""
    if labels is not None:
        return np.array(numbers_of(ends, labels, name), dtype=np.int64)
    if texts:
        return ids_of_names(ends, name)
    wrong = [node for node in ends if not (is_whole(node) and 0 <= node < 1 << 63)]
    if wrong:
        raise GraphError(f"{name}: found node {shown(repr(wrong[0]))}; numbers of nodes would be right")
    return np.array(ends, dtype=np.int64)
