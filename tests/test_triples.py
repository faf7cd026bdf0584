"""N-Triples, tables of triples and labels, the npz layout: what is read, what is said of wrong files."""

import gzip

import numpy as np
import pytest
from data import data_dir, needs_data

from app.case.file import build
from app.errors import GraphError
from app.graphs.formats.source import Source
from app.graphs.triples import data
from app.graphs.triples.data import TEST, TRAIN, VALID, NodeLabels, Triples, check_labels, read_triples_npz
from app.graphs.triples.label_tables import read_label_tables
from app.graphs.triples.relational import nodes_by_layer, relational_graph
from app.graphs.triples.text import read_triple_text
from app.model.defaults import DEFAULTS
from app.model.fits import needs_of
from app.tasks import relational_plan

pytestmark = pytest.mark.mpi_skip
GOOD = b"<a> <p> <b> .\n"


@pytest.fixture
def written(tmp_path):
    """Write bytes to a file; returns its path."""

    def write(data, name="g.nt"):
        path = tmp_path / name
        path.write_bytes(data)
        return str(path)

    return write


def rows_of(triples):
    names = triples.node_names
    return [
        (names[s], triples.relation_names[r], names[o])
        for s, r, o in zip(triples.subject, triples.relation, triples.object)
    ]


# ---- N-Triples ------------------------------------------------------------------------------------------


def test_terms_of_every_kind(written):
    text = (
        b"# a comment\n\n<a> <p> _:x1.y .   # another\n"
        b'_:x1.y\t<q>\t"one \\"two\\" \\u0041"@en-GB .\r\n'
        b'<a><p>"1994"^^<http://www.w3.org/2001/XMLSchema#string>.\n'
        b'  <a> <p> "" .'
    )
    found = read_triple_text(written(text))
    assert rows_of(found) == [
        ("<a>", "<p>", "_:x1.y"),
        ("_:x1.y", "<q>", '"one "two" A"@en-GB'),
        ("<a>", "<p>", '"1994"^^<http://www.w3.org/2001/XMLSchema#string>'),
        ("<a>", "<p>", '""'),
    ]
    assert (found.nodes, found.relations, found.name) == (5, 2, "g")
    assert found.subject.dtype == found.relation.dtype == found.object.dtype == np.int32


def test_escaped_and_plain_spellings_are_one_node(written):
    text = '<caf\\u00e9> <p> <caf\u00e9> .\n"\\t\\U0001F600" <p> <a> .\n'
    path = written(text.replace('"\\t\\U0001F600" <p> <a>', '<a> <p> "\\t\\U0001F600"').encode())
    found = read_triple_text(path)
    assert found.node_names == ["<caf\u00e9>", "<a>", '"\t\U0001f600"']


def test_a_packed_file_and_pieces_give_the_same(written, monkeypatch):
    text = b"".join(b"<n%d> <p%d> <n%d> .\n" % (k, k % 3, 7 * k % 50) for k in range(500))
    whole = read_triple_text(written(text))
    monkeypatch.setattr("app.graphs.formats.source.PIECE_BYTES", 128)
    for path in (written(text), written(gzip.compress(text), "g.nt.gz")):
        found = read_triple_text(path)
        assert np.array_equal(found.subject, whole.subject) and np.array_equal(found.object, whole.object)
        assert found.node_names == whole.node_names


@pytest.mark.parametrize(
    "line",
    [
        b"<a> <p> <b>",
        b"<a> <p> .",
        b'"text" <p> <b> .',
        b"<a> _:p <b> .",
        b"<a b> <p> <c> .",
        b'<a> <p> "open .',
        b'<a> <p> "x"@ .',
        b'<a> <p> "bad \\q escape" .',
        b"<a> <p> <b> . <c>",
        b"<a> <p> <b\\u12> .",
        b"a p b .",
    ],
)
def test_a_malformed_line_is_named(written, line):
    with pytest.raises(GraphError) as caught:
        read_triple_text(written(GOOD + b"# two\n" + line + b"\n" + GOOD))
    message = str(caught.value)
    assert "g.nt:3: found '" in message and "would be right" in message and "\n" not in message


def test_an_empty_file_and_a_nul_byte_are_refused(written):
    with pytest.raises(GraphError, match="no edges in"):
        read_triple_text(written(b"# nothing\n"))
    with pytest.raises(GraphError, match=r"g.nt:2: found a NUL byte"):
        read_triple_text(written(GOOD + b"<a\0> <p> <b> .\n"))


# ---- tables of three columns, sets ------------------------------------------------------------------------


def test_a_table_of_names_between_tabs(written):
    found = read_triple_text(
        written(b"a b\tlives in\t/m/0x\r\n\n /m/0x\tlives in\ta b\n#1\tp\t<x>", "train.txt")
    )
    assert rows_of(found) == [
        ("a b", "lives in", "/m/0x"), ("/m/0x", "lives in", "a b"), ("#1", "p", "<x>")
    ]  # fmt: skip
    assert found.name == "train" and not len(found.sets)
    assert len(found.rows()) == len(found.rows(TRAIN)) == 3 and not len(found.rows(TEST))


@pytest.mark.parametrize("line", [b"a\tp", b"a\tp\tb\tc", b"a\t \tb", b"a p b"])
def test_a_malformed_row_is_named(written, line):
    with pytest.raises(GraphError, match=r"t.tsv:3: found '.*'; three columns .*would be right"):
        read_triple_text(written(b"a\tp\tb\n\n" + line + b"\n", "t.tsv"))


@pytest.mark.parametrize(
    ("text", "name", "line"),
    [(b"a\tp\tb\n", "g.nt", 1), (b"a p b\n", "g.txt", 1), (b"<a>\t<p>\t<b> .\nx\ty\tz\n", "g.txt", 2)],
)
def test_what_is_no_table_is_read_as_n_triples(written, text, name, line):
    with pytest.raises(GraphError, match=rf"{name}:{line}: found '.*' in N-Triples, or three columns"):
        read_triple_text(written(text, name))


def test_files_of_other_sets_go_on_with_the_numbers(written):
    path = written(b"a\tp\tb\nb\tq\ta\n", "train.txt")
    others = {VALID: written(b"b\tp\tc\n", "v.txt"), TEST: written(b"<a> <p> <b> .\n", "t.nt")}
    found = read_triple_text(path, others)
    assert rows_of(found)[2:] == [("b", "p", "c"), ("<a>", "<p>", "<b>")]
    assert found.sets.tolist() == [TRAIN, TRAIN, VALID, TEST] and found.name == "train"
    assert found.rows(TRAIN).tolist() == [[0, 0, 1], [1, 1, 0]] and found.rows(VALID).tolist() == [[1, 0, 2]]


def test_sets_of_an_archive(tmp_path):
    found, _ = read_triples_npz(save(tmp_path, test_triples=np.array([[2, 1, 0]])))
    assert found.sets.tolist() == [TRAIN, TRAIN, TEST] and found.rows(TEST).tolist() == [[2, 1, 0]]
    with pytest.raises(GraphError, match=r"array 'val_triples': found number 3; 0..2 would be right"):
        read_triples_npz(save(tmp_path, val_triples=np.array([[3, 1, 0]])))


# ---- label tables ---------------------------------------------------------------------------------------


def tables(written, train, test):
    triples = read_triple_text(written(b"<x> <p> <y> .\n<z> <p> <w> .\n"))
    return read_label_tables(written(train, "train.tsv"), written(test, "test.tsv"), triples)


def test_columns_are_found_by_name(written):
    found = tables(
        written, b"person\tid\tlabel_group\nx\t1.0\tb\nz\t2.0\ta\n", b"id\tlabel\tnode\n3\tb\ty\n\n"
    )
    assert found.class_names == ["a", "b"] and found.classes == 2
    assert found.train_idx.tolist() == [0, 2] and found.train_label.tolist() == [1, 0]
    assert found.test_idx.tolist() == [1] and found.test_label.tolist() == [1]
    assert found.nodes.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("train", "message"),
    [
        (b"person\tid\nx\t1\n", "train.tsv:1: found columns 'person', 'id'"),
        (b"person\tlabel\nx\ta\textra\n", "train.tsv:2: found 3 columns; 2"),
        (b"person\tlabel\nnobody\ta\n", "train.tsv:2: found node 'nobody'"),
        (b"person\tlabel\n", "train.tsv: holds no labels"),
        (b"person\tlabel\nx\ta\nx\tb\n", "train.tsv:3: found node 'x', which has a label in line 2 of "),
        (
            b"person\tlabel\nx\ta\ny\tb\n",
            "test.tsv:2: found node 'y', which has a label in line 3 of",
        ),
        (b"person\tlabel\nx\t\n", "train.tsv:2: found no label of node 'x'"),
    ],
)
def test_a_wrong_table_is_named(written, train, message):
    with pytest.raises(GraphError, match=message):
        tables(written, train, b"person\tlabel\ny\ta\n")


def test_test_nodes_may_lack_their_label(written):
    found = tables(written, b"person\tlabel\nx\tb\nz\ta\n", b"node\tlabel\ny\t\nw\tb\n")
    assert (found.class_names, found.test_label.tolist()) == (["a", "b"], [-1, 1])


def test_a_missing_table_says_which_key_names_one(tmp_path, written):
    triples = read_triple_text(written(b"<x> <p> <y> .\n"))
    table, none = written(b"node\tlabel\nx\ta\n", "t.tsv"), str(tmp_path / "none.tsv")
    for paths, key in (((none, table), "rgcn.train_labels"), ((table, none), "rgcn.test_labels")):
        with pytest.raises(
            GraphError, match=f"none.tsv: no such file; a table of labelled nodes, or {key} naming"
        ):
            read_label_tables(*paths, triples)


# ---- npz ------------------------------------------------------------------------------------------------


def arrays(**changes):
    good = {
        "triples": np.array([[0, 0, 1], [1, 1, 2]], dtype=np.int32),
        "num_nodes": np.array([3]),
        "num_relations": np.array(2),
        "train_idx": np.array([0]),
        "train_label": np.array([1]),
        "test_idx": np.array([2]),
        "test_label": np.array([0]),
        "relation_names": np.array(["p", "q"]),
    }
    return {name: array for name, array in {**good, **changes}.items() if array is not None}


def save(tmp_path, **changes):
    path = tmp_path / "t.npz"
    np.savez(path, **arrays(**changes))
    return str(path)


def test_npz_round_trip(tmp_path):
    triples, labels = read_triples_npz(save(tmp_path))
    assert triples.relation.tolist() == [0, 1] and triples.relation_names == ["p", "q"]
    assert labels.classes == 2 and labels.test_idx.tolist() == [2]
    assert read_triples_npz(save(tmp_path, train_idx=None))[1] is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"triples": np.zeros((2, 2), dtype=np.int32)}, "integers of shape"),
        ({"triples": np.array([[0, 0, 3]])}, "found number 3; 0..2 would be right"),
        ({"triples": np.array([[0, -1, 2]])}, "found -1"),
        ({"num_nodes": np.array([0])}, "found 0; 1.."),
        ({"test_idx": np.array([0])}, "node 0 is labelled twice"),
        ({"test_label": np.array([0, 1])}, "integers of shape"),
        ({"num_classes": np.array([1])}, "found number 1; 0..0 would be right"),
        ({"relation_names": np.array(["p"])}, "2 texts would be right"),
        ({"triples": np.array([[None]], dtype=object)}, "Python objects"),
    ],
)
def test_wrong_arrays_are_named(tmp_path, changes, message):
    with pytest.raises(GraphError, match=message):
        read_triples_npz(save(tmp_path, **changes))


def test_an_archive_is_read_in_pieces(tmp_path, monkeypatch):
    rows = np.random.default_rng(1).integers(0, 5, (23, 3))
    labels = dict.fromkeys(("train_idx", "train_label"), np.array([0]))
    none = dict.fromkeys(("test_idx", "test_label"), np.array([]))
    for name, kind in (("a", np.int64), ("b", np.uint8)):
        counts = {"num_nodes": 5, "num_relations": 5}
        np.savez(tmp_path / name, triples=rows.astype(kind), val_triples=rows[:3], **counts, **labels, **none)
        for piece in (1, 4, 1000):
            monkeypatch.setattr(data, "PIECE", piece)
            found, _ = read_triples_npz(str(tmp_path / f"{name}.npz"))
            assert np.array_equal(found.rows(TRAIN), rows) and np.array_equal(found.rows(VALID), rows[:3])
            assert found.subject.dtype == np.int32
    assert data.stated_triples(str(tmp_path / "a.npz")) == 23
    bad = rows.copy()
    bad[21, 1] = 7
    np.savez(tmp_path / "c", triples=bad, num_nodes=5, num_relations=5)
    monkeypatch.setattr(data, "PIECE", 4)
    with pytest.raises(GraphError, match=r"array 'triples': found number 7; 0\.\.4 would be right"):
        read_triples_npz(str(tmp_path / "c.npz"))


def test_too_many_triples_are_refused_unread(tmp_path, monkeypatch):
    """By the header of an archive or the counts of a generator, in a dry run, too."""
    np.savez(tmp_path / "g", triples=np.zeros((1000, 3), np.uint8), num_nodes=1, num_relations=1)
    keys = {"run.task": "classify", "gnn.model": "rgcn"}
    path = {"graph.path": str(tmp_path / "g.npz")}
    drawn = {"graph.generator": "ba", "graph.nodes": 100, "graph.d": 10}

    def refused(case):
        raise AssertionError("it was read")

    monkeypatch.setattr(relational_plan, "read_case_triples", refused)
    monkeypatch.setattr(relational_plan, "memory_room", lambda: (1 << 20, "the machine"))
    for settings in (path, drawn):
        case = build(keys | settings)
        (need,) = needs_of(case, 1, None)
        assert need.certain == DEFAULTS.base_bytes + 36 * 1000 < need.most
        lines, words, needed = relational_plan.relational_plan(case, 1)
        assert words == lines[-1] and needed == need.certain and "a rank at least: base" in words
    (tmp_path / "g.txt").write_text("a\tb\tc\n")
    assert not list(needs_of(build(keys | {"graph.path": str(tmp_path / "g.txt")}), 1, None))


def test_there_must_be_something_to_train_with():
    none = np.zeros(0, dtype=np.int32)
    with pytest.raises(GraphError, match="no node to train with"):
        check_labels(NodeLabels(1, none, none, none, none), Source("g"))


# ---- graphs of triples ----------------------------------------------------------------------------------


def listed(nodes, relations, *rows):
    s, r, o = np.array(rows, dtype=np.int32).T
    return Triples("t", nodes, relations, s, r, o)


def edges_of(graph):
    return list(zip(graph.target.tolist(), graph.relation.tolist(), graph.source.tolist()))


def test_edges_with_inverses_sorted_and_distinct():
    graph = relational_graph(listed(3, 2, (0, 1, 2), (0, 1, 2), (1, 0, 0), (2, 1, 0)))
    assert graph.relations == 4
    assert edges_of(graph) == [(0, 0, 1), (0, 1, 2), (0, 3, 2), (1, 2, 0), (2, 1, 0), (2, 3, 0)]
    assert edges_of(relational_graph(listed(3, 2, (0, 1, 2)), inverse=False)) == [(2, 1, 0)]


def test_relations_with_few_edges_are_left_out():
    triples = listed(4, 3, (0, 0, 1), (0, 1, 1), (1, 1, 2), (0, 2, 3), (1, 2, 3), (1, 2, 3))
    graph = relational_graph(triples, inverse=False, min_edges=2)
    assert graph.relations == 2
    assert edges_of(graph) == [(1, 0, 0), (2, 0, 1), (3, 1, 0), (3, 1, 1)]
    with pytest.raises(GraphError, match="no relation has 9 edges"):
        relational_graph(triples, min_edges=9)


def test_nodes_by_layer_are_those_within_hops():
    draws = np.random.default_rng(3)
    triples = listed(
        60, 2, *zip(draws.integers(0, 60, 70), draws.integers(0, 2, 70), draws.integers(0, 60, 70))
    )
    graph = relational_graph(triples)
    near = np.eye(60, dtype=int)
    near[graph.target, graph.source] = 1
    wanted = np.array([5, 11])
    found = nodes_by_layer(graph, wanted, 3, prune=True)
    reach = np.zeros(60, dtype=int)
    reach[wanted] = 1
    for nodes in reversed(found):
        assert nodes.tolist() == np.flatnonzero(reach).tolist()
        reach = ((reach @ near) > 0).astype(int)
    assert [len(nodes) for nodes in nodes_by_layer(graph, wanted, 2, prune=False)] == [60] * 3


@needs_data
def test_the_text_of_aifb_is_its_npz():
    folder = data_dir() / "rgcn"
    triples, labels = read_triples_npz(str(folder / "aifb.npz"))
    text = read_triple_text(str(folder / "aifb" / "aifb_stripped.nt.gz"))
    assert (text.nodes, text.relations, len(text)) == (8285, 45, 29043)
    # The label relations are gone: no edge of "employs" or "affiliation" is left.
    assert not [name for name in text.relation_names if "employs" in name or "affiliation" in name]
    assert sorted(text.relation_names) == sorted(triples.relation_names)
    as_npz = np.array([triples.relation_names.index(name) for name in text.relation_names])
    assert np.array_equal(np.bincount(as_npz[text.relation]), np.bincount(triples.relation))
    read = read_label_tables(
        str(folder / "aifb" / "trainingSet.tsv"), str(folder / "aifb" / "testSet.tsv"), text
    )
    assert read.class_names == labels.class_names
    assert read.train_label.tolist() == labels.train_label.tolist()
    assert read.test_label.tolist() == labels.test_label.tolist()
    degrees = [np.bincount(np.concatenate([t.subject, t.object])) for t in (text, triples)]
    assert degrees[0][read.train_idx].tolist() == degrees[1][labels.train_idx].tolist()
