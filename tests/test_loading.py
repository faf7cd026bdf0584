"""Graphs from files on any number of ranks: read by parts, kept for the next run, within their memory."""

import re
import subprocess
import sys
import time
from dataclasses import fields, replace

import numpy as np
import pytest
from jobs import ROOT, mpirun, run_job
from mpi4py import MPI

from app import stopping
from app.case.config import Case
from app.case.gnn import GnnCase
from app.case.graph import GraphCase
from app.case.run import MemoryCase, RunCase
from app.device import HostDevice
from app.errors import GraphError, Halted
from app.graphs.formats import parts
from app.graphs.formats.readers import open_edges
from app.log import Log
from app.partition import generated, streams
from app.partition.assemble import assemble, gather_whole
from app.partition.deal import read_part
from app.partition.load import load_graphs, load_united
from app.partition.whole import whole_of
from app.tasks import context

WORLD = MPI.COMM_WORLD


@pytest.fixture
def device():
    """Nothing here leaves the host."""
    return HostDevice()


@pytest.fixture
def any_size(monkeypatch):
    """Files of every size are read by parts, in small pieces."""
    monkeypatch.setattr(parts, "LEAST_BYTES", 0)
    monkeypatch.setattr(parts, "PIECE_BYTES", 50)
    monkeypatch.setattr(parts, "BLOCK_BYTES", 3)


def write(group, path, text):
    """`text` in a file that all ranks see."""
    if group.rank == 0:
        path.write_bytes(text.encode() if isinstance(text, str) else text)
    group.barrier()
    return str(path)


def bits(graph):
    """Every field of a graph, arrays as dtype and bytes."""
    values = (getattr(graph, field.name) for field in fields(graph))
    return [(v.dtype.str, v.tobytes()) if isinstance(v, np.ndarray) else v for v in values]


def first_reads(group, path, **options):
    """Rank 0 reads and deals."""
    return assemble(group, open_edges(path) if group.rank == 0 else None, **options)


def lines_of(edges, end="\n"):
    return "".join(f"{u} {v}{end}" for u, v in edges)


EDGES = np.random.default_rng(5).integers(1, 60, (300, 2)).tolist()
COUNTED = f"%%MatrixMarket matrix coordinate pattern general\n% c\n60 60 300\n{lines_of(EDGES)}"
LETTERS = "c x\np edge 60 300\n" + "".join(f"e {u} {v}\n" for u, v in EDGES)
FILES = {
    "plain.txt": lines_of(EDGES),
    "no last newline.txt": lines_of(EDGES)[:-1],
    "cr.txt": "# head\r\n" + lines_of(EDGES, "\r\n"),
    "bom.txt": "\ufeff" + lines_of(EDGES),
    "title.txt": "source target\n" + lines_of(EDGES),
    "comments.txt": "# a\n\n" + lines_of(EDGES[:150]) + "# 1 2\n % b\n  \n" + lines_of(EDGES[150:]),
    "far ids.txt": lines_of([(u * 10**11, v) for u, v in EDGES]),
    "weights.txt": "".join(f"{u} {v} {u / 4}\n" for u, v in EDGES),
    "long weights.txt": "".join(f"{u} {v} {2**24 + u}\n" for u, v in EDGES),
    "commas.csv": lines_of(EDGES).replace(" ", ","),
    "long ids.txt": "".join(f"{u:030d} {v}\n" for u, v in EDGES),
    "one.txt": "3 4",
    "two.txt": "3 4\n4 5\n",
    "m.mtx": COUNTED,
    "d.col": LETTERS,
    "half.col": LETTERS.replace(" 300", " 600"),
    "weighed.col": LETTERS + "n 3 7\n",
    "bare.gr": LETTERS.replace("\ne ", "\n"),
}


@pytest.mark.parametrize("name", FILES)
def test_parts_are_the_whole_file(group, shared_path, any_size, name, monkeypatch):
    path = write(group, shared_path / name, FILES[name])
    stream = open_edges(path)
    assert stream.part is not None
    wanted = first_reads(group, path)
    found = assemble(group, stream, parts=True)
    assert bits(found[0]) == bits(wanted[0])
    assert np.array_equal(found[1].cuts, wanted[1].cuts) and found[2] == wanted[2]
    read = read_part(group, open_edges(path), stream.weighted)
    assert (read is None) == (name in ("half.col", "weighed.col", "long weights.txt"))
    item = load_graphs(group, GraphCase(path=path), "x", Case())[0]
    assert bits(item.graph) == bits(wanted[0]) and item.source == "file"
    if group.rank == 0:
        assert len(item.warnings) == (name in ("title.txt", "half.col", "long weights.txt"))


@pytest.mark.parametrize("size", [1, 2, 3, 7, 400])
@pytest.mark.mpi_skip
def test_every_line_is_in_one_part(tmp_path, any_size, size):
    for name, text in FILES.items():
        path = tmp_path / name
        path.write_bytes(text.encode())
        whole = open_edges(str(path))
        if name in ("half.col", "weighed.col", "long weights.txt"):
            continue
        found = [chunk for rank in range(size) for chunk in whole.part(whole, rank, size)]
        wanted = list(whole.chunks())
        for column in (0, 1):
            assert np.array_equal(
                np.concatenate([chunk[column] for chunk in found]),
                np.concatenate([chunk[column] for chunk in wanted]),
            ), name


FAULTS = {
    "negative.txt": (lines_of(EDGES) + "3 -4\n5 6\n", ":301: found a negative node id"),
    "early.txt": ("1 2\nx y\n" + lines_of(EDGES) + "3 -4\n", ":2: found a node id that is no integer"),
    "nul.txt": (lines_of(EDGES) + "3 \0\n", ":301: found a NUL byte"),
    "fields.txt": (lines_of(EDGES) + "# c\n3 4 5\n", ":302: found 3 fields where 2 are expected"),
    "more.mtx": (COUNTED + "1 1\n", ":304: found more than 300 edge lines"),
    "fewer.mtx": (COUNTED[:-6], ":3: the header states 300 entries, found 299"),
    "outside.mtx": (COUNTED.replace(" 300", " 301") + "61 1\n", ":304: found node id 61 outside 1..60"),
    "lines.col": (LETTERS.replace(" 300", " 301"), ":2: the p line states 301 edges, found 300 edge lines"),
    "letter.col": (LETTERS + "z 1\n", ":303: found 'z 1'; an edge line"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_named_with_their_line_on_all_ranks(group, shared_path, any_size, name):
    text, message = FAULTS[name]
    path = write(group, shared_path / name, text)
    with pytest.raises(GraphError) as caught:
        load_graphs(group, GraphCase(path=path), "x", Case())
    assert f"{name}{message}" in str(caught.value)
    assert len(set(WORLD.allgather(str(caught.value)))) == 1


def test_a_file_that_one_rank_does_not_find_is_dealt(group, shared_path, any_size, monkeypatch):
    path = write(group, shared_path / "g.txt", FILES["plain.txt"])
    wanted = first_reads(group, path)[0]

    def elsewhere(name, *rest, **more):
        if group.rank == group.size - 1 > 0:
            raise GraphError("no such file")
        return open_edges(name, *rest, **more)

    monkeypatch.setattr(streams, "open_edges", elsewhere)
    source, everywhere = streams.open_stream(group, GraphCase(path=path), [path], 10**9)
    assert everywhere == (group.size == 1) and (source is None) == (group.rank > 0 and not everywhere)
    assert bits(load_graphs(group, GraphCase(path=path), "x", Case())[0].graph) == bits(wanted)


def test_files_that_differ_are_not_read_by_parts(group, shared_path, any_size, monkeypatch):
    path = write(group, shared_path / "g.txt", FILES["plain.txt"])
    monkeypatch.setattr(streams, "trace", lambda name: [1, 2, group.rank])
    assert streams.open_stream(group, GraphCase(path=path), [path], 10**9)[1] == (group.size == 1)


@pytest.mark.parametrize("family", ["rmat", "rmat_natural", "chung_lu"])
def test_generated_parts_are_the_whole_graph(group, solo, monkeypatch, family):
    monkeypatch.setattr(generated, "MADE_BY_ALL", 0)
    table = GraphCase(generator=family, nodes=700, d=3, count=2)
    loaded, alone = (load_graphs(each, table, "instances", Case(seed=4)) for each in (group, solo))
    for item, one in zip(loaded, alone):
        assert item.source == "generator" and item.counts == one.counts
        assert bits(gather_whole(group, item.graph, item.rows)) == bits(one.graph)


@pytest.mark.parametrize(
    "made",
    [
        {"generator": "mixed", "nodes": (20, 60), "p": 0.2, "edge_weights": "mixed"},
        {"generator": "arcs", "nodes": 40, "p": 0.1}, {"generator": "rmat", "nodes": 64, "d": 3},
        {"generator": "uniform_points", "nodes": (9, 30)}, {"generator": "customers", "nodes": 12},
    ],
    ids=lambda made: made["generator"],
)  # fmt: skip
def test_small_graphs_that_all_ranks_make_are_those_that_are_dealt(group, monkeypatch, made):
    """Their rows, and all of them without a message."""
    table, found = GraphCase(**made, count=4), []
    for largest in (generated.MADE_BY_ALL, 0):
        monkeypatch.setattr(generated, "MADE_BY_ALL", largest)
        before = group.calls
        found.append(load_graphs(group, table, "x", Case(seed=2)))
        calls = group.calls - before
    assert group.size == 1 or (all(each.made for each in found[0]) and calls > 40)
    for one, other in zip(*found):
        assert bits(one.graph) == bits(other.graph) and one.counts == other.counts
        assert (one.rows.starts == other.rows.starts).all() and (one.rows.cuts == other.rows.cuts).all()
        assert repr(one.metric) == repr(other.metric) and repr(one.deliveries) == repr(other.deliveries)
        assert bits(whole_of(group, one)) == bits(whole_of(group, other))
        again = replace(one, graph=replace(one.graph, name="another"))
        assert whole_of(group, again).name == "another"


# ---- graphs kept for the next run -------------------------------------------------------------------------


def load_kept(group, path, folder, **table):
    return load_graphs(group, GraphCase(path=path, **table), "x", Case(memory=MemoryCase(cache=str(folder))))[
        0
    ]


@pytest.mark.parametrize(
    "name",
    ["plain.txt", "far ids.txt", "weights.txt", "title.txt", "m.mtx", "half.col", "weighed.col", "one.txt"],
)
def test_a_kept_graph_is_the_graph_of_the_file(group, shared_path, name):
    path = write(group, shared_path / name, FILES[name])
    folder = shared_path / "kept" / "here"
    first, again = load_kept(group, path, folder), load_kept(group, path, folder)
    assert (first.source, again.source) == ("file", "cache")
    assert bits(again.graph) == bits(first.graph) and again.counts == first.counts
    assert again.warnings == first.warnings and np.array_equal(again.rows.cuts, first.rows.cuts)
    assert len(list(folder.iterdir())) == 1
    # The same bytes elsewhere are the same graph; its name is the file's.
    other = write(group, shared_path / f"other {name}", FILES[name])
    moved = load_kept(group, other, folder)
    assert (moved.source, moved.graph.name[:5]) == ("cache", "other")
    assert load_kept(group, path, folder, complement=True).graph.edges + first.graph.edges == (
        first.graph.n * (first.graph.n - 1) // 2
    )
    # Other bytes, and another reading of the same ones, are not.
    assert load_kept(group, write(group, shared_path / name, FILES[name] + "\n"), folder).source == "file"
    if not first.counts.loops:
        assert load_kept(group, other, folder, self_loops="error").source == "file"


@pytest.mark.parametrize("damage", ["byte", "cut", "empty", "foreign", "folder"])
def test_a_damaged_kept_graph_is_made_again(group, shared_path, damage):
    path = write(group, shared_path / "g.txt", FILES["plain.txt"])
    folder = shared_path / "kept"
    first = load_kept(group, path, folder)
    kept = next(folder.iterdir())
    group.barrier()
    if group.rank == 0:
        right = kept.read_bytes()
        at = right.index(b"indices.npy") + 140
        changed = {
            "byte": right[:at] + bytes([right[at] ^ 1]) + right[at + 1 :],
            "cut": right[:-9],
            "empty": b"",
        }
        if damage == "foreign":
            np.savez(kept, indptr=np.arange(3), indices=np.arange(2))
        elif damage == "folder":
            kept.unlink()
            kept.mkdir()
        else:
            kept.write_bytes(changed[damage])
    group.barrier()
    again = load_kept(group, path, folder)
    assert again.source == "file" and bits(again.graph) == bits(first.graph)
    if group.rank == 0:
        assert (
            len(again.warnings) == 1 + (damage == "folder") and "kept graph is not used" in again.warnings[0]
        )
    last = load_kept(group, path, folder)
    assert last.source == ("file" if damage == "folder" else "cache")
    assert bits(last.graph) == bits(first.graph)


def test_a_cache_that_cannot_be_written_is_a_warning(group, shared_path):
    path = write(group, shared_path / "g.txt", FILES["plain.txt"])
    item = load_kept(group, path, shared_path / "g.txt")
    assert item.source == "file" and len(item.warnings) == (group.rank == 0)


def test_nothing_is_kept_of_archives_or_without_a_folder(group, shared_path):
    path = shared_path / "g.npz"
    if group.rank == 0:
        np.savez(path, edges=np.array(EDGES))
    group.barrier()
    assert load_kept(group, str(path), shared_path / "kept").source == "file"
    assert load_kept(group, write(group, shared_path / "g.txt", "1 2\n"), "").source == "file"
    assert sorted(entry.name for entry in shared_path.iterdir()) == ["g.npz", "g.txt"]


# ---- memory -----------------------------------------------------------------------------------------------

MEASURE = """
import resource, sys
import numpy as np
from mpi4py import MPI
from app.comm.group import Group
from app.case.config import Case
from app.case.graph import GraphCase
from app.device import HostDevice
from app.partition.load import load_graphs
group = Group(MPI.COMM_WORLD, HostDevice())
if sys.argv[1] == "numpy":
    from app.graphs import kernels
    kernels.FINISH_ROWS = None
used = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
load_graphs(group, GraphCase(generator="chung_lu", nodes=3000, d=300), "x", Case())
before = used()
n, edges = 100_000, 4_000_000
graph = load_graphs(group, GraphCase(generator="chung_lu", nodes=n, edges=edges), "x", Case())[0].graph
print("per edge", (used() - before - 60 * n) / len(graph.indices))
"""


@pytest.mark.mpi_skip
@pytest.mark.timeout(180)
@pytest.mark.parametrize("kind", ["as built", "numpy"])
def test_peak_memory_of_loading(kind):
    """8 bytes a stored entry, and 60 a node; the first graph takes the memory of the pieces."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, kind],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=150,
        check=True,
    )
    assert float(done.stdout.split()[-1]) < 8.8, done.stdout


@pytest.mark.mpi_skip
@pytest.mark.timeout(180)
def test_peak_memory_falls_with_the_ranks(tmp_path):
    script = tmp_path / "measure.py"
    script.write_text(
        MEASURE.replace(
            '"per edge", (used() - before - 60 * n) / len(graph.indices)', "'bytes', used() - before"
        )
    )
    peaks = []
    for ranks in (1, 2):
        code, printed = run_job(
            [*mpirun(ranks), sys.executable, str(script), "x"], cwd=ROOT, limit_s=150, PYTHONPATH=str(ROOT)
        )
        assert code == 0, printed
        peaks.append(max(int(line.split()[-1]) for line in printed.splitlines() if line.startswith("bytes")))
    assert peaks[1] < 0.75 * peaks[0]


@pytest.mark.parametrize("by_parts", [True, False])
def test_a_graph_is_not_read_to_its_end_where_a_rank_was_asked_to_stop(
    group, shared_path, any_size, monkeypatch, by_parts
):
    """Whichever rank heard it before the first piece, and rank 0 behind it, or its time is up; all leave with
    the same error.
    """
    path = write(group, shared_path / "ring.txt", "".join(f"{i} {i + 1}\n" for i in range(999)))
    for looks, rank in ((0, group.size - 1), (1, 0)):
        seen = []

        def asked(looks=looks, rank=rank, seen=seen):
            seen.append(None)
            return group.rank == rank and len(seen) > looks

        monkeypatch.setattr(stopping, "asked", asked)
        with pytest.raises(Halted, match="asked to stop"):
            assemble(group, open_edges(path) if by_parts or group.rank == 0 else None)
        assert len(seen) < 100
    monkeypatch.undo()
    stopping.end_at(time.monotonic())  # by --max-hours
    try:
        with pytest.raises(Halted, match="asked to stop"):
            assemble(group, open_edges(path) if by_parts or group.rank == 0 else None)
    finally:
        stopping.forget()
    assert not stopping.asked()


def test_a_set_of_graphs_is_not_generated_to_its_end_where_time_is_up(group):
    graphs = GraphCase(generator="motifs", nodes=9, count=1 << 20, random_classes=2)
    case = Case(run=RunCase(task="classify"), graph=graphs, gnn=GnnCase(level="graph"))
    stopping.end_at(time.monotonic() + 0.1)
    try:
        with pytest.raises(Halted, match="asked to stop"):
            load_united(group, graphs, case)
    finally:
        stopping.forget()


@pytest.mark.mpi_skip
@pytest.mark.parametrize("least, told", [(0.0, True), (1e9, False)])
def test_the_log_says_what_the_steps_of_a_long_reading_took(
    tmp_path, group, monkeypatch, capsys, least, told
):
    monkeypatch.setattr(context, "LONG_READING", least)
    case = Case(graph=GraphCase(path=write(group, tmp_path / "far.txt", "7 9\n9 12\n")))
    context.Context(case, group, Log(True), None).load(case.graph, "instances")
    said = re.search(
        r"read far in \d+\.\d s: edges \d+\.\d, ids \d+\.\d, rows \d+\.\d\n", capsys.readouterr().out
    )
    assert bool(said) == told
