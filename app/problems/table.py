"""Names of problems: a new problem is one new file and one line here."""

from app.errors import CaseError
from app.graphs.covering import COVERING
from app.graphs.quadratic import QUADRATIC
from app.problems.clique import MaximumClique
from app.problems.coloring import GraphColoring
from app.problems.communities import Communities
from app.problems.ising import Ising
from app.problems.maxcut import MaxCut, MaxCutOnce
from app.problems.mds import MinimumDominatingSet
from app.problems.mis import MaximumIndependentSet
from app.problems.mvc import MinimumVertexCover
from app.problems.problem import Problem
from app.problems.qubo import Qubo
from app.problems.set_cover import HittingSet, SetCover
from app.problems.tsp import TravellingSalesman

PROBLEMS = {
    "mvc": MinimumVertexCover,
    "mis": MaximumIndependentSet,
    "mds": MinimumDominatingSet,
    "clique": MaximumClique,
    "coloring": GraphColoring,
    "communities": Communities,
    "maxcut": MaxCut,
    "maxcut_once": MaxCutOnce,
    "qubo": Qubo,
    "ising": Ising,
    "set_cover": SetCover,
    "hitting_set": HittingSet,
    "tsp": TravellingSalesman,
}
UNTRAINED = (*COVERING, "coloring", "communities")  # problems for which no policy is trained
CLASSES = {"coloring": "color", "partition": "community"}  # solutions that number nodes, and what they number
# The weights that objectives count; terms: of edges and of loops; "": none.
WEIGHED = {
    **dict.fromkeys(["mvc", "mis", "mds", "clique", *COVERING], "nodes"),
    **dict.fromkeys(["maxcut", "maxcut_once", "communities", "tsp"], "edges"),
    **dict.fromkeys(QUADRATIC, "terms"),
    "coloring": "",
}


def counted_by(name: str) -> str:
    """Which weights a problem counts, for a message."""
    what = {"terms": "edges and loops"}.get(WEIGHED[name], WEIGHED[name])
    return f"those of {what}" if what else "none"


def asks_policy(name: str) -> bool:
    """Whether a policy answers the problem of that name, its own or another's. Raises CaseError."""
    return make_problem(name).dynamics != ""


def without_policy(name: str) -> str:
    """Why no policy is trained for one of UNTRAINED, and what would be right, in words."""
    if name in COVERING:
        return f"no policy is trained on families of sets ({name}): that of mds is asked; mds would be right"
    return f"no policy answers {name}: searches begin with plain heuristics; another problem would be right"


def make_problem(name: str) -> Problem:
    """The problem a case names. Raises CaseError for an unknown name."""
    if name not in PROBLEMS:
        raise CaseError(f"problem.name: unknown problem {name!r}; known: {', '.join(PROBLEMS)}")
    return PROBLEMS[name]()
