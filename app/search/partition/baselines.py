"""Plain heuristics for balanced partitions: what searches have to beat, and where they begin.

Each returns `(block, name)`: block [n] int64, and the name to print beside the result.
"""

import numpy as np

from app.blocks.rounds import grown as grown_blocks
from app.blocks.whole import balanced, by_levels
from app.graphs.balance import balance_of
from app.graphs.graph import Graph


def grown(
    graph: Graph, compiled: bool = True, parts: int = 2, imbalance: float = 0.03
) -> tuple[np.ndarray, str]:
    """Blocks grow one after the other, each from the first free node on, by the node that is joined most to
    it.

    Source   Karypis and Kumar, SIAM Journal on Scientific Computing 1998
    """
    balance = balance_of(graph, parts, imbalance)
    block = grown_blocks(balance, np.arange(balance.rows.n), compiled)
    return balanced(balance, block, compiled), LABELS["grown"]


def multilevel(
    graph: Graph, compiled: bool = True, parts: int = 2, imbalance: float = 0.03
) -> tuple[np.ndarray, str]:
    """Blocks of a coarse graph, refined on every graph up to the first one.

    Source   Karypis and Kumar, SIAM Journal on Scientific Computing 1998
    """
    return by_levels(balance_of(graph, parts, imbalance), compiled), LABELS["multilevel"]


LABELS = {"grown": "greedy growing", "multilevel": "multilevel"}
PARTITION_BASELINES = {"grown": grown, "multilevel": multilevel}
