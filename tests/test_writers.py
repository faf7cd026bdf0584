"""Graphs to files and back: every format that is written reads as the same graph, packed or not."""

import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from helpers import edge_stream, random_graph
from hypothesis import given
from hypothesis import strategies as st
from jobs import ROOT

from app.commands.convert import convert
from app.commands.generate import generate
from app.errors import CaseError, GraphError, LockstepError
from app.graphs.formats.readers import open_edges
from app.graphs.formats.writers import format_of, write_graph
from app.graphs.formats.written import write_metis
from app.graphs.generators.table import GENERATORS
from app.graphs.graph import from_edges
from app.graphs.stream import EdgeStream
from app.graphs.whole import whole_graph

pytestmark = pytest.mark.mpi_skip
SUFFIX = {"edges": ".txt", "csv": ".csv", "matrix_market": ".mtx", "metis": ".graph", "dimacs": ".col",
          "gset": ".gset", "npz": ".npz"}  # fmt: skip


@st.composite
def graphs(draw):
    """A whole graph, perhaps with weights: any numbers, or whole and positive as METIS wants them."""
    n = draw(st.integers(1, 12))
    ends = st.integers(0, n - 1)
    pairs = draw(st.lists(st.tuples(ends, ends), max_size=30))
    u, v = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    whole = st.integers(1, 1 << 24).map(float)
    kind = draw(st.sampled_from([None, whole, st.floats(width=32, allow_nan=False, allow_infinity=False)]))
    w = None if kind is None else draw(st.lists(kind, min_size=len(u), max_size=len(u)))
    return from_edges(n, u, v, None if w is None else np.array(w, dtype=np.float32) + np.float32(0), "g")


def written(folder, graph, format, packing=""):
    path = folder / f"g{SUFFIX[format]}{packing}"
    with open(path, "wb") as file:
        write_graph(file, graph, format, packing)
    return str(path)


def weights_of(graph):
    return np.ones(len(graph.indices), np.float32) if graph.weights is None else graph.weights


def same(one, other):
    """The same graph, bit for bit; no weights are weights of one."""
    assert (one.n, one.edges) == (other.n, other.edges)
    assert np.array_equal(one.indptr, other.indptr) and np.array_equal(one.indices, other.indices)
    assert weights_of(one).tobytes() == weights_of(other).tobytes()


def without_lone_nodes(graph):
    """The graph of the nodes that have edges, and their old numbers."""
    kept = np.flatnonzero(graph.degrees())
    number = np.zeros(graph.n, dtype=np.int64)
    number[kept] = np.arange(len(kept))
    rows = graph.row_of()
    return from_edges(len(kept), number[rows], number[graph.indices], graph.weights), kept


PACKED = [("edges", ".gz"), ("csv", ".bz2"), ("metis", ".xz")]


@pytest.mark.parametrize(("format", "packing"), [*((each, "") for each in SUFFIX), *PACKED])
@given(graph=graphs())
def test_every_format_reads_as_it_was_written(format, packing, graph, tmp_path):
    try:
        path = written(tmp_path, graph, format, packing)
    except GraphError:
        # Lists of edges hold an edge, METIS whole positive weights.
        unfit = weights_of(graph)
        fits = ((unfit == np.trunc(unfit)) & (unfit >= 1) & (unfit <= 1 << 24)).all()
        assert (format in ("edges", "csv") and not graph.edges) or (format == "metis" and not fits)
        return
    stream = open_edges(path)
    found, merged = whole_graph(stream)
    assert merged.loops == 0
    if format not in ("edges", "csv"):
        same(found, graph)
        return
    expected, kept = without_lone_nodes(graph)
    same(found, expected)
    assert found.node_ids(np.arange(found.n)).tolist() == kept.tolist()


@given(graph=graphs())
def test_the_whole_graph_of_a_stream_is_that_of_its_edges(graph):
    rows = graph.row_of()
    both = (rows, graph.indices.astype(np.int64), graph.weights)
    stream = EdgeStream("g", "", "memory", graph.n, 0, graph.weights is not None, lambda _: iter([both]))
    found, merged = whole_graph(stream)
    same(found, graph)
    assert (merged.lines, merged.repeats) == (2 * graph.edges, graph.edges)


@pytest.mark.parametrize("format", ["metis", "dimacs"])
def test_node_weights_are_kept(format, tmp_path):
    graph = from_edges(4, np.array([0, 1]), np.array([1, 2]), np.array([2, 3], dtype=np.float32))
    graph = type(graph)(**{**vars(graph), "node_weights": np.array([1, 5, 0, 7], dtype=np.float32)})
    found, _ = whole_graph(open_edges(written(tmp_path, graph, format)))
    assert found.node_weights.tolist() == [1, 5, 0, 7]
    same(found, graph)


@pytest.mark.parametrize("piece", [1, 7, 1 << 14])
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_metis_lines_are_what_they_are_one_by_one(monkeypatch, piece, own, weighted):
    monkeypatch.setattr("app.graphs.formats.written.METIS_NUMBERS", piece)
    for n, m, seed in ((0, 0, 0), (1, 0, 0), (3, 0, 1), (40, 20, 2), (120, 900, 3), (1100, 300, 4)):
        draws = np.random.default_rng(seed)
        w = draws.choice([1, 9, 10, 99, 100, 1 << 24], m).astype(np.float32) if weighted else None
        graph = from_edges(n, *draws.integers(0, max(n, 1), (2, m)), w)
        if own:
            graph = replace(graph, node_weights=draws.choice([0, 1, 10, 1 << 24], n).astype(np.float32))
        wanted = []
        for row in range(n):
            line = [int(graph.node_weights[row])] if own else []
            for at in range(graph.indptr[row], graph.indptr[row + 1]):
                line += [graph.indices[at] + 1] + ([int(graph.weights[at])] if weighted else [])
            wanted.append(" ".join(map(str, line)) + "\n")
        code = {(False, False): "", (True, False): " 10", (False, True): " 1", (True, True): " 11"}[
            own, weighted
        ]
        assert b"".join(write_metis(graph)).decode() == f"{n} {graph.edges}{code}\n" + "".join(wanted)


def test_a_graph_of_many_rows_is_written_in_pieces(tmp_path, monkeypatch):
    graph, _ = whole_graph(edge_stream(random_graph(60, 0.2, seed=1, weighted=True)))
    whole = (tmp_path / "a", written(tmp_path, graph, "gset"))
    text = Path(whole[1]).read_bytes()
    monkeypatch.setattr("app.graphs.formats.written.ROWS", 7)
    assert Path(written(tmp_path, graph, "gset")).read_bytes() == text


def test_more_nodes_than_the_edges_make_believable_are_refused():
    stream = EdgeStream("g", "", "metis", 1 << 31, 1, False, lambda _: iter([]))
    with pytest.raises(GraphError, match="found 2147483648 nodes and 0 edge lines"):
        whole_graph(stream)


# ---- commands ---------------------------------------------------------------------------------------------


def test_a_chain_through_all_formats_ends_where_it_began(tmp_path):
    names = ["a.mtx", "b.graph.gz", "c.col", "d.npz", "e.gset.xz", "f.txt", "g.csv.bz2", "h.mtx"]
    paths = [str(tmp_path / name) for name in names]
    generate(["ba", paths[0], "nodes=120", "d=3", "seed=5"])
    for before, after in pairwise(paths):
        assert "120 nodes, 351 edges" in convert([before, after])
    weighted = Path(paths[-1]).read_text()  # Gset states weights
    assert weighted.replace(" integer ", " pattern ").replace(" 1\n", "\n").count("\n") == 353
    graph, _ = whole_graph(open_edges(paths[-1]))
    expected, _ = whole_graph(GENERATORS["ba"](120, 3, 5))
    same(graph, expected)


def test_packed_files_have_the_same_bytes_every_time(tmp_path):
    for name in ("a.txt.gz", "b.txt.gz"):
        generate(["er", str(tmp_path / name), "nodes=50", "p=0.1", "seed=2"])
    assert (tmp_path / "a.txt.gz").read_bytes() == (tmp_path / "b.txt.gz").read_bytes()


def test_distances_go_from_tsplib_to_tsplib(tmp_path):
    one, two, plain = (str(tmp_path / name) for name in ("p.tsp", "q.tsp", "r.mtx"))
    generate(["uniform_points", one, "nodes=30", "seed=4"])
    convert([one, two])
    first, second = (open_edges(path).metric for path in (one, two))
    assert first.points.tolist() == second.points.tolist() and first.kind == second.kind
    assert "distances between all pairs are left out" in convert([one, plain])


def test_ids_are_written_on_request(tmp_path):
    (tmp_path / "a.txt").write_text("10 700\n700 9\n")
    said = convert([str(tmp_path / "a.txt"), str(tmp_path / "b.mtx"), "--ids", str(tmp_path / "ids")])
    assert "--ids FILE writes the ids" in said
    assert (tmp_path / "ids").read_text().split() == ["9", "10", "700"]


def test_classes_and_features_go_into_an_archive(tmp_path):
    path = str(tmp_path / "s.npz")
    generate(["sbm", path, "nodes=80", "random_classes=3", "random_features=5", "seed=7"])
    assert "80 nodes" in generate(["sbm", str(tmp_path / "s.mtx"), "nodes=80", "random_classes=3", "seed=7"])
    with np.load(path) as arrays:
        assert arrays["features"].shape == (80, 5) and set(arrays["labels"]) == {0, 1, 2}
        masks = [arrays[f"{name}_mask"] for name in ("train", "val", "test")]
        assert (sum(mask.astype(int) for mask in masks) == 1).all()


@pytest.mark.parametrize(
    ("family", "keys", "edges"),
    [
        ("small_world", ["d=2", "p=0"], 120),
        ("torus", ["removed=0"], 120),
        ("geometric", ["edges=100000"], 1770),
    ],
)
def test_families_of_nodes_that_are_near_each_other(tmp_path, family, keys, edges):
    path = str(tmp_path / "g.mtx")
    assert f"60 nodes, {edges} edges" in generate([family, path, "nodes=60", *keys, "seed=7"])
    assert whole_graph(open_edges(path))[0].edges == edges


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        (convert, ["a.mtx"], "IN and OUT are needed"),
        (convert, ["nothing.mtx", "b.mtx"], "No such file"),
        (convert, ["networkx:karate_club", "b.jpg"], "found no suffix of a format"),
        (convert, ["networkx:karate_club", "b", "--to=mtis"], "did you mean 'metis'"),
        (convert, ["networkx:karate_club", "b.tsp"], "no distances between all pairs"),
        (convert, ["networkx:karate_club", "b.npz.gz"], "is packed already"),
        (convert, ["networkx:karate_club", "no/such/folder/b.mtx"], "cannot be written"),
        (convert, ["networkx:karate_club", "b.mtx", "--form=x"], "unknown option"),
        (generate, ["ba"], "FAMILY and OUT are needed"),
        (generate, ["wheel", "a.mtx", "nodes=5"], "unknown family wheel"),
        (generate, ["ba", "a.mtx", "nodes=-5"], "graph.nodes"),
        (generate, ["ba", "a.mtx", "nodes=[5, 9]"], "makes one graph"),
        (generate, ["ba", "a.mtx", "nodes=50", "dd=3"], "unknown key graph.dd"),
        (
            generate,
            ["er", "a.mtx", "nodes=5", "p=0.5", "complement=true"],
            "complement: says what",
        ),
        (generate, ["er", "a.mtx", "nodes=9", "p=0.5", "random_classes=2"], "holds no classes and features"),
        (convert, ["networkx:karate_club", "b.mtx", "--ids=./b.mtx"], "--ids ./b.mtx is OUT"),
        (convert, ["networkx:karate_club", "b.mtx", "--ids=no/x"], "no such folder"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_left(tool, arguments, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LockstepError, match=said.replace("[", r"\[")):
        tool(arguments)
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_not_replaced_unasked(tmp_path):
    path = tmp_path / "a.mtx"
    path.write_text("mine")
    with pytest.raises(CaseError, match="add --overwrite"):
        convert(["networkx:karate_club", str(path)])
    assert path.read_text() == "mine"
    convert(["networkx:karate_club", str(path), "--overwrite"])
    assert path.read_text().startswith("%%MatrixMarket")


def test_suffixes_are_told_apart():
    assert [format_of(f"x{suffix}.gz") for suffix in (".mtx", ".GRAPH", ".csv")] == [
        "matrix_market",
        "metis",
        "csv",
    ]


@pytest.mark.parametrize(
    "arguments", [[], ["nonsense"], ["convert", "a", "b", "c"], ["convert", "x\x1b[1m", "y.mtx"]]
)
def test_the_command_line_answers_in_one_line(arguments):
    done = subprocess.run(
        [sys.executable, "-m", "app", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr and "\x1b" not in done.stderr


@pytest.mark.parametrize("tool", ["report", "convert", "generate", "planetoid"])
def test_every_tool_has_a_help(tool):
    done = subprocess.run(
        [sys.executable, "-m", "app", tool, "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.startswith(f"usage: python -m app {tool} ")
    assert max(map(len, done.stdout.splitlines())) <= 100
