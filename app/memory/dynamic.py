"""The schedule of least transfers by dynamic programming (ROC, section 5, Algorithm 1), corrected."""

from collections.abc import Iterator
from dataclasses import dataclass

from app.memory.bound import Bound
from app.memory.heuristics import next_uses
from app.memory.operations import Epoch, members

MOST_STATES = 4096  # kept after one operation
MOST_CHOICES = 60_000  # followed in one search or, of one plan, in several, about 2 s; after them
FEW_STATES = 16  # are kept
COMPARED = 64  # states of least cost that every other one is compared with


@dataclass
class Reached:
    """The cheapest way to a state after some operation.

    cached, dirty   sets in the fast tier; dirty: their values are nowhere else
    cost            bytes moved so far
    before, held    the state it comes from, and what was held of it
    """

    cached: int
    dirty: int
    cost: int
    before: "Reached | None" = None
    held: int = 0


def least_transfers(
    epoch: Epoch, limit: int, start: int, upper: int, most_choices: int = MOST_CHOICES
) -> tuple[list[int] | None, bool, int]:
    """A schedule that moves fewer bytes than `upper`, the fewest of all, and whether that is certain.

    start   constants that lie in the fast tier before the epoch and again after it
    upper   bytes that some known schedule moves: no other that cannot move fewer is followed
    returns (held, exact, choices); held is None where no better schedule exists (exact) or was found;
            choices: how many were followed

    Source  ROC Algorithm 1: COST(S, T) over the sets S of operations done and the sets T of tensors cached,
            each pair evaluated once. Here:
      - Operations run in the program's order, so S is a prefix, and the recursion is a sweep over operations
        that keeps, for each cached set, the cheapest way to it: the same memoisation, forward.
      - As printed, T' = (T \\ OUT(o)) & A(S'): going back from the full state, where nothing is active, T can
        only shrink, so it is empty throughout and every operation loads all its inputs. And the capacity is
        compared with T, while T' (what else was cached while o ran) is what must fit. Here T' ranges over
        all subsets of the cached tensors that fit beside what the operation touches.
      - As printed, only loads count. Here a tensor that was written is *dirty* until it is stored, evicting
        it alive costs its bytes, and a clean one costs nothing: the state is (cached, dirty).
    Pruning, all without loss: only subsets to which nothing more fits (to hold more is never worse: it can be
    evicted later for the same bytes); of constants of equal size those that are wanted first (Belady 1966: a
    schedule that holds another one in place of such a constant loads this one for the bytes for which it
    could load the other); no state that is no better than a cheaper one moved there; none whose cost and
    certain further loads reach `upper`.
    Beyond MOST_STATES after an operation, or most_choices in all, only the most promising states are followed
    and the answer is not certain.
    """
    bound, uses = Bound(epoch, limit, start), next_uses(epoch, start)
    layer, exact, choices = [Reached(start, 0, 0)], True, 0
    if bound(-1, start, 0) >= upper:
        return None, True, 0
    for at in range(len(epoch.operations)):
        found: dict[tuple[int, int], Reached] = {}
        for number, state in enumerate(layer):
            if choices > most_choices and number >= FEW_STATES:
                exact = False
                break
            for held in _ways_to_hold(epoch, limit, at, state.cached, uses[at]):
                choices += 1
                after = _run(epoch, at, state, held, start)
                known = found.get((after.cached, after.dirty))
                if known is None or after.cost < known.cost:
                    found[after.cached, after.dirty] = after
        hopeful = [(state.cost + bound(at, state.cached, state.dirty), state) for state in found.values()]
        layer = _undominated(epoch, [each for each in hopeful if each[0] < upper])
        most = MOST_STATES if choices <= most_choices else FEW_STATES
        layer, exact = layer[:most], exact and len(layer) <= most
    best = min(layer, key=lambda state: final_cost(epoch, state, start), default=None)
    if best is None or final_cost(epoch, best, start) >= upper:
        return None, exact, choices
    return _path(best), exact, choices


def final_cost(epoch: Epoch, state: Reached, start: int) -> int:
    """Bytes of a whole epoch that ends in a state: results are stored, `start` is loaded again."""
    return state.cost + epoch.bytes_of(state.dirty) + epoch.bytes_of(start & ~state.cached)


def _run(epoch: Epoch, at: int, state: Reached, held: int, start: int) -> Reached:
    """The state after operation `at`, of which `held` was found in the fast tier."""
    stored = state.cached & ~held & state.dirty
    loaded = epoch.reads[at] & ~held
    cached = (held | epoch.needs[at]) & (epoch.alive[at] | start)
    dirty = ((state.dirty & held) | epoch.writes[at]) & cached
    cost = state.cost + epoch.bytes_of(stored) + epoch.bytes_of(loaded)
    return Reached(cached, dirty, cost, state, held)


def _ways_to_hold(epoch: Epoch, limit: int, at: int, cached: int, next_use: dict[int, int]) -> Iterator[int]:
    """Subsets of the cached tensors that fit beside operation `at` and to which no other can be added.

    next_use   operation that reads a tensor next: of constants of equal size the first ones are held
    """
    needed = epoch.needs[at]
    room = limit - epoch.bytes_of(needed)

    def rank(t: int) -> tuple[int, int, int]:
        constant = epoch.constants >> t & 1
        return -epoch.sizes[t], constant, next_use.get(t, len(epoch.operations)) if constant else t

    others = sorted(members(cached & ~needed), key=rank)
    sizes = [epoch.sizes[each] for each in others]
    constant = [bool(epoch.constants >> each & 1) for each in others]
    like_last = [
        i > 0 and constant[i] and constant[i - 1] and sizes[i] == sizes[i - 1] for i in range(len(others))
    ]
    for chosen in _largest_subsets(sizes, like_last, room):
        held = cached & needed
        for each in chosen:
            held |= 1 << others[each]
        yield held


def _largest_subsets(sizes: list[int], like_last: list[bool], room: int) -> Iterator[tuple[int, ...]]:
    """Subsets (positions) of sizes, descending, that fit in the room and to which no other can be added.

    like_last   positions that are chosen only where the one before is
    """
    rest = [sum(sizes[at:]) for at in range(len(sizes) + 1)]
    after = [at + 1 for at in range(len(sizes))]  # the next position that may be chosen where one is not
    for at in reversed(range(len(sizes) - 1)):
        if like_last[at + 1]:
            after[at] = after[at + 1]

    def grow(at: int, chosen: tuple[int, ...], room: int, left_out: int | None) -> Iterator[tuple[int, ...]]:
        """left_out: the smallest size that was passed over; it must not fit in the end."""
        if rest[at] <= room:
            if left_out is None or left_out > room - rest[at]:
                yield chosen + tuple(range(at, len(sizes)))
            return
        if sizes[at] <= room:
            yield from grow(at + 1, (*chosen, at), room - sizes[at], left_out)
        yield from grow(after[at], chosen, room, sizes[at])

    yield from grow(0, (), room, None)


def _undominated(epoch: Epoch, hopeful: list[tuple[int, Reached]]) -> list[Reached]:
    """States, the most hopeful first, but for those that are no better than a cheaper one moved there.

    hopeful   (bytes that an epoch through the state moves at least, the state)
    """
    hopeful.sort(key=lambda each: (each[1].cost, each[0]))
    kept: list[tuple[int, Reached]] = []
    for least, state in hopeful:
        if not any(other.cost + _way(epoch, other, state) <= state.cost for _, other in kept[:COMPARED]):
            kept.append((least, state))
    kept.sort(key=lambda each: each[0])
    return [state for _, state in kept]


def _way(epoch: Epoch, state: Reached, other: Reached) -> int:
    """Bytes that take a state to one that is at least as good as another after the same operation."""
    loaded = epoch.bytes_of(other.cached & ~state.cached)
    return loaded + epoch.bytes_of(state.dirty & ~other.dirty)


def _path(state: Reached) -> list[int]:
    """What is held before each operation on the way to a state."""
    held = []
    while state.before is not None:
        held.append(state.held)
        state = state.before
    return held[::-1]
