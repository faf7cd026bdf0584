"""Task study, kind progress: approximation ratio over training time, for variants of a training.

RL4GO Fig. 4 (learning progress of two kinds of parallelism), Fig. 5 and Table 3 (time to a ratio, and what of
it is the agent's and what the environment's); and how soon each learner reaches the ratios of section 7.2.
No clock counts the evaluations.
"""

import json
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import median
from typing import Any

import msgspec
import numpy as np

from app.case.config import Case
from app.case.graph import GraphCase
from app.comm.group import Group
from app.comm.guard import digest, digest_text, raise_together
from app.comm.turns import first_alone, only_this_rank
from app.errors import CaseError
from app.gnn.parameters import Parameters
from app.gnn.stopwatch import Stopwatch
from app.memory.room import resident_bytes
from app.partition.families import family_names
from app.partition.generated import generate_set
from app.plots.charts import plot_bars, plot_lines
from app.problems.table import problem_of
from app.rl.qnet import QNetwork
from app.rl.rollout import rolled_out_one_at_a_time
from app.rl.training import Observers, train_policy
from app.sparse.rowblock import RowBlock
from app.tasks.context import Context
from app.tasks.studies.cells import cell
from app.tasks.studies.counted import counted_seconds
from app.tasks.studies.references import References, find_references, ratios_to
from app.tasks.studies.scaling import calibration_of
from app.tasks.studies.variants import check_training, refuse_keys, split_variant, with_variant
from app.text import show

COLUMNS = (
    "variant", "seed", "step", "gradient_steps", "agent_s", "environment_s", "seconds", "processor_s",
)  # fmt: skip
REACHED_COLUMNS = (
    "variant", "seed", "ranks", "reached", "step", "gradient_steps", "agent_s", "environment_s", "seconds",
    "processor_s",
)  # fmt: skip
# RL4GO Table 3: seconds on 6 and on 96 GPUs to AAR 1.04, ER graphs of 3,360 nodes: agent, environment, total.
TABLE_3 = {
    "Gorila B=96": ((5529.29, 2813.13, 8570.12), (332.49, 1973.07, 2338.09)),
    "RL4GO B=96": ((5964.99, 312.81, 6279.34), (365.28, 95.92, 468.17)),
    "RL4GO B=16": ((962.53, 325.3, 1288.93), (66.67, 91.97, 168.36)),
    "RL4GO B=4": ((274.93, 314.43, 590.43), (26.37, 96.82, 131.23)),
}
# RL4GO Fig. 4 and section 7.3: minutes to AAR 1.01 on ER graphs of 1,920 nodes and 120,000 edges.
FIG_4 = ("RL4GO 53 minutes on 4 GPUs, 36 on 6", "Gorila more than 75 minutes on 6 GPUs")


@dataclass(frozen=True)
class Tests:
    """Unseen graphs and what ratios are to. Each is solved by one rank alone: no clock counts that.

    blocks      of the graphs that are dealt to this rank, whole: numbers rank, rank + size, ...
    families    [graphs]
    """

    group: Group
    blocks: list[RowBlock]
    families: list[str]
    references: References

    def ratios(self, net: QNetwork, params: Parameters) -> dict[str, float]:
        """Mean approximation ratio by family of the greedy policy, nothing dropped. Ranks: all call."""
        group = self.group
        values = np.zeros(len(self.families), dtype=np.int64)
        with raise_together(group, "testing"):
            envs = rolled_out_one_at_a_time(only_this_rank(group.device), net, params, self.blocks)
            mine = [net.problem.objective(env.chosen, env.totals) for env in envs]
            values[group.rank :: group.size] = mine
        ratio = ratios_to(self.references.values, group.sum_integers(values), net.problem.sense)
        of = np.array(self.families)
        return {family: float(ratio[of == family].mean()) for family in dict.fromkeys(self.families)}


@dataclass
class Course:
    """One training as it went: a line for each evaluation."""

    variant: str
    seed: int
    targets: dict[str, float]
    lines: list[dict[str, Any]] = field(default_factory=list)
    kept: dict[str, float] = field(default_factory=dict)
    weights: str = ""

    def reached(self) -> dict[str, Any]:
        """The first line with all ratios at their targets, else the last line."""
        hit = [line for line in self.lines if self.meets(line["ratios"])]
        return {**(hit or self.lines[-1:])[0], "reached": bool(hit), "kept": self.kept}

    def meets(self, ratios: dict[str, float]) -> bool:
        """Whether every family is at its target."""
        return all(ratios[family] <= target for family, target in self.targets.items())


def run_progress(context: Context) -> dict[str, Any]:
    """Train every variant with every seed. Ranks: all call; identical on all, apart from times."""
    case, log, base = context.case, context.log, resident_bytes()
    targets = _targets(case)
    variants = _variants(context)
    references = _references(context)
    log.info("%d test graphs, ratios to %s", len(references.values), references.words())
    courses = []
    for seed in case.study.seeds:
        for name, each in variants.items():
            part = replace(context, case=msgspec.structs.replace(each, seed=seed))
            course = Course(name, seed, targets)
            told = cell(context, f"{name} {seed}", partial(_followed, part, course, references))
            course.lines, course.kept, course.weights = told
            courses.append(course)
    reached = [_reached(context, variants[course.variant], course) for course in courses]
    reached += _carried(context, variants, reached, base)
    _say(context, reached, targets)
    rows = [line for course in courses for line in course.lines]
    if context.folder is not None:
        _write_tables(context, rows, reached, list(targets))
        if case.output.plots:
            _plot(context, courses, list(targets))
            _plot_times(context, reached)
    digests = {f"{course.variant}/{course.seed}": course.weights for course in courses}
    return {"digest": digest_text(digests), "rows": rows, "reached": reached, "instances": []}


def _write_tables(
    context: Context, rows: list[dict[str, Any]], reached: list[dict[str, Any]], families: list[str]
) -> None:
    """progress.csv and reached.csv, a column for each family. Ranks: all call; rank 0 writes."""
    for name, columns, lines, key, one in (
        ("progress.csv", COLUMNS, rows, "ratios", "ratio"),
        ("reached.csv", REACHED_COLUMNS, reached, "kept", "kept"),
    ):
        more = {family: f"{one}_{family}" for family in families}
        flat = [
            {**line, **{text: line.get(key, {}).get(family) for family, text in more.items()}}
            for line in lines
        ]
        context.folder.write_csv(name, (*columns, *more.values()), flat)


def _variants(context: Context) -> dict[str, Case]:
    """The case of each training by its name. Raises CaseError where one of them could not begin."""
    found: dict[str, Case] = {}
    for text in context.case.study.variants:
        place = f"study.variants: {text}"
        name, settings = split_variant(text)
        refuse_keys(settings, ("study.alone", "study.stop", "graph.count"), place)
        if (name or text) in found:
            raise CaseError(f"study.variants: found {show(name or text)} twice; a name each would be right")
        case = found[name or text] = with_variant(context.case, settings, place)
        check_training(case, 1 if case.study.alone else context.group.size, place)
    return found


def _reached(context: Context, case: Case, course: Course) -> dict[str, Any]:
    """A course's line of the table."""
    ranks = 1 if case.study.alone else context.group.size
    return {"variant": course.variant, "seed": course.seed, "ranks": ranks, **course.reached()}


def _carried(
    context: Context, variants: dict[str, Case], reached: list[dict[str, Any]], base: int
) -> list[dict[str, Any]]:
    """The lines of those that arrived, on the ranks of study.counted. Ranks: all call.

    base   bytes of this process before it read a graph
    """
    if not context.case.study.counted:
        return []
    rates, found = calibration_of(context, "of the ranks", base), []
    for row in reached:
        for ranks in context.case.study.counted:
            case = msgspec.structs.replace(variants[row["variant"]], seed=row["seed"])
            line = counted_seconds(context, case, row, ranks, rates) if row["reached"] else None
            if line is not None:
                found.append({**line, "variant": f"{row['variant']}, {ranks} ranks by counts"})
    return found


def _targets(case: Case) -> dict[str, float]:
    """The ratio to reach in each family. Raises CaseError."""
    families, targets = case.study.families, case.study.targets
    if len(families) != len(targets):
        raise CaseError(f"study.targets: must be one for each of study.families, got {len(targets)}")
    if not case.graph.generator:
        makes = " and ".join(families)
        raise CaseError(f'graph.generator: "" makes no graphs to judge by; what makes {makes} would be right')
    known = dict.fromkeys(family_names(case.graph))
    if not set(families) <= set(known):
        raise CaseError(
            f"study.families: graph.generator makes {', '.join(known)}, got {', '.join(families)}"
        )
    return dict(zip(families, targets))


def _table(case: Case, count: int) -> GraphCase:
    return msgspec.structs.replace(case.graph, count=count)


def _references(context: Context) -> References:
    """What ratios are taken to. Ranks: all call."""
    case = context.case
    with context.log.phase("references"):
        graphs = generate_set(context.group, _table(case, case.study.graphs_per_size), 0, "test")
        return find_references(context.group, case, graphs)


def _tests(context: Context, references: References) -> Tests:
    """Graphs like those of [graph] that no training sees, dealt to the ranks. Ranks: all call."""
    group, table = context.group, _table(context.case, context.case.study.graphs_per_size)
    alone = replace(context, group=only_this_rank(context.device), folder=None)
    numbers = list(range(group.rank, table.count, group.size))
    with raise_together(group, "generating the test graphs"):
        graphs = generate_set(alone.group, table, 0, "test", numbers=numbers)
        problem = problem_of(context.case)
        blocks = [alone.state_rows(each, problem) for each in graphs]
    made = family_names(table)
    return Tests(group, blocks, [made[i % len(made)] for i in range(table.count)], references)


def _followed(context: Context, course: Course, references: References) -> list[Any]:
    """What a course tells of a training on all ranks, or on rank 0 while the others sleep.

    Ranks   all call; identical on all
    """
    if not context.case.study.alone or context.group.size == 1:
        _train(context, course, references)
        return [course.lines, course.kept, course.weights]
    with raise_together(context.group, "training"):
        first_alone(context.group, lambda: _train(context.alone(), course, references))
    told = context.group.broadcast_text(json.dumps([course.lines, course.kept, course.weights]), 0)
    return json.loads(told)


def _train(context: Context, course: Course, references: References) -> None:
    """One training, timed, with the ratios of the weights of each evaluation. Ranks: all call."""
    case, log, grid = context.case, context.log, context.grid()
    inner, problem, watch = context.within(grid), problem_of(case), Stopwatch(context.device)
    # Split however small the graphs are: that is what is measured; with parallel.spatial = 1 never.
    group = inner.group.alone() if case.parallel.spatial == 1 else inner.group
    with log.phase("read"), grid.together("reading"):
        blocks, held = (
            inner.state_rows_on(
                group, generate_set(inner.group, _table(case, count), case.seed, purpose), problem
            )
            for count, purpose in (
                (case.graph.count, "training"), (case.train.evaluate_graphs, "held-back"),
            )
        )  # fmt: skip
    grid = grid.unsplit() if group.size < inner.group.size else grid
    tests = _tests(context, references)
    net = QNetwork(case.policy, problem)
    params = Parameters(context.device, net.shapes())
    steps: list[float] = []  # gradient steps at each evaluation

    def snapshot(step: int, weights: dict[str, np.ndarray]) -> None:
        params.set(weights)
        line = {"variant": course.variant, "seed": course.seed, "step": step, "gradient_steps": steps[-1]}
        line |= {**_seconds(context.group, watch), "ratios": tests.ratios(net, params)}
        course.lines.append(line)
        log.progress("%s, seed %d: %s", course.variant, course.seed, _words(line))

    def enough() -> bool:
        return case.study.stop and course.meets(course.lines[-1]["ratios"])

    observers = Observers(
        lambda row: steps.append(row["gradient_steps"]), snapshot, enough=enough, watch=watch
    )
    with log.phase("train"):
        training = train_policy(grid.group, case, problem, blocks, held, observers, context.keeper, grid)
    params.set(training.weights)
    course.kept, course.weights = tests.ratios(net, params), digest(training.weights)
    end = course.reached()
    log.info(
        "%s, seed %d, %s: %s %s; kept weights of step %d: %s", course.variant, course.seed, grid,
        "reached at" if end["reached"] else "not reached by", _words(end), training.best_step,
        _shown(course.kept),
    )  # fmt: skip


def _seconds(group: Group, watch: Stopwatch) -> dict[str, float]:
    """Wall seconds of rank 0 so far, and processor's seconds of all ranks. Ranks: all call."""
    kinds = ("agent", "environment", "all")
    mine = np.array([watch.seconds.get(kind, 0.0) for kind in kinds])
    agent, environment, whole = group.broadcast(mine).tolist()
    spent = group.sum_integers(np.array([round(1e6 * watch.processor_s.get("all", 0.0))]))
    return {
        "agent_s": agent, "environment_s": environment, "seconds": whole, "processor_s": 1e-6 * int(spent[0]),
    }  # fmt: skip


# ---- what is said -----------------------------------------------------------------------------------------


def _shown(ratios: dict[str, float]) -> str:
    return ", ".join(f"{family} {ratio:.4f}" for family, ratio in ratios.items())


def _words(line: dict[str, Any]) -> str:
    """A line of a course in words."""
    return (
        f"step {line['step']}, {line['seconds']:.2f} s (agent {line['agent_s']:.2f}, environment "
        f"{line['environment_s']:.2f}), {line['processor_s']:.2f} CPU s, AAR {_shown(line['ratios'])}"
    )


def _say(context: Context, reached: list[dict[str, Any]], targets: dict[str, float]) -> None:
    """One line for each variant: medians over the seeds, with the least and the largest; and the paper's."""
    log = context.log
    log.info("time to AAR %s: median (least-largest) over the seeds", _shown(targets))
    table = [["variant", "reached", "total s", "agent s", "environment s", "CPU s"]]
    for name in dict.fromkeys(row["variant"] for row in reached):
        mine = [row for row in reached if row["variant"] == name]
        times = [_spread(mine, key) for key in ("seconds", "agent_s", "environment_s", "processor_s")]
        table.append([name, f"{sum(row['reached'] for row in mine)}/{len(mine)}", *times])
    log.table(table)
    if context.case.study.beside == "fig_4":
        log.info("RL4GO Fig. 4, AAR 1.01 on V100s: %s", "; ".join(FIG_4))
    elif context.case.study.beside == "table_3":
        for name, rows in TABLE_3.items():
            shown = "; ".join("agent {:g}, environment {:g}, total {:g}".format(*row) for row in rows)
            log.info("RL4GO Table 3, s to AAR 1.04 on 6 GPUs and on 96: %s: %s", name, shown)


def _spread(rows: list[dict[str, Any]], key: str) -> str:
    """Median and extremes of the trainings that arrived."""
    found = [row[key] for row in rows if row["reached"] and row[key] is not None]
    if not found:
        return "-"
    return f"{median(found):.2f} ({min(found):.2f}-{max(found):.2f})"


def _plot(context: Context, courses: list[Course], families: list[str]) -> None:
    """Ratio over seconds, a panel for each family, a line for each training of the first seed."""
    first = [course for course in courses if course.seed == courses[0].seed]
    panels = {
        f"{family}, seed {first[0].seed}, target {first[0].targets[family]}": {
            course.variant: (
                [line["seconds"] for line in course.lines], [line["ratios"][family] for line in course.lines]
            )
            for course in first
        }
        for family in families
    }  # fmt: skip
    y = ["mean approximation ratio"]
    plot_lines(context.folder, context.log, panels, "progress.png", "seconds of training", y)


def _plot_times(context: Context, reached: list[dict[str, Any]]) -> None:
    """Seconds to the targets of variants that got there: medians over seeds, half the range as error."""
    bars: dict[str, dict[str, tuple[float, float]]] = {}
    for row in (row for row in reached if row["reached"]):
        mine = [other for other in reached if other["variant"] == row["variant"] and other["reached"]]
        spans = {
            word: [each[key] for each in mine if each[key] is not None]
            for word, key in (("total", "seconds"), ("agent", "agent_s"), ("environment", "environment_s"))
        }
        bars[row["variant"]] = {
            word: (median(span), (max(span) - min(span)) / 2) for word, span in spans.items() if span
        }
    plot_bars(context.folder, context.log, bars, "times.png", "s to the target")
