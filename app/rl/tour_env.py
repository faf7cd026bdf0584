"""TourEnv: a closed tour that grows by insertion, held whole by every rank."""

from typing import Any

import numpy as np

from app.comm.group import Group
from app.errors import CaseError, LockstepError
from app.graphs.metric import DIRECTED, Metric
from app.native.tour import CodeSteps, NativeReplays
from app.problems.problem import FIRST_ALIVE
from app.problems.tsp import DETOURS, DISTANCE_STEPS, GAIN_STEPS, TravellingSalesman
from app.rl.env import NONE_REACHED
from app.search.tour.insertion import InsertionState
from app.sparse.batch import StateBatch
from app.sparse.rowblock import RowBlock

Array = Any
CODE_STEPS = CodeSteps(GAIN_STEPS, DISTANCE_STEPS, TravellingSalesman.first_candidate, FIRST_ALIVE, DETOURS)


class TourEnv:
    """Tour, insertion costs and distances (integers) on all ranks alike; codes of the rows this rank owns.

    tour   the InsertionState; it starts with city 0 and the city farthest from it
    """

    compiled = ""
    value = None
    follows = gathers = spreads = False

    def __init__(
        self, group: Group, block: RowBlock, problem: TravellingSalesman, scan: bool = False
    ) -> None:
        if scan:
            raise CaseError('train.environment: "scan" finds isolated nodes, which "residual" dynamics have')
        self.group, self.block, self.problem = group, block, problem
        self.tour = first_tour(block, group.device)
        self.chosen_at = np.full(block.n_own, -1, dtype=np.int32)
        self.steps = self.chosen = 0
        self.touched, self.gone = np.arange(block.n_own), NONE_REACHED[:, 0]
        self.totals, self._codes = problem.totals_of(self.tour), self._codes_now()

    def _codes_now(self) -> np.ndarray:
        codes = self.tour.codes(CODE_STEPS)
        return _codes_of(self.problem, [seen(self.tour)])[0] if codes is None else codes

    @property
    def done(self) -> bool:
        """True when every city is on the tour."""
        return self.problem.done(self.totals)

    def codes_own(self, rows: Any = slice(None)) -> np.ndarray:
        """int32 codes of own rows."""
        return own_part(self.block, self._codes)[rows]

    def all_codes_own(self) -> np.ndarray:
        """The same: every city has an embedding."""
        return self.codes_own()

    def candidates_own(self) -> np.ndarray:
        """Local numbers of the own cities outside the tour, ascending."""
        return np.flatnonzero(self.codes_own() >= self.problem.first_candidate)

    def apart(self, ordered: np.ndarray) -> np.ndarray:
        """All of the cities [k]."""
        return ordered

    def reached_own(self, nodes: np.ndarray) -> np.ndarray:
        """Nothing: every rank knows the whole tour."""
        return NONE_REACHED

    def choose_own(self, nodes: np.ndarray, reached: np.ndarray) -> np.ndarray:
        """Insert cities [k] (global) one after the other; rank 0 reports the change of the totals.

        Cost      O(n) for each, and O(tour) for each city whose place it takes
        """
        block = self.block
        self.tour.play(nodes)
        own = nodes[(nodes >= block.lo) & (nodes < block.lo + block.n_real)] - block.lo
        self.chosen_at[own] = self.steps
        self.chosen += len(nodes)
        self._codes = self._codes_now()
        change = np.array(self.problem.totals_of(self.tour)) - np.array(self.totals)
        return change if self.group.rank == 0 else np.zeros_like(change)

    def settle(self, change: np.ndarray) -> None:
        """Close the step with the change of `totals` summed over ranks."""
        self.totals = self.problem.totals(*(int(t + c) for t, c in zip(self.totals, change)))
        self.steps += 1

    def smaller(self, group: Group, block: RowBlock, rows: np.ndarray) -> "TourEnv":
        """Refused: every city keeps its embedding to the end, so nothing can be left out."""
        raise LockstepError("a tour has no smaller graph")

    @staticmethod
    def replayed(
        problem: TravellingSalesman, batch: StateBatch, before: list[np.ndarray], after: list[np.ndarray],
        every: bool,
    ) -> tuple[Array, Array]:  # fmt: skip
        """[rows] int32 codes of the states before and after; see GraphEnv.replayed.

        Every rank plays all insertions again. Cost: O(n t) for a state after t choices
        """
        replays = [_replays(block, batch.device) for block in batch.blocks]
        if None not in replays:
            return _replayed_compiled(problem, batch, before, after, replays)
        states = [None] * 2 * batch.states
        for g, block in enumerate(batch.blocks):
            for i in range(batch.first[g], batch.first[g + 1]):
                tour = first_tour(block, batch.device)
                tour.play(before[i])
                states[i] = seen(tour)
                tour.play(after[i][len(before[i]) :])
                states[batch.states + i] = seen(tour)
        codes = iter(_codes_of(problem, states))
        pair = np.zeros((2, batch.rows), dtype=np.int32)
        for at in (0, 1):
            for g, block in enumerate(batch.blocks):
                rows = pair[at, batch.at[g] : batch.at[g + 1]].reshape(block.n_own, batch.counts[g])
                for i in range(batch.counts[g]):
                    rows[:, i] = own_part(block, next(codes))
        return tuple(batch.device.put(codes) for codes in pair)


def _replays(block: RowBlock, device: Any) -> NativeReplays | None:
    """What tells states of a block again, kept with it; None where nothing is compiled."""
    if getattr(device, "native", True) is None:
        return None
    if "tours" not in block.kept:
        block.kept["tours"] = first_tour(block, device).replays()
    return block.kept["tours"]


def _replayed_compiled(
    problem: TravellingSalesman, batch: StateBatch, before: list[np.ndarray], after: list[np.ndarray],
    replays: list[NativeReplays],
) -> tuple[Array, Array]:  # fmt: skip
    """`replayed` in one call for each graph."""
    pair = np.zeros((2, batch.rows), dtype=np.int32)
    for g, (block, each) in enumerate(zip(batch.blocks, replays)):
        states = slice(batch.first[g], batch.first[g + 1])
        codes = each.codes(CODE_STEPS, before[states], after[states])
        rows = pair[:, batch.at[g] : batch.at[g + 1]].reshape(2, block.n_own, batch.counts[g])
        rows[:, : block.n_real] = codes[:, :, block.lo : block.lo + block.n_real].transpose(0, 2, 1)
    return tuple(batch.device.put(codes) for codes in pair)


Seen = tuple[np.ndarray, np.ndarray, np.ndarray]


def seen(tour: InsertionState) -> Seen:
    """[n] distances to the tour, -1 on it; insertion costs; gains. Copies."""
    near = np.where(tour.inside, -1, tour.nearest_out)
    return near, tour.cost_out.copy(), tour.gains(tour.metric.nearest)


def _codes_of(problem: TravellingSalesman, states: list[Seen]) -> list[np.ndarray]:
    """[n] codes of each of several states, worked out together."""
    sizes = [len(near) for near, *_ in states]
    near, cost, gain = (np.concatenate(arrays) for arrays in zip(*states))
    starts = np.cumsum(sizes) - sizes
    farthest, most = (np.repeat(np.maximum.reduceat(each, starts), sizes) for each in (near, gain))
    return np.split(problem.codes(near, cost, gain, farthest, most), starts[1:])


def first_tour(block: RowBlock, device: Any) -> InsertionState:
    """City 0 and the city farthest from it; raises CaseError where a graph states no distances.

    device   tells whether compiled kernels may be used
    """
    metric: Metric | None = block.metric
    if metric is None:
        raise CaseError(
            f"{block.name}: has no distances between all nodes; right is a TSPLIB file, or "
            'a generator "uniform_points"'
        )
    if metric.kind == DIRECTED:
        right = 'search.solver = "full", which solves without it, would be right'
        raise CaseError(
            f"{block.name}: a policy knows distances that are the same in both directions; {right}"
        )
    start = [0] if metric.n == 1 else [0, int(metric.between(0, np.arange(metric.n)).argmax())]
    if len(start) == 2 and start[1] == 0:  # all cities at one place
        start[1] = 1
    compiled = getattr(device, "native", True) is not None  # tours live on the host, whatever the device
    return InsertionState(metric, np.array(start), compiled)


def own_part(block: RowBlock, values: np.ndarray) -> np.ndarray:
    """[n_own] the rows of this rank of an array [n] that every rank holds, zero on padding."""
    own = np.zeros(block.n_own, dtype=values.dtype)
    own[: block.n_real] = values[block.lo : block.lo + block.n_real]
    return own
