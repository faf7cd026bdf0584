"""The learned partitioner: features by definition, cuts against brute force, clocks with a known optimum."""

import hashlib
from itertools import combinations_with_replacement

import numpy as np
import pytest
from helpers import edge_stream, listed, make_block, random_graph, small_integers, whole_rows
from hypothesis import given
from hypothesis import strategies as st
from mpi4py import MPI
from scipy.sparse import csr_array

from app.case.config import Case
from app.case.gnn import GnnCase
from app.case.graph import GraphCase
from app.case.run import ParallelCase
from app.comm.guard import digest
from app.device import HostDevice
from app.errors import GraphError, NumericsError
from app.gnn import work_clock
from app.gnn.balanced import Balanced, cut_by, layer_kinds, layer_widths, unlike
from app.gnn.classifier import Classifier
from app.gnn.training import fit
from app.gnn.work_clock import WorkClock
from app.graphs.generators.table import GENERATORS
from app.graphs.nodes.data import SPLITS, NodeData
from app.memory.tiers import TierBudget
from app.partition import balance as balance_module
from app.partition import cost as cost_module
from app.partition import features as features_module
from app.partition.assemble import assemble, gather_whole
from app.partition.balance import Balance, cuts_for, imbalance, predicted_cuts
from app.partition.cost import CostModel, from_arrays
from app.partition.cuts import best_cuts, least_maximum
from app.partition.even import even_count, even_rows, even_starts
from app.partition.features import block_features, row_features
from app.partition.generated import generate_set, with_shared_blocks
from app.partition.load import load_graphs
from app.partition.migrate import move_arrays, move_rows
from app.partition.recut import read_cost_model
from app.partition.rows import RowPartition, cut_blocks, partition_rows
from app.sparse.exchange import Exchange
from app.sparse.repartition import graph_of, repartition
from app.sparse.rowblock import RowBlock
from app.tasks.studies import passes

WORLD = MPI.COMM_WORLD
WIDTHS = [40, 16]


@pytest.fixture
def device():
    """Partitions never leave the host."""
    return HostDevice()


def skewed(group, n=1 << 12, seed=1, degree=16):
    """An R-MAT graph whose hubs come first, by rows. Ranks: all call."""
    stream = None
    if group.rank == 0:
        stream = GENERATORS["rmat_natural"](n, degree * n, (0.57, 0.19, 0.19), seed)
    graph, rows, _ = assemble(group, stream)
    return graph, rows


def cut_equally(group, graph, rows):
    """The graph by equal rows. Ranks: all call."""
    new = RowPartition(rows.n, rows.starts, cut_blocks(np.diff(rows.starts), group.size))
    return move_rows(group, graph, rows, new), new


def loads_of(costs, cuts):
    return np.diff(np.concatenate([[0], np.cumsum(costs)])[cuts])


# ---- features ---------------------------------------------------------------------------------------------


def features_by_definition(near, width, line):
    """Table 2 of ROC for one vertex with sorted neighbours."""
    runs = []
    for v in near:
        if runs and v == runs[-1][-1] + 1:
            runs[-1].append(v)
        else:
            runs.append([v])
    sizes = [len(run) for run in runs]
    accesses = [sum(-(-size * w // line) for size in sizes) for w in (1, width)]
    return [1, len(near), len(runs), *accesses]


def test_the_example_of_the_paper():
    # v1 with neighbours v3, v4, v6, v8 has three runs.
    near = np.array([3, 4, 6, 8])
    assert row_features(np.array([0, 4]), near, [100], 32).tolist() == [[[1, 4, 3, 3, 7 + 4 + 4]]]


@pytest.mark.parametrize("piece", [1, 7, 1 << 20])
@pytest.mark.parametrize("n", [1, 9, 60])
def test_features_are_those_of_the_definition(group, monkeypatch, n, piece):
    monkeypatch.setattr(features_module, "PIECE", piece)
    graph, rows, _ = assemble(group, edge_stream(random_graph(n, 0.4, n)) if group.rank == 0 else None)
    whole = gather_whole(group, graph, rows)
    for line in (16, 32):
        found = block_features(group, graph, rows, WIDTHS, line)
        for layer, width in enumerate(WIDTHS):
            wanted = np.zeros((len(rows.starts) - 1, 5), dtype=np.int64)
            for v in range(n):
                near = whole.indices[whole.indptr[v] : whole.indptr[v + 1]].tolist()
                block = np.searchsorted(rows.starts, v, side="right") - 1
                wanted[block] += features_by_definition(near, width, line)
            assert np.array_equal(found.blocks[:, layer], wanted)
    assert np.array_equal(found.of_ranks(rows.cuts).sum(axis=0), found.sums[-1])


# ---- cuts -------------------------------------------------------------------------------------------------


def least_by_trying(costs, ranks):
    """The least maximum over all ways to cut."""
    inner = combinations_with_replacement(range(len(costs) + 1), ranks - 1)
    return min(loads_of(costs, [0, *each, len(costs)]).max() for each in inner)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=9), st.integers(1, 4))
def test_cuts_are_the_best_there_are(costs, ranks):
    costs = np.array(costs, dtype=np.float64)
    cuts = best_cuts(costs, ranks)
    assert (cuts[0], cuts[-1], len(cuts)) == (0, len(costs), ranks + 1)
    assert (np.diff(cuts) >= 0).all()
    assert loads_of(costs, cuts).max() == pytest.approx(least_by_trying(costs, ranks), rel=1e-12)


def test_a_heavy_block_has_a_rank_of_its_own():
    assert best_cuts(np.array([1.0, 90, 1, 1, 1]), 3).tolist()[1:3] == [1, 2]
    assert least_maximum(np.array([0.0, 0, 0]), 2) == 0
    assert best_cuts(np.zeros(3), 2)[-1] == 3


# ---- the model --------------------------------------------------------------------------------------------

TRUE = np.array([[3e-6, 1e-7, 0, 2e-7, 5e-8], [1e-6, 4e-8, 3e-7, 0, 0]])  # seconds of each feature, by layer


def test_the_model_predicts_what_follows_its_law(group):
    graph, rows = skewed(group)
    features = block_features(group, graph, rows, WIDTHS, 16)
    model, draws = CostModel(features.widths, 16), np.random.default_rng(3)
    for _ in range(12):
        inner = np.sort(draws.integers(0, len(rows.starts), 3))
        x = features.of_ranks(np.array([0, *inner, len(rows.starts) - 1]))
        model.update(x, np.einsum("rlf,lf->rl", x, TRUE))
    assert (model.weights() >= 0).all()
    found, wanted = model.block_seconds(features), np.einsum("blf,lf->b", features.blocks, TRUE)
    assert np.abs(np.cumsum(found) / np.cumsum(wanted) - 1).max() < 0.02


def test_noise_never_makes_a_time_negative():
    draws = np.random.default_rng(0)
    model = CostModel((8,), 16)
    for _ in range(20):
        model.update(draws.integers(0, 1000, (3, 1, 5)), draws.random((3, 1)))
        assert (model.weights() >= 0).all()


def test_a_rank_without_rows_teaches_nothing():
    model, other = CostModel((8,), 16), CostModel((8,), 16)
    x, y = np.array([[[5, 9, 3, 3, 6]], [[0, 0, 0, 0, 0]]]), np.array([[2.0], [7.0]])
    model.update(x, y)
    other.update(x[:1], y[:1])
    assert np.array_equal(model.weights(), other.weights()) and model.count == 1
    assert not CostModel((8,), 16).weights().any()


@pytest.mark.parametrize("widths", [(8, 4), (0, 4)])  # 0: of a dense layer, which hears no neighbours
def test_a_saved_model_is_the_model(tmp_path, widths):
    model = CostModel(widths, 16)
    model.update(np.arange(20).reshape(2, 2, 5) + 1, np.array([[1.0, 2], [3, 4]]))
    np.savez(tmp_path / "m.npz", **model.to_arrays())
    with np.load(tmp_path / "m.npz", allow_pickle=False) as file:
        again = from_arrays(dict(file), "m.npz")
    assert digest(again.to_arrays()) == digest(model.to_arrays())
    assert np.array_equal(again.weights(), model.weights())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cost_gram": None}, "holds no cost model"),
        ({"cost_widths": np.array([16])}, "of 0 layers"),
        ({"cost_widths": np.array([16, -1])}, "is none"),
        ({"cost_widths": np.array([16, 3, 4])}, "would be right"),
        ({"cost_moment": np.zeros((1, 5), dtype=np.float32)}, "would be right"),
        ({"cost_count": np.array([np.nan])}, "not finite"),
    ],
)
def test_a_file_without_a_model_is_refused(change, message):
    arrays = {**CostModel((8,), 16).to_arrays(), **change}
    arrays = {name: array for name, array in arrays.items() if array is not None}
    with pytest.raises(GraphError, match=message) as caught:
        from_arrays(arrays, "w.npz")
    assert str(caught.value).startswith("w.npz: ") and "\n" not in str(caught.value)


def test_a_model_of_other_layers_is_refused(group):
    graph, rows = skewed(group, 256)
    features = block_features(group, graph, rows, [8], 16)
    with pytest.raises(GraphError, match="learned for layers of"):
        CostModel((9,), 16).block_seconds(features)


# ---- the clock whose optimum is known ---------------------------------------------------------------------


def by_features(features):
    """[blocks, layers] seconds that follow the model's law."""
    return np.einsum("blf,lf->bl", features.blocks, TRUE)


def by_place(features):
    """[blocks, layers] seconds that no sum of features gives: entries of the first blocks cost less."""
    blocks = len(features.sums) - 1
    entry = np.where(np.arange(blocks) < blocks // 8, 6e-8, 1.4e-7)
    return features.blocks[:, :, 0] * 2e-6 + features.blocks[:, :, 1] * entry[:, None]


def train_by(group, graph, rows, features, clock, epochs, ranks_seconds):
    """Imbalance above the optimum's by epoch, as the partition follows a simulated clock. Ranks: all call."""
    balance = Balance(group, rows, features, row_bytes=100)
    found = []
    for epoch in range(epochs):
        lo, hi = balance.rows.cuts[group.rank : group.rank + 2]
        found.append(loads_of(clock.sum(axis=1), balance.rows.cuts).max())
        new = balance.observe(ranks_seconds(clock[lo:hi].sum(axis=0), epoch), 10_000)
        if new is not None:
            balance.move(new, lambda rows: None)
    return np.array(found), balance


@pytest.mark.parametrize("clock", [by_features, by_place])
@pytest.mark.parametrize("even", [False, True])
def test_learned_cuts_come_within_three_percent_of_the_optimum(group, clock, even):
    graph, rows = skewed(group)
    if even:
        graph, rows = even_rows(group, graph, rows)
    features = block_features(group, graph, rows, WIDTHS, 16)
    seconds = clock(features)
    optimum = loads_of(seconds.sum(axis=1), best_cuts(seconds.sum(axis=1), group.size)).max()
    found, balance = train_by(group, graph, rows, features, seconds, 10, lambda own, epoch: own)
    assert found[-1] <= 1.03 * optimum
    if group.size > 1:
        equal_rows = cut_blocks(np.diff(rows.starts), group.size)
        assert found[-1] < 0.95 * loads_of(seconds.sum(axis=1), equal_rows).max()
        assert found[-1] <= found[0]
    # All ranks went the same way.
    cuts = group.gather_integers(balance.rows.cuts)
    assert (cuts == cuts[0]).all()


def test_what_was_learned_cuts_a_new_graph_of_the_family(group):
    graph, rows = skewed(group)
    features = block_features(group, graph, rows, WIDTHS, 16)
    _, balance = train_by(group, graph, rows, features, by_features(features), 6, lambda own, epoch: own)
    model = from_arrays(balance.saved(), "saved")
    graph, rows = skewed(group, 1 << 11, seed=9, degree=24)
    features = block_features(group, graph, rows, WIDTHS, 16)
    cuts = cuts_for(group, features, model)
    if group.rank == 0:
        assert np.array_equal(cuts, predicted_cuts(features, model, group.size))
    costs = by_features(features).sum(axis=1)
    least = loads_of(costs, best_cuts(costs, group.size)).max()
    assert loads_of(costs, cuts).max() <= 1.10 * least


def test_moves_stop_where_they_do_not_pay(group):
    graph, rows = skewed(group)
    graph, rows = cut_equally(group, graph, rows)
    features = block_features(group, graph, rows, WIDTHS, 16)
    clock = by_features(features)
    own = clock[rows.cuts[group.rank] : rows.cuts[group.rank + 1]].sum(axis=0)
    assert Balance(group, rows, features, 100).observe(own, 0) is None
    proposed = Balance(group, rows, features, 100).observe(own, 10**6)
    assert (proposed is None) == (group.size == 1)
    costly = Balance(group, rows, features, 100)
    costly.cost.rebuild_s = 1e9
    assert costly.observe(own, 10**6) is None
    # Two percent of noise around balanced cuts moves nothing.
    best = RowPartition(rows.n, rows.starts, best_cuts(clock.sum(axis=1), group.size))
    settled = Balance(group, best, features, 100)
    for epoch in range(6):
        own = clock[best.cuts[group.rank] : best.cuts[group.rank + 1]].sum(axis=0)
        noise = 1 + 0.01 * np.sin(17.0 * epoch + 5 * group.rank)
        assert settled.observe(own * noise, 10**6) is None


def test_imbalance_is_the_slowest_over_the_mean():
    assert imbalance(np.array([1.0, 1.0, 4.0])) == 2
    assert imbalance(np.array([[1.0, 3], [2, 2]])) == 1
    assert imbalance(np.zeros(3)) == 1


# ---- rows that move ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("exchange", ["auto", "gather", "halo", "staged"])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_moved_block_multiplies_to_the_same_bits(group, exchange, weighted):
    graph = random_graph(130, 0.1, 5, weighted)
    block = make_block(group, graph, exchange)
    X = small_integers(7, 130, 6) * np.float32(0.1)

    def product(block):
        X_own = np.zeros((block.n_own, 6), dtype=np.float32)
        X_own[: block.n_real] = X[block.lo : block.lo + block.n_real]
        # A rank whose weights are all one keeps none of them.
        matrices = [block.A, *(block.A_weights or [block.A, None])]
        products = Exchange(group, [block], [1], [0, block.n_own]).multiply(X_own, [matrices])
        return whole_rows(group, block, np.concatenate(products, axis=1))

    wanted, blocks = product(block), len(block.rows.starts) - 1
    for inner in ([0] * (group.size - 1), [blocks] * (group.size - 1), list(range(1, group.size))):
        new = RowPartition(130, block.rows.starts, np.array([0, *inner, blocks]))
        block = repartition(group, block, new)
        assert block.n_own == np.diff(new.offsets)[group.rank]
        assert block.n_real == new.row_counts()[group.rank]
        assert product(block).tobytes() == wanted.tobytes()


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("n", [1, 13, 100])
def test_arrays_move_with_their_rows(group, n, padded):
    old = partition_rows(n, group.size)
    blocks = len(old.starts) - 1
    new = RowPartition(n, old.starts, cut_blocks(np.arange(blocks) + 1, group.size))

    def held(rows):
        lo, hi = rows.offsets[group.rank : group.rank + 2] if padded else rows.range_of(group.rank)
        numbers = np.arange(lo, hi)
        return {
            "labels": numbers.astype(np.int32),
            "mask": numbers % 3 == 0,
            "X": (numbers[:, None] * 10 + np.arange(4)).astype(np.float32),
        }

    moved = move_arrays(group, held(old), old, new, padded)
    for name, array in held(new).items():
        assert moved[name].dtype == array.dtype and np.array_equal(moved[name], array)
    with pytest.raises(NumericsError, match="moving rows: X has"):
        move_arrays(group, {"X": np.zeros((n + 99, 1), np.float32)}, old, new, padded)


# ---- training whose rows move -----------------------------------------------------------------------------


def node_data(graph, rows, group, kind):
    """Features ("dense", "sparse" or "none"), labels and splits of this rank's rows, by global numbers."""
    lo, hi = rows.range_of(group.rank)
    n_own = int(np.diff(rows.offsets)[group.rank])
    numbers, held = np.arange(lo, lo + n_own), np.arange(lo, lo + n_own) < hi
    features = ((numbers[:, None] * 7 + np.arange(6)) % 5 * held[:, None]).astype(np.float32)
    masks = {name: (numbers % 3 == k) & held for k, name in enumerate(SPLITS)}
    counts = dict(zip(SPLITS, group.sum_integers(np.array([m.sum() for m in masks.values()])).tolist()))
    labels = np.where(held, numbers % 4, -1).astype(np.int32)
    multilabel = kind == "sparse"
    if multilabel:
        labels = (np.maximum(labels, 0)[:, None] >> np.arange(4) & 1).astype(np.uint8)
    given = {"dense": features, "sparse": csr_array(features), "none": None}[kind]
    return NodeData(
        features=given, labels=labels, labelled=held, **masks, classes=4, multilabel=multilabel,
        class_ids=np.arange(4), width=0 if given is None else 6, binary=False, counts=counts,
    )  # fmt: skip


def trained(group, kind, moves, epochs=5, model="gcn", budget=None, **keys):
    """Digest of weights and losses after some epochs, the classifier, its hook. Ranks: all call."""
    graph, rows = skewed(group, 520, 4, 6)
    data = node_data(graph, rows, group, kind)
    case = GnnCase(**{"model": model, "hidden": 8, "epochs": epochs, "evaluate_every": 2, **keys})
    block = RowBlock(group, graph, rows, width=8)
    classifier = Classifier(group, case, block, data, 5, budget=budget)
    hook = moves(classifier)
    found = fit(classifier, after_epoch=hook)
    return (
        digest({**found.weights, "loss": np.array([row["loss"] for row in found.records])}),
        classifier,
        hook,
    )


def move_about(classifier):
    """A hook that sends the rows elsewhere after every epoch."""

    def hook(epoch):
        group, rows = classifier.group, classifier.block.rows
        blocks = len(rows.starts) - 1
        weights = np.roll(np.arange(blocks) ** 2, 7 * epoch)
        classifier.move(RowPartition(rows.n, rows.starts, cut_blocks(weights, group.size)))

    return hook


def stay(classifier):
    """A hook that does nothing."""
    return lambda epoch: None


@pytest.mark.parametrize("kind", ["dense", "sparse", "none"])
def test_training_keeps_its_bits_wherever_the_rows_go(group, solo, kind):
    alone = trained(solo, kind, stay)[0]
    assert trained(group, kind, stay)[0] == alone
    moved, classifier, _ = trained(group, kind, move_about)
    assert moved == alone
    # What moved is what would have been dealt to these rows.
    wanted = node_data(None, classifier.block.rows, group, kind)
    for name in ("labels", "labelled", *SPLITS):
        found = getattr(classifier.data, name)
        assert found.dtype == getattr(wanted, name).dtype and np.array_equal(found, getattr(wanted, name))
    if kind != "none":
        dense = [X.toarray() if kind == "sparse" else X for X in (classifier.data.features, wanted.features)]
        assert np.array_equal(*dense)


def test_statistics_of_columns_follow_their_rows(group, solo):
    deep = {"model": "gcn2", "batch_norm": True}
    assert trained(group, "dense", move_about, **deep)[0] == trained(solo, "dense", stay, **deep)[0]


def test_training_that_follows_its_measurements_keeps_its_bits(group, solo, monkeypatch):
    wanted = trained(solo, "dense", stay, 12)[0]
    monkeypatch.setattr(balance_module, "FIRST_BYTES_S", 1e12)
    found, classifier, hook = trained(group, "dense", lambda each: Balanced(each).after_epoch, 12)
    assert found == wanted
    balance = hook.__self__.balance
    assert balance.features.widths == (6, 4)
    assert len(balance.history) == (10 if group.rank == 0 else 0)  # the last two epochs are not looked at
    assert (balance.model.weights() >= 0).all()
    assert np.array_equal(balance.rows.cuts, classifier.block.rows.cuts)


@pytest.mark.parametrize(("model", "kind", "kinds", "widths"), [
    ("gcn", "dense", ("gcn product", "gcn weights"), (6, 4)),
    ("gin", "sparse", ("gin weights", "gin weights"), (8, 4)), ("gat", "dense", ("gat", "gat"), (8, 4)),
])  # fmt: skip
def test_a_classifier_is_cut_by_a_model_of_its_layers(group, solo, model, kind, kinds, widths):
    def cut(classifier):
        block, line = classifier.block, features_module.line_of(classifier.device)
        assert (layer_kinds(classifier), layer_widths(classifier)) == (kinds, widths)
        features = block_features(group, graph_of(block), block.rows, list(widths), line)
        learned = CostModel(widths, line, kinds=kinds)
        learned.update(features.blocks, 1e-6 * features.blocks[:, :, :2].sum(axis=2))
        assert unlike(classifier, learned) == ""
        cut_by(classifier, learned)
        wanted = best_cuts(learned.block_seconds(features), group.size)
        assert np.array_equal(classifier.block.rows.cuts, wanted)
        learned.kinds = ("sage weights", kinds[1])
        assert f"learned for layers sage weights {widths[0]}" in unlike(classifier, learned)
        return stay(classifier)

    found = trained(group, kind, cut, 3, model)[0]
    assert found == trained(solo, kind, stay, 3, model)[0]


def test_the_widths_of_a_product_are_those_that_it_reads(group):
    """Dense features that are multiplied first, though the result is narrower."""
    wide = trained(group, "dense", stay, 1, first_product="live", hidden=4)[1]
    assert (layer_kinds(wide)[0], layer_widths(wide)) == ("gcn product", (6, 4))


def test_a_resumed_training_learns_from_its_own_epochs_alone(group, monkeypatch):
    """The clock of a new process begins where it goes on, not at the last look of the process before."""
    first = trained(group, "dense", lambda each: Balanced(each).after_epoch, 13)[2].__self__
    seen = []

    def resumed(classifier):
        balanced = Balanced(classifier)
        balanced.restore(first.state())
        clock = iter(np.ones(20))
        monkeypatch.setattr(classifier.engine.clock, "take", lambda: next(clock) * np.ones(2))
        monkeypatch.setattr(balanced.balance, "observe", lambda seconds, left: seen.append(seconds[0]))
        return lambda epoch: balanced.after_epoch(13 + epoch)

    trained(group, "dense", resumed, 17)
    assert seen == [pytest.approx(1 / 7), pytest.approx(1 / 10)]  # looks after epochs 20 and 30


def test_rows_move_under_a_limit_of_memory(group, solo, monkeypatch):
    """Where the rows that a rank would get do not fit its limit they stay."""
    wanted = trained(solo, "dense", stay)[0]
    monkeypatch.setattr(balance_module, "FIRST_BYTES_S", 1e12)
    engine = trained(group, "dense", stay)[1].engine
    held = int(group.max_integer(engine.n_own))
    least = next(limit for limit in range(64, 10**6, 64) if engine.fits(held, limit))
    assert least < 4 * held * engine.plan.columns
    for limit in (least, 2 * least):
        found, classifier, _ = trained(group, "dense", move_or_stay, budget=TierBudget(limit, "host"))
        assert found == wanted
        assert classifier.fits(classifier.block.rows)
        if classifier.engine.tiered:
            assert all(plan.peak_bytes <= limit for plan in classifier.engine.tiered.plans.values())
    starts = classifier.block.rows.starts
    every = RowPartition(520, starts, np.array([0] + [len(starts) - 1] * group.size))
    tight = trained(group, "dense", stay, budget=TierBudget(least, "host"))[1]
    assert tight.engine.fits(held, least) and not tight.engine.fits(held + 40, least)
    assert tight.fits(every) == (group.size == 1)


def move_or_stay(classifier):
    """move_about, but only to where every rank fits its limit."""

    def hook(epoch):
        rows = classifier.block.rows
        blocks = len(rows.starts) - 1
        weights = np.roll(np.arange(blocks) ** 2, 7 * epoch)
        new = RowPartition(rows.n, rows.starts, cut_blocks(weights, classifier.group.size))
        if classifier.fits(new):
            classifier.move(new)

    return hook


def test_the_clock_counts_work_by_layer(group, monkeypatch):
    seconds = iter(range(100))
    monkeypatch.setattr(work_clock.time, "process_time", lambda: float(next(seconds)))
    clock = WorkClock(group, 2)
    since = clock.now()  # 0
    group.processor_s += 3.5  # spent in exchanges meanwhile
    clock.add(1, since)  # 1
    assert clock.take().tolist() == [0, 1 - 3.5]
    assert clock.take().tolist() == [0, 0]


def test_exchanges_are_timed_only_where_somebody_asks(group):
    group.gather_host(np.zeros(1), [1] * group.size)
    assert group.processor_s is None
    group.processor_s = 0.0
    group.gather_host(np.zeros(1), [1] * group.size)
    assert group.processor_s >= 0


# ---- cuts of a new graph ----------------------------------------------------------------------------------


def cost_file(group, path):
    """A cost_model.json of some model, on a path that all ranks share. Ranks: all call."""
    graph, rows = skewed(group)
    features = block_features(group, graph, rows, WIDTHS, 16)
    _, balance = train_by(group, graph, rows, features, by_features(features), 6, lambda own, epoch: own)
    model = from_arrays(balance.saved(), "saved")
    if group.rank == 0:
        path.write_text(model.text())
    group.barrier()
    return model


def test_a_saved_model_cuts_graphs_when_they_are_loaded(group, shared_path):
    path = shared_path / "cost_model.json"
    model = cost_file(group, path)
    table = GraphCase(generator="rmat_natural", nodes=1500, d=9, count=2)
    plain = load_graphs(group, table, "x", Case())
    case = Case(parallel=ParallelCase(partition="learned", cost_model=str(path)))
    cut = load_graphs(group, table, "x", case)
    costs = 0
    for one, other in zip(plain, cut):
        assert np.array_equal(cut[0].rows.cuts, other.rows.cuts)
        whole, again = (gather_whole(group, item.graph, item.rows) for item in (one, other))
        assert np.array_equal(whole.indices, again.indices) and np.array_equal(whole.indptr, again.indptr)
        costs = costs + model.block_seconds(block_features(group, one.graph, one.rows, WIDTHS, 16))
    assert np.array_equal(cut[0].rows.cuts, best_cuts(costs, group.size))


def test_a_set_of_graphs_is_cut_for_all_of_them(group, shared_path):
    model = cost_file(group, shared_path / "cost_model.json")
    graphs = [generate_set(group, GraphCase(generator="ba", nodes=n), 1, "x")[0] for n in (100, 900)]
    shared = with_shared_blocks(group, graphs, model)
    assert np.array_equal(shared[0].rows.cuts, shared[1].rows.cuts)
    assert len(shared[0].rows.starts) == len(shared[1].rows.starts)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a cost_model.json"),
        ("{}", "not a cost_model.json"),
        ('{"format": 1, "more": 2}', "not a cost_model.json"),
        ("[" * 100_000, "not a cost_model.json"),
        (CostModel((8,), 16).text().replace('"format": 2', '"format": 3'), "newer Lockstep"),
        (CostModel((8,), 16, kinds=("a", "b")).text(), "1 short texts, or none, would be right"),
        (CostModel((8,), 16, kinds=("\x1b[2J",)).text(), "1 short texts, or none, would be right"),
        (CostModel((8,), 16).text().replace('"cost_count"', '"cost_counts"'), "not a cost_model.json"),
        (CostModel((8,), 16).text().replace("16", "-1"), "is none"),
    ],
)
def test_a_damaged_model_file_is_refused_by_all_ranks(group, shared_path, text, message):
    path = shared_path / "cost_model.json"
    if group.rank == 0:
        path.write_text(text)
    group.barrier()
    case = Case(parallel=ParallelCase(partition="learned", cost_model=str(path)))
    with pytest.raises(GraphError, match=message) as caught:
        read_cost_model(group, case)
    assert "\n" not in str(caught.value)
    assert read_cost_model(group, Case()) is None


def test_a_model_knows_the_layers_it_was_learned_for():
    kinds = ("gcn cached", "gcn weights")
    text = CostModel((8, 4), 16, kinds=kinds).text()
    model = cost_module.parse_cost_model(text, "m.json")
    assert model.kinds == kinds and model.text() == text
    assert model.unlike((8, 4), 16, kinds) == ""
    found = "it was learned for layers gcn cached 8, gcn weights 4; these are gin cached 8, gin weights 4"
    assert model.unlike((8, 4), 16, ("gin cached", "gin weights")) == found
    assert "these are gcn product 8, gcn weights 4" in model.unlike(
        (8, 4), 16, ("gcn product", "gcn weights")
    )
    assert "these are gcn weights 8" in model.unlike((8,), 16, ("gcn weights",))
    assert model.unlike((8, 4), 32, kinds).endswith("brings 16 numbers; here it brings 32")
    assert model.unlike((9,) * 9, 16, ("",) * 9).endswith("these are 9, 9, 9, 9, 9, 9, 9, 9, ...")
    assert CostModel((8, 4), 16).unlike((8, 4), 16, kinds) == ""  # of an older file it is not known


def test_a_model_file_that_is_too_large_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(cost_module, "LARGEST_BYTES", 10)
    (tmp_path / "m.json").write_text(CostModel((8,), 16).text())
    with pytest.raises(GraphError, match="more than 10 bytes"):
        cost_module.read_text(str(tmp_path / "m.json"))


# ---- blocks of equal rows and edges -----------------------------------------------------------------------


def test_even_blocks_are_a_function_of_the_graph(group, solo):
    graph, rows = skewed(group)
    alone, alone_rows = skewed(solo)
    starts = even_starts(group, graph)
    assert np.array_equal(starts, even_starts(solo, alone))
    assert (starts[0], starts[-1], len(starts)) == (0, graph.n, even_count(graph.n) + 1)
    assert (np.diff(starts) >= 0).all() and (starts % 8 == 0).all()
    entries = np.diff(alone.indptr[starts])
    octet = alone.degrees().reshape(-1, 8).sum(axis=1).max()
    assert entries.max() <= 2 * (2 * alone.edges) / (len(starts) - 1) + octet
    assert entries.max() < 0.7 * np.diff(alone.indptr[alone_rows.starts]).max()
    moved, even = even_rows(group, graph, rows)
    whole = gather_whole(group, moved, even)
    assert np.array_equal(whole.indices, alone.indices) and np.array_equal(whole.indptr, alone.indptr)


@pytest.mark.parametrize("n", [1, 7, 8, 9, 1000, 300_000])
def test_even_blocks_are_never_too_large(solo, n):
    star = listed(n, *[(0, v) for v in range(1, min(n, 2000))])
    graph, _, _ = assemble(solo, edge_stream(star))
    rows = np.diff(even_starts(solo, graph))
    assert rows.sum() == -(-n // 8) * 8
    assert rows.max() <= 1024 and (rows % 8 == 0).all()


@pytest.mark.parametrize("slow", [1.3, 2.0])
def test_a_slower_rank_gets_fewer_rows(group, slow):
    graph, rows = even_rows(group, *skewed(group))
    features = block_features(group, graph, rows, WIDTHS, 16)
    clock = by_place(features)
    speed = np.ones(group.size)
    speed[-1] = slow
    balance = Balance(group, rows, features, row_bytes=100)
    for _ in range(10):
        loads = loads_of(clock.sum(axis=1), balance.rows.cuts) * speed
        lo, hi = balance.rows.cuts[group.rank : group.rank + 2]
        new = balance.observe(clock[lo:hi].sum(axis=0) * speed[group.rank], 10_000)
        if new is not None:
            balance.move(new, lambda rows: None)
    assert imbalance(loads) <= 1.05


# ---- the input and the digest of the partition study -------------------------------------------------------


@pytest.mark.parametrize(("first", "rows", "width"), [(0, 100, 7), (45, 64, 40), (8, 0, 3)])
def test_rows_of_the_study_are_a_function_of_row_and_column(first, rows, width):
    by_definition = [
        [((7 * r + 13 * c) % 31 - 15) / 16 for c in range(width)] for r in range(first, first + rows)
    ]
    found = passes.numbered_rows(first, rows, width)
    assert found.dtype == np.float32 and found.shape == (rows, width) and found.tolist() == by_definition


def test_the_digest_of_rows_is_that_of_all_words(group):
    """Of the bits of row r and column c, 2 (r columns + c) + 1 times each, modulo 2^64, on any ranks."""
    block = make_block(group, random_graph(67, 0.1, 3))
    H = np.random.default_rng(2).normal(size=(67, 5)).astype(np.float32)
    own = np.zeros((block.n_own, 5), dtype=np.float32)
    own[: block.n_real] = H[block.lo : block.lo + block.n_real]
    total = sum((2 * i + 1) * word for i, word in enumerate(H.view(np.uint32).ravel().tolist())) % (1 << 64)
    expected = hashlib.sha256(np.array([total], dtype=np.uint64).tobytes()).hexdigest()
    assert passes.digest_of_rows(group, block, own) == expected
