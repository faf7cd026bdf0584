"""A knowledge graph of one's own: what kind of thing a node is, and which triples are missing.

python examples/own_triples.py
mpirun -np 2 python examples/own_triples.py
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # also without an installation

import numpy as np
from mpi4py import MPI

from app import classify_relational, predict_links


def small_world(seed: int) -> tuple[list[tuple[str, str, str]], dict[str, str]]:
    """Triples about 60 people, 12 towns and 6 countries, and what each node is."""
    draws, triples = np.random.default_rng(seed), []
    people, towns = [f"person {i}" for i in range(60)], [f"town {i}" for i in range(12)]
    for i, town in enumerate(towns):
        triples.append((town, "in", f"country {i % 6}"))
    for i, person in enumerate(people):
        home = i % 12
        triples.append((person, "lives in", towns[home]))
        triples.append((person, "citizen of", f"country {home % 6}"))
        for friend in draws.choice(60, 3, replace=False).tolist():
            triples.append((person, "knows", people[friend]))
    kinds = {node: node.split()[0] for triple in triples for node in (triple[0], triple[2])}
    return triples, kinds


def main() -> None:
    """Learn from every third node what it is; then hold out a tenth of the triples and rank them."""
    triples, kinds = small_world(seed=1)
    settings = {"rgcn.epochs": 30, "rgcn.bases": 10, "seed": 1}
    found = classify_relational(triples, labels=kinds, train=list(kinds)[::3], settings=settings)
    settings = {"rgcn.layers": 1, "rgcn.dimension": 32, "rgcn.epochs": 40, "rgcn.loss": "softmax", "seed": 1}
    links = predict_links(triples, settings=settings)
    if MPI.COMM_WORLD.rank == 0:
        print(found)
        print(found.nodes[1], "is a", found.predicted[1])
        print(links)
        print("person 0 might know:", ", ".join(node for node, _ in links.objects("person 0", "knows", 3)))


if __name__ == "__main__":
    main()
