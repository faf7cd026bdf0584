"""Explanations from Python: what made single predictions of trained weights, of nodes, edges or graphs."""

import os
from contextlib import suppress
from numbers import Integral
from typing import Any

import numpy as np
from mpi4py import MPI

from app.api.classify import classify
from app.api.edges import classify_edges
from app.api.links import find_links
from app.errors import CaseError, GraphError
from app.gnn.explain.explanations import Explanations
from app.gnn.saved import load_model

PAIRED = ("edge", "link")  # levels whose predictions are of two nodes


def explain(
    graph: Any,
    nodes: Any,
    weights: Any,
    features: Any = None,
    labels: Any = None,
    *,
    test: Any = None,
    edge_features: Any = None,
    settings: dict[str, Any] | None = None,
    comm: MPI.Comm | None = None,
    verbose: bool = False,
) -> Explanations:
    """Which edges, features and neighbours made the predictions of some nodes of a graph, graphs of a set,
    edges or links.

    nodes      their labels, names or numbers, as `classify` returns them, of edges and links pairs of nodes;
               or how many of the test set, those that are wrong or least certain first
    weights    a weights.npz, or what `classify`, `classify_edges` or `find_links` returned
    graph, features, labels, test, edge_features, comm, verbose   as of these; labels tell which predictions
               are wrong
    settings   keys of a case, as of these
    Raises     CaseError, GraphError, one line each
    """
    many, level = isinstance(nodes, Integral), _level_of(weights)
    if not many and (isinstance(nodes, str) or not hasattr(nodes, "__iter__")):
        raise CaseError(f"nodes: found {nodes!r}; a list of nodes, or how many, would be right")
    pairs = level in PAIRED
    named = _plain(nodes) if many else [_pair(each) if pairs else _plain(each) for each in nodes]
    if not named:
        raise CaseError("nodes: there are none; at least one would be right")
    asked = {"gnn.epochs": 0, **(settings or {}), "output.explain": named}
    given = {"test": test, "weights": weights, "comm": comm, "verbose": verbose}
    if level == "link":
        if labels is not None or edge_features is not None:
            raise CaseError("labels, edge_features: links have none; leave them out")
        return find_links(graph, features, settings=asked, **given).explanations
    given |= {"edge_features": edge_features, "settings": {"gnn.baselines": False, **asked}}
    if level == "edge":
        return classify_edges(graph, labels, features, **given).explanations
    return classify(graph, features, labels, **given).explanations


def _level_of(weights: Any) -> str:
    """What weights say something of: "node", "edge", "link", ...; "node" where they will be refused."""
    model = getattr(weights, "model", weights)
    with suppress(GraphError):
        model = load_model(os.fspath(model)) if isinstance(model, str | os.PathLike) else model
    return getattr(getattr(model, "case", None), "level", "node")


def _pair(pair: Any) -> Any:
    """Both ends as a case has them; anything else as it is, which is refused."""
    return [_plain(end) for end in pair] if isinstance(pair, tuple | list | np.ndarray) else _plain(pair)


def _plain(node: Any) -> int | str:
    """A node as a case has it."""
    plain = node.item() if hasattr(node, "item") else node
    return plain if isinstance(plain, int | str) else str(plain)
