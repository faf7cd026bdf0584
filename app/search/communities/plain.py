"""Moves of single nodes without kernels, as native/communities.c makes them."""

from typing import Any


def move(mover: Any, most: int) -> int:
    """Look at so many nodes of the queue of a Mover, and move them where that gains; returns how many."""
    looked, n = 0, mover.quality.n
    while looked < most and mover.waiting:
        node = int(mover.queue[mover.first])
        mover.first = (mover.first + 1) % n
        mover.waiting -= 1
        mover.queued[node] = 0
        _look_at(mover, node)
        looked += 1
    return looked


def _look_at(mover: Any, node: int) -> None:
    quality, labels, total, count = mover.quality, mover.label, mover.total, mover.count
    near = range(int(quality.indptr[node]), int(quality.indptr[node + 1]))
    own, size = int(labels[node]), int(quality.size[node])
    total[own] -= size
    count[own] -= 1
    joined: dict[int, int] = {}
    for entry in near:
        label = int(labels[quality.indices[entry]])
        joined[label] = joined.get(label, 0) + int(quality.weights[entry])
    worth = {
        label: quality.near * weight - quality.far * size * int(total[label])
        for label, weight in joined.items()
    }
    stays = worth.get(own, -quality.far * size * int(total[own])) if count[own] else 0
    best = max([0, *worth.values()])
    if best == stays:
        label = own
    elif best > 0:
        label = min(each for each, value in worth.items() if value == best)
    else:
        mover.spares -= 1
        label = int(mover.spare[mover.spares])
    if label != own and count[own] == 0:
        mover.spare[mover.spares] = own
        mover.spares += 1
    total[label] += size
    count[label] += 1
    if label == own:
        return
    labels[node] = label
    mover.gain += best - stays
    for entry in near:
        other = int(quality.indices[entry])
        if not mover.queued[other] and labels[other] != label:
            mover.queue[(mover.first + mover.waiting) % quality.n] = other
            mover.waiting += 1
            mover.queued[other] = 1
