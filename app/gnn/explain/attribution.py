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
Of edges  where layers, or what reads both ends of an edge, read features of edges: x are those of all edges
          of the field, x' = 0, where the edges and the features of nodes are as they are. Sums over edges are
          what a feature makes
Members   of several networks (gnn.members) each has attributions of its own, of the column that all predict
          together; their mean is told, which adds up to the mean of what scores change by, and the deviation
          over members, as of a whole population
Faithful  a tenth of the edges of the field, at least one, is taken out: those of the largest attributions,
          those of the largest gradients at the given graph (what gradient times input says), those whose ends
          have most neighbours, or drawn ones, RANDOM times. The more the score falls, the better an order of
          edges says what made it
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from app.errors import NumericsError
from app.gnn.explain.field import Field
from app.gnn.explain.network import FieldNetwork, column_of
from app.gnn.goals import Goal
from app.rng import stream
from app.watchdog import beat

FEWEST, MOST = 16, 256  # steps
TOLERANCE, LEAST = 0.01, 1e-3  # of the change of the score; of a score, below which nothing is missing
TAKEN = 0.1  # of the edges of a field
RANDOM = 10
NEAR = 1e-3  # of scores, how far those of a field may be from the network's
WAYS = ("explained", "gradient", "degree", "random")  # of choosing the edges that are taken out
PATHS = ("edges", "features", "edge features")


def passes_of(paths: int) -> tuple[int, int]:
    """The fewest and the most passes of an explanation: along paths, forward and backward, and scores."""
    fewest, most = (2 * paths * steps + 7 + paths + RANDOM for steps in (FEWEST, 2 * MOST - FEWEST))
    return fewest, most


@dataclass(frozen=True, eq=False)
class Parts:
    """Attributions of what a field holds, of one network, or of several the mean or the deviation.

    of_edges   [m] float64 of its edges          gradients   [m] float64 of the score by the mask of each
    of_features   [f] float64, of its columns    of_nodes   [k] float64, of its nodes' features
    of_edge_features   [c] float64, of the columns of the features of edges
    """

    of_edges: np.ndarray
    gradients: np.ndarray
    of_features: np.ndarray
    of_nodes: np.ndarray
    of_edge_features: np.ndarray

    @property
    def all(self) -> tuple[np.ndarray, ...]:
        """The arrays."""
        return self.of_edges, self.gradients, self.of_features, self.of_nodes, self.of_edge_features

    @classmethod
    def cut(cls, numbers: np.ndarray, sizes: tuple[int, ...]) -> "Parts":
        """Those side by side in numbers, of so many each."""
        return cls(*np.split(numbers, np.cumsum(sizes)[:-1]))

    @classmethod
    def over(cls, each: Sequence["Parts"], of: Callable[..., np.ndarray]) -> "Parts":
        """What `of` makes of [members, ...] of each array."""
        return cls(*(of(np.stack(arrays), axis=0) for arrays in zip(*(one.all for one in each))))


@dataclass(frozen=True, eq=False)
class Attribution:
    """What made the score of a row, or of an edge or a pair.

    field      that it depends on
    column     of the scores that are explained     score   (network.py: score_of)
    bare       the same without edges     blank   without features of nodes     plain   without those of edges
    edges      [m, 2] int64, ascending: rows of the ends; of a directed graph who is heard, and who hears
    parts      attributions     spread   their deviations over several networks; None of one
    missing    completeness, by PATHS: what attributions lack of the change of the score
    taken      how many edges are taken out     fell, changed   by WAYS, how much the score then falls, and
               how often the prediction is another
    """

    field: Field
    column: int
    score: float
    bare: float
    blank: float
    plain: float
    edges: np.ndarray
    parts: Parts
    spread: Parts | None
    missing: tuple[float, ...]
    taken: int
    fell: dict[str, float]
    changed: dict[str, float]

    def packed(self) -> np.ndarray:
        """All numbers that are not the field's, in a row."""
        ways = [each[name] for each in (self.fell, self.changed) for name in WAYS]
        few = [self.column, self.score, self.bare, self.blank, self.plain, *self.missing, *ways]
        return np.concatenate([few, *self.parts.all, *(self.spread.all if self.spread else ())])

    @classmethod
    def unpacked(cls, field: Field, shape: "Shape", numbers: np.ndarray) -> "Attribution":
        """The one that `packed` told."""
        edges, _ = edges_of(field, shape.directed)
        first = 5 + len(PATHS)
        few, sizes = numbers[: shape.few].tolist(), shape.sizes(field)
        missing, fell, changed = few[5:first], few[first : first + len(WAYS)], few[first + len(WAYS) :]
        both = numbers[shape.few :]
        parts, spread = both[: sum(sizes)], both[sum(sizes) :]
        return cls(
            field, int(few[0]), *few[1:5], edges, Parts.cut(parts, sizes),
            Parts.cut(spread, sizes) if shape.members > 1 else None, tuple(missing), taken_of(len(edges)),
            dict(zip(WAYS, fell)), dict(zip(WAYS, changed)),
        )  # fmt: skip


@dataclass(frozen=True)
class Shape:
    """How many numbers an attribution has.

    members    networks     edge_columns   of the features of edges that are read
    """

    directed: bool
    members: int
    edge_columns: int

    @property
    def few(self) -> int:
        """Those that are not by edges or features."""
        return 5 + len(PATHS) + 2 * len(WAYS)

    def sizes(self, field: Field) -> tuple[int, ...]:
        """Of the arrays of Parts."""
        edges = len(edges_of(field, self.directed)[0])
        return edges, edges, field.X.shape[1], len(field.nodes), self.edge_columns

    def size(self, field: Field) -> int:
        """Of a packed attribution."""
        return self.few + (1 + (self.members > 1)) * sum(self.sizes(field))


def taken_of(edges: int) -> int:
    """How many of so many edges are taken out."""
    return max(round(TAKEN * edges), 1) if edges else 0


def edges_of(field: Field, directed: bool) -> tuple[np.ndarray, np.ndarray]:
    """[m, 2] int64 the edges of a field by their rows, of a knowledge graph [m, 3] its triples, and [e] which
    one each entry is of."""
    hears, heard = field.nodes[field.ends]
    if field.relation is not None:
        inverse = field.relation >= field.triples_of
        subject, object = np.where(inverse, hears, heard), np.where(inverse, heard, hears)
        triples = np.stack([subject, field.relation - field.triples_of * inverse, object], axis=1)
        edges, which = np.unique(triples, axis=0, return_inverse=True)
        return edges.reshape(-1, 3), which.reshape(-1)
    ends = np.stack([heard, hears] if directed else [np.minimum(hears, heard), np.maximum(hears, heard)], 1)
    edges, which = np.unique(ends, axis=0, return_inverse=True)
    return edges.reshape(-1, 2), which.reshape(-1)


def attribute(networks: Sequence[FieldNetwork], directed: bool, known: np.ndarray, seed: int) -> Attribution:
    """Explain the score of a field, of the column that all networks predict together.

    networks   that of each member
    known      [members, columns] their scores of it, which those of the field must be near to
    Raises     NumericsError where scores are not near, or are not finite
    """
    field, scored = networks[0].field, [network.scores() for network in networks]
    for Z, each in zip(scored, known):
        if not np.abs(Z - each).max() <= NEAR * (1 + np.abs(each).max()):
            raise NumericsError(f"explanations: row {field.key}: its field gives {Z}, the network {each}")
    together = together_of(networks[0].goal, np.stack(scored))
    for network in networks:
        network.column = together
    edges, which = edges_of(field, directed)
    found = [_of_one(network, which, len(edges)) for network in networks]
    scores, parts = np.mean([each[0] for each in found], axis=0), [each[1] for each in found]
    mean = parts[0] if len(parts) == 1 else Parts.over(parts, np.mean)
    spread = Parts.over(parts, np.std) if len(parts) > 1 else None
    score, bases = float(scores[0]), scores[1:].tolist()
    orders = _orders(field, edges, mean.of_edges, mean.gradients, seed)
    fell, changed = _taken_out(networks, which, taken_of(len(edges)), orders, score)
    sums = mean.of_edges, mean.of_features, mean.of_edge_features
    missing = tuple(score - base - each.sum() for base, each in zip(bases, sums))
    return Attribution(
        field, together, score, *bases, edges, mean, spread, missing, taken_of(len(edges)), fell, changed
    )


def together_of(goal: Goal, scores: np.ndarray) -> int:
    """The column that networks predict together, of their scores [members, columns] (gnn/ensemble.py)."""
    if len(scores) == 1 or goal.kind == "values":
        return column_of(goal, scores[0])
    return column_of(goal, goal.probabilities(scores.astype(np.float32)).mean(axis=0, dtype=np.float64))


def _of_one(network: FieldNetwork, which: np.ndarray, edges: int) -> tuple[list[float], Parts]:
    """The score of a network, and the same without edges, features and features of edges; attributions.

    which   [e] the edge that each entry is of     edges   how many
    """
    none = np.zeros(len(which))
    score, bare, blank = network.score(), network.score(none), network.score(share=0.0)
    plain = network.score(of_edges=0.0) if network.edge_columns else score
    of_entries = _over_edges(network, score - bare)
    of_rows = _over_features(network, score - blank)
    of_edge_features = _over_edge_features(network, score - plain)
    at_end = network.gradients()[0]
    add = lambda values: np.bincount(which, weights=values, minlength=edges)  # noqa: E731
    parts = add(of_entries), add(at_end), of_rows.sum(axis=0), of_rows.sum(axis=1), of_edge_features
    return [score, bare, blank, plain], Parts(*parts)


def _over_edges(network: FieldNetwork, change: float) -> np.ndarray:
    """[e] attributions of entries."""
    size = len(network.field.weights)
    if not size:
        return np.zeros(0)

    def mean(steps: int) -> np.ndarray:
        total = np.zeros(size)
        for t, weight in _midpoints(steps):
            total += weight * network.gradients(np.full(size, t))[0]
        return total

    return _steps(mean, change)


def _over_features(network: FieldNetwork, change: float) -> np.ndarray:
    """[k, f] attributions of the features of each node."""
    X = network.field.X.astype(np.float64)

    def mean(steps: int) -> np.ndarray:
        total = np.zeros(X.shape)
        for t, weight in _midpoints(steps):
            total += weight * network.gradients(share=t)[1]
        return total * X

    return _steps(mean, change)


def _over_edge_features(network: FieldNetwork, change: float) -> np.ndarray:
    """[c] attributions of the features of edges, by column."""
    if not network.edge_columns:
        return np.zeros(0)

    def mean(steps: int) -> np.ndarray:
        total = np.zeros(network.edge_columns)
        for t, weight in _midpoints(steps):
            network.gradients(of_edges=t)
            total += weight * network.by_edge_features()
        return total

    return _steps(mean, change)


def _midpoints(steps: int) -> list[tuple[float, float]]:
    """(t, weight) of the middles of the steps of a path: t = u^2, dt = 2 u du. The weights add up to 1."""
    middles = [(i + 0.5) / steps for i in range(steps)]
    return [(u * u, 2 * u / steps) for u in middles]


def _steps(mean: Callable[[int], np.ndarray], change: float) -> np.ndarray:
    """What `mean` makes of the fewest steps whose sum is near a change."""
    steps = FEWEST
    while True:
        beat()
        found = mean(steps)
        if abs(found.sum() - change) <= max(TOLERANCE * abs(change), LEAST) or steps >= MOST:
            return found
        steps *= 2


def _orders(
    field: Field, edges: np.ndarray, of_edges: np.ndarray, gradients: np.ndarray, seed: int
) -> dict[str, list[np.ndarray]]:
    """By WAYS the orders in which edges are taken out, equal ones as they come."""
    ends = edges[:, [0, -1]]
    degree = field.degrees.sum(axis=0)[np.searchsorted(field.nodes, ends)].sum(axis=1)
    draws = [stream(seed, f"explain/{field.key}", i).permutation(len(edges)) for i in range(RANDOM)]
    first = lambda values: [np.argsort(-values, kind="stable")]  # noqa: E731
    found = zip(WAYS, (first(of_edges), first(gradients), first(degree), draws))
    return dict(found)


def _taken_out(
    networks: Sequence[FieldNetwork], which: np.ndarray, count: int, orders: dict[str, list[np.ndarray]],
    score: float,
) -> tuple[dict[str, float], dict[str, float]]:  # fmt: skip
    """By WAYS how much the score falls without the first edges of an order, and how often the prediction is
    another then; means over orders."""
    fell, changed, goal = {}, {}, networks[0].goal
    before = np.stack([each.scores() for each in networks])
    for name, each in orders.items():
        beat()
        lost, other = [], []
        for order in each:
            mask = ~np.isin(which, order[:count])
            Z = np.stack([network.scores(mask) for network in networks])
            told = np.mean([network.told(z) for network, z in zip(networks, Z)])
            lost.append(score - told)
            other.append(_is_other(goal, before, Z))
        fell[name], changed[name] = float(np.mean(lost)), float(np.mean(other))
    return fell, changed


def _is_other(goal: Goal, before: np.ndarray, Z: np.ndarray) -> bool:
    """Whether scores [members, columns] predict something else than those before: another column has the
    largest score, or a pair is joined in place of apart, or apart in place of joined."""
    if goal.kind == "links":
        return bool((Z[0, 0] > 0) != (before[0, 0] > 0))
    return goal.kind != "values" and together_of(goal, Z) != together_of(goal, before)
