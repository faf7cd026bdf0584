"""Features in the slow tier: pieces of the rows as tensors of the plan, with the bits of whole features."""

from itertools import cycle, pairwise

import numpy as np
import pytest
from helpers import by_one, growing_graph, make_block, small_integers

from app.case.gnn import GnnCase
from app.comm.guard import digest
from app.errors import CaseError
from app.gnn import pieces as pieces_module
from app.gnn.classifier import Classifier
from app.gnn.pieces import MOST_PIECES, PiecedFeatures, cut_rows, most_rows, step_of
from app.gnn.training import fit
from app.graphs.nodes.data import SPLITS, NodeData
from app.memory.plan import METHODS
from app.memory.slow_rows import SlowRows, _map_of
from app.memory.tiers import TierBudget
from app.partition.rows import RowPartition, block_count, block_starts, partition_rows

N, FEATURES, CLASSES, EPOCHS = 520, 24, 3, 2
GRAPH = growing_graph(N, 3, 5)
BASE = {"hidden": 8, "epochs": EPOCHS, "evaluate_every": 2, "dropout": 0.25, "input_dropout": 0.0}
MODELS = {
    "gcn, kept product": {"model": "gcn"},
    "gcn, dropped features": {"model": "gcn", "input_dropout": 0.5, "hidden": 4},
    "gcn, product first": {"model": "gcn", "first_product": "live", "hidden": 16},
    "gcn, dropped, product first": {"model": "gcn", "input_dropout": 0.5, "hidden": 16},
    "gcn, the shortcut": {"model": "gcn", "first_product": "mg_gcn", "normalisation": "in_degree"},
    "gin, kept product": {"model": "gin", "depth": 3},
    "gin, dropped features": {"model": "gin", "input_dropout": 0.5, "hidden": 16},
    "gin, weights first": {"model": "gin", "input_dropout": 0.5, "hidden": 4},
    "sage, kept product": {"model": "sage", "layer_norm": True},
    "commnet, product first": {"model": "commnet", "input_dropout": 0.5, "hidden": 16},
    "commnet, weights first": {"model": "commnet", "input_dropout": 0.5, "hidden": 4},
    "sgc, kept power": {"model": "sgc", "hops": 3},
    "appnp": {"model": "appnp", "depth": 1, "hops": 2, "input_dropout": 0.5},
    "gat": {"model": "gat", "heads": 2, "input_dropout": 0.5},
    "gatv2": {"model": "gatv2", "heads": 2, "input_dropout": 0.5},
    "residual": {"layers": ("gcn 8 residual", "gcn 8 residual", "gcn"), "feature_rows": "as_given"},
}


def data_of(block, n=N):
    """Features, labels and splits of this rank's rows."""
    mine = slice(block.lo, block.lo + block.n_real)
    X = np.zeros((block.n_own, FEATURES), dtype=np.float32)
    X[: block.n_real] = small_integers(7, n, FEATURES)[mine]
    labels = np.full(block.n_own, -1, dtype=np.int32)
    labels[: block.n_real] = np.arange(n)[mine] % CLASSES
    split = np.full(block.n_own, -1)
    split[: block.n_real] = np.arange(n)[mine] % 3
    flags = {name: split == number for number, name in enumerate(SPLITS)}
    counts = {name: len(range(number, n, 3)) for number, name in enumerate(SPLITS)}
    return NodeData(
        X, labels, labels >= 0, **flags, classes=CLASSES, multilabel=False, class_ids=np.arange(CLASSES),
        width=FEATURES, binary=False, counts=counts,
    )  # fmt: skip


def made(group, settings, budget=None):
    """A classifier that has not trained yet. Ranks: all call."""
    if not hasattr(group.device, "empty"):
        pytest.skip(f"{group.device.name} has no arrays for an engine")
    block = make_block(group, GRAPH)
    return Classifier(group, GnnCase(**{**BASE, **settings}), block, data_of(block), 3, budget=budget)


def trained(group, settings, budget=None):
    """Digest of weights and scores, and the classifier. Ranks: all call."""
    classifier = made(group, settings, budget)
    found = fit(classifier)
    scores = group.gather_host(classifier.scores_own(), [int(each) for each in classifier.block.own_counts])
    return digest({**found.weights, "scores": scores}), classifier


def limit_of(group, settings, share):
    """A share of what rows and features of the largest rank take together, but enough for every operation."""
    classifier = made(group, settings)
    whole = group.max_integer(classifier.engine.n_own * classifier._bytes_of_row())
    least = trained_least(group, settings)
    return max(least, int(share * whole)), whole


def trained_least(group, settings):
    """The least limit that works, as the refusal of one that does not says it."""
    with pytest.raises(CaseError, match="least limit that works") as refused:
        made(group, settings, TierBudget(64))
    return round(1e6 * float(str(refused.value).rpartition("memory.fast_mb=")[2].rstrip(")")))


@pytest.mark.parametrize(("name", "slow"), list(zip(MODELS, cycle(("file", "host")))))
def test_the_bits_of_whole_features(group, single, name, slow):
    settings = MODELS[name]
    wanted = by_one(lambda: trained(single, settings)[0])
    limit, whole = limit_of(group, settings, 0.5)
    found, classifier = trained(group, settings, TierBudget(limit, slow))
    assert found == wanted
    assert isinstance(classifier.features, PiecedFeatures)
    plan, tiers = classifier.engine.tiered.plans["epoch"], classifier.engine.tiered.tiers["epoch"]
    read = {key for each in plan.epoch.operations for key in each.reads}
    assert any(" X " in f" {key}" for key in read)
    assert tiers.arena.peak <= plan.peak_bytes <= limit < whole
    starts = sum(plan.epoch.bytes_of(plan.epoch.set_of([name])) for name in plan.start)
    assert tiers.stored == EPOCHS * plan.stored_bytes
    assert EPOCHS * plan.loaded_bytes <= tiers.loaded <= EPOCHS * (plan.loaded_bytes + starts)


@pytest.mark.parametrize("method", METHODS)
def test_every_method(group, single, method):
    settings = MODELS["gcn, dropped features"]
    wanted = by_one(lambda: trained(single, settings)[0])
    found, classifier = trained(
        group, settings, TierBudget(limit_of(group, settings, 0.4)[0], "host", "", method)
    )
    assert found == wanted and classifier.engine.tiered.plans["epoch"].method in (method, METHODS[1])


def test_features_stay_on_the_device_where_they_fit(group):
    whole = limit_of(group, MODELS["gcn, kept product"], 0.5)[1]
    classifier = made(group, MODELS["gcn, kept product"], TierBudget(whole, "host"))
    assert not isinstance(classifier.features, PiecedFeatures) and classifier.engine.tiered is None


@pytest.mark.parametrize("feature_rows", ["as_given", "sum_to_one"])
def test_the_files_of_features_hold_what_is_moved(group, single, feature_rows):
    """Rows go to other ranks between epochs, their features with them."""
    settings = {**MODELS["gin, kept product"], "feature_rows": feature_rows}
    wanted = by_one(lambda: trained(single, settings)[0])
    block = make_block(group, GRAPH)
    budget = TierBudget(limit_of(group, settings, 0.9)[0], "file")
    classifier = Classifier(group, GnnCase(**{**BASE, **settings}), block, data_of(block), 3, budget=budget)
    assert isinstance(classifier.features, PiecedFeatures)
    cuts = [classifier.block.rows.cuts]

    def move(epoch):
        weights = np.arange(block_count(N)) if epoch % 2 else np.ones(block_count(N), dtype=np.int64)
        new = partition_rows(N, group.size, weights)
        if classifier.fits(new):
            classifier.move(new)
        cuts.append(classifier.block.rows.cuts)
        in_pieces = isinstance(classifier.features, PiecedFeatures)
        assert not in_pieces or _map_of(classifier.data.features) is not None
        assert np.array_equal(classifier.data.features, data_of(classifier.block).features)

    found = fit(classifier, after_epoch=move)
    assert group.size == 1 or any((a != b).any() for a, b in pairwise(cuts))
    scores = classifier.scores_own()
    counts = [int(each) for each in classifier.block.own_counts]
    assert digest({**found.weights, "scores": group.gather_host(scores, counts)}) == wanted


def test_ranks_without_rows(group, single):
    """Two blocks of rows: of three ranks one has none, and rows may move to it."""
    graph, settings = growing_graph(16, 3, 5), MODELS["gcn, kept product"]

    def training(group, budget=None):
        if not hasattr(group.device, "empty"):
            pytest.skip(f"{group.device.name} has no arrays for an engine")
        block = make_block(group, graph)
        return Classifier(group, GnnCase(**{**BASE, **settings}), block, data_of(block, 16), 3, budget=budget)

    wanted = by_one(lambda: digest(fit(training(single)).weights))
    free = training(group)
    whole = group.max_integer(free.engine.n_own * free._bytes_of_row())
    classifier = training(group, TierBudget(int(0.95 * whole), "host"))
    assert isinstance(classifier.features, PiecedFeatures) and classifier.engine.pieces
    moved = []

    def move(epoch):
        new = RowPartition(16, classifier.block.rows.starts, np.array([0] * group.size + [2]))
        moved.append(classifier.fits(new))
        if moved[-1]:
            classifier.move(new)

    assert digest(fit(classifier, after_epoch=move).weights) == wanted
    assert len(set(group.gather_texts(str(moved)))) == 1


# ---- pieces -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 8, 100, 520, 5000, 300_000])
@pytest.mark.parametrize("ranks", [1, 2, 3, 7])
def test_pieces_are_whole_subtrees_and_few(n, ranks):
    rows = partition_rows(n, ranks)
    for rank in range(ranks):
        first, last = int(rows.cuts[rank]), int(rows.cuts[rank + 1])
        own = rows.starts[first : last + 1] - rows.starts[first]
        cut = cut_rows(own, first, len(rows.starts) - 1)
        assert 1 <= len(cut.rows) <= MOST_PIECES + 1
        ends = [0, *(each.stop for each in cut.rows)]
        assert [each.start for each in cut.rows] == ends[:-1] and ends[-1] == own[-1]
        assert cut.most <= most_rows(int(own[-1]), rows.starts)
        assert sum(len(each) for each in cut.spans) == len(cut.roots)
        for at, starts, spans in zip(cut.rows, cut.starts, cut.spans):
            assert starts[0, 0] == 0 and starts[0, -1] == at.stop - at.start
            assert [hi for _, hi, _ in spans][-1:] in ([], [starts.shape[1] - 1])


def test_a_step_is_a_power_of_two():
    steps = [step_of(blocks) for blocks in (0, 1, 8, 9, 16, 17, 256, 300)]
    assert steps == [1, 1, 1, 2, 2, 4, 32, 64]
    assert most_rows(24, block_starts(520, block_count(520))) == 8


@pytest.mark.mpi_skip
@pytest.mark.parametrize("slow", ["file", "host"])
def test_rows_that_are_there_already(solo, slow, monkeypatch):
    monkeypatch.setattr("app.memory.slow_rows.PIECE_BYTES", 100)
    X = small_integers(1, 50, 7).astype(np.float32)
    rows = SlowRows.of(X, solo.device, TierBudget(1, slow))
    assert np.array_equal(rows.array, X)
    assert (rows.array is X) == (slow == "host" and solo.device.xp is np)
    again = SlowRows.of(rows.array, solo.device, TierBudget(1, slow))
    assert np.shares_memory(again.array, rows.array) == (slow == "file" or solo.device.xp is np)
    again.done()
    assert np.array_equal(again.array, X)
    empty = SlowRows.empty((5, 3), solo.device, TierBudget(1, slow))
    assert empty.array.shape == (5, 3) and empty.array.flags.writeable
    assert pieces_module.MOST_PIECES == 8
