"""Customers with demands around a depot, on whole coordinates of a square.

Source   Uchoa, Pecin, Pessoa, Poggi, Vidal and Subramanian, New benchmark instances for the capacitated
         vehicle routing problem, European Journal of Operational Research 2017
"""

import numpy as np

from app.errors import GraphError
from app.graphs.deliveries import Deliveries, Times
from app.graphs.generators.checks import check_count, check_seed
from app.graphs.metric import Metric, from_points
from app.graphs.points import stream_of_metric
from app.graphs.stream import EdgeStream
from app.rng import stream

SIDE = 1000  # of the square, in which no two points are equal
MOST = 250_000  # points
CLUSTERS = 3, 8  # at least and at most
RARER = 0.9753099120283326  # exp(-1/40): how much rarer customers are a unit farther from a cluster's heart
BATCH = 4096  # candidates drawn at a time
MOST_DEMAND = MOST_TIME = 10**9


def generate_customers(
    n: int, depot_at: str, customers_at: str, demand: tuple[int, int], stops: float, windows: tuple[int, int],
    seed: int, name: str | None = None,
) -> EdgeStream:  # fmt: skip
    """n points, the first of them the depot, with demands and a capacity; distances are rounded (EUC_2D).

    depot_at      "random", "center" or "corner"
    customers_at  "random", "clusters", or "both": half of each
    demand        the least and the largest
    stops         customers of a route, about, which the capacity follows from
    windows       the width of time windows, 0: none; the time of a service, where there are some
    """
    window, service = windows
    check_count("n", n, 1, MOST)
    check_seed(seed)
    if not 1 <= demand[0] <= demand[1] <= MOST_DEMAND:
        raise GraphError(
            f"graph.least_demand, most_demand: found {list(demand)}; 1 <= least <= largest would be right"
        )
    if max(windows) > MOST_TIME:
        raise GraphError(f"graph.window, service: found {list(windows)}; at most {MOST_TIME} would be right")
    draws = stream(seed, "customers")
    places = _Places(draws)
    middle, corner = (SIDE // 2, SIDE // 2), (0, 0)
    drawn = tuple(draws.integers(0, SIDE + 1, 2).tolist())
    places.take({"center": middle, "corner": corner, "random": drawn}[depot_at])
    places.spread({"random": n, "clusters": 1, "both": 1 + (n - 1) // 2}[customers_at])
    places.cluster(n)
    amounts = draws.integers(demand[0], demand[1] + 1, n)
    amounts[0] = 0
    needed = -(-int(stops * 1000) * int(amounts.sum()) // (1000 * max(n - 1, 1)))
    capacity = max(needed, int(amounts.max()), 1)
    metric = from_points(name or f"customers-{n}-{seed}", np.array(places.taken, dtype=np.float64))
    told = f"customers(n={n}, {depot_at}, {customers_at}, {demand[0]}..{demand[1]}, {stops:g}, seed={seed})"
    times = drawn_times(metric, stops, window, service, seed) if window else None
    if window:
        told = f"{told[:-1]}, window={window}, service={service})"
    return stream_of_metric(metric, told, "generated", 0, Deliveries(0, amounts, capacity, 0, times))


def drawn_times(metric: Metric, stops: float, width: int, service: int, seed: int) -> Times:
    """Windows around times at which a vehicle can come straight from the depot, point 0, and be back in time.

    The depot is open as long as a route of so many stops may take that goes as far as the farthest customer,
    with twice the way to the nearest one between two.

    Source   Solomon 1987 (windows of a width around a drawn time)
    """
    n = metric.n
    home = metric.between(np.zeros(n, dtype=np.int64), np.arange(n))
    near = metric.neighbours(1).ravel() if n > 1 else np.zeros(n, dtype=np.int64)
    between = 2 * int(metric.between(np.arange(n), near).sum()) // n
    last = 2 * int(home.max()) + int(stops * (service + between)) + service + width
    latest = last - service - home  # still back in time
    come = home + (stream(seed, "windows").random(n) * (latest - home + 1)).astype(np.int64)
    opens = np.maximum(come - width // 2, home)
    closes = np.minimum(come + width - width // 2, latest)
    spent = np.full(n, service, dtype=np.int64)
    opens[0], closes[0], spent[0] = 0, last, 0
    return Times(opens, closes, spent)


class _Places:
    """Points that are taken, no two of them equal."""

    def __init__(self, draws: np.random.Generator) -> None:
        self.draws = draws
        self.taken: list[tuple[int, int]] = []
        self._known: set[tuple[int, int]] = set()

    def take(self, point: tuple[int, int]) -> bool:
        """Take a point, unless it is taken."""
        point = int(point[0]), int(point[1])
        new = point not in self._known
        if new:
            self._known.add(point)
            self.taken.append(point)
        return new

    def spread(self, n: int) -> None:
        """Take points drawn evenly until there are n."""
        while len(self.taken) < n:
            for point in self.draws.integers(0, SIDE + 1, (BATCH, 2)).tolist():
                if len(self.taken) < n:
                    self.take(point)

    def cluster(self, n: int) -> None:
        """Take points of clusters, hearts first, until there are n."""
        if len(self.taken) >= n:
            return
        wanted = int(self.draws.integers(CLUSTERS[0], CLUSTERS[1] + 1))
        first = len(self.taken)
        self.spread(min(first + wanted, n))
        hearts, rarity = np.array(self.taken[first:], dtype=np.float64), _rarity()
        while len(self.taken) < n:
            points = self.draws.integers(0, SIDE + 1, (BATCH, 2))
            apart = points[:, None, :] - hearts[None, :, :]
            square = apart[..., 0] * apart[..., 0] + apart[..., 1] * apart[..., 1]
            near = rarity[np.sqrt(square).astype(np.int64)]
            likely = np.zeros(BATCH)
            for heart in range(len(hearts)):  # in this order, which decides the last bit
                likely += near[:, heart]
            for point in points[self.draws.random(BATCH) < likely].tolist():
                if len(self.taken) < n:
                    self.take(point)


def _rarity() -> np.ndarray:
    """[reach] float64, RARER to the power of each distance: products, which round alike everywhere."""
    found = [1.0]
    while len(found) <= 2 * SIDE:
        found.append(found[-1] * RARER)
    return np.array(found)
