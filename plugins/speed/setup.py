"""Builds the extension modules where a C compiler is at hand. Without one the package installs all the same, and says so."""

import tomllib
from pathlib import Path

import numpy
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

FOLDER = Path("src/turnout_speed")
PROJECT = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
PINS = dict(text.split("==") for text in PROJECT["dependencies"] if "==" in text)
EXTENSIONS = [
    Extension(
        f"turnout_speed.{name}",
        [f"{FOLDER}/{name}.c"],
        include_dirs=[numpy.get_include()],
        define_macros=[("FOR_ATEN", PINS["turnout-aten"]), ("FOR_CORE", PINS["turnout-core"])],
        depends=[str(path) for path in sorted(FOLDER.glob("native/*.h"))],
        optional=True,
    )
    for name in ("_calls", "_rules")
]


class Build(build_ext):
    """Every operation is rounded on its own, as in NumPy: no fused multiply-add. Microsoft's compiler makes none by itself."""

    def build_extensions(self) -> None:
        if self.compiler.compiler_type == "unix":
            for extension in EXTENSIONS:
                extension.extra_compile_args = ["-O3", "-ffp-contract=off", "-fno-strict-aliasing"]
        super().build_extensions()


setup(ext_modules=EXTENSIONS, cmdclass={"build_ext": Build})
