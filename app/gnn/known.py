"""What trained weights know of the data that they learned from."""

from dataclasses import dataclass

from app.gnn.categories import Categories
from app.gnn.edges import EdgeColumns
from app.gnn.goals import Goal
from app.gnn.scale import Scale


@dataclass(frozen=True)
class Known:
    """What weights bring to a network that they are applied in; what they do not bring is of its data.

    classes        columns of the scores; 0: as many as the data have     goal   what they mean
    inputs         of features that are brought to one scale, or that are categories
    edge_columns   of the features of edges
    positions      the scale of the last columns of features, which are positions
    """

    classes: int = 0
    goal: Goal | None = None
    inputs: Scale | Categories | None = None
    edge_columns: EdgeColumns | None = None
    positions: Scale | None = None


NOTHING = Known()
