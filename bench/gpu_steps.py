"""The steps of bench/gpu_check.py, each on its own: a function of Where that fills a Report.

The report is the caller's: what was found before a step fails or is killed stays.
"""

import importlib.util
import time
from typing import Any

import numpy as np
from mpi4py import MPI

from app.comm.group import Group
from app.comm.guard import digest
from app.comm.transport import find_launcher, mpi_library, mpi_takes_device_memory, probe
from app.device import HostDevice
from app.memory.tiers import TierBudget
from app.problems.mvc import MinimumVertexCover
from app.rl.rollout import roll_out
from app.rng import stream
from app.sparse.batch import StateBatch
from bench import gpu_cases, gpu_tools, subjects
from bench.gpu_repeated import epochs, evaluations, make_trainer, told
from bench.gpu_tools import SHAPES, SMALL, Report, Where, make_graph, normal, row_block, run_ranks, said, wall
from bench.gpu_worker import TASKS

LEAST_RUN_S = 20.0  # that is left to each job after the one that runs, where there is as much
GATHERED = 64  # rows that a sub-warp of gpu_gather.cu adds


# ---- 1: the device ----------------------------------------------------------------------------------------


def facts(where: Where, found: Report) -> None:
    """What the device and the MPI library are, and how fast bytes move."""
    device, xp = where.device, where.device.xp
    found.note(device.describe())
    found.note(f"{mpi_library()}; stated support for CUDA memory: {mpi_takes_device_memory() or 'none'}")
    if not where.rehearse:
        runtime = xp.cuda.runtime
        found.note(f"CUDA driver {runtime.driverGetVersion()}, runtime {runtime.runtimeGetVersion()}")
        found.note(f"probe of two ranks that share the device: {probe() or 'device memory arrived'}")
    add = found.table("Copies", "what", "MB", "GB/s")
    size = where.size(1 << 28, 1 << 14)
    X, Y = device.put(normal("copy", size)), xp.empty(size, dtype=np.float32)
    host = device.stage_buffer("copy", (size,), np.float32)
    host[:] = 1

    def copy() -> None:
        Y[...] = X

    add("on the device, read and written", 4e-6 * size, 8e-9 * size / where.time(copy))
    add(
        "page-locked host to device",
        4e-6 * size,
        4e-9 * size / where.time(lambda: device.stage_in("copy", host)),
    )
    add(
        "device to page-locked host",
        4e-6 * size,
        4e-9 * size / where.time(lambda: device.stage_out("copy", X)),
    )


# ---- 2: kernels -------------------------------------------------------------------------------------------


def kernels(where: Where, found: Report) -> None:
    """Every kernel against the CPU path, bit for bit, and sums against float64."""
    add = found.table("Kernels against the CPU", "kernel", "same bits", "error in units of float32 rounding")
    rows, longest = where.size(1 << 13, 264), where.size(9000, 5000)
    cases = [
        *gpu_cases.sparse_cases(where.size(4001, 50), longest), *gpu_cases.dense_cases(rows),
        *gpu_cases.form_cases(where.size(4001, 50), longest), *gpu_cases.row_cases(rows),
        *gpu_cases.changes_cases(where.size(4001, 50), longest),
        *gpu_cases.table_cases(where.size(4000, 48), longest), *gpu_cases.triple_cases(where.size(4001, 50)),
    ]  # fmt: skip
    for case in cases:
        try:
            same, error = gpu_cases.compare(where.device, case)
        except Exception as failed:  # the other kernels may still hold
            found.check(False, f"{case[0]}: {said(failed)}")
            add(case[0], "NO", "")
            continue
        found.check(same, f"{case[0]}: other bits than on the CPU")
        found.check(error < longest, f"{case[0]}: {error:.0f} roundings from float64")
        add(case[0], "yes" if same else "NO", error if case[3] else "")


# ---- 3: digests -------------------------------------------------------------------------------------------


def digests(where: Where, found: Report) -> None:
    """Of what TASKS make on 1, 2 and 4 ranks that share the GPU, staged and direct."""
    add = found.table("Digests", "ranks", "device", "transport", *TASKS, "seconds of these")
    gpu, seen, scale = "cpu" if where.rehearse else "gpu", set(), where.size(4, 1)
    runs = [(1, "cpu", "staged"), (1, gpu, "staged"), (2, gpu, "staged"), (4, gpu, "staged")]
    runs = runs[:3:2] if where.rehearse else runs
    if not where.rehearse and mpi_takes_device_memory():
        runs += [(2, gpu, "direct"), (4, gpu, "direct")]
    end, least = time.monotonic() + where.seconds, min(LEAST_RUN_S, where.seconds / len(runs))
    for left, (ranks, device, transport) in zip(range(len(runs) - 1, -1, -1), runs):
        most = max(end - time.monotonic() - least * left, least)  # the first one compiles kernels
        code, answer, printed = run_ranks(ranks, ["digests", device, transport, str(scale)], most)
        if not found.check(answer is not None, f"{ranks} ranks, {transport}: code {code}: {printed[-300:]}"):
            continue
        made = tuple(answer[task] for task in TASKS)
        seen.add(made)
        taken = ", ".join(f"{answer[f'{task}_s']:.3g}" for task in TASKS)
        add(ranks, device, answer["transport"], *made, taken)
    found.check(len(seen) == 1, f"{len(seen)} different digests")


# ---- 4: sparse products -----------------------------------------------------------------------------------


def spmm(where: Where, found: Report) -> None:
    """GB/s of sparse products by width, against what gathers of the same table reach, and cuSPARSE."""
    device = where.device
    add = found.table(
        "Sparse products", "graph", "columns", "ms", "GB/s gathered", "gather alone, GB/s", "share, %",
        "cuSPARSE, ms",
    )  # fmt: skip
    for name, (n, edges, largest, _) in shapes(where):
        graph = make_graph(where, name, n, edges, largest)
        A = device.csr(graph.indptr, graph.indices, None, (n, n))
        for c in (16, 64, 256):
            X, Y = device.put(normal("X", n, c)), device.put(normal("Y", n, c))
            nbytes = A_bytes(graph, c)
            seconds = where.time(lambda A=A, X=X, Y=Y: device.spmm_add(A, X, Y), replayed=True)
            best = gather_rate(where, graph.indices, X)
            share = 100 * nbytes / seconds / best
            vendor = vendor_seconds(where, A, X, Y, found)
            add(name, c, 1e3 * seconds, 1e-9 * nbytes / seconds, 1e-9 * best, share, vendor)
            if not where.rehearse:
                found.check(share >= 70, f"{name}, {c} columns: {share:.0f} % of the gather rate, not 70")


def shapes(where: Where) -> list[tuple[str, tuple[int, int, int, list[int]]]]:
    """The graphs; in a rehearsal a small one."""
    return [("small", SMALL)] if where.rehearse else list(SHAPES.items())


def A_bytes(graph: Any, c: int) -> int:
    """That a product gathers: a row of X and a column number for every entry."""
    return len(graph.indices) * (4 * c + 4)


def gather_rate(where: Where, columns: np.ndarray, X: Any) -> float:
    """Bytes a second at which rows of X are gathered by the column numbers of a graph, in their order."""
    device, c = where.device, X.shape[1]
    groups, lanes = len(columns) // GATHERED, min(max(c // 4, 1), 32)
    if not hasattr(device.xp, "RawModule") or not groups:
        return float("nan")
    source = (gpu_tools.ROOT / "bench" / "gpu_gather.cu").read_text("utf-8")
    kernel = device.xp.RawModule(code=source, options=("--fmad=false",)).get_function("gather")
    numbers, out = device.put(columns[: groups * GATHERED]), device.empty((groups, c))
    sizes = np.int64(groups), np.int32(GATHERED), np.int32(c), np.int32(lanes)
    blocks = -(-groups * lanes // 256)
    seconds = where.time(lambda: kernel((blocks, 1), (256,), (*sizes, numbers, X, out)), replayed=True)
    return groups * GATHERED * (4 * c + 4) / seconds


def vendor_seconds(where: Where, A: Any, X: Any, Y: Any, found: Report) -> float:
    """Milliseconds of cuSPARSE for the same product; NaN in a rehearsal, and with a note where it fails."""
    if where.rehearse:
        return float("nan")
    from app import device

    try:
        vendor = device.open_gpu(0, reproducible=False)
        if isinstance(vendor, str):
            raise RuntimeError(vendor)
        timed = Where(vendor, False, rounds=where.rounds)
        return 1e3 * timed.time(lambda: vendor.spmm_add(A, X, Y, write=True))
    except Exception as error:  # the vendor's: our own rates hold without it
        found.note(f"cuSPARSE was not measured: {said(error)}")
        return float("nan")


# ---- 5: policies ------------------------------------------------------------------------------------------


def policy(where: Where, found: Report) -> None:
    """A full evaluation, a training step of 16 states, and whole solutions beside the CPU path."""
    group = where.group()
    add = found.table("Policy, K=16, L=2", "graph", "what", "ms", "goal, ms")
    n = where.size(24_000, 200)
    graph = make_graph(where, "ER", n, int(0.075 * n * n), None)
    block, _ = row_block(group, graph)
    net, arrays = subjects.formula_network(2, 16)
    params = subjects.parameters(group, net, arrays)
    batch, env = StateBatch(group, [(block, 1)]), subjects.GraphEnv(group, block, MinimumVertexCover())
    seconds = wall(where, lambda: subjects.evaluate(group, net, params, batch, env))
    add(f"ER n={n:,}, {len(graph.indices):,} entries", "evaluation and choice", 1e3 * seconds, 3.0)
    agent = filled_agent(group, block, where.size(48, 12))
    samples = subjects.draw_samples(agent, where.size(16, 4), 4)
    turn = iter(range(1 << 30))
    seconds = wall(where, lambda: agent.learn(samples[next(turn) % 4]))
    add(f"ER n={n:,}", f"training step, B={where.size(16, 4)}", 1e3 * seconds, 120.0)
    evaluations(where, found, net, arrays)
    solutions(where, found, net, arrays)


def solutions(where: Where, found: Report, net: Any, arrays: dict[str, np.ndarray]) -> None:
    """Whole solutions beside the CPU path; a sparse graph also with every state evaluated in full."""
    add = found.table("Whole solutions", "graph", "GPU, s", "in full, s", "CPU, s", "the same nodes")
    dense, sparse = (
        (where.size(2000, 60), where.size(300_000, 300)),
        (where.size(8000, 120), where.size(16_000, 130)),
    )
    for name, (nodes, edges) in (("dense", dense), ("sparse", sparse)):
        graph = make_graph(where, f"ER {nodes}", nodes, edges, None)
        answers = []
        for device, full in ((where.device, False), (where.device, True), (HostDevice(), False)):
            side = Group(MPI.COMM_SELF, device)
            params, block = subjects.parameters(side, net, arrays), row_block(side, graph)[0]
            start = time.perf_counter()
            with told(where.device, found.notes):
                cover = roll_out(side, net, params, block, "single", 1.0, full=full)
            answers.append((time.perf_counter() - start, cover.chosen_at_own.tolist()))
        same = found.check(
            all(each[1] == answers[2][1] for each in answers), f"{name}: other nodes than on the CPU"
        )
        add(f"ER n={nodes:,}, {edges:,} edges", *(each[0] for each in answers), "yes" if same else "NO")


def filled_agent(group: Group, block: Any, steps: int) -> Any:
    """A learner with the paper's settings, its replay filled by the beginning of a random episode."""
    agent = subjects.Agent(group, subjects.PAPER_AGENT, subjects.paper_network(), [block], 0, 0)
    env = subjects.GraphEnv(group, block, MinimumVertexCover())
    episode, draws = agent.replay.begin(0, env.totals), stream(0, "bench/gpu/episode")
    for _ in range(steps):
        node = subjects.random_candidates(group, [env], [int(draws.integers(env.totals.alive))])
        subjects.step_together(group, [env], [node])
        agent.replay.remember(episode, int(node[0]), -1.0, env.totals, env.totals.degree_sum == 0)
    return agent


# ---- 6: graph networks ------------------------------------------------------------------------------------


def gcn(where: Where, found: Report) -> None:
    """Epochs of a graph convolutional network, beside PyTorch Geometric's on the same device.

    Launches of small graphs are replayed, as in a training: how busy the host is, and how fast, counts less.
    """
    add = found.table(
        "GCN epochs", "graph", "widths", "A X kept, ms", "each epoch, ms", "PyG, ms", "times faster"
    )
    where.device.replays = where.device.name != "cpu"  # run.cuda_graph, as it is if nothing is said
    for name, (n, edges, largest, widths) in shapes(where):
        graph = make_graph(where, name, n, edges, largest)
        ours = []
        for form in ("cached", "live"):
            trainer = make_trainer(where, graph, widths, form)
            ours.append(wall(where, trainer))
            del trainer
        theirs = pyg_seconds(where, graph, widths, found)
        ratio = theirs / ours[1]
        add(name, "-".join(map(str, widths)), 1e3 * ours[0], 1e3 * ours[1], 1e3 * theirs, ratio)
        if theirs == theirs:
            found.check(theirs / ours[0] >= 2, f"{name}: {theirs / ours[0]:.2f} times as fast as PyG, not 2")
    epochs(where, found)


def pyg_seconds(where: Where, graph: Any, widths: list[int], found: Report) -> float:
    """Seconds of an epoch of GCNConv with a CSR adjacency on the same GPU; NaN where it cannot be run."""
    if where.rehearse or importlib.util.find_spec("torch_geometric") is None:
        found.note("PyTorch Geometric was not measured: " + ("a rehearsal" if where.rehearse else "absent"))
        return float("nan")
    try:
        from bench.gpu_pyg import epoch_seconds

        where.device.xp.get_default_memory_pool().free_all_blocks()
        return epoch_seconds(graph, widths, where.rounds)
    except Exception as error:  # not ours (no PyTorch, no memory left): our own epochs stay in the table
        found.note(f"PyTorch Geometric was not measured: {said(error)}")
        return float("nan")


# ---- 7: memory --------------------------------------------------------------------------------------------


def memory(where: Where, found: Report) -> None:
    """Training in less memory than it wants: the same bits; and what is said where an array does not fit."""
    n, edges = where.size(100_000, 300), where.size(1_000_000, 1500)
    graph = make_graph(where, "memory", n, edges, where.size(5000, 100))
    add = found.table("Under a limit", "rows in fast memory, MB", "ms an epoch", "digest")
    seen, widths = set(), [16, 64, 64, 8]
    whole = 4 * n * sum(widths) * 2
    for limit in (None, int(0.5 * whole)):
        budget = None if limit is None else TierBudget(limit, "host")
        trainer = make_trainer(where, graph, widths, "live", budget)
        seconds = wall(where, trainer)
        text = digest(trainer.params.host())[:12]
        seen.add(text)
        add("all" if limit is None else limit / 1e6, 1e3 * seconds, text)
    found.check(len(seen) == 1, "a limit changed the weights")
    device = "cpu" if where.rehearse else "gpu"
    ranks = where.size(2, 1) if find_launcher() else 1
    code, _, printed = run_ranks(ranks, ["starve", device, "staged", "1"], min(where.seconds, 120))
    lines = [line for line in printed.splitlines() if "out of memory" in line]
    told = found.check(
        code != 0 and len(lines) == 1, f"an array that does not fit: code {code}, {printed[-300:]}"
    )
    found.note("an array that does not fit: " + (lines[0] if told else "NOT told in one line"))


# ---- 8: overlap -------------------------------------------------------------------------------------------


def overlap(where: Where, found: Report) -> None:
    """Staged products on two ranks: the next broadcast under way while one is multiplied, or not."""
    add = found.table(
        "Staged products on 2 ranks", "transport", "MB a stage", "one after the other, ms", "overlapped, ms"
    )
    kinds = ["staged"] + (["direct"] if not where.rehearse and mpi_takes_device_memory() else [])
    for transport in kinds:
        device = "cpu" if where.rehearse else "gpu"
        arguments = ["overlap", device, transport, str(where.size(400, 1))]
        code, answer, printed = run_ranks(2, arguments, where.seconds / len(kinds))
        if found.check(answer is not None, f"{transport}: code {code}: {printed[-300:]}"):
            add(answer["transport"], answer["mb"], 1e3 * answer["ahead 0"], 1e3 * answer["ahead 1"])


# Name: title, function, minutes that it may take.
STEPS = {
    "facts": ("The device", facts, 4),
    "kernels": ("Kernels", kernels, 4),
    "digests": ("The same bits on any number of ranks", digests, 8),
    "spmm": ("Sparse products", spmm, 8),
    "policy": ("Policies", policy, 8),
    "gcn": ("Graph networks", gcn, 9),
    "memory": ("Memory", memory, 4),
    "overlap": ("Overlap", overlap, 4),
}
