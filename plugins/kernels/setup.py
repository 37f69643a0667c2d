"""Builds the extension module where a C compiler is at hand. Without one the package installs all the same, and says so.

`native/expressions.h` is made of the table of element-wise functions of turnout-arrays. An sdist has the header and no table.
"""

import runpy
import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

FOLDER = Path("src/turnout_kernels/native")
# A build of Python without the GIL has no stable ABI.
STABLE = not sysconfig.get_config_var("Py_GIL_DISABLED")
TABLE = Path("../arrays/src/turnout_arrays/expressions.py")


def write_expressions(to: Path) -> None:
    """Write the header, if it differs: the functions of the table, and the helpers that they need."""
    table = runpy.run_path(str(TABLE))
    maths = {name: f"MATHS({name})" for name in ("ceil", "fabs", "floor", "rint", "sqrt", "trunc")}
    own = {"exp": "expo", "expm1": "expo_less_one", "log": "loga", "log1p": "loga_plus_one", "hypot": "hypotenuse"}
    own |= {name: name for name in ("erf", "normal_share", "tanh")}
    language = table["Language"]("(T){}", maths | {name: f"V({value})" for name, value in own.items()}, "V({})")
    rows = [row for row in table["table"]().functions.values() if language.has(row)]
    numbers = {"p": "p[0]", "q": "p[1]", "r": "p[2]"}

    def head(name: str, parameters: tuple[str, ...]) -> str:
        return f"static inline T {name}({', '.join(f'T {each}' for each in parameters)})"

    macros: dict[str, list[str]] = {
        "EVERY_HELPER": [language.define(row, head, "T") for row in language.helpers()],
        "EVERY_EXPRESSION(X)": [],
        "EVERY_QUESTION(X)": [],  # of two inputs; its result is a byte
    }
    for row in rows:
        kind = "QUESTION" if row.is_question and row.inputs == 2 else "EXPRESSION"
        macros[f"EVERY_{kind}(X)"].append(f"X({row.name}, {language.written(row, numbers)})")
    lines = ["/* Made by the build of turnout_arrays/expressions.txt. */"]
    lines += [" \\\n    ".join((f"#define {name}", *each)) for name, each in macros.items()]
    text = "\n".join((*lines, ""))
    if not to.exists() or to.read_text(encoding="utf-8") != text:  # a newer header would compile the module again
        to.write_text(text, encoding="utf-8")


if TABLE.exists():
    write_expressions(FOLDER / "expressions.h")
EXTENSION = Extension(
    "turnout_kernels._native",
    sources=[f"{FOLDER}/module.c"],
    depends=[str(path) for path in sorted(FOLDER.glob("*.h"))],
    define_macros=[("Py_LIMITED_API", "0x030b0000")] if STABLE else [],
    py_limited_api=STABLE,
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
    """One wheel for all versions of Python with the GIL, because the module uses the stable ABI only."""

    def get_tag(self) -> tuple[str, str, str]:
        python, abi, platform = super().get_tag()
        return ("cp311", "abi3", platform) if STABLE and python.startswith("cp") else (python, abi, platform)


setup(ext_modules=[EXTENSION], cmdclass={"build_ext": Build, "bdist_wheel": Wheel})
