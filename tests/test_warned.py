"""What is warned of from Python names the line of the caller, whichever call it is and however deep."""

import warnings

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

from app import (
    TrainingRun,
    check,
    classify,
    classify_edges,
    embed,
    explain,
    find_links,
    forecast,
    predict_links,
    solve,
)

pytestmark = pytest.mark.mpi_skip  # each rank is a caller of its own

BRIEF, LEARNED = {"search.steps": 10}, {"gnn.epochs": 2}
PLAIN = {"settings": {**LEARNED, "gnn.model": "gcn"}}
RING = nx.cycle_graph(12, create_using=nx.DiGraph)
HALVES, FEW = [v % 2 for v in range(12)], [0] * 9 + [1] * 3
SAME, SERIES = np.ones((12, 2)), np.random.default_rng(2).normal(size=(60, 12))
X = np.random.default_rng(1).normal(size=(12, 3))
WEIGHTS = {1: 16777217.0, 2: 1.0, 3: 1.0}  # which 32 bits do not hold
COVERED = {"element_weights": WEIGHTS, "settings": {"problem.budget": 1, **BRIEF}}
SETS, PATHS = {"a": [1, 2], "b": [2, 3]}, [nx.path_graph(9)] * 3
UNLIKE = sp.coo_matrix(([1, 2, 2, 1], ([0, 1, 1, 2], [1, 0, 2, 1])), shape=(3, 3))
TRIPLES = [(v, kind, (v + 1 + 4 * kind) % 12) for v in range(12) for kind in (0, 1)]


def warned(call, *given, **more):
    """The words of a call's warnings, all of which name this file."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", UserWarning)
        found = call(*given, **more)
    said = [each for each in told if each.category is UserWarning]
    assert not [(each.filename, str(each.message)) for each in said if each.filename != __file__]
    return found, "\n".join(str(each.message) for each in said)


@pytest.mark.parametrize(
    ("call", "given", "more"),
    [
        (solve, (), {"settings": BRIEF}),
        (check, (range(0, 12, 2), "mis"), {"settings": BRIEF}),
        (classify, (X, HALVES), {"train": range(12), "settings": LEARNED}),
        (classify_edges, ({(0, 1): 0, (1, 2): 1}, X), {"settings": LEARNED}),
        (find_links, (X,), {"settings": LEARNED}),
        (embed, (X,), {"dimension": 2, "settings": LEARNED}),
        (forecast, (SERIES,), {"horizon": 2, "window": 4, "settings": LEARNED}),
    ],
)
def test_what_is_lost_of_a_file(call, given, more, tmp_path):
    path = tmp_path / "ring.csv"
    path.write_text("from,to\n" + "".join(f"{u},{v}\n" for u, v in RING.edges))
    found, said = warned(call, str(path), *given, **more)
    assert "skipped the first line 'from,to'" in said
    if call is classify:
        assert "skipped the first line" in warned(explain, str(path), [0], found, X)[1]


@pytest.mark.parametrize(
    ("call", "given", "more", "words"),
    [
        (solve, (SETS, "coverage"), COVERED, "16777217, is kept as 16777216"),
        (check, (SETS, ["a"], "coverage"), COVERED, "16777217, is kept as 16777216"),
        (solve, (UNLIKE, "maxcut"), {"settings": BRIEF}, "not symmetric"),
        (solve, (RING, "mds"), {"settings": BRIEF}, "without directions"),
        (classify, (RING, X, HALVES), {"train": range(12), "settings": LEARNED}, "of a directed graph count"),
        (classify, (nx.complete_graph(12), SAME, FEW), {"train": range(12), **PLAIN}, "all 12 nodes are"),
        (classify_edges, (RING, {(0, 1): 0, (1, 2): 1}, X), {"settings": LEARNED}, "of a directed graph"),
    ],
)
def test_what_is_lost_in_memory(call, given, more, words):
    assert words in warned(call, *given, **more)[1]


def test_what_a_log_warns_of_too(tmp_path):
    """From further below: tasks say it, in a log and to the caller."""
    assert "no gradient step" in warned(TrainingRun(graphs=PATHS, train={"steps": 6}).run)[1]
    found, _ = warned(predict_links, TRIPLES, settings={"rgcn.epochs": 1, "rgcn.hidden": 4})
    found.save(str(tmp_path / "weights.npz"))
    applied = {"rgcn.weights": str(tmp_path / "weights.npz"), "rgcn.epochs": 0, "rgcn.hidden": 8}
    assert "the weights bring their layers" in warned(predict_links, TRIPLES, settings=applied)[1]
