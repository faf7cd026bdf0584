"""Balanced partition: blocks of nodes, none too heavy, such that edges between them weigh as little as may
be.
"""

from functools import partial
from typing import ClassVar

from app.problems.labels import NodeLabels
from app.search.partition.baselines import PARTITION_BASELINES
from app.search.partition.tools import PartitionTools
from app.search.solution_text import read_colors
from app.toolbox import Instance


class Partition(NodeLabels):
    """A solution is [n] int64, the block of each node, from 0 on. What is asked: app/graphs/balance.py."""

    name = "partition"
    sense = "minimise"
    solution = "blocks"
    baselines: ClassVar = PARTITION_BASELINES
    read = staticmethod(partial(read_colors, what="block"))

    def toolbox(self, instance: Instance) -> PartitionTools:
        """A multilevel start, a search and bounds."""
        return PartitionTools(instance, self)
