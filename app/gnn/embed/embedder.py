"""A network that learns vectors of nodes without labels: what two views of the graph have in common."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from msgspec import structs

from app.case.embed import EmbedCase
from app.case.gnn import GnnCase
from app.comm.group import Group
from app.gnn.classifier import Classifier
from app.gnn.embed.objectives import Agreement, Compared, Objective
from app.gnn.embed.views import VIEWS, View, draw_view, epoch_of_views
from app.gnn.known import NOTHING, Known
from app.gnn.model import Draws, Model
from app.graphs.nodes.data import SPLITS, NodeData
from app.memory.tiers import TierBudget
from app.sparse.rowblock import RowBlock


@dataclass(frozen=True)
class EmbedGoal:
    """What the columns of a network's scores are: no classes, but the vector of each node."""

    kind: str = "vectors"
    digits: str = ".4f"

    @property
    def told(self) -> dict[str, str]:
        """Scores by words, as goals of labels have them: the first is shown over epochs."""
        return {"correlation of the views": "alignment"}


class Embedder(Classifier):
    """Vectors Z [n_own, d] that layers give the nodes, learned by what two views agree in.

    Source    CCA-SSG (Zhang et al. 2021), Graph Barlow Twins (Bielak et al. 2022): objectives.py; views.py
    Forward   Z_a = layers(X_a, A_a), Z_b = layers(X_b, A_b) with the same weights; L of both
    Backward  dL/dZ_a and dL/dZ_b through the layers, the gradients of weights added up
    Vectors   layers(X, A) of the whole graph, nothing left out: a function of features and neighbours, so
              that weights apply to other graphs
    Ranks     rows partitioned; the exchanges of two passes, two sums of gradients, and those of the objective
    Memory    what both passes keep for their backward passes, and a matrix of each view's entries
    """

    def __init__(
        self, group: Group, case: GnnCase, embed: EmbedCase, block: RowBlock, data: NodeData, seed: int,
        known: Known = NOTHING, budget: TierBudget | None = None,
    ) -> None:  # fmt: skip
        """See Classifier; data: features alone, see `without_labels`."""
        self.embed, self.objective, self.agreement = embed, Objective(embed), Agreement(np.nan, np.nan)
        self._models: list[Model] = []
        goal: Any = EmbedGoal()
        known = replace(known, classes=embed.dimension, goal=goal)
        super().__init__(group, live_case(case, embed), block, data, seed, known, budget)

    def _settle(self, block: RowBlock, budget: TierBudget | None) -> None:
        """See Classifier. Ranks: all call."""
        width = self.edge_columns.width if self.edge_columns else 0
        self._models = [self.model, Model(self.case, self.model.f_in, self.classes, width)]
        super()._settle(block, budget)
        if self.engine.counted is None:
            self.engine.count_rows(self._nodes(block))

    def _tile(self, budget: TierBudget | None) -> None:
        """See Classifier; views have matrices of their own in each epoch."""
        self.tiled_bytes = 0
        if not self.embed.edge_drop:
            super()._tile(budget)

    @property
    def budget(self) -> TierBudget | None:
        """The limit of the engine's buffers."""
        return self._budget

    # ---- one epoch --------------------------------------------------------------------------------------

    def _repeats(self) -> bool:
        """False: views are others in each epoch."""
        return False

    def _epoch(self, draws: Draws) -> Compared | None:
        """What the views make; forward and backward passes of both. Ranks: all call."""
        engine = self.engine
        if engine.numeric:
            of = engine, self.case, self.embed, self.seed, draws.epoch
            views = [draw_view(*of, name, self.model.f_in) for name in VIEWS]
        else:
            views = [View(draws)] * len(VIEWS)
        return epoch_of_views(engine, self._models, self.features, views, self.objective)

    def _sum(self, found: Compared) -> float:
        """The loss, which all ranks have."""
        self.agreement = found.agreement
        return found.loss

    # ---- evaluation -------------------------------------------------------------------------------------

    def evaluate(self, also: str = "") -> dict[str, Agreement]:
        """How the views of the last epoch agreed, as the score of training nodes. Ranks: all call."""
        if self.model.counts_rows:
            self.scores_own()  # leaves the statistics of columns of these weights
        return {"train": self.agreement}

    def judge(self) -> Agreement:
        """How two views agree that training has not seen, by the weights that it leaves; nan where weights
        are applied. Ranks: all call."""
        if self.case.epochs:
            self.epoch(self.case.epochs + 1)
        return self.agreement


def live_case(case: GnnCase, embed: EmbedCase) -> GnnCase:
    """The layers of a case as views need them: where these have other edges, no product A X is kept, nor
    where weights are applied, so that vectors are those of the training to the last bit."""
    return structs.replace(case, first_product="live") if embed.edge_drop else case


def without_labels(data: NodeData, block: RowBlock, nodes: int) -> NodeData:
    """Features of nodes, all of which are learned from, without labels."""
    none = np.zeros(block.n_own, dtype=bool)
    counts = dict.fromkeys(SPLITS, 0) | {"train": nodes}
    return replace(
        data, labels=None, labelled=none, train=np.arange(block.n_own) < block.n_real, val=none, test=none,
        classes=0, multilabel=False, class_ids=np.empty(0, dtype=np.int64), counts=counts, values=False,
        class_names=(), rows=None,
    )  # fmt: skip
