"""Quadratic assignment and graph alignment in so many seconds, beside SciPy's heuristics in equal time.

    python bench/assignment.py [--seconds 5] [--only NAME...]

Assignments are drawn as Taillard drew his (1991, 1995): flows and distances evenly from 0 to 99 (uniform),
or distances of points and flows that differ by powers of ten (structured); or with flows on the places of a
grid, as Nugent, Vollmann and Ruml did (1968). Alignments are of a random graph, or one of LOCKSTEP_DATA, with
a copy whose nodes are in a drawn order and of whose edges a share is moved; `right` is the share of nodes
that are where the copy has them. SciPy's quadratic_assignment (faq and 2opt) begins anew, from random starts,
until the time is over; a run that takes longer is waited for up to ten times as long, and "-" stands where
the first was not done by then. One thread, one rank, one after the other.
"""

import argparse
import multiprocessing
import os
import sys
import time
import warnings
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from app import threads

threads.limit_threads()

import networkx as nx  # noqa: E402
import scipy.sparse as sp  # noqa: E402
from scipy.optimize import quadratic_assignment  # noqa: E402

from app import solve  # noqa: E402
from app.graphs.formats.readers import open_edges  # noqa: E402
from app.graphs.whole import whole_graph  # noqa: E402
from app.rng import stream  # noqa: E402

LATEST = 10  # times the seconds of a row that one run of SciPy may take
QAPS = {
    **{f"uniform-{n}": ("uniform", n) for n in (12, 20, 30, 50, 80)},
    **{f"structured-{n}": ("structured", n) for n in (30, 60, 100)},
    **{f"grid-{n}": ("grid", n) for n in (9, 12, 16, 20, 25, 30)},
}
ALIGNMENTS = {
    "er-100": ("er", 100, 0.1, 0.05), "er-500": ("er", 500, 0.05, 0.05), "er-1000": ("er", 1000, 0.1, 0.05),
    "er-200-noisy": ("er", 200, 0.1, 0.15), "ba-200": ("ba", 200, 3, 0.1), "ba-1000": ("ba", 1000, 3, 0.1),
    "ba-2000": ("ba", 2000, 3, 0.2), "ba-10000": ("ba", 10000, 3, 0.01),
}  # fmt: skip


def main() -> None:
    """The rows that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument(
        "--files", nargs="*", default=[], help="files of graphs in LOCKSTEP_DATA, aligned too"
    )
    given = parser.parse_args()
    wanted = given.only or [*QAPS, *ALIGNMENTS]
    print("| | n | this program | at least | gap % | s | by | faq | 2opt |", flush=True)
    for name in (each for each in wanted if each in QAPS):
        print("|", " | ".join(map(str, assignment(name, *QAPS[name], given.seconds))), "|", flush=True)
    print("| | n | edges | kept | at most | right | s | faq kept | right | runs |", flush=True)
    for name in (each for each in wanted if each in ALIGNMENTS):
        first, noise = graph_of(*ALIGNMENTS[name])
        print("|", " | ".join(map(str, alignment(name, first, noise, given.seconds))), "|", flush=True)
    for name in given.files:
        graph = whole_graph(open_edges(str(Path(os.environ["LOCKSTEP_DATA"]) / name)))[0]
        ones = np.ones(len(graph.indices), dtype=np.int64)
        first = sp.csr_array((ones, graph.indices, graph.indptr), shape=(graph.n, graph.n))
        told = alignment(Path(name).stem, first, 0.05, given.seconds)
        print("|", " | ".join(map(str, told)), "|", flush=True)


def drawn(kind: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Flows and distances."""
    draws = stream(n, f"bench {kind}")
    if kind == "uniform":
        a, b = (np.triu(draws.integers(0, 100, (n, n)), 1) for _ in range(2))
        return a + a.T, b + b.T
    if kind == "structured":
        points = draws.uniform(0, 1000, (n, 2))
        b = np.rint(np.hypot(*(points[:, None] - points[None]).transpose(2, 0, 1))).astype(np.int64)
        a = np.triu(np.floor(10 ** draws.uniform(-10, 4, (n, n))).astype(np.int64), 1)
        return a + a.T, b
    a = np.triu(draws.integers(1, 11, (n, n)) * (draws.random((n, n)) < 0.65), 1)
    x, y = np.divmod(np.arange(n), int(np.ceil(np.sqrt(n))))
    return a + a.T, np.abs(x[:, None] - x) + np.abs(y[:, None] - y)


def graph_of(kind: str, n: int, d: float, noise: float) -> tuple[sp.csr_array, float]:
    """A random graph as a matrix."""
    graph = nx.gnp_random_graph(n, d, seed=n) if kind == "er" else nx.barabasi_albert_graph(n, d, seed=n)
    return nx.to_scipy_sparse_array(graph, format="csr", dtype=np.int64), noise


def noisy(first: sp.csr_array, noise: float) -> tuple[sp.csr_array, np.ndarray]:
    """A copy in another order, some of whose edges are moved; where each node has gone [n]."""
    n, draws = first.shape[0], stream(first.shape[0], "bench copy")
    upper = sp.coo_array(sp.triu(first, 1))
    edges = set(zip(upper.row.tolist(), upper.col.tolist()))
    inside = sorted(edges)
    kept = edges - {inside[i] for i in draws.permutation(len(edges))[: round(noise * len(edges))]}
    while len(kept) < len(edges):
        u, v = sorted(draws.integers(0, n, 2).tolist())
        if u != v and (u, v) not in edges:
            kept.add((u, v))
    order = draws.permutation(n)
    u, v = order[np.array(sorted(kept)).T]
    ones = np.ones(2 * len(u), dtype=np.int64)
    return sp.csr_array((ones, (np.append(u, v), np.append(v, u))), shape=(n, n)), order


def restarted(
    a: np.ndarray, b: np.ndarray, method: str, seconds: float, maximize: bool = False
) -> tuple[np.ndarray, int, int] | None:
    """The best of SciPy's runs that begin within so many seconds, what it is worth, and how many there were;
    None where not even the first was done in LATEST times as many: its process is ended then.
    """
    spawn = multiprocessing.get_context("spawn")  # no copy of a process that runs MPI
    receiving, sending = spawn.Pipe(duplex=False)
    process = spawn.Process(target=_runs, args=(sending, a, b, method, seconds, maximize), daemon=True)
    process.start()
    sending.close()
    receiving.recv()  # it has started
    end, best = time.perf_counter() + LATEST * seconds, None
    while receiving.poll(max(0.0, end - time.perf_counter())):
        try:
            best = receiving.recv()
        except EOFError:
            break
    process.kill()
    process.join()
    return best


def _runs(
    told: Connection, a: np.ndarray, b: np.ndarray, method: str, seconds: float, maximize: bool
) -> None:
    """SciPy's runs from random starts, the first of faq from the flat matrix; after each the best is told."""
    told.send("started")
    end, best, count, sign = time.perf_counter() + seconds, None, 0, -1 if maximize else 1
    while not count or time.perf_counter() < end:
        start = {"P0": "randomized"} if method == "faq" and count else {}
        options = {"rng": np.random.default_rng(count), "maximize": maximize, **start}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            p = quadratic_assignment(a, b, method=method, options=options).col_ind
        value, count = int((a * b[np.ix_(p, p)]).sum()), count + 1
        best = (p, value) if best is None or sign * value < sign * best[1] else best
        told.send((*best, count))


def assignment(name: str, kind: str, n: int, seconds: float) -> list[object]:
    """One row."""
    a, b = drawn(kind, n)
    found = solve((a, b), "qap", search_seconds=seconds, settings={"search.baselines": False})
    spent = max(seconds, found.seconds)
    rivals = [restarted(a, b, method, spent) for method in ("faq", "2opt")]
    told = ["-" if each is None else f"{each[1]} ({each[2]})" for each in rivals]
    gap = f"{100 * found.gap:.2f}"
    return [name, n, found.objective, found.bound, gap, f"{found.seconds:.1f}", found.bound_method, *told]


def alignment(name: str, first: sp.csr_array, noise: float, seconds: float) -> list[object]:
    """One row."""
    n, (second, order) = first.shape[0], noisy(first, noise)
    found = solve((first, second), "alignment", search_seconds=seconds, settings={"search.baselines": False})
    right = np.mean([found.mapping[i] == order[i] for i in range(n)])
    told = [name, n, first.nnz // 2, found.objective, found.bound, f"{right:.3f}", f"{found.seconds:.1f}"]
    if n > 2500:  # a full matrix takes too long
        return [*told, "-", "-", "-"]
    a, b = (each.toarray().astype(np.float64) for each in (first, second))
    rival = restarted(a, b, "faq", max(seconds, found.seconds), maximize=True)
    if rival is None:
        return [*told, "-", "-", "-"]
    p, value, count = rival
    return [*told, value // 2, f"{(p == order).mean():.3f}", count]


if __name__ == "__main__":
    main()
