"""The studies of full-batch learning: tiny grids, whose numbers are those of direct runs."""

import csv
import json
import math
import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import get_args

import msgspec
import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from jobs import mpirun, run_job
from mpi4py import MPI

from app.case.file import build
from app.case.run import MemoryCase
from app.case.study import split_settings
from app.comm.group import Group
from app.comm.guard import digest
from app.device import HostDevice
from app.errors import CaseError, NumericsError
from app.gnn.classifier import Classifier
from app.gnn.tiered import TieredRows
from app.gnn.training import fit
from app.graphs.formats.memory import stream_of_object
from app.log import Log
from app.memory.plan import METHODS
from app.memory.tiers import TierBudget
from app.output import RunFolder
from app.partition.balance import Balance
from app.partition.rows import RowPartition
from app.partition.streams import load_stream
from app.sparse.rowblock import RowBlock
from app.tasks.context import Context
from app.tasks.levels.reading import load
from app.tasks.studies import gnn_inference, gnn_models
from app.tasks.studies.gnn_memory import run_memory
from app.tasks.studies.gnn_models import run_depth, run_models
from app.tasks.studies.gnn_sampling import run_sampling
from app.tasks.studies.gnn_speed import run_breakdown
from app.tasks.studies.gnn_stages import Staged
from app.tasks.studies.gnn_subjects import subjects, train, with_settings
from app.tasks.studies.gnn_throughput import run_throughput
from app.tasks.studies.quality import digest_text

TINY = {
    "run.task": "study", "graph.generator": "sbm", "graph.nodes": 160, "graph.generator_seed": 3,
    "graph.random_classes": 3, "graph.random_features": 12, "gnn.hidden": 8, "gnn.epochs": 6,
    "gnn.feature_rows": "as_given",
}  # fmt: skip


def study_of(group, settings, path=None):
    """A context of a tiny study; it writes where a path is given."""
    folder = RunFolder(group, str(path), True) if path else None
    return Context(build({**TINY, "study.kind": "models", **settings}), group, Log(False), folder)


def direct(group, context, seed, **gnn):
    """Test score of one training, without the study's code."""
    case = context.case
    loaded, data = load(context)
    gnn_case = msgspec.structs.replace(case.gnn, **gnn)
    block = RowBlock(group, loaded.graph, loaded.rows, "auto", gnn_case.hidden)
    classifier = Classifier(group, gnn_case, block, data, seed)
    fit(classifier)
    return classifier.evaluate()["test"].micro_f1


def alone(group):
    return Group(MPI.COMM_SELF, group.device)


def csv_of(path):
    with open(path) as file:
        return list(csv.DictReader(file))


# ---- accuracy ---------------------------------------------------------------------------------------------


def test_the_table_of_models_is_that_of_direct_runs(group):
    context = study_of(group, {"study.models": ["gcn", "sage residual=true"], "study.seeds": [4, 9]})
    found = run_models(context)
    plain, joined = found["rows"]
    wanted = [direct(group, context, seed) for seed in (4, 9)]
    assert plain["test"] == wanted
    assert plain["test_mean"] == round(np.mean(wanted), 4)
    assert plain["test_std"] == round(np.std(wanted, ddof=1), 4)
    assert joined["model"] == "sage residual=true"
    assert joined["test"] == [direct(group, context, s, model="sage", residual=True) for s in (4, 9)]
    assert run_models(replace(context, group=alone(group)))["digest"] == found["digest"]


def test_the_table_of_depths_is_that_of_direct_runs(group):
    settings = {"study.depths": [1, 3], "study.widths": [8, 16], "study.seeds": [2], "gnn.residual": True}
    context = study_of(group, {**settings, "study.kind": "depth"})
    rows = {(row["depth"], row["width"]): row for row in run_depth(context)["rows"]}
    assert list(rows) == [(1, 0), (3, 8), (3, 16)]
    for (depth, width), row in rows.items():
        assert row["test"] == [direct(group, context, 2, depth=depth, hidden=width or 8)]
        assert row["test_std"] is None


def test_a_study_of_files_writes_its_tables(group, tmp_path):
    if group.size > 1:
        pytest.skip("one folder for each rank")
    graph, n = nx.random_regular_graph(4, 60, seed=1), 60
    for name in ("a", "b"):
        A = sp.csr_array(nx.to_scipy_sparse_array(graph, nodelist=range(n)))
        labels, split = np.arange(n) % 3, np.arange(n) % 5
        masks = {f"{key}_mask": split == i for i, key in enumerate(("train", "val", "test"))}
        np.savez(
            tmp_path / f"{name}.npz", adj_indptr=A.indptr, adj_indices=A.indices,
            features=np.eye(n, 7, dtype=np.float32), labels=labels, **masks,
        )  # fmt: skip
    files = [f"{tmp_path}/a.npz seeds=2 hidden=4", f"{tmp_path}/b.npz epochs=3 seeds=1"]
    settings = {"study.datasets": files, "study.models": ["gcn", "gat heads=2"], "study.seeds": [1, 2, 3]}
    context = study_of(group, {**settings, "graph.generator": ""}, tmp_path / "out")
    rows = run_models(context)["rows"]
    assert [(r["dataset"], r["model"], r["seeds"], r["epochs"]) for r in rows] == [
        ("a", "gcn", 2, 6), ("a", "gat heads=2", 2, 6), ("b", "gcn", 1, 3), ("b", "gat heads=2", 1, 3)
    ]  # fmt: skip
    written = csv_of(tmp_path / "out" / "models.csv")
    assert [float(line["test_mean"]) for line in written] == [row["test_mean"] for row in rows]
    assert written[2]["recipe"] == "epochs=3"
    assert (tmp_path / "out" / "models.png").stat().st_size > 0


def test_the_table_of_models_that_predict_numbers(group, shared_path):
    """Of files: R2 and errors in place of accuracy; a set without nodes has none."""
    graph = nx.random_geometric_graph(90, 0.2, seed=1)
    place = np.array([graph.nodes[v]["pos"] for v in graph])
    if group.rank == 0:
        nx.write_edgelist(graph, shared_path / "mesh.txt", data=False)
        np.save(shared_path / "x.npy", place.astype(np.float32))
        (shared_path / "y.txt").write_text("".join(f"{x + y}\n" for x, y in place))
        (shared_path / "splits.txt").write_text(
            "".join(("test", "train", "train")[v % 3] + "\n" for v in range(90))
        )
    group.barrier()
    files = {"graph.features": "x.npy", "graph.labels": "y.txt", "graph.splits": "splits.txt"}
    settings = {
        "graph.path": str(shared_path / "mesh.txt"), "graph.generator": "", "graph.nodes": 0,
        "graph.random_classes": 0, "graph.random_features": 0,
        **{key: str(shared_path / name) for key, name in files.items()},
        "gnn.goal": "values", "gnn.epochs": 40, "study.kind": "models", "study.seeds": [1, 2],
        "study.models": ["gcn", "sage"],
    }  # fmt: skip
    context = study_of(group, settings, shared_path / "out")
    rows = run_models(context)["rows"]
    subject = next(subjects(context))
    for row in rows:
        done = [train(subject, msgspec.structs.replace(subject.gnn, model=row["model"]), s) for s in (1, 2)]
        r2, rmse = ([getattr(each.scores["test"], name) for each in done] for name in ("r2", "rmse"))
        assert (row["score"], row["test"], row["val"], row["val_mean"]) == ("R2", r2, [], None)
        assert (row["test_mean"], row["rmse_mean"]) == (round(np.mean(r2), 4), round(np.mean(rmse), 4))
        assert row["macro_f1_mean"] is None
    assert rows[1]["test_mean"] > 0.3
    shapes = {"study.kind": "depth", "study.depths": [1, 2], "study.widths": [8]}
    settings.pop("study.models")
    assert [r["score"] for r in run_depth(study_of(group, {**settings, **shapes}))["rows"]] == ["R2", "R2"]
    assert {path.name for path in (shared_path / "out").iterdir()} >= {"models.csv", "models.png"}


def test_scores_beyond_all_numbers(group):
    passed = [1.0, math.inf]
    assert (gnn_models._mean(passed), gnn_models._deviation(passed)) == (math.inf, None)
    asked = {"gnn.goal": "values", "gnn.optimiser": "sgd", "gnn.learning_rate": 1e30, "gnn.epochs": 1}
    with pytest.raises(NumericsError, match="the scores of 101 nodes are not finite"):
        run_models(study_of(group, asked | {"study.kind": "models", "graph.nodes": 101}))


def test_models_that_differ_in_settings_have_names_and_bars_of_their_own(tmp_path, monkeypatch):
    bars = {}
    monkeypatch.setattr(gnn_models, "plot_bars", lambda folder, log, found, *_: bars.update(found))
    models = ["gcn", "gcn hidden=4", "gcn residual=true hidden=4"]
    settings = {"study.models": models, "study.seeds": [1], "gnn.epochs": 1}
    rows = run_models(study_of(Group(MPI.COMM_SELF, HostDevice()), settings, tmp_path / "out"))["rows"]
    assert [row["model"] for row in rows] == models
    assert len({row["weights"] for row in rows[:2]}) == 2
    assert [list(each) for each in bars.values()] == [models]
    rows = [{**rows[0], "recipe": recipe} for recipe in ("", "hidden=4")]
    bars.clear()
    gnn_models._plot_models(SimpleNamespace(folder=None, log=None), rows)
    assert list(bars) == [rows[0]["dataset"], f"{rows[0]['dataset']} hidden=4"]


def test_settings_behind_a_name():
    assert split_settings("a b.npz seeds=3 hidden=64") == ("a b.npz", {"seeds": "3", "hidden": "64"})
    assert split_settings("x=1.npz") == ("x=1.npz", {})
    gnn = build(TINY).gnn
    changed = with_settings(gnn, {"keep": "best", "residual": "true", "learning_rate": "0.5"}, "here")
    assert (changed.keep, changed.residual, changed.learning_rate) == ("best", True, 0.5)
    for text, wrong in (
        ("hiden=3", "did you mean"),
        ("hidden=0", "hidden"),
        ("keep=some", "keep"),
        ("dropout=high", "dropout"),
    ):
        with pytest.raises(CaseError, match=wrong):
            with_settings(gnn, split_settings(f"f {text}")[1], "study.datasets")
    with pytest.raises(CaseError, match="hidden twice"):
        split_settings("f hidden=1 hidden=2")


def test_wrong_studies_are_refused(group):
    for settings, run, wrong in (
        ({"study.datasets": ["nowhere.npz"], "graph.generator": ""}, run_models, "no such file"),
        ({"graph.random_classes": 0, "graph.generator": "er"}, run_models, "needs labels"),
    ):
        with pytest.raises(CaseError, match=wrong):
            run(study_of(alone(group), settings))


INNER = {"gnn.depth": 1, "gnn.inner_decay": 0.1}  # which gcn2 alone reads


@pytest.mark.parametrize(
    ("run", "settings", "words"),
    [
        (run_models, {"study.models": ["gin", "gcn first_product=cached"]}, r"cached: gnn\.first_product: "),
        (run_models, {"study.models": ["gin", "gcn epochs=0"]}, r"gnn\.epochs: must be at least 1"),
        (run_models, {**INNER, "study.models": ["gcn2", "gcn"]}, r"models: gcn: gnn\.inner_decay: is"),
        (run_models, {"study.models": ["gcn", "gcn weights=no.npz"]}, r"no\.npz: gnn\.weights: a study"),
        (run_models, {"study.models": ["gat", "gcn heads=4"]}, r"gcn heads=4: gnn\.heads: is not read"),
        (run_models, {"study.models": ["gcn", "gcn model=gin"]}, r"gnn\.model: the first word says"),
        (run_models, {"study.models": ["gcn a=1 b=2", "gcn b=2 a=1"]}, r'"gcn b=2 a=1" twice; each once'),
        (run_models, {"study.models": ["gcn", "gnc"]}, r"models: gnc: gnn: unknown layer 'gnc'"),
        (run_models, {"study.models": ["gcn", "gin"], "gnn.heads": 2}, r"gnn\.heads: is not read by gcn"),
        (run_models, {"gnn.layers": ["gcn 4", "gcn"]}, r'gnn\.layers: is not read by study\.kind = "models"'),
        (run_models, {"gnn.epochs": 0}, r"gnn\.epochs: must be at least 1"),
        (run_depth, {"gnn.epochs": 0}, r"gnn\.epochs: must be at least 1"),
        (run_depth, {"gnn.model": "gin", "gnn.own_loops": False}, r"gnn\.own_loops: is not read by gin"),
        (run_sampling, {"gnn.epochs": 0}, r"gnn\.epochs: must be at least 1"),
        (run_breakdown, {"gnn.heads": 2}, r"gnn\.heads: is not read by gcn"),
    ],
)  # fmt: skip
def test_trainings_are_checked_before_the_first_one(group, run, settings, words, monkeypatch):
    monkeypatch.setattr("app.tasks.studies.gnn_subjects.make_subject", None)
    kind = {run_models: "models", run_depth: "depth", run_sampling: "sampling", run_breakdown: "breakdown"}
    with pytest.raises(CaseError, match=words):
        run(study_of(alone(group), {**settings, "study.kind": kind[run]}))


def test_a_key_that_one_of_the_models_reads_is_right(group):
    settings = {"study.models": ["gcn", "gat"], "gnn.heads": 2, "gnn.own_loops": False, "study.seeds": [1]}
    assert len(run_models(study_of(alone(group), settings))["rows"]) == 2


# ---- time -------------------------------------------------------------------------------------------------


def test_the_breakdown_has_every_operation(group):
    rows = run_breakdown(study_of(group, {"study.kind": "breakdown", "study.rounds": 2}))["rows"]
    kinds = {row["operation"] for row in rows}
    assert {"spmm", "dense", "gram", "elementwise", "loss", "reduce", "optimiser"} <= kinds
    assert sum(row["percent"] for row in rows) == pytest.approx(100, abs=0.1)
    assert rows[0]["mean_degree"] == round(2 * rows[0]["edges"] / 160, 2)


def test_stages_ahead_or_not_give_the_same_bits(group):
    case = build({"run.task": "study"})
    graph = nx.gnm_random_graph(90, 400, seed=2)
    loaded = load_stream(group, stream_of_object(graph)[0], case.graph, case)
    own = Group(group.comm, group.device)
    staged = Staged(own, RowBlock(own, loaded.graph, loaded.rows, "staged", 4), 4)
    digests = []
    for own.stages_ahead in (1, 0, 1):
        staged.run()
        digests.append(staged.digest())
    entries = staged.entries()
    assert len(set(digests)) == 1
    assert entries.sum() == 800 and entries.shape == (group.size, group.size)
    assert staged.stages(staged.cpu_s).shape == (group.size, group.size)
    degrees = own.gather_host(loaded.graph.degrees(), loaded.rows.row_counts())
    by_rank = np.add.reduceat(np.append(degrees, 0), np.minimum(loaded.rows.offsets[:-1], 90))
    assert entries.sum(axis=1)[0] == by_rank[0]


# ---- memory and throughput (ROC sections 7.6, 7.7) ---------------------------------------------------------


def weights_after(group, context, epochs):
    """Digest of the weights of plain training, as a study of one data set tells it."""
    loaded, data = load(context)
    gnn = msgspec.structs.replace(context.case.gnn, epochs=epochs)
    block = RowBlock(group, loaded.graph, loaded.rows, "auto", gnn.hidden)
    fit(classifier := Classifier(group, gnn, block, data, context.case.study.seeds[0]))
    return digest_text({f"{loaded.graph.name} ": digest(classifier.params.host())})


def streamed_bytes(engine):
    """What moves where nothing stays: all that is read, and all that is written and read later."""
    program, sizes = engine.recorded["epoch"], engine.epochs()["epoch"]
    size, total = dict(zip(sizes.names, sizes.sizes)), 0
    for at, operation in enumerate(program):
        total += sum(size[name] for name in operation.reads)
        for name in operation.writes:
            later = (each for each in program[at + 1 :] if name in (*each.reads, *each.writes))
            total += size[name] * (name in next(later, operation).reads)
    return total


MEMORY = {"study.kind": "memory", "study.limits": [0.0, 0.3, 0.9], "study.rounds": 2}


@pytest.mark.parametrize(("model", "depth"), [("gcn", 5), ("gat", 2)])
def test_every_method_under_every_limit(group, model, depth):
    context = study_of(group, {**MEMORY, "gnn.model": model, "gnn.depth": depth})
    found = run_memory(context)
    rows = found["rows"]
    assert found["same_bits"] and found["as_planned"]
    assert found["digest"] == weights_after(group, context, 3)
    assert [row["method"] for row in rows] == [*METHODS, "no limit"] * (len(rows) // 5)
    assert rows[0]["planned_bytes"] > 0
    (subject,) = subjects(context)
    limits = sorted({row["limit_bytes"] for row in rows})
    engine = subject.classifier(subject.gnn, 1, TierBudget(limits[0], "host")).engine
    least, most = group.max_integers(np.array(engine.bounds())).tolist()
    assert limits[0] == least and limits[-1] == int(0.9 * most) // 64 * 64
    for limit in limits:
        moved = {row["method"]: row["planned_bytes"] for row in rows if row["limit_bytes"] == limit}
        assert moved["no limit"] == 0 <= moved["dynamic program"] == min(moved[name] for name in METHODS)
        streamed = int(group.sum_integers(np.array([streamed_bytes(engine)]))[0])
        assert max(moved.values()) == moved["streaming"] == streamed
    for row in rows:
        assert row["counted_bytes"] == row["planned_bytes"] == row["loaded_bytes"] + row["stored_bytes"]
        assert row["method"] == "no limit" or row["times_bytes"] is None or row["times_bytes"] >= 1
        assert row["times_ms_low"] <= row["times_ms"] <= row["times_ms_high"]
    assert run_memory(replace(context, group=alone(group)))["digest"] == found["digest"]


def test_bytes_that_are_not_those_of_the_plan_are_told(group, monkeypatch):
    monkeypatch.setattr(TieredRows, "moved", lambda self, program: (self.tiers[program].loaded, 0))
    found = run_memory(study_of(group, {**MEMORY, "study.limits": [0.0], "gnn.depth": 5}))
    assert not found["as_planned"] and found["same_bits"]


def test_the_methods_of_a_case_are_those_that_there_are():
    known = {field.name: field.type for field in msgspec.structs.fields(MemoryCase)}["method"]
    assert get_args(get_args(known)[0]) == METHODS


def test_a_limit_beside_limits_is_refused(group):
    with pytest.raises(CaseError, match=r"memory.fast_mb: is not read .*; study.limits would be right"):
        run_memory(study_of(group, {**MEMORY, "memory.fast_mb": 1.0}))


THROUGHPUT = {
    "study.kind": "throughput", "study.rounds": 2, "study.epochs": 3, "graph.generator": "rmat_natural",
    "graph.nodes": 512, "graph.d": 8,
}  # fmt: skip


def test_the_same_training_by_every_partitioner(group, monkeypatch):
    moves = []

    def observe(balance, seconds, left):
        """Cuts in another place each time."""
        moves.append(len(moves) + 1)
        cuts = np.minimum(balance.rows.cuts + (len(moves) % 3 - 1), balance.rows.cuts[-1])
        cuts[0], cuts[-1] = balance.rows.cuts[[0, -1]]
        return RowPartition(balance.rows.n, balance.rows.starts, np.maximum(cuts, 0))

    monkeypatch.setattr(Balance, "observe", observe)
    context = study_of(group, THROUGHPUT)
    found = run_throughput(context)
    assert found["same_bits"] and found["digest"] == weights_after(group, context, 6)
    rows, edges, learned = found["rows"]
    assert [row["partition"] for row in found["rows"]] == ["rows", "edges", "learned"]
    assert learned["moved_after"] == "1 2 3" and moves == [1, 2, 3]
    assert rows["rows_imbalance"] <= edges["rows_imbalance"]
    if group.size in (2, 4):
        assert rows["entries_imbalance"] > edges["entries_imbalance"]
    assert all(row["epochs_per_s"] > 0 and 1 <= row["imbalance"] <= group.size for row in found["rows"])
    assert (rows["speedup"], rows["cpu_speedup"]) == (1.0, 1.0)
    assert run_throughput(replace(context, group=alone(group)))["digest"] == found["digest"]


# ---- several ranks, end to end ----------------------------------------------------------------------------


def job(kind, out, ranks, *options):
    """result.json of a shipped case, made small."""
    launch = mpirun(ranks) if ranks > 1 else []
    command = [*launch, sys.executable, "run.py", f"inputs/study_{kind}.toml", *options, "--out", out]
    code, printed = run_job(command, limit_s=120, LOCKSTEP_DATA="")
    assert code == 0, printed
    return json.loads((out / "result.json").read_text())


@pytest.mark.long
@pytest.mark.mpi_skip
def test_permutation_and_overlap(tmp_path):
    small = ["graph.nodes=2048", "graph.d=4", "study.rounds=2", "study.widths=[8]"]
    found = job("permutation", tmp_path / "p", 3, *small)
    natural, random = found["rows"]
    assert natural["entries_imbalance"] > 1.3 > random["entries_imbalance"]
    assert natural["wall_ratio"] == natural["slowest_ratio"] == 1
    lines = csv_of(tmp_path / "p" / "stages.csv")
    assert len(lines) == 2 * 3 * 3
    totals = {
        order: sum(int(x["entries"]) for x in lines if x["order"] == order) for order in ("natural", "random")
    }
    assert totals["natural"] == totals["random"] > 0
    row = job("overlap", tmp_path / "o", 2, *small)["rows"][0]
    assert row["ratio_low"] <= row["ratio"] <= row["ratio_high"]
    assert float(csv_of(tmp_path / "o" / "overlap.csv")[0]["ratio"]) == row["ratio"]


@pytest.mark.mpi_skip
def test_density(tmp_path):
    small = [
        "graph.nodes=500",
        "study.scales=[1, 4]",
        "study.rounds=2",
        "gnn.hidden=4",
        "graph.random_features=8",
        "graph.count=2",
    ]
    two = job("density", tmp_path / "two", 2, *small)["rows"]
    assert 2.5 < two[1]["mean_degree"] / two[0]["mean_degree"] < 4.5
    assert all(row["one_ms"] > 0 and row["all_ms"] > 0 and row["ranks"] == 2 for row in two)
    assert [row["graphs"] for row in two] == [2, 2]
    assert [float(line["speedup"]) for line in csv_of(tmp_path / "two" / "density.csv")] == [
        row["speedup"] for row in two
    ]


@pytest.mark.parametrize(("asked", "wanted"), [("auto", "live"), ("cached", "live"), ("mg_gcn", "mg_gcn")])
def test_inference_keeps_no_product_of_an_unseen_graph(group, asked, wanted):
    context = study_of(
        group, {"study.kind": "inference", "gnn.input_dropout": 0.0, "gnn.first_product": asked}
    )
    context = replace(context, folder=SimpleNamespace(file=str))
    changed = gnn_inference._changed(context, ["g.npz"], "edges", epochs=0)
    assert (changed.case.gnn.first_product, changed.case.gnn.epochs) == (wanted, 0)


@pytest.mark.mpi_skip
def test_inference(tmp_path):
    small = [
        "graph.nodes=[150, 300]",
        "graph.count=3",
        "study.held_back=1",
        "study.rounds=2",
        "gnn.epochs=30",
    ]
    results = [job("inference", tmp_path / str(ranks), ranks, *small) for ranks in (1, 2)]
    assert results[0]["digest"] == results[1]["digest"]
    rows = results[1]["rows"]
    assert [row["partition"] for row in rows] == ["rows", "edges", "learned", "one rank"]
    assert {row["test_accuracy"] for row in rows} == {rows[0]["test_accuracy"]}
    assert rows[0]["test_accuracy"] > 0.4  # chance: a fifth
    name = rows[0]["graph"].removesuffix(".npz")
    applied = [
        sys.executable, "run.py", "inputs/gcn.toml", f'graph.path="{tmp_path}/2/graphs/{name}.npz"',
        f'gnn.weights="{tmp_path}/2/weights.npz"', "gnn.epochs=0", 'gnn.feature_rows="as_given"',
        "--out", tmp_path / "applied",
    ]  # fmt: skip
    code, printed = run_job(applied, limit_s=120)
    assert code == 0, printed
    assert (
        json.loads((tmp_path / "applied" / "result.json").read_text())["test_accuracy"]
        == rows[0]["test_accuracy"]
    )


@pytest.mark.mpi_skip
def test_inference_on_files(tmp_path):
    """Also of one name: each is measured."""
    for i, n in enumerate((300, 120, 60)):
        (tmp_path / str(i)).mkdir()
        graph_file(tmp_path / str(i) / "g.npz", n)
    paths = ", ".join(f'"{tmp_path}/{i}/g.npz"' for i in range(3))
    keys = [
        f"graph.path=[{paths}]",
        'graph.generator=""',
        "study.held_back=2",
        "study.rounds=2",
        "gnn.epochs=5",
    ]
    rows = job("inference", tmp_path / "out", 1, *keys)["rows"]
    assert [row["graph"] for row in rows[::4]] == ["g.npz", "g.npz-2"]
    assert rows[0]["latency_ms"] != rows[4]["latency_ms"]


@pytest.mark.mpi_skip
def test_memory(tmp_path):
    small = ["graph.nodes=600", "study.rounds=2", "study.limits=[0.0, 0.8]", "gnn.hidden=8"]
    results = [job("memory", tmp_path / str(ranks), ranks, *small) for ranks in (1, 3)]
    assert results[0]["digest"] == results[1]["digest"]
    for ranks, found in zip((1, 3), results):
        assert found["same_bits"] and found["as_planned"]
        lines = csv_of(tmp_path / str(ranks) / "memory.csv")
        assert [int(line["planned_bytes"]) for line in lines] == [x["planned_bytes"] for x in found["rows"]]
        assert (tmp_path / str(ranks) / "memory.png").stat().st_size > 0


@pytest.mark.long
@pytest.mark.mpi_skip
def test_throughput(tmp_path):
    """A generated graph on several ranks; and a file with first cuts by a cost model."""
    small = ["study.rounds=2", "study.epochs=2", "gnn.hidden=8"]
    results = [job("throughput", tmp_path / str(p), p, "graph.nodes=1024", *small) for p in (1, 3)]
    assert results[0]["digest"] == results[1]["digest"] and results[1]["same_bits"]
    lines = csv_of(tmp_path / "3" / "throughput.csv")
    assert [line["partition"] for line in lines] == ["rows", "edges", "learned"]
    assert float(lines[1]["entries_imbalance"]) < float(lines[0]["entries_imbalance"])
    assert (tmp_path / "3" / "throughput.png").stat().st_size > 0
    path = graph_file(tmp_path / "g.npz")
    file = ['graph.generator=""', f'graph.path="{path}"']
    learns = ["run.task=classify", 'parallel.partition="learned"', "gnn.epochs=12"]
    job("throughput", tmp_path / "learned", 2, *file, *learns, "gnn.hidden=8")
    model = f'parallel.cost_model="{tmp_path}/learned/cost_model.json"'
    found = [job("throughput", tmp_path / f"f{len(more)}", 2, *file, *small, *more) for more in ([], [model])]
    assert found[0]["digest"] == found[1]["digest"]
    assert [row["dataset"] for row in found[1]["rows"]] == ["g"] * 3
    (tmp_path / "no").write_text("{}")
    wrong = [
        sys.executable,
        "run.py",
        "inputs/study_throughput.toml",
        *file,
        f'parallel.cost_model="{tmp_path}/no"',
    ]
    code, printed = run_job([*wrong, "--out", tmp_path / "wrong"], limit_s=60)
    assert code == 2 and "not a cost_model.json" in printed


def graph_file(path, n=300):
    """A graph with features, labels and splits."""
    graph = nx.barabasi_albert_graph(n, 3, seed=1)
    A = sp.csr_array(nx.to_scipy_sparse_array(graph, nodelist=range(n)))
    split = np.arange(n) % 5
    masks = {f"{key}_mask": split == i for i, key in enumerate(("train", "val", "test"))}
    np.savez(
        path, adj_indptr=A.indptr, adj_indices=A.indices, labels=np.arange(n) % 3,
        features=np.eye(n, 7, dtype=np.float32), **masks,
    )  # fmt: skip
    return path
