"""Keeper: what a loop needs so that it can be stopped and resumed, and keepers of loops inside others."""

from collections.abc import Callable
from typing import Protocol

from app.checkpoint.store import State
from app.comm.group import Group


class Keeper(Protocol):
    """What a loop needs so that it can be stopped and resumed; `Nothing` for loops that never are."""

    def recall(self, key: str) -> State | None:
        """What an earlier part of the run has left under a key: finished work, or a loop's state."""
        ...

    def keep(self, key: str, state: State) -> None:
        """Finished work, which is in every checkpoint from now on. Equal on all ranks."""
        ...

    def at(
        self, step: int, key: str = "", state: Callable[[], State] | None = None, now: bool = False
    ) -> None:
        """Between two steps of a loop; raises Stopped where the run is to end here.

        step    the number of steps made, the same on all ranks
        state   tells the state under `key`; all ranks call it together, and only when it is to be written;
                None: what `keep` was given is all
        now     True: ask all ranks at this step, where steps are long or differ in length; False: now and
                then, by what the last steps took
        Ranks   all call
        """
        ...

    def ended(self, key: str, state: Callable[[], State]) -> None:
        """After the last step of a loop, before anything else is made of what it leaves.

        state   as of `at`, for ranks that go on from there (led.py)
        """

    def lead(self) -> None:
        """From here to `meet` rank 0 works by itself, and alone calls `at`; the others rest. Ranks: all."""

    def look(self) -> None:
        """Now and then while this rank rests."""

    def meet(self) -> None:
        """All are together again, also where rank 0 was stopped. Ranks: all call."""

    def apart(self, group: Group) -> "Keeper":
        """The keeper of some ranks that work apart from the others until all meet again. These all call."""
        ...

    def halt(self) -> None:
        """Raise Stopped, after ranks that worked apart raised Halted on all. Ranks: all call."""
        ...


class Nothing(Keeper):
    """Writes nothing, remembers nothing, never stops."""

    def recall(self, key: str) -> State | None:
        """Nothing."""

    def keep(self, key: str, state: State) -> None:
        """Nowhere."""

    def at(
        self, step: int, key: str = "", state: Callable[[], State] | None = None, now: bool = False
    ) -> None:
        """On with the loop."""

    def apart(self, group: Group) -> Keeper:
        """Nothing there either."""
        return self

    def halt(self) -> None:
        """Never called: nothing is heard."""


NOTHING_KEPT = Nothing()


class Around(Keeper):
    """A keeper around another one, which does all that is not said otherwise."""

    def __init__(self, outer: Keeper) -> None:
        self.outer = outer

    def recall(self, key: str) -> State | None:
        """See Keeper."""
        return self.outer.recall(key)

    def keep(self, key: str, state: State) -> None:
        """See Keeper."""
        self.outer.keep(key, state)

    def at(
        self, step: int, key: str = "", state: Callable[[], State] | None = None, now: bool = False
    ) -> None:
        """See Keeper. Ranks: all call"""
        self.outer.at(step, key, state, now)

    def lead(self) -> None:
        """See Keeper. Ranks: all call"""
        self.outer.lead()

    def look(self) -> None:
        """See Keeper."""
        self.outer.look()

    def meet(self) -> None:
        """See Keeper. Ranks: all call"""
        self.outer.meet()

    def apart(self, group: Group) -> Keeper:
        """See Keeper."""
        return self.outer.apart(group)

    def halt(self) -> None:
        """See Keeper. Ranks: all call"""
        self.outer.halt()


class PieceKeeper(Around):
    """The keeper of one piece of several: its keys are its own."""

    def __init__(self, outer: Keeper, name: str) -> None:
        super().__init__(outer)
        self.name = name

    def recall(self, key: str) -> State | None:
        """See Keeper."""
        return self.outer.recall(f"{self.name} {key}")

    def keep(self, key: str, state: State) -> None:
        """See Keeper."""
        self.outer.keep(f"{self.name} {key}", state)

    def at(
        self, step: int, key: str = "", state: Callable[[], State] | None = None, now: bool = False
    ) -> None:
        """See Keeper. Ranks: all call"""
        self.outer.at(step, f"{self.name} {key}" if key else "", state, now)


class Within(Around):
    """For loops inside a larger piece of work: they may be stopped, and begin anew with that piece."""

    def recall(self, key: str) -> State | None:
        """Nothing."""

    def keep(self, key: str, state: State) -> None:
        """Nowhere."""

    def at(
        self, step: int, key: str = "", state: Callable[[], State] | None = None, now: bool = False
    ) -> None:
        """A checkpoint here holds the pieces that are finished. Ranks: all call"""
        self.outer.at(step, now=now)
