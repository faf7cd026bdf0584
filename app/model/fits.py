"""Whether a case fits the memory that is there: told before anything is allocated, from counts alone."""

import platform
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from app.case.config import Case, is_forecast, is_relational
from app.case.graph import GraphCase
from app.comm.group import Group
from app.comm.guard import raise_together
from app.errors import CaseError
from app.memory.room import memory_room
from app.model.memory import Need, size

MARGIN, OF_LAYERS = 1.15, 1.05  # an estimate may be so much too high; of classify, which is known better
NEAR = 0.9  # of the room: from there on a rank may take more than there is


def refuse_too_large(group: Group, case: Case) -> tuple[list[str], list[str]]:
    """Refuse a case that by estimate needs more memory than a rank may take.

    No line where counts are not known before reading, or arrays lie on a GPU.
    Returns   the estimate, as a line; a warning where it comes near what there is
    Ranks     all call
    """
    return refuse_needs(group, case, lambda: needs_of(case, group.size, group.device))


def refuse_read(
    group: Group,
    case: Case,
    table: GraphCase,
    read: list[tuple[str, int, int]],
    learns: bool,
    here: int,
    ranks: int,
) -> list[str]:
    """The same for graphs of files that were read, to learn on or to solve; the warning.

    read    name, nodes and edges of each; where all headers of the table had them it has been asked before
    here    ranks on this host, of all groups    ranks   of all groups, where the graphs are learned on
    Ranks   all of a group call
    """

    from app.model.policy_plan import needs_of_read  # of no use to networks

    shared = ranks if learns else group.size
    return refuse_needs(group, case, lambda: needs_of_read(case, table, read, shared, learns), here)[1]


def refuse_needs(
    group: Group, case: Case, make: Callable[[], Iterable[Need]], here: int = 0
) -> tuple[list[str], list[str]]:
    """As refuse_too_large, of needs that rank 0 makes; here: ranks on this host, 0: those of the group.

    Ranks   all call. Raises CaseError
    """
    if group.device.name != "cpu":
        return [], []
    here = here or ranks_here(group)
    words, certain, most = "", 0, 0
    with raise_together(group, "estimating the memory"):
        for need in make() if group.rank == 0 else ():
            if need.certain > certain:
                words, certain = need.words, need.certain
            most = max(most, need.most)
    words = group.broadcast_text(words)
    refuse_without_room(group, case, words, certain, here)
    most = int(group.broadcast(np.array([most], dtype=np.int64))[0])
    near = [text for text in group.gather_texts(_warning(most, here)) if text][:1]
    return [words] if words else [], near


def refuse_without_room(group: Group, case: Case, words: str, needed: int, here: int = 0) -> None:
    """Refuse what needs more bytes than a rank may take, unless memory.estimate_first is false.

    words    what it is for, and how many; the same on all ranks
    needed   bytes of a rank, of which rank 0's count
    here     ranks on this host; 0: those of the group
    Ranks    all call. Raises CaseError
    """
    needed = int(group.broadcast(np.array([needed], dtype=np.int64))[0])
    here = here or ranks_here(group)
    margin = OF_LAYERS if case.run.task == "classify" else MARGIN
    with raise_together(group, "comparing with the memory there is"):
        room, what = memory_room(here)
        if case.memory.estimate_first and needed > margin * room:
            ranks = f"each of {here} ranks here" if here > 1 else "it"
            raise CaseError(
                f"memory: {words}, but {what} leaves {size(room)} to {ranks}; more hosts, or a "
                "smaller graph, would be right (memory.estimate_first = false tries it all the same)"
            )


def least_room(group: Group) -> int:
    """Bytes that each rank takes without coming near what there is, on the host that leaves it least. Ranks:
    all call; the same on all."""
    return -group.max_integer(-int(NEAR * memory_room(ranks_here(group))[0]))


def ranks_here(group: Group) -> int:
    """Ranks that share this host. Ranks: all call."""
    return group.gather_texts(platform.node()).count(platform.node())


def _warning(most: int, here: int) -> str:
    """That a rank may take more than there is, or nearly, by the host of this one; "": it does not."""
    room, what = memory_room(here)
    if most <= NEAR * room:
        return ""
    ranks = f"each of {here} ranks here" if here > 1 else "it"
    return (
        f"memory: a rank may take up to {size(most)}, and {what} leaves {size(room)} to"
        f" {ranks}; the system ends ranks that take more"
    )


def needs_of(case: Case, ranks: int, device: object) -> Iterator[Need]:
    """What a rank holds of each graph whose counts are known before reading."""
    if is_relational(case):
        from app.model.rgcn_memory import needs_of_triples  # of this task alone

        yield from needs_of_triples(case)
    elif is_forecast(case):
        from app.model.forecast_plan import forecast_needs  # of this task alone

        yield from forecast_needs(case, ranks)
    elif case.run.task != "classify":
        from app.model.policy_plan import policy_needs  # of no use to networks

        yield from policy_needs(case, ranks)
    else:
        from app.model.node_plan import needs_of_layers  # of no use to policies

        yield from needs_of_layers(case, ranks, device)
