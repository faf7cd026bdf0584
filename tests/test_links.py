"""Link prediction: scores of triples and their gradients, filtered ranks, the same bits for any partition."""

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from data import data_dir, needs_data
from mpi4py import MPI

from app.case.rgcn import RgcnCase
from app.comm.group import Group
from app.comm.guard import digest
from app.device import HostDevice
from app.errors import CaseError
from app.gnn.rgcn.links import DECODERS, loss_of, make_decoder, train_links
from app.gnn.rgcn.negatives import draw_wrong
from app.gnn.rgcn.queries import Query, best_ends
from app.gnn.rgcn.ranks import filtered_ranks, random_summary, rank_learned, summary
from app.gnn.rgcn.sampled import draw_candidates
from app.gnn.rgcn.scorers import SCORERS
from app.gnn.rgcn.softmax import Queries, groups_of_blocks
from app.gnn.rgcn.split import Split, split_triples
from app.graphs.triples.data import TEST, TRAIN, VALID, Triples, read_triples_npz
from app.tasks.links import _say_split


def make_triples(nodes=40, relations=4, count=150, seed=1):
    draws = np.random.default_rng(seed)
    ends = draws.integers(0, nodes, (2, count)).astype(np.int32)
    r = np.minimum(draws.geometric(0.5, count) - 1, relations - 1).astype(np.int32)
    return Triples("t", nodes, relations, ends[0], r, ends[1])


def test_a_split_holds_every_triple_once():
    triples = make_triples()
    split = split_triples(triples, 0.2, 3)
    both = np.concatenate([split.train, split.test])
    whole = np.stack([triples.subject, triples.relation, triples.object], axis=1)
    assert np.array_equal(np.unique(both, axis=0), np.unique(whole, axis=0))
    assert len(both) == len(np.unique(both, axis=0)) and len(split.test) == round(0.2 * len(both))
    assert (np.diff(split.train[:, 1]) >= 0).all()
    with pytest.raises(CaseError, match=r"rgcn.held_out"):
        split_triples(make_triples(count=2), 0.01, 1)


def test_sets_that_are_given_are_taken():
    triples = make_triples(count=100)
    sets = np.repeat(np.array([TRAIN, VALID, TEST], dtype=np.uint8), [70, 10, 20])
    rows = triples.rows()
    split = split_triples(replace(triples, sets=sets), 0.3, 3, 0.2)
    for found, wanted in ((split.train, rows[:70]), (split.valid, rows[70:80]), (split.test, rows[80:])):
        assert np.array_equal(np.unique(found, axis=0), np.unique(wanted, axis=0))
    drawn = split_triples(replace(triples, sets=np.where(sets == VALID, TRAIN, sets)), 0.3, 3, 0.25)
    learned = np.unique(rows[:80], axis=0)
    assert len(drawn.valid) == round(0.25 * len(learned)) and np.array_equal(drawn.test, split.test)
    both = np.concatenate([drawn.train, drawn.valid])
    assert np.array_equal(np.unique(both, axis=0), learned) and len(both) == len(learned)
    none_to_rank = replace(triples, sets=np.where(sets == VALID, VALID, TRAIN))
    assert len(split_triples(none_to_rank, 0.3, 3).test) and len(split_triples(none_to_rank, 0.3, 3).valid)
    with pytest.raises(CaseError, match=r"of 0 triples; some, not all"):
        split_triples(replace(triples, sets=np.full(100, TEST, dtype=np.uint8)), 0.1, 3)


def sums_of(device, triples, E, D, g, starts):
    """Scores, sums by relation, and sums by node of two ranges of nodes, on the host."""
    E, D, g = device.put(E), device.put(D), device.put(g)
    found = [device.triple_scores(triples, E, D), device.triple_relation_sums(starts, triples, g, E)]
    found += [device.triple_node_sums(triples, g, E, D, lo, hi) for lo, hi in ((0, 12), (12, 30), (5, 5))]
    return [np.asarray(device.get(each)) for each in found]


@pytest.mark.parametrize("d", [1, 7, 16, 130])
@pytest.mark.parametrize("count", [0, 1, 3, 9, 200])
@pytest.mark.mpi_skip
def test_sums_over_triples_are_chains_in_their_order(device, monkeypatch, count, d):
    """On every device and for pieces of any size, bit for bit."""
    draws = np.random.default_rng(count + d)
    nodes, starts = draws.integers(0, 30, (2, count)), np.sort(draws.integers(0, count + 1, 4))
    starts = np.concatenate([[0], starts, [count]])
    relation = np.repeat(np.arange(5), np.diff(starts))
    triples = np.stack([nodes[0], relation, nodes[1]]).astype(np.int32)
    E, D, g = (draws.normal(size=shape).astype(np.float32) for shape in ((30, d), (5, d), count))
    wanted = [np.zeros(count, np.float32), np.zeros((5, d), np.float32), np.zeros((30, d), np.float32)]
    for k in range(d):
        wanted[0] += E[triples[0], k] * D[relation, k] * E[triples[2], k]
    for t, (s, r, o) in enumerate(triples.T):
        wanted[1][r] += g[t] * E[s] * E[o]
    for near, far in ((0, 2), (2, 0)):
        for t in range(count):
            wanted[2][triples[near, t]] += D[relation[t]] * E[triples[far, t]] * g[t]
    wanted[2:] = wanted[2][:12], wanted[2][12:], wanted[2][5:5]
    for most in (1, 4 * d, 40 * d, 1 << 22):
        monkeypatch.setattr("app.numerics.distmult.PIECE_BYTES", {True: most, False: most})
        for found, right in zip(sums_of(device, triples, E, D, g, starts), wanted):
            assert found.shape == right.shape and found.tobytes() == right.tobytes()


def test_one_end_of_a_wrong_triple_is_that_of_the_right_one():
    train = split_triples(make_triples(), 0.1, 1).train
    wrong = draw_wrong(1, 5, train, 40, 3)
    assert wrong.shape == (len(train), 3, 2) and wrong.min() >= 0 and wrong.max() < 40
    assert (wrong == train[:, None, ::2]).any(axis=2).all()
    assert np.array_equal(wrong, draw_wrong(1, 5, train, 40, 3))
    assert not np.array_equal(wrong, draw_wrong(1, 6, train, 40, 3))


def score(scorer, *rows):
    """f(s, r, o) of rows [..., d] of s, r and o, in float64, from the definitions.

    With "loops" behind the scorer rows have a column more: numbers of nodes, and what relations add where
    these are equal.
    """
    if scorer.endswith("loops"):
        *rows, loops = *(each[..., :-1] for each in rows), [each[..., -1] for each in rows]
        return score(scorer.split()[0], *rows) + loops[1] * (loops[0] == loops[2])
    h = rows[0].shape[-1] // 2
    if scorer in ("complex", "rotate"):
        rows = [each[..., :h] + 1j * each[..., h:] for each in rows]
    subject, relation, object_ = rows
    if scorer == "rotate":
        return -(np.abs(subject * relation / np.abs(relation) - object_) ** 2).sum(axis=-1)
    if scorer == "transe":
        return -((subject + relation - object_) ** 2).sum(axis=-1)
    return (subject * relation * object_.conj()).sum(axis=-1).real


def sigmoid_loss(scorer, E, D, train):
    """The mean logistic loss of the triples and of two wrong ones each, in float64."""
    ends = np.concatenate([train[:, None, ::2], draw_wrong(1, 1, train, len(E), 2)], axis=1)
    f = score(scorer, E[ends[..., 0]], D[train[:, 1]][:, None], E[ends[..., 1]])
    f += MARGIN * (scorer.split()[0] in ("rotate", "transe"))
    sign = np.ones(f.shape)
    sign[:, 0] = -1
    return np.log1p(np.exp(sign * f)).mean()


def softmax_loss(scorer, E, D, train):
    """Minus the mean logarithm of how likely the right node is, at both ends of the triples, in float64."""
    s, r, o = train.T
    total = 0.0
    for f, right in (
        (score(scorer, E[s][:, None], D[r][:, None], E[None]), o),
        (score(scorer, E[None], D[r][:, None], E[o][:, None]), s),
    ):
        total += (np.log(np.exp(f).sum(axis=1)) - f[np.arange(len(f)), right]).mean() / 2
    return total


def sampled_loss(scorer, E, D, train):
    """softmax_loss with wrong nodes among DRAWN candidates alone, each of which stands for n / DRAWN."""
    queries = Queries.of(train, len(E), DRAWN)
    groups = groups_of_blocks(len(queries.blocks) - 1, len(E), DRAWN)
    drawn = draw_candidates(1, 1, len(E), DRAWN, len(groups) - 1)
    assert len(drawn) == 3
    counts = np.zeros((len(queries), len(E)))  # of each node in the sum of each query
    for block, (lo, hi) in enumerate(pairwise(queries.blocks.tolist())):
        counts[lo:hi, drawn[np.searchsorted(groups, block, side="right") - 1]] = len(E) / DRAWN
    rows = np.repeat(np.arange(len(queries)), np.diff(queries.starts))
    counts[rows, queries.answers] = 1
    cut = queries.blocks[queries.first_object_block]
    near, relation = E[queries.known][:, None], D[queries.relation][:, None]
    objects = score(scorer, near[:cut], relation[:cut], E[None])
    f = np.concatenate([objects, score(scorer, E[None], relation[cut:], near[cut:])])
    L = np.log((counts * np.exp(f)).sum(axis=1))
    return (L[rows] - f[rows, queries.answers]).sum() / (2 * len(train))


MARGIN, DRAWN = 2.5, 11
LOSSES = {"sigmoid": sigmoid_loss, "softmax": softmax_loss, "sampled": sampled_loss}


def relation_loss(scorer, E, D, train):
    """Minus the mean logarithm of how likely the right relations of the triples are, in float64."""
    s, r, o = train.T
    f = score(scorer, E[s][:, None], D[None], E[o][:, None])
    return (np.log(np.exp(f).sum(axis=1)) - f[np.arange(len(f)), r]).mean()


def norm(scorer, E, D, train):
    """The mean over triples of the cubes of absolute values, in float64."""
    total = 0.0
    relations = [] if scorer == "rotate" else [D[train[:, 1]]]
    for rows in (E[train[:, 0]], *relations, E[train[:, 2]]):
        h = rows.shape[1] // 2
        size = np.abs(rows[:, :h] + 1j * rows[:, h:] if scorer in ("complex", "rotate") else rows)
        total += (size**3).sum() / len(train)
    return total


def assert_slopes(loss, places, gradients, close):
    """The gradients of a loss of several arrays are its slopes, at 15 elements of each."""
    for which, gradient in enumerate(gradients):
        size = places[which].size
        for at in np.random.default_rng(3).choice(size, 15, replace=False):
            values = []
            for step in (1e-5, -1e-5):
                moved = [array.copy() for array in places]
                moved[which].reshape(-1)[at] += step
                values.append(loss(*moved))
            slope = (values[0] - values[1]) / 2e-5
            assert gradient.reshape(-1)[at] == pytest.approx(slope, abs=close, rel=10 * close)


@pytest.mark.parametrize("n3, loops", [(0.0, False), (0.3, False), (0.3, True)])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("scorer, d", [("distmult", 5), ("complex", 6), ("rotate", 6), ("transe", 5)])
def test_gradients_are_the_slopes_of_the_loss(group, monkeypatch, scorer, d, loss, n3, loops):
    monkeypatch.setattr("app.gnn.rgcn.softmax.MOST_QUERIES", 16)
    candidates = DRAWN if loss == "sampled" else 0
    split, case = (
        split_triples(make_triples(), 0.1, 1),
        RgcnCase(
            scorer=scorer, dimension=d, negatives=2, n3=n3, margin=MARGIN, candidates=candidates, loops=loops
        ),
    )
    decoder = DECODERS[loss](group, split, 40, 4, case, 1)
    if loops:
        assert (split.train[:, 0] == split.train[:, 2]).any()
        begun = np.array(group.device.get(decoder.D))
        assert begun.shape == (4, d + 1) and not begun[:, d].any()
        begun[:, d] = [0.5, -1.0, 2.0, -0.25]
        decoder.D[...] = group.device.put(begun)
    E = np.random.default_rng(2).normal(size=(40, d)).astype(np.float32)
    lo, hi = 40 * group.rank // group.size, 40 * (group.rank + 1) // group.size
    found, dD, dE_own = decoder.gradients(group.device.put(E), 1, lo, hi)
    counts = group.gather_integers(np.array([hi - lo]))[:, 0].tolist()
    dE = group.gather_host(np.array(group.device.get(dE_own)), counts)
    D = group.device.get(decoder.D).astype(np.float64)
    dD = group.device.get(dD)

    def wanted(E, D):
        kept = n3 * norm(scorer, E, D[:, :d], split.train)
        if not loops:
            return LOSSES[loss](scorer, E, D, split.train) + kept
        numbered = np.column_stack([E, np.arange(len(E))])
        return LOSSES[loss](f"{scorer} loops", numbered, D, split.train) + kept

    assert found == pytest.approx(wanted(E.astype(float), D), rel=1e-6)
    assert_slopes(wanted, (E.astype(float), D), (dE, dD), 1e-6)


@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize("scorer, d", [("distmult", 5), ("complex", 6), ("rotate", 6), ("transe", 5)])
def test_gradients_of_asked_relations_are_slopes(group, monkeypatch, scorer, d, loops):
    monkeypatch.setattr("app.gnn.rgcn.softmax.MOST_QUERIES", 16)
    split = split_triples(make_triples(), 0.1, 1)
    E, found = np.random.default_rng(2).normal(size=(40, d)).astype(np.float32), []
    lo, hi = 40 * group.rank // group.size, 40 * (group.rank + 1) // group.size
    counts = group.gather_integers(np.array([hi - lo]))[:, 0].tolist()
    for weight in (0.0, 1.5):
        case = RgcnCase(scorer=scorer, dimension=d, loss="softmax", loops=loops, ask_relations=weight)
        decoder = make_decoder(group, split, 40, 4, case, 1)
        loss, dD, dE_own = decoder.gradients(group.device.put(E), 1, lo, hi)
        dE = group.gather_host(np.array(group.device.get(dE_own)), counts)
        found.append((loss, dE.astype(float), group.device.get(dD).astype(float)))
    D = group.device.get(decoder.D).astype(float)

    def wanted(E, D):
        if not loops:
            return 1.5 * relation_loss(scorer, E, D, split.train)
        numbered = np.column_stack([E, np.arange(len(E))])
        return 1.5 * relation_loss(f"{scorer} loops", numbered, D, split.train)

    more, dE, dD = (with_relations - without for without, with_relations in zip(*found))
    assert more == pytest.approx(wanted(E.astype(float), D), rel=1e-5)
    assert_slopes(wanted, (E.astype(float), D), (dE, dD), 2e-6)


@pytest.mark.parametrize("nodes, most", [(40, 512), (40, 16), (1 << 20, 512)])
def test_queries_stand_for_every_triple_twice(monkeypatch, nodes, most):
    monkeypatch.setattr("app.gnn.rgcn.softmax.MOST_QUERIES", most)
    train = split_triples(make_triples(), 0.1, 1).train
    queries = Queries.of(train, nodes, nodes)
    cut = queries.blocks[queries.first_object_block]
    found = [set(), set()]
    for u, (known, relation) in enumerate(zip(queries.known.tolist(), queries.relation.tolist())):
        answers = queries.answers[queries.starts[u] : queries.starts[u + 1]].tolist()
        assert answers
        for other in answers:
            found[int(u >= cut)].add((known, relation, other) if u < cut else (other, relation, known))
    every = {tuple(row) for row in train.tolist()}
    assert found == [every, every] and len(queries.answers) == 2 * len(train)
    sizes = np.diff(queries.blocks)
    assert (
        sizes.min() > 0 and sizes.max() <= (8 if nodes > 40 else most) and queries.blocks[-1] == len(queries)
    )


@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize("scorer", SCORERS)
def test_learned_ranks_are_those_of_the_scores(group, scorer, loops):
    """Both ends, of triples whose order tells them apart where the scorer knows directions."""
    split = split_triples(make_triples(count=300), 0.2, 2)
    draws = np.random.default_rng(6)  # small integers: scores are exact
    E, D = (draws.integers(-4, 5, (n, 6)).astype(np.float32) for n in (40, 4))
    if scorer == "rotate":  # whole turns by quarters
        D = np.where(draws.random((4, 3)) < 0.5, [[[2.0]], [[0.0]]], [[[0.0]], [[-3.0]]])
        D = np.concatenate(list(D), axis=1).astype(np.float32)
    table = np.array([[score(scorer, E[:, None], D[r], E[None])] for r in range(4)])[:, 0]  # [r, s, o]
    table = np.rint(table)  # they are whole: of RotatE squares of roots
    if loops:
        D = np.column_stack([D, [300, -50, 7, 0]]).astype(np.float32)
        table += D[:, 6, None, None] * np.eye(40)

    def scores_of(side, part):
        return np.array([table[r, s] if side == 0 else table[r, :, o] for s, r, o in part.tolist()])

    wanted = filtered_ranks(group, split, 4, scores_of, split.test)
    put = group.device.put
    found = rank_learned(group, put(E), put(D), split, split.test, SCORERS[scorer])
    assert found.tolist() == wanted.tolist()
    symmetric = all(np.array_equal(each, each.T) for each in table)
    assert symmetric == (scorer == "distmult")
    for side, (s, r, o) in enumerate(split.test[:2].tolist()):
        nodes, values = best_ends(E, D, scorer, split.test[:0], Query(side, o if side else s, r), 40)
        wanted = table[r, :, o] if side else table[r, s]
        assert values.tolist() == wanted[nodes].tolist() == sorted(wanted, reverse=True)


def test_ranks_are_those_of_counting(group):
    split = split_triples(make_triples(count=300), 0.2, 2)
    table = np.random.default_rng(4).integers(0, 6, (2, 4, 40))  # few values: ties
    found = filtered_ranks(group, split, 4, lambda side, part: table[side][part[:, 1]], split.test)
    known = {tuple(row) for row in np.concatenate([split.train, split.test]).tolist()}
    wanted = []
    for side in (0, 1):
        for s, r, o in split.test.tolist():
            right, rank = (o, s)[side], 1.0
            for node in range(40):
                other = (s, r, node) if side == 0 else (node, r, o)
                if node != right and other not in known:
                    difference = table[side, r, node] - table[side, r, right]
                    rank += 1.0 if difference > 0 else 0.5 if difference == 0 else 0.0
            wanted.append(rank)
    assert found.tolist() == wanted


def test_triples_of_two_sets_are_left_out_once(group):
    """Sets that a user gives may overlap: no rank is below 1 then."""
    rows = np.unique(make_triples(count=120).rows(), axis=0).astype(np.int64)
    table = np.random.default_rng(4).integers(0, 6, (2, 4, 40))  # few values: ties
    found, wanted = (
        filtered_ranks(group, split, 4, lambda side, part: table[side][part[:, 1]], rows[::3])
        for split in (Split(rows[:80], rows[60:], rows[::3]), Split(rows[:80], rows[80:], rows[:0]))
    )
    assert found.tolist() == wanted.tolist() and found.min() >= 1


def test_what_sets_have_in_common_is_said():
    said = []
    log = SimpleNamespace(info=lambda text, *values: said.append(text % values))
    learned, valid, test = (
        np.array(rows) for rows in ([[0, 0, 1], [2, 1, 1]], [[0, 0, 1]], [[0, 2, 1], [0, 1, 1]])
    )
    _say_split(SimpleNamespace(log=log), Split(learned, valid, test))
    assert said[1:] == [
        "warning: 1 of the 1 validation triples are also learned from",
        "warning: 1 of the 2 held-out triples have a relation of no learned one",
    ]


def test_summaries():
    assert summary(np.array([1.0, 4.0])) == {"mrr": 0.625, "hits_1": 0.5, "hits_3": 0.5, "hits_10": 1.0}
    assert random_summary(2)["mrr"] == 0.75


def deal(triples, case):
    return split_triples(triples, case.held_out, 1, case.validation)


def trained(group, **settings):
    case = RgcnCase(**{"hidden": 4, "dimension": 6, "epochs": 3, "layers": 2, "bases": 3, **settings})
    found = train_links(group, triples := make_triples(), deal(triples, case), case, 1)
    return digest({"D": found.relations, **found.net.whole_weights(group)}), found.scores


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"layers": 1, "bases": 0},
        {"scorer": "distmult", "dimension": 5},
        {"dropout": 0.3, "schedule": "cosine", "warmup": 1},
        {"loss": "softmax", "n3": 0.02},
        {"loss": "softmax", "scorer": "distmult", "layers": 1, "bases": 0, "dimension": 5},
        {"loss": "softmax", "candidates": 9, "n3": 0.02},
        {"loss": "softmax", "candidates": 9, "scorer": "rotate", "layers": 1, "bases": 0},
        {"loss": "softmax", "scorer": "transe", "dimension": 5, "n3": 0.02},
        {"scorer": "rotate", "margin": 3.0, "n3": 0.02},
        {"scorer": "transe", "dimension": 5},
        {"loops": True, "layers": 0},
        {"loops": True, "loss": "softmax", "layers": 0, "n3": 0.02},
        {"loops": True, "loss": "softmax", "candidates": 9, "scorer": "rotate", "layers": 1, "bases": 0},
        {"loops": True, "ask_relations": 0.5, "scorer": "transe", "layers": 0},
        {"ask_relations": 0.5, "loss": "softmax", "n3": 0.02, "layers": 1, "bases": 0},
    ],
)
def test_the_same_bits_for_any_partition_and_device(group, monkeypatch, settings):
    monkeypatch.setattr("app.gnn.rgcn.softmax.MOST_QUERIES", 24)
    wanted = trained(Group(MPI.COMM_SELF, HostDevice()), **settings)
    for form in ({"partition": "relations"}, {"partition": "rows"}, {"parts": 3}):
        assert trained(group, **form, **settings) == wanted


def test_candidates_that_are_all_nodes_are_the_softmax_of_all(group):
    """Where nothing is left to chance, the loss and its gradients are those of all nodes."""
    split, case = split_triples(make_triples(), 0.1, 1), RgcnCase(dimension=6, candidates=40)
    E = np.random.default_rng(2).normal(size=(40, 6)).astype(np.float32)
    (one, *first), (two, *second) = (
        DECODERS[loss](group, split, 40, 4, case, 1).gradients(group.device.put(E), 3, 0, 40)
        for loss in ("softmax", "sampled")
    )
    assert one == pytest.approx(two, rel=1e-6)
    assert loss_of(RgcnCase(loss="softmax", candidates=40), 40) == "softmax"
    assert loss_of(RgcnCase(loss="softmax", candidates=39), 40) == "sampled"
    for a, b in zip(first, second):
        assert group.device.get(a) == pytest.approx(group.device.get(b), abs=1e-6)


def test_candidates_are_distinct_and_drawn_anew():
    """In each epoch others, each node as likely as any other; groups have none in common."""
    draws = [draw_candidates(5, epoch, 20, 3, 2) for epoch in range(400)]
    assert all((np.diff(each) > 0).all() for both in draws for each in both)
    assert all(len(np.unique(both)) == 6 for both in draws)
    counts = np.bincount(np.concatenate([first for first, _ in draws]), minlength=20)
    assert abs(counts - 60).max() < 5 * np.sqrt(400 * 0.15 * 0.85)


def test_groups_of_blocks_are_as_many_as_have_candidates_of_their_own():
    assert groups_of_blocks(10, 100, 30).tolist() == [0, 3, 6, 10]
    assert groups_of_blocks(2, 100, 30).tolist() == [0, 1, 2]
    assert groups_of_blocks(7, 100, 100).tolist() == groups_of_blocks(7, 100, 60).tolist() == [0, 7]


@pytest.mark.mpi_skip
def test_on_a_gpu_every_step_is_adams_kernel(emulated, monkeypatch):
    """CuPy's own operations would make zeros of moments below 2^-126, and take a dozen launches."""
    sizes, adam, case = [], emulated.adam, RgcnCase(hidden=4, dimension=6, epochs=3, layers=2, bases=3)

    def counted(scalars, flat, *rest):
        sizes.append(flat.size)
        adam(scalars, flat, *rest)

    monkeypatch.setattr(emulated, "adam", counted)
    triples, group = make_triples(), Group(MPI.COMM_SELF, emulated)
    found = train_links(group, triples, deal(triples, case), case, 1)
    weights = [found.relations, *(shard.array for shard in found.net.weights.values())]
    assert sorted(sizes) == sorted(3 * [each.size for each in weights])


@needs_data
@pytest.mark.mpi_skip
def test_links_of_aifb_rank_above_the_baselines(compiled):
    triples, _ = read_triples_npz(str(data_dir() / "rgcn" / "aifb.npz"))
    chosen = {"layers": 1, "bases": 0, "dimension": 64, "negatives": 8, "scorer": "distmult"}
    case = RgcnCase(**chosen, epochs=20, learning_rate=0.02)
    scores = train_links(Group(MPI.COMM_SELF, compiled), triples, deal(triples, case), case, 1).scores
    assert scores["learned"]["mrr"] > 1.3 * scores["most_frequent"]["mrr"] > 100 * scores["random"]["mrr"]
    assert scores["learned"]["hits_10"] > 1.3 * scores["most_frequent"]["hits_10"]
