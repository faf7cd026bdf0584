"""Positions: columns that tell where in its graph a node is, beside its features or in their place.

A layer that sums over neighbours tells no two nodes apart that colour refinement does not (Xu et al. 2019,
Morris et al. 2019), and knows no place in a graph. What gnn.positions names:

walks=K       Dwivedi et al. 2022 (RWSE), Li et al. 2020 (distance encoding): p_k = (P^k)_ii for k = 1..K, the
              probability that a random walk is back after k steps, P = D^-1 A. Exact: columns of P^k, some at
              a time, by products with A on rows; as many columns as the graph has nodes, of a set its largest
laplacian=K   Dwivedi and Bresson 2021: eigenvectors of L = I - D^-1/2 A D^-1/2 of the K smallest eigenvalues
              above the trivial one, of each connected component by itself, times the square root of its nodes
              (the mean square is then 1); 0 where a component has fewer. Their sign is a convention: the
              first of the largest entries (to one in a million) is positive; training draws the sign of each
              column anew in each epoch
degree        log(1 + neighbours)     core   log(1 + core number)
triangles     log(1 + triangles), and the share of the pairs of neighbours that are joined
Scale     All but eigenvectors less their mean over the nodes that features are scaled by, divided by their
          deviation; weights bring both. gnn.feature_rows is of features alone
Edges     Walks go the way that nodes hear, by edge weights where gnn.edge_weights has them counted; all else
          is of the undirected graph without weights
Ranks     Walks: rows partitioned, K exchanges for some columns; a row of a product is one chain on one rank.
          Counts and eigenvectors: rank 0 makes them of the whole pattern, and all have its bits. The same
          bits on any number of ranks; eigenvectors are those of the linear algebra library at hand
Differs   Signs are drawn for a column of all graphs together. Where eigenvalues are equal the eigenvectors
          are any basis, as in the paper
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any

import numpy as np
import scipy.sparse as sp

from app.case.gnn import GnnCase
from app.comm.group import Group
from app.comm.guard import raise_together
from app.errors import CaseError
from app.gnn.layers.layer import is_number
from app.gnn.neighbours import both_ways
from app.gnn.scale import Scale
from app.graphs.cores import core_numbers, triangle_counts
from app.graphs.members import Members
from app.graphs.nodes.data import NodeData
from app.rng import stream
from app.sparse.rowblock import RowBlock
from app.watchdog import beat

Array = Any
KEY = "gnn.positions"
WIDTHS = {"walks": 0, "laplacian": 0, "degree": 1, "core": 1, "triangles": 2}  # columns; 0: as many as asked
MOST_STEPS = 1000
COLUMNS = 64  # of powers of P at a time
MOST_ENTRIES = 1 << 28  # of a pattern that rank 0 holds for counts
MOST_NODES, MOST_STORED = 1 << 15, 1 << 22  # of a component whose eigenvectors are found
DENSE = 256  # nodes of a component whose matrix is taken apart whole
RESTARTS = 300  # of the Lanczos method, at most
ALIKE = 1e-6  # entries of an eigenvector whose magnitudes differ by such a share count as equal


@dataclass(frozen=True)
class Position:
    """One entry of gnn.positions: what it is, and its columns."""

    kind: str
    width: int


def parse_positions(texts: list[str]) -> list[Position]:
    """What gnn.positions names. Raises CaseError."""
    found: list[Position] = []
    for text in texts:
        kind, _, number = text.partition("=")
        counted = not WIDTHS.get(kind, 1)
        if kind not in WIDTHS or counted != is_number(number) or (text != kind) != counted:
            right = ", ".join(name if width else f"{name}=K" for name, width in WIDTHS.items())
            raise CaseError(f"{KEY}: found {text!r}; one of {right} would be right")
        if any(each.kind == kind for each in found):
            raise CaseError(f"{KEY}: names {kind} twice; once would be right")
        if counted and int(number) > MOST_STEPS:
            raise CaseError(f"{KEY}: {text!r}: at most {MOST_STEPS} would be right")
        found.append(Position(kind, WIDTHS[kind] or int(number)))
    return found


def width_of(texts: list[str]) -> int:
    """Columns of all that gnn.positions names."""
    return sum(each.width for each in parse_positions(texts))


def names_of(texts: list[str]) -> tuple[str, ...]:
    """What the columns are called: "walks 1", "walks 2", ..., "degree"."""
    every = parse_positions(texts)
    counted = (
        range(1, each.width + 1) if each.width > 1 or not WIDTHS[each.kind] else (0,) for each in every
    )
    return tuple(f"{each.kind} {k}".removesuffix(" 0") for each, ks in zip(every, counted) for k in ks)


def signed_columns(texts: list[str]) -> slice:
    """Which of the columns have a sign that is a convention; an empty slice without such."""
    at = 0
    for each in parse_positions(texts):
        if each.kind == "laplacian":
            return slice(at, at + each.width)
        at += each.width
    return slice(0, 0)


def walk_work(texts: list[str], entries: int, sources: int) -> int:
    """Multiplications that return probabilities take: entries of A, nodes of the largest graph."""
    return sum(each.width for each in parse_positions(texts) if each.kind == "walks") * entries * sources


def refuse_work(case: GnnCase, entries: int, sources: int) -> None:
    """Refuse return probabilities that take longer than the case allows. Raises CaseError."""
    work = 1e-9 * walk_work(case.positions, entries, sources)
    if work > case.position_work:
        found = f"walks take {work:.3g} thousand million multiplications"
        right = f"gnn.position_work = {_above(work)}, or fewer steps, would be right"
        raise CaseError(f"{KEY}: {found}, more than gnn.position_work = {case.position_work:g}; {right}")


def work_words(case: GnnCase, entries: int, sources: int) -> str:
    """What is made before training, for people."""
    columns, work = width_of(case.positions), walk_work(case.positions, entries, sources)
    said = f"{columns} column{'s' * (columns != 1)} of {', '.join(case.positions)}"
    walks = f"; walks take {1e-9 * work:.3g} thousand million multiplications" if work else ""
    return f"positions: {said}{walks}"


def _above(work: float) -> str:
    """A number of three digits that is not below another."""
    digits = 10.0 ** (np.floor(np.log10(work)) - 2)
    return f"{np.ceil(work / digits) * digits:.15g}"


# ---- beside features --------------------------------------------------------------------------------------


def with_positions(
    group: Group, block: RowBlock, data: NodeData, case: GnnCase, members: Members | None,
    chosen: np.ndarray, known: Scale | None,
) -> tuple[NodeData, Scale]:  # fmt: skip
    """The data with positions after the columns of features, or in place of none, and their scale.

    members   of a set of graphs     chosen   [n_own] bool, the nodes that the scale is of
    known     the scale of weights that are applied
    Ranks     all call. Raises CaseError
    """
    raw = position_rows(group, block, case, members)
    scale = known or _scale_of(group, case, raw, chosen)
    nodes = nodes_of(block, members)
    columns = np.where(nodes[:, None], scale.small(raw), np.float32(0))
    X = data.features
    if X is None:
        X = columns
    elif isinstance(X, np.ndarray):
        X = np.concatenate([X, columns], axis=1)
    else:
        X = sp.csr_array(sp.hstack([sp.csr_array(X), sp.csr_array(columns)], format="csr"))
    width = data.width + columns.shape[1]
    names = (*data.columns, *names_of(case.positions)) if data.columns or data.features is None else ()
    known = {"columns": names, "beside": columns.shape[1]}
    return replace(data, features=X, width=width, binary=False, **known), scale


def nodes_of(block: RowBlock, members: Members | None) -> np.ndarray:
    """[n_own] bool, which rows are nodes, neither padding nor graphs."""
    nodes = np.arange(block.n_own) < block.n_real
    if members is not None:
        nodes[: block.n_real] &= ~members.own_of(block.lo, block.lo + block.n_real)
    return nodes


def draw_signs(seed: int, epoch: int, columns: int) -> np.ndarray:
    """[columns] float32 of 1 and -1, those of an epoch: the same on every rank."""
    drawn = stream(seed, "positions/signs", epoch).integers(0, 2, columns)
    return (2 * drawn - 1).astype(np.float32)


def _scale_of(group: Group, case: GnnCase, raw: np.ndarray, chosen: np.ndarray) -> Scale:
    """Of the chosen rows; of eigenvectors none. Ranks: all call."""
    scale, signed = Scale.of(group, raw, chosen), signed_columns(case.positions)
    scale.mean[signed], scale.deviation[signed] = 0.0, 1.0
    return scale


def position_rows(group: Group, block: RowBlock, case: GnnCase, members: Members | None) -> np.ndarray:
    """[n_own, columns] float32, unscaled; kept with the block, for trainings on the same rows.

    Ranks   all call. Raises CaseError
    """
    name = f"positions {case.positions} {case.edge_weights}"
    if name not in block.kept:
        asked, whole = parse_positions(case.positions), _Whole(group, block)
        if any(each.kind == "walks" for each in asked):
            entries = int(group.sum_integers(np.array([block.adjacency.degrees_own().sum()], np.int64))[0])
            refuse_work(case, entries, largest_of(block, members))
        parts = [_rows_of(each, group, block, case, members, whole) for each in asked]
        block.kept[name] = np.concatenate(parts, axis=1)
    return block.kept[name]


def _rows_of(
    asked: Position, group: Group, block: RowBlock, case: GnnCase, members: Members | None, whole: "_Whole"
) -> np.ndarray:
    """[n_own, width] float32 of one kind. Ranks: all call."""
    if asked.kind == "walks":
        return return_probabilities(group, block, asked.width, case.edge_weights, members)
    if asked.kind == "laplacian":
        return whole.rows(lambda *A: laplacian_vectors(*A, asked.width), asked.width)
    out = np.zeros((block.n_own, asked.width), dtype=np.float32)
    degrees = np.diff(block_pointers(block)).astype(np.float64)
    if asked.kind == "degree":
        out[: block.n_real, 0] = np.log1p(degrees)
    elif asked.kind == "core":
        out[:] = np.log1p(whole.counts(core_numbers)[:, None])
    else:
        triangles = whole.counts(triangle_counts).astype(np.float64)
        pairs = degrees * (degrees - 1) / 2
        out[:, 0] = np.log1p(triangles)
        out[: block.n_real, 1] = triangles[: block.n_real] / np.maximum(pairs, 1)
    return out


def block_pointers(block: RowBlock) -> np.ndarray:
    """[n_real+1] int64, where the stored entries of each own row begin."""
    counts, _ = block.global_rows(np.arange(block.n_real))
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])


def largest_of(block: RowBlock, members: Members | None) -> int:
    """Nodes of the largest graph."""
    return block.n if members is None else int(np.diff(members.starts).max(initial=1)) - 1


# ---- random walks -----------------------------------------------------------------------------------------


def return_probabilities(
    group: Group, block: RowBlock, steps: int, weighted: bool, members: Members | None
) -> np.ndarray:
    """[n_own, steps] float32, (P^k)_ii for k = 1..steps.

    Of X = the columns c..c+COLUMNS-1 of the identity matrix of every graph, steps times X = P X; node i of
    its graph, from 0, is then read in column i - c. A node without neighbours has 0.
    Ranks   all call (for some columns `steps` exchanges)
    """
    forward, _ = both_ways(group, block, weighted)
    device, xp = group.device, group.device.xp
    places, n_real = np.full(block.n_own, -1, dtype=np.int64), block.n_real
    places[:n_real] = np.arange(block.lo, block.lo + n_real)
    if members is not None:
        places[:n_real] -= members.starts[members.graph_of(block.lo, block.lo + n_real)]
    places[~nodes_of(block, members)] = -1
    out, inverse = np.zeros((block.n_own, steps), dtype=np.float32), forward.scale("mean")[:, None]
    most = largest_of(block, members)
    for lo in range(0, most, COLUMNS):
        width = min(COLUMNS, most - lo)
        start = (places[:, None] == lo + np.arange(width)).astype(np.float32)
        own = np.flatnonzero(start.any(axis=1))
        X, at = device.put(start), device.put(start)
        for k in range(steps):
            beat()
            Z = xp.zeros(X.shape, dtype=np.float32)
            forward.accumulate(X, Z)
            X = xp.ascontiguousarray(Z * inverse)
            back = device.get((X * at).sum(axis=1))  # of one number that is not 0
            out[own, k] = back[own]
    return out


# ---- what rank 0 makes of the whole -----------------------------------------------------------------------


class _Whole:
    """The pattern of the whole undirected graph, gathered where something asks for it."""

    def __init__(self, group: Group, block: RowBlock) -> None:
        self.group, self.block = group, block
        self._pattern: tuple[np.ndarray, np.ndarray] | None = None

    def counts(self, count: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
        """[n_own] int64, what a function counts of every node. Ranks: all call."""
        return self.rows(lambda *A: count(*A)[:, None], 1, np.int64)[:, 0]

    def rows(
        self, make: Callable[[np.ndarray, np.ndarray], np.ndarray], width: int, kind: type = np.float32
    ) -> np.ndarray:
        """[n_own, width], own rows of what rank 0 makes of indptr, indices. Ranks: all call."""
        group, block = self.group, self.block
        indptr, indices = self._gathered()
        found = np.zeros((block.n, width), dtype=kind)
        with raise_together(group, "making positions"):
            if group.rank == 0:
                found[...] = make(indptr, indices)
        found = group.broadcast(found)
        own = np.zeros((block.n_own, width), dtype=kind)
        own[: block.n_real] = found[block.lo : block.lo + block.n_real]
        return own

    def _gathered(self) -> tuple[np.ndarray, np.ndarray]:
        """indptr [n+1], indices [nnz], int64. Ranks: all call. Raises CaseError."""
        if self._pattern is None:
            group, block = self.group, self.block
            counts, columns = block.global_rows(np.arange(block.n_real))
            sizes = group.gather_integers(np.array([len(columns)]))[:, 0].tolist()
            if sum(sizes) > MOST_ENTRIES:
                found = f"{sum(sizes):,} stored entries, of which the first rank holds the whole"
                right = f"at most {MOST_ENTRIES:,}, or walks and degree alone, would be right"
                raise CaseError(f"{KEY}: {found}; {right}")
            counts = group.gather_host(np.ascontiguousarray(counts, dtype=np.int64), block.rows.row_counts())
            columns = group.gather_host(np.ascontiguousarray(columns, dtype=np.int64), sizes)
            self._pattern = np.concatenate([[0], np.cumsum(counts)]), columns
        return self._pattern


def laplacian_vectors(indptr: np.ndarray, indices: np.ndarray, k: int) -> np.ndarray:
    """[n, k] float64, eigenvectors of each component as the module says. Raises CaseError.

    indptr [n+1], indices [nnz]   the neighbours of each node, both ways
    """
    n = len(indptr) - 1
    A = sp.csr_array((np.ones(len(indices)), indices, indptr), shape=(n, n))
    count, label = sp.csgraph.connected_components(A, directed=False)
    order, out = np.argsort(label, kind="stable"), np.zeros((n, k))
    ends = np.cumsum(np.bincount(label, minlength=count))
    for lo, hi in zip([0, *ends[:-1].tolist()], ends.tolist()):
        nodes = order[lo:hi]
        if len(nodes) > 1:
            beat()
            vectors = _of_component(A if count == 1 else sp.csr_array(A[nodes][:, nodes]), k)
            out[nodes, : vectors.shape[1]] = vectors
    return out


def _of_component(A: sp.csr_array, k: int) -> np.ndarray:
    """[n, min(k, n-1)] float64, of a connected graph; those of the smallest eigenvalues first."""
    n = A.shape[0]
    inverse = sp.diags_array(1 / np.sqrt(np.diff(A.indptr)))
    S = inverse @ A @ inverse  # whose largest eigenvalues are the smallest ones of L = I - S
    wanted = min(k, n - 1) + 1
    if n <= DENSE or wanted >= n - 1:
        if n > MOST_NODES // 8:
            raise CaseError(f"{KEY}: laplacian: {k} eigenvectors of {n:,} nodes; fewer would be right")
        vectors = np.linalg.eigh(np.eye(n) - S.toarray())[1][:, 1:wanted]
    else:
        vectors = _lanczos(S, wanted)[:, 1:]
    largest = np.abs(vectors).max(axis=0) * (1 - ALIKE)
    first = (np.abs(vectors) >= largest).argmax(axis=0)
    return vectors * np.sign(vectors[first, np.arange(vectors.shape[1])]) * np.sqrt(n)


def _lanczos(S: sp.csr_array, wanted: int) -> np.ndarray:
    """[n, wanted] float64, eigenvectors of the largest eigenvalues, the largest first. Raises CaseError."""
    from scipy.sparse.linalg import ArpackError, eigsh

    n = S.shape[0]
    if n > MOST_NODES or S.nnz > MOST_STORED:
        found = f"a component of {n:,} nodes and {S.nnz // 2:,} edges"
        right = f"at most {MOST_NODES:,} and {MOST_STORED // 2:,} would be right; walks have no such limit"
        raise CaseError(f"{KEY}: laplacian: {found}; {right}")
    draws = stream(0, "positions/eigenvectors")  # SciPy from 1.17 on also draws where it begins anew
    begin = {"v0": draws.uniform(-1, 1, n)} | ({"rng": draws} if "rng" in signature(eigsh).parameters else {})
    try:
        values, vectors = eigsh(S, k=wanted, which="LA", maxiter=RESTARTS, **begin)
    except ArpackError as error:
        found = f"eigenvectors of {n:,} nodes were not found in {RESTARTS} restarts"
        raise CaseError(f"{KEY}: laplacian: {found}; walks would be right, whose work is known") from error
    return vectors[:, np.argsort(-values, kind="stable")]
