"""weights.npz: parameters as arrays without pickle, and a JSON manifest in the same file."""

import json
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from app.comm.guard import digest
from app.errors import GraphError
from app.files import packed_as_numpy_packs, placed
from app.graphs.formats.source import shown

FORMAT = 1
MOST_WEIGHTS = 1 << 28  # numbers in one file
LARGEST = 4 * MOST_WEIGHTS + (1 << 24)  # bytes of one file, unpacked
KINDS = {
    "policy": "a policy",
    "gnn": "a graph network",
    "rgcn": "a relational network",
    "forecast": "a forecaster",
}


def save_archive(path: str, arrays: dict[str, np.ndarray], kind: str, about: dict[str, Any]) -> str:
    """Write the arrays and a manifest atomically; returns their digest. Rank 0 only.

    Equal arrays are equal files: a checkpoint has them in another order than a model that was just made.

    about   what the manifest says besides format, kind, shapes and digest
    """
    manifest = {
        "format": FORMAT,
        "kind": kind,
        **about,
        "shapes": {name: list(array.shape) for name, array in sorted(arrays.items())},
        "digest": digest(arrays),
    }
    text = np.frombuffer(json.dumps(manifest, indent=1).encode(), dtype=np.uint8)
    with placed(path) as file:
        np.savez(file, **dict(sorted(arrays.items())), manifest=text)
    return manifest["digest"]


def load_archive(path: str, kind: str) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays of a weights.npz and its manifest, verified. Raises GraphError, one line, otherwise."""
    with refusing(path):
        with zipfile.ZipFile(path) as archive:
            if sum(info.file_size for info in archive.infolist()) > LARGEST:
                raise GraphError(f"{path}: more than {LARGEST} bytes; a weights.npz of Lockstep is small")
            if not packed_as_numpy_packs(archive):
                raise GraphError(f"{path}: packed in another way than a weights.npz of Lockstep")
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        manifest = json.loads(arrays.pop("manifest").tobytes())
        _verify(path, arrays, manifest, kind)
    return arrays, manifest


def replaced(table: str, given: Any, taken: Any) -> str:
    """The keys of a table that a case sets and weights have otherwise, as they have them; "" where none is.

    given, taken   the table as a case has it, and with the architecture of weights
    At its default, as in a written case, a key asks for nothing.
    """
    default, found = type(given)(), []
    for key in given.__struct_fields__:
        mine, theirs = getattr(given, key), getattr(taken, key)
        if mine not in (theirs, getattr(default, key)):
            found.append(f"{table}.{key} = {theirs} (not {mine})")
    return ", ".join(found)


@contextmanager
def refusing(path: str) -> Iterator[None]:
    """Turn whatever a damaged file makes its readers raise into a GraphError."""
    try:
        yield
    except GraphError:
        raise
    except FileNotFoundError:
        raise GraphError(f"{path}: no such file; the path of a weights.npz would be right") from None
    except Exception as error:  # zip, npy, JSON and msgspec each have their own errors for damaged bytes
        raise GraphError(f"{path}: not a weights.npz of Lockstep ({type(error).__name__})") from None


def _verify(path: str, arrays: dict[str, np.ndarray], manifest: dict[str, Any], kind: str) -> None:
    if manifest["format"] > FORMAT:
        raise GraphError(f"{path}: written by a newer Lockstep (format {manifest['format']}, here {FORMAT})")
    if manifest["kind"] != kind:
        found = shown(str(manifest["kind"]))
        raise GraphError(f"{path}: holds '{found}' weights, {KINDS[kind]} is needed")
    if any(array.dtype != np.float32 or not np.isfinite(array).all() for array in arrays.values()):
        raise GraphError(f"{path}: holds numbers that are not finite float32")
    found = digest(arrays)
    if found != manifest["digest"]:
        raise GraphError(f"{path}: damaged: digest {found[:12]}, the manifest says {manifest['digest'][:12]}")


def arrays_of(members: Sequence[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """The weights of all members under names of their own: "1/NAME" is of the second."""
    return {f"{i}/{name}" if i else name: a for i, each in enumerate(members) for name, a in each.items()}


def members_of(arrays: dict[str, np.ndarray], count: int) -> list[dict[str, np.ndarray]]:
    """What `arrays_of` was given. Raises ValueError for names of more members."""
    found: list[dict[str, np.ndarray]] = [{} for _ in range(count)]
    for name, array in arrays.items():
        number, _, own = name.rpartition("/")
        found[["", *map(str, range(1, count))].index(number)][own] = array
    return found
