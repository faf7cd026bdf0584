"""Which nodes of a graph are joined (gnn.level = "link"): edges held out, predictions, proposals."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from msgspec import structs

from app.case.config import Case
from app.case.gnn import GnnCase
from app.case.links import LinksCase
from app.comm.guard import raise_together
from app.errors import CaseError
from app.gnn.archive import replaced
from app.gnn.classifier import Classifier
from app.gnn.importance import Measured
from app.gnn.known import NOTHING
from app.gnn.links.plain import plain_scores, rules_of
from app.gnn.links.predictor import LinkPredictor, told_of
from app.gnn.links.ranking import EACH
from app.gnn.links.scores import HITS, LinkScores
from app.gnn.links.sides import Sides
from app.gnn.links.split import TEST, VAL, LinkSplit, Spans, spans_of, split_edges
from app.gnn.saved import SavedModel
from app.gnn.watch import WORDS
from app.graphs.nodes.data import NodeData
from app.memory.tiers import TierBudget
from app.partition.ids import ids_everywhere
from app.partition.loaded import Loaded
from app.sparse.rowblock import RowBlock
from app.tasks.context import Context
from app.tasks.levels import said
from app.tasks.levels.course import Learned
from app.tasks.levels.examples import Examples, check_weights
from app.tasks.levels.explained import PairNames
from app.tasks.levels.found_links import Found, find, gather_rows, write_found
from app.tasks.levels.given_pairs import GivenPairs, read_pairs, sides_of
from app.tasks.levels.reading import load

HELD = ("val", "test")
RULES = {
    "common_neighbours": "common neighbours",
    "adamic_adar": "Adamic/Adar",
    "paths_3": "paths of length 3",
    "l3": "L3",
    "degrees": "product of degrees",
}


@dataclass(frozen=True)
class LinkFolds:
    """How edges are dealt to folds: each by itself, as edges are held out (gnn/links/split.py)."""

    sides: Sides | None
    seed: int
    count: int

    def spans(self, fold: int, validated: bool) -> Spans:
        """The tested fold, and the next one for validation, as spans of [0, 1) that edges are drawn to."""
        numbers = {TEST: fold} | ({VAL: (fold + 1) % self.count} if validated else {})
        return {kind: (at / self.count, (at + 1) / self.count) for kind, at in numbers.items()}


@dataclass(frozen=True)
class LinkExamples(Examples):
    """Edges of a graph, some of them held out.

    split   by what edges are for; None: not drawn yet     applied   weights are, and not trained
    names   of nodes, in the order of a caller; None: the ids of the file
    """

    links: LinksCase
    given: GivenPairs = field(default_factory=GivenPairs)
    split: LinkSplit | None = None
    applied: bool = False
    names: tuple[Any, ...] | None = None

    counted: ClassVar[str] = "edges"

    @property
    def beside(self) -> tuple[str, ...]:
        """See Examples."""
        return tuple(f"test_{rule}" for rule in rules_of(self.links.between == "sides"))

    @property
    def measures(self) -> tuple[str, ...]:
        """See Examples."""
        ranked = [f"{name}_{self.links.rank_each}" for name in EACH if self.links.rank_each]
        return ("auc", "ap", *(f"hits_{k}" for k in HITS), *ranked)

    @property
    def what(self) -> str:
        """See Examples."""
        return "edge"

    @property
    def counts(self) -> dict[str, int]:
        """See Examples; of held-out ones those that scores can be told by."""
        held = {name: self.split.sets[name].told for name in HELD}
        return {"train": self.learned.graph.edges} | held

    @property
    def learned(self) -> Loaded:
        """See Examples; without the edges that are held out, once these are drawn."""
        return self.split.loaded if self.split else self.loaded

    @property
    def lacking(self) -> str:
        """See Examples."""
        return "pairs without an edge" if len(self.split.sets["val"].joined) else "edges"

    def check(self, gnn: GnnCase, embeddings: bool) -> None:
        """See Examples; there are no labels."""
        self.check_data(gnn)

    def check_data(self, gnn: GnnCase) -> None:
        """See Examples."""
        check_weights(gnn, self.loaded)
        refuse_without_edges(self.loaded)

    def known_to(self, path: str, saved: SavedModel) -> Self:
        """See Examples; with the columns of the weights, and the loss that they have learned, without which
        their scores mean something else. Weights that are trained further may go on with another one."""
        known, usual = {"dimension": saved.classes}, LinksCase().loss
        if saved.links is not None and (self.applied or self.links.loss == usual):
            known["loss"] = saved.links.loss
        return replace(self, links=structs.replace(self.links, **known))

    def brought(self, case: Case, gnn: GnnCase) -> str:
        """See Examples; with the keys of [links]."""
        parts = super().brought(case, gnn), replaced("links", case.links, self.links)
        return ", ".join(part for part in parts if part)

    def strange_to(self, saved: SavedModel) -> Iterator[str]:
        """See Examples."""
        yield from super().strange_to(saved)
        here = self.links.between
        if saved.links is not None and saved.links.between != here:
            yield f'have learned with links.between = "{saved.links.between}"; here pairs are of "{here}"'

    def drawn(self, context: Context) -> Self:
        """See Examples."""
        links, given, group = self.links, self.given, context.group
        with context.log.phase("set up"):
            spans = spans_of(0.0 if given.val is not None else links.validation, links.held_out)
            sides = sides_of(context, self.loaded, given)
            split = split_edges(group, self.loaded, spans, context.case.seed, given.val, given.test, sides)
        _say_split(context, split)
        return replace(self, split=split)

    def rows(self, context: Context, gnn: GnnCase) -> RowBlock:
        """See Examples; of the edges that are learned from."""
        return context.rows(self.learned, max(gnn.hidden, self.links.dimension))

    def classifier(
        self, context: Context, gnn: GnnCase, block: RowBlock, seed: int, saved: SavedModel | None = None,
        budget: TierBudget | None = None,
    ) -> LinkPredictor:  # fmt: skip
        """See Examples."""
        known, budget = saved.known if saved else NOTHING, budget or TierBudget.of(context.case.memory)
        own = data_of_links(self.data, self.split, block)
        return LinkPredictor(context.group, gnn, self.links, block, own, self.split, seed, known, budget)

    def called(self, context: Context) -> PairNames:
        """See Examples."""
        return PairNames(context, self.loaded, None if self.names is None else list(self.names))

    def plain(self, classifier: LinkPredictor) -> dict[str, dict[str, LinkScores]]:
        """See Examples."""
        ranking = classifier.ranking(HELD if self.links.rank_each else ())
        return plain_scores(classifier.group, self.split, ranking)

    @property
    def measure(self) -> Callable[[Classifier, str], Measured]:
        """See Examples."""
        return lambda predictor, name: (predictor.evaluate()[name].auc, math.nan)

    def rules(self, classifier: LinkPredictor) -> dict[str, str]:
        """See Examples; a column for each rule."""
        return {f"test_{rule}": rule for rule in RULES}

    def tried(self, links: LinksCase) -> Self:
        """See Examples; the edges that are held out stay."""
        return replace(self, links=links)

    def test_score(
        self, classifier: LinkPredictor, scores: dict[str, LinkScores], watch: str
    ) -> tuple[str, float]:
        """See Examples; of rankings that are watched the same of the test set."""
        name = watch.removeprefix("val_")
        if name not in EACH:
            return super().test_score(classifier, scores, watch)
        return WORDS[name], getattr(classifier.evaluate_ranking()["test"], name)

    def refuse_untold(self, splits: bool) -> None:
        """See Examples; an edge is its own label."""
        refuse_without_edges(self.loaded)

    def folds(self, context: Context, seed: int, folds: int) -> LinkFolds:
        """Sides, seed and number of folds, which say with its ends what fold an edge is in."""
        if self.loaded.graph.edges < folds:
            right = (
                f"at most {self.loaded.graph.edges}, the edges of {self.loaded.graph.name}, would be right"
            )
            raise CaseError(f"study.folds: found {folds}; {right}")
        return LinkFolds(sides_of(context, self.loaded, self.given), seed, folds)

    def of_fold(self, context: Context, drawn: LinkFolds, fold: int, held_back: int) -> Self:
        """See Examples; those of the tested fold and of the one for validation are held out."""
        spans = drawn.spans(fold, held_back > 1)
        group, of = context.group, {"sides": drawn.sides, "folds": drawn.count}
        split = split_edges(group, self.loaded, spans, drawn.seed, **of)
        return replace(self, split=split)

    def predicted(self, classifier: LinkPredictor, Z_own: np.ndarray) -> np.ndarray:
        """[k] float32, of the tested edges; the same on all ranks."""
        return told_of(self.links, classifier.score_pairs(self.split.sets["test"].joined))

    def answer(self, context: Context, done: Learned) -> Found:
        """See Examples."""
        told = self.split.held if self.given.asked is None else self.given.asked
        with context.log.phase("predict"):
            return find(done.classifier, told, self.given.nodes)

    def digested(self, answer: Found) -> dict[str, np.ndarray]:
        """See Examples."""
        found = {"pairs": answer.told[0], "likely": answer.told[1], "proposed": answer.proposed[0]}
        return found if answer.each is None else found | {"each": answer.each[0].nodes}

    def sizes(self, context: Context) -> dict[str, Any]:
        """See Examples."""
        graph = self.loaded.graph
        learned = {"train_edges": self.split.loaded.graph.edges}
        return {"name": graph.name, "nodes": graph.n, "edges": graph.edges, **learned}

    def named(self, scores: dict[str, LinkScores]) -> dict[str, float | None]:
        """See Examples."""
        return {
            f"{split}_{name}": value if value == value else None
            for split, each in scores.items()
            for name, value in each.named().items()
        }

    def say_model(self, context: Context, classifier: LinkPredictor) -> None:
        """See Examples; what is learned has been told with the split."""
        said.say_layers(context, classifier, f"{classifier.data.width} features; ")

    def say_scores(self, context: Context, classifier: LinkPredictor, scores: dict[str, LinkScores]) -> None:
        """Nothing: `say_beside` has them in one table with those of plain rules."""

    def say_beside(
        self, context: Context, classifier: LinkPredictor, scores: dict[str, LinkScores],
        plain: dict[str, dict[str, LinkScores]],
    ) -> None:  # fmt: skip
        """How good scores of held-out edges are beside those of plain rules."""
        for name in HELD:
            if scores[name].pairs:
                rows = {"learned": scores[name]} | {RULES[rule]: each[name] for rule, each in plain.items()}
                _say_rows(context, name, rows)

    def write_answer(self, context: Context, done: Learned, answer: Found) -> None:
        """See Examples."""
        folder, group, graph = context.folder, context.group, self.loaded.graph
        ids = ids_everywhere(group, graph, self.loaded.rows)
        write_found(context, graph.name, ids, answer)
        if context.case.output.embeddings:
            rows = gather_rows(done.classifier)
            with raise_together(group, "writing the embeddings"):
                folder.write_arrays(f"embeddings/{graph.name}.npz", ids=ids, embeddings=rows)


def refuse_without_edges(loaded: Loaded) -> None:
    """Raise CaseError where there is nothing to learn from."""
    if not loaded.graph.edges:
        right = "a graph with edges would be right"
        raise CaseError(f"{loaded.graph.name}: has no edges, and links are learned from them; {right}")


def read_links(context: Context) -> LinkExamples:
    """The edges of a case's graph, and the pairs that it names. Ranks: all call."""
    loaded, data = load(context)
    given, applied = read_pairs(context, loaded), not context.case.gnn.epochs
    return LinkExamples(loaded, data, context.case.links, given, applied=applied)


def data_of_links(data: NodeData, split: LinkSplit, block: RowBlock) -> NodeData:
    """Features of nodes, all of which are learned from, without labels."""
    none, counts = (
        np.zeros(block.n_own, dtype=bool),
        {name: each.told for name, each in split.sets.items()},
    )
    return NodeData(
        features=data.features, labels=None, labelled=none, train=np.arange(block.n_own) < block.n_real,
        val=none, test=none, classes=0, multilabel=False, class_ids=np.empty(0, dtype=np.int64),
        width=data.width, binary=data.binary, counts=counts | {"train": split.loaded.graph.n},
        numbers=data.numbers, columns=data.columns,
    )  # fmt: skip


# ---- what is said -----------------------------------------------------------------------------------------


def _say_split(context: Context, split: LinkSplit) -> None:
    """How many edges are for what."""
    graph, sets = split.loaded.graph, split.sets
    context.log.info(
        "%s: %d nodes; %d edges to learn from, %d to choose the weights by, %d held out",
        graph.name, graph.n, graph.edges, len(sets["val"].joined), len(sets["test"].joined),
    )  # fmt: skip
    for name in ("val", "test"):
        wanted, found = (len(each) for each in (sets[name].joined, sets[name].apart))
        if found < wanted:
            context.log.info(
                "warning: only %d pairs that no edge joins were found beside %d of %s", found, wanted, name
            )


def _say_rows(context: Context, name: str, rows: dict[str, LinkScores]) -> None:
    """Scores of a split, by rule in words."""
    log = context.log
    for rule, each in rows.items():
        hits = "".join(f"  hits@{k} {share:.4f}" for k, share in each.hits.items())
        log.info("%-5s %-18s AUC %.4f  AP %.4f%s", name, rule, each.auc, each.ap, hits)
    for rule, each in rows.items():
        if each.each is not None:
            k, found = each.each.k, (each.recall, each.precision, each.ndcg)
            words = f"{name:5} {rule:18} recall@{k} %.4f  precision@{k} %.4f  NDCG@{k} %.4f  (%d nodes)"
            log.info(words, *found, each.each.nodes)
