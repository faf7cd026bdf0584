"""What app/cuda must know of CuPy's ways: streams, compiler options, errors; on the emulated module."""

import sys
import tomllib
from types import SimpleNamespace

import emulator
import numpy as np
import pytest
from jobs import ROOT
from standin_device import StandInDevice

from app.cuda import compiler
from app.cuda.device import CudaDevice
from app.cuda.kernels import KERNELS
from app.device import HostDevice, open_device, open_gpu
from app.errors import CaseError

pytestmark = pytest.mark.mpi_skip
DEVICES = HostDevice, CudaDevice, StandInDevice
TINY = np.float32(1e-40)  # below 2^-126


def test_the_stand_in_has_what_all_devices_have():
    """It takes the GPU's place in tests where there is no C++ compiler."""
    host, gpu, stand_in = ({name for name in dir(each) if name[0] != "_"} for each in DEVICES)
    assert (host & gpu) - stand_in == {"product"}


def test_devices_on_one_gpu_share_their_streams():
    """The current stream is the thread's: a second device must not take the first one's kernels elsewhere."""
    cp = emulator.make_cupy(devices=2)
    first, second, other = CudaDevice(cp), CudaDevice(cp, 2), CudaDevice(cp, 1)
    assert (first.index, second.index, other.index) == (0, 0, 1)
    assert second.stream is first.stream is not other.stream
    assert second._copies is first._copies
    assert first.stream is not first._copies
    assert emulator.make_device().stream is not first.stream  # of another module
    first = CudaDevice(cp)
    CudaDevice(cp)
    assert emulator.Stream.current is first.stream


def test_copies_to_the_host_leave_our_stream_current(emulated):
    """CuPy copies what is not row-major inside `with stream`: `get` makes it so, the others refuse it."""
    X = emulated.put(np.arange(12, dtype=np.float32).reshape(3, 4))
    assert emulated.get(X[:, 1:3]).tolist() == [[1, 2], [5, 6], [9, 10]]
    assert emulated.get(X.T).tolist() == emulated.get(X).T.tolist()
    assert emulated.get(X[1, 1]).shape == ()
    for columns in (X[:, 1:3], X.T):
        with pytest.raises(ValueError, match="row-major"):
            columns.get()
        with pytest.raises(ValueError, match="row-major"):
            emulated.store(np.zeros(columns.shape, np.float32), columns)
        with pytest.raises(ValueError, match="row-major"):
            emulated.stage_out("send", columns)
        with pytest.raises(ValueError, match="row-major"):
            emulated.load(columns, np.zeros(columns.shape, np.float32))
    with pytest.raises(ValueError, match="row-major"):
        emulated.store(np.zeros((4, 3), np.float32).T, X)
    assert emulated.stage_out("send", X[1:]).tolist() == emulated.get(X[1:]).tolist()


def test_a_launch_on_the_default_stream_is_refused(emulated):
    with emulator.Stream(non_blocking=True):
        pass
    with pytest.raises(AssertionError, match="default stream"):
        emulated.fold(np.array([0, 8]), emulated.zeros((8, 3)))
    emulated.stream.use()
    assert emulated.get(emulated.fold(np.array([0, 8]), emulated.zeros((8, 3)))).tolist() == [[0, 0, 0]]


def test_numbers_below_the_normal_ones_are_kept(emulated):
    """CuPy's own compiler calls add -ftz=true, which makes zeros of them."""
    assert "--ftz=false" in compiler.OPTIONS
    X = np.full((8, 5), TINY, np.float32)
    assert (
        emulated.get(emulated.plus(emulated.put(X[0]), emulated.put(X[1]))).tolist() == (X[0] + X[1]).tolist()
    )
    assert emulated.get(emulated.fold(np.array([0, 8]), emulated.put(X)))[0, 0] == X.sum(axis=0)[0] > 0


def test_what_was_compiled_is_kept(tmp_path, monkeypatch):
    """One file for a source, a device and a version; nothing is compiled twice."""
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path / "cache"))
    calls = []

    def compile_using_nvrtc(source, options, filename):
        calls.append(filename)
        return source.encode(), None

    cp = emulator.make_cupy()
    cp.cuda.compiler.compile_using_nvrtc = compile_using_nvrtc
    paths = [compiler.binary(cp, "fold", text) for text in ("one", "two", "one")]
    assert paths[0] == paths[2] != paths[1] and calls == ["fold.cu"] * 2
    cp.__version__ = "1"
    assert compiler.binary(cp, "fold", "one") not in paths
    assert {path.read_text("utf-8") for path in tmp_path.glob("cache/*")} == {"one", "two"}


def test_page_locked_memory_that_cannot_be_had(emulated, monkeypatch):
    """CuPy raises a RuntimeError; the program tells of a MemoryError in one line."""

    def refuse(message):
        def alloc(size, flags):
            raise RuntimeError(message)

        return alloc

    cuda = emulated._cp.cuda
    monkeypatch.setattr(cuda, "PinnedMemory", refuse("cudaErrorMemoryAllocation: out of memory"))
    with pytest.raises(MemoryError, match="4,000 bytes of page-locked host memory"):
        emulated.pinned(1000)
    monkeypatch.setattr(cuda, "PinnedMemory", refuse("cudaErrorIllegalAddress: ..."))
    with pytest.raises(RuntimeError, match="IllegalAddress"):
        emulated.pinned(1000)


def test_a_gpu_that_cannot_be_used_is_a_reason(monkeypatch):
    """No driver, no library: a sentence, so that "auto" takes the host."""

    def broken():
        raise RuntimeError("cudaErrorInsufficientDriver: too old\nmore")

    for available, wanted in ((lambda: False, "no usable GPU"), (broken, "InsufficientDriver: too old)")):
        cupy = SimpleNamespace(cuda=SimpleNamespace(is_available=available))
        monkeypatch.setitem(sys.modules, "cupy", cupy)
        assert wanted in open_gpu(0)
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert open_gpu(0).startswith("CuPy cannot be imported (")
    if not emulator.compiler():
        return
    # cuSPARSE and cuBLAS are asked for by the comparison alone.
    monkeypatch.setitem(sys.modules, "cupy", emulator.make_cupy())
    monkeypatch.setitem(sys.modules, "cupyx", None)
    sys.modules["cupy"].cuda.is_available = lambda: True
    assert open_gpu(0).name == "gpu"
    assert "cupyx" in open_gpu(0, reproducible=False)
    for name in ("cupyx", "cupyx.cusparse", "cupyx.scipy", "cupyx.scipy.sparse"):
        monkeypatch.setitem(sys.modules, name, SimpleNamespace())
    monkeypatch.setitem(sys.modules, "cupy.cublas", None)
    assert "cupy.cublas" in open_gpu(0, reproducible=False)
    monkeypatch.setitem(sys.modules, "cupy.cublas", SimpleNamespace())
    assert open_gpu(0, reproducible=False).product == "cuSPARSE"


@pytest.mark.parametrize(
    ("error", "wanted"),
    [
        (RuntimeError('Failure finding "nvrtc"\nsearched here'), 'finding "nvrtc"; kernels need NVRTC: pip'),
        (ImportError("libnvrtc.so.13: cannot open"), "cannot open; kernels need NVRTC: pip install"),
        (Exception("invalid value for --gpu-architecture\nmore"), "no kernel can be compiled: invalid value"),
    ],
)
def test_a_gpu_without_a_compiler_is_a_reason(tmp_path, monkeypatch, error, wanted):
    """One line that says what to install, before anything is computed."""

    def compile_using_nvrtc(source, options, filename):
        raise error

    cp = emulator.make_cupy()
    cp.cuda.is_available = lambda: True
    cp.cuda.compiler.compile_using_nvrtc = compile_using_nvrtc
    monkeypatch.setitem(sys.modules, "cupy", cp)
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path))
    said = open_gpu(0)
    assert isinstance(said, str) and wanted in said and "\n" not in said
    with pytest.raises(CaseError, match="use --device cpu"):
        open_device("gpu", 0, True)
    assert open_device("auto", 0, True).name == "cpu"


def test_extras_bring_the_compiler():
    """CuPy's wheels come without NVRTC since version 14."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert extras["gpu"] == ["cupy-cuda13x[ctk]>=14"] and extras["gpu12"] == ["cupy-cuda12x[ctk]>=14"]
    assert all(f"{each[0].split('>')[0]}" in compiler.NEEDED for each in (extras["gpu"], extras["gpu12"]))


def test_cupy_has_what_is_called():
    """Names and keywords of the real module, which needs no driver to be asked."""
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    import inspect

    asked = inspect.signature(cupy.cuda.compiler.compile_using_nvrtc).parameters
    assert {"source", "options", "filename"} <= set(asked)
    for name in ("begin_capture", "end_capture", "is_capturing", "use", "record", "wait_event"):
        assert hasattr(cupy.cuda.Stream, name)
    for name in ("Graph", "MemoryPool", "using_allocator", "Event", "PinnedMemory", "PinnedMemoryPointer"):
        assert hasattr(cupy.cuda, name)
    assert cupy.cuda.runtime.hostAllocPortable == 1
    nothing = cupy.cuda.PinnedMemoryPointer(cupy.cuda.PinnedMemory(0), 0)  # no driver is asked for no memory
    assert np.frombuffer(nothing, np.uint8, 0).flags.writeable
    assert issubclass(cupy.cuda.memory.OutOfMemoryError, MemoryError)
    assert KERNELS and hasattr(cupy.cuda.Device, "compute_capability")
