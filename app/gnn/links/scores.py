"""How well scores tell pairs that edges join from pairs that none does."""

from dataclasses import dataclass, field

import numpy as np

from app.gnn.areas import area_under_roc, average_precision
from app.gnn.links.ranking import EachScores

HITS = (20, 50, 100)


@dataclass(frozen=True)
class LinkScores:
    """How good scores of some pairs are; nan where there are none of one kind.

    auc     area under the ROC curve: how likely a joined pair has a larger score than one that is not
    ap      average precision
    hits    by K: the share of joined pairs with a larger score than the K-th largest of the others (Hu et al.
            2020, OGB); of fewer than K others left out
    pairs   that are joined
    each    how well each node's partners are ranked; None where nobody asked
    """

    auc: float
    ap: float
    hits: dict[int, float] = field(default_factory=dict)
    pairs: int = 0
    each: EachScores | None = None

    @classmethod
    def of(cls, scores: np.ndarray, joined: int) -> "LinkScores":
        """From the scores [k] of pairs, the first `joined` of which are."""
        found, others = scores[:joined], scores[joined:]
        if not (len(found) and len(others)) or not np.isfinite(scores).all():
            return cls(float("nan"), float("nan"), {}, len(found))
        positive = np.arange(len(scores)) < joined
        falling = np.sort(others)[::-1]
        hits = {k: float((found > falling[k - 1]).mean()) for k in HITS if k <= len(others)}
        return cls(area_under_roc(scores, positive), average_precision(scores, positive), hits, len(found))

    @property
    def score(self) -> float:
        """What is shown over epochs."""
        return self.auc

    def named(self) -> dict[str, float]:
        """What is told in result.json."""
        found = {"auc": self.auc, "ap": self.ap} | {f"hits_{k}": share for k, share in self.hits.items()}
        return found if self.each is None else found | self.each.named()

    @property
    def recall(self) -> float:
        """Of each node's ranking, for gnn.watch; so are precision and ndcg."""
        return self.each.recall

    @property
    def precision(self) -> float:
        """See `recall`."""
        return self.each.precision

    @property
    def ndcg(self) -> float:
        """See `recall`."""
        return self.each.ndcg
