"""Names of problems: a new problem is one new file and one line here."""

from app.errors import CaseError
from app.graphs.covering import COVERING
from app.graphs.quadratic import QUADRATIC
from app.problems.clique import MaximumClique
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
    "maxcut": MaxCut,
    "maxcut_once": MaxCutOnce,
    "qubo": Qubo,
    "ising": Ising,
    "set_cover": SetCover,
    "hitting_set": HittingSet,
    "tsp": TravellingSalesman,
}
# The weights that objectives count; terms: of edges and of loops.
WEIGHED = {
    **dict.fromkeys(["mvc", "mis", "mds", "clique", *COVERING], "nodes"),
    **dict.fromkeys(["maxcut", "maxcut_once", "tsp"], "edges"),
    **dict.fromkeys(QUADRATIC, "terms"),
}


def counted_by(name: str) -> str:
    """What has the weights that a problem counts, for a message."""
    return {"terms": "edges and loops"}.get(WEIGHED[name], WEIGHED[name])


def make_problem(name: str) -> Problem:
    """The problem a case names. Raises CaseError for an unknown name."""
    if name not in PROBLEMS:
        raise CaseError(f"problem.name: unknown problem {name!r}; known: {', '.join(PROBLEMS)}")
    return PROBLEMS[name]()
