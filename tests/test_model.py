"""The performance model: bytes as counted on any number of ranks, memory as held, times that make sense."""

import csv
import json
import re
import sys

import msgspec
import numpy as np
import pytest
from helpers import edge_stream, growing_graph, listed, make_block, random_graph
from jobs import mpirun, run_job
from mpi4py import MPI

from app.case.config import Case
from app.case.file import build
from app.case.graph import GraphCase
from app.case.policy import AgentCase, PolicyCase, ProblemCase, TrainCase
from app.case.run import MemoryCase, RunCase
from app.case.search import SearchCase
from app.comm.group import Group
from app.comm.turns import first_alone, seconds_together
from app.device import HostDevice
from app.errors import CaseError
from app.model import memory, policy_memory
from app.model.counts import expected_entries
from app.model.curve import PARTS
from app.model.defaults import DEFAULTS
from app.model.layout import choose_mode, count, estimate, of_blocks
from app.model.plan import graph_case, plan_lines
from app.model.rates import Network, Rates, between, load_calibration
from app.model.steps import make_step, sample_states
from app.model.work import States, evaluation, learning, mean_of_replicas, parts_of, sent_bytes
from app.partition.assemble import assemble, gather_whole
from app.partition.generated import generate_set
from app.problems.table import make_problem
from app.recipes import PAPER_POLICY
from app.rl.agent import Agent
from app.rl.qnet import QNetwork
from app.sparse.rowblock import RowBlock

POLICIES = {
    "default": (PolicyCase(), AgentCase()),
    "paper": (PAPER_POLICY, AgentCase(double=True)),
    "mixing": (PolicyCase(layers=3, head="mixing", self_weight=False), AgentCase(double=True)),
    "wide": (PolicyCase(dimension=64), AgentCase()),  # its gradient travels by slices
}
GRAPHS = {
    "dense": random_graph(150, 0.3, 1),
    "sparse": random_graph(700, 0.004, 2),
    "hubs": growing_graph(2100, 3, 3),
    "one edge": listed(3, (0, 1)),
}


def network(name="default"):
    return QNetwork(POLICIES[name][0], make_problem("mvc"))


@pytest.fixture
def group():
    """All ranks of the session on the host."""
    return Group(MPI.COMM_WORLD, HostDevice())


def assert_bytes(group, step, layout):
    """What this rank sends in a step is what the model counts, phase by phase."""
    before = dict(group.sent_bytes)
    step.run()
    sent = {phase: n - before.get(phase, 0) for phase, n in group.sent_bytes.items()}
    counted = sent_bytes(step.terms(layout, group.rank))
    assert {k: v for k, v in counted.items() if v} == {k: v for k, v in sent.items() if v}


# ---- bytes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [0, 5])
@pytest.mark.parametrize("exchange", ["auto", "gather", "halo", "staged"])
@pytest.mark.parametrize("graph", ["dense", "sparse", "one edge"])
@pytest.mark.parametrize("policy", ["default", "paper", "mixing"])
def test_bytes_are_those_that_ranks_send(group, policy, graph, exchange, batch):
    block = make_block(group, GRAPHS[graph], exchange)
    step = make_step(group, network(policy), POLICIES[policy][1], block, min(batch, block.n - 1), 0)
    assert_bytes(group, step, of_blocks(group, block))


@pytest.mark.parametrize("policy", ["default", "wide"])
def test_bytes_of_a_gradient_in_parts_and_slices(group, policy, monkeypatch):
    monkeypatch.setattr("app.rl.agent.PART_ROWS", 5000)
    monkeypatch.setattr("app.rl.agent.MOST_ROWS", 5000)
    block = make_block(group, GRAPHS["hubs"])
    step = make_step(group, network(policy), AgentCase(), block, 5, 0)
    assert_bytes(group, step, of_blocks(group, block))


# ---- layouts ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exchange", ["auto", "gather", "halo", "staged"])
@pytest.mark.parametrize("graph", GRAPHS)
def test_a_layout_is_counted_as_ranks_hold_it(group, graph, exchange):
    part, rows, _ = assemble(group, edge_stream(GRAPHS[graph]) if group.rank == 0 else None)
    block = RowBlock(group, part, rows, exchange, 16)
    held = of_blocks(group, block)
    counted = count(gather_whole(group, part, rows), group.size, exchange, width=16)
    assert (counted.mode, counted.n, counted.entries) == (held.mode, held.n, held.entries)
    assert counted.max_degree == held.max_degree
    same = ["rows", "stored", "ghost_entries", "blocks"] if group.size > 1 else ["rows", "stored", "blocks"]
    if held.mode == "halo":
        same += ["ghosts", "sent", "partners"]
    for name in same:
        np.testing.assert_array_equal(getattr(counted, name), getattr(held, name), name)
    assert counted.extended(group.rank) == block.n_ext


def test_expected_counts_are_near_those_of_a_random_graph(group):
    part, rows, _ = assemble(group, edge_stream(random_graph(2000, 0.003, 5)) if group.rank == 0 else None)
    whole = gather_whole(group, part, rows)
    for ranks in (1, 2, 7, 40):
        exact, expected = count(whole, ranks), estimate("er", whole.n, len(whole.indices), ranks)
        assert exact.mode == expected.mode
        assert exact.rows.sum() == expected.rows.sum()
        for name in ("stored", "ghosts", "sent", "ghost_entries"):
            a, b = (getattr(layout, name).mean() for layout in (exact, expected))
            assert b == pytest.approx(a, rel=0.05), (ranks, name)


def test_a_plan_of_a_trillion_nodes_is_made_from_counts():
    layout = estimate("lie", 1 << 40, 4, 3)
    assert layout.rows.sum() == 1 << 40
    assert layout.blocks.sum() == 1 << 30


def test_the_rule_of_exchanges():
    assert choose_mode("auto", 1, 1000, 0) == "none"
    assert choose_mode("auto", 4, 1000, 100) == "halo"
    assert choose_mode("auto", 4, 1000, 3000) == "gather"
    assert choose_mode("auto", 4, 1 << 20, 3 << 20, 16) == "staged"
    assert choose_mode("staged", 4, 1000, 100) == "staged"


# ---- memory -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exchange", ["gather", "halo", "staged"])
@pytest.mark.parametrize("graph", ["dense", "sparse", "hubs"])
def test_memory_at_rest_is_that_of_the_arrays(group, graph, exchange):
    part, rows, _ = assemble(group, edge_stream(GRAPHS[graph]) if group.rank == 0 else None)
    block = RowBlock(group, part, rows, exchange)
    predicted = memory.at_rest(of_blocks(group, block), group.rank)
    arrays = [part.indices, part.indptr, block.columns, *block.ghost_index(), *block.plan.send_rows]
    arrays += [*block._pointers, *block._indices]
    held = sum({id(base): base.nbytes for base in map(owner, arrays) if base is not None}.values())
    assert memory.total(predicted) == pytest.approx(held, rel=0.02, abs=200)


def owner(array):
    """The array whose memory it is."""
    while array is not None and isinstance(array.base, np.ndarray):
        array = array.base
    return array


def test_memory_falls_with_ranks_and_keeps_the_rule_of_eight_bytes():
    net, base, held = network(), 80 << 20, []
    for ranks in (1, 2, 4, 8):
        layout = estimate("er", 20_000, 20_000_000, ranks)
        held.append(memory.total(policy_memory.peak(net, layout, States(), "evaluation", base)) - base)
        rest = memory.total(memory.at_rest(layout, 0))
        assert rest <= 8 * layout.stored[0] + 40 * (layout.n + layout.rows[0])
    assert sorted(held, reverse=True) == held
    assert memory.reading(layout, 0, ordered=False)["raw edges"] > memory.reading(layout, 0)["raw edges"]


# ---- times ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("part_rows", "most_rows"), [(5000, 9000), (2000, 100), (100, 100)])
def test_parts_of_a_minibatch_are_those_of_the_agent(group, monkeypatch, part_rows, most_rows):
    monkeypatch.setattr("app.rl.agent.PART_ROWS", part_rows)
    monkeypatch.setattr("app.rl.agent.MOST_ROWS", most_rows)
    block = make_block(group, GRAPHS["sparse"])
    sample, _ = sample_states(group, block, 30, 0)
    agent = Agent(group, AgentCase(), network(), [block], 0, 0)
    cut = [part.cut.stop - part.cut.start for part in agent._cut(sample)]
    assert cut == [states for states, times in parts_of(block.n, 30) for _ in range(times)]


@pytest.mark.parametrize("policy", POLICIES)
def test_seconds_grow_with_the_work_and_shrink_with_ranks(policy):
    net = network(policy)

    def seconds(n, entries, ranks, batch=0):
        layout = estimate("er", n, entries, ranks)
        terms = learning(net, layout, States(batch, 0.5, 0.3 * n)) if batch else evaluation(net, layout)
        assert all(np.isfinite(amount) and amount >= 0 for term in terms for amount in term.amounts)
        assert (ranks > 1) == bool(sum(sent_bytes(terms).values()))
        return Rates(DEFAULTS, ranks).total(terms)

    for batch in (0, 8):
        assert seconds(2000, 200_000, 1, batch) < seconds(2000, 600_000, 1, batch)
        assert seconds(2000, 200_000, 1, batch) < seconds(20_000, 200_000, 1, batch)
        assert seconds(20_000, 40_000_000, 8, batch) < 0.5 * seconds(20_000, 40_000_000, 1, batch)
    assert seconds(2000, 200_000, 1, 8) < seconds(2000, 200_000, 1, 96)


def test_a_slower_network_costs_more():
    net, layout = network(), estimate("er", 20_000, 4_000_000, 64)
    terms = learning(net, layout, States(8, 0.5, 100))
    usual = Rates(DEFAULTS, 64).total(terms)
    assert Rates(DEFAULTS, 64, Network(1e-3, 0)).total(terms) > usual + 0.01
    assert Rates(DEFAULTS, 64, Network(0, 1e6)).total(terms) > usual + 0.01
    unmeasured = msgspec.structs.replace(DEFAULTS, messages={})
    assert 0 < Rates(unmeasured, 64).total(terms) < 100 * usual
    parts = Rates(DEFAULTS, 64).by_part(terms)
    assert sum(parts.values()) == pytest.approx(usual)
    assert set(parts) == {"embedding", "evaluation", "environment", "learning", "messages"}


def test_between_sizes():
    assert between([1.0, 4.0], [1.0, 3.0], 2.0) == pytest.approx(2.0)
    assert between([1.0, 4.0], [1.0, 3.0], 0.1) == 1.0
    assert between([1.0, 4.0], [1.0, 3.0], 9.0) == 3.0


def test_a_calibration_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "calibration.json"
    path.write_text(DEFAULTS.text())
    assert load_calibration(str(path)) == DEFAULTS
    for text in ("{}", "[", DEFAULTS.text().replace('"ranks"', '"rank"')):
        path.write_text(text)
        with pytest.raises(CaseError, match=r"study\.calibration: .*; a calibration\.json would be right"):
            load_calibration(str(path))
    with pytest.raises(CaseError, match="No such file"):
        load_calibration(str(tmp_path / "none"))


# ---- plans ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["", "er", "er:100", "er:x:0.1", "er:0:0.1", "ws:10:2", "ba:10:2.5", "er:1:2:3", "er:9:1.5"]
)
def test_a_graph_that_no_generator_makes(text):
    with pytest.raises(CaseError, match="study: a graph must be NAME:NODES:PARAMETER"):
        graph_case(text)


@pytest.mark.parametrize("text", ["ba:3:4", "ba:4:4", "small_world:5:7", "er:9999999999:0.1"])
def test_parameters_that_do_not_go_together(text):
    with pytest.raises(CaseError, match=f"study: {text}: (d|nodes) must be"):
        graph_case(text)


def test_graphs_by_their_parameters():
    assert expected_entries(graph_case("er:100:0.5")) == 4950
    assert expected_entries(graph_case("ba:100:4")) == 800
    assert expected_entries(GraphCase(generator="mixed", nodes=(50, 150), p=0.1, d=3)) == 795
    assert expected_entries(GraphCase(generator="varied", nodes=(50, 150), p=0.1, d=3)) == 663
    assert expected_entries(GraphCase(generator="torus", nodes=70)) == 280
    assert expected_entries(GraphCase(generator="torus", nodes=70, removed=0.25)) == 210
    assert expected_entries(GraphCase(generator="small_world", nodes=70, d=2)) == 280
    assert expected_entries(GraphCase(generator="geometric", nodes=70, edges=100)) == 200


def test_expected_entries_of_diverse_graphs(solo):
    table = GraphCase(generator="diverse", nodes=100, count=270)
    found = [2 * each.graph.edges for each in generate_set(solo, table, 5, "x")]
    # Repeats and loops, which the expectation counts, are a fifth of them.
    assert 0.7 < np.mean(found) / expected_entries(table) < 1


def test_a_plan_has_memory_time_and_the_fastest_number_of_ranks():
    graph = GraphCase(generator="er", nodes=5000, p=0.1)
    lines = list(plan_lines(Case(graph=graph), 2))
    assert len(lines) == 4
    assert "5000 nodes, 2499500 stored entries" in lines[1]
    assert "a full policy evaluation on 2 ranks" in lines[2]
    assert "reductions, search and bounds take up to 150.5 MB beside that on a rank" in lines[3]
    few = Case(graph=graph, memory=MemoryCase(whole_graph_mb=150))
    said = "reductions, search and bounds want 150.5 MB on one rank, above memory.whole_graph_mb, 150: the"
    assert said in list(plan_lines(few, 2))[3]
    coloring = msgspec.structs.replace(few, problem=ProblemCase(name="coloring"))
    assert "whole_graph_mb, 150: a run would be refused" in list(plan_lines(coloring, 2))[2]
    assert len(list(plan_lines(Case(graph=graph, search=SearchCase(solver="policy")), 2))) == 3
    train = Case(run=RunCase(task="train"), graph=graph, train=TrainCase(steps=100))
    lines = list(plan_lines(train, 1))
    assert "100 environment steps" in lines[-1]
    assert re.search("ranks? would be the fastest", lines[-1])


# ---- what is measured -------------------------------------------------------------------------------------


def test_rank_zero_works_alone_while_the_others_sleep(group):
    assert first_alone(group, lambda: 7) == (7 if group.rank == 0 else None)
    assert seconds_together(group, lambda: None) < 60


def test_sampled_states_are_the_same_on_any_ranks(group):
    sample, states = sample_states(group, make_block(group, GRAPHS["sparse"]), 6, 1)
    assert states.count == 6
    assert 0 < states.live < 1
    assert [len(r) + 1 for r in sample.before] == [len(r) for r in sample.after]
    assert all(r[-1] == v for r, v in zip(sample.after, sample.nodes))
    mine = np.array([*sample.nodes, *(t.degree_sum for t in sample.totals_after)])
    assert (group.gather_integers(mine) == mine).all()


SMALL = [
    "study.measured=['er:60:0.2']", "study.extrapolated=['ba:900:3']", "study.batches=[3]", "study.rounds=2",
    "study.ranks=[1, 2, 192]", "study.memory_graph='er:300:0.1'", "output.plots=false",
]  # fmt: skip


# The program, each rate measured once where it takes the median of seven, and from a sixth of the entries.
HASTY = """
import sys
import run
from app.model import calibrate, timing
calibrate.LINES, calibrate.CALLS, calibrate.REUSE = 1 << 13, 4, 1
timing.ROUNDS, timing.SHORTEST_S = 1, 1e-5
sys.exit(run.main(sys.argv[1:]))
"""


@pytest.mark.mpi_skip
@pytest.mark.parametrize(
    "program", [["-c", HASTY], pytest.param(["run.py"], marks=pytest.mark.long)], ids=["hasty", "whole"]
)
def test_the_study_end_to_end_on_one_rank_and_two(tmp_path, program):
    results = {}
    for ranks in (1, 2):
        out = tmp_path / str(ranks)
        launch = mpirun(ranks) if ranks > 1 else []
        command = [*launch, sys.executable, *program, "inputs/study_scaling.toml", *SMALL, "--out", out]
        code, printed = run_job(command, limit_s=240, forked=True, LOCKSTEP_DATA="")
        assert code == 0, printed
        assert "extrapolated strong scaling" in printed
        results[ranks] = json.loads((out / "result.json").read_text())
        rows = list(csv.DictReader((out / "scaling.csv").open()))
        assert [int(row["ranks"]) for row in rows] == [1, 2, 192] * 4
        assert {row["counts"] for row in rows} == {"exact", "expected"}
        for row in rows:
            assert sum(float(row[f"{part}_s"]) for part in PARTS) == pytest.approx(float(row["seconds"]))
            assert float(row["efficiency"]) == pytest.approx(float(row["speedup"]) / int(row["ranks"]))
        assert load_calibration(str(out / "calibration.json")).ranks == ranks
    assert results[1]["digest"] == results[2]["digest"]
    measured = results[2]["measured"]
    assert [(row["step"], row["ranks"]) for row in measured] == [
        ("evaluation", 1), ("evaluation", 2), ("training B=3", 1), ("training B=3", 2),
    ]  # fmt: skip
    assert all(row["bytes_agree"] and row["ratio"] > 0 for row in measured)
    assert all(row["sent_bytes"] == row["predicted_bytes"] > 0 for row in measured if row["ranks"] == 2)
    # Rates of one run serve another, which then measures none.
    command = [
        sys.executable, "run.py", "inputs/study_scaling.toml", *SMALL, "--out", tmp_path / "again",
        f"study.calibration={tmp_path / '2' / 'calibration.json'}", "study.latency_us=5",
    ]  # fmt: skip
    code, printed = run_job(command, limit_s=120, LOCKSTEP_DATA="")
    assert code == 0, printed
    assert not (tmp_path / "again" / "calibration.json").exists()


@pytest.mark.mpi_skip
@pytest.mark.parametrize("problem", ["mds", "maxcut", "tsp"])
def test_a_study_of_steps_that_no_model_counts_is_refused(tmp_path, problem):
    """Also where memory is measured before them."""
    command = [sys.executable, "run.py", "inputs/study_scaling.toml", f"problem.name={problem}", *SMALL]
    code, printed = run_job([*command, "--out", tmp_path / "out"], limit_s=120, LOCKSTEP_DATA="")
    assert code == 2 and "the performance model counts the steps of mvc, not of" in printed


@pytest.mark.mpi_skip
def test_a_plan_counts_replicas_by_the_ranks_that_play_them():
    table = {"run.task": "train", "graph.generator": "er", "graph.nodes": 60, "graph.p": 0.2}
    table |= {"graph.count": 4, "agent.batch": 8, "train.steps": 1000}

    def plan(ranks, **keys):
        """Seconds of the training, and megabytes of replay."""
        case = build({**table, **{f"parallel.{key}": value for key, value in keys.items()}})
        printed = "\n".join(plan_lines(case, ranks))
        seconds = re.search(r"environment steps.* evaluations ([\d.]+) (m?)s", printed)
        return float(seconds[1]) / (1000 if seconds[2] else 1), float(
            re.search(r"replay ([\d.]+)", printed)[1]
        )

    one, replay = plan(1)
    alone, both = plan(1, data=2)
    assert both == pytest.approx(2 * replay, abs=0.11)
    assert one < alone < 2 * one  # each replica's minibatch is half as large
    shared, its = plan(2, data=2)
    assert its == replay
    assert alone / 2 < shared < 0.6 * alone  # one replica each, and a mean over them
    assert plan(4, data=4, spatial=2)[0] > plan(4, data=4)[0]
    assert mean_of_replicas(10, 4, 2).amounts == (40, 40, 1)  # a group's sum of two is one addend
    assert mean_of_replicas(10, 6, 2).amounts == (80, 80, 1)  # of three: two and one


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({}, ""),
        ({"parallel.data": 2}, ""),
        ({"agent.replay": "bits"}, 'agent.replay = "bits" (episodes are counted)'),
        (
            {"train.environment": "scan", "agent.train_every": 4},
            "agent.train_every (a gradient step for each",
        ),
        ({"problem.name": "maxcut"}, "steps of maxcut (those of mvc are counted)"),
    ],
)
@pytest.mark.mpi_skip
def test_a_plan_says_what_it_does_not_count(keys, said):
    table = {"run.task": "train", "graph.generator": "er", "graph.nodes": 60, "graph.p": 0.2}
    printed = "\n".join(plan_lines(build({**table, **keys}), 2))
    assert (said in printed) and ("not in the model" in printed) == bool(said)
    solved = "\n".join(plan_lines(build({**table, **keys, "run.task": "solve"}), 2))
    assert "their time is not in the model" in solved
    assert ("these are steps of mvc" in solved) == ("problem.name" in keys)
