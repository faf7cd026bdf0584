"""Tiers: carries a plan out on real memory, a fast block of the planned size and a slow tier."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from app.errors import CaseError
from app.memory.arena import LINE, Arena, padded
from app.memory.plan import METHODS, Plan, Step
from app.memory.slow import DeviceCopies, FileTier, HostCopies, HostTier

Array = Any


@dataclass(frozen=True)
class TierBudget:
    """What a program's tensors may take: bytes of the fast tier, and where the others go.

    slow     "file", "host" or "auto": a file on the host, the host's memory on a GPU
    folder   of the file; "": the system's for temporary files
    method   one of METHODS, by which the moves are planned
    """

    limit: int
    slow: str = "auto"
    folder: str = ""
    method: str = METHODS[0]

    @classmethod
    def of(cls, memory: Any) -> "TierBudget":
        """What the table [memory] of a case says."""
        return cls(math.ceil(memory.fast_mb * 1e6), memory.slow, memory.folder, memory.method)

    def tier(self, device: Any) -> str:
        """The slow tier beside a device."""
        if self.slow != "auto":
            return self.slow
        return "file" if device.xp is np else "host"


class Inputs(Protocol):
    """Inputs in slow memory of somebody else's, who fills it."""

    names: frozenset[str]

    def array(self, name: str) -> np.ndarray:
        """Flat float32 of at most the tensor's size."""

    def copied(self, name: str) -> None:
        """The tensor was read: its pages are not needed any longer."""


class Tiers:
    """Two tiers of memory for the tensors of one epoch (or of any other program that repeats).

        with Tiers(plan, device, budget) as tiers:
            tiers.give("X", X)                    inputs, once; those that operations change, each epoch
            for at in range(operations):
                tiers.before(at)
                ... tiers.array(name) is what the operation reads and writes, until after(at) ...
                tiers.after(at)
            tiers.end()
            tiers.result("Y")

    An array is float32, flat, and as long as the tensor's padded size says. All fast arrays lie in one block
    of plan.peak_bytes, which is all the fast memory there is. Where a tensor fits in no gap of it, the others
    are moved together first; so a tensor can lie elsewhere at the next operation. Nothing here computes: the
    bits are those of the same operations without a limit.

    loaded, stored   bytes between the tiers so far
    shifted          bytes moved inside the fast block, to close gaps
    """

    def __init__(
        self, plan: Plan, device: Any, budget: TierBudget, block: Array = None, inputs: Inputs | None = None
    ) -> None:
        """block    flat float32 memory of at least plan.peak_bytes to use instead of an own one
        inputs   where inputs lie that are not to be given

        Raises CaseError where the slow tier cannot be made.
        """
        sizes = dict(zip(plan.epoch.names, plan.epoch.sizes))
        odd = [name for name, size in sizes.items() if size != padded(size)]
        if odd:
            raise CaseError(f"memory plan: the size of {odd[0]!r} is not a multiple of {LINE} bytes")
        self.plan, self.sizes, self._inputs = plan, sizes, inputs
        self._given = inputs.names if inputs else frozenset()
        stored = {name for step in plan.steps for name in step.store}
        kept = {name: size for name, size in sizes.items() if name in stored or self._is_input(name)}
        kept = {name: size for name, size in kept.items() if name not in self._given}
        in_file = budget.tier(device) == "file"
        self.slow: Any = FileTier(kept, budget.folder) if in_file else HostTier(kept, device)
        self._copies: Any = HostCopies() if device.xp is np else DeviceCopies(device)
        self.arena = Arena(max(plan.peak_bytes, LINE))
        self._block = device.zeros((self.arena.capacity // 4,)) if block is None else block
        self._waits: list[tuple[str, Callable[[], Any]]] = []
        self._behind: dict[str, Callable[[], Any]] = {}
        self.loaded = self.stored = self.shifted = 0

    def _is_input(self, name: str) -> bool:
        epoch = self.plan.epoch
        return bool(epoch.set_of((name,)) & epoch.inputs)

    def __enter__(self) -> "Tiers":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Wait for what is on its way and give all memory back."""
        self._arrive()
        self._be_stored()
        self._copies.close()
        self.slow.close()
        self._block = None

    def forget(self) -> None:
        """Between epochs: somebody else has used the block, nothing is left in the fast tier."""
        self.arena.clear()

    # ---- what the program calls -------------------------------------------------------------------------

    def give(self, name: str, values: np.ndarray) -> None:
        """The value of an input, a host array of at most the tensor's size; zeros follow it."""
        flat = np.ascontiguousarray(values, dtype=np.float32).reshape(-1)
        slow = self.slow.array(name)
        slow[: len(flat)], slow[len(flat) :] = flat, 0
        self.slow.copied(name)

    def before(self, at: int) -> None:
        """Bring what operation `at` needs into the fast tier, and begin to read for the next one."""
        step = self.plan.steps[at]
        self._arrive()
        if at == 0:
            self._load([name for name in self.plan.start if name not in self.arena.places])
        self._leave(step)
        writes = self.plan.epoch.operations[at].writes if at < len(self.plan.epoch.operations) else ()
        new = [name for name in dict.fromkeys(writes) if name not in self.arena.places]
        self._place([*step.load, *[name for name in new if name not in step.load], *step.ahead])
        self._load(step.load)
        for name in step.ahead:
            wait = self._copies.load_ahead(*self._both(name))
            self._waits.append((name, wait))

    def after(self, at: int) -> None:
        """Forget what nobody reads after operation `at`; begin to write what will have to leave."""
        for name in self.plan.steps[at].free:
            self.arena.free(name)
        for name in self.plan.steps[at].behind:
            self._behind[name] = self._copies.store_behind(self.slow.array(name), self.array(name))

    def end(self) -> None:
        """End the epoch: results are stored, and only plan.start stays."""
        self.before(len(self.plan.steps) - 1)

    def array(self, name: str) -> Array:
        """[size / 4] float32 in the fast tier, valid for the operation that is under way."""
        offset, size = self.arena.places[name]
        return self._block[offset // 4 : (offset + size) // 4]

    def result(self, name: str) -> np.ndarray:
        """[size / 4] float32, a copy of a result after the epoch, or of an input."""
        self._copies.finish()
        values = self.slow.array(name).copy()
        self.slow.copied(name)
        return values

    # ---- moves ------------------------------------------------------------------------------------------

    def _leave(self, step: Step) -> None:
        """Evict what the step says."""
        for name in step.store:
            wait = self._behind.pop(name, None)
            if wait:
                wait()
            else:
                self._copies.store(self.slow.array(name), self.array(name))
            self.slow.copied(name)
            self.stored += self.sizes[name]
        for name in (*step.store, *step.drop):
            self.arena.free(name)

    def _place(self, names: list[str]) -> None:
        """Find room for tensors; where gaps are too small, move everything together once."""
        left = [name for name in names if not self.arena.take(name, self.sizes[name])]
        if not left:
            return
        self._be_stored()
        for source, target, size in self.arena.close_gaps():
            self._copies.shift(self._block, source // 4, target // 4, size // 4)
            self.shifted += size
        for name in left:
            if not self.arena.take(name, self.sizes[name]):
                raise CaseError(f"memory plan: no room for {name!r} under {self.plan.limit:,} bytes")

    def _load(self, names: tuple[str, ...] | list[str]) -> None:
        """Read tensors whose places are taken, or can be."""
        self._place([name for name in names if name not in self.arena.places])
        for name in names:
            self._copies.load(*self._both(name))
            self._was_loaded(name)

    def _both(self, name: str) -> tuple[Array, np.ndarray]:
        """A tensor in the fast tier, as far as it has values, and in the slow one."""
        slow = self._home(name).array(name)
        return self.array(name)[: len(slow)], slow

    def _home(self, name: str) -> Any:
        return self._inputs if name in self._given else self.slow

    def _arrive(self) -> None:
        """Wait for what is read ahead."""
        for name, wait in self._waits:
            wait()
            self._was_loaded(name)
        self._waits.clear()

    def _be_stored(self) -> None:
        """Wait for what is written behind; it may move now."""
        for name, wait in self._behind.items():
            wait()
            self._behind[name] = _done

    def _was_loaded(self, name: str) -> None:
        self._home(name).copied(name)
        self.loaded += self.sizes[name]


def _done() -> None:
    """What was to be waited for has ended."""
