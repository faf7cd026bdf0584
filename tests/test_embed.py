"""Vectors of nodes without labels (gnn.level = "embed"): gradients, views, ranks, clusters, files, Python."""

import json
import signal
import sys

import networkx as nx
import numpy as np
import pytest
from embedded import PLAIN, WIDTH, drawn, embedder_on, reference_loss, reference_views
from jobs import mpirun, run_job
from mpi4py import MPI
from standin_device import StandInDevice

from app.case.file import build
from app.comm.group import Group
from app.device import HostDevice
from app.gnn.rehearsal import rehearse
from app.gnn.training import fit
from app.memory.tiers import TierBudget

alone = pytest.mark.mpi_skip
LAYERS = {
    "gcn": {}, "sage": {}, "gin": {}, "gat": {"embed.edge_drop": 0.3}, "gcn2": {}, "appnp": {"gnn.hops": 2},
    "sgc": {"gnn.hops": 2}, "commnet": {}, "dense": {}, "lightgcn": {"gnn.hops": 2},
}  # fmt: skip


def weights_of(embedder):
    """Values for all parameters, none of them at a special point."""
    draws = np.random.default_rng(3)
    return {
        name: draws.uniform(-1, 1, shape).astype(np.float32)
        for name, shape in embedder.params.shapes.items()
    }


def gradient_of(embedder, epoch=1):
    """The loss, and the gradient of all parameters by name."""
    loss = embedder.epoch(epoch)
    flat, shapes = embedder.device.get(embedder.engine.gradient), embedder.params.shapes
    return loss, {
        name: np.array(flat[part]).reshape(shapes[name]) for name, part in embedder.params.slices.items()
    }


# ---- loss, gradient ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "objective"), [*((model, "cca") for model in LAYERS), ("gcn", "barlow"), ("gin", "barlow")]
)
def test_loss_and_gradient_are_those_of_the_definition(group, model, objective):
    """Against central differences in float64."""
    settings = {"gnn.model": model, "embed.objective": objective} | LAYERS[model]
    embedder, case = embedder_on(group, settings), build(PLAIN | settings)
    values = weights_of(embedder)
    embedder.params.set(values)
    loss, found = gradient_of(embedder)
    graph, X = drawn()
    views = reference_views(case.embed, case.seed, 1, nx.to_numpy_array(graph), X)
    W = {name: each.astype(float) for name, each in values.items()}
    assert loss == pytest.approx(reference_loss(views, case, W), rel=2e-5)
    for name, array in W.items():
        for at in list(np.ndindex(array.shape))[::5]:
            held, ends = array[at], []
            for step in (1e-6, -1e-6):
                array[at] = held + step
                ends.append(reference_loss(views, case, W))
            array[at] = held
            assert found[name][at] == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=5e-3, abs=1e-4), name


# ---- ranks, devices, memory -------------------------------------------------------------------------------

WAYS = {
    "plain": ({}, {}),
    "sparse": ({"gnn.dropout": 0.2, "gnn.input_dropout": 0.2}, {"sparse": True}),
    "arcs": ({"gnn.model": "sage"}, {"arcs": True}),
    "weighted": ({"gnn.edge_weights": True, "gnn.batch_norm": True}, {}),
    "gat": ({"gnn.model": "gat", "gnn.dropout": 0.2}, {}),
    "kept": ({"embed.edge_drop": 0.0, "gnn.model": "sgc", "embed.objective": "barlow"}, {}),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_bits_are_those_of_one_rank(group, solo, way):
    settings, data = WAYS[way]
    settings = settings | {"gnn.epochs": 3, "gnn.keep": "best"}
    found = []
    for each, exchange in ((solo, "auto"), (group, "halo"), (group, "gather"), (group, "staged")):
        embedder = embedder_on(each, settings, exchange, **data)
        result = fit(embedder)
        own = np.ascontiguousarray(embedder.scores_own()[: embedder.block.n_real])
        rows = each.gather_host(own, embedder.block.rows.row_counts())
        found.append((rows, repr(result.records), result.best, embedder.agreement))
    for rows, *rest in found[1:]:
        assert np.array_equal(rows, found[0][0])
        assert rest == list(found[0][1:])


@alone
@pytest.mark.parametrize("way", ["plain", "sparse", "gat", "weighted"])
def test_every_device_makes_the_same_bits(way):
    settings, data = WAYS[way]
    found = []
    for device in (HostDevice(), HostDevice(compiled=False), StandInDevice()):
        embedder = embedder_on(Group(MPI.COMM_SELF, device), settings, **data)
        found.append((*gradient_of(embedder), embedder.scores_own()))
    for loss, gradient, rows in found[1:]:
        assert loss == found[0][0]
        assert all(np.array_equal(gradient[name], found[0][1][name]) for name in gradient)
        assert np.array_equal(rows, found[0][2])


def test_rows_may_move_between_epochs(group, solo):
    from app.partition.rows import RowPartition

    moved, one = (embedder_on(each, {"gnn.epochs": 2}) for each in (group, solo))
    rows = moved.block.rows
    draws, last = np.random.default_rng(2), len(rows.starts) - 1
    cuts = np.array([0, *sorted(draws.integers(0, last + 1, group.size - 1)), last])
    moved.epoch(1)
    moved.move(RowPartition(rows.n, rows.starts, cuts))
    assert gradient_of(moved)[0] == gradient_of(one)[0]


@alone
@pytest.mark.parametrize("limit", [4 * 64 * 30, 4 * 64 * 44])
def test_under_a_limit_of_memory_no_bit_changes(limit):
    host = Group(MPI.COMM_SELF, HostDevice())
    settings = {"gnn.epochs": 3, "gnn.hidden": 8}
    wanted = fit(embedder_on(host, settings)).weights
    limited = embedder_on(host, settings, budget=TierBudget(limit))
    assert limited.engine.tiered
    assert all(np.array_equal(each, wanted[name]) for name, each in fit(limited).weights.items())


@alone
@pytest.mark.parametrize("edge_drop", [0.0, 0.3])
def test_estimates_are_of_what_runs(edge_drop):
    host = Group(MPI.COMM_SELF, HostDevice())
    embedder = embedder_on(host, {"embed.edge_drop": edge_drop, "gnn.model": "gcn"})
    sizes = embedder.block.n_own, WIDTH, True, embedder.classes
    engine = rehearse(host.device, embedder.case, *sizes)
    told = [
        {name: [(each.kind, each.name, each.exchanges) for each in some] for name, some in of.items()}
        for of in (engine.recorded, embedder.engine.recorded)
    ]
    assert told[0] == told[1]
    assert engine.plan.columns == embedder.engine.plan.columns
