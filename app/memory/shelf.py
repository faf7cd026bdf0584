"""Shelf: arrays that a forward pass leaves for its backward pass, in two tiers (after ROC, section 5)."""

import weakref
from typing import Any

import numpy as np

from app.errors import CaseError
from app.memory.slow import DeviceCopies, HostCopies, file_map
from app.memory.tiers import TierBudget

Array = Any


class Kept:
    """An array on the shelf: in the fast tier or, once it had to leave, in the slow one."""

    def __init__(self, shelf: "Shelf", array: Array) -> None:
        self.shape, self.nbytes = array.shape, array.nbytes
        self._shelf, self.array, self._slow = shelf, array, None

    def get(self) -> Array:
        """The array: the one that was kept, or new memory with its values."""
        if self._slow is None:
            return self.array
        array = self._shelf.device.empty(self.shape)
        self._shelf.copies.load(array.reshape(-1), self._slow)
        self._shelf.loaded += self.nbytes
        return array

    def leave(self) -> None:
        """Go to the slow tier."""
        self._slow = self._shelf.room(self.nbytes)
        self._shelf.copies.store(self._slow, self.array.reshape(-1))
        self._shelf.stored += self.nbytes
        self.array = None

    def drop(self) -> None:
        """Nobody wants the values any more."""
        if self._slow is not None:
            self._shelf.give_back(self._slow)
        self.array = self._slow = None

    __del__ = drop


class Shelf:
    """Arrays of forward passes under a limit of the fast tier.

    A backward pass wants last what was kept first, so that is what leaves first (Belady 1966: the page that
    is wanted farthest in the future). Nothing here computes: the bits are those without a limit.

    loaded, stored   bytes between the tiers so far
    Ranks            each has its own; how much of it is in which tier is nobody else's concern
    """

    def __init__(self, device: Any, budget: TierBudget) -> None:
        self.device, self.limit = device, budget.limit
        self.loaded = self.stored = 0
        self.copies: Any = HostCopies() if device.xp is np else DeviceCopies(device)
        self._in_file, self._folder = budget.tier(device) == "file", budget.folder
        self._kept: list[weakref.ref[Kept]] = []
        self._free: dict[int, list[np.ndarray]] = {}

    def keep(self, array: Array) -> Kept:
        """Put a contiguous float32 array on the shelf, whose it is from now on."""
        kept = Kept(self, array)
        self._kept.append(weakref.ref(kept))
        return kept

    def clear_for(self, nbytes: int, most: int) -> None:
        """Let arrays leave until the others and `nbytes` of what is not on the shelf are within the limit.

        most   the largest nbytes of all ranks
        Raises CaseError on all ranks where that alone is above the limit.
        """
        if most > self.limit:
            raise CaseError(
                f"memory.fast_mb: one round of the network takes {most / 1e6} MB of a rank; at least that "
                "would be right"
            )
        held = [
            each for each in (kept() for kept in self._kept) if each is not None and each.array is not None
        ]
        self._kept = [weakref.ref(each) for each in held]
        total = nbytes + sum(each.nbytes for each in held)
        for each in held:
            if total <= self.limit:
                break
            each.leave()
            total -= each.nbytes

    def room(self, nbytes: int) -> np.ndarray:
        """[nbytes / 4] float32 in the slow tier, used before or new."""
        free = self._free.get(nbytes)
        if free:
            return free.pop()
        if self._in_file:
            return np.frombuffer(file_map(nbytes, self._folder), np.float32, nbytes // 4)
        return np.empty(nbytes // 4, np.float32) if self.device.xp is np else self.device.pinned(nbytes // 4)

    def give_back(self, slow: np.ndarray) -> None:
        """Memory of the slow tier that can be used again."""
        self._free.setdefault(slow.nbytes, []).append(slow)
