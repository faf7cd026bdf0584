"""Micro-benchmarks of a few seconds that give a machine's rates. None is a step that the model predicts.

A graph of 8 nodes goes through both kinds of step, which gives what their calls cost beside the graph's work.
"""

import contextlib
import math
import os
import platform
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import msgspec
import numpy as np

from app.case.policy import AgentCase
from app.comm.group import Group
from app.comm.turns import first_alone, only_this_rank
from app.graphs.graph import from_edges
from app.model.calibrate_layers import (
    add_attention,
    add_layers,
    add_operations,
    attention_rate,
    layer_pass_rate,
    layer_rate,
)
from app.model.rates import (
    Calibration,
    DenseRate,
    Kernels,
    MessageRate,
    PassRate,
    ProductRate,
)
from app.model.timing import Bench, Pool
from app.native.library import keep_freed_memory
from app.numerics.products import Finish, Members, Operand
from app.partition.rows import partition_rows
from app.problems.mvc import MinimumVertexCover
from app.rl.agent import Agent
from app.rl.env import GraphEnv
from app.rl.learner import score_environments
from app.rl.qnet import QNetwork
from app.rl.replay import Sample
from app.rl.select import best_nodes
from app.rng import stream
from app.sparse.batch import StateBatch
from app.sparse.rowblock import RowBlock

WIDTHS = (1, 4, 16, 64, 256, 512)
OPERANDS = (1 << 17, 1 << 20, 1 << 22, 1 << 24)  # bytes
LOOKUPS = ((1, 1 << 11), (16, 1 << 11), (16, 1 << 14))  # states, nodes of a product with rows of a table
TABLE = 256  # entries of a state in that table
MOST_COLUMNS = 1 << 18  # nodes of an operand
DEGREES = (8, 128)  # entries in a row: the difference tells entries from rows
LINES = 400_000  # cache lines that a product reads, at least; and at least REUSE times its operand
REUSE = 6
ARRAY_ROWS = (1 << 11, 1 << 14, 1 << 16)
MESSAGE_BYTES = (64, 1 << 14, 1 << 17, 1 << 20, 1 << 22)
LARGEST_MERGE = 1 << 17
TINY, CALLS = 8, 24


def calibrate(group: Group, net: QNetwork, agent: AgentCase, base: int) -> Calibration:
    """Rates of rank 0 alone, of all ranks at once, and of their collectives.

    base    bytes of this process before it read a graph
    Ranks   all call; identical on all
    """
    keep_freed_memory()
    device = group.device
    together = measure_kernels(Bench(device, group if group.size > 1 else None), net, agent)
    alone = together
    if group.size > 1:
        alone = first_alone(group, lambda: measure_kernels(Bench(device, None), net, agent)) or together
    messages = measure_messages(group) if group.size > 1 else {}
    measured = Calibration(
        machine_name(), device.describe(), group.size, group.size > (os.cpu_count() or 1), alone, together,
        messages, group.max_integer(base),
    )  # fmt: skip
    text = group.broadcast_text(msgspec.json.encode(measured).decode())
    return msgspec.json.decode(text, type=Calibration)


def reset_peak() -> None:
    """Forget the most memory so far, where Linux lets a process do that."""
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def machine_name() -> str:
    """Processor and cores, in a line."""
    model = platform.processor() or platform.machine()
    with contextlib.suppress(OSError, StopIteration), open("/proc/cpuinfo") as file:
        model = next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    return f"{os.cpu_count()} cores of {model}"


# ---- kernels ----------------------------------------------------------------------------------------------


def measure_kernels(bench: Bench, net: QNetwork, agent: AgentCase) -> Kernels:
    """Rates of one rank."""
    pool = Pool(bench.device)
    _add_products(bench, pool)
    _add_lookups(bench, net)
    _add_dense(bench, pool, net)
    _add_passes(bench, pool)
    add_layers(bench, pool)
    add_attention(bench, pool, stream(0, "calibrate/attention"))
    _add_calls(bench, net, agent)
    entries = np.arange(1 << 12, dtype=np.float32)[:, None]
    code, mean = bench.device.put(entries), bench.device.put(np.ones_like(entries))
    features = partial(net.problem.features, net.policy.features, bench.device.xp, code, mean)
    bench.add("feature", features, len(entries))
    found = bench.run()
    return Kernels(
        [_product_rate(found, "product", width, _sizes(width)) for width in WIDTHS],
        _product_rate(found, "lookup", net.K, [4 * states * columns for states, columns in LOOKUPS]),
        {kind: _dense_rate(found, kind, net) for kind in ("dense", "gram")}
        | {kind: layer_rate(found, kind) for kind in ("wide dense", "wide gram")},
        {kind: _pass_rate(found, kind) for kind in ("element", "take", "reduce", "skip dense", "skip gram")}
        | {kind: layer_pass_rate(found, kind) for kind in ("drop", "loss")}
        | {"attend": attention_rate(found)},
        found["feature"],
        _call_seconds(found),
    )


def _sizes(width: int) -> list[int]:
    return [size for size in OPERANDS if size // (4 * width) <= MOST_COLUMNS]


def _add_products(bench: Bench, pool: Pool) -> None:
    """Rows of random columns."""
    draws, writes = stream(0, "calibrate"), _as_in_a_step(bench.device)
    for width in WIDTHS:
        for size in _sizes(width):
            columns = size // (4 * width)
            entries = max(LINES // -(-width // 16), REUSE * columns)
            for degree in DEGREES:
                A, rows = _random_rows(bench.device, entries, degree, columns, draws)
                Y = bench.device.xp.zeros((rows, width), dtype=np.float32)
                # The operand stays where it is: bringing it in is a pass over it, counted beside the product.
                X = pool.numbers[: columns * width].reshape(columns, width)
                bench.add(
                    ("product", width, size, degree),
                    partial(bench.device.spmm_add, A, X, Y, **writes),
                    rows * degree,
                )


def _add_lookups(bench: Bench, net: QNetwork) -> None:
    """Rows of random columns, whose numbers are random entries of a table of each state's own part."""
    draws, writes = stream(0, "calibrate/lookup"), _as_in_a_step(bench.device)
    for states, columns in LOOKUPS:
        table = bench.device.put(draws.random((states * TABLE, net.K), dtype=np.float32))
        code = draws.integers(0, TABLE, (columns, states)) + TABLE * np.arange(states)
        entries = max(LINES // states, REUSE * columns)
        for degree in DEGREES:
            A, rows = _random_rows(bench.device, entries, degree, columns, draws)
            Y = bench.device.xp.zeros((rows, states * net.K), dtype=np.float32)
            numbers = bench.device.put(code.astype(np.int32))
            call = partial(bench.device.spmm_lookup, A, table, numbers, Y, **writes)
            bench.add(("lookup", net.K, 4 * states * columns, degree), call, rows * degree * states)


def _as_in_a_step(device: Any) -> dict[str, bool]:
    """Products as a step makes them: written where the device can, else added to zeros."""
    return {"write": True} if device.writes_products else {}


def _random_rows(
    device: Any, entries: int, degree: int, columns: int, draws: np.random.Generator
) -> tuple[Any, int]:
    """A CSR matrix of at least `entries` ones, `degree` in each row; how many rows."""
    rows = -(-entries // degree)
    indices = np.sort(draws.integers(0, columns, (rows, degree), dtype=np.int32), axis=1)
    indptr = np.arange(0, rows * degree + 1, degree, dtype=np.int32)
    return device.csr(indptr, indices.reshape(-1), None, (rows, columns)), rows


def _product_rate(found: dict[Any, float], kind: str, width: int, sizes: list[int]) -> ProductRate:
    """Seconds per entry of rows of d entries are entry_s + row_s / d."""
    entry_s, row_s = [], []
    for size in sizes:
        short, long = (found[kind, width, size, degree] for degree in DEGREES)
        row = max(short - long, 0.0) / (1 / DEGREES[0] - 1 / DEGREES[1])
        row_s.append(row)
        entry_s.append(max(long - row / DEGREES[1], 0.0))
    return ProductRate(width, [float(size) for size in sizes], entry_s, row_s)


def _add_dense(bench: Bench, pool: Pool, net: QNetwork) -> None:
    """A round of the embedding and its weight gradient: features by index alone, and with two parts more.

    "skip", "skip gram": half of the rows are masked.
    """
    draws = stream(0, "calibrate/mask")
    # Rows are (node, state); a node that one state has removed is gone from later ones too.
    half = draws.random((max(ARRAY_ROWS) // 8, 1)) < draws.random(8)
    for rows in ARRAY_ROWS:
        starts = partition_rows(rows, 1, blocks=min(256, rows // 8)).starts[None, :]
        ones = bench.device.xp.ones(rows, dtype=np.float32)
        index = bench.device.put(np.arange(rows, dtype=np.int32) % 64)
        mask = bench.device.put(half.reshape(-1)[:rows].astype(np.float32))
        for parts in (1, 3):
            left = partial(_left, pool, net, rows, index, ones, parts)
            forward = partial(_forward, bench.device, left, net, ones)
            bench.add(("dense", rows, parts), forward, rows)
            bench.add(
                ("gram", rows, parts), partial(_gram, bench.device, left, pool, net, starts, ones), rows
            )
            bench.add(("skip dense", rows, parts), partial(_forward, bench.device, left, net, mask), rows)
            bench.add(
                ("skip gram", rows, parts), partial(_gram, bench.device, left, pool, net, starts, mask), rows
            )


def _left(pool: Pool, net: QNetwork, rows: int, index: Any, scale: Any, parts: int) -> list[Operand]:
    """Columns of the left operand: F, or F + 2 K."""
    out = [Operand(pool.take(64, net.F), index)]
    if parts > 1:
        out += [Operand(pool.take(rows, net.K), None, scale), Operand(pool.take(rows, net.K))]
    return out


def _forward(device: Any, left: Callable[[], list[Operand]], net: QNetwork, scale: Any) -> None:
    parts = left()
    W = device.xp.full((sum(part.X.shape[1] for part in parts), net.K), 0.01, dtype=np.float32)
    device.dense(parts, W, Finish(relu=True, scale=scale))


def _gram(
    device: Any, left: Callable[[], list[Operand]], pool: Pool, net: QNetwork, starts: np.ndarray, live: Any
) -> None:
    device.gram(left(), pool.take(len(live), net.K), starts, live)


def _dense_rate(found: dict[Any, float], kind: str, net: QNetwork) -> DenseRate:
    row_s, madd_s, padded = [], [], -(-net.K // 16) * 16
    for rows in ARRAY_ROWS:
        narrow, wide = found[kind, rows, 1], found[kind, rows, 3]
        madd = max(wide - narrow, 0.0) / (2 * net.K * padded)
        madd_s.append(madd)
        # A product takes its features from a table, at the price of a row.
        row_s.append(max(narrow - madd * net.F * padded, 0.0) if kind == "gram" else narrow)
    return DenseRate([float(4 * rows * net.K) for rows in ARRAY_ROWS], row_s, madd_s)


def _add_passes(bench: Bench, pool: Pool) -> None:
    few = bench.device.put(np.ones(64, dtype=np.float32))
    for rows in ARRAY_ROWS:
        index = bench.device.put(np.arange(rows, dtype=np.int32) % 64)
        bench.add(("element", rows), partial(_square, pool, rows), 16 * rows)
        bench.add(("take", rows), partial(few.__getitem__, index), rows)
        bench.add(("reduce", rows), partial(_best, bench.device, pool, rows), rows)


def _square(pool: Pool, rows: int) -> None:
    x = pool.take(rows, 16)
    x * x


def _best(device: Any, pool: Pool, rows: int) -> None:
    """The best row of each of 8 states."""
    score = pool.take(rows, 1)[:, 0]
    members = Members(np.array([[0, rows // 8]]), [8], [0], [0], 8)
    device.best_rows(members, score, score > 0, np.float32(-2), np.float32(-1))


def _pass_rate(found: dict[Any, float], kind: str) -> PassRate:
    """By the bytes of an array of 16 columns; "skip": beyond half of a row that is made."""
    made = kind.removeprefix("skip ")
    if made != kind:
        more = {key: found[kind, *key] - found[made, *key] / 2 for key in product(ARRAY_ROWS, (1, 3))}
        values = [max((more[rows, 1] + more[rows, 3]) / 2, 0.0) for rows in ARRAY_ROWS]
    else:
        values = [found[kind, rows] for rows in ARRAY_ROWS]
    return PassRate([64.0 * rows for rows in ARRAY_ROWS], values)


# ---- calls ------------------------------------------------------------------------------------------------


def _add_calls(bench: Bench, net: QNetwork, case: AgentCase) -> None:
    """Both steps on graphs of 8 nodes: of 1 and 33 states of one graph, and of 32 states of 32 graphs."""
    solo = only_this_rank(bench.device)
    agent = Agent(solo, case, net, [_tiny_block(solo) for _ in range(32)], 0, 0)
    batch = StateBatch(solo, [(agent.blocks[0], 1)])
    env = GraphEnv(solo, agent.blocks[0], MinimumVertexCover())

    def evaluate() -> None:
        best_nodes(solo, batch, *score_environments(net, agent.params, batch, [env]))

    update = partial(agent.optimiser.update, agent.params.flat, 0 * agent.target.flat)
    steps = {
        name: partial(agent.learn, _tiny_sample(graphs, env))
        for name, graphs in (("one", [0]), ("many", [0] * 33), ("mixed", list(range(32))))
    }
    for name, call in {"evaluation": evaluate, "step": update, **steps}.items():
        bench.add(name, partial(_many, call), CALLS)
    add_operations(bench, solo, agent.blocks[0])


def _many(call: Callable[[], Any]) -> None:
    """Enough calls that the first, which finds its code out of the cache, does not count."""
    for _ in range(CALLS):
        call()


def _call_seconds(found: dict[Any, float]) -> dict[str, float]:
    """What a step costs once, for each part, for each state, and for each graph in it."""
    state = max(found["many"] - found["one"], 0.0) / 32
    member = max(found["mixed"] - found["one"] - 31 * state, 0.0) / 31
    part = max(found["one"] - state - member - found["step"], 0.0)
    measured = {name: found[name] for name in ("evaluation", "step", "operation")}
    return {**measured, "part": part, "state": state, "member": member}


def _tiny_block(solo: Group) -> RowBlock:
    around = np.arange(TINY)
    graph = from_edges(TINY, around, (around + 1) % TINY, name="ring")
    return RowBlock(solo, graph, partition_rows(TINY, 1))


def _tiny_sample(graphs: list[int], env: GraphEnv) -> Sample:
    """States from which nothing was removed, and after the first choice."""
    size = len(graphs)
    none, first = np.empty(0, dtype=np.int64), np.zeros(1, dtype=np.int64)
    ones = np.ones(size, dtype=np.float32)
    return Sample(
        np.array(graphs), np.zeros(size, dtype=np.int64), -ones, 0.5 * ones, [none] * size, [first] * size,
        [env.totals] * size, [env.totals] * size,
    )  # fmt: skip


# ---- collectives ------------------------------------------------------------------------------------------


def measure_messages(group: Group) -> dict[str, MessageRate]:
    """Collectives by the bytes that a rank receives. Ranks: all call."""
    bench = Bench(group.device, group)
    makers = {"max": _max, "merge": _merge, "gather": _gather, "exchange": _exchange, "stage": _stage}
    for kind, make in makers.items():
        for size in MESSAGE_BYTES:
            if kind not in ("max", "merge") or size <= LARGEST_MERGE:
                bench.add((kind, size), make(group, size))
    bench.add("round", group.barrier, math.ceil(math.log2(group.size)))
    found = bench.run()
    out = {"round": MessageRate([1.0], [found.pop("round")])}
    for kind in makers:
        sizes = [size for name, size in found if name == kind]
        out[kind] = MessageRate([float(size) for size in sizes], [found[kind, size] for size in sizes])
    return out


def _rows(group: Group, size: int) -> tuple[Any, int]:
    """This rank's rows of 16 numbers, of which the others together have `size` bytes; how many rows."""
    rows = max(size // (64 * (group.size - 1)), 1)
    return group.device.xp.ones((rows, 16), dtype=np.float32), rows


def _max(group: Group, size: int) -> Callable[[], Any]:
    keys = np.ones(max(size // 8, 1), dtype=np.uint64)
    return lambda: group.max_integers(keys)


def _merge(group: Group, size: int) -> Callable[[], Any]:
    X = group.device.xp.ones((max(size // 64, 1), 16), dtype=np.float32)
    return lambda: group.merge_rows(X)


def _gather(group: Group, size: int) -> Callable[[], Any]:
    X, rows = _rows(group, size)
    out = group.device.xp.empty((rows * group.size, 16), dtype=np.float32)
    return lambda: group.gather_rows(X, [rows] * group.size, out)


def _exchange(group: Group, size: int) -> Callable[[], Any]:
    X, rows = _rows(group, size)
    counts = [rows] * group.size
    counts[group.rank] = 0
    send = group.device.xp.concatenate([X] * (group.size - 1))
    out = group.device.xp.empty_like(send)
    return lambda: group.exchange_rows(send, counts, counts, out)


def _stage(group: Group, size: int) -> Callable[[], Any]:
    X, rows = _rows(group, size)
    return lambda: [rank for rank, _ in group.stage_rows(X, [rows] * group.size)]
