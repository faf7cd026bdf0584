"""Quadratic functions of variables that are 0 or 1 (QUBO), or of spins, -1 or 1 (Ising), as maximum cuts.

    f(x) = sum_i h_i x_i + sum_(i<j) q_ij x_i x_j ,  x_i in {0, 1}

As x_i x_j = (x_i + x_j - [x_i != x_j]) / 2, with one more node r, the *reference*, on side 0,

    f(x) = -1/2 ( sum_(i<j) q_ij [x_i != x_j] + sum_i w_i [x_i != x_r] ) ,  w_i = -(2 h_i + sum_j q_ij)

so that f is smallest where the cut with weights q and w is largest: f = -cut / 2, without a constant. Turning
all sides changes no cut, so a variable is 1 where its node is not on the side of the reference.

    E(s) = sum_i h_i s_i + sum_(i<j) J_ij s_i s_j ,  s_i in {-1, 1}

As s_i s_j = 1 - 2 [s_i != s_j], with s_r = -1 and so h_i s_i = -h_i s_i s_r,

    E(s) = W - 2 ( sum_(i<j) J_ij [s_i != s_j] + sum_i w_i [s_i != s_r] ) ,  w_i = -h_i

where W is the sum of all weights of the cut: E = W - 2 cut, least where the cut is largest, too.

Source     Hammer 1965; Barahona, Juenger, Reinelt 1989, section 2; Barahona 1982 (spins)
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from app.errors import GraphError
from app.graphs.formats.text import LARGEST_ID
from app.graphs.ids import LONGEST, name_array
from app.graphs.stream import Chunk, EdgeStream
from app.graphs.weights import MOST_DECIMALS, decimals_of, kept_weights

SPINS = "ising"
QUADRATIC = ("qubo", SPINS)  # problems whose graphs hold terms
BEYOND = b"~"  # makes a name larger
CLEAR = 4  # spacings of 32-bit numbers: decimals of so much are meant, not those of any such number
# Formats whose entries (i, j) may be terms: they name a pair once, and have a place for (i, i).
FORMATS = ("edges", "matrix_market", "gset", "npz", "memory", "networkx", "generated")


def as_cut(terms: EdgeStream, problem: str) -> EdgeStream:
    """The edges of the cut that stands for a quadratic function; the reference is its last node.

    terms     entries (i, j, c): each adds c x_i x_j, or c x_i where i = j, however often a pair occurs (of
              spins s_i in place of x_i). Of a symmetric matrix that is stored by its half, entries off the
              diagonal count twice: f = x^T Q x
    problem   one of QUADRATIC: what the variables are
    """
    spins = problem == SPINS
    if terms.metric is not None or terms.format not in (FORMATS if spins else (*FORMATS, "qubo")):
        files = "an edge list, Matrix Market" if spins else "an edge list, Matrix Market, .qubo"
        right, of = f"{files} or .npz file of its entries would be right", " of spins" if spins else ""
        found = f"the format {terms.format}" if terms.metric is None else "distances between all nodes"
        raise GraphError(f"{terms.name}: found {found} for a quadratic function{of}; {right}")
    nodes = None if terms.nodes is None else terms.nodes + 1
    return replace(
        terms, nodes=nodes, weighted=True, make=lambda made: _chunks(terms, made, spins), part=None,
        lines=None, undirected=True, mirrored=False, node_weights=None, entries=None,
    )  # fmt: skip


def _chunks(terms: EdgeStream, made: EdgeStream, spins: bool) -> Iterator[Chunk]:
    """All edges of the cut; what the terms say of themselves on the way is said of the cut."""
    u, v, c = _entries(terms)
    for text in terms.warnings:
        made.warn(text)
    reference = _reference(terms, made, u, v)
    decimals, meant = _decimals(c)
    low, high, q = _summed(np.minimum(u, v), np.maximum(u, v), c)
    nodes, at = np.unique(np.concatenate([low, high]), return_inverse=True)
    across = low != high
    w = _to_reference(at, across, q, len(nodes), spins)
    yield _edges(terms, made, low[across], high[across], q[across], decimals, meant)
    yield _edges(terms, made, nodes, np.full(len(nodes), reference), w, decimals, meant)
    if terms.nodes is None and not terms.named:  # nodes are those that occur: a loop is no edge
        every = np.append(nodes, reference)
        yield every, every, np.zeros(len(every), dtype=np.float32)


def _to_reference(at: np.ndarray, across: np.ndarray, q: np.ndarray, nodes: int, spins: bool) -> np.ndarray:
    """[nodes] float64, the weights w of edges to the reference.

    at       [2k] the first ends of pairs, then the others    q   [k] sums of their entries
    across   [k] their ends are two nodes
    """
    if spins:
        return -np.bincount(at[: len(q)][~across], q[~across], nodes)
    return -np.bincount(at, np.concatenate([q, q]), nodes)  # two equal ends make h count twice


def _decimals(c: np.ndarray) -> tuple[int | None, bool]:
    """The decimals of entries [m] float64, of which sums have no more; None: they have many. And whether they
    are meant: all 32-bit numbers of a size have a few."""
    found = decimals_of(c) if len(c) else None
    if found is None or found == MOST_DECIMALS:
        return None, False
    return found, bool(10.0**-found > CLEAR * np.spacing(np.float32(np.abs(c).max())))


def _entries(terms: EdgeStream) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All entries: u, v [m] int64, c [m] float64."""
    twice = terms.format == "matrix_market" and terms.undirected
    found: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for u, v, w in terms.chunks():
        c = np.ones(len(u)) if w is None else w.astype(np.float64)
        found.append((u, v, c * (1 + (u != v)) if twice else c))
    if not found:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0)
    u, v, c = (np.concatenate(part) for part in zip(*found))
    return u.astype(np.int64), v.astype(np.int64), c


def _summed(low: np.ndarray, high: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Each pair [k] once, ascending, and the sum of its entries in the order in which they come."""
    order = np.lexsort((high, low))
    low, high, c = low[order], high[order], c[order]
    first = np.ones(len(low), dtype=bool)
    first[1:] = (low[1:] != low[:-1]) | (high[1:] != high[:-1])
    sums = np.bincount(np.cumsum(first) - 1, c, int(first.sum())) if len(c) else c
    return low[first], high[first], sums


def _reference(terms: EdgeStream, made: EdgeStream, u: np.ndarray, v: np.ndarray) -> int:
    """The number, or id, of one more node, which comes last; a name for it where nodes have names."""
    if not terms.named:
        largest = int(max(u.max(initial=-1), v.max(initial=-1)))
        if largest == LARGEST_ID:
            raise GraphError(f"{terms.path}: found the node id 2^63-1; smaller ids would be right")
        return largest + 1 if terms.nodes is None else terms.nodes
    names = terms.ids.tolist()
    largest = max(names, default=b"")
    if len(largest) == LONGEST:
        raise GraphError(f"{terms.name}: found a name of {LONGEST} bytes; a shorter one would be right")
    made.ids = name_array([*names, largest + BEYOND])
    return len(names)


def _edges(
    terms: EdgeStream, made: EdgeStream, u: np.ndarray, v: np.ndarray, weights: np.ndarray,
    decimals: int | None, meant: bool,
) -> Chunk:  # fmt: skip
    """Edges with the weights that graphs keep; those of weight zero are none.

    decimals, meant   as of _decimals; sums that lose decimals which are meant are a warning
    """
    if decimals is not None:
        weights = np.round(weights, decimals)
    wanted = weights != 0
    u, v, weights = u[wanted], v[wanted], weights[wanted]
    said: list[str] = []
    what = f"{terms.path or terms.name}: a sum of entries"
    kept = kept_weights(weights, lambda i: what, said)
    if not np.isfinite(kept).all():
        right = "entries in a larger unit would be right"
        raise GraphError(f"{terms.name}: found sums of entries beyond 3.4e38; {right}")
    if meant and not said:
        said = _lost_decimals(what, weights, kept, decimals)
    for text in said:
        made.warn(text)
    return u, v, kept


def _lost_decimals(what: str, weights: np.ndarray, kept: np.ndarray, decimals: int) -> list[str]:
    """A warning on the first of the sums [k] float64 whose decimals are others as kept, [k] float32."""
    lost = np.flatnonzero(np.round(kept.astype(np.float64), decimals) != weights)
    if not len(lost):
        return []
    i = lost[0]
    right = "32 bits have about seven digits; entries with fewer decimals would be right"
    return [f"{what}, {weights[i]:.{decimals}f}, is kept as {kept[i]:.{decimals}f}: {right}"]
