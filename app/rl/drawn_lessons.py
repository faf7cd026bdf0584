"""DrawnLessons: from the transitions that were drawn to the gradient in one compiled call."""

import numpy as np

from app.case.policy import AgentCase
from app.errors import Diverged
from app.gnn.parameters import Parameters
from app.native import minibatch
from app.native.minibatch import KnownStates, Minibatches
from app.rl.compiled_lesson import CompiledLessons
from app.rl.replay import FEW, EpisodeReplay
from app.rl.select import NAN_SCORE

MOST_KNOWN = 1 << 16  # states that are known by their totals


class DrawnLessons:
    """What EpisodeReplay.sample and CompiledLessons.losses make of a minibatch, with the same bits.

    Around a call that takes a quarter of a millisecond, what is asked for one by one (transitions, looks of
    their states, addresses) takes half as long again. Here the kernel looks the states up by itself; those
    that it does not know are learned by StoredTables, and it begins anew.
    """

    def __init__(self, whole: CompiledLessons, replay: EpisodeReplay, case: AgentCase) -> None:
        self.whole, self.replay, self.case = whole, replay, case
        self._minibatches: Minibatches | None = None
        self._cleared = whole.tables.cleared

    @staticmethod
    def serves(whole: CompiledLessons | None, replay: EpisodeReplay, batch: int, most: int) -> bool:
        """Whether any `batch` transitions of this memory are learned from like this.

        most   rows of a minibatch that are learned from in one go
        """
        if whole is None or not replay.compiled or not minibatch.available():
            return False
        return not whole.wants_codes and batch <= FEW and whole.holds([whole.largest] * batch, most)

    def losses(
        self, draws: np.random.Generator, weights: tuple[Parameters, Parameters]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Losses [B] of transitions drawn as EpisodeReplay.sample does, the gradient of their mean.

        weights   those that learn, and the target network's
        Raises Diverged.
        """
        picks = self.replay.draw(draws, self.case.batch)
        records, flat = self.replay.records(picks), (weights[0].flat, weights[1].flat)
        minibatches = self._minibatches or self._begin(int(picks[0, 0]))
        if self._cleared != self.whole.tables.cleared:
            self._forget()
        made = minibatches.learn(picks, records, flat)
        while made is None:
            self._know(int(picks[0, 0]))
            made = minibatches.learn(picks, records, flat)
        losses, gradient, bad = made
        if bad:
            raise Diverged(NAN_SCORE)
        return losses, gradient

    def _begin(self, episode: int) -> Minibatches:
        """Room for minibatches of states like those of an episode."""
        replay, case = self.replay, self.case
        width, owns = replay.episodes[episode].width, len(self.whole.tables.own)
        self._known = KnownStates(max(MOST_KNOWN, 2 * case.batch), width, owns)
        self._minibatches = Minibatches(
            self.whole.kernels, self._known, case.batch, replay.n_step, replay.powers,
            (case.double, case.loss == "huber"),
        )  # fmt: skip
        return self._minibatches

    def _know(self, episode: int) -> None:
        """Know the states of the transitions that were asked for last."""
        totals, unknown = self._minibatches.totals()
        totals, every = totals[unknown], totals
        named = self.replay.episodes[episode].named
        looks = self.whole.looks(named(totals.reshape(-1).tolist()))
        if self._cleared != self.whole.tables.cleared:
            # Tables hold together where they are asked for together.
            totals = every
            looks = self.whole.looks(named(totals.reshape(-1).tolist()))
            self._forget()
        self._known.know(totals, looks.look, looks.alive, looks.own)

    def _forget(self) -> None:
        """The tables of all states have become others."""
        self._known.forget()
        self._cleared = self.whole.tables.cleared
