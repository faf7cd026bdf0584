"""Training under a limit of memory: the bits of training without one, on any number of ranks."""

import msgspec
import numpy as np
import pytest
from helpers import crossed, growing_graph, make_block, small_integers

from app.case.gnn import GnnCase
from app.comm.guard import digest
from app.errors import CaseError
from app.gnn.engine import Engine
from app.gnn.features import make_features
from app.gnn.model import Draws, Model
from app.gnn.neighbours import Neighbours
from app.gnn.parameters import Parameters
from app.memory.plan import METHODS
from app.memory.tiers import TierBudget

GRAPH = growing_graph(150, 3, 5)
CLASSES, FEATURES = 5, 12
CASE = GnnCase(depth=8, hidden=16, dropout=0.25, input_dropout=0.0, first_product="live")


class Training:
    """A model on the graph with random labels, and its plain gradient descent."""

    def __init__(self, group, case):
        if not hasattr(group.device, "empty"):
            pytest.skip(f"{group.device.name} has no arrays for an engine")
        self.group, self.case = group, case
        self.model = Model(case, FEATURES, CLASSES)
        block = make_block(group, GRAPH)
        self.params = Parameters(group.device, self.model.shapes())
        begun = {
            name: value
            for name, value in self.model.constants().items()
            if name.endswith(("mean", "variance"))
        }
        self.params.draw_glorot(3, begun)
        mine = slice(block.lo, block.lo + block.n_real)
        X_own = np.zeros((block.n_own, FEATURES), dtype=np.float32)
        X_own[: block.n_real] = small_integers(7, GRAPH[0], FEATURES)[mine]
        labels, weight = np.zeros(block.n_own, dtype=np.int32), np.zeros(block.n_own, dtype=np.float32)
        labels[: block.n_real] = np.arange(GRAPH[0])[mine] % CLASSES
        weight[: block.n_real] = 1 / GRAPH[0]
        self.targets = group.device.put(labels), group.device.put(weight)
        self.features = make_features(group, X_own, block.own_counts)
        self.engine = Engine(Neighbours(group, block, False), block.rows, self.params, 0)
        self.engine.count_rows(np.arange(block.n_own) < block.n_real)
        with self.engine.dry():
            self.epoch(0)
            self.scores()

    def epoch(self, number):
        with self.engine.program("epoch"):
            Z = self.model.forward(self.engine, self.features, Draws(self.case, 11, number))
            loss = self.group.device.softmax_loss
            self.engine.apply("loss", "loss", [Z], [Z], lambda: loss(Z.array, *self.targets))
            self.model.backward(self.engine, Z)
            self.engine.reduce_gradients()

    def scores(self):
        with self.engine.program("evaluation"):
            Z = self.model.forward(self.engine, self.features, None)
            host = self.engine.apply(
                "loss", "scores", [Z], [], lambda: np.array(self.group.device.get(Z.array))
            )
            self.engine.free(Z)
        return host

    def run(self, budget=None, epochs=3):
        """Digest of the weights and of own scores after some epochs. Ranks: all call."""
        self.engine.allocate(budget)
        for number in range(1, epochs + 1):
            self.epoch(number)
            step = self.engine.gradient / np.float32(
                1e-9 + abs(self.group.device.get(self.engine.gradient)).max()
            )
            self.params.flat[...] = self.params.flat - np.float32(0.1) * step
        assert np.isfinite(self.group.device.get(self.params.flat)).all()
        return digest({**self.params.host(), "scores": self.scores()})

    def bytes(self):
        """What the arrays of an epoch take at most at once, of this rank."""
        lives = self.engine.plan.lifetimes["epoch"]
        steps = max(life.last for life in lives)
        alive = [
            sum(life.width for life in lives if life.first <= at <= life.last) for at in range(steps + 1)
        ]
        return 4 * self.engine.n_own * max(alive)


CASES = {
    "gcn": CASE,
    "residual": msgspec.structs.replace(CASE, residual=True, depth=8),
    "cached": msgspec.structs.replace(CASE, first_product="cached", normalisation="in_degree", depth=9),
    "gin": msgspec.structs.replace(CASE, model="gin", depth=5),
    "commnet": msgspec.structs.replace(CASE, model="commnet", depth=10),
    "sage": msgspec.structs.replace(CASE, model="sage", depth=9, layer_norm=True),
    "appnp": msgspec.structs.replace(CASE, model="appnp", depth=9, hops=2),
    "gcn2": msgspec.structs.replace(CASE, model="gcn2", depth=7, batch_norm=True),
    "gprgnn": msgspec.structs.replace(CASE, model="gprgnn", depth=9, hops=2),
    "sgformer": msgspec.structs.replace(CASE, model="sgformer", depth=2, heads=2),
}


@pytest.mark.parametrize(("name", "slow"), crossed(CASES, ["file", "host"]))
def test_two_fifths_of_the_bytes_and_the_same_bits(group, name, slow):
    case = CASES[name]
    free, bound = Training(group, case), Training(group, case)
    limit = int(0.4 * bound.bytes())
    assert bound.run(TierBudget(limit, slow)) == free.run()
    plan = bound.engine.tiered.plans["epoch"]
    tiers = bound.engine.tiered.tiers["epoch"]
    assert plan.exact and free.engine.tiered is None
    assert tiers.arena.peak == plan.peak_bytes <= limit < bound.bytes()
    assert tiers.loaded == 3 * plan.loaded_bytes > 0 and tiers.stored == 3 * plan.stored_bytes > 0
    assert bound.engine.seconds["memory"] > 0


@pytest.mark.parametrize("method", METHODS)
def test_every_method_moves_what_it_plans_and_changes_no_bit(group, method):
    free, bound = Training(group, CASES["residual"]), Training(group, CASES["residual"])
    least, most = bound.engine.bounds()
    assert (least, most) == (least // 64 * 64, bound.bytes())
    assert bound.run(TierBudget(least, "host", method=method)) == free.run()
    tiered = bound.engine.tiered
    plan = tiered.plans["epoch"]
    assert plan.method == method and plan.peak_bytes <= least
    assert tiered.moved("epoch") == (3 * plan.loaded_bytes, 3 * plan.stored_bytes)


def test_a_limit_that_is_not_passed_changes_nothing(group):
    training = Training(group, CASE)
    training.engine.allocate(TierBudget(4 * training.engine.plan.columns * training.engine.n_own))
    assert training.engine.tiered is None


def test_a_limit_that_cannot_be_kept_is_refused(group):
    training = Training(group, CASE)
    with pytest.raises(CaseError, match=r"alone touches .* bytes, which is the least limit that works"):
        training.engine.allocate(TierBudget(100))
