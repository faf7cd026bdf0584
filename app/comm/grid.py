"""Grid: ranks as groups that work side by side; a graph is split over the ranks of a group."""

from bisect import bisect_right
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from itertools import pairwise
from math import gcd
from typing import Any

import numpy as np

from app.comm.group import Group
from app.comm.guard import raise_together
from app.comm.ordered import sum_tree
from app.comm.tree import finish_tree, owned_roots
from app.errors import CaseError

Array = Any
NOBODY_ELSE = nullcontext()  # of a single group, whose errors concern no other


@dataclass(frozen=True)
class Grid:
    """N ranks as G groups of S = N/G, which share D replicas of an agent, or D pieces of other work.

    Group g has the ranks g S .. (g+1) S - 1 and consecutive replicas, one or several. Which group has a
    replica changes no bit: a replica depends on its number, and a sum over replicas is the tree of
    app/comm/tree.py with one leaf for each of them.

    Where graphs are too small to be shared every rank has them whole (`unsplit`): the ranks of a group then
    do the same, each by itself, or the first one for all where there is one replica (`led`).

    world      all N ranks
    group      the ranks that share graphs with this one (spatial parallelism); unsplit: this one
    across     the ranks in the same place of every group, by group (data parallelism)
    number     of this rank's group
    replicas   D
    """

    world: Group
    group: Group
    across: Group
    number: int
    replicas: int

    @property
    def beside(self) -> Group:
        """The ranks that may do different work at the same time, each for those it shares graphs with."""
        return self.across if self.group.size * self.groups == self.world.size else self.world

    def unsplit(self) -> "Grid":
        """The same replicas with whole graphs on every rank, on as many groups as may be. Ranks: all call."""
        groups = fit_groups(self.world.size, self.replicas, spatial=1)
        return replace(cut_grid(self.world, self.replicas, groups), group=self.world.alone())

    @property
    def led(self) -> Group | None:
        """The ranks that would all do the same with the one replica that there is: the first one does it for
        all. None: each has work of its own, or a share.
        """
        return self.world if self.replicas == 1 and self.group.size < self.world.size else None

    @property
    def groups(self) -> int:
        """G."""
        return self.across.size

    @property
    def cuts(self) -> list[int]:
        """[G+1] the first replica of each group."""
        return [self.replicas * g // self.groups for g in range(self.groups + 1)]

    @property
    def mine(self) -> range:
        """The replicas of this rank's group."""
        return range(*self.cuts[self.number : self.number + 2])

    def owner(self, replica: int) -> int:
        """The group that has a replica."""
        return bisect_right(self.cuts, replica) - 1

    def __str__(self) -> str:
        """`4 ranks: 2 replicas x 2 ranks a graph`."""
        most = max(b - a for a, b in pairwise(self.cuts))
        counts = (self.world.size, "rank"), (self.replicas, "replica"), (self.group.size, "rank")
        ranks, replicas, sharing = (f"{count} {what}{'s' if count > 1 else ''}" for count, what in counts)
        turns = f", {most} in turn" if most > 1 else ""
        return f"{ranks}: {replicas} x {sharing} a graph{turns}"

    def together(self, what: str) -> AbstractContextManager[None]:
        """Run what each group does by itself; where one of them fails, all leave with the same error.

        Inside only `group` may be used. Ranks: all enter
        """
        return NOBODY_ELSE if self.groups == 1 else raise_together(self.across, what)

    def in_step(self, pieces: Iterator[None], what: str) -> Iterator[None]:
        """Pieces of the work of those `beside` each other, one of each at a time, then a look outside.

        Where one's fails, all leave with the same error. Ranks: all take them, until there are no more
        """
        more = True
        while more:
            with raise_together(self.beside, what):
                more = next(pieces, self) is None
            more = bool(self.beside.max_integer(int(more)))
            if more:
                yield

    def total(self, values: list[int]) -> list[int]:
        """Sums over groups of one integer or several from each. Ranks: all call."""
        return self.across.sum_integers(np.array(values, dtype=np.int64)).tolist()

    def mean(self, rows: list[Array]) -> Array:
        """[w] float32, the mean over replicas of a device array of each.

        rows     [w] float32 arrays of this group's replicas, the same on all its ranks
        Ranks    all call; identical on all, whatever the grid (with reproducible = false: not)
        """
        if self.replicas == 1:
            return rows[0]
        leaves = [(0, replica) for replica in self.mine]
        roots = owned_roots(self.replicas, self.mine.start, self.mine.stop)
        device = self.group.device
        parts = [finish_tree(rows, leaves, self.replicas, root, device.plus) for root in roots]
        whole = sum_tree(self.across, device.xp.stack(parts), self.cuts, self.replicas)
        return whole * np.float32(1 / self.replicas)

    def means(self, rows: np.ndarray) -> np.ndarray:
        """[w], the means over replicas of host numbers float64 [own replicas, w]. Ranks: all call."""
        held = [b - a for a, b in pairwise(self.cuts)]
        every = self.across.gather_host(np.ascontiguousarray(rows), held, phase="decide")
        return np.add.accumulate(every, axis=0)[-1] / self.replicas


def fit_groups(ranks: int, replicas: int, spatial: int = 0) -> int:
    """How many groups share `replicas` replicas on `ranks` ranks, where `spatial` ranks share a graph.

    spatial   0: as many groups as divide ranks and replicas, so that all do the same work; 1: as many as have
              a replica each; these always fit
    Raises CaseError.
    """
    if not spatial:
        return gcd(ranks, replicas)
    if spatial == 1:
        return max(groups for groups in range(1, replicas + 1) if ranks % groups == 0)
    right = [s for s in range(1, ranks + 1) if ranks % s == 0 and (s == 1 or ranks // s <= replicas)]
    if spatial not in right:
        most = f" into at most parallel.data = {replicas} group{'s' if replicas > 1 else ''}, or be 1"
        raise CaseError(
            f"parallel.spatial: must divide the {ranks} rank{'s' if ranks > 1 else ''}"
            f"{most if replicas < ranks else ''}: {', '.join(map(str, right))}; got {spatial}"
        )
    return ranks // spatial


def cut_grid(world: Group, replicas: int, groups: int) -> Grid:
    """The ranks of `world` as `groups` groups, which divide them. Ranks: all call (Split)."""
    if groups == 1:
        return Grid(world, world, world.alone("data."), 0, replicas)
    number, place = divmod(world.rank, world.size // groups)
    return Grid(world, world.part(groups, number), world.part(groups, place, "data."), number, replicas)
