"""Training the networks of a run (gnn.members): one after the other or, on whole graphs, one by each rank.

Whoever trains a member, a checkpoint has it under the same names, so that a run goes on on any ranks: what a
member came to, or its loop's state, and how many of its rows metrics.csv has by then ("told"; all, where
nothing is said): rank 0 writes those of its own member at once, those of the others when their turn is over.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from app.checkpoint.keeper import Keeper, PieceKeeper
from app.checkpoint.shared import share_state
from app.checkpoint.store import State
from app.comm.group import Group
from app.comm.guard import share_failure
from app.gnn.balanced import Balanced
from app.gnn.classifier import Classifier
from app.gnn.saved import SavedModel
from app.gnn.training import Fit, fit
from app.tasks.context import Context
from app.tasks.levels import said
from app.tasks.levels.examples import Examples

Record = Callable[[dict[str, float]], None]
DONE, RUNNING = "done", "fit"  # keys of a member
TOLD = "told"


@dataclass(frozen=True)
class Learner:
    """A network that is trained gnn.members times.

    count      of members     looks   how often at most a training calls `at` of its keeper
    begin      makes it a member, by its number, that has learned nothing
    recorder   what takes the rows of a member
    fit        trains it: record, check_every, keeper, and the ranks that would do the same
    Ranks      all call each of them
    """

    count: int
    looks: int
    begin: Callable[[int], None]
    recorder: Callable[[int], Record]
    fit: Callable[[Record, int, Keeper, Group | None], Fit]


def classifying(
    context: Context, examples: Examples, classifier: Classifier, balanced: Balanced | None,
    saved: SavedModel | None,
) -> Learner:  # fmt: skip
    """A classifier whose members begin from seeds that follow each other, or from saved weights."""
    case = classifier.case

    def begin(number: int) -> None:
        classifier.begin(context.case.seed + number)
        if saved is not None:
            classifier.params.set(saved.members[number])

    def train(record: Record, check_every: int, keeper: Keeper, alike: Group | None) -> Fit:
        hooks: dict[str, Any] = {"keeper": keeper, "alike": alike}
        if balanced:
            hooks |= {"after_epoch": balanced.after_epoch, "beside": balanced}
            balanced.begin()
        return fit(classifier, record, check_every, **hooks)

    return Learner(case.members, case.epochs, begin, partial(_recorder, context, examples), train)


def train_members(context: Context, learner: Learner) -> list[Fit]:
    """Train a network, or gnn.members of it. A resumed run goes on in the members that it was at.

    Ranks   all call; identical on all
    """
    count, group, fits = learner.count, context.alike, []
    if count == 1:
        return [_train(context, learner, context.keeper)]
    if group is not None and learner.looks:
        for first in range(0, count, group.size):
            turn = range(first, min(first + group.size, count))
            fits += _Turn(context, learner, turn).trained()
        learner.begin(count - 1)
        return fits
    for number in range(count):
        keeper, record = PieceKeeper(context.keeper, piece(number)), learner.recorder(number)
        if (earlier := keeper.recall(DONE)) is not None:
            fits.append(_fit_of(earlier))
            if TOLD in earlier.values:
                _tell(record, earlier)
                keeper.keep(DONE, _told_state(earlier, None))
            continue
        learner.begin(number)
        said.say_member(context, number, count)
        if (running := keeper.recall(RUNNING)) is not None:
            _tell(record, running)
        found = _train(context, learner, keeper, number)
        keeper.keep(DONE, _state_of(found))
        fits.append(found)
    return fits


def piece(number: int) -> str:
    """What keys of a member begin with."""
    return f"member {number}"


def _recorder(context: Context, examples: Examples, number: int) -> Record:
    """What takes the rows of a member; the curves of a run are those of its first one."""
    return examples.recorder(context, f"member {number + 1}" if number else "")


def _train(context: Context, learner: Learner, keeper: Keeper, number: int = 0) -> Fit:
    """Ranks: all call."""
    with context.log.phase("train"):
        record = learner.recorder(number)
        return learner.fit(record, context.case.run.check_every, keeper, context.alike)


def _state_of(found: Fit) -> State:
    return State({key: value for key, value in vars(found).items() if key != "weights"}, found.weights)


def _fit_of(state: State) -> Fit:
    return Fit(state.arrays, **{key: value for key, value in state.values.items() if key != TOLD})


def _told_state(state: State, told: int | None) -> State:
    """The state where metrics.csv has so many rows of it; None: all."""
    values = {key: value for key, value in state.values.items() if key != TOLD}
    return replace(state, values=values if told is None else values | {TOLD: told})


def _tell(record: Record, state: State) -> None:
    """Record what has not been yet."""
    for row in state.values["records"][state.values.get(TOLD, len(state.values["records"])) :]:
        record(row)


class _Turn(Keeper):
    """Members that are trained at the same time, one by each rank: a keeper of this rank's loop.

    All ranks look at signals and clocks as often as the longest loop may, Learner.looks times, in step; a
    rank whose member is done, or that has none, does nothing but look. Ranks: all construct
    """

    def __init__(self, context: Context, learner: Learner, turn: range) -> None:
        self.context, self.learner = context, learner
        self.group, self.turn, self.looks = context.alike, turn, 0
        self.number = turn.start + self.group.rank
        self.own: tuple[str, State] = "", State()  # of this rank's member: a key, "": it has not begun
        self.left = False  # a look has failed: on all ranks, or not in step with them any more

    def trained(self) -> list[Fit]:
        """The members of this turn. Ranks: all call; identical on all."""
        known = [self.context.keeper.recall(f"{piece(n)} {DONE}") for n in self.turn]
        if any(each is None for each in known):
            for number, each in zip(self.turn, known):
                if each is None:
                    said.say_member(self.context, number, self.learner.count)
            failure = None
            try:
                self._train(known)
            except Exception as error:  # raised below, on every rank
                if self.left:
                    raise
                failure = error
            while self.looks < self.learner.looks:
                self._look()
            self.group.rest()
            share_failure(self.group, failure, "training")
            known = [state for _, state in self._shared()]
        for number, each in zip(self.turn, known):
            _tell(self.learner.recorder(number), each)
            self.context.keeper.keep(f"{piece(number)} {DONE}", _told_state(each, None))
        return [_fit_of(each) for each in known]

    def _train(self, known: list[State | None]) -> None:
        """This rank's member, if it has one that is not done."""
        if self.number not in self.turn:
            return
        if (done := known[self.group.rank]) is not None:
            self.own = DONE, done
            return
        self.learner.begin(self.number)
        first, running = self.group.rank == 0, self.recall(RUNNING)
        if first and running is not None:
            _tell(self.learner.recorder(self.number), running)
        self.told = 0
        if running is not None:
            self.own = RUNNING, running
            self.told = running.values.get(TOLD, len(running.values["records"]))
        record = self.learner.recorder(self.number) if first else lambda row: None
        with self.context.log.phase("train"):
            found = self.learner.fit(record, 0, self, None)
        self.own = DONE, self._told(_state_of(found))

    def _told(self, state: State) -> State:
        """The state of this rank's member, with how many of its rows are in metrics.csv."""
        return state if self.group.rank == 0 else _told_state(state, self.told)

    # ---- the keeper of this rank's loop -----------------------------------------------------------------

    def recall(self, key: str) -> State | None:
        """See Keeper."""
        return self.context.keeper.recall(f"{piece(self.number)} {key}")

    def keep(self, key: str, state: State) -> None:
        """Not here: what a member came to is kept when all are together."""

    def at(
        self, step: int, key: str = "", state: Callable[[], State] | None = None, now: bool = False
    ) -> None:
        """See Keeper; the steps are counted here."""
        self._look(state)

    def apart(self, group: Group) -> Keeper:
        """See Keeper."""
        return self.context.keeper.apart(group)

    def halt(self) -> None:
        """See Keeper."""
        self.context.keeper.halt()

    def _look(self, state: Callable[[], State] | None = None) -> None:
        """Once more; state: tells that of this rank's loop. Ranks: all call."""
        made = self.turn.start * self.learner.looks + self.looks
        self.looks += 1
        try:
            self.context.keeper.at(made, "members", partial(self._save, state))
        except Exception:
            self.left = True
            raise

    def _save(self, state: Callable[[], State] | None) -> State:
        """Keep how far all members of the turn are. Ranks: all call."""
        if state is not None:
            self.own = RUNNING, self._told(state())
        for number, (key, each) in zip(self.turn, self._shared()):
            if key:
                self.context.keeper.keep(f"{piece(number)} {key}", each)
        return State({"turn": self.turn.start})

    def _shared(self) -> list[tuple[str, State]]:
        """Key and state of each member of the turn. Ranks: all call; identical on all."""
        key, own = self.own
        mine, found = replace(own, values={"key": key, "values": own.values}), []
        for root in range(len(self.turn)):
            each = share_state(self.group, mine if root == self.group.rank else None, root)
            found.append((each.values["key"], replace(each, values=each.values["values"])))
        return found
