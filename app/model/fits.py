"""Whether a case fits the memory that is there: told before anything is allocated, from counts alone."""

import platform
import resource
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from app.comm.group import Group
from app.comm.guard import raise_together
from app.config import Case
from app.errors import CaseError
from app.model import gnn_memory, memory
from app.model.calibrate import resident_bytes
from app.model.defaults import DEFAULTS
from app.model.node_plan import training_of
from app.model.plan import classified_counts, counts_of, held_solving, held_training, network_of, tasks_of

MARGIN = 1.15  # an estimate may be so much too high
CGROUPS, MEMINFO, OWN_CGROUP = Path("/sys/fs/cgroup"), Path("/proc/meminfo"), Path("/proc/self/cgroup")


def refuse_too_large(group: Group, case: Case) -> str:
    """Refuse a case that by estimate needs more memory than a rank may take; the estimate, in words.

    "" where counts are not known before reading, or arrays may move to a slow tier. Ranks: all call
    """
    words, needed = "", 0
    with raise_together(group, "estimating the memory"):
        if group.rank == 0:
            for name, held in memory_tables(case, group.size, group.device):
                if memory.total(held) > needed:
                    needed = memory.total(held)
                    words = f"{name}: about {memory.size(needed)} a rank ({memory.words(held)})"
    words = group.broadcast_text(words)
    needed = int(group.broadcast(np.array([needed], dtype=np.int64))[0])
    here = group.gather_texts(platform.node()).count(platform.node())
    with raise_together(group, "comparing with the memory there is"):
        room, what = memory_room(here)
        if case.memory.estimate_first and needed > MARGIN * room:
            ranks = f"each of {here} ranks here" if here > 1 else "it"
            raise CaseError(
                f"memory: {words}, but {what} leaves {memory.size(room)} to {ranks}; more hosts, or a "
                "smaller graph, would be right (memory.estimate_first = false tries it all the same)"
            )
    return words


def memory_tables(case: Case, ranks: int, device: object) -> Iterator[tuple[str, dict[str, int]]]:
    """Name and bytes by term of what a rank holds at its fullest, of each graph whose counts are known."""
    if case.run.task == "classify":
        nodes, entries = classified_counts(case)
        if nodes and entries and case.gnn.epochs and not case.memory.fast_mb:
            training = training_of(case, nodes, entries, ranks, device, count_classes=False)
            layout = training.layout
            yield case.run.name, gnn_memory.peak(training, layout.heaviest, DEFAULTS.base_bytes)
        return
    for learns, table in tasks_of(case):
        net, held_of = network_of(case), held_training if learns else held_solving
        for counts in counts_of(case, table):
            if not isinstance(counts, str):
                yield counts.name, held_of(case, net, DEFAULTS.base_bytes, counts, ranks)


def memory_room(ranks: int) -> tuple[int, str]:
    """Bytes that this process may hold in all, and what says so, where `ranks` processes share a host."""
    rooms = [(_address_space(), "the limit of its address space (ulimit -v)")]
    rooms += [(most // ranks, "the memory limit of its control group") for most in _group_limits()]
    rooms.append((_of_meminfo("MemTotal") + _of_meminfo("SwapTotal"), "the machine"))
    rooms[-1] = (rooms[-1][0] // ranks, rooms[-1][1])
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
        inside = CGROUPS if not kinds else CGROUPS / "memory"
        if kinds and "memory" not in kinds.split(","):
            continue
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
