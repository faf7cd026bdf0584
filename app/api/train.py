"""Policies from Python: trained by one call, by a loop of one's own, or as Gymnasium environments."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from mpi4py import MPI

from app.api.given import check_given, setting
from app.api.graph import loaded_graph, loses_directions
from app.api.loop import GraphAgent
from app.api.results import TrainedPolicy
from app.case.file import merged
from app.comm.guard import digest
from app.errors import CaseError
from app.graphs.formats.memory import has_node_weights
from app.partition.generated import with_shared_blocks
from app.partition.loaded import Loaded
from app.problems.table import UNTRAINED, WEIGHED, problem_of, without_policy
from app.rl.learner import Learner
from app.rl.learners import register_learner
from app.tasks.context import Context, context_of_settings
from app.tasks.train import learn, load_set, shared_blocks, warn_of_unseen, without_node_weights
from app.text import show
from app.threads import with_few_threads

BESIDE = "given beside graphs; one of them would be right"


@with_few_threads
def train(
    settings: dict[str, Any] | None = None, *, comm: MPI.Comm | None = None, verbose: bool = False
) -> TrainedPolicy:
    """Learn a policy on the graphs that the settings name.

    settings   keys of a case, as {"train.graphs.generator": "ba", "train.steps": 2000, "seed": 1}
    comm       default: MPI.COMM_WORLD; all its ranks call, the result is identical on all
    """
    return _trained(context_of_settings(merged({"run.task": "train"}, settings), comm, verbose))


class TrainingRun:
    """RL4GO's one-line interface (section 3): a problem, graphs and a learner; `run` is the loop of Alg. 1.

        policy = TrainingRun(problem="mvc", graphs={"generator": "ba", "nodes": [30, 50], "count": 50}).run()
        policy = TrainingRun(graphs=list_of_networkx_graphs, learner="ppo", train={"steps": 2000}).run()

    problem    as problem.name
    graphs     graphs as `solve` takes them, of which some are held back to judge the
               weights by (none where train={"held_back": {...}} names others); or the keys of [train.graphs]
    learner    as agent.learner, or a class of one's own (app/rl/learner.py) that has a `name`
    comm       default: MPI.COMM_WORLD; all its ranks run, the result is identical on all
    settings   further keys of the case: tables, as agent={"learning_rate": 1e-3}, and seed=1
    `agent()` makes an agent for a loop of one's own, Alg. 1 line by line.
    """

    def __init__(
        self,
        problem: str = "mvc",
        graphs: list[Any] | dict[str, Any] | None = None,
        learner: str | type[Learner] = "dqn",
        *,
        comm: MPI.Comm | None = None,
        verbose: bool = False,
        **settings: Any,
    ) -> None:
        if not isinstance(learner, str):
            if not isinstance(learner, type) or not isinstance(getattr(learner, "name", None), str):
                right = "a name, or a class that has one, would be right"
                raise CaseError(f"learner: found {show(learner)}; {right}")
            register_learner(learner.name, learner)
            learner = learner.name
        chosen = {"run.task": "train", "problem.name": problem, "agent.learner": learner}
        self.graphs = None if graphs is None or isinstance(graphs, dict) else _listed(graphs)
        if isinstance(graphs, dict):
            chosen["train.graphs"] = graphs
            if setting(settings, "train", "graphs") or any(
                key.startswith("train.graphs.") for key in settings
            ):
                raise CaseError(f"train.graphs: {BESIDE}")
        context = context_of_settings({**settings, **chosen}, comm, verbose, self.graphs is not None)
        if self.graphs is not None:
            check_given(context.group, {"graphs": str(len(self.graphs))})
            if context.case.train.graphs is not None:
                raise CaseError(f"train.graphs: {BESIDE}")
            for key in ("path", "generator"):
                if getattr(context.case.graph, key):
                    raise CaseError(f"graph.{key}: {BESIDE}")
        self.context = context

    @with_few_threads
    def run(self) -> TrainedPolicy:
        """Train. Ranks: all call."""
        if self.graphs is None:
            return _trained(self.context)
        return _trained(self.context, self._given)

    @with_few_threads
    def agent(self) -> GraphAgent:
        """An agent for a loop of one's own (app/api/loop.py), with all of the training graphs: none is held
        back. Ranks: all call."""
        context, case = self.context, self.context.case
        if self.graphs is None:
            graphs = load_set(context, case.train.graphs or case.graph, "training")
        else:
            graphs = shared_blocks(context, self._given(context))
        problem = problem_of(case)
        return GraphAgent(context, [context.state_rows(g, problem, case.policy.dimension) for g in graphs])

    def _given(self, context: Context) -> list[Loaded]:
        """The graphs in memory. Ranks: all call."""
        return _graphs_to_learn_from(context, self.graphs)


def gym_environment(
    graphs: list[Any], problem: str = "mvc", *, settings: dict[str, Any] | None = None, **options: Any
) -> Any:
    """A Gymnasium environment (app/rl/gym.py) on graphs as `solve` takes them, of one rank.

    settings   keys of a case that states depend on, as {"problem.component": 0.05} of dismantle
    options    shaping, penalty, most: see GraphGym
    """
    from app.rl.gym import GraphGym  # Gymnasium need not be installed

    asked = merged(settings, {"problem.name": problem, "run.device": "cpu"})
    context = context_of_settings(asked, MPI.COMM_SELF, False)
    if problem in UNTRAINED:
        raise CaseError(f"problem: {without_policy(problem)}")
    given = without_node_weights(context, _graphs_to_learn_from(context, _listed(graphs)))
    loaded = with_shared_blocks(context.group, given, None)
    made = problem_of(context.case)
    blocks = [context.state_rows(item, made) for item in loaded]
    return GraphGym(context.group, made, blocks, **options)


def _graphs_to_learn_from(context: Context, graphs: list[Any]) -> list[Loaded]:
    """Graphs as `solve` takes them, but for weights of nodes, which no policy sees. Ranks: all call."""
    counts = WEIGHED.get(context.case.problem.name, "")
    unseen = counts == "nodes" and not problem_of(context.case).sees_weights
    loaded = [loaded_graph(context, each, counts="" if unseen else counts)[0] for each in graphs]
    weighed = [item.graph.name for item, each in zip(loaded, graphs) if has_node_weights(each)]
    warn_of_unseen(context, weighed)
    if any(loses_directions(context, each) for each in graphs):
        said = f"{context.case.problem.name} is of edges without directions"
        context.warn(f"training graphs: {said}: those of a directed graph count both ways")
    return loaded


def _trained(context: Context, given: Callable[[Context], list[Loaded]] | None = None) -> TrainedPolicy:
    """What learning leaves. Ranks: all call."""
    training, _ = learn(context, context.grid(), given)
    case = context.case
    return TrainedPolicy(
        training.weights, case.policy, case.problem.name, training.records, digest(training.weights)
    )


def _listed(graphs: Any) -> list[Any]:
    """Graphs that are handed in as a list. Raises CaseError."""
    one = isinstance(graphs, str | type) or hasattr(graphs, "adj") or hasattr(graphs, "tocoo")
    if isinstance(graphs, np.ndarray):
        one = graphs.ndim != 3 and graphs.dtype != object  # of graphs, or of their matrices
    if one or not isinstance(graphs, Iterable):
        raise CaseError(f"graphs: found {type(graphs)}; a list of graphs would be right")
    return list(graphs)
