"""The HTML report: of real runs in a real browser, of hostile folders, and its parts one by one."""

import html.parser
import json
import re
import subprocess
import sys
from contextlib import chdir

import pytest
from browser import open_page
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jobs import ROOT

from app.commands.report import report
from app.errors import CaseError
from app.page.axis import linear_ticks, log_ticks, make_axis
from app.page.charts import Line, line_chart, stacked_bars, thinned
from app.page.markup import Markup, escape, table, tag
from app.page.runs import read_runs
from app.page.values import number, percent, seconds, shown, size
from run import main

pytestmark = pytest.mark.mpi_skip

SMALL = {
    "train": ["mvc", "run.task=train",
              "train.steps=80", "train.evaluate_every=20", "train.evaluate_graphs=3",
              "train.graphs.generator=ba", "train.graphs.nodes=[20, 30]", "train.graphs.count=6"],
    "solve": ["mvc", "graph.generator=ba", "graph.nodes=60", "graph.count=4", "search.steps=20000"],
    "cut": ["maxcut", "graph.generator=er", "graph.nodes=60", "graph.count=1", "search.steps=20000"],
    "classify": ["gcn", "graph.nodes=200", "gnn.epochs=12"],
}  # fmt: skip


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder of small real runs, one of each task."""
    folder = tmp_path_factory.mktemp("runs")
    for name, (case, *keys) in SMALL.items():
        where = [f"--out={folder / name}", "--device=cpu", "output.plots=false"]
        assert main([str(ROOT / "inputs" / f"{case}.toml"), *keys, *where]) == 0
    return folder


def page_of(folders, out):
    report([*map(str, folders), "-o", str(out)])
    return out.read_text("ascii")


class Outline(html.parser.HTMLParser):
    """What a page holds: elements with their attributes, and its text; unbalanced elements fail."""

    def __init__(self, text):
        super().__init__()
        self.found, self.open, self.text = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, name, attributes):
        self.found.append((name, dict(attributes)))
        if name not in ("meta", "link", "br", "hr", "img"):
            self.open.append(name)

    def handle_startendtag(self, name, attributes):
        self.found.append((name, dict(attributes)))

    def handle_endtag(self, name):
        assert self.open.pop() == name

    def handle_data(self, data):
        self.text.append(data)

    def count(self, name):
        return sum(each == name for each, _ in self.found)


# ---- real runs --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SMALL)
def test_a_run_becomes_a_page(runs, tmp_path, name):
    outline = Outline(page_of([runs / name], tmp_path / "page.html"))
    assert outline.count("table") >= 3 and outline.count("svg") >= (1 if name == "cut" else 2)
    text = " ".join(outline.text)
    result = json.loads((runs / name / "result.json").read_text())
    assert "complete" in text and result["digest"][:16] in text
    assert {"train": "beside plain heuristics", "classify": "test accuracy %"}.get(
        name, "certificate"
    ) in text


def test_runs_side_by_side_show_what_differs(runs, tmp_path):
    text = " ".join(Outline(page_of([runs / name for name in SMALL], tmp_path / "page.html")).text)
    assert "4 runs side by side" in text and "Settings that differ" in text and "problem.name" in text


def test_settings_are_made_once_for_each_run(runs):
    """Pages of many runs ask for them once a key and run."""
    run = read_runs([str(runs / next(iter(SMALL)))])[0]
    assert run.settings is run.settings
    assert run.settings["run.task"] == run.case["run"]["task"]


def test_runs_on_more_ranks_show_their_scaling(runs, tmp_path):
    """Two copies of a run, one of which says that it had two ranks and took half the time."""
    for name, ranks in (("one", 1), ("two", 2)):
        (tmp_path / name).mkdir()
        for file in ("case.toml", "environment.json", "metrics.csv"):
            (tmp_path / name / file).write_text((runs / "solve" / file).read_text())
        result = json.loads((runs / "solve" / "result.json").read_text())
        result.update(ranks=ranks, seconds=8.0 / ranks)
        (tmp_path / name / "result.json").write_text(json.dumps(result))
    text = " ".join(Outline(page_of([tmp_path / "one", tmp_path / "two"], tmp_path / "page.html")).text)
    assert "Scaling" in text and " 2.00 100.0 " in text and "the same bits" in text


def test_an_unfinished_run_is_shown_as_one(runs, tmp_path):
    folder = tmp_path / "half"
    folder.mkdir()
    for file in ("case.toml", "environment.json", "log.txt"):
        (folder / file).write_text((runs / "train" / file).read_text())
    metrics = (runs / "train" / "metrics.csv").read_text()
    (folder / "metrics.csv").write_text(metrics[: len(metrics) - 9])  # cut within its last row
    outline = Outline(page_of([folder], tmp_path / "page.html"))
    text = " ".join(outline.text)
    assert "not complete" in text and "the last lines of its log" in text and outline.count("svg") == 1


def test_nothing_remote_is_named(runs, tmp_path):
    page = page_of([runs / name for name in SMALL], tmp_path / "page.html")
    outline = Outline(page)
    kept = {"href", "src", "action", "data", "xlink:href", "srcset", "poster"}
    links = [value for _, attributes in outline.found for key, value in attributes.items() if key in kept]
    assert all(link.startswith("data:") for link in links)
    assert outline.count("script") == 0
    assert not any(key.startswith("on") for _, attributes in outline.found for key in attributes)
    assert "url(" not in page and "@import" not in page and "://" not in page
    policies = [a["content"] for _, a in outline.found if a.get("http-equiv") == "Content-Security-Policy"]
    assert len(policies) == 1 and policies[0].startswith("default-src 'none'")


def test_the_page_goes_into_the_folder_and_replaces_only_a_page(runs):
    with chdir(runs):
        assert "1 run, " in report(["solve"])
        assert report(["solve/"]).startswith("solve/report.html")
        with pytest.raises(CaseError, match="is a file, and no page"):
            report(["solve", "-o", "solve/case.toml"])


# ---- in a browser -----------------------------------------------------------------------------------------


def test_a_browser_shows_the_page_and_asks_for_nothing(runs, tmp_path):
    path = tmp_path / "page.html"
    page_of([runs / name for name in SMALL], path)
    document, console, asked = open_page(path, tmp_path)
    outline = Outline(document)
    assert outline.count("table") >= 8 and outline.count("svg") >= 5
    assert outline.count("path") >= 6 and outline.count("rect") >= 4
    assert (console, asked) == ([], [])


def test_the_browser_would_tell(tmp_path):
    """What the test above looks for is found where it is: an error, and a request to somewhere else."""
    path = tmp_path / "page.html"
    path.write_text(
        "<html><body><img src='http://elsewhere.example/x.png'><script>no.such()</script></body></html>"
    )
    _, console, asked = open_page(path, tmp_path)
    assert any("is not defined" in line for line in console)
    assert any("elsewhere.example" in line for line in asked)


def test_the_browser_runs_nothing_that_a_file_slips_in(runs, tmp_path):
    """Escaped, and besides forbidden by the page's own policy."""
    folder = hostile(runs, tmp_path)
    path = tmp_path / "page.html"
    page_of([folder], path)
    document, console, asked = open_page(path, tmp_path)
    assert re.search("<title>(.*?)</title>", document).group(1).startswith("Lockstep: ")
    assert (console, asked) == ([], [])


# ---- folders that lie -------------------------------------------------------------------------------------

EVIL = (
    '"><script>document.title="PWNED"</script><img src=http://elsewhere.example/x onerror=alert(1)>\x1b[31m'
)


def hostile(runs, tmp_path):
    """A run whose every text is an attack."""
    folder = tmp_path / "<script>document.title='PWNED'<"
    folder.mkdir()
    result = json.loads((runs / "solve" / "result.json").read_text())
    result["instances"] = [poisoned(entry) for entry in result["instances"]]
    result["phases"] = poisoned(result["phases"])
    result["phases"]["advice"], result["phases"]["remarks"] = EVIL, [EVIL, 5]
    (folder / "result.json").write_text(json.dumps(result))
    environment = json.loads((runs / "solve" / "environment.json").read_text())
    (folder / "environment.json").write_text(json.dumps(poisoned(environment)))
    (folder / "case.toml").write_text(f"seed = 1\n[run]\ntask = 'solve'\nname = {json.dumps(EVIL)}\n")
    head = "phase,name,step,best,bound,time_s\n"
    quoted = EVIL.replace('"', '""')
    rows = "".join(f'search,"{quoted}",{i},{90 - i},50,{i}\n' for i in range(5))
    (folder / "metrics.csv").write_text(head + rows)
    return folder


def poisoned(value):
    if isinstance(value, dict):
        return {f"{EVIL}{key}" if key not in KEPT else key: poisoned(each) for key, each in value.items()}
    if isinstance(value, list):
        return [poisoned(each) for each in value]
    return EVIL if isinstance(value, str) else value


KEPT = {"name", "objective", "bound", "baselines", "bound_method", "source", "seconds", "bytes", "min_s",
        "mean_s", "max_s", "hosts", "device", "versions", "gap"}  # fmt: skip


def test_what_files_say_is_text_and_nothing_else(runs, tmp_path):
    page = page_of([hostile(runs, tmp_path)], tmp_path / "page.html")
    outline = Outline(page)
    assert outline.count("script") == 0 and outline.count("img") == 0 and "\x1b" not in page
    assert "".join(outline.text).count("document.title") >= 10
    assert not any("elsewhere" in (value or "") for _, a in outline.found for value in a.values())


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("result.json", "{", "Expecting property name"),
        ("result.json", "[1]", "holds no table"),
        ("result.json", "[" * 100000, "would be right"),
        ("result.json", '{"status": "\\ud800"}', None),
        ("case.toml", "seed = ", "Invalid value"),
        ("environment.json", b"\xff\xfe", "utf-8"),
        ("metrics.csv", b"\xff,\0,step\n1,2\n\x80", None),
    ],
)
def test_damaged_files_are_named(name, content, said, tmp_path):
    (tmp_path / "case.toml").write_text("seed = 1\n")
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    out = tmp_path / "page.html"
    if said is None:
        Outline(page_of([tmp_path], out))
        return
    with pytest.raises(CaseError, match=said) as caught:
        report([str(tmp_path), "-o", str(out)])
    assert name in str(caught.value) and "\n" not in str(caught.value) and not out.exists()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
KEYS = ("instances", "phases", "held_back", "ranks", "seconds", "digest", "task", "rows", "status")
INNER = (
    "name",
    "objective",
    "bound",
    "gap",
    "baselines",
    "test_accuracy",
    "links",
    "bound_method",
    "seconds",
)
CELLS = ("", "train", "search", "a", "1", "nan", "1e999", "-3.5")
entries = st.dictionaries(st.sampled_from(INNER), json_values, max_size=6)


@settings(max_examples=10)
@given(
    result=st.fixed_dictionaries({}, optional=dict.fromkeys(KEYS, json_values)),
    instances=st.lists(entries, max_size=3),
    cells=st.lists(st.lists(st.sampled_from(CELLS), min_size=18, max_size=18), max_size=5),
)  # fmt: skip
def test_no_content_breaks_the_page(result, instances, cells, tmp_path):
    """Whatever a result of the right outer form holds: a page comes out, and it is whole."""
    if instances:
        result["instances"] = instances
    (tmp_path / "result.json").write_text(json.dumps(result))
    from app.log import COLUMNS

    rows = [",".join(COLUMNS), *(",".join(row) for row in cells)]
    (tmp_path / "metrics.csv").write_text("\n".join(rows) + "\n")
    Outline(page_of([tmp_path, tmp_path], tmp_path / "page.html"))


@pytest.mark.parametrize("arguments", [[], ["nowhere"], ["."], ["x", "--out"], ["x", "--fast"]])
def test_what_is_no_run_is_refused_in_one_line(arguments, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "app", "report", *arguments], cwd=tmp_path, env={"PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("lockstep: error: ")


# ---- parts ------------------------------------------------------------------------------------------------


@given(st.text())
def test_text_comes_back_as_it_was_but_for_its_script(text):
    parser = Outline(tag("p", text, title=text))
    plain = "".join(c if " " <= c <= "~" or c == "\n" else c.encode("unicode_escape").decode() for c in text)
    assert "".join(parser.text) == plain and parser.found == [("p", {"title": plain})]


def test_markup_is_not_escaped_twice():
    assert escape(Markup("<b>")) == "<b>" and escape("<b>") == "&lt;b&gt;" and escape(None) == ""
    assert 'class="n"' in table(["a", "b"], [["x", "1.5"], ["y", "-"]])


@given(st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=20), st.booleans())
@example([5e-324], True)
@example([1.0, 1.0 + 2.0**-52], False)
def test_axes_hold_their_values(values, zero):
    axis = make_axis(values, 0, 100, zero=zero)
    assert axis.low <= min(values) and axis.high >= max(values) and axis.low < axis.high
    assert all(0 <= axis.place(value) <= 100 for value in values)


@given(st.lists(st.floats(5e-324, 1e307), min_size=1, max_size=20))
def test_logarithmic_axes_hold_their_values(values):
    axis = make_axis(values, 0, 100, log=True)
    assert axis.low <= min(values) and axis.high >= max(values) and axis.low < axis.high
    assert all(0 <= axis.place(value) <= 100 for value in values)


def test_ticks_are_round_numbers():
    assert linear_ticks(0, 10) == (0, 2, 4, 6, 8, 10)
    assert linear_ticks(0.12, 0.47) == (0.2, 0.3, 0.4)
    assert log_ticks(1, 8) == (1, 2, 5) and log_ticks(12, 13) == (10, 20)
    assert log_ticks(1e-3, 1e3) == (1e-3, 1e-2, 1e-1, 1, 10, 100, 1000)


def test_charts_draw_what_they_are_given():
    drawn = line_chart("a", [Line("l", [1, 2, 3], [1, 10, 100])], "x", "y", log_y=True)
    places = [float(y) for y in re.findall(r'cy="([\d.]+)"', drawn)]
    assert places[0] - places[1] == pytest.approx(places[1] - places[2], abs=0.1)
    assert line_chart("a", [Line("l", [], [])], "x", "y") == ""
    assert line_chart("a", [Line("l", [0, 1], [0, 0])], "x", "y", log_y=True) == ""
    wide = line_chart("c", [Line("l", [0, 400_000], [0, 1])], "x", "y")  # its last label fits
    ends = {text: float(x) + 3.5 * len(text) for x, text in re.findall(r'x="([\d.]+)"[^>]*>([\d,k]+)<', wide)}
    assert "400k" in ends or "400,000" in ends
    assert max(ends.values()) <= 560
    widths = [
        float(w) for w in re.findall(r' width="([\d.]+)"', stacked_bars("b", [("r", {"p": 1, "q": 3})], "s"))
    ]
    assert widths[1] == pytest.approx(3 * widths[0], abs=0.1)


def test_thinning_keeps_ends_and_extremes():
    points = [(float(i), 0.0) for i in range(10000)]
    points[777] = (777.0, 9.0)
    points[5555] = (5555.0, -9.0)
    kept = thinned(points)
    assert len(kept) <= 602 and {points[0], points[-1], points[777], points[5555]} <= set(kept)


def test_values_as_people_read_them():
    assert [shown(x) for x in (1234567, 0.5, 1.23456, 1e-7, None, "a", True)] == [
        "1,234,567", "0.5", "1.235", "1.000e-07", "-", "a", "yes"]  # fmt: skip
    assert [seconds(x) for x in (5e-5, 0.25, 90, 1200, 7200.0, 90000)] == [
        "50 us", "250 ms", "90 s", "20 min", "120 min", "25 h"]  # fmt: skip
    assert [size(x) for x in (12, 1500, 2.5e9, None)] == ["12 B", "1.5 kB", "2.5 GB", None]
    assert percent(0.12345) == "12.35" or percent(0.12345) == "12.34"
    assert [number(x) for x in ("1e3", "nan", float("inf"), True, [], 10**400)] == [
        1000,
        None,
        None,
        None,
        None,
        None,
    ]
