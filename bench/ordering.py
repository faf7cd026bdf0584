"""Orders of little weight backward at equal time: this program beside HiGHS, igraph and plain heuristics.

    python bench/ordering.py [--seconds 10] [FILE...]

Questions are drawn: matrices of uniform entries, tables with heavy tails as input-output tables have them,
tournaments with a planted ranking and noise, sparse digraphs with and without weights; FILEs hold matrices as
LOLIB has them. HiGHS (by SciPy) solves an integer program with a row for each cycle of net arcs known:
shortest ones that its last point leaves, until it leaves none; its order is the best of those that its points
leave, completed greedily. igraph's feedback_arc_set, where it is installed, finds an order by the heuristic
of Eades, Lin and Smyth; its exact method, an integer program by GLPK, has no time limit and is left out. One
thread, one rank. Objectives are weights of backward arcs.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from app import threads

threads.limit_threads()

import numpy as np  # noqa: E402
import scipy.sparse as sp  # noqa: E402
from scipy.optimize import Bounds, LinearConstraint, milp  # noqa: E402

from app import check, solve  # noqa: E402
from app.bounds.ordering.cycles import Finder  # noqa: E402
from app.graphs.formats.readers import open_edges  # noqa: E402
from app.graphs.ordering import NetArcs, net_of  # noqa: E402
from app.search.ordering.baselines import eades_lin_smyth  # noqa: E402

LEAST = 0.2  # s that a program of HiGHS gets
Question = tuple[str, int, np.ndarray]


def main() -> None:
    """Solve every question, print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*")
    parser.add_argument("--seconds", type=float, default=10.0)
    given = parser.parse_args()
    print("| question | nodes | arcs | this program | at least | by | s | proved again |", end="")
    print(" HiGHS | at least | s | igraph | Eades-Lin-Smyth | net weight |\n" + "|---" * 14 + "|")
    for name, n, arcs in map(read, given.files) if given.files else drawn():
        row = [name, n, len(arcs)]
        begun = time.perf_counter()
        keys = {"output.certificates": True}
        matrix = sp.csr_array((arcs[:, 2], (arcs[:, 0], arcs[:, 1])), shape=(n, n))
        answer = solve(matrix, "ordering", search_seconds=given.seconds, settings=keys)
        method = (answer.bound_method or "-").removeprefix("reductions, ")
        row += [answer.objective, answer.bound, method, f"{time.perf_counter() - begun:.1f}"]
        proved = check(matrix, answer).bound
        row += ["yes" if proved == answer.bound else proved]
        net, paid = net_of(n, *arcs.T)
        row += highs(net, paid, given.seconds)
        row.append(igraph_order(n, arcs))
        row += [answer.baselines.get(each, "-") for each in ("Eades-Lin-Smyth", "net weight")]
        print("|", " | ".join(map(str, row)), "|", flush=True)


def drawn() -> Iterator[Question]:
    """Names, nodes, and arcs [m, 3] with weights."""
    for n in (30, 50, 150):
        draws = np.random.default_rng(n)
        yield f"uniform entries of 0 to 100, {n}", n, _listed(draws.integers(0, 101, (n, n)))
    for n in (44, 60, 75):
        draws = np.random.default_rng(n)
        scale = np.exp(draws.normal(0, 1, n))
        yield (
            f"heavy tails, {n}",
            n,
            _listed((np.exp(draws.normal(2, 2, (n, n))) * scale[:, None]).astype(int)),
        )
    for n, noise in ((60, 0.05), (100, 0.2), (200, 0.1)):
        draws = np.random.default_rng(n)
        wins = np.triu(draws.random((n, n)) > noise, 1)
        table = (wins | np.tril(~wins.T, -1)).astype(int)
        rank = draws.permutation(n)
        yield f"planted ranking, {noise:.0%} of games the other way", n, _listed(table[np.ix_(rank, rank)])
    for n, degree, largest in ((100, 3, 1), (1000, 2, 1), (1000, 3, 100), (5000, 4, 1)):
        draws = np.random.default_rng(n)
        u, v = draws.integers(0, n, (2, degree * n))
        table = sp.csr_array((draws.integers(1, largest + 1, len(u)), (u, v)), shape=(n, n)).tocoo()
        arcs = np.stack([table.row, table.col, table.data], axis=1).astype(np.int64)
        what = "weights of 1 to 100" if largest > 1 else "no weights"
        yield f"sparse, degree {degree}, {what}", n, arcs[arcs[:, 0] != arcs[:, 1]]


def _listed(matrix: np.ndarray) -> np.ndarray:
    """[m, 3] int64, the entries off the diagonal that are not 0."""
    np.fill_diagonal(matrix, 0)
    u, v = np.nonzero(matrix)
    return np.stack([u, v, matrix[u, v]], axis=1).astype(np.int64)


def read(path: str) -> Question:
    """A matrix of LOLIB."""
    stream = open_edges(path, "lolib")
    chunks = [np.stack([u, v, np.rint(w).astype(np.int64)], axis=1) for u, v, w in stream.chunks()]
    arcs = np.concatenate(chunks)
    return Path(path).stem, stream.nodes, arcs[arcs[:, 0] != arcs[:, 1]]


def highs(net: NetArcs, paid: int, seconds: float) -> list[str]:
    """What the order of HiGHS pays, its bound, and how long it took."""
    begun, finder = time.perf_counter(), Finder(net)
    number = {pair: i for i, pair in enumerate(zip(net.tails.tolist(), net.heads.tolist()))}
    cycles: list[tuple[int, ...]] = []
    point, bound, best = np.zeros(net.arcs), 0.0, net.cost(eades_lin_smyth(net)[0])
    while True:
        new = finder.violated(point, max(5 * net.n, 500))
        kept = point < 0.5
        left = NetArcs(net.n, net.tails[kept], net.heads[kept], net.weights[kept])
        best = min(best, net.cost(eades_lin_smyth(left)[0]))
        cycles += new
        rest = seconds - (time.perf_counter() - begun)
        if not new or rest <= 0:
            break
        rows = np.repeat(np.arange(len(cycles)), [len(cycle) for cycle in cycles])
        steps = [number[pair] for cycle in cycles for pair in zip(cycle, (*cycle[1:], cycle[0]))]
        table = sp.csr_array((np.ones(len(steps)), (rows, steps)), shape=(len(cycles), net.arcs))
        solved = milp(
            net.weights.astype(float), integrality=np.ones(net.arcs), bounds=Bounds(0, 1),
            constraints=LinearConstraint(table, 1), options={"time_limit": max(rest, LEAST)},
        )  # fmt: skip
        bound = max(bound, solved.mip_dual_bound or 0.0)
        if solved.x is None:
            break
        point = np.rint(solved.x)
    lower = paid + max(int(np.ceil(bound - 1e-6)), 0)
    return [str(paid + best), str(lower), f"{time.perf_counter() - begun:.1f}"]


def igraph_order(n: int, arcs: np.ndarray) -> str:
    """What igraph's feedback arc set weighs; "-" without it."""
    try:
        import igraph
    except ImportError:
        return "-"
    graph = igraph.Graph(n, arcs[:, :2].tolist(), directed=True)
    chosen = graph.feedback_arc_set(weights=arcs[:, 2].tolist(), method="eades")
    return str(int(arcs[chosen, 2].sum()))


if __name__ == "__main__":
    main()
