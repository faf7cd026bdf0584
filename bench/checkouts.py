"""This checkout beside another one, by turns: what a change of the program gained, in processor time.

    python bench/checkouts.py OTHER epoch [--case "Reddit shape / 10"] [--form "each epoch"] [--pairs 9]
    python bench/checkouts.py OTHER product [--columns 128]
    python bench/checkouts.py OTHER training [--before 60000] [--environments 32] [--batch 64] [--every 128]

OTHER is the folder of a checkout with its kernels built (python setup.py build_ext --inplace). Each side is a
process of its own, on one thread, which answers seconds and what it computed; that both computed the same is
said at the end.

epoch      of bench/gnn_lockstep.py on a case of bench/gnn_subjects.py; FORM: kept, or each epoch
product    of the matrix of a tenth of Reddit's shape and so many columns, with a tiled copy where the program
           makes one
training   1,280 transitions of so many environments (bench/environments.py: BA graphs), minibatches of BATCH
           and a gradient step per EVERY transitions, after so many; the replay memory holds 50,000
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REDDIT = "Reddit shape / 10"
TRANSITIONS = 1280


def main() -> None:
    """Run pairs, who begins changes each time; or serve, as one of the sides."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("other", type=Path, help="folder of the other checkout")
    parser.add_argument("subject", choices=SUBJECTS)
    parser.add_argument("--case", default=REDDIT)
    parser.add_argument("--form", default="each epoch")
    parser.add_argument("--columns", type=int, default=128)
    parser.add_argument("--before", type=int, default=60000)
    parser.add_argument("--environments", type=int, default=32)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--every", type=int, default=128)
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(SUBJECTS[given.subject](given))
        return
    taken = compared([given.other.resolve(), ROOT], sys.argv[1:], given.pairs)
    ratios = sorted(other / ours for other, ours in zip(*taken, strict=True))
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
    other, ours = (1e3 * statistics.median(side) for side in taken)
    print(f"{given.subject}: other {other:.1f} ms, this one {ours:.1f} ms (medians of {given.pairs} pairs)")
    print(f"other / this one {middle:.2f} [{low:.2f}, {high:.2f}]")


def compared(roots: list[Path], words: list[str], pairs: int) -> list[list[float]]:
    """Processor seconds of each side, pair by pair; both compute the same, or SystemExit."""
    sides = [started(root, words) for root in roots]
    taken: list[list[float]] = [[], []]
    told = [ask(side, root)[1] for side, root in zip(sides, roots)]  # the first, which warms up
    for k in range(pairs):
        for i in (0, 1) if k % 2 == 0 else (1, 0):
            seconds, told[i] = ask(sides[i], roots[i])
            taken[i].append(seconds)
    for side in sides:
        side.stdin.close()
        side.wait()
    print(f"both come to {told[0]}" if told[0] == told[1] else f"NOT THE SAME: {told[0]} and {told[1]}")
    return taken


def started(root: Path, words: list[str]) -> subprocess.Popen:
    """One side: this file, with the modules of a checkout."""
    env = dict(os.environ, PYTHONPATH=str(root), OMP_NUM_THREADS="1")
    command = [sys.executable, __file__, *words, "--serve"]
    return subprocess.Popen(
        command, cwd=root, env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )


def ask(side: subprocess.Popen, root: Path) -> tuple[float, str]:
    """(processor seconds, what came of it) of one more run; SystemExit where the side has ended."""
    print(file=side.stdin, flush=True)
    line = side.stdout.readline()
    if not line:
        sys.exit(f"checkouts.py: {root}: its side has ended; what it said is above")
    return tuple(json.loads(line))


def serve(run: Callable[[], str]) -> None:
    """Run once for each line of the input; answer the seconds and what came of it."""
    for _ in sys.stdin:
        begun = time.process_time()
        told = run()
        print(json.dumps([time.process_time() - begun, told]), flush=True)


# ---- what is run, by the modules of the checkout on whose path this process is ----------------------------


def epoch(given: argparse.Namespace) -> Callable[[], str]:
    """An epoch of training; it tells the loss."""
    from bench.gnn_lockstep import Model
    from bench.gnn_subjects import cases

    model = Model(cases(False)[given.case](), given.form, 0.0)
    return lambda: repr(float(model.epoch()))


def product(given: argparse.Namespace) -> Callable[[], str]:
    """Y = A X; it tells the digest of Y."""
    from hashlib import sha256

    import numpy as np

    from bench import subjects
    from bench.gnn_subjects import cases

    case, device = cases(False)[REDDIT](), subjects.open_group().device
    A = device.csr(case.indptr.astype(np.int32), case.indices, None, (case.n, case.n))
    device.tile(A, given.columns)
    X, Y = device.zeros((case.n, given.columns)), device.zeros((case.n, given.columns))
    X[...] = np.random.default_rng(0).standard_normal(X.shape, dtype=np.float32)

    def run() -> str:
        Y[...] = 0
        device.spmm_add(A, X, Y)
        return sha256(Y[:64].tobytes()).hexdigest()[:12]

    return run


def training(given: argparse.Namespace) -> Callable[[], str]:
    """A stretch of training; it tells the digest of the weights."""
    from hashlib import sha256

    from app.case.policy import PolicyCase
    from app.partition.generated import generate_set
    from app.sparse.rowblock import RowBlock
    from bench import environments, subjects

    group = subjects.open_group()
    loaded = generate_set(group, environments.GRAPHS["BA n=50-100 d=4"], 1, "training")
    width = PolicyCase().dimension
    blocks = [RowBlock(group, each.graph, each.rows, "auto", width) for each in loaded]
    loop = environments.Loop(
        group, blocks, environments._case("mvc", given.batch, given.every, given.environments)
    )
    loop.run(given.before)

    def run() -> str:
        loop.run(TRANSITIONS)
        return sha256(loop.replica.learner.params.flat.tobytes()).hexdigest()[:12]

    return run


SUBJECTS = {"epoch": epoch, "product": product, "training": training}


if __name__ == "__main__":
    main()
