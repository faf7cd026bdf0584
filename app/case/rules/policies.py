"""Rules of policies, their training and their agents."""

from collections.abc import Iterator

from app.case.check import where
from app.case.config import Case
from app.case.places import Places
from app.case.policy import PolicyCase
from app.case.rules.graphs import trains
from app.case.rules.mistake import Mistake, changed
from app.text import show

# Keys of [search] that are of reductions, starts and local searches, which the policy alone has none of.
# Steps, a budget that every solve may have, are told in the log instead.
OF_SEARCHES = (
    "starts", "sweeps", "reductions", "reduction_steps", "start_looks", "row_rounds",
    "row_evaluations", "row_fraction", "row_sweeps", "row_exchanges", "row_regions", "peel_fraction", "peels",
    "moves_at_once",
)  # fmt: skip
LEAST_HUB = 0.01  # of policy.hub_degree: sums are divided by the degree over it


def training_and_hubs(case: Case) -> Iterator[Mistake]:
    """Graphs held back from a training, and policy.hub_degree."""
    held_back, hub = case.train.held_back, case.policy.hub_degree
    if held_back is not None and not trains(case):
        right = 'run.task = "train", or policy.weights = "train", reads it: leave it out'
        yield ("train", "held_back"), right
    elif held_back is not None and not (held_back.path or held_back.generator):
        yield ("train", "held_back"), "needs graphs: set its path or generator"
    if 0 < hub < LEAST_HUB:
        yield ("policy", "hub_degree"), f"must be 0 or at least {LEAST_HUB}, got {hub}"


def policy_conflicts(case: Case, places: Places) -> Iterator[str]:
    """Keys of [policy] that the task would not use."""
    policy, task = case.policy, case.run.task
    if task == "train" and policy.weights not in ("", "default", "train"):
        found = f"leave it out, got {show(policy.weights)}"
        yield f'{where(("policy", "weights"), places)}: is not read by run.task = "train": {found}'
    if task == "solve" and policy.weights not in ("", "train"):
        names = (each for each in PolicyCase.__struct_fields__ if each != "weights")
        if unused := list(changed(policy, names)):
            keys = ", ".join(where(("policy", each), places) for each in unused)
            right = 'leave out, or set policy.weights = "train"'
            yield f"{keys}: the architecture comes from the weights {show(policy.weights)}: {right}"


def policy_alone(case: Case) -> Iterator[Mistake]:
    """What a policy without the solver cannot do."""
    if case.run.task != "solve" or case.search.solver != "policy":
        return
    right = 'search.solver = "full" would be right'
    for key in ("inside", "outside"):
        if getattr(case.search, key):
            more = f"the policy alone holds to no fixed nodes; {right}, with search.steps = 0 for no search"
            yield ("search", key), more
    for key in changed(case.search, ("start",)):
        yield ("search", key), f"the policy alone begins with no solution; {right}"
    for key in changed(case.search, OF_SEARCHES):
        yield ("search", key), f"the policy alone does not read it: leave it out, or {right}"


def agent(case: Case) -> Iterator[Mistake]:
    """Bounds of one key of [agent] by another."""
    agent = case.agent
    if agent.epsilon_end > agent.epsilon_start:
        right = f"must be at most agent.epsilon_start = {agent.epsilon_start}"
        yield ("agent", "epsilon_end"), f"{right}, got {agent.epsilon_end}"
    if agent.warmup > agent.replay_capacity:
        right = f"must be at most agent.replay_capacity = {agent.replay_capacity}"
        yield ("agent", "warmup"), f"{right}, got {agent.warmup}"
