"""The layers by name: one file and one line each."""

from app.errors import CaseError
from app.gnn.layers.gcn import GCN
from app.gnn.layers.layer import Convolution, LayerSpec, Settings

LAYERS: dict[str, type] = {
    "gcn": GCN,
}


def make_convolution(name: str, spec: LayerSpec, f_in: int, f_out: int, settings: Settings) -> Convolution:
    """The convolution a spec names. Raises CaseError for an unknown kind."""
    if spec.kind not in LAYERS:
        raise CaseError(f"gnn: unknown layer {spec.kind!r}; {', '.join(sorted(LAYERS))} would be right")
    return LAYERS[spec.kind](name, spec, f_in, f_out, settings)
