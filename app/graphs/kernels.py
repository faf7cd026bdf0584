"""Counting, renumbering and sorting of many pairs: compiled (native/csr.c) where it was built, else by NumPy.

Both give the same arrays. `ends` [k, 2] are pairs of node numbers; an *entry* is a row and a column, the
column doubled, plus 1 where the pair stood in this direction in the file.
"""

import ctypes

import numpy as np

from app.native.library import Salt, address, function, new_salt

Long, Pointer = ctypes.c_int64, ctypes.c_void_p
MOST_PLACED = 1 << 31  # nodes: a doubled column must fit 32 bits

COUNT_IDS = function("lk_count_ids", Pointer, Long, Pointer)
RENUMBER = function("lk_renumber", Pointer, Pointer, Long)
DEAL_PAIRS = function("lk_deal_pairs", Pointer, Pointer, Long, Pointer, Long, Pointer, Pointer, Pointer)
PLACE_PAIRS = function("lk_place_pairs", Pointer, Long, Pointer, Pointer)
PLACE_ENTRIES = function("lk_place_entries", Pointer, Long, Long, Pointer, Pointer)
PLACE_WEIGHTED_PAIRS = function("lk_place_weighted_pairs", Pointer, Pointer, Long, Pointer, Pointer)
PLACE_WEIGHTED_ENTRIES = function("lk_place_weighted_entries", Pointer, Pointer, Long, Long, Pointer, Pointer)
FINISH_ROWS = function("lk_finish_rows", Long, Long, Pointer, Pointer, Pointer, Pointer, returns=Long)
FINISH_MERGED = function(
    "lk_finish_merged", Long, Long, Long, Pointer, Pointer, Pointer, Long, *[Pointer] * 5, returns=Long
)


class _Ids(ctypes.Structure):
    _fields_ = (
        ("table", Pointer), ("ids", Pointer),
        ("count", Long), ("most", Long), ("slots", Long), ("salt", Salt),
    )  # fmt: skip


FILL_IDS = function("lk_fill_ids", ctypes.POINTER(_Ids))
NUMBER_IDS = function("lk_number_ids", ctypes.POINTER(_Ids), Pointer, Long, Long, Long, returns=Long)
FEW_IDS = 1 << 12  # that a table has room for at first


def number_ids(memory: np.ndarray, count: int, wide: bool) -> np.ndarray:
    """Number the first `count` ends in the order in which they occur, in place; needs the kernels.

    memory    uint32; ends are its words or, where wide, pairs of them as int64; numbers are its first words
    returns   [m] int64, the ids of these numbers
    """
    ids, struct, at, most = np.empty(0, dtype=np.int64), _Ids(salt=new_salt()), 0, FEW_IDS
    while True:
        ids.resize(most, refcheck=False)
        slots = 1 << (2 * most - 1).bit_length()
        table = np.zeros((slots, 2), dtype=np.uint64)
        struct.table, struct.ids, struct.most, struct.slots = address(table), address(ids), most, slots - 1
        FILL_IDS(struct)
        at = NUMBER_IDS(struct, address(memory), int(wide), at, count)
        if at == count:
            ids.resize(struct.count, refcheck=False)
            return ids
        most *= 2


def count_ids(ends: np.ndarray, count: np.ndarray) -> None:
    """count[id] += how often id occurs.

    ends    [k, 2] uint32, below len(count)     count [n] uint32
    """
    if COUNT_IDS:
        COUNT_IDS(address(ends), ends.size, address(count))
    else:
        np.add.at(count, ends.reshape(-1), np.uint32(1))  # integers: any order gives the same


def renumber(table: np.ndarray, ends: np.ndarray) -> None:
    """ends = table[ends], in place.

    table   [m] uint32     ends [k, 2] uint32, below m
    """
    if RENUMBER:
        RENUMBER(address(table), address(ends), ends.size)
    else:
        np.take(table, ends, out=ends)


def deal_pairs(
    ends: np.ndarray, weights: np.ndarray | None, offsets: np.ndarray, n: int
) -> tuple[np.ndarray, np.ndarray | None, list[int]]:
    """Both directions of each pair as entries, ordered by the rank that owns the row.

    ends      [k, 2] uint32     weights [k] float32 or None     offsets [ranks+1] first row of each rank
    returns   [2k, 2] entries (row, doubled column + written), uint32 (uint64 from 2^31 nodes on);
              [2k] float32 or None; entries for each rank
    """
    ranks = len(offsets) - 1
    if DEAL_PAIRS and n < MOST_PLACED:
        entries = np.empty((2 * len(ends), 2), dtype=np.uint32)
        starts, counts = np.ascontiguousarray(offsets, dtype=np.int64), np.empty(ranks, dtype=np.int64)
        dealt = None if weights is None else np.empty(len(entries), dtype=np.float32)
        DEAL_PAIRS(
            address(ends), address(weights), len(ends), address(starts), ranks, address(entries),
            address(dealt), address(counts),
        )  # fmt: skip
        return entries, dealt, counts.tolist()
    entries = both_directions(ends, np.uint32 if n < MOST_PLACED else np.uint64)
    owner = np.searchsorted(offsets[1:], entries[:, 0], side="right")
    order = np.argsort(owner, kind="stable")
    dealt = None if weights is None else np.repeat(weights, 2)[order]
    return entries[order], dealt, np.bincount(owner, minlength=ranks)[:ranks].tolist()


def both_directions(ends: np.ndarray, kind: type) -> np.ndarray:
    """[2k, 2] entries of `kind`, the two of a pair one after the other."""
    entries = np.empty((len(ends), 2, 2), dtype=kind)
    entries[:, :, 0] = ends
    entries[:, :, 1] = ends[:, ::-1]
    entries[:, :, 1] <<= kind(1)
    entries[:, 0, 1] |= kind(1)
    return entries.reshape(-1, 2)
