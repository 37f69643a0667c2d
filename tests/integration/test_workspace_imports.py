"""Who imports whom: what `import turnout` loads, the order of core's modules, and what plugins may touch."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from workspace import ROOT, distributions, imported, modules

CORE = ROOT / "core" / "src" / "turnout"

# The modules of core, in import order: when it is loaded, each imports only those before it; an import inside a
# function may go the other way. docs/notes/0001 says what each holds.
ORDER = [
    "errors",
    "config",
    "dtypes",
    "limits",
    "keys",
    "plugins",
    "table",
    "state",
    "schema",
    "kernels",
    "operators",
    "registry",
    "ops",
    "devices",
    "backends",
    "calling",
    "stubs",
    "bindings",
    "autograd",
    "return_types",
    "parts",
    "generated",
    "variadics",
    "reductions",
    "conversions",
    "tracking",
    "tensors",
    "random",
    "shapes",
    "native",
    "hosting",
    "nn",
    "fft",
    "linalg",
    "matrices",
    "signal",
    "special",
    "masked",
    "elements",
    "printing",
    "interop",
    "factories",
    "indexing",
    "serialization",
    "modes",
    "trees",
    "func",
    "library",
    "explanation",
    "tracing",
    "amp",
    "graphs",
    "array_api",
    "python_dispatcher",
    "codegen",
    "__init__",
]

# Imported at first use, if at all.
LATE = [
    "ctypes",
    "dataclasses",
    "importlib.metadata",
    "importlib_metadata",
    "inspect",
    "json",
    "ml_dtypes",
    "numpy",
    "pluggy",
    "re",
    "scipy",
    "tomllib",
    "typing",
    "yaml",
]


def test_import_turnout_loads_nothing_heavy():
    program = "import sys; print(*sys.modules); import turnout; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    before, after = (set(line.split()) for line in run.stdout.splitlines())
    assert not set(LATE) & before, "loaded by the start of the interpreter: this test would see nothing"
    assert "turnout" in after
    assert not set(LATE) & after


def test_using_the_cpu_loads_scipy_only_where_a_kernel_needs_it():
    program = "import sys, turnout; (turnout.ones(2) + 1).sum(); print('scipy' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"


def test_import_turnout_loads_no_plugin():
    others = [one.module for one in distributions() if one.module != "turnout"]
    program = f"import sys, turnout; print(*(set({others}) & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []


def test_modules_of_functions_are_loaded_when_they_are_first_used():
    late = [f"turnout.{name}" for name in ("fft", "linalg", "nn", "special")]
    loaded = f"print(*(name for name in {late} if name in sys.modules), sep=', ')"
    program = f"import sys, turnout; {loaded}; {'; '.join(late)}; {loaded}"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == f"\n{', '.join(late)}\n"


def test_every_module_of_core_has_a_place_in_the_order():
    present = {path.stem for path in CORE.glob("*.py")} | {path.parent.name for path in CORE.glob("*/__init__.py")}
    assert present - set(ORDER) == set()


def part(module: str) -> str:
    """The entry of ORDER that a dotted name below `turnout` belongs to."""
    name = module.split(".")[1] if "." in module else "__init__"
    return name if name in ORDER else "__init__"


def run_at_import(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """The statements that run when the module is loaded: not those of functions, nor `if TYPE_CHECKING`."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            yield from run_at_import(node.orelse)
            continue
        yield node
        for field in ("body", "orelse", "finalbody"):
            yield from run_at_import(getattr(node, field, []))
        for handler in getattr(node, "handlers", []):
            yield from run_at_import(handler.body)


def out_of_order(module: str, tree: ast.Module) -> list[str]:
    rank = ORDER.index(part(module))
    found = []
    for node in run_at_import(tree.body):
        for name in imported(module, node):
            if name.partition(".")[0] == "turnout" and ORDER.index(part(name)) > rank:
                found.append(f"{module}:{node.lineno} imports {name}")  # type: ignore[attr-defined]
    return found


@pytest.mark.parametrize("name", ORDER)
def test_modules_of_core_import_only_those_before_them(name: str):
    found = [line for module, tree in modules(CORE) if part(module) == name for line in out_of_order(module, tree)]
    assert found == []


def test_an_import_out_of_order_is_found_wherever_it_runs():
    text = "try:\n    pass\nexcept E:\n    from .. import tensor\nclass C:\n    import turnout.registry\n"
    assert out_of_order("turnout.schema.parse", ast.parse(text)) == [
        "turnout.schema.parse:4 imports turnout.tensor",
        "turnout.schema.parse:6 imports turnout.registry",
    ]
    text = "if TYPE_CHECKING:\n    from ..tensor import Tensor\ndef f():\n    from turnout import tensor\n"
    assert out_of_order("turnout.schema.parse", ast.parse(text)) == []


def private_uses(module: str, tree: ast.Module) -> list[str]:
    """Names with a leading underscore that `module` takes from core, through an import or as turnout.a._b."""
    found = []
    for node in ast.walk(tree):
        names = list(imported(module, node))
        if isinstance(node, ast.Attribute):
            names = [ast.unparse(node)]
        for name in names:
            parts = name.split(".")
            if parts[0] == "turnout" and any(p.startswith("_") and not p.startswith("__") for p in parts):
                found.append(f"{module}:{node.lineno} uses {name}")  # type: ignore[attr-defined]
    return found


def test_plugins_and_tools_use_no_private_name_of_core():
    found = []
    for one in distributions():
        if one.module != "turnout":
            found += [line for module, tree in modules(one.source) for line in private_uses(module, tree)]
    assert found == []


def test_a_private_use_is_found_in_every_spelling():
    text = "from turnout.keys import _bits\nimport turnout._state\nx = turnout.keys._bits\nturnout.keys.__doc__\n"
    assert private_uses("turnout_x.a", ast.parse(text)) == [
        "turnout_x.a:1 uses turnout.keys._bits",
        "turnout_x.a:2 uses turnout._state",
        "turnout_x.a:3 uses turnout.keys._bits",
    ]


def test_core_names_no_plugin():
    """Which package provides what is data: `providers.json`, made from the manifests."""
    names = [n for one in distributions() if one.module != "turnout" for n in (one.module, one.name)]
    texts = [p for p in sorted(CORE.rglob("*")) if p.suffix in (".py", ".pyi", ".yaml", ".toml")]
    assert [(str(p.relative_to(CORE)), n) for p in texts for n in names if n in p.read_text("utf-8")] == []


def test_no_test_of_core_imports_numpy():
    for path in Path(ROOT / "tests" / "core").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            assert not any(name.partition(".")[0] == "numpy" for name in imported("", node)), path
