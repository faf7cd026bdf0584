"""What a time limit asks for and what an answer takes, in seconds of the processor.

    python bench/time_limits.py [SECONDS,...] [NODES,...] [PROBLEM ...]

Clocks of the program are replaced by that of its own process, so that other work on the machine counts for
nothing: on one rank that is what a machine without other work would show. Graphs are drawn: sparse ones of
2,000, 50,000 and 300,000 nodes with eight neighbours each on average, nodes and edges with whole weights
from 1 to 99; `-hubs` behind a problem: such ones around hubs (preferential attachment, four edges a node),
`-rows`: with a limit of memory that leaves them on rows. Families have as many sets as nodes, each with eight
elements; cities are random points, customers likewise, at most 20,000 of them; functions of 0-1 variables
have products of the edges. Graphs are aligned with themselves, nodes shuffled; facilities are sought in
graphs, and with `-points` among points; assignments have flows and distances of 2,000 places at most, and
`arrangement-bandwidth` is one of the other measures of arrangements.
"""

import sys
import time
from collections.abc import Sequence
from typing import Any

time.perf_counter = time.monotonic = time.process_time  # before anything else asks for one

import numpy as np  # noqa: E402
import scipy.sparse as sp  # noqa: E402

from app import solve  # noqa: E402
from app.api import solve as calls  # noqa: E402

SECONDS, SIZES = (3.0,), (2000, 50_000, 300_000)
NODE_WEIGHTED = ("mvc", "mis", "mds", "fvs", "dfvs", "dismantle", "clique")
EDGE_WEIGHTED = ("maxcut", "communities", "steiner", "coloring", "partition", "facility")
ARCS = ("dfvs", "influence", "ordering")  # of which edges are turned at random
ONE_WAY = (*ARCS, "qubo", "ising")
ONLY_SMALL = {"cvrp": 20_000, "qap": 2000}  # customers; places
OTHERS = ("set_cover", "hitting_set", "coverage", "influence", "qubo", "ising", "tsp", "cvrp", "facility")
UNWEIGHTED = ("dense", "treewidth", "arrangement", "ordering", "alignment", "qap")
KEYS = {
    "dismantle": "problem.component", "steiner": "problem.terminals", "coverage": "problem.budget",
    "facility": "problem.budget",
}  # fmt: skip
SHARES = {"dismantle": 100, "steiner": 25, "coverage": 50, "facility": 1000}  # nodes to one of these
KEYS_ALIKE = {"partition": {"problem.parts": 8}, "influence": {"problem.budget": 50}}
PER_EDGE = 120  # bytes of memory.whole_graph_mb for each edge of what is left on rows
Drawn = tuple[Any, dict[str, Any], dict[str, Any]]


def random_edges(draws: np.random.Generator, n: int) -> np.ndarray:
    """[m, 2] int64, those of a sparse random graph."""
    u, v = draws.integers(0, n, size=(2, 4 * n))
    one = u != v
    return np.unique(np.sort(np.stack([u[one], v[one]], axis=1), axis=1), axis=0)


def hub_edges(draws: np.random.Generator, n: int) -> np.ndarray:
    """[m, 2] int64, each node with four edges to ends of earlier ones (Barabasi and Albert 1999)."""
    at = np.arange(1, n)
    ends = np.empty(8 * n, dtype=np.int64)  # of the edges so far, two each
    ends[:8] = 0
    picks = (draws.random((n, 4)) * 8 * np.arange(n)[:, None]).astype(np.int64)
    for v in at.tolist():
        ends[8 * v : 8 * v + 4], ends[8 * v + 4 : 8 * v + 8] = v, ends[picks[v]]
    pairs = np.stack([np.repeat(np.arange(n), 4), ends.reshape(n, 2, 4)[:, 1].ravel()], axis=1)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    return np.unique(np.sort(pairs, axis=1), axis=0)


def drawn(problem: str, n: int, like: str = "") -> Drawn:
    """(graph, named arguments, settings) as `solve` takes them."""
    draws, settings = np.random.default_rng(7), dict(KEYS_ALIKE.get(problem, {}))
    if problem in KEYS:
        settings[KEYS[problem]] = n // SHARES[problem]
    if problem == "qap":
        flow, distance = draws.integers(0, 10, (2, n, n)).astype(float)
        return (np.triu(flow, 1) + np.triu(flow, 1).T, np.triu(distance, 1) + np.triu(distance, 1).T), {}, {}
    if problem in ("tsp", "cvrp") or like == "points":
        points = draws.random((n, 2)) * 1e6
        if problem == "facility":
            return points, {}, settings
        demands = draws.integers(1, 20, n)
        demands[0] = 0
        return points, {"demands": demands, "capacity": 200.0} if problem == "cvrp" else {}, settings
    if problem in ("set_cover", "hitting_set", "coverage"):
        at, of = np.repeat(np.arange(n), 8), draws.integers(0, n, 8 * n)
        held = sp.csr_matrix((np.ones(8 * n), (at, of)), shape=(n, n))
        held.data[:] = 1.0
        held = held + sp.identity(n, format="csr")
        return (held > 0).astype(float).tocsr(), {}, settings
    edges = hub_edges(draws, n) if like == "hubs" else random_edges(draws, n)
    if problem in ARCS:
        turned = draws.random(len(edges)) < 0.5
        edges[turned] = edges[turned][:, ::-1]
    weighted = problem in EDGE_WEIGHTED
    length = draws.integers(1, 100, len(edges)) if weighted else np.ones(len(edges))
    if problem in ("qubo", "ising"):
        length = draws.integers(-99, 100, len(edges))
    if like == "rows":
        settings["memory.whole_graph_mb"] = PER_EDGE * len(edges) / 4e6
    graph = sp.csr_matrix((length.astype(float), edges.T), shape=(n, n))
    if problem == "alignment":
        graph, shuffled = graph + graph.T, draws.permutation(n)
        return (graph, graph[shuffled][:, shuffled].tocsr()), {}, settings
    if problem == "arrangement" and like:
        settings["problem.arrange"] = like
    weights = {"node_weights": draws.integers(1, 100, n)} if problem in NODE_WEIGHTED else {}
    return graph if problem in ONE_WAY else graph + graph.T, weights, settings


def taken(named: str, n: int, seconds: float) -> tuple[float, float, float]:
    """s of reading, s that the call takes after that, and the objective."""
    problem, _, like = named.partition("-")
    graph, more, settings = drawn(problem, min(n, ONLY_SMALL.get(problem, n)), like)
    made, begun = calls.solve_graph, []

    def solve_graph(*given: Any) -> Any:
        begun.append(time.perf_counter())
        return made(*given)

    calls.solve_graph, called = solve_graph, time.perf_counter()
    try:
        found = solve(graph, problem, search_seconds=seconds, settings=settings, **more)
    finally:
        calls.solve_graph = made
    return begun[0] - called, time.perf_counter() - begun[0], found.objective


def main(limits: Sequence[float], sizes: Sequence[int], problems: Sequence[str]) -> None:
    """A line for each problem, size and limit."""
    print("problem          nodes  asked s  read s  taken s  times      objective")
    for n in sizes:
        for problem in problems:
            for seconds in limits:
                read, spent, objective = taken(problem, n, seconds)
                times = spent / seconds
                told = f"{problem:14s} {n:7d} {seconds:8g} {read:7.2f} {spent:8.2f} {times:6.2f}"
                print(f"{told} {objective:14.10g}", flush=True)


if __name__ == "__main__":
    asked = [tuple(float(each) for each in word.split(",")) for word in sys.argv[1:3]]
    wanted = [int(each) for each in asked[1]] if asked[1:] else SIZES
    likes = "mds-hubs", "fvs-hubs", "mds-rows", "maxcut-rows"
    everything = (*NODE_WEIGHTED, *EDGE_WEIGHTED, *OTHERS, *UNWEIGHTED, *likes)
    main(asked[0] if asked else SECONDS, wanted, sys.argv[3:] or everything)
