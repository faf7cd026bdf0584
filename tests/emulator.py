"""A module like CuPy that runs the CUDA C sources on the host, on the arrays of tests/standin.py.

So app/cuda runs as it would on a GPU: the same launches, of the same kernels, with the same bits. An argument
of another type than the kernel declares is refused, which on a GPU would be read as garbage; and so is a
launch on the default stream, for which nobody waits.
"""

import contextlib
import ctypes
import functools
import hashlib
import os
import platform
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import standin

from app.cuda.device import CudaDevice

FOLDER = Path(tempfile.gettempdir()) / f"lockstep-kernels-{os.getuid()}"
os.environ.setdefault("CUPY_CACHE_DIR", str(FOLDER))  # where app/cuda keeps what was compiled
HEADER = Path(__file__).with_name("cuda_on_host.h")
# Of this processor: fmaf is then an instruction, with the same rounding as the library's.
FLAGS = [
    "-O2",
    "-march=native",
    "-std=c++17",
    "-ffp-contract=off",
    "-fPIC",
    "-shared",
    "-U_FORTIFY_SOURCE",
    "-w",
]
SCALARS = {
    "i64": (np.int64, ctypes.c_longlong), "u64": (np.uint64, ctypes.c_ulonglong),
    "int": (np.int32, ctypes.c_int), "float": (np.float32, ctypes.c_float),
}  # fmt: skip
ELEMENTS = {
    "i64": (np.int64,), "u64": (np.uint64,), "int": (np.int32,), "float": (np.float32,),
    "unsigned char": (np.bool_, np.uint8),
}  # fmt: skip
KERNEL = re.compile(r'extern "C" __global__ void (?:__launch_bounds__\([^)]*\)\s*)?(\w+)\(([^)]*)\)')


@functools.cache
def processor():
    """What it is, since libraries that were made for another one do not run here."""
    with contextlib.suppress(OSError, StopIteration), open("/proc/cpuinfo") as file:
        return next(line for line in file if line.startswith("flags"))
    return platform.processor()


def compiler():
    """The C++ compiler of the host, or None."""
    return shutil.which("g++") or shutil.which("clang++")


def parameters(text):
    """[(name, type, is a pointer, is written)] of a parameter list."""
    out = []
    for part in text.split(","):
        words = part.replace("*", " * ").split()
        name, pointer, constant = words[-1], "*" in words, words[0] == "const"
        kind = " ".join(word for word in words[:-1] if word not in ("const", "*"))
        out.append((name, kind, pointer, pointer and not constant))
    return out


@functools.cache
def compiled(code):
    """(library, {kernel: parameters}) of CUDA C source, compiled once for all tests and kept."""
    plain = subprocess.run(
        [compiler(), "-E", "-P", "-x", "c++", "-"], input=code, capture_output=True, text=True, check=True
    ).stdout
    plain = re.sub(r"\s+", " ", plain)
    kernels = {name: parameters(text) for name, text in KERNEL.findall(plain)}
    barriers = "__sync" in code
    text = f'#include "{HEADER}"\n{code}\n' + "".join(
        _wrapper(name, each, barriers) for name, each in kernels.items()
    )
    made_with = [HEADER.read_text("utf-8"), *FLAGS, processor()]
    digest = hashlib.sha256((text + " ".join(made_with)).encode()).hexdigest()[:24]
    FOLDER.mkdir(mode=0o700, exist_ok=True)
    library = FOLDER / f"{digest}.so"
    if not library.exists():
        with tempfile.TemporaryDirectory(dir=FOLDER) as own:  # several ranks may be here
            source, built = Path(own) / "kernels.cpp", Path(own) / "kernels.so"
            source.write_text(text, "utf-8")
            subprocess.run([compiler(), *FLAGS, "-o", built, source], check=True)
            built.replace(library)
    return ctypes.CDLL(str(library)), kernels


def _wrapper(name, found, barriers):
    """A C function that runs a grid of a kernel."""
    declared = [f"{kind} {'*' if pointer else ''}{each}" for each, kind, pointer, _ in found]
    names = [each for each, *_ in found]
    members = "".join(f"{each}; " for each in declared)
    return (
        f"struct Body_{name} : Body {{ {members} void run() override {{ {name}({', '.join(names)}); }} }};\n"
        f'extern "C" void grid_{name}(unsigned blocks_, unsigned across_, unsigned threads_, '
        f"{', '.join(declared)}) {{\n  Body_{name} body_;\n  "
        + "".join(f"body_.{each} = {each}; " for each in names)
        + f"\n  run_grid(blocks_, across_, threads_, &body_, {str(barriers).lower()});\n}}\n"
    )


class Function:
    """A kernel: called with a grid, a block and arguments, as CuPy's."""

    launches = 0  # of all kernels

    def __init__(self, library, name, found):
        self._name, self._parameters = name, found
        self._grid = getattr(library, f"grid_{name}")
        kinds = [ctypes.c_void_p if pointer else SCALARS[kind][1] for _, kind, pointer, _ in found]
        self._grid.argtypes, self._grid.restype = [ctypes.c_uint] * 3 + kinds, None

    def __call__(self, grid, block, arguments):
        assert Stream.current is not None, f"{self._name}: a launch on the default stream"
        Function.launches += 1
        assert len(arguments) == len(self._parameters), f"{self._name}: {len(arguments)} arguments"
        values = [self._value(*pair) for pair in zip(self._parameters, arguments)]
        whole = (grid[0], grid[1] if len(grid) > 1 else 1, block[0], *values)
        if standin.tape is None:
            self._grid(*whole)
        else:  # by address, as a graph does: who launched it must see to it that the memory stays
            standin.tape.append(lambda: self._grid(*whole))
        for (_, _, _, written), argument in zip(self._parameters, arguments):
            if written and isinstance(argument, standin.Array):
                argument._write()

    def _value(self, parameter, argument):
        """What C gets; raises TypeError for what CUDA would misread."""
        name, kind, pointer, _ = parameter
        if not pointer:
            if type(argument) is not SCALARS[kind][0]:
                raise TypeError(f"{self._name}: {name} is {type(argument).__name__}, not {kind}")
            return argument.item()
        if isinstance(argument, np.uint64) and argument == 0:
            return None
        if not isinstance(argument, standin.Array) or argument.dtype not in ELEMENTS[kind]:
            found = getattr(argument, "dtype", type(argument).__name__)
            raise TypeError(f"{self._name}: {name} is {found}, not an array of {kind} on the device")
        return standin.host(argument).ctypes.data


class RawModule:
    """Kernels of one source, or of a file that `compile_using_nvrtc` made of one."""

    def __init__(self, code=None, options=(), path=None):
        assert (code is None) != (path is None)
        self._library, self._kernels = compiled(code or Path(path).read_text("utf-8"))

    def get_function(self, name):
        return Function(self._library, name, self._kernels[name])


def compile_using_nvrtc(source, options=(), arch=None, filename="kern.cu"):
    """The "binary" of a source: its text. The options must keep what the CPU does."""
    assert {"--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true"} <= set(options)
    return source.encode(), None


class Event:
    def synchronize(self):
        standin.stream.synchronize()


class Stream:
    """All streams are one queue here: what is launched is done.

    current   the stream that launches go to; None: the default one. As in CuPy up to 14.2 a `with` leaves
              the default stream behind, whatever `use` had made current.
    """

    current = None

    def __init__(self, non_blocking=False):
        assert non_blocking, "kernels of the default stream wait for MPI's copies"

    def use(self):
        Stream.current = self
        return self

    def synchronize(self):
        standin._must_not_capture("synchronize")
        standin.stream.synchronize()

    def begin_capture(self):
        assert standin.tape is None and Stream.current is self
        standin.tape = []

    def end_capture(self):
        tape, standin.tape = standin.tape, None
        return Graph(tape)

    def record(self):
        return Event()

    def wait_event(self, event):
        assert isinstance(event, Event)

    def __enter__(self):
        return self.use()

    def __exit__(self, *_):
        Stream.current = None


class PinnedMemory:
    """Page-locked memory: ordinary one here."""

    def __init__(self, size, flags=0):
        assert size > 0 and flags == 1, "memory for the devices of all ranks"
        self.bytes = bytearray(size)


class Graph:
    """What was launched while a stream captured; nothing of it was done."""

    launches = 0  # of all graphs

    def __init__(self, tape):
        self._tape = tape

    def launch(self, stream=None):
        Graph.launches += 1
        for again in self._tape:
            again()
        standin.stream.issue()


class Pool:
    """The pool, in which nothing is ever used."""

    malloc = None

    def used_bytes(self):
        return 0

    def total_bytes(self):
        return 0


def make_device(local_rank=0, devices=1):
    """app/cuda's device on the pretended module."""
    return CudaDevice(make_cupy(devices), local_rank)


def make_cupy(devices=1):
    """The pretended module, with so many devices."""
    runtime = SimpleNamespace(
        getDeviceCount=lambda: devices,
        getDeviceProperties=lambda i: {"name": b"emulated", "totalGlobalMem": 1 << 30},
        runtimeGetVersion=lambda: 13000,
        memGetInfo=lambda: (1 << 30, 1 << 30),
        hostAllocPortable=1,
    )
    device = SimpleNamespace(use=lambda: None, compute_capability="90")
    cuda = SimpleNamespace(
        runtime=runtime, Stream=Stream, Device=lambda i=0: device, PinnedMemory=PinnedMemory,
        PinnedMemoryPointer=lambda memory, offset: memoryview(memory.bytes)[offset:],
        compiler=SimpleNamespace(compile_using_nvrtc=compile_using_nvrtc), MemoryPool=Pool,
        using_allocator=lambda allocator: contextlib.nullcontext(),
    )  # fmt: skip
    return SimpleNamespace(
        **vars(standin.xp), cuda=cuda, RawModule=RawModule, get_default_memory_pool=Pool, __version__="0"
    )
