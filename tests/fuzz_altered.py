"""Certificates and solutions, altered: nothing that is untrue may be proved or taken.

    python tests/fuzz_altered.py [--seconds S] [--first I] [--only PROBLEM] [--each N]

Number i makes an instance of a problem (tests/fuzz_optima.py), too small to hide its optimum or a few times
as large, solves it with a certificate and alters what it has got N times: the certificate by the ways of
CERTIFICATES, the solution by those of SOLUTIONS. It counts as a fault when `app.check`

1. proves a bound beyond the optimum, or where that is not known beyond the answer's objective;
2. takes a solution that an independent reading finds infeasible, or worth something else; or a solve that
   begins with it has an answer that is;
3. raises anything but a LockstepError of one line, lets NumPy warn, or needs more than LIMIT_S or MEMORY.

Every fourth number does the same to result.json, by --check of the folder and the ways of RESULTS.
Prints one JSON line for each fault; the exit code is 1 where there was one.
"""

import argparse
import copy
import io
import json
import math
import os
import random
import resource
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parent.parent)]

from fuzz_optima import MAKERS, TOLERANCE, instance

LIMIT_S = 20  # 0: none
MEMORY = 6 << 30  # bytes of addresses
WILD = (0, 1, -1, 2, 3, 7, 1 << 20, 1 << 31, -(1 << 31), (1 << 62) + 1, -(1 << 62), (1 << 63) - 1, -(1 << 63))
TREE = "proof"
Held = list[tuple[dict[str, Any], np.ndarray]]  # nodes of a tree that stand for arrays, and the arrays


# ---- certificates -----------------------------------------------------------------------------------------


def opened(content: bytes) -> tuple[Any, Held]:
    """The tree of a certificate, and its arrays beside the nodes that stand for them."""
    with np.load(io.BytesIO(content)) as file:
        arrays = {name: file[name] for name in file.files}
    tree = json.loads(arrays.pop(TREE).tobytes())
    held: Held = []
    for node, _ in items(tree):
        if isinstance(node, dict) and "array" in node:
            name, first, shape = node["array"]
            size = math.prod(shape)
            held.append((node, arrays[name][first : first + size].reshape(shape).copy()))
    return tree, list({id(node): (node, array) for node, array in held}.values())


def closed(tree: Any, held: Held) -> bytes:
    """The file of a tree and its arrays."""
    pools: dict[str, list[np.ndarray]] = {}
    for node, array in held:
        parts = pools.setdefault(array.dtype.name, [])
        node["array"] = [array.dtype.name, sum(each.size for each in parts), list(array.shape)]
        parts.append(array.reshape(-1))
    text = np.frombuffer(json.dumps(tree).encode(), dtype=np.uint8)
    out = io.BytesIO()
    np.savez(out, **{name: np.concatenate(parts) for name, parts in pools.items()}, **{TREE: text})
    return out.getvalue()


def items(node: Any) -> Iterator[tuple[Any, Any]]:
    """(container, key) of everything in a tree, but for what places arrays."""
    pairs = node.items() if isinstance(node, dict) else enumerate(node)
    for key, value in list(pairs):
        yield node, key
        if isinstance(value, (dict, list)) and key != "array":
            yield from items(value)


def _array_of(draw: random.Random, held: Held) -> int | None:
    """The place of an array that is not empty."""
    filled = [at for at, (_, array) in enumerate(held) if array.size]
    return draw.choice(filled) if filled else None


def _number(draw: random.Random, tree: Any, held: Held, wild: bool) -> None:
    """Another number in an array or, now and then, in the tree."""
    at = _array_of(draw, held)
    if at is None or draw.random() < 0.2:
        places = [(node, key) for node, key in items(tree) if type(node[key]) in (int, float, bool)]
        if places:
            node, key = draw.choice(places)
            node[key] = draw.choice(WILD) if wild else node[key] + draw.choice((-1, 1))
        return
    array = held[at][1]
    flat, where = array.reshape(-1), draw.randrange(array.size)
    value = draw.choice(WILD) if wild else flat[where].item() + draw.choice((-2, -1, 1, 2))
    if array.dtype.kind == "f":
        value = draw.choice((math.nan, math.inf, -math.inf, 1e30, -1e30)) if wild else value
    elif array.dtype.kind in "iu":
        info = np.iinfo(array.dtype)
        value = min(max(value, int(info.min)), int(info.max))
    flat[where] = value


def near(draw: random.Random, tree: Any, held: Held) -> None:
    """A number one or two off."""
    _number(draw, tree, held, False)


def several(draw: random.Random, tree: Any, held: Held) -> None:
    """Several numbers one or two off."""
    for _ in range(draw.randint(2, 6)):
        _number(draw, tree, held, False)


def wild(draw: random.Random, tree: Any, held: Held) -> None:
    """A number that is none of this graph's."""
    _number(draw, tree, held, True)


def scaled(draw: random.Random, tree: Any, held: Held) -> None:
    """All numbers of an array as many times as large, or with the other sign, or one more each."""
    at = _array_of(draw, held)
    if at is not None:
        node, array = held[at]
        way = draw.choice((lambda a: a * 2, lambda a: -a, lambda a: a + 1, lambda a: a - 1, lambda a: a * 0))
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            held[at] = node, (~array if array.dtype == bool else way(array).astype(array.dtype))


def fewer(draw: random.Random, tree: Any, held: Held) -> None:
    """An item, a row or the end of an array left out."""
    at = _array_of(draw, held)
    if at is not None:
        node, array = held[at]
        where = draw.randrange(len(array))
        rows = slice(where, len(array)) if draw.random() < 0.3 else where
        held[at] = node, np.delete(array, rows, axis=0)


def twice(draw: random.Random, tree: Any, held: Held) -> None:
    """An item or a row of an array twice, or two in each other's place."""
    at = _array_of(draw, held)
    if at is None:
        return
    node, array = held[at]
    a, b = draw.randrange(len(array)), draw.randrange(len(array))
    if draw.random() < 0.5:
        held[at] = node, np.insert(array, b, array[a], axis=0)
    else:
        array[[a, b]] = array[[b, a]]


def exchanged(draw: random.Random, tree: Any, held: Held) -> None:
    """Two arrays in each other's place."""
    if len(held) > 1:
        a, b = draw.sample(range(len(held)), 2)
        (one, first), (other, second) = held[a], held[b]
        held[a], held[b] = (one, second), (other, first)


def pruned(draw: random.Random, tree: Any, held: Held) -> None:
    """A part of the tree left out, doubled, or something else in its place."""
    places = [(node, key) for node, key in items(tree) if key not in ("format", "array")]
    node, key = draw.choice(places)
    if isinstance(node, list) and draw.random() < 0.6:
        if draw.random() < 0.5:
            node.insert(key, copy.deepcopy(node[key]))
        else:
            del node[key]
        return
    other, at = draw.choice(places)
    strange = (None, [], {}, "", math.nan, 1e308, -1, 10**400, True, "no", [[]], {"kind": "cut"})
    node[key] = copy.deepcopy(draw.choice((*strange, other[at])))


CERTIFICATES = (near, near, near, several, wild, scaled, fewer, twice, exchanged, pruned)


def bytes_altered(draw: random.Random, content: bytes) -> bytes:
    """A bit, a cut or nothing of a file."""
    at = draw.randrange(len(content))
    flipped = content[:at] + bytes([content[at] ^ (1 << draw.randrange(8))]) + content[at + 1 :]
    return draw.choice((flipped, flipped, content[:at], content[:at] + content[at + 1 :], b"PK", content * 2))


def altered(draw: random.Random, content: bytes) -> tuple[str, bytes]:
    """How a certificate was altered, and what became of it."""
    if draw.random() < 0.1:
        return "bytes", bytes_altered(draw, content)
    tree, held = opened(content)
    way = draw.choice(CERTIFICATES)
    way(draw, tree, held)
    live = [(node, array) for node, array in held if any(node is each for each in _nodes(tree))]
    return way.__name__, closed(tree, live)


def _nodes(tree: Any) -> Iterator[Any]:
    """All containers of a tree."""
    yield tree
    for node, key in items(tree):
        if isinstance(node[key], dict):
            yield node[key]


# ---- solutions --------------------------------------------------------------------------------------------


def solution_altered(draw: random.Random, text: str) -> str:
    """The text of a solution file with another line, id or number in it."""
    lines = text.splitlines()
    if not lines:
        return draw.choice(("0\n", "nan\n", "1e308\n", "-1\n", "\0\n"))
    at, other = draw.randrange(len(lines)), draw.randrange(len(lines))
    tokens = lines[at].split()
    which = draw.randrange(len(tokens)) if tokens else 0
    strange = ("nan", "1e308", "-1", "1000000", "0x1", "1.5", "", "9" * 25, "inf", "²", "0", "1", "2", "+1")
    way = draw.randrange(8)
    if way == 0:
        del lines[at]
    elif way == 1:
        lines.insert(at, lines[other])
    elif way == 2:
        lines[at], lines[other] = lines[other], lines[at]
    elif way == 3 and tokens:
        tokens[which] = draw.choice(draw.choice(lines).split() or ["0"])
        lines[at] = " ".join(tokens)
    elif way == 4 and tokens:
        tokens[which] = draw.choice(strange)
        lines[at] = " ".join(tokens)
    elif way == 5:
        lines[at] += " " + draw.choice(strange)
    elif way == 6:
        return text[: draw.randrange(len(text))]
    else:
        lines = lines[:at]
    return "".join(f"{line}\n" for line in lines)


# ---- results ----------------------------------------------------------------------------------------------

NUMBERS = (math.nan, math.inf, 1e308, -1e308, None, "1", [], True, 10**400)  # in the place of another


def result_altered(draw: random.Random, entry: dict[str, Any]) -> tuple[str, bool]:
    """Make an entry of result.json say something else; returns what it says now, and whether it is a lie."""
    least = entry["sense"] == "minimise"
    key = draw.choice(("objective", "bound", "gap", "optimal", "bound_verified", "sense", "feasible"))
    old = entry.get(key)
    if key in ("optimal", "bound_verified", "feasible"):
        entry[key] = draw.choice((not old, None, "yes"))
    elif key == "sense":
        entry[key] = "maximise" if least else "minimise"
    elif key == "gap":
        entry[key] = draw.choice((0.0 if old else 0.5, -1.0, *NUMBERS))
    elif draw.random() < 0.5 or type(old) not in (int, float):
        entry[key] = draw.choice(NUMBERS)
    else:
        by = draw.choice((1, 1e-3 * max(1, abs(old)), 1e-5 * max(1, abs(old))))
        better = -by if (key == "objective") == least else by
        entry[key] = old + better
    less = key in ("optimal", "bound_verified") and entry[key] is False
    less |= key == "gap" and entry[key] is None and not entry["optimal"]
    return f"{key} {str(entry[key])[:30]} in place of {old!r}", not less and repr(entry[key]) != repr(old)


# ---- judging ----------------------------------------------------------------------------------------------


class Slow(Exception):
    """A check that takes too long."""


def _too_long(*_: object) -> None:
    raise Slow


def quietly(call: Callable[[], Any]) -> tuple[Any, str | None]:
    """What a call returns (None: it was refused), and what is wrong with how it ended."""
    from app.errors import LockstepError

    if LIMIT_S:
        signal.signal(signal.SIGALRM, _too_long)
        signal.alarm(LIMIT_S)
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                found = call()
            except LockstepError as error:
                lines = str(error).count("\n")
                found = None
                if lines:
                    return None, f"a refusal of {lines + 1} lines: {str(error)[:300]}"
        told = [str(each.message) for each in warned if each.category is RuntimeWarning]
        return found, f"a warning: {told[0]}" if told else None
    except Slow:
        return None, f"not done after {LIMIT_S} s"
    except Exception as error:
        return None, f"{type(error).__name__}: {str(error)[:300]}"
    finally:
        if LIMIT_S:
            signal.alarm(0)


def beyond(bound: float, best: float, least: bool) -> bool:
    """Whether a bound says more than is true."""
    slack = TOLERANCE * max(1.0, abs(best))
    return bound > best + slack if least else bound < best - slack


class Subject:
    """An instance that has been solved, with a certificate."""

    def __init__(self, number: int, name: str) -> None:
        from app import solve

        self.draw, self.name, self.became = random.Random(number), name, ""
        draw = self.draw
        scale = draw.choice((1, 1, 2, 3))
        self.small = instance(draw, name, scale)
        for file, data in self.small.files.items():
            Path(file).write_bytes(data)
        given = dict(each.split("=", 1) for each in self.small.settings)
        self.path = given.pop("graph.path")
        self.settings = {key: _value(text) for key, text in given.items()} | {"seed": number % 3}
        budget = {"search.steps": draw.choice((7, 300)), "search.bound_seconds": draw.choice((0.0, 0.2, 0.6))}
        budget |= {"search.reductions": draw.random() < 0.5, "search.baselines": False}
        self.answer = solve(self.path, name, settings=self.settings | budget | {"output.certificates": True})
        self.best = self.small.best() if scale == 1 else self.answer.objective

    def of_certificate(self, content: bytes) -> str | None:
        """What is wrong with what a certificate proves."""
        from app import check

        settings = self.settings
        found, fault = quietly(
            lambda: check(self.path, self.answer, self.name, certificate=content, settings=settings)
        )
        self.became = "refused"
        if found is not None:
            self.became = "prove as much" if found.bound == self.answer.bound else "prove something else"
        if fault is None and found is not None and beyond(found.bound, self.best, self.small.least):
            fault = f"a bound of {found.bound} where {self.best} is known"
        return fault

    def of_solution(self, text: str) -> str | None:
        """What is wrong with what a solution is said to be worth."""
        from app import check

        Path("s.txt").write_text(text)
        settings = self.settings | {"search.bounds": False}
        found, fault = quietly(lambda: check(self.path, "s.txt", self.name, settings=settings))
        if fault is not None or found is None:
            return fault
        try:
            worth = self.small.value(text)
        except (ValueError, KeyError, IndexError) as error:
            return f"taken, though nothing can be made of it ({error!r})"
        if worth is None:
            return f"taken as worth {found.objective}, though infeasible"
        same = abs(worth - found.objective) <= TOLERANCE * max(1.0, abs(worth))
        return None if same else f"taken as worth {found.objective} in place of {worth}"

    def of_start(self, text: str) -> str | None:
        """What is wrong with the answer of a solve that begins with a solution."""
        from app import solve

        Path("start.txt").write_text(text)
        asked = {"search.start": "start.txt", "search.steps": 5, "search.bound_seconds": 0.0}
        asked |= {"search.baselines": False}
        found, fault = quietly(lambda: solve(self.path, self.name, settings=self.settings | asked))
        if fault is not None or found is None:
            return fault
        worth = self.small.value(found.text)
        if worth is None or abs(worth - found.objective) > TOLERANCE * max(1.0, abs(worth)):
            return f"an answer of {found.objective} that is worth {worth}"
        wrong = found.bound is not None and beyond(found.bound, self.best, self.small.least)
        return f"a bound of {found.bound} where {self.best} is known" if wrong else None

    def command(self) -> list[str]:
        """The command that solves it into the folder `out`."""
        given = [f"{key}={json.dumps(value)}" for key, value in self.settings.items()]
        return [
            "run.task=solve", f"problem.name={self.name}", f"graph.path={self.path}", *given,
            "search.steps=50", "search.bound_seconds=0.2", "output.certificates=true", "output.plots=false",
        ]  # fmt: skip


def _value(text: str) -> Any:
    """A setting as Python has it."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def faults(number: int, name: str, each: int, counts: Counter[str]) -> Iterator[dict[str, Any]]:
    """What is wrong with an instance that is altered so often."""
    subject = Subject(number, name)
    draw, certificate = subject.draw, subject.answer.certificate
    other = Subject(number + 1_000_003, name).answer.certificate
    subject = Subject(number, name)  # its files again
    for content, what in ((certificate, "as it is"), (other, "another's"), (b"", "empty")):
        if content and (fault := subject.of_certificate(content)):
            yield {"of": "certificate", "way": what, "fault": fault}
    for _ in range(each if certificate else 0):
        way, content = altered(draw, certificate)
        counts[f"certificates, {way}"] += 1
        if fault := subject.of_certificate(content):
            yield {"of": "certificate", "way": way, "fault": fault, "content": content}
        counts[f"and {subject.became}"] += 1
    if number % 4 == 0:
        yield from faults_of_results(subject, each // 4, counts)
    for _ in range(max(each // 4, 1)):
        text = solution_altered(draw, subject.answer.text)
        counts["solutions"] += 1
        if fault := subject.of_solution(text):
            yield {"of": "solution", "fault": fault, "text": text, "was": subject.answer.text}
        if draw.random() < 0.3:
            counts["starts"] += 1
            if fault := subject.of_start(text):
                yield {"of": "start", "fault": fault, "text": text, "was": subject.answer.text}


def told(arguments: list[str]) -> tuple[int, str]:
    """The exit code of a command, in this process, and what it prints."""
    from run import main as run

    with redirect_stdout(io.StringIO()) as out, redirect_stderr(out):
        code = run(arguments)
    return code, out.getvalue()


def faults_of_results(subject: Subject, each: int, counts: Counter[str]) -> Iterator[dict[str, Any]]:
    """What is wrong with --check of a folder whose result.json is altered so often."""
    command = ["c.toml", *subject.command()]
    Path("c.toml").write_text("seed = 0\n")
    (code, said), fault = quietly(lambda: told([*command, "--out", "out", "--overwrite"]))
    if fault or code != 0:
        yield {"of": "run", "fault": fault or said[-500:]}
        return
    path = Path("out/result.json")
    whole = path.read_text()
    for way in ["nothing", *["a field"] * each]:
        result = json.loads(whole)
        said, lie = (way, False) if way == "nothing" else result_altered(subject.draw, result["instances"][0])
        path.write_text(json.dumps(result))
        counts["results"] += 1
        ended, fault = quietly(lambda: told(["out/case.toml", "--check", "out"]))
        code, printed = ended or (None, "")
        untold = not lie and result["instances"][0]["bound_verified"] and "rests on" in printed
        if fault or code != (2 if lie else 0) or "Traceback" in printed or untold:
            yield {"of": "results", "way": said, "fault": fault or f"code {code}: {printed[-400:]}"}


def main() -> int:
    """Alter for so long."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", default="", help="a problem")
    parser.add_argument("--each", type=int, default=40, help="alterations of one certificate")
    parser.add_argument("--keep", default="", help="a folder for the certificates that are faults")
    asked = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    begun, counts, found, number = time.monotonic(), Counter(), 0, asked.first
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        while time.monotonic() - begun < asked.seconds:
            name = asked.only or list(MAKERS)[number % len(MAKERS)]
            counts["instances"] += 1
            for fault in faults(number, name, asked.each, counts):
                found += 1
                if content := fault.pop("content", None):
                    fault["file"] = f"{asked.keep}/{number}-{found}.npz"
                    if asked.keep:
                        Path(fault["file"]).write_bytes(content)
                print(json.dumps({"number": number, "problem": name, **fault}), flush=True)
            number += 1
        os.chdir("/")
    print(" ".join(f"{what}: {count};" for what, count in sorted(counts.items())))
    print(f"{found} faults, {time.monotonic() - begun:.0f} s")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
