"""An independent set with a node of every clique of a cover: where there is one, the bound is attained.

A clique cover says that an independent set weighs at most the sum of the heaviest nodes of its cliques.
Equality asks for one of the heaviest nodes of each clique, no two of them adjacent: a question for a solver
of Boolean satisfiability. On sparse graphs where local search misses some dozen nodes of tens of thousands a
few hundred conflicts may answer it, as nearly every choice forces others. Else nothing is lost but time.

Source  conflict-driven clause learning: Glucose, Audemard and Simon, IJCAI 2009, by PySAT
"""

from importlib.util import find_spec
from typing import Any

import numpy as np

from app.bounds.cover.kernels import Rows

CONFLICTS = 200  # of a slice
MOST_ENTRIES = 1 << 20  # of graphs that the question is asked for: clauses take Python's memory
ENTRY_SECONDS = 6e-7  # of setting up, for each stored entry
SOLVER = "glucose4"


def available() -> bool:
    """Whether the solver can be called. `pysat` would also be the module of another package on PyPI."""
    return find_spec("pysolvers") is not None


class Selection:
    """The question for one cover, asked in slices; a function of the graph, the cover and the slices made.

    rows     the graph           weights [n] int64, at least 0
    clique   [n], the clique of each node
    done     True once there is an answer
    found    [n] bool, an independent set of the weight that the cover allows; None: no such set, or not yet
    """

    def __init__(self, rows: Rows, weights: np.ndarray, clique: np.ndarray) -> None:
        from pysat.solvers import Solver  # not needed by those who start the program for something else

        self.done, self.found = False, None
        self._n = rows.n
        self._solver = Solver(name=SOLVER, bootstrap_with=_clauses(rows, weights, clique))

    def run(self) -> None:
        """One slice; nothing once there is an answer."""
        if self.done:
            return
        self._solver.conf_budget(CONFLICTS)
        # Else the solver takes SIGINT for itself while it works, raises, and does not give it back.
        answer = self._solver.solve_limited(expect_interrupt=True)
        if answer is None:
            return
        self.done = True
        if answer:
            model = np.array(self._solver.get_model()[: self._n])
            self.found = np.zeros(self._n, dtype=bool)
            self.found[model[model > 0] - 1] = True

    def close(self) -> None:
        """Free the solver's memory."""
        self._solver.delete()


def _clauses(rows: Rows, weights: np.ndarray, clique: np.ndarray) -> list[Any]:
    """Lists of literals, v + 1 for node v in the set: a heaviest node of each clique, no edge's two ends."""
    heaviest = np.zeros(int(clique.max(initial=-1)) + 1, dtype=np.int64)
    np.maximum.at(heaviest, clique, weights)
    able = (weights == heaviest[clique]) & (weights > 0)
    nodes = np.flatnonzero(able)
    nodes = nodes[np.argsort(clique[nodes], kind="stable")]
    cuts = np.flatnonzero(np.diff(clique[nodes])) + 1
    chosen = [part.tolist() for part in np.split(nodes + 1, cuts)] if len(nodes) else []
    u = np.repeat(np.arange(rows.n), np.diff(rows.indptr))
    v = np.asarray(rows.indices, dtype=np.int64)
    once = (u < v) & able[u] & able[v]
    apart = np.stack([-(u[once] + 1), -(v[once] + 1)], axis=1).tolist()
    return [*chosen, *apart, *([-int(node) - 1] for node in np.flatnonzero(~able))]
