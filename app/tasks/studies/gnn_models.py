"""Task study, kinds models and depth: accuracy and time of an epoch by layer kind, or by depth and width.

Every line of the tables is a mean over seeds, all trained by the recipe of the data set. Depths and
widths are studied as in ROC section 7.5 (its Fig. 7).
"""

from functools import partial
from math import isfinite, isnan
from statistics import fmean, median, stdev
from typing import Any

import msgspec

from app.case.config import Case
from app.case.gnn import GnnCase
from app.case.study import StudyCase, split_settings
from app.comm.guard import digest, digest_text
from app.errors import CaseError
from app.gnn.classifier import Classifier
from app.gnn.model import check_layers
from app.plots.charts import plot_bars, plot_lines
from app.tasks.context import Context
from app.tasks.levels.nodes import BESIDE
from app.tasks.studies.cells import cell
from app.tasks.studies.gnn_subjects import (
    Subject,
    check_training,
    subjects,
    train,
    with_settings,
)
from app.text import show

MEASURED = (
    "score", "seeds", "epochs", "weights", "train_mean", "val_mean", "val_std", "test_mean", "test_std",
    *BESIDE, "macro_f1_mean", "rmse_mean", "epoch_cpu_ms",
)  # fmt: skip
COLUMNS = ("dataset", "model", *MEASURED, "recipe")
DEPTH_COLUMNS = ("dataset", "depth", "width", *MEASURED, "recipe")


def run_models(context: Context) -> dict[str, Any]:
    """Every layer kind on every data set. Ranks: all call."""
    rows, digests = [], {}
    case, models = context.case, context.case.study.models
    _refuse_doubled(models)
    for subject in subjects(context, lambda recipe: [_model(case, recipe, text) for text in models]):
        for text in models:
            name, gnn = _name(text), _model(case, subject.gnn, text)
            key = _key(subject, text)
            measured, digests[key] = cell(context, key, partial(measure, subject, gnn))
            rows.append({"dataset": subject.name, "model": name, **measured, "recipe": subject.recipe})
            _say(context, f"{subject.name} {name}", rows[-1])
            _write(context, "models.csv", COLUMNS, rows)
    if context.folder is not None and context.case.output.plots:
        _plot_models(context, rows)
    return {"digest": digest_text(digests), "rows": rows, "instances": []}


def run_depth(context: Context) -> dict[str, Any]:
    """Every depth and width on every data set. Ranks: all call."""
    rows, digests, study = [], {}, context.case.study
    for subject in subjects(context, lambda gnn: [_shaped(gnn, *shape) for shape in _shapes(study, gnn)]):
        for depth, width in _shapes(study, subject.gnn):
            gnn = _shaped(subject.gnn, depth, width)
            key = _key(subject, f"{depth} {width}")
            measured, digests[key] = cell(context, key, partial(measure, subject, gnn))
            shape = {"dataset": subject.name, "depth": depth, "width": width}
            rows.append({**shape, **measured, "recipe": subject.recipe})
            _say(context, f"{subject.name}, {depth} layers of {width}", rows[-1])
            _write(context, "depth.csv", DEPTH_COLUMNS, rows)
    if context.folder is not None and context.case.output.plots:
        _plot_depth(context, rows)
    return {"digest": digest_text(digests), "rows": rows, "instances": []}


def _shapes(study: StudyCase, recipe: GnnCase) -> list[tuple[int, int]]:
    """Depths and widths; one layer has no width (0), but before a readout."""
    least = 1 if recipe.level == "node" else 0
    return [(depth, width) for depth in study.depths for width in (study.widths if depth > least else [0])]


def _name(text: str) -> str:
    """What the table calls a layer kind with its settings."""
    kind, settings = split_settings(text)
    return " ".join([kind, *(f"{key}={value}" for key, value in settings.items())])


def _refuse_doubled(models: list[str]) -> None:
    """Refuse a layer kind that is there twice with the same settings. Raises CaseError."""
    found: list[tuple[str, dict[str, str]]] = []
    for text in models:
        model = split_settings(text)
        if model in found:
            raise CaseError(f"study.models: found {show(_name(text))} twice; each once would be right")
        found.append(model)


def _model(case: Case, recipe: GnnCase, text: str) -> GnnCase:
    """The recipe of a data set with a layer kind and its settings. Raises CaseError where it could not train,
    or a setting is read by no layer."""
    kind, settings = split_settings(text)
    place = f"study.models: {text}"
    for key in ("model", "layers"):
        if key in settings:
            raise CaseError(f"{place}: gnn.{key}: the first word says what the layers are; leave it out")
    if "level" in settings:
        raise CaseError(f"{place}: gnn.level: is of the data, not of a layer kind; leave it out")
    own = with_settings(GnnCase(depth=recipe.depth, level=recipe.level), {"model": kind, **settings}, place)
    try:
        check_layers(own)
    except CaseError as error:
        raise CaseError(f"{place}: {error}") from None
    gnn = with_settings(recipe, {"model": kind, **settings}, place)
    check_training(case, gnn, place)
    return gnn


def _shaped(recipe: GnnCase, depth: int, width: int) -> GnnCase:
    """The recipe of a data set with other layers; width 0: of no layer."""
    return msgspec.structs.replace(recipe, depth=depth, hidden=width or recipe.hidden)


def _key(subject: Subject, text: str) -> str:
    """The name of a cell: one data set may be there twice, with other settings or other seeds."""
    seeds = " ".join(map(str, subject.seeds))
    return f"{subject.name} {subject.recipe} {text}, seeds {seeds}"


def measure(subject: Subject, gnn: GnnCase) -> tuple[dict[str, Any], str]:
    """One training for each seed: means, sample standard deviations and each seed's scores; a digest of all
    weights. The scores are micro F1 (of one label for each node that is the accuracy), or R2 of numbers.

    Ranks   all call
    """
    main, second = ("r2", "rmse") if gnn.goal == "values" else ("micro_f1", "macro_f1")
    scores: dict[str, list[float]] = {name: [] for name in ("train", "val", "test", "second")}
    epochs, seconds, weights = [], [], {}
    for seed in subject.seeds:
        done = train(subject, gnn, seed)
        for name, each in done.scores.items():
            scores[name].append(getattr(each, main))
        scores["second"].append(getattr(done.scores["test"], second))
        epochs.append(done.fit.epochs)
        seconds.append(done.epoch_cpu_s)
        weights[str(seed)] = digest(done.fit.weights)
    size = done.classifier.params.size
    beside = {"macro_f1_mean": None, "rmse_mean": None, f"{second}_mean": _mean(scores["second"])}
    row = {
        "score": next(iter(done.classifier.goal.told)), "seeds": len(seconds), "epochs": max(epochs),
        "weights": size, "train_mean": _mean(scores["train"]),
        "val_mean": _mean(scores["val"]), "val_std": _deviation(scores["val"]),
        "test_mean": _mean(scores["test"]), "test_std": _deviation(scores["test"]),
        **_rounded(subject, done.classifier), **beside, "epoch_cpu_ms": round(1e3 * median(seconds), 2),
        "test": _known(scores["test"]), "val": _known(scores["val"]),
    }  # fmt: skip
    return row, digest_text(weights)


def _rounded(subject: Subject, classifier: Classifier) -> dict[str, float | None]:
    """The test scores of plain rules, which are the same for all seeds, to four digits. Ranks: all call."""
    found = subject.examples.plain_tests(classifier)
    return {name: None if score is None else round(score, 4) for name, score in found.items()}


def _known(values: list[float]) -> list[float]:
    """Those that are numbers: R2 of no nodes is none."""
    return [value for value in values if not isnan(value)]


def _mean(values: list[float]) -> float | None:
    """To four digits after the point; None of no value."""
    known = _known(values)
    return round(fmean(known), 4) if known else None


def _deviation(values: list[float]) -> float | None:
    """The sample standard deviation; None of a single value, and where one is beyond all numbers."""
    known = _known(values)
    return round(stdev(known), 4) if len(known) > 1 and all(map(isfinite, known)) else None


def _say(context: Context, name: str, row: dict[str, Any]) -> None:
    spread = "" if row["test_std"] is None else f" +- {row['test_std']:.4f}"
    test, validation = ("-" if row[key] is None else f"{row[key]:.4f}" for key in ("test_mean", "val_mean"))
    propagated = row["test_propagated"]
    plain = "" if propagated is None else f" (label propagation {propagated:.4f})"
    context.log.info(
        "%s: %s of test %s%s%s, validation %s, %.1f ms CPU an epoch (%d seeds, %d epochs, %d weights)",
        name, row["score"], test, spread, plain, validation, row["epoch_cpu_ms"], row["seeds"], row["epochs"],
        row["weights"],
    )  # fmt: skip


def _write(context: Context, name: str, columns: tuple[str, ...], rows: list[dict[str, Any]]) -> None:
    """The table so far: a study that is stopped leaves what it has. Ranks: all call."""
    if context.folder is not None:
        context.folder.write_csv(name, columns, rows)


def _plot_models(context: Context, rows: list[dict[str, Any]]) -> None:
    """Test accuracy by data set and model, with its standard deviation."""
    bars: dict[str, dict[str, tuple[float, float]]] = {}
    recipes = {(row["dataset"], row["recipe"]) for row in rows}
    names = [dataset for dataset, _ in recipes]
    for row in rows:  # a data set may be there twice, with other settings
        dataset = row["dataset"]
        several = names.count(dataset) > 1 and row["recipe"]
        bar = row["test_mean"] or 0.0, row["test_std"] or 0.0
        bars.setdefault(f"{dataset} {row['recipe']}" if several else dataset, {})[row["model"]] = bar
    lowest = max(0.0, min(row["test_mean"] or 0.0 for row in rows) - 0.1)
    plot_bars(context.folder, context.log, bars, "models.png", f"test: {_scores_of(rows)}", lowest)


def _scores_of(rows: list[dict[str, Any]]) -> str:
    """What the scores of a table are."""
    return " or ".join(dict.fromkeys(row["score"] for row in rows))


def _plot_depth(context: Context, rows: list[dict[str, Any]]) -> None:
    """Test accuracy and time of an epoch over the depth, a line for each width."""
    panels: dict[str, dict[str, tuple[list[float], list[float]]]] = {}
    axes = {"test_mean": f"test: {_scores_of(rows)}", "epoch_cpu_ms": "ms CPU an epoch"}
    widths = sorted({row["width"] for row in rows if row["width"]})
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        for key, label in axes.items():
            panel = panels.setdefault(f"{dataset}: {label}", {})
            for width in widths:
                shown = [row for row in rows if row["dataset"] == dataset and row["width"] in (0, width)]
                panel[f"width {width}"] = [row["depth"] for row in shown], [row[key] for row in shown]
    labels = list(axes.values()) * (len(panels) // 2)
    plot_lines(context.folder, context.log, panels, "depth.png", "layers", labels, "log")
