"""Several graphs as one: their disjoint union, rows of the first graph first."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice

import numpy as np

from app.errors import GraphError
from app.graphs.formats.source import graph_name, plain_name
from app.graphs.ids import is_text
from app.graphs.nodes.data import Check, DenseFeatures, Labels, NodeTable, SparseFeatures, Splits
from app.graphs.stream import Chunk, EdgeStream


def unite(streams: list[EdgeStream], name: str = "", directions: bool = False) -> EdgeStream:
    """The disjoint union of graphs whose files state their node counts.

    directions   they count: among directed graphs an edge of an undirected one is given in both
    Where some have edge weights, every edge of the others counts one: weights that are all one are none.
    """
    if len(streams) == 1:
        return streams[0]
    for stream in streams:
        if stream.nodes is None:
            right = "a format that states its number of nodes would be right in a union"
            raise GraphError(f"{stream.name}: holds only edges; {right}")
    first = np.concatenate([[0], np.cumsum([stream.nodes for stream in streams])])
    weighted = any(stream.weighted for stream in streams)
    undirected = all(stream.undirected for stream in streams)

    def chunks(opened: EdgeStream) -> Iterator[Chunk]:
        for start, stream in zip(first.tolist(), streams):
            for u, v, w in stream.chunks():
                weights = np.ones(len(u), dtype=np.float32) if weighted and w is None else w
                yield u + start, v + start, weights
                if directions and not undirected and stream.undirected and not stream.mirrored:
                    other = u != v
                    weights = None if weights is None else weights[other]
                    yield v[other] + start, u[other] + start, weights
            for text in stream.warnings:
                opened.warn(text)

    told = any(stream.edge_features for stream in streams) or None
    alone = all(stream.sizes is None for stream in streams)
    sizes = [np.array([stream.nodes]) if stream.sizes is None else stream.sizes for stream in streams]
    return EdgeStream(
        name or f"{streams[0].name}+{len(streams) - 1}", streams[0].path, "union", int(first[-1]), 0,
        weighted, chunks, undirected=undirected, sizes=np.concatenate(sizes),
        edge_features=told and (lambda: _edge_features(streams, directions and not undirected)),
        graph_names=tuple(map(_called, streams)) if alone else (),
    )  # fmt: skip


def _edge_features(streams: list[EdgeStream], directions: bool) -> DenseFeatures:
    """The features of all edges, one graph's after another's. Raises GraphError.

    directions   edges of undirected graphs are given in both, which rows of features are not
    """
    told = [stream.edge_features() for stream in streams if stream.edge_features]
    if len(told) < len(streams):
        lacking = next(stream.name for stream in streams if not stream.edge_features)
        raise told[0].refuse(f"found edge features that {lacking} has not; the same in all would be right")
    if directions and any(stream.undirected for stream in streams):
        right = 'graphs of one kind, or graph.neighbours = "both", would be right'
        raise told[0].refuse(f"found edge features of directed and of undirected graphs; {right}")
    return _dense(told)


def _called(stream: EdgeStream) -> str:
    """The name of a graph as that of its file is, where it is of that and can stand in a line of text."""
    plain = plain_name(stream.path)
    return plain if stream.name == graph_name(stream.path) and is_text(plain) else stream.name


def unite_tables(tables: list[NodeTable]) -> NodeTable:
    """The tables one after the other; each must hold the same arrays, of equal widths."""
    if len(tables) == 1:
        return tables[0]
    united = [
        _unite_parts([getattr(table, name) for table in tables], name)
        for name in ("features", "labels", "splits")
    ]
    return NodeTable(*united)


def _unite_parts(parts: list, name: str) -> object:
    """One part of all tables, or None where none has it."""
    held = [part for part in parts if part is not None]
    if not held:
        return None
    if len(held) < len(parts) or any(type(part) is not type(held[0]) for part in held):
        raise held[0].refuse(
            f"found {name} here that another file of the union has not; the same in all would be right"
        )
    return UNITE[type(held[0])](held)


def _same(parts: list, name: str) -> None:
    """Refuse parts that differ in one attribute."""
    values = [getattr(part, name) for part in parts]
    for part, value in zip(parts, values):
        if value != values[0]:
            raise part.refuse(
                f"found {value} columns; {values[0]}, as in the first file of the union, would be right"
            )


def _dense(parts: list[DenseFeatures]) -> DenseFeatures:
    _same(parts, "width")
    n = sum(part.n for part in parts)
    whole = all(part.holes is not None for part in parts)

    def holes(check: Check) -> Iterator[np.ndarray]:
        return _chain([replace(part, parts=partial(part.holes, check)) for part in parts])

    return DenseFeatures(
        n,
        parts[0].width,
        lambda: _chain(parts),
        parts[0].refuse,
        holes=holes if whole else None,
    )


def _labels(parts: list[Labels]) -> Labels:
    _same(parts, "columns")
    n, first = sum(part.n for part in parts), parts[0]
    if len(parts) == 1:
        return first
    if any(part.names for part in parts):
        raise first.refuse("found names of classes; numbers would be right in a union of graphs")
    return Labels(n, first.columns, lambda: _chain(parts), first.refuse, values=first.values)


def _chain(parts: list) -> Iterator[np.ndarray]:
    for part in parts:
        yield from part.parts()


def _splits(parts: list[Splits]) -> Splits:
    return Splits(np.concatenate([part.flags for part in parts]), parts[0].refuse)


def _sparse(parts: list[SparseFeatures]) -> SparseFeatures:
    """Rows below each other; where some hold values, those of a binary one are written out as ones."""
    _same(parts, "width")
    starts = np.cumsum([0, *(part.indptr[-1] for part in parts)])
    indptr = np.concatenate([parts[0].indptr[:1], *(p.indptr[1:] + at for p, at in zip(parts, starts))])
    binary = all(part.binary for part in parts)

    def entries(counts: Iterable[int]) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
        wanted = _cut_at(list(counts), np.diff(starts).tolist())
        pieces = (piece for part, sizes in zip(parts, wanted[1]) for piece in part.parts(sizes))
        for number in wanted[0]:
            yield _joined(list(islice(pieces, number)), binary)

    return SparseFeatures(sum(p.n for p in parts), parts[0].width, indptr, binary, entries, parts[0].refuse)


def _cut_at(counts: list[int], lengths: list[int]) -> tuple[list[int], list[list[int]]]:
    """Counts in turn through several lists: the pieces for each count, the sizes asked of each list."""
    pieces, sizes = [], [[] for _ in lengths]
    which, left = 0, lengths[0]
    for count in counts:
        taken = 0
        while count or not taken:
            while not left and which + 1 < len(lengths) and count:
                which, left = which + 1, lengths[which + 1]
            size = min(count, left)
            sizes[which].append(size)
            count, left, taken = count - size, left - size, taken + 1
        pieces.append(taken)
    return pieces, sizes


def _joined(pieces: list[tuple[np.ndarray, np.ndarray | None]], binary: bool) -> tuple:
    """Pieces side by side."""
    columns = np.concatenate([each for each, _ in pieces])
    if binary:
        return columns, None
    ones = [np.ones(len(each), np.float32) if values is None else values for each, values in pieces]
    return columns, np.concatenate(ones)


UNITE = {DenseFeatures: _dense, SparseFeatures: _sparse, Labels: _labels, Splits: _splits}
