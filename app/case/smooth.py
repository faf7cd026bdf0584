"""The table of what follows a network that classifies nodes: Correct and Smooth."""

from typing import Annotated, Literal

from msgspec import Meta

from app.case.table import BelowOne, Positive, Table, about


class SmoothCase(Table, frozen=True):
    """Correct and Smooth: class probabilities go to neighbours once training has ended."""

    method: Annotated[
        Literal["none", "auto", "both", "correct", "smooth"],
        about(
            "none: predictions are the network's; correct: its errors on training nodes go to their "
            "neighbours, and are taken off; smooth: so do its probabilities, and the classes of training "
            "nodes; both: the one, then the other; auto: of these, with some alphas, what has the best "
            "validation score"
        ),
    ] = "none"
    scale: Annotated[
        Literal["autoscale", "fixed"],
        about(
            "correct: how large errors are that have arrived; autoscale: as those of training nodes on the "
            "mean; fixed: factor times as they are, those of training nodes being held"
        ),
    ] = "autoscale"
    factor: Annotated[
        float,
        Meta(gt=0.0, le=1000.0),
        about("correct, fixed: times the errors that arrive, before they are taken off"),
    ] = 1.0
    correct_alpha: Annotated[
        BelowOne, about("correct, autoscale: share of the neighbours' errors, the rest is a node's own")
    ] = 0.8
    smooth_alpha: Annotated[
        BelowOne, about("smooth: share of the neighbours' probabilities, the rest is a node's own")
    ] = 0.8
    steps: Annotated[Positive, about("how often neighbours are heard in each of the two")] = 50
    validation_labels: Annotated[
        bool, about("smooth: classes of validation nodes are given too; their score then tells nothing")
    ] = False


READ = {  # by method, the keys that it reads
    "none": (),
    "auto": ("scale", "factor", "steps", "validation_labels"),
    "correct": ("scale", "factor", "correct_alpha", "steps"),
    "smooth": ("smooth_alpha", "steps", "validation_labels"),
    "both": ("scale", "factor", "correct_alpha", "smooth_alpha", "steps", "validation_labels"),
}
OF_SCALE = {"factor": "fixed", "correct_alpha": "autoscale"}  # keys that one scale alone reads


def unread_keys(case: SmoothCase) -> list[tuple[str, str]]:
    """(key, why) of each key that is set and that the method does not read."""
    found = []
    for key in SmoothCase.__struct_fields__[1:]:
        if getattr(case, key) == getattr(SmoothCase(), key):
            continue
        if key not in READ[case.method]:
            found.append((key, f'is not read by smooth.method = "{case.method}"; leave it out'))
        elif OF_SCALE.get(key, case.scale) != case.scale:
            found.append((key, f'is read by smooth.scale = "{OF_SCALE[key]}" alone; leave it out'))
    return found
