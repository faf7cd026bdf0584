"""Plan: what moves between the two tiers before and while each operation of an epoch runs."""

from dataclasses import dataclass, replace
from itertools import combinations

from app.memory import heuristics
from app.memory.dynamic import least_transfers
from app.memory.operations import Epoch, members

MOST_CONSTANTS = 6  # of which every subset is tried as what stays in the fast tier between epochs
METHODS = ("dynamic program", "farthest next use", "least recently used", "streaming")


@dataclass(frozen=True)
class Step:
    """What happens around one operation; the last step of a plan, which has none, ends the epoch.

    store   written to the slow tier, then out of the fast one
    drop    out of the fast tier: the slow one has the value
    load    read from the slow tier before the operation
    ahead   read for the next operation while this one runs
    free    forgotten after it: values that nobody wants
    held_bytes   in the fast tier while it runs, with what is read ahead
    """

    store: tuple[str, ...]
    drop: tuple[str, ...]
    load: tuple[str, ...]
    ahead: tuple[str, ...]
    free: tuple[str, ...]
    held_bytes: int


@dataclass(frozen=True)
class Plan:
    """A schedule of one epoch under a limit, as it repeats.

    start    constants that lie in the fast tier before the epoch and after it
    exact    no schedule that runs the operations in this order moves fewer bytes
    steps    [operations + 1]
    """

    epoch: Epoch
    limit: int
    method: str
    exact: bool
    start: tuple[str, ...]
    steps: tuple[Step, ...]

    @property
    def loaded_bytes(self) -> int:
        """Slow to fast in one epoch."""
        return sum(self._bytes(each.load) + self._bytes(each.ahead) for each in self.steps)

    @property
    def stored_bytes(self) -> int:
        """Fast to slow in one epoch."""
        return sum(self._bytes(each.store) for each in self.steps)

    @property
    def moved_bytes(self) -> int:
        """Both ways."""
        return self.loaded_bytes + self.stored_bytes

    @property
    def ahead_bytes(self) -> int:
        """Of the loaded bytes those that travel while another operation runs."""
        return sum(self._bytes(each.ahead) for each in self.steps)

    @property
    def peak_bytes(self) -> int:
        """The most that lies in the fast tier at once."""
        return max(each.held_bytes for each in self.steps)

    def lines(self) -> list[str]:
        """The plan for people: its sums, then every operation with what moves for it."""
        certain = "least possible" if self.exact else "not certain to be the least"
        head = [
            f"memory plan: {self.method}, {len(self.steps) - 1} operations, limit {self.limit:,} bytes of "
            f"{self.epoch.most_bytes:,} alive at once",
            f"moves {self.moved_bytes:,} bytes an epoch ({certain}): loads {self.loaded_bytes:,}, "
            f"{self.ahead_bytes:,} of them ahead, stores {self.stored_bytes:,}; peak {self.peak_bytes:,}",
            f"between epochs the fast tier keeps: {', '.join(self.start) or 'nothing'}",
        ]
        names = [f"{each.kind} ({each.name})" for each in self.epoch.operations] + ["end of the epoch"]
        width = max(len(name) for name in names)
        for name, step in zip(names, self.steps):
            head.append(f"  {name:{width}} {step.held_bytes:>15,}  {_moves(step)}".rstrip())
        return head

    def _bytes(self, names: tuple[str, ...]) -> int:
        return self.epoch.bytes_of(self.epoch.set_of(names))


def make_plan(epoch: Epoch, limit: int, method: str = "dynamic program") -> Plan:
    """The plan of an epoch.

    limit    bytes of the fast tier
    method   one of METHODS; the dynamic program starts from what the two rules move and looks for less. Where
             its search has to be cut short the plan is the best that was found, and says so
    Raises CaseError, stating the least limit that works, where an operation alone does not fit.

    An epoch starts with its inputs in the slow tier and nothing in the fast one but `start`, constants that
    the epoch before left there: that set is chosen for the fewest bytes an epoch (every subset that fits of
    the MOST_CONSTANTS largest constants). For least recently used it is what an epoch that started empty
    leaves behind, where that moves less.
    """
    epoch.check_limit(limit)
    if method == "streaming":
        return _carried_out(epoch, limit, heuristics.streaming(epoch), 0, method)
    if method == "least recently used":
        return _least_recently_used(epoch, limit)
    starts = _starts(epoch, limit)
    rules = [_farthest_next_use(epoch, limit, start) for start in starts]
    best = min(rules, key=_moved)
    if method == "farthest next use":
        return best
    best = min(best, _least_recently_used(epoch, limit), key=_moved)
    certain = len(epoch.names_of(epoch.constants)) <= MOST_CONSTANTS
    for start in starts:
        held, exact = least_transfers(epoch, limit, start, best.moved_bytes)
        certain = certain and exact
        if held is not None:
            best = _carried_out(epoch, limit, held, start, "dynamic program")
    return replace(best, method="dynamic program" if certain else best.method, exact=certain)


def _moved(plan: Plan) -> int:
    return plan.moved_bytes


def _starts(epoch: Epoch, limit: int) -> list[int]:
    """Sets of constants that can stay in the fast tier between epochs."""
    largest = sorted(members(epoch.constants), key=lambda t: -epoch.sizes[t])[:MOST_CONSTANTS]
    sets = [sum(1 << t for t in some) for k in range(len(largest) + 1) for some in combinations(largest, k)]
    return [each for each in sets if epoch.bytes_of(each) <= limit]


def _farthest_next_use(epoch: Epoch, limit: int, start: int) -> Plan:
    held = heuristics.farthest_next_use(epoch, limit, start)
    return _carried_out(epoch, limit, held, start, "farthest next use")


def _least_recently_used(epoch: Epoch, limit: int) -> Plan:
    """The plan of an epoch that starts empty, or that of one which starts with what the former left."""
    plans, start = [], 0
    for _ in range(2):
        held = heuristics.least_recently_used(epoch, limit, start)
        plans.append(_carried_out(epoch, limit, held, start, "least recently used"))
        start = _held_last(epoch, held) & epoch.constants
    return min(plans, key=_moved)


def _held_last(epoch: Epoch, held: list[int]) -> int:
    """The set that lies in the fast tier once the last operation has run."""
    return held[-1] | epoch.needs[-1] if held else 0


def _carried_out(epoch: Epoch, limit: int, held: list[int], start: int, method: str) -> Plan:
    """The plan of a schedule: held[i] is what stays of the fast tier's tensors for operation i."""
    held, ahead = _read_ahead(epoch, limit, held)
    steps, cached, dirty, early = [], start, 0, 0
    for at, needed in enumerate(epoch.needs):
        gone, there = cached & ~held[at], held[at] | needed
        load = epoch.reads[at] & ~held[at] & ~early
        early = ahead[at]
        cached = there & (epoch.alive[at] | start)
        moves = (gone & dirty, gone & ~dirty, load, early, there & ~cached)
        steps.append(Step(*map(epoch.names_of, moves), epoch.bytes_of(there | early)))
        dirty = ((dirty & held[at]) | epoch.writes[at]) & cached
    moves = (dirty, cached & ~dirty & ~start, start & ~cached, 0, 0)
    steps.append(Step(*map(epoch.names_of, moves), epoch.bytes_of(start)))
    return Plan(epoch, limit, method, False, epoch.names_of(start), tuple(steps))


def _read_ahead(epoch: Epoch, limit: int, held: list[int]) -> tuple[list[int], list[int]]:
    """What can be read while the operation before it runs, and the schedule that makes room for it.

    What leaves before operation i+1 and is not touched by operation i can leave before i for the same bytes:
    the room is filled with what i+1 loads, largest first. From the last operation to the first, since who
    leaves early makes room for what is read earlier still.
    """
    held, ahead = list(held), [0] * len(held)
    for at in reversed(range(len(held) - 1)):
        there = held[at] | epoch.needs[at]
        absent = epoch.reads[at + 1] & ~held[at + 1] & ~there
        if not absent:
            continue
        held[at] &= epoch.needs[at] | held[at + 1]
        room = limit - epoch.bytes_of(held[at] | epoch.needs[at])
        for tensor in sorted(members(absent), key=lambda t: -epoch.sizes[t]):
            if epoch.sizes[tensor] <= room:
                ahead[at] |= 1 << tensor
                room -= epoch.sizes[tensor]
    return held, ahead


def _moves(step: Step) -> str:
    """What moves around an operation, for people."""
    parts = [
        ("store", step.store), ("drop", step.drop), ("load", step.load), ("ahead", step.ahead),
    ]  # fmt: skip
    return "  ".join(f"{word} {', '.join(names)}" for word, names in parts if names)
