"""Rules of policies, their training and their agents."""

from collections.abc import Iterator

from app.case.check import where
from app.case.config import Case
from app.case.places import Places
from app.case.policy import AgentCase, PolicyCase
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
# Keys of [agent] that some learners alone read.
BY_LEARNER: dict[str, tuple[str, ...]] = {
    "dqn": (
        "n_step", "batch", "gradient_steps", "train_every", "replay", "replay_capacity", "warmup", "double",
        "target_every", "epsilon_start", "epsilon_end", "epsilon_decay_steps", "loss",
    ),
    "ppo": ("batch", "rollout_steps", "epochs_per_batch", "clip", "gae_lambda", "value_weight", "entropy"),
    "reinforce": ("entropy", "rollouts", "rollout_graphs"),
}  # fmt: skip
OF_AGENTS = ("scaling", "strong_scaling", "learners", "progress")  # studies of what an agent does
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


def unread_by_learners(case: Case) -> Iterator[Mistake]:
    """Keys of [agent] that are of another learner than the case's. One from elsewhere may read any."""
    learners = _learners(case)
    if not learners or not learners <= BY_LEARNER.keys():
        return
    read = {key for each in learners for key in BY_LEARNER[each]}
    of_some = sorted({key for keys in BY_LEARNER.values() for key in keys} - read)
    for key in changed(case.agent, of_some):
        right = " or ".join(show(each) for each, keys in BY_LEARNER.items() if key in keys)
        found = " and ".join(map(show, sorted(learners)))
        yield ("agent", key), f"is read by agent.learner = {right}, got {found}; leave it out"


def _learners(case: Case) -> set[str]:
    """The learners of a case that trains policies; none where it has none, or variants may name others."""
    if trains(case):
        return {case.agent.learner}
    if case.run.task != "study" or case.study.kind not in ("learners", "progress"):
        return set()
    texts = case.study.variants if case.study.kind == "progress" else case.study.settings
    if any("agent.learner=" in text for text in texts):
        return set()
    return set(case.study.learners) if case.study.kind == "learners" else {case.agent.learner}


def unread_by_tasks(case: Case) -> Iterator[Mistake]:
    """Keys of [agent] where no policy is trained, or by agents of the study's own.

    A solve by given weights may have tables of their training, as the case that has trained them: the log
    names them (unread_tables of tasks/solve.py).
    """
    task, kind = case.run.task, case.study.kind
    if task in ("train", "solve") or (task == "study" and kind in OF_AGENTS):
        return
    right = 'is read by run.task = "train", and by "solve" with policy.weights = "train"'
    if (task, kind) == ("study", "quality"):
        right = 'is not read by study.kind = "quality", which takes those of study.recipes'
    for key in changed(case.agent, AgentCase.__struct_fields__):
        yield ("agent", key), f"{right}; leave it out"
