"""Tools beside the main program: python -m app TOOL ARGUMENTS. What the program itself does is run.py's."""

import sys
from collections.abc import Callable
from importlib import import_module

from app.cli import say
from app.errors import LockstepError
from app.text import show
from app.threads import limit_threads

TOOLS = {
    "report": "one HTML page of one run or of several side by side",
    "convert": "a graph file to another format",
    "generate": "a random graph to a file",
    "keys": "the reference of all keys of a case file, as Markdown",
    "planetoid": "Planetoid's files to one archive of arrays",
}
USAGE = "usage: python -m app TOOL ARGUMENTS; python -m app TOOL --help says more\n\n" + "".join(
    f"  {name:<10} {about}\n" for name, about in TOOLS.items()
)


def main(arguments: list[str]) -> int:
    """Run one tool; returns the exit code: 0 done, 2 wrong input."""
    name, rest = (arguments[0], arguments[1:]) if arguments else ("", [])
    if name in ("--help", "-h"):
        say(USAGE.rstrip("\n"))
        return 0
    if name not in TOOLS:
        unknown = f"lockstep: error: unknown tool {show(name)}\n" if name else ""
        say(unknown + USAGE.rstrip("\n"), error=True)
        return 2
    tool = import_module(f"app.commands.{name}")
    if "--help" in rest or "-h" in rest:
        say(tool.HELP.rstrip("\n"))
        return 0
    return _say(lambda: getattr(tool, name)(rest))


def _say(work: Callable[[], str]) -> int:
    """Print what a tool did, or the one line that says why not."""
    try:
        limit_threads()
        say(work())
    except (LockstepError, OSError) as error:
        say(f"lockstep: error: {error}", error=True)
        return getattr(error, "exit_code", 2)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
