"""Scores that follow the selections have the bits of a full evaluation, on any number of ranks."""

import emulator
import numpy as np
import pytest
from conftest import WORLD
from helpers import by_one, growing_graph, listed, make_block, make_blocks, random_graph
from mpi4py import MPI

from app.case.policy import PolicyCase
from app.comm.group import Group
from app.device import HostDevice
from app.errors import NumericsError
from app.native import library
from app.problems.mvc import MinimumVertexCover
from app.rl import incremental, incremental_device, incremental_rows
from app.rl.env import GraphEnv
from app.rl.incremental import FullScores, LiveScores, can_follow
from app.rl.qnet import QNetwork
from app.rl.rollout import roll_out, rolled_out_one_at_a_time
from app.rl.rules import RULES
from app.rl.select import Share, top_nodes

PAPER = {"features": "paper", "shared_layers": True, "self_weight": False, "mean_degree": False}
POLICIES = {
    "default": {},
    "three rounds": {"layers": 3},
    "one round": {"layers": 1},
    "wide": {"dimension": 64},
    "odd widths": {"dimension": 21, "hidden": 7},
    "no self weight": {"self_weight": False, "layers": 3},
    "edge term": {"edge_weights": True},
    "hubs": {"hub_degree": 1.25, "layers": 3},
    "paper": PAPER,
    "paper, self weight": {**PAPER, "self_weight": True, "layers": 4},
    "paper, mean degree": {**PAPER, "mean_degree": True},
}


@pytest.fixture(params=["compiled", "compiled-8", "compiled-4", "plain", "blas", "gpu"])
def host(request):
    """Each kind of arithmetic that gives the same bits on any number of ranks; "gpu": emulated."""
    if request.param == "gpu":
        request.getfixturevalue("emulated")
        yield emulator.make_device()
        return
    kind, _, lanes = request.param.partition("-")
    if lanes and WORLD.Get_size() > 1:
        pytest.skip("one process is enough for narrower registers")
    if kind == "compiled" and HostDevice().native is None:
        pytest.skip("the compiled kernels were not built")
    library.use_lanes(int(lanes or library.WIDEST))
    yield HostDevice(portable=kind != "blas", compiled=kind == "compiled")
    library.use_lanes()


@pytest.fixture
def ranks():
    """All ranks of the session on the host."""
    return Group(WORLD, HostDevice())


def network(policy, seed=3, device=None):
    """A network and parameters, on the host unless a device is given."""
    net = QNetwork(PolicyCase(**policy), MinimumVertexCover())
    return net, net.new_parameters(device or HostDevice(), seed)


def follow(group, net, params, block, choose, every=1):
    """Run to the end by `choose`, comparing all keys with a full evaluation at every `every`-th state."""
    env = GraphEnv(group, block, MinimumVertexCover())
    live, full = LiveScores(group, net, params, env), FullScores(group, net, params, env)
    chosen = []
    while env.totals.degree_sum:
        if len(chosen) % every == 0:
            keys = [group.device.get(each.keys_own()) for each in (live, full)]
            np.testing.assert_array_equal(*keys)
        nodes = choose(live, env)
        live.remove(nodes)
        chosen.append(nodes.tolist())
    return chosen


def one(live, env):
    """The best node."""
    return np.array([live.best()])


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_every_state_has_the_bits_of_a_full_evaluation(host, policy):
    group = Group(WORLD, host)
    net, params = network(policy, device=host)
    for graph in (growing_graph(60, 3, 1), random_graph(40, 0.1, 2)):
        for exchange in ("gather", "halo") if group.size > 1 else ("auto",):
            every = 4 if host.name == "gpu" else 1
            follow(group, net, params, make_block(group, graph, exchange), one, every)


@pytest.mark.parametrize("rule", RULES)
def test_every_rule(host, rule):
    group = Group(WORLD, host)
    net, params = network({}, device=host)
    block = make_block(group, growing_graph(150, 3, 5))

    def choose(live, env):
        return RULES[rule](group, group.device, live.keys_own(), env, Share(block.n, 0.05))

    follow(group, net, params, block, choose)


@pytest.mark.parametrize("policy", [{}, {"layers": 3}, PAPER], ids=["default", "three rounds", "paper"])
def test_a_larger_graph(ranks, policy):
    group = ranks
    net, params = network(policy)
    follow(group, net, params, make_block(group, growing_graph(1100, 3, 7)), one, every=101)


def test_random_removals_and_several_at_once(ranks):
    """Nodes that are no candidates, neighbours of each other, and many."""
    group = ranks
    net, params = network({"layers": 3})
    block = make_block(group, growing_graph(200, 4, 8))
    draws = np.random.default_rng(5)

    def choose(live, env):
        left = np.setdiff1d(np.arange(block.n), removed)
        nodes = draws.choice(left, min(len(left), int(draws.integers(1, 9))), replace=False)
        removed.extend(nodes.tolist())
        return nodes

    removed = []
    follow(group, net, params, block, choose)


def test_a_full_layer_where_much_is_touched(ranks, monkeypatch):
    group = ranks
    net, params = network({"layers": 3})
    block = make_block(group, growing_graph(120, 3, 9))
    covers = []
    for share in (0.0, 0.25, 10.0):
        monkeypatch.setattr(incremental_rows, "FULL_SHARE", share)
        covers.append(follow(group, net, params, block, one))
    assert covers[0] == covers[1] == covers[2]


def test_few_rows_and_all_of_them_on_a_device(emulated, monkeypatch):
    """However much a selection touches before a layer is made anew; several nodes at once."""
    group = Group(WORLD, emulated)
    net, params = network({"layers": 3}, device=emulated)
    block = make_block(group, growing_graph(70, 3, 9))
    best = best_three(group)
    covers = []
    for share, near in ((0.0, 1 << 16), (10.0, 1 << 16), (0.25, 0)):
        monkeypatch.setattr(incremental_device, "FULL_SHARE", share)
        monkeypatch.setattr(incremental_device, "MOST_NEAR", near)
        covers.append(follow(group, net, params, block, best, every=3))
    assert covers[0] == covers[1] == covers[2]


@pytest.fixture
def caught_up(monkeypatch):
    """The states that came back to rows that had been kept."""
    states, inner = [], LiveScores._catch_up

    def counted(self):
        states.append(self._state())
        inner(self)

    monkeypatch.setattr(LiveScores, "_catch_up", counted)
    return states


@pytest.mark.parametrize("policy", [{}, {"layers": 3, "self_weight": False}], ids=["default", "three rounds"])
@pytest.mark.parametrize("several", [1, 3])
def test_a_state_that_comes_back(host, monkeypatch, caught_up, policy, several):
    """To and fro between two mean degrees, and to others, at nearly every step."""

    def state(self, totals):
        return (2.5 if totals.alive % 11 == 0 else 2.0 + totals.alive % 2 / 4,)

    monkeypatch.setattr(MinimumVertexCover, "state", state)
    group = Group(WORLD, host)
    net, params = network(policy, device=host)
    for graph in (growing_graph(60, 2, 1), growing_graph(70, 3, 2)):

        def choose(live, env):
            return top_nodes(group, group.device, live.keys_own(), min(several, env.totals.candidates))

        follow(group, net, params, make_block(group, graph), choose)
    assert len(caught_up) > 5


def test_runs_in_which_the_mean_degree_comes_back(ranks, caught_up):
    """Many selections in one compiled call, and compaction on the way."""
    net, params = network({})
    block = make_block(ranks, growing_graph(2000, 2, 11))
    covers = [roll_out(ranks, net, params, block, "single", 0.02, full=full) for full in (False, True)]
    assert covers[0].chosen_at_own.tolist() == covers[1].chosen_at_own.tolist()
    assert len(caught_up) > 5


def best_three(group):
    """Chooses the three best nodes."""
    return lambda live, env: top_nodes(group, group.device, live.keys_own(), min(3, env.totals.candidates))


def test_covers_of_a_device_are_those_of_the_host(emulated):
    """Compacted on the way; a graph so sparse that scores follow."""
    graph = listed(600, *((i, i + 1) for i in range(590)), *((i, 7 * i + 3) for i in range(80)))
    found = []
    for device in (HostDevice(), emulated):
        group = Group(WORLD, device)
        net, params = network({}, device=device)
        block = make_block(group, graph)
        assert can_follow(group, net, GraphEnv(group, block, MinimumVertexCover()))
        cover = roll_out(group, net, params, block, "single" if group.size == 1 else "adaptive", 0.02)
        found.append(cover.chosen_at_own.tolist())
    assert found[0] == found[1]


def test_long_messages(ranks, monkeypatch):
    """More changed rows than the first message holds."""
    group = ranks
    net, params = network({})
    monkeypatch.setattr(incremental, "MESSAGE_WORDS", 40)
    follow(group, net, params, make_block(group, growing_graph(150, 4, 10), "halo"), one)


@pytest.mark.parametrize("rule", RULES)
def test_covers_are_those_of_full_evaluations_and_of_one_rank(ranks, rule):
    group, solo = ranks, Group(MPI.COMM_SELF, HostDevice())
    net, params = network({})
    graph = growing_graph(700, 3, 11)  # large enough to be compacted on the way
    block = make_block(group, graph)

    def alone():
        own = make_block(solo, graph)
        cover = roll_out(solo, net, params, own, rule, 0.02, full=True)
        return cover.chosen_at_own[: own.n_real], cover.evaluations

    chosen_at, evaluations = by_one(alone)
    for full in (False, True):
        cover = roll_out(group, net, params, block, rule, 0.02, full=full)
        whole = group.gather_host(cover.chosen_at_own[: block.n_real], block.rows.row_counts())
        np.testing.assert_array_equal(whole, chosen_at)
        assert cover.evaluations == evaluations


def test_one_at_a_time_on_any_number_of_ranks(ranks):
    group, solo = ranks, Group(MPI.COMM_SELF, HostDevice())
    net, params = network({})
    graphs = [growing_graph(60, 3, 1), random_graph(60, 0.1, 2), listed(60, (0, 1)), listed(60)]
    steps, alone = (
        [env.steps for env in rolled_out_one_at_a_time(each, net, params, make_blocks(each, graphs))]
        for each in (group, solo)
    )
    assert steps == alone


def test_what_cannot_be_followed_is_evaluated_in_full(group, device):
    weighted = make_block(group, random_graph(40, 0.2, 1, weighted=True))
    plain = make_block(group, random_graph(40, 0.2, 1))
    host = group.device.name == "cpu"
    assert can_follow(group, network({})[0], GraphEnv(group, plain, MinimumVertexCover())) == host
    assert (
        can_follow(group, network({"edge_weights": True})[0], GraphEnv(group, plain, MinimumVertexCover()))
        == host
    )
    sparse = GraphEnv(
        group, make_block(group, listed(64, *((i, i + 1) for i in range(63)))), MinimumVertexCover()
    )
    assert can_follow(group, network({})[0], sparse) == (host or group.device.follows_rows)
    assert not can_follow(
        group, network({"edge_weights": True})[0], GraphEnv(group, weighted, MinimumVertexCover())
    )
    assert not can_follow(group, network({"head": "mixing"})[0], GraphEnv(group, plain, MinimumVertexCover()))
    assert not can_follow(group, network({})[0], GraphEnv(group, plain, MinimumVertexCover(), scan=True))
    careless = Group(WORLD, HostDevice(portable=False, reproducible=False))
    assert not can_follow(
        careless,
        network({})[0],
        GraphEnv(careless, make_block(careless, listed(3, (0, 1))), MinimumVertexCover()),
    )


def test_nan_is_refused(host):
    group = Group(WORLD, host)
    net, params = network({}, device=host)
    params.flat[:] = np.nan
    block = make_block(group, growing_graph(40, 2, 1))
    with pytest.raises(NumericsError, match="NaN"):
        roll_out(group, net, params, block, "single", 0.02)
