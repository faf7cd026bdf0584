"""Runs that are killed, stopped or starved, and go on: the last digest is that of a run left alone.

LOCKSTEP_LONG=1 kills a training and a classification 50 times each; otherwise a few times.
"""

import csv
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from jobs import LAUNCHERS, ROOT, mpirun, run_job, split_over
from mpi4py import MPI
from msgspec import structs
from test_main import files_of, metrics, result_of

from app.case.config import Case
from app.case.file import build
from app.case.gnn import GnnCase
from app.case.graph import GraphCase
from app.case.rgcn import RgcnCase
from app.checkpoint import store
from app.checkpoint.keeper import NOTHING_KEPT, Nothing
from app.comm.group import Group
from app.device import HostDevice
from app.errors import Stopped
from app.gnn.classifier import Classifier
from app.gnn.rgcn.links import train_links
from app.gnn.rgcn.split import split_triples
from app.gnn.rgcn.training import Course, train_rgcn
from app.gnn.training import fit
from app.graphs.generators.random_triples import random_labels, random_triples
from app.graphs.triples.relational import relational_graph
from app.log import Log, Mark
from app.main import _work
from app.output import RunFolder
from app.partition.load import load_united
from app.partition.nodes import load_node_data
from app.sparse.rowblock import RowBlock
from app.tasks.context import Context

pytestmark = pytest.mark.mpi_skip
LONG = bool(os.environ.get("LOCKSTEP_LONG"))
KILLS = 50 if LONG else 3  # of each soak
SMALL = ("output.plots=false", "search.baselines=false")
TRAIN = (
    ROOT / "inputs" / "train.toml", "graph.count=8", "graph.nodes=[16,24]",
    "train.steps=160", "train.evaluate_every=40", "train.environments=3", "agent.warmup=20",
    "agent.batch=8", "agent.average=0.9", "policy.hub_degree=1.5", "train.held_back.generator=ba",
    "train.held_back.nodes=[16,24]", "train.held_back.count=3", *SMALL,
)  # fmt: skip
CLASSIFY = (
    ROOT / "inputs" / "gcn.toml", "graph.nodes=400", "gnn.epochs=60", "gnn.evaluate_every=7",
    "parallel.partition=learned", *SMALL,
)  # fmt: skip
SOLVE = (
    ROOT / "inputs" / "mis.toml", "graph.generator=ba", "graph.path=[]", "graph.nodes=[40,60]",
    "graph.count=4", "search.steps=2000", *SMALL,
)  # fmt: skip
LINKS = (
    ROOT / "inputs" / "rgcn_links.toml", "rgcn.epochs=12", "graph.nodes=120", "graph.edges=700",
    "rgcn.evaluate_every=4", *SMALL,
)  # fmt: skip
RGCN = (
    ROOT / "inputs" / "rgcn.toml", "rgcn.epochs=12", "graph.nodes=200", "graph.edges=900",
    "rgcn.labelled=60", *SMALL,
)  # fmt: skip


def job(case, out, *more, ranks=1, **variables):
    """Exit code and output of a case."""
    start = mpirun(ranks) if ranks > 1 else []
    command = [*start, sys.executable, ROOT / "run.py", *case, "--out", out, *more]
    return run_job(command, limit_s=120, **variables)


def fault(text):
    """The variables that ask for a fault."""
    return {"LOCKSTEP_TESTING": "1", "LOCKSTEP_FAULT": text}


def digest(case, folder):
    """The digest of a case that is left alone."""
    code, printed = job(case, folder)
    assert code == 0, printed
    return result_of(folder)["digest"]


@pytest.fixture
def host():
    """This process alone."""
    return Group(MPI.COMM_SELF, HostDevice())


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The folders of cases that were left alone, by name."""
    found = {}
    for name, case in (("train", TRAIN), ("classify", CLASSIFY)):
        found[name] = tmp_path_factory.mktemp(name) / "out"
        digest(case, found[name])
    return found


# ---- killed -----------------------------------------------------------------------------------------------


def soak(case, out, wanted, steps, seed):
    """Kill the run KILLS times at random steps of random ranks, each time on another number of ranks.

    One that is done before it comes to its kill begins again; past the last kill it is left alone.
    """
    draws, killed, at, more = np.random.default_rng(seed), 0, 0, []
    for _ in range(20 * KILLS):
        ranks = int(draws.integers(1, 5 if LONG else 4))
        at += int(draws.integers(1, max(2 * steps // KILLS, 4)))
        asked = fault(f"kill:rank={draws.integers(ranks)},step={at}") if killed < KILLS else {}
        code, printed = job(case, out, "checkpoint.steps=3", *more, ranks=ranks, **asked)
        assert "Traceback" not in printed, printed
        more = ["--resume"]
        if code:
            assert asked, printed
            killed += 1
            continue
        assert result_of(out)["digest"] == wanted
        if not asked:
            return
        at, more = 0, ["--overwrite"]
    pytest.fail("never done")


@pytest.mark.timeout(1800)
def test_a_training_that_is_killed_again_and_again(tmp_path, undisturbed):
    wanted, out = undisturbed["train"], tmp_path / "out"
    soak(TRAIN, out, result_of(wanted)["digest"], 160, 1)
    assert result_of(out)["digest"] == result_of(wanted)["digest"]
    assert files_of(out)["weights.npz"] == files_of(wanted)["weights.npz"]
    assert metrics(out) == metrics(wanted)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_classification_that_is_killed_again_and_again(tmp_path, undisturbed):
    wanted, out = undisturbed["classify"], tmp_path / "out"
    soak(CLASSIFY, out, result_of(wanted)["digest"], 60, 2)
    assert result_of(out)["digest"] == result_of(wanted)["digest"]
    assert metrics(out) == metrics(wanted)


@pytest.mark.parametrize(
    ("case", "step", "ranks"),
    [
        (SOLVE, 2, (2, 1)), pytest.param(LINKS, 7, (1, 3), marks=pytest.mark.long),
        pytest.param(
            (*LINKS, "rgcn.candidates=30", "rgcn.scorer=rotate"), 6, (3, 1), marks=pytest.mark.long
        ),
        pytest.param(RGCN, 7, (2, 1), marks=pytest.mark.long),
    ],
)  # fmt: skip
def test_other_tasks_go_on(tmp_path, case, step, ranks):
    wanted, out = digest(case, tmp_path / "whole"), tmp_path / "out"
    killed = fault(f"kill:rank={ranks[0] - 1},step={step}")
    shared = [() if case is SOLVE else (split_over(each),) for each in ranks]
    code, _ = job(case, out, "checkpoint.steps=1", *shared[0], ranks=ranks[0], **killed)
    assert code != 0
    assert not (out / "result.json").exists()
    code, printed = job(case, out, "--resume", *shared[1], ranks=ranks[1])
    assert (code, "resumed from" in printed) == (0, True), printed
    assert result_of(out)["digest"] == wanted
    assert metrics(out) == metrics(tmp_path / "whole")


@pytest.mark.long
@pytest.mark.parametrize("agent", ["ppo", "reinforce"])
def test_other_learners_go_on(tmp_path, agent):
    unread = {"ppo": ("agent.warmup",), "reinforce": ("agent.warmup", "agent.batch")}[agent]
    read = [each for each in TRAIN if not str(each).startswith(unread)]
    case = (
        *read, f"agent.learner={agent}", "train.steps=120",
        *(["agent.rollout_steps=30"] if agent == "ppo" else ["agent.rollouts=2", "agent.rollout_graphs=2"]),
    )  # fmt: skip
    wanted, out = digest(case, tmp_path / "whole"), tmp_path / "out"
    assert job(case, out, "checkpoint.steps=20", **fault("kill:rank=0,step=70"))[0] != 0
    code, printed = job(case, out, "--resume", ranks=2)
    assert (code, "resumed from" in printed) == (0, True), printed
    assert result_of(out)["digest"] == wanted


@pytest.mark.long
def test_a_longer_training_goes_on_from_a_shorter_one(tmp_path, undisturbed):
    out = tmp_path / "out"
    code, printed = job((*TRAIN, "train.steps=90"), out, "checkpoint.steps=25")
    assert code == 0, printed
    code, printed = job(TRAIN, out, "--resume")
    assert (code, "step-000075" in printed) == (0, True), printed
    assert result_of(out)["digest"] == result_of(undisturbed["train"])["digest"]
    # It is done: nothing is left to do, and a shorter one would be another run.
    before = files_of(out)
    code, printed = job(TRAIN, out, "--resume")
    assert (code, "complete already" in printed) == (0, True)
    assert files_of(out) == before


# ---- stopped ----------------------------------------------------------------------------------------------


def start(case, out, *more, ranks=2, rows=1, **variables):
    """A run that has written so many rows of metrics.csv, or that is over."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(LAUNCHERS)}
    command = [*mpirun(ranks), sys.executable, ROOT / "run.py", *case, "--out", out, *more]
    run = subprocess.Popen(
        list(map(str, command)), cwd=ROOT, env={**kept, **variables}, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
    )  # fmt: skip
    for _ in range(600):
        if run.poll() is not None or metrics_rows(out) > rows:
            return run
        time.sleep(0.1)
    os.killpg(run.pid, signal.SIGKILL)
    raise AssertionError(run.communicate()[0])


def metrics_rows(out):
    path = out / "metrics.csv"
    return path.read_text().count("\n") if path.exists() else 0


def ended(run):
    """Exit code and output, within a time that a stuck run would not keep."""
    try:
        printed, _ = run.communicate(timeout=60)
    finally:
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGKILL)
    return run.returncode, printed


ENDLESS = (*TRAIN, "train.steps=1000000")


@pytest.mark.parametrize("number", [signal.SIGUSR1, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
def test_a_signal_to_mpirun_stops_all_ranks_with_a_checkpoint(tmp_path, number):
    out = tmp_path / "out"
    run = start(ENDLESS, out)
    run.send_signal(number)
    code, printed = ended(run)
    assert code == 3, printed
    (step,) = re.findall(rf"stopped by {number.name}; checkpoint \S*step-0*(\d+);", printed)
    assert "run.py" in printed
    assert "--resume" in printed
    assert not (out / "result.json").exists()
    assert not (out / ".lock").exists()
    # On as many steps as it had made and some: equal to a run that was never stopped.
    steps = f"train.steps={int(step) + 30}"
    code, printed = job((*TRAIN, steps), out, "--resume")
    assert code == 0, printed
    assert result_of(out)["digest"] == digest((*TRAIN, steps), tmp_path / "whole")


@pytest.mark.parametrize("after_s", [0.03, 0.2])
def test_a_second_signal_changes_nothing_of_the_exit_code(tmp_path, after_s):
    run = start(ENDLESS, tmp_path / "out")
    for _ in range(2):
        run.send_signal(signal.SIGUSR1)
        time.sleep(after_s)
    code, printed = ended(run)
    assert (code, printed.count("stopped by SIGUSR1; checkpoint")) == (3, 1), printed


def test_a_signal_while_libraries_are_loaded_stops_the_run_at_its_first_step(tmp_path):
    script = tmp_path / "early.py"
    script.write_text(
        "import os, runpy, signal, sys\n"
        "import app.checkpoint.signals as signals\n"
        "hear = signals.hear_early\n"
        "def heard():\n"
        "    hear()\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "signals.hear_early = heard\n"
        f"sys.argv[0] = {str(ROOT / 'run.py')!r}\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')\n"
    )
    command = [sys.executable, script, *ENDLESS, "--out", tmp_path / "out"]
    code, printed = run_job(command, PYTHONPATH=str(ROOT))
    assert code == 3, printed
    assert "SIGTERM: the run stops after this step with a checkpoint" in printed
    assert "stopped by SIGTERM; checkpoint" in printed


INTERRUPTED = """
import os, runpy, signal, sys
class First:
    def find_spec(self, name, path=None, target=None):
        if name == "{module}":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, First())
sys.argv[0] = "{program}"
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def test_an_interrupt_before_there_is_anything_to_keep_is_one_line(tmp_path):
    """Of a run while libraries are loaded, and of what writes no checkpoint at any time."""
    for module, more, told in (
        ("app.cli", [], "lockstep: interrupted before anything began"),
        ("numpy", [], "lockstep: interrupted before anything began"),
        ("app.problems.mvc", ["--dry-run"], "lockstep: error: rank 0: interrupted"),
    ):
        script = tmp_path / "first.py"
        script.write_text(INTERRUPTED.format(module=module, program=str(ROOT / "run.py")))
        command = [sys.executable, script, *ENDLESS, *more, "--out", tmp_path / "out"]
        code, printed = run_job(command, PYTHONPATH=str(ROOT))
        assert code == 1 and printed.count(told) == 1 and "Traceback" not in printed, printed


@pytest.mark.parametrize("module", ["numpy", "app.main"])
def test_an_interrupt_of_one_rank_before_mpi_begins_ends_the_others(tmp_path, module):
    """A rank that left at once would be one that MPICH's others wait for in MPI_Init, for ever."""
    script = tmp_path / "first.py"
    one = "from app.cli import launcher_rank\n" + INTERRUPTED.replace(
        'name == "{module}"', 'name == "{module}" and launcher_rank() == 1'
    )
    script.write_text(one.format(module=module, program=str(ROOT / "run.py")))
    command = [*mpirun(2), sys.executable, script, *ENDLESS, "--out", tmp_path / "out"]
    code, printed = run_job(command, limit_s=60, PYTHONPATH=str(ROOT))
    assert code != 0 and "Traceback" not in printed, printed
    assert not (tmp_path / "out" / "result.json").exists()


def test_a_signal_before_the_command_line_is_read_is_heard_too(tmp_path):
    """A run stops before its task begins; what writes no checkpoint ends as by default."""
    script = tmp_path / "first.py"
    script.write_text(
        "import os, runpy, signal, sys\n"
        "class First:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'app.cli':\n"
        "            os.kill(os.getpid(), signal.SIGTERM)\n"
        "sys.meta_path.insert(0, First())\n"
        f"sys.argv[0] = {str(ROOT / 'run.py')!r}\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')\n"
    )
    command = [sys.executable, script, *ENDLESS, "--out", tmp_path / "out"]
    code, printed = run_job(command, PYTHONPATH=str(ROOT))
    assert (code, "stopped by SIGTERM; checkpoint" in printed) == (3, True), printed
    assert "policy:" not in printed and (tmp_path / "out" / "checkpoint").is_dir()
    code, printed = run_job([*command, "checkpoint.enabled=false", "--overwrite"], PYTHONPATH=str(ROOT))
    assert code in (-signal.SIGTERM, 128 + signal.SIGTERM), printed


LONG_PASS = """
import os, runpy, signal, sys, time
import app.tasks.tools as tools
from app.search.cover.tools import CoverTools
made, calls = CoverTools.__init__, []
def slow(self, *given):  # the second time as a pass over very many edges, without the interpreter's lock
    calls.append(given)
    if len(calls) == 2:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(600)
    made(self, *given)
CoverTools.__init__ = slow
tools.LONG = 0
sys.argv[0] = {program!r}
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def test_a_signal_while_tools_are_made_is_heard_within_the_pass(tmp_path):
    script, out = tmp_path / "slow.py", tmp_path / "out"
    script.write_text(LONG_PASS.format(program=str(ROOT / "run.py")))
    case = (*SOLVE, "search.steps=10")
    code, printed = run_job([sys.executable, script, *case, "--out", out], PYTHONPATH=str(ROOT))
    assert (code, printed.count("stopped by SIGTERM; checkpoint")) == (3, 1), printed
    left = json.loads((out / "stopped.json").read_text())
    assert left["status"] == "stopped" and len(left["instances"]) == 1
    assert not (out / ".lock").exists() and not (out / "result.json").exists()


def test_a_signal_to_one_rank_is_one_to_all(tmp_path):
    code, printed = job(
        ENDLESS, tmp_path / "out", ranks=3, **fault(f"signal:rank=1,step=50,code={signal.SIGTERM}")
    )
    assert code == 3, printed
    assert printed.count("stopped by") == 1


def test_ranks_that_solve_at_once_stop_within_an_instance(tmp_path):
    """What is finished is kept; the instances that were under way begin anew."""
    case = (*SOLVE, "search.bounds=false")
    out = tmp_path / "out"
    apart = fault(f"signal:rank=1,step=0,code={signal.SIGTERM}")
    code, printed = job((*case, "parallel.data=2"), out, ranks=2, **apart)
    assert (code, printed.count("by SIGTERM; checkpoint")) == (3, 1), printed
    assert not (out / "result.json").exists()
    saved, _ = store.newest(str(out / "checkpoint"))
    assert set(saved.parts) == {"answer 0"}  # of the other group, which did not hear of it
    code, printed = job((*case, "parallel.data=2"), out, "--resume", ranks=2)
    assert (code, "resumed from" in printed) == (0, True), printed
    assert result_of(out)["digest"] == digest(case, tmp_path / "whole")


PROGRESS = (
    "study.kind=progress", "study.families=['ba']", "study.targets=[1.0]", "study.variants=['a']",
    "study.seeds=[1]",
)  # fmt: skip


@pytest.mark.parametrize(
    "settings",
    [
        (
            "study.kind=learners", "study.problems=['mvc']", "study.learners=['dqn', 'reinforce']",
            "study.embeddings=['structure2vec']", "study.steps=40",
        ),
        pytest.param(PROGRESS, marks=pytest.mark.long),
        (*PROGRESS, "study.alone=true"),
    ],
    ids=["a rank each", "all ranks", "rank 0"],
)  # fmt: skip
def test_a_study_stops_within_a_training(settings, tmp_path):
    """The training that was under way begins anew."""
    case = tmp_path / "study.toml"
    case.write_text('[run]\nname = "study"\ntask = "study"\n')
    small = (
        "graph.generator=ba", "graph.nodes=30", "graph.d=3", "graph.count=2", "study.graphs_per_size=1",
        "train.steps=40", "train.evaluate_every=40", "train.evaluate_graphs=1", "search.steps=20",
        "output.plots=false",
    )  # fmt: skip
    given, out = (case, *small, *settings), tmp_path / "out"
    code, printed = job(given, out, ranks=2, **fault(f"signal:rank=0,step=20,code={signal.SIGTERM}"))
    assert (code, printed.count("by SIGTERM; checkpoint")) == (3, 1), printed
    assert not (out / "result.json").exists()
    code, printed = job(given, out, "--resume", ranks=2)
    assert (code, "resumed from" in printed) == (0, True), printed
    assert result_of(out)["digest"] == digest(given, tmp_path / "whole")


def test_rows_of_work_that_begins_anew_are_written_once(tmp_path):
    """A rollout has no state of its own: it begins anew, and what it had said is said again."""
    out = tmp_path / "out"
    case = (*SOLVE, "search.solver=policy", "select.rule=fraction", "select.fraction=0.01")
    code, printed = job(case, out, **fault(f"signal:rank=0,step=5,code={signal.SIGTERM}"))
    assert code == 3, printed
    code, printed = job(case, out, "--resume")
    assert (code, "resumed from" in printed) == (0, True), printed
    with open(out / "metrics.csv", newline="") as file:
        rows = [(row["name"], row["step"]) for row in csv.DictReader(file) if row["phase"] == "solve"]
    assert len(rows) == len(set(rows)) > 20


def test_a_study_of_times_stops_between_its_rows(tmp_path):
    """Seconds that were measured stay; test_study_resume.py has every kind of study."""
    out = tmp_path / "out"
    case = (
        ROOT / "inputs" / "study_permutation.toml", "graph.nodes=256", "graph.d=4", "study.widths=[2, 3]",
        "study.rounds=2", "output.plots=false",
    )  # fmt: skip
    code, printed = job(case, out, ranks=2, **fault(f"signal:rank=1,step=1,code={signal.SIGTERM}"))
    assert (code, printed.count("stopped by SIGTERM")) == (3, 1), printed
    saved, _ = store.newest(str(out / "checkpoint"))
    ((rows, _, _),) = (each.values["result"] for each in saved.parts.values())
    code, printed = job(case, out, "--resume", ranks=2)
    assert (code, "resumed from" in printed) == (0, True), printed
    found = result_of(out)["rows"]
    assert [row["width"] for row in found] == [2, 2, 3, 3]
    assert found[:2] == rows


def test_a_second_interrupt_ends_the_job_at_once(tmp_path):
    out = tmp_path / "out"
    run = start(ENDLESS, out, ranks=1, **fault("hang:rank=0,step=50"))
    rank = json.loads((out / ".lock").read_text())["pid"]
    time.sleep(0.5)
    os.kill(rank, signal.SIGINT)
    time.sleep(0.8)
    assert run.poll() is None
    os.kill(rank, signal.SIGINT)
    code, printed = ended(run)
    assert (code, "interrupted again" in printed) == (1, True), printed


@pytest.mark.parametrize("problem", ["maxcut", "clique"])
def test_a_run_goes_on_that_was_stopped_while_rows_were_reduced(problem, tmp_path):
    """Of a graph beyond memory.whole_graph_mb."""
    case = (
        ROOT / "inputs" / f"{problem}.toml", "graph.generator=er", "graph.path=[]", "graph.nodes=600",
        "graph.p=0.004", "graph.count=1", "search.steps=2000", "search.bound_seconds=1",
        "memory.whole_graph_mb=0.12", *SMALL,
    )  # fmt: skip
    alone, out = digest(case, tmp_path / "alone"), tmp_path / "out"
    code, printed = job(case, out, ranks=2, **fault(f"signal:rank=1,step=0,code={int(signal.SIGTERM)}"))
    assert (code, "rows reduced" in printed) == (3, False), printed
    code, printed = job(case, out, "--resume", ranks=2)
    assert (code, "rows reduced" in printed) == (0, True), printed
    assert result_of(out)["digest"] == alone


def test_hours_end_a_run_in_time(tmp_path):
    begun = time.monotonic()
    code, printed = job(ENDLESS, tmp_path / "out", "--max-hours", 4 / 3600, ranks=2)
    assert (code, "by --max-hours" in printed) == (3, True), printed
    assert time.monotonic() - begun < 30


def test_hours_that_are_over_end_a_run_before_its_graph_is_read(tmp_path):
    graph, out = tmp_path / "m.txt", tmp_path / "out"
    case = (ROOT / "inputs" / "mvc.toml", f"graph.path={graph}", *SMALL)
    graph.write_text("1 2\n2 3\n")
    code, printed = job(case, out, "--max-hours", "0.000001")
    assert (code, "by --max-hours" in printed, "3 nodes" in printed) == (3, True, False), printed
    code, printed = job(case, out, "--resume")
    assert (code, "3 nodes" in printed) == (0, True), printed


# ---- how long it took -------------------------------------------------------------------------------------


class Before(Nothing):
    """Ends a training at its third epoch, and has it go on as if that had taken a thousand seconds."""

    kept = None

    def recall(self, key):
        return self.kept

    def at(self, step, key="", state=None, now=False):
        if step == 2 and not self.kept:
            self.kept = state()
            self.kept.values["seconds"] += 1000
            raise Stopped("here")


def stopped_once(run):
    """What a training leaves that was stopped and went on."""
    keeper = Before()
    with pytest.raises(Stopped):
        run(keeper)
    return run(keeper)


@pytest.mark.parametrize("kind", ["classify", "rgcn", "links"])
def test_a_training_tells_the_seconds_of_all_its_parts(kind, host):
    triples, case = random_triples(30, 90, 3, 1), RgcnCase(epochs=4, hidden=4, dimension=4)
    if kind == "classify":
        table = GraphCase(generator="sbm", nodes=40, random_classes=2, random_features=3, splits="random")
        loaded = load_united(host, table, Case())
        data = load_node_data(host, table, loaded, Case())
        block = RowBlock(host, loaded.graph, loaded.rows, "auto", 4, None)
        found = stopped_once(
            lambda keeper: fit(Classifier(host, GnnCase(hidden=4, epochs=4), block, data, 1), keeper=keeper)
        )
    elif kind == "links":
        split = split_triples(triples, case.held_out, 1, case.validation)
        found = stopped_once(
            lambda keeper: train_links(host, triples, split, case, 1, course=Course(keeper=keeper))
        )
    else:
        graph, labels = relational_graph(triples), random_labels(triples, 10, 2, 1)
        found = stopped_once(
            lambda keeper: train_rgcn(host, graph, labels, case, 1, course=Course(keeper=keeper))
        )
    assert 1000 < found.seconds < 1100


def test_a_relational_training_that_was_stopped_ends_as_one_that_was_not(host):
    """With the best weights from before the stop, and what dropout and the step sizes were to be."""
    triples = random_triples(30, 90, 3, 1)
    chosen = {"hidden": 4, "dimension": 4, "epochs": 9, "dropout": 0.3, "schedule": "cosine", "patience": 6}
    case = RgcnCase(**chosen, validation=0.2)
    split = split_triples(triples, case.held_out, 1, case.validation)
    graph, labels = relational_graph(triples), random_labels(triples, 20, 2, 1)
    labels = replace(
        labels, val_idx=labels.test_idx, val_label=labels.test_label, test_idx=labels.test_idx[:0],
        test_label=labels.test_label[:0],
    )  # fmt: skip

    def links(keeper):
        return train_links(host, triples, split, case, 1, course=Course(keeper=keeper))

    def classes(keeper):
        return train_rgcn(
            host, graph, labels, structs.replace(case, keep="best"), 1, course=Course(keeper=keeper)
        )

    for run in (links, classes):
        stopped, whole = stopped_once(run), run(NOTHING_KEPT)
        assert (stopped.epochs, stopped.best_epoch) == (whole.epochs, whole.best_epoch)
        assert stopped.records == whole.records
        weights = [each.net.whole_weights(host) for each in (stopped, whole)]
        assert all(np.array_equal(weights[0][name], array) for name, array in weights[1].items())


def test_a_run_tells_the_seconds_of_all_its_parts(tmp_path, host):
    settings = {"run.task": "solve", "graph.generator": "er", "graph.nodes": 20, "search.steps": 10}
    case, folder = build({**settings, "output.plots": False}), RunFolder(host, str(tmp_path / "out"), True)
    folder.begin(case, host.device)
    log = Log(True, folder.path, mark=Mark(seconds=1000.0))
    _work(Context(case, host, log, folder), [])
    log.close()
    assert 1000 < result_of(tmp_path / "out")["seconds"] < 1100


# ---- starved, refused -------------------------------------------------------------------------------------


def test_a_full_disk_costs_a_checkpoint_and_no_more(tmp_path, undisturbed):
    """Files may have 20 kB: enough for the log and the weights, not for a checkpoint."""
    out = tmp_path / "out"
    limited = (
        "import resource, sys; from mpi4py import MPI; import run; "  # MPI has files of its own
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000)); sys.exit(run.main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", limited, *TRAIN, "checkpoint.steps=40", "--out", out]
    code, printed = run_job(command, limit_s=120)
    assert code == 0, printed
    assert re.search(r"no checkpoint at step \d+: File too large; the earlier checkpoints stay", printed), (
        printed
    )
    assert list((out / "checkpoint").iterdir()) == []
    assert result_of(out)["digest"] == result_of(undisturbed["train"])["digest"]


def test_what_may_not_go_on_is_refused_and_left_alone(tmp_path):
    out = tmp_path / "out"
    assert job(TRAIN, out, "checkpoint.steps=20", **fault("kill:rank=0,step=70"))[0] != 0
    (out / ".lock").unlink()
    before = files_of(out)
    for more, said in (
        (["seed=9", "--resume"], "seed: 3 there, 9 here"),
        (["train.environments=4", "--resume"], "train.environments: 3 there, 4 here"),
        (["train.steps=50", "--resume"], "train.steps: 50, but the checkpoint has made"),
        (["--resume", "--overwrite"], "one of them"),
        ([], "add --overwrite or --resume"),
        (["--max-hours", "0"], "must be hours above 0"),
    ):
        code, printed = job(TRAIN, out, *more)
        assert (code, said in printed) == (2, True), (more, printed)
        assert printed.count("error:") == 1
        assert files_of(out) == before
    for path in (out / "checkpoint").glob("*/state.npz"):
        path.write_bytes(b"junk")
    code, printed = job(TRAIN, out, "--resume", ranks=2)
    assert (code, "no valid checkpoint" in printed) == (2, True), printed


def test_a_study_of_files_that_have_changed_is_refused(tmp_path):
    numbers = np.random.default_rng(1)

    def write(nodes):
        ends = numbers.integers(0, nodes, (2, 3 * nodes))
        X, labels = numbers.normal(size=(nodes, 3)).astype(np.float32), np.arange(nodes) % 2
        masks = {f"{name}_mask": np.arange(nodes) % 3 == i for i, name in enumerate(("train", "val", "test"))}
        np.savez(tmp_path / "d.npz", edge_index=ends, num_nodes=nodes, features=X, labels=labels, **masks)

    write(30)
    case = (
        ROOT / "inputs" / "study_models.toml", 'study.models=["gcn","sage"]', "gnn.epochs=3",
        f'study.datasets=["{tmp_path}/d.npz seeds=1"]', "checkpoint.steps=1", *SMALL,
    )  # fmt: skip
    out = tmp_path / "out"
    code, printed = job(case, out, "--max-hours", "0.000001", ranks=1)
    assert code == 3, printed
    write(40)
    code, printed = job(case, out, "--resume", ranks=1)
    assert (code, "the file d.npz (sha256)" in printed) == (2, True), printed


def test_a_complete_run_of_a_file_that_has_changed_is_refused(tmp_path):
    graph, out = tmp_path / "m.txt", tmp_path / "out"
    case = (ROOT / "inputs" / "mvc.toml", f"graph.path={graph}", *SMALL)
    graph.write_text("1 2\n2 3\n")
    assert job(case, out)[0] == 0
    code, printed = job(case, out, "--resume")
    assert (code, "complete already" in printed) == (0, True), printed
    whole = result_of(out)["digest"]
    for damaged in (b"", b'{\n "status": "comp', b"\xff\xfe"):  # by a disk, or an editor
        (out / "result.json").write_bytes(damaged)
        code, printed = job(case, out, "--resume")
        assert (code, "result.json is damaged" in " ".join(printed.split())) == (0, True), printed
        assert result_of(out)["digest"] == whole
    graph.write_text("1 2\n2 3\n3 4\n4 5\n")
    code, printed = job(case, out, "--resume")
    assert (code, "the file m.txt (sha256)" in printed) == (2, True), printed
    (out / "environment.json").write_text("{}")  # of a run that did not tell
    assert job(case, out, "--resume")[0] == 0


def test_a_folder_that_is_removed_meanwhile(tmp_path):
    out = tmp_path / "out"
    run = start(ENDLESS, out, ranks=1)
    shutil.rmtree(out)
    run.send_signal(signal.SIGUSR1)
    code, printed = ended(run)
    assert code == 3, printed
    (step,) = re.findall(r"checkpoint \S*step-0*(\d+);", printed)
    code, printed = job((*TRAIN, f"train.steps={int(step) + 10}"), out, "--resume")
    assert code == 0, printed


def test_two_jobs_do_not_share_a_folder(tmp_path):
    out = tmp_path / "out"
    run = start(ENDLESS, out, ranks=1)
    try:
        for more in (["--resume"], ["--overwrite"], []):
            code, printed = job(ENDLESS, out, *more)
            assert (code, "--force-unlock" in printed) == (2, True), printed
            assert f"on {socket.gethostname()} has been writing to it since" in printed
    finally:
        os.killpg(run.pid, signal.SIGKILL)
        run.communicate()
