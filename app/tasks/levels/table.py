"""What networks learn, by gnn.level."""

from app.tables import Table

# The examples of a level (course.py), read from the files of a case.
LEVELS = Table(
    {
        "node": "app.tasks.levels.nodes:read_nodes",
        "graph": "app.tasks.levels.nodes:read_nodes",
        "edge": "app.tasks.levels.edges:read_edges",
        "link": "app.tasks.levels.links:read_links",
        "embed": "app.tasks.levels.vectors:read_vectors",
    }
)
