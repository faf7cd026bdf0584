"""The reductions of minimum-weight vertex cover, and the log of those applied.

Weights are positive whole numbers, N(v) the neighbours of v, N[v] those and v, all in the graph that is left.
Each rule changes the optimum by a known amount, which is added to the offset. Nodes go with their edges.

A log is one int64 array of entries (rule, number of words, words):

NEIGHBOURS  v, N(v)           No independent set in N(v) is heavier than v: N(v) goes into the cover. With one
                              neighbour this is the rule of degree 1, with two adjacent ones the triangle.
CLIQUE      v, some of N(v)   N(v) is a clique; those of it not heavier than v go into the cover.
TRANSFER    v, N(v)           N(v) is a clique, each of it heavier than v: w(v) is paid for each of them and
                              taken off its weight, v is dropped. v is in the cover unless all of N(v) is.
FOLD        v, x, others      N(v) = {x, others} is independent, heavier than v, and not so without its
                              lightest node: it is in the cover as a whole or not at all. w(v) is paid; x
                              stands for N(v) with the neighbours of all and w(N(v)) - w(v); v and the
                              others are dropped.
TWIN        v, u              N(u) = N(v): u is dropped, v gets the weight of both.
UNCONFINED  v, (u, x)*, u     v goes into the cover. If every optimal cover left it out, they all would
                              leave out the set S that begins as {v}: a u in N(S) with w(u) >= w(N(u) & S)
                              could be left out instead of N(u) & S, but for neighbours outside N[S]. Where
                              that is one node x, x joins S; where there is none, this is a contradiction.
                              Without pairs this is domination, N[u] inside N[v].
CROWN       k, I, (i, c, f)*  I has k nodes and is independent; C = N(I) goes into the cover. Flows f on edges
                              i-c add up to w(c) at each c in C, and to at most w(i) at each i in I.
TAKE        v                 A choice, not a reduction: v goes into the cover.

Source   NEIGHBOURS, CLIQUE, TRANSFER, FOLD, TWIN: Lamm, Schulz, Strash, Williger and Zhang 2019; folding with
         unit weights: Chen, Kanj and Jia 2001; UNCONFINED: Xiao and Nagamochi 2013, here with weights; CROWN:
         Nemhauser and Trotter 1975, Iwata, Oka and Yoshida 2014.
"""

from collections.abc import Iterator

import numpy as np

RULES = ("neighbours", "clique", "transfer", "fold", "twin", "unconfined", "crown", "take")
NEIGHBOURS, CLIQUE, TRANSFER, FOLD, TWIN, UNCONFINED, CROWN, TAKE = range(len(RULES))

# Where rules stop looking, so that the work stays near the size of the graph. As in app/native/reduce.c.
LARGEST_CLIQUE = 8  # neighbours in CLIQUE and TRANSFER
LARGEST_FOLD = 3  # neighbours in FOLD; in NEIGHBOURS where their sum is heavier than v
LARGEST_TWIN = 8  # neighbours of twins
TWIN_SCAN = 64  # neighbours of the node through which a twin is sought
NEAR = 32  # degree up to which a changed node has its neighbours looked at again by UNCONFINED
CHAIN = 16  # pairs in UNCONFINED
READS = 8192  # entries of rows read in one search for UNCONFINED, after which no further u is looked at
HALF_ARCS = 1 << 28  # twice the edges up to which CROWN is tried
CHOSEN_ARCS = 1 << 20  # the same after TAKE
PHASES = 32  # of the flow for CROWN, after TAKE: where that is not enough nothing is decided


def entries(log: np.ndarray) -> Iterator[tuple[int, list[int]]]:
    """(rule, words) of every entry of a log [words] int64, in order."""
    words = log.tolist()
    at = 0
    while at < len(words):
        end = at + 2 + words[at + 1]
        yield words[at], words[at + 2 : end]
        at = end


def parsed(log: np.ndarray) -> Iterator[tuple[int, list[int], bool]]:
    """(rule, words, whole) of every entry of a log that may be damaged; one that is not whole is the last."""
    words, at = np.asarray(log), 0
    while at < len(words):
        rule, length = (*words[at : at + 2].tolist(), -1)[:2]
        entry = words[at + 2 : at + 2 + max(length, 0)].tolist() if length <= len(words) else []
        yield rule, entry, 0 < length == len(entry)
        at += 2 + len(entry) if 0 < length == len(entry) else len(words)


def renumbered(log: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """A log [words] int64 whose nodes have other numbers [k], which ascend with their own."""
    out = [np.empty(0, dtype=np.int64)]
    for rule, words in entries(log):
        nodes = np.array(words, dtype=np.int64)
        if rule == CROWN:
            nodes[1 : 1 + words[0]] = numbers[nodes[1 : 1 + words[0]]]
            flows = nodes[1 + words[0] :].reshape(-1, 3)
            flows[:, :2] = numbers[flows[:, :2]]
        else:
            nodes = numbers[nodes]
        out += [np.array([rule, len(words)], dtype=np.int64), nodes]
    return np.concatenate(out)


def crown_parts(words: list[int]) -> tuple[list[int], list[tuple[int, int, int]]]:
    """The nodes left out, and the flows (i, c, f), of a CROWN entry."""
    flows = words[1 + words[0] :]
    return words[1 : 1 + words[0]], list(zip(flows[::3], flows[1::3], flows[2::3]))


def lift(log: np.ndarray, in_cover: np.ndarray) -> None:
    """Complete a cover of what is left, in_cover [n] bool, to one of the whole graph: the log backwards."""
    for rule, words in reversed(list(entries(log))):
        if rule in (NEIGHBOURS, CLIQUE):
            in_cover[words[1:]] = True
        elif rule == TRANSFER:
            in_cover[words[0]] = not in_cover[words[1:]].all()
        elif rule == FOLD:
            in_cover[words[2:]] = in_cover[words[1]]
            in_cover[words[0]] = not in_cover[words[1]]
        elif rule == TWIN:
            in_cover[words[1]] = in_cover[words[0]]
        elif rule == CROWN:
            in_cover[[c for _, c, _ in crown_parts(words)[1]]] = True
        else:  # UNCONFINED, TAKE
            in_cover[words[0]] = True
