"""The layers of the program, read from its import statements, and what must not occur in it at all."""

import ast
import functools
import gc
import re
import subprocess
import sys

import pytest
from jobs import ROOT

pytestmark = pytest.mark.mpi_skip
APP = ROOT / "app"

# A file or package of app/ imports only from rows above its own, and from itself.
LAYERS = (
    ("errors", "faults", "lean", "rng", "stopping", "text", "watchdog"),
    ("aside", "files", "tables", "threads"),
    ("numerics",),
    ("case", "cuda", "native"),
    ("cli", "device", "graphs", "log", "memory", "page"),
    ("comm",),
    ("blocks", "checkpoint"),
    ("partition",),
    ("instance", "sparse", "tools"),
    ("gnn", "reductions", "toolbox"),
    ("bounds",),
    ("proofs",),
    ("search",),
    ("problems",),
    ("rl",),
    ("solver",),
    ("model",),
    ("output", "recipes"),
    ("plots",),
    ("tasks",),
    ("summary",),
    ("api", "commands", "main"),
    ("__main__",),
)
LEVEL = {name: level for level, row in enumerate(LAYERS) for name in row}
# The same of the files of a package.
INSIDE = {
    "api": (
        ("drawing",),
        ("folds", "given", "networks", "results"),
        ("loop", "pairs", "routes", "tune"),
        ("graph", "graphs", "learning", "nodes"),
        ("classify", "solve", "train", "triples"),
        ("edges", "embed", "forecast", "links"),
        ("explain",),
    ),
}
INSIDE_LEVEL = {
    (part, name): level for part, rows in INSIDE.items() for level, row in enumerate(rows) for name in row
}
# Narrower than their row: all that these import of app/.
ONLY = {
    "case": {"errors", "text"},
    "cli": {"case", "errors", "text"},
    "log": {"text", "watchdog"},
    "page": {"errors", "text"},
    "commands": {"case", "errors", "files", "graphs", "page", "partition", "text"},
    "graphs": {"errors", "rng", "native"},
    "memory": {"errors"},
    "blocks": {"errors", "graphs", "native", "rng"},
    "checkpoint": {"case", "comm", "errors", "faults", "log", "stopping", "text", "watchdog"},
    "gnn": {
        "checkpoint",
        "sparse",
        "native",
        "partition",
        "comm",
        "graphs",
        "memory",
        "case",
        "numerics",
        "errors",
        "files",
        "rng",
        "watchdog",
    },
    "reductions": {"graphs", "errors", "native"},
    "instance": {"errors", "graphs"},
    "tools": {"graphs"},
    "toolbox": {"errors", "graphs", "instance", "tools"},
    "bounds": {"graphs", "errors", "memory", "native", "reductions", "rng", "toolbox"},
    "search": {
        "blocks",
        "graphs",
        "errors",
        "native",
        "numerics",
        "reductions",
        "bounds",
        "proofs",
        "rng",
        "toolbox",
    },
    "problems": {
        "graphs",
        "errors",
        "numerics",
        "reductions",
        "bounds",
        "search",
        "rng",
        "tables",
        "toolbox",
    },
    "proofs": {"bounds", "files", "reductions", "toolbox"},
}
OWNERS = {
    "cupy": ("device.py", "sparse/kernels/"),
    "cupyx": ("device.py", "sparse/kernels/"),
    "mpi4py": (
        "comm/",
        "main.py",
        "api/",
    ),
    "random": ("graphs/generators/random.py",),  # NetworkX draws by it; all else by app/rng.py
}
BANNED_MODULES = {
    "pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "yaml", "ruamel",
    "code", "runpy", "socketserver",
}  # fmt: skip
BANNED_CALLS = {"eval", "exec", "compile", "__import__", "breakpoint"}
BANNED_ATTRIBUTES = {"np.fromstring", "os.system", "os.popen"}
# All else in np.random draws from a hidden state; app/rng.py makes streams.
RANDOM = ("np.random.Generator", "np.random.Philox")
# mpi4py's lowercase methods pickle what they send.
PICKLING = {
    "send", "isend", "ssend", "bsend", "recv", "irecv", "mrecv", "sendrecv", "bcast", "gather", "scatter",
    "allgather", "alltoall", "allreduce", "scan", "exscan", "ibcast",
}  # fmt: skip

PLACE = re.compile(r"app(\.\w+)+:\w+")  # of a thing, as app/tables.py has it


def paths():
    """The files, below app/."""
    return [p.relative_to(APP).as_posix() for p in sorted(APP.rglob("*.py"))]


@functools.cache
def sources():
    """(path below app/, syntax tree) of every file."""
    gc.disable()  # trees are of many objects, all of which stay: to look for others takes twice the time
    try:
        return [(path, ast.parse((APP / path).read_text("utf-8"))) for path in paths()]
    finally:
        gc.enable()


@pytest.fixture(scope="module", autouse=True)
def forgotten():
    """Trees go with the last test of this file."""
    yield
    sources.cache_clear()
    nodes.cache_clear()


@functools.cache
def nodes(tree):
    """All that a tree consists of."""
    return list(ast.walk(tree))


def imported(tree):
    """(module, names) of every import statement, wherever it stands; no names for `import module`.

    A place of a table, "app.rl.agent:Agent", is an import, too.
    """
    for node in nodes(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, ()
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            yield node.module, tuple(alias.name for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and PLACE.fullmatch(node.value):
            module, name = node.value.split(":")
            yield module, (name,)


def parts_of_app(tree):
    """The files and packages of app/ that a source imports from."""
    for module, names in imported(tree):
        if module == "app":
            yield from names
        elif module.startswith("app."):
            yield module.split(".")[1]


def upward_imports(path, tree):
    """The imports of a file that point up, sideways, or past what its package is allowed."""
    part = path.split("/")[0].removesuffix(".py")
    for other in parts_of_app(tree):
        below = LEVEL.get(other, len(LAYERS)) < LEVEL[part]
        if other != part and not (below and other in ONLY.get(part, LEVEL)):
            yield f"app/{path} imports app.{other}"


def upward_inside(path, tree):
    """The imports of a file of INSIDE that point up or sideways in its package."""
    part, _, name = path.removesuffix(".py").partition("/")
    for module, names in imported(tree) if part in INSIDE and name != "__init__" else ():
        others = names if module == f"app.{part}" else module.split(".")[2:3]
        for other in others if module.startswith(f"app.{part}") else ():
            if not INSIDE_LEVEL[part, other] < INSIDE_LEVEL[part, name]:
                yield f"app/{path} imports app.{part}.{other}"


def foreign_imports(path, tree):
    """Imports of libraries that belong to another file."""
    for module, _ in imported(tree):
        owners = OWNERS.get(module.split(".")[0])
        if owners and not path.startswith(owners):
            yield f"app/{path} imports {module}; only {', '.join(owners)} may"


def dotted(node):
    """a.b.c as it is written; "" before the points of what is no name."""
    names = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join([getattr(node, "id", ""), *reversed(names)])


def is_address(node):
    return isinstance(node, ast.Call) and getattr(node.func, "id", None) == "address"


def banned(path, tree):
    """Ways to run code from data, to reach a shell, or to pickle between ranks."""
    for module, names in imported(tree):
        if module.split(".")[0] in BANNED_MODULES or (module == "subprocess" and "getoutput" in names):
            yield f"app/{path} imports {module}"
    for node in nodes(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", None)
            attribute = getattr(node.func, "attr", None)
            if name in BANNED_CALLS or attribute in PICKLING:
                yield f"app/{path}:{node.lineno} calls {name or attribute}"
            for keyword in node.keywords:
                if (
                    keyword.arg in ("shell", "allow_pickle")
                    and getattr(keyword.value, "value", 1) is not False
                ):
                    yield f"app/{path}:{node.lineno} passes {keyword.arg}"
        elif isinstance(node, ast.Attribute):
            chain = dotted(node).replace("numpy.", "np.")
            hidden_state = chain.startswith("np.random.") and not chain.startswith(RANDOM)
            if chain in BANNED_ATTRIBUTES or hidden_state:
                yield f"app/{path}:{node.lineno} uses {chain}"


# Expressions that make an array of their own.
MADE = ast.Call | ast.BinOp | ast.UnaryOp | ast.Compare | ast.ListComp | ast.GeneratorExp


def dangling(path, tree):
    """Addresses of arrays that nothing holds: their memory may be another's before a kernel reads it."""
    if not any(getattr(node, "id", None) == "address" for node in nodes(tree)):
        return  # nobody takes one: what follows is slow
    for node in nodes(tree):
        if isinstance(node, ast.ListComp | ast.GeneratorExp) and any(map(is_address, ast.walk(node.elt))):
            given = node.generators[0].iter
            made = any(isinstance(part, MADE) for part in ast.walk(given))
            yield from [f"app/{path}:{node.lineno} takes addresses of {ast.unparse(given)}"] * made
        if not isinstance(node, ast.Call):
            continue
        mapped = getattr(node.func, "id", None) == "map" and ast.unparse(node.args[0]) == "address"
        taken = node.args[1:] if mapped else node.args if is_address(node) else []
        for each in taken:
            for array in each.elts if isinstance(each, ast.Tuple | ast.List) else [each]:
                if not ast.unparse(array).startswith("getattr(") and any(
                    isinstance(part, MADE) for part in ast.walk(array)
                ):
                    yield f"app/{path}:{node.lineno} takes the address of {ast.unparse(array)}"


def test_every_rule_is_kept():
    """All in one test: trees are made by one worker of a session."""
    rules = (upward_imports, upward_inside, foreign_imports, banned, dangling)
    assert [
        line
        for path, tree in sources()
        if path != "__init__.py"
        for rule in rules
        for line in rule(path, tree)
    ] == []


def test_places_of_tables_exist():
    """What app/tables.py imports by name is there."""
    trees = dict(sources())
    places = {
        node.value
        for tree in trees.values()
        for node in nodes(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and PLACE.fullmatch(node.value)
    }
    assert len(places) > 40
    for place in places:
        module, name = place.split(":")
        tree = trees[module.removeprefix("app.").replace(".", "/") + ".py"]
        assert name in {getattr(node, "name", "") for node in tree.body}, place


def test_the_program_itself_keeps_the_rules():
    tree = ast.parse((ROOT / "run.py").read_text("utf-8"))
    assert [*foreign_imports("../run.py", tree), *banned("../run.py", tree)] == []


def test_every_part_has_a_layer():
    parts = {path.split("/")[0].removesuffix(".py") for path in paths()} - {"__init__", "weights"}
    assert parts == set(LEVEL)


def test_the_document_shows_these_layers():
    """The block under "Layers" of docs/architecture.md, from the top down."""
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8").split("## Layers", 1)[1]
    shown = [tuple(line.split()) for line in text.split("```")[1].strip().splitlines()]
    assert [set(row) for row in shown] == [set(row) for row in reversed(LAYERS)]


def test_packages_are_empty():
    """A name is imported from the module that defines it."""
    filled = [str(p) for p in APP.rglob("__init__.py") if p.parent != APP and p.read_text().strip()]
    assert filled == []


@pytest.mark.parametrize(
    ("rule", "path", "line"),
    [
        (upward_imports, "gnn/layer.py", "from app.problems.mvc import x"),
        (upward_imports, "problems/mvc.py", "from app.rl.env import x"),
        (upward_imports, "search/cover/baselines.py", "def f():\n    from app.rl import env"),
        (upward_imports, "bounds/cover/lp.py", "import app.rl.env"),
        (upward_imports, "graphs/graph.py", "from app.comm.group import Group"),
        (upward_imports, "case/config.py", "from app import cli"),
        (upward_imports, "problems/table.py", "PROBLEMS = Table({'mvc': 'app.rl.env:GraphEnv'})"),
        (upward_imports, "case/text.py", "from app.graphs.graph import Graph"),
        (upward_imports, "cli.py", "from app import device"),
        (upward_imports, "cuda/device.py", "from app.device import HostDevice"),
        (upward_inside, "api/graph.py", "from app.api import solve"),
        (upward_inside, "api/given.py", "from app.api.results import Solution"),
        (foreign_imports, "cuda/device.py", "import cupy"),
        (foreign_imports, "rl/env.py", "import cupy as cp"),
        (foreign_imports, "rl/env.py", "from random import Random"),
        (foreign_imports, "device.py", "from mpi4py import MPI"),
        (foreign_imports, "output.py", "def f():\n    from mpi4py import MPI"),
        (banned, "rl/env.py", "import pickle"),
        (banned, "rl/env.py", "from pickle import loads"),
        (banned, "rl/env.py", "def f():\n    import yaml"),
        (banned, "rl/env.py", "exec(text)"),
        (banned, "rl/env.py", "x = eval('1')"),
        (banned, "rl/env.py", "subprocess.run('ls', shell=True)"),
        (banned, "rl/env.py", "np.load(path, allow_pickle=True)"),
        (banned, "rl/env.py", "np.fromstring(text)"),
        (banned, "rl/env.py", "np.random.rand()"),
        (banned, "comm/group.py", "x = comm.bcast(x)"),
        (dangling, "native/x.py", "f(n, address(a.astype(np.int64)))"),
        (dangling, "native/x.py", "f(n, *map(address, (*rows, a + 1, b)))"),
        (dangling, "native/x.py", "arrays = map(address, [np.zeros(3)])"),
        (dangling, "native/x.py", "arrays = [address(a) for a in (b.astype(np.int64), c)]"),
        (dangling, "native/x.py", "f(address(a > 0))"),
        (banned, "comm/group.py", "x = self.comm.allgather(x)"),
    ],
)
def test_the_rules_bite(rule, path, line):
    assert list(rule(path, ast.parse(line)))


@pytest.mark.parametrize(
    ("statement", "unwanted"),
    [
        ("import app", {"numpy", "scipy", "mpi4py", "cupy", "networkx"}),
        ("import app.case.config", {"numpy", "scipy", "mpi4py", "cupy", "networkx"}),
        ("import app.cli", {"numpy", "scipy", "mpi4py", "cupy", "networkx"}),
        (
            "import app.__main__, app.commands.report, app.page.report",
            {"numpy", "scipy", "mpi4py", "matplotlib"},
        ),
        ("import app.commands.convert, app.commands.generate", {"numpy", "scipy", "mpi4py"}),
        ("import app.graphs.formats.writers, app.graphs.whole, app.partition.generators", {"mpi4py", "cupy"}),
        ("import run", {"numpy", "scipy", "mpi4py", "cupy", "networkx"}),
        ("import app.graphs.formats.readers, app.problems.table, app.bounds.cover.table", {"mpi4py", "cupy"}),
        ("import app.main", {"cupy", "matplotlib"}),
        (
            "from app import solve",
            {"app.gnn.saved", "app.gnn.engine", "app.gnn.layers.table", "numpy.f2py", "numpy.testing"},
        ),
    ],
)
def test_what_an_import_loads(statement, unwanted):
    text = f"{statement}\nimport sys\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", text], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    assert unwanted.isdisjoint(done.stdout.split())


# Of what nearly every run is without: plots, other tasks' libraries, what SciPy's import would bring along.
HEAVY = {
    "matplotlib", "networkx", "highspy", "scipy.optimize", "scipy.spatial", "numpy.f2py", "app.tasks.study",
}  # fmt: skip
POLICIES = {"app.rl.qnet", "app.rl.env", "app.problems.problem", "app.bounds.certificate", "app.tasks.solve"}
NETWORKS = {
    "app.gnn.training", "app.gnn.classifier", "app.model.gnn", "app.tasks.classify", "app.gnn.rgcn.model",
}  # fmt: skip
NO_PLOTS = "output.plots=false"


@pytest.mark.parametrize(
    ("arguments", "code", "unwanted"),
    [
        (["--help"], 0, {"numpy", "mpi4py"}),
        (["inputs/gcn.toml", "gnn.epoch=1"], 2, {"numpy", "mpi4py"}),
        (
            ["inputs/gcn.toml", "graph.nodes=60", "gnn.epochs=1", NO_PLOTS],
            0,
            {*HEAVY, *POLICIES, "app.gnn.rgcn.model", "scipy.linalg", "scipy.sparse.csgraph"},
        ),
        (
            ["inputs/mvc.toml", "graph.generator=ba", "graph.nodes=40", "graph.d=3", NO_PLOTS],
            0,
            {*HEAVY, *NETWORKS, "app.gnn.layers.table", "app.problems.maxcut", "app.rl.ppo"},
        ),
    ],
)
def test_what_a_run_loads(arguments, code, unwanted, tmp_path):
    """A run that is quick to start stays so: it loads what its task needs."""
    text = "import sys, run\ncode = run.main(sys.argv[1:])\nprint(*sys.modules)\nsys.exit(code)"
    command = [sys.executable, "-c", text, *arguments, "--out", str(tmp_path / "out")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    loaded = done.stdout.splitlines()[-1].split()
    assert (done.returncode, sorted(unwanted.intersection(loaded))) == (code, []), done.stderr


def test_every_file_is_read():
    assert {"main.py", "comm/group.py", "graphs/formats/text.py"} <= set(paths())
