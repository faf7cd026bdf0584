"""Communities: a partition of the nodes whose communities hold more weight than their sizes let expect."""

from functools import partial
from typing import ClassVar

from app.problems.labels import NodeLabels
from app.search.communities.baselines import COMMUNITY_BASELINES
from app.search.communities.tools import CommunityTools
from app.search.solution_text import read_colors
from app.toolbox import Instance


class Communities(NodeLabels):
    """A solution is [n] int64, the community of each node, from 0 on. What it is worth:
    app/graphs/quality.py.
    """

    name = "communities"
    sense = "maximise"
    solution = "partition"
    baselines: ClassVar = COMMUNITY_BASELINES
    read = staticmethod(partial(read_colors, what="community"))

    def toolbox(self, instance: Instance) -> CommunityTools:
        """Joins, a quick start, search and bounds."""
        return CommunityTools(instance, self)
