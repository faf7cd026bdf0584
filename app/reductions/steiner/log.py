"""The log of reductions of Steiner trees: words, int64. What each entry means, for who writes and who
proves it.

Nodes are called by the numbers of the graph; where two become one, that is called by the smaller number.
What is said holds for the graph as the entries before have left it, of which the shortest of several edges
between two nodes counts. A word that says which entry it is comes first.

    LEAF  v            v is no terminal and has at most one edge: it goes
    PATH  v            v is no terminal and has two edges, to a and b: it goes, and a-b is an edge as long
          as both
    JOIN  k R m W      R: k nodes; W: m nodes of a way from a terminal in R to one outside. It leaves R by
                       one edge, and no other edge that leaves R is shorter than the whole way: some
                       shortest tree has that edge. Its ends become one node, a terminal. Where no other
                       edge leaves R, W is this edge alone, and there are terminals on either side
    DROP  u v m W      W: m nodes of a way from u to v that does not have the edge u-v, which is as long as
                       each part of W between terminals, or longer: the edge goes

Where one terminal is left, nothing else is. What no path joins to the terminals is not part of what is left.
"""

LEAF, PATH, JOIN, DROP = range(4)
