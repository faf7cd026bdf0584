"""Training whose rows follow the measured time of every rank (ROC section 4; app/partition/balance.py)."""

from app.checkpoint.store import State
from app.gnn.training import Classifier
from app.gnn.work_clock import WorkClock
from app.partition.balance import Balance
from app.partition.cost import CostModel
from app.partition.features import block_features, line_of
from app.sparse.repartition import graph_of

FIRST_EPOCHS = 10  # all of which are looked at; afterwards one look sums up as many epochs


class Balanced:
    """Measures the epochs of a classifier, learns the cost of its layers, moves its rows where that pays.

    model   what an earlier training on layers of the same widths learned, or None
    Ranks   all construct; moves change no bit of the weights
    """

    def __init__(self, classifier: Classifier, model: CostModel | None = None) -> None:
        group, block = classifier.group, classifier.block
        # A layer's sparse product reads the narrower of its sides (app/gnn/layers/gcn.py).
        widths = [min(each.f_in, each.f_out) for each in classifier.model.blocks]
        features = block_features(group, graph_of(block), block.rows, widths, line_of(group.device))
        if model is not None and (model.widths, model.line) != (features.widths, features.line):
            model = None
        row_bytes = 4 * (classifier.features.stored + 4)  # features, labels, splits
        self.classifier = classifier
        self.balance = Balance(group, block.rows, features, row_bytes, model=model)
        self.moves: list[int] = []
        self._since = 0
        classifier.engine.clock = WorkClock(group, len(widths))

    def after_epoch(self, epoch: int) -> None:
        """Learn from the epochs since the last look; perhaps move rows. Ranks: all call."""
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
        state.values |= {"moves": self.moves, "since": self._since}
        return state

    def restore(self, state: State) -> None:
        """Know what was learned, and hold the rows that it says. Ranks: all call."""
        self.moves, self._since = state.values["moves"], state.values["since"]
        new = self.balance.restore(state)
        if new is not None and self.classifier.fits(new):
            self.balance.move(new, self.classifier.move)
