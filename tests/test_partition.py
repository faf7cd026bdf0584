"""Row partitions, and the rows of a graph on any number of ranks: the same graph as on one."""

import tracemalloc
from dataclasses import fields
from itertools import pairwise

import networkx
import numpy as np
import pytest
from helpers import edge_stream, random_graph
from hypothesis import given
from hypothesis import strategies as st
from mpi4py import MPI

from app.case.config import Case
from app.case.graph import GraphCase
from app.case.run import ParallelCase
from app.device import HostDevice
from app.errors import GraphError, LockstepError, NumericsError
from app.graphs.formats.readers import open_edges
from app.graphs.generators.random import barabasi_albert, erdos_renyi
from app.graphs.stream import EdgeStream
from app.numerics.pieces import row_pieces
from app.partition import assemble as assemble_module
from app.partition.assemble import EdgeRules, assemble, gather_whole
from app.partition.even import entries_weights
from app.partition.families import FAMILIES, Turn, family_names, turn_of
from app.partition.generated import generate_set
from app.partition.load import load_graphs
from app.partition.migrate import move_rows
from app.partition.rows import (
    RowPartition,
    block_count,
    block_starts,
    cut_blocks,
    equal_cuts,
    partition_rows,
)

WORLD = MPI.COMM_WORLD
SIZES = [1, 5, 8, 9, 17, 64, 100, 1000, 2047, 2049, 5000]


@pytest.fixture
def device():
    """Nothing here leaves the host."""
    return HostDevice()


# ---- blocks and cuts --------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, *SIZES, 200_000, 262_145, 3_000_000])
def test_blocks_are_a_function_of_n(n):
    starts = block_starts(n, block_count(n))
    rows = np.diff(starts)
    assert starts[0] == 0
    assert 0 <= starts[-1] - n < 8
    assert (starts % 8 == 0).all()
    assert rows.max() <= 1024
    if n:
        assert rows.min() >= 8
        assert rows.max() - rows.min() <= 8
        assert len(rows) == min(-(-n // 8), max(256, -(-n // 1024)))


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 7])
@pytest.mark.mpi_skip
def test_ranks_own_consecutive_rows(n, ranks):
    rows = partition_rows(n, ranks)
    owner = np.full(n, -1)
    for rank in range(ranks):
        lo, hi = rows.range_of(rank)
        assert (owner[lo:hi] == -1).all()
        owner[lo:hi] = rank
        assert hi - lo == rows.row_counts()[rank]
    assert (np.diff(owner) >= 0).all()
    assert owner.min() >= 0
    assert np.array_equal(rows.owner(np.arange(n)), owner)
    assert (rows.offsets % 8 == 0).all()
    assert sum(rows.block_counts) == len(rows.starts) - 1
    # The same blocks on any number of ranks.
    assert np.array_equal(rows.starts, partition_rows(n, 1).starts)


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=60), st.integers(1, 9))
def test_cuts_are_balanced(weights, ranks):
    cuts = cut_blocks(np.array(weights), ranks)
    assert cuts[0] == 0
    assert cuts[-1] == len(weights)
    assert (np.diff(cuts) >= 0).all()
    loads = [sum(weights[a:b]) for a, b in pairwise(cuts)]
    assert sum(loads) == sum(weights)
    assert max(loads) <= sum(weights) / ranks + max(weights) + 1


def test_equal_blocks_are_dealt_equally():
    assert cut_blocks(np.ones(12), 4).tolist() == [0, 3, 6, 9, 12]
    assert cut_blocks(np.array([9, 1, 1, 1]), 2).tolist() == [0, 1, 4]
    assert cut_blocks(np.array([5]), 3).tolist()[-1] == 1


@given(st.integers(0, 3_000_000), st.integers(1, 40))
def test_equal_cuts_are_those_of_the_blocks(n, ranks):
    starts = block_starts(n, block_count(n))
    cuts, offsets = equal_cuts(n, ranks)
    assert cuts.tolist() == cut_blocks(np.diff(starts), ranks).tolist()
    assert offsets.tolist() == starts[cuts].tolist()


def test_equal_cuts_of_a_header_that_states_a_trillion_nodes():
    """A plan of such a graph lists no blocks: they are a thousand million, and their products overflow."""
    cuts, offsets = equal_cuts(1 << 40, 4)
    assert cuts.tolist() == [rank << 28 for rank in range(5)]
    assert offsets.tolist() == [rank << 38 for rank in range(5)]


@given(st.lists(st.integers(0, 9), max_size=30), st.integers(1, 12), st.sampled_from(["int32", "int64"]))
def test_pieces_are_the_longest_of_so_many_entries(sizes, most, kind):
    indptr, at = np.concatenate([[0], np.cumsum(sizes)]).astype(kind), 0
    for lo, hi in row_pieces(indptr, most):
        assert lo == at < hi
        assert hi == lo + 1 or sum(sizes[lo:hi]) <= most
        assert hi == len(sizes) or sum(sizes[lo : hi + 1]) > most
        at = hi
    assert at == len(sizes)


@pytest.mark.mpi_skip
def test_pieces_copy_no_row_pointers():
    """Each of them would, were what is sought of another type: work that grows with rows x pieces."""
    indptr = np.arange(1 << 18, dtype=np.int32)
    tracemalloc.start()
    try:
        assert len(list(row_pieces(indptr, 1 << 16))) == 4
        assert tracemalloc.get_traced_memory()[1] < indptr.nbytes // 4
    finally:
        tracemalloc.stop()
    ends = np.array([0, 2**31 - 2, 2**31 - 1], dtype=np.int32)  # goals beyond them would overflow
    assert list(row_pieces(ends, 1 << 20)) == [(0, 1), (1, 2)]


def test_graphs_of_a_set_have_one_number_of_blocks():
    rows = partition_rows(5, 3, blocks=4)
    assert len(rows.starts) == 5
    assert sum(rows.row_counts()) == 5
    with pytest.raises(NumericsError, match="3 weights for 4 blocks"):
        partition_rows(5, 3, np.ones(3), blocks=4)


# ---- assembling -------------------------------------------------------------------------------------------


class Edges:
    """A random file: loops, repeats, both directions, ids with gaps where the node count is unknown."""

    def __init__(self, n, m, seed, known=True, weighted=False, node_weights=False):
        draws = np.random.default_rng(seed)
        numbers = (
            np.arange(n) if known else np.sort(draws.choice(10 * n + 10**12 * (seed % 2), n, replace=False))
        )
        self.known, self.n, self.first_id = known, n, 7 if known else 0
        self.u, self.v = numbers[draws.integers(0, max(n, 1), (2, m))] if n else np.empty((2, 0), int)
        back = draws.random(m) < 0.3
        self.u, self.v = np.append(self.u, self.v[back]), np.append(self.v, self.u[back])
        self.weights = draws.integers(-4, 9, len(self.u)).astype(np.float32) / 2 if weighted else None
        self.node_weights = draws.random(n, np.float32) if node_weights else None

    def stream(self, piece=5):
        """An EdgeStream of small pieces."""

        def chunks(stream):
            for at in range(0, len(self.u), piece):
                part = slice(at, at + piece)
                yield self.u[part], self.v[part], None if self.weights is None else self.weights[part]
            stream.node_weights = self.node_weights

        nodes = self.n if self.known else None
        weighted = self.weights is not None
        return EdgeStream("sample", "", "edges", nodes, self.first_id, weighted, chunks)

    def dense(self):
        """Sorted ids, adjacency, and edge weights (of repeats the largest)."""
        ids = np.arange(self.n) if self.known else np.unique(np.concatenate([self.u, self.v]))
        place = {int(number): i for i, number in enumerate(ids)}
        A, M = np.zeros((len(ids), len(ids)), bool), np.full((len(ids), len(ids)), -np.inf)
        weights = np.ones(len(self.u)) if self.weights is None else self.weights
        for u, v, w in zip(self.u.tolist(), self.v.tolist(), weights.tolist()):
            i, j = place[u], place[v]
            if i != j:
                A[i, j] = A[j, i] = True
                M[i, j] = M[j, i] = max(M[i, j], w)
        return ids, A, np.where(A, M, 0)


FILES = {
    "plain": Edges(50, 120, 1),
    "weights": Edges(33, 90, 2, weighted=True),
    "ids with gaps": Edges(40, 70, 3, known=False),
    "ids with gaps and weights": Edges(61, 100, 4, known=False, weighted=True),
    "node weights": Edges(29, 40, 5, node_weights=True),
    "isolated nodes": Edges(200, 30, 6),
    "five nodes": Edges(5, 9, 7),
    "one node": Edges(1, 2, 8),
    "no edges": Edges(20, 0, 9),
    "only an edge": Edges(2, 1, 12, known=False),
    "many rows": Edges(1200, 2000, 11),
}


def on_first(group, make):
    """What rank 0 makes; None elsewhere."""
    return make() if group.rank == 0 else None


def dense_rows(graph):
    """[hi-lo, n] adjacency and weights of the rows that are held."""
    A, M = np.zeros((graph.hi - graph.lo, graph.n), bool), np.zeros((graph.hi - graph.lo, graph.n))
    for row in range(graph.hi - graph.lo):
        held = slice(graph.indptr[row], graph.indptr[row + 1])
        columns = graph.indices[held]
        assert (np.diff(columns) > 0).all()
        A[row, columns] = True
        M[row, columns] = 1 if graph.weights is None else graph.weights[held]
    return A, M


@pytest.mark.parametrize("balance", ["edges", "rows"])
@pytest.mark.parametrize("name", FILES)
def test_rows_are_those_of_the_dense_matrix(group, name, balance):
    file = FILES[name]
    ids, A, M = file.dense()
    graph, rows, counts = assemble(group, on_first(group, file.stream), balance=balance)
    assert (graph.n, graph.edges, graph.name) == (len(ids), A.sum() // 2, "sample")
    assert (graph.lo, graph.hi) == rows.range_of(group.rank)
    A_own, M_own = dense_rows(graph)
    assert np.array_equal(A_own, A[graph.lo : graph.hi])
    assert np.array_equal(M_own, M[graph.lo : graph.hi])
    assert np.array_equal(
        graph.node_ids(np.arange(graph.lo, graph.hi)), ids[graph.lo : graph.hi] + file.first_id
    )
    if file.node_weights is not None:
        assert np.array_equal(graph.node_weights, file.node_weights[graph.lo : graph.hi])
    lines, loops = len(file.u), int((file.u == file.v).sum())
    arcs = len({(u, v) for u, v in zip(file.u.tolist(), file.v.tolist()) if u != v})
    assert (counts.lines, counts.loops, counts.repeats) == (lines, loops, lines - loops - arcs)
    assert counts.reversed == arcs - graph.edges


def bits(graph):
    """Every field of a graph, arrays as dtype and bytes."""
    values = (getattr(graph, field.name) for field in fields(graph))
    return [(v.dtype.str, v.tobytes()) if isinstance(v, np.ndarray) else v for v in values]


@pytest.mark.parametrize("complement", [False, True])
@pytest.mark.parametrize("name", FILES)
def test_all_ranks_together_hold_the_graph_of_one(group, solo, name, complement):
    if complement and name == "many rows":
        return
    file = FILES[name]
    one, one_rows, _ = assemble(solo, file.stream(piece=1000), EdgeRules(complement))
    graph, rows, _ = assemble(group, on_first(group, file.stream), EdgeRules(complement))
    assert np.array_equal(rows.starts, one_rows.starts)
    for key in ("indices", "weights", "ids", "node_weights"):
        parts, whole = WORLD.allgather(getattr(graph, key)), getattr(one, key)
        assert (whole is None) == (parts[0] is None)
        if whole is not None:
            together = np.concatenate(parts)
            assert (together.dtype, together.tobytes()) == (whole.dtype, whole.tobytes())
    degrees = np.concatenate(WORLD.allgather(np.diff(graph.indptr)))
    assert np.array_equal(degrees, np.diff(one.indptr))
    assert bits(gather_whole(group, graph, rows)) == bits(one)


@pytest.mark.parametrize("name", ["plain", "weights", "ids with gaps", "one node", "no edges"])
def test_complement(group, name):
    ids, A, _ = FILES[name].dense()
    graph, _, counts = assemble(group, on_first(group, FILES[name].stream), EdgeRules(complement=True))
    assert counts == assemble(group, on_first(group, FILES[name].stream))[2]  # what the file held, either way
    missing = ~A & ~np.eye(len(ids), dtype=bool)
    assert np.array_equal(dense_rows(graph)[0], missing[graph.lo : graph.hi])
    assert graph.edges == missing.sum() // 2
    assert graph.weights is None


def test_a_complement_that_is_too_large_is_refused(group, monkeypatch):
    monkeypatch.setattr(assemble_module, "COMPLEMENT_ENTRIES", 10)
    with pytest.raises(GraphError, match="complement of 50 nodes is too large"):
        assemble(group, on_first(group, FILES["plain"].stream), EdgeRules(complement=True))


def test_no_nodes(group):
    graph, rows, counts = assemble(group, on_first(group, Edges(0, 0, 1).stream))
    assert (graph.n, graph.edges, counts.lines, sum(rows.row_counts())) == (0, 0, 0, 0)


@pytest.mark.parametrize(
    ("refused", "message"),
    [
        ({"self_loops": "error"}, r'sample: \d+ self loops; clean the file, or set graph.self_loops="drop"'),
        (
            {"duplicates": "error"},
            r'sample: \d+ repeated edges; clean the file, or set graph.duplicates="merge"',
        ),
    ],
)
def test_what_a_case_does_not_want_is_refused(group, refused, message):
    with pytest.raises(GraphError, match=message) as caught:
        assemble(group, on_first(group, FILES["plain"].stream), EdgeRules(**refused))
    assert len(set(WORLD.allgather(str(caught.value)))) == 1
    clean = Edges(4, 0, 1)
    clean.u, clean.v = np.array([0, 1]), np.array([1, 2])
    assert assemble(group, on_first(group, clean.stream), EdgeRules(**refused))[0].edges == 2


@pytest.mark.parametrize("error", [GraphError("file:3: found x"), ValueError("a bug")])
@pytest.mark.parametrize("good_pieces", [0, 2])
def test_an_error_while_reading_is_raised_on_all_ranks(group, error, good_pieces):
    def chunks(stream):
        for _ in range(good_pieces):
            yield np.array([0, 1]), np.array([1, 2]), None
        raise error

    stream = EdgeStream("bad", "", "edges", 3, 0, False, chunks)
    with pytest.raises((LockstepError, ValueError)) as caught:
        assemble(group, on_first(group, lambda: stream))
    assert str(error) in str(caught.value)
    if isinstance(error, GraphError):
        assert type(caught.value) is GraphError
    group.barrier()


# ---- loading ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["karate_club", "les_miserables"])
def test_a_graph_of_networkx(group, name):
    wanted = getattr(networkx, f"{name}_graph")()
    graph, rows, _ = assemble(group, on_first(group, lambda: open_edges(f"networkx:{name}", "auto", 10**9)))
    A = networkx.to_numpy_array(wanted, weight=None) > 0
    whole = gather_whole(group, graph, rows)
    assert whole.edges == wanted.number_of_edges()
    assert sorted(whole.degrees()) == sorted(A.sum(axis=0))
    if name == "karate_club":
        assert np.array_equal(dense_rows(whole)[0], A)


def test_a_generated_set_shares_its_cuts(group, solo):
    table = GraphCase(generator="mixed", nodes=(3, 60), count=6, d=2)
    loaded, alone = generate_set(group, table, 5, "x"), generate_set(solo, table, 5, "x")
    assert [item.graph.name.split("-")[0] for item in loaded] == ["ba", "er"] * 3
    largest = max(item.graph.n for item in loaded)
    for item, one in zip(loaded, alone):
        assert len(item.rows.starts) == block_count(largest) + 1
        assert np.array_equal(item.rows.cuts, loaded[0].rows.cuts)
        assert bits(gather_whole(group, item.graph, item.rows)) == bits(one.graph)
    other = generate_set(solo, table, 5, "y")
    assert [bits(a.graph) for a in other] != [bits(a.graph) for a in alone]


def test_families_and_weights_by_turns(group, solo):
    table = GraphCase(generator="varied", edge_weights="mixed", nodes=(9, 60), count=12, d=2)
    loaded, alone = generate_set(group, table, 5, "x"), generate_set(solo, table, 5, "x")
    assert [item.graph.name.split("-")[0] for item in loaded] == ["ba", "er", "torus"] * 4
    kinds = []
    for item, one in zip(loaded, alone):
        whole = gather_whole(group, item.graph, item.rows)
        assert bits(whole) == bits(one.graph)
        values = {1.0} if whole.weights is None else set(whole.weights.tolist())
        kinds.append("one" if values == {1.0} else "signs" if values <= {1.0, -1.0} else "normal")
    assert kinds == ["one"] * 3 + ["signs"] * 3 + ["normal"] * 3 + ["one"] * 3
    plain = generate_set(solo, GraphCase(generator="varied", nodes=(9, 60), count=12, d=2), 5, "x")
    assert [np.array_equal(a.graph.indices, b.graph.indices) for a, b in zip(plain, alone)] == [True] * 12


def test_diverse_graphs_come_by_turns_within_turns(group, solo):
    table = GraphCase(generator="diverse", nodes=(20, 60), count=3 * len(FAMILIES["diverse"]))
    loaded, alone = generate_set(group, table, 5, "x"), generate_set(solo, table, 5, "x")
    families = family_names(table)
    assert [item.graph.name.split("-")[0] for item in loaded] == families * 3
    assert [bits(gather_whole(group, item.graph, item.rows)) for item in loaded] == [
        bits(one.graph) for one in alone
    ]
    # The keys of each turn, and those of the table where a turn has none.
    first = [turn_of(table, number)[0].table(table, 50) for number in range(len(families))]
    assert [each.generator for each in first] == families
    assert first[0].d == 1 and turn_of(table, len(families))[0].table(table, 50).d == 2
    sparse = Turn("er", 2).table(table, 50)
    assert sparse.p * 49 == pytest.approx(4) and Turn("er", 2).table(table, 2).p == 1
    assert Turn("chung_lu", 1.5).table(table, 50).edges == 75 and Turn("ba", 6).table(table, 4).d == 3


@pytest.mark.parametrize("make", [lambda: erdos_renyi(500, 0.02, 3), lambda: barabasi_albert(500, 4, 3)])
def test_generated_graphs_do_not_depend_on_the_ranks(group, solo, make):
    graph, rows, _ = assemble(group, on_first(group, make))
    assert bits(gather_whole(group, graph, rows)) == bits(assemble(solo, make())[0])


def test_a_file_that_is_missing_is_an_error_on_all_ranks(group, tmp_path):
    table = GraphCase(path=["no such file"])
    with pytest.raises(GraphError, match="no such file: No such file or directory") as caught:
        load_graphs(group, table, "x", Case())
    assert len(set(WORLD.allgather(str(caught.value)))) == 1


def test_files_come_before_generated_graphs(group):
    table = GraphCase(path="networkx:karate_club", generator="er", nodes=20, count=2)
    loaded = load_graphs(group, table, "x", Case())
    assert [item.graph.n for item in loaded] == [34, 20, 20]
    assert loaded[0].counts.lines == 78


@pytest.mark.parametrize("count", [1, 3])
def test_generated_graphs_are_cut_as_the_case_wants(group, solo, count):
    table = GraphCase(generator="ba", nodes=2000, d=4, count=count)
    alone = load_graphs(solo, table, "x", Case())
    weights = {"rows": 0, "edges": 0}
    for item in alone:
        weights["rows"] = np.ones(len(item.rows.starts) - 1, dtype=np.int64)
        weights["edges"] = weights["edges"] + entries_weights(solo, item.graph, item.rows.starts)
    for balance, expected in weights.items():
        loaded = load_graphs(group, table, "x", Case(parallel=ParallelCase(partition=balance)))
        for item, one in zip(loaded, alone):
            assert np.array_equal(item.rows.cuts, cut_blocks(expected, group.size))
            assert bits(gather_whole(group, item.graph, item.rows)) == bits(one.graph)
    if group.size > 1:  # the graph's hubs come first: the first rank owns fewer rows than others
        assert not np.array_equal(loaded[0].rows.cuts, cut_blocks(weights["rows"], group.size))


def test_moved_rows_are_the_rows_of_the_other_partition(group):
    for n, seed in ((1, 0), (9, 1), (50, 2), (301, 3)):
        graph, rows, _ = assemble(group, edge_stream(random_graph(n, 0.2, seed, weighted=True)))
        for blocks in (1, 7, block_count(n)):
            cuts = cut_blocks(np.ones(blocks, dtype=np.int64), group.size)
            other = RowPartition(n, block_starts(n, blocks), cuts)
            moved = move_rows(group, graph, rows, other)
            direct, _, _ = assemble(
                group, edge_stream(random_graph(n, 0.2, seed, weighted=True)), blocks=blocks, cuts=cuts
            )
            assert (moved.lo, moved.hi, moved.edges) == (direct.lo, direct.hi, direct.edges)
            for name in ("indptr", "indices", "weights"):
                assert np.array_equal(getattr(moved, name), getattr(direct, name))
