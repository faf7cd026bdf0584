"""Names of learners: a new way to learn is one new file and one line here."""

from typing import TYPE_CHECKING

from app.errors import CaseError
from app.tables import Table

if TYPE_CHECKING:
    from app.rl.learner import Learner

LEARNERS = Table(
    {
        "dqn": "app.rl.agent:Agent",
        "ppo": "app.rl.ppo:ProximalPolicy",
        "reinforce": "app.rl.reinforce:Reinforce",
    }
)
OWN = frozenset(LEARNERS)


def check_learner(name: str) -> None:
    """Refuse a learner that no case can name. Raises CaseError."""
    LEARNERS.check("agent.learner", "learner", name)


def find_learner(name: str) -> type["Learner"]:
    """The learner a case names. Raises CaseError for an unknown name."""
    check_learner(name)
    return LEARNERS[name]


def register_learner(name: str, kind: type["Learner"]) -> None:
    """Make agent.learner = `name` mean a learner of one's own, the latest of that name.

    Ranks   all call with the same class. Raises CaseError for the name of a learner of this program, and for
    a class that could never learn.
    """
    from app.rl.learner import Learner  # whoever registers one has loaded it

    for method in ("ready", "lessons"):
        if getattr(kind, method, None) is getattr(Learner, method):
            right = "one that overrides ready and lessons (docs/adding_a_learner.md) would be right"
            told = f"{kind.__name__} has no {method} of its own, so it would learn nothing"
            raise CaseError(f"agent.learner: {told}; {right}")
    if not name or (name in OWN and LEARNERS[name] is not kind):
        raise CaseError(f"agent.learner: {name!r} cannot be the name of another learner")
    LEARNERS[name] = kind
