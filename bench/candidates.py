"""Links of knowledge graphs by softmax over drawn candidates beside softmax over all nodes.

`epoch` times whole epochs of both by turns (processor seconds of one thread); `ranks` trains both and says
how the held-out triples rank. A drawn graph has something to find: nodes lie in groups, a relation leads from
each group to another one, and of the nodes there the k-th is taken 1 / k as often as the first.

    python bench/candidates.py epoch [--path FILE.npz] [--nodes 50000] [--candidates 500 2000] [--rounds 3]
    python bench/candidates.py ranks [--path FILE.npz] [--nodes 10000] [--candidates 0 500 2000] [--seeds 3]
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # also without an installation
from app import threads

threads.limit_threads()

import numpy as np  # noqa: E402
from mpi4py import MPI  # noqa: E402

from app.case.rgcn import RgcnCase, bases_of  # noqa: E402
from app.comm.group import Group  # noqa: E402
from app.device import HostDevice  # noqa: E402
from app.gnn.optim import make_optimiser  # noqa: E402
from app.gnn.rgcn.links import (  # noqa: E402
    DECODERS,
    links_graph,
    links_placement,
    loss_of,
    train_links,
)
from app.gnn.rgcn.model import RGCN, NetShape  # noqa: E402
from app.gnn.rgcn.split import Split, split_triples  # noqa: E402
from app.gnn.rgcn.training import Steps, widths_of  # noqa: E402
from app.graphs.triples.data import Triples, read_triples_npz  # noqa: E402
from bench.harness import quartiles, seconds_of  # noqa: E402

IN_GROUP = 20  # nodes
AS_THE_CASE = {  # inputs/rgcn_links.toml
    "goal": "links", "layers": 1, "bases": 0, "loss": "softmax", "n3": 0.01, "learning_rate": 0.02,
    "schedule": "cosine", "held_out": 0.1, "validation": 0.05,
}  # fmt: skip


def drawn_graph(nodes: int, count: int, relations: int, seed: int = 1) -> Triples:
    """Triples whose objects follow from their subjects' groups, as far as chance leaves them to."""
    draws, groups = np.random.default_rng(seed), nodes // IN_GROUP
    leads = np.stack([draws.permutation(groups) for _ in range(relations)])
    chance = 1 / np.arange(1, IN_GROUP + 1)
    subject, relation = draws.integers(0, groups * IN_GROUP, count), draws.integers(0, relations, count)
    place = draws.choice(IN_GROUP, count, p=chance / chance.sum())
    object_ = leads[relation, subject // IN_GROUP] * IN_GROUP + place
    name = f"groups-{nodes}-{count}-{relations}"
    return Triples(name, nodes, relations, *(x.astype(np.int32) for x in (subject, relation, object_)))


def epochs_of(triples: Triples, split: Split, case: RgcnCase) -> Callable[[int], Any]:
    """What makes an epoch of a training, as links.py does."""
    group = Group(MPI.COMM_SELF, HostDevice())
    graph = links_graph(triples, split, case)
    shape = NetShape(widths_of(case, case.dimension), bases_of(case), 1)
    net = RGCN(group, links_placement(1, graph, case), graph, np.arange(triples.nodes), shape, prune=False)
    decoder = DECODERS[loss_of(case, triples.nodes)](group, split, triples.nodes, triples.relations, case, 1)
    steps, D = Steps(group, case, net), decoder.D
    relation_step = make_optimiser(case, D.size, np, kernel=group.device.adam)

    def epoch(number: int) -> None:
        E_own = net.forward()
        _, dD, dE = decoder.gradients(E_own[: triples.nodes], number + 1, 0, triples.nodes)
        dE_own = np.zeros_like(E_own)
        dE_own[: triples.nodes] = dE
        for gradient in net.gradients(dE_own):
            steps.take(gradient)
        relation_step.update(D.reshape(-1), dD.reshape(-1))

    return epoch


def compared_epochs(triples: Triples, asked: argparse.Namespace) -> Iterator[str]:
    """A line for each number of candidates: how many times longer all nodes take, round by round."""
    split, counts = split_triples(triples, 0.1, 1, 0.05), [0, *asked.candidates]
    cases = [RgcnCase(**AS_THE_CASE, dimension=asked.dimension, candidates=count) for count in counts]
    sides = [epochs_of(triples, split, case) for case in cases]
    taken = np.array(
        [[seconds_of(partial(side, number)) for side in sides] for number in range(asked.rounds)]
    )
    yield f"all nodes: {np.median(taken[:, 0]):.3f} s"
    yield "candidates  epoch, s  ratio [quartiles], rounds"
    for at, count in enumerate(counts[1:], start=1):
        low, median, high = quartiles((taken[:, 0] / taken[:, at]).tolist())
        ratio = f"{median:.1f} [{low:.1f}, {high:.1f}], {asked.rounds}"
        yield f"{count:10d}  {np.median(taken[:, at]):8.3f}  {ratio}"


def compared_ranks(triples: Triples, asked: argparse.Namespace) -> Iterator[str]:
    """A line for each number of candidates, 0: all; of validation and held-out triples, the mean of seeds."""
    yield "candidates  training, s  validation MRR  MRR (least, most)  Hits@1  Hits@3  Hits@10"
    for count in asked.candidates:
        rows, taken, chosen = [], [], []
        for seed in range(1, asked.seeds + 1):
            case = RgcnCase(
                **AS_THE_CASE, dimension=asked.dimension, candidates=count, epochs=asked.epochs,
                evaluate_every=asked.epochs // 3,
            )  # fmt: skip
            split, group = split_triples(triples, 0.1, seed, 0.05), Group(MPI.COMM_SELF, HostDevice())
            found = train_links(group, triples, split, case, seed)
            rows.append(list(found.scores["learned"].values()))
            taken.append(found.seconds)
            chosen.append(max(row["val_score"] for row in found.records))
        mrr, *hits = np.mean(rows, axis=0)
        ends = f"({min(row[0] for row in rows):.3f}, {max(row[0] for row in rows):.3f})"
        words = "  ".join(f"{each:.3f}" for each in hits)
        seconds = quartiles(taken)[1]
        yield f"{count:10d}  {seconds:11.1f}  {np.mean(chosen):14.3f}  {mrr:.3f} {ends}  {words}"


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=["epoch", "ranks"])
    parser.add_argument("--path", help="an .npz of triples in place of a drawn graph")
    for name, usual in (
        ("nodes", 50000), ("triples", 150000), ("relations", 20), ("dimension", 64), ("epochs", 60),
        ("seeds", 1), ("rounds", 3),
    ):  # fmt: skip
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--candidates", type=int, nargs="+", default=[500, 2000])
    asked = parser.parse_args()
    triples = (
        read_triples_npz(asked.path)[0]
        if asked.path
        else drawn_graph(asked.nodes, asked.triples, asked.relations)
    )
    print(f"{triples.name}: {triples.nodes} nodes, {len(triples)} triples, {triples.relations} relations")
    lines = compared_epochs if asked.what == "epoch" else compared_ranks
    for line in lines(triples, asked):
        print(line, flush=True)


if __name__ == "__main__":
    main()
