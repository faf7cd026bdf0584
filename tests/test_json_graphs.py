"""Graphs in JSON files: those of GraphSAGE, and single ones of PPI, on any number of ranks."""

import json
import re
import sys

import numpy as np
import pytest
from jobs import ROOT, run_job
from test_nodedata import loaded_data, on_first, refused, whole

from app.case.file import load, named_files
from app.checkpoint.identity import input_digests
from app.device import HostDevice
from app.errors import CaseError
from app.graphs.formats.graphsage import read_graphsage, read_table
from app.graphs.formats.readers import open_edges
from app.graphs.formats.source import Limits

N = 60
LINKS = [(i, (i * 7 + k) % N) for i in range(N) for k in (1, 5)]
SETS = np.arange(N) % 4  # 0 and 3: train, 1: val, 2: test
ROW_OF = np.random.default_rng(2).permutation(N)  # of the node that is listed at each place
IDS = [f"t{i:02d}é" for i in range(N)]
X = np.random.default_rng(3).normal(size=(N, 3)).astype(np.float32)
CLASSES = np.arange(N) % 3


@pytest.fixture
def device():
    """Nothing here leaves the host."""
    return HostDevice()


def texts(ids=None, by="id", several=False, **changed):
    """The files' contents by the end of their names."""
    ids = IDS if ids is None else ids
    nodes = [{"id": ids[i], "val": bool(SETS[i] == 1), "test": bool(SETS[i] == 2)} for i in range(N)]
    ends = [(ids[u], ids[v]) if by == "id" else (u, v) for u, v in LINKS]
    links = [{"source": u, "target": v, "train_removed": False} for u, v in ends]
    classes = {str(each): int(CLASSES[ROW_OF[i]]) for i, each in enumerate(ids)}
    if several:
        classes = {name: [int(each == c) for c in range(3)] for name, each in classes.items()}
    found = {
        "-G.json": {"directed": False, "multigraph": False, "graph": {}, "nodes": nodes, "links": links},
        "-id_map.json": {str(each): int(ROW_OF[i]) for i, each in enumerate(ids)},
        "-class_map.json": classes,
    }
    return found | changed


def write(folder, found, features=X):
    """The files; returns the path of the first."""
    folder.mkdir(exist_ok=True)
    for name, content in found.items():
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / f"toy{name}").write_text(text)
    if features is not None:
        np.save(folder / "toy-feats.npy", features)
    return folder / "toy-G.json"


def read(group, path, **keys):
    item, data = loaded_data(group, path=[str(path)], format="graphsage", **keys)
    return item, whole(group, item, data), data


@pytest.mark.parametrize("by", ["id", "position"])
@pytest.mark.parametrize("several", [False, True])
def test_the_files_of_graphsage(group, shared_path, by, several):
    on_first(group, lambda: write(shared_path, texts(by=by, several=several)))
    item, found, data = read(group, shared_path / "toy-G.json", order="random")
    assert item.graph.name == "toy" and data.multilabel == several and not item.warnings
    wanted_edges = {tuple(sorted((ROW_OF[u], ROW_OF[v]))) for u, v in LINKS if u != v}
    assert (item.graph.n, item.graph.edges) == (N, len(wanted_edges))
    at, sets = item.order_all, np.empty(N, int)
    sets[ROW_OF] = SETS
    assert np.array_equal(found["features"], X[at])
    labels = np.eye(3)[CLASSES] if several else CLASSES
    assert np.array_equal(found["labels"], labels[at])
    for name, numbers in (("train", (0, 3)), ("val", (1,)), ("test", (2,))):
        assert np.array_equal(found[name], np.isin(sets, numbers)[at])


@pytest.mark.mpi_skip
def test_its_edges_are_those_of_the_rows(tmp_path):
    """Each way to write the ends gives the same edges."""
    shuffled = np.random.default_rng(5).permutation(N).tolist()
    odd = (np.arange(N) * 3 + 100).tolist()
    wanted = {frozenset((ROW_OF[u], ROW_OF[v])) for u, v in LINKS}
    for ids, by, warned in ((IDS, "id", 0), (odd, "id", 0), (odd, "at", 0), (shuffled, "at", 1)):
        stream = read_graphsage(str(write(tmp_path, texts(ids, by))), Limits())
        found = {frozenset(pair) for u, v, _ in stream.chunks() for pair in zip(u.tolist(), v.tolist())}
        assert found == wanted
        assert len(stream.warnings) == warned
        assert not warned or "are taken for positions in the list of nodes, not ids" in stream.warnings[0]
    new = texts()
    new["-G.json"]["edges"] = new["-G.json"].pop("links")
    stream = read_graphsage(str(write(tmp_path, new)), Limits())
    assert sum(len(u) for u, _, _ in stream.chunks()) == len(LINKS)


@pytest.mark.mpi_skip
def test_nodes_that_graphsage_lets_go_of(tmp_path):
    """Without val and test, or not listed at all: no edges, no set."""
    found = texts()
    nodes = found["-G.json"]["nodes"]
    del nodes[4]["val"]
    gone = nodes.pop(9)["id"]
    del found["-class_map.json"][gone]
    path = write(tmp_path, found, features=None)
    stream = read_graphsage(str(path), Limits())
    ends = np.concatenate([np.r_[u, v] for u, v, _ in stream.chunks()])
    assert not np.isin(ROW_OF[[4, 9]], ends).any() and stream.nodes == N
    left = sum(bool({4, 9} & {u, v}) for u, v in LINKS)
    assert stream.warnings == [f"{path}: {left} links of nodes without val and test are left out"]
    table = read_table(str(path), Limits())
    assert table.features is None
    assert np.flatnonzero(table.splits.flags == 0).tolist() == sorted(ROW_OF[[4, 9]].tolist())
    labels = np.concatenate(list(table.labels.parts()))
    assert labels[ROW_OF[9]] == -1 and labels[ROW_OF[4]] == CLASSES[ROW_OF[4]]


def without(end, key):
    return {end: {name: value for name, value in texts()[end].items() if name != key}}


def linked(source):
    graph = texts()["-G.json"]
    graph["links"][3] = {"source": source, "target": IDS[1]}
    return {"-G.json": graph}


SAME = {"-G.json": texts()["-G.json"] | {"nodes": [{"id": IDS[0]}, {"id": IDS[0]}]}}
BAD = [
    ({"-G.json": "{"}, r"toy-G.json: found no such JSON: Input data was truncated; a node-link graph as"),
    ({"-G.json": "[" * 10_000}, r"toy-G.json: found no such JSON"),
    ({"-G.json": {"nodes": []}}, r"toy-G.json: found no list of links; a node-link graph"),
    ({"-G.json": {"nodes": [{"id": 1.5}], "links": []}}, r"Expected `int \| str`, got `float`"),
    (linked("x\x1b"), r"found end 'x\\\\x1b' of link 3; the id of a node, or positions 0..59 in all links"),
    (linked(60), r"found end 60 of link 3; the id of a node, or positions"),
    (SAME, r"toy-G.json: found node t00\\xe9 again; each node of id_map.json once would be right"),
    (without("-id_map.json", IDS[0]), r"toy-id_map.json: found row \d+ for node .*; each of 0..58 once"),
    ({"-id_map.json": {"a": 0}}, r"toy-G.json: found node t00\\xe9, which id_map.json has not; each node of"),
    ({"-id_map.json": {"a": "0"}}, r"toy-id_map.json: found no such JSON: Expected `int`, got `str`"),
    ({"-class_map.json": {"a": 1}}, r"toy-class_map.json: found node a; a node of id_map.json would"),
    ({"-class_map.json": {IDS[0]: 1, IDS[1]: [1]}}, r"found lists of 0, 1 numbers; lists of one length"),
    ({"-class_map.json": {IDS[0]: [0] * 500}}, r"found 1 lists of 500 numbers; one for each node would be"),
    ({"-class_map.json": {IDS[0]: 0.5}}, r"toy-class_map.json: found label 0.5 in row \d+; a class from 0"),
    ({"-class_map.json": {IDS[0]: [2, 0]}}, r"found label 2.0 in row \d+, column 0; 0 and 1, or a whole row"),
]  # fmt: skip


@pytest.mark.parametrize(("changed", "message"), BAD, ids=range(len(BAD)))
def test_wrong_files_of_graphsage(group, shared_path, changed, message):
    on_first(group, lambda: write(shared_path, texts(**changed)))
    said = refused(group, shared_path / "toy-G.json", format="graphsage")
    assert re.search(message, said), said


@pytest.mark.mpi_skip
def test_missing_and_unfitting_files_of_graphsage(group, tmp_path):
    path = write(tmp_path, texts(), features=X[1:])
    assert "toy-feats.npy: found 59 rows; 60, one for each node of toy" in refused(
        group, path, format="graphsage"
    )
    (tmp_path / "toy-id_map.json").unlink()
    assert "toy-id_map.json: No such file" in refused(group, path, format="graphsage")
    with pytest.raises(Exception, match=r'files of GraphSAGE: graph.format = "graphsage"'):
        open_edges(str(path))
    with pytest.raises(Exception, match=r"other.json: is no graph of GraphSAGE; the path of PREFIX-G.json"):
        open_edges(str(tmp_path / "other.json"), "graphsage")


@pytest.mark.mpi_skip
def test_a_run_reads_all_files_of_graphsage(tmp_path):
    write(tmp_path, texts())
    case = tmp_path / "case.toml"
    case.write_text(
        '[run]\ntask = "classify"\n[graph]\npath = "toy-G.json"\nformat = "graphsage"\n'
        '[gnn]\nmodel = "sage"\nepochs = 2\n[output]\nplots = false\n'
    )
    code, printed = run_job([sys.executable, ROOT / "run.py", case, "--out", tmp_path / "out"], limit_s=60)
    assert code == 0 and "30 training, 15 validation, 15 test nodes" in printed, printed
    names = [path.removeprefix(f"{tmp_path}/toy") for path in named_files(load(str(case), []))]
    assert names == ["-G.json", "-feats.npy", "-id_map.json", "-class_map.json"]
    before = input_digests(load(str(case), []))
    np.save(tmp_path / "toy-feats.npy", X + 1)
    assert input_digests(load(str(case), [])) != before


# ---- PPI --------------------------------------------------------------------------------------------------

SIZES = {"train": 20, "valid": 9, "test": 12}


def write_ppi(folder):
    """Three rings, each with labels of six classes."""
    folder.mkdir()
    for mode, n in SIZES.items():
        draws = np.random.default_rng(n)
        graph = {"nodes": [{"id": i} for i in range(n)]}
        graph["links"] = [{"source": i, "target": (i + 1) % n} for i in range(n)]
        (folder / f"{mode}_graph.json").write_text(json.dumps(graph))
        np.save(folder / f"{mode}_feats.npy", draws.normal(size=(n, 4)))
        np.save(folder / f"{mode}_labels.npy", draws.integers(0, 2, (n, 6)))


def test_one_graph_of_ppi(group, shared_path):
    on_first(group, lambda: write_ppi(shared_path / "ppi"))
    parts = {}
    for mode, n in SIZES.items():
        item, data = loaded_data(group, path=[str(shared_path / "ppi" / f"{mode}_graph.json")], format="ppi")
        assert (item.graph.name, item.graph.n, item.graph.edges) == (f"ppi-{mode}", n, n)
        assert data.counts == {
            name: n * (name == mode[:3] or name == mode) for name in ("train", "val", "test")
        }
        parts[mode] = whole(group, item, data)
    everything = whole(group, *loaded_data(group, path=[str(shared_path / "ppi")], format="ppi"))
    names = [str(shared_path / "ppi" / f"{mode}_graph.json") for mode in ("train", "valid")]
    two = whole(group, *loaded_data(group, path=names, format="ppi"))
    for name, values in everything.items():
        assert np.array_equal(values, np.concatenate([part[name] for part in parts.values()]))
        assert np.array_equal(two[name], values[:29])


@pytest.mark.mpi_skip
def test_a_network_is_applied_to_a_graph_that_it_has_not_seen(tmp_path):
    """Trained without the test graph, of which it then predicts the same as beside the others."""
    write_ppi(tmp_path / "ppi")
    case = tmp_path / "case.toml"
    case.write_text(
        '[run]\ntask = "classify"\n[graph]\npath = ["ppi/train_graph.json", "ppi/valid_graph.json"]\n'
        'format = "ppi"\n[gnn]\nepochs = 3\nmodel = "sage"\nfeature_rows = "as_given"\n'
        "[output]\nplots = false\n"
    )

    def run(name, *options):
        program = [sys.executable, ROOT / "run.py", case, *options, "--out", tmp_path / name]
        code, printed = run_job(program, limit_s=60)
        assert code == 0, printed
        (predicted,) = (tmp_path / name / "predictions").iterdir()
        return printed, [line.split()[1:] for line in predicted.read_text().splitlines()]

    printed, _ = run("first")
    assert "20 training, 9 validation, 0 test nodes" in printed
    weights = [f"gnn.weights={tmp_path / 'first' / 'weights.npz'}", "gnn.epochs=0"]
    printed, alone = run("alone", *weights, f"graph.path={tmp_path / 'ppi' / 'test_graph.json'}")
    assert "0 training, 0 validation, 12 test nodes" in printed and len(alone) == 12
    assert run("beside", *weights, f"graph.path={tmp_path / 'ppi'}")[1][29:] == alone


@pytest.mark.mpi_skip
def test_paths_of_ppi(group, tmp_path):
    write_ppi(tmp_path / "ppi")
    case = tmp_path / "case.toml"
    text = '[run]\ntask = "classify"\n[graph]\npath = "{}"\nformat = "ppi"\n'
    for path, names in (
        ("ppi", ["ppi"]),
        ("p*", ["ppi"]),
        ("ppi/t*", ["ppi/test_graph.json", "ppi/train_graph.json"]),
    ):
        case.write_text(text.format(path))
        found = load(str(case), [])
        assert found.graph.path == [str(tmp_path / name) for name in names]
    assert str(tmp_path / "ppi" / "test_labels.npy") in named_files(found)
    case.write_text(text.format("ppi/test_feats.npy"))
    with pytest.raises(CaseError, match="no such file"):
        load(str(case), [])
    (tmp_path / "ppi" / "new_graph.json").write_text("{}")
    said = refused(group, tmp_path / "ppi" / "new_graph.json", format="ppi")
    assert "is no graph of PPI; one of train_graph.json, valid_graph.json, test_graph.json, or their" in said
