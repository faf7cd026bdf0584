"""Node ids that are names: read, numbered, kept, written and read back, the same on any number of ranks."""

import gzip
import sys
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jobs import ROOT, mpirun, run_job, split_over
from mpi4py import MPI
from test_loading import bits, load_kept, write

import app
from app.case.config import Case
from app.case.gnn import GnnCase
from app.case.graph import GraphCase
from app.comm.group import Group
from app.commands.convert import convert
from app.device import HostDevice
from app.errors import GraphError
from app.graphs.formats.readers import open_edges
from app.graphs.formats.source import Source
from app.graphs.formats.writers import write_graph
from app.graphs.graph import Graph
from app.graphs.ids import (
    LONGEST,
    between_names,
    blank_between,
    escaped,
    ids_of_names,
    name_array,
    plain_ids,
    quoted,
)
from app.graphs.nodes import keyed as keyed_text
from app.graphs.nodes.data import NodeData
from app.graphs.nodes.keyed import Nodes, keyed
from app.graphs.nodes.text import has_number, is_label, is_split, text_features, text_labels, text_splits
from app.graphs.whole import whole_graph
from app.partition.assemble import gather_whole
from app.partition.generated import with_shared_blocks
from app.partition.load import load_graphs
from app.partition.nodes import load_node_data
from app.search.solution_text import nodes_text, order_text, read_nodes, read_order, read_sides, sides_text
from app.tasks.levels.nodes import predictions_text

FILES = {
    "blanks.txt": "TP53 MDM2\nMDM2  ATM\n# a comment\n\nATM TP53\nÉlan ATM\n10 9\n",
    "tabs.tsv": "New York\tBoston\nBoston\tNew York\nBoston\tParis, France\n",
    "commas.csv": 'source,target,weight\na,b,1.5\n"c, d",a,2\n"say ""hi""",b,-3\na , c c,4\n',
}


@pytest.fixture
def device():
    """Nothing here leaves the host."""
    return HostDevice()


def loaded(group, path, **table):
    return load_graphs(group, GraphCase(path=path, ids="names", **table), "x", Case())[0]


def edges_of(graph):
    """The edges of a whole graph by name, with weights."""
    ids, rows = plain_ids(graph.ids), graph.row_of()
    weights = np.ones(len(rows)) if graph.weights is None else graph.weights
    return {frozenset((ids[i], ids[j])): float(w) for i, j, w in zip(rows, graph.indices, weights)}


@pytest.mark.mpi_skip
@pytest.mark.parametrize(
    ("name", "edges"),
    [
        ("blanks.txt", {"TP53 MDM2": 1, "MDM2 ATM": 1, "ATM TP53": 1, "Élan ATM": 1, "10 9": 1}),
        ("tabs.tsv", {"New York/Boston": 1, "Boston/Paris, France": 1}),
        ("commas.csv", {"a/b": 1.5, "c, d/a": 2, 'say "hi"/b': -3, "a/c c": 4}),
    ],
)
def test_names_of_every_form(tmp_path, name, edges):
    (tmp_path / name).write_text(FILES[name], encoding="utf-8")
    stream = open_edges(str(tmp_path / name), ids="names")
    graph, _ = whole_graph(stream)
    assert plain_ids(graph.ids) == sorted(plain_ids(graph.ids), key=str.encode)
    found = {frozenset(key.split("/") if "/" in key else key.split()): w for key, w in edges.items()}
    assert edges_of(graph) == found
    assert len(stream.warnings) == (name == "commas.csv")


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("order", ["natural", "random"])
def test_the_same_rows_on_any_number_of_ranks(group, solo, shared_path, name, order):
    path = write(group, shared_path / name, FILES[name])
    item = loaded(group, path, order=order)
    whole = gather_whole(group, item.graph, item.rows)
    alone = loaded(solo, path, order=order)
    assert bits(whole) == bits(gather_whole(solo, alone.graph, alone.rows))
    if order == "natural":
        assert bits(whole)[1:-1] == bits(whole_graph(open_edges(path, ids="names"))[0])[1:-1]


@pytest.mark.parametrize("name", FILES)
def test_a_kept_graph_has_its_names(group, shared_path, name):
    path, folder = write(group, shared_path / name, FILES[name]), shared_path / "kept"
    first, again = (load_kept(group, path, folder, ids="names") for _ in range(2))
    assert (first.source, again.source) == ("file", "cache")
    assert bits(again.graph) == bits(first.graph) and again.warnings == first.warnings


def test_numbers_read_as_names_are_another_kept_graph(group, shared_path):
    path, folder = write(group, shared_path / "g.txt", "10 9\n9 8\n"), shared_path / "kept"
    assert load_kept(group, path, folder).graph.ids.dtype == np.int64
    other = load_kept(group, path, folder, ids="names")
    assert other.source == "file"
    assert plain_ids(gather_whole(group, other.graph, other.rows).ids) == ["10", "8", "9"]


def test_names_move_with_their_rows(group, shared_path):
    """Beside a graph of numbers, to cuts that both share."""
    names = loaded(group, write(group, shared_path / "g.txt", FILES["blanks.txt"]))
    numbers = load_graphs(
        group, GraphCase(path=write(group, shared_path / "n.txt", "5 9\n9 77\n")), "x", Case()
    )
    shared = with_shared_blocks(group, [names, *numbers], largest=100)
    for before, after in zip((names, *numbers), shared):
        moved = gather_whole(group, after.graph, after.rows)
        assert bits(moved) == bits(gather_whole(group, before.graph, before.rows))


LONG = "x" * (LONGEST + 1)
RULES = "1 to 255 bytes of UTF-8, neither # nor % first"
WRONG = {
    "three": ("a b\nc d e\n", ":2: found 3 fields where 2 are expected in 'c d e'; two names ("),
    "one": ("a b\nc\n", ":2: found 1 field where 2 are expected in 'c'"),
    "empty": ("a,b\n,c\n", f":2: found an empty name in ',c'; two names ({RULES}), separated by a comma, wo"),
    "long": (f"a b\na {LONG}\n", ":2: found a name of 256 bytes in 'a xxx"),
    "mark": ("a b\na #c\n", ":2: found a name that begins with # in 'a #c'"),
    "quoted mark": ('a,b\n"%c",d\n', ":2: found a name that begins with % in"),
    "weight": ("a b 1\nc d x\n", ":2: found a weight that is no finite number in 'c d x'"),
    "open quote": ('a,b\n"c,d\n', ":2: unexpected end of data in '\"c,d'; names in double quotes"),
    "control": ("a b\nc \x07d\n", ":2: found the control character '\\x07'; text without such would be rig"),
    "line separator": ("a b\n\nc \u2028d\n", ":3: found the control character '\\u2028'"),
    "latin": (b"a b\nc d\n\xe9 f\n", ":3: found bytes that are no UTF-8; text in UTF-8 would be right"),
    "latin first": (b"\xe9 f\n", ":1: found bytes that are no UTF-8; text in UTF-8 would be right"),
    "nothing": ("# a b\n\n", "no edges in"),
    "only a title": ("from to\n", "no edges in"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_name_is_refused_in_a_line(group, shared_path, name):
    text, said = WRONG[name]
    path = write(group, shared_path / "g.txt", text)
    with pytest.raises(GraphError) as caught:
        loaded(group, path)
    assert said in str(caught.value) and str(caught.value).isprintable() and str(caught.value).isascii()


@pytest.mark.mpi_skip
def test_a_file_of_numbers_says_how_names_are_read(tmp_path):
    for text, said in (("1 2\n3 x\n", ":2: found a node id that is no int"), ("a b\nc d\n", ":2: found a ")):
        (tmp_path / "g.txt").write_text(text)
        with pytest.raises(
            GraphError, match=r'would be right \(graph.ids = "names" would read names\)$'
        ) as e:
            list(open_edges(str(tmp_path / "g.txt")).chunks())
        assert said in str(e.value)
    (tmp_path / "g.mtx").write_text("%%MatrixMarket matrix coordinate pattern symmetric\n2 2 1\n2 1\n")
    with pytest.raises(GraphError, match="found the format matrix_market, whose nodes are numbers; an edge"):
        open_edges(str(tmp_path / "g.mtx"), ids="names")


NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Zl", "Zp"]), min_size=1, max_size=8)
NAMES = NAMES.map(lambda text: text.strip(" ")).filter(
    lambda text: text and text[0] not in "#%" and "\ufeff" not in text
)


@pytest.mark.mpi_skip
@settings(max_examples=60, deadline=None)
@given(st.sets(NAMES, min_size=2, max_size=6), st.booleans(), st.sampled_from(["edges", "csv"]))
def test_what_is_written_reads_back(tmp_path_factory, names, weighted, format):
    ids = name_array(sorted(name.encode() for name in names))
    n = len(ids)
    indptr = np.concatenate([[0], np.cumsum([1, *[2] * (n - 2), 1])])
    indices = np.concatenate([[1], *([i - 1, i + 1] for i in range(1, n - 1)), [n - 2]]).astype(np.int32)
    weights = np.full(len(indices), 2.5, np.float32) if weighted else None
    graph = Graph("g", n, 0, n, indptr, indices, n - 1, weights, ids)
    path = tmp_path_factory.mktemp("names") / "g.txt"
    with open(path, "wb") as file:
        write_graph(file, graph, format)
    assert edges_of(whole_graph(open_edges(str(path), "edges", ids="names"))[0]) == edges_of(graph)
    chosen = np.arange(n) % 2 == 0
    for text, read, wanted in (
        (nodes_text(chosen, ids), read_nodes, chosen),
        (sides_text(chosen, ids), read_sides, chosen),
        (order_text(np.arange(n)[::-1], ids), read_order, np.arange(n)[::-1]),
    ):
        path.write_text(text, encoding="utf-8")
        assert np.array_equal(read(str(path), ids), wanted)


@pytest.mark.mpi_skip
def test_names_may_begin_with_what_other_languages_call_a_blank(tmp_path):
    ids, path = name_array(["\u00a0".encode(), "\u00a0#h".encode(), b"a"]), tmp_path / "s.txt"
    path.write_text("\u00a0\n\n\u00a0#h\n# a\n")
    assert read_nodes(str(path), ids).tolist() == [True, True, False]


@pytest.mark.mpi_skip
@pytest.mark.parametrize("name", ["a\x00", "\ud800", 7])
def test_what_no_file_could_name_is_refused(name):
    with pytest.raises(GraphError, match=r"inside: found .* would be right"):
        ids_of_names([name], "inside")


@pytest.mark.mpi_skip
def test_wrong_solutions_are_named(tmp_path):
    ids, path = name_array([b"New York", b"a"]), tmp_path / "s.txt"
    for text, read, said in (
        ("b\n", read_nodes, ":1: node b is not in the graph"),
        ("a\na\n", read_nodes, ":2: node a is named twice"),
        ("New York 2\n", read_sides, ":1: found 'New York 2'; right is each node once, with side 0 or 1"),
        ("a 1\n", read_sides, "1 nodes are missing, the first is New York"),
        ("a\n", read_sides, ":1: found 'a'; right is a node id and its value per line"),
    ):
        path.write_text(text)
        with pytest.raises(GraphError) as caught:
            read(str(path), ids)
        assert said in str(caught.value)


@pytest.mark.mpi_skip
def test_convert_speaks_names(tmp_path):
    source, out, ids = (str(tmp_path / name) for name in ("g.csv", "g.mtx", "ids"))
    (tmp_path / "g.csv").write_text(FILES["commas.csv"])
    printed = convert([source, out, "--names", "--ids", ids])
    assert "in ascending order of their ids; --ids FILE writes the ids" in printed
    assert (tmp_path / "ids").read_text() == 'a\nb\nc c\nc, d\nsay "hi"\n'
    again = str(tmp_path / "again.tsv")
    convert([source, again, "--names"])
    graphs = [whole_graph(open_edges(each, ids="names"))[0] for each in (source, again)]
    assert edges_of(graphs[0]) == edges_of(graphs[1])


def test_python_answers_by_name(group, shared_path):
    path = write(group, shared_path / "g.tsv", FILES["blanks.txt"])
    weights = write(group, shared_path / "w.txt", "TP53 1\nMDM2 2\nATM 4\nÉlan 1\n10,1\n9\t3\n")
    set_to = {"graph.ids": "names"}
    weighted = {**set_to, "graph.node_weights": weights}
    assert app.solve(path, settings=set_to, outside=["9"]).nodes == ["10", "ATM", "TP53"]
    answer = app.solve(path, settings=weighted, inside=["Élan"])
    assert (answer.nodes, answer.objective) == (["10", "MDM2", "TP53", "Élan"], 5)
    alone = app.solve(path, settings={**weighted, "search.solver": "policy"})
    assert all(isinstance(node, str) for node in alone.nodes) and len(alone.nodes) > 2
    with pytest.raises(GraphError, match="inside, outside: node nobody is not in the graph"):
        app.solve(path, settings=set_to, inside=["nobody"])
    with pytest.raises(GraphError, match="outside: found 9; names of nodes would be right"):
        app.solve(path, settings=set_to, outside=[9])
    with pytest.raises(GraphError, match="node '9' is in both"):
        app.solve(path, settings=set_to, outside=["9"], inside=["9", "ATM"])


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("bob 2", ":3: found node bob; a node of g would be right"),
        ("TP53 2", ":3: found node TP53 again, after line 1"),
        ("TP53", ":3: found 1 fields in 'TP53'"),
        ("# no more", "found no weight of node 10; a line for each of the 6 nodes of g"),
    ],
)
def test_wrong_node_weights_are_named(group, shared_path, line, said):
    path = write(group, shared_path / "g.txt", FILES["blanks.txt"])
    weights = write(group, shared_path / "w.txt", f"TP53 1\n\u00c9lan 1\n{line}\n")
    with pytest.raises(GraphError) as caught:
        loaded(group, path, node_weights=weights)
    assert said in str(caught.value)


@pytest.mark.mpi_skip
@pytest.mark.parametrize(
    ("case", "solution", "said"),
    [
        ("mvc", "ATM\n10\n", "the cover leaves edge MDM2-TP53 uncovered"),
        ("mis", "ATM\nÉlan\n", "holds both ends of edge ATM-\\xc9lan"),
        ("mds", "ATM\n", "the dominating set leaves node 10 undominated"),
        ("clique", "ATM\nTP53\nÉlan\n", "holds nodes TP53 and \\xc9lan, which no edge joins"),
    ],
)
def test_what_is_wrong_with_a_solution_is_said_by_name(tmp_path, case, solution, said):
    (tmp_path / "g.txt").write_text(FILES["blanks.txt"], encoding="utf-8")
    (tmp_path / "s.txt").write_text(solution, encoding="utf-8")
    keys = [f"graph.path={tmp_path / 'g.txt'}", "graph.ids=names", "--check", tmp_path / "s.txt"]
    code, printed = run_job([sys.executable, "run.py", f"inputs/{case}.toml", *keys], cwd=ROOT)
    assert code == 2 and said in printed, printed


@pytest.mark.mpi_skip
def test_runs_write_check_start_and_resume_by_name(tmp_path):
    edges = "".join(f"node {i}\tnode {(7 * i + 3) % 60}\t{i % 5 + 1}\n" for i in range(60) if i != 40)
    (tmp_path / "g.tsv").write_text(edges + "node 1\tÅ, b\t2\n")
    common = ["graph.path=" + str(tmp_path / "g.tsv"), "graph.ids=names", "output.plots=false"]
    written = []
    for ranks in (1, 2, 3):
        out = tmp_path / f"out{ranks}"
        command = [
            *mpirun(ranks),
            sys.executable,
            "run.py",
            "inputs/maxcut.toml",
            *common,
            "search.steps=2000",
        ]
        code, printed = run_job([*command, "--out", out], cwd=ROOT)
        assert code == 0, printed
        written.append((out / "solution/g.txt").read_text(encoding="utf-8"))
    assert written[0] == written[1] == written[2] and "node 1\t" in written[0]
    solution = f"search.start={tmp_path / 'out1/solution/g.txt'}"
    command = [sys.executable, "run.py", "inputs/maxcut.toml", *common]
    for more in (["--check", tmp_path / "out1/solution/g.txt"], [solution, "--out", tmp_path / "again"], [
        "--resume", "--out", tmp_path / "again", solution
    ], ["--dry-run"]):  # fmt: skip
        code, printed = run_job([*command, *more], cwd=ROOT)
        assert code == 0, printed


@pytest.mark.mpi_skip
@pytest.mark.parametrize("between", [" ", "\t", ","])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("piece", [1 << 22, 300])
def test_plain_lines_are_what_they_are_one_by_one(tmp_path, monkeypatch, between, weighted, piece):
    monkeypatch.setattr("app.graphs.formats.source.PIECE_BYTES", piece)
    third = [f"{between}{i % 7 - 2.5}" if weighted else "" for i in range(200)]
    lines = [f"n{i % 17}{between}{chr(200 + i % 31)}x{i % 5}{third[i]}\n" for i in range(200)]
    (tmp_path / "g.txt").write_text("".join(lines))
    (tmp_path / "odd.txt").write_text("".join(lines) + f" {lines[0]}\n")  # padded, and a blank line
    plain, odd = (
        whole_graph(open_edges(str(tmp_path / name), ids="names"))[0] for name in ("g.txt", "odd.txt")
    )
    monkeypatch.setattr("app.graphs.formats.name_table.PARSE_NAMES", None)  # a dict of names
    listed = whole_graph(open_edges(str(tmp_path / "g.txt"), ids="names"))[0]
    monkeypatch.setattr("app.graphs.formats.named_edges._plain_rows", lambda *_: None)
    slow = whole_graph(open_edges(str(tmp_path / "g.txt"), ids="names"))[0]
    assert bits(plain) == bits(listed) == bits(slow) and bits(odd)[1:] == bits(slow)[1:]


# ---- features, labels and splits by id ---------------------------------------------------------------------


@pytest.mark.mpi_skip
@pytest.mark.parametrize(
    "text",
    [
        "gene1 gene2 0.9\ngene2 gene3 0.8\n",
        "source,target,1\na,b,2\n",
        "u v\nv w\n",
        "node_1\tnode_2\nnode_2\ta b\n",
        'id1,id2\nx, "id1" \n',
    ],
)
def test_what_occurs_again_or_has_a_number_is_no_title(tmp_path, text):
    (tmp_path / "g.csv").write_text(text)
    stream = open_edges(str(tmp_path / "g.csv"), ids="names")
    assert sum(len(u) for u, _, _ in stream.chunks()) == 2
    assert not stream.warnings


@pytest.mark.mpi_skip
@pytest.mark.parametrize(
    "title",
    ["id_1,id_2", "Node_A,Node_B", "u,v", "From,To", "gene_a,gene_b", "fromNodeId,toNodeId", "citing,cited"],
)
def test_titles_of_edge_lists_are_known(tmp_path, title):
    (tmp_path / "g.csv").write_text(f"{title}\na,b\nb,c\n")
    stream = open_edges(str(tmp_path / "g.csv"), ids="names")
    assert sum(len(u) for u, _, _ in stream.chunks()) == 2
    assert stream.warnings == [f"{tmp_path / 'g.csv'}:1: skipped the first line '{title}'"]


@pytest.mark.mpi_skip
@pytest.mark.parametrize(
    ("first", "others", "warned"),
    [("who,whom", 9, True), ("who,whom", 3, False), ("who,n4", 9, False), ("# x\nwho,whom", 9, False)],
)
def test_a_title_that_nobody_knows_is_warned_of(tmp_path, first, others, warned):
    (tmp_path / "g.csv").write_text(f"{first}\n" + "".join(f"n{i},n{i + 1}\n" for i in range(others)))
    stream = open_edges(str(tmp_path / "g.csv"), ids="names")
    assert sum(len(u) for u, _, _ in stream.chunks()) == others + 1
    said = "neither name of the first edge occurs again; a title (names of columns) begins with #"
    assert stream.warnings == ([f"{tmp_path / 'g.csv'}: 'who whom': {said}"] if warned else [])


ROWS = {
    "é 1": 3,
    "b,c": 0,
    "a": 5,
    "d": 1,
}  # the class of each node; its features are 10 times that and one more
NODE_EDGES = "a\tb,c\nb,c\td\nd\té 1\n"
SETS = {"é 1": "train", "b,c": "val", "a": "none", "d": "train"}


def node_files(group, folder, rows):
    """Files of three kinds, each in another order of the lines."""
    order = [[*rows], [*rows][::-1], sorted(rows)]
    kinds = [
        ("x.csv", lambda node: f'"{node}",{10 * rows[node]},{10 * rows[node] + 1}'),
        ("y.txt", lambda node: f"{node}\t{rows[node]}"),
        ("s.txt.gz", lambda node: f"{node}\t{SETS.get(node, 'test')}"),
    ]
    for (name, line), nodes in zip(kinds, order):
        text = "# a comment\n\n" + "".join(f"{line(node)}\n" for node in nodes)
        write(group, folder / name, gzip.compress(text.encode()) if name.endswith(".gz") else text)
    keys = ("features", "labels", "splits")
    return {key: str(folder / name) for key, (name, _) in zip(keys, kinds)} | {"node_data_by": "id"}


@pytest.mark.parametrize("order", ["natural", "random"])
@pytest.mark.parametrize("ids", ["names", "numbers"])
def test_node_data_by_id(group, shared_path, order, ids):
    rows = ROWS if ids == "names" else {str(7 * i + 1): i % 5 for i in range(23)}
    edges = NODE_EDGES if ids == "names" else "".join(f"{7 * i + 1} {7 * i + 8}\n" for i in range(22))
    path = write(group, shared_path / "g.txt", edges)
    table = GraphCase(path=path, ids=ids, order=order, **node_files(group, shared_path, rows))
    item = load_graphs(group, table, "x", Case())[0]
    item = replace(item, paths=(path,))
    data = load_node_data(group, table, item, Case())
    own = item.graph.hi - item.graph.lo
    for at, node in enumerate(plain_ids(item.graph.node_ids(np.arange(item.graph.lo, item.graph.hi)))):
        kind = rows[str(node)]
        assert data.features[at].tolist() == [10 * kind, 10 * kind + 1]
        assert data.class_ids[data.labels[at]] == kind
        assert data.train[at] == (SETS.get(node) == "train") and data.val[at] == (SETS.get(node) == "val")
    assert not data.features[own:].any()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("nobody\t1", ":3: found node nobody; a node of g would be right"),
        ("a\t1", ":3: found node a again, after line 2; one line for each node would be right"),
        (
            "d",
            ":3: found nothing after the id in 'd'; a node id and what is known of the node would be right",
        ),
        ("d\t# 1", ":3: found nothing after the id in 'd\\\\t# 1'"),
        ('"d", ', ":3: found nothing after the id in '"),
        ("d\x01\t1", ":3: found the control character '\\\\x01'"),
    ],
)
@pytest.mark.parametrize("key", ["features", "labels", "splits"])
def test_wrong_node_data_by_id_are_named(group, shared_path, key, line, said):
    path = write(group, shared_path / "g.txt", NODE_EDGES)
    file = write(group, shared_path / "x.txt", f"é 1\t2\na\t3\n{line}\n")
    table = GraphCase(path=path, ids="names", node_data_by="id", **{key: file})
    item = replace(load_graphs(group, table, "x", Case())[0], paths=(path,))
    with pytest.raises(GraphError) as caught:
        load_node_data(group, table, item, Case())
    assert said.replace("\\\\", "\\") in str(caught.value)


def read_by_id(group, folder, ids="names", edges=NODE_EDGES, goal="classes", **files):
    """Node data from texts by id, and which row each node has on this rank."""
    path = write(group, folder / "g.txt", edges)
    paths = {key: write(group, folder / f"{key}.txt", text) for key, text in files.items()}
    table = GraphCase(path=path, ids=ids, node_data_by="id", **paths)
    item = replace(load_graphs(group, table, "x", Case())[0], paths=(path,))
    data = load_node_data(group, table, item, Case(gnn=GnnCase(goal=goal)))
    own = plain_ids(item.graph.node_ids(np.arange(item.graph.lo, item.graph.hi)))
    return data, {node: at for at, node in enumerate(own)}


@pytest.mark.parametrize("line", ["d\t1", "d\tx"])
def test_features_have_a_line_for_each_node(group, shared_path, line):
    with pytest.raises(GraphError, match="found no line of node b,c; one for each of the 4 nodes of g would"):
        read_by_id(group, shared_path, features=f"é 1\t2\na\t3\n{line}\n")


@pytest.mark.parametrize("goal", ["classes", "labels", "values"])
def test_nodes_without_a_line_have_no_label_and_are_in_no_set(group, shared_path, goal):
    width = 2 if goal == "labels" else 1
    labels = "".join(f"{node}\t{' '.join(['1'] * width)}\n" for node in ("é 1", "a"))
    data, rows = read_by_id(
        group, shared_path, goal=goal.replace("labels", "classes"), labels=labels,
        splits="a\ttrain\né 1\ttest\nd\tnone\n",
    )  # fmt: skip
    for node, at in rows.items():
        assert data.labelled[at] == (node in ("é 1", "a"))
        assert data.train[at] == (node == "a") and data.test[at] == (node == "é 1") and not data.val[at]
    assert data.counts == {"train": 1, "val": 0, "test": 1}
    if group.rank == 0:
        splits, labels = data.warnings
        none = "nan" if goal == "values" else "-1"
        assert labels.endswith(f"2 of the 4 nodes of g (b,c is the first): taken as without a label ({none})")
        assert splits.endswith(
            "no line of 1 of the 4 nodes of g (b,c is the first): taken as in no set (none)"
        )


@pytest.mark.parametrize("ids", ["names", "numbers"])
def test_the_first_line_of_a_table_by_id_may_be_a_title(group, shared_path, ids):
    nodes, edges = (list(ROWS), NODE_EDGES) if ids == "names" else (["3", "5", "9"], "3 5\n5 9\n")
    quoted = [f'"{node}"' for node in nodes]
    texts = {
        "features": "id,age,income\n" + "".join(f"{node},{i},7\n" for i, node in enumerate(quoted)),
        "labels": '"node","class"\n' + "".join(f"{node},{i % 2}\n" for i, node in enumerate(quoted)),
        "splits": "node\tset\n" + "".join(f"{node}\ttrain\n" for node in nodes),
    }
    if ids == "numbers":
        texts = {key: text.replace('"', "") for key, text in texts.items()}
    data, rows = read_by_id(group, shared_path, ids, edges, **texts)
    for node, at in rows.items():
        place = nodes.index(str(node))
        assert data.features[at].tolist() == [place, 7] and data.labels[at] == place % 2 and data.train[at]
    if group.rank == 0:
        assert [text.split(":1: ")[1] for text in data.warnings] == [
            "skipped the first line 'id,age,income'",
            "skipped the first line 'node\\tset'",
            f"skipped the first line '{texts['labels'].splitlines()[0]}'",
        ]


NAMED = {"é 1": "red", "b,c": "None", "a": "red", "d": '"deep, blue"'}


@pytest.mark.parametrize("title", ["", "node\tclub\n"])
def test_classes_by_id_may_have_names(group, shared_path, title):
    text = title + "".join(f"{node}\t{name}\n" for node, name in NAMED.items())
    data, rows = read_by_id(group, shared_path, labels=text)
    assert data.class_names == ("deep, blue", "red") and data.classes == 2
    called = {node: data.called(data.labels[[at]])[0] for node, at in rows.items() if data.labelled[at]}
    assert called == {node: NAMED[node].strip('"') for node in rows if node != "b,c"}
    assert len(data.warnings) == (bool(title) and group.rank == 0)


def test_a_wrong_id_in_the_first_line_is_no_title_where_its_class_occurs_again(group, shared_path):
    with pytest.raises(GraphError, match=":1: found node nobody; a node of g would be right"):
        read_by_id(group, shared_path, labels="nobody\tred\na\tred\n")


def test_a_wrong_number_in_the_first_line_is_no_title(group, shared_path):
    with pytest.raises(GraphError, match=":1: found node 9; a node of g would be right"):
        read_by_id(group, shared_path, ids="numbers", edges="0 1\n1 2\n", labels="9\tz\n1\tx\n0\ty\n")


@pytest.mark.parametrize(
    ("key", "text", "said"),
    [
        ("features", "nobody,1,x\n", ":1: found node nobody; a node of g"),  # a number: no title
        ("features", "# first\nid,age\n", ":2: found node id; a node of g"),  # not the first line
        ("features", "a,age\n", "found no line of node b,c"),  # the id of a node
        ("splits", "nobody,train\n", ":1: found node nobody; a node of g"),
        ("splits", "id,set\n", "found no line of a node of g; a node id and what"),
        ("labels", "id,class\n", "found no line of a node of g"),
        (
            "labels",
            "a\t1\nd\tred\n",
            ":2: found 'red'; a class from 0, -1 for none, or names of classes in all",
        ),
        (
            "labels",
            "a\tred\nd\t1\n",
            ":2: found '1' among names of classes; one name, or -1 for none, in all",
        ),
        ("labels", "a\tx,y\n", ":1: found 'x'; 0 or 1 for each class, or one name (in quotes"),
        ("labels", "a\tred\nd\tx,y\n", ":2: found 'x,y' among names of classes; one name"),
        ("labels", f"a\t{'x' * 256}\n", ":1: found a name of 256 bytes; one name, or -1"),
    ],
)
def test_what_is_no_title_of_a_table_by_id(group, shared_path, key, text, said):
    with pytest.raises(GraphError) as caught:
        read_by_id(group, shared_path, **{key: text})
    assert said in str(caught.value)


NUMBERS = [7, 0, 3, 10, 123456789012, 2**63 - 1]


KNOWN = {text_features: has_number, text_labels: is_label, text_splits: is_split}


def keyed_outcome(read, path, ids):
    """What is read of a file whose lines begin with ids, or what is wrong with it; and the warnings."""
    nodes = Nodes(ids, "g")
    try:
        table = keyed(read, KNOWN[read], Source(str(path)), nodes)
        if read is text_splits:
            return table.flags.tolist(), nodes.warnings
        rows = np.concatenate(list(table.parts())).tolist()
        names = table.names if read is text_labels else ()
        return table.n, table.order.tolist(), rows, names, nodes.warnings
    except GraphError as error:
        return str(error), nodes.warnings


@pytest.mark.mpi_skip
@pytest.mark.filterwarnings("ignore:loadtxt")  # of a piece that holds a comment and no more
@pytest.mark.parametrize("read", [text_features, text_labels, text_splits])
@pytest.mark.parametrize("ids", ["names", "numbers"])
@given(st.data())
@settings(max_examples=75, deadline=None)
def test_plain_lines_by_id_are_what_they_are_one_by_one(tmp_path_factory, read, ids, data):
    names = [
        "a",
        "b 1" if read is text_splits else "b-1",
        "é",
        "d#",
        "long name" * 3,
        data.draw(st.sampled_from(["f", '"a"'])),
    ]
    named = ids == "names"
    rows = data.draw(st.permutations(names if named else ["007", *map(str, NUMBERS[1:])]))
    between = data.draw(st.sampled_from(["\t", ",", " "]))
    words = ["train", "val", "none"] if read is text_splits else ["1", "0", "2"]
    if read is text_labels and data.draw(st.booleans()):
        words = ["red", "deep blue", "-1"]
    lines = [f"{node}{between}{data.draw(st.sampled_from(words))}" for node in rows]
    first, word = rows[0], words[0]
    other_first = [
        f" {lines[0]}", f"{lines[0]} ", f"{first}{between} {word}", f'"{first}",{word}', f"{first}\t{word}",
        f"{first},{word}", f"{first}{between}Test", f"{first}{between}", first, f"{first}{between}# 1",
    ]  # fmt: skip
    more = [
        "",
        "# x",
        lines[1],
        f"nobody{between}1",
        f"1\x01{between}1",
        f"-1{between}1",
        f"{2**63}{between}1",
    ]
    lines[0] = data.draw(st.sampled_from([lines[0], lines[0], *other_first]))
    if data.draw(st.booleans()):
        lines.append(lines.pop(0))
    for line in data.draw(st.lists(st.sampled_from(more), max_size=1)):
        lines.insert(data.draw(st.integers(0, 6)), line)
    if data.draw(st.booleans()):
        lines.insert(0, f"id{between}what")
    if data.draw(st.booleans()):
        lines.pop()
    path = tmp_path_factory.mktemp("keyed") / "x.txt"
    path.write_text("\n".join([*lines, *data.draw(st.sampled_from([[], [""], ["#"]]))]), encoding="utf-8")
    index = name_array([name.encode() for name in names]) if named else np.array(NUMBERS)
    with mock.patch(
        "app.graphs.formats.source.PIECE_BYTES", data.draw(st.sampled_from([64, 1 << 9, 1 << 22]))
    ):
        found = keyed_outcome(read, path, index)
        with mock.patch("app.graphs.nodes.keyed.plain_fields", lambda _: None):
            assert found == keyed_outcome(read, path, index)


@pytest.mark.mpi_skip
@given(st.lists(st.text('a1 \t,"#', max_size=6), min_size=1, max_size=4))
@settings(max_examples=600, deadline=None)
def test_fields_of_plain_lines_are_split_as_each_is(lines):
    lines = [line.encode() for line in lines]
    plain = keyed_text.plain_fields(b"\n".join([*lines, b""]))
    assert plain is None or list(zip(*plain)) == [keyed_text.split_first(line) for line in lines]


@pytest.mark.mpi_skip
def test_lines_by_id_are_plain_where_they_can_be(tmp_path, monkeypatch):
    (tmp_path / "x.csv").write_text("".join(f"{7 * i},{i},{-i}\n" for i in range(500)))
    monkeypatch.setattr("app.graphs.formats.source.PIECE_BYTES", 1 << 9)
    for by_line in ("_rest", "_rows_by_line"):
        monkeypatch.setattr(f"app.graphs.nodes.keyed.{by_line}", None)
    with mock.patch.object(Source, "blocks", autospec=True, side_effect=Source.blocks) as blocks:
        nodes = Nodes(7 * np.arange(500)[::-1], "g")
        table = keyed(text_features, has_number, Source(str(tmp_path / "x.csv")), nodes)
    assert blocks.call_count == 3  # for a title, the ids, and the first line's fields
    assert table.n == 500 and table.order.tolist() == list(range(500))[::-1]
    assert np.concatenate(list(table.parts())).tolist() == [[i, -i] for i in range(500)]


def test_what_is_wrong_after_the_ids_has_its_line(group, shared_path):
    path = write(group, shared_path / "g.txt", "1 2\n")
    for text, said in (
        ("2 1 x\n1 2 3\n", "x.txt:1: found 'x'; a number"),
        ("2 1\n1 2 3\n", "x.txt:2: found 2 fields"),
    ):
        file = write(group, shared_path / "x.txt", text)
        table = GraphCase(path=path, node_data_by="id", features=file)
        item = replace(load_graphs(group, table, "x", Case())[0], paths=(path,))
        with pytest.raises(GraphError) as caught:
            load_node_data(group, table, item, Case())
        assert said in str(caught.value)
    if group.rank == 0:
        np.save(shared_path / "x.npy", np.zeros((2, 1)))
    group.barrier()
    table = GraphCase(path=path, node_data_by="id", features=str(shared_path / "x.npy"))
    with pytest.raises(GraphError, match="found arrays, in which nodes are not named by their ids; text, or"):
        load_node_data(group, table, item, Case())


@pytest.mark.mpi_skip
def test_a_classify_run_of_names(tmp_path):
    node_files(Group(MPI.COMM_SELF, HostDevice()), tmp_path, ROWS)
    (tmp_path / "g.txt").write_text(NODE_EDGES)
    keys = [f"graph.{key}={tmp_path / name}" for key, name in zip(
        ("path", "features", "labels", "splits"), ("g.txt", "x.csv", "y.txt", "s.txt.gz")
    )]  # fmt: skip
    keys += ["graph.ids=names", "graph.node_data_by=id", "gnn.epochs=3", "output.plots=false"]
    written = []
    for ranks in (1, 2):
        out = tmp_path / f"out{ranks}"
        command = [*mpirun(ranks), sys.executable, "run.py", "inputs/gcn.toml", *keys, "--out", out]
        code, printed = run_job([*command, split_over(ranks)], cwd=ROOT)
        assert code == 0, printed
        written.append((out / "predictions/g.txt").read_text(encoding="utf-8"))
    assert written[0] == written[1]
    assert [line.split("\t")[0] for line in written[0].splitlines()] == ["a", "b,c", "d", "é 1"]
    code, printed = run_job([*command[len(mpirun(2)) :], "--dry-run"], cwd=ROOT)
    assert code == 0, printed


@pytest.mark.mpi_skip
def test_a_run_of_named_classes(tmp_path):
    """Names in predictions, the same on one rank and two; from Python the same classes; applied, the same."""
    (tmp_path / "g.txt").write_text("1 2\n2 3\n3 4\n4 5\n5 6\n")
    (tmp_path / "y.txt").write_text("red\nNew York\nred\nnone\nNew York\nred\n")
    (tmp_path / "s.txt").write_text("train\ntrain\ntrain\nnone\ntest\ntest\n")
    keys = [f"graph.{key}={tmp_path / name}" for key, name in zip(
        ("path", "labels", "splits"), ("g.txt", "y.txt", "s.txt")
    )]  # fmt: skip
    written = []
    for ranks in (1, 2):
        out = tmp_path / f"out{ranks}"
        run = [*mpirun(ranks), sys.executable, "run.py", "inputs/gcn.toml", split_over(ranks)]
        code, printed = run_job([*run, *keys, "gnn.epochs=5", "--out", out], cwd=ROOT)
        assert code == 0, printed
        written.append((out / "predictions/g.txt").read_text())
    assert written[0] == written[1]
    names = [line.split("\t")[1] for line in written[0].splitlines()]
    assert len(names) == 6 and set(names) <= {"red", "New York"}
    weights = str(tmp_path / "out1/weights.npz")
    out = tmp_path / "applied"
    applied = [sys.executable, "run.py", "inputs/gcn.toml", keys[0], f"gnn.weights={weights}", "gnn.epochs=0"]
    code, printed = run_job([*applied, "--out", out], cwd=ROOT)
    assert code == 0, printed
    assert (out / "predictions/g.txt").read_text() == written[0]
    settings = {"gnn.weights": weights, "gnn.epochs": 0}
    found = app.classify(str(tmp_path / "g.txt"), labels=["red", *[None] * 5], settings=settings)
    assert found.predicted.tolist() == names and found.scores["test"].nodes == 1
    for labels, said in (([0, 1, -1, -1, -1, -1], "knows classes by names"), (["green"] * 6, "class green")):
        with pytest.raises(GraphError, match=said):
            app.classify(str(tmp_path / "g.txt"), labels=labels, settings=settings)


def test_classify_of_names_from_python(group, shared_path):
    path = write(group, shared_path / "g.txt", NODE_EDGES)
    features = {node: [float(kind), 1.0] for node, kind in ROWS.items()}
    for order in ("natural", "random"):
        found = app.classify(
            path,
            features,
            ROWS,
            train=["a", "d"],
            settings={"graph.ids": "names", "graph.order": order, "gnn.epochs": 2},
        )
        assert found.nodes == ["a", "b,c", "d", "é 1"] and len(found.predicted) == 4


@pytest.mark.mpi_skip
@pytest.mark.parametrize("nodes", [["a", "b", "cd"], ["a,1", "b", 'q"'], ["c d", "a", '"q"']])
@pytest.mark.parametrize("classes", [["blue", "red, dark"], ["a,b", "c"], ["New York", '"x"'], ["a", "b"]])
def test_predictions_are_labels_by_id(tmp_path, nodes, classes):
    """Whatever commas, blanks and quotes are in the names of nodes and of classes."""
    ids = np.sort(name_array([name.encode() for name in nodes]))
    data = NodeData(
        None, None, *[np.zeros(0, bool)] * 4, 2, False, np.arange(2), 0, False, {}, class_names=tuple(classes)
    )  # fmt: skip
    (tmp_path / "p.txt").write_text(predictions_text(ids, np.array([0, 1, 1]), data))
    found = keyed(text_labels, is_label, Source(str(tmp_path / "p.txt")), Nodes(ids))
    order = np.argsort(np.array(classes))
    numbers = np.empty(3, dtype=int)
    numbers[found.order] = np.concatenate(list(found.parts()))
    assert sorted(classes) == list(found.names) and [classes[order[i]] for i in numbers] == [
        classes[0], classes[1], classes[1],
    ]  # fmt: skip


def test_how_names_stand_in_lines():
    assert blank_between(name_array([b"a", b"b"])) == " " == blank_between(np.arange(3))
    assert blank_between(name_array([b"a", b"b,c"])) == "\t" == between_names(["a", "b c"])
    assert [quoted(name) for name in ("a", "a,b", '"a"', '"', 'say "a"')] == [
        "a", '"a,b"', '"""a"""', '"', 'say "a"',
    ]  # fmt: skip
    assert escaped("a\nb\tc\x85\u2028é") == "a\\nb\\tc\\x85\\u2028é"
