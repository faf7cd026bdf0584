"""Graph files: counts of real ones, round trips of random ones, and an exact place for every fault."""

import bz2
import gzip
import io
import lzma
import os
import pickle
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from data import catalogue, data_dir, needs_data
from hypothesis import given, settings
from hypothesis import strategies as st

from app.errors import CaseError, GraphError
from app.graphs import stream
from app.graphs.formats import source
from app.graphs.formats.readers import READERS, open_edges, open_graph_set
from app.graphs.formats.text import Layout, _parse_fast, _parse_slow
from app.graphs.graph import build_rows, from_edges
from app.graphs.weights import decimals_of

pytestmark = pytest.mark.mpi_skip

FAMILIES = ("mvc", "large", "formats", "maxcut")
COUNTED = [entry for entry in catalogue() if entry["path"].split("/")[0] in FAMILIES and "nodes" in entry]
PACK = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


def collect(opened):
    """u, v, w of all chunks, as whole arrays."""
    chunks = list(opened.chunks())
    u = np.concatenate([np.zeros(0, np.int64), *(chunk[0] for chunk in chunks)])
    v = np.concatenate([np.zeros(0, np.int64), *(chunk[1] for chunk in chunks)])
    assert u.dtype == v.dtype == np.int64
    assert all((chunk[2] is not None) == opened.weighted for chunk in chunks)
    return (
        u,
        v,
        np.concatenate([np.zeros(0, np.float32), *(c[2] for c in chunks)]) if opened.weighted else None,
    )


def merged(opened):
    """(n, u, v, w) with ids compacted where the file states no node count."""
    u, v, w = collect(opened)
    if opened.nodes is not None:
        return opened.nodes, u, v, w
    ids, both = np.unique(np.concatenate([u, v]), return_inverse=True)
    return len(ids), both[: len(u)], both[len(u) :], w


def write(folder, name, content):
    path = Path(folder) / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def fault(path, **arguments):
    """The message of the GraphError that reading `path` raises; one line of plain text."""
    with pytest.raises(GraphError) as caught:
        collect(open_edges(path, **arguments))
    message = str(caught.value)
    assert "\n" not in message and message.isascii() and message.isprintable()
    return message


def test_a_line_without_an_end_is_refused_before_it_is_held(tmp_path, monkeypatch):
    monkeypatch.setattr("app.graphs.formats.source.LONGEST_LINE", 1 << 16)
    path = write(tmp_path, "long.txt", "0 1\n" + "1 " * (5 << 20))
    assert "long.txt:2: a line of over 65536 bytes; shorter would be right" in fault(path)


# --- real files


@needs_data
@pytest.mark.parametrize("entry", COUNTED, ids=lambda entry: entry["path"])
def test_counts_of_the_catalogue(entry):
    opened = open_edges(str(data_dir() / entry["path"]))
    n, u, v, w = merged(opened)
    graph = from_edges(n, u, v, w)
    assert (graph.n, graph.edges) == (entry["nodes"], entry["edges"])
    indptr, indices, _ = build_rows(np.concatenate([u, v]), np.concatenate([v, u]), None, 0, n)
    assert np.array_equal(indptr, graph.indptr) and np.array_equal(indices, graph.indices)
    if "self_loops" in entry:
        assert np.count_nonzero(u == v) == entry["self_loops"]
    if "edge_lines" in entry:
        assert len(u) == entry["edge_lines"]


@needs_data
@pytest.mark.parametrize("name", ["cora", "dblp", "pubmed_structure"])
def test_counts_of_feature_files(name):
    path = f"gnn/{name}.npz"
    entry = next(entry for entry in catalogue() if entry["path"] == path)
    n, u, v, _ = merged(open_edges(str(data_dir() / path)))
    assert (n, from_edges(n, u, v).edges) == (entry["nodes"], entry["edges_undirected"])


@needs_data
def test_refused_files_of_the_collection():
    assert ":1: found format 'array'" in fault(str(data_dir() / "formats/full.mtx"))
    assert "set of graphs" in fault(str(data_dir() / "covers/ba.npz"))
    assert "holds Python objects" in fault(str(data_dir() / "gnn/original/amazon_cs.npz"))
    assert "Python pickle" in fault(str(data_dir() / "gnn/planetoid/ind.cora.graph"))


@needs_data
def test_first_line_of_ca_grqc_is_skipped_with_a_warning():
    opened = open_edges(str(data_dir() / "large/ca-GrQc.txt"))
    collect(opened)
    collect(opened)
    assert len(opened.warnings) == 1 and ":1: skipped the first line 'https://snap" in opened.warnings[0]


@needs_data
@pytest.mark.parametrize(("name", "d"), [("ba", 4), ("er", None)])
def test_graph_sets(name, d):
    graphs, best = open_graph_set(str(data_dir() / f"covers/{name}.npz"))
    assert len(graphs) == len(best) == 100
    assert sorted({graph.n for graph in graphs}) == [50, 100, 150, 200, 250]
    assert all(graph.whole and graph.name == f"{name}-{i}" for i, graph in enumerate(graphs))
    assert all(0 < cover < graph.n for cover, graph in zip(best, graphs))
    if d:
        assert all(graph.edges == d * (graph.n - d) for graph in graphs)


# --- round trips


@st.composite
def graphs(draw, weights=True):
    """(n, u, v, w) with at least one edge: loops, repeats and isolated nodes included."""
    n = draw(st.integers(1, 12))
    ends = st.integers(0, n - 1)
    pairs = draw(st.lists(st.tuples(ends, ends), min_size=1, max_size=30))
    u, v = np.array(pairs, dtype=np.int64).T
    numbers = st.one_of(st.integers(-20, 20), st.floats(-(2.0**100), 2.0**100, width=32))
    w = draw(st.none() | st.lists(numbers, min_size=len(u), max_size=len(u))) if weights else None
    return n, u, v, None if w is None else np.array(w, dtype=np.float32)


def same(opened, u, v, w, nodes=None):
    got_u, got_v, got_w = collect(opened)
    assert opened.nodes == nodes
    assert got_u.tolist() == list(u) and got_v.tolist() == list(v)
    assert (got_w is None) == (w is None) and (w is None or np.array_equal(got_w, w))


def decorated(draw, rows, comments, end):
    """The lines of `rows` with comments and blank lines between them, if `comments` allows."""
    lines = []
    for row in rows:
        lines += draw(st.lists(st.sampled_from(["", "  ", *comments]), max_size=2)) if comments else []
        lines.append(row)
    return end.join(lines) + draw(st.sampled_from(["", end]))


def numbers(row, between=" "):
    return between.join(repr(float(x)) if isinstance(x, np.floating) else str(x) for x in row)


@given(st.data(), graphs(), st.sampled_from(list(PACK)), st.sampled_from(["\n", "\r\n"]))
@settings(max_examples=80, deadline=None)
def test_edge_lists_read_back_equal(data, graph, packed, end):
    n, u, v, w = graph
    ids = np.sort(data.draw(st.lists(st.integers(0, 2**63 - 1), min_size=n, max_size=n, unique=True)))
    u, v = ids[u], ids[v]
    between = data.draw(st.sampled_from([" ", "\t", ",", ", ", "  "]))
    title = data.draw(st.sampled_from(["", "source,target" + end, "http://x.org/a b" + end, "\ufeff"]))
    rows = [numbers(row, between) for row in (zip(u, v) if w is None else zip(u, v, w))]
    text = title + decorated(data.draw, rows, ["# a 1 2", "  % b"], end)
    with tempfile.TemporaryDirectory() as folder:
        # The compression is told from the content, so the suffix may be missing.
        name = "g.txt" + data.draw(st.sampled_from([packed, ""]))
        opened = open_edges(write(folder, name, PACK[packed](text.encode())), "edges")
        same(opened, u, v, w)
        assert opened.name == "g" and len(opened.warnings) == (len(title) > 1)


@given(st.data(), graphs(), st.sampled_from(["\n", "\r\n"]))
@settings(max_examples=60, deadline=None)
def test_matrix_market_reads_back_equal(data, graph, end):
    n, u, v, w = graph
    field = "pattern" if w is None else "integer" if (w == np.floor(w)).all() else "real"
    rows = [(a + 1, b + 1) for a, b in zip(u, v)]
    if w is not None:
        rows = [(*row, int(x) if field == "integer" else x) for row, x in zip(rows, w)]
    symmetry = data.draw(st.sampled_from(["general", "symmetric", "Symmetric"]))
    text = decorated(data.draw, [f"{n} {n} {len(u)}", *map(numbers, rows)], ["% note", "%"], end)
    text = f"%%MatrixMarket matrix coordinate {field} {symmetry}{end}{text}"
    with tempfile.TemporaryDirectory() as folder:
        same(open_edges(write(folder, "g.mtx", text)), u, v, w, n)


@given(st.data(), graphs(), st.sampled_from(["\n", "\r\n"]), st.sampled_from(list(PACK)))
@settings(max_examples=60, deadline=None)
def test_dimacs_reads_back_equal(data, graph, end, packed):
    n, u, v, w = graph
    letter = data.draw(st.sampled_from(["e ", "a ", "", "e\t", " e  "]))
    rows = [(a + 1, b + 1) for a, b in zip(u, v)]
    rows = [letter + numbers(row if w is None else (*row, w[i])) for i, row in enumerate(rows)]
    heavy = data.draw(st.dictionaries(st.integers(1, n), st.integers(0, 9)))
    node_lines = [f"n {node} {weight}" for node, weight in heavy.items()]
    text = decorated(data.draw, [f"p edge {n} {len(u)} ", *node_lines, *rows], ["c", "c 1 2 p"], end)
    with tempfile.TemporaryDirectory() as folder:
        opened = open_edges(write(folder, "g.col" + packed, PACK[packed](text.encode())))
        same(opened, u, v, w, n)
        assert (opened.node_weights is None) == (not heavy)
        if heavy:
            assert opened.node_weights.tolist() == [heavy.get(node, 1) for node in range(1, n + 1)]


@given(st.data(), graphs(weights=False), st.booleans(), st.booleans(), st.integers(0, 3))
@settings(max_examples=80, deadline=None)
def test_metis_reads_back_equal(data, graph, sizes, weighted, constraints):
    n, u, v, _ = graph
    u, v = u[u != v], v[u != v]
    rows, cols = np.concatenate([u, v]), np.concatenate([v, u])
    order = np.argsort(rows, kind="stable")
    rows, cols = rows[order], cols[order]
    w = np.minimum(rows, cols) + 1.0 if weighted else None
    node_weights = data.draw(st.lists(st.integers(0, 9), min_size=n, max_size=n))
    code = f"{int(sizes)}{int(constraints > 0)}{int(weighted)}"
    header = f" {n} {len(u)}" + (f" {code} {constraints}" if constraints else f" {code}" if int(code) else "")
    lines = []
    for node in range(n):
        before = [7] * sizes + [node_weights[node] + i for i in range(constraints)]
        here = np.flatnonzero(rows == node)
        after = [x for i in here for x in ([cols[i] + 1] + ([int(w[i])] if weighted else []))]
        lines += [*data.draw(st.lists(st.just("% note"), max_size=1)), numbers(before + after)]
    text = "\n".join(["% first", header, *lines]) + "\n" + data.draw(st.sampled_from(["", "\n\n"]))
    with tempfile.TemporaryDirectory() as folder:
        opened = open_edges(write(folder, "g.graph", text))
        same(opened, rows, cols, w, n)
        assert (opened.node_weights is None) == (constraints == 0)
        assert not constraints or opened.node_weights.tolist() == node_weights


@given(graphs())
@settings(max_examples=30, deadline=None)
def test_gset_reads_back_equal(graph):
    n, u, v, w = graph
    w = np.ones(len(u), np.float32) if w is None else w
    text = f"{n} {len(u)} \n" + "".join(f"{a + 1} {b + 1} {float(x)!r}\n" for a, b, x in zip(u, v, w))
    with tempfile.TemporaryDirectory() as folder:
        opened = open_edges(write(folder, "G1", text))
        same(opened, u, v, w, n)
        assert (opened.format, opened.name, opened.first_id) == ("gset", "G1", 1)


@given(graphs(), st.sampled_from(["edges", "edge_index", "row", "fortran", "num_nodes"]), st.booleans())
@settings(max_examples=60, deadline=None)
def test_npz_of_edges_reads_back_equal(graph, layout, packed):
    n, u, v, w = graph
    weights = {} if w is None else {"weights": w}
    arrays = {
        "edges": {"edges": np.stack([u, v], 1), **weights},
        "fortran": {"edges": np.asfortranarray(np.stack([u, v], 1)), **weights},
        "edge_index": {"edge_index": np.stack([u, v]).astype(np.uint16), **weights},
        "num_nodes": {"edge_index": np.stack([u, v]), "num_nodes": np.array([n]), **weights},
        "row": {"row": u.astype(">i4"), "col": v, "shape": np.array([n, n])}
        | ({} if w is None else {"data": w}),
    }[layout]
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "g.npz")
        (np.savez_compressed if packed else np.savez)(path, **arrays)
        same(open_edges(path), u, v, w, n if layout in ("row", "num_nodes") else None)


@given(graphs(), st.sampled_from(["csr", "csc", "coo", "own", "adj_"]))
@settings(max_examples=60, deadline=None)
def test_npz_of_matrices_reads_back_equal(graph, layout):
    n, u, v, w = graph
    values = np.ones(len(u), bool) if w is None else w
    matrix = scipy.sparse.coo_matrix((values, (u, v)), shape=(n, n)).tocsr()
    matrix.sum_duplicates()
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "g.npz")
        if layout in ("csr", "csc", "coo"):
            scipy.sparse.save_npz(path, matrix.asformat(layout))
        else:
            prefix = layout.removeprefix("own")
            arrays = {"indptr": matrix.indptr, "indices": matrix.indices, "data": matrix.data}
            np.savez(path, **{prefix + name: array for name, array in arrays.items()})
        got_u, got_v, got_w = collect(open_edges(path))
    got = (
        scipy.sparse.coo_matrix((values[:0].astype(matrix.dtype), ([], [])), shape=(n, n))
        if not len(got_u)
        else (
            scipy.sparse.coo_matrix(
                (np.ones(len(got_u), bool) if got_w is None else got_w, (got_u, got_v)), shape=(n, n)
            )
        )
    )
    assert (got.tocsr() != matrix).nnz == 0


@given(
    st.text(alphabet="0123456789 \t\n,.-+eE", max_size=60),
    st.sampled_from([2, 3]),
    st.booleans(),
    st.booleans(),
)
@settings(max_examples=300, deadline=None)
def test_fast_pass_accepts_no_more_than_the_slow_one(text, columns, comma, real):
    layout = Layout(columns, first_id=1, last_id=10**12, comma=comma, real=real)
    fast = _parse_fast(text.encode() + b"\n", layout)
    if fast is not None:
        slow = _parse_slow(source.Source("x"), text.encode() + b"\n", 1, layout)
        assert all(a is b is None or np.array_equal(a, b) for a, b in zip(fast, slow))


def test_ids_of_every_length(tmp_path):
    ids = [10**k + d for k in range(19) for d in (-1, 0, 7)] + [2**63 - 1, 2**63 - 2, 2**31, 2**32 + 1]
    text = "".join(f"{i} {j:022d}\n" if j < 10 else f"{i} {j}\n" for i, j in zip(ids, reversed(ids)))
    u, v, _ = collect(open_edges(write(tmp_path, "ids.txt", text)))
    assert u.tolist() == ids and v.tolist() == ids[::-1]


@pytest.mark.parametrize("piece", [1, 7, 64])
def test_pieces_are_cut_at_lines(tmp_path, monkeypatch, piece):
    monkeypatch.setattr(source, "PIECE_BYTES", piece)
    edges = [(i, i * i) for i in range(200)]
    path = write(tmp_path, "g.txt", "# head\r\n" + "".join(f"{a}\t{b}\r\n" for a, b in edges) + "5\t-6")
    found = open_edges(path).chunks()
    got = []
    with pytest.raises(GraphError, match=":202: found a negative node id"):
        got += [pair for u, v, _ in found for pair in zip(u, v)]
    assert len(got) <= len(edges)
    again = write(tmp_path, "h.txt", Path(path).read_bytes()[:-4])
    u, v, _ = collect(open_edges(again))
    assert list(zip(u.tolist(), v.tolist())) == edges


def test_chunks_are_small(tmp_path, monkeypatch):
    monkeypatch.setattr(stream, "CHUNK_EDGES", 10)
    text = "40 39\n" + "\n".join(" ".join(str(x) for x in ([1] if i else range(2, 41))) for i in range(40))
    opened = open_edges(write(tmp_path, "star.graph", text))
    assert max(len(u) for u, _, _ in opened.chunks()) == 10
    assert len(collect(opened)[0]) == 78


def test_networkx_names():
    opened = open_edges("networkx:karate_club")
    assert (opened.nodes, len(collect(opened)[0]), opened.name, opened.format) == (
        34,
        78,
        "karate_club",
        "networkx",
    )
    assert len(collect(open_edges("networkx:davis_southern_women"))[0]) == 89
    assert len(collect(open_edges("networkx:florentine_families"))[0]) == 20
    assert collect(open_edges("networkx:les_miserables"))[2].max() == 31
    with pytest.raises(GraphError, match="did you mean networkx:karate_club"):
        open_edges("networkx:karate")


def test_networkx_is_imported_only_when_named(tmp_path):
    path = write(tmp_path, "g.txt", "1 2\n")
    code = (
        "import sys; from app.graphs.formats.readers import open_edges; "
        "list(open_edges(sys.argv[1]).chunks()); "
        "assert 'networkx' not in sys.modules"
    )
    root = Path(__file__).parent.parent
    subprocess.run([sys.executable, "-c", code, path], check=True, cwd=root, timeout=120)


def test_unknown_format_names_the_nearest(tmp_path):
    with pytest.raises(CaseError, match="did you mean 'metis'"):
        open_edges(write(tmp_path, "g.txt", "1 2\n"), "mettis")
    assert set(READERS) >= {"edges", "matrix_market", "metis", "dimacs", "npz", "networkx"}


# --- faults, each with its place

LONG = "7" * 100_000
MM = "%%MatrixMarket matrix coordinate pattern general\n"
BAD_TEXT = [
    ("e.txt", "1 2\n1 -2\n", 2, "negative"),
    ("e.txt", "# c\n\n1 2\n3\n", 4, "1 field where 2"),
    ("e.txt", "1 2\n1 2 3\n", 2, "3 fields where 2"),
    ("e.txt", "1 2 3 4\n", 1, "4 fields"),
    ("e.txt", "1 2\n1.5 2\n", 2, "no integer"),
    ("e.txt", "1 2\n1e5 2\n", 2, "no integer"),
    ("e.txt", "1;2\n", 1, "would be right (a comma parts fields too, ';' does not)"),
    ("e.txt", b"1 2\n\xe9 2\n", 2, r"no integer in '\xe9 2'"),
    ("e.txt", "1 2\n0x1f 2\n", 2, "no integer"),
    ("e.txt", "1 2\n1_0 2\n", 2, "no integer"),
    ("e.txt", "1 2\n+1 2\n", 2, "no integer"),
    ("e.txt", "1 2\n\u0661 2\n", 2, "no integer"),
    ("e.txt", "1 2\nsource target\n", 2, "no integer"),
    ("e.txt", "# c\nsource target\n1 2\n", 2, "no integer"),
    ("e.txt", "source target\nfrom to\n1 2\n", 2, "no integer"),
    ("e.txt", "1 x\n1 2\n", 1, "no integer"),
    ("e.txt", "nan 3\n1 2\n", 1, "no integer"),
    ("e.txt", "1\t2\n3,4\n", 2, "1 field where 2"),
    ("e.csv", "1,2\n3 4\n", 2, "1 field where 2"),
    ("e.csv", "1,2\n3,,4\n5 6,7\n", 2, "3 fields where 2"),
    ("e.csv", "1,2\n3,4,\n", 2, "3 fields where 2"),
    ("e.csv", "1,2\n3,\n", 2, "no integer"),
    ("e.txt", "1 2\n3 4 # note\n", 2, "4 fields where 2"),
    ("e.txt", "1 2\n3\r4\n", 2, "1 field where 2"),
    ("e.txt", "1 2\n3\v4\n", 2, "1 field where 2"),
    ("e.txt", "1 2\n9223372036854775808 1\n", 2, "above 2^63-1"),
    ("e.txt", "1 2\n18446744073709551617 1\n", 2, "above 2^63-1"),
    ("e.txt", f"1 2\n1 {LONG}\n", 2, "above 2^63-1"),
    ("e.txt", f"1 2\n{LONG}\n", 2, "1 field where 2"),
    ("e.txt", "1 2\n3 4\n5 6\0\n", 3, "NUL"),
    ("e.txt", "1 2\n\x1b[31m 4\n", 2, r"'\x1b[31m 4'"),
    ("e.txt", "1 2\n\ufeff3 4\n", 2, "no integer"),
    ("e.txt", "1 2 0.5\n1 2 nan\n", 2, "no finite number"),
    ("e.txt", "1 2 0.5\n1 2 inf\n", 2, "no finite number"),
    ("e.txt", "1 2 0.5\n1 2 1e39\n", 2, "beyond the range"),
    ("e.txt", "1 2 0.5\n1 2 1.2.3\n", 2, "no finite number"),
    ("e.txt", "1 2 0.5\n1. 2 3\n", 2, "no integer"),
    ("e.txt", "1 2 0.5\n1 2\n3\n", 2, "2 fields where 3"),
    ("e.txt", "", None, "no edges in"),
    ("e.txt", "# only\n\n# comments\n", None, "no edges in"),
    ("e.txt", "source target\n", None, "no edges in"),
    ("e.txt", "\xff\xfe1 2".encode("latin-1"), None, "UTF-16"),
    ("e.txt.gz", gzip.compress(b"1 2\n" * 9999, mtime=0)[:-9], None, "cannot be read"),
    ("e.txt.bz2", bz2.compress(b"1 2\n" * 9999)[:-9], None, "cannot be read"),
    ("e.txt.xz", lzma.compress(b"1 2\n" * 9999)[:-9], None, "cannot be read"),
    ("e.txt.gz", b"\x1f\x8b\x08rubbish", None, "cannot be read"),
    ("a.mtx", "%%MatrixMarket matrix array real general\n1 1\n1\n", 1, "format 'array'"),
    ("a.mtx", "%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 1\n", 1, "field 'complex'"),
    ("a.mtx", "%%MatrixMarket matrix coordinate real hermitian\n", 1, "symmetry 'hermitian'"),
    ("a.mtx", "%%MatrixMarket matrix coordinate real skew-symmetric\n", 1, "symmetry 'skew-symmetric'"),
    ("a.mtx", "%%MatrixMarket vector coordinate real general\n", 1, "object 'vector'"),
    ("a.mtx", "2 2 1\n1 2\n", 1, "%%MatrixMarket"),
    ("a.mtx", "", None, "no edges in"),
    ("a.mtx", MM, None, "no line of sizes"),
    ("a.mtx", MM + "% c\n2 3 1\n1 2\n", 3, "2 rows and 3 columns"),
    ("a.mtx", MM + "2 2\n1 2\n", 2, "2 fields"),
    ("a.mtx", MM + "2 -2 1\n1 2\n", 2, "negative count"),
    ("a.mtx", MM + "2 2 99999999999999999999\n", 2, "above"),
    ("a.mtx", MM + "2 2 2\n1 2\n", 2, "states 2 entries, found 1"),
    ("a.mtx", MM + "2 2 1\n% c\n1 2\n\n2 1\n", 6, "more than 1"),
    ("a.mtx", MM + "2 2 2\n1 2\n0 1\n", 4, "node id 0 outside 1..2"),
    ("a.mtx", MM + "2 2 2\n1 2\n1 3\n", 4, "node id 3 outside 1..2"),
    ("a.mtx", MM + "2 2 1\n1 2 3\n", 3, "3 fields where 2"),
    ("a.mtx", MM.replace("pattern", "real") + "2 2 1\n1 2\n", 3, "2 fields where 3"),
    ("a.mtx", MM.replace("pattern", "real") + "2 2 1\n1 2 NaN\n", 3, "no finite number"),
    ("a.mtx", MM.replace("pattern", "integer") + "2 2 1\n1 2 0.5\n", 3, "weight that is no integer"),
    ("d.col", "e 1 2\np edge 2 1\n", 1, "before the p line"),
    ("d.col", "c only\n", None, "no p line"),
    ("d.col", "", None, "no edges in"),
    ("d.col", "p edge 2\n", 1, "3 fields"),
    ("d.col", "p edge 2 x\n", 1, "no integer"),
    ("d.col", "p edge 3 1\np edge 3 1\ne 1 2\n", 2, "found 'p edge 3 1'"),
    ("d.col", "p edge 2 2\ne 1 2\ne 1 3\n", 3, "node id 3 outside 1..2"),
    ("d.col", "c x\np edge 2 2\nc y\ne 1 2\nc z\ne 0 1\n", 6, "node id 0 outside 1..2"),
    ("d.col", "p edge 3 2\ne 1 2\n2 3\n", 3, "'e ...', as in the first"),
    ("d.col", "p edge 3 2\n1 2\ne 2 3\n", 3, "found 'e 2 3'"),
    ("d.col", "p edge 3 3\ne 1 2\nz 2 3\n", 3, "found 'z 2 3'"),
    ("d.col", "p edge 3 5\ne 1 2\ne 1 3\n", 1, "states 5 edges, found 2"),
    ("d.col", "p edge 3 1\ne 1 2\ne 1 3\nc\ne 2 3\n", 5, "more than 2"),
    ("d.col", "p edge 3 1\nn 4 1\ne 1 2\n", 2, "found 'n 4 1'"),
    ("d.col", "p edge 3 1\nn 1 x\ne 1 2\n", 2, "found 'n 1 x'"),
    ("d.gr", "p sp 3 1\na 1 2 x\n", 2, "no finite number"),
    ("d.gr", "p td 2 1\n1 2 \n1 -2\n", 3, "negative"),
    ("m.graph", "", None, "no edges in"),
    ("m.graph", "% c\n", None, "no edges in"),
    ("m.graph", "3\n", 1, "1 fields"),
    ("m.graph", "2 1 2\n2\n1\n", 1, "fmt '2'"),
    ("m.graph", "2 1 1 1\n2 1\n1 1\n", 1, "ncon 1"),
    ("m.graph", "2 1 10 0\n2\n1\n", 1, "ncon 0"),
    ("m.graph", "2 x\n2\n1\n", 1, "no integer"),
    ("m.graph", "% c\n2 1\n2\n% d\n3\n", 5, "node id 3 outside 1..2"),
    ("m.graph", "2 1\n2\n0\n", 3, "node id 0 outside 1..2"),
    ("m.graph", "2 1\n2\na\n", 3, "no integer"),
    ("m.graph", "2 1\n2\n", 1, "states 2 nodes, found 1"),
    ("m.graph", "2 1\n2\n1\n\n1\n", 5, "after the last of 2 node lines"),
    ("m.graph", "2 2\n2\n1\n", 1, "found 2 neighbours; 4"),
    ("m.graph", "2 1\n2 2\n\n", None, "do not name each other"),
    ("m.graph", "4 2\n2\n1\n2 4\n\n", None, "do not name each other"),
    ("m.graph", "2 1 1\n2\n1 1\n", 2, "found 1 numbers"),
    ("m.graph", "2 1 1\n2 0\n1 0\n", 2, "number 0 outside"),
    ("m.graph", "2 1 11\n5 2 1\n\n", 3, "found 0 numbers"),
    ("G1", "3 2\n1 2 1\n", 1, "states 2 edges, found 1"),
    ("G1", "3 1\n1 2 1\n2 3 1\n", 3, "more than 1"),
    ("G1", "3 2\n1 2 1\n1 4 1\n", 3, "node id 4 outside 1..3"),
]


@pytest.mark.parametrize(("name", "text", "line", "part"), BAD_TEXT)
def test_faults_name_their_line(tmp_path, name, text, line, part):
    path = write(tmp_path, name, text)
    message = fault(path)
    assert message.startswith((f"{path}: ", f"no edges in {path}; ") if line is None else f"{path}:{line}: ")
    assert part in message
    assert len(message) < len(path) + 230


def test_faults_of_paths(tmp_path):
    assert "No such file" in fault(str(tmp_path / "missing.txt"))
    assert "a directory" in fault(str(tmp_path))
    assert "null" in fault("a\0b")
    assert r"\x1b[31m.txt" in fault(str(tmp_path / "\x1b[31m.txt"))
    os.mkfifo(tmp_path / "pipe")
    assert "not an ordinary file" in fault(str(tmp_path / "pipe"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('<?xml version="1.0"?>\n<graphml>\n</graphml>\n', "GraphML, .*read_graphml"),
        ('{"nodes": [], "links": []}', "JSON, .*node_link_graph"),
        ('Creator "x"\ngraph [\n  node [\n    id 0\n  ]\n]\n', "GML, .*read_gml"),
        ("strict graph G {\n 1 -- 2;\n}\n", "DOT, .*read_dot"),
        ("*Vertices 2\n*Edges\n1 2\n", "Pajek, .*read_pajek"),
    ],
)
def test_formats_of_others_are_named(tmp_path, text, said):
    with pytest.raises(GraphError, match=f"found {said}"):
        open_edges(write(tmp_path, "g.txt", text))


def test_fault_far_into_a_file_names_its_line(tmp_path):
    good = "".join(f"{i} {i + 1}\n" for i in range(900_000))
    path = write(tmp_path, "long.txt", "# c\n" + good + "7 8 9\n" + good[:99])
    assert fault(path).startswith(f"{path}:900002: found 3 fields")


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_bombs_stop_at_the_cap(tmp_path, pack):
    path = write(tmp_path, "bomb.txt", pack(b"1 2\n" * 500_000))
    assert "more than 1000000 bytes" in fault(path, max_decompressed_bytes=1_000_000)


def test_half_and_double_edge_counts_of_dimacs_are_warnings(tmp_path):
    for stated, lines in [(2, "e 1 2\n"), (1, "e 1 2\ne 2 1\n")]:
        opened = open_edges(write(tmp_path, "g.col", f"p edge 2 {stated}\n{lines}"))
        collect(opened)
        assert len(opened.warnings) == 1 and f"states {stated} edges" in opened.warnings[0]


def test_other_lines_of_dimacs_are_ignored_with_a_warning(tmp_path):
    opened = open_edges(write(tmp_path, "g.col", "p col 2 1\nd 3\nv 1 2\nv 2 2\ne 1 2\nx 9\n"))
    collect(opened)
    assert [warning.split(": ")[1] for warning in opened.warnings] == [
        f"'{letter}' lines are ignored" for letter in "dvx"
    ]


LARGE = [
    ("g.txt", "# c\n1 2 5\n2 3 16777217\n1 3 16777219\n", "g.txt:3: the weight"),
    ("g.csv", "1,2,5\n\n2,3,16777217.0\n", "g.csv:3: the weight"),
    ("g.mtx", MM.replace("pattern", "integer") + "3 3 2\n2 1 4\n3 2 16777217\n", "g.mtx:4: the weight"),
    ("g.gset", "3 2\n1 2 1\n2 3 16777217\n", "g.gset:3: the weight"),
    ("g.graph", "3 2 1\n2 1\n1 1 3 16777217\n2 16777217\n", "g.graph: the weight of edge 2-3"),
    ("n.graph", "3 2 10\n1 2\n16777217 1 3\n1 2\n", "n.graph: the weight of node 2"),
    ("n.col", "p edge 3 2\nn 3 16777217\ne 1 2\ne 2 3\n", "n.col: the weight of node 3"),
]


@pytest.mark.parametrize(("name", "text", "place"), LARGE)
def test_whole_weights_that_are_not_kept_are_said_once(tmp_path, name, text, place):
    opened = open_edges(write(tmp_path, name, text))
    for _ in range(2):
        collect(opened)
    (said,) = opened.warnings
    assert f"{place}, 16777217, is kept as 16777216: whole numbers up to 16777216 are exact" in said
    exact = open_edges(write(tmp_path, name, text.replace("1677721", "1677720")))
    collect(exact)
    assert exact.warnings == []


TINY = [
    ("g.txt", "0 1 2\n# 1e-400\n1 2 {}\n", ":3: the weight", {}),
    ("g.csv", "0,1,2\n\n1,2,{}\n", ":3: the weight", {}),
    ("g.tsv", "a b\tb\t1\nb\tc\t{}\na b\tc\t3\n", ":2: the weight", {"ids": "names"}),
    ("g.mtx", MM.replace("pattern", "real") + "3 3 2\n2 1 1\n3 2 {}\n", ":4: the weight", {}),
    ("G1", "3 2\n1 2 0.5\n2 3 {}\n", ":3: the weight", {}),
    ("q.qubo", "p qubo 0 2 1 1\n0 0 {}\n0 1 2\n", ":2: the weight", {}),
    ("o.txt", "2\n0 {}\n1 0\n", ": the entry 1, 2", {"format": "lolib"}),
    ("g.col", "p edge 2 1\nn 1 {}\nn 2 1\ne 1 2\n", ":2: the weight", {}),
]


@pytest.mark.parametrize(("name", "text", "place", "more"), TINY)
def test_weights_that_are_0_as_soon_as_they_are_read_are_said_once(tmp_path, name, text, place, more):
    """Below the least of 64 bits, which float() makes 0; what is written as 0 is 0."""
    longest = {"g.col": 6, "o.txt": 30}.get(name, 999)  # of a number there
    for written in ("1e-400", "-1E-0330", f"0.{'0' * 330}7"):
        if len(written) > longest:
            continue
        opened = open_edges(write(tmp_path, name, text.format(written)), **more)
        for _ in range(2):
            collect(opened)
        (said,) = [each for each in opened.warnings if "kept as 0" in each]
        assert f"{place}, {written[:40]}, is kept as 0: weights in a finer unit" in said
    for exact in ("0", "0e-400", "0.0", "0.25"):
        opened = open_edges(write(tmp_path, name, text.format(exact)), **more)
        collect(opened)
        assert not any("kept as 0" in each for each in opened.warnings)


@pytest.mark.parametrize(("kind", "said"), [(np.int64, 1), (np.float64, 1), (np.uint64, 1), (np.float32, 0)])
def test_whole_weights_of_an_archive_that_are_not_kept_are_said(tmp_path, kind, said):
    weights = np.array([1, 0.5 if kind == np.float64 else 2, 2**53 + 2]).astype(kind)
    path = save(tmp_path, edges=np.array([[0, 1], [1, 2], [0, 2]]), weights=weights)
    opened = open_edges(path)
    collect(opened)
    assert len(opened.warnings) == said
    if said:
        assert "g.npz: weights[2], 9007199254740994, is kept as 9007199254740992: " in opened.warnings[0]


def test_decimals_of_weights():
    for weights, decimals in (
        ([0.1, 0.25], 2),
        ([3, -7], 0),
        ([1 / 3], 8),
        ([1.23e-7], None),
        ([1.5e-7], 8),
        ([], 0),
    ):
        found = np.array(weights, dtype=np.float32).astype(np.float64)
        assert decimals_of(found) == decimals


@pytest.mark.parametrize(
    ("name", "text"),
    [("g.col", "p edge 3 0\n"), ("g.mtx", MM + "3 3 0\n"), ("g.graph", "3 0\n\n\n\n")],
)
def test_isolated_nodes_alone_are_a_graph(tmp_path, name, text):
    opened = open_edges(write(tmp_path, name, text))
    assert opened.nodes == 3 and len(collect(opened)[0]) == 0


# --- faults of .npz


def save(folder, **arrays):
    path = str(Path(folder) / "g.npz")
    np.savez(path, **arrays)
    return path


BAD_ARRAYS = [
    ({"x": np.zeros(3)}, "found arrays x"),
    ({"indptr": np.array([0, 1])}, "no array 'indices'"),
    ({"indptr": np.array([0, 1]), "indices": np.array([1])}, "'indices': found node 1; 0..0"),
    ({"indptr": np.array([0, 1, 1]), "indices": np.array([-1])}, "found -1"),
    ({"indptr": np.array([0, 2]), "indices": np.array([0])}, "ascending offsets from 0 to 1"),
    ({"indptr": np.array([0, 1, 0, 1]), "indices": np.array([0])}, "ascending offsets"),
    ({"indptr": np.zeros(0, int), "indices": np.zeros(0, int)}, "found no offsets"),
    ({"indptr": np.array([0.0, 1.0]), "indices": np.array([0])}, "'indptr': found float64"),
    ({"edges": np.zeros((2, 3), int)}, "shape (2, 3)"),
    ({"edges": np.array([[0, 2**63]], np.uint64)}, "found 9223372036854775808"),
    ({"edge_index": np.zeros((3, 2), int)}, "integers of shape (2, any)"),
    ({"edges": np.array([[0, 5]]), "num_nodes": np.array(3)}, "found node 5; 0..2"),
    ({"edges": np.array([[0, 1]]), "weights": np.array([np.nan])}, "no finite"),
    ({"edges": np.array([[0, 1]]), "weights": np.array([1e39])}, "no finite"),
    ({"edges": np.array([[0, 1]]), "weights": np.array([1j])}, "found complex128"),
    ({"edges": np.array([[0, 1]]), "weights": np.ones(2)}, "shape (1)"),
    ({"row": np.array([0]), "col": np.array([1, 2])}, "shape (2)"),
    ({"row": np.array([0]), "col": np.array([1]), "shape": np.array([2, 3])}, "found [2, 3]"),
    ({"format": np.array(b"bsr"), "data": np.ones(1)}, "format 'bsr'"),
    ({"indptr": np.array([0, 0], object), "indices": np.array([0])}, "Python objects"),
]


@pytest.mark.parametrize(("arrays", "part"), BAD_ARRAYS)
def test_faults_of_arrays(tmp_path, arrays, part):
    assert part in fault(save(tmp_path, **arrays))


class Touch:
    """Unpickling this makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


def test_pickles_are_not_executed(tmp_path):
    marker = str(tmp_path / "executed")
    array = np.empty(1, object)
    array[0] = Touch(marker)
    assert "Python objects" in fault(save(tmp_path, indptr=array, indices=array))
    assert "Python pickle" in fault(write(tmp_path, "p.npz", pickle.dumps(Touch(marker))))
    assert "holds no arrays" in fault(archive(tmp_path, {"archive/data.pkl": pickle.dumps(Touch(marker))}))
    assert "cannot be read" in fault(archive(tmp_path, {"indptr.npy": pickle.dumps(Touch(marker))}))
    assert not os.path.exists(marker)


def archive(folder, members, method=zipfile.ZIP_STORED):
    path = str(Path(folder) / "made.npz")
    with zipfile.ZipFile(path, "w", method) as made:
        for name, data in members.items():
            made.writestr(name, data)
    return path


def npy(shape, held=b"", dtype="<i8"):
    """A .npy file whose header states `shape` and which holds the bytes `held`."""
    file = io.BytesIO()
    header = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue() + held


def test_headers_that_lie_about_size(tmp_path):
    for shape in [(10**12,), (2**40, 2**40), (3,), (-1,)]:
        message = fault(archive(tmp_path, {"edges.npy": npy(shape, b"\0" * 16)}))
        assert "but it holds 16 bytes" in message
    assert "neither stored nor deflated" in fault(
        archive(tmp_path, {"edges.npy": npy((1, 2), b"\0" * 16)}, zipfile.ZIP_BZIP2)
    )


def test_directory_that_lies_about_size(tmp_path):
    path = archive(tmp_path, {"edges.npy": npy((1, 2), b"\0" * 16)}, zipfile.ZIP_DEFLATED)
    data = bytearray(Path(path).read_bytes())
    at = data.index(b"PK\x01\x02")
    data[at + 24 : at + 28] = (4_000_000_000).to_bytes(4, "little")
    assert "more than its packed bytes can hold" in fault(write(tmp_path, "lie.npz", bytes(data)))


def test_arrays_above_the_limit(tmp_path):
    path = str(tmp_path / "big.npz")
    np.savez_compressed(path, edges=np.zeros((100_000, 2), int))
    assert "at most 1000000" in fault(path, max_bytes=1_000_000)
    assert len(collect(open_edges(path))[0]) == 100_000


def test_faults_of_graph_sets(tmp_path):
    good = {"nodes": [2, 1], "nnz": [2, 0], "indptr": [0, 1, 2, 0, 0], "indices": [1, 0]}
    graphs, best = open_graph_set(save(tmp_path, **good))
    assert [(g.n, g.edges, g.name) for g in graphs] == [(2, 1, "g-0"), (1, 0, "g-1")] and best == [None, None]
    assert open_graph_set(save(tmp_path, **good, best_cover=[1, -1]))[1] == [1, None]
    for change, part in [
        ({"nodes": [2, 2]}, "lengths that agree"),
        ({"indices": [1, 2]}, "graph 0: found node 2"),
        ({"indices": [1, 1]}, "graph 0: symmetric rows"),
        ({"indices": [0, 0]}, "graph 0: symmetric rows"),
        ({"indptr": [0, 3, 2, 0, 0]}, "graph 0: offsets"),
        ({"best_cover": [1]}, "shape (1)"),
    ]:
        with pytest.raises(GraphError) as caught:
            open_graph_set(save(tmp_path, **(good | change)))
        assert part in str(caught.value)


# --- bytes at random


SEEDS = {
    "g.txt": b"# c\n1 2\n3 4\n5 6\n",
    "w.csv": b"source,target\n1,2,0.5\n3,4,1e3\n",
    "a.mtx": b"%%MatrixMarket matrix coordinate real symmetric\n% c\n3 3 2\n2 1 0.5\n3 1 -7\n",
    "d.col": b"c x\np edge 4 3\nn 1 5\ne 1 2\ne 2 3\ne 3 4\n",
    "p.gr": b"p td 4 3\n1 2\n2 3\n3 4\n",
    "m.graph": b"% c\n3 2 011 1\n4 2 1 3 1\n5 1 1\n6 1 1\n",
    "G5": b"3 2\n1 2 1\n2 3 -1\n",
}


def npz_bytes(**arrays):
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


SEEDS["e.npz"] = npz_bytes(edges=np.arange(20).reshape(10, 2), weights=np.ones(10))
SEEDS["c.npz"] = npz_bytes(indptr=np.array([0, 1, 2]), indices=np.array([1, 0]), shape=np.array([2, 2]))
SEEDS["g.txt.gz"] = gzip.compress(SEEDS["g.txt"], mtime=0)
SEEDS["g.txt.bz2"] = bz2.compress(SEEDS["g.txt"])
SEEDS["g.txt.xz"] = lzma.compress(SEEDS["g.txt"])


@st.composite
def damaged(draw):
    """(name, bytes) of a good file with bytes changed, cut, doubled or put in."""
    name = draw(st.sampled_from(list(SEEDS)))
    data = bytearray(SEEDS[name])
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(0, len(data) - 1)))
        kind = draw(st.sampled_from(["set", "insert", "delete", "cut", "double"]))
        letters = st.sampled_from(list(b"0123456789 \t\n\r,.-+eapnc%#\0\xff\x1b"))
        if kind == "set" and data:
            data[at] = draw(letters | st.integers(0, 255))
        elif kind == "insert":
            data[at:at] = bytes(draw(st.lists(letters, min_size=1, max_size=4)))
        elif kind == "delete":
            del data[at : at + draw(st.integers(1, 5))]
        elif kind == "cut":
            del data[at:]
        else:
            data += data[at:]
    return name, bytes(data)


@given(damaged() | st.tuples(st.sampled_from(list(SEEDS)), st.binary(max_size=200)))
@settings(max_examples=400, deadline=5000)
def test_damaged_files_raise_graph_errors_only(case):
    name, data = case
    with tempfile.TemporaryDirectory() as folder:
        path = write(folder, name, data)
        for chosen in ["auto", *READERS]:
            try:
                collect(open_edges(path, chosen))
            except GraphError as error:
                assert str(error).isascii() and str(error).isprintable()
        with pytest.raises(GraphError):
            open_graph_set(path)
