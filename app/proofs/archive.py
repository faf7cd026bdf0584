"""certificates/NAME.npz: a proof as a few arrays without pickle, and a tree of JSON that says what is where.

Arrays of one type lie behind each other in one array of the file. A node of the tree is a number, a text,
null, a list, {"array": [type, first, shape]}, or {"kind": NAME, FIELD: ...} for one of KINDS.
"""

import io
import json
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from app.bounds.arrangement.witness import ArrangementPart, ArrangementProof
from app.bounds.assignment.spectral import SplitBound as SplitAssignment
from app.bounds.assignment.witness import AssignmentBound
from app.bounds.certificate import BadCertificate, Certificate
from app.bounds.clique.degeneracy import CliqueBound
from app.bounds.coloring.witness import ColoringProof
from app.bounds.communities.witness import CommunityProof, PartBound
from app.bounds.cover import packing as cover_packing
from app.bounds.cover.theta_verify import ThetaCertificate
from app.bounds.cover.witness import CoverBound, ThetaPart
from app.bounds.coverage.prices import PriceBound
from app.bounds.cut.cycles import CycleCertificate
from app.bounds.cut.verify import CutCertificate, TriangleCertificate
from app.bounds.dense.split_witness import SplitBound
from app.bounds.dense.witness import LoadBound
from app.bounds.dfvs.witness import DirectedFeedbackPart
from app.bounds.dismantle import witness as dismantle_witness
from app.bounds.domination import packing as domination_packing
from app.bounds.facility.witness import CenterBound, FacilityBound
from app.bounds.fvs import witness as fvs_witness
from app.bounds.ordering.witness import OrderingPart
from app.bounds.partition.witness import DiagonalBound, PairBound, PartitionProof, TreeBound
from app.bounds.routing.proof import RoutingBound, Values
from app.bounds.steiner.witness import Case, Heights, SteinerBound
from app.bounds.tour.one_tree import OneTree
from app.bounds.tour.proof import CutTree, Duals
from app.bounds.treewidth.cycles import CycleProof
from app.bounds.treewidth.minors import MinorProof
from app.files import packed_as_numpy_packs
from app.proofs.kinds import (
    CliqueProof,
    CoverageProof,
    CoverProof,
    CutProof,
    DirectedFeedbackProof,
    DismantleProof,
    DominationProof,
    FeedbackProof,
    InfluenceProof,
    OrderingProof,
    PrizedProof,
    SteinerProof,
)
from app.reductions.domination.reducer import Step
from app.toolbox import Bounds

FORMAT = 1
LARGEST = 4 << 30  # bytes of one file, unpacked
LARGEST_TREE = 128 << 20  # and of its JSON, which takes far more where it is read
TREE = "proof"  # the array that holds the JSON


@dataclass(frozen=True)
class Kind:
    """A class of the tree.

    arrays     the types of its arrays, by field
    tables     those that have two dimensions; the others have one
    question   fields that say what is asked: they are not written, and whoever proves fills them in
    """

    made: type
    arrays: dict[str, str] = field(default_factory=dict)
    question: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()


KINDS = {
    "cover": Kind(CoverProof, {"log": "int64"}),
    "cover bound": Kind(CoverBound),
    "cover packing": Kind(cover_packing.Packing, {"value": "int64"}, ("weights",)),
    "columns": Kind(cover_packing.Columns, {"ptr": "int64", "nodes": "int32", "clique": "bool"}),
    "theta part": Kind(ThetaPart, {"nodes": "int64"}),
    "theta": Kind(ThetaCertificate, {"multipliers": "float32"}, tables=("multipliers",)),
    "half-integral": Kind(Certificate, {"u": "int64", "v": "int64", "halves": "int64"}),
    "cut": Kind(CutProof, {"log": "int64"}),
    "eigenvalues": Kind(CutCertificate, {"y": "int64"}),
    "triangles": Kind(
        TriangleCertificate, {"y": "int64", "triangles": "int32", "g": "int64"}, tables=("triangles",)
    ),
    "cycles": Kind(
        CycleCertificate, {"ptr": "int64", "nodes": "int32", "over": "uint8", "values": "int64"}
    ),
    "domination": Kind(DominationProof),
    "step": Kind(Step, {"nodes": "int64", "by": "int64"}),
    "neighbourhoods": Kind(
        domination_packing.Packing, {"numerators": "int64"}, ("weights", "needed", "allowed")
    ),
    "clique": Kind(CliqueProof, {"peeled": "int64"}),
    "coloring": Kind(ColoringProof, dict.fromkeys(("clique", "walk", "nodes", "values"), "int64")),
    "communities": Kind(CommunityProof, {"ptr": "int64", "joined": "int64"}, tables=("joined",)),
    "community part": Kind(
        PartBound, dict.fromkeys(("nodes", "ptr", "members", "g", "matrix"), "int64"), tables=("matrix",)
    ),
    "partition": Kind(PartitionProof),
    "partition pairs": Kind(
        PairBound, dict.fromkeys(("nodes", "matrix", "triangles", "g"), "int64"),
        tables=("matrix", "triangles"),
    ),
    "partition diagonal": Kind(DiagonalBound, {"nodes": "int64", "y": "int64"}),
    "partition trees": Kind(
        TreeBound, {"nodes": "int64", "level": "uint8", "roots": "int64", "g": "int64"},
        tables=("level", "roots", "g"),
    ),
    "colours": Kind(CliqueBound, {"peeled": "int64", "colour": "int32"}, ("weights",)),
    "1-tree": Kind(OneTree, {"pi": "int64", "tree": "int64"}, tables=("tree",)),
    "cuts": Kind(
        CutTree, dict.fromkeys(("set_ptr", "set_nodes", "cut_ptr", "cut_sets"), "int64")
    ),
    "feedback vertex set": Kind(FeedbackProof, {"log": "int64"}),
    "feedback bound": Kind(fvs_witness.FeedbackBound),
    "feedback part": Kind(
        fvs_witness.PartBound,
        dict.fromkeys(("nodes", "edge_ptr", "clique_ptr", "half_ptr", "cases", "y_ptr", "y"), "int64")
        | dict.fromkeys(("edge_u", "edge_v", "clique_nodes", "half_rows", "y_rows"), "int32"),
    ),
    "steiner tree": Kind(SteinerProof, {"log": "int64"}),
    "prized tree": Kind(PrizedProof, {"log": "int64", "entries": "int64"}),
    "steiner": Kind(SteinerBound),
    "steiner case": Kind(Case),
    "heights": Kind(
        Heights, dict.fromkeys(("terminals", "totals", "ptr", "nodes", "heights"), "int64")
    ),
    "directed feedback": Kind(DirectedFeedbackProof, {"log": "int64"}),
    "directed feedback part": Kind(
        DirectedFeedbackPart,
        dict.fromkeys(("nodes", "ptr", "row_nodes", "tree", "leaf_ptr", "leaf_rows", "leaf_values"), "int64")
        | {"cliques": "uint8"},
    ),
    "dismantling": Kind(DismantleProof, {"log": "int64"}),
    "dismantling bound": Kind(dismantle_witness.DismantleBound),
    "ordering": Kind(OrderingProof, {"log": "int64"}),
    "ordering part": Kind(
        OrderingPart,
        dict.fromkeys((
            "nodes", "ptr", "row_nodes", "tree", "us", "vs", "leaf_ptr", "leaf_rows", "leaf_values"
        ), "int64"),
    ),
    "dismantling part": Kind(
        dismantle_witness.PartBound,
        dict.fromkeys((
            "nodes", "tree_ptr", "clique_ptr", "edge_ptr", "half_ptr", "cases", "y_ptr", "y"
        ), "int64")
        | dict.fromkeys((
            "tree_nodes", "above", "clique_nodes", "edge_u", "edge_v", "half_rows", "y_rows"
        ), "int32"),
    ),
    "routes": Kind(
        RoutingBound, dict.fromkeys(("set_ptr", "set_nodes", "near"), "int64"), tables=("near",)
    ),
    "route values": Kind(Values, dict.fromkeys(("pi", "sets", "y"), "int64")),
    "coverage": Kind(CoverageProof, {"log": "int64"}),
    "influence": Kind(InfluenceProof),
    "split assignment": Kind(
        SplitAssignment, dict.fromkeys(("part", "diagonal", "near", "top"), "int64"), tables=("part", "near")
    ),
    "assignment": Kind(AssignmentBound, dict.fromkeys(("top", "rows", "columns", "branch"), "int64")),
    "facilities": Kind(
        FacilityBound, dict.fromkeys(("rows", "ptr", "branch"), "int64"), tables=("rows",)
    ),
    "loads": Kind(LoadBound, {"share": "int64"}),
    "split edges": Kind(
        SplitBound, dict.fromkeys(("shares", "tree"), "int64"), tables=("shares",)
    ),
    "centres": Kind(CenterBound, {"customers": "int64"}),
    "element prices": Kind(PriceBound, {"prices": "int64"}),
    "arrangement": Kind(ArrangementProof),
    "arrangement part": Kind(ArrangementPart, dict.fromkeys(("nodes", "numbers", "more"), "int64")),
    "minor": Kind(MinorProof, {"label": "int64"}),
    "chordless cycles": Kind(CycleProof, {"ptr": "int64", "nodes": "int64"}),
    "duals": Kind(Duals, dict.fromkeys(("pi", "cuts", "y"), "int64")),
}  # fmt: skip
NAMES = {kind.made: name for name, kind in KINDS.items()}


@cache
def written(name: str) -> dict[str, Any]:
    """The fields that a file has of a kind, and what they may be."""
    kind = KINDS[name]
    hints = get_type_hints(kind.made)
    return {each.name: hints[each.name] for each in fields(kind.made) if each.name not in kind.question}


class _Pools:
    """Arrays one behind the other, by their types."""

    def __init__(self) -> None:
        self.parts: dict[str, list[np.ndarray]] = {}
        self._ends: dict[str, int] = {}

    def add(self, array: np.ndarray, kind: str) -> list[Any]:
        """Where the array is, for the tree."""
        first = self._ends.get(kind, 0)
        self.parts.setdefault(kind, []).append(array.astype(kind, casting="same_kind").reshape(-1))
        self._ends[kind] = first + array.size
        return [kind, first, list(array.shape)]

    def joined(self) -> dict[str, np.ndarray]:
        """All arrays, one of each type."""
        return {kind: np.concatenate(parts) for kind, parts in self.parts.items()}


def certificate_of(bounds: Bounds) -> bytes:
    """The file of what proves bounds, or as much of them as has a witness; empty where there is none, or one
    of a kind of the user's own.
    """
    proof = bounds.proof() if bounds.method else None
    return to_bytes(proof) if type(proof) in NAMES else b""


def to_bytes(proof: Any) -> bytes:
    """The file of a proof."""
    pools = _Pools()
    tree = _told(proof, pools)
    text = json.dumps({"format": FORMAT, "proof": tree}, separators=(",", ":"))
    out = io.BytesIO()
    np.savez_compressed(out, **pools.joined(), **{TREE: np.frombuffer(text.encode(), dtype=np.uint8)})
    return out.getvalue()


def from_bytes(content: bytes) -> Any:
    """The proof of a file. Raises BadCertificate, a line, where the file is damaged."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if sum(info.file_size for info in archive.infolist()) > LARGEST:
                raise BadCertificate(f"more than {LARGEST >> 30} GB")
            if not packed_as_numpy_packs(archive):
                raise BadCertificate("packed in another way than NumPy packs")
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        if arrays[TREE].nbytes > LARGEST_TREE:
            raise BadCertificate(f"a tree of more than {LARGEST_TREE >> 20} MB")
        found = json.loads(arrays.pop(TREE).tobytes())
        if found["format"] > FORMAT:
            raise BadCertificate(f"written by a newer Lockstep (format {found['format']}, here {FORMAT})")
        return _read(found["proof"], arrays)
    except BadCertificate:
        raise
    except Exception as error:  # zip, npy and JSON each have their own errors for damaged bytes
        raise BadCertificate(f"no certificate of Lockstep ({type(error).__name__})") from None


def _told(value: Any, pools: _Pools, kind: str = "") -> Any:
    """A node of the tree; its arrays, of a type `kind`, go to the pools."""
    if isinstance(value, np.ndarray):
        return {"array": pools.add(value, kind)}
    if type(value) in NAMES:
        name = NAMES[type(value)]
        arrays = KINDS[name].arrays
        own = {each: _told(getattr(value, each), pools, arrays.get(each, "")) for each in written(name)}
        return {"kind": name, **own}
    if isinstance(value, (list, tuple)):
        return [_told(each, pools) for each in value]
    return value.item() if isinstance(value, np.generic) else value


def _read(node: Any, arrays: dict[str, np.ndarray]) -> Any:
    """What a node of the tree stands for. Raises where it stands for nothing."""
    if isinstance(node, list):
        return tuple(_read(each, arrays) for each in node)
    if not isinstance(node, dict):
        return node
    if "array" in node:
        name, first, shape = node["array"]
        size = int(np.prod([int(each) for each in shape], dtype=object))
        if first < 0 or min(shape) < 0 or first + size > len(arrays[name]):
            raise BadCertificate("an array that is not in the file")
        return arrays[name][first : first + size].reshape(shape)
    kind = KINDS[node["kind"]]
    hints = written(node["kind"])
    values = {name: _read(node[name], arrays) for name in hints}
    for name, hint in hints.items():
        dimensions = getattr(values[name], "ndim", 0)
        fits = dimensions in (0, 1 + (name in kind.tables))
        if not fits or not _fits(values[name], hint, kind.arrays.get(name, "")):
            raise BadCertificate(f"{node['kind']}: {name} is of another kind")
    return kind.made(**values, **dict.fromkeys(kind.question))


def _fits(value: Any, hint: Any, array: str) -> bool:
    """Whether a value is what a field may hold."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (UnionType, Union):
        return any(_fits(value, each, array) for each in inner)
    if hint in (None, NoneType):
        return value is None
    if hint is np.ndarray:
        return isinstance(value, np.ndarray) and value.dtype == array
    if origin is tuple and Ellipsis not in inner:
        return isinstance(value, tuple) and len(value) == len(inner) and all(map(_fits_plain, value, inner))
    if origin in (tuple, Sequence):
        return isinstance(value, tuple) and all(_fits(each, inner[0], array) for each in value)
    return type(value) is hint


def _fits_plain(value: Any, hint: Any) -> bool:
    return _fits(value, hint, "")
