"""Communities: against all partitions of small graphs, without kernels, on any ranks; bounds and refusals."""

import json
import sys
from dataclasses import replace
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from data import data_dir, needs_data
from helpers import by_one, instance_of
from jobs import run_job
from mpi4py import MPI
from test_certificates import altered, refused_or_valid

from app import TrainingRun, check, solve
from app.bounds.certificate import BadCertificate
from app.bounds.communities.bounds import CommunityBounds
from app.bounds.communities.part import PartWork
from app.bounds.communities.stars import larger, triangles
from app.bounds.communities.witness import CommunityProof, belong_together, pair_worths
from app.bounds.pairs.program import PairProgram
from app.errors import CaseError, GraphError
from app.graphs.contracted import numbered, overlay
from app.graphs.graph import from_edges
from app.graphs.quality import FULL, quality_of
from app.problems.communities import Communities
from app.proofs import archive
from app.search.communities.baselines import by_moves, greedy, louvain
from app.search.communities.kernel import CommunityKernel, sure_pairs
from app.search.communities.moves import Mover
from app.search.communities.search import CommunitySearch
from app.search.communities.tools import CommunityTools

QUICK = {"search.steps": 3000, "search.bound_seconds": 5.0}
alone = pytest.mark.mpi_skip
NULLS = [("degrees", 1.0), ("degrees", 0.4), ("degrees", 2.5), ("sizes", 0.3), ("sizes", 1.25), ("none", 1.0)]


def whole(given):
    """A NetworkX graph as the solver holds it."""
    given = nx.convert_node_labels_to_integers(given)
    edges = np.array([(u, v) for u, v in given.edges], dtype=np.int64).reshape(-1, 2)
    weights = [data.get("weight") for *_, data in given.edges(data=True)]
    weights = None if not weights or None in weights else np.array(weights, dtype=np.float32)
    return from_edges(given.number_of_nodes(), *edges.T, weights)


def drawn(seed, null="degrees", most=8):
    """A random graph of up to so many nodes, some weighted; of negative weights too where `null` is none."""
    draws = np.random.default_rng(seed)
    graph = nx.gnp_random_graph(int(draws.integers(1, most + 1)), float(draws.random()), seed=seed)
    if seed % 3 or null == "none":
        low = 1 if null == "degrees" else -6
        for edge in graph.edges.values():
            edge["weight"] = int(draws.integers(low, 9)) / (1 if seed % 2 else 4)
    return graph


def partitions(n):
    """All partitions of n nodes, as labels numbered in the order of nodes."""

    def more(label, used):
        if len(label) == n:
            yield np.array(label, dtype=np.int64)
            return
        for each in range(used + 1):
            yield from more([*label, each], max(used, each + 1))

    return more([], 0)


def worth_of(graph, label, null, resolution):
    """What communities are worth, from the definitions, exactly."""
    gamma = Fraction(str(resolution))
    weight = {frozenset(edge): Fraction(data.get("weight", 1)) for *edge, data in graph.edges(data=True)}
    degree = {v: sum((w for edge, w in weight.items() if v in edge), Fraction(0)) for v in graph}
    total = sum(degree.values())
    worth = Fraction(0)
    for u in graph:
        for v in graph:
            if label[u] != label[v] or (u == v and null != "degrees"):
                continue
            w = weight.get(frozenset((u, v)), Fraction(0)) if u != v else Fraction(0)
            if null == "degrees":
                worth += (w - gamma * degree[u] * degree[v] / total) / total if total else 0
            else:
                worth += (w - (gamma if null == "sizes" else 0)) / 2
    return worth


def label_of(graph, answer):
    label = {node: k for k, nodes in enumerate(answer.nodes) for node in nodes}
    assert sum(map(len, answer.nodes)) == len(label) == graph.number_of_nodes()
    return label


def best_of(graph, null, resolution):
    return max(worth_of(graph, label, null, resolution) for label in partitions(graph.number_of_nodes()))


def settings(null, resolution):
    more = {} if null == "none" else {"problem.resolution": resolution}
    return QUICK | {"problem.null": null, **more}


# ---- answers ----------------------------------------------------------------------------------------------


@alone
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("null", "resolution"), NULLS)
def test_small_graphs_are_partitioned_as_well_as_can_be(seed, null, resolution):
    graph = drawn(seed, null, 6)
    answer = solve(graph, "communities", settings=settings(null, resolution))
    label = label_of(graph, answer)
    best = best_of(graph, null, resolution)
    assert worth_of(graph, label, null, resolution) == best
    assert answer.objective == pytest.approx(float(best), abs=1e-9)
    assert answer.optimal and answer.bound == answer.objective
    assert answer.bound_verified


@alone
@pytest.mark.parametrize(
    ("graph", "worth"),
    [
        (nx.karate_club_graph(), 0.4449036),
        (nx.Graph(nx.karate_club_graph().edges), 0.4197896),
        (nx.les_miserables_graph(), 0.5666880),
        (nx.disjoint_union(nx.complete_graph(4), nx.complete_graph(4)), 0.5),
        (nx.empty_graph(3), 0.0),
        (nx.empty_graph(1), 0.0),
        (nx.path_graph(2), 0.0),
    ],
)
def test_graphs_whose_best_modularity_is_known(graph, worth):
    answer = solve(graph, "communities", settings=QUICK)
    assert answer.objective == pytest.approx(worth, abs=1e-6)
    assert answer.optimal
    if graph.number_of_edges():
        assert nx.community.modularity(graph, answer.nodes) == pytest.approx(answer.objective, abs=1e-12)


@alone
def test_more_resolution_makes_smaller_communities():
    graph = nx.les_miserables_graph()
    keys = {"search.bounds": False}
    found = [solve(graph, "communities", settings=settings("degrees", x) | keys) for x in (0.3, 1.0, 3.0)]
    count = [len(each.nodes) for each in found]
    assert count[0] < count[1] < count[2]


@alone
def test_settings_of_reductions_and_kernels_leave_the_same_answers():
    graph, keys = nx.gnp_random_graph(60, 0.1, seed=3), QUICK | {"search.bound_seconds": 0.2}
    found = [
        solve(graph, "communities", settings=keys | more)
        for more in ({}, {"run.kernels": "plain"}, {"search.bounds": False}, {"search.reductions": False})
    ]
    assert found[0].digest == found[1].digest == found[2].digest
    assert found[0].objective == pytest.approx(found[3].objective, abs=0.01)
    for answer in found:
        assert nx.community.modularity(graph, answer.nodes) == pytest.approx(answer.objective, abs=1e-12)


@alone
def test_an_answer_is_never_worse_than_where_it_starts_nor_than_plain_heuristics():
    graph = nx.gnp_random_graph(80, 0.08, seed=5)
    keys = {"search.bounds": False}
    first = solve(graph, "communities", settings=keys | {"search.steps": 20_000})
    again = solve(graph, "communities", start=first, settings=keys | {"search.steps": 1})
    assert again.objective >= first.objective >= max(first.baselines.values())
    mapping = label_of(graph, first)
    assert solve(graph, "communities", start=mapping, settings=keys).objective >= first.objective
    assert set(first.baselines) == {"Louvain", "greedy merges"}


def test_ranks_agree_with_one_rank():
    graph = nx.planted_partition_graph(6, 12, 0.5, 0.05, seed=2)
    keys = {"search.steps": 5000, "search.starts": 3, "search.bounds": False}
    answer = solve(graph, "communities", settings=keys)
    alone = by_one(lambda: solve(graph, "communities", settings=keys, comm=MPI.COMM_SELF))
    assert answer.digest == alone.digest and answer.nodes == alone.nodes


@alone
def test_a_run_writes_communities_that_can_be_checked(tmp_path):
    case = ["inputs/communities.toml", 'graph.path="networkx:karate_club"', "search.steps=2000"]
    out = tmp_path / "run"
    more = ["output.certificates=true", "output.plots=false", f"--out={out}"]
    assert run_job([sys.executable, "run.py", *case, *more], 120)[0] == 0
    entry = json.loads((out / "result.json").read_text())["instances"][0]
    assert entry["optimal"] and entry["bound_verified"] and entry["sense"] == "maximise"
    lines = (out / "solution" / "karate_club.txt").read_text().split("\n")[:-1]
    label = dict(map(int, line.split()) for line in lines)
    classes = [{v for v in label if label[v] == k} for k in set(label.values())]
    found = nx.community.modularity(nx.karate_club_graph(), classes)
    assert found == pytest.approx(entry["objective"], abs=1e-12)
    code, told = run_job([sys.executable, "run.py", out / "case.toml", "--check", out], 120)
    assert code == 0 and "bounds of 1 are proved" in told


@alone
def test_answers_from_elsewhere_are_checked():
    graph = nx.karate_club_graph()
    club = {v: int(graph.nodes[v]["club"] == "Officer") for v in graph}
    found = check(graph, club, "communities", settings=QUICK)
    classes = [[v for v in graph if club[v] == k] for k in (0, 1)]
    assert found.objective == pytest.approx(nx.community.modularity(graph, classes), abs=1e-12)
    assert found.bound == pytest.approx(0.4449036, abs=1e-6)
    assert check(graph, classes, "communities", settings=QUICK).objective == found.objective
    solved = solve(graph, "communities", settings=QUICK | {"output.certificates": True})
    assert check(graph, solved).optimal
    with pytest.raises(GraphError, match="has no community"):
        check(graph, {0: 1}, "communities", settings=QUICK)
    with pytest.raises(GraphError, match="found the community"):
        check(graph, dict.fromkeys(graph, 0.5), "communities", settings=QUICK)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"search.solver": "policy"}, "no policy answers it"),
        ({"problem.resolution": -1.0}, "problem.resolution"),
        ({"problem.null": "none", "problem.resolution": 2.0}, "nothing reads it"),
        ({"problem.name": "mvc", "problem.resolution": 2.0}, "only communities have one"),
        ({"problem.name": "mvc", "problem.null": "sizes"}, "only communities have one"),
        ({"problem.null": "edges"}, "problem.null"),
    ],
)
def test_what_is_asked_for_wrongly_is_refused(keys, message):
    with pytest.raises(CaseError, match=message):
        solve(nx.path_graph(4), settings={"problem.name": "communities"} | keys)


def test_graphs_and_fixed_nodes_that_do_not_fit_are_refused():
    graph = nx.path_graph(4)
    with pytest.raises(CaseError, match="none inside or outside"):
        solve(graph, "communities", inside=[1])
    with pytest.raises(CaseError, match="no policy answers communities"):
        TrainingRun(problem="communities", graphs=[graph])
    nx.set_edge_attributes(graph, {(0, 1): 1.0, (1, 2): -2.0, (2, 3): 1.0}, "weight")
    with pytest.raises(GraphError, match=r"edge 1-2 has the weight -2 < 0; problem.null"):
        solve(graph, "communities")
    assert solve(graph, "communities", settings=settings("none", 1.0)).objective == 2.0


# ---- what partitions are worth ----------------------------------------------------------------------------


@alone
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("null", "resolution"), NULLS)
def test_whole_numbers_are_what_the_definitions_say(seed, null, resolution):
    graph = drawn(seed, null)
    asked = quality_of(whole(graph), null, resolution)
    assert asked.exact
    for label in list(partitions(graph.number_of_nodes()))[::37]:
        value = asked.quality.value(label) + asked.constant
        assert float(worth_of(graph, label, null, resolution)) == pytest.approx(value * asked.unit, abs=1e-12)


@alone
def test_fine_and_large_weights_are_rounded_and_sums_stay_small():
    draws = np.random.default_rng(1)
    edges = draws.integers(0, 50, (200, 2))
    for scale in (1e-30, 1.0, 1e30):
        graph = from_edges(50, *edges.T, scale * draws.random(200))
        label = draws.integers(0, 5, 50)
        for null, resolution in (("degrees", 0.333), ("sizes", 0.001), ("none", 1.0)):
            if null == "sizes" and scale < 1:
                with pytest.raises(GraphError, match="too small beside those of all pairs"):
                    quality_of(graph, null, resolution)
                continue
            asked = quality_of(graph, null, resolution)
            quality = asked.quality
            assert quality.near * int(np.abs(quality.weights).sum()) <= FULL
            assert quality.far * int(quality.size.sum()) ** 2 <= FULL
            same = label[graph.row_of()] == label[graph.indices]
            inside = float(graph.weights[same].sum(dtype=np.float64)) / 2
            found = (quality.value(label) + asked.constant) * asked.unit
            if null == "none":
                assert found == pytest.approx(inside, rel=1e-6)
            if null == "degrees":
                drawn_graph = nx.Graph()
                drawn_graph.add_nodes_from(range(50))
                rows, weights = graph.row_of(), graph.weights.astype(float)
                drawn_graph.add_weighted_edges_from(
                    zip(rows.tolist(), graph.indices.tolist(), weights.tolist())
                )
                classes = [set(np.flatnonzero(label == k).tolist()) for k in range(5)]
                wanted = nx.community.modularity(drawn_graph, classes, resolution=resolution)
                assert found == pytest.approx(wanted, abs=1e-4)
                assert not asked.exact


@pytest.mark.parametrize("null", ["degrees", "sizes"])
def test_resolutions_beyond_all_numbers_are_refused(null):
    graph = whole(nx.karate_club_graph())
    with pytest.raises(GraphError, match=r"a (lower|smaller) problem.resolution"):
        quality_of(graph, null, 1e307)
    assert quality_of(graph, null, 0.0).quality.far == 0


@alone
@pytest.mark.parametrize("seed", range(6))
def test_groups_and_parts_are_worth_what_their_nodes_are(seed):
    draws = np.random.default_rng(seed)
    quality = quality_of(whole(drawn(seed, "none", 12)), "sizes", 0.7).quality
    group = numbered(draws.integers(0, max(quality.n // 2, 1), quality.n))
    coarse = quality.contracted(group)
    plain = quality.contracted(group, compiled=False)
    for name in ("indptr", "indices", "weights", "size"):
        np.testing.assert_array_equal(getattr(coarse, name), getattr(plain, name))
    label = draws.integers(0, 3, coarse.n)
    assert quality.value(label[group]) == coarse.value(label) + quality.value(group)
    nodes = np.flatnonzero(draws.random(quality.n) < 0.6)
    place = np.full(quality.n, -1, dtype=np.int32)
    part, own = quality.induced(nodes, place), draws.integers(0, 3, len(nodes))
    apart = np.full(quality.n, -1)
    apart[nodes] = own
    apart[apart < 0] = 3 + np.arange(quality.n - len(nodes))
    assert part.value(own) == quality.value(apart) and (place == -1).all()


# ---- search -----------------------------------------------------------------------------------------------


@alone
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("null", ["degrees", "none"])
def test_moves_are_the_same_without_kernels(seed, null):
    draws = np.random.default_rng(seed)
    quality = quality_of(whole(drawn(seed, null, 40)), null, 1.0).quality
    start, order = draws.integers(0, quality.n, quality.n), draws.permutation(quality.n)
    movers = [Mover(quality, start, order, compiled) for compiled in (True, False)]
    for most in (1, 5, 1000):
        assert movers[0].run(most) == movers[1].run(most)
        np.testing.assert_array_equal(movers[0].label, movers[1].label)
        assert movers[0].gain == movers[1].gain
        assert quality.value(movers[0].label) == quality.value(start) + movers[0].gain
    assert not movers[0].waiting
    label, best = movers[0].label.copy(), quality.value(movers[0].label)
    for node in range(quality.n):  # no move of one node gains
        for other in {*label[quality.indices[quality.indptr[node] : quality.indptr[node + 1]]], quality.n}:
            moved = label.copy()
            moved[node] = other
            assert quality.value(moved) <= best


@alone
@pytest.mark.parametrize("compiled", [True, False])
def test_a_search_depends_on_its_steps_alone(compiled):
    quality = quality_of(whole(nx.gnp_random_graph(40, 0.15, seed=1)), "degrees", 1.0).quality
    searches = [CommunitySearch(quality, np.arange(quality.n), 7, compiled) for _ in range(2)]
    searches[0].run(6000)
    for part in (1, 999, 17, 2983, 2000):
        searches[1].run(part)
    np.testing.assert_array_equal(searches[0].solution(), searches[1].solution())
    assert searches[0].best == searches[1].best == quality.value(searches[0].solution())
    assert searches[0].steps == searches[1].steps == 6000


@alone
def test_a_search_goes_on_from_what_it_hears_and_meets():
    quality = quality_of(whole(nx.planted_partition_graph(8, 10, 0.6, 0.05, seed=1)), "degrees", 1.0).quality
    good = CommunitySearch(quality, np.arange(quality.n), 1)
    good.run(50_000)
    search = CommunitySearch(quality, np.arange(quality.n), 2)
    search.hear(good.solution())
    search.meet([good.news()])
    search.run(4000)
    assert search.best >= good.best


def test_groups_are_together_in_both():
    assert overlay(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1])).tolist() == [0, 1, 2, 2]


@alone
@pytest.mark.parametrize("seed", range(6))
def test_plain_heuristics_end_where_no_merge_gains(seed):
    graph = whole(drawn(seed, "degrees", 30))
    quality = quality_of(graph, "degrees", 1.0).quality
    for rule in (louvain, greedy):
        label, _ = rule(graph)
        np.testing.assert_array_equal(label, rule(graph, compiled=False)[0])
        best = quality.value(label)
        for a in range(int(label.max()) + 1):
            for b in range(a):
                assert quality.value(np.where(label == a, b, label)) <= best
    np.testing.assert_array_equal(louvain(graph)[0], by_moves(quality)[0])


# ---- reductions and bounds --------------------------------------------------------------------------------


@alone
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(("null", "resolution"), NULLS)
def test_the_best_of_the_core_is_the_best_of_the_graph(seed, null, resolution):
    quality = quality_of(whole(drawn(seed, null, 7)), null, resolution).quality
    kernel = CommunityKernel(quality)
    kernel.reduce(lambda: None)
    best = max(map(quality.value, partitions(quality.n)))
    core = max(map(kernel.core.value, partitions(kernel.core.n)))
    assert core + kernel.own == best
    for label in partitions(kernel.core.n):
        lifted = kernel.lift(label)
        assert quality.value(lifted) == kernel.core.value(label) + kernel.own
        np.testing.assert_array_equal(numbered(kernel.restrict(numbered(lifted))), label)


def test_leaves_are_joined_to_their_neighbours():
    quality = quality_of(whole(nx.barbell_graph(5, 0)), "degrees", 1.0).quality
    assert not len(sure_pairs(quality))
    star = quality_of(whole(nx.star_graph(5)), "degrees", 1.0).quality
    assert sure_pairs(star)[:, 0].tolist() == [1, 2, 3, 4, 5]
    assert belong_together(star, sure_pairs(star))
    assert not belong_together(star, np.array([[0, 1]]))


@alone
@pytest.mark.parametrize("seed", range(10))
def test_every_star_holds_for_every_partition_and_the_broken_ones_are_broken(seed):
    draws = np.random.default_rng(seed)
    x = np.where(draws.random((9, 9)) < 0.5, 0.6, 0.1)
    x = np.triu(x, 1) + np.triu(x, 1).T
    stars = [star for table in (triangles(x, 1000), *larger(x)) for star in table]
    assert any(len(star) > 3 for star in stars)

    def side(values, star):
        s, members = star[0], star[1:]
        return values[s, members].sum() - np.triu(values[np.ix_(members, members)], 1).sum()

    for star in stars:
        assert len(set(star.tolist())) == len(star) and side(x, star) > 1.01
    for label in (draws.integers(0, 3, 9) for _ in range(50)):
        together = (label[:, None] == label).astype(float)
        assert all(side(together, star) <= 1 for star in stars)


@alone
def test_a_semidefinite_matrix_bounds_all_partitions():
    quality = quality_of(whole(nx.gnp_random_graph(7, 0.5, seed=2)), "degrees", 1.0).quality
    worth = pair_worths(quality, np.arange(7)).astype(float)
    work = PairProgram(worth / 10, np.zeros((7, 7)))
    for _ in range(100):
        work.step()
    assert np.linalg.eigvalsh(work.matrix)[0] > -1e-9
    best = max(map(quality.value, partitions(7))) / 10
    assert best - 1e-9 <= work.value < np.maximum(worth, 0).sum() / 20


def bounded(graph, seconds=1.0, **keys):
    """Tools of a graph after a search, and its bounds."""
    tools = CommunityTools(instance_of(whole(graph), **keys), Communities())
    tools.reduce(lambda: None)
    search = tools.search(1, tools.start())
    search.run(20_000)
    bounds = tools.bounds()
    bounds.improve(seconds, search.best, search.solution())
    return tools, bounds


@alone
def test_certificates_prove_bounds_and_damaged_ones_do_not():
    tools, bounds = bounded(nx.les_miserables_graph(), 20.0)
    proof = bounds.proof()
    assert tools.prove(proof) == tools.value_of_core(bounds.value)
    (part,) = proof.parts
    assert len(part.g) and len(proof.joined)
    wrong = [
        replace(part, upper=part.upper - 1),
        replace(part, g=-part.g),
        replace(part, g=part.g[:-1]),
        replace(part, members=part.members + len(part.nodes)),
        replace(part, members=np.zeros_like(part.members)),
        replace(part, ptr=part.ptr[::-1].copy()),
        replace(part, nodes=np.zeros_like(part.nodes)),
        replace(part, nodes=part.nodes + 1000),
        replace(part, places=63),
        replace(part, matrix=np.eye(3, dtype=np.int64)),
        replace(part, matrix=-np.eye(len(part.nodes), dtype=np.int64)),
    ]
    for each in wrong:
        with pytest.raises(BadCertificate):
            tools.prove(replace(proof, parts=(each,)))
    with pytest.raises(BadCertificate):
        tools.prove(replace(proof, parts=(part, part)))
    for joined in (proof.joined[:, ::-1].copy(), proof.joined + 1000, proof.joined[:-1]):
        with pytest.raises(BadCertificate):
            tools.prove(replace(proof, joined=joined))


@alone
@pytest.mark.parametrize("kind", ["stars", "matrix"])
def test_a_damaged_file_proves_nothing_untrue(kind):
    random, refused, tried = np.random.default_rng(3), 0, 0
    for seed in range(12):
        null, resolution = NULLS[seed % len(NULLS)]
        tools = CommunityTools(
            instance_of(whole(drawn(seed, null, 7)), None, null=null, resolution=resolution), None
        )
        best = max(map(tools.value, partitions(tools.graph.n)))
        if seed % 2:
            tools.reduce(lambda: None)
        bounds, start = tools.bounds(), tools.start()
        known = tools.core_value(tools.value(tools.lift(start)))
        bounds.improve(0.05, known, start)
        proof = bounds.proof()
        if kind == "matrix":
            proof = replace(proof, parts=tuple(by_matrix(tools, part) for part in proof.parts))
        content = archive.to_bytes(proof)
        assert not refused_or_valid(tools, content, best)
        for _ in range(30):
            refused += refused_or_valid(tools, altered(altered(content, random), random), best)
            tried += 1
    assert refused > tried // 4  # a change need not do harm


def by_matrix(tools, part):
    """The bound of a part by a semidefinite matrix alone."""
    work = PartWork(tools.kernel.joined_core, part.nodes, np.arange(len(part.nodes)))
    for _ in range(40):
        work._matrix.step()
    work._prove_matrix()
    return work.bound


@alone
def test_a_matrix_proves_what_stars_alone_do_not():
    graph = nx.gnp_random_graph(40, 0.3, seed=1)
    tools, bounds = bounded(graph, 20.0)
    (part,) = bounds.proof().parts
    assert part.matrix.size and "semidefinite" in bounds.method
    assert tools.prove(bounds.proof()) == tools.value_of_core(bounds.value)
    without = replace(part, matrix=part.matrix[:0, :0])
    with pytest.raises(BadCertificate):
        tools.prove(replace(bounds.proof(), parts=(without,)))
    moved = part.matrix.copy()
    moved[0, 1] += 1
    with pytest.raises(BadCertificate, match="symmetric"):
        tools.prove(replace(bounds.proof(), parts=(replace(part, matrix=moved),)))


@alone
def test_parts_that_no_positive_pair_connects_are_bounded_apart():
    graph = nx.disjoint_union_all([nx.gnp_random_graph(12, 0.4, seed=i) for i in range(4)])
    tools, bounds = bounded(graph, 10.0, null="sizes", resolution=0.4)
    proof = bounds.proof()
    assert len(proof.parts) > 1
    assert tools.prove(proof) == tools.value_of_core(bounds.value)
    none = CommunityProof(proof.ptr, proof.joined, (), True)
    assert tools.prove(none) > tools.prove(proof)


@alone
def test_a_part_beyond_the_memory_limit_keeps_its_first_bound():
    quality = quality_of(whole(nx.karate_club_graph()), "degrees", 1.0).quality
    bounds = CommunityBounds(quality, most_bytes=1000)
    assert not bounds.improve(1.0, 0)
    worths = quality.worths()
    assert bounds.value == int(worths[worths > 0].sum()) // 2 and not bounds.parts


@needs_data
@alone
def test_a_power_grid_is_partitioned_better_than_louvain_does():
    path = str(data_dir() / "mvc" / "power.graph.gz")
    found = solve(path, "communities", settings={"search.steps": 500_000, "search.bounds": False})
    assert found.objective > 0.9395 > 0.936 > found.baselines["Louvain"]
