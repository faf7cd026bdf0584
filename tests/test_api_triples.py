"""Knowledge graphs from Python: the answers of the same triples in files, on any number of ranks."""

import json
import re
import sys
from xml.etree import ElementTree

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from helpers import Frame
from jobs import run_job
from mpi4py import MPI

from app import classify_relational, predict_links
from app.errors import CaseError, GraphError

NODES, RELATIONS = 50, 4
FEW = {"rgcn.epochs": 4, "rgcn.bases": 5, "seed": 3, "run.device": "cpu"}
LINKS = {"rgcn.epochs": 3, "rgcn.dimension": 6, "rgcn.layers": 1, "seed": 3, "run.device": "cpu"}
AS_THE_CASE = {  # inputs/rgcn_links.toml
    "rgcn.bases": 0, "rgcn.loss": "softmax", "rgcn.n3": 0.01, "rgcn.learning_rate": 0.02,
    "rgcn.schedule": "cosine",
}  # fmt: skip
TRAIN, VAL, TEST = range(0, 40, 2), range(1, 40, 4), range(3, 40, 4)


def rows_of(seed=1, count=200):
    """[m, 3]: node 49 is in none of them."""
    draws = np.random.default_rng(seed)
    ends = draws.integers(0, NODES - 1, (2, count))
    return np.stack([ends[0], draws.integers(0, RELATIONS, count), ends[1]], axis=1)


def classes_of():
    """[NODES]: those from 40 on have none."""
    return np.where(np.arange(NODES) < 40, np.random.default_rng(2).integers(0, 3, NODES), -1)


def ran(folder, *keys):
    """The result.json of a run of the program."""
    keys = [*keys, "seed=3", "run.device=cpu", "output.plots=false"]
    code, printed = run_job([sys.executable, "run.py", *keys, "--out", str(folder)], limit_s=200)
    assert code == 0, printed
    return json.loads((folder / "result.json").read_text())


def written(path, **more):
    """An archive of the triples and the labels of the three sets."""
    found = {}
    for name, nodes in (("train", TRAIN), ("val", VAL), ("test", TEST)):
        found |= {f"{name}_idx": np.array(nodes), f"{name}_label": classes_of()[list(nodes)]}
    np.savez(path, triples=rows_of(), num_nodes=NODES, num_relations=RELATIONS, **found, **more)
    return str(path)


@pytest.mark.mpi_skip
@pytest.mark.parametrize("features", [False, True])
def test_arrays_give_the_bits_of_their_file(tmp_path, features):
    """Predictions, scores of the three sets, weights, and the weights' file."""
    path, X = written(tmp_path / "g.npz"), np.random.default_rng(5).random((NODES, 3)).astype(np.float32)
    np.save(tmp_path / "x.npy", X)
    keys = [f"graph.path={path}", "rgcn.epochs=4", "rgcn.bases=5"]
    keys += [f"graph.features={tmp_path / 'x.npy'}"] * features
    result = ran(tmp_path / "run", "inputs/rgcn.toml", *keys)
    sets = {"train": TRAIN, "val": VAL, "test": TEST, "nodes": NODES, "settings": shipped()}
    found = classify_relational(rows_of(), X if features else None, classes_of(), **sets)
    assert found.digest == result["digest"]
    for name in ("train", "val", "test"):
        assert found.scores[name].accuracy == result[f"{name}_accuracy"]
    lines = (tmp_path / "run" / "predictions" / "g.txt").read_text().splitlines()
    assert [f"{v} {c}" for v, c in zip(found.nodes, found.predicted)] == lines
    assert "val_score" in (tmp_path / "run" / "metrics.csv").read_text().splitlines()[0]
    if features:
        return
    assert classify_relational(path, settings=shipped()).digest == result["digest"]
    found.save(str(tmp_path / "mine.npz"))
    with np.load(tmp_path / "mine.npz") as mine, np.load(tmp_path / "run" / "weights.npz") as theirs:
        assert set(mine) == set(theirs)
        assert all(np.array_equal(mine[name], theirs[name]) for name in mine if name != "manifest")
    applied = {**shipped(), "rgcn.epochs": 0, "rgcn.weights": str(tmp_path / "mine.npz")}
    again = classify_relational(rows_of(), None, classes_of(), **{**sets, "settings": applied})
    assert again.digest == found.digest and again.train_loss is None


def shipped():
    """The keys of inputs/rgcn.toml that count, and fewer epochs and bases."""
    return {**FEW, "rgcn.hidden": 16, "rgcn.learning_rate": 0.01, "rgcn.partition": "relations"}


@pytest.mark.mpi_skip
def test_names_give_the_bits_of_n_triples_and_tables(tmp_path):
    rows = [(f"<n:{s}>", f"<r:{r}>", f"<n:{o}>") for s, r, o in rows_of().tolist()]
    (tmp_path / "g.nt").write_text("".join(f"{s} {r} {o} .\n" for s, r, o in rows))
    kinds = ["apple", "berry", "cherry"]
    there = {node for s, _, o in rows for node in (s, o)}
    label = {f"<n:{i}>": kinds[c] for i, c in enumerate(classes_of()) if c >= 0 and f"<n:{i}>" in there}
    learned = [node for node in label if int(node[3:-1]) % 2]
    for name, nodes in (("trainingSet", learned), ("testSet", [v for v in label if v not in learned])):
        text = "".join(f"{node[1:-1]}\t{label[node]}\n" for node in nodes)
        (tmp_path / f"{name}.tsv").write_text(f"node\tlabel\n{text}")
    keys = [f"graph.path={tmp_path / 'g.nt'}", "rgcn.epochs=4", "rgcn.bases=5"]
    result = ran(tmp_path / "run", "inputs/rgcn.toml", *keys)
    found = classify_relational(rows, labels=label, train=learned, settings=shipped())
    assert found.digest == result["digest"]
    assert set(found.predicted) <= set(kinds) and set(found.nodes) == set(label)
    lines = (tmp_path / "run" / "predictions" / "g.txt").read_text().splitlines()
    assert [f"{v} {c}" for v, c in zip(found.nodes, found.predicted)] == lines
    file = str(tmp_path / "g.nt")
    own = classify_relational(file, labels=label, train=learned, settings=shipped())
    assert own.digest == found.digest and own.nodes == found.nodes
    with pytest.raises(CaseError, match="with the labels of a file its own sets count"):
        classify_relational(file, train=learned, settings=shipped())


@pytest.mark.mpi_skip
def test_links_of_given_sets(tmp_path):
    """Tables of names and the same names from Python have one digest, an archive and its numbers too."""
    rows = rows_of()
    sets = {"train": rows[:150], "val": rows[150:170], "test": rows[170:]}
    names = {
        part: [(f"n {s}", f"r {r}", f"n {o}") for s, r, o in each.tolist()] for part, each in sets.items()
    }
    for part, each in names.items():
        (tmp_path / f"{part}.txt").write_text("".join("\t".join(row) + "\n" for row in each))
    keys = [
        f"graph.path={tmp_path / 'train.txt'}",
        "rgcn.epochs=3",
        "rgcn.dimension=6",
        "rgcn.evaluate_every=1",
    ]
    keys += [f"rgcn.{part}_triples={tmp_path / part}.txt" for part in ("val", "test")]
    result = ran(tmp_path / "run", "inputs/rgcn_links.toml", *keys)
    settings = {**LINKS, **AS_THE_CASE}
    found = predict_links(names["train"], val=names["val"], test=names["test"], settings=settings)
    assert found.digest == result["digest"] and found.scores == result["links"]
    files = {part: str(tmp_path / f"{part}.txt") for part in sets}
    own = predict_links(files["train"], val=files["val"], test=files["test"], settings=settings)
    assert own.digest == found.digest and set(found.held_out) == set(names["test"])
    numbered = {"nodes": NODES, "relations": RELATIONS, "settings": settings}
    first = predict_links(sets["train"], val=sets["val"], test=sets["test"], **numbered)
    np.savez(
        tmp_path / "g.npz", triples=sets["train"], val_triples=sets["val"], test_triples=sets["test"],
        num_nodes=NODES, num_relations=RELATIONS,
    )  # fmt: skip
    second = predict_links(str(tmp_path / "g.npz"), settings=settings)
    assert second.digest == first.digest and second.held_out == first.held_out
    assert {tuple(row) for row in first.held_out} == {tuple(row) for row in sets["test"].tolist()}
    lines = (tmp_path / "run" / "predictions" / "train.txt").read_text().splitlines()
    assert [tuple(line.split("\t")[:3]) for line in lines] == found.held_out
    log = (tmp_path / "run" / "log.txt").read_text()
    assert f"{len(np.unique(sets['val'], axis=0))} to choose the epoch by" in log and "warning" not in log


@pytest.mark.mpi_skip
def test_what_is_wrong_with_given_sets(tmp_path):
    rows = rows_of(count=20)
    with pytest.raises(GraphError, match=r"test: found node 99 in row 0; 0..49 would be right"):
        predict_links(rows, test=[(99, 0, 1)], nodes=NODES)
    with pytest.raises(GraphError, match=r"triples: found numbers, others are names; names in all"):
        predict_links(rows, val=[("a", "b", "c")])
    with pytest.raises(GraphError, match=r"val: found 0; from 1"):
        predict_links(rows, val=[])
    with pytest.raises(GraphError, match=r"test: found .*'a'.* in row 1; \(subject"):
        predict_links([("a", "b", "c")], test=[("a", "b", "c"), ("a",)])
    np.savez(tmp_path / "g.npz", triples=rows, num_nodes=NODES, num_relations=RELATIONS)
    with pytest.raises(CaseError, match=r"rgcn.test_triples: beside a text file; an array test_triples in"):
        predict_links(str(tmp_path / "g.npz"), test=__file__)
    for key in ("rgcn.val_triples", "rgcn.test_triples"):
        with pytest.raises(CaseError, match=rf'{key}: of rgcn.goal = "links"'):
            classify_relational(str(tmp_path / "g.npz"), settings={key: __file__})
        with pytest.raises(CaseError, match=rf"{key}: beside a file of triples; leave it out"):
            predict_links(rows, settings={key: __file__})


def test_a_graph_and_names_of_other_sets(group):
    """Nodes keep the graph's order; others that only the test has come after them. Any number of ranks."""
    graph = nx.MultiDiGraph([(0, 1, {"relation": "x"}), (1, 2, {"relation": "y"}), (2, 0, {"relation": "x"})])
    graph.add_node("alone")
    found = predict_links(graph, test=[(0, "x", "new"), (1, "y", 2)], settings=LINKS, comm=group.comm)
    assert found.nodes == [0, 1, 2, "alone", "new"] and found.relations == ["x", "y"]
    assert set(found.held_out) == {(0, "x", "new"), (1, "y", 2)} and len(found.known) == 5


@pytest.mark.mpi_skip
def test_links_give_the_bits_of_their_file(tmp_path):
    path = written(tmp_path / "g.npz")
    keys = [f"graph.path={path}", "rgcn.epochs=4", "rgcn.dimension=6", "rgcn.evaluate_every=2"]
    result = ran(tmp_path / "run", "inputs/rgcn_links.toml", *keys)
    settings = {
        **LINKS, **AS_THE_CASE, "rgcn.epochs": 4, "rgcn.held_out": 0.1, "rgcn.validation": 0.05,
        "rgcn.evaluate_every": 2,
    }  # fmt: skip
    found = predict_links(rows_of(), nodes=NODES, settings=settings)
    assert found.digest == result["digest"] and found.scores == result["links"]
    assert predict_links(path, settings=settings).digest == found.digest
    lines = (tmp_path / "run" / "predictions" / "g.txt").read_text().splitlines()
    told = [f"{s} {r} {o} {a:g} {b:g}" for (s, r, o), (a, b) in zip(found.held_out, found.ranks.tolist())]
    assert told == lines
    found.save(str(tmp_path / "mine.npz"))
    applied = {**settings, "rgcn.epochs": 0, "rgcn.weights": str(tmp_path / "mine.npz")}
    assert predict_links(rows_of(), nodes=NODES, settings=applied).ranks.tolist() == found.ranks.tolist()


def test_any_ranks_have_the_answer_of_one():
    rows, y = rows_of(), classes_of()
    for partition in ("relations", "rows"):
        settings = {**FEW, "rgcn.partition": partition}
        one, all_of_them = (
            classify_relational(rows, labels=y, nodes=NODES, train=TRAIN, settings=settings, comm=comm)
            for comm in (MPI.COMM_SELF, MPI.COMM_WORLD)
        )
        assert one.digest == all_of_them.digest
        assert np.array_equal(one.predicted, all_of_them.predicted) and one.scores == all_of_them.scores
    one, all_of_them = (predict_links(rows, settings=LINKS, comm=c) for c in (MPI.COMM_SELF, MPI.COMM_WORLD))
    assert one.digest == all_of_them.digest
    assert one.objects(0, 1) == all_of_them.objects(0, 1)


def test_what_differs_by_rank_is_refused():
    world = MPI.COMM_WORLD
    if world.size == 1:
        pytest.skip("of several ranks")
    labels = np.where(classes_of() < 0, -1, (classes_of() + world.rank) % 3)
    for name, rows, classes in (
        ("triples", rows_of(seed=1 + world.rank), classes_of()),
        ("labels", rows_of(), labels),
    ):
        with pytest.raises(GraphError, match=f"{name}.*: rank 1 was given other ones than rank 0"):
            classify_relational(rows, labels=classes, nodes=NODES, train=TRAIN, settings=FEW)
    names = [("a", "r", "b"), ("b", "r", "c"), ("c", "r", "d")][: 2 + (world.rank == 0)]
    with pytest.raises(GraphError, match="triples: rank 1 was given other ones than rank 0"):
        predict_links(names, settings=LINKS)


def test_features_that_differ_by_rank_end_all_ranks():
    world = MPI.COMM_WORLD
    if world.size == 1:
        pytest.skip("of several ranks")
    last = world.rank == world.size - 1
    wrong = np.full((NODES, 3), np.nan if last else 1.0)
    for features, said in (
        (np.ones((NODES, 3 + last)), "features: rank .* has 4 columns, rank 0 has 3 columns"),
        (None if last else np.ones((NODES, 3)), "features: rank .* has none, rank 0 has 3 columns"),
        (wrong, "features: found nan in row 0"),
        (sp.csr_array(wrong), "features: found nan"),
    ):
        with pytest.raises(GraphError, match=said):
            classify_relational(rows_of(), features, classes_of(), nodes=NODES, train=TRAIN, settings=FEW)


def test_lists_graphs_and_arrays_are_one_graph():
    """Whole numbers in a list, names in an array, edges with an attribute."""
    rows, y = rows_of(), classes_of()
    options = {"train": TRAIN, "settings": FEW}
    wanted = classify_relational(rows, labels=y, nodes=NODES, **options)
    listed = classify_relational([tuple(row) for row in rows.tolist()], labels=y, nodes=NODES, **options)
    assert listed.digest == wanted.digest
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(range(NODES))
    # The first edge of each relation in ascending order: relations are numbered as they occur.
    order = rows[np.argsort(rows[:, 1], kind="stable")]
    order = order[np.argsort(order[:, 0], kind="stable")]
    seen = list(dict.fromkeys(order[:, 1].tolist()))
    for s, r, o in order.tolist():
        graph.add_edge(s, o, kind=f"r{seen.index(r)}")
    renamed = np.stack([order[:, 0], [seen.index(r) for r in order[:, 1].tolist()], order[:, 2]], axis=1)
    ours = classify_relational(graph, labels=y, relation="kind", **options)
    numbered = list(dict.fromkeys(k for _, _, k in graph.edges(data="kind")))
    assert numbered == [f"r{i}" for i in range(RELATIONS)]
    assert ours.digest == classify_relational(renamed, labels=y, nodes=NODES, **options).digest
    names = np.array([(f"n{s}", f"r{r}", f"n{o}") for s, r, o in rows.tolist()])
    links = predict_links(names, settings=LINKS)
    assert links.digest == predict_links([tuple(row) for row in names.tolist()], settings=LINKS).digest
    assert all(node in names for triple in links.held_out for node in triple)


def test_tables_are_lists_of_their_rows():
    """Of names, of numbers, and with val and test; columns count by their places."""
    rows, options = rows_of(), {"labels": classes_of(), "nodes": NODES, "train": TRAIN, "settings": FEW}
    table = Frame(**dict(zip("sro", rows.T)))
    assert classify_relational(table, **options).digest == classify_relational(rows, **options).digest
    names = [(f"n{s}", f"r{r}", f"n{o}") for s, r, o in rows.tolist()]
    parts = [names[:-20], names[-20:-10], names[-10:]]
    frames = [Frame(**dict(zip("abc", zip(*part)))) for part in parts]
    ours, theirs = (
        predict_links(given, val=val, test=test, settings=LINKS) for given, val, test in (frames, parts)
    )
    assert (ours.digest, ours.held_out) == (theirs.digest, theirs.held_out)
    four = {**dict(zip("abc", zip(*names))), "d": [0] * len(names)}
    for wrong, said in (
        (Frame(**four), r"found a table of 4 columns \(a, b, c, d\); three, \(subject, relation"),
        (Frame(a=["x", "y"], b=["r", "r"], c=[1.0, np.nan]), "found .*nan.* in row 1; three names"),
    ):
        with pytest.raises(GraphError, match=said):
            classify_relational(wrong, labels={"x": 1}, train=["x"])


def test_nodes_without_a_class_are_asked():
    """The test may have nodes of unknown class, which change neither weights nor scores."""
    rows, y = rows_of(), classes_of()
    settings = {**FEW, "rgcn.prune": False}
    some = classify_relational(rows, labels=y, nodes=NODES, train=TRAIN, test=TEST, settings=settings)
    every = [*TEST, *range(40, NODES)]
    more = classify_relational(rows, labels=y, nodes=NODES, train=TRAIN, test=every, settings=settings)
    assert some.scores["test"] == more.scores["test"] and more.scores["test"].nodes == len(TEST)
    assert set(range(40, NODES)) == set(more.nodes) - set(some.nodes)
    at = [more.nodes.index(node) for node in some.nodes]
    assert np.array_equal(more.predicted[at], some.predicted)
    assert some.records == more.records
    # Classes keep the caller's numbers.
    far = classify_relational(
        rows, labels=np.where(y < 0, -1, 10 * y + 7), nodes=NODES, train=TRAIN, test=TEST, settings=settings
    )
    assert far.digest == some.digest and np.array_equal(far.predicted, 10 * some.predicted + 7)


def test_sparse_features_are_dense_ones():
    X = np.round(np.random.default_rng(4).random((NODES, 3)), 1).astype(np.float32)
    options = {"labels": classes_of(), "nodes": NODES, "train": TRAIN, "settings": FEW}
    dense, sparse = (classify_relational(rows_of(), each, **options) for each in (X, sp.csr_array(X)))
    assert dense.digest == sparse.digest
    assert dense.model.features == 3
    with pytest.raises(GraphError, match=r"features: found 49 rows; 50, one for each node"):
        classify_relational(rows_of(), X[:49], **options)


@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize("scorer", ["complex", "distmult", "rotate", "transe"])
def test_the_best_ends_are_those_of_the_largest_scores(scorer, loops):
    rows, settings = rows_of(), {**LINKS, "rgcn.loops": loops}
    found = predict_links(rows, scorer=scorer, settings=settings)
    assert found.scorer == scorer
    assert found.digest == predict_links(rows, settings={**settings, "rgcn.scorer": scorer}).digest
    E, D = found.node_rows.astype(float), found.relation_rows[2].astype(float)
    loop = D[-1] if loops else 0.0
    D = D[: E.shape[1]]
    if scorer in ("complex", "rotate"):
        E, D = (each[..., :3] + 1j * each[..., 3:] for each in (E, D))
    if scorer == "rotate":
        score, back = (-(abs(a * D / abs(D) - b) ** 2).sum(axis=1) for a, b in ((E[5], E), (E, E[5])))
    elif scorer == "transe":
        score, back = (-((a + D - b) ** 2).sum(axis=1) for a, b in ((E[5], E), (E, E[5])))
    else:
        score, back = ((a * D * b.conj()).real.sum(axis=1) for a, b in ((E[5], E), (E, E[5])))
    assert (loop != 0) == loops
    score[5], back[5] = score[5] + loop, back[5] + loop
    known = set(rows[(rows[:, 0] == 5) & (rows[:, 1] == 2), 2].tolist())
    wanted = [node for node in np.argsort(-score).tolist() if node not in known]
    assert known and [node for node, _ in found.objects(5, 2, 8)] == wanted[:8]
    assert len(found.objects(5, 2, 1000)) == len(score) - len(known)
    known = set(rows[(rows[:, 2] == 5) & (rows[:, 1] == 2), 0].tolist())
    assert [v for v, _ in found.subjects(5, 2, 8)] == [
        v for v in np.argsort(-back).tolist() if v not in known
    ][:8]
    with pytest.raises(GraphError, match="found 'x'; a node of the graph would be right"):
        found.objects("x", 2)
    with pytest.raises(GraphError, match="found 9; a relation of the graph would be right"):
        found.subjects(5, 9)
    with pytest.raises(GraphError, match='count: found "2"; a whole number would be right'):
        found.subjects(5, 2, "2")


def test_a_scorer_is_named_once_and_known():
    rows = rows_of()
    for options, said in (
        ({"scorer": "transh"}, 'rgcn.scorer: .*"transe".*transh'),
        ({"scorer": 3}, "rgcn.scorer: "),
        (
            {"scorer": "transe", "settings": {"rgcn.scorer": "rotate"}},
            "scorer: given here and in the settings",
        ),
        (
            {"scorer": "transe", "settings": {"rgcn": {"scorer": "rotate"}}},
            "scorer: given here and in the se",
        ),
        ({"scorer": "transe", "weights": "weights.npz"}, "scorer: the weights bring theirs; leave it out"),
    ):
        with pytest.raises(CaseError, match=said):
            predict_links(rows, **options)


def test_links_by_candidates_and_distances_are_saved_and_go_on(shared_path):
    """What is applied is what was learned, and training goes on from it."""
    rows = rows_of()
    settings = {**LINKS, "rgcn.loss": "softmax", "rgcn.candidates": 9, "rgcn.scorer": "rotate"}
    found = predict_links(rows, settings=settings)
    save_once(found, str(shared_path / "weights.npz"))
    others = {key: value for key, value in settings.items() if key not in ("rgcn.scorer", "rgcn.epochs")}
    applied = predict_links(rows, weights=str(shared_path / "weights.npz"), settings=others)
    assert applied.digest == found.digest and applied.scorer == "rotate"
    assert np.array_equal(applied.ranks, found.ranks)
    further = predict_links(rows, weights=found, settings={**others, "rgcn.epochs": 2})
    assert further.digest != found.digest and further.scorer == "rotate"
    whole = predict_links(rows, settings={**settings, "rgcn.candidates": NODES})
    every = predict_links(rows, settings={**settings, "rgcn.candidates": 0})
    assert whole.digest == every.digest != found.digest


GOOD = [("a", "r", "b"), ("b", "r", "c")]


@pytest.mark.parametrize(
    ("triples", "options", "said"),
    [
        (np.zeros((3, 2), int), {}, r"triples: found int64 of shape \(3, 2\); integers \[m, 3\]"),
        (np.zeros((3, 3)), {}, r"triples: found float64 of shape"),
        (np.array([[0, 0, 1], [0, -1, 1]]), {}, "triples: found relation -1 in row 1; 0.."),
        (np.array([[0, 0, 1], [7, 0, 1]]), {"nodes": 5}, "triples: found node 7 in row 1; 0..4 would be"),
        (np.array([[0, 0, 1]]), {"relations": 0}, "relations: found 0; a number from 1"),
        ([], {}, "triples: found 0; from 1"),
        ([("a", "r")], {}, r"triples: found .* in row 0; \(subject, relation, object\) would be right"),
        (["arb"], {}, r"triples: found .*arb.* in row 0"),
        ([("a", "r", ["b"])], {}, "in row 0; three names would be right"),
        ([(0, 0, 10**30)], {}, "triples: found a number beyond"),
        (7, {}, "triples: found <class 'int'>; an array"),
        (GOOD, {"nodes": 3}, "nodes: counts those of an array of numbers"),
        (nx.Graph([(0, 1)]), {}, "a MultiDiGraph, whose edges have directions"),
        (nx.MultiDiGraph([(0, 1)]), {}, "edge 0-1 has no attribute 'relation'; one for every edge"),
        (GOOD, {}, "labels: found none; classes of some nodes"),
        (GOOD, {"labels": {"a": 0}}, "train: no node to train with"),
        (GOOD, {"labels": {"a": 0}, "train": ["b"]}, "train: node 'b' has no label"),
        (GOOD, {"labels": {"a": 0}, "train": ["a"], "val": ["c"]}, "val: node 'c' has no label"),
        (GOOD, {"labels": {"a": 0}, "train": ["z"]}, "train: found 'z'; a node of the graph"),
        (GOOD, {"labels": {"a": [1], "b": 0}, "train": ["a"]}, "labels: found rows of different lengths"),
        (GOOD, {"labels": 3, "train": ["a"]}, r"labels: found int64 of shape \(\)"),
        (GOOD, {"labels": [0, 1, 1], "train": 3}, r"train: found int64 of shape \(\)"),
        (
            GOOD,
            {"labels": [0, 1, 1], "train": ["a"], "features": [[1], [1, 2]]},
            "features: found rows of dif",
        ),
        (nx.MultiDiGraph([(0, 1, {"relation": [1]})]), {}, "edge 0-1 has the relation .1.; a name would be"),
        (np.eye(3, dtype=int), {"labels": [0, 1], "train": [0], "test": [0]}, "node 0 is in train and test"),
        (GOOD, {"labels": {"z": 0}, "train": ["a"]}, "labels: found 'z'; a node of the graph"),
        (GOOD, {"labels": [0, 1], "train": ["a"]}, "labels: found 2 rows; 3, one for each node"),
        (GOOD, {"labels": np.eye(3), "train": ["a"]}, "labels: found several columns; one class"),
        (GOOD, {"labels": [0, 1, 1], "train": ["a", "b"], "test": ["b"]}, "node 'b' is in train and test"),
        (GOOD, {"labels": [0, 1, 1], "train": ["a"], "val": ["b"], "test": ["b"]}, "is in val and test"),
        ("no-such-file.nt", {}, "no such file"),
    ],
)
def test_what_is_no_knowledge_graph_or_label_is_refused_in_a_line(triples, options, said):
    with pytest.raises((GraphError, CaseError), match=said) as caught:
        classify_relational(triples, **options)
    assert "\n" not in str(caught.value)


def test_settings_of_another_task_are_refused():
    for settings, said in (
        ({"gnn.model": "gcn"}, 'settings: gnn.model: must be "rgcn", got "gcn"'),
        ({"rgcn.goal": "links"}, 'settings: rgcn.goal: must be "classes"'),
        ({"rgcn.epoch": 3}, "rgcn.epochs"),
    ):
        with pytest.raises(CaseError, match=said):
            classify_relational(GOOD, labels=[0, 1, 1], train=["a"], settings=settings)


def test_results_print_draw_and_show_themselves():
    pytest.importorskip("matplotlib")
    found = classify_relational(
        rows_of(), labels=classes_of(), nodes=NODES, train=TRAIN, val=VAL, settings=FEW
    )
    pattern = r"RelationalClassification\(40 nodes, 4 epochs; train [\d.]+ %, val [\d.]+ %, test [\d.]+ %\)"
    assert re.fullmatch(pattern, repr(found))
    links = predict_links(rows_of(), settings={**LINKS, "rgcn.validation": 0.1, "rgcn.evaluate_every": 1})
    assert re.fullmatch(r"LinkPrediction\(\d+ held-out triples, 3 epochs; MRR: learned 0\..*\)", repr(links))
    assert "most_frequent" in links._repr_html_()
    for result in (found, links):
        text = re.sub("<style>.*?</style>", "", result._repr_html_(), flags=re.DOTALL)
        ElementTree.fromstring(text)
        assert len(result.plot().axes) == 2


@pytest.mark.mpi_skip
def test_saved_weights_call_classes_as_the_caller_does(tmp_path):
    """Classes 0, 1, 2 learned, of which labels hold two later: numbers stay numbers."""
    features = np.random.default_rng(3).normal(size=(NODES, 4)).astype(np.float32)
    given = {"nodes": NODES, "train": TRAIN}
    first = classify_relational(rows_of(), features, classes_of(), settings=FEW, **given)
    assert first.model.class_names == ["0", "1", "2"]
    first.save(str(tmp_path / "weights.npz"))
    apply = FEW | {"rgcn.weights": str(tmp_path / "weights.npz"), "rgcn.epochs": 0}
    two = np.where(classes_of() == 2, -1, classes_of())
    train = [v for v in TRAIN if two[v] >= 0]
    later = classify_relational(rows_of(), features, two, nodes=NODES, train=train, test=VAL, settings=apply)
    assert later.predicted.dtype.kind in "iu"
    same = dict(zip(first.nodes, first.predicted.tolist()))
    assert all(same[v] == c for v, c in zip(later.nodes, later.predicted.tolist()) if v in same)
    assert set(later.predicted.tolist()) <= {0, 1, 2}


# ---- trained weights --------------------------------------------------------------------------------------

TOLD = {"a": [1, 0], "b": [0, 1], "c": [1, 1], "d": [0, 0]}
KINDS = {"a": "x", "b": "y, z", "c": "w"}
SMALL = {"rgcn.epochs": 20, "rgcn.bases": 2, "seed": 3, "run.device": "cpu"}
ROWS = [("a", "r", "b"), ("b", "r", "c"), ("c", "s", "a"), ("d", "s", "a"), ("d", "r", "b")]
OTHERS = [("p", "r", "q"), ("q", "s", "p"), ("q", "new", "q")]


def save_once(told, path):
    """Rank 0 writes the file that all read."""
    if MPI.COMM_WORLD.rank == 0:
        told.save(path)
    MPI.COMM_WORLD.barrier()


def learned(features=True):
    X = np.array([*TOLD.values()], dtype=float) if features else None
    return classify_relational(ROWS, X, KINDS, train=[*KINDS], settings=SMALL)


@pytest.mark.filterwarnings("ignore:1 triples are left out")
def test_weights_are_applied_where_no_class_is_known(shared_path):
    """To all nodes, or those of the test; from memory and from a file; the same on any number of ranks."""
    told, path = learned(), str(shared_path / "w.npz")
    save_once(told, path)
    more = {"settings": {"output.probabilities": True, "run.device": "cpu"}}
    found = [classify_relational(OTHERS, np.eye(2), weights=each, **more) for each in (told, path)]
    assert [each.nodes for each in found] == [["p", "q"]] * 2 and found[0].digest == found[1].digest
    assert found[0].classes.tolist() == ["w", "x", "y, z"] and found[0].epochs == 0
    W = {name: array.astype(float) for name, array in told.model.arrays.items()}
    Z = forward(W, [(0, 0, 1), (1, 1, 0)], np.eye(2), 2)
    likely = np.exp(Z) / np.exp(Z).sum(axis=1, keepdims=True)
    assert np.allclose(found[0].probabilities, likely, atol=1e-6)
    assert found[0].predicted.tolist() == [found[0].classes[c] for c in Z.argmax(axis=1)]
    one = classify_relational(OTHERS, np.eye(2), test=["q"], weights=told)
    assert one.nodes == ["q"] and one.predicted[0] == found[0].predicted[1] and one.scores["test"].nodes == 0
    known = classify_relational(OTHERS, np.eye(2), {"p": "x"}, weights=told)
    assert known.nodes == ["p"] and known.scores["test"].nodes == 1
    assert MPI.COMM_WORLD.allgather(found[0].digest) == [found[0].digest] * MPI.COMM_WORLD.size


def forward(W, edges, X, n):
    """Scores [n, classes] by the formula of the paper, in 64 bits; edges (subject, relation, object)."""
    relations = len(W["first/a"]) // 2
    both = [(o, r, s) for s, r, o in edges] + [(s, relations + r, o) for s, r, o in edges]
    for layer in ("first", "layer1"):
        f = X.shape[1]
        Z = X @ W[f"{layer}/self"]
        for i in range(n):
            for r in range(2 * relations):
                near = [s for t, rel, s in both if (t, rel) == (i, r)]
                if near:
                    V = (W[f"{layer}/a"][r] @ W[f"{layer}/V"]).reshape(f, -1)
                    Z[i] += X[near].mean(axis=0) @ V
        X = np.maximum(Z, 0)
    return Z


def test_weights_of_numbered_classes_are_applied():
    triples, y = np.array([[0, 0, 1], [1, 0, 2]]), np.array([0, 7, -1])
    told = classify_relational(triples, np.eye(3), y, train=[0, 1], settings=SMALL)
    found = classify_relational(triples, np.eye(3), weights=told)
    assert found.predicted[:2].tolist() == told.predicted.tolist() and found.nodes == [0, 1, 2]
    assert found.predicted.dtype.kind == "i"


def test_weights_without_features_are_applied_to_their_nodes():
    """Named by the test; without it the choice of nodes is another one, which is said."""
    told = learned(features=False)
    found = classify_relational(ROWS, test=told.nodes, weights=told)
    assert found.predicted.tolist() == told.predicted.tolist()
    with pytest.raises(GraphError, match="weights: has rows for the nodes of another graph, or of another"):
        classify_relational(ROWS, weights=told)


def test_weights_are_trained_further_where_epochs_are_named():
    told = learned()
    for settings in ({"rgcn.epochs": 2}, {"rgcn": {"epochs": 2}}):
        X = np.array([*TOLD.values()], dtype=float)
        found = classify_relational(ROWS, X, KINDS, train=[*KINDS], weights=told, settings=settings)
        assert found.epochs == 2 and found.records[0]["loss"] < learned().records[0]["loss"]
    links = predict_links(rows_of(), settings=LINKS)
    again = predict_links(rows_of(), weights=links, settings={**LINKS, "rgcn.epochs": 0})
    assert again.digest == links.digest and np.array_equal(again.ranks, links.ranks)


@pytest.mark.parametrize(
    "more, said",
    [
        ({"weights": 3}, "weights: found 3; the path of a weights.npz or what an earlier call returned"),
        ({"weights": "nowhere"}, 'rgcn.weights: no such file: "nowhere"'),
        ({"features": np.eye(2, 3)}, "weights: for nodes with 2 features; these have 3"),
        ({"labels": {"p": "v"}}, "weights: for classes 'w', 'x', 'y, z'; these have 'v' besides"),
        ({"settings": {"rgcn.epochs": 2}}, "labels: found none; classes of some nodes"),
        ({"test": []}, "test: no node whose class is asked; at least one"),
        ({"train": ["p"]}, "train: node 'p' has no label"),
    ],
)
def test_what_cannot_be_applied(more, said):
    given = {"features": np.eye(2), "weights": learned()} | more
    with pytest.raises((CaseError, GraphError), match=re.escape(said)):
        classify_relational(OTHERS, **given)


@pytest.mark.filterwarnings("ignore:1 triples are left out")
def test_rows_without_layers_are_of_their_nodes_and_relations():
    """Whatever triples there are: no edges tell whose rows they are, but names and counts do."""
    settings, numbers = {**LINKS, "rgcn.layers": 0, "rgcn.loops": True}, rows_of()
    rows = [(f"n{s}", f"r{r}", f"n{o}") for s, r, o in numbers.tolist()]
    named = predict_links(rows, settings=settings)
    again = predict_links([*rows, rows[0][:2] + rows[1][2:]], weights=named, settings={"seed": 5})
    assert again.digest == named.digest and again.held_out != named.held_out
    for other in (rows[::-1], [(s, r.replace("r1", "x"), o) for s, r, o in rows]):
        with pytest.raises(GraphError, match="has rows for the nodes of another graph"):
            predict_links(other, weights=named)
    numbered = predict_links(numbers, settings=settings, nodes=NODES, relations=RELATIONS)
    with pytest.raises(GraphError, match="for 4 relations; these triples have 5"):
        predict_links(numbers, weights=numbered, nodes=NODES, relations=RELATIONS + 1)


def test_weights_are_given_once(shared_path):
    told, path = learned(), str(shared_path / "w.npz")
    save_once(told, path)
    with pytest.raises(CaseError, match="weights: given here and in the settings; one of them"):
        classify_relational(OTHERS, np.eye(2), weights=told, settings={"rgcn.weights": path})
    links = predict_links(rows_of(), settings=LINKS)
    with pytest.raises(GraphError, match="of a network that predicts links; one for classes would be right"):
        classify_relational(rows_of(), weights=links)


@pytest.mark.parametrize("bases", [0, 2])
@pytest.mark.parametrize("inverse", [True, False])
def test_numbered_relations_are_those_of_the_weights(bases, inverse):
    """Triples need not have them all; more than were learned are refused."""
    triples, settings = np.array([[0, 0, 1], [1, 2, 0]]), SMALL | {"rgcn.bases": bases}
    settings |= {"rgcn.inverse": inverse}
    told = classify_relational(triples, np.eye(2), [0, 1], train=[0, 1], settings=settings)
    few = [classify_relational(triples[:1], np.eye(2), weights=told, relations=each) for each in (None, 3)]
    assert few[0].digest == few[1].digest
    with pytest.raises(GraphError, match="weights: for 3 relations; these triples have 5"):
        classify_relational(np.array([[0, 4, 1]]), np.eye(2), weights=told)


@pytest.mark.parametrize(
    "triples, said",
    [
        ([("a", None, "b")], "triples: found ('a', None, 'b') in row 0; three names would be right"),
        ([("a", "r", float("nan"))], "triples: found ('a', 'r', nan) in row 0; three names would be right"),
        ([(10**9, 0, 1)], "triples: found node 1000000000 among 1 rows; names, as texts, of which"),
        ([(1, 2 * 10**9, 1)], "triples: found relation 2000000000 among 1 rows; names, as texts, of which"),
    ],
)
def test_triples_with_holes_are_refused(triples, said):
    with pytest.raises(GraphError, match=re.escape(said)):
        classify_relational(triples, None, {1: 0}, train=[1], settings=SMALL)
