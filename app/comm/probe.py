"""Two ranks that send device memory to each other: run by app/comm/transport.py as a job of its own."""

import sys

import numpy as np
from mpi4py import MPI

from app.comm.transport import PROBED, SAID, local_rank
from app.device import open_gpu

COUNT = 1 << 18  # numbers: enough for the path of large messages


def main() -> int:
    """Exchange, gather and broadcast device arrays, and look at what arrived."""
    comm = MPI.COMM_WORLD
    device = open_gpu(local_rank(comm))
    if isinstance(device, str):
        print(f"{SAID}{device}", file=sys.stderr)
        return 1
    xp, rank = device.xp, comm.Get_rank()
    send = xp.full(COUNT, rank + 1, dtype=np.float32)
    gathered = xp.zeros(COUNT * comm.Get_size(), dtype=np.float32)
    swapped, told = xp.zeros_like(gathered), xp.full(COUNT, rank, dtype=np.float32)
    device.synchronize()
    comm.Allgather(send, gathered)
    comm.Alltoall(gathered, swapped)
    comm.Ibcast(told, root=1).Wait()
    wanted = np.repeat(np.arange(comm.Get_size(), dtype=np.float32) + 1, COUNT)
    found = [device.get(each) for each in (gathered, swapped, told)]
    right = np.array_equal(found[0], wanted) and (found[1] == rank + 1).all() and (found[2] == 1).all()
    if right:
        print(PROBED)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
