"""Context: what every task needs, made once by app.main and handed down unchanged."""

import importlib.metadata
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.casetext import case_digest
from app.checkpoint.checkpoints import NOTHING_KEPT, Keeper
from app.comm.group import Group
from app.comm.guard import check_same, raise_together
from app.comm.transport import choose_transport
from app.config import VERSION, Case, GraphCase
from app.device import HostDevice, check_octets, open_device
from app.errors import CaseError
from app.gnn.model import check_layers
from app.log import Log
from app.output import RunFolder
from app.partition.cost import CostModel
from app.partition.load import Loaded, load_graphs
from app.partition.recut import read_cost_model
from app.problems.table import make_problem
from app.recipes import find_recipe
from app.rl.learners import find_learner
from app.rl.select import find_rule
from app.sparse.rowblock import RowBlock

APP = Path(__file__).parent.parent


def open_group(comm: Any, case: Case, allow_mixed: bool = False) -> Group:
    """The ranks of a communicator, each with its device; what fails on some ranks only is raised on all.

    allow_mixed   ranks may run different versions of the software
    Ranks         all call
    """
    with raise_together(Group(comm, HostDevice()), "opening the device"):
        run = case.run
        compiled = run.kernels == "auto"
        device = open_device(run.device, comm.Get_rank(), run.portable, run.reproducible, compiled)
        direct = choose_transport(case.parallel.transport, device)
        if case.run.reproducible:
            check_octets(device)
    group = Group(comm, device, direct, case.run.reproducible)
    shown = f"case {case_digest(case)[:16]}"
    check_same(group, shown, "ranks of one job must run the same case", CaseError)
    if group.size > 1 and not allow_mixed:
        what = "ranks of one job must run the same software (--allow-mixed tries it all the same)"
        check_same(group, software(), what, CaseError)
    return group


def check_names(case: Case) -> None:
    """Refuse names that no table knows before any work is done. Raises CaseError."""
    make_problem(case.problem.name)
    find_rule(case.select.rule)
    find_learner(case.agent.learner)
    for recipe in case.study.recipes:
        find_recipe(recipe)
    if case.run.task == "classify" and case.gnn.model != "rgcn":
        check_layers(case.gnn)


def software() -> str:
    """What runs on this rank, in a line: versions, and a check sum of this program's own files."""
    versions = [f"{name} {importlib.metadata.version(name)}" for name in ("numpy", "scipy", "mpi4py")]
    if "cupy" in sys.modules:
        versions.append(f"cupy {sys.modules['cupy'].__version__}")
    check_sum = 0
    for path in sorted(APP.rglob("*.py")):
        check_sum = zlib.crc32(path.read_bytes(), check_sum)
    return f"python {sys.version.split()[0]}, lockstep {VERSION} ({check_sum:08x}), {', '.join(versions)}"


@dataclass(frozen=True)
class Context:
    """A case, the ranks that run it, where they write (None: nowhere), what they say, what they keep."""

    case: Case
    group: Group
    log: Log
    folder: RunFolder | None
    keeper: Keeper = NOTHING_KEPT

    @property
    def device(self) -> Any:
        """The device of this rank."""
        return self.group.device

    def load(self, table: GraphCase, purpose: str) -> list[Loaded]:
        """The graphs a table names, with what the files held in the log. Ranks: all call."""
        with self.log.phase("read"):
            loaded = load_graphs(self.group, table, purpose, self.case)
        for item in loaded:
            for warning in item.warnings:
                self.log.info("warning: %s", warning)
        return loaded

    def cost_model(self) -> CostModel | None:
        """The model of parallel.cost_model, where there is one. Ranks: all call."""
        return read_cost_model(self.group, self.case)

    def rows(self, loaded: Loaded, width: int = 0) -> RowBlock:
        """The device rows of a loaded graph.

        width     columns of the operands where every product is of all rows; 0: only changes are followed
        Ranks     all call
        """
        with self.log.phase("distribute"):
            return RowBlock(
                self.group, loaded.graph, loaded.rows, self.case.parallel.exchange, width, loaded.metric
            )
