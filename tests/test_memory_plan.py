"""Memory plans: the dynamic program against a search over single moves, the rules, limits, wrong input."""

import heapq
import itertools
import math
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.errors import CaseError
from app.memory.operations import Epoch, Operation
from app.memory.plan import METHODS, make_plan
from bench.transfers import epochs_compared, transfers_table

pytestmark = pytest.mark.mpi_skip


# ---- brute force: single moves of single tensors, in any order ---------------------------------------------


def wanted_after(operations, results):
    """For every operation the names whose values are read later or are results, from the definition."""
    out = []
    for at in range(len(operations)):
        names = set()
        for name in {n for each in operations for n in each.reads} | set(results):
            later = operations[at + 1 :]
            use = next((o for o in later if name in o.reads or name in o.writes), None)
            if (use is None and name in results) or (use is not None and name in use.reads):
                names.add(name)
        out.append(names)
    return out


def least_bytes(operations, sizes, limit, results, start):
    """The fewest bytes of any sequence of loads, stores, evictions and the operations in order (Dijkstra).

    A state is (operations done, which tensors are in the fast tier, which only there), sets as bits of a
    number. Nothing is assumed about when moves are made.
    """
    names = list(sizes)
    bits = lambda chosen: sum(1 << names.index(name) for name in set(chosen))  # noqa: E731
    held_by = [sum(sizes[n] for i, n in enumerate(names) if held >> i & 1) for held in range(1 << len(names))]
    steps = [(bits(each.reads), bits(each.writes)) for each in operations]
    begun, saved, every = bits(start), bits(set(start) | set(results)), (1 << len(names)) - 1
    # Whose value nobody asks for any more, after so many operations; what the epoch starts with is kept.
    live = [every, *map(bits, wanted_after(operations, results))]
    dead = [every & ~(each | begun) for each in live]
    queue, known = [(0, 0, begun, 0)], {}
    while queue:
        cost, done, held, dirty = heapq.heappop(queue)
        if known.setdefault((done, held, dirty), cost) < cost:
            continue
        if done == len(operations) and held & begun == begun and not dirty & saved:
            return cost
        for more, *then in moves(steps, names, sizes, limit, dead[done], held_by, done, held, dirty):
            if cost + more < known.get(tuple(then), math.inf):
                known[tuple(then)] = cost + more
                heapq.heappush(queue, (cost + more, *then))
    return None


def moves(steps, names, sizes, limit, dead, held_by, done, held, dirty):
    """Every single move from a state: its bytes, and the state after it."""
    room = limit - held_by[held]
    for i, name in enumerate(names):
        bit, size = 1 << i, sizes[name]
        if not held & bit:
            if size <= room and not dead & bit:
                yield size, done, held | bit, dirty
            continue
        if dirty & bit:
            yield size, done, held, dirty & ~bit
        if not dirty & bit or dead & bit:
            yield 0, done, held & ~bit, dirty & ~bit
    if done < len(steps):
        reads, writes = steps[done]
        if held & reads == reads and held_by[held | writes] <= limit:
            yield 0, done + 1, held | writes, dirty | writes


def brute_force(operations, sizes, limit, results):
    """The fewest bytes of an epoch that repeats, over all sets of constants to keep between epochs."""
    epoch = Epoch(operations, sizes, results)
    constants = epoch.names_of(epoch.constants)
    used = {name: sizes[name] for name in epoch.names}
    subsets = itertools.chain.from_iterable(
        itertools.combinations(constants, k) for k in range(len(constants) + 1)
    )
    return min(
        least_bytes(operations, used, limit, results, start)
        for start in subsets
        if sum(sizes[name] for name in start) <= limit
    )


# ---- random operation graphs -------------------------------------------------------------------------------


def drawn(seed, most_tensors, most_operations):
    """Operations on a few tensors, sizes, results and a limit that is tight: rules lose on every third."""
    draws = Random(seed)
    names = [f"t{i}" for i in range(draws.randint(most_tensors - 1, most_tensors))]
    sizes = {name: draws.randint(1, 6) for name in names}
    operations = []
    for at in range(draws.randint(most_operations - 2, most_operations)):
        reads = draws.sample(names, draws.choice((1, 1, 2)))
        writes = draws.sample(names, draws.choice((0, 0, 1, 1)))
        operations.append(Operation("kind", str(at), tuple(reads), tuple(writes)))
    used = {n for each in operations for n in each.reads + each.writes}
    results = tuple(n for n in names if n in used and draws.random() < 0.25)
    limit = Epoch(operations, sizes, results).least_bytes + draws.randint(0, 6)
    return operations, sizes, results, max(limit, 1)


def problems(most_tensors, most_operations):
    return st.builds(drawn, st.integers(0, 2**32), st.just(most_tensors), st.just(most_operations))


@settings(max_examples=300)
@given(problems(5, 14))
def test_the_dynamic_program_moves_as_few_bytes_as_any_sequence_of_moves(problem):
    operations, sizes, results, limit = problem
    plan = make_plan(Epoch(operations, sizes, results), limit)
    assert plan.moved_bytes == brute_force(operations, sizes, limit, results)
    assert plan.exact


def pieces_drawn(seed):
    """Passes over a constant in pieces of one size, in any order, between operations on other tensors."""
    draws = Random(seed)
    pieces, others = [f"p{i}" for i in range(draws.choice((3, 3, 4)))], ["y", "z"]
    sizes = {**dict.fromkeys(pieces, draws.randint(2, 4)), "y": draws.randint(1, 5), "z": draws.randint(1, 5)}
    operations = []
    for number in range(draws.choice((2, 3))):
        order = draws.choice((pieces, pieces[::-1], draws.sample(pieces, len(pieces))))
        into = others[number % 2]
        for step, piece in enumerate(order):
            reads = (piece, into) if step and draws.random() < 0.7 else (piece,)
            operations.append(Operation("piece", f"{number} {piece}", reads, (into,)))
        operations.append(Operation("turn", str(number), (into,), (others[1 - number % 2],)))
    results = draws.choice(((), ("z",)))
    limit = Epoch(operations, sizes, results).least_bytes + draws.randint(0, 3 * sizes["p0"])
    return operations, sizes, results, limit


@settings(max_examples=60)
@given(st.builds(pieces_drawn, st.integers(0, 2**32)))
def test_pieces_of_one_size_are_held_as_well_as_can_be(problem):
    operations, sizes, results, limit = problem
    plan = make_plan(Epoch(operations, sizes, results), limit)
    assert plan.moved_bytes == brute_force(operations, sizes, limit, results)
    assert plan.exact
    follow(plan)


def test_many_pieces_are_few_choices():
    """Sixteen of them, whose subsets nobody could try, to and fro: the plan is the best there is."""
    pieces = [f"p{i}" for i in range(16)]
    forth = [Operation("forth", p, (p, "z") if p != "p0" else (p,), ("z",)) for p in pieces]
    back = [Operation("back", p, (p, "z"), ()) for p in reversed(pieces)]
    epoch = Epoch([*forth, *back], {**dict.fromkeys(pieces, 10), "z": 5})
    for room in range(1, 17):
        plan = make_plan(epoch, 5 + 10 * room)
        assert plan.exact and plan.moved_bytes == brute_pieces(16, room)
        follow(plan)
    assert make_plan(epoch, 55).start == ("p0", "p1", "p2", "p3", "p4")
    once = make_plan(epoch, 55, repeats=False)
    assert once.start == () and once.moved_bytes == 10 * (16 + 11)


def brute_pieces(count, room):
    """What a pass to and fro over pieces of 10 bytes loads, of which `room` fit at once: all but those at
    either turn."""
    return 2 * 10 * (count - room)


def test_what_leaves_is_written_while_others_run():
    epoch = Epoch(chain(8), {**{f"h{i}": 8 for i in range(9)}, **{f"d{i}": 8 for i in range(9)}})
    plan = make_plan(epoch, 5 * 8)
    assert 0 < plan.behind_bytes <= plan.stored_bytes
    for at, step in enumerate(plan.steps):
        for name in step.behind:  # written by the operation, and by none until it is stored
            assert name in epoch.operations[at].writes
            later = next(i for i in range(at + 1, len(plan.steps)) if name in plan.steps[i].store)
            assert later > at + 1
            assert all(name not in each.writes for each in epoch.operations[at + 1 : later])
    assert f"{plan.behind_bytes:,} of them behind" in "\n".join(plan.lines())


@settings(max_examples=100)
@given(problems(10, 20))
def test_no_rule_moves_less_and_none_passes_the_limit(problem):
    operations, sizes, results, limit = problem
    plans = {m: make_plan(Epoch(operations, sizes, results), limit, m) for m in METHODS}
    for plan in plans.values():
        follow(plan)
    moved = {method: plan.moved_bytes for method, plan in plans.items()}
    assert moved["dynamic program"] <= moved["farthest next use"] <= moved["streaming"]
    assert moved["dynamic program"] <= moved["least recently used"] <= moved["streaming"]


def follow(plan, epochs=2):
    """Carry a plan out on names alone: what is needed is there, what is read has a value, the limit holds."""
    epoch, size = plan.epoch, dict(zip(plan.epoch.names, plan.epoch.sizes))
    version = dict.fromkeys(epoch.names, 0)  # of the value that the program wants
    slow = dict.fromkeys(epoch.names_of(epoch.inputs), 0)
    fast = dict.fromkeys(plan.start, 0)
    for _ in range(epochs):
        for name in epoch.names_of(epoch.inputs & ~epoch.constants):
            version[name] = slow[name] = version[name] + 1  # given anew
        for at, step in enumerate(plan.steps):
            for name in step.store:
                slow[name] = fast.pop(name)
            for name in step.drop:
                assert slow[name] == fast.pop(name)
            for name in step.load:
                assert name not in fast
                fast[name] = slow[name]
            assert not any(name in fast for name in step.ahead)
            if at < len(epoch.operations):
                each = epoch.operations[at]
                assert all(fast[name] == version[name] for name in each.reads)
                for name in each.writes:
                    fast[name] = version[name] = version[name] + 1
            fast.update({name: slow[name] for name in step.ahead})
            assert sum(size[name] for name in fast) == step.held_bytes <= plan.limit
            for name in step.free:
                del fast[name]
        assert set(fast) == set(plan.start)
        assert all(slow[name] == version[name] for name in epoch.names_of(epoch.results))
        for name in epoch.names_of(epoch.results & epoch.inputs & ~epoch.constants):
            version[name] = slow[name]


def test_the_random_graphs_are_hard_enough():
    """On many of them both rules move more bytes than the least."""
    beaten = 0
    for seed in range(100):
        operations, sizes, results, limit = drawn(seed, 5, 14)
        epoch = Epoch(operations, sizes, results)
        rules = [make_plan(epoch, limit, method).moved_bytes for method in METHODS[1:3]]
        beaten += make_plan(epoch, limit).moved_bytes < min(rules)
    assert beaten >= 15


# ---- epochs of networks ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", epochs_compared())
def test_networks_move_less_than_least_recently_used_and_much_less_than_streaming(name):
    epoch = epochs_compared()[name]
    for share in (0.35, 0.5, 0.6, 0.7, 0.8, 0.9):
        limit = max(epoch.least_bytes, int(share * epoch.most_bytes))
        plans = [make_plan(epoch, limit, method) for method in (METHODS[0], *METHODS[2:])]
        for plan in plans:
            follow(plan)
        least, lru, streamed = (plan.moved_bytes for plan in plans)
        assert plans[0].exact and least <= lru and 1.4 * least <= streamed


def test_the_table_of_transfers():
    epochs = epochs_compared(nodes=1000, features=30, classes=4, hidden=16)
    lines = transfers_table({"GIN": epochs["GIN, 3 layers"]}, (0.1, 0.9))
    least, most = (line.split("|") for line in lines[2:])
    assert least[1].strip() == "GIN" and float(least[4]) >= float(most[4])
    assert len({line.count("|") for line in lines}) == 1


# ---- single cases ------------------------------------------------------------------------------------------


def chain(depth):
    """Forward and backward through `depth` functions that keep their inputs."""
    up = [Operation("up", str(i), (f"h{i}",), (f"h{i + 1}",)) for i in range(depth)]
    down = [
        Operation("down", str(i), (f"h{i}", f"d{i + 1}"), (f"d{i}",), (f"h{i}",))
        for i in reversed(range(depth))
    ]
    return [*up, Operation("loss", "", (f"h{depth}",), (f"d{depth}",)), *down]


def test_a_plan_without_a_limit_moves_inputs_and_results_only():
    epoch = Epoch(chain(3), {**{f"h{i}": 10 for i in range(4)}, **{f"d{i}": 5 for i in range(4)}}, ("d0",))
    plan = make_plan(epoch, epoch.most_bytes)
    assert (plan.loaded_bytes, plan.stored_bytes, plan.start) == (0, 5, ("h0",))
    assert plan.exact and plan.peak_bytes <= epoch.most_bytes
    assert make_plan(epoch, epoch.most_bytes - 1).moved_bytes > 5


def test_reading_ahead_costs_no_byte_and_keeps_the_limit():
    epoch = Epoch(chain(8), {**{f"h{i}": 8 for i in range(9)}, **{f"d{i}": 8 for i in range(9)}})
    plan = make_plan(epoch, 5 * 8)
    assert 0 < plan.ahead_bytes <= plan.loaded_bytes and plan.peak_bytes <= plan.limit
    assert plan.exact
    follow(plan)


def test_the_search_is_cut_short_and_says_so(monkeypatch):
    monkeypatch.setattr("app.memory.dynamic.MOST_STATES", 1)
    sizes = {**{f"h{i}": 3 + i % 3 for i in range(9)}, **{f"d{i}": 2 + i % 2 for i in range(9)}}
    epoch = Epoch(chain(8), sizes)
    plan = make_plan(epoch, 20)
    assert not plan.exact and "not certain to be the least" in "\n".join(plan.lines())
    assert plan.moved_bytes <= make_plan(epoch, 20, "least recently used").moved_bytes
    follow(plan)


def test_a_limit_below_one_operation_is_refused_with_the_least_that_works():
    epoch = Epoch(chain(2), {**{f"h{i}": 10 for i in range(3)}, **{f"d{i}": 5 for i in range(3)}})
    with pytest.raises(CaseError, match=r"limit of 19 bytes: .* touches 20 bytes, .* the least limit"):
        make_plan(epoch, 19)
    assert make_plan(epoch, 20).peak_bytes <= 20


@pytest.mark.parametrize(
    ("operations", "sizes", "text"),
    [
        (chain(1), {"h0": 1, "h1": 1, "d1": 1}, "tensor 'd0' needs a size"),
        ([Operation("a", "x", (), ("t",), ("t",)), Operation("b", "y", ("t",), ())], {"t": 1}, "frees 't'"),
    ],
)  # fmt: skip
def test_wrong_epochs(operations, sizes, text):
    with pytest.raises(CaseError, match=text):
        Epoch(operations, sizes)
