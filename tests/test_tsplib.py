"""TSPLIB problems and tours: every layout, the distances of the standard, and one line for every mistake."""

import itertools
import math
import re
import sys

import numpy as np
import pytest
from data import catalogue, data_dir, needs_data
from hypothesis import given, settings
from hypothesis import strategies as st
from jobs import ROOT, mpirun, run_job

import app
from app.errors import GraphError
from app.graphs.formats.source import Limits
from app.graphs.formats.tsplib import FORMATS, read_tour, read_tsplib
from app.graphs.formats.writers import write_graph
from app.graphs.lengths import dimensions, largest_coordinate
from app.graphs.metric import Metric, explicit, from_points, scaled_points, uniform_points
from app.graphs.points import read_points
from app.search.solution_text import read_order

pytestmark = pytest.mark.mpi_skip
LIMITS = Limits()
PROBLEMS = [
    entry for entry in catalogue() if entry["path"].startswith("tsp/") and entry["format"] == "TSPLIB"
]
EUCLIDEAN = """NAME : four
TYPE : TSP
COMMENT : a test
DIMENSION : 4
EDGE_WEIGHT_TYPE : EUC_2D
NODE_COORD_SECTION
1 0 0
2 3.0 4.0
3 0 1e1
4 .5 -2
EOF
"""
EXPLICIT = """NAME: three
TYPE: TSP
DIMENSION: 3
EDGE_WEIGHT_TYPE: EXPLICIT
EDGE_WEIGHT_FORMAT: UPPER_ROW
EDGE_WEIGHT_SECTION
5 6
 7
DISPLAY_DATA_SECTION
1 0 0
2 1 1
3 2 2
EOF
"""
TOUR = """NAME : four
TYPE : TOUR
DIMENSION : 4
TOUR_SECTION
2 4
1
3
-1
EOF
"""


@pytest.fixture
def written(tmp_path):
    """A function that writes text to a file and returns its path."""

    def write(text, name="p.tsp"):
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(tmp_path / name)

    return write


def random_matrix(rng, n):
    half = np.triu(rng.integers(0, 1000, (n, n)), 1)
    return half + half.T


def in_layout(matrix, layout):
    """The numbers of a matrix in a TSPLIB layout, as its document describes it."""
    n = len(matrix)
    rows = {
        "FULL_MATRIX": lambda i: range(n),
        "UPPER_ROW": lambda i: range(i + 1, n),
        "LOWER_ROW": lambda i: range(i),
        "UPPER_DIAG_ROW": lambda i: range(i, n),
        "LOWER_DIAG_ROW": lambda i: range(i + 1),
        "UPPER_COL": lambda i: range(i),
        "LOWER_COL": lambda i: range(i + 1, n),
        "UPPER_DIAG_COL": lambda i: range(i + 1),
        "LOWER_DIAG_COL": lambda i: range(i, n),
    }[layout]
    by_column = layout.endswith("COL")
    return [int(matrix[j, i] if by_column else matrix[i, j]) for i in range(n) for j in rows(i)]


@pytest.mark.parametrize("layout", FORMATS)
@pytest.mark.parametrize("n", [1, 2, 3, 7, 12])
@pytest.mark.parametrize("width", [1, 5, 1000])
def test_layouts(written, layout, n, width):
    matrix = random_matrix(np.random.default_rng(n), n)
    numbers = in_layout(matrix, layout)
    lines = [" ".join(map(str, numbers[at : at + width])) for at in range(0, len(numbers), width)]
    head = f"TYPE: TSP\nDIMENSION: {n}\nEDGE_WEIGHT_TYPE: EXPLICIT\nEDGE_WEIGHT_FORMAT: {layout}\n"
    metric = read_tsplib(written(head + "EDGE_WEIGHT_SECTION\n" + "\n".join(lines) + "\n"), LIMITS)
    assert metric.kind == "EXPLICIT" and metric.name == "p"
    assert np.array_equal(metric.matrix, matrix)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace(" : ", ":"),
        lambda text: text.replace(" : ", "  :   "),
        lambda text: text.replace("EOF\n", ""),
        lambda text: text.replace("EOF\n", "\n \n"),
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", " \t\n"),
        lambda text: text.replace(": TSP", ": TSP (by A. Friend)"),
        lambda text: text.replace("1 0 0", "  001   0.0\t+0"),
        lambda text: text.replace("\n1 0 0", "").replace("EOF", "1 0 0\nEOF"),
        lambda text: text.replace("NODE_COORD_SECTION", "NODE_COORD_SECTION :"),
        lambda text: text + "what follows EOF is not read\n",
    ],
)
def test_spellings(written, change):
    metric = read_tsplib(written(change(EUCLIDEAN)), LIMITS)
    assert metric.n == 4 and metric.kind == "EUC_2D"
    assert metric.points.tolist() == [[0, 0], [3, 4], [0, 10], [0.5, -2]]
    assert metric.matrix.tolist() == [[0, 5, 10, 2], [5, 0, 7, 7], [10, 7, 0, 12], [2, 7, 12, 0]]


def test_display_data(written):
    metric = read_tsplib(written(EXPLICIT), LIMITS)
    assert metric.points.tolist() == [[0, 0], [1, 1], [2, 2]]
    assert metric.matrix.tolist() == [[0, 5, 6], [5, 0, 7], [6, 7, 0]]


def test_a_tour_file_is_a_solution(written):
    """As a plain list of the same stops is; cities are the graph's ids."""
    path = written(TOUR, "four.opt.tour")
    assert read_order(path, np.arange(1, 5)).tolist() == [1, 3, 0, 2]
    assert read_order(written("2\n4\n1\n3\n", "plain.txt"), np.arange(1, 5)).tolist() == [1, 3, 0, 2]
    with pytest.raises(GraphError, match="node 4 is not in the graph"):
        read_order(path, np.arange(1, 4))
    for text in ("--1\n", "\f\n"):
        with pytest.raises(GraphError, match=r"plain.txt:1: found .*right is one node id per line"):
            read_order(written(text, "plain.txt"), np.arange(1, 5))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("TYPE : TSP", "TYPE : ATSP", "p.tsp:5: found EDGE_WEIGHT_TYPE 'EUC_2D'; EXPLICIT would be right"),
        (
            "TYPE : TSP",
            "TYPE : HCP",
            "p.tsp:2: found TYPE 'HCP'; TSP or ATSP or CVRP or VRPTW or CVRPTW or DCVRP would be",
        ),
        (
            "TYPE : TSP\n",
            "",
            "p.tsp: found no TYPE; TSP or ATSP or CVRP or VRPTW or CVRPTW or DCVRP would be",
        ),
        ("DIMENSION : 4", "DIMENSION : 5", "p.tsp:6: found 4 points; 5, as DIMENSION says, would be right"),
        ("DIMENSION : 4", "DIMENSION : -4", "p.tsp:4: found DIMENSION '-4'; a number 1..10000000 would"),
        ("DIMENSION : 4\n", "", "p.tsp: found no DIMENSION; a number"),
        ("DIMENSION : 4", "DIMENSION 4", "p.tsp:4: found 'DIMENSION 4'; a TSPLIB keyword would be right"),
        ("COMMENT : a test", "TYPE : TSP", "p.tsp:3: found 'TYPE : TSP' again; one TYPE would be right"),
        (
            "EUC_2D",
            "XRAY1",
            "p.tsp:5: found EDGE_WEIGHT_TYPE 'XRAY1'; EUC_2D or CEIL_2D or FLOOR_2D or ATT or GEO",
        ),
        ("EUC_2D", "EUC_3D", "p.tsp:7: found 3 fields in NODE_COORD_SECTION; 'NUMBER X Y Z' would be right"),
        ("EUC_2D", "FUNCTION", "p.tsp:5: found EDGE_WEIGHT_TYPE 'FUNCTION'; EUC_2D or"),
        (
            ": TSP",
            ": HCP",
            "p.tsp:2: found TYPE 'HCP'; TSP or ATSP or CVRP or VRPTW or CVRPTW or DCVRP would be",
        ),
        ("NODE_COORD_SECTION\n", "", "p.tsp:6: found '1 0 0'; 'KEYWORD : VALUE' would be right"),
        ("2 3.0 4.0", "1 3.0 4.0", "p.tsp:8: found 1 twice among the node numbers; once would be right"),
        ("2 3.0 4.0", "5 3.0 4.0", "p.tsp:8: found 5 among the node numbers; 1..4 would be right"),
        ("2 3.0 4.0", "2 3.0", "p.tsp:8: found 2 fields in NODE_COORD_SECTION; 'NUMBER X Y' would be right"),
        ("2 3.0 4.0", "2 3.0 -inf", "p.tsp:8: found '-inf' as a coordinate; a number of at most 5e+08"),
        ("2 3.0 4.0", "2 3.0 6e8", "p.tsp:8: found '6e8' as a coordinate"),
        (
            "2 3.0 4.0",
            "2.5 3.0 4",
            "p.tsp:8: found '2.5' among the node numbers; whole numbers would be right",
        ),
        ("EOF", "NODE_COORD_SECTION\n1 0 0\n", "p.tsp:11: found 'NODE_COORD_SECTION' again; one"),
        ("EOF", "TOUR_SECTION\n1\n", "p.tsp:11: found TOUR_SECTION; NODE_COORD_SECTION or DISPLAY_DATA"),
        ("EOF", "FIXED_EDGES_SECTION\n1 2\n", "p.tsp:11: found FIXED_EDGES_SECTION: no edge can be made"),
    ],
)
def test_mistakes(written, old, new, message):
    assert old in EUCLIDEAN
    with pytest.raises(GraphError) as error:
        read_tsplib(written(EUCLIDEAN.replace(old, new, 1)), LIMITS)
    assert message in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "UPPER_ROW",
            "FUNCTION",
            "p.tsp:5: found EDGE_WEIGHT_FORMAT 'FUNCTION'; FULL_MATRIX or UPPER_ROW or",
        ),
        ("UPPER_ROW", "FULL_MATRIX", "p.tsp:6: found 3 distances; 9, for DIMENSION 3 in FULL_MATRIX, would"),
        ("5 6", "5 -6", "p.tsp:7: found distance -6; 0..2147483647 would be right"),
        ("5 6", "5 2147483648", "p.tsp:7: found distance 2147483648; 0..2147483647 would be right"),
        ("5 6", "5 6.5", "p.tsp:7: found '6.5' among the distances; whole numbers would be right"),
        ("EDGE_WEIGHT_SECTION\n5 6\n 7\n", "", "p.tsp: found no EDGE_WEIGHT_SECTION; one would be right"),
        ("2 1 1\n", "", "p.tsp:9: found 2 points; 3, as DIMENSION says, would be right"),
        ("DIMENSION: 3", "DIMENSION: 20001", "p.tsp:3: found 20001 points with a matrix; at most 20000"),
    ],
)
def test_mistakes_in_matrices(written, old, new, message):
    assert old in EXPLICIT
    with pytest.raises(GraphError) as error:
        read_tsplib(written(EXPLICIT.replace(old, new, 1)), LIMITS)
    assert message in str(error.value) and "\n" not in str(error.value)


def test_asymmetric_matrix(written):
    text = EXPLICIT.replace("UPPER_ROW", "FULL_MATRIX").replace("5 6\n 7\n", "0 5 6\n5 0 7\n6 8 0\n")
    with pytest.raises(
        GraphError, match=r"p.tsp:9: found 7 from 2 to 3 but 8 back; a symmetric matrix, or TYPE ATSP,"
    ):
        read_tsplib(written(text), LIMITS)


def test_tours(written):
    for text in (
        TOUR,
        TOUR.replace("-1\n", ""),
        TOUR.replace("DIMENSION : 4\n", ""),
        TOUR.replace("\n1\n", " 1 "),
    ):
        order = read_tour(written(text, "four.opt.tour"), LIMITS)
        assert order.tolist() == [1, 3, 0, 2] and order.dtype == np.int32


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("TYPE : TOUR", "TYPE : TSP", "t:2: found TYPE 'TSP'; TOUR would be right"),
        ("DIMENSION : 4", "DIMENSION : 5", "t:4: found 4 cities; 5, as DIMENSION says, would be right"),
        ("2 4\n", "2 2\n", "t:5: found 2 twice among the cities; once would be right"),
        ("2 4\n", "2 0\n", "t:5: found 0 among the cities; 1..4 would be right"),
        ("2 4\n", "2 x\n", "t:5: found 'x' among the cities; whole numbers would be right"),
        ("TOUR_SECTION\n2 4\n1\n3\n-1\n", "", "t: found no TOUR_SECTION; one would be right"),
    ],
)
def test_mistakes_in_tours(written, old, new, message):
    with pytest.raises(GraphError) as error:
        read_tour(written(TOUR.replace(old, new, 1), "t"), LIMITS)
    assert message in str(error.value)


@settings(max_examples=300, deadline=None)
@given(
    text=st.sampled_from([EUCLIDEAN, EXPLICIT, TOUR]),
    edits=st.lists(st.tuples(st.integers(0, 250), st.integers(0, 12), st.binary(max_size=6)), max_size=3),
)
def test_damaged_files(tmp_path_factory, text, edits):
    """Whatever stands in a file, it is read or refused in one line that names it."""
    data = text.encode()
    for at, removed, added in edits:
        data = data[:at] + added + data[at + removed :]
    path = tmp_path_factory.getbasetemp() / "damaged.tsp"
    path.write_bytes(data)
    for read in (read_tsplib, read_tour):
        try:
            read(str(path), LIMITS)
        except GraphError as error:
            assert "damaged.tsp" in str(error) and "\n" not in str(error) and "would be right" in str(error)


@needs_data
@pytest.mark.parametrize("entry", PROBLEMS, ids=lambda entry: entry["path"][4:-4])
def test_collection(entry):
    """Sizes as stated; an optimal tour has exactly the published length."""
    path = data_dir() / entry["path"]
    metric = read_tsplib(str(path), LIMITS)
    assert metric.n == entry["nodes"] and metric.name == path.stem
    tour = path.with_suffix(".opt.tour")
    if tour.exists():
        order = read_tour(str(tour), LIMITS)
        assert metric.length(order) == entry["best_value"]


# ---- distances


def test_known_lengths():
    """The canonical tour 1, 2, ..., n of two problems of the TSPLIB document, where they are at hand."""
    if data_dir() is None:
        pytest.skip("LOCKSTEP_DATA does not name a folder with a catalogue.toml")
    for name, length in (("pcb442", 221440), ("gr666", 423710), ("att532", 309636)):
        path = data_dir() / "tsp" / f"{name}.tsp"
        if path.exists():
            metric = read_tsplib(str(path), LIMITS)
            assert metric.length(np.arange(metric.n)) == length


def test_rounding():
    points = np.array([[0, 0], [1, 1], [0, 2.5], [0, 0], [3, 0]])
    assert from_points("p", points).matrix[0].tolist() == [0, 1, 3, 0, 3]
    assert from_points("p", points, "CEIL_2D").matrix[0].tolist() == [0, 2, 3, 0, 3]
    # ATT: sqrt(0.2) = .447, sqrt(.625) = .79, sqrt(.9) = .949; rounded, then up where that was down
    assert from_points("p", points, "ATT").matrix[0].tolist() == [0, 1, 1, 0, 1]


def test_geo():
    """Two places of ulysses, by the program of the TSPLIB document in plain Python."""

    def radians(x):
        return 3.141592 * (int(x) + 5.0 * (x - int(x)) / 3.0) / 180.0

    rng = np.random.default_rng(1)
    points = np.round(np.column_stack([rng.uniform(-90, 90, 30), rng.uniform(-180, 180, 30)]), 2)
    metric = from_points("p", points, "GEO")
    for i, j in itertools.combinations(range(30), 2):
        (a, b), (c, d) = map(radians, points[i]), map(radians, points[j])
        q1, q2, q3 = math.cos(b - d), math.cos(a - c), math.cos(a + c)
        assert metric.matrix[i, j] == int(6378.388 * math.acos(0.5 * ((1 + q1) * q2 - (1 - q1) * q3)) + 1.0)


STEPS = {
    "EUC_3D": lambda *d: int(math.sqrt(sum(x * x for x in d)) + 0.5),
    "MAN_2D": lambda *d: int(sum(map(abs, d)) + 0.5),
    "MAX_2D": lambda *d: max(int(abs(x) + 0.5) for x in d),
}
STEPS |= {"MAN_3D": STEPS["MAN_2D"], "MAX_3D": STEPS["MAX_2D"]}


def file_of(points, kind):
    lines = [f"{i} {' '.join(map(str, point))}\n" for i, point in enumerate(points.tolist(), 1)]
    head = f"NAME : p\nTYPE : TSP\nDIMENSION : {len(points)}\nEDGE_WEIGHT_TYPE : {kind}\n"
    return f"{head}NODE_COORD_SECTION\n{''.join(lines)}EOF\n"


@pytest.mark.parametrize("kind", STEPS)
def test_steps_in_the_plane_and_in_space(written, kind, tmp_path):
    """As the TSPLIB document's formulas in plain Python; written and read back; refused where too many."""
    rng, wide = np.random.default_rng(5), int(kind[4])
    points = np.round(rng.uniform(-90, 90, (25, wide)), 1)
    points[3] = points[4]
    metric = read_tsplib(written(file_of(points, kind)), LIMITS)
    for i, j in itertools.product(range(25), repeat=2):
        assert metric.matrix[i, j] == STEPS[kind](*(points[i] - points[j]))
    assert metric.points.shape == (25, wide) and (metric.plane is None) == (wide == 3)
    assert np.array_equal(metric.neighbours(6), nearest_by_sorting(metric.matrix, 6))
    with open(tmp_path / "again.tsp", "wb") as file:
        write_graph(file, metric.neighbour_graph(5), "tsplib", metric=metric)
    again = read_tsplib(str(tmp_path / "again.tsp"), LIMITS)
    assert again.kind == kind and np.array_equal(again.matrix, metric.matrix)
    part = metric.restrict(np.array([7, 3, 9]))
    assert part.between(0, 1) == metric.between(7, 3) and part.points.shape == (3, wide)
    with pytest.raises(GraphError, match=f"20001 points of kind {kind}"):
        from_points("p", np.zeros((20001, wide)), kind)
    with pytest.raises(GraphError, match="3: found 20001 points of type"):
        read_tsplib(written(file_of(points, kind).replace("DIMENSION : 25", "DIMENSION : 20001")), LIMITS)


@pytest.mark.parametrize("kind", [*STEPS, "EUC_2D"])
def test_no_distance_passes_31_bits(kind):
    most = largest_coordinate(kind)
    far = np.array([[-most] * dimensions(kind), [most] * dimensions(kind)])
    formula = STEPS.get(kind, STEPS["EUC_3D"])
    assert from_points("p", far, kind).matrix[0, 1] == formula(*(far[1] - far[0]))
    with pytest.raises(GraphError, match=r"coordinates of at most [35](.5)?e\+08 would be right"):
        from_points("p", far * 1.01, kind)


@pytest.mark.parametrize(
    "kind", [each if each == "EUC_3D" else pytest.param(each, marks=pytest.mark.long) for each in STEPS]
)
def test_tours_of_these_distances_are_searched_proved_and_checked(written, kind, tmp_path):
    """The optimum is that of the same distances as a matrix. Once on 1 rank too, and a tour file."""
    points = np.random.default_rng(6).integers(-300, 300, (40, int(kind[4])))
    path = written(file_of(points, kind))
    matrix = read_tsplib(path, LIMITS).matrix
    wanted = app.solve(matrix.astype(np.int64), "tsp")
    found = app.solve(path, "tsp")
    assert found.optimal and wanted.optimal and found.objective == wanted.objective
    for ranks in (1, 2) if kind == "EUC_3D" else (2,):
        out = tmp_path / f"out{ranks}"
        run = [sys.executable, "run.py", "inputs/tsp.toml", f"graph.path={path}", "output.plots=false"]
        code, printed = run_job([*mpirun(ranks), *run, "--out", out], cwd=ROOT)
        assert code == 0, printed
        solution = out / "solution/p.txt"
        code, printed = run_job([*run, "--check", solution], cwd=ROOT)
        assert code == 0 and f"objective {found.objective}" in printed, printed
    if kind != "EUC_3D":
        return
    stops = solution.read_text()
    tour = written(f"NAME : p\nTYPE : TOUR\nDIMENSION : 40\nTOUR_SECTION\n{stops}-1\nEOF\n", "p.tour")
    code, printed = run_job([*run, "--check", tour], cwd=ROOT)
    assert code == 0 and "optimal" in printed, printed


def test_a_matrix_with_points_in_space(written):
    text = EXPLICIT.replace("DISPLAY_DATA", "NODE_COORD")
    text = text.replace("TYPE: TSP", "TYPE: TSP\nNODE_COORD_TYPE: THREED_COORDS")
    text = re.sub(r"(?m)^(\d) (\d) (\d)$", r"\1 \2 \3 7", text)
    metric = read_tsplib(written(text), LIMITS)
    assert metric.points.tolist() == [[0, 0, 7], [1, 1, 7], [2, 2, 7]] and metric.plane is None


@pytest.mark.parametrize("kind", ["EUC_2D", "CEIL_2D", "FLOOR_2D", "ATT"])
def test_table_equals_formula(kind):
    points = np.random.default_rng(2).uniform(-1000, 1000, (60, 2))
    metric = from_points("p", points, kind)
    bare = Metric("p", 60, kind, metric.points, None)
    i, j = np.arange(60)[:, None], np.arange(60)[None, :]
    assert np.array_equal(metric.between(i, j), bare.between(i, j))
    assert bare.length(np.arange(60)) == metric.length(np.arange(60)) == sum(
        int(metric.matrix[k, (k + 1) % 60]) for k in range(60)
    )  # fmt: skip


def test_limits_of_coordinates():
    with pytest.raises(GraphError, match=re.escape("p: coordinates of at most 5e+08 would be right")):
        from_points("p", np.array([[0, 0], [np.nan, 1]]))
    metric = from_points("p", np.array([[-5e8, -5e8], [5e8, 5e8]]))
    assert metric.matrix[0, 1] == 1414213562


def nearest_by_sorting(far, k):
    """The k nearest of each point from a matrix of what is compared."""
    n = len(far)
    return [[j for _, j in sorted((far[i][j], j) for j in range(n) if j != i)[:k]] for i in range(n)]


@pytest.mark.parametrize("n", [1, 2, 5, 30, 200])
@pytest.mark.parametrize("grid", [3, 40, 10**6])
def test_neighbours(n, grid):
    """Against sorting everything, on grids with many ties and equal points, too."""
    points = np.random.default_rng(n).integers(0, grid, (n, 2)).astype(np.float64)
    metric = from_points("p", points)
    square = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    for k in (1, 6, 10):
        near = metric.neighbours(k)
        assert near.dtype == np.int32 and near.shape == (n, min(k, n - 1))
        assert near.tolist() == nearest_by_sorting(square.tolist(), k)


def test_neighbours_of_matrices():
    matrix = random_matrix(np.random.default_rng(3), 40) // 100
    assert explicit("m", matrix).neighbours(7).tolist() == nearest_by_sorting(matrix.tolist(), 7)


def test_neighbour_graph():
    metric = uniform_points(50, 4)
    graph = metric.neighbour_graph(5)
    near = metric.neighbours(5)
    pairs = {(int(i), int(j)) for i in range(50) for j in near[i]}
    pairs |= {(j, i) for i, j in pairs}
    assert graph.whole and graph.n == 50 and 2 * graph.edges == len(pairs)
    rows = graph.row_of()
    assert set(zip(rows.tolist(), graph.indices.tolist())) == pairs
    assert np.array_equal(graph.weights, metric.between(rows, graph.indices))


def test_uniform_points():
    metric = uniform_points(500, 1)
    assert metric.kind == "EUC_2D" and metric.points.dtype == np.float64
    assert np.array_equal(metric.points, np.round(metric.points))
    assert metric.points.min() >= 0 and metric.points.max() <= 10**6
    assert np.array_equal(metric.points, uniform_points(500, 1).points)
    assert not np.array_equal(metric.points, uniform_points(500, 2).points)


def test_restrict():
    metric = uniform_points(30, 1)
    chosen = np.array([4, 2, 20])
    part = metric.restrict(chosen)
    assert np.array_equal(part.matrix, metric.matrix[np.ix_(chosen, chosen)])
    assert np.array_equal(part.points, metric.points[chosen])


def test_scaled_points():
    """Lengths in the unit of the points, to six digits, whatever their size."""
    points = np.random.default_rng(1).random((40, 2))
    for size in (1e-9, 1.0, 1e6, 1e30):
        metric = scaled_points("p", size * points)
        length = np.linalg.norm(size * (points - np.roll(points, -1, axis=0)), axis=1).sum()
        assert abs(metric.length(np.arange(40)) * metric.unit / length - 1) < 1e-6
    assert scaled_points("p", np.zeros((4, 2))).unit == 1


def test_a_warning_of_rounding(written):
    rows = "".join(f"{i + 1} 0.{i}1 0.{9 - i}2\n" for i in range(10))
    head = "TYPE : TSP\nDIMENSION : 10\nEDGE_WEIGHT_TYPE : EUC_2D\nNODE_COORD_SECTION\n"
    assert "round to 0 or 1" in read_points(written(head + rows), LIMITS).warnings[0]
    assert not read_points(written(EUCLIDEAN), LIMITS).warnings
