"""What docs/faults.md promises: ranks that fail, hang or differ, limits of memory, readers that go away."""

import dataclasses
import json
import os
import re
import sys
import time

import networkx
import numpy as np
import pytest
from jobs import ROOT, mpirun, run_job, split_over
from mpi4py import MPI
from msgspec.structs import replace

from app import solve
from app.case.config import Case
from app.case.file import build
from app.case.gnn import GnnCase
from app.case.graph import GraphCase
from app.case.rgcn import RgcnCase
from app.comm.group import Group
from app.device import HostDevice
from app.errors import CaseError, NumericsError
from app.gnn.classifier import Classifier
from app.gnn.rgcn import training as rgcn_training
from app.gnn.rgcn.links import train_links
from app.gnn.rgcn.split import split_triples
from app.gnn.rgcn.training import Course, train_rgcn
from app.gnn.training import fit
from app.graphs.generators.random_triples import random_labels, random_triples
from app.graphs.triples.relational import relational_graph
from app.memory import room
from app.model import fits
from app.native.library import kernels
from app.partition.load import load_united
from app.partition.nodes import load_node_data
from app.solver.pipeline import Pipeline
from app.sparse.rowblock import RowBlock
from app.tasks import context
from app.tasks.context import context_of_settings
from app.tasks.levels.reading import refuse_read

WORLD = MPI.COMM_WORLD
DOCUMENT = ROOT / "docs" / "faults.md"
TRAIN = """
[run]
task = "train"
[graph]
generator = "ba"
nodes = 30
count = 4
[train]
steps = 100000
evaluate_graphs = 1
evaluate_every = 100000
[output]
plots = false
log_seconds = 0.0
"""
CLASSIFY = """
[run]
task = "classify"
[graph]
generator = "sbm"
nodes = 60
random_classes = 2
random_features = 4
splits = "random"
[gnn]
epochs = 100000
[output]
plots = false
log_seconds = 0.0
"""
SOLVE = """
[run]
task = "solve"
[graph]
generator = "ba"
nodes = 60
[search]
steps = 500
[output]
plots = false
"""
RELATIONS = """
[run]
task = "classify"
[graph]
generator = "ba"
nodes = 60
edges = 200
[gnn]
model = "rgcn"
[rgcn]
relations = 3
labelled = 30
hidden = 4
epochs = 50
optimiser = "sgd"
learning_rate = 1e38
[output]
plots = false
"""


@pytest.fixture
def group():
    """All ranks; nothing here leaves the host."""
    return Group(WORLD, HostDevice())


@pytest.fixture
def cases(tmp_path):
    """A folder with a case of every kind."""
    for name, text in (("train", TRAIN), ("classify", CLASSIFY), ("solve", SOLVE), ("relations", RELATIONS)):
        (tmp_path / f"{name}.toml").write_text(text)
    return tmp_path


def job(folder, name, *keys, ranks=2, program="run.py", **variables):
    """Exit code, output and output folder of a case."""
    start = mpirun(ranks) if ranks else []
    command = [
        *start,
        sys.executable,
        ROOT / program,
        folder / f"{name}.toml",
        *([split_over(ranks)] if ranks and name in ("train", "classify", "relations") else []),
        *keys,
        "--out",
        folder / "out",
    ]
    return *run_job(command, LOCKSTEP_TESTING="1", **variables), folder / "out"


def is_complete(out):
    """Whether a folder holds a finished run."""
    result = out / "result.json"
    return result.exists() and json.loads(result.read_text())["status"] == "complete"


# ---- one rank that fails ----------------------------------------------------------------------------------


@pytest.mark.mpi_skip
@pytest.mark.parametrize(
    ("fault", "name", "shown"),
    [
        ("raise:rank=1,step=30", "train", "RuntimeError: a fault on purpose"),
        ("sysexit:rank=1,step=30,code=3", "classify", "SystemExit: 3"),
        ("exit:rank=1,step=30", "train", ""),
    ],
)
def test_one_rank_that_fails_ends_the_job(cases, fault, name, shown):
    code, printed, out = job(cases, name, LOCKSTEP_FAULT=fault)
    ended = time.time()
    assert not is_complete(out)
    # The log was written before the fault; within 5 s where the machine has nothing else to do.
    assert ended - (out / "log.txt").stat().st_mtime < 10
    assert code != 0 or fault.startswith("exit")  # MPICH: a rank that exits with 0 ends the job with 0
    assert printed.count("Traceback") == (1 if shown else 0)
    assert printed.count(shown) == 1 or not shown


@pytest.mark.mpi_skip
def test_what_the_first_rank_begins_for_all_is_refused_by_all(cases):
    points = 'problem.name="tsp"', 'graph.generator="uniform_points"', "graph.nodes=6"
    graphs = ('train.graphs.generator="er"', "train.graphs.nodes=9", "train.evaluate_graphs=2")
    code, printed, out = job(cases, "solve", *points, *graphs, "train.steps=10", 'policy.weights="train"')
    assert code == 2
    assert printed.count("has no distances between all nodes") == 1
    assert "Traceback" not in printed
    assert not is_complete(out)


ALONE = """
import sys, time
from mpi4py import MPI
from app.comm.guard import leave_together
if MPI.COMM_WORLD.Get_rank() == {waiting}:
    MPI.COMM_WORLD.Dup().Barrier()  # for ever
leave_together(MPI.COMM_WORLD, {limit})
"""


@pytest.mark.mpi_skip
@pytest.mark.parametrize(("waiting", "limit", "right"), [(1, 0.2, 1), (None, 40, 0)])
def test_a_rank_that_leaves_alone_ends_the_others(waiting, limit, right):
    text = ALONE.format(waiting=waiting, limit=limit)
    code, printed = run_job([*mpirun(2), sys.executable, "-c", text], forked=True)
    assert code == right
    assert printed.count("rank 0: it ended alone, and the others did not within 0.2 s") == right


# ---- the watchdog -----------------------------------------------------------------------------------------


@pytest.mark.mpi_skip
def test_a_rank_that_is_stuck_ends_the_job(cases):
    code, printed, out = job(
        cases, "train", "run.watchdog_seconds=1", fresh=True, LOCKSTEP_FAULT="hang:rank=1,step=30"
    )
    assert code == 1
    assert not is_complete(out)
    assert time.time() - (out / "log.txt").stat().st_mtime < 12
    assert printed.count("[rank 1] watchdog: this rank has not moved for 1 s") == 1
    assert "[rank 0] watchdog" not in printed
    assert "in _hang" in printed


STUCK = """
import ctypes, os, signal, subprocess, threading, time
from app import watchdog
from app.native.countdown import countdown
watchdog.PATIENCE_S = 0.3
watchdog.watch(0.4, "[rank 7]", {})
started = time.monotonic()
{}
"""
# Stopped for longer than the timer counts, while the interpreter's lock is held; a shell goes on with it.
STOPPED = """
time.sleep(0.1)
subprocess.Popen(["sh", "-c", f"sleep 3; kill -CONT {os.getpid()}"])
os.kill(os.getpid(), signal.SIGSTOP)
for _ in range(8):
    watchdog.beat()
    time.sleep(0.05)
"""


@pytest.mark.mpi_skip
@pytest.mark.parametrize("timer", ["None", "countdown"])
@pytest.mark.parametrize(
    ("work", "code", "shown"),
    [
        (
            "while time.monotonic() < started + 0.8:\n    watchdog.beat()\n    time.sleep(0.05)\n"
            "watchdog.watch(0, '')\ntime.sleep(0.8)",
            0,
            "",
        ),
        ("time.sleep(30)", 1, "[rank 7] watchdog: this rank has not moved for 0 s"),
        ("watchdog.wait_begins()\ntime.sleep(30)", 1, "watchdog: this rank waits for other ranks"),
        # The interpreter's lock is held, so that no Python runs; the first beat starts the timer
        ("time.sleep(0.1)\nctypes.PyDLL(None).sleep(30)", 1, "most recent call first"),
    ],
)
def test_the_watchdog(work, code, shown, timer):
    command = [sys.executable, "-c", STUCK.format(timer, work)]
    found, printed = run_job(command, limit_s=20, PYTHONPATH=str(ROOT))
    assert (found, shown in printed) == (code, True), printed
    assert bool(printed) == bool(shown)


@pytest.mark.mpi_skip
@pytest.mark.parametrize("seconds", ["1e12", "1e300"])
def test_a_watchdog_that_never_wakes(seconds):
    work = f"watchdog.watch({seconds}, '', countdown)\nwatchdog.beat()\ntime.sleep(0.5)"
    assert run_job([sys.executable, "-c", STUCK.format("None", work)], PYTHONPATH=str(ROOT)) == (0, "")


@pytest.mark.mpi_skip
@pytest.mark.skipif(not hasattr(kernels(), "lk_count_down"), reason="no compiled library")
def test_a_process_that_was_stopped_goes_on():
    """For longer than a timer that needs no interpreter waits, as batch systems suspend jobs."""
    command = [sys.executable, "-c", STUCK.format("countdown", STOPPED)]
    assert run_job(command, limit_s=30, PYTHONPATH=str(ROOT)) == (0, "")


@pytest.mark.mpi_skip
def test_a_rank_that_waits_for_the_others_while_mpi_starts_ends(tmp_path):
    """MPI waits in its import for a rank that never comes, as on a host that is down."""
    (tmp_path / "mpi4py.py").write_text("import time\ntime.sleep(100)\n")
    # NumPy and SciPy are there before, which on a busy machine take longer than it waits here.
    start = "import runpy, sys; from app import lean, watchdog; lean.import_sparse(); sys.argv = sys.argv[1:]"
    start += "; watchdog.START_S = 1.5"
    command = [sys.executable, "-c", f"{start}; runpy.run_path('run.py', run_name='__main__')"]
    arguments = ["run.py", "inputs/mvc.toml", "run.watchdog_seconds=0.4", "--out", tmp_path / "out"]
    code, printed = run_job([*command, *arguments], PYTHONPATH=os.pathsep.join([str(tmp_path), str(ROOT)]))
    assert code == 1
    assert "[rank 0] watchdog: this rank has not moved for " in printed and "mpi4py.py" in printed


# ---- ranks that differ ------------------------------------------------------------------------------------


def test_ranks_with_different_software_are_refused(group, monkeypatch):
    if group.size == 1:
        pytest.skip("one rank is like itself")
    assert re.search(r"lockstep \S+ \([0-9a-f]{8}\), numpy ", context.software())
    last = group.size - 1
    monkeypatch.setattr(context, "software", lambda: "numpy 9" if group.rank == last else "numpy 2")
    with pytest.raises(CaseError, match=rf"--allow-mixed .*: rank {last} has numpy 9, rank 0 has numpy 2"):
        context.open_group(WORLD, Case())
    assert context.open_group(WORLD, Case(), allow_mixed=True).size == group.size


def nudged(array):
    """Change the last bit of the first number."""
    array[:1] = np.nextafter(array[:1], np.float32(9))


def test_a_classifier_that_differs_is_named(group):
    table = GraphCase(generator="sbm", nodes=40, random_classes=2, random_features=3, splits="random")
    loaded = load_united(group, table, Case())
    data = load_node_data(group, table, loaded, Case())
    block = RowBlock(group, loaded.graph, loaded.rows, "auto", 4, None)
    classifier = Classifier(group, GnnCase(hidden=4, epochs=3), block, data, 1)

    def after_epoch(epoch):
        if epoch == 2 and group.rank == group.size - 1:
            nudged(classifier.params.flat)

    if group.size == 1:
        assert fit(classifier, check_every=1, after_epoch=after_epoch).epochs == 3
        return
    with pytest.raises(NumericsError, match=rf"after epoch 2: rank {group.size - 1} differs from rank 0 in"):
        fit(classifier, check_every=1, after_epoch=after_epoch)


@pytest.mark.parametrize("goal", ["classes", "links"])
def test_a_relational_network_that_differs_is_named(group, monkeypatch, goal):
    triples = random_triples(30, 90, 3, 1)
    case = RgcnCase(epochs=4, hidden=4, dimension=4, validation=0.0, evaluate_every=4)
    take = rgcn_training.Steps.take

    def differing(self, gradient):
        take(self, gradient)
        name = gradient[0]
        if name in self.net.replicated() and group.rank == group.size - 1:
            nudged(self.net.weights[name].array[:1, 0])

    monkeypatch.setattr(rgcn_training.Steps, "take", differing)

    def run():
        if goal == "links":
            return train_links(
                group, triples, split_triples(triples, 0.1, 1), case, 1, course=Course(check_every=2)
            )
        labels = random_labels(triples, 10, 2, 1)
        return train_rgcn(group, relational_graph(triples), labels, case, 1, course=Course(check_every=2))

    if group.size == 1:
        assert run()
        return
    with pytest.raises(NumericsError, match=rf"after epoch 2: rank {group.size - 1} differs from rank 0 in"):
        run()


def test_a_search_that_differs_is_named(group, monkeypatch):
    starts = Pipeline._starts

    def differing(self, *rest):
        best, values = starts(self, *rest)
        return (best.copy() if group.rank else ~best), values

    monkeypatch.setattr(Pipeline, "_starts", differing)
    if group.size == 1:
        return
    graph = networkx.gnm_random_graph(40, 120, seed=1)
    with pytest.raises(NumericsError, match=r"before the search: rank .* differs from rank .* in solution"):
        solve(graph, settings={"search.steps": 10, "search.baselines": False, "search.reductions": False})


# ---- numbers that are none --------------------------------------------------------------------------------


@pytest.mark.mpi_skip
@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("classify", ["gnn.learning_rate=1e38", "gnn.epochs=50", "gnn.optimiser=sgd"]),
        ("train", ["agent.learning_rate=1e38", "train.steps=150"]),
        ("relations", ["rgcn.goal=classes"]),
        ("relations", ["rgcn.goal=links"]),
        ("relations", ["rgcn.epochs=1"]),
    ],
)
def test_a_loss_that_is_no_number_stops_all_ranks(cases, name, keys):
    """All ranks see the same loss; no result, and no checkpoint, holds such weights."""
    found, printed, out = job(cases, name, *keys, "checkpoint.steps=10")
    assert found == 2, printed
    assert printed.count("lockstep: error: ") == printed.count("error") == 1
    assert re.search(r"error: training.* (nan|NaN|inf).*learning_rate.* would be right", printed)
    left = sorted(each.name for each in out.glob("checkpoint/step-*"))
    assert (f"the checkpoint {left[-1]} is of before" if left else "no checkpoint is left") in printed
    assert "Traceback" not in printed
    assert not is_complete(out)
    for path in out.glob("checkpoint/step-*/state.npz"):
        with np.load(path) as arrays:
            for each in arrays.files:
                values = arrays[each]
                assert values.dtype.kind != "f" or "weight" not in each or np.isfinite(values).all(), each


# ---- memory -----------------------------------------------------------------------------------------------

LIMITED = """
import resource, sys
sys.path.insert(0, {root!r})
import run
resource.setrlimit(resource.RLIMIT_AS, ({mega} << 20,) * 2)
sys.exit(run.main(sys.argv[1:]))
"""


@pytest.mark.mpi_skip
def test_a_graph_that_does_not_fit_is_refused_before_it_is_made(cases):
    (cases / "limited.py").write_text(LIMITED.format(root=str(ROOT), mega=2500))
    keys = ["graph.nodes=80000000"]
    code, printed, out = job(cases, "solve", *keys, program=cases / "limited.py")
    assert (code, printed.count("\n")) == (2, 1), printed
    said = r"memory: ba: (about )?[\d.]+ GB a rank (\(base|for the graph).*address space .* leaves [\d.]+ GB"
    assert re.search(said, printed)
    assert not out.exists()
    code, printed, _ = job(cases, "solve", *keys, "--dry-run", program=cases / "limited.py", ranks=0)
    assert code == 0
    assert "# on this machine it would be refused: memory: ba: " in printed


@pytest.mark.mpi_skip
def test_what_may_not_fit_is_a_warning(cases):
    """The whole graph, for what works on it."""
    (cases / "limited.py").write_text(LIMITED.format(root=str(ROOT), mega=2500))
    keys = ["graph.nodes=3000000", "--dry-run"]
    code, printed, _ = job(cases, "solve", *keys, program=cases / "limited.py", ranks=0)
    said = r"# memory: a rank may take up to [\d.]+ GB, and the limit of its address space"
    assert code == 0 and re.search(said, printed), printed


@pytest.mark.mpi_skip
def test_text_lists_are_looked_at_once_they_are_read(cases, monkeypatch, capsys):
    """Their headers have no counts. Nothing is said where there is room."""
    path = cases / "long.txt"
    path.write_text("".join(f"{i} {i + 1}\n" for i in range(100_000)))

    def loaded(room, **keys):
        monkeypatch.setattr(fits, "memory_room", lambda ranks: (room << 20, "the test"))
        context = context_of_settings(
            {"run.task": "solve", "graph.path": str(path), **keys}, MPI.COMM_SELF, True
        )
        if keys.get("run.task") == "classify":
            refuse_read(context, load_united(context.group, context.case.graph, context.case))
        else:
            context.load(context.case.graph, "instances")
        return " ".join(capsys.readouterr().out.split())

    assert "warning: memory: a rank may take up to 1" in loaded(130) and "memory" not in loaded(1 << 20)
    with pytest.raises(
        CaseError, match=r"memory: long: \S+ MB a rank for the graph alone, but the test leaves"
    ):
        loaded(60)
    with pytest.raises(CaseError, match=r"memory: long: about \S+ MB a rank \(base"):
        loaded(60, **{"search.solver": "policy"})
    asked = []
    monkeypatch.setattr(fits, "memory_room", lambda ranks: asked.append(ranks) or (1 << 40, "the test"))
    alone = context_of_settings({"run.task": "solve", "graph.path": str(path)}, MPI.COMM_SELF, False)
    dataclasses.replace(alone, here=4, ranks=8).load(alone.case.graph, "instances")
    assert set(asked) == {4}  # the room of a rank, where the group is a part of all
    labels = cases / "labels.txt"
    labels.write_text("0\n1\n" * 50_000 + "0\n")
    net = {"run.task": "classify", "graph.labels": str(labels), "graph.splits": "random"}
    assert "warning: memory" in loaded(175, **net) and "memory" not in loaded(1 << 20, **net)
    with pytest.raises(CaseError, match=r"memory: .*: about"):
        loaded(60, **net)


@pytest.mark.mpi_skip
def test_relational_weights_that_do_not_fit_are_refused_before_they_are_made(cases):
    (cases / "limited.py").write_text(LIMITED.format(root=str(ROOT), mega=2500))
    keys = ["graph.nodes=20000", "graph.edges=80000", "rgcn.hidden=2000", "rgcn.labelled=20000"]
    code, printed, out = job(cases, "relations", *keys, program=cases / "limited.py", ranks=0)
    assert code == 2 and not is_complete(out), printed
    said = r"memory: ba\S+: about [\d.]+ GB a rank on 1 rank \(base .*address space .* leaves [\d.]+ GB"
    assert re.search(said, printed.splitlines()[-1]), printed
    code, printed, _ = job(cases, "relations", *keys, "--dry-run", program=cases / "limited.py", ranks=0)
    assert code == 0
    assert re.search(r"# on this machine it would be refused: memory: \w+: [\d.]+ GB", printed), printed


@pytest.mark.mpi_skip
def test_running_out_of_memory_ends_the_job_with_what_it_needs(cases):
    (cases / "limited.py").write_text(LIMITED.format(root=str(ROOT), mega=1000))
    keys = ["graph.nodes=40000", "graph.random_features=8000", "memory.estimate_first=false"]
    code, printed, out = job(cases, "classify", *keys, program=cases / "limited.py", ranks=0)
    assert code == 1
    assert printed.count("lockstep: error: rank 0: out of memory: ") == 1, printed
    assert re.search(r"planned: .* GB a rank on 1 rank .*features [\d.]+ GB", printed), printed
    assert not is_complete(out)


def test_the_room_of_a_process(tmp_path, monkeypatch):
    """Control groups of both versions, and those above them."""
    (tmp_path / "own").write_text("3:cpu,memory:/job/7\n0::/job/step\n")
    (tmp_path / "mem").write_text("MemTotal:  1000 kB\nSwapTotal:  24 kB\n")
    for name, value in (("OWN_CGROUP", "own"), ("MEMINFO", "mem"), ("CGROUPS", ".")):
        monkeypatch.setattr(room, name, tmp_path / value)
    monkeypatch.setattr(room, "_address_space", lambda: 0)
    assert room.memory_room(2) == (512 << 10, "the machine")
    for folder, file, value in (
        ("memory/job", "memory.limit_in_bytes", "400000"),
        ("memory", "memory.limit_in_bytes", str((1 << 63) - 4096)),
        ("job/step", "memory.max", "max"),
        ("job", "memory.max", "300000"),
    ):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / file).write_text(value + "\n")
    assert room.memory_room(1) == (300000, "the memory limit of its control group")
    monkeypatch.setattr(room, "_address_space", lambda: 5)
    assert room.memory_room(4)[0] == 5


def test_all_tasks_are_estimated():
    ba = GraphCase(generator="ba", nodes=100)
    sbm = GraphCase(generator="sbm", nodes=100, random_classes=3, random_features=5)
    for settings, tables in (
        ({"run.task": "solve", "graph": ba}, 1),
        ({"run.task": "train", "graph": ba}, 1),
        ({"run.task": "classify", "graph": sbm}, 1),
        ({"run.task": "classify", "graph": sbm, "memory.fast_mb": 1}, 1),
        ({"run.task": "classify", "gnn.model": "rgcn", "graph": ba}, 1),
    ):
        table = settings.pop("graph")
        case = replace(build(settings, True), graph=table)
        found = list(fits.needs_of(case, 2, HostDevice()))
        assert len(found) == tables
        assert all(min(need.held.values()) >= 0 and need.most >= need.certain > 1 << 20 for need in found)
        beside = case.run.task == "solve" or case.gnn.model == "rgcn"
        assert all((need.beside > 0) == beside for need in found)


# ---- surroundings -----------------------------------------------------------------------------------------


@pytest.mark.mpi_skip
def test_a_reader_that_goes_away_is_no_reason_to_stop(cases):
    """The launcher of MPICH ends with its reader; one rank does not."""
    out = cases / "out"
    command = (
        f"{sys.executable} {ROOT}/run.py {cases}/solve.toml --out {out} | head -n 1; exit ${{PIPESTATUS[0]}}"
    )
    code, printed = run_job(["bash", "-c", command])
    assert (code, printed.count("\n")) == (0, 1)
    assert is_complete(out)
    assert "digest" in (out / "log.txt").read_text()


@pytest.mark.mpi_skip
def test_a_full_disk_under_what_is_printed_is_no_reason_to_stop(cases):
    out = cases / "out"
    program = f"{sys.executable} {ROOT}/run.py {cases}/solve.toml --out {out}"
    command = f"env -u PYTHONUNBUFFERED {program} > /dev/full"  # a buffer is flushed again at the very end
    code, printed = run_job(["bash", "-c", command])
    assert (code, printed) == (0, "")
    assert is_complete(out)
    assert "digest" in (out / "log.txt").read_text()


@pytest.mark.mpi_skip
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&- <&-"])
def test_closed_streams_are_no_reason_to_stop(cases, closed):
    """No file of the run gets their numbers."""
    out = cases / "out"
    command = f"{sys.executable} {ROOT}/run.py {cases}/solve.toml --out {out} {closed}"
    code, _ = run_job(["bash", "-c", command])
    assert code == 0 and is_complete(out)
    assert "digest" in (out / "log.txt").read_text()


@pytest.mark.mpi_skip
def test_a_plan_that_finds_no_room_to_be_printed_is_no_fault(cases):
    command = f"{sys.executable} {ROOT}/run.py {cases}/solve.toml --dry-run > /dev/full"
    assert run_job(["bash", "-c", command]) == (0, "")


@pytest.mark.mpi_skip
@pytest.mark.parametrize("variables", [{}, {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}])
def test_any_locale_prints_ascii(cases, variables):
    """A name that the locale cannot spell is refused in one line where Python is kept from UTF-8."""
    (cases / "\u00e9.txt").write_text("1 2\n2 3\n")
    text = SOLVE.replace('generator = "ba"\nnodes = 60', 'path = "\u00e9.txt"')
    (cases / "solve.toml").write_text(text, encoding="utf-8")
    code, printed, out = job(cases, "solve", ranks=0, LC_ALL="C", LANG="C", **variables)
    assert code == (2 if variables else 0), printed
    assert printed.isascii()
    if variables:
        assert printed.count("\n") == 1
    else:
        assert is_complete(out)
        assert (out / "log.txt").read_bytes().isascii()


@pytest.mark.mpi_skip
def test_no_name_garbles_a_terminal(tmp_path):
    """Escape codes in names of files, nodes and keys are printed as escapes."""
    code, printed = run_job([sys.executable, ROOT / "run.py", tmp_path / "a\x1b[2Jb.toml", "x\x07=1"])
    assert code == 2
    assert printed.replace("\n", "").isprintable()
    (tmp_path / "c.toml").write_text('[graph]\npath = "a\\u001b[2J*.txt"\n"k\\u0007y" = 1\n')
    (tmp_path / "a\x1b[2Jb.txt").write_text("1 2\n\x1b]0;title\x07 3\n")
    code, printed = run_job([sys.executable, ROOT / "run.py", tmp_path / "c.toml"])
    assert code == 2
    assert printed.replace("\n", "").isprintable()


@pytest.mark.mpi_skip
@pytest.mark.parametrize("out", ["/proc/lockstep", "/dev/null/below"])
def test_an_output_folder_that_cannot_be_is_refused(cases, out):
    command = [sys.executable, ROOT / "run.py", cases / "solve.toml", "--out", out]
    code, printed = run_job(command)
    assert (code, printed.count("\n")) == (2, 1), printed
    assert f"--out {out}: " in printed


@pytest.mark.mpi_skip
def test_a_working_directory_that_is_gone_is_refused_where_paths_are_relative_to_it(cases):
    gone = ("sh", "-c", 'mkdir gone; cd gone && rmdir ../gone && exec "$@"', "sh", sys.executable)
    command = [*gone, ROOT / "run.py", cases / "solve.toml", "output.plots=false"]
    for relative in ([], ["--out", "runs/x"], ["--out", cases / "out", "graph.path=g.txt"]):
        code, printed = run_job([*command, *relative], cwd=cases)
        assert (code, printed.count("\n")) == (2, 1), printed
        assert "working directory: No such file" in printed
    code, printed = run_job([*gone, "-m", "app", "report", "runs/x"], cwd=cases, PYTHONPATH=str(ROOT))
    assert (code, printed.count("\n")) == (2, 1), printed
    assert "working directory: No such file" in printed
    code, printed = run_job([*command, "--out", cases / "out"], cwd=cases)
    assert code == 0, printed


# ---- what starts quickly ----------------------------------------------------------------------------------

LOADED = """
import sys
sys.argv = ["run.py"]
import run
for arguments in (["--help"], ["--version"]):
    assert run.main(arguments) == 0, arguments
for arguments in ([], ["nowhere.toml"], ["--wrong"], [{case!r}], [{case!r}, "a.b=1"]):
    assert run.main(arguments) == 2, arguments
heavy = ("numpy", "scipy", "mpi4py", "cupy", "networkx", "matplotlib")
print("loaded:", [name for name in heavy if name in sys.modules])
"""


@pytest.mark.mpi_skip
def test_help_version_and_a_wrong_case_load_nothing_heavy(tmp_path):
    (tmp_path / "wrong.toml").write_text("[train]\nlearning_rat = 3\n")
    code, printed = run_job([sys.executable, "-c", LOADED.format(case=str(tmp_path / "wrong.toml"))])
    assert code == 0, printed
    assert printed.endswith("loaded: []\n")


@pytest.mark.mpi_skip
def test_a_dry_run_loads_no_plots_trees_and_solvers():
    """What only some runs need is imported by these, where they begin to need it."""
    heavy = ("scipy.spatial", "scipy.optimize", "networkx", "matplotlib", "cupy")
    program = (
        "import run, sys; assert run.main(['inputs/gcn.toml', '--dry-run']) == 0; "
        f"print('loaded:', [name for name in {heavy} if name in sys.modules])"
    )
    code, printed = run_job([sys.executable, "-c", program])
    assert code == 0, printed
    assert printed.endswith("loaded: []\n")


# ---- the list of promises ---------------------------------------------------------------------------------


@pytest.mark.mpi_skip
def test_every_test_that_the_document_names_exists():
    text = DOCUMENT.read_text(encoding="utf-8")
    named = re.findall(r"`(test_\w+)\.py::(test_\w+)`", text)
    assert len(named) >= 44
    for file, test in named:
        source = (ROOT / "tests" / f"{file}.py").read_text(encoding="utf-8")
        assert f"\ndef {test}(" in source, f"{file}.py::{test}"
    rows = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| fault")]
    for row in rows:
        cells = [cell.strip() for cell in row.replace("\\|", "").strip("|").split("|")]
        assert len(cells) == 4 and all(cells), row
        assert "::test_" in cells[3] or cells[3].startswith("none: "), row
