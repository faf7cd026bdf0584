"""What training R-GCN will take: memory of a rank, bytes and seconds of an epoch (--dry-run, and the log).

What relations use of the nodes is in no header, so a dry run reads the triples and labels.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from app.case.config import Case
from app.case.rgcn import RgcnCase
from app.comm.cores import are_crowded
from app.comm.guard import raise_together
from app.gnn.explain.attribution import passes_of
from app.gnn.rgcn.between import pairs_of
from app.gnn.rgcn.features import Features
from app.gnn.rgcn.grid import choose_placement, widths_of
from app.gnn.rgcn.links import links_graph, links_placement, refuse_unwatched_triples
from app.gnn.rgcn.model import refuse_blocks
from app.gnn.rgcn.saved import load_rgcn
from app.gnn.rgcn.softmax import Queries, scored_nodes
from app.gnn.rgcn.split import Split, split_triples
from app.gnn.rgcn.training import refuse_unwatched_nodes
from app.graphs.triples.data import NodeLabels, Triples
from app.graphs.triples.relational import RelationalGraph, nodes_by_layer, relational_graph
from app.memory.room import memory_room
from app.memory.tiers import TierBudget
from app.model import memory, rgcn_memory
from app.model.defaults import DEFAULTS
from app.model.fits import least_room, needs_of, refuse_without_room
from app.model.gnn import traffic
from app.model.node_plan import parts_words, time_words
from app.model.plan import origin_line, rates_of
from app.model.rates import Rates
from app.model.rgcn_work import Links, RelationalTraining, slowest
from app.model.whole import decided_by_case, is_small, said_whole
from app.tasks.context import Context
from app.tasks.rgcn_inputs import open_features, read_case_triples, read_queries


@dataclass(frozen=True)
class RelationalPlan:
    """Counts of a training, and what they come to.

    held   bytes by term of the rank that takes most
    """

    training: RelationalTraining
    held: dict[str, int]

    @property
    def needed(self) -> int:
        """Bytes of the rank that takes most."""
        return memory.total(self.held)

    @property
    def said(self) -> str:
        """That, in words."""
        placement = self.training.placement
        ranks = len(placement.rows.block_counts)
        parts = f" in {placement.turns} parts" if placement.turns > 1 else ""
        return f"{memory.size(self.needed)} a rank on {ranks} rank{'s' * (ranks > 1)}{parts}"

    @property
    def words(self) -> str:
        """With the terms."""
        return f"{self.said}: {memory.words(self.held)}"

    def epoch_lines(self, rates: Rates) -> Iterator[str]:
        """Seconds of an epoch with its evaluations on the slowest rank, and the bytes that this one moves."""
        terms = slowest(rates, self.training.epochs())
        yield f"an epoch with its evaluations: {time_words(rates.total(terms))} ({parts_words(rates, terms)})"
        for phase, (sent, received) in traffic(terms).items():
            yield f"an epoch, {phase}: {memory.size(sent)} sent, {memory.size(received)} received by a rank"
        if links := self.training.links:
            end = rates.total(links.end(0, self.training.placement.rows.block_counts))
            yield f"{links.held_out} held-out triples, ranked at the end: {time_words(end)}"

    def explained_lines(self, case: Case) -> Iterator[str]:
        """What explanations take once training has ended: passes over receptive fields, whose sizes are those
        of trees of the mean degree, at most those of the graph, and the weights on every rank."""
        asked, graph = case.output.explain, self.training.graph
        if not asked:
            return
        count, depth = asked if isinstance(asked, int) else len(asked), len(self.training.widths)
        degree, trees = len(graph) / max(graph.nodes, 1), 2 if self.training.links else 1
        nodes = min(trees * sum(degree**hop for hop in range(depth + 1)), graph.nodes)
        edges = min(nodes * degree, len(graph))
        fewest, most = passes_of(2)
        passes = f"{fewest} to {most} passes over what it depends on"
        sizes = f"{nodes:.0f} nodes and {edges:.0f} edges where degrees are alike"
        room = f"at most {case.memory.whole_graph_mb:g} MB (memory.whole_graph_mb)"
        whole = 4 * int(np.sum(self.training.weights))
        weights = f"at most {memory.size(whole)} of weights on every rank"
        said = f"explanations of {count} predictions, each by {passes}, {sizes}, {room}, {weights}"
        yield f"once training has ended: {said}"


def relational_plan(case: Case, ranks: int) -> tuple[list[str], str, int]:
    """What was read, and what training takes, as lines of text; memory of a rank in words, and in bytes.

    Raises CaseError
    """
    rates = rates_of(case, ranks)
    for need in needs_of(case, ranks, None):
        if need.certain > memory_room()[0]:  # reading would take more than there is
            words = f"{memory.size(need.certain)} a rank at least: {memory.words(need.held)}"
            return [origin_line(case), words], words, need.certain
    triples, labels = read_case_triples(case)
    lines = [f"{triples.name}: {len(triples)} triples, {triples.nodes} nodes, {triples.relations} relations"]
    saved = load_rgcn(case.rgcn.weights) if case.rgcn.weights else None
    rgcn = saved.architecture_of(case.rgcn) if saved else case.rgcn
    if labels is None or rgcn.goal == "links":
        split = split_of(case, rgcn, triples)
        refuse_unwatched_triples(rgcn, split)
        read_queries(case, triples)
        make = partial(links_plan, rgcn, triples=triples, split=split)
    else:
        refuse_unwatched_nodes(rgcn, labels)
        least = rgcn.min_edges
        if saved:
            least = saved.least_edges(triples)
            triples, labels, _ = saved.renumber(rgcn.weights, triples, labels)
        graph = relational_graph(triples, rgcn.inverse, least)
        fast_bytes = TierBudget.of(case.memory).limit
        inputs = open_features(case, triples)
        counts = {"triples": len(triples), "graph": graph, "labels": labels, "inputs": inputs}
        make = partial(classes_plan, rgcn, **counts, fast_bytes=fast_bytes)
    plan, whole = planned(case, ranks, make)
    lines += [said_whole(case)] * whole
    epoch = plan.epoch_lines(rates) if rgcn.epochs else ()
    last = plan.explained_lines(case)
    return [origin_line(case), *lines, plan.words, *epoch, *last], plan.words, plan.needed


Make = Callable[[int], RelationalPlan]  # the plan of what was read on a number of ranks


def planned(case: Case, ranks: int, make: Make, room: int = 0) -> tuple[RelationalPlan, bool]:
    """The plan of a training on ranks that share the graph or, where every rank has all of it and one learns,
    that of one; and whether that is so. Raises CaseError.

    room   bytes that each rank may take where some host has fewer cores than ranks; 0: none has
    """
    plan = make(ranks)
    if ranks == 1 or case.run.task != "classify":
        return plan, False
    training = plan.training
    whole = decided_by_case(case, ranks, memory.whole_graph(len(training.nodes[0]), len(training.graph)))
    alone = plan if whole is False else make(1)
    if whole is None:
        shared = slowest(Rates(DEFAULTS, ranks), training.epochs())
        whole = is_small(alone.training.epochs()[0], shared, ranks, alone.needed <= room)
    return (alone, True) if whole else (plan, False)


def settle(context: Context, name: str, make: Make) -> Context:
    """The ranks that learn together: those of the context, or of what is too small to be split this one by
    itself. Says how much memory each will take; refuses what the machine has not. Ranks: all call.

    make   of what was read under that name; rank 0 calls it
    """
    group, words, needed, whole = context.group, "", 0, False
    room = least_room(group) if are_crowded(group) else 0
    with raise_together(group, "estimating the memory"):
        if group.rank == 0:
            plan, whole = planned(context.case, group.size, make, room)
            context.log.info("estimate: %s", plan.said)
            words, needed = f"{name}: about {plan.said} ({memory.words(plan.held)})", plan.needed
    if group.device.name == "cpu" and not context.case.memory.fast_mb:
        refuse_without_room(group, context.case, group.broadcast_text(words), needed)
    if not group.max_integer(int(whole)):
        return context
    context.log.info("%s: %s", name, said_whole(context.case))
    return context.whole()


def split_of(case: Case, rgcn: RgcnCase, triples: Triples) -> Split:
    """The triples to learn from, to choose by and held out, as the run will deal them. Raises CaseError."""
    return split_triples(triples, rgcn.held_out, case.seed, rgcn.validation)


def classes_plan(
    case: RgcnCase, ranks: int, triples: int, graph: RelationalGraph, labels: NodeLabels,
    inputs: Features | None, fast_bytes: int,
) -> RelationalPlan:  # fmt: skip
    """The plan of learning classes of nodes; triples: how many were read. Raises CaseError."""
    widths, features = widths_of(case, labels.classes), inputs.width if inputs else 0
    refuse_blocks(case.blocks, widths, features)
    placement = choose_placement(ranks, graph, labels, case, fast_bytes, inputs)
    nodes = nodes_by_layer(graph, labels.nodes, case.layers, case.prune)
    terms = rgcn_memory.by_rank(triples, graph, nodes, widths, case, placement, ranks, features)
    held = rgcn_memory.heaviest(terms, rgcn_memory.setting_up(graph, nodes), DEFAULTS.base_bytes)
    weights, sets = terms["weights"] // 4, len(labels.sets())
    return RelationalPlan(
        RelationalTraining(graph, nodes, widths, case, placement, features, weights, sets), held
    )


def links_plan(case: RgcnCase, ranks: int, triples: Triples, split: Split) -> RelationalPlan:
    """The plan of learning links. Raises CaseError."""
    widths, learned = widths_of(case, case.dimension), len(split.train)
    refuse_blocks(case.blocks, widths)
    graph = links_graph(triples, split, case)
    placement = links_placement(ranks, graph, case)
    nodes = nodes_by_layer(graph, np.arange(triples.nodes), len(widths), prune=False)
    terms = rgcn_memory.by_rank(len(triples), graph, nodes, widths, case, placement, ranks)
    weights = terms["weights"] // 4
    scored = scored_nodes(case, triples.nodes)
    queries = Queries.of(split.train, triples.nodes, scored) if case.loss == "softmax" else None
    pairs = pairs_of(split.train, triples.nodes, triples.relations) if case.ask_relations else None
    terms = rgcn_memory.of_links(
        terms, triples.nodes, learned, len(triples), case, queries, pairs, triples.relations
    )
    held = rgcn_memory.heaviest(terms, rgcn_memory.setting_up(graph, nodes), DEFAULTS.base_bytes)
    counts = np.bincount(split.train[:, 1], minlength=triples.relations)
    rows = np.array(placement.rows.row_counts())
    links = Links(counts, len(split.valid), len(split.test), rows, case.dimension, queries, pairs)
    return RelationalPlan(
        RelationalTraining(graph, nodes, widths, case, placement, 0, weights, links=links), held
    )
