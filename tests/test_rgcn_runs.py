"""R-GCN through run.py: the shipped case, saved weights, the study of parts."""

import json
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from jobs import mpirun, run_job, split_over

from app import predict_links
from app.case.file import build
from app.errors import GraphError
from app.gnn.rgcn.queries import NOBODY, Query, best_of_all
from app.graphs.triples.asked import read_asked
from app.graphs.triples.data import NodeLabels, Triples
from app.tasks.links import ranks_text
from app.tasks.rgcn import _predictions_text
from app.tasks.rgcn_inputs import read_case_triples

pytestmark = pytest.mark.mpi_skip
SMALL = ["graph.nodes=600", "rgcn.labelled=300", "rgcn.bases=6", "rgcn.epochs=4"]


def lockstep(out, *more, case="rgcn", ranks=1):
    launch = mpirun(ranks) if ranks > 1 else []
    command = [*launch, sys.executable, "run.py", f"inputs/{case}.toml", split_over(ranks), *more]
    code, printed = run_job([*command, "--out", out], limit_s=240, LOCKSTEP_DATA="")
    return code, printed


def result_of(out):
    return json.loads((out / "result.json").read_text())


def test_any_partition_and_saved_weights_give_one_digest(tmp_path):
    """Also with a limit that puts weights in a file."""
    runs = {
        "one": (1, []), "limit": (1, ["memory.fast_mb=20"]), "parts": (1, ["rgcn.parts=3"]),
        "relations": (2, []), "rows": (3, ['rgcn.partition="rows"']), "both": (4, ['rgcn.partition="both"']),
    }  # fmt: skip
    for name, (ranks, more) in runs.items():
        plots = f"output.plots={str(name == 'one').lower()}"
        code, printed = lockstep(tmp_path / name, *SMALL, *more, plots, ranks=ranks)
        assert code == 0, printed
    results = {name: result_of(tmp_path / name) for name in runs}
    assert len({each["digest"] for each in results.values()}) == 1
    one = tmp_path / "one"
    assert all((one / name).stat().st_size > 0 for name in ("training.png", "breakdown.png"))
    with np.load(one / "weights.npz") as file:
        assert file["first/V"].shape[1:] == (6, 16)
    applied = [f"rgcn.weights={one / 'weights.npz'}", "rgcn.epochs=0", "output.plots=false"]
    code, printed = lockstep(tmp_path / "applied", *SMALL[:2], *applied, ranks=2)
    assert code == 0, printed
    assert result_of(tmp_path / "applied")["digest"] == results["one"]["digest"]
    texts = [next((tmp_path / name / "predictions").iterdir()).read_text() for name in ("one", "applied")]
    assert texts[0] == texts[1] and len(texts[0].splitlines()) == 300
    code, printed = lockstep(tmp_path / "wrong", "graph.nodes=500", SMALL[1], *applied)
    assert code == 2 and "has rows for the nodes of another graph" in printed


FEW_HELD_OUT = ("graph.d=4", "rgcn.held_out=0.002", "rgcn.validation=0")


@pytest.mark.parametrize(
    "ranks, case, keys",
    [
        (1, "rgcn", ["graph.nodes=15000"]),
        (1, "rgcn_links", ["graph.nodes=8000", "rgcn.loss=sigmoid", "rgcn.negatives=8", *FEW_HELD_OUT]),
        (1, "rgcn_links", ["graph.nodes=1500", *FEW_HELD_OUT]),
        (1, "rgcn_links", ["graph.nodes=8000", "rgcn.candidates=100", *FEW_HELD_OUT]),
        pytest.param(2, "rgcn", ["rgcn.bases=0", "rgcn.hidden=48", "rgcn.parts=3"], marks=pytest.mark.long),
        pytest.param(
            2, "rgcn", ['rgcn.partition="rows"', "rgcn.layers=3", "rgcn.bases=8"], marks=pytest.mark.long
        ),
    ],
)
def test_a_dry_run_says_about_the_memory_that_a_run_takes(tmp_path, ranks, case, keys):
    keys = ["graph.nodes=30000", "graph.d=8", "rgcn.epochs=2", "output.plots=false", *keys]
    code, printed = lockstep(tmp_path / "dry", *keys, "--dry-run", case=case, ranks=ranks)
    assert code == 0, printed
    assert re.search(r"# an epoch with its evaluations: [0-9.]+ m?s \(.*first layer forward", printed)
    assert ("held-out triples, ranked at the end" in printed) == (case == "rgcn_links")
    said = re.search(rf"# ([0-9.]+) MB a rank on {ranks} ranks?( in 3 parts)?: base", printed)
    code, printed = lockstep(tmp_path / "out", *keys, case=case, ranks=ranks)
    assert code == 0, printed
    words = " ".join(printed.split())
    assert f"estimate: {said[1]} MB a rank on {ranks} rank" in words
    took = float(re.search(r"memory of the largest process ([0-9]+) MB", words)[1])
    assert 0.75 < float(said[1]) / took < 1.25


def test_features_take_the_place_of_one_hot_inputs(tmp_path):
    triples = np.array([[k % 30, k % 3, (7 * k + 1) % 30] for k in range(90)], dtype=np.int32)
    nodes = np.arange(30)
    np.savez(
        tmp_path / "g.npz", triples=triples, num_nodes=30, num_relations=3, train_idx=nodes[::2],
        train_label=nodes[::2] % 4 // 2, test_idx=nodes[1::2], test_label=nodes[1::2] % 4 // 2,
    )  # fmt: skip
    np.save(tmp_path / "x.npy", np.eye(30, 4, dtype=np.float32))
    keys = [f"graph.path={tmp_path / 'g.npz'}", f"graph.features={tmp_path / 'x.npy'}", "output.plots=false"]
    code, printed = lockstep(tmp_path / "out", *keys, "rgcn.epochs=3")
    assert code == 0, printed
    with np.load(tmp_path / "out" / "weights.npz") as file:
        assert file["first/self"].shape == (4, 16)
    np.save(tmp_path / "x.npy", np.eye(29, 4, dtype=np.float32))
    code, printed = lockstep(tmp_path / "more", *keys, "rgcn.epochs=3")
    assert code == 2 and "found 29 rows; 30" in printed


def test_names_with_blanks_stand_apart_from_their_classes(tmp_path):
    files = {
        "t.tsv": "New York\tin\tUSA\nOld York\tin\tUK\nNew York\tnear\tOld York\n",
        "a.tsv": "node\tlabel\nNew York\tbig town\n", "b.tsv": "node\tlabel\nOld York\tsmall\n",
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    labels = [f"rgcn.train_labels={tmp_path / 'a.tsv'}", f"rgcn.test_labels={tmp_path / 'b.tsv'}"]
    keys = ['graph.generator=""', f"graph.path={tmp_path / 't.tsv'}", "rgcn.epochs=3", "output.plots=false"]
    code, printed = lockstep(tmp_path / "out", *keys, *labels)
    assert code == 0, printed
    lines = (tmp_path / "out" / "predictions" / "t.txt").read_text().splitlines()
    assert [line.split("\t")[0] for line in lines] == ["New York", "Old York"]
    assert {line.split("\t")[1] for line in lines} <= {"big town", "small"}


def test_names_keep_to_their_line():
    """A literal may have a line feed or a tab inside, and a name of a class a comma."""
    triples = Triples(
        "g", 2, 1, *np.zeros((3, 1), dtype=np.int32), ["r"], ['"two\nlines"', "b"]
    )  # fmt: skip
    two = np.array([0, 1], dtype=np.int32)
    labels = NodeLabels(2, two[:1], two[:1], two[1:], two[1:], ["a,b", "c\td"])
    text = _predictions_text(triples, labels, SimpleNamespace(predictions=two))
    assert text == '"two\\nlines"\ta,b\nb\tc\\td\n'
    links = SimpleNamespace(test=np.array([[0, 0, 1]]), ranks=np.array([[1.0, 2.5]]))
    assert ranks_text(triples, links) == '"two\\nlines" r b 1 2.5\n'
    assert ranks_text(Triples("g", 2, 1, *two[None, :1].repeat(3, 0)), links) == "0 0 1 1 2.5\n"


def tell_apart(folder, relations, classes, first=0, extra=""):
    """20 nodes of two classes; one relation joins those of one class, one others. `first` begins the file."""
    rows = [(i, r, (i + 2 * k + r) % 20) for i in range(20) for k in range(3) for r in (0, 1)]
    rows = rows[first:] + rows[:first]
    order = list(dict.fromkeys(v for s, _, o in rows for v in (s, o)))
    folder.mkdir()
    triples = "".join(f"n{s}\t{relations[r]}\tn{o}\n" for s, r, o in rows)
    (folder / "g.txt").write_text(triples + extra)
    hints = np.array([[i % 4 == 0, i % 4 == 1] for i in order], dtype=np.float32)
    np.save(folder / "x.npy", hints)
    for name, nodes in (("trainingSet.tsv", range(10)), ("testSet.tsv", range(10, 20))):
        (folder / name).write_text("node\tlabel\n" + "".join(f"n{i}\t{classes[i % 2]}\n" for i in nodes))
    keys = ["rgcn.bases=0", "rgcn.inverse=false", "output.plots=false", 'graph.generator=""']
    return [f"graph.path={folder / 'g.txt'}", f"graph.features={folder / 'x.npy'}", *keys]


def test_saved_weights_know_relations_and_classes_by_name(tmp_path):
    """Triples in another order have the same predictions; unknown relations are left out, classes refused."""
    names = ("likes", "hates"), ("red", "green")
    first = tell_apart(tmp_path / "a", *names)
    code, printed = lockstep(tmp_path / "learned", *first, "rgcn.epochs=30")
    assert code == 0, printed
    apply = [f"rgcn.weights={tmp_path / 'learned' / 'weights.npz'}", "rgcn.epochs=0"]

    def predicted(name, *given, **more):
        code, printed = lockstep(
            tmp_path / f"{name}-run", *tell_apart(tmp_path / name, *given, **more), *apply
        )
        assert code == 0, printed
        lines = (tmp_path / f"{name}-run" / "predictions" / "g.txt").read_text().splitlines()
        return dict(line.split() for line in lines), printed

    wanted = dict(
        line.split() for line in (tmp_path / "learned" / "predictions" / "g.txt").read_text().splitlines()
    )
    assert set(wanted.values()) == {"red", "green"}
    assert predicted("same", *names)[0] == wanted
    assert predicted("moved", *names, first=1)[0] == wanted
    swapped = predicted("swapped", ("hates", "likes"), names[1])[0]
    assert swapped != wanted  # they do tell relations apart
    found, printed = predicted("more", *names, extra="n1\tknows\tn2\n")
    assert found == wanted and "warning: 1 triples are left out" in printed
    few = tell_apart(tmp_path / "few", *names, extra="n1\tknows\tn2\n")
    code, printed = lockstep(tmp_path / "few-run", *few, *apply, "--dry-run")
    assert code == 0, printed
    other = tell_apart(tmp_path / "other", names[0], ("red", "zinc"))
    code, printed = lockstep(tmp_path / "refused", *other, *apply)
    assert code == 2 and "for classes 'green', 'red'; these have 'zinc' besides" in printed


def test_weights_are_applied_where_there_are_no_tables(tmp_path):
    """To all nodes; where only the nodes of the test are named, to these; from an .npz, too."""
    keys = tell_apart(tmp_path / "a", ("likes", "hates"), ("red, dark", "green"))
    code, printed = lockstep(tmp_path / "learned", *keys, "rgcn.epochs=30")
    assert code == 0, printed

    def predicted(name, *more, ranks=1):
        code, printed = lockstep(tmp_path / name, *keys, *more, "rgcn.epochs=0", weights, ranks=ranks)
        assert code == 0, printed
        assert ("no labelled nodes to tell the accuracy by" in printed) == (name != "known")
        (path,) = (tmp_path / name / "predictions").iterdir()
        return dict(line.split("\t") for line in path.read_text().splitlines())

    weights = f"rgcn.weights={tmp_path / 'learned' / 'weights.npz'}"
    known = predicted("known")
    for table in ("trainingSet.tsv", "testSet.tsv"):
        (tmp_path / "a" / table).unlink()
    assert predicted("one") == known == predicted("two", ranks=2)
    assert result_of(tmp_path / "one")["digest"] == result_of(tmp_path / "two")["digest"]
    (tmp_path / "asked.tsv").write_text("node\tlabel\nn3\t\nn5\t\n")
    some = predicted("some", f"rgcn.test_labels={tmp_path / 'asked.tsv'}")
    assert some == {node: known[node] for node in ("n3", "n5")}
    code, printed = lockstep(tmp_path / "dry", *keys, "rgcn.epochs=0", weights, "--dry-run")
    assert code == 0, printed
    code, printed = lockstep(tmp_path / "more", *keys, weights)
    assert code == 2 and "trainingSet.tsv: no such file" in printed
    arrays = {"triples": np.array([[0, 0, 1], [1, 1, 0]]), "num_nodes": 20, "num_relations": 2}
    np.savez(tmp_path / "g.npz", **arrays)
    keys[0] = f"graph.path={tmp_path / 'g.npz'}"
    code, printed = lockstep(tmp_path / "npz", *keys, "rgcn.epochs=0", weights)
    assert code == 0 and len((tmp_path / "npz" / "predictions" / "g.txt").read_text().splitlines()) == 20


def test_nothing_learned_and_nothing_to_test(tmp_path):
    """No predictions of a network that learned nothing; no accuracy of no nodes."""
    code, printed = lockstep(tmp_path / "none", *SMALL, "rgcn.epochs=0")
    assert code == 2 and "rgcn.epochs (command line): must be at least 1 without rgcn.weights" in printed
    arrays = dict(  # noqa: C408
        triples=[[0, 0, 1], [1, 0, 2], [2, 0, 0]], num_nodes=3, num_relations=1, train_idx=[0, 1],
        train_label=[0, 1], test_idx=np.array([]), test_label=np.array([]),
    )  # fmt: skip
    np.savez(tmp_path / "g.npz", **{name: np.array(values) for name, values in arrays.items()})
    keys = [f"graph.path={tmp_path / 'g.npz'}", 'graph.generator=""', "rgcn.epochs=2", "output.plots=false"]
    code, printed = lockstep(tmp_path / "run", *keys)
    assert code == 0 and "test 0" not in printed, printed
    assert result_of(tmp_path / "run")["test_accuracy"] is None


def test_label_tables_that_lie_beside_triples_are_inputs(tmp_path):
    """Also where no key names them: a run does not go on from a checkpoint with others."""
    keys = [*tell_apart(tmp_path / "a", ("likes", "hates"), ("red", "green")), "checkpoint.steps=1"]
    code, printed = lockstep(tmp_path / "run", *keys, "rgcn.epochs=30000", "--max-hours", "0.0008")
    assert code == 3, printed
    table = tmp_path / "a" / "trainingSet.tsv"
    table.write_text(table.read_text().replace("red", "x").replace("green", "red").replace("x", "green"))
    code, printed = lockstep(tmp_path / "run", *keys, "rgcn.epochs=30000", "--resume")
    assert code == 2 and "trainingSet.tsv" in printed, printed


@pytest.mark.parametrize(
    "key",
    [
        "graph.splits=random",
        "graph.order=random",
        "output.embeddings=true",
        "graph.count=3",
        "memory.cache=kept",
    ],
)
def test_keys_that_relations_do_not_read_are_refused(tmp_path, key):
    code, printed = lockstep(tmp_path / "out", *SMALL, key)
    assert code == 2 and f'{key.split("=")[0]}: is not read by gnn.model = "rgcn"' in printed


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (
            ["rgcn.goal=links", "rgcn.min_edges=5"],
            'rgcn.min_edges: is read with rgcn.goal = "classes"',
        ),
        (
            ["rgcn.goal=links", "memory.fast_mb=1"],
            'memory.fast_mb: is read with rgcn.goal = "classes"',
        ),
        (
            ["rgcn.goal=links", "rgcn.keep=best"],
            'rgcn.keep: is read with rgcn.goal = "classes"; leave it out',
        ),
        (["rgcn.goal=links", "rgcn.prune=false"], 'rgcn.prune: is read with rgcn.goal = "classes"'),
        (["rgcn.scorer=distmult"], 'rgcn.scorer: is read with rgcn.goal = "links"; leave it out'),
        (["rgcn.n3=0.1"], 'rgcn.n3: is read with rgcn.goal = "links"; leave it out'),
        (["rgcn.goal=links", "rgcn.n3=1e300"], "must be from 0 to 1000000, got 1e+300"),
        (
            ["rgcn.goal=links", "rgcn.loss=softmax", "rgcn.negatives=9"],
            'rgcn.negatives: is read with rgcn.loss = "sigmoid"; leave it out',
        ),
        (
            ["rgcn.goal=links", "rgcn.candidates=9"],
            'rgcn.candidates: is read with rgcn.loss = "softmax"; leave it out',
        ),
        (["rgcn.margin=9"], 'rgcn.margin: is read with rgcn.goal = "links"; leave it out'),
        (
            ["rgcn.goal=links", "rgcn.margin=9"],
            'rgcn.margin: is read with rgcn.loss = "sigmoid" and rgcn.scorer = "rotate" or "transe"; leave',
        ),
        (
            ["rgcn.goal=links", "rgcn.scorer=rotate", "rgcn.loss=softmax", "rgcn.margin=9"],
            'rgcn.margin: is read with rgcn.loss = "sigmoid" and rgcn.scorer',
        ),
        (["rgcn.goal=links", "rgcn.scorer=rotate", "rgcn.dimension=5"], "an even number would be right"),
        (["rgcn.goal=links", "rgcn.scorer=transh"], "rgcn.scorer"),
        (["rgcn.goal=links", "rgcn.candidates=-1"], "rgcn.candidates"),
        (["rgcn.layers=1", "rgcn.hidden=5"], "rgcn.hidden: is read with rgcn.layers of at least 2"),
        (["rgcn.held_out=0.2"], 'rgcn.held_out: is read with rgcn.goal = "links"; leave it out'),
        (["rgcn.layers=1", "rgcn.dropout=0.1"], "rgcn.dropout: is read with rgcn.layers of at least 2"),
        (["rgcn.goal=links", "rgcn.dimension=5"], "an even number would be right, or rgcn.scorer"),
        (["rgcn.warmup=4"], "less than rgcn.epochs = 4 would be right, got 4"),
        (["rgcn.keep=best"], "rgcn.keep: goes by labelled validation nodes, and there are none"),
        (["rgcn.keep=best", "memory.fast_mb=9"], "best keeps a copy of all weights"),
        (
            ["rgcn.goal=links", "rgcn.validation=0", "rgcn.patience=2"],
            "rgcn.patience: goes by validation triples",
        ),
        (["rgcn.groups=1"], 'rgcn.groups: is read with rgcn.partition = "both"; leave it out'),
        (["graph.generator=er"], 'graph.generator: "ba" would be right for triples, got "er"'),
    ],
)
def test_keys_that_do_not_count_together_are_refused(tmp_path, keys, said):
    code, printed = lockstep(tmp_path / "out", *SMALL, *keys)
    assert code == 2 and said in printed, printed


@pytest.mark.parametrize(
    "key", ["graph.features", "rgcn.train_labels", "rgcn.test_labels", "rgcn.val_labels"]
)
def test_links_are_predicted_without_features_and_labels(tmp_path, key):
    """They would have been read by nobody."""
    (tmp_path / "t.tsv").write_text("a\tr\tb\nb\tr\ta\n")
    given = f"{key}={tmp_path / 't.tsv'}"
    keys = ['graph.generator=""', f"graph.path={tmp_path / 't.tsv'}", "rgcn.goal=links", given]
    code, printed = lockstep(tmp_path / "out", *keys)
    assert code == 2 and f'{key}: is read with rgcn.goal = "classes"; leave it out' in printed, printed


def test_the_number_of_nodes_may_be_drawn(tmp_path):
    code, printed = lockstep(tmp_path / "out", *SMALL, "graph.nodes=[500, 700]")
    assert code == 0, printed
    assert 500 <= int(re.search(r"triples, (\d+) nodes", printed)[1]) <= 700


def test_links_need_no_labels(tmp_path):
    """Of fewer nodes than rgcn.labelled asks for, too."""
    code, printed = lockstep(tmp_path / "out", "graph.nodes=300", "rgcn.goal=links", "rgcn.epochs=1")
    assert code == 0, printed


def test_link_prediction_writes_weights_and_ranks(tmp_path):
    draws = np.random.default_rng(1)
    ends = draws.integers(0, 30, (2, 120))
    triples = np.stack([ends[0], draws.integers(0, 3, 120), ends[1]], axis=1)
    np.savez(tmp_path / "g.npz", triples=triples, num_nodes=30, num_relations=3)
    keys = [f"graph.path={tmp_path / 'g.npz'}", "output.plots=false"]
    code, printed = lockstep(
        tmp_path / "one", *keys, "rgcn.epochs=3", "rgcn.dimension=6", case="rgcn_links", ranks=2
    )
    assert code == 0, printed
    lines = (tmp_path / "one" / "predictions" / "g.txt").read_text().splitlines()
    ranks = np.array([[float(word) for word in line.split()[3:]] for line in lines])
    assert len(lines) == round(0.1 * len(np.unique(triples, axis=0))) and ranks.min() >= 1
    one = result_of(tmp_path / "one")
    assert (1 / ranks).mean() == pytest.approx(one["links"]["learned"]["mrr"])
    applied = [*keys, f"rgcn.weights={tmp_path / 'one' / 'weights.npz'}", "rgcn.epochs=0"]
    code, printed = lockstep(tmp_path / "applied", *applied, case="rgcn_links")
    assert code == 0, printed
    again = result_of(tmp_path / "applied")
    assert again["weights_digest"] == one["weights_digest"] and again["links"] == one["links"]
    code, printed = lockstep(tmp_path / "wrong", *applied, "seed=9", case="rgcn_links")
    assert code == 2 and "has rows for the nodes of another graph" in printed


def test_links_without_layers_are_written_and_applied(tmp_path):
    """Rows of nodes alone, with loops: other triples of the same nodes are ranked by the same weights."""
    draws = np.random.default_rng(1)
    ends = draws.integers(0, 30, (2, 120))
    triples = np.stack([ends[0], draws.integers(0, 3, 120), ends[1]], axis=1)
    np.savez(tmp_path / "g.npz", triples=triples, num_nodes=30, num_relations=3)
    keys = [f"graph.path={tmp_path / 'g.npz'}", "output.plots=false", "rgcn.loops=true", "rgcn.layers=0"]
    learned = ["rgcn.epochs=3", "rgcn.dimension=6", "rgcn.ask_relations=0.5"]
    code, printed = lockstep(tmp_path / "one", *keys, *learned, case="rgcn_links", ranks=2)
    assert code == 0, printed
    with np.load(tmp_path / "one" / "weights.npz") as file:
        assert file["links/D"].shape == (3, 7) and file["first/self"].shape == (30, 6)
    applied = [keys[0], f"rgcn.weights={tmp_path / 'one' / 'weights.npz'}", "rgcn.epochs=0"]
    code, printed = lockstep(tmp_path / "applied", *applied, case="rgcn_links")
    assert code == 0, printed
    one, again = (result_of(tmp_path / name) for name in ("one", "applied"))
    assert again["weights_digest"] == one["weights_digest"] and again["links"] == one["links"]
    code, printed = lockstep(tmp_path / "other", *applied, "seed=9", case="rgcn_links")
    assert code == 0, printed
    for wrong, said in (
        (["rgcn.blocks=2"], "is read by relational layers, and rgcn.layers is 0; leave it out"),
        (["rgcn.parts=2"], "rgcn.parts (command line): is read by relational layers, and rgcn.layers is 0"),
        (["rgcn.goal=classes"], 'at least 1 would be right without rgcn.goal = "links", got 0'),
    ):
        code, printed = lockstep(tmp_path / "wrong", *keys, *wrong, case="rgcn_links")
        assert code == 2 and said in " ".join(printed.split()), printed


def test_the_study_of_parts(tmp_path):
    small = ["graph.nodes=800", "graph.edges=2000", "rgcn.labelled=100", "rgcn.relations=8", "study.epochs=2"]
    code, printed = lockstep(
        tmp_path, *small, "study.parts=[1,2,3]", "--overwrite", case="study_rgcn", ranks=2
    )
    assert code == 0, printed
    result = result_of(tmp_path)
    assert result["same_bits"] and len(result["rows"]) == 2 * (3 + 1)
    assert all(row["work_s"] > 0 for row in result["rows"])
    assert {(row["mode"], row["parts"], row["ranks"]) for row in result["rows"]} == {
        ("multiplexed", 1, 1), ("multiplexed", 2, 1), ("multiplexed", 3, 1), ("parallel", 2, 2),
    }  # fmt: skip
    sizes = [row for row in result["sizes"] if (row["grouping"], row["parts"]) == ("relations", 3)]
    assert [row["part"] for row in sizes] == ["1", "2", "3", "self-loops"]
    assert sum(row["relations"] for row in sizes[:3]) == 16
    assert (tmp_path / "relations.csv").stat().st_size > 0 < (tmp_path / "relations.png").stat().st_size


@pytest.mark.parametrize("key", ["memory.fast_mb=1", "graph.features=x.npy"])
def test_the_study_of_parts_refuses_what_it_does_not_read(tmp_path, key):
    nodes = np.arange(6)
    np.savez(
        tmp_path / "g.npz", triples=np.array([[0, 0, 1], [2, 0, 3]]), num_nodes=6, num_relations=1,
        train_idx=nodes[:4], train_label=nodes[:4] % 2, test_idx=nodes[4:], test_label=nodes[4:] % 2,
    )  # fmt: skip
    np.save(tmp_path / "x.npy", np.eye(6, dtype=np.float32))
    keys = [f"graph.path={tmp_path}/g.npz", 'graph.generator=""', key.replace("x.npy", f"{tmp_path}/x.npy")]
    code, printed = lockstep(tmp_path / "out", *keys, case="study_rgcn")
    assert code == 2 and f"{key.partition('=')[0]}: is not read by study.kind rgcn" in printed, printed


def test_triples_with_an_end_that_is_asked_are_answered(tmp_path):
    """The same lines on any number of ranks, from the weights alone, and from Python; known ends are none."""
    rows = [
        ("ada b", "likes", "ben"),
        ("ben", "likes", "cid"),
        ("cid", "knows", "ada b"),
        ("eva", "likes", "cid"),
    ]
    table, asked = tmp_path / "t.txt", tmp_path / "asked.txt"
    table.write_text("".join("\t".join(row) + "\n" for row in rows * 2))
    asked.write_text("ada b\tlikes\t?\n\n?\tlikes\tcid\nben\tknows\t?\n")
    keys = [f"graph.path={table}", "rgcn.epochs=5", "rgcn.dimension=4", "rgcn.held_out=0.3", "rgcn.bases=0"]
    keys += [
        "rgcn.validation=0",
        "output.plots=false",
        "seed=2",
        f"rgcn.queries={asked}",
        "rgcn.propose_each=2",
    ]
    texts = []
    for ranks in (1, 3):
        code, printed = lockstep(tmp_path / f"{ranks}", *keys, case="rgcn_links", ranks=ranks)
        assert code == 0 and "3 queries answered" in " ".join(printed.split()), printed
        texts.append((tmp_path / f"{ranks}" / "proposed" / "t.txt").read_text())
    applied = [f"rgcn.weights={tmp_path / '1' / 'weights.npz'}", "rgcn.epochs=0"]
    code, printed = lockstep(tmp_path / "applied", *keys, *applied, case="rgcn_links")
    assert code == 0, printed
    texts.append((tmp_path / "applied" / "proposed" / "t.txt").read_text())
    assert len(set(texts)) == 1
    lines = [line.split("\t") for line in texts[0].splitlines()]
    settings = {"rgcn.epochs": 0, "rgcn.weights": str(tmp_path / "1" / "weights.npz"), "rgcn.held_out": 0.3}
    settings |= {"rgcn.validation": 0, "seed": 2, "run.device": "cpu"}
    found = predict_links(str(table), settings=settings)
    wanted = [("ada b", "likes", *each) for each in found.objects("ada b", "likes", 2)]
    wanted += [(each[0], "likes", "cid", each[1]) for each in found.subjects("cid", "likes", 2)]
    wanted += [("ben", "knows", *each) for each in found.objects("ben", "knows", 2)]
    assert lines == [[s, r, o, f"{score:.6g}"] for s, r, o, score in wanted]
    assert not {tuple(line[:3]) for line in lines} & set(rows)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a\tr\tb\n", "asked.txt:1: found 'a\\tr\\tb'; three columns between tabs, \"?\" as the subject or"),
        ("?\tr\t?\n", "asked.txt:1: found"),
        ("a\tr\t?\n?\tq\ta\n", "asked.txt:2: found relation 'q'; a relation of the graph would be right"),
        ("x\tr\t?\n", "asked.txt:1: found node 'x'; a node of the graph would be right"),
        ("\n", "asked.txt: asks nothing"),
    ],
)
def test_what_is_wrong_with_asked_triples(tmp_path, text, said):
    (tmp_path / "asked.txt").write_text(text)
    triples = Triples("g", 2, 1, *np.zeros((3, 1), dtype=np.int32), ["r"], ["a", "<b>"])
    with pytest.raises(GraphError) as error:
        read_asked(str(tmp_path / "asked.txt"), triples)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (["rgcn.keep=best"], "rgcn.keep: goes by labelled validation nodes"),
        (["rgcn.goal=links", "rgcn.validation=0", "rgcn.patience=2"], "rgcn.patience: goes by validation"),
        (["rgcn.goal=links", "rgcn.queries=ASKED"], "asked.txt:1: found node 'x'"),
    ],
)
def test_dry_runs_refuse_what_the_data_rule_out(tmp_path, keys, said):
    (tmp_path / "asked.txt").write_text("x\t0\t?\n")
    keys = [key.replace("ASKED", str(tmp_path / "asked.txt")) for key in keys]
    code, printed = lockstep(tmp_path / "out", *SMALL, *keys, "--dry-run")
    assert code == 2 and said in printed, printed


def test_no_more_ends_are_asked_than_there_are(group):
    draws = np.random.default_rng(1)
    E, D = draws.random((5, 4), dtype=np.float32), draws.random((2, 4), dtype=np.float32)
    nodes, scores = best_of_all(group, E, D, "complex", np.array([[0, 1, 2]]), [Query(0, 0, 1)], 10**9)
    assert sorted(nodes[0].tolist()) == [NOBODY, 0, 1, 3, 4] and scores.shape == (1, 5)


def test_labels_of_validation_alone_are_read_for_weights(tmp_path):
    (tmp_path / "t.txt").write_text("a\tr\tb\nb\tr\tc\n")
    (tmp_path / "val.tsv").write_text("node\tlabel\nb\tx\n")
    settings = {"graph.path": str(tmp_path / "t.txt"), "rgcn.val_labels": str(tmp_path / "val.tsv")}
    applied = {"run.task": "classify", "gnn.model": "rgcn", "rgcn.epochs": 0, "rgcn.weights": __file__}
    labels = read_case_triples(build({**settings, **applied}))[1]
    assert labels.val_idx.tolist() == [1] and labels.class_names == ["x"]


def test_asked_triples_may_be_numbers_and_iris(tmp_path):
    (tmp_path / "asked.txt").write_text("?\t0\t1\n1\t0\t?\n")
    unnamed = Triples("g", 2, 1, *np.zeros((3, 1), dtype=np.int32))
    assert read_asked(str(tmp_path / "asked.txt"), unnamed).tolist() == [[-1, 0, 1], [1, 0, -1]]
    (tmp_path / "asked.txt").write_text("?\tr\tb\n<b>\tr\t?\n")
    named = Triples("g", 2, 1, *np.zeros((3, 1), dtype=np.int32), ["r"], ["a", "<b>"])
    assert read_asked(str(tmp_path / "asked.txt"), named).tolist() == [[-1, 0, 1], [1, 0, -1]]
    for number in ("2", "9" * 5000):
        (tmp_path / "asked.txt").write_text(f"?\t0\t{number}\n")
        with pytest.raises(GraphError, match=f"found node '{number[:20]}"):
            read_asked(str(tmp_path / "asked.txt"), unnamed)
