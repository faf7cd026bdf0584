"""Maximum coverage at equal time: this program beside HiGHS's integer programming and greedy choices.

    python bench/coverage.py [--seconds 10] [--only NAME...]

Drawn families, of sets that cost alike and of some that do not, and closed neighbourhoods of drawn graphs.
Same time limit, one thread, one rank, one after the other; HiGHS gets no start. The greedy is that of this
program, where costs differ the best of three (Khuller, Moss and Naor 1999). Needs `highspy` (the extra
`exact`).
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from app import threads

threads.limit_threads()

import highspy  # noqa: E402
import networkx as nx  # noqa: E402

from app import solve  # noqa: E402

# name: sets, elements, probability, budget, whether sets have costs, whether elements have weights
FAMILIES = {
    "sets 200": (200, 150, 0.05, 12, False, False),
    "sets 500": (500, 1000, 0.02, 50, False, False),
    "sets 2000": (2000, 1000, 0.02, 40, False, True),
    "costs 500": (500, 1000, 0.02, 1000, True, True),
    "costs 3000": (3000, 2000, 0.01, 1000, True, True),
    "costs 10000": (10000, 5000, 0.01, 500, True, True),
}
GRAPHS = {
    "er 500": (lambda: nx.gnm_random_graph(500, 1500, seed=1), 40),
    "er 2000": (lambda: nx.gnm_random_graph(2000, 6000, seed=1), 150),
    "ba 3000": (lambda: nx.barabasi_albert_graph(3000, 3, seed=1), 60),
    "grid 3600": (lambda: nx.convert_node_labels_to_integers(nx.grid_2d_graph(60, 60)), 300),
    "er 20000": (lambda: nx.gnm_random_graph(20000, 60000, seed=1), 1500),
}
SEED, LARGEST = 1, 100
Question = tuple[sp.csr_array, np.ndarray, np.ndarray, int]


def main() -> None:
    """Solve every family, print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--only", nargs="*", default=[])
    given = parser.parse_args()
    print("| family | sets | elements | pairs | budget | this program | at most | by | s | greedy |", end="")
    print(" HiGHS | at most | s |\n" + "|---" * 13 + "|")
    for name in (*FAMILIES, *GRAPHS):
        if given.only and name not in given.only:
            continue
        asked = drawn(*FAMILIES[name]) if name in FAMILIES else neighbourhoods(*GRAPHS[name])
        inside, *_, budget = asked
        row = [name, *inside.shape, inside.nnz, budget]
        row += [*ours(*asked, given.seconds), *highs(*asked, given.seconds)]
        print("|", " | ".join(map(str, row)), "|", flush=True)


def drawn(sets: int, elements: int, p: float, budget: int, costly: bool, weighted: bool) -> Question:
    """[sets, elements] which sets hold which elements; [elements] weights, [sets] costs; the budget."""
    draws = np.random.default_rng([sets, elements, SEED])
    inside = sp.csr_array((draws.random((sets, elements)) < p).astype(float))
    weights = draws.integers(1, LARGEST + 1, elements) if weighted else np.ones(elements, dtype=np.int64)
    costs = draws.integers(1, LARGEST + 1, sets) if costly else np.ones(sets, dtype=np.int64)
    return inside, weights, costs, budget


def neighbourhoods(make: object, budget: int) -> Question:
    """Those of a graph, closed."""
    graph = make()
    near = sp.csr_array(nx.to_scipy_sparse_array(graph) + sp.eye_array(len(graph)))
    return near, np.ones(len(graph), dtype=np.int64), np.ones(len(graph), dtype=np.int64), budget


def ours(
    inside: sp.csr_array, weights: np.ndarray, costs: np.ndarray, budget: int, seconds: float
) -> tuple[int, int, str, float, int]:
    """Value, bound and how that was found, seconds, and the value of the greedy choice."""
    given = {"node_weights": costs, "element_weights": weights, "settings": {"problem.budget": float(budget)}}
    begun = time.perf_counter()
    answer = solve(inside, "coverage", search_seconds=seconds, **given)
    spent = time.perf_counter() - begun
    method = answer.bound_method.removeprefix("reductions, ")
    return answer.objective, answer.bound, method, round(spent, 1), answer.baselines["greedy"]


def highs(
    inside: sp.csr_array, weights: np.ndarray, costs: np.ndarray, budget: int, seconds: float
) -> tuple[int, int | str, float]:
    """Value of the best choice, the bound rounded down, or none, and seconds."""
    sets, elements = inside.shape
    row = sp.csr_array(np.append(costs, np.zeros(elements))[None, :].astype(float))
    table = sp.vstack([sp.hstack([-inside.T, sp.eye_array(elements)]), row], format="csr")
    program = highspy.HighsLp()
    program.num_row_, program.num_col_ = table.shape
    program.col_cost_ = np.append(np.zeros(sets), -weights.astype(float))
    program.col_lower_, program.col_upper_ = np.zeros(sets + elements), np.ones(sets + elements)
    program.row_lower_ = np.full(elements + 1, -np.inf)
    program.row_upper_ = np.append(np.zeros(elements), float(budget))
    kinds = highspy.HighsVarType
    program.integrality_ = [kinds.kInteger] * sets + [kinds.kContinuous] * elements
    program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    matrix = program.a_matrix_
    matrix.start_, matrix.index_, matrix.value_ = table.indptr, table.indices, table.data
    solver = highspy.Highs()
    for option, value in (("output_flag", False), ("threads", 1), ("time_limit", seconds)):
        solver.setOptionValue(option, value)
    begun = time.perf_counter()
    solver.passModel(program)
    solver.run()
    spent, info = time.perf_counter() - begun, solver.getInfo()
    chosen = np.asarray(solver.getSolution().col_value)[:sets] > 0.5
    held = (inside.T @ chosen.astype(float)) > 0 if len(chosen) == sets else np.zeros(elements, dtype=bool)
    if len(chosen) == sets and costs[chosen].sum() > budget:
        raise RuntimeError("HiGHS: a choice that costs too much")
    bound = -info.mip_dual_bound
    told = int(np.floor(bound + 1e-6)) if np.isfinite(bound) else "none"
    return int(weights[held].sum()), told, round(spent, 1)


if __name__ == "__main__":
    main()
