"""Influence maximisation: spreads against all live graphs, kernels against twins, bounds over many seeds."""

import itertools
import json
import math
import sys
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from helpers import instance_of, keys_of_replay
from jobs import ROOT, run_job
from mpi4py import MPI
from scipy.stats import binom

from app import check, solve
from app.bounds.influence.concentration import at_least, at_most
from app.errors import CaseError, GraphError
from app.graphs.diffusion import CASCADE, CONSTANT, ODDS, ONE, THRESHOLD, WEIGHTS, Spreading, diffusion_of
from app.graphs.formats.readers import open_edges
from app.graphs.graph import from_edges
from app.graphs.whole import whole_graph
from app.problems.table import make_problem
from app.proofs.archive import from_bytes, to_bytes
from app.search.influence.baselines import (
    INFLUENCE_BASELINES,
    degree_discount,
    high_degree,
    pagerank,
    single_discount,
)
from app.search.influence.collection import CollectionTools, alike
from app.search.influence.rounds import Rounds
from app.search.influence.sampling import Sampler, available
from app.solver.sampled import SampledPipeline
from app.tasks.context import context_of_settings

alone = pytest.mark.mpi_skip
QUICK = {
    "search.steps": 200,
    "search.bound_seconds": 0.3,
    "influence.sets": 4096,
    "influence.simulations": 400,
}


def arcs(seed, n=6, m=9, most=0.9):
    """A small directed graph with probabilities as weights; those into a node add up to one at most."""
    draws, graph = np.random.default_rng(seed), nx.DiGraph()
    graph.add_nodes_from(range(n))
    pairs = list(itertools.permutations(range(n), 2))
    for i in draws.permutation(len(pairs))[:m].tolist():
        graph.add_edge(*pairs[i], weight=float(draws.choice([0.25, 0.5, 1.0, most])))
    for v in graph:
        total = sum(w for *_, w in graph.in_edges(v, data="weight"))
        for u in graph.predecessors(v) if total > 1 else ():
            graph[u][v]["weight"] /= total
    return graph


def live_graphs(graph, threshold):
    """(probability, live arcs) of every graph that may come about."""
    if threshold:
        into = [[(w, (u, v)) for u, _, w in graph.in_edges(v, data="weight")] for v in graph]
        ways = [[*each, (1 - sum(w for w, _ in each), None)] for each in into]
        for way in itertools.product(*ways):
            yield math.prod(w for w, _ in way), [arc for _, arc in way if arc is not None]
        return
    for chosen in itertools.product([False, True], repeat=graph.number_of_edges()):
        sure = [w if c else 1 - w for c, (*_, w) in zip(chosen, graph.edges(data="weight"))]
        yield math.prod(sure), [(u, v) for c, (u, v) in zip(chosen, graph.edges) if c]


def reach(graph, threshold):
    """[n, n] for all live graphs together: [graphs] probabilities, [graphs, n, n] who reaches whom."""
    n, chances, reached = len(graph), [], []
    for chance, live in live_graphs(graph, threshold):
        if chance:
            A = np.eye(n, dtype=bool)
            for u, v in live:
                A[u, v] = True
            for _ in range(n):
                A = A @ A
            chances.append(chance)
            reached.append(A)
    return np.array(chances), np.array(reached)


def spread_of(chances, reached, seeds):
    return float(chances @ reached[:, list(seeds)].any(axis=1).sum(axis=1))


def largest(chances, reached, k):
    n = reached.shape[1]
    return max(spread_of(chances, reached, each) for each in itertools.combinations(range(n), k))


def diffusion(graph, model=CASCADE, how=WEIGHTS, p=0.1):
    """That of arcs in memory."""
    found = tools(graph, {"model": model, "probabilities": how, "probability": p}).diffusion
    assert found.threshold == (model == THRESHOLD)
    return found


def tools(graph, asked=(), budget=2.0, compiled=True, **given):
    from app.api.graph import loaded_graph

    context = context_of_settings({"problem.name": "influence"}, MPI.COMM_SELF, False)
    whole = loaded_graph(context, graph)[0].graph
    instance = instance_of(
        whole, compiled=compiled, budget=budget, spreading=Spreading(**dict(asked)), **given
    )
    return make_problem("influence").toolbox(instance)


# ---- what spreads are --------------------------------------------------------------------------------------


@alone
@pytest.mark.parametrize("model", [CASCADE, THRESHOLD])
@pytest.mark.parametrize("seed", range(3))
def test_both_samplers_estimate_the_expected_spread(model, seed):
    """Sets backward and cascades forward, of other code, against the sum over all live graphs."""
    graph, count = arcs(seed), 40_000
    chances, reached = reach(graph, model == THRESHOLD)
    assert chances.sum() == pytest.approx(1)
    sampler, n = Sampler(diffusion(graph, model)), len(graph)
    for seeds in ((0,), (1, 4), (2, 3, 5)):
        exact, wanted = spread_of(chances, reached, seeds), np.isin(np.arange(n), seeds)
        share = sampler.hits(17 + seed, 0, count, wanted) / count
        assert abs(n * share - exact) < 5 * n * math.sqrt(share * (1 - share) / count) + 1e-9
        active = sampler.worlds(5 + seed, 0, count, np.array(seeds))
        assert abs(active.mean() - exact) < 5 * active.std() / math.sqrt(count) + 1e-9


def star(degree):
    """Arcs from nodes 0, 1, ... into the last one."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(degree + 1))
    graph.add_edges_from((u, degree) for u in range(degree))
    return graph


@alone
def test_nodes_whose_arcs_are_alike_are_drawn_by_tables():
    """Stars into one node: how many of its arcs are live is binomial, and each of them as often."""
    for degree, p in ((4, 1.0), (7, 0.3), (40, 0.09), (300, 0.01), (12, 1e-6)):
        d = diffusion(star(degree), how=CONSTANT, p=p)
        assert (d.table >= 0).tolist() == [*[False] * degree, True]
        units = int(d.share[0])
        assert abs(units / ONE - p) <= 0.5 / ONE
        odds = d.odds.astype(float) / ODDS
        assert np.allclose(odds, binom.cdf(np.arange(len(odds)), degree, units / ONE), atol=1e-12)
    d = diffusion(star(8), how=CONSTANT, p=0.25)
    sizes, nodes = Sampler(d).sets(1, 0, 60_000)
    begins = nodes[np.append(0, np.cumsum(sizes)[:-1])]
    reached = np.bincount(nodes, minlength=9)[:8] - np.bincount(begins, minlength=9)[:8]
    at_hub = int((begins == 8).sum())
    assert np.abs(reached / at_hub - 0.25).max() < 5 * math.sqrt(0.25 * 0.75 / at_hub)


@alone
@pytest.mark.skipif(not available(), reason="no kernels")
@pytest.mark.parametrize("model", [CASCADE, THRESHOLD])
@pytest.mark.parametrize("how", ["in_degree", "weights", "constant", "trivalency"])
def test_kernels_and_twins_have_the_same_bits(model, how):
    graph = nx.gnp_random_graph(40, 0.15, seed=3, directed=True)
    for u, v in graph.edges:
        graph[u][v]["weight"] = (1 + (u * v) % 7) / 80
    d = diffusion(graph, model, how, 0.02)
    one, other = Sampler(d), Sampler(d, compiled=False)
    for first, count in ((0, 50), (1 << 40, 30), (7, 1), (3, 0)):
        for a, b in zip(one.sets(5, first, count), other.sets(5, first, count)):
            assert a.dtype == b.dtype and a.tolist() == b.tolist()
        assert one.sizes(5, first, count).tolist() == other.sizes(5, first, count).tolist()
        wanted = np.arange(40) % 9 == 2
        assert one.hits(8, first, count, wanted) == other.hits(8, first, count, wanted)
        seeds = np.flatnonzero(wanted)
        assert one.worlds(8, first, count, seeds).tolist() == other.worlds(8, first, count, seeds).tolist()


@alone
@pytest.mark.skipif(not available(), reason="no kernels")
def test_sets_that_do_not_fit_a_buffer_are_made_again(monkeypatch):
    d = diffusion(nx.gnp_random_graph(60, 0.2, seed=1), how=CONSTANT, p=0.3)
    wanted = Sampler(d).sets(3, 0, 200)
    monkeypatch.setattr("app.search.influence.sampling.ROOM", 1)
    found = Sampler(d).sets(3, 0, 200)
    assert [each.tolist() for each in found] == [each.tolist() for each in wanted]
    parts = [Sampler(d).sets(3, first, 50)[1] for first in range(0, 200, 50)]
    assert np.concatenate(parts).tolist() == wanted[1].tolist()


@alone
def test_rows_that_are_alike_become_one():
    draws = np.random.default_rng(1)
    rows = [np.flatnonzero(draws.random(5) < 0.4).tolist() for _ in range(300)]
    ptr = np.append(0, np.cumsum([len(each) for each in rows]))
    kept, times = alike(ptr, np.array([v for each in rows for v in each], dtype=np.int32))
    assert {tuple(rows[i]): int(t) for i, t in zip(kept, times)} == {
        key: sum(tuple(each) == key for each in rows) for key in {tuple(each) for each in rows} - {()}
    }


@alone
def test_rows_that_only_look_alike_stay_apart(monkeypatch):
    monkeypatch.setattr("app.search.influence.collection._mixed", lambda x: x * np.uint64(0))
    kept, times = alike(np.array([0, 2, 4, 6, 7]), np.array([0, 1, 0, 2, 0, 1, 3], dtype=np.int32))
    assert kept.tolist() == [0, 1, 3] and times.tolist() == [2, 1, 1]


# ---- answers and bounds ------------------------------------------------------------------------------------


@alone
@pytest.mark.parametrize("model", [CASCADE, THRESHOLD])
def test_bounds_hold_as_often_as_they_say(model):
    """Over many seeds of one graph: the largest spread, and that of the seeds chosen, against both bounds."""
    graph, delta, count = arcs(5, n=7, m=10), 0.2, 120
    chances, reached = reach(graph, model == THRESHOLD)
    best, missed, gaps = largest(chances, reached, 2), 0, []
    asked = {"model": model, "probabilities": WEIGHTS, "delta": delta, "sets": 2048, "simulations": 2}
    for seed in range(count):
        question = tools(graph, asked | {"seed": seed})
        rounds = Rounds(question)
        made = rounds.make(0)
        own = spread_of(chances, reached, np.flatnonzero(made.seeds))
        missed += made.upper < best or made.lower > own + 1e-9
        gaps.append(made.gap)
        assert made.lower <= made.upper
    assert missed <= delta * count
    assert 0 < np.median(gaps) < 0.4


@alone
def test_bounds_tell_as_much_as_binomials_let_them():
    """Against exact tails: a share as low (high) as seen has about the probability delta at the bounds."""
    for hits in (0, 3, 50, 900):
        low, high = at_least(hits, 1000, 1000, 0.05), at_most(hits, 1000, 1000, 0.05)
        assert low <= hits <= high <= 1000
        if hits:
            assert binom.sf(hits - 1, 1000, low / 1000) <= 0.05
        assert high == 1000 or binom.cdf(hits, 1000, high / 1000) <= 0.05


@alone
@pytest.mark.parametrize("model", [CASCADE, THRESHOLD])
@pytest.mark.parametrize("seed", range(3))
def test_seeds_are_nearly_the_best(model, seed):
    graph = arcs(seed + 20, n=7, m=10)
    chances, reached = reach(graph, model == THRESHOLD)
    keys = QUICK | {"problem.budget": 2, "influence.model": model, "influence.probabilities": "weights"}
    found = solve(graph, "influence", settings=keys)
    best = largest(chances, reached, 2)
    assert spread_of(chances, reached, found.nodes) >= 0.97 * best
    assert found.bound >= best >= found.spread["at_least"]
    assert found.spread["confidence"] == 0.99 and found.gap > 0 and not found.optimal
    own = spread_of(chances, reached, found.nodes)
    assert abs(found.objective - own) < 6 * found.spread["standard_error"] + 1e-9
    assert all(found.objective >= value for value in found.baselines.values())


@alone
@pytest.mark.parametrize("seed", range(4))
def test_where_nothing_is_left_to_chance_the_best_seeds_are_proved(seed):
    graph = nx.gnp_random_graph(12, 0.12, seed=seed, directed=True)
    nx.set_edge_attributes(graph, 1.0, "weight")
    live = [(1.0, list(graph.edges))]
    reached = np.eye(12, dtype=bool)
    for u, v in live[0][1]:
        reached[u, v] = True
    for _ in range(12):
        reached = reached @ reached
    keys = QUICK | {"problem.budget": 2, "influence.probabilities": "weights", "output.certificates": True}
    found = solve(graph, "influence", search_seconds=3.0, settings=keys)
    best = max(int(reached[list(each)].any(axis=0).sum()) for each in itertools.combinations(range(12), 2))
    assert found.objective == found.bound == best and found.optimal and found.spread["confidence"] == 1
    assert found.spread["at_least"] == best and found.spread["standard_error"] == 0
    shown = check(graph, found, settings=keys)
    assert shown.objective == best and shown.bound >= best


@alone
def test_a_budget_for_all_nodes_takes_them():
    graph = nx.gnp_random_graph(15, 0.2, seed=1)
    found = solve(graph, "influence", settings=QUICK | {"problem.budget": 15})
    assert sorted(found.nodes) == list(range(15))
    assert found.objective == found.bound == 15 and found.optimal and found.spread["confidence"] == 1


@alone
def test_costs_and_fixed_nodes():
    graph, costs = arcs(3, n=8, m=14), [3, 1, 4, 1, 5, 2, 6, 0]
    chances, reached = reach(graph, False)
    keys = QUICK | {"problem.budget": 5, "influence.probabilities": "weights"}
    found = solve(graph, "influence", node_weights=costs, inside=[0], outside=[1], settings=keys)
    assert {0, 7} <= set(found.nodes) and 1 not in found.nodes
    assert sum(costs[v] for v in found.nodes) <= 5
    allowed = [
        each
        for k in range(1, 9)
        for each in itertools.combinations(range(8), k)
        if 0 in each and 1 not in each and sum(costs[v] for v in each) <= 5
    ]
    best = max(spread_of(chances, reached, each) for each in allowed)
    assert found.bound >= best and spread_of(chances, reached, found.nodes) >= 0.95 * best
    with pytest.raises(CaseError, match=r"inside costs 9, more than problem\.budget = 5"):
        solve(graph, "influence", node_weights=costs, inside=[0, 6], settings=keys)


@alone
def test_prices_bound_a_collection_and_greedy_ones_are_no_worse_at_the_end():
    graph = nx.barabasi_albert_graph(300, 2, seed=1)
    question = tools(graph, {"sets": 2048}, budget=5)
    sizes, nodes = question.sampler.sets(3, 0, 2048)
    collection = CollectionTools(question, 0, sizes, nodes)
    chosen = collection.start()
    value, ptr = collection.value(collection.lift(chosen)), np.append(0, np.cumsum(sizes))
    seeds = collection.lift(chosen)
    assert value == sum(seeds[nodes[a:b]].any() for a, b in itertools.pairwise(ptr))
    first, bounds = collection.greedy_bound(), collection.bounds()
    bounds.improve(0.0, 0)
    assert value <= bounds.value <= first
    bounds.improve(0.5, 0)
    assert value <= bounds.value < first
    assert collection.prove(bounds.proof()) == collection.value_of_core(bounds.value)


@alone
def test_discounts_see_what_is_chosen_already():
    """Two hubs that share their leaves, and a smaller one apart, which comes before the second of the two."""
    graph = nx.Graph()
    graph.add_nodes_from(range(12))
    graph.add_edges_from([(0, 1)] + [(hub, leaf) for hub in (0, 1) for leaf in (3, 4, 5, 6)])
    graph.add_edges_from((2, leaf) for leaf in (7, 8, 9, 10, 11))
    d = diffusion(graph, how=CONSTANT, p=0.4)
    assert high_degree(d)[:2].tolist() == [0, 1]
    assert degree_discount(d)[:2].tolist() == [0, 2]
    assert single_discount(d)[:2].tolist() == [0, 2]
    assert sorted(pagerank(d)[:3].tolist()) == [0, 1, 2]
    assert all(sorted(rule(d).tolist()) == list(range(12)) for rule, _ in INFLUENCE_BASELINES.values())


# ---- certificates, replays, ranks --------------------------------------------------------------------------


@alone
def test_a_certificate_draws_the_sets_again():
    graph = nx.barabasi_albert_graph(200, 3, seed=2)
    keys = QUICK | {"problem.budget": 6, "output.certificates": True}
    found = solve(graph, "influence", settings=keys)
    shown = check(graph, found, settings=keys)
    assert (shown.objective, shown.bound) == (found.objective, found.bound) and shown.bound_verified
    proof = from_bytes(found.certificate)
    assert proof.sets == found.spread["sets"]
    untrue = replace(proof, bound=replace(proof.bound, upper=1))
    assert check(graph, found, certificate=to_bytes(untrue), settings=keys).bound == shown.bound
    with pytest.raises(GraphError, match=r"is none of influence\.sets = 4096"):
        check(graph, found, certificate=to_bytes(replace(proof, number=3)), settings=keys)
    other = check(graph, found, settings=keys | {"seed": 7}, certificate=b"")
    assert other.bound > other.objective
    with pytest.raises(GraphError, match=r"(whole numbers|below 0 or above)"):
        check(graph, found, certificate=found.certificate, settings=keys | {"seed": 7})


@alone
def test_a_run_its_check_and_its_replay(tmp_path):
    out, case = str(tmp_path / "out"), "inputs/influence.toml"
    keys = [
        "graph.nodes=200", "output.certificates=true", "output.plots=false", "search.seconds=1",
        "search.steps=-1", "influence.simulations=500", "influence.sets=16384", "search.starts=1",
    ]  # fmt: skip
    code, said = run_job([sys.executable, "run.py", case, *keys, "--out", out], cwd=ROOT)
    assert code == 0, said
    assert "with probability 0.99" in said and "proved" not in said
    entry = json.loads((tmp_path / "out" / "result.json").read_text())["instances"][0]
    assert entry["sense"] == "maximise" and entry["spread"]["at_least"] < entry["bound"]
    assert "at_least,confidence,standard_error" in (tmp_path / "out" / "answers.csv").read_text()
    code, said = run_job([sys.executable, "run.py", case, *keys, "--check", out], cwd=ROOT)
    assert code == 0 and "proved" not in said and "drawn again, with probability 0.99" in said, said
    told = tmp_path / "out" / "result.json"
    result, text = json.loads(told.read_text()), told.read_text()
    result["instances"][0]["spread"]["at_least"] += 0.5
    told.write_text(json.dumps(result))
    code, said = run_job([sys.executable, "run.py", case, *keys, "--check", out], cwd=ROOT)
    assert code == 2 and "has a spread of at least" in said, said
    told.write_text(text)
    if entry["replay"]:
        assert {"influence.epsilon=0.0", "search.seconds=0"} <= set(entry["replay"])
        again = str(tmp_path / "again")
        keys = [each for each in keys if not each.startswith("influence.sets")] + entry["replay"]
        code, said = run_job([sys.executable, "run.py", case, *keys, "--out", again], cwd=ROOT)
        assert code == 0, said
        replayed = json.loads((tmp_path / "again" / "result.json").read_text())["instances"][0]
        assert (replayed["digest"], replayed["objective"]) == (entry["digest"], entry["objective"])


@alone
def test_a_replay_ends_with_the_same_collection():
    """Of fewer rounds each has more of delta, so that epsilon would let an earlier one be the last."""
    graph = nx.barabasi_albert_graph(400, 3, seed=1)
    keys = {"influence.epsilon": 0.108, "influence.simulations": 100, "search.starts": 1}
    noise = [Rounds(tools(graph, {"sets": sets}, budget=10)).make(1).noise for sets in (1 << 22, 1 << 14)]
    assert noise[0] > 0.108 > noise[1]

    def answered(keys):
        context = context_of_settings({"problem.name": "influence", "seed": 0} | keys, MPI.COMM_SELF, False)
        pipeline = SampledPipeline(context.group, context.log, context.case)
        asked = context.case.influence
        question = tools(graph, {"epsilon": asked.epsilon, "sets": asked.sets}, budget=10)
        return pipeline.answer(question, "g"), pipeline.rounds.last.sets

    found, sets = answered(keys | {"search.seconds": 1.0})
    replayed, again_sets = answered(keys | keys_of_replay(found.replay) | {"search.bound_seconds": 0.1})
    assert again_sets == sets and (replayed.solution == found.solution).all()


@pytest.mark.parametrize("model", [CASCADE, THRESHOLD])
def test_seeds_are_the_same_on_any_ranks(model):
    graph = nx.gnp_random_graph(150, 0.03, seed=4, directed=True)
    keys = QUICK | {"problem.budget": 6, "influence.model": model, "influence.sets": 8192}
    single = solve(graph, "influence", settings=keys, comm=MPI.COMM_SELF)
    together = solve(graph, "influence", settings=keys, comm=MPI.COMM_WORLD)
    for name in ("nodes", "digest", "objective", "baselines", "source", "spread"):
        assert getattr(together, name) == getattr(single, name)


@alone
def test_twins_give_the_same_answer():
    graph = nx.gnp_random_graph(60, 0.06, seed=4, directed=True)
    keys = QUICK | {
        "problem.budget": 4,
        "influence.sets": 512,
        "influence.simulations": 50,
        "search.bounds": False,
    }
    found = [solve(graph, "influence", settings=keys | {"run.kernels": each}) for each in ("auto", "plain")]
    assert found[0].digest == found[1].digest and found[0].objective == found[1].objective
    assert found[0].spread == found[1].spread and found[0].bound is None


# ---- what is read, and what is refused ---------------------------------------------------------------------


@alone
def test_directions_of_edges(tmp_path):
    """An edge list leads one way unless told; undirected graphs lead both ways."""
    path = tmp_path / "g.txt"
    path.write_text("0 1\n0 2\n0 3\n4 0\n")
    keys = QUICK | {"problem.budget": 1, "influence.probabilities": "constant", "influence.probability": 1.0}
    found = solve(str(path), "influence", settings=keys)
    assert found.nodes == [4] and found.objective == 5 and found.optimal
    both = solve(str(path), "influence", settings=keys | {"influence.directed": False})
    assert both.objective == 5 and both.nodes != [4]
    star = solve(nx.path_graph(4), "influence", settings=keys)
    assert star.objective == 4 and star.optimal
    graph = whole_graph(open_edges(str(path)))[0]
    assert diffusion_of(graph, False, CONSTANT, 1.0, 0).arcs == 8


WRONG = {
    "a weight above one": ([(0, 1, 1.5), (1, 2, 0.5)], {"influence.probabilities": "weights"},
                           r"found the weight 1.5 of 0-1; .*would be right, from 0 to 1"),
    "no weights": ([(0, 1), (1, 2)], {"influence.probabilities": "weights"}, "of edges, or not of all"),
    "weights that add up": ([(0, 2, 0.7), (1, 2, 0.6)],
                            {"influence.probabilities": "weights", "influence.model": "linear_threshold"},
                            r"weights into 2 add up to 1\.3 .*at most 1, or"),
    "a probability that is not read": ([(0, 1)], {"influence.probability": 0.3},
                                       'is read with influence.probabilities = "constant"'),
    "a policy": ([(0, 1)], {"search.solver": "policy"}, "no policy answers it"),
    "no room": ([(u, v) for u in range(60) for v in range(60) if u != v],
                {"influence.probabilities": "constant", "influence.probability": 0.9,
                 "memory.whole_graph_mb": 0.5}, r"4096 reverse reachable sets take about \d+ MB on a rank"),
}  # fmt: skip


@alone
@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit(case):
    edges, keys, said = WRONG[case]
    with pytest.raises((CaseError, GraphError), match=said):
        solve(edges, "influence", settings=QUICK | {"problem.budget": 1} | keys)


@alone
def test_keys_of_other_problems_are_refused():
    with pytest.raises(CaseError, match=r'influence\.delta: only problem.name = "influence" has one'):
        solve([(0, 1)], "mvc", settings={"influence.delta": 0.1})
    with pytest.raises(CaseError, match=r"problem\.sets: only coverage has one"):
        solve([(0, 1)], "influence", settings={"problem.sets": "neighbourhoods"})
    with pytest.raises(GraphError, match="is needed, got <class 'dict'>"):
        solve({"A": ["x"]}, "influence")
    code, said = run_job([sys.executable, "run.py", "inputs/influence.toml", "run.task=train"], cwd=ROOT)
    assert code == 2 and "no policy answers influence" in said and "budget" not in said, said


@alone
def test_a_collection_ends_where_the_memory_does(capsys):
    graph = nx.gnp_random_graph(300, 0.03, seed=1)
    keys = QUICK | {"influence.sets": 1 << 20, "influence.epsilon": 0.0, "memory.whole_graph_mb": 3.0}
    keys |= {"influence.probabilities": "constant", "influence.probability": 0.05, "problem.budget": 3}
    found = solve(graph, "influence", settings=keys, verbose=True)
    said = " ".join(capsys.readouterr().out.split())
    assert "memory.whole_graph_mb = 6 would let in twice as many" in said
    assert found.spread["sets"] < 1 << 20


class Counting:
    """Sets that one rank makes; the largest number of them that sizes were asked of."""

    def __init__(self, question):
        self.sampler, self.most = question.sampler, 0

    def sizes(self, key, count):
        self.most = max(self.most, count)
        return self.sampler.sizes(key, 0, count)


@alone
def test_sets_that_do_not_fit_are_refused_before_all_are_drawn():
    """Of a cycle of certain arcs each node is reached from all: n sets of n nodes."""
    cycle = nx.cycle_graph(4000, create_using=nx.DiGraph)
    question = tools(cycle, {"probabilities": CONSTANT, "probability": 1.0}, most_bytes=10**7)
    assert question.certain
    counting = Counting(question)
    with pytest.raises(CaseError, match=r"4000 reverse reachable sets take about 1057 MB"):
        Rounds(question, counting).measure()
    assert counting.most <= 64


@alone
@pytest.mark.parametrize("count, budget", [(0, 3.0), (5, 0.5)])
def test_nothing_to_choose(count, budget):
    """A graph without nodes, and a budget that pays for none."""
    found = solve(nx.empty_graph(count, nx.DiGraph), "influence", settings=QUICK | {"problem.budget": budget})
    assert not found.nodes and found.objective == found.bound == found.gap == 0 and found.optimal


@alone
def test_a_solution_that_looks_as_good_as_the_bound_is_not_optimal():
    """Two cascades may have a mean at the bound, or above it: gaps are from what spreads are at least."""
    graph = nx.gnp_random_graph(30, 0.1, seed=1, directed=True)
    keys = QUICK | {"problem.budget": 3, "influence.simulations": 2, "output.certificates": True}
    above = 0
    for seed in range(4):
        found = solve(graph, "influence", settings=keys | {"seed": seed})
        shown = check(graph, found, settings=keys | {"seed": seed})
        above += found.objective >= found.bound
        assert found.gap < shown.gap < found.gap + 0.5 / found.bound + 1e-6
        assert check(graph, found, certificate=b"", settings=keys | {"seed": seed}).gap > 0.05
    assert above


@alone
def test_weights_of_thresholds_that_fill_a_node():
    """One over the degree, added up: the last arc's sum is one, or as near as 2^-32 lets it be."""
    e = np.array([(u, v) for v in range(3) for u in range(3, 3 + 7 * (v + 1))])
    graph = from_edges(24, e[:, 0], e[:, 1])
    d = diffusion_of(graph, True, "in_degree", 0.1, 0)
    ends = d.limit[d.in_ptr[1:] - 1].astype(np.int64)
    assert (ONE - ends).max() <= 24 and (ONE - ends).min() >= 0
    totals = np.zeros(24)
    np.add.at(totals, d.out, d.share)
    assert totals.astype(np.int64).tolist() == ends.tolist()


@alone
def test_probabilities_that_are_lost_by_merging(recwarn):
    keys = {"influence.probabilities": WEIGHTS, "problem.budget": 1}
    told = "of parallel edges the one of largest weight counts; one with the probability"
    there_and_back = nx.MultiDiGraph([(0, 1, {"weight": 0.7}), (1, 0, {"weight": 0.2})])
    solve(there_and_back, "influence", settings=keys)
    solve([(0, 1, 0.7), (1, 0, 0.2)], "influence", settings=keys)
    solve(np.array([[0, 0.7], [0.2, 0]]), "influence", settings=keys)
    twice = nx.MultiDiGraph([(0, 1, {"weight": 0.7}), (0, 1, {"weight": 0.2})])
    solve(twice, "influence", settings={"problem.budget": 1})  # by degrees
    assert not recwarn.list
    for graph in (twice, twice.to_undirected(), [(0, 1, 0.7), (0, 1, 0.2)]):
        with pytest.warns(UserWarning, match=told):
            solve(graph, "influence", settings=keys)
    with pytest.warns(UserWarning, match=told):
        solve([(0, 1, 0.7), (1, 0, 0.2)], "influence", settings=keys | {"influence.directed": False})
    with pytest.warns(UserWarning, match="not symmetric: of two entries of a pair the larger counts"):
        matrix = np.array([[0, 0.7], [0.2, 0]])
        solve(matrix, "influence", settings=keys | {"influence.directed": False})
