"""Memory of a rank, term by term: what replaces RL4GO section 4.3's count of adjacency and replay bytes.

at rest     base             interpreter and libraries, as measured
            columns          4 E of the graph; 4 E more where columns are renumbered (halo) or lie in
                             tiles (staged)
            ghost index      4 for each entry in a ghost's column, 4 for each extended column; halo: 8 more
            row offsets      12 R; staged: 4 R more for each further tile
            rows sent        4 for each (halo)
in a step   rows of ranks    4 K S for each extended (halo: and sent) row; staged: of the two largest stages
            step             4 K S R for each array that is held at once: of L rounds the embeddings and sums
                             of all but the first, in learning 3 more; and a few arrays of one number a row
            scores           (L-1) 4 K for each extended row, 33 R (instead of a step, where scores follow)
reading     raw edges        8 for each edge of the rank's share, which give way to
            entries          4 E

The most that a rank holds is that of reading, or rest and a step.
"""

from app.model.layout import Layout
from app.model.work import States, parts_of
from app.rl.qnet import QNetwork

# [R] arrays: masks, degrees, codes, scales, scores
NARROW = {"evaluation": 2, "learning": 28}
DENSE = {"evaluation": 0, "learning": 3}  # [R, K] arrays beside those of the rounds
PIECES = 12 << 20  # buffers of reading and routing, which the allocator keeps for what follows


def whole_graph(n: int, edges: int) -> int:
    """Bytes that whole-graph work takes on one rank: the graph, Python lists of it, and working copies."""
    return 100 * n + 120 * edges


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


def in_step(net: QNetwork, layout: Layout, rank: int, states: States, kind: str) -> dict[str, int]:
    """Bytes of a step's arrays; kind: "evaluation" or "learning" (of one part of a minibatch)."""
    S = states.count if kind == "evaluation" else max(count for count, _ in parts_of(layout.n, states.count))
    arrays = max(2 * (net.policy.layers - 1), 1) + DENSE[kind]
    # The second round reads rows of a table: only their numbers come from other ranks.
    row = 4 * S * (net.K if kind == "learning" or net.policy.layers > 2 else 1)
    out = {"step": 4 * int(layout.rows[rank]) * S * (arrays * net.K + NARROW[kind])}
    if layout.mode == "staged":
        out["rows of ranks"] = min(2, layout.ranks - 1) * int(layout.rows.max()) * row
    elif layout.ranks > 1:
        sent = int(layout.sent[rank]) if layout.mode == "halo" else 0
        out["rows of ranks"] = (layout.extended(rank) + sent) * row
    if kind == "learning":
        out["gradient"] = 8 * int(layout.blocks.sum()) * net.K * net.embedding.later_rows
    return out


def following(net: QNetwork, layout: Layout, rank: int) -> dict[str, int]:
    """Bytes of scores that follow the selections (rl/incremental.py), with those of the state before."""
    above = 4 * net.K * (net.policy.layers - 1) * layout.extended(rank)
    rows, moves = int(layout.rows[rank]), not net.paper or net.policy.mean_degree
    return {"scores": above + 37 * rows + moves * (above + 9 * rows)}


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


def peak(
    net: QNetwork,
    layout: Layout,
    states: States,
    kind: str,
    base: int,
    rank: int | None = None,
    ordered: bool = True,
) -> dict[str, int]:
    """Bytes of a rank at its fullest, by term: reading, or a step.

    rank   None: the one that holds most
    """
    if rank is None:
        each = (peak(net, layout, states, kind, base, r, ordered) for r in range(layout.ranks))
        return max(each, key=total)
    step = max(in_step(net, layout, rank, states, kind), {"pieces": PIECES}, key=total)
    running = at_rest(layout, rank) | step
    return {"base": base} | max(running, reading(layout, rank, ordered), key=total)


def total(terms: dict[str, int]) -> int:
    """The sum of a table of bytes."""
    return sum(terms.values())


def words(terms: dict[str, int]) -> str:
    """The terms of a table in a line."""
    return ", ".join(f"{name} {size(nbytes)}" for name, nbytes in terms.items())


def size(nbytes: float) -> str:
    """Bytes for people."""
    return f"{nbytes / 1e9:.2f} GB" if nbytes >= 1e9 else f"{nbytes / 1e6:.1f} MB"
