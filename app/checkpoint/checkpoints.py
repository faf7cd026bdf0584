"""Checkpoints: when all ranks write one, when they stop, and what a resumed run begins with.

A loop calls `at` once a step with a function that tells its state, and begins with what `recall` returns. The
state does not depend on the number of ranks, rank 0 alone touches the disk, and random streams are functions
of counters that are part of the state: so a run goes on with the same bits on any number of ranks.
"""

import importlib.metadata
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from app import faults
from app.case.config import Case
from app.checkpoint import store
from app.checkpoint.identity import TRAINED, described, differences, input_digests, overrun
from app.checkpoint.keeper import Keeper
from app.checkpoint.pace import FIRST_SIGNAL, HOURS, NOTHING, SAVE, Pace
from app.checkpoint.signals import STOPPING, Signals
from app.checkpoint.store import State
from app.comm.bell import Bell
from app.comm.group import Group
from app.comm.guard import raise_together
from app.errors import CaseError, Halted, LockstepError, Stopped
from app.log import Log, Mark
from app.text import printable
from app.watchdog import beat

MARGIN, LARGEST_MARGIN_S = 0.05, 60.0  # of a limit of hours, kept for what comes after the checkpoint
PACKAGES = ("numpy", "scipy", "mpi4py")
# Of Checkpoints, where a loop is: what ranks that rested do not know.
PLACE = ("_base", "_step", "_number", "_last", "_valid", "_save_s")


class Apart(Keeper):
    """For ranks that work apart: nothing is kept of what they do, but it ends where the run is to end."""

    def __init__(self, outer: "Checkpoints", group: Group) -> None:
        self.outer, self.pace = outer, Pace(group)

    def recall(self, key: str) -> State | None:
        """Nothing."""

    def keep(self, key: str, state: State) -> None:
        """Nowhere."""

    def at(
        self, step: int, key: str = "", state: Callable[[], State] | None = None, now: bool = False
    ) -> None:
        """Raises Halted where one of these ranks heard a signal, or is out of time. These all call."""
        beat()
        faults.strike(self.outer.group.rank, step)
        if self.pace.agreed(self.outer.ends, now) > SAVE:
            raise Halted("asked to stop")

    def apart(self, group: Group) -> Keeper:
        """See Keeper."""
        return Apart(self.outer, group)

    def halt(self) -> None:
        """Not here: all ranks have to be together."""
        raise Halted("asked to stop")


@dataclass(frozen=True)
class Stops:
    """What may end a run early, and what a user types to go on.

    signals     what asked this rank to stop; None: nothing does
    limit_s     seconds since `begun` (of time.monotonic) after which the run must be over; 0: none
    again       the command that resumes
    """

    signals: Signals | None = None
    limit_s: float = 0.0
    begun: float = 0.0
    again: str = "the same command and --resume"

    @property
    def margin_s(self) -> float:
        """Seconds before the limit that are kept in reserve in any case."""
        return min(MARGIN * self.limit_s, LARGEST_MARGIN_S)


class Checkpoints(Keeper):
    """The checkpoints of one run in FOLDER/checkpoint/; see Keeper.

    Ranks   all construct; the methods of Keeper are called by all, `at` at the same steps
    """

    def __init__(self, group: Group, case: Case, folder: str, stops: Stops = Stops()) -> None:
        self.group, self.case, self.stops = group, case, stops
        self.path = f"{folder}/{store.FOLDER}"
        self.kept: dict[str, State] = {}
        self.log = Log(False)
        self._rows_kept = 0  # bytes of metrics.csv, as of the last finished work
        self._running: dict[str, State] = {}
        self._base = self._step = 0
        self._number = -1  # of the checkpoint written last
        self._last: tuple[int, str, int] | None = None
        self._inputs: dict[str, str] | None = None
        self._valid = ""  # the newest one that was written or read
        self._saved_at = time.monotonic()
        self._at, self._pace = group, Pace(group)  # the ranks that call `at`
        self._bell: Bell | None = None  # of ranks that rest
        self._last_asked = 0.0  # 0: not yet
        self._save_s = self._pause_s = 0.0
        self._looks = 0  # of this rank while it rests

    def reads(self, inputs: dict[str, str]) -> None:
        """The digests of the files that the run reads (rank 0)."""
        self._inputs = inputs

    # ---- beginning ----------------------------------------------------------------------------------------

    def resume(self) -> tuple[Mark | None, list[str]]:
        """Take the newest valid checkpoint; where the log goes on, and what is to be said of it.

        Without any checkpoint the run begins anew, and the mark is None.
        Ranks   all call. Raises CaseError where no checkpoint is valid, or the newest is of another run
        """
        found, lines = None, []
        with raise_together(self.group, "reading the checkpoint"):
            if self.group.rank == 0:
                try:
                    found, lines = self._newest()
                except OSError as error:
                    place = error.filename or self.path
                    raise CaseError(f"{place}: cannot be read: {error.strerror or error}") from None
        about = None if found is None else {"manifest": found.manifest, "parts": _shapes(found.parts)}
        said = self.group.broadcast_text("" if about is None else json.dumps(about))
        if not said:
            return None, lines
        manifest, shapes = (json.loads(said)[key] for key in ("manifest", "parts"))
        parts = self._shared(found, shapes)
        self._running = {key: each for key, each in parts.items() if key not in manifest["kept"]}
        self.kept = {key: parts[key] for key in manifest["kept"]}
        self._number, self._base, self._step = manifest["step"], manifest["base"], manifest["loop_step"]
        self._valid = store.name_of(self._number)
        self._last = (self._number if self._running else 0, manifest["stage"], len(self.kept))
        mark = Mark(**manifest["log"])
        if TRAINED in self.kept and (made := self.kept[TRAINED].values["steps"]) < self.case.train.steps:
            del self.kept[TRAINED]  # its end is no state to go on from
            lines.append(f"the kept training has {made} steps: a new one begins")
            mark = replace(mark, metrics_bytes=0)
        return mark, lines

    def _newest(self) -> tuple[store.Saved | None, list[str]]:
        """The newest valid checkpoint of this run, and what is to be said. Rank 0."""
        store.clean(self.path)
        found, skipped = store.newest(self.path)
        if found is None:
            if skipped:
                listed = "; ".join(map(printable, skipped))
                raise CaseError(f"{self.path}: no valid checkpoint ({listed}); --overwrite would begin anew")
            return None, ["nothing to resume: the run begins anew"]
        self._inputs = input_digests(self.case)
        differ = differences(found.manifest, self.case, self._inputs)
        if differ:
            listed = "\n  ".join([f"{self.path}/{found.name}: belongs to another run:", *differ])
            raise CaseError(listed)
        if beyond := overrun(found.manifest, found.parts, self.case):
            raise CaseError(beyond)
        lines = [f"warning: checkpoint skipped: {printable(each)}" for each in skipped]
        for name, version in found.manifest["versions"].items():
            mine = importlib.metadata.version(name)
            if mine != version:
                lines.append(f"warning: the checkpoint was written with {name} {version}, here is {mine}")
        lines.append(f"resumed from {self.path}/{found.name}, which {found.manifest['ranks']} rank(s) wrote")
        return found, lines

    def _shared(self, found: store.Saved | None, shapes: dict[str, Any]) -> dict[str, State]:
        """The parts that rank 0 has read, on all ranks. Ranks: all call."""
        parts = {}
        for key, each in shapes.items():
            arrays = {}
            for name, (kind, shape) in each["arrays"].items():
                mine = (
                    np.empty(shape, dtype=np.dtype(kind)) if found is None else found.parts[key].arrays[name]
                )
                arrays[name] = self.group.broadcast(mine) if mine.size else mine
            parts[key] = State(each["values"], arrays)
        return parts

    def follow(self, log: Log) -> None:
        """Write to this log from now on, and mark in checkpoints how far it had come."""
        self.log, self._rows_kept = log, log.rows_bytes

    # ---- what a loop calls --------------------------------------------------------------------------------

    def recall(self, key: str) -> State | None:
        """See Keeper."""
        return self.kept.get(key) or self._running.get(key)

    def keep(self, key: str, state: State) -> None:
        """See Keeper."""
        self.kept[key] = state
        self._rows_kept = self.log.rows_bytes

    def at(
        self, step: int, key: str = "", state: Callable[[], State] | None = None, now: bool = False
    ) -> None:
        """See Keeper."""
        beat()
        faults.strike(self.group.rank, step)
        if not self.case.checkpoint.enabled:
            return
        if step < self._step:  # another loop, whose steps may take longer
            self._base += self._step
            now = True
        before, self._step = self._step, step
        self._running.pop(key, None)  # from now on the loop has it
        wish = self._pace.agreed(self._wish, now)
        every = self.case.checkpoint.steps
        if wish == NOTHING and every and step // every > before // every:
            wish = SAVE
        if wish == NOTHING:
            return
        written = self._save(key, state)
        if wish > SAVE:
            self._stop(wish, written)

    # ---- rank 0 by itself ---------------------------------------------------------------------------------

    def lead(self) -> None:
        """See Keeper."""
        self._at, self._bell = self.group.alone(), Bell(self.group)
        self._pace = Pace(self._at)

    def look(self) -> None:
        """See Keeper."""
        self._looks += 1
        faults.strike(self.group.rank, self._looks)
        if (heard := self._heard()) != NOTHING:
            self._bell.ring(heard)

    def meet(self) -> None:
        """See Keeper."""
        self._bell.close()
        self._at, self._bell, self._looks = self.group, None, 0
        self._pace = Pace(self.group)
        about = {name: getattr(self, name) for name in PLACE} | {"running": list(self._running)}
        about = json.loads(self.group.broadcast_text(json.dumps(about)))
        self._running = {key: self._running[key] for key in about.pop("running")}
        for name, value in about.items():
            setattr(self, name, tuple(value) if isinstance(value, list) else value)

    # ---- when ---------------------------------------------------------------------------------------------

    def _wish(self, now: float) -> int:
        """What this rank wants: signals reach any rank, clocks count on rank 0."""
        if self.group.rank > 0:
            return self._heard()
        if (wish := self.ends(now)) != NOTHING:
            return wish
        return SAVE if now - self._saved_at >= 60 * self.case.checkpoint.minutes else NOTHING

    def _heard(self) -> int:
        """The signal that this rank has heard, or of which those that rest have told rank 0."""
        signals = self.stops.signals
        if signals is not None and signals.asked:
            return FIRST_SIGNAL + [each.name for each in STOPPING].index(signals.asked)
        return self._bell.listen() if self._bell and not self.group.rank else NOTHING

    def ends(self, now: float) -> int:
        """Whether this rank wants the run to end: for a signal, or by its clock. Each call is a look."""
        if self._last_asked:
            self._pause_s = max(now - self._last_asked, 0.9 * self._pause_s)
        self._last_asked = now
        limit = self.stops.limit_s
        reserve = 2 * self._save_s + self._pause_s + self.stops.margin_s
        late = limit and now - self.stops.begun + reserve >= limit
        return self._heard() or (HOURS if late else NOTHING)

    def apart(self, group: Group) -> Keeper:
        """See Keeper."""
        return Apart(self, group)

    def halt(self) -> None:
        """See Keeper."""
        wish = max(HOURS, self.group.max_integer(self._heard()))
        self._stop(wish, self._save("", None))

    # ---- writing ------------------------------------------------------------------------------------------

    def _save(self, key: str, state: Callable[[], State] | None) -> bool:
        """Write a checkpoint; whether it, or the same one before, is on the disk. Ranks: all call."""
        number = self._base + self._step
        place = (number if state else 0, key, len(self.kept))
        if place == self._last:  # nothing is new
            self._saved_at = time.monotonic()
            return True
        number = max(number, self._number + 1)
        begun = time.monotonic()
        with self.log.phase("checkpoint"):
            running = None if state is None else state()
            failure = ""
            if self.group.rank == 0:
                failure = self._written(number, key, running)
            failed = self._at.max_integer(int(bool(failure)))
        if failed:
            self.log.info("warning: no checkpoint at step %d: %s", self._step, failure)
        else:
            self._number, self._last, self._valid = number, place, store.name_of(number)
        now = time.monotonic()
        self._save_s, self._saved_at = max(now - begun, 0.5 * self._save_s), now
        self._pace.asked_at = self._last_asked = now  # what a checkpoint takes is no step's time
        return not failed

    def _written(self, number: int, key: str, running: State | None) -> str:
        """Write it; why that failed, or "". Rank 0."""
        parts = self._running | self.kept
        if running is not None:
            bad = [name for name, each in running.arrays.items() if not _is_finite(each)]
            if bad:
                return f"{', '.join(bad)}: not finite; the earlier checkpoints stay"
            parts[key] = running
        if self._inputs is None:
            self._inputs = input_digests(self.case)
        about = {
            "stage": key, "loop_step": self._step, "base": self._base, "kept": sorted(self.kept),
            "counters": {} if running is None else _counters(running), "ranks": self.group.size,
            "versions": {name: importlib.metadata.version(name) for name in PACKAGES},
            "case": described(self.case), "inputs": self._inputs,
        }  # fmt: skip
        try:
            about["log"] = self.log.mark()
            if running is None and not self._running:  # what has been said since will be said again
                about["log"]["metrics_bytes"] = min(about["log"]["metrics_bytes"], self._rows_kept)
            store.write(self.path, number, parts, about, self.case.checkpoint.keep)
        except OSError as error:
            return f"{error.strerror or error}; the earlier checkpoints stay"
        return ""

    def _stop(self, wish: int, written: bool) -> None:
        """Raise Stopped. Ranks: all that call `at`."""
        why = "--max-hours" if wish == HOURS else STOPPING[wish - FIRST_SIGNAL].name
        if not self._valid:
            raise LockstepError(f"stopped by {why}; no checkpoint could be written")
        where = f"checkpoint {self.path}/{self._valid}" + ("" if written else " (an earlier one)")
        raise Stopped(f"stopped by {why}; {where}; go on with: {self.stops.again}")


def _is_finite(array: np.ndarray) -> bool:
    return array.dtype.kind != "f" or bool(np.isfinite(array).all())


def _counters(state: State) -> dict[str, int]:
    """The whole numbers of a state: where it is, and so where its random streams are."""
    return {name: value for name, value in state.values.items() if type(value) is int}


def _shapes(parts: dict[str, State]) -> dict[str, Any]:
    """The parts without the numbers of their arrays."""
    return {
        key: {
            "values": each.values,
            "arrays": {name: [array.dtype.str, array.shape] for name, array in each.arrays.items()},
        }
        for key, each in parts.items()
    }
