"""The build: makes `turnout_autograd/generated` from the declarations, if this is built in a workspace.

An sdist carries the package, so that building from it needs nothing else.
"""

from __future__ import annotations

import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parent
# Of the generator: its own package, and what it imports.
SOURCES = [HERE / "src", HERE.parent / "aten" / "src", HERE.parents[1] / "core" / "src"]
PACKAGES = ["turnout_autograd.generated", "turnout_autograd.generated.tangents"]
INDEXES = [HERE.joinpath("src", *name.split("."), "__init__.py") for name in PACKAGES]


def generate() -> None:
    """Write the package. Raises RuntimeError where that cannot be done and it is not there yet."""
    fix = "build from an sdist or in a checkout of the repository"
    if all(path.is_dir() for path in SOURCES):
        fix = "pip install PyYAML"
        if _has_yaml():
            sys.path[:0] = map(str, SOURCES)
            from turnout_autograd.generation.files import write

            write()
    if not all(path.exists() for path in INDEXES):
        raise RuntimeError(f"turnout-autograd: the kernels of the standard operators are not generated yet\n  to fix  {fix}")


def _has_yaml() -> bool:
    try:
        import yaml  # noqa: F401
    except ImportError:
        return False
    return True


class BuildPy(build_py):
    """Generates into the source tree, from which wheels, sdists and editable installs take it."""

    def finalize_options(self) -> None:
        # At the first build in a checkout packages were listed without these, and an sdist lists files without `run`.
        if not all(path.exists() for path in INDEXES):
            generate()
        self.distribution.packages += [name for name in PACKAGES if name not in self.distribution.packages]
        super().finalize_options()

    def run(self) -> None:
        generate()
        super().run()


setup(cmdclass={"build_py": BuildPy})
