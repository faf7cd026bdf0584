"""What solving and learning a policy will take, from headers of files and parameters of generators alone."""

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from app.case.config import Case
from app.case.graph import GraphCase
from app.comm.grid import fit_groups
from app.errors import CaseError
from app.graphs.facility import CENTER, pair_bytes
from app.graphs.facility_points import LISTED
from app.graphs.formats.readers import open_edges
from app.graphs.pairing import ALIGNMENT, BYTES, QAP, TABLED
from app.model.counts import expected_entries, mean_nodes, stated_entries
from app.model.defaults import DEFAULTS
from app.model.layout import Layout, estimate
from app.model.memory import Need, at_rest, size, total, whole_graph, whole_work, words
from app.model.policy_memory import following, peak
from app.model.rates import Calibration, Rates, given_network
from app.model.work import States, evaluation, learning, mean_of_replicas
from app.partition.whole import LEARNED_ON, learning_work, taken_off
from app.problems.table import (
    ROW_FOLLOWED,
    ROW_PEELED,
    ROW_REDUCED,
    SAMPLED,
    UNTRAINED,
    asks_policy,
    make_problem,
    problem_of,
)
from app.rl.qnet import QNetwork
from app.rl.weights import default_weights, load_weights
from app.search.clique.complement import COMPLEMENT_EDGES

TOUR_BYTES = 3000  # of a city: tours of many starts, neighbours, bounds (measured: 50,000, 100,000)
CANDIDATES = tuple(1 << k for k in range(11))  # numbers of ranks among which the fastest is named
EPISODE = States(
    1, 0.5, 0.3
)  # of a typical state of training: live nodes, and removed ones as a share of all


@dataclass(frozen=True)
class Counts:
    """Graphs of one table: how many, and nodes and stored entries of a typical one."""

    name: str
    count: int
    n: int
    entries: int


def counts_of(case: Case, table: GraphCase) -> Iterator[Counts | str]:
    """The graphs of a table; in words what is not known before reading."""
    for path in [table.path] if isinstance(table.path, str) else table.path:
        limit = int(case.memory.max_decompressed_gb * 1e9)
        stream = open_edges(path, table.format, limit, ids=table.ids)
        stored = stated_entries(stream)
        if stream.nodes is None or stored is None:
            yield f"{stream.name}: its header has no counts: memory and time are known once it is read"
        else:
            yield Counts(stream.name, 1, stream.nodes, state_entries(case, stream.nodes, stored))
    if table.generator:
        name = f"{table.count} x {table.generator}" if table.count > 1 else table.generator
        n = mean_nodes(table)
        yield Counts(name, table.count, n, state_entries(case, n, expected_entries(table)))


def state_entries(case: Case, n: int, entries: int) -> int:
    """Stored entries of the graph that a policy sees, or of the given one where that has more or is all."""
    missing = _complement(Counts("", 1, n, entries))
    asked = case.run.task == "train" or case.search.solver == "policy" or missing <= 2 * COMPLEMENT_EDGES
    if not make_problem(case.problem.name).complemented or not asked:
        return entries
    return max(entries, missing)


def _complement(counts: Counts) -> int:
    """The stored entries of a graph's complement."""
    return counts.n * (counts.n - 1) - counts.entries


def tasks_of(case: Case) -> Iterator[tuple[bool, GraphCase]]:
    """(False, graphs to solve or to judge weights by), (True, graphs to learn on), where the case has any."""
    if case.run.task == "solve":
        yield False, case.graph
    if _learns(case):
        yield True, case.train.graphs or case.graph
        if case.train.held_back is not None:
            yield False, case.train.held_back


def policy_plan_lines(case: Case, ranks: int, calibration: Calibration) -> Iterator[str]:
    """Memory of a rank and seconds of a step for the graphs of a case, as lines of text."""
    for learns, table in tasks_of(case):
        net = network_of(case)
        for counts in counts_of(case, table):
            yield from (_training if learns else _solving)(case, net, calibration, counts, ranks)


def policy_needs(case: Case, ranks: int) -> Iterator[Need]:
    """What a rank holds of each graph whose counts are known before reading."""
    for learns, table in tasks_of(case):
        for counts in counts_of(case, table):
            if not isinstance(counts, str):
                yield _need(case, counts, ranks, learns)


def needs_of_read(
    case: Case, table: GraphCase, read: list[tuple[str, int, int]], ranks: int, learns: bool
) -> list[Need]:
    """The same of graphs that were read, by name, nodes and edges; none where all headers had counts."""
    if not any(isinstance(counts, str) for counts in counts_of(case, table)):
        return []
    counts = [Counts(name, len(read), n, state_entries(case, n, 2 * edges)) for name, n, edges in read]
    return [_need(case, each, ranks, learns) for each in counts]


def _need(case: Case, counts: Counts, ranks: int, learns: bool) -> Need:
    """Of one graph to learn on or to solve.

    Where the whole graph is worked on, the policy sees what reductions leave of it: only the graph itself is
    certain then, and the work on it comes beside.
    """
    net, base = network_of(case), DEFAULTS.base_bytes
    if learns:
        return Need(counts.name, held_training(case, net, base, counts, ranks))
    held, whole = held_solving(case, net, base, counts, ranks), whole_bytes(case, counts)
    if not whole:
        return Need(counts.name, held)
    return Need(counts.name, held, whole, least_solving(case, base, counts, ranks))


def _learns(case: Case) -> bool:
    """Whether a policy is learned, whatever follows."""
    return case.run.task == "train" or (case.run.task == "solve" and case.policy.weights == "train")


def network_of(case: Case) -> QNetwork | None:
    """The network of the case, or of the weights that it takes; None where no policy answers."""
    if not asks_policy(case.problem.name):
        return None
    policy, wanted = case.policy, case.policy.weights
    if not _learns(case):
        policy = load_weights(default_weights(case.problem.name) if wanted == "default" else wanted).policy
    return QNetwork(policy, problem_of(case))


def _layout(case: Case, counts: Counts, ranks: int) -> Layout:
    return estimate(
        counts.name, counts.n, counts.entries, ranks, case.parallel.exchange, case.policy.dimension
    )


def _solving(
    case: Case, net: QNetwork | None, calibration: Calibration, counts: Counts | str, ranks: int
) -> Iterator[str]:
    """Memory, and one full evaluation; selections that are followed cost less."""
    if isinstance(counts, str):
        yield counts
        return
    held = held_solving(case, net, calibration.base_bytes, counts, ranks)
    yield _memory_line(counts, ranks, _layout(case, counts, ranks), held)
    if net is not None:
        yield from _evaluating(case, net, calibration, counts, ranks)
    if case.run.task == "solve" and case.search.solver == "full":
        yield _whole_line(case, counts)


def _evaluating(
    case: Case, net: QNetwork, calibration: Calibration, counts: Counts, ranks: int
) -> Iterator[str]:
    """What a full evaluation of the policy takes."""
    network = given_network(case)
    seconds = {
        p: Rates(calibration, p, network).total(evaluation(net, _layout(case, counts, p)))
        for p in {ranks, *CANDIDATES}
    }
    yield (
        f"{counts.name}: {_time(seconds[ranks])} a full policy evaluation on {_ranks(ranks)}; "
        f"{_ranks(_best(seconds))} would be the fastest"
    )
    if not _counted(net):
        yield f"{counts.name}: these are steps of mvc; those of {net.problem.name} are not in the model"


def _whole_line(case: Case, counts: Counts) -> str:
    """What becomes of reductions, search and bounds, which work on the whole graph."""
    needs, limit = whole_bytes(case, counts) / 1e6, case.memory.whole_graph_mb
    what = f"{counts.name}: reductions, search and bounds"
    if not needs and counts.n:
        wanted = whole_graph(counts.n, counts.entries // 2) / 1e6
        left = f"above memory.whole_graph_mb, {limit:g}: {_beyond(case, counts)}"
        return f"{what} want {wanted:.1f} MB on one rank, {left}"
    if case.problem.name in (QAP, ALIGNMENT) and counts.n <= TABLED:
        needs += BYTES * counts.n**2 / 1e6
    if case.problem.name == "facility":
        each = pair_bytes(case.problem.facility)
        tables = each * counts.n**2 / 1e6
        if counts.n**2 > LISTED or tables > limit:
            wanted = "bounds have lists of the nearest places"
            if case.problem.facility == CENTER:
                near = "bounds have lists of all that are near enough"
                wanted = f"{near}; without HiGHS they want a table of {tables:.0f} MB"
            return f"{counts.name}: facilities are searched without a table; {wanted}"
        needs += tables
    return f"{what} take up to {needs:.1f} MB beside that on a rank; their time is not in the model"


def _beyond(case: Case, counts: Counts) -> str:
    """What then answers a graph too large for one rank."""
    name, search = case.problem.name, case.search
    reduced = name in ROW_REDUCED and search.reductions and search.solver == "full"
    then = "a run would be refused" if name in UNTRAINED else "the policy alone would answer"
    if make_problem(name).complemented and _complement(counts) > 2 * COMPLEMENT_EDGES:  # nobody makes it
        by_roots = reduced and search.row_regions
        roots = "all ranks at once would search for cliques root by root"
        then = roots if by_roots else "core numbers alone would answer"
    if not reduced:
        return then
    if name in ROW_PEELED:
        then = "the policy would choose on the rows until the rest fits"
    if name in ROW_FOLLOWED:
        anneals = not search.row_sweeps or any(search.row_sweeps)
        then = f"the policy{', then annealing,' if anneals else ''} would answer on the rows"
    if name in (*ROW_PEELED, *ROW_FOLLOWED) and search.row_regions:
        then += "; all ranks at once would search regions again"
    return f"{then}, unless reductions of the rows leave less"


def whole_bytes(case: Case, counts: Counts) -> int:
    """What reductions, search and bounds take at most on a rank beside the policy; 0: it answers alone."""
    needs = whole_graph(counts.n, counts.entries // 2)
    if case.run.task != "solve" or case.search.solver != "full" or needs > 1e6 * case.memory.whole_graph_mb:
        return 0
    needs = whole_work(case.problem.name, counts.n, counts.entries // 2)
    if case.problem.name in SAMPLED:  # collections grow up to the same limit
        needs += round(1e6 * case.memory.whole_graph_mb)
    tours = make_problem(case.problem.name).dynamics == "tour"
    return max(needs, TOUR_BYTES * counts.n) if tours else needs


def least_solving(case: Case, base: int, counts: Counts, ranks: int) -> int:
    """Bytes that the rank that holds most has of the graph alone; base: before it holds any."""
    layout = _layout(case, counts, ranks)
    return base + total(at_rest(layout, layout.heaviest))


def held_solving(case: Case, net: QNetwork | None, base: int, counts: Counts, ranks: int) -> dict[str, int]:
    """Bytes by term of the rank that holds most while it solves; base: before it holds any graph."""
    layout = _layout(case, counts, ranks)
    if net is None:
        return {"base": base, **at_rest(layout, layout.heaviest)}
    held = peak(net, layout, States(), "evaluation", base)
    return held | following(net, layout, layout.heaviest)


def held_training(case: Case, net: QNetwork, base: int, counts: Counts, ranks: int) -> dict[str, int]:
    """Bytes by term of the rank that holds most while it learns; base: before it holds any graph."""
    shared, agent = Shared.by(case, counts, ranks), case.agent
    layout = _layout(case, counts, shared.ranks)
    held = peak(net, layout, _minibatch(case, counts), "learning", base)
    rest = total(at_rest(layout, layout.heaviest))
    held["further graphs"] = (counts.count - 1) * rest
    replay = 8 * agent.replay_capacity + 40 * min(agent.replay_capacity, case.train.steps)
    held["replay"] = shared.turns * replay
    return held


def _minibatch(case: Case, counts: Counts) -> States:
    """The states of a replica's share of a gradient step."""
    batch = max(case.agent.batch // case.parallel.data, 1)
    distinct = round(counts.count * (1 - (1 - 1 / counts.count) ** batch))
    return States(batch, EPISODE.live, EPISODE.removed * counts.n, max(distinct, 1))


def _training(
    case: Case, net: QNetwork, calibration: Calibration, counts: Counts | str, ranks: int
) -> Iterator[str]:
    """Memory, one training step, and all of train.steps."""
    if isinstance(counts, str):
        yield counts
        return
    if case.agent.learner != "dqn":
        yield f'{counts.name}: training is predicted for agent.learner = "dqn" alone'
        return
    agent, replicas = case.agent, case.parallel.data
    held = held_training(case, net, calibration.base_bytes, counts, ranks)
    yield _memory_line(counts, ranks, _layout(case, counts, Shared.by(case, counts, ranks).ranks), held)
    seconds, steps = {}, {}
    for p in {ranks, *CANDIDATES}:
        with suppress(CaseError):  # parallel.spatial does not divide these ranks
            steps[p], act = _step_seconds(case, net, calibration, counts, p)
            seconds[p] = case.train.steps * (agent.gradient_steps * steps[p] + act)
    of = f" of {replicas} replicas each" if replicas > 1 else ""
    yield (
        f"{counts.name}: {_time(steps[ranks])} a training step of {agent.batch} on {_ranks(ranks)}; "
        f"{case.train.steps} environment steps{of} with their evaluations {_time(seconds[ranks])}, "
        f"held-back graphs not counted; {_ranks(_best(seconds))} would be the fastest"
    )
    if left := _not_counted(case, net):
        yield f"{counts.name}: not in the model, and left out here: {', '.join(left)}"


@dataclass(frozen=True)
class Shared:
    """How ranks share the replicas of an agent (comm/grid.py).

    ranks    that share a graph     groups   of them     turns   replicas that a group plays, one by one
    """

    ranks: int
    groups: int
    turns: int

    @classmethod
    def by(cls, case: Case, counts: Counts, ranks: int) -> "Shared":
        """Raises CaseError where parallel.spatial does not divide the ranks."""
        replicas, spatial = case.parallel.data, case.parallel.spatial
        groups = fit_groups(ranks, replicas, spatial)
        sharing = ranks // groups
        small = taken_off(learning_work(case, counts.n, counts.entries), sharing) <= LEARNED_ON
        fits = whole_graph(counts.n, counts.entries // 2) <= 1e6 * case.memory.whole_graph_mb
        if fits and (spatial == 1 or (small and not spatial)):
            groups, sharing = fit_groups(ranks, replicas, spatial=1), 1
        return cls(sharing, groups, -(-replicas // groups))


def _step_seconds(
    case: Case, net: QNetwork, calibration: Calibration, counts: Counts, ranks: int
) -> tuple[float, float]:
    """Of a gradient step, and of an action of every replica."""
    shared, network = Shared.by(case, counts, ranks), given_network(case)
    rates, layout = Rates(calibration, shared.ranks, network), _layout(case, counts, shared.ranks)
    learn = rates.total(learning(net, layout, _minibatch(case, counts), case.agent.double))
    act = rates.total(evaluation(net, layout, EPISODE))
    if shared.groups == 1:
        return shared.turns * learn, shared.turns * act
    width = sum(math.prod(shape) for shape in net.shapes().values()) + 1
    mean = mean_of_replicas(width, case.parallel.data, shared.groups)
    return shared.turns * learn + Rates(calibration, shared.groups, network).total([mean]), shared.turns * act


def _counted(net: QNetwork) -> bool:
    """Whether the model has the steps of a problem: those with no further product in each."""
    return net.problem.dynamics == "residual" and not net.problem.closed


def _not_counted(case: Case, net: QNetwork) -> list[str]:
    """What of a training the estimates say nothing of."""
    told = {
        f"steps of {net.problem.name} (those of mvc are counted)": not _counted(net),
        "agent.train_every (a gradient step for each step is counted)": case.agent.train_every > 1,
        'agent.replay = "bits" (episodes are counted)': case.agent.replay == "bits",
        'train.environment = "scan" (degrees are counted)': case.train.environment == "scan",
    }  # fmt: skip
    return [words for words, here in told.items() if here]


def _best(seconds: dict[int, float]) -> int:
    return min(sorted(seconds), key=seconds.__getitem__)


def _memory_line(counts: Counts, ranks: int, layout: Layout, held: dict[str, int]) -> str:
    whole, terms = size(total(held)), words(held)
    return (
        f"{counts.name}: {counts.n} nodes, {counts.entries} stored entries; {whole} "
        f"a rank on {_ranks(ranks)} (exchange {layout.mode}): {terms}"
    )


def _ranks(number: int) -> str:
    return f"{number} rank{'' if number == 1 else 's'}"


def _time(seconds: float) -> str:
    if seconds < 1:
        return f"{1e3 * seconds:.3g} ms"
    return f"{seconds:.3g} s" if seconds < 600 else f"{seconds / 3600:.2g} h"
