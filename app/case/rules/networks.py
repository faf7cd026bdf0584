"""Rules of networks, whatever they learn: what is learned, what is told, what is smoothed."""

from collections.abc import Iterator

from app.case.config import Case, is_forecast, is_relational
from app.case.rgcn import RgcnCase
from app.case.rules.graphs import LIKE_CLASSIFY
from app.case.rules.mistake import Mistake
from app.case.smooth import unread_keys

# Keys of [rgcn] that nothing reads where there is no layer.
OF_RELATIONAL_LAYERS = (
    "hidden", "bases", "blocks", "inverse", "dropout", "partition", "groups", "grouping", "parts",
)  # fmt: skip
OF_RANKINGS = ("recall", "precision", "ndcg")  # values of gnn.watch that are of links.rank_each


def nothing_to_apply(case: Case) -> Iterator[Mistake]:
    """No epochs of training, and no weights to apply instead."""
    if case.run.task != "classify":
        return
    relational = case.gnn.model == "rgcn"
    if not relational and not (case.gnn.epochs or case.gnn.weights):
        yield ("gnn", "epochs"), "must be at least 1 without gnn.weights, got 0"
    if relational and not (case.rgcn.epochs or case.rgcn.weights):
        yield ("rgcn", "epochs"), "must be at least 1 without rgcn.weights, got 0"


def networks(case: Case) -> Iterator[Mistake]:
    """[gnn] with itself and with the study."""
    gnn, kind = case.gnn, case.study.kind
    if gnn.first_product == "cached" and gnn.input_dropout > 0:
        yield (
            ("gnn", "first_product"),
            "cached keeps the product of features that gnn.input_dropout changes in every epoch; "
            "gnn.input_dropout = 0 or first_product = auto would be right",
        )
    if gnn.warmup and gnn.warmup >= gnn.epochs > 0:
        right = f"less than gnn.epochs = {gnn.epochs} would be right"
        yield ("gnn", "warmup"), f"{right}, got {gnn.warmup}"
    of_values = gnn.watch in ("r2", "rmse", "mae")
    if gnn.watch not in ("auto", "loss") and of_values != (gnn.goal == "values"):
        what, right = ("values", "auto, loss or a score of classes")
        if not of_values:
            what, right = "classes", "auto, loss, r2, rmse or mae"
        yield ("gnn", "watch"), f"{gnn.watch} is a score of {what}; {right} would be right"
    if gnn.watch in OF_RANKINGS and gnn.level != "link":
        yield ("gnn", "watch"), f'{gnn.watch} is of gnn.level = "link", got "{gnn.level}"'
    if gnn.feature_rows == "one_hot" and case.graph.generator and case.run.task in ("classify", "study"):
        yield ("gnn", "feature_rows"), "one_hot is of whole numbers, which no generator draws"
    yield from _missing_features(case)
    if gnn.positions and case.memory.fast_mb and case.run.task in ("classify", "study"):
        said = "are made in memory, which memory.fast_mb limits; [] would be right"
        yield ("gnn", "positions"), said
    if gnn.positions and case.run.task == "study" and kind not in LIKE_CLASSIFY:
        right = " or ".join(f'"{each}"' for each in LIKE_CLASSIFY)
        yield (
            ("gnn", "positions"),
            f'are read by study.kind = {right} and by run.task = "classify"; [] would be right',
        )
    if case.run.task == "study" and gnn.goal == "values" and kind not in LIKE_CLASSIFY:
        yield (
            ("gnn", "goal"),
            f'study.kind = "{kind}" compares accuracies of classes; "classes", or study.kind = '
            '"models", "depth", "folds" or "tune", would be right',
        )


def _missing_features(case: Case) -> Iterator[Mistake]:
    """What filling features in is not of."""
    gnn, key = case.gnn, ("gnn", "missing_features")
    if gnn.missing_features == "refuse" or case.run.task not in ("classify", "study"):
        return
    if case.run.task == "study" and case.study.kind not in LIKE_CLASSIFY:
        right = 'run.task = "classify" and study.kind = "models", "depth", "folds" or "tune"'
        yield key, f'is read by {right}; "refuse" would be right'
    if gnn.feature_rows == "one_hot":
        yield key, 'is of numbers, and gnn.feature_rows = "one_hot" of categories; "refuse" would be right'
    if gnn.model == "rgcn":
        yield key, 'is not read by gnn.model = "rgcn"; "refuse" would be right'


def relations(case: Case) -> Iterator[Mistake]:
    """[rgcn] with itself and with the memory."""
    rgcn = case.rgcn
    if not is_relational(case):
        return
    if case.run.task == "study":
        for key in ("weights", "queries"):
            if getattr(rgcn, key):
                yield ("rgcn", key), "is read by no study, which draws the weights it trains; leave it out"
    if rgcn.warmup and rgcn.warmup >= rgcn.epochs > 0:
        yield ("rgcn", "warmup"), f"less than rgcn.epochs = {rgcn.epochs} would be right, got {rgcn.warmup}"
    if rgcn.blocks and rgcn.bases not in (0, RgcnCase().bases):
        yield ("rgcn", "bases"), "is not read beside rgcn.blocks; leave one of them out"
    if rgcn.goal == "links":
        if rgcn.scorer in ("complex", "rotate") and rgcn.dimension % 2:
            right = 'an even number would be right, or rgcn.scorer = "distmult" or "transe"'
            yield ("rgcn", "dimension"), f"{right}, got {rgcn.dimension}"
        for key in OF_RELATIONAL_LAYERS:
            usual = (getattr(RgcnCase(), key), 0 if key == "bases" else None)
            if not rgcn.layers and getattr(rgcn, key) not in usual:
                yield ("rgcn", key), "is read by relational layers, and rgcn.layers is 0; leave it out"
    elif not rgcn.layers:
        yield ("rgcn", "layers"), 'at least 1 would be right without rgcn.goal = "links", got 0'
    elif rgcn.keep == "best" and case.memory.fast_mb:
        yield (
            ("rgcn", "keep"),
            "best keeps a copy of all weights, which memory.fast_mb forbids; leave one out",
        )


def told_by_network(case: Case) -> Iterator[Mistake]:
    """What is told of the one network that the task classify has trained or applied, of folds by means."""
    task, asked = case.run.task, case.output
    folds = (task, case.study.kind) == ("study", "folds")
    if asked.importance and task != "classify" and not folds:
        right = 'run.task = "classify" and study.kind = "folds"'
        yield ("output", "importance"), f"is read by {right} alone; leave it out"
    for key in ("embeddings", "probabilities", "coverage", "explain"):
        of_origins = key == "coverage" and folds and is_forecast(case)
        if getattr(asked, key) and task != "classify" and not of_origins:
            yield ("output", key), 'is read by run.task = "classify" alone; leave it out'
    gnn = case.gnn
    if asked.explain and task == "classify" and gnn.level == "embed" and gnn.model != "rgcn":
        found = 'is of nodes, edges, links and graphs, not of gnn.level = "embed"'
        yield ("output", "explain"), f"{found}; leave it out"
    yield from _of_members(case)


def _of_members(case: Case) -> Iterator[Mistake]:
    """What is told of one network, or of labels, beside several members and where there are no labels."""
    gnn, asked, task = case.gnn, case.output, case.run.task
    labelled = gnn.level in ("node", "edge", "graph") and gnn.model != "rgcn"
    if task == "classify" and asked.coverage and not labelled and not is_forecast(case):
        found = f'gnn.model = "{gnn.model}"' if gnn.model == "rgcn" else f'gnn.level = "{gnn.level}"'
        yield ("output", "coverage"), f"is of labels of nodes, edges or graphs, not of {found}; leave it out"
    if asked.coverage and case.smooth.method != "none" and case.smooth.validation_labels:
        said = "gives away the labels that output.coverage goes by; leave one of them out"
        yield ("smooth", "validation_labels"), said
    if gnn.members == 1 or task not in ("classify", "study"):
        return
    if task == "study" or not (labelled or is_forecast(case)):
        right = 'run.task = "classify" on labels of nodes, edges or graphs, or on series of nodes,'
        yield ("gnn", "members"), f"is read by {right} alone; 1 would be right, got {gnn.members}"
    for key in ("embeddings", "importance"):
        if getattr(asked, key):
            yield ("output", key), f"is of one network: gnn.members = 1 would be right, got {gnn.members}"


def smooth(case: Case) -> Iterator[Mistake]:
    """[smooth] with itself, and what it is not of."""
    task, kind, gnn, asked = case.run.task, case.study.kind, case.gnn, ("smooth", "method")
    if task not in ("classify", "study"):
        return
    for key, mistake in unread_keys(case.smooth):
        yield ("smooth", key), mistake
    if case.smooth.method == "none":
        return
    right = '"none" would be right'
    if task == "study" and kind != "folds":
        yield asked, f'is not read by study.kind = "{kind}"; {right}, or study.kind = "folds"'
    elif gnn.model == "rgcn":
        yield asked, f'is not read by gnn.model = "rgcn"; {right}'
    elif gnn.level != "node":
        yield asked, f'is of nodes, whose neighbours it hears, got gnn.level = "{gnn.level}"; {right}'
    elif gnn.goal != "classes":
        yield asked, f'is of classes, got gnn.goal = "{gnn.goal}"; {right}'
