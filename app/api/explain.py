"""Explanations from Python: what made the predictions of trained weights for single nodes or graphs."""

from numbers import Integral
from typing import Any

from mpi4py import MPI

from app.api.classify import classify
from app.errors import CaseError
from app.gnn.explain.explanations import Explanations


def explain(
    graph: Any,
    nodes: Any,
    weights: Any,
    features: Any = None,
    labels: Any = None,
    *,
    test: Any = None,
    settings: dict[str, Any] | None = None,
    comm: MPI.Comm | None = None,
    verbose: bool = False,
) -> Explanations:
    """Which edges, features and neighbours made the predictions of some nodes of a graph, or graphs of a set.

    nodes      their labels, names or numbers, as `classify` returns them; or how many of the test set, those
               that are wrong or least certain first
    weights    a weights.npz, or what `classify` returned
    graph, features, labels, test, comm, verbose   as of `classify`; labels tell which predictions are wrong
    settings   keys of a case, as of `classify`
    Raises     CaseError, GraphError, one line each
    """
    many = isinstance(nodes, Integral)
    if not many and (isinstance(nodes, str) or not hasattr(nodes, "__iter__")):
        raise CaseError(f"nodes: found {nodes!r}; a list of nodes, or how many, would be right")
    named = _plain(nodes) if many else [_plain(each) for each in nodes]
    if not named:
        raise CaseError("nodes: there are none; at least one would be right")
    asked = {"gnn.epochs": 0, "gnn.baselines": False, **(settings or {}), "output.explain": named}
    given = {"test": test, "weights": weights, "settings": asked, "comm": comm, "verbose": verbose}
    return classify(graph, features, labels, **given).explanations


def _plain(node: Any) -> int | str:
    """A node as a case has it."""
    plain = node.item() if hasattr(node, "item") else node
    return plain if isinstance(plain, int | str) else str(plain)
