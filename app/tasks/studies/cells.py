"""Cells of a study: pieces of work that a stopped run does not do again."""

import json
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np

from app.checkpoint.keeper import Keeper, Within
from app.checkpoint.store import State
from app.comm.guard import raise_together
from app.output import plain
from app.tasks.context import Context


class Cells(Within):
    """The keeper of a study: what is inside a cell may be stopped, and begins anew with the cell."""

    def __init__(self, outer: Keeper) -> None:
        super().__init__(outer)
        self.made = 0

    def results(self, keys: list[str], make: Callable[[list[int]], list[Any]]) -> list[Any]:
        """What `make` returned, now or in an earlier part of the run, as JSON. Ranks: all call."""
        missing = [i for i, key in enumerate(keys) if self.outer.recall(f"cell {key}") is None]
        if missing:
            for i, value in zip(missing, make(missing)):
                self.outer.keep(f"cell {keys[i]}", State({"result": _as_json(value)}))
            self.made += 1
            self.outer.at(self.made, now=True)
        return [deepcopy(self.outer.recall(f"cell {key}").values["result"]) for key in keys]

    def arrays(self, key: str, make: Callable[[], dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
        """The arrays that `make` returned, now or in an earlier part of the run. Ranks: all call."""
        if self.outer.recall(f"cell {key}") is None:
            self.outer.keep(f"cell {key}", State({}, make()))
            self.made += 1
            self.outer.at(self.made, now=True)
        return self.outer.recall(f"cell {key}").arrays


def cell(context: Context, key: str, make: Callable[[], Any]) -> Any:
    """The result of a cell of a study, as JSON has it; made, unless an earlier part of the run has made it.

    key     names it among all of the study
    Ranks   all call
    """
    return cells_at_once(context, [key], lambda missing: [make()])[0]


def cells_at_once(context: Context, keys: list[str], make: Callable[[list[int]], list[Any]]) -> list[Any]:
    """The results of cells that are made together, such as one by every rank.

    make    the places of those that are missing -> their results
    Ranks   all call
    """
    keeper = context.keeper
    if isinstance(keeper, Cells):
        return keeper.results(keys, make)
    return _as_json(make(list(range(len(keys)))))


def measured_arrays(
    context: Context, key: str, make: Callable[[], dict[str, np.ndarray]]
) -> dict[str, np.ndarray]:
    """A measurement whose result are arrays, the same on all ranks, which the checkpoints keep as they are.

    Ranks   all call
    """
    keeper = context.keeper
    if isinstance(keeper, Cells):
        return keeper.arrays(f"{key}, {context.group.size} ranks", make)
    return make()


def measurement(context: Context, key: str, make: Callable[[], Any]) -> Any:
    """A cell of what clocks say of the running ranks: its seconds stay as they are, but on another number of
    ranks it is measured again.

    Ranks   all call; what is told of ranks' own clocks is rank 0's
    """
    return cell(context, f"{key}, {context.group.size} ranks", make)


def _as_json(value: Any) -> Any:
    """A value as it comes back from JSON: the same whether it was kept or not."""
    return json.loads(json.dumps(value, default=plain))


def measured(
    context: Context, measure: Callable[[int], Any], turn: range, missing: list[int]
) -> list[Any]:  # fmt: skip
    """What is measured of some folds of a turn: by all ranks together or, where each has the whole graph, of
    one fold by each. Ranks: all call."""
    group, own = context.alike, None
    if group is None:
        return [measure(turn[at]) for at in missing]
    with raise_together(group, "training", rest=True):
        if group.rank < len(missing):
            own = measure(turn[missing[group.rank]])
    return [json.loads(group.broadcast_text(json.dumps(own, default=plain), r)) for r in range(len(missing))]
