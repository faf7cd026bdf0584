"""Whether a case fits the memory that is there: told before anything is allocated, from counts alone."""

import platform
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from app.case.config import Case
from app.case.graph import GraphCase
from app.comm.group import Group
from app.comm.guard import raise_together
from app.errors import CaseError
from app.memory.room import memory_room
from app.model import gnn_memory, memory
from app.model.counts import classified_counts
from app.model.defaults import DEFAULTS
from app.model.node_plan import training_of
from app.model.plan import (
    Counts,
    counts_of,
    held_solving,
    held_training,
    least_solving,
    network_of,
    state_entries,
    stated_triples_of,
    tasks_of,
    whole_bytes,
)

MARGIN, OF_LAYERS = 1.15, 1.05  # an estimate may be so much too high; of classify, which is known better
READ, SORTED, SORTED_BOTH_WAYS = 12, 24, 100  # bytes for each triple: columns; keys, with inverse relations
NEAR = 0.9  # of the room: from there on a rank may take more than there is


@dataclass(frozen=True)
class Need:
    """What the rank that holds most takes of one graph.

    held     bytes by term, at its fullest
    beside   bytes that reductions, search and bounds, on the whole graph, take beside that at most
    least    bytes that it takes in any case; None: all of `held`
    """

    name: str
    held: dict[str, int]
    beside: int = 0
    least: int | None = None

    @property
    def certain(self) -> int:
        """Bytes beyond which there is no use in trying."""
        return memory.total(self.held) if self.least is None else self.least

    @property
    def most(self) -> int:
        """Bytes that may be taken."""
        return memory.total(self.held) + self.beside

    @property
    def words(self) -> str:
        """What is certain, in words."""
        if self.least is not None:
            return f"{self.name}: {memory.size(self.least)} a rank for the graph alone"
        return f"{self.name}: about {memory.size(self.certain)} a rank ({memory.words(self.held)})"


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

    def needs() -> list[Need]:
        if not any(isinstance(counts, str) for counts in counts_of(case, table)):
            return []
        counts = [Counts(name, len(read), n, state_entries(case, n, 2 * edges)) for name, n, edges in read]
        return [_need(case, each, ranks if learns else group.size, learns) for each in counts]

    return refuse_needs(group, case, needs, here)[1]


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
                f"memory: {words}, but {what} leaves {memory.size(room)} to {ranks}; more hosts, or a "
                "smaller graph, would be right (memory.estimate_first = false tries it all the same)"
            )


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
        f"memory: a rank may take up to {memory.size(most)}, and {what} leaves {memory.size(room)} to"
        f" {ranks}; the system ends ranks that take more"
    )


def needs_of(case: Case, ranks: int, device: object) -> Iterator[Need]:
    """What a rank holds of each graph whose counts are known before reading."""
    if case.run.task == "classify" and case.gnn.model == "rgcn":
        if triples := stated_triples_of(case):
            yield _need_of_triples(case, triples)
        return
    if case.run.task == "classify":
        nodes, entries = classified_counts(case)
        if nodes and entries and case.gnn.epochs:
            yield need_of_layers(case, nodes, entries, ranks, device)
        return
    for learns, table in tasks_of(case):
        for counts in counts_of(case, table):
            if not isinstance(counts, str):
                yield _need(case, counts, ranks, learns)


def _need_of_triples(case: Case, triples: int) -> Need:
    """Of reading triples and sorting them by keys: what a network on them takes is known after that."""
    sorting = SORTED_BOTH_WAYS if case.rgcn.inverse or case.rgcn.goal == "links" else SORTED
    held = {"base": DEFAULTS.base_bytes, "triples": READ * triples, "sorting": SORTED * triples}
    return Need(case.run.name, held, beside=(sorting - SORTED) * triples)


def need_of_layers(case: Case, nodes: int, entries: int, ranks: int, device: object) -> Need:
    """Of training a network on all nodes of a graph."""
    training = training_of(case, nodes, entries, ranks, device, count_classes=False)
    return Need(case.run.name, gnn_memory.peak(training, training.layout.heaviest, DEFAULTS.base_bytes))


def _need(case: Case, counts: Counts, ranks: int, learns: bool) -> Need:
    """Of one graph to learn on or to solve.

    Where the whole graph is worked on, the policy sees what reductions leave of it: only the graph itself is
    certain then, and the work on it comes beside.
    """
    net, base = network_of(case), DEFAULTS.base_bytes
    if learns:
        return Need(counts.name, held_training(case, net, base, counts, ranks))
    held, whole = held_solving(case, net, base, counts, ranks), whole_bytes(case, counts)
    if not whole:
        return Need(counts.name, held)
    return Need(counts.name, held, whole, least_solving(case, base, counts, ranks))
