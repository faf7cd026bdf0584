"""Builds the optional compiled kernels (app/native). Without a C compiler the package installs all the same.

The shared library has no Python in it: it is loaded through ctypes, so that Python's headers are not needed.
"""

import hashlib
from pathlib import Path

from setuptools import Extension, setup

# No contraction: multiply and add round twice, as in NumPy and SciPy; what is fused is so by name.
FLAGS = ["-O3", "-std=c11", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-g0", "-Wall"]
FOLDER = Path("app") / "native"
# app/native/library.py compares this digest with the sources beside the library.
SOURCES = hashlib.sha256(
    b"".join(path.read_bytes() for path in sorted(FOLDER.glob("*.[ch]"), key=lambda path: path.name))
).hexdigest()

setup(
    license="Apache-2.0",
    ext_modules=[
        Extension(
            "app.native._kernels",
            sources=sorted(str(path) for path in FOLDER.glob("*.c")),
            depends=sorted(str(path) for path in FOLDER.glob("*.h")),
            define_macros=[("LOCKSTEP_SOURCES", f'"{SOURCES}"')],
            extra_compile_args=FLAGS,
            extra_link_args=["-lm"],
            optional=True,
        )
    ],
)
