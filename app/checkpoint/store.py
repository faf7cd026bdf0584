"""Checkpoints on disk: written whole or not at all, verified before use, the newest few kept.

    checkpoint/step-000120/state.npz        arrays, and their JSON as one of them
    checkpoint/step-000120/manifest.json    what it belongs to; size and sha256 of state.npz; its own sha256
    checkpoint/LATEST                       the name of the newest one, for people

A checkpoint is written in step-000120.tmp-PID and renamed when it is on the disk; whatever a crash leaves is
either not there or found out. No pickle; sizes are checked before anything is read.
"""

import contextlib
import hashlib
import io
import json
import os
import re
import shutil
import zipfile
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np

from app.case.config import VERSION
from app.errors import CaseError
from app.watchdog import beat

FORMAT = 1
FOLDER, LATEST, STATE, MANIFEST = "checkpoint", "LATEST", "state.npz", "manifest.json"
NAME = re.compile(r"step-(\d{6,15})")
LARGEST_MANIFEST = 1 << 24  # bytes
VALUES = "values"  # the array that holds the JSON
PIECE = 1 << 22
FIELDS = {
    "format": int, "lockstep": str, "step": int, "stage": str, "loop_step": int, "base": int, "kept": list,
    "counters": dict, "ranks": int, "versions": dict, "case": dict, "inputs": dict, "log": dict,
    "files": dict,
}  # fmt: skip


@dataclass
class State:
    """Part of a run: numbers and text as JSON, host arrays by name."""

    values: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)


@dataclass(frozen=True)
class Saved:
    """A checkpoint that was read and verified."""

    name: str
    manifest: dict[str, Any]
    parts: dict[str, State]


class Damaged(Exception):
    """Why a checkpoint cannot be used."""


class Newer(Damaged):
    """It was written by a later version of this program."""


def name_of(number: int) -> str:
    """step-000120 of 120."""
    return f"step-{number:06d}"


def listed(folder: str) -> list[int]:
    """The numbers of the checkpoints in a folder, newest first."""
    try:
        found = [NAME.fullmatch(name) for name in os.listdir(folder)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted((int(each[1]) for each in found if each), reverse=True)


# ---- writing ----------------------------------------------------------------------------------------------


def write(folder: str, number: int, parts: dict[str, State], about: dict[str, Any], keep: int) -> str:
    """Write a checkpoint, then remove all but the newest `keep`; returns its path. Raises OSError.

    about   what the manifest says besides the format, the step and the files
    After an error the checkpoints are those of before.
    """
    os.makedirs(folder, exist_ok=True)
    final = os.path.join(folder, name_of(number))
    temporary = f"{final}.tmp-{os.getpid()}"
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        os.mkdir(temporary)
        state = os.path.join(temporary, STATE)
        _write_file(state, lambda file: _write_parts(file, parts))
        body = {
            "format": FORMAT, "lockstep": VERSION, "step": number, **about,
            "files": {STATE: {"bytes": os.path.getsize(state), "sha256": file_digest(state)}},
        }  # fmt: skip
        _write_file(os.path.join(temporary, MANIFEST), lambda file: file.write(manifest_text(body).encode()))
        _sync_folder(temporary)
        if os.path.isdir(final):  # a damaged one: a valid one would have been resumed from
            shutil.rmtree(final)
        os.rename(temporary, final)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    _sync_folder(folder)
    _point_to(folder, name_of(number))
    _remove_old(folder, number, keep)
    return final


def clean(folder: str) -> None:
    """Remove what writes that were cut off have left."""
    for name in os.listdir(folder) if os.path.isdir(folder) else ():
        path = os.path.join(folder, name)
        if ".tmp" in name and name.startswith(("step-", LATEST)) and not os.path.islink(path):
            shutil.rmtree(path, ignore_errors=True) if os.path.isdir(path) else os.remove(path)


def remove_all(folder: str) -> None:
    """Remove the checkpoints of a folder, and the folder where nothing else is in it."""
    clean(folder)
    for number in listed(folder):
        shutil.rmtree(os.path.join(folder, name_of(number)))
    if os.path.isfile(os.path.join(folder, LATEST)):
        os.remove(os.path.join(folder, LATEST))
    if os.path.isdir(folder) and not os.listdir(folder):
        os.rmdir(folder)


def manifest_text(body: dict[str, Any]) -> str:
    """The manifest as it stands on the disk, of any format: its last key is the sha256 of the others."""
    own = hashlib.sha256(json.dumps(body, indent=1).encode()).hexdigest()
    return json.dumps({**body, "sha256": own}, indent=1) + "\n"


def file_digest(path: str) -> str:
    """sha256 of a file."""
    sha = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(PIECE):
            sha.update(piece)
            beat()
    return sha.hexdigest()


def _write_parts(file: BinaryIO, parts: dict[str, State]) -> None:
    """An uncompressed .npz of all arrays, as KEY/NAME, and of the JSON that says which part has which."""
    said = {key: {"values": each.values, "arrays": sorted(each.arrays)} for key, each in parts.items()}
    text = np.frombuffer(json.dumps(said, default=_plain).encode(), dtype=np.uint8)
    arrays = {f"{key}/{name}": each.arrays[name] for key, each in parts.items() for name in each.arrays}
    np.savez(file, **arrays, **{VALUES: text})


def _plain(value: Any) -> Any:
    """A NumPy number as Python's own."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"not JSON: {type(value).__name__}")


def _write_file(path: str, write: Any) -> None:
    with open(path, "wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(path: str) -> None:
    """Bring the names in a folder to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _point_to(folder: str, name: str) -> None:
    temporary = os.path.join(folder, f"{LATEST}.tmp-{os.getpid()}")
    _write_file(temporary, lambda file: file.write(f"{name}\n".encode()))
    os.replace(temporary, os.path.join(folder, LATEST))


def _remove_old(folder: str, newest: int, keep: int) -> None:
    """Remove all but `keep`; each vanishes at once under its name. Later ones are damaged or of no use."""
    older = [number for number in listed(folder) if number <= newest]
    later = [number for number in listed(folder) if number > newest]
    for number in [*later, *older[keep:]]:
        path = os.path.join(folder, name_of(number))
        doomed = f"{path}.tmp-{os.getpid()}"
        with contextlib.suppress(OSError):
            os.rename(path, doomed)
        shutil.rmtree(doomed, ignore_errors=True)


# ---- reading ----------------------------------------------------------------------------------------------


def newest(folder: str) -> tuple[Saved | None, list[str]]:
    """The newest valid checkpoint of a folder, and why each newer one was passed over.

    Raises CaseError for one that a newer version wrote.
    """
    skipped = []
    for number in listed(folder):
        path = os.path.join(folder, name_of(number))
        try:
            return read(path), skipped
        except Newer as error:
            raise CaseError(f"{path}: {error}") from None
        except (Damaged, OSError) as error:
            skipped.append(f"{name_of(number)}: {error}")
    return None, skipped


def read(path: str) -> Saved:
    """A checkpoint, verified. Raises Damaged, or OSError."""
    manifest = read_manifest(os.path.join(path, MANIFEST))
    if set(manifest["files"]) != {STATE}:
        raise Damaged(f"{MANIFEST}: lists other files than {STATE}")
    wanted, state = manifest["files"][STATE], os.path.join(path, STATE)
    size = os.path.getsize(state) if os.path.isfile(state) else None
    if size != wanted["bytes"]:
        raise Damaged(f"{STATE}: {'missing' if size is None else f'{size} bytes'}, not {wanted['bytes']}")
    if file_digest(state) != wanted["sha256"]:
        raise Damaged(f"{STATE}: its sha256 is not the one in {MANIFEST}")
    return Saved(os.path.basename(path), manifest, _read_parts(state))


def read_manifest(path: str) -> dict[str, Any]:
    """A manifest whose sha256 is right. Raises Damaged."""
    if not os.path.isfile(path):
        raise Damaged(f"{MANIFEST}: missing")
    with open(path, "rb") as file:
        data = file.read(LARGEST_MANIFEST + 1)
    try:
        body = json.loads(data)
        body.pop("sha256")
        if manifest_text(body).encode() != data:
            raise Damaged(f"{MANIFEST}: damaged, its sha256 is not that of its text")
        if body["format"] > FORMAT:
            raise Newer(f"written by a newer Lockstep ({body['lockstep']}, format {body['format']})")
        if {name: type(each) for name, each in body.items()} != FIELDS:
            raise Damaged(f"{MANIFEST}: has other fields than {', '.join(FIELDS)}")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Damaged(f"{MANIFEST}: damaged ({type(error).__name__})") from None
    return body


def _read_parts(path: str) -> dict[str, State]:
    """The arrays of state.npz, part by part. Raises Damaged."""
    try:
        with zipfile.ZipFile(path) as archive:
            arrays = {info.filename[:-4]: _read_array(archive, info) for info in archive.infolist()}
        said = json.loads(arrays[VALUES].tobytes())
        return {
            key: State(each["values"], {name: arrays[f"{key}/{name}"] for name in each["arrays"]})
            for key, each in said.items()
        }
    except Damaged:
        raise
    except (
        Exception
    ) as error:  # zip, npy and JSON each have their own errors for bytes that are none of theirs
        raise Damaged(f"{STATE}: damaged ({type(error).__name__})") from None


def _read_array(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    """One array, whose header must state the bytes that are there."""
    if info.compress_type != zipfile.ZIP_STORED or not info.filename.endswith(".npy"):
        raise Damaged(f"{STATE}: holds something else than stored arrays")
    data = io.BytesIO(archive.read(info))
    version = np.lib.format.read_magic(data)
    header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = header(data)
    count = 1
    for extent in shape:
        count *= extent
    rest = data.getbuffer()[data.tell() :]
    if dtype.kind not in "biuf" or count * dtype.itemsize != len(rest):
        raise Damaged(f"{STATE}: the header of an array does not fit its bytes")
    return np.frombuffer(rest, dtype=dtype).reshape(shape, order="F" if fortran else "C").copy()
