"""Two matrices of a file of quadratic assignments, read by rank 0, on every rank."""

import numpy as np
import scipy.sparse as sp

from app.comm.group import Group
from app.graphs.pairing import Given
from app.graphs.stream import EdgeStream


def share_pairing(group: Group, source: EdgeStream | None) -> Given | None:
    """Rank 0's matrices on all ranks (others pass None); None where it has none. Ranks: all call."""
    held = source.pairing if group.rank == 0 and source is not None else None
    n = group.max_integer(0 if held is None else held.a.shape[0])
    if not n:
        return None
    both = np.empty((2, n, n), dtype=np.int64)
    if held is not None:
        both[:] = held.a.toarray(), held.b.toarray()
    both = group.broadcast(both)
    return Given(*(sp.csr_array(each) for each in both))
