"""Taking out of a finished solution what it does not need, on row partitions."""

from collections.abc import Callable

import numpy as np

from app.comm.group import Group
from app.graphs.keys import sorted_set
from app.graphs.sized import SizedGraph, from_ends
from app.rl.family_env import family_of
from app.rl.forest import part_sizes_own, parts_ext
from app.rl.select import independent
from app.search.dismantle.baselines import reinsertions
from app.sparse.batch import StateBatch
from app.sparse.rowblock import RowBlock

ALWAYS = 1 << 62  # looks


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


def domination_redundant(
    group: Group, block: RowBlock, chosen_at_own: np.ndarray, solution_own: np.ndarray
) -> np.ndarray:
    """Nodes of a dominating set that it does not need, the latest chosen first; what is left is minimal.

    A node is taken out while all that it dominates is dominated by another one that stays.

    chosen_at_own [n_own] int32    solution_own [n_real] bool
    returns       [k] global nodes to take out
    Ranks         all call; identical on all. What the redundant nodes dominate is gathered
    """
    times_own = (_sum_near(group, block, solution_own) + solution_own).astype(np.int64)
    # A node is redundant where no node of its closed neighbourhood is dominated once only.
    once_own = times_own == 1
    needed = (_sum_near(group, block, once_own) + once_own) > 0
    order = latest_first(group, block, chosen_at_own, solution_own & ~needed)
    return _without_need(group, block, order, times_own)


def family_redundant(
    group: Group, block: RowBlock, chosen_at_own: np.ndarray, solution_own: np.ndarray
) -> np.ndarray:
    """Sets of a cover that it does not need, the dearest first, of equal ones the latest chosen; what is left
    is minimal.

    A set is taken out while all of its elements are in another one that stays.

    chosen_at_own [n_own] int32    solution_own [n_real] bool
    returns       [k] global nodes to take out
    Ranks         all call; identical on all. The elements of redundant sets are gathered
    """
    family = family_of(group, block)
    demand_own = family.mark[: block.n_real] > 0
    times_own = np.where(demand_own, _sum_near(group, block, solution_own), block.n + 1).astype(np.int64)
    needed = _sum_near(group, block, times_own == 1) > 0
    order = latest_first(group, block, chosen_at_own, solution_own & ~needed)
    cost = _values_at(group, block, family.cost[: block.n_real], order)
    order = order[np.argsort(-cost, kind="stable")]
    return _without_need(group, block, order, times_own)


def _without_need(group: Group, block: RowBlock, order: np.ndarray, times_own: np.ndarray) -> np.ndarray:
    """Of nodes [k] in order those that go, while of their closed neighbourhoods each is met twice or more.

    times_own   [n_real] int64, how often each node is met
    Ranks       all call; identical on all
    """
    edges = _closed_rows(group, block, order)
    near = sorted_set(edges[:, 1])
    slack = dict(zip(near.tolist(), (_values_at(group, block, times_own, near) - 1).tolist()))
    dropped = []
    starts = np.searchsorted(edges[:, 0], np.arange(len(order) + 1))
    for i, node in enumerate(order.tolist()):
        closed = edges[starts[i] : starts[i + 1], 1].tolist()
        if all(slack[u] > 0 for u in closed):
            dropped.append(node)
            for u in closed:
                slack[u] -= 1
    return np.array(dropped, dtype=np.int64)


def forest_redundant(
    group: Group, block: RowBlock, chosen_at_own: np.ndarray, solution_own: np.ndarray
) -> np.ndarray:
    """Nodes of a feedback vertex set that no cycle needs, the latest chosen first; what is left is minimal.

    A node goes back where no two of its neighbours are in one tree of the forest, which it then joins.
    Trees only grow: a node that closes a cycle at first never goes back.

    chosen_at_own [n_own] int32    solution_own [n_real] bool
    returns       [k] global nodes to take out
    Ranks         all call; identical on all. The trees next to nodes that may go back are gathered
    """
    tree = parts_ext(group, block, ~solution_own)
    apart_own = solution_own & ~_meets_one_twice(block, tree, np.flatnonzero(solution_own))
    order = latest_first(group, block, chosen_at_own, apart_own)
    pairs = _near_trees(group, block, order, tree)
    return order[_joins_apart(len(order), *_in_few_numbers(order, pairs))]


def _in_few_numbers(order: np.ndarray, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Where the pairs [m, 2] of each node of `order` [k] begin [k+1], numbers 0.. of these nodes [k] and of
    what they are next to [m], equal for equal names, and how many there are.
    """
    starts = np.searchsorted(pairs[:, 0], np.arange(len(order) + 1))
    names, number = np.unique(np.concatenate([order, pairs[:, 1]]), return_inverse=True)
    return starts, number[: len(order)], number[len(order) :], len(names)


def _joins_apart(k: int, starts: np.ndarray, own: np.ndarray, near: np.ndarray, count: int) -> np.ndarray:
    """[k] bool, which nodes go back, one after the other, where all trees next to them are different ones."""
    joins, above = np.zeros(k, dtype=bool), list(range(count))  # towards the root of a tree that has grown
    waits = np.zeros(count, dtype=np.uint8)
    waits[own] = 1  # in no tree
    waits, starts, near = bytearray(waits), starts.tolist(), near.tolist()
    for i, node in enumerate(own.tolist()):
        roots = []
        for v in near[starts[i] : starts[i + 1]]:
            if waits[v]:
                continue
            while above[v] != v:
                above[v] = above[above[v]]
                v = above[v]
            roots.append(v)
        if len(set(roots)) == len(roots):
            joins[i], waits[node] = True, 0
            for v in roots:
                above[v] = node
    return joins


def _meets_one_twice(block: RowBlock, tree: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """[n_real] bool, which of the own rows [k] have two neighbours or more in one tree; tree: parts_ext."""
    found = np.zeros(block.n_real, dtype=bool)
    for piece in block.pieces(rows):
        counts, columns, _ = block.extended_rows(rows[piece])
        near, own = tree[columns], np.repeat(rows[piece], counts)
        keys = np.sort((own * np.int64(block.n + 1) + near)[near >= 0])
        found[keys[1:][keys[1:] == keys[:-1]] // (block.n + 1)] = True
    return found


def _near_trees(
    group: Group, block: RowBlock, nodes: np.ndarray, tree: np.ndarray, size_ext: np.ndarray | None = None
) -> np.ndarray:
    """[m, 2] (position in `nodes`, tree of a neighbour or the neighbour itself among them), by position; with
    sizes [n_ext] of the trees, [m, 3].

    tree    [n_ext] as of parts_ext, -1 of what is in none
    Ranks   all call
    """
    own = np.flatnonzero((nodes >= block.lo) & (nodes < block.lo + block.n_real))
    counts, columns, _ = block.extended_rows(nodes[own] - block.lo)
    name = columns if block.columns is None else block.columns[columns]
    name = np.where(tree[columns] >= 0, tree[columns], name)
    among = np.zeros(block.n, dtype=bool)
    among[nodes] = True
    kept = (tree[columns] >= 0) | among[name]
    told = [np.repeat(own, counts), name] + ([] if size_ext is None else [size_ext[columns]])
    found = np.stack(told, axis=1).astype(np.int64)[kept]
    rows = group.gather_host(found, group.gather_integers(np.array([len(found)]))[:, 0].tolist())
    if size_ext is None:  # one sort of numbers is several times as fast as one by two columns
        return np.stack(np.divmod(np.sort(rows[:, 0] * block.n + rows[:, 1]), block.n), axis=1)
    return rows[np.lexsort((rows[:, 1], rows[:, 0]))]


def parts_redundant(
    group: Group, block: RowBlock, chosen_at_own: np.ndarray, solution_own: np.ndarray, most: int
) -> np.ndarray:
    """Nodes of a dismantling set without which no component has more than `most` nodes, that which makes the
    smallest one first, the lowest number of several; what is left is minimal.

    Components only grow: a node that joins too much at first never goes back, and what one makes that was
    looked at before is no less than it was then.

    chosen_at_own [n_own] int32, of no matter here     solution_own [n_real] bool
    returns       [k] global nodes to take out
    Ranks         all call; identical on all. The components next to nodes that may go back are gathered
    Source        reinsertion: Braunstein, Dall'Asta, Semerjian and Zdeborova, Network dismantling, PNAS 2016
    """
    part = parts_ext(group, block, ~solution_own)
    size_ext = block.extend_host(group, part_sizes_own(group, block, part))
    rows = np.flatnonzero(solution_own)
    rows = rows[_joined_sizes(block, part, size_ext, rows) <= most]
    nodes = group.gather_host(
        rows.astype(np.int64) + block.lo, group.gather_integers(np.array([len(rows)]))[:, 0].tolist()
    )
    if not len(nodes):
        return nodes
    near = _near_trees(group, block, nodes, part, size_ext)
    core, chosen = _core_of(nodes, near, most)
    return nodes[reinsertions(core, chosen, looks=ALWAYS)]


def _core_of(nodes: np.ndarray, near: np.ndarray, most: int) -> tuple[SizedGraph, np.ndarray]:
    """A graph of nodes [k] that may go back and of the components next to them, as of _near_trees: first the
    nodes, then the components in the place of all their nodes; and which of these [k + c] bool are nodes.
    """
    row, name, size = near.T
    at = np.minimum(np.searchsorted(nodes, name), len(nodes) - 1)
    apart = nodes[at] != name
    labels, first = np.unique(name[apart], return_index=True)
    at[apart] = len(nodes) + np.searchsorted(labels, name[apart])
    count = len(nodes) + len(labels)
    pairs = sorted_set((row * count + at)[row < at])
    ones = np.ones(count, dtype=np.int64)
    sizes = np.concatenate([ones[: len(nodes)], size[apart][first]])
    return from_ends(*np.divmod(pairs, count), sizes, ones, most), np.arange(count) < len(nodes)


def _joined_sizes(block: RowBlock, part: np.ndarray, size_ext: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """[k] int64, nodes of what each of the own rows [k] would join, itself included; part: parts_ext."""
    total = np.ones(block.n_own, dtype=np.int64)
    for piece in block.pieces(rows):
        counts, columns, _ = block.extended_rows(rows[piece])
        inside = part[columns] >= 0
        pairs = np.stack([np.repeat(rows[piece], counts), part[columns], size_ext[columns]], axis=1)[inside]
        pairs = np.unique(pairs, axis=0)
        np.add.at(total, pairs[:, 0], pairs[:, 2])
    return total[rows]


def _closed_rows(group: Group, block: RowBlock, nodes: np.ndarray) -> np.ndarray:
    """[m, 2] (position in `nodes`, global node of its closed neighbourhood), by position. Ranks: all call."""
    own = np.flatnonzero((nodes >= block.lo) & (nodes < block.lo + block.n_real))
    counts, near = block.global_rows(nodes[own] - block.lo)
    found = np.stack([np.repeat(own, counts), near], axis=1)
    found = np.concatenate([found, np.stack([own, nodes[own]], axis=1)]).astype(np.int64)
    rows = group.gather_host(found, group.gather_integers(np.array([len(found)]))[:, 0].tolist())
    return rows[np.lexsort((rows[:, 1], rows[:, 0]))]


def _values_at(group: Group, block: RowBlock, values_own: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """[k] the values [n_real] int64 of global nodes [k], which one rank each owns. Ranks: all call."""
    local = nodes - block.lo
    mine = (local >= 0) & (local < block.n_real)
    out = np.zeros(len(nodes), dtype=np.int64)
    out[mine] = values_own[local[mine]]
    return group.sum_integers(out)


def latest_first(
    group: Group, block: RowBlock, chosen_at_own: np.ndarray, among_own: np.ndarray
) -> np.ndarray:
    """[k] the global nodes `among_own` [n_real] of all ranks, latest choice first, then by number.

    Ranks   all call; identical on all
    """
    rows = np.flatnonzero(among_own)
    when = chosen_at_own[rows].astype(np.int64)
    keyed = np.stack([-when, rows + block.lo], axis=1)
    counts = group.gather_integers(np.array([len(keyed)]))[:, 0].tolist()
    keyed = group.gather_host(keyed, counts)
    return keyed[np.lexsort((keyed[:, 1], keyed[:, 0])), 1]


def _sum_near(group: Group, block: RowBlock, values_own: np.ndarray) -> np.ndarray:
    """[n_real] float32, sums of values_own [n_real] over the neighbours of own nodes. Ranks: all call."""
    column = np.zeros((block.n_own, 1), dtype=np.float32)
    column[: block.n_real, 0] = values_own
    sums = StateBatch(group, [(block, 1)]).times(group.device.put(column))
    return group.device.get(sums)[: block.n_real, 0]


# (group, block, chosen_at_own [n_own], solution_own [n_real], *Problem.limits) -> global nodes, the same on
# all ranks
Redundant = Callable[..., np.ndarray]
REDUNDANCY: dict[str, Redundant] = {
    "cover": cover_redundant,
    "domination": domination_redundant,
    "family": family_redundant,
    "forest": forest_redundant,
    "parts": parts_redundant,
}
