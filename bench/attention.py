"""Which of many neighbours a node needs: GAT and GATv2 on dictionaries (Brody et al. 2022, section 4.1).

Each of k questions hears all k answers of its graph. An answer's features are its key and its value, a
question's are its key; its class is the value of the answer with that key. A third of the graphs are to test.

    python bench/attention.py [--keys 10] [--graphs 300] [--epochs 400] [--seeds 3]
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # also without an installation

import numpy as np
import scipy.sparse as sp

from app import classify

Dictionaries = tuple[sp.csr_array, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def dictionaries(k: int, count: int, seed: int) -> Dictionaries:
    """Arcs from answers to questions, features, classes (-1: none), nodes to train on and to test."""
    draws, n = np.random.default_rng(seed), 2 * k * count
    values = np.array([draws.permutation(k) for _ in range(count)])
    first = 2 * k * np.arange(count)[:, None]
    answers, questions = first + np.arange(k), first + k + np.arange(k)
    X, labels = np.zeros((n, 2 * k), dtype=np.float32), np.full(n, -1)
    X[answers, np.arange(k)] = X[questions, np.arange(k)] = X[answers, k + values] = 1
    labels[questions] = values
    pairs = np.repeat(answers, k, axis=1).ravel(), np.tile(questions, k).ravel()
    A = sp.csr_array((np.ones(k * k * count), pairs), shape=(n, n))
    cut = 2 * count // 3
    return A, X, labels, questions[:cut].ravel(), questions[cut:].ravel()


def main() -> None:
    """A line for each layer and number of heads: training and test accuracy of each seed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for name, usual in (("keys", 10), ("graphs", 300), ("epochs", 400), ("seeds", 3)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    asked = parser.parse_args()
    A, X, labels, train, test = dictionaries(asked.keys, asked.graphs, seed=1)
    print(f"{'layer':8} {'heads':>5}  test accuracy, % (training)")
    for model in ("gat", "gatv2"):
        for heads in (1, 8):
            settings = {
                "gnn.layers": [f"{model} 64 heads={heads}", "dense"], "graph.neighbours": "in",
                "gnn.epochs": asked.epochs, "gnn.evaluate_every": asked.epochs, "gnn.dropout": 0.0,
                "gnn.input_dropout": 0.0,
                "gnn.weight_decay": 0.0, "gnn.feature_rows": "as_given", "gnn.baselines": False,
            }  # fmt: skip
            words = []
            for seed in range(1, asked.seeds + 1):
                found = classify(
                    A, X, labels=labels, train=train, test=test, settings={**settings, "seed": seed}
                )
                right = {split: 100 * found.scores[split].accuracy for split in ("test", "train")}
                words.append(f"{right['test']:.1f} ({right['train']:.1f})")
            print(f"{model:8} {heads:5}  {', '.join(words)}", flush=True)


if __name__ == "__main__":
    main()
