"""app/memory/shelf: learning under a limit of memory has the bits of learning without one."""

import tracemalloc

import msgspec
import numpy as np
import pytest
from helpers import growing_graph, make_blocks, random_graph
from mpi4py import MPI

from app.case.config import Case
from app.case.file import build
from app.case.policy import AgentCase, PolicyCase, TrainCase
from app.case.run import MemoryCase, RunCase
from app.comm.group import Group
from app.comm.guard import digest
from app.device import HostDevice
from app.errors import CaseError
from app.memory.shelf import Shelf
from app.memory.tiers import TierBudget
from app.problems.mvc import MinimumVertexCover
from app.rl.training import train_policy
from app.tasks.refused import check_names

GRAPHS = [growing_graph(150, 3, 1), random_graph(90, 0.05, 2)]
CASE = Case(
    run=RunCase(check_every=5),
    agent=AgentCase(batch=8, warmup=8, replay_capacity=100, target_every=3),
    train=TrainCase(steps=14, environments=2, evaluate_every=1000),
)
POLICIES = {
    "default": PolicyCase(dimension=8, hidden=8, layers=5),
    "own": PolicyCase(dimension=8, hidden=8, layers=4, self_weight=True, shared_layers=True),
    "mixing": PolicyCase(dimension=8, hidden=8, layers=6, head="mixing"),
    "paper": PolicyCase(
        dimension=8,
        hidden=8,
        layers=4,
        features="paper",
        mean_degree=False,
        edge_weights=True,
        shared_layers=True,
    ),
}


def trained(group, policy, **memory):
    """Digest of the weights after some steps, and the shelf. Ranks: all call."""
    case = msgspec.structs.replace(CASE, policy=policy, memory=MemoryCase(**memory))
    blocks = make_blocks(group, GRAPHS)
    found = train_policy(group, case, MinimumVertexCover(), blocks, blocks[:1])
    return digest(found.weights), found.net.embedding.shelf


def tight(group):
    """A limit in MB under which a round fits, but not all rounds do."""
    most = 8 * max(-(-150 // group.size) + 8, 32)
    return 1e-6 * 4 * 8 * 6.5 * most


@pytest.mark.parametrize("name, slow", [("default", "file"), *((name, "host") for name in POLICIES)])
def test_a_limit_changes_no_bit(group, single, name, slow):
    if name != "own" and not (group.device.direct and group.device.native):
        pytest.skip("one case is enough on this device")
    policy = POLICIES[name]
    found, shelf = trained(group, policy, fast_mb=tight(group), slow=slow)
    assert found == trained(single, policy)[0]
    assert group.max_integer(shelf.stored) > 0 and 0 <= shelf.loaded <= 2 * shelf.stored


def test_arrays_leave_in_the_order_in_which_they_came(device):
    shelf = Shelf(device, TierBudget(1000, "host"))
    arrays = [device.put(np.full((10, 10), i, np.float32)) for i in range(4)]
    kept = [shelf.keep(array) for array in arrays]
    shelf.clear_for(100, 100)
    assert [each.array is None for each in kept] == [True, True, False, False]
    assert all((device.get(each.get()) == i).all() for i, each in enumerate(kept))
    assert (shelf.stored, shelf.loaded) == (800, 800)
    kept[0].drop()
    assert len(shelf._free[400]) == 1
    assert len(shelf.room(400)) == 100 and not shelf._free[400]
    kept.clear()
    shelf.clear_for(1000, 1000)
    assert shelf.stored == 800  # nobody wants the others any more
    with pytest.raises(CaseError, match=r"memory.fast_mb: one round of the network takes 0.002 MB"):
        shelf.clear_for(1000, 2000)


@pytest.mark.mpi_skip
def test_what_learning_takes_stays_below_the_limit(compiled):
    """Measured: what arrays take at most, beside what they take without a limit."""
    group, peaks = Group(MPI.COMM_SELF, compiled), {}
    policy = PolicyCase(dimension=8, hidden=8, layers=8)
    rows = 4 * 8000  # of a part: four states
    array_mb = 4e-6 * 8 * rows
    limit = 6 * array_mb
    for fast_mb in (0, limit):
        table = MemoryCase(fast_mb=fast_mb)
        case = msgspec.structs.replace(CASE, policy=policy, memory=table, train=TrainCase(steps=9))
        blocks = make_blocks(group, [random_graph(8000, 0.0005, 3)])
        tracemalloc.start()
        train_policy(group, case, MinimumVertexCover(), blocks, [])
        peaks[fast_mb] = 1e-6 * tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    addends = 256 * 8 * (8 + 16) * 8  # of the gradient: blocks, rounds, rows and columns of W, about
    beside = 4e-6 * (20 * rows + 2 * addends)  # codes, states and factors of the rows, too
    assert peaks[limit] < limit + beside < 0.6 * peaks[0]


def test_a_limit_that_is_too_small_or_for_another_network_is_refused(group):
    with pytest.raises(CaseError, match=r"one round of the network takes .* MB of a rank"):
        trained(group, POLICIES["default"], fast_mb=1e-3)
    with pytest.raises(CaseError, match=r'policy.model = "gin" keeps its rows in one tier'):
        trained(group, PolicyCase(model="gin"), fast_mb=1)
    case = {"graph.generator": "er", "graph.nodes": 9, "policy.model": "gin", "memory.fast_mb": 1}
    for learns in ({"run.task": "train"}, {"policy.weights": "train"}):
        with pytest.raises(CaseError, match=r'policy.model = "gin" keeps its rows in one tier'):
            check_names(build(case | learns))


@pytest.mark.mpi_skip
def test_plain_kernels_under_a_limit(compiled):
    alone = Group(MPI.COMM_SELF, compiled)
    plain = Group(MPI.COMM_SELF, HostDevice(compiled=False))
    wanted = trained(alone, POLICIES["default"])[0]
    assert trained(plain, POLICIES["default"], fast_mb=tight(plain))[0] == wanted
