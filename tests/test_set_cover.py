"""Set covers and hitting sets: against all choices, however families are given, and what is refused."""

import itertools
import json
import sys

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from jobs import ROOT, run_job
from mpi4py import MPI

from app import TrainingRun, check, gym_environment, solve
from app.errors import CaseError, GraphError
from app.graphs.covering import MARK, as_covering
from app.graphs.formats.memory_sets import stream_of_family
from app.graphs.formats.readers import detect, open_edges
from app.graphs.formats.source import Limits
from app.graphs.whole import whole_graph

QUICK = {"search.steps": 3000, "search.bound_seconds": 0.3}
BOTH = ("set_cover", "hitting_set")
alone = pytest.mark.mpi_skip


def drawn(seed):
    """[sets, elements] bool in which there are covers and hitting sets; costs of both, some of them 0."""
    draws = np.random.default_rng(seed)
    sets, elements = int(draws.integers(1, 9)), int(draws.integers(1, 9))
    inside = draws.random((sets, elements)) < draws.choice([0.2, 0.5])
    inside[draws.integers(0, sets, elements), np.arange(elements)] = True
    inside[np.arange(sets), draws.integers(0, elements, sets)] = True
    return inside, draws.integers(0, 9, sets), draws.integers(0, 9, elements)


def least(meets, costs):
    """The least cost of candidates that meet all demands; meets [candidates, demands] bool."""
    choices = np.array(list(itertools.product([False, True], repeat=len(meets))))
    complete = (choices @ meets.astype(int) > 0).all(axis=1)
    return (choices @ costs)[complete].min()


def bipartite(inside):
    graph = nx.Graph()
    graph.add_nodes_from([("s", i) for i in range(len(inside))], bipartite=0)
    graph.add_nodes_from([("e", j) for j in range(inside.shape[1])], bipartite=1)
    graph.add_edges_from((("e", j), ("s", i)) for i, j in zip(*np.nonzero(inside)))
    return graph


def named(inside):
    return {f"S{i}": {f"e{j}" for j in np.flatnonzero(row)} for i, row in enumerate(inside)}


FORMS = {
    "array": lambda inside: inside.astype(float),
    "sparse": lambda inside: sp.csr_array(inside.astype(int)),
    "lists": lambda inside: [np.flatnonzero(row) for row in inside],
    "mapping": named,
    "networkx": bipartite,
}


def number(label):
    return int(label[1] if isinstance(label, tuple) else str(label).lstrip("Se"))


@pytest.mark.parametrize("problem", BOTH)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(6))
def test_least_choices_of_all_forms(problem, form, seed):
    inside, *_ = drawn(seed)
    found = solve(FORMS[form](inside), problem, settings=QUICK)
    meets = inside if problem == "set_cover" else inside.T
    chosen = [number(node) for node in found.nodes]
    assert meets[chosen].any(axis=0).all() and len(set(chosen)) == len(chosen) == found.objective
    assert found.objective == found.bound == least(meets, np.ones(len(meets), dtype=int))
    assert all(value >= found.objective for value in found.baselines.values()) and len(found.baselines) == 2


@pytest.mark.parametrize("problem", BOTH)
@pytest.mark.parametrize("seed", range(12))
def test_cheapest_choices(problem, seed):
    inside, *costs = drawn(seed)
    side = problem == "hitting_set"
    meets, costs = (inside.T if side else inside), costs[side]
    given = costs / 4 if seed % 2 else {i: int(c) for i, c in enumerate(costs)}
    found = solve(inside, problem, node_weights=given, settings=QUICK)
    unit = 4 if seed % 2 else 1
    assert meets[found.nodes].any(axis=0).all() and costs[found.nodes].sum() == unit * found.objective
    assert unit * found.objective == unit * found.bound == least(meets, costs)


@pytest.mark.parametrize("problem", BOTH)
def test_the_same_bits_on_any_ranks(problem):
    draws = np.random.default_rng(3)
    inside, costs = draws.random((60, 60)) < 0.06, draws.integers(1, 20, 60)
    inside |= np.eye(60, dtype=bool)
    settings = {"search.steps": 2000, "search.bounds": False}
    found, other = (
        solve(inside, problem, node_weights=costs, settings=settings, comm=comm)
        for comm in (MPI.COMM_WORLD, MPI.COMM_SELF)
    )
    assert (found.objective, found.digest, found.text) == (other.objective, other.digest, other.text)


@pytest.mark.parametrize("seed", range(4))
def test_fixed_candidates(seed):
    inside, costs, _ = drawn(seed + 20)
    inside = np.vstack([inside, inside])  # so that none has to be chosen
    meets, costs = inside[1:], np.append(costs, costs)[1:]
    found = solve(
        inside, "set_cover", inside=[1], outside=[0], node_weights=np.append(0, costs), settings=QUICK
    )
    rest = meets[1:, ~meets[0]]
    left = least(rest, costs[1:]) if rest.shape[1] else 0
    assert 1 in found.nodes and 0 not in found.nodes and found.objective == costs[0] + left
    assert not found.baselines


def test_a_search_begins_with_an_answer():
    inside = np.random.default_rng(7).random((40, 60)) < 0.2
    inside[0] |= ~inside.any(axis=0)
    found = solve(inside, "set_cover", settings=QUICK)
    again = solve(inside, "set_cover", start=found, settings={"search.steps": 0, "search.bounds": False})
    assert again.objective == found.objective
    mapping = {i: int(i in found.nodes) for i in range(40)}
    assert check(inside, mapping, "set_cover", settings=QUICK).objective == found.objective
    assert check(inside, found).objective == found.objective
    with pytest.raises(GraphError, match="found a mapping of 39; a list of nodes, or a mapping of all 40"):
        check(inside, dict.fromkeys(range(39), 1), "set_cover")


@alone
def test_what_a_choice_leaves_is_named():
    family = {"A": ["x", "y"], "B": ["y", "z"]}
    with pytest.raises(GraphError, match=r"answer: not a feasible set cover .* leaves element z"):
        check(family, ["A"], "set_cover")
    with pytest.raises(GraphError, match="leaves set A without one of its elements"):
        check(family, ["z"], "hitting_set")
    assert check(family, ["y"], "hitting_set").objective == 1


# ---- files ----------------------------------------------------------------------------------------------

FILES = {
    "a.sets": "# comment\n1: 10 20 30\n2: 30, 40\n\n3: 40 50 60\n4: 10 60\n",
    "b.sets": "10 20 30\n30 40\n40 50 60\n10 60\n",
    "c.gmt": "1\tfirst\t10\t20\t30\n2\t\tx\n",
    "d.hgr": "% hMETIS\n4 6\n1 2 3\n3 4\n4 5 6\n1 6\n",
    "e.hgr": "c PACE\np hs 6 4\n1 2 3\n3 4\n4 5 6\n1 6\n",
    "e.txt": "c PACE\np hs 6 4\n1 2 3\n3 4\n4 5 6\n1 6\n",
    "f.scp": "6 4\n1 1\n1 1\n2 1 4\n1 1\n2 1 2\n2 2\n3\n1 3 2 3\n4\n",
    "g.scp": "6 4\n1 3 1 2 3\n1 2 3 4\n1 3 4 5 6\n1 2 1 6\n",
    "h.txt": "1 10\n1 20\n1 30\n2 30\n2 40\n3 40\n3 50\n3 60\n4 10\n4 60\n",
    "n.csv": "s1,x\ns1,y\ns2,y\ns2,s1\n",
    "n.sets": "s1: x y\ns2: y s1\n",
}
FILES["c.gmt"] = "1\tfirst\t10\t20\t30\n2\t-\t30\t40\n3\thttp://x\t40\t50\t60\n4\t-\t10\t60\n"
FILES["f.scp"] = "6 4\n1 1\n1 1\n2 1 4\n1 1\n2 1 2\n2 2 3\n1 3\n2 3 4\n"


@pytest.mark.parametrize("name", FILES)
def test_files_of_all_formats(shared_path, name):
    path = shared_path / name
    if MPI.COMM_WORLD.rank == 0:
        path.write_text(FILES[name])
    MPI.COMM_WORLD.barrier()
    settings = QUICK | ({"graph.ids": "names"} if name.endswith("csv") else {})
    cover = solve(str(path), "set_cover", settings=settings)
    hits = solve(str(path), "hitting_set", settings=settings)
    if name.startswith("n"):
        assert cover.nodes == ["s1", "s2"] and hits.nodes == ["y"]
    else:
        tens = 10 if name in ("a.sets", "b.sets", "c.gmt", "h.txt") else 1
        assert cover.nodes == [1, 3] and hits.objective == 2
        family = [{1, 2, 3}, {3, 4}, {4, 5, 6}, {1, 6}]
        assert all(each & {node // tens for node in hits.nodes} for each in family)
    assert cover.optimal and hits.optimal and cover.text == "".join(f"{node}\n" for node in cover.nodes)
    other = solve(str(path), "set_cover", settings=settings, comm=MPI.COMM_SELF)
    assert (other.digest, other.text) == (cover.digest, cover.text)
    MPI.COMM_WORLD.barrier()


@alone
@pytest.mark.parametrize(
    ("text", "problem", "objective"),
    [
        ("2 3 1\n5 1 2\n9 2 3\n", "set_cover", 14),
        ("2 3 10\n1 2\n2 3\n4\n9\n4\n", "hitting_set", 8),
        ("2 3 11\n5 1 2 3\n9 2 3\n4\n3\n4\n", "set_cover", 5),
        ("2 3 11\n5 1 2 3\n9 2 3\n4\n3\n4\n", "hitting_set", 3),
    ],
)
def test_costs_of_hmetis(tmp_path, text, problem, objective):
    path = tmp_path / "a.hgr"
    path.write_text(text)
    warned = pytest.warns(UserWarning, match="are not read: (sets|elements) are not chosen")
    if text.split()[2] == "11":
        with warned:
            found = solve(str(path), problem, settings=QUICK)
    else:
        found = solve(str(path), problem, settings=QUICK)
    assert found.objective == found.bound == objective


@pytest.mark.parametrize("form", ["numbers", "names", "array"])
def test_a_file_of_costs(shared_path, form):
    """Of the candidates alone, by their ids, or in their order."""
    path, costs = shared_path / "a.sets", shared_path / ("c.npy" if form == "array" else "c.txt")
    names = ["p", "q", "r"] if form == "names" else [5, 7, 9]
    if MPI.COMM_WORLD.rank == 0:
        path.write_text("".join(f"{name}: {e}\n" for name, e in zip(names, ("1 2 3", "1 2", "3 4"))))
        if form == "array":
            np.save(costs, np.array([8.0, 2.5, 4.0]))
        else:
            costs.write_text("".join(f"{name} {c}\n" for name, c in zip(names, (8, 2.5, 4))))
    MPI.COMM_WORLD.barrier()
    found = solve(str(path), "set_cover", settings=QUICK | {"graph.node_weights": str(costs)})
    assert found.objective == found.bound == 6.5 and found.nodes == names[1:]
    MPI.COMM_WORLD.barrier()


@alone
def test_the_graph_of_a_family(tmp_path):
    """Candidates, then demands, then the reference, of ids that occur and of names too."""
    path = tmp_path / "a.txt"
    path.write_text("7 5\n7 9\n2 9\n")
    graph = whole_graph(as_covering(open_edges(str(path)), "set_cover"))[0]
    assert graph.held_ids().tolist() == [2, 7, 13, 17, 18]  # 8 + 5, 8 + 9
    assert graph.degrees().tolist() == [2, 3, 1, 2, 2]
    graph = whole_graph(as_covering(open_edges(str(path)), "hitting_set"))[0]
    assert graph.held_ids().tolist() == [5, 9, 12, 17, 18]
    graph = whole_graph(as_covering(open_edges(str(path), ids="names"), "set_cover"))[0]
    assert graph.held_ids().tolist() == [b"2", b"7", MARK + b"5", MARK + b"9", MARK + MARK]
    stream, labels, demands = stream_of_family({"b": [3], "a": [1, "x"]}, "set_cover")
    assert labels == ["b", "a"] and demands == [1, 3, "x"] and stream.sets == 2


@alone
def test_a_description_may_be_empty(tmp_path):
    """All that follows it are elements."""
    path = tmp_path / "a.gmt"
    path.write_text("A\t\tx\ty\nB\t-\ty\t\tz w\t\r\n")
    assert solve(str(path), "set_cover", settings=QUICK).nodes == ["A", "B"]
    assert solve(str(path), "hitting_set", settings=QUICK).nodes == ["y"]
    path.write_text("A\t\tz\n")
    assert solve(str(path), "hitting_set", settings=QUICK).nodes == ["z"]


@alone
def test_names_as_long_as_any(tmp_path):
    path, name = tmp_path / "a.sets", "\u00e4" * 127 + "x"
    path.write_text(f"a: {name}\n{name}: b {name}\n")
    assert solve(str(path), "set_cover", settings=QUICK).nodes == [name]
    assert solve(str(path), "hitting_set", settings=QUICK).nodes == [name]


@alone
def test_files_are_told_apart_by_content_and_name(tmp_path):
    for name, format in (("e.txt", "hgr"), ("a.sets", "sets"), ("c.gmt", "gmt"), ("f.scp", "scp")):
        (tmp_path / name).write_text(FILES[name])
        assert detect(str(tmp_path / name), Limits()) == format


WRONG = {
    "no elements": ("a.sets", "A:\n", "found no elements in 'A'|found no elements of 'A'"),
    "a set twice": ("a.sets", "A: 1\nA: 2\n", "found the set 'A' 2 times"),
    "nothing": ("a.sets", "# x\n", "no edges in .*; 'element element"),
    "too few lines": ("a.hgr", "p hs 3 2\n1 2\n", "found 1 lines after the header; 2 would be right"),
    "another number": ("a.hgr", "p hs 3 2\n1 2\n3 4\n", r"a.hgr:3: found number 4; 1\.\.3 would be right"),
    "no number": ("a.hgr", "p hs 3 2\n1 x\n3\n", "a.hgr:2: found 'x'; whole numbers"),
    "another header": ("a.hgr", "3\n1 2\n", "a.hgr:1: found '3'; 'HYPEREDGES VERTICES'"),
    "another kind": ("a.hgr", "1 2 7\n1 2\n", "a.hgr:1: found '1 2 7'"),
    "a weight alone": ("a.hgr", "1 2 1\n5\n", "a.hgr:2: found a weight and no vertices"),
    "two weights": ("a.hgr", "1 2 10\n1 2\n3 4\n5\n", "a.hgr:3: found two numbers"),
    "an element too many": ("a.hgr", "p hs 3 1\n1 2\n", "element 3 is in no set: no choice of sets is"),
    "no fit": ("a.scp", "2 2\n1 1\n1 1\n2 1\n", "2 rows, 2 columns, and numbers that do not fit"),
    "one number": ("a.scp", "2\n", "found 1 numbers; 'ROWS COLUMNS'"),
    "weights": ("a.txt", "1 2 3.5\n", r"found pairs with a weight; 'set element' would be right \(costs"),
    "a set twice, as an id": ("a.sets", "01: 1\n1: 2\n", "found the set '01' 2 times"),
    "no name": ("a.gmt", "\td\tx\n", "a.gmt:1: found an empty name"),
    "a tab in a name": ("a.sets", "a\tb: x\n", r"a.sets:1: found a tab within a name: 'a\\tb'"),
    "the last letter": ("a.sets", "a: \U0010ffffx x\n", "begins with U.10FFFF"),
    "ids near 2^63": ("a.txt", f"1 {2**63 - 2}\n", 'together; smaller ids, or graph.ids = "names"'),
    "a vast header": ("a.hgr", "p hs 4000000000 1\n1\n", "states 4000000001 sets and elements, for 1 n"),
    "many empty sets": ("a.hgr", "4000000000 1\n1\n", "states 4000000001 sets and elements"),
    "many columns": ("a.scp", "0 4000000000\n", "states 4000000000 sets and elements, for 2 numbers"),
    "a matrix": ("a.mtx", "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 1\n", "format matrix_m"),
}  # fmt: skip


@alone
@pytest.mark.parametrize("case", WRONG)
def test_wrong_files_are_refused(tmp_path, case):
    name, text, said = WRONG[case]
    (tmp_path / name).write_text(text)
    with pytest.raises(GraphError, match=said):
        solve(str(tmp_path / name), "set_cover", settings=QUICK)


FAMILY = {"A": [1, 2], "B": [2, 3]}
REFUSED = {
    "fixed sets, a policy": (
        {"settings": {"search.solver": "policy"}, "inside": ["A"]},
        "the policy alone holds to no fixed nodes",
    ),
    "an order": ({"settings": {"graph.order": "random"}}, 'graph.order: the graph of set_cover .* "natural"'),
    "a complement": ({"settings": {"graph.complement": True}}, "graph.complement: the .*; false would"),
    "an element as a set": ({"inside": [1]}, "inside: .*1"),
    "all that has an element": ({"outside": ["A"]}, "what is to be outside leaves element 1 uncovered"),
    "a start of elements": ({"start": [3]}, "start"),
    "costs of elements": ({"node_weights": {1: 2, 2: 2, 3: 2}}, "node 'A' has no weight"),
    "costs below zero": ({"node_weights": [-1, 2]}, "is below 0"),
}  # fmt: skip


@alone
@pytest.mark.parametrize("case", REFUSED)
def test_what_has_no_meaning_is_refused(case):
    given, said = REFUSED[case]
    with pytest.raises((CaseError, GraphError), match=said):
        solve(FAMILY, "set_cover", **given)


@alone
@pytest.mark.parametrize(
    "family",
    [7, "ab", {"A": 3}, {"A": "text"}, [[[1], [2]]], np.zeros(3), nx.path_graph(3), np.array([["a"]])],
)
def test_no_families_are_refused(family):
    with pytest.raises((CaseError, GraphError)):
        solve(family, "set_cover")


class Frame:
    """As much of a table as is asked of one."""

    def __init__(self, **columns):
        self.columns, self.values = list(columns), columns

    def __getitem__(self, name):
        return self.values[name]

    def to_numpy(self):
        return np.array(list(self.values.values())).T


@alone
def test_tables_of_sets_and_elements():
    table = Frame(s=np.array(["a", "a", "b"]), e=np.array([1, 2, 2]))
    assert solve(table, "set_cover", settings=QUICK).nodes == ["a"]
    assert solve(table, "hitting_set", settings=QUICK).nodes == [2]
    twice = Frame(s=[1], e=[2])
    twice.columns = ["s", "s"]
    with pytest.raises(GraphError, match="found two columns of one name"):
        solve(twice, "set_cover")
    for missing in (np.array([1, np.nan]), np.array([1, None]), np.array(["2020", "NaT"], dtype="M8[D]")):
        with pytest.raises(GraphError, match="found nothing in row 1 of column 'e'"):
            solve(Frame(s=np.array(["a", "b"]), e=missing), "set_cover")
    with pytest.raises(GraphError, match="a table of 3 columns"):
        solve(Frame(s=[1], e=[2], w=[3]), "set_cover")


@alone
@pytest.mark.parametrize(
    ("family", "said"),
    [
        (np.array([[1, 0], [np.nan, 1]]), "found NaN in row 1, column 0"),
        (sp.csr_array(np.array([[1, 0], [np.nan, 1]])), "found NaN in row 1, column 0"),
        (sp.csr_array(1j * np.eye(2)), "an array of complex128"),
        (sp.coo_array(np.ones(3)), r"an array of float64 of shape \(3,\)"),
        ({"a": [1, float("nan")]}, "found NaN as an element"),
    ],
)
def test_families_without_meaning_are_refused(family, said):
    with pytest.raises(GraphError, match=said):
        solve(family, "set_cover")


@alone
def test_entries_of_one_place_are_one():
    entries = sp.coo_array(([1, -1, 1, 1], ([0, 0, 0, 1], [0, 0, 1, 0])), shape=(2, 2))
    assert solve(entries, "set_cover", settings=QUICK).nodes == [0, 1]


@alone
def test_an_element_that_nothing_holds():
    with pytest.raises(GraphError, match="family: element 1 is in no set: no choice of sets is complete"):
        solve(np.array([[1, 0], [1, 0]]), "set_cover")
    with pytest.raises(GraphError, match="family: set 1 has no element: no choice of elements is complete"):
        solve([[1], []], "hitting_set")
    assert solve([[1], []], "set_cover", settings=QUICK).nodes == [0]


@alone
def test_families_are_of_these_problems_alone(tmp_path):
    (tmp_path / "a.sets").write_text(FILES["a.sets"])
    for problem in ("mvc", "maxcut"):
        with pytest.raises(GraphError, match=r"a family of sets; problem.name = .set_cover. or"):
            solve(str(tmp_path / "a.sets"), problem)
    with pytest.raises(CaseError, match="no policy answers coverage"):
        TrainingRun("coverage", [FAMILY])
    with pytest.raises(CaseError, match=r"train\.graphs\.generator: sets: a family of sets"):
        TrainingRun("mvc", {"generator": "sets", "nodes": 9})
    with pytest.raises(CaseError, match="no policy answers coverage"):
        pytest.importorskip("gymnasium")
        gym_environment([FAMILY], problem="coverage")


@alone
@pytest.mark.parametrize("keys", ["problem.name=mds", "run.task=classify"])
def test_a_drawn_family_is_of_these_problems_alone(tmp_path, keys):
    code, said = run_job([sys.executable, "run.py", "inputs/set_cover.toml", keys, "--dry-run"], cwd=ROOT)
    assert code == 2 and 'problem.name = "set_cover" or "hitting_set" would be right' in said


@alone
def test_elements_are_not_fixed(tmp_path):
    """Messages name them as their owner does."""
    path, fixed = tmp_path / "a.txt", tmp_path / "fixed.txt"
    path.write_text("7 5\n7 9\n2 9\n")
    fixed.write_text("7\n")
    with pytest.raises(CaseError, match="to be outside leaves element 5 uncovered"):
        solve(str(path), "set_cover", settings={"search.outside": str(fixed)})
    with pytest.raises(CaseError, match="to be outside leaves set 'A' without one of its elements"):
        solve({"B": ["y"], "A": ["x"]}, "hitting_set", outside=["x"])
    fixed.write_text("13\n")
    with pytest.raises(CaseError, match="13 is no set; sets would be right"):
        solve(str(path), "set_cover", settings={"search.inside": str(fixed)})


# ---- runs -----------------------------------------------------------------------------------------------


@alone
def test_a_run_and_its_certificate(tmp_path):
    out = tmp_path / "out"
    keys = ["graph.count=1", "search.steps=20000", "output.certificates=true", "output.plots=false"]
    code, said = run_job([sys.executable, "run.py", "inputs/set_cover.toml", *keys, "--out", out], cwd=ROOT)
    assert code == 0 and "200 sets, 100 elements" in said and "of 100 elements, by" in said
    entry = json.loads((out / "result.json").read_text())["instances"][0]
    assert 0 < entry["bound"] <= entry["objective"] <= min(entry["baselines"].values())
    assert len((out / "solution" / "sets-200-0.txt").read_text().splitlines()) == entry["objective"]
    code, said = run_job([sys.executable, "run.py", out / "case.toml", "--check", out])
    assert code == 0 and "1 of 1 answers checked: all hold; bounds of 1 are proved" in " ".join(said.split())
