"""What tests/fuzz.py damages and who reads it: good files of every kind, small ones and real ones."""

import bz2
import gzip
import io
import json
import lzma
import pickle
import random
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec
import numpy as np
from data import data_dir
from mpi4py import MPI
from scipy.sparse import csr_matrix

from app import cli
from app.case.config import Case
from app.case.gnn import GnnCase
from app.case.graph import GraphCase
from app.case.policy import PolicyCase, ProblemCase
from app.case.rgcn import RgcnCase
from app.checkpoint import store
from app.comm.group import Group
from app.device import HostDevice
from app.errors import CaseError
from app.gnn.archive import save_archive
from app.gnn.model import Model
from app.gnn.rgcn.saved import ARCHITECTURE, load_rgcn
from app.gnn.saved import SavedModel, load_model, save_model
from app.graphs.covering import COVERAGE, COVERING
from app.graphs.formats.planetoid import read_planetoid
from app.graphs.formats.readers import READERS, open_graph_set
from app.graphs.formats.source import Limits
from app.graphs.formats.tsplib import read_tour
from app.graphs.ids import name_array
from app.graphs.nodes.data import NodeTable
from app.graphs.nodes.files import open_edge_table, read_features, read_labels, read_splits
from app.graphs.nodes.keyed import Nodes
from app.graphs.nodes.weights import read_node_weights
from app.graphs.quadratic import QUADRATIC
from app.graphs.stream import EdgeStream
from app.graphs.triples.data import TEST, read_triples_npz
from app.graphs.triples.label_tables import read_label_tables
from app.graphs.triples.relational import relational_graph
from app.graphs.triples.text import read_triple_text
from app.model.defaults import DEFAULTS
from app.model.rates import load_calibration
from app.partition.cost import CostModel, parse_cost_model, read_text
from app.partition.edge_labels import EdgeTable, deal_edge_table
from app.partition.load import load_united
from app.partition.nodes import deal_node_table, load_node_data
from app.partition.streams import load_stream
from app.problems.mvc import MinimumVertexCover
from app.rl.qnet import QNetwork
from app.rl.weights import load_weights, save_weights
from app.search.routing.text import read_routes
from app.search.solution_text import nodes_text, read_nodes, read_order, read_sides
from app.search.steiner.text import read_tree
from app.tasks.studies.answers import read_catalogue

ROOT = Path(__file__).parent.parent
LIMITS = Limits(decompressed=64 << 20, npz=64 << 20)
LARGEST = 60_000  # bytes of a real file that is taken
N = 12  # nodes of the small graphs
CASE = Case(memory=Case().memory)


@dataclass(frozen=True)
class Sample:
    """Files by their names below a folder, and what the reader is given: one of them or a folder."""

    files: dict[str, bytes]
    main: str


@dataclass(frozen=True)
class Target:
    """A reader: reads what lies at a path or raises; the samples it is given damaged."""

    read: Callable[[str, random.Random], object]
    samples: Callable[[], list[Sample]]


@cache
def solo() -> Group:
    """This process alone."""
    return Group(MPI.COMM_SELF, HostDevice())


def one(name: str, data: bytes) -> Sample:
    """A sample of one file."""
    return Sample({name: data}, name)


def npz(**arrays: object) -> bytes:
    """The bytes of an archive."""
    file = io.BytesIO()
    np.savez_compressed(file, **{name: np.asarray(values) for name, values in arrays.items()})
    return file.getvalue()


def npy(array: np.ndarray) -> bytes:
    """The bytes of an .npy file."""
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def real(*patterns: str) -> list[Sample]:
    """Files of the collection that are small enough; none without one."""
    root = data_dir()
    found = [path for pattern in patterns for path in sorted(root.glob(pattern))] if root else []
    return [one(path.name, path.read_bytes()) for path in found if path.stat().st_size <= LARGEST]


# ---- graphs -----------------------------------------------------------------------------------------------

PAIRS = np.array([(i, (i * 5 + k) % N) for i in range(N) for k in (1, 3)])
EDGES = "".join(f"{u} {v}\n" for u, v in PAIRS).encode()
SMALL = {
    "g.txt": b"# c\n" + EDGES,
    "w.csv": b"source,target\n1,2,0.5\n3,4,1e3\n7,1,-2.25\n",
    "a.mtx": b"%%MatrixMarket matrix coordinate real symmetric\n% c\n4 4 3\n2 1 0.5\n3 1 -7\n4 3 1e2\n",
    "i.mtx": b"%%MatrixMarket matrix coordinate pattern general\n3 3 2\n1 2\n3 1\n",
    "r.mtx": b"%%MatrixMarket matrix array real general\n2 2\n0\n1\n1\n0\n",
    "d.col": b"c x\np edge 4 3\nn 1 5\ne 1 2\ne 2 3\ne 3 4\n",
    "p.gr": b"p td 4 3\n1 2\n2 3\n3 4\n",
    "m.graph": b"% c\n3 2 011 1\n4 2 1 3 1\n5 1 1\n6 1 1\n",
    "s.stp": b"33D32945 STP File, STP Format Version 1.0\nSECTION Comment\nName x\nEND\nSECTION Graph\n"
    b"Nodes 4\nEdges 3\nE 1 2 5\nE 2 3 1.5\nE 4 3 2\nEND\n"
    b"SECTION Terminals\nTerminals 2\nT 1\nT 4\nEND\nEOF\n",
    "G5": b"3 2\n1 2 1\n2 3 -1\n",
    "e.npz": npz(edges=PAIRS, weights=np.ones(len(PAIRS)), num_nodes=[N]),
    "c.npz": npz(indptr=[0, 1, 2], indices=[1, 0], shape=[2, 2]),
    "coo.npz": npz(row=[0, 1], col=[1, 0], shape=[2, 2], format=np.array(b"coo")),
    "t.tsp": b"NAME : t\nTYPE : TSP\nDIMENSION : 3\nEDGE_WEIGHT_TYPE : EUC_2D\nNODE_COORD_SECTION\n"
    b"1 0 0\n2 3 4.5\n3 1e1 -2\nEOF\n",
    "x.tsp": b"NAME: x\nTYPE: TSP\nDIMENSION: 3\nEDGE_WEIGHT_TYPE: EXPLICIT\nEDGE_WEIGHT_FORMAT: UPPER_ROW\n"
    b"EDGE_WEIGHT_SECTION\n1 2\n3\nEOF\n",
    "v.vrp": b"NAME : v\nTYPE : CVRP\nDIMENSION : 3\nEDGE_WEIGHT_TYPE : CEIL_2D\nCAPACITY : 9\n"
    b"NODE_COORD_SECTION\n1 0 0\n2 3 4.5\n3 1e1 -2\nDEMAND_SECTION\n1 0\n2 4\n3 5\n"
    b"DEPOT_SECTION\n1\n-1\nEOF\n",
    "w.vrp": b"TYPE : VRPTW\nDIMENSION : 2\nEDGE_WEIGHT_TYPE : FLOOR_2D\nCAPACITY : 9\nSERVICE_TIME : 2\n"
    b"NODE_COORD_SECTION\n1 0 0\n2 3 4.5\nDEMAND_SECTION\n1 0\n2 4\n"
    b"TIME_WINDOW_SECTION\n1 0 40\n2 5 20\nDEPOT_SECTION\n1\n-1\nEOF\n",
    "l.vrp": b"TYPE : CVRP\nDIMENSION : 2\nEDGE_WEIGHT_TYPE : EUC_2D\nCAPACITY : 9\nDISTANCE : 50.5\n"
    b"NODE_COORD_SECTION\n1 0 0\n2 3 4.5\nDEMAND_SECTION\n1 0\n2 4\nSERVICE_TIME_SECTION\n1 0\n2 5\n"
    b"DEPOT_SECTION\n1\n-1\nEOF\n",
    "C2.txt": b"C2\n\nVEHICLE\nNUMBER CAPACITY\n 3 20\n\nCUSTOMER\nCUST NO. XCOORD. YCOORD. DEMAND READY\n\n"
    b" 0 35 35 0 0 230 0\n 1 41 49 10 0 204.5 10\n",
}  # fmt: skip
FORMATS = {
    "t": "edges", "w": "edges", "a": "matrix_market", "d": "dimacs", "m": "metis", "G": "gset", "e": "npz",
}  # fmt: skip


@cache
def graph_samples() -> list[Sample]:
    """Small graphs of every format, some of them packed, and real ones."""
    packers = {"gz": lambda data: gzip.compress(data, mtime=0), "bz2": bz2.compress, "xz": lzma.compress}
    packed = [one(f"g.txt.{suffix}", pack(SMALL["g.txt"])) for suffix, pack in packers.items()]
    packed.append(one("d.col.gz", packers["gz"](SMALL["d.col"])))
    small = [one(name, data) for name, data in SMALL.items()]
    return small * 3 + packed * 3 + real("formats/*", "mvc/*", "maxcut/*", "tsp/*.tsp")


def read_graph(path: str, draw: random.Random) -> None:
    """The rows of a graph, and node data in its archive."""
    kind = "auto" if draw.random() < 0.8 else draw.choice(list(READERS))
    table = GraphCase(path=[path], format=kind, complement=draw.random() < 0.02)
    loaded = load_united(solo(), table, CASE)
    if path.endswith(".npz"):
        load_node_data(solo(), table, loaded, CASE)


@cache
def named_samples() -> list[Sample]:
    """Edge lists of names, in every form."""
    tabs = "".join(f"node {u}\tå {v}\t{u - v}.5\n" for u, v in PAIRS)
    quoted = "".join(f'"{u}, ""x""",{v}é\n' for u, v in PAIRS)
    return [
        one("g.txt", EDGES), one("g.tsv", tabs.encode()), one("g.csv", b"source,target\n" + quoted.encode()),
        one("g.txt.gz", gzip.compress(tabs.encode(), mtime=0)), one("w.csv", SMALL["w.csv"]),
    ]  # fmt: skip


def read_named(path: str, _: random.Random) -> None:
    """The rows of a graph of names, which are written as a solution and read again."""
    graph = load_united(solo(), GraphCase(path=[path], ids="names", format="edges"), CASE).graph
    again = Path(path).with_name("solution")
    again.write_text(nodes_text(np.ones(graph.n, bool), graph.ids), encoding="utf-8")
    assert read_nodes(str(again), graph.ids).all()


FAMILY = {
    "a.sets": b"# c\nA: 1 2 3\nB: 3, 4\n4 5 6\n", "b.sets": b"10 20\n7: 30 10\n",
    "c.gmt": "S1\tx\tå\tb\nS2\t\tb\tc d\n".encode(),
    "d.hgr": b"% c\n3 4 11\n2 1 2\n1 2 3\n5 3 4\n1\n2\n3\n4\n",
    "e.hgr": b"c x\np hs 4 3\n1 2\n2 3\n3 4\n", "f.scp": b"3 2\n5 7\n1 1\n2 1 2\n1 2\n",
    "g.scp": b"3 2\n5 2 1 2\n7 2 2 3\n", "p.txt": EDGES,
}  # fmt: skip
TERMS = {"q.qubo": b"c x\np qubo 0 4 2 2\n0 0 -3\n1 1 2.5\n0 1 4\n1 3 -1e2\n", "w.csv": SMALL["w.csv"]}


@cache
def disguised_samples() -> list[Sample]:
    """Families of sets and quadratic functions, of every format."""
    packed = one("a.sets.gz", gzip.compress(FAMILY["a.sets"], mtime=0))
    return [one(name, data) for name, data in (FAMILY | TERMS).items()] + [packed]


def read_disguised(path: str, draw: random.Random) -> None:
    """The rows of the graph that sets or terms stand for."""
    terms = Path(path).name[0] in "qw"
    name = draw.choice(QUADRATIC if terms else (*COVERING, COVERAGE))
    table = GraphCase(path=[path], ids="numbers" if draw.random() < 0.7 else "names")
    load_united(solo(), table, Case(memory=CASE.memory, problem=ProblemCase(name)))


def read_graph_set(path: str, _: random.Random) -> None:
    """All graphs of an archive."""
    open_graph_set(path, LIMITS)


@cache
def set_samples() -> list[Sample]:
    """Archives of several graphs."""
    small = npz(nodes=[2, 1], nnz=[2, 0], indptr=[0, 1, 2, 0, 0], indices=[1, 0], best_cover=[1, -1])
    return [one("s.npz", small), one("s.npz", npz(nodes=[3], nnz=[2], indptr=[0, 1, 2, 2], indices=[1, 0]))]


# ---- folders ----------------------------------------------------------------------------------------------


@cache
def ogb_samples() -> list[Sample]:
    """A folder as OGB makes it, packed, not packed, and of arrays."""
    texts = {
        "raw/edge": "".join(f"{u},{v}\n" for u, v in PAIRS),
        "raw/num-node-list": f"{N}\n",
        "raw/node-feat": "".join(f"{i}.5,-1e-2,0\n" for i in range(N)),
        "raw/node-label": "".join(f"{i % 3}\n" for i in range(N)),
        "split/time/train": "0\n1\n2\n", "split/time/valid": "3\n4\n", "split/time/test": "5\n6\n",
    }  # fmt: skip
    plain = {f"ogb/{name}.csv": text.encode() for name, text in texts.items()}
    packed = {f"{name}.gz": gzip.compress(data, mtime=0) for name, data in plain.items()}
    data = npz(edge_index=PAIRS.T, num_nodes_list=[N], num_edges_list=[len(PAIRS)], node_feat=np.ones((N, 3)))
    labels = npz(node_label=np.where(np.arange(N) == 7, np.nan, np.arange(N) % 3)[:, None])
    arrays = {"ogb/raw/data.npz": data, "ogb/raw/node-label.npz": labels}
    arrays |= {name: text for name, text in packed.items() if "split" in name}
    return [Sample(plain, "ogb"), Sample(packed, "ogb"), Sample(arrays, "ogb")]


@cache
def ppi_samples() -> list[Sample]:
    """A folder of graphs as DGL has PPI."""
    files = {}
    for mode, n in (("train", 6), ("valid", 3), ("test", 4)):
        graph = {"nodes": [{"id": i} for i in range(n)]}
        graph["links"] = [{"source": i, "target": (i + 1) % n} for i in range(n)]
        files[f"ppi/{mode}_graph.json"] = json.dumps(graph).encode()
        files[f"ppi/{mode}_feats.npy"] = npy(np.arange(4.0 * n).reshape(n, 4))
        files[f"ppi/{mode}_labels.npy"] = npy(np.arange(2 * n).reshape(n, 2) % 2)
    return [Sample(files, "ppi")]


@cache
def graphsage_samples() -> list[Sample]:
    """The files of GraphSAGE, links by positions and by ids."""
    ids = [f"n{i}" for i in range(N)]
    nodes = [{"id": name, "val": i % 3 == 1, "test": i % 3 == 2} for i, name in enumerate(ids)]
    rows = {name: N - 1 - i for i, name in enumerate(ids)}
    found = []
    for ends, width in ((PAIRS.tolist(), 0), ([[ids[u], ids[v]] for u, v in PAIRS], 2)):
        graph = {"nodes": nodes, "links": [{"source": u, "target": v} for u, v in ends]}
        classes = {name: [i % 2] * width or i % 2 for i, name in enumerate(ids)}
        files = {"-G": graph, "-id_map": rows, "-class_map": classes}
        texts = {f"graphsage/x{name}.json": json.dumps(each).encode() for name, each in files.items()}
        found.append(Sample(texts | {"graphsage/x-feats.npy": npy(np.ones((N, 3)))}, "graphsage/x-G.json"))
    return found


def read_together(path: str, _: random.Random) -> None:
    """Graph and node data of a file and of those beside it."""
    table = GraphCase(path=[path], format=Path(path).parent.name)
    load_node_data(solo(), table, load_united(solo(), table, CASE), CASE)


def read_folder(path: str, _: random.Random) -> None:
    """Graph and node data of a folder."""
    table = GraphCase(path=[path], format=Path(path).name)
    load_node_data(solo(), table, load_united(solo(), table, CASE), CASE)


@cache
def planetoid_samples() -> list[Sample]:
    """Planetoid's files: pickles, which are read without being run. Small ones, and Cora's."""
    X, y = csr_matrix(np.arange(5.0 * N).reshape(N, 5) % 3), np.eye(3, dtype=np.int32)[np.arange(N) % 3]
    parts = {"x": X[:4], "y": y[:4], "allx": X[:8], "ally": y[:8], "tx": X[8:], "ty": y[8:]}
    parts["graph"] = {node: [(node + 1) % N] for node in range(N)}
    files = {f"ind.x.{name}": pickle.dumps(part, protocol=2) for name, part in parts.items()}
    files["ind.x.test.index"] = "".join(f"{node}\n" for node in range(8, N)).encode()
    root = data_dir()
    if root is None:
        return [Sample(files, ".")]
    cora = {path.name: path.read_bytes() for path in (root / "gnn" / "planetoid").iterdir()}
    return [Sample(files, "."), Sample(files, "."), Sample(cora, ".")]


def read_planetoid_folder(path: str, _: random.Random) -> None:
    """The arrays of a converted folder."""
    read_planetoid(path, "x" if Path(path, "ind.x.graph").exists() else "cora")


# ---- files beside a graph ---------------------------------------------------------------------------------


@cache
def ring():
    """A loaded graph of N nodes."""
    chunk = (PAIRS[:, 0].copy(), PAIRS[:, 1].copy(), None)
    stream = EdgeStream("ring", "", "generated", N, 0, False, lambda stream: iter([chunk]))
    return load_stream(solo(), stream, GraphCase(), CASE)


@cache
def feature_samples() -> list[Sample]:
    """Features in every form."""
    X = np.arange(3.0 * N).reshape(N, 3)
    text = "".join(" ".join(map(str, row)) + "\n" for row in X).encode()
    csr = {"indptr": np.arange(N + 1), "indices": np.arange(N) % 3, "shape": [N, 3]}
    return [
        one("x.npy", npy(X)), one("x.npy", npy(X.astype(np.float32))), one("x.txt", text),
        one("x.csv", text.replace(b" ", b",")), one("x.npz", npz(features=X)), one("x.npz", npz(feature=X)),
        one("x.npz", npz(**csr, data=np.ones(N))),
        one("x.npz", npz(**csr, format=np.array(b"csr"), data=np.ones(N))),
        one("x.txt.gz", gzip.compress(text, mtime=0)),
    ]  # fmt: skip


@cache
def label_samples() -> list[Sample]:
    """Labels in every form."""
    y = np.arange(N) % 3
    several = np.eye(3, dtype=np.int64)[y]
    return [
        one("y.npy", npy(y)), one("y.npy", npy(several)), one("y.npz", npz(labels=y)),
        one("y.npz", npz(label=y)),
        one("y.txt", "".join(f"{each}\n" for each in y).encode()),
        one("y.csv", "".join(",".join(map(str, row)) + "\n" for row in several).encode()),
        one("y.txt", "".join(f"{name}\n" for name in np.array(['"a, b"', "none", "ö ä"])[y]).encode()),
    ]  # fmt: skip


@cache
def value_samples() -> list[Sample]:
    """Numbers to be predicted in every form."""
    y = np.arange(N) / 4 - 3
    return [
        one("y.npy", npy(y)), one("y.npy", npy(np.stack([y, -y], axis=1))), one("y.npz", npz(labels=y)),
        one("y.txt", "".join(f"{each}\n" for each in y).encode()),
        one("y.csv", "".join(f"{each},{-each}\n" for each in y).encode()),
    ]  # fmt: skip


@cache
def split_samples() -> list[Sample]:
    """Splits in every form."""
    mask = np.arange(N) % 3
    names = ("train", "val", "test")
    return [
        one("s.npz", npz(**{f"{name}_mask": mask == at for at, name in enumerate(names)})),
        one("s.npz", npz(**{f"{name}_idx": np.flatnonzero(mask == at) for at, name in enumerate(names)})),
        one("s.npz", npz(node_types=mask + 1)),
        one("s.txt", "".join(f"{names[at]}\n" for at in mask).encode()),
    ]


def read_beside(part: str, read: Callable[[str], object]) -> Callable[[str, random.Random], None]:
    """A reader of one part of a node table, dealt to the rows of `ring`."""

    def dealt(path: str, _: random.Random) -> None:
        deal_node_table(solo(), NodeTable(**{part: read(path)}), ring())

    return dealt


NAMES = name_array([f"å {i}".encode() for i in range(N)])


@cache
def keyed_samples() -> list[Sample]:
    """A line of numbers for each node by name, in another order."""
    tabs, commas = ("".join(f"å {i}{between}{i},1,0.5\n" for i in reversed(range(N))) for between in "\t,")
    return [one("x.txt", tabs.encode()), one("x.csv", commas.encode())]


def read_keyed(path: str, _: random.Random) -> None:
    """Features by name, dealt to the rows of `ring`."""
    features = read_features(path, LIMITS, Nodes(NAMES, "ring"))
    deal_node_table(solo(), NodeTable(features=features), ring())


@cache
def edge_label_samples() -> list[Sample]:
    """Classes of the edges of `ring`, by the ids of both ends."""
    rows = [(v, u, f"kind {'abc'[u % 3]}" if u % 5 else "-1") for u, v in PAIRS.tolist()]
    texts = ("".join(between.join(map(str, row)) + "\n" for row in rows[::-1]) for between in "\t,")
    return [one("y.txt", text.encode()) for text in texts]


def read_edge_labels(path: str, _: random.Random) -> None:
    """Classes by both ends, dealt to the rows of `ring`."""
    nodes = Nodes(np.arange(N), "ring")
    found = open_edge_table(None, path, "", LIMITS, False, nodes, lambda: N)
    deal_edge_table(solo(), EdgeTable(*found), ring(), CASE)


@cache
def node_weight_samples() -> list[Sample]:
    """A weight for each node, as lines and as an array."""
    lines = "".join(f"{7 * i + 3} {i % 5}.5\n" for i in range(N))
    return [
        one("w.txt", f"# ids\n{lines}".encode()), one("w.txt", lines.replace(" ", ", ").encode()),
        one("w.npy", npy(np.arange(N, dtype=np.float32))), one("w.npy", npy(np.arange(N))),
    ]  # fmt: skip


def read_weights_of_nodes(path: str, _: random.Random) -> None:
    """Weights of nodes with ids of their own."""
    weights, _ = read_node_weights(path, LIMITS, 7 * np.arange(N) + 3, "ring")
    assert weights.shape == (N,) and np.isfinite(weights).all() and (weights >= 0).all()


# ---- knowledge graphs -------------------------------------------------------------------------------------


@cache
def triple_samples() -> list[Sample]:
    """Archives of triples and labels."""
    arrays = {
        "triples": np.array([[0, 0, 1], [1, 1, 2]], dtype=np.int32), "num_nodes": [3], "num_relations": 2,
        "train_idx": [0], "train_label": [1], "test_idx": [2], "test_label": [0],
        "relation_names": np.array(["p", "q"]),
    }  # fmt: skip
    val = {"val_idx": [1], "val_label": [1]}
    held = {"test_triples": np.array([[2, 0, 0]], dtype=np.uint8)}
    return [
        one("t.npz", npz(**arrays)),
        one("t.npz", npz(**arrays, **val)),
        one("t.npz", npz(**arrays, **held)),
    ]


def read_triples(path: str, _: random.Random) -> None:
    """Triples, and the graph of them."""
    triples, _ = read_triples_npz(path, LIMITS)
    relational_graph(triples)


@cache
def ntriples_samples() -> list[Sample]:
    """N-Triples, or a table of triples, beside two tables of labels."""
    text = b'<x> <p> <y> .\n<z> <p> <w> . # c\n_:b <q> "l\\u0041\\""@en .\n<x> <q> "1"^^<int> .\n'
    tables = {"train.tsv": b"person\tid\tlabel_group\nx\t1.0\tb\n", "test.tsv": b"id\tlabel\tnode\n3\tb\ty\n"}
    packed = {"g.nt.gz": gzip.compress(text, mtime=0)}
    columns = {"g.tsv": b"x\tp\ty\nz\tp\tw\n\xc3\xa9 1\tq\tx\n"}
    return [
        Sample({"g.nt": text, **tables}, "g.nt"), Sample({**packed, **tables}, "g.nt.gz"),
        Sample({**columns, **tables}, "g.tsv"),
    ]  # fmt: skip


def read_ntriples_folder(path: str, _: random.Random) -> None:
    """Triples and labels."""
    triples, folder = read_triple_text(path, {TEST: path}, LIMITS), Path(path).parent
    read_label_tables(str(folder / "train.tsv"), str(folder / "test.tsv"), triples, LIMITS)
    relational_graph(triples)


# ---- archives of weights, and other files -----------------------------------------------------------------


def saved(kind: str, write: Callable[[str], object]) -> Sample:
    """A sample KIND.npz of what a function writes."""
    with tempfile.TemporaryDirectory() as folder:
        write(f"{folder}/weights.npz")
        data = Path(folder, "weights.npz").read_bytes()
    return one(f"{kind}.npz", data)


def drawn(shapes: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """Arrays of these shapes."""
    return {
        name: np.linspace(-1, 1, int(np.prod(s)), dtype=np.float32).reshape(s) for name, s in shapes.items()
    }


@cache
def weight_samples() -> list[Sample]:
    """weights.npz of all three kinds, under the names of their readers."""
    policy, gnn, rgcn = PolicyCase(layers=2, dimension=4, hidden=3), GnnCase(hidden=4), RgcnCase()
    shapes = {name: tuple(s) for name, s in QNetwork(policy, MinimumVertexCover()).shapes().items()}
    model = SavedModel(gnn, 5, np.array([0, 1, 4]), False, drawn(Model(gnn, 5, 3).shapes()))
    about = {"rgcn": {key: getattr(rgcn, key) for key in ARCHITECTURE}}
    about |= {"features": 3, "classes": 2, "edges": "", "note": ""}
    return [
        saved("policy", lambda path: save_weights(path, drawn(shapes), policy, "mvc", "a note")),
        saved("gnn", lambda path: save_model(path, model, "a note")),
        saved("rgcn", lambda path: save_archive(path, drawn({"first/W": (3, 4)}), "rgcn", about)),
    ]


def read_weights(path: str, draw: random.Random) -> None:
    """Weights, by the reader of any kind."""
    readers = {"policy": load_weights, "gnn": load_model, "rgcn": load_rgcn}
    name = Path(path).stem if draw.random() < 0.9 else draw.choice(sorted(readers))
    readers[name](path)


@cache
def text_samples() -> list[Sample]:
    """Tours, solutions, cost models, calibrations and catalogues."""
    ids = "".join(f"{i}\n" for i in range(N)).encode()
    cost = CostModel((4, 8), 16).text().encode()
    catalogue = (
        b'format_version = 1\n[[file]]\npath = "mvc/a.gr"\nbest_value = 3\n[[file]]\npath = "tsp/b.tsp"\n'
    )
    tour = b"NAME : t\nTYPE : TOUR\nDIMENSION : 3\nTOUR_SECTION\n1\n3\n2\n-1\nEOF\n"
    return [
        one("a.tour", tour), one("a.nodes", ids), one("a.order", ids), one("a.cost", cost),
        one("a.sides", "".join(f"{i} {i % 2}\n" for i in range(N)).encode()), one("a.toml", catalogue),
        one("a.tree", "".join(f"{i} {i + 1}\n" for i in range(N - 1)).encode()),
        one("a.routes", b"Route #1: 1 2 3 4\nRoute #2: 5 6\nRoute #3: 7 8 9 10 11\nCost 12\n"),
        one("a.rates", msgspec.json.encode(DEFAULTS)),
        *real("tsp/*.tour"),
    ]  # fmt: skip


def read_other(path: str, _: random.Random) -> None:
    """By its ending."""
    ids = np.arange(N)
    match Path(path).suffix:
        case ".nodes":
            read_nodes(path, ids)
        case ".sides":
            read_sides(path, ids)
        case ".order":
            read_order(path, ids)
        case ".tree":
            read_tree(path, ids)
        case ".routes":
            read_routes(path, ids, 3)
        case ".cost":
            parse_cost_model(read_text(path), path)
        case ".rates":
            load_calibration(path)
        case ".toml":
            read_catalogue(path, ["mvc", "tsp"])
        case _:
            read_tour(path, LIMITS)


# ---- checkpoints ------------------------------------------------------------------------------------------


@cache
def checkpoint_samples() -> list[Sample]:
    """A folder with a checkpoint."""
    parts = {"train": store.State({"step": 3}, {"W": np.ones((2, 3), np.float32), "ids": np.arange(4)})}
    own = ("format", "lockstep", "step", "files")
    about = {name: kind() for name, kind in store.FIELDS.items() if name not in own}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(store.write(folder, 12, parts, about, 2))
        files = {f"checkpoint/{path.name}/{each.name}": each.read_bytes() for each in path.iterdir()}
    return [Sample(files, "checkpoint")]


def read_checkpoint(path: str, draw: random.Random) -> None:
    """The newest valid checkpoint; half of the damaged ones get sizes and sums that fit."""
    if draw.random() < 0.5:
        seal(Path(path, "step-000012"))
    found, skipped = store.newest(path)
    if found is None:
        raise CaseError("; ".join(skipped) or "none there")


def seal(folder: Path) -> None:
    """Make the sums of a manifest those of what is there, where it can still be read as JSON."""
    state, manifest = folder / store.STATE, folder / store.MANIFEST
    try:
        body = json.loads(manifest.read_bytes())
        body.pop("sha256")
        body["files"][store.STATE] = {"bytes": state.stat().st_size, "sha256": store.file_digest(str(state))}
        manifest.write_text(store.manifest_text(body))
    except (ValueError, KeyError, TypeError, AttributeError, OSError):
        return


# ---- cases ------------------------------------------------------------------------------------------------


@cache
def case_samples() -> list[Sample]:
    """The cases that ship."""
    return [one("case.toml", path.read_bytes()) for path in sorted((ROOT / "inputs").glob("*.toml"))]


OVERRIDES = (
    "seed=3", "train.steps=0", "graph.nodes=[5,4]", "graph.path=nowhere", "run.out=\x1b[2J", "a.b.c=1", "=",
    "x",
    "graph.path=*", 'search.start="learned"', "gnn.layers=['gcn 8']", "study.seeds=[]", "run.task=train",
    "train.graphs.nodes=1e400", "policy.weights=train", "--overwrite", "--dry", "--out=", "--device=gpu",
    "graph.path=\x00", "memory.fast_mb=nan",
)  # fmt: skip


def read_case(path: str, draw: random.Random) -> None:
    """A command line with the case."""
    cli.parse([path, *draw.sample(OVERRIDES, draw.choice((0, 0, 1, 3)))])


TARGETS = {
    "graph": Target(read_graph, graph_samples),
    "named": Target(read_named, named_samples),
    "features_by_name": Target(read_keyed, keyed_samples),
    "edge_labels_by_ends": Target(read_edge_labels, edge_label_samples),
    "disguised": Target(read_disguised, disguised_samples),
    "graph_set": Target(read_graph_set, set_samples),
    "ogb": Target(read_folder, ogb_samples),
    "ppi": Target(read_folder, ppi_samples),
    "graphsage": Target(read_together, graphsage_samples),
    "planetoid": Target(read_planetoid_folder, planetoid_samples),
    "features": Target(read_beside("features", lambda path: read_features(path, LIMITS)), feature_samples),
    "labels": Target(read_beside("labels", lambda path: read_labels(path, LIMITS)), label_samples),
    "values": Target(
        read_beside("labels", lambda path: read_labels(path, LIMITS, values=True)), value_samples
    ),
    "splits": Target(read_beside("splits", lambda path: read_splits(path, N, LIMITS)), split_samples),
    "node_weights": Target(read_weights_of_nodes, node_weight_samples),
    "triples": Target(read_triples, triple_samples),
    "ntriples": Target(read_ntriples_folder, ntriples_samples),
    "weights": Target(read_weights, weight_samples),
    "other": Target(read_other, text_samples),
    "checkpoint": Target(read_checkpoint, checkpoint_samples),
    "case": Target(read_case, case_samples),
}
