"""The layers by name: one file and one line each."""

from app.errors import CaseError
from app.gnn.layers.commnet import CommNet
from app.gnn.layers.dense import Dense
from app.gnn.layers.edge_gat import EdgeGAT
from app.gnn.layers.edge_gatv2 import EdgeGATv2
from app.gnn.layers.gat import GAT
from app.gnn.layers.gatv2 import GATv2
from app.gnn.layers.gcn import GCN
from app.gnn.layers.gcn2 import GCN2
from app.gnn.layers.gin import GIN
from app.gnn.layers.gin_norm import BatchNormedGIN, NormedGIN
from app.gnn.layers.gine import GINE
from app.gnn.layers.global_attention import LinearAttention, SGFormer
from app.gnn.layers.hops import APPNP, GPRGNN, SGC, LightGCN
from app.gnn.layers.layer import Convolution, LayerSpec, Settings
from app.gnn.layers.max_readout import MaxReadout
from app.gnn.layers.pna import PNA
from app.gnn.layers.readout import MeanReadout, Readout
from app.gnn.layers.sage import Sage

LAYERS: dict[str, type] = {
    "appnp": APPNP,
    "commnet": CommNet,
    "dense": Dense,
    "edge_gat": EdgeGAT,
    "edge_gatv2": EdgeGATv2,
    "gat": GAT,
    "gatv2": GATv2,
    "gcn": GCN,
    "gcn2": GCN2,
    "gin": GIN,
    "gin_batch_norm": BatchNormedGIN,
    "gin_norm": NormedGIN,
    "gine": GINE,
    "gprgnn": GPRGNN,
    "lightgcn": LightGCN,
    "linear_attention": LinearAttention,
    "pna": PNA,
    "sage": Sage,
    "sgc": SGC,
    "sgformer": SGFormer,
}
READOUTS: dict[str, type] = {
    "max": MaxReadout,
    "mean": MeanReadout,
    "sum": Readout,
}  # gnn.readout: the last layer of gnn.level = "graph"


def readout_kind(name: str) -> str:
    """What a spec calls the readout that gnn.readout names."""
    return f"{name} readout"


def leaves(kind: str, key: str) -> bool:
    """Whether layers of a kind do not read a key of [gnn]."""
    return key in getattr(LAYERS[kind], "leaves", ())


def reads(kind: str, key: str) -> bool:
    """Whether layers of a kind read a key of [gnn] that most do not."""
    return key in getattr(LAYERS.get(kind), "reads", ())


def reads_edges(kind: str) -> bool:
    """Whether layers of a kind read the features of edges."""
    return getattr(LAYERS.get(kind), "reads_edges", False)


def make_convolution(name: str, spec: LayerSpec, f_in: int, f_out: int, settings: Settings) -> Convolution:
    """The convolution a spec names. Raises CaseError for an unknown kind."""
    readouts = {readout_kind(name): kind for name, kind in READOUTS.items()}
    if spec.kind in readouts:  # no text describes one
        return readouts[spec.kind](name, spec, f_in, f_out, settings)
    if spec.kind not in LAYERS:
        raise CaseError(f"gnn: unknown layer {spec.kind!r}; {', '.join(sorted(LAYERS))} would be right")
    return LAYERS[spec.kind](name, spec, f_in, f_out, settings)
