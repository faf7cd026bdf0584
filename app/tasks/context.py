"""Context: what every task needs, made once by app.main and handed down unchanged."""

import importlib.metadata
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from app.case.config import GRAPH_TABLES, VERSION, Case, graph_tables, is_relational
from app.case.file import build
from app.case.graph import GraphCase
from app.case.policy import PolicyCase
from app.case.text import case_digest
from app.checkpoint.checkpoints import NOTHING_KEPT, Keeper
from app.comm.grid import Grid, cut_grid, fit_groups
from app.comm.group import Group, communicator
from app.comm.guard import check_same, each_by_itself, raise_together
from app.comm.transport import choose_transport, local_rank
from app.comm.turns import only_this_rank
from app.device import HostDevice, check_octets, open_device
from app.errors import CaseError
from app.gnn.rgcn.scorers import SCORERS
from app.graphs.formats.source import graph_suffix
from app.graphs.quadratic import QUADRATIC
from app.log import Log, warn_caller
from app.memory.room import resident_bytes
from app.model.counts import expected_entries, mean_nodes
from app.model.fits import refuse_read
from app.model.whole import refuse_spatial
from app.output import RunFolder
from app.partition.assemble import complement_of
from app.partition.cost import CostModel
from app.partition.load import EVERY, Loaded, load_graphs
from app.partition.order import check_order
from app.partition.recut import read_cost_model
from app.partition.stands_for import is_covering, is_ordering, is_quadratic
from app.partition.whole import held_whole
from app.problems.table import (
    NODE_WEIGHTS_RIGHT,
    UNTRAINED,
    asks_policy,
    check_problem,
    counted_by,
    not_alone,
    reads_node_weights,
    without_policy,
)
from app.recipes import find_recipe
from app.rl.learners import check_learner
from app.rl.rules import check_rule
from app.sparse.rowblock import RowBlock

if TYPE_CHECKING:
    from app.problems.problem import Problem

APP = Path(__file__).parent.parent
LEARNED = "training"  # the purpose of graphs to learn on
LONG_READING = 3.0  # seconds from which on the log says what of them each step took
KEPT_FIRST = "the best weights are those of step 0: on the held-back graphs training has made none better"
OF_CLASSES = 'rgcn.goal = "classes"'
# Keys of [rgcn] that links alone read, beside those that have messages of their own.
OF_LINKED_TRIPLES = (
    "scorer", "loops", "queries", "dimension", "loss", "ask_relations", "negatives", "candidates",
    "margin", "n3", "held_out", "validation",
)  # fmt: skip
# Keys of graphs whose rows are dealt, and of their networks: table, key, what would be right with triples.
UNREAD_BY_RELATIONS = (
    ("graph", "edge_features", "leaving it out"),
    ("graph", "labels", "rgcn.train_labels and rgcn.test_labels"),
    ("graph", "splits", "rgcn.train_labels and rgcn.test_labels"),
    ("graph", "order", '"natural"'), ("graph", "complement", "false"), ("graph", "self_loops", '"drop"'),
    ("graph", "duplicates", '"merge"'), ("graph", "ids", '"numbers"'), ("graph", "format", '"auto"'),
    ("graph", "count", "1"), ("graph", "random_features", "0"), ("graph", "random_classes", "rgcn.classes"),
    ("graph", "edge_weights", '"one"'), ("memory", "cache", '""'), ("output", "embeddings", "false"),
    ("output", "importance", "0"),
)  # fmt: skip
SETS_WANT = {"order": "natural", "complement": False, "neighbours": "both", "edge_weights": "one"}
ARCS_WANT = {"self_loops": "drop", "duplicates": "merge"}
TERMS_WANT = {"order": "natural", "complement": False, "self_loops": "drop", "duplicates": "merge"}
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


def check_names(case: Case) -> None:
    """Refuse names that no table knows before any work is done. Raises CaseError."""
    check_problem(case.problem.name)
    if case.graph.node_weights and not reads_node_weights(case.problem.name):
        counted = f"{case.problem.name} counts {counted_by(case.problem.name)}"
        raise CaseError(f"graph.node_weights: {counted}; {NODE_WEIGHTS_RIGHT}")
    if case.run.task == "solve" and case.search.solver == "policy" and case.problem.name in UNTRAINED:
        right = 'search.solver = "full" would be right'
        raise CaseError(f"{case.problem.name}: {not_alone(case.problem.name)}; {right}")
    _refuse_for_terms(case)
    _refuse_for_sets(case)
    check_rule(case.select.rule)
    check_learner(case.agent.learner)
    if case.run.task in ("train", "study") or case.policy.weights == "train":
        from app.rl.training import share_of  # of no use to tasks that do not learn a policy

        share_of(case.agent, case.parallel.data)
    _refuse_late(case)
    for recipe in case.study.recipes:
        find_recipe(recipe)
    if case.run.task == "classify":
        _check_network(case)


def _refuse_late(case: Case) -> None:
    """Refuse what a run would come to after a policy is trained, or graphs are read. Raises CaseError."""
    learns = case.run.task == "train" or (case.run.task == "solve" and case.policy.weights == "train")
    if learns and case.memory.fast_mb and case.policy.model != PolicyCase().model:
        from app.rl.qnet import one_tier  # of no use to tasks that do not learn a policy

        raise one_tier(case.policy)
    for table in (case.graph, *((case.train.graphs, case.train.held_back) if learns else ())):
        if table is not None:
            check_order(table.order)


def _check_network(case: Case) -> None:
    """Refuse layers that no table knows, and keys that a network does not read. Raises CaseError."""
    from app.gnn.model import check_layers, check_only_model  # of no use to tasks without one

    if is_relational(case):
        check_only_model(case.gnn)
        _refuse_unread_by_relations(case)
    else:
        check_layers(case.gnn, bool(case.graph.edge_features))


def _refuse_for_terms(case: Case) -> None:
    """Refuse what a graph may have and the terms of a quadratic function have not. Raises CaseError."""
    problems = [case.problem.name, *(case.study.problems if case.study.kind == "learners" else [])]
    if case.run.task == "study" and not set(QUADRATIC).isdisjoint(problems):
        said = "no study compares values of quadratic functions, which are below 0; maxcut would be right"
        raise CaseError(f"problem.name, study.problems: {said}")
    if is_ordering(case):
        _refuse_keys(case, ARCS_WANT, "has arcs that add up")
    if not is_quadratic(case):
        return
    _refuse_keys(case, TERMS_WANT, "holds the terms of a function")


def _refuse_keys(case: Case, wanted: dict[str, Any], said: str) -> None:
    """Refuse tables of graphs in which a key has another value than the wanted one. Raises CaseError."""
    for keys, table in zip(GRAPH_TABLES, graph_tables(case)):
        for key, right in wanted.items():
            if table is not None and getattr(table, key) != right:
                shown_right = str(right).lower() if right is False else f'"{right}"'
                name = f"{'.'.join(keys)}.{key}: the graph of {case.problem.name} {said}"
                raise CaseError(f"{name}; {shown_right} would be right")


def _refuse_for_sets(case: Case) -> None:
    """Refuse what families of sets have no place for. Raises CaseError."""
    problems = [case.problem.name, *(case.study.problems if case.study.kind == "learners" else [])]
    trains = case.run.task in ("train", "study") or case.policy.weights == "train"
    for name in problems if trains and case.run.task != "classify" else ():
        if name in UNTRAINED:
            raise CaseError(f"problem.name, study.problems: {without_policy(name)}")
    if case.run.task == "solve" and not asks_policy(case.problem.name) and case.policy.weights != "default":
        raise CaseError(f"policy.weights: no policy answers {case.problem.name}; leave it out")
    if is_covering(case):
        _refuse_keys(case, SETS_WANT, "stands for a family of sets")
        return
    for keys, table in zip(GRAPH_TABLES, graph_tables(case)):
        if table is not None and table.generator == "sets":
            right = 'problem.name = "set_cover" or "hitting_set" would be right, to solve it, or "coverage"'
            raise CaseError(f"{'.'.join(keys)}.generator: sets: a family of sets; {right}")


def _refuse_unread_by_relations(case: Case) -> None:
    """Refuse keys of a graph that has rows, which one of triples has not. Raises CaseError."""
    usual = Case()
    for table, key, instead in UNREAD_BY_RELATIONS:
        if getattr(getattr(case, table), key) != getattr(getattr(usual, table), key):
            raise CaseError(f'{table}.{key}: is not read by gnn.model = "rgcn"; {instead} would be right')
    for key, reader in _unread_of_rgcn(case, usual):
        raise CaseError(f"{key}: is read with {reader}; leave it out")
    rgcn, links, generated = case.rgcn, case.rgcn.goal == "links", bool(case.graph.generator)
    archive = bool(case.graph.path) and graph_suffix(case.graph.path[0]) == ".npz"
    reader = OF_CLASSES if links else "a graph.path" if generated else "triples of a text file"
    for key in ("train_labels", "test_labels", "val_labels"):
        if getattr(rgcn, key) and (links or generated or archive):
            raise CaseError(f"rgcn.{key}: is read with {reader}; leave it out")


def _unread_of_rgcn(case: Case, usual: Case) -> Iterator[tuple[str, str]]:
    """Keys that others leave nothing to do, and by what they would be read; usual: a case of defaults."""
    rgcn, links = case.rgcn, case.rgcn.goal == "links"
    varied = _varies(case, "rgcn.loss")
    beside, among = rgcn.loss == "sigmoid" or varied, rgcn.loss == "softmax" or varied
    apart = SCORERS[rgcn.scorer].distance or _varies(case, "rgcn.scorer") or bool(rgcn.weights)

    def differs(key: str) -> bool:
        return getattr(rgcn, key) != getattr(usual.rgcn, key)

    for unread, key, reader in (
        (links and case.output.probabilities, "output.probabilities", OF_CLASSES),
        (links and case.memory.fast_mb != usual.memory.fast_mb, "memory.fast_mb", OF_CLASSES),
        (links and bool(case.graph.features), "graph.features", OF_CLASSES),
        *((links and differs(key), f"rgcn.{key}", OF_CLASSES) for key in ("min_edges", "prune", "keep")),
        *((not links and differs(key), f"rgcn.{key}", 'rgcn.goal = "links"') for key in OF_LINKED_TRIPLES),
        (not rgcn.queries and differs("propose_each"), "rgcn.propose_each", "rgcn.queries"),
        (not beside and differs("negatives"), "rgcn.negatives", 'rgcn.loss = "sigmoid"'),
        (not among and differs("candidates"), "rgcn.candidates", 'rgcn.loss = "softmax"'),
        (
            not (beside and apart) and differs("margin"),
            "rgcn.margin",
            'rgcn.loss = "sigmoid" and rgcn.scorer = "rotate" or "transe"',
        ),
        (bool(rgcn.groups) and rgcn.partition != "both", "rgcn.groups", 'rgcn.partition = "both"'),
    ):
        if unread:
            yield key, reader
    layered = rgcn.layers > 1 or rgcn.weights or _varies(case, "rgcn.layers")  # weights bring their layers
    for key in ("hidden", "dropout"):
        if differs(key) and not layered:
            yield f"rgcn.{key}", "rgcn.layers of at least 2"


def _varies(case: Case, key: str) -> bool:
    """Whether a tuning tries values of a key."""
    return any(text.split()[:1] == [key] for text in case.study.vary)


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
