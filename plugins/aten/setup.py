"""The build: makes the tables and type stubs of `turnout_aten/generated`, and `public_functions.txt`.

They are made from `native_functions.yaml`, which requires PyYAML and turnout-core. An sdist contains them, so that building from
it requires neither.
"""

from __future__ import annotations

import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = Path(__file__).resolve().parent
CORE = HERE.parents[1] / "core" / "src"


def generate(distribution: Distribution) -> None:
    """Write the files into the source tree, from which wheels, sdists and editable installs take them."""
    if not CORE.is_dir():  # an sdist
        return
    try:
        import yaml  # noqa: F401
    except ImportError:
        raise SystemExit("turnout-aten is built from native_functions.yaml, which needs PyYAML: pip install PyYAML") from None
    sys.path[:0] = [str(HERE / "src"), str(CORE)]
    try:
        from turnout_aten.generation.files import standard_files, write
    finally:
        del sys.path[:2]
    files, missing = standard_files()
    if missing:
        raise SystemExit("\n".join(map(str, missing)))
    write(files)
    package = "turnout_aten.generated"  # in a fresh clone, it did not exist when setuptools searched for packages
    if distribution.packages is not None and package not in distribution.packages:
        distribution.packages.append(package)


class BuildPy(build_py):
    """Makes the files first."""

    def run(self) -> None:
        generate(self.distribution)
        super().run()


class Sdist(sdist):
    """Makes the files first."""

    def run(self) -> None:
        generate(self.distribution)
        super().run()


setup(cmdclass={"build_py": BuildPy, "sdist": Sdist})
