"""Pictures that a run draws: of an answer beside the baselines and over time, of a tour."""

from types import SimpleNamespace

import numpy as np
import pytest
from jobs import ROOT

from app.graphs.metric import Metric
from app.plots import runs
from run import main

pytestmark = pytest.mark.mpi_skip
matplotlib = pytest.importorskip("matplotlib")
from matplotlib.figure import Figure  # noqa: E402
from matplotlib.image import imread  # noqa: E402


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
    keys = ("graph.generator=ba", "graph.nodes=[30,40]", "graph.count=3", "search.steps=500")
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
