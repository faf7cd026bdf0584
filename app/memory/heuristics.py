"""Schedules that decide as they go: least recently used, streaming, farthest next use.

A schedule is `held`: before operation i the set held[i] of what was in the fast tier stays there, all else is
evicted; what the operation reads and does not find is loaded. `app/memory/plan.py` carries it out.
"""

from collections.abc import Callable

from app.memory.operations import Epoch, members


def streaming(epoch: Epoch) -> list[int]:
    """Every operation loads all it reads and stores all it writes that is wanted later (NeuGraph's way)."""
    return [0] * len(epoch.operations)


def least_recently_used(epoch: Epoch, limit: int, start: int = 0) -> list[int]:
    """Evict whatever was used longest ago until the operation fits; ties: in the order of first use."""
    used = dict.fromkeys(members(start), -1)

    def age(at: int, tensor: int, dirty: bool) -> float:
        return used[tensor]

    def run(at: int) -> None:
        used.update(dict.fromkeys(members(epoch.needs[at]), at))

    return _on_demand(epoch, limit, start, age, run)


def farthest_next_use(epoch: Epoch, limit: int, start: int = 0) -> list[int]:
    """Evict what costs least for each byte and operation that it would still wait.

    Belady's rule with transfers as weights: a clean tensor costs its loading, a dirty one its storing too,
    one that nobody reads again nothing that is not due anyway. Where all are clean it is Belady's.
    """
    uses = next_uses(epoch, start)

    def worth(at: int, tensor: int, dirty: bool) -> float:
        next_use = uses[at].get(tensor)
        return 0.0 if next_use is None else (2.0 if dirty else 1.0) / (next_use - at + 1)

    return _on_demand(epoch, limit, start, worth, lambda at: None)


def _on_demand(
    epoch: Epoch,
    limit: int,
    start: int,
    worth: Callable[[int, int, bool], float],
    ran: Callable[[int], None],
) -> list[int]:
    """Evict only where the next operation does not fit, and then what is worth least."""
    cached, dirty, held = start, 0, []
    for at, needed in enumerate(epoch.needs):
        room = limit - epoch.bytes_of(needed)
        others = sorted(members(cached & ~needed), key=lambda t: worth(at, t, bool(dirty >> t & 1)))
        keep = cached & needed
        for tensor in _that_fit(epoch, others, room):
            keep |= 1 << tensor
        held.append(keep)
        ran(at)
        cached = (keep | needed) & (epoch.alive[at] | start)
        dirty = ((dirty & keep) | epoch.writes[at]) & cached
    return held


def _that_fit(epoch: Epoch, tensors: list[int], room: int) -> list[int]:
    """What stays: the worst go, first to last, until the rest fits."""
    size = sum(epoch.sizes[each] for each in tensors)
    gone = 0
    while size > room:
        size -= epoch.sizes[tensors[gone]]
        gone += 1
    return tensors[gone:]


def next_uses(epoch: Epoch, start: int) -> list[dict[int, int]]:
    """Before each operation: who reads every tensor next, by tensor; `start` is wanted again at the end."""
    end = len(epoch.operations)
    uses, out = dict.fromkeys(members(start), end), []
    for at in reversed(range(end)):
        for tensor in members(epoch.writes[at]):
            uses.pop(tensor, None)
        uses.update(dict.fromkeys(members(epoch.reads[at]), at))
        out.append(dict(uses))
    return out[::-1]
