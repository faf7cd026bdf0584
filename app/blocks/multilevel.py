"""Multilevel: blocks of a coarse graph are grown, or taken over, and refined on every graph up to the first.

Source   Karypis and Kumar, SIAM Journal on Scientific Computing 1998; groups of a fixed most size, and by
         label propagation: Meyerhenke, Sanders and Schulz, SEA 2014; groups within blocks that are known, and
         within what two partitions agree on, so that what comes of it is never worse: Sanders and Schulz,
         ALENEX 2012 (KaFFPaE); sweeps without regard to what blocks weigh, then repairs: Gilbert, Madduri,
         Boman and Rajamanickam, Jet, SIAM Journal on Scientific Computing 2024
"""

from collections.abc import Generator
from dataclasses import replace

import numpy as np

from app.blocks.plain import HASTY
from app.blocks.rounds import Blocks, groups, grown, spread, spread_once
from app.graphs.balance import Balance
from app.graphs.contracted import WeightedRows
from app.graphs.lists import ranges
from app.rng import SplitMix

# Both say now and then how many nodes were looked at; the first one returns blocks.
Course, Rounds = Generator[int, None, np.ndarray], Generator[int, None, None]
COARSE = 4  # nodes for each block of the coarsest graph, at least
FEWEST = 16  # nodes of it
SMALLER, SMALLEST = 9, 4  # groups of label propagation in each block, at least; doublings drawn from
FINER = 5  # doublings of these that are drawn from
FRESH = 4  # times as many where blocks are made from nothing
SLOW = 0.95  # of the nodes, that a coarser graph has at most
TWO = 6  # attempts at two blocks on the coarsest graph; at more, of halves of halves, there is one
PATIENCES = (15, 40, 100, 250)  # moves that do not help, in a search
ROUNDS, QUICK_ROUNDS = 12, 3
DENSE = 0.1  # of all weight: where more is cut, flows are dear and rounds of them end early
WORTH = 0.99  # of a cut: a round that leaves more is the last one, and another way down is worth more
NARROWER = 4  # halvings of half a block that the width of a corridor is drawn from
STIRS, NEARLY = 12, 0.999  # sweeps that do not help; of a cut what is no help
QUARTERS = 3  # of what a node has in its block that a sweep may lose by it
FLOW_COST = 3  # looks for each node of a corridor
TOLD = 16  # of a graph of at least one in so many nodes blocks are told, and of the coarsest one
FEW_STIRS = 2  # STIRS of a hasty way
SPARSE = 32  # entries for each node, at most, of graphs that it searches in place of sweeps
TELLING = 1 << 19  # looks between two blocks that it tells of, however a search is sliced


class Multilevel:
    """Ways from blocks to better blocks of one graph; a function of what is drawn.

    Groups are made in two ways by turns: by label propagation, which finds the clusters of networks, and of
    neighbours that belong together most, which fits meshes.

    quick   without flows, of few rounds
    hasty   of few sweeps, or one round of short searches, and groups of one round in the order of nodes: of
            very large graphs
    looks   how many nodes may be looked at until a course has to say so, about
    hurried whether blocks are not to become better any more, only light enough
    whole   a graph of which blocks are told while they become better, or None
    so_far  [n] these blocks, the last ones; who takes them puts None in their place
    cut_so_far   what they cut, where it is known, else below 0
    """

    looks = 1 << 62
    hurried = hasty = False
    whole: Balance | None = None
    so_far: np.ndarray | None = None
    cut_so_far = -1

    def __init__(
        self, draws: np.random.Generator, random: SplitMix, compiled: bool = True, quick: bool = False
    ) -> None:
        self._draws, self._random, self._compiled, self._quick = draws, random, compiled, quick
        self._turn, self._spreads = 0, True
        # Of a hasty way: the graph that is worked on, and how the nodes of the whole one came to it.
        self._shown: tuple[WeightedRows | None, list[np.ndarray]] = None, []

    def fresh(self, balance: Balance, spreads: bool | None = None) -> Course:
        """Blocks from nothing; two of them are the best of TWO on the coarsest graph.

        spreads   whether groups are made by label propagation; None: by turns, first they are
        """
        self._spreads = self._turn % 2 == 0 if spreads is None else spreads
        self._turn += spreads is None
        return (yield from self._made(balance))

    def either(self, balance: Balance) -> Course:
        """Blocks from nothing by either kind of groups, the better ones."""
        one = yield from self.fresh(balance)
        other = yield from self.fresh(balance)
        return self.better_of(balance, one, other)

    @staticmethod
    def better_of(balance: Balance, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Of two partitions that which is less too heavy, of those the one that cuts less."""
        return min(one, other, key=lambda block: (balance.over(block), balance.cut(block)))

    def better(self, balance: Balance, block: np.ndarray, within: np.ndarray | None = None) -> Course:
        """Blocks that are not worse than `block` [n], of groups of nodes that are together in `within` [n], a
        finer partition.
        """
        self._spreads = self._random.below(2) == 0
        return (yield from self._down(balance, block if within is None else within, block))

    def _made(self, balance: Balance) -> Course:
        none = np.zeros(balance.rows.n, dtype=np.int32)
        return (yield from self._down(balance, none, None))

    def _down(self, balance: Balance, within: np.ndarray, block: np.ndarray | None) -> Course:
        levels: list[tuple[Balance, np.ndarray]] = []
        least = max(COARSE * balance.parts, FEWEST) << self._random.below(FINER)
        if block is None:
            least *= FRESH
        shares = least
        if self._spreads:
            shares = (SMALLER << self._random.below(SMALLEST)) * balance.parts
        most = max(int(balance.rows.size.sum()) // shares, int(balance.rows.size.max(initial=1)), 1)
        fine = balance
        while fine.rows.n > least:
            group = self._grouped(fine.rows, most, within)
            yield fine.rows.n
            if int(group.max()) + 1 > SLOW * fine.rows.n:
                break
            levels.append((fine, group))
            first = _first_of(group)
            within, block = within[first], None if block is None else block[first]
            fine = replace(fine, rows=fine.rows.contracted(group, self._compiled))
        if block is None:
            block = yield from self._begun(fine)
        if balance is self.whole:
            self._shown = fine.rows, [group for _, group in levels]
        block = yield from self._settled(fine, block)
        for i, (level, group) in reversed(list(enumerate(levels))):
            if balance is self.whole and (i + 1 == len(levels) or TOLD * len(block) > balance.rows.n):
                self._put(_taken_over(block, [each for _, each in levels[: i + 1]]))
            if balance is self.whole:
                self._shown = level.rows, [each for _, each in levels[:i]]
            block = yield from self._settled(level, block[group])
        return block

    def _grouped(self, rows: WeightedRows, most: int, within: np.ndarray) -> np.ndarray:
        if self.hasty:
            return spread_once(rows, most, within, self._random.bits(), self._compiled)
        order = self._draws.permutation(rows.n)
        if self._spreads:
            return spread(rows, most, order, within, self._random.bits(), self._compiled)
        return groups(rows, most, order, within, self._compiled)

    def _begun(self, balance: Balance) -> Course:
        """Blocks of a coarse graph: two are grown, the best of some, more are halves of halves."""
        best, worth = np.zeros(balance.rows.n, dtype=np.int32), None
        for _ in range({1: 0, 2: TWO}.get(balance.parts, 1)):
            block = yield from self._tried(balance)
            block = yield from self._settled(balance, block)
            told = balance.over(block), balance.cut(block)
            if worth is None or told < worth:
                best, worth = block, told
        return best

    def _tried(self, balance: Balance) -> Course:
        if balance.parts > 2:
            return (yield from self._halved(balance))
        yield balance.rows.n
        return grown(balance, self._draws.permutation(balance.rows.n), self._compiled)

    def _halved(self, balance: Balance) -> Course:
        """Blocks of the two halves of a bisection, each half with its share of the room that there is."""
        rows, parts = balance.rows, balance.parts
        first = (parts + 1) // 2
        total, limits = int(rows.size.sum()), balance.limits.tolist()
        room = sum(limits)  # it may be more than int64 holds
        spare = max(room / max(total, 1), 1.0) ** (1 / (parts - 1).bit_length())
        shares = [sum(limits[:first]), sum(limits[first:])]
        limits = [max(int(total * share / room * spare), total * share // room + 1) for share in shares]
        sides = yield from self._made(replace(balance, limits=np.array(limits, dtype=np.int64)))
        block = np.zeros(rows.n, dtype=np.int32)
        for side, own in enumerate((slice(0, first), slice(first, parts))):
            nodes = np.flatnonzero(sides == side)
            half = replace(
                balance, rows=rows.induced(nodes, np.full(rows.n, -1, np.int32)), limits=balance.limits[own]
            )
            block[nodes] = own.start + (yield from self._made(half))
        return block

    def _settled(self, balance: Balance, block: np.ndarray) -> Course:
        """Blocks that rounds of searches make no better."""
        blocks = Blocks(balance, block, self._compiled)
        if blocks.over:
            yield from self._round(blocks, blocks.heavy(), True)
        if self.hurried:
            return blocks.block
        self._tell(blocks, blocks.block)
        if self.hasty and len(blocks.rows.indices) <= SPARSE * blocks.rows.n:
            yield from self._round(blocks, np.arange(blocks.rows.n), False)
        else:
            yield from self._stirred(blocks)
        if self.hasty:
            return blocks.block
        waiting = np.ones(blocks.parts, dtype=bool)
        for _ in range(QUICK_ROUNDS if self._quick else ROUNDS):
            if self.hurried:
                break
            before, was = (blocks.over, blocks.cut), blocks.block.copy()
            yield from self._round(blocks, blocks.meeting(), False)
            if not self._quick:
                moved = was != blocks.block
                waiting[was[moved]] = waiting[blocks.block[moved]] = True
                waiting = yield from self._flows(blocks, waiting)
            if (blocks.over, blocks.cut) == before or self._is_last(blocks, before):
                break
        return blocks.block

    def _is_last(self, blocks: Blocks, before: tuple[int, int]) -> bool:
        """Whether a round has helped too little for another one; `before`: what was too much, and cut."""
        if self._quick or blocks.over != before[0]:
            return False
        dense = 2 * blocks.cut > DENSE * int(blocks.rows.weights.sum())
        return dense and blocks.cut > WORTH * before[1]

    def _stirred(self, blocks: Blocks) -> Rounds:
        """Sweeps in which nodes go where they have most weight, each followed by repairs, until some have not
        helped; the best blocks there were are left.
        """
        best, block, since = (blocks.over, blocks.cut), blocks.block.copy(), 0
        blocks.begin_sweeps()
        patience = FEW_STIRS if self.hasty else STIRS
        while since < patience and best > (0, 0) and not self.hurried:
            yield blocks.stir(QUARTERS)
            if blocks.over:
                yield from self._round(blocks, blocks.heavy(), HASTY if self._quick else True)
            since += 1
            if (told := (blocks.over, blocks.cut)) < best:
                since = 0 if told < (best[0], NEARLY * best[1]) else since
                best, block = told, blocks.block.copy()
                self._tell(blocks, block)
        blocks.put(block, *best)

    def _tell(self, blocks: Blocks, block: np.ndarray) -> None:
        """Blocks [n] of the whole graph are there for who asks for them."""
        whole = self.whole
        if whole is not None and blocks.rows is whole.rows and blocks.limit is whole.limits:
            self._put(block.copy())

    def _put(self, block: np.ndarray, cut: int = -1) -> None:
        self.so_far, self.cut_so_far = block, cut

    def _flows(self, blocks: Blocks, waiting: np.ndarray) -> Generator[int, None, np.ndarray]:
        """Flows between blocks that meet, one of which waits [parts], in a drawn order; returns which blocks
        cut less since.
        """
        pair, begin, meet = blocks.meetings()
        chosen = self._draws.permutation(np.flatnonzero(waiting[pair].any(axis=1)))
        sizes, firsts = np.diff(begin)[chosen], begin[chosen]
        ends, places = np.append(0, np.cumsum(sizes)), ranges(firsts, sizes)
        widths = blocks.limit[pair[chosen]].max(axis=1) >> self._draws.integers(1, NARROWER + 1, len(chosen))
        blocks.begin_flows(pair[chosen], ends, meet[places], widths)
        while blocks.flowing:
            yield FLOW_COST * blocks.run_flows(max(self.looks // FLOW_COST, 1))
        return blocks.changed > 0

    def _round(self, blocks: Blocks, nodes: np.ndarray, repair: int) -> Rounds:
        patience = PATIENCES[self._random.below(len(PATIENCES))]
        if self.hasty:
            blocks.begin_searches(nodes, 0, repair)
        else:
            blocks.begin_searches(self._draws.permutation(nodes), patience, repair)
        while blocks.waiting:
            looked = blocks.run(TELLING if self.hasty else max(self.looks, 1))
            if self.hasty and not blocks.over and blocks.rows is self._shown[0]:
                self._put(_taken_over(blocks.block.copy(), self._shown[1]), blocks.cut)
            yield looked


def _taken_over(block: np.ndarray, groups: list[np.ndarray]) -> np.ndarray:
    """[n] int32, blocks of the coarsest graph on the finest one; the groups of each but that, the finest
    first.
    """
    for group in reversed(groups):
        block = block[group]
    return block


def _first_of(group: np.ndarray) -> np.ndarray:
    """[k] int64, a node of each of the numbered groups [n]."""
    first = np.empty(int(group.max(initial=-1)) + 1, dtype=np.int64)
    first[group] = np.arange(len(group))
    return first


def end_of(course: Course) -> np.ndarray:
    """What a course returns."""
    while True:
        try:
            next(course)
        except StopIteration as end:
            return end.value
