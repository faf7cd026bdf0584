"""A sequence of launches that is repeated: recorded as a CUDA graph, then started in one call.

On small graphs a step is bound by the time that launches take on the host (some microseconds each, and the
Python between them), not by the device. What is recorded must be launches alone: nothing that the host
reads, no copy from or to it, no message; numbers handed to kernels stay what they were.
"""

from collections.abc import Callable
from typing import Any

Array = Any


class NotCapturable(Exception):
    """The host wanted something of the device, or the other way round, while launches were recorded."""


class Captured:
    """Work that is done again and again in the same memory.

    The first call does the work, so that every kernel is compiled and every table made; the second records
    it; later ones replay. Other operands, or the same in other memory, begin anew. Where recording fails, the
    work is done as it is from then on, and one line says why.
    Memory   what the work allocates comes from a pool of its own while it is recorded, so that nobody else is
             given it; arrays that launches were handed are held
    """

    def __init__(self, device: Any) -> None:
        self._device = device
        self._refused = False
        self._begin(())

    def _begin(self, key: tuple[Any, ...]) -> None:
        """Nothing is recorded for these operands."""
        self._key, self._warm, self._found = key, False, None
        self._graph = self._pool = self._held = None

    def __call__(self, operands: list[Array], work: Callable[[], Any]) -> Any:
        """What `work` returns: the same arrays from each replay, which writes into them.

        operands   the arrays that work reads and writes, and that others might replace
        """
        key = tuple((a.data.ptr, a.shape, a.strides, str(a.dtype)) for a in operands)
        if key != self._key:
            self._begin(key)
        if self._refused or not self._warm:
            self._warm = True
            return work()
        if self._graph is None and not self._record(work):
            return work()
        self._graph.launch(self._device.stream)
        return self._found

    def _record(self, work: Callable[[], Any]) -> bool:
        """Record the work, which is not done yet; False where that cannot be."""
        cp, stream, self._pool = self._device.xp, self._device.stream, self._device.xp.cuda.MemoryPool()
        failed: Exception | None = None
        try:
            stream.begin_capture()
            with self._device.recording() as self._held, cp.cuda.using_allocator(self._pool.malloc):
                self._found = work()
        except Exception as error:
            failed = error
        try:
            self._graph = stream.end_capture()
        except RuntimeError as error:  # what was not allowed has spoilt the graph
            failed = failed or error
        if failed is None:
            return True
        self._begin(self._key)
        self._refused = True
        reason = f"{type(failed).__name__}: {failed}".splitlines()[0]
        self._device.tell(f"launches are not replayed as a CUDA graph: {reason}")
        return False


def call_plainly(operands: list[Array], work: Callable[[], Any]) -> Any:
    """What stands in for Captured where nothing is recorded."""
    return work()
