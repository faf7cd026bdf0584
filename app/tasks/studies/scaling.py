"""Task study, kind scaling: the performance model calibrated, checked, and followed to many ranks.

Measured are both kinds of step on one rank and on all running ranks, by turns. Everything else is
extrapolated (RL4GO section 7.5, Fig. 7), and says so.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from operator import itemgetter
from statistics import median
from typing import Any

import numpy as np

from app.case.graph import GraphCase
from app.comm.group import Group
from app.comm.guard import digest, raise_together
from app.comm.turns import only_this_rank, seconds_alone, seconds_together
from app.errors import CaseError
from app.graphs.generators.table import GENERATORS
from app.memory.room import resident_bytes
from app.model import memory, policy_memory
from app.model.calibrate import reset_peak
from app.model.counts import expected_entries
from app.model.curve import PARTS, Machine, StepKind, curve
from app.model.layout import Layout, count, estimate, of_blocks
from app.model.plan import graph_case
from app.model.rates import BYTES_S, LATENCY_S, Calibration, Network, Rates, averaged
from app.model.steps import Step, make_step
from app.model.work import States, sent_bytes
from app.partition.assemble import gather_whole
from app.partition.generators import parameters_of
from app.partition.load import load_graphs
from app.partition.loaded import Loaded
from app.partition.streams import load_stream
from app.plots.runs import plot_scaling
from app.problems.table import problem_of
from app.rl.qnet import QNetwork
from app.sparse.rowblock import RowBlock
from app.tasks.context import Context
from app.tasks.studies.calibrated import calibrated
from app.tasks.studies.cells import measurement

Layouts = Callable[[int], Layout]  # by the number of ranks
SHORTEST_S = 0.01  # of a timing; a shorter step is repeated
COLUMNS = (
    "graph", "step", "ranks", "seconds", "speedup", "sent_bytes", "memory_mb", "exchange", "counts",
    "measured_s", "efficiency", *(f"{part}_s" for part in PARTS),
)  # fmt: skip


@dataclass(frozen=True)
class Timing:
    """A step as it ran on some ranks: seconds of each round (rank 0's clock), bytes sent by each rank."""

    step: Step
    layout: Layout
    seconds: list[float]
    sent: np.ndarray


@dataclass(frozen=True)
class Followed:
    """Steps as measured beside their predictions, the curves to many ranks, and where the rates come from."""

    measured: list[dict[str, Any]]
    curves: list[dict[str, Any]]
    title: str
    digests: dict[str, str]


def run_scaling(context: Context) -> dict[str, Any]:
    """Calibrate, measure, compare, extrapolate. Ranks: all call."""
    _require_counted(context)
    memory_row, base = None, resident_bytes()
    if text := context.case.study.memory_graph:
        memory_row = measurement(context, f"memory {text}", partial(_peak_memory, context))
        _say_memory(context, memory_row)
    found = follow_scaling(context, base, _files(context))
    if context.folder is not None:
        write_curves(context, found.curves, found.title)
    return {
        "digest": digest_of(found.digests), "measured": found.measured, "memory": memory_row,
        "curves": found.curves, "instances": [],
    }  # fmt: skip


def follow_scaling(context: Context, base: int, more: Sequence[Loaded] = (), name: str = "") -> Followed:
    """The graphs of study.measured on one rank and on all, then all of these and more on many.

    base    bytes of this process before it read a graph
    name    of this part of a study that has several
    Ranks   all call
    """
    study, log = context.case.study, context.log
    _require_counted(context)
    tables = {text: _table(context, text) for text in (*study.measured, *study.extrapolated)}
    net, before = _network(context), calibration_of(context, f"{name} before", base)
    timings, digests = [], {}
    with log.phase("measure"):
        for text in study.measured:
            found, same = _measure(context, net, tables[text], text, name)
            timings += found
            digests |= same
    after = calibration_of(context, f"{name} after", base)
    calibration = _kept(context, averaged(before, after))
    rows = [_compared(calibration, timing) for timing in timings]
    for row in rows:
        log.info("%s", _line(row))
    curves = _curves(context, calibration, net, _layouts(context, tables, more), name)
    _mark_measured(curves, rows)
    title = _title(context, calibration)
    log.info("extrapolated strong scaling, ms per step (speedup); %s", title)
    _say_curves(context, curves)
    return Followed(rows, curves, title, digests)


def write_curves(context: Context, curves: list[dict[str, Any]], title: str) -> None:
    """The curves as a table, and where wanted as a plot. Ranks: all call; rank 0 writes."""
    context.folder.write_csv("scaling.csv", COLUMNS, curves)
    if context.case.output.plots:
        plot_scaling(context.folder, context.log, curves, title)


def digest_of(digests: dict[str, str]) -> str:
    """One digest of those of the steps."""
    return digest({name: np.frombuffer(text.encode(), dtype=np.uint8) for name, text in digests.items()})


def _table(context: Context, text: str) -> GraphCase:
    """A generated graph such as er:1920:0.065, or a file relative to the data's folder."""
    path = data_path(context, text)
    return graph_case(text) if path is None else GraphCase(path=[path])


def data_path(context: Context, text: str) -> str | None:
    """The file that an entry of study.measured names, None for a generated graph."""
    if text.count(":") == 2:
        return None
    return os.path.join(os.path.dirname(context.case.study.data), text)


def _require_counted(context: Context) -> None:
    """Refuse problems whose steps the model does not count: those with a further product in each."""
    problem = problem_of(context.case)
    if problem.closed or problem.dynamics != "residual":
        raise CaseError(f"problem.name: the performance model counts the steps of mvc, not of {problem.name}")


# ---- what is measured -------------------------------------------------------------------------------------


def calibration_of(context: Context, name: str, base: int) -> Calibration:
    """The file of the case, or rates measured now. Ranks: all call.

    name   of this calibration among those of the study
    base   bytes of this process before it read a graph
    """
    return calibrated(context, f"calibration {name}", _network(context), context.case.agent, base)


def _kept(context: Context, calibration: Calibration) -> Calibration:
    """A calibration, written to the run's folder where it was measured."""
    study, log = context.case.study, context.log
    if study.calibration:
        log.info("rates of %s", study.calibration)
    elif context.folder is not None:
        context.folder.write_text("calibration.json", calibration.text())
    if calibration.oversubscribed:
        log.info("more ranks than cores: times are those of an oversubscribed machine; bytes are compared")
    return calibration


def _network(context: Context) -> QNetwork:
    return QNetwork(context.case.policy, problem_of(context.case))


def _loaded(context: Context, group: Group, table: GraphCase, name: str) -> Loaded:
    """A file, or a generated graph partitioned like one that is read. Ranks of the group: all call."""
    if table.path:
        loaded = load_graphs(group, table, "instances", context.case)[0]
        return replace(loaded, graph=replace(loaded.graph, name=name))
    family, n, seed = table.generator, int(table.nodes), context.case.seed
    source = None
    with raise_together(group, "generating a graph"):
        if group.rank == 0:
            source = GENERATORS[family](n, *parameters_of(table, family, n), seed, name=name)
    return load_stream(group, source, GraphCase(), context.case)


def _rows(context: Context, group: Group, loaded: Loaded) -> RowBlock:
    width = context.case.policy.dimension
    return RowBlock(group, loaded.graph, loaded.rows, context.case.parallel.exchange, width)


def _measure(
    context: Context, net: QNetwork, table: GraphCase, name: str, part: str
) -> tuple[list[Timing], dict[str, str]]:
    """Every step on one rank and on all, and a digest of each step. Ranks: all call.

    part   of the study that this belongs to
    """
    group, solo = context.group, only_this_rank(context.device)
    block = _rows(context, group, _loaded(context, group, table, name))
    layout = of_blocks(group, block)
    # Only rank 0 is timed alone; the others take the same counts from their own.
    alone = _rows(context, solo, _loaded(context, solo, table, name)) if group.size > 1 else block
    timings, digests = [], {}
    for batch in (0, *context.case.study.batches):
        both = [
            make_step(g, net, context.case.agent, b, batch, context.case.seed)
            for g, b in ((solo, alone), (group, block))
        ]
        step = both[1].name
        found = measurement(context, f"{part} {name} {step}", partial(_timed, context, *both))
        sent, digests[f"{name} {step}"], turns = found
        layouts = {1: of_blocks(solo, alone), group.size: layout}
        for ranks, taken in turns:
            timings.append(Timing(both[1], layouts[ranks], taken, np.array(sent)))
    context.log.info("%s: %d steps measured, exchange %s", name, len(digests), layout.mode)
    return timings, digests


def _timed(context: Context, alone: Step, together: Step) -> tuple[list[int], str, list[Any]]:
    """A step's bytes by rank, its digest, and (ranks, seconds of each round). Ranks: all call."""
    sent, result = _sent(context.group, together)
    return sent.tolist(), result, list(_by_turns(context, alone, together).items())


def _sent(group: Group, step: Step) -> tuple[np.ndarray, str]:
    """[ranks] bytes that each rank sends in the step, and its result. Ranks: all call."""
    before = sum(group.sent_bytes.values())
    result = step.run()
    sent = sum(group.sent_bytes.values()) - before
    return group.gather_integers(np.array([sent]))[:, 0], result


def _by_turns(context: Context, alone: Step, together: Step) -> dict[int, list[float]]:
    """Seconds of the step by number of ranks; who begins changes each round. Ranks: all call."""
    group, rounds = context.group, context.case.study.rounds
    first = seconds_together(group, together.run)
    repeats = group.max_integer(int(SHORTEST_S / max(first, 1e-6)) + 1)
    actions = {group.size: partial(seconds_together, group, partial(_repeat, together.run, repeats))}
    if group.size > 1:
        actions[1] = partial(seconds_alone, group, partial(_repeat, alone.run, repeats))
        actions[1]()
    taken: dict[int, list[float]] = {ranks: [] for ranks in sorted(actions)}
    for turn in range(rounds):
        for ranks in sorted(actions, reverse=bool(turn % 2)):
            taken[ranks].append(actions[ranks]() / repeats)
    return taken


def _repeat(action: Callable[[], Any], times: int) -> None:
    for _ in range(times):
        action()


def _compared(calibration: Calibration, timing: Timing) -> dict[str, Any]:
    """A step on some ranks: prediction beside measurement."""
    step, layout = timing.step, timing.layout
    rates, terms = Rates(calibration, layout.ranks), step.terms(layout, layout.heaviest)
    counted = [sum(sent_bytes(step.terms(layout, rank)).values()) for rank in range(layout.ranks)]
    measured = max(median(timing.seconds), 1e-9)  # ranks that slept have no time of their own
    sent = timing.sent.tolist() if layout.ranks > 1 else [0]
    return {
        "graph": layout.name, "step": step.name, "ranks": layout.ranks, "exchange": layout.mode,
        "predicted_s": rates.total(terms), "measured_s": measured, "ratio": rates.total(terms) / measured,
        "quartiles_s": np.quantile(timing.seconds, (0.25, 0.75)).tolist(), "parts_s": rates.by_part(terms),
        "predicted_bytes": max(counted), "sent_bytes": max(sent), "bytes_agree": counted == sent,
        "oversubscribed": layout.ranks > (os.cpu_count() or 1),
    }  # fmt: skip


def _peak_memory(context: Context) -> dict[str, Any]:
    """Peak of this process while a large graph is read and evaluated, beside the model. Ranks: all call."""
    group, text = context.group, context.case.study.memory_graph
    base = group.gather_integers(np.array([resident_bytes()]))[:, 0].tolist()
    reset_peak()
    net, table = _network(context), graph_case(text)
    block = _rows(context, group, _loaded(context, group, table, text))
    make_step(group, net, context.case.agent, block, 0, context.case.seed).run()
    found = group.gather_integers(np.array([resident_bytes("VmHWM")]))[:, 0]
    rank, layout = int(np.argmax(found)), of_blocks(group, block)
    ordered = table.generator in ("er", "ba")
    terms = policy_memory.peak(net, layout, States(), "evaluation", base[rank], rank, ordered)
    return {
        "graph": text, "ranks": group.size, "edges": layout.entries // 2, "exchange": layout.mode,
        "predicted_bytes": memory.total(terms), "measured_bytes": int(found[rank]), "terms": terms,
    }  # fmt: skip


# ---- what is extrapolated ---------------------------------------------------------------------------------


def _layouts(
    context: Context, tables: dict[str, GraphCase], more: Sequence[Loaded]
) -> list[Callable[[], Layouts]]:
    """For each graph what makes its layouts, so that one graph at a time is held. Ranks: all call each."""

    def measured(text: str) -> Layouts:
        return _counted(context, _loaded(context, context.group, tables[text], text))

    def expected(text: str) -> Layouts:
        return _expected(context, text, int(tables[text].nodes), expected_entries(tables[text]), 0)

    study = context.case.study
    made = [partial(measured, text) for text in study.measured]
    made += [partial(expected, text) for text in study.extrapolated]
    return made + [partial(_counted, context, loaded) for loaded in more]


def _files(context: Context) -> list[Loaded]:
    """The graphs of [graph], else those of the folder `large` beside study.data. Ranks: all call."""
    table, data = context.case.graph, context.case.study.data
    folder = os.path.join(os.path.dirname(data), "large") if data else ""
    if not (table.path or table.generator) and folder and os.path.isdir(folder):
        paths = [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
        table = GraphCase(path=[path for path in paths if os.path.isfile(path)])
    return context.load(table, "instances")


def _counted(context: Context, loaded: Loaded) -> Layouts:
    """Layouts by counting where the whole graph fits a rank, else by expectation. Ranks: all call."""
    graph, case = loaded.graph, context.case
    if 8 * graph.edges > 1e6 * case.memory.whole_graph_mb:
        degree = context.group.max_integer(int(graph.degrees().max(initial=0)))
        return _expected(context, graph.name, graph.n, 2 * graph.edges, degree)
    whole = gather_whole(context.group, graph, loaded.rows)
    exchange, balance, width = case.parallel.exchange, case.parallel.partition, case.policy.dimension
    return lambda ranks: count(whole, ranks, exchange, balance, width)


def _expected(context: Context, name: str, n: int, entries: int, degree: int) -> Layouts:
    exchange, width = context.case.parallel.exchange, context.case.policy.dimension
    return lambda ranks: estimate(name, n, entries, ranks, exchange, width, degree)


def _curves(
    context: Context, calibration: Calibration, net: QNetwork, graphs: list[Callable[[], Layouts]], part: str
) -> list[dict[str, Any]]:
    """Both steps of every graph on the ranks of the study. Ranks: all call.

    part   of the study that this belongs to
    """
    study = context.case.study
    ranks = sorted({*study.ranks, 1, context.group.size})  # what was measured has its place
    machine = Machine(calibration.undisturbed, Network(1e-6 * study.latency_us, 1e9 * study.bandwidth_gbs))

    def followed(graph: Callable[[], Layouts]) -> list[dict[str, Any]]:
        layouts, out = cache(graph()), []
        for batch in (0, study.batches[0]):
            out += curve(machine, net, layouts, ranks, StepKind(batch, context.case.agent.double))
        return out

    found = []
    for number, graph in enumerate(graphs):
        found += measurement(context, f"{part} curves of graph {number}", partial(followed, graph))
    return found


def _mark_measured(curves: list[dict[str, Any]], rows: list[dict[str, Any]]) -> None:
    """Put measured seconds beside predicted ones."""
    key = itemgetter("graph", "step", "ranks")
    found = {key(row): row["measured_s"] for row in rows if not row["oversubscribed"]}
    for point in curves:
        point["measured_s"] = found.get(key(point), "")


# ---- what is said -----------------------------------------------------------------------------------------


def _title(context: Context, calibration: Calibration) -> str:
    """Where the numbers of a plot come from."""
    study, measured = context.case.study, bool(calibration.undisturbed.messages)
    latency = "as calibrated" if measured else f"assumed {1e6 * LATENCY_S:g} us"
    bandwidth = "as calibrated" if measured else f"assumed {1e-9 * BYTES_S:g} GB/s"
    if study.latency_us:
        latency = f"{study.latency_us:g} us"
    if study.bandwidth_gbs:
        bandwidth = f"{study.bandwidth_gbs:g} GB/s"
    ranks = f"rates of {calibration.ranks} rank{'s' * (calibration.ranks > 1)}"
    return f"{ranks} on {calibration.machine}; network: latency {latency}, bandwidth {bandwidth}"


def _line(row: dict[str, Any]) -> str:
    """A measured step in words."""
    times = f"{1e3 * row['predicted_s']:.2f} ms predicted, {1e3 * row['measured_s']:.2f} ms measured"
    ratio = "oversubscribed" if row["oversubscribed"] else f"ratio {row['ratio']:.2f}"
    sent = ""
    if row["ranks"] > 1:
        agree = "as predicted" if row["bytes_agree"] else f"predicted {row['predicted_bytes']}"
        sent = f"; {row['sent_bytes']} bytes sent, {agree}; exchange {row['exchange']}"
    return f"{row['graph']}, {row['step']}, {row['ranks']} ranks: {times}, {ratio}{sent}"


def _say_memory(context: Context, row: dict[str, Any]) -> None:
    """The peak of memory in words."""
    predicted, measured = row["predicted_bytes"], row["measured_bytes"]
    context.log.info(
        "%s, %d ranks: peak memory of a rank %.0f MB, predicted %.0f MB, ratio %.2f (%s)",
        row["graph"], row["ranks"], measured / 1e6, predicted / 1e6, predicted / max(measured, 1),
        memory.words(row["terms"]),
    )  # fmt: skip


def _say_curves(context: Context, curves: list[dict[str, Any]]) -> None:
    """The extrapolated curves, one line for each graph and step."""
    log = context.log
    for graph, step in dict.fromkeys((row["graph"], row["step"]) for row in curves):
        points = [row for row in curves if (row["graph"], row["step"]) == (graph, step)]
        shown = ", ".join(f"{p['ranks']}: {1e3 * p['seconds']:.3g} ({p['speedup']:.1f})" for p in points)
        log.info("%s, %s (%s counts): %s", graph, step, points[0]["counts"], shown)
