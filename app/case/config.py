"""The case as frozen structs: the tables of this folder, and the keys in all of them.

They are the only home of key names, defaults, ranges and their meaning. Neither they nor what reads, checks
and writes a case (file.py, check.py, text.py) import NumPy or MPI: a mistake is reported before they load.
"""

from functools import cache
from typing import Annotated, Any

from msgspec import field, structs
from msgspec import inspect as kinds

from app.case.embed import EmbedCase
from app.case.forecast import ForecastCase
from app.case.gnn import GnnCase
from app.case.graph import GraphCase
from app.case.influence import InfluenceCase
from app.case.links import LinksCase
from app.case.policy import AgentCase, PolicyCase, ProblemCase, SelectCase, TrainCase
from app.case.rgcn import RgcnCase
from app.case.run import CheckpointCase, MemoryCase, OutputCase, ParallelCase, RunCase
from app.case.search import SearchCase
from app.case.smooth import SmoothCase
from app.case.study import StudyCase
from app.case.table import Count, Table, about, bare_type

VERSION = "0.1.0"


class Case(Table, frozen=True):
    """The whole input, the same on all ranks."""

    seed: Annotated[Count, about("every random draw follows from it")] = 0
    run: RunCase = RunCase()
    graph: GraphCase = GraphCase()
    problem: ProblemCase = ProblemCase()
    influence: InfluenceCase = InfluenceCase()
    policy: PolicyCase = PolicyCase()
    agent: AgentCase = AgentCase()
    train: TrainCase = TrainCase()
    select: SelectCase = SelectCase()
    search: SearchCase = SearchCase()
    gnn: GnnCase = field(default_factory=GnnCase)
    smooth: SmoothCase = SmoothCase()
    links: LinksCase = LinksCase()
    embed: EmbedCase = field(default_factory=EmbedCase)
    forecast: ForecastCase = ForecastCase()
    rgcn: RgcnCase = RgcnCase()
    parallel: ParallelCase = ParallelCase()
    memory: MemoryCase = MemoryCase()
    checkpoint: CheckpointCase = CheckpointCase()
    output: OutputCase = OutputCase()
    study: StudyCase = field(default_factory=StudyCase)


Keys = tuple[str, ...]  # ("train", "steps")
TRAIN_TABLES = {
    ("train", "graphs"): "The training graphs, with the keys of [graph]; absent: [graph].",
    ("train", "held_back"): "The graphs to judge weights by, with the keys of [graph]; absent: more of the "
    "generated training graphs, or the last ones of their files.",
}
GRAPH_TABLES: tuple[Keys, ...] = (("graph",), *TRAIN_TABLES)


def graph_tables(case: Case) -> list[GraphCase | None]:
    """A case's tables of graphs, in the order of GRAPH_TABLES; None: absent."""
    return [case.graph, case.train.graphs, case.train.held_back]


def is_relational(case: Case) -> bool:
    """Whether a case is one of knowledge graphs: their files are triples, not edges."""
    if case.run.task == "study":
        return case.study.kind == "rgcn" or (case.study.kind == "tune" and case.gnn.model == "rgcn")
    return case.run.task == "classify" and case.gnn.model == "rgcn"


def is_forecast(case: Case) -> bool:
    """Whether a case is one of series of nodes, and of their forecasts."""
    task, study = case.run.task, case.study.kind
    learns = task == "classify" or (task == "study" and study in ("tune", "folds"))
    return learns and case.gnn.level == "forecast" and case.gnn.model != "rgcn"


@cache
def fields_of(table: type[Table]) -> dict[str, structs.FieldInfo]:
    """The fields of a table by name, in their order; to ask msgspec for them takes a millisecond."""
    return {each.name: each for each in structs.fields(table)}


@cache
def all_tables() -> tuple[Keys, ...]:
    """The tables a case may have, in their order."""
    tops = [(name,) for name, each in fields_of(Case).items() if table_of(each.type)]
    return tuple(keys for top in tops for keys in (top, *(each for each in GRAPH_TABLES if each[:-1] == top)))


@cache
def all_keys() -> tuple[tuple[Keys, structs.FieldInfo, type[Table]], ...]:
    """Every key that has a value, with its field and its table."""
    found = [(("seed",), fields_of(Case)["seed"], Case)]
    for keys in all_tables():
        table: Any = Case
        for key in keys:
            table = table_of(fields_of(table)[key].type)
        found += [
            ((*keys, name), each, table) for name, each in fields_of(table).items() if not table_of(each.type)
        ]
    return tuple(found)


def type_of(keys: Keys) -> kinds.Type | None:
    """The type of a key's value; None for a table and for an unknown key."""
    table: type[Table] | None = Case
    for key in keys[:-1]:
        table = table_of(fields_of(table)[key].type) if table and key in fields_of(table) else None
    if table is None or keys[-1] not in fields_of(table):
        return None
    kind = fields_of(table)[keys[-1]].type
    return None if table_of(kind) else kinds.type_info(kind)


@cache
def table_of(kind: object) -> type[Table] | None:
    """The struct behind a key that is a table."""
    info = bare_type(kinds.type_info(kind))
    options = info.types if isinstance(info, kinds.UnionType) else (info,)
    return next((each.cls for each in options if isinstance(each, kinds.StructType)), None)
