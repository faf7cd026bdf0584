"""Charts as inline SVG: lines and steps over two axes, and bars of parts. Drawn with shapes and text alone.

Colours are classes (c0..c7), so that the page's style can follow a dark or a light screen.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.page.axis import Axis, make_axis
from app.page.markup import Markup, join, tag
from app.page.values import shown

WIDTH, HEIGHT = 560, 300
LEFT, RIGHT, TOP, BOTTOM = 64, 12, 12, 44
MOST_POINTS = 600  # of a line: what a screen can show
DOTTED = 40  # a line of fewer points has a dot on each
COLOURS = 8
CHARACTER = 7  # pixels, about: of a label's text


@dataclass(frozen=True)
class Line:
    """Points to join.

    step     each value holds until the next one
    dashed   it is something to compare with
    marks    "dots": on a line, where they are few; "only": dots without a line; "rings": rings without one
    under    drawn broader, as something that another line may cover
    x, y     finite numbers, x ascending
    colour   number of a colour, which repeats; -1: that of the text
    """

    label: str
    x: Sequence[float]
    y: Sequence[float]
    colour: int = 0
    step: bool = False
    dashed: bool = False
    marks: str = "dots"
    under: int = 0


def line_chart(
    title: str,
    lines: Sequence[Line],
    x_label: str,
    y_label: str,
    *,
    ticks_x: Sequence[float] = (),
    log_y: bool = False,
    zero: bool = False,
) -> Markup:
    """A figure of lines with a legend; nothing where no line has a point.

    ticks_x   the places of the x axis that have a label, on a logarithmic axis; none: a linear axis
    log_y     a logarithmic axis; what is not positive is left out      zero   it begins at zero
    """
    kept = [_positive(line, bool(ticks_x), log_y) for line in lines]
    kept = [line for line in kept if line.x]
    if not kept:
        return Markup("")
    across = make_axis([x for line in kept for x in line.x], LEFT, WIDTH - RIGHT, bool(ticks_x))
    across = replace(across, ticks=tuple(sorted(set(ticks_x)))) if ticks_x else across
    up = make_axis([y for line in kept for y in line.y], HEIGHT - BOTTOM, TOP, log_y, zero, 0.04)
    drawing = tag(
        "svg",
        tag("title", title),
        _grid(across, up, x_label, y_label),
        *(_draw_line(line, across, up) for line in kept),
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
    )
    return figure(title, drawing, [(line.label, line.colour, line.dashed) for line in kept])


def figure(title: str, drawing: Markup, legend: Sequence[tuple[str, int, bool]]) -> Markup:
    """A drawing with its title and, where there is more than one thing, what each colour stands for."""
    seen = list(dict.fromkeys(legend))
    keys = [
        tag("span", tag("i", class_=f"key {_colour(colour)}{' dashed' if dashed else ''}"), label)
        for label, colour, dashed in seen
    ]
    return tag(
        "figure",
        tag("figcaption", title),
        drawing,
        tag("div", join(keys, " "), class_="legend") if len(seen) > 1 else "",
    )


def _colour(number: int) -> str:
    return "ct" if number < 0 else f"c{number % COLOURS}"


def _positive(line: Line, log_x: bool, log_y: bool) -> Line:
    """The points that the axes can show, thinned."""
    points = [(x, y) for x, y in zip(line.x, line.y) if (x > 0 or not log_x) and (y > 0 or not log_y)]
    points = thinned(points)
    return replace(line, x=[x for x, _ in points], y=[y for _, y in points])


def thinned(points: list[tuple[float, float]], most: int = MOST_POINTS) -> list[tuple[float, float]]:
    """About `most` of the points: the first, the last, and of every stretch the lowest and the highest."""
    if len(points) <= most:
        return points
    stretch = -(-2 * len(points) // (most - 2))
    kept = {0, len(points) - 1}
    for at in range(0, len(points), stretch):
        numbers = range(at, min(at + stretch, len(points)))
        kept.add(min(numbers, key=lambda i: points[i][1]))
        kept.add(max(numbers, key=lambda i: points[i][1]))
    return [points[i] for i in sorted(kept)]


def _grid(across: Axis, up: Axis, x_label: str, y_label: str) -> Markup:
    """Lines at the ticks, their labels, and the names of the axes."""
    parts = []
    for tick, label in zip(up.ticks, up.labels()):
        y = up.place(tick)
        parts.append(tag("line", x1=across.start, x2=across.end, y1=y, y2=y, class_="grid"))
        parts.append(tag("text", label, x=across.start - 7, y=y + 4, text_anchor="end"))
    for tick, label in zip(across.ticks, across.labels()):
        x = across.place(tick)
        parts.append(tag("line", x1=x, x2=x, y1=up.start, y2=up.start + 4, class_="axis"))
        parts.append(tag("text", label, x=_inside(x, label), y=up.start + 18, text_anchor="middle"))
    parts.append(tag("line", x1=across.start, x2=across.end, y1=up.start, y2=up.start, class_="axis"))
    middle, height = (across.start + across.end) / 2, (up.start + up.end) / 2
    parts.append(tag("text", x_label, x=middle, y=up.start + 37, text_anchor="middle", class_="name"))
    turned = f"translate(13 {height}) rotate(-90)"
    parts.append(tag("text", y_label, transform=turned, text_anchor="middle", class_="name"))
    return join(parts)


def _inside(x: float, label: str) -> float:
    """Where the middle of a label below a tick is: at the tick, or where it ends with the drawing."""
    return round(min(x, WIDTH - CHARACTER * len(label) / 2), 2)


def _draw_line(line: Line, across: Axis, up: Axis) -> Markup:
    """The path of a line, and its dots where these are few."""
    places = [(across.place(x), up.place(y)) for x, y in zip(line.x, line.y)]
    path = [f"M{places[0][0]} {places[0][1]}"]
    for x, y in places[1:]:
        path.append(f"H{x}V{y}" if line.step else f"L{x} {y}")
    colour = _colour(line.colour)
    kind = [
        "line",
        colour,
        *(["dashed"] if line.dashed else []),
        *([f"under{min(3, line.under)}"] * (line.under > 0)),
    ]
    drawn = tag("path", d="".join(path), class_=" ".join(kind))
    if line.marks == "dots" and (len(places) > DOTTED or (line.dashed and len(places) > 1)):
        return drawn
    ring = line.marks == "rings"
    dots = [
        tag(
            "circle",
            tag("title", f"{line.label}: {shown(y)} at {shown(x)}"),
            cx=place[0],
            cy=place[1],
            r=4 if ring else 2.8,
            class_=f"{'ring' if ring else 'dot'} {colour}",
        )
        for place, x, y in zip(places, line.x, line.y)
    ]
    return join([drawn, *dots] if line.marks == "dots" else dots)


def stacked_bars(title: str, bars: Sequence[tuple[str, dict[str, float]]], unit: str) -> Markup:
    """Horizontal bars, one below the other, each made of named parts; all on one axis from zero.

    bars   label, and the parts that are not negative by name
    """
    names = list(dict.fromkeys(name for _, parts in bars for name in parts))
    totals = [sum(parts.values()) for _, parts in bars]
    if not bars or not any(totals):
        return Markup("")
    left, row = 120, 30
    bottom = TOP + row * len(bars)
    across = make_axis([0.0, max(totals)], left, WIDTH - RIGHT, zero=True)
    drawn = [_bar_axis(across, bottom, unit)]
    for k, (label, parts) in enumerate(bars):
        top = TOP + row * k
        text = label if len(label) <= 17 else f"{label[:16]}..."
        drawn.append(tag("text", tag("title", label), text, x=left - 8, y=top + 18, text_anchor="end"))
        drawn.append(_bar(parts, names, across, top + 4, row - 8, unit))
    drawing = tag("svg", tag("title", title), *drawn, viewBox=f"0 0 {WIDTH} {bottom + BOTTOM}", role="img")
    return figure(title, drawing, [(name, i, False) for i, name in enumerate(names)])


def _bar_axis(across: Axis, bottom: float, unit: str) -> Markup:
    parts = [tag("line", x1=across.start, x2=across.end, y1=bottom, y2=bottom, class_="axis")]
    for tick, label in zip(across.ticks, across.labels()):
        x = across.place(tick)
        parts.append(tag("line", x1=x, x2=x, y1=TOP, y2=bottom, class_="grid"))
        parts.append(tag("text", label, x=_inside(x, label), y=bottom + 17, text_anchor="middle"))
    middle = (across.start + across.end) / 2
    return join([*parts, tag("text", unit, x=middle, y=bottom + 36, text_anchor="middle", class_="name")])


def _bar(
    parts: dict[str, float], names: list[str], across: Axis, top: float, height: float, unit: str
) -> Markup:
    """The parts of one bar, one after the other."""
    drawn, at = [], 0.0
    for name, value in parts.items():
        start, end = across.place(at), across.place(at + value)
        at += value
        drawn.append(
            tag(
                "rect",
                tag("title", f"{name}: {shown(value)} {unit}"),
                x=start,
                y=top,
                width=round(max(0.0, end - start), 2),
                height=height,
                class_=f"part {_colour(names.index(name))}",
            )
        )
    return join(drawn)
