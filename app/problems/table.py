"""Names of problems: a new problem is one new file and one line here."""

from typing import TYPE_CHECKING, Any

from app.graphs.covering import COVERAGE, COVERING
from app.graphs.ordering import ORDERING
from app.graphs.quadratic import QUADRATIC
from app.tables import Table

if TYPE_CHECKING:
    from app.problems.problem import Problem

PROBLEMS = Table(
    {
        "mvc": "app.problems.mvc:MinimumVertexCover",
        "mis": "app.problems.mis:MaximumIndependentSet",
        "mds": "app.problems.mds:MinimumDominatingSet",
        "fvs": "app.problems.fvs:FeedbackVertexSet",
        "dfvs": "app.problems.dfvs:DirectedFeedbackVertexSet",
        "dismantle": "app.problems.dismantle:Dismantling",
        "clique": "app.problems.clique:MaximumClique",
        "coloring": "app.problems.coloring:GraphColoring",
        "communities": "app.problems.communities:Communities",
        "partition": "app.problems.partition:Partition",
        "steiner": "app.problems.steiner:SteinerTree",
        "maxcut": "app.problems.maxcut:MaxCut",
        "maxcut_once": "app.problems.maxcut:MaxCutOnce",
        "qubo": "app.problems.qubo:Qubo",
        "ising": "app.problems.ising:Ising",
        "set_cover": "app.problems.set_cover:SetCover",
        "hitting_set": "app.problems.set_cover:HittingSet",
        "coverage": "app.problems.coverage:Coverage",
        "influence": "app.problems.influence:Influence",
        "facility": "app.problems.facility:FacilityLocation",
        "dense": "app.problems.dense:DenseSubgraph",
        "treewidth": "app.problems.treewidth:Treewidth",
        "arrangement": "app.problems.arrangement:LinearArrangement",
        ORDERING: "app.problems.ordering:LinearOrdering",
        "alignment": "app.problems.assignment:GraphAlignment",
        "qap": "app.problems.assignment:QuadraticAssignment",
        "tsp": "app.problems.tsp:TravellingSalesman",
        "cvrp": "app.problems.cvrp:VehicleRouting",
    }
)
UNTRAINED = (
    COVERAGE,
    "influence",
    "facility",
    "dense",
    ORDERING,
    "dfvs",
    "coloring",
    "communities",
    "partition",
    "steiner",
    "cvrp",
    "treewidth",
    "arrangement",
    "alignment",
    "qap",
)  # no policy is trained for them
ROW_PEELED = ("mvc", "mis", "mds")  # whose policies choose on rows until the rest fits a rank
ROW_FOLLOWED = ("maxcut", "maxcut_once")  # whose policies answer by themselves, then rows are searched
ROW_REDUCED = (
    "mvc",
    "mis",
    "mds",
    "fvs",
    "clique",
    "maxcut",
    "maxcut_once",
)  # that reductions on row partitions know (app/solver/rows/kinds.py)
SAMPLED = ("influence",)  # whose values can only be sampled (app/solver/sampled.py)
# What states depend on beside the graph, by keys of [problem].
SETTINGS = {"dismantle": ("component",)}
# Files of what solutions do, or stand for (Toolbox.course).
COURSES = {"dismantle": "dismantling/{}.csv", "facility": "assignment/{}.csv", "treewidth": "solution/{}.td"}
# Solutions that number nodes, and what they number.
TREE = "tree"  # solutions that are edges
MAPPING = "mapping"  # solutions that put nodes on those of another graph
ROUTES = "routes"  # solutions that are lists of stops
NODE_ORDERS = ("order", "elimination order", "arrangement")  # solutions that are all nodes, one by one
ORDERS = {"tour": "cities"} | dict.fromkeys(NODE_ORDERS, "nodes")  # those that are orders, and of what
CLASSES = {"coloring": "color", "partition": "community", "blocks": "block"}
# The weights that objectives count; terms: of edges and of loops; "": none.
WEIGHED = {
    **dict.fromkeys(["mvc", "mis", "mds", "fvs", "dfvs", "dismantle", "clique", "treewidth"], "nodes"),
    **dict.fromkeys([*COVERING, COVERAGE, "influence"], "nodes"),
    **dict.fromkeys(["maxcut", "maxcut_once", "communities", "partition", "steiner", "tsp", "cvrp"], "edges"),
    **dict.fromkeys(["alignment", "qap"], "edges"),
    "facility": "edges",
    "dense": "edges",
    "arrangement": "edges",
    ORDERING: "edges",
    **dict.fromkeys(QUADRATIC, "terms"),
    "coloring": "",
}


NODE_WEIGHTS_RIGHT = (
    "mvc, mis, mds, fvs, dfvs, dismantle, clique, partition, set_cover, hitting_set, coverage, influence, "
    "facility, dense or treewidth would be right"
)


def reads_node_weights(name: str) -> bool:
    """Whether weights of nodes count: in objectives, or in what blocks may weigh, or nodes need."""
    return WEIGHED.get(name) == "nodes" or name in ("partition", "facility", "dense")


def counted_by(name: str) -> str:
    """Which weights a problem counts, for a message."""
    what = {"terms": "edges and loops"}.get(WEIGHED[name], WEIGHED[name])
    return f"those of {what}" if what else "none"


def asks_policy(name: str) -> bool:
    """Whether a policy answers the problem of that name, its own or another's. Raises CaseError."""
    return make_problem(name).dynamics != ""


def without_policy(name: str) -> str:
    """Why no policy is trained for one of UNTRAINED, and what would be right, in words."""
    return f"no policy answers {name}: searches begin with plain heuristics; another problem would be right"


def not_alone(name: str) -> str:
    """Why the policy alone does not answer one of UNTRAINED, in words."""
    return "no policy answers it"


def check_problem(name: str) -> None:
    """Refuse a problem that no case can name. Raises CaseError."""
    PROBLEMS.check("problem.name", "problem", name)


def make_problem(name: str, asked: Any = None) -> "Problem":
    """The problem a case names. Raises CaseError for an unknown name.

    asked   a [problem] table (app/case/policy.py), for what states depend on; None: as usual
    """
    check_problem(name)
    keys = () if asked is None else SETTINGS.get(name, ())
    return PROBLEMS[name](**{key: getattr(asked, key) for key in keys})


def problem_of(case: Any) -> "Problem":
    """The problem of a case, with what its states depend on."""
    return make_problem(case.problem.name, case.problem)
