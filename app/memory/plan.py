"""Plan: what moves between the two tiers before and while each operation of an epoch runs."""

from dataclasses import dataclass, replace
from itertools import product
from math import prod

from app.memory import heuristics
from app.memory.dynamic import MOST_CHOICES, least_transfers
from app.memory.operations import Epoch, members

MOST_STARTS = 64  # sets that are tried as what stays in the fast tier between epochs
METHODS = ("dynamic program", "farthest next use", "least recently used", "streaming")


@dataclass(frozen=True)
class Step:
    """What happens around one operation; the last step of a plan, which has none, ends the epoch.

    store   written to the slow tier, then out of the fast one
    drop    out of the fast tier: the slow one has the value
    load    read from the slow tier before the operation
    ahead   read for the next operation while this one runs
    free    forgotten after it: values that nobody wants
    behind  written to the slow tier while the operations after it run: what a later step stores
    held_bytes   in the fast tier while it runs, with what is read ahead
    """

    store: tuple[str, ...]
    drop: tuple[str, ...]
    load: tuple[str, ...]
    ahead: tuple[str, ...]
    free: tuple[str, ...]
    behind: tuple[str, ...]
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
    def behind_bytes(self) -> int:
        """Of the stored bytes those that travel while other operations run."""
        return sum(self._bytes(each.behind) for each in self.steps)

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
            f"{self.ahead_bytes:,} of them ahead, stores {self.stored_bytes:,}, {self.behind_bytes:,} of "
            f"them behind; peak {self.peak_bytes:,}",
            f"between epochs the fast tier keeps: {', '.join(self.start) or 'nothing'}",
        ]
        names = [f"{each.kind} ({each.name})" for each in self.epoch.operations] + ["end of the epoch"]
        width = max(len(name) for name in names)
        for name, step in zip(names, self.steps):
            head.append(f"  {name:{width}} {step.held_bytes:>15,}  {_moves(step)}".rstrip())
        return head

    def _bytes(self, names: tuple[str, ...]) -> int:
        return self.epoch.bytes_of(self.epoch.set_of(names))


def make_plan(epoch: Epoch, limit: int, method: str = "dynamic program", repeats: bool = True) -> Plan:
    """The plan of an epoch.

    limit    bytes of the fast tier
    method   one of METHODS; the dynamic program starts from what the two rules move and looks for less. Where
             its search has to be cut short the plan is the best that was found, and says so
    repeats  False: other programs use the fast tier in between, so that nothing stays in it
    Raises CaseError, stating the least limit that works, where an operation alone does not fit.

    An epoch starts with its inputs in the slow tier and nothing in the fast one but `start`, constants that
    the epoch before left there: that set is chosen for the fewest bytes an epoch (`_starts`). For least
    recently used it is what an epoch that started empty leaves behind, where that moves less.
    """
    epoch.check_limit(limit)
    if method == "streaming":
        return _carried_out(epoch, limit, heuristics.streaming(epoch), 0, method)
    if method == "least recently used":
        return _least_recently_used(epoch, limit, repeats)
    starts, certain = _starts(epoch, limit) if repeats else ([0], True)
    rules = [_farthest_next_use(epoch, limit, start) for start in starts]
    best = min(rules, key=_moved)
    if method == "farthest next use":
        return best
    best = min(best, _least_recently_used(epoch, limit, repeats), key=_moved)
    left = MOST_CHOICES
    for _, start in sorted(zip(map(_moved, rules), starts)):  # where the rule moves least, first
        if left <= 0:
            certain = False
            break
        held, exact, choices = least_transfers(epoch, limit, start, best.moved_bytes, left)
        certain, left = certain and exact, left - choices
        if held is not None:
            best = _carried_out(epoch, limit, held, start, "dynamic program")
    return replace(best, method="dynamic program" if certain else best.method, exact=certain)


def _moved(plan: Plan) -> int:
    return plan.moved_bytes


def _starts(epoch: Epoch, limit: int) -> tuple[list[int], bool]:
    """Sets of constants that can stay in the fast tier between epochs, and whether one of them is the best.

    Of constants of equal size those stay that are used first in an epoch. Where these are also the last to be
    used, no others would be better: the time between two epochs for which they stay is a part of that of the
    others. Elsewhere every subset is tried, as long as there are at most MOST_STARTS.
    """
    alike = _alike(epoch)
    certain = True
    if prod(len(each) + 1 for each in alike) > MOST_STARTS:
        alike, certain = _alike(epoch, nested=False), False
    counts, tried = [], 1
    for each in alike:  # the largest first; of too many numbers of them some
        most = max(min(len(each), MOST_STARTS // tried - 1), 0)
        counts.append(sorted({len(each) * i // max(most, 1) for i in range(most + 1)}))
        tried *= len(counts[-1])
    sets = [sum(1 << t for each, k in zip(alike, some) for t in each[:k]) for some in product(*counts)]
    return [each for each in sets if epoch.bytes_of(each) <= limit], certain


def _alike(epoch: Epoch, nested: bool = True) -> list[list[int]]:
    """Constants of equal size together, in the order of their first use, the largest first.

    nested   only such as are used last in the opposite order; others stand alone
    """
    first, last = _uses(epoch)
    by_size = sorted(members(epoch.constants), key=lambda t: (-epoch.sizes[t], first.get(t, 0)))
    groups: list[list[int]] = []
    for t in by_size:
        before = groups[-1][-1] if groups else None
        alike = before is not None and epoch.sizes[before] == epoch.sizes[t]
        if alike and not (nested and last.get(before, 0) < last.get(t, 0)):
            groups[-1].append(t)
        else:
            groups.append([t])
    return groups


def _uses(epoch: Epoch) -> tuple[dict[int, int], dict[int, int]]:
    """By tensor the first and the last operation that touches it."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for at, needed in enumerate(epoch.needs):
        for tensor in members(needed):
            first.setdefault(tensor, at)
            last[tensor] = at
    return first, last


def _farthest_next_use(epoch: Epoch, limit: int, start: int) -> Plan:
    held = heuristics.farthest_next_use(epoch, limit, start)
    return _carried_out(epoch, limit, held, start, "farthest next use")


def _least_recently_used(epoch: Epoch, limit: int, repeats: bool) -> Plan:
    """The plan of an epoch that starts empty, or that of one which starts with what the former left."""
    plans, start = [], 0
    for _ in range(1 + repeats):
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
        moves = (gone & dirty, gone & ~dirty, load, early, there & ~cached, 0)
        steps.append(Step(*map(epoch.names_of, moves), epoch.bytes_of(there | early)))
        dirty = ((dirty & held[at]) | epoch.writes[at]) & cached
    moves = (dirty, cached & ~dirty & ~start, start & ~cached, 0, 0, 0)
    steps.append(Step(*map(epoch.names_of, moves), epoch.bytes_of(start)))
    steps = _write_behind(epoch, steps)
    return Plan(epoch, limit, method, False, epoch.names_of(start), tuple(steps))


def _write_behind(epoch: Epoch, steps: list[Step]) -> list[Step]:
    """What is stored begins to travel after the operation that wrote it last, where others run in between."""
    written: dict[str, int] = {}
    behind: list[list[str]] = [[] for _ in steps]
    for at, step in enumerate(steps):
        for name in step.store:
            if written[name] < at - 1:
                behind[written[name]].append(name)
        if at < len(epoch.operations):
            written.update(dict.fromkeys(epoch.operations[at].writes, at))
    return [replace(step, behind=tuple(names)) for step, names in zip(steps, behind)]


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
        ("behind", step.behind),
    ]  # fmt: skip
    return "  ".join(f"{word} {', '.join(names)}" for word, names in parts if names)
