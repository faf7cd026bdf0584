"""Training whose rows follow the measured time of every rank (ROC section 4; app/partition/balance.py)."""

from dataclasses import replace

import numpy as np

from app.checkpoint.store import State
from app.gnn.classifier import Classifier
from app.gnn.work_clock import WorkClock
from app.partition.balance import Balance, cuts_for
from app.partition.cost import CostModel
from app.partition.features import block_features, line_of
from app.partition.rows import RowPartition
from app.sparse.repartition import graph_of

FIRST_EPOCHS = 10  # all of which are looked at; afterwards one look sums up as many epochs


def layer_widths(classifier: Classifier) -> tuple[int, ...]:
    """By layer the numbers of a neighbour that its sparse product reads."""
    first, *others = classifier.model.blocks
    return (first.reads(classifier.features), *(each.reads(None) for each in others))


def layer_kinds(classifier: Classifier) -> tuple[str, ...]:
    """By layer what it does (gnn/block.py: work)."""
    first, *others = classifier.model.blocks
    return (first.work(classifier.features), *(each.work(None) for each in others))


def unlike(classifier: Classifier, model: CostModel) -> str:
    """Why a cost model says nothing of a classifier's layers; "" where it does."""
    return model.unlike(layer_widths(classifier), line_of(classifier.device), layer_kinds(classifier))


def cut_by(classifier: Classifier, model: CostModel) -> None:
    """Rows to where a model of these layers predicts that all ranks take equal time. Ranks: all call."""
    group, block = classifier.group, classifier.block
    if group.size == 1:
        return
    features = block_features(group, graph_of(block), block.rows, list(model.widths), model.line)
    new = RowPartition(block.rows.n, block.rows.starts, cuts_for(group, features, model))
    if not np.array_equal(new.cuts, block.rows.cuts) and classifier.fits(new):
        classifier.move(new)


class Balanced:
    """Measures the epochs of a classifier, learns the cost of its layers, moves its rows where that pays.

    model   what an earlier training on such layers learned (see `unlike`), or None
    Ranks   all construct; moves change no bit of the weights
    """

    def __init__(self, classifier: Classifier, model: CostModel | None = None) -> None:
        group, block = classifier.group, classifier.block
        widths, line = layer_widths(classifier), line_of(group.device)
        features = block_features(group, graph_of(block), block.rows, list(widths), line)
        kinds = layer_kinds(classifier)
        model = CostModel(widths, line, kinds=kinds) if model is None else replace(model, kinds=kinds)
        row_bytes = 4 * (classifier.features.stored + 4)  # features, labels, splits
        self.classifier = classifier
        self.balance = Balance(group, block.rows, features, row_bytes, model=model)
        self.moves: list[int] = []
        self._since = self._epoch = 0  # of the last look, and the last one
        classifier.engine.clock = WorkClock(group, len(widths))

    def begin(self) -> None:
        """Epochs count from one again, as of another training of the same layers; what was learned stays."""
        self._since = self._epoch = 0
        self.classifier.engine.clock.take()  # the evaluations between are of no epoch

    def after_epoch(self, epoch: int) -> None:
        """Learn from the epochs since the last look; perhaps move rows. Ranks: all call."""
        self._epoch = epoch
        if epoch > FIRST_EPOCHS and epoch % FIRST_EPOCHS:
            return
        seconds = self.classifier.engine.clock.take() / (epoch - self._since)
        self._since = epoch
        new = self.balance.observe(seconds, self.classifier.case.epochs - epoch)
        if new is not None and self.classifier.fits(new):  # else some rank's rows would pass its limit
            self.balance.move(new, self.classifier.move)
            self.moves.append(epoch)

    def state(self) -> State:
        """What was learned of the time that rows take; only rank 0's counts. Ranks: all call."""
        state = self.balance.state()
        state.values |= {"moves": self.moves, "since": self._epoch}  # where a resumed run's clock begins
        return state

    def restore(self, state: State) -> None:
        """Know what was learned, and hold the rows that it says. Ranks: all call."""
        self.moves, self._since = state.values["moves"], state.values["since"]
        new = self.balance.restore(state)
        if new is not None and self.classifier.fits(new):
            self.balance.move(new, self.classifier.move)
