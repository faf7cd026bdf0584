"""The terminals of a Steiner tree that a file names, and whether it has prizes, on all ranks."""

import numpy as np

from app.comm.group import Group
from app.graphs.stream import EdgeStream


def share_terminals(group: Group, source: EdgeStream | None) -> np.ndarray | None:
    """[k] int64, the ids of rank 0's terminals (others pass None); None: no. Ranks: all call."""
    held = source.terminals if group.rank == 0 and source is not None else None
    count = group.max_integer(0 if held is None else len(held) + 1)
    if not count:
        return None
    ids = np.zeros(count - 1, dtype=np.int64) if held is None else held + source.first_id
    return group.broadcast(ids)


def share_prized(group: Group, source: EdgeStream | None) -> tuple[bool, bool]:
    """Whether the node weights of rank 0's stream (others pass None) are prizes, and whether those of a
    heaviest connected subgraph. Ranks: all call.
    """
    told = source.prized + 2 * source.heaviest if group.rank == 0 and source is not None else 0
    found = group.max_integer(int(told))
    return bool(found & 1), bool(found & 2)
