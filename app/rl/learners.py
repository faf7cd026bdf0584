"""Names of learners: a new way to learn is one new file and one line here."""

from app.errors import CaseError
from app.rl.agent import Agent
from app.rl.learner import Learner
from app.rl.ppo import ProximalPolicy
from app.rl.reinforce import Reinforce

LEARNERS: dict[str, type[Learner]] = {kind.name: kind for kind in (Agent, ProximalPolicy, Reinforce)}
OWN = frozenset(LEARNERS)


def find_learner(name: str) -> type[Learner]:
    """The learner a case names. Raises CaseError for an unknown name."""
    if name not in LEARNERS:
        raise CaseError(f"agent.learner: unknown learner {name!r}; known: {', '.join(LEARNERS)}")
    return LEARNERS[name]


def register_learner(name: str, kind: type[Learner]) -> None:
    """Make agent.learner = `name` mean a learner of one's own, the latest of that name.

    Ranks   all call with the same class. Raises CaseError for the name of a learner of this program, and for
    a class that could never learn.
    """
    for method in ("ready", "lessons"):
        if getattr(kind, method, None) is getattr(Learner, method):
            right = "one that overrides ready and lessons (docs/adding_a_learner.md) would be right"
            told = f"{kind.__name__} has no {method} of its own, so it would learn nothing"
            raise CaseError(f"agent.learner: {told}; {right}")
    if not name or (name in OWN and LEARNERS[name] is not kind):
        raise CaseError(f"agent.learner: {name!r} cannot be the name of another learner")
    LEARNERS[name] = kind
