"""Task study, kind learners: every learner with every model on every problem, beside a random policy.

RL4GO calls its design open to other learners, models and problems (sections 3.1 and 4.5); this table is what
that means here. A cell is trained on one rank, so ranks share the cells and no number depends on them.
"""

import json
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import msgspec
import numpy as np

from app.case.config import Case
from app.comm.group import Group
from app.comm.guard import digest, digest_text, raise_together
from app.errors import CaseError
from app.gnn.parameters import Parameters
from app.log import Log
from app.partition.generated import generate_set
from app.plots.charts import plot_bars
from app.problems.problem import Problem
from app.problems.table import make_problem
from app.rl.dynamics import begin_environment
from app.rl.env import step_together
from app.rl.learners import find_learner
from app.rl.qnet import QNetwork
from app.rl.rollout import judged, rolled_out_one_at_a_time
from app.rl.select import random_candidates
from app.rl.training import Observers, train_policy
from app.rng import stream
from app.sparse.rowblock import RowBlock
from app.tasks.context import Context
from app.tasks.studies.cells import cells_at_once
from app.tasks.studies.variants import refuse_conflicts, refuse_keys, split_variant, with_variant
from app.text import show, toml_value

PLAYS = 10  # of the random policy on each graph, of which the mean counts
NAMING = ("agent.learner", "policy.model")  # that no line of study.settings may change
ERRORS = 2.0  # standard errors by which a cell must be better than the random policy
COLUMNS = (
    "problem", "learner", "model", "policy", "random", "ratio", "standard_error", "won", "graphs", "beats",
    "untrained", "best_step", "cpu_s", "excluded",
)  # fmt: skip


@dataclass(frozen=True)
class Grounds:
    """The graphs of one problem: to train on, to choose the best weights by, to test on; and what a random
    policy makes of the last, [graphs]."""

    problem: Problem
    blocks: list[RowBlock]
    held_back: list[RowBlock]
    tests: list[RowBlock]
    random: np.ndarray


@dataclass(frozen=True)
class Cell:
    """One line of the table."""

    problem: str
    learner: str
    model: str

    @property
    def name(self) -> str:
        """The cell in words."""
        return f"{self.problem} {self.learner} {self.model}"


def run_learners(context: Context) -> dict[str, Any]:
    """Train and test every cell, dealt to the ranks. Ranks: all call; identical on all."""
    study, group, log = context.case.study, context.group, context.log
    cells = [Cell(*each) for each in product(study.problems, study.learners, study.embeddings)]
    _check_names(context.case, cells)
    alone = replace(context.alone(), log=Log(False))
    rows: list[dict[str, Any]] = []
    held: dict[str, Grounds] = {}
    for first in range(0, len(cells), group.size):
        turn = cells[first : first + group.size]
        with log.phase("train"):
            found = cells_at_once(
                context,
                [cell.name for cell in turn],
                lambda missing, turn=turn: _rows(group, alone, [turn[i] for i in missing], held),
            )
        for row in found:
            _say(context, row)
        rows += found
    _summary(context, rows)
    if context.folder is not None:
        context.folder.write_csv("learners.csv", COLUMNS, rows)
        if context.case.output.plots:
            _plot(context, rows)
    digests = {f"{row['problem']} {row['learner']} {row['model']}": row["weights"] for row in rows}
    return {"digest": digest_text(digests), "rows": rows, "instances": []}


def _check_names(case: Case, cells: list[Cell]) -> None:
    """Refuse names that no table knows before any training. Raises CaseError."""
    for cell in cells:
        make_problem(cell.problem)
        find_learner(cell.learner)
    for model in case.study.embeddings:
        with_variant(case, {"policy.model": toml_value(model)}, f"study.embeddings: {show(model)}")
    for text in case.study.settings:
        words, settings = split_variant(text)
        place = f"study.settings: {text}"
        refuse_keys(settings, ("graph", "study.graphs_per_size"), place)
        for key in NAMING:
            if key in settings:
                raise CaseError(f"{place}: {key} is what a cell is named by; its name alone would be right")
        with_variant(case, settings, place)
        for word in words.split():
            if not _is_known(case, word):
                right = "names of problems, learners and embeddings would be right"
                raise CaseError(f"study.settings: found {show(word)} in {show(text)}; {right}")


def _is_known(case: Case, word: str) -> bool:
    """Whether a word names a problem, a learner or a model: also one that has no cell."""
    for look in (
        make_problem,
        find_learner,
        lambda name: with_variant(case, {"policy.model": toml_value(name)}, ""),
    ):
        with suppress(CaseError):
            look(word)
            return True
    return False


def _rows(group: Group, alone: Context, cells: list[Cell], held: dict[str, Grounds]) -> list[dict[str, Any]]:
    """The lines of at most as many cells as there are ranks, each from the rank that trains it.

    held    see _row
    Ranks   all call
    """
    own = None
    with raise_together(group, "training"):
        if group.rank < len(cells):
            own = _row(alone, cells[group.rank], held)
    return [json.loads(group.broadcast_text(json.dumps(own), rank)) for rank in range(len(cells))]


def _row(alone: Context, cell: Cell, held: dict[str, Grounds]) -> dict[str, Any]:
    """The line of one cell.

    held   the graphs that this rank has had last, by `_makings`; those of the cell afterwards
    """
    case = _case_of(alone.case, cell)
    row = {"problem": cell.problem, "learner": cell.learner, "model": cell.model}
    try:
        refuse_conflicts(case, "study.settings")
        key = _makings(case)
        if key not in held:
            held.clear()
            held[key] = _grounds(replace(alone, case=case), cell.problem)
        return {**row, **_trained(replace(alone, case=case), held[key])}
    except CaseError as error:
        return {**row, "excluded": str(error), "beats": None, "weights": ""}


def _case_of(case: Case, cell: Cell) -> Case:
    """The case of one training: names of the cell, steps of the study, settings that fit it."""
    replaced = msgspec.structs.replace
    case = replaced(
        case,
        problem=replaced(case.problem, name=cell.problem),
        policy=replaced(case.policy, model=cell.model),
        agent=replaced(case.agent, learner=cell.learner),
        train=replaced(case.train, steps=case.study.steps),
    )
    for text in case.study.settings:
        words, settings = split_variant(text)
        if set(words.split()) <= {cell.problem, cell.learner, cell.model}:
            case = with_variant(case, settings, f"study.settings: {text}")
    return case


def _makings(case: Case) -> bytes:
    """All that decides the graphs of a cell and how they are held: cells that share it share them."""
    counts = case.study.graphs_per_size, case.train.evaluate_graphs
    return msgspec.json.encode((case.problem.name, case.graph, case.seed, counts, case.parallel))


def _grounds(context: Context, name: str) -> Grounds:
    """Graphs of [graph]; of tours points in the unit square, as many."""
    case, group, problem = context.case, context.group, make_problem(name)
    table = case.graph
    if problem.dynamics == "tour":
        table = msgspec.structs.replace(table, generator="uniform_points")

    def made(purpose: str, count: int) -> list[RowBlock]:
        graphs = msgspec.structs.replace(table, count=count)
        return [context.state_rows(each, problem) for each in generate_set(group, graphs, case.seed, purpose)]

    tests = made("test", case.study.graphs_per_size)
    plays = [_random_values(group, problem, tests, case.seed, play) for play in range(PLAYS)]
    held_back = made("held-back", case.train.evaluate_graphs)
    return Grounds(problem, made("training", table.count), held_back, tests, np.mean(plays, axis=0))


def _random_values(
    group: Group, problem: Problem, blocks: list[RowBlock], seed: int, play: int
) -> np.ndarray:
    """[graphs] objectives of a policy that chooses among the candidates at random. Ranks: all call."""
    draws = stream(seed, "random policy", play)
    envs = [begin_environment(group, block, problem) for block in blocks]
    active = [env for env in envs if not env.done]
    while active:
        picks = [int(draws.integers(env.totals.candidates)) for env in active]
        nodes = random_candidates(group, active, picks)
        step_together(group, active, [nodes[i : i + 1] for i in range(len(active))])
        active = [env for env in active if not env.done]
    return np.array([judged(env) for env in envs], dtype=np.float64)


def _trained(alone: Context, grounds: Grounds) -> dict[str, Any]:
    """Train one cell, and compare its best weights with the random policy on the unseen graphs."""
    group, begun, first = alone.group, time.process_time(), []
    observers = Observers(snapshot=lambda step, weights: None if first else first.append(weights))
    training = train_policy(
        group, alone.case, grounds.problem, grounds.blocks, grounds.held_back, observers, alone.keeper
    )
    seconds = time.process_time() - begun
    before = _values(group, training.net, first[0], grounds.tests)
    values = _values(group, training.net, training.weights, grounds.tests)
    return {
        **compared(values, grounds.random, grounds.problem.sense),
        "untrained": float(_ratios(before, grounds.random).mean()), "best_step": training.best_step,
        "cpu_s": round(seconds, 2), "excluded": "", "weights": digest(training.weights),
    }  # fmt: skip


def _values(
    group: Group, net: QNetwork, weights: dict[str, np.ndarray], blocks: list[RowBlock]
) -> np.ndarray:
    """[graphs] objectives of the greedy policy with some weights. Ranks: all call."""
    params = Parameters(group.device, net.shapes())
    params.set(weights)
    envs = rolled_out_one_at_a_time(group, net, params, blocks)
    return np.array([judged(env) for env in envs], dtype=np.float64)


def _ratios(values: np.ndarray, random: np.ndarray) -> np.ndarray:
    """[graphs] objectives over those of the random policy; 1 where both are the same, 0 of 0 too."""
    return np.where(values == random, 1.0, values / np.where(random == 0, 1.0, random))


def compared(values: np.ndarray, random: np.ndarray, sense: str) -> dict[str, Any]:
    """A policy's objectives [graphs] beside those of the random one: mean ratio, its error, the verdict."""
    ratios = _ratios(values, random)
    error = float(ratios.std(ddof=1) / np.sqrt(len(ratios))) if len(ratios) > 1 else 0.0
    better = ratios.mean() - 1 if sense == "maximise" else 1 - ratios.mean()
    won = ratios > 1 if sense == "maximise" else ratios < 1
    return {
        "policy": float(values.mean()), "random": float(random.mean()), "ratio": float(ratios.mean()),
        "standard_error": error, "won": int(won.sum()), "graphs": len(ratios),
        "beats": bool(better > ERRORS * error),
    }  # fmt: skip


# ---- what is said -----------------------------------------------------------------------------------------


def _say(context: Context, row: dict[str, Any]) -> None:
    """A cell in words."""
    name = f"{row['problem']} {row['learner']} {row['model']}"
    if row["excluded"]:
        context.log.info("%s: excluded: %s", name, row["excluded"])
        return
    verdict = "" if row["beats"] else ", NOT better than random"
    context.log.info(
        "%s: ratio to random %.4f +- %.4f (untrained %.4f, best step %d), better on %d of %d%s (%.1f CPU s)",
        name, row["ratio"], row["standard_error"], row["untrained"], row["best_step"], row["won"],
        row["graphs"], verdict, row["cpu_s"],
    )  # fmt: skip


def _summary(context: Context, rows: list[dict[str, Any]]) -> None:
    """The table with one line for each problem and learner, a column for each model."""
    study, log = context.case.study, context.log
    found = {(row["problem"], row["learner"], row["model"]): row for row in rows}
    log.info("objective on unseen graphs, policy / random:")
    table = [["learner", *study.embeddings]]
    for problem, learner in product(study.problems, study.learners):
        words = [_word(found[problem, learner, model]) for model in study.embeddings]
        table.append([f"{problem} {learner}", *words])
    log.table(table)
    beaten = sum(row["beats"] is True for row in rows)
    excluded = sum(bool(row["excluded"]) for row in rows)
    log.info(
        "%d of %d cells beat the random policy by %g standard errors, %d excluded", beaten, len(rows), ERRORS,
        excluded,
    )  # fmt: skip


def _word(row: dict[str, Any]) -> str:
    if row["excluded"]:
        return "excluded"
    return f"{row['ratio']:.4f}{'' if row['beats'] else ' (no)'}"


def _better(row: dict[str, Any]) -> float:
    """By what share of the random policy's objective a cell is better; below 0 where it is worse."""
    return row["ratio"] - 1 if make_problem(row["problem"]).sense == "maximise" else 1 - row["ratio"]


def _plot(context: Context, rows: list[dict[str, Any]]) -> None:
    """Bars of how much better than random each cell is, in percent."""
    bars: dict[str, dict[str, tuple[float, float]]] = {}
    for row in rows:
        if not row["excluded"]:
            group = bars.setdefault(f"{row['problem']} {row['learner']}", {})
            group[row["model"]] = (100 * _better(row), 200 * row["standard_error"])
    y = "better than the random policy, % of its objective"
    plot_bars(context.folder, context.log, bars, "learners.png", y)
