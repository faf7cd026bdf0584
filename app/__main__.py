"""Small tools: python -m app TOOL ARGUMENTS. What the program itself does is run.py's."""

import sys
from collections.abc import Callable

from app.errors import LockstepError
from app.text import printable

USAGE = """\
usage: python -m app planetoid FOLDER NAME OUT.npz
    FOLDER/ind.NAME.* (Planetoid's pickles, read without running anything) to one archive of arrays
       python -m app keys
    the reference of all keys of a case file, as Markdown (docs/cases.md)"""


def main(arguments: list[str]) -> int:
    """Run one tool; returns the exit code."""
    match arguments:
        case ["planetoid", folder, name, out]:
            from app.graphs.planetoid import convert

            return _say(lambda: convert(folder, name, out))
        case ["keys"]:
            from app.casetext import keys_markdown

            print(keys_markdown(), end="")
            return 0
    print(USAGE, file=sys.stderr)
    return 2


def _say(work: Callable[[], str]) -> int:
    """Print what a tool did, or the one line that says why not."""
    try:
        print(printable(work()))
    except (LockstepError, OSError) as error:
        print(printable(f"lockstep: error: {error}"), file=sys.stderr)
        return getattr(error, "exit_code", 2)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
