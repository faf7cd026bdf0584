"""python -m app keys: the reference of all keys of a case file, which is docs/cases.md."""

from app.case.text import keys_markdown
from app.errors import CaseError

HELP = """\
usage: python -m app keys

Prints the reference of all keys of a case file as Markdown, from the structs of app/case/:
python -m app keys > docs/cases.md"""


def keys(arguments: list[str]) -> str:
    """The reference. Raises CaseError where there are arguments."""
    if arguments:
        raise CaseError("keys: takes no arguments; --help says more")
    return keys_markdown().rstrip("\n")
