"""Memory of a rank, term by term: what replaces RL4GO section 4.3's count of adjacency and replay bytes.

at rest     base             interpreter and libraries, as measured or DEFAULT
            columns          4 E of the graph; 4 E more where columns are renumbered (halo) or lie in
                             tiles (staged)
            ghost index      4 for each entry in a ghost's column, 4 for each extended column; halo: 8 more
            row offsets      12 R; staged: 4 R more for each tile
            rows sent        4 for each (halo)
in a step   rows of ranks    4 K S for each extended (halo: and sent) row; staged: of the two largest stages
            step             4 K S R times the arrays held at once, and 4 S R times those of one number a row
            incremental      (L-1) 4 K for each extended row, 33 R (instead of a step, where scores follow)
reading     raw edges        8 for each edge of the rank's share, while its rows take 4 E
"""

from app.model.layout import Layout
from app.model.work import States, parts_of
from app.rl.qnet import QNetwork

DEFAULT_BASE = 75 << 20
DENSE_EVALUATION = 5  # [R, K] arrays of an evaluation at once: those of two rounds, sums, what is cleared
DENSE_LEARNING = 9  # kept for backward, and its own
NARROW = {
    "evaluation": 10,
    "learning": 24,
}  # [R] arrays: masks, degrees, codes, scales, scores, and their parts
READING_PIECES = 24 << 20  # buffers of reading and routing


def at_rest(layout: Layout, rank: int) -> dict[str, int]:
    """Bytes of a graph's rows by what they are for: the graph's own arrays and those of its RowBlock."""
    rows, stored, extended = int(layout.rows[rank]), int(layout.stored[rank]), layout.extended(rank)
    index = 4 if max(stored, extended) < 1 << 31 else 8
    tiles = layout.ranks if layout.mode == "staged" else 1
    out = {
        "columns": stored * (4 + (index if layout.mode in ("halo", "staged") else 0)),
        "row offsets": 8 * (rows + 1) + index * tiles * (rows + 1),
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
    rows, row = int(layout.rows[rank]) * S, 4 * net.K * S
    dense = DENSE_EVALUATION if kind == "evaluation" else DENSE_LEARNING
    out = {"step": 4 * rows * (dense * net.K + NARROW[kind])}
    if layout.mode == "staged":
        out["rows of ranks"] = 2 * int(layout.rows.max()) * row
    elif layout.ranks > 1:
        sent = int(layout.sent[rank]) if layout.mode == "halo" else 0
        out["rows of ranks"] = (layout.extended(rank) + sent) * row
    if kind == "learning":
        out["gradient"] = 8 * int(layout.blocks.sum()) * net.K * net.embedding.later_rows
    return out


def following(net: QNetwork, layout: Layout, rank: int) -> dict[str, int]:
    """Bytes of scores that follow the selections (rl/incremental.py)."""
    above = 4 * net.K * (net.policy.layers - 1) * layout.extended(rank)
    return {"incremental scores": above + 33 * int(layout.rows[rank])}


def reading(layout: Layout, rank: int) -> dict[str, int]:
    """Bytes while the rows are made: raw edges of equal shares, and the entries that they become."""
    nodes = 4 * layout.n + 24 * int(layout.rows[rank])
    return {
        "raw edges": 4 * layout.entries // layout.ranks, "entries": 4 * int(layout.stored[rank]),
        "nodes": nodes, "pieces": READING_PIECES,
    }  # fmt: skip


def peak(
    net: QNetwork, layout: Layout, states: States, kind: str, base: int, rank: int | None = None
) -> dict[str, int]:
    """Bytes of a rank at its fullest, by term: reading, or a step.

    rank   None: the one that holds most
    """
    if rank is None:
        return max((peak(net, layout, states, kind, base, r) for r in range(layout.ranks)), key=total)
    running = at_rest(layout, rank) | in_step(net, layout, rank, states, kind)
    return {"base": base} | max(running, reading(layout, rank), key=total)


def total(terms: dict[str, int]) -> int:
    """The sum of a table of bytes."""
    return sum(terms.values())
