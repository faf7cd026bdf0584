"""Link prediction on a knowledge graph: train on most triples, rank the others."""

import json
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec
import numpy as np

from app.case.rgcn import RgcnCase
from app.comm.guard import digest, digest_text, raise_together
from app.errors import GraphError
from app.gnn.archive import LARGEST, replaced
from app.gnn.rgcn.links import LinkFit, train_links
from app.gnn.rgcn.model import RGCN
from app.gnn.rgcn.queries import NOBODY, Query, best_of_all
from app.gnn.rgcn.saved import SavedRgcn, edges_digest, load_rgcn, save_rgcn
from app.gnn.rgcn.split import Split
from app.gnn.rgcn.training import Course
from app.graphs.ids import between_names, escaped
from app.graphs.triples.data import Triples
from app.graphs.triples.relational import RelationalGraph
from app.log import ToGo
from app.memory.room import resident_bytes
from app.tasks.context import Context
from app.tasks.relational_explained import Called, check_asked_triples, explain_triples
from app.tasks.relational_plan import links_plan, settle, split_of
from app.tasks.rgcn_inputs import read_queries

Array = Any
RELATIONS = "links/D"  # the decoder's rows, beside the network's weights
NO_CLASSES = 0  # of a network that predicts links


def run_links(context: Context, triples: Triples) -> dict[str, Any]:
    """Train and rank, write the results, and return the task's part of result.json. Ranks: all call."""
    held = resident_bytes()
    with raise_together(context.group, "reading the queries"):
        queries = read_queries(context.case, triples)
    found, saved = learn_links(context, triples)
    context.say_memory(held)
    scores = [row["val_score"] for row in found.records if "val_score" in row]
    entry = {
        "name": triples.name, "nodes": triples.nodes, "relations": triples.relations,
        "train_loss": found.records[-1]["loss"] if found.records else None, "epochs": found.epochs,
        "best_epoch": found.best_epoch, "validation_mrr": max(scores, default=None),
        "seconds": found.seconds, "links": found.scores,
    }  # fmt: skip
    if found.explained is not None:
        entry["explanations"] = found.explained.told()
    if context.folder is not None:
        _write(context, triples, found, saved)
        if queries:
            _propose(context, triples, found, saved, queries)
    weights = digest(saved.arrays)
    return {"digest": weights, "weights_digest": weights, "instances": [entry], **entry}


def learn_links(
    context: Context, triples: Triples, model: SavedRgcn | None = None, called: Called | None = None
) -> tuple[LinkFit, SavedRgcn]:
    """Train on some of the triples, from rgcn.weights where given, rank the others. Ranks: all call.

    model   the weights, where they are in memory     called   names of a caller; None: those of the triples
    returns what training leaves, and what weights.npz holds
    """
    case, log, group = context.case, context.log, context.group
    with raise_together(group, "reading weights"):
        saved = _Saved(case.rgcn.weights, model) if case.rgcn.weights else None
    rgcn = saved.architecture_of(case.rgcn) if saved else case.rgcn
    if said := replaced("rgcn", case.rgcn, rgcn):
        context.warn(f"the weights bring their layers: {said}")
    with raise_together(group, "dealing the triples"):
        split = split_of(case, rgcn, triples)
    called = called or Called.of(triples)
    rows = check_asked_triples(context, triples, called)
    _say_split(context, split)
    context = settle(context, triples.name, partial(links_plan, rgcn, triples=triples, split=split))
    group = context.group
    edges: list[str] = []
    graphs: list[RelationalGraph] = []

    def begin(net: RGCN, D: Array, graph: RelationalGraph) -> None:
        edges.append(_rows_are_of(triples, rgcn, graph))
        graphs.append(graph)
        if saved:
            saved.put(edges[0], context, net, D)

    with log.phase("train"):
        course = Course(_recorder(context), case.run.check_every, begin, context.keeper, context.alike)
        found = train_links(group, triples, split, rgcn, case.seed, course)
    for name, scores in found.scores.items():
        log.info("%-13s %s", name, "  ".join(f"{key} {value:.4f}" for key, value in scores.items()))
    found.explained = explain_triples(context, graphs[0], rgcn, found, rows, called)
    arrays = {RELATIONS: found.relations, **found.net.whole_weights(group)}
    return found, SavedRgcn(rgcn, 0, NO_CLASSES, edges[0], arrays)


def _rows_are_of(triples: Triples, rgcn: RgcnCase, graph: RelationalGraph) -> str:
    """What rows of nodes belong to: the edges that layers read; without layers other triples will do, but of
    the same nodes and relations, which names tell where there are some."""
    edges = edges_digest(graph, np.arange(triples.nodes))
    if rgcn.layers:
        return edges
    names = {"nodes": triples.node_names, "relations": triples.relation_names}
    return digest_text({"edges": edges, **{what: json.dumps(each) for what, each in names.items()}})


def _say_split(context: Context, split: Split) -> None:
    """How many triples are for what, which are for two things at once, and of which nothing is learned."""
    sizes = len(split.train), len(split.valid), len(split.test)
    context.log.info("%d triples to learn from, %d to choose the epoch by, %d held out", *sizes)
    for name, rows in (("validation", split.valid), ("held-out", split.test)):
        both = len(rows) + len(split.train) - len(np.unique(np.concatenate([rows, split.train]), axis=0))
        if both:
            told = both, len(rows), name
            context.log.info("warning: %d of the %d %s triples are also learned from", *told)
        if unknown := int((~np.isin(rows[:, 1], split.train[:, 1])).sum()):
            told = unknown, len(rows), name
            context.log.info("warning: %d of the %d %s triples have a relation of no learned one", *told)


class _Saved:
    """A weights.npz of link prediction, or a model in memory. Raises GraphError, one line, for others."""

    def __init__(self, path: str, model: SavedRgcn | None) -> None:
        self.path, saved = path, model or load_rgcn(path)
        self.rows = saved.arrays.get(RELATIONS)
        arrays = {name: each for name, each in saved.arrays.items() if name != RELATIONS}
        self.saved = replace(saved, arrays=arrays)
        if self.rows is None or self.rows.ndim != 2:
            raise GraphError(f"{path}: of a network for classes; one that predicts links would be right")

    def architecture_of(self, given: RgcnCase) -> RgcnCase:
        """The given table with the architecture of this network."""
        known = self.saved.architecture_of(given)
        return msgspec.structs.replace(known, dimension=self.rows.shape[1] - known.loops)

    def put(self, edges: str, context: Context, net: RGCN, D: Array) -> None:
        """Take its arrays as weights. Raises GraphError where they are for another graph. Ranks: all call."""
        self.saved.check_fits(self.path, 0, NO_CLASSES, edges)
        if len(self.rows) != len(D):
            known, here = len(self.rows), len(D)
            raise GraphError(f"{self.path}: for {known} relations; these triples have {here}")
        self.saved.put(self.path, net.whole(context.group))
        D[...] = context.device.put(self.rows)


def _recorder(context: Context) -> Any:
    """What training calls with each record: a row of metrics.csv and, now and then, a line."""
    log = context.log

    to_go = ToGo(context.case.rgcn.epochs)

    def record(row: dict[str, float]) -> None:
        score = row.get("val_score")
        log.record(phase="train", name="", step=row["epoch"], loss=row["loss"], val_score=score)
        shown = "" if score is None else f"  MRR of the validation triples {score:.4f}"
        log.progress("epoch %5d  loss %.4f%s%s", row["epoch"], row["loss"], shown, to_go(int(row["epoch"])))

    return record


def _write(context: Context, triples: Triples, found: LinkFit, saved: SavedRgcn) -> None:
    """weights.npz and predictions/NAME.txt. Ranks: all call."""
    folder, group, case = context.folder, context.group, context.case
    total = sum(array.nbytes for array in saved.arrays.values())
    if total > LARGEST:
        context.log.info("weights.npz is not written: %.1f MB, at most %.1f MB", 1e-6 * total, 1e-6 * LARGEST)
    with context.log.phase("write"), raise_together(group, "writing the results"):
        if group.rank == 0 and total <= LARGEST:
            note = f"{case.run.name}, seed {case.seed}, {found.epochs} epochs"
            save_rgcn(folder.file("weights.npz"), saved, note)
        folder.write_text(f"predictions/{triples.name}.txt", ranks_text(triples, found))
        if found.explained is not None:
            folder.write_text(f"explanations/{triples.name}.csv", found.explained.text())


def _propose(
    context: Context, triples: Triples, found: LinkFit, saved: SavedRgcn, queries: list[Query]
) -> None:
    """proposed/NAME.txt: the best ends of what is asked. Ranks: all call."""
    folder, group, count = context.folder, context.group, context.case.rgcn.propose_each
    with context.log.phase("propose"):
        rows = found.embeddings, found.relations
        best = best_of_all(group, *rows, saved.case.scorer, triples.rows(), queries, count)
    with context.log.phase("write"), raise_together(group, "writing the results"):
        folder.write_text(f"proposed/{triples.name}.txt", proposed_text(triples, queries, *best))
    context.log.info("%d queries answered: %s", len(queries), folder.file(f"proposed/{triples.name}.txt"))


def proposed_text(triples: Triples, queries: list[Query], nodes: np.ndarray, scores: np.ndarray) -> str:
    """Lines `subject relation object score` of the answers [q, count], the best of each query first."""
    named, lines = _Names(triples), []
    for query, ends, values in zip(queries, nodes.tolist(), scores.tolist()):
        answers = [(query.triple(end), value) for end, value in zip(ends, values) if end != NOBODY]
        lines += [named.line(triple, f"{value:.6g}") for triple, value in answers]
    return "".join(lines)


class _Names:
    """Triples as lines, by name where there are names; between tabs where one has a blank or a comma."""

    def __init__(self, triples: Triples) -> None:
        self._nodes = triples.node_names or [str(i) for i in range(triples.nodes)]
        self._relations = triples.relation_names or [str(i) for i in range(triples.relations)]
        self._between = between_names((*triples.node_names, *triples.relation_names))

    def line(self, triple: tuple[int, int, int], *more: str) -> str:
        """A triple (subject, relation, object) and what is said of it."""
        s, r, o = triple
        fields = map(escaped, (self._nodes[s], self._relations[r], self._nodes[o]))
        return self._between.join([*fields, *more]) + "\n"


def ranks_text(triples: Triples, found: LinkFit) -> str:
    """Lines `subject relation object rank rank` of the held-out triples, by name where the file has names.

    Between tabs where a name has a blank or a comma, else between blanks. The filtered ranks are those of
    the object among all nodes, then of the subject; half of a tie is .5.
    """
    named = _Names(triples)
    return "".join(
        named.line(triple, f"{of_object:g}", f"{of_subject:g}")
        for triple, (of_object, of_subject) in zip(found.test.tolist(), found.ranks.tolist())
    )
