"""Reading a graph file to rows of its adjacency matrix, beside NumPy and SciPy, on one core.

    python bench/reading.py FILE [--ids names] [--neighbours out]      one file, as a run reads it

Both sides end with a symmetric CSR matrix without loops and repeats, nodes numbered from 0 in the order of
their ids. Ours checks every line as well.
"""

import argparse
import gzip
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import scipy.io
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).parent.parent))
from app import threads

threads.limit_threads()

from app.graphs.formats.readers import open_edges  # noqa: E402
from app.graphs.whole import whole_graph  # noqa: E402
from app.partition.assemble import build  # noqa: E402
from app.rng import stream  # noqa: E402
from bench.harness import Effort, Record, compare  # noqa: E402
from bench.subjects import open_group  # noqa: E402

NODES, EDGES = 200_000, 1_000_000
LOADTXT, MMREAD, LINES = "numpy.loadtxt", "scipy.io.mmread", "Python, line by line"


def about() -> dict[str, str]:
    """Versions that matter."""
    return {"numpy": np.__version__, "scipy": scipy.__version__}


def measure(effort: Effort, quick: bool) -> Iterator[Record]:
    """One ratio for each kind of file."""
    n, m = (NODES // 10, EDGES // 10) if quick else (NODES, EDGES)
    with tempfile.TemporaryDirectory() as folder:
        for name, against, path, theirs in _cases(Path(folder), n, m):
            ours = partial(_ours, str(path), "names" if name == "names" else "numbers")
            if ours(0).edges != theirs().nnz // 2:
                raise AssertionError(f"{name}: {ours(0).edges} edges, {against} has {theirs().nnz // 2}")
            note = f"{n:,} nodes, {m:,} lines, {path.stat().st_size / 1e6:.1f} MB"
            yield compare(name, against, ours, lambda _, of=theirs: of(), effort, ">= 1", note)


def _ours(path: str, ids: str, _: int) -> Any:
    return whole_graph(open_edges(path, ids=ids))[0]


def _cases(folder: Path, n: int, m: int) -> Iterator[tuple[str, str, Path, Callable[[], sp.csr_matrix]]]:
    """What a file is, what else reads it, where it is, and that."""
    draws = stream(1, "bench/reading")
    # Every node has an edge, so that numbers are ids and ids are numbers.
    u = np.concatenate([np.arange(n), draws.integers(0, n, m - n)])
    v = (u + draws.integers(1, n, m)) % n
    w = draws.integers(1, 1_000_000, m)

    def write(name: str, head: str, form: Callable[..., str], *columns: np.ndarray) -> Path:
        text = head + "".join(map(form, *(each.tolist() for each in columns)))
        path = folder / name
        path.write_bytes(gzip.compress(text.encode(), 6) if name.endswith(".gz") else text.encode())
        return path

    plain = write("plain.txt", "", "{} {}\n".format, u, v)
    yield "two ids a line", LOADTXT, plain, lambda: _matrix(*np.loadtxt(plain, dtype=np.int64).T)
    packed = write("packed.txt.gz", "", "{} {}\n".format, u, v)
    yield "packed by gzip", LOADTXT, packed, lambda: _matrix(*np.loadtxt(packed, dtype=np.int64).T)
    commas = write("commas.csv", "", "{},{}\n".format, u, v)
    yield (
        "commas", LOADTXT, commas, lambda: _matrix(*np.loadtxt(commas, dtype=np.int64, delimiter=",").T)
    )  # fmt: skip
    whole = write("whole.txt", "", "{} {} {}\n".format, u, v, w)
    yield "whole weights", LOADTXT, whole, lambda: _matrix(*np.loadtxt(whole, dtype=np.int64).T)
    decimals = write("decimals.txt", "", lambda a, b, c: f"{a} {b} {c / 1e6:.6f}\n", u, v, w)
    yield "decimal weights", LOADTXT, decimals, lambda: _matrix(*np.loadtxt(decimals).T)
    head = f"%%MatrixMarket matrix coordinate real general\n{n} {n} {m}\n"
    market = write("market.mtx", head, lambda a, b, c: f"{a + 1} {b + 1} {c / 1e6:.6f}\n", u, v, w)
    yield "Matrix Market", MMREAD, market, lambda: _symmetric(scipy.io.mmread(market))
    rows = _matrix(u, v)
    metis = folder / "rows.graph"
    lists = np.split(rows.indices + 1, rows.indptr[1:-1])
    metis.write_text(f"{n} {rows.nnz // 2}\n" + "".join(" ".join(map(str, r.tolist())) + "\n" for r in lists))
    yield "METIS", LINES, metis, partial(_read_metis, metis)
    names = write("names.tsv", "", "gene{}\tgene{}\n".format, u, v)
    yield "names", LINES, names, partial(_read_names, names)


def _matrix(u: np.ndarray, v: np.ndarray, w: np.ndarray | None = None) -> sp.csr_matrix:
    """The adjacency matrix of edges u[i]-v[i]."""
    n = int(max(u.max(), v.max())) + 1
    values = np.ones(len(u)) if w is None else w
    return _symmetric(sp.coo_matrix((values, (u.astype(np.int64), v.astype(np.int64))), (n, n)))


def _symmetric(matrix: sp.coo_matrix) -> sp.csr_matrix:
    """The larger of the entries in both directions."""
    one = matrix.tocsr()
    return one.maximum(one.T.tocsr())


def _read_metis(path: Path) -> sp.csr_matrix:
    with open(path) as file:
        n = int(file.readline().split()[0])
        rows = [[int(field) - 1 for field in line.split()] for line in file]
    indptr = np.cumsum([0, *map(len, rows)])
    columns = np.array([each for row in rows for each in row])
    return sp.csr_matrix((np.ones(len(columns)), columns, indptr), (n, n))


def _read_names(path: Path) -> sp.csr_matrix:
    numbers: dict[str, int] = {}
    with open(path) as file:
        ends = [
            numbers.setdefault(name, len(numbers)) for line in file for name in line.rstrip("\n").split("\t")
        ]
    place = np.empty(len(numbers), dtype=np.int64)
    place[[numbers[name] for name in sorted(numbers)]] = np.arange(len(numbers))
    return _matrix(*place[np.array(ends)].reshape(-1, 2).T)


def main() -> None:
    """Read one file as a run does, on one rank: processor seconds, and MB above those of the libraries."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("file")
    parser.add_argument("--ids", default="numbers", help="names: of an edge list")
    parser.add_argument("--neighbours", default="both", help="in, out: of a directed graph")
    asked = parser.parse_args()
    group, before = open_group(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.process_time()
    edges = open_edges(asked.file, ids=asked.ids)
    graph = build(group, edges, 0, None, "rows", edges.part is not None, asked.neighbours).graph
    spent = time.process_time() - begun
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"{graph.n} nodes, {graph.edges} edges: {spent:.2f} s, {memory:.0f} MB")


if __name__ == "__main__":
    main()
