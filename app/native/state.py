"""What kernels work on from call to call: an object, whose arrays and numbers a struct of C has, too."""

import ctypes
from typing import Any, ClassVar

from app.native.library import give_arrays, numbers_in


class KernelState:
    """An object that kernels change. Its attributes and the fields of the struct have the same names.

    numbers   those that kernels change: the struct has them during a call, the object has them after it
    """

    numbers: ClassVar[tuple[str, ...]]

    def _hold(
        self, record: ctypes.Structure, arrays: tuple[str, ...], constants: tuple[str, ...] = ()
    ) -> None:
        """Kernels are given this struct from now on.

        arrays      attributes whose addresses it has, or None: they stay where they are
        constants   numbers that never change
        """
        self._record = record
        for name in constants:
            setattr(record, name, getattr(self, name))
        give_arrays(self, record, arrays)

    def _call(self, kernel: Any, *arguments: Any) -> Any:
        """Run a kernel on the state; returns what the kernel does."""
        with numbers_in(self, self._record, self.numbers):
            return kernel(self._record, *arguments)
