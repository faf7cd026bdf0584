"""The reductions of maximum cut with weighted, signed edges, and the log of those applied.

w(uv) is the weight of an edge, 0 where there is none; N(u) are the neighbours of u in the graph that is left.
A cut is worth the weight between its two sides; turning over all nodes changes nothing. Each rule takes nodes
out and changes weights between those that stay, so that with the best sides of what it took out every cut of
what stays is worth as much as before, but for a constant, which is added to the offset. So a cut of the
kernel lifts to one that is worth the offset more, also where it is not the best.

A log is one int64 array of entries (rule, number of words, words):

TIE       u, v, apart       The caller wants u on v's side, or (apart = 1) on the other.
MERGE     u, v, apart       2 |w(uv)| >= sum of |w(ux)| over N(u): whatever the others do, u is best on v's
                            side where w(uv) < 0, on the other where w(uv) > 0. Every node with at most two
                            neighbours has such a v.
TWIN      u, v, apart       u and v are not joined, and w(ux) = c w(vx) for all x, with c > 0 (apart = 0) or
                            c < 0 (apart = 1): what is best for one is best for the other.
TRIANGLE  u, (x, w(ux))*3   N(u) = {a, b, c}. What u adds, at its best, depends on which of a, b, c is apart
                            from the other two: with S = w(ua) + w(ub) + w(uc) it is f = max(0, S) where none
                            is, and f(a) = max(w(ua), S - w(ua)) where a is. A triangle with the weights
                                w(ab) += (f(a) + f(b) - f(c) - f) / 2,    and so on,
                            adds f(a) - f where a is apart: the same. Done where these are whole numbers.
CLIQUE    w, i, I, E        The i >= |E| - 1 nodes of I have w(uv) = w > 0 with each other and all of E, and
                            no other neighbours. For k = i + |E| and t nodes of E on side 1 they can be dealt
                            so that all k nodes are halved: with edges of weight w between all of E that is
                            worth w floor(k^2 / 4), of which w t (|E| - t) lies within E. So each pair of E
                            loses the weight w.

TIE, MERGE and TWIN put u and v together: u's edge to x goes to v with its weight, turned where they are
apart. Weights are whole numbers in a unit so small that halves can be taken a few times; a triangle that
would need a finer one is left out. No rule makes the sum of |w| larger.

Source   MERGE: Lange, Andres and Swoboda 2019 ("dominant edges"); TRIANGLE: the star-triangle exchange of
         Ising spins, here at zero temperature and with signs; CLIQUE with unit weights and E joined, TWIN:
         Ferizovic, Hespe, Lamm, Mnich, Schulz and Strash 2020.
"""

import numpy as np

from app.reductions.cover.log import entries

RULES = ("tie", "merge", "twin", "triangle", "clique")
TIE, MERGE, TWIN, TRIANGLE, CLIQUE = range(len(RULES))

PASSES = 32  # over all nodes for TWIN and CLIQUE, at most
PLACES = 8  # how often weights may be halved, at most
LARGEST = 1 << 51  # the sum of |w| over both directions of every edge, in the small unit


def lift(log: np.ndarray, sides: np.ndarray) -> None:
    """Complete a cut of what is left, sides [n] bool, to one of the whole graph: the log backwards."""
    for rule, words in reversed(list(entries(log))):
        if rule == TRIANGLE:
            pull = sum(w if sides[x] else -w for x, w in zip(words[1::2], words[2::2]))
            sides[words[0]] = pull < 0
        elif rule == CLIQUE:
            inside, outside = clique_parts(words)
            ones = (len(inside) + len(outside)) // 2 - int(sides[outside].sum())
            sides[inside] = np.arange(len(inside)) < ones
        else:
            sides[words[0]] = sides[words[1]] ^ bool(words[2])


def renumbered(log: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """A log [words] int64 whose nodes have other numbers [k], which ascend with their own."""
    out = [np.empty(0, dtype=np.int64)]
    for rule, words in entries(log):
        told = np.array(words, dtype=np.int64)
        if rule == TRIANGLE:
            places = np.array([0, 1, 3, 5])
        elif rule == CLIQUE:
            places = np.arange(2, len(words))
        else:
            places = np.arange(2)
        told[places] = numbers[told[places]]
        out += [np.array([rule, len(words)], dtype=np.int64), told]
    return np.concatenate(out)


def clique_parts(words: list[int]) -> tuple[list[int], list[int]]:
    """I and E of a CLIQUE entry."""
    return words[2 : 2 + words[1]], words[2 + words[1] :]


def triangle(a: int, b: int, c: int) -> tuple[int, tuple[int, int, int]] | None:
    """f, and what TRIANGLE adds to w(ab), w(ac), w(bc), for weights a, b, c of the star; None for halves."""
    total = a + b + c
    base = max(0, total)
    more = [max(w, total - w) - base for w in (a, b, c)]
    found = more[0] + more[1] - more[2], more[0] + more[2] - more[1], more[1] + more[2] - more[0]
    if any(w % 2 for w in found):
        return None
    return base, (found[0] // 2, found[1] // 2, found[2] // 2)
