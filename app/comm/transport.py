"""What the MPI library is, and whether it may read and write device memory: decided once, here."""

from typing import Any

from mpi4py import MPI

from app.errors import CaseError


def mpi_takes_device_memory() -> bool:
    """True where the MPI library states support for CUDA memory (MPI 4.1: mpi_memory_alloc_kinds)."""
    info = MPI.COMM_WORLD.Get_info()
    kinds = info.Get("mpi_memory_alloc_kinds") or ""
    info.Free()
    return "cuda" in kinds


def mpi_library() -> str:
    """Name and version of the MPI library, on one line."""
    return MPI.Get_library_version().split("\n")[0].strip("\x00 ")


def choose_transport(wanted: str, device: Any) -> bool:
    """True: device arrays go to MPI as they are; False: they are copied through the host.

    wanted   "auto": direct where the library states support; "direct"; "staged"
    """
    if device.direct:
        return True
    if wanted == "auto":
        return mpi_takes_device_memory()
    if wanted == "direct" and not mpi_takes_device_memory():
        raise CaseError(
            'parallel.transport: "direct" needs an MPI library that takes CUDA memory; this one '
            'does not say so: use "staged"'
        )
    return wanted == "direct"
