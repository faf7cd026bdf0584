"""The words of a log of reductions of dismantling problems; each entry begins with its rule.

Nodes have sizes (app/graphs/sized.py); a set S is one without which no component has more size than K. The
weight of a lightest set of what is left and of what is taken is that of the graph's, since

DROP, k, k nodes       no edge leads from them to others, and their sizes add up to at most K: they go. What
                       of them is in S may leave it, as their components are small without it.
MERGE, v, k, k nodes   no edge leads from these nodes C to others but v; their sizes add up to at most K, and
                       v is no heavier than any of them: they go, and v is larger by their sizes. Where S has
                       one of C, S less all of C with v weighs no more, and leaves C, or parts of it, alone
                       and less of the rest. So some lightest S has none of C, and either v, or C with v.
TAKE, v                v is larger than K: it is in every S, and goes.
PAIR, v, u             an edge joins u and v, which are together larger than K, so that one of them is in S;
                       all other neighbours of u are those of v, too; v is no smaller than u and no heavier:
                       v is taken. Where S has u alone, S less u with v weighs no more, and u has in the
                       component of v the place of v: no more neighbours, no more size.
"""

DROP, MERGE, TAKE, PAIR = range(4)
