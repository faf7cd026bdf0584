"""What a predictor of links says: how likely pairs are joined, proposals, rows of nodes; their files."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from app.comm.guard import raise_together
from app.gnn.links.best import Partners
from app.gnn.links.predictor import LinkPredictor, told_of
from app.gnn.links.propose import propose, propose_each
from app.gnn.loss import refuse_infinite_rows
from app.graphs.ids import blank_between, plain_ids
from app.tasks.context import Context

LINES = 1 << 16  # of a file that are made at a time


@dataclass(frozen=True)
class Found:
    """What a predictor of links says.

    told      [k, 2] the pairs that predictions tell of, and how likely [k] each is to be joined
    proposed  [p, 2] and [p], the likeliest pairs that no edge joins
    each      the best partners of each node, and how likely [k, K] they are; None: nobody asked
    """

    told: tuple[np.ndarray, np.ndarray]
    proposed: tuple[np.ndarray, np.ndarray]
    each: tuple[Partners, np.ndarray] | None


def find(predictor: LinkPredictor, told: np.ndarray, rows: np.ndarray | None) -> Found:
    """What is asked for of a predictor. Ranks: all call. Raises Diverged where scores are not finite.

    told   [k, 2] the pairs to tell of     rows   of nodes that partners are proposed for; None: of all
    """
    links = predictor.links
    proposed = propose(predictor, links.propose) if links.propose else told[:0]
    both = [(pairs, _likely(predictor, pairs)) for pairs in (told, proposed)]
    return Found(*both, _likely_each(predictor, rows) if links.propose_each else None)


def _likely(predictor: LinkPredictor, pairs: np.ndarray) -> np.ndarray:
    """[k] float32. Ranks: all call. Raises Diverged where scores are not finite."""
    scores = predictor.score_pairs(pairs)
    refuse_infinite_rows(predictor.group, scores[:, None] if predictor.group.rank == 0 else scores[:0, None])
    return told_of(predictor.links, scores)


def _likely_each(predictor: LinkPredictor, rows: np.ndarray | None) -> tuple[Partners, np.ndarray]:
    """What Found.each holds, of the nodes of some rows or of all. Ranks: all call."""
    found = propose_each(predictor, predictor.links.propose_each, rows)
    told = np.where(found.nodes >= 0, found.scores, 0)
    refuse_infinite_rows(predictor.group, told if predictor.group.rank == 0 else told[:0])
    return found, told_of(predictor.links, found.scores)


def gather_rows(predictor: LinkPredictor) -> np.ndarray:
    """[n, d] float32, the rows whose products score pairs. Ranks: all call."""
    block = predictor.block
    own = np.ascontiguousarray(predictor.scores_own()[: block.n_real])
    return predictor.group.gather_host(own, block.rows.row_counts())


def pairs_of_each(found: Partners, likely: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Pairs [k, 2] of nodes with their partners, and how likely [k] they are, some nodes at a time."""
    step = max(LINES // max(found.nodes.shape[1], 1), 1)
    for lo in range(0, len(found.rows), step):
        nodes = found.nodes[lo : lo + step]
        row, place = np.nonzero(nodes >= 0)
        yield np.stack([found.rows[lo + row], nodes[row, place]], axis=1), likely[lo + row, place]


def _pairs_text(ids: np.ndarray, pairs: np.ndarray, likely: np.ndarray) -> str:
    """Lines `id id likelihood`."""
    blank = blank_between(ids)
    ends = (plain_ids(ids[column]) for column in pairs.T)
    return "".join(f"{u}{blank}{v}{blank}{p:.6g}\n" for u, v, p in zip(*ends, likely.tolist()))


def write_found(context: Context, name: str, ids: np.ndarray, found: Found) -> None:
    """predictions/NAME.txt, and proposals where these are asked for. Ranks: all call."""
    folder, group, asked = context.folder, context.group, context.case.links
    with raise_together(group, "writing the predictions"):
        folder.write_text(f"predictions/{name}.txt", _pairs_text(ids, *found.told))
        if asked.propose:
            folder.write_text(f"proposed/{name}.txt", _pairs_text(ids, *found.proposed))
        if found.each is not None and group.rank == 0:
            with folder.placed(f"proposed_each/{name}.txt") as file:
                for pairs, likely in pairs_of_each(*found.each):
                    file.write(_pairs_text(ids, pairs, likely).encode())
