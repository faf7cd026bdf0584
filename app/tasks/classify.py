"""Task classify: train a graph network on the nodes of a graph, or on graphs, full batch, or apply one."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

import numpy as np
from msgspec import structs

from app.case.config import Case
from app.case.gnn import GnnCase
from app.comm.guard import digest, raise_together
from app.errors import CaseError
from app.gnn.archive import replaced
from app.gnn.balanced import Balanced, cut_by, layer_kinds, unlike
from app.gnn.categories import Categories
from app.gnn.classifier import Classifier
from app.gnn.edges import no_edge_features
from app.gnn.importance import Importance, Measured, importance, told_by
from app.gnn.inputs import feature_room
from app.gnn.loss import refuse_infinite_rows
from app.gnn.metrics import SplitScores
from app.gnn.model import DEEP, case_reads_edges
from app.gnn.plain import plain_scores
from app.gnn.saved import SavedModel, check_edges, check_fits, load_model, save_model
from app.gnn.smoothing import Smoothed, check_smoothing, probabilities_of, smooth
from app.gnn.training import Fit, ended_early, fit
from app.gnn.watch import WORDS
from app.graphs.formats.source import Limits
from app.graphs.graph import IN_A
from app.graphs.ids import between_names, blank_between, escaped, plain_ids, quoted
from app.graphs.nodes.data import SPLITS, NodeData, no_labels
from app.log import ToGo
from app.memory.room import resident_bytes
from app.memory.tiers import TierBudget
from app.model.counts import classified_counts
from app.model.fits import refuse_needs
from app.model.memory import Need
from app.model.node_plan import need_of_layers
from app.partition.cost import CostModel, from_arrays
from app.partition.edge_data import load_edge_data
from app.partition.ids import ids_everywhere
from app.partition.load import Loaded, load_united
from app.partition.nodes import all_in_test, load_node_data
from app.plots.runs import plot_breakdown, plot_training
from app.tasks.context import Context
from app.text import printable

TOLD = 10  # features that the log names
RANKED = {"area under the ROC curve": "auc", "average precision": "ap"}  # by words, scores that not all have
PLAIN = {
    "label_propagation": "label propagation",
    "largest_class": "largest class",
    "majority": "majority",
    "mean": "mean",
    "ends": "edges at both ends",
}  # by the names of plain rules (app/gnn/plain.py), words for them


@dataclass
class Classified:
    """A classifier after its run: what it learned, how good it is, how long it took, and what its nodes hear
    (graph.neighbours, "both" of an undirected graph). Of what is predicted see `Loaded.members`.

    plain      how good plain rules are, by rule
    smoothed   what Correct and Smooth makes of its probabilities; None: predictions are the network's
    importance of features; None: nobody asked
    """

    classifier: Classifier
    fit: Fit
    scores: SplitScores
    seconds: float
    digest: str
    neighbours: str
    plain: dict[str, SplitScores] = field(default_factory=dict)
    smoothed: Smoothed | None = None
    importance: Importance | None = None

    @property
    def final(self) -> SplitScores:
        """Scores of what is predicted."""
        return self.scores if self.smoothed is None else self.smoothed.scores


def run_classify(context: Context) -> dict[str, Any]:
    """Train or apply, write the results, and return the task's part of result.json. Ranks: all call."""
    loaded, data = load(context)
    refuse_read(context, loaded)
    held = resident_bytes()
    done = classify_nodes(context, loaded, data)
    context.say_memory(held)
    if context.folder is not None:
        _write(context, loaded, done)
    return _result(context, loaded, done)


def load(context: Context) -> tuple[Loaded, NodeData]:
    """The graph of the case and what its files say of the nodes. Ranks: all call."""
    case, group = context.case, context.group
    with context.log.phase("read"):
        loaded = load_united(group, case.graph, _without_cost_model(case))
        for warning in loaded.warnings:  # at once: node data may fail for what they tell
            context.log.info("warning: %s", warning)
        make_room = feature_room(TierBudget.of(case.memory), group.device)
        data = load_node_data(group, case.graph, loaded, case, make_room)
        data = with_edges(context, loaded, data)
    for warning in data.warnings:
        context.log.info("warning: %s", warning)
    return loaded, data


def with_edges(context: Context, loaded: Loaded, data: NodeData, model: SavedModel | None = None) -> NodeData:
    """The data with features of edges, where layers read them; else a warning says that there are some.

    model   the weights, where they are in memory
    Ranks   all call. Raises CaseError where none are there that layers read
    """
    case, group = context.case, context.group
    with raise_together(group, "reading the edge features"):
        saved = (model or load_model(case.gnn.weights)) if case.gnn.weights else None
        gnn = saved.case if saved else case.gnn
        reads, named = case_reads_edges(gnn), case.graph.edge_features
        if named and not reads and gnn.level != "edge":
            layers = f"the layers of {printable(case.gnn.weights)}"
            raise CaseError(f"graph.edge_features: is not read by {layers}; leave it out")
    if gnn.level != case.gnn.level:
        return data  # weights of another level, which are refused where they are taken over
    told = group.max_integer(int(loaded.stream is not None and loaded.stream.edge_features is not None))
    if gnn.level == "edge" and not reads:  # the head reads them where there are any
        reads = bool(named or (told and not (saved and saved.edges is None)))
        if not (reads or told):
            return data
    if not reads:
        if told and loaded.source == "memory" and gnn.level != "edge":
            raise CaseError("edge_features: no layer reads them; leave them out, or gine would be right")
        if told:
            reader = "weights that have learned on some" if gnn.level == "edge" else "layers of gine"
            context.warn(f"{loaded.graph.name}: its edge features are not read; {reader} would")
        return data
    if loaded.complemented and (told or named):
        raise CaseError("graph.complement: the edges of a complement have no features; false would be right")
    limits = Limits(int(case.memory.max_decompressed_gb * 1e9))
    edges = load_edge_data(group, loaded, named, limits, case.graph.neighbours)
    if edges is None:
        key = "edge_features=" if loaded.source == "memory" else "graph.edge_features"
        raise CaseError(no_edge_features(loaded.graph.name, key))
    return replace(data, edges=edges)


def refuse_read(context: Context, loaded: Loaded) -> None:
    """Refuse a graph of files that tell no counts before they are read where its training does not fit.

    Ranks   all call
    """
    case, group = context.case, context.group
    if not (case.gnn.epochs and case.graph.path):
        return

    def needs() -> list[Need]:
        entries = 2 * loaded.graph.edges
        known = all(classified_counts(case))  # it was asked before
        return [] if known else [need_of_layers(case, loaded.graph.n, entries, group.size, group.device)]

    for warning in refuse_needs(group, case, needs)[1]:
        context.log.info("warning: %s", warning)


def _without_cost_model(case: Case) -> Case:
    """The case for loading: whether parallel.cost_model is of the case's layers is known after it."""
    parallel = structs.replace(case.parallel, cost_model="")
    return structs.replace(case, parallel=parallel)


def classify_nodes(
    context: Context, loaded: Loaded, data: NodeData, model: SavedModel | None = None
) -> Classified:
    """Train for gnn.epochs on a graph and its node data, from gnn.weights where given. Ranks: all call.

    model   the weights, where they are in memory
    """
    case, log, group = context.case, context.log, context.group
    with raise_together(group, "checking the data"):
        gnn, saved = _architecture(case.gnn, loaded, data, model)
        _check(gnn, loaded, data, case.output.embeddings)
        data = data if saved is None else saved.relabel(case.gnn.weights, data)
    if not gnn.epochs and data.labels is not None and not any(data.counts.values()):
        data = all_in_test(group, data)  # nothing is trained on, so all of them can tell how good weights are
    heard = case.graph.neighbours if loaded.graph.arcs is not None else "both"
    warn_of(context, gnn, saved, data, heard)
    block = context.rows(loaded, gnn.hidden if data.edges is None else 0)
    if gnn.edge_weights and not block.adjacency.weighted:
        log.info(
            "warning: gnn.edge_weights: %s has no edge weights; every edge counts one", loaded.graph.name
        )
    with log.phase("set up"):
        known = (saved.classes, saved.goal, saved.inputs) if saved else ()
        more = {"budget": TierBudget.of(case.memory), "members": loaded.members}
        more["edge_columns"] = saved.edges if saved else None
        classifier = Classifier(group, gnn, block, data, case.seed, *known, **more)
        if saved is not None:
            classifier.params.set(saved.arrays)
        model = cost_model_of(context, classifier)
        balanced = Balanced(classifier, model) if follows(case) else None
    check_smoothing(case.smooth, classifier.goal.kind, classifier.data)
    check_importance(case, classifier)
    if case.output.probabilities and classifier.goal.kind == "values":
        raise CaseError("output.probabilities: numbers have none, only classes; false would be right")
    say_model(context, loaded, classifier)
    with log.phase("train"):
        hooks = {"after_epoch": balanced.after_epoch, "beside": balanced} if balanced else {}
        found = fit(classifier, recorder(context), case.run.check_every, keeper=context.keeper, **hooks)
    with log.phase("evaluate"):
        scores = classifier.evaluate_ranking()
        plain = plain_scores(classifier) if gnn.baselines else {}
    say_scores(context, classifier, found, scores)
    smoothed = smooth_after(context, classifier)
    say_beside(context, classifier, plain)
    asked = important_features(context, classifier)
    if said := ended_early(found, gnn):
        log.info("advice: %s", said)
    if balanced:
        say_balance(context, balanced)
    learned = digest(found.weights)
    return Classified(classifier, found, scores, found.seconds, learned, heard, plain, smoothed, asked)


def smooth_after(context: Context, classifier: Classifier) -> Smoothed | None:
    """What [smooth] makes of a trained network's probabilities, which the log tells. Ranks: all call."""
    case = context.case.smooth
    if case.method == "none":
        return None
    with context.log.phase("smooth"):
        found = smooth(classifier, case)
    ways = ", ".join(f"{key} {value}" for key, value in found.told.items())
    context.log.info("smooth: %s", ways)
    for line in score_lines(classifier, found.scores):
        context.log.info("after smoothing, %s", line)
    if found.told.get("validation_labels"):
        context.log.info("smoothing was given the labels of validation nodes: these have no score")
    return found


def check_importance(case: Case, classifier: Classifier) -> None:
    """Refuse, before there is training to lose, features whose worth nothing tells. Raises CaseError."""
    if case.output.importance:
        told_by(classifier)


def important_features(
    context: Context, classifier: Classifier, measure: Callable[[str], Measured] | None = None
) -> Importance | None:
    """What scores lose without some features, where that is asked for; the log tells it. Ranks: all call.

    measure   see `importance`
    """
    most = context.case.output.importance
    if not most:
        return None
    with context.log.phase("importance"):
        found = importance(classifier, most, measure)
    for line in found.lines(TOLD):
        context.log.info("%s", line)
    return found


def cost_model_of(context: Context, classifier: Classifier) -> CostModel | None:
    """The model of parallel.cost_model, and rows where it wants them; None where it is of other layers, which
    the log says. Ranks: all call."""
    model = context.cost_model()
    if model is None:
        return None
    if why := unlike(classifier, model):
        context.log.info("warning: %s is not used: %s", printable(context.case.parallel.cost_model), why)
        return None
    cut_by(classifier, model)
    return model


def follows(case: Case) -> bool:
    """Whether rows move during training to where the measured time wants them."""
    return case.parallel.partition == "learned" and case.gnn.epochs > 0


def saved_of(done: Classified) -> SavedModel:
    """What weights.npz holds."""
    classifier = done.classifier
    return SavedModel(
        classifier.case,
        classifier.model.f_in,
        classifier.data.class_ids,
        classifier.goal.kind == "labels",
        done.fit.weights,
        done.neighbours,
        getattr(classifier.goal, "scale", None),
        classifier.inputs,
        classifier.data.class_names,
        classifier.edge_columns,
    )


def _architecture(
    gnn: GnnCase, loaded: Loaded, data: NodeData, model: SavedModel | None
) -> tuple[GnnCase, SavedModel | None]:
    """The [gnn] table with the layers of saved weights where some are given; model: those in memory."""
    if not gnn.weights:
        return gnn, None
    saved = model or load_model(gnn.weights)
    if saved.case.level != gnn.level:
        right = f'gnn.level = "{saved.case.level}" would be right'
        raise CaseError(f"{printable(gnn.weights)}: says what {saved.case.level}s are; {right}")
    check_fits(gnn.weights, saved, data.width or loaded.graph.n)
    check_edges(gnn.weights, saved, data.edges)
    return saved.architecture_of(gnn), saved


def _check(gnn: GnnCase, loaded: Loaded, data: NodeData, embeddings: bool) -> None:
    """Refuse what cannot be trained. Raises CaseError."""
    given = [each for each in (loaded.graph.weights, loaded.graph.transpose_weights) if each is not None]
    if gnn.edge_weights and any((each < 0).any() for each in given):
        raise CaseError("gnn.edge_weights: the graph has negative weights; leave the key out")
    what = gnn.level
    if not data.classes and not gnn.weights:
        raise CaseError(no_labels(what))
    if gnn.epochs and not data.counts["train"]:
        raise CaseError(
            f"no {what} is to be trained on: set graph.splits (or gnn.epochs = 0 to apply weights)"
        )
    if gnn.epochs and gnn.class_weights == "balanced" and (data.multilabel or data.values):
        raise CaseError(f'gnn.class_weights: balanced is for one class a {what}; "equal" would be right')
    if embeddings and what == "node" and (len(gnn.layers) or gnn.depth) == 1 and gnn.model != DEEP:
        raise CaseError("output.embeddings: of one layer there are none; false would be right")


def recorder(context: Context) -> Any:
    """What training calls with each record: a row of metrics.csv and, now and then, a line."""
    log, to_go = context.log, ToGo(context.case.gnn.epochs)

    def record(row: dict[str, float]) -> None:
        sent = sum(context.group.sent_bytes.values())
        log.record(
            phase="train", name="", step=row["epoch"], loss=row["loss"], sent_bytes=sent,
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


# ---- what is said -----------------------------------------------------------------------------------------


def warn_of(context: Context, gnn: GnnCase, saved: SavedModel | None, data: NodeData, heard: str) -> None:
    """Of settings that come to something else than they say.

    gnn     with the layers of saved weights     heard   the neighbours that a node hears
    """
    log = context.log
    if gnn.epochs and not data.counts["val"] and (gnn.patience or gnn.keep == "best"):
        log.info("warning: no validation %ss: gnn.patience and gnn.keep go by the training loss", gnn.level)
    if said := replaced("gnn", context.case.gnn, gnn):
        context.warn(f"the weights bring their layers: {said}")
    if saved is not None and saved.neighbours != heard:
        learned = f'have learned with graph.neighbours = "{saved.neighbours}"'
        context.warn(f'the weights {learned}; here nodes hear "{heard}"')


def say_model(context: Context, loaded: Loaded, classifier: Classifier) -> None:
    """The graph, the model, and the memory of its buffers."""
    log, graph, engine = context.log, loaded.graph, classifier.engine
    data, kind, about = classifier.data, classifier.goal.kind, classifier.about
    kind = "value" if (kind, classifier.classes) == ("values", 1) else kind
    log.info(
        "%s: %s, %d edges, %d features, %d %s",
        graph.name, _sizes(loaded), graph.edges, data.width, classifier.classes, kind,
    )  # fmt: skip
    if loaded.graph.arcs is not None:
        arcs = _count_arcs(context, loaded)
        ends = {"in": "tails of those into it", "out": "heads of those out of it"}
        log.info("directed, %d arcs: a node hears the %s", arcs, ends[context.case.graph.neighbours])
    _say_categories(context, classifier)
    _say_edges(context, classifier)
    counts, what = (about.counts[name] for name in SPLITS), classifier.case.level
    log.info("%d training, %d validation, %d test %ss", *counts, what)
    alike = [(text, len(list(each))) for text, each in groupby(b.text() for b in classifier.model.blocks)]
    layers = ", ".join(f"{count} x {text}" if count > 1 else text for text, count in alike)
    mode = engine.neighbours_of.block.plan.mode
    log.info("%s: %d weights, exchange %s", layers, classifier.params.size, mode)
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


def _count_arcs(context: Context, loaded: Loaded) -> int:
    """Arcs of a directed graph. Ranks: all call."""
    return int(context.group.sum_integers(np.array([np.count_nonzero(loaded.graph.arcs & IN_A)]))[0])


def say_scores(context: Context, classifier: Classifier, found: Fit, scores: SplitScores) -> None:
    """How long training took, and how good the weights are that it leaves."""
    log, known = context.log, {split: each for split, each in scores.items() if each.nodes}
    if found.epochs:
        seconds, each_ms = found.seconds, 1e3 * found.seconds / found.epochs
        log.info("%d epochs in %.2f s (%.2f ms each, evaluations included)", found.epochs, seconds, each_ms)
    if found.best is not None and classifier.case.watch != "auto":
        words, at = WORDS[classifier.case.watch], found.best_epoch
        log.info("watched: %s of the validation set, at best %.5g after epoch %d", words, found.best, at)
    if not known:
        log.info("no labelled %ss to tell the accuracy by", classifier.case.level)
        return
    for line in score_lines(classifier, scores):
        log.info("%s", line)


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


# ---- what is written --------------------------------------------------------------------------------------


def _result(context: Context, loaded: Loaded, done: Classified) -> dict[str, Any]:
    """The task's part of result.json. Ranks: all call."""
    records, members = done.fit.records, loaded.members
    of_set = {} if members is None else {"graphs": members.count}
    entry = {
        "name": loaded.graph.name, **of_set, "nodes": loaded.graph.n if members is None else members.nodes,
        "edges": loaded.graph.edges,
        "train_loss": records[-1]["loss"] if records else None,
        "epochs": done.fit.epochs, "best_epoch": done.fit.best_epoch,
        "watched": done.fit.watched if records else None,
        "best_watched": done.fit.best, "seconds": done.seconds,
    }  # fmt: skip
    if loaded.graph.arcs is not None:
        entry["arcs"] = _count_arcs(context, loaded)
    entry |= named_scores(done.final)
    if done.smoothed is not None:
        entry |= {"smooth": done.smoothed.told, "network": named_scores(done.scores)}
    if done.importance is not None:
        entry["importance"] = done.importance.told()
    if done.plain:
        entry["plain"] = {rule: named_scores(each) for rule, each in done.plain.items()}
    # An applied model has no new weights: its answer are the predictions.
    predicted = gather_predictions(context, loaded, done.classifier, done.smoothed)
    both = digest({"predictions": predicted, **done.fit.weights})
    operations = {kind: round(s, 6) for kind, s in sorted(done.classifier.engine.seconds.items())}
    return {
        "digest": both,
        "weights_digest": done.digest,
        "instances": [entry],
        **entry,
        "operations": operations,
    }


def named_scores(scores: SplitScores) -> dict[str, float | None]:
    """Scores by split and name, None where no nodes tell them."""
    return {
        f"{split}_{name}": value if each.nodes else None
        for split, each in scores.items()
        for name, value in each.named().items()
    }


def gather_predictions(
    context: Context, loaded: Loaded, classifier: Classifier, smoothed: Smoothed | None = None
) -> np.ndarray:
    """[n, classes] uint8 or, of one class for each node, [n] int32; of values [n, columns] float32; of a set
    [graphs, ...].

    smoothed   what predictions are by, in place of the network's scores
    Ranks      all call. Raises NumericsError where scores are not finite
    """
    scores = classifier.scores_own() if smoothed is None else smoothed.rows
    scores = scores[: classifier.block.n_real]
    refuse_infinite_rows(context.group, scores)
    return _gathered(classifier, classifier.goal.predicted(scores))


def gather_probabilities(
    context: Context, classifier: Classifier, smoothed: Smoothed | None = None
) -> np.ndarray:
    """[n, classes] float32, how likely each class is for each node; of a set [graphs, classes].

    smoothed   as for `gather_predictions`
    Ranks      all call
    """
    own = classifier.probabilities_own() if smoothed is None else probabilities_of(smoothed.rows)
    return _gathered(classifier, own)


def gather_embeddings(context: Context, classifier: Classifier) -> np.ndarray:
    """[n, columns] float32, what the last layer but one says of each node; of a set [graphs, columns], what
    its readout is of. Ranks: all call."""
    return _gathered(classifier, classifier.embed_own())


def _gathered(classifier: Classifier, own: np.ndarray) -> np.ndarray:
    """Rows of all nodes, or of all graphs, from those of a rank [n_own, ...]. Ranks: all call."""
    block, members = classifier.block, classifier.members
    rows = classifier.group.gather_host(np.ascontiguousarray(own[: block.n_real]), block.rows.row_counts())
    return rows if members is None else rows[members.own_rows]


def _write(context: Context, loaded: Loaded, done: Classified) -> None:
    """weights.npz, predictions/NAME.txt, what [output] asks for by node, and the plots. Ranks: all call."""
    folder, group, case, classifier = context.folder, context.group, context.case, done.classifier
    members = loaded.members
    ids = ids_everywhere(group, loaded.graph, loaded.rows) if members is None else members.ids()
    predicted = gather_predictions(context, loaded, classifier, done.smoothed)
    with context.log.phase("write"), raise_together(group, "writing the results"):
        if group.rank == 0:
            note = f"{case.run.name}, seed {case.seed}, {done.fit.epochs} epochs"
            save_model(folder.file("weights.npz"), saved_of(done), note)
        folder.write_text(
            f"predictions/{loaded.graph.name}.txt", _predictions_text(ids, predicted, classifier.data)
        )
    if case.output.embeddings:
        embedded = gather_embeddings(context, classifier)
        with raise_together(group, "writing the embeddings"):
            folder.write_arrays(f"embeddings/{loaded.graph.name}.npz", ids=ids, embeddings=embedded)
    if case.output.probabilities:
        likely = gather_probabilities(context, classifier, done.smoothed)
        with raise_together(group, "writing the probabilities"):
            named = classifier.data.called(np.arange(likely.shape[1]))
            columns = {"classes": named, "probabilities": likely}
            folder.write_arrays(f"probabilities/{loaded.graph.name}.npz", ids=ids, **columns)
    if done.importance is not None:
        folder.write_text(f"importance/{loaded.graph.name}.csv", done.importance.text())
    if case.output.plots:
        plot_training(folder, context.log, done.fit.records, score=next(iter(classifier.goal.told)))
        plot_breakdown(folder, context.log, {loaded.graph.name: classifier.engine.seconds})


def _predictions_text(ids: np.ndarray, predicted: np.ndarray, data: NodeData) -> str:
    """Lines `id class`, `id class class ...` where a node may have several, of values `id number ...`.

    Those of one class are labels that `graph.node_data_by = "id"` reads.
    """
    blank = "\t" if between_names(data.class_names) == "\t" else blank_between(ids)
    return labels_text(plain_ids(ids), predicted, data, blank)


def labels_text(named: list[Any], predicted: np.ndarray, data: NodeData, blank: str) -> str:
    """The same of whatever is predicted, by what lines begin with; blank: what parts it from what follows."""
    if predicted.dtype.kind == "f":
        rows = ("".join(f"{blank}{value!s}" for value in row) for row in predicted)
        return "".join(f"{i}{each}\n" for i, each in zip(named, rows))
    if predicted.ndim == 1:
        called = [quoted(escaped(str(c))) for c in data.called(np.arange(len(data.class_ids))).tolist()]
        return "".join(f"{i}{blank}{called[c]}\n" for i, c in zip(named, predicted.tolist()))
    classes = (data.class_ids[np.flatnonzero(row)].tolist() for row in predicted)
    chosen = ("".join(f"{blank}{c}" for c in each) for each in classes)
    return "".join(f"{i}{each}\n" for i, each in zip(named, chosen))
