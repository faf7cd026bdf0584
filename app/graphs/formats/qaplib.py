"""Files of QAPLIB (.dat): the number n of facilities, then two matrices of n x n whole numbers, in any lines.

The cost of putting facility i on location p(i) is the sum of a_ij b_p(i)p(j): the first matrix is that of the
facilities, the second that of the locations.

Source   Burkard, Karisch and Rendl, QAPLIB: a quadratic assignment problem library, 1997
"""

import re
from array import array
from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from app.graphs.formats.source import Limits, Source, graph_name, shown
from app.graphs.formats.text import fields_of
from app.graphs.pairing import LARGEST, Given
from app.graphs.stream import Chunk, EdgeStream

FORMAT = "qaplib"
MOST = 5000  # facilities
COUNT, WHOLE = re.compile(rb"[0-9]{1,9}"), re.compile(rb"[+-]?[0-9]{1,18}")
ENTRY = f"a whole number from -{LARGEST} to {LARGEST} would be right"
RIGHT = "the number of facilities, then two matrices,"


def read_qaplib(path: str, limits: Limits) -> EdgeStream:
    """The stream of a file: the edges are the pairs of facilities that have an entry of the first matrix."""
    source = Source(path, limits)
    n, values = _numbers(source)
    a, b = (sp.csr_array(each) for each in np.frombuffer(values, dtype=np.int64).reshape(2, n, n))
    either = sp.coo_array(sp.triu(abs(a) + abs(a.T), 1))

    def chunks(_: EdgeStream) -> Iterator[Chunk]:
        yield either.row.astype(np.int64), either.col.astype(np.int64), None

    stream = EdgeStream(
        graph_name(path), path, FORMAT, n, 1, False, chunks, source.warnings, entries=2 * either.nnz,
        undirected=True,
    )  # fmt: skip
    stream.pairing = Given(a, b)
    return stream


def _numbers(source: Source) -> tuple[int, array]:
    """n, and 2 n^2 numbers int64. Raises GraphError."""
    n, values, number = 0, array("q"), 0
    for number, line in source.lines():
        for field in fields_of(line):
            if not n:
                if not COUNT.fullmatch(field) or not 1 <= int(field) <= MOST:
                    right = f"the number of facilities, 1..{MOST}, would be right"
                    raise source.error(f"found '{shown(field)}'; {right}", number)
                n = int(field)
                continue
            if not WHOLE.fullmatch(field) or abs(int(field)) > LARGEST:
                raise source.error(f"found '{shown(field)}'; {ENTRY}", number)
            values.append(int(field))
        if len(values) > 2 * n * n:
            break
    if not n:
        raise source.empty(RIGHT)
    if len(values) != 2 * n * n:
        found = f"more than {2 * n * n}" if len(values) > 2 * n * n else len(values)
        raise source.error(f"found {found} entries of {n} facilities; {2 * n * n} would be right", number)
    return n, values
