"""What a level of predictions brings to the course of learning: the graph, what is known of it, its words."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import isnan
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from app.case.config import Case
from app.case.gnn import GnnCase
from app.case.links import LinksCase
from app.comm.group import Group
from app.errors import CaseError
from app.gnn.archive import replaced
from app.gnn.classifier import Classifier
from app.gnn.importance import Measured
from app.gnn.inputs import feature_room
from app.gnn.missing import Filled, fill
from app.gnn.model import BETWEEN
from app.gnn.saved import SavedModel, check_edges, check_fits, check_known
from app.graphs.nodes.data import NodeData, no_labels
from app.memory.tiers import TierBudget
from app.partition.loaded import Loaded
from app.partition.whole import held_whole
from app.partition.whole_data import whole_nodes
from app.sparse.rowblock import RowBlock
from app.tasks.context import Context
from app.tasks.levels import said

if TYPE_CHECKING:
    from app.tasks.levels.course import Learned

MEASURES = ("accuracy", "micro_f1", "macro_f1", "auc", "ap", "r2", "rmse", "mae")


@dataclass(frozen=True)
class Examples(ABC):
    """A graph and what is known of it: what networks of a level learn from.

    loaded    the whole graph
    data      features of its nodes, and their labels where these are learned
    splits_key   what names the sets of what is learned
    counted      what sets have, in columns of tables
    """

    loaded: Loaded
    data: NodeData

    splits_key: ClassVar[str] = "graph.splits"
    counted: ClassVar[str] = "nodes"

    @property
    @abstractmethod
    def what(self) -> str:
        """One of the things that are told apart, in words."""

    @property
    def counts(self) -> dict[str, int]:
        """How many of them are in each set."""
        return self.about.counts

    @property
    def about(self) -> NodeData:
        """Their labels and sets."""
        return self.data

    @property
    @abstractmethod
    def beside(self) -> tuple[str, ...]:
        """Columns of the test scores of plain rules."""

    @property
    def measures(self) -> tuple[str, ...]:
        """How good predictions of a test set are, by the names that scores have."""
        return MEASURES

    @property
    def heard(self) -> str:
        """The neighbours that a node hears (graph.neighbours, "both" of an undirected graph)."""
        return "both"

    def check(self, gnn: GnnCase, embeddings: bool) -> None:
        """Refuse what cannot be learned from. Raises CaseError, of own rows perhaps on some ranks alone."""
        self.check_data(gnn)
        check_labels(gnn, self.about, self.what, self.splits_key)
        if embeddings:
            check_embeddings(gnn)

    def check_data(self, gnn: GnnCase) -> None:
        """Refuse what any training on this graph with these labels refuses, whatever its sets are. Raises as
        `check` does."""
        check_weights(gnn, self.loaded)
        check_class_weights(gnn, self.about, self.what)

    def check_weights_fit(self, path: str, saved: SavedModel) -> None:
        """Refuse weights for other features. Raises GraphError, CaseError."""
        own = 0 if saved.case.positions else self.loaded.graph.n
        check_fits(path, saved, self.data.width or own)
        check_known(path, saved, self.data.features)
        check_edges(path, saved, self.data.edges)

    @abstractmethod
    def known_to(self, path: str, saved: SavedModel) -> Self:
        """These examples as trained weights number their classes. Raises GraphError."""

    def brought(self, case: Case, gnn: GnnCase) -> str:
        """The keys that a case sets and weights have otherwise, as they have them; "" where none is.

        gnn   with the layers of the weights
        """
        return replaced("gnn", case.gnn, gnn)

    def strange_to(self, saved: SavedModel) -> Iterator[str]:
        """What weights have learned with, and what is here instead."""
        if saved.neighbours != self.heard:
            learned = f'have learned with graph.neighbours = "{saved.neighbours}"'
            yield f'{learned}; here nodes hear "{self.heard}"'

    @property
    def learned(self) -> Loaded:
        """The graph that layers multiply by."""
        return self.loaded

    def whole(self, group: Group) -> Self:
        """These with all rows of all ranks on this one. Ranks: all call."""
        loaded, data = self.loaded, whole_nodes(group, self.data, self.loaded.rows)
        return replace(self, loaded=held_whole(group, loaded), data=data)

    @property
    def lacking(self) -> str:
        """What there is none of, in words, where nothing is in the validation set."""
        return f"{self.what}s"

    def drawn(self, context: Context) -> Self:
        """With the sets that the case's seed draws, where reading has drawn none. Ranks: all call."""
        return self

    def all_tested(self, group: Group) -> Self:
        """All labelled ones in the test set. Ranks: all call."""
        return self

    def filled(
        self, context: Context, gnn: GnnCase, block: RowBlock, saved: SavedModel | None
    ) -> tuple[Self, Filled | None]:
        """These with all features, and how they were filled; None: none may be missing. Ranks: all call."""
        if gnn.missing_features == "refuse":
            return self, None
        way, members = (gnn.missing_features, gnn.edge_weights), self.loaded.members
        means = None if saved is None else saved.means
        budget = TierBudget.of(context.case.memory)
        room = feature_room(budget, context.device), budget.limit
        data, found = fill(context.group, self.data, block, *way, members, means, *room)
        return replace(self, data=data), found

    def rows(self, context: Context, gnn: GnnCase) -> RowBlock:
        """The device rows that layers multiply by. Ranks: all call."""
        return context.rows(self.loaded, gnn.hidden if self.data.edges is None else 0)

    @abstractmethod
    def classifier(
        self, context: Context, gnn: GnnCase, block: RowBlock, seed: int, saved: SavedModel | None = None,
        budget: TierBudget | None = None,
    ) -> Classifier:  # fmt: skip
        """A network with weights drawn for a seed, or saved ones. Ranks: all call.

        budget   a limit of memory in place of [memory]'s
        """

    @abstractmethod
    def plain(self, classifier: Classifier) -> dict[str, Any]:
        """How good plain rules are, by rule. Ranks: all call."""

    def plain_tests(self, classifier: Classifier) -> dict[str, float | None]:
        """Test scores of plain rules by columns of `beside`, where gnn.baselines asks for them; all call."""
        found = self.plain(classifier) if classifier.case.baselines else {}
        scores = {
            rule: None if isnan(each["test"].score) else each["test"].score for rule, each in found.items()
        }
        columns = self.rules(classifier)
        return {column: scores.get(columns.get(column, "")) for column in self.beside}

    @abstractmethod
    def rules(self, classifier: Classifier) -> dict[str, str]:
        """Plain rules by columns of `beside`."""

    @property
    def measure(self) -> Callable[[Classifier, str], Measured] | None:
        """Score and loss of a set, for the importance of features; None: those of its labels."""
        return None

    def called(self, context: Context) -> Any:
        """What rows of predictions are called (explained.py: Names), where these can be explained; None: they
        cannot. Ranks: all call."""
        return None

    @abstractmethod
    def answer(self, context: Context, done: "Learned") -> Any:
        """What the network says. Ranks: all call. Raises Diverged where scores are not finite."""

    @abstractmethod
    def digested(self, answer: Any) -> dict[str, np.ndarray]:
        """The arrays of an answer that the run's digest is of."""

    @abstractmethod
    def sizes(self, context: Context) -> dict[str, Any]:
        """What result.json tells of the graph. Ranks: all call."""

    @abstractmethod
    def named(self, scores: Any) -> dict[str, float | None]:
        """Scores by split and name, None where nothing tells them."""

    def scores(self, classifier: Classifier) -> Any:
        """How good the weights are that training leaves, or that are applied. Ranks: all call."""
        return classifier.evaluate_ranking()

    def recorder(self, context: Context, name: str = "") -> Callable[[dict[str, float]], None]:
        """What training calls with each record; name: of the network, where there are several."""
        return said.recorder(context, name)

    def say_model(self, context: Context, classifier: Classifier) -> None:
        """The graph, the layers, and the memory of their buffers. Ranks: all call."""
        said.say_labels(context, self.loaded, classifier)
        said.say_layers(context, classifier)

    def say_scores(self, context: Context, classifier: Classifier, scores: Any) -> None:
        """How good the weights are that training leaves."""
        said.say_scores(context, classifier, scores)

    def say_beside(self, context: Context, classifier: Classifier, scores: Any, plain: Any) -> None:
        """How good plain rules are."""
        said.say_beside(context, classifier, plain)

    def tried(self, links: LinksCase) -> Self:
        """These with other ways of scoring pairs, where they are scored."""
        return self

    def test_score(self, classifier: Classifier, scores: Any, watch: str) -> tuple[str, float]:
        """In what words, and how good, predictions of the test set are. Ranks: all call."""
        return next(iter(classifier.goal.told)), scores["test"].score

    # ---- cross-validation -------------------------------------------------------------------------------

    def refuse_untold(self, splits: bool) -> None:
        """Refuse, for a study, examples without labels, or without sets that it does not draw. Raises
        CaseError."""
        name, told = self.loaded.graph.name, self.about.classes
        if not told and not splits:
            raise CaseError(f"{name}: the study needs labels (docs/formats.md)")
        if splits and not (told and self.counts["train"]):
            raise CaseError(f"{name}: the study needs labels and splits (docs/formats.md)")

    def lacking_folds(self, group: Group, folds: int) -> Iterator[str]:
        """What to say of classes that some folds have none of. Ranks: all call."""
        yield from ()

    @abstractmethod
    def folds(self, context: Context, seed: int, folds: int) -> Any:
        """What `of_fold` needs to tell folds apart. Ranks: all call. Raises CaseError where there are more
        folds than there is to be told apart."""

    @abstractmethod
    def of_fold(self, context: Context, drawn: Any, fold: int, held_back: int) -> Self:
        """These with a fold tested, the next one for validation, and all others trained on.

        drawn       what `folds` has found
        held_back   the number of folds that are not trained on, 1: there is no validation
        Ranks       all call
        """

    def predicted(self, classifier: Classifier, Z_own: np.ndarray) -> np.ndarray:
        """What own rows of scores, or of smoothed ones, say, [n_own, ...]. Ranks: all call."""
        return classifier.goal.predicted(Z_own)

    @abstractmethod
    def write_answer(self, context: Context, done: "Learned", answer: Any) -> None:
        """predictions/ and what [output] asks for beside. Ranks: all call."""


def check_weights(gnn: GnnCase, loaded: Loaded) -> None:
    """Refuse negative weights of edges, where they count. Raises CaseError."""
    given = [each for each in (loaded.graph.weights, loaded.graph.transpose_weights) if each is not None]
    if gnn.edge_weights and any((each < 0).any() for each in given):
        raise CaseError("gnn.edge_weights: the graph has negative weights; leave the key out")


def check_labels(gnn: GnnCase, about: NodeData, what: str, splits_key: str) -> None:
    """Refuse labels that cannot be learned. Raises CaseError."""
    if not about.classes and not gnn.weights:
        raise CaseError(no_labels(what))
    if gnn.epochs and not about.counts["train"]:
        right = f"set {splits_key} (or gnn.epochs = 0 to apply weights)"
        raise CaseError(f"no {what} is to be trained on: {right}")


def check_class_weights(gnn: GnnCase, about: NodeData, what: str) -> None:
    """Refuse weights of classes where labels are not of one class each. Raises CaseError."""
    if gnn.epochs and gnn.class_weights == "balanced" and (about.multilabel or about.values):
        each = f"an {what}" if what == "edge" else f"a {what}"
        raise CaseError(f'gnn.class_weights: balanced is for one class {each}; "equal" would be right')


def check_embeddings(gnn: GnnCase) -> None:
    """Refuse to tell what the last layer reads where there is no other. Raises CaseError."""
    if (len(gnn.layers) or gnn.depth) == 1 and gnn.model not in BETWEEN:
        raise CaseError("output.embeddings: of one layer there are none; false would be right")
