"""A state that some ranks hold, on all."""

import json

import numpy as np

from app.checkpoint.store import State
from app.comm.group import Group


def share_state(group: Group, state: State | None, root: int) -> State:
    """The root's state on all ranks; None elsewhere. Ranks: all call."""
    mine = state or State()
    shapes = {name: [each.dtype.str, each.shape] for name, each in mine.arrays.items()}
    values, shapes = json.loads(group.broadcast_text(json.dumps([mine.values, shapes]), root))
    arrays = {}
    for name, (kind, shape) in shapes.items():
        array = np.ascontiguousarray(mine.arrays.get(name, np.empty(shape, dtype=np.dtype(kind))))
        arrays[name] = group.broadcast(array, root) if array.size else array
    return State(values, arrays)
