"""What every program of bench/links.py is given: the graph that links are learned from (bench/gnn_case.py).

The widths are those of the features and of every layer's output, the last of which scores pairs. Nothing of
`app` is imported here.
"""

from bench.gnn_case import load_case as load_case
