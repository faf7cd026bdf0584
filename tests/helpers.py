"""Small graphs, their row blocks, and what tests ask of them: whole arrays, exact dot products."""

import ctypes
import ctypes.util
import itertools
import tomllib
from functools import partial

import numpy as np
import pytest
from mpi4py import MPI

from app.graphs.graph import from_edges
from app.graphs.stream import EdgeStream
from app.partition.assemble import assemble
from app.partition.generated import share_blocks
from app.partition.rows import block_count
from app.problems.problem import Totals
from app.sparse.rowblock import RowBlock
from app.toolbox import Asked, Beside, Instance

# Ways to exchange rows. One rank has none to exchange; test_sparse.py asks it for each way all the same.
EXCHANGES = ["halo", "gather", "staged"] if MPI.COMM_WORLD.Get_size() > 1 else ["auto"]

TOLD = MPI.COMM_WORLD.Dup()  # what rank 0 tells is no message of the ranks' group
MARK = 0x6C6F636B  # that none of these went before


def by_one(work):
    """What one process computes, for every rank to compare with: rank 0 does it and tells the others, which
    would find the same in the time of all of them.

    work   without arguments; of one process, such that it must not use the ranks' group, which is noticed:
           of most that it would ask the others, rank 0 waits for them; a small broadcast of its own goes
           out unheard, and would be taken for a later one; what it returns is pickled
    """
    told = TOLD.bcast(work() if TOLD.rank == 0 else None)
    mark = np.array([MARK if TOLD.rank == 0 else 0])
    try:
        MPI.COMM_WORLD.Bcast(mark)
    except MPI.Exception:  # what went out was longer
        mark[:] = 0
    assert mark[0] == MARK, "what one process computes has told the ranks' group something"
    return told


def keys_of_replay(texts):
    """The settings that a replay names, as texts of a command line: TOML, or a word without quotes."""
    keys = {}
    for text in texts:
        key, _, value = text.partition("=")
        try:
            keys[key] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            keys[key] = value
    return keys


def instance_of(graph, *given, **keys):
    """An Instance, what is asked and what is given beside its graph by their names."""
    beside = {key: keys.pop(key) for key in [*keys] if key in Beside.__dataclass_fields__}
    asked = {key: keys.pop(key) for key in [*keys] if key in Asked.__dataclass_fields__}
    return Instance(graph, *given, asked=Asked(**asked), beside=Beside(**beside), **keys)


def seeds(number, quick):
    """Parameters that are ranges of seeds: the first `quick` ones, and all others, which are long."""
    others = pytest.param(range(quick, number), marks=pytest.mark.long, id="others")
    return [pytest.param(range(quick), id="first"), others]


def first_of(values, quick):
    """Parameters, of which the first `quick` ones are not long."""
    return [
        each if i < quick else pytest.param(each, marks=pytest.mark.long) for i, each in enumerate(values)
    ]


def crossed(*values, of=2):
    """All combinations of values as parameters. One of each `of` stays, such that any value of a parameter
    still meets some of each other; the rest are long: they run the same code.
    """
    long = {True: pytest.mark.long, False: ()}
    places = itertools.product(*(range(len(each)) for each in values))
    return [
        pytest.param(*each, marks=long[sum(at) % of > 0])
        for at, each in zip(places, itertools.product(*values))
    ]


# ---- graphs: (n, edges [m, 2], weights [m] or None) ---------------------------------------------------


def random_graph(n, p, seed, weighted=False):
    """G(n, p); weights are multiples of 1/4 in [-2, 2] without zero."""
    draws = np.random.default_rng(seed)
    u, v = np.triu_indices(n, 1)
    keep = draws.random(len(u)) < p
    edges = np.stack([u[keep], v[keep]], axis=1)
    weights = draws.integers(1, 9, len(edges)) * draws.choice([-0.25, 0.25], len(edges))
    return n, edges, weights.astype(np.float32) if weighted else None


def growing_graph(n, d, seed):
    """Every node brings d edges to earlier nodes, mostly to those of many edges: a few hubs, many leaves."""
    draws = np.random.default_rng(seed)
    ends, known, edges = np.arange(2 * d * n), d, []
    for v in range(d, n):
        near = np.unique(ends[draws.integers(0, known, d)])
        edges += [(int(u), v) for u in near]
        both = known + 2 * len(near)
        ends[known:both] = np.append(near, np.full(len(near), v))
        known = both
    return n, np.array(edges, dtype=np.int64).reshape(-1, 2), None


class Frame:
    """As much of a DataFrame as is asked of one: columns by name, each an array."""

    def __init__(self, **columns):
        self.columns, self.held = list(columns), {name: np.array(v) for name, v in columns.items()}

    def __getitem__(self, name):
        return self.held[name]

    def to_numpy(self):
        return np.stack([self.held[name].astype(object) for name in self.columns], axis=1)


def listed(n, *edges):
    """A graph of the listed edges."""
    return n, np.array(edges, dtype=np.int64).reshape(-1, 2), None


def posed(name, graph):
    """The graph; where the problem is of families the one that stands for its closed neighbourhoods."""
    if name not in ("set_cover", "hitting_set"):
        return graph
    n, edges, _ = graph
    itself = np.stack([np.arange(n)] * 2, axis=1)
    pairs = np.concatenate([edges, edges[:, ::-1], itself]) + np.array([0, n])
    sets = np.stack([np.arange(n), np.full(n, 2 * n)], axis=1)
    return 2 * n + 1, np.concatenate([pairs, sets]), None


def dense(graph):
    """Adjacency [n, n] of zeros and ones, and the weights in the same places."""
    n, edges, weights = graph
    A, M = np.zeros((n, n)), np.zeros((n, n))
    u, v = edges.T
    A[u, v] = A[v, u] = 1
    M[u, v] = M[v, u] = 1 if weights is None else weights
    return A, M


def residual(A, removed):
    """A without the edges of the removed nodes."""
    alive = np.ones(len(A))
    alive[removed] = 0
    return A * alive * alive[:, None]


def totals_of(A):
    """Totals of a dense residual graph, by their definition."""
    degrees = A.sum(axis=1).astype(int)
    caro_wei = sum(2**30 // (1 + int(d)) for d in degrees if d)
    return Totals(int((degrees > 0).sum()), int(degrees.sum()), caro_wei)


# ---- row blocks ---------------------------------------------------------------------------------------


def edge_stream(graph, name="graph"):
    """A graph as an EdgeStream."""
    n, edges, weights = graph
    chunk = (edges[:, 0].copy(), edges[:, 1].copy(), weights)
    return EdgeStream(name, "", "generated", n, 0, weights is not None, lambda stream: iter([chunk]))


def make_block(group, graph, exchange="auto", balance="edges", neighbours="both"):
    """The row block of one graph on this rank; neighbours "in", "out": edges are arcs. Ranks: all call."""
    stream = edge_stream(graph) if group.rank == 0 else None
    part, rows, _ = assemble(group, stream, balance=balance, neighbours=neighbours)
    return RowBlock(group, part, rows, exchange)


def make_blocks(group, graphs, exchange="auto", cuts=None):
    """Row blocks of graphs that share their blocks and cuts. Ranks: all call.

    cuts   [ranks+1] first block of each rank, or None: equal shares
    """
    largest = max(n for n, _, _ in graphs)
    if cuts is None:
        loaded = share_blocks(
            group, largest, [partial(edge_stream, g, f"g{i}") for i, g in enumerate(graphs)]
        )
        return [RowBlock(group, item.graph, item.rows, exchange) for item in loaded]
    out = []
    for i, graph in enumerate(graphs):
        stream = edge_stream(graph, f"g{i}") if group.rank == 0 else None
        part, rows, _ = assemble(group, stream, blocks=block_count(largest), cuts=np.asarray(cuts))
        out.append(RowBlock(group, part, rows, exchange))
    return out


# ---- whole arrays of row-partitioned ones -------------------------------------------------------------


def whole_rows(group, block, values_own):
    """[n, ...] host array from every rank's padded or real rows of one graph (host). Ranks: all call."""
    return group.gather_host(np.ascontiguousarray(values_own[: block.n_real]), block.rows.row_counts())


def whole_states(group, batch, X_own):
    """One [n, f] host array for each state of a batch. Ranks: all call."""
    X_own = group.device.get(X_own)
    out = []
    for g, block in enumerate(batch.blocks):
        rows = X_own[batch.at[g] : batch.at[g + 1]].reshape(block.n_own, batch.counts[g], X_own.shape[1])
        everything = whole_rows(group, block, rows)
        out += [everything[:, state] for state in range(batch.counts[g])]
    return out


def own_states(group, batch, X_states):
    """Inverse of whole_states: the rows of this rank, zero on padding, on the device."""
    X_own = np.zeros((batch.rows, X_states[0].shape[1]), dtype=np.float32)
    for g, block in enumerate(batch.blocks):
        rows = X_own[batch.at[g] : batch.at[g + 1]].reshape(block.n_own, batch.counts[g], X_own.shape[1])
        for state in range(batch.counts[g]):
            whole = X_states[batch.first[g] + state]
            rows[: block.n_real, state] = whole[block.lo : block.lo + block.n_real]
    return group.device.put(X_own)


def exact_dot(group, X_own, Y_own, unit=1):
    """<X, Y> over all ranks in units of `unit`, which divides all products. Ranks: all call."""
    X, Y = (group.device.get(a).astype(np.float64) for a in (X_own, Y_own))
    value = (X * Y).sum() / unit
    assert value == int(value)
    return int(group.sum_integers(np.array([int(value)]))[0])


def small_integers(seed, *shape):
    """Integers -4..4 as float32: sums of their products are exact."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float32)


# ---- graphs of networkx ---------------------------------------------------------------------------------


def graph_of(drawn):
    edges = np.array(list(drawn.edges), dtype=np.int64).reshape(-1, 2)
    return from_edges(drawn.number_of_nodes(), edges[:, 0], edges[:, 1])


def is_clique(graph, inside):
    nodes = np.flatnonzero(inside).tolist()
    near = [set(graph.indices[graph.indptr[v] : graph.indptr[v + 1]].tolist()) for v in range(graph.n)]
    return all(v in near[u] for u, v in itertools.combinations(nodes, 2))


def fmaf(a, b, c):
    """[n] float32, a b + c with one rounding, by the C library, a number at a time."""
    function = ctypes.CDLL(ctypes.util.find_library("m")).fmaf
    function.argtypes, function.restype = [ctypes.c_float] * 3, ctypes.c_float
    return np.array([function(*each) for each in zip(a.tolist(), b.tolist(), c.tolist())], dtype=np.float32)


def fused_chain(column, rows):
    """[m] float32, column [k] times rows [k, m]: one multiplication and addition after the other from 0."""
    total = np.zeros(rows.shape[1], dtype=np.float32)
    for x, row in zip(column, rows):
        total = fmaf(np.full(len(row), x, dtype=np.float32), row, total)
    return total
