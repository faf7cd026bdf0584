"""A full-batch training epoch on two ranks against one, beside the bare product with an all-gather.

The rounds are those of bench/ranks.py: rank 0 alone while the others sleep, then all together. The speedup of
an epoch is held against that of one product of the adjacency with [n, hidden] numbers in the same round.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from app.comm.guard import digest
from app.gnn.neighbours import Neighbours
from app.rng import stream
from bench import gnn_subjects
from bench.gnn_case import GcnCase
from bench.gnn_lockstep import Model, forms, row_block
from bench.harness import Effort, Record
from bench.ranks import Work, about, compare_ranks, sides

__all__ = ["about", "measure"]


def measure(effort: Effort, quick: bool) -> Iterator[Record]:
    """Both forms of the Reddit-shaped case. Ranks: all call."""
    rounds = effort if quick else replace(effort, pairs=21, least=21)
    name = "Reddit shape / 10"
    case = gnn_subjects.cases(quick)[name]()
    for form in forms(case):
        yield compare_ranks(f"{name}, A X {form}", _epoch(case, form), _bare(case), rounds)


def _epoch(case: GcnCase, form: str) -> Work:
    """A training epoch; returns a digest of the weights after it."""

    def make(group: Any) -> Callable[[], Any]:
        model = Model(case, form, 0.0, group.comm)

        def step() -> str:
            model.epoch()
            return digest(model.params.host())

        return step

    return sides(make)


def _bare(case: GcnCase) -> Work:
    """One product with [n, hidden] numbers, all rows brought to all ranks before it."""

    def make(group: Any) -> Callable[[], Any]:
        neighbours = Neighbours(group, row_block(group, case, "gather")[0])
        shape = (neighbours.block.n_own, case.widths[1])
        X_own = group.device.put(stream(0, "bench/bare").random(shape, dtype="float32"))
        Y_own = group.device.zeros(shape)
        neighbours.tile(case.widths[1])  # as training has it
        return lambda: neighbours.accumulate(X_own, Y_own)

    return sides(make)
