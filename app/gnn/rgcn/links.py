"""Training of link prediction (Schlichtkrull et al. 2018, section 4): an R-GCN encoder, a decoder of triples.

What scores and losses are: decoder.py. How held-out triples rank by them: ranks.py.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from app.case.rgcn import RgcnCase, bases_of
from app.checkpoint.keeper import Keeper
from app.checkpoint.led import led
from app.checkpoint.store import State
from app.comm.group import Group
from app.comm.guard import check_replicas, each_by_itself
from app.errors import CaseError
from app.gnn.loss import refuse_infinite
from app.gnn.optim import make_optimiser, optimiser_arrays, rate_of, restore_optimiser
from app.gnn.rgcn import kept as rgcn_kept
from app.gnn.rgcn.between import Between
from app.gnn.rgcn.decoder import Decoder
from app.gnn.rgcn.grid import grid_groups, widths_of
from app.gnn.rgcn.kept import Best
from app.gnn.rgcn.model import RGCN, Drops, NetShape
from app.gnn.rgcn.negatives import NegativeSampling
from app.gnn.rgcn.ranks import random_summary, rank_frequent, rank_learned, summary
from app.gnn.rgcn.sampled import SampledSoftmax
from app.gnn.rgcn.softmax import FullSoftmax
from app.gnn.rgcn.split import Split
from app.gnn.rgcn.steps import Steps
from app.gnn.rgcn.training import PLAIN_COURSE, Course, make_epochs
from app.gnn.stopwatch import Took
from app.graphs.triples.data import Triples
from app.graphs.triples.relational import RelationalGraph, relational_graph
from app.partition.relations import Placement, place
from app.partition.rows import RowPartition

Array = Any
DECODERS: dict[str, type[Decoder]] = {
    "sigmoid": NegativeSampling, "softmax": FullSoftmax, "sampled": SampledSoftmax
}  # fmt: skip


@dataclass
class LinkFit:
    """What training leaves: networks, and how held-out triples rank, beside two baselines.

    relations    [R, d] of the relations, and embeddings [n, d] of the nodes: what scores are made of
    test         [k, 3] the held-out triples     ranks [k, 2] the learned ranks of their objects and subjects
    epochs       that were made     best_epoch   after which the weights are these
    scores       of the learned ranks and of both baselines
    seconds      of training and ranking, of all parts of the run
    explained    scores, by what made them (app/gnn/explain); None: nobody asked
    """

    net: RGCN
    relations: np.ndarray
    embeddings: np.ndarray
    test: np.ndarray
    ranks: np.ndarray
    epochs: int
    best_epoch: int
    records: list[dict[str, float]]
    scores: dict[str, dict[str, float]]
    seconds: float
    explained: Any = None


def links_graph(triples: Triples, split: Split, case: RgcnCase) -> RelationalGraph:
    """The edges of the triples that are learned from; none, where there is no layer to read them."""
    columns = (split.train[:, k].astype(np.int32) for k in range(3))
    graph = relational_graph(Triples(triples.name, triples.nodes, triples.relations, *columns), case.inverse)
    return graph if case.layers else graph.of_targets(np.zeros(0, dtype=np.int64))


def loss_of(case: RgcnCase, nodes: int) -> str:
    """One of DECODERS. Candidates that are all nodes are no sample."""
    return "sampled" if case.loss == "softmax" and 0 < case.candidates < nodes else case.loss


def make_decoder(
    group: Group, split: Split, nodes: int, relations: int, case: RgcnCase, seed: int
) -> Decoder:
    """What a case learns triples by."""
    decoder = DECODERS[loss_of(case, nodes)](group, split, nodes, relations, case, seed)
    if case.ask_relations:
        weight = case.ask_relations
        decoder.also = Between(group, decoder.scorer, split.train, nodes, relations, weight)
    return decoder


def links_placement(ranks: int, graph: RelationalGraph, case: RgcnCase) -> Placement:
    """The grid of ranks that a case asks for, and the parts of its relations."""
    return place(graph, ranks, grid_groups(ranks, case), case.grouping, case.parts or 1)


def train_links(
    group: Group,
    triples: Triples,
    split: Split,
    case: RgcnCase,
    seed: int,
    course: Course = PLAIN_COURSE,
) -> LinkFit:
    """Train on some of the triples, rank the others; the result is the same for any partition.

    split    which ones, as split_triples deals them
    course   what is done beside; `begin` is called with the network, relations' rows and the graph learned
             from; ranks of `alike` share the ranking
    Ranks    all call
    Raises Diverged where the loss is no longer finite.
    """
    took, alike = Took(), course.alike
    refuse_unwatched_triples(case, split)
    graph = links_graph(triples, split, case)
    placement = links_placement(group.size, graph, case)
    shape = NetShape(widths_of(case, case.dimension), bases_of(case), seed, case.blocks)
    with each_by_itself(alike, "setting up the network"):
        net = RGCN(group, placement, graph, np.arange(triples.nodes), shape, prune=False)
        decoder = make_decoder(group, split, triples.nodes, triples.relations, case, seed)
        course.begin(net, decoder.D, graph)
        relation_step = make_optimiser(case, decoder.D.size, group.device.xp, kernel=group.device.adam)
        run = _Run(group, net, decoder, placement.rows, Steps(group, case, net), relation_step, took)
    epochs = partial(_epochs, run, split, case, seed, course)
    made = led(alike, course.keeper, "training", epochs)
    run.best.restore(run.arrays())
    with each_by_itself(alike, "evaluating the network"):
        E = run.embeddings()
    if alike is not None and course.check_every:
        check_replicas(alike, {"embeddings": group.device.get(E)}, "what the network says")
    return _rank_held_out(alike or group, run, E, triples, split, case, made)


@np.errstate(over="ignore", invalid="ignore")  # what leaves the finite numbers is refused with its epoch
def _epochs(run: "_Run", split: Split, case: RgcnCase, seed: int, course: Course, keeper: Keeper) -> int:
    """The epochs of `train_links`; how many were made. Ranks: those of the network call."""

    def make(epoch: int) -> None:
        run.set_rate(rate_of(case, epoch))
        loss = run.step(epoch, Drops.of(case, seed, epoch))
        refuse_infinite(loss, epoch, case, epoch - 1)
        if course.compares(epoch):
            check_replicas(run.group, run.replicated(), f"the weights after epoch {epoch}")
        if epoch % case.evaluate_every == 0 or epoch == case.epochs:
            course.record(run.evaluate(split, epoch, loss))

    return make_epochs(run, case, keeper, make)


def refuse_unwatched_triples(case: RgcnCase, split: Split) -> None:
    """Refuse to go by the scores of validation triples that are not there. Raises CaseError."""
    if case.patience and not len(split.valid):
        raise CaseError("rgcn.patience: goes by validation triples, and there are none; leave it out")


def _rank_held_out(
    group: Group, run: "_Run", E: Array, triples: Triples, split: Split, case: RgcnCase, made: int
) -> LinkFit:
    """What training leaves after `made` epochs, with ranks by the weights at hand.

    group   that ranks, each with embeddings E [n, d] of all nodes
    Ranks   all call
    """
    D = run.decoder.D
    relations, embeddings = (np.array(group.device.get(each)) for each in (D, E))
    largest = float(abs(embeddings).max(initial=0) + abs(relations).max(initial=0))
    refuse_infinite(largest, case.epochs, case, case.epochs, "the largest embedding")
    ranks = rank_learned(group, E, D, split, split.test, run.decoder.scorer)
    scores = {
        "learned": summary(ranks),
        "most_frequent": summary(rank_frequent(group, triples, split, split.test)),
        "random": random_summary(triples.nodes),
    }
    by_triple = ranks.reshape(2, -1).T
    return LinkFit(
        run.net, relations, embeddings, split.test, by_triple, made, run.best.epoch, run.records, scores,
        run.took(),
    )  # fmt: skip


@dataclass
class _Run:
    """A training under way: networks, optimisers, the best so far, records, seconds; a checkpoint holds them.

    rows   who owns which nodes
    """

    group: Group
    net: RGCN
    decoder: Decoder
    rows: RowPartition
    steps: Steps
    relation_step: Any
    took: Took
    best: Best = field(default_factory=Best)
    records: list[dict[str, float]] = field(default_factory=list)

    def set_rate(self, rate: float) -> None:
        """The step size from now on."""
        self.steps.rate = self.relation_step.rate = rate

    def embeddings(self) -> Array:
        """[n, d] of all nodes. Ranks: all call."""
        return self._everywhere(self.net.forward())

    def _everywhere(self, E_own: Array) -> Array:
        """Own rows of the embeddings, without padding, to all ranks. Ranks: all call."""
        lo, hi = self.rows.range_of(self.group.rank)
        return self.group.gather_rows(E_own[: hi - lo], self.rows.row_counts())

    def step(self, epoch: int, drops: Drops | None) -> float:
        """The loss of the learned triples, and a step of all weights. Ranks: all call."""
        lo, hi = self.rows.range_of(self.group.rank)
        E_own = self.net.forward(drops)
        loss, dD, dE = self.decoder.gradients(self._everywhere(E_own), epoch, lo, hi)
        dE_own = self.group.device.zeros(E_own.shape)
        dE_own[: hi - lo] = dE
        for gradient in self.net.gradients(dE_own):
            self.steps.take(gradient)
        self.relation_step.update(self.decoder.D.reshape(-1), dD.reshape(-1))
        return loss

    def evaluate(self, split: Split, epoch: int, loss: float) -> dict[str, float]:
        """The record of an epoch; keeps the weights where they are the best so far. Ranks: all call."""
        row = {"epoch": epoch, "loss": loss}
        if len(split.valid):
            decoder = self.decoder
            ranks = rank_learned(self.group, self.embeddings(), decoder.D, split, split.valid, decoder.scorer)
            row["val_score"] = summary(ranks)["mrr"]
        self.best.observe(epoch, row.get("val_score", float(epoch)), self.arrays())
        self.records.append(row)
        return row

    def arrays(self) -> dict[str, Array]:
        """Weights of this rank by name, those of the relations too."""
        return {**self.net.arrays(), "links/D": self.decoder.D}

    def replicated(self) -> dict[str, np.ndarray]:
        """Of these, on the host, what all ranks hold alike."""
        return {**self.net.replicated(), "links/D": self.group.device.get(self.decoder.D)}

    def state(self, epochs: int, last: bool = False) -> State:
        """All that later epochs depend on, after `epochs` of them; last: as of state_of. Ranks: all call."""
        group, device, best = self.group, self.group.device, self.best
        state = rgcn_kept.state_of(group, self.net, self.steps, epochs, self.records, self.took, last)
        best.enter(state, group, self.net)
        state.arrays["links/D"] = np.array(device.get(self.decoder.D))
        state.arrays |= optimiser_arrays(self.relation_step, device, "links")
        if best.kept:
            state.arrays["best_links/D"] = np.array(device.get(best.kept["links/D"]))
        return state

    def restore(self, state: State) -> int:
        """Go on from what `state` told; the epochs it had made. Ranks: all call."""
        group, device, arrays = self.group, self.group.device, state.arrays
        made = rgcn_kept.restore(group, self.net, self.steps, state)
        self.records += state.values["records"]
        self.took = Took(state.values["seconds"])
        self.best.recall(state, group, self.net)
        self.decoder.D[...] = device.put(arrays["links/D"])
        restore_optimiser(self.relation_step, device, "links", made, arrays)
        if self.best.kept:
            self.best.kept["links/D"] = device.put(arrays["best_links/D"])
        return made
