"""The program from the command line to its files: one result on any number of ranks, nothing spoiled."""

import csv
import hashlib
import json
import sys
import tomllib

import networkx
import numpy as np
import pytest
from jobs import ROOT, mpirun, run_job

from app.case.file import load
from app.errors import CaseError
from app.output import RunFolder
from app.tasks.solve import names_apart, unread_tables

pytestmark = pytest.mark.mpi_skip

# The shipped case, made small.
TINY = (
    "train.steps=40", "train.evaluate_every=20", "train.evaluate_graphs=3", "train.graphs.count=6",
    "train.graphs.nodes=[20,30]", "graph.count=2", "graph.nodes=[30,40]", "output.plots=false",
)  # fmt: skip
TIMED = (
    "seconds",
    "primal_dual_integral",
    "steps",
    "replay",
)  # of an instance: a proof may end a search early
QUICKSTART = str(ROOT / "inputs" / "quickstart.toml")
# Ids that are not 0..n-1: a triangle with a tail, a repeat, a loop, and an edge far away.
EDGES = [(1000, 7), (7, 30), (30, 1000), (30, 5_000_000_000), (7, 30), (8, 8), (12, 15)]


def lockstep(*arguments, ranks=0, **variables):
    """Exit code and output of run.py, under mpirun where ranks are given."""
    start = mpirun(ranks) if ranks else []
    return run_job([*start, sys.executable, ROOT / "run.py", *arguments], **variables)


def files_of(folder):
    """Path below the folder -> digest of the content."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files
    }


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The output folders of the tiny case by number of ranks: trains, then solves; and what was printed."""
    folders, printed = {}, {}
    for ranks in (1, 2, 3):
        folders[ranks] = tmp_path_factory.mktemp("runs") / "out"
        started = 0 if ranks == 1 else ranks
        code, printed[ranks] = lockstep(
            QUICKSTART, *TINY, "--device", "cpu", "--out", folders[ranks], ranks=started
        )
        assert code == 0, printed[ranks]
    return folders, printed


@pytest.fixture
def edge_file(tmp_path):
    """A small file with gaps in its ids."""
    path = tmp_path / "gaps.edges"
    path.write_text("".join(f"{u} {v}\n" for u, v in EDGES))
    return path


@pytest.fixture
def case_file(tmp_path, edge_file):
    """A case that covers the small file with the weights that ship."""
    path = tmp_path / "case.toml"
    path.write_text(f'[run]\ntask = "solve"\n[graph]\npath = "{edge_file}"\n[output]\nplots = false\n')
    return path


def result_of(folder):
    return json.loads((folder / "result.json").read_text())


# ---- one result -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ranks", [2, 3])
def test_results_do_not_depend_on_the_ranks(runs, ranks):
    one, other = runs[0][1], runs[0][ranks]
    same = ("digest", "weights_digest", "task", "problem", "seed")
    assert {key: result_of(one)[key] for key in same} == {key: result_of(other)[key] for key in same}
    assert files_of(one / "solution") == files_of(other / "solution")
    assert files_of(one)["weights.npz"] == files_of(other)["weights.npz"]
    assert metrics(one) == metrics(other)
    untimed = [
        [{k: v for k, v in i.items() if k not in TIMED} for i in result_of(f)["instances"]]
        for f in (one, other)
    ]
    assert untimed[0] == untimed[1]
    assert result_of(other)["ranks"] == ranks


def metrics(folder):
    """metrics.csv without what a clock or the number of ranks decides."""
    with open(folder / "metrics.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows
    return [{k: v for k, v in row.items() if k not in ("time_s", "sent_bytes", "bound")} for row in rows]


def test_answers_are_a_table_too(runs):
    folder = runs[0][2]
    with open(folder / "answers.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    for row, instance in zip(rows, result_of(folder)["instances"], strict=True):
        assert (row["name"], int(row["objective"])) == (instance["name"], instance["objective"])
        assert float(row["gap"]) == instance["gap"] and row["optimal"] == str(instance["optimal"])
        assert {label: int(row[label]) for label in instance["baselines"]} == instance["baselines"]


def test_the_result_has_every_field(runs):
    result = result_of(runs[0][2])
    assert result["status"] == "complete"
    assert {"task", "problem", "seed", "digest", "seconds", "ranks", "backend", "phases"} <= set(result)
    assert (result["backend"], result["ranks"]) == ("cpu", 2)
    assert len(result["digest"]) == 64
    phases = result["phases"]
    assert {"seconds", "bytes"} <= set(phases)
    for table, keys in (("seconds", ("min_s", "mean_s", "max_s")), ("bytes", ("min", "mean", "max"))):
        for low, mean, high in ([span[key] for key in keys] for span in phases[table].values()):
            assert 0 <= low <= mean <= high
    sent = phases["bytes"]
    assert sent["all"]["max"] > 0
    assert sent["all"]["mean"] == pytest.approx(sum(s["mean"] for name, s in sent.items() if name != "all"))
    for phase in phases["seconds"].values():
        assert 0 <= phase["min_s"] <= phase["mean_s"] <= phase["max_s"]
    assert len(result["instances"]) == 3
    for instance in result["instances"]:
        wanted = {"name", "nodes", "edges", "objective", "bound", "bound_method", "gap", "feasible"}
        assert wanted | {"policy_evaluations", "seconds", "baselines"} <= set(instance)
        assert instance["feasible"]
        assert 0 < instance["bound"] <= instance["objective"] <= instance["nodes"]
        assert instance["gap"] == round(instance["objective"] / instance["bound"] - 1, 6)
        assert all(value >= instance["bound"] for value in instance["baselines"].values())
    assert result_of(runs[0][1])["phases"]["bytes"]["all"]["max"] == 0


def test_the_folder_says_what_was_run(runs):
    folders, printed = runs
    folder = folders[2]
    assert {"case.toml", "environment.json", "log.txt", "metrics.csv", "result.json", "weights.npz"} <= set(
        files_of(folder)
    )
    again = load(str(folder / "case.toml"), [])
    assert (again.train.steps, again.graph.count, again.run.task) == (40, 2, "solve")
    environment = json.loads((folder / "environment.json").read_text())
    assert environment["ranks"] == 2
    assert {"lockstep", "python", "versions", "blas", "mpi_library", "device", "hosts"} <= set(environment)
    assert tomllib.loads((folder / "case.toml").read_text())["seed"] == 1
    # What was said once was logged once.
    digest = result_of(folder)["digest"]
    assert (folder / "log.txt").read_text().count(digest) == 1
    assert printed[2].count(digest) == 1


# ---- solutions --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ranks", [pytest.param(0, marks=pytest.mark.long), 2, 4])
def test_a_solution_names_the_ids_of_the_file(case_file, tmp_path, ranks):
    """Five nodes: more ranks than blocks of rows."""
    code, printed = lockstep(case_file, "--out", tmp_path / "out", ranks=ranks)
    assert code == 0, printed
    chosen = {int(line) for line in (tmp_path / "out" / "solution" / "gaps.txt").read_text().split()}
    assert chosen <= {node for edge in EDGES for node in edge}
    assert all(u in chosen or v in chosen for u, v in EDGES if u != v)
    (instance,) = result_of(tmp_path / "out")["instances"]
    assert instance["objective"] == len(chosen) == 3
    assert (instance["nodes"], instance["edges"], instance["bound"]) == (7, 5, 3)
    assert "7 edge lines: 1 self loops, 1 repeats)" in printed


@pytest.mark.parametrize("ranks", [1, 3])
def test_graphs_of_one_file_name_are_told_apart_everywhere(tmp_path, ranks):
    for i, folder in enumerate(("a", "b", "c")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "g.txt").write_text("".join(f"{i} {j}\n" for j in range(3, 6 + i)))
    paths = json.dumps([str(tmp_path / folder / "g.txt") for folder in "abc"])
    keys = [f"graph.path={paths}", "search.steps=10", "output.plots=false", "parallel.data=3"]
    start = [*mpirun(ranks), sys.executable, "run.py", "inputs/mvc.toml"]
    code, printed = run_job([*start, *keys, "--out", tmp_path / "out"], cwd=ROOT)
    assert code == 0, printed
    wanted = ["g", "g-2", "g-3"]
    assert sorted(path.stem for path in (tmp_path / "out/solution").iterdir()) == wanted
    result = json.loads((tmp_path / "out/result.json").read_text())
    assert [each["name"] for each in result["instances"]] == wanted
    with open(tmp_path / "out/answers.csv") as file:
        assert [line["name"] for line in csv.DictReader(file)] == wanted
    assert "g-3: objective 1" in printed


def test_names_of_graphs_are_told_apart_by_their_files():
    assert names_apart(["g", "h", "g", "g-2", "a b", "a_b"]) == ["g", "h", "g-3", "g-2", "a b", "a_b-2"]


def test_a_solution_of_a_named_graph(runs):
    chosen = {int(i) for i in (runs[0][2] / "solution" / "les_miserables.txt").read_text().split()}
    graph = networkx.convert_node_labels_to_integers(networkx.les_miserables_graph())
    covered = sum(u in chosen or v in chosen for u, v in graph.edges)
    assert covered == graph.number_of_edges()


@pytest.mark.parametrize("ranks", [pytest.param(0, marks=pytest.mark.long), 2])
def test_a_command_can_be_given_again_once_its_file_is_mended(tmp_path, ranks):
    graph, out = tmp_path / "g.txt", tmp_path / "out"
    graph.write_text("1 2\n2 x\n")
    words = ("inputs/mvc.toml", f"graph.path={graph}", "search.steps=10", "output.plots=false", "--out", out)
    code, printed = lockstep(*words, ranks=ranks)
    assert (code, out.exists()) == (2, False)
    assert "g.txt:2" in printed
    graph.write_text("1 2\n2 3\n")
    assert lockstep(*words, ranks=ranks)[0] == 0
    assert result_of(out)["status"] == "complete"


@pytest.mark.parametrize(
    ("overrides", "unread"),
    [
        (["train.steps=5", "agent.discount=0.4"], ["[train]", "[agent]"]),
        (["train.graphs={generator='ba', nodes=9}"], ["[train]"]),
        (["train.steps=5", "policy.weights='train'"], []),
        (["select.fraction=0.2"], []),
    ],
)
def test_tables_that_train_are_named_where_weights_are_given(overrides, unread):
    assert unread_tables(load(str(ROOT / "inputs" / "mvc.toml"), overrides)) == unread


def test_a_weight_that_is_refused_is_so_before_the_policy_chooses(tmp_path):
    """Nothing is left of it, as if nothing had begun."""
    graph, weights, out = tmp_path / "g.txt", tmp_path / "w.txt", tmp_path / "out"
    graph.write_text("1 2\n2 3\n")
    weights.write_text("1 1e30\n2 1e-30\n3 1e30\n")
    alone = (
        f"graph.node_weights={weights}",
        "search.solver=policy",
        "output.plots=false",
        "select.rule=fraction",
        "--out",
        out,
    )
    for more in ((), ("search.bounds=false", "search.baselines=false")):
        code, printed = lockstep("inputs/mvc.toml", f"graph.path={graph}", *more, *alone)
        assert (code, out.exists()) == (2, False), printed
        assert "the weight of node 2 is below 0, or nothing beside the largest" in printed


def test_what_is_refused_takes_nothing_with_it(tmp_path):
    """A user's own file in the folder, which is no earlier run's, stays."""
    out = tmp_path / "out"
    out.mkdir()
    (out / "case.toml").write_text('[run]\ntask = "solve"\n[graph]\ngenerator = "ba"\nnodes = 5\n')
    before = files_of(tmp_path)
    code, _ = lockstep(out / "case.toml", f"graph.path={tmp_path / 'none.txt'}", "--out", out, "--resume")
    assert (code, files_of(tmp_path)) == (2, before)
    code, printed = lockstep(
        "inputs/mvc.toml", "graph.generator=ba", "graph.nodes=9", "--out", out, "--resume"
    )
    assert code == 2
    assert "belongs to another run" in printed
    assert files_of(tmp_path) == before


@pytest.mark.parametrize("name", ["log.txt", "notes.txt"])
def test_a_users_folder_is_not_called_an_earlier_run(case_file, tmp_path, name):
    out = tmp_path / "out"
    out.mkdir()
    (out / name).write_text("mine")
    before = files_of(tmp_path)
    for more in ((), ("--overwrite",), ("--resume",)):
        code, printed = lockstep(case_file, "--out", out, *more)
        assert (code, printed.count("\n")) == (2, 1)
        assert "is no folder of an earlier run; name another one" in printed
        assert files_of(tmp_path) == before


def test_a_refusal_is_said_also_where_the_folder_cannot_be_freed(solo, tmp_path, monkeypatch):
    folder = RunFolder(solo, str(tmp_path / "out"), False)
    (tmp_path / "out" / "log.txt").write_text("begun")

    def refuses(path):
        raise PermissionError(path)

    for name in ("remove", "listdir"):
        with monkeypatch.context() as patch:
            patch.setattr(f"app.output.os.{name}", refuses)
            folder.withdraw()
        assert (tmp_path / "out" / "log.txt").exists()
    folder.withdraw()
    assert not (tmp_path / "out" / "log.txt").exists()
    folder.release()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("more", [(), ("--resume",)])
def test_a_refused_input_leaves_the_folders_that_were_there(tmp_path, more):
    """What was made for the run goes, on two ranks; an empty folder of the user's stays, and is free."""
    graph, mine, made = tmp_path / "g.txt", tmp_path / "mine", tmp_path / "runs" / "out"
    graph.write_text("1 2\n2 x\n")
    mine.mkdir()
    for out in (mine, made):
        code, printed = lockstep("inputs/mvc.toml", f"graph.path={graph}", "--out", out, *more, ranks=2)
        assert code == 2 and f"{graph}:2" in printed
    assert sorted(tmp_path.iterdir()) == [graph, mine]
    assert not list(mine.iterdir())


@pytest.mark.parametrize("name", ["n" * 300, "up/../out/" + "n" * 300])
def test_a_folder_that_cannot_be_made_leaves_none(tmp_path, solo, name):
    """Those around it, which were made for it, go; what the user has stays."""
    (tmp_path / "runs").mkdir()
    with pytest.raises(CaseError, match="cannot write there: "):
        RunFolder(solo, f"{tmp_path}/runs/new/{name}", overwrite=False)
    assert list(tmp_path.iterdir()) == [tmp_path / "runs"] and not list((tmp_path / "runs").iterdir())


# ---- what is not spoiled ----------------------------------------------------------------------------------


@pytest.mark.parametrize("ranks", [pytest.param(0, marks=pytest.mark.long), 2])
def test_an_earlier_run_is_not_touched(case_file, tmp_path, ranks):
    out = tmp_path / "out"
    (out / "solution").mkdir(parents=True)
    (out / "result.json").write_text("{}")
    (out / "solution" / "old.txt").write_text("1\n")
    (out / "mine.txt").write_text("keep")
    before = files_of(tmp_path)
    code, printed = lockstep(case_file, "--out", out, ranks=ranks)
    assert code == 2
    assert printed.count("\n") == 1
    assert "holds an earlier run; name another folder, or add --overwrite" in printed
    assert files_of(tmp_path) == before
    # Asked to, it replaces what a run wrote and leaves the rest.
    code, printed = lockstep(case_file, "--out", out, "--overwrite", ranks=ranks)
    assert code == 0, printed
    assert result_of(out)["status"] == "complete"
    assert (out / "mine.txt").read_text() == "keep"
    assert list(files_of(out / "solution")) == ["gaps.txt"]


@pytest.mark.parametrize("ranks", [0, 2])
def test_a_dry_run_writes_nothing(case_file, tmp_path, ranks):
    before = files_of(tmp_path)
    code, printed = lockstep(case_file, "--out", tmp_path / "out", "--dry-run", ranks=ranks)
    assert code == 0, printed
    assert files_of(tmp_path) == before
    assert not (tmp_path / "out").exists()
    assert tomllib.loads(printed)["run"]["task"] == "solve"
    assert printed.count("results would go to") == 1


def test_a_file_in_the_way(case_file, tmp_path):
    (tmp_path / "out").write_text("mine")
    for out in (tmp_path / "out", tmp_path / "out" / "below"):
        code, printed = lockstep(case_file, "--out", out, ranks=2)
        assert code == 2, printed
        assert printed.count("\n") == 1, printed
    assert (tmp_path / "out").read_text() == "mine"


# ---- errors -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message", "ranks"),
    [
        ("1 2\n3 x\n", "bad.edges:2", 0), ("", "no edges in", 0), ("1 2\n3\n", "bad.edges:2", 0),
        ("1 2\n3 x\n", "bad.edges:2", 2), ("", "no edges in", 2),
    ],
)  # fmt: skip
def test_a_bad_file_is_one_line_and_exit_code_2(case_file, tmp_path, ranks, text, message):
    (tmp_path / "bad.edges").write_text(text)
    code, printed = lockstep(
        case_file, f'graph.path="{tmp_path}/bad.edges"', "--out", tmp_path / "out", ranks=ranks
    )
    errors = [line for line in printed.splitlines() if "error" in line]
    assert code == 2, printed
    assert len(errors) == 1
    assert errors[0].startswith("lockstep: error: ")
    assert message in errors[0]
    assert "Traceback" not in printed
    assert not (tmp_path / "out" / "result.json").exists()


@pytest.mark.parametrize("variable", ["PMI_SIZE", "OMPI_COMM_WORLD_SIZE"])
def test_the_launcher_of_another_mpi_is_noticed(case_file, tmp_path, variable):
    """It starts N programs of one rank each. mpi4py may warn first, in its own words."""
    code, printed = lockstep(case_file, "--out", tmp_path / "out", **{variable: "4"})
    errors = [line for line in printed.splitlines() if line.startswith("lockstep")]
    assert code == 2
    assert len(errors) == 1
    assert "the launcher started 4 ranks, but MPI sees 1" in errors[0]
    assert "Traceback" not in printed
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("rank", [0, 1])
def test_a_file_that_one_host_alone_sees_ends_all_ranks(case_file, tmp_path, rank):
    """The rank that misses it must not leave the others waiting in MPI."""
    program = tmp_path / "each.py"
    program.write_text(
        "import sys\n"
        f"sys.path.insert(0, {str(ROOT)!r})\n"
        "import run\n"
        "from app import cli\n"
        f"wrong = ['seed=nothing'] if cli.launcher_rank() == {rank} else []\n"
        "sys.exit(run.main([*sys.argv[1:], *wrong]))\n"
    )
    command = [*mpirun(2), sys.executable, program, case_file, "--out", tmp_path / "out"]
    code, printed = run_job(command)
    assert code == 2
    assert printed.count("lockstep: error: ") == 1 and "Traceback" not in printed
    assert f"  so says rank {rank} on " in printed and "do both see the same files?" in printed
    assert not (tmp_path / "out").exists()


def test_srun_that_tells_ranks_nothing_of_each_other_is_noticed(case_file, tmp_path):
    """As with MpiDefault=none: four programs of one rank each."""
    told = {"SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "0"}
    code, printed = lockstep(case_file, "--out", tmp_path / "out", **told)
    assert code == 2
    assert "lockstep: error: srun started 4 ranks, but MPI sees 1: " in printed
    assert "--mpi" in printed and "mpirun" not in printed
    assert not (tmp_path / "out").exists()


def test_ranks_with_different_cases_are_refused(case_file, tmp_path):
    """One command line, another file on another machine: here by the seed."""
    program = tmp_path / "each.py"
    program.write_text(
        "import os, sys\n"
        f"sys.path.insert(0, {str(ROOT)!r})\n"
        "import run\n"
        "from app import cli\n"
        "sys.exit(run.main([*sys.argv[1:], f'seed={cli.launcher_rank()}']))\n"
    )
    command = [*mpirun(2), sys.executable, program, case_file, "--out", tmp_path / "out"]
    code, printed = run_job(command)
    assert code == 2
    assert printed.count("\n") == 1
    assert "ranks of one job must run the same case: rank 1 has case" in printed
    assert not (tmp_path / "out").exists()


def test_a_device_that_one_rank_lacks_ends_all(case_file, tmp_path):
    """Not a hang: the other rank would go on to its first collective."""
    program = tmp_path / "each.py"
    program.write_text(
        "import sys\n"
        f"sys.path.insert(0, {str(ROOT)!r})\n"
        "import run\n"
        "import app.tasks.context\n"
        "from app.errors import CaseError\n"
        "from app.device import HostDevice\n"
        "def open_device(wanted, rank, *rest):\n"
        "    if rank == 1:\n"
        "        raise CaseError('device gpu: none here')\n"
        "    return HostDevice()\n"
        "app.tasks.context.open_device = open_device\n"
        "sys.exit(run.main(sys.argv[1:]))\n"
    )
    command = [*mpirun(2), sys.executable, program, case_file, "--out", tmp_path / "out"]
    code, printed = run_job(command)
    assert (code, printed) == (2, "lockstep: error: device gpu: none here\n")


def test_a_rank_without_memory_ends_all_with_one_line(case_file, tmp_path):
    """CuPy's error is a MemoryError too."""
    program = tmp_path / "each.py"
    program.write_text(
        "import sys\n"
        f"sys.path.insert(0, {str(ROOT)!r})\n"
        "import run\n"
        "import app.main\n"
        "def starved(context):\n"
        "    if context.group.rank == 1:\n"
        "        raise MemoryError('Out of memory allocating 9 bytes\\n(allocated so far: 1)')\n"
        "    context.group.barrier()\n"
        "app.main.TASKS = dict.fromkeys(app.main.TASKS, starved)\n"
        "sys.exit(run.main(sys.argv[1:]))\n"
    )
    command = [*mpirun(2), sys.executable, program, case_file, "--out", tmp_path / "out"]
    code, printed = run_job(command)
    told = [line for line in printed.splitlines() if "out of memory" in line]
    assert code != 0 and len(told) == 1 and "Traceback" not in printed
    assert (
        "rank 1: out of memory: Out of memory allocating 9 bytes (allocated so far: 1); planned: " in told[0]
    )
    assert "more ranks" in told[0]


def test_overwrite_removes_only_what_a_run_wrote(tmp_path):
    out = tmp_path / "out"
    quick = ["graph.path='networkx:karate_club'", "output.plots=false"]

    def again(*more):
        command = [sys.executable, "run.py", "inputs/mvc.toml", *quick, *more, "--out", out, "--overwrite"]
        return run_job(command)

    assert again()[0] == 0
    (out / "photo.png").write_bytes(b"mine")
    (out / "solution" / "notes.md").write_text("mine")
    assert again()[0] == 0
    assert (out / "photo.png").read_bytes() == b"mine"
    assert (out / "solution" / "notes.md").read_text() == "mine"
    # Inputs are opened before anything is removed, and may not lie in the folder.
    before = (out / "result.json").read_bytes()
    graph = out / "graph.txt"
    graph.write_text("1 2\n2 3\n")
    code, printed = again(f'graph.path="{graph}"')
    assert (code, "holds the input" in printed) == (2, True)
    graph.write_text("1 2\nnot a number\n")
    code, _ = again("graph.format='metis'", f'graph.path="{graph}"')
    assert code == 2
    assert (out / "result.json").read_bytes() == before
    # A folder that no run made is left alone.
    other = tmp_path / "other"
    other.mkdir()
    (other / "weights.npz").write_bytes(b"mine")
    command = [sys.executable, "run.py", "inputs/mvc.toml", *quick, "--out", other, "--overwrite"]
    assert run_job(command)[0] == 2
    assert (other / "weights.npz").read_bytes() == b"mine"


def test_training_on_files_of_different_sizes(tmp_path):
    draws = np.random.default_rng(1)
    files = []
    for n in (30, 97, 50):
        files.append(tmp_path / f"g{n}.txt")
        files[-1].write_text("".join(f"{u} {v}\n" for u, v in draws.integers(0, n, (3 * n, 2))))
    paths = "[" + ", ".join(f'"{f}"' for f in files) + "]"
    digests = []
    for ranks in (1, 2):
        launch = mpirun(ranks) if ranks > 1 else []
        out = tmp_path / f"out{ranks}"
        command = [
            *launch, sys.executable, "run.py", "inputs/paper_ba.toml", f"graph.path={paths}",
            "train.steps=60", "train.environments=3", "--out", out,
        ]  # fmt: skip
        code, printed = run_job(command, limit_s=120)
        assert code == 0, printed
        digests.append(json.loads((out / "result.json").read_text())["digest"])
    assert digests[0] == digests[1]


def test_weights_from_small_graphs_cover_a_large_one(tmp_path):
    """Trained on 40-150 nodes; max-degree greedy takes 8,123 nodes here, the best known cover 7,820."""
    out = tmp_path / "out"
    code, printed = lockstep(
        ROOT / "inputs" / "mvc.toml", "graph.generator=ba", "graph.nodes=14400", "graph.d=4",
        "graph.generator_seed=1", "search.baselines=false", "output.plots=false", "--out", out,
    )  # fmt: skip
    assert code == 0, printed
    (instance,) = result_of(out)["instances"]
    assert (instance["nodes"], instance["edges"]) == (14400, 57584)
    assert 7201 <= instance["bound"] <= 7820 <= instance["objective"] <= 7850
