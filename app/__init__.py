"""Lockstep: graph optimisation and graph learning in lockstep on any number of MPI ranks.

From Python: `from app import solve, check, train, TrainingRun, classify, classify_edges, find_links, embed`,
and of knowledge graphs `classify_relational, predict_links`. Nothing heavy is imported before one is asked
for.
"""

from typing import Any

__all__ = [
    "TrainingRun", "check", "classify", "classify_edges", "classify_relational", "embed",
    "find_links", "gym_environment", "predict_links", "solve", "train",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in ("classify_relational", "predict_links"):
        from app import api_triples

        return getattr(api_triples, name)
    if name == "embed":
        from app import api_embed

        return api_embed.embed
    if name == "find_links":
        from app import api_links

        return api_links.find_links
    if name == "classify_edges":
        from app import api_edges

        return api_edges.classify_edges
    if name == "classify":
        from app import api_classify

        return api_classify.classify
    if name in __all__:
        from app import api

        return getattr(api, name)
    raise AttributeError(f"module 'app' has no attribute {name!r}")
