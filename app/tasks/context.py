"""Context: what every task needs, made once by app.main and handed down unchanged."""

import importlib.metadata
import os
import sys
import zlib
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from app.case.config import VERSION, Case
from app.case.file import build
from app.case.graph import GraphCase
from app.case.text import case_digest
from app.checkpoint.keeper import NOTHING_KEPT, Keeper
from app.comm.grid import Grid, cut_grid, fit_groups
from app.comm.group import Group, communicator
from app.comm.guard import check_same, each_by_itself, raise_together
from app.comm.transport import choose_transport, local_rank
from app.comm.turns import only_this_rank
from app.device import check_octets, open_device
from app.errors import CaseError
from app.log import Log, warn_caller
from app.memory.room import resident_bytes
from app.model.counts import expected_entries, mean_nodes
from app.model.fits import refuse_read
from app.model.whole import refuse_spatial
from app.native.device import HostDevice
from app.output import RunFolder
from app.partition.assemble import complement_of
from app.partition.cost import CostModel
from app.partition.load import EVERY, load_graphs
from app.partition.loaded import Loaded
from app.partition.recut import read_cost_model
from app.partition.whole import held_whole
from app.sparse.rowblock import RowBlock
from app.tasks.refused import check_names

if TYPE_CHECKING:
    from app.problems.problem import Problem

APP = Path(__file__).parent.parent
LEARNED = "training"  # the purpose of graphs to learn on
LONG_READING = 3.0  # seconds from which on the log says what of them each step took
KEPT_FIRST = "the best weights are those of step 0: on the held-back graphs training has made none better"
# Stored entries of all states of an evaluation, and of a node, from which on a GPU is faster than a core.
LAUNCHES_WORTH, DENSE = 1 << 22, 64
PACKAGES = ("numpy", "scipy", "mpi4py", "cupy", "cupy-cuda11x", "cupy-cuda12x", "cupy-cuda13x")


def open_group(comm: Any, case: Case, allow_mixed: bool = False) -> Group:
    """The ranks of a communicator, each with its device; what fails on some ranks only is raised on all.

    allow_mixed   ranks may run different versions of the software
    Ranks         all call
    """
    host = Group(comm, HostDevice())
    shown = f"case {case_digest(case)[:16]}"
    check_same(host, shown, "ranks of one job must run the same case", CaseError)
    if host.size > 1 and not allow_mixed:
        what = "ranks of one job must run the same software (--allow-mixed tries it all the same)"
        check_same(host, software(), what, CaseError)
    rank_here = local_rank(comm)
    with raise_together(host, "opening the device"):
        run = case.run
        compiled = run.kernels == "auto"
        wanted = wanted_device(case)
        device = open_device(wanted, rank_here, run.portable, run.reproducible, compiled, run.cuda_graph)
        if case.run.reproducible:
            check_octets(device)
    check_same(host, f"device {device.name}", "all ranks need one kind of device", CaseError)
    transport = choose_transport(case.parallel.transport, device, comm)
    group = Group(comm, device, transport.direct, case.run.reproducible)
    group.transport = str(transport)
    return group


def reading_together(comm: Any) -> AbstractContextManager[None]:
    """For what is read before there is a context: where one rank's is wrong, all leave with the error.

    comm    the ranks; None: all
    Ranks   all enter
    """
    return raise_together(Group(communicator(comm), HostDevice()), "reading the settings")


def context_of_settings(
    settings: dict[str, Any], comm: Any, verbose: bool, has_training: bool = False, by_task: bool = True
) -> "Context":
    """A context that writes nothing, of settings from Python.

    comm           the ranks; None: all
    has_training   the graphs to train on are not in the settings
    by_task        keys that the task does not read are refused; False: the caller reads some of them
    Ranks          all call
    """
    ranks = communicator(comm)
    with reading_together(ranks):
        case = build(settings, has_training, by_task)
        check_names(case)
        if case.run.task == "classify":
            refuse_spatial(case, ranks.Get_size())
    group = open_group(ranks, case)
    log = Log(verbose and group.rank == 0, None, case.output.log_seconds)
    return Context(case, group, log, None, called=True)


def wanted_device(case: Case) -> str:
    """run.device, where "auto" is the host for policies on graphs that a GPU would be slower on.

    A GPU takes launches for every selection, in which time a core follows hundreds on a sparse graph. Only
    generated graphs are known at this point.
    """
    run, learns = case.run, case.run.task == "train"
    if run.device != "auto" or run.task not in ("solve", "train"):
        return run.device
    table = case.train.graphs if learns else case.graph
    if table is None or not table.generator:
        return "cpu"
    entries, states = expected_entries(table), case.agent.batch if learns else 1
    dense = entries >= DENSE * mean_nodes(table)
    return "auto" if dense and entries * states >= LAUNCHES_WORTH else "cpu"


@cache
def software() -> str:
    """What runs on this rank, in a line: versions, and a check sum of this program's own files.

    The files are read once in a process: what it has loaded does not change with them.
    """
    versions, check_sum = [], 0
    for name in PACKAGES:
        with suppress(importlib.metadata.PackageNotFoundError):
            versions.append(f"{name} {importlib.metadata.version(name)}")
    found = (os.path.join(folder, name) for folder, _, names in os.walk(APP) for name in names)
    for path in sorted(name for name in found if name.endswith(".py")):
        with open(path, "rb") as file:
            check_sum = zlib.crc32(file.read(), check_sum)
    return f"python {sys.version.split()[0]}, lockstep {VERSION} ({check_sum:08x}), {', '.join(versions)}"


@dataclass(frozen=True)
class Context:
    """A case, the ranks that run it, where they write (None: nowhere), what they say, what they keep.

    here    ranks on this host, and all ranks of the job, where `group` may be some of them; 0: it is all
    called  from Python: what the log warns of is a Python warning, too
    alike   ranks that do the same, each by itself, or the first one for all; None: those of `group` share it
    """

    case: Case
    group: Group
    log: Log
    folder: RunFolder | None
    keeper: Keeper = NOTHING_KEPT
    here: int = 0
    ranks: int = 0
    called: bool = False
    alike: Group | None = None

    def warn(self, text: str) -> None:
        """A warning in the log, and to a caller from Python."""
        self.log.info("warning: %s", text)
        if self.called:
            warn_caller(text)

    def say_memory(self, held: int) -> None:
        """What the ranks' processes took at most, above `held` bytes, those before the model was made.

        Ranks   all call
        """
        peaks, before = self.group.gather_integers(np.array([resident_bytes("VmHWM"), held])).T
        shown = ", ".join(f"{1e-6 * (peak - first):.0f}" for peak, first in zip(peaks, before))
        self.log.info(
            "memory of the largest process %.0f MB; by rank above what libraries and graph take: %s MB",
            1e-6 * int(peaks.max()), shown,
        )  # fmt: skip

    @property
    def device(self) -> Any:
        """The device of this rank."""
        return self.group.device

    def grid(self) -> Grid:
        """The ranks as groups that share parallel.data replicas. Raises CaseError. Ranks: all call."""
        parallel = self.case.parallel
        groups = fit_groups(self.group.size, parallel.data, parallel.spatial)
        return cut_grid(self.group, parallel.data, groups)

    def solving_grid(self, graphs: int) -> Grid:
        """The ranks as groups that solve several graphs at once, at most parallel.data. Ranks: all call."""
        parallel, most = self.case.parallel, max(min(graphs, self.case.parallel.data), 1)
        if parallel.spatial:
            groups = fit_groups(self.group.size, parallel.data, parallel.spatial)
        else:
            groups = max(g for g in range(1, most + 1) if self.group.size % g == 0)
        return cut_grid(self.group, max(groups, most), groups)

    def within(self, grid: Grid) -> "Context":
        """This context for the ranks of one group of a grid, which write nothing by themselves."""
        if grid.groups == 1:
            return self
        return replace(self, group=grid.group, folder=None, keeper=self.keeper.apart(grid.group))

    def alone(self) -> "Context":
        """This context for a rank by itself, which writes nothing. It may halt: inside `raise_together`."""
        group = only_this_rank(self.device)
        return replace(self, group=group, folder=None, keeper=self.keeper.apart(group))

    def whole(self) -> "Context":
        """This context for ranks that each have whole graphs: rank 0 trains for all, and writes.

        They stay together: the keeper is that of all (`led`), and what they do by themselves belongs inside
        `each_by_itself`.
        """
        folder = self.folder if self.group.rank == 0 else None
        return replace(self, group=self.group.alone(), folder=folder, alike=self.group)

    def each_by_itself(self, what: str) -> AbstractContextManager[None]:
        """Around what the ranks of `alike` do each by itself, or rank 0 alone, which writes: see guard.

        Ranks   all enter
        """
        return each_by_itself(self.alike, what)

    def load(
        self, table: GraphCase, purpose: str, share: slice = EVERY, worked_on: bool = True
    ) -> list[Loaded]:
        """The graphs a table names, or some of them, with what the files held in the log.

        worked_on   they are to be solved or learned on, for which there has to be room
        Ranks       all call
        """
        with self.log.phase("read"):
            loaded = load_graphs(self.group, table, purpose, self.case, share)
        for item in loaded:
            for warning in item.warnings:
                self.log.info("warning: %s", warning)
            if (seconds := sum(item.seconds.values())) >= LONG_READING:
                steps = ", ".join(f"{step} {took:.1f}" for step, took in item.seconds.items())
                self.log.info("read %s in %.1f s: %s", item.graph.name, seconds, steps)
        read = [item.graph for item in loaded if item.source != "generator"]
        if read and worked_on and self.case.run.task in ("solve", "train"):
            sizes = [(graph.name, graph.n, graph.edges) for graph in read]
            learns, ranks = purpose == LEARNED, self.ranks or self.group.size
            for warning in refuse_read(self.group, self.case, table, sizes, learns, self.here, ranks):
                self.log.info("warning: %s", warning)
        return loaded

    def cost_model(self) -> CostModel | None:
        """The model of parallel.cost_model, where there is one. Ranks: all call."""
        return read_cost_model(self.group, self.case)

    def state_rows(self, loaded: Loaded, problem: "Problem", width: int = 0) -> RowBlock:
        """The device rows that a problem's states live on: of a loaded graph, or of its complement.

        width     as of `rows`
        Ranks     all call
        """
        if not problem.complemented:
            return self.rows(loaded, width)
        return self.rows(replace(loaded, graph=complement_of(self.group, loaded.graph)), width)

    def state_rows_on(
        self, group: Group, graphs: list[Loaded], problem: "Problem", width: int = 0
    ) -> list[RowBlock]:
        """`state_rows` of graphs, split over the ranks of `group`: the context's, or this rank by itself.

        Ranks       all of the context call
        """
        if group is not self.group:
            graphs = [held_whole(self.group, loaded) for loaded in graphs]
            self = replace(self, group=group)
        return [self.state_rows(loaded, problem, width) for loaded in graphs]

    def rows(self, loaded: Loaded, width: int = 0) -> RowBlock:
        """The device rows of a loaded graph.

        width     columns of the operands where every product is of all rows; 0: only changes are followed
        Ranks     all call
        """
        with self.log.phase("distribute"):
            return RowBlock(
                self.group, loaded.graph, loaded.rows, self.case.parallel.exchange, width, loaded.metric
            )
