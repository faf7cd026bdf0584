"""Bounds of Steiner trees: dual ascent alone against all that follows, on graphs like SteinLib's classes.

    python bench/steiner_bounds.py [NAME... | FILE...] [--seeds 1 2 3] [--seconds 1 10] [--search 5]

NAME is one of GRAPHS, without any all of them; a FILE is in SteinLib's format. Reductions go before, and all
know the best tree of a search of `--search` seconds, of CPU time as are the limits; gaps are to the best tree
that any of them found. Every bound is proved from its certificate; what that takes is the last column.
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from app import threads

threads.limit_threads()

import networkx as nx  # noqa: E402
import numpy as np  # noqa: E402

from app.bounds.steiner import bounds as steiner_bounds  # noqa: E402
from app.bounds.steiner import program  # noqa: E402
from app.bounds.steiner.bounds import SteinerBounds  # noqa: E402
from app.graphs.graph import Graph, from_edges  # noqa: E402
from app.graphs.steiner import SteinerCore, steiner_of  # noqa: E402
from app.reductions.steiner.reducer import SteinerReducer  # noqa: E402
from app.search.steiner.baselines import grown  # noqa: E402
from app.search.steiner.search import SteinerSearch  # noqa: E402

STEPS = 1 << 16  # of the search between two looks at the clock
Drawn = tuple[Graph, np.ndarray]


def main() -> None:
    """Measure every graph and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(GRAPHS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--seconds", type=float, nargs="+", default=[1, 10])
    parser.add_argument("--search", type=float, default=5)
    options = parser.parse_args()
    limits = sorted(options.seconds)
    columns = "graph", "nodes, edges, terminals", "reduced to", "CPU s", "gap, dual ascent", "gap, all"
    print(f"| {' | '.join((*columns, 'cases', 'check, s'))} |\n" + "|---" * 8 + "|")
    for name in options.names:
        for seed in options.seeds if name in GRAPHS else [0]:
            measure(
                f"{name}-{seed}" if name in GRAPHS else Path(name).stem, question(name, seed), options, limits
            )


def question(name: str, seed: int) -> SteinerCore:
    """Of a name or a file."""
    if name in GRAPHS:
        return steiner_of(*GRAPHS[name](seed)).core
    graph, terminals = read(Path(name))
    return steiner_of(graph, terminals).core


def read(path: Path) -> Drawn:
    """A file in SteinLib's format: its lines E, A and T."""
    words = [line.split() for line in path.read_text().splitlines()]
    edges = np.array([line[1:4] for line in words if line[:1] in (["E"], ["A"])], dtype=np.float64)
    terminals = [int(line[1]) - 1 for line in words if len(line) == 2 and line[0] == "T"]
    ends = edges[:, :2].astype(np.int64) - 1
    return from_edges(int(ends.max()) + 1, *ends.T, edges[:, 2]), np.array(terminals)


def measure(name: str, core: SteinerCore, options: argparse.Namespace, limits: list[float]) -> None:
    """The lines of one graph."""
    told = f"{core.n}, {core.edges}, {len(core.terminals)}"
    reducer = SteinerReducer(core)
    reducer.reduce(lambda: False)
    left = reducer.kernel()
    core, paid = left.core, left.paid
    if len(core.terminals) < 2:
        print(f"| {name} | {told} | 0 | 0 | **0** | **0** | 0 | 0.0 |", flush=True)
        return
    upper = best_tree(core, options.search)
    with patch.object(program, "available", lambda: False), patch.object(steiner_bounds, "CASE_ARCS", 0):
        alone = follow(core, upper, limits)
    every = follow(core, upper, limits)
    best = min(each[1] for each in (*alone, *every)) + paid
    for limit, one, other in zip(limits, alone, every):
        gaps = " | ".join(gap(best, each[0] + paid) for each in (one, other))
        size = f"{core.n}, {core.edges}, {len(core.terminals)}"
        print(f"| {name} | {told} | {size} | {limit:g} | {gaps} | {other[2]} | {other[3]:.1f} |", flush=True)


def gap(best: int, lower: int) -> str:
    """Of a bound to the best tree."""
    return "**0**" if lower == best else f"{1 - lower / best:.2%}".replace("%", " %")


def best_tree(core: SteinerCore, seconds: float) -> int:
    """The length of the best tree after so many seconds of CPU time."""
    search, begun = SteinerSearch(core, grown(core, True), 1), time.process_time()
    while time.process_time() - begun < seconds:
        search.run(STEPS)
    return search.best


def follow(core: SteinerCore, upper: int, limits: list[float]) -> list[tuple[int, int, int, float]]:
    """At each limit of CPU time: bound, best tree, cases, seconds of the check."""
    spent, out, bounds = 0.0, [], SteinerBounds(core)
    bounds.expect(limits[-1])
    for limit in limits:
        begun = time.process_time()
        more = True
        while more and spent + time.process_time() - begun < limit:
            more = bounds.improve(0.0, upper)
            found = bounds.pieces()
            upper = upper if found is None else core.length(found)
        spent += time.process_time() - begun
        begun = time.process_time()
        bounds.proof().check(core)
        out.append((bounds.value, upper, bounds.cases, time.process_time() - begun))
    return out


# ---- graphs ------------------------------------------------------------------------------------------------


def sparse(n: int, m: int, k: int) -> Callable[[int], Drawn]:
    """As SteinLib's B to E: lengths from 1 to 10."""

    def draw(seed: int) -> Drawn:
        random = np.random.default_rng(seed)
        graph = nx.random_labeled_tree(n, seed=seed)
        while missing := m - graph.number_of_edges():
            ends = random.integers(n, size=(missing, 2))
            graph.add_edges_from(ends[ends[:, 0] != ends[:, 1]].tolist())
        edges = np.array(graph.edges)
        return from_edges(n, *edges.T, random.integers(1, 11, len(edges)).astype(float)), chosen(random, n, k)

    return draw


def grid(rows: int, columns: int, holes: int, k: int) -> Callable[[int], Drawn]:
    """As those of circuits: a grid with lines at uneven distances, and rectangles that are not there."""

    def draw(seed: int) -> Drawn:
        random = np.random.default_rng(seed)
        across, down = random.integers(20, 100, rows), random.integers(20, 100, columns)
        graph = nx.grid_2d_graph(rows, columns)
        for _ in range(holes):
            x, y, w, h = *random.integers(1, (rows - 4, columns - 4)), *random.integers(2, 4, 2)
            graph.remove_nodes_from([(x + i, y + j) for i in range(w) for j in range(h)])
        nodes = sorted(max(nx.connected_components(graph), key=len))
        number = {node: i for i, node in enumerate(nodes)}
        edges = [(number[a], number[b], a, b) for a, b in graph.edges if a in number]
        length = [
            float(across[min(a[0], b[0])] if a[0] != b[0] else down[min(a[1], b[1])]) for *_, a, b in edges
        ]
        u, v = np.array([each[:2] for each in edges]).T
        return from_edges(len(nodes), u, v, np.array(length)), chosen(random, len(nodes), k)

    return draw


def cube(d: int, perturbed: bool) -> Callable[[int], Drawn]:
    """As SteinLib's hc: every other node of a hypercube is a terminal."""

    def draw(seed: int) -> Drawn:
        u = np.repeat(np.arange(1 << d), d)
        v = u ^ (1 << np.tile(np.arange(d), 1 << d))
        u, v = u[u < v], v[u < v]
        random = np.random.default_rng(seed)
        lengths = random.integers(100, 111, len(u)).astype(float) if perturbed else np.ones(len(u))
        return from_edges(1 << d, u, v, lengths), np.array(
            [v for v in range(1 << d) if v.bit_count() % 2 == 0]
        )

    return draw


def incidence(n: int, m: int, k: int) -> Callable[[int], Drawn]:
    """As SteinLib's I: edges at terminals are longer; as many as all pairs: a complete graph."""

    def draw(seed: int) -> Drawn:
        random = np.random.default_rng(seed)
        terminals = chosen(random, n, k)
        graph = nx.compose(nx.random_labeled_tree(n, seed=seed), nx.gnm_random_graph(n, m, seed=seed))
        edges = np.array(graph.edges)
        mean = 100.0 * (1 + np.isin(edges, terminals).sum(axis=1))
        lengths = np.maximum(np.rint(random.normal(mean, 5.0)), 1.0)
        return from_edges(n, *edges.T, lengths), terminals

    return draw


def chosen(random: np.random.Generator, n: int, k: int) -> np.ndarray:
    """[k] different nodes."""
    return random.choice(n, k, replace=False)


GRAPHS = {
    "b18": sparse(100, 200, 50),
    "c5": sparse(500, 625, 250),
    "c13": sparse(500, 2500, 83),
    "c18": sparse(500, 12500, 83),
    "d10": sparse(1000, 2000, 500),
    "d13": sparse(1000, 5000, 167),
    "d18": sparse(1000, 25000, 167),
    "e3": sparse(2500, 3125, 417),
    "e10": sparse(2500, 5000, 1250),
    "e13": sparse(2500, 12500, 417),
    "grid-25": grid(25, 25, 8, 20),
    "grid-50": grid(50, 50, 20, 60),
    "grid-100": grid(100, 100, 60, 150),
    "hc6u": cube(6, False),
    "hc7p": cube(7, True),
    "i80": incidence(80, 350, 16),
    "i160": incidence(160, 812, 24),
    "i160-complete": incidence(160, 12720, 24),
    "i320": incidence(320, 1845, 34),
}

if __name__ == "__main__":
    main()
