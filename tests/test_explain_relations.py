"""Explanations of relational networks: gradients, sums, planted causes, ranks, files."""

import sys

import numpy as np
import pytest
from conftest import WORLD
from jobs import run_job
from mpi4py import MPI
from test_explain import like_one, sums

from app import classify_relational, cli, explain, predict_links
from app.errors import CaseError
from app.gnn.explain import relational
from app.main import run

STEP, SHARE = 1e-6, 0.7


def people(count=120, seed=3):
    """Triples in which a person's class is that of the band that he or she likes; others say nothing of it.

    returns   triples by name, classes by person, and the band that each likes
    """
    draws, triples, classes, bands = np.random.default_rng(seed), [], {}, {}
    for i in range(count):
        person, kind = f"p{i}", i % 2
        bands[person] = f"{'rock' if kind else 'jazz'}{draws.integers(2)}"
        classes[person] = "rock" if kind else "jazz"
        triples.append((person, "likes", bands[person]))
        triples += [(person, "knows", f"p{other}") for other in draws.choice(count, 2) if other != i]
        triples.append((person, "lives in", f"town{draws.integers(5)}"))
    return triples, classes, bands


QUICK = {"rgcn.hidden": 8, "rgcn.epochs": 30, "rgcn.learning_rate": 0.03}
ASKED = ["p118", "p119"]
LINK = {"rgcn.hidden": 8, "rgcn.dimension": 6, "rgcn.epochs": 10, "rgcn.layers": 2, "rgcn.bases": 2}


@pytest.mark.parametrize(
    "settings", [{"rgcn.bases": 0}, {"rgcn.bases": 3}, {"rgcn.blocks": 2}], ids=["free", "bases", "blocks"]
)
def test_the_triple_that_tells_the_class_comes_first(settings):
    triples, classes, bands = people()
    asked = QUICK | settings | {"output.explain": ASKED}
    given = {"labels": classes, "test": ASKED, "train": [f"p{i}" for i in range(118)]}
    found = classify_relational(triples, settings=asked, comm=WORLD, **given)
    told = found.explanations
    assert found.scores["test"].accuracy == 1 and [each.node for each in told] == ASKED
    for each in told:
        sums(each, 1e-9)
        assert each.edges[0] == (each.node, "likes", bands[each.node]) and each.of_edges[0] > 0
        assert each.predicted == classes[each.node] and not each.features and len(each.neighbours)
        assert len(set(each.edges)) == len(each.edges) and set(each.edges) <= set(triples)
    assert told.fell["explained"] > max(told.fell["random"], 0)
    like_one(told, lambda _: classify_relational(triples, settings=asked, comm=MPI.COMM_SELF, **given))
    assert f"p118,edge,p118 likes {bands['p118']}," in told.text()
    again = classify_relational(
        triples, test=ASKED, labels=classes, train=given["train"], weights=found, comm=WORLD,
        settings={"output.explain": ASKED},
    )  # fmt: skip
    assert again.explanations.text() == told.text()
    with pytest.raises(CaseError, match=r"of a knowledge graph; settings=.* of classify_relational or"):
        explain(triples, ASKED, weights=found, comm=WORLD)
    some = classify_relational(triples, settings=asked | {"output.explain": 1}, comm=WORLD, **given)
    assert len(some.explanations) == 1 and some.explanations[0].node in ASKED


@pytest.mark.parametrize("scorer", ["distmult", "complex", "rotate", "transe"])
def test_scores_of_triples_add_up(scorer):
    triples, _, bands = people(30)
    wanted = [["p3", "likes", bands["p3"]], ["p4", "knows", "p4"]]
    asked = LINK | {"output.explain": wanted, "rgcn.loops": True}
    found = predict_links(triples, scorer=scorer, settings=asked, comm=WORLD)
    told = found.explanations
    assert told.what == "triple" and [each.node for each in told] == [tuple(each) for each in wanted]
    (best,) = found.objects("p3", "likes", 1)
    for each in told:
        sums(each, 1e-9)
        assert not told.changed and each.predicted == "score"
    like_one(told, lambda _: predict_links(triples, scorer=scorer, settings=asked, comm=MPI.COMM_SELF))
    s, o = best[0], found.objects("p3", "likes", 1)[0][1]
    one = predict_links(
        triples, weights=found, settings={"output.explain": [["p3", "likes", s]]}, comm=WORLD
    ).explanations[0]
    assert abs(one.score - o) < 1e-4 * (1 + abs(o))
    worst = predict_links(
        triples, scorer=scorer, settings=asked | {"output.explain": 2}, comm=WORLD
    ).explanations
    sums_of = found.ranks.sum(axis=1)
    ranks = dict(zip(found.held_out, sums_of.tolist()))
    assert [ranks[each.node] for each in worst] == sorted(sums_of.tolist(), reverse=True)[:2]


@pytest.mark.mpi_skip
@pytest.mark.parametrize(
    "kind", ["free", "bases", "blocks", "features", "distmult", "complex", "rotate", "transe"]
)
def test_gradients_are_differences(kind, monkeypatch):
    triples, classes, bands = people(20)
    checked, given = [], relational.attribute

    def check(networks, *rest):
        (network,), draws = networks, np.random.default_rng(1)
        network.choose(network.scores())
        e, X = len(network.field.weights), network.field.X.astype(np.float64)
        mask = draws.uniform(0.3, 0.9, e)
        by_edges, by_features = network.gradients(mask, SHARE)
        top = np.abs(by_edges).max()
        for at in np.argsort(-np.abs(by_edges))[:6]:
            change = np.where(np.arange(e) == at, STEP, 0)
            both = network.score(mask + change, SHARE) - network.score(mask - change, SHARE)
            assert abs(both / (2 * STEP) - by_edges[at]) < 1e-6 * top
        both = network.score(mask, SHARE + STEP) - network.score(mask, SHARE - STEP)
        change = (by_features * X).sum()
        assert abs(both / (2 * STEP) - change) < 1e-6 * (1 + np.abs(by_features).max())
        checked.append(kind)
        return given(networks, *rest)

    monkeypatch.setattr(relational, "attribute", check)
    if kind in ("free", "bases", "blocks", "features"):
        own = {"free": {"rgcn.bases": 0}, "blocks": {"rgcn.blocks": 2}}.get(kind, {"rgcn.bases": 2})
        names = list(dict.fromkeys(name for s, _, o in triples for name in (s, o)))
        X = np.random.default_rng(2).normal(size=(len(names), 5)) if kind == "features" else None
        asked = QUICK | {"rgcn.epochs": 5, "rgcn.layers": 3, "output.explain": ["p3"]} | own
        sets = {"test": ["p3"], "train": [f"p{i}" for i in range(4, 20)]}
        found = classify_relational(triples, X, classes, settings=asked, comm=MPI.COMM_SELF, **sets)
        (each,) = found.explanations
        assert sorted(each.features) == ([0, 1, 2, 3, 4] if kind == "features" else [])
        sums(each, 1e-9)
    else:
        asked = LINK | {"output.explain": [["p3", "likes", bands["p3"]]]}
        predict_links(triples, scorer=kind, settings=asked, comm=MPI.COMM_SELF)
    assert checked == [kind]


def test_what_is_not_explained_of_knowledge_graphs_is_refused(monkeypatch):
    triples, classes, _ = people(20)

    def explained(asked, **more):
        settings = QUICK | {"rgcn.epochs": 1, "output.explain": asked, **more}
        sets = {"test": ["p3"], "train": ["p1", "p2", "p4"]}
        return classify_relational(triples, labels=classes, settings=settings, comm=WORLD, **sets)

    with pytest.raises(CaseError, match=r'output\.explain: "p77" is no node of the knowledge graph'):
        explained(["p77"])
    with pytest.raises(CaseError, match=r'output\.explain: "town1" is in no set; one of a set'):
        explained(["town1"])
    for asked, said in (
        ([["p1", "hates", "p2"]], '"hates" is no relation of the knowledge graph'),
        (["p1"], 'found "p1"; a subject, a relation and an object'),
    ):
        with pytest.raises(CaseError, match=rf"output\.explain: {said}"):
            predict_links(triples, settings=LINK | {"output.explain": asked}, comm=WORLD)
    with pytest.raises(CaseError, match=r"output\.explain: without a network \(rgcn\.layers = 0\)"):
        predict_links(triples, settings={"rgcn.layers": 0, "output.explain": 2}, comm=WORLD)
    with pytest.raises(CaseError, match=r"output\.explain: the weights, which every rank needs whole, take"):
        explained(["p1"], **{"memory.whole_graph_mb": 1e-4})
    monkeypatch.setattr(relational.Weights, "cost", lambda *sizes: 10**10)
    with pytest.warns(UserWarning, match=r"output\.explain: node p1 left out: .* takes 1e\+04 MB"):
        found = explained(["p1"])
    assert not len(found.explanations) and found.explanations.left_out == (("p1", 1e4),)


@pytest.mark.mpi_skip
def test_runs_write_what_made_scores_of_triples(tmp_path):
    command = [sys.executable, "run.py", "inputs/rgcn.toml", "output.plots=false", "rgcn.epochs=2"]
    code, said = run_job([*command, "output.explain=2", "--out", tmp_path / "classes"])
    assert code == 0, said
    lines = next((tmp_path / "classes" / "explanations").iterdir()).read_text().splitlines()
    assert lines[0] == "node,kind,what,contribution"
    assert len(lines[5].split(",")[2].split()) == 3


@pytest.mark.mpi_skip
@pytest.mark.parametrize(
    ("case", "said"),
    [
        (["inputs/rgcn.toml"], "explanations of 3 predictions, each by 83 to 2003 passes"),
        (
            ["inputs/edges.toml", "graph.nodes=300"],
            "explanations of 3 predictions, each by 83 to 2003 passes",
        ),
        (["inputs/gcn.toml", "gnn.members=4"], "passes over what it depends on, by each of 4 networks"),
    ],
)
def test_dry_runs_say_what_explaining_takes(case, said, capsys):
    path, *more = case
    assert run(cli.parse([path, "--dry-run", "output.explain=3", *more])) == 0
    assert said in " ".join(capsys.readouterr().out.split())
