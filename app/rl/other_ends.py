"""Other solutions that the choices of a finished rollout lead to, on row partitions."""

from collections.abc import Callable, Iterator

import numpy as np

from app.comm.group import Group
from app.problems.problem import Problem
from app.rl.forest import part_sizes_own, parts_ext, tree_breakers
from app.sparse.rowblock import RowBlock

BREAKS = (3, 2, 1)  # nodes to which trees are broken, beside those that components may have
MOST_ENTRIES = 1 << 19  # of graphs for which other ends are looked for: some tenths of a second each


def broken_trees(
    group: Group, block: RowBlock, problem: Problem, chosen_at_own: np.ndarray
) -> Iterator[np.ndarray]:
    """[n_real] bool each, dismantling sets: the first choices, up to where all components of more than q
    nodes are trees, and the fewest nodes that break these from their leaves up, which is exact.

    q is K, what a component may have in the end, and what the policy plays on to where that is less; then
    trees are broken to fewer nodes too (BREAKS): of larger sets more nodes may go back (parts_redundant).

    chosen_at_own   [n_own] int32
    Ranks           all call; identical on all
    Cost            of each q a labelling of components for each binary digit of the number of steps
    Source          trees: Braunstein, Dall'Asta, Semerjian and Zdeborova, Network dismantling, PNAS 2016
    """
    if 2 * block.edges > MOST_ENTRIES:
        return
    largest, finest = problem.limits(block.n)[0], problem.finest(block.n)
    levels = {largest: (largest,), finest: (finest, *(each for each in BREAKS if each < finest))}
    for most, breaks in levels.items():
        first_own = _first_choices(group, block, chosen_at_own[: block.n_real], most)
        if first_own is None:
            continue
        large_own, _ = _large_trees(group, block, ~first_own, most)
        for each in breaks:
            solution_own = first_own.copy()
            nodes = tree_breakers(group, block, large_own, each)
            solution_own[nodes[(nodes >= block.lo) & (nodes < block.lo + block.n_real)] - block.lo] = True
            yield solution_own


def _first_choices(group: Group, block: RowBlock, chosen_at_own: np.ndarray, most: int) -> np.ndarray | None:
    """[n_real] bool, the choices of the fewest first steps that leave components of more than `most` nodes
    trees; None: all do not. Ranks: all call.
    """

    def taken(steps: int) -> np.ndarray:
        return (chosen_at_own >= 0) & (chosen_at_own < steps)

    least, steps = 0, 1 + group.max_integer(int(chosen_at_own.max(initial=-1)))
    if not _large_trees(group, block, ~taken(steps), most)[1]:
        return None
    while least < steps:  # what more steps leave of trees is trees
        middle = (least + steps) // 2
        if _large_trees(group, block, ~taken(middle), most)[1]:
            steps = middle
        else:
            least = middle + 1
    return taken(steps)


def _large_trees(group: Group, block: RowBlock, kept_own: np.ndarray, most: int) -> tuple[np.ndarray, bool]:
    """[n_own] bool, own nodes of components of more than `most` nodes among those kept [n_real]; whether all
    of these are trees. Ranks: all call.
    """
    label_ext = parts_ext(group, block, kept_own)
    large_own = part_sizes_own(group, block, label_ext) > most
    large_ext = block.extend_host(group, large_own.astype(np.int64)) > 0
    rows, entries = np.flatnonzero(large_own), 0
    for piece in block.pieces(rows):
        entries += np.count_nonzero(large_ext[block.extended_rows(rows[piece])[1]])
    label_own = label_ext[block.own_at : block.own_at + block.n_own]
    parts = np.count_nonzero(label_own[rows] == block.lo + rows)
    entries, nodes, parts = group.sum_integers(np.array([entries, len(rows), parts])).tolist()
    return large_own, entries // 2 == nodes - parts


# (group, block, problem, chosen_at_own [n_own]) -> solutions [n_real] bool, by Problem.redundancy
OtherEnds = Callable[..., Iterator[np.ndarray]]
OTHER_ENDS: dict[str, OtherEnds] = {"parts": broken_trees}
