"""The log of reductions of feedback vertex sets: words, int64. What each entry means, for who writes and who
proves it.

Nodes are called by the numbers of the graph. What is said holds for the multigraph, weights included, as the
entries before have left it; a double edge counts twice in a degree. A word that says which entry it is comes
first.

    LEAF   v        v has at most one edge: no cycle goes through it, it goes
    PATH   v        v has one edge to a and one to b, and is no lighter than one of the two, which can be
                    taken in its place: it goes, and there is an edge a-b more
    TAKE   u v      a double edge joins u and v, u is no heavier, and all other neighbours of v have a double
                    edge to u, too, but for one with a single edge to v: some best set has u. It is taken
    SHIFT  v        a double edge joins v to a heavier node u, and it has at most one more edge: v is taken
                    where u is not, and only there. It goes, its weight is paid, and u is lighter by as much
    CUT    k u v .. k single edges that no cycle has: they go
"""

import numpy as np

LEAF, PATH, TAKE, SHIFT, CUT = range(5)
NODES = {LEAF: 1, PATH: 1, TAKE: 2, SHIFT: 1}  # that an entry names


def renumbered(log: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """A log [words] int64 whose nodes have other numbers [k], which ascend with their own."""
    out, at = log.copy(), 0
    while at < len(log):
        rule = int(log[at])
        first, last = (
            (at + 2, at + 2 + 2 * int(log[at + 1])) if rule == CUT else (at + 1, at + 1 + NODES[rule])
        )
        out[first:last] = numbers[log[first:last]]
        at = last
    return out
