"""What made a score: integrated gradients over the edges and over the features of its receptive field.

Source    Sundararajan, Taly and Yan 2017, eqs. 1 and 3: along the straight path from a baseline x' to x
              a_i = (x_i - x'_i) int_0^1 dF(x' + t (x - x')) / dx_i dt     sum of a_i = F(x) - F(x')
          by the midpoint rule with S steps in u, t = u^2: layers that normalise rows, and make the same of a
          row however short it is, change most near t = 0. What the sum lacks of F(x) - F(x') (completeness)
          tells how well S steps do: S is doubled from FEWEST on until that is at most TOLERANCE of it, or
          LEAST, or S is MOST
Edges     x are the masks m of messages (network.py), x' = 0: from the field without edges, in which a node
          hears itself alone, to all of them; features as they are. An edge of an undirected graph has two
          entries, whose attributions are added
Features  x are what the first layer reads, x' = 0, where edges are as they are: zero is the mean of a
          standardised feature, and no category of one that is categories. Sums over the nodes of the field
          are what a feature makes, sums over the features of a node what that node brings
Faithful  a tenth of the edges of the field, at least one, is taken out: those of the largest attributions,
          those of the largest gradients at the given graph (what gradient times input says), those whose ends
          have most neighbours, or drawn ones, RANDOM times. The more the score falls, the better an order of
          edges says what made it
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from app.errors import NumericsError
from app.gnn.explain.field import Field
from app.gnn.explain.network import FieldNetwork
from app.rng import stream
from app.watchdog import beat

FEWEST, MOST = 16, 256  # steps
TOLERANCE, LEAST = 0.01, 1e-3  # of the change of the score; of a score, below which nothing is missing
TAKEN = 0.1  # of the edges of a field
RANDOM = 10
FEWEST_PASSES, MOST_PASSES = (  # of an explanation: of two paths, forward and backward, and scores
    4 * steps + 9 + RANDOM for steps in (FEWEST, 2 * MOST - FEWEST)
)
NEAR = 1e-3  # of scores, how far those of a field may be from the network's
WAYS = ("explained", "gradient", "degree", "random")  # of choosing the edges that are taken out
NUMBERS = 7 + 2 * len(WAYS)  # of an explanation, beside those of edges and features


@dataclass(frozen=True, eq=False)
class Attribution:
    """What made the score of a row.

    field      that it depends on
    column     of the scores that are explained     score   (network.py: score_of)
    bare       the same without edges               blank   without features
    edges      [m, 2] int64, ascending: rows of the ends; of a directed graph who is heard, and who hears
    of_edges   [m] float64 their attributions       gradients   [m] float64 of the score by the mask of each
    of_features   [f] float64, of the columns of the field     of_nodes   [k] float64, of its nodes' features
    missing    completeness: what attributions of edges, and of features, lack of the change of the score
    steps      (of edges, of features)
    taken      how many edges are taken out     fell, changed   by WAYS, how much the score then falls, and
               how often another column has the largest score
    """

    field: Field
    column: int
    score: float
    bare: float
    blank: float
    edges: np.ndarray
    of_edges: np.ndarray
    gradients: np.ndarray
    of_features: np.ndarray
    of_nodes: np.ndarray
    missing: tuple[float, float]
    steps: tuple[int, int]
    taken: int
    fell: dict[str, float]
    changed: dict[str, float]

    def packed(self) -> np.ndarray:
        """All numbers that are not the field's, in a row."""
        ways = [each[name] for each in (self.fell, self.changed) for name in WAYS]
        few = [self.column, self.score, self.bare, self.blank, *self.missing, self.steps[0], *ways]
        return np.concatenate(
            [few, [self.steps[1]], self.of_edges, self.gradients, self.of_features, self.of_nodes]
        )

    @classmethod
    def unpacked(cls, field: Field, directed: bool, numbers: np.ndarray) -> "Attribution":
        """The one that `packed` told."""
        edges, _ = edges_of(field, directed)
        few, rest = numbers[:NUMBERS].tolist(), numbers[NUMBERS + 1 :]
        cuts = np.cumsum([len(edges), len(edges), field.X.shape[1]])
        parts = np.split(rest, cuts)
        ways = [dict(zip(WAYS, few[at : at + len(WAYS)])) for at in (7, 7 + len(WAYS))]
        steps = int(few[6]), int(numbers[NUMBERS])
        return cls(
            field, int(few[0]), *few[1:4], edges, *parts, (few[4], few[5]), steps, taken_of(len(edges)), *ways
        )


def size_of(field: Field, directed: bool) -> int:
    """Numbers of a packed attribution."""
    return NUMBERS + 1 + 2 * len(edges_of(field, directed)[0]) + field.X.shape[1] + len(field.nodes)


def taken_of(edges: int) -> int:
    """How many of so many edges are taken out."""
    return max(round(TAKEN * edges), 1) if edges else 0


def edges_of(field: Field, directed: bool) -> tuple[np.ndarray, np.ndarray]:
    """[m, 2] int64 the edges of a field by their rows, and [e] which one each entry is of."""
    hears, heard = field.nodes[field.ends]
    ends = np.stack([heard, hears] if directed else [np.minimum(hears, heard), np.maximum(hears, heard)], 1)
    edges, which = np.unique(ends, axis=0, return_inverse=True)
    return edges.reshape(-1, 2), which.reshape(-1)


def attribute(network: FieldNetwork, directed: bool, known: np.ndarray, seed: int) -> Attribution:
    """Explain the score of a field's row.

    known   [columns] the network's scores of it, which those of the field must be near to
    Raises  NumericsError where they are not, or are not finite
    """
    field = network.field
    Z = network.scores()
    if not np.abs(Z - known).max() <= NEAR * (1 + np.abs(known).max()):
        raise NumericsError(f"explanations: row {field.row}: its field gives {Z}, the network {known}")
    network.choose(Z)
    edges, which = edges_of(field, directed)
    score, none = network.score(), np.zeros(len(which))
    bare, blank = network.score(none), network.score(share=0.0)
    of_entries, edge_steps = _over_edges(network, score - bare)
    of_rows, feature_steps = _over_features(network, score - blank)
    at_end = network.gradients()[0]
    add = lambda values: np.bincount(which, weights=values, minlength=len(edges))  # noqa: E731
    of_edges, gradients = add(of_entries), add(at_end)
    orders = _orders(field, edges, of_edges, gradients, seed)
    fell, changed = _taken_out(network, which, taken_of(len(edges)), orders, score)
    missing = score - bare - of_edges.sum(), score - blank - of_rows.sum()
    return Attribution(
        field, network.column, score, bare, blank, edges, of_edges, gradients, of_rows.sum(axis=0),
        of_rows.sum(axis=1), missing, (edge_steps, feature_steps), taken_of(len(edges)), fell, changed,
    )  # fmt: skip


def _over_edges(network: FieldNetwork, change: float) -> tuple[np.ndarray, int]:
    """[e] attributions of entries, and the steps."""
    size = len(network.field.weights)
    if not size:
        return np.zeros(0), 0

    def mean(steps: int) -> np.ndarray:
        total = np.zeros(size)
        for t, weight in _midpoints(steps):
            total += weight * network.gradients(np.full(size, t))[0]
        return total

    return _steps(mean, change)


def _over_features(network: FieldNetwork, change: float) -> tuple[np.ndarray, int]:
    """[k, f] attributions of the features of each node, and the steps."""
    X = network.field.X.astype(np.float64)

    def mean(steps: int) -> np.ndarray:
        total = np.zeros(X.shape)
        for t, weight in _midpoints(steps):
            total += weight * network.gradients(share=t)[1]
        return total * X

    return _steps(mean, change)


def _midpoints(steps: int) -> list[tuple[float, float]]:
    """(t, weight) of the middles of the steps of a path: t = u^2, dt = 2 u du. The weights add up to 1."""
    middles = [(i + 0.5) / steps for i in range(steps)]
    return [(u * u, 2 * u / steps) for u in middles]


def _steps(mean: Callable[[int], np.ndarray], change: float) -> tuple[np.ndarray, int]:
    """What `mean` makes of the fewest steps whose sum is near a change."""
    steps = FEWEST
    while True:
        beat()
        found = mean(steps)
        if abs(found.sum() - change) <= max(TOLERANCE * abs(change), LEAST) or steps >= MOST:
            return found, steps
        steps *= 2


def _orders(
    field: Field, edges: np.ndarray, of_edges: np.ndarray, gradients: np.ndarray, seed: int
) -> dict[str, list[np.ndarray]]:
    """By WAYS the orders in which edges are taken out, equal ones as they come."""
    degree = field.degrees.sum(axis=0)[np.searchsorted(field.nodes, edges)].sum(axis=1)
    draws = [stream(seed, f"explain/{field.row}", i).permutation(len(edges)) for i in range(RANDOM)]
    first = lambda values: [np.argsort(-values, kind="stable")]  # noqa: E731
    found = zip(WAYS, (first(of_edges), first(gradients), first(degree), draws))
    return dict(found)


def _taken_out(
    network: FieldNetwork, which: np.ndarray, count: int, orders: dict[str, list[np.ndarray]], score: float
) -> tuple[dict[str, float], dict[str, float]]:
    """By WAYS how much the score falls without the first edges of an order, and how often the largest score
    is another column's; means over orders."""
    fell, changed = {}, {}
    for name, each in orders.items():
        beat()
        lost, other = [], []
        for order in each:
            mask = ~np.isin(which, order[:count])
            Z = network.scores(mask)
            lost.append(score - network.told(Z))
            other.append(len(Z) > 1 and network.goal.kind != "values" and int(Z.argmax()) != network.column)
        fell[name], changed[name] = float(np.mean(lost)), float(np.mean(other))
    return fell, changed
