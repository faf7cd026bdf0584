"""Damaged input for every reader: each must be read, or refused in one line with exit code 2; nothing else.

    python tests/fuzz.py [--inputs N] [--first I] [--only NAME,...] [--keep FOLDER]

Input i is made from the number i alone: a good file (small ones written here, and real ones where
LOCKSTEP_DATA is set) with an edit or a few. It counts as a fault when a reader raises anything but a
LockstepError of exit code 2, says more than a line, needs longer than LIMIT_S, or more memory than
MOST_BYTES. Prints one JSON line for each fault and a table at the end; the exit code is 1 where there was a
fault.
"""

import argparse
import bz2
import faulthandler
import gzip
import io
import json
import lzma
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from collections import Counter
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent)]

from fuzz_targets import TARGETS  # noqa: E402

from app.errors import LockstepError  # noqa: E402
from app.memory.room import resident_bytes  # noqa: E402

LIMIT_S = 10
MOST_BYTES = 400 << 20  # that reading a small damaged file may take
LONGEST_MESSAGE = 2000
NUMBERS = (
    b"0", b"1", b"-1", b"2147483647", b"2147483648", b"4294967296", b"9223372036854775807", b"1000000007",
    b"9223372036854775808", b"99999999999999999999", b"nan", b"inf", b"-inf", b"1e400", b"1e-400", b"0x1F",
    b"1.5", b"1_000", b"+7", b"007", b"\xd9\xa3", b"1,5", b"",
)  # fmt: skip
PIECES = (
    b"\0", b"\r", b"\n", b"\r\n", b"\xef\xbb\xbf", b"\xff\xfe", b"\xff", b"\x1b[2J", b" ", b"\t", b",", b"#",
    b"%", b'"', b"'", b"[", b"]", b"{", b"}", b"=", b"-", b".", b"<", b">", b"\\", b"\\u0000",
    b"c ", b"p ", b"e ", b"EOF", b"nan", b"\xc3\xa9", b"\xed\xa0\x80",
)  # fmt: skip
TOKEN = re.compile(rb"[0-9][0-9.eE+-]*")
PACKERS = {b"\x1f\x8b": gzip, b"BZh": bz2, b"\xfd7zX": lzma}


# ---- edits ------------------------------------------------------------------------------------------------


def edited(draw: random.Random, data: bytes) -> bytes:
    """The data after an edit or a few."""
    for _ in range(draw.choice((1, 1, 1, 1, 2, 4))):
        data = draw.choice(EDITS)(draw, data)
    return data


def _spot(draw: random.Random, data: bytes) -> int:
    """Where to edit: near the start in half of all cases, since headers lie there."""
    most = len(data) if draw.random() < 0.5 else min(len(data), 80)
    return draw.randint(0, most)


def _flip(draw: random.Random, data: bytes) -> bytes:
    at = _spot(draw, data)
    return (
        data[:at] + bytes([data[at] ^ (1 << draw.randrange(8))]) + data[at + 1 :] if at < len(data) else data
    )


def _put(draw: random.Random, data: bytes) -> bytes:
    at, size = _spot(draw, data), draw.choice((0, 0, 1, 3))
    return data[:at] + draw.choice(PIECES) + data[at + size :]


def _cut(draw: random.Random, data: bytes) -> bytes:
    return data[: _spot(draw, data)]


def _drop(draw: random.Random, data: bytes) -> bytes:
    at = _spot(draw, data)
    return data[:at] + data[at + draw.choice((1, 2, 8, 100)) :]


def _double(draw: random.Random, data: bytes) -> bytes:
    at = _spot(draw, data)
    part = data[at : at + draw.choice((1, 10, 1000))]
    return data[:at] + part * draw.choice((2, 2, 3, 50)) + data[at + len(part) :]


def _number(draw: random.Random, data: bytes) -> bytes:
    found = list(TOKEN.finditer(data[: 1 << 16]))
    if not found:
        return _put(draw, data)
    token = draw.choice(found[:8] if draw.random() < 0.5 else found)
    return data[: token.start()] + draw.choice(NUMBERS) + data[token.end() :]


def _lines(draw: random.Random, data: bytes) -> bytes:
    """A line left out, doubled, or in another's place."""
    lines = data.split(b"\n")
    a, b = (min(draw.randrange(len(lines)), draw.choice((5, 1 << 30))) for _ in range(2))
    if draw.random() < 0.5:
        lines[a], lines[b] = lines[b], lines[a]
    else:
        lines[a : a + 1] = draw.choice(([], [lines[a], lines[a]], [lines[a], b"", lines[b]]))
    return b"\n".join(lines)


def _noise(draw: random.Random, data: bytes) -> bytes:
    return draw.choice((b"", draw.randbytes(draw.choice((1, 8, 200))), data.upper(), data[::-1], data * 2))


def _packed(draw: random.Random, data: bytes) -> bytes:
    """What lies inside an archive or a packed file edited, and packed again as it should be."""
    if data.startswith(b"PK"):
        return _zipped(draw, data)
    packer = next((each for magic, each in PACKERS.items() if data.startswith(magic)), None)
    if packer is None:
        return _number(draw, data)
    try:
        inside = packer.decompress(data)
    except Exception:  # an earlier edit has damaged it
        return data
    return packer.compress(draw.choice(EDITS[:7])(draw, inside))


def _zipped(draw: random.Random, data: bytes) -> bytes:
    """One member of an archive edited, renamed, doubled, or left out."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [(name, archive.read(name)) for name in archive.namelist()]
    except Exception:
        return data
    if not members:
        return data
    at = draw.randrange(len(members))
    name, content = members[at]
    kind = draw.random()
    if kind < 0.7:
        members[at] = name, draw.choice(EDITS[:7])(draw, content)
    else:
        other = draw.choice(members)
        members[at : at + 1] = draw.choice(
            ([], [("../" + name, content)], [(name, content)] * 2, [(other[0], content)], [(name, other[1])])
        )
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return file.getvalue()


EDITS = (_flip, _put, _cut, _drop, _double, _number, _lines, *[_number, _packed] * 4, _put, _lines, _noise)


# ---- one input --------------------------------------------------------------------------------------------


class Slow(BaseException):
    """An input that took too long; no reader catches it."""


def ring(*_: object) -> None:
    raise Slow


def attempt(number: int, names: list[str], folder: Path) -> tuple[str, str, str | None]:
    """Make input `number` and read it: the target, "read" or "refused", and the fault or None."""
    draw = random.Random(number)
    name = names[number % len(names)]
    target = TARGETS[name]
    sample = draw.choice(target.samples())
    damaged = draw.choice(sorted(sample.files))
    for each, content in sample.files.items():
        path = folder / each
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(edited(draw, content) if each == damaged else content)
    before = resident_bytes("VmHWM")
    signal.setitimer(signal.ITIMER_REAL, LIMIT_S)
    try:
        target.read(str(folder / sample.main), draw)
        outcome, fault = "read", None
    except LockstepError as error:
        outcome, fault = "refused", _message_fault(name, error)
    except Slow:
        outcome, fault = "slow", f"longer than {LIMIT_S} s"
    except Exception as error:
        at = traceback.extract_tb(error.__traceback__)[-1]
        outcome, fault = "raised", f"{type(error).__name__}: {error} ({Path(at.filename).name}:{at.lineno})"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    grown = resident_bytes("VmHWM") - before
    if fault is None and grown > MOST_BYTES:
        fault = f"{grown >> 20} MiB more memory"
    return name, outcome, fault


def _message_fault(name: str, error: LockstepError) -> str | None:
    """What is wrong with a refusal; a case may list several mistakes, one on a line."""
    text = str(error)
    if error.exit_code != 2:
        return f"exit code {error.exit_code}: {text}"
    if ("\n" in text and name != "case") or len(text) > LONGEST_MESSAGE * (5 if name == "case" else 1):
        return f"not one line: {text[:500]}"
    return None if text.strip() else "an empty message"


def main() -> int:
    """Run the inputs that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--inputs", type=int, default=300)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", default=",".join(["graph", "graph", *TARGETS]), help=", ".join(TARGETS))
    parser.add_argument("--keep", default="", help="a folder for the inputs with a fault")
    asked = parser.parse_args()
    names = asked.only.split(",")
    warnings.simplefilter("error", RuntimeWarning)  # a user would see NumPy's words, not ours
    warnings.simplefilter("ignore", UserWarning)  # zipfile's, of archives with a name twice
    signal.signal(signal.SIGALRM, ring)
    resource.setrlimit(resource.RLIMIT_AS, (resident_bytes("VmSize") + 5 * MOST_BYTES,) * 2)
    counts, faults, start = {name: Counter() for name in names}, 0, time.process_time()
    for number in range(asked.first, asked.first + asked.inputs):
        faulthandler.dump_traceback_later(6 * LIMIT_S, exit=True)  # a hang that no signal ends
        with tempfile.TemporaryDirectory(dir=_fast_folder()) as folder:
            name, outcome, fault = attempt(number, names, Path(folder))
            counts[name][outcome] += 1
            if fault is not None:
                faults += 1
                print(json.dumps({"number": number, "target": name, "fault": fault[:400]}), flush=True)
                if asked.keep:
                    os.makedirs(asked.keep, exist_ok=True)
                    shutil.copytree(folder, f"{asked.keep}/{number}", dirs_exist_ok=True)
    faulthandler.cancel_dump_traceback_later()
    for name in counts:
        print(f"{name:16s} " + "  ".join(f"{each} {count}" for each, count in sorted(counts[name].items())))
    total = sum(sum(each.values()) for each in counts.values())
    print(f"{total} inputs, {faults} faults, {time.process_time() - start:.1f} s of the processor")
    return 1 if faults else 0


def _fast_folder() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


if __name__ == "__main__":
    sys.exit(main())
