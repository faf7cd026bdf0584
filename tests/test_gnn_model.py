"""The performance model of full-batch training: bytes as counted, buffers as planned, memory as held."""

import json
import sys

import msgspec
import numpy as np
import pytest
import scipy.sparse as sp
from jobs import mpirun, run_job
from mpi4py import MPI
from test_classify import classifier_on

from app.case.file import build
from app.case.gnn import GnnCase
from app.comm.group import Group
from app.device import HostDevice
from app.errors import CaseError
from app.gnn.edge_level.entries import PIECE
from app.gnn.products import SPREAD_COLUMNS
from app.gnn.training import fit
from app.graphs.generators.random import erdos_renyi
from app.graphs.whole import whole_graph
from app.model import gnn_memory, memory
from app.model.counts import classified_counts
from app.model.defaults import DEFAULTS
from app.model.gnn import Training, flops, gathered, traffic
from app.model.gnn_inputs import Inputs
from app.model.gnn_paper import NETWORKS, data_set, paper_rows, table_lines
from app.model.gnn_share import ATTEND_BACK, DRAWN, PIECE_BACK
from app.model.layout import estimate, of_blocks
from app.model.machines import ASSUMED
from app.model.plan import plan_lines
from app.model.rates import MessageRate, Rates
from app.model.terms import Term
from app.numerics.edges import pieces
from app.partition.rows import block_count, block_starts

MODELS = {
    "gcn": {"gnn.hidden": 8, "gnn.depth": 3},
    "kept": {"gnn.hidden": 8, "gnn.input_dropout": 0.0, "gnn.first_product": "cached"},
    "mg_gcn": {"gnn.hidden": 4, "gnn.first_product": "mg_gcn", "gnn.bias": False},
    "residual": {"gnn.hidden": 12, "gnn.depth": 3, "gnn.residual": True, "gnn.layer_norm": True},
    "gin": {"gnn.model": "gin", "gnn.hidden": 8},
    "sage": {"gnn.model": "sage", "gnn.hidden": 6},
    "commnet": {"gnn.model": "commnet", "gnn.hidden": 6},
    "gat": {"gnn.model": "gat", "gnn.hidden": 8, "gnn.heads": 2},
    "gatv2": {"gnn.model": "gatv2", "gnn.hidden": 8, "gnn.heads": 2},
    "gcn2": {"gnn.model": "gcn2", "gnn.hidden": 8, "gnn.batch_norm": True},
    "appnp": {"gnn.model": "appnp", "gnn.hidden": 8, "gnn.hops": 4},
    "gprgnn": {"gnn.model": "gprgnn", "gnn.hidden": 8, "gnn.hops": 3},
    "sgformer": {"gnn.model": "sgformer", "gnn.hidden": 8, "gnn.heads": 2, "gnn.depth": 1},
    "lightgcn": {"gnn.model": "lightgcn", "gnn.depth": 1},
    "sgc": {"gnn.model": "sgc", "gnn.hidden": 8, "gnn.input_dropout": 0.0, "gnn.hops": 3},
    "gin_batch_norm": {"gnn.model": "gin_batch_norm", "gnn.hidden": 8},
    "values": {"gnn.goal": "values", "gnn.hidden": 8},
    "wide": {"gnn.hidden": 4096},  # its gradients travel by slices
}


@pytest.fixture
def group():
    """All ranks of the session on the host."""
    return Group(MPI.COMM_WORLD, HostDevice())


def counted(classifier):
    """The model's counts of a classifier that exists."""
    features, data = classifier.features, classifier.data
    stored = 0
    if features.whole_gradient:
        stored = int(classifier.group.sum_integers(np.array([features._own.matrix.nnz]))[0])
    owned = features.owned if features.whole_gradient else None
    inputs = Inputs(features.width, data.classes, stored)
    layout = of_blocks(classifier.group, classifier.block)
    return Training(classifier.device, classifier.case, inputs, layout, owned)


def sent_in(group, action):
    """Bytes that this rank sends while it acts, by phase."""
    before = dict(group.sent_bytes)
    action()
    found = {phase: n - before.get(phase, 0) for phase, n in group.sent_bytes.items()}
    return {phase: n for phase, n in found.items() if n}


def sent_of(terms):
    return {phase: sent for phase, (sent, _) in traffic(terms).items() if sent}


# ---- bytes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exchange", ["auto", "halo", "gather", "staged"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_bytes_are_those_that_ranks_send(group, name, sparse, exchange):
    classifier = classifier_on(group, MODELS[name], exchange=exchange, sparse=sparse)
    training, rank = counted(classifier), group.rank
    first = sent_in(group, lambda: classifier.epoch(1))
    assert sent_of([*training.epoch(rank), *training.once(rank)]) == first
    assert sent_of(training.epoch(rank)) == sent_in(group, lambda: classifier.epoch(2))
    assert sent_of(training.evaluation(rank)) == sent_in(group, classifier.evaluate)
    assert bool(first) == (group.size > 1)


@pytest.mark.parametrize("exchange", ["halo", "gather", "staged"])
@pytest.mark.parametrize("sparse", [False, True])
def test_what_ranks_receive_is_what_others_send(group, sparse, exchange):
    training = counted(classifier_on(group, MODELS["gcn"], exchange=exchange, sparse=sparse))
    both = [traffic(training.epoch(rank)) for rank in range(group.size)]
    for phase in {phase for each in both for phase in each}:
        sent, received = np.array([each.get(phase, (0, 0)) for each in both]).sum(axis=0)
        assert sent == received, phase


def test_ghost_rows_arrive_once_for_each_exchange(group):
    classifier = classifier_on(group, MODELS["gcn"], exchange="halo")
    training, block = counted(classifier), classifier.block
    widths = [w for each in training.engine.recorded["epoch"] for w in each.exchanges]
    ghosts = sum(block.plan.recv_counts) - block.n_own
    found = traffic(training.epoch(group.rank)).get("exchange", (0, 0))[1]
    assert found == 4 * ghosts * sum(widths)


# ---- buffers, work ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_buffers_and_operations_are_those_of_training(group, name, sparse):
    classifier = classifier_on(group, MODELS[name], sparse=sparse)
    training = counted(classifier)
    assert training.engine.plan.widths == classifier.engine.plan.widths
    assert training.parameters == classifier.params.size
    assert training.roots[group.rank] == len(classifier.engine.own_roots)
    assert training.engine.kept == classifier.engine.kept
    if not sparse:
        assert training.engine.recorded == classifier.engine.recorded


def test_a_narrow_last_layer_costs_no_further_buffer():
    case = GnnCase(depth=3, hidden=20, bias=False, dropout=0.0, input_dropout=0.0, first_product="cached")
    training = Training(HostDevice(), case, Inputs(8, 17), estimate("er", 500, 4000, 1))
    assert training.engine.plan.columns == 3 * 20 + 17  # L, and one more where products are narrow


def test_work_is_that_of_the_matrices(group):
    classifier = classifier_on(group, {**MODELS["gcn"], "gnn.bias": False})
    training, rank = counted(classifier), group.rank
    found, layout = flops(training.epoch(rank)), training.layout
    rows, entries = int(layout.rows[rank]), int(layout.stored[rank])
    products = [w for each in training.engine.recorded["epoch"] for w in each.exchanges]
    assert found["spmm"] == 2 * entries * sum(products)
    assert gathered(training.epoch(rank)) == 4 * entries * sum(products)
    sizes = [8 * 8, 8 * 8, 8 * 3]  # of the weights; the first needs no gradient by its input
    assert found["gram"] == 2 * rows * sum(sizes)
    assert found["dense"] == 2 * rows * (2 * sum(sizes) - sizes[0])


# ---- memory -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exchange", ["halo", "gather", "staged"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", ["gcn", "kept", "gat", "residual"])
def test_memory_is_that_of_the_arrays(group, name, sparse, exchange):
    settings = {**MODELS[name], "gnn.epochs": 2, "gnn.feature_rows": "as_given"}
    classifier = classifier_on(group, settings, exchange=exchange, sparse=sparse)
    terms = gnn_memory.in_training(counted(classifier), group.rank)
    group._scratch.clear()
    fit(classifier)
    engine = classifier.engine
    assert terms["buffers"] == sum(each.nbytes for each in engine._buffers)
    assert terms.get("exchange", 0) == sum(each.nbytes for each in group._scratch.values())
    features = classifier.features
    held = [] if sparse else [*(each._whole for each in features.products.values()), features._dropped]
    assert terms.get("kept features", 0) == sum(each.nbytes for each in held if each is not None)
    assert (
        terms["gradients"]
        >= engine.gradient.nbytes + engine._parts.nbytes + 3 * classifier.params.flat.nbytes
    )


@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("sparse", [False, True])
def test_features_at_rest_are_those_that_are_held(group, sparse, dropout):
    settings = {"gnn.feature_rows": "as_given", "gnn.input_dropout": dropout}
    classifier = classifier_on(group, settings, exchange="gather", sparse=sparse)
    classifier.epoch(1)
    predicted = gnn_memory.at_rest(counted(classifier), group.rank)["features"]
    features = classifier.features
    if not sparse:
        assert predicted == features._whole.nbytes
        return
    held = 0
    for entries in (features._own, *features._tiles):
        made = [] if entries._places is None else [entries._values]
        if isinstance(entries._places, tuple):
            made += entries._places
        held += sum(each.nbytes for each in (entries.matrix.data, entries.matrix.indices, *made))
        assert bool(made) == bool(dropout)
    assert predicted == pytest.approx(held, rel=0.35)  # ranks have about equal shares


def test_memory_falls_with_ranks_and_stays_below_the_rule_of_mg_gcn():
    """L buffers, one for the product in place and two for the broadcast, instead of L+3 that are all wide."""
    case = GnnCase(depth=3, hidden=256, bias=False, dropout=0.0, input_dropout=0.0, first_product="mg_gcn")
    for ranks in (4, 8, 64):
        layout = estimate("er", 200_000 * ranks, 10_000_000 * ranks, ranks, "staged", 256)
        training = Training(HostDevice(), case, Inputs(256, 256), layout)
        found = gnn_memory.in_training(training, 0)
        wanted = 4 * int(layout.rows[0]) * (3 * 256 + 3 * SPREAD_COLUMNS)
        assert memory.total(found) == pytest.approx(wanted, rel=0.15)
        assert memory.total(found) < 0.7 * gnn_memory.mg_gcn_rule(training, 0)


# ---- plans and the study ----------------------------------------------------------------------------------


def test_seconds_shrink_with_ranks_and_grow_with_the_work():
    case = GnnCase(depth=2, hidden=64)

    def seconds(entries, ranks, features=100):
        training = Training(
            HostDevice(), case, Inputs(features, 10), estimate("er", 100_000, entries, ranks, "auto", 64)
        )
        return Rates(DEFAULTS, ranks).total(training.mean_epoch(0))

    assert seconds(1_000_000, 1) < seconds(5_000_000, 1)
    assert seconds(1_000_000, 1) < seconds(1_000_000, 1, features=400)
    assert seconds(20_000_000, 8) < 0.5 * seconds(20_000_000, 1)


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_dry_run_tells_bytes_seconds_and_memory(ranks):
    case = build(
        {
            "run.task": "classify", "graph.generator": "er", "graph.nodes": 4000, "graph.p": 0.01,
            "graph.random_classes": 4, "graph.random_features": 8, "parallel.spatial": ranks,
        }
    )  # fmt: skip
    text = "\n".join(plan_lines(case, ranks, HostDevice()))
    for part in ("buffers of", f"a rank on {ranks} rank", "an epoch with its evaluations: ", "spmm"):
        assert part in text
    assert ("sent," in text) == (ranks > 1)


def test_one_layer_under_a_limit_has_an_estimate():
    """Its embedding is the features: a program without rows of its own."""
    settings = {
        "run.task": "classify", "graph.generator": "er", "graph.nodes": 4000, "graph.p": 0.01,
        "gnn.level": "link", "gnn.model": "gat", "gnn.depth": 1, "memory.fast_mb": 2.2, "memory.slow": "file",
    }  # fmt: skip
    assert any("on their way" in line for line in plan_lines(build(settings), 1, HostDevice()))


@pytest.mark.parametrize("layout", ["csr", "coo", "edge_index"])
def test_a_dry_run_counts_the_entries_that_arrays_have(tmp_path, layout):
    u = np.arange(60)
    A = sp.coo_array((np.ones(120), (np.append(u, (u + 1) % 60), np.append((u + 1) % 60, u))), shape=(60, 60))
    path, labels = tmp_path / "ring.npz", tmp_path / "labels.txt"
    np.savetxt(labels, u % 3, fmt="%d")
    if layout == "edge_index":
        np.savez(path, edge_index=np.stack(A.coords), num_nodes=60)
    else:
        sp.save_npz(path, A.asformat(layout))
    table = {"run.task": "classify", "graph.path": str(path), "graph.splits": "random"}
    case = build({**table, "graph.labels": str(labels)})
    assert classified_counts(case) == (60, 120)
    assert any(
        line.startswith("an epoch with its evaluations: ") for line in plan_lines(case, 1, HostDevice())
    )


def test_attention_and_calls_take_time_where_they_were_measured():
    """Of a calibration from before they were, the rest is told."""
    layout = estimate("er", 3000, 60_000, 1, "auto", 16)
    terms = Training(HostDevice(), GnnCase(model="gat", heads=2), Inputs(30, 4), layout).epoch(0)
    older = msgspec.to_builtins(DEFAULTS)
    for kernels in (older["alone"], older["together"]):
        del kernels["calls"]["operation"], kernels["passes"]["attend"]
    now, before = (Rates(each, 1) for each in (DEFAULTS, msgspec.convert(older, type(DEFAULTS))))
    weighed = sum(term.amounts[0] for term in terms if term.kind == "attend")
    assert weighed == pytest.approx(2 * 63_000 * 2 * (1 + ATTEND_BACK), rel=0.01)
    calls = sum(term.amounts[0] for term in terms if term.kind == "call")
    (attend,), operation = DEFAULTS.alone.passes["attend"].number_s, DEFAULTS.alone.calls["operation"]
    added = weighed * attend + calls * operation
    assert now.total(terms) == pytest.approx(before.total(terms) + added) and calls > 20


@pytest.mark.parametrize("n", [300, 4000, 40_000])
def test_calls_of_a_head_of_edges_are_those_of_its_pieces(n):
    """Of few rows several blocks make a piece, of many each one, however few entries it has."""
    graph, *_ = whole_graph(erdos_renyi(n, 12 / n, 1))
    starts = np.minimum(block_starts(n, block_count(n)), n)
    found = list(pieces(graph.indptr, starts, PIECE))
    layout = estimate("er", n, len(graph.indices), 1, "auto", 16)
    case, inputs = GnnCase(level="edge", depth=1), Inputs(8, 4, learned=1.0)
    terms = Training(HostDevice(), case, inputs, layout).epoch(0)
    calls = [term.amounts[0] for term in terms if (term.kind, term.part) == ("call", "loss")]
    assert sum(calls) / PIECE_BACK == pytest.approx(len(found), rel=0.1)


def test_pairs_that_are_not_joined_take_time_to_draw():
    layout, case = estimate("er", 3000, 60_000, 1, "auto", 16), GnnCase(level="link", depth=1)
    drawn = {}
    for apart in (1.0, 3.0):
        terms = Training(HostDevice(), case, Inputs(8, 16, apart=apart), layout).epoch(0)
        (drawn[apart],) = (term.amounts[0] for term in terms if term.name == "drawn")
    assert drawn == {1.0: DRAWN * 60_000, 3.0: 3 * DRAWN * 60_000}


@pytest.mark.parametrize("text", ["", "Reddit 1 2 3 4 5", "Reddit 1 2 3 4 5 x", "Reddit 1 2 3 4 5 0"])
def test_a_data_set_that_says_too_little(text):
    with pytest.raises(CaseError, match=r"study\.networks: a data set must be NAME NODES"):
        data_set(text)


def test_the_table_has_all_of_mg_gcn(group):
    sets, case = [data_set(text) for text in NETWORKS], GnnCase(dropout=0.0, input_dropout=0.0)
    machines = {"gpu": lambda ranks: Rates(ASSUMED.calibration(), ranks, ASSUMED.network(ranks))}
    rows = list(paper_rows(HostDevice(), case, sets, [1, 8, 64], "auto", machines))
    assert [row["published_s"] for row in rows if row["ranks"] == 8] == [0.012, 0.067, 0.641, 2.89]
    assert all(row["gpu"]["kept_s"] < row["gpu"]["seconds"] for row in rows)
    lines = list(table_lines(rows, ["gpu"]))
    assert len({line.count("|") for line in lines}) == 1
    assert len(lines) == 2 + len(rows)


def test_a_disturbed_measurement_makes_no_message_take_less_than_no_time():
    sizes, values = [64.0, 1e6, 4e6], [1e-5, 5e-3, 4e-3]
    messages = dict(DEFAULTS.messages, gather=MessageRate(sizes, values))
    rates = Rates(msgspec.structs.replace(DEFAULTS, messages=messages), 8)
    short, long = (rates.seconds(Term("", "", "gather", (0, size, 3), 1)) for size in (4e6, 4e9))
    assert long > 500 * short


@pytest.mark.mpi_skip
def test_the_study_end_to_end(tmp_path):
    calibration = tmp_path / "calibration.json"
    calibration.write_text(DEFAULTS.text())
    for ranks in (1, 2):
        out = tmp_path / str(ranks)
        command = [
            *(mpirun(ranks) if ranks > 1 else []), sys.executable, "run.py", "inputs/study_gnn_scaling.toml",
            "graph.nodes=400", "graph.p=0.05", "study.rounds=1",
            f"study.calibration={calibration}", "--out", out,
        ]  # fmt: skip
        code, printed = run_job(command, limit_s=120, LOCKSTEP_DATA="")
        assert code == 0, printed
        result = json.loads((out / "result.json").read_text())
        assert sorted(row["ranks"] for row in result["measured"]) == sorted({1, ranks})
        assert all(row["sent_bytes"] == row["predicted_bytes"] for row in result["measured"])
        assert (out / "gnn_scaling.md").read_text().count("Papers") == 5
