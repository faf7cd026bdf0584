"""What the log tells of learning on a graph: its model, its course, its scores."""

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from app.case.gnn import GnnCase
from app.comm.guard import raise_together
from app.gnn.balanced import Balanced, layer_kinds
from app.gnn.categories import Categories
from app.gnn.classifier import Classifier
from app.gnn.conformal import Conformal, fewest_for
from app.gnn.ensemble import Together
from app.gnn.metrics import SplitScores
from app.gnn.saved import SavedModel
from app.gnn.smoothing import Smoothed
from app.gnn.training import Fit, ended_early
from app.gnn.watch import WORDS
from app.graphs.graph import IN_A
from app.graphs.nodes.data import SPLITS
from app.log import ToGo
from app.partition.cost import from_arrays
from app.partition.loaded import Loaded
from app.tasks.context import Context

if TYPE_CHECKING:
    from app.tasks.levels.examples import Examples

TOLD = 10  # features that the log names
RANKED = {"area under the ROC curve": "auc", "average precision": "ap"}  # by words, scores that not all have
PLAIN = {
    "label_propagation": "label propagation",
    "largest_class": "largest class",
    "majority": "majority",
    "mean": "mean",
    "ends": "edges at both ends",
    "features": "linear on the features",
    "propagated": "linear on the features of two hops",
    "spectral": "linear on eigenvectors of the graph",
}  # by the names of plain rules (app/gnn/plain.py), words for them


def recorder(context: Context, name: str = "") -> Any:
    """What training calls with each record: a row of metrics.csv, by a network's name, and, now and then, a
    line."""
    log, to_go = context.log, ToGo(context.case.gnn.epochs)

    def record(row: dict[str, float]) -> None:
        sent = sum(context.group.sent_bytes.values())
        log.record(
            phase="train", name=name, step=row["epoch"], loss=row["loss"], sent_bytes=sent,
            watched=row["watched"], **_splits(row),
        )  # fmt: skip
        log.progress(
            "epoch %5d  loss %.4f  train %.4f  val %.4f  test %.4f%s",
            row["epoch"], row["loss"], row["train_score"], row["val_score"], row["test_score"],
            to_go(int(row["epoch"])),
        )  # fmt: skip

    return record


def _splits(row: dict[str, float]) -> dict[str, float]:
    return {f"{name}_score": row[f"{name}_score"] for name in SPLITS}


# ---- settings ---------------------------------------------------------------------------------------------


def warn_of_weights(context: Context, gnn: GnnCase, saved: SavedModel, examples: "Examples") -> None:
    """Of settings that weights replace, and of what they have not learned with.

    gnn     with the layers of the weights
    """
    if said := examples.brought(context.case, gnn):
        context.warn(f"the weights bring their layers: {said}")
    for found in examples.strange_to(saved):
        context.warn(f"the weights {found}")


def warn_of_validation(context: Context, gnn: GnnCase, count: int, lacking: str) -> None:
    """Where nothing is there to choose the weights by; lacking: what, in words."""
    if gnn.epochs and not count and (gnn.patience or gnn.keep == "best"):
        said = "warning: no validation %s: gnn.patience and gnn.keep go by the training loss"
        context.log.info(said, lacking)


# ---- the model --------------------------------------------------------------------------------------------


def say_labels(context: Context, loaded: Loaded, classifier: Classifier) -> None:
    """The graph, its features, and what is learned of it. Ranks: all call."""
    log, graph = context.log, loaded.graph
    data, kind, about = classifier.data, classifier.goal.kind, classifier.about
    kind = "value" if (kind, classifier.classes) == ("values", 1) else kind
    log.info(
        "%s: %s, %d edges, %d features, %d %s",
        graph.name, _sizes(loaded), graph.edges, data.width, classifier.classes, kind,
    )  # fmt: skip
    if loaded.graph.arcs is not None:
        arcs = count_arcs(context, loaded)
        ends = {"in": "tails of those into it", "out": "heads of those out of it"}
        log.info("directed, %d arcs: a node hears the %s", arcs, ends[context.case.graph.neighbours])
    _say_categories(context, classifier)
    _say_edges(context, classifier)
    counts, what = (about.counts[name] for name in SPLITS), classifier.case.level
    log.info("%d training, %d validation, %d test %ss", *counts, what)


def say_layers(context: Context, classifier: Classifier, features: str = "") -> None:
    """The layers, and the memory of their buffers; features: what to say before."""
    log, engine = context.log, classifier.engine
    alike = [(text, len(list(each))) for text, each in groupby(b.text() for b in classifier.model.blocks)]
    layers = ", ".join(f"{count} x {text}" if count > 1 else text for text, count in alike)
    mode = engine.neighbours_of.block.plan.mode
    log.info("%s%s: %d weights, exchange %s", features, layers, classifier.params.size, mode)
    limit = context.case.memory.fast_mb
    log.info(
        "%d buffers of %d columns in all: %.1f MB on this rank%s",
        len(engine.plan.widths), engine.plan.columns, 4e-6 * engine.plan.columns * engine.n_own,
        f", of which at most {limit:g} MB in its memory at once" if engine.tiered else "",
    )  # fmt: skip
    for line in engine.tiered.lines() if engine.tiered else ():
        log.info("%s", line)
    for layer, narrow in sorted(engine.narrow.items()):
        log.info(
            "layer %d: the loss depends on %.1f %% of the entries, %.1f MB of their own",
            layer + 1, 100 * narrow.share, 1e-6 * (narrow.nbytes + narrow.rows.nbytes),
        )  # fmt: skip
    if classifier.tiled_bytes:
        log.info("the matrix is kept by tiles too: %.1f MB more on this rank", 1e-6 * classifier.tiled_bytes)


def _say_categories(context: Context, classifier: Classifier) -> None:
    """How many categories columns of features have, and how many numbers are none of them."""
    inputs, unknown = classifier.inputs, classifier.unknown
    if not isinstance(inputs, Categories):
        return
    sizes = [len(each) for each in inputs.values]
    said = "%d columns of %d to %d categories, a feature for each"
    context.log.info(said, len(sizes), min(sizes), max(sizes))
    if unknown.any():
        first = int(np.flatnonzero(unknown)[0])
        where = f"column {first}" + (", ..." if np.count_nonzero(unknown) > 1 else "")
        found = f"{unknown.sum()} numbers of the features ({where}) are categories that no weights are for"
        context.warn(f"{found}: they count as none")


def _say_edges(context: Context, classifier: Classifier) -> None:
    """The columns of edge features, and how many numbers are no known category. Ranks: all call."""
    columns = classifier.edge_columns
    if columns is None:
        return
    several = columns.given > 1
    made = f", {columns.width} columns for {'their' if several else 'its'} categories"
    made = made if isinstance(columns.inputs, Categories) else ""
    context.log.info("%d feature%s of each edge%s", columns.given, "s" * several, made)
    unknown = classifier.group.sum_integers(classifier.engine.edges.unknown)
    if unknown.any():
        count = int(unknown.sum()) // (1 if classifier.block.directed else 2)  # an edge has two entries
        found = f"{count} numbers of the edge features are categories that no weights are for"
        context.warn(f"{found}: they count as none")


def _sizes(loaded: Loaded) -> str:
    """How many nodes, or graphs of how many nodes, for the log."""
    members = loaded.members
    return (
        f"{loaded.graph.n} nodes" if members is None else f"{members.count} graphs of {members.nodes} nodes"
    )


def count_arcs(context: Context, loaded: Loaded) -> int:
    """Arcs of a directed graph. Ranks: all call."""
    return int(context.group.sum_integers(np.array([np.count_nonzero(loaded.graph.arcs & IN_A)]))[0])


# ---- scores -----------------------------------------------------------------------------------------------


def say_training(context: Context, classifier: Classifier, found: Fit) -> None:
    """How long training took, and the watched score at its best."""
    log = context.log
    if found.epochs:
        seconds, each_ms = found.seconds, 1e3 * found.seconds / found.epochs
        log.info("%d epochs in %.2f s (%.2f ms each, evaluations included)", found.epochs, seconds, each_ms)
    if found.best is not None and classifier.case.watch != "auto":
        words, at = WORDS[classifier.case.watch], found.best_epoch
        log.info("watched: %s of the validation set, at best %.5g after epoch %d", words, found.best, at)


def say_scores(context: Context, classifier: Classifier, scores: SplitScores) -> None:
    """How good the weights are that training leaves."""
    if not any(each.nodes for each in scores.values()):
        context.log.info("no labelled %ss to tell the accuracy by", classifier.case.level)
        return
    for line in score_lines(classifier, scores):
        context.log.info("%s", line)


def score_lines(classifier: Classifier, scores: SplitScores) -> Iterator[str]:
    """A line for each kind of score, of the splits that have labelled nodes."""
    known, goal = {split: each for split, each in scores.items() if each.nodes}, classifier.goal
    for text, what in goal.told.items():
        shown = ", ".join(f"{split} {getattr(each, what):{goal.digits}}" for split, each in known.items())
        yield f"{text}: {shown}"
    for text, what in RANKED.items():
        named = {split: each.named().get(what) for split, each in known.items()}
        shown = ", ".join(f"{split} {each:.4f}" for split, each in named.items() if each is not None)
        if shown:
            yield f"{text}: {shown}"


def say_trainings(
    context: Context, classifier: Classifier, fits: list[Fit], together: Together | None
) -> None:
    """How long training took, of each member; how good these are alone."""
    for each in fits:
        say_training(context, classifier, each)
    if together is not None:
        say_members(context, classifier, together)


def advise(context: Context, fits: list[Fit], case: GnnCase) -> None:
    """What the course of training suggests, once."""
    for advice in dict.fromkeys(filter(None, (ended_early(each, case) for each in fits))):
        context.log.info("advice: %s", advice)


def say_member(context: Context, number: int, count: int) -> None:
    """Which of several networks is trained, or applied, next."""
    context.log.info("member %d of %d, seed %d", number + 1, count, context.case.seed + number)


def say_members(context: Context, classifier: Classifier, together: Together) -> None:
    """How good the members are alone; what they say together comes after it."""
    goal, apart = classifier.goal, together.apart
    text, what = next(iter(goal.told.items()))
    split = next((name for name in ("test", "val", "train") if apart[0] and apart[0][name].nodes), None)
    if split is not None:
        found = sorted(getattr(each[split], what) for each in apart)
        said = "%d networks alone: %s: %s %s to %s; together:"
        shown = (format(each, goal.digits) for each in (found[0], found[-1]))
        context.log.info(said, len(apart), text, split, *shown)


def say_conformal(context: Context, classifier: Classifier, found: Conformal) -> None:
    """How large sets or intervals are, and how often they held."""
    log, told, what = context.log, found.told(), classifier.case.level
    sets = found.sets is not None
    asked = f"{'sets of classes' if sets else 'intervals'} for {100 * found.asked:g} % of the {what}s"
    held = "" if found.held is None else f"; of the test set {100 * found.held:.1f} % were in them"
    size = "" if found.size is None else f", {found.size:.2f} classes in the mean"
    log.info("%s, by %d validation %ss%s%s", asked, found.calibrated, what, held, size)
    lacking = told["threshold"] is None or (not sets and None in told["threshold"])
    if lacking:
        right = f"at least {fewest_for(found.asked)} would be right"
        context.warn(f"output.coverage: so few validation {what}s leave nothing out: {right}")
    if classifier.case.epochs and (classifier.case.keep == "best" or classifier.case.patience):
        log.info("validation %ss have chosen the epoch, too: a little less may hold than is asked for", what)


def say_smoothed(context: Context, classifier: Classifier, found: Smoothed) -> None:
    """How Correct and Smooth went about it, and how good what it makes is."""
    ways = ", ".join(f"{key} {value}" for key, value in found.told.items())
    context.log.info("smooth: %s", ways)
    for line in score_lines(classifier, found.scores):
        context.log.info("after smoothing, %s", line)
    if found.told.get("validation_labels"):
        context.log.info("smoothing was given the labels of validation nodes: these have no score")


def say_beside(context: Context, classifier: Classifier, plain: dict[str, SplitScores]) -> None:
    """How good plain rules are: the first score of each, in a line."""
    goal = classifier.goal
    text, what = next(iter(goal.told.items()))
    for rule, scores in plain.items():
        known = {split: each for split, each in scores.items() if each.nodes}
        shown = ", ".join(f"{split} {getattr(each, what):{goal.digits}}" for split, each in known.items())
        if shown:
            context.log.info("%s: %s %s", PLAIN[rule], text, shown)


def say_balance(context: Context, balanced: Balanced) -> None:
    """How evenly the ranks worked, and when rows moved; writes cost_model.json. Ranks: all call."""
    group, history = context.group, balanced.balance.history
    kinds = layer_kinds(balanced.classifier)
    model = from_arrays(balanced.balance.saved(), "the learned cost model", kinds)
    if history:  # rank 0 has it, and says it
        first, last = history[0].imbalance, history[-1].imbalance
        context.log.info(
            "slowest rank over the mean: %.3f in the first epoch, %.3f in the last; rows moved after %s",
            first, last, ", ".join(map(str, balanced.moves)) or "none",
        )  # fmt: skip
    if context.folder is not None and group.size > 1:
        with raise_together(group, "writing the cost model"):
            context.folder.write_text("cost_model.json", model.text())
