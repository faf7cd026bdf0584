"""Features, labels and splits: every source and layout, the same rows on any number of ranks, wrong files."""

import gzip
import io
import json
import pickle
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import networkx
import numpy as np
import pytest
from data import catalogue, data_dir, needs_data
from jobs import ROOT
from mpi4py import MPI
from scipy.sparse import coo_array, csr_array, random_array, save_npz

from app.case.config import Case
from app.case.file import load
from app.case.graph import GraphCase
from app.comm.group import Group
from app.device import HostDevice
from app.errors import CaseError, GraphError
from app.gnn.inputs import Scaling, scaled_rows
from app.graphs.formats import arrays as graph_arrays
from app.graphs.formats.memory import stream_of_object
from app.graphs.formats.ogb import read_ogb
from app.graphs.formats.pickled import read_pickled
from app.graphs.formats.planetoid import read_planetoid
from app.graphs.formats.source import Limits, Source
from app.graphs.nodes import data as nodedata
from app.graphs.nodes.memory import table_of_arrays
from app.partition import node_features
from app.partition.load import load_united
from app.partition.nodes import deal_node_table, load_node_data
from app.partition.streams import load_stream

WORLD = MPI.COMM_WORLD


@pytest.fixture
def group():
    """Nothing here leaves the host."""
    return Group(WORLD, HostDevice())


@pytest.fixture
def folder(shared_path):
    """A folder that all ranks see."""
    return shared_path


def on_first(group, work):
    """Files written by rank 0, seen by all."""
    if group.rank == 0:
        work()
    group.barrier()


def loaded_data(group, **keys):
    table = GraphCase(**keys)
    item = load_united(group, table, Case(seed=3))
    return item, load_node_data(group, table, item, Case(seed=3))


def whole(group, item, data):
    """Every array of all ranks by name, in the order of the rows; features as a dense matrix."""
    counts = item.rows.row_counts()
    mine = counts[group.rank]
    out = {}
    for name in ("features", "labels", "labelled", "train", "val", "test"):
        own = getattr(data, name)
        if own is not None:
            own = own.toarray() if name == "features" and not isinstance(own, np.ndarray) else own
            assert not own[mine:].any() or (name == "labels" and (own[mine:] == -1).all())
            out[name] = group.gather_host(np.ascontiguousarray(own[:mine]), counts)
    return out


N = 150
EDGES = np.array([(i, (i * 7 + k) % N) for i in range(N) for k in (1, 5)])


def arrays(**changed):
    """A graph with sparse features, labels with gaps, and masks."""
    draws = np.random.default_rng(4)
    features = csr_array(random_array((N, 11), density=0.2, rng=draws, format="csr"))
    labels = draws.choice([2, 3, 7], N)
    labels[40] = -1
    part = draws.integers(0, 4, N)
    part[40] = 3
    found = {
        "edges": EDGES,
        "num_nodes": np.array([N]),
        "feat_indptr": features.indptr,
        "feat_indices": features.indices,
        "feat_data": features.data,
        "feat_shape": np.array(features.shape),
        "labels": labels,
        **{f"{name}_mask": part == at for at, name in enumerate(("train", "val", "test"))},
    }
    return {name: value for name, value in (found | changed).items() if value is not None}


def expected(found):
    shape = tuple(found["feat_shape"])
    features = csr_array((found["feat_data"], found["feat_indices"], found["feat_indptr"]), shape=shape)
    classes = {-1: -1, 2: 0, 3: 1, 7: 2}
    return {
        "features": features.toarray().astype(np.float32),
        "labels": np.array([classes[label] for label in found["labels"]]),
        **{name: found[f"{name}_mask"] for name in ("train", "val", "test")},
    }


def assert_equal(found, wanted):
    for name, value in wanted.items():
        assert np.array_equal(found[name], value), name


# ---- sources ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["natural", "random", "rcm"])
def test_an_archive_holds_graph_and_nodes(group, folder, order, monkeypatch):
    monkeypatch.setattr(node_features, "ENTRIES", 20)
    monkeypatch.setattr(nodedata, "PIECE_BYTES", 64)
    on_first(group, lambda: np.savez(folder / "g.npz", **arrays()))
    item, data = loaded_data(group, path=[str(folder / "g.npz")], order=order)
    at = np.arange(N) if item.order_all is None else item.order_all
    assert_equal(whole(group, item, data), {k: v[at] for k, v in expected(arrays()).items()})
    assert (data.classes, data.class_ids.tolist(), data.width, data.binary) == (3, [2, 3, 7], 11, False)
    assert data.counts == {name: int(arrays()[f"{name}_mask"].sum()) for name in ("train", "val", "test")}
    assert data.features.has_sorted_indices and data.labels.dtype == np.int32


def test_files_beside_a_graph(group, folder):
    found, wanted = arrays(), expected(arrays())

    def write():
        np.savetxt(folder / "g.txt", EDGES * 10, "%d")
        np.save(folder / "x.npy", wanted["features"])
        np.savetxt(folder / "x.csv", wanted["features"], "%.9g", ",")
        save_npz(folder / "x.npz", csr_array(wanted["features"]))
        np.save(folder / "y.npy", found["labels"])
        (folder / "y.txt").write_text("# class\n" + "\n".join(map(str, found["labels"])) + "\n")
        lists = {f"{name}_idx": np.flatnonzero(wanted[name]) for name in ("train", "val", "test")}
        np.savez(folder / "s.npz", **lists)
        words = np.select([wanted["train"], wanted["val"], wanted["test"]], ["train", "val", "test"], "none")
        with gzip.open(folder / "s.txt.gz", "wt") as file:
            file.write("\n".join(words.tolist()))

    on_first(group, write)
    for features in ("x.npy", "x.csv", "x.npz"):
        for labels, splits in (("y.npy", "s.npz"), ("y.txt", "s.txt.gz")):
            names = {"features": features, "labels": labels, "splits": splits}
            paths = {key: str(folder / name) for key, name in names.items()}
            item, data = loaded_data(group, path=[str(folder / "g.txt")], **paths)
            assert_equal(whole(group, item, data), wanted)
    item, data = loaded_data(
        group, path=[str(folder / "g.txt")], labels=str(folder / "y.npy"), splits="random"
    )
    flags = whole(group, item, data)
    assert (sum(flags[name].astype(int) for name in ("train", "val", "test")) == flags["labelled"]).all()
    assert data.counts["train"] > data.counts["test"] > 0 and not data.warnings


def test_a_list_of_no_nodes_may_be_of_any_kind(group, folder):
    """np.array([]) holds floats; one that holds some is refused."""

    def write():
        np.savetxt(folder / "g.txt", EDGES, "%d")
        for name, val in (("none", []), ("some", [3.0])):
            lists = {"train_idx": np.arange(2), "val_idx": np.array(val), "test_idx": np.arange(2, 3)}
            np.savez(folder / f"{name}.npz", **lists)

    on_first(group, write)
    _, data = loaded_data(group, path=[str(folder / "g.txt")], splits=str(folder / "none.npz"))
    assert data.counts == {"train": 2, "val": 0, "test": 1}
    with pytest.raises(GraphError, match="array 'val_idx': found float64 of shape"):
        loaded_data(group, path=[str(folder / "g.txt")], splits=str(folder / "some.npz"))


def test_random_splits_that_are_empty_are_warned_of(group, folder):
    """Each node is drawn by itself: a set of a small graph may have none."""
    empty = set()
    for seed in range(8):
        table = GraphCase(generator="sbm", nodes=6, random_classes=2, generator_seed=seed + 1)
        case = Case(graph=table, seed=seed)
        item = load_united(group, table, case)
        data = load_node_data(group, table, item, case)
        lacking = [name for name, count in data.counts.items() if not count]
        said = f"random splits leave {' and '.join(lacking)} empty (each node is drawn by itself)"
        assert [text.split(": ")[1] for text in data.warnings] == [said] * bool(lacking)
        empty.update(lacking)
    assert {"val", "test"} <= empty


def test_several_labels_for_a_node(group, folder):
    bits = np.random.default_rng(1).integers(0, 2, (N, 5))
    bits[7] = -1
    masks = {"train_mask": np.arange(N) > 100, "val_mask": np.arange(N) < 7, "test_mask": np.zeros(N, bool)}
    on_first(group, lambda: np.savez(folder / "g.npz", **arrays(labels=bits, **masks)))
    item, data = loaded_data(group, path=[str(folder / "g.npz")])
    found = whole(group, item, data)
    assert data.multilabel and data.classes == 5 and data.labels.dtype == np.uint8
    assert np.array_equal(found["labels"], np.maximum(bits, 0))
    assert np.flatnonzero(~found["labelled"]).tolist() == [7]


def test_several_archives_become_one_graph(group, folder, monkeypatch):
    monkeypatch.setattr(node_features, "ENTRIES", 50)
    on_first(group, lambda: [np.savez(folder / f"{i}.npz", **arrays()) for i in range(3)])
    item, data = loaded_data(group, path=[str(folder / f"{i}.npz") for i in range(3)])
    wanted = expected(arrays())
    assert item.graph.n == 3 * N
    assert_equal(whole(group, item, data), {name: np.concatenate([v] * 3) for name, v in wanted.items()})


def test_reddit_as_dgl_ships_it(group, folder, monkeypatch):
    monkeypatch.setattr(nodedata, "PIECE_BYTES", 64)
    wanted = expected(arrays())
    kinds = np.select([wanted["train"], wanted["val"], wanted["test"]], [1, 2, 3], 0)
    n = np.ones(len(EDGES))

    def write():
        save_npz(folder / "reddit_graph.npz", coo_array((n, (EDGES[:, 0], EDGES[:, 1])), shape=(N, N)))
        held = {"feature": wanted["features"].astype(np.float64), "label": arrays()["labels"]}
        np.savez(folder / "reddit_data.npz", **held, node_types=kinds)
        np.savez(folder / "wrong.npz", **held, node_types=np.where(np.arange(N) == 77, 4, kinds))

    on_first(group, write)
    beside = dict.fromkeys(("features", "labels", "splits"), str(folder / "reddit_data.npz"))
    graph = folder / "reddit_graph.npz"
    assert_equal(whole(group, *loaded_data(group, path=[str(graph)], **beside)), wanted)
    said = refused(group, graph, **beside | {"splits": str(folder / "wrong.npz")})
    assert "array 'node_types': found 4 for node 77; 1 to train on, 2 to validate, 3 to test, or 0" in said


def test_folders_of_ogb(group, folder):
    wanted = expected(arrays())

    def write():
        for name in ("raw", "split/time"):
            (folder / "ogb" / name).mkdir(parents=True)
        texts = {
            "raw/edge": "\n".join(f"{u},{v}" for u, v in EDGES),
            "raw/num-node-list": str(N),
            "raw/node-feat": "\n".join(",".join(f"{x:.9g}" for x in row) for row in wanted["features"]),
            "raw/node-label": "\n".join(map(str, wanted["labels"])),
        }
        for mode, name in (("train", "train"), ("valid", "val"), ("test", "test")):
            texts[f"split/time/{mode}"] = "\n".join(map(str, np.flatnonzero(wanted[name])))
        for name, text in texts.items():
            with gzip.open(folder / "ogb" / f"{name}.csv.gz", "wt") as file:
                file.write(text + "\n")

    on_first(group, write)
    item, data = loaded_data(group, path=[str(folder / "ogb")], format="ogb")
    assert item.graph.edges == len({tuple(sorted(e)) for e in EDGES.tolist() if e[0] != e[1]})
    assert_equal(whole(group, item, data), wanted)
    on_first(
        group, lambda: shutil.copytree(folder / "ogb" / "split" / "time", folder / "ogb" / "split" / "other")
    )
    said = refused(group, folder / "ogb", format="ogb")
    assert "found splits other, time; graph.splits = the path of one of these would be right" in said
    one = str(folder / "ogb" / "split" / "time")
    assert_equal(
        whole(group, *loaded_data(group, path=[str(folder / "ogb")], format="ogb", splits=one)), wanted
    )
    _, data = loaded_data(group, path=[str(folder / "ogb")], format="ogb", splits="random")
    assert sum(data.counts.values()) > 0


def test_features_without_columns_are_refused(group, folder):
    """Also in an archive, before anything is estimated of them."""
    none = dict.fromkeys(("feat_indptr", "feat_indices", "feat_data", "feat_shape"))
    no_columns = arrays(features=np.zeros((N, 0)), **none)
    on_first(group, lambda: np.savez(folder / "none.npz", **no_columns))
    assert "features without columns" in refused(group, folder / "none.npz")


def test_labels_in_text_are_whole_float64(group, folder):
    on_first(group, lambda: (folder / "y.txt").write_text("9007199254740993\n" * N))
    on_first(group, lambda: np.savez(folder / "g.npz", **arrays()))
    assert "found label 9007199254740992.0 in row 0" in refused(
        group, folder / "g.npz", labels=str(folder / "y.txt")
    )


@pytest.mark.mpi_skip
def test_rows_of_tiny_features_add_up_to_one():
    """Where the inverse of a sum is no float32."""
    rows = np.array([[1e-40, 3e-40], [1e-44, 0], [2.1, 6.3], [0, 0]], dtype=np.float32)
    sums = rows.astype(np.float64).sum(axis=1, keepdims=True)
    for X in (rows, csr_array(rows)):
        scaling = Scaling("sum_to_one", None, 4)
        found = scaled_rows(X, scaling)
        assert found.dtype == np.float32
        found = found.toarray() if hasattr(found, "toarray") else found
        np.testing.assert_allclose(found, rows / np.where(sums > 0, sums, 1), rtol=1e-6)
        apart = [scaled_rows(X[at : at + 1], scaling, at) for at in range(4)]
        apart = np.concatenate([each.toarray() if hasattr(each, "toarray") else each for each in apart])
        assert np.array_equal(apart.view(np.uint32), found.view(np.uint32))  # as on any number of ranks


def ogb_of_arrays(folder, **changed):
    """A folder whose graph, features and labels are arrays, as ogbn-papers100M's; returns what it holds."""
    wanted = expected(arrays())
    labels = np.where(wanted["labels"] < 0, np.nan, wanted["labels"]).astype(np.float32)
    for name in ("raw", "split/time"):
        (folder / name).mkdir(parents=True)
    data = {
        "edge_index": EDGES.T,
        "node_feat": wanted["features"].astype(np.float16),
        "num_nodes_list": np.array([N]),
        "num_edges_list": np.array([len(EDGES)]),
        "node_year": np.full((N, 1), 2013),
        "node_label": labels[:, None],
    }
    data |= changed
    np.savez(folder / "raw" / "node-label.npz", node_label=data.pop("node_label"))
    packed = {name: array for name, array in data.items() if array is not None}
    np.savez_compressed(folder / "raw" / "data.npz", **packed)
    for mode, name in (("train", "train"), ("valid", "val"), ("test", "test")):
        with gzip.open(folder / "split" / "time" / f"{mode}.csv.gz", "wt") as file:
            file.writelines(f"{node}\n" for node in np.flatnonzero(wanted[name]))
    halves = wanted["features"].astype(np.float16).astype(np.float32)
    return wanted | {"features": halves}


@pytest.mark.parametrize("fortran", [False, True])
def test_folders_of_ogb_whose_files_are_arrays(group, folder, fortran, monkeypatch):
    monkeypatch.setattr(nodedata, "PIECE_BYTES", 64)
    monkeypatch.setattr(graph_arrays, "CHUNK_EDGES", 7)
    order = np.asfortranarray if fortran else np.ascontiguousarray
    on_first(group, lambda: ogb_of_arrays(folder / "ogb", edge_index=order(EDGES.T)))
    wanted = expected(arrays())
    wanted["features"] = wanted["features"].astype(np.float16).astype(np.float32)
    for neighbours in ("both", "in"):
        item, data = loaded_data(group, path=[str(folder / "ogb")], format="ogb", neighbours=neighbours)
        assert (item.graph.name, item.graph.arcs is not None) == ("ogb", neighbours == "in")
        assert item.graph.edges == len({tuple(sorted(e)) for e in EDGES.tolist() if e[0] != e[1]})
        assert_equal(whole(group, item, data), wanted)
        assert data.classes == 3 and data.counts["train"] == wanted["train"].sum()


@pytest.mark.mpi_skip
def test_labels_of_several_classes_in_a_folder_of_arrays(tmp_path):
    bits = np.random.default_rng(1).integers(0, 2, (N, 5)).astype(np.float32)
    bits[40] = np.nan
    ogb_of_arrays(tmp_path / "ogb", node_label=bits, node_feat=None)
    _, data = loaded_data(Group(MPI.COMM_SELF, HostDevice()), path=[str(tmp_path / "ogb")], format="ogb")
    assert data.features is None and data.multilabel and np.flatnonzero(~data.labelled[:N]).tolist() == [40]


OGB_ARRAYS = [
    ({"num_nodes_list": np.array([N, 2])}, "array 'num_nodes_list': found 2 graphs; one number, of one"),
    ({"num_nodes_list": np.array([2 * 10**9])}, "states 2000000000 nodes; the files have room for 1048576"),
    ({"num_edges_list": np.array([7])}, f"array 'edge_index': found {len(EDGES)} edges; 7, as num_edges"),
    ({"num_nodes_list": np.array([N - 1])}, "array 'edge_index': found node 149; 0..148 would be right"),
    ({"edge_index": None}, "holds no array 'edge_index'; the arrays of one layout would be right"),
    ({"edge_index": EDGES}, r"array 'edge_index': found int64 of shape \(300, 2\); integers of shape \(2"),
    ({"node_feat": np.zeros((N - 2, 3))}, "array 'node_feat': found 148 rows; 150, one for each node of"),
    ({"node_feat": np.full((N, 1), np.nan)}, "array 'node_feat': found nan in row 0, column 0; finite"),
    ({"node_label": np.full(N, np.inf)}, "array 'node_label': found label inf in row 0; a class from 0"),
    ({"node_label": np.arange(N).astype(object)}, "node-label.npz: array 'node_label': holds Python objects"),
]  # fmt: skip


@pytest.mark.mpi_skip
@pytest.mark.parametrize(("keys", "message"), OGB_ARRAYS, ids=range(len(OGB_ARRAYS)))
def test_wrong_folders_of_arrays(tmp_path, keys, message):
    ogb_of_arrays(tmp_path / "ogb", **keys)
    solo = Group(MPI.COMM_SELF, HostDevice())
    assert re.search(message, refused(solo, tmp_path / "ogb", format="ogb"))


@pytest.mark.mpi_skip
def test_an_ogb_array_may_be_as_large_as_packed_text(tmp_path):
    ogb_of_arrays(tmp_path)
    assert read_ogb(str(tmp_path), Limits(decompressed=1 << 20, npz=100)).nodes == N
    with pytest.raises(
        GraphError, match=r"data.npz: array '\w+': states \d+ bytes; at most 100 would be right"
    ):
        read_ogb(str(tmp_path), Limits(decompressed=10, npz=100))


@pytest.mark.mpi_skip
def test_an_ogb_folder_that_states_more_nodes_than_its_files_hold(tmp_path):
    (tmp_path / "raw").mkdir()
    for name, text in (("edge", "0,1\n"), ("num-node-list", "2000000000\n"), ("node-label", "1\n2\n")):
        with gzip.open(tmp_path / "raw" / f"{name}.csv.gz", "wt") as file:
            file.write(text)
    with pytest.raises(GraphError, match=r"states 2000000000 nodes; the files have room for 1048576 at most"):
        read_ogb(str(tmp_path), Limits())


def test_folders_of_ppi(group, folder):
    sizes = {"train": 20, "valid": 9, "test": 12}
    x = {mode: np.random.default_rng(n).normal(size=(n, 4)) for mode, n in sizes.items()}
    y = {mode: np.random.default_rng(n).integers(0, 2, (n, 6)) for mode, n in sizes.items()}

    def write():
        (folder / "ppi").mkdir()
        for mode, n in sizes.items():
            graph = {"directed": True, "nodes": [{"id": i} for i in range(n)]}
            graph["links"] = [{"source": i, "target": (i + 1) % n} for i in range(n)]
            (folder / "ppi" / f"{mode}_graph.json").write_text(json.dumps(graph))
            np.save(folder / "ppi" / f"{mode}_feats.npy", x[mode])
            np.save(folder / "ppi" / f"{mode}_labels.npy", y[mode])

    on_first(group, write)
    item, data = loaded_data(group, path=[str(folder / "ppi")], format="ppi", order="random")
    found, old = whole(group, item, data), item.order_all
    assert (item.graph.n, item.graph.edges) == (41, 41)
    assert np.array_equal(found["features"], np.concatenate(list(x.values())).astype(np.float32)[old])
    assert np.array_equal(found["labels"], np.concatenate(list(y.values()))[old])
    assert np.array_equal(found["train"], (np.arange(41) < 20)[old])
    assert data.counts == {"train": 20, "val": 9, "test": 12}


@pytest.mark.parametrize("sparse", [False, True])
def test_arrays_in_memory(group, sparse):
    graph = networkx.path_graph(30)
    x = (np.arange(90).reshape(30, 3) % 4).astype(float)
    keys = {"features": csr_array(x) if sparse else x, "labels": np.arange(30) % 3, "n": 30}
    table = table_of_arrays(**keys, train=np.arange(30) < 10, test=[20, 29])
    item = load_stream(group, stream_of_object(graph)[0], GraphCase(), Case())
    data = deal_node_table(group, table if group.rank == 0 else None, item)
    found = whole(group, item, data)
    assert_equal(found, {"features": x, "labels": np.arange(30) % 3, "train": np.arange(30) < 10})
    assert np.flatnonzero(found["test"]).tolist() == [20, 29] and not found["val"].any()
    with pytest.raises(GraphError, match=r"train: node numbers 0..29"):
        table_of_arrays(train=[30], n=30)


def test_a_graph_without_anything(group):
    _, data = loaded_data(group, path=["networkx:karate_club"])
    assert (data.features, data.labels, data.classes, data.width) == (None, None, 0, 0)
    assert len(data.train) % 8 == 0 and not data.labelled.any()


@pytest.mark.parametrize("order", ["natural", "random"])
def test_generated_nodes_do_not_depend_on_order_or_ranks(group, order):
    keys = {"generator": "sbm", "nodes": 200, "random_classes": 4, "random_features": 16, "signal": 3.0}
    item, data = loaded_data(group, **keys, order=order)
    alone, plain = loaded_data(Group(MPI.COMM_SELF, HostDevice()), **keys)
    old = np.arange(200) if item.order_all is None else item.order_all
    wanted = whole(Group(MPI.COMM_SELF, HostDevice()), alone, plain)
    assert_equal(whole(group, item, data), {name: value[old] for name, value in wanted.items()})
    # A neighbour is of the same community four times in five, and features are near their class's mean.
    graph = alone.graph
    same = plain.labels[graph.row_of()] == plain.labels[graph.indices]
    assert 0.7 < same.mean() < 0.9
    means = np.stack([plain.features[:200][plain.labels[:200] == c].mean(axis=0) for c in range(4)])
    nearest = ((plain.features[:200, None] - means) ** 2).sum(axis=2).argmin(axis=1)
    assert (nearest == plain.labels[:200]).mean() > 0.7


# ---- real data --------------------------------------------------------------------------------------------

REAL = [each for each in catalogue() if each["path"].startswith("gnn/") and each["path"].count("/") == 1]


@needs_data
@pytest.mark.parametrize("entry", REAL, ids=lambda entry: entry["path"])
def test_counts_of_the_catalogue(group, entry):
    path = data_dir() / entry["path"]
    item, data = loaded_data(group, path=[str(path)])
    assert (item.graph.n, item.graph.edges) == (entry["nodes"], entry["edges_undirected"])
    assert (data.classes, data.width) == (entry["classes"], entry.get("features", 0))
    assert data.counts == {name: entry[name] for name in ("train", "val", "test")}
    mine = item.rows.row_counts()[group.rank]
    with np.load(path) as file:
        lo, hi = item.rows.range_of(group.rank)
        labels = file["labels"][lo:hi]
        assert np.array_equal(np.append(data.class_ids, -1)[data.labels[:mine]], labels)
        assert np.array_equal(data.test[:mine], file["test_mask"][lo:hi])
        if data.features is not None:
            indptr = file["feat_indptr"][lo : hi + 1]
            assert np.array_equal(data.features.indptr[: mine + 1], indptr - indptr[0])
            assert np.array_equal(data.features.indices, file["feat_indices"][indptr[0] : indptr[-1]])
            ones = np.ones(int(indptr[-1] - indptr[0]))
            values = ones if data.binary else file["feat_data"][indptr[0] : indptr[-1]]
            assert np.array_equal(data.features.data, values)


@needs_data
@pytest.mark.mpi_skip
def test_planetoid_gives_the_converted_file(tmp_path):
    folder, out = data_dir() / "gnn" / "planetoid", tmp_path / "cora.npz"
    call = [sys.executable, "-m", "app", "planetoid", str(folder), "cora", str(out)]
    done = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert "2708 nodes, 5278 edges" in done.stdout
    with np.load(out) as made, np.load(data_dir() / "gnn" / "cora.npz") as wanted:
        assert sorted(made) == sorted(wanted)
        for name in made:
            assert made[name].dtype == wanted[name].dtype and np.array_equal(made[name], wanted[name])


# ---- pickles ----------------------------------------------------------------------------------------------


class Touch:
    """Would create a file if it were loaded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.mark.mpi_skip
def test_planetoid_with_missing_test_nodes(tmp_path):
    """As in Citeseer: numbers that test.index leaves out are nodes without anything."""

    def csr(values):
        return {"indptr": csr_array(values).indptr, "indices": csr_array(values).indices}

    features = np.eye(6, 4) + np.eye(6, 4, 2)
    parts = {
        "y": np.eye(2, dtype=int), "ally": np.eye(3, 2, dtype=int), "ty": np.array([[0, 1], [1, 0]]),
        "graph": {i: [(i + 1) % 6] for i in range(6)},
    }  # fmt: skip
    for name, value in parts.items():
        (tmp_path / f"ind.few.{name}").write_bytes(pickle.dumps(value, protocol=2))
    for name, rows in (("x", features[:2]), ("allx", features[:3]), ("tx", features[3:5])):
        matrix = csr_array(rows)
        state = {"_shape": matrix.shape, "data": matrix.data, **csr(rows)}
        (tmp_path / f"ind.few.{name}").write_bytes(pickle.dumps(state, protocol=2))
    (tmp_path / "ind.few.test.index").write_text("5\n3\n")
    found = read_planetoid(str(tmp_path), "few")
    assert found["labels"].tolist() == [0, 1, -1, 0, -1, 1]
    assert np.diff(found["feat_indptr"]).tolist() == [2, 2, 1, 0, 0, 1]
    assert np.flatnonzero(found["test_mask"]).tolist() == [3, 5]
    wide = {"_shape": (2, 5), "data": np.ones(2), **csr(np.eye(2, 5))}
    unbounded = {**wide, "_shape": (float("inf"), 5)}
    for name, value, message in (
        ("tx", wide, "found 5 columns; 4, as allx has"),
        ("tx", unbounded, "no sound CSR matrix"),
        ("y", np.eye(4, 2, dtype=int), "found 4 rows; at most 3"),
    ):
        file = tmp_path / f"ind.few.{name}"
        before = file.read_bytes()
        file.write_bytes(pickle.dumps(value, protocol=2))
        with pytest.raises(GraphError, match=message):
            read_planetoid(str(tmp_path), "few")
        file.write_bytes(before)
    (tmp_path / "ind.few.test.index").write_text("2\n3\n")
    with pytest.raises(GraphError, match=r"test.index: different numbers from 3"):
        read_planetoid(str(tmp_path), "few")


@pytest.mark.mpi_skip
@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4])
def test_plain_pickles_are_read(tmp_path, protocol):
    content = {"a": [1, 2, (3, None, True)], "x": np.arange(12.0).reshape(3, 4), "big": 1 << 40, 5: 1.5}
    (tmp_path / "p").write_bytes(pickle.dumps(content, protocol=protocol))
    found = read_pickled(Source(str(tmp_path / "p")))
    assert np.array_equal(found.pop("x"), content.pop("x")) and found == content


@pytest.mark.mpi_skip
@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_pickles_run_nothing(tmp_path, protocol):
    (tmp_path / "p").write_bytes(pickle.dumps([Touch(tmp_path / "touched")], protocol=protocol))
    with pytest.raises(GraphError, match=r"found the (name|instruction)"):
        read_pickled(Source(str(tmp_path / "p")))
    assert not (tmp_path / "touched").exists()


@pytest.mark.mpi_skip
def test_damaged_pickles(tmp_path):
    good = pickle.dumps({"x": np.arange(5), "l": [1, 2]}, protocol=2)
    draws = np.random.default_rng(2)
    for trial in range(200):
        text = bytearray(good[: draws.integers(1, len(good))] if trial % 2 else good)
        text[draws.integers(len(text))] = draws.integers(256)
        (tmp_path / "p").write_bytes(bytes(text))
        try:
            read_pickled(Source(str(tmp_path / "p")))
        except GraphError as error:
            assert "\n" not in str(error)
    nested = b"\x80\x02)" + b"q\x00h\x00\x86" * 60 + b"."
    (tmp_path / "p").write_bytes(nested)  # 2^60 empty tuples, were each made anew
    assert len(read_pickled(Source(str(tmp_path / "p")))) == 2


# ---- what is refused --------------------------------------------------------------------------------------


def refused(group, path, **keys):
    with pytest.raises((GraphError, CaseError)) as caught:
        loaded_data(group, path=[str(path)], **keys)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def changed(name, index, value):
    array = arrays()[name].copy()
    array[index] = value
    return {name: array}


TRAINED = int(np.flatnonzero(arrays()["train_mask"])[0])
BAD = [
    ({"labels": np.zeros(N - 1, int)}, r"array 'labels': found 149 rows; 150, one for each node of g, would"),
    (changed("labels", 5, -2), r"array 'labels': found label -2 in row 5; a class from 0, or -1"),
    ({"labels": np.full(N, 0.5)}, r"array 'labels': found label 0.5 in row 0"),
    ({"labels": np.full((N, 3), 2)}, r"array 'labels': found label 2 in row 0, column 0; 0 and 1"),
    ({"labels": np.zeros((N, 2, 2))}, r"array 'labels': found float64 of shape \(150, 2, 2\); integers of"),
    (changed("labels", TRAINED, -1), rf"found node {TRAINED} in train, which has no label"),
    ({"train_mask": np.zeros(N + 8, bool)}, r"array 'val_mask': found bool of shape \(150\); True and False"),
    (
        {"val_mask": np.zeros(3, bool)},
        r"array 'val_mask': found bool of shape \(3\); True and False of shape",
    ),
    ({"test_mask": arrays()["train_mask"]}, rf"'train_mask': found node {TRAINED} in both train and test"),
    ({"train_mask": np.full(N, 2)}, r"array 'train_mask': found int64 of shape \(150\); True and False"),
    (changed("feat_data", 6, np.nan), r"array 'feat_data': found nan in entry 6; finite 32-bit numbers"),
    (changed("feat_data", 6, 1e300), r"array 'feat_data': found 1e\+300 in entry 6"),
    (
        changed("feat_indices", 3, 11),
        r"array 'feat_indices': found column 11 in entry 3; 0..10 would be right",
    ),
    (changed("feat_indices", slice(0, 3), 2), r"array 'feat_indptr': row \d names a column twice"),
    (
        changed("feat_indptr", 4, 10**6),
        r"array 'feat_indptr': ascending offsets from 0 to 330 would be right",
    ),
    ({"feat_shape": np.array([N + 1, 11])}, r"array 'feat_shape': found 151 rows; 150, as the offsets have"),
    ({"feat_data": np.zeros(3)}, r"array 'feat_data': found float64 of shape \(3\); real numbers of shape"),
    ({"feat_data": None}, r"holds no array 'feat_data'; that array, or feat_binary = True"),
    ({"feat_indptr": None, "features": np.zeros((N, 0, 2))}, r"array 'features': found float64 of shape"),
    ({"feat_indptr": None, "features": np.full((N, 2), np.inf)}, r"'features': found inf in row 0, column 0"),
    ({"feat_indptr": None, "features": np.zeros((N - 2, 2))}, r"array 'features': found 148 rows; 150, one"),
    ({"feat_indptr": None, "features": np.zeros((2, N)).T}, r"array 'features': is stored column by column"),
    (
        {"labels": np.arange(N).astype(object)},
        r"array 'labels': holds Python objects, which are never loaded",
    ),
    ({"labels": np.array(["a"] * N)}, r"array 'labels': found <U1 of shape \(150\); integers of shape"),
]


@pytest.mark.parametrize(("keys", "message"), BAD, ids=range(len(BAD)))
def test_wrong_archives(group, folder, keys, message):
    on_first(group, lambda: np.savez(folder / "g.npz", allow_pickle=True, **arrays(**keys)))
    error = refused(group, folder / "g.npz", order="random")
    assert error.startswith(f"{folder}/g.npz: ")
    assert re.search(message, error), error


def array_text(kind, length):
    """An .npy file of one element that claims to hold more."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": kind, "fortran_order": False, "shape": (length,)})
    return file.getvalue() + b"12345678"


def vector_text(kind, values):
    """An .npy file of these numbers."""
    file = io.BytesIO()
    np.save(file, np.array(values, dtype=kind))
    return file.getvalue()


def matrix_text(shape):
    """An .npy file of zeros."""
    file = io.BytesIO()
    np.save(file, np.zeros(shape))
    return file.getvalue()


TEXTS = [
    ("features", "1 2\n3\n4 5\n", r":2: found 1 fields in '3'; 2, as in the first line, would be right"),
    ("features", "1 2\n3 x\n4 5\n", r":2: found 'x'; a number would be right"),
    ("features", "1 2\n3 nan\n4 5\n", r":2: found nan in row 1, column 1; finite 32-bit numbers"),
    (
        "features",
        "# of a node\n\n1 2\n3 4\n\ninf 5\n",
        r":6: found inf in row 2, column 0; finite 32-bit numbers",
    ),
    ("features", "1 2\n3 1_0\n4 5\n", r":2: found '1_0'; a number would be right"),
    ("features", "1 2\n3 4\n", r": found 2 rows; 3, one for each node of g, would be right"),
    ("features", "\n\n", r": holds no numbers; one line for each node would be right"),
    ("labels", "0\n1\n-5\n", r":3: found label -5.0 in row 2; a class from 0, or -1 for none"),
    ("labels", "0\n1\n", r": found 2 rows; 3, one for each node"),
    ("splits", "train\ntset\ntest\n", r":2: found 'tset'; train, val, test or none would be right"),
    ("features", "1 2\n3 4\n\t\n", r": found 2 rows; 3, one for each node of g, would be right"),
    ("labels", "0\n1\n\t\n", r": found 2 rows; 3, one for each node of g, would be right"),
    ("features", matrix_text((3, 0)), r": found features without columns; at least one would be right"),
    ("labels", vector_text("<f2", [1, np.inf, 0]), r": found label inf in row 1; a class from 0, or -1"),
    ("splits", "train\n", r": found 1 rows; 3, one for each node"),
    (
        "labels",
        array_text("<i8", 10**12),
        r": its header states int64 of shape .1000000000000., but it holds 8",
    ),
    ("labels", array_text("|O", 3), r": (holds Python objects, which are never loaded|cannot be read)"),
]


@pytest.mark.parametrize(("key", "text", "message"), TEXTS, ids=range(len(TEXTS)))
def test_wrong_files_beside_a_graph(group, folder, key, text, message):
    data = text if isinstance(text, bytes) else text.encode()
    on_first(group, lambda: ((folder / "g.txt").write_text("1 2\n2 3\n"), (folder / "x").write_bytes(data)))
    error = refused(group, folder / "g.txt", **{key: str(folder / "x")})
    assert error.startswith(f"{folder}/x")
    assert re.search(message, error), error


def test_a_header_that_claims_more_than_there_is(group, folder):
    def write():
        with zipfile.ZipFile(folder / "g.npz", "w") as archive:
            for name, array in arrays(labels=None).items():
                buffer = io.BytesIO()
                np.save(buffer, array)
                archive.writestr(f"{name}.npy", buffer.getvalue())
            head = io.BytesIO()
            np.lib.format.write_array_header_1_0(
                head, {"descr": "<i8", "fortran_order": False, "shape": (1 << 40,)}
            )
            archive.writestr("labels.npy", head.getvalue())

    on_first(group, write)
    assert "its header states int64 of shape (1099511627776), but it holds 0 bytes" in refused(
        group, folder / "g.npz"
    )


def test_held_back_nodes_without_labels_are_left_out(group, folder):
    tested = int(np.flatnonzero(arrays()["test_mask"])[0])
    on_first(group, lambda: np.savez(folder / "g.npz", **arrays(**changed("labels", tested, -1))))
    _, data = loaded_data(group, path=[str(folder / "g.npz")])
    assert data.warnings == ("g: 1 held-back nodes have no label and are left out",)
    assert data.counts["test"] == arrays()["test_mask"].sum() - 1


def test_unequal_parts_of_a_union(group, folder):
    def write():
        np.savez(folder / "a.npz", **arrays())
        np.savez(folder / "b.npz", **arrays(labels=np.zeros((N, 3), int), train_mask=np.zeros(N, bool)))
        (folder / "e.txt").write_text("1 2\n")

    on_first(group, write)
    for other, message in (
        ("b.npz", "found 3 columns; 0, as in the first"),
        ("e.txt", "e: holds only edges"),
    ):
        with pytest.raises(GraphError, match=message):
            loaded_data(group, path=[str(folder / "a.npz"), str(folder / other)])


@pytest.mark.mpi_skip
def test_paths_are_relative_to_the_case(tmp_path):
    for name in ("g.txt", "x.npy"):
        (tmp_path / name).write_text("1 2\n")
    (tmp_path / "ogb").mkdir()
    case = tmp_path / "case.toml"
    learns = '[run]\ntask = "classify"\n'
    case.write_text(learns + '[graph]\npath = "g.txt"\nfeatures = "x.npy"\nsplits = "random"\n')
    graph = load(str(case), []).graph
    assert (graph.features, graph.splits) == (str(tmp_path / "x.npy"), "random")
    case.write_text(learns + '[graph]\npath = "g.txt"\nlabels = "y.npy"\n')
    with pytest.raises(CaseError, match=r'graph.labels \(line 5\): no such file: "y.npy"'):
        load(str(case), [])
    case.write_text('[graph]\npath = "ogb"\nformat = "ogb"\n')
    assert load(str(case), []).graph.path == [str(tmp_path / "ogb")]
