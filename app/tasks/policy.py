"""The policy of a run: trained first, shipped with the program, or read from a file."""

from dataclasses import dataclass

from app.comm.guard import check_same, raise_together
from app.errors import CaseError, GraphError
from app.gnn.parameters import Parameters
from app.problems.table import problem_of
from app.rl.qnet import QNetwork
from app.rl.weights import default_weights, load_weights, trained_for
from app.tasks.context import Context
from app.tasks.train import learn, save_training


@dataclass(frozen=True)
class Policy:
    """A network with parameters on the device, and where they come from; None where no policy answers."""

    net: QNetwork | None
    params: Parameters | None
    source: str
    digest: str


def find_policy(context: Context) -> Policy:
    """Train first, take the weights that ship, or read a file: as policy.weights says. Ranks: all call."""
    case = context.case
    problem, wanted = problem_of(case), case.policy.weights
    if not problem.dynamics:
        return Policy(None, None, "none is asked", "")
    if wanted == "train":
        training, _ = learn(context, context.grid())
        params = Parameters(context.device, training.net.shapes())
        params.set(training.weights)
        return Policy(training.net, params, "trained in this run", save_training(context, training))
    with raise_together(context.group, "reading the weights"):
        path = default_weights(case.problem.name) if wanted == "default" else wanted
        saved = load_weights(path)
        if trained_for(saved.problem) != trained_for(case.problem.name):
            raise CaseError(
                f"{path}: weights for problem {saved.problem!r}, the case has {case.problem.name!r}"
            )
        net = QNetwork(saved.policy, problem)
        expected = {name: tuple(shape) for name, shape in net.shapes().items()}
        if expected != {name: array.shape for name, array in saved.arrays.items()}:
            raise CaseError(f"{path}: its arrays do not fit the architecture its manifest states")
    check_same(context.group, saved.digest, f"the weights in {path}", GraphError)
    params = Parameters(context.device, net.shapes())
    params.set(saved.arrays)
    source = "weights shipped with Lockstep" if wanted == "default" else path
    return Policy(net, params, source, saved.digest)
