"""The public graph collection for tests: the folder that LOCKSTEP_DATA names, and its catalogue."""

import os
import tomllib
from pathlib import Path

import pytest


def data_dir():
    """The folder of the collection as a Path, or None where LOCKSTEP_DATA is unset or names no folder."""
    folder = Path(os.environ.get("LOCKSTEP_DATA") or "/nonexistent")
    return folder if (folder / "catalogue.toml").is_file() else None


def catalogue():
    """The entries [dict] of catalogue.toml; empty without the collection."""
    if data_dir() is None:
        return []
    return tomllib.loads((data_dir() / "catalogue.toml").read_text())["file"]


needs_data = pytest.mark.skipif(
    data_dir() is None, reason="LOCKSTEP_DATA does not name a folder with a catalogue.toml"
)
