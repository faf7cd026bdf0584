"""Linear classifiers on vectors that stay as they are: how much these tell of the classes of nodes.

A probe is a network of one layer without neighbours, trained full batch as all networks are: multinomial
logistic regression with a weight decay (of several labels a node, a logistic one for each), the weights of
the best validation score. The same bits on any number of ranks.
"""

from dataclasses import dataclass, replace

import numpy as np
from msgspec import structs

from app.case.embed import EmbedCase
from app.case.gnn import GnnCase
from app.comm.group import Group
from app.gnn.classifier import Classifier
from app.gnn.metrics import SplitScores
from app.gnn.training import fit
from app.graphs.nodes.data import NodeData
from app.memory.tiers import TierBudget
from app.sparse.rowblock import RowBlock

RATE = 0.01
EVALUATE_EVERY = 5  # epochs
HOPS = 2  # products with the normalised adjacency matrix: what two layers hear


@dataclass(frozen=True)
class Probing:
    """What probes are trained with, whatever they read.

    data   of the nodes, with labels and sets
    """

    group: Group
    block: RowBlock
    data: NodeData
    seed: int
    budget: TierBudget
    embed: EmbedCase

    @property
    def possible(self) -> bool:
        """Whether there is anything to train on."""
        return bool(self.embed.probe_epochs and self.data.classes and self.data.counts["train"])

    def of_vectors(self, vectors_own: np.ndarray) -> Classifier:
        """A trained probe of vectors [n_own, d], each column brought to one scale. Ranks: all call."""
        width = vectors_own.shape[1]
        data = replace(self.data, features=vectors_own, width=width, binary=False, edges=None)
        return self._trained(self._case("standard"), data)

    def of_features(self, rows: str, propagated: bool) -> SplitScores:
        """How good a probe of the features is, or of what two products with the normalised adjacency matrix
        make of them (SGC, Wu et al. 2019). Ranks: all call.

        rows   gnn.feature_rows
        """
        case = self._case(rows)
        if propagated:
            case = structs.replace(case, model="sgc", hops=HOPS)
        return self._trained(case, replace(self.data, edges=None)).evaluate_ranking()

    def _case(self, rows: str) -> GnnCase:
        best = self.data.counts["val"] > 0
        return GnnCase(
            model="dense", depth=1, feature_rows=rows, dropout=0.0, input_dropout=0.0, decayed="all",
            epochs=self.embed.probe_epochs, weight_decay=self.embed.probe_decay, learning_rate=RATE,
            keep="best" if best else "last", evaluate_every=EVALUATE_EVERY,
        )  # fmt: skip

    def _trained(self, case: GnnCase, data: NodeData) -> Classifier:
        found = Classifier(self.group, case, self.block, data, self.seed, budget=self.budget)
        fit(found)
        return found


