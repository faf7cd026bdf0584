"""Diffusion: along which arcs of a graph news may go, and how likely, in whole numbers.

Independent cascade: an arc u -> v is live with its probability, whatever else is; who is reached from
seeds along live arcs is active. Linear threshold: v becomes active when the weights of arcs from active
nodes add up to its threshold, a random number below one; of live arcs that means at most one into each
node, drawn by weight.

Source   Kempe, Kleinberg and Tardos 2003: both models, the live arcs of either, and weighted cascade
Probabilities are kept in units of 2^-32, those below half a unit are none.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from app.errors import GraphError
from app.graphs.graph import IN_A, Graph
from app.graphs.lists import by_columns, starts
from app.rng import stream

ONE = 1 << 32  # a probability of one, in units
TRIVALENT = (0.1, 0.01, 0.001)  # Chen, Wang and Wang 2010
SUM_SLACK = 1e-5  # above one, of weights into a node, that 32-bit weights may come to: they are scaled down
MOST_LIVE = 48  # entries of a table of how many arcs are live
MOST_MEAN, LEAST_DEGREE = 4.0, 4  # of live arcs into a node with a table; and of its arcs
ODDS = 1 << 53  # of certainty, in tables
CASCADE, THRESHOLD = "independent_cascade", "linear_threshold"
IN_DEGREE, WEIGHTS, CONSTANT, TRIVALENCY = "in_degree", "weights", "constant", "trivalency"


@dataclass(frozen=True, eq=False)
class Diffusion:
    """Nodes 0..n-1 and distinct arcs between different ones that may be live.

    threshold      linear thresholds; else cascades
    in_ptr, into   [n+1] int64, [m] int32: tails of the arcs into each node, ascending
    limit          [m] uint64: an arc is live where a draw of 32 bits is below; of thresholds the sums so
                   far of a node's arcs: the first one above the draw is live
    out_ptr, out   [n+1] int64, [m] int32: heads of the arcs out of each node, ascending
    share          [m] uint64, of `out`: the probability (weight) of each arc, in units
    table          [n] int32, which table tells how many of a node's arcs are live (they are alike), -1:
                   none does
    table_ptr, odds   [t+1] int64, [.] uint64: a draw of 53 bits below odds[k] means at most k
    """

    n: int
    threshold: bool
    in_ptr: np.ndarray
    into: np.ndarray
    limit: np.ndarray
    out_ptr: np.ndarray
    out: np.ndarray
    share: np.ndarray
    table: np.ndarray
    table_ptr: np.ndarray
    odds: np.ndarray

    @property
    def arcs(self) -> int:
        """How many may be live."""
        return len(self.into)

    @cached_property
    def certain(self) -> bool:
        """Whether every arc is live for certain, so that all worlds are alike."""
        return bool((self.share == ONE).all())


def diffusion_of(graph: Graph, threshold: bool, probabilities: str, constant: float, seed: int) -> Diffusion:
    """What a whole graph says; an edge without direction is an arc each way. Raises GraphError.

    probabilities   of arcs: IN_DEGREE, one over the arcs into a node (weighted cascade); WEIGHTS, those of
                    the graph; CONSTANT, all `constant`; TRIVALENCY, one of TRIVALENT, drawn by the seed
    """
    tails, heads = graph.row_of(), graph.indices.astype(np.int64)
    given = graph.weights
    if graph.arcs is not None:  # rows hold heads of arcs: graph.neighbours = "out"
        kept = graph.arcs & IN_A > 0
        tails, heads, given = tails[kept], heads[kept], None if given is None else given[kept]
    order = by_columns(starts(tails, graph.n), heads, graph.n)  # by heads, as arcs into nodes; tails ascend
    u, v = tails[order], heads[order]
    degree = np.bincount(v, minlength=graph.n)
    if probabilities == IN_DEGREE:
        p = 1.0 / degree[v]
    elif probabilities == CONSTANT:
        p = np.full(len(v), constant)
    elif probabilities == TRIVALENCY:
        p = np.array(TRIVALENT)[stream(seed, "trivalency").integers(0, len(TRIVALENT), len(v))]
    else:
        p = _of_weights(graph, given, order, u, v)
    if threshold:
        p = _below_one(graph, p, v, probabilities)
    units = np.rint(p * ONE).astype(np.uint64)
    limit = units
    if threshold:
        limit = _sums(units, v, graph.n)
        before = np.append(np.zeros(1, dtype=np.uint64), limit[:-1])[: len(v)]
        before[np.append(True, v[1:] != v[:-1])[: len(v)]] = 0
        units = limit - before
    alive = units > 0
    u, v, units, limit = u[alive], v[alive], units[alive], limit[alive]
    in_ptr, out_ptr = starts(v, graph.n), starts(u, graph.n)
    out = by_columns(in_ptr, u, graph.n)  # by tails; heads ascend
    table, table_ptr, odds = _tables(graph.n, in_ptr, limit, threshold)
    return Diffusion(
        graph.n, threshold, in_ptr, u.astype(np.int32), limit, out_ptr, v[out].astype(np.int32), units[out],
        table, table_ptr, odds,
    )  # fmt: skip


def _of_weights(
    graph: Graph, given: np.ndarray | None, order: np.ndarray, u: np.ndarray, v: np.ndarray
) -> np.ndarray:
    """[m] float64, the graph's weights of arcs u -> v as probabilities. Raises GraphError."""
    right = f'probabilities, or influence.probabilities = "{IN_DEGREE}", would be right'
    if given is None:
        raise GraphError(f"{graph.name}: found no weights of edges, or not of all; {right}")
    p = given[order].astype(np.float64)
    wrong = ~((p >= 0) & (p <= 1))
    if wrong.any():
        at = int(wrong.argmax())
        arc = graph.called(int(u[at]), int(v[at]))
        raise GraphError(
            f"{graph.name}: found the weight {given[order][at]:g} of {arc}; {right}, from 0 to 1"
        )
    return p


def _below_one(graph: Graph, p: np.ndarray, v: np.ndarray, probabilities: str) -> np.ndarray:
    """[m] weights, of which those into a node add up to one at most. Raises GraphError."""
    total = np.bincount(v, weights=p, minlength=graph.n)
    if len(p) and total.max() > 1 + SUM_SLACK:
        at = int(total.argmax())
        found = f"weights into {graph.called(at)} add up to {total[at]:.6g}"
        right = f'at most 1, or influence.probabilities = "{IN_DEGREE}", would be right for linear thresholds'
        raise GraphError(f"{graph.name}: {found} (influence.probabilities = {probabilities}); {right}")
    return p / np.maximum(total, 1.0)[v]


def _sums(units: np.ndarray, v: np.ndarray, n: int) -> np.ndarray:
    """[m] uint64, sums of units over the arcs into the same node so far, at most ONE; v ascends."""
    total = np.append(np.zeros(1, dtype=np.uint64), np.cumsum(units))
    return np.minimum(total[1:] - total[starts(v, n)[v]], np.uint64(ONE))


def _tables(
    n: int, in_ptr: np.ndarray, limit: np.ndarray, threshold: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """table [n], table_ptr [t+1] and odds of nodes whose arcs are all alike, many and seldom live.

    Source   Guo et al. 2020 (SUBSIM) skip dead arcs likewise, by geometric draws
    """
    table, degree = np.full(n, -1, dtype=np.int32), np.diff(in_ptr)
    none = table, np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.uint64)
    if threshold or not len(limit):
        return none
    nodes = np.flatnonzero(degree > 0)
    least, most = (each.reduceat(limit, in_ptr[nodes]) for each in (np.minimum, np.maximum))
    alike = (least == most) & (degree[nodes] >= LEAST_DEGREE)
    alike &= degree[nodes] * (most / ONE) <= MOST_MEAN
    nodes, unit = nodes[alike], most[alike]
    units, of_unit = np.unique(unit, return_inverse=True)
    kinds, place = np.unique(degree[nodes] * max(len(units), 1) + of_unit, return_inverse=True)
    if not len(kinds):
        return none
    table[nodes] = place
    made = [_odds(each // len(units), int(units[each % len(units)]) / ONE) for each in kinds.tolist()]
    ends = np.append(0, np.cumsum([len(each) for each in made])).astype(np.int64)
    return table, ends, np.concatenate(made)


def _odds(degree: int, p: float) -> np.ndarray:
    """[k] uint64: ODDS times the probability that at most 0, 1, ... of so many arcs are live."""
    if p >= 1.0:
        return np.zeros(degree, dtype=np.uint64)
    term, power, left = 1.0, 1.0 - p, degree
    while left:  # (1 - p)^degree, by multiplications alone: the same bits everywhere
        term = term * power if left & 1 else term
        power, left = power * power, left >> 1
    total, found = 0.0, []
    for k in range(min(degree, MOST_LIVE)):
        total += term
        found.append(min(round(total * ODDS), ODDS))
        if found[-1] == ODDS:
            break
        term *= (degree - k) / (k + 1) * (p / (1.0 - p))
    return np.array(found, dtype=np.uint64)


@dataclass(frozen=True)
class Spreading:
    """What is asked of a diffusion, beside the seeds' budget; keys of [influence], and the seed of all draws.

    model, probabilities, probability   see diffusion_of; probability: of all arcs, where it is constant
    epsilon, delta   the gap that ends the sampling; the probability that a bound may miss
    sets             of one collection, at most      simulations   cascades forward, that a spread is the
                     mean of
    """

    model: str = CASCADE
    probabilities: str = IN_DEGREE
    probability: float = 0.1
    epsilon: float = 0.05
    delta: float = 0.01
    sets: int = 1 << 22
    simulations: int = 1_000
    seed: int = 0

    def of(self, graph: Graph) -> Diffusion:
        """The diffusion of a whole graph. Raises GraphError."""
        return diffusion_of(graph, self.model == THRESHOLD, self.probabilities, self.probability, self.seed)
