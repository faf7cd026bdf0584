"""Full-batch training of R-GCN for entity classification (Schlichtkrull et al. 2018, section 3)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from app.case.rgcn import RgcnCase, bases_of
from app.checkpoint.keeper import NOTHING_KEPT, Keeper
from app.checkpoint.led import led
from app.checkpoint.store import State
from app.comm.group import Group
from app.comm.guard import check_replicas, each_by_itself
from app.comm.ordered import sum_blocks
from app.errors import CaseError
from app.gnn.goals import softmax
from app.gnn.loss import refuse_infinite, refuse_infinite_rows
from app.gnn.optim import rate_of
from app.gnn.rgcn import kept as rgcn_kept
from app.gnn.rgcn.features import Features
from app.gnn.rgcn.grid import choose_placement, widths_of
from app.gnn.rgcn.kept import Best
from app.gnn.rgcn.model import RGCN, Drops, NetShape
from app.gnn.rgcn.steps import Steps
from app.gnn.stopwatch import Took
from app.graphs.triples.data import NodeLabels
from app.graphs.triples.relational import RelationalGraph
from app.memory.tiers import TierBudget
from app.partition.relations import Placement
from app.watchdog import beat

Array = Any
NO_LIMIT = TierBudget(0)


@dataclass
class RelationalFit:
    """What training leaves.

    case          the settings of the network and its training
    net           the network, with its weights on this rank
    records       one for each evaluated epoch: loss and accuracies of the weights before its step
    predictions   [labelled nodes] int32 classes, in the order of labels.nodes
    probabilities [labelled nodes, classes] float32, how likely each class is for them
    accuracy      share of the nodes of each set that are classified rightly, at the end
    epochs        that were made     best_epoch   after which the weights are these
    seconds       of training, of all parts of the run
    """

    case: RgcnCase
    net: RGCN
    placement: Placement
    records: list[dict[str, float]] = field(default_factory=list)
    predictions: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    probabilities: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), dtype=np.float32))
    accuracy: dict[str, float] = field(default_factory=dict)
    epochs: int = 0
    best_epoch: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Course:
    """What is done beside the epochs of a training.

    record        called with each evaluation
    check_every   epochs between comparisons of replicated weights over ranks; 0: never
    begin         called before the first epoch; all ranks call it
    keeper        where training may be stopped, and what it goes on from
    alike         ranks that each have all: the first one trains, the others rest and take what it learned;
                  None: those of the training's group train together
    """

    record: Callable[[dict[str, float]], None] = lambda row: None
    check_every: int = 0
    begin: Callable[..., None] = lambda *made: None
    keeper: Keeper = NOTHING_KEPT
    alike: Group | None = None

    def compares(self, epoch: int) -> bool:
        """Whether weights are compared over ranks after an epoch."""
        return self.check_every > 0 and epoch % self.check_every == 0


PLAIN_COURSE = Course()


class Targets:
    """Labels of the output rows of this rank.

    labels [n_own] int32, -1 where there is none to learn; weight [n_own] float32; both on the device
    wanted [split] host [n_own] int32, -1 where a row does not count
    """

    def __init__(self, group: Group, net: RGCN, placement: Placement, labels: NodeLabels) -> None:
        self.group, self.out, self._blocks = group, net.out, placement.rows.block_counts
        sets = labels.sets()
        self.wanted = {split: self._of_rows(nodes, classes) for split, (nodes, classes) in sets.items()}
        self.counts = {split: int((classes >= 0).sum()) for split, (_, classes) in sets.items()}
        learned = self.wanted["train"] >= 0
        weight = np.where(learned, np.float32(1) / np.float32(max(self.counts["train"], 1)), 0)
        weight = weight.astype(np.float32)
        self.labels, self.weight = group.device.put(self.wanted["train"]), group.device.put(weight)

    def _of_rows(self, nodes: np.ndarray, classes: np.ndarray) -> np.ndarray:
        """[n_own] int32: the class of each own row that is one of the nodes, else -1."""
        out = np.full(self.out.padded, -1, dtype=np.int32)
        _, own, at = np.intersect1d(self.out.nodes, nodes, assume_unique=True, return_indices=True)
        out[own] = classes[at]
        return out

    def loss(self, Z_own: Array) -> float:
        """Mean cross-entropy of the training nodes.

        Z_own   [n_own, classes] float32 logits on the device; they become the gradient by them
        Ranks   all call
        """
        device = self.group.device
        losses = device.softmax_loss(Z_own, self.labels, self.weight)
        part = device.fold(self.out.starts, losses[:, None])
        return float(device.get(sum_blocks(self.group, part, self._blocks))[0])

    def accuracy(self, predicted: np.ndarray) -> dict[str, float]:
        """The share of right classes by split that has any; predicted [n_own] int32, of own rows. Ranks: all
        call.
        """
        hits = np.array([int((predicted == wanted).sum()) for wanted in self.wanted.values()])
        right = self.group.sum_integers(hits).tolist()
        found = zip(self.wanted, right)
        return {split: hit / self.counts[split] for split, hit in found if self.counts[split]}


def train_rgcn(
    group: Group,
    graph: RelationalGraph,
    labels: NodeLabels,
    case: RgcnCase,
    seed: int,
    budget: TierBudget = NO_LIMIT,
    inputs: Features | None = None,
    course: Course = PLAIN_COURSE,
) -> RelationalFit:
    """Train on the labelled training nodes of a graph; the result is the same for any partition.

    budget   limit on what arrays of the fast tier take, and where others go; limit 0: none
    inputs   features of the nodes; None: one-hot
    course   what is done beside; `begin` is called with the network
    Ranks    all call
    Raises Diverged where the loss is no longer finite.
    """
    took, alike = Took(), course.alike
    refuse_unwatched_nodes(case, labels)
    placement = choose_placement(group.size, graph, labels, case, budget.limit, inputs)
    slow = budget if budget.limit else None
    shape = NetShape(widths_of(case, labels.classes), bases_of(case), seed, case.blocks)
    with each_by_itself(alike, "setting up the network"):
        net = RGCN(group, placement, graph, labels.nodes, shape, case.prune, slow, inputs)
        course.begin(net)
        run = _Run(group, case, net, Targets(group, net, placement, labels), Steps(group, case, net), took)
    found = RelationalFit(case, net, placement, run.records)
    found.epochs = led(alike, course.keeper, "training", partial(_epochs, run, seed, course))
    with each_by_itself(alike, "evaluating the network"):
        found.best_epoch = run.choose(found.epochs)
        _apply(group, labels, run.targets, found)
    if alike is not None and course.check_every:
        check_replicas(alike, {"probabilities": found.probabilities}, "what the network says")
    found.seconds = run.took()
    return found


def _epochs(run: "_Run", seed: int, course: Course, keeper: Keeper) -> int:
    """The epochs of `train_rgcn`; how many were made. Ranks: those of the network call."""
    case, net = run.case, run.net

    def make(epoch: int) -> None:
        due = epoch % case.evaluate_every == 0 or epoch == case.epochs
        row = run.step(epoch, due, Drops.of(case, seed, epoch))
        if course.compares(epoch):
            check_replicas(run.group, net.replicated(), f"the weights after epoch {epoch}")
        if due:
            run.records.append(row)
            course.record(row)

    return make_epochs(run, case, keeper, make)


def make_epochs(run: Any, case: RgcnCase, keeper: Keeper, make: Callable[[int], None]) -> int:
    """Make epochs up to rgcn.epochs, or until rgcn.patience evaluations in turn were no better.

    run      what is trained: goes on from a kept state (`restore`), tells it (`state`), knows the `best`
    make     makes the epoch of a number, and evaluates where that is due
    returns  how many there are, with those of an earlier part of the run
    Ranks    those of the network call
    """
    made = 0
    if (earlier := keeper.recall("fit")) is not None:
        made = run.restore(earlier)
    for epoch in range(made + 1, case.epochs + 1):
        beat()
        keeper.at(epoch - 1, "fit", partial(run.state, epoch - 1))
        if case.patience and run.best.waited >= case.patience:
            break
        make(epoch)
        made = epoch
    keeper.ended("fit", partial(run.state, made, last=True))
    return made


def watches(case: RgcnCase) -> bool:
    """Whether scores of validation nodes decide on anything."""
    return case.keep == "best" or case.patience > 0


def refuse_unwatched_nodes(case: RgcnCase, labels: NodeLabels) -> None:
    """Refuse to go by the scores of validation nodes that are not there. Raises CaseError."""
    if watches(case) and not (labels.val_label >= 0).any():
        key = "keep" if case.keep == "best" else "patience"
        right = "rgcn.val_labels, or a set val of the .npz, would be right, or to leave it out"
        raise CaseError(f"rgcn.{key}: goes by labelled validation nodes, and there are none; {right}")


@dataclass
class _Run:
    """A training under way: network, optimisers, the best weights so far, records: what checkpoints hold."""

    group: Group
    case: RgcnCase
    net: RGCN
    targets: Targets
    steps: Steps
    took: Took
    best: Best = field(default_factory=Best)
    records: list[dict[str, float]] = field(default_factory=list)

    def step(self, epoch: int, due: bool, drops: Drops | None) -> dict[str, float]:
        """A step of all weights; the loss before it, and where `due` the scores. Ranks: all call."""
        net, case, scores = self.net, self.case, {}
        if due and drops:
            scores = self._evaluate(net.forward(), epoch - 1)
        Z_own = net.forward(drops)
        if due and not drops:
            scores = self._evaluate(Z_own, epoch - 1)
        with net.clock("loss"):
            loss = self.targets.loss(Z_own)
        self.steps.rate = rate_of(case, epoch)
        for gradient in net.gradients(Z_own):
            with net.clock("optimiser"):
                self.steps.take(gradient)
        refuse_infinite(loss, epoch, case, epoch - 1)
        return {"epoch": epoch, "loss": loss, **scores}

    def _evaluate(self, Z_own: Array, epoch: int) -> dict[str, float]:
        """Scores of the weights after an epoch, which are kept where they are the best. Ranks: all call."""
        scores = self.targets.accuracy(_classes(self.group, Z_own))
        if watches(self.case):
            self.best.observe(epoch, scores["val"], self.net.arrays() if self.case.keep == "best" else {})
        return {f"{split}_score": score for split, score in scores.items()}

    def choose(self, epochs: int) -> int:
        """Make the weights the best ones, or leave the last; the epoch of them. Ranks: all call."""
        if self.case.keep == "last":
            return epochs
        self._evaluate(self.net.forward(), epochs)
        self.best.restore(self.net.arrays())
        return self.best.epoch

    def state(self, epochs: int, last: bool = False) -> State:
        """All that later epochs depend on, after `epochs` of them; last: as of state_of. Ranks: all call."""
        state = rgcn_kept.state_of(self.group, self.net, self.steps, epochs, self.records, self.took, last)
        self.best.enter(state, self.group, self.net)
        return state

    def restore(self, state: State) -> int:
        """Go on from what `state` told; the epochs it had made. Ranks: all call."""
        made = rgcn_kept.restore(self.group, self.net, self.steps, state)
        self.best.recall(state, self.group, self.net)
        self.records += state.values["records"]
        self.took = Took(state.values["seconds"])
        return made


def _apply(group: Group, labels: NodeLabels, targets: Targets, found: RelationalFit) -> None:
    """Enter predictions and accuracies of the last weights. Ranks: all call."""
    net, case = found.net, found.case
    Z_own = net.forward()
    wanted = np.isin(net.out.nodes, labels.nodes)  # without pruning there are rows of all nodes
    scores, predicted = group.device.get(Z_own[: len(wanted)])[wanted], _classes(group, Z_own)
    loss = targets.loss(Z_own)  # of the last weights; Z_own is its gradient now
    refuse_infinite(loss, case.epochs, case, case.epochs)
    refuse_infinite_rows(group, scores)
    likely = softmax(scores)
    found.accuracy = targets.accuracy(predicted)
    own = np.ascontiguousarray(predicted[: len(net.out.nodes)][wanted])
    counts = _counts(group, len(own))
    found.predictions = group.gather_host(own, counts)
    found.probabilities = group.gather_host(likely, counts)


def _classes(group: Group, Z_own: Array) -> np.ndarray:
    """[n_own] int32 host: the class with the largest score of each row."""
    return group.device.get(group.device.argmax_rows(Z_own))


def _counts(group: Group, own: int) -> list[int]:
    return group.gather_integers(np.array([own]))[:, 0].tolist()
