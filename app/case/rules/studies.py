"""Rules of studies, of names of runs, and of keys that must name something."""

from collections.abc import Iterator

from app.case.config import Case, is_forecast
from app.case.rules.mistake import Mistake, changed
from app.text import show

_STEPS = ("measured", "batches", "ranks", "rounds", "memory_graph", "extrapolated")
# Keys of [study] that each kind reads.
READ_BY_KIND: dict[str, tuple[str, ...]] = {
    "quality": ("families", "seeds", "recipes", "steps", "sizes", "graphs_per_size"),
    "scaling": _STEPS,
    "strong_scaling": (*_STEPS, "variants"),
    "answers": ("sets",),
    "partition": ("rounds", "epochs", "horizon", "widths", "clock", "blocks"),
    "models": ("datasets", "seeds", "models"),
    "depth": ("datasets", "seeds", "depths", "widths"),
    "breakdown": ("datasets", "seeds", "rounds"),
    "permutation": ("widths", "rounds"),
    "overlap": ("widths", "rounds"),
    "density": ("scales", "rounds"),
    "sampling": ("datasets", "seeds", "batches", "fanouts", "epochs", "layer_samples", "layer_epochs"),
    "inference": ("held_back", "rounds"),
    "gnn_scaling": ("networks", "ranks", "rounds"),
    "rgcn": ("epochs", "parts"),
    "selection": ("measured", "rules", "seeds"),
    "learners": ("learners", "embeddings", "problems", "settings", "steps", "graphs_per_size"),
    "progress": (
        "families", "targets", "graphs_per_size", "seeds", "variants", "alone", "counted", "stop", "beside",
    ),
    "memory": ("datasets", "seeds", "limits", "rounds"),
    "throughput": ("datasets", "seeds", "epochs", "rounds"),
    "folds": ("datasets", "seeds", "folds", "fold_validation", "fold_training"),
    "tune": ("datasets", "seeds", "vary", "trials", "race"),
}  # fmt: skip
# Those that dry runs of any case read, and that LOCKSTEP_DATA gives to all studies.
READ_BY_ALL = ("calibration", "latency_us", "bandwidth_gbs", "data", "catalogue")
# Those with a message of their own.
TOLD_APART = ("kind", "fold_training", "vary", "trials", "race")


def unread(case: Case) -> Iterator[Mistake]:
    """Keys of [study] that are of another kind, or of no study."""
    study, asked = case.study, case.run.task == "study"
    read = (*READ_BY_ALL, *((*READ_BY_KIND[study.kind], *TOLD_APART) if asked else ()))
    for key in changed(study, (each for each in study.__struct_fields__ if each not in read)):
        if not asked:
            yield ("study", key), 'is read by run.task = "study"; leave it out'
            continue
        kinds = " or ".join(show(kind) for kind, keys in READ_BY_KIND.items() if key in keys)
        yield ("study", key), f"is read by study.kind = {kinds}, got {show(study.kind)}; leave it out"


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
