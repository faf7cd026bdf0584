"""Fixtures for any number of ranks and either device, and what keeps a parallel test session from hanging.

    python -m pytest                                 everything, on other numbers of ranks too (test_ranks.py)
    mpirun -np 3 python -m pytest --with-mpi tests   the tests that are not marked mpi_skip, on 3 ranks

In a parallel session every rank runs every test. A rank that fails prints its report and ends all of them,
since the others would wait in a collective for ever; a rank on which nothing passed exits with an error.
"""

import atexit
import gc
import os
import re
import shutil
import tempfile
import time
import zlib
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from app import threads

os.environ.update(dict.fromkeys(threads.VARIABLES, "1"))  # before NumPy is imported, which reads them once

import emulator
import hypothesis
import pytest
from hypothesis import HealthCheck, Phase
from mpi4py import MPI
from standin_device import StandInDevice

from app.bounds.paced import at_work
from app.comm.group import Group
from app.device import HostDevice, open_gpu
from app.model import whole
from app.native import library
from app.native.products import available

WORLD = MPI.COMM_WORLD
PARALLEL = WORLD.Get_size() > 1
LOOK_SECONDS = 10.0  # at most, until a thread looks whether it may go on


def remove_empty(folder):
    """Remove a folder with the folders in it, but for files that failed tests have left."""
    for path, _, _ in os.walk(folder, topdown=False):
        with suppress(OSError):
            os.rmdir(path)


# Files of tests are in memory where it has room for those of all: a disk takes milliseconds to keep, and to
# remove, each of their tens of thousands.
IN_MEMORY = Path("/dev/shm")
ROOM = 2 << 30
if os.access(IN_MEMORY, os.W_OK) and shutil.disk_usage(IN_MEMORY).free > ROOM:
    tempfile.tempdir = os.environ.get("TMPDIR", str(IN_MEMORY))
if PARALLEL:  # each rank has a root of its own: pytest cleans up at the end, and does not expect others to
    root = tempfile.mkdtemp(prefix=f"lockstep-rank-{WORLD.Get_rank()}-")
    os.environ["PYTEST_DEBUG_TEMPROOT"] = root
    atexit.register(remove_empty, root)

# A run of the suite is the same every time; LOCKSTEP_EXPLORE=N draws N new examples a property instead.
# In parallel all ranks must draw the same examples, and none may repeat one alone in order to shrink it.
EXPLORE = 0 if PARALLEL else int(os.environ.get("LOCKSTEP_EXPLORE") or 0)
hypothesis.settings.register_profile(
    "lockstep",
    max_examples=EXPLORE or 25,
    deadline=None,
    database=None,
    derandomize=not EXPLORE,
    phases=(Phase.explicit, Phase.generate) if PARALLEL else tuple(Phase),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
hypothesis.settings.load_profile("lockstep")


# ---- fixtures ---------------------------------------------------------------------------------------------


def gpu_or_reason():
    """A GPU device, or the reason why there is none."""
    return open_gpu(WORLD.Get_rank())


@pytest.fixture(scope="session")
def gpu():
    """The GPU of this rank; skips where there is none."""
    device = gpu_or_reason()
    if isinstance(device, str):
        pytest.skip(device)
    return device


@pytest.fixture(scope="session")
def compiled():
    """The host with its compiled kernels; skips where they were not built."""
    if not available():
        pytest.skip("app/native was not built: python setup.py build_ext --inplace")
    return HostDevice()


@pytest.fixture(scope="module", params=[16, 8, 4])
def lanes(request, compiled):
    """Each width of vector registers that this processor has kernels for."""
    used = library.use_lanes(request.param)
    if used != request.param:
        library.use_lanes()
        pytest.skip(f"this processor has no registers of {request.param} numbers")
    yield used
    library.use_lanes()


DEVICES = ["host", "plain", "stand-in", *(["gpu"] if find_spec("cupy") else [])]


@pytest.fixture(params=DEVICES)
def device(request):
    """Each device in turn: the host with its compiled kernels and without, the stand-in for CuPy, and a GPU.

    Without compiled kernels "host" is what "plain" would be, which is skipped; without CuPy there is no GPU,
    and two thousand tests less to collect.
    """
    if request.param == "gpu":
        return request.getfixturevalue("gpu")
    if request.param == "plain":
        request.getfixturevalue("compiled")
        return HostDevice(compiled=False)
    return HostDevice() if request.param == "host" else stand_in()


def stand_in():
    """The GPU device, its kernels compiled for the host; without a compiler, what does as they would."""
    return emulator.make_device() if emulator.compiler() else StandInDevice()


@pytest.fixture(scope="session")
def emulated():
    """The GPU device with its kernels compiled for the host; skips where there is no C++ compiler."""
    if not emulator.compiler():
        pytest.skip("no C++ compiler to run the CUDA kernels on the host")
    return emulator.make_device()


@pytest.fixture
def group(device):
    """All ranks of the session with `device`."""
    return Group(WORLD, device)


@pytest.fixture
def world():
    """All ranks of the session, for what opens its device itself."""
    return WORLD


@pytest.fixture
def solo(device):
    """This rank alone with `device`: what one process computes."""
    return Group(MPI.COMM_SELF, device)


@pytest.fixture
def single(request, solo):
    """What one process computes, for ranks to agree with.

    In a session of one rank, where `solo` would do what `group` does, it is the host with its compiled
    kernels, whose bits every other device has.
    """
    kind = request.node.callspec.params["device"]
    if PARALLEL or kind == "gpu" or (kind == "stand-in" and not emulator.compiler()):
        return solo
    return Group(MPI.COMM_SELF, HostDevice())


@pytest.fixture(autouse=True)
def only_this_test(request):
    """Before tests of files that measure memory: threads of earlier ones, which end when they look, have."""
    if "tracemalloc" in vars(request.module) and at_work():
        gc.collect()  # of what no longer has an owner; it takes as long as many a test
        end = time.monotonic() + LOOK_SECONDS
        while at_work() and time.monotonic() < end:
            time.sleep(0.01)


@pytest.fixture
def shared_path():
    """A folder that all ranks see, removed by rank 0."""
    folder = Path(WORLD.bcast(f"{tempfile.gettempdir()}/lockstep-test-{os.getpid()}"))
    if WORLD.rank == 0:
        folder.mkdir()
    WORLD.barrier()
    yield folder
    WORLD.barrier()
    if WORLD.rank == 0:
        for path in sorted(folder.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        folder.rmdir()


# ---- parallel sessions ------------------------------------------------------------------------------------


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    config.addinivalue_line("markers", "mpi_skip: runs in a session of one process only")
    config.addinivalue_line("markers", "long: runs where LOCKSTEP_LONG=1 is set (make test-long)")
    config.passed_tests = 0
    if PARALLEL and hasattr(config.option, "timeout_method"):
        config.option.timeout_method = "thread"  # a signal handler would wait for the MPI call to return


def pytest_addoption(parser):
    parser.addoption("--share", default="1/1", help="K,L/M: of each M tests about the Kth and the Lth")
    parser.addoption("--files", default="1/1", help="K/M: about each Mth file, told by its name")


# A whole file for one process: in a parallel session not even its imports are waited for.
ALONE = re.compile(r"^pytestmark = \[?\s*pytest\.mark\.mpi_skip\b", re.MULTILINE)


def pytest_ignore_collect(collection_path, config):
    """Files of tests for one process, in a session of several; and of those that are not asked for."""
    if not collection_path.is_file():
        return None
    number, step = map(int, config.getoption("--files").split("/"))
    asked = zlib.crc32(collection_path.name.encode()) % step == number - 1
    alone = PARALLEL and asked and ALONE.search(collection_path.read_text("utf-8"))
    return True if alone or not asked else None


# Of so many tests one is run; the others, told by their names, are long. The bits of these devices are those
# of the host with kernels, which that one compares; what they do themselves has files of its own.
ONE_OF = {"plain": 6, "stand-in": 2}
OF_DEVICES = {"test_cuda.py", "test_cuda_device.py", "test_device.py", "test_sparse.py", "test_standin.py"}


def pytest_itemcollected(item):
    """Tests on the host without compiled kernels and on the stand-in for CuPy: most are long."""
    many = ONE_OF.get(getattr(item, "callspec", None) and item.callspec.params.get("device"), 1)
    if item.path.name not in OF_DEVICES and zlib.crc32(item.nodeid.encode()) % many:
        item.add_marker(pytest.mark.long)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session):
    """No garbage is looked for among tests while they are collected, nor ever after: they all stay."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(trylast=True)  # after -k
def pytest_collection_modifyitems(config, items):
    long = os.environ.get("LOCKSTEP_LONG") == "1"
    left = [item for item in items if item.get_closest_marker("long") and not long]
    shares, step = config.getoption("--share").split("/")
    numbers, step = [int(number) - 1 for number in shares.split(",")], int(step)
    asked = [item for item in items if long or not item.get_closest_marker("long")]
    # Moved on by one every time, so that of a parameter of `step` values each has its turn.
    items[:] = [item for at, item in enumerate(asked) if (at + at // step) % step in numbers]
    for item in items:
        if PARALLEL and item.get_closest_marker("mpi_skip"):
            item.add_marker(pytest.mark.skip(reason="runs in a session of one process only"))
    config.hook.pytest_deselected(items=left)


class Watch:
    """Ends all ranks with the first failure, and counts what passed."""

    def __init__(self, config):
        self.config = config

    def pytest_runtest_logreport(self, report):
        self.config.passed_tests += report.when == "call" and report.passed
        if report.failed:
            self.end_all(f"{report.nodeid} ({report.when})", report.longreprtext)

    def pytest_collectreport(self, report):
        if report.failed:
            self.end_all(f"collecting {report.nodeid}", report.longreprtext)

    def pytest_internalerror(self, excrepr):
        self.end_all("internal error of pytest", str(excrepr))

    def end_all(self, where, text):
        """Print past pytest's capture, then abort."""
        capture = self.config.pluginmanager.getplugin("capturemanager")
        if capture is not None:
            capture.suspend_global_capture(in_=True)
        rank = WORLD.Get_rank()
        lines = [f"FAILED on rank {rank} of {WORLD.Get_size()}: {where}", *text.splitlines()]
        os.write(2, ("\n" + "".join(f"[rank {rank}] {line}\n" for line in lines)).encode())
        WORLD.Abort(1)


def pytest_sessionstart(session):
    """Networks of a parallel session are split over its ranks, which tests are about, small as they are; what
    is learned by every rank by itself is in test_whole_networks.py."""
    if PARALLEL:
        whole.WORTH = 0.0
        session.config.pluginmanager.register(Watch(session.config))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    if PARALLEL and not session.config.passed_tests and not session.config.option.collectonly:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        text = f"[rank {WORLD.Get_rank()}] no test passed in this parallel session: a failure\n"
        os.write(2, text.encode())
