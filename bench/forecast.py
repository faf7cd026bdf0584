"""Forecasts of series: a training step beside plain PyTorch, and how good forecasts of drawn series are.

    python bench/forecast.py steps --torch PYTHON [--pairs 9]     PYTHON: an interpreter that has torch
    python bench/forecast.py quality [--seeds 3] [--epochs 20]
    python bench/forecast.py hours [--seeds 3] [--epochs 20]

`steps`: the recurrent network on one batch of windows, by turns in two processes of one thread each, in
processor seconds: what is measured is forward, loss, backward and Adam. Both begin with the same weights;
their losses after the same number of steps are compared. PyTorch's side is bench/forecast_torch.py.
`hours`: intervals of series whose noise changes with the hour, by the hour.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # also without an installation

import networkx as nx
import numpy as np
from mpi4py import MPI

from app.case.file import build
from app.comm.group import Group
from app.device import HostDevice
from app.gnn.forecast.drawn import drawn_series, floor_of
from app.gnn.forecast.forecaster import Forecaster
from app.gnn.forecast.hops import Hops
from app.gnn.forecast.intervals import bound_of, conformal
from app.gnn.forecast.series import SeriesScale
from app.gnn.forecast.training import fit_forecaster
from app.gnn.forecast.windows import SeriesData
from app.gnn.optim import Adam
from app.graphs.formats.memory import stream_of_object
from app.partition.streams import load_stream
from app.rng import stream
from app.sparse.rowblock import RowBlock

RATE, STEPS, NOISE, HOURLY = 0.005, 2, 0.3, 1.5
LEVELS = [0.05, 0.25, 0.5, 0.75, 0.95]
# Nodes, edges that each new node brings, columns, hops, windows of a batch.
SIZES = ((300, 3, 16, 2, 16), (2000, 4, 32, 2, 4), (2000, 4, 64, 1, 2))
GRAPHS = {
    "ba, 300 nodes, season": (lambda seed: nx.barabasi_albert_graph(300, 3, seed=seed), 24),
    "ba, 300 nodes": (lambda seed: nx.barabasi_albert_graph(300, 3, seed=seed), 0),
    "grid, 15 x 15": (lambda seed: nx.convert_node_labels_to_integers(nx.grid_2d_graph(15, 15)), 0),
}


def forecaster_of(
    graph: nx.Graph, settings: dict, steps: int, period: int, seed: int, by_hour: bool = False
) -> Forecaster:
    """A network for series drawn on a graph, on one rank; by_hour: with noise of the measurement that is
    largest in the middle of a period, and none at its end."""
    group = Group(MPI.COMM_SELF, HostDevice())
    base = {
        "run.task": "classify",
        "gnn.level": "forecast",
        "gnn.weight_decay": 0.0,
        "gnn.learning_rate": RATE,
    }
    case = build(base | {"gnn.keep": "best", "forecast.period": period, "seed": seed} | settings)
    loaded = load_stream(group, stream_of_object(graph)[0], case.graph, case)
    block = RowBlock(group, loaded.graph, loaded.rows)
    nodes = np.arange(graph.number_of_nodes())
    S = drawn_series(Hops(group, block, 1), nodes, block.n_own, steps, period, NOISE, seed)
    if by_hour:
        draws = stream(seed, "bench/hours").normal(size=(len(nodes), steps))
        S[: len(nodes), :, 0] += HOURLY * np.sin(np.pi * (np.arange(steps) % period) / period) ** 4 * draws
    learned = int(case.forecast.train * steps + 1e-6)
    scale = SeriesScale.of(group, S, learned, True, block.n_real)
    return Forecaster(group, case.gnn, case.forecast, block, SeriesData(S, scale, False), case.seed)


# ---- a training step --------------------------------------------------------------------------------------


def compare(size: tuple[int, ...], torch: str, pairs: int) -> str:
    """A row of the table: processor seconds of PyTorch over ours."""
    n, d, hidden, hops, windows = size
    graph = nx.barabasi_albert_graph(n, d, seed=1)
    asked = {"gnn.hidden": hidden, "forecast.hops": hops, "forecast.batch": windows, "forecast.base": "last"}
    found = forecaster_of(graph, asked, 60, 0, 1)
    ends = found.windows.parts.ends("train")[:windows]
    batch, rows = found.windows.batch(ends), n * windows
    block = found.block
    held = {
        "inputs": batch.inputs[:, :rows], "last": batch.last[:rows], "target": batch.target[:rows],
        "indptr": block._pointers[0][: n + 1], "indices": block._indices[0], "hops": hops, "rate": RATE,
        **found.params.host(),
    }  # fmt: skip
    optimiser = Adam(found.params.size, found.device.xp, RATE)
    ratios, seconds, apart = [], [], 0.0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "held.npz"
        np.savez(path, **held)
        command = [torch, str(Path(__file__).with_name("forecast_torch.py")), str(path)]
        clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        with subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=clean | {"OMP_NUM_THREADS": "1"},
        ) as other:
            other.stdout.readline()
            for pair in range(pairs + 1):
                other.stdin.write(f"steps {STEPS}\n")
                other.stdin.flush()
                theirs, their_loss = map(float, other.stdout.readline().split())
                ours, our_loss = _our_steps(found, batch, ends, optimiser)
                apart = max(apart, abs(our_loss - their_loss) / their_loss)
                if pair:  # the first one warms up
                    ratios.append(theirs / ours)
                    seconds.append((ours / STEPS, theirs / STEPS))
            other.stdin.close()
    low, median, high = statistics.quantiles(ratios, n=4)
    ours, theirs = (1e3 * statistics.median(each) for each in zip(*seconds))
    sizes = (
        f"{n:,} nodes, {graph.number_of_edges():,} edges, {hidden} columns, {hops} hops, {windows} windows"
    )
    return f"| {sizes} | {ours:.1f} | {theirs:.1f} | {median:.2f} ({low:.2f} to {high:.2f}) | {apart:.0e} |"


def _our_steps(found: Forecaster, batch: object, ends: np.ndarray, optimiser: Adam) -> tuple[float, float]:
    """Processor seconds of some training steps, and the last loss, from a batch that is made."""
    begun, loss = time.process_time(), 0.0
    for _ in range(STEPS):
        found.steps.begin(len(ends))
        Z = found.network.forward(found.steps, batch.inputs)
        losses, D = found._loss(Z, batch, found.windows.known_in(ends))
        found.network.backward(found.steps, D)
        found.steps.reduce()
        loss = found._sum(losses)
        optimiser.update(found.params.flat, found.steps.gradient)
    return time.process_time() - begun, loss


# ---- quality ----------------------------------------------------------------------------------------------


def quality(seeds: int, epochs: int) -> None:
    """Mean absolute errors on the test windows by rule and step of the horizon, means over seeds and sample
    deviations; then what intervals and quantiles of the faster network are worth."""
    print(f"noise floor of the next step: MAE {floor_of(NOISE)['mae']:.4f}")
    for name, (draw, period) in GRAPHS.items():
        table: dict[str, list[list[float]]] = {}
        spread: dict[str, list[list[float]]] = {}
        for seed in range(1, seeds + 1):
            for model in ("recurrent", "temporal"):
                asked = {
                    "forecast.model": model, "forecast.horizon": 6, "gnn.epochs": epochs, "gnn.patience": 4,
                }  # fmt: skip
                found = forecaster_of(draw(seed), asked, 1000, period, seed)
                fit_forecaster(found)
                for rule, errors in found.judge("test", plain=model == "recurrent").items():
                    called = model if rule == "network" else rule
                    maes = errors.by_step[0]
                    row = [errors.whole[0], maes[0], maes[2], maes[5], errors.whole[1]]
                    table.setdefault(called, []).append(row)
            for called, row in _intervals(draw(seed), epochs, period, seed).items():
                spread.setdefault(called, []).append(row)
        print(f"\n{name}\n| | MAE | step 1 | step 3 | step 6 | RMSE |\n|---|---|---|---|---|---|")
        for rule, rows in table.items():
            print(f"| {rule} | {_means(rows)} |", flush=True)
        print("\n| intervals for 0.9 | held | mean width | CRPS |\n|---|---|---|---|")
        for called, rows in spread.items():
            print(f"| {called} | {_means(rows)} |", flush=True)


def _means(rows: list[list[float]]) -> str:
    """Means over seeds and, of several, sample deviations, column by column."""
    means = np.mean(rows, axis=0)
    apart = np.std(rows, axis=0, ddof=1) if len(rows) > 1 else np.zeros(len(means))
    several = len(rows) > 1
    return " | ".join(f"{m:.4f}" + (f" ({d:.4f})" if several else "") for m, d in zip(means, apart))


def _intervals(graph: nx.Graph, epochs: int, period: int, seed: int) -> dict[str, list[float]]:
    """Share of the test values in intervals for 0.9, mean width, CRPS of what they are made of, by kind."""
    asked = {
        "forecast.model": "temporal", "forecast.horizon": 6, "gnn.epochs": epochs, "gnn.patience": 4,
        "forecast.quantiles": LEVELS,
    }  # fmt: skip
    found = forecaster_of(graph, asked, 1000, period, seed)
    fit_forecaster(found)
    judged, made = found.judged("test"), conformal(found, 0.9)
    mae, crps = judged.errors["network"].whole[0], judged.quantiles.told()["crps"]
    kinds = {
        "of one width": (made.constant, mae), "quantiles": (made.raw, crps),
        "conformalised quantiles": (made.held, crps),
    }  # fmt: skip
    return {called: [held.share, held.width, score] for called, (held, score) in kinds.items()}


def hours(seeds: int, epochs: int) -> None:
    """What intervals for 0.9 hold, and how wide they are, in quiet and in noisy hours; means over seeds."""
    period = 24
    asked = {
        "forecast.model": "temporal", "forecast.horizon": 6, "gnn.epochs": epochs, "gnn.patience": 4,
        "forecast.quantiles": LEVELS,
    }  # fmt: skip
    table: dict[str, list[list[float]]] = {}
    for seed in range(1, seeds + 1):
        graph = nx.barabasi_albert_graph(300, 3, seed=seed)
        found = forecaster_of(graph, asked, 1000, period, seed, by_hour=True)
        fit_forecaster(found)
        val, test = (found.scored(part, 0.9) for part in ("val", "test"))
        ends = found.windows.parts.ends("test")
        hour = (ends[:, None] + np.arange(1, found.case.horizon + 1)) % period
        noisy = np.abs(hour - period // 2) <= 3
        deviation = found.scale.deviation[: len(test.away), None, None]
        for called, scores, of, apart in (
            ("of one width", test.away, val.away, np.zeros_like(test.away)),
            ("conformalised quantiles", test.outside, val.outside, test.apart),
        ):
            bound = bound_of(of, 0.9)[:, None]
            wide = np.maximum(apart + 2 * bound, 0) * deviation
            row = []
            for hours_ in (np.ones_like(noisy), noisy, (hour < 4) | (hour >= 20)):
                row += [(scores <= bound)[:, hours_].mean(), wide[:, hours_].mean()]
            table.setdefault(called, []).append(row)
    print("| intervals for 0.9 | all: held | width | noisy hours: held | width | quiet hours: held | width |")
    print("|---|---|---|---|---|---|---|")
    for called, rows in table.items():
        print(f"| {called} | {_means(rows)} |", flush=True)


def main() -> None:
    """Tables on standard output."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=("steps", "quality", "hours"))
    parser.add_argument("--torch", default="")
    for name, usual in (("pairs", 9), ("seeds", 3), ("epochs", 20)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    asked = parser.parse_args()
    if asked.what == "quality":
        quality(asked.seeds, asked.epochs)
        return
    if asked.what == "hours":
        hours(asked.seeds, asked.epochs)
        return
    if not asked.torch:
        parser.error("steps: --torch names an interpreter that has torch")
    print("| batch | ours, ms | PyTorch, ms | ratio | losses apart |\n|---|---|---|---|---|")
    for size in SIZES:
        print(compare(size, asked.torch, asked.pairs), flush=True)


if __name__ == "__main__":
    main()
