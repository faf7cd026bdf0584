"""Reach: the rows of each layer's output that the loss depends on, so that an epoch makes no others.

The loss is a mean over the training nodes T. With layers 1..L, the rows needed of layer l's output are

    S_L = T     S_l = S_{l+1} and what its nodes hear     (the receptive field of T, from below)

Forward   a product with A makes the rows S_l; the others stay as they are before neighbours are added
Backward  the gradient D by layer l's output is zero outside S_l, hence
          (A^T D)_i = sum over the nodes j in S_l that hear i of D_j
          so that entries of A^T in other columns are left out: a matrix of its own, made once
Exact     A row outside S_l is multiplied by gradients of zero only, and what is left out of a sum are zeros:
          loss and gradients are those of whole products, bit for bit but for signs of zeros.

But for neighbours' sums the layers work on rows one by one (Convolution.row_by_row), so no more follows. Of
sparse graphs with few training nodes several layers gain; of one like ogbn-products, where T has 8 % of the
nodes and a node 50 neighbours, the last one alone.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from app.comm.group import Group
from app.sparse.rowblock import RowBlock

Array = Any
MILLION = 1_000_000
MOST_ENTRIES = 0.8  # of the matrix: a layer that reads more of it reads all
FORWARD, BACKWARD = "forward", "backward"


@dataclass(frozen=True)
class Narrow:
    """What one layer's products with A leave out.

    share    of the stored entries of all ranks: those of rows that are needed
    rows     [n_own] float32 on the device, 1 where the layer's output is needed, else 0
    matrix   A^T (or its tiles) without the columns of other nodes; None: A^T itself
    nbytes   of the matrix on this rank
    edges    of a layer that reads features of edges, those of the entries of A in such rows, and of the same
             entries of A^T (gnn/edges.py); None: of all entries
    """

    share: float
    rows: Array
    matrix: Any = None
    nbytes: int = 0
    edges: Any = None


def narrow_layers(
    group: Group,
    block: RowBlock,
    train_own: np.ndarray,
    row_by_row: list[bool],
    products: set[tuple[int, str]],
    weighted: bool,
) -> dict[int, Narrow]:
    """For each layer that need not make all rows what its products leave out.

    train_own  [n_own] bool, the nodes in the loss
    row_by_row by layer (layers/layer.py); where it is not, that layer and all below make all rows
    products   (layer, FORWARD or BACKWARD) of all products with A in an epoch, layers from 0
    weighted   A^T has the edges' weights on this rank
    The matrices of all layers together have on no rank more entries than A; the last layers come first.
    Ranks      all call (one exchange of a byte a row for each layer); which layers and shares, all agree
    """
    found: dict[int, Narrow] = {}
    degrees, flags, spare = block.adjacency.degrees_own().astype(np.int64), train_own, 1.0
    transpose = block.transpose
    stored_own = int(transpose.degrees_own().sum())
    for layer in range(len(row_by_row) - 1, -1, -1):
        if not row_by_row[layer]:
            break
        needed, stored = group.sum_integers(np.array([degrees[flags].sum(), degrees.sum()])).tolist()
        share = needed / max(stored, 1)
        if share > MOST_ENTRIES:
            break  # layers below need no fewer
        extended = block.extend_host(group, flags.view(np.uint8)).astype(bool)
        pointers = transpose.pointers_within(extended)
        most = _most(group, sum(int(each[-1]) for each in pointers), stored_own)
        if (layer, BACKWARD) in products and most <= spare:
            spare -= most
            matrix, nbytes = transpose.within(group.device, extended, pointers, weighted)
        else:
            matrix, nbytes = None, 0
        if (layer, BACKWARD) in products or (layer, FORWARD) in products:
            rows = group.device.put(flags.astype(np.float32))
            found[layer] = Narrow(share, rows, matrix, nbytes)
        flags = flags | (sum(np.diff(each) for each in pointers) > 0)
    return found


def nodes_of_graphs(group: Group, readout: RowBlock, graphs_own: np.ndarray) -> np.ndarray:
    """[n_own] bool, the nodes of some graphs of a set.

    readout     the matrix R (graphs/members.py)     graphs_own  [n_own] bool, those graphs, in their own rows
    Ranks       all call (one exchange of a byte a row)
    """
    extended = readout.extend_host(group, graphs_own.view(np.uint8)).astype(bool)
    return sum(np.diff(each) for each in readout.transpose.pointers_within(extended)) > 0


def _most(group: Group, kept: int, stored: int) -> float:
    """The largest share of its entries that a rank keeps. Ranks: all call."""
    return int(group.max_integers(np.array([-(-kept * MILLION // max(stored, 1))]))[0]) / MILLION


def expected_shares(nodes: float, entries: float, train: float, layers: int) -> list[float]:
    """What Narrow.share is about, by layer, where the training nodes and the neighbours of nodes are drawn:
    the share of nodes, which is less than that of entries where degrees differ, as hubs are soon reached.

    nodes, entries   of the graph     train   share of the nodes that are in the loss
    A node of mean degree d is in S_l unless neither it nor one of its neighbours is in S_{l+1}.
    """
    share, shares = train, []
    for _ in range(layers):
        shares.append(share if share <= MOST_ENTRIES else 1.0)
        share = 1 - (1 - share) ** (1 + entries / max(nodes, 1))
    return shares[::-1]


def whole_below(shares: list[float], row_by_row: list[bool]) -> list[float]:
    """Shares by layer with all rows of each layer that needs them, and of all layers below it; row_by_row as
    in `narrow_layers`."""
    last = max((i for i, alone in enumerate(row_by_row) if not alone), default=-1)
    return [1.0] * (last + 1) + shares[last + 1 :]


def copied_shares(shares: list[float], products: set[tuple[int, str]]) -> list[float]:
    """By layer how much of the entries its own matrix holds, 0 where it has none; see `narrow_layers`."""
    spare, copied = 1.0, []
    for layer in range(len(shares) - 1, -1, -1):
        made = (layer, BACKWARD) in products and shares[layer] <= min(spare, MOST_ENTRIES)
        copied.append(shares[layer] if made else 0.0)
        spare -= copied[-1]
    return copied[::-1]


def fewer_edges(shares: list[float], reading: set[int]) -> dict[int, int]:
    """The layers that read features of edges and have those of fewer entries, each with the layer whose they
    are: its own, or those of a later one that needs the same rows. In all not more than the graph has.

    shares   as of `narrow_layers`: a layer needs all rows that a later one needs
    """
    spare, found, last = 1.0, {}, -1
    for layer in sorted(reading, reverse=True):
        if last >= 0 and shares[layer] == shares[last]:
            found[layer] = last
        elif shares[layer] <= min(spare, MOST_ENTRIES):
            spare -= shares[layer]
            found[layer] = last = layer
    return found


def widest_products(operations: list[Any], copied: set[int], directed: bool) -> dict[int | str, int]:
    """Columns of the widest operand that each matrix meets: by layers that have their own, FORWARD: A, and
    BACKWARD: A^T, of a directed graph.

    operations   of an epoch (Programs.recorded)     copied   layers with a matrix of their own
    """
    found: dict[int | str, int] = {}
    for each in operations:
        if each.way and not each.name.startswith("messages"):  # whose entries are not gone through by tiles
            back = each.way == BACKWARD
            matrix = (
                each.layer if back and each.layer in copied else BACKWARD if back and directed else FORWARD
            )
            found[matrix] = max(found.get(matrix, 0), *each.exchanges)
    return found
