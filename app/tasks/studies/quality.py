"""Study of quality: RL4GO Fig. 3, mean approximation ratio on unseen graphs over steps."""

import os
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import msgspec
import numpy as np

from app.case.config import Case
from app.case.graph import GraphCase
from app.comm.grid import cut_grid
from app.comm.guard import digest, digest_text, raise_together
from app.errors import CaseError
from app.gnn.parameters import Parameters
from app.graphs.formats.memory import stream_of
from app.graphs.formats.readers import open_graph_set
from app.graphs.graph import Graph
from app.graphs.keys import sorted_set
from app.partition.generated import generate_set, share_blocks, with_shared_blocks
from app.partition.loaded import Loaded
from app.plots.runs import plot_quality
from app.problems.problem import Problem
from app.problems.table import problem_of
from app.recipes import find_recipe
from app.rl.qnet import QNetwork
from app.rl.rollout import rolled_out_one_at_a_time
from app.rl.training import Observers, Training, train_policy
from app.rl.weights import save_weights
from app.sparse.rowblock import RowBlock
from app.tasks.compare import compare_graphs
from app.tasks.context import Context
from app.tasks.studies.cells import cell
from app.tasks.studies.references import find_references, ratios_to
from app.tasks.train import rows_to_learn_on

TRAINING_GRAPHS = 300
TRAINING_NODES = (50, 100)


@dataclass(frozen=True)
class TestSet:
    """Unseen graphs of one family, and the reference each ratio is taken to.

    blocks   of the graphs that are dealt to this rank, whole: numbers rank, rank + size, ...
    """

    family: str
    graphs: list[Loaded]
    blocks: list[RowBlock]
    reference: np.ndarray
    source: str
    problem: Problem


def run_quality(context: Context) -> dict[str, Any]:
    """Train each recipe on each family with each seed, test on unseen graphs. Ranks: all call."""
    study, log = context.case.study, context.log
    _check(context.case)
    rows, curves, lines, digests = [], {}, {}, {}
    for family in study.families:
        tests = _test_set(context, family)
        baselines = compare_graphs(context, tests.graphs)
        means = {label: mean_ratio(ratios(tests, np.array(v))) for label, v in baselines.items()}
        lines[family] = {label: mean for label, mean in means.items() if mean is not None}
        log.info("%s: %d test graphs, ratios to %s", family, len(tests.graphs), tests.source)
        for label, values in baselines.items():
            rows.append(_row(tests, label, "", np.array(values)))
        curves[family] = {}
        for recipe in study.recipes:
            curves[family][recipe] = []
            for seed in study.seeds:
                name = f"{family}/{recipe}/{seed}"
                make = partial(_train_and_test, context, tests, recipe, seed)
                sizes, curve, digests[name] = cell(context, name, make)
                curves[family][recipe].append(curve)
                rows.append(_row(tests, f"learned, {recipe}", seed, np.array(sizes)))
                log.info("%s, recipe %s, seed %d: AAR %s", family, recipe, seed, _shown(rows[-1]["ratio"]))
    _print_table(context, rows)
    if context.folder is not None:
        context.folder.write_json("quality.json", {"rows": rows, "curves": curves})
        if context.case.output.plots:
            plot_quality(context.folder, log, curves, lines)
    return {"digest": digest_text(digests), "rows": rows, "instances": []}


def _check(case: Case) -> None:
    """Refuse what would fail after the first trainings. Raises CaseError."""
    problem = problem_of(case)
    if problem.dynamics == "tour":
        right = "mvc, mis, clique, mds, maxcut or maxcut_once would be right"
        raise CaseError(f"problem.name: the study's families, er and ba, have no distances; {right}")
    for recipe in case.study.recipes:
        QNetwork(recipe_case(case, recipe, case.seed, 1).policy, problem)


def recipe_case(case: Case, recipe: str, seed: int, steps: int) -> Case:
    """The case of one training: the recipe's policy and agent, the study's steps."""
    policy, agent = find_recipe(recipe)
    train = msgspec.structs.replace(case.train, steps=steps)
    return msgspec.structs.replace(case, seed=seed, policy=policy, agent=agent, train=train)


def _train_and_test(
    context: Context, tests: TestSet, recipe: str, seed: int
) -> tuple[list[float], tuple[list[int], list[float]], str]:
    """Objectives of the best weights, ratios over steps, digest of the weights. Ranks: all call."""
    study, group, problem = context.case.study, context.group, problem_of(context.case)
    case = recipe_case(context.case, recipe, seed, study.steps)
    table = family_table(tests.family, TRAINING_NODES, TRAINING_GRAPHS)
    held_table = msgspec.structs.replace(table, count=case.train.evaluate_graphs)
    with context.log.phase("read"):
        made = (
            generate_set(group, table, seed, "training"),
            generate_set(group, held_table, seed, "held-back"),
        )
        group, blocks, held = rows_to_learn_on(replace(context, case=case), problem, *made)
    grid = cut_grid(context.group, case.parallel.data, 1)
    grid = grid.unsplit() if group is not context.group else grid
    snapshots: list[tuple[int, dict[str, np.ndarray]]] = []
    name = f"{tests.family}/{recipe}/{seed}"

    def record(row: dict[str, Any]) -> None:
        context.log.record(phase="train", name=name, **row)
        context.log.progress(
            "%s: step %d, held-back %s %d", name, row["step"], problem.solution, row["held_back_nodes"]
        )

    observers = Observers(record, lambda step, weights: snapshots.append((step, weights)))
    with context.log.phase("train"):
        training = train_policy(group, case, problem, blocks, held, observers, context.keeper, grid)
    with context.log.phase("test"):
        found = [
            mean_ratio(ratios(tests, _solution_sizes(context, training.net, weights, tests)))
            for _, weights in snapshots
        ]
        sizes = _solution_sizes(context, training.net, training.weights, tests)
    _save(context, training, case, name)
    return sizes.tolist(), ([step for step, _ in snapshots], found), digest(training.weights)


def _save(context: Context, training: Training, case: Case, name: str) -> None:
    """Keep the weights of every training of the study."""
    if context.folder is not None and context.group.rank == 0:
        path = context.folder.file(f"weights-{name.replace('/', '-')}.npz")
        save_weights(path, training.weights, case.policy, case.problem.name, f"study {name}")


def _solution_sizes(
    context: Context, net: QNetwork, weights: dict[str, np.ndarray], tests: TestSet
) -> np.ndarray:
    """Objectives of the policy alone: one node at a time, nothing dropped afterwards. Ranks: all call."""
    params, group = Parameters(context.device, net.shapes()), context.group
    params.set(weights)
    values = np.zeros(len(tests.graphs), dtype=np.int64)
    with raise_together(group, "testing"):
        envs = rolled_out_one_at_a_time(group.alone(), net, params, tests.blocks)
        values[group.rank :: group.size] = [net.problem.objective(env.chosen, env.totals) for env in envs]
    return group.sum_integers(values)


def family_table(family: str, nodes: int | tuple[int, int], count: int) -> GraphCase:
    """Graphs of the paper's two families: ER p=.15 and BA d=4 (RL4GO section 7.2)."""
    if family not in ("er", "ba"):
        raise CaseError(f"study.families: unknown family {family!r}; known: ba, er")
    return GraphCase(generator=family, nodes=nodes, count=count, p=0.15, d=4)


def _test_set(context: Context, family: str) -> TestSet:
    """The graphs of FAMILY.npz in the data folder with their optima, else generated ones."""
    study, group, problem = context.case.study, context.group, problem_of(context.case)
    path = os.path.join(context.case.study.data, f"{family}.npz")
    found = group.rank == 0 and problem.known and bool(context.case.study.data) and os.path.isfile(path)
    if group.max_integer(int(found)):
        graphs, covers = _read_set(context, path)
        best = np.array([problem.bound(g.graph.n, int(c)) for g, c in zip(graphs, covers)])
        source = f"the best known covers of {os.path.basename(path)}"
    else:
        if context.case.study.data:
            why = f"no such file: {path}" if problem.known else f"known covers say nothing of {problem.name}"
            context.log.info("%s: the test graphs are generated: %s", family, why)
        graphs = []
        for size in study.sizes:
            graphs += generate_set(group, family_table(family, size, study.graphs_per_size), size, "test")
        graphs = with_shared_blocks(group, graphs)
        references = find_references(group, context.case, graphs)
        best, source = references.values, references.words()
    graphs_kept = [i for i, g in enumerate(graphs) if g.graph.n in study.sizes]
    kept = [graphs[i] for i in graphs_kept]
    if not kept:
        raise CaseError(f"study.sizes: none of the test graphs has one of {study.sizes} nodes")
    blocks = context.state_rows_on(group.alone(), kept, problem)[group.rank :: group.size]
    return TestSet(family, kept, blocks, np.asarray(best)[graphs_kept], source, problem)


def _read_set(context: Context, path: str) -> tuple[list[Loaded], np.ndarray]:
    """A set of small graphs from an .npz, dealt out like generated ones. Ranks: all call."""
    group = context.group
    graphs: list[Graph] = []
    best: list[int | None] = []
    with raise_together(group, f"reading {path}"):
        if group.rank == 0:
            graphs, best = open_graph_set(path)
            if not graphs or any(value is None for value in best):
                raise CaseError(f"{path}: holds no best_cover; the study needs it")
    count, largest = group.max_integers(
        np.array([len(graphs), max((g.n for g in graphs), default=0)])
    ).tolist()
    makers = [partial(stream_of, graphs[i]) if group.rank == 0 else dict for i in range(count)]
    covers = np.array(best if group.rank == 0 else [0] * count, dtype=np.int64)
    return share_blocks(group, largest, makers), group.broadcast(covers)


def ratios(tests: TestSet, values: np.ndarray) -> np.ndarray:
    """Approximation ratios of objectives [graphs], from 1 for the reference upwards; their mean is the AAR of
    RL4GO section 7.2."""
    return ratios_to(tests.reference, values, tests.problem.sense)


def mean_ratio(found: np.ndarray) -> float | None:
    """The mean of some ratios; None where one is infinite: of a value 0 where more is possible."""
    mean = float(found.mean())
    return mean if np.isfinite(mean) else None


def _rounded(ratio: float | None) -> float | None:
    return None if ratio is None else round(ratio, 5)


def _shown(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.4f}"


def _row(tests: TestSet, label: str, seed: int | str, sizes: np.ndarray) -> dict[str, Any]:
    """One line of the table: AAR, AAR by size, and of covers the ratio of the independent sets n - |C|."""
    nodes, found = np.array([g.graph.n for g in tests.graphs]), ratios(tests, sizes)
    by_size = {int(n): _rounded(mean_ratio(found[nodes == n])) for n in sorted_set(nodes)}
    row = {
        "family": tests.family, "policy": label, "seed": seed, "ratio": _rounded(mean_ratio(found)),
        "by_nodes": by_size,
    }  # fmt: skip
    if tests.problem.name == "mvc":
        left = ratios_to(nodes - tests.reference, nodes - sizes, "minimise")
        row["independent_set_ratio"] = _rounded(mean_ratio(left))
    return row


def _print_table(context: Context, rows: list[dict[str, Any]]) -> None:
    """AAR of each policy, of all graphs and by their nodes: of one seed, or of a rule that has none."""
    sizes = sorted({n for row in rows for n in row["by_nodes"]})
    covers = all("independent_set_ratio" in row for row in rows)
    table = [["policy", "AAR", *(f"n={n}" for n in sizes), *(["IS ratio"] if covers else [])]]
    for row in rows:
        name = f"{row['family']} {row['policy']} {row['seed']}".rstrip()
        parts = [row["by_nodes"].get(n) for n in sizes]
        shown = [row["ratio"], *parts, *([row["independent_set_ratio"]] if covers else [])]
        table.append([name, *map(_shown, shown)])
    context.log.table(table)
