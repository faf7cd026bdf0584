"""Fleet: many residual graphs on one rank in flat arrays: one step of all of them, without a loop."""

import numpy as np

from app.comm.group import Group
from app.native import residual
from app.problems.problem import Problem
from app.rl.env import RULED_OUT, GraphEnv
from app.sparse.rowblock import RowBlock

MOST_ENTRIES = 1 << 24  # of all graphs, which the fleet keeps once more: 4 or 8 bytes each


class Fleet:
    """Places for environments of the same graphs; GraphEnv in a place works on views of these arrays.

    Steps are those of GraphEnv.choose_own, with the same integers: compiled, or without a loop in NumPy.

    degree, chosen_at   [places * width] int32; node v of place i is at i * width + v
    """

    def __init__(self, blocks: list[RowBlock], problem: Problem, places: int) -> None:
        self.problem, self.width = problem, max(block.n_own for block in blocks)
        rows = [block.host_rows() for block in blocks]
        entries = np.cumsum([0, *(len(near) for _, near in rows)])
        self._first = np.cumsum([0, *(len(starts) - 1 for starts, _ in rows)])
        self._starts = np.concatenate([*(s[:-1] + at for (s, _), at in zip(rows, entries)), entries[-1:]])
        self._near = np.concatenate([near for _, near in rows])
        self.degree = np.zeros(places * self.width, dtype=np.int32)
        self.chosen_at = np.full(places * self.width, -1, dtype=np.int32)
        self._envs: list[GraphEnv | None] = [None] * places
        self._graph = np.zeros(places, dtype=np.int64)
        self._compiled = self._make_compiled(blocks) if residual.available() else None

    def _make_compiled(self, blocks: list[RowBlock]) -> residual.FleetSteps:
        """Compiled steps on these arrays."""
        self._starts, self._near = self._starts.astype(np.int64), self._near.astype(np.int32)
        worth = self.problem.worth(np.arange(1 + max(block.max_degree for block in blocks)))
        return residual.FleetSteps(
            self._starts, self._first, self._graph, worth.astype(np.int64), self._near, self.degree,
            self.chosen_at, self.width, self.problem.closed,
        )  # fmt: skip

    @staticmethod
    def serves(group: Group, blocks: list[RowBlock], problem: Problem, scan: bool) -> bool:
        """Whether environments of these graphs can be stepped here: on whole graphs, by degree counters."""
        if group.size > 1 or scan or problem.dynamics != "residual":
            return False
        return sum(len(block.host_rows()[1]) for block in blocks) <= MOST_ENTRIES

    def seat(self, place: int, graph: int, env: GraphEnv) -> None:
        """Put an environment that has not begun to move into a place."""
        mine = slice(place * self.width, place * self.width + env.block.n_own)
        self.degree[mine], self.chosen_at[mine] = env.degree_own, -1
        env.degree_own, env.chosen_at = self.degree[mine], self.chosen_at[mine]
        self._envs[place], self._graph[place] = env, graph

    def step(self, places: list[int], nodes: np.ndarray) -> None:
        """Choose nodes[i] in the environment of places[i], for all of them."""
        at, envs = np.array(places), [self._envs[place] for place in places]
        steps = np.array([env.steps for env in envs])
        if self._compiled is None:
            change = self._change(at, nodes, steps)
        else:
            change = self._compiled.step(at, nodes, steps)[:, : len(envs[0].totals)]
        totals = (np.array([env.totals for env in envs]) + change).tolist()
        make = self.problem.totals._make
        for env, each in zip(envs, totals):
            env.totals = make(each)
            env.chosen += 1
            env.steps += 1

    def _change(self, at: np.ndarray, nodes: np.ndarray, steps: np.ndarray) -> np.ndarray:
        """[k, T] int64, what a step in places `at` changes of the totals."""
        chosen, which = at * self.width + nodes, np.arange(len(at))
        near, owner = self._neighbours(chosen)
        removed, whose = chosen, which
        if self.problem.closed:
            reached = self.degree[near] > 0
            removed, whose = np.append(chosen, near[reached]), np.append(which, owner[reached])
            self.chosen_at[near[reached]] = RULED_OUT
            near, by = self._neighbours(removed)
            owner = whose[by]
        change = -self._shares(removed, whose, len(at))
        self.degree[removed] = 0
        self.chosen_at[chosen] = steps
        live = self.degree[near] > 0
        rows, owner, lost = near[live], owner[live], 1
        if self.problem.closed:
            rows, first, lost = np.unique(rows, return_index=True, return_counts=True)
            owner = owner[first]
        change -= self._shares(rows, owner, len(at))
        self.degree[rows] -= lost
        return (change + self._shares(rows, owner, len(at))).T

    def _neighbours(self, flat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The neighbours of nodes [k] in their places, and which of the k each is one of."""
        place, node = np.divmod(flat, self.width)
        row = self._first[self._graph[place]] + node
        counts = self._starts[row + 1] - self._starts[row]
        owner = np.repeat(np.arange(len(flat)), counts)
        entry = np.arange(len(owner)) + (self._starts[row] - (np.cumsum(counts) - counts))[owner]
        return self._near[entry] + (place * self.width)[owner], owner

    def _shares(self, rows: np.ndarray, owner: np.ndarray, count: int) -> np.ndarray:
        """[T, count] int64, what rows add to the totals of their environments: exact, being below 2^53."""
        each = self.problem.node_shares(self.chosen_at[rows] == -1, self.degree[rows])
        sums = [np.bincount(owner, weights=share, minlength=count) for share in each]
        return np.array(sums).astype(np.int64)
