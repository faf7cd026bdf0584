"""Lockstep: graph optimisation and graph learning in lockstep on any number of MPI ranks.

From Python: `from app import solve, train, TrainingRun, classify`. Nothing heavy is imported before one is
asked for.
"""

from typing import Any

__all__ = ["TrainingRun", "classify", "gym_environment", "solve", "train"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from app import api

        return getattr(api, name)
    raise AttributeError(f"module 'app' has no attribute {name!r}")
