"""R-GCN training as counts: what each rank computes, sends and receives in an epoch.

Kibata et al. (2020, section 4) measure the time of parts; here it follows from what each rank holds
(rgcn_layout.py), and bytes are exact. Of a layer, with e edges, p pairs and s source rows on a rank, h
columns out and f in (the terms are those of app/model/terms.py):

    one-hot inputs   source rows -> pairs, e h; pairs -> rows, p h; backward rows -> source rows, e h
    B bases          rows of W composed, their gradients by node and by share: 3 s B h, and both ways between
                     the owners of nodes and the holders of source rows
    dense inputs     inputs -> pairs, e f; pairs times W_r, p f h; pairs -> rows, p h; rows times W_0, n f h;
                     backward the adjoints of all these, and the gradients of W_r and W_0: p f h and n f h
    given features   the same without what leads to inputs: rows of pairs are kept
    optimiser        with Adam as long as four passes over the weights
    dropout          a draw for each number between layers, and before an evaluation all layers once more
    links            rows of all nodes to all ranks; each triple, right or wrong, reads rows of d numbers (of
                     2 d with ComplEx, more by distances, which make operands of them) for its score, for the
                     gradients by its relation and by both of its nodes; at an evaluation all layers once
                     more, and [2 v / P, d] times [d, n] for v triples to choose by
    by softmax       in place of triples, for q queries on a rank: [q, c] times [c, n], [q, n] times [n, c]
                     and [q, n]^T [q, c]; n c + 1 numbers added up over all ranks' blocks, and q c gathered;
                     c = d, of distances d + 2. With candidates their number for n, and right triples as above
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from app.case.rgcn import RgcnCase, bases_of
from app.comm.tree import owned_roots
from app.gnn.rgcn.scorers import SCORERS, choices_columns, ends_columns
from app.gnn.rgcn.softmax import Queries, deal_blocks, groups_of_blocks, scored_nodes
from app.gnn.rgcn.triples import deal_relations
from app.graphs.triples.relational import RelationalGraph
from app.model.gnn import INTEGER, OPTIMISER
from app.model.rates import Rates
from app.model.rgcn_layout import Counts, LayerWork, Move, Product
from app.model.terms import Term, Terms
from app.partition.relations import Placement
from app.sparse.relational import octets

FORWARD, BACKWARD = "forward", "backward"
SEGMENT = 0.5  # of an operation's call is a dense product of the pairs of one relation


class Share(Terms):
    """The terms of an epoch of one rank; blocks: of nodes, that each rank owns."""

    def __init__(self, rank: int, blocks: list[int]) -> None:
        super().__init__(rank, len(blocks))
        self.blocks = blocks

    def move(self, name: str, move: Move, width: int) -> None:
        """Rows [.., width] packed, sent, and received."""
        if move.travels:
            rank, size = self.rank, 4 * width
            self.passes(f"{name}: packed", int(move.wanted[rank]) * width)
            sent, received, partners = (int(each[rank]) for each in (move.sent, move.received, move.partners))
            self.message(name, "exchange", sent * size, received * size, partners)

    def product(self, name: str, product: Product, width: int) -> None:
        """Y = A X for rows X that others hold: exchange, clear, multiply."""
        self.move(name, product.move, width)
        held = (product.entries, product.rows, product.move.wanted)
        entries, rows, wanted = (int(each[self.rank]) for each in held)
        self.passes(f"{name}: clear", rows * width)
        self.passes(f"{name}: operand", wanted * width)
        self.add(name, "product", entries, rows, width, 4 * wanted * width, width, 0)
        self.calls(1)

    def dense(
        self, name: str, rows: float, k: int, m: int, kind: str = "wide dense", calls: float = 1
    ) -> None:
        """[rows, k] times [k, m], or for a gradient [rows, k]^T [rows, m]; in so many calls."""
        self.add(name, kind, rows, k, m, 4 * k * m)
        self.calls(calls)

    def calls(self, number: float) -> None:
        """Operations, beside the work that grows with the graph."""
        self.add("operation", "call", number)

    def to_all(self, name: str, counts: Counts, width: int) -> None:
        """Rows [counts[rank], width] of every rank to all."""
        if self.P > 1:
            own, size = int(counts[self.rank]), 4 * width
            self.message(name, "gather", own * size * (self.P - 1), (int(counts.sum()) - own) * size, None)

    def sum_blocks(self, name: str, width: int) -> None:
        """One addend [width] of each row block, chained in order (comm/ordered.py)."""
        self.sum_addends(name, width, self.blocks[self.rank], sum(self.blocks))


@dataclass(frozen=True)
class Links:
    """What training on links does beside the network (gnn/rgcn/links.py).

    counts   [relations] triples to learn from     chosen, held_out   triples to choose the epoch by, to rank
    rows     [ranks] nodes that each rank owns     d        numbers of a row
    queries  that softmax asks; None: triples are learned beside wrong ones
    pairs    whose relations are asked (gnn/rgcn/between.py); None: none are
    """

    counts: np.ndarray
    chosen: int
    held_out: int
    rows: Counts
    d: int
    queries: Queries | None = None
    pairs: Queries | None = None

    def learn(self, share: Share, case: RgcnCase) -> None:
        """Scores of triples and their gradients, and the step of the relations' rows."""
        share.part = "links"
        share.to_all("rows of nodes", self.rows, self.d)
        n = int(self.rows.sum())
        scored = scored_nodes(case, n)
        if self.queries is None:
            self._triples(share, case, 1 + case.negatives)
        else:
            columns = ends_columns(SCORERS[case.scorer], self.d)
            self._asked(share, self.queries, scored, columns, n, (scored < n) + case.loops)
            if scored < n:
                self._triples(share, case, 1)
        if self.pairs is not None:
            R = len(self.counts)
            columns = choices_columns(SCORERS[case.scorer], self.d) + case.loops
            self._asked(share, self.pairs, R, columns, R)
        if case.n3:
            share.passes("norms", 8 * int(self.rows.sum()) * self.d)
        share.passes("relations", OPTIMISER[case.optimiser] * len(self.counts) * (self.d + case.loops))

    def _asked(
        self, share: Share, queries: Queries, scored: int, c: int, answers: int, more: int = 0
    ) -> None:
        """FullSoftmax, or the candidates of SampledSoftmax (gnn/rgcn/softmax.py, sampled.py), or Between.

        answers   among which are those that are scored: all nodes, or all relations
        more      numbers that go with the gradient of a query
        """
        blocks, P = len(queries.blocks) - 1, share.P
        cuts = deal_blocks(blocks, P)
        asked = np.diff(queries.blocks[cuts])
        own, roots = int(asked[share.rank]), [0] * P
        for lo, hi in pairwise(groups_of_blocks(blocks, answers, scored).tolist()):
            ends = np.clip(cuts, lo, hi) - lo
            for rank, (a, b) in enumerate(pairwise(ends.tolist())):
                roots[rank] += len(owned_roots(hi - lo, a, b))
        share.dense("scores", own, c, scored)
        share.add("loss", "loss", own * scored, 4 * own * scored)
        share.dense("gradients of queries", own, scored, c)
        share.dense("gradients of nodes", own, scored, c, "wide gram")
        share.passes("blocks added", (cuts[share.rank + 1] - cuts[share.rank]) * scored * c)
        width = (scored + (scored < answers)) * c + 1  # candidates are followed by what stands for the right
        share.sum_addends("gradients of nodes", width, roots[share.rank], sum(roots))
        share.to_all("gradients of queries", asked, c + more)
        share.passes("gradients led back", 12 * len(queries) * self.d)

    def _triples(self, share: Share, case: RgcnCase, each: int) -> None:
        """SharedTriples, `each` for a right one: of NegativeSampling, or the right ones of SampledSoftmax."""
        owner, P = deal_relations(self.counts, share.P), share.P
        learned = np.bincount(owner, weights=self.counts, minlength=P).astype(np.int64)
        triples, relations = learned * each, np.bincount(owner, minlength=P)
        own, every, n = int(triples[share.rank]), int(triples.sum()), int(self.rows.sum())
        if each > 1:
            share.passes("wrong triples", 12 * every)
        stored, width = SCORERS[case.scorer].shape(n, self.d)
        if (stored, width) != (n, self.d):
            share.passes("operands", 2 * stored * width)
        for name, rows in (("scores", 3 * own), ("by relation", 2 * own), ("by node", 4 * every / P)):
            share.add(name, "product", rows, own, width, 4 * stored * width, width, 0)
        share.add("loss", "loss", own, 4 * own)
        share.to_all("gradients of relations", relations, self.d + case.loops + (each > 1))
        share.to_all("gradients of scores", triples, 1)
        share.passes("places of nodes", 4 * every)

    def evaluate(self, share: Share) -> None:
        """Ranks of the triples to choose by, among all nodes."""
        share.part = "validation"
        share.to_all("rows of nodes", self.rows, self.d)
        self._rank(share, self.chosen, self.d)

    def end(self, rank: int, blocks: list[int]) -> list[Term]:
        """Ranks of the held-out triples, learned and by frequency, once at the end."""
        share = Share(rank, blocks)
        share.part = "held-out triples"
        self._rank(share, self.held_out, self.d)
        self._rank(share, self.held_out, 0)
        return share.terms

    def _rank(self, share: Share, triples: int, d: int) -> None:
        """Scores of both ends of a rank's share of some triples, and how many are better."""
        P, n = share.P, int(self.rows.sum())
        ranked = np.diff(np.arange(P + 1) * triples // P)
        share.dense("scores", 2 * int(ranked[share.rank]), d, n)
        share.passes("compared", 8 * int(ranked[share.rank]) * n)
        share.to_all("ranks", ranked, 4)


@dataclass(frozen=True)
class RelationalTraining:
    """Counts of R-GCN training on P ranks, of which none needs to run.

    nodes      by layer, as nodes_by_layer      widths   of the layers' outputs
    features   columns of the given features; 0: one-hot
    weights    [ranks] numbers that each rank learns
    sets       of labelled nodes whose scores are counted
    links      what is learned are links; None: classes of nodes
    """

    graph: RelationalGraph
    nodes: list[np.ndarray]
    widths: list[int]
    case: RgcnCase
    placement: Placement
    features: int
    weights: Counts
    sets: int = 3
    links: Links | None = None

    def epochs(self) -> list[list[Term]]:
        """The terms of an epoch with its share of the evaluations, on each rank."""
        blocks = self.placement.rows.block_counts
        ranks, depth = len(blocks), len(self.widths)
        shares = [Share(rank, blocks) for rank in range(ranks)]
        for layer in range(depth):
            work = LayerWork(self.graph, self.placement, ranks, self.nodes[layer], self.nodes[layer + 1])
            if layer or self.features:
                self._dense(shares, work, layer)
            else:
                self._one_hot(shares, work)
            for share in shares:
                numbers = int(work.out[share.rank]) * self.widths[layer]
                share.passes("relu and its gate", 5 * numbers)
                if self.case.dropout and layer < depth - 1:
                    share.passes("dropout", numbers, "drop")
        for share in shares:
            forward = [term for term in share.terms if term.part.endswith(FORWARD)]
            if self.links is None:
                self._classes(share, int(work.out[share.rank]))
            else:
                self.links.learn(share, self.case)
            share.part = "optimiser"
            share.passes("update", OPTIMISER[self.case.optimiser] * int(self.weights[share.rank]))
            if self.links is not None and self.links.chosen:
                self._validate(share, forward)
            elif self.links is None and self.case.dropout:
                again = (term._replace(part="evaluation") for term in forward)
                share.terms += map(self._at_evaluations, again)
        return [share.terms for share in shares]

    def _one_hot(self, shares: list[Share], work: LayerWork) -> None:
        """OneHotLayer, and its relations' weights (gnn/rgcn/model.py, weights.py)."""
        h, bases, turns = self.widths[0], bases_of(self.case), range(self.placement.turns)
        there = [(work.sums(turn), work.to_holders(turn) if bases else None) for turn in turns]
        back = [(work.returns(turn), work.to_owners(turn) if bases else None) for turn in turns]
        add, composed = work.add(), work.owned_sources * bases * h
        for share in shares:
            share.part = f"first layer {FORWARD}"
            for sums, rows in there:
                share.product("source rows to pairs", sums, h)
                if rows:
                    share.move("rows of W", rows, h)
            share.product("pairs to rows", add, h)
            share.passes("rows of W", int(composed[share.rank]))
            share.part = f"first layer {BACKWARD}"
            for returns, rows in back:
                share.product("rows to source rows", returns, h)
                if rows:
                    share.move("gradients of W", rows, h)
            if bases:
                share.passes("gradients of bases", 2 * int(composed[share.rank]))
                share.sum_blocks("gradient of a", work.edges.R * bases)

    def _dense(self, shares: list[Share], work: LayerWork, layer: int) -> None:
        """RelationalLayer; the first one: FeatureLayer."""
        f, m = self.widths[layer - 1] if layer else self.features, self.widths[layer]
        ahead, back = [("pairs to rows", work.add(), m)], [("rows to pairs", work.spread(), m)]
        if layer:
            ahead.insert(0, ("inputs to pairs", work.to_pairs(), f))
            back += [
                ("pairs to source rows", work.to_sources(), f),
                ("source rows to inputs", work.collect(), f),
            ]
        back.append(("addends of gradients", work.fold(), f * m // max(self.case.blocks, 1)))
        if bases_of(self.case):
            back.append(("gradients of relations", work.every(), f * m))
        for share in shares:
            share.part = f"{'other layers' if layer else 'first layer'} {FORWARD}"
            self._multiply(share, work, ahead, f, m)
            share.part = share.part.replace(FORWARD, BACKWARD)
            if layer:
                self._multiply(share, work, [], m, f)
            self._weights(share, work, back, f, m)

    def _multiply(
        self, share: Share, work: LayerWork, products: list[tuple[str, Product, int]], f: int, m: int
    ) -> None:
        """Rows [.., f] of pairs by W_r and of nodes by W_0, and remote products."""
        pairs, out, segments = (int(each[share.rank]) for each in (work.pairs, work.out, work.segments))
        for name, product, width in products:
            share.product(name, product, width)
        if products and bases_of(self.case):
            relations = octets(int(work.relations[share.rank]))
            share.dense("W of bases", relations, self.case.bases, f * m)
        blocks = max(self.case.blocks, 1)
        share.dense("pairs times W", pairs, max(f // blocks, 1), m, calls=SEGMENT * segments * blocks)
        share.dense("rows times W_0", out, f, m)

    def _weights(
        self, share: Share, work: LayerWork, products: list[tuple[str, Product, int]], f: int, m: int
    ) -> None:
        """Gradients of W_r and W_0, or of bases and shares."""
        for name, product, width in products:
            share.product(name, product, width)
        rows = max(f // max(self.case.blocks, 1), 1)
        share.dense("gradient of W", int(work.pairs[share.rank]), rows, m, "wide gram")
        share.dense("gradient of W_0", int(work.out[share.rank]), f, m, "wide gram")
        share.sum_blocks("gradient of W_0", f * m)
        if bases_of(self.case):
            share.dense("gradients of a and V", 2 * octets(work.edges.R), self.case.bases, f * m)

    def _classes(self, share: Share, rows: int) -> None:
        """Loss, and the shares of right classes."""
        classes = self.widths[-1]
        share.part = "loss"
        share.add("loss", "loss", rows * classes, 4 * rows * classes)
        share.sum_blocks("loss", 1)
        share.passes("classes", rows * classes)
        if share.P > 1:
            size = INTEGER * self.sets
            hits = Term(share.part, "hits", "max", (size, size, (share.P - 1).bit_length()), 1)
            share.terms.append(self._at_evaluations(hits))

    def _validate(self, share: Share, forward: list[Term]) -> None:
        """All layers once more at an evaluation, and the ranks of the triples to choose by."""
        learned = len(share.terms)
        self.links.evaluate(share)
        repeated = [term._replace(part="validation") for term in forward]
        share.terms[learned:] = map(self._at_evaluations, repeated + share.terms[learned:])

    def _at_evaluations(self, term: Term) -> Term:
        """A term that is there once in evaluate_every epochs."""
        return term._replace(times=1 / self.case.evaluate_every)


def slowest(rates: Rates, epochs: list[list[Term]]) -> list[Term]:
    """The terms of the rank that takes longest."""
    return max(epochs, key=rates.total)
