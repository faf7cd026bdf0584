"""Lockstep: graph optimisation and graph learning in lockstep on any number of MPI ranks.

From Python: `from app import solve, check, train, TrainingRun, classify, classify_edges, find_links, embed,
explain, forecast`, and of knowledge graphs `classify_relational, predict_links` (app/api/). Nothing heavy is
imported before one is asked for.
"""

from importlib import import_module
from typing import Any

MADE_IN = {
    "TrainingRun": "train",
    "check": "solve",
    "classify": "classify",
    "classify_edges": "edges",
    "classify_relational": "triples",
    "embed": "embed",
    "explain": "explain",
    "find_links": "links",
    "forecast": "forecast",
    "gym_environment": "train",
    "predict_links": "triples",
    "solve": "solve",
    "train": "train",
}  # name: file of app/api/
__all__ = list(MADE_IN)


def __getattr__(name: str) -> Any:
    if name in MADE_IN:
        import_module("app.lean").import_matrices()
        return getattr(import_module(f"app.api.{MADE_IN[name]}"), name)
    raise AttributeError(f"module 'app' has no attribute {name!r}")
