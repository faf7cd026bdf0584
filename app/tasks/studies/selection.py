"""Task study, kind selection: several nodes by one evaluation of the policy (RL4GO section 7.4, Fig. 6).

Each rule of [select] solves each graph twice: with every state evaluated in full, as the paper does it, and
with scores that follow the selections (app/rl/incremental.py). Both must choose the same nodes; their times
differ, and only the first ones compare with the paper's.
"""

import time
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from app.case.graph import GraphCase
from app.comm.guard import digest_text, raise_together
from app.errors import CaseError, LockstepError
from app.model.plan import graph_case
from app.partition.generated import generate_set
from app.partition.loaded import Loaded
from app.plots.charts import plot_lines
from app.problems.table import problem_of
from app.rl.rollout import Rollout, roll_out
from app.rl.rules import find_rule
from app.sparse.rowblock import RowBlock
from app.tasks.context import Context
from app.tasks.policy import Policy, find_policy
from app.tasks.studies.cells import cell

COLUMNS = (
    "graph", "rule", "graphs", "edges", "cover", "cover_ratio", "evaluations", "evaluations_ratio", "full_s",
    "full_ratio", "following_s", "following_ratio", "paper_ratio", "paper_cover_ratio",
)  # fmt: skip
# RL4GO section 7.4, 6 GPUs: seconds one at a time, seconds with 8/4/2/1 nodes, time ratio; covers: 1.00 each.
PAPER = {
    "er:450:0.15": (7.9, 2.7, 2.9), "er:3600:0.15": (265.6, 65.5, 4.1), "er:7200:0.15": (2473.1, 631.4, 3.9),
    "ba:14400:4": (None, None, 3.6),
}  # fmt: skip


@dataclass(frozen=True)
class Rule:
    """A rule of [select] with its fraction."""

    text: str
    name: str
    fraction: float


def run_selection(context: Context) -> dict[str, Any]:
    """Every rule on every graph. Ranks: all call; identical on all, apart from times."""
    study, log = context.case.study, context.log
    if problem_of(context.case).dynamics != "residual":
        raise CaseError("problem.name: the study of selection knows mvc, mis and clique")
    rules = [read_rule(text) for text in ["single", *study.rules]]
    tables = {text: graph_case(text) for text in study.measured}
    policy = find_policy(context)
    log.info("weights %s; times are seconds of the processor of rank 0", policy.digest[:12])
    rows, digests = [], {}
    for text, table in tables.items():
        found = _graphs(context, table)
        one: dict[str, Any] | None = None
        for rule in rules:
            make = partial(_row, context, policy, text, found, rule, one)
            row = cell(context, f"{text} {rule.text}", make)
            one = one or row
            digests[f"{text} {rule.text}"] = row.pop("digest")
            rows.append(row)
            _say(context, row)
    _table(context, rows)
    if context.folder is not None:
        context.folder.write_csv("selection.csv", COLUMNS, rows)
        if context.case.output.plots:
            _plot(context, rows)
    return {"digest": digest_text(digests), "rows": rows, "instances": []}


def read_rule(text: str) -> Rule:
    """A rule from "NAME" or "NAME FRACTION". Raises CaseError."""
    name, *share = text.split()
    find_rule(name)
    try:
        fraction = float(share[0]) if share else 1.0
    except ValueError:
        fraction = 0.0
    if len(share) > 1 or not 0 < fraction <= 1 or (name == "fraction") != bool(share):
        right = 'the name of a rule, "fraction" with a share from 0 to 1 behind it'
        raise CaseError(f"study.rules: must be {right}, got {text!r}")
    return Rule(text, name, fraction)


def _graphs(context: Context, table: GraphCase) -> list[tuple[Loaded, RowBlock]]:
    """A graph for each seed of the study. Ranks: all call."""
    found, problem = [], problem_of(context.case)
    for seed in context.case.study.seeds:
        (loaded,) = generate_set(context.group, table, seed, "instances")
        found.append((loaded, context.state_rows(loaded, problem)))
    return found


def _row(
    context: Context, policy: Policy, text: str, graphs: list[tuple[Loaded, RowBlock]], rule: Rule,
    one: dict[str, Any] | None,
) -> dict[str, Any]:  # fmt: skip
    """One rule on the graphs of one size: sums over them; full evaluations are timed on the first.

    one   the line of one node at a time
    """
    rollouts, seconds = [], []
    for loaded, block in graphs:
        rollout, taken = _solve(context, policy, block, rule, full=False)
        _check(context, loaded, rollout)
        rollouts.append(rollout)
        seconds.append(taken)
    again, full = _solve(context, policy, graphs[0][1], rule, full=True)
    if not np.array_equal(again.chosen_at_own, rollouts[0].chosen_at_own):
        raise LockstepError(f"{text}, {rule.text}: scores that follow chose other nodes than full ones")
    row: dict[str, Any] = {
        "graph": text, "rule": rule.text, "graphs": len(graphs), "edges": graphs[0][0].graph.edges,
        "cover": sum(each.objective for each in rollouts),
        "evaluations": sum(each.evaluations for each in rollouts), "full_s": full,
        "following_s": seconds[0], "digest": str([each.objective for each in rollouts]),
    }  # fmt: skip
    one = one or row
    paper = PAPER.get(text) if rule.name == "adaptive" else None
    return {
        **row, "cover_ratio": _over(row["cover"], one["cover"]),
        "evaluations_ratio": _over(one["evaluations"], row["evaluations"]),
        "full_ratio": one["full_s"] / max(full, 1e-9),
        "following_ratio": one["following_s"] / max(seconds[0], 1e-9),
        "paper_ratio": paper[2] if paper else None, "paper_cover_ratio": 1.0 if paper else None,
    }  # fmt: skip


def _over(first: int, second: int) -> float:
    """A ratio; of graphs without edges, which need no node and no evaluation, 1."""
    return first / second if second else 1.0


def _solve(
    context: Context, policy: Policy, block: RowBlock, rule: Rule, full: bool
) -> tuple[Rollout, float]:
    """One solution, nothing dropped; seconds of rank 0's processor, waiting for others included."""
    group = context.group
    group.barrier()
    begun = time.process_time()
    with context.log.phase("full" if full else "following"):
        rollout = roll_out(group, policy.net, policy.params, block, rule.name, rule.fraction, full=full)
        group.barrier()
    return rollout, float(group.broadcast(np.array([time.process_time() - begun]))[0])


def _check(context: Context, loaded: Loaded, rollout: Rollout) -> None:
    """Every rank checks its rows of the solution. Ranks: all call."""
    counts = loaded.rows.row_counts()
    solution = context.group.gather_host(rollout.solution_own.astype(np.uint8), counts).astype(bool)
    with raise_together(context.group, "checking the solution"):
        wrong = rollout.problem.violation(loaded.graph, solution)
        if wrong is not None:
            raise LockstepError(f"{loaded.graph.name}: the {rollout.problem.solution} {wrong}")


# ---- what is said -----------------------------------------------------------------------------------------


def _say(context: Context, row: dict[str, Any]) -> None:
    """A rule on the graphs of one size."""
    context.log.info(
        "%s, %s: cover %d, %d evaluations, full %.2f s, following %.3f s",
        row["graph"], row["rule"], row["cover"], row["evaluations"], row["full_s"], row["following_s"],
    )  # fmt: skip


def _table(context: Context, rows: list[dict[str, Any]]) -> None:
    """Every rule beside one node at a time; RL4GO's times faster, of full evaluations, at a ratio of 1.00."""
    table = [[
        "graph, rule", "cover", "ratio", "evaluations", "times fewer", "full s", "times faster",
        "following s", "times faster", "RL4GO times faster",
    ]]  # fmt: skip
    for row in rows:
        table.append([
            f"{row['graph']} {row['rule']}", str(row["cover"]), f"{row['cover_ratio']:.4f}",
            str(row["evaluations"]), f"{row['evaluations_ratio']:.1f}", f"{row['full_s']:.2f}",
            f"{row['full_ratio']:.1f}", f"{row['following_s']:.3f}", f"{row['following_ratio']:.1f}",
            f"{row['paper_ratio']:g}" if row["paper_ratio"] else "-",
        ])  # fmt: skip
    context.log.table(table)


def _plot(context: Context, rows: list[dict[str, Any]]) -> None:
    """Seconds of full evaluations over nodes, and covers beside one at a time, for each family and rule."""
    panels: dict[str, dict[str, tuple[list[float], list[float]]]] = {}
    for key, words in (("full_ratio", "times faster"), ("cover_ratio", "cover / one at a time")):
        for row in rows:
            family, nodes, _ = row["graph"].split(":")
            line = panels.setdefault(f"{family.upper()}: {words}", {}).setdefault(row["rule"], ([], []))
            line[0].append(int(nodes))
            line[1].append(row[key])
            if key == "full_ratio" and row["paper_ratio"]:
                paper = panels[f"{family.upper()}: {words}"].setdefault("adaptive, RL4GO", ([], []))
                paper[0].append(int(nodes))
                paper[1].append(row["paper_ratio"])
    names = list(panels)
    plot_lines(context.folder, context.log, panels, "selection.png", "nodes", names, scale="log")
