"""What a caller of the Python interface hands in: the same on all ranks, and named once."""

from collections.abc import Iterable, Mapping
from hashlib import sha256
from itertools import zip_longest
from numbers import Number
from typing import Any

import numpy as np

from app.case.config import Case
from app.comm.group import Group
from app.comm.guard import digest
from app.errors import CaseError, GraphError
from app.graphs.nodes.data import NodeTable
from app.graphs.stream import EdgeStream

PLAIN = (str, bytes, Number, type(None))
ORDERED = ("nodes", "edges", "triples", "relations")  # may come of sets
HINT = "a set of texts has another order in each process, sorted() of it the same"
# Keys of [graph] that name data, which a call hands in by arguments, and what is right instead.
DATA_KEYS = {
    "path": "the argument",
    "generator": "a graph as the argument",
    "features": "the argument features",
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
        if found != getattr(usual, key) and not (key == "splits" and found == "random"):
            raise CaseError(f"settings: graph.{key}: {right} would be right")
    if case.output.certificates and task != "solve":
        raise CaseError(
            "settings: output.certificates: of solve, whose bounds they prove; false would be right"
        )
    if case.run.task != task:
        raise CaseError(f'settings: run.task: must be "{task}", got "{case.run.task}"; leave it out')
