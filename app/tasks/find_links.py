"""Task classify with gnn.level = "link": train a network to tell which nodes are joined, or apply one."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec import structs

from app.case.config import Case
from app.case.gnn import GnnCase
from app.comm.group import Group
from app.comm.guard import digest, raise_together
from app.errors import CaseError, GraphError
from app.gnn.archive import replaced
from app.gnn.balanced import Balanced
from app.gnn.importance import Importance
from app.gnn.links.best import Partners
from app.gnn.links.plain import plain_scores
from app.gnn.links.predictor import LinkPredictor, told_of
from app.gnn.links.propose import propose, propose_each
from app.gnn.links.scores import LinkScores
from app.gnn.links.sides import Sides, coloured_sides, given_sides, refuse_within
from app.gnn.links.split import LinkSplit, split_edges
from app.gnn.loss import refuse_infinite_rows
from app.gnn.saved import SavedModel, check_fits, load_model, save_model
from app.gnn.training import Fit, ended_early, fit
from app.graphs.ids import blank_between, plain_ids
from app.graphs.nodes.data import NodeData
from app.memory.room import resident_bytes
from app.memory.tiers import TierBudget
from app.partition.generators import second_side
from app.partition.ids import ids_everywhere, ids_on_first
from app.partition.load import Loaded
from app.partition.pairs import pairs_of_file, rows_of_pairs
from app.plots.runs import plot_breakdown, plot_training
from app.search.solution_text import read_nodes, read_sides
from app.sparse.rowblock import RowBlock
from app.tasks.classify import (
    check_importance,
    cost_model_of,
    follows,
    important_features,
    load,
    recorder,
    refuse_read,
    say_balance,
)
from app.tasks.context import Context
from app.text import printable

SCORE = "area under the ROC curve"  # over epochs
LINES = 1 << 16  # of a file that are made at a time
NAMES = {"val": "links.val_edges", "test": "links.test_edges", "asked": "links.pairs"}  # of given pairs
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


@dataclass
class Linked:
    """A predictor of links after its run.

    loaded    the whole graph     scores, plain   how good scores of held-out edges are, learned and plain
    told      [k, 2] the pairs that predictions tell of, and how likely [k] each is to be joined
    proposed  [p, 2] and [p], the likeliest pairs that no edge joins
    each      the best partners of each node, and how likely [k, K] they are; None: nobody asked
    importance   of features; None: nobody asked
    """

    predictor: LinkPredictor
    loaded: Loaded
    fit: Fit
    scores: dict[str, LinkScores]
    plain: dict[str, dict[str, LinkScores]]
    told: tuple[np.ndarray, np.ndarray]
    proposed: tuple[np.ndarray, np.ndarray]
    each: tuple[Partners, np.ndarray] | None
    weights_digest: str
    importance: Importance | None = None

    @property
    def digest(self) -> str:
        """Of the weights, and of what is predicted."""
        found = {"pairs": self.told[0], "likely": self.told[1], "proposed": self.proposed[0]}
        if self.each is not None:
            found |= {"each": self.each[0].nodes}
        return digest({**found, **self.fit.weights})


def run_edges(context: Context) -> dict[str, Any]:
    """Train or apply, write the results, and return the task's part of result.json. Ranks: all call."""
    loaded, data = load(context)
    refuse_read(context, loaded)
    given = read_pairs(context, loaded)
    held = resident_bytes()
    done = learn_edges(context, loaded, data, given)
    context.say_memory(held)
    if context.folder is not None:
        _write(context, done)
    return _result(context, done)


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


def learn_edges(
    context: Context, loaded: Loaded, data: NodeData, given: GivenPairs, model: SavedModel | None = None
) -> Linked:
    """Hold edges out, train for gnn.epochs on the others, from gnn.weights where given. Ranks: all call.

    model   the weights, where they are in memory
    """
    case, log, group = context.case, context.log, context.group
    with raise_together(group, "checking the data"):
        gnn, links, saved = _architecture(case, loaded, data, model)
        _check(case, loaded)
    if said := replaced("gnn", case.gnn, gnn):
        context.warn(f"the weights bring their layers: {said}")
    with log.phase("set up"):
        shares, sides = (links.validation, links.held_out), sides_of(context, loaded, given)
        split = split_edges(group, loaded, shares, case.seed, given.val, given.test, sides)
    _say_split(context, split)
    block = context.rows(split.loaded, max(gnn.hidden, links.dimension))
    with log.phase("set up"):
        own = data_of_links(data, split, block)
        inputs, budget = saved.inputs if saved else None, TierBudget.of(case.memory)
        predictor = LinkPredictor(group, gnn, links, block, own, split, case.seed, inputs, budget)
        if saved is not None:
            predictor.params.set(saved.arrays)
        known = cost_model_of(context, predictor)
        balanced = Balanced(predictor, known) if follows(case) else None
    check_importance(case, predictor)
    _say_model(context, predictor)
    with log.phase("train"):
        hooks = {"after_epoch": balanced.after_epoch, "beside": balanced} if balanced else {}
        found = fit(predictor, recorder(context), case.run.check_every, keeper=context.keeper, **hooks)
    with log.phase("evaluate"):
        scores = predictor.evaluate_each()
        plain = plain_scores(group, split, predictor.ranking(tuple(NAMES)[:2] if links.rank_each else ()))
    _say_scores(context, found, scores, plain)
    if said := ended_early(found, gnn):
        log.info("advice: %s", said)
    if balanced:
        say_balance(context, balanced)
    with log.phase("predict"):
        told = split.held if given.asked is None else given.asked
        proposed = propose(predictor, links.propose) if links.propose else told[:0]
        both = [(pairs, _likely(predictor, pairs)) for pairs in (told, proposed)]
        each = _likely_each(predictor, given.nodes) if links.propose_each else None
    asked = important_features(context, predictor, lambda name: (predictor.evaluate()[name].auc, math.nan))
    return Linked(predictor, loaded, found, scores, plain, *both, each, digest(found.weights), asked)


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


def saved_of(done: Linked) -> SavedModel:
    """What weights.npz holds."""
    predictor = done.predictor
    columns = np.arange(predictor.classes)
    return SavedModel(
        predictor.case, predictor.model.f_in, columns, False, done.fit.weights, inputs=predictor.inputs
    )


def _architecture(
    case: Case, loaded: Loaded, data: NodeData, model: SavedModel | None
) -> tuple[GnnCase, Any, SavedModel | None]:
    """[gnn] and [links] with the layers of saved weights where some are given; model: those in memory."""
    gnn, links = case.gnn, case.links
    if not gnn.weights:
        return gnn, links, None
    saved = model or load_model(gnn.weights)
    if saved.case.level != "link":
        right = f'gnn.level = "{saved.case.level}" would be right'
        raise GraphError(f"{printable(gnn.weights)}: says what {saved.case.level}s are; {right}")
    check_fits(gnn.weights, saved, data.width or loaded.graph.n)
    return saved.architecture_of(gnn), structs.replace(links, dimension=saved.classes), saved


def _check(case: Case, loaded: Loaded) -> None:
    """Refuse what cannot be learned from. Raises CaseError."""
    weights, name = loaded.graph.weights, loaded.graph.name
    if case.gnn.edge_weights and weights is not None and (weights < 0).any():
        raise CaseError("gnn.edge_weights: the graph has negative weights; leave the key out")
    if not loaded.graph.edges:
        raise CaseError(
            f"{name}: has no edges, and links are learned from them; a graph with edges would be right"
        )


def _likely(predictor: LinkPredictor, pairs: np.ndarray) -> np.ndarray:
    """[k] float32. Ranks: all call. Raises NumericsError where scores are not finite."""
    scores = predictor.score_pairs(pairs)
    refuse_infinite_rows(predictor.group, scores[:, None] if predictor.group.rank == 0 else scores[:0, None])
    return told_of(predictor.links, scores)


def _likely_each(predictor: LinkPredictor, rows: np.ndarray | None) -> tuple[Partners, np.ndarray]:
    """What Linked.each holds, of the nodes of some rows or of all. Ranks: all call."""
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
    case = context.case.gnn
    if case.epochs and not sets["val"].told and (case.patience or case.keep == "best"):
        context.log.info(
            "warning: no validation %s: gnn.patience and gnn.keep go by the training loss",
            "pairs without an edge" if len(sets["val"].joined) else "edges",
        )


def _say_model(context: Context, predictor: LinkPredictor) -> None:
    """The layers, and the memory of their buffers."""
    engine, blocks = predictor.engine, predictor.model.blocks
    context.log.info(
        "%d features; %s: %d weights, exchange %s",
        predictor.data.width, ", ".join(each.text() for each in blocks), predictor.params.size,
        engine.neighbours_of.block.plan.mode,
    )  # fmt: skip
    context.log.info(
        "%d buffers of %d columns in all: %.1f MB on this rank",
        len(engine.plan.widths), engine.plan.columns, 4e-6 * engine.plan.columns * engine.n_own,
    )  # fmt: skip
    for line in engine.tiered.lines() if engine.tiered else ():
        context.log.info("%s", line)


def _say_scores(
    context: Context, found: Fit, scores: dict[str, LinkScores], plain: dict[str, dict[str, LinkScores]]
) -> None:
    """How long training took, and how good scores of held-out edges are beside those of plain rules."""
    log = context.log
    if found.epochs:
        each_ms = 1e3 * found.seconds / found.epochs
        log.info(
            "%d epochs in %.2f s (%.2f ms each, evaluations included)", found.epochs, found.seconds, each_ms
        )
    for name in ("val", "test"):
        if not scores[name].pairs:
            continue
        rows = {"learned": scores[name]} | {RULES[rule]: each[name] for rule, each in plain.items()}
        for rule, each in rows.items():
            hits = "".join(f"  hits@{k} {share:.4f}" for k, share in each.hits.items())
            log.info("%-5s %-18s AUC %.4f  AP %.4f%s", name, rule, each.auc, each.ap, hits)
        for rule, each in rows.items():
            if each.each is not None:
                k, found = each.each.k, (each.recall, each.precision, each.ndcg)
                words = f"{name:5} {rule:18} recall@{k} %.4f  precision@{k} %.4f  NDCG@{k} %.4f  (%d nodes)"
                log.info(words, *found, each.each.nodes)


# ---- what is written --------------------------------------------------------------------------------------


def _result(context: Context, done: Linked) -> dict[str, Any]:
    """The task's part of result.json."""
    records, graph = done.fit.records, done.predictor.split.loaded.graph
    entry = {
        "name": graph.name, "nodes": graph.n, "edges": done.loaded.graph.edges, "train_edges": graph.edges,
        "train_loss": records[-1]["loss"] if records else None,
        "epochs": done.fit.epochs, "best_epoch": done.fit.best_epoch,
        "watched": done.fit.watched if records else None, "best_watched": done.fit.best,
        "seconds": done.fit.seconds,
    }  # fmt: skip
    entry |= _named(done.scores)
    if done.importance is not None:
        entry["importance"] = done.importance.told()
    entry["plain"] = {rule: _named(each) for rule, each in done.plain.items()}
    operations = {kind: round(s, 6) for kind, s in sorted(done.predictor.engine.seconds.items())}
    return {
        "digest": done.digest, "weights_digest": done.weights_digest, "instances": [entry], **entry,
        "operations": operations,
    }  # fmt: skip


def _named(scores: dict[str, LinkScores]) -> dict[str, float | None]:
    """Scores by split and name, None where there are no pairs to tell."""
    return {
        f"{split}_{name}": value if value == value else None
        for split, each in scores.items()
        for name, value in each.named().items()
    }


def _write(context: Context, done: Linked) -> None:
    """weights.npz, predictions/NAME.txt, proposals, embeddings and plots. Ranks: all call."""
    folder, group, case, predictor = context.folder, context.group, context.case, done.predictor
    graph = done.loaded.graph
    ids = ids_everywhere(group, graph, done.loaded.rows)
    with context.log.phase("write"), raise_together(group, "writing the results"):
        if group.rank == 0:
            note = f"{case.run.name}, seed {case.seed}, {done.fit.epochs} epochs"
            save_model(folder.file("weights.npz"), saved_of(done), note)
        folder.write_text(f"predictions/{graph.name}.txt", _pairs_text(ids, *done.told))
        if case.links.propose:
            folder.write_text(f"proposed/{graph.name}.txt", _pairs_text(ids, *done.proposed))
        if done.each is not None and group.rank == 0:
            with folder.placed(f"proposed_each/{graph.name}.txt") as file:
                for pairs, likely in pairs_of_each(*done.each):
                    file.write(_pairs_text(ids, pairs, likely).encode())
    if case.output.embeddings:
        rows = gather_rows(done)
        with raise_together(group, "writing the embeddings"):
            folder.write_arrays(f"embeddings/{graph.name}.npz", ids=ids, embeddings=rows)
    if done.importance is not None:
        folder.write_text(f"importance/{graph.name}.csv", done.importance.text())
    if case.output.plots:
        plot_training(folder, context.log, done.fit.records, score=SCORE)
        plot_breakdown(folder, context.log, {graph.name: predictor.engine.seconds})


def gather_rows(done: Linked) -> np.ndarray:
    """[n, d] float32, the rows whose products score pairs. Ranks: all call."""
    block = done.predictor.block
    own = np.ascontiguousarray(done.predictor.scores_own()[: block.n_real])
    return done.predictor.group.gather_host(own, block.rows.row_counts())


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
