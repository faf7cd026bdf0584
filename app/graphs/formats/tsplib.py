"""TSPLIB files: problems (.tsp; .atsp, whose distances differ by direction; .vrp, with demands) and tours
(.tour), strictly.

Source   TSPLIB 95 (Reinelt 1991): keywords "KEY : VALUE", then sections of numbers, then EOF; CVRPLIB (Uchoa
         et al. 2017) for .vrp; sections of time windows as LKH-3 (Helsgaun 2017) and VRPLIB have them
"""

import re
from collections.abc import Iterator

import numpy as np

from app.graphs.deliveries import MOST_TIME, Deliveries, Times, limited
from app.graphs.formats.source import Limits, Source, graph_name, shown
from app.graphs.formats.text import fields_of
from app.graphs.lengths import (
    COORDINATE_KINDS,
    LARGEST_COORDINATE,
    TABLED,
    dimensions,
    largest_coordinate,
)
from app.graphs.metric import MOST_DIRECTED, MOST_TABLE_POINTS, Metric, directed, explicit, from_points

REAL = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
WHOLE = re.compile(rb"[+-]?[0-9]{1,18}")
KEYWORD = re.compile(rb"[ \t]*([A-Z][A-Z0-9_]*)[ \t]*(?::(.*)|)")
LARGEST_DISTANCE = 2**31 - 1
MOST_POINTS = 10**7
MOST_DEMAND = 2**53  # of all customers together, and of a capacity
OF_DELIVERIES = ("DEMAND_SECTION", "DEPOT_SECTION", "TIME_WINDOW_SECTION", "SERVICE_TIME_SECTION")
OF_ROUTES = ("CVRP", "VRPTW", "CVRPTW", "DCVRP")  # TYPEs: with time windows; with a limit of length
HEADERS = {
    "NAME", "TYPE", "COMMENT", "DIMENSION", "EDGE_WEIGHT_TYPE", "EDGE_WEIGHT_FORMAT", "NODE_COORD_TYPE",
    "DISPLAY_DATA_TYPE", "CAPACITY", "EDGE_DATA_FORMAT", "VEHICLES", "DISTANCE", "SERVICE_TIME",
}  # fmt: skip
SECTIONS = {
    "NODE_COORD_SECTION", "DISPLAY_DATA_SECTION", "EDGE_WEIGHT_SECTION", "TOUR_SECTION",
    "FIXED_EDGES_SECTION", "EDGE_DATA_SECTION", "DEPOT_SECTION", "DEMAND_SECTION", "TIME_WINDOW_SECTION",
    "SERVICE_TIME_SECTION",
}  # fmt: skip
# Of a symmetric matrix the columns of one triangle are the rows of the other.
TRIANGLES = {
    "UPPER_ROW": ("upper", 1), "LOWER_COL": ("upper", 1),
    "UPPER_DIAG_ROW": ("upper", 0), "LOWER_DIAG_COL": ("upper", 0),
    "LOWER_ROW": ("lower", 1), "UPPER_COL": ("lower", 1),
    "LOWER_DIAG_ROW": ("lower", 0), "UPPER_DIAG_COL": ("lower", 0),
}  # fmt: skip
FORMATS = ("FULL_MATRIX", *TRIANGLES)

Token = tuple[bytes, int]


class _File:
    """The keywords and sections of one file.

    headers    value and line number by keyword
    sections   tokens of numbers, each with its line number, and the section's own line number
    """

    def __init__(self, path: str, limits: Limits) -> None:
        self.source = Source(path, limits)
        self.headers: dict[str, tuple[str, int]] = {}
        self.sections: dict[str, tuple[list[Token], int]] = {}
        inside, number = None, 0
        for number, line in self.source.lines():
            if not line.strip():
                continue
            if line.strip() == b"EOF":
                break
            if line.lstrip()[:1].isalpha():
                inside = self._keyword(line, number)
            elif inside is None:
                raise self.source.error(f"found '{shown(line)}'; 'KEYWORD : VALUE' would be right", number)
            else:
                inside.extend((field, number) for field in fields_of(line))
        if not number:
            raise self.source.error("an empty file; a TSPLIB file would be right")

    def _keyword(self, line: bytes, number: int) -> list[Token] | None:
        """Note a keyword's value, or open a section and return its list."""
        found = KEYWORD.fullmatch(line.rstrip())
        key = found[1].decode() if found else ""
        if key in SECTIONS and not (found[2] or b"").strip():
            return self._open(key, line, number)
        if key not in HEADERS:
            raise self.source.error(f"found '{shown(line)}'; a TSPLIB keyword would be right", number)
        if found[2] is None:
            raise self.source.error(f"found '{shown(line)}'; '{key} : VALUE' would be right", number)
        if key in self.headers and key != "COMMENT":
            raise self.source.error(f"found '{shown(line)}' again; one {key} would be right", number)
        self.headers[key] = found[2].strip().decode("utf-8", "backslashreplace"), number
        return None

    def _open(self, key: str, line: bytes, number: int) -> list[Token]:
        if key in self.sections:
            raise self.source.error(f"found '{shown(line)}' again; one {key} would be right", number)
        self.sections[key] = [], number
        return self.sections[key][0]

    def value(self, key: str, allowed: tuple[str, ...]) -> str:
        """A keyword's value, one of those allowed."""
        right = f"{' or '.join(allowed)} would be right"
        if key not in self.headers:
            raise self.source.error(f"found no {key}; {right}")
        value, line = self.headers[key]
        if key == "TYPE":  # "TSP (who sent it)" occurs
            value = re.sub(r"[ \t]*\(.*", "", value)
        if value not in allowed:
            raise self.source.error(f"found {key} '{shown(value)}'; {right}", line)
        return value

    def dimension(self) -> int:
        """The number of points."""
        right = f"a number 1..{MOST_POINTS} would be right"
        if "DIMENSION" not in self.headers:
            raise self.source.error(f"found no DIMENSION; {right}")
        value, line = self.headers["DIMENSION"]
        if not re.fullmatch(r"[0-9]{1,18}", value) or not 1 <= int(value) <= MOST_POINTS:
            raise self.source.error(f"found DIMENSION '{shown(value)}'; {right}", line)
        return int(value)

    def name(self) -> str:
        """The file's name without suffixes."""
        return re.sub(r"\.(a?tsp|vrp|opt\.tour|tour)$", "", graph_name(self.source.path), flags=re.IGNORECASE)

    def section(self, key: str) -> tuple[list[Token], int]:
        """The tokens and the line of a section that must be there."""
        if key not in self.sections:
            raise self.source.error(f"found no {key}; one would be right")
        return self.sections[key]

    def only(self, *keys: str) -> None:
        """Refuse other sections."""
        if "FIXED_EDGES_SECTION" in self.sections:
            found = "found FIXED_EDGES_SECTION: no edge can be made part of all tours"
            line = self.sections["FIXED_EDGES_SECTION"][1]
            raise self.source.error(f"{found}; a file without fixed edges would be right", line)
        for key, (_, line) in self.sections.items():
            if key not in keys:
                raise self.source.error(f"found {key}; {' or '.join(keys)} would be right", line)


def read_tsplib(path: str, limits: Limits) -> Metric:
    """The metric of a TSPLIB problem; raises GraphError."""
    return read_deliveries(path, limits)[0]


def read_deliveries(path: str, limits: Limits) -> tuple[Metric, Deliveries | None]:
    """The metric of a TSPLIB problem, and what is delivered in one of OF_ROUTES; raises GraphError."""
    file = _File(path, limits)
    of = file.value("TYPE", ("TSP", "ATSP", *OF_ROUTES))
    if of == "ATSP":
        file.value("EDGE_WEIGHT_TYPE", ("EXPLICIT",))
        file.value("EDGE_WEIGHT_FORMAT", ("FULL_MATRIX",))
        return _read_explicit(file, file.dimension(), by_direction=True), None
    if of == "TSP":
        return _read_metric(file), None
    return _read_metric(file, OF_DELIVERIES), _deliveries(file, file.dimension())


def _read_metric(file: _File, more: tuple[str, ...] = ()) -> Metric:
    """Symmetric distances; more: sections that the file may have beside them."""
    kind = file.value("EDGE_WEIGHT_TYPE", (*COORDINATE_KINDS, "EXPLICIT"))
    n = file.dimension()
    if kind == "EXPLICIT":
        return _read_explicit(file, n, more=more)
    file.only("NODE_COORD_SECTION", "DISPLAY_DATA_SECTION", *more)
    line = file.headers["DIMENSION"][1]
    if kind in TABLED and n > MOST_TABLE_POINTS:
        raise file.source.error(
            f"found {n} points of type {kind}; at most {MOST_TABLE_POINTS} would be right", line
        )
    points = _coordinates(file, "NODE_COORD_SECTION", n, dimensions(kind), largest_coordinate(kind))
    return from_points(file.name(), points, kind)


def read_tour(path: str, limits: Limits) -> np.ndarray:
    """The order [n] int32, from 0, of the first tour of a TSPLIB tour file; raises GraphError."""
    file = _File(path, limits)
    file.value("TYPE", ("TOUR",))
    file.only("TOUR_SECTION")
    tokens, line = file.section("TOUR_SECTION")
    cities = _integers(file.source, list(_until_end(tokens)), "cities")
    n = file.dimension() if "DIMENSION" in file.headers else max(len(cities), 1)
    _refuse_numbers(file.source, cities, tokens, n, "cities")
    if len(cities) != n:
        raise file.source.error(f"found {len(cities)} cities; {n}, as DIMENSION says, would be right", line)
    return (cities - 1).astype(np.int32)


def _until_end(tokens: list[Token]) -> Iterator[Token]:
    """The tokens before the first -1."""
    for token in tokens:
        if token[0] == b"-1":
            return
        yield token


def _integers(source: Source, tokens: list[Token], what: str) -> np.ndarray:
    """Tokens as int64."""
    for text, line in tokens:
        if not WHOLE.fullmatch(text):
            raise source.error(f"found '{shown(text)}' among the {what}; whole numbers would be right", line)
    return np.array([int(text) for text, _ in tokens], dtype=np.int64)


def _refuse_numbers(source: Source, found: np.ndarray, tokens: list[Token], n: int, what: str) -> None:
    """Refuse numbers outside 1..n and repeated ones; token i is where found[i] stands."""
    outside = np.flatnonzero((found < 1) | (found > n))
    if len(outside):
        at = outside[0]
        raise source.error(f"found {found[at]} among the {what}; 1..{n} would be right", tokens[at][1])
    order = np.argsort(found, kind="stable")
    again = order[1:][np.diff(found[order]) == 0]
    if len(again):
        at = again.min()
        raise source.error(f"found {found[at]} twice among the {what}; once would be right", tokens[at][1])


def _coordinates(
    file: _File, section: str, n: int, dimensions: int = 2, largest: float = LARGEST_COORDINATE
) -> np.ndarray:
    """[n, dimensions] float64 from lines of a number and as many coordinates."""
    tokens, line = file.section(section)
    rows = _rows(file.source, tokens, section, dimensions)
    if len(rows) != n:
        raise file.source.error(f"found {len(rows)} points; {n}, as DIMENSION says, would be right", line)
    firsts = [row[0] for row in rows]
    numbers = _integers(file.source, firsts, "node numbers")
    _refuse_numbers(file.source, numbers, firsts, n, "node numbers")
    points = np.empty((n, dimensions))
    points[numbers - 1] = [[_coordinate(file.source, token, largest) for token in row[1:]] for row in rows]
    return points


def _rows(
    source: Source, tokens: list[Token], section: str, dimensions: int, line: str = ""
) -> list[list[Token]]:
    """The tokens by lines: a number, and coordinates, or what a line is said to hold."""
    rows: list[list[Token]] = []
    for token in tokens:
        if rows and rows[-1][0][1] == token[1]:
            rows[-1].append(token)
        else:
            rows.append([token])
    for row in rows:
        if len(row) != dimensions + 1:
            right = f"{line or repr('NUMBER ' + ' '.join('XYZ'[:dimensions]))} would be right"
            raise source.error(f"found {len(row)} fields in {section}; {right}", row[0][1])
    return rows


def _coordinate(source: Source, token: Token, largest: float) -> float:
    text, line = token
    value = float(text) if REAL.fullmatch(text) else np.nan
    if not abs(value) <= largest:
        right = f"a number of at most {largest:.2g} would be right"
        raise source.error(f"found '{shown(text)}' as a coordinate; {right}", line)
    return value


def _read_explicit(file: _File, n: int, by_direction: bool = False, more: tuple[str, ...] = ()) -> Metric:
    layout = file.value("EDGE_WEIGHT_FORMAT", FORMATS)
    file.only("EDGE_WEIGHT_SECTION", "NODE_COORD_SECTION", "DISPLAY_DATA_SECTION", *more)
    most = MOST_DIRECTED if by_direction else MOST_TABLE_POINTS
    if n > most:
        right = f"at most {most} would be right"
        raise file.source.error(f"found {n} points with a matrix; {right}", file.headers["DIMENSION"][1])
    tokens, line = file.section("EDGE_WEIGHT_SECTION")
    numbers = _integers(file.source, tokens, "distances")
    outside = np.flatnonzero((numbers < 0) | (numbers > LARGEST_DISTANCE))
    if len(outside):
        right = f"0..{LARGEST_DISTANCE} would be right"
        raise file.source.error(f"found distance {numbers[outside[0]]}; {right}", tokens[outside[0]][1])
    due = n * n if layout == "FULL_MATRIX" else n * (n + 1) // 2 - n * TRIANGLES[layout][1]
    if len(numbers) != due:
        right = f"{due}, for DIMENSION {n} in {layout}, would be right"
        raise file.source.error(f"found {len(numbers)} distances; {right}", line)
    if by_direction:
        matrix = numbers.reshape(n, n).copy()
        np.fill_diagonal(matrix, 0)
        by_direction = bool((matrix != matrix.T).any())
    else:
        full = layout == "FULL_MATRIX"
        matrix = _symmetric(file.source, numbers, tokens, n) if full else _fill(numbers, n, layout)
    made = directed if by_direction else explicit
    np.fill_diagonal(matrix, 0)  # some files mark the diagonal by a large number
    shown_at = next(
        (key for key in ("DISPLAY_DATA_SECTION", "NODE_COORD_SECTION") if key in file.sections), None
    )
    if shown_at is None:
        return made(file.name(), matrix)
    in_space = file.headers.get("NODE_COORD_TYPE", ("", 0))[0] == "THREED_COORDS"
    wide = 3 if in_space and shown_at == "NODE_COORD_SECTION" else 2
    return made(file.name(), matrix, _coordinates(file, shown_at, n, wide))


def _symmetric(source: Source, numbers: np.ndarray, tokens: list[Token], n: int) -> np.ndarray:
    matrix = numbers.reshape(n, n)
    unlike = np.argwhere(matrix != matrix.T)
    if len(unlike):
        i, j = unlike[0]
        found = f"found {matrix[i, j]} from {i + 1} to {j + 1} but {matrix[j, i]} back"
        raise source.error(f"{found}; a symmetric matrix, or TYPE ATSP, would be right", tokens[j * n + i][1])
    return matrix.copy()


def _fill(numbers: np.ndarray, n: int, layout: str) -> np.ndarray:
    """[n, n] from the rows of one triangle."""
    side, offset = TRIANGLES[layout]
    rows, columns = np.triu_indices(n, offset) if side == "upper" else np.tril_indices(n, -offset)
    matrix = np.zeros((n, n), dtype=np.int64)
    matrix[rows, columns] = numbers
    matrix[columns, rows] = numbers
    return matrix


def _deliveries(file: _File, n: int) -> Deliveries:
    """Demands, capacity, depot and times of a problem of routes. VEHICLES is no limit, as in CVRPLIB."""
    capacity, depot = _capacity(file), _depot(file, n)
    tokens, line = file.section("DEMAND_SECTION")
    rows = _rows(file.source, tokens, "DEMAND_SECTION", 1, "'NUMBER DEMAND'")
    if len(rows) != n:
        raise file.source.error(f"found {len(rows)} demands; {n}, as DIMENSION says, would be right", line)
    firsts, amounts = [row[0] for row in rows], [row[1] for row in rows]
    numbers = _integers(file.source, firsts, "node numbers")
    _refuse_numbers(file.source, numbers, firsts, n, "node numbers")
    demand = np.zeros(n, dtype=np.int64)
    demand[numbers - 1] = found = _integers(file.source, amounts, "demands")
    wrong = np.flatnonzero((found < 0) | (found > capacity))
    if len(wrong):
        at = int(wrong[0])
        right = f"0..{capacity}, what a vehicle carries, would be right"
        raise file.source.error(f"found the demand {found[at]} of {numbers[at]}; {right}", amounts[at][1])
    if demand[depot]:
        at = int((numbers == depot + 1).argmax())
        told = f"found the demand {demand[depot]} of the depot, {depot + 1}"
        raise file.source.error(f"{told}; 0 would be right", amounts[at][1])
    if sum(demand.tolist()) > MOST_DEMAND:
        right = f"at most {MOST_DEMAND} would be right"
        raise file.source.error(f"found demands of {sum(demand.tolist())} together; {right}", line)
    return Deliveries(depot, demand, capacity, 0, _times(file, n, depot))


def _times(file: _File, n: int, depot: int) -> Times | None:
    """Windows, or the limit of a route's length: DISTANCE, which services count for as well."""
    service = np.full(n, int(_limit(file, "SERVICE_TIME", whole=True)), dtype=np.int64)
    most = int(_limit(file, "DISTANCE"))  # lengths are whole numbers
    if "SERVICE_TIME_SECTION" in file.sections:
        if service.any():
            line = file.sections["SERVICE_TIME_SECTION"][1]
            right = "one of both would be right"
            raise file.source.error(f"found SERVICE_TIME_SECTION beside SERVICE_TIME; {right}", line)
        service = _by_node(file, "SERVICE_TIME_SECTION", n, "'NUMBER TIME'", 1)[:, 0]
    service[depot] = 0
    if "TIME_WINDOW_SECTION" not in file.sections:
        return limited(n, depot, most, service) if most else None
    if most:
        right = "windows, or a limit, would be right"
        raise file.source.error(f"found DISTANCE beside time windows; {right}", file.headers["DISTANCE"][1])
    windows = _by_node(file, "TIME_WINDOW_SECTION", n, "'NUMBER EARLIEST LATEST'", 2)
    wrong = np.flatnonzero(windows[:, 0] > windows[:, 1])
    if len(wrong):
        at = int(wrong[0])
        told = f"found the window {windows[at, 0]} to {windows[at, 1]} of {at + 1}"
        right = "one that ends no earlier than it begins would be right"
        raise file.source.error(f"{told}; {right}", file.sections["TIME_WINDOW_SECTION"][1])
    return Times(windows[:, 0].copy(), windows[:, 1].copy(), service)


def _limit(file: _File, key: str, whole: bool = False) -> float:
    """The number of a keyword, 0 where there is none."""
    value, line = file.headers.get(key, ("0", 0))
    if not re.fullmatch(r"[0-9]{1,15}(\.0*)?" if whole else r"[0-9]{1,15}(\.[0-9]*)?", value):
        right = f"a {'whole ' if whole else ''}number from 0 on would be right"
        raise file.source.error(f"found {key} '{shown(value)}'; {right}", line)
    return float(value)


def _by_node(file: _File, section: str, n: int, right: str, count: int) -> np.ndarray:
    """[n, count] int64, whole numbers from 0 on of each node, in the order of their numbers."""
    tokens, line = file.section(section)
    rows = _rows(file.source, list(_until_end(tokens)), section, count, right)
    if len(rows) != n:
        told = f"found {len(rows)} lines in {section}; {n}, as DIMENSION says, would be right"
        raise file.source.error(told, line)
    firsts = [row[0] for row in rows]
    numbers = _integers(file.source, firsts, "node numbers")
    _refuse_numbers(file.source, numbers, firsts, n, "node numbers")
    found = np.zeros((n, count), dtype=np.int64)
    for number, row in zip(numbers.tolist(), rows):
        for place, (text, at) in enumerate(row[1:]):
            if not re.fullmatch(rb"[0-9]{1,15}(\.0*)?", text):
                told = f"found '{shown(text)}' in {section}"
                raise file.source.error(f"{told}; a whole number from 0 on would be right", at)
            found[number - 1, place] = min(int(text.partition(b".")[0]), MOST_TIME)
    return found


def _capacity(file: _File) -> int:
    right = f"'CAPACITY : NUMBER' from 1 to {MOST_DEMAND} would be right"
    if "CAPACITY" not in file.headers:
        raise file.source.error(f"found no CAPACITY; {right}")
    value, line = file.headers["CAPACITY"]
    if not re.fullmatch(r"[0-9]{1,16}(\.0*)?", value) or not 1 <= int(float(value)) <= MOST_DEMAND:
        raise file.source.error(f"found CAPACITY '{shown(value)}'; {right}", line)
    return int(value.partition(".")[0])


def _depot(file: _File, n: int) -> int:
    """The row of the depot."""
    tokens, line = file.section("DEPOT_SECTION")
    named = list(_until_end(tokens))
    numbers = _integers(file.source, named, "depots")
    if len(numbers) != 1:
        raise file.source.error(f"found {len(numbers)} depots; one, then -1, would be right", line)
    _refuse_numbers(file.source, numbers, named, n, "depots")
    return int(numbers[0]) - 1
