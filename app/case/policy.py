"""The tables of learned policies: problem, network, agent, training, selection."""

from typing import Annotated, Literal

from msgspec import Meta

from app.case.graph import GraphCase
from app.case.table import AboveZero, Amount, BelowOne, Count, Positive, Share, Table, about


class ProblemCase(Table, frozen=True):
    """The optimisation problem."""

    name: Annotated[
        str,
        about(
            "mvc: minimum vertex cover; mis: maximum independent set; mds: minimum dominating set; "
            "fvs: minimum feedback vertex set, the fewest nodes that all cycles go through; "
            "clique: maximum clique; maxcut: maximum cut by moves that may be undone, maxcut_once: by moves "
            "that last; qubo: the least value of a quadratic function of 0-1 variables, of which edges and "
            "loops of the graph are the terms; ising: the same of spins, -1 or 1; set_cover: the fewest "
            "sets of a family that hold all elements; hitting_set: the fewest elements that meet all sets; "
            "coverage: sets for problem.budget that hold as many elements as possible; influence: the "
            "nodes, for problem.budget, from which news is expected to reach most others ([influence]); "
            "coloring: the fewest colours such that adjacent nodes have different ones; communities: a "
            "partition whose communities hold more weight than problem.null lets expect; partition: at most "
            "problem.parts blocks of nodes, none heavier than problem.imbalance allows, such that edges "
            "between them weigh as little as may be; steiner: the shortest tree that holds all terminals "
            "(graph.terminals), or pays the prizes of nodes that it leaves out (graph.prizes); "
            "dfvs: the fewest nodes without which a directed graph has no directed cycle; "
            "ordering: an order of the nodes of a directed graph in which the arcs that lead backward weigh "
            "as little as may be (minimum feedback arc set, linear ordering); "
            "dismantle: the fewest nodes without which no component has more than problem.component; "
            "treewidth: an order in which to eliminate all nodes, and its tree decomposition, of the least "
            "width, or fill-in (problem.eliminate); "
            "arrangement: the nodes in an order in which edges are short (problem.arrange); "
            "facility: the nodes that serve all others at the least cost (problem.facility); "
            "dense: the nodes with most weight of edges among them (problem.dense); "
            "alignment: the nodes of a graph on those of another (graph.onto), such that as many edges as "
            "may be, or as much weight, are on edges; qap: quadratic assignment, facilities on locations at "
            "the least sum of flows times distances (graph.path of QAPLIB, or graph.onto); "
            "tsp: travelling salesman; cvrp: routes of vehicles, as short together as may be, that bring all "
            "customers what they need"
        ),
    ] = "mvc"
    null: Annotated[
        Literal["degrees", "sizes", "none"],
        about(
            "communities: what the weight within them is compared with; degrees: what nodes of these degrees "
            "would have by chance (modularity); sizes: problem.resolution for each pair (constant Potts "
            "model); none: nothing, some weights are negative (correlation clustering)"
        ),
    ] = "degrees"
    resolution: Annotated[
        Amount,
        about("communities: times what is compared with; more: smaller communities; null none: not read"),
    ] = 1.0
    parts: Annotated[int, Meta(ge=2, le=65536), about("partition: blocks, at most")] = 2
    imbalance: Annotated[
        Amount, about("partition: by how much a block may be heavier than an even share, as a part of that")
    ] = 0.03
    component: Annotated[
        AboveZero,
        about(
            "dismantle: nodes that a component may have at the end, a whole number from 1 on; below 1: as a "
            "share of all nodes, rounded down, at least one node"
        ),
    ] = 0.01
    budget: Annotated[
        AboveZero,
        about(
            "coverage: how many sets may be chosen, influence: how many nodes; with costs "
            "(graph.node_weights) what they may cost together; facility: how many facilities there may be, "
            "a whole number, unless problem.facility is uncapacitated"
        ),
    ] = 10.0
    facility: Annotated[
        Literal["median", "center", "uncapacitated"],
        about(
            "facility: what is as small as may be; median: the sum over nodes of demand times distance to "
            "the nearest of problem.budget facilities; center: the largest of these; uncapacitated: that sum "
            "and what the facilities cost to open (graph.node_weights, else one each), any number of them"
        ),
    ] = "median"
    dense: Annotated[
        Literal["average", "size"],
        about(
            "dense: what is as large as may be; average: the weight of the edges inside for each node, or "
            "for the weights of the nodes (graph.node_weights): the densest subgraph; size: the weight of "
            "the edges inside exactly problem.size nodes: the densest, or heaviest, k-subgraph"
        ),
    ] = "average"
    size: Annotated[int, Meta(ge=1), about('dense with problem.dense = "size": how many nodes')] = 10
    eliminate: Annotated[
        Literal["width", "fill"],
        about(
            "treewidth: what is as small as may be; width: the most nodes of a bag, less one, or with "
            "weights (graph.node_weights) the largest weight of a bag; fill: the edges that eliminations make"
        ),
    ] = "width"
    arrange: Annotated[
        Literal["length", "bandwidth", "cutwidth", "separation", "profile"],
        about(
            "arrangement: what is as small as may be, of places from 1 on; length: the sum over edges of "
            "weight times the distance of their ends (minimum linear arrangement); bandwidth: the largest "
            "distance; cutwidth: the most weight of edges across a gap between two places; separation: the "
            "most nodes before a gap that have a neighbour behind it (pathwidth); profile: the sum over "
            "nodes of the distance to their first neighbour, where it is before them (envelope)"
        ),
    ] = "length"
    sets: Annotated[
        Literal["family", "neighbourhoods"],
        about(
            "coverage: what is chosen; family: sets of a file of these; neighbourhoods: nodes of a graph, "
            "each of which holds itself and its neighbours"
        ),
    ] = "family"
    terminals: Annotated[
        Count,
        about(
            "steiner: so many nodes of the largest component, drawn by the seed, of graphs for which neither "
            "their file nor graph.terminals names any, nor prizes; 0: these are refused"
        ),
    ] = 0
    prizes: Annotated[
        Count,
        about(
            "steiner: the nodes that problem.terminals draws have prizes, drawn from 1 to so much, and a "
            "tree pays for those that it leaves out; 0: a tree has to hold them"
        ),
    ] = 0
    directed: Annotated[
        bool, about("alignment, qap: edges of both graphs go one way, from the first id of a line")
    ] = False
    noise: Annotated[
        BelowOne,
        about(
            "alignment, of graphs that a generator draws: the second graph is a copy whose nodes are in a "
            "drawn order, and this share of its edges is moved"
        ),
    ] = 0.05
    capacity: Annotated[
        Amount, about("cvrp: what a vehicle carries; 0: what graph.path, or the generator, says")
    ] = 0.0
    depot: Annotated[
        int,
        Meta(ge=-1),
        about("cvrp: the id of the node where routes begin and end; -1: that of the file, else the first"),
    ] = -1
    vehicles: Annotated[Count, about("cvrp: routes, at most; 0: any number")] = 0
    max_length: Annotated[
        Amount, about("cvrp: length of a route, at most, services included; 0: as graph.path says, else any")
    ] = 0.0
    service: Annotated[
        Amount, about("cvrp: what a customer's service adds to the length that max_length limits")
    ] = 0.0


class PolicyCase(Table, frozen=True):
    """The Q-network: structure2vec embedding and evaluation head (Khalil et al. 2017)."""

    model: Annotated[
        Literal["structure2vec", "gcn", "gin", "gin_norm", "sage", "commnet"],
        about(
            "the embedding network; all but structure2vec without shared_layers, self_weight, mean_degree, "
            "edge_weights, and for maxcut without the signs of edges"
        ),
    ] = "structure2vec"
    weights: Annotated[
        str,
        about('"default": shipped with the program; "train": train first, by [agent] and [train]; or a file'),
    ] = "default"
    features: Annotated[
        Literal["scale_free", "paper"], about("node inputs; scale_free: independent of the graph's size")
    ] = "scale_free"
    layers: Annotated[int, Meta(ge=1, le=16), about("rounds of message passing")] = 2
    dimension: Annotated[int, Meta(ge=1, le=1024), about("numbers per node in the embedding")] = 16
    head: Annotated[
        Literal["separate", "mixing"], about("separate: graph and node parts meet after relu; mixing: before")
    ] = "separate"
    hidden: Annotated[int, Meta(ge=1, le=4096), about("width of the head's hidden layer")] = 32
    shared_layers: Annotated[bool, about("one set of weights for all layers")] = False
    self_weight: Annotated[bool, about("a separate weight for the node's own embedding")] = True
    mean_degree: Annotated[
        bool, about("divide neighbour sums by the mean residual degree (maxcut: by the node's own degree)")
    ] = True
    hub_degree: Annotated[
        Amount,
        about(
            "neighbour sums of nodes of more than this many times the mean residual degree (mds: that would "
            "dominate so many times what sums are divided by) are scaled down to those of as many "
            "neighbours, so that hubs look like nothing new; 0: no sums are"
        ),
    ] = 0.0
    edge_weights: Annotated[
        bool, about("use sums of edge weights as an input (maxcut: in place of the signs of edges)")
    ] = False


class AgentCase(Table, frozen=True):
    """How a policy learns."""

    learner: Annotated[
        str,
        about(
            "dqn: deep Q-learning; ppo: proximal policy optimisation; reinforce: policy gradient of whole "
            "episodes, several rollouts of a graph as each other's baseline"
        ),
    ] = "dqn"
    learning_rate: Annotated[AboveZero, about("step size of Adam")] = 1e-3
    learning_rate_end: Annotated[
        Amount, about("step size at the end of train.steps, in a straight line; 0: as at the beginning")
    ] = 0.0
    average: Annotated[
        BelowOne,
        about(
            "decay, at each gradient step, of a moving average of the weights, which is what is evaluated "
            "and kept; 0: the weights themselves"
        ),
    ] = 0.0
    discount: Annotated[Share, about("weight of the next step's value")] = 0.5
    n_step: Annotated[int, Meta(ge=1, le=100), about("dqn: environment steps summed in a target")] = 1
    batch: Annotated[Positive, about("dqn, ppo: transitions per gradient step")] = 16
    gradient_steps: Annotated[
        int, Meta(ge=0, le=64), about("dqn: gradient steps per train_every environment steps")
    ] = 1
    train_every: Annotated[
        Positive, about("dqn: environment steps, of all episodes of a replica, between gradient steps")
    ] = 1
    replay: Annotated[
        Literal["episodes", "bits"], about("dqn: what is kept: the actions, or every state's node bits")
    ] = "episodes"
    replay_capacity: Annotated[Positive, about("dqn: transitions kept")] = 50_000
    warmup: Annotated[Count, about("dqn: transitions before the first gradient step")] = 64
    double: Annotated[
        bool, about("dqn: double Q-learning: choose with one network, value with the other")
    ] = False
    target_every: Annotated[Positive, about("dqn: gradient steps between copies to the target network")] = 200
    epsilon_start: Annotated[Share, about("dqn: exploration rate at the first step")] = 0.9
    epsilon_end: Annotated[Share, about("dqn: exploration rate after the decay")] = 0.1
    epsilon_decay_steps: Annotated[Positive, about("dqn: environment steps of the linear decay")] = 10_000
    shaping: Annotated[
        Literal["caro_wei", "none"], about("caro_wei: add the change of the problem's estimate of the rest")
    ] = "caro_wei"
    reward_scale: Annotated[
        Literal["one", "nodes"], about("nodes: divide rewards by the number of nodes")
    ] = "one"
    loss: Annotated[Literal["squared", "huber"], about("dqn: of the TD error")] = "squared"
    rollout_steps: Annotated[Positive, about("ppo: environment steps, of all replicas, to learn from")] = 256
    epochs_per_batch: Annotated[int, Meta(ge=1, le=64), about("ppo: passes over them")] = 4
    clip: Annotated[
        float, Meta(gt=0.0, lt=1.0), about("ppo: how far a probability's ratio may move, from one")
    ] = 0.2
    gae_lambda: Annotated[Share, about("ppo: weight of later errors of the value in an advantage")] = 0.95
    value_weight: Annotated[Amount, about("ppo: of the value's squared error in the loss")] = 0.5
    entropy: Annotated[
        Amount, about("ppo, reinforce: weight of the policy's entropy, in the rewards' unit")
    ] = 0.01
    rollouts: Annotated[int, Meta(ge=2, le=4096), about("reinforce: episodes played on a graph")] = 8
    rollout_graphs: Annotated[Positive, about("reinforce: graphs of one gradient step, for each replica")] = 1
    adam_beta1: Annotated[BelowOne, about("decay of Adam's mean")] = 0.9
    adam_beta2: Annotated[BelowOne, about("decay of Adam's mean square")] = 0.999
    adam_epsilon: Annotated[float, Meta(ge=1e-30), about("added to Adam's denominator")] = 1e-8


class TrainCase(Table, frozen=True):
    """The training run."""

    steps: Annotated[Positive, about("environment steps of each replica")] = 10_000
    environments: Annotated[Positive, about("episodes advanced together, of each replica")] = 1
    evaluate_every: Annotated[Positive, about("environment steps between evaluations")] = 500
    evaluate_graphs: Annotated[
        Positive,
        about(
            "graphs held back for evaluation, where there is no [train.held_back]; of files a fifth at most"
        ),
    ] = 20
    judge: Annotated[
        Literal["total", "ratio"],
        about(
            "which weights are kept: total: those with the best sum of the held-back graphs' objectives; "
            "ratio: with the best relative changes, graphs of few choices counting as much as those of many"
        ),
    ] = "total"
    environment: Annotated[
        Literal["degree", "scan"], about("scan: the paper's edge scan (section 4.4), for comparison only")
    ] = "degree"
    graphs: Annotated[GraphCase | None, about("training graphs; absent: those of [graph]")] = None
    held_back: Annotated[
        GraphCase | None, about("graphs to judge weights by; absent: evaluate_graphs like those to train on")
    ] = None


class SelectCase(Table, frozen=True):
    """How many nodes one evaluation of the policy decides."""

    rule: Annotated[
        str,
        about(
            "single: the best node; other rules take several at once, by fewer evaluations; the answers of "
            "maxcut, whose moves are as many then, are the worse for it"
        ),
    ] = "single"
    fraction: Annotated[
        float, Meta(gt=0.0, le=1.0), about("largest share of the nodes taken at once, for rules that use it")
    ] = 0.02
