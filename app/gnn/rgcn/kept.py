"""What training keeps of a relational network: its state, as whole arrays, the same for any placement on
ranks; and its best weights so far."""

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


class Best:
    """Copies of the weights at the evaluation with the largest score, the first of equal ones.

    epoch    after which these are the weights; 0: of none, or before the first
    waited   evaluations since
    kept     by name the rows of this rank, of more arrays than the network's where those are observed
    """

    def __init__(self) -> None:
        self.epoch, self.score, self.waited, self.kept = 0, -np.inf, 0, {}

    def observe(self, epoch: int, score: float, arrays: dict[str, Array]) -> None:
        """Keep the arrays if they are the best so far."""
        self.waited += 1
        if score > self.score:
            self.epoch, self.score, self.waited = epoch, score, 0
            self.kept = {name: array.copy() for name, array in arrays.items()}

    def restore(self, arrays: dict[str, Array]) -> None:
        """Make the arrays what the best ones were."""
        for name, kept in self.kept.items():
            arrays[name][...] = kept

    def enter(self, state: State, group: Group, net: RGCN) -> None:
        """Enter it in the state of the network. Ranks: all call."""
        state.values |= {"best_epoch": self.epoch, "best_score": self.score, "waited": self.waited}
        if self.kept:
            state.arrays |= gathered(group, net, self.kept, "best")

    def recall(self, state: State, group: Group, net: RGCN) -> None:
        """Go on from what `enter` told. Ranks: all call."""
        self.epoch, self.score, self.waited = (
            state.values[name] for name in ("best_epoch", "best_score", "waited")
        )
        if whole := named(state.arrays, "best"):
            device = group.device
            self.kept = {name: device.put(each) for name, each in shares(group, net, whole).items()}


def state_of(
    group: Group, net: RGCN, steps: Any, epochs: int, records: list[dict[str, float]], took: Took,
    last: bool = False,
) -> State:  # fmt: skip
    """All that later epochs depend on, after `epochs` of them, and the seconds they took.

    steps   the optimisers
    last    there are none, so that what the optimisers keep, most of it, is left out
    Ranks   all call
    """
    arrays = gathered(group, net)
    for kind in MOMENTS if steps.has_moments and not last else ():
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
