"""The bound of one connected graph by inequalities of trees, then by cases told apart by nodes (branch and
cut), as app/bounds/fvs/cases.py does it for feedback vertex sets.
"""

import numpy as np

from app.bounds.case_proof import KEPT, TAKEN
from app.bounds.dismantle.program import ROOTS, Tree, TreeProgram
from app.bounds.dismantle.witness import PartBound
from app.bounds.fvs.cases import PartSearch, ends_of
from app.graphs.joined import root_of
from app.graphs.sized import SizedGraph


class DismantleSearch(PartSearch):
    """The work on one part.

    first    inequalities that are known: (nodes, above or None) of trees and cliques
    sparse   edges (u, v) of a subgraph without small cycles, or None
    """

    kinds = 4

    def __init__(
        self, core: SizedGraph, nodes: np.ndarray, first: list[tuple], sparse: tuple | None = None
    ) -> None:
        super().__init__(core, nodes)
        self._first, self._sparse = first, sparse

    def program_of(self, core: SizedGraph) -> TreeProgram:
        """The program of the part."""
        return TreeProgram(core)

    def _begin(self) -> None:
        trees = [
            (tuple(row[0].tolist()), tuple(row[1].tolist())) for row in self._first if row[1] is not None
        ]
        if self._sparse is not None:
            trees.append(tuple(tuple(each.tolist()) for each in self._sparse))
        self.program.add(trees, [tuple(row[0].tolist()) for row in self._first if row[1] is None])

    def _separate(self, brief: bool) -> int:
        """Inequalities that the last optimum violates; how many were found."""
        program, x = self.program, self.program.x
        find, most = program.separation, max(30, self.core.n // 2)
        order = np.argsort(x, kind="stable")
        light = order[x[order] < 1 - 1e-6]
        roots = light if len(light) <= ROOTS else np.append(
            light[: ROOTS // 2], self._draws.permutation(light[ROOTS // 2 :])[: ROOTS // 2]
        )  # fmt: skip
        roots = roots.tolist()
        found = find.small(x, roots)
        if not brief or not found:
            found += find.wide(x, roots)
        trees = [tree for _, tree in sorted(found)[:most]]
        return program.add(trees, find.cliques(x, most // 2), program.halves(most // 2))

    def _round_off(self) -> None:
        """A set from the last optimum: nodes that x has least of are left, while nothing is too large."""
        x, find = self.program.x, self.program.separation
        part, total = list(range(self.core.n)), list(find.size)
        chosen = np.ones(self.core.n, dtype=bool)
        for v in np.lexsort((-self.core.weights, np.round(x, 6))).tolist():
            roots = {root_of(part, u) for u in find.near[v] if not chosen[u]}
            joined = find.size[v] + sum(total[each] for each in roots)
            if joined > self.core.most:
                continue
            chosen[v] = False
            total[v] = joined
            for each in roots:
                part[each] = v
        self.offer(chosen)

    def _closing(self, state: np.ndarray, v: int) -> Tree | None:
        """A tree of v and nodes that are kept, too large; None: there is none."""
        find = self.program.separation
        nodes, above, known, total = [v], [-1], {v}, find.size[v]
        for i, a in enumerate(nodes):
            if total > self.core.most:
                return tuple(nodes), tuple(above)
            for u in find.near[a]:
                if state[u] == KEPT and u not in known and total <= self.core.most:
                    known.add(u)
                    nodes.append(u)
                    above.append(i)
                    total += find.size[u]
        return (tuple(nodes), tuple(above)) if total > self.core.most else None

    def _chosen(self, state: np.ndarray) -> int:
        """The node that tells two cases apart; -1: those that are not taken are not too large."""
        if self.core.without(state == TAKEN)[0].apart():
            return -1
        return super()._chosen(state)

    def _rank(self, key: tuple) -> int:
        """Trees, cliques, subgraphs, halves."""
        return (2 if key[1][1][0] >= 0 else 0) if key[0] == 0 else (1, 3)[key[0] - 1]

    def _told(self, cases: list[int], y: list[tuple[np.ndarray, np.ndarray]]) -> PartBound:
        """The inequalities that are used, trees before cliques."""
        place, (trees, cliques, sparse, halves) = self._used(y)
        lists = (np.array([each for tree in trees for each in tree[i]], dtype=np.int32) for i in (0, 1))
        return PartBound(
            self.nodes.astype(np.int64), ends_of([tree[0] for tree in trees]), *lists, ends_of(cliques),
            np.array([node for clique in cliques for node in clique], dtype=np.int32),
            ends_of([ends[0] for ends in sparse]),
            *(np.array([each for ends in sparse for each in ends[i]], dtype=np.int32) for i in (0, 1)),
            ends_of(halves),
            place[[number for each in halves for number in each]].astype(np.int32),
            np.array(cases, dtype=np.int64), ends_of([which for which, _ in y]),
            np.concatenate([np.zeros(0, np.int32), *(place[which] for which, _ in y)]).astype(np.int32),
            np.concatenate([np.zeros(0, np.int64), *(value for _, value in y)]), self.program.places,
        )  # fmt: skip
