"""weights.npz: a policy's parameters, arrays without pickle, and a JSON manifest in the same file."""

import json
import os
import zipfile
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from app.comm.guard import digest
from app.config import PolicyCase
from app.errors import GraphError

FORMAT = 1
LARGEST = 1 << 30  # bytes of one file; a policy has a few thousand numbers
ARCHITECTURE = (
    "model", "features", "layers", "dimension", "head", "hidden", "shared_layers", "self_weight",
    "mean_degree", "edge_weights",
)  # fmt: skip


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
    manifest = {
        "format": FORMAT,
        "kind": "policy",
        "problem": problem,
        "policy": {key: getattr(policy, key) for key in ARCHITECTURE},
        "shapes": {name: list(array.shape) for name, array in sorted(arrays.items())},
        "digest": digest(arrays),
        "note": note,
    }
    text = np.frombuffer(json.dumps(manifest, indent=1).encode(), dtype=np.uint8)
    temporary = f"{path}.tmp"
    with open(temporary, "wb") as file:
        np.savez(file, **arrays, manifest=text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    return manifest["digest"]


def load_weights(path: str) -> SavedPolicy:
    """Read and verify weights.npz. Raises GraphError, one line, for anything that is not one."""
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(info.file_size for info in archive.infolist()) > LARGEST:
                raise GraphError(f"{path}: more than {LARGEST} bytes; a weights.npz of Lockstep is small")
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        manifest = json.loads(arrays.pop("manifest").tobytes())
        return _verify(path, arrays, manifest)
    except GraphError:
        raise
    except Exception as error:  # zip, npy, JSON and msgspec each have their own errors for damaged bytes
        raise GraphError(f"{path}: not a weights.npz of Lockstep ({type(error).__name__})") from None


def _verify(path: str, arrays: dict[str, np.ndarray], manifest: dict[str, Any]) -> SavedPolicy:
    if manifest["format"] > FORMAT:
        raise GraphError(f"{path}: written by a newer Lockstep (format {manifest['format']}, here {FORMAT})")
    if manifest["kind"] != "policy":
        raise GraphError(f"{path}: holds {manifest['kind']!r} weights, a policy is needed")
    if any(array.dtype != np.float32 or not np.isfinite(array).all() for array in arrays.values()):
        raise GraphError(f"{path}: holds numbers that are not finite float32")
    found = digest(arrays)
    if found != manifest["digest"]:
        raise GraphError(f"{path}: damaged: digest {found[:12]}, the manifest says {manifest['digest'][:12]}")
    policy = msgspec.convert(manifest["policy"], PolicyCase)
    return SavedPolicy(policy, manifest["problem"], arrays, found, str(manifest.get("note", "")))


def default_weights(problem: str) -> str:
    """Path of the weights that ship for a problem. Raises GraphError where none do."""
    path = os.path.join(os.path.dirname(__file__), "..", "weights", f"{problem}.npz")
    if not os.path.isfile(path):
        raise GraphError(
            f'no default weights for problem {problem!r}: set policy.weights="train" or to a file'
        )
    return os.path.normpath(path)
