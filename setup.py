"""Builds the optional compiled kernels (app/native). Without a C compiler the package installs all the same.

The shared library has no Python in it: it is loaded through ctypes, so that Python's headers are not needed.
"""

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

# No contraction: multiply and add round twice, as in NumPy and SciPy; what is fused is so by name.
FLAGS = ["-O3", "-std=c11", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-g0", "-Wall"]
FOLDER = Path("app") / "native"
# app/native/library.py compares this digest with the sources beside the library.
SOURCES = hashlib.sha256(
    b"".join(path.read_bytes() for path in sorted(FOLDER.glob("*.[ch]"), key=lambda path: path.name))
).hexdigest()


class ParallelBuild(build_ext):
    """Compiles as many sources at a time as there are processors."""

    def build_extension(self, ext: Extension) -> None:
        """As the base does; only `compile` of its compiler is another."""
        one = self.compiler.compile

        def compile_all(sources: list[str], **options: Any) -> list[str]:
            with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
                made = list(pool.map(lambda source: one([source], **options), sources))
            return [name for names in made for name in names]

        self.compiler.compile = compile_all
        super().build_extension(ext)


setup(
    cmdclass={"build_ext": ParallelBuild},
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
