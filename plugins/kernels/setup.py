"""Builds the extension module where a C compiler is at hand. Without one the package installs all the same, and says so."""

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

FOLDER = "src/turnout_kernels/native"
HEADERS = [
    "job", "pool", "halves", "transposes", "functions", "sums", "pointwise", "rows", "reductions", "scattering", "images",
    "convolutions", "recurrent", "products", "batches", "moving", "random", "kernels",
]  # fmt: skip
EXTENSION = Extension(
    "turnout_kernels._native",
    sources=[f"{FOLDER}/module.c"],
    depends=[f"{FOLDER}/{name}.h" for name in HEADERS],
    py_limited_api=True,
    optional=True,
)


class Build(build_ext):
    """Vectorised, without what would change results: no reordering of sums, no assumption about nan and infinity.

    Loops may compute both sides of a choice, since no one looks at floating-point exceptions or at `errno`.
    """

    def build_extensions(self) -> None:
        if self.compiler.compiler_type == "unix":
            EXTENSION.extra_compile_args = [
                "-O3",
                "-std=c11",
                "-fno-math-errno",
                "-fno-trapping-math",
                "-fno-strict-aliasing",
                "-ffp-contract=fast",
            ]
            EXTENSION.extra_link_args = ["-pthread"]
        super().build_extensions()


class Wheel(bdist_wheel):
    """One wheel for all versions of Python, because the module uses the stable ABI only."""

    def get_tag(self) -> tuple[str, str, str]:
        python, abi, platform = super().get_tag()
        return ("cp311", "abi3", platform) if python.startswith("cp") else (python, abi, platform)


setup(ext_modules=[EXTENSION], cmdclass={"build_ext": Build, "bdist_wheel": Wheel})
