"""app/rl/weights.py: what was saved is what is read; whatever else a file holds is one line of GraphError."""

import io
import json
import pickle
import zipfile

import numpy as np
import pytest

from app.case.config import Case
from app.case.policy import PolicyCase, ProblemCase
from app.comm.guard import digest
from app.errors import CaseError, GraphError
from app.gnn import archive as saving
from app.problems.mvc import MinimumVertexCover
from app.rl.qnet import QNetwork
from app.rl.weights import default_weights, load_weights, save_weights
from app.tasks.context import Context
from app.tasks.solve import find_policy

POLICY = PolicyCase(layers=3, dimension=4, hidden=5, head="mixing", edge_weights=True, shared_layers=True)


def some_arrays(policy=POLICY):
    draws = np.random.default_rng(1)
    shapes = QNetwork(policy, MinimumVertexCover()).shapes()
    return {name: draws.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


@pytest.fixture
def saved(tmp_path):
    """The path of good weights."""
    path = tmp_path / "weights.npz"
    save_weights(str(path), some_arrays(), POLICY, "mvc", "a note")
    return path


def refused(path):
    """The message of the one error that a file gives."""
    with pytest.raises(GraphError) as caught:
        load_weights(str(path))
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    assert caught.value.__cause__ is None
    return message


def rewrite(path, change):
    """Save a file's members again after `change` has altered them, the manifest as a dict."""
    with np.load(path) as file:
        members = {name: file[name] for name in file.files}
    members["manifest"] = json.loads(members["manifest"].tobytes())
    change(members)
    if isinstance(members.get("manifest"), (dict, list)):
        members["manifest"] = np.frombuffer(json.dumps(members["manifest"]).encode(), dtype=np.uint8)
    np.savez(path, **members)


# ---- what was saved -----------------------------------------------------------------------------------


def test_round_trip(tmp_path):
    for policy in (
        POLICY, PolicyCase(), PolicyCase(features="paper", mean_degree=False), PolicyCase(hub_degree=2.5),
    ):  # fmt: skip
        path, arrays = str(tmp_path / "w.npz"), some_arrays(policy)
        stated = save_weights(path, arrays, policy, "mvc", "seed 5")
        read = load_weights(path)
        assert stated == read.digest == digest(arrays) == digest(read.arrays)
        assert (read.policy, read.problem, read.note) == (policy, "mvc", "seed 5")
        assert {n: a.tobytes() for n, a in read.arrays.items()} == {n: a.tobytes() for n, a in arrays.items()}
        assert all(a.dtype == np.float32 and a.shape == arrays[n].shape for n, a in read.arrays.items())
    assert [p.name for p in tmp_path.iterdir()] == ["w.npz"]


def test_saving_replaces_a_file_at_once(saved):
    before = saved.read_bytes()
    with pytest.raises((TypeError, AttributeError)):
        save_weights(str(saved), {"a": np.zeros(3, dtype=np.float32), "b": None}, POLICY, "mvc", "")
    assert saved.read_bytes() == before


def test_equal_weights_are_equal_files_in_whatever_order_they_come(saved, tmp_path):
    other = tmp_path / "other.npz"
    arrays = dict(reversed(some_arrays().items()))  # as a checkpoint may have them
    save_weights(str(other), arrays, POLICY, "mvc", "a note")
    assert other.read_bytes() == saved.read_bytes()


def test_digest_is_of_names_shapes_and_bits():
    arrays = some_arrays()
    name = next(iter(arrays))
    other = {**arrays, name: arrays[name].copy()}
    assert digest(other) == digest(arrays) == digest(dict(reversed(arrays.items())))
    other[name].view(np.uint32)[0, 0] ^= 1
    assert digest(other) != digest(arrays)
    assert digest({**arrays, name: arrays[name].T}) != digest(arrays)
    assert digest({("x" if k == name else k): v for k, v in arrays.items()}) != digest(arrays)


def test_the_shipped_weights_load():
    read = load_weights(default_weights("mvc"))
    shapes = QNetwork(read.policy, MinimumVertexCover()).shapes()
    assert {name: array.shape for name, array in read.arrays.items()} == shapes
    assert read.problem == "mvc"
    with pytest.raises(GraphError, match="no default weights for problem 'tour'"):
        default_weights("tour")


# ---- damaged files ------------------------------------------------------------------------------------


@pytest.mark.mpi_skip
def test_truncated_files(saved):
    whole = saved.read_bytes()
    for length in [0, 1, 3, 4, 30, 100, *range(150, len(whole), 97), len(whole) - 1]:
        saved.write_bytes(whole[:length])
        refused(saved)


@pytest.mark.mpi_skip
@pytest.mark.parametrize("part", ["anywhere", "first member's header", "directory"])
def test_flipped_bits(saved, part):
    """Refused, or harmless: a bit that zip and npy do not use leaves everything that is read as it was."""
    whole, good, arrays = saved.read_bytes(), load_weights(str(saved)), some_arrays()
    directory = whole.index(b"PK\x01\x02")
    lo, hi = {
        "anywhere": (0, len(whole)),
        "first member's header": (0, 200),
        "directory": (directory, len(whole)),
    }[part]
    draws = np.random.default_rng(2)
    count = 0
    for at, bit in zip(draws.integers(lo, hi, 200), draws.integers(0, 8, 200)):
        flipped = bytearray(whole)
        flipped[at] ^= 1 << int(bit)
        saved.write_bytes(flipped)
        try:
            read = load_weights(str(saved))
        except GraphError as error:
            assert str(error).startswith(f"{saved}: ")
            assert "\n" not in str(error)
            count += 1
        else:
            assert digest(read.arrays) == good.digest == digest(arrays)
            assert (read.policy, read.problem, read.note) == (good.policy, good.problem, good.note)
    assert count > (160 if part == "anywhere" else 60)


def test_what_is_no_file_at_all(tmp_path):
    refused(tmp_path / "absent.npz")
    refused(tmp_path)
    for text in (b"", b"PK", b"\x93NUMPY", b"hello\n" * 100):
        (tmp_path / "w.npz").write_bytes(text)
        refused(tmp_path / "w.npz")


# ---- files made with intent ---------------------------------------------------------------------------


def set_manifest(**entries):
    return lambda members: members["manifest"].update(entries)


def set_policy(**entries):
    return lambda members: members["manifest"]["policy"].update(entries)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            set_manifest(format=saving.FORMAT + 1),
            f"written by a newer Lockstep (format {saving.FORMAT + 1}, here {saving.FORMAT})",
        ),
        (set_manifest(kind="layer"), "holds 'layer' weights"),
        (set_manifest(format="one"), "not a weights.npz"),
        (set_manifest(digest="0" * 64), "damaged"),
        (set_manifest(digest=5), "not a weights.npz"),
        (set_manifest(policy=[]), "not a weights.npz"),
        (set_policy(layers="two"), "not a weights.npz"),
        (set_policy(layers=0), "not a weights.npz"),
        (set_policy(model="transformer"), "not a weights.npz"),
        (set_policy(attention=4), "not a weights.npz"),
        (lambda members: members["manifest"].pop("format"), "not a weights.npz"),
        (lambda members: members["manifest"].pop("problem"), "not a weights.npz"),
        (lambda members: members.pop("manifest"), "not a weights.npz"),
        (lambda members: members.update(manifest=[]), "not a weights.npz"),
        (lambda members: members.update(manifest=np.zeros(4, dtype=np.uint8)), "not a weights.npz"),
        (
            lambda members: members.update(manifest=np.frombuffer(b'"\xff\xfe"', dtype=np.uint8)),
            "not a weights.npz",
        ),
        (
            lambda members: members.update(manifest=np.frombuffer(b"[" * 10**5, dtype=np.uint8)),
            "not a weights.npz",
        ),
        (lambda members: members.update(extra=np.zeros(3, dtype=np.float32)), "damaged"),
        (lambda members: members.pop("head.theta5"), "damaged"),
        (lambda members: members["head.theta5"].fill(1), "damaged"),
        (lambda members: members["head.theta5"].fill(np.nan), "not finite float32"),
        (lambda members: members["head.theta5"].fill(np.inf), "not finite float32"),
        (lambda members: members.update(extra=np.zeros(3)), "not finite float32"),
        (lambda members: members.update(extra=np.array(["text"])), "not finite float32"),
        (lambda members: members.update(extra=np.array([{}, None], dtype=object)), "not a weights.npz"),
    ],
)
@pytest.mark.mpi_skip
def test_altered_members(saved, change, message):
    rewrite(saved, change)
    assert message in refused(saved)


@pytest.mark.parametrize("packed", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_bytes_packed_in_another_way(saved, packed):
    """Python unpacks more of them than the size that the file states, which is all that is looked at."""
    with zipfile.ZipFile(saved) as given:
        members = {name: given.read(name) for name in given.namelist()}
    with zipfile.ZipFile(saved, "w", packed) as made:
        for name, content in members.items():
            made.writestr(name, content)
    assert "packed in another way" in refused(saved)


class Payload:
    """Creates a file when unpickled."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return (open, (self.path, "w"))


def test_pickles_are_not_executed(saved, tmp_path):
    trap = tmp_path / "trap"
    rewrite(saved, lambda members: members.update(extra=np.array([Payload(trap)], dtype=object)))
    refused(saved)
    saved.write_bytes(pickle.dumps(Payload(trap)))
    refused(saved)
    with zipfile.ZipFile(saved, "w") as archive:
        archive.writestr("manifest", pickle.dumps(Payload(trap)))
        archive.writestr("manifest.npy", pickle.dumps(Payload(trap)))
    refused(saved)
    assert not trap.exists()


def test_members_that_claim_much_memory(saved, monkeypatch):
    """A header of a few bytes may state any shape; a small zip entry may grow without end."""
    header = io.BytesIO()
    text = {"descr": "<f4", "fortran_order": False, "shape": (1 << 20, 1 << 20)}
    np.lib.format.write_array_header_1_0(header, text)
    with zipfile.ZipFile(saved, "a") as archive:
        archive.writestr("extra.npy", header.getvalue())
    refused(saved)
    monkeypatch.setattr(saving, "LARGEST", 100_000)
    with zipfile.ZipFile(saved, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", bytes(100_001))
    assert saved.stat().st_size < 1000
    assert "is small" in refused(saved)


# ---- in a run -----------------------------------------------------------------------------------------


def make_context(group, path, problem="mvc"):
    return Context(
        Case(policy=PolicyCase(weights=str(path)), problem=ProblemCase(name=problem)), group, None, None
    )


def common_path(group, tmp_path):
    """Rank 0's folder, on all ranks."""
    return group.broadcast_text(str(tmp_path / "w.npz"))


def test_all_ranks_read_the_same_policy(group, tmp_path):
    path = common_path(group, tmp_path)
    if group.rank == 0:
        save_weights(path, some_arrays(), POLICY, "mvc", "")
    group.barrier()
    policy = find_policy(make_context(group, path))
    assert policy.digest == digest(some_arrays()) == digest(policy.params.host())
    assert policy.net.policy == POLICY
    group.barrier()


@pytest.mark.parametrize(
    ("problem", "policy", "error", "message"),
    [
        ("tsp", POLICY, CaseError, "weights for problem 'tsp', the case has 'mvc'"),
        ("mvc", PolicyCase(), CaseError, "do not fit the architecture"),
        ("mvc", None, GraphError, "no such file; the path of a weights.npz"),
    ],
)
def test_all_ranks_refuse_the_same(group, tmp_path, problem, policy, error, message):
    path = common_path(group, tmp_path)
    if group.rank == 0 and policy is not None:
        save_weights(path, some_arrays(), policy, problem, "")
    group.barrier()
    with pytest.raises(error) as caught:
        find_policy(make_context(group, path))
    assert message in str(caught.value)
    group.barrier()
