"""The environments as Gymnasium's: its checker passes, states and rewards are those of the program."""

import warnings

import networkx as nx
import numpy as np
import pytest

from app import TrainingRun, gym_environment
from app.errors import CaseError

gymnasium = pytest.importorskip("gymnasium", reason="Gymnasium is not installed: pip install gymnasium")

from gymnasium.utils.env_checker import check_env  # noqa: E402
from gymnasium.wrappers import TimeLimit  # noqa: E402
from helpers import make_blocks, random_graph  # noqa: E402
from test_tsp import blocks_of  # noqa: E402

from app.graphs.covering import COVERING  # noqa: E402
from app.graphs.metric import uniform_points  # noqa: E402
from app.problems.table import PROBLEMS as ALL  # noqa: E402
from app.problems.table import (  # noqa: E402
    UNTRAINED,
    make_problem,
)
from app.rl.gym import GraphGym  # noqa: E402

GRAPHS = [nx.gnp_random_graph(9, 0.3, seed=1), nx.barabasi_albert_graph(14, 2, seed=2), nx.empty_graph(3)]
FAMILIES = [[[0, 1], [1, 2, 3], [3, 4], [0, 4]], [[v, *GRAPHS[1][v]] for v in range(14)], [[0]]]


def environment(solo, problem, **options):
    if problem == "tsp":
        return GraphGym(
            solo, make_problem(problem), blocks_of(solo, [uniform_points(n, n) for n in (7, 9)]), **options
        )
    if problem in COVERING:
        return gym_environment(FAMILIES, problem, **options)
    return gym_environment(GRAPHS, problem, **options)


@pytest.mark.parametrize("device", ["host"], indirect=True)
@pytest.mark.parametrize("problem", [name for name in ALL if name not in UNTRAINED])
def test_the_checker_of_gymnasium_passes(solo, problem):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings(
            "ignore", message=".*Box observation space (minimum|maximum) value is -?infinity"
        )
        check_env(environment(solo, problem), skip_render_check=True)


@pytest.mark.parametrize("device", ["host"], indirect=True)
@pytest.mark.parametrize("problem", [name for name in ALL if name not in UNTRAINED])
def test_an_episode_by_the_mask_ends_with_a_solution(solo, problem):
    """Rewards of problems without shaping add up to what the solution is worth."""
    env = environment(solo, problem)
    for seed in range(3):
        seen, info = env.reset(seed=seed)
        total, ended, draws = 0.0, False, np.random.default_rng(seed)
        while not ended:
            assert env.observation_space.contains(seen)
            assert (seen["mask"] == info["action_mask"]).all()
            node = int(draws.choice(np.flatnonzero(info["action_mask"])))
            seen, reward, ended, cut, info = env.step(node)
            total += reward
            assert info["accepted"] and not cut
        if problem in ("mvc", "mds"):
            assert total == -info["objective"]
        if problem == "mvc":
            cover = set(np.flatnonzero(env.env.chosen_at >= 0).tolist())
            assert all(u in cover or v in cover for u, v in GRAPHS[info["graph"]].edges)
            assert len(cover) == info["objective"]
            assert not seen["mask"].any()


@pytest.mark.parametrize("device", ["host"], indirect=True)
def test_what_is_seen_is_the_graph(solo):
    env = environment(solo, "mvc")
    seen, info = env.reset(options={"graph": 1})
    edges = {tuple(pair) for pair in seen["edges"].T.tolist() if pair != [-1, -1]}
    assert edges == {pair for u, v in GRAPHS[1].edges for pair in ((u, v), (v, u))}
    assert info["graph"] == 1
    assert seen["mask"].tolist() == [1] * 14
    first, _ = env.reset(options={"graph": 0})
    degrees = [GRAPHS[0].degree[v] for v in range(9)] + [0] * 5
    assert first["mask"].tolist() == [int(d > 0) for d in degrees]
    assert (
        first["features"][:, 0].tolist() == first["mask"].tolist()
    )  # the first feature is one on nodes with edges
    assert {info["graph"] for info in (env.reset(seed=s)[1] for s in range(20))} == {
        0,
        1,
    }  # 2 has nothing to choose


@pytest.mark.parametrize("device", ["host"], indirect=True)
def test_refused_actions_cost_and_change_nothing(solo):
    env = environment(solo, "mvc", penalty=2.5, most=1)
    env.reset(options={"graph": 1})
    seen, *_ = env.step(4)
    again, reward, ended, cut, info = env.step(4)
    assert (reward, ended, cut, info["accepted"]) == (-2.5, False, False, False)
    assert all((seen[name] == again[name]).all() for name in seen)
    for outside in (-1, 14, 99):
        _, reward, _, _, info = env.step(outside)
        assert (reward, info["accepted"]) == (-2.5, False)
    for _ in range(8):
        assert not env.step(4)[3]
    assert env.step(4)[3]  # 14 nodes, one step for each


@pytest.mark.parametrize("device", ["host"], indirect=True)
def test_wrong_options_are_named(solo):
    wrong = {"shaping": "foo", "penalty": np.nan, "most": 0}
    for (key, value), said in zip(wrong.items(), ("found shaping 'foo'", "found penalty nan", "most 0")):
        with pytest.raises(CaseError, match=said):
            environment(solo, "mvc", **{key: value})
    for number in (-1, 3, "x", 1.0):
        with pytest.raises(CaseError, match=rf"found graph {number!r}; 0\.\.2 would be right"):
            environment(solo, "mvc").reset(options={"graph": number})
    with pytest.raises(CaseError, match=r"step: no episode has begun; a call of reset\(\) before"):
        environment(solo, "mvc").step(0)


@pytest.mark.mpi_skip
@pytest.mark.parametrize("problem", ["maxcut", "maxcut_once"])
def test_objectives_are_in_the_weights_of_the_graph(problem):
    """Of halves, which are counted in units of their own within."""
    weights = np.array([[0, -1.5, 2], [-1.5, 0, 3], [2, 3, 0.0]])
    env = gym_environment([weights], problem)
    env.reset()
    found = env.step(2)[4]["objective"]
    assert found in ([5.0] if problem == "maxcut_once" else [0.5, 1.5, 5.0])  # maxcut begins with two sides
    episode = TrainingRun(problem, [weights], "dqn").agent().environment(0)
    episode.step(2)
    assert episode.objective == found


@pytest.mark.mpi_skip
@pytest.mark.parametrize(("component", "last"), [(4, 1), (0.25, 3), (1, 5)])
def test_settings_say_what_states_depend_on(component, last):
    """A path of nine nodes: how many choices it takes until components are small."""
    env = gym_environment([nx.path_graph(9)], "dismantle", settings={"problem.component": component})
    env.reset()
    assert [env.step(node)[2] for node in (4, 2, 6, 0, 7)[:last]].index(True) + 1 == last
    with pytest.raises(CaseError, match=r"problem\.component: must be above 0"):
        gym_environment([nx.path_graph(9)], "dismantle", settings={"problem.component": 0})


@pytest.mark.mpi_skip
def test_objectives_are_in_the_distances_of_the_points():
    points = np.random.default_rng(1).random((7, 2))
    env = gym_environment([points], "tsp")
    env.reset()
    episode = TrainingRun("tsp", [points], "dqn").agent().environment(0)
    while not episode.done:
        node = int(np.flatnonzero(env.action_masks())[0])
        info = env.step(node)[4]
        episode.step(node)
    assert info["objective"] == episode.objective < 7 * 2**0.5


@pytest.mark.parametrize("device", ["host"], indirect=True)
def test_weights_are_seen_where_there_are_any(solo):
    weighted = random_graph(11, 0.4, 5, weighted=True)
    env = GraphGym(solo, make_problem("maxcut"), make_blocks(solo, [weighted, random_graph(9, 0.4, 6)]))
    seen, _ = env.reset(options={"graph": 0})
    found = {(u, v): w for (u, v), w in zip(seen["edges"].T.tolist(), seen["weights"].tolist()) if u >= 0}
    expected = {(u, v): w for (u, v), w in zip(weighted[1].tolist(), weighted[2].tolist())}
    assert found == expected | {(v, u): w for (u, v), w in expected.items()}
    seen, _ = env.reset(options={"graph": 1})
    assert set(seen["weights"][seen["edges"][0] >= 0]) == {1.0}


def test_one_rank_plays_and_something_must_be_there_to_choose(group, solo):
    if group.size > 1:
        with pytest.raises(CaseError, match="played by one rank"):
            GraphGym(group, make_problem("mvc"), make_blocks(group, [random_graph(9, 0.4, 6)]))
    with pytest.raises(CaseError, match="something to choose"):
        gym_environment([nx.empty_graph(4)])


@pytest.mark.parametrize("device", ["host"], indirect=True)
def test_wrappers_of_gymnasium_fit(solo):
    env = TimeLimit(environment(solo, "mis"), 2)
    env.reset(seed=1)
    assert [env.step(int(np.flatnonzero(env.unwrapped.action_masks())[0]))[3] for _ in range(2)] == [
        False,
        True,
    ]
