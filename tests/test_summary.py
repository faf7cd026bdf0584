"""The first and last lines of a log: hosts, cores, phases in 80 columns, advice where something is off."""

import io
from contextlib import redirect_stdout
from types import SimpleNamespace

import numpy as np
import pytest
from msgspec import structs

from app.case.file import build
from app.comm.group import Group
from app.device import HostDevice
from app.log import Log, ToGo
from app.output import phase_table
from app.summary import Place, advice, crowded_host, phase_lines, places, remarks, say_end, say_start

CASE = build({"graph.generator": "ba", "graph.nodes": 100})


def place(host="a", cores=(0, 1, 2, 3), threads=1, compiled=True):
    return Place(host, frozenset(cores), threads, compiled)


def row(mean, high=None):
    return {"min_s": mean / 2, "mean_s": mean, "max_s": mean if high is None else high}


def phases(**seconds):
    return {"seconds": {k.replace("__", "."): row(*v) for k, v in seconds.items()}, "bytes": {}}


def group_of(size, name="cpu", native=True, direct=True):
    return SimpleNamespace(size=size, device=SimpleNamespace(name=name, native=native), direct=direct)


def test_the_log_begins_with_what_runs_where(group):
    where = places(group)
    assert len(where) == group.size and all(each.cores for each in where)
    printed = io.StringIO()
    with redirect_stdout(printed):
        say_start(Log(group.rank == 0), group, CASE, where)
    lines = printed.getvalue().splitlines()
    if group.rank > 0:
        assert lines == []
        return
    assert lines[0].startswith("hosts: ") and f"({group.size} rank" in lines[0]
    assert any(line.startswith("MPI: ") for line in lines) == (group.size > 1)
    assert any(line.startswith("estimate: ") and "MB" in line for line in lines)
    assert max(map(len, lines)) <= 80


def test_the_log_ends_with_the_phases(group):
    log = Log(group.rank == 0)
    with log.phase("a phase whose name is much longer than its column"):
        group.sum_integers(np.arange(5))
    table = phase_table(group, log.seconds)
    table["advice"], table["remarks"] = "word " * 40, ["a remark"]
    printed = io.StringIO()
    with redirect_stdout(printed):
        say_end(log, table, log.seconds["a phase whose name is much longer than its column"])
    lines = printed.getvalue().splitlines()
    assert max(map(len, lines), default=0) <= 80
    assert (len(lines) > 3 and lines[1].startswith("a phase whose name")) == (group.rank == 0)
    assert lines[-1:] == ["advice: a remark"] * (group.rank == 0)


@pytest.mark.mpi_skip
def test_the_table_has_the_longest_phase_first():
    times = phases(read=(0.5,), train=(6.0, 9.0), tiny=(0.001,), comm__sum=(2.0,))
    times["bytes"] = {"all": {"min": 1, "mean": 2e6, "max": 3e6}}
    lines = list(phase_lines(times, 10.0))
    assert [line.split()[0] for line in lines[1:]] == ["train", "read", "all", "within:", "sent"]
    assert lines[1].split() == ["train", "3.00", "6.00", "9.00", "1.50", "60.0"]
    assert lines[3].split()[-1] == "35.0" and "2.0 MB in the mean, imbalance 1.50" in lines[-1]


@pytest.mark.mpi_skip
@pytest.mark.parametrize(
    ("group", "where", "times", "said"),
    [
        (group_of(1), [place()], phases(train=(9.0,)), ""),
        (group_of(1), [place(compiled=False)], phases(train=(9.0,)), "compiled kernels are missing; pip"),
        (
            group_of(3),
            [place(), place("b", compiled=False), place("b", compiled=False)],
            phases(train=(9.0,)),
            "compiled kernels are missing on b, for which",
        ),
        (
            group_of(3),
            [place(cores=(0, 1))] * 3,
            phases(train=(9.0,)),
            "3 ranks with 3 threads share 2 cores",
        ),
        (group_of(1), [place(threads=8)], phases(train=(9.0,)), "1 rank with 8 threads share 4 cores"),
        (group_of(2), [place("a"), place("b")], phases(comm__sum=(6.0,)), "too small for 2 ranks"),
        (group_of(2, "gpu", None, False), [place()] * 2, phases(comm__sum=(3.0,)), "CUDA-aware MPI"),
        (group_of(2, "gpu", None, True), [place()] * 2, phases(comm__sum=(3.0,)), ""),
        (group_of(2, "gpu", None, False), [place()] * 2, phases(comm__rest=(4.0,)), "slept 40 % of the time"),
        (group_of(2), [place()] * 2, phases(comm__rest=(2.0,), comm__sum=(2.0,)), ""),
        (group_of(2), [place()] * 2, phases(train=(5.0, 8.0)), "the slowest rank takes 1.60 times"),
        (group_of(2), [place()] * 2, phases(train=(3.0,), plots=(1.0, 6.0)), "plots took 60 %"),
        (group_of(2), [place()] * 2, phases(train=(4.0,), write=(2.5, 5.0)), ""),
        (group_of(2), [place(cores=(0, 1)), place(cores=(1, 2))], phases(train=(5.0,)), "overlap"),
        (group_of(2), [place(cores=(0,)), place(cores=(1,))], phases(train=(5.0,)), ""),
    ],
)
def test_advice_names_what_is_off(group, where, times, said):
    found = advice(group, CASE, where, times, 10.0)
    assert said in found and bool(found) == bool(said)
    assert advice(group, CASE, where, times, 1.0) == ""  # too short to matter


@pytest.mark.mpi_skip
@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"search.seconds": 9.0, "search.starts": 1}, "2 ranks of 4 had no search; search.starts=4"),
        ({"search.seconds": 9.0}, "too small for 4 ranks"),
        ({"search.seconds": 9.0, "search.starts": 2}, "1 rank of 4 had no search"),
        ({"search.seconds": 9.0, "search.starts": 2, "search.bounds": False}, "2 ranks of 4 had no search"),
        ({"search.seconds": 9.0, "search.starts": 3}, "too small for 4 ranks"),
        ({"search.seconds": 0.0}, "too small for 4 ranks"),
        ({"search.seconds": 9.0, "search.solver": "policy"}, "too small for 4 ranks"),
    ],
)
def test_ranks_without_a_search_are_told_how_to_get_one(settings, said):
    case = build({"run.task": "solve", **settings})
    where = [place(host) for host in "abcd"]
    assert said in advice(group_of(4), case, where, phases(comm__sum=(6.0,)), 10.0)


@pytest.mark.mpi_skip
@pytest.mark.parametrize(
    ("times", "settings", "said"),
    [
        (
            {"search": (7.0,)},
            {"search.starts": 1},
            ["the work of search comes", "search.starts=2 gives each rank a search"],
        ),
        ({"search": (7.0,)}, {}, ["the work of search comes", "fewer ranks would be as fast"]),
        (
            {"search": (4.0,), "baselines": (5.0,)},
            {},
            ["of search and baselines comes", "search.baselines=false"],
        ),
        ({"baselines": (9.0,)}, {"search.starts": 2}, ["of baselines comes", "; search.baselines=false"]),
        ({"search": (9.0,)}, {"search.starts": 2}, ["fewer ranks would be as fast"]),
        ({"policy": (9.0,), "baselines": (0.5,)}, {}, ["too small for 2 ranks"]),
        ({"search": (9.0,)}, {"run.task": "train", "train.steps": 5}, ["too small for 2 ranks"]),
    ],
)
def test_ranks_that_had_no_piece_of_the_work(times, settings, said):
    case = build(
        {"run.task": "solve", "graph.generator": "ba", "graph.nodes": 9, "search.seconds": 9.0, **settings}
    )
    where = [place("a"), place("b")]
    found = advice(group_of(2), case, where, phases(**times, comm__sum=(6.0,)), 10.0)
    assert all(each in found for each in said), found


def entry(name, objective, sense="minimise", **baselines):
    return {"name": name, "sense": sense, "objective": objective, "baselines": baselines}


@pytest.mark.mpi_skip
def test_baselines_that_beat_the_answer_are_named():
    full, policy = (build({"run.task": "solve", "search.solver": each}) for each in ("full", "policy"))
    for case in (full, policy):
        assert remarks(case, {"instances": [entry("a", 5, descent=5, tabu=7), entry("b", 5)]}) == []
    (said,) = remarks(full, {"instances": [entry("a", 5, descent=4, tabu=3), entry("b", 5, descent=6)]})
    assert 'a: the baseline "tabu" found 3, better than the answer, 5; more search.steps' in said
    (said,) = remarks(policy, {"instances": [entry("a", 5, "maximise", descent=6, tabu=3)]})
    assert '"descent" found 6' in said and 'search.solver="full"' in said
    taken = entry("a", 4, descent=4, tabu=5) | {"source": "descent"}
    (said,) = remarks(full, {"instances": [taken]})
    assert said == 'a: the answer is that of the baseline "descent"; more search.steps may find more'
    assert remarks(full, {"instances": [taken | {"optimal": True}]}) == []
    many = remarks(full, {"instances": [entry(str(i), 5, rule=4) for i in range(9)]})
    assert len(many) == 4 and "6 other graphs" in many[-1]


def scores(watched, plain, **found):
    return {"instances": [{"name": "a", "watched": watched, "plain": plain, **found}]}


@pytest.mark.mpi_skip
def test_plain_rules_that_beat_a_network_are_named():
    given = {"run.task": "classify", "graph.path": "networkx:karate_club"}
    case, smoothed = build(given), build({**given, "smooth.method": "auto"})
    rules = {"label_propagation": {"val_micro_f1": 0.9}, "largest_class": {"val_micro_f1": 0.4}}
    (said,) = remarks(case, scores("val_micro_f1", rules, val_micro_f1=0.8))
    assert said.endswith('more gnn.epochs, gnn.depth, another gnn.model or smooth.method="auto" may help')
    rules = {"label_propagation": {"test_micro_f1": 0.9}, "largest_class": {"test_micro_f1": 0.4}}
    assert remarks(case, scores("val_micro_f1", rules, test_micro_f1=0.9)) == []
    assert remarks(case, scores("val_micro_f1", rules)) == []
    assert remarks(case, scores(None, {}, test_micro_f1=0.9)) == []
    (said,) = remarks(case, scores("val_micro_f1", rules, test_micro_f1=0.8))
    assert (
        'a: the plain rule "label propagation" has test micro F1 0.9000, better than the network\'s 0.8000'
        in said
    )
    assert said.endswith('more gnn.epochs, gnn.depth, another gnn.model or smooth.method="both" may help')
    (said,) = remarks(smoothed, scores("val_micro_f1", rules, test_micro_f1=0.8))
    assert said.endswith("more gnn.epochs, gnn.depth or another gnn.model may help")
    applied = structs.replace(case, gnn=structs.replace(case.gnn, epochs=0))
    assert remarks(applied, scores("val_micro_f1", rules, test_micro_f1=0.8)) == []
    both = {"majority": {"val_micro_f1": 0.5, "test_micro_f1": 0.9}}
    assert remarks(case, scores("val_micro_f1", both, val_micro_f1=0.6, test_micro_f1=0.8)) == []
    errors = {"mean": {"val_rmse": 2.0}, "neighbours": {"val_rmse": None}}
    assert remarks(case, scores("val_loss", errors, val_rmse=1.0)) == []
    (said,) = remarks(case, scores("val_loss", errors, val_rmse=3.0))
    assert "val root mean squared error 2.0000, better than the network's 3.0000" in said
    assert remarks(case, scores("val_hits_20", {"degrees": {"test_hits_20": 0.5}}, test_hits_20=0.1)) != []


@pytest.mark.mpi_skip
def test_plain_rules_beside_networks_that_had_no_validation_rows():
    """They watch the loss of training, which no rule has: rules are held by what is watched elsewhere."""
    given = {"run.task": "classify", "graph.path": "networkx:karate_club"}
    rules = {"label_propagation": {"test_micro_f1": 0.9}, "majority": {"test_micro_f1": 0.4}}
    (said,) = remarks(build(given), scores("train_loss", rules, test_micro_f1=0.8))
    assert "has test micro F1 0.9000" in said and "smooth.method" not in said  # several labels a node
    balanced = build({**given, "gnn.class_weights": "balanced"})
    assert remarks(balanced, scores("train_loss", rules, test_micro_f1=0.8, test_macro_f1=0.8)) == []


@pytest.mark.mpi_skip
def test_plain_rules_that_beat_a_forecast_are_named():
    case = build({"run.task": "classify", "gnn.level": "forecast", "graph.path": "networkx:karate_club"})
    rules = {"last_value": {"mae": 3.0, "skill": 0.0}, "seasonal": {"mae": None}, "mean": {"mae": 2.0}}
    assert remarks(case, scores("val_loss", rules, test={"mae": 1.0})) == []
    assert remarks(case, scores("val_loss", rules)) == []
    (said,) = remarks(case, scores("val_loss", rules, test={"mae": 2.5}))
    assert (
        'the plain rule "mean" has test mean absolute error 2.0000, better than the network\'s 2.5000' in said
    )
    assert said.endswith("more gnn.epochs, gnn.hidden or another forecast.model may help")


@pytest.mark.mpi_skip
@pytest.mark.parametrize(
    ("problem", "learned", "best_step", "said"),
    [
        ("mvc", 90, 40, []), ("mvc", 99, 40, []), ("mvc", 101, 40, ['"max degree" with 98']),
        ("mvc", 90, 0, ["those of step 0"]), ("mvc", 101, 0, ["those of step 0", '"max degree" with 98']),
        ("mis", 90, 40, ['"min degree" with 100']), ("mis", 99, 40, []),
    ],
)  # fmt: skip
def test_a_training_that_was_of_no_use_is_told(problem, learned, best_step, said):
    held_back = {"graphs": 3, "learned": learned, "max degree": 98, "min degree": 100}
    case = build(
        {
            "run.task": "train",
            "problem.name": problem,
            "graph.generator": "ba",
            "graph.nodes": 9,
            "train.steps": 50,
        }
    )
    found = remarks(case, {"instances": [], "best_step": best_step, "held_back": held_back})
    assert len(found) == len(said)
    assert all(part in line for part, line in zip(said, found))
    assert remarks(case, {"best_step": 9, "held_back": {"graphs": 3, "learned": 5}}) == []


@pytest.mark.mpi_skip
def test_kernels_that_were_not_wanted_are_not_missed():
    plain = build({"run.kernels": "plain"})
    assert advice(group_of(1), plain, [place(compiled=False)], phases(train=(9.0,)), 10.0) == ""
    assert crowded_host([place(), place()]) == ""


@pytest.mark.mpi_skip
def test_advice_is_that_of_the_device():
    """The attributes that advice reads are those of real groups and devices."""
    from mpi4py import MPI

    for compiled in (True, False):
        group = Group(MPI.COMM_SELF, HostDevice(compiled=compiled))
        missing = advice(group, CASE, places(group), phases(train=(1.0,)), 10.0)
        assert missing == "" if compiled and group.device.native else "compiled kernels" in missing


@pytest.mark.mpi_skip
def test_the_time_to_go_follows_the_pace(monkeypatch):
    clock = iter([0.0, 10.0, 20.0, 4000.0])
    monkeypatch.setattr("app.log.time.monotonic", lambda: next(clock))
    to_go = ToGo(100)
    assert [to_go(10), to_go(20), to_go(40)] == ["", "  80 s to go", "  40 s to go"]
    assert to_go(60) == "  53 min to go"
