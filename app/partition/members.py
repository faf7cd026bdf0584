"""What all ranks must know of the rows of a set of graphs."""

import json

import numpy as np

from app.comm.group import Group
from app.graphs.members import Members
from app.graphs.stream import EdgeStream


def share_members(group: Group, source: EdgeStream | None) -> Members | None:
    """What rank 0's stream says of the rows of graphs. Ranks: all call (two broadcasts for a set)."""
    held = source.members if group.rank == 0 and source is not None else None
    count = group.max_integer(0 if held is None else held.count + 1)
    if not count:
        return None
    names = json.loads(group.broadcast_text(json.dumps([] if held is None else [held.first_id, *held.names])))
    starts = group.broadcast(np.zeros(count, dtype=np.int64) if held is None else held.starts)
    return Members(starts, tuple(names[1:]), names[0])
