"""Memory of a rank, term by term: what replaces RL4GO section 4.3's count of adjacency and replay bytes.

at rest     base             interpreter and libraries, as measured
            columns          4 E of the graph; 4 E more where columns are renumbered (halo) or lie in
                             tiles (staged)
            ghost index      4 for each entry in a ghost's column, 4 for each extended column; halo: 8 more
            row offsets      12 R; staged: 4 R more for each further tile
            rows sent        4 for each (halo)
reading     raw edges        8 for each edge of the rank's share, which give way to
            entries          4 E

What is held beside that is the affair of policy_memory.py, gnn_memory.py and rgcn_memory.py.
"""

from dataclasses import dataclass

from app.model.layout import Layout

PIECES = 12 << 20  # buffers of reading and routing, which the allocator keeps for what follows


# Times what memory.whole_graph_mb counts, as measured (docs/measurements/large.md: "too large for one rank").
WORK = {
    "maxcut": 2.4, "maxcut_once": 2.4, "qubo": 2.4, "ising": 2.4, "mds": 1.6, "fvs": 5.0, "dfvs": 5.0,
    "ordering": 3.2, "dismantle": 5.0, "coverage": 1.6, "dense": 1.6,
}  # fmt: skip


def whole_graph(n: int, edges: int) -> int:
    """Bytes that memory.whole_graph_mb counts for a graph on one rank: itself, lists of it, working copies.

    The same for all problems: a limit lets the same graphs in.
    """
    return 100 * n + 120 * edges


def whole_work(problem: str, n: int, edges: int) -> int:
    """Bytes that whole-graph work of a problem takes on one rank, at most, beside the rows."""
    return round(WORK.get(problem, 1.0) * whole_graph(n, edges))


def at_rest(layout: Layout, rank: int) -> dict[str, int]:
    """Bytes of a graph's rows by what they are for: the graph's own arrays and those of its RowBlock."""
    rows, stored, extended = int(layout.rows[rank]), int(layout.stored[rank]), layout.extended(rank)
    index = 4 if max(stored, extended) < 1 << 31 else 8
    tiles = layout.ranks if layout.mode == "staged" else 1
    out = {
        "columns": stored * (4 + (index if layout.mode in ("halo", "staged") else 0)),
        "row offsets": (8 + index * tiles) * (rows + 1),
    }
    if layout.ranks > 1:
        out["ghost index"] = index * (int(layout.ghost_entries[rank]) + extended + 1)
    if layout.mode == "halo":
        out["ghost index"] += 8 * extended
        out["rows sent"] = 4 * int(layout.sent[rank])
    return out


def reading(layout: Layout, rank: int, ordered: bool = True) -> dict[str, int]:
    """Bytes while the rows are made: raw edges of equal shares, and the entries that they become.

    ordered   True: edges come by their first node, as generators of ER and BA and most files have them, and
              are taken from the end; once the last rank's rows are filled, a share of 1/P^2 of the raw edges
              is gone (one rank: at most 5/4 of either is held). False: rows fill everywhere from the start
    """
    P, entries = layout.ranks, 4 * int(layout.stored[rank])
    raw = 4 * layout.entries // P
    if ordered:
        raw = raw // 4 if P == 1 else raw - raw // P**2
    nodes = 4 * layout.n + 24 * int(layout.rows[rank])
    return {"raw edges": raw, "entries": entries, "nodes": nodes, "pieces": PIECES}


def total(terms: dict[str, int]) -> int:
    """The sum of a table of bytes."""
    return sum(terms.values())


def words(terms: dict[str, int]) -> str:
    """The terms of a table in a line."""
    return ", ".join(f"{name} {size(nbytes)}" for name, nbytes in terms.items())


def size(nbytes: float) -> str:
    """Bytes for people."""
    return f"{nbytes / 1e9:.2f} GB" if nbytes >= 1e9 else f"{nbytes / 1e6:.1f} MB"


@dataclass(frozen=True)
class Need:
    """What the rank that holds most takes of one graph.

    held     bytes by term, at its fullest
    beside   bytes that reductions, search and bounds, on the whole graph, take beside that at most
    least    bytes that it takes in any case; None: all of `held`
    """

    name: str
    held: dict[str, int]
    beside: int = 0
    least: int | None = None

    @property
    def certain(self) -> int:
        """Bytes beyond which there is no use in trying."""
        return total(self.held) if self.least is None else self.least

    @property
    def most(self) -> int:
        """Bytes that may be taken."""
        return total(self.held) + self.beside

    @property
    def words(self) -> str:
        """What is certain, in words."""
        if self.least is not None:
            return f"{self.name}: {size(self.least)} a rank for the graph alone"
        return f"{self.name}: about {size(self.certain)} a rank ({words(self.held)})"
