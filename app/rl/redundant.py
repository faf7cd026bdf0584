"""Taking out of a finished solution what it does not need, on row partitions."""

from collections.abc import Callable

import numpy as np

from app.comm.group import Group
from app.rl.select import independent
from app.sparse.batch import StateBatch
from app.sparse.rowblock import RowBlock


def cover_redundant(
    group: Group, block: RowBlock, chosen_at_own: np.ndarray, solution_own: np.ndarray
) -> np.ndarray:
    """Nodes of a vertex cover whose neighbours are all in it: the latest chosen first, no two adjacent.

    What is left is minimal: a redundant node that stays has a neighbour that was taken out.

    chosen_at_own [n_own] int32    solution_own [n_real] bool
    returns       [k] global nodes to take out
    Ranks         all call; identical on all
    """
    exposed = _sum_near(group, block, ~solution_own) > 0
    return independent(group, block, latest_first(group, block, chosen_at_own, solution_own & ~exposed))


def latest_first(
    group: Group, block: RowBlock, chosen_at_own: np.ndarray, among_own: np.ndarray
) -> np.ndarray:
    """[k] the global nodes `among_own` [n_real] of all ranks, latest choice first, of one transition the lowest
    node first. Ranks: all call."""
    rows = np.flatnonzero(among_own)
    when = chosen_at_own[rows].astype(np.int64)
    keyed = np.stack([-when, rows + block.lo], axis=1)
    counts = group.gather_integers(np.array([len(keyed)]))[:, 0].tolist()
    keyed = group.gather_host(keyed, counts)
    return keyed[np.lexsort((keyed[:, 1], keyed[:, 0])), 1]


def _sum_near(group: Group, block: RowBlock, values_own: np.ndarray) -> np.ndarray:
    """[n_real] float32, for each own node the sum of values_own [n_real] over its neighbours. Ranks: all call."""
    column = np.zeros((block.n_own, 1), dtype=np.float32)
    column[: block.n_real, 0] = values_own
    sums = StateBatch(group, [(block, 1)]).times(group.device.put(column))
    return group.device.get(sums)[: block.n_real, 0]


# (group, block, chosen_at_own [n_own], solution_own [n_real]) -> global nodes to take out, the same on all ranks
Redundant = Callable[[Group, RowBlock, np.ndarray, np.ndarray], np.ndarray]
REDUNDANCY: dict[str, Redundant] = {"cover": cover_redundant}
