"""The files that the generator writes, with their texts, and the comparison with the existing files."""

from __future__ import annotations

import ast
import difflib
import tomllib
from collections.abc import Mapping
from pathlib import Path

from turnout_aten.declarations.documentation import read
from turnout_aten.declarations.model import NativeFunctions
from turnout_aten.declarations.reading import load
from turnout_aten.errors.declarations import Problem, near
from turnout_aten.functions.public_modules import HOMES
from turnout_aten.generation.catalogue import function_packets
from turnout_aten.generation.docstrings import Docstrings
from turnout_aten.generation.operatorstubs import operators_stub
from turnout_aten.generation.tables import (
    docstrings_text,
    functions_text,
    groups_text,
    methods_text,
    names_text,
    return_types_text,
    rows_text,
)
from turnout_aten.generation.typestubs import functions_stub, methods_stub, return_types_stub, tables_stub

PACKAGE = Path(__file__).resolve().parent.parent
STANDARD = PACKAGE / "declarations" / "native_functions.yaml"
GENERATED = PACKAGE / "generated"

# python_module -> the generated module of its functions.
MODULES = {"": "functions", "nn": "nn_functional", "linalg": "linalg", "fft": "fft", "special": "special"}


def standard_files() -> tuple[dict[Path, str], list[Problem]]:
    """Every generated file of this package, path -> text, and the kernels that the yaml names but nobody wrote yet.

    Raises DeclarationError for what is wrong in the yaml itself.
    """
    functions = load(STANDARD)
    source = STANDARD.name
    families = shape_families()
    problems = missing_kernels(functions) + missing_shapes(functions, families)
    docstrings = Docstrings(read(), [p for module in MODULES for p in function_packets(functions, module)])
    texts = {
        "docstrings.txt": docstrings_text(functions, docstrings),
        "__init__.py": '"""What the build makes from `native_functions.yaml`: tables, type stubs."""\n',
        "rows.py": rows_text(functions, source, lambda _, kernel: reference(kernel)),
        "groups.py": groups_text(functions, source, families),
        "methods.py": methods_text(functions, source),
        "names.py": names_text(functions, source),
        "return_types.py": return_types_text(source),
    }
    texts |= tables_stub(source)
    texts["return_types.pyi"] = return_types_stub(functions, source)
    texts["methods.pyi"] = methods_stub(functions, source, docstrings)
    texts["operators.pyi"] = operators_stub(functions, source)
    for module, file in MODULES.items():
        texts[f"{file}.py"] = functions_text(module, source)
        hidden = hidden_names(HOMES[module])
        texts[f"{file}.pyi"] = functions_stub(functions, module, source, docstrings, hidden)
    public = [p.public_name for p in function_packets(functions, "")]
    by_hand = hand_written_names()
    names = "".join(f"{name}\n" for name in public if name not in by_hand)
    return {GENERATED / name: text for name, text in texts.items()} | {PACKAGE / "public_functions.txt": names}, problems


def hand_written_names() -> set[str]:
    """The public names that the manifest lists itself."""
    provides = tomllib.loads((PACKAGE / "plugin.toml").read_text(encoding="utf-8"))["provides"]
    listed = (names for names in provides["names"].values() if not isinstance(names, str))
    return {name for names in listed for name in names} | set(provides["modules"])


def reference(kernel: str) -> str:
    """A kernel name of the standard yaml, a path under turnout_aten, as `module:function`."""
    path, _, name = kernel.rpartition(".")
    return f"turnout_aten.{path}:{name}"


def hidden_names(home: str) -> set[str]:
    """The names that a public module defines itself; they hide the generated functions of these names."""
    if home == "turnout":
        return hand_written_names()
    path = PACKAGE.joinpath(*home.split(".")[1:])
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return defined_names(file) if "generated" not in file.parts else set()


def missing_kernels(functions: NativeFunctions) -> list[Problem]:
    """Kernel names that lead nowhere. Modules are read, not imported: generating needs no kernel to load."""
    problems: list[Problem] = []
    defined: dict[str, set[str] | None] = {}
    for f in functions:
        for key, kernel in () if f.is_generated else f.dispatch.items():
            path, _, name = kernel.rpartition(".")
            if path not in defined:
                file = PACKAGE / (path.replace(".", "/") + ".py")
                defined[path] = defined_names(file) if path and file.is_file() else None
            names = defined[path]
            if names is None:
                fact = f"dispatch: {key}: no module turnout_aten.{path or '?'} for {kernel}"
            elif name not in names:
                fact = f"dispatch: {key}: turnout_aten.{path} has no function '{name}'{near(name, names)}"
            else:
                continue
            problems.append(Problem(f.source, f.line, f.name, fact))
    return problems


def shape_families() -> dict[str, str]:
    """Structured operator -> its module under turnout_aten.shapes. Raises ValueError if two modules have one."""
    found: dict[str, str] = {}
    for file in sorted((PACKAGE / "shapes").glob("*.py")):
        for statement in ast.parse(file.read_text(encoding="utf-8")).body:
            if not (isinstance(statement, ast.AnnAssign) and ast.unparse(statement.target) == "SHAPES"):
                continue
            assert isinstance(statement.value, ast.Dict), f"{file.name}: SHAPES is read as text: write it as a dict"
            for name in map(ast.literal_eval, filter(None, statement.value.keys)):
                if found.setdefault(name, file.stem) != file.stem:
                    raise ValueError(f"turnout_aten.shapes.{file.stem} and {found[name]} both have a shape function for {name}")
    return found


def missing_shapes(functions: NativeFunctions, families: Mapping[str, str]) -> list[Problem]:
    """Structured operators without a shape function, and shape functions without an operator."""
    structured = {f.name: f for f in functions if f.structured}
    unknown = [name for name in families if name not in structured]
    if unknown:
        raise ValueError(f"no structured operator belongs to these shape functions: {', '.join(unknown)}")
    fact = "structured: no module of turnout_aten.shapes has a shape function for it in SHAPES"
    return [Problem(f.source, f.line, f.name, fact) for name, f in structured.items() if name not in families]


def defined_names(file: Path) -> set[str]:
    """The names that a module defines at its top level: functions, assignments and imports."""
    names: set[str] = set()
    statements = list(ast.parse(file.read_text(encoding="utf-8")).body)
    for statement in statements:
        if isinstance(statement, ast.If):
            statements += [*statement.body, *statement.orelse]
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            names.add(statement.name)
        elif isinstance(statement, ast.Assign):
            names.update(t.id for t in statement.targets if isinstance(t, ast.Name))
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            names.add(statement.target.id)
        elif isinstance(statement, (ast.Import, ast.ImportFrom)):
            names.update(a.asname or a.name for a in statement.names)
    return names


def stale(files: dict[Path, str]) -> str:
    """The diff from the files on disk to the generated texts; "" if they are equal."""
    lines: list[str] = []
    for path, text in files.items():
        old = path.read_text(encoding="utf-8") if path.is_file() else ""
        if old != text:
            name = str(path.relative_to(PACKAGE) if path.is_relative_to(PACKAGE) else path)
            lines += difflib.unified_diff(
                old.splitlines(), text.splitlines(), f"{name} (on disk)", f"{name} (generated)", lineterm="", n=1
            )
    return "\n".join(lines)


def write(files: dict[Path, str]) -> list[Path]:
    """Write the files that differ; returns them."""
    changed = []
    for path, text in files.items():
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            changed.append(path)
    return changed
