"""What the nodes of a graph are put on, where a case asks for that: of a file, a caller, or drawn."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from app.case.config import Case
from app.errors import CaseError, GraphError
from app.graphs.formats.qaplib import FORMAT
from app.graphs.formats.readers import open_edges
from app.graphs.formats.source import shown
from app.graphs.graph import IN_A, Graph
from app.graphs.ids import NodeIndex, name_numbers, one_id
from app.graphs.pairing import ALIGNMENT, QAP, Given, Pairing, pairing_of
from app.graphs.stream import EdgeStream
from app.graphs.whole import whole_graph
from app.partition.loaded import Loaded
from app.partition.stands_for import is_paired, refuse_family, refuse_undirected
from app.rng import stream
from app.search.assignment.text import read_pairs, read_worths

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
RIGHT = {
    ALIGNMENT: "graph.onto=FILE or, from Python, solve((A, B), 'alignment') would be right",
    QAP: "graph.onto=FILE, a QAPLIB file (.dat) or, from Python, solve((A, B), 'qap') would be right",
}


def pairing_for(case: Case, loaded: Loaded, whole: Graph, written: np.ndarray) -> Pairing | None:
    """What the nodes of a graph are put on; None where the problem asks for nothing such. Raises CaseError,
    GraphError.

    written   [n] what files call the nodes
    """
    if not is_paired(case):
        return None
    given, table = loaded.pairing, case.graph
    drawn = loaded.source == "generator"
    if given is not None and table.onto:
        raise CaseError(f"graph.onto: {whole.name} has a second graph already; leave the key out")
    if given is not None and case.problem.directed:
        told = f"problem.directed: the matrices of {whole.name} say it themselves"
        raise CaseError(f"{told}; leave the key out")
    if given is None and not (table.onto or drawn):
        raise GraphError(f"{whole.name}: found one graph; {RIGHT[case.problem.name]}")
    if given is None:
        a = matrix_of(whole, case.problem.directed)
        b, others = _drawn(case, a, loaded.seed) if drawn else _of_file(case)
        given = Given(a, b)
    else:
        rows = whole.held_ids() - whole.first_id  # its matrices are in the order of the numbers
        given = _in_order(given, rows)
        others = given.others if given.others is not None else np.arange(given.b.shape[0]) + whole.first_id
    names = (written, others)
    if table.seeds and not drawn:
        _refuse_twice("seeds", given.seeds)
        given = replace(given, seeds=_seeds_of_file(table.seeds, *names))
    if table.similarity and not drawn:
        _refuse_twice("similarity", given.gain)
        given = replace(given, gain=_gain_of_file(table.similarity, *names))
    n, m = given.a.shape[0], given.b.shape[0]
    if case.problem.name == QAP and n > m:
        right = "as many, or more, would be right"
        raise GraphError(f"{whole.name}: found {m} locations for {n} facilities; {right}")
    gain = sp.csr_array((n, m), dtype=np.int64) if given.gain is None else given.gain
    seeds = np.full(n, -1, dtype=np.int64) if given.seeds is None else given.seeds
    asked, compiled = (given.a, given.b, gain, seeds), case.run.kernels == "auto"
    return pairing_of(whole.name, case.problem.name, *asked, *names, given.labels, compiled)


def _refuse_twice(key: str, given: Any) -> None:
    if given is not None:
        raise CaseError(f"{key}: given here and in graph.{key}; one of them would be right")


def _in_order(given: Given, rows: np.ndarray) -> Given:
    """Matrices whose rows are in the order of `rows` [n]."""
    if (rows == np.arange(len(rows))).all():
        return given
    return replace(
        given,
        a=sp.csr_array(given.a)[rows][:, rows],
        gain=None if given.gain is None else sp.csr_array(given.gain)[rows],
        seeds=None if given.seeds is None else given.seeds[rows],
    )


def matrix_of(graph: Graph, directed: bool) -> sp.csr_array:
    """[n, n] float32, or int64 where there are no weights: a whole graph as a matrix; directed: arcs from row
    to column.
    """
    data = np.ones(len(graph.indices), dtype=np.int64) if graph.weights is None else graph.weights
    found = sp.csr_array((data, graph.indices, graph.indptr), shape=(graph.n, graph.n))
    if not directed or graph.arcs is None:
        return found
    rows, kept = graph.row_of(), graph.arcs & IN_A > 0
    return sp.csr_array((data[kept], (rows[kept], graph.indices[kept])), shape=(graph.n, graph.n))


# ---- the second graph --------------------------------------------------------------------------------------


def _of_file(case: Case) -> tuple[sp.csr_array, np.ndarray]:
    """The graph of graph.onto as a matrix [m, m], and what files call its nodes [m]. Raises GraphError."""
    table, limit = case.graph, int(case.memory.max_decompressed_gb * 1e9)
    source = open_edges(table.onto, table.format, limit, ids=table.ids)
    refuse_family(source)
    if source.metric is not None or source.format in ("qubo", FORMAT):
        found = "distances between all nodes" if source.metric is not None else f"a file of {source.format}"
        raise GraphError(f"{table.onto}: found {found}; a graph would be right")
    if case.problem.directed:
        refuse_undirected(source, case.problem.name)
    graph, _ = whole_graph(source)
    if not case.problem.directed:
        return matrix_of(graph, False), graph.held_ids()
    return _arcs_of(source, graph), graph.held_ids()


def _arcs_of(source: EdgeStream, graph: Graph) -> sp.csr_array:
    """[m, m], the arcs of a stream whose nodes are those of a graph; of repeats the largest weight."""
    parts = list(source.chunks())
    none = np.zeros(0, dtype=np.int64)
    u, v = (np.concatenate([part[end] for part in parts] or [none]) for end in (0, 1))
    weights = (
        np.concatenate([part[2] for part in parts]) if source.weighted and parts else np.ones(len(u), int)
    )
    if source.named:
        numbers = name_numbers(source.ids)[1].astype(np.int64)
        u, v = numbers[u], numbers[v]
    elif source.nodes is None:
        u, v = np.searchsorted(graph.ids, u), np.searchsorted(graph.ids, v)
    order = np.lexsort((-weights, v, u))
    order = order[u[order] != v[order]]
    first = np.ones(len(order), dtype=bool)
    first[1:] = (u[order][1:] != u[order][:-1]) | (v[order][1:] != v[order][:-1])
    kept = order[first]
    return sp.csr_array((weights[kept], (u[kept], v[kept])), shape=(graph.n, graph.n))


def _drawn(case: Case, a: sp.csr_array, seed: int) -> tuple[sp.csr_array, np.ndarray]:
    """What the nodes of a drawn graph are put on: a copy in a drawn order, of whose edges some are moved
    (problem.noise); of a qap the places of a grid, with the distances along it.
    """
    n, draws = a.shape[0], stream(seed, "second graph")
    if case.problem.name == QAP:
        side = int(np.ceil(np.sqrt(max(n, 1))))
        x, y = np.divmod(np.arange(n), side)
        return sp.csr_array(np.abs(x[:, None] - x) + np.abs(y[:, None] - y)), np.arange(n)
    directed = case.problem.directed
    upper = sp.coo_array(a if directed else sp.triu(a, 1))
    u, v = upper.row.astype(np.int64), upper.col.astype(np.int64)
    moved = draws.permutation(len(u))[: round(case.problem.noise * len(u))]
    move = _move_among_many if n * n > 4 * len(u) else _move_among_few
    move(u, v, moved, n, directed, draws)
    order = draws.permutation(n)
    made = sp.csr_array((upper.data, (order[u], order[v])), shape=(n, n))
    return (made if directed else sp.csr_array(made + made.T)), np.arange(n)


def _move_among_many(
    u: np.ndarray, v: np.ndarray, moved: np.ndarray, n: int, directed: bool, draws: np.random.Generator
) -> None:
    """Put the edges `moved` of edges (u, v) of n nodes, [m] int64 each, on drawn pairs that have none,
    in place: where most pairs have none, so that it is soon found.
    """
    taken = set((u * n + v).tolist())
    for edge in moved.tolist():
        while True:
            i, j = draws.integers(0, n, 2).tolist()
            i, j = (i, j) if directed or i <= j else (j, i)
            if i != j and i * n + j not in taken:
                break
        taken.add(i * n + j)
        u[edge], v[edge] = i, j


def _move_among_few(
    u: np.ndarray, v: np.ndarray, moved: np.ndarray, n: int, directed: bool, draws: np.random.Generator
) -> None:
    """The same by a list of all free pairs; edges for which none is left stay."""
    free = ~np.eye(n, dtype=bool) if directed else np.triu(np.ones((n, n), dtype=bool), 1)
    free[u, v] = False
    pairs = np.flatnonzero(free)
    chosen = pairs[draws.permutation(len(pairs))[: len(moved)]]
    edges = moved[: len(chosen)]
    u[edges], v[edges] = np.divmod(chosen, n)


# ---- pairs -------------------------------------------------------------------------------------------------


def _seeds_of_file(path: str, ids: np.ndarray, others: np.ndarray) -> np.ndarray:
    """[n] int64, the places that lines of pairs name. Raises GraphError."""
    found, taken = np.full(len(ids), -1, dtype=np.int64), np.zeros(len(others), dtype=bool)
    for line, i, x in read_pairs(path, ids, others):
        for already, names, at in ((found[i] >= 0, ids, i), (taken[x], others, x)):
            if already:
                told = f"node {one_id(names, at)} is in a pair already"
                raise GraphError(f"{path}:{line}: {told}; one would be right")
        found[i], taken[x] = x, True
    return found


def _gain_of_file(path: str, ids: np.ndarray, others: np.ndarray) -> sp.csr_array:
    """[n, m] float64, what lines of pairs and numbers say. Raises GraphError."""
    cells: dict[tuple[int, int], float] = {}
    for line, i, x, word in read_worths(path, ids, others):
        try:
            value = float(word) if NUMBER.fullmatch(word) else float("nan")
        except OverflowError:
            value = float("nan")
        if not np.isfinite(value):
            raise GraphError(f"{path}:{line}: found {shown(word)!r}; a number would be right")
        if (i, x) in cells:
            told = f"the pair {one_id(ids, i)}, {one_id(others, x)} stands there twice"
            raise GraphError(f"{path}:{line}: {told}; once would be right")
        cells[i, x] = value
    rows, columns = (np.array([pair[end] for pair in cells], dtype=np.int64) for end in (0, 1))
    data = np.array(list(cells.values()), dtype=np.float64)
    return sp.csr_array((data, (rows, columns)), shape=(len(ids), len(others)))


def rows_of(nodes: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """[k] int64 rows of ids [k]; -1 where there is none."""
    return NodeIndex(ids).find(nodes)
