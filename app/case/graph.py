"""The table of graphs: files and generators."""

from typing import Annotated, Literal

from msgspec import Meta

from app.case.table import AboveZero, Amount, BelowOne, Count, Positive, Share, Table, about


class GraphCase(Table, frozen=True):
    """Graphs: read from files, generated, or both (the files come first)."""

    path: Annotated[str | list[str], about('a file, a glob, "networkx:NAME", or a list of these')] = []  # noqa: RUF012 -- a Struct copies it
    format: Annotated[
        Literal[
            "auto",
            "edges",
            "matrix_market",
            "metis",
            "dimacs",
            "gset",
            "pace2022",
            "lolib",
            "stp",
            "qubo",
            "qaplib",
            "sets",
            "gmt",
            "hgr",
            "scp",
            "npz",
            "networkx",
            "tsplib",
            "solomon",
            "ogb",
            "ppi",
            "graphsage",
            "tu",
        ],
        about(
            "of the files; auto: by the ending and the first lines; ogb, ppi, tu: folders of these data "
            "sets; graphsage: PREFIX-G.json, other files beside it"
        ),
    ] = "auto"
    ids: Annotated[
        Literal["numbers", "names"],
        about('of the nodes of an edge list; names: any text, such as "TP53 MDM2"'),
    ] = "numbers"
    features: Annotated[
        str,
        about(
            "file of node features: .npy, .npz or text, a row for each node; degrees: one of 64 ranges of "
            'degrees; "": those in graph.path, of gnn.level = "graph" else degrees'
        ),
    ] = ""
    edge_features: Annotated[
        str,
        about(
            "file of edge features: .npy, .npz or text, a row for each edge in the order of graph.path; "
            'gine, edge_gat and edge_gatv2 read them; "": those in graph.path'
        ),
    ] = ""
    edge_labels: Annotated[
        str,
        about(
            'gnn.level = "edge": file of classes of the edges (of numbers with gnn.goal = "values"): .npy, '
            '.npz or text, a row for each edge in the order of graph.path; "": those in graph.path'
        ),
    ] = ""
    edge_splits: Annotated[
        str,
        about(
            'gnn.level = "edge": file of the edges to train on, validate and test, a row for each edge; '
            "random: each labelled one with probability .6, .2, .2"
        ),
    ] = ""
    edge_data_by: Annotated[
        Literal["order", "ends"],
        about(
            "edge_labels, edge_splits; order: a line for each edge, in the order of graph.path; ends: lines "
            "of text in any order that begin with the ids of two nodes that an edge joins"
        ),
    ] = "order"
    labels: Annotated[
        str,
        about(
            'file of classes: .npy, .npz or text, a row for each node (gnn.level = "graph": for each graph); '
            '"": those in graph.path'
        ),
    ] = ""
    splits: Annotated[
        str,
        about(
            "file of the nodes (graphs) to train on, validate and test; random: each labelled one with "
            'probability .6, .2, .2; "": those in graph.path'
        ),
    ] = ""
    series: Annotated[
        str,
        about(
            'gnn.level = "forecast": file of a number for each step of time and node: .npy or .npz, '
            "T x nodes (x channels) in the order of the ids, or text, a line for each step under a line "
            "of ids; diffusion: drawn, of a generated graph"
        ),
    ] = ""
    covariates: Annotated[
        str,
        about(
            'gnn.level = "forecast": file of numbers that are known beforehand of each step of time and '
            "node, as graph.series (.npz: the array covariates): of the steps of the series and, after their "
            "end, of those of the horizon"
        ),
    ] = ""
    shared_covariates: Annotated[
        str,
        about(
            "the same of all nodes alike, as holidays: .npy or .npz, T or T x columns, or text, a line for "
            "each step under a line of titles, of which a first one time, date, datetime, timestamp, step "
            "or nothing is not read"
        ),
    ] = ""
    series_steps: Annotated[Positive, about("steps of time of drawn series")] = 1000
    series_noise: Annotated[Amount, about("deviation of what drawn series cannot tell of the next step")] = (
        0.3
    )
    node_data_by: Annotated[
        Literal["order", "id"],
        about(
            "features, labels, splits; order: a line for each node, in the order of the ids; id: lines of "
            'text in any order that begin with an id (gnn.level = "graph": labels and splits, with the name '
            "of a graph)"
        ),
    ] = "order"
    neighbours: Annotated[
        Literal["both", "in", "out"],
        about(
            "whose rows a node's layer sums: both: of all neighbours, whatever the direction of the edges; "
            "in: of the tails of the edges into it; out: of the heads of those out of it"
        ),
    ] = "both"
    node_weights: Annotated[
        str,
        about(
            "file of a weight for each node, for mvc, mis, mds, fvs, dfvs, dismantle, clique "
            "(influence: of a cost for each node, set_cover, coverage: for each set, hitting_set: for each "
            "element; facility: of what opening a node costs, else of demands): lines of an id and a number, "
            'or .npy; "": those in graph.path'
        ),
    ] = ""
    element_weights: Annotated[
        str,
        about(
            "coverage: file of a weight for each element: lines of an id and a number, or .npy; "
            '"": those in graph.path, else all one'
        ),
    ] = ""
    terminals: Annotated[
        str,
        about(
            "steiner: file of the nodes that a tree has to hold, an id on each line; "
            '"": those in graph.path (SteinLib), or problem.terminals'
        ),
    ] = ""
    prizes: Annotated[
        str,
        about(
            "steiner: file of what a tree loses of nodes that it leaves out: lines of an id and a number "
            '(0 of nodes without a line), or .npy; "": those in graph.path (SteinLib), or none'
        ),
    ] = ""
    demands: Annotated[
        str,
        about(
            "cvrp: file of what each customer needs, beside points or distances: a number on each line, in "
            'the order of the ids, or an id and a number; "": those in graph.path (CVRPLIB); facility: of '
            'what each node needs, likewise; "": one each'
        ),
    ] = ""
    onto: Annotated[
        str,
        about(
            "alignment, qap: file of the second graph, read as graph.path is: the one whose nodes those of "
            'graph.path are put on; "": graph.path holds both (QAPLIB)'
        ),
    ] = ""
    seeds: Annotated[
        str,
        about(
            "alignment, qap: file of pairs that are known, and stay: lines of the id of a node of graph.path "
            "and of the node of graph.onto that it is put on"
        ),
    ] = ""
    similarity: Annotated[
        str,
        about(
            "alignment: file of what pairs add to the objective by themselves, lines of two ids as of "
            "graph.seeds and a number (0 of pairs without a line); qap: of what they cost"
        ),
    ] = ""
    order: Annotated[
        Literal["natural", "random", "rcm", "blocks", "metis"],
        about(
            "of the rows, before they are dealt; rcm: reverse Cuthill-McKee; blocks: by those of a balanced "
            "partition with few edges between them; metis: likewise, by METIS (pymetis)"
        ),
    ] = "natural"
    generator: Annotated[
        Literal[
            "",
            "er",
            "arcs",
            "ba",
            "torus",
            "small_world",
            "geometric",
            "motifs",
            "mixed",
            "varied",
            "diverse",
            "rmat",
            "rmat_natural",
            "chung_lu",
            "bter",
            "sbm",
            "bipartite",
            "sets",
            "uniform_points",
            "customers",
        ],
        about(
            "er: Erdos-Renyi; arcs: likewise, with directions, for dfvs and ordering; ba: Barabasi-Albert; "
            "torus: square grid, closed; small_world: Watts-Strogatz; "
            "geometric: points that are near each other; motifs: trees with one of random_classes motifs, "
            "which is a graph's class; rmat; rmat_natural: rmat, hubs first; chung_lu: "
            "power-law degrees; bter: these and triangles; sbm: communities, which are the classes; "
            "bipartite: likewise, of two sides, the last `elements` nodes the second; "
            "sets: a random family of sets, for set_cover, hitting_set and coverage; "
            "uniform_points: in the unit square, for tours; customers: with demands around a depot, for "
            "cvrp; by turns: mixed: ba, er; varied: ba, er, torus; "
            "diverse: nine families with keys of their own, sparse and dense"
        ),
    ] = ""
    edge_weights: Annotated[
        Literal["one", "signs", "whole", "normal", "mixed"],
        about(
            "of a generated graph: all one; 1 or -1; 1 to 100; normal of variance 1, in 64ths; mixed: one, "
            "signs, normal by turns"
        ),
    ] = "one"
    nodes: Annotated[int | tuple[int, int], about("of a generated graph, or drawn from [lo, hi]")] = 0
    elements: Annotated[
        Count,
        about(
            "sets: elements, beside so many sets as nodes says; 0: as many; bipartite: how many of the nodes "
            "are on the second side; 0: half"
        ),
    ] = 0
    members: Annotated[
        Literal["even", "skewed", "near", "mixed"],
        about(
            "sets: which elements a set holds: all are as probable; sizes, and how often elements occur, by "
            "power laws; those near it; mixed: by turns, in place of p 3 to 30 sets for each element, and of "
            "elements as many as sets, half or twice as many"
        ),
    ] = "even"
    costs: Annotated[
        Literal["one", "whole", "mixed"], about("sets: of the sets: one; 1 to 100; mixed: by turns")
    ] = "one"
    p: Annotated[
        Share,
        about(
            "er, arcs: probability of an edge; small_world: that the far end of one is moved; sets: that an "
            "element is in a set"
        ),
    ] = 0.15
    d: Annotated[
        Positive,
        about(
            "ba: edges that each new node brings; small_world: neighbours ahead; rmat, chung_lu, bter, "
            "geometric: edges per node"
        ),
    ] = 4
    edges: Annotated[
        Count,
        about("rmat, chung_lu, bter: edges drawn, repeats included; geometric: expected; 0: nodes x d"),
    ] = 0
    depot_at: Annotated[Literal["random", "center", "corner"], about("customers: where the depot is")] = (
        "random"
    )
    customers_at: Annotated[
        Literal["random", "clusters", "both"],
        about("customers: spread evenly, in clusters, or half of each"),
    ] = "both"
    least_demand: Annotated[Positive, about("customers: of one, at least")] = 1
    most_demand: Annotated[Positive, about("customers: of one, at most")] = 100
    stops: Annotated[float, Meta(ge=1.0, le=1e6), about("customers: how many a vehicle can serve, about")] = (
        9.3
    )
    window: Annotated[
        Count, about("customers: width of the time windows, around a time that a vehicle can come; 0: none")
    ] = 0
    service: Annotated[Count, about("customers: time of a service, where there are windows")] = 10
    removed: Annotated[Share, about("torus: share of the edges left out")] = 0.0
    exponent: Annotated[
        float, Meta(gt=2.0, le=100.0), about("chung_lu, bter: of the power law of the expected degrees")
    ] = 2.3
    degrees_of: Annotated[
        str, about('bter: a graph file whose degrees are taken instead of a power law; "": none')
    ] = ""
    degree_scale: Annotated[AboveZero, about("bter: factor of all expected degrees")] = 1.0
    clustering: Annotated[
        BelowOne, about("bter: clustering coefficient of nodes of degree 2, falling with the degree")
    ] = 0.6
    clustering_decay: Annotated[Amount, about("bter: of its logarithm, for each degree more")] = 0.02
    degree_in: Annotated[
        Amount, about("sbm, bipartite: mean degree (first side's) within the own community")
    ] = 8.0
    degree_out: Annotated[
        Amount, about("sbm, bipartite: mean degree (first side's) to other communities")
    ] = 2.0
    random_classes: Annotated[
        Count,
        about(
            "of a generated graph: random labels; sbm, bipartite: communities, which are the labels (gnn."
            'level = "edge": whether an edge joins two of them)'
        ),
    ] = 0
    random_features: Annotated[
        Count,
        about("of a generated graph: random numbers for each node; sbm, bipartite: around the class's mean"),
    ] = 0
    signal: Annotated[
        Amount, about("sbm, bipartite: distance of the class means from zero, by the noise of one number")
    ] = 1.0
    rmat_a: Annotated[Share, about("rmat: share of the edges in the first quarter of the matrix")] = 0.57
    rmat_b: Annotated[Share, about("rmat: in the upper right quarter")] = 0.19
    rmat_c: Annotated[Share, about("rmat: in the lower left quarter; the last one gets the rest")] = 0.19
    count: Annotated[Positive, about("generated graphs")] = 1
    generator_seed: Annotated[int, Meta(ge=-1), about("seed of the generator; -1: the case's seed")] = -1
    complement: Annotated[bool, about("use the complement graph (small graphs only)")] = False
    self_loops: Annotated[Literal["drop", "error"], about("in a file; drop: count and ignore them")] = "drop"
    duplicates: Annotated[Literal["merge", "error"], about("an edge given twice; merge: keep one")] = "merge"


OF_POINTS = ("uniform_points", "customers")  # generators of points, which know all distances
PLANTED = ("sbm", "bipartite")  # generators whose communities are the classes
# Keys that generators read, and those that all do.
OF_GENERATED = ("nodes", "count", "random_classes", "random_features")
_POWER_LAW = ("d", "edges", "exponent")
_TRIANGLES = ("degrees_of", "degree_scale", "clustering", "clustering_decay")
_QUARTERS = ("rmat_a", "rmat_b", "rmat_c")
_COMMUNITIES = ("degree_in", "degree_out", "signal")
BY_GENERATOR: dict[str, tuple[str, ...]] = {
    "er": ("p",),
    "arcs": ("p",),
    "ba": ("d",),
    "torus": ("removed",),
    "small_world": ("d", "p"),
    "geometric": ("d", "edges"),
    "motifs": (),
    "mixed": ("d", "p"),
    "varied": ("d", "p", "removed"),
    "diverse": (*_QUARTERS, "degree_scale", "clustering_decay"),  # the others by turns
    "rmat": ("d", "edges", *_QUARTERS),
    "rmat_natural": ("d", "edges", *_QUARTERS),
    "chung_lu": _POWER_LAW,
    "bter": (*_POWER_LAW, *_TRIANGLES),
    "sbm": _COMMUNITIES,
    "bipartite": ("elements", *_COMMUNITIES),
    "sets": ("elements", "p", "members", "costs"),
    "uniform_points": (),
    "customers": (
        "depot_at", "customers_at", "least_demand", "most_demand", "stops", "window", "service",
    ),
}  # fmt: skip
GRAPH_FILES = (
    "features",
    "edge_features",
    "edge_labels",
    "edge_splits",
    "labels",
    "splits",
    "degrees_of",
    "node_weights",
    "terminals",
    "prizes",
    "demands",
    "onto",
    "seeds",
    "similarity",
    "series",
    "covariates",
    "shared_covariates",
)  # keys of such a table that name a file
# What keys of such a table may say in place of a file.
WORDS = {"splits": "random", "features": "degrees", "edge_splits": "random", "series": "diffusion"}
BY_EDGE = ("edge_features", "edge_labels", "edge_splits")  # keys of files that tell of edges
GRAPH_FOLDERS = ("ogb", "ppi", "tu")  # formats whose graph.path is a folder
# Tables of labels that go with a text file of triples where no key names others, in its folder.
LABEL_TABLES = {"train_labels": "trainingSet.tsv", "test_labels": "testSet.tsv"}
GRAPH_BESIDE = {  # formats whose files go together: how the name of the first ends, and those of the others
    "ppi": ("_graph.json", ("_feats.npy", "_labels.npy")),
    "graphsage": ("-G.json", ("-feats.npy", "-id_map.json", "-class_map.json")),
    "tu": (
        "_A.txt",
        tuple(
            f"_{name}.txt"
            for name in (
                "graph_indicator",
                "graph_labels",
                "graph_attributes",
                "node_labels",
                "node_attributes",
                "edge_labels",
                "edge_attributes",
            )
        ),
    ),
}
