"""The state of a relational network in training, as whole arrays: the same for any placement on ranks."""

from typing import Any

import numpy as np

from app.checkpoint.store import State
from app.comm.group import Group
from app.gnn.rgcn.model import RGCN, whole_name
from app.gnn.stopwatch import Took
from app.memory.slow_rows import SlowRows

Array = Any
MOMENTS = ("m", "v")  # what Adam keeps


def gathered(
    group: Group, net: RGCN, arrays: "dict[str, Array | SlowRows] | None" = None, prefix: str = "weights"
) -> dict[str, np.ndarray]:
    """Whole arrays on the host, as PREFIX/NAME, of those with the rows of the weights; None: of the weights.

    Ranks   all call
    """
    return {f"{prefix}/{name}": each.whole() for name, each in net.whole(group, arrays).items()}


def named(arrays: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    """The arrays PREFIX/NAME by NAME."""
    start = f"{prefix}/"
    return {name.removeprefix(start): each for name, each in arrays.items() if name.startswith(start)}


def shares(group: Group, net: RGCN, whole: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Of whole arrays the rows that this rank has of each weight array, zero on padding. Ranks: all call."""
    keys = {name: each.keys for name, each in net.whole(group).items()}
    found = {}
    for name, shard in net.weights.items():
        of = whole_name(name)
        found[name] = np.zeros(shard.array.shape, dtype=np.float32)
        found[name][: len(shard.keys)] = whole[of][np.searchsorted(keys[of], shard.keys)]
    return found


def state_of(
    group: Group, net: RGCN, steps: Any, epochs: int, records: list[dict[str, float]], took: Took
) -> State:
    """All that later epochs depend on, after `epochs` of them, and the seconds they took.

    steps   the optimisers
    Ranks   all call
    """
    arrays = gathered(group, net)
    for kind in MOMENTS if steps.has_moments else ():
        arrays |= gathered(group, net, steps.moments(kind), kind)
    return State({"epochs": epochs, "records": records, "seconds": took()}, arrays)


def restore(group: Group, net: RGCN, steps: Any, state: State) -> int:
    """Go on from `state_of` of an earlier part of the run; the epochs it had made. Ranks: all call."""
    made = state.values["epochs"]
    weights = named(state.arrays, "weights")
    for name, each in net.whole(group).items():
        each.set(weights[name])
    moments = {kind: named(state.arrays, kind) for kind in MOMENTS}
    steps.go_on(made, {kind: shares(group, net, whole) for kind, whole in moments.items() if whole})
    return made
