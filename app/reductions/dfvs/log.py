"""The words of a log of reductions of directed feedback vertex sets: a rule, then its nodes.

PIE           arcs between two strongly connected components of the graph without mutual arcs go
DROP v        v has no arc in, or none out: it is on no cycle, and goes
LOOP v        v has an arc to itself, and is taken
BYPASS v      one node alone has arcs to v, or one alone has arcs from it, and is no dearer: whoever takes v
              may take that one instead. v goes, and what comes in goes on
TAKE u v      u and v have arcs to each other, so that one of them has to be taken; all other arcs into v come
              from nodes with an arc to u, all others out of v lead where u has an arc, too, and u is no
              dearer: it is taken
DOME u v      all arcs into u, but mutual ones, come from nodes with an arc to v, or all out of v, but mutual
              ones, lead where u has an arc: no cycle without a chord has the arc u -> v, which goes

An arc is mutual where there is one the other way. A set leaves no cycle if it leaves none without a chord;
one of three nodes or more that has no chord has no mutual arc.

Source   DROP, LOOP, BYPASS: Levy and Low, A contraction algorithm for finding small cycle cutsets, Journal of
         Algorithms 1988; PIE, DOME, and CORE, which is TAKE of all but one node of a clique: Lin and Jou, On
         computing the minimum feedback vertex set of a directed graph by contraction operations, IEEE
         Transactions on Computer-Aided Design 2000
"""

PIE, DROP, LOOP, BYPASS, TAKE, DOME = range(6)
NAMES = ("components", "degree 0", "loops", "bypassed", "taken", "dominated arcs")
NODES = (0, 1, 1, 1, 2, 2)  # how many follow each
