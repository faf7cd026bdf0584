"""native/clique_roots.c and clique.c in Python, step by step: same cliques, bounds and work, no compiler."""

from itertools import pairwise

import numpy as np

from app.rng import SplitMix

READS = 16  # entries that are read in the time of a word of bit sets


class PlainRoots:
    """A pass over roots, which may stop after any amount of work.

    later_ptr, later   [n+1], [m] the later neighbours of each place, ascending
    weight             [n] int64, above 0
    bound              [n] int64, in and out: no clique with this root weighs more than this, or than `best`
    best               weight of the heaviest clique known
    at                 the roots of the pass that were seen, or the one that is being searched
    most               later neighbours of a root that is searched, at most; no matter here
    """

    def __init__(
        self, later_ptr: np.ndarray, later: np.ndarray, weight: np.ndarray, bound: np.ndarray, best: int,
        most: int,
    ) -> None:  # fmt: skip
        self.later = [later[a:b].tolist() for a, b in pairwise(later_ptr.tolist())]
        self.weight, self.bound = weight.tolist(), bound
        self.best, self.work, self.found_at, self._found = best, 0, 0, []
        self._dense: PlainDense | None = None

    def begin(self, roots: np.ndarray, each: int, kept: bool = False) -> None:
        """The roots of a pass [k], and the most work on one of them, 0: any.

        kept   the first of them is the one that the last pass was searching, and its search goes on
        """
        self.roots, self.each, self.at = roots.tolist(), each, 0
        self._dense = self._dense if kept else None

    @property
    def active(self) -> bool:
        """Whether root `at` of the pass is being searched."""
        return self._dense is not None

    def run(self, until: int) -> bool:
        """Work until `work` has reached a number; True where all roots were seen."""
        if self._dense is not None:
            self._dense.learn(self.best - self.weight[self.roots[self.at]])
        while self.at < len(self.roots) and self.work < until:
            v = self.roots[self.at]
            if self._dense is None:
                if not (self.bound[v] > self.best and self._begin(v)):
                    self.at += 1
                continue
            self._step(v)
        if self._dense is not None:
            self._note(self.roots[self.at])
        return self.at >= len(self.roots)

    def probe(self, root: int, paths: int, seed: int) -> float:
        """About the work of searching below a root, by random paths; nothing may be under search."""
        before, random, below = self.work, SplitMix(seed), 0.0
        dense, self._dense = self._dense if self._begin(root) else None, None
        above, branches = float(self.work - before), len(dense.levels[0][1]) if dense else 0
        for i in range(paths if branches else 0):
            begun = dense.work
            below += dense.path((2 * i + 1) * branches // (2 * paths), random)
            self.work += dense.work - begun
        return above + below / paths

    def clique(self) -> np.ndarray:
        """[k] places of the heaviest clique; none where the caller's stands."""
        return np.array(self._found, dtype=np.int64)

    def learn(self, best: int) -> None:
        """A clique of this weight is known."""
        self.best, self._found = best, []

    def _step(self, v: int) -> None:
        """One step of the search below v."""
        dense = self._dense
        before = dense.work
        dense.step()
        self.work += dense.work - before
        if self.weight[v] + dense.best > self.best:
            self.best = self.weight[v] + dense.best
            self._found = [v, *(self._names[row] for row in dense.found)]
            self.found_at = self.work
        if dense.done or (self.each and self.work - self.begun >= self.each):
            self._note(v)
            self._dense = None
            self.at += 1

    def _note(self, v: int) -> None:
        """What the root under search may still hold: the branch it is in, else the next one."""
        least = max(self.best, self.weight[v] + self._dense.open_bound(self.best - self.weight[v]))
        self.bound[v] = min(self.bound[v], least)

    def _begin(self, v: int) -> bool:
        """The search below v begins; False where nothing there is heavier than the best."""
        base = self.weight[v]
        if base > self.best:
            self.best, self._found, self.found_at = base, [v], self.work
        nodes, k = self.later[v], len(self.later[v])
        place = {u: i for i, u in enumerate(nodes)}
        near = [set() for _ in nodes]
        for i, u in enumerate(nodes):
            for p in (place[x] for x in self.later[u] if x in place):
                near[i].add(p)
                near[p].add(i)
        order, top = self._peel(nodes, near, self.best - base)
        self.work += (sum(len(self.later[u]) for u in nodes) + k * k) // READS + 1
        self.bound[v] = min(self.bound[v], base + top)
        if not order or self.bound[v] <= self.best:
            return False
        order.sort(key=lambda i: -self.weight[nodes[i]])
        self._names = [nodes[i] for i in order]
        joined = [sum(1 << b for b, j in enumerate(order) if j != i and j not in near[i]) for i in order]
        self._dense = PlainDense(joined, [self.weight[u] for u in self._names], self.best - base)
        self.work += self._dense.work
        self.begun = self.work
        return True

    def _peel(self, nodes: list[int], near: list[set[int]], need: int) -> tuple[list[int], int]:
        """The nodes in the reverse of the order of least loads, without those that come first and are too
        light; and the largest of the least loads.
        """
        weight = [self.weight[u] for u in nodes]
        load = {i: weight[i] + sum(weight[j] for j in near[i]) for i in range(len(nodes))}
        order, top = [], 0
        while load:
            least = min(load, key=lambda i: (load[i], i))
            top = max(top, load[least])
            if order or load[least] > need:
                order.append(least)
            del load[least]
            for j in near[least]:
                if j in load:
                    load[j] -= weight[least]
        return order[::-1], top


class PlainDense:
    """The heaviest independent set of a graph by branch and bound: native/clique.c, sets of rows as integers.

    joined   the neighbours of each row, a bit for each     weight   of each row     best   what is known
    """

    def __init__(self, joined: list[int], weight: list[int], best: int) -> None:
        self.joined, self.weight, self.best, self.found = joined, weight, best, []
        self.unit = all(w == 1 for w in weight)
        self.words, self.work = max(-(-len(weight) // 64), 1), 0
        everything = (1 << len(weight)) - 1
        self.levels = [[everything, *self._colour(everything, best), 0]]  # open, branch, bound, weight above
        self.chosen: list[int] = []

    @property
    def done(self) -> bool:
        """Whether the tree is empty."""
        return not self.levels

    def learn(self, best: int) -> None:
        """Only sets that are heavier are searched for."""
        self.best = max(self.best, best)

    def open_bound(self, nothing: int) -> int:
        """What the branch of the root under search may hold, else the next one; `nothing` where none is."""
        if not self.levels:
            return nothing
        branch = self._left if len(self.levels) > 1 else len(self.levels[0][1]) - 1
        return self.levels[0][2][branch] if branch >= 0 else nothing

    def step(self) -> None:
        """One tree node, or one step back."""
        open_, branch, bound, above = level = self.levels[-1]
        if not branch or above + bound[len(branch) - 1] <= self.best:
            self.levels.pop()
            return
        v = branch.pop()
        if len(self.levels) == 1:
            self._left = len(branch)
        total = above + self.weight[v]
        level[0] = open_ & ~(1 << v)
        del self.chosen[len(self.levels) - 1 :]
        self.chosen.append(v)
        if total > self.best:
            self.best, self.found = total, self.chosen.copy()
        rest = level[0] & ~self.joined[v]
        if rest:
            self.levels.append([rest, *self._colour(rest, self.best - total), total])

    def path(self, first: int, random: SplitMix) -> float:
        """The work below the first level, as a random path through child `first` tells it, weighted by the
        branches it did not take.
        """
        paths, words, i = 1.0, 0.0, first
        open_, branch, _, above = self.levels[0]
        while branch:
            v, count = branch[i], len(branch)
            above += self.weight[v]
            rest = open_ & ~self.joined[v] & ~sum(1 << later for later in branch[i:])
            if not rest or above > self.best:
                break
            before = self.work
            branch, _ = self._colour(rest, self.best - above)
            paths *= count
            words += paths * (self.work - before)
            open_, i = rest, random.below(len(branch)) if branch else 0
        return words

    def _colour(self, rest: int, need: int) -> tuple[list[int], list[int]]:
        """Cliques that cover the rows; those that may lead beyond `need` are listed with their bounds."""
        branch, bound, classes, total = [], [], [], 0
        self.work += (rest.bit_count() + 1) * self.words
        while rest:
            tail, members, peak = rest, 0, 0
            while tail:
                bit = tail & -tail
                v = bit.bit_length() - 1
                tail ^= bit
                rest ^= bit
                if self.unit and total >= need and self._renumber(classes, v, need):
                    continue
                tail &= self.joined[v]
                members |= bit
                peak = max(peak, self.weight[v])
                if total + peak > need:
                    branch.append(v)
            if members:
                total += peak
                bound += [total] * (len(branch) - len(bound))
                classes.append(members)
        return branch, bound

    def _renumber(self, classes: list[int], v: int, most: int) -> bool:
        """Row v joins an older clique; the only member it is not joined to moves to another."""
        for k1 in range(most - 1):
            strange = classes[k1] & ~self.joined[v]
            if not strange:
                classes[k1] |= 1 << v
                return True
            if strange & (strange - 1):
                continue
            w = strange.bit_length() - 1
            for k2 in range(k1 + 1, most):
                if not classes[k2] & ~self.joined[w]:
                    classes[k1] = classes[k1] & ~strange | 1 << v
                    classes[k2] |= strange
                    return True
        return False
