"""Task study, kind folds: cross-validation of the recipe of each data set, graph read once.

Source   Xu et al. 2019, section 7: ten folds of each set of TU Dortmund's collection, the epoch with the best
         mean over the folds; here that is told beside what the weights say that were kept (tasks/folds.py)
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from app.case.config import is_forecast
from app.comm.guard import digest_text
from app.plots.charts import plot_lines
from app.tasks.context import Context
from app.tasks.folds import LOST, columns_of, mean_curve, mean_lost, run_fold, summary
from app.tasks.levels.said import TOLD
from app.tasks.levels.whole import whole_where_small
from app.tasks.studies.cells import cells_at_once, measured
from app.tasks.studies.gnn_subjects import Subject, subject_of, subjects

SPLIT_WORDS = {"train": "training", "val": "validation", "test": "test"}


def run_folds(context: Context) -> dict[str, Any]:
    """Every fold of every data set and seed; of forecasts every origin. Ranks: all call."""
    if is_forecast(context.case):
        from app.tasks.studies.series_folds import run_origins  # of this level alone

        return run_origins(context)
    study, table, rows, digests, panels, columns = context.case.study, [], [], {}, {}, ()
    for subject in map(_where_small, subjects(context, splits=False)):
        for text in subject.examples.lacking_folds(subject.context.group, study.folds):
            context.log.info("warning: %s: %s", subject.name, text)
        about, found, curves, lost = {"dataset": subject.name, "recipe": subject.recipe}, [], [], []
        means = columns_of(subject.examples)
        columns = tuple(dict.fromkeys((*columns, *_columns(subject))))
        for seed in subject.seeds:
            for fold, (row, curve, learned, without) in enumerate(_folds(context, subject, seed)):
                found.append(about | {"seed": seed, "fold": fold} | row)
                curves.append(curve)
                lost.append(without)
                digests[f"{subject.name} {subject.recipe} {seed} {fold}"] = learned
                _write(context, columns, [*table, *found])
        rows.append(
            about | {"score": found[0]["score"], "folds": study.folds} | summary(found, curves, means)
        )
        if context.case.output.importance:
            rows[-1]["importance"] = mean_lost(lost)
            _tell_importance(context, subject, rows[-1]["importance"])
        table += [*found, *_lines_of(rows[-1], means)]
        panels[f"{subject.name} {subject.recipe}".strip()] = _lines_of_curves(curves)
        _say(context, rows[-1])
        _write(context, columns, table)
    if context.folder is not None and context.case.output.plots:
        scores = [f"mean {row['score']} over folds" for row in rows]
        plot_lines(context.folder, context.log, panels, "folds.png", "epoch", scores)
    folds = [row for row in table if isinstance(row["fold"], int)]
    return {"digest": digest_text(digests), "rows": rows, "folds": folds, "instances": []}


def _folds(context: Context, subject: Subject, seed: int) -> Iterator[list[Any]]:
    """(row, curve, digest of weights, importance) of each fold, each a cell of the study. Ranks: all call."""
    study = context.case.study
    drawn = subject.examples.folds(subject.context, seed, study.folds)
    held_back = 2 if study.fold_validation == "next" else 1

    def measure(fold: int) -> tuple[dict[str, Any], list[list[Any]], str, list[list[Any]]]:
        part = subject.of(subject.examples.of_fold(subject.context, drawn, fold, held_back))
        run = run_fold(subject.context, part.examples, part.classifier(subject.gnn, seed))
        return run.row, run.curve, run.weights, run.lost

    at_once = 1 if subject.context.alike is None else context.group.size
    for first in range(0, study.folds, at_once):
        turn = range(first, min(first + at_once, study.folds))
        keys = [f"{subject.name} {subject.recipe} seed {seed}, fold {fold} of {study.folds}" for fold in turn]
        yield from cells_at_once(context, keys, partial(measured, subject.context, measure, turn))


def _where_small(subject: Subject) -> Subject:
    """The subject; where it is too small to be split with the whole graph on every rank. Ranks: all call."""
    context, examples = whole_where_small(subject.context, subject.examples, None)
    if context.alike is None:
        return subject
    context = replace(context, keeper=context.keeper.apart(context.group))  # ranks train different folds
    small = subject_of(context, examples, subject.gnn, subject.seeds, subject.recipe, splits=False)
    return replace(small, name=subject.name)


def _columns(subject: Subject) -> tuple[str, ...]:
    """Of the table."""
    counted = (f"{name}_{subject.examples.counted}" for name in SPLIT_WORDS)
    return (
        "dataset", "seed", "fold", "score", *counted, "epochs", "best_epoch", *SPLIT_WORDS,
        *columns_of(subject.examples), "recipe",
    )  # fmt: skip


def _tell_importance(context: Context, subject: Subject, rows: list[dict[str, Any]]) -> None:
    """The mean importance of features over trainings: the first ones in the log, all in a file. Ranks: all
    call."""
    context.log.info("importance of features, means over the trainings that have left them out:")
    for row in rows[:TOLD]:
        shown = (f"{key.replace('_', ' ')} {row[key]:.4f}" for key in LOST[1:] if row[key] is not None)
        context.log.info("without %s: %s (%d trainings)", row["feature"], ", ".join(shown), row["trainings"])
    if context.folder is not None:
        name = f"{subject.name} {subject.recipe}".strip().replace("/", "_")
        context.folder.write_csv(f"importance/{name}.csv", ("feature", "trainings", *LOST), rows)


def _lines_of(row: dict[str, Any], means: tuple[str, ...]) -> list[dict[str, Any]]:
    """The lines of the table below a data set's folds: means and deviations, also at the best epoch."""
    about = {name: row[name] for name in ("dataset", "recipe", "score")}
    both = [
        about | {"fold": fold} | {name: row[f"{name}_{kind}"] for name in (*SPLIT_WORDS, *means)}
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


def _write(context: Context, columns: tuple[str, ...], rows: list[dict[str, Any]]) -> None:
    """The table so far: a study that is stopped leaves what it has. Ranks: all call."""
    if context.folder is not None:
        context.folder.write_csv("folds.csv", columns, rows)
