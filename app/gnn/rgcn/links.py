"""Link prediction: an R-GCN encoder, DistMult scores, and the rank of right triples among wrong ones.

Source   Schlichtkrull et al. 2018, section 4; DistMult: Yang et al. 2015; filtered ranks: Bordes et al. 2013

Difference from the paper: ranks of equal scores count half of the ties each.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from app.case.gnn import RgcnCase
from app.checkpoint.checkpoints import NOTHING_KEPT, Keeper
from app.checkpoint.store import State
from app.comm.group import Group
from app.comm.guard import check_replicas
from app.errors import CaseError
from app.gnn.loss import refuse_infinite
from app.gnn.optim import make_optimiser, optimiser_arrays, restore_optimiser
from app.gnn.rgcn import kept as rgcn_kept
from app.gnn.rgcn.model import RGCN
from app.gnn.rgcn.shards import glorot_limit
from app.gnn.rgcn.training import Steps, grid_groups, widths_of
from app.gnn.stopwatch import Took
from app.graphs.triples.data import TEST, TRAIN, VALID, Triples
from app.graphs.triples.relational import RelationalGraph, relational_graph
from app.partition.relations import Placement, place
from app.partition.rows import RowPartition
from app.rng import stream
from app.watchdog import beat

Array = Any
RANKED_AT_ONCE = 64  # triples that are scored against all nodes together
HITS = (1, 3, 10)


@dataclass(frozen=True, eq=False)
class Split:
    """Distinct triples as rows (subject, relation, object), int64: to learn from, to choose by, held out."""

    train: np.ndarray
    valid: np.ndarray
    test: np.ndarray


@dataclass
class LinkFit:
    """What training leaves: networks, and how held-out triples rank, beside two baselines.

    relations    [R, d] of the relations, and embeddings [n, d] of the nodes: what scores are made of
    test         [k, 3] the held-out triples     ranks [k, 2] the learned ranks of their objects and subjects
    best_epoch   whose weights these are
    scores       of the learned ranks and of both baselines
    seconds      of training and ranking, of all parts of the run
    """

    net: RGCN
    relations: np.ndarray
    embeddings: np.ndarray
    test: np.ndarray
    ranks: np.ndarray
    best_epoch: int
    records: list[dict[str, float]]
    scores: dict[str, dict[str, float]]
    seconds: float


def split_triples(triples: Triples, share: float, seed: int, validation: float = 0.0) -> Split:
    """The distinct triples by their sets; of a set that is not given a share of those to learn from.

    share, validation   of TEST and VALID, drawn uniformly, where no triple says that it is of that set
    Raises CaseError where nothing is left to learn from, or nothing to rank.
    """
    rows, valid, test = (np.unique(triples.rows(of), axis=0).astype(np.int64) for of in (TRAIN, VALID, TEST))
    order = stream(seed, "links/split").permutation(len(rows))
    held = 0 if len(test) else round(share * len(rows))
    chosen = held + (0 if len(valid) else round(validation * len(rows)))
    if not held + len(test) or chosen >= len(rows):
        shares = f"{share:g} and {validation:g}"
        raise CaseError(
            f"rgcn.held_out, rgcn.validation: {shares} of {len(rows)} triples; some, not all, would do"
        )
    drawn = [rows[np.sort(part)] for part in np.split(order, [held, chosen])]
    train = drawn[2][np.argsort(drawn[2][:, 1], kind="stable")]
    return Split(train, valid if len(valid) else drawn[1], test if len(test) else drawn[0])


# ---- the decoder ------------------------------------------------------------------------------------------


class DistMult:
    """Scores of triples from rows of nodes (Yang et al. 2015), and their gradients.

    Forward   f(s, r, o) = sum_k E_sk D_rk E_ok
    Loss      mean over right and wrong triples of log(1 + exp(-+f))     (Schlichtkrull et al. 2018, eq. 7)
    Shapes    E [n, d]   D [R, d]   g = dloss / df [triples]
    Backward  dD_r = sum_t g_t E_s E_o         over the triples of r in their order
              dE_i = sum_t g_t D_r E_other     over the triples that i is in, by (i, place: first as subject)
    Ranks     E and D are whole on every rank; a rank scores the triples of its relations, and makes the rows
              of dD of these and of dE of the nodes that it owns; g is gathered, 4 bytes for each triple.
    """

    def __init__(self, group: Group, split: Split, relations: int, dimension: int, seed: int) -> None:
        self.group, self.device, self.R = group, group.device, relations
        limit = glorot_limit(relations, dimension)
        drawn = stream(seed, "initial/links/D").uniform(-limit, limit, (relations, dimension))
        self.D = group.device.put(drawn.astype(np.float32))
        counts = np.bincount(split.train[:, 1], minlength=relations)
        owner = deal_relations(counts, group.size)
        self._relations = np.bincount(owner, minlength=group.size)
        first, last = np.searchsorted(owner, [group.rank, group.rank + 1])
        self._own, self._starts = slice(first, last), np.concatenate([[0], np.cumsum(counts)])

    def gradients(
        self, E: Array, wrong: np.ndarray, train: np.ndarray, lo: int, hi: int
    ) -> tuple[float, Array, Array]:
        """The loss, dD [R, d], and dE of the nodes lo..hi-1.

        E       [n, d] rows of all nodes
        wrong   [m, w, 2] subjects and objects of w wrong triples for each of the m right ones
        train   [m, 3] the right ones, by relation
        Ranks   all call
        """
        m, w = wrong.shape[:2]
        group, device, R = self.group, self.device, self.R
        starts = self._starts * (w + 1)
        first, last = int(starts[self._own.start]), int(starts[self._own.stop])
        triples = _columns_of(train, wrong)
        own = triples[:, first:last]
        Z = device.triple_scores(own, E, self.D)[:, None]
        right = device.put((np.arange(first, last) % (w + 1) == 0).astype(np.float32)[:, None])
        weight = device.put(np.full(last - first, 1 / (m * (w + 1)), dtype=np.float32))
        losses = device.sigmoid_loss(Z, right, weight)
        own_starts = starts[self._own.start : self._own.stop + 1] - first
        dD = device.triple_relation_sums(own_starts, own, Z[:, 0], E)
        both = device.xp.concatenate([dD, device.fold(own_starts, losses[:, None])], axis=1)
        sums = group.gather_rows(both, self._relations.tolist())
        loss = device.fold(np.array([0, R]), device.xp.ascontiguousarray(sums[:, -1:]))
        counts = [int(starts[k] - starts[j]) for j, k in _spans(self._relations)]
        g = group.gather_rows(Z, counts)[:, 0]
        dE = device.triple_node_sums(triples, g, E, self.D, lo, hi)
        return float(device.get(loss)[0, 0]), device.xp.ascontiguousarray(sums[:, :-1]), dE


def deal_relations(counts: np.ndarray, ranks: int) -> np.ndarray:
    """[R] the rank that scores the triples of each relation, ascending; counts [R]: of its triples."""
    before = np.cumsum(counts) - counts
    return np.minimum(before * ranks // max(int(counts.sum()), 1), ranks - 1)


def _columns_of(train: np.ndarray, wrong: np.ndarray) -> np.ndarray:
    """[3, t] int32: each right triple and then its wrong ones."""
    m, w = wrong.shape[:2]
    columns = np.empty((3, m, w + 1), dtype=np.int32)
    columns[1] = train[:, 1:2]
    for row, end in ((0, 0), (2, 1)):
        columns[row, :, 0], columns[row, :, 1:] = train[:, row], wrong[:, :, end]
    return columns.reshape(3, -1)


def draw_wrong(seed: int, epoch: int, train: np.ndarray, nodes: int, count: int) -> np.ndarray:
    """[m, count, 2]: subjects and objects of right triples, one of them replaced by a random node."""
    draws = stream(seed, "links/wrong", epoch)
    ends = np.repeat(train[:, None, ::2], count, axis=1)
    side = draws.integers(0, 2, ends.shape[:2])
    np.put_along_axis(ends, side[:, :, None], draws.integers(0, nodes, (*side.shape, 1)), axis=2)
    return ends


def _spans(sizes: np.ndarray) -> list[tuple[int, int]]:
    """First and last + 1 of consecutive pieces."""
    ends = np.cumsum(sizes)
    return list(zip((ends - sizes).tolist(), ends.tolist()))


# ---- training -----------------------------------------------------------------------------------------


def links_graph(triples: Triples, split: Split, case: RgcnCase) -> RelationalGraph:
    """The edges of the triples that are learned from."""
    columns = (split.train[:, k].astype(np.int32) for k in range(3))
    return relational_graph(Triples(triples.name, triples.nodes, triples.relations, *columns), case.inverse)


def links_placement(ranks: int, graph: RelationalGraph, case: RgcnCase) -> Placement:
    """The grid of ranks that a case asks for, and the parts of its relations."""
    return place(graph, ranks, grid_groups(ranks, case), case.grouping, case.parts or 1)


def train_links(
    group: Group,
    triples: Triples,
    split: Split,
    case: RgcnCase,
    seed: int,
    record: Callable[[dict[str, float]], None] = lambda row: None,
    check_every: int = 0,
    begin: Callable[[RGCN, Array, RelationalGraph], None] = lambda net, D, graph: None,
    keeper: Keeper = NOTHING_KEPT,
) -> LinkFit:
    """Train on some of the triples, rank the others; the result is the same for any partition.

    split         which ones, as split_triples deals them
    check_every   epochs between comparisons of replicated weights over ranks; 0: never
    begin         called with network, relations' rows and the graph learned from, before the first epoch
    keeper        where training may be stopped, and what it goes on from
    Ranks         all call
    Raises NumericsError where the loss is no longer finite.
    """
    took = Took()
    graph = links_graph(triples, split, case)
    placement = links_placement(group.size, graph, case)
    widths = widths_of(case, case.dimension)
    net = RGCN(group, placement, graph, np.arange(triples.nodes), widths, case.bases, seed, prune=False)
    decoder = DistMult(group, split, triples.relations, case.dimension, seed)
    begin(net, decoder.D, graph)
    relation_step = make_optimiser(case, decoder.D.size, group.device.xp, kernel=group.device.adam)
    run = _Run(group, net, decoder, placement.rows, Steps(group, case, net), relation_step, took)
    made = 0
    if (earlier := keeper.recall("fit")) is not None:
        made = run.restore(earlier)
    for epoch in range(made + 1, case.epochs + 1):
        beat()
        keeper.at(epoch - 1, "fit", partial(run.state, epoch - 1))
        loss = run.step(split.train, draw_wrong(seed, epoch, split.train, triples.nodes, case.negatives))
        refuse_infinite(loss, epoch, case.learning_rate)
        if check_every and epoch % check_every == 0:
            check_replicas(group, run.replicated(), f"the weights after epoch {epoch}")
        if epoch % case.evaluate_every == 0 or epoch == case.epochs:
            record(run.evaluate(split, epoch, loss))
    run.best.restore(run.arrays())
    return _rank_held_out(run, triples, split, case)


def _rank_held_out(run: "_Run", triples: Triples, split: Split, case: RgcnCase) -> LinkFit:
    """What training leaves, with the held-out triples ranked by the weights at hand. Ranks: all call."""
    group, D, E = run.group, run.decoder.D, run.embeddings()
    relations, embeddings = (np.array(group.device.get(each)) for each in (D, E))
    largest = float(abs(embeddings).max(initial=0) + abs(relations).max(initial=0))
    refuse_infinite(largest, case.epochs, case.learning_rate, "the largest embedding")
    ranks = rank_learned(group, E, D, split, split.test)
    scores = {
        "learned": summary(ranks),
        "most_frequent": summary(rank_frequent(group, triples, split, split.test)),
        "random": random_summary(triples.nodes),
    }
    by_triple = ranks.reshape(2, -1).T
    return LinkFit(
        run.net, relations, embeddings, split.test, by_triple, run.best.epoch, run.records, scores, run.took()
    )


class Best:
    """Copies of arrays at the evaluation with the largest score, the first of equal ones."""

    def __init__(self) -> None:
        self.epoch, self.score, self.kept = 0, -np.inf, {}

    def observe(self, epoch: int, score: float, arrays: dict[str, Array]) -> None:
        """Keep the arrays if they are the best so far."""
        if score > self.score:
            self.epoch, self.score = epoch, score
            self.kept = {name: array.copy() for name, array in arrays.items()}

    def restore(self, arrays: dict[str, Array]) -> None:
        """Make the arrays what the best ones were."""
        for name, kept in self.kept.items():
            arrays[name][...] = kept


@dataclass
class _Run:
    """A training under way: networks, optimisers, the best so far, records, seconds; a checkpoint holds them.

    rows   who owns which nodes
    """

    group: Group
    net: RGCN
    decoder: DistMult
    rows: RowPartition
    steps: Steps
    relation_step: Any
    took: Took
    best: Best = field(default_factory=Best)
    records: list[dict[str, float]] = field(default_factory=list)

    def embeddings(self) -> Array:
        """[n, d] of all nodes. Ranks: all call."""
        return self._everywhere(self.net.forward())

    def _everywhere(self, E_own: Array) -> Array:
        """Own rows of the embeddings, without padding, to all ranks. Ranks: all call."""
        lo, hi = self.rows.range_of(self.group.rank)
        return self.group.gather_rows(E_own[: hi - lo], self.rows.row_counts())

    def step(self, train: np.ndarray, wrong: np.ndarray) -> float:
        """The loss on right triples and wrong ones, and a step of all weights. Ranks: all call."""
        lo, hi = self.rows.range_of(self.group.rank)
        E_own = self.net.forward()
        loss, dD, dE = self.decoder.gradients(self._everywhere(E_own), wrong, train, lo, hi)
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
            ranks = rank_learned(self.group, self.embeddings(), self.decoder.D, split, split.valid)
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

    def state(self, epochs: int) -> State:
        """All that later epochs depend on, after `epochs` of them. Ranks: all call."""
        group, device, best = self.group, self.group.device, self.best
        state = rgcn_kept.state_of(group, self.net, self.steps, epochs, self.records, self.took)
        state.values |= {"best_epoch": best.epoch, "best_score": best.score}
        state.arrays["links/D"] = np.array(device.get(self.decoder.D))
        state.arrays |= optimiser_arrays(self.relation_step, device, "links")
        if best.kept:
            state.arrays["best_links/D"] = np.array(device.get(best.kept["links/D"]))
            state.arrays |= rgcn_kept.gathered(group, self.net, best.kept, "best")
        return state

    def restore(self, state: State) -> int:
        """Go on from what `state` told; the epochs it had made. Ranks: all call."""
        group, device, arrays = self.group, self.group.device, state.arrays
        made = rgcn_kept.restore(group, self.net, self.steps, state)
        self.records += state.values["records"]
        self.took = Took(state.values["seconds"])
        self.best.epoch, self.best.score = state.values["best_epoch"], state.values["best_score"]
        self.decoder.D[...] = device.put(arrays["links/D"])
        restore_optimiser(self.relation_step, device, "links", made, arrays)
        if self.best.epoch:
            own = rgcn_kept.shares(group, self.net, rgcn_kept.named(arrays, "best"))
            own["links/D"] = arrays["best_links/D"]
            self.best.kept = {name: device.put(each) for name, each in own.items()}
        return made


# ---- ranks ----------------------------------------------------------------------------------------------


class Known:
    """For each (relation, node, side) the other ends of known triples: they are not wrong answers."""

    def __init__(self, split: Split, relations: int) -> None:
        # Given sets may share triples: one that counted twice would take two wrong answers away.
        rows = np.unique(np.concatenate([split.train, split.valid, split.test]), axis=0)
        self._R, self._sides = relations, []
        for near, far in ((0, 2), (2, 0)):
            key = rows[:, near] * relations + rows[:, 1]
            order = np.argsort(key, kind="stable")
            self._sides.append((key[order], rows[order, far]))

    def ends(self, side: int, node: int, relation: int) -> np.ndarray:
        """Known objects of a subject (side 0), or subjects of an object (side 1)."""
        keys, far = self._sides[side]
        lo, hi = np.searchsorted(keys, [node * self._R + relation, node * self._R + relation + 1])
        return far[lo:hi]


def filtered_ranks(
    group: Group, split: Split, relations: int, scores_of: Callable[[int, np.ndarray], np.ndarray],
    ranked: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """[2 k] float64: the rank of the object of each triple in `ranked` [k, 3], then of its subject.

    Other known triples are left out; of equally good nodes half count as better.
    scores_of   (side, triples [k, 3]) -> [k, n] host scores of every node in the place of the end
    Ranks       all call; triples are shared out, the result is identical on all
    """
    known, tests = Known(split, relations), len(ranked)
    cuts = [tests * rank // group.size for rank in range(group.size + 1)]
    own = ranked[cuts[group.rank] : cuts[group.rank + 1]]
    twice = np.zeros((len(own), 2), dtype=np.int64)
    for side, (near, far) in enumerate(((0, 2), (2, 0))):
        for lo in range(0, len(own), RANKED_AT_ONCE):
            part = own[lo : lo + RANKED_AT_ONCE]
            for k, (row, scores) in enumerate(zip(part, scores_of(side, part))):
                right = scores[row[far]]
                others = known.ends(side, int(row[near]), int(row[1]))
                better = (scores > right).sum() - (scores[others] > right).sum()
                equal = (scores == right).sum() - (scores[others] == right).sum()
                twice[lo + k, side] = 2 + 2 * better + equal
    every = group.gather_host(twice, np.diff(cuts).tolist())
    return every.T.reshape(-1) / 2


def rank_learned(group: Group, E: Array, D: Array, split: Split, ranked: np.ndarray) -> np.ndarray:
    """filtered_ranks by DistMult scores. Ranks: all call."""
    device, xp = group.device, group.device.xp
    E_t = xp.ascontiguousarray(E.T)

    def scores_of(side: int, part: np.ndarray) -> np.ndarray:
        near = np.zeros(-(-len(part) // 8) * 8, dtype=np.int64)
        relation = near.copy()
        near[: len(part)], relation[: len(part)] = part[:, 2 * side], part[:, 1]
        rows = xp.take(E, device.put(near), axis=0) * xp.take(D, device.put(relation), axis=0)
        return device.get(device.row_product(rows, E_t))[: len(part)]

    return filtered_ranks(group, split, D.shape[0], scores_of, ranked)


def rank_frequent(group: Group, triples: Triples, split: Split, ranked: np.ndarray) -> np.ndarray:
    """filtered_ranks by how often a node is an end of the relation in learned triples. Ranks: all call."""
    ones, shape = np.ones(len(split.train), dtype=np.int32), (triples.relations, triples.nodes)
    counts = [sp.csr_array((ones, (split.train[:, 1], split.train[:, far])), shape=shape) for far in (2, 0)]
    return filtered_ranks(
        group, split, triples.relations, lambda side, part: counts[side][part[:, 1]].toarray(), ranked
    )


def summary(ranks: np.ndarray) -> dict[str, float]:
    """Mean reciprocal rank, and the share of ranks up to 1, 3 and 10."""
    return {"mrr": float((1 / ranks).mean()), **{f"hits_{k}": float((ranks <= k).mean()) for k in HITS}}


def random_summary(nodes: int) -> dict[str, float]:
    """What a rank drawn uniformly from 1 .. nodes would give on average."""
    mrr = float((1 / np.arange(1, nodes + 1)).sum() / nodes)
    return {"mrr": mrr, **{f"hits_{k}": min(k / nodes, 1.0) for k in HITS}}
