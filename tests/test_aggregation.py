"""The aggregators of PNA: compiled and plain ones have equal bits, and are those of the definition."""

import networkx as nx
import numpy as np
import pytest
from conftest import WORLD
from mpi4py import MPI
from scipy.sparse import random_array
from standin_device import StandInDevice

from app import classify
from app.case.gnn import GnnCase
from app.device import HostDevice
from app.errors import CaseError
from app.gnn.layers.pna import _refuse_large
from app.gnn.saved import load_model
from app.numerics.aggregation import EPSILON, MOST_ROWS, row_names

N = 40


@pytest.mark.mpi_skip
@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("k", [1, 7, 16, 41])
def test_aggregators_have_the_bits_of_the_plain_ones(compiled, k, kind):
    """Rows of no entry, ties, columns in two tiles; and the first of equal ones is named."""
    draws = np.random.default_rng(k)
    A = random_array((N, N), density=0.3, format="lil", rng=draws)
    A[[0, 7, N - 1]] = 0
    A = A.tocsr()
    A.sort_indices()
    S = draws.integers(-2, 3, (N, k)).astype(np.float32) * np.float32(1.7) + np.float32(1000)
    D = draws.normal(size=(N, 4 * k)).astype(np.float32)
    names, found = row_names(5, N), []
    assert len(np.unique(names)) == N and np.isfinite(row_names(MOST_ROWS - 3, 3)).all() and names.min() >= 2
    for device in (compiled, HostDevice(compiled=False), StandInDevice()):
        put, get = device.put, device.get
        tiles = [(A[:, :15], slice(0, 15)), (A[:, 15:], slice(15, N))]
        patterns = []
        for tile, at in tiles:
            parts = tile.indptr.astype(kind), tile.indices.astype(kind), None, tile.shape
            patterns.append((device.aggregation_pattern(device.csr(*parts)), at))
        V, T, F = (put(np.empty((N, width), np.float32)) for width in (4 * k, 2 * k + 1, 7 * k))
        E, dS = np.concatenate([S, names[:, None]], axis=1), put(np.zeros((N, k), np.float32))
        device.aggregate_begin(V, T)
        for pattern, at in patterns:
            device.aggregate_add(pattern, put(np.ascontiguousarray(E[at])), V, T)
        device.aggregate_finish(V, T)
        device.aggregate_pack(put(D), V, T, F)
        back = A.T.tocsr()
        back.sort_indices()
        whole = device.csr(back.indptr.astype(kind), back.indices.astype(kind), None, back.shape)
        device.aggregate_back(device.aggregation_pattern(whole), F, put(S), put(names), dS)
        found.append([np.array(get(each)) for each in (V, T, F, dS)])
    for other in found[1:]:
        assert all(np.array_equal(one, two) for one, two in zip(found[0], other))
    V, T, _, dS = found[0]
    wanted = np.zeros((N, k))
    for row in range(N):
        near = A.indices[A.indptr[row] : A.indptr[row + 1]]
        x, d = S[near].astype(float), D[row].astype(float).reshape(4, k)
        if not len(near):
            assert not V[row].any()
            continue
        dev = np.sqrt(x.var(axis=0) + EPSILON)
        assert np.allclose(
            V[row], np.concatenate([x.mean(0), x.max(0), x.min(0), dev]), rtol=1e-4
        )  # about 1000
        first = near[x.argmax(axis=0)], near[x.argmin(axis=0)]
        assert np.array_equal(T[row], [*names[first[0]], *names[first[1]], len(near)])
        wanted[near] += (d[0] + d[3] * (x - x.mean(axis=0)) / dev) / len(near)
        for part, who in zip((1, 2), first):
            np.add.at(wanted, (who, np.arange(k)), d[part])
    assert np.allclose(dS, wanted, rtol=1e-4, atol=1e-4)


def test_weights_keep_the_mean_of_the_training_graph(shared_path):
    graph, X = nx.gnm_random_graph(40, 100, seed=3), np.random.default_rng(2).normal(size=(40, 3))
    asked = {
        "gnn.model": "pna",
        "gnn.hidden": 5,
        "gnn.epochs": 3,
        "gnn.decayed": "all",
        "graph.splits": "random",
    }
    both = asked | {"parallel.spatial": WORLD.size, "gnn.members": 2}
    found = classify(graph, X, np.arange(40) % 2, settings=both, comm=WORLD)
    alone = classify(graph, X, np.arange(40) % 2, settings=both | {"parallel.spatial": 1}, comm=MPI.COMM_SELF)
    assert found.digest == alone.digest
    path = str(shared_path / "weights.npz")
    if WORLD.rank == 0:
        found.save(path)
    WORLD.Barrier()
    mean = np.log([1 + d for _, d in graph.degree]).mean()
    for arrays in load_model(path).members:
        kept = [each for name, each in arrays.items() if "log_degree" in name]
        assert len(kept) == 2 and np.allclose(kept, mean, rtol=1e-6)
    told = {"gnn.epochs": 0}
    star = nx.star_graph(30)  # another mean, which is not asked
    assert len(classify(star, np.ones((31, 3)), weights=path, settings=told, comm=WORLD).predicted) == 31


@pytest.mark.mpi_skip
def test_what_pna_is_not_for_is_refused():
    class Large:
        n, max_degree = MOST_ROWS + 1, 3

    with pytest.raises(CaseError, match=r"gnn: pna: 1,065,353,217 nodes; at most"):
        _refuse_large(Large())
    graph, asked = nx.path_graph(9), {"gnn.model": "pna", "gnn.epochs": 1, "graph.splits": "random"}
    with pytest.raises(CaseError, match=r"gnn\.edge_weights: is not read by pna"):
        classify(graph, None, np.arange(9) % 2, settings=asked | {"gnn.edge_weights": True})
    assert GnnCase(model="pna").model == "pna"
