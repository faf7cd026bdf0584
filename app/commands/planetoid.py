"""python -m app planetoid: Planetoid's pickled files, read without running anything, to one archive."""

from app.errors import CaseError

HELP = """\
usage: python -m app planetoid FOLDER NAME OUT.npz

FOLDER/ind.NAME.* (Planetoid's pickles) to one archive of plain arrays with the published
split. They are read by an interpreter that knows no functions, so nothing in them is run.

  python -m app planetoid Downloads/planetoid/data cora cora.npz
"""


def planetoid(arguments: list[str]) -> str:
    """Convert; returns the line that says what was written."""
    if len(arguments) != 3:
        raise CaseError("planetoid: FOLDER NAME OUT.npz are needed; --help says more")
    from app.graphs.formats.planetoid import convert

    return convert(*arguments)
