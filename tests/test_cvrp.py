"""Capacitated vehicle routing: files, demands, the search and its plain twin, answers that are checked."""

import itertools
import json
import sys

import networkx as nx
import numpy as np
import pytest
from helpers import instance_of
from jobs import run_job
from mpi4py import MPI

from app import check, solve
from app.bounds.feasible import fault_of_routes
from app.errors import CaseError, GraphError, Halted, NoneFound
from app.graphs.deliveries import Deliveries
from app.graphs.formats.readers import open_edges
from app.graphs.formats.source import Limits
from app.graphs.formats.tsplib import read_deliveries
from app.graphs.formats.writers import write_graph
from app.graphs.generators.customers import generate_customers
from app.graphs.metric import explicit, from_points, uniform_points
from app.graphs.routes import after_of, canonical_routes, depot_of, length_of, routes_of
from app.graphs.whole import whole_graph
from app.problems.table import make_problem
from app.search.routing.baselines import ROUTING_BASELINES, within_limit
from app.search.routing.kernel import DEGREE, Routing
from app.search.routing.search import RoutingSearch
from app.search.routing.text import read_routes, routes_text
from app.search.routing.tools import RoutingTools
from app.toolbox import never

FILE = """\
NAME : five
COMMENT : (of a test)
TYPE : CVRP
DIMENSION : 5
EDGE_WEIGHT_TYPE : EUC_2D
CAPACITY : 10
VEHICLES : 9
NODE_COORD_SECTION
1 0 0
2 10 0
3 10 10
4 0 10
5 -10 0
DEMAND_SECTION
1 0
2 5
3 5
4 6
5 4
DEPOT_SECTION
1
-1
EOF
"""
LIMITS = Limits()
SHORT = {"search.steps": 2000, "search.bounds": False, "search.baselines": False}


def drawn(n, seed, kind="EUC_2D", most=20, capacity=40, vehicles=0):
    """A metric, and deliveries whose depot is some point."""
    draws = np.random.default_rng(seed)
    metric = from_points("drawn", draws.integers(0, 100, (n, 2)).astype(float), kind)
    demand = draws.integers(0, most + 1, n)
    depot = int(draws.integers(n))
    demand[depot] = 0
    return metric, Deliveries(depot, demand, capacity, vehicles)


def alone(metric, deliveries):
    """A route for each customer."""
    return np.full(metric.n, deliveries.depot, dtype=np.int64)


def shortest(metric, deliveries):
    """The length of the best routes, by all subsets of customers."""
    depot, matrix = deliveries.depot, metric.between(*np.indices((metric.n, metric.n))).tolist()
    customers = [c for c in range(metric.n) if c != depot]
    limit = deliveries.vehicles or len(customers)
    whole = (1 << len(customers)) - 1
    tour = {}
    for mask in range(1, whole + 1):
        chosen = [c for i, c in enumerate(customers) if mask >> i & 1]
        if deliveries.demand[chosen].sum() <= deliveries.capacity:
            ways = ([depot, *order, depot] for order in itertools.permutations(chosen))
            tour[mask] = min(sum(matrix[a][b] for a, b in itertools.pairwise(way)) for way in ways)
    best = {0: {0: 0}}
    for mask in range(1, whole + 1):
        low, found = mask & -mask, {}
        for part in (part for part in tour if part & low and part & mask == part):
            for routes, length in best[mask ^ part].items():
                found[routes + 1] = min(found.get(routes + 1, 1 << 60), length + tour[part])
        best[mask] = found
    return min((length for routes, length in best[whole].items() if routes <= limit), default=None)


@pytest.fixture
def written(tmp_path):
    """A function: text -> the path of a file of it."""

    def write(text, name="five.vrp"):
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write


# ---- files ------------------------------------------------------------------------------------------------


def test_a_file_of_cvrplib_is_read(written):
    metric, deliveries = read_deliveries(written(FILE), LIMITS)
    assert (metric.name, metric.n, deliveries.depot, deliveries.capacity) == ("five", 5, 0, 10)
    assert deliveries.demand.tolist() == [0, 5, 5, 6, 4]
    assert (deliveries.vehicles, deliveries.fewest) == (0, 2)


def test_a_matrix_with_demands_is_read(written):
    head = FILE[: FILE.index("EDGE_WEIGHT_TYPE")]
    rows = "EDGE_WEIGHT_TYPE : EXPLICIT\nEDGE_WEIGHT_FORMAT : LOWER_ROW\nCAPACITY: 10\n"
    rows += "EDGE_WEIGHT_SECTION\n1\n2 3\n4 5 6\n7 8 9 10\n"
    metric, deliveries = read_deliveries(written(head + rows + FILE[FILE.index("DEMAND") :]), LIMITS)
    assert metric.matrix[4].tolist() == [7, 8, 9, 10, 0]
    assert deliveries.capacity == 10


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("CAPACITY : 10\n", "", "found no CAPACITY"),
        ("CAPACITY : 10", "CAPACITY : ten", "five.vrp:6: found CAPACITY 'ten'"),
        ("CAPACITY : 10", "CAPACITY : 5", "five.vrp:18: found the demand 6 of 4; 0..5"),
        ("VEHICLES : 9", "DISTANCE : far", "found DISTANCE 'far'; a number from 0 on would be right"),
        ("VEHICLES : 9", "SERVICE_TIME : 1.5", "found SERVICE_TIME '1.5'; a whole number from 0 on"),
        ("1 0\n2 5", "1 3\n2 5", "five.vrp:15: found the demand 3 of the depot, 1; 0 would be right"),
        ("4 6\n", "", "found 4 demands; 5, as DIMENSION says"),
        ("4 6\n", "3 6\n", "found 3 twice among the node numbers"),
        ("4 6\n", "4 -6\n", "found the demand -6 of 4"),
        ("4 6\n", "4 6 7\n", "found 3 fields in DEMAND_SECTION; 'NUMBER DEMAND' would be right"),
        ("4 6\n", "4 6.5\n", "found '6.5' among the demands; whole numbers"),
        ("\n1\n-1", "\n1\n2\n-1", "found 2 depots; one, then -1"),
        ("\n1\n-1", "\n6\n-1", "found 6 among the depots; 1..5"),
        ("DEPOT_SECTION\n1\n-1\n", "", "found no DEPOT_SECTION"),
    ],
)
def test_a_wrong_file_is_refused(written, old, new, said):
    assert old in FILE
    with pytest.raises(GraphError, match=r"^[^\n]*$") as caught:
        read_deliveries(written(FILE.replace(old, new, 1)), LIMITS)
    assert said in str(caught.value)


def test_a_generated_file_is_read_again(tmp_path):
    stream = generate_customers(40, "corner", "clusters", (1, 10), 6.5, (0, 0), 3)
    graph, _ = whole_graph(stream)
    path = str(tmp_path / "made.vrp")
    with open(path, "wb") as file:
        write_graph(file, graph, "tsplib", "", stream.metric, None, stream.deliveries)
    again = open_edges(path)
    assert (again.metric.points == stream.metric.points).all()
    assert (again.deliveries.demand == stream.deliveries.demand).all()
    assert again.deliveries.capacity == stream.deliveries.capacity
    assert again.deliveries.depot == 0


@pytest.mark.parametrize("depot_at", ["random", "center", "corner"])
@pytest.mark.parametrize("customers_at", ["random", "clusters", "both"])
@pytest.mark.parametrize("n", [1, 2, 3, 10, 90])
@pytest.mark.mpi_skip
def test_generated_customers_are_apart(depot_at, customers_at, n):
    stream = generate_customers(n, depot_at, customers_at, (5, 9), 4.0, (0, 0), n)
    points, deliveries = stream.metric.points, stream.deliveries
    assert len(np.unique(points, axis=0)) == n
    assert points.min() >= 0
    assert points.max() <= 1000
    assert deliveries.demand[0] == 0
    assert ((deliveries.demand[1:] >= 5) & (deliveries.demand[1:] <= 9)).all()
    assert deliveries.capacity >= deliveries.demand.max()
    other = generate_customers(n, depot_at, customers_at, (5, 9), 4.0, (0, 0), n)
    assert (other.metric.points == points).all()


# ---- routes -----------------------------------------------------------------------------------------------


def test_routes_have_one_form():
    after = after_of([[4, 1], [2], [6, 0, 5]], 7, 3)
    assert routes_of(after, 3) == [[2], [4, 1], [6, 0, 5]]
    assert routes_of(canonical_routes(after, 3), 3) == [[1, 4], [2], [5, 0, 6]]
    assert depot_of(after) == 3
    metric = uniform_points(7, 1)
    d = metric.matrix
    length = d[3, 4] + d[4, 1] + d[1, 3] + 2 * d[3, 2] + d[3, 6] + d[6, 0] + d[0, 5] + d[5, 3]
    assert length_of(metric, 3, after) == length == length_of(metric, 3, canonical_routes(after, 3))


@pytest.mark.parametrize(
    ("after", "said"),
    [
        ([0, 2, 0, 4, 0], None),
        ([0, 2, 0, 4], "not one stop for each node"),
        ([0.0, 2, 0, 4, 0], "not one stop for each node"),
        ([0, 2, 0, 5, 0], "outside 0..4"),
        ([0, 2, 0, -1, 0], "outside 0..4"),
        ([1, 2, 0, 4, 0], "after the depot itself"),
        ([0, 2, 3, 0, 2], "comes to node 2 from 2 others"),
        ([0, 2, 1, 4, 0], "has a circle without the depot: 2 nodes"),
        ([0, 1, 0, 4, 0], "has a circle"),
        ([0, 2, 3, 4, 0], "carries 20 on the route"),
        ([0, 2, 0, 0, 0], "has 3 routes, for 2 vehicles"),
    ],
)
def test_faults_of_routes_are_found(after, said):
    deliveries = Deliveries(0, np.array([0, 5, 5, 6, 4]), 10, 2)
    graph, _ = whole_graph(generate_customers(5, "center", "random", (1, 1), 2.0, (0, 0), 1))
    found = fault_of_routes(graph, deliveries, np.array(after))
    assert (found is None) == (said is None)
    assert said is None or said in found


def test_files_of_routes_are_those_of_cvrplib(written):
    ids = np.arange(1, 6)
    text = "Route #1: 1 2\nRoute #2: 3 4\nCost 68\n"
    after = read_routes(written(text, "best.sol"), ids, 0)
    assert after.tolist() == [0, 2, 0, 4, 0]
    assert routes_text(after, ids) == "Route #1: 1 2\nRoute #2: 3 4\n"
    others = "# of a colleague\nroute 1 : 2 1\nRoute #2:\t4 3\nRoute #3:\nTime 0.5\nCost 68.0\n"
    assert (canonical_routes(read_routes(written(others, "b.sol"), ids, 0), 0) == after).all()
    moved = read_routes(written(text, "c.sol"), ids, 2)  # the third node is the depot, and not counted
    assert routes_of(moved, 2) == [[0, 1], [3, 4]]
    assert routes_text(moved, ids) == "Route #1: 1 2\nRoute #2: 3 4\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Route #1: 1 2\nRoute #2: 3\n", "1 customers are on no route, the first is 4"),
        ("Route #1: 1 2\nRoute #2: 3 4 5\n", "wrong.sol:2: found '5'; a customer 1..4"),
        ("Route #1: 0 1 2 0\n", "found '0'; a customer 1..4"),
        ("Route #1: 1 2\nRoute #2: 3 4 1\n", "wrong.sol:2: found customer 1 also on line 1"),
        ("Route #1: 1 2 1\n", "found customer 1 twice"),
        ("Route #1: 1 x\n", "found 'x'"),
        ("1 2 3 4\n", "'Route #1: 3 5 7', customers counted from 1 on, would be right"),
    ],
)
def test_a_wrong_file_of_routes_is_refused(written, text, said):
    with pytest.raises(GraphError) as caught:
        read_routes(written(text, "wrong.sol"), np.arange(1, 6), 0)
    assert said in str(caught.value)


# ---- plain heuristics and the search ----------------------------------------------------------------------


@pytest.mark.parametrize("rule", ROUTING_BASELINES.values())
@pytest.mark.parametrize("vehicles", [False, True])
def test_plain_heuristics_give_routes(rule, vehicles):
    for seed in range(20):
        metric, deliveries = drawn(2 + 2 * seed, seed)
        if vehicles:
            limit = deliveries.fewest + 1
            deliveries = Deliveries(deliveries.depot, deliveries.demand, deliveries.capacity, limit)
        after, _ = rule(metric, deliveries)
        graph = metric.neighbour_graph(3)
        assert fault_of_routes(graph, deliveries, after) is None


def test_too_few_vehicles_are_refused():
    metric = uniform_points(6, 1)
    deliveries = Deliveries(0, np.array([0, 6, 6, 6, 6, 6]), 10, 4)  # no two fit one vehicle
    with pytest.raises(GraphError, match=r"there are no routes of 4 vehicles; 5, which the demands"):
        within_limit(metric, deliveries, alone(metric, deliveries))


@pytest.mark.parametrize("cost", ["40", "40.00", "40.1", "40.07", "40.0653", "40.065270189383696"])
def test_a_cost_may_be_of_distances_that_are_not_rounded(written, cost):
    """As published ones of CVRPLIB are, of files that say EUC_2D."""
    tools, path = of_corners(), written(f"Route #1: 1 2\nCost {cost}\n")
    assert tools.untrue(path, tools.read(path)) is None


@pytest.mark.parametrize(
    ("cost", "found"),
    [
        ("4.1e1", "found Cost 41 on line 2 of routes that are 40 long"),
        ("-40", "found Cost -40 on line 2 of routes that are 40 long"),
        ("40\nCost 3", "found Cost 3 on line 3 of routes that are 40 long"),
        ("41", "found Cost 41 on line 2 of routes that are 40 long; that would be right"),
        ("40.08", "found Cost 40.08 on line 2 of routes that are 40 long, or 40.07 by distances that are"),
        ("40.064", "or 40.065 by"),
        ("40.0653702", "or 40.0652702 by"),
    ],
)
def test_a_wrong_cost_is_refused_with_what_was_found(written, cost, found):
    tools, path = of_corners(), written(f"Route #1: 1 2\nCost {cost}\n")
    assert found in tools.untrue(path, tools.read(path))


@pytest.mark.parametrize("cost", ["1.2.3", "--", "9" * 40])
def test_a_cost_that_is_no_number_is_refused(written, cost):
    tools, path = of_corners(), written(f"Route #1: 1 2\nCost {cost}\n")
    with pytest.raises(GraphError, match=r":2: found 'Cost .*'; 'Cost' and a number would be right"):
        tools.untrue(path, tools.read(path))


def of_corners():
    """Tools of a depot and two customers, whose ways are 14.42, 12.04 and 13.60 long."""
    metric = from_points("corners", np.array([[0.0, 0], [8, 12], [-4, 13]]), "EUC_2D")
    graph, deliveries = metric.neighbour_graph(2), Deliveries(0, np.array([0, 1, 1]), 2)
    return RoutingTools(instance_of(graph, metric, deliveries=deliveries), make_problem("cvrp"))


def by_thirds():
    """12 customers, two for a vehicle, and one vehicle too few, though as many as their demands need."""
    return uniform_points(13, 1), Deliveries(0, np.array([0, *[34] * 12]), 100, 5)


@pytest.mark.parametrize("looks", [1, 3])
def test_a_fleet_is_packed_as_long_as_there_is_time(looks):
    metric, deliveries = by_thirds()
    left = iter([False] * (looks - 1) + [True])  # nobody looks once more
    right = (
        r"found no routes of 5 vehicles in the time that there was; more time \(search.seconds\), more veh"
    )
    with pytest.raises(NoneFound, match=right):
        within_limit(metric, deliveries, alone(metric, deliveries), look=lambda: next(left))
    assert next(left, None) is None


def test_a_signal_ends_the_packing_of_a_fleet():
    def heard():
        raise Halted("asked to stop")

    metric, deliveries = by_thirds()
    with pytest.raises(Halted):
        within_limit(metric, deliveries, alone(metric, deliveries), look=heard)


@pytest.mark.parametrize("compiled", [True, False])
def test_slices_of_packing_change_nothing(compiled):
    metric, deliveries = by_thirds()
    after = alone(metric, deliveries)
    whole, cut = (Routing(metric, deliveries, after, 1, compiled, range(6, 13)) for _ in range(2))
    whole.pack(120)
    for part in (1, 70, 49):
        cut.pack(part)
    assert whole.steps == cut.steps == 120
    assert (whole.after() == cut.after()).all()
    assert (whole.absents, whole.length, whole.random) == (cut.absents, cut.length, cut.random)


def test_a_solve_ends_in_time_where_no_routes_are_found():
    metric, deliveries = by_thirds()
    with pytest.raises(GraphError, match="found no routes of 5 vehicles in the time that there was"):
        solve(
            metric.plane, "cvrp", demands=deliveries.demand, capacity=100,
            settings={"problem.vehicles": 5, "search.seconds": 0.02},
        )  # fmt: skip


def test_routes_joined_in_time_are_routes():
    metric, deliveries = drawn(200, 5, capacity=200)
    whole, cut = (
        ROUTING_BASELINES["savings"](metric, deliveries, look=each)[0] for each in (never, lambda: True)
    )
    graph, depot = metric.neighbour_graph(3), deliveries.depot
    assert fault_of_routes(graph, deliveries, cut) is None
    lengths = [length_of(metric, depot, each) for each in (whole, cut, alone(metric, deliveries))]
    assert lengths == sorted(set(lengths))


def test_a_baseline_without_routes_ends_no_run(monkeypatch):
    """Where a sweep finds no routes of so many vehicles the answer stands without it."""

    def none(*given):
        raise NoneFound("found no routes")

    monkeypatch.setitem(ROUTING_BASELINES, "sweep", none)
    found = solve(
        uniform_points(9, 1).plane,
        "cvrp",
        demands=[0, *[1] * 8],
        capacity=3,
        settings=SHORT | {"search.baselines": True},
    )
    assert set(found.baselines) == {"savings", "nearest neighbour"}


@pytest.mark.parametrize(
    ("n", "kind", "capacity"), [(2, "EUC_2D", 40), (3, "ATT", 40), (12, "GEO", 25), (30, "CEIL_2D", 60)]
)
def test_the_kernel_and_its_plain_twin_make_the_same_steps(n, kind, capacity):
    for seed in range(4):
        metric, deliveries = drawn(n, seed, kind, capacity=capacity, vehicles=n if seed % 2 else 0)
        fast, slow = (Routing(metric, deliveries, alone(metric, deliveries), seed, each) for each in (1, 0))
        fast.temperature = slow.temperature = 3 * DEGREE
        for part in (1, 70, 150):
            fast.run(part)
        slow.run(221)
        for name in ("stop", "load", "size", "best"):
            assert (getattr(fast, name) == getattr(slow, name)).all()
        for name in ("length", "over", "best_length", "found_at", "steps", "price", "random"):
            assert getattr(fast, name) == getattr(slow, name)
        assert length_of(metric, deliveries.depot, fast.best_after()) == fast.best_length


@pytest.mark.parametrize("plane", [True, False])
@pytest.mark.mpi_skip
def test_the_search_finds_the_shortest_routes_of_few_customers(plane):
    for seed in range(25):
        metric, deliveries = drawn(2 + seed % 7, seed, vehicles=0)
        if not plane:  # distances without any triangle inequality
            upper = np.triu(np.random.default_rng(seed).integers(0, 50, (metric.n, metric.n)), 1)
            metric = explicit("drawn", upper + upper.T)
        limit = (0, deliveries.fewest + 1)[seed % 2]
        deliveries = Deliveries(deliveries.depot, deliveries.demand, deliveries.capacity, limit)
        start = within_limit(metric, deliveries, alone(metric, deliveries))
        search = RoutingSearch(metric, deliveries, start, seed)
        search.run(3000)
        assert search.best == shortest(metric, deliveries)
        assert length_of(metric, deliveries.depot, search.solution()) == search.best


def test_legs_of_less_than_a_unit_can_get_longer():
    """Only over longer routes of few vehicles there are routes of length 0."""
    ones = (0, 6), (1, 2), (1, 4), (1, 7), (2, 6), (3, 5), (3, 6), (4, 6)
    matrix = np.zeros((8, 8), dtype=np.int64)
    matrix[tuple(np.transpose(ones))] = 1
    metric = explicit("short", matrix + matrix.T)
    deliveries = Deliveries(2, np.array([3, 0, 0, 0, 0, 3, 2, 0]), 3, 3)
    start = within_limit(metric, deliveries, alone(metric, deliveries))
    for seed in range(5):
        search = RoutingSearch(metric, deliveries, start, seed)
        search.run(3000)
        assert search.best == shortest(metric, deliveries) == 0


def test_slices_change_nothing():
    metric, deliveries = drawn(60, 1)
    whole, cut = (RoutingSearch(metric, deliveries, alone(metric, deliveries), 1) for _ in range(2))
    whole.run(70_000)
    for part in (1, 999, 2, 40_000, 28_998):
        cut.run(part)
    assert (whole.solution() == cut.solution()).all()
    assert (whole.steps, whole.best, whole.found_at) == (cut.steps, cut.best, cut.found_at)


def test_a_course_that_a_clock_has_planned_is_taken_again():
    metric, deliveries = drawn(60, 2)
    first, again = (RoutingSearch(metric, deliveries, alone(metric, deliveries), 1) for _ in range(2))
    for _ in range(60):
        first.expect(max(40_000 - first.steps, 1))
        first.run(1000)
    assert first.planned
    again.plan(first.planned)
    again.run(first.steps)
    assert (again.solution() == first.solution()).all()
    assert again.planned == first.planned


def test_equal_points_and_no_demand_are_no_trouble():
    metric = from_points("one place", np.zeros((9, 2)))
    deliveries = Deliveries(4, np.zeros(9, dtype=np.int64), 1)
    search = RoutingSearch(metric, deliveries, alone(metric, deliveries), 1)
    search.run(100)
    assert search.best == 0


# ---- answers ----------------------------------------------------------------------------------------------


def points(n, seed=1):
    return np.random.default_rng(seed).integers(0, 1000, (n, 2))


def test_an_answer_from_python_is_the_same_on_any_ranks():
    demands = [0, *[3] * 29]
    settings = SHORT | {"search.starts": 3, "search.steps": 45_000}
    alone_, together = (
        solve(points(30), "cvrp", demands=demands, capacity=10, settings=settings, comm=comm)
        for comm in (MPI.COMM_SELF, MPI.COMM_WORLD)
    )
    assert alone_.digest == together.digest
    assert sorted(c for route in together.routes for c in route) == list(range(1, 30))
    assert max(len(route) for route in together.routes) <= 3
    again = check(points(30), together, demands=demands, capacity=10, settings={"search.bounds": False})
    assert again.objective == together.objective


@pytest.mark.mpi_skip
def test_routes_of_a_graph_are_of_its_labels():
    graph = nx.complete_graph(["home", "a", "b", "c"])
    nx.set_edge_attributes(graph, 5, "weight")
    graph.edges["a", "b"]["weight"] = 1
    asked = {"demands": {"a": 1, "b": 1.5, "c": 1}, "capacity": 2.5, "settings": SHORT}
    found = solve(graph, "cvrp", depot="home", **asked)
    assert sorted(map(sorted, found.routes)) == [["a", "b"], ["c"]]
    assert found.objective == 21
    worse = solve(graph, "cvrp", depot="home", start=[["a"], ["b"], ["c"]], **asked)
    assert worse.objective == 21
    moved = solve(graph, "cvrp", depot="c", **(asked | {"demands": {"a": 1, "b": 1, "home": 1}}))
    assert sorted(node for route in moved.routes for node in route) == ["a", "b", "home"]


@pytest.mark.mpi_skip
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "found no demands"),
        ({"demands": [0, 1, 1, 1]}, "found no capacity"),
        ({"demands": [0, 1, 1], "capacity": 0}, "found no capacity"),
        ({"demands": [0, 1], "capacity": 2}, "demands: found 2 numbers; 4, or 3 without the depot's"),
        ({"demands": [0, 1, 1, 9], "capacity": 2}, "the demand of 3 is above the capacity"),
        ({"demands": [1, 1, 1, 1], "capacity": 2}, "the demand of the depot, 0, is 1; 0 would be right"),
        ({"demands": [0, 1, -1, 1], "capacity": 2}, "demands: found -1; a number from 0 on"),
        ({"demands": [0, 1, "x", 1], "capacity": 2}, "a number from 0 on"),
        ({"demands": {1: 1, 2: 1}, "capacity": 2}, "demands: found none of 3"),
        ({"demands": {1: 1, 2: 1, 3: 1, 7: 1}, "capacity": 2}, "demands: found 7"),
        ({"demands": 3, "capacity": 2}, "a list of numbers, or a mapping"),
        ({"demands": [0, 1, 1, 1], "capacity": -2}, "capacity: found -2"),
        ({"demands": [0, 1, 1, 1], "capacity": 2, "depot": 9}, "depot: found 9; a node of the graph"),
        ({"demands": [0, 1, 1, 1], "capacity": 2, "depot": np.arange(2)}, "depot: found array([0, 1])"),
        ({"demands": [0, 1, 1, 1], "capacity": 2, "vehicles": -1}, "vehicles: found -1"),
        (
            {"demands": [0, 1, 1, 1], "capacity": 1, "vehicles": 2},
            "there are no routes of 2 vehicles; 3, which",
        ),
        ({"demands": [0, 1, 1, 1], "capacity": 2, "start": [[1, 2]]}, "start: found 2 customers on routes"),
        ({"demands": [0, 1, 1, 1], "capacity": 2, "start": {1: 2}}, "a list of routes"),
    ],
)
def test_what_is_wrong_from_python_is_said(given, said):
    with pytest.raises((GraphError, CaseError)) as caught:
        solve(points(4), "cvrp", settings=SHORT, **given)
    assert said in str(caught.value)


@pytest.mark.mpi_skip
def test_other_problems_have_no_demands():
    with pytest.raises(CaseError, match="demands: tsp has none; cvrp or facility would be right"):
        solve(points(4), "tsp", demands=[0, 1, 1, 1], capacity=3)


def asymmetric(n):
    matrix = np.random.default_rng(1).integers(1, 50, (n, n))
    np.fill_diagonal(matrix, 0)
    return matrix


@pytest.mark.mpi_skip
def test_distances_that_differ_by_direction_are_refused():
    with pytest.raises(CaseError, match="distances that are the same both ways would be right"):
        solve(asymmetric(5), "cvrp", demands=[0, 1, 1, 1, 1], capacity=3, settings=SHORT)


# ---- runs -------------------------------------------------------------------------------------------------


def run(tmp_path, *arguments):
    """The exit status of a run, what it says, and its folder."""
    case = tmp_path / "case.toml"
    case.write_text('[run]\ntask = "solve"\n[problem]\nname = "cvrp"\n[output]\nplots = false\n')
    folder = tmp_path / "out"
    code, told = run_job([sys.executable, "run.py", case, *arguments, f"run.out={folder}"], 120)
    return code, " ".join(told.split()), folder


@pytest.mark.mpi_skip
def test_a_run_writes_routes_that_are_checked_and_begun_from(tmp_path, written):
    path = f"graph.path='{written(FILE)}'"
    given = (path, "search.steps=3000", "output.certificates=true", "search.bound_seconds=5")
    status, _, folder = run(tmp_path, *given)
    assert status == 0
    made = folder / "solution" / "five.txt"
    (entry,) = json.loads((folder / "result.json").read_text())["instances"]
    assert made.read_text().startswith("Route #1: ")
    assert made.read_text().endswith(f"Cost {entry['objective']}\n")
    assert (entry["optimal"], entry["bound_verified"]) == (True, True)
    status, told, _ = run(tmp_path, path, "--check", folder)
    assert status == 0 and "1 of 1 answers checked: all hold; bounds of 1 are proved" in told
    assert run(tmp_path, path, "--check", made)[0] == 0
    begun = written(made.read_text(), "begun.txt")
    assert run(tmp_path, *given, f"search.start='{begun}'", "--overwrite")[0] == 0
    cost = made.read_text().replace(f"Cost {entry['objective']}", "Cost 17")
    status, told, _ = run(tmp_path, path, "--check", written(cost, "cost.sol"))
    said = f"found Cost 17 on line 3 of routes that are {entry['objective']} long"
    assert status == 2 and said in told
    wrong = written("Route #1: 1 2 3\nRoute #2: 4\n", "wrong.sol")
    status, told, _ = run(tmp_path, path, "--check", wrong)
    assert status == 2 and "carries 16 on the route" in told
    status, told, _ = run(tmp_path, *given, f"search.start='{wrong}'", "--overwrite")
    assert status == 0 and "it is repaired" in told
    assert json.loads((folder / "result.json").read_text())["instances"][0]["optimal"]


@pytest.mark.mpi_skip
def test_demands_stand_beside_points(tmp_path, written):
    tour = FILE.replace("TYPE : CVRP", "TYPE : TSP").replace("CAPACITY : 10\nVEHICLES : 9\n", "")
    tour = written(tour[: tour.index("DEMAND_SECTION")] + "EOF\n", "five.tsp")
    given = (f"graph.path='{tour}'", "search.steps=3000", "search.bounds=false", "problem.capacity=1.5")

    def demands(text, name):
        return f"graph.demands='{written(text, name)}'"

    status, _, folder = run(tmp_path, *given, demands("0.5\n0.5\n.75\n0.25\n", "q.txt"))
    assert status == 0
    first = (folder / "solution" / "five.txt").read_text()
    named = demands("5 0.25\n4 .75\n2 0.5\n3 0.5\n", "named.txt")
    assert run(tmp_path, *given, named, "--overwrite")[0] == 0
    assert (folder / "solution" / "five.txt").read_text() == first
    for keys, said in (
        ((), "found no demands; a CVRPLIB file"),
        ((demands("1\n1\n", "few.txt"),), "found 2 demands; 5, or 4"),
        ((demands("2 1\n3 1\n4 1\n", "less.txt"),), "node 5 has no demand"),
        ((named, "problem.depot=9"), "problem.depot: node 9 is not in five"),
        ((named, "problem.vehicles=1"), "there are no routes of 1 vehicles; 2, which"),
    ):
        status, told, _ = run(tmp_path, *given, *keys, "--overwrite")
        assert status == 2
        assert said in told


@pytest.mark.mpi_skip
def test_a_tour_of_a_file_with_demands_is_refused(tmp_path, written):
    path = f"graph.path='{written(FILE)}'"
    status, told, _ = run(tmp_path, path, "problem.name=tsp")
    assert status == 2 and 'problem.name = "cvrp", or a file of TYPE TSP, would be right' in told
    status, told, _ = run(tmp_path, path, f"graph.demands='{written('1', 'q')}'")
    assert status == 2 and "has demands of its own; leave the key out" in told
    status, told, _ = run(tmp_path, path, "problem.capacity=1e300")
    assert status == 2 and "problem.capacity: found 1e+300; at most" in told
