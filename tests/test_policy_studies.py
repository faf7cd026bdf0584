"""The studies of learned policies: tiny grids, whose tables hold what was run and do not depend on ranks."""

import csv
import json
import sys

import numpy as np
import pytest
from helpers import by_one
from jobs import mpirun, run_job
from mpi4py import MPI

from app.case.config import Case
from app.case.file import build
from app.comm.group import Group
from app.device import HostDevice
from app.errors import CaseError
from app.log import Log
from app.model.defaults import DEFAULTS
from app.output import RunFolder
from app.partition.assemble import gather_whole
from app.partition.generated import generate_set
from app.tasks.context import Context
from app.tasks.studies import progress
from app.tasks.studies.counted import counted_seconds
from app.tasks.studies.learners import compared, run_learners
from app.tasks.studies.progress import Course, run_progress
from app.tasks.studies.references import find_references, ratios_to
from app.tasks.studies.selection import read_rule, run_selection
from app.tasks.studies.strong_scaling import PAPER, run_strong_scaling, speedups
from app.tasks.studies.variants import split_variant, with_variant

WORLD = MPI.COMM_WORLD


@pytest.fixture(scope="module")
def ranks():
    """All ranks, on the host: no study does arithmetic of its own on the device."""
    return Group(WORLD, HostDevice())


def study_of(group, settings, path=None):
    """A context of a tiny study; it writes where a path is given."""
    folder = RunFolder(group, str(path), True) if path else None
    return Context(build({"run.task": "study", **settings}), group, Log(False), folder)


def without(rows, *columns):
    """A table without what clocks say."""
    return [{key: value for key, value in row.items() if key not in columns} for row in rows]


# ---- several nodes by one evaluation ----------------------------------------------------------------------

SELECTION = {
    "study.kind": "selection", "study.measured": ["er:40:0.2", "ba:60:3"], "study.seeds": [1, 2],
    "study.rules": ["adaptive", "fraction 0.1"],
}  # fmt: skip


def test_the_study_of_selection(ranks, shared_path):
    found = run_selection(study_of(ranks, SELECTION, shared_path / "out"))
    alone = by_one(lambda: run_selection(study_of(Group(MPI.COMM_SELF, HostDevice()), SELECTION)))
    times = ("full_s", "full_ratio", "following_s", "following_ratio")
    assert found["digest"] == alone["digest"]
    assert without(found["rows"], *times) == without(alone["rows"], *times)
    assert [row["rule"] for row in found["rows"]] == ["single", "adaptive", "fraction 0.1"] * 2
    for one, adaptive, tenth in (found["rows"][:3], found["rows"][3:]):
        assert one["evaluations"] == one["cover"]  # a node each, nothing dropped
        assert one["cover_ratio"] == one["evaluations_ratio"] == one["full_ratio"] == 1
        for row in (adaptive, tenth):
            assert row["evaluations"] < one["evaluations"]
            assert row["evaluations_ratio"] == one["evaluations"] / row["evaluations"]
            assert row["cover_ratio"] == row["cover"] / one["cover"]
    if ranks.rank == 0:
        rows = list(csv.DictReader((shared_path / "out" / "selection.csv").open()))
        assert [int(row["cover"]) for row in rows] == [row["cover"] for row in found["rows"]]


def test_selection_of_cliques(ranks):
    """Choices are made in the complement, solutions checked in the graph."""
    settings = {**SELECTION, "study.measured": ["er:40:0.5"], "study.seeds": [1], "problem.name": "clique"}
    for row in run_selection(study_of(ranks, settings))["rows"]:
        assert row["cover"] >= 3


@pytest.mark.parametrize("problem", ["mvc", "mis"])
def test_selection_on_a_graph_without_edges(problem):
    settings = {**SELECTION, "study.measured": ["er:1:0.5"], "problem.name": problem}
    for row in run_selection(study_of(Group(MPI.COMM_SELF, HostDevice()), settings))["rows"]:
        assert (row["cover_ratio"], row["evaluations_ratio"], row["edges"]) == (1, 1, 0)


def test_a_rule_is_read_with_its_fraction():
    assert (read_rule("adaptive").name, read_rule("fraction 0.01").fraction) == ("adaptive", 0.01)
    for wrong in ("fraction", "fraction 0", "fraction x", "adaptive 0.1", "fraction 0.1 0.2"):
        with pytest.raises(CaseError, match=r"study\.rules"):
            read_rule(wrong)
    with pytest.raises(CaseError, match="known: single"):
        read_rule("best")


# ---- learners, models, problems ---------------------------------------------------------------------------

CELLS = {
    "study.kind": "learners", "graph.generator": "mixed", "graph.nodes": [10, 14], "graph.count": 4,
    "study.problems": ["mvc", "tsp", "maxcut"], "study.learners": ["dqn", "reinforce"],
    "study.embeddings": ["structure2vec"], "study.graphs_per_size": 4, "study.steps": 30,
    "train.evaluate_graphs": 2, "train.evaluate_every": 20, "train.environments": 2, "agent.warmup": 8,
    "study.settings": ["dqn mvc train.steps=40", "reinforce agent.rollouts=2"],
}  # fmt: skip


def test_the_study_of_learners(ranks, shared_path):
    found = run_learners(study_of(ranks, CELLS, shared_path / "out"))
    alone = by_one(lambda: run_learners(study_of(Group(MPI.COMM_SELF, HostDevice()), CELLS)))
    assert found["digest"] == alone["digest"]
    assert without(found["rows"], "cpu_s") == without(alone["rows"], "cpu_s")
    names = [(row["problem"], row["learner"]) for row in found["rows"]]
    assert names == [(p, a) for p in ("mvc", "tsp", "maxcut") for a in ("dqn", "reinforce")]
    assert all(row["graphs"] == 4 and not row["excluded"] for row in found["rows"])
    by_hand = [row["policy"] / row["random"] for row in found["rows"]]
    assert np.allclose(by_hand, [row["ratio"] for row in found["rows"]], rtol=0.1)


def test_what_a_case_refuses_is_excluded_with_the_reason():
    settings = {**CELLS, "study.problems": ["maxcut"], "agent.replay": "bits"}
    rows = run_learners(study_of(Group(MPI.COMM_SELF, HostDevice()), settings))["rows"]
    assert "order of the choices" in rows[0]["excluded"]
    assert rows[0]["beats"] is None
    assert not rows[1]["excluded"]  # reinforce has no replay memory


def test_cells_of_other_graphs_share_none(ranks):
    """A rank that has had a cell on smaller graphs trains on those of its own settings."""
    sizes = ["gcn graph.nodes=[18,20]", "gin study.graphs_per_size=3", "sage train.evaluate_graphs=1"]
    settings = {**CELLS, "study.problems": ["mvc"], "study.learners": ["dqn"], "study.settings": sizes}
    settings["study.embeddings"] = ["structure2vec", "gcn", "gin", "sage"]
    many = run_learners(study_of(Group(MPI.COMM_SELF, HostDevice()), settings))["rows"]
    for row in many:
        one = {**settings, "study.embeddings": [row["model"]]}
        (apart,) = run_learners(study_of(Group(MPI.COMM_SELF, HostDevice()), one))["rows"]
        assert without([row], "cpu_s") == without([apart], "cpu_s")
    assert [row["graphs"] for row in many] == [4, 4, 3, 4]
    assert without(run_learners(study_of(ranks, settings))["rows"], "cpu_s") == without(many, "cpu_s")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("dqn agent.learner=ppo", r"agent\.learner is what a cell is named by"),
        ("mvc problem.name=mis", r"problem\.name has no effect"),
        ("mvc study.steps=9", r"study\.steps has no effect"),
    ],
)
def test_settings_that_no_cell_follows_are_refused(text, words):
    with pytest.raises(CaseError, match=words):
        run_learners(study_of(Group(MPI.COMM_SELF, HostDevice()), {**CELLS, "study.settings": [text]}))


def test_settings_that_are_wrong_together_exclude_a_cell():
    settings = {**CELLS, "study.problems": ["mvc"], "study.settings": ["dqn agent.epsilon_start=0.01"]}
    rows = run_learners(study_of(Group(MPI.COMM_SELF, HostDevice()), settings))["rows"]
    assert "agent.epsilon_start = 0.01" in rows[0]["excluded"]
    assert not rows[1]["excluded"]


def test_better_is_less_of_a_cover_and_more_of_a_cut():
    policy, random = np.array([9.0, 8.0, 9.0]), np.array([10.0, 10.0, 10.0])
    less, more = (compared(policy, random, sense) for sense in ("minimise", "maximise"))
    assert (less["won"], less["beats"]) == (3, True)
    assert (more["won"], more["beats"]) == (0, False)
    assert compared(np.array([5.0, 14.9]), np.array([10.0, 10.0]), "minimise")["beats"] is False  # one lucky


def test_graphs_on_which_every_policy_gives_nothing_count_as_equal():
    found = compared(np.array([0.0, 8.0]), np.array([0.0, 10.0]), "minimise")
    assert (found["ratio"], found["won"]) == (0.9, 1)


def test_two_variants_of_one_name_are_refused():
    settings = {"study.kind": "strong_scaling", "study.variants": ["a b policy.dimension=8", "a  b"]}
    with pytest.raises(CaseError, match=r'study\.variants: found "a b" twice'):
        run_strong_scaling(study_of(Group(MPI.COMM_SELF, HostDevice()), settings))


# ---- ratio over training time -----------------------------------------------------------------------------

COURSE = {
    "study.kind": "progress", "graph.generator": "mixed", "graph.nodes": [12, 16], "graph.count": 4,
    "study.families": ["er", "ba"], "study.targets": [1.0, 1.0], "study.seeds": [1], "train.steps": 40,
    "study.graphs_per_size": 6, "train.evaluate_graphs": 2, "train.evaluate_every": 10, "agent.warmup": 8,
    "study.variants": ["dqn", "ppo agent.learner=ppo agent.rollout_steps=16"],
}  # fmt: skip
CLOCKS = ("agent_s", "environment_s", "seconds", "processor_s")


def test_the_study_of_progress(ranks, shared_path):
    found = run_progress(study_of(ranks, COURSE, shared_path / "out"))
    alone = by_one(lambda: run_progress(study_of(Group(MPI.COMM_SELF, HostDevice()), COURSE)))
    assert found["digest"] == alone["digest"]
    assert without(found["rows"], *CLOCKS) == without(alone["rows"], *CLOCKS)
    assert [row["step"] for row in found["rows"]] == [0, 10, 20, 30, 40] * 2
    for row in found["rows"]:
        assert set(row["ratios"]) == {"ba", "er"}
        assert min(row["ratios"].values()) >= 1  # to the proved optimum
        assert row["seconds"] >= row["agent_s"] + row["environment_s"]
    assert found["rows"][-1]["agent_s"] > found["rows"][-1]["environment_s"] > 0
    if ranks.rank == 0:
        table = list(csv.DictReader((shared_path / "out" / "reached.csv").open()))
        assert len(table) == 2
        assert {"kept_er", "kept_ba"} < set(table[0])
        (first, *_) = csv.DictReader((shared_path / "out" / "progress.csv").open())
        assert float(first["ratio_er"]) == found["rows"][0]["ratios"]["er"]


def test_a_training_stops_at_its_targets():
    settings = {**COURSE, "study.stop": True, "study.targets": [9.0, 9.0]}
    found = run_progress(study_of(Group(MPI.COMM_SELF, HostDevice()), settings))
    assert [row["step"] for row in found["rows"]] == [0, 0]
    assert all(row["reached"] for row in found["reached"])


def test_a_variant_of_one_rank_is_the_same_training(ranks):
    """Rank 0 trains while the others sleep; all know what it found."""
    settings = {**COURSE, "study.variants": ["all", "one study.alone=true"]}
    found = run_progress(study_of(ranks, settings))
    half = len(found["rows"]) // 2
    first, second = (
        without(rows, "variant", *CLOCKS) for rows in (found["rows"][:half], found["rows"][half:])
    )
    assert first == second
    assert [row["ranks"] for row in found["reached"]] == [ranks.size, 1]


def test_a_variant_of_whole_graphs_is_the_same_training(ranks, monkeypatch):
    """Graphs are split over the ranks, small as they are, but for parallel.spatial = 1."""
    learned_on, train = [], progress.train_policy

    def seen(group, *args):
        learned_on.append(group.size)
        return train(group, *args)

    monkeypatch.setattr(progress, "train_policy", seen)
    found = run_progress(study_of(ranks, {**COURSE, "study.variants": ["all", "each parallel.spatial=1"]}))
    half = len(found["rows"]) // 2
    first, second = (
        without(rows, "variant", *CLOCKS) for rows in (found["rows"][:half], found["rows"][half:])
    )
    assert first == second
    assert learned_on == [ranks.size, 1]


def test_replicas_on_a_grid_learn_what_they_learn_in_turn(ranks):
    settings = {**COURSE, "study.variants": ["two parallel.data=2", "four parallel.data=4"]}
    alone = by_one(lambda: run_progress(study_of(Group(MPI.COMM_SELF, HostDevice()), settings)))
    found = run_progress(study_of(ranks, settings))
    assert found["digest"] == alone["digest"]
    assert without(found["rows"], *CLOCKS) == without(alone["rows"], *CLOCKS)


def test_seconds_are_carried_to_more_ranks(ranks):
    context = study_of(ranks, COURSE)
    row = {"agent_s": 8.0, "environment_s": 2.0, "seconds": 10.0}

    def carried(text, to):
        case = with_variant(context.case, split_variant(text)[1], "here")
        return counted_seconds(context, case, row, to, DEFAULTS)

    turns = 4 // ranks.size if 4 % ranks.size == 0 and ranks.size < 4 else None
    found = carried("four parallel.data=4", 4)
    if turns is None:
        assert found is None
    else:
        assert (found["agent_s"], found["environment_s"], found["seconds"]) == (
            8 / turns, 2 / turns, 10 / turns,
        )  # fmt: skip
    spatial = carried("all", 6)
    assert spatial["environment_s"] == 2
    assert spatial["seconds"] == spatial["agent_s"] + 2
    assert 0 < spatial["agent_s"] < 80
    assert carried("alone study.alone=true", 4) is None
    assert carried("three parallel.data=3", 6) is None


def test_the_first_line_at_all_targets_counts():
    course = Course("a", 1, {"ba": 1.1, "er": 1.2})
    for step, ba, er in ((0, 1.3, 1.1), (5, 1.1, 1.3), (9, 1.1, 1.2), (12, 1.0, 1.0)):
        course.lines.append({"step": step, "ratios": {"ba": ba, "er": er}})
    assert (course.reached()["step"], course.reached()["reached"]) == (9, True)
    course.lines = course.lines[:2]
    assert (course.reached()["step"], course.reached()["reached"]) == (5, False)


@pytest.mark.parametrize(
    ("settings", "right"),
    [
        ({"study.targets": [1.02]}, "study.targets: must be one for each"),
        ({"graph.generator": "er"}, "study.families: graph.generator makes er, got er, ba"),
        ({"graph.generator": ""}, 'graph.generator: "" makes no graphs to judge by; what makes er and ba'),
    ],
)
def test_targets_go_with_families(settings, right):
    with pytest.raises(CaseError, match=right):
        run_progress(study_of(Group(MPI.COMM_SELF, HostDevice()), {**COURSE, **settings}))


@pytest.mark.parametrize(
    ("variants", "words"),
    [
        (["a", "b graph.nodes=[30,32]"], r"b graph\.nodes=\[30,32\]: graph\.nodes has no effect there"),
        (["a", "b problem.name=mis"], r"problem\.name has no effect"),
        (["a study.graphs_per_size=2"], r"study\.graphs_per_size has no effect"),
        (["a study.seeds=[2]"], r"study\.seeds has no effect"),
        (["a study.targets=[1.3]"], r"graph\.count that a training reads would be right"),
        (["a policy.weights=none.npz"], r"policy\.weights has no effect"),
        (["a train.graphs={generator='er'}"], r"train\.graphs has no effect"),
        (["a", "b agent.batch=4", "a agent.batch=8"], r"found \"a\" twice"),
        (["a", "b agent.epsilon_end=0.5 agent.epsilon_start=0.05"], r"at most agent\.epsilon_start = 0\.05"),
        (["a", "b parallel.data=3"], r"variants: b parallel\.data=3: agent\.batch: must be a multiple of"),
        (["a", "b agent.learner=none"], r"variants: b agent\.learner=none: .*none"),
        (
            ["a", "b study.alone=true parallel.spatial=7"],
            r"variants: b .*spatial: must divide the 1 rank",
        ),
    ],
)
def test_variants_are_checked_before_the_first_training(variants, words, monkeypatch):
    monkeypatch.setattr("app.tasks.studies.progress.train_policy", None)
    settings = {**COURSE, "study.variants": variants}
    with pytest.raises(CaseError, match=words):
        run_progress(study_of(Group(MPI.COMM_SELF, HostDevice()), settings))


def test_ratios_of_zeros():
    best, found = np.array([0, 4, 4]), np.array([0, 4, 8])
    assert ratios_to(best, found, "minimise").tolist() == [1, 1, 2]
    assert ratios_to(found, best, "maximise").tolist() == [1, 1, 2]
    assert ratios_to(best, np.array([0, 0, 2]), "maximise").tolist() == [1, np.inf, 2]


def test_references_are_optima_of_small_graphs(ranks):
    case = build({"graph.generator": "mixed", "graph.nodes": [10, 13], "graph.count": 4})
    graphs = generate_set(ranks, case.graph, 3, "test")
    found = find_references(ranks, case, graphs)
    assert found.proved.all()
    assert found.words() == "the optimum, proved for each"
    for loaded, value in zip(graphs, found.values.tolist()):
        assert value == smallest_cover(gather_whole(ranks, loaded.graph, loaded.rows))


def smallest_cover(graph):
    """By trying every set of nodes."""
    u, v = graph.row_of(), graph.indices
    sets = (np.arange(1 << graph.n)[:, None] >> np.arange(graph.n)) & 1
    covers = sets[(sets[:, u] | sets[:, v]).all(axis=1)]
    return int(covers.sum(axis=1).min())


# ---- strong scaling beside the paper ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("here", "paper", "wanted"),
    [("er:19200:0.15", PAPER[0], (54.5, 31.3)), ("my/amazon0601.txt.gz", PAPER[4], (23.5, 16.3))],
)
def test_speedups_stand_beside_the_papers(here, paper, wanted):
    curves = [
        {"graph": here, "step": step, "ranks": ranks, "seconds": 1 / ranks, "counts": "expected",
         "measured_s": {1: 1.0, 2: 0.625}.get(ranks, "")}
        for step in ("evaluation", "training B=8") for ranks in (1, 2, *paper.ranks)
    ]  # fmt: skip
    rows = speedups(curves)
    assert [(row["step"], row["paper_speedup"]) for row in rows] == [
        ("evaluation", wanted[0]), ("training B=8", wanted[1]),
    ]  # fmt: skip
    first, last = paper.ranks
    assert all(row["speedup"] == pytest.approx(last / first) for row in rows)
    assert {(row["graph"], row["paper_graph"]) for row in rows} == {(here, paper.graph)}
    assert all((row["measured_ranks"], row["measured_speedup"]) == (2, 1.6) for row in rows)
    assert speedups(curves[:2]) == []


@pytest.mark.mpi_skip
@pytest.mark.parametrize("kind", ["strong_scaling", "learning", "selection"])
def test_a_case_file_runs_with_one_command(kind, tmp_path):
    rates = tmp_path / "calibration.json"
    rates.write_text(DEFAULTS.text())
    small = {
        "strong_scaling": [
            'study.variants=["a study.measured=[\\"er:40:0.2\\"] study.extrapolated=[\\"er:19200:0.15\\"]", '
            '"b study.measured=[\\"large/none.txt\\"]"]', "study.ranks=[1,6,192]", "study.rounds=1",
            "study.batches=[2]", f"study.calibration={rates}",
        ],
        "learning": [
            "study.seeds=[1]", "graph.count=4", "study.graphs_per_size=2", 'study.variants=["dqn"]',
            "train.steps=16", "graph.nodes=[12,14]", "train.evaluate_every=16",
        ],
        "selection": ['study.measured=["er:40:0.2"]', "study.seeds=[1]"],
    }[kind]  # fmt: skip
    out = tmp_path / "out"
    ranks = mpirun(2) if kind == "learning" else []
    command = [*ranks, sys.executable, "run.py", f"inputs/study_{kind}.toml", *small, "--out", out]
    code, printed = run_job(command, limit_s=200, LOCKSTEP_DATA="")
    assert code == 0, printed
    assert json.loads((out / "result.json").read_text())["digest"]
    if kind == "strong_scaling":
        assert "RL4GO, ER 19,200: 54.5 times" in " ".join(printed.split())
        assert "large/none.txt: left out, no such file" in printed


# ---- settings in a line -----------------------------------------------------------------------------------


def test_a_variant_is_a_name_and_settings():
    name, settings = split_variant("two B=4 agent.batch=4 train.environment=scan")
    assert (name, settings) == ("two B=4", {"agent.batch": "4", "train.environment": "scan"})
    case = with_variant(Case(), settings, "here")
    assert (case.agent.batch, case.train.environment, case.agent.discount) == (4, "scan", 0.5)


@pytest.mark.parametrize("text", ["a agent.batch=", "a agent.batch=1 agent.batch=2", "a x.y.z=1"])
def test_a_variant_that_cannot_be_read_is_refused(text):
    with pytest.raises(CaseError, match=r"table\.key=value"):
        split_variant(text)


@pytest.mark.parametrize("text", ["a agent.batch=0", "a agent.bacth=4", "a nothing.here=4", "a run.task=dig"])
def test_settings_of_a_variant_are_checked(text):
    with pytest.raises(CaseError, match="here: "):
        with_variant(Case(), split_variant(text)[1], "here")
