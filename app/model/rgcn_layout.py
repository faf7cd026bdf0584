"""What each of P ranks holds of a relational layer, and which rows it wants of others; P need not be running.

Counted from the edges as sparse/relational.py deals them (there is what the products are for), so exact.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from app.graphs.keys import sorted_set
from app.graphs.triples.relational import RelationalGraph
from app.partition.relations import Placement
from app.sparse.relational import LayerEdges, octets

Counts = np.ndarray  # [ranks] int64


@dataclass(frozen=True)
class Move:
    """Rows that ranks want of each other (sparse/remote.py: Fetch).

    wanted           rows that a rank multiplies, its own among them
    sent, received   rows from one rank to another     partners   ranks that a rank hears
    """

    wanted: Counts
    sent: Counts
    received: Counts
    partners: Counts

    @property
    def travels(self) -> bool:
        """Whether any rank wants a row of another; nothing is copied where none does."""
        return bool(self.received.any())


@dataclass(frozen=True)
class Product:
    """A product with rows that other ranks hold, on every rank: entries and rows of its matrix."""

    entries: Counts
    rows: Counts
    move: Move


def count_move(ranks: int, at: np.ndarray, key: np.ndarray, holder: Callable[..., np.ndarray]) -> Move:
    """Rows by key [m] that the ranks `at` [m] want of those that hold them."""
    wanted = sorted_set(key.astype(np.int64) * ranks + at)
    wanter, source = wanted % ranks, holder(wanted // ranks)
    far = wanter != source
    pairs = sorted_set(wanter[far] * ranks + source[far])
    by_rank = (np.bincount(of, minlength=ranks) for of in (wanter, source[far], wanter[far], pairs // ranks))
    return Move(*by_rank)


class LayerWork:
    """What the ranks do of one layer, from its edges.

    pairs, sources   held by each rank; source rows of all turns
    owned_sources    source rows of owned nodes     out   padded rows of the layer's outputs
    relations        of the group of a rank         segments   those of them that have a pair on it
    """

    def __init__(
        self,
        graph: RelationalGraph,
        placement: Placement,
        ranks: int,
        inputs: np.ndarray,
        outputs: np.ndarray,
    ) -> None:
        self.placement, self.ranks = placement, ranks
        self.edges = edges = LayerEdges(placement, graph, outputs)
        self._pairs, self._sources = sorted_set(edges.pair), edges.source_rows()
        at = edges.holder(self._pairs)
        self.pairs = self._by_rank(at)
        self.segments = self._by_rank(sorted_set(self._pairs % edges.R * ranks + at) % ranks)
        self.sources = self._by_rank(edges.holder(self._sources))
        self.owned_sources = self._by_rank(edges.owner_of_row(self._sources))
        self.out, self.inputs = (
            _octets_of(self._by_rank(placement.owner(nodes))) for nodes in (outputs, inputs)
        )
        groups = np.arange(ranks) % placement.groups
        self.relations = np.bincount(placement.group_of, minlength=placement.groups)[groups]

    def _by_rank(self, at: np.ndarray) -> Counts:
        return np.bincount(at, minlength=self.ranks)

    def _product(self, at: np.ndarray, key: np.ndarray, holder: Callable, rows: Counts) -> Product:
        return Product(self._by_rank(at), rows, count_move(self.ranks, at, key, holder))

    # ---- products by name, as sparse/relational.py has them -----------------------------------------------

    def sums(self, turn: int) -> Product:
        """Source rows -> pairs, of one turn."""
        edges, now = self.edges, self.edges.turn == turn
        pairs = sorted_set(edges.pair[now])
        return self._product(
            edges.at_pair[now], edges.source_row[now], edges.holder, self._by_rank(edges.holder(pairs))
        )

    def returns(self, turn: int) -> Product:
        """Gradients of outputs -> source rows, of one turn."""
        edges, now = self.edges, self.edges.turn == turn
        rows = self._by_rank(edges.holder(sorted_set(edges.source_row[now])))
        return self._product(edges.at_source[now], edges.target[now], self.placement.owner, rows)

    def add(self) -> Product:
        """Pairs -> rows."""
        pairs = self._pairs
        return self._product(self.edges.owner_of_row(pairs), pairs, self.edges.holder, self.out)

    def to_pairs(self) -> Product:
        """Inputs -> pairs."""
        edges = self.edges
        return self._product(edges.at_pair, edges.source, self.placement.owner, self.pairs)

    def spread(self) -> Product:
        """Rows -> pairs."""
        pairs, R = self._pairs, self.edges.R
        return self._product(self.edges.holder(pairs), pairs // R, self.placement.owner, self.pairs)

    def to_sources(self) -> Product:
        """Pairs -> source rows."""
        edges = self.edges
        return self._product(edges.at_source, edges.pair, edges.holder, self.sources)

    def collect(self) -> Product:
        """Source rows -> inputs."""
        rows = self._sources
        return self._product(self.edges.owner_of_row(rows), rows, self.edges.holder, self.inputs)

    def fold(self) -> Product:
        """Addends by relation and row block -> gradients of relations, on every rank of their group."""
        placement, R = self.placement, self.edges.R
        starts, groups = placement.rows.starts, placement.groups
        blocks = len(starts) - 1
        block = np.searchsorted(starts, self._pairs // R, side="right") - 1
        keys = sorted_set(self._pairs % R * blocks + block)
        owner = np.searchsorted(placement.rows.cuts[1:], np.arange(blocks), side="right")

        def holder(found: np.ndarray) -> np.ndarray:
            return owner[found % blocks] // groups * groups + placement.group_of[found // blocks]

        parts = self.ranks // groups
        at = np.repeat(placement.group_of[keys // blocks], parts) + groups * np.tile(
            np.arange(parts), len(keys)
        )
        return self._product(at, np.repeat(keys, parts), holder, _octets_of(self.relations))

    def every(self) -> Product:
        """Gradients of all relations -> every rank."""
        relations = np.arange(self.edges.R)
        at = np.repeat(np.arange(self.ranks), len(relations))
        key = np.tile(relations, self.ranks)
        rows = np.full(self.ranks, octets(self.edges.R))
        return self._product(at, key, lambda r: self.placement.group_of[r], rows)

    def to_holders(self, turn: int) -> Move:
        """Source rows of a turn, from the owners of their nodes to those who hold them."""
        rows = self._of_turn(turn)
        return count_move(self.ranks, self.edges.holder(rows), rows, self.edges.owner_of_row)

    def to_owners(self, turn: int) -> Move:
        """Their gradients, back."""
        rows = self._of_turn(turn)
        return count_move(self.ranks, self.edges.owner_of_row(rows), rows, self.edges.holder)

    def _of_turn(self, turn: int) -> np.ndarray:
        return self._sources[self.placement.turn_of[self._sources % self.edges.R] == turn]


def _octets_of(counts: Counts) -> Counts:
    """Rows of padded arrays, at least 8 each."""
    return np.array([octets(int(count)) for count in counts], dtype=np.int64)
