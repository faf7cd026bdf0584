"""Which nodes of a graph are joined (gnn.level = "link"): edges held out, predictions, proposals."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from msgspec import structs

from app.case.config import Case
from app.case.gnn import GnnCase, LinksCase
from app.comm.group import Group
from app.comm.guard import raise_together
from app.errors import CaseError
from app.gnn.archive import replaced
from app.gnn.classifier import Classifier
from app.gnn.importance import Measured
from app.gnn.links.best import Partners
from app.gnn.links.plain import plain_scores, rules_of
from app.gnn.links.predictor import LinkPredictor, told_of
from app.gnn.links.propose import propose, propose_each
from app.gnn.links.ranking import EACH
from app.gnn.links.scores import HITS, LinkScores
from app.gnn.links.sides import Sides, coloured_sides, given_sides, refuse_within
from app.gnn.links.split import TEST, VAL, LinkSplit, Spans, spans_of, split_edges
from app.gnn.loss import refuse_infinite_rows
from app.gnn.saved import SavedModel
from app.gnn.watch import WORDS
from app.graphs.ids import blank_between, plain_ids
from app.graphs.nodes.data import NodeData
from app.memory.tiers import TierBudget
from app.partition.generators import second_side
from app.partition.ids import ids_everywhere, ids_on_first
from app.partition.load import Loaded
from app.partition.pairs import pairs_of_file, rows_of_pairs
from app.search.solution_text import read_nodes, read_sides
from app.sparse.rowblock import RowBlock
from app.tasks.context import Context
from app.tasks.levels import said
from app.tasks.levels.course import Examples, Learned, check_weights
from app.tasks.levels.reading import load
from app.text import printable

LINES = 1 << 16  # of a file that are made at a time
NAMES = {"val": "links.val_edges", "test": "links.test_edges", "asked": "links.pairs"}  # of given pairs
HELD = ("val", "test")
RULES = {
    "common_neighbours": "common neighbours",
    "adamic_adar": "Adamic/Adar",
    "paths_3": "paths of length 3",
    "l3": "L3",
    "degrees": "product of degrees",
}


@dataclass
class GivenPairs:
    """Pairs that a case names, as rows [k, 2] u < v on all ranks, and nodes; None: none are given.

    val, test   the edges that are held out     asked   those that predictions tell of
    first       [n] bool, the rows of the first of two sides
    nodes       [k] the rows that partners are proposed for
    """

    val: np.ndarray | None = None
    test: np.ndarray | None = None
    asked: np.ndarray | None = None
    first: np.ndarray | None = None
    nodes: np.ndarray | None = None


@dataclass(frozen=True)
class Found:
    """What a predictor of links says.

    told      [k, 2] the pairs that predictions tell of, and how likely [k] each is to be joined
    proposed  [p, 2] and [p], the likeliest pairs that no edge joins
    each      the best partners of each node, and how likely [k, K] they are; None: nobody asked
    """

    told: tuple[np.ndarray, np.ndarray]
    proposed: tuple[np.ndarray, np.ndarray]
    each: tuple[Partners, np.ndarray] | None


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
    """

    links: LinksCase
    given: GivenPairs = field(default_factory=GivenPairs)
    split: LinkSplit | None = None
    applied: bool = False

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
        own = data_of_links(self.data, self.split, block)
        return LinkPredictor(
            context.group, gnn, self.links, block, own, self.split, seed, saved.inputs if saved else None,
            budget or TierBudget.of(context.case.memory),
        )  # fmt: skip

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
        split = split_edges(context.group, self.loaded, spans, drawn.seed, sides=drawn.sides)
        return replace(self, split=split)

    def predicted(self, classifier: LinkPredictor, Z_own: np.ndarray) -> np.ndarray:
        """[k] float32, of the tested edges; the same on all ranks."""
        return told_of(self.links, classifier.score_pairs(self.split.sets["test"].joined))

    def answer(self, context: Context, done: Learned) -> Found:
        """See Examples."""
        predictor, links, given = done.classifier, self.links, self.given
        with context.log.phase("predict"):
            told = self.split.held if given.asked is None else given.asked
            proposed = propose(predictor, links.propose) if links.propose else told[:0]
            both = [(pairs, _likely(predictor, pairs)) for pairs in (told, proposed)]
            each = _likely_each(predictor, given.nodes) if links.propose_each else None
        return Found(*both, each)

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
        with raise_together(group, "writing the predictions"):
            folder.write_text(f"predictions/{graph.name}.txt", _pairs_text(ids, *answer.told))
            if self.links.propose:
                folder.write_text(f"proposed/{graph.name}.txt", _pairs_text(ids, *answer.proposed))
            if answer.each is not None and group.rank == 0:
                with folder.placed(f"proposed_each/{graph.name}.txt") as file:
                    for pairs, likely in pairs_of_each(*answer.each):
                        file.write(_pairs_text(ids, pairs, likely).encode())
        if context.case.output.embeddings:
            rows = gather_rows(done)
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


def read_pairs(context: Context, loaded: Loaded) -> GivenPairs:
    """The pairs and nodes of the files that [links] names. Ranks: all call."""
    links, group, found = context.case.links, context.group, []
    with context.log.phase("read"):
        for path in (links.val_edges, links.test_edges, links.pairs):
            ids = pairs_of_file(group, context.case, path) if path else None
            found.append(None if ids is None else rows_of_pairs(group, loaded, ids, printable(path)))
        first = _flags_of(group, loaded, links.sides, read_sides)
        nodes = _flags_of(group, loaded, links.propose_for, read_nodes)
    first = None if first is None else ~first
    return GivenPairs(*found, first, None if nodes is None else np.flatnonzero(nodes))


def _flags_of(
    group: Group, loaded: Loaded, path: str, read: Callable[[str, np.ndarray], np.ndarray]
) -> np.ndarray | None:
    """[n] bool on all ranks, what a file says of the rows; None: there is no file. Ranks: all call."""
    if not path:
        return None
    ids, flags = ids_on_first(group, loaded.graph, loaded.rows), np.zeros(loaded.graph.n, dtype=np.uint8)
    with raise_together(group, "reading nodes"):
        if group.rank == 0:
            flags[:] = read(path, ids)
    return group.broadcast(flags).astype(bool)


def sides_of(context: Context, loaded: Loaded, given: GivenPairs) -> Sides | None:
    """The two kinds of nodes that pairs are of; None: pairs are of any two nodes. Ranks: all call.

    Raises CaseError where pairs or edges are within a side, or no two sides are there
    """
    group = context.group
    if context.case.links.between == "any":
        return None
    if given.first is not None:
        sides = given_sides(given.first, loaded, group)
    elif loaded.source == "generator" and context.case.graph.generator == "bipartite":
        old = np.arange(loaded.graph.n) if loaded.order_all is None else loaded.order_all
        sides = given_sides(old < len(old) - second_side(context.case.graph, len(old)), loaded, group)
    else:
        sides = coloured_sides(loaded, group)
    for what in ("val", "test", "asked"):
        if (pairs := getattr(given, what)) is not None:
            refuse_within(sides, pairs, NAMES[what], loaded, group)
    return sides


def data_of_links(data: NodeData, split: LinkSplit, block: RowBlock) -> NodeData:
    """Features of nodes, all of which are learned from, without labels."""
    none, counts = (
        np.zeros(block.n_own, dtype=bool),
        {name: each.told for name, each in split.sets.items()},
    )
    return NodeData(
        data.features, None, none, np.arange(block.n_own) < block.n_real, none, none, 0, False,
        np.empty(0, dtype=np.int64), data.width, data.binary, counts | {"train": split.loaded.graph.n},
        numbers=data.numbers,
    )  # fmt: skip


def _likely(predictor: LinkPredictor, pairs: np.ndarray) -> np.ndarray:
    """[k] float32. Ranks: all call. Raises NumericsError where scores are not finite."""
    scores = predictor.score_pairs(pairs)
    refuse_infinite_rows(predictor.group, scores[:, None] if predictor.group.rank == 0 else scores[:0, None])
    return told_of(predictor.links, scores)


def _likely_each(predictor: LinkPredictor, rows: np.ndarray | None) -> tuple[Partners, np.ndarray]:
    """What Found.each holds, of the nodes of some rows or of all. Ranks: all call."""
    found = propose_each(predictor, predictor.links.propose_each, rows)
    told = np.where(found.nodes >= 0, found.scores, 0)
    refuse_infinite_rows(predictor.group, told if predictor.group.rank == 0 else told[:0])
    return found, told_of(predictor.links, found.scores)


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


# ---- what is written --------------------------------------------------------------------------------------


def gather_rows(done: Learned) -> np.ndarray:
    """[n, d] float32, the rows whose products score pairs. Ranks: all call."""
    block = done.classifier.block
    own = np.ascontiguousarray(done.classifier.scores_own()[: block.n_real])
    return done.classifier.group.gather_host(own, block.rows.row_counts())


def pairs_of_each(found: Partners, likely: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Pairs [k, 2] of nodes with their partners, and how likely [k] they are, some nodes at a time."""
    step = max(LINES // max(found.nodes.shape[1], 1), 1)
    for lo in range(0, len(found.rows), step):
        nodes = found.nodes[lo : lo + step]
        row, place = np.nonzero(nodes >= 0)
        yield np.stack([found.rows[lo + row], nodes[row, place]], axis=1), likely[lo + row, place]


def _pairs_text(ids: np.ndarray, pairs: np.ndarray, likely: np.ndarray) -> str:
    """Lines `id id likelihood`."""
    blank = blank_between(ids)
    ends = (plain_ids(ids[column]) for column in pairs.T)
    return "".join(f"{u}{blank}{v}{blank}{p:.6g}\n" for u, v, p in zip(*ends, likely.tolist()))
