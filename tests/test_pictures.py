"""Pictures that a run draws: of an answer beside the baselines and over time, of a tour; each kind, whole."""

from types import SimpleNamespace

import numpy as np
import pytest
from jobs import ROOT

from app.graphs.metric import Metric
from app.log import Log
from app.plots import charts, forecasts, runs
from run import main

pytestmark = pytest.mark.mpi_skip
matplotlib = pytest.importorskip("matplotlib")
from matplotlib.figure import Figure  # noqa: E402
from matplotlib.image import imread  # noqa: E402

MODULES = (runs, charts, forecasts)


def run(case, out, *keys):
    """The folder of a small run with its pictures."""
    where = [f"--out={out}", "--device=cpu", "output.plots=true"]
    assert main([str(ROOT / "inputs" / f"{case}.toml"), *keys, *where]) == 0
    return out


def is_drawn(path):
    """Whether a picture shows more than its paper."""
    image = imread(path)
    return min(image.shape[:2]) > 100 and image[..., :3].std() > 0.01


def test_answers_are_drawn_beside_the_baselines(tmp_path):
    keys = ("graph.generator=ba", "graph.nodes=[30,40]", "graph.count=2", "search.steps=500")
    out = run("mvc", tmp_path / "out", *keys)
    assert is_drawn(out / "solutions.png")
    assert is_drawn(out / "solution.png")
    assert not list(out.glob("*.tmp"))


def test_values_that_an_instance_lacks_are_left_out():
    """An answer is no learned one, and no mark stands at zero."""
    instances = [
        {"objective": 9, "learned": None, "bound": 10, "baselines": {"min degree": 8}},
        {"objective": 5, "learned": 4, "bound": 5, "baselines": {"max degree": 3}},
    ]
    axes = Figure().subplots()
    runs._draw_ratios(axes, instances)
    found = {line.get_label(): line.get_xydata().tolist() for line in axes.lines}
    assert found == {
        "answer": [[0, 0.9], [1, 1.0]],
        "learned": [[1, 0.8]],
        "min degree": [[0, 0.8]],
        "max degree": [[1, 0.6]],
    }


def test_a_tour_is_closed_and_goes_through_its_cities_in_order():
    points = np.random.default_rng(1).random((7, 2))
    tour = np.array([3, 0, 6, 2, 5, 1, 4])
    axes = Figure().subplots()
    metric = Metric("seven", 7, "euclidean", points, None)
    runs._draw_tour(axes, SimpleNamespace(metric=metric, solution=tour), False)
    (line,) = axes.lines
    np.testing.assert_array_equal(line.get_xydata(), points[[*tour, 3]])


def test_routes_begin_and_end_at_the_depot():
    points = np.random.default_rng(2).random((6, 2))
    after = np.array([3, 1, 1, 4, 1, 2])  # routes 0-3-4 and 5-2 of the depot 1
    axes = Figure().subplots()
    metric = Metric("six", 6, "euclidean", points, None)
    runs._draw_tour(axes, SimpleNamespace(metric=metric, solution=after), True)
    first, second, depot = axes.lines
    np.testing.assert_array_equal(first.get_xydata(), points[[1, 0, 3, 4, 1]])
    np.testing.assert_array_equal(second.get_xydata(), points[[1, 5, 2, 1]])
    np.testing.assert_array_equal(depot.get_xydata(), points[[1]])


def test_the_course_of_a_search_steps_at_its_events_and_goes_on_to_the_end():
    events = [(0.5, 20, None), (1.5, 18, 10), (2.0, 17, 12)]
    trace = [SimpleNamespace(seconds=s, best=best, bound=bound) for s, best, bound in events]
    axes = Figure().subplots()
    entry = {"seconds": 3.0, "name": "g", "objective": 17}
    runs._draw_course(axes, SimpleNamespace(trace=trace, entry=entry))
    best, bound = axes.lines
    assert best.get_xydata().tolist() == [[0.5, 20], [1.5, 18], [2, 17], [3, 17]]
    assert bound.get_xydata().tolist() == [[1.5, 10], [2, 12], [3, 12]]


# ---- every kind of picture, whole --------------------------------------------------------------------------
# Programs that tests start draw no ticks and no legends (starter.py); nothing is left out here.

RECORDS = [{"epoch": k, "loss": 2.0**-k, "watched": 3.0**-k, "val_score": k / 9} for k in range(9)]
STEPS = list(range(0, 5000, 500))
FRESH = [{"partition": name, "imbalance": 1.25, "note": ""} for name in ("rows", "edges", "learned")]
RATIOS = {f"a rule of its own, {k}": (STEPS, [1 + k / (1 + step) for step in STEPS]) for k in range(12)}
TRACE = [SimpleNamespace(seconds=s, best=b, bound=c) for s, b, c in [(0, 9, None), (0.5, 8, 2), (90, 7, 5.5)]]
ENTRY = {"seconds": 99, "name": "g", "objective": 7}
INSTANCE = {"bound": 9.5, "sense": "minimise", "objective": 10, "learned": 12}
PICTURES = {
    "plot_learning": (
        [{"step": step, "held_back_nodes": 900 - step / 10} for step in STEPS],
        {"max degree": 700.0, "min degree": 900.0}, "minimise",
    ),
    "plot_solutions": (
        [INSTANCE | {"name": f"road_network_{k}", "baselines": {"greedy": 10 + k}} for k in range(9)],
        "cover",
    ),
    "plot_solves": ([SimpleNamespace(trace=TRACE, entry=ENTRY, metric=None, graph=None)],),
    "plot_curves": (
        [({"name": "g", "nodes": 40, "robustness": {"answer": 0.1, "degree": 0.2}},
          {"answer": [40, 9, 1], "degree": [40, 30, 12, 1]})],
    ),
    "plot_quality": (
        {"ba": {"dqn": [(STEPS, [2.0 - step / 5000 for step in STEPS])] * 2}}, {"ba": {"max degree": 1.05}},
    ),
    "plot_scaling": (
        [{"graph": graph, "step": "train", "ranks": 4**k, "seconds": 0.25**k, "measured_s": "" if k else 1.1}
         for graph in ("ba 1e6", "er 1e7") for k in range(6)],
        "of a machine that was measured",
    ),
    "plot_partition": ([row | {"epoch": k} for row in FRESH for k in range(4)], FRESH, "ba-1000, 4 ranks"),
    "plot_relations": (
        [{"grouping": "triples", "mode": mode, "parts": parts, "work_s": 0.01 * parts}
         for mode in ("parallel", "multiplexed") for parts in (1, 2, 4)],
        "drawn, 9 relations",
    ),
    "plot_training": (RECORDS,),
    "plot_breakdown": ({"ogbn, 4 ranks": {"products": 3.0, "exchange": 1.0}, "cora": {"products": 0.5}},),
    "plot_bars": (
        {"gcn, by rows": {"mean": (0.8, 0.1), "max": (0.5, 0)}, "gat": {"mean": (0.9, 0)}}, "b.png", "ms",
    ),
    "plot_lines": (
        {"many": RATIOS, "one": {"all": ([1, 2, 4], [0.5, np.nan, 0.7])}},
        "l.png", "layers", ["a score"], "log",
    ),
    "plot_forecasts": (
        RECORDS, {"network": [1.0, 2.0], "last": [1.5, 3.0]}, ["north", "south"],
        np.arange(40.0).reshape(2, 20, 1), np.ones((2, 2, 1)), (np.zeros((2, 2, 1)), np.full((2, 2, 1), 2.0)),
    ),
}  # fmt: skip


class Folder:
    """What pictures are put into: rank 0's folder of a run."""

    group = SimpleNamespace(rank=0)

    def __init__(self, path):
        self.path = path

    def placed(self, name):
        return open(self.path / "drawn.png", "wb")


def test_every_kind_of_picture_is_known_here():
    assert {name for module in MODULES for name in vars(module) if name.startswith("plot_")} == set(PICTURES)
    assert {f"{module.__name__.split('.')[-1]}.py" for module in MODULES} == {
        path.name for path in (ROOT / "app" / "plots").glob("*.py") if "plot_" in path.read_text("utf-8")
    }


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", PICTURES)
def test_pictures_are_drawn_whole(name, tmp_path):
    """With ticks, titles and legends, nothing of which runs off the paper."""
    (plot,) = {getattr(module, name) for module in MODULES if hasattr(module, name)}
    plot(Folder(tmp_path), Log(False), *PICTURES[name])
    assert is_drawn(tmp_path / "drawn.png")
    image = imread(tmp_path / "drawn.png")[..., :3]
    for edge in (image[0], image[-1], image[:, 0], image[:, -1]):
        assert (edge == 1).all()
