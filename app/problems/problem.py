"""Problem: what a learner and a solver need to know of an optimisation problem over nodes.

A problem only declares: which dynamics its states follow (app/rl/env.py has one environment for each), what a
node's state is worth as a number (`code`), what a code looks like to the network, what a choice earns, and
when it is over. Everything here works on whole arrays of marks and fields, whatever rows they are of, so a
problem knows nothing of ranks, devices or batches.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from app.bounds.certificate import Bound
from app.graphs.graph import Graph
from app.toolbox import Instance, Toolbox

Array = Any
FIXED_POINT = 1 << 30  # one, in the fixed point of Totals.caro_wei
GRAIN_PARTS = 2  # in how many parts "sides" dynamics divide what they measure fields in
FIRST_ALIVE = 2  # the least code of a node whose messages count


def coarse(total: int, count: int) -> float:
    """total / count, kept to four leading binary digits; 1 where nothing is counted or it is zero.

    Coarse on purpose: it enters the features of every node, and a value that stays the same over many
    steps leaves the features of untouched nodes as they were.
    """
    if count == 0 or total <= 0:
        return 1.0
    value, exponent = total / count, 0
    while value >= 16:
        value, exponent = value / 2, exponent + 1
    while value < 8:
        value, exponent = value * 2, exponent - 1
    return float(round(value) * 2.0**exponent)


def inverse_root(numbers: np.ndarray) -> np.ndarray:
    """[k] int64, floor(2^30 / sqrt(x)) of integers x, 0 of 0. The square root of float64 rounds exactly."""
    numbers = numbers.astype(np.int64)
    root = np.sqrt((FIXED_POINT**2 // np.maximum(numbers, 1)).astype(np.float64))
    return np.where(numbers > 0, root.astype(np.int64), 0)


class StateTotals(Protocol):
    """Exact integers that describe a state, the same on all ranks: a NamedTuple of ints.

    alive        nodes with an embedding that counts
    candidates   nodes that may be chosen
    """

    @property
    def alive(self) -> int: ...

    @property
    def candidates(self) -> int: ...

    def __iter__(self) -> Any: ...


class Totals(NamedTuple):
    """The totals of a residual graph.

    alive        nodes with at least one live edge
    degree_sum   sum of live degrees: twice the live edges
    caro_wei     sum over alive nodes of floor(2^30 / (1 + degree)), the Caro-Wei sum in fixed point
    """

    alive: int
    degree_sum: int
    caro_wei: int

    @property
    def candidates(self) -> int:
        """Every alive node may be chosen."""
        return self.alive

    def mean_degree(self) -> float:
        """Mean degree of the alive nodes, kept to four leading binary digits."""
        return coarse(self.degree_sum, self.alive)


class Problem(Protocol):
    """One file per problem; app/problems/table.py maps names to classes.

    name             of problem.name and of the weights that ship
    sense            "minimise" or "maximise" the objective
    solution         what a solution is called in the log
    dynamics         "residual" or "field": the environment that plays it, app/rl/env.py: DYNAMICS; "": no
                     policy answers it, and all that follows here of states counts for nothing
    compiled_field   "field" dynamics: the name under which incremental.c knows the steps, "" where not
    closed           True: choosing a node also changes the marks of its neighbours
    ordered          True: a state depends on the order of the choices, not on their set alone
    adjacent         True: nodes taken in one step may be adjacent
    redundancy       what may be taken out of a finished solution, app/rl/redundant.py: REDUNDANCY; "" nothing
    plays_on         True: an episode goes on where its choices are a solution already, and of many more than
                     are needed those go back in the end: what is left is what it is judged by
    feature_counts   columns of each kind of features
    first_candidate  nodes of codes from here on may be chosen; 3: so may every node that has an embedding
    degree_codes     True: a code less 2 is the number of live neighbours
    sized_codes      True: a code tells how many neighbours count, about (`neighbours`)
    own_degree       True: sums over neighbours are divided by the node's own degree, not by the mean one
    mirrors          True: along edges of negative weight nodes look like their mirror images
    own_features     columns of the features that are numbers of a state, the same for every node with an
                     embedding, where the others depend on the code and the first `shared_numbers` numbers of
                     the state alone, and the first is one; none (): no state is told apart like this
    largest_parts    "sides" dynamics: fields beyond it have its code, and so have ages beyond `largest_age`
    totals           the type of a state's totals
    baselines        f(graph) -> (solution [n] bool, label), by name
    bounds           f(graph) -> Certificate, by name
    complemented     True: its states are those of the complement of the graph
    sees_weights     True: its states, rewards and values of policies count the weights of nodes
    known            True: the optimum is `bound` of a smallest vertex cover, and sets of graphs have theirs
    """

    name: str
    sense: str
    solution: str
    dynamics: str
    compiled_field: str
    closed: bool
    ordered: bool
    adjacent: bool
    redundancy: str
    plays_on: bool
    feature_counts: dict[str, int]
    first_candidate: int
    degree_codes: bool
    sized_codes: bool
    own_degree: bool
    mirrors: bool
    totals: type
    baselines: dict[str, Callable[[Graph], tuple[np.ndarray, str]]]
    bounds: dict[str, Callable[[Graph], Bound]]
    complemented: bool
    sees_weights: bool
    known: bool

    # ---- states ----------------------------------------------------------------------------------------

    def shares(self, mark: np.ndarray, field: np.ndarray) -> np.ndarray:
        """[T] int64, the sum over nodes of what each adds to the totals.

        mark, field   [k] integers: marks of some nodes, and the sums of their neighbours' marks (in the
                      residual dynamics the live degree, 0 on removed nodes)
        """
        ...

    def mark_change(self, mark: np.ndarray) -> np.ndarray:
        """[k] integers, by how much a choice changes the marks [k] that it reaches; "field" dynamics."""
        ...

    def mark(self, xp: Any, count: Array, near: Array | None) -> Array:
        """[k, f] float32 marks of nodes chosen `count` times; "field" dynamics.

        near   how often neighbours were chosen, where the problem is closed, else None
        """
        ...

    def code(self, xp: Any, mark: Array, field: Array, real: Array | None = None) -> Array:
        """[k] int32, the row of a state's feature table that each node looks like.

        0: no embedding; 1: an embedding, but no messages; from FIRST_ALIVE on: alive.

        mark, field  [k] of float32 or integers
        real         [k] 1 on nodes, 0 on padding: every node gets an embedding; None: those that a choice
                     needs
        """
        ...

    def plain(self, code: np.ndarray) -> np.ndarray:
        """[k] integers by which a plain greedy takes candidates of codes [k], the largest first.

        Of problems whose last state alone is a solution: it decides what a policy has no time for.
        """
        ...

    def entries(self, max_degree: int) -> int:
        """Codes 0..entries-1 occur in graphs of at most this degree."""
        ...

    def neighbours(self, code: np.ndarray) -> np.ndarray:
        """[k] how many neighbours count, about, by codes [k] (`sized_codes`)."""
        ...

    def mirror(self, code: np.ndarray, max_degree: int) -> np.ndarray:
        """[k] the codes of the mirror images of nodes of codes [k], where the problem has them."""
        ...

    def state(self, totals: Any) -> tuple[float, ...]:
        """What the features see of a state; the first number divides neighbour sums unless `own_degree`."""
        ...

    def features(self, kind: str, xp: Any, code: Array, state: Array) -> Array:
        """Node features [..., F], a function of code and state; code 0 is masked by the caller.

        kind    "paper": of the code alone, in its shape

        code    [..., 1] float32        state [..., len(self.state(...))] float32; they are broadcast:
                codes [entries, 1] and states [states, 1, .] give the tables of several states
        """
        ...

    # ---- rewards ---------------------------------------------------------------------------------------

    def reward(self, before: Any, after: Any, chosen: int, shaping: str) -> float:
        """What a transition that chose `chosen` nodes earns."""
        ...

    def done(self, totals: Any) -> bool:
        """True when the solution is complete."""
        ...

    def left(self, totals: Any) -> tuple[int, str]:
        """What is still to do, a number and its unit, for progress lines."""
        ...

    # ---- solutions -------------------------------------------------------------------------------------

    def objective(self, chosen: int, totals: Any) -> int:
        """The objective of a finished episode that chose `chosen` nodes, nothing taken out."""
        ...

    def solution_of(self, chosen_at: np.ndarray) -> np.ndarray:
        """[k] bool, the solution's nodes.

        chosen_at   [k] int32, the transition at which a node was chosen; -1: never touched, -2: ruled out
        """
        ...

    def limits(self, n: int) -> tuple[int, ...]:
        """Numbers that say which solutions of a graph of n nodes are feasible, beside the graph."""
        ...

    def canonical(self, solution_all: np.ndarray) -> np.ndarray:
        """Of all solutions that mean the same as a solution [n], the one that is told."""
        ...

    def value(self, graph_rows: Graph, solution_all: np.ndarray) -> int:
        """What the held rows add to the objective of a solution [n] bool; not by way of `objective`."""
        ...

    def violation(self, graph_rows: Graph, solution_all: np.ndarray) -> str | None:
        """What is wrong with a solution as the held rows see it, in words; None where nothing is.

        Ranks   a solution is valid when every rank gets None for the rows it holds
        """
        ...

    def toolbox(self, instance: Instance) -> Toolbox:
        """What the solver works with on a whole instance."""
        ...

    def text(self, solution: np.ndarray, ids: np.ndarray) -> str:
        """A solution as the lines of its file, by the input's ids [n]."""
        ...

    def read(self, path: str, ids: np.ndarray) -> np.ndarray:
        """A solution from such a file; raises GraphError."""
        ...

    def bound(self, n: int, lower: int) -> int:
        """The bound on the objective that a certificate's lower bound gives for a graph of n nodes."""
        ...


def room_for_features(xp: Any, code: Array, state: Array, columns: int) -> Array:
    """[..., columns] float32, not filled, for the features of codes and states (Problem.features)."""
    shape = np.broadcast_shapes(code.shape[:-1], state.shape[:-1])
    return xp.empty((*shape, columns), dtype=code.dtype)


def state_size(problem: Problem, graph: Graph) -> tuple[int, int]:
    """Nodes and stored entries of the whole graph whose states a policy sees, of which rows are held."""
    n, edges = graph.n, graph.edges
    return n, n * (n - 1) - 2 * edges if problem.complemented else 2 * edges


class NodesCount:
    """The objective of problems that count the nodes of a solution."""

    plays_on = sees_weights = False

    def value(self, graph_rows: Graph, solution_all: np.ndarray) -> int:
        """The nodes of the solution among the held rows."""
        return int(np.count_nonzero(solution_all[graph_rows.lo : graph_rows.hi]))


def better(problem: Problem, a: float, b: float) -> bool:
    """True when objective a is better than b."""
    return a > b if problem.sense == "maximise" else a < b
