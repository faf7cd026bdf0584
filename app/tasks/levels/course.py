"""The course of all learning on graphs, whatever is predicted: check, set up, train, evaluate, tell.

What a level of predictions (gnn.level) brings to it are its Examples (examples.py, nodes.py, edges.py,
links.py).
"""

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from app.case.config import Case
from app.case.gnn import GnnCase
from app.comm.guard import check_same, digest, digest_text, raise_together
from app.errors import CaseError
from app.gnn.archive import arrays_of
from app.gnn.balanced import Balanced, cut_by, unlike
from app.gnn.classifier import Classifier
from app.gnn.conformal import Conformal, check_conformal, conform
from app.gnn.ensemble import Together, say_together
from app.gnn.explain.explanations import Explanations
from app.gnn.importance import Importance, importance, told_by
from app.gnn.missing import Filled
from app.gnn.saved import SavedModel, load_model
from app.gnn.smoothing import Smoothed, check_smoothing, probabilities_of, smooth
from app.gnn.training import Fit
from app.output import plain as as_json
from app.partition.cost import CostModel
from app.tasks.context import Context
from app.tasks.levels import said
from app.tasks.levels.examples import Examples
from app.tasks.levels.explained import check_explained, explained
from app.tasks.levels.members import classifying, train_members
from app.tasks.levels.whole import whole_where_small
from app.text import printable

ASKED = {"embed": "vectors"}  # by gnn.level, what weights are for where that is not its name


@dataclass
class Learned:
    """A network after its run: what it learned, and how good it is.

    context     that it learned in: with the ranks that share the graph, or this one by itself
    examples    as it has met them     digest   of its weights
    scores      by split               plain    those of plain rules, by rule
    smoothed    what Correct and Smooth makes of its probabilities; None: predictions are the network's
    importance  of features; None: nobody asked
    others      what training left of the other members (gnn.members)
    together    what all members say; None: there is one
    conformal   sets or intervals that hold the truth; None: nobody asked
    explained   predictions, by what made them; None: nobody asked
    filled      features that were missing; None: none may be
    """

    context: Context
    classifier: Classifier
    examples: Examples
    fit: Fit
    scores: Any
    digest: str
    plain: dict[str, Any] = field(default_factory=dict)
    smoothed: Smoothed | None = None
    importance: Importance | None = None
    others: tuple[Fit, ...] = ()
    together: Together | None = None
    conformal: Conformal | None = None
    explained: Explanations | None = None
    filled: Filled | None = None

    @property
    def fits(self) -> tuple[Fit, ...]:
        """Of all members."""
        return (self.fit, *self.others)

    @property
    def weights(self) -> dict[str, np.ndarray]:
        """Those of all members."""
        return arrays_of([each.weights for each in self.fits])

    def rows_own(self) -> np.ndarray:
        """[k, columns] float32 of own rows, by which the goal predicts. Ranks: all call."""
        return rows_of(self.classifier, self.together, self.smoothed)

    def probabilities_own(self) -> np.ndarray:
        """[k, classes] float32, how likely each class is for own rows. Ranks: all call."""
        return likely_of(self.classifier, self.together, self.smoothed)

    @property
    def final(self) -> Any:
        """Scores of what is predicted."""
        return self.scores if self.smoothed is None else self.smoothed.scores

    @property
    def saved(self) -> SavedModel:
        """What weights.npz holds."""
        classifier, about = self.classifier, self.classifier.about
        ids = about.class_ids if len(about.class_ids) else np.arange(classifier.classes)  # of links: columns
        return SavedModel(
            case=classifier.case, features=classifier.model.f_in, class_ids=ids,
            multilabel=classifier.goal.kind == "labels", arrays=self.fit.weights,
            neighbours=self.examples.heard, scale=getattr(classifier.goal, "scale", None),
            inputs=classifier.inputs, class_names=about.class_names, edges=classifier.edge_columns,
            links=getattr(classifier, "links", None), others=tuple(each.weights for each in self.others),
            means=None if self.filled is None else self.filled.means, positions=classifier.positions,
        )  # fmt: skip


def learn(context: Context, examples: Examples, model: SavedModel | None = None) -> Learned:
    """Train for gnn.epochs on examples, from gnn.weights where given; of those that are too small to be split
    each rank has all. Ranks: all call.

    model   the weights, where they are in memory
    """
    context, examples, saved = _checked(context, examples, model)
    with context.each_by_itself("setting up the network"):
        examples, gnn = _drawn(context, examples, saved)
        examples, filled, classifier, balanced = _set_up(context, examples, gnn, saved)
        names = examples.called(context) if context.case.output.explain else None
        check_explained(context, classifier, names)
    fits = train_members(context, classifying(context, examples, classifier, balanced, saved))
    with context.each_by_itself("evaluating the network"):
        done = _told(context, examples, gnn, classifier, balanced, fits)
        done.filled = filled
        done.explained = explained(context, classifier, names, fits, done.together)
    if context.alike is not None and context.case.run.check_every:
        scores = json.dumps(examples.named(done.final), default=as_json)
        both = digest_text({"weights": done.digest, "scores": scores})
        check_same(context.alike, both, "weights and scores after the training")
    return done


def _told(
    context: Context, examples: Examples, gnn: GnnCase, classifier: Classifier, balanced: Balanced | None,
    fits: list[Fit],
) -> Learned:  # fmt: skip
    """What is made of the trained weights of all members, and said of them. Ranks: all call."""
    weights = [each.weights for each in fits]
    with context.log.phase("evaluate"):
        together = say_together(classifier, weights) if len(fits) > 1 else None
        scores = examples.scores(classifier) if together is None else together.scores
        plain = examples.plain(classifier) if gnn.baselines else {}
    said.say_trainings(context, classifier, fits, together)
    examples.say_scores(context, classifier, scores)
    smoothed = smooth_after(context, classifier, together)
    conformal = conform_after(context, classifier, together, smoothed)
    examples.say_beside(context, classifier, scores, plain)
    asked = important_features(context, examples, classifier)
    said.advise(context, fits, gnn)
    if balanced:
        said.say_balance(context, balanced)
    first, *others = fits
    return Learned(
        context=context, classifier=classifier, examples=examples, fit=first, scores=scores,
        digest=digest(arrays_of(weights)), plain=plain, smoothed=smoothed, importance=asked,
        others=tuple(others), together=together, conformal=conformal,
    )  # fmt: skip


def _checked(
    context: Context, examples: Examples, model: SavedModel | None
) -> tuple[Context, Examples, SavedModel | None]:
    """Examples that can be learned from, and the ranks that do; the network's weights where some are given.
    Ranks: all call. Raises CaseError, GraphError."""
    case, group = context.case, context.group
    with raise_together(group, "checking the data"):
        saved = _weights_of(case.gnn, examples, model)
        gnn = case.gnn if saved is None else saved.architecture_of(case.gnn)
        examples.check(gnn, case.output.embeddings)
        if saved is not None:
            examples = examples.known_to(case.gnn.weights, saved)
            said.warn_of_weights(context, gnn, saved, examples)
    return *whole_where_small(context, examples, saved), saved


def _drawn(context: Context, examples: Examples, saved: SavedModel | None) -> tuple[Examples, GnnCase]:
    """Examples with their sets, and the network's table. Ranks: all call."""
    gnn = context.case.gnn if saved is None else saved.architecture_of(context.case.gnn)
    group, examples = context.group, examples.drawn(context)
    if not gnn.epochs and examples.about.labels is not None and not any(examples.counts.values()):
        examples = examples.all_tested(group)  # nothing is trained on: all can tell how good weights are
    said.warn_of_validation(context, gnn, examples.counts["val"], examples.lacking)
    return examples, gnn


def _weights_of(gnn: GnnCase, examples: Examples, model: SavedModel | None) -> SavedModel | None:
    """Saved weights that fit the examples, where some are given; model: those in memory."""
    if not gnn.weights:
        return None
    saved = model or load_model(gnn.weights)
    if saved.case.level != gnn.level:
        level = saved.case.level
        right = (
            f'weights for {ASKED.get(gnn.level, f"{gnn.level}s")}, or gnn.level = "{level}", would be right'
        )
        found = "makes vectors of nodes" if level == "embed" else f"says what {level}s are"
        raise CaseError(f"{printable(gnn.weights)}: {found}; {right}")
    examples.check_weights_fit(gnn.weights, saved)
    return saved


def _set_up(
    context: Context, examples: Examples, gnn: GnnCase, saved: SavedModel | None
) -> tuple[Examples, Filled | None, Classifier, Balanced | None]:
    """The examples with all features, and how they were filled; a network with weights drawn by the case's
    seed, or saved ones, and what moves its rows; the log tells of it. Ranks: all call. Raises CaseError for
    what it will not be able to tell."""
    case, log, block = context.case, context.log, examples.rows(context, gnn)
    if gnn.edge_weights and not block.adjacency.weighted:
        name = examples.loaded.graph.name
        log.info("warning: gnn.edge_weights: %s has no edge weights; every edge counts one", name)
    with log.phase("set up"):
        examples, filled = examples.filled(context, gnn, block, saved)
        classifier = examples.classifier(context, gnn, block, case.seed, saved)
        if saved is not None:
            classifier.params.set(saved.arrays)
        cost = cost_model_of(context, classifier)
        balanced = Balanced(classifier, cost) if follows(case) else None
    check_asked(case, classifier)
    examples.say_model(context, classifier)
    if filled is not None:
        log.info("%s", filled.line())
    if classifier.positions is not None:
        log.info("%s", classifier.said_positions())
    return examples, filled, classifier, balanced


def rows_of(classifier: Classifier, together: Together | None, smoothed: Smoothed | None) -> np.ndarray:
    """[k, columns] float32 of own rows, by which the goal predicts: smoothed ones, those of all members, or
    the network's scores. Ranks: all call."""
    if smoothed is not None:
        return smoothed.rows
    return classifier.scores_own() if together is None else together.rows


def likely_of(classifier: Classifier, together: Together | None, smoothed: Smoothed | None) -> np.ndarray:
    """[k, classes] float32, how likely each class is for own rows, by the same. Ranks: all call."""
    if smoothed is not None:
        return probabilities_of(smoothed.rows)
    return classifier.probabilities_own() if together is None else together.probabilities


# ---- parts of it that studies have too --------------------------------------------------------------------


def check_asked(case: Case, classifier: Classifier) -> None:
    """Refuse, before there is training to lose, what the network will not be able to tell. Raises
    CaseError."""
    check_smoothing(case.smooth, classifier.goal.kind, classifier.data)
    for key in ("embeddings", "importance"):
        if classifier.case.members > 1 and getattr(case.output, key):
            found = f"is of one network, here are {classifier.case.members}"
            raise CaseError(f"output.{key}: {found}; leave it out")
    check_conformal(case.output.coverage, classifier.goal.kind, classifier.about)
    if case.output.importance:
        told_by(classifier)
    if case.output.probabilities and classifier.goal.kind == "values":
        raise CaseError("output.probabilities: numbers have none, only classes; false would be right")


def smooth_after(context: Context, classifier: Classifier, together: Together | None) -> Smoothed | None:
    """What [smooth] makes of a trained network's probabilities, or of those of all members, which the log
    tells. Ranks: all call."""
    case = context.case.smooth
    if case.method == "none":
        return None
    with context.log.phase("smooth"):
        found = smooth(classifier, case, None if together is None else together.probabilities)
    said.say_smoothed(context, classifier, found)
    return found


def conform_after(
    context: Context, classifier: Classifier, together: Together | None, smoothed: Smoothed | None
) -> Conformal | None:
    """Sets of classes, or intervals, where output.coverage asks for them, of which the log tells. Ranks: all
    call."""
    coverage = context.case.output.coverage
    if not coverage:
        return None
    with context.log.phase("evaluate"):
        of = rows_of if classifier.goal.kind == "values" else likely_of
        found = conform(classifier, of(classifier, together, smoothed), coverage)
    said.say_conformal(context, classifier, found)
    return found


def important_features(context: Context, examples: Examples, classifier: Classifier) -> Importance | None:
    """What scores lose without some features, where that is asked for; the log tells it. Ranks: all call."""
    most = context.case.output.importance
    if not most:
        return None
    with context.log.phase("importance"):
        found = importance(classifier, most, examples.measure)
    for line in found.lines(said.TOLD):
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
