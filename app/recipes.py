"""Named settings of policy and agent: the one that works, the paper's own, and steps from that to this."""

from msgspec.structs import replace

from app.case.policy import AgentCase, PolicyCase
from app.errors import CaseError

# RL4GO section 7.1: epsilon .9 -> .1, Adam 1e-4, replay 50,000, discount .9, L=2, K=16. The batch of Fig. 3
# is not stated; section 7.3 uses 4, 16 and 96.
PAPER_POLICY = PolicyCase(
    features="paper", head="separate", hidden=16, shared_layers=True, self_weight=False, mean_degree=False,
    edge_weights=True,
)  # fmt: skip
PAPER_AGENT = AgentCase(learning_rate=1e-4, discount=0.9, target_every=1, shaping="none")

RECIPES: dict[str, tuple[PolicyCase, AgentCase]] = {
    "default": (PolicyCase(), AgentCase()),
    "paper": (PAPER_POLICY, PAPER_AGENT),
    "paper_target": (PAPER_POLICY, replace(PAPER_AGENT, target_every=200)),
    "paper_shaping": (PAPER_POLICY, replace(PAPER_AGENT, target_every=200, shaping=AgentCase().shaping)),
    "paper_features": (PolicyCase(), replace(PAPER_AGENT, target_every=200)),
    "paper_policy": (PAPER_POLICY, AgentCase()),
}


def find_recipe(name: str) -> tuple[PolicyCase, AgentCase]:
    """The settings a case names. Raises CaseError for an unknown name."""
    if name not in RECIPES:
        raise CaseError(f"study.recipes: unknown recipe {name!r}; known: {', '.join(RECIPES)}")
    return RECIPES[name]
