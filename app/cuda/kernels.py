"""The CUDA C sources of app/sparse/kernels, compiled when first used, and their launches.

Nothing here imports CuPy: the module is handed in by app/device.py, which is also how tests put one in its
place whose kernels are the same sources compiled for the host.
"""

import re
from pathlib import Path
from typing import Any

import numpy as np

from app.cuda.compiler import binary
from app.errors import NumericsError

Array = Any
FOLDER = Path(__file__).parent.parent / "sparse" / "kernels"
THREADS = 256
INCLUDE = re.compile(r'^#include "(\w+\.cuh)"\n', re.MULTILINE)
NULL = np.uint64(0)  # a pointer that is not given
KERNELS = {
    "spmm": (
        "spmm_16", "spmm_32", "spmm_64", "spmm_128", "spmm_256", "spmm_any", "spmm_long", "spmm_long_4",
        "spmm_lookup", "spmm_rows", "spmm_rows_4",
    ),
    "dense": (
        "dense_16", "dense_32", "dense_64", "dense_128", "dense_16_4", "dense_32_4", "dense_64_4",
        "dense_128_4", "dense_64_one", "dense_128_one", "dense_thin", "dense_made", "gated_spread",
    ),
    "gram": (
        "gram_16", "gram_64", "gram_128", "gram_64_4", "gram_128_4", "gram_tall", "merge_rows", "fold",
        "fold_members",
    ),
    "elementwise": (
        "activate", "activate_4", "deactivate", "deactivate_4", "drop_entries", "add_into", "copy_into",
        "normalise_rows", "normalise_rows_back", "counted_sums", "normalise_columns", "norm_sums",
        "normalise_columns_back", "adam",
    ),
    "losses": ("softmax_loss", "softmax_loss_near", "sigmoid_loss", "squared_loss", "argmax_rows"),
    "attention": (
        "attention_top", "attention_begin", "attention_add", "attention_finish", "attention_pack",
        "attention_back_rows", "attention_back_heads", "row_dots", "attention_top_edges",
        "attention_add_edges", "attention_back_rows_edges", "attention_back_heads_edges",
    ),
    "dynamic": (
        "dynamic_begin", "dynamic_scores", "dynamic_weights", "dynamic_add", "dynamic_finish", "dynamic_pack",
        "dynamic_slopes", "dynamic_back_rows", "dynamic_back_columns", "dynamic_scores_edges",
        "dynamic_slopes_edges", "dynamic_back_rows_edges", "dynamic_back_columns_edges",
    ),
    "edges": (
        "edge_add", "edge_add_4", "edge_back", "edge_back_4", "edge_products", "edge_products_4", "edge_ones",
    ),
    "pairs": ("pair_terms", "pair_rows", "pair_losses", "pair_dots", "rank_terms", "rank_sums"),
    "choose": ("best_rows", "next_key"),
    "changes": ("place_rows", "clear_rows", "place_keys"),
}  # fmt: skip
FILE_OF = {name: file for file, names in KERNELS.items() for name in names}


def source(file: str) -> str:
    """The text of a file with its headers in place: compilers need no search path."""
    text = (FOLDER / f"{file}.cu").read_text("utf-8")
    return INCLUDE.sub(lambda found: (FOLDER / found[1]).read_text("utf-8"), text)


class Kernels:
    """Kernels by name, on the current stream of one device."""

    def __init__(self, cp: Any) -> None:
        self._cp = cp
        self._modules: dict[str, Any] = {}
        self._functions: dict[str, Any] = {}
        self.held: list[Any] | None = None  # while launches are recorded: what they were handed

    def launch(self, name: str, threads: int, *arguments: Any, across: int = 1) -> None:
        """Start a kernel with at least `threads` threads, and `across` blocks in y for each in x."""
        if threads > 0:
            self.launch_blocks(name, -(-threads // THREADS), *arguments, across=across)

    def launch_blocks(self, name: str, blocks: int, *arguments: Any, across: int = 1) -> None:
        """Start a kernel of `blocks` x `across` blocks of THREADS threads."""
        if blocks > 0 and across > 0:
            if self.held is not None:
                self.held.append(arguments)
            self._function(name)((blocks, across), (THREADS,), arguments)

    def _function(self, name: str) -> Any:
        if name not in self._functions:
            file = FILE_OF[name]
            if file not in self._modules:
                path = binary(self._cp, file, source(file))
                self._modules[file] = self._cp.RawModule(path=str(path))
            self._functions[name] = self._modules[file].get_function(name)
        return self._functions[name]


# ---- operands ---------------------------------------------------------------------------------------------


def by_four(*matrices: tuple[Any, Any, int]) -> bool:
    """Whether rows of all matrices (as `matrix` gives them, and their columns) can be read by fours."""
    given = [(X, int(ld), int(columns)) for X, ld, columns in matrices if X is not NULL]
    return not any(X.data.ptr % 16 or ld % 4 or columns % 4 for X, ld, columns in given)


def matrix(X: Array | None, rows: int | None = None, columns: int | None = None) -> tuple[Any, np.int64]:
    """A float32 matrix whose rows are contiguous, and the elements from one row to the next; or a null one.

    Raises NumericsError for anything else, also where it has not `rows` rows or `columns` columns.
    """
    if X is None:
        return NULL, np.int64(0)
    step, inside = X.strides
    fits = (rows is None or X.shape[0] == rows) and (columns is None or X.shape[1] == columns)
    plain = X.dtype == np.float32 and (inside == 4 or X.shape[1] == 1 or not X.size)
    if not (fits and plain):
        raise NumericsError(
            f"kernel: {X.dtype} {X.shape} of strides {X.strides} is not a row-major float32 matrix "
            f"[{rows or '*'}, {columns or '*'}]"
        )
    return X, np.int64(step // 4)


def whole(X: Array, columns: int | None = None) -> Array:
    """A float32 matrix without gaps between its rows. Raises NumericsError."""
    X, step = matrix(X, None, columns)
    if X.shape[0] > 1 and step != X.shape[1]:
        raise NumericsError(f"kernel: {X.shape} of strides {X.strides} must be row-major, without gaps")
    return X


def vector(values: Array | None, size: int | None = None, kind: Any = np.float32) -> Any:
    """`size` contiguous numbers of a kind, or null. Raises NumericsError."""
    if values is None:
        return NULL
    flat = values.ndim == 1 and values.dtype == kind and values.flags.c_contiguous
    if not flat or (size is not None and values.shape[0] != size):
        raise NumericsError(f"kernel: {values.dtype} {values.shape} is not {size or 'some'} {np.dtype(kind)}")
    return values
