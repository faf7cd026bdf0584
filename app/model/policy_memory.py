"""Memory of a rank while a policy works, term by term, beside its graph (memory.py).

in a step   rows of ranks    4 K S for each extended (halo: and sent) row; staged: of the two largest stages
            step             4 K S R for each array that is held at once: of L rounds the embeddings and sums
                             of all but the first, in learning 3 more; and a few arrays of one number a row
            scores           (L-1) 4 K for each extended row, 33 R (instead of a step, where scores follow)

The most that a rank holds is that of reading, or rest and a step.
"""

from app.model.layout import Layout
from app.model.memory import PIECES, at_rest, reading, total
from app.model.work import States, parts_of
from app.rl.qnet import QNetwork

# [R] arrays: masks, degrees, codes, scales, scores
NARROW = {"evaluation": 2, "learning": 28}
DENSE = {"evaluation": 0, "learning": 3}  # [R, K] arrays beside those of the rounds


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
