"""The Python interface: train, solve and classify without case files, in notebooks, scripts, MPI programs."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from mpi4py import MPI

from app.casefile import build
from app.comm.guard import digest, raise_together
from app.config import PolicyCase
from app.gnn.metrics import Scores
from app.gnn.parameters import Parameters
from app.gnn.saved import SavedModel, save_model
from app.graphs.memory import stream_of_object
from app.graphs.node_memory import table_of_arrays
from app.graphs.readers import open_edges
from app.log import Log
from app.partition.load import Loaded, load_stream, with_shared_blocks
from app.partition.nodes import deal_node_table
from app.problems.table import make_problem
from app.rl.learner import Learner
from app.rl.learners import register_learner
from app.rl.qnet import QNetwork
from app.rl.weights import save_weights
from app.tasks.classify import classify_nodes, gather_predictions, saved_of
from app.tasks.context import Context, check_names, open_group
from app.tasks.policy import Policy, find_policy
from app.tasks.rollouts import all_ids
from app.tasks.solve import solve_graph, with_searches
from app.tasks.train import learn


@dataclass(frozen=True)
class Solution:
    """An answer, checked, with a bound; the fields are those of an instance in result.json.

    nodes   the chosen nodes, the nodes on side 1 of a cut, or all nodes in the order of a tour: the labels of
            a NetworkX graph, the ids of a file, or row numbers
    """

    nodes: list[Any]
    objective: float
    bound: float | None
    bound_method: str | None
    gap: float | None
    feasible: bool
    policy_evaluations: int
    seconds: float
    baselines: dict[str, float]
    optimal: bool
    source: str
    steps: int


@dataclass(frozen=True)
class TrainedPolicy:
    """Learned weights, host arrays by name, and how learning went (one record per evaluation)."""

    weights: dict[str, np.ndarray]
    policy: PolicyCase
    problem: str
    records: list[dict[str, float]]
    digest: str

    def save(self, path: str) -> None:
        """Write weights.npz, for `policy.weights=PATH` of a case or `solve(weights=PATH)`."""
        save_weights(path, self.weights, self.policy, self.problem, "trained from Python")


def train(
    settings: dict[str, Any] | None = None, *, comm: MPI.Comm | None = None, verbose: bool = False
) -> TrainedPolicy:
    """Learn a policy on the graphs that the settings name.

    settings   keys of a case, as {"train.graphs.generator": "ba", "train.steps": 2000, "seed": 1}
    comm       default: MPI.COMM_WORLD; all its ranks call, the result is identical on all
    """
    return _trained(_context({"run.task": "train", **(settings or {})}, comm, verbose))


class TrainingRun:
    """RL4GO's one-line interface (section 3): a problem, graphs and a learner; `run` is the loop of Alg. 1.

        policy = TrainingRun(problem="mvc", graphs={"generator": "ba", "nodes": [30, 50], "count": 50}).run()
        policy = TrainingRun(graphs=list_of_networkx_graphs, learner="ppo", train={"steps": 2000}).run()

    problem    as problem.name
    graphs     NetworkX graphs, SciPy matrices or names of files, of which some are held back to judge the
               weights by; or the keys of [train.graphs]
    learner    as agent.learner, or a class of one's own (app/rl/learner.py) that has a `name`
    comm       default: MPI.COMM_WORLD; all its ranks run, the result is identical on all
    settings   further keys of the case: tables, as agent={"learning_rate": 1e-3}, and seed=1
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
            register_learner(learner.name, learner)
            learner = learner.name
        chosen = {"run.task": "train", "problem.name": problem, "agent.learner": learner}
        self.graphs = None if graphs is None or isinstance(graphs, dict) else list(graphs)
        if isinstance(graphs, dict):
            chosen["train.graphs"] = graphs
        self.context = _context({**settings, **chosen}, comm, verbose, self.graphs is not None)

    def run(self) -> TrainedPolicy:
        """Train. Ranks: all call."""
        if self.graphs is None:
            return _trained(self.context)
        return _trained(self.context, lambda inner: [_loaded(inner, graph)[0] for graph in self.graphs])


def gym_environment(graphs: list[Any], problem: str = "mvc", **options: Any) -> Any:
    """A Gymnasium environment (app/rl/gym.py) on NetworkX graphs, SciPy matrices or files, of one rank.

    options   shaping, penalty, most: see GraphGym
    """
    from app.rl.gym import GraphGym  # Gymnasium need not be installed

    context = _context({"problem.name": problem, "run.device": "cpu"}, MPI.COMM_SELF, False)
    loaded = with_shared_blocks(context.group, [_loaded(context, graph)[0] for graph in graphs], None)
    blocks = [context.rows(item) for item in loaded]
    return GraphGym(context.group, make_problem(problem), blocks, **options)


def solve(
    graph: Any,
    *,
    weights: str | TrainedPolicy = "default",
    settings: dict[str, Any] | None = None,
    comm: MPI.Comm | None = None,
    verbose: bool = False,
) -> Solution:
    """Cover a graph, check the cover and bound it.

    graph      a NetworkX graph, a SciPy sparse matrix, or the name of a file (formats: docs/formats.md)
    weights    "default", a weights.npz, or what `train` returned
    settings   keys of a case, as {"select.rule": "fraction", "select.fraction": 0.01}
    comm       default: MPI.COMM_WORLD; all its ranks call with the same graph, all get the same answer
    """
    named = weights if isinstance(weights, str) else "default"
    context = _context({"policy.weights": named, **(settings or {})}, comm, verbose)
    context = replace(context, case=with_searches(context.case))
    loaded, labels = _loaded(context, graph)
    policy = find_policy(context) if isinstance(weights, str) else _installed(context, weights)
    problem = make_problem(context.case.problem.name)
    solved = solve_graph(context, problem, policy, loaded)
    nodes = solved.named(all_ids(context, loaded), labels)
    fields = {name: solved.entry[name] for name in Solution.__dataclass_fields__ if name != "nodes"}
    return Solution(nodes, **fields)


@dataclass(frozen=True)
class Classification:
    """What a graph network says of every node, and how it was trained.

    predicted   [n] classes, or [n, labels] bool where a node may have several, in the order of `nodes`
    nodes       the labels of a NetworkX graph, or row numbers
    scores      accuracy, micro and macro F1 by split, of labelled nodes
    """

    predicted: np.ndarray
    nodes: list[Any]
    scores: dict[str, Scores]
    epochs: int
    train_loss: float | None
    seconds: float
    digest: str
    records: list[dict[str, float]]
    model: SavedModel

    def save(self, path: str) -> None:
        """Write weights.npz, for `gnn.weights=PATH` of a case."""
        save_model(path, self.model, "trained from Python")


def classify(
    graph: Any,
    features: Any = None,
    labels: Any = None,
    *,
    train: Any = None,
    val: Any = None,
    test: Any = None,
    settings: dict[str, Any] | None = None,
    comm: MPI.Comm | None = None,
    verbose: bool = False,
) -> Classification:
    """Train a graph network on the nodes of a graph, full batch; or apply saved weights (gnn.weights).

    graph      a NetworkX graph, or a SciPy sparse matrix
    features   [n, F] numbers or a SciPy sparse matrix, rows in the order of the graph's nodes; None: one
               for every node of its own
    labels     [n] classes, -1 for none; or [n, C] of 0 and 1
    train, val, test   [n] bool, or node numbers
    settings   keys of a case, as {"gnn.model": "sage", "gnn.epochs": 100, "seed": 1}
    comm       default: MPI.COMM_WORLD; all its ranks call with the same arguments, all get the same answer
    """
    context = _context({"run.task": "classify", **(settings or {})}, comm, verbose)
    loaded, names = _loaded(context, graph)
    n = loaded.graph.n
    with raise_together(context.group, "reading the node data"):
        table = table_of_arrays(features, labels, train, val, test, n)
    data = deal_node_table(context.group, table if context.group.rank == 0 else None, loaded)
    done = classify_nodes(context, loaded, data)
    predicted = gather_predictions(context, loaded, done.classifier)
    if predicted.ndim == 1:
        predicted = done.classifier.data.class_ids[predicted]
    losses = [row["loss"] for row in done.fit.records]
    return Classification(
        predicted, list(range(n)) if names is None else names, done.scores, done.fit.epochs,
        losses[-1] if losses else None, done.seconds, done.digest, done.fit.records, saved_of(done),
    )  # fmt: skip


def _trained(context: Context, given: Callable[[Context], list[Loaded]] | None = None) -> TrainedPolicy:
    """What learning leaves. Ranks: all call."""
    training, _ = learn(context, context.grid(), given)
    case = context.case
    return TrainedPolicy(
        training.weights, case.policy, case.problem.name, training.records, digest(training.weights)
    )


def _loaded(context: Context, graph: Any) -> tuple[Loaded, list[Any] | None]:
    """A graph in memory or of a file on row partitions, and its node labels. Ranks: all call."""
    group, case = context.group, context.case
    source, labels = None, None
    with raise_together(group, "reading the graph"):
        if isinstance(graph, str):
            limit = int(case.memory.max_decompressed_gb * 1e9)
            source = open_edges(graph, case.graph.format, limit) if group.rank == 0 else None
        else:
            source, labels = stream_of_object(graph)
    return load_stream(group, source, case.graph, case), labels


def _installed(context: Context, trained: TrainedPolicy) -> Policy:
    """A trained policy on this group's device."""
    net = QNetwork(trained.policy, make_problem(trained.problem))
    params = Parameters(context.device, net.shapes())
    params.set(trained.weights)
    return Policy(net, params, "trained from Python", trained.digest)


def _context(
    settings: dict[str, Any], comm: MPI.Comm | None, verbose: bool, has_training: bool = False
) -> Context:
    """A context that writes nothing. Ranks: all call."""
    case = build(settings, has_training)
    check_names(case)
    group = open_group(comm or MPI.COMM_WORLD, case)
    return Context(case, group, Log(verbose and group.rank == 0, None, case.output.log_seconds), None)
