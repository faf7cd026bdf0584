"""Rules of studies, of names of runs, and of keys that must name something."""

from collections.abc import Iterator

from app.case.config import Case, is_forecast
from app.case.rules.mistake import Mistake, changed
from app.text import show


def own_folds() -> str:
    return '"" would be right for study.kind = "folds", which draws its own'


def studies(case: Case) -> Iterator[Mistake]:
    """Numbers of samples by layer, and folds."""
    study = case.study
    split = study.fold_validation == "next" and not is_forecast(case)
    if study.kind == "folds" and split and study.folds < 3:
        found = f'got {study.folds} (study.fold_validation = "next")'
        yield ("study", "folds"), f"must be at least 3, to test, to validate and to train on, {found}"
    if (study.kind, case.run.task) == ("folds", "study") and case.graph.splits not in ("", "random"):
        yield ("graph", "splits"), f"{own_folds()}, got {show(case.graph.splits)}"
    parallel = case.parallel
    folds = study.kind == "folds" and case.run.task in ("study", "classify")
    if folds and parallel.partition == "learned" and not parallel.cost_model:
        right = '"rows" or "edges", or a parallel.cost_model, would be right for folds, whose rows stay'
        yield ("parallel", "partition"), f"{right} where they are"
    of_series = study.kind == "folds" and is_forecast(case)
    for key in changed(study, ("fold_training",) if case.run.task == "study" and not of_series else ()):
        right = 'study.kind = "folds" of gnn.level = "forecast"'
        yield ("study", key), f"is read by {right} alone; leave it out"
    unread = study.kind != "tune" and case.run.task == "study"
    for key in changed(study, ("vary", "trials", "race") if unread else ()):
        yield ("study", key), 'is read by study.kind = "tune" alone; leave it out'
    if study.kind == "sampling" and not (study.fanouts or study.layer_samples):
        yield (
            ("study", "fanouts"),
            "must have a number for each layer where study.layer_samples has none, got []",
        )
    if 0 in study.layer_samples[1:]:
        right = "must be at least 1 but in the first place"
        yield ("study", "layer_samples"), f"{right}, got {show(study.layer_samples)}"


def name_of_run(case: Case) -> Iterator[Mistake]:
    """run.name, which names a folder."""
    name = case.run.name
    if "/" in name or "\\" in name or name in (".", ".."):
        yield ("run", "name"), f"must be the name of a folder, without slashes, got {show(name)}"


def empty(case: Case) -> Iterator[Mistake]:
    """Keys that must name something."""
    if not case.policy.weights:
        yield ("policy", "weights"), 'must be "default", "train" or a file, got ""'
    if not case.search.start:
        yield ("search", "start"), 'must be "learned", "greedy" or a file, got ""'
