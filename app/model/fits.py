"""Whether a case fits the memory that is there: told before anything is allocated, from counts alone."""

import platform
from collections.abc import Iterator

import numpy as np

from app.case.config import Case
from app.comm.group import Group
from app.comm.guard import raise_together
from app.errors import CaseError
from app.memory.room import memory_room
from app.model import gnn_memory, memory
from app.model.defaults import DEFAULTS
from app.model.node_plan import training_of
from app.model.plan import classified_counts, counts_of, held_solving, held_training, network_of, tasks_of

MARGIN = 1.15  # an estimate may be so much too high


def refuse_too_large(group: Group, case: Case) -> list[str]:
    """Refuse a case that by estimate needs more memory than a rank may take; the estimate, as a line.

    No line where counts are not known before reading, or arrays lie on a GPU.
    Ranks   all call
    """
    if group.device.name != "cpu":
        return []
    words, needed = "", 0
    with raise_together(group, "estimating the memory"):
        if group.rank == 0:
            for name, held in memory_tables(case, group.size, group.device):
                if memory.total(held) > needed:
                    needed = memory.total(held)
                    words = f"{name}: about {memory.size(needed)} a rank ({memory.words(held)})"
    words = group.broadcast_text(words)
    refuse_without_room(group, case, words, needed)
    return [words] if words else []


def refuse_without_room(group: Group, case: Case, words: str, needed: int) -> None:
    """Refuse what needs more bytes than a rank may take, unless memory.estimate_first is false.

    words    what it is for, and how many; the same on all ranks
    needed   bytes of a rank, of which rank 0's count
    Ranks    all call. Raises CaseError
    """
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


def memory_tables(case: Case, ranks: int, device: object) -> Iterator[tuple[str, dict[str, int]]]:
    """Name and bytes by term of what a rank holds at its fullest, of each graph whose counts are known."""
    if case.run.task == "classify":
        nodes, entries = classified_counts(case)
        if nodes and entries and case.gnn.epochs:
            training = training_of(case, nodes, entries, ranks, device, count_classes=False)
            layout = training.layout
            yield case.run.name, gnn_memory.peak(training, layout.heaviest, DEFAULTS.base_bytes)
        return
    for learns, table in tasks_of(case):
        net, held_of = network_of(case), held_training if learns else held_solving
        for counts in counts_of(case, table):
            if not isinstance(counts, str):
                yield counts.name, held_of(case, net, DEFAULTS.base_bytes, counts, ranks)
