"""Set covers at equal time: this program beside HiGHS's integer programming.

    python bench/set_covers.py [--seconds 10]

Families are drawn as those of OR-Library (scp4 to scpnrh, and their unweighted forms): each element is in
a set with a probability, in at least two sets, and sets cost 1 to 100, or 1. Same time limit, one thread, one
rank; HiGHS gets no start. Needs `highspy` (the extra `exact`).
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from app import threads

threads.limit_threads()

import highspy  # noqa: E402

from app import solve  # noqa: E402

FAMILIES = [  # elements, sets, probability, whether sets have costs
    (200, 1000, 0.02, True), (200, 1000, 0.02, False), (300, 3000, 0.02, True), (400, 4000, 0.05, True),
    (500, 5000, 0.1, True), (500, 5000, 0.1, False), (1000, 500, 0.02, False),
]  # fmt: skip
SEEDS = (1, 2)
LARGEST = 100


def main() -> None:
    """Solve every family, print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10.0)
    seconds = parser.parse_args().seconds
    print("| elements | sets | p | costs | this program | at least | greedy | HiGHS | at least |")
    print("|---" * 9 + "|")
    for elements, sets, p, costly in FAMILIES:
        for seed in SEEDS:
            inside, costs = drawn(elements, sets, p, costly, seed)
            found, other = ours(inside, costs, seconds), highs(inside, costs, seconds)
            named = "1-100" if costly else "1"
            print("|", " | ".join(map(str, (elements, sets, p, named, *found, *other))), "|", flush=True)


def drawn(elements: int, sets: int, p: float, costly: bool, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """[sets, elements] bool, which sets hold which elements; [sets] what they cost."""
    draws = np.random.default_rng([elements, sets, seed])
    inside = draws.random((sets, elements)) < p
    for element in range(elements):
        inside[draws.choice(sets, 2, replace=False), element] = True
    return inside, draws.integers(1, LARGEST + 1, sets) if costly else np.ones(sets, dtype=np.int64)


def ours(inside: np.ndarray, costs: np.ndarray, seconds: float) -> tuple[float, float, float]:
    """Cost, bound, and cost of the plain greedy, without sets that are not needed."""
    answer = solve(inside, "set_cover", node_weights=costs, search_seconds=seconds)
    return answer.objective, answer.bound, min(answer.baselines.values())


def highs(inside: np.ndarray, costs: np.ndarray, seconds: float) -> tuple[int, int]:
    """Cost and bound, rounded up."""
    (sets, elements), table = inside.shape, sp.csr_array(inside.T.astype(float))
    program = highspy.HighsLp()
    program.num_col_, program.num_row_, program.col_cost_ = sets, elements, costs.astype(float)
    program.col_lower_, program.col_upper_ = np.zeros(sets), np.ones(sets)
    program.row_lower_, program.row_upper_ = np.ones(elements), np.full(elements, np.inf)
    program.integrality_ = [highspy.HighsVarType.kInteger] * sets
    program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    matrix = program.a_matrix_
    matrix.start_, matrix.index_, matrix.value_ = table.indptr, table.indices, table.data
    solver = highspy.Highs()
    for option, value in (("output_flag", False), ("threads", 1), ("time_limit", seconds)):
        solver.setOptionValue(option, value)
    solver.passModel(program)
    solver.run()
    info = solver.getInfo()
    return round(info.objective_function_value), int(np.ceil(info.mip_dual_bound - 1e-6))


if __name__ == "__main__":
    main()
