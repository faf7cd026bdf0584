"""The documents: their commands run, their links lead somewhere, their keys and files exist.

A fenced block marked `sh quick` or `python quick` is run here, one marked `sh long` or `python long` by
`make test-long`; the blocks of a document run in their order, in one folder of its own that looks like
the root of the project.
"""

import ast
import gc
import os
import re
import sys
from pathlib import Path

import layer_models
import numpy as np
import pytest
from helpers import listed, random_graph
from jobs import ROOT, forking_python, mpirun, run_job

from app.case.config import GRAPH_TABLES, all_keys, all_tables
from app.case.text import keys_markdown
from app.gnn.layers.table import LAYERS

NAMES = ["*.md", "inputs/README.md", "docs/*.md", "docs/*/*.md", "examples/*.md"]
DOCUMENTS = sorted(path for name in NAMES for path in ROOT.glob(name))
TEXTS = {path: path.read_text(encoding="utf-8") for path in DOCUMENTS}
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINKED = ("app", "bench", "docs", "examples", "inputs", "tests", "run.py", "README.md", "pyproject.toml")
LIMIT_S = {"quick": 120, "long": 3600}


def identify(path):
    """A document's name in the reports."""
    return str(path.relative_to(ROOT))


def blocks(path, length):
    """(language, text) of the blocks of a document that are marked quick or long."""
    found = [(info.split(), text) for info, text in FENCE.findall(TEXTS[path])]
    return [(words[0], text) for words, text in found if length in words[1:]]


def having(length):
    """The documents that have blocks of this kind."""
    return [path for path in DOCUMENTS if blocks(path, length)]


# ---- commands ---------------------------------------------------------------------------------------------


def run_blocks(path, length, folder):
    """Run the blocks of a document, all quick ones before a long one; the first that fails ends the test."""
    launcher = Path(mpirun(1)[0]).parent
    for name in LINKED:
        (folder / name).symlink_to(ROOT / name)
    # Plots take a second of every run, and have tests of their own: matplotlib seems not to be installed.
    (folder / "left_out").mkdir()
    (folder / "left_out" / "matplotlib.py").write_text("raise ImportError('left out')\n")
    forking_python(folder / "left_out")
    places = [str(folder / "left_out"), str(Path(sys.executable).parent), str(launcher), os.environ["PATH"]]
    variables = {
        "PATH": os.pathsep.join(places), "PYTHONPATH": os.pathsep.join([str(folder / "left_out"), str(ROOT)]),
        # What Open MPI wants to hear before it starts more ranks than there are cores, or runs as root
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe", "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }  # fmt: skip
    for kind in ("quick", "long") if length == "long" else ("quick",):
        for language, text in blocks(path, kind):
            start = {"sh": ["bash", "-euo", "pipefail", "-c"], "python": ["python", "-c"]}[language]
            code, printed = run_job([*start, text], LIMIT_S[kind], folder, **variables)
            assert code == 0, f"{identify(path)}:\n{text}\n{printed[-4000:]}"


@pytest.mark.mpi_skip
@pytest.mark.parametrize("path", having("quick"), ids=identify)
def test_the_quick_commands_run(path, tmp_path):
    run_blocks(path, "quick", tmp_path)


@pytest.mark.mpi_skip
@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("path", having("long"), ids=identify)
def test_the_long_commands_run(path, tmp_path):
    run_blocks(path, "long", tmp_path)


@pytest.mark.mpi_skip
def test_the_tutorials_have_commands():
    tutorials = [path for path in DOCUMENTS if path.name.startswith("tutorial_")]
    assert len(tutorials) >= 3
    assert set(tutorials) <= set(having("quick"))


# ---- what is named ----------------------------------------------------------------------------------------


@pytest.mark.mpi_skip
def test_the_reference_of_keys_is_what_the_program_prints():
    found = (ROOT / "docs" / "cases.md").read_text(encoding="utf-8")
    assert found == keys_markdown(), "python -m app keys > docs/cases.md"
    assert run_job([sys.executable, "-m", "app", "keys"], forked=True) == (0, found)
    code, printed = run_job([sys.executable, "-m", "app", "keys", "more"], forked=True)
    assert (code, printed) == (2, "lockstep: error: keys: takes no arguments; --help says more\n")
    code, printed = run_job([sys.executable, "-m", "app", "summary", "runs/x"], forked=True)
    assert code == 2
    assert printed.startswith('lockstep: error: unknown tool "summary"\nusage: python -m app TOOL')


def anchors(path):
    """The anchors of a document's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", path.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.mpi_skip
@pytest.mark.parametrize("path", DOCUMENTS, ids=identify)
def test_links_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", TEXTS[path])):
        if target.startswith(("https://", "http://")):
            continue
        name, _, anchor = target.partition("#")
        linked = (path.parent / name).resolve() if name else path
        assert linked.exists(), f"{identify(path)}: no {target}"
        assert linked.is_relative_to(ROOT), f"{identify(path)}: {target} is outside of the project"
        assert not anchor or anchor in anchors(linked), f"{identify(path)}: no heading for {target}"


MEASURED = [f"measurements/{name}.md" for name in ("answers", "bounds", "networks", "policies")]
CONTENTS = ["architecture/answers.md", "formats.md", "tutorial_classify.md", *MEASURED]


@pytest.mark.mpi_skip
@pytest.mark.parametrize("name", CONTENTS)
def test_long_documents_begin_with_a_list_of_their_sections(name):
    text = FENCE.sub("", TEXTS[ROOT / "docs" / name])
    head, *sections = re.split(r"^## (.*)$", text, flags=re.MULTILINE)
    listed = set(re.findall(r"\]\(#([\w-]+)\)", head))
    wanted = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in sections[::2]}
    assert len(wanted) > 5
    assert wanted - listed == set()


# A file of the program: a path below the root or below app/; NAME and the like stand for others.
FILE = re.compile(r"(?<![\w./{$-])((?:\w+/)+\w+\.(?:py|c|h|toml|md|sh|npz))\b")
OWN = re.compile(r"[A-Z]{4}|^(runs|raw|split|solution|predictions|embeddings)/|graphconv")


@pytest.mark.mpi_skip
@pytest.mark.parametrize("path", DOCUMENTS, ids=identify)
def test_files_that_are_named_exist(path):
    for name in FILE.findall(TEXTS[path]):
        if OWN.search(name) or name.endswith(".npz"):
            continue  # results, data, and the file that docs/adding_a_layer.md tells to write
        places = (ROOT, ROOT / "app", path.parent)
        assert any((place / name).exists() for place in places), f"{identify(path)}: no {name}"


TABLES = sorted({keys[0] for keys in all_tables()})
KEY = re.compile(rf"(?<![\w./\"-])((?:{'|'.join(TABLES)})(?:\.[a-z_]+)+)(?![\w(/.]*\()\b")
SUFFIXES = {
    "py",
    "npz",
    "csv",
    "json",
    "tsv",
    "md",
    "toml",
    "txt",
    "png",
    "html",
    "gz",
    "npy",
    "mtx",
    "c",
    "h",
}


@pytest.mark.mpi_skip
@pytest.mark.parametrize("path", DOCUMENTS, ids=identify)
def test_keys_that_are_named_exist(path):
    known = {".".join(keys) for keys, _, _ in all_keys()} | {".".join(keys) for keys in GRAPH_TABLES}
    named = [name for _, text in FENCE.findall(TEXTS[path]) for name in re.findall(f"{KEY.pattern}=", text)]
    for text in re.findall(r"`([^`\n]+)`", FENCE.sub("", TEXTS[path])):
        named += KEY.findall(text)
    for name in named:
        assert name in known or name.rpartition(".")[2] in SUFFIXES, f"{identify(path)}: no key {name}"


@pytest.mark.mpi_skip
def test_every_case_is_described():
    cases = {path.name for path in (ROOT / "inputs").glob("*.toml")}
    described = set(re.findall(r"\w+\.toml", (ROOT / "inputs" / "README.md").read_text(encoding="utf-8")))
    assert cases - described == set()
    assert {name for name in described - cases if name not in ("case.toml", "NAME.toml")} == set()


@pytest.mark.mpi_skip
def test_every_document_is_in_the_list_of_documents():
    linked = set(re.findall(r"\]\(docs/(\w+\.md)", TEXTS[ROOT / "README.md"]))
    assert {path.name for path in (ROOT / "docs").glob("*.md")} - linked == set()
    for folder in {path.parent for path in (ROOT / "docs").glob("*/*.md")}:
        parts = set(re.findall(rf"\]\({folder.name}/(\w+\.md)", TEXTS[folder.with_suffix(".md")]))
        assert parts == {path.name for path in folder.glob("*.md")}


# ---- names in the documents on the program itself ----------------------------------------------------------

ON_THE_PROGRAM = [
    path
    for path in DOCUMENTS
    if path.parent.name == "architecture" or path.stem in ("architecture", "how_it_works", "papers")
]
# Of others: instances, an attribute of GCC, what ends names of arrays.
OTHERS = {"brock400_2", "g05", "pm", "target_clones", "_own", "_ext", "_part", "_all"}
NAMED = re.compile(r"_?[A-Za-z]\w*(?:\.\w+)*(?:\(.*\))?")
# `NAME` of `FILE`, `NAME` in `FILE`
PLACED = re.compile(r"`([\w.]+)`(?: of | in )`((?:\w+/)+\w+\.(?:py|c|h))`")


class Names:
    """What the program's Python files name: all of it, what each class has, what each class is made from.

    A string counts where it is one word: keys, problems, layers, methods.
    """

    def __init__(self):
        self.all, self.members, self.bases = set(), {}, {}
        for path in [ROOT / "run.py", *(ROOT / "app").rglob("*.py"), *(ROOT / "bench").rglob("*.py")]:
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                self.all |= set(names_of(node))
                if isinstance(node, ast.ClassDef):
                    self.members.setdefault(node.name, set()).update(
                        n for x in ast.walk(node) for n in names_of(x)
                    )
                    self.bases.setdefault(node.name, set()).update(n for x in node.bases for n in names_of(x))
        for path in (ROOT / "app").rglob("*.[ch]"):
            self.all |= set(re.findall(r"\blk_\w+", path.read_text(encoding="utf-8")))

    def has(self, owner, name):
        """Whether a class, or one that it is made from, has a member of that name."""
        if name in self.members.get(owner, ()):
            return True
        return any(self.has(base, name) for base in self.bases.get(owner, ()))


def names_of(node):
    """The names that a node of a syntax tree states itself."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Name | ast.Attribute):
        return [getattr(node, "id", None) or node.attr]
    if isinstance(node, ast.arg):
        return [node.arg]
    return [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []


@pytest.fixture(scope="module")
def names():
    gc.disable()  # trees are of many objects, all of which go at once
    try:
        return Names()
    finally:
        gc.enable()


def lost_names(text, names, files):
    """Backticked names of a text that the program has not."""
    for name in re.findall(r"`([^`\n]+)`", FENCE.sub("", text)):
        if not NAMED.fullmatch(name) or name in OTHERS or name in files:
            continue
        owner, *rest = parts = name.partition("(")[0].split(".")
        if rest and owner in names.members:
            if not names.has(owner, rest[0]):
                yield name
        elif not (name in names.all or all(part in names.all for part in parts)):
            yield name


@pytest.mark.mpi_skip
@pytest.mark.parametrize("path", ON_THE_PROGRAM, ids=identify)
def test_names_of_the_program_exist(path, names):
    files = {each.name for top in LINKED for each in (ROOT / top).rglob("*.*")} | set(LINKED) | {"setup.py"}
    assert list(lost_names(TEXTS[path], names, files)) == []


@pytest.mark.mpi_skip
def test_a_name_that_is_lost_is_found(names):
    text = "`Pipeline.answer` and `Pipeline.reply` of `app/main.py`, `no_such_name`, `nowhere.py`, `Toolbox`"
    assert list(lost_names(text, names, {"main.py"})) == ["Pipeline.reply", "no_such_name", "nowhere.py"]


@pytest.mark.mpi_skip
@pytest.mark.parametrize("path", DOCUMENTS, ids=identify)
def test_names_stand_in_the_files_that_are_said_to_have_them(path):
    for name, file in PLACED.findall(TEXTS[path]):
        found = [place / file for place in (ROOT, ROOT / "app", path.parent) if (place / file).exists()]
        if found:  # else OWN: test_files_that_are_named_exist
            text, word = found[0].read_text(encoding="utf-8"), name.rpartition(".")[2]
            assert re.search(rf"\b{word}\b", text), f"{identify(path)}: no {name} in {file}"


# ---- the layer of docs/adding_a_layer.md ------------------------------------------------------------------


@pytest.fixture
def graphconv(monkeypatch):
    """The layer that the document writes, added as it says."""
    text = TEXTS[ROOT / "docs" / "adding_a_layer.md"]
    code = dict(re.findall(r"^ *```(python \w+)\n(.*?)^ *```$", text, re.M | re.S))
    names = {"__name__": "graphconv"}
    exec(compile(code["python layer"], "adding_a_layer.md", "exec"), names)
    reference = eval(code["python reference"].strip(), {})
    monkeypatch.setitem(LAYERS, "graphconv", names["GraphConv"])
    monkeypatch.setitem(layer_models.CONVOLUTIONS, "graphconv", reference)


@pytest.mark.parametrize("sparse", [False, True])
def test_the_layer_of_the_document_has_the_gradient_of_the_loss(group, graphconv, sparse):
    graph, draws = random_graph(23, 0.15, 3), np.random.default_rng(1)
    X, labels = draws.normal(size=(23, 5)).astype(np.float32), np.arange(23) % 3
    case = layer_models.case_of("graphconv", "residual", widths=(4,))
    trial = layer_models.Trial(group, graph, X, labels, case, sparse=sparse)
    gradient, params = trial.epoch(1), trial.engine.params
    for name, expected in layer_models.differences(graph, X, labels, case, trial.values).items():
        found = gradient[params.slices[name]].reshape(params.shapes[name])
        assert np.abs(found - expected).max() < 5e-6 * max(1, np.abs(expected).max()), name


def test_the_layer_of_the_document_has_the_exact_adjoint(group, graphconv):
    graph, draws = listed(9, (0, 1), (1, 2), (0, 5), (5, 8), (2, 8), (3, 4)), np.random.default_rng(2)
    H, D = draws.integers(-3, 4, (9, 3)), draws.integers(-3, 4, (9, 4))
    values = {name: draws.integers(-3, 4, (3, 4)).astype(np.float32) for name in ("W_own", "W_sum")}
    one = layer_models.Single(group, graph, "graphconv", H, D, values)
    product = one.dot(one.Z, one.D, 1)
    assert product == sum((values[name] * one.gradient[name]).sum(dtype=float) for name in values)
    assert product == one.dot(one.H, one.dH, 1)


@pytest.mark.mpi_skip
def test_who_follows_one_document_after_the_other_meets_no_earlier_run():
    """README and the tutorials are followed in one folder: each names run folders of its own."""
    users = {}
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("tutorial_*.md"))]:
        text = "\n".join(text for length in ("quick", "long") for _, text in blocks(path, length))
        for folder in re.findall(r"--out (\S+)", text):
            users.setdefault(folder, []).append(identify(path))
    assert len(users) >= 8
    assert {folder: found for folder, found in users.items() if len(found) > 1} == {}
