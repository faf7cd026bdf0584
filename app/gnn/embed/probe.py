"""Linear classifiers on vectors that stay as they are: how much these tell of the classes of nodes.

A probe is a network of one layer without neighbours, trained full batch as all networks are: multinomial
logistic regression (of several labels a node, a logistic one for each). Few labels need a strong decay of
its weights, many a weak one, so that several are tried, and the weights of the best validation score are
kept. The same bits on any number of ranks.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from msgspec import structs

from app.case.embed import EmbedCase
from app.case.gnn import GnnCase
from app.comm.exact import sum_exactly
from app.comm.group import Group
from app.gnn.classifier import Classifier
from app.gnn.training import fit
from app.gnn.watch import worth
from app.graphs.nodes.data import NodeData
from app.memory.tiers import TierBudget
from app.sparse.rowblock import RowBlock

RATE = 0.01
EVALUATE_EVERY, PATIENCE = 5, 20  # epochs; evaluations without a better validation score, then it ends
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

    @property
    def _decays(self) -> list[float]:
        """Those that are tried: without validation nodes one."""
        return self.embed.probe_decays if self.data.counts["val"] else self.embed.probe_decays[:1]

    def of_rows(self, X_own: np.ndarray | sp.csr_array, propagated: bool = False) -> Classifier:
        """A trained probe of rows [n_own, k], of vectors or of features.

        propagated   of what two products with the normalised adjacency matrix make of them (SGC, Wu et al.
                     2019)
        Ranks        all call
        """
        case = self._case()
        if propagated:
            case = structs.replace(case, model="sgc", hops=HOPS)
        X = scaled(self.group, X_own, self.block.n)
        data = replace(self.data, features=X, width=X.shape[1], binary=False, edges=None)
        return self._best(case, data)

    def _case(self) -> GnnCase:
        best = self.data.counts["val"] > 0
        return GnnCase(
            model="dense", depth=1, feature_rows="as_given", dropout=0.0, input_dropout=0.0, decayed="all",
            epochs=self.embed.probe_epochs, learning_rate=RATE, keep="best" if best else "last",
            evaluate_every=EVALUATE_EVERY, patience=PATIENCE if best else 0, baselines=False,
        )  # fmt: skip

    def _best(self, case: GnnCase, data: NodeData) -> Classifier:
        """The probe of the decay with the best validation score, of equal ones the first. Ranks: all call."""
        found = Classifier(self.group, case, self.block, data, self.seed, budget=self.budget)
        best, kept = -math.inf, None
        # From zero: weights of features that no training node has stay there, and add no noise elsewhere.
        begun = {name: np.zeros_like(each) for name, each in found.params.host().items()}
        for decay in self._decays:
            found.params.set(begun)
            found.case = structs.replace(case, weight_decay=decay)
            result = fit(found)
            score = 0.0 if result.best is None else worth(result.watched, result.best)
            if kept is None or score > best:
                best, kept = score, result.weights
        found.params.set(kept)
        return found


def scaled(group: Group, X_own: np.ndarray | sp.csr_array, n: int) -> np.ndarray | sp.csr_array:
    """Rows [n_own, k] times the power of two that brings the mean square of their numbers near 1: step sizes
    and decays then have the same effect on all, whatever their units.

    n       nodes of all ranks
    Ranks   all call
    """
    squares = X_own.multiply(X_own).sum(axis=1) if sp.issparse(X_own) else (X_own * X_own).sum(axis=1)
    rows = np.asarray(squares, dtype=np.float64).reshape(-1, 1)
    mean = sum_exactly(group, lambda: [rows], 1)[0] / (n * X_own.shape[1])
    if not 0 < mean < math.inf:
        return X_own
    return X_own * np.float32(2.0 ** round(-0.5 * math.log2(mean)))
