"""Cells of a study: pieces of work that a stopped run does not do again."""

import json
from collections.abc import Callable
from copy import deepcopy
from typing import Any

from app.checkpoint.checkpoints import Keeper, Within
from app.checkpoint.store import State
from app.output import plain
from app.tasks.context import Context


class Cells(Within):
    """The keeper of a study: what is inside a cell may be stopped, and begins anew with the cell."""

    def __init__(self, outer: Keeper) -> None:
        super().__init__(outer)
        self.made = 0

    def result(self, key: str, make: Callable[[], Any]) -> Any:
        """What `make` returned, now or in an earlier part of the run, as JSON. Ranks: all call."""
        state = self.outer.recall(f"cell {key}")
        if state is None:
            state = State({"result": _as_json(make())})
            self.outer.keep(f"cell {key}", state)
            self.made += 1
            self.outer.at(self.made)
        return deepcopy(state.values["result"])


def cell(context: Context, key: str, make: Callable[[], Any]) -> Any:
    """The result of a cell of a study, as JSON has it; made, unless an earlier part of the run has made it.

    key     names it among all of the study
    Ranks   all call
    """
    keeper = context.keeper
    return keeper.result(key, make) if isinstance(keeper, Cells) else _as_json(make())


def _as_json(value: Any) -> Any:
    """A value as it comes back from JSON: the same whether it was kept or not."""
    return json.loads(json.dumps(value, default=plain))
