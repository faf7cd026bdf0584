"""Pairs, rows made of them (compiled and by NumPy the same), plain lines, and kept files."""

from itertools import pairwise
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.errors import GraphError, Halted
from app.graphs import kernels, pairs, rows
from app.graphs.formats import name_table, plain, source
from app.graphs.formats.kept import Damaged, KeptReader, KeptWriter
from app.graphs.formats.metis import COMMENT_LINE, find_numbers
from app.graphs.formats.name_table import NameTable, PlainTable
from app.graphs.formats.text import Layout, parse_rows, prepared, read_rows
from app.graphs.graph import build_rows
from app.graphs.pairs import Pairs
from app.native import library

pytestmark = pytest.mark.mpi_skip
COMPILED = kernels.FINISH_ROWS is not None
compiled = pytest.mark.skipif(not COMPILED, reason="the compiled kernels are not built")
KERNELS = (
    "COUNT_IDS", "RENUMBER", "DEAL_PAIRS", "PLACE_PAIRS", "PLACE_ENTRIES", "FINISH_ROWS", "FINISH_MERGED",
)  # fmt: skip


def without_kernels():
    """The NumPy paths."""
    return mock.patch.multiple(kernels, **dict.fromkeys(KERNELS))


# ---- rows -------------------------------------------------------------------------------------------------


def reference(n, lo, hi, ends, weights):
    """indptr, columns, weights, and distinct written arcs of rows lo..hi-1."""
    u, v = ends.astype(np.int64).T
    both = np.concatenate([u, v]), np.concatenate([v, u])
    held = (both[0] >= lo) & (both[0] < hi)
    w = None if weights is None else np.concatenate([weights, weights])[held]
    arcs = {(a, b) for a, b in zip(u.tolist(), v.tolist()) if a != b and lo <= a < hi}
    return *build_rows(both[0][held], both[1][held], w, lo, hi), len(arcs)


def same(found, wanted):
    for mine, right in zip(found, wanted):
        assert (mine is None) == (right is None)
        assert np.array_equal(mine, right)


@st.composite
def raw_edges(draw):
    """n, ends [m, 2]: sparse or full of repeats, some rows long."""
    n = draw(st.integers(1, 90))
    seed, m = draw(st.integers(0, 2**32)), draw(st.integers(0, 400))
    draws = np.random.default_rng(seed)
    ends = draws.integers(0, n, (m, 2))
    if draw(st.booleans()):
        ends[: m // 2, 0] = draws.integers(0, n)
    return n, ends.astype(np.uint32)


@pytest.mark.parametrize("native", [pytest.param(True, marks=compiled), False])
@given(raw_edges(), st.integers(0, 3), st.booleans())
@settings(max_examples=150, deadline=None)
def test_rows_of_dealt_pairs(native, graph, ranks, weighted):
    n, ends = graph
    weights = np.random.default_rng(n).integers(-2, 3, len(ends)).astype(np.float32) if weighted else None
    offsets = np.array([0, *sorted(n * (r + 1) // (ranks + 1) for r in range(ranks)), n])
    with mock.patch.object(kernels, "MOST_PLACED", kernels.MOST_PLACED) if native else without_kernels():
        entries, dealt, counts = kernels.deal_pairs(ends, weights, offsets, n)
        firsts = np.concatenate([[0], np.cumsum(counts)])
        for r, (lo, hi) in enumerate(pairwise(offsets)):
            mine = slice(firsts[r], firsts[r + 1])
            per_row = np.bincount(entries[mine, 0].astype(np.int64) - lo, minlength=hi - lo)
            builder = rows.row_builder(n, int(lo), per_row, weighted)
            builder.add_entries(entries[mine], None if dealt is None else dealt[mine])
            same(builder.finish(), reference(n, lo, hi, ends, weights))


@pytest.mark.parametrize("kind", ["placed", "sorted", "listed"])
@given(graph=raw_edges())
@settings(max_examples=100, deadline=None)
def test_every_builder_makes_the_same_rows(kind, graph):
    n, ends = graph
    if kind == "placed" and not COMPILED:
        return
    counts = np.bincount(ends.reshape(-1), minlength=n)
    builder = {
        "placed": lambda: rows.PlacedRows(0, counts),
        "sorted": lambda: rows.SortedRows(n, 0, counts),
        "listed": lambda: rows.ListedRows(n, 0, counts, False),
    }[kind]()
    half = len(ends) // 2
    for part in (ends[:half], ends[half:]):
        builder.add_pairs(np.ascontiguousarray(part), None)
    with mock.patch.multiple(rows, STEP=7, SORTED=5):  # in many parts
        found = builder.finish()
    assert found[1].dtype == np.int32
    same(found, reference(n, 0, n, ends, None))


@compiled
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("neighbours", ["both", "in"])
def test_what_a_look_raises_ends_the_sorting_of_rows(weighted, neighbours):
    ends = np.array([[0, 1], [1, 2], [2, 3], [3, 0]], dtype=np.uint32)
    looks = []

    def look():
        looks.append(len(looks))
        if len(looks) == 3:
            raise Halted("enough")

    builder = rows.row_builder(4, 0, np.full(4, 2), weighted, neighbours, look)
    builder.add_pairs(ends, np.ones(4, dtype=np.float32) if weighted else None)
    with mock.patch.object(rows, "SORTED", 2), pytest.raises(Halted):
        builder.finish()
    assert len(looks) == 3


@pytest.mark.parametrize("native", [pytest.param(True, marks=compiled), False])
@given(graph=raw_edges(), ranks=st.integers(0, 3))
@settings(max_examples=150, deadline=None)
def test_of_repeats_the_largest_weight_is_kept(native, graph, ranks):
    n, ends = graph
    few = np.array([-np.inf, -2.5, -1e-45, -0.0, 0.0, 1e-45, 3, np.inf], dtype=np.float32)
    weights = few[np.random.default_rng(n).integers(0, len(few), len(ends))]
    offsets = np.array([0, *sorted(n * (r + 1) // (ranks + 1) for r in range(ranks)), n])
    entries, dealt, sizes = kernels.deal_pairs(ends, weights, offsets, n)
    firsts = np.concatenate([[0], np.cumsum(sizes)])
    for (lo, hi), (start, stop) in zip(pairwise(offsets.tolist()), pairwise(firsts.tolist())):
        counts = np.bincount(entries[start:stop, 0].astype(np.int64) - lo, minlength=hi - lo)
        kind = rows.MergedRows(lo, counts, True, "both") if native else rows.WeightedRows(n, lo, counts)
        builders = kind, rows.ListedRows(n, lo, counts, True)
        for builder in builders:
            for part in (slice(start, (start + stop) // 2), slice((start + stop) // 2, stop), slice(0, 0)):
                builder.add_entries(entries[part], dealt[part])
        with mock.patch.object(rows, "SORTED", 5):
            one, other = (builder.finish() for builder in builders)
        same(one, other)
        assert one.weights.tobytes() == other.weights.tobytes()  # -0 is below 0
        assert [a.dtype for a in one[:3]] == [a.dtype for a in other[:3]]


def test_weights_of_more_nodes_than_32_bits_of_columns():
    n = (1 << 32) - 2
    counts = np.zeros(16, dtype=np.int64)
    counts[[0, 15]] = 2, 3
    columns = np.array([n - 1, 7, n - 2, 7, n - 2], dtype=np.uint64)
    entries = np.stack([np.array([n - 16] * 2 + [n - 1] * 3, dtype=np.uint64), 2 * columns + 1], axis=1)
    builders = rows.WeightedRows(n, n - 16, counts), rows.ListedRows(n, n - 16, counts, True)
    for builder in builders:
        builder.add_entries(entries, np.array([1, 2, 3, 4, 5], dtype=np.float32))
    one, other = (builder.finish() for builder in builders)
    same(one, other)
    assert one.indices.dtype == np.int64
    assert (one.indices.tolist(), one.weights.tolist()) == ([7, n - 1, 7, n - 2], [2, 1, 4, 5])


def test_entries_are_listed_where_their_numbers_would_not_fit():
    many, none = np.broadcast_to(np.int64(0), 1 << 31), np.zeros(0, dtype=np.int64)
    assert type(rows.row_builder(1 << 32, 0, many, True)) is rows.ListedRows
    assert type(rows.row_builder(1 << 32, 0, many, True, "in")) is rows.ListedArcs
    assert type(rows.row_builder(1 << 32, 0, many, False, "out")) is rows.ListedArcs
    assert type(rows.row_builder(1 << 32, 0, none, True)) is rows.WeightedRows
    assert type(rows.row_builder(1 << 32, 0, none, True, "out")) is rows.WeightedArcs


def test_more_nodes_than_32_bits_of_columns():
    n, hub = (1 << 31) + 5, 1 << 31
    ends = np.array([[0, hub], [hub, 1], [1, 0], [0, hub], [hub, hub]], dtype=np.uint32)
    entries, _, counts = kernels.deal_pairs(ends, None, np.array([0, 2, n]), n)
    assert entries.dtype == np.uint64 and counts == [5, 5]
    builder = rows.SortedRows(n, 0, np.array([3, 2]))
    builder.add_entries(entries[:5], None)
    indptr, columns, _, written, *_ = builder.finish()
    assert columns.dtype == np.int64
    assert (indptr.tolist(), columns.tolist(), written) == ([0, 2, 4], [1, hub, 0, hub], 2)
    assert isinstance(
        rows.row_builder(1 << 32, 0, np.broadcast_to(np.int64(0), 1 << 31), False), rows.ListedRows
    )


@compiled
@pytest.mark.parametrize("length", [1, 15, 16, 17, 32, 33, 48, 49, 300, 70_000])
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_of_every_length_are_sorted(length, weighted):
    n = 100_000
    columns = np.random.default_rng(length).integers(0, n, length)
    ends = np.stack([np.full(length, 5), columns], axis=1).astype(np.uint32)
    weights = np.arange(length, dtype=np.float32) % 7 if weighted else None
    builder = rows.row_builder(n, 0, np.bincount(ends.reshape(-1), minlength=n), weighted)
    builder.add_pairs(ends, weights)
    same(builder.finish(), reference(n, 0, n, ends, weights))


@pytest.mark.parametrize("native", [pytest.param(True, marks=compiled), False])
def test_counting_and_renumbering(native):
    ends = np.random.default_rng(1).integers(0, 50, (500, 2)).astype(np.uint32)
    table = np.random.default_rng(2).permutation(50).astype(np.uint32)
    count, wanted = np.zeros(50, np.uint32), table[ends]
    with mock.patch.object(kernels, "MOST_PLACED", kernels.MOST_PLACED) if native else without_kernels():
        kernels.count_ids(ends, count)
        kernels.renumber(table, ends)
    assert np.array_equal(count, np.bincount(np.argsort(table)[ends.reshape(-1)], minlength=50))
    assert np.array_equal(ends, wanted)


# ---- pairs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("far", [0, 1 << 33])
def test_pairs_grow_widen_and_give_back(weighted, far, monkeypatch):
    monkeypatch.setattr(pairs, "STEP", 16)
    draws, held, u, v = np.random.default_rng(3), Pairs(weighted), [], []
    for turn in range(40):
        a, b = draws.integers(0, 30, (2, draws.integers(0, 9))) + far * (turn == 20)
        held.append(a, b, np.arange(len(a), dtype=np.float32))
        u, v = [*u, *a], [*v, *b]
    u, v = np.array(u), np.array(v)
    assert np.array_equal(held.ends, np.stack([u, v], axis=1)) and held.wide == (far > 0)
    assert (held.count, held.loops, held.largest) == (len(u), (u == v).sum(), max(u.max(), v.max()))
    ids, numbers = np.unique(np.stack([u, v], axis=1), return_inverse=True)
    held.renumber(ids, np.arange(len(ids)))
    assert not held.wide and len(held.memory) == 2 * held.count
    numbers, taken = numbers.reshape(-1, 2), []
    while held.count:
        ends, w = held.take(7)
        assert (w is not None) == weighted and len(ends) <= 7 and len(held.memory) == 2 * held.count
        taken.insert(0, ends)
    assert np.array_equal(np.concatenate(taken), numbers)


@pytest.mark.parametrize("native", [pytest.param(True, marks=compiled), False])
@pytest.mark.parametrize("far", [1, (1 << 33) + 1])
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=60))
@settings(max_examples=60, deadline=None)
def test_ids_with_gaps_are_numbered(native, far, ends):
    held, wanted = Pairs(False), np.array(ends, dtype=np.int64).reshape(-1, 2) * far
    held.append(wanted[:, 0], wanted[:, 1], None)
    whole, distinct = mock.patch.object(kernels, "FEW_IDS", 2), np.unique(wanted)
    with whole, mock.patch.object(kernels, "NUMBER_IDS", kernels.NUMBER_IDS if native else None):
        ids, places = held.number()
        assert ids.tolist() == distinct.tolist()
        held.become(ids, places, 7 * np.arange(len(ids)))
    assert not held.wide and np.array_equal(held.ends, 7 * np.searchsorted(distinct, wanted))


def test_negative_numbers_are_refused():
    with pytest.raises(GraphError, match="negative node number"):
        Pairs(False).append(np.array([0]), np.array([-1]), None)


# ---- plain lines ------------------------------------------------------------------------------------------

LAYOUTS = {
    "edges": Layout(2, comments=b"#%"),
    "from 1": Layout(2, first_id=1, last_id=10**7, comments=b"%"),
    "letter": Layout(2, first_id=1, last_id=99, comments=b"c", letter=b"e"),
    "commas": Layout(2, comma=True, comments=b"#%"),
    "weights": Layout(3, comments=b"#%"),
    "commas, weights": Layout(3, comma=True, comments=b"#%"),
    "whole weights": Layout(3, first_id=1, last_id=10**7, real=False, comments=b"%"),
    "letter, weights": Layout(3, first_id=1, last_id=99, comments=b"c", letter=b"e"),
}
TOKENS = [
    "0", "1", "7", "98", "99", "100", "12345678", "123456789", "999999999999999999", "1000000000000000000",
    "9223372036854775807", "9223372036854775808", "007", "00000000000000000000001", "-1", "+1", "1.5", "x",
    "e", "c", "#", "%", "\0", "\v", ",",
]  # fmt: skip
WEIGHTS = [
    "1", "-2", "+3", "0.25", ".5", "7.", "-0", "1e3", "2.5E-2", "0.1", "0.30000000000000004", "16777217",
    "9007199254740993", "12345678901234567890", "3.4028235e38", "3.4028236e38", "-1e39", "1e-46", "1e22",
    "1e23", "123456789012345678e-30", "4.9e-324", "1e99999", "1e", "1e+", "e5", ".", "1.2.3", "0x1p3", "nan",
    "inf", "1_0",
]  # fmt: skip


def strip(text, layout):
    """What the reader's own `prepare` would do to comments and letters, obviously right."""
    lines = []
    for line in text.split(b"\n"):
        bare = line.lstrip(b" \t")
        if layout.comments and bare[:1] and bare[:1] in layout.comments:
            line = b""
        elif layout.letter and bare[:1] == layout.letter and bare[1:2] in (b" ", b"\t"):
            line = bare[1:]
        elif layout.letter and bare:
            line = b"?"
        lines.append(line)
    return b"\n".join(lines)


def outcome(work):
    """u, v, bits of the weights of a chunk as lists, or the message of its error."""
    try:
        u, v, w = work()
    except GraphError as error:
        return str(error)
    return u.tolist(), v.tolist(), None if w is None else w.astype(np.float32).view(np.int32).tolist()


def good_lines(layout):
    """Lines as a layout has them, blank ones among them."""
    between = ", " if layout.comma else "\t"
    ends = [f"1{between}2", f" 5 {between} 6 ", f"77{between}88\r"]
    lead = "e " if layout.letter else ""
    return [
        "",
        "  ",
        *(lead + (f"{line.strip()}{between}3" if layout.columns == 3 else line) for line in ends),
    ]


@compiled
@pytest.mark.parametrize("name", LAYOUTS)
@given(st.data())
@settings(max_examples=200, deadline=None)
def test_plain_lines_are_read_as_the_strict_parser_reads_them(name, data):
    layout = LAYOUTS[name]
    odd = st.lists(st.sampled_from([*TOKENS, " ", "\t", "  ", "\r"]), max_size=6).map("".join)
    lines = st.sampled_from([*good_lines(layout), "# 1 2", "c x", "% 9"]) | odd
    if layout.columns == 3:
        start = ("e " if layout.letter else "") + ("3,4," if layout.comma else "3 4 ")
        lines |= st.sampled_from(WEIGHTS).map(lambda weight: start + weight)
    text = "\n".join([*data.draw(st.lists(lines, max_size=12)), ""]).encode()
    text = text if b"\0" in text else source.Source("g").clean(text, 1)
    where, weighted = source.Source("g"), layout.columns == 3

    def slow(part):
        return parse_rows(where, strip(part, layout), 1, layout)

    u, v, w, used = plain.parse_plain(
        text,
        layout.first_id,
        layout.last_id,
        layout.comments,
        layout.letter,
        layout.comma,
        weighted,
        layout.real,
    )
    assert used == 0 or text[used - 1 : used] == b"\n"
    assert outcome(lambda: slow(text[:used])) == outcome(lambda: (u, v, w))
    # Together with what is left, the same rows or the same error, and the same warnings.
    whole = Layout(**{**vars(layout), "prepare": lambda part, line: strip(part, layout)})
    said = [source.Source("g"), source.Source("g")]
    found = outcome(lambda: read_rows(said[0], text, 1, whole))
    assert found == outcome(lambda: parse_rows(said[1], strip(text, layout), 1, layout))
    assert isinstance(found, str) or said[0].warnings == said[1].warnings
    assert prepared(text, 1, layout) == text


@compiled
@given(st.lists(st.lists(st.sampled_from([*TOKENS, *WEIGHTS, *map(str, range(20))]), max_size=5), max_size=8))
@settings(max_examples=200, deadline=None)
def test_lines_of_numbers_are_read_as_numpy_reads_them(lines):
    text = "".join(" ".join(line) + "\n" for line in lines).encode()
    found = plain.parse_numbers(text, b"%")
    bare = COMMENT_LINE.sub(b"", text)
    wanted = None if b"\0" in text else find_numbers(bare)
    if found is None:  # a number of more than 18 digits is left to NumPy
        assert wanted is None or max(map(len, bare.split()), default=0) > 18
    else:
        assert [each.tolist() for each in found] == [each.tolist() for each in wanted]


@compiled
@given(
    st.lists(st.tuples(*[st.sampled_from(["a", "b c", "ab", "n" * 255, "x" * 9, *map(str, range(40))])] * 2))
)
@settings(max_examples=100, deadline=None)
def test_names_get_the_same_numbers(pairs):
    plainly, table = PlainTable(), NameTable()
    with mock.patch.multiple(name_table, FEW=2, LETTERS=600):
        table.__init__()
        text = "".join(f" {u} \t{v}\n" for u, v in pairs).encode()
        ends, _, used = table.add_lines(text, "\t", False)
        names = [each.encode() for pair in pairs for each in pair]
        assert used == len(text) and ends.tolist() == plainly.add(names).tolist()
        more = [b"new", *names[:3], b"newer", b"new"]
        assert table.add(more).tolist() == plainly.add(more).tolist()
    assert table.array().tolist() == plainly.array().tolist() and table.array().dtype == plainly.array().dtype


@compiled
def test_salts_decide_places_in_tables_and_nothing_else():
    """Else a file could be made whose names, or ids, all fall on one place: reading it took days."""
    text = "".join(f"{i}\tnode {7 * i % 300}\n" for i in range(300)).encode()
    ids = np.array([2**40 + 9 * i * i for i in range(300)] * 2, dtype=np.int64)
    read, places, numbered, filled = [], set(), [], set()
    for salt in ((1, 2), (1, 4), (2, 2)):
        with mock.patch.object(name_table, "new_salt", lambda salt=salt: library.Salt(*salt)):
            table = NameTable()
        read.append((table.add_lines(text, "\t", False)[0].tolist(), table.array().tolist()))
        places.add(tuple(np.flatnonzero(table.table).tolist()))
        with mock.patch.object(kernels, "new_salt", lambda salt=salt: library.Salt(*salt)):
            ends = ids.copy()
            found = kernels.number_ids(ends.view(np.uint32), len(ends), True)
        numbered.append((found.tolist(), ends.view(np.uint32)[: len(ends)].tolist()))
        filled.add(tuple(_places_of_ids(found, salt)))
    assert read[0] == read[1] == read[2] and numbered[0] == numbered[1] == numbered[2]
    assert len(places) == len(filled) == 3
    assert list(library.new_salt()) == list(library.new_salt()) and any(library.new_salt())


def _places_of_ids(ids, salt):
    """Which places of a table of 1,024 are taken by ids."""
    table = np.zeros((1024, 2), dtype=np.uint64)
    struct = kernels._Ids(salt=library.Salt(*salt), count=len(ids), most=512, slots=1023)
    struct.table, struct.ids = library.address(table), library.address(ids)
    kernels.FILL_IDS(struct)
    return np.flatnonzero(table[:, 0]).tolist()


@compiled
def test_plain_ids_of_every_length():
    ids = [10**k + d for k in range(18) for d in (-1, 0, 7)]
    text = "".join(f"{i} {j}\n" for i, j in zip(ids, reversed(ids))).encode()
    u, v, _, used = plain.parse_plain(text, 0, 2**63 - 1)
    assert u.tolist() == ids and v.tolist() == ids[::-1] and used == len(text)
    for cut in range(len(text) - 40, len(text)):
        u, _, _, used = plain.parse_plain(text[:cut], 0, 2**63 - 1)
        assert used == text.rfind(b"\n", 0, cut) + 1 and len(u) == text.count(b"\n", 0, used)


# ---- kept files -------------------------------------------------------------------------------------------


def keep(path, key="k", pieces=3):
    writer = KeptWriter(str(path), key)
    big = np.arange(400_000, dtype=np.int64)
    writer.write("big", big.dtype, len(big), iter(np.array_split(big, pieces)))
    writer.write("none", np.dtype(np.float32), 0, iter([]))
    writer.write("small", np.dtype(np.int32), 5, iter([np.arange(5, dtype=np.int32)]))
    writer.close()
    return big


def test_kept_arrays_are_read_in_part(tmp_path):
    path = tmp_path / "g.npz"
    big = keep(path)
    reader = KeptReader(str(path), "k")
    for lo, hi in [(0, 400_000), (0, 0), (131_071, 131_073), (131_072, 262_144), (399_999, 400_000)]:
        assert np.array_equal(reader.read("big", lo, hi), big[lo:hi])
    assert reader.read("small").tolist() == [0, 1, 2, 3, 4] and len(reader.read("none")) == 0
    reader.close()
    with np.load(path) as plainly:
        assert np.array_equal(plainly["big"], big)
    assert [entry.name for entry in tmp_path.iterdir()] == ["g.npz"]


def test_no_changed_byte_of_a_kept_file_is_believed(tmp_path):
    path = tmp_path / "g.npz"
    big = keep(path)
    right = path.read_bytes()
    with pytest.raises(Damaged, match="seal"):
        KeptReader(str(path), "other key")
    draws = np.random.default_rng(0)
    places = [*range(0, 200, 7), *draws.integers(0, len(right), 60), *range(len(right) - 900, len(right), 11)]
    for at in places:
        path.write_bytes(right[:at] + bytes([right[at] ^ 0x11]) + right[at + 1 :])
        try:
            reader = KeptReader(str(path), "k")
            found = reader.read("big"), reader.read("small")
        except (Damaged, OSError):
            continue
        # A byte of a file name or a time in the archive may differ; no number may.
        assert np.array_equal(found[0], big) and found[1].tolist() == [0, 1, 2, 3, 4]
    for size in (0, 10, len(right) // 2, len(right) - 1):
        path.write_bytes(right[:size])
        with pytest.raises(Damaged):
            KeptReader(str(path), "k").read("big")
