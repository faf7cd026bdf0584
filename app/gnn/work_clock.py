"""WorkClock: seconds that a rank's own rows take, layer by layer, without what the rank waits for others."""

import time

import numpy as np

from app.comm.group import Group


class WorkClock:
    """Time of operations between exchanges, by layer.

    On the host these are seconds of the processor, since ranks may share cores; on a GPU those of the wall,
    when the device is done. Either way what MPI calls took is left out.
    Ranks   each has its own
    """

    def __init__(self, group: Group, layers: int) -> None:
        self.group, self.device, self._seconds = group, group.device, np.zeros(layers)
        self._on_host = self.device.xp is np
        if self._on_host and group.processor_s is None:
            group.processor_s = 0.0

    def now(self) -> float:
        """A time whose differences are work."""
        if self._on_host:
            return time.process_time() - self.group.processor_s
        self.device.synchronize()
        return time.perf_counter() - sum(self.group.seconds.values())

    def add(self, layer: int, since: float) -> None:
        """Count the work since `since` for a layer."""
        self._seconds[layer] += self.now() - since

    def take(self) -> np.ndarray:
        """[layers] seconds since the last call."""
        taken, self._seconds = self._seconds, np.zeros(len(self._seconds))
        return taken
