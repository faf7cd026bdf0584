"""Vehicle routes at equal time: this program beside PyVRP and HGS-CVRP.

    python bench/routing.py [--seconds 10] [--seeds 2] [--peers PYTHON]

Instances are drawn as Uchoa et al. (2017) draw theirs (graph.generator = "customers"); then some with time
windows, which HGS-CVRP has not (graph.window, graph.service). PyVRP 0.14 (pip
install pyvrp) is an iterated local search in C++; HGS-CVRP is Vidal's hybrid genetic search in C++, as hygese
0.1 calls it. PYTHON has both, by default this one. Each gets the same wall time on one thread, one after the
other on each instance; the objective of this program is that of its search alone, without bounds.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from statistics import mean
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from app import threads

threads.limit_threads()

from app.graphs.generators.customers import generate_customers  # noqa: E402
from app.graphs.whole import whole_graph  # noqa: E402
from app.problems.cvrp import VehicleRouting  # noqa: E402
from app.search.routing.baselines import savings  # noqa: E402
from app.solver.budget import Budget  # noqa: E402
from app.toolbox import Beside, Instance  # noqa: E402

# Points, place of the depot, of the customers, demands, customers of a route.
INSTANCES = (
    (101, "random", "both", (1, 100), 4.7),
    (101, "center", "random", (1, 10), 9.4),
    (201, "corner", "clusters", (1, 100), 10.3),
    (201, "random", "random", (1, 1), 21.5),
    (501, "center", "both", (50, 100), 3.7),
    (501, "corner", "both", (1, 100), 12.4),
    (1001, "random", "clusters", (1, 100), 7.9),
    (1001, "center", "both", (1, 10), 23.1),
)
# Points, place of the depot, of the customers, demands, customers of a route, width of windows and service.
IN_TIME = (
    (101, "center", "random", (1, 20), 8.0, (100, 10)),
    (101, "center", "clusters", (1, 20), 20.0, (600, 10)),
    (201, "center", "both", (1, 20), 10.0, (200, 10)),
    (201, "corner", "clusters", (1, 20), 15.0, (50, 90)),
    (401, "center", "both", (1, 20), 10.0, (300, 10)),
    (601, "random", "both", (1, 20), 8.0, (150, 30)),
)
PEERS = ("PyVRP", "HGS-CVRP")
PEER = """
import json, sys
which, seconds, seed, points, demand, capacity, distance, times = json.load(sys.stdin)
n = len(points)
if which == "PyVRP":
    import numpy as np
    import pyvrp, pyvrp.stop
    model = pyvrp.Model()
    places = [model.add_location(*point) for point in points]
    model.add_depot(places[0])
    opens, closes, service = times or [[{}] * n] * 3
    hours = [
        {"tw_early": a, "tw_late": b, "service_duration": c} if times else {}
        for a, b, c in zip(opens, closes, service)
    ]
    for place, amount, more in zip(places[1:], demand[1:], hours[1:]):
        model.add_client(place, delivery=amount, **more)
    hours[0].pop("service_duration", None)
    model.add_vehicle_type(n, capacity=capacity, **hours[0])
    matrix = np.array(distance)
    duration = matrix if times else np.zeros_like(matrix)
    data = model.data().replace(distance_matrices=[matrix], duration_matrices=[duration])
    print(pyvrp.solve(data, stop=pyvrp.stop.MaxRuntime(seconds), seed=seed, display=False).cost())
else:
    import hygese, numpy as np
    x, y = np.array(points, dtype=float).T
    asked = {
        "distance_matrix": np.array(distance, dtype=float), "x_coordinates": x, "y_coordinates": y,
        "demands": np.array(demand, dtype=float), "vehicle_capacity": float(capacity), "depot": 0,
        "num_vehicles": n,
    }
    parameters = hygese.AlgorithmParameters(timeLimit=seconds, seed=seed)
    print(hygese.Solver(parameters=parameters, verbose=False).solve_cvrp(asked, rounding=False).cost)
"""


def main() -> None:
    """Solve every instance by all, print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--peers", default=sys.executable)
    given = parser.parse_args()
    head = "| customers | depot | customers at | demands | a route |"
    print(f"{head} savings | this program | PyVRP | HGS-CVRP |\n|{'---|' * 9}")
    _compare(given, [(*each, (0, 0)) for each in INSTANCES], PEERS)
    print(f"\n{head} window | service | savings | this program | PyVRP |\n|{'---|' * 10}")
    _compare(given, IN_TIME, PEERS[:1])


def _compare(given: argparse.Namespace, instances: Any, peers: tuple[str, ...]) -> None:
    """A line of the table for each instance, and what they come to."""
    ratios: dict[str, list[float]] = {name: [] for name in peers}
    for number, (n, depot, spread, demand, stops, windows) in enumerate(instances):
        for seed in range(1, given.seeds + 1):
            drawn = generate_customers(n, depot, spread, demand, stops, windows, 100 * number + seed)
            plain = savings(drawn.metric, drawn.deliveries)[0]
            tools = _tools(drawn)
            own = _own(tools, given.seconds, seed)
            told = {name: _peer(given, name, seed, drawn) for name in peers}
            for name, length in told.items():
                ratios[name].append(own / length - 1)
            row = [n - 1, depot, spread, f"{demand[0]} to {demand[1]}", stops]
            row += [*(windows if windows[0] else ()), tools.value(plain), own]
            print(f"| {' | '.join(map(str, [*row, *told.values()]))} |", flush=True)
    for name, found in ratios.items():
        shorter, longer = sum(each < 0 for each in found), sum(each > 0 for each in found)
        print(f"beside {name}: {100 * mean(found):+.2f} % on average, shorter {shorter}, longer {longer}")


def _tools(drawn: Any) -> Any:
    graph, _ = whole_graph(drawn)
    instance = Instance(graph, drawn.metric, beside=Beside(deliveries=drawn.deliveries))
    return VehicleRouting().toolbox(instance)


def _own(tools: Any, seconds: float, seed: int) -> int:
    """What the search of one rank finds, as the rounds of a solve let it run."""
    budget = Budget.of_case(-1, seconds, 0.0, 0)
    search = tools.search(seed, tools.start())
    steps = 16
    while budget.elapsed() < seconds:
        before = budget.elapsed()
        search.run(steps)
        each = (budget.elapsed() - before) / steps
        left = max(seconds - budget.elapsed(), 0.0)
        search.expect(max(int(left / each), 1))
        steps = max(min(4 * steps, int(min(0.1, left) / each)), 1)
    return search.best


def _peer(given: argparse.Namespace, name: str, seed: int, drawn: Any) -> int:
    """What a peer finds."""
    metric, deliveries = drawn.metric, drawn.deliveries
    points = metric.points.astype(int).tolist()
    asked = [
        name, given.seconds, seed, points, deliveries.demand.tolist(), deliveries.capacity,
        metric.matrix.tolist(), deliveries.times and [each.tolist() for each in deliveries.times.arrays],
    ]  # fmt: skip
    made = subprocess.run(
        [given.peers, "-c", PEER], input=json.dumps(asked), capture_output=True, text=True, check=True
    )
    return round(float(made.stdout.split()[-1]))


if __name__ == "__main__":
    main()
