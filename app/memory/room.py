"""How much memory this process takes, and how much it may take: as Linux tells it."""

import resource
from collections.abc import Iterator
from pathlib import Path

CGROUPS, MEMINFO, OWN_CGROUP = Path("/sys/fs/cgroup"), Path("/proc/meminfo"), Path("/proc/self/cgroup")


def resident_bytes(key: str = "VmRSS") -> int:
    """Memory of this process: now, the most so far (VmHWM), or its addresses (VmSize); 0 where unknown."""
    try:
        with open("/proc/self/status") as file:
            return next((int(line.split()[1]) << 10 for line in file if line.startswith(key)), 0)
    except OSError:
        return 0


def memory_room(ranks: int = 1) -> tuple[int, str]:
    """Bytes that this process may hold in all, and what says so, where `ranks` processes share a host."""
    machine = _of_meminfo("MemTotal") + _of_meminfo("SwapTotal")
    rooms = [
        (_address_space(), "the limit of its address space (ulimit -v)"),
        (machine // ranks, "the machine"),
    ]
    rooms += [(most // ranks, "the memory limit of its control group") for most in _group_limits()]
    known = [each for each in rooms if each[0] > 0]
    return min(known) if known else (1 << 62, "nothing")


def _address_space() -> int:
    """What RLIMIT_AS leaves: libraries take far more addresses than memory; 0: no limit."""
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return 0 if soft == resource.RLIM_INFINITY else soft - resident_bytes("VmSize") + resident_bytes()


def _group_limits() -> Iterator[int]:
    """The limits of this process's control group and of those above it (versions 2 and 1)."""
    for line in _text(OWN_CGROUP).splitlines():
        _, kinds, path = line.split(":", 2)
        if kinds and "memory" not in kinds.split(","):
            continue
        inside = CGROUPS / "memory" if kinds else CGROUPS
        folder = inside / path.lstrip("/")
        for each in (folder, *folder.parents):
            text = _text(each / ("memory.limit_in_bytes" if kinds else "memory.max")).strip()
            if text.isdigit() and int(text) < 1 << 60:  # version 1 writes a huge number for none
                yield int(text)
            if each == inside:
                break


def _of_meminfo(key: str) -> int:
    """Bytes of a line of /proc/meminfo; 0 where there is none."""
    found = (line.split() for line in _text(MEMINFO).splitlines() if line.startswith(f"{key}:"))
    return next((1024 * int(words[1]) for words in found), 0)


def _text(path: Path) -> str:
    """The content of a file; "" where it cannot be read."""
    try:
        return path.read_text()
    except OSError:
        return ""
