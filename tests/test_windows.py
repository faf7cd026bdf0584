"""Vehicle routes in time: files with windows, limits of length, services; the search, its twin, refusals."""

import json

import networkx as nx
import numpy as np
import pytest
from mpi4py import MPI
from test_cvrp import run
from timed import drawn_in_time, route_length, solved_in_time

from app import check, solve
from app.bounds.feasible import fault_of_routes
from app.errors import CaseError, GraphError
from app.graphs.deliveries import Deliveries, Times, limited
from app.graphs.formats.readers import detect, open_edges
from app.graphs.formats.solomon import read_customers
from app.graphs.formats.source import Limits
from app.graphs.formats.tsplib import read_deliveries
from app.graphs.formats.writers import losses, write_graph
from app.graphs.generators.customers import generate_customers
from app.graphs.metric import explicit, from_points
from app.graphs.routes import after_of, length_of, routes_of
from app.graphs.whole import whole_graph
from app.graphs.windows import alone_in_time, hours_of, in_time, never_in_time
from app.search.routing.baselines import baselines, bins_for, savings, within_limit
from app.search.routing.kernel import DEGREE, Routing
from app.search.routing.search import RoutingSearch

SOLOMON = """\
C5

VEHICLE
NUMBER     CAPACITY
  3         20

CUSTOMER
CUST NO.  XCOORD.   YCOORD.    DEMAND   READY TIME  DUE DATE   SERVICE   TIME

    0      35         35          0          0       230          0
    1      41         49         10          0       204         10
    2      35         17          7         50        60         10
    3      55         45         13        116       126.5       10
    4      55         20         19        149       159         10
    5      15         30          6         34        44         10
"""
LKH = """\
NAME : four
TYPE : VRPTW
DIMENSION : 4
EDGE_WEIGHT_TYPE : FLOOR_2D
CAPACITY : 10
SERVICE_TIME : 3
NODE_COORD_SECTION
1 0 0
2 10 3
3 10 10
4 0 10
DEMAND_SECTION
1 0
2 5
3 5
4 6
TIME_WINDOW_SECTION
1 0 100
2 5 40
4 0 90
3 30 50.0
DEPOT_SECTION
1
-1
EOF
"""
LIMITS = Limits()
SHORT = {"search.steps": 2000, "search.bounds": False, "search.baselines": False}


@pytest.fixture
def written(tmp_path):
    """A function: text -> the path of a file of it."""

    def write(text, name="c5.txt"):
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write


# ---- files ------------------------------------------------------------------------------------------------


def test_a_file_of_solomon_is_read_in_tenths(written):
    path = written(SOLOMON)
    assert detect(path, LIMITS) == "solomon"
    metric, deliveries = read_customers(path, LIMITS)
    assert (metric.kind, metric.unit, metric.n) == ("FLOOR_2D", 0.1, 6)
    assert metric.matrix[0, 1] == 152  # 15.23 long
    assert (deliveries.depot, deliveries.capacity, deliveries.vehicles) == (0, 20, 3)
    times = deliveries.times
    assert times.opens.tolist() == [0, 0, 500, 1160, 1490, 340]
    assert times.closes.tolist() == [2300, 2040, 600, 1265, 1590, 440]
    assert times.service.tolist() == [0, *[100] * 5]
    assert not deliveries.both_ways


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("NUMBER     CAPACITY", "NUMBERS", "c5.txt:4: found 'NUMBERS'; 'NUMBER CAPACITY' would be right"),
        ("  3         20", "  3", "c5.txt:5: found '3'; the number of vehicles and their capacity"),
        ("  3         20", "  0   20", "c5.txt:5: found '0 20'"),
        ("CUSTOMER\n", "CLIENTS\n", "'CUSTOMER', then a line of headings, once, would be right"),
        (
            "126.5",
            "126.55",
            "c5.txt:13: found 126.55 as a due date; a number from 0 on, of one decimal at most",
        ),
        ("         13 ", "         13.5 ", "found 13.5 as a demand; a whole number from 0 on would be right"),
        ("         13 ", "         21 ", "c5.txt:13: found a demand 21 above the capacity 20"),
        ("50        60", "50        40", "c5.txt:12: found a due date before the ready time"),
        ("35          0          0", "35          4          0", "c5.txt:10: found a demand at the depot"),
        ("    3      55", "    2      55", "c5.txt:13: found customer 2; 3, counted from 0, the depot"),
        ("        44         10", "        44", "found '5 15 30 6 34 44'; seven numbers, CUSTOMER X Y"),
        ("C5", "C5", ""),
    ],
)
def test_a_wrong_file_of_solomon_is_refused(written, old, new, said):
    assert old in SOLOMON
    text = SOLOMON.replace(old, new, 1) if said else SOLOMON[: SOLOMON.index("    0  ")]
    with pytest.raises(GraphError, match=r"^[^\n]*$") as caught:
        read_customers(written(text), LIMITS)
    assert (said or "found no customers") in str(caught.value)


def test_sections_of_windows_are_read(written):
    metric, deliveries = read_deliveries(written(LKH, "four.vrp"), LIMITS)
    assert metric.matrix[0].tolist() == [0, 10, 14, 10]  # rounded down
    times = deliveries.times
    assert times.opens.tolist() == [0, 5, 30, 0]
    assert times.closes.tolist() == [100, 40, 50, 90]
    assert times.service.tolist() == [0, 3, 3, 3]
    own = LKH.replace("SERVICE_TIME : 3\n", "").replace(
        "DEPOT_S", "SERVICE_TIME_SECTION\n1 0\n2 1\n3 2\n4 3\nDEPOT_S"
    )
    assert read_deliveries(written(own, "own.vrp"), LIMITS)[1].times.service.tolist() == [0, 1, 2, 3]


def test_a_limit_of_length_counts_services(written):
    head, rest = LKH[: LKH.index("TIME_W")], LKH[LKH.index("DEPOT_S") :]
    text = (head + rest).replace("TYPE : VRPTW", "TYPE : CVRP")
    assert read_deliveries(written(text, "none.vrp"), LIMITS)[1].times is None
    text = text.replace("CAPACITY", "DISTANCE : 50.5\nCAPACITY")
    _, deliveries = read_deliveries(written(text, "limit.vrp"), LIMITS)
    assert deliveries.times.closes.tolist() == [50] * 4
    assert deliveries.times.service.tolist() == [0, 3, 3, 3]
    assert deliveries.both_ways


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("SERVICE_TIME : 3", "SERVICE_TIME : -3", "found SERVICE_TIME '-3'; a whole number from 0 on"),
        ("SERVICE_TIME : 3", "DISTANCE : 30", "found DISTANCE beside time windows"),
        ("2 5 40", "2 50 40", "found the window 50 to 40 of 2"),
        ("2 5 40", "2 5", "found 2 fields in TIME_WINDOW_SECTION; 'NUMBER EARLIEST LATEST'"),
        ("2 5 40", "2 5 40.5", "found '40.5' in TIME_WINDOW_SECTION; a whole number"),
        ("2 5 40\n", "", "found 3 lines in TIME_WINDOW_SECTION; 4, as DIMENSION says"),
        ("2 5 40", "4 5 40", "found 4 twice among the node numbers"),
        ("DEPOT_S", "SERVICE_TIME_SECTION\n1 0\nDEPOT_S", "SERVICE_TIME_SECTION beside SERVICE_TIME"),
    ],
)
def test_wrong_sections_are_refused(written, old, new, said):
    with pytest.raises(GraphError, match=r"^[^\n]*$") as caught:
        read_deliveries(written(LKH.replace(old, new, 1), "four.vrp"), LIMITS)
    assert said in str(caught.value)


def test_what_is_written_is_read_again(tmp_path, written):
    drawn = generate_customers(40, "corner", "clusters", (1, 10), 6.5, (50, 7), 3)
    for stream in (drawn, open_edges(written(SOLOMON))):
        graph, _ = whole_graph(stream)
        path = str(tmp_path / "made.vrp")
        with open(path, "wb") as file:
            write_graph(file, graph, "tsplib", "", stream.metric, None, stream.deliveries)
        again = open_edges(path)
        assert (again.metric.matrix == stream.metric.matrix).all()
        for one, other in zip(again.deliveries.times.arrays, stream.deliveries.times.arrays):
            assert (one == other).all()
        units = "lengths and times are counted in units of 0.1"
        told = losses(graph, stream.metric, "tsplib", stream.deliveries)
        assert (units in told) == (stream.metric.unit != 1)


@pytest.mark.parametrize("n", [1, 2, 3, 60])
@pytest.mark.parametrize("window", [1, 40, 5000])
@pytest.mark.mpi_skip
def test_every_generated_customer_can_be_served(n, window):
    stream = generate_customers(n, "random", "both", (1, 9), 5.0, (window, 12), n)
    times = stream.deliveries.times
    assert alone_in_time(stream.metric, stream.deliveries).all()
    assert never_in_time(stream.metric, stream.deliveries) < 0
    assert (times.closes[1:] - times.opens[1:] <= window).all()
    plain = generate_customers(n, "random", "both", (1, 9), 5.0, (0, 12), n)
    assert (plain.metric.points == stream.metric.points).all()
    assert (plain.deliveries.demand == stream.deliveries.demand).all()
    assert plain.deliveries.times is None


# ---- times ------------------------------------------------------------------------------------------------


def test_whom_nobody_can_serve():
    met = 0
    for seed in range(240):
        metric, deliveries, best = solved_in_time(seed)
        never = never_in_time(metric, deliveries)
        assert never < 0 or best is None
        met += never >= 0
        alone = alone_in_time(metric, deliveries)
        for c in range(metric.n):
            if c != deliveries.depot:
                assert alone[c] == (route_length(metric, deliveries, [c], False) is not None)
    assert met > 10


def test_a_customer_who_is_reached_through_another_alone():
    """There is no triangle inequality: the way by 1 is shorter."""
    matrix = np.array([[0, 1, 9], [1, 0, 1], [9, 1, 0]])
    times = Times(np.zeros(3, dtype=np.int64), np.array([20, 9, 3]), np.zeros(3, dtype=np.int64))
    metric, deliveries = explicit("by one", matrix), Deliveries(0, np.array([0, 1, 1]), 9, 0, times)
    assert alone_in_time(metric, deliveries).tolist() == [True, True, False]
    assert never_in_time(metric, deliveries) < 0
    made = savings(metric, deliveries)[0]
    assert routes_of(made, 0) == [[1, 2]]
    search = RoutingSearch(metric, deliveries, made, 1)
    search.run(500)
    assert search.best == 11


def test_faults_in_time_are_found():
    metric = from_points("line", np.array([[0.0, 0], [10, 0], [20, 0]]))
    service = np.array([0, 5, 5])
    graph = metric.neighbour_graph(2)
    windows = Times(np.array([0, 12, 0]), np.array([60, 15, 30]), service)
    deliveries = Deliveries(0, np.array([0, 1, 1]), 9, 0, windows)
    for routes, said in (
        ([[1, 2]], None),
        ([[2, 1]], "comes to node 1 at 35, where 15 is the latest"),
        ([[1], [2]], None),
    ):
        found = fault_of_routes(graph, deliveries, after_of(routes, 3, 0), metric)
        assert (found is None) == (said is None)
        assert said is None or said in found
    short = Deliveries(0, np.array([0, 1, 1]), 9, 0, limited(3, 0, 49, service))
    told = fault_of_routes(graph, short, after_of([[1, 2]], 3, 0), metric)
    assert "is back at the depot at 50 on the route of 1, where 49 is the latest" in told
    assert in_time(metric, Deliveries(0, short.demand, 9, 0, limited(3, 0, 50, service)), [2, 1])


# ---- constructions and the search -------------------------------------------------------------------------


@pytest.mark.mpi_skip
def test_plain_heuristics_and_the_search_find_the_best_routes():
    """Of hundreds of instances, also of such where few vehicles, or none, can serve all in time."""
    tried, found = 0, 0
    for seed in range(240):
        metric, deliveries, best = solved_in_time(seed)
        if never_in_time(metric, deliveries) >= 0 or metric.n < 2:
            continue
        graph, made = metric.neighbour_graph(3), None
        for rule in baselines(metric)[0].values() if seed % 4 == 0 else (savings,):
            try:
                made, _ = rule(metric, deliveries)
            except GraphError as error:
                assert "routes" in str(error)
                made = None
                continue
            assert best is not None, seed
            assert fault_of_routes(graph, deliveries, made, metric) is None
        if best is None:
            continue
        tried += 1
        found += made is not None
        if made is not None:
            search = RoutingSearch(metric, deliveries, made, seed)
            for _ in range(20):
                search.run(1500)
                if search.best == best:
                    break
            assert search.best == best, seed
            solution = search.solution()
            assert fault_of_routes(graph, deliveries, solution, metric) is None
            assert length_of(metric, deliveries.depot, solution) == best
    assert tried > 150
    assert found >= tried - 2


def test_routes_are_timed_anew_only_where_they_may_be_joined(monkeypatch):
    """Pairs of customers within routes are many, and routes under a limit of length may be long."""
    metric, calls = from_points("drawn", np.random.default_rng(1).integers(0, 1000, (200, 2)) * 1.0), []
    monkeypatch.setattr(
        "app.search.routing.baselines.hours_of", lambda *given: calls.append(0) or hours_of(*given)
    )
    service = np.zeros(200, dtype=np.int64)
    made, _ = savings(metric, Deliveries(0, np.sign(np.arange(200)), 200, 0, limited(200, 0, 10**6, service)))
    assert len(routes_of(made, 0)) == 1
    assert len(calls) < 5 * 200


def test_nobody_is_late_where_a_way_round_is_shorter():
    """The customer who leaves a route may have been the shorter way for those behind."""
    for seed, n in ((215, 8), (240, 14)):
        metric, deliveries = drawn_in_time(seed, n)
        search = RoutingSearch(metric, deliveries, savings(metric, deliveries)[0], seed)
        search.run(4000)
        assert fault_of_routes(metric.neighbour_graph(3), deliveries, search.solution(), metric) is None


def test_the_kernel_and_its_plain_twin_make_the_same_steps_in_time():
    for seed in range(16):
        metric, deliveries = drawn_in_time(seed, (5, 12, 25)[seed % 3])
        if never_in_time(metric, deliveries) >= 0:
            drawn = generate_customers(25, "random", "both", (1, 20), 4.0, (60, 10), seed)
            metric, deliveries = drawn.metric, drawn.deliveries
        free = Deliveries(deliveries.depot, deliveries.demand, deliveries.capacity, 0, deliveries.times)
        start = savings(metric, free)[0]
        routes = routes_of(start, free.depot)
        few = max(1, len(routes) // 2)
        gone = [c for route in routes[few:] for c in route]
        fewer = Deliveries(free.depot, free.demand, free.capacity, few + 1, free.times)
        for given, absent in ((free, ()), (fewer, gone)):
            fast, slow = (Routing(metric, given, start, seed, each, absent) for each in (True, False))
            fast.temperature = slow.temperature = 3 * DEGREE
            for part, of_slow in ((1, 221), (70, 0), (150, 0)):
                (fast.pack if absent else fast.run)(part)
                (slow.pack if absent else slow.run)(of_slow)
            for name in ("stop", "load", "size", "best", "absence", "late"):
                assert (getattr(fast, name) == getattr(slow, name)).all()
            on = np.flatnonzero(fast.route[: metric.n] >= 0)
            assert (fast.ready[on] == slow.ready[on]).all()
            assert (fast.latest[on] == slow.latest[on]).all()
            assert (fast.absent[: fast.absents] == slow.absent[: slow.absents]).all()
            for name in ("length", "over", "best_length", "found_at", "price", "random", "absents"):
                assert getattr(fast, name) == getattr(slow, name)


def test_few_vehicles_are_enough_where_customers_may_wait_for_a_route():
    drawn = generate_customers(60, "center", "random", (1, 20), 8.0, (150, 10), 4)
    metric, free = drawn.metric, drawn.deliveries
    many = savings(metric, free)[0]
    search = RoutingSearch(metric, free, many, 1)
    search.run(20_000)
    few = len(routes_of(search.solution(), 0))
    assert few < len(routes_of(many, 0))
    given = Deliveries(0, free.demand, free.capacity, few, free.times)
    made = within_limit(metric, given, many)
    assert fault_of_routes(metric.neighbour_graph(3), given, made, metric) is None


def fewest_bins(sizes, room):
    """By trying: each thing into a bin that is open, or a new one."""
    best = len(sizes)

    def put(at, bins):
        nonlocal best
        if len(bins) >= best:
            return
        if at == len(sizes):
            best = len(bins)
            return
        for place, full in enumerate(bins):
            if full + sizes[at] <= room:
                put(at + 1, (*bins[:place], full + sizes[at], *bins[place + 1 :]))
        put(at + 1, (*bins, sizes[at]))

    put(0, ())
    return best


def test_bins_are_never_fewer_than_needed():
    met = 0
    for seed in range(300):
        draws = np.random.default_rng(seed)
        room = int(draws.integers(5, 30))
        sizes = draws.integers(1, room + 1, int(draws.integers(1, 8)))
        needed, bound = fewest_bins(sorted(sizes.tolist(), reverse=True), room), bins_for(sizes, room)
        assert -(-int(sizes.sum()) // room) <= bound <= needed
        met += bound == needed
    assert met > 280


# ---- answers ----------------------------------------------------------------------------------------------


def points(n, seed=1):
    return np.random.default_rng(seed).integers(0, 100, (n, 2))


def test_an_answer_in_time_is_the_same_on_any_ranks():
    windows = {c: (20 * c, 20 * c + 60) for c in range(4, 30)}
    asked = {"demands": [0, *[3] * 29], "capacity": 15, "windows": windows, "service": 4}
    settings = SHORT | {"search.starts": 3, "search.steps": 45_000}
    alone, together = (
        solve(points(30), "cvrp", settings=settings, comm=comm, **asked)
        for comm in (MPI.COMM_SELF, MPI.COMM_WORLD)
    )
    assert alone.digest == together.digest
    again = check(points(30), together, settings={"search.bounds": False}, **asked)
    assert again.objective == together.objective


@pytest.mark.mpi_skip
def test_answers_in_time_from_python():
    graph = nx.complete_graph(["home", "a", "b", "c"])
    nx.set_edge_attributes(graph, 5, "weight")
    asked = {"demands": {"a": 1, "b": 1, "c": 1}, "capacity": 9, "depot": "home", "settings": SHORT}
    assert solve(graph, "cvrp", **asked).objective == 20
    assert solve(graph, "cvrp", max_length=15, **asked).objective == 25
    windows = {"c": (0, 6), "a": [12, 20]}
    found = solve(graph, "cvrp", windows=windows, service={"a": 1, "b": 2, "c": 3}, **asked)
    assert found.routes in ([["c", "b", "a"]], [["c", "a", "b"]])
    with pytest.raises(GraphError, match=r"comes to node c at 17, where 6 is the latest"):
        check(graph, [["a", "c"], ["b"]], "cvrp", windows=windows, **asked)
    finer = solve(points(9) + 0.25, "cvrp", demands=[1] * 8, capacity=4, max_length=400.5, settings=SHORT)
    assert max(map(len, finer.routes)) <= 4


@pytest.mark.mpi_skip
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"windows": [(0, 9)] * 4, "max_length": 9}, "max_length: given beside windows"),
        ({"service": 3}, "service: needs windows=, or max_length="),
        ({"windows": {1: (3, 2)}}, "windows: found (3, 2) of 1; one that ends no earlier"),
        ({"windows": {1: 5}}, "windows: found 5 of 1; a pair, (earliest, latest), would be right"),
        ({"windows": {7: (1, 5)}}, "windows: found 7; nodes of the graph alone"),
        ({"windows": [(1, 2)]}, "windows: found 1 pairs; 4, or 3 without the depot's"),
        ({"windows": {1: (-1, 2)}}, "windows: found -1; a number from 0 on"),
        ({"windows": "all day"}, "windows: found 'all day'; a list of pairs, or a mapping"),
        ({"max_length": "far"}, "max_length: found 'far'; a number from 0 on"),
        ({"max_length": 500, "service": [1, 2]}, "service: found 2 numbers; 4, or 3"),
        ({"max_length": 500, "service": 1.5}, "service: found 1.5; a whole number, as distances are"),
        ({"max_length": 9}, "no route can serve node 1 from 0 to 9 and be back at the depot in time"),
        ({"windows": {2: (0, 1)}}, "no route can serve node 2 from 0 to 1"),
        ({"windows": {0: (0, 1), 1: (0, 9999)}}, "no route can serve node 1 from 0 to 9999 and be back"),
        ({"windows": {0: (0, 1)}}, "no route can serve node 1 from 0 on and be back at the depot in time"),
        ({"windows": dict.fromkeys((1, 2, 3), (55, 56)), "vehicles": 2}, "found no routes of 2 vehicles"),
    ],
)
def test_what_is_wrong_in_time_is_said(given, said):
    square = np.array([[0, 0], [50, 0], [0, 50], [-50, 0]])
    with pytest.raises((GraphError, CaseError), match=r"^[^\n]*$") as caught:
        solve(square, "cvrp", demands=[0, 1, 1, 1], capacity=9, settings=SHORT, **given)
    assert said in str(caught.value)


@pytest.mark.mpi_skip
def test_other_problems_have_no_windows():
    with pytest.raises(CaseError, match="windows: tsp has none; cvrp would be right"):
        solve(points(4), "tsp", windows={1: (0, 5)})


# ---- runs -------------------------------------------------------------------------------------------------


@pytest.mark.mpi_skip
def test_a_run_in_time_is_proved_and_checked(tmp_path, written):
    path = f"graph.path='{written(SOLOMON)}'"
    given = (path, "search.steps=3000", "output.certificates=true", "search.bound_seconds=5")
    status, _, folder = run(tmp_path, *given)
    assert status == 0
    made = folder / "solution" / "c5.txt"
    (entry,) = json.loads((folder / "result.json").read_text())["instances"]
    assert (entry["objective"], entry["optimal"], entry["bound_verified"]) == (192.7, True, True)
    assert made.read_text() == "Route #1: 2 3\nRoute #2: 4\nRoute #3: 5 1\nCost 192.7\n"
    status, told, _ = run(tmp_path, path, "--check", folder)
    assert status == 0 and "1 of 1 answers checked: all hold; bounds of 1 are proved" in told
    late = written("Route #1: 3 2\nRoute #2: 4\nRoute #3: 5 1\n", "late.sol")
    status, told, _ = run(tmp_path, path, "--check", late)
    assert status == 2 and "comes to node 2 at 160.4, where 60 is the latest" in told
    status, told, _ = run(tmp_path, *given, f"search.start='{late}'", "--overwrite")
    assert status == 0 and "it is repaired" in told
    status, told, _ = run(tmp_path, *given, "problem.max_length=500", "--overwrite")
    assert status == 2 and "problem.max_length: c5 has times of its own" in told


@pytest.mark.mpi_skip
def test_a_limit_of_length_in_a_case(tmp_path, written):
    tour = "NAME : t\nTYPE : TSP\nDIMENSION : 3\nEDGE_WEIGHT_TYPE : EUC_2D\nNODE_COORD_SECTION\n"
    path, demands = written(tour + "1 0 0\n2 10 0\n3 0 10\n", "t.tsp"), written("1\n1\n", "q.txt")
    given = f"graph.path='{path}'", f"graph.demands='{demands}'", "problem.capacity=5", "search.steps=500"
    limited = "problem.max_length=36", "problem.service=2"
    for keys, objective in (((), 34), (("problem.max_length=30",), 40), (limited, 40)):
        status, _, folder = run(tmp_path, *given, *keys, "--overwrite")
        (entry,) = json.loads((folder / "result.json").read_text())["instances"]
        assert (status, entry["objective"]) == (0, objective)
    status, told, _ = run(tmp_path, *given, "problem.service=2", "--overwrite")
    assert status == 2 and "problem.service" in told and "problem.max_length limits" in told
