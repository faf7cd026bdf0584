"""Names of problems: a new problem is one new file and one line here."""

from app.errors import CaseError
from app.problems.clique import MaximumClique
from app.problems.maxcut import MaxCut, MaxCutOnce
from app.problems.mds import MinimumDominatingSet
from app.problems.mis import MaximumIndependentSet
from app.problems.mvc import MinimumVertexCover
from app.problems.problem import Problem
from app.problems.tsp import TravellingSalesman

PROBLEMS = {
    "mvc": MinimumVertexCover,
    "mis": MaximumIndependentSet,
    "mds": MinimumDominatingSet,
    "clique": MaximumClique,
    "maxcut": MaxCut,
    "maxcut_once": MaxCutOnce,
    "tsp": TravellingSalesman,
}
# The weights that objectives count.
WEIGHED = {
    **dict.fromkeys(["mvc", "mis", "mds", "clique"], "nodes"),
    **dict.fromkeys(["maxcut", "maxcut_once", "tsp"], "edges"),
}


def make_problem(name: str) -> Problem:
    """The problem a case names. Raises CaseError for an unknown name."""
    if name not in PROBLEMS:
        raise CaseError(f"problem.name: unknown problem {name!r}; known: {', '.join(PROBLEMS)}")
    return PROBLEMS[name]()
