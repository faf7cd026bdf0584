"""The case file, the command line, and what a user sees when one of them is wrong."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import ValidationError, convert, structs
from msgspec import inspect as kinds

from app import cli
from app.case import config
from app.case.check import value_mistake
from app.case.config import Case, all_keys
from app.case.file import build, load, named_files
from app.case.gnn import GnnCase
from app.case.graph import BY_GENERATOR, OF_GENERATED, GraphCase
from app.case.places import DEEPEST, key_places
from app.case.policy import AgentCase, TrainCase
from app.case.rgcn import RgcnCase
from app.case.rules.forecasts import OF_NODE_FILES, READ_BY_FORECASTS
from app.case.rules.graphs import LIKE_CLASSIFY, OF_NODES
from app.case.rules.networks import OF_RELATIONAL_LAYERS
from app.case.rules.policies import BY_LEARNER, OF_AGENTS, OF_SEARCHES
from app.case.rules.studies import READ_BY_ALL, READ_BY_KIND
from app.case.run import OutputCase, RunCase
from app.case.search import SearchCase
from app.case.smooth import OF_SCALE, READ
from app.case.study import StudyCase
from app.case.table import bare_type
from app.case.text import case_digest, help_text, to_toml
from app.errors import CaseError
from app.text import printable, toml_value

pytestmark = pytest.mark.mpi_skip
ROOT = Path(__file__).parent.parent
SOLVABLE = '[graph]\ngenerator = "er"\nnodes = 20\n'
FUZZ = settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture
def case_file(tmp_path):
    """Write the text as a case file; returns its path."""

    def write(text, name="case.toml"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    return write


def mistakes(path, *overrides):
    """The lines of the CaseError that loading raises."""
    with pytest.raises(CaseError) as caught:
        load(path, list(overrides))
    return str(caught.value).split("\n")


def run_program(*arguments, ranks=0, cwd=ROOT, **environment):
    """Run run.py, under mpirun where ranks are given."""
    command = [sys.executable, str(ROOT / "run.py"), *arguments]
    if ranks:
        mpirun = Path(sys.executable).parent / "mpirun"
        if not mpirun.exists():
            pytest.skip(f"no mpirun beside {sys.executable}")
        command = [str(mpirun), "-np", str(ranks), *command]
    return subprocess.run(
        command, capture_output=True, timeout=60, cwd=cwd, env={**os.environ, **environment}, check=False
    )


# --------------------------------------------------------------------------------
# Defaults and structs


def test_neither_numpy_nor_mpi_is_imported():
    code = "import sys, app.case.config, app.cli; print([m for m in ('numpy', 'mpi4py') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=ROOT, timeout=60, check=True)
    assert done.stdout.split() == [b"[]"]


def test_every_key_says_what_it_means_and_its_default_is_in_range():
    for keys, each, table in all_keys():
        assert kinds.type_info(each.type).extra_json_schema["description"], keys
        assert value_mistake(each.type, getattr(table(), each.name)) is None, keys


def test_structs_are_frozen_and_strict():
    with pytest.raises(AttributeError):
        Case().seed = 1
    with pytest.raises(ValidationError):
        convert({"nam": "x"}, RunCase)


def test_some_defaults_that_other_parts_rely_on():
    case = Case()
    assert (case.run.task, case.run.check_every, case.graph.path) == ("solve", 500, [])
    assert (case.policy.layers, case.policy.dimension, case.policy.mean_degree) == (2, 16, True)
    assert (case.agent.discount, case.agent.warmup, case.agent.shaping) == (0.5, 64, "caro_wei")
    assert case.train.graphs is None
    assert case.study.sizes == [50, 100, 150, 200, 250]


def test_version_is_that_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == config.VERSION


# --------------------------------------------------------------------------------
# Loading


def test_overrides_go_over_the_file(case_file):
    path = case_file(SOLVABLE + "[train]\nsteps = 5\n[train.graphs]\ngenerator = 'ba'\nnodes = 30\n")
    case = load(path, ["train.graphs.nodes=[50, 100]", "train.steps=2000", "run.name='x y'", "seed=7"])
    assert case.train.graphs == GraphCase(generator="ba", nodes=(50, 100))
    assert (case.train.steps, case.run.name, case.seed) == (2000, "x y", 7)
    case = load(path, ['train={steps=9, graphs.ids="names", graphs.path="networkx:karate_club_graph"}'])
    assert (case.train.steps, case.train.graphs.ids, case.train.graphs.generator) == (9, "names", "")


@pytest.mark.parametrize(
    ("override", "value"),
    [
        ("run.name=a b", "a b"),
        ("run.out=runs/x=1#2", "runs/x=1#2"),
        ("run.task=study", "study"),
        ("gnn.model=sage", "sage"),
        ("graph.generator=ba", "ba"),
        ("train.graphs.generator=mixed", "mixed"),
        ("train.graphs.path=networkx:karate_club", ["networkx:karate_club"]),
        ("graph.path= networkx:karate_club ", ["networkx:karate_club"]),
        ("policy.weights=/a/w.npz", "/a/w.npz"),
        ("policy.weights='train'", "train"),
        ("select.rule=fraction", "fraction"),
        ("problem.name=mvc", "mvc"),
        ("study.data=/x/y z/", "/x/y z"),
    ],
)
def test_text_on_the_command_line_needs_no_quotes(case_file, override, value):
    case = load(case_file(SOLVABLE + "[train.graphs]\ngenerator = 'er'\nnodes = 9\n"), [override])
    for key in override.split("=")[0].split("."):
        case = getattr(case, key)
    assert case == value


def test_every_format_that_can_be_read_can_be_named():
    readers = pytest.importorskip("app.graphs.formats.readers")
    assert set(config.type_of(("graph", "format")).type.values) == {"auto", *readers.READERS}


def test_the_name_is_that_of_the_file(case_file):
    assert load(case_file(SOLVABLE, "my case.toml"), []).run.name == "my_case"
    assert load(case_file(SOLVABLE), ['run.name="n"']).run.name == "n"


def test_a_byte_order_mark_and_windows_line_ends(case_file):
    text = SOLVABLE.replace("\n", "\r\n") + "d = 'x'\r\n"
    assert "(line 4)" in mistakes(case_file(b"\xef\xbb\xbf" + text.encode()))[0]


def test_an_unknown_key_names_line_and_nearest(case_file):
    path = case_file(SOLVABLE + "# c\n[train]\nlearning_rat = 1\n")
    assert mistakes(path) == [
        f"{path}: unknown key train.learning_rat (line 6): did you mean agent.learning_rate?"
    ]


def test_all_unknown_keys_at_once_with_their_lines(case_file):
    path = case_file(
        """sed = 3
[graph]
generator = "er"  # [train]
nodes = [5,
  # x = 1
  10]
pp = 0.5
[train]
"stepps" = 100
batch = 3
graphs = {generator = "ba", node = 30, 'd' = 2}
[agent]
replay = '''
discont = 1'''
xyzzy = 1
[trian]
steps = 1
[[agnt]]
[train.graph]
[a.b.c.d.e]
"""
    )
    lines = mistakes(path, "study.size=[1]", "run.nam='x'", "polcy={}")
    assert lines[0] == f"{path}: 14 mistakes"
    assert sorted(lines[1:]) == sorted(
        [
            "  unknown key sed (line 1): did you mean seed?",
            "  unknown key graph.pp (line 7): [graph] has "
            + ", ".join(each.name for each in structs.fields(GraphCase)),
            "  unknown key train.stepps (line 9): did you mean train.steps?",
            "  unknown key train.batch (line 10): did you mean agent.batch?",
            "  unknown key train.graphs.node (line 11): did you mean train.graphs.nodes?",
            '  agent.replay (line 13): must be one of "bits", "episodes", got "discont = 1"',
            "  unknown key agent.xyzzy (line 15): [agent] has "
            + ", ".join(each.name for each in structs.fields(AgentCase)),
            "  unknown table [trian] (line 16): did you mean [train]?",
            "  unknown table [agnt] (line 18): did you mean [agent]?",
            "  unknown table [train.graph] (line 19): did you mean [train.graphs]?",
            "  unknown table [a] (line 20): a case has "
            + ", ".join(each.name for each in structs.fields(Case)),
            "  unknown key study.size (command line): did you mean study.sizes?",
            "  unknown key run.nam (command line): did you mean run.name?",
            "  unknown table [polcy] (command line): did you mean [policy]?",
        ]
    )


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("train.steps=-3", "train.steps (command line): must be at least 1, got -3"),
        ("train.steps=1.0", "train.steps (command line): must be a whole number, at least 1, got 1.0"),
        ("train.steps='x'", 'train.steps (command line): must be a whole number, at least 1, got "x"'),
        ("train.steps=true", "train.steps (command line): must be a whole number, at least 1, got true"),
        ("train.steps={a=1}", "train.steps (command line): must be a whole number, at least 1, got a table"),
        (
            "train.steps=1979-05-27",
            "train.steps (command line): must be a whole number, at least 1, got 1979-05-27",
        ),
        ("train=3", "train (command line): must be a table, got 3"),
        ("train.graphs=3", "train.graphs (command line): must be a table, got 3"),
        ("train.held_back={generator='er', nodes=4}", 'policy.weights = "train", reads it: leave it out'),
        ("train.graphs={generator='diverse', nodes=[1, 5]}", "train.graphs.nodes (command line): must be"),
        ("train.held_back.pth='x'", "unknown key train.held_back.pth (command line)"),
        ("seed=9223372036854775808", "seed (command line): must be a number of at most 64 bits, got"),
        ("agent.discount=nan", "agent.discount (command line): must be a finite number, got nan"),
        ("agent.learning_rate=inf", "agent.learning_rate (command line): must be a finite number, got inf"),
        ("agent.learning_rate=0", "agent.learning_rate (command line): must be above 0, got 0"),
        ("agent.adam_beta1=1", "agent.adam_beta1 (command line): must be at least 0 and below 1, got 1"),
        ("policy.layers=17", "policy.layers (command line): must be from 1 to 16, got 17"),
        ("policy.head='x'", 'policy.head (command line): must be one of "mixing", "separate", got "x"'),
        ("search.bounds=1", "search.bounds (command line): must be true or false, got 1"),
        ("study.sizes=[5, 0]", "study.sizes (command line): must be at least 1, got 0"),
        ("study.sizes=[]", "study.sizes (command line): must be a list of at least one, each a whole number"),
        ("study.seeds=[[1]]", "study.seeds (command line): must be a whole number, at least 0, got [1]"),
        (
            "study.layer_samples=[400, 0]",
            "study.layer_samples (command line): must be at least 1 but in the first place, got [400, 0]",
        ),
        ("study.layer_samples=[-1]", "study.layer_samples (command line): must be at least 0, got -1"),
        ("study.layer_epochs=0", "study.layer_epochs (command line): must be at least 1, got 0"),
        ("study.fanouts=[0]", "study.fanouts (command line): must be at least 1, got 0"),
        (
            "study={kind='sampling', fanouts=[], layer_samples=[]}",
            "study.fanouts (command line): must have a number for each layer where",
        ),
        ("graph.nodes=[1,2,3]", "must be a whole number or a list of 2 whole numbers, got [1, 2, 3]"),
        ("graph.nodes=[1.5,2]", "must be a whole number or a list of 2 whole numbers, got [1.5, 2]"),
        ("graph.nodes=-1", "graph.nodes (command line): must be at least 1, got -1"),
        ("graph.nodes=9000000000", "graph.nodes (command line): must be at most 2147483648, got 9000000000"),
        ("graph.count=9000000000", "graph.count (command line): must be at most 1048576, got 9000000000"),
        (
            "graph={generator='rmat', nodes=30, d=9223372036854775807}",
            "graph.d (command line): asks for 2.77e+20 edges; at most 1099511627776 would be right",
        ),
        (
            "graph={generator='chung_lu', nodes=30, edges=9223372036854775807}",
            "graph.edges (command line): asks for 9.22e+18 edges",
        ),
        (
            "graph={generator='bter', nodes=50, degree_scale=1e300}",
            "graph.degree_scale (command line): asks for 2e+302 edges",
        ),
        (
            "graph={generator='sbm', nodes=20, random_classes=3, degree_in=1e300}",
            "graph.degree_in (command line): asks for 1e+301 edges",
        ),
        (
            "graph={generator='er', nodes=9, ids='names'}",
            "graph.ids (command line): is for graphs from files",
        ),
        ("graph.nodes=[9,5]", "must be [lo, hi] with lo at most hi, got [9, 5]"),
        ("graph.nodes=0", 'graph.nodes (command line): must be at least 1 for generator = "er", got 0'),
        (
            "graph={generator='ba', d=20}",
            "graph.d (command line): must be below the number of nodes (20), got 20",
        ),
        ("graph.generator=''", 'run.task = "solve" needs graphs'),
        (
            "graph={generator='uniform_points', edge_weights='signs'}",
            'graph.edge_weights (command line): must be "one" but for generated graphs without distances',
        ),
        (
            "graph.generator='x'",
            'graph.generator (command line): must be one of "", "arcs", "ba", "bipartite"',
        ),
        ("graph.path='nowhere.mtx'", 'graph.path (command line): no such file: "nowhere.mtx"'),
        ("graph.path='no*.mtx'", 'graph.path (command line): no file matches "no*.mtx"'),
        ("graph.path='/'", 'graph.path (command line): is a folder: "/"'),
        ('graph.path="a\\u0000b"', "graph.path (command line): must be text without control characters"),
        (
            "graph.path=3",
            "graph.path (command line): must be text in quotes or a list, each text in quotes, got 3",
        ),
        (
            "agent.epsilon_start=0.05",
            "agent.epsilon_end: must be at most agent.epsilon_start = 0.05, got 0.1",
        ),
        (
            "gnn.first_product=cached",
            "gnn.first_product (command line): cached keeps the product of features that gnn.input_dropout",
        ),
        ("agent.replay_capacity=9", "agent.warmup: must be at most agent.replay_capacity = 9, got 64"),
        ("run.kernels='fast'", 'run.kernels (command line): must be one of "auto", "plain", got "fast"'),
        ("run.name='../x'", "run.name (command line): must be the name of a folder, without slashes"),
        ("policy.weights=''", "policy.weights (command line): must be"),
        ("train.steps", "train.steps (command line): must be section.key=value"),
        ("=1", "=1 (command line): must be section.key=value"),
        ("graph.path=no.mtx", 'graph.path (command line): no such file: "no.mtx"'),
        (
            "graph.generator=x",
            '"sbm", "sets", "small_world", "torus", "uniform_points", "varied", got "x"',
        ),
        ("run.name=a\x1b", "run.name (command line): must be text without control characters"),
        ("graph.pth=a.mtx", "unknown key graph.pth (command line): did you mean graph.path?"),
        ("seed=1\nrun.name='x'", "not a TOML value; must be a whole number, at least 0"),
        ("train.steps=many", "train.steps=many (command line): not a TOML value; must be a whole number"),
        ("search.bounds=yes", "search.bounds=yes (command line): not a TOML value; must be true or false"),
        ("graph.nodes=many", "not a TOML value; must be a whole number or a list of 2 whole numbers"),
        ("study.families=ba", 'not a TOML value; must be a list of at least one, each one of "ba", "er"'),
        ("train=x", "train=x (command line): not a TOML value; must be a table"),
        ("graph.path=", "graph.path= (command line): not a TOML value; must be text in quotes or a list"),
        ("graph.generator=", """; none is 'graph.generator=""', with quotes for the shell"""),
        ("graph.path=[a.mtx, b.mtx]", "not a TOML value; must be text in quotes or a list"),
        ("run.name='x", "run.name='x (command line): not a TOML value; must be text in quotes"),
        ("study.families=['ws']", 'study.families (command line): must be one of "ba", "er", got "ws"'),
        ("train.evaluate_graphs=0", "train.evaluate_graphs (command line): must be at least 1, got 0"),
        ("graph.complement=true", "graph.complement (command line): is for graphs from files"),
        (
            "train.graphs={generator='er', nodes=9, self_loops='error'}",
            "train.graphs.self_loops (command line): is for graphs from files",
        ),
        (
            "policy={head='mixing', layers=3, dimension=16}",
            "policy.layers (command line), policy.head (command line): the architecture comes from the "
            'weights "default": leave out, or set policy.weights = "train"',
        ),
        (
            "policy={weights='w.npz', edge_weights=true}",
            'policy.edge_weights (command line): the architecture comes from the weights "w.npz"',
        ),
        ("graph.d=7", 'graph.d (command line): is not read by graph.generator = "er", but by ba, '),
        (
            "graph={path='networkx:karate_club_graph', generator='', nodes=9}",
            "graph.nodes (command line): is of generated graphs, and graph.generator names none",
        ),
        (
            "graph={generator='rmat', edges=9, d=2}",
            "graph.d (command line): is not read beside graph.edges; 4",
        ),
        (
            "graph.random_features=3",
            'graph.random_features (command line): is read by run.task = "classify" and',
        ),
        (
            "graph={generator='', path='networkx:karate_club', splits='random'}",
            "graph.splits (command line): is read",
        ),
        ("study.rounds=3", 'study.rounds (command line): is read by run.task = "study"; leave it out'),
        ("a." * 20000 + "a=1", "must be section.key=value"),
        ("graph={" + "a." * 100 + "a=1}", "unknown table [graph.a]"),
        # Refused by tomllib itself from Python 3.14 on.
        ("graph={" + "a." * 20000 + "a=1}", "(command line)"),
        ("seed=" + "[" * 5000, "not a TOML value"),
        ("seed=" + "9" * 5000, "not a TOML value"),
    ],
)
def test_a_wrong_override_says_what_is_right(case_file, override, message):
    (line,) = mistakes(case_file(SOLVABLE), override)
    assert message in line
    assert len(line) < 800


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (
            ["policy.weights=train", "agent.clip=0.1"],
            'agent.clip (command line): is read by agent.learner = "ppo"',
        ),
        (
            ["run.task=train", "agent.learner=reinforce", "agent.batch=8"],
            'agent.batch (command line): is read by agent.learner = "dqn" or "ppo", got "reinforce"; le',
        ),
        (
            ["run.task=study", "agent.discount=0.9"],
            "agent.discount (command line): is not read by study.kind",
        ),
        (
            ["run.task=study", "study.kind=depth", "study.parts=[2]"],
            'study.parts (command line): is read by study.kind = "rgcn", got "depth"; leave it out',
        ),
        (
            ["run.task=study", "study={kind='learners', learners=['ppo']}", "agent.warmup=9"],
            'agent.warmup (command line): is read by agent.learner = "dqn", got "ppo"; leave it out',
        ),
    ],
)
def test_keys_of_other_learners_and_studies_are_refused(case_file, overrides, message):
    (line,) = mistakes(case_file(SOLVABLE), *overrides)
    assert message in line


def test_keys_of_what_the_command_line_replaces_go_with_it(case_file):
    study = '[run]\ntask = "study"\n[study]\nkind = "density"\nscales = [2]\nrounds = 4\n'
    path = case_file(SOLVABLE + study)
    case = load(path, ["study.kind=inference"])
    assert (case.study.scales, case.study.rounds) == (StudyCase().scales, 4)
    assert load(path, ["run.task=train"]).study == StudyCase()
    (line,) = mistakes(path, "study.kind=inference", "study.scales=[3]")
    assert 'study.scales (command line): is read by study.kind = "density", got "inference"' in line
    agent = '[policy]\nweights = "train"\n[agent]\nepsilon_decay_steps = 9\nbatch = 8\n'
    path = case_file(SOLVABLE + agent)
    case = load(path, ["agent.learner=ppo"])
    assert (case.agent.epsilon_decay_steps, case.agent.batch) == (AgentCase().epsilon_decay_steps, 8)
    load(case_file(to_toml(case)), [])
    assert "agent.warmup (command line): is read" in mistakes(path, "agent.learner=ppo", "agent.warmup=9")[0]


def test_what_nothing_reads_in_a_file_is_refused_whatever_the_command_line_says(case_file):
    path = case_file(SOLVABLE + '[policy]\nweights = "train"\n[agent]\nclip = 0.1\n')
    for overrides in ([], ["seed=2"], ["agent.learner=reinforce"]):
        (line,) = mistakes(path, *overrides)
        assert 'agent.clip (line 7): is read by agent.learner = "ppo"' in line
    path = case_file('[graph]\ngenerator = "ba"\nnodes = 9\nd = 2\nedges = 8\n')
    (line,) = mistakes(path)
    assert "graph.edges (line 5): is not read by" in line


def test_keys_that_are_read_are_not_refused(case_file):
    path = case_file(SOLVABLE)
    for overrides in (
        ["policy.weights=train", "agent={learner='ppo', batch=8, clip=0.1, discount=0.9}"],
        ["run.task=train", "agent={learner='of_somebody', clip=0.1, warmup=9}"],
        ["run.task=study", "study={kind='learners', learners=['ppo', 'dqn']}", "agent={clip=0.1, warmup=9}"],
        ["run.task=study", "study={kind='progress', variants=['a agent.learner=ppo']}", "agent.clip=0.1"],
        ["run.task=study", "study={kind='scaling', latency_us=2, batches=[8]}", "agent.double=true"],
        ["study.latency_us=2", "graph.generator=varied", "graph={d=2, removed=0.1, p=0.2}"],
    ):
        load(path, overrides)


def test_the_tables_of_readers_are_those_of_the_keys():
    types = {".".join(keys): bare_type(kinds.type_info(each.type)) for keys, each, _ in all_keys()}
    assert set(BY_GENERATOR) == {*types["graph.generator"].values} - {""}
    assert set(READ_BY_KIND) == {*types["study.kind"].values}
    of_studies = {key for keys in READ_BY_KIND.values() for key in keys}
    of_studies |= {*READ_BY_ALL, "kind", "vary", "trials", "race"}
    assert of_studies == {name.partition(".")[2] for name in types if name.startswith("study.")}
    words = {
        keys[1]: kinds.type_info(each.type).extra_json_schema["description"].partition(":")[0].split(", ")
        for keys, each, _ in all_keys()
        if keys[0] == "agent"
    }
    for learner, keys in BY_LEARNER.items():
        assert {key for key, named in words.items() if learner in named} - {"learner"} == {*keys}


def test_numbers_in_a_file_carry_their_line(case_file):
    path = case_file(SOLVABLE + "[train]\nsteps = -3\nevaluate_every = 0\n")
    assert mistakes(path)[1:] == [
        "  train.steps (line 5): must be at least 1, got -3",
        "  train.evaluate_every (line 6): must be at least 1, got 0",
    ]


def test_conflicts_are_reported_together(case_file):
    path = case_file(
        '[graph]\ngenerator = "er"\n[run]\nname = "a/b"\n[agent]\nwarmup = 9\nreplay_capacity = 8\n'
    )
    assert mistakes(path)[1:] == [
        '  graph.nodes: must be at least 1 for generator = "er", got 0',
        "  agent.warmup (line 6): must be at most agent.replay_capacity = 8, got 9",
        '  run.name (line 4): must be the name of a folder, without slashes, got "a/b"',
    ]


def test_whole_blas_products_need_no_other_key(case_file):
    assert load(case_file(SOLVABLE), ["run.reproducible=false"]).run.portable


def test_training_reads_no_weights(case_file):
    path = case_file(SOLVABLE + '[run]\ntask = "train"\n[policy]\nlayers = 3\nweights = "w.npz"\n')
    message = 'policy.weights (line 8): is not read by run.task = "train": leave it out, got "w.npz"'
    assert mistakes(path) == [f"{path}: {message}"]
    assert load(path, ["policy.weights=default"]).policy.layers == 3


def test_keys_about_files_need_files(case_file):
    path = case_file(SOLVABLE + 'complement = true\nduplicates = "error"\n')
    assert [each.split(":")[0] for each in mistakes(path)[1:]] == [
        "  graph.complement (line 4)",
        "  graph.duplicates (line 5)",
    ]
    assert load(path, ["graph.path=networkx:karate_club"]).graph.complement
    # From Python the graphs of a solve come from outside.
    outside = {"graph.complement": True, "graph.generator": "er", "graph.nodes": 9}
    assert build({**outside, "policy.weights": "train"}).graph.complement
    with pytest.raises(CaseError, match=r"^settings: graph\.complement: is for graphs from files"):
        build({**outside, "run.task": "train"})


def test_an_architecture_is_for_training(case_file):
    path = case_file(SOLVABLE + "[policy]\nlayers = 3\nhidden = 32\n")
    assert mistakes(path)[0].startswith(f"{path}: policy.layers (line 5): the architecture comes from")
    assert load(path, ["policy.weights=train"]).policy.layers == 3
    assert load(path, ["run.task=train"]).policy.layers == 3
    written = case_file(to_toml(load(case_file(SOLVABLE), [])), "written.toml")
    assert load(written, []).policy == Case().policy


def test_a_task_needs_its_graphs(case_file):
    assert "needs graphs" in mistakes(case_file(""))[0]
    assert "training needs graphs" in mistakes(case_file(""), "run.task='train'")[0]
    assert (
        "training needs graphs"
        in mistakes(case_file(SOLVABLE), "policy.weights='train'", "train.graphs={}")[0]
    )
    assert load(case_file(""), ["run.task='study'"]).run.task == "study"
    assert load(case_file(""), ["run.task='train'", "train.graphs={generator='er', nodes=9}"])
    assert load(case_file(SOLVABLE), ["run.task='train'"])


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"seed = \n", "line 1, column 8: not valid TOML: Invalid value"),
        (b"seed = 1\nseed = 2\n", "line 2, column 9: not valid TOML: Cannot overwrite a value"),
        (b"[run]\n[run]\n", "line 2, column 5: not valid TOML: Cannot declare"),
        (b"[run", "not valid TOML"),
        (b"seed = 1\n# \xff\n", "line 2: byte 0xff is not UTF-8 text"),
        (b"seed = 1\x00", "not valid TOML"),
        (b"seed = " + b"[" * 10000, "nested too deeply"),
        (b"seed = [1", "not valid TOML"),
        (b"seed = " + b"[" * 10000 + b"]" * 10000, "nested too deeply"),
        (b"#" * (2 << 20), "not a case file"),
        (b"\x1b]0;x\x07 = 1", "not valid TOML"),
    ],
)
def test_a_broken_file(case_file, raw, message):
    (line,) = mistakes(case_file(raw))
    assert message in line
    assert line.isprintable()


def test_files_that_cannot_be_read(tmp_path):
    assert "no such case file" in mistakes(str(tmp_path / "no.toml"))[0]
    assert "is a folder" in mistakes(str(tmp_path))[0]
    assert "no such case file" in mistakes("/dev/zero")[0]
    assert mistakes("a\0\x1b.toml") == ["a\\x00\\x1b.toml: no such case file"]


# --------------------------------------------------------------------------------
# Settings from Python


def test_settings_are_checked_like_a_file():
    case = build(
        {"train.steps": 7, "train.graphs": {"generator": "er", "nodes": (20, 30)}, "policy.layers": 3}
        | {"policy.weights": "train"}
    )
    assert (case.train.steps, case.train.graphs.nodes, case.policy.layers) == (7, (20, 30), 3)
    assert build({}) == Case()
    with pytest.raises(CaseError) as caught:
        build(
            {"train.stepps": 1, "train.steps": -3, "agent": {"batch": 1.5}, "seed.x": 1, "graph.path": "no*"}
        )
    assert str(caught.value).split("\n") == [
        "settings: 4 mistakes",
        "  unknown key train.stepps: did you mean train.steps?",
        "  train.steps: must be at least 1, got -3",
        "  agent.batch: must be a whole number, at least 1, got 1.5",
        "  seed: must be a whole number, at least 0, got a table",
    ]
    with pytest.raises(CaseError, match=r"^settings: graph\.path: no file matches"):
        build({"graph.path": "no*"})
    with pytest.raises(CaseError, match=r"^settings: training needs graphs"):
        build({"run.task": "train"})


def test_settings_may_hold_numpy_numbers_and_paths(tree):
    np = pytest.importorskip("numpy")
    given = {"train.steps": np.int64(5), "study.sizes": np.array([3, 4]), "graph.path": Path("a.mtx")}
    case = build(given | {"run.task": "study"})
    assert (case.train.steps, case.study.sizes) == (5, [3, 4])
    assert case.graph.path == [str(tree / "here" / "a.mtx")]


# --------------------------------------------------------------------------------
# Paths


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """cases/case.toml, graphs/{a,b,c}.mtx, here/a.mtx; the working directory is here/."""
    for name in (
        "cases/w.npz",
        "graphs/a.mtx",
        "graphs/b.mtx",
        "graphs/c.mtx",
        "graphs/x[1].mtx",
        "here/a.mtx",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path


def test_paths_in_a_file_are_relative_to_it(tree, case_file):
    path = case_file(
        """[run]
out = "results/x"
[graph]
path = ["../graphs/[bc].mtx", "networkx:karate_club_graph", "../graphs/a.mtx", "../graphs/x[1].mtx"]
[train]
graphs.path = "../graphs/?.mtx"
[policy]
weights = "w.npz"
[study]
data = "../graphs/"
""",
        "cases/case.toml",
    )
    a, b, c, x = (str(tree / "graphs" / f"{name}.mtx") for name in ("a", "b", "c", "x[1]"))
    for written in (path, os.path.relpath(path)):
        case = load(written, [])
        assert case.graph.path == [b, c, "networkx:karate_club_graph", a, x]
        assert case.train.graphs.path == [a, b, c]
        assert case.policy.weights == str(tree / "cases" / "w.npz")
        assert case.study.data == str(tree / "graphs")
        assert case.run.out == "results/x"
    assert load(path, ["policy.weights='train'"]).policy.weights == "train"


def test_paths_on_the_command_line_are_relative_to_the_working_directory(tree, case_file):
    path = case_file(SOLVABLE, "cases/case.toml")
    case = load(path, ["graph.path=a.mtx", "policy.weights='w.npz'"])
    assert case.graph.path == [str(tree / "here" / "a.mtx")]
    assert case.policy.weights == str(tree / "here" / "w.npz")
    assert load(path, ['graph.path="../graphs/b*"']).graph.path == [str(tree / "graphs" / "b.mtx")]


def test_a_path_on_the_command_line_takes_the_place_of_a_generator(tree, case_file):
    path = case_file(SOLVABLE, "cases/case.toml")
    assert load(path, ['graph.path="a.mtx"']).graph.generator == ""
    path = case_file("graph.path = '../graphs/a.mtx'\ngraph.nodes = 9", "cases/case.toml")
    case = load(path, ['graph.generator="er"'])
    assert (case.graph.path, case.graph.generator) == ([], "er")
    both = case_file("[graph]\npath = '../graphs/a.mtx'\nnodes = 9\ngenerator = 'er'", "cases/case.toml")
    assert (len(load(both, []).graph.path), load(both, []).graph.generator) == (1, "er")
    drawn = case_file("[graph]\ngenerator = 'ba'\nnodes = 9\nd = 2\ncount = 3", "cases/case.toml")
    assert load(drawn, ["graph.path=a.mtx"]).graph == GraphCase(path=[str(tree / "here" / "a.mtx")])
    assert load(drawn, ["graph.generator=er"]).graph == GraphCase(generator="er", nodes=9, count=3)
    with pytest.raises(CaseError, match=r"graph\.d \(command line\): is not read"):
        load(drawn, ["graph.generator=er", "graph.d=2"])


def test_study_data_comes_from_the_environment(case_file, monkeypatch, tmp_path):
    path = case_file('run.task = "study"')
    monkeypatch.setenv("LOCKSTEP_DATA", "")
    generated = load(path, [])
    assert generated.study.data == ""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOCKSTEP_DATA", "data")
    relative = load(path, [])
    assert relative.study.data == str(tmp_path / "data" / "covers")
    monkeypatch.setenv("LOCKSTEP_DATA", "/data")
    case = load(path, [])
    assert case.study.data == "/data/covers"
    assert case_digest(case) == case_digest(relative) != case_digest(generated)
    assert load(path, ["study.data=/x"]).study.data == "/x"
    assert load(case_file(SOLVABLE, "solve.toml"), []).study.data == ""
    # The written case names the folder.
    monkeypatch.delenv("LOCKSTEP_DATA")
    assert load(case_file(to_toml(case), "written.toml"), []) == case
    monkeypatch.setenv("LOCKSTEP_DATA", "/\x1b")
    assert "LOCKSTEP_DATA: must be text without control characters" in mistakes(path)[0]


# --------------------------------------------------------------------------------
# Writing


def test_the_written_case_loads_to_an_equal_one_elsewhere(tree, case_file):
    text = "graph.path = '../graphs/*.mtx'\n[train.graphs]\ngenerator = 'ba'\nnodes = [10, 20]\n"
    case = load(
        case_file(text, "cases/case.toml"), ["seed=5", "policy.weights=train", "agent.adam_epsilon=1e-9"]
    )
    written = case_file(to_toml(case), "here/copy.toml")
    assert load(written, []) == case
    assert to_toml(load(written, [])) == to_toml(case)


def test_a_written_case_says_what_absent_tables_mean():
    written = to_toml(Case())
    assert "# [train.graphs] is absent: [graph]\n" in written
    assert (
        "# [train.held_back] is absent: more of the generated training graphs, or the last ones of" in written
    )


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("train.held_back={d=5}", "train.held_back (command line): needs graphs: set its path or generator"),
        ("train.held_back={generator='ba', nodes=4}", "train.held_back.d"),
        ("policy.hub_degree=1e-9", "policy.hub_degree (command line): must be 0 or at least 0.01, got 1e-09"),
        ("train.held_back.path=no.txt", 'train.held_back.path (command line): no such file: "no.txt"'),
    ],
)
def test_a_wrong_key_of_a_training_says_what_is_right(case_file, override, message):
    (line,) = mistakes(case_file(SOLVABLE + "[run]\ntask = 'train'\n"), override)
    assert message in line


def test_graphs_to_judge_by_are_found_beside_their_case(case_file):
    path = case_file(SOLVABLE + "[run]\ntask = 'train'\n[train.held_back]\npath = 'large.txt'\n")
    Path(path).with_name("large.txt").write_text("1 2\n")
    case = load(path, [])
    assert case.train.held_back.path == [str(Path(path).with_name("large.txt"))]
    assert case.train.held_back.path[0] in named_files(case)


def test_the_written_case_has_every_key():
    text = to_toml(Case(train=TrainCase(graphs=GraphCase(), held_back=GraphCase())))
    assert text.isascii()
    data = tomllib.loads(text)
    for keys, each, _ in all_keys():
        node = data
        for key in keys:
            node = node[key]
        assert node == (each.default_factory() if callable(each.default_factory) else each.default)


def plain_text():
    """Text that a case may hold."""
    return st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=8)


def values(info):
    """Values of a key's type and range."""
    info = bare_type(info)
    match info:
        case kinds.BoolType():
            return st.booleans()
        case kinds.IntType():
            return st.integers(info.ge if info.ge is not None else -(2**63), info.le or 2**63 - 1)
        case kinds.FloatType():
            return st.floats(
                info.ge or info.gt or 0, info.le or info.lt or 1e300, exclude_min=True, exclude_max=True
            )
        case kinds.LiteralType():
            return st.sampled_from(info.values)
        case kinds.ListType():
            return st.lists(values(info.item_type), min_size=1, max_size=3)
        case kinds.UnionType():
            return st.one_of([values(each) for each in info.types])
    return plain_text()


@st.composite
def cases(draw):
    """Cases with every key drawn from its range, and no conflicts."""
    data = {}
    for keys, each, _ in all_keys():
        node = data
        for key in keys[:-1]:
            node = node.setdefault(key, {})
        node[keys[-1]] = draw(values(kinds.type_info(each.type)))
    for graphs in (data["graph"], data["train"]["graphs"], data["train"]["held_back"]):
        graphs |= {"path": [], "generator": "ba", "nodes": draw(st.sampled_from([9, [9, 20]])), "d": 3}
        graphs |= {
            "features": "",
            "edge_features": "",
            **{"edge_labels": "", "edge_splits": "", "edge_data_by": "order"},
            "labels": "",
            "node_weights": "",
            "element_weights": "",
            "terminals": "",
            "prizes": "",
            "demands": "",
            **dict.fromkeys(["onto", "seeds", "similarity"], ""),
            "least_demand": min(graphs["least_demand"], graphs["most_demand"]),
            "neighbours": "both",
            "splits": draw(st.sampled_from(["", "random"])),
        }
        graphs |= {"degrees_of": "", "format": draw(st.sampled_from(["auto", "npz"]))}
    data["graph"]["path"] = draw(st.sampled_from([[], ["networkx:karate_club_graph"]]))
    data["graph"]["generator"] = "" if data["graph"]["path"] else "er"
    for graphs in (data["graph"], data["train"]["graphs"], data["train"]["held_back"]):
        if graphs["generator"]:
            graphs |= {"complement": False, "self_loops": "drop", "duplicates": "merge"}
            graphs |= {"format": "auto", "ids": "numbers", "node_data_by": "order"}
            most = {
                "count": 1 << 20,
                "edges": 1 << 30,
                "degree_scale": 999.0,
                "degree_in": 99.0,
                "degree_out": 9.0,
            }
            graphs |= {key: min(graphs[key], limit) for key, limit in most.items()}
        else:
            graphs["edge_weights"] = "one"
    for key in ("graphs", "held_back"):
        if draw(st.booleans()):
            del data["train"][key]
    if data["policy"]["hub_degree"]:
        data["policy"]["hub_degree"] = max(data["policy"]["hub_degree"], 0.01)
    data["run"] |= {"reproducible": True, "name": "a\u00e9 b"}
    blocks = {key: data["problem"].pop(key) for key in ("parts", "imbalance")}
    count, component = data["problem"].pop("terminals"), data["problem"].pop("component")
    prizes = data["problem"].pop("prizes")
    keys = "capacity", "depot", "vehicles", "max_length", "service"
    routing = {key: data["problem"].pop(key) for key in keys}
    if not routing["max_length"]:
        routing["service"] = 0.0
    chosen = {key: data["problem"].pop(key) for key in ("budget", "sets")}
    facility, eliminate = data["problem"].pop("facility"), data["problem"].pop("eliminate")
    arrange = data["problem"].pop("arrange")
    dense, size = data["problem"].pop("dense"), data["problem"].pop("size")
    arcs, noise = data["problem"].pop("directed"), data["problem"].pop("noise")
    names = "partition", "communities", "steiner", "cvrp", "dismantle", "coverage", "influence", "facility"
    which = draw(st.sampled_from(["", *names, "treewidth", "arrangement", "dense", "alignment", "qap"]))
    if which != "communities":
        data["problem"] |= {"null": "degrees", "resolution": 1.0}
        if which == "partition":
            data["problem"] |= {"name": which, **blocks}
        elif which == "dismantle":
            data["problem"] |= {"name": which, "component": component if component < 1 else component // 1}
        elif which == "coverage":
            chosen |= {"sets": "neighbourhoods"} if data["graph"]["generator"] else {}
            data["problem"] |= {"name": which, **(chosen if data["run"]["task"] == "solve" else {})}
        elif which == "influence":
            chosen = {"budget": chosen["budget"]} if data["run"]["task"] == "solve" else {}
            data["problem"] |= {"name": which, **chosen}
        elif which == "facility":
            data["graph"]["complement"] = False
            chosen = {} if facility == "uncapacitated" else {"budget": max(chosen["budget"] // 1, 1.0)}
            chosen = {"facility": facility, **chosen} if data["run"]["task"] == "solve" else {}
            data["problem"] |= {"name": which, **chosen}
        elif which == "treewidth":
            data["graph"]["node_weights"] = ""
            eliminates = data["run"]["task"] == "solve"
            data["problem"] |= {"name": which, **({"eliminate": eliminate} if eliminates else {})}
        elif which == "arrangement":
            data["graph"]["edge_weights"] = "one"
            arranges = data["run"]["task"] == "solve"
            data["problem"] |= {"name": which, **({"arrange": arrange} if arranges else {})}
        elif which == "dense":
            data["graph"]["node_weights"] = ""
            sizes = {"size": size} if dense == "size" else {}
            asked = {"dense": dense, **sizes} if data["run"]["task"] == "solve" else {}
            data["problem"] |= {"name": which, **asked}
        elif which in ("alignment", "qap"):
            data["graph"]["complement"] = False
            data["problem"]["name"] = which
            if data["run"]["task"] == "solve" and data["graph"]["generator"] and which == "alignment":
                data["problem"]["noise"] = noise
            if data["run"]["task"] == "solve" and not data["graph"]["generator"]:
                data["problem"]["directed"] = arcs
        elif which == "cvrp":
            data["problem"] |= {"name": which, **(routing if data["run"]["task"] == "solve" else {})}
        elif which:
            solves = data["run"]["task"] == "solve"
            drawn = {"terminals": count if solves else 0, "prizes": prizes if solves and count else 0}
            data["problem"] |= {"name": which, **drawn}
    else:
        null = draw(st.sampled_from(["degrees", "sizes", "none"]))
        resolution = 1.0 if null == "none" else draw(st.floats(0, 1e300))
        data["problem"] = {"name": "communities", "null": null, "resolution": resolution}
    if data["problem"].get("name") != "influence" or data["run"]["task"] != "solve":
        data["influence"] = {}
    elif data["influence"]["probabilities"] != "constant":
        data["influence"]["probability"] = 0.1
    data["policy"]["weights"] = draw(st.sampled_from(["default", "train", '/a "quoted" folder/w.npz']))
    data["study"]["data"] = draw(st.sampled_from(["", "/\u20ac/\U0001f600"]))
    data["study"]["layer_samples"] = draw(st.sampled_from([[], [0], [0, 400], [30, 20, 10]]))
    data["study"]["catalogue"] = draw(st.sampled_from(["", "/\u20ac/graphs.toml"]))
    data["search"] |= {"start": draw(st.sampled_from(["learned", "greedy"])), "inside": "", "outside": ""}
    if data["search"]["solver"] == "policy":  # which has no search
        data["search"] |= {key: getattr(SearchCase(), key) for key in (*OF_SEARCHES, "start")}
    data["agent"] |= {"epsilon_end": 0.0, "warmup": 0}
    if data["gnn"]["first_product"] == "cached":
        data["gnn"]["input_dropout"] = 0.0
    data["study"]["datasets"] = draw(st.sampled_from([[], ["/a/b.npz seeds=3"]]))
    data["gnn"] |= {"weights": "", "watch": "auto", "epochs": draw(st.integers(1, 1 << 40))}
    data["gnn"]["warmup"] = min(data["gnn"]["warmup"], data["gnn"]["epochs"] - 1)
    data["parallel"]["cost_model"] = ""
    data["study"]["fold_validation"] = "none"
    data["rgcn"] |= dict.fromkeys(
        ("weights", "train_labels", "test_labels", "val_labels", "val_triples", "test_triples", "queries"), ""
    )
    rgcn = data["rgcn"]
    rgcn |= {"epochs": max(rgcn["epochs"], 1), "dimension": 2 * draw(st.integers(1, 99))}
    rgcn["warmup"] = min(rgcn["warmup"], rgcn["epochs"] - 1)
    if not rgcn["layers"]:
        rgcn |= {"goal": "links", **{key: getattr(RgcnCase(), key) for key in OF_RELATIONAL_LAYERS}}
    if rgcn["blocks"]:
        rgcn["bases"] = 0
    if data["memory"]["fast_mb"]:
        rgcn["keep"] = "last"
    weights = data["policy"]["weights"]
    if data["run"]["task"] == "train" and weights != "default":
        data["policy"]["weights"] = "train"
    if data["run"]["task"] == "solve" and weights != "train":
        data["policy"] = {"weights": weights}
    trains = data["run"]["task"] == "train" or (data["run"]["task"] == "solve" and weights == "train")
    if not trains:
        data["train"].pop("held_back", None)
    if data["graph"]["generator"] and data["gnn"]["feature_rows"] == "one_hot":
        data["gnn"]["feature_rows"] = "as_given"
    if data["gnn"]["level"] == "graph":
        data["graph"] |= {"order": "natural", "complement": False}
    data["links"], vectors, series = {}, data.pop("embed"), data.pop("forecast")
    for graphs in (data["graph"], data["train"].get("graphs", {}), data["train"].get("held_back", {})):
        graphs |= {"series": "", "series_steps": 1000, "series_noise": 0.3}
        graphs |= {"covariates": "", "shared_covariates": ""}
    kind = data["study"]["kind"] if data["run"]["task"] == "study" else ""
    filled = data["run"]["task"] == "classify" or kind in ("models", "depth", "folds", "tune")
    filled = filled and data["gnn"]["model"] != "rgcn"
    if not filled or data["gnn"]["feature_rows"] == "one_hot":
        data["gnn"]["missing_features"] = "refuse"
    if data["memory"]["fast_mb"] or (kind and kind not in LIKE_CLASSIFY):
        data["gnn"]["positions"] = []
    if data["run"]["task"] != "classify":
        data["output"] |= {"embeddings": False, "probabilities": False, "coverage": 0.0, "explain": 0}
        if kind != "folds":
            data["output"].pop("importance", None)
    if data["study"]["kind"] == "folds" and data["parallel"]["partition"] == "learned":
        data["parallel"]["partition"] = "rows"
    if kind:
        data["gnn"]["goal"] = "classes"
        if kind not in ("tune", "folds"):
            data["gnn"]["level"] = "node"
    learns = data["run"]["task"] == "classify" or kind in ("tune", "folds")
    if data["gnn"]["level"] == "edge" and learns:
        data["graph"] |= {"neighbours": "both", "labels": "", "splits": ""}
        data["graph"]["edge_splits"] = draw(st.sampled_from(["", "random"]))
        data["parallel"]["exchange"] = draw(st.sampled_from(["auto", "halo", "gather"]))
    if data["gnn"]["level"] == "link" and learns:
        data["links"] = links(draw, kind)
        rankings = ["recall", "precision", "ndcg"] if data["links"]["rank_each"] else []
        data["gnn"] |= {"goal": "classes", "class_weights": "equal", "baselines": True}
        usual = [] if rankings and kind == "tune" else ["auto", "auc"]
        data["gnn"]["watch"] = draw(st.sampled_from([*usual, *rankings]))
        data["graph"] |= {"neighbours": "both", "labels": "", "splits": ""}
        data["output"]["probabilities"] = False
    of_series = data["gnn"]["level"] == "forecast" and data["gnn"]["model"] != "rgcn" and learns
    if data["run"]["task"] == "study" and not of_series and data["gnn"]["level"] in ("embed", "forecast"):
        data["gnn"]["level"] = "node"
    if kind and of_series:
        data["study"] |= {"datasets": [], "fold_validation": "next"}
    if kind and not (of_series and kind == "folds"):
        data["study"]["fold_training"] = "expanding"
    if data["gnn"]["level"] == "forecast" and learns and data["gnn"]["model"] != "rgcn":
        forecasts(draw, data, series)
    if data["gnn"]["level"] == "embed" and learns and data["gnn"]["model"] != "rgcn":
        data["embed"] = vectors
        data["gnn"] |= {"goal": "classes", "class_weights": "equal", "watch": "auto"}
        data["output"] |= {"embeddings": False, "probabilities": False, "importance": 0}
        if data["gnn"]["first_product"] in ("cached", "mg_gcn"):
            vectors["edge_drop"] = 0.0
        data["gnn"]["layers"] = []
    if data["run"]["task"] == "study":
        data["study"] |= {"data": "/data", "catalogue": "/data/catalogue.toml"}
        if data["study"]["kind"] != "tune":
            data["study"] |= {"vary": [], "trials": 0, "race": 3.0}
    labelled = data["gnn"]["level"] in ("node", "edge", "graph") and data["gnn"]["model"] != "rgcn"
    if data["run"]["task"] == "classify" and not labelled:
        data["output"]["coverage"] = 0.0
    if data["gnn"]["level"] == "embed" and data["gnn"]["model"] != "rgcn":
        data["output"]["explain"] = 0
    told_of_one = any(data["output"].get(key) for key in ("embeddings", "importance"))
    if data["run"]["task"] == "study" or told_of_one or not (labelled or of_series):
        data["gnn"]["members"] = 1
    data["smooth"] = {}
    task, gnn = (data["run"]["task"], data["study"]["kind"]), data["gnn"]
    if task[0] == "classify" or task == ("study", "folds"):
        nodes = (gnn["goal"], gnn["level"]) == ("classes", "node") and gnn["model"] != "rgcn"
        data["smooth"] = smoothing(draw) if nodes else {}
        if data["smooth"].get("validation_labels"):
            data["output"]["coverage"] = 0.0
    only_read(data)
    return convert(data, Case)


def only_read(data):
    """Take out of drawn tables what their generators, their learner and their study leave unread."""
    of_generators = {*OF_GENERATED, *(key for keys in BY_GENERATOR.values() for key in keys)}
    task, kind = data["run"]["task"], data["study"]["kind"]
    relational = data["gnn"].get("model") == "rgcn" and (
        task == "classify" or (task, kind) == ("study", "tune")
    )
    for graphs in (data["graph"], data["train"].get("graphs", {}), data["train"].get("held_back", {})):
        read = {*OF_GENERATED, *BY_GENERATOR[graphs["generator"]]} if graphs.get("generator") else set()
        if graphs is data["graph"] and read and (relational or (task, kind) == ("study", "rgcn")):
            read = {*OF_GENERATED, "d", "edges"}
        for key in of_generators - read:
            graphs.pop(key, None)
        if graphs.get("edges"):
            graphs.pop("d", None)
        for key in OF_NODES if task in ("solve", "train") else ():
            graphs.pop(key, None)
    trains = task == "train" or (task == "solve" and data["policy"]["weights"] == "train")
    if task == "classify" or (task == "study" and kind not in OF_AGENTS):
        data["agent"] = {}
    learner = data["agent"].get("learner")
    if trains and learner in BY_LEARNER:
        others = {key for keys in BY_LEARNER.values() for key in keys} - {*BY_LEARNER[learner]}
        data["agent"] = {key: value for key, value in data["agent"].items() if key not in others}
    read = (*READ_BY_ALL, *(("kind", "fold_training", *READ_BY_KIND[kind]) if task == "study" else ()))
    data["study"] = {key: value for key, value in data["study"].items() if key in read}


def forecasts(draw, data, series):
    """Tables of a case of series, whose keys are read; series: a table [forecast]."""
    graph, gnn, output = GraphCase(), GnnCase(), OutputCase()
    shares = draw(st.sampled_from([(0.7, 0.1, 0.2), (0.5, 0.0, 0.5), (0.2, 0.2, 0.2)]))
    data["forecast"] = series | dict(zip(("train", "val", "test"), shares))
    read = READ_BY_FORECASTS["gnn"]
    data["gnn"] = {key: x if key in read else getattr(gnn, key) for key, x in data["gnn"].items()}
    if series["model"] != "temporal":
        data["gnn"]["depth"] = gnn.depth
    levels = draw(st.sampled_from([[], [0.5], [0.1, 0.5, 0.9]]))
    data["forecast"] |= {"quantiles": levels, "calendar": draw(st.sampled_from([[], [7], [9, 168]]))}
    if levels:
        data["forecast"]["loss"] = "absolute"
    if series["period"] in data["forecast"]["calendar"]:
        data["forecast"]["period"] = 0
    if (data["run"]["task"], data["study"]["kind"]) == ("study", "tune"):
        data["gnn"]["baselines"] = True
    if series["base"] == "last" and (data["run"]["task"] == "study" or not data["gnn"]["baselines"]):
        data["forecast"]["ridge"] = 1e-3
    read = READ_BY_FORECASTS["output"]
    data["output"] = {key: x if key in read else getattr(output, key) for key, x in data["output"].items()}
    data["graph"] |= {key: getattr(graph, key) for key in OF_NODE_FILES}
    steps, noise = draw(st.integers(1, 99)), draw(st.floats(0, 9))
    data["graph"] |= {"series": "diffusion", "series_steps": steps, "series_noise": noise, "path": []}
    for key in ("covariates", "shared_covariates"):
        data["graph"][key] = draw(st.sampled_from(["", os.path.abspath(__file__)]))  # any file
    data["graph"] |= {"generator": "er", "complement": False, "self_loops": "drop", "duplicates": "merge"}
    data["graph"] |= {"format": "auto", "ids": "numbers", "splits": "", "count": 1, "edges": 9}
    data["memory"]["fast_mb"] = 0.0
    data["parallel"]["partition"] = "rows"


def links(draw, study):
    """A table [links] whose keys are read; study: its kind, or ""."""
    drawn = {key: draw(st.integers(0, 99)) for key in ("propose", "propose_each", "rank_each")}
    loss, between = draw(st.sampled_from(["logistic", "bpr"])), draw(st.sampled_from(["any", "sides"]))
    drawn |= {"loss": loss, "between": between, "dimension": draw(st.integers(1, 99))}
    drawn["negatives"] = float(draw(st.integers(1, 99))) if loss == "bpr" else draw(st.floats(0.1, 9))
    return drawn | ({"propose": 0, "propose_each": 0} if study else {})


def smoothing(draw):
    """A table [smooth] whose keys are read."""
    method, scale = draw(st.sampled_from(list(READ))), draw(st.sampled_from(["autoscale", "fixed"]))
    drawn = {
        "scale": scale, "factor": draw(st.floats(0.1, 9)), "correct_alpha": draw(st.floats(0, 0.9)),
        "smooth_alpha": draw(st.floats(0, 0.9)), "steps": draw(st.integers(1, 99)),
        "validation_labels": draw(st.booleans()),
    }  # fmt: skip
    kept = [key for key in READ[method] if OF_SCALE.get(key, scale) == scale]
    return {"method": method, **{key: drawn[key] for key in kept}}


@FUZZ
@given(cases())
def test_any_case_survives_writing_and_reading(case):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "case.toml")
        Path(path).write_text(to_toml(case), encoding="ascii")
        again = load(path, [])
    assert again == case
    assert case_digest(again) == case_digest(case)


def test_the_digest_covers_what_changes_the_result_and_nothing_else():
    base = Case(graph=GraphCase(path=["/a/b.mtx"]))
    digest = case_digest(base)
    assert len(digest) == len(hashlib.sha256().hexdigest())
    for same in (
        {"run": {"name": "x", "out": "y", "device": "cpu"}},
        {"parallel": {"exchange": "halo"}, "memory": {"whole_graph_mb": 1}, "output": {"plots": False}},
    ):
        assert case_digest(structs.replace(convert(same, Case), graph=base.graph)) == digest
    assert case_digest(structs.replace(base, graph=GraphCase(path=["/c/b.mtx"]))) == digest
    for other in (
        {"seed": 1},
        {"agent": {"batch": 17}},
        {"run": {"task": "train"}},
        {"train": {"graphs": {}}},
    ):
        assert case_digest(structs.replace(convert(other, Case), graph=base.graph)) != digest
    assert case_digest(structs.replace(base, graph=GraphCase(path=["/a/c.mtx"]))) != digest


# --------------------------------------------------------------------------------
# Garbage gives a CaseError or a case, nothing else

CHARACTERS = "[]{}=.,#'\"\\-+_ \n\u00e9\x1b"
WORDS = """[[ ]] ''' [run] [train.graphs] [[a]] run train graphs agent steps nodes seed name path d generator
1 2.5 nan true 1e400 1979-05-27 07:32:00Z 0x1F \\u0041 "x=1" 'y]' "a.b" networkx: * ** "?" "\\u0000" {a=1}"""
PIECES = st.sampled_from([*CHARACTERS, *WORDS.split(), '"""', "\r\n", "#c\n", " = ", "\n"])


def loads_or_refuses(text, overrides):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "case.toml")
        Path(path).write_bytes(text if isinstance(text, bytes) else text.encode(errors="surrogatepass"))
        try:
            assert isinstance(load(path, overrides), Case)
        except CaseError as error:
            assert all(line.isprintable() and line.isascii() for line in str(error).split("\n"))


@FUZZ
@given(st.binary(max_size=60), st.lists(st.text(max_size=30), max_size=2))
def test_bytes(raw, overrides):
    loads_or_refuses(raw, [])
    loads_or_refuses(SOLVABLE, overrides)


@FUZZ
@given(
    st.lists(PIECES, max_size=25).map("".join),
    st.lists(st.lists(PIECES, max_size=8).map("".join), max_size=2),
)
def test_pieces_of_toml(text, overrides):
    loads_or_refuses(text, [])
    loads_or_refuses(SOLVABLE, overrides)


ANY_VALUE = st.recursive(
    st.none().map(lambda _: {})
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abp"), inner, max_size=2),
    max_leaves=5,
)


def inline(value):
    """A value as TOML, tables included."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {inline(inner)}" for key, inner in value.items()) + "}"
    return f"[{', '.join(map(inline, value))}]" if isinstance(value, list) else toml_value(value)


@FUZZ
@given(st.lists(st.tuples(st.sampled_from([".".join(keys) for keys, _, _ in all_keys()]), ANY_VALUE)))
def test_known_keys_with_any_values(settings_):
    loads_or_refuses(SOLVABLE, [f"{key}={inline(value)}" for key, value in settings_])


LINES = st.sampled_from(
    [
        "a = 1",
        "b.c = 2 # d = 3",
        "b . 'x y'.z = [1, # ]\n 2,\n]",
        's = """\nq = 1\n[z]\n\\""" = "" """""',
        "l = '''\nq = 1\\'''",
        'e = ""',
        "i = {p = {q = 1, r.s = '}'}, t = [{u = 1}, {u = 2}]}",
        '"k=]#" = "[#\\""',
        "[t]",
        "  [ t . 'u]' ] # [v]",
        "[[n]]",
        "",
        "# [c]\r",
        "d = 1979-05-27 07:32:00",
    ]
)


@FUZZ
@given(st.lists(LINES, max_size=8).map("\n".join))
def test_every_key_of_a_valid_file_has_its_line(text):
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    places = key_places(text.replace("\r\n", "\n"))

    def check(node, above):
        for key, value in node.items():
            line = text.split("\n")[int(places[(*above, key)].removeprefix("line ")) - 1]
            assert key in line
            if isinstance(value, dict) and len(above) + 2 <= DEEPEST:
                check(value, (*above, key))

    check(data, ())


# --------------------------------------------------------------------------------
# The command line


def test_options_anywhere(case_file):
    path = case_file(SOLVABLE)
    command = cli.parse(["--dry-run", "seed=4", "--out", "o/p", path, "--device=cpu", "train.steps=3"])
    assert (command.case_path, command.out, command.device) == (path, "o/p", "cpu")
    assert (command.dry_run, command.overwrite) == (True, False)
    assert (command.case.seed, command.case.train.steps) == (4, 3)
    assert (command.case.run.out, command.case.run.device) == ("o/p", "cpu")
    assert cli.parse([path]).out == os.path.join("runs", "case")
    assert cli.parse([path, "run.out='x'"]).out == "x"


def test_the_command_that_resumes_is_the_one_that_was_typed(case_file, monkeypatch):
    path = case_file(SOLVABLE)
    given = [path, "--overwrite", "--out", "a b"]
    assert cli.parse(given).again == f"python run.py {path} --out 'a b' --resume"  # from Python
    monkeypatch.setattr(sys, "argv", ["../lockstep/run.py", *given])
    monkeypatch.setattr(sys, "orig_argv", [".venv/bin/python", "-X", "dev", *sys.argv])
    assert cli.parse(given).again == f".venv/bin/python ../lockstep/run.py {path} --out 'a b' --resume"


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_the_command_that_resumes_can_be_typed(case_file):
    """Blanks, brackets, quotes, and names that are not ASCII; messages escape all that is not."""
    path = case_file(SOLVABLE)
    given = [path, "--out", "caf\u00e9 'a'\\1 [b] $HOME", "run.name=a b"]
    again = cli.parse(given).again
    assert printable(again) == again
    told = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {again}"], capture_output=True, timeout=60, check=True
    )
    assert told.stdout.decode().split("\0")[2:-1] == [*given, "--resume"]


def test_a_case_in_a_folder_with_an_equals_sign(case_file, tmp_path):
    (tmp_path / "lr=0.1").mkdir()
    assert cli.parse([case_file(SOLVABLE, "lr=0.1/case.toml")]).case.run.name == "case"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no case file given"),
        (["a.toml", "b.toml"], "one case file, please, got a.toml, b.toml"),
        (["--outt=x"], "unknown option --outt: did you mean --out?"),
        (["--over"], "unknown option --over: did you mean --overwrite?"),
        (["--zzz"], "unknown option --zzz: there are --out"),
        (["-x"], "unknown option -x"),
        (["a.toml", "--out"], "option --out: needs a value"),
        (["a.toml", "--out", "--dry-run"], "option --out: needs a value"),
        (["a.toml", "--out", "\x1b"], 'option --out: must be text without control characters, got "\\u001B"'),
        (["a.toml", "--out", "\udcff"], "option --out: must be text without control characters"),
        (["a.toml", "--device", "tpu"], 'option --device: must be auto, cpu or gpu, got "tpu"'),
        (["a.toml", "--dry-run=1"], 'option --dry-run: takes no value, got "1"'),
        (["--\u00e9\x1b"], "unknown option --\\xe9\\x1b"),
    ],
)
def test_a_wrong_command_line(arguments, message):
    with pytest.raises(CaseError) as caught:
        cli.parse(arguments)
    assert message in str(caught.value)


@FUZZ
@given(st.lists(st.text(max_size=8) | st.sampled_from(["--out", "--device", "--dry-run", "-", "--", "a=1"])))
def test_any_command_line(arguments):
    try:
        cli.parse(arguments)
    except CaseError as error:
        assert all(line.isprintable() and line.isascii() for line in str(error).split("\n"))


def test_help_lists_every_key_in_ascii_and_100_columns():
    text = help_text()
    assert cli.parse(["x.toml", "--help"]) == text
    assert text.isascii()
    assert max(map(len, text.splitlines())) <= 100
    for keys, each, _ in all_keys():
        assert f"  {each.name} = " in text
        assert f"[{'.'.join(keys[:-1])}]" in text or len(keys) == 1
    assert "a whole number, from 1 to 16" in text


@pytest.mark.parametrize(
    ("variables", "rank", "size"),
    [
        ({}, 0, None),
        ({"PMI_RANK": "2", "PMI_SIZE": "4"}, 2, 4),
        ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "3", "PMIX_RANK": "1"}, 1, 3),
        ({"PMIX_RANK": "5"}, 5, None),
        ({"MPI_LOCALRANKID": "1"}, 1, None),
        ({"SLURM_PROCID": "3", "SLURM_NTASKS": "8"}, 0, None),
        ({"SLURM_PROCID": "3", "SLURM_NTASKS": "8", "SLURM_STEP_ID": "0"}, 3, 8),
        ({"PMI_RANK": "x", "PMI_SIZE": ""}, 0, None),
    ],
)
def test_what_the_launcher_says(monkeypatch, variables, rank, size):
    for name in list(os.environ):
        if name.startswith(("PMI", "OMPI_", "SLURM_", "MPI_LOCAL")):
            monkeypatch.delenv(name)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert (cli.launcher_rank(), cli.launcher_size()) == (rank, size)
    assert cli.is_launched() == any(name in variables for name in (*cli.RANKS, "SLURM_STEP_ID"))


# --------------------------------------------------------------------------------
# The program


@pytest.mark.mpi_skip
@pytest.mark.parametrize("ranks", [0, 3])
def test_a_mistake_is_printed_once_and_ends_with_2(case_file, ranks):
    path = case_file(SOLVABLE + "[train]\nlearning_rat = 1\n")
    done = run_program(path, ranks=ranks)
    assert done.returncode == 2
    assert done.stdout == b""
    message = "unknown key train.learning_rat (line 5): did you mean agent.learning_rate?"
    assert done.stderr.decode() == f"lockstep: error: {path}: {message}\n"


@pytest.mark.mpi_skip
def test_help_and_version_are_printed_once():
    assert run_program("--help", ranks=2).stdout.decode() == help_text()
    assert run_program("--version", ranks=2).stdout.decode() == f"lockstep {config.VERSION}\n"


@pytest.mark.mpi_skip
def test_a_full_disk_does_not_hide_the_exit_code(case_file):
    with open("/dev/full", "wb") as full:
        command = [sys.executable, str(ROOT / "run.py"), case_file("x = 1")]
        assert subprocess.run(command, stderr=full, timeout=60, check=False).returncode == 2


@pytest.mark.mpi_skip
def test_messages_are_ascii_in_any_locale(case_file, tmp_path):
    path = case_file('[run]\n"n\u00e4me\\u001B" = 1\n', "f\u00e4ll.toml")
    done = run_program(path, LANG="C", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert done.returncode == 2
    assert b"run.n\\xe4me\\x1b (line 2): [run] has name, out, task" in done.stderr
    assert done.stderr.isascii()
    assert b"Traceback" not in done.stderr
    done = run_program(case_file(SOLVABLE), b"run.name='\xff'")
    assert done.returncode == 2
    assert b"without control characters" in done.stderr


@pytest.mark.mpi_skip
def test_names_that_a_locale_cannot_read_are_refused_with_what_would_help(case_file, tmp_path):
    ascii_alone = {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    (tmp_path / "g\u00fc.txt").write_text("0 1\n")
    path = case_file('[graph]\npath = "g\u00fc.txt"\n', "c.toml")
    for more in ([], [f"--out={tmp_path}/\u00f6"], ["graph.path=g\u00fc.txt"], ["graph.path=g*.txt"]):
        done = run_program(path, *more, cwd=tmp_path, **ascii_alone)
        assert done.returncode == 2 and done.stderr.count(b"\n") == 1, done.stderr
        assert b"; names of files are in ascii here, PYTHONUTF8=1 in the env" in done.stderr, done.stderr
