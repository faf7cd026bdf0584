"""Planetoid's citation graphs (Yang, Cohen and Salakhutdinov 2016) to the .npz layout of docs/formats.md.

FOLDER/ind.NAME.{x,y,tx,ty,allx,ally,graph,test.index}: features and one-hot labels of the first nodes (allx,
ally), of the test nodes in the order of test.index (tx, ty), and lists of neighbours. The published split:
the first len(y) nodes train, the next 500 validate, test.index tests. Test numbers that are missing (in
Citeseer) are nodes without features, labels and split.
"""

import os
from typing import Any

import numpy as np

from app.graphs.formats.pickled import read_pickled
from app.graphs.formats.source import Source
from app.graphs.graph import from_edges
from app.graphs.keys import sorted_set
from app.graphs.nodes.text import text_integers

VALIDATION = 500  # nodes


def convert(folder: str, name: str, out: str) -> str:
    """Write the graph as `out`; returns a line that says what was written."""
    arrays = read_planetoid(folder, name)
    with open(out, "wb") as file:
        np.savez_compressed(file, **arrays)
    nodes, edges = len(arrays["labels"]), len(arrays["adj_indices"]) // 2
    return f"{out}: {nodes} nodes, {edges} edges, {arrays['feat_shape'][1]} features"


def read_planetoid(folder: str, name: str) -> dict[str, np.ndarray]:
    """The arrays of the layout."""
    test = text_integers(_source(folder, name, "test.index"))
    graph = read_pickled(_source(folder, name, "graph"))
    known, tested = (_matrix(folder, name, part) for part in ("allx", "tx"))
    first, train = known[2][0], len(_labels(folder, name, "y"))
    n = int(test.max(initial=first - 1)) + 1
    _check(folder, name, test, first, n, graph)
    classes = _labels(folder, name, "ally"), _labels(folder, name, "ty")
    if len(classes[0]) != first or len(classes[1]) != len(test) or tested[2][0] != len(test):
        raise _source(folder, name, "tx").error("rows as many as test.index has numbers would be right")
    if known[2][1] != tested[2][1]:
        right = f"{known[2][1]}, as allx has, would be right"
        raise _source(folder, name, "tx").error(f"found {tested[2][1]} columns; {right}")
    if train > first:
        raise _source(folder, name, "y").error(f"found {train} rows; at most {first} would be right")
    labels = np.full(n, -1, dtype=np.int64)
    labels[:first], labels[test] = classes
    nodes = np.arange(n)
    masks = {"train": nodes < train, "val": (nodes >= train) & (nodes < train + VALIDATION)}
    return {
        **_adjacency(_source(folder, name, "graph"), graph, n),
        **_features(known, tested, test, n),
        "labels": labels,
        **{f"{each}_mask": mask for each, mask in masks.items()},
        "test_mask": np.isin(nodes, test),
    }


def _source(folder: str, name: str, part: str) -> Source:
    return Source(os.path.join(folder, f"ind.{name}.{part}"))


def _check(folder: str, name: str, test: np.ndarray, first: int, n: int, graph: Any) -> None:
    """Refuse test numbers that overlap the other nodes, and a graph of another size."""
    if len(test) != len(sorted_set(test)) or (len(test) and test.min() < first):
        raise _source(folder, name, "test.index").error(f"different numbers from {first} would be right")
    if not isinstance(graph, dict):
        raise _source(folder, name, "graph").error("a dict of lists of neighbours would be right")
    if len(graph) != n:
        right = f"{n}, one more than the largest of test.index, would be right"
        raise _source(folder, name, "graph").error(f"found {len(graph)} nodes; {right}")


def _labels(folder: str, name: str, part: str) -> np.ndarray:
    """[k] int64, the column of the one in each row; -1 in a row without."""
    source = _source(folder, name, part)
    found = read_pickled(source)
    matrix = isinstance(found, np.ndarray) and found.ndim == 2 and found.shape[1] > 0
    if not matrix or not np.isin(found, (0, 1)).all():
        raise source.error("a matrix of 0 and 1 would be right")
    return np.where(found.any(axis=1), found.argmax(axis=1), -1)


def _matrix(folder: str, name: str, part: str) -> tuple[np.ndarray, np.ndarray, tuple[int, int], np.ndarray]:
    """indptr, indices, shape and data of a CSR matrix."""
    source = _source(folder, name, part)
    found = read_pickled(source)
    try:
        shape = tuple(int(size) for size in found.get("_shape", found.get("shape")))
        indptr, indices, data = (np.asarray(found[key]) for key in ("indptr", "indices", "data"))
        offsets = indptr.astype(np.int64)
        whole = offsets[0] == 0 and offsets[-1] == len(indices) == len(data) and (np.diff(offsets) >= 0).all()
        fits = whole and len(offsets) == shape[0] + 1 and indices.min(initial=0) >= 0
        with np.errstate(over="ignore"):  # what does not fit 32 bits becomes infinite, and is refused
            values = data.astype(np.float32)
        fits = fits and indices.max(initial=-1) < shape[1] and np.isfinite(values).all()
    except (AttributeError, KeyError, TypeError, ValueError, IndexError, OverflowError):
        fits = False
    if not fits:
        raise source.error("holds no sound CSR matrix; indptr, indices, data and shape would be right")
    return offsets, indices.astype(np.int32), shape, values


def _features(known: tuple, tested: tuple, test: np.ndarray, n: int) -> dict[str, np.ndarray]:
    """The rows of both matrices at their nodes, columns ascending."""
    counts = np.zeros(n, dtype=np.int64)
    rows = np.concatenate([np.arange(known[2][0]), test])
    sizes = np.concatenate([np.diff(known[0]), np.diff(tested[0])])
    counts[rows] = sizes
    row = np.repeat(rows, sizes)
    columns, values = (np.concatenate([known[at], tested[at]]) for at in (1, 3))
    order = np.lexsort((columns, row))
    found = {
        "feat_indptr": np.concatenate([[0], np.cumsum(counts)]),
        "feat_indices": columns[order],
        "feat_shape": np.array([n, known[2][1]], dtype=np.int64),
    }
    binary = bool((values == 1).all())
    return found | ({"feat_binary": np.array([True])} if binary else {"feat_data": values[order]})


def _adjacency(source: Source, graph: dict, n: int) -> dict[str, np.ndarray]:
    """The rows of the symmetric adjacency matrix, without loops and repeats."""
    ends = []
    for node, near in graph.items():
        if not isinstance(near, list) or not all(type(x) is int and 0 <= x < n for x in (node, *near)):
            raise source.error(f"a dict of lists of nodes 0..{n - 1} would be right")
        ends += [(node, other) for other in near]
    u, v = np.array(ends, dtype=np.int64).reshape(-1, 2).T
    built = from_edges(n, u, v)
    return {"adj_indptr": built.indptr, "adj_indices": built.indices}
