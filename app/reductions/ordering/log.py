"""The words of a log of reductions of orders: a rule, then its nodes.

COMPONENTS    arcs between two strongly connected components go: the components have an order in which all of
              these lead forward, and within each the order is free
BEHIND v u    the one net arc into v comes from u, and weighs no less than those out of v together: v stands
              right behind u in some best order, and goes; its arcs out are arcs out of u
BEFORE v u    the one net arc out of v leads to u, and weighs no less than those into v together: v stands
              right before u, and goes; its arcs in are arcs into u

Proof of BEHIND, with w the weight of u -> v. Wherever v stands behind u, moving it up to u pays no new arc:
arcs out of v that are paid lead to nodes before it, and there are fewer of these right behind u. Where v
stands before u, w is paid; right behind u that is saved, and no more than all arcs out of v, w at most, are
paid. So some best order has v right behind u, and what is paid of its arcs is what is paid of the same arcs
out of u. BEFORE is the same with all arcs turned. A node with one arc in and one out is always one of the
two: whichever arc weighs less is what remains.

Where two arcs come to lie between the same nodes, they are added, or the lighter of two opposite ones is paid
in any case: see app/graphs/ordering.py.
"""

COMPONENTS, BEHIND, BEFORE = range(3)
NAMES = ("components", "right behind", "right before")
NODES = (0, 2, 2)  # how many follow each
