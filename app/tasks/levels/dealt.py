"""Folds of labelled nodes, graphs or edges: a function of the seed and of what they are, on any ranks."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from app.comm.group import Group
from app.errors import CaseError
from app.graphs.generators.random_nodes import fold_keys
from app.graphs.nodes.data import NodeData
from app.graphs.nodes.of_edges import EdgeLabels
from app.partition.dealer import own_old_rows
from app.partition.edge_labels import numbers_of_edges
from app.partition.loaded import Loaded


def draw_folds(group: Group, data: NodeData, loaded: Loaded, seed: int, folds: int) -> np.ndarray:
    """[n_own] int64, the fold of each labelled row from 0, else -1: a function of the seed and the numbers of
    rows, on any ranks.

    Ranks   all call; 12 bytes for each labelled row of all ranks are brought to each
    Raises  CaseError where there are fewer than `folds`
    """
    old = np.zeros(len(data.labelled), dtype=np.int64)
    held = own_old_rows(loaded, group.rank)
    old[: len(held)] = held
    rows = np.flatnonzero(data.labelled)
    found = np.full(len(data.labelled), -1, dtype=np.int64)
    keys, what = fold_keys(seed, old[rows]), "nodes" if loaded.members is None else "graphs"
    found[rows] = _dealt(group, keys, _kinds(data, rows), np.ones(len(rows), bool), folds, what, loaded)
    return found


def draw_edge_folds(group: Group, labels: EdgeLabels, loaded: Loaded, seed: int, folds: int) -> np.ndarray:
    """[nnz] int64, the fold of each stored entry of a labelled edge from 0, else -1: both entries of an edge
    are in one fold. A function of the seed and the ends of edges; see `draw_folds`."""
    entries = np.flatnonzero(labels.about.labelled)
    found = np.full(len(labels.first), -1, dtype=np.int64)
    keys = fold_keys(seed, numbers_of_edges(loaded)[entries], "edges/folds")
    kinds, once = _kinds(labels.about, entries), labels.first[entries]
    found[entries] = _dealt(group, keys, kinds, once, folds, "edges", loaded)
    return found


def _kinds(data: NodeData, rows: np.ndarray) -> np.ndarray:
    """[k] int32, the classes of labelled rows; values, and rows of several classes, are all alike."""
    if data.multilabel or data.values:
        return np.zeros(len(rows), np.int32)
    return data.labels[data.places(rows)].astype(np.int32)


def _dealt(
    group: Group, keys: np.ndarray, kinds: np.ndarray, once: np.ndarray, folds: int, what: str, loaded: Loaded
) -> np.ndarray:
    """[k] int64, the folds of own rows, which are put in the order of their kinds, those of a kind in that of
    their keys, and dealt in turn: folds differ by at most one row, also of each kind.

    keys    [k] uint64, of different things different     once   [k] bool, one row for each thing of all ranks
    what    things, in words     Ranks   all call. Raises CaseError where there are fewer than `folds`
    """
    sizes = group.gather_integers(np.array([np.count_nonzero(once)]))[:, 0].tolist()
    if sum(sizes) < folds:
        right = f"at most {sum(sizes)}, the labelled {what} of {loaded.graph.name}, would be right"
        raise CaseError(f"study.folds: found {folds}; {right}")
    every = group.gather_host(np.ascontiguousarray(keys[once]), sizes)
    turn = np.empty(len(every), dtype=np.int64)
    order = np.lexsort((every, group.gather_host(np.ascontiguousarray(kinds[once]), sizes)))
    turn[order] = np.arange(len(every)) % folds
    by_key = np.argsort(every)
    return turn[by_key[np.searchsorted(every, keys, sorter=by_key)]]


def split_by_fold(
    group: Group, data: NodeData, fold_own: np.ndarray, fold: int, held_back: int,
    once: np.ndarray | None = None,
) -> NodeData:  # fmt: skip
    """Data in which a fold is tested, the next one validated and all others trained on.

    held_back   the number of folds that are not trained on, 1: there is no validation
    once        bool, the rows that count, where a thing has several; None: all
    Ranks       all call
    """
    count = int(group.max_integer(int(fold_own.max(initial=-1)))) + 1
    test, val = fold_own == fold, (fold_own == (fold + 1) % count) & (held_back > 1)
    masks = {"train": (fold_own >= 0) & ~test & ~val, "val": val, "test": test}
    sums = [(mask if once is None else mask & once).sum() for mask in masks.values()]
    sizes = group.sum_integers(np.array(sums)).tolist()
    return replace(data, **masks, counts=dict(zip(masks, sizes)))


def lacking(group: Group, data: NodeData, folds: int) -> Iterator[str]:
    """What to say of classes that some folds have no row of; data: with a row for each thing. Ranks: all
    call."""
    if data.multilabel or data.values:
        return
    sizes = group.sum_integers(np.bincount(data.labels[data.among(data.labelled)], minlength=data.classes))
    few = np.flatnonzero(sizes < folds)
    if len(few):
        named = ", ".join(map(str, data.called(few[:5]).tolist())) + (", ..." if len(few) > 5 else "")
        yield f"classes with fewer labels than there are folds ({named}): some folds have none of them"
