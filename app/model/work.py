"""What a step does, term by term: the model of RL4GO section 6, adapted to this program.

paper                               here, on the heaviest rank: S states, R rows (of all states), E entries
eq. 3  N^2/P B K rho    sums        (L-1) E lines of S K numbers: the first round has none, it starts at zero;
                                    the second reads rows of a table, the same on all ranks
       N^2/P B K L      weights     0: rank two, and a function of the degree where all are one
       N/P B K (2+K..)  dense       R K (rows of W) multiply-adds a round; dead rows are left out
       alpha L log2 P   latency     L-1 exchanges, and one MAX
       beta L B K N     all-reduce  S K numbers of each row of other ranks (gather, staged), or ghost (halo);
                                    in the second round S numbers; backward S K
eq. 5  B K N/P (5+K)    evaluation  R (K+F) hidden multiply-adds
       K P/N B K        pooling     only in training: addends of row blocks, chained
       beta B K         all-reduce  8 S bytes of keys; in training S K numbers of each row block
sec. 6 (3)              environment a few passes over R rows; updates of O(degree) are not counted
-      (none)           learning    evaluations of target and online network, backward with L-1 products,
                                    gradients by row blocks, one sum over ranks a gradient step

Graphs whose edge weights are not all one send one number a row more, which is not counted. What a term is:
terms.py.
"""

import math
from dataclasses import dataclass, field
from itertools import pairwise

from app.comm.tree import owned_roots
from app.model.layout import Layout
from app.model.terms import MESSAGES, Term, by_slices
from app.rl import agent
from app.rl.qnet import QNetwork

MASK_PASSES, MASK_TAKES = 12, 3  # over the removed nodes of all states, to mask them (StateBatch.alive_mask)


@dataclass(frozen=True)
class States:
    """Which states a step looks at.

    count     states side by side     live      share of nodes that have an edge left
    removed   nodes removed in each   graphs    distinct graphs of equal size among the states
    """

    count: int = 1
    live: float = 1.0
    removed: float = 0.0
    graphs: int = 1


@dataclass
class Work:
    """The terms of one rank's share of a step."""

    net: QNetwork
    layout: Layout
    rank: int
    terms: list[Term] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.K, self.L = self.net.K, self.net.policy.layers
        self.edge_weights = self.net.policy.edge_weights
        self.own, self.P = int(self.layout.rows[self.rank]), self.layout.ranks
        self.part, self.times = "", 1

    # ---- building blocks --------------------------------------------------------------------------------

    def look_at(self, states: States, times: int = 1, acting: bool = False) -> None:
        """The states of the terms that follow, each counted `times` times; acting: only to choose."""
        self.S, self.G, self.states, self.times = states.count, states.graphs, states, times
        self.R = self.own * self.S
        self.live = self.present = self.R * states.live
        if self.net.paper and (self.net.pools_to_choose or not acting):
            self.present = self.R  # removed nodes have an embedding too

    def add(self, name: str, kind: str, *amounts: float) -> None:
        """One more term."""
        self.terms.append(Term(self.part, name, kind, amounts, self.times))

    def message(self, name: str, kind: str, sent: int, received: int, turns: int | None = None) -> None:
        """A collective; turns None: log2 P messages follow one another, as in eqs. 3 and 5."""
        self.add(name, kind, sent, received, math.ceil(math.log2(self.P)) if turns is None else turns)

    def passes(self, name: str, numbers: float, kind: str = "element") -> None:
        """Passes over arrays of 4-byte numbers, of which [R, K] is the largest."""
        self.add(name, kind, numbers, 4 * max(min(numbers, self.R * self.K), 1))

    def dense(self, name: str, rows: float, k: int, m: int, kind: str = "dense") -> None:
        """[rows, k] times [k, m], or for a gradient [rows, k]^T [rows, m]."""
        self.add(name, kind, rows, k, m, 4 * self.R * self.K)
        live = rows / max(self.R, 1)
        # A mask of 0 and 1 in no order: the processor guesses wrong most often where both are as frequent.
        self.add(f"{name}: skipped rows", f"skip {kind}", 4 * live * (1 - live) * self.R, 4 * self.R * self.K)

    def product(self, name: str, width: int, live: bool = True) -> None:
        """A X for every state, X of `width` columns: clear, exchange, multiply (sparse/exchange.py).

        live   results of removed nodes are left out
        """
        layout, columns = self.layout, width * self.S // self.G
        self.passes(f"{name}: clear", self.R * width)
        self._exchange(f"{name}: rows", width)
        held = layout.rows.max() if layout.mode == "staged" else layout.extended(self.rank)
        stages = self.P if layout.mode == "staged" else 1
        self.passes(f"{name}: operand", int(held) * stages * width * self.S)
        self.add(
            f"{name}: multiply", "product", int(layout.stored[self.rank]) * self.G,
            self.own * self.G * stages, columns, 4 * int(held) * columns, width,
            self.states.removed / max(layout.n, 1) if live else 0.0,
        )  # fmt: skip

    def _exchange(self, name: str, width: int) -> None:
        """Rows of so many columns a state, on their way to the ranks that multiply by them."""
        layout, size = self.layout, 4 * width * self.S
        if layout.mode == "halo":
            sent, ghosts = int(layout.sent[self.rank]), int(layout.ghosts[self.rank])
            self.passes(f"{name}, packed and placed", (sent + self.own) * width * self.S)
            self.message(name, "exchange", sent * size, ghosts * size, int(layout.partners[self.rank]))
        elif self.P > 1:
            others = layout.total_rows - self.own
            staged = layout.mode == "staged"
            kind, turns = ("stage", self.P - 1) if staged else ("gather", None)
            self.message(name, kind, self.own * size * (self.P - 1), others * size, turns)

    def sum_blocks(self, name: str, width: int) -> None:
        """One addend [width] of each row block, chained in order (comm/ordered.py)."""
        blocks, own, others = int(self.layout.blocks.sum()), int(self.layout.blocks[self.rank]), self.P - 1
        if by_slices(self.P, width, blocks):
            piece = 4 * -(-width // self.P)
            self.passes(f"{name}: sliced", own * width * 2)
            self.message(f"{name}: slices", "slices", own * piece * others, (blocks - own) * piece, others)
            self.passes(f"{name}: chain", blocks * piece / 4)
            self.message(f"{name}: results", "addends", piece * others, piece * others)
            return
        if others:
            self.message(f"{name}: addends", "addends", 4 * own * width * others, 4 * (blocks - own) * width)
        self.passes(f"{name}: chain", blocks * width)

    # ---- the network ------------------------------------------------------------------------------------

    def inputs(self) -> None:
        """QNetwork.inputs: masks, features by table, scales, edge weights."""
        policy = self.net.policy
        several = self.S > 1
        self.part = "environment"
        self.entries = self.S * (2 + self.layout.max_degree)
        self.add("feature tables", "feature", self.entries)
        mask = 4 if self.net.paper else 2
        self.passes("masks and codes", self.R * (mask + 3 + 2 * several + policy.mean_degree))
        if several and policy.mean_degree:
            self.passes("mean degrees", self.R, "take")

    def embed(self) -> None:
        """Structure2Vec.forward: eq. 1. Features, edge terms and the first round are rows of a table."""
        self.part = "embedding"
        first, later = self.net.embedding.first_rows, self.net.embedding.later_rows
        for layer in range(self.L):
            self.add("table", "dense", self.entries, first, self.K, 4 * self.entries * self.K)
            if layer:
                self.neighbour_sums(layer)
                self.dense(f"round {layer + 1}", self.live, later - first, self.K)
                if self.present > self.live:
                    self.passes("rows without sums", (self.present - self.live) * self.K)
        if self.L == 1:
            self.passes("rows written out", self.R * self.K)

    def neighbour_sums(self, layer: int) -> None:
        """Sums over neighbours before round `layer`, from 0: of rows of a table before the second round."""
        if layer > 1:
            if self.present > self.live:
                self.passes("live rows", self.R * self.K)
            self.product("neighbour sums", self.K)
            return
        layout, live = self.layout, 1 - self.states.removed / max(self.layout.n, 1)
        held = layout.rows.max() if layout.mode == "staged" else layout.extended(self.rank)
        self.passes("first sums: clear", self.R * self.K)
        self._exchange("first sums: numbers of rows", 1)
        entries, rows = int(layout.stored[self.rank]) * self.S, self.own * self.S
        self.add("first sums: look up", "lookup", live * entries, live * rows, self.K, 4 * int(held) * self.S)

    def pool(self) -> None:
        """Sums of embeddings over nodes."""
        self.part = "evaluation"
        self.passes("pooling", self.R * self.K)
        self.sum_blocks("pooled", self.S * self.K)

    def score(self) -> None:
        """QNetwork.local_scores: eq. 2."""
        self.part = "evaluation"
        head = self.K + (0 if self.net.paper else self.net.F)
        if self.net.pools_to_choose:
            self.passes("pooled half of every row", self.R * self.net.hidden, "take")
        self.dense("scores", self.live, head, self.net.hidden)

    def choose(self) -> None:
        """The best candidate of each state: a pass over the scores, one MAX."""
        self.part = "evaluation"
        self.passes("candidates", self.R)
        self.passes("best rows", self.R, "reduce")
        if self.P > 1:
            self.message("decision", "max", 8 * self.S, 8 * self.S)

    def backward(self) -> None:
        """Structure2Vec.backward and the gradient's addends."""
        self.part = "learning"
        embedding = self.net.embedding
        self.passes("gradient of embeddings", 2 * self.R * self.K)
        for layer in reversed(range(self.L)):
            met = embedding.later_rows - embedding.first_rows if layer else 0
            columns = self.net.F + met + 2 * self.edge_weights
            everywhere = layer == self.L - 1 or self.net.policy.self_weight
            rows = self.present if everywhere else self.live
            self.dense(f"weight gradient {layer + 1}", rows, columns, self.K, "gram")
            if layer:
                self.through_layer()

    def through_layer(self) -> None:
        """dZ of the round before: one product, as forward."""
        self.dense("gradient of sums", self.live, self.K, self.K)
        self.product("adjoint sums", self.K)
        if self.net.policy.self_weight:
            self.dense("own gradient", self.present, self.K, self.K)
        else:
            self.passes("gate", 2 * self.R * self.K)

    def embedding_parameters(self) -> int:
        """Numbers of a gradient's addend; edge weights as two halves for each round."""
        F, met = self.net.F, self.net.embedding.later_rows - self.net.embedding.first_rows
        rows = F + met * (self.L > 1) if self.net.policy.shared_layers else F * self.L + met * (self.L - 1)
        return self.K * (rows + 2 * self.L * self.edge_weights)


def evaluation(
    net: QNetwork, layout: Layout, states: States = States(), rank: int | None = None
) -> list[Term]:
    """One full policy evaluation and selection: score_environments and best_nodes.

    rank   whose share; None: the heaviest
    """
    work = Work(net, layout, layout.heaviest if rank is None else rank)
    work.look_at(states, acting=True)
    work.part = "environment"
    work.add("evaluation", "call", 1)
    work.passes("degrees and masks", 4 * work.R)
    _evaluate(work, pool=net.pools_to_choose)
    work.score()
    work.choose()
    return work.terms


def learning(
    net: QNetwork, layout: Layout, states: States, double: bool = False, rank: int | None = None
) -> list[Term]:
    """One gradient step on a minibatch: Agent.learn, without the comparison of weights every check_every.

    states   those of the minibatch; parts of it go through the network one by one
    """
    work = Work(net, layout, layout.heaviest if rank is None else rank)
    for count, times in parts_of(layout.n, states.count):
        share = States(count, states.live, states.removed, min(states.graphs, count))
        work.look_at(share, times)
        _learn_part(work, double)
    work.look_at(States(states.count))
    work.part = "learning"
    for name, times in (("step", 1), ("state", states.count), ("member", states.graphs)):
        work.add(name, "call", times)
    work.sum_blocks("gradient", work.embedding_parameters())
    return work.terms


def mean_of_replicas(width: int, replicas: int, groups: int) -> Term:
    """The mean over replicas of [width] float32 gradients: what group 0 sends and receives (Grid.mean).

    Addends of all groups go to all; where they go by slices (comm/ordered.py), this says more than is sent.
    """
    cuts = [replicas * g // groups for g in range(groups + 1)]
    addends = [len(owned_roots(replicas, a, b)) for a, b in pairwise(cuts)]
    sent, received = addends[0] * (groups - 1), sum(addends[1:])
    turns = math.ceil(math.log2(groups))
    return Term("learning", "mean of replicas", "addends", (4 * width * sent, 4 * width * received, turns), 1)


def parts_of(n: int, states: int) -> list[tuple[int, int]]:
    """(states of a part, how many such parts) of a minibatch of graphs of n nodes: as Agent cuts it."""
    rows = max(agent.PART_ROWS, min(4 * n, agent.MOST_ROWS))
    most = max(rows // max(n, 1), 1)
    whole, rest = divmod(states, most)
    return [(count, times) for count, times in ((most, whole), (rest, 1)) if count and times]


def _learn_part(work: Work, double: bool) -> None:
    """A part of a minibatch: the values of the states after, those of the states before, the gradient."""
    net, K = work.net, work.K
    work.part = "learning"
    work.add("part", "call", 1)
    work.part = "environment"
    removed = work.S * work.states.removed
    work.passes("states of rows", 5 * work.R)
    work.passes("removed nodes", MASK_PASSES * removed)
    work.passes("removed nodes: rows", MASK_TAKES * removed, "take")
    work.product("live degrees", 2, live=False)
    _evaluate(work, pool=True)
    if double:
        work.embed()
        if net.pools_to_choose:
            work.pool()
    work.score()
    work.choose()
    if double:
        _merge(work, K + (0 if net.paper else net.F))
    _evaluate(work, pool=True)
    _merge(work, K + (0 if net.paper else net.F))
    work.backward()
    work.passes("addends", 3 * int(work.layout.blocks[work.rank]) * work.embedding_parameters())


def _evaluate(work: Work, pool: bool) -> None:
    work.inputs()
    work.embed()
    if pool:
        work.pool()


def _merge(work: Work, width: int) -> None:
    """The chosen rows, on all ranks."""
    work.part = "evaluation"
    if work.P > 1:
        work.message("chosen rows", "merge", 4 * work.S * width, 4 * work.S * width)


def sent_bytes(terms: list[Term]) -> dict[str, int]:
    """Bytes that the rank sends, by phase as Group counts them."""
    out: dict[str, int] = {}
    for term in terms:
        if term.kind in MESSAGES:
            phase = MESSAGES[term.kind][0]
            out[phase] = out.get(phase, 0) + int(term.amounts[0]) * term.times
    return out
