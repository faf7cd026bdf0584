"""A whole solution of BA n=14,400 d=4, one node at a time.

Ours runs from the first choice to the last. The others would take minutes: they evaluate states taken at even
places of that run, once per round, and the mean over places times the number of steps is their time. Updating
their adjacency costs them nothing here: PyTorch's residual CSR matrices are built beforehand.
"""

import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from app.sparse.batch import StateBatch
from bench import subjects
from bench.harness import Effort, Record, record, seconds_of
from bench.opponents import about, make_agent

__all__ = ["about", "measure"]
GRAPH = "BA n=14,400 d=4"
PLACES = 60
AT_A_TIME = 3  # timings of one state in a round, of which the median counts
# (policy, layers, dimension) -> goals against (PyTorch CSR, full recompute)
CASES = {
    ("default", 2, 16): (">= 40", ">= 20"),
    ("paper", 2, 16): (">= 40", ">= 20"),
    ("default", 3, 16): ("", ">= 20"),
    ("default", 2, 64): ("", ">= 50"),
}


@dataclass
class Solver:
    """A policy on one graph, in both programs."""

    group: subjects.Group
    block: subjects.RowBlock
    net: subjects.QNetwork
    arrays: dict[str, np.ndarray]

    def __post_init__(self) -> None:
        self.params = subjects.parameters(self.group, self.net, self.arrays)
        self.torch = make_agent("csr", self.block, self.net.policy, self.arrays)
        self.batch = StateBatch(self.group, [(self.block, 1)])

    def solve(self) -> subjects.Rollout:
        """The whole run."""
        return subjects.solve(self.group, self.net, self.params, self.block)

    def places(self, rollout: subjects.Rollout, count: int) -> list[tuple[Any, Any, int]]:
        """States at even places of a run: our environment, PyTorch's matrices, and what the run chose."""
        at = rollout.chosen_at_own[: self.block.n_real]
        chosen = np.flatnonzero(at >= 0)
        order = chosen[np.argsort(at[chosen], kind="stable")]
        found = []
        for i in range(count):
            step = int((i + 0.5) * len(order) / count)
            env = subjects.state_after(self.group, self.block, order[:step])
            states = self.torch.graph.states("csr", [order[:step]], [env.totals])
            found.append((env, states, int(order[step])))
        return found

    def full(self, env: Any) -> int:
        """One full evaluation in this program."""
        return subjects.evaluate(self.group, self.net, self.params, self.batch, env)


def measure(effort: Effort, quick: bool) -> Iterator[Record]:
    """Every policy, against PyTorch and against full recompute."""
    group = subjects.open_group()
    block = subjects.load_block(group, GRAPH)
    for (policy, layers, dimension), goals in list(CASES.items())[: 1 if quick else None]:
        net, arrays = subjects.formula_network(layers, dimension)
        if policy == "paper":
            net = subjects.paper_network()
            arrays = _degree_like(net.new_parameters(group.device, 1).host())
        solver = Solver(group, block, net, arrays)
        rounds = replace(effort, pairs=min(effort.pairs, 7), least=min(effort.least, 3))
        yield from _records(solver, f"{policy} policy, K={dimension}, L={layers}", goals, rounds, quick)


def _degree_like(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Weights without signs: scores rise with degrees, so that choices are those of a plausible policy."""
    return {name: np.abs(array) for name, array in arrays.items()}


def _records(
    solver: Solver, case: str, goals: tuple[str, str], effort: Effort, quick: bool
) -> Iterator[Record]:
    """Rounds of: our whole run, then both others at all places."""
    rollout = solver.solve()
    places = solver.places(rollout, 12 if quick else PLACES)
    agreed = sum(solver.torch.evaluate(states) == chosen for _, states, chosen in places)
    same = sum(solver.full(env) == chosen for env, _, chosen in places)
    ours, theirs, full = [], [], []
    start = time.perf_counter()
    while not effort.enough(len(ours), time.perf_counter() - start):
        ours.append(seconds_of(solver.solve))
        theirs.append(
            rollout.evaluations * _mean([lambda s=s: solver.torch.evaluate(s) for _, s, _ in places])
        )
        full.append(rollout.evaluations * _mean([lambda e=e: solver.full(e) for e, _, _ in places]))
    note = f"{rollout.evaluations:,} steps; the same choice in {{}} of {len(places)} states"
    yield record(case, "PyTorch CSR, extrapolated", ours, theirs, goals[0], note.format(agreed))
    yield record(case, "full recompute, extrapolated", ours, full, goals[1], note.format(same))


def _mean(actions: list[Any]) -> float:
    """Mean over places of the median seconds of a call."""
    return statistics.mean(
        statistics.median(seconds_of(action) for _ in range(AT_A_TIME)) for action in actions
    )
