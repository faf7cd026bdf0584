"""HTML and SVG as text that cannot be broken by what it shows: whatever is not Markup already is escaped."""

import html
from collections.abc import Iterable, Sequence

from app.text import printable

VOID = frozenset({"meta", "link", "br", "hr", "img", "line", "rect", "circle", "path", "polyline"})


class Markup(str):
    """Text that is HTML already: made by `tag` and `join`, never from the content of a file."""

    __slots__ = ()


def escape(value: object) -> Markup:
    """A value as HTML: Markup as it is, None as nothing, all else in printable ASCII, its signs escaped."""
    if isinstance(value, Markup):
        return value
    if value is None:
        return Markup("")
    return Markup(html.escape("\n".join(printable(line) for line in str(value).split("\n")), quote=True))


def join(parts: Iterable[object], between: str = "") -> Markup:
    """Parts one after the other."""
    return Markup(between.join(escape(part) for part in parts))


def tag(name: str, /, *content: object, **attributes: object) -> Markup:
    """One element.

    attributes   None is left out; `class_` is class, other underscores become hyphens
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in VOID and not content:
        return Markup(
            f"<{name}{written}/>" if name not in ("meta", "link", "br", "hr") else f"<{name}{written}>"
        )
    return Markup(f"<{name}{written}>{join(content)}</{name}>")


def table(head: Sequence[object], rows: Iterable[Sequence[object]], caption: str = "") -> Markup:
    """A table with a line of heads; the first cell of each row heads it, numbers stand on the right.

    rows   cells: text, Markup or None; the right-hand ones are those that `is_number` says are numbers
    """
    lines = [list(row) for row in rows]
    right = [
        all(is_number(row[c]) for row in lines if row[c] not in (None, "", "-")) for c in range(len(head))
    ]
    heads = (tag("th", cell, scope="col", class_="n" if right[c] else None) for c, cell in enumerate(head))
    body = (tag("tr", *(_cell(c, cell, right[c]) for c, cell in enumerate(row))) for row in lines)
    return tag(
        "div",
        tag(
            "table",
            tag("caption", caption) if caption else "",
            tag("thead", tag("tr", *heads)),
            tag("tbody", *body),
        ),
        class_="wide",
    )


def _cell(column: int, cell: object, right: bool) -> Markup:
    """A cell; the first one heads its row."""
    if column == 0:
        short = len(str(cell)) < 28
        return tag("th", cell, scope="row", class_="n" if right else "short" if short else None)
    word = len(str(cell)) < 28 and " " not in str(cell)
    return tag("td", "-" if cell is None else cell, class_="n" if right else "short" if word else None)


def is_number(text: object) -> bool:
    """True for text that begins as a number does."""
    return str(text).removeprefix("<b>").lstrip("+-")[:1].isdigit()
