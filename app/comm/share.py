"""What one rank has, on all: host arrays by name."""

import json

import numpy as np

from app.comm.group import Group


def share_arrays(group: Group, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Rank 0's host arrays on all ranks; what the others pass is not looked at. Ranks: all call (Bcast)."""
    if group.size == 1:
        return arrays
    about = [[name, array.dtype.str, array.shape] for name, array in arrays.items()]
    about = json.loads(group.broadcast_text(json.dumps(about) if group.rank == 0 else ""))
    found = {}
    for name, kind, shape in about:
        own = np.ascontiguousarray(arrays[name]) if group.rank == 0 else np.empty(shape, dtype=kind)
        found[name] = group.broadcast(own)
    return found
