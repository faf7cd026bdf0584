"""What tests/fuzz_commands.py runs: commands drawn from a number, with small graphs in files or drawn."""

import io
import json
import random
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from fuzz_optima import Instance, instance
from msgspec import inspect as kinds

from app.case.config import all_keys
from app.case.table import bare_type
from app.gnn.layers.table import LAYERS
from app.problems.table import PROBLEMS, UNTRAINED
from app.recipes import RECIPES
from app.text import toml_value

Edge = tuple[int, int, float]
SPECIAL = {  # values of texts and lists that mean something
    "graph.features": ["x.txt", "no.txt", "degrees"], "graph.labels": ["y.txt", "no.txt"],
    "graph.splits": ["random", "s.txt"], "graph.node_weights": ["w.txt", "ids.txt"],
    "graph.element_weights": ["w.txt"], "graph.terminals": ["ids.txt"], "graph.prizes": ["w.txt"],
    "graph.demands": ["w.txt"], "graph.onto": ["g.txt"], "graph.seeds": ["pairs.txt"],
    "graph.similarity": ["pairs.txt"], "graph.degrees_of": ["g.txt", "no.txt"], "graph.series": ["diffusion"],
    "graph.edge_features": ["x.txt"], "graph.edge_labels": ["y.txt"], "graph.edge_splits": ["random"],
    "policy.weights": ["default", "train", "no.npz"], "select.rule": ["single", "adaptive", "fraction", "x"],
    "search.start": ["greedy", "learned", "ids.txt", "no.txt"], "search.inside": ["ids.txt", "one.txt"],
    "search.outside": ["ids.txt", "one.txt"], "search.heuristic": ["max degree", "farthest insertion", "x"],
    "search.sweeps": [[3], [8, 4], []], "search.row_sweeps": [[0], [1, 2], []],
    "gnn.model": [*LAYERS, "x"], "gnn.weights": ["no.npz"],
    "gnn.layers": [["gcn 4", "gat"], ["sage 3 residual", "gin 3 batch_norm", "gcn"], ["dense"], ["x"]],
    "gnn.positions": [["walks=3"], ["laplacian=2"], ["degree", "core"], ["triangles"], ["walks=0"], ["x"]],
    "links.val_edges": ["g.txt"], "links.test_edges": ["g.txt"], "links.pairs": ["pairs.txt"],
    "links.sides": ["w.txt"], "links.propose_for": ["ids.txt"], "rgcn.weights": ["no.npz"],
    "embed.probe_decays": [[0.1], [0.0, 1.0]], "rgcn.train_labels": ["y.txt"], "rgcn.test_labels": ["y.txt"],
    "rgcn.val_labels": ["y.txt"], "rgcn.val_triples": ["t.txt"], "rgcn.test_triples": ["t.txt"],
    "rgcn.queries": ["t.txt"], "parallel.cost_model": ["no.json"],
    "output.explain": [1, 3, [1, 2], [[1, 2]], ["a"]], "memory.cache": ["cache"], "memory.folder": ["."],
}  # fmt: skip
# Set for a command as a whole, or for nobody to draw: budgets, what it is, and where it writes.
LEFT_OUT = {
    "seed", "run.name", "run.out", "run.task", "run.device", "run.watchdog_seconds", "graph.path",
    "graph.generator", "graph.format", "search.steps", "search.seconds", "search.bound_seconds",
    "train.steps", "train.evaluate_every", "gnn.epochs", "gnn.level", "rgcn.epochs", "rgcn.goal",
    "problem.name", "agent.learner", "influence.sets", "checkpoint.enabled", "embed.probe_epochs",
    "memory.estimate_first",
}  # fmt: skip
# Words of a key before a colon: what it is of. Keys that name that, and what it is without a setting.
OWNED = re.compile(r"(?:^|[;,] )((?:\w+, )*\w+)(?: with [^:]*)?: ")
NAMING = {"problem.name": "mvc", "gnn.model": "gcn", "gnn.level": "node"}
NUMBERS = (0.0, 1e-9, 0.01, 0.1, 0.3, 0.5, 0.9, 1.0, 1.5, 2.0, 3.0, 10.0, 100.0)
WRONG = ("true", "'x'", "nan", "-inf", "[]", "{a=1}", "1e400", "99999999999999999999")
TABLES = {  # of which keys are drawn
    "solve": ["problem", "search", "graph", "parallel", "memory", "output", "select", "checkpoint", "run"],
    "train": ["policy", "agent", "train", "select", "graph", "parallel", "memory", "output", "run"],
    "classify": ["gnn", "gnn", "graph", "parallel", "memory", "output", "smooth", "run"],
    "study": ["study", "gnn", "agent", "policy", "graph", "parallel", "search", "memory", "output"],
}
OF_EXACT = ["search", "search", "select", "parallel", "memory", "output", "run", "checkpoint"]
OF_INSTANCE = ("search.inside", "search.outside")  # and keys of [graph] and [problem] say what is sought
TAME = 0.6  # share of commands whose settings the program takes
FILES = ("sets", "coverage", "influence", "facility", "cvrp", "tsp", "steiner", "alignment", "qap")


@dataclass(frozen=True)
class Drawn:
    """A command: what it is, the settings that make it so, others that may be left out, its files.

    ranks, other   that it runs on first, and then
    in_steps       its budgets are steps, so that its digest is that of any ranks
    python         a text for `python -c` in place of settings; "": none
    tame           settings that the program refuses before it reads a graph are left out
    exact          what the solutions of a small instance are worth
    """

    number: int
    subject: str
    fixed: tuple[str, ...]
    loose: tuple[str, ...] = ()
    files: dict[str, bytes] = field(default_factory=dict)
    ranks: int = 1
    other: int = 2
    in_steps: bool = True
    python: str = ""
    tame: bool = False
    exact: Instance | None = field(default=None, compare=False)


# ---- graphs -----------------------------------------------------------------------------------------------


def small_graph(draw: random.Random) -> tuple[int, list[Edge]]:
    """A graph of few nodes: of no edges, one node, parts, stars, paths, cycles, cliques, drawn ones."""
    n = draw.choice((1, 2, 3, 5, 8, 12, 20, 30))
    pairs = [(u, v) for u in range(n) for v in range(u)]
    shape = draw.randrange(10)
    if shape == 0:
        pairs = []
    elif shape == 1:
        pairs = [(v, v - 1) for v in range(1, n)]
    elif shape == 2:
        pairs = [(v, 0) for v in range(1, n)]
    elif shape == 3:
        pairs = [(v, (v + 1) % n) for v in range(n) if n > 2]
    elif shape == 4:
        pairs = [(u, v) for u, v in pairs if (u < n // 2) == (v < n // 2)][:60]
    elif shape > 5:
        pairs = draw.sample(pairs, min(len(pairs), draw.randint(0, 2 * n)))
    else:
        pairs = pairs[:80]
    if draw.random() < 0.2:
        pairs += [(v, v) for v in range(0, n, 3)]
    if pairs and draw.random() < 0.2:
        pairs += [(v, u) for u, v in draw.choices(pairs, k=3)]
    weight = weights(draw)
    return n, [(u, v, weight()) for u, v in pairs]


def weights(draw: random.Random) -> Callable[[], float]:
    """What draws a weight: all one, whole, of either sign, decimal, huge, tiny, often 0, or all of these."""
    ways: list[Callable[[], float]] = [
        lambda: 1.0, lambda: 1.0, lambda: float(draw.randint(1, 9)), lambda: float(draw.randint(-5, 5)),
        lambda: round(draw.uniform(-2, 2), 3), lambda: draw.choice((1e30, 3e37, -1e30)),
        lambda: draw.choice((1e-30, 1e-42, 1e-50)), lambda: draw.choice((0.0, 0.0, 1.0)),
        lambda: round(draw.random(), 2),
    ]  # fmt: skip
    ways.append(lambda: draw.choice(ways[:-1])())
    return draw.choice(ways)


def graph_file(draw: random.Random, weighted: bool) -> tuple[str, bytes, list[str]]:
    """A graph in a format: the file's name, its bytes, and settings that it needs."""
    n, edges = small_graph(draw)
    kind = draw.choice(("txt", "txt", "names", "csv", "mtx", "col", "graph", "gset", "npz", "gr"))
    show = (lambda w: f"{w:g}") if weighted else (lambda w: "")
    if kind in ("txt", "names", "csv"):
        scale, first = draw.choice(((1, 0), (1, 1), (7, 3), (1 << 33, 5)))
        called = [f"v {v}" if kind == "names" else str(scale * v + first) for v in range(n)]
        between = "," if kind == "csv" else "\t" if kind == "names" else " "
        lines = (between.join(filter(None, (called[u], called[v], show(w)))) + "\n" for u, v, w in edges)
        settings = ["graph.ids=names"] if kind == "names" else []
        name = {"names": "g.tsv", "csv": "g.csv", "txt": "g.txt"}[kind]
        return name, "".join(lines).encode(), settings
    if kind == "mtx":
        words = "real" if weighted else "pattern"
        edges = [(max(u, v), min(u, v), w) for u, v, w in edges]
        lines = [f"{u + 1} {v + 1} {show(w)}\n" for u, v, w in edges]
        head = f"%%MatrixMarket matrix coordinate {words} symmetric\n{n} {n} {len(edges)}\n"
        return "g.mtx", (head + "".join(lines)).encode(), []
    if kind in ("col", "gr"):
        letter, what = ("e ", "edge") if kind == "col" else ("", "tw")
        lines = [f"{letter}{u + 1} {v + 1}\n" for u, v, _ in edges]
        return f"g.{kind}", (f"p {what} {n} {len(edges)}\n" + "".join(lines)).encode(), []
    if kind == "gset":
        lines = [f"{u + 1} {v + 1} {round(w) if abs(w) < 1e9 else 7}\n" for u, v, w in edges]
        return "G1", (f"{n} {len(edges)}\n" + "".join(lines)).encode(), []
    if kind == "graph":
        near: dict[int, set[int]] = {v: set() for v in range(n)}
        for u, v, _ in edges:
            if u != v:
                near[u].add(v)
                near[v].add(u)
        lines = [" ".join(str(u + 1) for u in sorted(each)) + "\n" for each in near.values()]
        half = sum(map(len, near.values())) // 2
        return "g.graph", (f"{n} {half}\n" + "".join(lines)).encode(), []
    ends = np.array([(u, v) for u, v, _ in edges], dtype=np.int64).reshape(-1, 2)
    more = {"weights": np.array([w for _, _, w in edges])} if weighted else {}
    return "g.npz", archive(edges=ends, num_nodes=np.array([n]), **more), []


def archive(**arrays: np.ndarray) -> bytes:
    """The bytes of an .npz file."""
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def beside(draw: random.Random, nodes: int = 12) -> dict[str, bytes]:
    """Files that settings may name."""
    weight = weights(draw)
    few = sorted(draw.sample(range(1, nodes), 3))
    rows = "".join(f"{draw.randint(0, 3)} {draw.random():.2f}\n" for _ in range(nodes))
    return {
        "ids.txt": "".join(f"{v}\n" for v in few).encode(), "one.txt": b"2\n",
        "w.txt": "".join(f"{v} {abs(weight()):g}\n" for v in range(nodes)).encode(),
        "pairs.txt": "".join(f"{v} {v + 1} 2\n" for v in few).encode(), "x.txt": rows.encode(),
        "y.txt": "".join(f"{v % 3}\n" for v in range(nodes)).encode(),
        "s.txt": "".join(f"{('train', 'val', 'test')[v % 3]}\n" for v in range(nodes)).encode(),
        "t.txt": b"a likes b\nb likes c\nc hates a\na hates d\nd likes a\n",
    }  # fmt: skip


GENERATED = {
    "er": ["graph.p=0.2"], "ba": ["graph.d=2"], "torus": ["graph.removed=0.1"], "small_world": ["graph.d=2"],
    "geometric": ["graph.d=3"], "rmat": ["graph.d=2"], "chung_lu": ["graph.d=2"], "bter": ["graph.d=2"],
    "sbm": ["graph.random_classes=2"], "mixed": ["graph.d=2"], "varied": ["graph.d=2"], "diverse": [],
    "bipartite": ["graph.random_classes=2"],
}  # fmt: skip


def generated(draw: random.Random, names: list[str] | None = None, most: int = 40) -> list[str]:
    """Settings of a drawn graph."""
    name = draw.choice(names or list(GENERATED))
    nodes = draw.choice((5, 9, 16, 25, most))
    found = [f"graph.generator={name}", f"graph.nodes={nodes}", *GENERATED.get(name, [])]
    if name == "varied" and draw.random() < 0.5:
        found.append("graph.removed=0.2")
    if draw.random() < 0.3 and name not in ("sets", "uniform_points", "customers"):
        found.append(f"graph.edge_weights={draw.choice(('signs', 'whole', 'normal', 'mixed'))}")
    if draw.random() < 0.15:
        found.append(f"graph.count={draw.choice((2, 3))}")
    return found


# ---- values of keys ---------------------------------------------------------------------------------------


@cache
def known() -> dict[str, list[tuple[str, kinds.Type]]]:
    """Keys and their types, by table; those that are not to be drawn left out."""
    found: dict[str, list[tuple[str, kinds.Type]]] = {}
    for keys, each, _ in all_keys():
        name = ".".join(keys)
        if name not in LEFT_OUT and keys[:2] not in (("train", "graphs"), ("train", "held_back")):
            found.setdefault(keys[0], []).append((name, bare_type(kinds.type_info(each.type))))
    return found


@cache
def owners(name: str) -> tuple[frozenset[str], object]:
    """Of which problems, layers or levels alone a key of [problem] or [gnn] is, by its own words ("dense: the
    weight of ...; alignment, qap: ..."); none: of any. And its default.
    """
    known_owners = {"problem": {*PROBLEMS}, "gnn": {*LAYERS, "graph"}}.get(name.partition(".")[0], set())
    field_, table = next((each, table) for keys, each, table in all_keys() if ".".join(keys) == name)
    schema = getattr(kinds.type_info(field_.type), "extra_json_schema", None) or {}
    heads = OWNED.findall(schema.get("description", "")) if name not in NAMING else []
    words = [word for head in heads for word in head.split(", ")]
    return frozenset(known_owners.intersection(words)), getattr(table(), field_.name)


def unread(settings: list[str]) -> str | None:
    """The first setting of a solve or a classification that by its own words nothing reads, or None."""
    given = dict(each.split("=", 1) for each in settings)
    of = {_plain(given.get(key, usual)) for key, usual in NAMING.items()}
    of |= {layer.split()[0] for layer in _plain(given.get("gnn.layers", "[]")) if layer.split()}
    for name, text in given.items():
        whose, usual = owners(name)
        if whose and not whose & of and _plain(text) != usual:
            return f"{name}={text}"
    return None


def _plain(text: str) -> object:
    """The value of a setting: of TOML, or text without quotes."""
    try:
        return tomllib.loads(f"x={text}")["x"]
    except tomllib.TOMLDecodeError:
        return text


def setting(draw: random.Random, tables: list[str]) -> str:
    """A key with a value: mostly inside its range, at its border, or outside."""
    name, info = draw.choice(known()[draw.choice(tables)])
    chance = draw.random()
    if chance < 0.04:
        return f"{name}={draw.choice(WRONG)}"
    if name in SPECIAL:
        return f"{name}={toml_value(draw.choice(SPECIAL[name]))}"
    return f"{name}={toml_value(value(draw, info, chance))}"


def value(draw: random.Random, info: kinds.Type, chance: float = 1.0) -> object:
    """A value of a type; chance below 0.1: just outside its range, below 0.3: at a border."""
    match info:
        case kinds.BoolType():
            return draw.random() < 0.5
        case kinds.LiteralType(values):
            return draw.choice(values)
        case kinds.IntType():
            least = 0 if info.ge is None else info.ge
            if chance < 0.1:
                return draw.choice([least - 1, *([] if info.le is None else [info.le + 1])])
            inside = [least] if chance < 0.3 else [least + more for more in (0, 1, 2, 3, 5, 9)]
            return draw.choice([each for each in inside if info.le is None or each <= info.le])
        case kinds.FloatType():
            if chance < 0.1:
                ends = (info.ge, info.gt, info.le, info.lt)
                return draw.choice([end + step for end in ends if end is not None for step in (-0.5, 0.5)])
            fits = [each for each in NUMBERS if _inside(info, each)]
            return min(fits) if chance < 0.2 else max(fits) if chance < 0.3 else draw.choice(fits)
        case kinds.ListType(item_type):
            return [value(draw, bare_type(item_type)) for _ in range(draw.randint(0, 2))]
        case kinds.UnionType(types):
            return value(draw, bare_type(draw.choice(types)), chance)
        case kinds.TupleType(item_types):
            return [value(draw, bare_type(each)) for each in item_types]
    return draw.choice(("", "x", "no.txt", "a b"))


def _inside(info: kinds.FloatType, each: float) -> bool:
    """Whether a number is in a key's range."""
    return not (
        (info.ge is not None and each < info.ge) or (info.gt is not None and each <= info.gt)
        or (info.le is not None and each > info.le) or (info.lt is not None and each >= info.lt)
    )  # fmt: skip


def loose(draw: random.Random, tables: list[str], most: int = 4) -> tuple[str, ...]:
    """Some settings of some tables, seldom of any."""
    if draw.random() < 0.05 and tables is not OF_EXACT:
        tables = list(known())
    return tuple(setting(draw, tables) for _ in range(draw.choice((0, 1, 1, 2, 3, most, most))))


# ---- commands ---------------------------------------------------------------------------------------------


def command(number: int, only: str = "") -> Drawn:
    """The command of a number.

    only    a word of the subjects that it is one of; "": any
    """
    draw = random.Random(number)
    subjects = [each for each in SUBJECTS if only in each]
    subject = draw.choice(subjects)
    task, _, what = subject.partition(" ")
    ranks = draw.choice((1, 1, 1, 2, 3))
    other = draw.choice([each for each in (1, 2, 3) if each != ranks])
    tame = draw.random() < TAME
    exact = instance(draw, what) if task == "exact" else None
    made = exact_command(draw, what, exact) if exact else MADE[task](draw, what)
    fixed, more, files, in_steps, python = made
    return Drawn(
        number, subject, tuple(fixed), tuple(more), files, ranks, other, in_steps, python, tame, exact
    )


Made = tuple[list[str], tuple[str, ...], dict[str, bytes], bool, str]


def solve_command(draw: random.Random, problem: str) -> Made:
    """A solve: its graph, a budget, and settings."""
    files = beside(draw)
    fixed = ["run.task=solve", f"problem.name={problem}", *_graph_of(draw, problem, files)]
    in_steps = draw.random() < 0.7
    if in_steps:
        fixed.append(f"search.steps={draw.choice((0, 1, 7, 50))}")
        fixed.append(f"search.bound_seconds={draw.choice((0, 0.2))}")
    else:
        fixed.append(f"search.seconds={draw.choice((0.001, 0.05, 0.2, 0.5))}")
    if problem == "influence":
        fixed += ["influence.simulations=20", f"influence.sets={draw.choice((256, 1024))}"]
    if draw.random() < 0.4:
        fixed.append("output.certificates=true")
    tables = [*TABLES["solve"], *(["influence"] * 2 if problem == "influence" else [])]
    return fixed, _train_too(draw, loose(draw, tables)), files, in_steps, ""


def exact_command(draw: random.Random, problem: str, small: Instance) -> Made:
    """A solve of an instance whose optimum is known, with settings that leave it what it is."""
    fixed = ["run.task=solve", f"problem.name={problem}", *small.settings]
    fixed += [
        f"search.steps={draw.choice((0, 1, 7, 50))}",
        f"search.bound_seconds={draw.choice((0, 0.2, 1))}",
    ]
    if draw.random() < 0.4:
        fixed.append("output.certificates=true")
    more = [each for each in loose(draw, OF_EXACT) if each.split("=")[0] not in OF_INSTANCE]
    return fixed, tuple(more), dict(small.files), True, ""


def _train_too(draw: random.Random, more: tuple[str, ...]) -> tuple[str, ...]:
    """Settings, and a short training where they ask for one."""
    if not any(each == 'policy.weights="train"' for each in more) and draw.random() < 0.95:
        return more
    return (*more, 'policy.weights="train"', "train.steps=10", "agent.warmup=2", "agent.batch=2", *SHORT)


SHORT = ("train.graphs.generator=er", "train.graphs.nodes=9", "train.evaluate_graphs=2")


def _graph_of(draw: random.Random, problem: str, files: dict[str, bytes]) -> list[str]:
    """Settings of a graph, or what stands for one, which may be a file that is put to the others."""
    chance = draw.random()
    if problem in ("tsp", "cvrp") and chance < 0.9:
        return _places(draw, problem, files)
    if problem in ("set_cover", "hitting_set", "coverage") and chance < 0.9:
        return _family(draw, problem, files)
    if problem in ("alignment", "qap") and chance < 0.9:
        return _pair(draw, problem, files)
    if problem in ("qubo", "ising") and chance < 0.2:
        files["q.qubo"] = b"p qubo 0 4 2 2\n0 0 -3\n1 1 2.5\n0 1 4\n1 3 -100\n"
        return ["graph.path=q.qubo"]
    if problem == "ordering" and chance < 0.2:
        files["o.txt"] = b"3\n0 4 -2\n1 0 7\n3 0 0\n"
        return ["graph.path=o.txt", "graph.format=lolib"]
    more = []
    if problem in ("coverage", "influence", "facility"):
        more = [f"problem.budget={draw.choice((1, 2, 5, 2.5))}"]
        more += ['problem.sets="neighbourhoods"'] if problem == "coverage" else []
    if problem == "facility":
        more = draw.choice((more, ["problem.facility=uncapacitated"], [*more, "problem.facility=center"]))
    if problem == "steiner" and draw.random() < 0.8:
        more += draw.choice((["problem.terminals=3"], ["problem.terminals=4", "problem.prizes=9"]))
    if problem == "dense":
        size = f"problem.size={draw.choice((1, 2, 3, 7, 12, 100))}"
        more += draw.choice(([], ["problem.dense=size", size]))
    if problem == "dismantle":
        more.append(f"problem.component={draw.choice((1, 2, 3, 0.3))}")
    if problem == "partition":
        more.append(f"problem.parts={draw.choice((2, 3, 7))}")
    if problem == "treewidth":
        more += draw.choice(([], ["problem.eliminate=fill"]))
    if problem == "arrangement":
        kinds_of = ("length", "bandwidth", "cutwidth", "separation", "profile")
        more.append(f"problem.arrange={draw.choice(kinds_of)}")
    if problem == "communities":
        more += draw.choice(([], ["problem.null=sizes", "problem.resolution=0.1"], ["problem.null=none"]))
    if chance < 0.4:
        names = ["arcs", "rmat"] if problem in ("dfvs", "ordering") else None
        return generated(draw, names) + more
    name, data, settings = graph_file(draw, draw.random() < 0.7)
    files[name] = data
    return [f"graph.path={name}", *settings, *more]


def _places(draw: random.Random, problem: str, files: dict[str, bytes]) -> list[str]:
    """Points or distances of tours and routes."""
    n = draw.choice((1, 2, 3, 4, 7, 12, 30))
    if draw.random() < 0.4:
        found = [f"graph.generator={'uniform_points' if problem == 'tsp' else 'customers'}"]
        return [*found, f"graph.nodes={n}", *(["graph.count=2"] if draw.random() < 0.2 else [])]
    far = draw.choice((1, 10, 1000, 1e6))
    points = [(round(draw.uniform(0, far), 3), round(draw.uniform(0, far), 3)) for _ in range(n)]
    if draw.random() < 0.2:
        points = [points[0]] * n
    head = f"NAME : x\nTYPE : {'TSP' if problem == 'tsp' else 'CVRP'}\nDIMENSION : {n}\n"
    text = "".join(f"{i + 1} {x} {y}\n" for i, (x, y) in enumerate(points))
    body = f"EDGE_WEIGHT_TYPE : EUC_2D\nNODE_COORD_SECTION\n{text}"
    if problem == "tsp" and draw.random() < 0.4:
        head = head.replace("TSP", draw.choice(("TSP", "ATSP")))
        rows = "".join(" ".join(str(draw.randint(0, 50)) for _ in range(n)) + "\n" for _ in range(n))
        body = f"EDGE_WEIGHT_TYPE : EXPLICIT\nEDGE_WEIGHT_FORMAT : FULL_MATRIX\nEDGE_WEIGHT_SECTION\n{rows}"
    name = "p.tsp" if problem == "tsp" else "p.vrp"
    if problem == "cvrp":
        head += f"CAPACITY : {draw.choice((3, 9, 100))}\n"
        needs = "".join(f"{i + 1} {0 if i == 0 else draw.randint(0, 3)}\n" for i in range(n))
        body += f"DEMAND_SECTION\n{needs}DEPOT_SECTION\n1\n-1\n"
    files[name] = (head + body + "EOF\n").encode()
    return [f"graph.path={name}"]


def _family(draw: random.Random, problem: str, files: dict[str, bytes]) -> list[str]:
    """A family of sets."""
    budget = [f"problem.budget={draw.choice((1, 2, 3.5, 100))}"] if problem == "coverage" else []
    if draw.random() < 0.4:
        costs = draw.choice(("one", "whole", "mixed"))
        nodes = draw.choice((1, 4, 12, 30))
        return ["graph.generator=sets", f"graph.nodes={nodes}", f"graph.costs={costs}", *budget]
    sets = [sorted(draw.sample(range(9), draw.randint(1, 5))) for _ in range(draw.choice((1, 3, 8, 15)))]
    files["f.sets"] = "".join(f"s{i}: {' '.join(map(str, each))}\n" for i, each in enumerate(sets)).encode()
    return ["graph.path=f.sets", *draw.choice(([], ["graph.ids=names"])), *budget]


def _pair(draw: random.Random, problem: str, files: dict[str, bytes]) -> list[str]:
    """Two graphs."""
    if problem == "qap" and draw.random() < 0.6:
        n = draw.choice((1, 2, 3, 5, 8))
        rows = [" ".join(str(draw.randint(0, 9)) for _ in range(n)) for _ in range(2 * n)]
        files["q.dat"] = (f"{n}\n" + "\n".join(rows) + "\n").encode()
        return ["graph.path=q.dat"]
    if problem == "alignment" and draw.random() < 0.5:
        return generated(draw, ["er", "ba", "small_world"], 16)
    n = draw.choice((2, 4, 7))
    for name in ("a.txt", "b.txt"):
        ends = [(u, v) for u in range(n) for v in range(u) if draw.random() < 0.6] or [(0, 1)]
        files[name] = "".join(f"{u} {v} {draw.randint(1, 9)}\n" for u, v in ends).encode()
    return ["graph.path=a.txt", "graph.onto=b.txt"]


OF_LEARNER = {
    "dqn": ("agent.warmup=2", "agent.batch=4"), "ppo": ("agent.batch=4", "agent.rollout_steps=8"),
    "reinforce": ("agent.rollouts=2",),
}  # fmt: skip


def train_command(draw: random.Random, learner: str) -> Made:
    """A training of some steps."""
    problem = draw.choice([name for name in PROBLEMS if name not in UNTRAINED])
    fixed = ["run.task=train", f"problem.name={problem}", f"agent.learner={learner}"]
    fixed += [f"train.steps={draw.choice((3, 20, 50))}", f"train.evaluate_every={draw.choice((5, 20))}"]
    fixed += ["train.evaluate_graphs=2", *OF_LEARNER[learner]]
    if problem in ("set_cover", "hitting_set"):
        fixed += ["graph.generator=sets", "graph.nodes=8", "graph.count=4"]
    elif problem == "tsp":
        fixed += ["graph.generator=uniform_points", "graph.nodes=8", "graph.count=4"]
    else:
        fixed += [*generated(draw, most=16), "graph.count=4"]
    return fixed, loose(draw, TABLES["train"]), beside(draw), True, ""


def classify_command(draw: random.Random, level: str) -> Made:
    """A network of a level, or of a knowledge graph, for an epoch or two."""
    files, epochs = beside(draw), draw.choice((1, 2))
    tables = list(TABLES["classify"])
    fixed = ["run.task=classify", f"gnn.epochs={epochs}", "gnn.hidden=4"]
    if level.startswith("rgcn"):
        fixed = ["run.task=classify", "gnn.model=rgcn", f"rgcn.goal={level[5:]}", f"rgcn.epochs={epochs}"]
        tables = ["rgcn", "rgcn", "rgcn", "parallel", "memory", "output"]
        fixed += ["graph.generator=ba", "graph.nodes=20", "graph.d=2", "rgcn.relations=3", "rgcn.labelled=12"]
        fixed += ["rgcn.classes=2"]
        return fixed, loose(draw, tables), files, True, ""
    fixed.append(f"gnn.level={level}")
    more = _kind_of_layers(draw) if level != "forecast" and draw.random() < 0.6 else ()
    if level == "forecast":
        tables = ["forecast", "forecast", "gnn", "parallel", "output", "run"]
        fixed += _series(draw, files)
        more = _of_series(draw)
    elif level == "graph":
        fixed += ["graph.generator=motifs", "graph.nodes=[7, 12]", "graph.count=12", "graph.random_classes=2"]
        fixed += ["graph.splits=random"]
    elif level == "node" and draw.random() < 0.4:
        files["g.txt"] = "".join(f"{v} {(v * 5 + k) % 12}\n" for v in range(12) for k in (1, 3)).encode()
        fixed += ["graph.path=g.txt", "graph.labels=y.txt", "graph.splits=random"]
        fixed += draw.choice(([], ["graph.features=x.txt"]))
    else:
        fixed += ["graph.generator=sbm", "graph.nodes=24", "graph.random_classes=2"]
        fixed += ["graph.random_features=3"]
        fixed += {"node": ["graph.splits=random"], "edge": ["graph.edge_splits=random"]}.get(level, [])
    if level == "embed":
        fixed += ["embed.dimension=4", "embed.probe_epochs=3"]
    tables += {"link": ["links"] * 3, "embed": ["embed"] * 3}.get(level, [])
    return fixed, (*more, *loose(draw, tables)), files, True, ""


def _kind_of_layers(draw: random.Random) -> tuple[str, ...]:
    """A kind of layer, and often a key of it."""
    own = ("gnn.heads=2", "gnn.hops=3", "gnn.alpha=0.3", "gnn.depth=3", "gnn.attention_share=0.2",
           "gnn.residual=true", "gnn.members=2", "gnn.jump=concat")  # fmt: skip
    return (f"gnn.model={draw.choice(list(LAYERS))}", *draw.sample(own, draw.choice((0, 0, 1, 2))))


def _of_series(draw: random.Random) -> tuple[str, ...]:
    """What forecasts may be asked for."""
    asked = ("gnn.members=2", "forecast.quantiles=[0.1, 0.5, 0.9]", "output.coverage=0.8",
             "forecast.period=4", "forecast.calendar=[7]", "forecast.model=temporal", "forecast.base=last",
             "forecast.hops=0", "forecast.window=2")  # fmt: skip
    return tuple(draw.sample(asked, draw.choice((0, 1, 2, 3))))


def _series(draw: random.Random, files: dict[str, bytes]) -> list[str]:
    """A graph with series of its nodes: drawn, or of files, in which some values are missing or constant."""
    if draw.random() < 0.6:
        drawn = generated(draw, ["er", "ba", "sbm"], 12)
        drawn = [each for each in drawn if "count" not in each]
        return [*drawn, "graph.series=diffusion", f"graph.series_steps={draw.choice((60, 60, 90))}"]
    n, steps, far = draw.choice((1, 2, 5, 12)), draw.choice((20, 60)), draw.choice((1.0, 1e6, 1e-6, 0.0))
    missing, channels = draw.choice((0.0, 0.0, 0.1, 0.9)), draw.choice((1, 1, 2))
    values = np.array([far * draw.gauss(3, 1) for _ in range(steps * n * channels)])
    values[[draw.random() < missing for _ in values]] = np.nan
    files["series.npz"] = archive(series=values.reshape((steps, n, channels)[: 2 + (channels > 1)]))
    files["g.npz"] = archive(edges=np.array([(v, (v + 1) % n) for v in range(n)]), num_nodes=np.array([n]))
    return ["graph.path=g.npz", "graph.series=series.npz", *_known_beforehand(draw, files, steps, n)]


def _known_beforehand(draw: random.Random, files: dict[str, bytes], steps: int, n: int) -> list[str]:
    """Covariates, now and then of too few steps, or with a value that is not known."""
    asked, reach = [], steps + draw.choice((0, 3, 3, 3, 9))
    if draw.random() < 0.3:
        values = np.array([draw.gauss(0, 1) for _ in range(reach * n)]).reshape(reach, n)
        values[0, 0] = draw.choice((1.0, 1.0, np.nan))
        files["plan.npz"] = archive(covariates=values)
        asked.append("graph.covariates=plan.npz")
    if draw.random() < 0.3:
        lines = (f"{t},{t % 7 == 6:d},{draw.gauss(0, 1):.3f}" for t in range(reach))
        files["days.csv"] = "\n".join(("step,rest,cold", *lines, "")).encode()
        asked.append("graph.shared_covariates=days.csv")
    return asked


SBM = ["graph.generator=sbm", "graph.nodes=24", "graph.random_classes=2", "graph.random_features=3"]
CELLS = ["study.graphs_per_size=1", "train.evaluate_graphs=2"]
STUDY = {
    "quality": ["study.sizes=[8]", "study.recipes=['default']", "study.families=['ba']", *CELLS,
                "study.seeds=[1]", "study.steps=10"],
    "scaling": ["study.measured=['er:30:0.2']", "study.extrapolated=['er:60:0.2']", "study.batches=[2]",
                "study.ranks=[1, 2]", "study.rounds=1", "study.memory_graph=''"],
    "partition": ["graph.generator=er", "graph.nodes=40", "study.rounds=1", "study.epochs=2",
                  "study.horizon=3", "study.clock=simulated"],
    "models": [*SBM, "study.seeds=[1]", "study.models=['gcn', 'gin']", "graph.splits=random"],
    "depth": [*SBM, "study.seeds=[1]", "study.depths=[1, 2]", "study.widths=[4]", "graph.splits=random"],
    "folds": [*SBM, "study.seeds=[1]", "study.folds=3"],
    "tune": [*SBM, "study.seeds=[1]", "study.vary=['hidden 2 4']", "graph.splits=random"],
    "folds forecast": ["gnn.level=forecast", "study.seeds=[1]", "study.folds=2"],
    "tune forecast": ["gnn.level=forecast", "study.seeds=[1, 2]",
                      "study.vary=['forecast.window 2 5', 'forecast.model recurrent temporal']"],
    "breakdown": [*SBM, "study.rounds=1"], "permutation": [*SBM, "study.rounds=1", "study.widths=[4]"],
    "overlap": [*SBM, "study.rounds=1", "study.widths=[4]"],
    "density": ["graph.generator=bter", "graph.nodes=30", "graph.d=2", "study.scales=[1, 2]",
                "graph.random_classes=2", "graph.random_features=3", "study.rounds=1"],
    "sampling": [*SBM, "study.batches=[8]", "study.fanouts=[2, 2]", "study.epochs=1", "study.layer_epochs=1",
                 "study.seeds=[1]", "graph.splits=random"],
    "inference": [*SBM, "graph.count=3", "study.held_back=1", "study.rounds=1"],
    "memory": [*SBM, "study.limits=[0.0, 0.8]", "study.rounds=1"],
    "throughput": [*SBM, "study.rounds=1", "study.epochs=1"],
    "gnn_scaling": [*SBM, "study.rounds=1", "study.ranks=[1, 2]"],
    "rgcn": ["graph.generator=ba", "graph.nodes=20", "graph.d=2", "rgcn.relations=4", "rgcn.labelled=10",
             "rgcn.classes=2", "study.parts=[1, 2]", "study.epochs=2"],
    "selection": ["study.measured=['er:30:0.2']", "study.rules=['adaptive']", "study.seeds=[1]"],
    "strong_scaling": ["study.measured=['er:30:0.2']", "study.batches=[2]", "study.rounds=1",
                       "study.ranks=[1, 2]"],
    "learners": ["graph.generator=mixed", "graph.nodes=[10, 12]", "graph.count=4", "graph.d=2",
                 "study.learners=['dqn']", "study.embeddings=['structure2vec']", "study.problems=['mvc']",
                 *CELLS, "study.steps=10"],
    "progress": ["graph.generator=mixed", "graph.nodes=[10, 12]", "graph.count=4", "graph.d=2",
                 "study.families=['ba']", "study.targets=[1.5]", "train.steps=10", *CELLS,
                 "study.seeds=[1]"],
}  # fmt: skip
STUDY["answers"] = ["search.steps=7", "search.bound_seconds=0"]
REPEATED = (
    "answers",
    "quality",
    "models",
    "depth",
    "folds",
    "tune",
    "learners",
)  # whose digests are of no times


def study_command(draw: random.Random, name: str) -> Made:
    """A study of little."""
    kind, files = name.split()[0], beside(draw)
    fixed = ["run.task=study", f"study.kind={kind}", *STUDY[name], "gnn.hidden=4", "gnn.epochs=2"]
    if name.endswith("forecast"):
        fixed += _series(draw, files)
        more = (*_of_series(draw), *loose(draw, ["forecast", "forecast", "study", "gnn", "output"], 2))
        return fixed, more, files, True, ""
    if kind == "answers":
        fixed += _catalogue(draw, files)
    if kind in ("learners", "scaling", "strong_scaling"):
        fixed += ["agent.warmup=2", "agent.batch=4"]
    if kind == "progress":
        learner = draw.choice(list(OF_LEARNER))
        fixed += [f"agent.learner={learner}", *OF_LEARNER[learner]]
    if kind == "quality":
        fixed += [f"study.recipes=['{draw.choice(list(RECIPES))}']"]
    return fixed, loose(draw, TABLES["study"], 3), files, kind in REPEATED, ""


def _catalogue(draw: random.Random, files: dict[str, bytes]) -> list[str]:
    """A list of graphs of the folders that studies of answers know, and which of them are asked for."""
    for name in ("mvc/a.txt", "large/b.txt", "maxcut/c.txt"):
        _, edges = small_graph(draw)
        files[name] = "".join(f"{u} {v} {w:g}\n" for u, v, w in edges).encode() or b"0 1\n"
    places: dict[str, bytes] = {}
    _places(draw, "tsp", places)
    files |= {f"tsp/{name}": data for name, data in places.items()}
    best = draw.choice(("", "", "best_value = 3\n"))
    names = [name for name in files if "/" in name]
    listed = "".join(f'[[file]]\npath = "{name}"\n{best}' for name in names)
    files["catalogue.toml"] = listed.encode()
    sets = draw.choice((["mvc"], ["mvc", "large"], ["maxcut", "tsp"], ["mvc", "maxcut"], ["tsp"]))
    return ["study.catalogue=catalogue.toml", f"study.sets={sets}"]


TAIL = """
import json, sys
try:
    found = call()
except LockstepError as error:
    print("refused:", error, file=sys.stderr)
    sys.exit(error.exit_code)
every = MPI.COMM_WORLD.gather(json.dumps(found))
if every:
    print("found", sorted(set(every)))
"""


def python_command(draw: random.Random, call: str) -> Made:
    """A call of `app`, its graph in memory, printed the same by all ranks."""
    n, edges = small_graph(draw)
    ends = [(u, v) for u, v, _ in edges if u != v]
    problem = draw.choice([name for name in PROBLEMS if name not in FILES])
    given = draw.choice((
        f"{[(u, v, w) for u, v, w in edges]!r}",
        f"nx.Graph({ends!r})", f"np.array({ends!r}, dtype=int).reshape(-1, 2)",
        f"nx.DiGraph({ends!r})", f"nx.relabel_nodes(nx.Graph({ends!r}), str)",
        f"sparse.coo_array(nx.to_numpy_array(nx.path_graph({n})))", f"nx.empty_graph({n})",
        f"np.array(nx.to_numpy_array(nx.star_graph({n})))",
    ))  # fmt: skip
    more = [each.split("=", 1) for each in loose(draw, TABLES["solve"], 2)]
    head = "import networkx as nx, numpy as np\nfrom scipy import sparse\n"
    head += "from mpi4py import MPI\n"
    head += "from app.errors import LockstepError\nfrom app.problems.table import make_problem\n"
    if call == "solve":
        settings = {"search.steps": 5, "search.bound_seconds": 0}
        shown = f"{settings!r} | {{{', '.join(f'{key!r}: {python_value(text)}' for key, text in more)}}}"
        own = [draw.randint(0, 5) for _ in range(n)]
        weighted = f", node_weights={own}" if draw.random() < 0.2 else ""
        body = f"    a = app.solve({given}, {problem!r}, settings={shown}{weighted})\n"
        body += f"    sign = 1 if make_problem({problem!r}).sense == 'minimise' else -1\n"
        if problem != "influence":  # whose bound is of the expected spread; how good bounds are, time decides
            body += "    assert a.bound is None or sign * (a.objective - a.bound) > -1e-6, a.bound\n"
        body += "    return [a.objective, str(a.nodes)[:50]]\n"
    elif call == "classify":
        n = 12
        body = f"    g = nx.cycle_graph({n})\n    labels = [v % 2 for v in g]\n"
        body += "    a = app.classify(g, labels=labels, train=[0, 1, 2], test=[3, 4], "
        network = [each.split("=", 1) for each in loose(draw, ["gnn", "gnn", "smooth"], 2)]
        shown = ", ".join(f"{key!r}: {python_value(text)}" for key, text in network)
        body += f"settings={{'gnn.epochs': 2, {shown}}})\n    return [str(a.predicted[:4])]\n"
    elif call == "forecast":
        asked = [each.split("=", 1) for each in (*_of_series(draw), *loose(draw, ["forecast", "gnn"], 2))]
        shown = ", ".join(f"{key!r}: {python_value(text)}" for key, text in asked)
        study = draw.choice(("", "", "folds=2, ", "vary={'forecast.window': [2, 5]}, "))
        body = "    g = nx.cycle_graph(7)\n"
        body += f"    s = np.sin(np.arange({draw.choice((40, 60))} * 7.0)).reshape(-1, 7)\n"
        body += "    a = app.forecast(g, s, "
        seeds = "'study.seeds': [1], " if study else ""
        body += f"{study}settings={{'gnn.epochs': 1, {seeds}{shown}}})\n    return [a.digest]\n"
    else:
        shown = ", ".join(
            f"{key!r}: {python_value(text)}" for key, text in (e.split("=", 1) for e in SHORT[:2])
        )
        agent = [each.split("=", 1) for each in loose(draw, ["agent", "policy", "train"], 2)]
        drawn = ", ".join(f"{key!r}: {python_value(text)}" for key, text in agent)
        body = f"    p = app.train({{'train.steps': 10, 'agent.warmup': 2, {shown}, {drawn}}})\n"
        body += f"    a = app.solve({given}, weights=p, settings={{'search.steps': 3}})\n"
        body += "    return [a.objective]\n"
    return [], (), {}, True, f"import app\n{head}def call():\n{body}{TAIL}"


def python_value(text: str) -> str:
    """A value of TOML, or text without quotes, as Python writes it."""
    if text in ("true", "false"):
        return text.title()
    if text in ("nan", "-inf", "1e400"):
        return f"float('{text}')"
    try:
        return repr(json.loads(text))
    except ValueError:
        return repr(text.strip("'\""))


MADE = {
    "solve": solve_command, "train": train_command, "classify": classify_command, "study": study_command,
    "python": python_command,
}  # fmt: skip
LEVELS = ("node", "edge", "graph", "link", "embed", "forecast", "rgcn classes", "rgcn links")


def _subjects() -> Iterator[str]:
    """What commands are of; a problem as often as a level, a study half as often."""
    for _ in range(2):
        yield from (f"solve {name}" for name in PROBLEMS)
        yield from (f"exact {name}" for name in PROBLEMS)
        yield from (f"classify {level}" for level in LEVELS)
        yield from (f"train {learner}" for learner in ("dqn", "ppo", "reinforce"))
        yield from (f"python {call}" for call in ("solve", "solve", "classify", "train", "forecast"))
    yield from (f"study {kind}" for kind in STUDY)


SUBJECTS = tuple(_subjects())
