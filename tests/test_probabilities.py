"""What output.probabilities and output.embeddings tell of each node: from Python, in files, on any ranks."""

import json
import sys

import networkx as nx
import numpy as np
import pytest
from conftest import WORLD
from jobs import ROOT, mpirun, run_job, split_over
from mpi4py import MPI

from app import classify, classify_relational
from app.errors import CaseError
from app.gnn.goals import SeveralClasses, softmax

ASKED = {"output.probabilities": True, "gnn.epochs": 12, "gnn.hidden": 8}


def clubs():
    """The karate club, features that tell the two sides about, and names of the sides."""
    graph = nx.karate_club_graph()
    sides = [graph.nodes[v]["club"] for v in graph]
    noise = np.random.default_rng(3).normal(size=(len(sides), 4))
    return graph, (noise + np.array([side == "Officer" for side in sides])[:, None]).astype(np.float32), sides


@pytest.mark.mpi_skip
def test_a_softmax_is_that_of_its_definition():
    draws = np.random.default_rng(1)
    Z = (draws.normal(size=(9000, 7)) * 20).astype(np.float32)
    Z[0] = (-1e30, 0, 0, -200, 0, 0, -88)
    exact = np.exp(Z.astype(np.float64) - Z.max(axis=1, keepdims=True))
    exact /= exact.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(softmax(Z), exact, rtol=1e-5, atol=1e-30)
    for rows in (slice(0, 1), slice(4095, 4098), slice(8999, 9000)):
        assert softmax(Z[rows]).tobytes() == softmax(Z)[rows].tobytes()
    Z[0, :3] = (500, -500, 0)
    found = SeveralClasses().probabilities(Z)
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(found, 1 / (1 + np.exp(-Z.astype(np.float64))), rtol=1e-5, atol=1e-30)


@pytest.mark.parametrize("order", ["natural", "random"])
def test_one_class_a_node(order):
    graph, X, sides = clubs()
    asked = {**ASKED, "graph.splits": "random", "graph.order": order}
    found = classify(graph, X, sides, settings=asked, comm=WORLD)
    assert found.classes.tolist() == sorted(set(sides))
    assert found.probabilities.shape == (34, 2) and found.probabilities.dtype == np.float32
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1, atol=1e-6)
    assert found.classes[found.probabilities.argmax(axis=1)].tolist() == found.predicted.tolist()
    assert len(np.unique(found.probabilities[:, 0])) > 20
    alone = classify(graph, X, sides, settings=asked, comm=MPI.COMM_SELF)
    assert alone.probabilities.tobytes() == found.probabilities.tobytes()
    assert classify(graph, X, sides, settings={**asked, "output.probabilities": False}).probabilities is None


def test_embeddings_are_by_node_on_any_ranks_and_in_any_order():
    graph, X, sides = clubs()
    asked = {"output.embeddings": True, "gnn.epochs": 3, "gnn.hidden": 8, "gnn.dropout": 0.0}
    asked |= {"gnn.input_dropout": 0.0, "graph.splits": "random"}
    found = classify(graph, X, sides, settings=asked, comm=WORLD)
    assert found.embeddings.shape == (34, 8) and found.probabilities is None
    alone = classify(graph, X, sides, settings=asked, comm=MPI.COMM_SELF)
    assert alone.embeddings.tobytes() == found.embeddings.tobytes()
    other = classify(graph, X, sides, settings={**asked, "graph.order": "random"}, comm=WORLD)
    np.testing.assert_allclose(other.embeddings, found.embeddings, atol=1e-4)
    assert len(np.unique(found.embeddings, axis=0)) > 20
    assert classify(graph, X, sides, settings={**asked, "output.embeddings": False}).embeddings is None


def test_certificates_are_of_solve():
    with pytest.raises(CaseError, match=r"output\.certificates: of solve, whose bounds they prove"):
        classify(nx.path_graph(3), labels=[0, 1, 0], settings={"output.certificates": True})


@pytest.mark.mpi_skip
@pytest.mark.parametrize("named", [True, False])
def test_saved_weights_on_nodes_without_labels(tmp_path, named):
    graph, X, sides = clubs()
    labels = sides if named else [int(side == "Officer") + 3 for side in sides]
    first = classify(graph, X, labels, settings={**ASKED, "graph.splits": "random"})
    first.save(tmp_path / "w.npz")
    asked = {"output.probabilities": True, "gnn.epochs": 0, "gnn.weights": str(tmp_path / "w.npz")}
    again = classify(graph, X, settings=asked)
    assert again.classes.tolist() == first.classes.tolist() == sorted(set(labels))
    np.testing.assert_array_equal(again.probabilities, first.probabilities)


def test_several_classes_a_node():
    graph, X, sides = clubs()
    Y = np.array([[side == "Officer", v % 2, v > 20] for v, side in enumerate(sides)], dtype=np.int8)
    found = classify(graph, X, Y, settings={**ASKED, "graph.splits": "random"}, comm=WORLD)
    assert found.classes.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(found.probabilities > 0.5, found.predicted == 1)


def test_numbers_have_none():
    graph, X, _ = clubs()
    asked = {**ASKED, "gnn.goal": "values", "graph.splits": "random"}
    with pytest.raises(CaseError, match=r"output\.probabilities: numbers have none"):
        classify(graph, X, np.arange(34.0), settings=asked, comm=WORLD)


def test_nodes_of_a_knowledge_graph():
    triples = [(f"a{i}", "likes" if i % 2 else "knows", f"a{(i * 7 + 1) % 30}") for i in range(30)]
    labels = {f"a{i}": "odd" if i % 2 else "even" for i in range(20)}
    settings = {"output.probabilities": True, "rgcn.epochs": 20, "rgcn.min_edges": 1}
    train = [f"a{i}" for i in range(12)]
    found = classify_relational(triples, labels=labels, train=train, settings=settings, comm=WORLD)
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1, atol=1e-6)
    assert found.probabilities.shape == (len(found.nodes), 2)
    assert found.classes.tolist() == ["even", "odd"]
    assert found.classes[found.probabilities.argmax(axis=1)].tolist() == found.predicted.tolist()
    alone = classify_relational(triples, labels=labels, train=train, settings=settings, comm=MPI.COMM_SELF)
    assert alone.probabilities.tobytes() == found.probabilities.tobytes()


@pytest.mark.mpi_skip
@pytest.mark.parametrize("case", ["gcn", "rgcn"])
def test_files(tmp_path, case):
    """On two ranks as on one, beside the predictions, and taken away with them."""
    keys = {
        "gcn": ["graph.nodes=200", "gnn.epochs=3"],
        "rgcn": ["rgcn.epochs=3", "graph.nodes=300", "rgcn.labelled=200"],
    }[case]
    program = [sys.executable, ROOT / "run.py", ROOT / "inputs" / f"{case}.toml", *keys, "output.plots=false"]
    held = []
    for ranks in (1, 2):
        out = tmp_path / str(ranks)
        command = [*mpirun(ranks), *program, split_over(ranks), "output.probabilities=true"]
        code, printed = run_job([*command, "--out", out], limit_s=90)
        assert code == 0, printed
        (path,) = (out / "probabilities").iterdir()
        table = np.load(path)
        held.append({name: table[name].tolist() for name in ("ids", "classes", "probabilities")})
        (text,) = (out / "predictions").iterdir()
        named = [line.split() for line in text.read_text().splitlines()]
        assert [i for i, _ in named] == [str(i) for i in table["ids"]]
        assert [c for _, c in named] == [
            str(table["classes"][k]) for k in table["probabilities"].argmax(axis=1)
        ]
        assert json.loads((out / "result.json").read_text())["status"] == "complete"
    assert held[0] == held[1]
    code, printed = run_job([*program, "--out", out, "--overwrite"], limit_s=90)
    assert code == 0, printed
    assert not list(out.glob("probabilities/*"))
