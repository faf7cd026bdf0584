"""The search for a set that shows a node to be in some optimal cover (UNCONFINED), on a PlainResidual."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.reductions.cover.log import CHAIN, READS, UNCONFINED

if TYPE_CHECKING:
    from app.reductions.cover.plain import PlainResidual


def unconfined(r: PlainResidual, v: int) -> bool:
    """Cover v if it is found to be unconfined; returns whether it is."""
    chosen, near, around = {v}, {v, *r.row[v]}, list(r.row[v])
    chain: list[int] = []
    reads = place = 0
    while place < len(around) and reads < READS:
        u = around[place]
        place += 1
        if len(r.row[u]) > len(near):  # more than one neighbour lies outside N[S]
            continue
        outside, read = _outside_of(r, u, chosen, near)
        reads += read
        if outside is None:
            continue
        if not outside:
            r.record(UNCONFINED, [v, *chain, u])
            r.cover(v)
            return True
        if len(chain) == 2 * CHAIN:
            return False
        x = outside[0]
        chain += [u, x]
        chosen.add(x)
        around += [z for z in r.row[x] if z not in near]
        near.update((x, *r.row[x]))
        reads += len(r.row[x])
        place = 0
    return False


def _outside_of(r: PlainResidual, u: int, chosen: set[int], near: set[int]) -> tuple[list[int] | None, int]:
    """The neighbours of u outside N[S], None where they are several or S outweighs u; entries read."""
    rest, outside = r.weight[u], []
    for read, z in enumerate(r.row[u], 1):
        if z in chosen:
            rest -= r.weight[z]
        elif z not in near:
            outside.append(z)
        if rest < 0 or len(outside) > 1:
            return None, read
    return outside, len(r.row[u])
