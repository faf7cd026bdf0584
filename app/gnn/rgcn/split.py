"""The triples of a knowledge graph to learn from, to choose by, and held out."""

from dataclasses import dataclass

import numpy as np

from app.errors import CaseError
from app.graphs.triples.data import TEST, TRAIN, VALID, Triples
from app.rng import stream


@dataclass(frozen=True, eq=False)
class Split:
    """Distinct triples as rows (subject, relation, object), int64: to learn from, to choose by, held out."""

    train: np.ndarray
    valid: np.ndarray
    test: np.ndarray


def split_triples(triples: Triples, share: float, seed: int, validation: float = 0.0) -> Split:
    """The distinct triples by their sets; of a set that is not given a share of those to learn from.

    share, validation   of TEST and VALID, drawn uniformly, where no triple says that it is of that set
    Raises CaseError where nothing is left to learn from, or nothing to rank.
    """
    rows, valid, test = (np.unique(triples.rows(of), axis=0).astype(np.int64) for of in (TRAIN, VALID, TEST))
    order = stream(seed, "links/split").permutation(len(rows))
    held = 0 if len(test) else round(share * len(rows))
    chosen = held + (0 if len(valid) else round(validation * len(rows)))
    if not held + len(test) or chosen >= len(rows):
        shares = f"{share:g} and {validation:g}"
        raise CaseError(
            f"rgcn.held_out, rgcn.validation: {shares} of {len(rows)} triples; some, not all, would do"
        )
    drawn = [rows[np.sort(part)] for part in np.split(order, [held, chosen])]
    train = drawn[2][np.argsort(drawn[2][:, 1], kind="stable")]
    return Split(train, valid if len(valid) else drawn[1], test if len(test) else drawn[0])
