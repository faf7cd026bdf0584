"""Facility location in so many seconds, beside plain choices and HiGHS's integer programming.

    python bench/facility.py [--seconds 10] [--only NAME...]

Random graphs are made as those of OR-Library's p-median files are (Beasley 1985): n^2 / 50 edges of lengths
from 1 to 100, a spanning tree among them; points are those of TSPLIB in LOCKSTEP_DATA, or drawn evenly from a
square of side 10^6; networks join each of such points with the four nearest, and are the largest part of
that. One thread, one rank, one after the other. HiGHS (by SciPy) solves the program with a variable for each
pair, up to 300 nodes.
"""

import argparse
import os
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from app import threads

threads.limit_threads()

import networkx as nx  # noqa: E402
import scipy.sparse as sp  # noqa: E402
from scipy.optimize import Bounds, LinearConstraint, milp  # noqa: E402
from scipy.sparse.csgraph import connected_components  # noqa: E402
from scipy.spatial import cKDTree  # noqa: E402

from app import solve  # noqa: E402
from app.rng import stream  # noqa: E402

MEDIAN, CENTER, FREE = "median", "center", "uncapacitated"
HIGHS_NODES, NEAREST = 300, 4
ROWS = {
    **{f"median-{n}-{p}": (MEDIAN, n, p) for n in (100, 300, 600, 900) for p in (5, n // 10, n // 3)},
    **{f"uncapacitated-{n}": (FREE, n, 0) for n in (100, 300, 900)},
    **{f"center-{n}-{p}": (CENTER, n, p) for n, p in ((100, 10), (300, 10), (300, 30), (900, 5), (900, 90))},
    "median-u1060-20": (MEDIAN, "u1060", 20), "median-pr2392-50": (MEDIAN, "pr2392", 50),
    "median-pr2392-500": (MEDIAN, "pr2392", 500),
    **{f"center-{of}-{p}": (CENTER, of, p) for of in ("u1060", "pr2392") for p in (10, 50, 100)},
    **{
        f"{kind}-points-{n}-{p}": (kind, f"{n} points", p)
        for kind in (MEDIAN, CENTER) for n, p in ((10_000, 100), (100_000, 1000))
    },
    **{
        f"{kind}-network-{n}-{p}": (kind, f"network of {n}", p)
        for kind in (MEDIAN, CENTER) for n, p in ((4000, 40), (10_000, 100), (100_000, 1000))
    },
}  # fmt: skip


def main() -> None:
    """The rows that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--only", nargs="*", default=list(ROWS))
    given = parser.parse_args()
    print("| | nodes | facilities | this program | at least | gap % | s | plain | HiGHS | at least |")
    print("|---|---|---|---|---|---|---|---|---|---|", flush=True)
    for name in given.only:
        print("|", " | ".join(map(str, row(*ROWS[name], given.seconds))), "|", flush=True)


def row(kind: str, of: int | str, count: int, seconds: float) -> list[object]:
    """What is found of a graph of so many nodes, of the points of a file, or of so many."""
    keys = {"problem.facility": kind} | ({} if kind == FREE else {"problem.budget": float(count)})
    graph = instance(of)
    fees = costs(of) if kind == FREE else None
    more = {} if fees is None else {"node_weights": fees.tolist()}
    begun = time.perf_counter()
    found = solve(graph, "facility", search_seconds=seconds, settings=keys, **more)
    spent = time.perf_counter() - begun
    plain = min((value, label) for label, value in found.baselines.items() if value is not None)
    beside = ["-", "-"]
    if kind != CENTER and isinstance(of, int) and of <= HIGHS_NODES:
        beside = by_highs(graph, count or of, fees, seconds)
    bound = ("-", "-") if found.bound is None else (f"{found.bound:.0f}", f"{100 * found.gap:.2f}")
    told = f"{found.objective:.0f}", *bound, f"{spent:.1f}"
    called = kind if isinstance(of, int) else f"{kind}, {of}"
    return [called, len(found.assignment), len(found.nodes), *told, f"{plain[1]} {plain[0]:.0f}", *beside]


def instance(of: int | str) -> nx.Graph | sp.csr_array | np.ndarray | str:
    """What `solve` takes."""
    if isinstance(of, int):
        return drawn(of)
    if of.endswith(" points"):
        count = int(of.split()[0])
        return stream(1, "bench facility points", count).integers(10**6, size=(count, 2))
    if of.startswith("network"):
        return network(instance(f"{of.split()[-1]} points"))
    return f"{os.environ['LOCKSTEP_DATA']}/tsp/{of}.tsp"


def network(points: np.ndarray) -> sp.csr_array:
    """The largest part of the graph of the four nearest of each point; lengths are rounded, at least 1."""
    n = len(points)
    near = cKDTree(points).query(points, NEAREST + 1)[1][:, 1:]
    u, v = np.repeat(np.arange(n), NEAREST), near.ravel()
    lengths = np.maximum(np.rint(np.linalg.norm(points[u] - points[v], axis=1)), 1)
    graph = sp.coo_array((lengths, (u, v)), shape=(n, n)).tocsr()
    graph = graph.maximum(graph.T)
    part = connected_components(graph)[1]
    kept = np.flatnonzero(part == np.bincount(part).argmax())
    return sp.csr_array(graph[kept][:, kept])


def drawn(n: int) -> nx.Graph:
    """A connected graph of n nodes with n^2 / 50 edges, and lengths."""
    draws, graph = stream(1, "bench facility", n), nx.Graph()
    graph.add_nodes_from(range(n))
    order = draws.permutation(n).tolist()
    graph.add_edges_from((order[i], order[int(draws.integers(i))]) for i in range(1, n))
    while graph.number_of_edges() < n * n // 50:
        u, v = draws.integers(n, size=2).tolist()
        if u != v:
            graph.add_edge(u, v)
    for u, v in graph.edges:
        graph[u][v]["weight"] = int(draws.integers(1, 101))
    return graph


def costs(n: int) -> np.ndarray:
    """What opening costs, [n], from 50 to 400."""
    return stream(1, "bench facility costs", n).integers(50, 401, size=n)


def by_highs(graph: nx.Graph, most: int, fees: np.ndarray | None, seconds: float) -> list[str]:
    """The best value and the bound of integer programming after so many seconds."""
    n = graph.number_of_nodes()
    away = np.array(
        [[lengths[v] for v in range(n)] for _, lengths in sorted(nx.all_pairs_dijkstra_path_length(graph))]
    )
    fees = np.zeros(n) if fees is None else fees.astype(float)
    every = np.arange(n * n)  # customer i at facility j: i n + j
    served = sp.csr_array((np.ones(n * n), (every // n, n + every)), shape=(n, n + n * n))
    ones = np.ones(n * n)
    opened = sp.csr_array(
        (np.concatenate([ones, -ones]), (np.tile(every, 2), np.concatenate([n + every, every % n]))),
        shape=(n * n, n + n * n),
    )
    number = sp.csr_array((np.ones(n), (np.zeros(n, int), np.arange(n))), shape=(1, n + n * n))
    found = milp(
        np.concatenate([fees, away.ravel()]), bounds=Bounds(0, 1),
        integrality=np.concatenate([np.ones(n), np.zeros(n * n)]), options={"time_limit": seconds},
        constraints=[
            LinearConstraint(served, 1, 1), LinearConstraint(opened, -np.inf, 0),
            LinearConstraint(number, 0, most),
        ],
    )  # fmt: skip
    bound = found.mip_dual_bound
    return [
        "-" if found.x is None else f"{found.fun:.0f}", "-" if bound is None else f"{bound:.0f}"
    ]  # fmt: skip


if __name__ == "__main__":
    main()
