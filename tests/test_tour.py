"""Searches, insertions and simple tours: against brute force, and the kernels against the plain paths."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from data import catalogue, data_dir, needs_data

from app import solve
from app.graphs.formats.source import Limits
from app.graphs.formats.tsplib import read_tsplib
from app.graphs.lengths import PLANE
from app.graphs.metric import Metric, explicit, from_points, uniform_points
from app.native import tour as native
from app.search.tour import baselines as tour_baselines
from app.search.tour.baselines import apart_from_equals, baselines, greedy_edge, nearest_neighbour
from app.search.tour.insertion import InsertionState, cheapest_insertion
from app.search.tour.plain import PlainSearch
from app.search.tour.search import TourSearch

pytestmark = pytest.mark.mpi_skip
needs_kernels = pytest.mark.skipif(not native.available(), reason="the kernels are not built")
SMALL = [
    entry
    for entry in catalogue()
    if entry["path"].startswith("tsp/") and entry["format"] == "TSPLIB" and entry["nodes"] <= 105
]


def random_metric(n, seed, largest=1000):
    """Distances without any triangle inequality."""
    half = np.triu(np.random.default_rng(seed).integers(0, largest, (n, n)), 1)
    return explicit(f"random{n}", half + half.T)


def on_a_grid(n, seed):
    """Points with many equal distances, some of them at the same place."""
    return from_points("grid", np.random.default_rng(seed).integers(0, 6, (n, 2)).astype(np.float64))


def bare(metric):
    """The same metric without its table."""
    return Metric(metric.name, metric.n, metric.kind, metric.points, None)


def shortest(metric):
    """The length of the best tour, every order tried."""
    cities = range(1, metric.n)
    return min(metric.length(np.array([0, *order])) for order in itertools.permutations(cities))


def is_tour(order, n):
    return order.dtype == np.int32 and np.array_equal(np.sort(order), np.arange(n))


def shape_of(search):
    return search.best, search.steps, search.found_at, search.solution().tolist()


MAKERS = {"uniform": uniform_points, "grid": on_a_grid, "random": random_metric}


# ---- searches


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("n", [4, 5, 6, 7])
def test_search_finds_the_best_tour(make, n):
    for seed in range(12 if n < 7 else 4):
        metric = make(n, seed)
        search = TourSearch(metric, seed)
        search.run(60)
        assert search.best == shortest(metric) == metric.length(search.solution())


def test_search_finds_the_best_tour_of_eight():
    for seed, make in enumerate(MAKERS.values()):
        metric = make(8, seed)
        search = TourSearch(metric, 1)
        search.run(200)
        assert search.best == shortest(metric)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_nothing_to_search(n):
    metric = uniform_points(n, 1)
    search = TourSearch(metric, 1)
    search.run(10)
    assert search.done and search.steps == 0 and search.best == metric.length(np.arange(n))
    assert search.solution().tolist() == list(range(n))


@needs_kernels
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("n", [4, 5, 6, 9, 14, 33, 120])
def test_compiled_equals_plain(make, n):
    for seed in range(3):
        metric = make(n, seed)
        fast, slow = TourSearch(metric, seed, neighbours=6), TourSearch(metric, seed, None, 6, False)
        for steps in (0, 1, 40):
            fast.run(steps)
            slow.run(steps)
            assert shape_of(fast) == shape_of(slow)
            assert fast.best == metric.length(fast.solution())
            assert is_tour(fast.solution(), n)


@needs_kernels
@pytest.mark.parametrize("kind", ["EUC_2D", "CEIL_2D", "FLOOR_2D", "ATT"])
def test_table_or_not(kind):
    """Distances from coordinates, in C, in NumPy and from a table: one search."""
    points = np.random.default_rng(5).uniform(0, 3000, (80, 2))
    metric = from_points("p", points, kind)
    searches = [
        TourSearch(metric, 3),
        TourSearch(bare(metric), 3),
        TourSearch(metric, 3, compiled=False),
        TourSearch(bare(metric), 3, compiled=False),
    ]
    for search in searches:
        search.run(30)
    assert len({str(shape_of(search)) for search in searches}) == 1


@needs_kernels
@pytest.mark.parametrize("room", [12, 20, 60])
def test_full_journal(room):
    """A repair that would need more reversals than can be undone ends early, alike in both paths."""
    metric = uniform_points(150, 2)
    near = metric.neighbours(8)
    cost = metric.between(np.arange(150)[:, None], near).astype(np.int32)
    order = np.random.default_rng(1).permutation(150).astype(np.int32)
    both = [
        kind(metric, near, cost, order.copy(), (3, 20, room)) for kind in (native.NativeSearch, PlainSearch)
    ]
    for _ in range(40):
        for search in both:
            search.descend(10)
        assert both[0].order.tolist() == both[1].order.tolist()
    for search in both:
        search.struct.random = 9
        while search.descend(10):
            pass
        search.run(200)
    assert both[0].order.tolist() == both[1].order.tolist()
    assert both[0].struct.length == both[1].struct.length == metric.length(both[0].order)


@pytest.fixture
def small_pools(monkeypatch):
    """Pools that are filled, bred and given up within a few hundred steps."""
    sizes = {"LEAST_KICKS": 4, "KICKS": 50, "FIRST_TOUR": 2, "POOL": 5, "FIRST_BREEDING": 2, "CHILDREN": 4}
    for name, value in sizes.items():
        monkeypatch.setattr(f"app.search.tour.search.{name}", value)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("make", [uniform_points, on_a_grid, lambda n, seed: random_metric(n, seed, 9)])
def test_slicing(compiled, make, small_pools):
    """Every phase of a search stops and goes on wherever the steps end, also among tours of one length."""
    metric = make(60, 8)
    whole, cut = (TourSearch(metric, 4, compiled=compiled) for _ in range(2))
    sizes = [0, 1, 7, 0, 20, *range(32), *[1] * 150]
    whole.run(sum(sizes))
    for steps in sizes:
        cut.run(steps)
        assert cut.best == metric.length(cut.solution())
    assert shape_of(whole) == shape_of(cut)


@needs_kernels
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("n", [4, 5, 7, 10, 40, 90])
def test_pools_with_and_without_kernels(make, n, small_pools):
    metric = make(n, n)
    fast, slow = (TourSearch(metric, 7, compiled=compiled) for compiled in (True, False))
    for steps in (0, 30, 120, 400):
        fast.run(steps)
        slow.run(steps)
        assert shape_of(fast) == shape_of(slow)
        assert fast.best == metric.length(fast.solution())


@needs_kernels
@pytest.mark.parametrize("curve", [10, 1000])
def test_searches_that_meet(curve, small_pools, monkeypatch):
    """Slices and kernels change nothing; news are tours in the caller's numbers, none told twice."""
    monkeypatch.setattr("app.search.tour.search.WORTH_ORDERING", curve)
    metric, found = on_a_grid(60, 3), []
    for compiled, slices in ((True, [40]), (True, [1] * 40), (False, [13, 27])):
        searches = [TourSearch(metric, seed, compiled=compiled) for seed in range(3)]
        for search in searches:
            search.join(3)
        heard = []
        for _ in range(8):
            for search in searches:
                for steps in slices:
                    search.run(steps)
            news = [search.news() for search in searches]
            for i, search in enumerate(searches):
                assert metric.length(news[i][0]) == search.best
                assert all(is_tour(order, 60) for order in news[i])
                search.meet(news[:i] + news[i + 1 :])
            heard += [len(each) for each in news]
        found.append(([shape_of(search) for search in searches], heard))
    assert found[0] == found[1] == found[2] and sum(heard) > 30


def test_the_best_tour_may_come_from_a_crossing():
    """What `found_at` says is the step of the child that was taken over, wherever calls were cut."""
    metric = uniform_points(400, 3)
    search, found, crossings = TourSearch(metric, 1), set(), 0
    search.run(0)
    while search.steps < 4000:
        before, kicked = search.best, search._search.struct.length
        search.run(1)
        if search.best < before:
            assert search.found_at == search.steps
            found.add(search.steps)
            crossings += search.best < min(kicked, search._search.struct.length)
    whole = TourSearch(metric, 1)
    whole.run(4000)
    assert whole.found_at in found and crossings > 5


def test_seeds_differ_and_repeat():
    metric = uniform_points(300, 8)
    found = []
    for seed in (1, 2, 1):
        search = TourSearch(metric, seed)
        search.run(20)
        found.append(shape_of(search))
    assert found[0] == found[2] != found[1]


def test_lengths_never_grow():
    metric = uniform_points(200, 3)
    search = TourSearch(metric, 3)
    lengths = [metric.length(greedy_edge(metric)[0])]
    for _ in range(50):
        search.run(0 if len(lengths) == 1 else 3)
        lengths.append(search.best)
        assert metric.length(search.solution()) == search.best
    assert lengths == sorted(lengths, reverse=True) and lengths[0] > lengths[1] > lengths[-1]


def test_given_start():
    metric = uniform_points(40, 3)
    start = np.random.default_rng(0).permutation(40)
    search = TourSearch(metric, 1, start=start)
    assert search.best == metric.length(start)
    order = search.solution()
    assert order[0] == 0 and order[1] < order[-1] and metric.length(order) == metric.length(start)
    with pytest.raises(ValueError, match="not every city occurs once"):
        TourSearch(metric, 1, start=np.zeros(40))


@needs_data
@pytest.mark.parametrize("entry", SMALL, ids=lambda entry: entry["path"][4:-4])
def test_optimal_tours_of_the_collection(entry):
    """Up to 105 cities the optimum is found within some thousand steps."""
    metric = read_tsplib(str(data_dir() / entry["path"]), Limits())
    search = TourSearch(metric, 1)
    search.run(0)
    while search.best > entry["best_value"] and search.steps < 20_000:
        search.run(500)
    assert search.best == entry["best_value"] == metric.length(search.solution())


@needs_data
@needs_kernels
@pytest.mark.parametrize("name, steps", [("lin318", 40_000), ("pcb442", 40_000), ("pr2392", 200_000)])
def test_optimal_tours_of_larger_ones(name, steps):
    entry = next(entry for entry in catalogue() if entry["path"] == f"tsp/{name}.tsp")
    search = TourSearch(read_tsplib(str(data_dir() / entry["path"]), Limits()), 1)
    while search.best > entry["best_value"] and search.steps < steps:
        search.run(1000)
    assert search.best == entry["best_value"]


# ---- simple tours


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 9, 70])
def test_baselines(make, n):
    metric = make(n, 1)
    for name, rule in baselines(metric).items():
        order, label = rule(metric)
        assert is_tour(order, n), name
        assert label and np.array_equal(order, rule(metric, False)[0])


def test_nearest_neighbour_against_scanning():
    metric = random_metric(60, 4)
    order = [0]
    while len(order) < 60:
        left = [c for c in range(60) if c not in order]
        order.append(min(left, key=lambda c: (metric.matrix[order[-1], c], c)))
    assert baselines(metric)["nearest_neighbour"](metric)[0].tolist() == order


@pytest.mark.parametrize("kind", PLANE)
def test_nearest_neighbour_by_a_tree_is_that_of_scanning(monkeypatch, kind):
    """Ties of rounded lengths go to the lowest number, too."""
    for n, largest in ((60, 6), (400, 30), (400, 10**6)):
        points = np.random.default_rng(n).integers(0, largest, (n, 2)).astype(float)
        found = []
        for scanned in (10**9, 3):
            monkeypatch.setattr("app.search.tour.baselines.SCANNED", scanned)
            found.append(nearest_neighbour(from_points("grid", points, kind))[0].tolist())
        assert found[0] == found[1]


def test_greedy_edge_against_all_edges():
    """Where every city is every city's candidate, the edges are those of one pass over all of them."""
    metric = random_metric(11, 4, 10**6)
    ends, piece, chosen = [0] * 11, list(range(11)), set()
    for _, i, j in sorted((metric.matrix[i, j], i, j) for i, j in itertools.combinations(range(11), 2)):
        if ends[i] < 2 and ends[j] < 2 and piece[i] != piece[j]:
            chosen.add((i, j))
            ends[i], ends[j] = ends[i] + 1, ends[j] + 1
            old = piece[j]
            piece = [piece[i] if p == old else p for p in piece]
    order = greedy_edge(metric)[0].tolist()
    assert {(min(e), max(e)) for e in itertools.pairwise(order)} == chosen


# ---- insertion


def by_scanning(metric, order, city):
    """(cost, position) of the cheapest insertion."""
    m = len(order)
    costs = []
    for p in range(1, m + 1):
        a, b = order[p - 1], order[p % m]
        costs.append((int(metric.between(a, city) + metric.between(city, b) - metric.between(a, b)), p))
    return min(costs)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_insertion_against_scanning(make, compiled):
    """After every insertion costs, places, order and length are those of a full scan."""
    for seed in range(4):
        n = 18
        metric = make(n, seed) if seed % 2 or make is random_metric else bare(make(n, seed))
        draws = np.random.default_rng(seed)
        sequence = draws.permutation(n)
        begin = 1 + seed
        order = sequence[:begin].tolist()
        state = InsertionState(metric, sequence[:begin], compiled)
        for city in sequence[begin:].tolist():
            for other in set(range(n)) - set(order):
                cost, position = by_scanning(metric, order, other)
                assert (position, cost) == cheapest_insertion(metric, order, other)
                assert (state.cost_out[other], state.position(other)) == (cost, position)
                assert state.nearest_out[other] == min(int(metric.between(other, c)) for c in order)
            order.insert(by_scanning(metric, order, city)[1], city)
            state.insert(city)
            assert state.order.tolist() == order and state.length == metric.length(np.array(order))
            assert np.flatnonzero(state.inside).tolist() == sorted(order)
            assert not state.cost_out[order].any() and not state.nearest_out[order].any()
        with pytest.raises(ValueError, match="on the tour already"):
            state.insert(0)


@pytest.mark.parametrize("compiled", [True, False])
def test_farthest_insertion(compiled):
    metric = uniform_points(40, 6)
    state, order = InsertionState(metric, [0], compiled), [0]
    state.insert_farthest(1000)
    for _ in range(39):
        left = [c for c in range(40) if c not in order]
        city = max(left, key=lambda c: (min(int(metric.between(c, o)) for o in order), -c))
        order.insert(by_scanning(metric, order, city)[1], city)
    assert state.order.tolist() == order


@pytest.mark.parametrize("compiled", [True, False])
def test_cheapest_insertion(compiled):
    metric = uniform_points(40, 6)
    state, order = InsertionState(metric, [0], compiled), [0]
    state.insert_cheapest(1000)
    for _ in range(39):
        left = [c for c in range(40) if c not in order]
        city = min(left, key=lambda c: (by_scanning(metric, order, c)[0], c))
        order.insert(by_scanning(metric, order, city)[1], city)
    assert state.order.tolist() == order


FORMS = {
    **MAKERS,
    **{
        f"{name} {kind}": lambda n, seed, make=make, kind=kind: replace(make(n, seed), kind=kind, matrix=None)
        for name, make in (("uniform", uniform_points), ("grid", on_a_grid))
        for kind in PLANE
    },
}


@pytest.mark.parametrize("make", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("rule", ["insert_farthest", "insert_cheapest"])
def test_insertions_by_kernels_and_in_numpy(rule, make):
    """The same tours, costs and distances, also where a rule stops on the way and where many are equal."""
    for seed, n in enumerate((1, 2, 3, 20, 90, 150)):
        metric = make(n, seed)
        mine, plain = (InsertionState(metric, [n // 2], compiled) for compiled in (True, False))
        for count in (0, n // 3, n // 4, n):
            for state in (mine, plain):
                getattr(state, rule)(count)
            assert mine.order.tolist() == plain.order.tolist() and mine.length == plain.length
            assert mine.cost_out.tolist() == plain.cost_out.tolist()
            assert mine.nearest_out.tolist() == plain.nearest_out.tolist()
            outside = np.flatnonzero(~plain.inside).tolist()
            assert [mine.position(c) for c in outside] == [plain.position(c) for c in outside]


@pytest.mark.parametrize("copies", [2, 15])
def test_equal_cities(copies):
    """A search among copies of cities is one among the cities; copies stand side by side."""
    points = np.random.default_rng(1).integers(0, 10**6, (60, 2)).astype(np.float64)
    few, many = from_points("few", points), from_points("many", np.tile(points, (copies, 1)))
    search, alone = TourSearch(many, 1), TourSearch(few, 1)
    for each in (search, alone):
        each.run(300)
    tour = search.solution()
    assert search.best == alone.best == many.length(tour)
    assert np.array_equal(np.sort(tour), np.arange(many.n))
    again = TourSearch(many, 1, tour)
    assert again.best == search.best
    for rule in baselines(many).values():
        order, _ = apart_from_equals(rule, many)
        assert np.array_equal(np.sort(order), np.arange(many.n))
        assert many.length(order) == few.length(rule(few)[0])


@pytest.mark.parametrize("make", [uniform_points, on_a_grid])
@pytest.mark.parametrize("given", [False, True])
def test_numbers_along_a_curve(make, given, monkeypatch):
    """Solutions are in the caller's numbers, also where several points are equal and a tour was given."""
    monkeypatch.setattr("app.search.tour.search.WORTH_ORDERING", 20)
    metric = make(70, 4)
    start = np.random.default_rng(3).permutation(70) if given else None
    fast, slow = (TourSearch(metric, 5, start, compiled=compiled) for compiled in (True, False))
    if given:
        assert fast.best <= metric.length(start) and fast.best == metric.length(fast.solution())
    for steps in (0, 60):
        fast.run(steps)
        slow.run(steps)
        assert is_tour(fast.solution(), 70) and shape_of(fast) == shape_of(slow)
        assert fast.best == metric.length(fast.solution())
    assert fast.best < metric.length(greedy_edge(metric)[0])


@pytest.mark.parametrize("seed", range(6))
def test_a_start_that_passes_a_place_twice_is_kept(seed):
    """Rounded lengths break the triangle inequality, so that a best tour may come to a place again."""
    metric = from_points("few", np.array([[1, 1], [1, 1], [2, 2], [0, 0], [1, 1]], dtype=float))
    start = np.array([0, 3, 1, 2, 4])  # of length 4; with equal points in a row it is 5
    assert metric.length(start) == 4
    search = TourSearch(metric, seed, start)
    for steps in (0, 50):
        search.run(steps)
        assert search.best == metric.length(search.solution()) == 4 and search.found_at == 0
    points = np.random.default_rng(seed).integers(0, 4, (9, 2)).tolist()
    answer = solve(np.array(points), "tsp", settings={"search.steps": 20})
    assert answer.bound <= answer.objective


@pytest.mark.parametrize(("n", "side"), [(300, 4), (300, 9), (500, 40), (40, 1), (200, 3)])
def test_neighbours_among_equal_points(n, side):
    """The nearest by distance, ties to the lowest number, however many there are."""
    points = np.random.default_rng(n + side).integers(0, side, (n, 2)).astype(float)
    for k in (1, 5, 10):
        found = from_points("lattice", points).neighbours(k)
        far = ((points[:, None] - points) ** 2).sum(axis=2)
        np.fill_diagonal(far, np.inf)
        expected = np.argsort(far, axis=1, kind="stable")[:, :k]
        crowd = np.array([(points == p).all(axis=1).sum() for p in points]) > k
        assert np.array_equal(found[~crowd], expected[~crowd])
        assert (np.take_along_axis(far, found.astype(int), axis=1)[crowd] == 0).all()


def test_cities_in_one_place():
    metric = from_points("same", np.zeros((3000, 2)))
    search = TourSearch(metric, 1)
    search.run(100)
    assert search.done and search.best == 0 and sorted(search.solution().tolist()) == list(range(3000))
    near = metric.neighbours(10)
    assert near[0].tolist() == list(range(1, 11)) and near[2999].tolist() == list(range(10))


@pytest.mark.mpi_skip
def test_constructions_that_a_tour_is_too_large_for_are_said(monkeypatch, capsys):
    """What is left out of the baselines for the number of cities is a line of the log."""
    points = np.random.default_rng(1).integers(0, 1000, (12, 2))
    options = {"settings": {"search.steps": 10}, "verbose": True}
    assert len(solve(points, "tsp", **options).baselines) == 5
    assert "too large" not in capsys.readouterr().out
    limits = {"farthest_insertion": 11, "cheapest_insertion": 5}
    insertions = {name: (tour_baselines.INSERTIONS[name][0], most) for name, most in limits.items()}
    monkeypatch.setattr(tour_baselines, "INSERTIONS", insertions)
    assert len(solve(points, "tsp", **options).baselines) == 3
    said = " ".join(capsys.readouterr().out.split())
    assert "too large for the baselines farthest insertion (up to 11 cities), cheapest insertion (up" in said
