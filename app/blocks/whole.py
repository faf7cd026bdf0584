"""Blocks of a whole graph from nothing, and blocks that are made light enough."""

from collections.abc import Callable

import numpy as np

from app.blocks.multilevel import Course, Multilevel, end_of
from app.blocks.rounds import Blocks
from app.errors import CaseError
from app.graphs.balance import Balance
from app.rng import SplitMix, stream

ALL = 1 << 62
LOOKS, LOOKS_OF_ROUND = 1 << 15, 1 << 17  # nodes that are looked at between two questions
Look = Callable[[], bool]


def by_levels(
    balance: Balance, compiled: bool = True, both: bool = True, look: Look | None = None
) -> np.ndarray:
    """[n] int64, the blocks of `multilevel`, none too heavy.

    both   the better ones of both kinds of groups; False: those of neighbours alone, in half the time
    look   asked again and again; where it is true blocks of coarse graphs are only taken over from then on
    """
    ways = Multilevel(stream(0, "partition"), SplitMix(0), compiled, quick=True)
    if look is None:
        course = ways.either(balance) if both else ways.fresh(balance, spreads=False)
        return balanced(balance, end_of(course), compiled)
    ways.looks = LOOKS
    block = _in_time(ways, ways.fresh(balance, spreads=None if both else False), look)
    if both and not ways.hurried:
        other = _in_time(ways, ways.fresh(balance), look)
        block = ways.better_of(balance, block, other)
    return balanced(balance, block, compiled)


def _in_time(ways: Multilevel, course: Course, look: Look) -> np.ndarray:
    """What a course returns, in a hurry once `look` is true."""
    while True:
        try:
            next(course)
        except StopIteration as end:
            return end.value
        ways.hurried = ways.hurried or look()


def climbed(
    balance: Balance, block: np.ndarray, compiled: bool = True, look: Look | None = None
) -> np.ndarray:
    """[n] int64, blocks of which none is too heavy, like these [n], after one round in which each node, and
    those next to one that has moved, may go to another block where less is cut then.

    look   asked again and again; where it is true the round ends
    """
    blocks = Blocks(balance, block, compiled)
    blocks.begin_searches(np.arange(balance.rows.n), 0)
    while blocks.waiting and not (look and look()):
        blocks.run(LOOKS_OF_ROUND)
    return block if blocks.over else blocks.block.astype(np.int64)


def balanced(balance: Balance, block: np.ndarray, compiled: bool = True) -> np.ndarray:
    """[n] int64, blocks of which none is too heavy, as near to these as may be. Raises CaseError."""
    if not balance.over(block):
        return block.astype(np.int64)
    blocks = Blocks(balance, block, compiled)
    for nodes in (blocks.heavy(), np.arange(balance.rows.n)):
        blocks.begin_searches(nodes[np.argsort(-balance.rows.size[nodes], kind="stable")], 0, True)
        while blocks.waiting:
            blocks.run(ALL)
        if not blocks.over:
            return blocks.block.astype(np.int64)
    return _packed(balance)


def _packed(balance: Balance) -> np.ndarray:
    """[n] int64, the heaviest node first, each in the block with the least, or the most, room. Raises
    CaseError.
    """
    order = np.argsort(-balance.rows.size, kind="stable").tolist()
    size, limits = balance.rows.size.tolist(), balance.limits.tolist()
    for lightest in (True, False):
        total, block = [0] * balance.parts, np.zeros(balance.rows.n, dtype=np.int64)
        for v in order:
            fits = [b for b in range(balance.parts) if total[b] + size[v] <= limits[b]]
            if not fits:
                break
            to = min(fits, key=lambda b: (total[b] if lightest else -total[b], b))
            block[v] = to
            total[to] += size[v]
        else:
            return block
    right = "a larger problem.imbalance, or fewer problem.parts, would be right"
    raise CaseError(f"no partition was found whose blocks are light enough; {right}")
