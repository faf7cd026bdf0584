"""Balance: cuts of the rows that follow the measured time of every rank (ROC section 4).

An epoch ends with one gather of the seconds that each rank took for each layer. Rank 0 updates the cost
model, looks for better cuts and tells the others, so that ranks on unlike processors cannot disagree. Cuts
fall between blocks of rows, which are a function of the graph alone: whatever was measured, results keep
their bits.

Where the code differs from ROC:
1. What a linear function of five features cannot tell (rows whose neighbours stay in a cache, say) is a
   factor of each block, this graph's own: every epoch multiplies it by the root of measured over predicted
   time of the rank that held the block. It is not saved: a new graph is cut by the features alone.
2. Rows move only where the predicted gain of the epochs left exceeds what the move costs, and is no noise.
"""

import time
from collections.abc import Callable
from dataclasses import astuple, dataclass, field
from typing import Any

import numpy as np

from app.checkpoint.store import State
from app.comm.group import Group
from app.partition.cost import CostModel, from_arrays
from app.partition.cuts import best_cuts
from app.partition.features import BlockFeatures
from app.partition.rows import RowPartition

LEAST_GAIN = 0.01  # of an epoch's predicted seconds: below it a move follows noise
DAMPING = 0.5  # exponent of measured / predicted in a block's factor: noise is halved, bias soon gone
FIRST_BYTES_S = 2e8  # of rows that move, until a move was measured
NANO = 1e9


def imbalance(seconds: np.ndarray) -> float:
    """The slowest rank's seconds over the mean; seconds [ranks] or [ranks, layers]. 1 where nobody worked."""
    by_rank = np.asarray(seconds, dtype=np.float64).reshape(len(seconds), -1).sum(axis=1)
    return float(by_rank.max() / by_rank.mean()) if by_rank.any() else 1.0


def measured_table(group: Group, seconds_own: np.ndarray) -> np.ndarray:
    """[ranks, layers] float64, the [layers] seconds of each rank in whole nanoseconds. Ranks: all call."""
    nanos = np.rint(np.asarray(seconds_own, dtype=np.float64) * NANO).astype(np.int64)
    return group.gather_integers(nanos) / NANO


def predicted_cuts(features: BlockFeatures, model: CostModel, ranks: int) -> np.ndarray:
    """[ranks+1] the cuts that balance the predicted time of a graph, new to the model or not."""
    return best_cuts(model.block_seconds(features), ranks)


def cuts_for(group: Group, features: BlockFeatures, model: CostModel) -> np.ndarray:
    """predicted_cuts as rank 0 computes them. Ranks: all call (one broadcast)."""
    cuts = np.zeros(group.size + 1, dtype=np.int64)
    if group.rank == 0:
        cuts[:] = predicted_cuts(features, model, group.size)
    return group.broadcast(cuts)


@dataclass
class MoveCost:
    """What it costs to move rows: bytes by a bandwidth, and the seconds to build what holds rows.

    Both are those of the last move; before the first one a guess stands for the bandwidth.
    """

    bytes_s: float = FIRST_BYTES_S
    rebuild_s: float = 0.0

    def seconds(self, nbytes: float) -> float:
        """Of a move of some bytes on the rank that sends most."""
        return nbytes / self.bytes_s + self.rebuild_s

    def measured(self, nbytes: float, sending_s: float, rebuild_s: float) -> None:
        """Take a move's measurements."""
        if nbytes > 0 and sending_s > 0:
            self.bytes_s = nbytes / sending_s
        self.rebuild_s = rebuild_s


@dataclass(frozen=True)
class Observed:
    """One epoch: measured imbalance, and what the model predicts of the present and of the best cuts."""

    imbalance: float
    predicted: float
    best: float
    gain_s: float
    move_s: float


@dataclass(eq=False)
class Balance:
    """The cuts of one graph during training.

    rows       the present partition
    features   of the graph's blocks
    row_bytes, entry_bytes   that travel with a row and with a stored entry when rows move
    """

    group: Group
    rows: RowPartition
    features: BlockFeatures
    row_bytes: int
    entry_bytes: int = 4
    model: CostModel | None = None
    cost: MoveCost = field(default_factory=MoveCost)
    history: list[Observed] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.model is None:
            self.model = CostModel(self.features.widths, self.features.line)
        self.factors = np.ones(len(self.features.sums) - 1)

    def observe(self, seconds_own: np.ndarray, epochs_left: int) -> RowPartition | None:
        """Learn from an epoch; the partition to move to, or None where moving would not pay.

        seconds_own   [layers] that this rank's rows took in this epoch (not the waiting for other ranks)
        epochs_left   epochs that would profit
        Ranks         all call (one gather, one broadcast); the result is the same on all
        """
        table = measured_table(self.group, seconds_own)
        # Of all ranks rank 0 decides: [ranks+1] cuts, and whether to take them.
        answer = np.zeros(self.group.size + 2, dtype=np.int64)
        if self.group.rank == 0:
            answer[:-1], answer[-1] = self._decide(table, epochs_left)
        answer = self.group.broadcast(answer)
        if not answer[-1]:
            return None
        return RowPartition(self.rows.n, self.rows.starts, answer[:-1])

    def _decide(self, table: np.ndarray, epochs_left: int) -> tuple[np.ndarray, bool]:
        """The best cuts by the model, and whether their gain exceeds what moving costs. Rank 0."""
        self.model.update(self.features.of_ranks(self.rows.cuts), table)
        costs = self._corrected(self.model.block_seconds(self.features), table.sum(axis=1))
        cuts = best_cuts(costs, self.group.size)
        present, best = (_loads(costs, each) for each in (self.rows.cuts, cuts))
        gain, move = float(present.max() - best.max()), self.cost.seconds(self._moved_bytes(cuts))
        self.history.append(Observed(imbalance(table), imbalance(present), imbalance(best), gain, move))
        pays = gain > LEAST_GAIN * present.max() and gain * epochs_left > move
        return cuts, pays and not np.array_equal(cuts, self.rows.cuts)

    def _corrected(self, costs: np.ndarray, seconds: np.ndarray) -> np.ndarray:
        """[blocks] predicted seconds times the blocks' factors, which first follow what was measured."""
        predicted = _loads(costs * self.factors, self.rows.cuts)
        known = (predicted > 0) & (seconds > 0)
        ratios = np.where(known, seconds / np.where(known, predicted, 1.0), 1.0)
        self.factors *= np.repeat(ratios**DAMPING, np.diff(self.rows.cuts))
        return costs * self.factors

    def _moved_bytes(self, cuts: np.ndarray) -> float:
        """Bytes that the busiest rank sends when the cuts become these."""
        by_block = self.features.blocks[:, 0]  # x1 and x2 are those of any layer
        nbytes = self.row_bytes * by_block[:, 0] + self.entry_bytes * by_block[:, 1]
        blocks = np.arange(len(nbytes))
        before = np.searchsorted(self.rows.cuts[1:], blocks, side="right")
        after = np.searchsorted(cuts[1:], blocks, side="right")
        return float(np.bincount(before, nbytes * (before != after), self.group.size).max())

    def move(self, rows: RowPartition, move: Callable[[RowPartition], Any]) -> Any:
        """Let `move` bring the rows to another partition; what it took is what the next move is said to cost.

        Its seconds in exchanges are those of the bytes that travelled, the rest is building.
        Ranks   all call; returns what `move` returns
        """
        before, start = self._exchanging(), time.perf_counter()
        result = move(rows)
        sending = self._exchanging() - before
        building = time.perf_counter() - start - sending
        spent = np.rint(np.array([sending, building]) * NANO).astype(np.int64)
        sending, building = (self.group.max_integers(spent) / NANO).tolist()
        self.cost.measured(self._moved_bytes(rows.cuts), sending, building)
        self.rows = rows
        return result

    def _exchanging(self) -> float:
        return self.group.seconds.get("exchange", 0.0)

    def state(self) -> State:
        """What rank 0 has learned, on rank 0."""
        values = {"history": [astuple(each) for each in self.history], "cost": astuple(self.cost)}
        return State(values, {"factors": self.factors.copy(), **self.model.to_arrays()})

    def restore(self, state: State) -> RowPartition | None:
        """Take what an earlier part of the run had learned, on any number of ranks; rows to move to, or None.

        Ranks   all call (one broadcast)
        """
        arrays = dict(state.arrays)
        self.factors = arrays.pop("factors")
        self.model = from_arrays(arrays, "the checkpoint", self.model.kinds)
        self.history = [Observed(*each) for each in state.values["history"]]
        self.cost = MoveCost(*state.values["cost"])
        cuts = np.array(self.rows.cuts, dtype=np.int64)
        if self.group.rank == 0 and self.model.count:
            costs = self.model.block_seconds(self.features) * self.factors
            cuts[:] = best_cuts(costs, self.group.size)
        cuts = self.group.broadcast(cuts)
        if np.array_equal(cuts, self.rows.cuts):
            return None
        return RowPartition(self.rows.n, self.rows.starts, cuts)

    def saved(self) -> dict[str, np.ndarray]:
        """The model's arrays, those of rank 0 on all ranks. Ranks: all call."""
        arrays = self.model.to_arrays()
        return {name: self.group.broadcast(arrays[name]) for name in sorted(arrays)}


def _loads(costs: np.ndarray, cuts: np.ndarray) -> np.ndarray:
    """[ranks] the cost of the blocks between consecutive cuts."""
    return np.diff(np.concatenate([[0.0], np.cumsum(costs)])[cuts])
