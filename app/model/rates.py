"""Rates of a machine, and the seconds of a step's terms by them.

A Calibration is what app/model/calibrate.py measured, as JSON; DEFAULTS stand in where nothing was measured.
"""

import math
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from app.case.config import Case
from app.errors import CaseError
from app.model.terms import MESSAGES, Term

TILE = 64  # columns that a compiled product takes at once (native/spmm_lanes.h)
LANES = 16  # columns of a dense product are padded to a multiple of this
FAR_BYTES = 8 << 20  # of an operand, beyond which no result is left out
LATENCY_S, BYTES_S = 2e-6, 10e9  # of a network of which nothing was measured
Seconds = Annotated[float, Meta(ge=0)]


class Table(Struct, frozen=True, forbid_unknown_fields=True):
    """Lists of equal length, ascending in their first."""


class ProductRate(Table, frozen=True):
    """A sparse product of one width: for operands of `nbytes` seconds per entry, and per row."""

    width: int
    nbytes: list[float]
    entry_s: list[Seconds]
    row_s: list[Seconds]


class DenseRate(Table, frozen=True):
    """A dense product: for arrays [rows, K] of `nbytes` seconds per row, and per multiply-add."""

    nbytes: list[float]
    row_s: list[Seconds]
    madd_s: list[Seconds]


class PassRate(Table, frozen=True):
    """A pass over an array of `nbytes`: seconds per number."""

    nbytes: list[float]
    number_s: list[Seconds]


class MessageRate(Table, frozen=True):
    """A collective by bytes received; the first is as good as empty."""

    nbytes: list[float]
    seconds: list[Seconds]


class Kernels(Table, frozen=True):
    """One rank's rates.

    passes      "element", "take", "reduce", "skip dense", "skip gram"; of layers "drop", "loss", and "attend"
                for an entry and a head, not in older files
    dense       "dense", "gram"; "wide dense", "wide gram": of layers, by the bytes of the [k, m] matrix
    lookup      a product with rows of a table, by the bytes of their numbers: per entry and row of one state
    feature_s   seconds per entry of a feature table
    calls       seconds per call, without the work that grows with the graph: "evaluation"; of a gradient step
                "step", "part", "state", "member"; "operation" of layers, not in older files
    """

    products: list[ProductRate]
    lookup: ProductRate
    dense: dict[str, DenseRate]
    passes: dict[str, PassRate]
    feature_s: Seconds
    calls: dict[str, Seconds]


class Calibration(Table, frozen=True):
    """What was measured where.

    ranks      ranks that measured together; rates of one rank while the others rest are `alone`, while all do
               the same `together`
    messages   collectives of these ranks, by kind; "round": of messages that carry nothing
    base_bytes resident memory of a rank before it holds any graph
    """

    machine: str
    backend: str
    ranks: int
    oversubscribed: bool
    alone: Kernels
    together: Kernels
    messages: dict[str, MessageRate]
    base_bytes: int

    @property
    def undisturbed(self) -> "Calibration":
        """Rates to extrapolate by: those of ranks that shared cores say nothing of ranks that do not."""
        if not self.oversubscribed:
            return self
        return msgspec.structs.replace(self, together=self.alone, messages={})

    def text(self) -> str:
        """As JSON."""
        return msgspec.json.format(msgspec.json.encode(self), indent=1).decode() + "\n"


class Network(Struct, frozen=True):
    """The network between ranks: numbers to use in place of those measured; 0: as measured.

    latency_s   of one message     bytes_s   bytes per second that a rank receives
    """

    latency_s: float = 0.0
    bytes_s: float = 0.0


def given_network(case: Case) -> Network:
    """The network between ranks that study.latency_us and study.bandwidth_gbs state."""
    return Network(1e-6 * case.study.latency_us, 1e9 * case.study.bandwidth_gbs)


def load_calibration(path: str) -> Calibration:
    """A calibration.json."""
    try:
        with open(path, "rb") as file:
            return msgspec.json.decode(file.read(), type=Calibration)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise CaseError(f"study.calibration: {path}: {reason}; a calibration.json would be right") from None


def averaged(first: Calibration, second: Calibration) -> Calibration:
    """The mean of two calibrations of the same ranks: machines drift."""
    whole = _mean(msgspec.to_builtins(first), msgspec.to_builtins(second))
    return msgspec.convert(whole, Calibration)


def _mean(first: Any, second: Any) -> Any:
    if isinstance(first, dict):
        return {key: _mean(value, second[key]) for key, value in first.items()}
    if isinstance(first, list):
        return [_mean(a, b) for a, b in zip(first, second)]
    return (first + second) / 2 if isinstance(first, float) else first


class Rates:
    """Seconds of terms on P ranks of a calibrated machine."""

    def __init__(self, calibration: Calibration, ranks: int, network: Network | None = None) -> None:
        self.calibration, self.ranks, self.network = calibration, ranks, network or Network()
        self.kernels = calibration.alone if ranks == 1 else calibration.together
        self._calls = {"operation": 0.0} | self.kernels.calls
        self._passes = {"attend": PassRate([1.0], [0.0])} | self.kernels.passes
        self._products = {rate.width: rate for rate in self.kernels.products}

    def total(self, terms: list[Term]) -> float:
        """Seconds of a step."""
        return sum(self.seconds(term) for term in terms)

    def by_part(self, terms: list[Term]) -> dict[str, float]:
        """Seconds by the part of a step: embedding, evaluation, environment, learning, and messages."""
        out: dict[str, float] = {}
        for term in terms:
            part = "messages" if term.kind in MESSAGES else term.part
            out[part] = out.get(part, 0.0) + self.seconds(term)
        return out

    def seconds(self, term: Term) -> float:
        """Seconds of one term."""
        if term.kind in MESSAGES:
            each = self._message(MESSAGES[term.kind][1], *term.amounts[1:])
        elif term.kind == "product":
            each = self._any_product(*term.amounts)
        elif term.kind == "lookup":
            each = self._lookup(*term.amounts)
        elif term.kind in self.kernels.dense:
            each = self._dense(self.kernels.dense[term.kind], *term.amounts)
        elif term.kind in self._passes:
            numbers, nbytes = term.amounts
            rate = self._passes[term.kind]
            each = numbers * between(rate.nbytes, rate.number_s, nbytes)
        elif term.kind == "feature":
            each = term.amounts[0] * self.kernels.feature_s
        else:
            each = term.amounts[0] * self._calls[term.name]
        return term.times * each

    def _dense(self, rate: DenseRate, rows: float, k: int, m: int, nbytes: float) -> float:
        padded = -(-m // LANES) * LANES
        row_s, madd_s = (between(rate.nbytes, values, nbytes) for values in (rate.row_s, rate.madd_s))
        return rows * (row_s + madd_s * k * padded)

    def _lookup(self, entries: float, rows: float, width: int, nbytes: float) -> float:
        """Rows of a table of another width take as many vectors more."""
        rate = self.kernels.lookup
        entry_s, row_s = (between(rate.nbytes, values, nbytes) for values in (rate.entry_s, rate.row_s))
        return -(-width // LANES) / -(-rate.width // LANES) * (entries * entry_s + rows * row_s)

    def _any_product(
        self, entries: float, rows: float, width: int, nbytes: float, state: int, removed: float
    ) -> float:
        """A product that leaves out results of removed nodes, where these are whole vectors, or a full one.

        Four vectors of 16 are made together where more than two are wanted, else one by one. With states
        along an episode, of which the latest has removed twice the mean, the number of live states among any
        n is n outside that share of the nodes, and else any of 0..n alike.
        """
        if not removed or state % LANES or nbytes > FAR_BYTES:
            return self._product(entries, rows, width, nbytes)
        each = min(state, TILE) // LANES
        together = TILE // (LANES * each)
        tile, vector = (self._product(entries, rows, columns, nbytes) for columns in (TILE, LANES))
        spread = min(2 * removed, 1.0) / (together + 1)
        costs = [tile if held * each > 2 else held * each * vector for held in range(together + 1)]
        mean = spread * sum(costs) + max(1 - 2 * removed, 0.0) * costs[-1]
        tiles, rest = divmod(width, TILE)
        full = self._product(entries, rows, tiles * TILE, nbytes) / max(tiles * tile, 1e-30)
        return tiles * mean * full + rest / LANES * vector * (1 - removed)

    def _product(self, entries: float, rows: float, width: int, nbytes: float) -> float:
        """One pass over the entries for any number of columns; few of them by the widths measured around."""
        if not width or width >= TILE:
            return self._wide_product(entries, rows, width, nbytes) if width else 0.0
        narrow = sorted(w for w in self._products if w <= TILE)
        seconds = [self._measured_product(entries, rows, w, nbytes) for w in narrow]
        return _along([float(w) for w in narrow], seconds, width)

    def _wide_product(self, entries: float, rows: float, width: int, nbytes: float) -> float:
        """Between measured widths by the tile: beyond the largest as for it."""
        widths = sorted(w for w in self._products if w >= TILE)
        tiles = width / TILE
        costs = [self._measured_product(entries, rows, w, nbytes) / (w / TILE) for w in widths]
        return tiles * between([float(w) for w in widths], costs, width)

    def _measured_product(self, entries: float, rows: float, width: int, nbytes: float) -> float:
        """A product of a width that was measured."""
        rate = self._products[width]
        entry_s, row_s = (between(rate.nbytes, v, nbytes) for v in (rate.entry_s, rate.row_s))
        return entries * entry_s + rows * row_s

    def _message(self, kind: str, received: float, turns: float) -> float:
        """A collective of the ranks that calibrated, and further messages in a row, where there are any."""
        rate, network = self.calibration.messages.get(kind), self.network
        if rate is None:
            return turns * (network.latency_s or LATENCY_S) + received / (network.bytes_s or BYTES_S)
        there = self.calibration.messages["round"].seconds[0]
        latency = rate.seconds[0] - there + turns * (network.latency_s or there)
        if network.bytes_s:
            return latency + received / network.bytes_s
        return latency + _along(rate.nbytes, rate.seconds, received) - rate.seconds[0]


def between(sizes: list[float], values: list[float], size: float) -> float:
    """The value at a size, linear in its logarithm, constant beyond the ends."""
    if size <= sizes[0]:
        return values[0]
    for low, high, before, after in zip(sizes, sizes[1:], values, values[1:]):
        if size <= high:
            share = math.log(size / low) / math.log(high / low)
            return before + share * (after - before)
    return values[-1]


def _along(sizes: list[float], values: list[float], size: float) -> float:
    """The value at a size, linear; beyond the largest with the slope of the last piece, or of all if steeper.

    A disturbed last measurement would else make long messages take less than no time.
    """
    if size > sizes[-1]:
        ends = ((0, -1), (-2, -1))
        slope = max((values[b] - values[a]) / (sizes[b] - sizes[a]) for a, b in ends)
        return values[-1] + (size - sizes[-1]) * max(slope, 0.0)
    pieces = list(zip(sizes, sizes[1:], values, values[1:]))
    low, high, before, after = next((piece for piece in pieces if size <= piece[1]), pieces[-1])
    return before + max(size - low, 0) / (high - low) * (after - before)
