"""Task study, kind strong_scaling: speedups of steps beside those of RL4GO section 7.5 (Fig. 7).

A step of inference is one evaluation of the policy and its choice, a step of training one gradient step on
states told again from the replay memory; both take one rank and all running ranks by turns, and the model of
app/model/ follows them to as many ranks as the paper had GPUs.
"""

import os
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from app.errors import CaseError
from app.memory.room import resident_bytes
from app.tasks.context import Context
from app.tasks.studies.scaling import data_path, digest_of, follow_scaling, write_curves
from app.tasks.studies.variants import split_variant, with_variant
from app.text import show

COLUMNS = (
    "graph", "paper_graph", "step", "from_ranks", "to_ranks", "from_s", "to_s", "speedup", "counts",
    "measured_ranks", "measured_speedup", "paper_from_s", "paper_to_s", "paper_speedup",
)  # fmt: skip


@dataclass(frozen=True)
class Paper:
    """What the paper states of a graph: speedups of a step of inference and of training, and their seconds.

    graph     the paper's (SNAP)
    here      names that stand beside it: of a generator with its parameters, or of files without endings, the
              graph itself or one of its kind
    """

    graph: str
    here: tuple[str, ...]
    ranks: tuple[int, int]
    inference: float
    training: float
    inference_s: tuple[float, float] | None = None
    training_s: tuple[float, float] | None = None


PAPER = (
    Paper("ER 19,200", ("er:19200:0.15",), (6, 192), 54.5, 31.3, (10.9, 0.2), (96.9, 3.2)),
    Paper("ER 24,000", ("er:24000:0.15",), (6, 192), 48.0, 32.1, (19.2, 0.4), (151.0, 4.7)),
    Paper("Twitter", ("ego-Twitter-undirected", "twitter_combined"), (1, 24), 25.6, 8.0),
    Paper("Berkeley & Stanford", ("web-BerkStan", "web-NotreDame"), (1, 24), 26.0, 16.1),
    Paper("Amazon", ("amazon0601", "amazon0312", "amazon0505"), (1, 24), 23.5, 16.3),
)


def run_strong_scaling(context: Context) -> dict[str, Any]:
    """Every variant measured and followed, its speedups beside the paper's. Ranks: all call."""
    curves, measured, digests, titles, base = [], [], {}, [], resident_bytes()
    _refuse_doubled(context.case.study.variants)
    for text in context.case.study.variants:
        name, settings = split_variant(text)
        case = with_variant(context.case, settings, f"study.variants: {text}")
        part = _there(replace(context, case=case))
        if not part.case.study.measured:
            continue
        context.log.info("%s:", name)
        found = follow_scaling(part, base, name=text)
        curves += found.curves
        measured += found.measured
        digests |= {f"{name} {step}": each for step, each in found.digests.items()}
        titles.append(found.title)
    rows = speedups(curves)
    for row in rows:
        _say(context, row)
    if context.folder is not None:
        context.folder.write_csv("speedups.csv", COLUMNS, rows)
        write_curves(context, curves, titles[-1] if titles else "")
    return {
        "digest": digest_of(digests), "measured": measured, "curves": curves, "rows": rows, "instances": [],
    }  # fmt: skip


def _refuse_doubled(variants: list[str]) -> None:
    """Refuse two variants of one name, which lines and digests go by. Raises CaseError."""
    names = [split_variant(text)[0] for text in variants]
    for name in names:
        if names.count(name) > 1:
            raise CaseError(f"study.variants: found {show(name)} twice; a name for each would be right")


def _there(context: Context) -> Context:
    """Without the files that are not there, each with a line in the log. Ranks: all call."""
    study, kept = context.case.study, []
    for text in study.measured:
        path = data_path(context, text)
        found = context.group.rank == 0 and (path is None or os.path.isfile(path))
        if context.group.max_integer(int(found)):
            kept.append(text)
        else:
            context.log.info("%s: left out, no such file: set LOCKSTEP_DATA to the folder of the data", text)
    study = msgspec.structs.replace(study, measured=kept)
    return replace(context, case=msgspec.structs.replace(context.case, study=study))


def speedups(curves: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A line for each step of each graph that the paper has, where its numbers of ranks were followed.

    curves   lines with graph, step, ranks, seconds, counts, measured_s ("": not measured)
    """
    at = {(row["graph"], row["step"], row["ranks"]): row for row in curves}
    lines = dict.fromkeys((row["graph"], row["step"]) for row in curves)
    rows = []
    for paper in PAPER:
        for graph, step in (each for each in lines if short_name(each[0]) in paper.here):
            ends = [at.get((graph, step, ranks)) for ranks in paper.ranks]
            if None in ends:
                continue
            inference = step == "evaluation"
            stated = (paper.inference_s if inference else paper.training_s) or (None, None)
            rows.append(
                {
                    "graph": graph, "paper_graph": paper.graph, "step": step,
                    "from_ranks": paper.ranks[0], "to_ranks": paper.ranks[1], "from_s": ends[0]["seconds"],
                    "to_s": ends[1]["seconds"], "speedup": ends[0]["seconds"] / ends[1]["seconds"],
                    "counts": ends[0]["counts"], **_measured(curves, graph, step),
                    "paper_from_s": stated[0], "paper_to_s": stated[1],
                    "paper_speedup": paper.inference if inference else paper.training,
                }
            )  # fmt: skip
    return rows


def short_name(graph: str) -> str:
    """A file's name without folders and endings; that of a generated graph as it is."""
    return graph if ":" in graph else os.path.basename(graph).partition(".")[0]


def _measured(curves: list[dict[str, Any]], graph: str, step: str) -> dict[str, Any]:
    """The speedup that was measured from one rank to all, where it was."""
    seconds = {
        row["ranks"]: row["measured_s"]
        for row in curves
        if (row["graph"], row["step"]) == (graph, step) and row["measured_s"] != ""
    }
    most = max(seconds, default=0)
    if 1 not in seconds or most == 1:
        return {"measured_ranks": None, "measured_speedup": None}
    return {"measured_ranks": most, "measured_speedup": seconds[1] / seconds[most]}


def _say(context: Context, row: dict[str, Any]) -> None:
    """One line: ours beside the paper's."""
    measured = "not measured"
    if row["measured_ranks"]:
        measured = f"{row['measured_speedup']:.2f} measured on {row['measured_ranks']}"
    stated = ""
    if row["paper_from_s"]:
        stated = f", {row['paper_from_s']:g} s to {row['paper_to_s']:g} s"
    context.log.info(
        "%s, %s: %s; from %d to %d ranks %.1f times faster by the model (%.4g s to %.4g s, %s counts); "
        "RL4GO, %s: %.1f times%s",
        row["graph"], row["step"], measured, row["from_ranks"], row["to_ranks"], row["speedup"],
        row["from_s"], row["to_s"], row["counts"], row["paper_graph"], row["paper_speedup"], stated,
    )  # fmt: skip
