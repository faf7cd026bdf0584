"""weights.npz: a policy's parameters, arrays without pickle, and a JSON manifest in the same file."""

import os
from dataclasses import dataclass

import msgspec
import numpy as np

from app.case.policy import PolicyCase
from app.errors import GraphError
from app.gnn.archive import load_archive, refusing, save_archive

ARCHITECTURE = (
    "model", "features", "layers", "dimension", "head", "hidden", "shared_layers", "self_weight",
    "mean_degree", "hub_degree", "edge_weights",
)  # fmt: skip
ALIKE = {"qubo": "maxcut", "ising": "maxcut", "hitting_set": "set_cover"}


@dataclass(frozen=True)
class SavedPolicy:
    """A policy read back: its architecture, its problem, its arrays by name, and their digest."""

    policy: PolicyCase
    problem: str
    arrays: dict[str, np.ndarray]
    digest: str
    note: str


def save_weights(
    path: str, arrays: dict[str, np.ndarray], policy: PolicyCase, problem: str, note: str
) -> str:
    """Write weights.npz atomically; returns the digest of the arrays. Rank 0 only."""
    architecture = {key: getattr(policy, key) for key in ARCHITECTURE}
    return save_archive(path, arrays, "policy", {"problem": problem, "policy": architecture, "note": note})


def load_weights(path: str) -> SavedPolicy:
    """Read and verify weights.npz. Raises GraphError, one line, for anything that is not one."""
    arrays, manifest = load_archive(path, "policy")
    with refusing(path):
        policy = msgspec.convert(manifest["policy"], PolicyCase)
        note = str(manifest.get("note", ""))
        return SavedPolicy(policy, manifest["problem"], arrays, manifest["digest"], note)


def trained_for(problem: str) -> str:
    """The problem whose weights do for a problem, too: that of the same states."""
    return ALIKE.get(problem, problem)


def default_weights(problem: str) -> str:
    """Path of the weights that ship for a problem. Raises GraphError where none do."""
    path = os.path.join(os.path.dirname(__file__), "..", "weights", f"{trained_for(problem)}.npz")
    if not os.path.isfile(path):
        raise GraphError(
            f'no default weights for problem {problem!r}: set policy.weights="train" or to a file'
        )
    return os.path.normpath(path)
