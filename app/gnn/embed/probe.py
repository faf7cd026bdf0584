"""Linear classifiers on vectors that stay as they are: how much these tell of the classes of nodes.

A probe is a network of one layer without neighbours, trained full batch as all networks are: multinomial
logistic regression (of several labels a node, a logistic one for each). Few labels need a strong decay of
its weights, many a weak one, so that several are tried, and the weights of the best validation score are
kept. The same bits on any number of ranks.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from msgspec import structs

from app.case.embed import EmbedCase
from app.case.gnn import GnnCase
from app.comm.exact import sum_exactly
from app.comm.group import Group
from app.gnn.classifier import Classifier
from app.gnn.inputs import input_rows
from app.gnn.metrics import SplitScores
from app.gnn.training import fit
from app.gnn.watch import worth
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

    @property
    def _decays(self) -> list[float]:
        """Those that are tried: without validation nodes one."""
        return self.embed.probe_decays if self.data.counts["val"] else self.embed.probe_decays[:1]

    def of_vectors(self, vectors_own: np.ndarray) -> Classifier:
        """A trained probe of vectors [n_own, d], columns of variance 1. Ranks: all call."""
        width = vectors_own.shape[1]
        data = replace(self.data, features=vectors_own, width=width, binary=False, edges=None)
        return self._best(self._case("as_given"), data)

    def of_features(self, rows: str, propagated: bool) -> SplitScores:
        """How good a probe of the features is, or of what two products with the normalised adjacency matrix
        make of them (SGC, Wu et al. 2019). Ranks: all call.

        rows   gnn.feature_rows
        """
        case = self._case(rows)
        if propagated:
            case = structs.replace(case, model="sgc", hops=HOPS)
        return self._best(case, replace(self.data, edges=None)).evaluate_ranking()

    def _case(self, rows: str) -> GnnCase:
        best = self.data.counts["val"] > 0
        return GnnCase(
            model="dense", depth=1, feature_rows=rows, dropout=0.0, input_dropout=0.0, decayed="all",
            epochs=self.embed.probe_epochs, learning_rate=RATE, keep="best" if best else "last",
            evaluate_every=EVALUATE_EVERY, baselines=False,
        )  # fmt: skip

    def _best(self, case: GnnCase, data: NodeData) -> Classifier:
        """The probe of the decay with the best validation score, of equal ones the first. Ranks: all call."""
        found = Classifier(self.group, case, self.block, data, self.seed, budget=self.budget)
        unit, best, kept = self._unit(found), -math.inf, None
        begun = found.params.host()
        for decay in self._decays:
            found.params.set(begun)
            found.case = structs.replace(case, weight_decay=decay * unit)
            result = fit(found)
            score = 0.0 if result.best is None else worth(result.watched, result.best)
            if kept is None or score > best:
                best, kept = score, result.weights
        found.params.set(kept)
        return found

    def _unit(self, probe: Classifier) -> float:
        """A power of two near the mean square of a feature: by it a decay has the same effect in any scale.

        Ranks   all call
        """
        X = input_rows(probe.data, self.block, probe.case.feature_rows, probe.inputs)
        squares = X.multiply(X).sum(axis=1) if hasattr(X, "multiply") else (X * X).sum(axis=1)
        rows = np.asarray(squares, dtype=np.float64).reshape(-1, 1)
        mean = sum_exactly(self.group, lambda: [rows], 1)[0] / (self.block.n * X.shape[1])
        return 2.0 ** round(math.log2(mean)) if 0 < mean < math.inf else 1.0
