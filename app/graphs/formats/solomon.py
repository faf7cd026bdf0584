"""Solomon's files of customers with time windows (Gehring and Homberger's too), strictly.

    R101                                  a name
    VEHICLE
    NUMBER CAPACITY
      25     200
    CUSTOMER
    CUST NO. XCOORD. YCOORD. DEMAND READY TIME DUE DATE SERVICE TIME
      0  35  35   0    0  230   0         the depot
      1  41  49  10  161  171  10         customers

Lengths are in tenths, rounded down, as is usual since the DIMACS challenge of 2022: 12.67 is 12.6. Times are
counted in tenths, too.

Source   Solomon, Algorithms for the vehicle routing and scheduling problems with time window constraints,
         Operations Research 1987
"""

import re
from dataclasses import replace

import numpy as np

from app.graphs.deliveries import MOST_TIME, Deliveries, Times
from app.graphs.formats.source import Limits, Source, graph_name, shown
from app.graphs.formats.text import fields_of
from app.graphs.metric import MOST_TABLE_POINTS, Metric, from_points

TENTHS = 10
COLUMNS = "CUSTOMER X Y DEMAND READY DUE SERVICE"
NUMBER = re.compile(rb"[+-]?[0-9]{1,12}(\.[0-9]{0,9})?")
MOST_DEMAND = 2**53


def is_solomon(lines: list[list[bytes]]) -> bool:
    """Whether the second line that is not empty says VEHICLE."""
    told = [fields for fields in lines if fields][:2]
    return len(told) == 2 and [field.upper() for field in told[1]] == [b"VEHICLE"]


def read_customers(path: str, limits: Limits) -> tuple[Metric, Deliveries]:
    """Distances, and what is delivered when; raises GraphError."""
    source = Source(path, limits)
    rows = [(number, fields) for number, line in source.lines() if (fields := fields_of(line))]
    vehicles, capacity = _vehicles(source, rows)
    customers = [(number, fields) for number, fields in rows[4:] if fields[0][:1].isdigit()]
    others = [(number, fields) for number, fields in rows[4:] if not fields[0][:1].isdigit()]
    if (
        len(others) != 2
        or others[0][1][0].upper() != b"CUSTOMER"
        or rows[4] != others[0]
        or rows[5] != others[1]
    ):
        number = (others[2:] or others or rows)[0][0]
        raise source.error("'CUSTOMER', then a line of headings, once, would be right", number)
    table = _table(source, customers)
    n = len(table)
    if n > MOST_TABLE_POINTS:
        raise source.error(f"found {n} points; at most {MOST_TABLE_POINTS} would be right")
    demand = _whole(source, customers, table, 3, 1, "demand", MOST_DEMAND)
    opens, closes, service = (
        _whole(source, customers, table, column, TENTHS, what, MOST_TIME)
        for column, what in ((4, "ready time"), (5, "due date"), (6, "service time"))
    )
    for row in range(n):
        number, fields = customers[row]
        wrong = (
            (demand[row] > capacity, f"demand {demand[row]} above the capacity {capacity}"),
            (opens[row] > closes[row], "due date before the ready time"),
            (not row and demand[0], "demand at the depot"),
        )
        for is_wrong, what in wrong:
            if is_wrong:
                raise source.error(f"found a {what}; none would be right", number)
    if sum(demand.tolist()) > MOST_DEMAND:
        raise source.error(f"found demands of more than {MOST_DEMAND} together; less would be right")
    service[0] = 0
    points = np.array([row[1:3] for row in table]) * TENTHS
    metric = replace(from_points(graph_name(path), points, "FLOOR_2D"), unit=1 / TENTHS)
    return metric, Deliveries(0, demand, capacity, vehicles, Times(opens, closes, service))


def _vehicles(source: Source, rows: list[tuple[int, list[bytes]]]) -> tuple[int, int]:
    """Their number and capacity, on the fourth line that is not empty."""
    if len(rows) < 6:
        raise source.error("a name, VEHICLE, NUMBER CAPACITY, two numbers, CUSTOMER ... would be right")
    for place, words in ((1, [b"VEHICLE"]), (2, [b"NUMBER", b"CAPACITY"])):
        number, fields = rows[place]
        if [field.upper() for field in fields] != words:
            right = b" ".join(words).decode()
            raise source.error(f"found '{shown(b' '.join(fields))}'; '{right}' would be right", number)
    number, fields = rows[3]
    if len(fields) != 2 or not all(re.fullmatch(rb"[1-9][0-9]{0,15}", field) for field in fields):
        told = f"found '{shown(b' '.join(fields))}'"
        raise source.error(f"{told}; the number of vehicles and their capacity would be right", number)
    return min(int(fields[0]), 2**31 - 1), int(fields[1])


def _table(source: Source, customers: list[tuple[int, list[bytes]]]) -> list[list[float]]:
    """[n][7] numbers of the customers, the depot first, in the order of the file: 0, 1, 2 ..."""
    found = []
    for row, (number, fields) in enumerate(customers):
        if len(fields) != 7 or not all(NUMBER.fullmatch(field) for field in fields):
            told = f"found '{shown(b' '.join(fields))}'"
            raise source.error(f"{told}; seven numbers, {COLUMNS}, would be right", number)
        if fields[0] != str(row).encode():
            right = f"{row}, counted from 0, the depot, would be right"
            raise source.error(f"found customer {shown(fields[0])}; {right}", number)
        found.append([float(field) for field in fields])
    if not found:
        raise source.error("found no customers; the depot, and customers, would be right")
    return found


def _whole(
    source: Source, customers: list[tuple[int, list[bytes]]], table: list[list[float]], column: int,
    units: int, what: str, most: int,
) -> np.ndarray:  # fmt: skip
    """[n] int64 the numbers of a column, in so many parts of one."""
    found = np.zeros(len(table), dtype=np.int64)
    for row, (number, fields) in enumerate(customers):
        value = table[row][column] * units
        if not 0 <= value <= most or value != round(value, 6) or round(value) != round(value, 6):
            right = (
                "a whole number from 0 on" if units == 1 else "a number from 0 on, of one decimal at most,"
            )
            raise source.error(f"found {shown(fields[column])} as a {what}; {right} would be right", number)
        found[row] = round(value)
    return found
