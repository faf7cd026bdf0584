"""Certificates in files: each proves what its run says, on the graph alone; whatever is damaged proves
nothing that is not true.
"""

import functools
import io
import json
import random
import shutil
import sys
import zipfile
from dataclasses import replace
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
from jobs import ROOT, mpirun, run_job

from app.bounds.certificate import Certificate
from app.bounds.clique.degeneracy import CliqueBound
from app.bounds.cover import packing as cover_packing
from app.bounds.cover.part import CoverPart
from app.bounds.cover.witness import CoverBound
from app.bounds.cut.cycles import CycleCertificate
from app.bounds.cut.verify import CutCertificate
from app.bounds.domination import packing as domination_packing
from app.bounds.tour.ascent import SparseAscent
from app.bounds.tour.one_tree import OneTree
from app.bounds.tour.proof import CutTree, Duals
from app.errors import LockstepError
from app.graphs.fixed_point import whole_numbers as in_units
from app.graphs.generators.table import GENERATORS
from app.graphs.graph import from_edges
from app.graphs.metric import from_points
from app.graphs.whole import whole_graph
from app.problems.table import make_problem
from app.proofs import archive
from app.proofs.kinds import CliqueProof, CoverProof, CutProof, DominationProof
from app.reductions.domination.reducer import Step
from app.search.node_tools import NodeTools
from app.tasks.check_run import _untrue
from app.tasks.entry import bound_and_gap, in_unit
from app.toolbox import Instance, verified

pytestmark = pytest.mark.mpi_skip
REFUSED = (LockstepError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
SETS = ("mvc", "mis", "clique", "mds")


def graph_of(drawn, weights=None, node_weights=None):
    drawn = nx.convert_node_labels_to_integers(drawn)
    edges = np.array(drawn.edges, dtype=np.int64).reshape(-1, 2)
    return replace(from_edges(drawn.number_of_nodes(), *edges.T, weights), node_weights=node_weights)


def drawn_graph(seed, problem):
    """A small graph of one of several families, now and then with weights."""
    random = np.random.default_rng(seed)
    n = int(random.integers(4, 11))
    drawn = (
        nx.gnp_random_graph(n, float(random.uniform(0.2, 0.8)), seed=seed),
        nx.random_labeled_tree(n, seed=seed),
        nx.disjoint_union(nx.cycle_graph(max(n // 2, 3)), nx.gnp_random_graph(n - n // 2, 0.6, seed=seed)),
        nx.barabasi_albert_graph(n, 2, seed=seed),
    )[seed % 4]
    if problem == "maxcut":
        signed = random.integers(-3, 6, drawn.number_of_edges()).astype(np.float64)
        signed[signed == 0] = 1.0
        return graph_of(drawn, None if seed % 3 else signed)
    weights = None if seed % 3 else random.integers(1, 7, drawn.number_of_nodes()).astype(np.float64)
    return graph_of(drawn, node_weights=weights)


def tools_of(graph, problem, metric=None):
    return make_problem(problem).toolbox(Instance(graph, metric))


def optimum(tools):
    """The best value of all subsets."""
    n = tools.graph.n
    masks = (np.arange(1 << n)[:, None] >> np.arange(n)) & 1 == 1
    values = [tools.value(mask) for mask in masks if tools.fault(mask) is None]
    return min(values) if tools.sense == "minimise" else max(values)


def bounded(tools, reduced, seconds=0.02, upper=None):
    """Bounds of the core, after some work on them."""
    if reduced:
        tools.reduce(lambda: None)
    bounds, start = tools.bounds(), tools.start()
    bounds.improve(seconds, tools.core_value(tools.value(tools.lift(start))), start)
    return bounds


def refused_or_valid(tools, content, best):
    """Whether a file is refused; else what it proves has to be true."""
    try:
        proved = tools.prove(archive.from_bytes(content))
    except REFUSED:
        return True
    assert proved <= best if tools.sense == "minimise" else proved >= best
    return False


@functools.lru_cache(1)  # tests damage the same file again and again
def arrays_of(content):
    with np.load(io.BytesIO(content)) as file:
        return {name: file[name] for name in file.files}


def parts_of(content):
    """The arrays of a file, which are not to be changed, and its tree."""
    arrays = dict(arrays_of(content))
    return arrays, json.loads(arrays.pop(archive.TREE).tobytes())


def made_of(arrays, tree):
    out, text = io.BytesIO(), np.frombuffer(json.dumps(tree).encode(), dtype=np.uint8)
    np.savez(out, **arrays, **{archive.TREE: text})
    return out.getvalue()


def numbers_in(node):
    """(container, key) of every number of a tree."""
    items = node.items() if isinstance(node, dict) else enumerate(node)
    for key, value in items:
        if isinstance(value, (dict, list)):
            yield from numbers_in(value)
        elif isinstance(value, (int, float)):
            yield node, key


def altered(content, random):
    """The file with one number changed: of an array, or of the tree."""
    arrays, tree = parts_of(content)
    filled = [name for name, array in arrays.items() if array.size]
    wild = [0, 1, -1, 2, 3, 7, 1 << 20, 1 << 31, -(1 << 31), (1 << 62) + 1, -(1 << 62), (1 << 63) - 1]
    if filled and random.random() < 0.8:
        name = str(random.choice(filled))
        array = arrays[name].copy()
        at, near = random.integers(array.size), int(random.integers(-2, 3))
        value = float(array[at]) + near if name == "float32" else int(array[at]) + near
        if random.random() < 0.4:
            value = wild[random.integers(len(wild))]
        if name != "float32":
            info = np.iinfo("uint8" if name == "bool" else name)
            value = min(max(int(value), int(info.min)), int(info.max))
        array[at] = value
        arrays[name] = array
    else:
        places = list(numbers_in(tree))
        holder, key = places[random.integers(len(places))]
        holder[key] = wild[random.integers(len(wild))] if random.random() < 0.5 else holder[key] + 1
    return made_of(arrays, tree)


@pytest.mark.parametrize("problem", [*SETS, "maxcut"])
def test_a_file_proves_what_its_bounds_say_and_a_damaged_one_nothing_untrue(problem):
    random, refused, tried = np.random.default_rng(7), 0, 0
    for seed in range(24):
        tools = tools_of(drawn_graph(seed, problem), problem)
        best = optimum(tools)
        bounds = bounded(tools, reduced=bool(seed % 2))
        content = archive.certificate_of(bounds)
        assert bool(content) == bool(bounds.method) or problem == "clique"
        if not content:
            continue
        again = tools_of(tools.graph, problem)  # nothing reduced, nothing searched
        proved = again.prove(archive.from_bytes(content))
        if verified(tools, bounds):
            assert proved == tools.value_of_core(bounds.value)
        assert proved <= best if tools.sense == "minimise" else proved >= best
        for _ in range(40):
            refused += refused_or_valid(again, altered(content, random), best)
            tried += 1
    assert refused > tried // 4  # a change need not do harm


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("problem", [*SETS, "maxcut"])
def test_fixed_nodes_belong_to_the_question(problem, fixed):
    for seed in range(8):
        graph = drawn_graph(seed, problem)
        inside = np.array([0] if fixed else [], dtype=np.int64)
        outside = np.array([], dtype=np.int64)
        tools = make_problem(problem).toolbox(Instance(graph, None, inside, outside))
        bounds = bounded(tools, reduced=True)
        content = archive.certificate_of(bounds)
        again = make_problem(problem).toolbox(Instance(graph, None, inside, outside))
        if content and verified(tools, bounds):
            assert again.prove(archive.from_bytes(content)) == tools.value_of_core(bounds.value)
        if content:  # the same file for another question is refused, or says what is true of that one
            free = tools_of(graph, problem)
            refused_or_valid(free, content, optimum(free))


def drawn_points(n, seed):
    return whole(GENERATORS["uniform_points"](n, seed))


def gnp(n, p, seed):
    return graph_of(nx.gnp_random_graph(n, p, seed=seed)), None


# A graph for each kind of witness: problem, graph and metric, seconds, kinds that its file has.
LARGER = {
    "theta": ("mvc", lambda: gnp(120, 0.5, 3), 2.0, {"theta", "theta part"}),
    "packing": ("mis", lambda: gnp(200, 0.03, 4), 0.3, {"columns"}),
    "complement": ("clique", lambda: gnp(60, 0.4, 1), 0.5, {"clique", "cover"}),
    "neighbourhoods": ("mds", lambda: gnp(300, 0.012, 2), 0.3, {"neighbourhoods", "step"}),
    "eigenvalues": ("maxcut", lambda: gnp(60, 0.4, 1), 0.0, {"eigenvalues"}),
    "triangles": ("maxcut", lambda: gnp(40, 0.5, 5), 3.0, {"triangles"}),
    "cycles": ("maxcut", lambda: (graph_of(nx.random_regular_graph(3, 80, seed=6)), None), 3.0, {"cycles"}),
    "1-tree": ("tsp", lambda: drawn_points(40, 3), 0.0, {"1-tree"}),
    "cuts": ("tsp", lambda: drawn_points(60, 5), 2.0, {"cuts", "duals"}),
}


def whole(stream):
    return whole_graph(stream)[0], stream.metric


@pytest.mark.parametrize("kind", LARGER)
def test_every_kind_of_witness_has_its_file(kind, monkeypatch):
    problem, make, seconds, kinds = LARGER[kind]
    graph, metric = make()
    tools = tools_of(graph, problem, metric)
    if kind == "cuts":
        pytest.importorskip("highspy")
    monkeypatch.setattr(CoverPart, "_search", lambda part: iter(()))  # a finished search has no witness
    if kind == "cycles":  # whichever is faster here is the better one else
        monkeypatch.setattr("app.bounds.cut.bounds.can_factor", lambda graph: False)
    bounds = bounded(tools, reduced=True, seconds=seconds)
    content = archive.certificate_of(bounds)
    said = json.dumps(parts_of(content)[1])
    assert all(f'"kind": "{each}"' in said for each in kinds), said[:2000]
    proved = tools_of(graph, problem, metric).prove(archive.from_bytes(content))
    assert verified(tools, bounds)
    assert proved == tools.value_of_core(bounds.value)
    random, best = np.random.default_rng(1), tools.value(tools.lift(tools.start()))
    refused = sum(refused_or_valid(tools, altered(content, random), best) for _ in range(20))
    assert refused  # the start's value is no optimum, but no bound may pass it


def test_of_a_finished_search_what_was_proved_before_stays(monkeypatch):
    """Branch and reduce leaves no witness: the file has what came before, and the bound is not verified."""
    for better in ("_packings", "_thetas"):  # which may reach the optimum where the search takes its time
        monkeypatch.setattr(CoverPart, better, lambda part, given: iter(()))
    graph = graph_of(nx.random_regular_graph(3, 60, seed=2))
    tools = tools_of(graph, "mvc")
    tools.reduce(lambda: None)
    bounds, start = tools.bounds(), tools.start()
    while bounds.improve(1.0, tools.core_value(tools.value(tools.lift(start)))) and bounds.inner.checked:
        pass
    proof = bounds.proof()
    assert not proof.checked
    assert not verified(tools, bounds)
    proved = tools_of(graph, "mvc").prove(archive.from_bytes(archive.to_bytes(proof)))
    assert 0 < proved < tools.value_of_core(bounds.value)


def test_colourings_of_sparse_kernels_have_files(monkeypatch):
    from app.search.clique import complement as clique_complement

    graph = graph_of(nx.gnp_random_graph(60, 0.5, seed=4))
    monkeypatch.setattr(clique_complement, "COMPLEMENT_EDGES", -1)
    tools = tools_of(graph, "clique")
    bounds = tools.bounds()
    bounds.improve(0.0, 3)
    content = archive.certificate_of(bounds)
    assert tools.prove(archive.from_bytes(content)) == bounds.value
    arrays, tree = parts_of(content)
    colours = arrays["int32"].copy()
    colours[colours == colours.max()] = -1  # one colour more that is not counted
    with pytest.raises(LockstepError, match="has a colour"):
        tools.prove(archive.from_bytes(made_of({**arrays, "int32": colours}, tree)))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda arrays, tree: tree.update(format=99), "written by a newer Lockstep"),
        (lambda arrays, tree: tree["proof"].update(kind="nothing"), "no certificate of Lockstep"),
        (lambda arrays, tree: tree["proof"].update(checked="yes"), "cover: checked is of another kind"),
        (lambda arrays, tree: tree["proof"]["log"]["array"].__setitem__(1, 10**9), "not in the file"),
        (lambda arrays, tree: tree["proof"]["log"]["array"].__setitem__(2, [-1]), "not in the file"),
        (lambda arrays, tree: tree["proof"].update(log=None), "cover: log is of another kind"),
        (lambda arrays, tree: arrays.update(int64=arrays["int64"].astype(np.float64)), "another kind"),
        (lambda arrays, tree: arrays.clear(), "no certificate of Lockstep"),
    ],
)
def test_what_is_no_certificate_is_refused_in_a_line(change, said):
    tools = tools_of(graph_of(nx.petersen_graph()), "mvc")
    arrays, tree = parts_of(archive.certificate_of(bounded(tools, reduced=True)))
    change(arrays, tree)
    with pytest.raises(LockstepError, match=said):
        archive.from_bytes(made_of(arrays, tree))


@pytest.mark.parametrize("content", [b"", b"nothing", b"PK\x03\x04" + bytes(100)])
def test_no_archive_is_no_certificate(content):
    with pytest.raises(LockstepError, match="no certificate of Lockstep"):
        archive.from_bytes(content)


# ---- files that somebody has thought about -----------------------------------------------------------------


def whole_numbers(*numbers):
    return np.array(numbers, dtype=np.int64)


NONE, ZERO, NODES = whole_numbers(), whole_numbers(0), np.zeros(0, dtype=np.int32)
AROUND = whole_numbers(0, 1 << 62, -(1 << 63), -(1 << 62), 8)  # every difference is 2^62, but for 8
EIGHT = np.arange(8, dtype=np.int32)
PETERSEN, STAR = nx.petersen_graph(), lambda: nx.star_graph(60_000)


def cover_proof(log=NONE, ptr=ZERO, nodes=NODES, value=NONE):
    columns = cover_packing.Columns(ptr, nodes, np.ones(len(value), dtype=bool))
    packing = cover_packing.Packing(0, "packing", columns, value, 1)
    return CoverProof(log, CoverBound(0, "packing", packing), True)


def cycle_proof(upper, ptr, nodes, value):
    over = np.ones(len(nodes), dtype=np.uint8)
    return CutProof(None, CycleCertificate(upper, "cycles", ptr, nodes, over, value, 0))


def colouring(lower, peeled, colour):
    return CliqueBound(lower, "colouring", None, 0, peeled, np.array(colour, dtype=np.int32))


def matched(edges):
    """So many edges without common nodes, and a diagonal that would say that no cut has all of them."""
    y = np.full(2 * edges, (1 << 51) + (1 << 30), dtype=np.int64)
    y[0] = -(1 << 63)
    graph = nx.from_edgelist([(2 * i, 2 * i + 1) for i in range(edges)])
    return "maxcut", graph, CutProof(None, CutCertificate(edges - 1, "eigenvalues", y, 51))


TWICE = whole_numbers(*[0] * 6, *range(6))  # beyond the places that a list without repeats has
FORGED = {
    "sums of cycles": (
        "maxcut", nx.cycle_graph(9), cycle_proof(-9, whole_numbers(0, 9), np.arange(9, dtype=np.int32),
                                                 whole_numbers(1 << 60)), "the witness proves",
    ),
    "a diagonal below": (*matched(4096), "not proved positive semidefinite"),
    "peeled twice": (
        "clique", nx.complete_graph(6), CliqueProof(0, TWICE, colouring(0, NONE, []), True), "peeled twice",
    ),
    "colours peeled twice": (
        "clique", nx.complete_graph(6), CliqueProof(0, NONE, colouring(6, TWICE, [0] * 6), True),
        "peeled twice",
    ),
    "a node that is not there": (
        "clique", PETERSEN, CliqueProof(9, whole_numbers(-1), colouring(0, NONE, []), True), "is not in it",
    ),
    "colours without end": (
        "clique", nx.path_graph(3), CliqueProof(0, NONE, colouring(1, NONE, [0, 2**31 - 2, 0]), True),
        "beyond the number of nodes",
    ),
    "columns that go round": (
        "mvc", PETERSEN, cover_proof(ptr=AROUND, nodes=EIGHT, value=whole_numbers(1, 1, 1, 1)),
        "fewer than two nodes",
    ),
    "cycles that go round": (
        "maxcut", PETERSEN, cycle_proof(0, AROUND, EIGHT, whole_numbers(1, 1, 1, 1)), "do not belong",
    ),
    "a clique of all": (
        "mvc", STAR, cover_proof(ptr=whole_numbers(0, 60_000), nodes=np.arange(60_000, dtype=np.int32),
                                 value=whole_numbers(1)), "more edges than",
    ),
    "a row of all pairs": ("mvc", STAR, cover_proof(whole_numbers(1, 2, 0, 1)), "are no clique"),
    "a fold of all pairs": (
        "mvc", STAR, cover_proof(whole_numbers(3, 60_001, *range(60_001))), "its neighbours 60000",
    ),
    "steps of nothing": (
        "mds", PETERSEN, DominationProof(
            (Step(0, NONE, NONE),), domination_packing.Packing(0, "packing", whole_numbers(*[0] * 10)), True
        ), "no step",
    ),
    "steps without end": (
        "mds", PETERSEN, DominationProof(
            (Step(0, ZERO, ZERO),) * 1001, domination_packing.Packing(0, "packing", whole_numbers(*[0] * 10)),
            True,
        ), "1001 steps",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", list(FORGED))
def test_forged_files_are_refused(name):
    problem, drawn, proof, said = FORGED[name]
    tools = tools_of(graph_of(drawn() if callable(drawn) else drawn), problem)
    with pytest.raises(LockstepError, match=said):
        tools.prove(archive.from_bytes(archive.to_bytes(proof)))


def cut_tree(n, lower=0, sets=(ZERO, NONE), pi=0, **more):
    root = Duals(np.full(n, pi, dtype=np.int64), NONE, NONE)
    return CutTree(lower, "cuts", 0, *sets, ZERO, NONE, root, **more)


@pytest.mark.parametrize("n", [1, 2])
def test_no_cuts_prove_tours_of_two_points(n):
    """A tour of two points has its one edge twice, that of one point none."""
    metric = from_points("few", np.array([[0.0, 0.0], [10.0, 0.0]])[:n])
    tools = tools_of(metric.neighbour_graph(1), "tsp", metric)
    with pytest.raises(LockstepError, match="no cycles"):
        tools.prove(archive.from_bytes(archive.to_bytes(cut_tree(n, 21, pi=100))))


def cut_of_five(n, times=1):
    """A set of five cities, alone or as the handle and many teeth of one cut."""
    ptr = whole_numbers(0, times)
    return replace(
        cut_tree(n, sets=(whole_numbers(0, 5), np.arange(5))), cut_ptr=ptr, cut_sets=ZERO.repeat(times)
    )


def test_large_problems_have_no_proofs_that_look_at_all_edges(monkeypatch):
    from app.bounds.tour import one_tree, proof

    graph, metric = whole(GENERATORS["uniform_points"](10, 3))
    tools, dense = tools_of(graph, "tsp", metric), OneTree(0, "1-trees", np.zeros(10, dtype=np.int64), 0)
    monkeypatch.setattr(proof, "MOST_KEPT", 1)
    leaf = Duals(np.zeros(10, dtype=np.int64), NONE, NONE)
    every = cut_tree(10, left_out_by=10**9, splits=(None,), values=(leaf,))
    with pytest.raises(LockstepError, match="leaves out too few edges"):
        tools.prove(archive.from_bytes(archive.to_bytes(every)))
    for module in (one_tree, proof):
        monkeypatch.setattr(module, "MOST_TABLE_POINTS", 9)
    for each in (dense, every):
        with pytest.raises(LockstepError, match="too many edges"):
            tools.prove(archive.from_bytes(archive.to_bytes(each)))


def test_a_heavy_tree_is_looked_at_in_little_memory(monkeypatch):
    """All boxes are near enough to points whose edges are that long: some points at a time, then fewer."""
    from app.bounds.tour import tree_check

    monkeypatch.setattr(tree_check, "MOST_PAIRS", 50)
    metric = GENERATORS["uniform_points"](3100, 3).metric
    order = np.random.default_rng(1).permutation(np.arange(1, 3100))
    heavy = np.column_stack([order[:-1], order[1:]])
    with pytest.raises(LockstepError, match="not the lightest"):
        OneTree(0, "1-trees", np.zeros(3100, dtype=np.int64), 0, heavy).check(metric)
    ascent = SparseAscent(metric)
    ascent.step()
    ascent.certificate().check(metric)


def test_trees_of_cases_and_sets_that_are_none():
    graph, metric = whole(GENERATORS["uniform_points"](10, 3))
    tools, cases = tools_of(graph, "tsp", metric), 200
    leaf = Duals(np.zeros(10, dtype=np.int64), NONE, NONE)
    shared = (*(((0, 1), case + 1) for case in range(cases)), None, None)  # more paths than anyone can follow
    more = {"left_out_by": 10**9, "splits": shared, "values": (*[None] * cases, leaf, leaf)}
    for proof, said in (
        (cut_tree(10, **more), "two others"),
        (cut_tree(10, sets=(AROUND, np.arange(8))), "an empty set"),
        (replace(cut_tree(10), root=replace(leaf, cuts=ZERO, y=ZERO)), "unknown cut"),
        (replace(cut_of_five(10), root=replace(leaf, cuts=ZERO[[0, 0]], y=ZERO[[0, 0]])), "more values than"),
        (replace(cut_of_five(10, 100)), "more than all cities"),
    ):
        with pytest.raises(LockstepError, match=said):
            tools.prove(archive.from_bytes(archive.to_bytes(proof)))


@pytest.mark.parametrize("shape", [[1 << 40, 0], [3, 1], [1, 1, 3]])
@pytest.mark.parametrize("problem", ["mvc", "maxcut"])
def test_arrays_have_their_dimensions(problem, shape):
    """An array of no numbers may be as long as it says: the compiled replay would read what is behind it."""
    proof = cover_proof() if problem == "mvc" else CutProof(NONE, CutCertificate(0, "positive weights"))
    arrays, tree = parts_of(archive.to_bytes(proof))
    tree["proof"]["log"]["array"] = ["int64", 0, shape]
    with pytest.raises(LockstepError, match="log is of another kind"):
        archive.from_bytes(made_of({**arrays, "int64": whole_numbers(0, 0, 0)}, tree))


@pytest.mark.parametrize("packed", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_files_are_packed_as_numpy_packs(packed):
    """Of other packed bytes Python unpacks all at once, whatever size the file says they have."""
    content, out = archive.to_bytes(cover_proof()), io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as given, zipfile.ZipFile(out, "w", packed) as made:
        for name in given.namelist():
            made.writestr(name, given.read(name))
    with pytest.raises(LockstepError, match="packed in another way"):
        archive.from_bytes(out.getvalue())


def test_a_problem_without_tools_of_its_own_takes_the_kinds_of_its_bounds():
    """A matching is a bound on covers, and says nothing of dominating sets."""
    graph = graph_of(nx.complete_graph(4))
    tools = NodeTools(Instance(graph), make_problem("mds"))
    matching = Certificate(2, "matching", whole_numbers(0, 2), whole_numbers(1, 3), whole_numbers(2, 2))
    matching.check(graph)
    with pytest.raises(LockstepError, match="proves nothing of dominating sets"):
        tools.prove(archive.from_bytes(archive.to_bytes(matching)))
    bounds = tools.bounds()
    bounds.improve(0.0, 1)
    assert tools.prove(archive.from_bytes(archive.to_bytes(bounds.proof()))) == 1


def test_a_tree_has_a_largest_size(monkeypatch):
    content = archive.to_bytes(cover_proof())
    archive.from_bytes(content)
    monkeypatch.setattr(archive, "LARGEST_TREE", 100)
    with pytest.raises(LockstepError, match="a tree of more than"):
        archive.from_bytes(content)


# ---- runs -------------------------------------------------------------------------------------------------

KEYS = ("search.steps=200", "search.baselines=false", "output.plots=false", "graph.count=3", "graph.nodes=40")


def lockstep(*more, ranks=1):
    start = mpirun(ranks) if ranks > 1 else []
    return run_job([*start, sys.executable, ROOT / "run.py", *more], limit_s=120)


def solved(out, *more, problem="mvc", ranks=1):
    keys = ("graph.generator=ba", "graph.generator_seed=1", "output.certificates=true", *KEYS)
    code, printed = lockstep(f"inputs/{problem}.toml", *keys, *more, "--out", out, ranks=ranks)
    assert code == 0, printed
    return out


def checked(out, *more, ranks=1):
    return lockstep(out / "case.toml", "--check", out, *more, ranks=ranks)


@pytest.mark.parametrize(
    ("problem", "ranks"), [("mvc", 1), ("mds", 2), pytest.param("maxcut", 3, marks=pytest.mark.long)]
)
def test_a_run_is_proved_from_its_files(tmp_path, problem, ranks):
    out = solved(tmp_path / "out", problem=problem, ranks=ranks)
    assert len(list((out / "certificates").iterdir())) == 3
    before = sorted(out.rglob("*"))
    for many in (1, 2):
        code, printed = checked(out, ranks=many)
        assert code == 0, printed
        assert "3 of 3 answers checked: all hold; bounds of " in printed  # of all, where no search was first
        assert "proved" in printed
    assert sorted(out.rglob("*")) == before


def test_groups_that_solve_at_once_write_the_same_certificates(tmp_path):
    keys = ("search.bound_seconds=0.1", "search.steps=50")
    one = solved(tmp_path / "one", *keys)
    apart = solved(tmp_path / "apart", "parallel.data=2", *keys, ranks=2)
    names = sorted(path.name for path in (one / "certificates").iterdir())
    assert names == sorted(path.name for path in (apart / "certificates").iterdir())
    code, printed = checked(apart, ranks=2)
    assert code == 0, printed
    assert "3 of 3 answers checked" in printed


def test_the_policy_alone_has_certificates_too(tmp_path):
    out = solved(tmp_path / "out", "search.solver=policy", "search.bound_seconds=0.3")
    told = (out / "log.txt").read_text()
    assert 'not read, as search.solver = "policy" makes no search: search.steps' in told
    assert len(list((out / "certificates").iterdir())) == 3
    code, printed = checked(out)
    assert code == 0, printed
    assert "3 of 3 answers checked: all hold" in printed


def test_what_does_not_hold_is_named(tmp_path):
    out = solved(tmp_path / "out")
    names = sorted(path.stem for path in (out / "solution").iterdir())
    other = tmp_path / "other"

    def copied():
        shutil.rmtree(other, ignore_errors=True)
        shutil.copytree(out, other)
        return other

    def refused(said, *more):
        code, printed = lockstep(out / "case.toml", "--check", other, *more)
        assert code == 2, printed
        assert said in " ".join(printed.split()), printed

    copied()
    path = other / "solution" / f"{names[0]}.txt"
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[1:]) + "\n")
    refused("not a feasible cover")
    path.write_text("\n".join([*lines, *(str(v) for v in range(40) if str(v) not in lines)]) + "\n")
    refused("where result.json says")
    path.unlink()
    refused("no such file; a run with output.solutions = true would be right")
    certificate = copied() / "certificates" / f"{names[1]}.npz"
    shutil.copy(other / "certificates" / f"{names[0]}.npz", certificate)
    refused(f"{names[1]}.npz: ")
    certificate.write_bytes(certificate.read_bytes()[:100])
    refused("no certificate of Lockstep")
    certificate.unlink()
    code, printed = lockstep(out / "case.toml", "--check", other)
    assert code == 0, printed
    assert "has no certificate" in printed
    assert "all hold; bounds of 2 are proved" in printed
    refused("answers for other graphs", "graph.generator_seed=2", "graph.count=2")
    refused("is of mvc, the case of mis", "problem.name=mis")
    result = json.loads((copied() / "result.json").read_text())
    entry = result["instances"][0]

    def said(**changes):
        first = {**entry, **changes}
        told = {**result, "instances": [first, *result["instances"][1:]]}
        (other / "result.json").write_text(json.dumps(told))

    assert entry["bound"] == entry["objective"]
    assert entry["bound_verified"]
    said(bound=entry["bound"] + 1)
    refused("which is beyond it")
    said(bound=entry["bound"] - 1)
    refused("a gap of 0.0 between")
    said(gap=0.25)
    refused("a gap of 0.25 between")
    said(bound=None, gap=None)
    refused("how far from optimal it is, and no bound")
    said(sense="maximise")
    refused("minimise and true would be right")
    said(feasible=False)
    refused("minimise and true would be right")
    said(bound=None, gap=None, optimal=False)
    code, printed = lockstep(out / "case.toml", "--check", other)
    assert code == 0, printed
    assert "; no bound" in printed
    more = next(str(v) for v in range(40) if str(v) not in lines)  # a cover of one more node than is needed
    (other / "solution" / f"{names[0]}.txt").write_text("\n".join([*lines, more]) + "\n")
    larger = entry["bound"] + 1
    said(objective=larger, bound=larger)
    refused(f"proves at least {larger - 1}, where result.json says {larger}, verified")
    said(objective=larger, bound=larger, bound_verified=False)
    code, printed = lockstep(out / "case.toml", "--check", other)
    assert code == 0, printed
    assert "rests on a search" in printed
    (other / "result.json").write_text("[]")
    refused("no answers of a solve")


def test_files_that_are_no_answers_are_named_in_a_line(tmp_path):
    out = solved(tmp_path / "out", "graph.count=1", problem="maxcut")
    result, (certificate,) = out / "result.json", (out / "certificates").iterdir()
    given, proof = json.loads(result.read_text()), archive.from_bytes(certificate.read_bytes())
    entry = given["instances"][0]
    changed = [{"bound": "24"}, {"bound": True}, {"bound": float("nan")}, {"name": 3}]
    others = [json.dumps({**given, "instances": [{**entry, **change}]}) for change in changed]

    def refused(said):
        code, printed = checked(out)
        assert code == 2, printed
        assert said in printed
        assert printed.count("\n") <= 1

    for text in (*others, json.dumps({**given, "instances": []}), "[" * 100_000):
        result.write_text(text)
        refused("no answers of a solve")
    result.write_text(json.dumps(given))
    weak = replace(proof, log=None, witness=CutCertificate(10**4000, "a\n\x1b[31mb" * 1000))
    certificate.write_bytes(archive.to_bytes(weak))
    refused("a bound beyond 63 bits")
    weak = replace(weak, witness=replace(weak.witness, upper=-1))
    certificate.write_bytes(archive.to_bytes(weak))
    refused("a\\n\\x1b[31mb")
    result.write_text(json.dumps(given))
    certificate.unlink()
    certificate.mkdir()
    code, printed = checked(out)
    assert code == 0, printed
    assert "has no certificate" in printed


def test_a_run_that_goes_on_keeps_the_certificates_of_before(tmp_path):
    keys = ("checkpoint.steps=1", "graph.generator=ba", "graph.generator_seed=1", "output.certificates=true")
    command = ("inputs/mvc.toml", *keys, *KEYS, "--out", tmp_path / "out")
    killed = {"LOCKSTEP_TESTING": "1", "LOCKSTEP_FAULT": "kill:rank=0,step=2"}
    code, _ = run_job([sys.executable, ROOT / "run.py", *command], limit_s=120, **killed)
    assert code != 0
    shutil.rmtree(tmp_path / "out" / "certificates", ignore_errors=True)
    code, printed = lockstep(*command, "--resume")
    assert code == 0, printed
    code, printed = checked(tmp_path / "out")
    assert code == 0, printed
    assert "bounds of 3 are proved" in printed


def entry_and_toolbox(draw):
    """What a run tells of an answer and a bound that are drawn, of weights with decimals or without end."""
    decimals, top = draw.randint(0, 5), 10.0 ** draw.randint(-2, 7)
    weights = [draw.uniform(0, top) for _ in range(draw.randint(1, 6))]
    rounded = draw.random() < 0.7
    weights = [round(each, decimals) or 10.0**-decimals if rounded else each for each in weights]
    whole, unit = in_units(np.array(weights, dtype=np.float32), "weight")
    signs = draw.choice(((1, 0), (1, -1), (1, 0, -1)))
    best, sense = sum(int(each) * draw.choice(signs) for each in whole), draw.choice(("minimise", "maximise"))
    off = draw.choice((0, draw.randint(1, 1000), abs(best), abs(best) + 1, max(abs(best) - 1, 0)))
    toolbox = SimpleNamespace(unit=unit, weights=whole, sense=sense, confidence=1)
    bound, gap = bound_and_gap(toolbox, best, best - off if sense == "minimise" else best + off)
    entry = {"objective": in_unit(toolbox, best), "bound": bound, "gap": round(gap, 6), "optimal": gap == 0}
    return json.loads(json.dumps({**entry, "sense": sense, "feasible": True})), toolbox


def test_what_a_run_tells_is_never_held_against_itself_and_lies_are():
    for seed in range(1500):
        draw = random.Random(seed)
        entry, toolbox = entry_and_toolbox(draw)
        assert _untrue(entry, toolbox) is None, (seed, entry)
        size = float(np.abs(toolbox.weights).sum()) * toolbox.unit
        beyond = size if toolbox.sense == "minimise" else -size
        assert "which is beyond it" in _untrue({**entry, "bound": entry["objective"] + beyond}, toolbox)
        assert "a gap of -1.0 between" in _untrue({**entry, "gap": -1.0}, toolbox)
        if abs(entry["bound"] - entry["objective"]) > 0.1 * size:
            assert _untrue({**entry, "gap": 0.0, "optimal": True}, toolbox), (seed, entry)
            assert _untrue({**entry, "optimal": True}, toolbox), (seed, entry)
