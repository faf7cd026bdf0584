"""GraphEnv: the row-partitioned residual graph of one episode (RL4GO section 4.4, in O(degree) per step)."""

import numpy as np

from app.comm.group import Group
from app.problems.problem import FIXED_POINT, Totals
from app.sparse.rowblock import RowBlock


def _share(degree: np.ndarray) -> np.ndarray:
    """The Caro-Wei term of nodes of these degrees in fixed point; nothing for isolated nodes."""
    return np.where(degree > 0, FIXED_POINT // (1 + degree.astype(np.int64)), 0)


class GraphEnv:
    """The residual graph after removing nodes, on the rows this rank owns.

    scan         True: find new isolated nodes by the paper's scan of the local edges, for comparison only
    degree_own   [n_own] int32   live degrees; 0 for removed, isolated and padding rows: a candidate has > 0
    chosen_at    [n_own] int32   the transition at which a node was removed, -1 before
    totals       exact integers of the whole graph, the same on all ranks
    touched      local numbers of the own rows whose degree the last removal changed
    """

    def __init__(self, group: Group, block: RowBlock, scan: bool = False) -> None:
        self.group, self.block, self.scan = group, block, scan
        self.degree_own = block.degrees_own()
        self.chosen_at = np.full(block.n_own, -1, dtype=np.int32)
        self.steps = 0
        local = [np.count_nonzero(self.degree_own), self.degree_own.sum(), _share(self.degree_own).sum()]
        self.totals = Totals(*group.sum_integers(np.array(local, dtype=np.int64)).tolist())
        if scan:
            counts, self._target = block.global_rows(np.arange(block.n_own))
            self._source = np.repeat(np.arange(block.lo, block.lo + block.n_own), counts)
            self._edge_live = np.ones(len(self._source), dtype=bool)

    def remove_own(self, nodes: np.ndarray) -> np.ndarray:
        """Remove nodes [k] (global) from the rows of this rank.

        returns   [3] int64, this rank's share of the change of `totals`; pass the sum over ranks to `settle`
        Cost      the degrees of the removed nodes, not the size of the graph
        """
        block, degree = self.block, self.degree_own
        own = nodes[(nodes >= block.lo) & (nodes < block.lo + block.n_real)] - block.lo
        touched = [block.neighbours_own(int(v)) for v in nodes]
        rows = touched[0] if len(touched) == 1 else np.concatenate(touched)
        old_own = degree[own]
        degree[own] = 0
        self.chosen_at[own] = self.steps
        rows = rows[degree[rows] > 0]
        lost = 1
        if len(touched) > 1:
            rows, lost = np.unique(rows, return_counts=True)
        old = degree[rows]
        new = (old - lost).astype(np.int32)
        isolated = self._scan_isolated(rows, nodes) if self.scan else np.count_nonzero(new == 0)
        degree[rows] = new
        self.touched = rows
        gone = np.count_nonzero(old_own)
        change = _share(new).sum() - _share(old).sum() - _share(old_own).sum()
        return np.array([-isolated - gone, int(new.sum()) - int(old.sum()) - int(old_own.sum()), change])

    def settle(self, change: np.ndarray) -> None:
        """Close the step with the change of `totals` summed over ranks."""
        self.totals = Totals(*(int(t + c) for t, c in zip(self.totals, change)))
        self.steps += 1

    def _scan_isolated(self, rows: np.ndarray, removed: np.ndarray) -> int:
        """The paper's two scans: delete edges of removed nodes, then look for neighbours with none left."""
        for v in removed:
            self._edge_live &= (self._source != v) & (self._target != v)
        return sum(not np.any(self._edge_live & (self._source == row + self.block.lo)) for row in rows)

    def candidates_own(self) -> np.ndarray:
        """Local numbers of the own nodes that may be chosen, ascending."""
        return np.flatnonzero(self.degree_own)

    def cover_own(self) -> np.ndarray:
        """[n_real] bool, the own nodes chosen so far."""
        return self.chosen_at[: self.block.n_real] >= 0


def step_together(group: Group, envs: list[GraphEnv], choices: list[np.ndarray]) -> None:
    """One transition of several environments with one sum over ranks. Ranks: all call."""
    changes = np.stack([env.remove_own(nodes) for env, nodes in zip(envs, choices)])
    for env, change in zip(envs, group.sum_integers(changes.reshape(-1)).reshape(-1, 3)):
        env.settle(change)


def degrees_of(envs: list[GraphEnv]) -> np.ndarray:
    """[rows] float32 live degrees of a batch that has one state per environment (host)."""
    degree = np.concatenate([env.degree_own for env in envs]) if len(envs) > 1 else envs[0].degree_own
    return degree.astype(np.float32)


def alive_of(envs: list[GraphEnv]) -> np.ndarray:
    """[rows] float32, one for nodes not removed, zero on padding (host)."""
    parts = []
    for env in envs:
        alive = (env.chosen_at < 0).astype(np.float32)
        alive[env.block.n_real :] = 0
        parts.append(alive)
    return np.concatenate(parts)
