"""From the text of a CUDA C source to a file that the driver loads, compiled once and kept on disk.

CuPy compiles what it is handed as text with `-ftz=true`, which comes after all other options and makes zeros
of numbers below 2^-126: their bits would not be the CPU's. So NVRTC is called through CuPy with our options
alone, and CuPy is handed the file.
"""

import hashlib
import os
import tempfile
from pathlib import Path
from typing import Any

# Products are rounded by name in the sources (__fmul_rn); the first keeps all else from being contracted.
OPTIONS = ("--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true", "--std=c++17")


def folder() -> Path:
    """Where CuPy keeps what it compiled, and so do we."""
    return Path(os.environ.get("CUPY_CACHE_DIR") or Path.home() / ".cupy" / "kernel_cache")


def binary(cp: Any, name: str, code: str) -> Path:
    """The file of a compiled source for the current device of `cp`, made where it is not there yet.

    name   of the source, for messages of the compiler
    """
    capability = cp.cuda.Device().compute_capability
    made_by = (OPTIONS, capability, cp.__version__, cp.cuda.runtime.runtimeGetVersion(), code)
    digest = hashlib.sha256(repr(made_by).encode()).hexdigest()[:32]
    path = folder() / f"lockstep_{name}_{digest}.cubin"
    if not path.exists():
        compiled, _ = cp.cuda.compiler.compile_using_nvrtc(code, OPTIONS, filename=f"{name}.cu")
        _keep(path, compiled)
    return path


def _keep(path: Path, content: bytes) -> None:
    """Write a file, whole or not at all: several ranks may be here."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as part:
        part.write(content)
    Path(part.name).replace(path)
