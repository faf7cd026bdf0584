"""Passes of graph layers over one graph, clocked: what the partition study balances."""

import hashlib
import time
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from app.comm.group import Group
from app.graphs.graph import Graph
from app.numerics.products import Operand
from app.partition.cuts import best_cuts
from app.partition.rows import RowPartition
from app.rng import stream
from app.sparse.rowblock import RowBlock

# The simulated clock: seconds of a row; of an entry, for 16 columns; times the root of a row's entries.
ROW_S, ENTRY_S, ROOT_S = 2e-6, 5e-8, 1e-6
PERIOD = 31  # of the input, in rows


class Layers:
    """Layers H' = (A H) W, one after the other; their bits do not depend on the cuts.

    widths   columns that each layer's sparse product reads; the last layer returns as many
    """

    def __init__(self, group: Group, widths: list[int], seed: int) -> None:
        self.group, self.device, self.widths = group, group.device, widths
        self.weights = []
        for layer, (a, b) in enumerate(zip(widths, [*widths[1:], widths[-1]])):
            drawn = stream(seed, "study/layer", layer).random((a, b), dtype=np.float32)
            # Small numbers: sums over neighbours grow by the degree in every layer.
            self.weights.append(self.device.put((drawn - np.float32(0.5)) / np.float32(a)))

    def run(self, block: RowBlock) -> tuple[np.ndarray, str]:
        """[layers] seconds that the own rows took, and a digest of the result. Ranks: all call."""
        device, seconds = self.device, np.zeros(len(self.widths))
        H_own = device.put(numbered_rows(block.lo, block.n_own, self.widths[0]))
        for layer, W in enumerate(self.weights):
            H_all = self.group.gather_rows(H_own, block.own_counts)
            start = clock(device)
            Y_own = device.zeros((block.n_own, H_own.shape[1]))
            device.spmm_add(block.A, H_all, Y_own)
            H_own = device.dense([Operand(Y_own)], W)
            seconds[layer] = clock(device) - start
        return seconds, digest_of_rows(self.group, block, device.get(H_own))


def clock(device: Any) -> float:
    """Seconds that this process has had on its processor; on a GPU of the wall, when the device is done."""
    device.synchronize()
    return time.process_time() if device.xp is np else time.perf_counter()


def numbered_rows(first: int, rows: int, width: int) -> np.ndarray:
    """[rows, width] float32 in steps of 1/16: a function of the global row and the column."""
    # Rows PERIOD apart are equal.
    number = 7 * np.arange(PERIOD)[:, None] + 13 * np.arange(width)
    pattern = (number % PERIOD - 15).astype(np.float32) / np.float32(16)
    return pattern[(first + np.arange(rows)) % PERIOD]


def digest_of_rows(group: Group, block: RowBlock, H_own: np.ndarray) -> str:
    """Of all rows' bits, whoever holds them: a sum of integers modulo 2^64. Ranks: all call."""
    words = np.ascontiguousarray(H_own[: block.n_real]).view(np.uint32)
    # Word c of row r counts 2 (r columns + c) + 1 times: by rows, and what comes on top by columns.
    by_row, by_column = (words.sum(axis=axis, dtype=np.uint64) for axis in (1, 0))
    row = np.arange(block.lo, block.lo + block.n_real, dtype=np.uint64)
    column = np.arange(words.shape[1], dtype=np.uint64)
    times = np.uint64(2 * words.shape[1]) * row + np.uint64(1)
    total = np.concatenate([by_row * times, by_column * column * np.uint64(2)]).sum(dtype=np.uint64)
    whole = group.sum_integers(np.array([total], dtype=np.uint64).view(np.int64))
    return hashlib.sha256(whole.tobytes()).hexdigest()


@dataclass
class EpochClock:
    """How the seconds of an epoch are found: by the processor's clock, or by a formula.

    rounds     passes of an epoch; of each layer the least seconds count: disturbances only add
    blocks_s   [blocks, layers] seconds by the formula; None: measure
    """

    layers: Layers
    rounds: int
    blocks_s: np.ndarray | None = None

    def epoch(self, blocks: dict[str, RowBlock]) -> tuple[dict[str, np.ndarray], list[str]]:
        """Passes over the same graph by several cuts, in turns, so that what disturbs disturbs all of them.

        returns   [layers] seconds of this rank by name; the digests of all that was computed
        Ranks     all call
        """
        rounds, digests = self.rounds if self.blocks_s is None else 1, []
        taken: dict[str, list[np.ndarray]] = {name: [] for name in blocks}
        for _ in range(rounds):
            for name, block in blocks.items():
                seconds, digest = self.layers.run(block)
                taken[name].append(seconds)
                digests.append(digest)
        if self.blocks_s is None:
            return {name: np.min(each, axis=0) for name, each in taken.items()}, digests
        return {name: self._by_formula(block) for name, block in blocks.items()}, digests

    def _by_formula(self, block: RowBlock) -> np.ndarray:
        """[layers] seconds of this rank's blocks."""
        lo, hi = block.rows.cuts[self.layers.group.rank : self.layers.group.rank + 2]
        return self.blocks_s[lo:hi].sum(axis=0)

    def best(self, ranks: int) -> float:
        """The least possible seconds of the slowest rank; NaN where they are measured, hence unknown."""
        if self.blocks_s is None:
            return float("nan")
        costs = self.blocks_s.sum(axis=1)
        total = np.concatenate([[0.0], np.cumsum(costs)])
        return float(np.diff(total[best_cuts(costs, ranks)]).max())


def simulated_seconds(group: Group, graph: Graph, rows: RowPartition, widths: list[int]) -> np.ndarray:
    """[blocks, layers] seconds by a formula that no sum of the model's features gives. Ranks: all call."""
    degree = graph.degrees()[:, None].astype(np.float64)
    by_row = ROW_S + (ENTRY_S * degree + ROOT_S * np.sqrt(degree)) * (np.array(widths) / 16)
    first, last = rows.cuts[group.rank], rows.cuts[group.rank + 1]
    borders = np.minimum(rows.starts[first : last + 1], graph.n) - graph.lo
    by_block = [by_row[a:b].sum(axis=0) for a, b in pairwise(borders)]
    own = np.array(by_block).reshape(-1, len(widths))
    return group.gather_host(own, rows.block_counts)
