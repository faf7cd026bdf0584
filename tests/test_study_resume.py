"""Studies that are stopped after every cell and go on: what was finished is never done again."""

import json
from dataclasses import replace
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
import scipy.sparse as sp
from mpi4py import MPI
from test_gnn_studies import TINY
from test_policy_studies import SELECTION

from app.case.file import build
from app.case.rules.studies import READ_BY_KIND
from app.checkpoint.keeper import Nothing
from app.comm.group import Group
from app.device import HostDevice
from app.errors import Stopped
from app.log import Log
from app.model.defaults import DEFAULTS
from app.output import RunFolder
from app.tasks.context import Context
from app.tasks.studies import calibrated
from app.tasks.studies.cells import Cells, measurement
from app.tasks.study import STUDIES, run_study
from app.text import COLUMNS

SMALL = {"study.rounds": 1, "study.seeds": [1], "output.plots": False}
POLICIES = {
    "graph.generator": "mixed", "graph.nodes": [8, 10], "graph.count": 2, "train.steps": 8, "study.steps": 8,
    "train.evaluate_every": 8, "train.evaluate_graphs": 1, "study.graphs_per_size": 1, "agent.warmup": 4,
    "agent.batch": 2,
}  # fmt: skip
UNTAUGHT = {key: value for key, value in POLICIES.items() if not key.startswith("agent.")}
STAGES = {
    "graph.generator": "er", "graph.nodes": 60, "graph.p": 0.2, "parallel.partition": "rows",
    "study.widths": [2, 4],
}  # fmt: skip
STEPS = {
    "study.measured": ["er:40:0.2"], "study.extrapolated": ["ba:900:3"], "study.batches": [3],
    "study.ranks": [1, 4], "study.memory_graph": "",
}  # fmt: skip
CATALOGUE = '[[file]]\npath = "mvc/a.edges"\n[[file]]\npath = "mvc/b.edges"\n'
# Settings of each kind, and the fewest places where it may be stopped.
KINDS = {
    "quality": (
        {
            **UNTAUGHT, "study.families": ["er"], "study.recipes": ["default"], "study.sizes": [10],
            "study.seeds": [1, 2], "search.bounds": False,
        }, 2,
    ),
    "scaling": ({**STEPS, "study.memory_graph": "er:50:0.1"}, 7),
    "strong_scaling": (
        {**STEPS, "study.variants": ["a", "b policy.dimension=8 study.extrapolated=[]"]}, 11,
    ),
    "answers": ({"study.sets": ["mvc"], "search.steps": 50, "search.bounds": False}, 2),
    "partition": (
        {
            "graph.generator": "rmat_natural", "graph.nodes": 256, "graph.d": 4, "study.clock": "simulated",
            "study.widths": [4, 2], "study.epochs": 3,
        }, 4,
    ),
    "models": ({**TINY, "study.models": ["gcn", "sage"]}, 2),
    "depth": ({**TINY, "study.depths": [1, 2], "study.widths": [4]}, 2),
    "breakdown": (TINY, 1),
    "permutation": (STAGES, 2),
    "overlap": (STAGES, 2),
    "density": (
        {**TINY, "graph.generator": "bter", "graph.d": 4, "graph.nodes": 120, "study.scales": [1, 2]}, 2,
    ),
    "sampling": (
        {
            **TINY, "study.seeds": [1, 2], "study.batches": [32], "study.fanouts": [3], "study.epochs": 2,
            "study.layer_samples": [9], "study.layer_epochs": 2,
        }, 2,
    ),
    "inference": ({**TINY, "graph.count": 3, "graph.nodes": [100, 120], "graph.random_features": 6}, 3),
    "gnn_scaling": (
        {
            **TINY, "graph.generator": "er", "graph.p": 0.05, "study.networks": ["a 90 400 8 3 2 4"],
            "study.ranks": [1, 2],
        }, 2,
    ),
    "memory": ({**TINY, "gnn.depth": 4, "study.limits": [0.0, 0.9]}, 2),
    "throughput": ({**TINY, "study.epochs": 2}, 1),
    "tune": ({**TINY, "study.vary": ["hidden 2 3"], "study.seeds": [1, 2], "gnn.epochs": 2}, 2),
    "folds": ({**TINY, "study.folds": 3, "gnn.epochs": 2}, 3),
    "rgcn": (
        {
            "graph.generator": "ba", "graph.nodes": 60, "graph.edges": 200, "gnn.model": "rgcn",
            "rgcn.relations": 4, "rgcn.hidden": 4, "rgcn.bases": 2, "rgcn.labelled": 30, "study.epochs": 2,
            "study.parts": [2],
        }, 2,
    ),
    "selection": ({**SELECTION, "study.seeds": [1], "study.measured": ["er:30:0.2"]}, 3),
    "learners": (
        {
            **POLICIES, "study.problems": ["mvc"], "study.learners": ["dqn", "ppo"],
            "agent.rollout_steps": 4, "study.embeddings": ["structure2vec", "gcn", "sage"],
        }, 2,
    ),
    "progress": (
        {
            **{key: value for key, value in POLICIES.items() if key != "study.steps"},
            "graph.generator": "er", "study.families": ["er"], "study.targets": [9.0],
            "study.variants": ["a", "b agent.batch=3"], "search.steps": 20,
        }, 2,
    ),
}  # fmt: skip
SEVERAL = ("permutation", "overlap", "density")  # need several ranks; "sampling" needs one


class Memory(Nothing):
    """What a run has finished, as a checkpoint would keep it; ends the run where something was added."""

    def __init__(self, stops=True):
        self.states, self.stops, self.seen = {}, stops, 0

    def recall(self, key):
        return self.states.get(key)

    def keep(self, key, state):
        assert key not in self.states, "made again"
        self.states[key] = state

    def at(self, step, key="", state=None, now=False):
        before, self.seen = self.seen, len(self.states)
        if self.stops and self.seen > before:
            raise Stopped(f"after {self.seen} cells")


def stopped_again_and_again(context):
    """The result of a study that is stopped wherever it may be, and how often it was."""
    stops = 0
    while True:
        try:
            return run_study(context), stops
        except Stopped:
            stops += 1


@pytest.fixture
def ranks(monkeypatch):
    """All ranks, on the host, whose rates are known without measuring; no data but what is generated."""
    monkeypatch.delenv("LOCKSTEP_DATA", raising=False)
    rates = lambda group, *_: msgspec.structs.replace(DEFAULTS, ranks=group.size)  # noqa: E731
    monkeypatch.setattr(calibrated, "calibrate", rates)
    return Group(MPI.COMM_WORLD, HostDevice())


@pytest.mark.parametrize("kind", STUDIES)
def test_a_study_goes_on_after_what_was_finished(kind, ranks, shared_path, capsys):
    if (ranks.size == 1 and kind in SEVERAL) or (ranks.size > 1 and kind == "sampling"):
        pytest.skip(f"{kind} does not run on {ranks.size} rank(s)")
    if ranks.size > 2:
        pytest.skip("one and two ranks show it")
    settings, places = KINDS[kind]
    if kind == "answers":
        settings = {**settings, "study.catalogue": catalogue(ranks, shared_path)}
    case = build({**of_kind(kind, SMALL), **settings})
    folder = RunFolder(ranks, str(shared_path / "out"), True)
    whole = Context(case, ranks, Log(ranks.rank == 0), folder, Memory(stops=False))
    parts = replace(whole, log=Log(False), keeper=Memory())
    found, stops = stopped_again_and_again(parts)
    assert stops >= places
    capsys.readouterr()
    assert found["digest"] == run_study(whole)["digest"]
    if kind != "gnn_scaling":  # which prints a table of docs/measurements/networks.md
        assert_narrow(capsys.readouterr().out)
    # All is kept: a further run makes nothing, and has every second of those that did.
    assert stopped_again_and_again(parts) == (found, 0)
    ranks.max_integer(0)  # before a rank removes the folder


def assert_narrow(printed):
    """Lines of what a study prints, tables too, are those of a terminal; paths may be longer."""
    wide = [line for line in printed.splitlines() if len(line) > COLUMNS and "/" not in line]
    assert wide == []


def catalogue(group, path):
    """Two small graphs and the file that names them, written by rank 0. Ranks: all call."""
    if group.rank == 0:
        (path / "mvc").mkdir()
        (path / "catalogue.toml").write_text(CATALOGUE)
        for name in ("a", "b"):
            (path / "mvc" / f"{name}.edges").write_text("0 1\n1 2\n2 3\n3 0\n")
    group.max_integer(0)
    return str(path / "catalogue.toml")


def test_other_ranks_are_measured_again():
    """Seconds of two ranks say nothing of three; those of two are still there afterwards."""
    keeper, made = Cells(Memory(stops=False)), []
    for size in (2, 3, 2):
        context = SimpleNamespace(group=SimpleNamespace(size=size), keeper=keeper)
        assert measurement(context, "a row", lambda size=size: made.append(size) or [size]) == [size]
    assert made == [2, 3]


def test_two_files_of_one_name_are_two_data_sets(ranks, shared_path):
    """One name in two folders, one of them by two recipes: none is taken for another."""
    if ranks.size > 2:
        pytest.skip("one and two ranks show it")
    paths = [two_groups(ranks, shared_path / folder, seed) for seed, folder in enumerate(("a", "b"))]
    recipe = f"{paths[0]} epochs=2"
    settings = {
        **TINY, **SMALL, "run.task": "study", "study.datasets": [*paths, recipe], "study.models": ["gcn"],
        "study.batches": [8], "study.fanouts": [3], "study.epochs": 1, "study.depths": [1],
        "study.layer_samples": [9], "study.layer_epochs": 1,
    }  # fmt: skip
    for kind in ("models", "depth", *["sampling"] * (ranks.size == 1)):
        case = build(of_kind(kind, settings))
        keeper = Memory(stops=False)
        found = run_study(Context(case, ranks, Log(False), None, keeper))
        assert len(keeper.states) == 3
        names = [(row["dataset"], row.get("recipe", "")) for row in found["rows"]]
        assert {name for name, _ in names} == {"twins", "b/twins"}
        if kind != "sampling":
            assert names == [("twins", ""), ("b/twins", ""), ("twins", "epochs=2")]
            assert len({json.dumps(row["test"]) + str(row["epochs"]) for row in found["rows"]}) == 3
    ranks.max_integer(0)  # before a rank removes the folder


def test_one_file_with_other_seeds_is_another_line(ranks, shared_path):
    path = two_groups(ranks, shared_path / "a", 1)
    settings = {
        **TINY, **SMALL, "run.task": "study", "study.datasets": [f"{path} seeds=1", f"{path} seeds=2"],
        "study.seeds": [1, 2], "study.models": ["gcn"], "study.depths": [2], "study.widths": [3],
    }  # fmt: skip
    for kind in ("models", "depth"):
        case = build(of_kind(kind, settings))
        rows = run_study(Context(case, ranks, Log(False), None, Memory(stops=False)))["rows"]
        assert [(row["seeds"], len(row["test"])) for row in rows] == [(1, 1), (2, 2)]
    ranks.max_integer(0)  # before a rank removes the folder


def of_kind(kind, settings):
    """Settings of a study of this kind, without the keys that other kinds read alone."""
    others = set().union(*READ_BY_KIND.values()) - set(READ_BY_KIND[kind])
    kept = {key: value for key, value in settings.items() if key.removeprefix("study.") not in others}
    return {**kept, "run.task": "study", "study.kind": kind}


def two_groups(group, folder, seed):
    """FOLDER/twins.npz: a graph with features, labels and splits, written by rank 0. Ranks: all call."""
    path = folder / "twins.npz"
    if group.rank == 0:
        folder.mkdir()
        draws = np.random.default_rng(seed)
        graph = sp.random_array((40, 40), density=0.1, rng=draws, format="csr")
        labels = np.arange(40) % 2
        split = draws.integers(3, size=40)
        np.savez(
            path, adj_indptr=graph.indptr, adj_indices=graph.indices, labels=labels,
            features=(draws.normal(size=(40, 3)) + labels[:, None]).astype(np.float32),
            train_mask=split == 0, val_mask=split == 1, test_mask=split == 2,
        )  # fmt: skip
    group.max_integer(0)
    return str(path)
