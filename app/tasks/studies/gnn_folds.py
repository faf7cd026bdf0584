"""Task study, kind folds: cross-validation of the recipe of each data set, graph read once.

Source   Xu et al. 2019, section 7: ten folds of each set of TU Dortmund's collection, the epoch with the best
         mean over the folds; here that is told beside what the weights say that were kept (tasks/folds.py)
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from app.case.gnn import GnnCase
from app.comm.guard import digest_text
from app.gnn.classifier import Classifier
from app.graphs.nodes.data import NodeData
from app.plots.charts import plot_lines
from app.tasks.context import Context
from app.tasks.folds import (
    BESIDE,
    MEASURES,
    draw_folds,
    lacking,
    mean_curve,
    run_fold,
    split_by_fold,
    summary,
)
from app.tasks.studies.cells import cell
from app.tasks.studies.gnn_subjects import Subject, subjects

SPLIT_WORDS = {"train": "training", "val": "validation", "test": "test"}
COLUMNS = (
    "dataset", "seed", "fold", "score", "train_nodes", "val_nodes", "test_nodes", "epochs", "best_epoch",
    "train", "val", "test", *BESIDE, *MEASURES, "recipe",
)  # fmt: skip


def run_folds(context: Context) -> dict[str, Any]:
    """Every fold of every data set and seed. Ranks: all call."""
    study, table, rows, digests, panels = context.case.study, [], [], {}, {}
    for subject in subjects(context, splits=False):
        for text in lacking(context.group, subject.data, study.folds):
            context.log.info("warning: %s: %s", subject.name, text)
        about, found, curves = {"dataset": subject.name, "recipe": subject.recipe}, [], []
        for seed in subject.seeds:
            for fold, (row, curve, learned) in enumerate(_folds(context, subject, seed)):
                found.append(about | {"seed": seed, "fold": fold} | row)
                curves.append(curve)
                digests[f"{subject.name} {subject.recipe} {seed} {fold}"] = learned
                _write(context, [*table, *found])
        rows.append(about | {"score": found[0]["score"], "folds": study.folds} | summary(found, curves))
        table += [*found, *_lines_of(rows[-1])]
        panels[f"{subject.name} {subject.recipe}".strip()] = _lines_of_curves(curves)
        _say(context, rows[-1])
        _write(context, table)
    if context.folder is not None and context.case.output.plots:
        scores = [f"mean {row['score']} over folds" for row in rows]
        plot_lines(context.folder, context.log, panels, "folds.png", "epoch", scores)
    folds = [row for row in table if isinstance(row["fold"], int)]
    return {"digest": digest_text(digests), "rows": rows, "folds": folds, "instances": []}


def _folds(context: Context, subject: Subject, seed: int) -> Iterator[list[Any]]:
    """(row, curve, digest of weights) of each fold, each a cell of the study. Ranks: all call."""
    study, group = context.case.study, context.group
    fold_own = draw_folds(group, subject.data, subject.loaded, seed, study.folds)
    held_back = 2 if study.fold_validation == "next" else 1

    def measure(fold: int) -> tuple[dict[str, Any], list[list[Any]], str]:
        data = split_by_fold(group, subject.data, fold_own, fold, held_back)
        run = run_fold(context, subject.gnn, data, seed, partial(_classifier, subject))
        return run.row, run.curve, run.weights

    for fold in range(study.folds):
        key = f"{subject.name} {subject.recipe} seed {seed}, fold {fold} of {study.folds}"
        yield cell(context, key, partial(measure, fold))


def _classifier(subject: Subject, gnn: GnnCase, data: NodeData, seed: int) -> Classifier:
    """A classifier of the subject's graph with other splits. Ranks: all call."""
    return replace(subject, data=data).classifier(gnn, seed)


def _lines_of(row: dict[str, Any]) -> list[dict[str, Any]]:
    """The lines of the table below a data set's folds: means and deviations, also at the best epoch."""
    about = {name: row[name] for name in ("dataset", "recipe", "score")}
    both = [
        about | {"fold": fold} | {name: row[f"{name}_{kind}"] for name in (*SPLIT_WORDS, *BESIDE, *MEASURES)}
        for fold, kind in (("mean", "mean"), ("deviation", "std"))
    ]
    at = {"epochs": row["best_mean_epoch"]}
    best = [
        about | {"fold": f"{fold} at the best mean epoch (optimistic)", **at, "test": row[key]}
        for fold, key in (("mean", "test_at_best_mean_epoch"), ("deviation", "test_at_best_mean_epoch_std"))
    ]
    return both + best


def _lines_of_curves(curves: list[list[list[Any]]]) -> dict[str, tuple[list[int], list[float]]]:
    return {SPLIT_WORDS[name]: line for name, line in mean_curve(curves).items()}


def _say(context: Context, row: dict[str, Any]) -> None:
    """A data set's line in the log."""
    context.log.info(
        "%s: %s of %d folds: %s; at epoch %s, whose mean over folds is best (optimistic): %s",
        row["dataset"], row["score"], row["folds"], _with_deviation(row["test_mean"], row["test_std"]),
        row["best_mean_epoch"],
        _with_deviation(row["test_at_best_mean_epoch"], row["test_at_best_mean_epoch_std"]),
    )  # fmt: skip


def _with_deviation(mean: float | None, deviation: float | None) -> str:
    if mean is None:
        return "-"
    return f"{mean:.4f}" + ("" if deviation is None else f" +- {deviation:.4f}")


def _write(context: Context, rows: list[dict[str, Any]]) -> None:
    """The table so far: a study that is stopped leaves what it has. Ranks: all call."""
    if context.folder is not None:
        context.folder.write_csv("folds.csv", COLUMNS, rows)
