"""Covering a graph with and without compaction of the residual graph (rule `fraction`)."""

import sys
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import scipy

from app.rl import compact
from app.rl.rollout import roll_out
from bench import subjects
from bench.harness import Effort, Record, compare

GRAPH = "BA n=14,400 d=4"


def about() -> dict[str, str]:
    """Versions that matter."""
    return {"numpy": np.__version__, "scipy": scipy.__version__}


def measure(effort: Effort, quick: bool) -> Iterator[Record]:
    """One ratio, and whether both covers are the same."""
    group = subjects.open_group()
    block = subjects.load_block(group, GRAPH)
    net, arrays = subjects.formula_network(2, 16)
    params = subjects.parameters(group, net, arrays)
    smallest, rollouts = compact.SMALLEST, {}

    def roll(compacting: bool) -> None:
        compact.SMALLEST = smallest if compacting else sys.maxsize
        rollouts[compacting] = roll_out(group, net, params, block, "fraction", 0.01)
        compact.SMALLEST = smallest

    found = compare(
        f"{GRAPH}, rule fraction 1 %", "without compaction", lambda i: roll(True), lambda i: roll(False),
        replace(effort, pairs=min(effort.pairs, 7), least=min(effort.least, 3)),
    )  # fmt: skip
    same = np.array_equal(rollouts[True].solution_own, rollouts[False].solution_own)
    found.note = f"{rollouts[True].evaluations} evaluations, {'the same' if same else 'ANOTHER'} cover"
    yield found
