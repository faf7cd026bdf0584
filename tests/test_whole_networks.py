"""Networks that are too small to be split: one rank learns for all, with the bits of all together."""

import errno
import re
import signal
from dataclasses import replace
from functools import partial

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from conftest import PARALLEL, WORLD
from helpers import by_one
from jobs import ROOT
from mpi4py import MPI
from test_main import metrics, result_of
from test_resume import fault, job

from app import classify, classify_edges, classify_relational, embed, find_links, predict_links
from app.case.file import build
from app.checkpoint import store
from app.checkpoint.checkpoints import Checkpoints
from app.checkpoint.keeper import Nothing
from app.checkpoint.pace import FIRST_SIGNAL
from app.comm import cores
from app.comm.group import Group
from app.device import HostDevice
from app.errors import CaseError, DiskFull, LockstepError, NumericsError, Stopped
from app.gnn.classifier import Classifier
from app.graphs.triples.data import Triples
from app.log import Log
from app.memory.room import memory_room
from app.model import whole
from app.model.fits import least_room
from app.model.terms import Term
from app.output import RunFolder
from app.tasks.classify import run_classify
from app.tasks.context import Context
from app.tasks.levels import whole as levels_whole
from app.tasks.levels.table import LEVELS
from app.tasks.relational_plan import links_plan, planned, split_of
from app.tasks.studies.gnn_folds import run_folds

WORTH = 1e9  # nothing is worth splitting
alone = pytest.mark.mpi_skip
QUICK = {"gnn.epochs": 4, "gnn.hidden": 8, "gnn.evaluate_every": 2}


@pytest.fixture
def by_size(monkeypatch):
    """Sizes decide, and all are small (tests/conftest.py)."""
    monkeypatch.setattr(whole, "WORTH", WORTH)


def nodes(settings, comm):
    draws = np.random.default_rng(3)
    graph, X = nx.gnp_random_graph(50, 0.1, seed=1), draws.normal(size=(50, 4))
    sets = {"train": range(25), "val": range(25, 35), "test": range(35, 50)}
    found = classify(graph, X, np.arange(50) % 3, **sets, settings=QUICK | settings, comm=comm)
    return found.digest, found.predicted.tolist(), [row["loss"] for row in found.records]


def several(settings, comm):
    """Sparse features, several classes, rows in another order, members, probabilities, sets."""
    draws = np.random.default_rng(3)
    X = sp.random_array((60, 9), density=0.2, rng=draws, format="csr")
    more = {"graph.order": "random", "gnn.members": 2, "output.coverage": 0.6, "output.probabilities": True}
    graph, labels = nx.gnp_random_graph(60, 0.1, seed=2), draws.integers(0, 3, 60)
    sets = {"train": range(30), "val": range(30, 45), "test": range(45, 60)}
    found = classify(graph, X, labels, **sets, settings=QUICK | more | settings, comm=comm)
    told = [each.tolist() for each in (found.predicted, found.probabilities, found.spread, *found.members)]
    return found.digest, found.sets, told


def graphs(settings, comm):
    """Arcs with features of their own, and labels of whole graphs."""
    draws, made = np.random.default_rng(4), []
    for number in range(12):
        made.append(nx.gnp_random_graph(5 + number % 4, 0.5, seed=number, directed=True))
        for _, _, data in made[-1].edges(data=True):
            data["bond"] = float(draws.normal())
    more = {"gnn.model": "gine", "graph.neighbours": "in", "output.embeddings": True}
    found = classify(
        made, None, [i % 2 for i in range(12)], train=range(8), test=range(8, 12), edge_features="bond",
        settings=QUICK | more | settings, comm=comm,
    )  # fmt: skip
    return found.digest, found.predicted.tolist(), found.embeddings.tolist()


def edges(settings, comm):
    graph = nx.barabasi_albert_graph(40, 3, seed=1)
    labels, X = np.arange(graph.size()) % 2, np.random.default_rng(5).normal(size=(40, 3))
    settings = QUICK | {"output.embeddings": True} | settings
    found = classify_edges(graph, labels, X, settings=settings, comm=comm)
    return found.digest, found.edges, found.predicted.tolist(), found.embeddings.tolist()


def links(settings, comm):
    graph = nx.barabasi_albert_graph(50, 4, seed=1)
    settings = QUICK | {"links.propose": 5, "links.dimension": 4} | settings
    found = find_links(graph, settings=settings, comm=comm)
    return found.digest, found.pairs, found.likely.tolist(), found.proposed, found.node_rows.tolist()


def vectors(settings, comm):
    graph = nx.gnp_random_graph(50, 0.1, seed=1)
    settings = QUICK | {"embed.probe_epochs": 5} | settings
    found = embed(graph, labels=np.arange(50) % 2, dimension=4, train=range(30), settings=settings, comm=comm)
    return found.digest, found.vectors.tolist(), found.clusters.tolist(), found.predicted.tolist()


TRIPLES = np.random.default_rng(7).integers(0, 5, (90, 3)) * [8, 1, 6]
RGCN = {"rgcn.epochs": 4, "rgcn.hidden": 4, "rgcn.bases": 2}


def relational(settings, comm):
    labels = {8 * node: node % 2 for node in range(5)}
    settings = RGCN | settings
    found = classify_relational(TRIPLES, labels=labels, train=[0, 8, 16], settings=settings, comm=comm)
    return found.digest, found.predicted.tolist(), found.model.arrays["first/V"].tolist()


def triples(settings, comm):
    settings = RGCN | {"rgcn.dimension": 4} | settings
    found = predict_links(TRIPLES, settings=settings, comm=comm)
    return found.digest, found.ranks.tolist(), found.node_rows.tolist()


def folds(settings, comm):
    """Three networks, which ranks share; one may have two of them, or none."""
    draws, graph = np.random.default_rng(3), nx.gnp_random_graph(40, 0.1, seed=1)
    X, settings = draws.normal(size=(40, 4)), QUICK | {"output.importance": 2} | settings
    found = classify(graph, X, np.arange(40) % 2, folds=3, settings=settings, comm=comm)
    return found.digest, found.folds, found.summary, found.predicted.tolist(), found.importance


def folds_of_edges(settings, comm):
    graph = nx.barabasi_albert_graph(30, 3, seed=1)
    found = classify_edges(graph, np.arange(graph.size()) % 2, folds=3, settings=QUICK | settings, comm=comm)
    return found.digest, found.folds, found.edges, found.predicted.tolist(), found.fold.tolist()


def folds_of_links(settings, comm):
    graph = nx.barabasi_albert_graph(30, 3, seed=1)
    found = find_links(graph, folds=3, settings=QUICK | settings, comm=comm)
    return found.digest, found.folds, found.edges, found.predicted.tolist()


def trials(settings, comm):
    """Three at once where there are ranks for them, and the network of the best one."""
    graph, X = nx.gnp_random_graph(40, 0.1, seed=1), np.random.default_rng(3).normal(size=(40, 4))
    found = classify(
        graph, X, np.arange(40) % 2, train=range(20), val=range(20, 30), test=range(30, 40),
        vary={"hidden": [4, 6, 8]}, settings=QUICK | {"study.seeds": [1, 2]} | settings, comm=comm,
    )  # fmt: skip
    return found.digest, found.trials, found.best.digest, found.test_mean, found.settings


def study(settings, comm):
    case = build(LEVEL | QUICK | {
        "run.task": "study", "study.kind": "folds", "study.folds": 3, "study.seeds": [1, 2],
        "output.plots": False,
    } | settings)  # fmt: skip
    found = run_folds(Context(case, Group(comm, HostDevice()), Log(False), None))
    return found["digest"], found["folds"], found["rows"]


LEARNED = (
    nodes, several, graphs, edges, links, vectors, relational, triples, folds, folds_of_edges, folds_of_links,
    trials, study,
)  # fmt: skip


@pytest.mark.filterwarnings("ignore:classify. all", "ignore:classify. gnn.patience")
@pytest.mark.parametrize("learn", LEARNED, ids=lambda each: each.__name__)
def test_where_a_network_learns_changes_no_bit(learn, by_size, monkeypatch):
    """By size, on every rank, and split over all."""
    expected, apart, make = by_one(lambda: learn({}, MPI.COMM_SELF)), [], Context.whole
    monkeypatch.setattr(Context, "whole", lambda self: apart.append(1) or make(self))
    for spatial in sorted({0, 1, WORLD.size}):
        apart.clear()
        assert learn({"parallel.spatial": spatial}, WORLD) == expected
        assert bool(apart) == (PARALLEL and spatial < 2)


LEVEL = {
    "run.task": "classify", "graph.generator": "sbm", "graph.nodes": 60, "graph.random_features": 3,
    "graph.random_classes": 2, "graph.splits": "random", "graph.order": "random",
}  # fmt: skip


def held(value):
    """What is held of nodes, edges and rows, as something to compare."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if sp.issparse(value):
        return [held(np.asarray(each)) for each in (value.indptr, value.indices, value.data)]
    if hasattr(value, "__dataclass_fields__"):
        return {name: held(getattr(value, name)) for name in value.__dataclass_fields__}
    return value


@pytest.mark.parametrize(
    "more",
    [
        {}, {"gnn.goal": "values"}, {"graph.random_features": 0, "graph.features": "degrees"},
        {"gnn.level": "edge", "graph.splits": "", "graph.edge_splits": "random"},
        {"gnn.level": "graph", "graph.generator": "motifs", "graph.nodes": [8, 12], "graph.count": 9,
         "graph.order": "natural"},
        {"gnn.level": "graph", "graph.count": 7, "graph.nodes": 9, "graph.order": "natural"},
    ],
    ids=str,
)  # fmt: skip
def test_what_is_gathered_is_what_one_rank_reads(more):
    case = build(LEVEL | more)
    found, own = (LEVELS[case.gnn.level](Context(case, g, Log(False), None)) for g in groups())
    if PARALLEL:
        found = found.whole(Group(WORLD, HostDevice()))
    assert held(found.data) == held(own.data)
    assert held(found.loaded.rows) == held(own.loaded.rows)
    assert held(found.loaded.graph) == held(own.loaded.graph)
    if case.gnn.level == "edge":
        assert held(found.labels) == held(own.labels)


def groups():
    return Group(WORLD, HostDevice()), Group(MPI.COMM_SELF, HostDevice())


def test_results_that_rank_0_cannot_write_end_all_ranks(by_size, shared_path, monkeypatch):
    """It alone finds the disk full; the others hear of it in the same words."""
    group, _ = groups()
    case = build(LEVEL | QUICK | {"parallel.spatial": 1, "output.plots": False})
    folder = RunFolder(group, str(shared_path / "out"), True)

    def full(self, name, text):
        raise OSError(errno.ENOSPC, "No space left on device", name)

    with monkeypatch.context() as patched, pytest.raises(DiskFull, match=r"predictions/sbm-60-0\.txt"):
        patched.setattr(RunFolder, "write_text", full)
        run_classify(Context(case, group, Log(False), folder))
    result = run_classify(Context(case, group, Log(False), folder))
    group.barrier()
    if group.rank == 0:
        assert len((shared_path / "out/predictions/sbm-60-0.txt").read_text().splitlines()) == 60
        for path in sorted((shared_path / "out").rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
    folder.release()
    assert len(set(group.gather_texts(result["digest"]))) == 1


@pytest.mark.parametrize("rank", range(WORLD.size))
@pytest.mark.parametrize("where", ["the loss", "the weights", "the scores"])
def test_what_one_rank_comes_to_alone_ends_all(where, rank, by_size, monkeypatch):
    """Before it trains, while rank 0 does, and after it: in the same words, none is left to wait."""
    group, _ = groups()
    case = build(LEVEL | QUICK | {"parallel.spatial": 1, "output.plots": False})
    begin, epoch, evaluate = Classifier.__init__, Classifier.epoch, Classifier.evaluate_ranking

    def fails(at):
        if group.rank == rank and where == at:
            raise NumericsError(f"{where} of rank {rank}")

    def beginning(self, *args, **keys):
        begin(self, *args, **keys)
        fails("the weights")

    def learning(self, number):
        fails("the loss")
        return epoch(self, number)

    def evaluating(self):
        fails("the scores")
        return evaluate(self)

    monkeypatch.setattr(Classifier, "__init__", beginning)
    monkeypatch.setattr(Classifier, "epoch", learning)
    monkeypatch.setattr(Classifier, "evaluate_ranking", evaluating)
    if where == "the loss" and rank:  # it rests meanwhile
        assert run_classify(Context(case, group, Log(False), None))
        return
    with pytest.raises(NumericsError, match=f"^{where} of rank {rank}$"):
        run_classify(Context(case, group, Log(False), None))


def test_ranks_that_evaluate_otherwise_are_named(by_size, monkeypatch):
    """Once all of them have the weights, if run.check_every is not 0."""
    group, _ = groups()
    of, last = Classifier.evaluate_ranking, group.size - 1
    monkeypatch.setattr(Classifier, "evaluate_ranking", lambda self: nudged(of(self), group.rank == last))
    keys = LEVEL | QUICK | {"parallel.spatial": 1, "output.plots": False}
    context = Context(build(keys), group, Log(False), None)
    if PARALLEL:
        with pytest.raises(NumericsError, match=rf"^weights and scores after the .*: rank {last} has "):
            run_classify(context)
        context = replace(context, case=build(keys | {"run.check_every": 0}))
    assert run_classify(context)


def nudged(scores, changed):
    """Another score of the test nodes, where it is to be changed."""
    return scores | {"test": replace(scores["test"], micro_f1=0.125)} if changed else scores


class Stopping(Checkpoints):
    """Hears a signal on the last rank at its third look."""

    stopped = 0

    def _heard(self):
        last = self.group.rank == self.group.size - 1
        if last and max(self._looks, self._step) >= 3:
            return FIRST_SIGNAL
        return super()._heard()


def test_a_signal_that_a_resting_rank_hears_stops_all(by_size, shared_path):
    """With a checkpoint of rank 0, of which all know; what is done next is done by all again."""
    group, _ = groups()
    keys = LEVEL | {"gnn.epochs": 1_000_000, "gnn.evaluate_every": 1000, "parallel.spatial": 1}
    keeper = Stopping(group, build(keys), str(shared_path))
    said = rf"^stopped by SIGUSR1; checkpoint {shared_path}/checkpoint/\S+; go on"
    with pytest.raises(Stopped, match=said):
        run_classify(Context(keeper.case, group, Log(False), None, keeper))
    known = group.gather_integers(np.array([keeper._step, keeper._number]))
    assert len(np.unique(known, axis=0)) == 1 and known[0, 0] >= 3 * (group.size == 1)
    again = Checkpoints(group, keeper.case, str(shared_path))
    again.resume()
    assert again.recall("fit").values["epochs"] == known[0, 0]
    group.barrier()
    if group.rank == 0:
        store.remove_all(str(shared_path / "checkpoint"))


# ---- what decides -----------------------------------------------------------------------------------------


def test_which_networks_are_split():
    """Small ones are not, unless a key of ranks that share rows, or a limit of memory, wants it."""
    small = 1000
    assert whole.decided_by_case(build(LEVEL), 1, small) is False
    assert whole.decided_by_case(build(LEVEL), 4, small) is None
    beyond = {"memory.whole_graph_mb": 1e-4}
    for more, decided in (
        ({"parallel.spatial": 1}, True), ({"parallel.spatial": 4}, False), ({"memory.fast_mb": 1.0}, False),
        ({"parallel.partition": "learned"}, False), ({"parallel.exchange": "halo"}, False),
        ({"parallel.exchange": "halo", "parallel.spatial": 1}, True),
        (beyond, False), (beyond | {"parallel.spatial": 1}, False),
    ):  # fmt: skip
        assert whole.decided_by_case(build(LEVEL | more), 4, small) is decided, more


def test_ranks_without_a_core_each_do_not_split(monkeypatch):
    """Whatever the size, but where a key wants it."""
    monkeypatch.setattr(whole, "WORTH", 1.3)
    terms = [[Term("", "", "element", (numbers, 4 * numbers), 1)] for numbers in (1e9, 1e8)]
    assert not whole.is_small(*terms, 4, False) and whole.gained(*terms, 4) > 5
    assert whole.is_small(*terms, 4, True)


def test_ranks_without_a_core_each_split_what_all_of_them_have_no_room_for(monkeypatch):
    """The case was let in for what a rank holds of it."""
    monkeypatch.setattr(whole, "WORTH", 1e-9)  # only too few cores keep it whole
    draws, (group, _) = np.random.default_rng(4), groups()
    triples = Triples("kg", 50, 3, *(draws.integers(0, n, 300).astype(np.int32) for n in (50, 3, 50)))
    links = {"gnn.model": "rgcn", "rgcn.goal": "links"}
    case = build({"run.task": "classify", "graph.generator": "ba", "graph.nodes": 50, **links})
    make = partial(links_plan, case.rgcn, triples=triples, split=split_of(case, case.rgcn, triples))
    needed = make(1).needed
    assert [planned(case, 4, make, room)[1] for room in (0, needed - 1, needed)] == [False, False, True]
    monkeypatch.setattr(levels_whole, "are_crowded", lambda group: True)
    context = Context(build(LEVEL | QUICK), group, Log(False), None)
    examples = LEVELS["node"](context)
    for room in (0, 1 << 50):
        monkeypatch.setattr(levels_whole, "least_room", lambda group, room=room: room)
        found, _ = levels_whole.whole_where_small(context, examples, None)
        assert (found.alike is None) == (group.size == 1 or not room)
    assert 0 < least_room(group) < memory_room(1)[0]


def test_whether_ranks_have_a_core_each(monkeypatch):
    group, _ = groups()
    for own, crowded in (([group.rank], False), ([3], PARALLEL), ([0, group.rank + 1], False)):
        monkeypatch.setattr(cores, "own_cores", lambda own=own: own)
        assert cores.are_crowded(group) is crowded
    monkeypatch.setattr(cores.platform, "node", lambda: f"host{group.rank}")
    monkeypatch.setattr(cores, "own_cores", lambda: [3])
    assert cores.are_crowded(group) is False


def test_a_number_of_ranks_that_share_is_refused_from_python():
    with pytest.raises(
        CaseError, match=r"^parallel.spatial: found 7, and a network is split over all ranks; "
    ):
        nodes({"parallel.spatial": 7}, MPI.COMM_SELF)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"parallel.spatial": 2}, r"found 2, .* 4 \(all\), 1 .* or 0 \(by its size\) would be right"),
        ({"parallel.spatial": 1, "parallel.partition": "learned"}, "whole graph, and parallel.partition is"),
        ({"parallel.spatial": 1, "memory.fast_mb": 2.0}, "whole graph, and memory.fast_mb is of ranks"),
    ],
)
def test_what_makes_no_sense_is_refused(more, said):
    with pytest.raises(CaseError, match=f"^parallel.spatial: .*{said}"):
        whole.refuse_spatial(build(LEVEL | more), 4)
    if "parallel.partition" in more:
        whole.refuse_spatial(build(LEVEL | more), 1)


# ---- runs -------------------------------------------------------------------------------------------------

GCN = (
    ROOT / "inputs" / "gcn.toml", "graph.nodes=300", "gnn.epochs=40", "gnn.evaluate_every=7",
    "output.plots=false", "checkpoint.steps=5",
)  # fmt: skip
SAID = "too small to be split"


@alone
@pytest.mark.parametrize(
    ("first", "then"),
    [
        ((2, 0), (3, 0)), ((2, 2), (2, 1)), pytest.param((2, 0), (2, 2), marks=pytest.mark.long),
        pytest.param((1, 0), (2, 0), marks=pytest.mark.long),
    ],
    ids=str,
)  # fmt: skip
def test_a_run_goes_on_wherever_it_learns(tmp_path, first, then):
    """Ranks and parallel.spatial of a run that is stopped, and of the one that goes on with it."""
    code, printed = job(GCN, tmp_path / "alone")
    assert (code, SAID in printed) == (0, False), printed
    ranks, spatial = first
    where = f"rank={ranks - 1},step=22" if ranks == 1 or spatial > 1 else "rank=0,step=22"
    stop = fault(f"signal:{where},code={signal.SIGTERM}")
    for number, (ranks, spatial) in enumerate((first, then)):
        keys = [f"parallel.spatial={spatial}", *(["--resume"] if number else [])]
        code, printed = job(GCN, tmp_path / "out", *keys, ranks=ranks, **({} if number else stop))
        assert code == (0 if number else 3), printed
        assert (SAID in printed) == (ranks > 1 and spatial < 2), printed
    assert result_of(tmp_path / "out")["digest"] == result_of(tmp_path / "alone")["digest"]
    assert result_of(tmp_path / "out")["ranks"] == then[0]
    assert metrics(tmp_path / "out") == metrics(tmp_path / "alone")
    name = "predictions/sbm-300-0.txt"
    assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "alone" / name).read_bytes()


@alone
def test_faults_of_ranks_that_rest_or_are_waited_for(tmp_path):
    """One that is killed while it rests ends the job; so does the watchdog of the one that learns. What this
    one raises is said once, and a signal that the other one hears stops it."""
    long = (*GCN, "gnn.epochs=100000000", "run.watchdog_seconds=1")
    for struck in ("kill:rank=1,step=3", "hang:rank=0,step=30"):
        code, printed = job(long, tmp_path / "out", "--overwrite", ranks=2, **fault(struck))
        assert code not in (0, 2, 3), printed
        assert ("rank 0] watchdog: this rank has not moved" in printed) == ("hang" in struck), printed
    code, printed = job(long, tmp_path / "out", "--overwrite", ranks=2, **fault("raise:rank=0,step=30"))
    said = "lockstep: error: training: rank 0: a fault on purpose"
    assert (code, printed.count(said), printed.count("lockstep: error")) == (1, 1, 1), printed
    stop = fault(f"signal:rank=1,step=3,code={signal.SIGTERM}")
    code, printed = job(long, tmp_path / "out", "--overwrite", ranks=2, **stop)
    assert (code, printed.count("stopped by SIGTERM; checkpoint")) == (3, 1), printed


LATER = (30, (2, 3)), (52, (2, 2))
MEMBERS = (*GCN, "gnn.members=3", "gnn.patience=3", "gnn.dropout=0", "output.coverage=0.7")


@alone
@pytest.mark.parametrize(
    ("step", "ranks"),
    [(22, (2, 1)), (22, (1, 2)), *(pytest.param(*each, marks=pytest.mark.long) for each in LATER)],
)
def test_members_that_ranks_train_side_by_side_go_on(tmp_path, step, ranks):
    """On any ranks, those that are done before others, too; metrics.csv has them in their order."""
    code, printed = job(MEMBERS, tmp_path / "alone")
    assert code == 0, printed
    stop = fault(f"signal:rank=0,step={step},code={signal.SIGTERM}")
    code, printed = job(MEMBERS, tmp_path / "out", ranks=ranks[0], **stop)
    assert code == 3, printed
    code, printed = job(MEMBERS, tmp_path / "out", "--resume", ranks=ranks[1])
    assert code == 0, printed
    for name in ("digest", "members", "coverage", "best_epoch"):
        assert result_of(tmp_path / "out")[name] == result_of(tmp_path / "alone")[name]
    assert metrics(tmp_path / "out") == metrics(tmp_path / "alone")
    for name in ("predictions/sbm-300-0.txt", "sets/sbm-300-0.txt"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "alone" / name).read_bytes()


@alone
def test_a_study_of_folds_that_ranks_share_goes_on_with_those_that_are_left(tmp_path):
    """One rank is asked to stop: what is under way ends, and begins anew on another number of ranks."""
    case = (*GCN[:2], "run.task=study", "study.kind=folds", "study.folds=5", "output.plots=false")
    case += ("study.seeds=[1]", "gnn.epochs=40")
    code, printed = job(case, tmp_path / "alone")
    assert code == 0, printed
    stop = fault(f"signal:rank=1,step=20,code={signal.SIGTERM}")
    code, printed = job(case, tmp_path / "out", ranks=2, **stop)
    assert (code, SAID in printed, printed.count("by SIGTERM; checkpoint")) == (3, True, 1), printed
    code, printed = job(case, tmp_path / "out", "--resume", ranks=3)
    assert code == 0, printed
    assert result_of(tmp_path / "out")["digest"] == result_of(tmp_path / "alone")["digest"]
    found, wanted = ((tmp_path / name / "folds.csv").read_bytes() for name in ("out", "alone"))
    assert found == wanted


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
def test_a_member_that_leaves_the_numbers_ends_all_ranks(by_size, monkeypatch):
    """That of one rank alone; the others' trainings come to their ends."""
    group, _ = groups()
    case = build(LEVEL | QUICK | {"parallel.spatial": 1, "gnn.members": 4, "output.plots": False})
    begin = Classifier.begin

    def far(self, seed):
        begin(self, seed)
        self.params.flat *= np.float32(1e38) if seed == case.seed + 1 else 1

    monkeypatch.setattr(Classifier, "begin", far)
    with pytest.raises(NumericsError, match="the loss before the first step is nan"):
        run_classify(Context(case, group, Log(False), None))


class Full(Nothing):
    """Once it is looked at three times: a stop for which no checkpoint can be written."""

    looks = 0

    def at(self, *args, **keys):
        self.looks += 1
        if self.looks == 3:
            raise LockstepError("no checkpoint could be written")


def test_a_stop_without_a_checkpoint_ends_all_members_at_the_same_look(by_size):
    """Those that train, and ranks that have none to train."""
    group, _ = groups()
    members = {"parallel.spatial": 1, "gnn.members": max(WORLD.size - 1, 2), "output.plots": False}
    case, keeper = build(LEVEL | QUICK | members), Full()
    with pytest.raises(LockstepError, match="no checkpoint could be written"):
        run_classify(Context(case, group, Log(False), None, keeper))
    assert keeper.looks == 3
    assert group.gather_integers(np.array([keeper.looks])).tolist() == [[3]] * WORLD.size


@alone
def test_the_plan_of_a_run_says_it_and_wrong_ranks_are_refused(tmp_path):
    code, printed = job(GCN, tmp_path / "out", "--dry-run", ranks=2)
    assert (code, SAID in printed) == (0, True), printed
    assert re.search(r"MB a rank on 1 rank ", printed)
    code, printed = job(GCN, tmp_path / "out", "--dry-run", "graph.nodes=300000", ranks=2)
    assert (code, SAID in printed) == (0, False), printed
    code, printed = job(GCN, tmp_path / "out", "parallel.spatial=3", ranks=2)
    assert code == 2 and printed.count("parallel.spatial: found 3") == 1, printed
    assert not (tmp_path / "out").exists()
